# SPDX-License-Identifier: Apache-2.0
"""The build backend (PEP 517, PEP 660) of sardonyx-onnxruntime; needs Python alone.

The wheel holds the package `onnxruntime` and, below its .data/purelib, a second .dist-info: that of a
distribution `onnxruntime` at the version whose behaviour is offered. So `Requires-Dist: onnxruntime`
of other packages is met, and importlib.metadata.version("onnxruntime") answers.
"""
import base64
import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
PACKAGE = HERE / "onnxruntime"
NAME = "sardonyx-onnxruntime"
STEM = NAME.replace("-", "_")
TAG = "py3-none-any"
STAMP = (1980, 1, 1, 0, 0, 0)


def read_value(name):
    """A constant out of onnxruntime/capi/build_and_package_info.py, which is not imported."""
    text = (PACKAGE / "capi/build_and_package_info.py").read_text(encoding="utf-8")
    return re.search(rf'^{name} = "([^"]*)"', text, re.M).group(1)


def own_version():
    return read_value("sardonyx_version")


def metadata(name, version, summary, requires=()):
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}",
             f"Summary: {summary}", "License: Apache-2.0", "Requires-Python: >=3.9"]
    lines += [f"Requires-Dist: {item}" for item in requires]
    return "\n".join(lines) + "\n"


def own_metadata():
    return metadata(NAME, own_version(), "import onnxruntime, served by Sardonyx",
                    [f"sardonyx=={own_version()}", "numpy>=1.21.6"])


def wheel_text():
    return f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: true\nTag: {TAG}\n"


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def package_files():
    """{path inside the wheel: content} of the package onnxruntime."""
    paths = sorted(path for path in PACKAGE.rglob("*")
                   if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(HERE).as_posix(): path.read_bytes() for path in paths}


def stand_in_files(installed):
    """{path below site-packages: content} of the metadata of `onnxruntime`, which owns `installed`."""
    version = read_value("__version__")
    folder = f"onnxruntime-{version}.dist-info"
    files = {
        f"{folder}/METADATA": metadata("onnxruntime", version,
                                       f"Stands for onnxruntime; installed by {NAME}",
                                       [f"{NAME}=={own_version()}"]),
        f"{folder}/WHEEL": wheel_text(),
        f"{folder}/INSTALLER": f"{NAME}\n",
        f"{folder}/top_level.txt": "onnxruntime\n",
    }
    files = {name: text.encode() for name, text in files.items()}
    record = "".join(record_line(name, content) for name, content in {**installed, **files}.items())
    files[f"{folder}/RECORD"] = (record + f"{folder}/RECORD,,\n").encode()
    return files


def write_wheel(folder, package, name_of_package):
    """package: files at the root of the wheel; name_of_package: those that RECORD of onnxruntime lists."""
    version = own_version()
    info = f"{STEM}-{version}.dist-info"
    data = f"{STEM}-{version}.data/purelib"
    files = dict(package)
    files.update({f"{data}/{name}": content
                  for name, content in stand_in_files(name_of_package).items()})
    files[f"{info}/METADATA"] = own_metadata().encode()
    files[f"{info}/WHEEL"] = wheel_text().encode()
    files[f"{info}/top_level.txt"] = b"onnxruntime\n"
    record = "".join(record_line(name, content) for name, content in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    name = f"{STEM}-{version}-{TAG}.whl"
    with zipfile.ZipFile(Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, STAMP)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = package_files()
    return write_wheel(wheel_directory, files, files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    path = {f"{STEM}.pth": f"{HERE}\n".encode()}
    return write_wheel(wheel_directory, path, path)


def build_sdist(sdist_directory, config_settings=None):
    stem = f"{STEM}-{own_version()}"
    files = package_files()
    for name in ("pyproject.toml", "README.md", "build_backend/onnxruntime_wheel.py"):
        files[name] = (HERE / name).read_bytes()
    files["PKG-INFO"] = own_metadata().encode()
    with tarfile.open(Path(sdist_directory) / f"{stem}.tar.gz", "w:gz") as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{stem}/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return f"{stem}.tar.gz"
