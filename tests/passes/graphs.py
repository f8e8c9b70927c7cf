# SPDX-License-Identifier: Apache-2.0
"""Graphs built node by node, with expected outputs from the ONNX reference evaluator."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from case_folder import write_case

OPSET = 17


class Graph:
    """A graph in the making: values have names, weights are drawn from one generator."""

    def __init__(self, name):
        self.name, self.nodes, self.weights, self.inputs = name, [], [], {}
        self.random = np.random.default_rng(sum(name.encode()))

    def input(self, *shape):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.random.standard_normal(shape).astype(np.float32)
        return name

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape, scale=0.3):
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def conv(self, x, channels, out, kernel=3, stride=1, group=1, bias=True, pad=None):
        pad = kernel // 2 if pad is None else pad
        operands = [x, self.weight(out, channels // group, kernel, kernel)]
        if bias:
            operands.append(self.weight(out))
        return self.op("Conv", *operands, kernel_shape=[kernel] * 2, strides=[stride] * 2,
                       pads=[pad] * 4, group=group)

    def model(self, outputs):
        infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape)
                 for n, a in self.inputs.items()]
        graph = helper.make_graph(self.nodes, self.name, infos,
                                  [onnx.ValueInfoProto(name=name) for name in outputs], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        return model

    def run(self, outputs):
        """By the reference evaluator."""
        return ReferenceEvaluator(self.model(outputs)).run(list(outputs), self.inputs)

    def save(self, folder, outputs, expected=None):
        """As an ONNX test folder. expected: where the evaluator does not know the operators."""
        model = self.model(outputs)
        expected = self.run(outputs) if expected is None else expected
        for info, array in zip(model.graph.output, expected):
            info.CopyFrom(helper.make_tensor_value_info(info.name, TensorProto.FLOAT, array.shape))
        write_case(folder / self.name, model, self.inputs, expected)


ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "Silu", "Clip")


def activate(g, x, kind):
    if kind == "Silu":
        return g.op("Mul", x, g.op("Sigmoid", x))
    if kind == "Clip":
        return g.op("Clip", x, g.constant(np.float32(-0.2)), g.constant(np.float32(0.7)))
    if kind == "Gelu":
        erf = g.op("Erf", g.op("Div", x, g.constant(np.float32(2 ** 0.5))))
        return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.constant(np.float32(1)))), g.constant(np.float32(0.5)))
    return g.op(kind, x) if kind else x
