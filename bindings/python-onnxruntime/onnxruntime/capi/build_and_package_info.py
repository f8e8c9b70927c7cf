# SPDX-License-Identifier: Apache-2.0
"""Versions: of ONNX Runtime's that is offered, and of Sardonyx. The build backend reads this file."""
package_name = "onnxruntime"
__version__ = "1.31.1"
sardonyx_version = "0.1.0"
