# SPDX-License-Identifier: Apache-2.0
"""Cases: the module itself, its submodules, exceptions and functions."""
import importlib
import importlib.util
import inspect
import pickle

from dropin_kit import add_one, case, cases, fails, surface

EXCEPTIONS = ("DeviceReset", "EPFail", "EngineError", "Fail", "InvalidArgument", "InvalidGraph",
              "InvalidProtobuf", "ModelLoadCanceled", "ModelLoaded", "ModelRequiresCompilation",
              "NoModel", "NoSuchFile", "NotFound", "NotImplemented", "RuntimeException")


def state():
    return importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")


@case
def module_version(kit):
    return kit.ort.__version__, kit.ort.version, kit.ort.get_version_string(), kit.ort.package_name, \
        kit.ort.cuda_version, kit.ort.__name__, kit.ort.import_capi_exception


@case
def module_spec(kit):
    spec = importlib.util.find_spec("onnxruntime")
    return spec.name, kit.ort.__spec__.name, kit.ort.__spec__.parent, bool(spec.origin), \
        bool(kit.ort.__file__), bool(kit.ort.__path__), bool(kit.ort.__doc__)


@case
def module_names(kit):
    return surface(dir(kit.ort))


@case
def module_device(kit):
    return kit.ort.get_device(), kit.ort.get_available_providers()[-1]


@case
def module_all_providers(kit):
    return kit.ort.get_all_providers()


@case
def module_build_information(kit):
    text = kit.ort.get_build_info()
    return text.startswith("ORT Build Info: "), "git-commit-id=" in text, "build type=" in text


@case
def module_collective(kit):
    return kit.ort.has_collective_ops()


@case
def module_telemetry(kit):
    return kit.ort.disable_telemetry_events(), kit.ort.enable_telemetry_events(), \
        kit.ort.disable_telemetry_events()


@case
def module_seed(kit):
    return kit.ort.set_seed(7), fails(kit.ort.set_seed, "a")


@cases({"four": 4, "zero": 0, "five": 5, "minus": -1, "text": "3", "none": None, "float": 3.0})
def module_severity(kit, level):
    try:
        return fails(kit.ort.set_default_logger_severity, level)
    finally:
        kit.ort.set_default_logger_severity(4)


@case
def module_verbosity(kit):
    return kit.ort.set_default_logger_verbosity(0)


@case
def module_devices(kit):
    return [(d.ep_name, d.device.type) for d in kit.ort.get_ep_devices()][-1:]


@case
def module_library_missing(kit):
    return fails(kit.ort.register_execution_provider_library, "mine", "/nope.so").split(" : ")[:2]


@case
def module_library_unknown(kit):
    return fails(kit.ort.unregister_execution_provider_library, "mine")


@case
def module_preload(kit):
    return kit.ort.preload_dlls()


@case
def module_debug_information(kit):
    import contextlib
    import io
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        kit.ort.print_debug_info()
    return out.getvalue().split("\n")[0]


@cases({name.lower(): name for name in EXCEPTIONS})
def exception(kit, name):
    kind = getattr(state(), name)
    return kind.__module__, kind.__qualname__, [base.__qualname__ for base in kind.__mro__], \
        repr(kind("text")), str(kind("text"))


@case
def exception_pickle(kit):
    error = state().Fail("text")
    return fails(lambda: repr(pickle.loads(pickle.dumps(error))))


@case
def exception_arguments(kit):
    try:
        kit.session(b"\x00x")
    except Exception as error:
        return error.args, isinstance(error, RuntimeError), isinstance(error, Exception)


@case
def exception_is_one(kit):
    from onnxruntime.capi import _pybind_state
    return _pybind_state.InvalidArgument is state().InvalidArgument


@case
def exceptions_not_in_module(kit):
    return [hasattr(kit.ort, name) for name in EXCEPTIONS]


@case
def state_names(kit):
    return surface(name for name, item in vars(state()).items() if callable(item))


CLASSES = ("AdapterFormat", "ExecutionMode", "GraphOptimizationLevel", "IOBinding", "InferenceSession",
           "LoraAdapter", "ModelCompiler", "ModelMetadata", "NodeArg", "OrtArenaCfg", "OrtDevice",
           "OrtEpDevice", "OrtExternalInitializerInfo", "OrtHardwareDevice", "OrtMemoryInfo",
           "OrtSyncStream", "OrtValue", "RunOptions", "SessionIOBinding", "SessionOptions",
           "SparseTensor", "OrtEpAssignedNode", "OrtEpAssignedSubgraph", "OrtDeviceVendorId",
           "OrtEpContextData", "OrtEpContextDataBuffer")


@cases({name.lower(): name for name in CLASSES})
def class_surface(kit, name):
    return surface(dir(getattr(kit.ort, name)))


@cases({name.lower(): name for name in CLASSES})
def class_place(kit, name):
    return getattr(kit.ort, name).__module__, getattr(kit.ort, name).__qualname__


@cases({name.lower(): name for name in ("InferenceSession", "OrtValue", "OrtValueVector", "OrtDevice",
                                        "SparseTensor", "SessionIOBinding", "AdapterFormat",
                                        "ModelCompiler", "SparseCooView", "SparseCsrView",
                                        "SparseBlockSparseView", "SessionOptions", "RunOptions")})
def state_class_surface(kit, name):
    return surface(dir(getattr(state(), name)))


METHODS = ("run", "run_async", "run_with_ort_values", "run_with_iobinding", "set_providers",
           "get_provider_options", "io_binding", "__init__", "end_profiling", "get_inputs",
           "create_ortvalue_from_shape_and_type", "set_tuning_results", "release_captured_graph",
           "run_with_ortvaluevector", "set_ep_dynamic_options")


def parameters_of(function):
    """Names, kinds and defaults; compiled methods take `self` by position only, which says nothing."""
    return [(p.name, "" if p.name == "self" else p.kind.name,
             "required" if p.default is p.empty else p.default)
            for p in inspect.signature(function).parameters.values()]


@cases({name.strip("_"): name for name in METHODS})
def signature_of_session(kit, name):
    return parameters_of(getattr(kit.ort.InferenceSession, name))


@cases({"value": ("OrtValue", "ortvalue_from_numpy"), "shape": ("OrtValue", "ortvalue_from_shape_and_type"),
        "bind_input": ("IOBinding", "bind_input"), "bind_output": ("IOBinding", "bind_output"),
        "bind_cpu": ("IOBinding", "bind_cpu_input"), "device": ("OrtDevice", "make"),
        "sparse": ("SparseTensor", "sparse_coo_from_numpy"), "update": ("OrtValue", "update_inplace")})
def signature_of(kit, names):
    return parameters_of(getattr(getattr(kit.ort, names[0]), names[1]))


MODULES = ("capi", "capi._pybind_state", "capi.onnxruntime_pybind11_state", "capi._ld_preload",
           "capi.onnxruntime_inference_collection", "capi.onnxruntime_validation",
           "capi.build_and_package_info", "capi.onnxruntime_collect_build_info", "datasets", "backend",
           "backend.backend", "backend.backend_rep", "quantization", "quantization.quantize",
           "quantization.quant_utils", "quantization.calibrate", "quantization.shape_inference",
           "quantization.onnx_model", "quantization.registry", "quantization.preprocess",
           "quantization.matmul_nbits_quantizer", "quantization.onnx_quantizer",
           "quantization.qdq_quantizer", "quantization.base_quantizer", "quantization.operators",
           "quantization.tensor_quant_overrides", "quantization.execution_providers.qnn",
           "transformers", "transformers.optimizer", "transformers.float16",
           "transformers.fusion_options", "transformers.onnx_model", "transformers.onnx_model_bert",
           "tools", "tools.onnx_model_utils", "tools.symbolic_shape_infer",
           "tools.make_dynamic_shape_fixed", "tools.update_onnx_opset")


@cases({name.replace(".", "_"): name for name in MODULES})
def import_of(kit, name):
    module = importlib.import_module("onnxruntime." + name)
    return module.__name__, module.__spec__.name


@case
def import_missing(kit):
    return fails(importlib.import_module, "onnxruntime.nope"), \
        importlib.util.find_spec("onnxruntime.training")


@case
def import_from_state(kit):
    from onnxruntime.capi.onnxruntime_pybind11_state import (  # noqa: F401
        Fail, InvalidArgument, NoSuchFile, NotImplemented, OrtDevice, OrtValueVector)
    from onnxruntime.capi.onnxruntime_inference_collection import (  # noqa: F401
        IOBinding, InferenceSession, OrtValue, Session, check_and_normalize_provider_args,
        get_ort_device_type)
    from onnxruntime.capi.onnxruntime_validation import (  # noqa: F401
        check_distro_info, get_package_name_and_version_info)
    return InferenceSession is kit.ort.InferenceSession, issubclass(InferenceSession, Session), \
        get_package_name_and_version_info(), get_ort_device_type("cpu")


@case
def provider_arguments(kit):
    from onnxruntime.capi.onnxruntime_inference_collection import check_and_normalize_provider_args
    names = ["A", "B"]
    return (check_and_normalize_provider_args(["A", ("B", {1: 2})], None, names),
            check_and_normalize_provider_args(None, None, names),
            check_and_normalize_provider_args(["A"], [{"k": 3}], names),
            fails(check_and_normalize_provider_args, ["A"], [], names),
            fails(check_and_normalize_provider_args, "A", None, names))


@case
def provider_arguments_unknown(kit):
    from onnxruntime.capi.onnxruntime_inference_collection import check_and_normalize_provider_args
    return check_and_normalize_provider_args(["C", "A", "A"], None, ["A", "B"])


@case
def quantization_names(kit):
    from onnxruntime import quantization
    return surface(dir(quantization))


@case
def quantization_enums(kit):
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType
    return [(str(item), item.value) for kind in (CalibrationMethod, QuantFormat, QuantType)
            for item in kind]


@case
def quantization_types(kit):
    from onnxruntime.quantization import QuantFormat, QuantType
    return QuantType.from_string("QInt8"), QuantFormat.from_string("QDQ"), str(QuantType.QUInt8), \
        fails(QuantType.from_string, "x"), QuantType.QInt8.tensor_type


@case
def quantization_reader(kit):
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):
        def get_next(self):
            return None
    return fails(CalibrationDataReader), Reader().get_next(), list(Reader())


@case
def datasets(kit):
    from onnxruntime.datasets import get_example
    names = ("mul_1.onnx", "sigmoid.onnx", "logreg_iris.onnx")
    return [[str(a) for a in kit.session(get_example(name)).get_inputs()] for name in names], \
        fails(get_example, "nope.onnx").split(":")[0]


@case
def backend_names(kit):
    from onnxruntime import backend
    return [backend.supports_device("CPU"), backend.supports_device("CUDA"),
            backend.is_compatible(None)], backend.prepare(add_one()).run([[[1.0, 2.0]]])
