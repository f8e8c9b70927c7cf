# SPDX-License-Identifier: Apache-2.0
"""The names of onnxruntime.transformers: NotImplementedError when one is called, but for TypeHelper."""
from sardonyx import _later
from sardonyx.transformers import io_binding_helper  # noqa: F401

_later.fill_package(__name__, globals())
