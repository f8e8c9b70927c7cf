// SPDX-License-Identifier: Apache-2.0

// A program over github.com/yalue/onnxruntime_go: `client LIBRARY MODELS` prints one line a check.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	ort "github.com/yalue/onnxruntime_go"
)

var folder string

func say(name string, text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\\", "\\\\"), "\n", "\\n")
	fmt.Printf("%s | %s\n", name, text)
}

func attempt(name string, err error) bool {
	if err != nil {
		say(name, "error "+err.Error())
		return false
	}
	say(name, "ok")
	return true
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func path(name string) string {
	return folder + "/" + name + ".onnx"
}

func showValue(name string, value ort.Value) {
	switch v := value.(type) {
	case nil:
		say(name, "nil")
	case *ort.Tensor[float32]:
		say(name, fmt.Sprint("float32", v.GetShape(), v.GetData()))
	case *ort.Tensor[float64]:
		say(name, fmt.Sprint("float64", v.GetShape(), v.GetData()))
	case *ort.Tensor[int64]:
		say(name, fmt.Sprint("int64", v.GetShape(), v.GetData()))
	case *ort.Tensor[int32]:
		say(name, fmt.Sprint("int32", v.GetShape(), v.GetData()))
	case *ort.Tensor[bool]:
		say(name, fmt.Sprint("bool", v.GetShape(), v.GetData()))
	case *ort.CustomDataTensor:
		say(name, fmt.Sprint("custom", v.DataType(), v.GetShape(), v.GetData()))
	case *ort.StringTensor:
		contents, err := v.GetContents()
		say(name, fmt.Sprintf("string%v%q %v", v.GetShape(), contents, err))
	case *ort.Sequence:
		values, err := v.GetValues()
		say(name, fmt.Sprint("sequence of ", len(values), " ", err))
		for i, item := range values {
			showValue(fmt.Sprintf("%s.%d", name, i), item)
		}
	case *ort.Map:
		keys, values, err := v.GetKeysAndValues()
		if attempt(name, err) {
			showValue(name+".keys", keys)
			showValue(name+".values", values)
		}
	default:
		say(name, fmt.Sprintf("%T", value))
	}
}

func tensor[T ort.TensorData](data []T, dims ...int64) *ort.Tensor[T] {
	t, err := ort.NewTensor(ort.NewShape(dims...), data)
	must(err)
	return t
}

// Opens a session over the model's own input and output names.
func open(name string, options *ort.SessionOptions) *ort.DynamicAdvancedSession {
	inputs, outputs, err := ort.GetInputOutputInfo(path(name))
	must(err)
	var in, out []string
	for _, one := range inputs {
		in = append(in, one.Name)
	}
	for _, one := range outputs {
		out = append(out, one.Name)
	}
	session, err := ort.NewDynamicAdvancedSession(path(name), in, out, options)
	must(err)
	return session
}

func run(name string, session *ort.DynamicAdvancedSession, count int, inputs ...ort.Value) {
	outputs := make([]ort.Value, count)
	if err := session.Run(inputs, outputs); err != nil {
		say(name, "error "+err.Error())
		return
	}
	for _, value := range outputs {
		showValue(name, value)
		value.Destroy()
	}
}

func runInto(name string, session *ort.DynamicAdvancedSession, input, output ort.Value) {
	if attempt(name, session.Run([]ort.Value{input}, []ort.Value{output})) {
		showValue(name, output)
	}
}

func checkEnds() {
	for _, name := range []string{"linear", "types", "scalar", "two_inputs", "zipmap_string",
		"zipmap_int64", "sequence", "sequence_in", "weights_given"} {
		inputs, outputs, err := ort.GetInputOutputInfo(path(name))
		if !attempt("ends."+name, err) {
			continue
		}
		for _, one := range append(inputs, outputs...) {
			say("ends."+name, one.String())
		}
	}
	bytes, err := os.ReadFile(path("linear"))
	must(err)
	inputs, _, err := ort.GetInputOutputInfoWithONNXData(bytes)
	if attempt("ends.memory", err) {
		say("ends.memory", inputs[0].String())
	}
}

func checkRuns() {
	linear := open("linear", nil)
	defer linear.Destroy()
	x := make([]float32, 20)
	for i := range x {
		x[i] = float32(i-5) / 2
	}
	for _, rows := range []int64{2, 1, 5, 3, 0} {
		run(fmt.Sprint("run.float.", rows), linear, 1, tensor(x[:rows*4], rows, 4))
	}
	run("run.int64", open("int64", nil), 1, tensor([]int64{1, -2, 1 << 60}, 3))
	run("run.int32", open("int32", nil), 1, tensor([]int32{1, -2, 1 << 30}, 3))
	run("run.float64", open("float64", nil), 1, tensor([]float64{0.5, -2}, 2))
	run("run.bool", open("bool", nil), 1, tensor([]bool{true, false, true}, 3))
	texts, err := ort.NewStringTensor(ort.NewShape(3))
	must(err)
	attempt("run.string.fill", texts.SetContents([]string{"a", "", "gr\u00fc\u00df"}))
	attempt("run.string.element", texts.SetElement(1, "new"))
	attempt("run.string.many", texts.SetContents([]string{"a"}))
	one, err := texts.GetElement(2)
	say("run.string.get", fmt.Sprint(one, " ", err))
	_, err = texts.GetElement(3)
	attempt("run.string.beyond", err)
	run("run.string", open("string", nil), 1, texts)
	half, err := ort.NewCustomDataTensor(ort.NewShape(2), []byte{0, 0x3c, 0, 0xc0},
		ort.TensorElementDataTypeFloat16)
	must(err)
	sum, err := ort.NewCustomDataTensor(ort.NewShape(2), make([]byte, 4),
		ort.TensorElementDataTypeFloat16)
	must(err)
	runInto("run.float16", open("float16", nil), half, sum)
	// The package makes no value of an output of rank 0 itself.
	scalar, err := ort.NewScalar(float32(2.5))
	must(err)
	negated, err := ort.NewEmptyScalar[float32]()
	must(err)
	runInto("run.scalar", open("scalar", nil), scalar, negated)
	say("run.scalar.y", fmt.Sprint(negated.GetData()))
	run("run.two", open("two_inputs", nil), 2, tensor(x[:6], 2, 3), tensor(x[6:9], 1, 3))
	run("run.zipmap_string", open("zipmap_string", nil), 1, tensor(x[:6], 2, 3))
	run("run.zipmap_int64", open("zipmap_int64", nil), 1, tensor(x[:6], 2, 3))
	sequence, err := ort.NewDynamicAdvancedSession(path("sequence"), []string{"x"},
		[]string{"rows"}, nil)
	must(err)
	run("run.sequence", sequence, 1, tensor(x[:6], 3, 2))
	rows, err := ort.NewSequence([]ort.Value{tensor(x[:2], 1, 2), tensor(x[2:6], 2, 2)})
	if attempt("run.sequence_in", err) {
		run("run.sequence_in", open("sequence_in", nil), 1, rows)
	}
	pairs, err := ort.NewMapFromGoMap(map[int64]float32{7: 70})
	if attempt("map", err) {
		showValue("map", pairs)
	}
}

func checkMemory() {
	bytes, err := os.ReadFile(path("linear"))
	must(err)
	y, err := ort.NewEmptyTensor[float32](ort.NewShape(1, 3))
	must(err)
	session, err := ort.NewAdvancedSessionWithONNXData(bytes, []string{"x"}, []string{"y"},
		[]ort.Value{tensor([]float32{1, 2, 3, 4}, 1, 4)}, []ort.Value{y}, nil)
	if attempt("memory", err) {
		attempt("memory.run", session.Run())
		showValue("memory.y", y)
		session.Destroy()
	}
	_, err = ort.NewDynamicAdvancedSessionWithONNXData([]byte{1, 2, 3}, []string{"x"},
		[]string{"y"}, nil)
	attempt("memory.garbage", err)
}

func checkErrors() {
	for _, name := range []string{"nofile", "garbage", "empty", "truncated", "badop", "baddomain",
		"badopset", "badir", "badedge", "badtype", "cycle"} {
		_, err := ort.NewDynamicAdvancedSession(path(name), []string{"x"}, []string{"y"}, nil)
		attempt("error."+name, err)
	}
	linear := open("linear", nil)
	run("error.dimension", linear, 1, tensor(make([]float32, 5), 1, 5))
	run("error.rank", linear, 1, tensor(make([]float32, 4), 4))
	run("error.type", linear, 1, tensor(make([]float64, 4), 1, 4))
	run("error.then", linear, 1, tensor(make([]float32, 4), 1, 4))
	run("error.kernel", open("gather", nil), 1, tensor([]int64{0, 7}, 2))
	for _, names := range [][2]string{{"q", "y"}, {"x", "q"}} {
		session, err := ort.NewDynamicAdvancedSession(path("linear"), []string{names[0]},
			[]string{names[1]}, nil)
		if attempt("error.names", err) {
			run("error.names", session, 1, tensor(make([]float32, 4), 1, 4))
		}
	}
	wrong, err := ort.NewEmptyTensor[float32](ort.NewShape(1, 2))
	must(err)
	err = linear.Run([]ort.Value{tensor(make([]float32, 4), 1, 4)}, []ort.Value{wrong})
	say("error.given", fmt.Sprint(err != nil)) // its message names a source file
}

func text(name string, value string, err error) {
	say(name, fmt.Sprint(value, " ", err))
}

func checkMetadata() {
	meta, err := ort.GetModelMetadata(path("linear"))
	must(err)
	defer meta.Destroy()
	value, err := meta.GetProducerName()
	text("meta.producer", value, err)
	value, err = meta.GetGraphName()
	text("meta.graph", value, err)
	value, err = meta.GetDomain()
	text("meta.domain", value, err)
	value, err = meta.GetDescription()
	text("meta.description", value, err)
	version, err := meta.GetVersion()
	say("meta.version", fmt.Sprint(version, " ", err))
	for _, key := range []string{"author", "empty", "absent"} {
		value, present, err := meta.LookupCustomMetadataMap(key)
		say("meta."+key, fmt.Sprint(value, " ", present, " ", err))
	}
	keys, err := meta.GetCustomMetadataMapKeys()
	sort.Strings(keys)
	say("meta.keys", fmt.Sprint(keys, " ", err))
}

func checkBinding() {
	session, err := ort.NewDynamicAdvancedSession(path("linear"), nil, nil, nil)
	must(err)
	defer session.Destroy()
	binding, err := session.CreateIoBinding()
	must(err)
	defer binding.Destroy()
	x := tensor([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 4)
	y, err := ort.NewEmptyTensor[float32](ort.NewShape(2, 3))
	must(err)
	attempt("bind.input", binding.BindInput("x", x))
	attempt("bind.unknown", binding.BindInput("q", x))
	attempt("bind.output", binding.BindOutput("y", y))
	attempt("bind.run", session.RunWithBinding(binding))
	showValue("bind.y", y)
	x.GetData()[0] = 10
	attempt("bind.again", session.RunWithBinding(binding))
	showValue("bind.y", y)
	names, err := binding.GetBoundOutputNames()
	say("bind.names", fmt.Sprint(names, " ", err))
	values, err := binding.GetBoundOutputValues()
	say("bind.values", fmt.Sprint(len(values), " ", err))
	for _, value := range values {
		showValue("bind.value", value)
	}
	binding.ClearBoundInputs()
	binding.ClearBoundOutputs()
	names, err = binding.GetBoundOutputNames()
	say("bind.cleared", fmt.Sprint(names, " ", err))
}

func checkOptions() {
	o, err := ort.NewSessionOptions()
	must(err)
	defer o.Destroy()
	attempt("options.intra", o.SetIntraOpNumThreads(2))
	attempt("options.inter", o.SetInterOpNumThreads(1))
	attempt("options.mode", o.SetExecutionMode(ort.ExecutionModeSequential))
	attempt("options.arena", o.SetCpuMemArena(false))
	attempt("options.pattern", o.SetMemPattern(false))
	attempt("options.severity", o.SetLogSeverityLevel(ort.LoggingLevelFatal))
	for _, level := range []int{0, 1, 2, 7, 99} {
		attempt(fmt.Sprint("options.level.", level),
			o.SetGraphOptimizationLevel(ort.GraphOptimizationLevel(level)))
	}
	attempt("options.entry", o.AddSessionConfigEntry("my.key", "my value"))
	attempt("options.empty", o.AddSessionConfigEntry("", "value"))
	has, err := o.HasSessionConfigEntry("my.key")
	say("options.has", fmt.Sprint(has, " ", err))
	has, err = o.HasSessionConfigEntry("no.key")
	say("options.has", fmt.Sprint(has, " ", err))
	value, err := o.GetSessionConfigEntry("my.key")
	text("options.get", value, err)
	value, err = o.GetSessionConfigEntry("no.key")
	text("options.get", value, err)
	attempt("options.provider", o.AppendExecutionProvider("NoSuch", nil))
	attempt("options.xnnpack", o.AppendExecutionProvider("XNNPACK", nil))
	_, err = ort.NewCUDAProviderOptions()
	say("options.cuda", fmt.Sprint(err != nil))
	session := open("linear", o)
	run("options.run", session, 1, tensor([]float32{1, 2, 3, 4}, 1, 4))
	session.Destroy()
}

func checkTerminate() {
	session := open("endless", nil)
	defer session.Destroy()
	options, err := ort.NewRunOptions()
	must(err)
	defer options.Destroy()
	turn := func(name string, turns int64) {
		count, err := ort.NewScalar(turns)
		must(err)
		outputs := []ort.Value{nil}
		err = session.RunWithOptions([]ort.Value{count, tensor([]float32{0}, 1)}, outputs, options)
		if attempt(name, err) {
			showValue(name, outputs[0])
		}
	}
	turn("terminate.before", 3)
	attempt("terminate.set", options.Terminate())
	turn("terminate.flag", 3)
	attempt("terminate.unset", options.UnsetTerminate())
	turn("terminate.after", 3)
	go func() {
		time.Sleep(200 * time.Millisecond)
		options.Terminate()
	}()
	turn("terminate.thread", 1<<62)
}

func checkThreads() {
	session := open("linear", nil)
	defer session.Destroy()
	var group sync.WaitGroup
	wrong := make([]int, 8)
	for g := range wrong {
		group.Add(1)
		go func(g int) {
			defer group.Done()
			for i := 0; i < 30; i++ {
				x := tensor([]float32{float32(g), float32(i), 0, 0}, 1, 4)
				outputs := []ort.Value{nil}
				if session.Run([]ort.Value{x}, outputs) != nil {
					wrong[g]++
					continue
				}
				y := outputs[0].(*ort.Tensor[float32]).GetData()[0]
				if y != float32(-4*g-i+1) { // column 0 of w: -4 -1 2 5
					wrong[g]++
				}
				outputs[0].Destroy()
				x.Destroy()
			}
		}(g)
	}
	group.Wait()
	say("threads", fmt.Sprint(wrong))
	var sessions []*ort.DynamicAdvancedSession
	for i := 0; i < 40; i++ {
		sessions = append(sessions, open("classify", nil))
	}
	run("many", sessions[39], 1, tensor(make([]float32, 4), 1, 4))
	for _, one := range sessions {
		one.Destroy()
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: client LIBRARY MODELS")
		os.Exit(2)
	}
	folder = os.Args[2]
	ort.SetSharedLibraryPath(os.Args[1])
	must(ort.InitializeEnvironment(ort.WithLogLevelFatal()))
	say("version.string", ort.GetVersion())
	attempt("telemetry", ort.DisableTelemetry())
	attempt("telemetry", ort.EnableTelemetry())
	checkEnds()
	checkRuns()
	checkMemory()
	checkErrors()
	checkMetadata()
	checkBinding()
	checkOptions()
	checkTerminate()
	checkThreads()
	must(ort.DestroyEnvironment())
	say("end", "reached")
}
