// SPDX-License-Identifier: Apache-2.0
// A program over the npm package onnxruntime-node: `node client.cjs MODELS` prints one line a check.
// NODE_PATH names the folder of the package; LD_LIBRARY_PATH that of the library.
"use strict";
const fs = require("fs");
const path = require("path");
const { Worker, isMainThread, workerData, parentPort } = require("worker_threads");
const ort = require("onnxruntime-node");

const folder = isMainThread ? process.argv[2] : workerData;
ort.env.logLevel = "fatal";

function say(name, text) {
  console.log(`${name} | ${String(text).replace(/\\/g, "\\\\").replace(/\n/g, "\\n")}`);
}

function file(name) {
  return path.join(folder, `${name}.onnx`);
}

function show(value) {
  const data = Array.from(value.data, (item) => (typeof item === "string" ? `"${item}"` : item));
  return `${value.type}[${value.dims}] ${data.join(" ")}`.trimEnd();
}

// Awaits `body`; prints the error where there is one, otherwise what it gives.
async function attempt(name, body) {
  try {
    const given = await body();
    say(name, given === undefined ? "ok" : given);
  } catch (error) {
    say(name, `error ${error.message}`);
  }
}

function open(name, options) {
  return ort.InferenceSession.create(file(name), options);
}

function floats(values, dims) {
  return new ort.Tensor("float32", Float32Array.from(values), dims);
}

async function checkEnds() {
  const names = ["linear", "types", "scalar", "two_inputs", "sequence", "zipmap_string"];
  for (const name of [...names, "weights_given"]) {
    await attempt(`ends.${name}`, async () => {
      const session = await open(name);
      const kinds = [...session.inputMetadata, ...session.outputMetadata];
      for (const kind of kinds) {
        const type = kind.isTensor ? `${kind.type}[${kind.shape}]` : "no tensor";
        say(`ends.${name}.${kind.name}`, type);
      }
      const ends = `${session.inputNames} -> ${session.outputNames}`;
      await session.release();
      return ends;
    });
  }
}

const TYPED = {
  int64: ["int64", BigInt64Array.from([1n, -2n, 1n << 62n])],
  int32: ["int32", Int32Array.from([1, -2, 1 << 30])],
  float64: ["float64", Float64Array.from([0.5, -2, 1e300])],
  bool: ["bool", Uint8Array.from([1, 0, 1])],
  string: ["string", ["a", "", "gr\u00fc\u00df dich"]],
  float16: ["float16", Uint16Array.from([0x3c00, 0xc000, 0x3555])],
};

async function checkRuns() {
  const linear = await open("linear");
  for (const rows of [2, 1, 5, 0, 3]) {
    const x = Array.from({ length: rows * 4 }, (_, i) => (i - 5) / 2);
    await attempt(`run.float.${rows}`, async () =>
      show((await linear.run({ x: floats(x, [rows, 4]) })).y));
  }
  for (const [name, [type, data]] of Object.entries(TYPED)) {
    const session = await open(name);
    for (const some of [data, data.slice(0, 0)]) {
      const x = new ort.Tensor(type, some, [some.length]);
      await attempt(`run.${name}.${some.length}`, async () => show((await session.run({ x })).y));
    }
  }
  await attempt("run.scalar", async () =>
    show((await (await open("scalar")).run({ x: floats([2.5], []) })).y));
  await attempt("run.memory", async () => {
    const bytes = fs.readFileSync(file("linear"));
    const session = await ort.InferenceSession.create(bytes);
    return show((await session.run({ x: floats([1, 2, 3, 4], [1, 4]) })).y);
  });
  await attempt("run.array_buffer", async () => {
    const bytes = Uint8Array.from(fs.readFileSync(file("linear")));
    const session = await ort.InferenceSession.create(bytes.buffer, 0, bytes.length);
    return show((await session.run({ x: floats([1, 2, 3, 4], [1, 4]) })).y);
  });
  const two = await open("two_inputs");
  const feeds = { a: floats([1, 2], [1, 2]), b: floats([3, 4, 5, 6], [2, 2]) };
  await attempt("run.two", async () => {
    const all = await two.run(feeds);
    return `${Object.keys(all)} ${show(all.c)} ${show(all.s)}`;
  });
  await attempt("run.fetches", async () => {
    const some = await two.run(feeds, ["s"]);
    return `${Object.keys(some)} ${show(some.s)}`;
  });
  await attempt("run.given", async () => {
    const c = floats(new Array(6).fill(0), [3, 2]);
    await two.run(feeds, { c });
    return show(c);
  });
  await attempt("run.overridden", async () => {
    const session = await open("weights_given");
    return show((await session.run({ x: floats([1, 2], [2]) })).y);
  });
}

async function checkErrors() {
  const names = ["nofile", "garbage", "empty", "truncated", "badop", "baddomain", "badopset"];
  for (const name of [...names, "badir", "badedge", "badtype", "cycle"])
    await attempt(`error.${name}`, async () => void (await open(name)));
  await attempt("error.memory", async () =>
    void (await ort.InferenceSession.create(Uint8Array.from([1, 2, 3]))));
  const linear = await open("linear");
  const good = floats([1, 2, 3, 4], [1, 4]);
  await attempt("error.missing", () => linear.run({}));
  await attempt("error.input", () => linear.run({ q: good }));
  await attempt("error.output", () => linear.run({ x: good }, ["q"]));
  await attempt("error.dimension", () => linear.run({ x: floats([1, 2, 3, 4, 5], [1, 5]) }));
  await attempt("error.rank", () => linear.run({ x: floats([1, 2, 3, 4], [4]) }));
  await attempt("error.type", () =>
    linear.run({ x: new ort.Tensor("float64", Float64Array.from([1, 2, 3, 4]), [1, 4]) }));
  await attempt("error.then", async () => show((await linear.run({ x: good })).y));
  const gather = await open("gather");
  await attempt("error.kernel", () =>
    gather.run({ i: new ort.Tensor("int64", BigInt64Array.from([0n, 7n]), [2]) }));
  // Values that are no tensors are beyond this package.
  await attempt("error.map", async () =>
    void (await (await open("zipmap_string")).run({ x: floats([1, 2, 3], [1, 3]) })));
}

async function checkOptions() {
  const feeds = { x: floats([0, 0, 0, 0], [1, 4]) };
  for (const level of ["disabled", "basic", "extended", "all"])
    await attempt(`options.${level}`, async () => {
      const session = await open("classify", { graphOptimizationLevel: level });
      return show((await session.run(feeds)).y);
    });
  await attempt("options.many", async () => {
    const session = await open("linear", {
      intraOpNumThreads: 2, interOpNumThreads: 1, enableCpuMemArena: false,
      enableMemPattern: false, executionMode: "sequential", logId: "mine", logSeverityLevel: 4,
      executionProviders: ["cpu"], extra: { session: { set_denormal_as_zero: "1" } },
      freeDimensionOverrides: { N: 1 },
    });
    return `${session.inputMetadata[0].shape} ${show((await session.run(feeds)).y)}`;
  });
  await attempt("options.level", () => open("linear", { graphOptimizationLevel: "some" }));
  await attempt("options.threads", () => open("linear", { intraOpNumThreads: -1 }));
  await attempt("options.mode", () => open("linear", { executionMode: "no" }));
  await attempt("options.provider", () => open("linear", { executionProviders: ["no"] }));
  const linear = await open("linear");
  await attempt("run_options", async () =>
    show((await linear.run(feeds, { tag: "mine", logSeverityLevel: 4, logVerbosityLevel: 0 })).y));
  await attempt("run_options.terminate", async () =>
    Object.keys(await linear.run(feeds, { terminate: true })));
}

async function checkMany() {
  const sessions = await Promise.all(Array.from({ length: 40 }, () => open("linear")));
  const x = floats([1, 2, 3, 4], [1, 4]);
  const results = await Promise.all(sessions.map((session) => session.run({ x })));
  say("many", new Set(results.map((result) => show(result.y))).size);
  const same = await Promise.all(Array.from({ length: 40 }, () => sessions[0].run({ x })));
  say("many.same", new Set(same.map((result) => show(result.y))).size);
  for (const session of sessions) await session.release();
  await attempt("released", () => sessions[0].run({ x }));
}

function startWorker() {
  return new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: folder });
    worker.on("message", resolve);
    worker.on("error", reject);
  });
}

async function work() {
  const session = await open("linear");
  let text = "";
  for (let i = 0; i < 20; i++) text = show((await session.run({ x: floats([1, 2, 3, 4], [1, 4]) })).y);
  parentPort.postMessage(text);
}

async function main() {
  say("backends", ort.listSupportedBackends().map((one) => one.name).join(" "));
  await checkEnds();
  await checkRuns();
  await checkErrors();
  await checkOptions();
  await checkMany();
  say("threads", new Set(await Promise.all([startWorker(), startWorker(), startWorker()])).size);
  say("end", "reached");
}

if (isMainThread) main();
else work();
