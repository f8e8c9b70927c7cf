# SPDX-License-Identifier: Apache-2.0
"""ONNX test folders: what `sardonyx test` reads."""
import numpy as np
import onnx
from onnx import numpy_helper


def write_case(folder, model, inputs, outputs, number=0):
    """FOLDER/model.onnx and FOLDER/test_data_set_NUMBER with the arrays, in the order of the model's inputs
    and outputs; a dict names them. Returns the folder of the data."""
    data = folder / f"test_data_set_{number}"
    data.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    for kind, arrays in (("input", inputs), ("output", outputs)):
        named = arrays.items() if isinstance(arrays, dict) else ((f"{kind}_{i}", a) for i, a in enumerate(arrays))
        for i, (name, array) in enumerate(named):
            proto = numpy_helper.from_array(np.asarray(array), name)
            (data / f"{kind}_{i}.pb").write_bytes(proto.SerializeToString())
    return data
