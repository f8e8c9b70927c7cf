# SPDX-License-Identifier: Apache-2.0
"""Help, version, wrong usage and exit codes of the program."""
import re

import models
import pytest

VERBS = ["info", "check", "infer", "run", "test", "bench", "profile", "compile", "convert", "providers", "ops",
         "classify", "detect", "track-ball"]


def one_error_line(result):
    lines = result.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("sardonyx: "), result.err
    return lines[0]


def test_version(sardonyx):
    assert re.fullmatch(r"sardonyx \d+\.\d+\.\d+ \(\w+\)\n", sardonyx("--version").out)
    assert set(sardonyx("--version", "--json").json) == {"version", "cpu"}


def test_help_names_every_verb(sardonyx):
    text = sardonyx("--help").out
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", text, re.M), verb
    assert "Examples:" in text


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb(sardonyx, verb):
    text = sardonyx(verb, "--help").out
    assert text.startswith(f"Usage: sardonyx {verb} ")
    assert "--json" in text and "--threads" in text
    assert f"\n  sardonyx {verb}" in text.split("Examples:")[1]
    assert sardonyx("help", verb).out == text


@pytest.mark.parametrize("arguments", [
    [], ["fly"], ["info"], ["info", "a", "b"], ["info", "m.onnx", "--nonsense"],
    ["run", "m.onnx", "--threads", "many"], ["run", "m.onnx", "--threads"], ["run", "m.onnx", "--threads", "0"],
    ["run", "m.onnx", "--memory=1"], ["test"], ["bench", "m.onnx", "--runs", "0"],
    ["run", "m.onnx", "--level", "most"], ["classify", "m.onnx"], ["detect", "m.onnx", "x.png", "--conf", "2"],
    ["info", "m.onnx", "--memory-limit", "lots"], ["convert", "m.onnx", "-o", "n.onnx"],
    ["convert", "m.onnx", "--opset", "13"], ["convert", "m.onnx", "--opset", "new", "-o", "n.onnx"],
    ["convert", "m.onnx", "--opset", "ai.onnx.ml=", "-o", "n.onnx"]])
def test_wrong_usage(sardonyx, arguments):
    result = sardonyx(*arguments, code=2)
    one_error_line(result)
    assert result.out == ""


@pytest.mark.parametrize("verb", ["info", "check", "run", "bench", "profile"])
def test_no_such_model(sardonyx, verb):
    result = sardonyx(verb, "no/such/model.onnx", code=1)
    one_error_line(result)


def test_error_as_json(sardonyx):
    result = sardonyx("info", "no/such/model.onnx", "--json", code=1)
    assert "no/such/model.onnx" in result.json["error"]
    one_error_line(result)


def test_options_anywhere_and_double_dash(sardonyx, tmp_path):
    model = models.add_model(tmp_path / "add.onnx")
    assert sardonyx("info", "--json", model).json["nodes"] == 1
    assert sardonyx("info", "--json", "--", model).json["nodes"] == 1


def test_mask(sardonyx):
    # The mask shows in what a verb reports.
    assert sardonyx("ops", "Relu", "--json").json["count"] > 0


def test_nothing_for_terminals_when_piped(sardonyx, tmp_path):
    model = models.gemm_model(tmp_path / "gemm.onnx")
    result = sardonyx("bench", model, "--seconds", "1.2")
    assert "\033" not in result.out + result.err and "\r" not in result.out + result.err
    assert result.err == ""
