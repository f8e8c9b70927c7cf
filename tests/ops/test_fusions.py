# SPDX-License-Identifier: Apache-2.0
"""What passes recognise gives what onnxruntime gives without any optimisation, and is recognised:
attention in its exported forms, norms spelled out, and what joins the store of a product."""
import itertools
import json
import re

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from case_folder import write_case  # noqa: E402

RNG = np.random.default_rng(7)
N = helper.make_node


def f32(*shape, lo=-1.0, hi=1.0):
    return RNG.uniform(lo, hi, shape).astype(np.float32)


def run_case(sardonyx, folder, nodes, feeds, constants, opset=17, outputs=("Y",), free=(), batch=()):
    """Golden outputs from onnxruntime; free: inputs whose lengths the file does not tell; batch: those of
    which it does not tell the first. Returns the profile's text."""
    ort = pytest.importorskip("onnxruntime")
    kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(bool): TensorProto.BOOL,
             np.dtype(np.int64): TensorProto.INT64}
    inputs = [helper.make_tensor_value_info(
        n, kinds[a.dtype], [f"{n}{d}" for d in range(a.ndim)] if n in free else
        ["batch", *a.shape[1:]] if n in batch else a.shape)
        for n, a in feeds.items()]
    graph = helper.make_graph(
        nodes, "g", inputs, [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", opset)])
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    data = write_case(folder / "case", model, feeds, session.run(list(outputs), feeds))
    for threads in (1, 3):
        sardonyx("test", folder / "case", "--threads", threads, "--rtol", "1e-4", "--atol", "1e-6",
                 "--peak", "1e-5")
    return sardonyx("profile", folder / "case" / "model.onnx", "--runs", "1", "--inputs", data).out


B, H, S, T, D = 2, 3, 37, 53, 16


def heads(x, y, rows, perm=(0, 2, 1, 3)):
    return [N("Reshape", [x, "split"], [y + "r"]), N("Transpose", [y + "r"], [y], perm=perm)]


def attention(between, scale_q=False, turn=True, guard=False):
    """q, k, v [B, rows, H * D] to Y [B, S, H * D]; between: nodes from scores `s` to `t`; guard: rows of
    NaN become 0, as PyTorch 2.9 and later have it."""
    nodes = [N("Mul", ["q", "root"], ["q1"])] if scale_q else [N("Identity", ["q"], ["q1"])]
    nodes += heads("q1", "qh", S) + heads("k", "kh", T, (0, 2, 3, 1)) + heads("v", "vh", T)
    nodes += [N("MatMul", ["qh", "kh"], ["s"]), *between, N("Softmax", ["t"], ["p"], axis=-1)]
    if guard:
        nodes += [N("IsNaN", ["p"], ["n"]), N("Where", ["n", "zero", "p"], ["w"])]
    nodes += [N("MatMul", ["w" if guard else "p", "vh"], ["o"])]
    if turn:
        nodes += [N("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]), N("Reshape", ["ot", "join"], ["Y"])]
    else:
        nodes += [N("Identity", ["o"], ["Y"])]
    return nodes


CONSTANTS = {"split": np.array([0, 0, H, D], np.int64), "join": np.array([0, 0, H * D], np.int64),
             "root": np.float32(0.25), "four": np.float32(4), "low": np.float32(-3.4e38),
             "zero": np.float32(0), "by_head": np.array([0.5, 2, 3], np.float32).reshape(1, H, 1, 1)}
FORMS = {
    "plain": ([N("Identity", ["s"], ["t"])], {}),
    "div_mask": ([N("Div", ["s", "four"], ["s1"]), N("Add", ["s1", "m"], ["t"])], {"m": (B, 1, 1, T)}),
    "mask_first": ([N("Mul", ["root", "s"], ["s1"]), N("Add", ["m", "s1"], ["t"])], {"m": (1, H, S, T)}),
    "row_mask": ([N("Add", ["s", "m"], ["t"])], {"m": (S, 1)}),
    "batch_grows": ([N("Add", ["s", "m"], ["t"])], {"m": (B, 1, S, T)}),
    "where": ([N("Div", ["s", "four"], ["s1"]), N("Where", ["c", "s1", "low"], ["t"])], {"c": (1, 1, S, T)}),
    "where_not_mask": ([N("Where", ["c", "low", "s"], ["s1"]), N("Add", ["s1", "m"], ["t"])],
                       {"c": (S, T), "m": (B, 1, 1, T)}),
    "value_scale": ([N("Sqrt", ["x"], ["w"]), N("Div", ["s", "w"], ["t"])], {"x": ()}),
    "value_scale_of_heads": ([N("Mul", ["s", "by_head"], ["s1"]), N("Sqrt", ["x"], ["w"]),
                              N("Div", ["s1", "w"], ["t"])], {"x": ()}),
    "scale_after_mask": ([N("Add", ["s", "m"], ["s1"]), N("Mul", ["s1", "root"], ["t"])], {"m": (T,)}),
}


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("form", sorted(FORMS))
def test_attention(sardonyx, tmp_path, form, free):
    between, extra = FORMS[form]
    batch = 1 if form == "batch_grows" else B
    feeds = {"q": f32(batch, S, H * D, lo=-3, hi=3), "k": f32(batch, T, H * D), "v": f32(batch, T, H * D)}
    for name, shape in extra.items():
        feeds[name] = RNG.random(shape) > 0.4 if name == "c" else np.asarray(f32(*shape, lo=0.5, hi=3))
    if "m" in feeds:
        feeds["m"] = np.where(feeds["m"] > 2.2, np.float32(-1e4), feeds["m"])
    out = run_case(sardonyx, tmp_path, attention(between, "where" in form), feeds, CONSTANTS,
                   free=("q", "k", "v") if free and form != "batch_grows" else ())
    assert ("Attention" in out) == (form != "scale_after_mask")


@pytest.mark.parametrize("rows,keys", [(1, 1), (1, 70), (3, 700), (5, 16), (300, 260), (130, 1100)])
def test_attention_lengths(sardonyx, tmp_path, rows, keys):
    feeds = {"q": f32(1, rows, H * D), "k": f32(1, keys, H * D), "v": f32(1, keys, H * D)}
    out = run_case(sardonyx, tmp_path, attention([N("Div", ["s", "four"], ["t"])], turn=rows != 5), feeds,
                   CONSTANTS)
    assert "Attention" in out and "Transpose" not in out


@pytest.mark.parametrize("rows,keys,causal", [(48, 200, False), (197, 197, False), (260, 500, True), (90, 1100, False)])
def test_attention_of_large_heads(sardonyx, tmp_path, rows, keys, causal):
    """Heads that go through tiles where the machine has them: a mask with a row of -inf, keys of several
    blocks, shared by two heads; the first of a batch has the bits that it has alone."""
    mask = np.where(f32(2, 1, rows, keys) > 0.6, np.float32(-np.inf), f32(1, 1, 1, keys))
    mask[1, 0, rows // 2, 1:] = -np.inf
    feeds = {"q": f32(2, 4, rows, 64, lo=-3, hi=3), "k": f32(2, 2, keys, 64), "v": f32(2, 2, keys, 64), "m": mask}
    nodes = [N("Attention", ["q", "k", "v", "m"], ["Y"], is_causal=int(causal))]
    run_case(sardonyx, tmp_path, nodes, feeds, {}, opset=23, batch=tuple(feeds))
    found = []
    for batch in (2, 1):
        given = [argument for name, value in feeds.items() for argument in ("--input", f"{name}={tmp_path}/{name}.npy")]
        for name, value in feeds.items():
            np.save(tmp_path / f"{name}.npy", value[:batch])
        sardonyx("run", tmp_path / "case/model.onnx", *given, "--out", tmp_path / str(batch))
        found.append(np.load(tmp_path / str(batch) / "Y.npy")[:1])
    assert np.array_equal(*found)


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("rows", [2, S])
def test_attention_all_masked(sardonyx, tmp_path, rows, guard):
    """A row of -inf only, or with a NaN, gives NaN or, with the guard, 0, as the operators one by one do."""
    mask = f32(B, 1, rows, T)
    mask[0, 0, 1] = -np.inf
    mask[1, 0, 0, 5:] = -np.inf
    mask[1, 0, 1, 7] = np.nan
    feeds = {"q": f32(B, rows, H * D), "k": f32(B, T, H * D), "v": f32(B, T, H * D), "m": mask}
    out = run_case(sardonyx, tmp_path, attention([N("Add", ["s", "m"], ["t"])], guard=guard), feeds, CONSTANTS)
    assert "Attention" in out


PIECES = {"i0": np.int64(0), "i1": np.int64(1), "i2": np.int64(-1), "to5": np.array([B, S, 3, H, D], np.int64),
          "split": np.array([B, S, H, D], np.int64), "third": np.array([H * D] * 3, np.int64),
          "begin": np.array([H * D], np.int64), "end": np.array([2 * H * D], np.int64),
          "axis": np.array([2], np.int64), "first": np.array([0], np.int64), "to4": np.array([S, B, 3, H * D]),
          "last": np.array([3], np.int64), "join3": np.array([S, B * H, D], np.int64), "one": np.float32(1),
          "head": np.array([B, H, S, D], np.int64), "past": np.array([9], np.int64), "four": np.float32(4)}


def pieces(form):
    """q, k [B, H, S, D] and [B, H, D, S], v out of x [B, S, 3 * H * D], of "torch" [S, B, 3 * H * D]."""
    if form == "torch":  # nn.MultiheadAttention, scaled_dot_product_attention
        nodes = [N("Reshape", ["x", "to4"], ["x4"]), N("Unsqueeze", ["x4", "first"], ["x5"]),
                 N("Transpose", ["x5"], ["x6"], perm=[3, 1, 2, 0, 4]), N("Squeeze", ["x6", "last"], ["x7"])]
        for i, y in enumerate("qkv"):
            nodes += [N("Gather", ["x7", f"i{i}"], [y + "1"], axis=0), N("Reshape", [y + "1", "join3"], [y + "2"]),
                      N("Transpose", [y + "2"], [y + "3"], perm=[1, 0, 2]),
                      N("Reshape", [y + "3", "head"], [y + "4"])]
        nodes += [N("Shape", ["q4"], ["size"]), N("Slice", ["size", "last", "past"], ["width"]),
                  N("Cast", ["width"], ["w1"], to=1), N("Sqrt", ["w1"], ["w2"]), N("Div", ["one", "w2"], ["w3"]),
                  N("Sqrt", ["w3"], ["w4"]), N("Mul", ["q4", "w4"], ["q"]),
                  N("Transpose", ["k4"], ["k5"], perm=[0, 1, 3, 2]), N("Mul", ["k5", "w4"], ["k"])]
        return [*nodes, N("Identity", ["v4"], ["v"])]
    if form in ("stacked", "read_twice"):  # timm: reshape, permute, unbind
        nodes = [N("Reshape", ["x", "to5"], ["x5"]), N("Transpose", ["x5"], ["x6"], perm=[2, 0, 3, 1, 4])]
        nodes += [N("Gather", ["x6", f"i{i}"], [y], axis=0) for i, y in enumerate(("q", "k4", "v"))]
        return [*nodes, N("Transpose", ["k4"], ["k"], perm=[0, 1, 3, 2])]
    if form == "split":  # GPT-2
        nodes = [N("Split", ["x", "third"], ["q1", "k1", "v1"], axis=2)]
    else:
        nodes = [N("Slice", ["x", "first", "begin", "axis"], ["q1"]), N("Slice", ["x", "begin", "end", "axis"], ["k1"]),
                 N("Slice", ["x", "end", "last9", "axis"], ["v1"])]
    return nodes + heads("q1", "q", S) + heads("k1", "k", S, (0, 2, 3, 1)) + heads("v1", "v", S)


@pytest.mark.parametrize("form", ["torch", "stacked", "read_twice", "split", "slices"])
def test_attention_of_pieces(sardonyx, tmp_path, form):
    """q, k and v are read where a joined product has them; what something else reads too is still copied."""
    constants = PIECES | {"last9": np.array([1 << 40], np.int64)}
    nodes = [*pieces(form), N("MatMul", ["q", "k"], ["s"]), N("Div", ["s", "four"], ["t"]),
             N("Softmax", ["t"], ["p"], axis=-1), N("MatMul", ["p", "v"], ["o"])]
    if form == "read_twice":
        nodes += [N("ReduceMax", ["q"], ["m"], axes=[3], keepdims=1), N("Add", ["o", "m"], ["Y"])]
    else:
        nodes += [N("Transpose", ["o"], ["Y"], perm=[2, 0, 1, 3])]
    used = {name for node in nodes for name in node.input}
    feeds = {"x": f32(*((S, B) if form == "torch" else (B, S)), 3 * H * D, lo=-3, hi=3)}
    out = run_case(sardonyx, tmp_path, nodes, feeds, {k: v for k, v in constants.items() if k in used})
    assert "Attention" in out and "Gather" not in out and "Slice" not in out and "Split" not in out
    assert ("Transpose" in out) == (form == "read_twice")


def test_attention_of_rank_3(sardonyx, tmp_path):
    """SAM's: heads in the batch, a mask in two parts on scores of rank 5."""
    feeds = {"q": f32(6, 20, 8), "k": f32(6, 20, 8), "v": f32(6, 20, 8), "h": f32(6, 4, 5, 4, 1),
             "w": f32(6, 4, 5, 1, 5)}
    nodes = [N("Mul", ["q", "root"], ["q1"]), N("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
             N("MatMul", ["q1", "kt"], ["s"]), N("Reshape", ["s", "to5"], ["s5"]),
             N("Add", ["s5", "h"], ["s6"]), N("Add", ["s6", "w"], ["s7"]),
             N("Reshape", ["s7", "to3"], ["t"]), N("Softmax", ["t"], ["p"], axis=-1),
             N("MatMul", ["p", "v"], ["Y"])]
    out = run_case(sardonyx, tmp_path, nodes, feeds, {
        "root": np.float32(0.5), "to5": np.array([6, 4, 5, 4, 5], np.int64),
        "to3": np.array([6, 20, 20], np.int64)})
    assert "Attention" in out and "Softmax" not in out


@pytest.mark.parametrize("form", ["apart", "swapped", "broadcast", "read twice"])
def test_attention_summed_mask(sardonyx, tmp_path, form):
    """SAM's by newer exporters: the two parts are added first. They stay apart where the sum is of all scores."""
    heads = 1 if form == "broadcast" else 6
    feeds = {n: f32(2, 3, 20, 8) for n in "qkv"} | {"h": f32(heads, 4, 5, 4, 1), "w": f32(heads, 4, 5, 1, 5)}
    to = [1, 1, 20, 20] if form == "broadcast" else [2, 3, 20, 20]
    nodes = [N("Mul", ["q", "root"], ["q1"]), N("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
             N("MatMul", ["q1", "kt"], ["s"]), N("Add", ["w", "h"] if form == "swapped" else ["h", "w"], ["hw"]),
             N("Reshape", ["hw", "to"], ["m"]), N("Add", ["s", "m"], ["t"]), N("Softmax", ["t"], ["p"], axis=-1),
             N("MatMul", ["p", "v"], ["y" if form == "read twice" else "Y"])]
    if form == "read twice":
        nodes += [N("ReduceMax", ["m"], ["most"], axes=[3], keepdims=1), N("Add", ["y", "most"], ["Y"])]
    out = run_case(sardonyx, tmp_path, nodes, feeds, {"root": np.float32(0.5), "to": np.array(to, np.int64)})
    assert "Attention" in out and "Softmax" not in out
    assert ("Add" in out) == (form in ("broadcast", "read twice"))


@pytest.mark.parametrize("form", ["flat", "reshaped", "rows", "output", "read twice", "other columns"])
def test_norm_of_columns(sardonyx, tmp_path, form):
    """A BatchNormalization of the columns of a product, whose rows it takes as one axis (LeViT)."""
    rows = {"x": f32(12, 16)} if form == "rows" else {"x": f32(3, 4, 16)}
    constants = {"w": f32(16, 8), "g": f32(8, lo=0.5, hi=2), "b": f32(8), "m": f32(8), "v": f32(8, lo=0.5, hi=2),
                 "flat": np.array([12, 8], np.int64), "back": np.array([3, 4, 8], np.int64),
                 "cut": np.array([3, 8, 4], np.int64)}
    nodes = [N("MatMul", ["x", "w"], ["y"])]
    if form == "rows":
        nodes += [N("BatchNormalization", ["y", "g", "b", "m", "v"], ["n"]), N("HardSwish", ["n"], ["Y"])]
    elif form == "other columns":  # those of the product are not the channels
        nodes += [N("Reshape", ["y", "cut"], ["c"]), N("BatchNormalization", ["c", "g", "b", "m", "v"], ["Y"])]
    else:
        nodes += [N("Flatten", ["y"], ["f"], axis=2) if form != "reshaped" else N("Reshape", ["y", "flat"], ["f"]),
                  N("BatchNormalization", ["f", "g", "b", "m", "v"], ["Y" if form == "output" else "n"])]
        if form != "output":
            nodes += [N("Reshape", ["n", "back"], ["r"]),
                      N("Add", ["r", "y"], ["Y"]) if form == "read twice" else N("HardSwish", ["r"], ["Y"])]
    used = {name for node in nodes for name in node.input}
    out = run_case(sardonyx, tmp_path, nodes, rows, {k: v for k, v in constants.items() if k in used})
    assert ("BatchNormalization" in out) == (form in ("read twice", "other columns"))


@pytest.mark.parametrize("form", ["made", "read too", "twice", "output", "input"])
def test_identity_makes_output(sardonyx, tmp_path, form):
    """What made an identity's input makes the graph output, but not two of them."""
    outputs = {"twice": ("Y", "Z"), "output": ("Y", "Z")}.get(form, ("Y",))
    nodes = {"made": [N("MatMul", ["x", "w"], ["a"]), N("Cast", ["a"], ["Y"], to=1)],
             "read too": [N("MatMul", ["x", "w"], ["a"]), N("Identity", ["a"], ["b"]), N("MatMul", ["a", "w"], ["c"]),
                          N("Add", ["b", "c"], ["d"]), N("Cast", ["d"], ["Y"], to=1)],
             "twice": [N("MatMul", ["x", "w"], ["a"]), N("Identity", ["a"], ["Y"]), N("Cast", ["a"], ["Z"], to=1)],
             "output": [N("MatMul", ["x", "w"], ["Z"]), N("Identity", ["Z"], ["Y"])],
             "input": [N("Identity", ["x"], ["Y"])]}[form]
    constants = {} if form == "input" else {"w": f32(16, 16)}
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(5, 16)}, constants, outputs=outputs)
    assert ("Cast" in out) == (form == "twice") and "Identity" not in out


def norm_nodes(kind, opset):
    mean = {"axes": [-1]} if opset < 18 else {}
    axes = ["last"] if opset >= 18 else []
    nodes = []
    x = "x"
    if kind.startswith("layer"):
        nodes += [N("ReduceMean", ["x", *axes], ["u"], **mean), N("Sub", ["x", "u"], ["d"])]
        x = "d"
    nodes += [N("Pow", [x, "two"], ["sq"]) if "mul" not in kind else N("Mul", [x, x], ["sq"]),
              N("ReduceMean", ["sq", *axes], ["v"], **mean), N("Add", ["v", "eps"], ["ve"]),
              N("Sqrt", ["ve"], ["r"])]
    if "over" in kind:
        nodes += [N("Div", ["one", "r"], ["i"]), N("Mul", [x, "i"], ["n"])]
    elif "recip" in kind:
        nodes += [N("Reciprocal", ["r"], ["i"]), N("Mul", ["i", x], ["n"])]
    elif "first" in kind:  # scaled before it is divided
        return nodes + [N("Mul", ["g", x], ["n"]), N("Div", ["n", "r"], ["y"]), N("Add", ["y", "b"], ["Y"])]
    else:
        nodes += [N("Div", [x, "r"], ["n"])]
    nodes += [N("Mul", ["g", "n"], ["y" if kind.startswith("layer") else "Y"])]
    return nodes + ([N("Add", ["y", "b"], ["Y"])] if kind.startswith("layer") else [])


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("kind", ["layer", "layer first", "layer mul recip", "rms", "rms over", "rms mul recip"])
def test_norm(sardonyx, tmp_path, kind, opset):
    constants = {"two": np.float32(2), "one": np.float32(1), "eps": np.float32(1e-5), "g": f32(45),
                 "b": f32(45), "last": np.array([-1], np.int64)}
    out = run_case(sardonyx, tmp_path, norm_nodes(kind, opset), {"x": f32(3, 7, 45)}, constants, opset)
    assert ("LayerNormalization" if kind.startswith("layer") else "RMSNormalization") in out


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 300), (1, 20, 5, 3), (2, 37, 17, 19), (1, 16, 2, 3, 4)])
@pytest.mark.parametrize("kind", ["spelled", "scaled first", "without batch axis", "axis from the end", "turned",
                                  "turned, no bias"])
def test_channel_norm(sardonyx, tmp_path, kind, shape, between, opset):
    """Layer normalisation of the channels of each pixel, alone and between convolutions."""
    rank, c = len(shape), shape[1]
    ones = [1] * (rank - 2)
    constants = {"two": np.float32(2), "eps": np.float32(1e-5)}
    if kind.startswith("turned"):
        last = [0, *range(2, rank), 1]
        nodes = [N("Transpose", ["x"], ["t"], perm=last),
                 N("LayerNormalization", ["t", "g", *([] if "no" in kind else ["b"])], ["n"], axis=-1, epsilon=1e-4),
                 N("Transpose", ["n"], ["Y"], perm=[0, rank - 1, *range(1, rank - 1)])]
        constants |= {"g": f32(c), "b": f32(c)}
        opset = max(opset, 17)
    else:
        nodes = norm_nodes("layer first" if "first" in kind else "layer", opset)
        axis = 1 - rank if "end" in kind else 1
        for node in nodes:
            for attr in node.attribute:
                if attr.name == "axes":
                    attr.ints[:] = [axis]
        batch = [] if "without" in kind else [1]
        constants |= {"g": f32(*batch, c, *ones), "b": f32(*batch, c, *ones), "last": np.array([axis], np.int64)}
    feeds = {"x": f32(*shape)}
    if between:
        names = {"x": "before", "Y": "after"}
        for node in nodes:
            node.input[:] = [names.get(i, i) for i in node.input]
            node.output[:] = [names.get(o, o) for o in node.output]
        nodes = [N("Conv", ["x", "w"], ["before"]), *nodes, N("Conv", ["after", "w2"], ["Y"])]
        constants |= {"w": f32(c, c, *ones), "w2": f32(24, c, *ones)}
    out = run_case(sardonyx, tmp_path, nodes, feeds, constants, opset)
    assert "ChannelNormalization" in out and "ReduceMean" not in out and "\nLayerNorm" not in out
    if between and c >= 16:
        assert "channel_norm_blocked" in out


@pytest.mark.parametrize("kind", ["two axes", "other use", "grows", "scale of pixels"])
def test_no_channel_norm(sardonyx, tmp_path, kind):
    """What looks like it and is something else."""
    shape = (1, 8, 8, 6)
    constants = {"two": np.float32(2), "eps": np.float32(1e-5), "g": f32(8, 1, 1), "b": f32(8, 1, 1)}
    outputs = ("Y",)
    if kind == "other use":
        nodes = [N("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]), N("LayerNormalization", ["t", "g", "b"], ["n"]),
                 N("Transpose", ["n"], ["Y"], perm=[0, 3, 1, 2]), N("Exp", ["n"], ["Z"])]
        constants |= {"g": f32(8), "b": f32(8)}
        outputs = ("Y", "Z")
    else:
        nodes = norm_nodes("layer", 13)
        for node in nodes:
            for attr in node.attribute:
                if attr.name == "axes":
                    attr.ints[:] = [1, 2] if kind == "two axes" else [1]
        if kind == "grows":
            constants["b"] = f32(3, 8, 1, 1)
        if kind == "scale of pixels":
            constants["g"] = f32(8, 1)
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(*shape)}, constants, outputs=outputs)
    assert "ChannelNormalization" not in out


@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("turned", ["a", "b", "ab"])
@pytest.mark.parametrize("fixed", [False, True])
def test_transposed_operands(sardonyx, tmp_path, turned, rank, fixed):
    """A Transpose of the last two axes is the product's own; that of others, and one that others read, stays."""
    batch = (3, 2)[:rank - 2]
    perm = [*range(rank - 2), rank - 1, rank - 2]
    a, b = f32(*batch, *((13, 27) if "a" in turned else (27, 13))), f32(*batch, *((21, 13) if "b" in turned else (13, 21)))
    nodes = [N("Transpose", [n], [n + "t"], perm=perm) for n in turned]
    nodes += [N("MatMul", [n + "t" * (n in turned) for n in "ab"], ["p"]), N("Relu", ["p"], ["Y"])]
    feeds, constants = {"a": a, "b": b}, {}
    if fixed:
        constants["b"] = feeds.pop("b")
    out = run_case(sardonyx, tmp_path, nodes, feeds, constants)
    assert "Transpose" not in out
    nodes += [N("Transpose", ["Y"], ["yt"], perm=perm), N("MatMul", ["yt", "Y"], ["q"]), N("Add", ["q", "yt0"], ["Z"]),
              N("ReduceSum", ["yt"], ["yt0"])]
    nodes = [*nodes[:-2], nodes[-1], nodes[-2]]
    out = run_case(sardonyx, tmp_path / "more", nodes, feeds, constants, outputs=("Y", "Z"))
    assert "Transpose" in out


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("activation", ["", "Relu", "Sigmoid"])
def test_reshape_behind_gemm(sardonyx, tmp_path, activation, residual):
    nodes = [N("Gemm", ["a", "w", "b"], ["g0"], transB=1), N("Reshape", ["g0", "shape"], ["r"])]
    last = "r"
    if activation:
        nodes.append(N(activation, [last], ["act"]))
        last = "act"
    if residual:
        nodes.append(N("Add", ["x", last], ["sum"]))
        last = "sum"
    nodes.append(N("Neg", [last], ["Y"]))
    run_case(sardonyx, tmp_path, nodes, {"a": f32(6, 20), "x": f32(2, 3, 33)},
             {"w": f32(33, 20), "b": f32(33), "shape": np.array([2, 3, 33], np.int64)})


@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
def test_layer_scale(sardonyx, tmp_path, op):
    """(a w + b) * row + x, as DINOv2 has it."""
    first = ([N("MatMul", ["a", "w"], ["p"]), N("Add", ["p", "b"], ["g"])] if op == "MatMul"
             else [N("Gemm", ["a", "w", "b"], ["g"])])
    nodes = first + [N("Mul", ["g", "row"], ["z"]), N("Add", ["z", "x"], ["Y"])]
    out = run_case(sardonyx, tmp_path, nodes, {"a": f32(50, 70), "x": f32(50, 37)},
                   {"w": f32(70, 37), "b": f32(37), "row": f32(37)})
    assert "\nMul " not in out and "\nAdd " not in out


def test_gemm_adds_matrix_and_row(sardonyx, tmp_path):
    nodes = [N("Gemm", ["a", "w", "c"], ["g"]), N("Add", ["g", "x"], ["Y"])]
    for i, c in enumerate((f32(9), f32(1, 9), f32(4, 1), f32(4, 9))):
        run_case(sardonyx, tmp_path / str(i), nodes, {"a": f32(4, 8), "x": f32(4, 9)},
                 {"w": f32(8, 9), "c": c})


@pytest.mark.parametrize("equation,a,b", [("bhwc,hkc->bhwk", (3, 4, 5, 6), (4, 7, 6)),
                                          ("bhwc,wkc->bhwk", (3, 4, 5, 6), (5, 7, 6)),
                                          ("abc,cd->dab", (4, 5, 6), (6, 9))])
def test_einsum_turns(sardonyx, tmp_path, equation, a, b):
    run_case(sardonyx, tmp_path, [N("Einsum", ["a", "b"], ["Y"], equation=equation)],
             {"a": f32(*a), "b": f32(*b)}, {})


@pytest.mark.parametrize("equation, shapes", [
    ("ij->i", [(3, 0)]), ("ijk->i", [(3, 0, 2)]), ("bi,bi->b", [(40, 0), (40, 0)]), ("hlv,lh->hlv", [(3, 5, 16), (5, 3)]),
    ("hlv,lh->lvh", [(3, 50, 7), (50, 3)]), ("bid,bjd->bidj", [(2, 5, 6), (2, 4, 6)]), ("ib,bj->bij", [(9, 3), (3, 6)])])
def test_einsum_loops(sardonyx, tmp_path, equation, shapes):
    """Sums of nothing, and products without a sum."""
    names = [f"x{i}" for i in range(len(shapes))]
    run_case(sardonyx, tmp_path, [N("Einsum", names, ["Y"], equation=equation)],
             {name: f32(*shape) for name, shape in zip(names, shapes)}, {})


@pytest.mark.parametrize("equation", ["ijk->ik", "ijk->ki", "ijk->kij", "ijk->", "i j k -> j", "ijk->ijk", "iji->j"])
def test_einsum_sums(sardonyx, tmp_path, equation):
    out = run_case(sardonyx, tmp_path, [N("Einsum", ["a"], ["Y"], equation=equation)], {"a": f32(7, 6, 7)}, {})
    assert ("\nEinsum " in out) == (equation == "iji->j")


PRODUCTS = {"td,ndf->ntf": ((9, 12), (4, 12, 10)), "ntf,nfd->ntd": ((4, 9, 10), (4, 10, 12)),
            "bshd,hde->bse": ((2, 9, 3, 8), (3, 8, 20)), "bsd,dhk->bshk": ((2, 9, 12), (12, 3, 8)),
            "btnh,bsnh->bnts": ((2, 9, 3, 8), (2, 7, 3, 8)), "bnts,bsnh->btnh": ((2, 3, 9, 7), (2, 7, 3, 8)),
            "bct,bcs->bts": ((2, 8, 9), (2, 8, 7)), "bts,bcs->bct": ((2, 9, 7), (2, 8, 7)),
            "bchw,bkc->bkhw": ((2, 8, 5, 6), (2, 9, 8)), "bhwc,bkc->bhwk": ((2, 5, 6, 8), (2, 9, 8)),
            "bqc,bchw->bqhw": ((2, 9, 8), (2, 8, 5, 6)), "a b, b c -> c a": ((9, 12), (12, 7)),
            "abxy,cxy->abc": ((2, 9, 3, 4), (7, 3, 4)), "nabk,nck->nabc": ((2, 3, 9, 8), (2, 7, 8)),
            "nak,mbk->nmab": ((2, 9, 8), (3, 7, 8)), "mak,nbk->nmab": ((3, 9, 8), (2, 7, 8))}
NO_PRODUCTS = {"ij,ij->i": ((9, 12), (9, 12)), "bn,bnk->bk": ((3, 8), (3, 8, 7)), "iij,jk->ijk": ((9, 9, 4), (4, 7)),
               "ab,bc->a": ((9, 12), (12, 7)), "abd,bc->ac": ((9, 12, 2), (12, 7)), "aab,bc->ac": ((9, 9, 12), (12, 7)),
               "...b,bc->...c": ((3, 9, 12), (12, 7)), "ab,bc": ((9, 12), (12, 7)), "ab,bc->ac": ((9, 1), (12, 7))}


@pytest.mark.parametrize("known", ["constant", "fed", "free"])
@pytest.mark.parametrize("equation", [*PRODUCTS, *NO_PRODUCTS])
def test_einsum(sardonyx, tmp_path, equation, known):
    """Einsums that are products of matrices become one, with one unknown length of an axis that is joined at
    most; others stay."""
    a, b = {**PRODUCTS, **NO_PRODUCTS}[equation]
    feeds, constants = {"a": f32(*a), "b": f32(*b)}, {}
    if known == "constant":
        constants["b"] = feeds.pop("b")
    out = run_case(sardonyx, tmp_path, [N("Einsum", ["a", "b"], ["Y"], equation=equation)], feeds, constants,
                   free=("a",) if known == "free" else ())
    is_product = "\nMatMul " in out or "\nFusedMatMul " in out
    if known != "free":  # labels of both whose lengths may differ stay
        assert is_product == (equation in PRODUCTS) and is_product != ("\nEinsum " in out)


TIMES = {"i,j->ij": ((9,), (7,)), "abc,abd->abdc": ((2, 9, 12), (2, 9, 4)), "hlv,lh->hlv": ((3, 5, 16), (5, 3)), "ij,ij->ji": ((9, 7), (9, 7)),
         "ij,->ij": ((9, 7), ()), "ba,cb->abc": ((9, 4), (7, 9)), "ab,cd->dbca": ((2, 9), (4, 7)), ",->": ((), ())}


@pytest.mark.parametrize("known", ["constant", "fed", "free"])
@pytest.mark.parametrize("equation", TIMES)
def test_einsum_times(sardonyx, tmp_path, equation, known):
    """Einsums of two operands that sum nothing are a Mul of them, but where the lengths of a label may differ."""
    a, b = TIMES[equation]
    feeds, constants = {"a": f32(*a), "b": f32(*b)}, {}
    if known == "constant":
        constants["b"] = feeds.pop("b")
    out = run_case(sardonyx, tmp_path, [N("Einsum", ["a", "b"], ["Y"], equation=equation)], feeds, constants,
                   free=("a",) if known == "free" else ())
    if known != "free":
        assert "\nMul " in out and "\nEinsum " not in out


def test_einsum_attention(sardonyx, tmp_path):
    """As perceivers, diffusion models and Keras's layers have it."""
    nodes = [N("Einsum", ["q", "k"], ["s"], equation="btnh,bsnh->bnts"), N("Mul", ["s", "root"], ["t"]),
             N("Softmax", ["t"], ["p"], axis=-1), N("Einsum", ["p", "v"], ["Y"], equation="bnts,bsnh->btnh")]
    out = run_case(sardonyx, tmp_path, nodes, {"q": f32(B, S, H, D), "k": f32(B, T, H, D), "v": f32(B, T, H, D)},
                   {"root": np.float32(D ** -0.5)})
    assert "attention" in out.lower() and "\nSoftmax " not in out


SCALES = {"Mul": [N("Mul", ["p", "c"], ["Y"])], "Mul turned": [N("Mul", ["c", "p"], ["Y"])], "Div": [N("Div", ["p", "c"], ["Y"])],
          "over it": [N("Div", ["c", "p"], ["Y"])], "twice read": [N("Mul", ["p", "c"], ["q"]), N("Add", ["p", "q"], ["Y"])],
          "more axes": [N("Mul", ["p", "c4"], ["Y"])], "by nothing": [N("Div", ["p", "zero"], ["Y"])]}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("form", sorted(SCALES))
def test_scaled_product(sardonyx, tmp_path, form, turned):
    """One number by which a product of computed values is multiplied or divided is its alpha."""
    first = [N("Transpose", ["b"], ["t"], perm=[0, 2, 1]), N("MatMul", ["a", "t"], ["p"])] if turned else [N("MatMul", ["a", "b"], ["p"])]
    feeds = {"a": f32(2, 9, 12), "b": f32(2, 7, 12) if turned else f32(2, 12, 7)}
    constants = {"c": np.float32(0.37), "c4": np.full((1, 1, 1, 1), 0.37, np.float32), "zero": np.float32(0)}
    out = run_case(sardonyx, tmp_path, first + SCALES[form], feeds, constants)
    is_scaled = form in ("Mul", "Mul turned", "Div")
    assert ("\nFusedMatMul " in out) == (turned or is_scaled)
    assert not is_scaled or ("\nMul " not in out and "\nDiv " not in out)


@pytest.mark.parametrize("k", [1, 2, 3, 8, 9, 23, 24, 25])
@pytest.mark.parametrize("n", [1, 3, 4, 6, 7])
def test_short_rows(sardonyx, tmp_path, n, k):
    """Colours and coordinates: rows of few numbers by few columns."""
    nodes = [N("MatMul", ["x", "w"], ["p"]), N("Add", ["p", "b"], ["s"]), N("Sigmoid", ["s"], ["Y"])]
    run_case(sardonyx, tmp_path, nodes, {"x": f32(3, 101, k)}, {"w": f32(k, n), "b": f32(n)})


@pytest.mark.parametrize("m, k, n", [(3, 3, 3), (4, 4, 4), (1, 3, 4), (2, 1, 3), (4, 4, 1), (3, 5, 3)])
def test_small_products(sardonyx, tmp_path, m, k, n):
    """Many products of matrices of poses, or one."""
    for batch in ((1,), (7,), (70, 9), ()):
        nodes = [N("Relu", ["a"], ["p"]), N("Transpose", ["b"], ["q"], perm=[*range(len(batch)), len(batch) + 1, len(batch)])]
        run_case(sardonyx, tmp_path / f"{batch}", nodes + [N("MatMul", ["p", "q"], ["Y"])],
                 {"a": f32(*batch, m, k), "b": f32(*batch, n, k)}, {})
        run_case(sardonyx, tmp_path / f"{batch}s", nodes[:1] + [N("MatMul", ["p", "b"], ["Y"])],
                 {"a": f32(*batch, m, k), "b": f32(k, n)}, {})


BETWEEN = {"nothing": [N("Identity", ["c"], ["t"])], "Relu": [N("Relu", ["c"], ["t"])],
           "LeakyRelu": [N("LeakyRelu", ["c"], ["t"], alpha=0.3)], "Clip": [N("Clip", ["c", "low", "high"], ["t"])],
           "Swish": [N("Sigmoid", ["c"], ["s"]), N("Mul", ["c", "s"], ["t"])],
           "residual": [N("Add", ["c", "r"], ["t"])],
           "residual and Relu": [N("Add", ["r", "c"], ["s"]), N("Relu", ["s"], ["t"])]}


RAMP = [N("Add", ["c", "three"], ["s"]), N("Clip", ["s", "low", "high"], ["r"])]
HARD_SWISH = {"product over 6": [*RAMP, N("Mul", ["c", "r"], ["p"]), N("Div", ["p", "six"], ["Y"])],
              "product by a sixth": [*RAMP, N("Mul", ["r", "c"], ["p"]), N("Mul", ["sixth", "p"], ["Y"])],
              "ramp over 6": [*RAMP, N("Div", ["r", "six"], ["p"]), N("Mul", ["c", "p"], ["Y"])],
              "ramp by a sixth": [*RAMP, N("Mul", ["r", "sixth"], ["p"]), N("Mul", ["p", "c"], ["Y"])],
              "over 5": [*RAMP, N("Mul", ["c", "r"], ["p"]), N("Div", ["p", "five"], ["Y"])],
              "6 over ramp": [*RAMP, N("Div", ["six", "r"], ["p"]), N("Mul", ["c", "p"], ["Y"])],
              "ramp of another": [N("Add", ["x", "three"], ["s"]), N("Clip", ["s", "low", "high"], ["r"]),
                                  N("Mul", ["c", "r"], ["p"]), N("Div", ["p", "six"], ["Y"])],
              "low of 1": [N("Add", ["c", "three"], ["s"]), N("Clip", ["s", "sixth", "high"], ["r"]),
                           N("Mul", ["c", "r"], ["p"]), N("Div", ["p", "six"], ["Y"])]}


@pytest.mark.parametrize("form", sorted(HARD_SWISH))
def test_hard_swish_of_clip(sardonyx, tmp_path, form):
    """x * clip(x + 3, 0, 6) / 6, as Paddle and PyTorch write it, moves into the convolution's store; what only
    looks like it stays."""
    constants = {"w": f32(9, 9, 3, 3), "three": np.float32(3), "low": np.float32(0), "high": np.float32(6),
                 "six": f32(1, lo=6, hi=6), "sixth": np.float32(1 / 6), "five": np.float32(5)}
    nodes = [N("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), *HARD_SWISH[form]]
    used = {name for node in nodes for name in node.input}
    constants = {k: v for k, v in constants.items() if k in used}
    most = 0.1 if form == "6 over ramp" else 1  # nothing is divided by 0
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(2, 9, 11, 11, lo=-most, hi=most)}, constants)
    assert ("chain of" in out) == (form in ("over 5", "6 over ramp", "ramp of another", "low of 1")), out


@pytest.mark.parametrize("channels,filters,kernel,groups,size", [
    (32, 32, 3, 1, 20), (64, 64, 3, 1, 7), (3, 32, 3, 1, 30), (32, 48, 5, 1, 12), (48, 48, 3, 48, 9),
    (64, 64, 3, 4, 10), (40, 24, 1, 1, 9), (20, 4, 3, 1, 13)])
def test_filters_that_are_computed(sardonyx, tmp_path, channels, filters, kernel, groups, size):
    """As networks that modulate their weights have them: packed anew in each run."""
    nodes = [N("Relu", ["x"], ["r"]), N("Mul", ["w", "s"], ["m"]),
             N("Conv", ["r", "m", "b"], ["c"], pads=[kernel // 2] * 4, group=groups),
             N("Add", ["c", "z"], ["a"]), N("Relu", ["a"], ["Y"])]
    feeds = {"x": f32(2, channels, size, size), "s": f32(1, channels // groups, 1, 1), "b": f32(filters),
             "z": f32(2, filters, size, size)}
    out = run_case(sardonyx, tmp_path, nodes, feeds, {"w": f32(filters, channels // groups, kernel, kernel)})
    assert "_pack" in out


@pytest.mark.parametrize("op", ["Conv", "MatMul"])
def test_large_weights_of_constant_are_packed(sardonyx, tmp_path, op):
    """More than 1 MiB in a node Constant, as Paddle's exporter writes all weights: as an initializer."""
    weights = f32(64, 2048, 3, 1) if op == "Conv" else f32(2048, 192)
    nodes = [N("Constant", [], ["w"], value=numpy_helper.from_array(weights, "w")), N(op, ["x", "w"], ["Y"])]
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(1, 2048, 4, 5) if op == "Conv" else f32(21, 2048)}, {})
    assert "Constant" not in out, out


def test_large_results_of_constants_fold(sardonyx, tmp_path):
    """A filter of more than 1 MiB that the file computes from small constants is computed once."""
    nodes = [N("Sub", ["rows", "columns"], ["d"]), N("Pow", ["d", "two"], ["p"]), N("Cos", ["p"], ["w"]),
             N("MatMul", ["x", "w"], ["Y"])]
    constants = {"rows": f32(700, 1), "columns": f32(1, 701), "two": np.int64(2)}
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(3, 700)}, constants)
    assert "Cos" not in out and "MatMul" in out, out


@pytest.mark.parametrize("length", [2, 3, 16, 17])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceMean", "ReduceMax",
                                "ReduceMin", "ReduceProd"])
def test_short_runs_are_reduced(sardonyx, tmp_path, op, length):
    """The last axis is short, the others are long: more than one tile, and one that is not full."""
    axes = [N(op, ["x", "axes"] if op == "ReduceSum" else ["x"], ["Y"], **({} if op == "ReduceSum" else {"axes": [2]}))]
    run_case(sardonyx, tmp_path, axes, {"x": f32(3, 211, length)}, {"axes": np.int64([2])} if op == "ReduceSum" else {})


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("between", sorted(BETWEEN))
def test_batch_norm_behind_convolution(sardonyx, tmp_path, between, axes):
    """Folds into the weights only where nothing comes between; a pass of an earlier round may have joined
    that with the convolution."""
    nodes = [N("Conv", ["x", "w", "b"], ["c"]), *BETWEEN[between],
             N("BatchNormalization", ["t", "gamma", "beta", "mean", "variance"], ["Y"])]
    feeds = {"x": f32(2, 9, *[11] * axes)}
    if "residual" in between:
        feeds["r"] = f32(2, 16, *[9] * axes)
    constants = {"w": f32(16, 9, *[3] * axes), "b": f32(16), "gamma": f32(16, lo=0.5, hi=1.5), "beta": f32(16),
                 "mean": f32(16), "variance": f32(16, lo=0.5, hi=1.5), "low": np.float32(-0.2),
                 "high": np.float32(0.4)}
    out = run_case(sardonyx, tmp_path, nodes, feeds, constants)
    assert ("BatchNormalization" in out) == (between != "nothing")


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("between", ["BatchNormalization", "Mul", "Sub"])
def test_transposed_convolution_in_groups(sardonyx, tmp_path, between, groups):
    """What scales its channels folds into its weights, an activation moves into its store."""
    channels = 12 * groups
    inputs = ["gamma", "beta", "mean", "variance"] if between == "BatchNormalization" else ["each"]
    nodes = [N("ConvTranspose", ["x", "w", "b"], ["c"], group=groups, strides=[2, 3], pads=[1, 0, 1, 0]),
             N(between, ["c", *inputs], ["t"]), N("LeakyRelu", ["t"], ["Y"], alpha=0.2)]
    constants = {"w": f32(8 * groups, 12, 3, 4), "b": f32(channels), "gamma": f32(channels, lo=0.5, hi=1.5),
                 "beta": f32(channels), "mean": f32(channels), "variance": f32(channels, lo=0.5, hi=1.5),
                 "each": f32(channels, 1, 1)}
    constants = {k: v for k, v in constants.items() if k in ["w", "b", *inputs]}
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(2, 8 * groups, 7, 6)}, constants)
    assert between not in out and "LeakyRelu" not in out


@pytest.mark.parametrize("channels", [16, 20, 3])
@pytest.mark.parametrize("stride", [2, 3])
def test_long_transposed_line(sardonyx, tmp_path, channels, stride):
    """Its phases are put in turn piece by piece; the last one of them is shorter."""
    nodes = [N("Conv", ["x", "u"], ["c"]), N("ConvTranspose", ["c", "w", "b"], ["Y"], strides=[stride], pads=[1, 2])]
    run_case(sardonyx, tmp_path, nodes, {"x": f32(2, 16, 1205)},
             {"u": f32(16, 16, 1), "w": f32(16, channels, 5), "b": f32(channels)})


@pytest.mark.parametrize("image", [(8, 6), (7, 9), (3, 21)])
def test_small_image_of_large_filters(sardonyx, tmp_path, image):
    """As a head of RTMPose: more padding than image, and two parts of one panel."""
    run_case(sardonyx, tmp_path, [N("Conv", ["x", "w", "b"], ["Y"], pads=[3, 3, 3, 3])], {"x": f32(1, 96, *image)},
             {"w": f32(17, 96, 7, 7), "b": f32(17)})


@pytest.mark.parametrize("channels", [16, 21])
def test_depthwise_filters_as_large_as_the_image(sardonyx, tmp_path, channels):
    nodes = [N("Conv", ["x", "u"], ["c"]), N("Conv", ["c", "w", "b"], ["Y"], group=channels)]
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(2, 16, 9, 5)},
                   {"u": f32(channels, 16, 1, 1), "w": f32(channels, 1, 9, 5), "b": f32(channels)})
    assert "conv_block_depthwise" in out


@pytest.mark.parametrize("channels", [16, 24, 37])
@pytest.mark.parametrize("form", ["reshape", "resize", "line", "shared"])
def test_tokens_to_image(sardonyx, tmp_path, form, channels):
    """[N, L, C] to [N, C, L] is made in blocks of channels where convolutions read it, through views,
    Resize and Concat; with another reader it stays plain."""
    feeds = {"x": f32(2, 24, channels), "z": f32(2, channels, 8, 12)}
    constants = {"to": np.array([2, channels, 4, 6], np.int64), "two": f32(4, lo=1, hi=1) * [1, 1, 2, 2],
                 "w": f32(20, 2 * channels, 3, 3), "v": f32(20, channels, 3), "roi": f32(0)}
    constants["two"] = constants["two"].astype(np.float32)
    nodes = [N("Transpose", ["x"], ["t"], perm=[0, 2, 1])]
    if form == "line":
        nodes += [N("Shape", ["t"], ["size"]), N("ConstantOfShape", ["size"], ["none"]),
                  N("Conv", ["t", "v"], ["c"], pads=[1, 1]), N("Slice", ["none", "o", "one"], ["zero"]),
                  N("ReduceSum", ["zero"], ["s"], keepdims=0), N("Add", ["c", "s"], ["Y"])]
        constants |= {"o": np.array([0], np.int64), "one": np.array([1], np.int64)}
        feeds.pop("z")
    else:
        nodes += [N("Reshape", ["t", "to"], ["i"]),
                  N("Resize", ["i", "roi", "two"], ["r"], mode="nearest" if form == "reshape" else "linear"),
                  N("Concat", ["z", "r"], ["j"], axis=1), N("Conv", ["j", "w"], ["c"], pads=[1, 1, 1, 1])]
        if form == "shared":
            nodes += [N("ReduceSum", ["t"], ["s"], keepdims=0), N("Add", ["c", "s"], ["Y"])]
        else:
            nodes += [N("Identity", ["c"], ["Y"])]
    used = {name for node in nodes for name in node.input}
    out = run_case(sardonyx, tmp_path, nodes, feeds, {k: v for k, v in constants.items() if k in used})
    assert ("[transpose_blocked]" in out) == (form != "shared")


def test_shape_that_only_the_file_tells(sardonyx, tmp_path):
    """Shape folds where it follows from the inputs' shapes; what a file declares may be wrong."""
    x = np.ones((3, 4), np.float32)
    nodes = [N("NonZero", ["x"], ["z"]), N("Transpose", ["z"], ["t"]), N("Shape", ["t"], ["Y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("Y", TensorProto.INT64, [2])],
        value_info=[helper.make_tensor_value_info("z", TensorProto.INT64, [2, 5]),
                    helper.make_tensor_value_info("t", TensorProto.INT64, [5, 2])])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    write_case(tmp_path / "case", model, {"x": x}, [np.array([12, 2], np.int64)])
    sardonyx("test", tmp_path / "case")


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("form", ["slice", "split", "no_turn", "cos_3d", "by_batch", "other_use", "one_x"])
def test_rotary_embedding(sardonyx, tmp_path, form, free):
    """x * cos + [-x2, x1] * sin of heads, before or after their transposition."""
    turns = form not in ("no_turn", "cos_3d")
    nodes = [N("Transpose", ["x"], ["t"], perm=[0, 2, 1, 3])] if turns else [N("Abs", ["x"], ["t"])]
    if form == "split":
        nodes += [N("Split", ["t"], ["a", "b"], axis=-1)]
    else:
        nodes += [N("Slice", ["t", "zero64", "half", "last", "one"], ["a"]),
                  N("Slice", ["t", "half", "end", "last", "one"], ["b"])]
    nodes += [N("Neg", ["b"], ["nb"]), N("Concat", ["nb", "a"], ["r"], axis=-1), N("Mul", ["t", "cos"], ["c"]),
              N("Mul", ["sin", "r"], ["s"]), N("Add", ["c", "s"], ["Y"])]
    outputs = ["Y"]
    if form == "other_use":
        nodes += [N("Exp", ["t"], ["Z"])]
        outputs.append("Z")
    shape = {"cos_3d": (1, S, D), "by_batch": (B, 1, S, D)}.get(form, (1, 1, S, D))
    rows = 1 if form == "one_x" else S
    feeds = {"x": f32(B, *((rows, H) if turns else (H, rows)), D), "cos": f32(*shape), "sin": f32(*shape)}
    constants = {"zero64": np.array([0]), "half": np.array([D // 2]), "end": np.array([2**63 - 1]),
                 "last": np.array([3]), "one": np.array([1])}
    out = run_case(sardonyx, tmp_path, nodes, feeds, constants, outputs=outputs, opset=13,
                   free=("x",) if free and form != "other_use" else ())
    told = not free or form == "other_use"
    assert ("Rotate" in out) == told and ("Concat" in out) != told


@pytest.mark.parametrize("form", ["first", "second", "where", "both", "grows"])
def test_expand_before_broadcasting(sardonyx, tmp_path, form):
    """An Expand goes where another operand has the whole shape, and stays where none has."""
    shape, small = (2, 3, 4, 5), (3, 1, 1)
    nodes = [N("Expand", ["a", "shape"], ["e"])]
    feeds = {"a": f32(*small), "x": f32(*shape)}
    if form == "where":
        nodes += [N("Less", ["x", "e"], ["c"]), N("Where", ["c", "e", "x"], ["Y"])]
    elif form == "both":
        nodes += [N("Expand", ["x", "shape"], ["f"]), N("Sub", ["e", "f"], ["Y"])]
        feeds["x"] = f32(2, 1, 4, 1)
    elif form == "grows":
        feeds["x"] = f32(*shape[1:])
        nodes += [N("Mul", ["e", "x"], ["Y"])]
    else:
        nodes += [N("Sub", ["e", "x"] if form == "first" else ["x", "e"], ["Y"])]
    out = run_case(sardonyx, tmp_path, nodes, feeds, {"shape": np.array(shape, np.int64)})
    assert ("Expand" in out) == (form in ("both", "grows"))


@pytest.mark.parametrize("form", ["plain", "turned", "scaled", "scaled_scores", "free", "old", "shared_k",
                                  "flat_scale", "turned_scores"])
def test_attention_of_windows(sardonyx, tmp_path, form):
    """Five axes: those before the last three are one for the attention; keys that broadcast stay, and so
    does what brings five axes along or turns the scores."""
    shape = [2, 3, H, 5, D]
    keys = "kt" if form != "plain" else "k"
    nodes = [N("Transpose", ["k"], ["kt"], perm=[0, 1, 2, 4, 3])] if form != "plain" else []
    q = "q"
    if form == "scaled":
        nodes += [N("Mul", ["q", "root"], ["qs"]), N("Div", ["kt", "four"], ["ks"])]
        q, keys = "qs", "ks"
    nodes += [N("MatMul", [q, keys], ["s0"]),
              N("Mul" if form == "scaled_scores" else "Identity", ["s0", "root"][:1 + (form == "scaled_scores")], ["s"]),
              N("Softmax", ["s"], ["p"], axis=4 if form == "old" else -1), N("MatMul", ["p", "v"], ["o"]),
              N("Transpose", ["o"], ["Y"], perm=[0, 1, 3, 2, 4])]
    feeds = {"q": f32(*shape, lo=-3, hi=3), "v": f32(*shape[:3], 7, D),
             "k": f32(*shape[:3], D, 7) if form == "plain" else f32(*shape[:3], 7, D)}
    if form == "shared_k":
        feeds["k"] = f32(1, *shape[1:3], 7, D)
    if form == "turned_scores":
        feeds["k"], feeds["v"] = f32(*shape), f32(*shape)
        nodes[-4:-3] = [N("Transpose", ["s0"], ["s"], perm=[0, 1, 2, 4, 3])]
    if form == "flat_scale":
        nodes[-4:-3] = [N("Mul", ["s0", "ones"], ["s"])]
    used = {name for node in nodes for name in node.input}
    constants = {"root": np.float32(0.25), "four": np.float32(4), "ones": f32(1, 1, 1, 1, 1)}
    out = run_case(sardonyx, tmp_path, nodes, feeds, {k: v for k, v in constants.items() if k in used},
                   opset=11 if form == "old" else 17, batch=("q", "k", "v") if form == "free" else ())
    assert ("Attention" in out) == (form not in ("shared_k", "flat_scale", "turned_scores")), out


@pytest.mark.parametrize("form", ["turned", "plain", "odd_first", "other_order"])
def test_rotary_embedding_interleaved(sardonyx, tmp_path, form):
    """x * cos + weave(-x at odd places, x at even ones) * sin."""
    start = ("zero64", "one") if form != "odd_first" else ("one", "zero64")
    nodes = [N("Abs", ["x"], ["t"])] if form == "plain" else [N("Transpose", ["x"], ["t"], perm=[0, 2, 1, 3])]
    nodes += [N("Slice", ["t", start[0], "end", "last", "two"], ["a"]),
              N("Slice", ["t", start[1], "end", "last", "two"], ["b"]), N("Neg", ["b"], ["nb"]),
              N("Unsqueeze", ["nb", "new"], ["u"]), N("Unsqueeze", ["a", "new"], ["v"]),
              N("Concat", ["u", "v"], ["w"], axis=-1), N("Reshape", ["w", "shape"], ["r"]),
              N("Mul", ["t", "cos"], ["c"]), N("Mul", ["r", "sin"], ["s"]), N("Add", ["c", "s"], ["Y"])]
    feeds = {"x": f32(B, *((H, S) if form == "plain" else (S, H)), D), "cos": f32(1, 1, S, D), "sin": f32(1, 1, S, D)}
    constants = {"zero64": np.array([0]), "one": np.array([1]), "two": np.array([2]), "end": np.array([2**63 - 1]),
                 "last": np.array([3]), "new": np.array([4]), "shape": np.array([B, H, S, D])}
    if form == "other_order":  # as many elements, other places
        constants["shape"] = np.array([B, H, D, S])
        nodes[-4:] = [N("Reshape", ["w", "shape"], ["r0"]), N("Transpose", ["r0"], ["r"], perm=[0, 1, 3, 2]),
                      *nodes[-3:]]
    out = run_case(sardonyx, tmp_path, nodes, feeds, constants, opset=13)
    assert ("Rotate" in out) == (form in ("turned", "plain"))


@pytest.mark.parametrize("batch,kv,flat", [(1, 2, False), (2, 3, False), (2, 1, False), (2, 2, True)])
def test_attention_of_shared_heads(sardonyx, tmp_path, batch, kv, flat):
    """Keys and values of fewer heads, repeated by Expand; flat: keys are turned without the heads' axis."""
    each, heads_q = 3, 3 * kv
    nodes = [N("Reshape", ["q", "split_q"], ["qr"]), N("Transpose", ["qr"], ["qh"], perm=[0, 2, 1, 3])]
    for x in "kv":
        nodes += [N("Reshape", [x, "split"], [x + "r"]), N("Transpose", [x + "r"], [x + "h"], perm=[0, 2, 1, 3]),
                  N("Unsqueeze", [x + "h", "two"], [x + "u"]), N("Expand", [x + "u", "each"], [x + "e"]),
                  N("Reshape", [x + "e", "joined"], [x + "j"])]
    if flat:
        nodes += [N("Reshape", ["kj", "merged"], ["km"]), N("Transpose", ["km"], ["kn"], perm=[0, 2, 1]),
                  N("Reshape", ["kn", "apart"], ["kt"])]
    else:
        nodes += [N("Transpose", ["kj"], ["kt"], perm=[0, 1, 3, 2])]
    nodes += [N("MatMul", ["qh", "kt"], ["s"]), N("Softmax", ["s"], ["p"], axis=-1), N("MatMul", ["p", "vj"], ["o"]),
              N("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]), N("Reshape", ["ot", "join"], ["Y"])]
    constants = {name: np.array(value, np.int64) for name, value in {
        "split_q": [0, 0, heads_q, D], "split": [0, 0, kv, D], "two": [2], "each": [batch, kv, each, T, D],
        "joined": [batch, heads_q, T, D], "merged": [-1, T, D], "apart": [batch, heads_q, D, T],
        "join": [0, 0, heads_q * D]}.items()}
    feeds = {"q": f32(batch, S, heads_q * D), "k": f32(batch, T, kv * D), "v": f32(batch, T, kv * D)}
    out = run_case(sardonyx, tmp_path, nodes, feeds, constants)
    assert "Attention" in out and "Expand" not in out and "Transpose" not in out


@pytest.mark.parametrize("bias", (False, True))
@pytest.mark.parametrize("form,rows,apart", [
    ("split", 5, True), ("split", 1, False), ("split_rows", 6, False), ("slices", 5, True), ("less", 5, True),
    ("overlap", 5, False), ("read_too", 5, False), ("output_too", 5, False)])
def test_columns(sardonyx, tmp_path, form, rows, apart, bias):
    """Columns of a product that are taken apart are products of their own, and a gate goes into the store."""
    nodes = [N("MatMul", ["x", "w"], ["m"])]
    nodes += [N("Add", ["m", "b"], ["y"])] if bias else [N("Identity", ["m"], ["y"])]
    if "split" in form:
        nodes += [N("Split", ["y", "sizes"], ["p", "q"], axis=-2 if form == "split_rows" else -1)]
    else:
        cuts = {"less": ((0, 8), (12, 20)), "overlap": ((0, 12), (8, 20))}.get(form, ((0, 10), (-10, 1000)))
        nodes += [N("Slice", ["y", f"{v}0", f"{v}1", "axis"], [v]) for v in "pq"]
    nodes += [N("Sigmoid", ["q"], ["s"]), N("Mul", ["p", "s"], ["Y"])]
    if form == "read_too":
        nodes += [N("ReduceSum", ["y"], ["Z"])]
    constants = {"w": f32(16, 20), "b": f32(20), "axis": np.array([2]),
                 "sizes": np.array([3, 3] if form == "split_rows" else [10, 10])}
    if "split" not in form:
        constants |= {f"{v}{k}": np.array([c]) for v, cut in zip("pq", cuts) for k, c in enumerate(cut)}
    outputs = {"read_too": ("Y", "Z"), "output_too": ("Y", "y")}.get(form, ("Y",))
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(2, rows, 16) if rows > 1 else f32(1, 1, 16)}, constants,
                   outputs=outputs, opset=13)
    assert (out.count("[gemm_f32]") == 2) == apart
    assert ("Split" not in out and "Slice" not in out and "igmoid" not in out) == apart


@pytest.mark.parametrize("bound", (None, 20, 3))
def test_mish(sardonyx, tmp_path, bound):
    """With the guard that PyTorch's exporter writes, which only changes something where it is low."""
    nodes = [N("Conv", ["a", "w"], ["x"]), N("Softplus", ["x"], ["s"])]
    if bound:
        nodes += [N("Greater", ["x", "bound"], ["above"]), N("Where", ["above", "x", "s"], ["g"])]
    nodes += [N("Tanh", ["g" if bound else "s"], ["t"]), N("Mul", ["x", "t"], ["m"]), N("Conv", ["m", "v"], ["Y"])]
    constants = {"w": 9 * f32(16, 8, 1, 1), "v": f32(8, 16, 1, 1), "bound": np.float32(bound or 0)}
    out = run_case(sardonyx, tmp_path, nodes, {"a": f32(2, 8, 9, 7)}, constants)
    assert ("Mish" in out) == (bound != 3) and ("Where" in out or "where" in out) == (bound == 3)


@pytest.mark.parametrize("order", list(itertools.permutations(("x", "half", "bracket"))))
@pytest.mark.parametrize("kind", ("erf", "tanh"))
def test_gelu(sardonyx, tmp_path, kind, order):
    """x, 1/2 and 1 + erf or tanh multiplied in any order, as exporters do."""
    nodes = [N("MatMul", ["a", "w"], ["x"])]
    if kind == "erf":
        nodes += [N("Div", ["x", "root"], ["s"]), N("Erf", ["s"], ["t"])]
    else:
        nodes += [N("Mul", ["x", "x"], ["x2"]), N("Mul", ["x", "x2"], ["x3"]), N("Mul", ["x3", "third"], ["c"]),
                  N("Add", ["x", "c"], ["d"]), N("Mul", ["d", "pi"], ["s"]), N("Tanh", ["s"], ["t"])]
    nodes += [N("Add", ["t", "one"], ["bracket"]), N("Mul", [order[0], order[1]], ["m"]), N("Mul", [order[2], "m"], ["g"]),
              N("MatMul", ["g", "v"], ["Y"])]
    constants = {"w": f32(16, 24), "v": f32(24, 8), "one": np.float32(1), "half": np.float32(0.5),
                 "root": np.float32(2**0.5), "third": np.float32(0.044715), "pi": np.float32((2 / np.pi)**0.5)}
    out = run_case(sardonyx, tmp_path, nodes, {"a": f32(5, 16)}, constants)
    assert "MatMul" in out and "chain" not in out and all(op not in out for op in ("Erf", "Tanh", "\nMul", "\nGelu"))


@pytest.mark.parametrize("stride", (16, 64, 97, 320))
def test_attention_of_frames(sardonyx, tmp_path, stride):
    """q, k and v are columns of one product, rows the frames of a signal of open length: their number is
    reckoned by a division, and may be that of the columns for some length (Silero's VAD). No shape is
    known before the If has gone, so that the columns are cut when attention is there already."""
    def branch(node):
        return helper.make_graph([node], "branch", [], [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)])
    nodes = [N("Unsqueeze", ["x", "ahead"], ["u"]), N("Conv", ["u", "wc"], ["c"], strides=[stride], pads=[stride // 2] * 2),
             N("If", ["yes"], ["t"], then_branch=branch(N("Transpose", ["c"], ["t1"], perm=[0, 2, 1])),
               else_branch=branch(N("Squeeze", ["c", "zero"], ["t2"]))),
             N("MatMul", ["t", "w"], ["m"]), N("Add", ["b", "m"], ["all"]),
             N("Shape", ["t"], ["lengths"]), N("Slice", ["lengths", "one", "two", "zero"], ["rows"]),
             N("Concat", ["rows", "two", "eight"], ["heads"], axis=0), N("Concat", ["rows", "one", "width"], ["join"], axis=0),
             N("Shape", ["all"], ["lengths3"]), N("Gather", ["lengths3", "axis"], ["columns"]), N("Add", ["columns", "two"], ["more"]),
             N("Div", ["more", "three"], ["third"]), *(N("Mul", ["third", times], [f"at{i}"]) for i, times in enumerate(("zero", "one", "two", "three")))]
    for i, (part, perm) in enumerate((("k", [1, 2, 0]), ("q", [1, 0, 2]), ("v", [1, 0, 2]))):
        nodes += [N("Slice", ["all", f"at{i}", f"at{i + 1}", "axis"], [part]), N("Transpose", [part], [part + "t"], perm=[1, 0, 2]),
                  N("Reshape", [part + "t", "heads"], [part + "r"]), N("Transpose", [part + "r"], [part + "h"], perm=perm)]
    nodes += [N("MatMul", ["qh", "kh"], ["s"]), N("Div", ["s", "scale"], ["s1"]), N("Softmax", ["s1"], ["p"], axis=-1),
              N("MatMul", ["p", "vh"], ["o"]), N("Transpose", ["o"], ["ot"], perm=[1, 0, 2]), N("Reshape", ["ot", "join"], ["or"]),
              N("Transpose", ["or"], ["ob"], perm=[1, 0, 2]), N("MatMul", ["ob", "w2"], ["Y"])]
    constants = {"wc": f32(16, 1, stride), "w": f32(16, 48), "w2": f32(16, 16), "b": f32(48), "axis": np.array([-1]),
                 "scale": np.float32(2.8), "ahead": np.array([0, 1]), "zero": np.array([0]), "one": np.array([1]),
                 "two": np.array([2]), "three": np.array([3]), "eight": np.array([8]), "width": np.array([16]), "yes": np.array(True)}
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(24 * stride + 5)}, constants, free=("x",))
    assert "attention_f32" in out and "Slice" not in out


@pytest.mark.parametrize("form,stays", [("pad", False), ("pad_shift", True), ("slice", False), ("slice_back", True)])
def test_nothing_moved(sardonyx, tmp_path, form, stays):
    """A Pad by nothing and a Slice of everything go; what only keeps the shape does not."""
    op = "Pad" if "pad" in form else "Slice"
    lists = {"pad": [("p", [0] * 6)], "pad_shift": [("p", [0, 1, 0, 0, -1, 0])],
             "slice": [("b", [0]), ("e", [2**63 - 1]), ("a", [1]), ("t", [1])],
             "slice_back": [("b", [-1]), ("e", [-2**63 + 1]), ("a", [1]), ("t", [-1])]}[form]
    nodes = [N("Exp", ["x"], ["y"]), N(op, ["y", *(name for name, _ in lists)], ["z"]), N("Neg", ["z"], ["Y"])]
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(2, 5, 3)}, {n: np.array(v, np.int64) for n, v in lists})
    assert (op in out) == stays


def test_pad_by_nothing_of_open_lengths(sardonyx, tmp_path):
    """A Pad whose pads are reckoned, and are none, goes where the file tells no lengths."""
    nodes = [N("Exp", ["x"], ["y"]), N("ConstantOfShape", ["four"], ["z"], value=numpy_helper.from_array(np.zeros(1, np.int64))),
             N("Concat", ["two", "z"], ["p"], axis=0), N("Pad", ["y", "p"], ["q"]), N("Neg", ["q"], ["Y"])]
    constants = {"four": np.array([4], np.int64), "two": np.array([0, 0], np.int64)}
    assert "Pad" not in run_case(sardonyx, tmp_path, nodes, {"x": f32(2, 5, 3)}, constants, free=("x",))


@pytest.mark.parametrize("shape,kernel,attrs,left", [
    ((2, 6, 1, 1), (8, 6, 3, 3), {"pads": [1, 1, 1, 1]}, (8, 6, 1, 1)),
    ((2, 6, 1, 5), (8, 6, 3, 3), {"pads": [1, 1, 1, 1]}, (8, 6, 1, 3)),
    ((1, 6, 2, 2), (8, 6, 5, 5), {"pads": [2, 2, 2, 2]}, (8, 6, 3, 3)),
    ((1, 6, 9, 20), (8, 6, 3, 3), {"pads": [12, 12, 12, 12], "dilations": [12, 12]}, (8, 6, 1, 3)),
    ((1, 6, 4, 4), (8, 6, 4, 1), {"pads": [3, 0, 0, 0], "strides": [4, 1]}, (8, 6, 1, 1)),
    ((1, 6, 7), (6, 1, 15), {"pads": [7, 7], "group": 6}, (6, 1, 13)),
    ((1, 6, 2, 1, 1), (8, 3, 3, 3, 3), {"pads": [1] * 6, "group": 2}, (8, 3, 3, 1, 1)),
    ((1, 6, 4, 4), (8, 6, 3, 3), {"pads": [1, 1, 1, 1]}, (8, 6, 3, 3)),
    ((1, 6, 3), (8, 6, 2), {"pads": [5, 0], "dilations": [4], "strides": [9]}, (8, 6, 2))])
def test_kernel_beside_the_image(sardonyx, tmp_path, shape, kernel, attrs, left):
    """What of a kernel sees nothing but padding is left out, on both sides of each axis; what some
    output sees stays, and what padding could not say then."""
    nodes = [N("Conv", ["x", "w", "b"], ["y"], kernel_shape=kernel[2:], **attrs), N("Tanh", ["y"], ["Y"])]
    run_case(sardonyx, tmp_path, nodes, {"x": f32(*shape)}, {"w": f32(*kernel), "b": f32(kernel[0])})
    out = sardonyx("profile", tmp_path / "case" / "model.onnx", "--runs", "1", "--json").out
    conv = max(json.loads(out.strip().splitlines()[-1])["nodes"], key=lambda n: n["flops"])
    pixels = np.prod([int(d) for d in re.search(r"-> f32\[([0-9,]+)\]", conv["shapes"]).group(1).split(",")])
    assert conv["op"] == "Conv" and conv["flops"] == 2 * pixels * np.prod(left[1:])


@pytest.mark.parametrize("free", (False, True))
@pytest.mark.parametrize("op,pads,bounds,stays", [
    ("Conv", [4, 4], (0, -4), False), ("Conv", [4, 6], (2, -4), False), ("Conv", [4, 2], (0, -4), True),
    ("Conv", [2, 2], (0, -4), True), ("ConvTranspose", [0, 0], (0, -3), False),
    ("ConvTranspose", [0, 1], (2, -1), False), ("ConvTranspose", [0, 0], (0, -6), True)])
def test_cut_behind(sardonyx, tmp_path, free, op, pads, bounds, stays):
    """What is cut off a causal convolution is not computed, unless its own pads cannot say so; with
    lengths that the file does not tell too."""
    nodes = [N(op, ["x", "w", "b"], ["y"], pads=pads, dilations=[2] if op == "Conv" else [1],
               strides=[1] if op == "Conv" else [3]),
             N("Slice", ["y", "begin", "end", "axis"], ["z"]), N("Sigmoid", ["z"], ["Y"])]
    constants = {"w": f32(8, 8, 3 if op == "Conv" else 6), "b": f32(8), "axis": np.array([-1]),
                 "begin": np.array([bounds[0]]), "end": np.array([bounds[1]])}
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(2, 8, 30)}, constants, free=("x",) if free else ())
    assert ("Slice" in out) == stays


def last(x, y, rank=4):
    """Channels to the last axis, and back with `first`."""
    return N("Transpose", [x], [y], perm=[0, *range(2, rank), 1])


def first(x, y, rank=4):
    return N("Transpose", [x], [y], perm=[0, rank - 1, *range(1, rank - 1)])


CHANNELS_LAST = {
    "affine": [N("Sub", ["c", "mean"], ["d"]), N("Mul", ["row", "d"], ["e"]), N("Add", ["e", "mean"], ["f"]),
               N("Clip", ["f", "zero", "six"], ["t"])],
    "pad": [N("Relu", ["c"], ["d"]), N("Pad", ["d", "pads"], ["t"])],
    "concat": [N("Sigmoid", ["c"], ["d"]), N("Mul", ["c", "d"], ["e"]),
               N("Concat", ["e", "c"], ["t"], axis=-1)],
    "squeeze_excite": [N("ReduceMean", ["c"], ["m"], axes=[1, 2], keepdims=1), first("m", "mf"),
                       N("Conv", ["mf", "v"], ["n"]), last("n", "nl"), N("Sigmoid", ["nl"], ["s"]),
                       N("Mul", ["c", "s"], ["t"])],
    "where": [N("Tanh", ["c"], ["d"]), N("Where", ["mask", "c", "d"], ["t"])],
    "grows": [N("Add", ["c", "mean"], ["t"])],
}


@pytest.mark.parametrize("form", CHANNELS_LAST)
@pytest.mark.parametrize("rank", (4, 5))
def test_channels_last(sardonyx, tmp_path, form, rank):
    """As Keras exports it: only the Transpose of the input is left, and none of a mean."""
    spatial, k = (9, 10, 11)[:rank - 2], (3,) * (rank - 2)
    between = [helper.NodeProto.FromString(n.SerializeToString()) for n in CHANNELS_LAST[form]]
    for node in between:
        for attr in node.attribute:
            if attr.name == "perm" and rank == 5:
                attr.ints[:] = [0, 2, 3, 4, 1] if attr.ints[1] == 2 else [0, 4, 1, 2, 3]
            if attr.name == "axes":
                attr.ints[:] = list(range(1, rank - 1))
    wide = {"concat": 40}.get(form, 20)
    pads = [0, *([1] * (rank - 2)), 0, 0, *([2] * (rank - 2)), 0]
    constants = {"w": f32(20, 16, *k), "u": f32(24, wide, *k), "v": f32(20, 20, *([1] * (rank - 2))),
                 "mean": f32(*([1] * (rank - 1)), 20), "row": f32(20), "zero": np.float32(0),
                 "six": np.float32(6), "pads": np.array(pads, np.int64),
                 "mask": RNG.uniform(size=(*([1] * (rank - 1)), 20)) > 0.5}
    nodes = [first("x", "xf", rank), N("Conv", ["xf", "w"], ["cf"]), last("cf", "c", rank), *between,
             first("t", "tf", rank), N("Conv", ["tf", "u"], ["o"]), last("o", "ol", rank),
             N("ReduceMean", ["ol"], ["Y"], axes=list(range(1, rank - 1)), keepdims=0)]
    used = {i for n in nodes for i in n.input}
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(2, *spatial, 16)},
                   {n: a for n, a in constants.items() if n in used})
    turns = [line for line in out.splitlines() if line.startswith("Transpose ")]
    assert len(turns) == 1 and turns[0].split()[1] == "1", out


def conv(x, w, y, size, stride=1, dilation=1, pads=None, group=1, bias=True, rank=2):
    pads = pads if pads is not None else [(s - 1) * dilation // 2 for s in size] * 2
    return N("Conv", [x, w, *([w + "b"] if bias else [])], [y], kernel_shape=size, strides=[stride] * rank,
             dilations=[dilation] * rank, pads=pads, group=group)


def norm_of(x, y):
    return N("BatchNormalization", [x, "gamma", "beta", "mean", "variance"], [y])


BRANCHES = {  # branches, of which the last is added to the sum of the others; convolutions left
    "repvgg": ([conv("x", "a", "p", [1, 1]), conv("x", "b", "q", [3, 3]), norm_of("x", "r")], 1),
    "depthwise": ([norm_of("x", "p"), conv("x", "a", "q", [1, 1], group=12),
                   conv("x", "b", "r", [5, 5], group=12, bias=False)], 1),
    "groups": ([conv("x", "a", "p", [3, 3], group=3), norm_of("x", "q")], 1),
    "strided": ([conv("x", "a", "p", [1, 1], 2), conv("x", "b", "q", [3, 3], 2, bias=False)], 1),
    "dilated": ([conv("x", "a", "p", [3, 1], 1, 3), conv("x", "b", "q", [5, 3], 1, 3)], 1),
    "uneven": ([conv("x", "a", "p", [4, 4], pads=[1, 2, 2, 1]), conv("x", "b", "q", [2, 3], pads=[0, 1, 1, 1])], 1),
    "line": ([conv("x", "a", "p", [3], rank=1), conv("x", "b", "q", [7], rank=1), norm_of("x", "r")], 1),
    "same": ([conv("x", "a", "p", [1, 1]), conv("x", "b", "q", [1, 1])], 1),
    "between": ([conv("x", "a", "p", [2, 2], 1, 1, [0, 1, 1, 0]), conv("x", "b", "q", [3, 3], 1, 2)], 2),
    "beside": ([conv("x", "a", "p", [1, 1], pads=[1, 1, 0, 0]), conv("x", "b", "q", [2, 2], pads=[0, 0, 2, 2])], 2),
    "used": ([conv("x", "a", "p", [1, 1]), conv("x", "b", "q", [3, 3])], 2),
}


@pytest.mark.parametrize("form", BRANCHES)
def test_branches(sardonyx, tmp_path, form):
    """The sum of branches over one image is one convolution where their taps meet."""
    nodes, left = BRANCHES[form]
    rank = 1 if form == "line" else 2
    names = [n.output[0] for n in nodes]
    nodes = [*nodes, N("Add", names[:2], ["s" if len(names) > 2 else "t"])]
    if len(names) > 2:
        nodes.append(N("Add", [names[2], "s"], ["t"]))
    nodes += [N("Relu", ["t"], ["u"]), N("Add" if form == "used" else "Mul", ["u", names[0] if form == "used" else "u"],
                                         ["Y"])]
    constants = {"gamma": f32(12), "beta": f32(12), "mean": f32(12), "variance": f32(12, lo=0.5, hi=2)}
    for node in nodes:
        if node.op_type == "Conv":
            attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            constants[node.input[1]] = f32(12, 12 // attrs["group"], *attrs["kernel_shape"])
            constants[node.input[1] + "b"] = f32(12)
    used = {i for n in nodes for i in n.input}
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(2, 12, *(17, 14)[:rank])},
                   {n: a for n, a in constants.items() if n in used})
    convs = {line.split()[0] for line in out.splitlines() if " Conv " in line and "reorder" not in line}
    assert len(convs) == left, out
    assert form in ("between", "beside", "used") or "BatchNormalization" not in out, out


SIBLINGS = {  # outputs, kernel, what differs of the last one, and convolutions left
    "heads": ((1, 4, 1, 10), 1, "", 1), "bias": ((1, 4, 2), 1, "bias", 1), "plain": ((2, 1), 3, "no bias", 1),
    "active": ((1, 4, 3), 1, "all active", 1), "one_active": ((1, 2), 1, "active", 2),
    "wide": ((64, 64), 1, "", 2), "pads": ((1, 1), 3, "pads", 2), "kernel": ((1, 1), 1, "kernel", 2),
}


@pytest.mark.parametrize("form", SIBLINGS)
def test_siblings(sardonyx, tmp_path, form):
    """Convolutions of one image to few outputs each are one, where they are alike."""
    outputs, size, differs, left = SIBLINGS[form]
    nodes, constants, sums = [], {"axis": np.array([1], np.int64)}, []
    for k, channels in enumerate(outputs):
        last = k == len(outputs) - 1
        kernel = [3, 3] if last and differs == "kernel" else [size, size]
        pads = [0, 0, 2, 2] if last and differs == "pads" else None
        nodes.append(conv("x", f"w{k}", f"c{k}", kernel, pads=pads,
                          bias=differs != "no bias" and not (last and differs == "bias")))
        constants |= {f"w{k}": f32(channels, 64, *kernel), f"w{k}b": f32(channels)}
        value = f"c{k}"
        if differs == "all active" or (last and differs == "active"):
            nodes.append(N("Relu", [value], [f"r{k}"]))
            value = f"r{k}"
        nodes.append(N("ReduceSum", [value, "axis"], [f"s{k}"]))
        sums.append(f"s{k}")
    nodes.append(N("Concat", sums, ["Y"], axis=1))
    used = {i for n in nodes for i in n.input}
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(2, 64, 9, 11)},
                   {n: a for n, a in constants.items() if n in used})
    convs = {line.split()[0] for line in out.splitlines() if " Conv " in line and "reorder" not in line}
    assert len(convs) == left, out


@pytest.mark.parametrize("mode", ("linear", "cubic"))
@pytest.mark.parametrize("rank", (1, 2, 3))
def test_resize_between_convolutions(sardonyx, tmp_path, rank, mode):
    """Lines, images and volumes on blocked channels; not every axis grows."""
    if mode == "cubic" and rank != 2:
        pytest.skip("onnxruntime has cubic of two axes only")
    spatial = (7, 6, 9)[:rank]
    sizes = np.array([1, 20, *[2 * d if k != 1 else d for k, d in enumerate(spatial)]], np.int64)
    nodes = [N("Conv", ["x", "w"], ["c"]), N("Resize", ["c", "", "", "sizes"], ["r"], mode=mode),
             N("Conv", ["r", "u"], ["Y"])]
    run_case(sardonyx, tmp_path, nodes, {"x": f32(1, 16, *[d + 2 for d in spatial])},
             {"w": f32(20, 16, *[3] * rank), "u": f32(24, 20, *[3] * rank), "sizes": sizes})


@pytest.mark.parametrize("op", ("GlobalMaxPool", "ReduceMax"))
@pytest.mark.parametrize("spatial", ((1, 1), (3, 2), (9, 7), (31, 17)))
def test_maximum_of_channels(sardonyx, tmp_path, op, spatial):
    """Of blocked channels, which need not be brought apart for it."""
    nodes = [N("Conv", ["x", "w"], ["c"]),
             N(op, ["c"], ["Y"], **({"axes": [2, 3], "keepdims": 0} if op == "ReduceMax" else {}))]
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(2, 16, *spatial)}, {"w": f32(40, 16, 1, 1)})
    assert "max_blocked" in out or spatial == (1, 1), out


@pytest.mark.parametrize("batch", (1, 5))
@pytest.mark.parametrize("act", (None, "Relu"))
def test_filters_as_large_as_the_image(sardonyx, tmp_path, batch, act):
    nodes = [N("Conv", ["x", "w", "b"], ["c" if act else "Y"])]
    nodes += [N(act, ["c"], ["Y"])] if act else []
    out = run_case(sardonyx, tmp_path, nodes, {"x": f32(batch, 12, 6, 5)}, {"w": f32(30, 12, 6, 5), "b": f32(30)})
    assert "gemm_f32" in out, out


def test_average_of_axes_of_one(sardonyx, tmp_path):
    """As a normalisation across channels is exported: the pool runs along the first of three axes."""
    nodes = [N("AveragePool", ["x"], ["Y"], kernel_shape=[5, 1, 1], pads=[2, 0, 0, 2, 0, 0], count_include_pad=1)]
    run_case(sardonyx, tmp_path, nodes, {"x": f32(3, 1, 40, 1, 1)}, {})
