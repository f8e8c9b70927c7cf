# SPDX-License-Identifier: Apache-2.0
"""Pools over planes that are worked in several strips (src/ops/pool.c): rows, images and volumes with padding, steps
and dilation. Expected values come from onnxruntime without its optimisations."""
import itertools

import pytest

from test_fusions import N, f32, run_case

SHAPES = {  # lengths; kernel, strides, dilations, pads
    "row": ((9000,), ([5], [1], [1], [2, 2])),
    "row_steps": ((20011,), ([7], [3], [2], [0, 4])),
    "image": ((70, 300), ([3, 3], [1, 1], [1, 1], [1, 1, 1, 1])),
    "image_wide": ((5, 5000), ([3, 9], [2, 4], [1, 1], [2, 0, 1, 8])),
    "image_steps": ((131, 143), ([3, 2], [2, 2], [1, 1], [0, 0, 0, 0])),
    "image_apart": ((90, 90), ([6, 4], [1, 2], [2, 3], [3, 0, 2, 3])),
    "image_short": ((400, 7), ([1, 7], [4, 1], [1, 1], [0, 3, 0, 3])),
    "volume": ((9, 40, 33), ([3, 2, 5], [1, 2, 1], [1, 1, 1], [1, 0, 2, 1, 1, 2])),
    "volume_steps": ((12, 30, 50), ([2, 3, 3], [2, 1, 3], [2, 1, 1], [0, 1, 1, 0, 1, 1])),
}
KINDS = {"max": ("MaxPool", {}), "mean": ("AveragePool", {"count_include_pad": 0}),
         "mean_padded": ("AveragePool", {"count_include_pad": 1}), "lp1": ("LpPool", {"p": 1}), "lp2": ("LpPool", {"p": 2}),
         "lp3": ("LpPool", {"p": 3}), "max_u8": ("MaxPool", {}), "max_s8": ("MaxPool", {})}


@pytest.mark.parametrize("shape, kind", itertools.product(SHAPES, KINDS))
def test_pools(sardonyx, tmp_path, shape, kind):
    lengths, (kernel, strides, dilations, pads) = SHAPES[shape]
    op, more = KINDS[kind]
    given = dict(kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads, ceil_mode=1 - len(lengths) % 2)
    x = f32(2, 3, *lengths, lo=0 if kind == "max_u8" else -100, hi=100)
    if kind in ("max_u8", "max_s8"):
        nodes = [N("Cast", ["x"], ["i"], to=2 if kind == "max_u8" else 3), N(op, ["i"], ["p"], **given),
                 N("Cast", ["p"], ["Y"], to=1)]
    else:
        nodes = [N(op, ["x"], ["Y"], **given, **more)]
    run_case(sardonyx, tmp_path, nodes, {"x": x}, {}, opset=22)
