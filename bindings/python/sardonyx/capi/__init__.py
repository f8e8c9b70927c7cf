# SPDX-License-Identifier: Apache-2.0
"""The inner module of onnxruntime under its names: sardonyx.capi.onnxruntime_pybind11_state."""
import sys
import types

from sardonyx import _sardonyx, _types

__version__ = _sardonyx.get_version_string()


def _alias(name):
    """A module with all names of the extension and of _types."""
    module = types.ModuleType(f"{__name__}.{name}", _sardonyx.__doc__)
    for source in (_types, _sardonyx):
        module.__dict__.update((key, value) for key, value in vars(source).items()
                               if not key.startswith("_"))
    module.__spec__ = _sardonyx.__spec__
    sys.modules[module.__name__] = module
    return module


onnxruntime_pybind11_state = _alias("onnxruntime_pybind11_state")
_pybind_state = _alias("_pybind_state")
