# SPDX-License-Identifier: Apache-2.0
"""The build backend (PEP 517, PEP 660) of sardonyx: that of scikit-build-core, with source
distributions that hold the engine. In a checkout its sources are two folders up; in a source
distribution they are in the folder engine, laid out alike (`from-sdist` in pyproject.toml).
"""
import shutil
from pathlib import Path

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F403

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
PARTS = ("CMakeLists.txt", "LICENSE", "abi/ort", "bindings/python/CMakeLists.txt", "bindings/python/src",
         "cmake", "include", "src", "vision")


def build_sdist(sdist_directory, config_settings=None):
    engine = HERE / "engine"
    if (HERE / "PKG-INFO").is_file():  # of a source distribution
        return _build.build_sdist(sdist_directory, config_settings)
    try:
        shutil.rmtree(engine, ignore_errors=True)
        for part in PARTS:
            (engine / part).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
            copy(ROOT / part, engine / part)
        return _build.build_sdist(sdist_directory, config_settings)
    finally:
        shutil.rmtree(engine, ignore_errors=True)
