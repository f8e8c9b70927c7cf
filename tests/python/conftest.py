# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share. SDX_PACKAGE is a folder with the installed package
(scripts/test makes it from the wheel); otherwise that of the build, build/python, is taken."""
import importlib
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("SDX_BUILD", HERE.parent.parent / "build"))
PACKAGE = Path(os.environ.get("SDX_PACKAGE", BUILD / "python"))
sys.path[:0] = [str(HERE), str(PACKAGE)]


@pytest.fixture(scope="session")
def sdx():
    """The package under test."""
    return pytest.importorskip("sardonyx", reason=f"no package sardonyx in {PACKAGE}")


@pytest.fixture(scope="session")
def ort():
    """The installed onnxruntime: what is expected."""
    found = pytest.importorskip("onnxruntime")
    if not found.__file__.startswith(os.path.dirname(importlib.import_module("numpy").__file__)[:-5]):
        pytest.skip("onnxruntime here is not the installed one")
    found.set_default_logger_severity(4)
    return found


@pytest.fixture(scope="session")
def package_env():
    """The environment for another Python that must find the package."""
    return dict(os.environ, PYTHONPATH=str(PACKAGE), ORT_DISABLE_TELEMETRY="1")
