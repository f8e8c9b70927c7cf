# SPDX-License-Identifier: Apache-2.0
"""The classes and functions of the extension.

Sardonyx's extension holds its module a second time, under this name: its classes and exceptions call
themselves onnxruntime.capi.onnxruntime_pybind11_state.X. That module takes the place of this one, with
the enumerations and plain types of sardonyx._types, which then go by this name too.
"""
import importlib.machinery
import importlib.util
import sys


def _load():
    found = importlib.util.find_spec("sardonyx") and importlib.util.find_spec("sardonyx._sardonyx")
    if not found or not found.origin:
        raise ImportError("sardonyx-onnxruntime needs the package sardonyx, which is not installed")
    loader = importlib.machinery.ExtensionFileLoader(__name__, found.origin)
    spec = importlib.util.spec_from_file_location(__name__, found.origin, loader=loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[__name__] = module
    loader.exec_module(module)
    from sardonyx import _types
    for name, item in vars(_types).items():
        if not name.startswith("_"):
            item.__module__ = __name__
            setattr(module, name, item)


_load()
