# SPDX-License-Identifier: Apache-2.0
"""sardonyx test: verdicts, what is printed, tolerances, digests."""
import shutil

import models
import numpy as np

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.ones((2, 3), np.float32)
INPUTS = [("a", A), ("b", B)]


def test_pass(sardonyx, tmp_path):
    models.case(tmp_path / "good", INPUTS, [("y", A + B)], sets=2)
    result = sardonyx("test", tmp_path)
    assert result.out == "2 passed, 0 failed, 0 skipped\n" and result.err == ""


def test_fail(sardonyx, tmp_path):
    wrong = A + B
    wrong[1, 2] += 1
    folder = models.case(tmp_path / "bad", INPUTS, [("y", wrong)])
    lines = sardonyx("test", tmp_path, code=1).out.splitlines()
    assert lines[0].startswith(f"FAIL {folder}/test_data_set_0: output y: first differing element [1,2] "
                               "found 6 expected 7, max abs 1, max rel 0.143")
    assert lines[1] == "0 passed, 1 failed, 0 skipped"


def test_strings(sardonyx, tmp_path):
    texts = np.array(["one", "two", "three"], object)
    other = np.array(["one", "to\no", "three"], object)
    folder = models.case(tmp_path / "texts", [("x", texts)], [("y", other)], make=models.text_model)
    lines = sardonyx("test", tmp_path, code=1).out.splitlines()
    assert lines[0] == (f"FAIL {folder}/test_data_set_0: output y: first differing element [1] "
                        'found "two" expected "to o", 1 of 3 differ')


def test_tolerances(sardonyx, tmp_path):
    near = (A + B) * 1.005
    models.case(tmp_path / "near", INPUTS, [("y", near)])
    sardonyx("test", tmp_path, code=1)
    sardonyx("test", tmp_path, "--rtol", "1e-2")
    sardonyx("test", tmp_path, "--rtol", "0", "--atol", "0.05")
    sardonyx("test", tmp_path, "--rtol", "0", "--atol", "0", "--peak", "0.01")
    sardonyx("test", tmp_path, "--rtol", "0", "--atol", "0", "--peak", "0.001", code=1)


def test_argmax(sardonyx, tmp_path):
    other = A + B
    other[0] = [3.01, 2, 3]
    models.case(tmp_path / "order", INPUTS, [("y", other)])
    sardonyx("test", tmp_path, "--peak", "1")
    result = sardonyx("test", tmp_path, "--peak", "1", "--argmax", code=1)
    assert "the largest element is at another place" in result.out


def test_shape_type_and_missing_files(sardonyx, tmp_path):
    models.case(tmp_path / "shape", INPUTS, [("y", (A + B).reshape(3, 2))])
    models.case(tmp_path / "type", INPUTS, [("y", (A + B).astype(np.float64))])
    models.case(tmp_path / "much", INPUTS, [("y", A + B), ("z", A)])
    models.case(tmp_path / "unfed", INPUTS[:1], [("y", A + B)])
    lines = sardonyx("test", tmp_path, code=1).out.splitlines()
    assert lines[-1] == "0 passed, 4 failed, 0 skipped"
    text = "\n".join(lines)
    assert "found float[2,3], expected float[3,2]" in text
    assert "found float[2,3], expected double[2,3]" in text
    assert "the model has only 1 outputs" in text


def test_skips_say_why(sardonyx, tmp_path):
    models.case(tmp_path / "good", INPUTS, [("y", A + B)])
    models.case(tmp_path / "nodata", INPUTS, [], sets=0)
    models.case(tmp_path / "noexpected", INPUTS, [])
    (tmp_path / "many" / "test_data_set_0").mkdir(parents=True)
    for name in "ab":
        shutil.copy(tmp_path / "good" / "model.onnx", tmp_path / "many" / f"{name}.onnx")
    lines = sardonyx("test", tmp_path).out.splitlines()
    assert lines == [f"SKIP {tmp_path}/many: several models and none is model.onnx",
                     f"SKIP {tmp_path}/nodata: no test_data_set_* folder",
                     f"SKIP {tmp_path}/noexpected/test_data_set_0: no output_0.pb to compare with",
                     "1 passed, 0 failed, 3 skipped"]


def test_broken_model_fails_every_set(sardonyx, tmp_path):
    folder = models.case(tmp_path / "broken", INPUTS, [("y", A + B)], sets=2)
    (folder / "model.onnx").write_bytes(b"\xff\xff\xff")
    assert sardonyx("test", tmp_path, code=1).out.splitlines()[-1] == "0 passed, 2 failed, 0 skipped"


def test_json_filter_and_nothing_found(sardonyx, tmp_path):
    models.case(tmp_path / "in" / "one", INPUTS, [("y", A + B)])
    models.case(tmp_path / "in" / "two", INPUTS, [("y", A)])
    result = sardonyx("test", tmp_path, "--json", code=1).json
    assert (result["passed"], result["failed"], result["skipped"]) == (1, 1, 0)
    assert [c["result"] for c in result["cases"]] == ["passed", "failed"]
    assert result["cases"][0]["case"].endswith("in/one/test_data_set_0")
    assert sardonyx("test", tmp_path, "--filter", "/one").out == "1 passed, 0 failed, 0 skipped\n"
    assert sardonyx("test", tmp_path, "--filter", "three", code=1).err.startswith("sardonyx: ")
    assert sardonyx("test", tmp_path / "absent", code=1).err.startswith("sardonyx: ")


def test_digest_is_the_same_for_all_thread_counts(sardonyx, tmp_path):
    x = np.random.default_rng(1).standard_normal((256, 300)).astype(np.float32)
    make = lambda path: models.gemm_model(path, 256, 300, 200)
    models.case(tmp_path / "gemm", [("x", x)], [("y", np.zeros((256, 200), np.float32))], make)
    lines = [sardonyx("test", tmp_path, "--digest", "--peak", "1", "--atol", "1e9", "--threads", n).out
             for n in (1, 2, 7)]
    assert lines[0].startswith("DIGEST ") and lines[0] == lines[1] == lines[2]
