# SPDX-License-Identifier: Apache-2.0
"""Sardonyx: load, check and run ONNX models.

    import numpy, sardonyx
    session = sardonyx.InferenceSession("model.onnx")
    (probabilities,) = session.run(None, {"input": numpy.zeros((1, 3, 224, 224), numpy.float32)})

The names are those of the package onnxruntime, and so are their meanings, with one difference: an
execution provider that is asked for and cannot run is an error that names it. Beside them:
check, infer_shapes, convert_version, compile and operators.
"""
from ._sardonyx import *
from ._sardonyx import __version__ as __version__
from ._types import *
from . import capi as capi
