# SPDX-License-Identifier: Apache-2.0
"""The package's types against what is there (mypy.stubtest), and as a program's checker sees them."""
import importlib
import os
import re
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import sardonyx

options = sardonyx.SessionOptions()
options.graph_optimization_level = sardonyx.GraphOptimizationLevel.ORT_ENABLE_BASIC
options.add_provider("auto", {})
session = sardonyx.InferenceSession("m.onnx", options, providers=["cpu", ("ort", {"device_id": 1})])
names: list[str] = [node.name for node in session.get_inputs()]
result = session.run(None, {name: np.zeros(3, np.float32) for name in names})
binding: sardonyx.IOBinding = session.io_binding()
value: sardonyx.OrtValue = sardonyx.OrtValue.ortvalue_from_numpy(np.zeros(3))
reveal_type(sardonyx.__version__)
reveal_type(result)
session.run(None)
"""


@pytest.fixture
def mypy(sdx, package_env, tmp_path):
    """mypy(arguments): (exit code, output) of `python -m` with them, in a folder of its own."""
    pytest.importorskip("mypy")

    def run(*arguments):
        env = dict(package_env, MYPYPATH=package_env["PYTHONPATH"], MYPY_CACHE_DIR=os.devnull)
        done = subprocess.run([sys.executable, "-m", *arguments], cwd=tmp_path, env=env, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout
    return run


def test_stubs_are_the_package(mypy, tmp_path):
    """But for the names that can be imported and fail when they are called: they are made at run time."""
    later = importlib.import_module("sardonyx._later").NAMES
    names = [f"sardonyx.{module}.{name}" for module, line in later.items() for name in line.split()]
    (tmp_path / "allowed").write_text("\n".join(map(re.escape, names)))
    code, output = mypy("mypy.stubtest", "sardonyx", "--allowlist", tmp_path / "allowed",
                        "--ignore-unused-allowlist")
    assert code == 0, output


def test_a_program_is_checked(mypy, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    code, output = mypy("mypy", "--strict", "program.py")
    lines = [line for line in output.split("\n") if line.startswith("program.py")]
    assert code == 1 and len(lines) == 3, output
    assert 'Revealed type is "str"' in lines[0] and 'Revealed type is "list[Any]"' in lines[1], output
    assert 'Missing positional argument "input_feed"' in lines[2], output
