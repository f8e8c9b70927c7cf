# SPDX-License-Identifier: Apache-2.0
"""Convolutions that cut images into patches and whose results are tokens are products of what a Transpose
gathers; results are those of onnxruntime without optimisation."""
import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from case_folder import write_case  # noqa: E402

N = helper.make_node
RNG = np.random.default_rng(3)
OUTPUTS = 10


def case(sardonyx, folder, nodes, shape, constants, batch):
    ort = pytest.importorskip("onnxruntime")
    feeds = {"X": RNG.normal(size=shape).astype(np.float32)}
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("X", TensorProto.FLOAT, [batch or shape[0], *shape[1:]])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    data = write_case(folder / "case", model, feeds, session.run(["Y"], feeds))
    for threads in (1, 3):
        sardonyx("test", folder / "case", "--threads", threads, "--rtol", "1e-4", "--atol", "1e-5", "--peak", "1e-5")
    return sardonyx("profile", folder / "case/model.onnx", "--runs", "1", "--inputs", data).out


def weights(channels, kernel, bias=True):
    named = {"W": RNG.normal(0, .3, (OUTPUTS, channels, *kernel)).astype(np.float32)}
    return named | ({"B": RNG.normal(size=OUTPUTS).astype(np.float32)} if bias else {})


def conv(x, constants, kernel, **more):
    return N("Conv", [x, *(n for n in ("W", "B") if n in constants)], ["image"],
             **({"strides": kernel, "kernel_shape": kernel} | more))


FLAT = [N("Reshape", ["image", "flat"], ["rows"]), N("Transpose", ["rows"], ["tokens"], perm=[0, 2, 1])]


def to_last(rank):
    return [N("Transpose", ["image"], ["tokens"], perm=[0, *range(2, rank), 1])]


END = [N("Softmax", ["tokens"], ["Y"], axis=-1)]


@pytest.mark.parametrize("batch", [None, "N"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kernel,grid", [((4, 4), (3, 2)), ((3, 5), (2, 4)), ((8,), (5,)), ((2, 4, 3), (2, 1, 3)),
                                         ((1, 4, 4), (3, 2, 2)), ((2, 2), (7, 9))])
@pytest.mark.parametrize("result", ["flat", "channels last"])
def test_patches_of_images(sardonyx, tmp_path, result, kernel, grid, bias, batch):
    shape = (2, 3, *(k * g for k, g in zip(kernel, grid)))
    constants = weights(3, kernel, bias) | {"flat": np.int64([0, OUTPUTS, -1])}
    tokens = FLAT if result == "flat" else to_last(len(shape))
    out = case(sardonyx, tmp_path, [conv("X", constants, kernel), *tokens, *END], shape, constants, batch)
    assert "MatMul" in out and " Conv " not in out, out


@pytest.mark.parametrize("batch", [None, "N"])
@pytest.mark.parametrize("source", ["tokens", "channels last"])
@pytest.mark.parametrize("result", ["flat", "channels last"])
@pytest.mark.parametrize("kernel,grid", [((2, 2), (3, 5)), ((4, 3), (2, 2)), ((4,), (6,)), ((1, 2, 2), (2, 3, 2))])
def test_patches_of_tokens(sardonyx, tmp_path, kernel, grid, result, source, batch):
    sizes, channels = [k * g for k, g in zip(kernel, grid)], 12
    constants = weights(channels, kernel) | {"flat": np.int64([0, OUTPUTS, -1]), "apart": np.int64([0, channels, *sizes])}
    rank = len(sizes) + 2
    if source == "tokens":
        shape = (2, int(np.prod(sizes)), channels)
        before = [N("Transpose", ["X"], ["turned"], perm=[0, 2, 1]), N("Reshape", ["turned", "apart"], ["in"])]
    else:
        shape = (2, *sizes, channels)
        before = [N("Transpose", ["X"], ["in"], perm=[0, rank - 1, *range(1, rank - 1)])]
    tokens = FLAT if result == "flat" else to_last(rank)
    out = case(sardonyx, tmp_path, [*before, conv("in", constants, kernel), *tokens, *END], shape, constants, batch)
    assert "MatMul" in out and " Conv " not in out, out


@pytest.mark.parametrize("why", ["pads", "what is left over", "overlap", "groups", "dilations", "many channels",
                                 "read twice", "other turn", "no kernel to speak of"])
def test_no_patches(sardonyx, tmp_path, why):
    kernel, channels, size, more, group = (4, 4), 3, (8, 12), {}, 1
    after = to_last(4)
    if why == "pads":
        more = {"pads": [2, 2, 2, 2]}
    elif why == "what is left over":
        size = (9, 12)
    elif why == "overlap":
        more = {"strides": [2, 2]}
    elif why == "groups":
        channels, group = 4, 2
        more = {"group": 2}
    elif why == "dilations":
        more = {"dilations": [2, 1]}
    elif why == "many channels":
        channels = 24
    elif why == "read twice":
        after = [*to_last(4)[:1], N("ReduceMax", ["image"], ["most"], keepdims=0)]
    elif why == "other turn":
        after = [N("Transpose", ["image"], ["tokens"], perm=[0, 3, 2, 1])]
    elif why == "no kernel to speak of":
        kernel = (1, 2)
    constants = weights(channels // group, kernel)
    end = [N("Softmax", ["tokens"], ["p"], axis=-1), N("Add", ["p", "most"], ["Y"])] if why == "read twice" else END
    out = case(sardonyx, tmp_path, [conv("X", constants, kernel, **more), *after, *end], (1, channels, *size),
               constants, None)
    assert " Conv " in out, out
