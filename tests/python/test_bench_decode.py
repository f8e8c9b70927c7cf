# SPDX-License-Identifier: Apache-2.0
"""bench/decode: its models give onnxruntime's logits, with caches that are input and output at once."""
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
PROGRAM = Path(__file__).resolve().parents[2] / "bench/decode"


def test_logits_after_some_tokens(sdx, package_env):
    done = subprocess.run([sys.executable, PROGRAM, "--forms", "f32,w4i,f16", "--layers", "1", "--rounds", "1", "--prompt", "9",
                           "--tokens", "4"], env=package_env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["f32", "w4i", "f16"]
