# SPDX-License-Identifier: Apache-2.0
"""One peer, one model, one number of threads, in a process of its own.

    peer_worker.py PEER MODEL_DIR THREADS

Speaks the lines of bench/worker.h. PEER is ort, ort-exact (integer products without saturation),
openvino, ncnn, mnn, opencv or tract. MODEL_DIR holds model.onnx (ncnn: model.param and model.bin; mnn:
model.mnn), input_i.npy, output_i.npy and the names of inputs and outputs in case.json; all of it is
made by bench/peers. `peer_worker.py PEER` prints the peer's version, or fails when it is not installed.
"""
import importlib
import json
import os
import sys
import time
from pathlib import Path

MODULES = {"ort": "onnxruntime", "ort-exact": "onnxruntime", "openvino": "openvino", "ncnn": "ncnn",
           "mnn": "MNN", "opencv": "cv2", "tract": "tract"}


def version(peer):
    module = importlib.import_module(MODULES[peer])
    known = getattr(module, "__version__", None)
    if known:
        return str(known)
    from importlib.metadata import version as installed
    return installed(MODULES[peer])


def arrays(folder, kind):
    import numpy
    found = []
    while (folder / f"{kind}_{len(found)}.npy").is_file():
        found.append(numpy.load(folder / f"{kind}_{len(found)}.npy"))
    return found


def start_ort(folder, threads, feeds, exact):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options,
                                           providers=["CPUExecutionProvider"])
    named = dict(zip([value.name for value in session.get_inputs()], feeds))
    return lambda: session.run(None, named)


def start_openvino(folder, threads, feeds):
    import openvino
    core = openvino.Core()
    model = core.read_model(str(folder / "model.onnx"))
    names = [port.get_any_name() for port in model.inputs]
    model.reshape({name: list(x.shape) for name, x in zip(names, feeds)})
    compiled = core.compile_model(model, "CPU", {
        "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads, "ENABLE_CPU_PINNING": False})
    request = compiled.create_infer_request()
    for name, x in zip(names, feeds):
        request.set_tensor(name, openvino.Tensor(x))

    def run():
        request.infer()
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]
    return run


def start_ncnn(folder, threads, feeds):
    import ncnn
    import numpy
    if any(x.ndim and x.shape[0] != 1 for x in feeds):
        raise RuntimeError("it has no batch")
    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_storage = False
    if net.load_param(str(folder / "model.param")) or net.load_model(str(folder / "model.bin")):
        raise RuntimeError("ncnn cannot load the converted model")

    def in_order(names):  # pnnx calls them in0, in1, ... and out0, out1, ...
        return sorted(names, key=lambda name: int(name.lstrip("inout")))
    arrays = [x.astype("float32" if x.dtype.kind == "f" else "int32") for x in feeds]
    mats = [ncnn.Mat(numpy.ascontiguousarray(x[0] if x.ndim else x)).clone() for x in arrays]
    inputs = list(zip(in_order(net.input_names()), mats))
    outputs = in_order(net.output_names())

    def run():
        extractor = net.create_extractor()
        extractor.set_light_mode(True)
        for name, mat in inputs:
            extractor.input(name, mat)
        found = [extractor.extract(name) for name in outputs]
        if any(failed for failed, _ in found):
            raise RuntimeError("ncnn cannot run the converted model")
        return [numpy.array(mat)[None] for _, mat in found]
    return run


def start_mnn(folder, threads, feeds):
    import MNN
    import numpy
    names = json.loads((folder / "case.json").read_text())
    interpreter = MNN.Interpreter(str(folder / "model.mnn"))
    session = interpreter.createSession({"backend": "CPU", "numThread": threads,
                                         "precision": "high"})
    found = interpreter.getSessionInputAll(session)
    feeds = [x if x.dtype.kind == "f" else x.astype(numpy.int32) for x in feeds]  # it has no i64
    inputs = [(found[name], x) for name, x in zip(names["inputs"], feeds) if name in found]
    for tensor, x in inputs:
        interpreter.resizeTensor(tensor, tuple(x.shape))
    interpreter.resizeSession(session)
    for tensor, x in inputs:
        tensor.copyFrom(MNN.Tensor(tuple(x.shape), tensor.getDataType(), x,
                                   MNN.Tensor_DimensionType_Caffe))

    def run():
        interpreter.runSession(session)
        results = interpreter.getSessionOutputAll(session)
        return [to_host(results[name]) for name in names["outputs"] if name in results]

    def to_host(tensor):
        host = MNN.Tensor(tensor.getShape(), tensor.getDataType(), numpy.empty(
            tensor.getShape(), "f4" if tensor.getDataType() == MNN.Halide_Type_Float else "i4"),
                          MNN.Tensor_DimensionType_Caffe)
        tensor.copyToHostTensor(host)
        return numpy.array(host.getNumpyData())  # getData would make a tuple
    return run


def start_opencv(folder, threads, feeds):
    import cv2
    cv2.setNumThreads(threads)
    net = cv2.dnn.readNetFromONNX(str(folder / "model.onnx"))
    names = net.getUnconnectedOutLayersNames()
    inputs = list(zip(json.loads((folder / "case.json").read_text())["inputs"], feeds))

    def run():
        for name, x in inputs:
            net.setInput(x, name)
        return list(net.forward(names))
    return run


def start_tract(folder, threads, feeds):
    import tract
    if threads != 1:
        raise RuntimeError("its Python interface runs on one thread")
    model = tract.onnx().load(str(folder / "model.onnx"))
    for i, x in enumerate(feeds):
        kind = {"f": "f", "i": "i", "u": "u"}.get(x.dtype.kind)
        name = "bool" if kind is None else f"{kind}{x.dtype.itemsize * 8}"
        model.set_input_fact(i, ",".join([*map(str, x.shape), name]))
    runnable = model.into_model().into_runnable()
    inputs = [tract.Tensor.from_numpy(x) for x in feeds]
    return lambda: [value.to_numpy() for value in runnable.run(inputs)]


def start(peer, folder, threads):
    feeds = arrays(folder, "input")
    if peer in ("ort", "ort-exact"):
        return start_ort(folder, threads, feeds, peer == "ort-exact")
    return {"openvino": start_openvino, "ncnn": start_ncnn, "mnn": start_mnn,
            "opencv": start_opencv, "tract": start_tract}[peer](folder, threads, feeds)


def largest_error(found, expected):
    """Largest difference over the largest number, of the f32 and f16 outputs of equal size; -1:
    none."""
    import numpy
    worst = -1.0
    for ours, theirs in zip(found, expected):
        ours = numpy.asarray(ours)
        if theirs.dtype == numpy.float16:
            ours, theirs = ours.astype(numpy.float32), theirs.astype(numpy.float32)
        if theirs.dtype != numpy.float32 or ours.size != theirs.size or not theirs.size:
            continue
        peak = float(numpy.abs(theirs).max())
        difference = float(numpy.abs(ours.reshape(-1) - theirs.reshape(-1)).max())
        worst = max(worst, difference / peak if peak else 0.0)
    return worst


def answer(run, out):
    """A budget in ms a line; the times in us. Short calls are timed in groups, as worker.h does."""
    for line in sys.stdin:
        budget = float(line) / 1e3
        at = time.perf_counter()
        run()
        group = 50 if time.perf_counter() - at < 2e-5 else 1
        times, begin = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - begin < budget:
            at = time.perf_counter()
            for _ in range(group):
                run()
            times.append(round((time.perf_counter() - at) / group * 1e6, 4))
        print(json.dumps(times), file=out, flush=True)


def main():
    if len(sys.argv) == 2:
        print(version(sys.argv[1]))
        return
    peer, folder, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    os.environ["OMP_NUM_THREADS"] = str(threads)
    out = os.fdopen(os.dup(1), "w")  # engines print on stdout
    os.dup2(2, 1)
    name = version(peer)
    begin = time.perf_counter()
    try:
        run = start(peer, folder, threads)
        loaded = time.perf_counter()
        found = run()
    except Exception as fault:  # engines raise what they like; one line of it goes to the report
        sys.exit(f"{type(fault).__name__}: {' '.join(str(fault).split())}")
    first = time.perf_counter()
    print("first", file=out, flush=True)
    status = Path("/proc/self/status").read_text()  # getrusage begins at the size of the parent
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
    print(json.dumps({"version": name, "load_ms": round((loaded - begin) * 1e3, 3),
                      "first_ms": round((first - loaded) * 1e3, 3), "peak_mb": round(peak, 1),
                      "error": largest_error(found, arrays(folder, "output"))}),
          file=out, flush=True)
    answer(run, out)


if __name__ == "__main__":
    main()
