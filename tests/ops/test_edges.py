# SPDX-License-Identifier: Apache-2.0
"""Situations at the edge, drawn at random (edges_*.py), against the installed
onnxruntime: empty tensors, rank 0, odd pads, old versions, ties, optional inputs left out. Where
onnxruntime leaves the standard, the case is not drawn, and a comment says so.

SDX_EDGES: number of nodes (1000); SDX_EDGES_SEED: another stream; SDX_EDGES_KEEP: a folder for the
cases that fail."""
import os
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("ml_dtypes")
import edges_graphs  # noqa: E402
import edges_values  # noqa: E402
import edges_windows  # noqa: E402
from contrib_cases import OnnxRuntime  # noqa: E402
from draws import Families, run_all, summary  # noqa: E402

EDGES = Families()
for families in (edges_windows.edges, edges_values.edges, edges_graphs.edges):
    EDGES.update(families)


def test_edges(sardonyx, tmp_path):
    count = int(os.environ.get("SDX_EDGES", 1000))
    seed = int(os.environ.get("SDX_EDGES_SEED", 1))
    keep = os.environ.get("SDX_EDGES_KEEP")
    result = run_all(sardonyx, tmp_path, EDGES, OnnxRuntime(), count, seed, Path(keep) if keep else None)
    text = summary(*result)
    print(text)
    assert not result[0], text
