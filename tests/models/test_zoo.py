# SPDX-License-Identifier: Apache-2.0
"""The zoo: 102 architectures against ONNX Runtime without optimisations, on 1, 2 and 7 threads.

Float models agree within 1e-3 of each value or 1e-4 of the output's peak; half within 5e-3 of it;
integer models within 5 %, and classifiers among them on the class. Where rounding alone moves a model further
(deep random-weight nets, a softmax over near-ties), the bound is four times the difference
that ONNX Runtime's own optimisations make. Detection models that end in TopK or NMS are compared
as sets of boxes. The digests of all thread counts are equal.
"""
import re

import numpy as np
import pytest

import importlib.util
from pathlib import Path

spec = importlib.util.spec_from_file_location("zoo", Path(__file__).with_name("zoo.py"))
zoo = importlib.util.module_from_spec(spec)
spec.loader.exec_module(zoo)

# Outputs are sets of boxes cut at a score among near-ties.
SETS = ("yolov10n", "ssdlite320_mobilenet_v3_large", "fasterrcnn_mobilenet_v3_large_320_fpn")
# Outputs are sequences of maps whose expected file holds doubles where the model says float.
MAPS = ("sk_logreg_zipmap",)
CLASSIFIERS = ("digits_cnn", "mobilenet", "resnet")


def is_small(row):
    quantized = 1 if "int8" in row["name"] else 4
    return (int(row["params"]) * quantized <= zoo.SMALL and int(row["macs"]) <= zoo.SMALL_MACS
            and int(row["nodes"]) <= 3000)


MODELS = [pytest.param(row["name"], id=row["name"],
                       marks=() if is_small(row) else pytest.mark.slow)
          for row in zoo.rows(zoo.shared_folder() / "zoo/INDEX.tsv")]


def tolerance_of(name):
    base = ["--rtol", "1e-3", "--atol", "1e-6", "--peak"]
    if "int8" in name:
        return base + ["0.05"] + (["--argmax"] if name.startswith(CLASSIFIERS) else [])
    return base + (["5e-3"] if "fp16" in name else ["1e-4"])


def rows_of(outputs):
    """[n, 6] of box, score, class from the outputs of any of SETS."""
    if len(outputs) == 1:
        return outputs[0].reshape(-1, 6).astype(np.float64)
    boxes, labels, scores = outputs
    return np.column_stack([boxes, scores, labels]).astype(np.float64)


def compare_sets(found, expected):
    """At least 95 % of the expected boxes have a partner of their own: the same class, a score
    within 1e-2, each corner within 1 % of the largest coordinate. What is left is near the cut."""
    assert abs(len(found) - len(expected)) <= 0.05 * len(expected)
    size = np.abs(expected[:, :4]).max()
    free, paired = np.ones(len(found), bool), 0
    for row in expected:
        near = (free & (found[:, 5] == row[5]) & (np.abs(found[:, 4] - row[4]) <= 1e-2)
                & (np.abs(found[:, :4] - row[:4]).max(axis=1) <= 1e-2 * size))
        if near.any():
            free[np.argmax(near)] = False
            paired += 1
    assert paired >= 0.95 * len(expected), f"only {paired} of {len(expected)} boxes have a partner"


def run_maps(sardonyx, folder, tmp_path):
    onnx = pytest.importorskip("onnx")
    data = folder / "test_data_set_0"
    sardonyx("run", folder / "model.onnx", "--inputs", data, "--out", tmp_path)

    def maps_of(path):
        message = onnx.SequenceProto()
        message.ParseFromString(path.read_bytes())
        return [{int(k): float(np.squeeze(v)) for k, v in one.items()}
                for one in onnx.numpy_helper.to_list(message)]

    names = [value.name for value in onnx.load(str(folder / "model.onnx")).graph.output]
    label, maps = np.load(tmp_path / f"{names[0]}.npy"), maps_of(tmp_path / f"{names[1]}.pb")
    expected = maps_of(data / "output_1.pb")
    assert (label == zoo.tensor_file(data / "output_0.pb")).all()
    assert [sorted(one) for one in maps] == [sorted(one) for one in expected]
    for found, wanted in zip(maps, expected):
        assert all(abs(found[key] - wanted[key]) <= 1e-5 for key in wanted)


def run_sets(sardonyx, folder, tmp_path):
    data = folder / "test_data_set_0"
    listed = sardonyx("run", folder / "model.onnx", "--inputs", data, "--out", tmp_path, "--json",
                      timeout=900)
    onnx = pytest.importorskip("onnx")
    names = [value.name for value in onnx.load(str(folder / "model.onnx")).graph.output]
    found = [np.load(tmp_path / f"{name}.npy") for name in names]
    assert listed.code == 0
    compare_sets(rows_of(found), rows_of(zoo.expected_outputs(data)))


def is_stray(line):
    """At most one element in 100,000 is off: a box whose distances a tie in the last bit decides
    (the softmax over distances of a detector with random weights)."""
    counts = re.search(r"(\d+) of (\d+) differ", line)
    return counts is not None and int(counts.group(1)) * 100_000 <= int(counts.group(2))


def check(sardonyx, folder, cpu=None):
    """The records of one thread, after they were compared."""
    tolerance = tolerance_of(folder.name)
    records = zoo.run_case(sardonyx, folder, 1, *tolerance, cpu=cpu)
    bad = zoo.failures(records)
    if bad and all("differing element" in line for line in bad):
        wide = 4 * zoo.peer_noise(folder)
        again = zoo.run_case(sardonyx, folder, 1, "--rtol", "1e-3", "--peak", f"{wide:g}", cpu=cpu)
        bad = [f"{line} (4 times the noise of this model: {wide:.2g} of the peak)"
               for line in zoo.failures(again) if not is_stray(line)]
    assert not bad, "\n".join(bad)
    return records


@pytest.mark.parametrize("name", MODELS)
def test_model(name, sardonyx, shared, tmp_path):
    folder = zoo.zoo_case(shared, name)
    if name in SETS + MAPS:
        (run_maps if name in MAPS else run_sets)(sardonyx, folder, tmp_path)
        records = zoo.run_case(sardonyx, folder, 1)
    else:
        records = check(sardonyx, folder)
    zoo.same_digests(sardonyx, folder, records)


@pytest.mark.parametrize("name", MODELS)
def test_model_generic(name, sardonyx, shared, tmp_path):
    if name in SETS + MAPS:
        pytest.skip("its outputs are compared by test_model")
    check(sardonyx, zoo.zoo_case(shared, name), cpu="generic")
