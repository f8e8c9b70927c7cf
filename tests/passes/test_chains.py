# SPDX-License-Identifier: Apache-2.0
"""Elementwise chains: right by the ONNX reference evaluator, and to the bit what the nodes give one
by one, each as a model of its own."""
import json

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from case_folder import write_case

OPSET = 18
F32, F16, F64, I32, I64, BOOL = (np.float32, np.float16, np.float64, np.int32, np.int64, np.bool_)


class Chain:
    """A graph with inputs of any type. `joined`: members of the chains that it must have."""

    def __init__(self, name, *joined):
        self.name, self.joined = name, list(joined)
        self.nodes, self.inputs, self.weights = [], {}, {}
        self.random = np.random.default_rng(sum(name.encode()))

    def array(self, shape, dtype, scale):
        a = self.random.standard_normal(shape) * scale
        return np.asarray(a > 0 if dtype is BOOL else a).astype(dtype)

    def input(self, *shape, dtype=F32, scale=2):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.array(shape, dtype, scale)
        return name

    def weight(self, *shape, dtype=F32, scale=2):
        return self.constant(self.array(shape, dtype, scale))

    def constant(self, value, dtype=F32):
        name = f"w{len(self.weights)}"
        self.weights[name] = value if isinstance(value, np.ndarray) else np.array(value, dtype)
        return name

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def cast(self, x, dtype):
        return self.op("Cast", x, to=int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype))))

    def model(self, nodes, outputs, inputs, weights, values):
        info = {n: helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(values[n].dtype), values[n].shape)
            for n in [*inputs, *outputs]}
        graph = helper.make_graph(nodes, self.name, [info[n] for n in inputs],
                                  [info[n] for n in outputs],
                                  [numpy_helper.from_array(w, n) for n, w in weights.items()])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        made.ir_version = 8
        return made

    def values(self):
        """What the reference evaluator gives for every name."""
        names = [o for n in self.nodes for o in n.output]
        graph = helper.make_graph(
            self.nodes, self.name,
            [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for n, a in self.inputs.items()], [onnx.ValueInfoProto(name=n) for n in names],
            [numpy_helper.from_array(w, n) for n, w in self.weights.items()])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(made).run(names, self.inputs)
        return {**self.inputs, **self.weights, **{n: np.asarray(a) for n, a in zip(names, found)}}


def save(folder, made, inputs, outputs, values):
    write_case(folder, made, {name: values[name] for name in inputs}, {name: values[name] for name in outputs})


# ---- the graphs: each returns its outputs ----

def broadcasts():
    for tag, shape in (("scalar", ()), ("one", (1,)), ("row", (70,)), ("channel", (6, 1, 1)),
                       ("image", (4, 1, 1, 1)), ("column", (50, 1)), ("plane", (1, 1, 50, 70)),
                       ("both", (6, 1, 70)), ("ends", (4, 1, 1, 70))):
        for where in ("first", "middle", "last"):
            g = Chain(f"broadcast_{tag}_{where}", 4)
            x = g.input(4, 6, 50, 70)
            steps = {"first": (g.input(*shape), g.weight()), "middle": (g.weight(), g.input(*shape)),
                     "last": (g.weight(), g.weight())}[where]
            y = g.op("Abs", g.op("Add", g.op("Mul", steps[0], x), steps[1]))
            yield g, [g.op("Sub", g.input(*shape) if where == "last" else g.weight(), y)]
    g = Chain("broadcast_both_ways", 3)  # the first operator's result is larger than its operands
    y = g.op("Mul", g.input(37, 1, 90), g.input(1, 41, 90))
    yield g, [g.op("Max", g.op("Sub", y, g.input(41, 1)), g.weight(90))]
    g = Chain("broadcast_short_rows", 3)
    y = g.op("Add", g.input(900, 7, 5), g.input(900, 7, 1))
    yield g, [g.op("Mul", g.op("Tanh", y), g.input(5))]


def types():
    g = Chain("types_where", 6)
    x = g.input(5, 3000)
    y = g.op("Where", g.op("Greater", x, g.weight()), g.op("Exp", x), g.weight(3000))
    yield g, [g.op("Mul", g.cast(g.cast(y, I32), F32), g.weight(5, 1))]
    g = Chain("types_wider", 5)
    x = g.input(4000, dtype=I32, scale=1000)
    y = g.op("Mul", g.cast(g.op("Add", x, g.constant(7, I32)), F64), g.constant(0.25, F64))
    yield g, [g.op("Sqrt", g.op("Abs", y))]
    g = Chain("types_logic", 6)
    x = g.input(70, 90)
    y = g.op("And", g.op("Less", x, g.weight(90)), g.op("Not", g.op("Equal", x, x)))
    yield g, [g.cast(g.op("Or", y, g.input(70, 1, dtype=BOOL)), I64)]
    g = Chain("types_clip", 4)
    y = g.op("Clip", g.op("Add", g.input(3, 999, dtype=I64, scale=50), g.constant(3, I64)),
             g.constant(-20, I64), g.constant(31, I64))
    yield g, [g.op("Neg", g.op("Mul", y, g.input(999, dtype=I64, scale=9)))]
    g = Chain("types_half", 9)  # a conversion to f32 and one back around each operator
    y = g.op("Tanh", g.op("Mul", g.input(31, 200, dtype=F16), g.constant(0.5, F16)))
    yield g, [g.op("Add", y, g.input(200, dtype=F16))]
    g = Chain("types_that_may_fail", 2, 2)  # a division of integers stays a step of its own
    x = g.input(3000, dtype=I32, scale=300)
    y = g.op("Div", g.op("Neg", g.op("Abs", x)), g.constant(7, I32))
    yield g, [g.op("Add", g.op("Abs", y), x)]


def readers():
    g = Chain("readers_inside", 4)
    a = g.op("Sub", g.input(3, 5000), g.weight(5000))
    t = g.op("Tanh", a)
    yield g, [g.op("Add", g.op("Mul", t, a), t)]
    g = Chain("readers_outside", 3)  # what another operator reads too is written by the chain
    a = g.op("Add", g.input(40, 300), g.weight(300))
    b = g.op("Sqrt", g.op("Abs", a))
    yield g, [g.op("ReduceSum", a, g.constant([1], I64)), g.op("MatMul", b, g.weight(300, 4))]
    g = Chain("readers_results", 3)
    a = g.op("Exp", g.input(2, 4444, scale=1))
    b = g.op("Neg", a)
    yield g, [a, b, g.op("Mul", a, b)]
    g = Chain("readers_between", 2)  # the product reads what the chain would otherwise hold back
    a = g.op("Relu", g.input(64, 64))
    b = g.op("Add", g.op("MatMul", a, a), g.op("Mul", a, g.weight()))
    yield g, [g.op("Abs", b)]


def order():
    g = Chain("order_two_branches", 3)  # Sigmoid lies in the product's epilogue
    x = g.input(48, 64)
    s = g.op("Sigmoid", g.op("MatMul", x, g.weight(64, 80)))
    t = g.op("Cos", g.op("MatMul", x, g.weight(64, 80)))
    yield g, [g.op("Mul", g.op("Mul", s, t), g.weight(80))]
    g = Chain("order_transposed", 2)  # read in another order: no chain across it
    v = g.op("Exp", g.input(70, 70, scale=1))
    t = g.op("Transpose", v, perm=[1, 0])
    yield g, [g.op("Add", g.op("Mul", v, g.weight()), t)]
    g = Chain("order_view", 5)  # a view in the middle does not cut it
    y = g.op("Neg", g.op("Mul", g.input(6, 500), g.weight(500)))
    y = g.op("Reshape", y, g.constant([500, 6], I64))
    yield g, [g.op("Sqrt", g.op("Abs", g.op("Add", y, g.weight(6))))]
    g = Chain("order_pieces", 2, 2, 2, 2)
    a, b = g.op("Split", g.op("Exp", g.op("Neg", g.input(2, 3000))), outputs=2, axis=0, num_outputs=2)
    y = g.op("Concat", g.op("Abs", g.op("Mul", a, b)), g.op("Tanh", g.op("Sub", b, a)), axis=0)
    yield g, [g.op("Floor", g.op("Mul", y, g.constant(10.0)))]
    g = Chain("order_sums", 9)
    a, b, c, d = (g.input(33, 100) for _ in range(4))
    yield g, [g.op("Max", g.op("Sum", a, b, c, d), g.op("Mean", d, c, b), g.op("Neg", a))]
    g = Chain("order_of_many", 32, 13)
    x = y = g.input(1500)
    for i in range(45):
        y = g.op("Sub", x, y) if i % 3 else g.op("Mul", y, g.constant(0.9))
    yield g, [y]
    g = Chain("order_wide", 27)  # many values at once
    x = g.input(2000)
    values = [g.op("Mul", x, g.constant(0.3 * (i + 1))) for i in range(14)]
    while len(values) > 1:
        values = [g.op("Add", *values[i:i + 2]) for i in range(0, len(values) - 1, 2)] + (
            values[-1:] if len(values) % 2 else [])
    yield g, values


def shapes():
    for tag, shape in (("none", (0, 5)), ("rank_0", ()), ("one", (1,)), ("small", (3, 1, 2)),
                       ("odd", (63,)), ("large", (3, 77777))):
        g = Chain(f"shape_{tag}", *([4] if tag != "none" else []))
        y = g.op("Mul", g.op("Add", g.input(*shape), g.weight()), g.input(*shape))
        yield g, [g.op("Sub", g.op("Ceil", y), g.weight())]
    for channels in (5, 16, 20):
        g = Chain(f"shape_blocked_{channels}", 3, 2)
        y = g.op("Conv", g.input(1, 3, 14, 30), g.weight(channels, 3, 3, 3), pads=[1] * 4)
        z = g.op("Conv", y, g.weight(channels, channels, 1, 1))
        z = g.op("Abs", g.op("Add", g.op("Sub", g.weight(channels, 1, 1), z), y))
        yield g, [g.op("Conv", g.op("Mul", z, g.op("Floor", y)), g.weight(7, channels, 1, 1))]


def rows():
    """Sums and other reductions of rows take what a chain, or one operator, makes."""
    def over(g, op, x, *axes):
        return g.op(op, x, g.constant(np.array(axes or (-1,), I64)), keepdims=0)
    for run in (52, 64, 85, 128, 300, 1001, 4096):
        for count in (1, 3, 130) if run > 100 else (1, 700):
            g = Chain(f"rows_{run}_{count}", 2)
            y = g.op("Sub", g.input(count, run), g.weight(run))
            yield g, [over(g, "ReduceSum", g.op("Mul", y, y))]
    g = Chain("rows_pairs", 2)
    y = g.op("Sub", g.input(37, 1, 96), g.input(1, 41, 96))
    yield g, [g.op("Sqrt", over(g, "ReduceSum", g.op("Mul", y, y)))]
    g = Chain("rows_two_axes", 2)
    yield g, [over(g, "ReduceMax", g.op("Neg", g.op("Abs", g.input(9, 11, 8, 16))), 2, 3)]
    g = Chain("rows_counted", 2)
    yield g, [over(g, "ReduceSum", g.cast(g.op("Greater", g.input(50, 20, 1), g.weight(30)), I64))]
    g = Chain("rows_double", 2)
    yield g, [over(g, "ReduceMean", g.op("Abs", g.op("Mul", g.input(60, 90, dtype=F64), g.constant(0.3, F64))))]
    g = Chain("rows_of_one")
    yield g, [over(g, "ReduceMean", g.op("Mul", g.input(300, 256), g.input(300, 256)))]
    g = Chain("rows_that_leave", 2)
    y = g.op("Abs", g.op("Neg", g.input(30, 128)))
    yield g, [over(g, "ReduceL2", y), y]
    g = Chain("rows_read_twice", 2, 2)
    y = g.op("Abs", g.op("Neg", g.input(30, 128)))
    yield g, [g.op("Floor", g.op("Sub", y, g.op("Unsqueeze", over(g, "ReduceMin", y), g.constant(np.array([1], I64)))))]
    g = Chain("rows_too_long", 2)
    yield g, [over(g, "ReduceL1", g.op("Sub", g.op("Neg", g.input(4, 5001)), g.weight(5001)))]


def graphs():
    for make in (broadcasts, types, readers, order, shapes, rows):
        for g, outputs in make():
            yield pytest.param(g, outputs, id=g.name)


def digests(sardonyx, folder, *options):
    done = sardonyx("test", folder, "--rtol", "1e-4", "--peak", "1e-5", "--digest", *options, code=None)
    assert done.code == 0, done.out
    return done.out


@pytest.mark.parametrize("g, outputs", list(graphs()))
def test_chains(sardonyx, tmp_path, g, outputs):
    values = g.values()
    made = g.model(g.nodes, outputs, list(g.inputs), g.weights, values)
    save(tmp_path / g.name, made, list(g.inputs), outputs, values)
    runs = [digests(sardonyx, tmp_path / g.name, "--threads", n) for n in (1, 2, 7)]
    assert runs[0] == runs[1] == runs[2]
    profile = sardonyx("profile", tmp_path / g.name / "model.onnx", "--runs", 1, "--top", 0, "--json").out
    kernels = [n["kernel"] for n in json.loads(profile.strip().split("\n")[-1])["nodes"]]
    found = [int(k.partition("chain of ")[2].split(":")[0]) for k in kernels if "chain of " in k]
    assert sorted(found) == sorted(g.joined), kernels


def run_one(sardonyx, folder, made, names, values):
    """What the engine gives for a model of one node."""
    save(folder, made, names, [], values)
    sardonyx("run", folder / "model.onnx", "--inputs", folder / "test_data_set_0", "--out", folder,
             "--level", "none")
    return {o.name: np.load(folder / f"{o.name}.npy") for o in made.graph.output}


EXACT = ["broadcast_channel_middle", "broadcast_short_rows", "types_where", "types_logic", "types_half",
         "readers_inside", "order_view", "order_wide", "shape_large", "rows_85_700", "rows_300_130", "rows_pairs",
         "rows_two_axes", "rows_counted", "rows_double", "rows_of_one"]


@pytest.mark.parametrize("g, outputs", [p for p in graphs() if p.id in EXACT])
def test_bits(sardonyx, tmp_path, g, outputs):
    """The chain's bits are those of its nodes one by one."""
    values = g.values()
    made = g.model(g.nodes, outputs, list(g.inputs), g.weights, values)
    whole = run_one(sardonyx, tmp_path / "whole", made, list(g.inputs), values)
    known = {**g.inputs, **g.weights}
    for i, node in enumerate(g.nodes):
        names = list(dict.fromkeys(node.input))
        one = g.model([node], list(node.output), names, {}, values)
        known.update(run_one(sardonyx, tmp_path / str(i), one, names, known))
    for name in outputs:
        assert whole[name].tobytes() == known[name].tobytes()
