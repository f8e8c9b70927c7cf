# SPDX-License-Identifier: Apache-2.0
"""The names of onnxruntime.quantization. Its types are real, its quantizers are not there yet:
NotImplementedError when one is called."""
import sys as _sys

from sardonyx import _later  # makes the names that type checkers do not see
from sardonyx.quantization import calibrate, quant_utils, registry  # noqa: F401
from sardonyx.quantization.calibrate import (  # type: ignore[attr-defined]  # noqa: F401
    CalibraterBase, CalibrationDataReader, CalibrationMethod, MinMaxCalibrater, TensorData, TensorsData,
    create_calibrator, load_tensors_data, save_tensors_data)
from sardonyx.quantization.quant_utils import (  # type: ignore[attr-defined]  # noqa: F401
    QuantFormat, QuantizationMode, QuantType, write_calibration_table)

_later.fill_package(__name__, globals())
CudaQuantizer = _sys.modules[__name__ + ".cuda_quantizer"].CudaQuantizer
QDQQuantizer = _sys.modules[__name__ + ".qdq_quantizer"].QDQQuantizer
quant_pre_process = _sys.modules[__name__ + ".shape_inference"].quant_pre_process
_quantize = _sys.modules[__name__ + ".quantize"]
for _name in ("DynamicQuantConfig", "StaticQuantConfig", "get_qdq_config", "quantize", "quantize_dynamic",
              "quantize_static"):
    globals()[_name] = getattr(_quantize, _name)
