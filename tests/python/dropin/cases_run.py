# SPDX-License-Identifier: Apache-2.0
"""Cases: run, what it takes for inputs and gives for outputs."""
import numpy as np
from dropin_kit import (T, add_one, case, cases, classifier, fails, h, matmul, model, optional_in,
                        optional_out, sequence_in, sequence_out, unary, value)

X = np.array([[1.0, 2.0]], np.float32)
FEED = {"x": np.ones((2, 4), np.float32), "w": np.ones((4, 3), np.float32)}


@cases({"none": None, "empty": [], "one": ["z"], "both": ["z", "y"], "tuple": ("y",),
        "twice": ["y", "y"], "text": "y", "unknown": ["q"], "empty_name": [""], "number": [1],
        "generator": (n for n in ["y"]), "known_and_unknown": ["y", "q"]})
def run_outputs(kit, names):
    return kit.session(add_one()).run(names, {"x": X})


@case
def run_keywords(kit):
    return kit.session(add_one()).run(output_names=["y"], input_feed={"x": X}, run_options=None)


@case
def run_without_feed(kit):
    return kit.session(add_one()).run(None)


@cases({"list": [[1.0, 2.0]], "tuple": ((1.0, 2.0),), "ints": [[1, 2]], "nested_mixed": [[1, 2.5]],
        "ragged": [[1.0], [1.0, 2.0]], "scalar": 1.0, "none": None, "text": "abc", "dict": {},
        "empty_list": [], "list_of_rows": [np.ones(2, np.float32)], "set": {1.0}, "bytes": b"ab",
        "float64": X.astype(np.float64), "int64": X.astype(np.int64), "bool": X > 1,
        "float16": X.astype(np.float16), "object": X.astype(object), "complex": X.astype(np.complex64),
        "vector": np.ones(2, np.float32), "cube": np.ones((1, 1, 2), np.float32),
        "wide": np.ones((1, 3), np.float32), "empty": np.ones((0, 2), np.float32),
        "fortran": np.asfortranarray(np.arange(4, dtype="f").reshape(2, 2)),
        "transposed": np.arange(4, dtype="f").reshape(2, 2).T,
        "stepped": np.arange(8, dtype="f").reshape(2, 4)[:, ::2],
        "reversed": np.arange(4, dtype="f").reshape(2, 2)[::-1],
        "broadcast": np.broadcast_to(np.float32(3), (2, 2)),
        "big_endian": X.astype(">f4"), "matrix": np.array([[1, 2]], "f").view(),
        "masked": np.ma.masked_array(X, X > 5), "memmap_like": memoryview(X),
        "read_only": np.frombuffer(X.tobytes(), np.float32).reshape(1, 2)})
def run_feed(kit, given):
    return kit.session(add_one()).run(["y"], {"x": given})


@case
def run_numpy_scalar(kit):
    return kit.session(unary("Neg", shape=())).run(None, {"x": np.float32(2)})


@case
def run_array_scalar(kit):
    return kit.session(unary("Neg", shape=())).run(None, {"x": np.array(2, np.float32)})


@case
def run_python_scalar(kit):
    return kit.session(unary("Neg", shape=())).run(None, {"x": 2.0})


@case
def run_missing_input(kit):
    return kit.session(matmul()).run(None, {"x": FEED["x"]})


@case
def run_missing_all(kit):
    return kit.session(matmul()).run(None, {})


@case
def run_unknown_input(kit):
    return kit.session(matmul()).run(None, {**FEED, "z": X})


@case
def run_wrong_dimension(kit):
    return kit.session(matmul()).run(None, {**FEED, "x": np.ones((2, 5), np.float32)})


@case
def run_wrong_dimensions(kit):
    return kit.session(matmul()).run(None, {**FEED, "w": np.ones((5, 6), np.float32)})


@case
def run_wrong_rank(kit):
    return kit.session(matmul()).run(None, {**FEED, "x": np.ones(4, np.float32)})


@case
def run_wrong_rank_higher(kit):
    return kit.session(matmul()).run(None, {**FEED, "w": np.ones((1, 4, 3), np.float32)})


@case
def run_feed_is_a_list(kit):
    return kit.session(matmul()).run(None, [FEED["x"], FEED["w"]])


@case
def run_feed_is_none(kit):
    return kit.session(matmul()).run(None, None)


@case
def run_feed_key_is_a_number(kit):
    return kit.session(add_one()).run(None, {1: X})


@case
def run_feed_is_a_mapping(kit):
    import collections
    return kit.session(add_one()).run(["y"], collections.OrderedDict(x=X))


@case
def run_feed_is_own_mapping(kit):
    import types
    return fails(kit.session(add_one()).run, ["y"], types.MappingProxyType({"x": X}))


@case
def run_ortvalue_feed(kit):
    return kit.session(add_one()).run(["y"], {"x": kit.ort.OrtValue.ortvalue_from_numpy(X)})


@case
def run_result_type(kit):
    result = kit.session(add_one()).run(None, {"x": X})
    return type(result).__name__, [type(r).__name__ for r in result], \
        [(r.flags.writeable, r.flags.c_contiguous) for r in result]


@case
def run_result_is_own_memory(kit):
    session = kit.session(add_one())
    first = session.run(["y"], {"x": X})[0]
    second = session.run(["y"], {"x": X + 5})[0]
    first += 100
    del session
    return first, second


@case
def run_input_passed_through(kit):
    data = model([h.make_node("Identity", ["x"], ["y"])], [value("x", T.FLOAT, [2])],
                 [value("y", T.FLOAT, [2])])
    x = np.ones(2, np.float32)
    y = kit.session(data).run(None, {"x": x})[0]
    y += 1
    return x, y


@case
def run_constant_output(kit):
    data = model([h.make_node("Relu", ["x"], ["y"])], [value("x", T.FLOAT, [1])],
                 [value("y", T.FLOAT, [1]), value("c", T.FLOAT, [2])],
                 [h.make_tensor("c", T.FLOAT, [2], [1.0, 2.0])])
    session = kit.session(data)
    first = session.run(["c"], {"x": np.ones(1, "f")})[0]
    first += 1
    return session.run(["c"], {"x": np.ones(1, "f")})


@case
def run_kernel_fault(kit):
    data = model([h.make_node("Concat", ["a", "b"], ["y"], axis=0, name="cat")],
                 [value("a", T.FLOAT, ["N", "M"]), value("b", T.FLOAT, ["K", "L"])],
                 [value("y", T.FLOAT, None)])
    text = fails(kit.session(data).run, None, {"a": np.ones((2, 4), "f"), "b": np.ones((2, 3), "f")})
    return text.split(" Status Message")[0]


@case
def run_gather_fault(kit):
    data = model([h.make_node("Gather", ["x", "i"], ["y"], name="pick")],
                 [value("x", T.FLOAT, [2]), value("i", T.INT64, [1])], [value("y", T.FLOAT, [1])])
    text = fails(kit.session(data).run, None, {"x": np.ones(2, "f"), "i": np.array([7])})
    return text.split(" Status Message")[0]


@case
def run_reshape_fault(kit):
    data = model([h.make_node("Reshape", ["x", "s"], ["y"], name="r")],
                 [value("x", T.FLOAT, [4]), value("s", T.INT64, [1])], [value("y", T.FLOAT, None)])
    text = fails(kit.session(data).run, None, {"x": np.ones(4, "f"), "s": np.array([3])})
    return text.split(" Status Message")[0]


NUMPY = {"float32": T.FLOAT, "float64": T.DOUBLE, "float16": T.FLOAT16, "int8": T.INT8,
         "int16": T.INT16, "int32": T.INT32, "int64": T.INT64, "uint8": T.UINT8, "uint16": T.UINT16,
         "uint32": T.UINT32, "uint64": T.UINT64, "bool": T.BOOL}


@cases({name: (name, kind) for name, kind in NUMPY.items()})
def run_type(kit, pair):
    x = np.array([0, 1, 1], pair[0])
    return kit.session(unary("Identity", pair[1])).run(None, {"x": x})


@cases({name: (name, kind) for name, kind in NUMPY.items()})
def run_type_refused(kit, pair):
    other = np.zeros(2, np.int64 if pair[0] != "int64" else np.int32)
    return kit.session(unary("Identity", pair[1])).run(None, {"x": other})


@cases({name: (name, kind) for name, kind in NUMPY.items()})
def run_type_from_list(kit, pair):
    return fails(kit.session(unary("Identity", pair[1])).run, None, {"x": [0, 1, 1]})


@case
def run_long_long(kit):
    return kit.session(unary("Identity", T.INT64)).run(None, {"x": np.array([1], np.longlong)})


@case
def run_bfloat16(kit):
    import ml_dtypes
    session = kit.session(unary("Identity", T.BFLOAT16))
    return fails(session.run, None, {"x": np.array([1.5], ml_dtypes.bfloat16)})


@case
def run_bfloat16_out(kit):
    session = kit.session(unary("Cast", T.FLOAT, out=T.BFLOAT16, to=T.BFLOAT16))
    return fails(session.run, None, {"x": np.array([1.5], np.float32)})


@case
def run_float8_out(kit):
    session = kit.session(unary("Cast", T.FLOAT, out=T.FLOAT8E4M3FN, to=T.FLOAT8E4M3FN, opset=19, ir=9))
    return fails(session.run, None, {"x": np.array([1.5], np.float32)})


@case
def run_float8(kit):
    import ml_dtypes
    session = kit.session(unary("Identity", T.FLOAT8E4M3FN, opset=19, ir=9))
    return fails(session.run, None, {"x": np.array([1.5], ml_dtypes.float8_e4m3fn)})


@case
def run_int4(kit):
    import ml_dtypes
    session = kit.session(unary("Identity", T.INT4, opset=21, ir=10))
    return fails(session.run, None, {"x": np.array([1, 2], ml_dtypes.int4)})


TEXTS = {"object": np.array(["a", "\u03b2\u03b3", ""], object), "unicode": np.array(["a", "bb", "\u03b2"]),
         "bytes": np.array([b"a", b"bb", b"c"]), "list": ["a", "b", "c"],
         "object_bytes": np.array([b"a", b"b", b"c"], object),
         "object_numbers": np.array([1, 2.5, None], object), "numbers": np.array([1.0, 2.0, 3.0]),
         "padded": np.array(["a\x00b", "c", "d\x00"]), "empty": np.array([], object),
         "none_inside": np.array(["a", None, "c"], object), "mixed_list": ["a", 1, 2.0],
         "numpy_strings": np.array(["ab", "c", ""], "U5"), "emoji": np.array(["\U0001f600", "x", "y"]),
         "wide_bytes": np.array([b"a\x00b", b"", b"zz"]), "big_endian": np.array(["a", "b", "c"], ">U1")}


@cases(TEXTS)
def run_strings(kit, texts):
    return kit.session(unary("Identity", T.STRING)).run(None, {"x": texts})


@case
def run_strings_matrix(kit):
    texts = np.array([["a", "b"], ["c", "d"]], object)
    return kit.session(unary("Identity", T.STRING, ("a", "b"))).run(None, {"x": texts.T})


@case
def run_string_scalar(kit):
    return kit.session(unary("Identity", T.STRING, ())).run(None, {"x": np.array("abc", object)})


@case
def run_string_scalar_out(kit):
    data = model([h.make_node("StringNormalizer", ["x"], ["y"], case_change_action="UPPER")],
                 [value("x", T.STRING, ["n"])], [value("y", T.STRING, ["n"])])
    return kit.session(data).run(None, {"x": np.array(["ab", "Cd"])})


@case
def run_sequence_out(kit):
    result = kit.session(sequence_out()).run(None, {"x": np.array([1.0, 2.0], np.float32)})
    return type(result[0]).__name__, result


@cases({"list": [np.ones(2, "f"), np.zeros(3, "f")], "tuple": (np.ones(2, "f"),), "one": [np.ones(1, "f")],
        "wrong_type": [np.ones(2)], "array": np.ones((2, 2), "f"), "numbers": [1.0, 2.0],
        "mixed": [np.ones(2, "f"), np.ones(2)], "nested": [[1.0, 2.0], [3.0]], "empty": []})
def run_sequence_in(kit, given):
    return kit.session(sequence_in()).run(None, {"s": given})


@case
def run_sequence_empty(kit):
    data = model([h.make_node("SequenceEmpty", [], ["s"], dtype=T.INT64)], [],
                 [h.make_tensor_sequence_value_info("s", T.INT64, None)])
    return kit.session(data).run(None, {})


@case
def run_sequence_of_strings(kit):
    data = model([h.make_node("SequenceConstruct", ["x"], ["s"])], [value("x", T.STRING, [2])],
                 [h.make_tensor_sequence_value_info("s", T.STRING, None)])
    return kit.session(data).run(None, {"x": np.array(["a", "b"])})


@case
def run_optional_given(kit):
    return kit.session(optional_in()).run(None, {"o": np.ones(2, np.float32)})


@case
def run_optional_none(kit):
    return kit.session(optional_in()).run(None, {"o": None})


@case
def run_optional_absent(kit):
    return fails(kit.session(optional_in()).run, None, {})


@case
def run_optional_out(kit):
    return kit.session(optional_out()).run(None, {"x": np.ones(2, np.float32)})


@case
def run_optional_out_empty(kit):
    kind = h.make_tensor_type_proto(T.FLOAT, [2])
    data = model([h.make_node("Optional", [], ["o"], type=kind)], [],
                 [h.make_value_info("o", h.make_optional_type_proto(kind))], opset=18)
    return fails(kit.session(data).run, None, {})


@cases({"ints": [0, 1], "strings": ["a", "b"]})
def run_maps_out(kit, keys):
    result = kit.session(classifier(keys)).run(None, {"x": np.array([[1, 2], [3, 0]], np.float32)})
    return type(result[1]).__name__, type(result[1][0]).__name__, result


@case
def run_maps_one(kit):
    return kit.session(classifier(["a", "b"])).run(["probabilities"], {"x": np.zeros((1, 2), "f")})


def vectorizer(**vocabulary):
    graph = h.make_graph([h.make_node("DictVectorizer", ["m"], ["y"], domain="ai.onnx.ml",
                                      **vocabulary)], "g", [], [value("y", T.FLOAT, None)])
    kind = graph.input.add()
    kind.name = "m"
    entry = kind.type.map_type
    entry.key_type = T.STRING if "string_vocabulary" in vocabulary else T.INT64
    entry.value_type.tensor_type.elem_type = T.FLOAT
    return h.make_model(graph, ir_version=8, opset_imports=[
        h.make_opsetid("", 15), h.make_opsetid("ai.onnx.ml", 1)]).SerializeToString()


@cases({"strings": (dict(string_vocabulary=["a", "b"]), {"a": 1.0, "b": 2.0}),
        "ints": (dict(int64_vocabulary=[1, 2]), {1: 1.0, 2: 2.0}),
        "missing": (dict(string_vocabulary=["a", "b"]), {"b": 2.0}),
        "other_key": (dict(string_vocabulary=["a", "b"]), {1: 2.0}),
        "other_value": (dict(string_vocabulary=["a", "b"]), {"a": "x"}),
        "not_a_dict": (dict(string_vocabulary=["a", "b"]), np.ones(2, np.float32))})
def run_map_in(kit, pair):
    return fails(kit.session(vectorizer(**pair[0])).run, None, {"m": pair[1]})


@case
def run_map_in_shows_type(kit):
    return [(a.type, a.shape) for a in kit.session(vectorizer(string_vocabulary=["a"])).get_inputs()]


@case
def run_zero_size(kit):
    return kit.session(add_one()).run(None, {"x": np.zeros((0, 2), np.float32)})


@case
def run_many_shapes(kit):
    session = kit.session(add_one())
    return [session.run(["z"], {"x": np.full((n, 2), n, np.float32)})[0].sum().item()
            for n in (1, 3, 2, 7, 1, 3)]


@case
def run_wide_result(kit):
    data = model([h.make_node("NonZero", ["x"], ["y"])], [value("x", T.FLOAT, ["n"])],
                 [value("y", T.INT64, [1, "k"])])
    session = kit.session(data)
    return [session.run(None, {"x": np.array(x, np.float32)}) for x in ([0, 1, 2], [0], [], [5])]


@case
def run_shape_of_output_differs(kit):
    data = model([h.make_node("Relu", ["x"], ["y"], name="n")], [value("x", T.FLOAT, ["N", 2])],
                 [value("y", T.FLOAT, ["N", 3])])
    return fails(lambda: kit.session(data).run(None, {"x": X}))


@case
def run_division_by_zero(kit):
    data = model([h.make_node("Div", ["a", "b"], ["y"])], [value("a", T.FLOAT, [3]),
                                                           value("b", T.FLOAT, [3])],
                 [value("y", T.FLOAT, [3])])
    return kit.session(data).run(None, {"a": np.array([1, -1, 0], "f"), "b": np.zeros(3, "f")})


@case
def run_nan_and_infinity(kit):
    x = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
    return kit.session(unary("Relu")).run(None, {"x": x}), kit.session(unary("Neg")).run(None, {"x": x})
