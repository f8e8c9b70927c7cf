# SPDX-License-Identifier: Apache-2.0
"""NonMaxSuppression of many classes and images, whose limit the file tells (each class is a part then) or a caller, with
more boxes kept than one strip has. Expected values come from ONNX Runtime."""
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from case_folder import write_case


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("count, limit", [(1, 5), (40, 0), (40, 3), (90, 1000), (3000, 100), (3000, 2000)])
@pytest.mark.parametrize("images, classes", [(1, 1), (1, 7), (3, 2)])
def test_suppressed(sardonyx, tmp_path, images, classes, count, limit, known):
    ort = pytest.importorskip("onnxruntime")
    random = np.random.default_rng(count + limit + classes)
    corner = random.uniform(0, 10 * count ** 0.5, (images, count, 2))
    feeds = {"boxes": np.concatenate([corner, corner + random.uniform(1, 12, corner.shape)], 2).astype(np.float32),
             "scores": random.random((images, classes, count), np.float32)}
    feeds["scores"][..., 0] = 0.9
    constants = {"iou": np.array([0.4], np.float32), "score": np.array([0.1], np.float32)}
    (constants if known else feeds)["limit"] = np.array([limit], np.int64)
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "limit", "iou", "score"], ["Y"])
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("Y", TensorProto.INT64, [None, 3])],
                              [numpy_helper.from_array(a, n) for n, a in constants.items()])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, feeds)
    assert limit == 0 or len(expected[0]) > 0
    write_case(tmp_path / "case", model, feeds, expected)
    for threads in (1, 2, 7):
        sardonyx("test", tmp_path / "case", "--threads", threads, "--rtol", 0, "--atol", 0)
