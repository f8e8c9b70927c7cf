# SPDX-License-Identifier: Apache-2.0
"""Random small graphs of convolutions, products, normalisations, activations, additions and poolings, in
whatever order: no pass may join what does not belong together."""
import numpy as np

from graphs import ACTIVATIONS, Graph, activate

GRAPHS = 300


def pick(g, *options):
    return options[g.random.integers(len(options))]


def product(g, x, shape, axes):
    """With its shape: a MatMul of rows (axes 0) or a Conv, some of one channel a group."""
    channels = shape[1] if axes else shape[-1]
    filters, group, kernel = pick(g, channels, 8, 16), 1, pick(g, 1, 3)
    if not axes:
        return g.op("MatMul", x, g.weight(channels, filters)), (*shape[:-1], filters)
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
    operands = [x, *(name for name, other in live[-2:] if other == shape and name != x)][:2]
    if len(operands) < 2:
        row = (shape[1], *[1] * axes) if axes else (shape[-1],)
        operands.append(g.weight(*pick(g, (), (1,), row, (1, *row)), scale=1))
    return g.op(pick(g, "Add", "Mul"), *(operands if pick(g, True, False) else operands[::-1]))


def random_graph(seed):
    g = Graph(f"random_{seed}")
    g.random = np.random.default_rng(seed)
    axes, channels = pick(g, 0, 1, 2), pick(g, 3, 8, 12, 16)  # axes behind the channels; 0: rows
    shape = (2, channels, *(13, 7)[:axes]) if axes else (2, 5, channels)
    live = [(g.input(*shape), shape)]
    for _ in range(g.random.integers(4, 12)):
        x, shape = pick(g, *live[-3:])
        kind = pick(g, "product", "product", "norm", "act", "act", "binary", "binary", "pool")
        if kind == "product":
            x, shape = product(g, x, shape, axes)
        elif kind == "norm":
            x = normalise(g, x, shape, axes)
        elif kind == "binary":
            x = binary(g, x, shape, axes, live)
        elif kind == "pool" and axes:
            op = pick(g, "MaxPool", "AveragePool") if axes == 2 else "AveragePool"  # the reference has no 1-D maximum
            x = g.op(op, x, kernel_shape=[3] * axes, pads=[1] * 2 * axes)
        else:
            x = activate(g, x, pick(g, "Gelu", *ACTIVATIONS))
        live.append((x, shape))
    return g, [name for name, _ in live[1:][-pick(g, 1, 1, 2):]]


def random_graphs(folder):
    for seed in range(GRAPHS):
        g, outputs = random_graph(seed)
        g.save(folder, outputs)
