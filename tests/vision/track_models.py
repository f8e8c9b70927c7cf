# SPDX-License-Identifier: Apache-2.0
"""Small models with the interfaces of TrackNet and InpaintNet, and frames to push through them."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEIGHT, WIDTH = 288, 512
PLANES = {"": 3, "subtract": 1, "subtract_concat": 4, "concat": 3}
LEAD = {"": 0, "subtract": 0, "subtract_concat": 0, "concat": 3}


def save(path, name, nodes, inputs, outputs, weights, metadata):
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in inputs],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in outputs],
        [numpy_helper.from_array(v if isinstance(v, np.ndarray) else np.asarray(v, np.float32), n)
         for n, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=str(value))
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def tracknet(path, seq_len, bg_mode, metadata=None, channels=None, batch="batch"):
    """Bright places: a mean of a frame's planes (less the background's for concat), blurred, squashed.

    A slow sum of all frames is added, so that a frame's heat map differs from window to window."""
    planes, lead = PLANES[bg_mode], LEAD[bg_mode]
    inputs = channels or lead + seq_len * planes
    mix = np.full((seq_len, inputs, 1, 1), 0.02 / seq_len, np.float32)
    for t in range(seq_len):
        mix[t, lead + t * planes:lead + (t + 1) * planes] += 1 / planes
    mix[:, :lead] -= 1 / max(1, lead)
    blur = np.full((seq_len, 1, 5, 5), 1 / 25, np.float32)
    nodes = [helper.make_node("Conv", ["frames", "mix"], ["grey"]),
             helper.make_node("Conv", ["grey", "blur"], ["soft"], pads=[2] * 4, group=seq_len),
             helper.make_node("Mul", ["soft", "steep"], ["scaled"]),
             helper.make_node("Add", ["scaled", "level"], ["moved"]),
             helper.make_node("Sigmoid", ["moved"], ["heat"])]
    return save(path, "tracknet", nodes, [("frames", [batch, inputs, HEIGHT, WIDTH])],
                [("heat", [batch, seq_len, HEIGHT, WIDTH])],
                {"mix": mix, "blur": blur, "steep": 6, "level": -4}, metadata or {})


def inpaintnet(path, seq_len, metadata=None, batch="batch"):
    """Gaps get the mean of what was seen, moved by an amount that depends on the place."""
    nodes = [helper.make_node("Sub", ["one", "mask"], ["seen"]),
             helper.make_node("Mul", ["coords", "seen"], ["known"]),
             helper.make_node("MatMul", ["even", "known"], ["sum"]),
             helper.make_node("MatMul", ["even", "seen"], ["count"]),
             helper.make_node("Add", ["count", "tiny"], ["divisor"]),
             helper.make_node("Div", ["sum", "divisor"], ["mean"]),
             helper.make_node("Add", ["mean", "moved"], ["filled"])]
    weights = {"one": 1, "tiny": 1e-3, "even": np.ones((seq_len, seq_len), np.float32),
               "moved": np.linspace(0, 0.1, 2 * seq_len).reshape(1, seq_len, 2).astype(np.float32)}
    return save(path, "inpaintnet", nodes, [("coords", [batch, seq_len, 2]), ("mask", [batch, seq_len, 1])],
                [("filled", [batch, seq_len, 2])], weights, metadata or {})


def rally(width, height, count, seed):
    """The background, R G B, and `count` frames, B G R, with a bright ball on a wavy line: brightest in the middle."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:height, 0:width]
    ground = np.stack([40 + 60 * xx / width, 70 + 40 * yy / height, 90 - 30 * xx / width], axis=-1)
    background = (ground + rng.integers(0, 9, ground.shape)).astype(np.uint8)
    frames = []
    for t in range(count):
        s = (t + 0.5) / count
        x, y = s * width, (0.5 + 0.35 * np.sin(7 * s)) * height
        image = background + rng.integers(0, 3, background.shape)
        image = image + np.maximum(0, 78 - 60 * np.hypot(xx - x, yy - y) / (width / 70))[:, :, None]
        frames.append(np.ascontiguousarray(image.astype(np.uint8)[:, :, ::-1]))
    return background, frames
