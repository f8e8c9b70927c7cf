# SPDX-License-Identifier: Apache-2.0
"""The package onnxruntime, served by Sardonyx: programs written for ONNX Runtime run unchanged.

What differs is told in Sardonyx's docs/guide/dropin.md. `import sardonyx` is the same without the
compatibility: a provider that does not start is an error there.
"""
import glob as _glob
import os as _os

if _glob.glob(_os.path.join(_os.path.dirname(__file__), "capi", "onnxruntime_pybind11_state*.so")):
    raise ImportError("the packages onnxruntime and sardonyx-onnxruntime are installed over each other: "
                      "pip uninstall both, then install one of them")

import contextlib  # noqa: E402,F401  (programs find it here)

from onnxruntime.capi import onnxruntime_validation  # noqa: E402
from onnxruntime.capi._pybind_state import (  # noqa: E402,F401
    ExecutionMode, ExecutionOrder, GraphOptimizationLevel, LoraAdapter, ModelMetadata, NodeArg,
    OrtAllocatorType, OrtArenaCfg, OrtCompileApiFlags, OrtDeviceMemoryType, OrtEpAssignedNode,
    OrtEpAssignedSubgraph, OrtEpContextData, OrtEpContextDataBuffer, OrtEpDevice,
    OrtExecutionProviderDevicePolicy, OrtExternalInitializerInfo, OrtHardwareDevice,
    OrtHardwareDeviceType, OrtMemoryInfo, OrtMemoryInfoDeviceType, OrtMemType, OrtSparseFormat,
    OrtSyncStream, RunOptions, SessionIOBinding, SessionOptions, create_and_register_allocator,
    create_and_register_allocator_v2, disable_telemetry_events, enable_telemetry_events,
    get_all_providers, get_available_providers, get_build_info, get_device, get_ep_devices,
    get_version_string, has_collective_ops, register_execution_provider_library,
    set_default_logger_severity, set_default_logger_verbosity, set_global_thread_pool_sizes, set_seed,
    unregister_execution_provider_library)
from onnxruntime.capi.onnxruntime_inference_collection import (  # noqa: E402,F401
    AdapterFormat, InferenceSession, IOBinding, ModelCompiler, OrtDevice, OrtDeviceVendorId, OrtValue,
    SparseTensor, copy_tensors)

import_capi_exception = None
package_name, version, cuda_version = onnxruntime_validation.get_package_name_and_version_info()
__version__ = version
__author__ = "Sardonyx"


def print_debug_info():
    """Prints the versions and the place of the package, and the system."""
    import platform
    import sardonyx
    print(f"{package_name} version: {__version__}")
    print(f"served by sardonyx {sardonyx.__version__} at {_os.path.dirname(__file__)}")
    print("platform:", platform.platform())
    print("providers:", ", ".join(get_available_providers()))


def preload_dlls(cuda=True, cudnn=True, msvc=True, directory=None):
    """Nothing: there is no library to load before a session."""
