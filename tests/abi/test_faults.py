# SPDX-License-Identifier: Apache-2.0
"""Models with faults: which of them load and run, in ONNX Runtime, behind our ABI and in our API.

The ABI reads over what the real library reads over; faults.tsv says what each does with each model,
and why where they differ. Our own API refuses such a model unless the option `tolerate` is set.
"""
import os
import subprocess

import fault_models
import numpy as np
import onnx
import pytest
from client_steps import ENV, HERE
from engine_calls import Engine, Failed
from onnx import helper

X = np.array([-1, 0, 2], np.float32)
# What the option reads over, and y for X.
TOLERATED = {
    "attribute_unknown_constant": X + 1,
    "attribute_two_values_constant": X + 1,
    "attribute_unknown_internal": np.maximum(X, 0),
    "initializer_twice": X + 2,
    "initializer_no_name": np.maximum(X, 0),
    "metadata_twice": np.maximum(X, 0),
    "ir_zero": np.maximum(X, 0),
    "opset_only_of_others": np.maximum(X, 0),
    "opset_twice_differs": np.maximum(X, 0),
    "opset_both_names_differ": np.maximum(X, 0),
    "domain_not_imported_ml": X,
}


@pytest.fixture(scope="module")
def folder(models):
    """The folder of models, those with faults among them."""
    fault_models.write_models(models)
    return models


@pytest.fixture(scope="module")
def table():
    """{model: (verdict of the real library, of ours, reason)}"""
    lines = [line for line in (HERE / "faults.tsv").read_text().split("\n")
             if line and line[0] != "#"]
    rows = [(line.split("\t") + [""])[:4] for line in lines]
    return {name: (real, ours, reason) for name, real, ours, reason in rows}


def verdicts(program, library, folder, names):
    done = subprocess.run([program, library, "models"], cwd=folder.parent, capture_output=True,
                          input="".join(f"{name}\n" for name in names), text=True, timeout=300,
                          env={**os.environ, **ENV})
    assert done.stdout.endswith("end | reached\n"), done.stdout[-2000:] + done.stderr[-2000:]
    lines = [line.partition(" | ") for line in done.stdout.split("\n")[:-2]]
    return {name: text.split(" ")[0] for name, _, text in lines}


def test_the_table_has_every_model_and_every_reason(table, folder):
    assert list(table) == fault_models.write_models(folder)
    assert all(bool(reason) == (real != ours) for real, ours, reason in table.values())


def test_the_real_library(table, c_client, real_ort, folder):
    found = verdicts(c_client("faults_client"), real_ort, folder, table)
    assert found == {name: row[0] for name, row in table.items()}


def test_ours(table, c_client, our_ort, folder):
    found = verdicts(c_client("faults_client"), our_ort, folder, table)
    assert found == {name: row[1] for name, row in table.items()}


@pytest.fixture
def engine(build, sanitizers):
    path = build / "libsardonyx.so"
    if not path.is_file():
        pytest.skip(f"{path} is not built")
    if sanitizers:
        pytest.skip("the library is built with sanitizers, Python is not")
    made = Engine(path)
    yield made
    made.lib.sdx_context_destroy(made.cx)


@pytest.mark.parametrize("name", TOLERATED)
def test_our_own_api_is_strict_unless_told(name, engine, folder):
    path = folder / f"{name}.onnx"
    with pytest.raises(Failed, match="SDX_BAD_MODEL|bad model"), engine.session(path):
        pass
    assert engine.warnings == []
    with engine.session(path, tolerate=True) as session:
        np.testing.assert_array_equal(session.run({"x": X}, ["y"])[0], TOLERATED[name])
    assert len(engine.warnings) == 1 and engine.warnings[0].startswith("model: ")


@pytest.mark.parametrize("versions,loads", [((17, 11), True), ((11, 17), False)])
def test_the_last_import_counts(versions, loads, engine, tmp_path):
    """ReduceSum has the attribute axes before version 13 only."""
    node = helper.make_node("ReduceSum", ["x"], ["y"], axes=[0])
    made = fault_models.plain([node], opset=versions[0], domains=[("", versions[1])])
    onnx.save(made, tmp_path / "model.onnx")
    opened = engine.session(tmp_path / "model.onnx", tolerate=True)
    if loads:
        with opened as session:
            assert session.run({"x": X}, ["y"])[0] == [1]
    else:
        with pytest.raises(Failed, match="attribute axes is unknown"), opened:
            pass
