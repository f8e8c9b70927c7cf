# SPDX-License-Identifier: Apache-2.0
"""The distribution sardonyx-onnxruntime: what is in its wheel, what pip and importlib see once it is in."""
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "dropin")]
from dropin_env import build_dropin, call, make_venv, pip  # noqa: E402
from dropin_paths import ROOT, paths_of_ours  # noqa: E402

PACKAGE = ROOT / "bindings/python-onnxruntime"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_dropin(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    """A virtual environment with the wheel alone: (its Python, its site-packages)."""
    python = make_venv(tmp_path_factory.mktemp("site") / "venv")
    assert pip(python, "install", "--no-index", "--no-deps", wheel) is None
    return python, Path(call([python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"])
                        .stdout.strip())


def run(python, code, **named):
    return call([python, "-c", textwrap.dedent(code)], **named)


def make_wheel(folder, name, version="1.0", requires=None):
    """A package with nothing in it that requires something."""
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_wheel_is_pure(wheel):
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "onnxruntime/__init__.py" in names
    assert not [name for name in names if name.endswith((".so", ".pyc"))]
    assert sum(name.endswith(".dist-info/RECORD") for name in names) == 2


def test_metadata(site):
    done = run(site[0], """
        from importlib import metadata
        print(metadata.version("onnxruntime"), metadata.version("sardonyx-onnxruntime"))
        print(metadata.metadata("onnxruntime")["Summary"])
        print(sorted(metadata.packages_distributions()["onnxruntime"]))
        files = metadata.files("onnxruntime")
        print(all(item.locate().is_file() for item in files), any(str(item) == "onnxruntime/__init__.py"
                                                                   for item in files))
    """)
    lines = done.stdout.splitlines()
    version = tuple(map(int, lines[0].split()[0].split(".")))
    assert version >= (1, 31)
    assert lines[1:] == ["Stands for onnxruntime; installed by sardonyx-onnxruntime",
                         "['onnxruntime', 'sardonyx-onnxruntime']", "True True"], done.stderr


def test_spec_without_import(site):
    done = run(site[0], "import importlib.util as u; s = u.find_spec('onnxruntime'); print(s.name, s.origin)")
    assert done.stdout.split() == ["onnxruntime", str(site[1] / "onnxruntime/__init__.py")]


def test_import_without_sardonyx_says_so(site):
    done = run(site[0], "import onnxruntime")
    assert done.returncode == 1
    assert "ImportError: sardonyx-onnxruntime needs the package sardonyx" in done.stderr


def test_packages_that_require_it_install(site, tmp_path):
    """Beside stand-ins for what ours requires."""
    version = call([site[0], "-c", "from importlib.metadata import version; "
                                   "print(version('sardonyx-onnxruntime'))"]).stdout.strip()
    clients = [make_wheel(tmp_path, f"needs_it_{index}", requires=f"onnxruntime{wanted}")
               for index, wanted in enumerate(("", ">=1.31", " (>=1.17,<2)", "!=1.20.0,>=1.16; python_version>'3'"))]
    others = [make_wheel(tmp_path, "sardonyx", version), make_wheel(tmp_path, "numpy", "2.0.0")]
    assert pip(site[0], "install", "--no-index", *others, *clients) is None
    checked = call([site[0], "-m", "pip", "check"])
    assert checked.stdout.strip() == "No broken requirements found.", checked.stdout
    assert pip(site[0], "uninstall", "-y", "sardonyx", "numpy") is None


def test_pip_lists_both(site):
    listed = call([site[0], "-m", "pip", "list", "--format=freeze"]).stdout.lower()
    assert "onnxruntime==1.31.1" in listed and "sardonyx-onnxruntime==" in listed


def test_mixed_installation_is_refused(site):
    path = site[1] / "onnxruntime/capi/onnxruntime_pybind11_state.cpython-399-x.so"
    path.write_bytes(b"")
    try:
        done = run(site[0], "import onnxruntime")
    finally:
        path.unlink()
    assert "are installed over each other" in done.stderr


@pytest.mark.slow
def test_uninstall_leaves_nothing(wheel, tmp_path):
    python = make_venv(tmp_path / "venv")
    assert pip(python, "install", "--no-index", "--no-deps", wheel) is None
    assert pip(python, "uninstall", "-y", "sardonyx-onnxruntime") is None
    left = [path.name for path in (tmp_path / "venv").rglob("*onnxruntime*")
            if path.name != "__pycache__"]
    assert left == []


@pytest.mark.slow
def test_editable(tmp_path):
    python = make_venv(tmp_path / "venv")
    assert pip(python, "install", "--no-index", "--no-deps", "--no-build-isolation", "-e", PACKAGE) is None
    done = run(python, "from importlib import metadata, util; print(metadata.version('onnxruntime'), "
                       "util.find_spec('onnxruntime').origin)")
    assert done.stdout.split()[1] == str(PACKAGE / "onnxruntime/__init__.py")


@pytest.mark.slow
def test_source_archive_builds(tmp_path):
    code = f"import sys; sys.path.insert(0, {str(PACKAGE / 'build_backend')!r}); import onnxruntime_wheel as w; " \
           f"print(w.build_sdist({str(tmp_path)!r}))"
    name = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=True).stdout.strip()
    assert pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path / "out",
               tmp_path / name) is None
    assert list((tmp_path / "out").glob("*.whl"))


def test_version_agrees_with_the_project():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    info = (PACKAGE / "onnxruntime/capi/build_and_package_info.py").read_text(encoding="utf-8")
    version = text.split("project(sardonyx VERSION ")[1].split()[0]
    assert f'sardonyx_version = "{version}"' in info


def test_runs_once_sardonyx_is_there(site, build, tmp_path):
    """With the package sardonyx of the build on the path, the installed module serves a model."""
    extension = paths_of_ours(build).split(":")[-1]
    numpy = Path(subprocess.run([sys.executable, "-c", "import numpy; print(numpy.__path__[0])"],
                                capture_output=True, text=True, check=True).stdout.strip())
    for folder in (numpy, numpy.parent / "numpy.libs"):  # alone: beside it is the real onnxruntime
        if folder.is_dir():
            (tmp_path / folder.name).symlink_to(folder)
    done = run(site[0], """
        import onnxruntime, importlib.metadata as m
        print(onnxruntime.__file__, onnxruntime.__version__ == m.version("onnxruntime"))
        print(onnxruntime.get_available_providers())
    """, env={"PYTHONPATH": f"{extension}:{tmp_path}", "PATH": "/usr/bin:/bin"})
    assert done.stdout.split()[:2] == [str(site[1] / "onnxruntime/__init__.py"), "True"], done.stderr
    assert "CPUExecutionProvider" in done.stdout
