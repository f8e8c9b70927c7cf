# SPDX-License-Identifier: Apache-2.0
"""What a Loop carries without changing it, and what it computes of that, leaves the loop; results are those of
onnxruntime without optimisation."""
import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from case_folder import write_case  # noqa: E402

N = helper.make_node
RNG = np.random.default_rng(11)
WIDTH = 24


def info(name, shape=None, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def body_of(nodes, carried, hands_on, scans=()):
    """carried: names of the body's inputs after trip and condition; hands_on: of its outputs after the condition."""
    return helper.make_graph([N("Identity", ["go"], ["on"]), *nodes], "body",
                             [info("trip", [], TensorProto.INT64), info("go", [], TensorProto.BOOL),
                              *(info(n) for n in carried)],
                             [info("on", [], TensorProto.BOOL), *(info(n) for n in (*hands_on, *scans))])


def then(*nodes, result):
    return helper.make_graph(list(nodes), "branch", [], [info(result)])


# A step of a recurrence: the state times weights that the loop carries, and a product that never changes.
STEP = [N("Transpose", ["w"], ["wt"], perm=[1, 0]), N("MatMul", ["s", "wt"], ["a"]),
        N("MatMul", ["f", "w2"], ["fixed"]), N("Tanh", ["fixed"], ["bounded"]), N("Add", ["a", "bounded"], ["b"]),
        N("Unsqueeze", ["b", "first"], ["b1"]), N("Add", ["b1", "zero"], ["b2"]), N("Squeeze", ["b2", "first"], ["b3"])]
CARRIED = ["w", "s", "f", "w2"]
AROUND = ["W", "S", "F", "W2"]
OUTER = ["w_", "s_", "f_", "w2_"]


def loop(body, inputs, outputs):
    return N("Loop", ["count", "", *inputs], outputs, body=body)


def cases():
    plain = body_of([*STEP, N("Tanh", ["b3"], ["t"])], CARRIED, ["w", "t", "f", "w2"])
    yield "step", [loop(plain, AROUND, OUTER)], ["s_"]
    assigned = body_of([*STEP, N("Tanh", ["b3"], ["t"]), N("Identity", ["w"], ["w_on"]), N("Unsqueeze", ["f", "first"], ["f1"]),
                        N("Add", ["f1", "zero"], ["f2"]), N("Squeeze", ["f2", "first"], ["f_on"]), N("Identity", ["w2"], ["w2_on"])],
                       CARRIED, ["w_on", "t", "f_on", "w2_on"])
    yield "assigned", [loop(assigned, AROUND, OUTER)], ["s_", "f_"]
    turned = body_of([*STEP, N("Tanh", ["b3"], ["t"]), N("Unsqueeze", ["w", "first"], ["w1"]), N("Transpose", ["w1"], ["w3"], perm=[1, 0, 2]),
                      N("Squeeze", ["w3", "second"], ["w_on"])], CARRIED, ["w_on", "t", "f", "w2"])
    yield "assigned by another axis", [loop(turned, AROUND, OUTER)], ["s_", "w_"]
    other = body_of([*STEP, N("Tanh", ["b3"], ["t"]), N("Unsqueeze", ["f", "second"], ["f1"]), N("Slice", ["f1", "first", "row", "first"], ["f2"]),
                     N("Squeeze", ["f2", "first"], ["f_on"])], CARRIED, ["w", "t", "f_on", "w2"])
    yield "another shape", [loop(other, AROUND, OUTER)], ["s_"]
    yield "read behind the loop", [loop(plain, AROUND, OUTER), N("MatMul", ["s_", "w_"], ["Y"])], ["Y"]
    yield "weights are outputs", [loop(plain, AROUND, OUTER)], ["s_", "w_", "f_"]
    scan = body_of([*STEP, N("Tanh", ["b3"], ["t"]), N("Relu", ["t"], ["r"])], CARRIED, ["w", "t", "f", "w2"],
                   ["r"])
    yield "stacked", [loop(scan, AROUND, [*OUTER, "Z"])], ["s_", "Z"]
    both = body_of([*STEP, N("Tanh", ["b3"], ["t"])], CARRIED, ["w", "t", "f", "w2"], ["f"])
    yield "stacked as it is", [loop(both, AROUND, [*OUTER, "Z"])], ["s_", "Z"]
    swap = body_of([*STEP, N("Tanh", ["b3"], ["t"])], CARRIED, ["w2", "t", "f", "w"])
    yield "changing places", [loop(swap, AROUND, OUTER)], ["s_", "w_"]
    branch = N("If", ["even"], ["b3"], then_branch=then(N("MatMul", ["s", "w"], ["y"]), result="y"),
               else_branch=then(N("Add", ["s", "fixed"], ["z"]), result="z"))
    choose = body_of([N("MatMul", ["f", "w2"], ["fixed"]), N("Mod", ["trip", "two"], ["rest"]),
                      N("Cast", ["rest"], ["even"], to=TensorProto.BOOL), branch, N("Tanh", ["b3"], ["t"])],
                     CARRIED, ["w", "t", "f", "w2"])
    yield "in a branch", [loop(choose, AROUND, OUTER)], ["s_"]
    inner = helper.make_graph(
        [N("Identity", ["go2"], ["on2"]), N("MatMul", ["f", "v"], ["p"]), N("MatMul", ["q", "v"], ["q1"]),
         N("Add", ["p", "q1"], ["q2"]), N("Tanh", ["q2"], ["q3"])], "inner",
        [info("trip2", [], TensorProto.INT64), info("go2", [], TensorProto.BOOL), info("v"), info("q")],
        [info("on2", [], TensorProto.BOOL), info("v"), info("q3")])
    nest = body_of([N("Loop", ["three", "", "w", "s"], ["v_", "n"], body=inner), N("MatMul", ["n", "v_"], ["m"]),
                    N("Add", ["m", "s"], ["t0"]), N("Tanh", ["t0"], ["t"])], CARRIED, ["w", "t", "f", "w2"])
    yield "nested", [loop(nest, AROUND, OUTER)], ["s_"]


CASES = {name: rest for name, *rest in cases()}


@pytest.mark.parametrize("fed", ["weights are constants", "weights are fed"])
@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("name", sorted(CASES))
def test_loop(sardonyx, tmp_path, name, count, fed):
    ort = pytest.importorskip("onnxruntime")
    nodes, outputs = CASES[name]
    values = {"W": RNG.normal(0, .2, (WIDTH, WIDTH)), "S": RNG.normal(size=(3, WIDTH)), "F": RNG.normal(size=(3, WIDTH)),
              "W2": RNG.normal(0, .2, (WIDTH, WIDTH))}
    values = {k: v.astype(np.float32) for k, v in values.items()}
    constants = {"count": np.int64(count), "first": np.int64([0]), "zero": np.float32([0]), "two": np.int64(2),
                 "three": np.int64(3), "second": np.int64([1]), "row": np.int64([1])}
    if fed == "weights are constants":
        constants |= {k: values.pop(k) for k in ("W", "W2")}
    graph = helper.make_graph(nodes, "g", [info(k, v.shape) for k, v in values.items()], [info(o) for o in outputs],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    data = write_case(tmp_path / "case", model, values, session.run(outputs, values))
    sardonyx("test", tmp_path / "case", "--rtol", "1e-4", "--atol", "1e-6", "--threads", 2)
    if name in ("step", "assigned") and count == 4:
        text = sardonyx("profile", tmp_path / "case/model.onnx", "--runs", "1", "--inputs", data).out
        assert ("Transpose" in text) == (fed == "weights are fed"), text
        assert "Tanh" in text and text.count("MatMul") >= 2, text
