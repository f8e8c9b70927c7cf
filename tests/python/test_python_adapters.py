# SPDX-License-Identifier: Apache-2.0
"""Files of LoRA adapters: ours and those of the package onnxruntime, broken ones, runs with them."""
import numpy as np
import pytest
from onnx import TensorProto, helper

ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "one": np.array([7], np.int64),
          "empty": np.zeros((0, 2), np.float16), "longer name": np.array([1.5], np.float16)}


def make(package, path, arrays=None, versions=(2, 3)):
    form = package.AdapterFormat()
    form.set_adapter_version(versions[0])
    form.set_model_version(versions[1])
    arrays = ARRAYS if arrays is None else arrays
    form.set_parameters({name: package.OrtValue.ortvalue_from_numpy(array)
                         for name, array in arrays.items()})
    form.export_adapter(str(path))
    return str(path)


def look(package, path):
    form = package.AdapterFormat.read_adapter(path)
    versions = form.get_format_version(), form.get_adapter_version(), form.get_model_version()
    arrays = {name: item.numpy() for name, item in form.get_parameters().items()}
    return versions, {name: (array.dtype, array.shape, array.tolist()) for name, array in arrays.items()}


def test_files_of_one_are_read_by_the_other(sdx, ort, tmp_path):
    ours, theirs = make(sdx, tmp_path / "ours"), make(ort, tmp_path / "theirs")
    expected = (1, 2, 3), {name: (array.dtype, array.shape, array.tolist())
                           for name, array in ARRAYS.items()}
    for package in (sdx, ort):
        assert look(package, ours) == expected
        assert look(package, theirs) == expected


def scaled():
    """y = x * s + b; both may be fed, b: [N]."""
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Mul", ["x", "s"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [info(name, TensorProto.FLOAT, ["N"]) for name in ("x", "s", "b")],
        [info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor(name, TensorProto.FLOAT, [1], [value]) for name, value in (("s", 1), ("b", 0))])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8).SerializeToString()


@pytest.mark.parametrize("names", [["s"], ["s", "b"], ["b", "s"], ["s", "s2"]])
def test_runs(sdx, ort, tmp_path, names):
    """Adapters of different parameters, alone and several at once."""
    files = {"s": {"s": np.array([3], np.float32)}, "b": {"b": np.array([5], np.float32)},
             "s2": {"s": np.array([4], np.float32)}}
    x, results = np.arange(3, dtype=np.float32), []
    for package in (sdx, ort):
        session = package.InferenceSession(scaled(), providers=["CPUExecutionProvider"])
        options, adapters = package.RunOptions(), [package.LoraAdapter() for _ in names]
        for name, adapter in zip(names, adapters):
            adapter.Load(make(package, tmp_path / f"{package.__name__}{name}", files[name]))
            options.add_active_adapter(adapter)
        results.append([session.run(None, feed, options)[0].tolist()
                        for feed in ({"x": x}, {"x": x, "s": np.array([10], np.float32)})])
        assert session.run(None, {"x": x})[0].tolist() == x.tolist()
    assert results[0] == results[1]


def test_what_cannot_be_active(sdx, tmp_path):
    adapter, options = sdx.LoraAdapter(), sdx.RunOptions()
    with pytest.raises(RuntimeError, match="nothing loaded"):
        options.add_active_adapter(adapter)
    with pytest.raises(TypeError, match="LoraAdapter is wanted"):
        options.add_active_adapter(3)
    with pytest.raises(RuntimeError, match="failed"):
        adapter.Load(tmp_path / "none")
    adapter.Load(make(sdx, tmp_path / "a", {"other": np.ones(1, np.float32)}))
    options.add_active_adapter(adapter)
    session = sdx.InferenceSession(scaled(), providers=["CPUExecutionProvider"])
    with pytest.raises(sdx.InvalidArgument, match="Invalid input name: other"):
        session.run(None, {"x": np.ones(1, np.float32)}, options)


def test_broken_files(sdx, tmp_path):
    """Cut off at every length, and with every byte changed: a RuntimeError, or other numbers."""
    good = (tmp_path / "good")
    make(sdx, good)
    data, path = good.read_bytes(), tmp_path / "bad"
    broken = [data[:size] for size in range(len(data))]
    broken += [data[:at] + bytes([data[at] ^ flip]) + data[at + 1:] for at in range(len(data))
               for flip in (0x01, 0x80, 0xff)]
    refused = 0
    for content in broken:
        path.write_bytes(content)
        try:
            look(sdx, path)
        except (RuntimeError, UnicodeDecodeError):
            refused += 1
    assert refused > len(data)
