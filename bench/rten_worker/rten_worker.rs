// SPDX-License-Identifier: Apache-2.0
//! The worker of bench/peers for rten; bench/worker.h says which lines it speaks. Reads
//! MODEL_DIR/input_i.npy and output_i.npy, which bench/peers makes; integers and truth values
//! become i32, which is all that rten has of them. Weights are packed at load.
//! `rten_worker` without arguments prints the version.

use std::error::Error;
use std::fs;
use std::io::{stdin, stdout, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rten::{Model, ModelOptions, NodeId, Value, ValueOrView};
use rten_tensor::AsView;

const VERSION: &str = "0.27.0"; // the one in Cargo.toml
const GROUP_BELOW: Duration = Duration::from_micros(20);

type Fallible<T> = Result<T, Box<dyn Error>>;

/// An array as numpy.save writes it: type, shape, bytes.
struct Npy {
    kind: String,
    dims: Vec<usize>,
    bytes: Vec<u8>,
}

/// What stands between `open` and `close` after `key` in the header.
fn field<'a>(header: &'a str, key: &str, open: char, close: char) -> Fallible<&'a str> {
    let rest = header.split(key).nth(1).ok_or("no header of an array")?;
    let rest = rest.split(open).nth(1).ok_or("no header of an array")?;
    Ok(rest.split(close).next().unwrap_or(""))
}

fn read_npy(path: &Path) -> Fallible<Npy> {
    let file = fs::read(path)?;
    let start = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    let header = std::str::from_utf8(&file[10..start])?;
    let dims = field(header, "'shape':", '(', ')')?;
    Ok(Npy {
        kind: field(header, "'descr':", '\'', '\'')?.to_string(),
        dims: dims
            .split(',')
            .filter_map(|dim| dim.trim().parse().ok())
            .collect(),
        bytes: file[start..].to_vec(),
    })
}

fn numbers<const SIZE: usize, T>(bytes: &[u8], read: fn([u8; SIZE]) -> T) -> Vec<T> {
    let item = |chunk: &[u8]| read(chunk.try_into().expect("chunks of SIZE bytes"));
    bytes.chunks_exact(SIZE).map(item).collect()
}

fn to_value(array: Npy) -> Fallible<Value> {
    let (dims, bytes) = (array.dims, &array.bytes[..]);
    let ints = match array.kind.as_str() {
        "<f4" => return Ok(Value::from_shape(dims, numbers(bytes, f32::from_le_bytes))?),
        "|i1" => return Ok(Value::from_shape(dims, numbers(bytes, i8::from_le_bytes))?),
        "|u1" => return Ok(Value::from_shape(dims, array.bytes)?),
        "<i4" => numbers(bytes, i32::from_le_bytes),
        "<i8" => numbers(bytes, |word| i64::from_le_bytes(word) as i32),
        "|b1" => bytes.iter().map(|&byte| i32::from(byte)).collect(),
        other => return Err(format!("inputs of type {other} are not read").into()),
    };
    Ok(Value::from_shape(dims, ints)?)
}

struct Job {
    model: Model,
    inputs: Vec<(NodeId, Value)>,
    outputs: Vec<NodeId>,
}

impl Job {
    fn run(&self) -> Fallible<Vec<Value>> {
        let feeds = self.inputs.iter();
        let feeds = feeds
            .map(|(id, value)| (*id, ValueOrView::from(value.as_view())))
            .collect();
        Ok(self.model.run(feeds, &self.outputs, None)?)
    }
}

fn start(folder: &Path, threads: &str) -> Fallible<(Job, Duration)> {
    std::env::set_var("RTEN_NUM_THREADS", threads); // read when its pool is made
    let begin = Instant::now();
    let mut loader = ModelOptions::with_all_ops();
    let model = loader
        .prepack_weights(true)
        .load_file(folder.join("model.onnx"))?;
    let loaded = begin.elapsed();
    let mut inputs = Vec::new();
    for (i, &id) in model.input_ids().iter().enumerate() {
        let path = folder.join(format!("input_{i}.npy"));
        if path.exists() {
            inputs.push((id, to_value(read_npy(&path)?)?));
        }
    }
    let outputs = model.output_ids().to_vec();
    Ok((
        Job {
            model,
            inputs,
            outputs,
        },
        loaded,
    ))
}

/// Largest difference over the largest number, of the f32 outputs of equal size; -1: none.
fn largest_error(found: Vec<Value>, folder: &Path) -> Fallible<f64> {
    let mut worst = -1.0;
    for (i, value) in found.into_iter().enumerate() {
        let path = folder.join(format!("output_{i}.npy"));
        let Some(ours) = value.into_tensor::<f32>() else {
            continue;
        };
        if !path.exists() {
            continue;
        }
        let array = read_npy(&path)?;
        let theirs = numbers(&array.bytes, f32::from_le_bytes);
        let ours = ours.to_vec();
        if array.kind != "<f4" || ours.len() != theirs.len() || theirs.is_empty() {
            continue;
        }
        let peak = theirs
            .iter()
            .fold(0.0, |most: f64, x| most.max(f64::from(x.abs())));
        let pairs = ours.iter().zip(&theirs);
        let most = pairs.fold(0.0, |most: f64, (x, y)| {
            most.max((f64::from(*x) - f64::from(*y)).abs())
        });
        worst = f64::max(worst, if peak > 0.0 { most / peak } else { 0.0 });
    }
    Ok(worst)
}

/// From /proc, as the other workers.
fn peak_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kb = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}

fn answer(job: &Job) -> Fallible<()> {
    for line in stdin().lock().lines() {
        let budget = Duration::from_secs_f64(line?.trim().parse::<f64>()? / 1e3);
        let begin = Instant::now();
        job.run()?;
        let group = if begin.elapsed() < GROUP_BELOW { 50 } else { 1 };
        let (begin, mut times) = (Instant::now(), Vec::new());
        while times.len() < 3 || begin.elapsed() < budget {
            let at = Instant::now();
            for _ in 0..group {
                job.run()?;
            }
            times.push(format!(
                "{:.4}",
                at.elapsed().as_secs_f64() * 1e6 / f64::from(group)
            ));
        }
        println!("[{}]", times.join(","));
        stdout().flush()?;
    }
    Ok(())
}

fn main() -> Fallible<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, threads] = &words[..] else {
        println!("{VERSION}");
        return Ok(());
    };
    let folder = PathBuf::from(folder);
    let (job, loaded) = start(&folder, threads)?;
    let begin = Instant::now();
    let found = job.run()?;
    let first = begin.elapsed();
    println!("first");
    stdout().flush()?;
    let peak = peak_mb();
    println!(
        "{{\"version\": \"{VERSION}\", \"load_ms\": {:.3}, \"first_ms\": {:.3}, \
         \"peak_mb\": {peak:.1}, \"error\": {:e}}}",
        loaded.as_secs_f64() * 1e3,
        first.as_secs_f64() * 1e3,
        largest_error(found, &folder)?
    );
    stdout().flush()?;
    answer(&job)
}
