// SPDX-License-Identifier: Apache-2.0
//! A program over the crate ort: `rust_client MODELS` prints one line a check. ORT_DYLIB_PATH names
//! the library.
use std::fmt::Debug;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ort::environment::Environment;
use ort::logging::LogLevel;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::session::{IoBinding, OutputSelector, RunOptions, Session, SessionInputValue};
use ort::value::{
    DynValue, DynValueTypeMarker, IntoTensorElementType, Map, PrimitiveTensorElementType, Sequence,
    Tensor, TensorElementType, Value, ValueType,
};

type Outcome<T = ()> = Result<T, ort::Error>;

fn say(name: &str, text: impl ToString) {
    let text = text.to_string().replace('\\', "\\\\").replace('\n', "\\n");
    println!("{name} | {text}");
}

fn say_error<R>(name: &str, error: &ort::Error<R>) {
    say(name, format!("code={:?} {}", error.code(), error.message()));
}

/// Runs a check; prints ok, or the code and message of its error.
fn attempt(name: &str, body: impl FnOnce() -> Outcome) {
    match body() {
        Ok(()) => say(name, "ok"),
        Err(error) => say_error(name, &error),
    }
}

struct Client {
    env: Environment,
    folder: String,
}

impl Client {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}.onnx", self.folder)
    }

    fn builder(&self) -> Outcome<SessionBuilder> {
        Session::builder(&self.env)
    }

    fn open(&self, name: &str) -> Outcome<Session> {
        self.builder()?.commit_from_file(self.path(name))
    }
}

fn show_elements<T: PrimitiveTensorElementType + Debug>(name: &str, value: &DynValue) -> Outcome {
    let (shape, data) = value.try_extract_tensor::<T>()?;
    say(
        name,
        format!(
            "{:?}{:?} {:?}",
            T::into_tensor_element_type(),
            &shape[..],
            data
        ),
    );
    Ok(())
}

fn show_map(name: &str, value: &DynValue, key: TensorElementType) -> Outcome {
    if key == TensorElementType::String {
        let mut pairs = value.try_extract_key_values::<String, f32>()?;
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        say(name, format!("{pairs:?}"));
    } else {
        let mut pairs = value.try_extract_key_values::<i64, f32>()?;
        pairs.sort_by_key(|pair| pair.0);
        say(name, format!("{pairs:?}"));
    }
    Ok(())
}

fn show(name: &str, value: &DynValue) -> Outcome {
    match value.dtype() {
        ValueType::Tensor { ty, .. } => match ty {
            TensorElementType::Float32 => show_elements::<f32>(name, value),
            TensorElementType::Float64 => show_elements::<f64>(name, value),
            TensorElementType::Float16 => show_elements::<half::f16>(name, value),
            TensorElementType::Int64 => show_elements::<i64>(name, value),
            TensorElementType::Int32 => show_elements::<i32>(name, value),
            TensorElementType::Bool => show_elements::<bool>(name, value),
            TensorElementType::String => {
                let (shape, texts) = value.try_extract_strings()?;
                say(name, format!("String{:?} {texts:?}", &shape[..]));
                Ok(())
            }
            other => {
                say(name, format!("{other:?}"));
                Ok(())
            }
        },
        ValueType::Sequence(_) => {
            let items: Vec<Value<DynValueTypeMarker>> = value.try_extract_sequence()?;
            say(name, format!("sequence of {}", items.len()));
            for (i, item) in items.iter().enumerate() {
                show(&format!("{name}.{i}"), item)?;
            }
            Ok(())
        }
        ValueType::Map { key, .. } => show_map(name, value, *key),
        other => {
            say(name, format!("{other:?}"));
            Ok(())
        }
    }
}

fn tensor<T>(dims: &[i64], data: Vec<T>) -> Outcome<Tensor<T>>
where
    T: PrimitiveTensorElementType + IntoTensorElementType + Debug + Clone + 'static,
{
    Tensor::from_array((dims.to_vec(), data))
}

/// Runs with one input, shows every output.
fn run<'v>(name: &str, session: &mut Session, x: impl Into<SessionInputValue<'v>>) {
    let input = session.inputs()[0].name().to_string();
    let body = || {
        let outputs = session.run(vec![(input.as_str(), x.into())])?;
        for (key, value) in outputs {
            show(&format!("{name}.{key}"), &value)?;
        }
        Ok(())
    };
    if let Err(error) = body() {
        say_error(name, &error);
    }
}

fn check_ends(c: &Client) {
    let names = [
        "linear",
        "types",
        "scalar",
        "two_inputs",
        "zipmap_string",
        "zipmap_int64",
        "sequence",
        "sequence_in",
        "weights_given",
    ];
    for name in names {
        attempt(&format!("ends.{name}"), || {
            let session = c.open(name)?;
            for end in session.inputs().iter().chain(session.outputs()) {
                say(
                    &format!("ends.{name}.{}", end.name()),
                    format!("{} {:?}", end.dtype(), end.dtype()),
                );
            }
            for free in session.overridable_initializers() {
                say(
                    &format!("ends.{name}.free"),
                    format!("{} {:?}", free.name(), free.dtype()),
                );
            }
            say(
                &format!("ends.{name}.opset"),
                format!("{:?}", session.opset_for_domain("")),
            );
            Ok(())
        });
    }
}

fn check_runs(c: &Client) -> Outcome {
    let mut linear = c.open("linear")?;
    for rows in [2usize, 1, 5, 0, 3] {
        let x: Vec<f32> = (0..rows * 4).map(|i| (i as f32 - 5.0) / 2.0).collect();
        match tensor(&[rows as i64, 4], x) {
            Ok(x) => run(&format!("run.float.{rows}"), &mut linear, x),
            Err(error) => say_error(&format!("run.float.{rows}"), &error),
        }
    }
    attempt("run.empty", || {
        let x = Tensor::<f32>::new(&Allocator::default(), [0_usize, 4])?;
        run("run.empty", &mut linear, x);
        Ok(())
    });
    run(
        "run.int64",
        &mut c.open("int64")?,
        tensor(&[3], vec![1i64, -2, 1 << 60])?,
    );
    run(
        "run.int32",
        &mut c.open("int32")?,
        tensor(&[3], vec![1i32, -2, 1 << 30])?,
    );
    run(
        "run.float64",
        &mut c.open("float64")?,
        tensor(&[2], vec![0.5f64, -2.0])?,
    );
    run(
        "run.bool",
        &mut c.open("bool")?,
        tensor(&[3], vec![true, false, true])?,
    );
    let halves = vec![half::f16::from_f32(1.0), half::f16::from_f32(-2.0)];
    run(
        "run.float16",
        &mut c.open("float16")?,
        tensor(&[2], halves)?,
    );
    let texts = Tensor::from_string_array(([3usize], vec!["a", "", "gr\u{fc}\u{df}"].as_slice()))?;
    run("run.string", &mut c.open("string")?, texts);
    run(
        "run.scalar",
        &mut c.open("scalar")?,
        tensor(&[], vec![2.5f32])?,
    );
    let rows = vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    run(
        "run.zipmap_string",
        &mut c.open("zipmap_string")?,
        tensor(&[2, 3], rows.clone())?,
    );
    run(
        "run.zipmap_int64",
        &mut c.open("zipmap_int64")?,
        tensor(&[2, 3], rows.clone())?,
    );
    run(
        "run.sequence",
        &mut c.open("sequence")?,
        tensor(&[3, 2], rows.clone())?,
    );
    let items = Sequence::new(vec![
        tensor(&[1, 2], vec![1.0f32, 2.0])?,
        tensor(&[1, 2], vec![3.0f32, 4.0])?,
    ])?;
    run("run.sequence_in", &mut c.open("sequence_in")?, items);
    attempt("run.map", || {
        let map = Map::<i64, f32>::new([(7, 70.0), (3, 30.0)])?;
        show("run.map", &map.into_dyn())
    });
    let mut two = c.open("two_inputs")?;
    attempt("run.two", || {
        let a = tensor(&[1, 2], vec![1.0f32, 2.0])?;
        let b = tensor(&[2, 2], vec![3.0f32, 4.0, 5.0, 6.0])?;
        let outputs = two.run(ort::inputs!["a" => &a, "b" => &b])?;
        let (shape, data) = outputs["c"].try_extract_tensor::<f32>()?;
        say("run.two.c", format!("{:?} {data:?}", &shape[..]));
        drop(outputs);
        let chosen = RunOptions::new()?.with_outputs(OutputSelector::no_default().with("s"));
        let outputs = two.run_with_options(ort::inputs!["a" => &a, "b" => &b], &chosen)?;
        say(
            "run.two.selected",
            format!("{:?}", outputs.keys().collect::<Vec<_>>()),
        );
        Ok(())
    });
    attempt("run.overridden", || {
        let mut session = c.open("weights_given")?;
        let x = tensor(&[2], vec![1.0f32, 2.0])?;
        let outputs =
            session.run(ort::inputs!["x" => x, "scale" => tensor(&[1], vec![10.0f32])?])?;
        say(
            "run.overridden",
            format!("{:?}", outputs["y"].try_extract_tensor::<f32>()?.1),
        );
        Ok(())
    });
    Ok(())
}

fn check_memory(c: &Client) -> Outcome {
    let bytes = std::fs::read(c.path("linear")).expect("a model");
    let x = tensor(&[1, 4], vec![1.0f32, 2.0, 3.0, 4.0])?;
    run("memory", &mut c.builder()?.commit_from_memory(&bytes)?, &x);
    attempt("memory.directly", || {
        let session = c.builder()?.commit_from_memory_directly(&bytes)?;
        say("memory.directly", session.inputs()[0].dtype());
        Ok(())
    });
    attempt("memory.garbage", || {
        c.builder()?
            .commit_from_memory(&bytes[..bytes.len() / 2])
            .map(|_| ())
    });
    attempt("memory.none", || {
        c.builder()?.commit_from_memory(&[]).map(|_| ())
    });
    Ok(())
}

fn check_errors(c: &Client) -> Outcome {
    let names = [
        "nofile",
        "garbage",
        "empty",
        "truncated",
        "badop",
        "baddomain",
        "badopset",
        "badir",
        "badedge",
        "badtype",
        "cycle",
    ];
    for name in names {
        attempt(&format!("error.{name}"), || c.open(name).map(|_| ()));
    }
    let mut linear = c.open("linear")?;
    run(
        "error.dimension",
        &mut linear,
        tensor(&[1, 5], vec![0f32; 5])?,
    );
    run("error.rank", &mut linear, tensor(&[4], vec![0f32; 4])?);
    run("error.type", &mut linear, tensor(&[1, 4], vec![0f64; 4])?);
    attempt("error.input", || {
        let x = tensor(&[1, 4], vec![0f32; 4])?;
        linear.run(ort::inputs!["q" => x]).map(|_| ())
    });
    attempt("error.output", || {
        let x = tensor(&[1, 4], vec![0f32; 4])?;
        let chosen = RunOptions::new()?.with_outputs(OutputSelector::no_default().with("q"));
        let outcome = linear
            .run_with_options(ort::inputs!["x" => x], &chosen)
            .map(|_| ());
        outcome
    });
    run("error.then", &mut linear, tensor(&[1, 4], vec![0f32; 4])?);
    run(
        "error.kernel",
        &mut c.open("gather")?,
        tensor(&[2], vec![0i64, 7])?,
    );
    attempt("error.small", || tensor(&[2, 4], vec![0f32; 7]).map(|_| ()));
    Ok(())
}

fn check_metadata(c: &Client) -> Outcome {
    let session = c.open("linear")?;
    let meta = session.metadata()?;
    say("meta.producer", format!("{:?}", meta.producer()));
    say("meta.name", format!("{:?}", meta.name()));
    say("meta.domain", format!("{:?}", meta.domain()));
    say("meta.description", format!("{:?}", meta.description()));
    say("meta.graph", format!("{:?}", meta.graph_description()));
    say("meta.version", format!("{:?}", meta.version()));
    for key in ["author", "empty", "absent"] {
        say("meta.custom", format!("{key} {:?}", meta.custom(key)));
    }
    let mut keys = meta.custom_keys()?;
    keys.sort();
    say("meta.keys", format!("{keys:?}"));
    Ok(())
}

fn cpu() -> Outcome<MemoryInfo<'static>> {
    MemoryInfo::new(
        AllocationDevice::CPU,
        0,
        AllocatorType::Device,
        MemoryType::Default,
    )
}

fn show_binding(name: &str, session: &mut Session, binding: &IoBinding) {
    attempt(name, || {
        let outputs = session.run_binding(binding)?;
        let (shape, data) = outputs["y"].try_extract_tensor::<f32>()?;
        say(name, format!("{:?} {data:?}", &shape[..]));
        Ok(())
    });
}

fn check_binding(c: &Client) -> Outcome {
    let mut session = c.open("linear")?;
    let mut binding = session.create_binding()?;
    let x = tensor(&[1, 4], vec![1.0f32, 2.0, 3.0, 4.0])?;
    attempt("bind.input", || binding.bind_input("x", &x));
    attempt("bind.unknown", || binding.bind_input("q", &x));
    attempt("bind.device", || {
        binding.bind_output_to_device("y", &cpu()?)
    });
    attempt("bind.sync", || binding.synchronize());
    show_binding("bind.run", &mut session, &binding);
    attempt("bind.output", || {
        binding.bind_output(
            "y",
            Tensor::<f32>::new(&Allocator::default(), [1_usize, 3])?,
        )
    });
    show_binding("bind.given", &mut session, &binding);
    binding.clear();
    Ok(())
}

fn check_options(c: &Client) -> Outcome {
    let x = tensor(&[1, 4], vec![0f32; 4])?;
    for (name, level) in [
        ("disable", GraphOptimizationLevel::Disable),
        ("1", GraphOptimizationLevel::Level1),
        ("2", GraphOptimizationLevel::Level2),
        ("3", GraphOptimizationLevel::Level3),
        ("all", GraphOptimizationLevel::All),
    ] {
        attempt(&format!("options.{name}"), || {
            let mut session = c
                .builder()?
                .with_optimization_level(level)?
                .commit_from_file(c.path("classify"))?;
            run("options.run", &mut session, &x);
            Ok(())
        });
    }
    attempt("options.many", || {
        let mut session = c
            .builder()?
            .with_intra_threads(2)?
            .with_inter_threads(1)?
            .with_parallel_execution(false)?
            .with_memory_pattern(false)?
            .with_deterministic_compute(true)?
            .with_log_id("mine")?
            .with_log_level(LogLevel::Fatal)?
            .with_log_verbosity(0)?
            .with_intra_op_spinning(false)?
            .with_flush_to_zero()?
            .with_dimension_override("N", 1)?
            .with_config_entry("my.key", "my value")?
            .commit_from_file(c.path("linear"))?;
        say("options.x", session.inputs()[0].dtype());
        run("options.many.run", &mut session, &x);
        Ok(())
    });
    attempt("options.key", || {
        c.builder()?
            .with_config_entry("", "x")
            .map(|_| ())
            .map_err(|e| e.into())
    });
    attempt("options.library", || {
        c.builder()?
            .with_operator_library("/no/such.so")
            .map(|_| ())
            .map_err(|e| e.into())
    });
    Ok(())
}

fn turn(name: &str, session: &mut Session, options: &RunOptions, turns: i64) {
    attempt(name, || {
        let count = tensor(&[], vec![turns])?;
        let x = tensor(&[1], vec![0f32])?;
        let outputs =
            session.run_with_options(ort::inputs!["count" => count, "x" => x], options)?;
        say(
            name,
            format!("{:?}", outputs["y"].try_extract_tensor::<f32>()?.1),
        );
        Ok(())
    });
}

fn check_terminate(c: &Client) -> Outcome {
    let mut session = c.open("endless")?;
    let options = Arc::new(RunOptions::new()?.with_tag("mine")?);
    say("terminate.tag", options.tag()?);
    turn("terminate.before", &mut session, &options, 3);
    attempt("terminate.set", || options.terminate());
    turn("terminate.flag", &mut session, &options, 3);
    attempt("terminate.unset", || options.unterminate());
    turn("terminate.after", &mut session, &options, 3);
    let other = Arc::clone(&options);
    let thread = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        other.terminate().expect("terminate");
    });
    turn("terminate.thread", &mut session, &options, i64::MAX);
    thread.join().expect("a thread");
    Ok(())
}

fn check_providers(c: &Client) -> Outcome {
    for device in c.env.devices() {
        say(
            "devices",
            format!(
                "{:?} {:?} {:?}",
                device.ep()?,
                device.hardware_device().ty(),
                device.ep_vendor().is_ok()
            ),
        );
    }
    let memory = cpu()?;
    say(
        "memory.info",
        format!(
            "{:?} {} {:?} {:?} {:?}",
            memory.allocation_device().as_str(),
            memory.device_id(),
            memory.memory_type(),
            memory.allocator_type(),
            memory.is_cpu_accessible()
        ),
    );
    let allocator = Allocator::default();
    say(
        "memory.default",
        format!("{:?}", allocator.memory_info().allocator_type()),
    );
    attempt("memory.alloc", || allocator.alloc::<f32>(16).map(|_| ()));
    let session = c.open("linear")?;
    attempt("memory.session", || {
        Allocator::new(&session, cpu()?).map(|_| ())
    });
    say("version.info", ort::info());
    Ok(())
}

fn check_threads(c: &Client) -> Outcome {
    let wrong: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|t| {
                scope.spawn(move || {
                    let mut session = c.open("linear").expect("a session");
                    (0..50)
                        .filter(|i| {
                            let x = tensor(&[1, 4], vec![t as f32, *i as f32, 0.0, 0.0])
                                .expect("a tensor");
                            let outputs = session.run(ort::inputs![x]).expect("a run");
                            let y = outputs[0].try_extract_tensor::<f32>().expect("floats").1[0];
                            y != -4.0 * t as f32 - *i as f32 + 1.0 // column 0 of w: -4 -1 2 5
                        })
                        .count()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread"))
            .sum()
    });
    say("threads", format!("{wrong} wrong"));
    let mut many = (0..40)
        .map(|_| c.open("classify"))
        .collect::<Outcome<Vec<_>>>()?;
    run("many", &mut many[39], tensor(&[1, 4], vec![0f32; 4])?);
    Ok(())
}

fn main() {
    let folder = std::env::args().nth(1).expect("usage: rust_client MODELS");
    let env = ort::init()
        .with_name("client")
        .with_telemetry(true)
        .build()
        .expect("an environment");
    env.set_log_level(LogLevel::Fatal);
    let c = Client { env, folder };
    check_ends(&c);
    type Check = fn(&Client) -> Outcome;
    let checks: [(&str, Check); 9] = [
        ("runs", check_runs),
        ("memory", check_memory),
        ("errors", check_errors),
        ("meta", check_metadata),
        ("binding", check_binding),
        ("options", check_options),
        ("terminate", check_terminate),
        ("providers", check_providers),
        ("threads", check_threads),
    ];
    for (name, check) in checks {
        if let Err(error) = check(&c) {
            say_error(&format!("stopped.{name}"), &error);
        }
    }
    drop(c);
    say("end", "reached");
}
