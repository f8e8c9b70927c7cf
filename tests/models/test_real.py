# SPDX-License-Identifier: Apache-2.0
"""Real trained models on real inputs against ONNX Runtime without optimisations.

The tolerance is the larger of 1e-3 of the output's range and the difference that ONNX Runtime's own
optimisations make (the table of ../shared/real). In models of integer kernels a value at the edge of two
quanta may fall to the other side, and all that follows with it: 5 % of the range, and in two
elements of a thousand more. The digests on 1, 2 and 7 threads are equal.
"""
import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("zoo", Path(__file__).with_name("zoo.py"))
zoo = importlib.util.module_from_spec(spec)
spec.loader.exec_module(zoo)

ROWS = {row["name"]: row for row in zoo.rows(zoo.shared_folder() / "real/INDEX.tsv")}
# Half a second or more a run for each of several inputs.
SLOW = ("basic_pitch", "magika_v3_3", "yolov8n_seg_dynint8", "super_resolution_10")
INTEGER = ("int8", "_qdq", "quantized")
MODELS = [pytest.param(name, id=name, marks=pytest.mark.slow if name in SLOW else ())
          for name in ROWS]


def tolerance_of(name):
    noise = float(ROWS[name]["ort_optimised_vs_unoptimised_maxabs"])
    peak = "0.05" if any(word in name for word in INTEGER) else "1e-3"
    return ["--rtol", "0", "--atol", str(max(noise, 1e-6)), "--peak", peak]


def few_differ(line):
    """True for a mismatch of at most 2 in 1000 elements, as `sardonyx test` words it."""
    words = line.replace(",", " ").split()
    if "differ" not in words[-1:]:
        return False
    bad, count = int(words[-4]), int(words[-2])
    return bad <= 0.002 * count + 1


@pytest.mark.parametrize("name", MODELS)
def test_model(name, sardonyx, shared):
    folder = zoo.real_case(shared, name)
    tolerance = tolerance_of(name)
    records = zoo.run_case(sardonyx, folder, 1, *tolerance)
    bad = zoo.failures(records)
    if any(word in name for word in INTEGER):
        bad = [line for line in bad if not few_differ(line)]
    assert not bad, "\n".join(bad)
    zoo.same_digests(sardonyx, folder, records)


@pytest.mark.parametrize("name", MODELS)
def test_model_generic(name, sardonyx, shared):
    folder = zoo.real_case(shared, name)
    bad = zoo.failures(zoo.run_case(sardonyx, folder, 2, *tolerance_of(name), cpu="generic"))
    if any(word in name for word in INTEGER):
        bad = [line for line in bad if not few_differ(line)]
    assert not bad, "\n".join(bad)
