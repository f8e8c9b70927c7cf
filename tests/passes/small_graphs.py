# SPDX-License-Identifier: Apache-2.0
"""Graphs of few operators each: slopes, padded channels, softmax of short rows, nodes that compute the same, and
what chooses elements."""
import itertools

import numpy as np

from graphs import Graph


def slopes(folder):
    """relu(x) +- c relu(-x) and PRelu, behind a convolution and not, with one slope and with one a channel."""
    for channels, form, one in itertools.product((5, 24, 40), ("Add", "Sub", "turned", "PRelu"), (True, False)):
        g = Graph(f"slopes_{channels}_{form}_{one}")
        results = []
        for x in (g.input(2, channels, 7, 6), g.conv(g.input(1, 8, 9, 9), 8, channels)):
            c = g.constant(np.full((1, 1, 1), 0.3, np.float32)) if one else g.weight(channels, 1, 1)
            if form == "PRelu":
                y = g.op("PRelu", x, c)
            else:
                below = g.op("Mul", *([g.op("Relu", g.op("Neg", x)), c][::-1 if form == "turned" else 1]))
                operands = [g.op("Relu", x), below]
                y = g.op("Sub" if form == "Sub" else "Add", *(operands[::-1] if form == "turned" else operands))
            results += [y, g.conv(y, channels, 16, kernel=1)]
        g.save(folder, results)
    g = Graph("slopes_others")  # another operand, no constant, a constant that adds an axis
    x, z = g.input(1, 20, 4, 4), g.input(1, 20, 4, 4)
    below = g.op("Relu", g.op("Neg", x))
    g.save(folder, [g.op("Add", g.op("Relu", z), g.op("Mul", below, g.weight(20, 1, 1))),
                    g.op("Add", g.op("Relu", x), g.op("Mul", below, z)),
                    g.op("Add", g.op("Relu", x), g.op("Mul", below, g.weight(2, 1, 20, 1, 1)))])


def padded_blocks(folder):
    """Pads of channels or of pixels whose readers cannot take them as their own."""
    cases = ((0, 4, 0, 0, "constant"), (0, 24, 0, 0, "constant"), (3, 5, 0, 0, "constant"),
             (0, 0, 2, 1, "constant"), (0, 0, 1, 2, "reflect"), (0, 0, 3, 1, "edge"),
             (0, 3, 1, 1, "constant"), (1, 1, 0, 0, "reflect"))
    for number, (first, last, top, left, mode) in enumerate(cases):
        for channels, value in ((24, 0), (32, 0), (40, 1.5)):
            g = Graph(f"pad_blocks_{number}_{channels}")
            x = g.conv(g.input(2, 8, 6, 7), 8, channels)
            operands = [x, g.constant(np.array([0, first, top, left, 0, last, left, top]))]
            if mode == "constant":
                operands.append(g.constant(np.float32(value)))
            y = g.op("Pad", *operands, mode=mode)
            all_channels = channels + first + last
            z = g.conv(y, all_channels, 16, kernel=1)
            g.save(folder, [g.op("Add", y, g.op("Sigmoid", y)), g.op("Exp", z)])


def cuts(folder):
    """Slices along pixels: of blocked channels, and behind convolutions, whose pads take them over or cannot."""
    def cut(g, x, starts, ends, axes, steps=None):
        return g.op("Slice", x, *[g.constant(np.array(v)) for v in (starts, ends, axes, steps or [1] * len(axes))])
    most = np.iinfo(np.int64).max
    forms = (([1], [most], [2]), ([0], [-2], [-1]), ([1, 2], [7, -1], [2, 3]), ([-4], [-1], [3]), ([0], [9], [2], [2]),
             ([6], [-99], [3], [-2]), ([0, 0, 1, 0], [most, most, 5, most], [0, 1, 2, 3]), ([0, 2], [8, 6], [1, 3]),
             ([-99, 1], [40, 4], [1, 2]), ([2], [2], [3]))
    for number, form in enumerate(forms):
        for channels in (5, 24, 32):
            g = Graph(f"cut_{number}_{channels}")
            y = g.op("Relu", g.conv(g.input(2, 8, 9, 7), 8, channels))
            z = cut(g, y, *form)
            left = g.run([z])[0].shape
            after = [] if 0 in left else [g.conv(z, left[1], 9, kernel=1)]
            g.save(folder, [g.op("Add", z, g.op("Sigmoid", z)), *after])
    ends = (([0], [-2]), ([1], [most]), ([2], [-2]), ([0], [5]), ([3], [most]), ([-5], [-1]), ([4], [4]))
    for (starts, stops), stride, dilation, transposed in itertools.product(ends, (1, 2), (1, 2), (False, True)):
        g = Graph(f"cut_behind_{starts[0]}_{stops[0]}_{stride}_{dilation}_{transposed}")
        kind = dict(kernel_shape=[3], strides=[stride], dilations=[dilation])
        if transposed:
            y = g.op("ConvTranspose", g.input(1, 8, 12), g.weight(8, 16, 3), g.weight(16), pads=[1, 0], **kind)
        else:
            y = g.op("Conv", g.input(1, 8, 19), g.weight(16, 8, 3), g.weight(16), pads=[2 * dilation] * 2, **kind)
        z = cut(g, y, starts, stops, [2])
        twice = [y] if starts == [2] else []  # then both are results
        g.save(folder, [g.op("Sigmoid", z), *twice])
    g = Graph("cut_behind_depthwise")
    y = g.op("Conv", g.input(2, 24, 15), g.weight(24, 1, 4), g.weight(24), pads=[3, 3], group=24)
    y = cut(g, y, [0], [15], [-1])
    g.save(folder, [g.op("Mul", y, g.op("Sigmoid", y))])
    g = Graph("cut_behind_image")
    y = cut(g, g.conv(g.input(1, 8, 10, 12), 8, 16, pad=2), [1, 0], [-1, -1], [2, 3])
    g.save(folder, [g.conv(g.op("Relu", y), 16, 8), cut(g, g.conv(y, 16, 8, kernel=1), [0], [4], [1])])


def short_rows(folder):
    for length, kind in itertools.product((1, 2, 5, 16, 31, 32, 33), ("Softmax", "LogSoftmax")):
        g = Graph(f"short_rows_{length}_{kind}")
        wide = g.op("Mul", g.input(3, 100, length), g.constant(np.float32(8)))
        g.save(folder, [g.op(kind, g.input(1, length), axis=-1), g.op(kind, wide, axis=2), g.op(kind, wide, axis=1)])


def repeated(folder):
    g = Graph("repeated")  # constants of the same content, attributes that differ, outputs of the model
    x = g.input(2, 3, 8)
    def one(axis):
        y = g.op("ReduceMean", g.op("Exp", x), axes=[axis])
        return g.op("Add", y, g.constant(np.float32(2)))
    y = [one(1), one(1), one(2)]
    parts = [g.op("Split", g.op("Tanh", x), g.constant(np.array([3, 5])), axis=2, outputs=2) for _ in range(2)]
    g.save(folder, [*y, g.op("Mul", y[0], y[1]), g.op("Mul", y[0], y[2]), parts[0][0], g.op("Neg", parts[1][1]),
                    g.op("Add", g.op("Erf", parts[0][1]), g.op("Erf", parts[1][1]))])


def chosen(folder):
    for n, k, axis, largest in ((300, 9, 1, 1), (1000, 40, 1, 0), (64, 8, 1, 1), (70, 60, 1, 1), (200, 3, 0, 1)):
        g = Graph(f"chosen_{n}_{k}_{axis}_{largest}")
        x = g.input(*((6, n) if axis else (n, 6)))
        found = g.op("TopK", x, g.constant(np.array([k])), axis=axis, largest=largest, outputs=2)
        g.save(folder, [found[0], g.op("Cast", found[1], to=1)])
    for center in (0, 1):
        g = Graph(f"boxes_{center}")
        corner = g.op("Abs", g.input(2, 500, 2))
        size = g.op("Add", g.op("Abs", g.input(2, 500, 2)), g.constant(np.float32(0.1)))
        boxes = g.op("Concat", corner, size if center else g.op("Add", corner, size), axis=2)
        found = g.op("NonMaxSuppression", boxes, g.op("Sigmoid", g.input(2, 3, 500)), g.constant(np.array([90])),
                     g.constant(np.float32([0.4])), g.constant(np.float32([0.2])), center_point_box=center)
        g.save(folder, [g.op("Cast", found, to=1)])
    for tail in ((), (3,), (4,), (17,)):
        g = Graph(f"gathered_{len(tail) and tail[0]}")
        g.save(folder, [g.op("GatherND", g.input(50, *tail), g.constant(np.array([[[3], [-1]], [[49], [-50]]])))])
    g = Graph("not_zero")
    x = g.op("Relu", g.input(3, 1111))
    g.save(folder, [g.op("Cast", g.op("NonZero", x), to=1),
                    g.op("Cast", g.op("NonZero", g.op("Cast", x, to=9)), to=1)])


def windows(folder):
    """Swin's attention: a bias, a mask for each window between two Reshapes, added twice, a factor for each head; two
    masks that follow each other, of which one adds a batch; the same assignment to all of a tensor and to some."""
    for form in ("bias", "shifted", "twice", "scaled", "two", "wide", "wide_scale"):
        g = Graph(f"windows_{form}")
        count = 1 if form == "wide" else 6
        heads = 1 if form == "wide_scale" else 3
        q, k, v = (g.input(count, heads, 10, 8) for _ in "qkv")
        s = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        if form in ("scaled", "wide_scale"):
            s = g.op("Mul", s, g.weight(3, 1, 1, scale=2))
        s = g.op("Add", s, g.weight(1, 3 if form == "wide_scale" else heads, 10, 10))
        if form in ("shifted", "twice", "scaled"):
            s = g.op("Reshape", s, g.constant(np.array([1, 6, 3, 10, 10])))
            mask = g.weight(1, 6, 1, 10, 10, scale=3)
            for _ in range(2 if form == "twice" else 1):
                s = g.op("Add", s, mask)
            s = g.op("Reshape", s, g.constant(np.array([6, 3, 10, 10])))
        elif form in ("two", "wide"):
            s = g.op("Add", s, g.input(6, 1, 10, 10))
        g.save(folder, [g.op("MatMul", g.op("Softmax", s, axis=-1), v)])
    for rows in (4, 3):
        g = Graph(f"assigned_{rows}")
        x, y = g.input(2, 4, 50), g.input(2, rows, 50)
        places = np.stack(np.meshgrid(np.arange(2), np.arange(rows), indexing="ij"), -1)
        grid = g.constant(np.array([2, rows]))
        axes = [g.op("Unsqueeze", g.op("Expand", g.constant(np.arange(n).reshape(shape)), grid), g.constant([-1]))
                for n, shape in ((2, (2, 1)), (rows, (rows,)))]
        g.save(folder, [g.op("Neg", g.op("ScatterND", x, g.constant(places), y)),
                        g.op("Abs", g.op("ScatterND", x, g.op("Concat", *axes, axis=-1), y))])


def grids(folder):
    """x[:, a:b, c:d] = y and the like: a ScatterND of all places of a grid, which are known late (the last two write
    some twice, or in no order), or of which all are constants, or all but one would be a grid."""
    cases = (("box", (5, 6, 7), ([1, 2, 3, 4], [2, 3, 4])), ("run", (2, 7, 9), ([0, 1], [3, 4, 5], [1, 2, 3, 4, 5])),
             ("negative", (4, 6, 5), ([-2, -1], [-6, -5])), ("row", (9, 3), ([2, 3, 7],)), ("one", (4, 5), ([2], [4])),
             ("ordered", (9, 9, 33), ([0, 2, 4, 8], [-8, 3])), ("back", (5, 6, 7), ([4, 2, 0], [1, 5, 3], [6, 2, 0])),
             ("twice", (5, 4, 3), ([1, 3, 1], [0, 2, 2])))
    for (name, shape, places), to in itertools.product(cases, (1, 3, 10, 11)):
        g = Graph(f"grid_{name}_{to}")
        rest = shape[len(places):]
        lengths = [len(along) for along in places]
        x, y = (g.op("Cast", g.op("Mul", g.input(*dims), g.constant(np.float32(30))), to=to)
                for dims in (shape, (*lengths, *rest)))
        nothing = g.op("Cast", g.op("Round", g.op("Mul", g.input(1), g.constant(np.float32(0.1)))), to=7)
        axes = []
        for d, along in enumerate(places):
            at = np.array(along).reshape(-1, *[1] * (len(places) - d - 1))
            axis = g.op("Expand", g.op("Add", g.constant(at), nothing), g.constant(np.array(lengths)))
            axes.append(g.op("Unsqueeze", axis, g.constant([-1])))
        made = g.op("ScatterND", g.op("Neg", x) if name == "box" else x, g.op("Concat", *axes, axis=-1), y)
        g.save(folder, [g.op("Cast", made, to=1)] + ([g.op("Cast", x, to=1)] if name == "run" else []))
    for name, shape, starts, lengths in (("lengths", (5, 9, 4), (1, 3), (3, 5)), ("single", (5, 6, 7), (2, 1, 3), (2, 4, 3))):
        g = Graph(f"grid_{name}_1")  # the lengths are known late too; one place along the first axis, for all of y
        x, y = g.input(*shape), g.input(*lengths, *shape[len(lengths):])
        nothing = g.op("Cast", g.op("Round", g.op("Mul", g.input(), g.constant(np.float32(0.1)))), to=7)
        axes = []
        for d, (start, length) in enumerate(zip(starts, lengths)):
            first = g.op("Add", g.constant(np.int64(start)), nothing)
            end = g.op("Add", g.constant(np.int64(start + (1 if name == "single" and d == 0 else length))), nothing)
            axes.append(g.op("Reshape", g.op("Range", first, end, g.constant(np.int64(1))),
                             g.constant(np.array([-1] + [1] * (len(lengths) - d - 1)))))
        grid = g.op("Add", g.constant(np.array(lengths)), g.op("Unsqueeze", nothing, g.constant([0])))
        axes = [g.op("Unsqueeze", g.op("Expand", axis, grid), g.constant([-1])) for axis in axes]
        g.save(folder, [g.op("ScatterND", x, g.op("Concat", *axes, axis=-1), y)])
    for name, ahead, across in (("1d", (), slice(3, 1100)), ("2d", (slice(2, 30),), slice(1, None, 2)),
                                ("3d", (slice(1, 3), slice(None, None, -1)), slice(4, 60)), ("not", (slice(30),), slice(40))):
        g = Graph(f"grid_constant_{name}")
        shape = (*((4, 33)[2 - len(ahead):] if len(ahead) == 2 else (33,) * len(ahead)), 1200 if not ahead else 90)
        along = [np.arange(n)[s] for n, s in zip(shape, (*ahead, across))]
        places = np.stack(np.meshgrid(*along, indexing="ij"), -1)
        if name == "not":
            places[17, 23] = (31, 70)
        g.save(folder, [g.op("ScatterND", g.input(*shape, 2), g.constant(places), g.input(*places.shape[:-1], 2))])


def neighbours(folder):
    """Features of neighbours: GatherElements of an Expand, along an axis that it keeps or that it makes."""
    for name, shape, axis, places in (("last", (2, 5, 1, 7), 3, (2, 5, 6, 3)), ("inner", (1, 5, 1, 7), -3, (2, 3, 6, 7)),
                                      ("made", (2, 5, 6, 1), 3, (2, 5, 6, 9))):
        g = Graph(f"neighbours_{name}")
        x = g.op("Expand", g.op("Exp", g.input(*shape)), g.constant(np.array([2, 5, 6, 7])))
        index = np.arange(np.prod(places)).reshape(places) * 3 % 10 - 5
        g.save(folder, [g.op("GatherElements", x, g.constant(index), axis=axis)])


def messages(folder):
    """What graph networks gather at their nodes: rows by an index that an Expand repeats along them, all of it or not;
    then a layer whose bias is a matrix of one row."""
    for reduction, columns in itertools.product(("none", "add", "mul", "max", "min"), (6, 33)):
        g = Graph(f"messages_{reduction}_{columns}")
        x, y = g.input(9, columns), g.input(7 if reduction == "none" else 40, columns)
        count = 7 if reduction == "none" else 40
        at = g.op("Clip", g.op("Floor", g.op("Mul", g.input(count, 1), g.constant(np.float32(9)))),
                  g.constant(np.float32(-9)), g.constant(np.float32(8)))
        if reduction == "none":  # each row once: the last of several is not said
            at = g.op("Mul", g.op("Sign", g.op("Abs", at)), g.constant(np.arange(count, dtype=np.float32)[:, None]))
            at = g.op("Add", at, g.op("Sub", g.constant(np.arange(count, dtype=np.float32)[:, None]), at))
        index = g.op("Cast", at, to=7)
        whole, part = (g.op("Expand", index, g.constant(np.array([count, n]))) for n in (columns, columns - 2))
        some = g.op("Slice", y, g.constant(np.array([0])), g.constant(np.array([columns - 2])), g.constant(np.array([1])))
        kept = {"reduction": reduction} if reduction != "none" else {}
        rows = g.op("ScatterElements", x, whole, y, axis=-2, **kept)
        g.save(folder, [g.op("Tanh", g.op("Add", g.op("MatMul", rows, g.weight(columns, 5)), g.weight(1, 5))),
                        g.op("ScatterElements", x, part, some, axis=0, **kept)])


def aliases(folder):
    g = Graph("aliases")  # Identity of weights that are shared, read by other constants' makers, and an output
    shared, matrix = g.weight(32, 32, 3, 3), g.weight(64, 40)
    x = g.input(1, 32, 9, 9)
    y = g.op("Conv", x, shared, pads=[1] * 4)
    y = g.op("Conv", y, g.op("Identity", g.op("Identity", shared)), pads=[1] * 4, dilations=[1, 1])
    z = g.op("MatMul", g.input(5, 40), g.op("Transpose", g.op("Identity", matrix), perm=[1, 0]))
    g.save(folder, [y, z, g.op("MatMul", g.input(3, 64), matrix), g.op("Identity", matrix)])


def typed(folder):
    """Rows of whole numbers and doubles, longer than a kernel's block."""
    for to, length in itertools.product((6, 7, 11), (1, 63, 700)):
        g = Graph(f"typed_{to}_{length}")
        x, y = (g.op("Cast", g.op("Mul", g.input(3, length), g.constant(np.float32(40))), to=to) for _ in range(2))
        column = g.op("ReduceMax", y, axes=[1])
        made = [g.op(kind, x) for kind in ("Abs", "Neg", "Sign")]
        made += [g.op(kind, x, y) for kind in ("Add", "Sub", "Mul", "Max", "Min")]
        made += [g.op("Max", column, x), g.op("Sub", x, column)]
        made += [g.op(f"Reduce{kind}", x, axes=[axis]) for kind in ("Max", "Min") for axis in (0, 1)]
        made += [g.op("ReduceSum", x, g.constant(np.array([axis]))) for axis in (0, 1)]
        made += [g.op("CumSum", x, g.constant(np.array(axis)), exclusive=exclusive, reverse=reverse)
                 for axis, exclusive, reverse in itertools.product((0, 1), (0, 1), (0, 1))]
        made += [g.op("Relu", x), g.op("Sqrt", g.op("Abs", x)), g.op("Div", x, g.op("Exp", y))] if to == 11 else []
        g.save(folder, [g.op("Cast", m, to=1) for m in made] +
               [g.op("Cast", g.op("ArgMax", x, axis=axis), to=1) for axis in (0, 1)])


def powers(folder):
    for length in (1, 30, 130):
        g = Graph(f"powers_{length}")
        x = g.op("Abs", g.input(3, length))
        made = [g.op("Pow", x, g.constant(np.float32(exponent))) for exponent in (2, 3, 0.5, -0.5, 1.7, 0)]
        g.save(folder, made + [g.op("Pow", x, g.input(3, length)), g.op("Pow", x, g.input(3, 1)),
                               g.op("Pow", g.input(3, length), g.constant(np.array(3)))])


def extremes(folder):
    for rows, length in itertools.product((1, 5, 70), (1, 20, 300)):
        g = Graph(f"extremes_{rows}_{length}")
        x = g.op("Round", g.op("Mul", g.input(rows, length), g.constant(np.float32(2))))  # with equal ones
        found = [g.op(kind, x, axis=axis, keepdims=0, select_last_index=last)
                 for kind, axis, last in itertools.product(("ArgMax", "ArgMin"), (0, 1), (0, 1))]
        found.append(g.op("TopK", x, g.constant(np.array([1])), outputs=2)[1])
        g.save(folder, [g.op("Hardmax", x, axis=axis) for axis in (0, 1)] +
               [g.op("LpNormalization", x, axis=axis, p=2) for axis in (0, 1)] +
               [g.op("Cast", f, to=1) for f in found])


def losses(folder):
    for shape in ((300, 11), (2, 7, 5), (2, 3, 300)):
        g = Graph(f"losses_{len(shape)}_{shape[-1]}")
        x = g.input(*shape)
        labels = g.constant(g.random.integers(0, shape[1], (shape[0], *shape[2:])))
        both = g.op("SoftmaxCrossEntropyLoss", x, labels, outputs=2)
        g.save(folder, [*both, g.op("SoftmaxCrossEntropyLoss", x, labels, g.op("Abs", g.weight(shape[1])), reduction="none"),
                        g.op("NegativeLogLikelihoodLoss", x, labels, reduction="sum")])


def transposed_depthwise(folder):
    """A channel a group, which the reference evaluator gets wrong: it gets one group, and zeros."""
    for channels, kernel, stride, pad in itertools.product((16, 32, 12), (2, 3, 4), (1, 2), (0, 1)):
        def make(groups):
            g = Graph(f"transposed_depthwise_{channels}_{kernel}_{stride}_{pad}")
            x = g.conv(g.input(2, 8, 6, 7), 8, channels)
            filters = g.random.standard_normal((channels, 1, kernel, kernel)).astype(np.float32)
            if groups == 1:
                filters = filters * np.eye(channels, dtype=np.float32)[:, :, None, None]
            y = g.op("ConvTranspose", x, g.constant(filters), g.weight(channels), group=groups,
                     strides=[stride] * 2, pads=[pad] * 4)
            return g, [g.conv(g.op("Relu", y), channels, 8)]
        whole, outputs = make(1)
        g, same = make(channels)
        g.save(folder, same, whole.run(outputs))


def small_graphs(folder):
    for family in (slopes, windows, grids, neighbours, messages, padded_blocks, cuts, short_rows, repeated, chosen,
                   aliases, typed, powers, extremes, losses, transposed_depthwise):
        family(folder)
