# SPDX-License-Identifier: Apache-2.0
"""sardonyx run: values in from every source, values out as text, JSON and files."""
import models
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper


def test_values(sardonyx, tmp_path):
    model = models.add_model(tmp_path / "add.onnx")
    result = sardonyx("run", model, "--input", "a=1,2,3", "--input", "b=10,20,30.5")
    assert result.out == "y: float[1,3] = 11, 22, 33.5\n"
    # An open dimension takes what the values leave; one value fills a shape.
    result = sardonyx("run", model, "--input", "a=[[1,2,3],[4,5,6]]", "--input", "b=1", "--shape", "b=2x3", "--json")
    assert result.json["outputs"][0]["shape"] == [2, 3]
    assert result.json["outputs"][0]["values"] == [2, 3, 4, 5, 6, 7]


def test_open_dimension_is_shared(sardonyx, tmp_path):
    model = models.add_model(tmp_path / "add.onnx")
    result = sardonyx("run", model, "--shape", "a=5x3", "--json")
    assert result.json["outputs"][0]["shape"] == [5, 3]
    assert sardonyx("run", model, "--json").json["outputs"][0]["shape"] == [1, 3]


def test_made_values_are_the_same_each_time(sardonyx, tmp_path):
    model = models.gemm_model(tmp_path / "gemm.onnx")
    first = sardonyx("run", model, "--json", "--show", "256").json["outputs"][0]["values"]
    assert first == sardonyx("run", model, "--json", "--show", "256").json["outputs"][0]["values"]
    assert any(v > 0 for v in first)
    zeros = sardonyx("run", model, "--input", "x=zeros", "--json").json["outputs"][0]["values"]
    assert zeros == [0] * 8


def test_files(sardonyx, tmp_path):
    model = models.add_model(tmp_path / "add.onnx")
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32) / 3
    np.save(tmp_path / "a.npy", a)
    models.write_pb(tmp_path / "b.pb", b)
    out = tmp_path / "deep" / "results"
    sardonyx("run", model, "--input", f"a={tmp_path}/a.npy", "--input", f"b={tmp_path}/b.pb", "--out", out)
    assert np.array_equal(np.load(out / "y.npy"), a + b)
    np.savez(tmp_path / "both.npz", first=a, second=b)
    result = sardonyx("run", model, "--input", f"a={tmp_path}/both.npz:first", "--input",
                      f"b={tmp_path}/both.npz:second", "--out", out, "--json")
    assert result.json["outputs"][0]["file"] == "y.npy"
    assert np.array_equal(np.load(out / "y.npy"), a + b)


def test_inputs_folder_by_name_and_by_number(sardonyx, tmp_path):
    a, b = np.full((1, 3), 1, np.float32), np.full((1, 3), 10, np.float32)
    make = lambda path: models.save(path, [helper.make_node("Sub", ["a", "b"], ["y"])],
                                    [models.value("a", [1, 3]), models.value("b", [1, 3])], [models.value("y", [1, 3])])
    for inputs, expected in (([("a", a), ("b", b)], -9), ([("b", b), ("a", a)], -9), ([("", b), ("", a)], 9)):
        folder = tmp_path / f"case{len(list(tmp_path.iterdir()))}"
        models.case(folder, inputs, [], make)
        result = sardonyx("run", folder / "model.onnx", "--inputs", folder / "test_data_set_0", "--json")
        assert result.json["outputs"][0]["values"] == [expected] * 3


def test_element_types(sardonyx, tmp_path):
    for dtype, text, shown in ((T.INT64, "-5", "-5"), (T.UINT8, "255", "255"), (T.BOOL, "true", "true"),
                               (T.FLOAT16, "0.1", "0.0999755859"), (T.BFLOAT16, "0.1", "0.100097656"),
                               (T.DOUBLE, "0.1", "0.10000000000000001"), (T.STRING, "two words", "two words")):
        model = models.save(tmp_path / "id.onnx", [helper.make_node("Identity", ["x"], ["y"])],
                            [models.value("x", [1], dtype)], [models.value("y", [1], dtype)])
        out = sardonyx("run", model, "--input", f"x={text}").out
        assert out.split(" = ")[1] == shown + "\n", out


def test_wrong_values(sardonyx, tmp_path):
    model = models.add_model(tmp_path / "add.onnx")
    for arguments in (["--input", "c=1,2,3"], ["--input", "a=1,2"], ["--input", "a=1,x,3"], ["--shape", "a=1xq"],
                      ["--output", "z"], ["--shape", "c=3"]):
        assert sardonyx("run", model, *arguments, code=2).err.count("\n") == 1
    assert sardonyx("run", model, "--shape", "a=1x4", code=1).err.startswith("sardonyx: ")
    assert "none.npy" in sardonyx("run", model, "--input", "a=none.npy", code=1).err


def test_sequence_outputs(sardonyx, tmp_path):
    seq = helper.make_tensor_sequence_value_info("s", T.FLOAT, None)
    model = models.save(tmp_path / "seq.onnx", [helper.make_node("SequenceConstruct", ["a", "b"], ["s"])],
                        [models.value("a", [2]), models.value("b", [1])], [seq])
    result = sardonyx("run", model, "--input", "a=1,2", "--input", "b=3", "--out", tmp_path / "o")
    assert result.out == "s: sequence of 2\n  [0] float[2] = 1, 2\n  [1] float[1] = 3\n"
    proto = onnx.SequenceProto()
    proto.ParseFromString((tmp_path / "o" / "s.pb").read_bytes())
    assert [numpy_helper.to_array(t).tolist() for t in proto.tensor_values] == [[1, 2], [3]]


def test_memory_and_threads(sardonyx, tmp_path):
    model = models.gemm_model(tmp_path / "gemm.onnx")
    result = sardonyx("run", model, "--memory", "--json", "--threads", "3").json
    assert result["threads"] == 3
    assert {"tag", "now", "peak"} == set(result["memory"][0])
    assert "memory" in sardonyx("run", model, "--memory").out
    assert sardonyx("run", model, "--json", "--cpu", "generic").json["cpu"] == "generic"


def test_memory_limit(sardonyx, tmp_path):
    model = models.gemm_model(tmp_path / "gemm.onnx")
    assert sardonyx("run", model, "--memory-limit", "4K", code=1).err.count("\n") == 1
    sardonyx("run", model, "--memory-limit", "1G")
