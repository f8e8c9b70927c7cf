# SPDX-License-Identifier: Apache-2.0
"""Types of onnxruntime.quantization that programs name in their arguments."""
import enum

from sardonyx import _later

onnx_domain = "ai.onnx"
ms_domain = "com.microsoft"
QUANT_OP_NAME = "QuantizeLinear"
QUANT_INPUT_SUFFIX = "_QuantizeLinear_Input"
DEQUANT_OP_NAME = "DequantizeLinear"
DEQUANT_OUTPUT_SUFFIX = "_DequantizeLinear_Output"
TENSOR_NAME_QUANT_SUFFIX = "_quantized"
MODEL_SIZE_THRESHOLD = 1 << 31


class _Named(enum.Enum):
    """Members read as their name, and are found by it."""

    def __str__(self):
        return self.name

    @classmethod
    def from_string(cls, name):
        """The member of a name; ValueError when there is none."""
        if name not in cls.__members__:
            raise ValueError
        return cls[name]


class QuantizationMode(_Named):
    IntegerOps = 0
    QLinearOps = 1


class QuantizedValueType(_Named):
    Input = 0
    Initializer = 1


class QuantFormat(_Named):
    QOperator = 0
    QDQ = 1


class QuantType(_Named):
    QInt8 = 0
    QUInt8 = 1
    QFLOAT8E4M3FN = 2
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6

    @property
    def tensor_type(self):
        """The number of the type in ONNX's TensorProto."""
        return (3, 2, 17, 5, 4, 22, 21)[self.value]


_later.fill(__name__, globals())
