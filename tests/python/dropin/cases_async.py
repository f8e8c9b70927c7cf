# SPDX-License-Identifier: Apache-2.0
"""Cases: asynchronous runs, threads, processes, profiling, adapters, compiling."""
import json
import os
import re
import threading

import numpy as np
import onnx
from dropin_kit import T, add_one, case, cases, fails, h, matmul, model, value

X = np.array([[1.0, 2.0]], np.float32)


def wait_for(session, names, feed, *more):
    done, got = threading.Event(), []

    def callback(results, data, error):
        got.append((results, data, error))
        done.set()
    session.run_async(names, feed, callback, "mine", *more)
    assert done.wait(20)
    return got


@case
def async_run(kit):
    return wait_for(kit.session(add_one()), ["y"], {"x": X})


@case
def async_run_all(kit):
    return wait_for(kit.session(add_one()), None, {"x": X})


@case
def async_one_thread(kit):
    options = kit.ort.SessionOptions()
    options.intra_op_num_threads = 1
    return fails(wait_for, kit.session(add_one(), options), None, {"x": X})


@case
def async_two_threads(kit):
    options = kit.ort.SessionOptions()
    options.intra_op_num_threads = 2
    return fails(wait_for, kit.session(add_one(), options), None, {"x": X})


@case
def async_missing_input(kit):
    return fails(wait_for, kit.session(matmul()), None, {"x": X})


@case
def async_fault(kit):
    options = kit.ort.SessionOptions()
    options.intra_op_num_threads = 2
    got = fails(wait_for, kit.session(add_one(), options), None, {"x": np.ones((1, 3), "f")})
    return got


@case
def async_terminated(kit):
    options = kit.ort.RunOptions()
    options.terminate = True
    return fails(wait_for, kit.session(add_one()), None, {"x": X}, options)


@case
def threads_share_a_session(kit):
    session = kit.session(add_one())
    results = {}

    def work(index):
        x = np.full((index + 1, 2), index, np.float32)
        results[index] = all((session.run(["z"], {"x": x})[0] == (index + 1) * 2).all()
                             for _ in range(50))
    workers = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [results[index] for index in range(8)]


@case
def threads_make_sessions(kit):
    results = []

    def work():
        results.append(kit.session(add_one()).run(["y"], {"x": X})[0].tolist())
    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


def profile(kit, **settings):
    options = kit.ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(kit.dir / "prof")
    session = kit.session(add_one(), options)
    session.run(None, {"x": X})
    return session, session.end_profiling()


@case
def profiling_name(kit):
    _, path = profile(kit)
    name = os.path.basename(path)
    return bool(re.fullmatch(r"prof_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(_\d+)?\.json", name)), \
        os.path.isfile(path)


@case
def profiling_events(kit):
    _, path = profile(kit)
    events = json.load(open(path, encoding="utf-8"))
    kinds = sorted({event["cat"] for event in events})
    return type(events).__name__, kinds, sorted({key for event in events for key in event}), \
        sorted({event["ph"] for event in events})


@case
def profiling_nodes(kit):
    _, path = profile(kit)
    nodes = [event for event in json.load(open(path, encoding="utf-8")) if event["cat"] == "Node"]
    kernels = [event for event in nodes if event["name"].endswith("_kernel_time")]
    return sorted(event["args"]["op_name"] for event in kernels), \
        sorted({event["args"]["provider"] for event in kernels})


@case
def profiling_session_events(kit):
    _, path = profile(kit)
    names = {event["name"] for event in json.load(open(path, encoding="utf-8"))
             if event["cat"] == "Session"}
    return [name in names for name in ("model_loading_array", "session_initialization", "model_run")]


@case
def profiling_twice(kit):
    session, path = profile(kit)
    return session.end_profiling() == path


@case
def profiling_off(kit):
    return kit.session(add_one()).end_profiling()


@case
def profiling_start(kit):
    import time
    before = time.monotonic_ns()
    options = kit.ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(kit.dir / "p")
    session = kit.session(add_one(), options)
    start = session.get_profiling_start_time_ns()
    session.end_profiling()
    return before <= start <= time.monotonic_ns()


@case
def fork_and_run(kit):
    session = kit.session(add_one())
    session.run(None, {"x": X})
    child = os.fork()
    if child == 0:
        try:
            fresh = kit.session(add_one()).run(["y"], {"x": X})[0]
            os._exit(0 if (fresh == X + 1).all() else 1)
        except BaseException:
            os._exit(2)
    return os.waitpid(child, 0)[1], session.run(["y"], {"x": X})


@case
def spawned_process(kit):
    import subprocess
    import sys
    path = kit.write("m.onnx", add_one())
    code = "import onnxruntime as o, numpy as n, sys; s = o.InferenceSession(sys.argv[1]); " \
           "print(s.run(['z'], {'x': n.ones((1, 2), 'f')})[0].tolist())"
    return subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True,
                          check=True).stdout


@case
def interpreter_ends_with_sessions_open(kit):
    import subprocess
    import sys
    path = kit.write("m.onnx", add_one())
    code = "import onnxruntime as o, sys; s = o.InferenceSession(sys.argv[1]); b = s.io_binding(); " \
           "v = o.OrtValue.ortvalue_from_shape_and_type([2], 'f4' and __import__('numpy').float32)"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    return done.returncode, done.stderr


@case
def sessions_made_and_dropped(kit):
    data = add_one()
    return [kit.session(data).run(["y"], {"x": X})[0].tolist() for _ in range(30)][-1]


@case
def session_dropped_while_result_lives(kit):
    result = kit.session(add_one()).run(["y"], {"x": X})[0]
    import gc
    gc.collect()
    return result


@case
def adapter_format(kit):
    adapter = kit.ort.AdapterFormat()
    adapter.set_adapter_version(2)
    adapter.set_model_version(3)
    adapter.set_parameters({"a": kit.ort.OrtValue.ortvalue_from_numpy(np.ones(2, np.float32))})
    path = str(kit.dir / "a.onnx_adapter")
    adapter.export_adapter(path)
    back = kit.ort.AdapterFormat.read_adapter(path)
    return back.get_adapter_version(), back.get_model_version(), back.get_format_version(), \
        {key: item.numpy() for key, item in back.get_parameters().items()}


@case
def adapter_missing(kit):
    adapter = kit.ort.LoraAdapter()
    return fails(adapter.Load, str(kit.dir / "none")).split(" : ")[:3]


@case
def adapter_runs(kit):
    data = model([h.make_node("Add", ["x", "b"], ["y"])],
                 [value("x", T.FLOAT, [2]), value("b", T.FLOAT, [2])], [value("y", T.FLOAT, [2])],
                 [h.make_tensor("b", T.FLOAT, [2], [0.0, 0.0])])
    form = kit.ort.AdapterFormat()
    form.set_parameters({"b": kit.ort.OrtValue.ortvalue_from_numpy(np.array([5, 6], np.float32))})
    path = str(kit.dir / "b.onnx_adapter")
    form.export_adapter(path)
    adapter = kit.ort.LoraAdapter()
    adapter.Load(path)
    options = kit.ort.RunOptions()
    options.add_active_adapter(adapter)
    return kit.session(data).run(None, {"x": np.ones(2, "f")}, options)


@case
def compile_to_file(kit):
    path = str(kit.dir / "c.onnx")
    kit.ort.ModelCompiler(kit.ort.SessionOptions(), add_one()).compile_to_file(path)
    return onnx.load(path).graph.output[0].name, kit.session(path).run(None, {"x": X})


@case
def compile_to_bytes(kit):
    data = kit.ort.ModelCompiler(kit.ort.SessionOptions(), add_one()).compile_to_bytes()
    return type(data).__name__, kit.session(data).run(None, {"x": X})


@cases({"empty": b"", "empty_path": "", "number": 3, "missing": "/nope.onnx"})
def compile_wrong(kit, given):
    return fails(lambda: kit.ort.ModelCompiler(kit.ort.SessionOptions(), given).compile_to_bytes())
