# SPDX-License-Identifier: Apache-2.0
"""Graphs drawn at random of what passes, layouts and the planner tell apart: images, lines, volumes and sequences through
convolutions, norms, attention, gates, views and joins, with values that are read twice or leave in between, and
lengths that the file leaves open. Wider than passes/random_graphs.py, which the standard's evaluator computes."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, I64 = np.float32, np.int64
KINDS = ("image", "line", "volume", "sequence")


class DrawnGraph:
    """One graph of a seed. `feeds`: inputs of its model; shapes of all values are those of these feeds."""

    def __init__(self, seed, kind):
        self.rng, self.kind = np.random.default_rng(seed), kind
        self.nodes, self.constants, self.shapes, self.feeds, self.lengths = [], {}, {}, {}, {}
        self.leaving, self.count = [], 0
        self.is_open = self.perhaps(0.35)
        self.channel_axis = 2 if kind == "sequence" else 1
        self.begin()
        steps = int(self.rng.integers(3, 12))
        while steps or not self.nodes:
            kept = len(self.nodes)
            if self.one(*STEPS[kind])(self, self.latest(self.rank)) is None:
                del self.nodes[kept:]
            steps = max(0, steps - 1)
        self.model = self.make_model()

    # ---- choices ----

    def one(self, *of):
        return of[int(self.rng.integers(len(of)))]

    def perhaps(self, p):
        return self.rng.random() < p

    def normal(self, *shape, scale=1.0):
        return (self.rng.standard_normal(shape) * scale).astype(F32)

    def latest(self, rank):
        values = [v for v, shape in self.shapes.items() if len(shape) == rank]
        return values[-1] if self.perhaps(0.7) else self.one(*values)

    # ---- pieces of a graph ----

    def constant(self, value, dtype=F32):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def integers(self, *values):
        return self.constant(values, I64)

    def add(self, op, *inputs, outputs=1, **attributes):
        made = [f"v{self.count + i}" for i in range(outputs)]
        self.count += outputs
        self.nodes.append(helper.make_node(op, inputs, made, **attributes))
        return made[0] if outputs == 1 else made

    def known(self, value, shape):
        """The value may be drawn by later steps."""
        self.shapes[value] = tuple(int(n) for n in shape)
        return value

    def weights(self, rows, columns):
        return self.constant(self.normal(rows, columns, scale=rows ** -0.5))

    def begin(self):
        one = self.one
        self.shape = {"image": lambda: (one(1, 1, 2, 3), one(1, 3, 8, 16, 24), one(7, 8, 12, 13, 24), one(7, 8, 11, 16, 20)),
                      "line": lambda: (one(1, 1, 2), one(1, 3, 8, 16, 32), one(16, 32, 33, 50)),
                      "volume": lambda: (one(1, 2), one(1, 3, 8, 16), one(4, 5, 6), one(6, 7, 8), one(8, 9, 12)),
                      "sequence": lambda: (one(1, 1, 2, 3), one(1, 4, 7, 16, 33), one(12, 16, 24, 32))}[self.kind]()
        self.rank = len(self.shape)
        for name in ("x", "x2")[:1 + self.perhaps(0.25)]:
            self.feeds[name] = self.normal(*self.shape)
            self.known(name, self.shape)

    def feed_of(self, lengths):
        """Feeds where axis d of all but scalars has lengths[d]."""
        return {name: self.normal(*lengths) if value.ndim else value for name, value in self.feeds.items()}

    def other_feeds(self, count):
        """Where lengths are open, greater ones (in some at least), so that all windows fit."""
        for _ in range(count if self.is_open else 0):
            yield self.feed_of([int(self.rng.integers(1, 4)) if d == 0 else n if d == self.channel_axis else
                                n + self.one(0, 1, 2, 3, 8, 17) for d, n in enumerate(self.shape)])

    def make_model(self):
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output]
        self.outputs = [name for name in made if name not in read or name in self.leaving or
                        (name in self.shapes and self.perhaps(0.06))]
        dims = [f"n{d}" if self.is_open and d != self.channel_axis else n for d, n in enumerate(self.shape)]
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims if value.ndim else [])
                  for name, value in self.feeds.items()]
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in self.outputs]
        constants = [numpy_helper.from_array(value, name) for name, value in self.constants.items() if name in read]
        graph = helper.make_graph(self.nodes, "random", inputs, outputs, constants)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])

    # ---- steps: from a value to a new one, or None where it does not fit ----

    def activation(self, x):
        return self.known(self.one(*ACTIVATIONS)(self, x), self.shapes[x])

    def slopes(self, x):
        shape = self.shapes[x]
        channels = shape[self.channel_axis]
        return self.known(self.add("PRelu", x, self.constant(self.normal(
            *((channels, *[1] * (len(shape) - 2)) if self.channel_axis == 1 else (channels,))))), shape)

    def affine(self, x):
        shape, axis = self.shapes[x], self.channel_axis
        dims = [1] * len(shape)
        form = self.one("channels", "one", "scalar", "all", "last")
        if form == "channels" or (self.is_open and form in ("all", "last")):
            dims[axis] = shape[axis]
        elif form == "all":
            dims[1:] = shape[1:]
        elif form == "last":
            dims[-1] = shape[-1]
        elif form == "scalar":
            dims = []
        while dims and dims[0] == 1 and self.perhaps(0.3):
            dims = dims[1:]
        op = self.one("Add", "Mul", "Sub", "Div")
        c = self.normal(*dims)
        both = [x, self.constant(np.abs(c) + F32(0.5) if op == "Div" else c)]
        return self.known(self.add(op, *(both[::-1] if op != "Div" and self.perhaps(0.3) else both)), shape)

    def pair(self, x):
        shape = self.shapes[x]
        fits = [v for v, s in self.shapes.items() if len(s) == len(shape) and all(a in (1, b) for a, b in zip(s, shape))]
        both = [x, self.one(*fits)]
        return self.known(self.add(self.one("Add", "Add", "Mul", "Sub", "Max"), *(both[::-1] if self.perhaps(0.5) else both)), shape)

    def convolution(self, x):
        batch, channels, *size = self.shapes[x]
        axes = len(size)
        kernel = [self.one(1, 1, 2, 3, 3, 3, 5, 7)] * axes
        if self.perhaps(0.15):
            kernel[int(self.rng.integers(axes))] = self.one(1, 3, 5)
        stride, dilation = [self.one(1, 1, 1, 2, 3)] * axes, [self.one(1, 1, 1, 2)] * axes
        pads = [d * (k - 1) // 2 for d, k in zip(dilation, kernel)] * 2
        if self.perhaps(0.2):
            pads = [int(self.rng.integers(k)) for k in kernel * 2]
        out = [(n + pads[i] + pads[i + axes] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i, n in enumerate(size)]
        groups, made = 1, self.one(1, 3, 8, 12, 16, 24, 32, channels, 2 * channels)
        if self.perhaps(0.25):
            groups, made = channels, channels * self.one(1, 1, 1, 2)
        elif self.perhaps(0.15):
            groups = self.one(*[g for g in (1, 2, 3, 4, 8) if channels % g == 0])
            made = groups * self.one(1, 2, 4, 8)
        if min(out) < 1 or made > 96:
            return None
        fan = channels // groups * int(np.prod(kernel))
        inputs = [x, self.constant(self.normal(made, channels // groups, *kernel, scale=fan ** -0.5))]
        if self.perhaps(0.7):
            inputs.append(self.constant(self.normal(made)))
        y = self.known(self.add("Conv", *inputs, kernel_shape=kernel, strides=stride, dilations=dilation, group=groups, pads=pads),
                       (batch, made, *out))
        if self.perhaps(0.3):
            y = self.batch_norm(y)
        return self.activation(y) if self.perhaps(0.6) else y

    def transposed(self, x):
        batch, channels, *size = self.shapes[x]
        axes, kernel, stride = len(size), self.one(2, 3, 4), self.one(1, 2, 2)
        pad, extra = self.one(0, 1) if kernel > 2 else 0, self.one(0, 0, 1) if stride > 1 else 0
        out = [(n - 1) * stride + kernel - 2 * pad + extra for n in size]
        groups, made = (channels, channels) if self.perhaps(0.2) else (1, self.one(3, 8, 16, 24))
        if np.prod(size) > 1500 or min(out) < 1:
            return None
        inputs = [x, self.constant(self.normal(channels, made // groups, *[kernel] * axes, scale=(channels // groups * kernel) ** -0.5))]
        if self.perhaps(0.6):
            inputs.append(self.constant(self.normal(made)))
        return self.known(self.add("ConvTranspose", *inputs, kernel_shape=[kernel] * axes, strides=[stride] * axes, group=groups,
                                   pads=[pad] * 2 * axes, output_padding=[extra] * axes), (batch, made, *out))

    def batch_norm(self, x):
        c = self.shapes[x][1]
        means = [self.constant(self.normal(c)) for _ in range(2)]
        widths = [self.constant(np.abs(self.normal(c)) + F32(0.3)) for _ in range(2)]
        return self.known(self.add("BatchNormalization", x, widths[0], *means, widths[1]), self.shapes[x])

    def pool(self, x):
        batch, channels, *size = self.shapes[x]
        axes, kernel = len(size), self.one(2, 3, 3, 5)
        stride, pad, op = self.one(1, 2, 2, kernel), self.one(0, kernel // 2), self.one("MaxPool", "AveragePool")
        out = [(n + 2 * pad - kernel) // stride + 1 for n in size]
        if min(size) + 2 * pad - 6 < kernel and self.is_open or min(out) < 1:
            return None
        more = {"count_include_pad": int(self.perhaps(0.5))} if op == "AveragePool" else {}
        return self.known(self.add(op, x, kernel_shape=[kernel] * axes, strides=[stride] * axes, pads=[pad] * 2 * axes, **more),
                          (batch, channels, *out))

    def squeeze_excite(self, x):
        _, c, *size = self.shapes[x]
        few, ones = max(1, c // 2), [1] * len(size)
        y = self.add("GlobalAveragePool", x) if self.perhaps(0.5) else \
            self.add("ReduceMean", x, axes=list(range(2, 2 + len(size))), keepdims=1)
        if self.perhaps(0.3):
            y = self.add("Gemm", self.add("Flatten", y), self.constant(self.normal(few, c, scale=0.3)), self.constant(self.normal(few)), transB=1)
            y = self.add("Gemm", self.add("Relu", y), self.constant(self.normal(c, few, scale=0.3)), self.constant(self.normal(c)), transB=1)
            y = self.add("Reshape", self.add("Sigmoid", y), self.integers(-1, c, *ones))
        else:
            y = self.add("Conv", y, self.constant(self.normal(few, c, *ones, scale=0.3)), self.constant(self.normal(few)))
            y = self.add("Conv", self.add(self.one("Relu", "HardSwish"), y), self.constant(self.normal(c, few, *ones, scale=0.3)))
            y = self.add(self.one("Sigmoid", "HardSigmoid"), y)
        return self.known(self.add("Mul", *((x, y) if self.perhaps(0.7) else (y, x))), self.shapes[x])

    def concat(self, x):
        shape, axis = self.shapes[x], self.channel_axis
        fits = [v for v, s in self.shapes.items() if len(s) == len(shape) and all(a == b or d == axis for d, (a, b) in enumerate(zip(s, shape)))]
        pieces = [x, *(self.one(*fits) for _ in range(self.one(1, 2)))]
        self.rng.shuffle(pieces)
        wide = sum(self.shapes[v][axis] for v in pieces)
        if wide > 128:
            return None
        return self.known(self.add("Concat", *pieces, axis=axis), [wide if d == axis else n for d, n in enumerate(shape)])

    def split(self, x):
        shape, axis = self.shapes[x], self.channel_axis
        n = shape[axis]
        if n < 2:
            return None
        cut = n // 2 if self.perhaps(0.5) else int(self.rng.integers(1, n))
        lengths = [n // 3] * 3 if n % 3 == 0 and self.perhaps(0.4) else [cut, n - cut]
        for y, length in zip(self.add("Split", x, self.integers(*lengths), outputs=len(lengths), axis=axis), lengths):
            self.known(y, [length if d == axis else m for d, m in enumerate(shape)])
            if self.perhaps(0.1):
                self.leaving.append(y)
        return y

    def cut(self, x):
        shape = self.shapes[x]
        axis = self.channel_axis if self.is_open else int(self.rng.integers(1, len(shape)))
        n = shape[axis]
        if n < 3:
            return None
        first, step = int(self.rng.integers(n - 1)), self.one(1, 1, 1, 2, -1)
        last = int(self.rng.integers(first + 1, n + 1))
        begin, end = (first, last if last < n else 1 << 40) if step > 0 else (last - 1, first - 1 if first else -(1 << 31))
        made = -(-(last - first) // abs(step))
        return self.known(self.add("Slice", x, *(self.integers(v) for v in (begin, end, axis, step))),
                          [made if d == axis else m for d, m in enumerate(shape)])

    def pad(self, x):
        shape = self.shapes[x]
        pads = [[self.one(0, 1, 1, 2) if d > 1 else 0 for d in range(len(shape))] for _ in range(2)]
        mode = self.one("constant", "constant", "edge", "reflect" if min(shape[2:]) > 8 else "edge")
        if mode == "constant" and self.perhaps(0.2):
            pads[0][1], pads[1][1] = self.one(0, 3), self.one(0, 8)
        return self.known(self.add("Pad", x, self.integers(*pads[0], *pads[1]), mode=mode), [n + a + b for n, a, b in zip(shape, *pads)])

    def resize(self, x):
        batch, channels, *size = self.shapes[x]
        if np.prod(size) > 1500:
            return None
        scale, mode = self.one(2, 2, 3), self.one("nearest", "linear")
        more = {"nearest_mode": self.one("floor", "round_prefer_floor")} if mode == "nearest" else {}
        way = self.one("asymmetric", "half_pixel", *(("align_corners",) if mode == "linear" else ()))
        return self.known(self.add("Resize", x, "", self.constant([1, 1, *[scale] * len(size)]), mode=mode,
                                   coordinate_transformation_mode=way, **more), (batch, channels, *(n * scale for n in size)))

    def shuffle(self, x):
        shape = self.shapes[x]
        batch, c, *size = shape
        fits = [g for g in (2, 3, 4) if c % g == 0]
        if self.is_open or not fits:
            return None
        groups = self.one(*fits)
        y = self.add("Reshape", x, self.integers(batch, groups, c // groups, *size))
        y = self.add("Transpose", y, perm=[0, 2, 1, *range(3, len(shape) + 1)])
        return self.known(self.add("Reshape", y, self.integers(*((-1, *shape[1:]) if self.perhaps(0.5) else shape))), shape)

    def depth_to_space(self, x):
        batch, c, *size = self.shapes[x]
        if c % 4 or np.prod(size) > 1500:
            return None
        return self.known(self.add("DepthToSpace", x, blocksize=2, mode=self.one("DCR", "CRD")), (batch, c // 4, *(2 * n for n in size)))

    def reduce(self, x):
        shape = self.shapes[x]
        axes = self.one(list(range(2, len(shape))), [1], [len(shape) - 1])
        op = self.one("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare")
        return self.known(self.add(op, x, axes=axes, keepdims=1), [1 if d in axes else n for d, n in enumerate(shape)])

    def softmax(self, x):
        return self.known(self.add("Softmax", x, axis=self.one(1, -1)), self.shapes[x])

    def instance_norm(self, x):
        shape, c = self.shapes[x], self.shapes[x][1]
        fits = [g for g in (2, 4, 8) if c % g == 0]
        if self.is_open or not fits or self.perhaps(0.5):
            return self.known(self.add("InstanceNormalization", x, self.constant(self.normal(c)), self.constant(self.normal(c)),
                                       epsilon=0.01), shape)
        groups, dims = self.one(*fits), (c, *[1] * (len(shape) - 2))  # GroupNormalization, spelled
        y = self.add("InstanceNormalization", self.add("Reshape", x, self.integers(0, groups, -1)), self.constant(np.ones(groups)),
                     self.constant(np.zeros(groups)), epsilon=0.01)
        y = self.add("Mul", self.add("Reshape", y, self.integers(*shape)), self.constant(self.normal(*dims)))
        return self.known(self.add("Add", y, self.constant(self.normal(*dims))), shape)

    def channels_last(self, x):
        batch, c, *size = self.shapes[x]
        y = self.add("Transpose", x, perm=[0, *range(2, self.rank), 1])
        for _ in range(self.one(1, 2, 3)):
            form = self.one("norm", "product", "activation", "factors")
            if form == "norm":
                y = self.layer_norm_of(y, c)
            elif form == "product":
                wide = self.one(8, 16, 24)
                y, c = self.add("Add", self.add("MatMul", y, self.weights(c, wide)), self.constant(self.normal(wide))), wide
            else:
                y = self.one(*ACTIVATIONS)(self, y) if form == "activation" else self.add("Mul", y, self.constant(self.normal(c)))
        if self.perhaps(0.1):
            self.leaving.append(y)
        return self.known(self.add("Transpose", y, perm=[0, self.rank - 1, *range(1, self.rank - 1)]), (batch, c, *size))

    def layer_norm_of(self, x, c):
        scale, bias, form = self.constant(self.normal(c)), self.constant(self.normal(c)), self.one("operator", "spelled", "squares")
        if form == "operator":
            return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=0.01)
        from_mean = x if form == "squares" else self.add("Sub", x, self.add("ReduceMean", x, axes=[-1], keepdims=1))
        squares = self.add("Pow", from_mean, self.constant(2)) if self.perhaps(0.5) else self.add("Mul", from_mean, from_mean)
        mean = self.add("ReduceMean", squares, axes=[-1], keepdims=1)
        y = self.add("Mul", self.add("Div", from_mean, self.add("Sqrt", self.add("Add", mean, self.constant(0.01)))), scale)
        return y if form == "squares" else self.add("Add", y, bias)

    def layer_norm(self, x):
        return self.known(self.layer_norm_of(x, self.shapes[x][-1]), self.shapes[x])

    def product(self, x):
        *rows, c = self.shapes[x]
        wide = self.one(1, 3, 8, 16, 24, 32, 64, c)
        y = self.known(self.add("MatMul", x, self.weights(c, wide)), (*rows, wide))
        if self.perhaps(0.6):
            bias = self.constant(self.normal(wide))
            y = self.known(self.add("Add", *((y, bias) if self.perhaps(0.5) else (bias, y))), (*rows, wide))
        return self.activation(y) if self.perhaps(0.4) else y

    def feed_forward(self, x):
        c = self.shapes[x][-1]
        if c > 64:
            return None
        if self.perhaps(0.4):
            gate, y = self.add("Split", self.add("MatMul", x, self.weights(c, 4 * c)), self.integers(2 * c, 2 * c), outputs=2, axis=-1)
            y = self.add("Mul", self.one(*ACTIVATIONS)(self, gate), y)
        else:
            y = self.one(*ACTIVATIONS)(self, self.add("Add", self.add("MatMul", x, self.weights(c, 2 * c)), self.constant(self.normal(2 * c))))
        y = self.add("Add", self.add("MatMul", y, self.weights(2 * c, c)), self.constant(self.normal(c)))
        return self.known(self.add("Add", *((x, y) if self.perhaps(0.5) else (y, x))), self.shapes[x])

    def attention(self, x):
        shape = self.shapes[x]
        _, rows, c = shape
        heads = self.one(1, 2, 4)
        fits = [v for v, s in self.shapes.items() if len(s) == 3 and s[0] == shape[0] and s[2] == c]
        if c % heads or c > 96:
            return None
        keyed = self.one(*fits) if self.perhaps(0.25) else x
        size, keys = c // heads, self.shapes[keyed][1]

        def project(v, wide):
            y = self.add("MatMul", v, self.weights(c, wide))
            return self.add("Add", y, self.constant(self.normal(wide))) if self.perhaps(0.7) else y

        def apart(v, *perm):
            return self.add("Transpose", self.add("Reshape", v, self.integers(0, -1, heads, size)), perm=perm)

        if keyed == x and self.perhaps(0.5):
            q, k, v = self.add("Split", project(x, 3 * c), self.integers(c, c, c), outputs=3, axis=2)
        else:
            q, k, v = project(x, c), project(keyed, c), project(keyed, c)
        where = self.one("q", "both", "scores", "nowhere")
        if where in ("q", "both"):
            q = self.add("Mul", q, self.constant(size ** (-0.5 if where == "q" else -0.25)))
        if where == "both":
            k = self.add("Mul", k, self.constant(size ** -0.25))
        q, v = apart(q, 0, 2, 1, 3), apart(v, 0, 2, 1, 3)
        k = apart(k, 0, 2, 3, 1) if self.perhaps(0.6) else self.add("Transpose", apart(k, 0, 2, 1, 3), perm=[0, 1, 3, 2])
        s = self.add("MatMul", q, k)
        for _ in range(self.one(0, 0, 1, 2, 3)):
            s = self.on_scores(s, heads, rows, keys)
        if where == "scores":
            s = self.add("Div", s, self.constant(size ** 0.5))
        s = self.add("Softmax", s, axis=self.one(-1, 3))
        if self.perhaps(0.08):
            self.leaving.append(s)
        y = self.add("Transpose", self.add("MatMul", s, v), perm=[0, 2, 1, 3])
        y = self.add("Reshape", y, self.integers(0, -1, c))
        if self.perhaps(0.7):
            y = project(y, c)
        return self.known(self.add("Add", *((x, y) if self.perhaps(0.5) else (y, x))) if self.perhaps(0.6) else y, shape)

    def on_scores(self, s, heads, rows, keys):
        form = self.one("mask", "keys", "where", "where not", "heads", "bias of heads", "fed", "factor")
        seen = self.rng.random((rows, keys)) < 0.6
        if form in ("heads", "bias of heads"):
            return self.add("Mul" if form == "heads" else "Add", s, self.constant(self.normal(1, heads, 1, 1)))
        if form == "fed":
            self.feeds["factor"] = np.array(0.7, F32)
            return self.add(self.one("Mul", "Div"), s, "factor")
        if form == "factor" or self.is_open:
            return self.add("Mul", s, self.constant(self.one(0.5, 2)))
        if form in ("mask", "keys"):
            return self.add("Add", s, self.constant(np.where(seen if form == "mask" else seen[:1], 0, -1e4)))
        low = self.constant(-1e9)
        return self.add("Where", self.constant(seen, bool), *((s, low) if form == "where" else (low, s)))

    def recurrent(self, x):
        batch, rows, c = self.shapes[x]
        wide, ways, op = self.one(5, 8, 12), self.one(1, 2), self.one("LSTM", "GRU", "RNN")
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op] * wide
        inputs = [self.add("Transpose", x, perm=[1, 0, 2]), *(self.constant(self.normal(ways, gates, n, scale=0.3)) for n in (c, wide))]
        if self.perhaps(0.7):
            inputs.append(self.constant(self.normal(ways, 2 * gates, scale=0.3)))
        more = {"linear_before_reset": int(self.perhaps(0.5))} if op == "GRU" else {}
        y = self.add(op, *inputs, hidden_size=wide, direction="bidirectional" if ways == 2 else self.one("forward", "reverse"), **more)
        y = self.add("Reshape", self.add("Transpose", y, perm=[0, 2, 1, 3]), self.integers(0, 0, -1))
        return self.known(self.add("Transpose", y, perm=[1, 0, 2]), (batch, rows, ways * wide))

    def along_rows(self, x):
        batch, rows, c = self.shapes[x]
        kernel, made = self.one(1, 3, 5), self.one(1, 8, 16)
        y = self.add("Transpose", x, perm=[0, 2, 1])
        y = self.add("Conv", y, self.constant(self.normal(made, c, kernel, scale=(c * kernel) ** -0.5)), pads=[kernel // 2] * 2)
        return self.known(self.add("Transpose", self.one(*ACTIVATIONS)(self, y), perm=[0, 2, 1]), (batch, rows, made))

    def leave_as_it_is(self, x):
        form, shape = self.one("identity", "turned", "flat", "double", "axis", "bounds"), self.shapes[x]
        if form == "turned":
            perm = [int(d) for d in self.rng.permutation(len(shape))]
            y = self.add("Transpose", self.add("Transpose", x, perm=perm), perm=[int(d) for d in np.argsort(perm)])
        elif form == "flat" and not self.is_open:
            y = self.add("Reshape", self.add("Relu", self.add("Reshape", x, self.integers(shape[0], -1))), self.integers(*shape))
        elif form == "double":
            y = self.add("Cast", self.add("Cast", x, to=TensorProto.DOUBLE), to=TensorProto.FLOAT)
        elif form == "axis":
            y = self.add("Squeeze", self.add("Unsqueeze", x, self.integers(1)), self.integers(1))
        elif form == "bounds":
            y = self.add("Min", self.add("Max", x, self.constant(-1)), self.constant(1))
        else:
            y = self.add("Identity", x)
        return self.known(y, shape)

    def choose_channels(self, x):
        shape, axis = self.shapes[x], self.channel_axis
        which = self.rng.integers(0, shape[axis], int(self.rng.integers(1, shape[axis] + 1)))
        return self.known(self.add("Gather", x, self.constant(which, I64), axis=axis),
                          [len(which) if d == axis else n for d, n in enumerate(shape)])


def gelu(g, x):
    y = g.add("Add", g.add("Erf", g.add("Div", x, g.constant(2 ** 0.5))), g.constant(1))
    return g.add("Mul", g.add("Mul", x, y), g.constant(0.5))


def hard_swish(g, x):
    y = g.add("Clip", g.add("Add", x, g.constant(3)), g.constant(0), g.constant(6))
    return g.add("Div", g.add("Mul", x, y), g.constant(6))


ACTIVATIONS = (
    *(lambda g, x, op=op: g.add(op, x) for op in ("Relu", "HardSwish", "Elu", "Tanh", "Sigmoid", "Softplus", "Abs", "Neg", "Selu", "Softsign")),
    lambda g, x: g.add("Clip", x, g.constant(-0.5), g.constant(1.5)), lambda g, x: g.add("LeakyRelu", x, alpha=0.1),
    lambda g, x: g.add("HardSigmoid", x, alpha=1 / 6), lambda g, x: g.add("Mul", x, g.add("Sigmoid", x)),
    lambda g, x: g.add("Mul", x, g.add("Tanh", g.add("Softplus", x))), lambda g, x: g.add("Mul", x, x), gelu, hard_swish)

G = DrawnGraph
COMMON = [G.activation, G.slopes, G.affine, G.affine, G.pair, G.pair, G.pair, G.concat, G.split, G.cut, G.softmax, G.leave_as_it_is,
          G.leave_as_it_is, G.choose_channels]
SPATIAL = [*[G.convolution] * 6, G.transposed, G.batch_norm, G.pool, G.pool, G.squeeze_excite, G.concat, G.pad, G.resize, G.reduce,
           G.instance_norm, G.channels_last, G.shuffle, *COMMON]
STEPS = {"image": [*SPATIAL, G.depth_to_space], "line": SPATIAL, "volume": SPATIAL,
         "sequence": [*[G.product] * 3, *[G.feed_forward] * 2, *[G.attention] * 4, *[G.layer_norm] * 3, G.recurrent, G.along_rows, *COMMON]}
