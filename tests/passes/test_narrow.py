# SPDX-License-Identifier: Apache-2.0
"""Graphs of f16 and bf16, which run as f32 ones with 16-bit weights. The expected outputs are those
of the same graph in f32 by the ONNX reference evaluator, rounded once."""
import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from case_folder import write_case
from graphs import Graph

OPSET = 22  # the first with a bf16 Conv

TYPES = {"f16": (np.float16, TensorProto.FLOAT16), "bf16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16)}


class NarrowGraph(Graph):
    """A graph written in f32 whose weights and inputs the narrow type holds; `keep` stay f32."""

    def __init__(self, name, kind):
        super().__init__(f"{name}_{kind}")
        self.narrow, self.number = TYPES[kind]
        self.keep = set()

    def input(self, *shape):
        name = super().input(*shape)
        self.inputs[name] = self.inputs[name].astype(self.narrow).astype(np.float32)
        return name

    def constant(self, array):
        array = np.asarray(array)
        if array.dtype == np.float32:
            array = array.astype(self.narrow).astype(np.float32)
        return super().constant(array)

    def kept(self, array):
        name = super().constant(np.asarray(array, np.float32))
        self.keep.add(name)
        return name

    def model(self, outputs, weights, number):
        infos = [helper.make_tensor_value_info(n, number, a.shape) for n, a in self.inputs.items()]
        graph = helper.make_graph(self.nodes, self.name, infos, outputs, weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        return model

    def save(self, folder, outputs):
        named = [onnx.ValueInfoProto(name=name) for name in outputs]
        wide = self.model(named, self.weights, TensorProto.FLOAT)
        expected = ReferenceEvaluator(wide).run(list(outputs), self.inputs)
        expected = [a.astype(self.narrow) if a.dtype == np.float32 else a for a in expected]
        weights = []
        for w in self.weights:
            array = numpy_helper.to_array(w)
            if array.dtype == np.float32 and w.name not in self.keep:
                w = numpy_helper.from_array(array.astype(self.narrow), w.name)
            weights.append(w)
        infos = [helper.make_tensor_value_info(
            n, self.number if a.dtype == self.narrow else helper.np_dtype_to_tensor_dtype(a.dtype),
            a.shape) for n, a in zip(outputs, expected)]
        inputs = [a.astype(self.narrow) for a in self.inputs.values()]
        write_case(folder / self.name, self.model(infos, weights, self.number), inputs, expected)


def convolutions(folder, kind):
    for batch, channels in ((1, 24), (2, 40)):
        g = NarrowGraph(f"convolutions_{channels}", kind)
        x = g.op("Relu", g.conv(g.input(batch, 3, 26, 22), 3, channels, kernel=5, stride=2))
        y = g.op("Add", x, g.conv(g.op("Relu", g.conv(x, channels, channels)), channels, channels))
        y = g.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
        y = g.op("Clip", g.conv(y, channels, channels, group=channels), g.constant(np.float32(0)),
                 g.constant(np.float32(6)))
        a, b = g.op("Split", y, outputs=2, num_outputs=2, axis=1)
        y = g.op("Concat", g.conv(a, channels // 2, 9, kernel=1), b, axis=1)
        up = g.op("Resize", y, "", g.kept([1, 1, 2, 2]), mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        y = g.op("ConvTranspose", up, g.weight(9 + channels // 2, 10, 2, 2), strides=[2, 2])
        z = g.op("Conv", g.op("Transpose", y, perm=[0, 1, 3, 2]), g.weight(12, 5, 3, 3), group=2)
        mean = g.op("GlobalAveragePool", z)
        g.save(folder, [z, g.op("Gemm", g.op("Flatten", mean), g.weight(7, 12), g.weight(7), transB=1)])

    g = NarrowGraph("groups", kind)
    x = g.conv(g.input(2, 3, 20, 21), 3, 24)
    g.save(folder, [g.conv(g.conv(x, 24, 24, group=3, stride=2), 24, 24, group=6)])

    g = NarrowGraph("winograd", kind)
    x = g.conv(g.input(1, 32, 28, 28), 32, 64)
    g.save(folder, [g.conv(g.op("Relu", x), 64, 32, bias=False)])

    g = NarrowGraph("batch_norm", kind)
    y = g.conv(g.input(2, 16, 9, 9), 16, 16)
    n = [g.weight(16) for _ in range(3)]
    g.save(folder, [g.op("BatchNormalization", y, *n, g.constant(np.full(16, 2, np.float32)))])


def transformers(folder, kind):
    for rows in (1, 3, 17):
        g = NarrowGraph(f"transformer_{rows}", kind)
        x = g.op("Gather", g.weight(50, 64), g.constant(np.arange(rows, dtype=np.int64) % 50))
        x = g.op("Reshape", g.op("Add", x, g.input(rows, 64)), g.constant(np.array([1, rows, 64])))
        y = g.op("LayerNormalization", x, g.weight(64), g.weight(64))
        heads = []
        for _ in range(3):
            h = g.op("Add", g.op("MatMul", y, g.weight(64, 64)), g.weight(64))
            heads.append(g.op("Transpose", g.op("Reshape", h, g.constant(np.array([1, rows, 4, 16]))),
                              perm=[0, 2, 1, 3]))
        scores = g.op("MatMul", heads[0], g.op("Transpose", heads[1], perm=[0, 1, 3, 2]))
        scores = g.op("Softmax", g.op("Mul", scores, g.constant(np.float32(0.25))), axis=-1)
        y = g.op("Transpose", g.op("MatMul", scores, heads[2]), perm=[0, 2, 1, 3])
        y = g.op("Reshape", y, g.constant(np.array([1, rows, 64])))
        x = g.op("Add", x, g.op("MatMul", y, g.weight(64, 64)))
        y = g.op("Mul", x, g.op("Sigmoid", g.op("MatMul", x, g.weight(64, 64))))
        y = g.op("Mul", g.op("MatMul", y, g.weight(64, 200, scale=0.1)), g.weight(200))
        g.save(folder, [x, g.op("MatMul", y, g.weight(200, 333, scale=0.1))])


def masked(folder, kind):
    """A mask so large that it stays narrow."""
    g = NarrowGraph("masked", kind)
    q, k, v = [g.op("Transpose", g.op("Reshape", g.op("MatMul", g.input(1, 150, 32), g.weight(32, 64)),
                                      g.constant(np.array([1, 150, 4, 16]))), perm=[0, 2, 1, 3]) for _ in range(3)]
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.constant(np.float32(0.25)))
    y = g.op("MatMul", g.op("Softmax", g.op("Add", scores, g.weight(4, 150, 150)), axis=-1), v)
    g.save(folder, [g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.constant(np.array([1, 150, 64])))])


def borders(folder, kind):
    """Readers that want the rounded values: bodies, jumps, integers, an output in the middle."""
    g = NarrowGraph("borders", kind)
    y = g.op("MatMul", g.input(4, 24), g.weight(24, 20))
    bodies = {}
    for name, op in (("then_branch", "Neg"), ("else_branch", "Relu")):
        bodies[name] = helper.make_graph([helper.make_node(op, [y], ["out"])], name, [],
                                         [onnx.ValueInfoProto(name="out")])
    z = g.op("If", g.constant(np.array(True)), **bodies)
    whole = g.op("Floor", g.op("Mul", g.input(4, 20), g.constant(np.float32(4))))
    index = g.op("Cast", whole, to=TensorProto.INT64)
    g.save(folder, [y, g.op("Add", g.op("Mul", z, y), whole), index])


@pytest.fixture(scope="module", params=TYPES)
def graphs(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("narrow")
    for family in (convolutions, transformers, masked, borders):
        family(folder, request.param)
    return request.param, folder


# Steps of f16 and bf16 near a value, and of what sums to it.
BOUNDS = {"f16": ("1e-3", "1e-3"), "bf16": ("8e-3", "4e-3")}
# Where each operator rounds, as the standard's reference does it.
ROUNDED = {"f16": ("1e-2", "1e-2"), "bf16": ("8e-2", "8e-2")}


@pytest.mark.parametrize("cpu", ("generic", "avx512vnni"))
@pytest.mark.parametrize("level", ("none", "extended"))
def test_narrow(sardonyx, graphs, level, cpu):
    kind, folder = graphs
    rtol, peak = (ROUNDED if level == "none" else BOUNDS)[kind]
    done = sardonyx("test", folder, "--rtol", rtol, "--peak", peak, "--level", level, "--cpu", cpu,
                    code=None)
    assert done.code == 0, done.out


def test_threads(sardonyx, graphs):
    """The same bits whatever the number of threads."""
    rtol, peak = BOUNDS[graphs[0]]
    runs = [sardonyx("test", graphs[1], "--rtol", rtol, "--peak", peak, "--digest", "--threads", n,
                     code=None).out for n in (1, 2, 7)]
    assert runs[0] == runs[1] == runs[2]


def test_fused(sardonyx, graphs):
    kind, folder = graphs
    for name, wanted, unwanted in (("masked", "attention_f32", "Softmax"), ("groups", "conv_block_group", "conv_f32")):
        out = sardonyx("profile", folder / f"{name}_{kind}" / "model.onnx", "--cpu", "avx2", "--top", 0).out
        assert wanted in out and unwanted not in out, out
