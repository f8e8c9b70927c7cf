# SPDX-License-Identifier: Apache-2.0
"""Source distributions of the two packages: `python -m build` makes them, and wheels from them."""
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, DROPIN = ROOT / "bindings/python", ROOT / "bindings/python-onnxruntime"
SMOKE = """
import numpy as np, sardonyx, python_models
made = sardonyx.InferenceSession(python_models.matmul())
print(sardonyx.__file__, made.run(None, {"x": np.ones((1, 4), "f4"), "w": np.ones((4, 3), "f4")})[0].tolist())
"""


def make(folder, out, *arguments):
    """What `python -m build` makes of a folder: {suffix: path}; skips without what it downloads."""
    pytest.importorskip("build.__main__")
    done = subprocess.run([sys.executable, "-m", "build", "-o", out, *arguments, folder], cwd=out,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3000)
    if "No matching distribution found" in done.stdout:
        pytest.skip("python -m build cannot download scikit-build-core")
    assert done.returncode == 0, done.stdout[-4000:]
    return {path.suffix: path for path in out.iterdir()}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The source distribution of sardonyx, unpacked."""
    out = tmp_path_factory.mktemp("sdist")
    archive = make(PACKAGE, out, "--sdist")[".gz"]
    assert not (PACKAGE / "engine").exists(), "the copy of the engine stays in the checkout"
    with tarfile.open(archive) as file:
        file.extractall(out)
    return out / archive.name[:-len(".tar.gz")]


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts}


def test_sdist_holds_the_sources(sdist):
    for part in ("src", "include", "abi/ort", "cmake", "vision", "bindings/python/src"):
        assert files_below(sdist / "engine" / part) == files_below(ROOT / part) != set()
    assert files_below(sdist / "sardonyx") == files_below(PACKAGE / "sardonyx")
    tops = {path.name for path in sdist.iterdir()}
    assert tops == {"PKG-INFO", "README.md", "build_backend", "engine", "pyproject.toml", "sardonyx"}


def test_sdist_configures(sdist, tmp_path):
    """CMake finds all that it reads; the extension has as many sources as in the checkout."""
    tomllib = pytest.importorskip("tomllib")
    with open(sdist / "pyproject.toml", "rb") as file:
        settings = tomllib.load(file)["tool"]["scikit-build"]
    source, = [row["cmake"]["source-dir"] for row in settings["overrides"] if row["if"]["from-sdist"]]
    defines = [f"-D{key}={value}" for key, value in settings["cmake"]["define"].items()]
    counts = []
    for folder in (ROOT, sdist / source):
        made = tmp_path / folder.name
        for command in (["cmake", "-G", "Ninja", "-S", folder, "-B", made, *defines,
                         f"-DPython_EXECUTABLE={sys.executable}"],
                        ["ninja", "-C", made, "-t", "inputs", *settings["build"]["targets"]]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        sources = {line for line in done.stdout.split("\n") if line.endswith(".c")}
        counts.append(len(sources))
    assert counts[0] == counts[1] > 100


def test_dropin(tmp_path):
    made = make(DROPIN, tmp_path)
    again = tmp_path / "again"
    again.mkdir()
    direct = make(DROPIN, again, "--wheel")[".whl"]
    assert made[".whl"].name == direct.name and made[".gz"].name.startswith("sardonyx_onnxruntime-")
    assert made[".whl"].read_bytes() == direct.read_bytes()


@pytest.mark.slow
def test_wheel_from_the_sdist(tmp_path, package_env):
    """Compiles the engine; what comes out runs a model."""
    made = make(PACKAGE, tmp_path)
    assert sorted(made) == [".gz", ".whl"]
    names = zipfile.ZipFile(made[".whl"]).namelist()
    assert any(name.startswith("sardonyx/_sardonyx.") for name in names) and "sardonyx/py.typed" in names
    site = tmp_path / "site"
    zipfile.ZipFile(made[".whl"]).extractall(site)
    env = dict(package_env, PYTHONPATH=f"{site}:{Path(__file__).parent}")
    done = subprocess.run([sys.executable, "-c", SMOKE], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{site}/sardonyx/__init__.py [[4.0, 4.0, 4.0]]\n"
