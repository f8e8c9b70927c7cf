# SPDX-License-Identifier: Apache-2.0
"""Virtual environments of the tests of real clients, made once below build/pyclients.

SDX_PYCLIENTS names another folder to keep them in. A test skips, with the reason, where the registry
cannot be reached or a package does not install.
"""
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from dropin_paths import ROOT

LIMIT = 900  # seconds an installation may take
QUIET = ["--quiet", "--disable-pip-version-check", "--no-input"]
REAL = ["onnxruntime==1.31.1", "onnx==1.23.2", "numpy==2.4.6"]


def home(build):
    folder = Path(os.environ.get("SDX_PYCLIENTS", build / "pyclients"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def call(command, **named):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace",
                          **named)


def pip(python, *words, **named):
    """Runs pip; its last lines when it failed, or None."""
    try:
        done = call([python, "-m", "pip", *words, *QUIET], timeout=LIMIT, **named)
    except subprocess.TimeoutExpired:
        return f"pip {words[0]} ran past {LIMIT} s"
    return None if done.returncode == 0 else (done.stderr.strip() or done.stdout.strip())[-600:]


def make_venv(folder, *more):
    """The Python of a new virtual environment."""
    done = call([sys.executable, "-m", "venv", *more, folder])
    if done.returncode != 0:
        pytest.skip(f"no virtual environment: {done.stderr.strip()[-300:]}")
    return folder / "bin/python"


def torch_place():
    """The folder of packages with PyTorch and torchvision: of SDX_TORCH_PYTHON, of this Python or of the
    system's, when it is of the same version as this one."""
    given = os.environ.get("SDX_TORCH_PYTHON")
    ask = "import sys; from importlib.util import find_spec as find; " \
          "print(*sys.version_info[:2], find('torchvision') and find('torch').origin)"
    for python in [given] if given else [sys.executable, "/usr/bin/python3"]:
        done = call([python, "-c", ask]) if Path(python).is_file() else None
        *version, place = done.stdout.strip().split(" ", 2) if done and done.returncode == 0 else [""]
        if version == [str(part) for part in sys.version_info[:2]] and place != "None":
            return Path(place).parent.parent
    pytest.skip("no PyTorch and torchvision for this Python (SDX_TORCH_PYTHON)")
    return None


def client_python(build, name, requirements, bare=(), beside=None):
    """The Python of the environment `name` with the real onnxruntime and what the client needs; `bare`
    are packages installed without what they ask for, `beside` a folder of more packages."""
    folder = home(build) / name
    wanted = "\n".join([*REAL, *requirements, *bare, str(beside or "")])
    with (home(build) / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = folder / "requirements.done"
        if not mark.is_file() or mark.read_text() != wanted:
            python = make_venv(folder)
            fault = pip(python, "install", *REAL, *requirements) or \
                (pip(python, "install", "--no-deps", *bare) if bare else None)
            if fault:
                pytest.skip(f"{' '.join([*requirements, *bare])} cannot be installed: {fault.splitlines()[-1]}")
            if beside:
                packages = next(folder.glob("lib/python*/site-packages"))
                (packages / "beside.pth").write_text(f"{beside}\n")
            mark.write_text(wanted)
    return folder / "bin/python"


def wheels(build, names):
    """The wheels of packages, without what they need; those that cannot be had are left out."""
    folder = home(build) / "wheels"
    folder.mkdir(exist_ok=True)
    found = []
    for name in names:
        stem = name.replace("-", "_")
        have = sorted(folder.glob(f"{stem}-*.whl"))
        if not have:
            pip(sys.executable, "download", "--no-deps", "--only-binary", ":all:", "-d", folder, name)
            have = sorted(folder.glob(f"{stem}-*.whl"))
        found += have[:1]
    return found


def build_dropin(folder):
    """The wheel of sardonyx-onnxruntime."""
    fault = pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "-w", folder,
                ROOT / "bindings/python-onnxruntime")
    assert fault is None, fault
    return next(Path(folder).glob("sardonyx_onnxruntime-*.whl"))
