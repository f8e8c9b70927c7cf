# SPDX-License-Identifier: Apache-2.0
"""Graphs that leave lengths open, as exporters write them: right at every size by the ONNX reference
evaluator, and the passes find in them what they find where the lengths are numbers."""
import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from case_folder import write_case
from graphs import Graph, activate

OPSET = 18


class OpenGraph(Graph):
    """The dims of an input are numbers, or names with the lengths in `sizes`."""

    def __init__(self, name, sizes):
        super().__init__(name)
        self.sizes, self.dims, self.is_open = sizes, {}, True
        self.drawn = np.random.default_rng(sum(sizes.values()))  # the weights are those of any size

    def input(self, *dims, kind=np.float32, fed=None):
        """fed: the shape of the data, where that is not what the names say."""
        name = f"x{len(self.inputs)}"
        shape = [self.sizes.get(d, d) for d in dims] if fed is None else fed
        array = self.drawn.standard_normal(shape)
        self.inputs[name] = np.asarray(array > 0 if kind == np.bool_ else array).astype(kind)
        self.dims[name] = dims
        return name

    def length(self, x, axis, rank=1):
        return self.op("Gather", self.op("Shape", x), self.constant(np.array([axis] if rank else axis)), axis=0)

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def shape(self, *parts):
        return self.op("Concat", *[p if isinstance(p, str) else self.ints(p) for p in parts], axis=0)

    def reshape(self, x, *parts):
        return self.op("Reshape", x, self.shape(*parts))

    def expand(self, x, *parts):
        """torch.Tensor.expand: -1 stands for the axis's own length."""
        shape = self.shape(*parts)
        ones = self.op("ConstantOfShape", self.op("Shape", shape), value=helper.make_tensor("v", TensorProto.INT64, [1], [1]))
        own = self.op("Equal", shape, self.op("Mul", ones, self.ints(-1)))
        return self.op("Expand", x, self.op("Where", own, ones, shape))

    def linear(self, x, k, n):
        return self.op("Add", self.op("MatMul", x, self.weight(k, n)), self.weight(n))

    def model(self, outputs):
        infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype),
                                               self.dims[n] if self.is_open else a.shape)
                 for n, a in self.inputs.items()]
        graph = helper.make_graph(self.nodes, self.name, infos, [onnx.ValueInfoProto(name=n) for n in outputs],
                                  self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        return model

    def save(self, folder, number, outputs):
        """The open graph with one set of data for each of its sizes, and one for each size with numbers."""
        expected = self.run(outputs)
        for self.is_open, to in ((True, folder / "open" / self.name), (False, folder / "fixed" / f"{self.name}_{number}")):
            model = self.model(outputs)
            for info, array in zip(model.graph.output, expected):
                info.CopyFrom(helper.make_tensor_value_info(info.name, TensorProto.FLOAT, [None] * array.ndim))
            write_case(to, model, self.inputs, expected, number if self.is_open else 0)


def tokens(g, heads=4, size=8, shared=1):
    """Attention of PyTorch: heads by view and transpose, a table of positions cut to the length, a mask of
    bools that is expanded, keys and values for several heads."""
    width, masked = heads * size, g.input("batch", "seq", kind=np.bool_)
    x = g.input("batch", "seq", width)
    length = g.length(x, 1)
    places = g.op("Slice", g.weight(1, 40, width), g.ints(0), length, g.ints(1))
    x = g.op("Add", x, places)
    batch = g.length(x, 0)

    def split(y, n):
        return g.op("Transpose", g.reshape(y, batch, length, n, size), perm=[0, 2, 1, 3])

    q = split(g.linear(x, width, width), heads)
    k, v = [split(g.linear(x, width, width // shared), heads // shared) for _ in range(2)]
    if shared > 1:
        k, v = [g.reshape(g.expand(g.op("Unsqueeze", y, g.ints(2)), g.length(y, 0), heads // shared, shared,
                                   g.length(y, 2), size), g.length(y, 0), heads, g.length(y, 2), size)
                for y in (k, v)]
    mask = g.expand(g.op("Unsqueeze", masked, g.ints(1, 2)), batch, 1, length, -1)
    mask = g.op("Where", mask, g.constant(np.float32(0)), g.constant(np.float32(-1e4)))
    scale = g.constant(np.float32(size ** -0.25))
    turned = g.op("Mul", g.op("Transpose", k, perm=[0, 1, 3, 2]), scale)
    scores = g.op("Add", g.op("MatMul", g.op("Mul", q, scale), turned), mask)
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    y = g.reshape(y, g.length(y, 0), heads, g.length(q, 2), g.length(v, 3))
    y = g.reshape(g.op("Transpose", y, perm=[0, 2, 1, 3]), batch, length, -1)
    return [g.op("Add", g.linear(y, width, width), x)]


def shared_heads(g):
    return tokens(g, shared=2)


def attend(g, q, k, v, batch, length, width):
    """Of [batch, heads, rows, 8], the result as tokens again."""
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.constant(np.float32(8 ** -0.5)))
    y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return g.linear(g.reshape(y, batch, length, width), width, width)


def joined(g):
    """timm's attention: queries, keys and values of one product, taken apart behind a Transpose."""
    x = g.input("batch", "seq", 16)
    batch, length = g.length(x, 0), g.length(x, 1)
    y = g.op("Transpose", g.reshape(g.linear(x, 16, 48), batch, length, 3, 2, 8), perm=[2, 0, 3, 1, 4])
    parts = [g.op("Gather", y, g.constant(np.array(i)), axis=0) for i in range(3)]
    return [g.op("Add", attend(g, *parts, batch, length, 16), x)]


def joined_rows(g):
    """GPT-2's: all tokens are the rows of one Gemm, whose columns are split."""
    x = g.input("batch", "seq", 16)
    batch, length = g.length(x, 0), g.length(x, 1)
    y = g.op("Gemm", g.reshape(x, -1, 16), g.weight(16, 48), g.weight(48))
    parts = g.op("Split", g.reshape(y, batch, length, 48), g.ints(16, 16, 16), outputs=3, axis=2)
    parts = [g.op("Transpose", g.reshape(p, batch, length, 2, 8), perm=[0, 2, 1, 3]) for p in parts]
    return [g.op("Add", attend(g, *parts, batch, length, 16), x)]


def shortcuts(g):
    """A residual block with stride 2: both ways come to the same lengths, odd or even."""
    x = g.input("n", 8, "h", "w")
    for k in range(2):
        y = activate(g, g.conv(x, 8, 8, stride=2), "Relu")
        y = g.op("Add", g.conv(y, 8, 8), g.conv(x, 8, 8, kernel=1, stride=2))
        x = g.op("Relu", y)
    return [x]


def pooled(g):
    """Down by a pool, up by a transposed convolution and by Resize to the same lengths."""
    x = g.conv(g.input("n", 8, "h", "w"), 8, 16)
    y = g.conv(g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), 16, 16)
    up = g.op("ConvTranspose", y, g.weight(16, 16, 2, 2), kernel_shape=[2, 2], strides=[2, 2])
    wide = g.op("Resize", y, "", g.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest",
                coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    return [g.op("Relu", g.op("Add", g.conv(up, 16, 8), g.conv(wide, 16, 8))), g.op("Neg", x)]


def images_of_tokens(g):
    """SegFormer's layer: tokens become an image again, of the lengths that it had before."""
    image = g.conv(g.input("n", 3, "h", "w"), 3, 16, stride=2)
    x = g.op("Transpose", g.op("Reshape", image, g.op("Concat", g.op("Slice", g.op("Shape", image), g.ints(0), g.ints(2)),
                                                      g.ints(-1), axis=0)), perm=[0, 2, 1])
    y = g.linear(x, 16, 48)
    turned = g.op("Transpose", y, perm=[0, 2, 1])
    y = g.reshape(turned, g.length(y, 0), g.length(y, 2), g.length(image, 2), g.length(image, 3))
    y = g.conv(y, 48, 48, group=48)
    y = g.op("Reshape", y, g.op("Concat", g.op("Slice", g.op("Shape", y), g.ints(0), g.ints(2)), g.ints(-1), axis=0))
    return [g.op("Add", g.linear(activate(g, g.op("Transpose", y, perm=[0, 2, 1]), "Gelu"), 48, 16), x)]


def windows(g, side=4):
    """Windows of tokens whose number comes from the lengths, and back, with heads inside."""
    x = g.input("n", 12, 8, 16)
    high, wide = (g.op("Div", g.length(x, axis), g.ints(side)) for axis in (1, 2))
    y = g.reshape(x, g.length(x, 0), high, side, wide, side, g.length(x, 3))
    y = g.reshape(g.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), -1, side * side, g.length(x, 3))
    q, k, v = [g.op("Transpose", g.reshape(g.linear(y, 16, 16), g.length(y, 0), g.length(y, 1), 2, 8), perm=[0, 2, 1, 3])
               for _ in range(3)]
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    z = g.op("MatMul", g.op("Softmax", g.op("Add", scores, g.weight(1, 2, 16, 16)), axis=-1), v)
    z = g.reshape(g.op("Transpose", z, perm=[0, 2, 1, 3]), g.length(y, 0), g.length(y, 1), 16)
    z = g.reshape(g.linear(z, 16, 16), -1, high, wide, side, side, 16)
    return [g.op("Add", g.reshape(g.op("Transpose", z, perm=[0, 1, 3, 2, 4, 5]), -1, 12, 8, 16), x)]


def padded(g):
    """TensorFlow's SAME: pads reckoned from lengths, which stay open, so nothing is known behind them."""
    x = activate(g, g.conv(g.input("n", 8, "h", "w"), 8, 8, stride=2), "Silu")
    rest = [g.op("Mod", g.length(x, axis), g.ints(2)) for axis in (2, 3)]
    x = g.op("Pad", x, g.op("Concat", g.ints(0, 0, 0, 0, 0, 0), *rest, axis=0))
    return [activate(g, g.conv(x, 8, 8, stride=2, pad=0), "Silu")]


def views(g):
    """Transposes and a Gather that only move lengths of 1: what is open stays where it is, or moves alone."""
    x = g.op("Relu", g.input("batch", 1, 7, 1, 6))
    y = g.op("Transpose", x, perm=[0, 2, 1, 3, 4])
    z = g.op("Gather", y, g.constant(np.array(0)), axis=3)
    alone = g.op("Transpose", g.op("Relu", g.input(1, "seq", 8)), perm=[1, 0, 2])
    return [g.op("Neg", z), g.op("Neg", alone)]


def two_open(g):
    """A Transpose that moves a length behind one of 1 while another is open, which may be 0."""
    x = g.op("Relu", g.input("batch", 1, "seq", 8))
    return [g.op("Neg", g.op("Transpose", x, perm=[0, 2, 1, 3]))]


def lists(g):
    """What ONNX Runtime's optimiser asks: a place of the permuted shape of what was turned before."""
    x = g.op("Relu", g.input("batch", 6, 8))
    dims = g.op("Gather", g.op("Shape", x), g.ints(0, 2, 1), axis=0)
    half = g.op("Div", g.op("Gather", dims, g.ints(1), axis=0), g.ints(2))
    both = g.op("Concat", half, g.op("Slice", dims, g.ints(2), g.ints(3)), axis=0)
    y = g.op("Slice", g.op("Transpose", x, perm=[0, 2, 1]), g.ints(0), g.op("Gather", both, g.ints(0), axis=0), g.ints(1))
    return [g.op("Neg", y)]


def one_name(g):
    """Two inputs whose lengths have one name and differ all the same, which nothing forbids: texts and images."""
    y, x = g.input("n", 4, fed=(g.sizes["other"], 4)), g.input("n", 4)
    z = g.op("Add", g.op("Relu", x), y)
    wide = g.op("Expand", y, g.op("Shape", x))
    return [g.op("Neg", g.reshape(z, g.length(z, 0), 2, 2)), g.op("Neg", wide)]


TOKENS = [{"batch": b, "seq": s} for b, s in ((1, 7), (2, 40), (3, 1))]
IMAGES = [{"n": n, "h": h, "w": w} for n, h, w in ((1, 16, 12), (2, 17, 11), (1, 9, 30))]
FAMILIES = [(tokens, TOKENS), (shared_heads, TOKENS), (joined, TOKENS), (joined_rows, TOKENS), (shortcuts, IMAGES),
            (images_of_tokens, IMAGES), (pooled, IMAGES), (views, TOKENS), (lists, [{"batch": 2}, {"batch": 5}]),
            (two_open, [*TOKENS, {"batch": 0, "seq": 5}, {"batch": 2, "seq": 0}]), (windows, [{"n": 1}, {"n": 3}]), (padded, IMAGES),
            (one_name, [{"n": n, "other": m} for n, m in ((3, 3), (5, 1), (2, 2))])]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lengths")
    for family, all_sizes in FAMILIES:
        for number, sizes in enumerate(all_sizes):
            g = OpenGraph(family.__name__, sizes)
            g.save(folder, number, family(g))
    return folder


@pytest.mark.parametrize("level", ("none", "basic", "extended"))
def test_right(sardonyx, cases, level):
    """Each size by itself, and one after the other in one session."""
    done = sardonyx("test", cases, "--rtol", "1e-4", "--peak", "1e-5", "--level", level, code=None)
    assert done.code == 0, done.out
    assert f"{2 * sum(len(sizes) for _, sizes in FAMILIES)} passed, 0 failed" in done.out


@pytest.mark.parametrize("family", [f.__name__ for f, _ in FAMILIES if f not in (padded, one_name, two_open)])
def test_as_fixed(sardonyx, cases, family):
    """The same steps as with numbers for the lengths; not of pads, which are constants then, and of lengths of
    1, which need less."""
    def kernels(model, data):
        out = sardonyx("profile", model / "model.onnx", "--inputs", data, "--runs", 1, "--top", 0, "--json").out
        return sorted(n["kernel"] for n in json.loads(out.strip().split("\n")[-1])["nodes"])

    for number in (0, 1):
        data = cases / "open" / family / f"test_data_set_{number}"
        assert kernels(cases / "open" / family, data) == kernels(cases / "fixed" / f"{family}_{number}", data)
