# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share: where the program and the data are, and how to run the program.

Mark a test `slow` (@pytest.mark.slow) when it belongs to `make test-all` only. SDX_BUILD names the
build under test, SDX_SHARED the folder of test data that is not part of the repository.
"""
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Helper modules of all tests (case_folder.py) and beside those of a folder (cli/models.py, models/zoo.py, ops/contrib_cases.py,
# ops/draws.py, ops/edges_*.py, ops/plain_conv.py, ops/properties_*.py, ops/reasons.py, ops/single_nodes.py, ops/types_by_hand.py, passes/graphs.py, vision/vision_library.py) are imported by name.
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("", "cli", "models", "ops", "passes",
                                                            "vision")]


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: only in make test-all")


@pytest.fixture(scope="session")
def root():
    """The top folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def build():
    """The folder of the build under test."""
    return Path(os.environ.get("SDX_BUILD", ROOT / "build"))


@pytest.fixture(scope="session")
def sanitizers(build):
    """What the build was made with for -fsanitize=; "": nothing."""
    cache = build / "CMakeCache.txt"
    lines = cache.read_text(encoding="utf-8").split("\n") if cache.is_file() else []
    values = [line.split("=", 1)[1] for line in lines if line.startswith("SDX_SANITIZE:")]
    return values[0] if values else ""


@pytest.fixture(scope="session")
def shared():
    """The folder of test data beside the repository; tests that need it skip without it."""
    folder = Path(os.environ.get("SDX_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no test data at {folder} (SDX_SHARED)")
    return folder


@pytest.fixture(scope="session")
def harvest(shared, tmp_path_factory):
    """The vectors out of the standard's own tests: folders shape, check and convert."""
    given = os.environ.get("SDX_HARVEST")
    if given:
        return Path(given)
    archive = shared / "conformance/harvest.tar.xz"
    if not archive.is_file():
        pytest.skip(f"{archive} is not there")
    folder = tmp_path_factory.mktemp("vectors")
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    return folder / "harvest"


@pytest.fixture(scope="session")
def suite():
    """The standard's backend cases: folders KIND/NAME."""
    folder = Path(os.environ.get("SDX_SUITE", ROOT / "build/suite"))
    if not (folder / "node").is_dir():
        pytest.skip(f"no suite at {folder} (SDX_SUITE)")
    return folder


@pytest.fixture(scope="session")
def program(build):
    """The program itself, for tests that run it their own way."""
    path = build / "sardonyx"
    if not path.is_file():
        pytest.skip(f"{path} is not built")
    return path


class Result:
    """What a run of the program gave."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self):
        """The object in the last line, of --json."""
        return json.loads(self.out.strip().split("\n")[-1])


@pytest.fixture(scope="session")
def sardonyx(build):
    """Runs the program: sardonyx("info", path, env={...}, code=0) gives a Result.

    code: the exit code it must have; None: any but that of a crash. Output is text."""
    program = build / "sardonyx"
    if not program.is_file():
        pytest.skip(f"{program} is not built")

    def run(*arguments, code=0, env=None, timeout=300, cwd=None):
        done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True,
                              errors="replace", timeout=timeout, cwd=cwd,
                              env={**os.environ, **(env or {})})
        shown = f"{' '.join(map(str, arguments))}\nexit code {done.returncode}\n{done.stderr[-4000:]}"
        if code is None:
            assert done.returncode in (0, 1, 2), shown
        else:
            assert done.returncode == code, shown
        return Result(done)

    return run
