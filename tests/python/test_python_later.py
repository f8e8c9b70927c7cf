# SPDX-License-Identifier: Apache-2.0
"""Parts of onnxruntime that can be imported and not yet be used."""
import importlib

import pytest

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
