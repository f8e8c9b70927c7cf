# SPDX-License-Identifier: Apache-2.0
"""Convolutions that do the work of the one before them (src/run/absorb.c): right by the ONNX reference
evaluator, the same bits for any number of threads, and apart where somebody else reads what lies
between them."""
import json

import pytest

from test_chains import I64, Chain, digests, save

SIZE, BATCH = 56, 12  # images that together no second cache holds, in rows of which each holds some


def conv(g, x, channels, kernel=1, stride=1, group=1, inner=None, act=True):
    inner = inner or g.channels[x]
    w = g.weight(channels, inner // group, kernel, kernel, scale=0.3)
    y = g.op("Conv", x, w, g.weight(channels), pads=[kernel // 2] * 4, strides=[stride] * 2, group=group)
    y = g.op("Relu", y) if act else y
    g.channels[y] = channels
    return y


def start(name):
    g = Chain(name)
    x = g.input(BATCH, 3, SIZE, SIZE)
    g.channels = {x: 3}
    return g, conv(g, x, 8)


def bands():
    """Graphs, their outputs, how many convolutions each of their steps in bands does."""
    for kernel, stride in ((3, 1), (3, 2), (5, 2)):
        g, x = start(f"bands_{kernel}_{stride}")
        y = conv(g, conv(g, x, 40), 40, kernel, stride, group=40)
        yield g, [conv(g, y, 8)], [3]
    g = Chain("bands_first")
    x = g.input(BATCH, 3, 2 * SIZE, 2 * SIZE)
    g.channels = {x: 3}
    yield g, [conv(g, conv(g, x, 34, 3, 2), 34, 3, group=34)], [2]
    g, x = start("bands_without_direct")
    y = conv(g, g.op("Add", conv(g, x, 40), g.input(BATCH, 40, SIZE, SIZE)), 40, 3, group=40, inner=40)
    yield g, [conv(g, y, 8)], [2]
    g, x = start("bands_with_sum")  # of the bottleneck's input, in memory of its own
    y = conv(g, conv(g, conv(g, x, 40), 40, 3, group=40), 8, act=False)
    z = g.op("Add", y, x)
    g.channels[z] = 8
    yield g, [conv(g, z, 8)], [3]


def pools():
    g, x = start("bands_pool")
    y = g.op("MaxPool", conv(g, x, 40), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    yield g, [conv(g, y, 8, 3, inner=40)], [2]
    g, x = start("bands_pool_read_twice")
    y = g.op("MaxPool", conv(g, x, 40), kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    yield g, [conv(g, y, 8, inner=40), conv(g, y, 9, 3, inner=40)], [2]
    g, x = start("bands_pool_and_pointwise")
    y = g.op("MaxPool", conv(g, x, 40), kernel_shape=[2, 3], strides=[2, 1], dilations=[1, 2])
    yield g, [conv(g, y, 8, inner=40)], [3]


def apart():
    g, x = start("apart_over_its_image")  # the sum must not be written where rows are still to be read
    x = conv(g, x, 40)
    s = g.op("Add", conv(g, conv(g, x, 40), 40, 3, group=40, act=False), x)
    g.channels[s] = 40
    yield g, [conv(g, s, 8)], []
    g, x = start("apart_average")
    y = g.op("AveragePool", conv(g, x, 40), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    yield g, [conv(g, y, 8, inner=40)], []
    g, x = start("apart_two_readers")
    y = conv(g, x, 40)
    z = g.op("Add", conv(g, y, 40, 3, group=40), conv(g, y, 40))
    g.channels[z] = 40
    yield g, [conv(g, z, 8)], []
    g, x = start("apart_result")
    y = conv(g, x, 40)
    z = conv(g, y, 40, 3, group=40)
    yield g, [conv(g, z, 8), y, z], []
    g, x = start("apart_read_later")
    y = conv(g, x, 40)
    z = conv(g, y, 40, 3, group=40)
    yield g, [conv(g, z, 8), *(g.op("ReduceMean", v, g.constant([1, 2, 3], I64)) for v in (y, z))], []


@pytest.mark.parametrize("g, outputs, joined", [pytest.param(*p, id=p[0].name) for p in [*bands(), *pools(), *apart()]])
def test_bands(sardonyx, tmp_path, g, outputs, joined):
    values = g.values()
    made = g.model(g.nodes, outputs, list(g.inputs), g.weights, values)
    save(tmp_path / g.name, made, list(g.inputs), outputs, values)
    runs = [digests(sardonyx, tmp_path / g.name, "--threads", n) for n in (1, 2, 7)]
    assert runs[0] == runs[1] == runs[2]
    profile = sardonyx("profile", tmp_path / g.name / "model.onnx", "--runs", 1, "--top", 0, "--json", "--cpu",
                       "generic").out  # not with tile units
    kernels = [n["kernel"] for n in json.loads(profile.strip().split("\n")[-1])["nodes"]]
    assert [int(k[-1]) for k in kernels if k.startswith("conv_block_bands_")] == joined, kernels
