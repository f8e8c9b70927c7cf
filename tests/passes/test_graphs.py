# SPDX-License-Identifier: Apache-2.0
"""Small graphs that the passes and the planner change: fused epilogues, joined and split memory,
blocked channels, attention, and random ones. The expected outputs come from the ONNX reference evaluator."""
import itertools

import numpy as np
import pytest

from graphs import ACTIVATIONS, Graph, activate
from random_graphs import random_graphs
from small_graphs import small_graphs


def product(g, kind, x, n, k, m):
    """A product m x n of one of the operators that have an epilogue."""
    if kind == "MatMul":
        return g.op("MatMul", x, g.weight(k, n))
    if kind == "MatMulBias":
        return g.op("Add", g.op("MatMul", x, g.weight(k, n)), g.weight(n))
    c = {"Gemm": (), "GemmRow": (n,), "GemmFull": (m, n), "GemmColumn": (m, 1), "GemmOne": (1,)}[kind]
    more = [g.weight(*c)] if c else []
    return g.op("Gemm", x, g.weight(n, k), *more, transB=1, beta=0.5 if kind == "GemmOne" else 1.0)


def epilogues(folder):
    kinds = ("MatMul", "MatMulBias", "Gemm", "GemmRow", "GemmFull", "GemmColumn", "GemmOne")
    rest = itertools.product(kinds, ("none", "input", "product"), (1, 5), (None, "Relu", "Silu"))
    for kind, residual, m, activation in rest:
        g = Graph(f"epilogue_{kind}_{residual}_{m}_{activation}")
        x = g.input(m, 24)
        y = product(g, kind, x, 20, 24, m)
        if residual == "input":
            y = g.op("Add", y, g.input(m, 20))
        elif residual == "product":
            y = g.op("Add", y, product(g, kind, x, 20, 24, m))
        g.save(folder, [g.op("Mul", activate(g, y, activation), g.constant(np.float32(0.5)))])
    for residual, activation in itertools.product((False, True), ACTIVATIONS):
        g = Graph(f"epilogue_conv_{residual}_{activation}")
        x = g.input(1, 12, 9, 11)
        y = g.conv(x, 12, 20)
        if residual:
            y = g.op("Add", g.conv(x, 12, 20, kernel=1), y)
        g.save(folder, [g.conv(activate(g, y, activation), 20, 7)])


def memory(folder):
    """Concat, Split, Slice, Gather whose pieces lie in one another."""
    for batch, channels in itertools.product((1, 2), (8, 16, 12)):
        tag = f"{batch}_{channels}"
        g = Graph(f"memory_c2f_{tag}")
        y = g.conv(g.input(batch, 8, 10, 6), 8, 2 * channels)
        a, b = g.op("Split", y, outputs=2, axis=1)
        m = g.op("Relu", g.conv(b, channels, channels))
        z = g.op("Add", b, g.conv(m, channels, channels))
        joined = g.op("Concat", a, b, z, m, axis=1)
        g.save(folder, [g.conv(joined, 4 * channels, 9, kernel=1), g.op("Sigmoid", b)])

        g = Graph(f"memory_dense_{tag}")
        parts = [g.conv(g.input(batch, 8, 7, 7), 8, channels)]
        for _ in range(3):
            whole = g.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
            parts.append(g.conv(g.op("Relu", whole), len(parts) * channels, channels))
        g.save(folder, [g.op("Concat", *parts, axis=1)])

        g = Graph(f"memory_twice_{tag}")
        y = g.conv(g.input(batch, 8, 7, 7), 8, channels)
        pair = g.op("Concat", y, y, axis=1)
        g.save(folder, [g.op("Concat", pair, g.op("Neg", y), pair, axis=1), g.op("Abs", y)])

        g = Graph(f"memory_shuffle_{tag}")
        y = g.conv(g.input(batch, 8, 6, 6), 8, channels)
        shape = g.constant(np.array([batch, 2, channels // 2, 6, 6]))
        y = g.op("Transpose", g.op("Reshape", y, shape), perm=[0, 2, 1, 3, 4])
        y = g.op("Reshape", y, g.constant(np.array([batch, channels, 6, 6])))
        half = [g.constant(np.array([v])) for v in (channels // 2, channels, 1)]
        g.save(folder, [g.conv(g.op("Slice", y, *half), channels // 2, 8)])

    for channels, groups, first in ((12, 2, 6), (24, 3, 10), (40, 4, 20), (72, 2, 36), (20, 20, 10)):
        g = Graph(f"memory_channels_{channels}_{groups}")
        y = g.op("Concat", *[g.conv(g.input(2, 4, 6, 5), 4, c) for c in (first, channels - first)], axis=1)
        z = g.op("Reshape", y, g.constant(np.array([2, groups, channels // groups, 6, 5])))
        z = g.op("Reshape", g.op("Transpose", z, perm=[0, 2, 1, 3, 4]), g.constant(np.array([2, channels, 6, 5])))
        sizes = g.constant(np.array([first, channels - first]))
        a, b = g.op("Split", z, sizes, outputs=2, axis=1)
        c, d = g.op("Split", y, g.constant(np.array([channels - first - 1, first + 1])), outputs=2, axis=1)
        some = g.op("Slice", y, *[g.constant(np.array([v])) for v in (3, channels - 1, 1)])
        picked = g.op("Gather", y, g.constant(g.random.integers(-channels, channels, 30)), axis=1)
        g.save(folder, [g.conv(a, first, 8), g.op("Relu", b), g.conv(c, channels - first - 1, 9),
                        g.op("Exp", d), g.conv(some, channels - 4, 7), g.conv(picked, 30, 5)])

    g = Graph("memory_gather")
    y = g.op("Relu", g.input(3, 4, 5))
    pieces = [g.op("Gather", y, g.constant(np.int64(i)), axis=0) for i in (0, 1, -1)]
    pieces[0] = g.op("Exp", pieces[0])
    g.save(folder, [g.op("MatMul", g.op("Add", *pieces[:2]), g.op("Transpose", pieces[2])), pieces[2]])


def blocked(folder):
    """Convolutions with all that may stand between them."""
    for batch, channels in itertools.product((1, 2), (8, 12, 24)):
        tag = f"{batch}_{channels}"
        g = Graph(f"blocked_residual_{tag}")
        x = g.conv(g.input(batch, 3, 20, 18), 3, channels, stride=2)
        y = g.op("Relu", g.op("Add", x, g.conv(g.op("Relu", x), channels, channels)))
        y = g.op("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        y = g.op("AveragePool", g.conv(y, channels, channels, group=channels), kernel_shape=[2, 2])
        y = g.op("GlobalAveragePool", g.conv(y, channels, channels, kernel=1))
        g.save(folder, [g.op("Gemm", g.op("Flatten", y), g.weight(channels, 5))])

        g = Graph(f"blocked_excite_{tag}")
        x = g.conv(g.input(batch, 4, 9, 9), 4, channels)
        s = g.op("ReduceMean", x, axes=[2, 3], keepdims=1)
        s = g.op("Relu", g.conv(s, channels, 4, kernel=1))
        s = g.op("Sigmoid", g.conv(s, 4, channels, kernel=1))
        y = g.op("Mul", x, s)
        y = g.op("Div", g.op("Add", y, g.weight(channels, 1, 1)), g.constant(np.float32(1.5)))
        y = g.op("Mul", y, g.op("Sigmoid", g.op("ReduceMean", y, axes=[1], keepdims=1)))
        g.save(folder, [g.conv(y, channels, 6, kernel=5), g.op("Transpose", y, perm=[0, 2, 3, 1])])

        g = Graph(f"blocked_resize_{tag}")
        x = g.conv(g.input(batch, 4, 6, 5), 4, channels)
        empty = ""
        up = g.op("Resize", x, empty, g.constant(np.array([1, 1, 2, 2], np.float32)),
                  mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        lin = g.op("Resize", x, empty, g.constant(np.array([1, 1, 2, 2], np.float32)),
                   mode="linear", coordinate_transformation_mode="half_pixel")
        y = g.op("Concat", up, lin, axis=1)
        y = g.op("PRelu", g.conv(y, 2 * channels, channels), g.weight(channels, 1, 1))
        n = [g.weight(channels) for _ in range(3)]
        y = g.op("BatchNormalization", g.op("Exp", y), *n, g.constant(np.full(channels, 2, np.float32)))
        y = g.op("Pad", y, g.constant(np.array([0, 0, 1, 2, 0, 0, 0, 1])))
        y = g.op("InstanceNormalization", y, g.weight(channels), g.weight(channels))
        g.save(folder, [g.op("Softmax", g.conv(y, channels, channels, kernel=1), axis=1)])

        g = Graph(f"blocked_views_{tag}")
        x = g.conv(g.input(batch, 4, 6, 6), 4, channels)
        flat = g.op("Reshape", x, g.constant(np.array([batch, channels, 36])))
        a = g.op("MatMul", g.op("Transpose", flat, perm=[0, 2, 1]), g.weight(channels, channels))
        y = g.op("Reshape", g.op("Transpose", a, perm=[0, 2, 1]),
                 g.constant(np.array([batch, channels, 6, 6])))
        y = g.op("Add", g.conv(y, channels, channels), x)
        g.save(folder, [y, g.conv(y, channels, channels, kernel=2, pad=0, stride=2)])


def tokens(folder):
    """Activations behind what only moves the result of a convolution or product."""
    for channels, activation in itertools.product((12, 32), ("Relu", "Silu", "Clip")):
        g = Graph(f"tokens_{channels}_{activation}")
        y = g.conv(g.input(2, 4, 6, 5), 4, channels)
        y = g.conv(y, channels, channels, group=channels)
        flat = g.op("Reshape", y, g.constant(np.array([2, channels, 30])))
        z = activate(g, g.op("Transpose", flat, perm=[0, 2, 1]), activation)
        z = g.op("MatMul", z, g.weight(channels, 9))
        z = g.op("Transpose", g.op("Reshape", z, g.constant(np.array([2, 5, 6, 9]))), perm=[0, 3, 1, 2])
        g.save(folder, [activate(g, z, activation)])
    g = Graph("tokens_twice")  # the moved values are read as they are too
    y = g.op("Reshape", g.conv(g.input(1, 4, 6, 5), 4, 8), g.constant(np.array([1, 8, 30])))
    g.save(folder, [g.op("Relu", g.op("Transpose", y, perm=[0, 2, 1])), g.op("Exp", y)])


def scores(g, q, k, scale):
    return g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])),
                g.constant(np.float32(scale)))


def attentions(folder):
    """Keys that fill less than a block and several, masks that hide whole blocks, rising scores."""
    for rows, keys, mask in ((5, 40, None), (30, 384, None), (150, 790, "hidden"), (301, 900, "rising"),
                             (3, 790, "hidden"), (31, 790, "nothing")):
        g = Graph(f"attention_{rows}_{keys}_{mask}")
        q, k, v = g.input(2, 3, rows, 24), g.input(2, 3, keys, 24), g.input(2, 3, keys, 20)
        s = scores(g, q, k, 0.2)
        if mask:
            m = g.input(2, 1, rows, keys)
            if mask == "rising":
                g.inputs[m] += np.linspace(-40, 40, keys, dtype=np.float32)
            else:
                g.inputs[m][:, :, ::2, :400] = -np.inf
                g.inputs[m][0, :, 1::2, 300:] = -np.inf
            if mask == "nothing":
                g.inputs[m][1, :, 7] = -np.inf
            s = g.op("Add", s, m)
        g.save(folder, [g.op("MatMul", g.op("Softmax", s, axis=-1), v)])
    for batch, high, wide, key_high, key_wide in ((2, 4, 5, 14, 14), (3, 6, 7, 20, 32), (1, 1, 2, 3, 5)):
        g = Graph(f"attention_parts_{batch}_{key_high}_{key_wide}")
        rows, keys = high * wide, key_high * key_wide
        q, k, v = g.input(batch, rows, 16), g.input(batch, keys, 16), g.input(batch, keys, 16)
        outer, inner = g.input(batch, high, wide, key_high, 1), g.input(batch, high, wide, 1, key_wide)
        s = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1]))
        s = g.op("Reshape", s, g.constant(np.array([batch, high, wide, key_high, key_wide])))
        s = g.op("Add", g.op("Add", s, outer), inner)
        s = g.op("Reshape", s, g.constant(np.array([batch, rows, keys])))
        g.save(folder, [g.op("MatMul", g.op("Softmax", s, axis=-1), v)])


def padded(folder):
    """Pads before convolutions and pools: those that these can have as their own, and others."""
    for number, (pads, value, own) in enumerate((((1, 0, 2, 1), 0, 0), ((0, 0, 1, 1), 0, 1), ((1, 1, 1, 1), 0.5, 0),
                                                 ((2, 1, 1, 0), 0, 1), ((1, 0, 2, 1), -np.inf, 0))):
        g = Graph(f"padded_{number}")
        x = g.conv(g.input(2, 4, 9, 8), 4, 20)
        sides = g.constant(np.array([0, 0, *pads[:2], 0, 0, *pads[2:]]))
        y = g.op("Pad", x, sides, g.constant(np.float32(value)))
        pooled = [g.op("MaxPool", y, kernel_shape=[3, 2], strides=[2, 2], pads=[own] * 4)]
        if np.isfinite(value):
            y = g.op("Pad", x, sides, g.constant(np.float32(value))) if number % 2 else y
            pooled.append(g.op("AveragePool", y, kernel_shape=[3, 2], pads=[own] * 4))
            pooled.append(g.op("AveragePool", y, kernel_shape=[2, 2], strides=[2, 1], pads=[own] * 4,
                               count_include_pad=1))
            pooled.append(g.op("AveragePool", y, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1))
            pooled.append(g.conv(y, 20, 20, stride=2, group=20, pad=own))
            pooled.append(g.conv(y, 20, 6, pad=own))
            pooled.append(g.op("Conv", y, g.weight(5, 20, 3, 3), auto_pad="VALID"))
            pooled.append(g.op("Conv", y, g.weight(5, 20, 3, 3), auto_pad="SAME_UPPER", strides=[2, 2]))
        g.save(folder, pooled)
    g = Graph("padded_line")
    y = g.op("Pad", g.input(1, 3, 30), g.constant(np.array([0, 0, 4, 0, 0, 0])))
    g.save(folder, [g.op("Conv", y, g.weight(8, 3, 5), strides=[2])])
    g = Graph("padded_channels")
    y = g.op("Pad", g.input(1, 3, 6, 6), g.constant(np.array([0, 1, 1, 1, 0, 0, 1, 1])))
    g.save(folder, [g.conv(y, 4, 8)])


def affine(folder):
    """What scales and shifts the channels of a product, and what only looks like it."""
    def constant(g, kind, channels, rank):
        shape = {"scalar": (), "one": (1,) * rank, "channels": (channels,) + (1,) * (rank - 2),
                 "batch": (1, channels) + (1,) * (rank - 2)}[kind]
        return g.constant((g.random.uniform(0.5, 2, shape)).astype(np.float32))

    makers = {"Conv": lambda g, x: g.conv(x, 8, 12, group=4), "Plain": lambda g, x: g.conv(x, 8, 12, bias=False),
              "ConvTranspose": lambda g, x: g.op("ConvTranspose", x, g.weight(8, 12, 3, 2), g.weight(12),
                                                 strides=[2, 2]),
              "Upsample": lambda g, x: g.op("ConvTranspose", x, g.weight(8, 12, 4, 4), strides=[2, 2],
                                            pads=[1, 1, 1, 1])}
    kinds = itertools.product(makers, ("scalar", "one", "channels", "batch"))
    for number, (maker, kind) in enumerate(kinds):
        g = Graph(f"affine_{maker}_{kind}")
        y = makers[maker](g, g.input(2, 8, 6, 5))
        y = g.op("Mul", y, constant(g, kind, 12, 4)) if number % 2 else g.op("Mul", constant(g, kind, 12, 4), y)
        y = g.op("Sub", y, constant(g, kind, 12, 4))
        y = g.op("Div", y, constant(g, kind, 12, 4))
        y = g.op("Add", constant(g, kind, 12, 4), y)
        n = [g.weight(12) for _ in range(3)]
        y = g.op("BatchNormalization", y, *n, g.constant(np.full(12, 2, np.float32)))
        last = g.op("Relu", y)
        g.save(folder, [last] if number % 3 else [last, g.op("Sub", constant(g, kind, 12, 4), y)])
    for trans, kind in itertools.product((0, 1), ("scalar", "one", "channels", "batch")):
        g = Graph(f"affine_Gemm_{trans}_{kind}")
        y = g.op("Gemm", g.input(3, 10), g.weight(*((12, 10) if trans else (10, 12))), g.weight(12), transB=trans,
                 alpha=0.5)
        y = g.op("Add", g.op("Mul", y, constant(g, kind, 12, 2)), constant(g, kind, 12, 2))
        n = [g.weight(12) for _ in range(3)]
        g.save(folder, [g.op("BatchNormalization", y, *n, g.constant(np.full(12, 2, np.float32)))])
    g = Graph("affine_rows")  # as long as the channels, but of another axis
    y = g.conv(g.input(1, 4, 6, 12), 4, 12)
    g.save(folder, [g.op("Mul", y, g.weight(12)), g.op("Add", g.conv(y, 12, 12), g.weight(12))])
    g = Graph("affine_zero")
    y = g.conv(g.input(1, 4, 6, 5), 4, 8)
    g.save(folder, [g.op("Mul", y, g.constant(np.zeros((8, 1, 1), np.float32)))])


def normalised_before(folder):
    """A BatchNormalization behind an activation, of what a product reads. The first forms take it into their weights."""
    forms = {"conv": {}, "groups": {"group": 4}, "depthwise": {"group": 12}, "twice": {}, "reflect": {"mode": "reflect"},
             "edge": {"mode": "edge", "group": 3}, "gemm": {"transB": 1, "alpha": 0.5}, "gemm_plain": {"transB": 0},
             "padded": {"pads": [1] * 4}, "same": {"auto_pad": "SAME_UPPER"}, "read_twice": {}, "zeros": {"mode": "constant"},
             "transposed": {}, "gemm_turned": {"transA": 1}}
    for form, attributes in forms.items():
        g = Graph(f"before_{form}")
        is_gemm, mode = form.startswith("gemm"), attributes.pop("mode", None)
        x = g.op("Relu", g.input(*((10, 12) if is_gemm else (2, 12, 7, 6))))
        norm = [g.constant(g.random.uniform(0.5, 2, 12).astype(np.float32)) for _ in range(4)]
        x = y = g.op("BatchNormalization", x, *norm)
        if mode:
            y = g.op("Pad", y, g.constant(np.array([0, 0, 1, 2, 0, 0, 2, 1])), mode=mode)
        if is_gemm:
            w = g.weight(*{"gemm": (9, 12), "gemm_plain": (12, 9), "gemm_turned": (10, 9)}[form])
            y = g.op("Gemm", y, w, g.weight(9), **attributes)
        elif form == "transposed":
            y = g.op("ConvTranspose", y, g.weight(12, 9, 3, 2), strides=[2, 2])
        else:
            y = g.op("Conv", y, g.weight(24, 12 // attributes.get("group", 1), 3, 2), *([g.weight(24)] if mode else []),
                     **attributes)
        if form == "twice":
            y = g.op("BatchNormalization", y, *(g.constant(g.random.uniform(0.5, 2, 24).astype(np.float32))
                                                for _ in range(4)))
        g.save(folder, [y, x] if form == "read_twice" else [y])


def transposed(folder):
    """Transposed convolutions in their layouts: phases that are alike and others, kernels that leave outputs
    without a tap, one to three axes, channels that fill no block, activations in the store."""
    cases = [(2, 2, 0, 0, 2), (4, 2, 1, 0, 2), (3, 2, 1, 1, 2), (5, 3, 2, 2, 2), (2, 3, 0, 0, 2), (3, 1, 1, 0, 2),
             (6, 2, 2, 0, 2), (16, 8, 4, 0, 1), (2, 2, 0, 0, 3), (3, 2, 1, 1, 3)]
    for (kernel, stride, pad, more, axes), channels in itertools.product(cases, (5, 12, 32)):
        g = Graph(f"transposed_{kernel}_{stride}_{pad}_{axes}_{channels}")
        y = g.op("Relu", g.input(2, channels, *(6, 5, 4)[:axes]))
        operands = [g.weight(channels, channels + 8, *[kernel] * axes)]
        operands += [g.weight(channels + 8)] if channels != 12 else []
        y = g.op("ConvTranspose", y, *operands, strides=[stride] * axes, pads=[pad] * 2 * axes,
                 output_padding=[more] * axes)
        activation = ACTIVATIONS[(kernel + channels) % len(ACTIVATIONS)]
        last = activate(g, y, activation)
        g.save(folder, [last, g.op("MaxPool", last, kernel_shape=[2] * axes)])


def norms(folder):
    """Norms of channels and of groups of them, as the operator and as exporters spell it, between convolutions."""
    for channels, groups, axes in ((12, 1, 2), (24, 2, 2), (40, 5, 2), (36, 3, 2), (20, 20, 2), (24, 1, 1), (16, 4, 3)):
        g = Graph(f"norms_{channels}_{groups}_{axes}")
        size = (9, 7, 5)[:axes]
        weights = [g.weight(channels, 4, *[1] * axes), g.weight(6, channels, *[1] * axes)]
        y = g.op("Conv", g.input(2, 4, *size), weights[0], g.weight(channels))
        shape = [g.constant(np.array(v)) for v in ((0, groups, -1), (2, channels, *size))]
        z = g.op("InstanceNormalization", g.op("Reshape", y, shape[0]), g.constant(np.ones(groups, np.float32)),
                 g.constant(np.zeros(groups, np.float32)), epsilon=0.01)
        scale, bias = (g.weight(*((1, channels) if k == 0 else (channels,)), *[1] * axes) for k in range(2))
        z = g.op("Reshape", z, shape[1])
        z = g.op("Mul", scale, z) if groups % 2 else g.op("Mul", z, scale)
        z = g.op("Add", z, bias)
        each = g.op("InstanceNormalization", y, g.weight(channels), g.weight(channels))
        g.save(folder, [g.op("Conv", z, weights[1]), g.op("Conv", each, g.weight(8, channels, *[1] * axes)),
                        g.op("Relu", z)])
    g = Graph("norms_other")  # scales of the groups themselves, and sums that are no norm of groups
    y = g.conv(g.input(1, 4, 6, 6), 4, 12)
    z = g.op("InstanceNormalization", g.op("Reshape", y, g.constant(np.array([1, 3, 144]))), g.weight(3), g.weight(3))
    z = g.op("Reshape", z, g.constant(np.array([1, 12, 6, 6])))
    g.save(folder, [g.op("Add", g.op("Mul", z, g.weight(12, 1, 1)), g.weight(12, 1, 1))])


def resampled(folder):
    """Convolutions of 1 x 1 beside what enlarges or shrinks an image: alone, of parts of a Concat, and what must stay."""
    def enlarge(g, x, channels, size, how):
        scales, sizes = g.constant(np.array([1, 1, 2, 3], np.float32)), g.constant(np.array([2, channels, *size]))
        operands = ["", scales] if how != "sizes" else ["", "", sizes]
        modes = {"nearest": dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
                 "linear": dict(mode="linear", coordinate_transformation_mode="half_pixel"),
                 "sizes": dict(mode="linear", coordinate_transformation_mode="align_corners")}
        return g.op("Resize", x, *operands, **modes[how])

    for how, out, after in itertools.product(("nearest", "linear", "sizes"), (7, 48), (None, "Relu")):
        g = Graph(f"resampled_{how}_{out}_{after}")
        y = enlarge(g, g.conv(g.input(2, 4, 4, 5), 4, 48), 48, (8, 15), how)
        g.save(folder, [activate(g, g.conv(y, 48, out, kernel=1), after)])
    hows = ("nearest", "linear", "sizes")
    for parts in ("E", "EE", "ER", "RE", "RER", "EREE", "RERER"):
        g = Graph(f"resampled_parts_{parts}")
        widths, values = [40 + 4 * i for i in range(len(parts))], []
        for i, (part, width) in enumerate(zip(parts, widths)):
            size = (4, 5) if part == "E" else (8, 15)
            y = g.conv(g.input(2, 4, *size), 4, width)
            values.append(enlarge(g, y, width, (8, 15), hows[i % 3]) if part == "E" else y)
        y = g.conv(g.op("Concat", *values, axis=1), sum(widths), 32, kernel=1, bias=parts != "RER")
        g.save(folder, [g.op("Relu", y) if len(parts) % 2 else y])
    g = Graph("resampled_line")
    y = g.op("Resize", g.input(1, 64, 9), "", g.constant(np.array([1, 1, 3], np.float32)), mode="linear")
    g.save(folder, [g.op("Conv", y, g.weight(8, 64, 1), g.weight(8))])
    g = Graph("resampled_twice")  # the enlarged image is read by others too, or has borders of zeros, or strides
    x = g.conv(g.input(2, 4, 4, 5), 4, 48)
    y, z = enlarge(g, x, 48, (8, 15), "linear"), enlarge(g, x, 48, (8, 15), "nearest")
    last = [g.conv(y, 48, 8, kernel=1), g.op("Exp", y), g.conv(z, 48, 8, kernel=1, pad=1)]
    last.append(g.conv(enlarge(g, x, 48, (8, 15), "sizes"), 48, 8, kernel=1, stride=2))
    g.save(folder, last + [g.conv(enlarge(g, x, 48, (8, 15), "linear"), 48, 8, kernel=1, group=4)])
    for number, more in enumerate((dict(), dict(pads=[1, 1, 0, 1]), dict(pads=[1, 1, 1, 1], count_include_pad=1),
                                   dict(ceil_mode=1), dict(count_include_pad=1), dict(auto_pad="SAME_UPPER"))):
        g = Graph(f"resampled_average_{number}")
        y = g.conv(g.op("Relu", g.conv(g.input(2, 4, 9, 11), 4, 120)), 120, 100, kernel=1, bias=number != 3)
        y = g.op("AveragePool", y, kernel_shape=[2, 3], strides=[2, 2], **more)
        g.save(folder, [g.conv(y, 100, 6)])
    g = Graph("resampled_same")  # sizes that the image has: nothing happens; half a pixel less does
    x = g.conv(g.input(2, 4, 8, 15), 4, 12)
    sizes = g.constant(np.array([2, 12, 8, 15]))
    y = g.op("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")
    z = g.op("Resize", x, "", "", sizes, mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn")
    g.save(folder, [g.conv(y, 12, 5), g.conv(z, 12, 5)])


def pixels_of_tokens(folder):
    """Products of tokens around convolutions of images: feed-forward layers with a depthwise convolution, and
    decoders that mix channels twice."""
    for batch, wide, narrow, residual, activation in itertools.product((1, 2), (48, 40), (12, 30), (0, 1), ("Gelu", None)):
        g = Graph(f"tokens_image_{batch}_{wide}_{narrow}_{residual}_{activation}")
        x = g.op("Tanh", g.input(batch, 30, narrow))
        y = g.op("MatMul", x, g.weight(narrow, wide))
        y = g.op("Add", g.weight(wide), y) if batch == 1 else g.op("Add", y, g.weight(wide))
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1]), g.constant(np.array([batch, wide, 5, 6])))
        y = g.conv(y, wide, wide, group=wide)
        y = g.op("Transpose", g.op("Reshape", y, g.constant(np.array([batch, wide, 30]))), perm=[0, 2, 1])
        y = g.op("MatMul", activate(g, y, activation), g.weight(wide, narrow))
        y = g.op("Add", y, g.weight(narrow)) if narrow == 12 else y
        g.save(folder, [g.op("Add", x, y) if residual else y])
    for batch, heads, lines in itertools.product((1, 2), (4, 12), ((7, 9), (3, 4, 5))):
        g = Graph(f"tokens_heads_{batch}_{heads}_{len(lines)}")  # attention whose scores are mixed across heads
        axes = list(range(2, 2 + len(lines)))
        x = g.op("Softmax", g.input(batch, heads, *lines))
        y = g.op("MatMul", g.op("Transpose", x, perm=[0, *axes, 1]), g.weight(heads, 6))
        y = g.op("Add", g.weight(6), y) if batch == 1 else y
        back = [0, len(lines) + 1, *(axis - 1 for axis in axes)]
        other = [back[0], back[1], *back[:1:-1]]
        g.save(folder, [g.op("Softmax", g.op("Transpose", y, perm=back)) if heads == 4 else
                        g.op("Softmax", g.op("Transpose", y, perm=other))])
    for number, shape in enumerate(([2, 40, 5, 6], [2, -1, 5, 6], [0, 40, 5, -1])):
        g = Graph(f"tokens_decoder_{number}")
        x = g.conv(g.input(2, 4, 5, 6), 4, 24)
        y = g.op("Transpose", g.op("Reshape", x, g.constant(np.array([2, 24, 30]))), perm=[0, 2, 1])
        y = g.op("Add", g.op("MatMul", y, g.weight(24, 40)), g.weight(40))
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1]), g.constant(np.array(shape)))
        y = g.conv(y, 40, 36, kernel=1, bias=number != 1)
        g.save(folder, [g.op("Relu", y), g.conv(g.conv(x, 24, 30, kernel=1), 30, 28, kernel=1)])


    g = Graph("tokens_images_mixed")  # the Reshape takes the halves of lines for images
    y = g.op("Conv", g.input(2, 24, 30), g.weight(40, 24, 1), g.weight(40))
    g.save(folder, [g.conv(g.op("Reshape", y, g.constant(np.array([4, 40, 3, 5]))), 40, 36, kernel=1)])


def one_token(folder):
    """Of all tokens one is read: after norms, products and residuals, and where others are read too."""
    for index, steps, shape in itertools.product((0, 3, -1), (1, 2), ((), (1,))):
        g = Graph(f"token_{index}_{steps}_{len(shape)}")
        x = g.op("Exp", g.input(2, 7, 12))
        for _ in range(steps):
            y = g.op("LayerNormalization", x, g.weight(12), g.weight(12), axis=-1)
            y = activate(g, g.op("Add", g.op("MatMul", y, g.weight(12, 24)), g.weight(24)), "Gelu")
            x = g.op("Add", x, g.op("Add", g.op("MatMul", y, g.weight(24, 12)), g.weight(12)))
        y = g.op("LayerNormalization", x, g.weight(12), g.weight(12), axis=2)
        y = g.op("Gather", y, g.constant(np.full(shape, index)), axis=1)
        g.save(folder, [g.op("MatMul", y, g.weight(12, 5))])
    for scale in ((7, 12), (7, 1)):
        g = Graph(f"token_scale_{scale[1]}")  # the scale differs from token to token
        y = g.op("LayerNormalization", g.op("Exp", g.input(2, 7, 12)), g.weight(*scale), axis=-1)
        g.save(folder, [g.op("Gather", y, g.constant(np.int64(2)), axis=1)])
    g = Graph("token_others")  # an output too, two tokens, an operand that differs from token to token
    x = g.op("Relu", g.op("MatMul", g.input(2, 7, 12), g.weight(12, 8)))
    y = g.op("Add", g.op("Mul", x, g.weight(7, 8)), g.weight(1, 7, 8))
    z = g.op("Relu", g.op("LayerNormalization", x, g.weight(7, 8), axis=1))
    last = [g.op("Gather", v, g.constant(np.int64(2)), axis=1) for v in (x, y, z)]
    last.append(g.op("Gather", g.op("Tanh", x), g.constant(np.array([1, 4])), axis=1))
    g.save(folder, [g.op("Gather", g.op("Sigmoid", x), g.constant(np.int64(1)), axis=2), g.op("Exp", x), *last])


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    for family in (epilogues, memory, blocked, tokens, attentions, padded, affine, normalised_before, transposed, norms,
                   resampled, pixels_of_tokens, one_token, random_graphs, small_graphs):
        family(folder)
    return folder


@pytest.mark.parametrize("cpu", ("generic", "avx512vnni"))
@pytest.mark.parametrize("level", ("none", "basic", "extended"))
def test_graphs(sardonyx, graphs, level, cpu):
    done = sardonyx("test", graphs, "--rtol", "1e-4", "--peak", "1e-5", "--level", level, "--cpu", cpu, code=None)
    assert done.code == 0, done.out
    assert f"{len(list(graphs.iterdir()))} passed, 0 failed" in done.out


def test_moved(sardonyx, graphs):
    """The passes that change the order of operators do so where it pays and keeps the meaning, and nowhere else."""
    moved = {"resample": ("resampled_linear_7_Relu", "resampled_parts_EE", "resampled_parts_RERER", "resampled_average_0",
                          "resampled_average_1", "resampled_average_3", "resampled_average_4"),
             "pointwise": ("tokens_image_2_48_12_1_Gelu", "tokens_decoder_1", "tokens_heads_1_4_2",
                           "tokens_heads_2_4_3"),
             "rows": ("token_3_2_0",),
             "": ("resampled_twice", "resampled_average_2", "tokens_image_1_40_30_0_None", "tokens_heads_1_12_2")}
    for name, cases in moved.items():
        for case in cases:
            err = sardonyx("test", graphs / case, "--rtol", "1e-4", "--peak", "1e-5", "--verbose").err
            seen = {n for n in moved if n and f"passes: {n}: " in err}
            assert seen == ({name} if name else set()), (case, err)


def test_merged(sardonyx, graphs):
    """Of nodes that compute the same one is left: twice Exp, ReduceMean and Split, but not what makes outputs."""
    rows = sardonyx("profile", graphs / "repeated/model.onnx", "--inputs", graphs / "repeated/test_data_set_0").out
    nodes = {row.split()[0]: int(row.split()[1]) for row in rows.split("all")[0].splitlines()[3:] if row.strip()}
    assert (nodes["Split"], nodes["ReduceMean"]) == (1, 2), rows


def test_normalised_before(sardonyx, graphs):
    """No padding of zeros between the two, and nobody else who reads it."""
    kept = {m.parent.name[7:] for m in graphs.glob("before_*/model.onnx")
            if "BatchNormalization" in sardonyx("profile", m, "--top", 0).out}
    assert kept == {"padded", "same", "read_twice", "zeros", "transposed", "gemm_turned"}


def test_grids(sardonyx, graphs):
    """Places that are one after another along each axis are never written down; an index may still be wrong."""
    for model in (*graphs.glob("grid_*_1/model.onnx"), *graphs.glob("grid_constant_*/model.onnx")):
        is_grid = "[scatter_grid]" in sardonyx("profile", model, "--top", 0).out
        assert is_grid == (model.parent.name not in ("grid_row_1", "grid_constant_not")), model  # rows of one axis
    err = sardonyx("run", graphs / "grid_one_1/model.onnx", "--input", "x2=70", code=None).err
    assert "ScatterND: index 9 is outside axis 0 of length 4" in err


def test_threads(sardonyx, graphs):
    """The same bits whatever the number of threads."""
    runs = [sardonyx("test", graphs, "--rtol", "1e-4", "--peak", "1e-5", "--digest", "--threads", n,
                     code=None).out for n in (1, 2, 7)]
    assert runs[0] == runs[1] == runs[2]
