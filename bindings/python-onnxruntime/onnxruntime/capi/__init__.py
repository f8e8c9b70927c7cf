# SPDX-License-Identifier: Apache-2.0
"""What programs import from onnxruntime.capi."""
