# SPDX-License-Identifier: Apache-2.0
"""Parts of onnxruntime that can be imported and not yet be used."""
import importlib
import re

import numpy as np
import pytest
from onnx import TensorProto as T

FUNCTIONS = {
    "quantization": "quantize quantize_dynamic quantize_static quant_pre_process create_calibrator",
    "quantization.quantize": "quantize_dynamic",
    "quantization.execution_providers.qnn": "get_qnn_qdq_config",
    "transformers.optimizer": "optimize_model",
    "transformers.float16": "convert_float_to_float16",
    "tools.symbolic_shape_infer": "SymbolicShapeInference",
}


@pytest.mark.parametrize("module", FUNCTIONS)
def test_a_call_tells_that_it_is_not_there(sdx, module):
    found = importlib.import_module(f"sardonyx.{module}")
    for name in FUNCTIONS[module].split():
        with pytest.raises(NotImplementedError, match=f"^sardonyx.*{name} is not part of Sardonyx yet"):
            getattr(found, name)("model.onnx")


def test_types_of_quantization(sdx):
    from sardonyx.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType

    class Reader(CalibrationDataReader):
        left = [1, 2]

        def get_next(self):
            return self.left.pop() if self.left else None

    assert [item for item in Reader()] == [2, 1]
    assert QuantType.from_string("QUInt8") is QuantType.QUInt8 and str(QuantFormat.QDQ) == "QDQ"
    assert (QuantType.QInt8.tensor_type, CalibrationMethod.MinMax.value) == (3, 0)


def test_a_module_that_is_not_there(sdx):
    for name in ("quantization.nope", "transformers.nope", "tools.nope"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(f"sardonyx.{name}")


def test_types_by_their_names(sdx):
    """What optimum asks of onnxruntime.transformers; torch is not imported for the rest."""
    from types import SimpleNamespace as Item

    from sardonyx.transformers.io_binding_helper import TypeHelper

    session = Item(get_inputs=lambda: [Item(name="a", type="tensor(double)"), Item(name="b", type="tensor(bool)")],
                   get_outputs=lambda: [Item(name="y", type="tensor(float16)")])
    assert TypeHelper.get_input_type(session, "b") == "tensor(bool)" and TypeHelper.get_output_type(session, "y") == "tensor(float16)"
    assert TypeHelper.get_io_onnx_type_map(session) == {"a": T.DOUBLE, "b": T.BOOL, "y": T.FLOAT16}
    assert TypeHelper.get_io_numpy_type_map(session) == {"a": np.float64, "b": bool, "y": np.float16}
    assert TypeHelper.ort_type_to_onnx_type("tensor(float4e2m1)") == T.FLOAT4E2M1
    for function, given in ((TypeHelper.ort_type_to_numpy_type, "tensor(bfloat16)"), (TypeHelper.ort_type_to_onnx_type, "float")):
        with pytest.raises(ValueError, match=rf"^{re.escape(given)} not found in map$"):
            function(given)
    with pytest.raises(ValueError, match="^input name y not found$"):
        TypeHelper.get_input_type(session, "y")
    for name in ("IOBindingHelper", "CudaSession"):
        with pytest.raises(NotImplementedError):
            getattr(importlib.import_module("sardonyx.transformers.io_binding_helper"), name)()


def test_types_of_torch(sdx):
    torch = pytest.importorskip("torch")
    from sardonyx.transformers.io_binding_helper import TypeHelper
    assert TypeHelper.ort_type_to_torch_type("tensor(bfloat16)") is torch.bfloat16
    assert TypeHelper.numpy_type_to_torch_type(np.int16) is torch.int16
    assert TypeHelper.torch_type_to_numpy_type(torch.bool) is bool
