# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and RNN with constant weights (the fused kernels) and with fed ones, all directions and
layouts, sizes around vectors and tiles, against a loop in NumPy."""
import numpy
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from case_folder import write_case  # noqa: E402

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
CASES = [(op, direction, layout, constant, hidden, batch)
         for op in GATES for direction in ("forward", "reverse", "bidirectional")
         for layout, constant, hidden, batch in ((0, True, 8, 1), (1, True, 13, 4), (0, True, 40, 3),
                                                 (0, False, 5, 2), (1, True, 33, 7))]
CASES += [(op, "reverse", layout, True, 810, 1 + layout)  # a time step is worth several threads
          for op in GATES for layout in (0, 1)]


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def direction_of(op, x, w, r, b, h, c):
    """x [seq, batch, input] in f64; returns Y [seq, batch, hidden] and the last h, c."""
    n, out = h.shape[1], []
    wb, rb = numpy.split(b, 2)
    for xt in x:
        a, s = xt @ w.T + wb, h @ r.T + rb
        if op == "RNN":
            h = numpy.tanh(a + s)
        elif op == "GRU":
            z, reset = sigmoid(a[:, :n] + s[:, :n]), sigmoid(a[:, n:2 * n] + s[:, n:2 * n])
            h = (1 - z) * numpy.tanh(a[:, 2 * n:] + reset * s[:, 2 * n:]) + z * h
        else:
            i, o, f, g = numpy.split(a + s, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
            h = sigmoid(o) * numpy.tanh(c)
        out.append(h)
    return numpy.stack(out), h, c


def reference(op, direction, x, w, r, b, h0, c0):
    ys, hs, cs = [], [], []
    for d in range(len(w)):
        back = direction == "reverse" or d == 1
        y, h, c = direction_of(op, x[::-1] if back else x, *(
            value.astype(numpy.float64) for value in (w[d], r[d], b[d], h0[d], c0[d])))
        ys.append(y[::-1] if back else y)
        hs.append(h)
        cs.append(c)
    return numpy.stack(ys, axis=1), numpy.stack(hs), numpy.stack(cs)


@pytest.mark.parametrize("case", range(len(CASES)))
def test_recurrent(case, sardonyx, tmp_path):
    op, direction, layout, constant, hidden, batch = CASES[case]
    rng = numpy.random.default_rng(case)
    dirs, seq, width = 2 if direction == "bidirectional" else 1, 6, 10
    shapes = {"x": (seq, batch, width), "w": (dirs, GATES[op] * hidden, width),
              "r": (dirs, GATES[op] * hidden, hidden), "b": (dirs, 2 * GATES[op] * hidden),
              "h": (dirs, batch, hidden), "c": (dirs, batch, hidden)}
    size = 0.4 if hidden < 100 else 0.04
    values = {name: (rng.normal(size=shape) * (2 if name == "x" else size)).astype(numpy.float32)
              for name, shape in shapes.items()}
    y, h, c = reference(op, direction, *(values[name] for name in "xwrbhc"))
    if layout:
        for name in "xhc":
            values[name] = numpy.ascontiguousarray(values[name].swapaxes(0, 1))
        y, h, c = y.transpose(2, 0, 1, 3), h.swapaxes(0, 1), c.swapaxes(0, 1)
    outputs = [y, h] + ([c] if op == "LSTM" else [])
    names = ["x", "w", "r", "b", "", "h"] + (["c"] if op == "LSTM" else [])
    options = {"linear_before_reset": 1} if op == "GRU" else {}
    node = helper.make_node(op, names, [f"y{i}" for i in range(len(outputs))], hidden_size=hidden,
                            direction=direction, layout=layout, **options)
    fed = [name for name in names if name and not (constant and name in "wrb")]
    graph = helper.make_graph(
        [node], "rnn", [helper.make_tensor_value_info(name, TensorProto.FLOAT, values[name].shape)
                        for name in fed],
        [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, value.shape)
         for i, value in enumerate(outputs)],
        [numpy_helper.from_array(values[name], name) for name in "wrb"] if constant else [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    write_case(tmp_path, model, [numpy.ascontiguousarray(values[name], numpy.float32) for name in fed],
               [numpy.ascontiguousarray(value, numpy.float32) for value in outputs])
    for cpu in ("generic", "avx512vnni"):
        sardonyx("test", tmp_path, "--rtol", "1e-5", "--atol", "2e-6", "--threads", 3 if hidden > 100 else 1,
                 env={"SDX_CPU": cpu})
