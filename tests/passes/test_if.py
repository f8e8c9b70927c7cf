# SPDX-License-Identifier: Apache-2.0
"""An If whose condition is known is the branch that it takes, whatever that holds; results are those of
onnxruntime without optimisation."""
import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from case_folder import write_case  # noqa: E402

N = helper.make_node
RNG = np.random.default_rng(5)


def info(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def branch(nodes, *results, held=()):
    """held: constants of the branch's own, by name."""
    return helper.make_graph(list(nodes), "branch", [], [r if isinstance(r, onnx.ValueInfoProto) else info(r)
                                                         for r in results],
                             [numpy_helper.from_array(np.asarray(a, np.float32), n) for n, a in dict(held).items()])


def choose(condition, outputs, taken, other, when=True):
    return N("If", [condition], outputs, **{"then_branch" if when else "else_branch": taken,
                                            "else_branch" if when else "then_branch": other})


def plain(prefix):
    return branch([N("Sqrt", ["two"], [prefix + "a"]), N("Mul", ["X", prefix + "a"], [prefix + "b"])], prefix + "b")


def cases():
    """Nodes, outputs, how many of If are left."""
    for when in (True, False):
        name = "yes" if when else "no"
        own = branch([N("Add", ["X", "w"], ["a"]), N("Relu", ["a"], ["r"])], "r", held={"w": [0.5]})
        yield f"captures and constants, {name}", [choose(name, ["Y"], own, plain("p"), when)], ["Y"], 0
    many = branch([N("Tanh", ["X"], ["t"]), N("Neg", ["t"], ["n"]), N("Identity", ["n"], ["m"])], "n", "t", "m")
    three = branch([N("Identity", ["X"], [f"i{k}"]) for k in range(3)], "i0", "i1", "i2")
    yield "outputs alike and unread", [choose("yes", ["Y", "rest", "Z"], many, three)], ["Y", "Z"], 0
    held = branch([], "c", held={"c": [[1, 2], [3, 4]]})
    other = branch([N("Neg", ["two"], ["d"])], "d")
    yield "a constant is the result", [choose("yes", ["Y"], held, other)], ["Y"], 0
    yield "a constant is read on", [choose("yes", ["c0"], held, other), N("Add", ["c0", "two"], ["Y"])], ["Y"], 0
    alias = branch([N("Identity", ["X"], ["x"])], "x")
    yield "what it captures is the result", [choose("yes", ["x0"], alias, plain("p")),
                                             N("Exp", ["x0"], ["Y"])], ["Y"], 0
    inner = choose("no", ["m"], branch([N("Neg", ["k"], ["g"])], "g"), branch([N("Abs", ["k"], ["g"])], "g"))
    nest = branch([N("Mul", ["X", "two"], ["k"]), inner, N("Add", ["m", "k"], ["s"])], "s")
    yield "one within one", [choose("yes", ["Y"], nest, plain("p"))], ["Y"], 0
    late = N("If", ["C"], ["m"], then_branch=branch([N("Add", ["k", "X"], ["g"])], "g"),
             else_branch=branch([N("Mul", ["k", "own"], ["g"])], "g"))
    nest = branch([N("Mul", ["X", "two"], ["k"]), late, N("Add", ["m", "k"], ["s"])], "s", held={"own": [3.0]})
    yield "one that only a run decides within one", [choose("yes", ["Y"], nest, plain("p"))], ["Y"], 1
    middle = branch([N("Abs", ["k"], ["g0"]), late, N("Neg", ["m"], ["g1"])], "g1", held={"own": [3.0]})
    outer = branch([N("Mul", ["X", "two"], ["k"]), choose("yes", ["o"], middle, branch([N("Exp", ["k"], ["q"])], "q")),
                    N("Add", ["o", "k"], ["s"])], "s")
    yield "three deep, the last for a run to decide", [choose("yes", ["Y"], outer, plain("p"))], ["Y"], 1
    body = helper.make_graph(
        [N("Identity", ["go"], ["on"]), choose("yes", ["t"], branch([N("Add", ["s", "X"], ["g"])], "g"), plain("p"))],
        "body", [info("trip", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("s")],
        [info("on", TensorProto.BOOL, []), info("t")])
    yield "in a loop", [N("Loop", ["count", "", "X"], ["Y"], body=body)], ["Y"], 0
    listed = branch([N("SequenceConstruct", ["X", "two"], ["q"])],
                    helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, None))
    single = branch([N("SequenceConstruct", ["X"], ["q"])],
                    helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, None))
    yield "a sequence", [choose("yes", ["s"], listed, single), N("SequenceAt", ["s", "one"], ["Y"])], ["Y"], 0
    rank = [N("Shape", ["X"], ["dims"]), N("Size", ["dims"], ["rank"]), N("Equal", ["rank", "count"], ["is_three"])]
    yield "what Python asks of a rank", [*rank, choose("is_three", ["Y"], plain("p"), own)], ["Y"], 0
    yield "a condition that is fed", [choose("C", ["Y"], plain("p"), own)], ["Y"], 1


CASES = {name: rest for name, *rest in cases()}


@pytest.mark.parametrize("name", sorted(CASES))
def test_if(sardonyx, tmp_path, name):
    ort = pytest.importorskip("onnxruntime")
    nodes, outputs, left = CASES[name]
    feeds = {"X": RNG.normal(size=(3, 4)).astype(np.float32), "C": np.array(False)}
    constants = {"two": np.float32(2), "yes": np.bool_(True), "no": np.bool_(False), "one": np.int64(1),
                 "count": np.int64(3)}
    graph = helper.make_graph(nodes, "g", [info("X", shape=[3, 4]), info("C", TensorProto.BOOL, [])],
                              [info(o) for o in outputs],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    data = write_case(tmp_path / "case", model, feeds, session.run(outputs, feeds))
    sardonyx("test", tmp_path / "case", "--rtol", "1e-5", "--atol", "1e-6", "--threads", 2)
    text = sardonyx("profile", tmp_path / "case/model.onnx", "--runs", "1", "--inputs", data).out
    assert (" If " in text) == (left > 0), text
