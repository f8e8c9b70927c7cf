# SPDX-License-Identifier: Apache-2.0
"""The attention operators of com.microsoft against onnxruntime, and where it has no kernel for the
CPU against the documented meaning in NumPy."""
import itertools

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from contrib_cases import Cases, one_node, ort_run  # noqa: E402

F32 = np.float32


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(F32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def heads_of(x, heads):
    """[B, S, N * H] to [B, N, S, H]."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def rows_of(x):
    """[B, N, S, H] to [B, S, N * H]."""
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def attend(q, k, v, added=None, scale=None):
    """q, k, v: [B, N, S, H]."""
    s = np.einsum("bnsh,bnth->bnst", q.astype(np.float64), k) * (scale or q.shape[-1] ** -0.5)
    if added is not None:
        s = s + added
    return np.einsum("bnst,bnth->bnsh", softmax(s), v).astype(F32)


# ---- MultiHeadAttention ----

def key_mask(rng, form, b, s, t):
    if form == "lengths":
        return rng.integers(1, t + 1, b).astype(np.int32)
    if form == "keys":
        mask = rng.integers(0, 2, (b, t))
        mask[:, 0] = 1
        return mask.astype(np.int32)
    if form == "rows":
        mask = rng.integers(0, 2, (b, s, t))
        mask[:, :, 0] = 1  # a row of nothing is a row of scores less 10000, rounded
        return mask.astype(np.int32)
    return None


def mha_inputs(rng, b, s, l, n, h, hv, past, bias, mask, added, t=None):
    t = t or l + past
    return [("query", normal(rng, b, s, n * h)), ("key", normal(rng, b, l, n * h)),
            ("value", normal(rng, b, l, n * hv)),
            ("bias", normal(rng, n * (2 * h + hv)) if bias else None),
            ("key_padding_mask", key_mask(rng, mask, b, s, t)),
            ("attention_bias", normal(rng, *added, s, t) if added else None),
            ("past_key", normal(rng, b, n, past, h) if past else None),
            ("past_value", normal(rng, b, n, past, hv) if past else None)]


MHA = [dict(b=2, s=5, l=5, n=3, h=8, hv=8), dict(b=1, s=1, l=1, n=2, h=16, hv=16, past=7),
       dict(b=2, s=3, l=9, n=2, h=8, hv=12), dict(b=2, s=4, l=4, n=2, h=8, hv=8, past=3, outs=3),
       dict(b=1, s=70, l=70, n=2, h=32, hv=32), dict(b=3, s=2, l=2, n=1, h=4, hv=4, outs=3),
       dict(b=1, s=9, l=400, n=2, h=8, hv=8)]


def test_multi_head_attention(sardonyx, tmp_path):
    rng = np.random.default_rng(1)
    cases = Cases(tmp_path)
    for c, bias, mask, added, causal in itertools.product(
            MHA, (False, True), (None, "lengths", "keys", "rows"), (None, "whole", "one"), (0, 1)):
        if rng.random() > 0.45:
            continue
        c = dict(dict(past=0, outs=1), **c)
        outs = c.pop("outs")
        if c["s"] != c["l"] and causal:
            continue
        dims = {None: None, "whole": (c["b"], c["n"]), "one": (1, 1)}[added]
        inputs = mha_inputs(rng, bias=bias, mask=mask, added=dims, **c)
        attributes = {"num_heads": c["n"], "unidirectional": causal}
        if rng.random() > 0.7:
            attributes["scale"] = 0.3
        if rng.random() > 0.7:
            attributes["mask_filter_value"] = -50.0
        # with a cache onnxruntime wants the new one as well
        cases.node("MultiHeadAttention", inputs, 3 if c["past"] else outs, attributes)
    cases.run(sardonyx)


def test_multi_head_attention_cross(sardonyx, tmp_path):
    """Keys and values as [B, N, L, H]; the scores as an output."""
    rng = np.random.default_rng(2)
    cases = Cases(tmp_path)
    for b, s, l, n, h in [(2, 3, 7, 2, 8), (1, 1, 40, 3, 16), (2, 6, 5, 1, 12)]:
        inputs = [("query", normal(rng, b, s, n * h)), ("key", normal(rng, b, n, l, h)),
                  ("value", normal(rng, b, n, l, h))]
        cases.node("MultiHeadAttention", inputs, 1, {"num_heads": n})
    for b, s, n, h, mask in [(2, 5, 2, 8, None), (1, 4, 3, 16, "keys"), (2, 1, 2, 8, None)]:
        inputs = mha_inputs(rng, b, s, s, n, h, h, 2, False, mask, None)
        cases.node("MultiHeadAttention", inputs, 4, {"num_heads": n})
        cases.node("MultiHeadAttention", inputs, 4, {"num_heads": n, "unidirectional": 1})
    cases.run(sardonyx)


def test_multi_head_attention_packed(sardonyx, tmp_path):
    """onnxruntime has the packed forms for GPUs only."""
    rng = np.random.default_rng(3)
    cases = Cases(tmp_path)
    for b, s, l, n, h, bias in [(2, 5, 5, 3, 8, False), (1, 4, 9, 2, 16, False), (2, 3, 3, 2, 8, True)]:
        q, k, v = normal(rng, b, n, s, h), normal(rng, b, n, l, h), normal(rng, b, n, l, h)
        added = normal(rng, 3, n, h) if bias else np.zeros((3, n, h), F32)
        golden = [rows_of(attend(q + added[0][:, None], k + added[1][:, None], v + added[2][:, None]))]
        rest = [("value", None), ("bias", added.reshape(-1) if bias else None)]
        kv = np.stack([k, v], 3).transpose(0, 2, 1, 3, 4).copy()
        cases.node("MultiHeadAttention", [("query", rows_of(q)), ("key", kv), *rest], 1,
                   {"num_heads": n}, golden)
        if s == l:
            qkv = np.stack([q, k, v], 3).transpose(0, 2, 1, 3, 4).copy()
            cases.node("MultiHeadAttention", [("query", qkv), ("key", None), *rest], 1,
                       {"num_heads": n}, golden)
    cases.run(sardonyx)


def test_multi_head_attention_narrow(sardonyx, tmp_path):
    """f16 against f32."""
    rng = np.random.default_rng(4)
    cases = Cases(tmp_path)
    for past, causal in [(0, 0), (5, 1)]:
        inputs = [(n, None if a is None else a.astype(np.float16).astype(F32) if a.dtype == F32 else a)
                  for n, a in mha_inputs(rng, 2, 6, 6, 2, 16, 16, past, True, "lengths", None)]
        outs = 3 if past else 1
        golden = Cases(tmp_path / f"f32_{past}").node("MultiHeadAttention", inputs, outs,
                                              {"num_heads": 2, "unidirectional": causal})
        narrow = [(n, a.astype(np.float16) if a is not None and a.dtype == F32 else a)
                  for n, a in inputs]
        cases.node("MultiHeadAttention", narrow, outs, {"num_heads": 2, "unidirectional": causal},
                   [g.astype(np.float16) for g in golden])
    cases.run(sardonyx, 2e-3, 2e-3)


# ---- DecoderMaskedMultiHeadAttention ----

def test_decoder_masked(sardonyx, tmp_path):
    rng = np.random.default_rng(5)
    cases = Cases(tmp_path)
    for b, n, h, most, past, bias, mask, outs in itertools.product(
            (1, 4), (2,), (8, 16), (12, 40), (0, 9), (False, True), (False, True), (3, 4)):
        if rng.random() > 0.4:
            continue
        d = n * h
        inputs = [("query", normal(rng, b, 1, d)), ("key", normal(rng, b, 1, d)),
                  ("value", normal(rng, b, 1, d)),
                  ("mask", key_mask(rng, "keys", b, 1, past + 1) if mask else None),
                  ("added", normal(rng, b, n, 1, past + 1) if rng.random() > 0.6 else None),
                  ("past_key", normal(rng, b, n, most, h)), ("past_value", normal(rng, b, n, most, h)),
                  ("past_length", np.array([past], np.int32)), ("beam_width", None), ("beams", None),
                  ("bias", normal(rng, 3 * d) if bias else None)]
        attributes = {"num_heads": n, "past_present_share_buffer": 1, "output_qk": int(outs == 4)}
        golden = masked_reference(dict(inputs), n, past, outs)
        cases.node("DecoderMaskedMultiHeadAttention", inputs, outs, attributes, golden)
    for b, n, h, l, mask in [(2, 2, 8, 7, False), (1, 3, 16, 30, True)]:
        inputs = [("query", normal(rng, b, 1, n * h)), ("key", normal(rng, b, n, l, h)),
                  ("value", normal(rng, b, n, l, h)),
                  ("mask", key_mask(rng, "keys", b, 1, l) if mask else None)]
        cases.node("DecoderMaskedMultiHeadAttention", inputs, 1, {"num_heads": n})
    cases.run(sardonyx)


def masked_reference(x, n, past, outs):
    """What is beyond the keys in the caches is 0 or as it was: here as onnxruntime copies it."""
    bias = x["bias"] if x["bias"] is not None else np.zeros(3 * x["query"].shape[-1], F32)
    q, k, v = (heads_of(x[name] + b, n) for name, b in zip(("query", "key", "value"),
                                                           np.split(bias, 3)))
    present = []
    for fresh, name in ((k, "past_key"), (v, "past_value")):
        cache = np.zeros_like(x[name])
        cache[:, :, :past] = x[name][:, :, :past]
        cache[:, :, past:past + 1] = fresh
        present.append(cache)
    added = np.zeros((1, 1, 1, past + 1))
    if x["mask"] is not None:
        added = added + np.where(x["mask"] > 0, 0, -10000.0)[:, None, None]
    if x["added"] is not None:
        added = added + x["added"]
    keys, values = (c[:, :, :past + 1] for c in present)
    s = np.einsum("bnsh,bnth->bnst", q.astype(np.float64), keys) * q.shape[-1] ** -0.5 + added
    y = rows_of(np.einsum("bnst,bnth->bnsh", softmax(s), values).astype(F32))
    return [y, *present, s.astype(F32)][:outs]


def test_decoder_masked_beams(sardonyx, tmp_path):
    rng = np.random.default_rng(6)
    cases = Cases(tmp_path)
    for groups, width, n, h, most, past in [(1, 3, 2, 8, 10, 6), (2, 2, 1, 16, 20, 19)]:
        b, d = groups * width, n * h
        beams = rng.integers(0, width, (groups, width, most)).astype(np.int32)
        x = {"query": normal(rng, b, 1, d), "key": normal(rng, b, 1, d), "value": normal(rng, b, 1, d),
             "mask": None, "added": None, "past_key": normal(rng, b, n, most, h),
             "past_value": normal(rng, b, n, most, h), "past_length": np.array([past], np.int32),
             "beam_width": np.array([width], np.int32), "beams": beams, "bias": None}
        golden = masked_reference(x, n, past, 3)
        turned = dict(x)
        for name in ("past_key", "past_value"):
            cache = x[name].copy()
            for row, t in itertools.product(range(b), range(past)):
                whose = row // width * width + beams[row // width, row % width, t]
                cache[row, :, t] = x[name][whose, :, t]
            turned[name] = cache
        golden[0] = masked_reference(turned, n, past, 1)[0]
        cases.node("DecoderMaskedMultiHeadAttention", list(x.items()), 3,
                   {"num_heads": n, "past_present_share_buffer": 1}, golden)
    cases.run(sardonyx)


# ---- Attention ----

def project(x, weights, bias, heads, widths=None):
    """q, k, v as [B, N, S, H]."""
    rows = x.astype(np.float64) @ weights + (0 if bias is None else bias)
    at = np.cumsum(widths or [weights.shape[1] // 3] * 3)[:2]
    return [heads_of(part.astype(F32), heads) for part in np.split(rows, at, axis=-1)]


def attention_mask(rng, form, b, s, t):
    if form == "ends":
        begins = rng.integers(0, t // 2 + 1, b)
        return np.concatenate([np.maximum(rng.integers(1, t + 1, b), begins + 1), begins]).astype(np.int32)
    return key_mask(rng, form, b, s, t)


ATTENTION = [dict(b=2, s=5, d=12, n=3, h=8), dict(b=1, s=1, d=16, n=2, h=16, past=6),
             dict(b=2, s=4, d=10, n=2, h=8, hv=12), dict(b=2, s=3, d=8, n=2, h=4, past=5),
             dict(b=1, s=50, d=16, n=2, h=32)]


def test_attention(sardonyx, tmp_path):
    rng = np.random.default_rng(11)
    cases = Cases(tmp_path)
    for c, bias, mask, added, causal in itertools.product(
            ATTENTION, (False, True), (None, "lengths", "keys", "rows", "ends"), (False, True), (0, 1)):
        if rng.random() > 0.5 or (causal and mask == "ends"):  # such a row may see nothing
            continue
        c = dict(dict(past=0, hv=0), **c)
        if c["past"] and added:
            continue  # onnxruntime refuses it
        b, s, d, n, h, hv = c["b"], c["s"], c["d"], c["n"], c["h"], c["hv"] or c["h"]
        width, t = n * (2 * h + hv), s + c["past"]
        inputs = [("input", normal(rng, b, s, d)), ("weights", normal(rng, d, width) * 0.3),
                  ("bias", normal(rng, width) if bias else None),
                  ("mask", attention_mask(rng, mask, b, s, t)),
                  ("past", normal(rng, 2, b, n, c["past"], h) if c["past"] else None),
                  ("attention_bias", normal(rng, b, n, s, t) if added else None)]
        attributes = {"num_heads": n, "unidirectional": causal}
        if c["hv"]:
            attributes["qkv_hidden_sizes"] = [n * h, n * h, n * hv]
        if rng.random() > 0.7:
            attributes["scale"] = 0.2
        outs = 2 if c["past"] or (not c["hv"] and rng.random() > 0.7) else 1
        constants = ("weights", "bias") if rng.random() > 0.3 else ()
        golden = None
        if not bias:  # onnxruntime wants one
            zeros = [(n, np.zeros(width, F32) if n == "bias" else a) for n, a in inputs]
            golden = ort_run(one_node("Attention", zeros, outs, attributes),
                             {n: a for n, a in zeros if a is not None})
        cases.node("Attention", inputs, outs, attributes, golden, constants=constants)
    cases.run(sardonyx, 2e-4, 2e-5)


def test_attention_gpu_forms(sardonyx, tmp_path):
    """A shared cache, a mask of 4 axes, rotary positions: what onnxruntime does on GPUs only."""
    rng = np.random.default_rng(12)
    cases = Cases(tmp_path)
    for b, s, d, n, h, most, past in [(2, 3, 8, 2, 8, 12, 5), (1, 1, 16, 2, 4, 7, 6)]:
        x, w = normal(rng, b, s, d), normal(rng, d, 3 * n * h) * 0.3
        bias, cache = normal(rng, 3 * n * h), normal(rng, 2, b, n, most, h)
        q, k, v = project(x, w, bias, n)
        present = np.zeros_like(cache)
        present[:, :, :, :past] = cache[:, :, :, :past]
        present[:, :, :, past:past + s] = np.stack([k, v])
        keys, values = present[:, :, :, :past + s]
        y = rows_of(attend(q, keys, values))
        cases.node("Attention", [("x", x), ("w", w), ("bias", bias), ("mask", None), ("past", cache),
                                 ("added", None), ("length", np.array([past], np.int32))], 2,
                   {"num_heads": n, "past_present_share_buffer": 1}, [y, present])
    b, s, d, n, h = 2, 4, 8, 2, 8
    x, w = normal(rng, b, s, d), normal(rng, d, 3 * n * h) * 0.3
    mask = np.tril(rng.integers(0, 2, (b, 1, 9, 9))).astype(np.int32)
    mask[:, :, :, 0] = 1
    q, k, v = project(x, w, None, n)
    golden = rows_of(attend(q, k, v, np.where(mask[:, :, :s, :s] > 0, 0, -10000.0)))
    cases.node("Attention", [("x", x), ("w", w), ("bias", None), ("mask", mask)], 1,
               {"num_heads": n}, [golden])
    for turned, past in [(8, 0), (4, 3)]:
        bias = normal(rng, 3 * n * h)
        q, k, v = project(x, w, bias, n)
        angles = (np.arange(s) + past)[:, None] / 10000.0 ** (np.arange(0, turned, 2) / turned)
        q, k = (rotate(t, np.cos(angles), np.sin(angles)).astype(F32) for t in (q, k))
        cache = normal(rng, 2, b, n, past, h)
        present = np.concatenate([cache, np.stack([k, v])], axis=3)
        cases.node("Attention", [("x", x), ("w", w), ("bias", bias), ("mask", None),
                                 ("past", cache if past else None)], 2,
                   {"num_heads": n, "do_rotary": 1, "rotary_embedding_dim": turned},
                   [rows_of(attend(q, present[0], present[1])), present])
    cases.run(sardonyx, 2e-4, 2e-5)


def rotate(x, cosine, sine, interleaved=False):
    """x: [..., S, H]; cosine, sine: [..., S, turned / 2]."""
    turned = 2 * cosine.shape[-1]
    if interleaved:
        a, b = x[..., 0:turned:2], x[..., 1:turned:2]
    else:
        a, b = x[..., :turned // 2], x[..., turned // 2:turned]
    y = x.astype(np.float64).copy()
    pair = (a * cosine - b * sine, a * sine + b * cosine)
    if interleaved:
        y[..., 0:turned:2], y[..., 1:turned:2] = pair
    else:
        y[..., :turned // 2], y[..., turned // 2:turned] = pair
    return y


def test_decoder_masked_self(sardonyx, tmp_path):
    """Cached keys lie in runs of four columns."""
    rng = np.random.default_rng(13)
    cases = Cases(tmp_path)
    for b, d, n, h, most, past, mask in [(2, 8, 2, 8, 10, 4, False), (1, 16, 3, 16, 20, 19, True)]:
        x, w, bias = normal(rng, b, 1, d), normal(rng, d, 3 * n * h) * 0.3, normal(rng, 3 * n * h)
        cache = normal(rng, 2, b, n, most, h)
        cache[:, :, :, past:] = 0
        q, k, v = project(x, w, bias, n)
        present = cache.copy()
        present[:, :, :, past:past + 1] = np.stack([k, v])
        keys, values = present[:, :, :, :past + 1]
        rows = key_mask(rng, "keys", b, 1, past + 1) if mask else None
        added = np.where(rows > 0, 0, -10000.0)[:, None, None] if mask else None

        def turn(t):
            k = t[0].reshape(b, n, most, h // 4, 4).transpose(0, 1, 3, 2, 4).reshape(t[0].shape)
            return np.stack([k, t[1]])
        cases.node("DecoderMaskedSelfAttention",
                   [("x", x), ("w", w), ("bias", bias), ("mask", rows), ("past", turn(cache)),
                    ("added", None), ("length", np.array([past], np.int32))], 2,
                   {"num_heads": n, "past_present_share_buffer": 1},
                   [rows_of(attend(q, keys, values, added)), turn(present)])
    cases.run(sardonyx, 2e-4, 2e-5)


def test_quantised_attention(sardonyx, tmp_path):
    rng = np.random.default_rng(14)
    cases = Cases(tmp_path)
    for signed, columns, mask, past, causal in itertools.product(
            (False, True), (False, True), (None, "lengths", "keys"), (0, 4), (0, 1)):
        b, s, d, n, h = 2, 5, 16, 2, 8
        if rng.random() > 0.5:
            continue
        # onnxruntime's product of u8 and s8 saturates on CPUs without VNNI: 7 bits do not
        lo, span, dtype = (-64, 128, np.int8) if signed else (0, 256, np.uint8)
        facts = (3 * n * h,) if columns else ()
        inputs = [("input", rng.integers(0, 256, (b, s, d)).astype(np.uint8)),
                  ("weight", rng.integers(lo, lo + span, (d, 3 * n * h)).astype(dtype)),
                  ("bias", normal(rng, 3 * n * h)), ("input_scale", np.array(0.02, F32)),
                  ("weight_scale", np.asarray(rng.uniform(0.002, 0.01, facts), F32)),
                  ("mask", key_mask(rng, mask, b, s, s + past)),
                  ("input_zero", np.array(120, np.uint8)),
                  ("weight_zero", np.asarray(rng.integers(lo + 50, lo + 90, facts)).astype(dtype)),
                  ("past", normal(rng, 2, b, n, past, h) if past else None)]
        cases.node("QAttention", inputs, 2 if past else 1, {"num_heads": n, "unidirectional": causal},
                   types_out=[F32, F32],
                   constants=("weight", "bias", "weight_scale", "weight_zero", "input_scale", "input_zero"))
    cases.run(sardonyx, 2e-4, 2e-5)


# ---- rows without padding ----

def packing(rng, b, s):
    lengths = rng.integers(1, s + 1, b)
    places = np.arange(b * s).reshape(b, s)
    real = np.concatenate([places[i, :n] for i, n in enumerate(lengths)])
    rest = np.concatenate([places[i, n:] for i, n in enumerate(lengths)])
    offsets = np.concatenate([real, rest]).reshape(b, s).astype(np.int32)
    return lengths, real, offsets, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def padded(tokens, real, b, s):
    rows = np.zeros((b * s, *tokens.shape[1:]), tokens.dtype)
    rows[real] = tokens
    return rows.reshape(b, s, *tokens.shape[1:])


def test_packed_attention(sardonyx, tmp_path):
    rng = np.random.default_rng(15)
    cases = Cases(tmp_path)
    for b, s, d, n, h, hv, extra in [(3, 4, 8, 2, 8, 8, False), (2, 7, 12, 3, 8, 12, True), (1, 5, 4, 1, 4, 4, True)]:
        lengths, real, offsets, sums = packing(rng, b, s)
        added = normal(rng, 1, n, s, s) if extra else None
        hidden = (np.arange(s)[None] >= lengths[:, None])[:, None, None] * -1e30
        total = hidden + (0 if added is None else added)
        x, w = normal(rng, len(real), d), normal(rng, d, n * (2 * h + hv)) * 0.3
        bias = normal(rng, n * (2 * h + hv))
        q, k, v = project(padded(x, real, b, s), w, bias, n, [n * h, n * h, n * hv])
        y = rows_of(attend(q, k, v, total)).reshape(b * s, -1)[real]
        cases.node("PackedAttention", [("x", x), ("w", w), ("bias", bias), ("offsets", offsets),
                                       ("sums", sums), ("added", added)], 1,
                   {"num_heads": n, "qkv_hidden_sizes": [n * h, n * h, n * hv]}, [y])
        parts = [normal(rng, len(real), n * size) for size in (h, h, hv)]
        bias = normal(rng, n * (2 * h + hv))
        at = np.cumsum([n * h, n * h])
        q, k, v = (heads_of(padded(t, real, b, s) + c, n) for t, c in zip(parts, np.split(bias, at)))
        y = rows_of(attend(q, k, v, total)).reshape(b * s, -1)[real]
        cases.node("PackedMultiHeadAttention",
                   [("q", parts[0]), ("k", parts[1]), ("v", parts[2]), ("bias", bias),
                    ("offsets", offsets), ("sums", sums), ("added", added)], 1, {"num_heads": n}, [y])
        qkv = normal(rng, len(real), n, 3, h)
        q, k, v = (heads_of(padded(qkv[:, :, i].reshape(len(real), -1), real, b, s), n) for i in range(3))
        y = rows_of(attend(q, k, v, total)).reshape(b * s, -1)[real]
        cases.node("PackedMultiHeadAttention",
                   [("q", qkv), ("k", None), ("v", None), ("bias", None), ("offsets", offsets),
                    ("sums", sums), ("added", added)], 1, {"num_heads": n}, [y])
    cases.run(sardonyx, 2e-4, 2e-5)


def test_decoder_attention(sardonyx, tmp_path):
    rng = np.random.default_rng(16)
    cases = Cases(tmp_path)
    for cross, past, masked in itertools.product((False, True), repeat=3):
        s, t, b, n, h, cached = 3, 6, 2, 2, 8, 5
        d = n * h
        q, key = normal(rng, s, b, d), normal(rng, t, b, d)
        wq, wkv, bias = normal(rng, d, d) * 0.3, normal(rng, d, 2 * d) * 0.3, normal(rng, 3 * d)
        caches = [normal(rng, b, n, cached, h) for _ in range(2)]
        heads = [heads_of(x.transpose(1, 0, 2), n) for x in
                 (q @ wq + bias[:d], *np.split((key if cross else q) @ wkv + bias[d:], 2, -1))]
        k, v = heads[1:]
        if past:
            k, v = caches if cross else [np.concatenate(p, 2) for p in zip(caches, (k, v))]
        hidden = rng.random((b, k.shape[2])) > 0.6
        hidden[:, 0] = False
        y = attend(heads[0], k, v, hidden[:, None, None] * -1e30 if masked else None)
        flags = [("static_kv", cross), ("use_past", past), ("state", past), ("masked", masked)]
        inputs = [("q", q), ("key", key), ("wq", wq), ("wkv", wkv), ("bias", bias),
                  ("hidden", hidden if masked else None), ("k", caches[0] if past else None),
                  ("v", caches[1] if past else None)] + [(f, np.array([on])) for f, on in flags]
        cases.node("DecoderAttention", inputs, 3, {"num_heads": n},
                   [rows_of(y).transpose(1, 0, 2), k, v], constants=[f for f, _ in flags])
    cases.run(sardonyx, 2e-4, 2e-5)


# ---- GroupQueryAttention ----

def gqa_inputs(rng, b, s, n, kv, h, past, cap, packed=False, lengths=None, turned=0, **more):
    """In the operator's order. cap 0: no cache; lengths: keys of each batch entry."""
    q, k, v = normal(rng, b, s, n * h), normal(rng, b, s, kv * h), normal(rng, b, s, kv * h)
    angles = rng.uniform(0, 6, (past + s + 5, max(turned, 2) // 2))
    total = past + s
    x = {"query": np.concatenate([q, k, v], -1) if packed else q, "key": None if packed else k,
         "value": None if packed else v,
         "past_key": normal(rng, b, kv, cap, h) if cap else None,
         "past_value": normal(rng, b, kv, cap, h) if cap else None,
         "seqlens_k": np.array([t - 1 for t in lengths or [total] * b], np.int32),
         "total": np.array([total], np.int32),
         "cos": np.cos(angles).astype(F32) if turned else None,
         "sin": np.sin(angles).astype(F32) if turned else None}
    x.update({name: more.get(name) for name in (
        "position_ids", "attention_bias", "head_sink", "k_scale", "v_scale", "q_norm", "k_norm")})
    return x


GQA = [dict(b=2, s=5, n=4, kv=2, h=16, past=0, cap=0), dict(b=1, s=3, n=4, kv=1, h=16, past=4, cap=4),
       dict(b=2, s=1, n=4, kv=4, h=32, past=4, cap=12, lengths=[5, 3]), dict(b=1, s=1, n=2, kv=2, h=16, past=6, cap=6),
       dict(b=1, s=70, n=2, kv=1, h=16, past=0, cap=80), dict(b=1, s=6, n=3, kv=3, h=48, past=20, cap=40),
       dict(b=1, s=1, n=16, kv=4, h=32, past=300, cap=320), dict(b=2, s=1, n=12, kv=2, h=16, past=140, cap=141, lengths=[141, 9])]
GQA_FORMS = [{}, dict(softcap=1.5), dict(smooth_softmax=1), dict(local_window_size=3), dict(causal=0),
             dict(scale=0.4), dict(softcap=0.7, local_window_size=5), dict(qk_output=1), dict(qk_output=2)]


def test_group_query_attention(sardonyx, tmp_path):
    rng = np.random.default_rng(21)
    cases = Cases(tmp_path)
    for c, attributes, packed, rotary in itertools.product(GQA, GQA_FORMS, (0, 1), (0, 1, 2)):
        if rng.random() > 0.5:
            continue
        more = {}
        s, n, total = c["s"], c["n"], c["past"] + c["s"]
        if rng.random() > 0.6:
            more["attention_bias"] = normal(rng, *[(1, 1), (c["b"], n), (1, n)][rng.integers(3)], s, total)
        if rng.random() > 0.7:
            more["head_sink"] = normal(rng, n)
        if rotary and rng.random() > 0.6:
            more["position_ids"] = rng.integers(0, total + 1, (c["b"], s)) if c["past"] else np.full((c["b"], s), 2)
        x = gqa_inputs(rng, packed=bool(packed), turned=16 if rotary else 0, **c, **more)
        attributes = dict(attributes, num_heads=n, kv_num_heads=c["kv"], do_rotary=int(rotary > 0),
                          rotary_interleaved=int(rotary == 2))
        outs = 4 if "qk_output" in attributes else 3
        model = one_node("GroupQueryAttention", list(x.items()), outs, attributes)
        golden = ort_run(model, {k: a for k, a in x.items() if a is not None})
        for b, keys in enumerate(c.get("lengths", []) if outs == 4 else []):
            golden[3][b, :, :, keys:] = 0  # onnxruntime leaves it as it was
        cases.node("GroupQueryAttention", list(x.items()), outs, attributes, golden,
                   constants=("cos", "sin"))
    assert cases.count > 120
    cases.run(sardonyx)


def test_group_query_attention_narrow(sardonyx, tmp_path):
    rng = np.random.default_rng(22)
    cases = Cases(tmp_path)
    for c, attributes in itertools.product(GQA, GQA_FORMS[:5]):
        x = gqa_inputs(rng, turned=16, **c)
        x = {k: a.astype(np.float16) if a is not None and a.dtype == F32 else a for k, a in x.items()}
        cases.node("GroupQueryAttention", list(x.items()), 3,
                   dict(attributes, num_heads=c["n"], kv_num_heads=c["kv"], do_rotary=1))
    cases.run(sardonyx, 4e-3, 4e-3)


def test_group_query_attention_coded(sardonyx, tmp_path):
    """Caches of 8 and 4 bits."""
    rng = np.random.default_rng(23)
    cases = Cases(tmp_path)
    for bits, form, (s, past, b), narrow in itertools.product(
            (8, 4), ("PER_TENSOR", "PER_CHANNEL"), ((3, 0, 1), (1, 4, 2), (5, 2, 1)), (False, True)):
        n, kv, h, cap = 4, 2, 16, 8
        facts = (1,) if form == "PER_TENSOR" else (1, kv, 1, h)
        scales = {name: rng.uniform(0.1, 0.3, facts).astype(F32) for name in ("k_scale", "v_scale")}
        x = gqa_inputs(rng, b, s, n, kv, h, past, cap, **scales)
        dtype = np.int8 if bits == 8 else np.uint8
        if narrow:
            for name in ("query", "key", "value"):
                x[name] = x[name].astype(np.float16)
        for name in ("past_key", "past_value"):
            codes = rng.integers(0, 256, (b, kv, cap, h * bits // 8)).astype(np.uint8)
            x[name] = codes.view(dtype)
        cases.node("GroupQueryAttention", list(x.items()), 3,
                   dict(num_heads=n, kv_num_heads=kv, k_quant_type=form, v_quant_type=form,
                        kv_cache_bit_width=bits), types_out=[x["query"].dtype, dtype, dtype])
    cases.run(sardonyx, 3e-3, 3e-3)


def test_group_query_attention_sliding(sardonyx, tmp_path):
    rng = np.random.default_rng(24)
    cases, narrow = Cases(tmp_path / "f32"), Cases(tmp_path / "f16")
    for cap, w, past, s, turned in [(4, 4, 0, 3, 0), (4, 4, 6, 1, 16), (6, 4, 3, 5, 0), (6, 4, 9, 1, 0),
                                    (5, 3, 0, 12, 16), (8, 3, 30, 4, 16)]:
        x = gqa_inputs(rng, 1, s, 2, 1, 16, past, cap, turned=turned)
        attributes = dict(num_heads=2, kv_num_heads=1, local_window_size=w, sliding_window_cache=1,
                          do_rotary=int(turned > 0))
        model = one_node("GroupQueryAttention", list(x.items()), 3, attributes)
        feeds = {k: a for k, a in x.items() if a is not None}
        golden = ort_run(model, feeds)
        total, group = past + s, cap - w + 1
        kept = total if total <= cap else total - group * -(-(total - cap) // group)
        for cache in golden[1:]:
            cache[:, :, kept:] = 0  # has no meaning
        cases.add(model, feeds, golden)
        x = {k: v.astype(np.float16) if v is not None and v.dtype == F32 else v for k, v in x.items()}
        narrow.add(one_node("GroupQueryAttention", list(x.items()), 3, attributes),
                   {k: a for k, a in x.items() if a is not None}, [g.astype(np.float16) for g in golden])
    cases.run(sardonyx)
    narrow.run(sardonyx, 4e-3, 4e-3)


def test_group_query_attention_narrow_weights(sardonyx, tmp_path):
    """A graph with weights of f16 runs as one of f32, but its caches stay as they are: no step converts all of one."""
    rng = np.random.default_rng(27)
    cases = Cases(tmp_path)
    for c in GQA[1:]:
        x = gqa_inputs(rng, turned=16, **c)
        x = {k: a.astype(np.float16) if a is not None and a.dtype == F32 else a for k, a in x.items()}
        model = one_node("GroupQueryAttention", list(x.items()), 3,
                         dict(num_heads=c["n"], kv_num_heads=c["kv"], do_rotary=1), constants=("cos", "sin"))
        width = x["query"].shape[2]
        weight = np.eye(width, dtype=np.float16) + normal(rng, width, width).astype(np.float16) / 8
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "weight"))
        model.graph.node[0].input[0] = "rows"
        model.graph.node.insert(0, onnx.helper.make_node("MatMul", ["query", "weight"], ["rows"]))
        feeds = {k: a for k, a in x.items() if a is not None and k not in ("cos", "sin")}
        cases.add(model, feeds, ort_run(model, feeds))
        folder = cases.folder / f"case_{cases.count - 1:03d}"
        steps = sardonyx("profile", folder / "model.onnx", "--inputs", folder / "test_data_set_0", "--runs", "1",
                         "--json").json["nodes"]
        assert any("cache_encode" in step["kernel"] for step in steps)
        whole = [step for step in steps if step["kernel"] in ("cast", "convert") and f",{c['cap']}," in step["shapes"]]
        assert not whole, whole
    cases.run(sardonyx, 4e-3, 4e-3)


def test_group_query_attention_norms(sardonyx, tmp_path):
    """onnxruntime has the norms of queries and keys for GPUs only."""
    rng = np.random.default_rng(25)
    cases = Cases(tmp_path)
    weights = {"q_norm": normal(rng, 16), "k_norm": normal(rng, 16)}
    x = gqa_inputs(rng, 2, 4, 4, 2, 16, 0, 0, turned=16, **weights)
    plain = dict(x, q_norm=None, k_norm=None)
    for name, weight in (("query", "q_norm"), ("key", "k_norm")):
        t = x[name].reshape(2, 4, -1, 16)
        t = t / np.sqrt((t ** 2).mean(-1, keepdims=True) + 1e-6) * weights[weight]
        plain[name] = t.reshape(x[name].shape)
    attributes = dict(num_heads=4, kv_num_heads=2, do_rotary=1)
    golden = ort_run(one_node("GroupQueryAttention", list(plain.items()), 3, attributes),
                     {k: a for k, a in plain.items() if a is not None})
    cases.node("GroupQueryAttention", list(x.items()), 3, attributes, golden)
    cases.run(sardonyx)


def test_sparse_attention(sardonyx, tmp_path):
    rng = np.random.default_rng(26)
    cases = Cases(tmp_path)
    for b, s, past, layouts, packed, rotary in [(1, 40, 0, 2, False, 0), (2, 1, 50, 1, False, 1),
                                                (1, 30, 0, 1, True, 2), (2, 1, 33, 2, True, 1)]:
        n, kv, h, size, most = 4, 2, 32, 16, 64
        blocks = most // size
        seen = np.tril(rng.integers(0, 2, (layouts, blocks, blocks)) | np.eye(blocks, dtype=int))
        columns = [np.concatenate([np.flatnonzero(r) for r in layout]) for layout in seen]
        wide = max(map(len, columns))
        x = gqa_inputs(rng, b, s, n, kv, h, past, most, packed, turned=32 if rotary else 0)
        x = {"query": x["query"], "key": x["key"], "value": x["value"], "past_key": x["past_key"],
             "past_value": x["past_value"],
             "rows": np.array([np.concatenate([[0], np.cumsum(r.sum(-1))]) for r in seen], np.int32),
             "columns": np.array([np.pad(c, (0, wide - len(c)), constant_values=-1) for c in columns], np.int32),
             "total": x["total"], "lengths": (x["seqlens_k"] + 1).astype(np.int32),
             "cos": x["cos"], "sin": x["sin"]}
        if rotary:
            angles = rng.uniform(0, 6, (most, 16))
            x["cos"], x["sin"] = np.cos(angles).astype(F32), np.sin(angles).astype(F32)
        attributes = dict(num_heads=n, kv_num_heads=kv, sparse_block_size=size,
                          do_rotary=int(rotary > 0), rotary_interleaved=int(rotary == 2))
        golden = shared_run(one_node("SparseAttention", list(x.items()), 3, attributes), x)
        for cache in golden[1:]:
            cache[:, :, past + s:] = 0
        for name in ("past_key", "past_value"):
            x[name][:, :, past + s:] = 0
        cases.node("SparseAttention", list(x.items()), 3, attributes, golden)
    cases.run(sardonyx)


def shared_run(model, x):
    """onnxruntime with present_key and present_value in the memory of past_key and past_value."""
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    values = {k: ort.OrtValue.ortvalue_from_numpy(a) for k, a in x.items() if a is not None}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("out0")
    binding.bind_ortvalue_output("out1", values["past_key"])
    binding.bind_ortvalue_output("out2", values["past_value"])
    session.run_with_iobinding(binding)
    return [o.numpy().copy() for o in binding.get_outputs()]


# ---- rotary positions, biases, padding ----

def test_rotary_embedding(sardonyx, tmp_path):
    rng = np.random.default_rng(31)
    cases = Cases(tmp_path)
    for b, s, n, h, turned, four, form, interleaved, narrow in itertools.product(
            (1, 2), (1, 5), (1, 3), (16, 64), (0, 8), (False, True), ("ids", "first"), (0, 1), (False, True)):
        if rng.random() > 0.25:
            continue
        x = normal(rng, b, s, n * h).astype(np.float16 if narrow else F32)
        angles = rng.uniform(0, 6, (20, (turned or h) // 2)).astype(x.dtype)
        ids = rng.integers(0, 20, (b, s)) if form == "ids" else np.array([rng.integers(0, 15)])
        inputs = [("x", heads_of(x, n) if four else x), ("ids", ids),
                  ("cos", np.cos(angles)), ("sin", np.sin(angles))]
        attributes = {"interleaved": interleaved}
        if turned:
            attributes.update(rotary_embedding_dim=turned, num_heads=n)
        cases.node("RotaryEmbedding", inputs, 1, attributes)
    cases.run(sardonyx, 2e-3, 2e-3)


def test_gemma_rotary(sardonyx, tmp_path):
    rng = np.random.default_rng(32)
    cases = Cases(tmp_path)
    half = np.float16
    for b, n, s, d in [(2, 3, 5, 16), (1, 1, 1, 300)]:
        angles = rng.uniform(-9, 9, (b, s, d)).astype(F32)
        parts = [normal(rng, b, n, s, d).astype(half) for _ in range(4)]
        cos, sin = np.cos(angles).astype(half)[:, None], np.sin(angles).astype(half)[:, None]
        golden = [parts[0] * cos + parts[1] * sin, parts[2] * cos + parts[3] * sin]
        cases.node("GemmaRotaryEmbedding", [("emb", angles), *zip(("q", "q_rot", "k", "k_rot"), parts)],
                   2, None, golden, types_out=[half, half])
    cases.run(sardonyx, 2e-3, 2e-3)


def relative_bucket(away, buckets, most, both):
    """The buckets of T5."""
    first = 0
    if both:
        buckets //= 2
        first = (away > 0) * buckets
        away = abs(away)
    else:
        away = -min(away, 0)
    exact = buckets // 2
    if away < exact:
        return first + away
    far = exact + int(np.log(away / exact) / np.log(most / exact) * (buckets - exact))
    return first + min(far, buckets - 1)


def test_relative_position_bias(sardonyx, tmp_path):
    rng = np.random.default_rng(33)
    cases = Cases(tmp_path)
    for n, buckets, s, most, both in [(2, 32, 20, 128, 1), (3, 32, 50, 128, 0), (1, 8, 9, 16, 1), (2, 16, 1, 40, 0)]:
        table = normal(rng, buckets, n)
        at = np.array([[relative_bucket(j - i, buckets, most, both) for j in range(s)] for i in range(s)])
        golden = table.reshape(n, buckets)[:, at][None]  # a head's buckets lie side by side
        cases.node("RelativePositionBias", [("table", table), ("q", np.array([s])), ("k", np.array([s]))],
                   1, {"max_distance": most, "is_bidirectional": both}, [golden])
    for b, s, n, h, d, packed in [(2, 5, 3, 8, 8, False), (3, 4, 2, 16, 6, True)]:
        lengths, real, offsets, _ = packing(rng, b, s)
        x = normal(rng, b, s, n * h)
        bias, rel, weight, gate = normal(rng, n * h), normal(rng, 1, n, s, s), normal(rng, h, d), normal(rng, d)
        factor = normal(rng, 1, n, 1, 1)
        rows = x.reshape(b * s, -1)[real]
        full = padded(rows, real, b, s) if packed else x
        g = (heads_of(full + bias, n) @ weight + gate).reshape(b, n, s, 2, d // 2).sum(-1)
        u, r = np.split(1 / (1 + np.exp(-g)), 2, -1)
        golden = (u * (r * factor - 1) + 2) * rel
        cases.node("GatedRelativePositionBias",
                   [("x", rows if packed else x), ("bias", bias), ("rel", rel), ("w", weight), ("gate", gate),
                    ("factor", factor), ("offsets", offsets if packed else None)], 1, {"num_heads": n},
                   [golden.astype(F32)])
    cases.run(sardonyx)


def test_padding(sardonyx, tmp_path):
    rng = np.random.default_rng(34)
    cases = Cases(tmp_path)
    for b, s, d, dtype in [(3, 4, 5, F32), (1, 7, 2, np.float16), (2, 3, 8, F32)]:
        lengths, real, offsets, sums = packing(rng, b, s)
        x = normal(rng, b, s, d).astype(dtype)
        rows = x.reshape(b * s, d)[real]
        cases.node("RemovePadding", [("x", x), ("counts", lengths.astype(np.int32))], 4, None,
                   [rows, offsets, sums, np.array([lengths.max()], np.int32)],
                   types_out=[dtype, np.int32, np.int32, np.int32])
        cases.node("RestorePadding", [("x", rows), ("offsets", offsets)], 1, None,
                   [padded(rows, real, b, s)])
    cases.run(sardonyx)


# ---- normalisations ----

def test_skip_norms(sardonyx, tmp_path):
    rng = np.random.default_rng(35)
    cases = Cases(tmp_path)
    for op, bias, beta, shape, outs, dtype in itertools.product(
            ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), (False, True), (False, True),
            (("b", "b"), ("b", "1"), ("b", "2d"), ("2d", "2d")), (1, 4), (F32, np.float16)):
        simple = op != "SkipLayerNormalization"
        if (simple and beta) or rng.random() > 0.6:
            continue
        dims = {"b": (2, 3, 20), "1": (1, 3, 20), "2d": (3, 20)}
        x, skip = (normal(rng, *dims[k]).astype(dtype) for k in shape)
        inputs = [("x", x), ("skip", skip), ("gamma", normal(rng, 20).astype(dtype))]
        if not simple:
            inputs.append(("beta", normal(rng, 20).astype(dtype) if beta else None))
        inputs.append(("bias", normal(rng, 20).astype(dtype) if bias else None))
        model = one_node(op, inputs, outs, {"epsilon": 1e-5}, types_out=[dtype, F32, F32, dtype])
        if outs == 4:  # onnxruntime's CPU kernels leave the statistics out
            for name in (1, 2):
                model.graph.node[0].output[name] = ""
            del model.graph.output[1:3]
        cases.add(model, {k: a for k, a in inputs if a is not None})
    cases.run(sardonyx, 4e-3, 4e-3)


def test_embed_norms(sardonyx, tmp_path):
    rng = np.random.default_rng(36)
    cases = Cases(tmp_path)
    for segments, mask, positions, outs in itertools.product((False, True), (False, True), (False, True), (2, 3)):
        b, s, d = 2, 5, 12
        inputs = [("ids", rng.integers(0, 9, (b, s)).astype(np.int32)),
                  ("segment_ids", rng.integers(0, 2, (b, s)).astype(np.int32) if segments else None),
                  ("words", normal(rng, 9, d)), ("positions", normal(rng, 7, d)),
                  ("segments", normal(rng, 2, d) if segments else None),
                  ("gamma", normal(rng, d)), ("beta", normal(rng, d)),
                  ("mask", rng.integers(0, 2, (b, s)).astype(np.int32) if mask else None),
                  ("position_ids", rng.integers(0, 7, (b, s)).astype(np.int32) if positions else None)]
        cases.node("EmbedLayerNormalization", inputs, outs, {"epsilon": 1e-6},
                   types_out=[F32, np.int32, F32])
    for segments, mask, signed in itertools.product((False, True), repeat=3):
        b, s, d = 2, 4, 20
        dtype = np.int8 if signed else np.uint8

        def coded(*shape):
            return rng.integers(0, 256, shape).astype(np.uint8).view(dtype)
        tables = [("words", coded(9, d)), ("positions", coded(6, d)),
                  ("segments", coded(2, d) if segments else None), ("gamma", coded(d)), ("beta", coded(d))]
        scales = [(f"{n}_scale", None if t is None else np.array(rng.uniform(0.01, 0.1), F32)) for n, t in tables]
        zeros = [(f"{n}_zero", None if t is None else coded(1)[0]) for n, t in tables]
        inputs = [("ids", rng.integers(0, 9, (b, s)).astype(np.int32)),
                  ("segment_ids", rng.integers(0, 2, (b, s)).astype(np.int32) if segments else None), *tables,
                  ("mask", rng.integers(0, 2, (b, s)).astype(np.int32) if mask else None), *scales,
                  *[(n, None if z is None else np.array(z, dtype)) for n, z in zeros]]
        cases.node("QEmbedLayerNormalization", inputs, 2, {"epsilon": 1e-6}, types_out=[F32, np.int32])
    cases.run(sardonyx)


def test_simplified_norm(sardonyx, tmp_path):
    """SimplifiedLayerNormalization is in the standard's domain, as onnxruntime has it."""
    rng = np.random.default_rng(37)
    cases = Cases(tmp_path)
    for shape, axis, outs, dtype in [((2, 3, 20), -1, 1, F32), ((4, 6), 1, 2, F32), ((2, 3, 4), 1, 1, F32),
                                     ((2, 3, 20), -1, 1, np.float16), ((3, 8), -1, 1, np.float64)]:
        x = normal(rng, *shape).astype(dtype)
        inputs = [("x", x), ("scale", normal(rng, *shape[axis:]).astype(dtype))]
        cases.node("SimplifiedLayerNormalization", inputs, outs,
                   {"axis": axis, "epsilon": 1e-5, "stash_type": 11 if dtype is np.float64 else 1},
                   types_out=[dtype, F32], domain="")
    cases.run(sardonyx, 2e-3, 2e-3)


# ---- mixtures of experts ----

def activated(y, kind, alpha=1.0, beta=0.0, limit=np.inf, halves=False):
    if kind == "relu":
        return np.maximum(y, 0)
    if kind == "gelu":
        return 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y ** 3)))
    if kind == "silu":
        return y / (1 + np.exp(-y))
    if kind == "identity":
        return y
    gate, linear = np.split(y, 2, -1) if halves else (y[..., 0::2], y[..., 1::2])
    gate, linear = np.minimum(gate, limit), np.clip(linear, -limit, limit)
    return gate / (1 + np.exp(-alpha * gate)) * (linear + beta)


def experts_of(x, router, layers, k, kind, normalise, mixing=None, **form):
    """layers: (weights, bias) of fc1, fc2 and, as a gate, fc3."""
    rows = x.reshape(-1, x.shape[-1]).astype(np.float64)
    shares = softmax(router.astype(np.float64))
    y = np.zeros_like(rows)
    for t, row in enumerate(rows):
        top = np.argsort(-shares[t], kind="stable")[:k]
        mix = (shares if mixing is None else mixing)[t][top]
        for e, share in zip(top, mix / mix.sum() if normalise else mix):
            w, b = layers[0]
            h = activated(w[e] @ row + b[e], kind, **form)
            if len(layers) > 2:
                h = h * (layers[2][0][e] @ row + layers[2][1][e])
            y[t] += share * (layers[1][0][e] @ h + layers[1][1][e])
    return y.reshape(x.shape).astype(x.dtype)


def test_moe(sardonyx, tmp_path):
    rng = np.random.default_rng(41)
    cases = Cases(tmp_path)
    e, d, inter = 5, 16, 12
    for kind, normal_, k, tokens, swiglu in itertools.product(
            ("relu", "gelu", "silu", "identity", "swiglu"), (0, 1), (1, 3), (1, 40), (None, (1.702, 1.0, 7.0))):
        if rng.random() > 0.5:
            continue
        n = inter * (2 if kind == "swiglu" else 1)
        x, router = normal(rng, 1, tokens, d), normal(rng, tokens, e)
        inputs = [("x", x), ("router", router), ("w1", normal(rng, e, n, d)), ("b1", normal(rng, e, n)),
                  ("w2", normal(rng, e, d, inter)), ("b2", normal(rng, e, d) if k == 1 else None)]
        attributes = dict(k=k, activation_type=kind, normalize_routing_weights=normal_,
                          swiglu_fusion=int(kind == "swiglu"))
        if swiglu and kind == "swiglu":
            attributes.update(zip(("activation_alpha", "activation_beta", "swiglu_limit"), swiglu))
        cases.node("MoE", inputs, 1, attributes)
    # what onnxruntime has for GPUs only
    x, router = normal(rng, 7, d), normal(rng, 7, e)
    layers = [(normal(rng, e, inter, d), normal(rng, e, inter)), (normal(rng, e, d, inter), normal(rng, e, d)),
              (normal(rng, e, inter, d), normal(rng, e, inter))]
    names = [(f"{kind}{i}", a) for i, layer in enumerate(layers) for kind, a in zip("wb", layer)]
    cases.node("MoE", [("x", x), ("router", router), *names], 1, dict(k=2, activation_type="silu"),
               [experts_of(x, router, layers, 2, "silu", False)])
    layers = [(normal(rng, e, 2 * inter, d), normal(rng, e, 2 * inter)), layers[1]]
    names = [(f"{kind}{i}", a) for i, layer in enumerate(layers) for kind, a in zip("wb", layer)]
    cases.node("MoE", [("x", x), ("router", router), *names], 1,
               dict(k=2, activation_type="swiglu", swiglu_fusion=2),
               [experts_of(x, router, layers, 2, "swiglu", False, halves=True)])
    cases.run(sardonyx, 1e-4, 2e-4)


def coded_weights(rng, e, n, k, bits, block, zeros):
    """Codes, scales and zero points as the operator wants them, and the numbers they stand for."""
    codes, each, blocks = rng.integers(0, 1 << bits, (e, n, k)), 8 // bits, k // block if block else 1

    def packed(values):
        values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % each)])
        values = values.reshape(*values.shape[:-1], -1, each).astype(np.uint32)
        return (values << (np.arange(each) * bits)).sum(-1).astype(np.uint8)
    scale = rng.uniform(0.01, 0.05, (e, n, blocks)).astype(F32)
    zero = rng.integers(0, 1 << bits, (e, n, blocks)) if zeros else np.full((e, n, blocks), 1 << (bits - 1))
    numbers = (codes.reshape(e, n, blocks, -1) - zero[..., None]) * scale[..., None].astype(np.float64)
    points = packed(zero if block else zero[..., 0]) if zeros else None
    return packed(codes), scale if block else scale[..., 0], points, numbers.reshape(e, n, k)


def test_quantised_moe(sardonyx, tmp_path):
    rng = np.random.default_rng(42)
    cases = Cases(tmp_path)
    e, d, inter, k = 4, 64, 32, 2
    for bits, block, zeros, kind, tokens in itertools.product((4, 8, 2), (0, 16, 32), (False, True),
                                                              ("silu", "swiglu"), (1, 20)):
        if rng.random() > 0.6:
            continue
        n = inter * (2 if kind == "swiglu" else 1)
        x, router = normal(rng, tokens, d), normal(rng, tokens, e)
        p1, s1, z1, w1 = coded_weights(rng, e, n, d, bits, block, zeros)
        p2, s2, z2, w2 = coded_weights(rng, e, d, inter, bits, block, zeros)
        b1, b2 = normal(rng, e, n), normal(rng, e, d)
        inputs = [("x", x), ("router", router), ("w1", p1), ("s1", s1), ("b1", b1), ("w2", p2), ("s2", s2), ("b2", b2),
                  ("w3", None), ("s3", None), ("b3", None), ("z1", z1), ("z2", z2)]
        attributes = dict(k=k, activation_type=kind, swiglu_fusion=int(kind == "swiglu"), expert_weight_bits=bits)
        if block:
            attributes["block_size"] = block
        exact = experts_of(x, router, [(w1, b1), (w2, b2)], k, kind, True)
        constants = [n for n, a in inputs[2:] if a is not None]
        model = one_node("QMoE", inputs, 1, attributes, constants=constants)
        # onnxruntime rounds the rows for products of 8 bits in blocks
        golden = ort_run(model, {"x": x, "router": router})[0]
        assert np.abs(golden - exact).max() <= 0.05 * np.abs(exact).max()
        cases.add(model, {"x": x, "router": router}, [exact])
    cases.run(sardonyx, 1e-3, 2e-2)


def test_router_weights(sardonyx, tmp_path):
    """One tensor chooses the experts, another says how much of each."""
    rng = np.random.default_rng(43)
    cases = Cases(tmp_path)
    for normalise in (0, 1):
        e, d, inter, k, tokens = 4, 32, 16, 2, 6
        x, router = normal(rng, tokens, d), normal(rng, tokens, e)
        mixing = rng.uniform(0.1, 1, (tokens, e)).astype(F32)
        p1, s1, _, w1 = coded_weights(rng, e, inter, d, 4, 0, False)
        p2, s2, _, w2 = coded_weights(rng, e, d, inter, 4, 0, False)
        b1, b2 = normal(rng, e, inter), normal(rng, e, d)
        inputs = [("x", x), ("router", router), ("w1", p1), ("s1", s1), ("b1", b1), ("w2", p2), ("s2", s2), ("b2", b2)]
        inputs += [(f"none{i}", None) for i in range(6)] + [("mixing", mixing)]
        cases.node("QMoE", inputs, 1, dict(k=k, activation_type="silu", normalize_routing_weights=normalise),
                   constants=("w1", "s1", "b1", "w2", "s2", "b2"))
    cases.run(sardonyx, 1e-3, 1e-3)


def test_longformer_attention(sardonyx, tmp_path):
    rng = np.random.default_rng(44)
    cases = Cases(tmp_path)
    for b, s, n, h, window in [(2, 16, 2, 8, 4), (1, 24, 3, 4, 2)]:
        d = n * h
        x = normal(rng, b, s, d)
        w, g = (normal(rng, d, 3 * d) * 0.3 for _ in range(2))
        bias, global_bias = normal(rng, 3 * d), normal(rng, 3 * d)
        mask = np.where(np.arange(s) < rng.integers(s // 2, s + 1, b)[:, None], 0, -10000.0).astype(F32)
        flags = (rng.random((b, s)) > 0.8).astype(np.int32)
        flags[:, 0] = 1
        near = np.abs(np.arange(s)[:, None] - np.arange(s)) <= window
        seen = np.where(near[None] | (flags[:, None] > 0), mask[:, None], -1e30)
        local = rows_of(attend(*project(x, w, bias, n), seen[:, None]))
        whole = rows_of(attend(*project(x, g, global_bias, n), mask[:, None, None]))
        cases.node("LongformerAttention", [("x", x), ("w", w), ("b", bias), ("mask", mask), ("g", g),
                                           ("gb", global_bias), ("flags", flags)], 1,
                   {"num_heads": n, "window": window}, [np.where(flags[..., None] > 0, whole, local)])
    cases.run(sardonyx, 2e-4, 2e-5)


# ---- what does not fit ----

def shape(*dims, dtype=F32):
    return np.zeros(dims, dtype)


HEADS_OF = dict(num_heads=2)
GROUPS = dict(num_heads=4, kv_num_heads=2)
ERRORS = [
    ("MultiHeadAttention", [("q", shape(1, 3, 8)), ("k", shape(1, 3, 6)), ("v", shape(1, 3, 8))], HEADS_OF, "do not agree"),
    ("MultiHeadAttention", [("q", shape(1, 3, 9)), ("k", shape(1, 3, 8)), ("v", shape(1, 3, 8))], HEADS_OF, "do not agree"),
    ("MultiHeadAttention", [("q", shape(1, 3, 8)), ("k", shape(1, 3, 8)), ("v", shape(1, 3, 8)), ("b", shape(23))],
     HEADS_OF, "bias does not fit"),
    ("MultiHeadAttention", [("q", shape(1, 3, 8)), ("k", shape(1, 3, 8)), ("v", shape(1, 3, 8)), ("b", None),
                            ("m", shape(1, 5, dtype=np.int32))], HEADS_OF, "a mask of rank 2 does not fit"),
    ("MultiHeadAttention", [("q", shape(1, 3, 8)), ("k", shape(1, 3, 8)), ("v", shape(1, 3, 8)), ("b", None),
                            ("m", None), ("a", shape(1, 3, 3, 3))], HEADS_OF, "attention_bias does not fit"),
    ("Attention", [("x", shape(1, 3, 8)), ("w", shape(8, 26))], HEADS_OF, "do not divide over 2 heads"),
    ("Attention", [("x", shape(1, 3, 8)), ("w", shape(7, 24))], HEADS_OF, "do not fit 8 columns"),
    ("DecoderMaskedMultiHeadAttention", [("q", shape(1, 2, 8)), ("k", shape(1, 2, 8)), ("v", shape(1, 2, 8))],
     HEADS_OF, "do not agree"),
    ("GroupQueryAttention", [("q", shape(1, 2, 32)), ("k", shape(1, 2, 16)), ("v", shape(1, 2, 16)), ("pk", None),
                             ("pv", None), ("s", np.array([8], np.int32)), ("t", np.array([2], np.int32))],
     GROUPS, "9 keys of batch entry 0"),
    ("GroupQueryAttention", [("q", shape(1, 2, 32)), ("k", shape(1, 2, 16)), ("v", shape(1, 2, 16)), ("pk", None),
                             ("pv", None), ("s", np.array([1], np.int32)), ("t", np.array([1], np.int32))],
     GROUPS, "total_sequence_length is 1, expected 2"),
    ("GroupQueryAttention", [("q", shape(1, 2, 30)), ("k", shape(1, 2, 16)), ("v", shape(1, 2, 16)), ("pk", None),
                             ("pv", None), ("s", np.array([1], np.int32)), ("t", np.array([2], np.int32))],
     GROUPS, "30 columns do not divide over 4 heads"),
    ("RotaryEmbedding", [("x", shape(1, 2, 32)), ("i", np.array([[0, 9]])), ("c", shape(4, 8)), ("s", shape(4, 8))],
     {}, "rotary position 9 is not in a cache of 4 rows"),
    ("RestorePadding", [("x", shape(3, 2)), ("o", np.full((2, 2), 7, np.int32))], {}, "token_offset[0] is 7"),
    ("MoE", [("x", shape(2, 4)), ("r", shape(2, 3)), ("w1", shape(3, 6, 5)), ("b", None), ("w2", shape(3, 4, 6))],
     dict(k=1), "do not fit each other"),
    ("MoE", [("x", shape(2, 4)), ("r", shape(2, 3)), ("w1", shape(3, 6, 4)), ("b", None), ("w2", shape(3, 4, 6))],
     dict(k=4), "k or input do not fit"),
]


@pytest.mark.parametrize("op,inputs,attributes,text", ERRORS)
def test_errors(sardonyx, tmp_path, op, inputs, attributes, text):
    onnx.save(one_node(op, inputs, 1, attributes), tmp_path / "m.onnx")
    for i, array in enumerate(a for _, a in inputs if a is not None):
        (tmp_path / f"input_{i}.pb").write_bytes(onnx.numpy_helper.from_array(array).SerializeToString())
    done = sardonyx("run", tmp_path / "m.onnx", "--inputs", tmp_path, code=None)
    lines = [line for line in done.err.split("\n") if line]
    assert done.code == 1 and len(lines) == 1 and text in lines[0] and op in lines[0], done.err
