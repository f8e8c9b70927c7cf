# SPDX-License-Identifier: Apache-2.0
"""The pass qdq: small quantised graphs give what the graph as written gives, within one quantum, and
nothing is left of the float operators."""
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

TYPES = {"u8": (np.uint8, TensorProto.UINT8, 0, 255), "i8": (np.int8, TensorProto.INT8, -128, 127)}


class Graph:
    """Builds a graph of quantised values."""

    def __init__(self, kind, seed=5):
        self.dtype, self.onnx_type, self.lo, self.hi = TYPES[kind]
        self.random, self.nodes, self.constants, self.inputs = np.random.default_rng(seed), [], [], []
        self.count = 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def constant(self, value):
        self.constants.append(numpy_helper.from_array(np.asarray(value), self.name()))
        return self.constants[-1].name

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def params(self, scale, zero):
        return self.constant(np.float32(scale)), self.constant(self.dtype(zero))

    def value(self, *shape, scale=0.0513, zero=3):
        """A graph input of bytes, dequantised."""
        name = self.name()
        self.inputs.append((name, self.random.integers(self.lo, self.hi + 1, shape, dtype=self.dtype)))
        return self.op("DequantizeLinear", name, *self.params(scale, zero))

    def q(self, value, scale=0.0978, zero=-2):
        return self.op("QuantizeLinear", value, *self.params(scale, max(zero, self.lo)))

    def dq(self, value, scale=0.0978, zero=-2):
        return self.op("DequantizeLinear", value, *self.params(scale, max(zero, self.lo)))

    def weights(self, *shape, axis=0):
        count = shape[axis]
        scale = self.random.uniform(0.002, 0.02, count).astype(np.float32)
        w = self.random.integers(-127, 128, shape).astype(np.int8)
        return self.op("DequantizeLinear", self.constant(w), self.constant(scale),
                       self.constant(np.zeros(count, np.int8)), axis=axis)

    def bias(self, n):
        return self.constant(self.random.uniform(-2, 2, n).astype(np.float32))


def conv(g):
    x = g.value(1, 5, 9, 8)
    y = g.op("Conv", x, g.weights(7, 5, 3, 3), g.bias(7), pads=[1, 1, 1, 1])
    return g.q(g.op("Relu", y), 0.5), {"QLinearConv"}


def conv_clip(g):
    x = g.value(2, 16, 9, 8)
    y = g.op("Conv", x, g.weights(16, 1, 3, 3), g.bias(16), group=16, strides=[2, 2], pads=[1, 1, 1, 1])
    y = g.op("Clip", y, g.constant(np.float32(0)), g.constant(np.float32(3)))
    return g.q(y, 0.03), {"QLinearConv"}


def conv_winograd(g):
    """Large enough for Winograd's form where the instruction set has it, with a table at its end."""
    y = g.op("Conv", g.value(2, 18, 14, 13), g.weights(21, 18, 3, 3), g.bias(21), pads=[1, 1, 1, 1])
    return g.q(g.op("LeakyRelu", g.dq(g.q(y, 0.9, 7), 0.9, 7), alpha=0.2), 0.8), {"QLinearConv"}


def conv_shorts(g):
    """Weights of which many pairs are too large for 16 bits."""
    y = g.op("Conv", g.value(2, 34, 9, 8), g.weights(40, 34, 3, 3), g.bias(40), strides=[2, 2],
             pads=[1, 1, 1, 1])
    return g.q(y, 0.7, 5), {"QLinearConv"}


def conv_few(g):
    """Few channels come out, so that positions of the kernel are columns: of all rows, then of one."""
    y = g.op("Conv", g.value(2, 19, 21, 40), g.weights(1, 19, 3, 3), g.bias(1), pads=[1, 1, 1, 1])
    z = g.op("Conv", g.value(1, 12, 24, 33), g.weights(3, 12, 9, 9), g.bias(3), pads=[2, 4, 4, 3])
    w = g.op("Conv", g.dq(g.q(y, 0.9, 7), 0.9, 7), g.weights(2, 1, 3, 3))
    return g.q(g.op("Add", g.dq(g.q(z, 0.8), 0.8), g.dq(g.q(g.op("ReduceMax", w, keepdims=1), 0.7), 0.7)), 0.9), {
        "QLinearConv", "QLinearAdd", "ReduceMax", "QuantizeLinear"}


def conv_groups(g):
    """Groups of four channels, of which four are worked as one, and of three that are not."""
    x = g.dq(g.q(g.op("Conv", g.value(2, 32, 9, 8), g.weights(32, 4, 3, 3), g.bias(32), group=8,
                      pads=[1, 1, 1, 1]), 0.4), 0.4)
    y = g.dq(g.q(g.op("Conv", x, g.weights(64, 1, 3, 3), group=32, strides=[2, 2]), 0.4), 0.4)
    return g.q(g.op("Conv", y, g.weights(12, 16, 1, 1), g.bias(12), group=4), 0.6), {"QLinearConv"}


def transposed(g):
    """All phases in one convolution, in one each, and with lengths that end within the stride."""
    x = g.dq(g.q(g.op("ConvTranspose", g.value(2, 6, 5, 4), g.weights(6, 7, 2, 2, axis=1), g.bias(7),
                      strides=[2, 2]), 0.3), 0.3)
    x = g.dq(g.q(g.op("Relu", g.op("ConvTranspose", x, g.weights(7, 20, 4, 3, axis=1),
                                   strides=[2, 3], pads=[1, 1, 1, 0])), 0.4), 0.4)
    return g.q(g.op("ConvTranspose", x, g.weights(20, 3, 3, 3, axis=1), g.bias(3), strides=[2, 1],
                    pads=[1, 1, 1, 1], output_padding=[1, 0]), 0.9), {"QLinearConvTranspose"}


def transposed_line(g):
    y = g.op("ConvTranspose", g.value(1, 17, 9), g.weights(17, 5, 5, axis=1), strides=[3],
             auto_pad="SAME_UPPER")
    return g.q(y, 0.3), {"QLinearConvTranspose"}


def transposed_gaps(g):
    """Outputs that see no tap stay with the float operator."""
    y = g.op("ConvTranspose", g.value(1, 4, 5, 5), g.weights(4, 5, 1, 1, axis=1), strides=[2, 2])
    return g.q(y, 0.3), {"ConvTranspose"}


def conv_large_bias(g):
    """A bias of more than 32 bits beside products of weights that are next to nothing."""
    scale = np.full(9, 0.01, np.float32)
    scale[[2, 5]] = 2e-11
    w = g.op("DequantizeLinear", g.constant(g.random.integers(-127, 128, (9, 6, 3, 3)).astype(np.int8)),
             g.constant(scale), g.constant(np.zeros(9, np.int8)), axis=0)
    return g.q(g.op("Conv", g.value(1, 6, 7, 7), w, g.bias(9)), 0.3), {"QLinearConv", "QuantizeLinear"}


def conv_shared_bias(g):
    """Exporters write Identity where a bias equals another's, which is in units of the other's scales."""
    scale = g.random.uniform(1e-4, 1e-3, 6).astype(np.float32)
    bias = g.op("DequantizeLinear", g.constant(g.random.integers(-5000, 5000, 6).astype(np.int32)),
                g.constant(scale), g.constant(np.zeros(6, np.int32)), axis=0)
    x = g.q(g.op("Relu", g.op("Conv", g.value(1, 5, 9, 8), g.weights(6, 5, 1, 1), bias)), 0.3)
    y = g.op("Conv", g.dq(x, 0.3), g.weights(6, 6, 3, 3), g.op("Identity", bias))
    return g.q(g.op("Relu", y), 0.5), {"QLinearConv"}


def conv_shared_weights(g):
    """Exporters write Identity where weights equal another layer's."""
    w = g.weights(6, 6, 3, 3)
    x = g.q(g.op("Conv", g.value(1, 6, 9, 8), w), 0.9)
    return g.q(g.op("Conv", g.dq(x, 0.9), g.op("Identity", w), g.bias(6)), 4), {"QLinearConv"}


def conv_float(g):
    return g.op("Conv", g.value(1, 6, 7, 7), g.weights(4, 6, 1, 1), g.bias(4)), {"QLinearConv"}


def silu(g):
    x = g.dq(g.q(g.op("Conv", g.value(1, 4, 6, 6), g.weights(8, 4, 1, 1)), 0.2, 1), 0.2, 1)
    gate = g.dq(g.q(g.op("Sigmoid", x), 1 / 255, 0), 1 / 255, 0)
    return g.q(g.op("Mul", x, gate), 0.1), {"QLinearConv"}


def table(g):
    return g.q(g.op("LeakyRelu", g.value(3, 40), alpha=0.1), 0.07), {"ByteTable"}


def gelu(g):
    """Each operator of a GELU is quantised, and each of its constants: all one function of a byte."""
    def scalar(value):
        return g.op("DequantizeLinear", g.constant(g.dtype(127)), *g.params(value / 127, 0))

    x = g.value(2, 5, 7)
    y = g.q(g.op("Erf", g.op("Div", x, g.constant(np.float32(2 ** 0.5)))), 0.0079)
    y = g.q(g.op("Add", g.dq(y, 0.0079), scalar(1)), 0.0158)
    y = g.q(g.op("Mul", x, g.dq(y, 0.0158)), 0.05)
    return g.q(g.op("Mul", g.dq(y, 0.05), scalar(0.5)), 0.03), {"ByteTable"}


def slope(g):
    """A slope with an axis more than the 256 values of a list."""
    return g.q(g.op("PRelu", g.value(3, 40), g.constant(np.float32([[0.1]]))), 0.07), {"ByteTable"}


def add(g):
    return g.q(g.op("Add", g.value(2, 9, 30), g.value(9, 1, scale=0.0217, zero=9))), {"QLinearAdd"}


def mul(g):
    return g.q(g.op("Mul", g.value(2, 9, 31), g.value(2, 9, 31, scale=0.0217)), 0.0217), {"QLinearMul"}


def concat(g):
    y = g.op("Concat", g.value(1, 3, 5, 5), g.value(1, 4, 5, 5, scale=0.08), axis=1)
    return g.q(g.op("Transpose", y, perm=[0, 2, 3, 1])), {"ByteTable"}


def move(g):
    y = g.op("MaxPool", g.value(1, 17, 8, 8), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = g.op("Resize", y, "", g.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest")
    y = g.op("Pad", y, g.constant(np.array([0, 0, 1, 0, 0, 0, 0, 1], np.int64)))
    return g.q(y, 0.0513, 3), {"MaxPool", "Resize", "Pad"}


def split(g):
    halves = g.op("Split", g.value(1, 8, 6), g.constant(np.array([3, 5], np.int64)), axis=1, outputs=2)
    wide = g.op("Concat", halves[1], halves[0], axis=1)
    return g.q(wide, 0.0513, 3), {"Concat"}


def matmul(g):
    y = g.op("MatMul", g.value(3, 7, 20), g.weights(20, 33, axis=1))
    return g.q(g.op("Add", y, g.bias(33)), 0.3), {"QLinearMatMul"}


def matmul_values(g):
    return g.q(g.op("MatMul", g.value(2, 7, 20), g.value(2, 20, 9)), 0.3), {"QLinearMatMul"}


def gemm(g):
    y = g.op("Gemm", g.value(5, 40), g.weights(10, 40), g.bias(10), transB=1)
    return g.q(y, 0.4), {"QGemm"}


def pool(g):
    return g.q(g.op("GlobalAveragePool", g.value(2, 9, 5, 6)), 0.0413), {"QLinearGlobalAveragePool"}


def pool_few(g):
    """Few channels of many pixels, in chunks."""
    x = g.dq(g.q(g.op("Conv", g.value(2, 3, 150, 131), g.weights(5, 3, 1, 1)), 0.31), 0.31)
    return g.q(g.op("GlobalAveragePool", x), 0.0413), {"QLinearConv", "QLinearGlobalAveragePool"}


def average(g):
    x = g.dq(g.q(g.op("AveragePool", g.value(2, 19, 8, 7), kernel_shape=[2, 2], strides=[2, 2]), 0.04), 0.04)
    return g.q(g.op("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
               0.03), {"QLinearConv"}


def average_inside(g):
    """Windows that count what lies inside, at least, are divided by different numbers."""
    return g.q(g.op("AveragePool", g.value(1, 5, 9, 7), kernel_shape=[3, 3], pads=[1, 1, 1, 1]), 0.04), {
        "AveragePool"}


def average_even(g):
    """Averages of four that keep their scale often lie between two bytes."""
    x = g.op("AveragePool", g.value(1, 5, 8, 6), kernel_shape=[2, 2], strides=[2, 2])
    return g.q(x, 0.0513, 3), {"AveragePool"}


def chain(g):
    """Several layers that stay channels last."""
    x = g.dq(g.q(g.op("Conv", g.value(1, 3, 17, 15), g.weights(20, 3, 3, 3), pads=[1, 1, 1, 1]), 0.31), 0.31)
    y = g.dq(g.q(g.op("Conv", x, g.weights(20, 20, 1, 1)), 0.47), 0.47)
    y = g.dq(g.q(g.op("Add", x, y), 0.63), 0.63)
    y = g.dq(g.q(g.op("Concat", y, x, axis=1), 0.63), 0.63)
    y = g.dq(g.q(g.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2]), 0.63), 0.63)
    return g.q(g.op("Conv", y, g.weights(6, 40, 3, 3)), 2.0), {"QLinearConv", "ByteTable", "Concat", "MaxPool"}


def residual(g):
    """Sums at the store: of the block's input and of two convolutions, of many channels and few."""
    x = g.dq(g.q(g.op("Conv", g.value(2, 16, 9, 8), g.weights(70, 16, 3, 3), pads=[1, 1, 1, 1]), 0.31), 0.31)
    y = g.dq(g.q(g.op("Conv", x, g.weights(70, 70, 1, 1)), 0.67), 0.67)
    y = g.dq(g.q(g.op("Add", y, x), 0.63), 0.63)
    z = g.dq(g.q(g.op("Conv", y, g.weights(19, 70, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1]), 0.97), 0.97)
    y = g.dq(g.q(g.op("Conv", y, g.weights(19, 70, 1, 1), strides=[2, 2]), 0.8), 0.8)
    return g.q(g.op("Add", z, y), 1.1), {"QLinearConv"}


def sum_of_others(g):
    """What is added is of another shape, or read elsewhere too: the sum stays."""
    x = g.dq(g.q(g.op("Conv", g.value(1, 8, 6, 6), g.weights(8, 8, 1, 1)), 0.31), 0.31)
    y = g.dq(g.q(g.op("Add", x, g.value(8, 1, 1)), 0.4), 0.4)
    return g.q(g.op("Add", y, x), 0.6), {"QLinearConv", "QLinearAdd"}


def norm(g):
    """Channels between convolutions, which lie last there; more than a step of them and few."""
    x = g.value(2, 16, 9, 8)
    for channels, before in ((70, 16), (5, 70)):
        x = g.dq(g.q(g.op("Conv", x, g.weights(channels, before, 1, 1)), 0.31), 0.31)
        facts = [g.constant(g.random.uniform(*limits, channels).astype(np.float32))
                 for limits in ((-2, 2), (-1, 1), (-1, 1), (0.5, 2))]
        x = g.op("BatchNormalization", x, *facts)
        x = g.dq(g.q(g.op("Relu", x), 0.13), 0.13)
    return g.q(g.op("Conv", x, g.weights(6, 5, 1, 1)), 0.4), {"QLinearConv", "ByteAffine"}


def scaled_channels(g):
    """Several operators, with a bound and without one, of planes and of rows."""
    by = [g.constant(g.random.uniform(-2, 2, (19, 1, 1)).astype(np.float32)) for _ in range(2)]
    x = g.op("Add", g.op("Mul", by[0], g.op("Sub", g.value(3, 19, 5, 7), by[1])), g.constant(np.float32(0.5)))
    x = g.dq(g.q(g.op("Clip", x, g.constant(np.float32(-3)), g.constant(np.float32(6))), 0.07), 0.07)
    x = g.op("Reshape", x, g.constant(np.array([3 * 7, 95], np.int64)))
    return g.q(g.op("Div", x, g.constant(g.random.uniform(0.5, 2, (1, 95)).astype(np.float32)))), {"ByteAffine"}


def resize(g):
    """Filters on bytes, whose channels lie last: 19 of them, then 9."""
    x = g.dq(g.q(g.op("Conv", g.value(2, 6, 7, 9), g.weights(19, 6, 1, 1)), 0.3), 0.3)
    for mode, transform, scales, ic, q, after in (("linear", "half_pixel", (1, 1, 2, 2), 19, 0.3, 3),
                                                  ("cubic", "align_corners", (1, 1, 1.6, 0.7), 9, 3, 30)):
        x = g.op("Resize", x, "", g.constant(np.array(scales, np.float32)), mode=mode,
                 coordinate_transformation_mode=transform)
        x = g.op("Conv", g.dq(g.q(x, q), q), g.weights(9, ic, 1, 1))
        x = g.dq(g.q(x, after), after)
    x = g.op("Resize", x, "", "", g.constant(np.array([2, 9, 31, 17], np.int64)), mode="linear")
    return g.q(x, 30), {"QLinearConv", "Resize"}


GRAPHS = [conv, conv_clip, resize, conv_winograd, conv_shorts, conv_few, conv_groups,
          transposed, transposed_line, transposed_gaps, conv_float, conv_large_bias, conv_shared_bias, conv_shared_weights,
          norm, scaled_channels, silu, table, gelu, slope, add, mul, concat, move,
          split, matmul, matmul_values, gemm, pool, pool_few,
          average, average_inside, average_even, chain, residual, sum_of_others]
DEEP = [resize, conv_few, conv_shared_bias, conv_shared_weights, norm, scaled_channels, chain, residual, sum_of_others, average, conv_groups, transposed]  # differences of a quantum go on
FLOATS = {"QuantizeLinear", "Conv", "Add", "Mul", "Sub", "Div", "BatchNormalization", "Sigmoid", "MatMul", "Gemm", "Relu", "Clip",
          "LeakyRelu", "PRelu", "GlobalAveragePool",
          "AveragePool", "ConvTranspose"}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("make", GRAPHS, ids=[make.__name__ for make in GRAPHS])
def test_graph(make, kind, sardonyx, tmp_path):
    g = Graph(kind)
    output, wanted = make(g)
    is_float = make is conv_float
    inputs = [helper.make_tensor_value_info(name, g.onnx_type, value.shape) for name, value in g.inputs]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT if is_float else g.onnx_type, None)]
    graph = helper.make_graph(g.nodes, "qdq", inputs, outputs, g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    feeds = []
    for name, value in g.inputs:
        np.save(tmp_path / f"{name}.npy", value)
        feeds += ["--input", f"{name}={tmp_path / name}.npy"]
    found = {}
    for level in ("basic", "extended"):
        for threads in ("1", "7"):
            sardonyx("run", path, *feeds, "--level", level, "--threads", threads, "--out", tmp_path / level)
            again = np.load(tmp_path / level / f"{output}.npy")
            assert level not in found or (again == found[level]).all()
            found[level] = again
    a, b = found["basic"].astype(np.float64), found["extended"].astype(np.float64)
    assert a.shape == b.shape
    if is_float:
        assert np.abs(a - b).max() <= 1e-3 * np.abs(a).max()
    else:
        assert np.abs(a - b).max() <= (3 if make in DEEP else 1)
        assert np.mean(a != b) <= (0.2 if make in DEEP else 0.01)
    listed = sardonyx("profile", path, *feeds, "--json").json
    ops = {row["op"] for row in listed["operators"]}
    left = set() if make in (transposed_gaps, average_inside, average_even) else FLOATS - wanted
    if make is gelu:
        left |= {"QLinearAdd", "QLinearMul"}
    assert wanted <= ops and not ops & left, ops


SIZES = ((1, 21, 6, 5, 24, 20), (2, 3, 7, 9, 14, 18), (1, 1, 12, 10, 31, 13), (1, 256, 5, 4, 5, 16),
         (3, 17, 9, 8, 20, 8), (1, 8, 3, 70, 6, 301))


@pytest.mark.parametrize("last", (False, True))
@pytest.mark.parametrize("dtype", (np.uint8, np.int8))
@pytest.mark.parametrize("mode,transform", (("linear", "half_pixel"), ("linear", "align_corners"),
                                            ("cubic", "half_pixel")))
def test_resize_bytes(sardonyx, tmp_path, mode, transform, dtype, last):
    """What the reference makes of floats, to the nearest byte; `last`: channels are the last axis."""
    limits = np.iinfo(dtype)
    for case, (n, c, *image) in enumerate(SIZES):
        shape = (n, *image[:2], c) if last else (n, c, *image[:2])
        sizes = np.array([n, *image[2:], c] if last else [n, c, *image[2:]], np.int64)
        x = np.random.default_rng(case).integers(limits.min, limits.max + 1, shape).astype(dtype)
        node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode=mode,
                                coordinate_transformation_mode=transform)

        def model(kind):
            graph = helper.make_graph([node], "resize", [helper.make_tensor_value_info("x", kind, shape)],
                                      [helper.make_tensor_value_info("y", kind, None)],
                                      [numpy_helper.from_array(sizes, "sizes")])
            return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=8)

        wanted = ReferenceEvaluator(model(TensorProto.DOUBLE)).run(None, {"x": x.astype(np.float64)})[0]
        onnx.save(model(helper.np_dtype_to_tensor_dtype(np.dtype(dtype))), tmp_path / "model.onnx")
        np.save(tmp_path / "x.npy", x)
        sardonyx("run", tmp_path / "model.onnx", "--input", f"x={tmp_path / 'x.npy'}", "--out", tmp_path)
        found = np.load(tmp_path / "y.npy")
        assert found.shape == wanted.shape and found.dtype == dtype
        apart = np.abs(found.astype(np.float64) - np.clip(wanted, limits.min, limits.max))
        assert apart.max() <= 0.5 + 1e-3, apart.max()


FEW = [  # oc, ic, kernel, begins and ends of the padding, dilations, image
    (1, 19, (3, 3), (1, 1, 1, 1), (1, 1), (25, 31)), (3, 32, (9, 9), (4, 4, 4, 4), (1, 1), (40, 37)),
    (3, 16, (9, 9), (0, 0, 0, 0), (1, 1), (50, 28)), (2, 23, (5, 5), (2, 0, 3, 4), (2, 3), (33, 40)),
    (3, 24, (3, 5), (1, 2, 1, 2), (1, 1), (20, 30)), (5, 64, (3, 3), (1, 1, 1, 1), (1, 1), (16, 16)),
    (1, 16, (1, 7), (0, 3, 0, 3), (1, 1), (9, 64)), (3, 64, (3, 3), (9, 9, 9, 9), (4, 4), (12, 13)),
    (2, 8, (11, 3), (12, 2, 12, 2), (1, 1), (6, 80)), (1, 9, (5, 5), (9, 9, 9, 9), (9, 9), (40, 41))]


@pytest.mark.parametrize("signed", ("xu wu", "xu ws", "xs ws"))
@pytest.mark.parametrize("oc,ic,kernel,pads,dilations,image", FEW)
def test_few_channels(sardonyx, tmp_path, oc, ic, kernel, pads, dilations, image, signed):
    """Weights of at most 6 bits, of which no engine's sums saturate."""
    ort = pytest.importorskip("onnxruntime")
    random = np.random.default_rng(oc * 100 + ic)
    x_type, w_type = (np.int8 if "xs" in signed else np.uint8), (np.int8 if "ws" in signed else np.uint8)
    x = random.integers(*((-128, 128) if "xs" in signed else (0, 256)), (2, ic, *image)).astype(x_type)
    w = random.integers(*((-60, 60) if "ws" in signed else (100, 156)), (oc, ic, *kernel)).astype(w_type)
    facts = {"sx": np.float32(0.02), "zx": x_type(7), "w": w, "zw": w_type(0 if "ws" in signed else 128),
             "sw": random.uniform(0.01, 0.02, oc).astype(np.float32) if "ws" in signed else np.float32(0.013),
             "sy": np.float32(0.02 * 0.015 * 30 * (ic * kernel[0] * kernel[1]) ** 0.5), "zy": x_type(3),
             "b": random.integers(-9000, 9000, oc).astype(np.int32)}
    node = helper.make_node("QLinearConv", ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"], ["y"], pads=pads,
                            dilations=dilations)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(x_type))
    graph = helper.make_graph([node], "few", [helper.make_tensor_value_info("x", kind, x.shape)],
                              [helper.make_tensor_value_info("y", kind, None)],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in facts.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    wanted = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    np.save(tmp_path / "x.npy", x)
    feeds = ("--input", f"x={tmp_path / 'x.npy'}")
    for threads in ("1", "7"):
        sardonyx("run", path, *feeds, "--threads", threads, "--out", tmp_path)
        found = np.load(tmp_path / "y.npy")
        assert found.shape == wanted.shape and np.abs(found.astype(int) - wanted).max() <= 1
        assert np.mean(found != wanted) < 1e-3  # halves that were rounded the other way
    assert "conv_q_few" in sardonyx("profile", path, *feeds).out


@pytest.mark.parametrize("dtype", (np.uint16, np.int16))
def test_sixteen_bits(sardonyx, tmp_path, dtype):
    """Pairs of QuantizeLinear and DequantizeLinear to and from 16 bits round floats where they are,
    once where a Transpose lies between two that are alike."""
    g, middle = Graph("u8"), int(np.iinfo(dtype).max) // 3

    def pair(value, scale, zero=middle):
        params = g.constant(np.float32(scale)), g.constant(dtype(zero))
        return g.op("DequantizeLinear", g.op("QuantizeLinear", value, *params), *params)

    w = g.constant(g.random.standard_normal((21, 17, 3, 3)).astype(np.float32))
    x = pair(g.op("Conv", pair("x", 1e-4), w, pads=[1, 1, 1, 1]), 1e-3)
    x = pair(g.op("Mul", x, pair(g.op("Sigmoid", x), 2e-5, 0)), 1e-3)
    y = pair(g.op("Transpose", x, perm=[0, 2, 3, 1]), 1e-3)
    g.nodes += [helper.make_node("Identity", [y], ["y"]), helper.make_node("Identity", [pair("v", 0.0625)], ["z"])]
    values = np.float32([np.inf, -np.inf, 1e30, -1e30, 0.0, -0.0, 1e-30, -0.01, 99999, -99999])
    feeds = {"x": g.random.standard_normal((2, 17, 9, 8)).astype(np.float32),
             "v": np.concatenate([values, (np.arange(-300, 300, dtype=np.float32) + 0.5) * np.float32(0.0625)])}
    info = helper.make_tensor_value_info
    model = helper.make_model(helper.make_graph(
        g.nodes, "g", [info(n, TensorProto.FLOAT, a.shape) for n, a in feeds.items()],
        [info(n, TensorProto.FLOAT, None) for n in "yz"], g.constants),
        opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with np.errstate(invalid="ignore"):  # the reference casts what is too large before it limits it
        wanted = ReferenceEvaluator(model).run(None, {**feeds, "v": np.clip(feeds["v"], -1e4, 1e4)})
    path, told = tmp_path / "model.onnx", []
    onnx.save(model, path)
    for name, value in feeds.items():
        np.save(tmp_path / f"{name}.npy", value)
        told += ["--input", f"{name}={tmp_path / name}.npy"]
    for threads in ("1", "3"):
        sardonyx("run", path, *told, "--threads", threads, "--out", tmp_path)
        found = [np.load(tmp_path / f"{n}.npy") for n in "yz"]
        assert np.abs(found[0] - wanted[0]).max() <= 2.5e-3 and np.mean(found[0] != wanted[0]) < 0.05
        assert (found[1] == wanted[1]).all()
    ops = {row["op"]: row["nodes"] for row in sardonyx("profile", path, *told, "--json").json["operators"]}
    assert "QuantizeLinear" not in ops and "DequantizeLinear" not in ops and "FakeQuantize" in ops, ops
