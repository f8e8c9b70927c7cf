// SPDX-License-Identifier: Apache-2.0

import ai.onnxruntime.NodeInfo;
import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxMap;
import ai.onnxruntime.OnnxModelMetadata;
import ai.onnxruntime.OnnxSequence;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxValue;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtEpDevice;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtLoggingLevel;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.TensorInfo;
import java.io.File;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.ShortBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A program over the package com.microsoft.onnxruntime: {@code java -cp ... Client MODELS} prints
 * one line a check. The property onnxruntime.native.path names the folder of the library.
 */
public final class Client {
    private static OrtEnvironment env;
    private static String folder;

    private interface Check {
        void run() throws Exception;
    }

    private Client() {}

    private static void say(String name, Object text) {
        String line = String.valueOf(text).replace("\\", "\\\\").replace("\n", "\\n");
        System.out.println(name + " | " + line);
    }

    /** Prints ok, or the code and message of what the check throws. */
    private static void attempt(String name, Check check) {
        try {
            check.run();
            say(name, "ok");
        } catch (OrtException error) {
            say(name, "code=" + error.getCode() + " " + error.getMessage());
        } catch (Exception error) {
            say(name, error);
        }
    }

    private static String path(String name) {
        return folder + File.separator + name + ".onnx";
    }

    private static OrtSession open(String name) throws OrtException {
        return env.createSession(path(name));
    }

    private static String text(Object data) {
        if (data instanceof Object[]) return Arrays.deepToString((Object[]) data);
        if (data instanceof float[]) return Arrays.toString((float[]) data);
        if (data instanceof double[]) return Arrays.toString((double[]) data);
        if (data instanceof long[]) return Arrays.toString((long[]) data);
        if (data instanceof int[]) return Arrays.toString((int[]) data);
        if (data instanceof boolean[]) return Arrays.toString((boolean[]) data);
        return String.valueOf(data);
    }

    private static void show(String name, OnnxValue value) throws OrtException {
        if (value instanceof OnnxTensor) {
            TensorInfo info = ((OnnxTensor) value).getInfo();
            String shape = info.onnxType + Arrays.toString(info.getShape());
            say(name, shape + " " + text(value.getValue()));
        } else if (value instanceof OnnxMap) {
            say(name, value.getInfo() + " " + new TreeMap<>(((OnnxMap) value).getValue()));
        } else {
            say(name, value.getInfo());
            int i = 0;
            for (OnnxValue item : ((OnnxSequence) value).getValue()) show(name + "." + i++, item);
        }
    }

    private static OnnxTensor floats(float[] data, long... shape) throws OrtException {
        return OnnxTensor.createTensor(env, FloatBuffer.wrap(data), shape);
    }

    private static void run(String name, OrtSession session, OnnxTensor x) {
        attempt(name, () -> {
            String input = session.getInputNames().iterator().next();
            try (OrtSession.Result result = session.run(Map.of(input, x))) {
                for (Map.Entry<String, OnnxValue> one : result)
                    show(name + "." + one.getKey(), one.getValue());
            }
        });
    }

    private static void checkEnds() {
        for (String name : List.of("linear", "types", "scalar", "two_inputs", "zipmap_string",
                "zipmap_int64", "sequence", "sequence_in", "weights_given"))
            attempt("ends." + name, () -> {
                try (OrtSession session = open(name)) {
                    for (NodeInfo one : session.getInputInfo().values()) showEnd(name, one);
                    for (NodeInfo one : session.getOutputInfo().values()) showEnd(name, one);
                }
            });
    }

    private static void showEnd(String name, NodeInfo end) {
        say("ends." + name + "." + end.getName(), end);
        if (end.getInfo() instanceof TensorInfo)
            say("ends." + name + "." + end.getName(),
                    Arrays.toString(((TensorInfo) end.getInfo()).getDimensionNames()));
    }

    private static void checkRuns() throws Exception {
        OrtSession linear = open("linear");
        for (int rows : new int[] {2, 1, 5, 0, 3}) {
            float[] x = new float[rows * 4];
            for (int i = 0; i < x.length; i++) x[i] = (i - 5) / 2f;
            attempt("run.float." + rows, () -> run("run.float", linear, floats(x, rows, 4)));
        }
        attempt("run.array", () -> run("run.array", linear,
                OnnxTensor.createTensor(env, new float[][] {{1, 2, 3, 4}, {5, 6, 7, 8}})));
        run("run.int64", open("int64"), OnnxTensor.createTensor(env, new long[] {1, -2, 1L << 60}));
        run("run.int32", open("int32"), OnnxTensor.createTensor(env, new int[] {1, -2, 1 << 30}));
        run("run.float64", open("float64"), OnnxTensor.createTensor(env, new double[] {0.5, -2}));
        run("run.bool", open("bool"),
                OnnxTensor.createTensor(env, new boolean[] {true, false, true}));
        run("run.string", open("string"),
                OnnxTensor.createTensor(env, new String[] {"a", "", "gr\u00fc\u00df dich"}));
        ByteBuffer bytes = ByteBuffer.allocateDirect(6).order(ByteOrder.nativeOrder());
        ShortBuffer halves = bytes.asShortBuffer();
        halves.put(new short[] {0x3c00, (short) 0xc000, 0x3555}).rewind();
        run("run.float16", open("float16"),
                OnnxTensor.createTensor(env, halves, new long[] {3}, OnnxJavaType.FLOAT16));
        run("run.scalar", open("scalar"), OnnxTensor.createTensor(env, 2.5f));
        run("run.zipmap_string", open("zipmap_string"), floats(new float[] {1, 2, 3, 4, 5, 6}, 2, 3));
        run("run.zipmap_int64", open("zipmap_int64"), floats(new float[] {1, 2, 3, 4, 5, 6}, 2, 3));
        run("run.sequence", open("sequence"), floats(new float[] {1, 2, 3, 4, 5, 6}, 3, 2));
        byte[] model = Files.readAllBytes(new File(path("linear")).toPath());
        run("run.memory", env.createSession(model), floats(new float[] {1, 2, 3, 4}, 1, 4));
        ByteBuffer direct = ByteBuffer.allocateDirect(model.length).put(model);
        direct.rewind();
        run("run.buffer", env.createSession(direct), floats(new float[] {1, 2, 3, 4}, 1, 4));
        checkTwo();
    }

    private static void checkTwo() throws Exception {
        OrtSession two = open("two_inputs");
        Map<String, OnnxTensor> feeds = Map.of("a", floats(new float[] {1, 2}, 1, 2), "b",
                floats(new float[] {3, 4, 5, 6}, 2, 2));
        attempt("two", () -> {
            try (OrtSession.Result result = two.run(feeds)) {
                show("two.c", result.get("c").get());
                show("two.s", result.get(1));
            }
        });
        attempt("two.chosen", () -> {
            try (OrtSession.Result result = two.run(feeds, Set.of("s"))) {
                say("two.chosen", result.size());
                show("two.chosen", result.get(0));
            }
        });
        attempt("two.given", () -> {
            ByteBuffer room = ByteBuffer.allocateDirect(24).order(ByteOrder.nativeOrder());
            FloatBuffer floats = room.asFloatBuffer();
            OnnxTensor c = OnnxTensor.createTensor(env, floats, new long[] {3, 2});
            two.run(feeds, Map.of("c", c)).close();
            say("two.given", floats.get(0) + " " + floats.get(5));
        });
        attempt("two.overridden", () -> {
            OrtSession session = open("weights_given");
            Map<String, OnnxTensor> given = Map.of("x", floats(new float[] {1, 2}, 2), "scale",
                    floats(new float[] {10}, 1));
            show("two.overridden", session.run(given).get(0));
        });
    }

    private static void checkErrors() throws Exception {
        for (String name : List.of("nofile", "garbage", "empty", "truncated", "badop", "baddomain",
                "badopset", "badir", "badedge", "badtype", "cycle"))
            attempt("error." + name, () -> open(name));
        attempt("error.memory", () -> env.createSession(new byte[] {1, 2, 3}));
        attempt("error.no_bytes", () -> env.createSession(new byte[0]));
        OrtSession linear = open("linear");
        run("error.dimension", linear, floats(new float[5], 1, 5));
        run("error.rank", linear, floats(new float[4], 4));
        run("error.type", linear, OnnxTensor.createTensor(env, new double[][] {{1, 2, 3, 4}}));
        attempt("error.input", () -> linear.run(Map.of("q", floats(new float[4], 1, 4))));
        attempt("error.none", () -> linear.run(Map.of()));
        attempt("error.output",
                () -> linear.run(Map.of("x", floats(new float[4], 1, 4)), Set.of("q")));
        run("error.then", linear, floats(new float[4], 1, 4));
        run("error.kernel", open("gather"), OnnxTensor.createTensor(env, new long[] {0, 7}));
        attempt("error.small", () -> floats(new float[3], 1, 4));
        linear.close();
    }

    private static void checkMetadata() throws Exception {
        try (OrtSession session = open("linear")) {
            OnnxModelMetadata meta = session.getMetadata();
            say("meta.producer", meta.getProducerName());
            say("meta.graph", meta.getGraphName());
            say("meta.graph_description", meta.getGraphDescription());
            say("meta.domain", meta.getDomain());
            say("meta.description", meta.getDescription());
            say("meta.version", meta.getVersion());
            say("meta.custom", new TreeMap<>(meta.getCustomMetadata()));
            say("meta.absent", meta.getCustomMetadataValue("absent"));
            say("meta.profile", session.getNumInputs() + " " + session.getNumOutputs());
        }
    }

    private static void checkOptions() throws Exception {
        for (OrtSession.SessionOptions.OptLevel level :
                OrtSession.SessionOptions.OptLevel.values())
            attempt("options." + level, () -> {
                OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                options.setOptimizationLevel(level);
                run("options.run", env.createSession(path("classify"), options),
                        floats(new float[4], 1, 4));
            });
        OrtSession.SessionOptions options = new OrtSession.SessionOptions();
        attempt("options.intra", () -> options.setIntraOpNumThreads(2));
        attempt("options.inter", () -> options.setInterOpNumThreads(1));
        attempt("options.mode", () -> options.setExecutionMode(
                OrtSession.SessionOptions.ExecutionMode.SEQUENTIAL));
        attempt("options.pattern", () -> options.setMemoryPatternOptimization(false));
        attempt("options.arena", () -> options.setCPUArenaAllocator(false));
        attempt("options.log", () -> options.setSessionLogLevel(
                OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL));
        attempt("options.verbosity", () -> options.setSessionLogVerbosityLevel(0));
        attempt("options.id", () -> options.setLoggerId("mine"));
        attempt("options.entry", () -> options.addConfigEntry("my.key", "my value"));
        attempt("options.empty", () -> options.addConfigEntry("", "x"));
        attempt("options.dimension", () -> options.setSymbolicDimensionValue("N", 1));
        attempt("options.same", () -> options.setDeterministicCompute(true));
        attempt("options.cpu", () -> options.addCPU(true));
        attempt("options.xnnpack", () -> options.addXnnpack(Map.of()));
        attempt("options.library", () -> options.registerCustomOpLibrary("/no/such.so"));
        attempt("options.session", () -> {
            try (OrtSession session = env.createSession(path("linear"), options)) {
                say("options.session", session.getInputInfo());
                run("options.many", session, floats(new float[] {1, 2, 3, 4}, 1, 4));
                run("options.beyond", session, floats(new float[8], 2, 4));
            }
        });
    }

    private static void turn(String name, OrtSession session, OrtSession.RunOptions options,
            long turns) {
        attempt(name, () -> {
            Map<String, OnnxTensor> feeds = Map.of("count", OnnxTensor.createTensor(env, turns),
                    "x", floats(new float[1], 1));
            try (OrtSession.Result result = session.run(feeds, options)) {
                show(name, result.get(0));
            }
        });
    }

    private static void checkTerminate() throws Exception {
        OrtSession session = open("endless");
        OrtSession.RunOptions options = new OrtSession.RunOptions();
        options.setRunTag("mine");
        options.setLogLevel(OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL);
        options.addRunConfigEntry("my.key", "1");
        say("terminate.tag", options.getRunTag() + " " + options.getLogLevel());
        turn("terminate.before", session, options, 3);
        options.setTerminate(true);
        turn("terminate.flag", session, options, 3);
        options.setTerminate(false);
        turn("terminate.after", session, options, 3);
        Thread other = new Thread(() -> attempt("terminate.set", () -> {
            Thread.sleep(200);
            options.setTerminate(true);
        }));
        other.start();
        String[] outcome = {"returned"};
        try {
            session.run(Map.of("count", OnnxTensor.createTensor(env, Long.MAX_VALUE), "x",
                    floats(new float[1], 1)), options).close();
        } catch (OrtException error) {
            outcome[0] = "code=" + error.getCode() + " " + error.getMessage();
        }
        other.join();
        say("terminate.thread", outcome[0]);
    }

    private static void checkThreads() throws Exception {
        OrtSession shared = open("linear");
        AtomicInteger wrong = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 4; t++) {
            float first = t;
            Thread thread = new Thread(() -> {
                for (int i = 0; i < 50; i++)
                    try (OnnxTensor x = floats(new float[] {first, i, 0, 0}, 1, 4);
                            OrtSession.Result result = shared.run(Map.of("x", x))) {
                        float y = ((float[][]) result.get(0).getValue())[0][0];
                        // Column 0 of w is -4, -1, 2, 5.
                        if (y != -4 * first - i + 1) wrong.incrementAndGet();
                    } catch (OrtException error) {
                        wrong.incrementAndGet();
                    }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) thread.join();
        say("threads", wrong + " wrong");
        List<OrtSession> many = new ArrayList<>();
        for (int i = 0; i < 40; i++) many.add(open("classify"));
        run("many", many.get(39), floats(new float[4], 1, 4));
        for (OrtSession one : many) one.close();
    }

    private static void checkProviders() throws Exception {
        say("providers", OrtEnvironment.getAvailableProviders());
        for (OrtEpDevice device : env.getEpDevices())
            say("devices", device.getEpName() + " " + device.getDevice().getType());
        say("training", env.isTrainingEnabled());
        say("version.string", env.getVersion());
        attempt("telemetry", () -> env.setTelemetry(false));
    }

    public static void main(String[] args) throws Exception {
        folder = args[0];
        env = OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL, "client");
        checkProviders();
        checkEnds();
        checkRuns();
        checkErrors();
        checkMetadata();
        checkOptions();
        checkTerminate();
        checkThreads();
        say("end", "reached");
    }
}
