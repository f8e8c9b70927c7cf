# SPDX-License-Identifier: Apache-2.0
"""sardonyx classify on the model that ships."""
import shutil

import pytest


@pytest.fixture()
def digits(root):
    return root / "examples" / "digits"


def test_reads_every_scan(sardonyx, digits):
    scans = [digits / f"{i}.png" for i in range(10)]
    images = sardonyx("classify", digits / "digits.onnx", *scans, "--json").json["images"]
    assert [i["top"][0]["name"] for i in images] == [str(i) for i in range(10)]
    assert all(i["top"][0]["score"] > 0.5 and len(i["top"]) == 5 for i in images)
    text = sardonyx("classify", digits / "digits.onnx", scans[3], "--top", "1").out.splitlines()
    assert text[0] == str(scans[3]) and text[1].endswith("%  3") and len(text) == 2


def test_labels_file(sardonyx, digits, tmp_path):
    (tmp_path / "names.txt").write_text("zero\none\ntwo\nthree\n")
    result = sardonyx("classify", digits / "digits.onnx", digits / "3.png", digits / "7.png",
                      "--labels", tmp_path / "names.txt", "--json").json
    assert [i["top"][0]["name"] for i in result["images"]] == ["three", "7"]
    assert sardonyx("classify", digits / "digits.onnx", digits / "3.png", "--labels", "none.txt",
                    code=1).err == "sardonyx: none.txt: No such file or directory\n"


def test_a_bad_picture_does_not_stop_the_rest(sardonyx, digits, tmp_path):
    (tmp_path / "bad.png").write_bytes((digits / "1.png").read_bytes()[:40])
    shutil.copy(digits / "README.md", tmp_path / "text.jpg")
    result = sardonyx("classify", digits / "digits.onnx", tmp_path / "bad.png", tmp_path / "text.jpg",
                      digits / "1.png", "--json", code=1)
    images = result.json["images"]
    assert "error" in images[0] and "not a PNG" in images[1]["error"]
    assert images[2]["top"][0]["label"] == 1
    assert len(result.err.splitlines()) == 2


def with_metadata(digits, path, **pairs):
    onnx = pytest.importorskip("onnx")
    model = onnx.load(str(digits / "digits.onnx"))
    kept = {p.key: p.value for p in model.metadata_props}
    del model.metadata_props[:]
    for key, value in {**kept, **{k.replace("_", "."): v for k, v in pairs.items()}}.items():
        if value is not None:
            model.metadata_props.add(key=key, value=value)
    onnx.save(model, str(path))
    return path


def test_names_that_ultralytics_writes(sardonyx, digits, tmp_path):
    scans = [digits / f"{i}.png" for i in (1, 2, 3)]
    for names, expected in (("{0: 'a', 1: \"driver's\", 2: 'it\\'s', 10: 'z'}", ["driver's", "it's", "3"]),
                            ("['a', 'b', 'c', 'd']", ["b", "c", "d"]), ("{'1': 'one'}", ["one", "2", "3"]),
                            ("{}", ["1", "2", "3"])):
        model = with_metadata(digits, tmp_path / "m.onnx", sardonyx_labels=None, names=names)
        images = sardonyx("classify", model, *scans, "--json").json["images"]
        assert [i["top"][0]["name"] for i in images] == expected
    for names in ("{0: 'a'", "{0 'a'}", "0: 'a'", "{99999999: 'a'}", "['a'"):
        model = with_metadata(digits, tmp_path / "m.onnx", sardonyx_labels=None, names=names)
        assert sardonyx("classify", model, scans[0], code=1).err.startswith("sardonyx: ")


def test_preprocessing_by_metadata(sardonyx, digits, tmp_path):
    scan = digits / "4.png"
    score = lambda **pairs: sardonyx("classify", with_metadata(digits, tmp_path / "m.onnx", **pairs), scan,
                                     "--json").json["images"][0]["top"][0]["score"]
    plain = score()
    # (p / 255 - 0) / 1 in other words.
    assert score(sardonyx_scale="1", sardonyx_std="255") == pytest.approx(plain, rel=1e-4)
    assert score(sardonyx_invert="0", sardonyx_mean="1", sardonyx_std="-1") == pytest.approx(plain, rel=1e-4)
    assert score(sardonyx_mean="3") != pytest.approx(plain, rel=1e-2)
    for pairs in ({"sardonyx_mean": "1,2"}, {"sardonyx_std": "0"}, {"sardonyx_fit": "squeeze"},
                  {"sardonyx_crop": "2"}, {"sardonyx_scale": "many"}, {"sardonyx_invert": "yes"}):
        model = with_metadata(digits, tmp_path / "m.onnx", **pairs)
        assert "metadata" in sardonyx("classify", model, scan, code=1).err


def test_a_model_that_takes_no_picture(sardonyx, root, tmp_path):
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    value = lambda name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value("x")], [value("y")])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]),
              str(tmp_path / "m.onnx"))
    scan = root / "examples/digits/1.png"
    assert "not just one picture" in sardonyx("classify", tmp_path / "m.onnx", scan, code=1).err
    assert "not just one picture" in sardonyx("detect", tmp_path / "m.onnx", scan, code=1).err
