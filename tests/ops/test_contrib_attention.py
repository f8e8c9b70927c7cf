# SPDX-License-Identifier: Apache-2.0
"""The attention operators of com.microsoft against onnxruntime, and where it has no kernel for the
CPU against the documented meaning in NumPy."""
import itertools

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from contrib_cases import Cases  # noqa: E402

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
        return rng.integers(0, 2, (b, s, t)).astype(np.int32)
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
