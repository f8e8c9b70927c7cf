# SPDX-License-Identifier: Apache-2.0
"""Gradient of every operator that has a rule, in double, against central differences of the standard's
reference evaluator; gradients of gradients and of other values against the calculus."""
import math

import numpy
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from case_folder import write_case  # noqa: E402

TRAINING = "ai.onnx.preview.training"
STEP = 1e-6


class Case:
    """inputs: name to array or shape; ones of doubles are differentiated unless named in `fixed`."""

    def __init__(self, op, *inputs, shift=0.0, scale=1.0, fixed=(), opset=22, outputs=1,
                 forward=None, atol="1e-7", **attributes):
        self.op, self.fixed, self.opset, self.outputs, self.atol = op, fixed, opset, outputs, atol
        self.forward = forward  # in place of the reference evaluator, where that is not exact
        self.attributes = attributes
        rng = numpy.random.default_rng(len(op) + len(inputs))
        self.values = [rng.normal(size=value) * scale + shift if isinstance(value, tuple)
                       else value for value in inputs]


ERF = numpy.vectorize(math.erf)


def old_softmax(x):
    """Over all axes from 1 on."""
    e = numpy.exp(x)
    return e / e.sum(axis=tuple(range(1, x.ndim)), keepdims=True)


def standardise(x):
    axes = {"axis": (0, 2, 3), "keepdims": True}
    return (x - x.mean(**axes)) / (x.std(**axes) + 1e-9)


def i64(*values):
    return numpy.array(values, numpy.int64)


SPACED = (numpy.random.default_rng(1).permutation(48) / 7.0 - 3.1).reshape(1, 2, 4, 6)
def group_norm(x, scale, bias):
    rows = x.reshape(2, 2, 6)
    rows = (rows - rows.mean(-1, keepdims=True)) / numpy.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    return rows.reshape(x.shape) * scale[:, None] + bias[:, None]


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def lstm(x, w, r, b, _, h0, c0, backward=False):
    """Both directions; or only the second, of one."""
    n, ys, hs, cs = r.shape[2], [], [], []
    for d in range(len(w)):
        h, c, y = h0[d], c0[d], [None] * len(x)
        for t in reversed(range(len(x))) if d or backward else range(len(x)):
            i, o, f, g = numpy.split(x[t] @ w[d].T + h @ r[d].T + b[d, :4 * n] + b[d, 4 * n:], 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
            h = y[t] = sigmoid(o) * numpy.tanh(c)
        ys, hs, cs = [*ys, numpy.stack(y)], [*hs, h], [*cs, c]
    return numpy.stack(ys, 1), numpy.stack(hs), numpy.stack(cs)


def gru(x, w, r, b, before):
    n, h, y = r.shape[2], numpy.zeros((x.shape[1], r.shape[2])), []
    for t in range(len(x)):
        xz, xr, xh = numpy.split(x[t] @ w[0].T + b[0, :3 * n], 3, axis=1)
        hz, hr, hh = numpy.split(h @ r[0].T + b[0, 3 * n:], 3, axis=1)
        z, reset = sigmoid(xz + hz), sigmoid(xr + hr)
        late = reset * hh if before else (reset * h) @ r[0, 2 * n:].T + b[0, 5 * n:]
        h = (1 - z) * numpy.tanh(xh + late) + z * h
        y.append(h)
    return numpy.stack(y)[:, None], h[None]


def rnn(x, w, r, b):
    n, h, y = r.shape[2], numpy.zeros((x.shape[1], r.shape[2])), []
    for t in range(len(x)):
        h = numpy.tanh(x[t] @ w[0].T + h @ r[0].T + b[0, :n] + b[0, n:])
        y.append(h)
    return numpy.stack(y)[:, None], h[None]


CLASSES = numpy.array([[0, 2], [3, 1], [2, 0]], numpy.int64)
LEFT_OUT = numpy.zeros(0, numpy.int8)
EMPTY = numpy.array([], numpy.float64)
MASK = numpy.array([[0.5, -1.0, 0.0, -numpy.inf], [0.0, 0.25, -0.5, 1.0]])
CASES = [
    *(Case(op, (2, 3)) for op in ("Neg", "Exp", "Sigmoid", "Tanh", "Relu", "LeakyRelu", "Elu", "Selu",
                                  "Softplus", "Softsign", "Abs", "Sin", "Cos", "Tan", "Atan", "Sinh",
                                  "Cosh", "Asinh", "HardSigmoid", "Identity",
                                  "ThresholdedRelu", "Floor", "Sign", "Softmax", "LogSoftmax")),
    *(Case(op, (2, 3), shift=3.0, scale=0.2) for op in ("Log", "Sqrt", "Reciprocal", "Acosh")),
    *(Case(op, (2, 3), scale=0.2) for op in ("Asin", "Acos", "Atanh")),
    Case("MeanVarianceNormalization", (2, 2, 3, 2), forward=standardise),  # is lowered first
    Case("HardSwish", (4, 3), scale=3.0), Case("Mish", (2, 3)),
    Case("Swish", (2, 3), opset=24, alpha=0.7, forward=lambda x: x / (1 + numpy.exp(-0.7 * x))),
    Case("Erf", (2, 3), forward=ERF),
    Case("Gelu", (2, 3), forward=lambda x: x / 2 * (1 + ERF(x / math.sqrt(2)))),
    Case("Gelu", (2, 3), approximate="tanh"),
    Case("Softmax", (2, 3, 2), axis=1, opset=11, forward=old_softmax),
    Case("LogSoftmax", (2, 3, 2), axis=1),
    *(Case(op, (2, 3, 4), (3, 1)) for op in ("Add", "Sub", "Mul", "Max", "Min")),
    *(Case(op, (3, 1), (2, 1, 4)) for op in ("Add", "Mul")),
    *(Case(op, (2, 3), (1, 3), shift=3.0, scale=0.3) for op in ("Div", "Pow")),
    Case("Sum", (2, 3), (3,), ()), Case("Mean", (2, 3), (3,), (1, 1)), Case("Max", (4,), (4,), (1,)),
    Case("PRelu", (2, 3, 4), (3, 1)),
    Case("Where", numpy.array([[True], [False]]), (2, 3), (3,)),
    Case("Clip", (4, 3), numpy.array(-0.7), numpy.array(0.8), fixed=(1, 2)),
    Case("MatMul", (3, 4), (4, 2)), Case("MatMul", (4,), (4,)), Case("MatMul", (4,), (2, 4, 3)),
    Case("MatMul", (2, 3, 4), (4,)), Case("MatMul", (2, 1, 3, 4), (5, 4, 2)),
    *(Case("Gemm", (4, 3) if a else (3, 4), (2, 4) if b else (4, 2), (2,), transA=a, transB=b, alpha=1.5,
           beta=0.5) for a in (0, 1) for b in (0, 1)),
    *(Case(op, (2, 3, 4), i64(-1, 0), keepdims=k)
      for op in ("ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceMax",
                 "ReduceMin", "ReduceLogSumExp") for k in (0, 1)),
    Case("ReduceLogSum", (2, 3), shift=4.0), Case("ReduceMean", (2, 3), keepdims=0),
    Case("ReduceSum", (2, 3, 2), opset=11, axes=[1], keepdims=0),
    Case("ReduceMax", (2, 3), keepdims=0),
    Case("Cast", (2, 3), to=TensorProto.DOUBLE),
    Case("Reshape", (2, 6), i64(3, -1)), Case("Flatten", (2, 3, 2)), Case("Squeeze", (1, 3, 1), i64(0)),
    Case("Unsqueeze", (2, 3), i64(0, 2)), Case("Expand", (3, 1), i64(2, 3, 4)),
    Case("Transpose", (2, 3, 4)), Case("Transpose", (2, 3, 4), perm=[1, 2, 0]),
    Case("Concat", (2, 3), (2, 1), (2, 2), axis=-1),
    Case("Split", (2, 6), i64(1, 3, 2), axis=1, outputs=3),
    Case("Slice", (4, 5), i64(3, 0), i64(0, 5), i64(0, 1), i64(-2, 2)),
    Case("Gather", (4, 3), numpy.array([[0, 2], [2, -1]], numpy.int64), axis=0),
    Case("GatherElements", (3, 3), numpy.array([[1, 2, 0], [2, 0, 0]], numpy.int64), axis=0),
    Case("GatherND", (2, 2, 2), numpy.array([[0, 1], [1, 0], [0, 1]], numpy.int64)),
    Case("Tile", (2, 3), i64(2, 2)), Case("DepthToSpace", (1, 4, 2, 3), blocksize=2),
    Case("SpaceToDepth", (1, 1, 4, 2), blocksize=2),
    Case("Conv", (2, 3, 7, 6), (4, 3, 3, 2), (4,)),
    Case("Conv", (2, 4, 9), (6, 2, 3), (6,), group=2, strides=[2], dilations=[2], pads=[1, 2]),
    Case("Conv", (1, 2, 6, 7), (2, 1, 3, 3), group=2, strides=[2, 3], auto_pad="SAME_UPPER"),
    Case("Conv", (1, 1, 8, 8), (2, 1, 2, 2), strides=[3, 3]),
    Case("AveragePool", (1, 2, 6, 5), kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]),
    Case("AveragePool", (1, 2, 6), kernel_shape=[3], pads=[1, 1], count_include_pad=1),
    Case("GlobalAveragePool", (2, 3, 4, 2)),
    Case("MaxPool", SPACED, kernel_shape=[2, 3], strides=[1, 2], pads=[1, 0, 0, 1]),
    Case("LayerNormalization", (2, 3, 4), (4,), (4,), epsilon=0.01),
    Case("LayerNormalization", (2, 3, 4), (3, 4), axis=1),
    Case("RMSNormalization", (2, 3, 4), (4,), opset=23, axis=-1),
    Case("Einsum", (2, 3), (3, 4), equation="ij, jk -> ik"), Case("Einsum", (2, 3, 4), (2, 3, 4), equation="bij,bij->b"),
    Case("Einsum", (2, 3), (4,), equation="ij,k->k"), Case("Einsum", (2, 3), equation="ij->"),
    Case("Einsum", (3, 2), (2, 4), (4,), equation="ab,bc,c"), Case("Einsum", (2, 3), (3, 2), equation="ij,ji"),
    Case("Pad", (2, 3), i64(1, 0, 0, 2)), Case("Pad", (2, 3), i64(1, 0, 0, 2), numpy.array(1.5)),
    Case("Pad", (2, 5), i64(2, 1), numpy.array(0.0), i64(1), fixed=(2,), mode="reflect"),
    Case("Pad", (2, 3), i64(0, 2, 1, 1), mode="edge"),
    *(Case("Resize", (1, 2, 4, 5), EMPTY, numpy.array([1, 1, h, w], numpy.float32), fixed=(1,), **how)
      for h, w in ((2, 1.5), (0.6, 0.5)) for how in (
          {"mode": "nearest"}, {"mode": "linear"}, {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
          {"mode": "cubic", "exclude_outside": 1, "atol": "2e-6"})),  # factors in float
    Case("Resize", (1, 2, 4, 5), EMPTY, numpy.array([], numpy.float32), i64(7, 3), fixed=(1,), mode="linear", axes=[3, 2]),
    Case("Trilu", (2, 3, 4), numpy.array(1, numpy.int64)), Case("Trilu", (3, 3), upper=0),
    *(Case("CumSum", (2, 3), numpy.array(1, numpy.int64), exclusive=e, reverse=r) for e in (0, 1) for r in (0, 1)),
    Case("Attention", (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3), opset=23),
    Case("Attention", (1, 3, 8), (1, 3, 4), (1, 3, 6), opset=23, q_num_heads=4, kv_num_heads=2, is_causal=1, scale=0.3),
    Case("Attention", (1, 4, 2, 3), (1, 2, 2, 3), (1, 2, 2, 3), MASK, (1, 2, 2, 3), (1, 2, 2, 3), fixed=(3,), opset=24,
         softcap=1.5),
    *(Case("NegativeLogLikelihoodLoss", (3, 4, 2), CLASSES, *weight, reduction=how, **more)
      for weight in ((), ((4,),)) for how in ("none", "sum", "mean") for more in ({}, {"ignore_index": 2})),
    Case("SoftmaxCrossEntropyLoss", (3, 4, 2), CLASSES), Case("SoftmaxCrossEntropyLoss", (3, 4, 2), CLASSES, (4,), outputs=2),
    Case("InstanceNormalization", (2, 3, 4), (3,), (3,)),
    Case("GroupNormalization", (2, 4, 3), (4,), (4,), num_groups=2, forward=group_norm),
    Case("LSTM", (3, 2, 2), (2, 12, 2), (2, 12, 3), (2, 24), None, (2, 2, 3), (2, 2, 3), outputs=3, hidden_size=3,
         direction="bidirectional", forward=lstm),
    Case("LSTM", (2, 1, 2), (1, 8, 2), (1, 8, 2), outputs=3, hidden_size=2, direction="reverse",
         forward=lambda x, w, r: lstm(x, w, r, numpy.zeros((1, 16)), None, *numpy.zeros((2, 1, 1, 2)), backward=True)),
    *(Case("GRU", (3, 2, 2), (1, 9, 2), (1, 9, 3), (1, 18), outputs=2, hidden_size=3, linear_before_reset=before,
           forward=lambda *v, before=before: gru(*v, before)) for before in (0, 1)),
    Case("RNN", (3, 2, 2), (1, 3, 2), (1, 3, 3), (1, 6), outputs=2, hidden_size=3, forward=rnn),
    Case("BatchNormalization", (2, 3, 4), (3,), (3,), numpy.array([0.1, -0.2, 0.3]),
         numpy.array([0.5, 1.5, 2.0]), fixed=(3, 4)),
]


def write(folder, nodes, inputs, outputs, opset, constants=()):
    """A model and a data set: `inputs` and `outputs` are names to arrays."""
    graph = helper.make_graph(
        nodes, "gradient",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
         for name, value in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.DOUBLE, value.shape)
         for name, value in outputs.items()], list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset),
                                                    helper.make_opsetid(TRAINING, 1)], ir_version=10)
    write_case(folder, model, inputs, outputs)


def gradient(xs, y, names, zs=(), inputs=None):
    more = {"zs": list(zs)} if zs else {}
    return helper.make_node("Gradient", inputs or [*xs, *zs], names, domain=TRAINING, xs=xs, y=y, **more)


def evaluator(case, names, weights):
    """sum(weights * op(...)) by the reference evaluator."""
    from onnx.reference import ReferenceEvaluator
    outputs = [f"y{k}" for k in range(case.outputs)]
    node = helper.make_node(case.op, names, outputs, **case.attributes)
    graph = helper.make_graph(
        [node], "forward",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
         for name, value in zip(names, map(numpy.asarray, case.values)) if name],
        [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in outputs])
    session = case.forward or ReferenceEvaluator(helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", case.opset)]))

    def run(values):
        if case.forward:
            results = case.forward(*values)
            results = results if isinstance(results, tuple) else (results,)
        else:
            results = session.run(None, dict(zip(names, values)))
        if not weights:
            rng = numpy.random.default_rng(7)
            weights.extend(rng.normal(size=result.shape) for result in results)
        return sum(float((w * y).sum()) for w, y in zip(weights, results))
    return run


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{i}-{c.op}" for i, c in enumerate(CASES)])
def test_gradient(number, sardonyx, tmp_path):
    case = CASES[number]
    values = [LEFT_OUT if value is None else numpy.asarray(value) for value in case.values]
    names = ["" if value is LEFT_OUT else f"x{i}" for i, value in enumerate(values)]
    weights = []
    run = evaluator(case, names, weights)
    run(values)
    xs = [i for i, value in enumerate(values) if value.dtype == numpy.float64 and i not in case.fixed]
    expected = {}
    for i in xs:
        slope = numpy.zeros(values[i].shape)
        for at in numpy.ndindex(*values[i].shape):
            ends = []
            for sign in (1, -1):
                moved = [value.copy() for value in values]
                moved[i][at] += sign * STEP
                ends.append(run(moved))
            slope[at] = (ends[0] - ends[1]) / (2 * STEP)
        expected[f"d{i}"] = slope
    outputs = [f"y{k}" for k in range(case.outputs)]
    nodes = [helper.make_node(case.op, names, outputs, **case.attributes)]
    nodes += [helper.make_node("Mul", [f"y{k}", f"w{k}"], [f"p{k}"]) for k in range(case.outputs)]
    for k in range(case.outputs):
        nodes.append(helper.make_node("ReduceSum", [f"p{k}"], [f"s{k}"], keepdims=0))
    nodes.append(helper.make_node("Sum", [f"s{k}" for k in range(case.outputs)], ["s"]))
    nodes.append(gradient([names[i] for i in xs], "s", list(expected)))
    constants = [numpy_helper.from_array(w, f"w{k}") for k, w in enumerate(weights)]
    constants += [numpy_helper.from_array(value, name) for name, value in zip(names, values)
                  if name and value.dtype != numpy.float64]
    fed = {name: value for name, value in zip(names, values) if value.dtype == numpy.float64}
    write(tmp_path, nodes, fed, expected, case.opset, constants)
    sardonyx("test", tmp_path, "--rtol", "1e-6", "--atol", case.atol)


def test_gradient_of_gradient(sardonyx, tmp_path):
    """y = x^3 z: dy/dx = 3 x^2 z, d2y/dx2 = 6 x z, d2y/dxdz = 3 x^2."""
    x, z = numpy.array([0.5, -1.25, 2.0]), numpy.array([1.5, 0.25, -3.0])
    nodes = [helper.make_node("Mul", ["x", "x"], ["q"]), helper.make_node("Mul", ["q", "x"], ["c"]),
             helper.make_node("Mul", ["c", "z"], ["y"]),
             gradient(["x"], "y", ["first"], zs=["z"]),
             gradient(["x", "z"], "first", ["second", "mixed"])]
    write(tmp_path, nodes, {"x": x, "z": z},
          {"first": 3 * x * x * z, "second": 6 * x * z, "mixed": 3 * x * x}, 22)
    sardonyx("test", tmp_path, "--rtol", "1e-12")


def test_gradient_at_other_values(sardonyx, tmp_path):
    """Inputs that are not the tensors of xs: y is a function, taken elsewhere; an x that y does not
    depend on has gradient 0; a value in between may be an x."""
    x, h, u = numpy.array([0.5, 1.5]), numpy.array([2.0, -1.0]), numpy.array([1.0, 4.0])
    nodes = [helper.make_node("Exp", ["x"], ["h"]), helper.make_node("Mul", ["h", "h"], ["y"]),
             gradient(["h", "u"], "y", ["dh", "du"], inputs=["h1", "u"]), gradient(["h"], "y", ["here"])]
    nodes += [helper.make_node("Mul", ["x", "u"], ["p"]),
              gradient(["x", "u"], "p", ["dx2", "du2"], inputs=["h1", "h1"])]
    write(tmp_path, nodes, {"x": x, "h1": h, "u": u},
          {"dh": 2 * h, "du": 0 * u, "here": 2 * numpy.exp(x), "dx2": h, "du2": h}, 22)
    sardonyx("test", tmp_path, "--rtol", "1e-12")


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary(interleaved, sardonyx, tmp_path):
    """Floats only. Pairs turned by an angle: the gradient is turned back."""
    rng = numpy.random.default_rng(4)
    x, weight = (rng.normal(size=(1, 2, 3, 4)).astype(numpy.float32) for _ in range(2))
    cosine, sine = (rng.normal(size=(1, 3, 2)).astype(numpy.float32) for _ in range(2))
    nodes = [helper.make_node("RotaryEmbedding", ["x", "c", "s"], ["r"], interleaved=interleaved),
             helper.make_node("Mul", ["r", "w"], ["p"]), helper.make_node("Cast", ["p"], ["y"], to=TensorProto.DOUBLE),
             gradient(["x"], "y", ["f"], zs=["w"]), helper.make_node("Cast", ["f"], ["d"], to=TensorProto.DOUBLE)]
    one, two = ((slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(0, 2), slice(2, 4)))
    expected = numpy.zeros(x.shape)
    expected[..., one] = weight[..., one] * cosine + weight[..., two] * sine
    expected[..., two] = weight[..., two] * cosine - weight[..., one] * sine
    write(tmp_path, nodes, {"x": x, "w": weight, "c": cosine, "s": sine}, {"d": expected}, 23)
    sardonyx("test", tmp_path, "--rtol", "1e-5")


def test_network(sardonyx, tmp_path):
    """Two layers and a mean of squares, any batch: dimensions that only the run tells."""
    rng = numpy.random.default_rng(3)
    x, w, b, v = (rng.normal(size=size) for size in ((5, 4), (4, 3), (3,), (3, 2)))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["s"]),
             helper.make_node("Tanh", ["s"], ["h"]),
             helper.make_node("MatMul", ["h", "v"], ["o"]), helper.make_node("Mul", ["o", "o"], ["q"]),
             helper.make_node("ReduceMean", ["q"], ["loss"], keepdims=0),
             gradient(["w", "b", "v"], "loss", ["dw", "db", "dv"], zs=["x"])]
    h = numpy.tanh(x @ w + b)
    do = 2 * (h @ v) / (h @ v).size
    ds = do @ v.T * (1 - h * h)
    write(tmp_path, nodes, {"x": x, "w": w, "b": b, "v": v},
          {"dw": x.T @ ds, "db": ds.sum(0), "dv": h.T @ do}, 22)
    model = onnx.load(str(tmp_path / "model.onnx"))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    onnx.save(model, str(tmp_path / "model.onnx"))
    sardonyx("test", tmp_path, "--rtol", "1e-9")


def test_types_on_the_way(sardonyx, tmp_path):
    """Casts between double and float."""
    x = numpy.array([0.5, -1.25, 2.0, -0.1])
    nodes = [helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
             helper.make_node("Celu", ["f"], ["g"], alpha=1.5),
             helper.make_node("Cast", ["g"], ["c"], to=TensorProto.DOUBLE),
             helper.make_node("Exp", ["c"], ["e"]),
             helper.make_node("HardSwish", ["e"], ["h"]), gradient(["x"], "h", ["d"])]
    e = numpy.exp(numpy.where(x > 0, x, 1.5 * (numpy.exp(x / 1.5) - 1)))
    slope = numpy.where(x > 0, 1, numpy.exp(x / 1.5)) * e
    slope *= numpy.where(e >= 3, 1, numpy.where(e <= -3, 0, (2 * e + 3) / 6))
    write(tmp_path, nodes, {"x": x}, {"d": slope}, 22)
    sardonyx("test", tmp_path, "--rtol", "1e-5", "--atol", "1e-6")


@pytest.mark.parametrize("xs, y, names, message", (
    (["x"], "none", ["d"], 'there is no tensor "none"'),
    (["none"], "y", ["d"], 'there is no tensor "none"'),
    (["x"], "y", ["d", "e"], "2 outputs for 1 names in xs"),
    (["x", "y"], "y", ["d"], "1 inputs for 2 names"),
))
def test_faults(xs, y, names, message, sardonyx, tmp_path):
    x = numpy.array([3.0, 1.0])
    nodes = [helper.make_node("Exp", ["x"], ["y"]), gradient(xs, y, names, inputs=["x"])]
    write(tmp_path, nodes, {"x": x}, {"d": x}, 22)
    done = sardonyx("test", tmp_path, code=None)
    assert done.code != 0 and f"Gradient: {message}" in done.out + done.err


def test_no_rule(sardonyx, tmp_path):
    x = numpy.array([3.0, 1.0])
    nodes = [helper.make_node("Hardmax", ["x"], ["y"]), gradient(["x"], "y", ["d"])]
    write(tmp_path, nodes, {"x": x}, {"d": x}, 22)
    done = sardonyx("test", tmp_path, code=None)
    assert done.code != 0 and "Gradient: operator Hardmax has no rule" in done.out + done.err
