# SPDX-License-Identifier: Apache-2.0
"""One constant under several convolutions, or one of several lengths, against the ONNX reference: packed weights are
shared between nodes and runs, so their order may depend only on what tells the packed copies apart."""
import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from case_folder import write_case  # noqa: E402

WAYS = [(1, 1), (3, 1), (2, 1), (1, 2), (2, 2)]  # stride, dilation
KINDS = {"depthwise": (32, 1), "dense": (8, 8), "grouped": (16, 8)}  # channels, of a group


@pytest.mark.parametrize("quantised", [False, True], ids=["f32", "int8"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [3, 5])
def test_convolutions(kind, quantised, size, sardonyx, tmp_path):
    channels, each = KINDS[kind]
    random = np.random.default_rng(11)
    shape = (channels, each, size, size)
    if quantised:
        weights, x = random.integers(-127, 128, shape), random.integers(0, 256, (1, channels, 14, 13))
        weights, x = weights.astype(np.int8), x.astype(np.uint8)
        scales = {"xs": np.float32(0.02), "xz": np.uint8(120), "ws": np.float32(0.01), "wz": np.int8(0),
                  "ys": np.float32(0.05), "yz": np.uint8(128)}
        inputs, op, dtype = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], "QLinearConv", TensorProto.UINT8
    else:
        weights, x = random.standard_normal(shape), random.standard_normal((1, channels, 14, 13))
        weights, x = weights.astype(np.float32), x.astype(np.float32)
        scales, inputs, op, dtype = {}, ["x", "w"], "Conv", TensorProto.FLOAT
    names = [f"y{stride}{dilation}" for stride, dilation in WAYS]
    nodes = [helper.make_node(op, inputs, [name], kernel_shape=[size] * 2, strides=[stride] * 2,
                              dilations=[dilation] * 2, pads=[size // 2] * 4, group=channels // each)
             for name, (stride, dilation) in zip(names, WAYS)]
    constants = [numpy_helper.from_array(np.asarray(v), k) for k, v in {"w": weights, **scales}.items()]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", dtype, x.shape)],
                              [helper.make_tensor_value_info(name, dtype, None) for name in names], constants)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    expected = ReferenceEvaluator(model).run(None, {"x": x})
    write_case(tmp_path / "case", model, [x], expected)
    sardonyx("test", tmp_path / "case", "--atol", 1e-4)


@pytest.mark.parametrize("kernel,stride,pad", [(1, 1, 0), (3, 1, 1), (2, 1, 0), (2, 2, 0), (3, 2, 1), (4, 2, 1)])
@pytest.mark.parametrize("channels,made", [(3, 3), (6, 1), (16, 3), (3, 16), (16, 16)])
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_lengths(op, channels, made, kernel, stride, pad, sardonyx, tmp_path):
    """A line whose length the file leaves open, in one session (vocoders)."""
    random = np.random.default_rng(13)
    weights = random.standard_normal(((made, channels) if op == "Conv" else (channels, made)) + (kernel,)).astype(np.float32)
    node = helper.make_node(op, ["x", "w"], ["y"], kernel_shape=[kernel], strides=[stride], pads=[pad] * 2)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", channels, "n"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    for number, (batch, n) in enumerate([(1, 16), (2, 19), (1, 14), (1, 17), (1, 40), (3, 9), (1, 6), (1, 4)]):
        x = random.standard_normal((batch, channels, n)).astype(np.float32)
        write_case(tmp_path / "case", model, [x], ReferenceEvaluator(model).run(None, {"x": x}), number)
    sardonyx("test", tmp_path / "case", "--atol", 1e-4)
