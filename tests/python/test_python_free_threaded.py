# SPDX-License-Identifier: Apache-2.0
"""The extension compiles for CPython without the global lock: where a Python from 3.13 on has its headers on this machine."""
import shutil
import subprocess
from pathlib import Path

import pytest


def headers():
    """Folder of the headers of the newest Python that knows builds without the lock; None: there is none."""
    found = set()
    for minor in range(13, 20):
        program = shutil.which(f"python3.{minor}")
        places = [Path(program).resolve().parent.parent] if program else []
        places += Path.home().glob(f".pyenv/versions/3.{minor}.*")
        for place in places:
            folder = place / f"include/python3.{minor}"
            if (folder / "Python.h").is_file():
                found.add((minor, folder))
    return max(found)[1] if found else None


def test_compiles(root):
    folder = headers()
    if folder is None:
        pytest.skip("no headers of CPython 3.13 or later on this machine")
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    include = [word for place in ("include", "vision/include", "abi/ort") for word in ("-I", root / place)]
    for source in sorted((root / "bindings/python/src").glob("*.c")):
        done = subprocess.run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-DPy_GIL_DISABLED=1", "-Wall", "-Wextra", "-Werror",
                               "-fsyntax-only", *include, "-I", folder, source], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
