# SPDX-License-Identifier: Apache-2.0
"""Random small graphs of convolutions, products, normalisations, activations, additions and poolings
give what onnxruntime gives without any optimisation: no pass joins what does not belong together,
whatever order makes two nodes meet."""
import random

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from case_folder import write_case  # noqa: E402

GRAPHS, GROUPS = 60, 5


class Graph:
    """Nodes over values of one batch; `live` are the names and shapes that a next node may read."""

    def __init__(self, seed):
        self.pick = random.Random(seed)
        self.draw = np.random.default_rng(seed)
        self.nodes, self.constants = [], []
        self.axes = self.pick.choice([0, 1, 2])  # behind the channels; 0: rows of a product
        channels = self.pick.choice([3, 8, 12, 16])
        self.shape = (2, 5, channels) if self.axes == 0 else (2, channels, *(13, 7)[:self.axes])
        self.live = [("x", self.shape)]
        for _ in range(self.pick.randint(4, 11)):
            self.grow()

    def floats(self, *shape):
        return self.draw.uniform(-1, 1, shape).astype(np.float32)

    def constant(self, value):
        self.constants.append(numpy_helper.from_array(np.asarray(value, np.float32), f"k{len(self.constants)}"))
        return self.constants[-1].name

    def add(self, op, inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def product(self, at, shape):
        channels = shape[-1] if self.axes == 0 else shape[1]
        filters = self.pick.choice([channels, 8, 16])
        if self.axes == 0:
            weights = self.constant(self.floats(channels, filters) / channels ** 0.5)
            return self.add("MatMul", [at, weights]), (*shape[:-1], filters)
        size, each = self.pick.choice([1, 3]), channels
        if self.pick.random() < 0.3:
            filters, each = channels, 1
        weights = self.floats(filters, each, *[size] * self.axes) * 2 / (each * size ** self.axes) ** 0.5
        bias = [self.constant(self.floats(filters))] if self.pick.random() < 0.6 else []
        return self.add("Conv", [at, self.constant(weights), *bias], pads=[size // 2] * 2 * self.axes,
                        group=channels // each), (shape[0], filters, *shape[2:])

    def normalisation(self, at, shape):
        if self.axes == 0:
            return self.add("LayerNormalization", [at, *(self.constant(self.floats(shape[-1])) for _ in "ab")])
        facts = [self.constant(self.floats(shape[1]) + lift) for lift in (1.5, 0, 0, 1.5)]
        return self.add("BatchNormalization", [at, *facts])

    def activation(self, at):
        op = self.pick.choice(["Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "Clip", "Silu", "Gelu"])
        if op == "Clip":
            return self.add(op, [at, self.constant(-0.3), self.constant(0.6)])
        if op == "Silu":
            return self.add("Mul", [at, self.add("Sigmoid", [at])])
        if op == "Gelu":
            erf = self.add("Erf", [self.add("Div", [at, self.constant(2 ** 0.5)])])
            return self.add("Mul", [self.add("Mul", [at, self.add("Add", [erf, self.constant(1)])]),
                                    self.constant(0.5)])
        return self.add(op, [at])

    def binary(self, at, shape):
        others = [name for name, other in self.live if other == shape and name != at]
        if others and self.pick.random() < 0.5:
            operands = [at, self.pick.choice(others)]
        else:
            row = (shape[-1],) if self.axes == 0 else (shape[1], *[1] * self.axes)
            operands = [at, self.constant(self.floats(*self.pick.choice([(), (1,), row, (1, *row)])))]
        self.pick.shuffle(operands)
        return self.add(self.pick.choice(["Add", "Mul"]), operands)

    def grow(self):
        at, shape = self.pick.choice(self.live[-3:])
        kind = self.pick.choice(["product", "product", "norm", "act", "act", "binary", "binary", "pool"])
        if kind == "product":
            at, shape = self.product(at, shape)
        elif kind == "norm":
            at = self.normalisation(at, shape)
        elif kind == "binary":
            at = self.binary(at, shape)
        elif kind == "pool" and self.axes:
            at = self.add(self.pick.choice(["MaxPool", "AveragePool"]), [at], kernel_shape=[3] * self.axes,
                          pads=[1] * 2 * self.axes)
        else:
            at = self.activation(at)
        self.live.append((at, shape))

    def model(self):
        outputs = [name for name, _ in self.live[1:][-self.pick.choice([1, 1, 2]):]]
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs], self.constants)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), outputs


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_graphs(sardonyx, tmp_path, group):
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    for seed in range(group * GRAPHS, (group + 1) * GRAPHS):
        graph = Graph(seed)
        model, outputs = graph.model()
        feeds = {"x": graph.floats(*graph.shape)}
        session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        write_case(tmp_path / "cases" / f"graph_{seed}", model, feeds, session.run(outputs, feeds))
    for threads in (1, 3):
        out = sardonyx("test", tmp_path / "cases", "--threads", threads, "--rtol", "1e-4", "--atol", "1e-6",
                       "--peak", "2e-5").out
        assert f"{GRAPHS} passed, 0 failed" in out
