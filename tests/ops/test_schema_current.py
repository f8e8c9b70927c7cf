# SPDX-License-Identifier: Apache-2.0
"""The committed schema table is what the generator writes."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = ROOT / "scripts/gen_schema.py"


def test_schema_is_current():
    onnx = pytest.importorskip("onnx")
    if onnx.__version__ != "1.23.2":
        pytest.skip("onnx is %s, the table is made from 1.23.2" % onnx.__version__)
    run = subprocess.run([sys.executable, str(GENERATOR), "--check"], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
