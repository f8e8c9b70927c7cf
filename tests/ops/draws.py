# SPDX-License-Identifier: Apache-2.0
"""Nodes drawn at random: the draws (shapes, values, attributes), families of functions that make a
case of them, and the run of many with its summary. Used by test_properties.py and test_edges.py."""
import collections

import ml_dtypes
import numpy as np
import onnx
from single_nodes import DTYPES, number_of, run_cases

INTS = ["int8", "int16", "int32", "int64"]
UINTS = ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float", "double", "float16"]
NUMBERS = INTS + UINTS + FLOATS
BATCH = 2000


class Families(collections.defaultdict):
    """{name: functions}: each makes a Case of a Random, or None when the draw has no meaning."""

    def __init__(self):
        super().__init__(list)

    def __call__(self, name, weight=1):
        def register(function):
            self[name].extend([function] * weight)
            return function
        return register


class Random:
    """Draws shapes, values and attributes."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def int(self, low, high):
        """low <= int <= high"""
        return int(self.rng.integers(low, high + 1))

    def pick(self, *choices):
        return choices[self.int(0, len(choices) - 1)]

    def chance(self, p):
        return bool(self.rng.random() < p)

    def shape(self, low=0, high=5, most=7, empty=0.04, total=4000):
        if self.chance(0.03) and high == 5:
            high = 10
        rank = self.int(low, high)
        most = most if rank < 5 else 3
        dims = [self.int(1, most) for _ in range(rank)]
        if rank and self.chance(empty):
            dims[self.int(0, rank - 1)] = 0
        while np.prod(dims, dtype=float) > total:
            dims[int(np.argmax(dims))] = 1
        return tuple(dims)

    def dtype(self, *names):
        return DTYPES[self.pick(*names)]

    def array(self, dtype, shape, scale=2.0, edges=True):
        """Values of a type; now and then the edges of the type are among them."""
        dtype = np.dtype(dtype)
        if dtype.kind == "O":
            words = ["", "a", "bc", "Zebra", "\u00e9t\u00e9", "x y", "-1", "a"]
            return self.rng.choice(np.array(words, object), shape).reshape(shape)
        if dtype.kind == "b":
            return self.rng.random(shape) < 0.5
        if dtype.kind == "c":
            return np.asarray(self.rng.standard_normal(shape) + 1j *
                              self.rng.standard_normal(shape)).astype(dtype)
        some = edges and self.chance(0.3)
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            if some:
                edge = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1], dtype)
                return self.rng.choice(edge, shape).reshape(shape)
            low, high = max(info.min, -100), min(info.max, 100)
            return np.asarray(self.rng.integers(low, high, shape, endpoint=True)).astype(dtype)
        if dtype.name in ("int4", "uint4", "int2", "uint2"):
            info = ml_dtypes.iinfo(dtype)
            return np.asarray(self.rng.integers(int(info.min), int(info.max), shape,
                                                endpoint=True)).astype(dtype)
        values = np.asarray(self.rng.standard_normal(shape) * scale)
        if some and dtype.name.startswith(("float16", "float32", "float64", "bfloat16")):
            special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]
            mask = self.rng.random(shape) < 0.2
            values = np.where(mask, self.rng.choice(special, shape), values)
        elif self.chance(0.3):
            values = np.round(values)
        with np.errstate(all="ignore"):
            return np.asarray(values).astype(dtype)

    def axis(self, rank):
        return self.int(-rank, rank - 1)

    def axes(self, rank, least=1):
        chosen = self.rng.permutation(rank)[:self.int(least, rank)]
        return [int(a - rank if self.chance(0.4) else a) for a in chosen]

    def broadcast(self, count=2, high=5):
        """Shapes that broadcast to one."""
        whole = self.shape(0, high)
        shapes = []
        for _ in range(count):
            shape = [1 if self.chance(0.25) else d for d in whole]
            shapes.append(tuple(shape[self.int(0, len(shape)) if self.chance(0.3) else 0:]))
        return shapes


def exact(case):
    """Nothing is computed: results are the same bits."""
    case.tolerance = "exact"
    return case


def allowed(case):
    """Does the schema allow the types of the inputs? The standard has none of com.microsoft."""
    if case.domain == "com.microsoft":
        return True
    schema = onnx.defs.get_schema(case.op, case.opset, case.domain)
    for i, value in enumerate(case.inputs):
        if value is None:
            continue
        item = value[0] if isinstance(value, list) else value
        name = f"tensor({onnx.TensorProto.DataType.Name(number_of(np.asarray(item).dtype)).lower()})"
        name = f"seq({name})" if isinstance(value, list) else name
        if name not in schema.inputs[min(i, len(schema.inputs) - 1)].types:
            return False
    return True


def make_cases(families, reference, count, seed):
    """(solved cases, skipped {reason: count})"""
    makers = [(name, maker) for name in sorted(families) for maker in families[name]]
    cases, skipped = [], collections.Counter()
    at = 0
    while len(cases) < count:
        name, maker = makers[at % len(makers)]
        draw = Random([seed, at])
        at += 1
        case = maker(draw)
        if case is None or not allowed(case):
            continue
        case.family = name
        why = case.solve(reference)
        if why:
            skipped[f"{name}: {case.op}: {why}"] += 1
            continue
        cases.append(case)
    return cases, skipped


def run_all(sardonyx, folder, families, reference, count, seed, keep=None):
    failed, skipped, counts = [], collections.Counter(), collections.Counter()
    for first in range(0, count, BATCH):
        cases, more = make_cases(families, reference, min(BATCH, count - first), seed * 1000 + first // BATCH)
        skipped.update(more)
        counts.update(case.family for case in cases)
        failed += run_cases(sardonyx, folder / str(first), cases, keep)
    return failed, skipped, counts


def summary(failed, skipped, counts):
    bad = collections.Counter(case.family for case, _ in failed)
    lines = [f"FAILED {case.family}: {case.text()}: {why}" for case, why in failed]
    lines += [f"skipped {n} x {reason}" for reason, n in sorted(skipped.items())]
    lines.append("; ".join(f"{name} {n - bad[name]}/{n}" for name, n in sorted(counts.items())))
    total = sum(counts.values())
    lines.append(f"{total - len(failed)} of {total} nodes right in {len(counts)} families, "
                 f"{sum(skipped.values())} skipped")
    return "\n".join(lines)
