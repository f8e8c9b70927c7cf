# SPDX-License-Identifier: Apache-2.0
"""The backend interface of the package onnx; see sardonyx.backend."""
from onnxruntime.backend.backend_rep import OnnxRuntimeBackendRep  # noqa: F401
from sardonyx.backend import Backend as OnnxRuntimeBackend

is_compatible = OnnxRuntimeBackend.is_compatible
prepare = OnnxRuntimeBackend.prepare
run = OnnxRuntimeBackend.run_model
supports_device = OnnxRuntimeBackend.supports_device
