# SPDX-License-Identifier: Apache-2.0
"""BeamSearch, GreedySearch and Sampling of com.microsoft over tiny decoders against onnxruntime:
the same tokens, and scores within rounding."""
import itertools

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from contrib_cases import Cases, ort_run  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

F32, I32 = np.float32, np.int32
VOCAB, HEADS, SIZE = 20, 2, 8
WIDTH = HEADS * SIZE
FLOAT, INT = TensorProto.FLOAT, TensorProto.INT32


def weights(rng, **shapes):
    return [numpy_helper.from_array((rng.standard_normal(s) * k).astype(F32), n)
            for n, (k, *s) in shapes.items()]


def value(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, shape)


def micro(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, domain="com.microsoft", **attributes)


def gpt_decoder(rng, layers=1, half=False):
    """input_ids, position_ids, attention_mask, past_i to logits, present_i."""
    nodes, values = [helper.make_node("Gather", ["wte", "input_ids"], ["words"]),
                     helper.make_node("Gather", ["wpe", "position_ids"], ["places"]),
                     helper.make_node("Add", ["words", "places"], ["h0"])], weights(
        rng, wte=(1, VOCAB, WIDTH), wpe=(1, 64, WIDTH), head=(0.7, WIDTH, VOCAB))
    for i in range(layers):
        values += weights(rng, **{f"w{i}": (0.4, WIDTH, 3 * WIDTH), f"b{i}": (0.3, 3 * WIDTH)})
        nodes += [micro("Attention", [f"h{i}", f"w{i}", f"b{i}", "attention_mask", f"past_{i}"],
                        [f"a{i}", f"present_{i}"], num_heads=HEADS, unidirectional=1),
                  helper.make_node("Add", [f"h{i}", f"a{i}"], [f"h{i + 1}"])]
    nodes += [helper.make_node("MatMul", [f"h{layers}", "head"], ["plain"]),
              helper.make_node("Add", ["plain", "no_pad"], ["logits"])]
    # padding is behind an end only
    values.append(numpy_helper.from_array(np.where(np.arange(VOCAB) == VOCAB - 2, -50, 0).astype(F32), "no_pad"))
    ins = [value("input_ids", INT, "b", "s"), value("position_ids", INT, "b", "s"),
           value("attention_mask", INT, "b", "t")]
    ins += [value(f"past_{i}", FLOAT, 2, "b", HEADS, "p", SIZE) for i in range(layers)]
    outs = [value("logits", FLOAT, "b", "s", VOCAB)]
    outs += [value(f"present_{i}", FLOAT, 2, "b", HEADS, "t", SIZE) for i in range(layers)]
    return helper.make_graph(nodes, "decoder", ins, outs, values)


def search_model(op, graphs, inputs, outs, **attributes):
    names = [n if a is not None else "" for n, a in inputs]
    while names and not names[-1]:
        names.pop()
    node = micro(op, names, [n for n, _ in outs], eos_token_id=VOCAB - 1, pad_token_id=VOCAB - 2,
                 **graphs, **attributes)
    ins = [value(n, FLOAT if a.dtype == F32 else INT, *a.shape) for n, a in inputs if a is not None]
    graph = helper.make_graph([node], "g", ins, [value(n, t) for n, t in outs])
    for out in graph.output:
        out.type.tensor_type.ClearField("shape")
    return helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])


def one(x, dtype=I32):
    return np.array([x], dtype)


BEAMS = [dict(beams=1, returned=1), dict(beams=3, returned=3), dict(beams=4, returned=2, length_penalty=0.5),
         dict(beams=2, returned=1, length_penalty=2.0, early_stopping=1), dict(beams=3, returned=1, no_repeat_ngram_size=2),
         dict(beams=3, returned=2, repetition=1.4), dict(beams=2, returned=2, min_length=7),
         dict(beams=3, returned=2, words=True), dict(beams=3, returned=2, first_words=True),
         dict(beams=2, returned=2, no_repeat_ngram_size=1), dict(beams=6, returned=6, layers=2),
         dict(beams=3, returned=2, padded=True), dict(beams=3, returned=2, padded=True, masked=True)]


def prompt(rng, b, s, padded):
    ids = rng.integers(0, VOCAB - 2, (b, s)).astype(I32)
    for i in range(b if padded else 0):
        ids[i, :i] = VOCAB - 2
    return ids


def masks(rng, c, b):
    words = rng.integers(0, 4, VOCAB) > 0
    first = rng.integers(0, 2, (b, VOCAB))
    first[:, :3] = words[:3] = 1
    return words.astype(I32) if c.get("words") else None, first.astype(I32) if c.get("first_words") else None


def beam_inputs(rng, c, b, s, most):
    words, first = masks(rng, c, b)
    ids = prompt(rng, b, s, c.get("padded"))
    return [("input_ids", ids), ("max_length", one(most)),
            # onnxruntime does not run a model without this and the penalties
            ("min_length", one(c.get("min_length", 0))),
            ("num_beams", one(c["beams"])), ("num_return_sequences", one(c["returned"])),
            ("length_penalty", one(c.get("length_penalty", 1), F32)),
            ("repetition_penalty", one(c.get("repetition", 1), F32)),
            ("vocab_mask", words), ("prefix_vocab_mask", first),
            ("attention_mask", (ids != VOCAB - 2).astype(I32) if c.get("masked") else None)]


def add(cases, op, graphs, inputs, outs, **attributes):
    model = search_model(op, graphs, inputs, outs, **attributes)
    feeds = {n: a for n, a in inputs if a is not None}
    golden = ort_run(model, feeds)
    if op != "BeamSearch":  # behind the last end onnxruntime leaves memory as it was
        prefix = feeds["input_ids"].shape[1]
        pads = golden[0][:, prefix:] == VOCAB - 2
        if pads.any(-1).all():
            golden[0][:, prefix + pads.argmax(-1).max():] = VOCAB - 2
    return cases.add(model, feeds, golden)


def only(c, *names):
    return {n: c[n] for n in names if n in c}


def test_beam_search(sardonyx, tmp_path):
    cases = Cases(tmp_path)
    outs = [("sequences", INT), ("sequences_scores", FLOAT)]
    for seed, c in itertools.product(range(4), BEAMS):
        rng = np.random.default_rng(seed)
        b, s, most = ((2, 3, 12), (1, 1, 8), (3, 4, 20), (2, 5, 16))[seed]
        graphs = {"decoder": gpt_decoder(rng, c.get("layers", 1))}
        add(cases, "BeamSearch", graphs, beam_inputs(rng, c, b, s, most), outs,
            **only(c, "early_stopping", "no_repeat_ngram_size"))
    cases.run(sardonyx, 1e-4, 1e-4)


def test_beam_search_scores(sardonyx, tmp_path):
    cases = Cases(tmp_path)
    outs = [("sequences", INT), ("sequences_scores", FLOAT), ("scores", FLOAT)]
    for seed, c in itertools.product(range(2), BEAMS[:2]):
        rng = np.random.default_rng(10 + seed)
        c = dict(c, min_length=7)
        golden = add(cases, "BeamSearch", {"decoder": gpt_decoder(rng)}, beam_inputs(rng, c, 2, 3, 8), outs)
        assert golden[2].shape == (5, 2, c["beams"], VOCAB)
    cases.run(sardonyx, 1e-4, 1e-4)


def test_init_decoder(sardonyx, tmp_path):
    """Another graph for the first run: the tokens tell which one ran."""
    cases = Cases(tmp_path)
    for seed in range(2):
        rng = np.random.default_rng(20 + seed)
        first = gpt_decoder(np.random.default_rng(99))
        graphs = {"decoder": gpt_decoder(rng), "init_decoder": first}
        add(cases, "BeamSearch", graphs, beam_inputs(rng, BEAMS[1], 2, 3, 9), [("sequences", INT)])
        c = dict(repetition=1.1)
        add(cases, "GreedySearch", graphs, greedy_inputs(rng, c, 2, 3, 9), [("sequences", INT)])
    cases.run(sardonyx, 0, 0)


def greedy_inputs(rng, c, b, s, most):
    words, first = masks(rng, c, b)
    ids = prompt(rng, b, s, c.get("padded"))
    return [("input_ids", ids), ("max_length", one(most)),
            ("min_length", one(c["min_length"]) if "min_length" in c else None),
            ("repetition_penalty", one(c["repetition"], F32) if "repetition" in c else None),
            ("vocab_mask", words), ("prefix_vocab_mask", first),
            ("attention_mask", (ids != VOCAB - 2).astype(I32) if c.get("masked") else None)]


def test_greedy_search(sardonyx, tmp_path):
    cases = Cases(tmp_path)
    forms = [{}, dict(repetition=1.3), dict(no_repeat_ngram_size=3), dict(min_length=7), dict(words=True),
             dict(first_words=True), dict(padded=True), dict(padded=True, masked=True)]
    for seed, c in itertools.product(range(5), forms):
        rng = np.random.default_rng(30 + seed)
        b, s, most = ((2, 3, 12), (1, 1, 8), (3, 4, 20), (4, 2, 30), (2, 6, 9))[seed]
        add(cases, "GreedySearch", {"decoder": gpt_decoder(rng)}, greedy_inputs(rng, c, b, s, most),
            [("sequences", INT)], **only(c, "no_repeat_ngram_size"))
    cases.run(sardonyx, 0, 0)


def test_sampling(sardonyx, tmp_path):
    """The random numbers are onnxruntime's: the same seed gives the same tokens."""
    cases = Cases(tmp_path)
    forms = [dict(top_p=0.8), dict(top_p=0.5, temperature=1.7), dict(top_p=0.9, custom=1),
             dict(top_p=0.6, min_tokens_to_keep=4),
             dict(top_p=0.95, repetition=1.2, temperature=0.6)]
    for seed, c in itertools.product(range(4), forms):
        rng = np.random.default_rng(40 + seed)
        b, s, most = ((2, 3, 12), (1, 1, 8), (3, 4, 20), (2, 2, 24))[seed]
        # onnxruntime reads presence_mask out of bounds: not compared
        inputs = greedy_inputs(rng, c, b, s, most) + [("presence_mask", None),
                                                      ("seed", one(rng.integers(0, 1000)))]
        add(cases, "Sampling", {"decoder": gpt_decoder(rng)}, inputs, [("sequences", INT)],
            vocab_size=VOCAB, **only(c, "top_p", "temperature", "custom", "min_tokens_to_keep"))
    cases.run(sardonyx, 0, 0)


def test_presence(sardonyx, tmp_path):
    """A penalty that leaves no token of the mask is a mask of the vocabulary."""
    cases = Cases(tmp_path)
    rng = np.random.default_rng(50)
    presence = rng.integers(0, 2, VOCAB).astype(I32)
    graphs = {"decoder": gpt_decoder(rng)}
    plain = dict(greedy_inputs(rng, {}, 2, 3, 10))
    feeds = dict(plain, vocab_mask=1 - presence, presence_mask=None, seed=one(7))
    model = search_model("Sampling", graphs, list(feeds.items()), [("sequences", INT)], vocab_size=VOCAB, top_p=0.9)
    golden = ort_run(model, {n: a for n, a in feeds.items() if a is not None})
    feeds = dict(plain, presence_mask=np.stack([presence] * 2), seed=one(7))
    model = search_model("Sampling", graphs, list(feeds.items()), [("sequences", INT)], vocab_size=VOCAB, top_p=0.9,
                         presence_penalty=1e6)
    cases.add(model, {n: a for n, a in feeds.items() if a is not None}, golden)
    cases.run(sardonyx, 0, 0)


# ---- an encoder and a decoder ----

def attention(values, rng, tag, query, key, out, extra=(), scale=0.5):
    """Projections of query and key (None: given as [B, N, S, H]) and MultiHeadAttention."""
    names, nodes = [], []
    for i, source in enumerate((query, key, key)):
        if isinstance(source, tuple):
            names.append(source[i - 1])
            continue
        values += weights(rng, **{f"w{tag}{i}": (scale, WIDTH, WIDTH)})
        nodes.append(helper.make_node("MatMul", [source, f"w{tag}{i}"], [f"p{tag}{i}"]))
        names.append(f"p{tag}{i}")
    return nodes + [micro("MultiHeadAttention", names + ["", *extra], out, num_heads=HEADS)]


def heads(name, out):
    """[B, S, N * H] to [B, N, S, H]."""
    return [helper.make_node("Reshape", [name, "split"], [out + "_rows"]),
            helper.make_node("Transpose", [out + "_rows"], [out], perm=[0, 2, 1, 3])]


def t5_graphs(rng):
    """The encoder gives the cross caches; the decoder begins with an empty cache."""
    split = numpy_helper.from_array(np.array([0, 0, HEADS, SIZE]), "split")
    values = weights(rng, wte=(1, VOCAB, WIDTH), k=(0.5, WIDTH, WIDTH), v=(0.5, WIDTH, WIDTH)) + [split]
    nodes = [helper.make_node("Gather", ["wte", "encoder_input_ids"], ["words"])]
    nodes += attention(values, rng, "e", "words", "words", ["mixed"], ["encoder_attention_mask"])
    nodes.append(helper.make_node("Add", ["words", "mixed"], ["h"]))
    for name, out in (("k", "present_key_cross_0"), ("v", "present_value_cross_0")):
        nodes += [helper.make_node("MatMul", ["h", name], [f"h{name}"]), *heads(f"h{name}", out)]
    encoder = helper.make_graph(nodes, "encoder", [value("encoder_input_ids", INT, "b", "s"),
                                                   value("encoder_attention_mask", INT, "b", "s")],
                                [value(f"present_{x}_cross_0", FLOAT, "b", HEADS, "s", SIZE) for x in ("key", "value")], values)
    values = weights(rng, wte=(1, VOCAB, WIDTH), head=(0.7, WIDTH, VOCAB))
    nodes = [helper.make_node("Gather", ["wte", "input_ids"], ["words"])]
    nodes += attention(values, rng, "s", "words", "words", ["own", "present_key_self_0", "present_value_self_0"],
                       ["", "", "past_key_self_0", "past_value_self_0"])
    nodes.append(helper.make_node("Add", ["words", "own"], ["h0"]))
    nodes += attention(values, rng, "c", "h0", ("past_key_cross_0", "past_value_cross_0"), ["other"],
                       ["encoder_attention_mask"])
    nodes += [helper.make_node("Add", ["h0", "other"], ["h1"]), helper.make_node("MatMul", ["h1", "head"], ["logits"])]
    ins = [value("input_ids", INT, "b", 1), value("encoder_attention_mask", INT, "b", "e")]
    ins += [value(f"past_{x}_self_0", FLOAT, "b", HEADS, "p", SIZE) for x in ("key", "value")]
    ins += [value(f"past_{x}_cross_0", FLOAT, "b", HEADS, "e", SIZE) for x in ("key", "value")]
    outs = [value("logits", FLOAT, "b", 1, VOCAB)]
    outs += [value(f"present_{x}_self_0", FLOAT, "b", HEADS, "t", SIZE) for x in ("key", "value")]
    return {"encoder": encoder, "decoder": helper.make_graph(nodes, "decoder", ins, outs, values)}


def test_beam_search_encoder(sardonyx, tmp_path):
    cases = Cases(tmp_path)
    outs = [("sequences", INT), ("sequences_scores", FLOAT)]
    for seed, c in itertools.product(range(3), BEAMS[:8] + BEAMS[11:]):
        if "layers" in c:
            continue
        rng = np.random.default_rng(60 + seed)
        b, s, most = ((2, 5, 12), (1, 1, 9), (3, 7, 16))[seed]
        add(cases, "BeamSearch", t5_graphs(rng), beam_inputs(rng, c, b, s, most), outs, model_type=1,
            decoder_start_token_id=3, **only(c, "early_stopping", "no_repeat_ngram_size"))
    cases.run(sardonyx, 1e-4, 1e-4)


def renamed(node):
    """A node of the first run as one of the later runs: its caches are inputs."""
    node = onnx.NodeProto.FromString(node.SerializeToString())
    for i, name in enumerate(node.input):
        node.input[i] = name.replace("present_", "past_")
    if "own" in node.output:
        node.input.extend(["", "", "past_key_self_0", "past_value_self_0"])
        del node.attribute[-1]
    return node


def whisper_graphs(rng):
    """The encoder takes frames and the first tokens, and gives logits and all caches."""
    split = numpy_helper.from_array(np.array([0, 0, HEADS, SIZE]), "split")
    values = weights(rng, mel=(0.5, 6, WIDTH), wte=(1, VOCAB, WIDTH), head=(0.7, WIDTH, VOCAB),
                     k=(0.5, WIDTH, WIDTH), v=(0.5, WIDTH, WIDTH)) + [split]
    nodes = [helper.make_node("Transpose", ["encoder_input_ids"], ["frames"], perm=[0, 2, 1]),
             helper.make_node("MatMul", ["frames", "mel"], ["encoder_hidden_states"])]
    for name, out in (("k", "present_key_cross_0"), ("v", "present_value_cross_0")):
        nodes += [helper.make_node("MatMul", ["encoder_hidden_states", name], [f"h{name}"]), *heads(f"h{name}", out)]
    shared = []
    own = attention(shared, rng, "s", "words", "words", ["own", "present_key_self_0", "present_value_self_0"])
    own[-1].attribute.append(helper.make_attribute("unidirectional", 1))
    body = [*own, helper.make_node("Add", ["words", "own"], ["h0"]),
            *attention(shared, rng, "c", "h0", ("present_key_cross_0", "present_value_cross_0"), ["other"]),
            helper.make_node("Add", ["h0", "other"], ["h1"]), helper.make_node("MatMul", ["h1", "head"], ["logits"])]
    caches = [f"{x}_{y}_0" for y in ("self", "cross") for x in ("key", "value")]
    outs = [value("logits", FLOAT, "b", "s", VOCAB), value("encoder_hidden_states", FLOAT, "b", "t", WIDTH)]
    outs += [value("present_" + name, FLOAT, "b", HEADS, "n", SIZE) for name in caches]
    first = helper.make_node("Gather", ["wte", "decoder_input_ids"], ["words"])
    encoder = helper.make_graph([*nodes, first, *body], "encoder",
                                [value("encoder_input_ids", FLOAT, "b", 6, "t"),
                                 value("decoder_input_ids", INT, "b", "s")], outs, values + shared)
    ins = [value("input_ids", INT, "b", 1)] + [value("past_" + n, FLOAT, "b", HEADS, n[-6:], SIZE) for n in caches]
    outs = [value("logits", FLOAT, "b", 1, VOCAB)]
    outs += [value("present_" + name, FLOAT, "b", HEADS, "n", SIZE) for name in caches[:2]]
    later = [helper.make_node("Gather", ["wte", "input_ids"], ["words"]), *map(renamed, body)]
    decoder = helper.make_graph(later, "decoder", ins, outs,
                                [v for v in values if v.name in ("wte", "head")] + shared)
    return {"encoder": encoder, "decoder": decoder}


def test_whisper(sardonyx, tmp_path):
    cases = Cases(tmp_path)
    for seed, c in itertools.product(range(3), BEAMS[:6]):
        rng = np.random.default_rng(70 + seed)
        b, frames, tokens, most = ((2, 9, 3, 12), (1, 5, 1, 9), (3, 7, 4, 16))[seed]
        inputs = [(n, a) for n, a in beam_inputs(rng, c, b, 3, most) if n != "input_ids"]
        inputs = [("input_ids", rng.standard_normal((b, 6, frames)).astype(F32)), *inputs,
                  ("decoder_input_ids", rng.integers(0, VOCAB - 2, (b, tokens)).astype(I32)),
                  ("logits_processor", one(0))]
        model = search_model("WhisperBeamSearch", whisper_graphs(rng), inputs,
                             [("sequences", INT), ("sequences_scores", FLOAT)], model_type=2,
                             decoder_start_token_id=1, **only(c, "early_stopping", "no_repeat_ngram_size"))
        cases.add(model, {n: a for n, a in inputs if a is not None})
    cases.run(sardonyx, 1e-4, 1e-4)


def shared_decoder(rng):
    """As gpt_decoder, with caches as long as the sequences can be."""
    graph = gpt_decoder(rng)
    graph.input.append(value("past_sequence_length", INT, 1))
    for node in graph.node:
        if node.op_type == "Attention":
            node.input.extend(["", "past_sequence_length"])
            node.attribute.append(helper.make_attribute("past_present_share_buffer", 1))
    return graph


def test_shared_caches(sardonyx, tmp_path):
    """onnxruntime has them for GPUs only: the tokens are those of caches that grow."""
    cases = Cases(tmp_path)
    for seed in range(3):
        for op, make, c in (("GreedySearch", greedy_inputs, {}), ("BeamSearch", beam_inputs, BEAMS[1])):
            rng = np.random.default_rng(80 + seed)
            inputs = make(rng, c, 2, 3, 10)
            feeds = {n: a for n, a in inputs if a is not None}
            state = rng.bit_generator.state
            golden = ort_run(search_model(op, {"decoder": gpt_decoder(rng)}, inputs, [("sequences", INT)]), feeds)
            rng.bit_generator.state = state
            if op == "GreedySearch":
                pads = golden[0][:, 3:] == VOCAB - 2
                if pads.any(-1).all():
                    golden[0][:, 3 + pads.argmax(-1).max():] = VOCAB - 2
            cases.add(search_model(op, {"decoder": shared_decoder(rng)}, inputs, [("sequences", INT)]), feeds, golden)
    cases.run(sardonyx, 0, 0)


@pytest.mark.parametrize("change,text", [
    (dict(max_length=one(3)), "max_length is 3"), (dict(num_return_sequences=one(5)), "num_return_sequences is 5"),
    (dict(num_beams=one(0)), "num_beams is 0"), (dict(min_length=one(40)), "min_length is 40"),
    (dict(vocab_mask=np.ones(7, I32)), "mask of the vocabulary is 7"),
    (dict(input_ids=np.full((2, 3), 77, I32)), "Gather")])
def test_search_errors(sardonyx, tmp_path, change, text):
    rng = np.random.default_rng(90)
    inputs = list(dict(beam_inputs(rng, BEAMS[1], 2, 3, 9), **change).items())
    model = search_model("BeamSearch", {"decoder": gpt_decoder(rng)}, inputs, [("sequences", INT)])
    onnx.save(model, tmp_path / "m.onnx")
    for i, array in enumerate(a for _, a in inputs if a is not None):
        (tmp_path / f"input_{i}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    done = sardonyx("run", tmp_path / "m.onnx", "--inputs", tmp_path, code=None)
    assert done.code == 1 and text in done.err
