# SPDX-License-Identifier: Apache-2.0
"""Cases: making a session, what it tells of its model, providers, models that do not load."""
import os
import pathlib
import pickle

import numpy as np
import onnx
from dropin_kit import (T, add_one, case, cases, classifier, fails, h, matmul, model, optional_in,
                        optional_out, overridable, sequence_in, sequence_out, unary, value)

ONES = np.ones((2, 4), np.float32)
W = np.ones((4, 3), np.float32)


def run(session):
    return session.run(None, {"x": ONES, "w": W})


@case
def open_bytes(kit):
    return run(kit.ort.InferenceSession(matmul()))


@case
def open_path_text(kit):
    return run(kit.ort.InferenceSession(str(kit.write("m.onnx", matmul()))))


@case
def open_path_object(kit):
    return run(kit.ort.InferenceSession(kit.write("m.onnx", matmul())))


@case
def open_own_pathlike(kit):
    class Place:
        def __fspath__(self):
            return str(path)
    path = kit.write("m.onnx", matmul())
    return run(kit.ort.InferenceSession(Place()))


@case
def open_path_of_other_letters(kit):
    return run(kit.ort.InferenceSession(kit.write("m\u00e9\u03b2 x.onnx", matmul())))


@case
def open_path_without_suffix(kit):
    return run(kit.ort.InferenceSession(kit.write("model", matmul())))


@case
def open_relative_path(kit):
    path = kit.write("m.onnx", matmul())
    before = os.getcwd()
    os.chdir(path.parent)
    try:
        return run(kit.ort.InferenceSession("m.onnx"))
    finally:
        os.chdir(before)


@case
def open_by_keywords(kit):
    return run(kit.ort.InferenceSession(path_or_bytes=matmul(), sess_options=kit.ort.SessionOptions(),
                                        providers=["CPUExecutionProvider"], provider_options=[{}]))


@case
def open_by_positions(kit):
    return run(kit.ort.InferenceSession(matmul(), kit.ort.SessionOptions(), ["CPUExecutionProvider"],
                                        [{}]))


@case
def open_options_none(kit):
    return run(kit.ort.InferenceSession(matmul(), None, None, None))


@cases({"bytearray": bytearray, "memoryview": memoryview, "none": lambda data: None,
        "number": lambda data: 3, "proto": onnx.load_model_from_string, "list": list})
def open_other_type(kit, make):
    return kit.ort.InferenceSession(make(matmul()))


@case
def open_nothing(kit):
    return kit.ort.InferenceSession()


@case
def open_unknown_keyword(kit):
    return run(kit.ort.InferenceSession(matmul(), something=1))


@case
def open_wrong_options(kit):
    return fails(kit.ort.InferenceSession, matmul(), {"a": 1})


@case
def open_disabled_optimizers(kit):
    return run(kit.session(matmul(), disabled_optimizers=["ConstantFolding"]))


@case
def open_missing_file(kit):
    return kit.session(str(kit.dir / "nope.onnx"))


@case
def open_folder(kit):
    return fails(kit.session, str(kit.dir))


@case
def open_empty_text(kit):
    return fails(kit.session, "")


@case
def open_bad_bytes(kit):
    return kit.session(b"\x00garbage")


@case
def open_bad_file(kit):
    return kit.session(str(kit.write("bad.onnx", b"\x00garbage")))


@case
def open_empty_bytes(kit):
    return kit.session(b"")


@case
def open_empty_file(kit):
    return kit.session(str(kit.write("empty.onnx", b"")))


@case
def open_truncated(kit):
    return kit.session(add_one()[:-20])


@case
def open_text_as_bytes(kit):
    return kit.session(b"not a model at all")


@case
def open_unknown_operator(kit):
    return kit.session(model([h.make_node("Nope", ["x"], ["y"], name="n1")], [value("x", T.FLOAT, [1])],
                             [value("y", T.FLOAT, [1])]))


@case
def open_unknown_operator_without_name(kit):
    return kit.session(unary("Nope").replace(b"\x1a\x01n", b"\x1a\x01n"))


@case
def open_unknown_domain(kit):
    nodes = [h.make_node("Nope", ["x"], ["y"], name="n1", domain="my.own")]
    graph = h.make_graph(nodes, "g", [value("x", T.FLOAT, [1])], [value("y", T.FLOAT, [1])])
    made = h.make_model(graph, ir_version=8, opset_imports=[h.make_opsetid("", 17),
                                                            h.make_opsetid("my.own", 1)])
    return kit.session(made.SerializeToString())


@case
def open_future_opset(kit):
    return fails(kit.session, unary("Relu", opset=99))[:80]


@case
def open_future_ir(kit):
    return fails(kit.session, unary("Relu", ir=99))[:60]


@case
def open_missing_edge(kit):
    return kit.session(model([h.make_node("Relu", ["nothing"], ["y"], name="n")],
                             [value("x", T.FLOAT, [1])], [value("y", T.FLOAT, [1])]))


@case
def open_wrong_type_of_operator(kit):
    return kit.session(unary("Sqrt", T.STRING))


@case
def open_missing_attribute(kit):
    return kit.session(model([h.make_node("Concat", ["x"], ["y"], name="c")],
                             [value("x", T.FLOAT, [1])], [value("y", T.FLOAT, [1])]))


@case
def open_duplicate_output(kit):
    return kit.session(model([h.make_node("Relu", ["x"], ["y"], name="a"),
                              h.make_node("Relu", ["x"], ["y"], name="b")],
                             [value("x", T.FLOAT, [1])], [value("y", T.FLOAT, [1])]))


@case
def open_output_of_nobody(kit):
    return kit.session(model([h.make_node("Relu", ["x"], ["y"], name="a")],
                             [value("x", T.FLOAT, [1])], [value("q", T.FLOAT, [1])]))


@case
def open_type_of_output_differs(kit):
    return kit.session(unary("Relu", out=T.INT64))


@case
def open_no_inputs(kit):
    session = kit.session(model([h.make_node("Constant", [], ["y"], value=h.make_tensor(
        "c", T.FLOAT, [2], [1.0, 2.0]))], [], [value("y", T.FLOAT, [2])]))
    return session.get_inputs(), session.run(None, {})


@case
def open_old_ir_without_inputs_of_initializers(kit):
    data = model([h.make_node("Add", ["x", "b"], ["y"])], [value("x", T.FLOAT, [2])],
                 [value("y", T.FLOAT, [2])], [h.make_tensor("b", T.FLOAT, [2], [1.0, 2.0])], ir=3,
                 opset=7)
    return fails(lambda: kit.session(data).run(None, {"x": np.zeros(2, np.float32)}))


@cases({"symbol": ["N", 4], "unknown": [None, 4], "none": None, "scalar": [], "zero": [0, 2],
        "many": ["a", "b", "a", 1], "expression": ["2*n", 1], "empty_name": ["", 3]})
def node_arg(kit, shape):
    session = kit.session(model([h.make_node("Identity", ["x"], ["y"])], [value("x", T.FLOAT, shape)],
                                [value("y", T.FLOAT, None)]))
    return [(arg.name, arg.type, arg.shape, str(arg)) for arg in
            session.get_inputs() + session.get_outputs()]


TYPES = {name: getattr(T, name) for name in
         ("FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "STRING", "BOOL", "FLOAT16",
          "DOUBLE", "UINT32", "UINT64", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2",
          "FLOAT8E5M2FNUZ", "UINT4", "INT4")}


@cases({name.lower(): kind for name, kind in TYPES.items()})
def node_arg_type(kit, kind):
    session = kit.session(unary("Identity", kind, opset=21, ir=10))
    return [(arg.type, str(arg)) for arg in session.get_inputs() + session.get_outputs()]


@cases({"sequence_out": sequence_out, "sequence_in": sequence_in, "optional_in": optional_in,
        "optional_out": optional_out, "maps_of_ints": lambda: classifier([0, 1]),
        "maps_of_strings": lambda: classifier(["a", "b"])})
def node_arg_kind(kit, make):
    session = kit.session(make())
    return [(arg.name, arg.type, arg.shape, str(arg)) for arg in
            session.get_inputs() + session.get_outputs()]


@case
def node_arg_sparse(kit):
    data = model([h.make_node("Identity", ["x"], ["y"])],
                 [h.make_sparse_tensor_value_info("x", T.FLOAT, [3, 3])],
                 [h.make_sparse_tensor_value_info("y", T.FLOAT, [3, 3])])
    return fails(lambda: [(a.type, a.shape) for a in kit.session(data).get_inputs()])


@case
def node_arg_read_only(kit):
    arg = kit.session(add_one()).get_inputs()[0]
    return fails(setattr, arg, "name", "other"), fails(setattr, arg, "shape", [1])


@case
def node_arg_cannot_be_made(kit):
    return fails(kit.ort.NodeArg)


@case
def metadata(kit):
    data = matmul(props={"names": "{0: 'a'}", "k": "v"}, producer_name="me", domain="d",
                  doc_string="text", model_version=7, producer_version="2")
    meta = kit.session(data).get_modelmeta()
    return (dict(sorted(meta.custom_metadata_map.items())), meta.description, meta.domain, meta.graph_name,
            meta.graph_description, meta.producer_name, meta.version)


@case
def metadata_of_nothing(kit):
    meta = kit.session(matmul()).get_modelmeta()
    return (dict(sorted(meta.custom_metadata_map.items())), meta.description, meta.domain, meta.graph_name,
            meta.graph_description, meta.producer_name, meta.version)


@case
def metadata_can_be_set(kit):
    meta = kit.session(matmul()).get_modelmeta()
    meta.domain = "other"
    return meta.domain, fails(setattr, meta, "custom_metadata_map", {"a": "b"}), \
        fails(setattr, meta, "version", "x")


@case
def overridable_initializers(kit):
    session = kit.session(overridable())
    return ([str(a) for a in session.get_inputs()],
            [str(a) for a in session.get_overridable_initializers()])


@case
def overridable_initializers_run(kit):
    session = kit.session(overridable())
    x = np.zeros(2, np.float32)
    return session.run(None, {"x": x}), session.run(None, {"x": x, "b": x + 1})


@case
def overridable_initializers_none(kit):
    return kit.session(add_one()).get_overridable_initializers()


@case
def providers_default(kit):
    return kit.session(add_one(), providers=None).get_providers()[-1]


@cases({"unknown": ["FooProvider"], "cuda": ["CUDAExecutionProvider"],
        "cuda_cpu": ["CUDAExecutionProvider", "CPUExecutionProvider"], "none_at_all": [],
        "tuple": ("CPUExecutionProvider",), "with_options": [("CPUExecutionProvider", {})],
        "cpu_options": [("CPUExecutionProvider", {"use_arena": "0"})],
        "unknown_option": [("CPUExecutionProvider", {"foo": "1"})],
        "option_numbers": [("CPUExecutionProvider", {"use_arena": 1})],
        "twice": ["CPUExecutionProvider", "CPUExecutionProvider"],
        "text": "CPUExecutionProvider", "number": 3, "inner_list": [["CPUExecutionProvider", {}]],
        "inner_number": [3], "inner_none": [None], "three": [("CPUExecutionProvider", {}, 1)],
        "options_none": [("CPUExecutionProvider", None)],
        "unknown_cpu": ["FooProvider", "CPUExecutionProvider"],
        "tensorrt_both": ["TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider"],
        "tensorrt_options": [("TensorrtExecutionProvider", {"device_id": 0}),
                             ("CUDAExecutionProvider", {"device_id": 0})],
        "coreml": ["CoreMLExecutionProvider"], "openvino": [("OpenVINOExecutionProvider", {"d": "C"})],
        "set": {"CPUExecutionProvider"}, "generator": (p for p in ["CPUExecutionProvider"]),
        "old_name": ["CPU"], "lower_case": ["cpuexecutionprovider"]})
def providers(kit, given):
    session = kit.ort.InferenceSession(add_one(), providers=given)
    return session.get_providers(), session.get_provider_options()


@cases({"match": (["CPUExecutionProvider"], [{"use_arena": "1"}]),
        "length": (["CPUExecutionProvider"], []), "not_dicts": (["CPUExecutionProvider"], [1]),
        "tuples_too": ([("CPUExecutionProvider", {})], [{}]),
        "not_a_list": (["CPUExecutionProvider"], {}), "alone": (None, [{}])})
def provider_options(kit, given):
    session = kit.ort.InferenceSession(add_one(), providers=given[0], provider_options=given[1])
    return session.get_providers()[-1], session.get_provider_options()["CPUExecutionProvider"]


@case
def providers_without_fallback(kit):
    return fails(kit.ort.InferenceSession, add_one(), providers=["FooProvider"], enable_fallback=0)


@case
def providers_not_a_list_without_fallback(kit):
    return fails(kit.ort.InferenceSession, add_one(), providers=3, enable_fallback=0)


@case
def set_providers(kit):
    session = kit.session(add_one())
    session.set_providers(["CPUExecutionProvider"])
    first = session.get_providers(), session.get_provider_options()
    session.set_providers(["CPUExecutionProvider"], [{"use_arena": "1"}])
    return first, session.get_provider_options(), session.run(["y"], {"x": np.zeros((1, 2), "f")})


@case
def set_providers_unknown(kit):
    session = kit.session(add_one())
    return fails(session.set_providers, ["FooProvider"])


@case
def set_providers_unavailable(kit):
    session = kit.session(add_one())
    return fails(session.set_providers, ["CUDAExecutionProvider"]), session.get_providers()


@case
def fallback_switch(kit):
    session = kit.session(add_one())
    return session.disable_fallback(), session.enable_fallback()


@case
def pickle_session(kit):
    return fails(pickle.dumps, kit.session(add_one()))


@case
def options_of_session(kit):
    options = kit.ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.logid = "me"
    session = kit.session(add_one(), options)
    got = session.get_session_options()
    return got.intra_op_num_threads, got.logid, type(got).__name__


@case
def options_of_session_default(kit):
    got = kit.session(add_one()).get_session_options()
    return got.intra_op_num_threads, got.graph_optimization_level, got.log_severity_level


@case
def options_serve_many_sessions(kit):
    options = kit.ort.SessionOptions()
    first, second = kit.session(add_one(), options), kit.session(matmul(), options)
    options.logid = "changed"
    return first.get_inputs()[0].shape, second.get_inputs()[0].shape, run(second)


@case
def session_attributes(kit):
    session = kit.session(str(kit.write("m.onnx", add_one())))
    return session._model_path, session._model_bytes, session._providers, session._enable_fallback


@case
def session_is_subclass_friendly(kit):
    class Mine(kit.ort.InferenceSession):
        def __init__(self, data):
            super().__init__(data, providers=["CPUExecutionProvider"])
            self.extra = 3

        def run(self, *arguments):
            return super().run(*arguments)[0]
    mine = Mine(add_one())
    return mine.run(None, {"x": np.zeros((1, 2), np.float32)}), mine.extra, mine.get_inputs()[0].name


@case
def session_takes_attributes(kit):
    session = kit.session(add_one())
    session.tag = "mine"
    return session.tag, type(session).__module__, type(session).__qualname__


@case
def session_as_weak_reference(kit):
    import weakref
    session = kit.session(add_one())
    reference = weakref.ref(session)
    alive = reference() is session
    del session
    return alive, reference() is None


def external(kit, name="m.onnx", **changes):
    weights = np.arange(4, dtype=np.float32)
    made = onnx.load_model_from_string(model(
        [h.make_node("Add", ["x", "b"], ["y"])], [value("x", T.FLOAT, [4])], [value("y", T.FLOAT, [4])],
        [h.make_tensor("b", T.FLOAT, [4], weights.tobytes(), raw=True)]))
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = T.EXTERNAL
    for key, text in {"location": "w.bin", "offset": "0", "length": "16", **changes}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, text
    kit.write("w.bin", weights.tobytes())
    return kit.write(name, made.SerializeToString())


@case
def external_data(kit):
    return kit.session(external(kit)).run(None, {"x": np.ones(4, np.float32)})


@case
def external_data_pathlib(kit):
    return kit.session(pathlib.Path(external(kit))).run(None, {"x": np.ones(4, np.float32)})


@case
def external_data_missing(kit):
    path = external(kit)
    (kit.dir / "w.bin").unlink()
    return fails(kit.session, path).split(":")[0]


@case
def external_data_too_short(kit):
    path = external(kit)
    kit.write("w.bin", b"1234")
    return fails(kit.session, path).split(":")[0]


@case
def external_data_of_bytes(kit):
    data = external(kit).read_bytes()
    return fails(kit.session, data).split(":")[0]


@case
def external_data_of_bytes_with_folder(kit):
    options = kit.ort.SessionOptions()
    options.add_session_config_entry("session.model_external_initializers_file_folder_path",
                                     str(kit.dir))
    return kit.session(external(kit).read_bytes(), options).run(None, {"x": np.ones(4, np.float32)})


@case
def memory_infos(kit):
    session = kit.session(add_one())
    return ([(i.name, i.device_id, i.mem_type, i.allocator_type) for i in
             session.get_input_memory_infos()],
            [(i.name, i.device_mem_type, i.device_vendor_id) for i in
             session.get_output_memory_infos()], session.get_input_epdevices())


@case
def tuning_results(kit):
    return kit.session(add_one()).get_tuning_results()


@case
def dynamic_options_of_provider(kit):
    return fails(kit.session(add_one()).set_ep_dynamic_options, {"a": "b"})
