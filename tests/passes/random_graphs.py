# SPDX-License-Identifier: Apache-2.0
"""Random small graphs of convolutions, products, normalisations, activations, additions, poolings, resizings,
joins, and moves between images and tokens, in whatever order: no pass may join or move what does not allow it."""
import numpy as np

from graphs import ACTIVATIONS, Graph, activate

GRAPHS = 600


def pick(g, *options):
    return options[g.random.integers(len(options))]


def product(g, x, shape, axes):
    """With its shape: a MatMul of rows (axes 0) or a Conv, some of one channel a group."""
    channels = shape[1] if axes else shape[-1]
    filters, group, kernel = pick(g, channels, 8, 16), 1, pick(g, 1, 3)
    if not axes:
        y = g.op("MatMul", x, g.weight(channels, filters))
        return (g.op("Add", y, g.weight(filters)) if pick(g, True, False) else y), (*shape[:-1], filters)
    if g.random.random() < 0.3:
        filters, group = channels, channels
    operands = [x, g.weight(filters, channels // group, *[kernel] * axes)]
    if g.random.random() < 0.6:
        operands.append(g.weight(filters))
    y = g.op("Conv", *operands, pads=[kernel // 2] * 2 * axes, group=group)
    return y, (shape[0], filters, *shape[2:])


def normalise(g, x, shape, axes):
    if not axes:
        return g.op("LayerNormalization", x, g.weight(shape[-1]), g.weight(shape[-1]))
    gamma, variance = (g.constant(g.random.uniform(0.5, 2.5, shape[1]).astype(np.float32)) for _ in "gv")
    return g.op("BatchNormalization", x, gamma, g.weight(shape[1]), g.weight(shape[1]), variance)


def binary(g, x, shape, axes, live):
    """With another value of the shape, or with a constant of one element or of a row."""
    operands = [x, *(name for name, other in live[-4:] if other == shape and name != x)][:2]
    if len(operands) < 2:
        row = (shape[1], *[1] * axes) if axes else (shape[-1],)
        operands.append(g.weight(*pick(g, (), (1,), row, (1, *row)), scale=1))
    return g.op(pick(g, "Add", "Mul"), *(operands if pick(g, True, False) else operands[::-1]))


def pool(g, x, shape, axes):
    """With its shape: of the same size, or of a fraction of it where the axes are multiples."""
    op = pick(g, "MaxPool", "AveragePool") if axes == 2 else "AveragePool"  # the reference has no 1-D maximum
    by = pick(g, 1, 2, 3)
    if by == 1 or any(size % by for size in shape[2:]):
        return g.op(op, x, kernel_shape=[3] * axes, pads=[1] * 2 * axes), shape
    y = g.op(op, x, kernel_shape=[by] * axes, strides=[by] * axes)
    return y, (*shape[:2], *(size // by for size in shape[2:]))


def resize(g, x, shape, axes):
    """With its shape: twice or thrice as large, or an uneven fraction more."""
    sizes = (*shape[:2], *pick(g, [2 * n for n in shape[2:]], [3 * n for n in shape[2:]],
                               [n + 1 + k for k, n in enumerate(shape[2:])]))
    if np.prod(sizes[2:]) > 600:
        sizes = shape
    modes = pick(g, {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
                 {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
                 {"mode": "linear", "coordinate_transformation_mode": "align_corners"})
    if axes == 0:
        return x, shape
    return g.op("Resize", x, "", "", g.constant(np.array(sizes, np.int64)), **modes), sizes


def concat(g, x, shape, axes, live):
    """With its shape: channels of one value or two more, and sometimes those of a split of it."""
    axis = 1 if axes else len(shape) - 1
    others = [(name, other) for name, other in live if len(other) == len(shape) and
              other[:axis] + other[axis + 1:] == shape[:axis] + shape[axis + 1:]]
    parts = [(x, shape)] + [pick(g, *others) for _ in range(pick(g, 1, 2))]
    if sum(other[axis] for _, other in parts) > 48:
        return x, shape
    parts = [parts[k] for k in g.random.permutation(len(parts))]
    y = g.op("Concat", *(name for name, _ in parts), axis=axis)
    return y, (*shape[:axis], sum(other[axis] for _, other in parts), *shape[axis + 1:])


def split(g, x, shape, axes):
    axis = 1 if axes else len(shape) - 1
    if shape[axis] % 2:
        return x, shape
    halves = g.op("Split", x, axis=axis, outputs=2)
    return pick(g, *halves), (*shape[:axis], shape[axis] // 2, *shape[axis + 1:])


def ints(g, *values):
    return g.constant(np.array(values, np.int64))


def turn(g, x, shape):
    """With its shape: an image as tokens, tokens as an image or as one of them, by one of the ways to write it."""
    if len(shape) == 4:
        n, c, h, w = shape
        if pick(g, True, False):
            return g.op("Transpose", g.op("Reshape", x, ints(g, n, c, h * w)), perm=[0, 2, 1]), (n, h * w, c)
        return g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 3, 1]), ints(g, n, h * w, c)), (n, h * w, c)
    if len(shape) == 2:
        return g.op("Unsqueeze", x, ints(g, 1)), (shape[0], 1, shape[1])
    n, tokens, c = shape
    if g.random.random() < 0.3:
        at = int(g.random.integers(tokens))
        return pick(g, lambda: (g.op("Gather", x, g.constant(np.int64(at)), axis=1), (n, c)),
                    lambda: (g.op("Gather", x, ints(g, at), axis=1), (n, 1, c)),
                    lambda: (g.op("Slice", x, ints(g, at), ints(g, at + 1), ints(g, 1)), (n, 1, c)))()
    h = max(k for k in range(1, tokens + 1) if tokens % k == 0 and k * k <= tokens)
    if pick(g, True, False):
        return g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1]), ints(g, n, c, h, tokens // h)), \
            (n, c, h, tokens // h)
    return g.op("Transpose", g.op("Reshape", x, ints(g, n, h, tokens // h, c)), perm=[0, 3, 1, 2]), \
        (n, c, h, tokens // h)


def step(g, kind, x, shape, live):
    """A value of another operator, with its shape."""
    axes = len(shape) - 2 if len(shape) == 4 or g.lines else 0  # axes behind the channels; 0: rows
    if kind == "product":
        return product(g, x, shape, axes)
    if kind == "norm":
        return normalise(g, x, shape, axes), shape
    if kind == "binary":
        return binary(g, x, shape, axes, live), shape
    if kind == "pool" and axes:
        return pool(g, x, shape, axes)
    if kind == "resize" and axes:
        return resize(g, x, shape, axes)
    if kind == "concat":
        return concat(g, x, shape, axes, live)
    if kind == "split":
        return split(g, x, shape, axes)
    if kind == "turn" and axes != 1:
        return turn(g, x, shape)
    return activate(g, x, pick(g, "Gelu", *ACTIVATIONS)), shape


def random_graph(seed):
    g = Graph(f"random_{seed}")
    g.random = np.random.default_rng(seed)
    channels = pick(g, 3, 8, 12, 16)
    shape = pick(g, (2, 5, channels), (2, channels, 13), (2, channels, 13, 7), (1, channels, 6, 12), (2, channels, 6, 4))
    g.lines = shape[-1] == 13  # three axes are lines of channels, not tokens
    moves = pick(g, (), ("resize", "concat", "split"), ("turn", "turn", "turn"), ("resize", "concat", "turn", "turn"))
    live = [(g.input(*shape), shape)]
    for _ in range(g.random.integers(4, 14)):
        x, shape = pick(g, *live[-3:])
        kind = pick(g, "product", "product", "norm", "act", "act", "binary", "binary", "pool", *moves)
        live.append(step(g, kind, x, shape, live))
    outputs = dict.fromkeys(name for name, _ in live[1:][-pick(g, 1, 1, 2):])
    return g, [name for name in outputs if name not in g.inputs]


def random_graphs(folder):
    for seed in range(GRAPHS):
        g, outputs = random_graph(seed)
        if outputs:
            g.save(folder, outputs)
