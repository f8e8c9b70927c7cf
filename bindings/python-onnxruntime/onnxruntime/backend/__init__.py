# SPDX-License-Identifier: Apache-2.0
"""The backend interface of the package onnx; see sardonyx.backend."""
from onnxruntime.backend.backend import is_compatible, prepare, run, supports_device  # noqa: F401
