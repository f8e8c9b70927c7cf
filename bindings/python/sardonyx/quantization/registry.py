# SPDX-License-Identifier: Apache-2.0
"""The operators that ONNX Runtime's quantizer knows, by way of quantizing; programs list the names."""
from sardonyx import _later


def _list(names):
    """{operator: what quantizes it}: nothing does yet."""
    return {name: _later.make(__name__, "CreateOpQuantizer") for name in names.split()}


CommonOpsRegistry = _list("EmbedLayerNormalization Gather Transpose")
IntegerOpsRegistry = {**_list("Attention Conv LSTM MatMul"), **CommonOpsRegistry}
QLinearOpsRegistry = {
    **_list("Add ArgMax AveragePool Clip Concat Conv Flatten Gemm GlobalAveragePool LeakyRelu MatMul MaxPool "
            "Mul Pad Relu Reshape Resize Sigmoid Softmax Split Squeeze Unsqueeze Where"),
    **CommonOpsRegistry}
QDQRegistry = _list(
    "AveragePool BatchNormalization Clip Conv ConvTranspose CumSum Flatten Gather GatherElements Gemm "
    "InstanceNormalization LayerNormalization MatMul MaxPool Pad Relu Reshape Resize Slice Split Squeeze TopK "
    "Transpose Unsqueeze Where")
_later.fill(__name__, globals())
