# SPDX-License-Identifier: Apache-2.0
"""Graphs drawn at random give what onnxruntime gives without optimisations, in one session for all lengths of its inputs, with
the same bits whatever the number of threads."""
import numpy as np
import pytest
from case_folder import write_case
from contrib_cases import Cases, ort_session
from onnx import TensorProto, helper, numpy_helper
from drawn_graphs import KINDS, DrawnGraph

pytest.importorskip("onnxruntime")
COUNT, LENGTHS = 40, 3


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_drawn_graphs(sardonyx, tmp_path, kind, block):
    cases = Cases(tmp_path)
    for seed in range(COUNT * block, COUNT * (block + 1)):
        graph = DrawnGraph(seed, kind)
        session = ort_session(graph.model)
        for number, feeds in enumerate([*graph.other_feeds(LENGTHS), graph.feeds]):
            golden = session.run(graph.outputs, feeds)
            assert all(np.isfinite(value).all() for value in golden)
            write_case(cases.folder / f"case_{seed:03d}", graph.model, feeds, dict(zip(graph.outputs, golden)), number)
    cases.run(sardonyx, rtol=0, peak=1e-4)


def case(sardonyx, folder, nodes, feeds, constants):
    """Nodes that make y."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in feeds.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    cases = Cases(folder)
    cases.add(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), feeds)
    cases.run(sardonyx)


@pytest.mark.parametrize("op", ["Abs", "Neg", "Softplus", "Erf"])
@pytest.mark.parametrize("size", [(8,), (1, 8), (6, 7)])
def test_one_channel(sardonyx, tmp_path, op, size):
    """Of a convolution that reads blocks of channels, through an operator of its own that keeps these."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 2 * len(size)), helper.make_node(op, ["c"], ["y"])]
    case(sardonyx, tmp_path, nodes, {"x": normal(1, 32, *size)}, {"w": normal(1, 32, *[3] * len(size))})


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transposed_channels(sardonyx, tmp_path, axes, extra):
    """A filter a channel, where outputs at the end see no input."""
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2] * axes, group=8, output_padding=[extra] * axes)
    case(sardonyx, tmp_path, [node], {"x": normal(1, 8, *(4, 6, 9)[:axes])}, {"w": normal(8, 1, *[3] * axes)})


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("channels,groups", [(12, 3), (20, 5), (24, 3), (40, 5)])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_channels_in_groups(sardonyx, tmp_path, axes, channels, groups, kernel):
    """Groups of half a block, of which the last block may have one."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[kernel // 2] * 2 * axes, group=groups)
    case(sardonyx, tmp_path, [node], {"x": normal(2, channels, *(5, 8, 6)[:axes])},
         {"w": normal(channels, channels // groups, *[kernel] * axes)})
