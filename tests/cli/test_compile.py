# SPDX-License-Identifier: Apache-2.0
"""sardonyx compile: plan files give the same bits as their models, and broken or foreign ones are refused."""
import os
import random
import shutil
from pathlib import Path

import models
import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper, numpy_helper

ZOO = Path(os.environ.get("SDX_ZOO", "build/zoo"))
# One of each kind of packed form and of graph that the engine knows.
KINDS = ["squeezenet1_1", "mobilenet_v2.int8", "bert_tiny", "bert_tiny.int8dyn", "lstm_bi2"]
MORE = ["mobilenet_v2", "resnet50", "yolo11n", "yolo11n.int8", "minilm_l6", "gpt2_past", "t5_small_decoder_past", "gru_2", "tdnn"]
HEADER = 192  # bytes; then the index


def outputs(sardonyx, model, folder, *arguments, threads=1):
    """The bytes of the files that a run writes, by name."""
    shutil.rmtree(folder, ignore_errors=True)
    sardonyx("run", model, "--threads", threads, "--out", folder, *arguments)
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def round_trip(sardonyx, model, tmp_path, *arguments):
    plan = tmp_path / "model.sdx"
    sardonyx("compile", model, "-o", plan, *arguments)
    expected = outputs(sardonyx, model, tmp_path / "expected", *arguments)
    assert expected
    for threads in (1, 2):
        assert outputs(sardonyx, plan, tmp_path / f"found{threads}", *arguments, threads=threads) == expected
    return plan


def zoo_model(name):
    path = ZOO / name / "model.onnx"
    if not path.is_file():
        pytest.skip(f"no model at {path} (SDX_ZOO)")
    return path


def constant(name, shape, dtype=np.float32, seed=3):
    rng = np.random.default_rng(seed)
    array = rng.standard_normal(shape) if dtype == np.float32 else rng.integers(0, 200, shape)
    return numpy_helper.from_array(array.astype(dtype), name)


def normalised_model(path):
    """A Conv whose BatchNormalization and whose twin of one pixel become its weights; x: [1,4,8,8]."""
    nodes = [helper.make_node("Conv", ["x", "cw"], ["c"], pads=[1, 1, 1, 1]),
             helper.make_node("BatchNormalization", ["c", "g", "g", "g", "v"], ["n"]),
             helper.make_node("Conv", ["x", "pw"], ["p"]), helper.make_node("Add", ["n", "p"], ["y"])]
    weights = [constant("cw", (8, 4, 3, 3)), constant("pw", (8, 4, 1, 1)), constant("g", (8,)),
               numpy_helper.from_array(np.full(8, 2, np.float32), "v")]
    return models.save(path, nodes, [models.value("x", [1, 4, 8, 8])], [models.value("y", [1, 8, 8, 8])], weights)


def test_made_weights(sardonyx, tmp_path):
    """Weights that passes make of others are in the file, and so is what is packed of them."""
    plan = round_trip(sardonyx, normalised_model(tmp_path / "model.onnx"), tmp_path)
    steps = [line for line in sardonyx("profile", plan).out.split("\n") if " Conv " in line]
    assert sum("[reorder]" not in step for step in steps) == 1


def mixed_model(path):
    """Convolution, product, integers and weights of 4 bits in one model; x: [N,4,8,8]."""
    nodes = [helper.make_node("Conv", ["x", "cw", "cb"], ["c"], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("ReduceMean", ["r"], ["m"], axes=[2, 3], keepdims=0),
             helper.make_node("MatMul", ["m", "w"], ["h"]),
             helper.make_node("Cast", ["h"], ["u"], to=T.UINT8),
             helper.make_node("MatMulInteger", ["u", "q"], ["i"]),
             helper.make_node("Cast", ["i"], ["f"], to=T.FLOAT),
             helper.make_node("Add", ["f", "h"], ["y"])]
    return models.save(path, nodes, [models.value("x", ["N", 4, 8, 8])], [models.value("y", ["N", 32])],
                       [constant("cw", (16, 4, 3, 3)), constant("cb", (16,)), constant("w", (16, 32)),
                        constant("q", (32, 32), np.uint8)], metadata={"author": "tests"})


def control_model(path):
    """y = x * w when the sum of x is above 0, else Loop adds w three times; both outputs are one value."""
    then = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["t"])], "then", [], [models.value("t", None)])
    body = helper.make_graph([helper.make_node("Add", ["v_in", "b"], ["v_out"]), helper.make_node("Identity", ["c_in"], ["c_out"])],
                             "body", [models.value("i", [], T.INT64), models.value("c_in", [], T.BOOL), models.value("v_in", None)],
                             [models.value("c_out", [], T.BOOL), models.value("v_out", None)])
    other = helper.make_graph([helper.make_node("Loop", ["three", "", "x"], ["e"], body=body)], "else", [], [models.value("e", None)])
    nodes = [helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0), helper.make_node("Greater", ["s", "zero"], ["c"]),
             helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
             helper.make_node("Identity", ["y"], ["same"])]
    return models.save(path, nodes, [models.value("x", [2, 32])], [models.value("y", [2, 32]), models.value("same", [2, 32])],
                       [constant("w", (32, 32)), constant("b", (32,)), numpy_helper.from_array(np.array(3), "three"),
                        numpy_helper.from_array(np.float32(0), "zero")])


@pytest.mark.parametrize("name", KINDS)
def test_zoo(sardonyx, tmp_path, name):
    round_trip(sardonyx, zoo_model(name), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE)
def test_more_of_the_zoo(sardonyx, tmp_path, name):
    round_trip(sardonyx, zoo_model(name), tmp_path)


def test_kinds_of_weights(sardonyx, tmp_path):
    plan = round_trip(sardonyx, mixed_model(tmp_path / "model.onnx"), tmp_path)
    # Other shapes than the file was made for run as well.
    shape = ("--shape", "x=3x4x8x8")
    assert outputs(sardonyx, plan, tmp_path / "a", *shape) == outputs(sardonyx, tmp_path / "model.onnx", tmp_path / "b", *shape)


@pytest.mark.parametrize("level", [0, 4])
def test_weights_of_4_bits(sardonyx, tmp_path, level):
    blocks = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=64, N=32, bits=4, block_size=32,
                              accuracy_level=level)
    graph = helper.make_graph([blocks], "g", [models.value("x", [2, 64])], [models.value("y", [2, 32])],
                              [constant("w", (32, 2, 16), np.uint8), constant("s", (64,))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    round_trip(sardonyx, tmp_path / "model.onnx", tmp_path)


@pytest.mark.parametrize("value", ["1", "-1"])
def test_control_flow(sardonyx, tmp_path, value):
    model = control_model(tmp_path / "model.onnx")
    round_trip(sardonyx, model, tmp_path, "--input", f"x={value}")


def test_verbs_take_plan_files(sardonyx, tmp_path):
    model = mixed_model(tmp_path / "model.onnx")
    plan = tmp_path / "model.sdx"
    facts = sardonyx("compile", model, "-o", plan, "--json").json
    assert facts["bytes"] == plan.stat().st_size
    told = [sardonyx("info", path, "--json").json for path in (model, plan)]
    for key in told[0]:
        assert key in ("file", "model", "path", "bytes", "file_bytes") or told[0][key] == told[1][key], key
    assert sardonyx("bench", plan, "--runs", "3", "--json").json["runs"] == 3
    assert sardonyx("profile", plan, "--json").json
    # A plan of a plan: the shapes that were run since come along.
    sardonyx("compile", plan, "-o", plan, "--shape", "x=2x4x8x8")
    assert outputs(sardonyx, plan, tmp_path / "a") == outputs(sardonyx, model, tmp_path / "b")
    assert "is a plan file, expected an ONNX model" in sardonyx("check", plan, code=1).out
    assert "made at optimisation level 99, expected level 0" in sardonyx("run", plan, "--level", "none", code=1).err
    folder = tmp_path / "case"
    (folder / "test_data_set_0").mkdir(parents=True)
    shutil.copy(plan, folder / "model.onnx")
    x = np.ones((1, 4, 8, 8), np.float32)
    models.write_pb(folder / "test_data_set_0" / "input_0.pb", x)
    np.save(tmp_path / "x.npy", x)
    sardonyx("run", model, "--input", f"x={tmp_path}/x.npy", "--out", tmp_path)
    models.write_pb(folder / "test_data_set_0" / "output_0.pb", np.load(tmp_path / "y.npy"))
    sardonyx("test", folder)


def test_the_same_file_twice(sardonyx, tmp_path):
    """No memory that nobody wrote may get into a file."""
    model = mixed_model(tmp_path / "model.onnx")
    for i in (0, 1):
        sardonyx("compile", model, "-o", tmp_path / f"{i}.sdx", env={"MALLOC_PERTURB_": str(1 + 100 * i)})
    assert (tmp_path / "0.sdx").read_bytes() == (tmp_path / "1.sdx").read_bytes()


def test_usage(sardonyx, tmp_path):
    model = models.add_model(tmp_path / "add.onnx")
    assert "-o FILE is missing" in sardonyx("compile", model, code=2).err
    result = sardonyx("compile", model, "-o", tmp_path / "none" / "add.sdx", code=1)
    assert "no such file" in result.err
    assert not list(tmp_path.glob("*.tmp"))


def refused(sardonyx, path, text, env=None):
    result = sardonyx("run", path, code=1, env=env)
    assert len(result.err.strip().split("\n")) == 1, result.err
    assert text in result.err, result.err


def test_foreign_files(sardonyx, tmp_path):
    plan = tmp_path / "model.sdx"
    sardonyx("compile", mixed_model(tmp_path / "model.onnx"), "-o", plan)
    good = bytearray(plan.read_bytes())
    cpu = good[40:72].split(b"\0")[0].decode()
    number = int.from_bytes(good[8:12], "little")
    other = tmp_path / "other.sdx"

    def changed(at, new):
        other.write_bytes(good[:at] + new + good[at + len(new):])
        return other

    refused(sardonyx, changed(16, b"9.9.9\0"), f"made by version 9.9.9, format {number}, expected version")
    refused(sardonyx, changed(8, b"\xff\0\0\0"), "format 255, expected")
    refused(sardonyx, changed(40, b"z80\0"), f"made for z80, expected {cpu}")
    if not cpu.endswith("generic"):
        refused(sardonyx, plan, f"made for {cpu}, expected {cpu.split()[0]} generic", {"SDX_CPU": "generic"})
        sardonyx("compile", tmp_path / "model.onnx", "-o", other, env={"SDX_CPU": "generic"})
        refused(sardonyx, other, f"made for {cpu.split()[0]} generic, expected {cpu}")
    refused(sardonyx, changed(72, b"\x63"), "block sizes 99-")
    for size in (8, 100, HEADER - 1, HEADER, HEADER + 100, len(good) // 2, len(good) - 1):
        other.write_bytes(good[:size])
        refused(sardonyx, other, f"has {size} bytes, expected")
    other.write_bytes(good + b"\0")
    refused(sardonyx, other, f"has {len(good) + 1} bytes, expected {len(good)}")


def test_flipped_bytes(sardonyx, tmp_path):
    plan, other = tmp_path / "model.sdx", tmp_path / "other.sdx"
    sardonyx("compile", mixed_model(tmp_path / "model.onnx"), "-o", plan)
    good = plan.read_bytes()
    lead = int.from_bytes(good[96:104], "little")
    assert HEADER < lead < len(good)
    places = list(range(0, HEADER, 7)) + random.Random(1).sample(range(HEADER, lead), 25)
    for at in places:
        bad = bytearray(good)
        bad[at] ^= 1 << at % 8
        other.write_bytes(bad)
        result = sardonyx("run", other, code=1)
        assert len(result.err.strip().split("\n")) == 1 and "sardonyx: " in result.err


def test_flipped_bytes_of_packed_forms(sardonyx, tmp_path):
    """What has no checksum may give other numbers, or be refused, but never crash."""
    plan, other = tmp_path / "model.sdx", tmp_path / "other.sdx"
    sardonyx("compile", mixed_model(tmp_path / "model.onnx"), "-o", plan)
    good = plan.read_bytes()
    lead = int.from_bytes(good[96:104], "little")
    rng = random.Random(2)
    for _ in range(25):
        bad = bytearray(good)
        for at in rng.sample(range(lead, len(good)), 40):
            bad[at] ^= 1 << rng.randrange(8)
        other.write_bytes(bad)
        sardonyx("run", other, code=None)
