# SPDX-License-Identifier: Apache-2.0
"""Situations at the edge for operators on elements, axes, indices, text and sequences: empty tensors,
rank 0, ties, wraps, old versions, optional inputs left out. What other runtimes' own tests try."""
import ml_dtypes
import numpy as np
from draws import FLOATS, INTS, NUMBERS, UINTS, Families, exact
from single_nodes import DTYPES, Case, number_of

edges = Families()
COMMON = ["float", "double", "int32", "int64"]
TEXT = DTYPES["string"]


def f32(r, shape, scale=1.0):
    return np.asarray(r.rng.standard_normal(shape) * scale).astype(np.float32)


def near(dtype):
    return {"float16": "bfloat", "float32": "loose"}.get(np.dtype(dtype).name)


@edges("elements", 3)
def _(r):
    op, types, opset = r.pick(
        *[(o, FLOATS, 13) for o in ("Ceil", "Floor", "Sqrt", "Exp", "Log", "Reciprocal", "Erf", "Sigmoid", "Tanh")],
        *[(o, ["float"], 7 if o in ("Sin", "Cos", "Tan", "Acos", "Asin", "Atan") else 9) for o in (
            "Sin", "Cos", "Tan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Atan", "Acos", "Asin")],
        ("Round", FLOATS, 11), ("Abs", NUMBERS, 13), ("Sign", NUMBERS, 13), ("Neg", INTS + FLOATS, 13),
        ("Relu", ["float", "double", "int32", "int8"], 14), ("Softplus", ["float"], 1), ("Softsign", ["float"], 1),
        ("IsNaN", FLOATS, 13), ("Not", ["bool"], 1), ("BitwiseNot", INTS + UINTS, 18), ("HardSwish", ["float"], 14),
        ("Mish", ["float"], 18))
    x = r.array(r.dtype(*types), r.shape(), r.pick(2, 20), edges=op not in ("Softplus", "Mish", "Erf", "HardSwish"))
    if op == "Sign" and x.dtype.name == "float16":
        x = np.nan_to_num(x)  # onnxruntime has 0 for NaN of this type only
    return Case(op, [x], opset=opset, tolerance=near(x.dtype) if x.dtype.kind == "f" else None)


@edges("elements", 2)
def _(r):
    op = r.pick("LeakyRelu", "Elu", "Selu", "Celu", "HardSigmoid", "ThresholdedRelu", "Shrink", "Gelu", "IsInf",
                "PRelu", "Clip", "Dropout")
    x = f32(r, r.shape(), 3)
    a = r.pick(None, 0.0, 0.5, 2.0, -0.5)
    if op == "PRelu":
        if not x.ndim:
            return None
        slopes = [tuple(1 if r.chance(0.4) else d for d in x.shape)[r.int(0, x.ndim):], (), (1,)]
        return Case(op, [x, f32(r, r.pick(*slopes))], opset=r.pick(7, 16))
    if op == "Clip":
        dtype = r.dtype("float", "double", "int8", "uint8", "int32", "int64", "uint64", "float16")
        bounds = [r.array(dtype, (), edges=False) if r.chance(0.7) else None for _ in range(2)]  # may be reversed
        return exact(Case(op, [r.array(dtype, x.shape), *bounds], opset=r.pick(12, 13)))
    if op == "Dropout":
        opset = r.pick(7, 10, 12, 13)
        inputs = [x] if opset < 12 else [x, r.pick(None, np.float32(0.3).reshape(()))]
        return Case(op, inputs, {"ratio": 0.3} if opset < 12 else {}, outputs=r.int(1, 2) if opset > 7 else 1,
                    opset=opset)
    attributes, opset = {
        "LeakyRelu": ({"alpha": a}, 16), "Elu": ({"alpha": a}, 6), "Selu": ({"alpha": a, "gamma": r.pick(None, 1.5)}, 6),
        "Celu": ({"alpha": r.pick(None, 0.5, 2.0)}, 12), "HardSigmoid": ({"alpha": a, "beta": r.pick(None, 0.25)}, 6),
        "ThresholdedRelu": ({"alpha": a}, 10), "Gelu": ({"approximate": r.pick(None, "none", "tanh")}, 20),
        "Shrink": ({"lambd": r.pick(None, 0.0, 1.0), "bias": r.pick(None, 0.5)}, 9),
        "IsInf": ({"detect_negative": r.pick(None, 0, 1), "detect_positive": r.pick(None, 0, 1)}, 10)}[op]
    if op == "IsInf":
        x = r.array(np.float32, x.shape)
    return Case(op, [x], attributes, opset=opset, tolerance="loose")


@edges("pairs", 3)
def _(r):
    op, types, opset = r.pick(
        ("Add", COMMON, 14), ("Sub", COMMON, 14), ("Mul", COMMON, 14), ("Div", COMMON, 14), ("Max", NUMBERS, 13),
        ("Min", NUMBERS, 13), ("Equal", [*COMMON, "bool", "string"], 19), ("Less", COMMON, 13),
        ("Greater", COMMON, 13), ("LessOrEqual", COMMON, 16), ("GreaterOrEqual", COMMON, 16), ("Mod", NUMBERS, 13),
        ("Pow", COMMON, 15), ("BitShift", ["uint8", "uint32", "uint64"], 11), ("BitwiseAnd", INTS + UINTS, 18),
        ("BitwiseOr", INTS + UINTS, 18), ("BitwiseXor", INTS + UINTS, 18), ("And", ["bool"], 7), ("Xor", ["bool"], 7),
        ("Mean", ["float"], 13), ("Sum", ["float", "double"], 13), ("Where", [*COMMON, "uint8", "string"], 16))
    dtype = r.dtype(*types)
    count = {"Max": r.int(1, 4), "Min": r.int(1, 4), "Mean": r.int(1, 4), "Sum": r.int(1, 4), "Where": 3}.get(op, 2)
    inputs = [r.array(dtype, s) for s in r.broadcast(count)]
    attributes = {}
    if op in ("Div", "Mod") and dtype.kind in "iu":
        inputs[1] = np.where(inputs[1] == 0, 3, inputs[1]).astype(dtype)
        if dtype.kind == "i":  # the smallest by -1 traps there
            inputs[0] = np.maximum(inputs[0], np.iinfo(dtype).min + 1)
    if op == "Mod":
        attributes["fmod"] = 1 if dtype.kind == "f" else r.int(0, 1)
    if op == "BitShift":
        attributes["direction"] = r.pick("LEFT", "RIGHT")
        inputs[1] = (inputs[1] % (8 * dtype.itemsize)).astype(dtype)
    if op == "Pow":
        other = r.dtype(*COMMON)
        inputs = [np.asarray(np.abs(np.nan_to_num(inputs[0])) % 9 + 1).astype(dtype),
                  r.rng.integers(0 if dtype.kind == "i" else -3, 4, inputs[1].shape).astype(other)]
    if op == "Where":
        inputs[0] = r.array(bool, inputs[0].shape)
    return Case(op, inputs, attributes, opset=opset, constant=r.pick((), (), (1,)))


@edges("pairs")
def _(r):
    """Broadcasting by attributes, before version 7."""
    op, x = r.pick("Add", "Sub", "Mul", "Div"), f32(r, r.shape(1, 4, empty=0))
    axis = r.int(0, x.ndim - 1)
    y = f32(r, x.shape[axis:r.int(axis + 1, x.ndim)])
    return Case(op, [x, y], {"axis": axis, "broadcast": 1}, opset=6)


@edges("reduce", 3)
def _(r):
    op = r.pick("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
    shape, opset = r.shape(0, 5, empty=0.15), r.pick(1, 11, 13, 18)
    dtype = r.dtype("float", "float", "int32", *(["int8", "uint8", "bool"] if op in ("Max", "Min") and opset == 18 else []),
                    *(["double", "int64"] if op in ("Sum", "Max", "Min", "Prod") and opset >= 13 else []))
    if op in ("Mean", "LogSum", "LogSumExp", "L1", "L2", "SumSquare"):
        dtype = np.dtype(np.float32)
    x = r.array(dtype, shape, edges=op in ("Max", "Min") and dtype.kind != "f")  # onnxruntime loses some NaN
    if op == "Prod" and dtype.kind == "i":
        x = np.sign(x)  # onnxruntime saturates
    if op == "LogSum":
        x = np.abs(x) + np.float32(0.5)
    if op in ("Max", "Min", "Mean") and 0 in shape:
        return None
    axes = r.axes(len(shape), 0 if opset >= 13 else 1) if shape and r.chance(0.8) else None
    attributes = {"keepdims": r.pick(None, 0, 1)}
    if (opset == 1 or 0 in shape) and axes is not None:  # of nothing: onnxruntime mixes up axes from behind
        axes = [a % len(shape) for a in axes]
    as_input = opset >= 18 or op == "Sum" and opset >= 13
    if as_input:
        attributes["noop_with_empty_axes"] = r.pick(None, None, 1)
        if attributes["noop_with_empty_axes"] and not axes:
            return None  # onnxruntime returns x itself where the standard since 26 says: without the reduction
        return Case("Reduce" + op, [x, None if axes is None else np.array(axes, np.int64)], attributes, opset=opset,
                    constant=r.pick((), (1,)), tolerance="loose" if dtype.kind == "f" else None)
    attributes["axes"] = axes or None
    return Case("Reduce" + op, [x], attributes, opset=opset, tolerance="loose" if dtype.kind == "f" else None)


@edges("order", 3)
def _(r):
    op = r.pick("ArgMax", "ArgMin", "TopK", "TopK", "CumSum", "Unique", "NonZero", "Hardmax", "Softmax", "LogSoftmax")
    shape = r.shape(1, 4, empty=0 if op.startswith("Arg") else 0.04)
    if op.startswith("Arg"):
        x = np.round(f32(r, shape)).astype(r.dtype("float", "int32", "double", "int8", "uint8"))
        opset = r.pick(1, 11, 12, 13)
        return Case(op, [x], {"axis": r.int(0, x.ndim - 1) if opset == 1 else r.pick(None, r.axis(x.ndim)),
                              "keepdims": r.pick(None, 0, 1),
                              "select_last_index": r.pick(None, 0, 1) if opset >= 12 else None}, opset=opset)
    if op == "TopK":
        x, axis = np.round(f32(r, shape)), r.axis(len(shape))
        k, opset = r.int(0, shape[axis]), r.pick(1, 10, 11)
        if opset == 1:
            return Case(op, [x], {"k": k, "axis": axis % x.ndim}, opset=1, outputs=2) if k else None
        if opset == 11:
            x = x.astype(r.dtype("float", "int64", "int32", "double"))
        return Case(op, [x, np.array([k])], {
            "axis": axis if opset == 11 else axis % x.ndim,
            **({"largest": r.pick(None, 0, 1), "sorted": 1} if opset == 11 else {})}, opset=opset, outputs=2)
    if op == "CumSum":
        x = r.array(r.dtype(*COMMON), shape, edges=False)
        return Case(op, [x, np.array(r.axis(x.ndim), r.pick(np.int32, np.int64))],
                    {"exclusive": r.pick(None, 0, 1), "reverse": r.pick(None, 0, 1)}, opset=r.pick(11, 14),
                    tolerance="loose" if x.dtype.kind == "f" else None)
    if op == "Unique":
        x = np.round(f32(r, shape)).astype(r.dtype("float", "int64", "int8", "double"))
        if r.chance(0.3):
            x = r.array(TEXT, shape)
        if not x.size:
            return None
        return Case(op, [x], {"axis": r.pick(None, r.axis(x.ndim)), "sorted": r.pick(None, 0, 1)},
                    outputs=r.int(1, 4), opset=11)
    if op == "NonZero":
        return Case(op, [np.round(f32(r, r.shape(1))).astype(r.dtype("float", "int32", "int64", "bool", "uint8"))],
                    opset=r.pick(9, 13))
    opset = r.pick(1, 11, 13)
    axis = r.int(0, len(shape) - 1) if opset == 1 else r.axis(len(shape))
    x = np.round(f32(r, shape, 3)) if op == "Hardmax" else f32(r, shape, 30)
    return Case(op, [x], {"axis": axis if r.chance(0.8) or opset < 13 and len(shape) == 1 else None}, opset=opset)


@edges("moves", 4)
def _(r):
    op = r.pick("Concat", "Split", "Slice", "Pad", "Tile", "Expand", "Transpose", "Reshape", "Squeeze", "Unsqueeze",
                "Flatten", "ReverseSequence", "Trilu", "EyeLike", "Compress", "OneHot", "Size", "Shape", "Identity")
    dtype, shape = r.dtype(*COMMON, "uint8", "bool", "string"), r.shape(1)
    rank, x = len(shape), r.array(dtype, shape, edges=False)
    if op == "Concat":
        axis, opset, parts = r.axis(rank), r.pick(4, 11, 13), []
        for _ in range(r.int(1, 4)):
            parts.append(r.array(dtype, [r.int(0, 3) if i == axis % rank else d for i, d in enumerate(shape)]))
        return exact(Case(op, parts, {"axis": axis % rank if opset == 4 else axis}, opset=opset))
    if op == "Split":
        axis, opset = r.axis(rank), r.pick(2, 11, 13, 18)
        d, cut = shape[axis], r.int(0, shape[axis])
        if opset < 13:
            if dtype.kind in "bO" or x.dtype == np.uint8:
                return None
            return exact(Case(op, [x], {"axis": axis % rank if opset == 2 else axis, "split": [cut, d - cut]},
                              outputs=2, opset=opset))
        if opset == 18 and r.chance(0.5) and d > 1:
            return exact(Case(op, [x], {"axis": axis, "num_outputs": 2}, outputs=2, opset=18))
        return exact(Case(op, [x, np.array([cut, d - cut, 0])], {"axis": axis}, outputs=3, opset=opset,
                          constant=r.pick((), (1,))))
    if op == "Slice":
        axes = r.axes(rank)
        starts, ends = ([r.pick(r.int(-9, 9), 2**62, -2**62) for _ in axes] for _ in range(2))
        if r.chance(0.2):
            return exact(Case(op, [x], {"starts": starts, "ends": ends, "axes": [a % rank for a in axes]}, opset=1)) \
                if dtype.kind not in "bO" else None
        steps = [r.pick(1, 2, -1, -3, 2**40) for _ in axes]
        return exact(Case(op, [x, *(np.array(v) for v in (starts, ends, axes, steps))], opset=r.pick(10, 11, 13),
                          constant=r.pick((), (1, 2, 3, 4)))) if dtype != bool else None
    if op == "Pad":
        mode, opset = r.pick("constant", "edge", "reflect", "wrap"), r.pick(2, 11, 13, 18, 19)
        if dtype.kind in "bO" and mode != "constant" or opset < 19 and mode == "wrap" or dtype.kind == "O" or \
                0 in shape and mode != "constant":
            return None
        axes = r.axes(rank) if opset >= 18 and r.chance(0.4) else list(range(rank))
        low = -2 if mode == "constant" or r.chance(0.3) else 0
        pads = [r.int(max(low, -shape[a] // 2), max(shape[a] - 1, 0) if mode in ("reflect", "wrap") else 3)
                for _ in range(2) for a in axes]
        if opset == 2:
            return exact(Case(op, [x], {"mode": mode, "pads": pads, "value": r.pick(None, 1.5)}, opset=2)) \
                if dtype.kind == "f" else None
        value = r.array(dtype, (), edges=False) if r.chance(0.5) else None
        inputs = [x, np.array(pads), value]
        if len(axes) < rank or opset >= 18 and r.chance(0.3):
            inputs.append(np.array(axes, r.pick(np.int32, np.int64)))
        return exact(Case(op, inputs, {"mode": mode}, opset=opset, constant=r.pick((), (1,))))
    if op == "Tile":
        return exact(Case(op, [x, np.array([r.int(0, 3) for _ in shape])], opset=r.pick(6, 13)))
    if op == "Expand":
        a, b = r.broadcast()
        return exact(Case(op, [r.array(dtype, a), np.array(b, np.int64)], opset=r.pick(8, 13)))
    if op == "Transpose":
        return exact(Case(op, [x], {"perm": r.pick(None, [int(v) for v in r.rng.permutation(rank)])}, opset=13))
    if op == "Reshape":
        dims = [int(v) for v in r.rng.permutation(np.array(shape))]
        if 0 not in shape:
            dims[r.int(0, rank - 1)] = -1
            return exact(Case(op, [x, np.array(dims)], opset=r.pick(5, 13, 14)))
        dims = r.pick([0, -1], [0] * rank, list(shape))
        return exact(Case(op, [x, np.array(dims)], {"allowzero": r.pick(None, 1) if -1 not in dims else None}, opset=14))
    if op in ("Squeeze", "Unsqueeze"):
        shape = tuple(1 if r.chance(0.5) else d for d in shape)
        ones = [a for a, d in enumerate(shape) if d == 1] or None
        if op == "Unsqueeze":
            ones = sorted(int(a) for a in r.rng.permutation(rank + 2)[:2])
        x = r.array(dtype, shape)
        if r.chance(0.4):
            return exact(Case(op, [x], {"axes": ones}, opset=r.pick(1, 11)))
        ones = ones and [a - (len(shape) + (2 if op == "Unsqueeze" else 0)) if r.chance(0.5) else a for a in ones]
        return exact(Case(op, [x] + ([np.array(ones)] if ones else []), opset=13, constant=r.pick((), (1,))))
    if op == "Flatten":
        opset = r.pick(9, 11, 13)
        return exact(Case(op, [x], {"axis": r.int(0 if opset == 9 else -rank, rank)}, opset=opset))
    if op == "ReverseSequence":
        x = r.array(dtype, r.shape(2, 4, empty=0))
        batch = r.int(0, 1)
        lengths = np.array([r.int(0, x.shape[1 - batch]) for _ in range(x.shape[batch])], np.int64)
        if not lengths.all():
            return None  # onnxruntime leaves what length 0 has undefined
        return exact(Case(op, [x, lengths], {"batch_axis": batch, "time_axis": 1 - batch}, opset=10))
    if op == "Trilu":
        x = r.array(r.dtype("float", "int64", "bool"), r.shape(2, 4))
        return exact(Case(op, [x] + ([np.array(r.int(-9, 9))] if r.chance(0.7) else []),
                          {"upper": r.pick(None, 0, 1)}, opset=14))
    if op == "EyeLike":
        return exact(Case(op, [r.array(r.dtype("float", "int32"), r.shape(2, 2))],
                          {"k": r.pick(None, r.int(-9, 9)), "dtype": r.pick(None, 1, 7)}, opset=9))
    if op == "Compress":
        axis = r.pick(None, r.axis(rank))
        return exact(Case(op, [x, r.array(bool, (r.int(0, 1 + (x.size if axis is None else shape[axis])),))],
                          {"axis": axis}, opset=r.pick(9, 11))) if x.size else None
    if op == "OneHot":
        depth, index = r.int(1, 5), r.shape(0, 3)
        kind = r.dtype("int64", "float", "int32")
        x = r.rng.integers(-depth - 3, depth + 3, index).astype(kind)
        opset = r.pick(9, 11)
        if opset == 9:
            x = np.abs(x)  # outside, before version 11; onnxruntime counts from behind all the same
        return exact(Case(op, [x, np.array([depth] if r.chance(0.5) else depth, kind),
                               r.array(kind, (2,), edges=False)], {
            "axis": r.pick(None, r.int(-len(index) - 1, len(index)))}, opset=opset))
    start, end = (r.pick(None, r.int(-9, 9)) for _ in range(2))
    attributes = {"start": start, "end": end} if op == "Shape" else {}
    return exact(Case(op, [r.array(dtype, r.shape())], attributes, opset=15 if op == "Shape" else 13))


@edges("indices", 3)
def _(r):
    op = r.pick("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterElements", "ScatterND", "ScatterND",
                "Scatter", "ConstantOfShape", "Range", "TensorScatter")
    dtype, shape = r.dtype(*COMMON, "uint8", "bool", "string"), r.shape(1, 4, empty=0)
    rank, x, kind = len(shape), r.array(dtype, shape, edges=False), r.pick(np.int32, np.int64)
    axis = r.axis(rank)
    d = shape[axis]
    if op == "Gather":
        if dtype.kind == "O":
            return None  # onnxruntime copies one text where whole rows are asked for
        return exact(Case(op, [x, r.rng.integers(-d, d, r.shape(0, 3, empty=0.2)).astype(kind)],
                          {"axis": r.pick(None, axis) if axis % rank == 0 else axis}, opset=r.pick(11, 13)))
    if op == "GatherElements":
        size = [r.int(0 if r.chance(0.1) else 1, s) for s in shape]
        return exact(Case(op, [x, r.rng.integers(-d, d, size).astype(kind)], {"axis": axis}, opset=r.pick(11, 13)))
    if op == "GatherND":
        batch = r.int(0, rank - 1)
        dims = np.array(shape[batch:batch + r.int(1, rank - batch)])
        lead = shape[:batch] + r.shape(0 if batch else 1, 2, empty=0.2)
        index = r.rng.integers(-dims, dims, (*lead, len(dims))).astype(np.int64)
        return exact(Case(op, [x, index], {"batch_dims": batch}, opset=r.pick(12, 13)))
    if op == "ConstantOfShape":
        return exact(Case(op, [np.array(r.shape(), np.int64)], opset=9))
    if op == "Range":
        dtype = r.dtype("int16", *COMMON)
        return Case(op, [np.asarray(v, dtype) for v in (r.int(-5, 5), r.int(-9, 9), r.pick(-2, 1, 3))], opset=11)
    if op == "TensorScatter":
        b, length, width, n = r.int(1, 3), r.int(2, 6), r.int(1, 4), r.int(1, 2)
        mode = r.pick("linear", "circular")
        at = r.rng.integers(0, length - n + 1 if mode == "linear" else length, b)
        return Case(op, [f32(r, (b, 2, length, width)), f32(r, (b, 2, n, width)),
                         at if r.chance(0.8) else None], {"mode": mode, "axis": r.pick(None, -2, 2)}, opset=24)
    opset = r.pick(11, 13, 16, 18)
    reduction = r.pick("none", "add", "mul", "max", "min") if opset == 18 else r.pick("none", "add", "mul") if \
        opset == 16 else None
    if reduction not in (None, "none"):
        x = r.array(r.dtype(*COMMON), shape, edges=False)
    if op.startswith("ScatterEl") or op == "Scatter":
        size = [r.int(1, s) for s in shape]
        index = r.rng.integers(-d, d, size) if reduction not in (None, "none") else \
            np.argsort(r.rng.random(size), axis % rank) - (d if r.chance(0.3) and op != "Scatter" else 0)
        opset = 9 if op == "Scatter" else opset
        return Case(op, [x, index.astype(kind), r.array(x.dtype, size, edges=False)],
                    {"axis": axis if op != "Scatter" else axis % rank,
                     "reduction": reduction if op != "Scatter" else None}, opset=opset)
    dims, rows = np.array(shape[:r.int(1, rank)]), r.shape(0, 2, 3)
    index = r.rng.integers(-dims, dims, (*rows, len(dims))).astype(np.int64)
    if reduction in (None, "none"):
        flat = np.unique(np.where(index < 0, index + dims, index).reshape(-1, len(dims)), axis=0)
        index = flat
    updates = r.array(x.dtype, (*index.shape[:-1], *shape[len(dims):]), edges=False)
    return Case(op, [x, index, updates], {"reduction": reduction}, opset=opset)


@edges("products", 3)
def _(r):
    op = r.pick("MatMul", "Gemm", "Einsum", "Einsum", "MatMulInteger", "QLinearMatMul", "Det")
    m, k, n = (r.int(1, 9) if r.chance(0.93) else 0 for _ in range(3))
    if op == "Det":
        k = r.int(1, 5)
        return Case(op, [f32(r, (*r.shape(0, 2, 3), k, k))], opset=r.pick(11, 22), tolerance="loose")
    if op == "MatMul":
        la, lb = r.broadcast(2, 3)
        if 0 in la + lb:
            return None  # onnxruntime takes the first's dimensions for the result's
        a, b = r.pick((la, lb), ((), lb), (la, ()))
        dtype = r.dtype(*COMMON)
        inputs = [r.array(dtype, (*a, m, k) if r.chance(0.8) else (k,), edges=False),
                  r.array(dtype, (*b, k, n) if r.chance(0.8) else (k,), edges=False)]
        return Case(op, inputs, opset=r.pick(9, 13), constant=r.pick((), (1,), (0,)), tolerance=near(dtype))
    if op == "Gemm":
        ta, tb, dtype = r.int(0, 1), r.int(0, 1), r.dtype("float", "double")
        c = r.pick(None, (m, n), (1, n), (m, 1), (n,), (1,), (), (1, 1))
        if k == 0 and dtype.name == "float64":
            return None  # onnxruntime forgets beta there
        return Case(op, [r.array(dtype, (k, m) if ta else (m, k), edges=False),
                         r.array(dtype, (n, k) if tb else (k, n), edges=False),
                         None if c is None else r.array(dtype, c, edges=False)], {
            "alpha": r.pick(None, 0.5), "beta": r.pick(None, 0.0, 2.0), "transA": ta, "transB": tb},
            opset=r.pick(11, 13), constant=r.pick((), (1,), (1, 2)), tolerance="loose")
    if op == "Einsum":
        dims = {c: r.int(1, 4) for c in "ijkl"}
        form = r.pick("ij,jk->ik", "ii->i", "ii", "ij->", "ij->ji", "...ij,...jk->...ik", "...ii->...i", "i,j->ij",
                      "ijk,ikl->ijl", "ij,ij->i", "ij,ij", "bij->bji", "i...->...", "ij,kl->ijkl", "iij->j", "iij->ij",
                      "ijk,jil->kl", "...j,...j->...", "ij, jk , kl->il", ",ij->ij", "i,i,i->i", "ijij->ij", "ji")
        dims["b"], lead, inputs = r.int(1, 3), r.shape(1, 2, 3, empty=0), []
        for term in form.replace(" ", "").split("->")[0].split(","):
            body = term.replace("...", "#")
            inputs.append(f32(r, [d for c in body for d in (lead if c == "#" else [dims[c]])]))
        return Case(op, inputs, {"equation": form}, opset=12, tolerance="loose")
    m, k, n = max(m, 1), max(k, 1), max(n, 1)
    a_type, b_type = r.dtype("uint8", "int8"), r.dtype("uint8", "int8")
    lead = r.shape(0, 2, 3, empty=0)
    a, b = r.array(a_type, (*lead, m, k)), r.array(b_type, (k, n) if r.chance(0.6) else (*lead, k, n))
    if a_type != b_type:
        b = b // 2  # onnxruntime's pairs of products overflow 16 bits
    if op == "MatMulInteger":
        return Case(op, [a, b, r.array(a_type, ()) if r.chance(0.6) else None,
                         r.array(b_type, () if b.ndim > 2 or r.chance(0.5) else (n,)) if r.chance(0.6) else None],
                    opset=10, constant=r.pick((), (1,), (1, 3)))
    each = () if b.ndim > 2 or r.chance(0.5) else (n,)
    scale = (2.0 ** r.rng.integers(-6, -2, each)).astype(np.float32)
    return Case(op, [a, np.array(0.5, np.float32), r.array(a_type, ()), b, scale, r.array(b_type, each),
                     np.array(r.pick(0.25, 2.0), np.float32), r.array(a_type, ())], opset=r.pick(10, 21),
                constant=r.pick((), (3, 4, 5)), tolerance="step")


@edges("types", 3)
def _(r):
    source, target = r.dtype(*NUMBERS, "bool", "string"), r.dtype(*NUMBERS, "bool", "string")
    shape = r.shape(0, 3)
    if source.kind == "O":
        words = ["0", "1", "-3", "42", " 7"] if target.kind in "iu" else ["0", "1.5", "-2.25", "1e3", "NaN", "inf", "-INF",
                                                                       "+INF", "1e-20", "0.1"]
        words = [w for w in words if target.kind != "u" or "-" not in w]
        if target.kind == "b" or target.kind == "O":
            return None
        x = r.rng.choice(np.array(words, object), shape).reshape(shape)
    else:
        x = r.array(source, shape, r.pick(2, 100, 1e5, 1e-4), edges=target.kind in "Ofb" or source.kind in "iu")
        if source.kind == "f" and target.kind in "iu":
            info = np.iinfo(target)
            x = np.clip(np.nan_to_num(x), info.min // 2, info.max // 2).astype(source)
        if target.kind == "O" and source.kind in "fb":
            return None  # onnxruntime: eight digits, bool as 1 and 0; the reference: what Python prints
    return exact(Case("Cast", [x], {"to": number_of(target)}, opset=r.pick(9, 13, 19)))


@edges("quantize", 2)
def _(r):
    op, opset = r.pick("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"), r.pick(10, 13, 19, 21, 23)
    shape = r.shape(1, 4, empty=0)
    if op == "DynamicQuantizeLinear":
        x = f32(r, shape, r.pick(1, 0, 50)) + np.float32(r.pick(0, 3, -3))
        return Case(op, [x], outputs=3, opset=11, tolerance="step")
    target = r.dtype("uint8", "int8", *(("uint16", "int16", "int4", "uint4") if opset >= 21 else ()))
    axis = r.axis(len(shape))
    how = r.pick("tensor", "axis", "block") if opset >= 21 else r.pick("tensor", "axis") if opset >= 13 else "tensor"
    block = r.int(1, shape[axis]) if how == "block" else 0
    each = {"tensor": (), "axis": (shape[axis],)}.get(how) if how != "block" else tuple(
        -(-d // block) if i == axis % len(shape) else d for i, d in enumerate(shape))
    if how == "tensor" and r.chance(0.3):
        each = (1,)
    scale = (2.0 ** r.rng.integers(-4, 2, each)).astype(np.float32)
    info = ml_dtypes.iinfo(target)
    zero = r.rng.integers(int(info.min), int(info.max), each, endpoint=True).astype(target)
    attributes = {"axis": axis if how != "tensor" else None, "block_size": block or None}
    if op == "QuantizeLinear":
        x = f32(r, shape, r.pick(2, 30))
        far = r.pick(0.5, 1e9, -1e9, np.inf) if how != "block" else 0.5  # onnxruntime wraps in blocks
        x = np.where(r.rng.random(shape) < 0.1, np.float32(far), x)
        x = np.where(r.rng.random(shape) < 0.5, np.round(x * 2) / 2, x).astype(np.float32)
    elif opset < 23 and r.chance(0.2) and how == "tensor":
        x, zero = r.rng.integers(-9999, 9999, shape).astype(np.int32), None
    else:
        x = r.rng.integers(int(info.min), int(info.max), shape, endpoint=True).astype(target)
    plain = target == np.uint8 if op == "QuantizeLinear" else True
    return Case(op, [x, scale, zero if not plain or r.chance(0.7) else None], attributes, opset=opset,
                constant=r.pick((), (1, 2)))


@edges("text", 2)
def _(r):
    op = r.pick("StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer", "Tokenizer",
                "LabelEncoder")
    words = np.array(["", "a", "bc", "Zebra", "\u00e9t\u00e9", "x y", "-1", "A", "aa", "b  c", " lead", "\u00c9T\u00c9"], object)
    if op == "StringNormalizer":
        x = r.rng.choice(words, r.pick((r.int(1, 6),), (1, r.int(1, 6))))
        return Case(op, [x], {"case_change_action": r.pick(None, "NONE", "LOWER", "UPPER"), "locale": r.pick(None, "en_US.UTF-8"),
                              "is_case_sensitive": r.pick(None, 0, 1), "stopwords": r.pick(None, ["a"], ["a", "bc", ""])},
                    opset=10)
    if op == "StringConcat":
        return Case(op, [r.rng.choice(words, s).reshape(s) for s in r.broadcast()], opset=20)
    if op == "StringSplit":
        x = r.rng.choice(words[1:], r.shape(0, 3))  # of an empty text onnxruntime makes none, Python one
        return Case(op, [np.asarray(x, object)], {"delimiter": r.pick(None, " ", "", "a", "  "), "maxsplit": r.pick(None, 0, 1, 2)},
                    outputs=2, opset=20)
    if op == "RegexFullMatch":
        pattern = r.pick("a+", "[A-Z].*", "", ".", "(a|bc)", "\\s*\\w+", "[^a]*", "(?i)a", "x\\sy|-?\\d")
        return Case(op, [np.asarray(r.rng.choice(words, r.shape()), object)], {"pattern": pattern}, opset=20)
    if op == "TfIdfVectorizer":
        pool, counts, grams = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7], [0, 4], [2, 3, 5, 4]
        at, low = [int(v) for v in r.rng.permutation(7)], r.int(1, 2)
        x = r.rng.choice(np.array([2, 3, 4, 5, 6, 7, 8, 1]), r.pick((r.int(0, 14),), (r.int(1, 3), r.int(1, 14))))
        attributes = {"mode": r.pick("TF", "IDF", "TFIDF"), "min_gram_length": low, "max_gram_length": r.int(low, 2),
                      "max_skip_count": r.int(0, 5), "ngram_counts": counts, "ngram_indexes": at,
                      "pool_int64s": pool, "weights": r.pick(None, [0.5 * k for k in at])}
        if r.chance(0.4):
            x, attributes["pool_strings"] = x.astype(str).astype(object), [str(v) for v in pool]
            del attributes["pool_int64s"]
        else:
            x = x.astype(r.pick(np.int32, np.int64))
        return Case(op, [x], attributes, opset=9, tolerance="loose")
    if op == "Tokenizer":
        x = r.rng.choice(np.array(["a b c", "", "aa,bb", "one two  three"], object), r.pick((2,), (2, 3)))
        return Case(op, [x], {"mark": r.int(0, 1), "pad_value": "#", "mincharnum": r.int(1, 2), "separators": r.pick([" "], ["", ], [",", " "])},
                    domain="com.microsoft", opset=1)
    kinds = {"strings": TEXT, "int64s": np.dtype(np.int64), "floats": np.dtype(np.float32)}
    key, value = r.pick(("strings", "int64s"), ("int64s", "strings"), ("floats", "strings"), ("strings", "floats"),
                        ("int64s", "floats"), ("floats", "int64s"), ("int64s", "int64s"), ("floats", "floats"),
                        ("strings", "strings"))
    keys = {"strings": ["a", "bc", "Zebra"], "int64s": [1, 2, -3], "floats": [1.0, 2.5, float("nan")]}[key]
    values = {"strings": ["p", "q", "r"], "int64s": [7, 8, 9], "floats": [0.5, 1.5, 2.5]}[value]
    opset = r.pick(2, 4)
    if opset == 2:
        keys = [4.0 if k != k else k for k in keys]  # NaN is a key since version 4
    x = np.asarray(r.rng.choice(np.array([*keys, keys[0], {"strings": "none", "int64s": 0, "floats": 9.0}[key]],
                                         kinds[key]), r.shape(0, 3))).astype(kinds[key])
    default = r.pick(None, {"strings": "other", "int64s": 99, "floats": 9.5}[value])
    return Case(op, [x], {f"keys_{key}": keys, f"values_{value}": values,
                          {"strings": "default_string", "int64s": "default_int64", "floats": "default_float"}[value]: default},
                domain="ai.onnx.ml", opset=opset)


@edges("sequence", 2)
def _(r):
    op = r.pick("SequenceAt", "SequenceInsert", "SequenceErase", "SequenceLength", "SplitToSequence",
                "ConcatFromSequence", "SequenceConstruct")
    dtype, shape = r.dtype("float", "int64", "string"), r.shape(1, 3, empty=0)
    items = [r.array(dtype, shape) for _ in range(r.int(1, 4))]
    n = len(items)
    at = np.array(r.int(-n, n - 1), r.pick(np.int32, np.int64))
    if op == "SequenceConstruct":
        return Case(op, items, opset=11)
    if op == "SequenceLength":
        return Case(op, [items], opset=11)
    if op == "SequenceAt":
        return Case(op, [items, at], opset=11)
    if op == "SequenceErase":
        return Case(op, [items, r.pick(None, at)], opset=11) if n > 1 else None
    if op == "SequenceInsert":
        at = r.pick(None, at, np.array(n))
        return Case(op, [items, r.array(dtype, shape), at], opset=11)
    axis = r.axis(len(shape))
    if op == "ConcatFromSequence":
        new = r.pick(None, 0, 1)
        return Case(op, [items], {"axis": r.int(-len(shape) - 1, len(shape)) if new else axis, "new_axis": new}, opset=11)
    d, split = shape[axis], None
    if r.chance(0.7):
        split = np.array(r.int(1, d + 1)) if r.chance(0.4) else np.array([d // 2, d - d // 2])
    return Case(op, [items[0], split], {"axis": r.pick(None, axis) if axis % len(shape) == 0 else axis,
                                        "keepdims": r.pick(None, 0, 1)}, opset=r.pick(11, 24))


@edges("learning", 3)
def _(r):
    op = r.pick("Binarizer", "ArrayFeatureExtractor", "Imputer", "Normalizer", "Scaler", "OneHotEncoder",
                "FeatureVectorizer", "LinearRegressor", "LinearClassifier", "SVMRegressor", "SVMClassifier",
                "TreeEnsembleRegressor", "TreeEnsembleClassifier", "CategoryMapper")
    n, c = r.int(1, 5), r.int(1, 5)
    x, ml = f32(r, (n, c) if r.chance(0.8) else (c,), 3), {"domain": "ai.onnx.ml", "opset": 1, "tolerance": "loose"}
    post = r.pick(None, "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    if op == "Binarizer":
        return Case(op, [x], {"threshold": r.pick(None, 0.5)}, **ml)
    if op == "ArrayFeatureExtractor":
        index = r.rng.integers(0, x.shape[-1], r.int(1, 5))
        return Case(op, [x, index], **ml)
    if op == "Imputer":
        if r.chance(0.4):
            return Case(op, [np.round(x).astype(np.int64)], {"imputed_value_int64s": r.pick([7], list(range(c))),
                                                             "replaced_value_int64": 1}, **ml)
        x = np.where(r.rng.random(x.shape) < 0.3, np.float32(np.nan), np.round(x)).astype(np.float32)
        return Case(op, [x], {"imputed_value_floats": r.pick([7.0], [float(k) for k in range(c)]),
                              "replaced_value_float": r.pick(float("nan"), 1.0)}, **ml)
    if op == "Normalizer":
        return Case(op, [x if r.chance(0.5) else np.round(x).astype(np.int64)], {"norm": r.pick(None, "MAX", "L1", "L2")}, **ml)
    if op == "Scaler":
        k = r.pick(1, c)
        return Case(op, [x.astype(r.pick(np.float32, np.int64, np.float64, np.int32))],
                    {"offset": f32(r, k).tolist(), "scale": f32(r, k).tolist()}, **ml)
    if op == "OneHotEncoder":
        if r.chance(0.5):
            return Case(op, [r.rng.choice(np.array(["a", "b", "z"], object), r.shape(1, 3, empty=0))],
                        {"cats_strings": ["a", "b", "c"], "zeros": 1}, **ml)
        return Case(op, [r.rng.integers(0, 5, r.shape(1, 3, empty=0)).astype(r.pick(np.int64, np.float32, np.int32))],
                    {"cats_int64s": [0, 2, 3], "zeros": r.pick(None, 1)}, **ml)
    if op == "FeatureVectorizer":
        parts = [f32(r, (n, r.int(1, 3))) for _ in range(r.int(1, 3))]
        return Case(op, parts, {"inputdimensions": [p.shape[1] for p in parts]}, **ml)
    if op == "CategoryMapper":
        cats = {"cats_int64s": [1, 2, 3], "cats_strings": ["a", "b", "c"]}
        if r.chance(0.5):
            return Case(op, [r.rng.choice(np.array(["a", "b", "z"], object), (n, c))], {**cats, "default_int64": r.pick(None, 9)}, **ml)
        return Case(op, [r.rng.integers(0, 5, (n, c))], {**cats, "default_string": r.pick(None, "none")}, **ml)
    classes = r.pick(2, 3)
    x = x.reshape(-1, c)
    labels = {"classlabels_ints": list(range(5, 5 + classes))} if op.startswith("Linear") and r.chance(0.5) else \
        {"classlabels_strings": ["u", "v", "w"][:classes]}
    if op == "LinearRegressor":
        targets = r.int(1, 3)
        return Case(op, [x], {"coefficients": f32(r, targets * c).tolist(), "targets": targets,
                              "intercepts": r.pick(None, f32(r, targets).tolist()),
                              "post_transform": r.pick(None, "NONE")}, **ml)
    if op == "LinearClassifier":
        rows = r.pick(classes, 1) if classes == 2 else classes
        return Case(op, [x], {"coefficients": f32(r, rows * c).tolist(), "intercepts": f32(r, rows).tolist(),
                              # onnxruntime makes no softmax of one score.
                              "post_transform": None if post == "PROBIT" or rows == 1 and "SOFT" in str(post) else post,
                              "multi_class": r.int(0, 1), **labels}, outputs=2, **ml)
    kernel, params = r.pick("LINEAR", "POLY", "RBF", "SIGMOID"), [0.3, 0.5, 2.0]
    if op == "SVMRegressor":
        k = r.int(1, 4)
        return Case(op, [x], {"kernel_type": kernel, "kernel_params": params, "n_supports": k,
                              "coefficients": f32(r, k).tolist(), "support_vectors": f32(r, k * c).tolist(),
                              "rho": [0.25], "one_class": r.pick(None, 1)}, **ml)
    if op == "SVMClassifier":
        each = [r.int(1, 2) for _ in range(classes)]  # the coefficients of each sum to 0: they have both signs
        k, pairs = sum(each), classes * (classes - 1) // 2
        prob = {"prob_a": f32(r, pairs).tolist(), "prob_b": f32(r, pairs).tolist()} if r.chance(0.4) else {}
        return Case(op, [x], {"kernel_type": kernel, "kernel_params": params, "vectors_per_class": each,
                              "coefficients": [-0.5, *f32(r, k * (classes - 1) - 1).tolist()], "rho": f32(r, pairs).tolist(),
                              "support_vectors": f32(r, k * c).tolist(), "post_transform": r.pick(None, "NONE"),
                              **prob, **labels}, outputs=2, **ml)
    mode = r.pick("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
    trees = r.int(1, 3)
    x = np.where(r.rng.random(x.shape) < 0.2, np.float32(np.nan), np.round(x)).astype(r.pick(np.float32, np.float64))
    nodes = {"nodes_treeids": np.repeat(range(trees), 5).tolist(), "nodes_nodeids": [0, 1, 2, 3, 4] * trees,
             "nodes_featureids": r.rng.integers(0, c, 5 * trees).tolist(),
             "nodes_modes": [mode, mode, "LEAF", "LEAF", "LEAF"] * trees,
             "nodes_truenodeids": [1, 3, 0, 0, 0] * trees, "nodes_falsenodeids": [2, 4, 0, 0, 0] * trees,
             "nodes_values": [float(r.int(-2, 2)) for _ in range(5 * trees)],
             "nodes_missing_value_tracks_true": r.pick(None, [r.int(0, 1) for _ in range(5 * trees)])}
    # Of two classes onnxruntime looks at the second's sign only; a leaf without weights gives its value there.
    outs = 3 if op.endswith("Classifier") else r.int(1, 3)
    labels = {"classlabels_strings": ["u", "v", "w"]}
    leaves = [(t, k, o) for t in range(trees) for k in (2, 3, 4) for o in range(outs)]
    name = "class" if op.endswith("Classifier") else "target"
    nodes.update({f"{name}_treeids": [v[0] for v in leaves], f"{name}_nodeids": [v[1] for v in leaves],
                  f"{name}_ids": [v[2] for v in leaves],
                  f"{name}_weights": [float(np.float32(r.rng.uniform(-1, 1))) for _ in leaves]})
    if name == "class":
        return Case(op, [x], {**nodes, **labels, "post_transform": post if post != "PROBIT" else None,
                              "base_values": r.pick(None, [0.5, -0.25, 0.1])}, outputs=2, **ml)
    return Case(op, [x.astype(np.float32)], {**nodes, "n_targets": outs, "aggregate_function": r.pick(None, "SUM", "AVERAGE", "MIN", "MAX"),
                                             "base_values": r.pick(None, [0.5, -0.25, 0.1][:outs]),
                                             "post_transform": r.pick(None, "NONE")}, **ml)
