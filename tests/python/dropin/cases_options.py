# SPDX-License-Identifier: Apache-2.0
"""Cases: SessionOptions, RunOptions, enumerations and what they refuse."""
import copy
import pickle

import numpy as np
import onnx
from dropin_kit import T, add_one, case, cases, fails, h, looped, matmul, model, value

ATTRIBUTES = ("enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse", "enable_profiling",
              "execution_mode", "execution_order", "graph_optimization_level", "inter_op_num_threads",
              "intra_op_num_threads", "log_severity_level", "log_verbosity_level", "logid",
              "optimized_model_filepath", "profile_file_prefix", "use_deterministic_compute",
              "use_per_session_threads")
RUN_ATTRIBUTES = ("log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches",
                  "terminate")
X = {"x": np.array([[1.0, 2.0]], np.float32)}


@case
def options_defaults(kit):
    options = kit.ort.SessionOptions()
    return {name: getattr(options, name) for name in ATTRIBUTES}


@case
def run_options_defaults(kit):
    options = kit.ort.RunOptions()
    return {name: getattr(options, name) for name in RUN_ATTRIBUTES}


SETTINGS = {
    "threads": ("intra_op_num_threads", 2), "threads_text": ("intra_op_num_threads", "2"),
    "threads_float": ("intra_op_num_threads", 2.0), "threads_none": ("intra_op_num_threads", None),
    "threads_bool": ("intra_op_num_threads", True),
    "threads_numpy": ("intra_op_num_threads", np.int64(3)),
    "threads_negative": ("intra_op_num_threads", -1),
    "threads_huge": ("intra_op_num_threads", 1 << 40),
    "inter_threads": ("inter_op_num_threads", 3), "arena": ("enable_cpu_mem_arena", False),
    "arena_number": ("enable_cpu_mem_arena", 0), "arena_text": ("enable_cpu_mem_arena", "no"),
    "arena_none": ("enable_cpu_mem_arena", None), "pattern": ("enable_mem_pattern", False),
    "arena_numpy": ("enable_cpu_mem_arena", np.bool_(True)),
    "reuse": ("enable_mem_reuse", False), "severity": ("log_severity_level", 3),
    "severity_text": ("log_severity_level", "3"), "verbosity": ("log_verbosity_level", 1),
    "logid": ("logid", "abc"), "logid_number": ("logid", 1), "logid_none": ("logid", None),
    "logid_bytes": ("logid", b"abc"),
    "optimized": ("optimized_model_filepath", "a.onnx"),
    "optimized_number": ("optimized_model_filepath", 3),
    "profile_prefix": ("profile_file_prefix", "p_"), "deterministic": ("use_deterministic_compute", 1),
    "per_session": ("use_per_session_threads", False),
    "level_number": ("graph_optimization_level", 99), "level_text": ("graph_optimization_level", "all"),
    "level_none": ("graph_optimization_level", None), "mode_number": ("execution_mode", 1),
    "order_number": ("execution_order", 1), "profiling_text": ("enable_profiling", "x"),
    "unknown": ("no_such_attribute", 1),
}


@cases(SETTINGS)
def options_set(kit, pair):
    options = kit.ort.SessionOptions()
    setattr(options, *pair)
    return getattr(options, pair[0])


@cases({"mode": ("execution_mode", "ExecutionMode", "ORT_PARALLEL"),
        "order": ("execution_order", "ExecutionOrder", "PRIORITY_BASED"),
        "level": ("graph_optimization_level", "GraphOptimizationLevel", "ORT_ENABLE_BASIC"),
        "layout": ("graph_optimization_level", "GraphOptimizationLevel", "ORT_ENABLE_LAYOUT"),
        "wrong": ("execution_mode", "ExecutionOrder", "DEFAULT")})
def options_set_enum(kit, names):
    options = kit.ort.SessionOptions()
    setattr(options, names[0], getattr(getattr(kit.ort, names[1]), names[2]))
    return getattr(options, names[0])


@cases({"terminate": ("terminate", True), "terminate_number": ("terminate", 1),
        "terminate_text": ("terminate", "x"), "logid": ("logid", "a"), "logid_none": ("logid", None),
        "severity": ("log_severity_level", 1), "severity_text": ("log_severity_level", "a"),
        "only": ("only_execute_path_to_fetches", True), "unknown": ("no_such_attribute", 1),
        "training": ("training_mode", True)})
def run_options_set(kit, pair):
    options = kit.ort.RunOptions()
    setattr(options, *pair)
    return getattr(options, pair[0])


@case
def options_config_entry(kit):
    options = kit.ort.SessionOptions()
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    return options.get_session_config_entry("session.set_denormal_as_zero")


@case
def options_config_entry_missing(kit):
    return kit.ort.SessionOptions().get_session_config_entry("nope")


@case
def options_config_entry_again(kit):
    options = kit.ort.SessionOptions()
    options.add_session_config_entry("a", "1")
    options.add_session_config_entry("a", "2")
    return options.get_session_config_entry("a")


@cases({"number": ("a", 1), "none": ("a", None), "key": (1, "a"), "one": ("a",), "empty_key": ("", "1"),
        "empty_value": ("a", ""), "long_key": ("k" * 2000, "1"), "long_value": ("a", "v" * 5000)})
def options_config_entry_wrong(kit, given):
    return fails(kit.ort.SessionOptions().add_session_config_entry, *given)


@case
def run_options_config_entry(kit):
    options = kit.ort.RunOptions()
    options.add_run_config_entry("a", "1")
    return options.get_run_config_entry("a"), fails(options.get_run_config_entry, "b")


@case
def options_representation(kit):
    return repr(kit.ort.SessionOptions()), repr(kit.ort.RunOptions())


@case
def options_copy(kit):
    return fails(copy.copy, kit.ort.SessionOptions()), fails(copy.deepcopy, kit.ort.SessionOptions())


@case
def options_pickle(kit):
    return fails(pickle.dumps, kit.ort.SessionOptions()), fails(pickle.dumps, kit.ort.RunOptions())


@case
def options_arguments(kit):
    return fails(kit.ort.SessionOptions, 1), fails(kit.ort.RunOptions, a=2)


@case
def options_has_providers(kit):
    options = kit.ort.SessionOptions()
    return options.has_providers()


@case
def options_add_provider(kit):
    options = kit.ort.SessionOptions()
    return fails(options.add_provider, "FooProvider", {})


@case
def options_add_provider_cpu(kit):
    options = kit.ort.SessionOptions()
    return fails(options.add_provider, "CPUExecutionProvider", {})


ENUMS = ("ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "OrtAllocatorType",
         "OrtCompileApiFlags", "OrtDeviceMemoryType", "OrtExecutionProviderDevicePolicy",
         "OrtHardwareDeviceType", "OrtMemType", "OrtMemoryInfoDeviceType", "OrtSparseFormat")


@cases({name.lower(): name for name in ENUMS})
def enum(kit, name):
    kind = getattr(kit.ort, name)
    return {key: (repr(member), str(member), int(member), member.name, member.value)
            for key, member in sorted(kind.__members__.items())}


@case
def enum_arithmetic(kit):
    level = kit.ort.GraphOptimizationLevel
    return (level.ORT_ENABLE_ALL == level.ORT_ENABLE_ALL, level.ORT_ENABLE_ALL == 99,
            level.ORT_ENABLE_ALL != level.ORT_ENABLE_BASIC, hash(level.ORT_ENABLE_BASIC) == hash(1),
            level(1), fails(level, 7), fails(lambda: level.ORT_ENABLE_ALL < level.ORT_ENABLE_BASIC),
            level.ORT_ENABLE_ALL in {level.ORT_ENABLE_ALL}, fails(level, "x"))


@case
def enum_flags(kit):
    flags = kit.ort.OrtCompileApiFlags
    return fails(lambda: flags.ERROR_IF_NO_NODES_COMPILED | flags.ERROR_IF_OUTPUT_FILE_EXISTS)


@case
def enum_pickle(kit):
    level = kit.ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return pickle.loads(pickle.dumps(level)) == level, copy.copy(level)


@case
def enum_module(kit):
    return [(getattr(kit.ort, name).__module__, getattr(kit.ort, name).__qualname__) for name in ENUMS]


def dynamic(denotation=False):
    made = onnx.load_model_from_string(matmul())
    if denotation:
        made.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    return made.SerializeToString()


@case
def free_dimension_by_name(kit):
    options = kit.ort.SessionOptions()
    options.add_free_dimension_override_by_name("N", 5)
    session = kit.session(dynamic(), options)
    return [a.shape for a in session.get_inputs()], [a.shape for a in session.get_outputs()]


@case
def free_dimension_by_denotation(kit):
    options = kit.ort.SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 3)
    return [a.shape for a in kit.session(dynamic(True), options).get_inputs()]


@case
def free_dimension_unknown(kit):
    options = kit.ort.SessionOptions()
    options.add_free_dimension_override_by_name("Q", 5)
    return [a.shape for a in kit.session(dynamic(), options).get_inputs()]


@case
def free_dimension_wrong_feed(kit):
    options = kit.ort.SessionOptions()
    options.add_free_dimension_override_by_name("N", 5)
    session = kit.session(dynamic(), options)
    return session.run(None, {"x": np.ones((2, 4), "f"), "w": np.ones((4, 3), "f")})


@case
def free_dimension_types(kit):
    options = kit.ort.SessionOptions()
    return fails(options.add_free_dimension_override_by_name, "N", "5"), \
        fails(options.add_free_dimension_override_by_name, 1, 5)


@case
def terminate_set(kit):
    options = kit.ort.RunOptions()
    options.terminate = True
    return kit.session(add_one()).run(None, X, options)


@case
def terminate_cleared(kit):
    options = kit.ort.RunOptions()
    options.terminate = True
    options.terminate = False
    return kit.session(add_one()).run(None, X, options)


@case
def terminate_from_other_thread(kit):
    import threading
    options = kit.ort.RunOptions()
    session = kit.session(looped())
    timer = threading.Timer(0.2, setattr, (options, "terminate", True))
    timer.start()
    text = fails(session.run, None, {"x": np.ones(1, "f"), "n": np.array(1 << 40)}, options)
    timer.join()
    return "Exiting due to terminate flag being set to true" in text


@case
def run_options_many_runs(kit):
    options = kit.ort.RunOptions()
    options.logid = "a"
    session = kit.session(add_one())
    return [session.run(["y"], X, run_options=options) for _ in range(3)]


@case
def run_options_wrong_type(kit):
    return fails(kit.session(add_one()).run, None, X, {"terminate": True})


@case
def only_path_to_fetches(kit):
    options = kit.ort.RunOptions()
    options.only_execute_path_to_fetches = True
    return kit.session(add_one()).run(["y"], X, options)


@cases({name.lower(): name for name in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED",
                                        "ORT_ENABLE_LAYOUT", "ORT_ENABLE_ALL")})
def optimisation_level(kit, name):
    options = kit.ort.SessionOptions()
    options.graph_optimization_level = getattr(kit.ort.GraphOptimizationLevel, name)
    return kit.session(add_one(), options).run(None, X)


@case
def parallel_mode(kit):
    options = kit.ort.SessionOptions()
    options.execution_mode = kit.ort.ExecutionMode.ORT_PARALLEL
    options.inter_op_num_threads = 2
    return kit.session(add_one(), options).run(None, X)


def optimised(kit, level):
    options = kit.ort.SessionOptions()
    options.optimized_model_filepath = str(kit.dir / "o.onnx")
    options.graph_optimization_level = level
    data = model([h.make_node("Identity", ["x"], ["a"]), h.make_node("Relu", ["a"], ["y"])],
                 [value("x", T.FLOAT, ["N", 2])], [value("y", T.FLOAT, ["N", 2])])
    kit.session(data, options)
    return onnx.load(kit.dir / "o.onnx")


@case
def optimised_model_is_written(kit):
    made = optimised(kit, kit.ort.GraphOptimizationLevel.ORT_ENABLE_BASIC)
    onnx.checker.check_model(made)
    return [node.op_type for node in made.graph.node], [i.name for i in made.graph.input]


@case
def optimised_model_runs(kit):
    optimised(kit, kit.ort.GraphOptimizationLevel.ORT_ENABLE_BASIC)
    return kit.session(kit.dir / "o.onnx").run(None, X)


@case
def add_initializer(kit):
    options = kit.ort.SessionOptions()
    weights = kit.ort.OrtValue.ortvalue_from_numpy(np.array(5.0, np.float32))
    options.add_initializer("one", weights)
    return kit.session(add_one(), options).run(None, X)


@case
def add_initializer_unknown(kit):
    options = kit.ort.SessionOptions()
    options.add_initializer("nope", kit.ort.OrtValue.ortvalue_from_numpy(np.array(5.0, np.float32)))
    return kit.session(add_one(), options).run(None, X)


@case
def add_initializer_wrong(kit):
    return fails(kit.ort.SessionOptions().add_initializer, "one", np.array(5.0, np.float32))


@case
def custom_library_missing(kit):
    text = fails(kit.ort.SessionOptions().register_custom_ops_library, str(kit.dir / "no.so"))
    return text.split(" : ")[:3]


@case
def load_cancelled(kit):
    options = kit.ort.SessionOptions()
    options.set_load_cancellation_flag(True)
    return fails(kit.session, add_one(), options)
