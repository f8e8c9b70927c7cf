# SPDX-License-Identifier: Apache-2.0
"""The names of onnxruntime.tools: NotImplementedError when one is called."""
from sardonyx import _later

_later.fill_package(__name__, globals())
