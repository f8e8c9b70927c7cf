# SPDX-License-Identifier: Apache-2.0
"""Situations at the edge for operators with graphs in them (If, Loop, Scan, SequenceMap), attention and
optionals: zero trips, ends by condition, captured values, scan axes and directions, caches and masks."""
import numpy as np
import onnx
from draws import Families
from onnx import TensorProto, helper
from single_nodes import Case

edges = Families()


def f32(r, shape, scale=1.0):
    return np.asarray(r.rng.standard_normal(shape) * scale).astype(np.float32)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def graph(name, nodes, inputs, outputs, constants=()):
    """inputs, outputs: (name, element type), shapes open but of trip numbers and conditions."""
    def value(name, kind):
        return helper.make_tensor_value_info(name, kind, () if name in "ijcg" else None)
    return helper.make_graph(nodes, name, [value(*v) for v in inputs], [value(*v) for v in outputs], constants)


def number(name, value, dtype=np.float32):
    return onnx.numpy_helper.from_array(np.array(value, dtype), name)


F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@edges("loop", 2)
def _(r):
    """v = v * a + i, kept of each trip; ends by count, by condition or by both, or never begins."""
    shape = r.shape(0, 2, 3)
    limit = float(r.int(0, 6))
    ends = r.chance(0.5)
    nodes = [node("Cast", ["i"], ["f"], to=F), node("Mul", ["v", "x3"], ["m"]), node("Add", ["m", "f"], ["w"])]
    nodes += [node("Less", ["f", "limit"], ["d"])] if ends else [node("Identity", ["c"], ["d"])]
    scans = r.int(0, 2)
    outputs = [("d", B), ("w", F)] + [("s", F), ("t", I)][:scans]
    nodes += [node("Identity", ["w"], ["s"]), node("Identity", ["i"], ["t"])][:scans]
    body = graph("body", nodes, [("i", I), ("c", B), ("v", F)], outputs, [number("limit", limit)])
    trips = np.array(r.pick(0, 1, 4)) if not ends or r.chance(0.6) else None
    go = np.array(r.chance(0.85)) if r.chance(0.8) else None
    if scans and 0 in shape:
        return None
    if trips is not None and r.chance(0.3):
        trips = trips.reshape(1)
    case = Case("Loop", [trips, go, f32(r, shape)], {"body": body}, outputs=1 + scans, opset=r.pick(11, 13, 16, 19),
                tolerance="loose")
    case.captured = {"x3": np.array(0.5, np.float32)}
    return case


@edges("scan", 2)
def _(r):
    """state = state + x, out = state * 2; axes and directions of both."""
    length, width, states = r.int(1, 5), r.int(1, 3), 1
    axis, out_axis = r.pick(None, 0, 1, -1), r.pick(None, 0, 1, -1)
    shape = (width, length) if axis in (1, -1) else (length, width)
    body = graph("body", [node("Add", ["s", "x"], ["n"]), node("Mul", ["n", "two"], ["y"])], [("s", F), ("x", F)],
                 [("n", F), ("y", F)], [number("two", 2)])
    attributes = {"body": body, "num_scan_inputs": 1, "scan_input_directions": r.pick(None, [0], [1]),
                  "scan_output_directions": r.pick(None, [0], [1]),
                  "scan_input_axes": None if axis is None else [axis],
                  "scan_output_axes": None if out_axis is None else [out_axis]}
    return Case("Scan", [f32(r, (width,)), f32(r, shape)], attributes, outputs=states + 1, opset=r.pick(9, 11, 16),
                tolerance="loose")


@edges("branch")
def _(r):
    """Branches of other shapes that read outer values; the condition a number or a list of one."""
    x = f32(r, r.shape(1, 2, 3, empty=0))
    one = graph("one", [node("Neg", ["x1"], ["a"])], [], [("a", F)])
    two = graph("two", [node("Concat", ["x1", "x1"], ["b"], axis=0)], [], [("b", F)])
    go = np.array(r.chance(0.5))
    case = Case("If", [go.reshape(1) if r.chance(0.3) else go], {"then_branch": one, "else_branch": two},
                opset=r.pick(11, 13, 16))
    case.captured = {"x1": x}
    return case


@edges("branch")
def _(r):
    """Nested: a loop in a branch in a loop, values captured across two levels."""
    inner = graph("inner", [node("Add", ["q", "x3"], ["p"]), node("Identity", ["g"], ["h"])],
                  [("j", I), ("g", B), ("q", F)], [("h", B), ("p", F)])
    then = graph("then", [node("Loop", ["three", "", "v"], ["z"], body=inner)], [], [("z", F)], [number("three", 3, np.int64)])
    other = graph("other", [node("Sub", ["v", "x3"], ["z2"])], [], [("z2", F)])
    body = graph("body", [node("Mod", ["i", "pair"], ["o"]), node("Cast", ["o"], ["odd"], to=B),
                          node("If", ["odd"], ["w"], then_branch=then, else_branch=other), node("Identity", ["c"], ["d"])],
                 [("i", I), ("c", B), ("v", F)], [("d", B), ("w", F)], [number("pair", 2, np.int64)])
    case = Case("Loop", [np.array(r.int(0, 5)), None, f32(r, (2,))], {"body": body}, opset=r.pick(13, 16), tolerance="loose")
    case.captured = {"x3": f32(r, (2,))}
    return case


@edges("attention", 3)
def _(r):
    batch, size, value = r.int(1, 2), r.pick(2, 4, 8), r.pick(2, 4)
    groups, each = r.int(1, 2), r.int(1, 3)
    heads, q, k = groups * each, r.int(1, 5), r.int(1, 6)
    past = r.int(1, 3) if r.chance(0.3) else 0
    flat = r.chance(0.5)

    def laid(n, length, width):
        return f32(r, (batch, length, n * width) if flat else (batch, n, length, width))
    inputs = [laid(heads, q, size), laid(groups, k, size), laid(groups, k, value)]
    mask = None
    if r.chance(0.5):
        shape = r.pick((q, k + past), (batch, 1, q, k + past), (batch, heads, q, k + past), (1, q, k + past))
        mask = f32(r, shape) if r.chance(0.5) else r.rng.random(shape) < 0.8
        if mask.dtype == bool:
            mask[..., 0] = True
    inputs.append(mask)
    if past:
        inputs += [f32(r, (batch, groups, past, size)), f32(r, (batch, groups, past, value))]
    attributes = {"q_num_heads": heads if flat else None, "kv_num_heads": groups if flat else None,
                  "is_causal": r.pick(None, 1), "scale": r.pick(None, 0.3), "softcap": r.pick(None, None, 2.0)}
    while inputs[-1] is None:
        inputs.pop()
    if past and q == 1 and attributes["is_causal"]:
        return None  # onnxruntime takes it for the last position, whatever keys are new
    return Case("Attention", inputs, attributes, outputs=3 if past else 1, opset=r.pick(23, 24), tolerance="loose")


@edges("attention")
def _(r):
    batch, length, heads, size = r.int(1, 2), r.int(1, 4), r.int(1, 3), r.pick(4, 8)
    part = r.pick(None, size // 2)
    half = (part or size) // 2
    flat, ids = r.chance(0.5), r.chance(0.6)
    x = f32(r, (batch, length, heads * size) if flat else (batch, heads, length, size))
    table = (9, half) if ids else (batch, length, half)
    inputs = [x, f32(r, table), f32(r, table), r.rng.integers(0, 9, (batch, length)) if ids else None]
    return Case("RotaryEmbedding", inputs, {"interleaved": r.pick(None, 0, 1), "num_heads": heads if flat else None,
                                            "rotary_embedding_dim": part}, opset=23, tolerance="loose")


@edges("mapped")
def _(r):
    """SequenceMap over one or two sequences, with a tensor beside them."""
    n = r.int(1, 3)
    items = [f32(r, r.shape(1, 2, 3, empty=0)) for _ in range(n)]
    if r.chance(0.5):
        body = graph("body", [node("Mul", ["a", "b"], ["c"])], [("a", F), ("b", F)], [("c", F)])
        return Case("SequenceMap", [items, np.array(3, np.float32)], {"body": body}, opset=17)
    body = graph("body", [node("Add", ["a", "b"], ["c"]), node("Shape", ["a"], ["d"])], [("a", F), ("b", F)], [("c", F), ("d", I)])
    return Case("SequenceMap", [items, [v * 2 for v in items]], {"body": body}, outputs=2, opset=17)
