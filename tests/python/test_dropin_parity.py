# SPDX-License-Identifier: Apache-2.0
"""The drop-in module `onnxruntime` against the package of that name: the same script on both.

The cases lie in dropin/cases_*.py. dropin/differences.tsv names those whose text may differ, and why;
a case listed there that does not differ is a fault too, so that the list stays true.
"""
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "dropin")]
import dropin_cases  # noqa: E402,F401
from dropin_kit import ANY, CASES, SURFACE  # noqa: E402
from dropin_paths import find_real, paths_of_ours  # noqa: E402
from dropin_runner import transcribe  # noqa: E402


def matches(expected, got):
    """ANY in what is expected stands for any text; of names there may be more."""
    if expected.startswith(SURFACE):
        return set(expected.split("\n")) <= set(got.split("\n"))
    pattern = ".*".join(re.escape(part) for part in expected.split(ANY))
    return re.fullmatch(pattern, got, re.S) is not None


def read_differences():
    lines = (HERE / "dropin/differences.tsv").read_text(encoding="utf-8").split("\n")
    rows = [line.split("\t", 1) for line in lines if line and not line.startswith("#")]
    return {row[0]: row[1] for row in rows}


DIFFERENCES = read_differences()


@pytest.fixture(scope="module")
def transcripts(build, tmp_path_factory):
    """({case: text} of the package onnxruntime, {case: text} of the drop-in)."""
    real, ours = find_real(), paths_of_ours(build)
    folder, names = tmp_path_factory.mktemp("dropin"), list(CASES)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(transcribe, sys.executable, folder / "real", names, {"PYTHONPATH": real})
        two = pool.submit(transcribe, sys.executable, folder / "ours", names, {"PYTHONPATH": ours})
        return one.result(), two.result()


@pytest.mark.parametrize("name", list(CASES))
def test_parity(transcripts, name):
    expected, got = transcripts[0][name], transcripts[1][name]
    if name in DIFFERENCES:
        assert not got.startswith("process "), got
        assert not matches(expected, got), f"no longer differs: {DIFFERENCES[name]}"
    else:
        assert matches(expected, got), f"expected: {expected}\ngot: {got}"


def test_differences_name_cases():
    assert set(DIFFERENCES) <= set(CASES)
    assert all(reason.strip() for reason in DIFFERENCES.values())
