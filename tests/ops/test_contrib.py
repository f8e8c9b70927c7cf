# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft. All cases of an operator stand as nodes in one model, which must give
the same bytes with 1, 2 and 7 threads. Expected values are onnxruntime's where its CPU build has the
operator, otherwise those of the documentation's formula in NumPy."""
import math
import zlib

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from case_folder import write_case  # noqa: E402

CASES = {}
OPSETS = {"LayerNormalization": 16}  # the standard has it since 17


def operator(name, rtol="1e-4", atol="1e-6"):
    """Registers a function that adds cases of the operator to a Batch."""
    def register(function):
        CASES[name] = (function, rtol, atol)
        return function
    return register


class Batch:
    """Nodes of one operator, their inputs and expected outputs."""

    def __init__(self, op):
        self.op, self.rng = op, np.random.default_rng(zlib.crc32(op.encode()))
        self.nodes, self.feeds, self.constants, self.expected = [], {}, [], {}

    def floats(self, *shape, dtype=np.float32, scale=1):
        return (self.rng.standard_normal(shape) * scale).astype(dtype)

    def ints(self, low, high, *shape, dtype=np.int64):
        return self.rng.integers(low, high, shape).astype(dtype)

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def add(self, inputs, expected=None, outputs=1, constant=(), domain="com.microsoft", **attributes):
        """inputs: arrays, TensorProtos (constants) or None; expected: arrays; None: onnxruntime's.
        constant: the inputs that are constants of the model."""
        index, names = len(self.nodes), []
        for i, value in enumerate(inputs):
            if value is None:
                names.append("")
                continue
            names.append(f"x{index}_{i}")
            if isinstance(value, TensorProto):
                value.name = names[-1]
                self.constants.append(value)
            elif i in constant:
                self.constants.append(numpy_helper.from_array(np.asarray(value), names[-1]))
            else:
                self.feeds[names[-1]] = np.asarray(value)
        made = [f"y{index}_{k}" for k in range(outputs)]
        for name, value in zip(made, expected or ()):
            self.expected[name] = np.asarray(value)
        self.nodes.append(helper.make_node(self.op, names, made, name=f"n{index}", domain=domain,
                                           **attributes))

    def model(self, nodes, outputs):
        used = {name for node in nodes for name in node.input}
        inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                  for name, a in self.feeds.items() if name in used]
        graph = helper.make_graph(nodes, self.op, inputs, outputs,
                                  [t for t in self.constants if t.name in used])
        return helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", OPSETS.get(self.op, 21)), helper.make_opsetid("com.microsoft", 1)])

    def golden(self):
        """Expected values of all outputs, in order."""
        nodes = [node for node in self.nodes if node.output[0] not in self.expected]
        if nodes:
            ort = pytest.importorskip("onnxruntime")
            options = ort.SessionOptions()
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.log_severity_level = 4
            options.intra_op_num_threads = 1
            names = [name for node in nodes for name in node.output]
            model = self.model(nodes, [onnx.ValueInfoProto(name=name) for name in names])
            session = ort.InferenceSession(model.SerializeToString(), options,
                                           ["CPUExecutionProvider"])
            inputs = {i.name for i in session.get_inputs()}
            feeds = {name: a for name, a in self.feeds.items() if name in inputs}
            self.expected.update(zip(names, session.run(None, feeds)))
        return {name: self.expected[name] for node in self.nodes for name in node.output}

    def narrow(self):
        """Makes f16 of all f32: the expected values are those of f32 for what f16 can hold."""
        def convert(dtype):
            def to(a):
                return a.astype(np.float16).astype(dtype) if a.dtype == np.float32 else a
            for values in (self.feeds, self.expected):
                values.update({name: to(a) for name, a in values.items()})
            self.constants = [numpy_helper.from_array(to(numpy_helper.to_array(t)), t.name)
                              if t.data_type == TensorProto.FLOAT else t for t in self.constants]
        convert(np.float32)
        self.golden()
        convert(np.float16)

    def save(self, folder):
        golden = self.golden()
        write_case(folder, self.model(self.nodes, [helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(a.dtype), None) for name, a in golden.items()]),
            self.feeds, golden)


def packed(dtype, values, shape, bits):
    """A constant of a type of less than 8 bits."""
    flat = np.asarray(values).reshape(-1).astype(np.int64) & ((1 << bits) - 1)
    return helper.make_tensor("", dtype, shape, pack(flat, bits).tobytes(), raw=True)


def pack(q, bits):
    """[..., count] to bytes, low bits first, each row padded to whole bytes."""
    each = 8 // bits
    q = np.pad(q, [(0, 0)] * (q.ndim - 1) + [(0, -q.shape[-1] % each)])
    q = q.reshape(*q.shape[:-1], -1, each)
    return (q.astype(np.uint32) << (np.arange(each) * bits)).sum(-1).astype(np.uint8)


def erf(x):
    return np.vectorize(math.erf)(np.asarray(x, np.float64))


def gelu(x):
    return x * 0.5 * (1 + erf(np.asarray(x, np.float64) / math.sqrt(2)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# ---- the standard's under another name ----

@operator("GridSample")
def _(b):
    for i in range(8):
        x, g = b.floats(2, 3, 5, 7), b.floats(2, 4, 6, 2, scale=0.8)
        b.add([x, g], mode=("bilinear", "nearest", "bicubic")[i % 3], align_corners=i // 3 % 2,
              padding_mode=("zeros", "border", "reflection")[i // 2 % 3])
    b.add([b.floats(1, 1, 4, 4), b.floats(1, 3, 3, 2)])


@operator("SampleOp", rtol="0", atol="0")
def _(b):
    b.add([b.floats(3, 4)])
    b.add([b.floats()])


@operator("TorchEmbedding", rtol="0", atol="0")
def _(b):
    for dtype in (np.float32, np.int32, np.float64, np.float16):
        w, i = (b.floats(9, 5) * 100).astype(dtype), b.ints(0, 9, 2, 3)
        b.add([w, i], [w[i]])
        b.add([w, i, np.int64(2), np.bool_(False)], [w[i]])


@operator("Trilu", rtol="0", atol="0")
def _(b):
    for dtype in (np.float32, np.float64, np.int64):
        for k in (None, -2, 0, 3):
            b.add([b.floats(2, 5, 6, scale=50).astype(dtype), None if k is None else np.int64(k)][
                :1 if k is None else 2], upper=b.pick(0, 1))


@operator("GatherND", rtol="0", atol="0")
def _(b):
    for dtype in (np.float32, np.int8, np.float16, object):
        x = b.ints(0, 99, 3, 4, 5)
        x = x.astype(str).astype(object) if dtype is object else x.astype(dtype)
        for shape in ((2, 1), (2, 3, 2), (4, 3)):
            b.add([x, b.ints(0, 3, *shape, dtype=b.pick(np.int32, np.int64))])


@operator("Range", rtol="1e-6", atol="0")
def _(b):
    for dtype in (np.int16, np.int32, np.int64, np.float32, np.float64):
        b.add([dtype(1), dtype(10), dtype(2)])
        b.add([dtype(1), dtype(7)])
        b.add([np.array([9], dtype), np.array([-5], dtype), np.array([-3], dtype)],
              constant=(0, 1, 2))
        b.add([dtype(5), dtype(5), dtype(1)])


@operator("Pad", rtol="0", atol="0")
def _(b):
    for i in range(10):
        pads = b.ints(0, 3, 4)
        pads = pads.reshape(1, 4) if i % 3 == 2 else pads
        value = [b.floats(), b.floats(1), None][i // 2 % 3]
        b.add([b.floats(4, 5), pads] + ([] if value is None else [value]), constant=(1,) if i % 2 else (),
              mode=("constant", "reflect", "edge")[i % 3])
    b.add([b.floats(4, 5), np.array([0, -1, 2, -2])])


@operator("Unique", rtol="0", atol="0")
def _(b):
    for n in (0, 1, 7, 100):
        b.add([b.ints(-5, 5, n).astype(np.float32)], outputs=3)


@operator("ExpandDims", rtol="0", atol="0")
def _(b):
    for axis in (-3, -1, 0, 1, 2):
        b.add([b.floats(3, 4), np.int32(axis)], constant=(1,) if axis % 2 else ())
    b.add([np.array(["a", "bc"], object), np.int32(1)], constant=(1,))


@operator("Rfft", atol="1e-5")
def _(b):
    for shape, axes in (((8,), 1), ((3, 10), 1), ((2, 3, 8), 1), ((2, 4, 6), 2), ((2, 4, 6), 3)):
        x = b.floats(*shape)
        y = np.fft.rfftn(x, axes=range(-axes, 0))
        b.add([x], [np.stack([y.real, y.imag], -1).astype(np.float32)], signal_ndim=axes)


@operator("Irfft", atol="1e-5")
def _(b):
    for shape, axes in (((8,), 1), ((3, 10), 1), ((2, 3, 8), 1), ((2, 4, 6), 2), ((2, 4, 6), 3)):
        x = b.floats(*shape)
        y = np.fft.rfftn(x, axes=range(-axes, 0))
        b.add([np.stack([y.real, y.imag], -1).astype(np.float32)], [x], signal_ndim=axes)


# ---- integers ----

@operator("MulInteger", rtol="0", atol="0")
def _(b):
    for dtype in (np.uint8, np.int8):
        for zeros in range(4):
            low, high = np.iinfo(dtype).min, np.iinfo(dtype).max + 1
            x, y = b.ints(low, high, 3, 4, dtype=dtype), b.ints(low, high, 4, dtype=dtype)
            zx, zy = (b.ints(low, high, dtype=dtype) if zeros >> k & 1 else None for k in (0, 1))
            b.add([x, zx, y] + ([] if zy is None else [zy]),
                  [(x.astype(np.int32) - int(zx or 0)) * (y.astype(np.int32) - int(zy or 0))])


@operator("MatMulInteger16", rtol="0", atol="0")
def _(b):
    for shapes in (((3, 5), (5, 4)), ((2, 3, 5), (5, 4)), ((2, 1, 3, 5), (4, 5, 2)), ((5,), (5, 4))):
        b.add([b.ints(-32768, 32768, *s, dtype=np.int16) for s in shapes], constant=b.pick((), (1,)))
    x, y = (b.ints(0, 65536, *s, dtype=np.uint16) for s in ((3, 5), (5, 4)))
    b.add([x, y], [x.astype(np.uint32) @ y.astype(np.uint32)])


@operator("ReduceSumInteger", rtol="0", atol="0")
def _(b):
    for dtype, to in ((np.uint8, np.uint32), (np.int8, np.int32)):
        for axes, keep in (((1,), 1), ((0, 2), 0), ((-1,), 0)):
            x = b.ints(0, 100, 3, 4, 5, dtype=dtype)
            b.add([x], [x.sum(axes, dtype=to, keepdims=bool(keep))], axes=list(axes), keepdims=keep)


# ---- fused forms ----

@operator("CDist", atol="1e-5")
def _(b):
    for dtype in (np.float32, np.float64):
        for metric in ("sqeuclidean", "euclidean"):
            b.add([b.floats(7, 9, dtype=dtype), b.floats(4, 9, dtype=dtype)], metric=metric,
                  constant=b.pick((), (1,)))
    b.add([b.floats(1, 3), b.floats(6, 3)])


@operator("IsAllFinite", rtol="0", atol="0")
def _(b):
    plain, inf, nan = (np.array([1, v, -2], np.float32) for v in (0, -np.inf, np.nan))
    for attributes, results in (({}, (1, 0, 0)), ({"isinf_only": 1}, (1, 0, 1)),
                                ({"isnan_only": 1}, (1, 1, 0))):
        for x, y in zip((plain, inf, nan), results):
            b.add([x], [np.bool_(y)], **attributes)
            b.add([plain.astype(np.float16), x.astype(np.float16).reshape(1, 3)], [np.bool_(y)],
                  **attributes)


def complex_cases(b, conjugate):
    for dtype, left, right in ((np.float32, (3, 4, 2), (3, 4, 2)), (np.float32, (3, 1, 2), (4, 2)),
                               (np.float64, (2, 2), (1, 2)), (np.float16, (5, 2), (5, 2))):
        x, y = b.floats(*left, dtype=dtype), b.floats(*right, dtype=dtype)
        cx, cy = (v[..., 0].astype(np.complex128) + 1j * v[..., 1] for v in (x, y))
        z = cx * (cy.conj() if conjugate else cy)
        b.add([x, y], [np.stack([z.real, z.imag], -1).astype(dtype)])


@operator("ComplexMul", rtol="2e-3", atol="1e-3")
def _(b):
    complex_cases(b, False)


@operator("ComplexMulConj", rtol="2e-3", atol="1e-3")
def _(b):
    complex_cases(b, True)


@operator("BiasAdd")
def _(b):
    x, bias, skip = b.floats(2, 6, 320), b.floats(320), b.floats(2, 6, 320)
    b.add([x, bias, skip], [x + bias + skip])


@operator("BiasSplitGelu")
def _(b):
    for d in (2560, 12):
        x, bias = b.floats(2, 3, d), b.floats(d)
        h = x + bias
        b.add([x, bias], [(h[..., :d // 2] * gelu(h[..., d // 2:])).astype(np.float32)])


@operator("GemmFastGelu")
def _(b):
    for bias in (True, False):
        x, w, v = b.floats(2, 3, 5), b.floats(5, 7), b.floats(7)
        h = (x @ w + (v if bias else 0)).astype(np.float64)
        y = 0.5 * h * (1 + np.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h ** 3)))
        b.add([x, w] + ([v] if bias else []), [y.astype(np.float32)])


@operator("BiasSoftmax")
def _(b):
    for dims, bias, axis, inner in (((2, 3, 4, 5), (2, 1, 1, 5), 3, 1), ((2, 3, 4, 5), (4, 5), 3, 0),
                                    ((6, 8), (1, 8), 1, 0), ((2, 3, 4), (1, 3, 4), 1, 0)):
        x, v = b.floats(*dims), b.floats(*bias)
        y = softmax((x + v).reshape(int(np.prod(dims[:axis])), -1)).reshape(dims)
        b.add([x, v], [y], axis=axis, is_inner_broadcast=inner)


@operator("BiasDropout")
def _(b):
    x, bias, more = b.floats(3, 40), b.floats(40), b.floats(3, 40)
    ones = np.ones((3, 40), bool)
    b.add([x, bias, more], [x + bias + more, ones], outputs=2)
    b.add([x, bias], [x + bias])
    b.add([x, x, None, np.float32(0.3), np.bool_(False)], [x + x, ones], outputs=2)
    b.add([x, bias, more, np.float32(0), np.bool_(True)], [x + bias + more, ones], outputs=2, seed=3)


@operator("BitmaskDropout")
def _(b):
    x = b.floats(2, 32)
    b.add([x], [x, np.full(2, 0xffffffff, np.uint32)], outputs=2)
    b.add([x, np.float32(0), np.bool_(True)], [x, np.full(2, 0xffffffff, np.uint32)], outputs=2)
    y = b.floats(37)
    b.add([y], [y, np.array([0xffffffff, 31], np.uint32)], outputs=2)
    b.add([y, np.float32(0.4)], [y])


@operator("BitmaskBiasDropout")
def _(b):
    x, bias, more = b.floats(3, 40), b.floats(40), b.floats(3, 40)
    full = np.array([0xffffffff] * 3 + [0xffffff], np.uint32)
    b.add([x, bias, more], [x + bias + more, full], outputs=2)
    b.add([x, bias, None, np.float32(0.5)], [x + bias])


def group_norm(x, gamma, beta, groups, last, silu, epsilon):
    x = x.astype(np.float64)
    x = np.moveaxis(x, -1, 1) if last else x
    g = x.reshape(x.shape[0], groups, -1)
    g = (g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + epsilon)
    y = g.reshape(x.shape) * gamma.reshape(-1, 1, 1) + beta.reshape(-1, 1, 1)
    y = y / (1 + np.exp(-y)) if silu else y
    return np.moveaxis(y, 1, -1) if last else y


@operator("GroupNorm", rtol="2e-3", atol="2e-3")
def _(b):
    for i in range(8):
        last, silu, dtype = i % 2, i // 2 % 2, (np.float32, np.float16)[i // 4]
        x = b.floats(2, 5, 6, 8, dtype=dtype) if last else b.floats(2, 8, 5, 6, dtype=dtype)
        gamma, beta = b.floats(8), b.floats(8)
        b.add([x, gamma, beta], [group_norm(x, gamma, beta, 4, last, silu, 1e-5).astype(dtype)],
              groups=4, activation=silu, channels_last=last)


@operator("SkipGroupNorm", rtol="1e-3", atol="1e-4")
def _(b):
    for i in range(8):
        last, silu, bias = i % 2, i // 2 % 2, i // 4 % 2
        x = b.floats(2, 5, 6, 8) if last else b.floats(2, 8, 5, 6)
        skip = [b.floats(*x.shape), b.floats(2, 8)][i // 2 % 2]
        if i == 5:
            skip = b.floats(2, 1, 1, 8)
        gamma, beta, v = b.floats(8), b.floats(8), b.floats(8)
        spread = skip if skip.ndim == 4 else skip[:, None, None] if last else skip[:, :, None, None]
        s = x + spread + ((v if last else v[:, None, None]) if bias else 0)
        y = group_norm(s, gamma, beta, 2, last, silu, 1e-3)
        b.add([x, gamma, beta, skip] + ([v] if bias else []), [y.astype(np.float32), s], outputs=2,
              groups=2, activation=silu, channels_last=last, epsilon=1e-3)


@operator("TransposeMatMul")
def _(b):
    for ta in (0, 1):
        for tb in (0, 1):
            b.add([b.floats(2, *((5, 3) if ta else (3, 5))), b.floats(*((4, 5) if tb else (5, 4)))],
                  transA=ta, transB=tb, alpha=b.pick(1.0, 0.5), constant=b.pick((), (1,)))


@operator("FusedMatMul")
def _(b):
    for i in range(16):
        ta, tb, ba, bb = (i >> k & 1 for k in range(4))
        left, right = ((5, 3) if ta else (3, 5)), ((4, 5) if tb else (5, 4))
        left = (left[0], 2, 6, left[1]) if ba else (2, 6, *left)
        right = (right[0], 2, 6, right[1]) if bb else (2, 6, *right)
        b.add([b.floats(*left), b.floats(*right)], transA=ta, transB=tb, transBatchA=ba, transBatchB=bb,
              alpha=b.pick(1.0, 0.5), constant=b.pick((), (1,)))
    b.add([b.floats(3, 1, 5), b.floats(5, 4, 2)], transBatchA=1, transBatchB=1)
    b.add([b.floats(2, 3, 5), b.floats(5)])


@operator("FusedMatMulActivation")
def _(b):
    for name, f in (("Relu", lambda v: np.maximum(v, 0)), ("Tanh", np.tanh),
                    ("Sigmoid", lambda v: 1 / (1 + np.exp(-v)))):
        x, y = b.floats(2, 3, 5), b.floats(4, 5)
        b.add([x, y], [f(0.5 * x @ y.T)], activation=name, alpha=0.5, transB=1)


def norm_cases(b, simplified):
    for i in range(8):
        dims, axis = ((3, 4, 8), -1) if i % 2 else ((2, 3, 4, 5), 2)
        dtype, rows = (np.float32, np.float64)[i // 4], dims[axis:]
        inputs = [b.floats(*dims, dtype=dtype), b.floats(*rows, dtype=dtype)]
        if not simplified and i % 3:
            inputs.append(b.floats(*rows, dtype=dtype))
        b.add(inputs, outputs=b.pick(1, 2 if simplified else 3), domain="", axis=axis,
              epsilon=b.pick(1e-5, 1e-2), constant=(1, 2) if i % 3 else ())


@operator("LayerNormalization", rtol="1e-4", atol="1e-5")
def _(b):
    norm_cases(b, False)


@operator("SimplifiedLayerNormalization", rtol="1e-4", atol="1e-5")
def _(b):
    norm_cases(b, True)
    x, s = b.floats(3, 4, 64, dtype=np.float16), b.floats(64, dtype=np.float16)
    b.add([x, s], domain="", epsilon=1e-6)


# ---- activations and normalisations of transformers ----

@operator("Gelu", atol="2e-6")
def _(b):
    b.add([b.floats(3, 700, scale=2)])


@operator("BiasGelu", atol="2e-6")
def _(b):
    b.add([b.floats(2, 3, 70, scale=2), b.floats(70)], constant=(1,))


@operator("FastGelu", atol="2e-6")
def _(b):
    b.add([b.floats(2, 3, 70, scale=2), b.floats(70)])
    b.add([b.floats(2, 3, 70, scale=2)])


@operator("QuickGelu", atol="2e-6")
def _(b):
    b.add([b.floats(2, 300, scale=2)])
    b.add([b.floats(2, 300, scale=2)], alpha=0.7)


def skip_cases(b, simplified):
    for i in range(6):
        inputs = [b.floats(2, 5, 24), b.floats(*((2, 5, 24), (5, 24))[i % 2]), b.floats(24)]
        if not simplified:
            inputs.append(b.floats(24) if i % 3 else None)
        b.add(inputs + [b.floats(24)] * (i // 2 % 2), outputs=4 if i >= 4 and not simplified else 1,
              epsilon=1e-5)


@operator("SkipLayerNormalization", rtol="1e-4", atol="1e-5")
def _(b):
    skip_cases(b, False)


@operator("SkipSimplifiedLayerNormalization", rtol="1e-4", atol="1e-5")
def _(b):
    skip_cases(b, True)


@operator("EmbedLayerNormalization", rtol="1e-4", atol="1e-5")
def _(b):
    for segments, mask, places in ((True, True, False), (False, False, True), (True, False, True)):
        ids, types = b.ints(0, 20, 3, 5, dtype=np.int32), b.ints(0, 2, 3, 5, dtype=np.int32)
        b.add([ids, types if segments else None, b.floats(20, 16), b.floats(9, 16),
               b.floats(2, 16) if segments else None, b.floats(16), b.floats(16),
               (np.arange(5) < b.ints(1, 6, 3, 1)).astype(np.int32) if mask else None] +
              ([b.ints(0, 9, 3, 5, dtype=np.int32)] if places else []), outputs=2, epsilon=1e-5,
              constant=(2, 3))


# ---- fused products and convolutions, products of bytes ----

@operator("FusedConv", rtol="1e-4", atol="1e-5")
def _(b):
    for i in range(6):
        inputs = [b.floats(2, 4, 7, 8), b.floats(6, 4, 3, 3), b.floats(6)]
        if i % 3 == 0:
            inputs.append(b.floats(2, 6, 7, 8))
        name, params = (("Relu", None), ("LeakyRelu", [0.1]), ("Clip", [-0.5, 1.5]), ("Sigmoid", None),
                        ("HardSigmoid", [0.3, 0.4]), ("Tanh", None))[i]
        b.add(inputs, pads=[1, 1, 1, 1], activation=name, constant=(1, 2),
              **({"activation_params": params} if params else {}))


@operator("FusedGemm", rtol="1e-4", atol="1e-5")
def _(b):
    for i, name in enumerate(("Relu", "LeakyRelu", "Sigmoid", "Tanh")):
        b.add([b.floats(5, 7), b.floats(9, 7), b.floats(9)], transB=1, alpha=0.5, beta=2.0,
              activation=name, constant=(1,) if i % 2 else (), **({"activation_alpha": 0.2} if i == 1 else {}))


@operator("QGemm", rtol="1e-5", atol="1.01")
def _(b):
    for i in range(8):
        dtype, n = (np.uint8, np.int8)[i % 2], 9
        inputs = [b.ints(0, 100, 5, 7, dtype=dtype), scale(b), dtype(3),
                  b.ints(-60, 60, *((n, 7) if i // 2 % 2 else (7, n)), dtype=np.int8), scale(b), np.int8(2),
                  b.ints(-300, 300, n, dtype=np.int32)]
        b.add(inputs + ([np.float32(1.5), dtype(20)] if i // 4 else []), transB=i // 2 % 2, alpha=1.0,
              constant=(3, 4, 5, 6))


@operator("DynamicQuantizeMatMul", rtol="1e-4", atol="1e-4")
def _(b):
    for i in range(4):
        w = b.ints(-60, 60, 12, 9, dtype=np.int8)
        facts = [b.rng.uniform(0.01, 0.1, 9).astype(np.float32), np.zeros(9, np.int8)] if i % 2 else \
            [scale(b), np.int8(0)]
        b.add([b.floats(2, 3, 12), w, *facts] + ([b.floats(9)] if i // 2 else []), constant=(1, 2, 3, 4))


@operator("MatMulIntegerToFloat", rtol="1e-4", atol="1e-4")
def _(b):
    for i in range(4):
        dtype = (np.uint8, np.int8)[i % 2]
        b.add([b.ints(0, 100, 2, 3, 12, dtype=dtype), b.ints(-60, 60, 12, 9, dtype=np.int8), scale(b),
               scale(b), dtype(4), np.int8(0)] + ([b.floats(9)] if i // 2 else []), constant=(1,))


@operator("QLinearAdd", rtol="0", atol="1.01")
def _(b):
    binary_cases(b)


@operator("QLinearMul", rtol="0", atol="1.01")
def _(b):
    binary_cases(b)


def binary_cases(b):
    for i, (left, right) in enumerate((((3, 4, 5), (3, 4, 5)), ((3, 4, 5), (5,)), ((2, 1, 5), (3, 1)))):
        for dtype in (np.uint8, np.int8):
            b.add([b.ints(0, 127, *left, dtype=dtype), scale(b), dtype(4), b.ints(0, 127, *right, dtype=dtype),
                   scale(b), dtype(7), np.float32(0.1), dtype(30)], constant=range(1, 8) if i else ())


@operator("QLinearSigmoid", rtol="0", atol="1.01")
def _(b):
    unary_cases(b)


@operator("QLinearLeakyRelu", rtol="0", atol="1.01")
def _(b):
    unary_cases(b, alpha=0.2)


def unary_cases(b, **attributes):
    for dtype in (np.uint8, np.int8):
        b.add([b.ints(0, 127, 3, 40, dtype=dtype), scale(b), dtype(50), np.float32(0.01), dtype(3)],
              constant=(1, 2, 3, 4), **attributes)


@operator("QLinearConcat", rtol="0", atol="1.01")
def _(b):
    for dtype in (np.uint8, np.int8):
        b.add([np.float32(0.05), dtype(9), b.ints(0, 127, 2, 3, 4, dtype=dtype), scale(b), dtype(5),
               b.ints(0, 127, 2, 1, 4, dtype=dtype), scale(b), dtype(2)], axis=1,
              constant=(0, 1, 3, 4, 6, 7))


@operator("QuantizeLinear", rtol="0", atol="0")
def _(b):
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        b.add([b.floats(3, 4, scale=5), scale(b), dtype(3)])
        b.add([b.floats(3, 4, scale=5), b.rng.uniform(0.01, 0.1, 4).astype(np.float32),
               b.ints(0, 9, 4, dtype=dtype)], axis=1)


@operator("DequantizeLinear", rtol="1e-6", atol="0")
def _(b):
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        b.add([b.ints(0, 120, 3, 4, dtype=dtype), scale(b), dtype(3)])
        b.add([b.ints(0, 120, 3, 4, dtype=dtype), b.rng.uniform(0.01, 0.1, 3).astype(np.float32),
               b.ints(0, 9, 3, dtype=dtype)], axis=0)
    b.add([b.ints(-9999, 9999, 3, 4, dtype=np.int32), scale(b)])


# ---- channels last ----

def first(x):
    return np.moveaxis(x, -1, 1)


def conv(x, w, bias, pads, strides, dilations, group):
    """A direct convolution of two spatial axes in f64; x, y are channels first."""
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    n, (m, cg, kh, kw) = x.shape[0], w.shape
    oh = (x.shape[2] - (kh - 1) * dilations[0] - 1) // strides[0] + 1
    ow = (x.shape[3] - (kw - 1) * dilations[1] - 1) // strides[1] + 1
    y = np.zeros((n, m, oh, ow))
    for i in range(kh):
        for j in range(kw):
            at = x[:, :, i * dilations[0]:, j * dilations[1]:][
                :, :, :(oh - 1) * strides[0] + 1:strides[0], :(ow - 1) * strides[1] + 1:strides[1]]
            for g in range(group):
                o = slice(g * m // group, (g + 1) * m // group)
                y[:, o] += np.einsum("nchw,oc->nohw", at[:, g * cg:(g + 1) * cg], w[o, :, i, j])
    return y + (0 if bias is None else bias.reshape(-1, 1, 1))


def nhwc_conv_cases(b, fused):
    for i in range(6):
        group, dtype = b.pick(1, 2), (np.float32, np.float16)[i % 2]
        x, w = b.floats(2, 7, 8, 4, dtype=dtype), b.floats(6, 4 // group, 3, 3, dtype=dtype)
        bias = b.floats(6, dtype=dtype) if i % 3 else None
        pads, strides, dilations = [1, 0, 1, 2], [1, b.pick(1, 2)], [b.pick(1, 2), 1]
        y = conv(first(x), w, bias, pads, strides, dilations, group)
        attributes = {"pads": pads, "strides": strides, "dilations": dilations, "group": group,
                      "kernel_shape": [3, 3]}
        inputs = [x, w] + ([] if bias is None else [bias])
        y = np.moveaxis(y, 1, -1)
        if fused and i >= 3:
            z = b.floats(*y.shape, dtype=dtype)
            inputs = [x, w, bias, z]
            y = np.maximum(y + z, 0)
            attributes["activation"] = "Relu"
        b.add(inputs, [y.astype(dtype)], constant=(1, 2) if i % 2 else (), **attributes)


@operator("NhwcConv", rtol="5e-3", atol="2e-2")
def _(b):
    nhwc_conv_cases(b, False)


@operator("NhwcFusedConv", rtol="5e-3", atol="2e-2")
def _(b):
    nhwc_conv_cases(b, True)


@operator("NhwcMaxPool", rtol="0", atol="0")
def _(b):
    for dtype in (np.uint8, np.int8):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max + 1
        b.add([b.ints(low, high, 2, 9, 8, 5, dtype=dtype)], kernel_shape=[3, 2], strides=[2, 1],
              pads=[1, 0, 1, 1])
        b.add([b.ints(low, high, 1, 9, 16, dtype=dtype)], kernel_shape=[3])
        b.add([b.ints(low, high, 1, 5, 6, 7, 3, dtype=dtype)], kernel_shape=[2, 2, 3],
              dilations=[1, 2, 1])
        b.add([b.ints(low, high, 1, 9, 9, 4, dtype=dtype)], kernel_shape=[2, 2], strides=[2, 2],
              auto_pad="SAME_UPPER", ceil_mode=0)
        b.add([b.ints(low, high, 1, 9, 9, 4, dtype=dtype)], kernel_shape=[2, 2], strides=[2, 2],
              ceil_mode=1)


def scale(b):
    return np.float32(b.rng.uniform(0.01, 0.1))


@operator("QLinearConv", rtol="0", atol="1.01")
def _(b):
    for i in range(8):
        last, group = i % 2, b.pick(1, 2)
        dtype = (np.uint8, np.int8)[i // 4]
        x = b.ints(0, 127, *((2, 7, 8, 4) if last else (2, 4, 7, 8)), dtype=dtype)
        w = b.ints(-60, 60, 6, 4 // group, 3, 3, dtype=np.int8)
        ws = b.rng.uniform(0.005, 0.02, b.pick(1, 6)).astype(np.float32)
        ws = ws if len(ws) > 1 else ws[0]
        bias = b.ints(-500, 500, 6, dtype=np.int32)
        b.add([x, scale(b), dtype(3), w, ws, np.zeros(np.shape(ws), np.int8), np.float32(0.5),
               dtype(20)] + ([bias] if i // 2 % 2 else []), constant=range(1, 9) if i % 3 else (),
              channels_last=last, group=group, pads=[1, 1, 0, 1], strides=[1, 2])


@operator("QLinearAveragePool", rtol="0", atol="1.01")
def _(b):
    for i in range(8):
        dtype = (np.uint8, np.int8)[i % 2]
        x = b.ints(0, 127, 2, 7, 8, 4, dtype=dtype)
        b.add([x, scale(b), dtype(5), scale(b), dtype(9)], channels_last=i // 2 % 2,
              kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 1], count_include_pad=i // 4)


@operator("QLinearGlobalAveragePool", rtol="0", atol="1.01")
def _(b):
    for i in range(6):
        dtype = (np.uint8, np.int8)[i % 2]
        x = b.ints(0, 127, 2, 7, 8, b.pick(4, 300), dtype=dtype)
        b.add([x, scale(b), dtype(5), scale(b), dtype(9)], channels_last=i // 2 % 2)


@operator("QLinearSoftmax", rtol="0", atol="1.01")
def _(b):
    for i in range(8):
        dtype, opset = (np.uint8, np.int8)[i % 2], (11, 13)[i // 2 % 2]
        b.add([b.ints(0, 127, 2, 3, 4, 5, dtype=dtype), scale(b), dtype(5), np.float32(1 / 256),
               dtype(0)], axis=(-1, 1, 3, 2)[i // 2], opset=opset, constant=(1, 2, 3, 4))


@operator("QLinearReduceMean", rtol="0", atol="1.01")
def _(b):
    for dtype in (np.uint8, np.int8):
        for axes, keep in (((1,), 1), ((0, 2), 0)):
            x, sx, sy, z, zy = b.ints(0, 120, 3, 4, 5, dtype=dtype), scale(b), scale(b), dtype(4), dtype(7)
            y = ((x.astype(np.float32) - z) * sx).mean(axes, keepdims=bool(keep))
            info = np.iinfo(dtype)
            b.add([x, sx, z, sy, zy], [np.clip(np.rint(y / sy) + zy, info.min, info.max).astype(dtype)],
                  axes=list(axes), keepdims=keep)


@operator("QLinearWhere", rtol="0", atol="0")
def _(b):
    for dtype in (np.uint8, np.int8):
        for c, x, y in (((3, 4), (3, 4), (3, 4)), ((4,), (3, 4), (1,)), ((2, 1, 4), (3, 1), (4,))):
            b.add([b.ints(0, 2, *c, dtype=bool), b.ints(0, 120, *x, dtype=dtype), scale(b), dtype(3),
                   b.ints(0, 120, *y, dtype=dtype), scale(b), dtype(8), scale(b), dtype(2)],
                  constant=(2, 3, 5, 6, 7, 8))


@operator("QEmbedLayerNormalization", rtol="1e-4", atol="1e-4")
def _(b):
    for dtype in (np.uint8, np.int8):
        for segments, mask in ((True, True), (False, False), (True, False)):
            ids, types = b.ints(0, 20, 3, 5, dtype=np.int32), b.ints(0, 2, 3, 5, dtype=np.int32)
            tables = [b.ints(0, 100, *s, dtype=dtype) for s in ((20, 16), (9, 16), (2, 16), (16,), (16,))]
            scales, zeros = [scale(b) for _ in range(5)], [dtype(k) for k in (3, 9, 4, 0, 50)]
            if not segments:
                types = tables[2] = scales[2] = zeros[2] = None
            m = b.ints(0, 2, 3, 5, dtype=np.int32) if mask else None
            b.add([ids, types, *tables, m, *scales, *zeros], outputs=2, epsilon=1e-5,
                  constant=range(2, 18))


# ---- images ----

@operator("CropAndResize", rtol="1e-4", atol="1e-5")
def _(b):
    for i in range(8):
        x = b.floats(2, 3, 8, 9)
        rois = np.sort(b.rng.uniform(-0.1, 1.1, (5, 2, 2)), axis=1).reshape(5, 4).astype(np.float32)
        size = np.array(((3, 4), (1, 5), (7, 1), (1, 1))[i % 4], np.int32)
        b.add([x, rois, b.ints(0, 2, 5, dtype=np.int32), size], constant=(3,) if i % 3 else (),
              mode=("bilinear", "nearest")[i // 4], extrapolation_value=b.pick(0.0, 2.5))


@operator("MaxpoolWithMask", rtol="0", atol="0")
def _(b):
    for dims, kernel, strides, pads in (((2, 3, 9), [3], [2], [1, 0]),
                                        ((2, 3, 7, 8), [3, 2], [2, 1], [1, 0, 1, 1]),
                                        ((1, 2, 5, 4, 6), [2, 2, 3], [1, 1, 2], [0, 1, 0, 0, 0, 1])):
        for share in (False, True):
            mask = b.ints(0, 4, *((1, 1) + dims[2:] if share else dims), dtype=np.int32)
            b.add([b.floats(*dims), mask], kernel_shape=kernel, strides=strides, pads=pads)


@operator("ConvTransposeWithDynamicPads", rtol="1e-4", atol="1e-5")
def _(b):
    for i in range(6):
        group = b.pick(1, 2)
        inputs = [b.floats(2, 4, 5, 6), b.floats(4, 6 // group, 3, 3), b.ints(0, 2, 4), b.floats(6)]
        b.add(inputs[:3 + i % 2], group=group, strides=[2, b.pick(1, 2)], constant=(1, 2) if i > 2 else (),
              kernel_shape=[3, 3])
    b.add([b.floats(1, 4, 5, 6), b.floats(4, 2, 3, 3), np.zeros(4, np.int64)], output_padding=[1, 1],
          strides=[2, 2])


# ---- texts and tokens ----

WORDS = ["hello world", "a,b,,c d", "", "x", "   ", "caf\u00e9 na\u00efve \u65e5\u672c\u8a9e", "abcabcab",
         "one  two,three", ",", "Zz9_ ab1"]


@operator("Tokenizer")
def _(b):
    texts = np.array(WORDS, object)
    for shape in ((10,), (2, 5), (5, 2)):
        for mark in (0, 1):
            for separators in ([" "], [",", " "], [" ", ","], ["ab", "b"], ["[ ,]+"], ["a|ab"], [",|ab?"]):
                for least in (1, 2):
                    b.add([texts.reshape(shape)], mark=mark, pad_value="#", separators=separators,
                          mincharnum=least)
            b.add([texts.reshape(shape)], mark=mark, pad_value="<pad>", separators=[""], mincharnum=1)
            for pattern in ("[a-z]+", "[^ ,]+", "a|ab", "\\w", "b*"):
                b.add([texts.reshape(shape)], mark=mark, pad_value="", tokenexp=pattern, mincharnum=1)
                b.add([texts.reshape(shape)], mark=mark, pad_value="p", tokenexp=pattern, mincharnum=2)
    b.add([np.array(["", ""], object)], mark=1, pad_value="#", separators=[" "], mincharnum=1)


@operator("MurmurHash3", rtol="0", atol="0")
def _(b):
    for dtype in (np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64):
        b.add([b.floats(3, 5, scale=1000).astype(dtype)], seed=b.pick(0, 7), positive=b.pick(0, 1))
    for seed in (0, 1, 42):
        for positive in (0, 1):
            b.add([np.array(WORDS + ["abc", "abcd", "abcde"], object)], seed=seed, positive=positive)
    b.add([np.array([["x"]], object)])


@operator("WordConvEmbedding", rtol="1e-4", atol="1e-6")
def _(b):
    for window, letter, filters in ((3, 6, 5), (1, 4, 8), (5, 3, 2)):
        x = b.ints(1, 20, 9, 8, dtype=np.int32)
        for i, n in enumerate((8, 8, 7, 5, 4, 3, 2, 1, 6)):
            x[i, n:] = 0
        b.add([x, b.floats(filters, 1, window, letter), b.floats(filters), b.floats(20, letter)])


@operator("UnfoldTensor", rtol="0", atol="0")
def _(b):
    def unfold(x, dim, size, step):
        windows = np.lib.stride_tricks.sliding_window_view(x, size, dim)
        return windows[(slice(None),) * (dim % x.ndim) + (slice(None, None, step),)]
    for i in range(9):
        x = b.ints(0, 99, 4, 7, 6).astype((np.float32, np.int8, np.int64, np.float16, np.float32)[i % 5])
        dim, size, step = b.pick(-1, 0, 1, 2, -2), b.pick(1, 2, 4), b.pick(1, 2, 3)
        b.add([x], None if x.dtype == np.float32 else [unfold(x, dim, size, step)], dim=dim, size=size,
              step=step)
    texts = np.array(WORDS, object)
    b.add([texts], [unfold(texts, 0, 3, 2)], dim=0, size=3, step=2)


@operator("DynamicTimeWarping", rtol="0", atol="0")
def _(b):
    for dims in ((5, 6), (1, 4, 9), (1, 1), (8, 3), (1, 7)):
        b.add([b.floats(*dims)])
        b.add([b.ints(0, 3, *dims).astype(np.float32)])


@operator("NGramRepeatBlock", rtol="0", atol="0")
def _(b):
    for size in (1, 2, 3):
        for length in (1, 2, 12):
            b.add([b.ints(0, 5, 3, length), b.floats(3, 8)], ngram_size=size)


@operator("BifurcationDetector", rtol="0", atol="0")
def _(b):
    for i in range(12):
        source = b.ints(0, b.pick(3, 6), 12)
        match = int(b.rng.integers(0, 12))
        made = np.concatenate([source[match:], b.ints(0, 3, 1)])
        if i % 3:
            made[b.rng.integers(len(made))] = 9
        inputs = [source, b.ints(0, 3, 4), np.array([match])] + ([] if i % 5 == 4 else [made])
        b.add(inputs, outputs=2, min_ngram_size=b.pick(1, 2), max_ngram_size=b.pick(2, 3))


@operator("RemovePadding", rtol="0", atol="0")
def _(b):
    for dtype, counts in ((np.float32, (3, 1, 5)), (np.float16, (0, 5)), (np.float32, (2,))):
        x = b.floats(len(counts), 5, 4, dtype=dtype)
        mask = np.arange(5) < np.array(counts)[:, None]
        places = np.arange(mask.size).reshape(mask.shape)
        b.add([x, np.array(counts, np.int32)], [
            x[mask], np.concatenate([places[mask], places[~mask]]).reshape(mask.shape).astype(np.int32),
            np.cumsum((0,) + counts).astype(np.int32), np.array([max(counts)], np.int32)], outputs=4)


@operator("RestorePadding", rtol="0", atol="0")
def _(b):
    for dtype, tokens in ((np.float32, 7), (np.float16, 0), (np.float32, 12)):
        x, places = b.floats(tokens, 4, dtype=dtype), b.rng.permutation(12).astype(np.int32)
        y = np.zeros((12, 4), dtype)
        y[places[:tokens]] = x
        b.add([x, places.reshape(3, 4)], [y.reshape(3, 4, 4)])


# ---- matrices and weights ----

@operator("Inverse", rtol="1e-3", atol="1e-3")
def _(b):
    for n in (1, 2, 3, 4, 5, 16):
        for dtype in (np.float32, np.float64):
            b.add([(b.floats(2, n, n) + 3 * np.eye(n)).astype(dtype)])
    b.add([(b.floats(3, 3) + 3 * np.eye(3)).astype(np.float16)])


@operator("MatMulBnb4", rtol="1e-4", atol="1e-5")
def _(b):
    for i in range(10):
        m, n, k = b.pick(1, 3, 40), b.pick(5, 64, 130), b.pick(16, 96, 101)
        block, kind = b.pick(16, 32, 64), i % 2
        codes = b.ints(0, 256, (n * k + 1) // 2, dtype=np.uint8)
        largest = b.rng.uniform(0.5, 2, -(-n * k // block)).astype(np.float32)
        b.add([b.floats(2, m, k), codes, largest], constant=(1, 2) if i % 3 else (), K=k, N=n,
              block_size=block, quant_type=kind)


@operator("MatMulNBits", rtol="1e-4", atol="1e-4")
def _(b):
    for i in range(6):
        k, n, block, bits = 70, 9, 16, b.pick(2, 4, 8)
        blocks = -(-k // block)
        q, z = b.ints(0, 1 << bits, n, blocks, block), b.ints(0, 1 << bits, n, blocks)
        order = b.rng.permutation(np.arange(blocks * block) // block)[:k].astype(np.int32)
        s = b.rng.uniform(0.01, 0.1, (n, blocks)).astype(np.float32)
        a = b.floats(2, 3, k)
        w = (q.reshape(n, -1)[:, :k] - (z if i % 2 else np.full_like(z, 1 << (bits - 1)))[:, order]) * s[:, order]
        b.add([a, pack(q, bits), s.reshape(-1), pack(z, bits).reshape(-1) if i % 2 else None, order],
              [(a @ w.T).astype(np.float32)], K=k, N=n, bits=bits, block_size=block,
              constant=(1, 2, 3, 4) if i % 3 else ())


@operator("GatherBlockQuantized", rtol="1e-6", atol="0")
def _(b):
    indices = b.ints(-6, 6, 2, 3)
    indices[1, 1] = 9  # zeros
    for kind, low in ((TensorProto.UINT4, 0), (TensorProto.INT4, -8)):
        for gather, along, block in ((0, 1, 16), (1, 0, 16), (0, 2, 32), (1, 1, 16), (2, 2, 16)):
            dims = [6, 6, 6]
            dims[along] = 40
            blocks = list(dims)
            blocks[along] = -(-40 // block)
            for zeros in (False, True):
                index = b.ints(0, dims[gather], 2, 3, dtype=b.pick(np.int32, np.int64))
                values = [packed(kind, b.ints(low, low + 16, *s), s, 4) for s in (dims, blocks)]
                b.add([values[0], index, b.rng.uniform(0.1, 1, blocks).astype(
                    b.pick(np.float32, np.float16))] + ([values[1]] if zeros else []), gather_axis=gather,
                    quantize_axis=along, block_size=block)
    for kind in (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2,
                 TensorProto.FLOAT8E5M2FNUZ, TensorProto.FLOAT4E2M1):
        for block, scales in ((16, (6, 3)), (0, (6, 1)), (32, (1, 2))):
            values = helper.make_tensor("", kind, (6, 40), b.floats(6, 40).reshape(-1).tolist())
            b.add([values, indices, b.rng.uniform(0.1, 1, scales).astype(b.pick(np.float32, np.float16))],
                  block_size=block, constant=(2,))
    for bits in (2, 4, 8):
        for zeros in (False, True):
            q, z = b.ints(0, 1 << bits, 6, 48), b.ints(0, 1 << bits, 6, 3)
            b.add([pack(q, bits), indices, b.rng.uniform(0.1, 1, (6, 3)).astype(np.float32)] +
                  ([pack(z, bits)] if zeros else []), gather_axis=0, quantize_axis=1, block_size=16,
                  bits=bits, constant=(0, 2, 3) if zeros else ())


def rounded(x):
    """x as bytes with the scale and zero point of DynamicQuantizeLinear hold it."""
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32((high - low) / 255 or 1)
    zero = np.rint(-low / scale)
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale


def quantized_lstm(x, w, r, bias):
    """LSTM forward from zeros with weights [k, 4 * hidden]: Y of one direction."""
    hidden, h, c, y = r.shape[0], 0, 0, []
    h = c = np.zeros((x.shape[1], hidden))
    for part in rounded(x) @ w + bias[:4 * hidden] + bias[4 * hidden:]:
        i, o, f, g = np.split(part + rounded(h) @ r, 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        y.append(h)
    return np.array(y, np.float32)[:, None]


@operator("DynamicQuantizeLSTM", rtol="1e-2", atol="3e-3")
def _(b):
    for i in range(15):
        direction = ("forward", "reverse", "bidirectional")[i % 3]
        d, batch, seq, width, hidden = 1 + (i % 3 == 2), b.pick(1, 3), 5, b.pick(4, 11), b.pick(3, 8, 16)
        if i >= 12:  # rows of fewer bytes than a product takes; more than a part; columns beyond one call
            batch, width, hidden = ((2, 2, 70), (70, 5, 4), (1, 300, 40))[i - 12]
        dtype = (np.uint8, np.int8)[i // 3 % 2]
        # onnxruntime adds two products of bytes in 16 bits where there is no VNNI: int8 stays small.
        low, high, zero = (0, 256, 128) if dtype is np.uint8 else (-63, 64, 0)
        per = (d, 4 * hidden) if i % 2 else (d,)
        weights = [b.ints(low, high, d, k, 4 * hidden, dtype=dtype) for k in (width, hidden)]
        scales = [b.rng.uniform(0.001, 0.004, per).astype(np.float32) for _ in range(2)]
        zeros = np.full(per, zero, dtype)
        more = 6 <= i < 12
        b.add([b.floats(seq, batch, width), *weights, b.floats(d, 8 * hidden) if i % 4 else None,
               b.ints(1, seq + 1, batch, dtype=np.int32) if i == 8 else None,
               b.floats(d, batch, hidden, scale=0.3) if more else None,
               b.floats(d, batch, hidden, scale=0.3) if more else None,
               b.floats(d, 3 * hidden, scale=0.3) if i == 10 else None,
               scales[0], zeros, scales[1], zeros], outputs=3, direction=direction, hidden_size=hidden,
              constant=(1, 2, 3, 8, 9, 10, 11))
    # onnxruntime refuses other zero points
    for dtype, zeros in ((np.uint8, (120, 133)), (np.int8, (-3, 7))):
        low = 0 if dtype is np.uint8 else -127
        x, bias = b.floats(4, 3, 20), b.floats(1, 8 * 24)
        weights = [b.ints(low, low + 255, 1, k, 4 * 24, dtype=dtype) for k in (20, 24)]
        wide = [(v.astype(np.float64)[0] - z) * 0.002 for v, z in zip(weights, zeros)]
        facts = [f for z in zeros for f in (np.float32([0.002]), np.array([z], dtype))]
        b.add([x, *weights, bias, None, None, None, None, *facts], [quantized_lstm(x, *wide, bias[0])],
              direction="forward", hidden_size=24, constant=(1, 2, 3, 8, 9, 10, 11))


@pytest.mark.parametrize("name", CASES)
def test_operator(name, sardonyx, tmp_path):
    function, rtol, atol = CASES[name]
    batch = Batch(name)
    function(batch)
    batch.save(tmp_path / "case")
    digests = {sardonyx("test", tmp_path / "case", "--rtol", rtol, "--atol", atol, "--digest",
                        "--threads", threads).out.split("\n")[0] for threads in (1, 2, 7)}
    assert len(digests) == 1, digests


HALF = """BiasAdd BiasDropout BiasGelu BiasSoftmax BiasSplitGelu ConvTransposeWithDynamicPads CropAndResize
    EmbedLayerNormalization FastGelu FusedConv FusedGemm FusedMatMul Gelu GemmFastGelu GridSample Inverse
    Irfft MatMulBnb4 Pad QuickGelu Rfft
    SkipSimplifiedLayerNormalization TransposeMatMul""".split()


@pytest.mark.parametrize("name", HALF)
def test_half(name, sardonyx, tmp_path):
    batch = Batch(name)
    CASES[name][0](batch)
    batch.narrow()
    batch.save(tmp_path / "case")
    sardonyx("test", tmp_path / "case", "--rtol", "4e-3", "--atol", "4e-3", "--peak", "2e-3")


def sparse_proto(name, dense):
    """A SparseTensorProto with one index of two numbers for each value."""
    places = np.argwhere(dense)
    return helper.make_sparse_tensor(
        numpy_helper.from_array(dense[tuple(places.T)], name),
        numpy_helper.from_array(places.astype(np.int64), f"{name}_indices"), dense.shape)


@pytest.mark.parametrize("dtype", (np.float32, np.float64, np.int32, np.int64, np.uint32, np.uint64))
@pytest.mark.parametrize("trans_a,trans_b,alpha", ((0, 0, 1.0), (1, 0, 2.0), (0, 1, 3.0), (1, 1, 1.0)))
def test_sparse_to_dense(sardonyx, tmp_path, dtype, trans_a, trans_b, alpha):
    rng = np.random.default_rng(trans_a + 2 * trans_b)
    a = (rng.integers(0, 9, (5, 7)) * (rng.random((5, 7)) < 0.3)).astype(dtype)
    b = rng.integers(0, 9, (7, 4)).astype(dtype)
    a, b = a.T.copy() if trans_a else a, b.T.copy() if trans_b else b
    y = (alpha * ((a.T if trans_a else a) @ (b.T if trans_b else b))).astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node("SparseToDenseMatMul", ["A", "B"], ["Y"], domain="com.microsoft",
                            transA=trans_a, transB=trans_b, alpha=alpha)
    graph = helper.make_graph([node], "g", [
        helper.make_sparse_tensor_value_info("A", kind, a.shape),
        helper.make_tensor_value_info("B", kind, b.shape)],
        [helper.make_tensor_value_info("Y", kind, y.shape)])
    model = helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])
    data = tmp_path / "case" / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, tmp_path / "case" / "model.onnx")
    (data / "input_0.pb").write_bytes(sparse_proto("A", a).SerializeToString())
    for kind, array in (("input_1", b), ("output_0", y)):
        (data / f"{kind}.pb").write_bytes(numpy_helper.from_array(array, kind).SerializeToString())
    sardonyx("test", tmp_path / "case")


@pytest.mark.parametrize("name", ("LayerNormalization", "SimplifiedLayerNormalization"))
def test_axis_far_out_of_range(name, sardonyx, tmp_path):
    batch = Batch(name)
    batch.add([batch.floats(3, 4, 8), batch.floats(8)], [np.zeros((3, 4, 8), np.float32)], domain="",
              axis=-(1 << 63))
    batch.save(tmp_path / "case")
    failed = sardonyx("run", tmp_path / "case" / "model.onnx", code=1)
    assert "axis -9223372036854775808 of rank 3" in failed.err
