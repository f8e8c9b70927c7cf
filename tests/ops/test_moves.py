# SPDX-License-Identifier: Apache-2.0
"""Operators that only move data, where rows are short or axes are not touched: Gather of single
elements and of the one slice there is, Pad with axes behind the padded ones, and short last axes.
Expected values come from the ONNX reference evaluator."""
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from case_folder import write_case

RNG = np.random.default_rng(11)
TYPES = (np.int8, np.float16, np.float32, np.float64)


def values(dtype, *shape):
    if dtype is np.str_:
        return RNG.integers(0, 999, shape).astype(np.str_).astype(object)
    if dtype is np.bool_:
        return RNG.integers(0, 2, shape).astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        return (RNG.integers(-99, 99, shape) + 1j * RNG.integers(-99, 99, shape)).astype(dtype)
    return RNG.integers(-99, 99, shape).astype(dtype)


def model_of(nodes, feeds, constants, outputs=1, opset=19):
    kind = helper.np_dtype_to_tensor_dtype
    inputs = [helper.make_tensor_value_info(n, onnx.TensorProto.STRING if a.dtype == object else kind(a.dtype), a.shape)
              for n, a in feeds.items()]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=f"y{k}") for k in range(outputs)],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()])
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", opset)])


def save(folder, nodes, feeds, constants=None, outputs=1, reference=None):
    """reference: the nodes that tell what to expect, where the evaluator lacks something of `nodes`."""
    made = model_of(nodes, feeds, constants or {}, outputs)
    told = model_of(reference[0], feeds, reference[1], outputs) if reference else made
    expected = ReferenceEvaluator(told).run(None, feeds)
    for info, array in zip(made.graph.output, expected):
        given = next(iter(feeds.values()))
        kind = onnx.TensorProto.STRING if given.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype)
        info.CopyFrom(helper.make_tensor_value_info(info.name, kind, array.shape))
    write_case(folder, made, feeds, [np.asarray(a, given.dtype) for a in expected])


def one(op, *inputs, outputs=1, **attributes):
    return [helper.make_node(op, list(inputs), [f"y{k}" for k in range(outputs)], **attributes)]


def check(sardonyx, folder):
    count = len(list(folder.iterdir()))
    for more in (("--threads", 1), ("--threads", 3), ("--level", "none")):
        out = sardonyx("test", folder, "--rtol", 0, "--atol", 0, *more, code=None).out
        assert f"{count} passed, 0 failed" in out, out


# ---- Gather ----

@pytest.mark.parametrize("dtype", (*TYPES, np.bool_, np.complex128, np.str_))
def test_gather_short_slices(sardonyx, tmp_path, dtype):
    """Slices of 1 to 40 elements; fewer and more indices than are read at a time; few and many parts."""
    for index_type in (np.int32, np.int64):
        for n, (outer, length, run, count) in enumerate((
                (7, 5, 1, 9), (900, 40, 1, 150), (2, 30, 1, 9000), (5000, 3, 1, 1), (40, 33, 2, 50),
                (60, 33, 3, 50), (30, 9, 5, 40), (9, 9, 17, 40), (1, 200, 33, 700), (3, 1, 40, 5))):
            index = RNG.integers(-length, length, count).astype(index_type)
            save(tmp_path / f"{np.dtype(index_type).name}_{n}", one("Gather", "x", "i", axis=1),
                 {"x": values(dtype, outer, length, run)}, {"i": index})
    check(sardonyx, tmp_path)


@pytest.mark.parametrize("dtype", (*TYPES, np.complex128, np.str_))
def test_few_of_many_rows(sardonyx, tmp_path, dtype):
    """Colours of pixels, corners of boxes: chosen, turned around and brought to the front of the pixels or behind them."""
    for length in (2, 3, 4, 5, 9, 85):
        for rows in (1, 3, 5, 700):
            name, x = f"{length}_{rows}", values(dtype, rows, length)
            for count in range(2, 10):
                save(tmp_path / f"gather_{name}_{count}", one("Gather", "x", "i", axis=1), {"x": x},
                     {"i": RNG.integers(-length, length, count)})
            for end in (-2 ** 31, -min(length, 4) - 1):
                save(tmp_path / f"turned_{name}_{end}", one("Slice", "x", "b", "e", "a", "s"), {"x": x},
                     {"b": np.array([-1]), "e": np.array([end]), "a": np.array([1]), "s": np.array([-1])})
            save(tmp_path / f"front_{name}", one("Transpose", "x"), {"x": x})
            save(tmp_path / f"behind_{name}", one("Transpose", "x"), {"x": np.ascontiguousarray(x.T)})
    check(sardonyx, tmp_path)


@pytest.mark.parametrize("dtype", (*TYPES, np.complex128, np.str_))
def test_gather_from_a_table(sardonyx, tmp_path, dtype):
    for index_type in (np.int32, np.int64):
        for count in (1, 70, 5000, 70000):
            for negative in {None, 0, count // 2, count - 1}:
                index = RNG.integers(0, 50, count).astype(index_type)
                if negative is not None:
                    index[negative] -= 50
                save(tmp_path / f"{np.dtype(index_type).name}_{count}_{negative}", one("Gather", "x", "i"),
                     {"x": values(dtype, 50)}, {"i": index})
    check(sardonyx, tmp_path)


@pytest.mark.parametrize("count", (1, 7, 5000))
@pytest.mark.parametrize("wrong", (-5, 4, 2 ** 40, -2 ** 63))
def test_gather_outside(sardonyx, tmp_path, count, wrong):
    index = np.zeros(count, np.int64)
    index[count // 2] = wrong
    for axis in (0, 1):
        feeds = {"x": values(np.float32, *(3, 4)[1 - axis:]), "i": index}
        folder = tmp_path / str(axis)
        data = write_case(folder, model_of(one("Gather", "x", "i", axis=axis), feeds, {}), feeds, [])
        err = sardonyx("run", folder / "model.onnx", "--inputs", data, code=1).err
        assert f"Gather: index {wrong} is outside axis {axis} of length 4" in err


@pytest.mark.parametrize("axis", (0, 2, -1))
@pytest.mark.parametrize("shape", ((), (1,), (1, 1), (1, 1, 1)))
@pytest.mark.parametrize("index", (0, -1))
def test_gather_of_the_only_slice(sardonyx, tmp_path, axis, shape, index):
    feeds = {"x": values(np.float32, 1, 3, 1)}
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Gather", ["a", "i"], ["g"], axis=axis),
             helper.make_node("Neg", ["g"], ["y0"])]
    save(tmp_path / "case", nodes, feeds, {"i": np.full(shape, index, np.int64)})
    check(sardonyx, tmp_path)
    out = sardonyx("profile", tmp_path / "case/model.onnx", "--runs", 1).out
    assert "Gather" not in out


def test_gather_that_stays(sardonyx, tmp_path):
    """Two indices, an index that is given at run time, an axis that is longer, no slice at all."""
    x = values(np.float32, 4, 1)
    save(tmp_path / "two", one("Gather", "x", "i", axis=1), {"x": x}, {"i": np.array([0, -1])})
    save(tmp_path / "given", one("Gather", "x", "i", axis=1), {"x": x, "i": np.array([0])})
    save(tmp_path / "given_last", one("Gather", "x", "i", axis=2),
         {"x": values(np.float32, 90, 900, 1), "i": np.array([[-1]])})
    save(tmp_path / "longer", one("Gather", "x", "i", axis=0), {"x": x}, {"i": np.array([0])})
    save(tmp_path / "to_scalar", one("Gather", "x", "i", axis=0), {"x": x[0]}, {"i": np.array(-1)})
    save(tmp_path / "empty", one("Gather", "x", "i", axis=1), {"x": values(np.float32, 0, 1)}, {"i": np.array([0])})
    check(sardonyx, tmp_path)


def places(shape, *slices):
    """All places of a box in a tensor of that shape, as PyTorch writes x[a:b, c:d] = y."""
    axes = [np.arange(n)[s] for n, s in zip(shape, slices)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).astype(np.int64)


BOXES = [(slice(1, 4), slice(2, 9)), (slice(None), slice(0, 8)), (slice(0, 5, 2), slice(4, 8)),
         (slice(3, 4), slice(None)), (slice(None), slice(0, 10, 3)), (slice(None, None, -1), slice(5, 9))]


@pytest.mark.parametrize("dtype", (*TYPES, np.str_))
@pytest.mark.parametrize("box", range(len(BOXES)))
def test_known_boxes(sardonyx, tmp_path, box, dtype):
    """Known places that follow each other are moved as runs."""
    shape, at = (5, 10), places((5, 10), *BOXES[box])
    last = np.where(RNG.integers(0, 2, at.shape), at, at - np.array(shape))  # some from the end
    for k, index in enumerate((at, last)):
        save(tmp_path / "all" / f"gather{k}", one("GatherND", "x", "i"), {"x": values(dtype, *shape)}, {"i": index})
        save(tmp_path / "all" / f"scatter{k}", one("ScatterND", "x", "i", "u"),
             {"x": values(dtype, *shape), "u": values(dtype, *at.shape[:-1])}, {"i": index})
        save(tmp_path / "all" / f"rows{k}", one("GatherND", "x", "i"), {"x": values(dtype, *shape, 3)}, {"i": index})
    check(sardonyx, tmp_path / "all")


@pytest.mark.parametrize("dtype", (np.int8, np.float32, np.str_))
def test_known_windows(sardonyx, tmp_path, dtype):
    """Windows that overlap, also as sums."""
    windows = (np.arange(6)[:, None] * 3 + np.arange(8)).astype(np.int64)
    for axis, shape in enumerate(((23, 4), (3, 23), (2, 3, 23))):
        for k, index in enumerate((windows, windows - 23, windows[:, :3], windows[:, ::2])):
            save(tmp_path / "all" / f"{axis}.{k}", one("Gather", "x", "i", axis=axis), {"x": values(dtype, *shape)},
                 {"i": index})
    if dtype is not np.str_:
        for reduction in ("none", "add", "max"):
            save(tmp_path / "all" / reduction, one("ScatterND", "x", "i", "u", reduction=reduction),
                 {"x": values(dtype, 23), "u": values(dtype, 6, 8)}, {"i": windows[..., None]})
    check(sardonyx, tmp_path / "all")


@pytest.mark.parametrize("op", ["Gather", "GatherND", "ScatterND"])
def test_known_places_outside(sardonyx, tmp_path, op):
    index = np.arange(5, 13).astype(np.int64)
    feeds = {"x": values(np.float32, 12)} | ({"u": values(np.float32, 8)} if op == "ScatterND" else {})
    model = model_of(one(op, "x", "i", *[n for n in feeds if n == "u"]), feeds,
                     {"i": index if op == "Gather" else index[:, None]})
    onnx.save(model, tmp_path / "m.onnx")
    assert "index 12 is outside axis 0 of length 12" in sardonyx("run", tmp_path / "m.onnx", code=1).err


@pytest.mark.parametrize("wrong", (1, -2))
@pytest.mark.parametrize("given", (False, True))
def test_gather_outside_of_the_only_slice(sardonyx, tmp_path, given, wrong):
    feeds, index = {"x": values(np.float32, 4, 1, 3)}, {"i": np.array([[wrong]])}
    feeds, constants = ({**feeds, **index}, {}) if given else (feeds, index)
    data = write_case(tmp_path, model_of(one("Gather", "x", "i", axis=1), feeds, constants), feeds, [])
    err = sardonyx("run", tmp_path / "model.onnx", "--inputs", data, code=1).err
    assert f"Gather: index {wrong} is outside axis 1 of length 1" in err


# ---- Pad ----

def pad(folder, x, pads, mode, value):
    """What is cut comes first: the evaluator knows no negative pads."""
    rank, pads = x.ndim, np.array(pads)
    constants = {"p": pads} | ({"v": np.array(value, x.dtype)} if mode == "constant" else {})
    starts, ends = -np.minimum(pads[:rank], 0), x.shape + np.minimum(pads[rank:], 0)
    told = [helper.make_node("Slice", ["x", "s", "e"], ["c"])]
    told += one("Pad", "c", *constants, mode=mode)
    save(folder, one("Pad", "x", *constants, mode=mode), {"x": x}, constants,
         reference=(told, {**constants, "p": np.maximum(pads, 0), "s": starts, "e": ends}))


PADS = {  # lengths, pads
    "last_of_one": ((2, 5, 7, 1), (0, 0, 2, 0, 0, 0, 3, 0)),
    "trailing": ((3, 6, 5, 4), (0, 2, 0, 0, 0, 1, 0, 0)),
    "trailing_long": ((2, 9, 40, 30), (0, 3, 0, 0, 0, 4, 0, 0)),
    "image": ((1, 70, 64, 3), (0, 2, 3, 0, 0, 1, 4, 0)),
    "planes": ((2, 9, 40, 40), (0, 0, 1, 2, 0, 0, 2, 1)),
    "one_before_two": ((3, 5, 2), (0, 1, 0, 0, 1, 0)),
    "one_before_four": ((3, 5, 4), (0, 1, 0, 0, 1, 0)),
    "first": ((4, 3, 5), (1, 0, 0, 2, 0, 0)),
    "nothing": ((4, 3, 5), (0, 0, 0, 0, 0, 0)),
    "short_last": ((300, 50, 3), (0, 0, 1, 0, 0, 1)),
    "cut": ((6, 7, 5), (0, -2, 0, 0, -1, 0)),
    "cut_and_pad": ((6, 7, 5), (-1, 3, 0, 2, -2, 0)),
    "cut_last": ((6, 7, 5), (0, 1, -1, 0, 1, 2)),
    "shift": ((6, 7, 5), (0, -1, 0, 0, 1, 0)),
}


@pytest.mark.parametrize("mode", ("constant", "edge", "reflect", "wrap"))
@pytest.mark.parametrize("dtype", TYPES)
def test_pad(sardonyx, tmp_path, dtype, mode):
    for name, (shape, pads) in PADS.items():
        pad(tmp_path / name, values(dtype, *shape), pads, mode, 7)
    if mode == "constant":
        pad(tmp_path / "empty", values(dtype, 0, 3, 2), (2, 0, 0, 1, 0, 0), mode, 7)
    check(sardonyx, tmp_path)


# ---- short rows ----

@pytest.mark.parametrize("dtype", (np.int8, np.float16, np.float32, np.complex128))
def test_short_rows(sardonyx, tmp_path, dtype):
    for k in (1, 2, 3, 4, 5, 8):
        x = {"x": values(dtype, 6, 35, 40, k)}
        save(tmp_path / f"transpose_{k}", one("Transpose", "x", perm=[0, 2, 1, 3]), x)
        save(tmp_path / f"transpose_all_{k}", one("Transpose", "x", perm=[3, 2, 1, 0]), x)
        save(tmp_path / f"tile_{k}", one("Tile", "x", "r"), x, {"r": np.array([1, 1, 2, 3])})
        save(tmp_path / f"expand_{k}", one("Expand", "x", "s"), {"x": values(dtype, 6, 35, 40, 1)},
             {"s": np.array([6, 35, 40, k])})
        save(tmp_path / f"expand_rows_{k}", one("Expand", "x", "s"), {"x": values(dtype, 60, 35, 1, k)},
             {"s": np.array([60, 35, 4, k])})
        for name, (start, step) in {"even": (0, 1), "odd": (1, 1), "step": (k - 1, 2), "back": (-2, -2)}.items():
            lists = np.array([[start], [-99 if step < 0 else start + k * step], [3], [step]])
            save(tmp_path / f"slice_{name}_{k}", one("Slice", "x", *"seat"), {"x": values(dtype, 6, 35, 40, 3 * k)},
                 dict(zip("seat", lists)))
        save(tmp_path / f"concat_{k}", one("Concat", "x", "z", "x", axis=3),
             {**x, "z": values(dtype, 6, 35, 40, 4)})
        save(tmp_path / f"split_{k}", one("Split", "x", "n", outputs=3, axis=3),
             {"x": values(dtype, 6, 35, 40, 3 * k + 2)}, {"n": np.array([k, k + 2, k])}, outputs=3)
    check(sardonyx, tmp_path)
