# SPDX-License-Identifier: Apache-2.0
"""Three small models by the names that examples for ONNX Runtime use: mul_1.onnx, sigmoid.onnx and
logreg_iris.onnx. Names and shapes are those; the weights are our own."""
import os


def get_example(name):
    """The path of an example model; FileNotFoundError when there is none of that name."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"Unable to find example '{name}'")
    return path
