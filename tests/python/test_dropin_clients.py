# SPDX-License-Identifier: Apache-2.0
"""Real programs from PyPI, unchanged, on the package onnxruntime and on ours: the same results.

The scripts lie in clients/. Each runs twice in one environment (dropin/dropin_env.py); the second time
our package comes first on the path. Both write what they got, which is compared.
"""
import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "dropin")]
from dropin_env import call, client_python, torch_place, wheels  # noqa: E402
from dropin_paths import paths_of_ours  # noqa: E402

CLIENTS = HERE / "clients"
SKLEARN = ["scikit-learn==1.9.1", "skl2onnx==1.20.0"]
SLIM = ["onnxslim==0.1.98", "onnxsim==0.8.1"]
VISION = ["rtmlib==0.0.16"]
SHIPPED = ["magika==1.0.3", "nudenet==3.4.2", "onnxruntime-extensions==0.15.2", "piper-tts==1.8.0"]
YOLO = ["matplotlib==3.11.2", "opencv-python-headless==5.0.0.93", "pillow==13.0.0", "polars==2.1.0", "psutil==7.2.2",
        "pyyaml==6.0.3", "requests"]
TOLERANCE = {"rtol": 2e-3, "atol": 2e-4}  # of float results of whole models in another order of sums
# Packages whose use of names is read from their sources.
READ = ("audio-separator chromadb fastembed faster-whisper kokoro-onnx nudenet onnxconverter-common onnxtr "
        "optimum optimum-onnx piper-tts rapidocr rapidocr-onnxruntime rembg sentence-transformers silero-vad "
        "transformers ultralytics").split()


def run_both(build, tmp_path, python, script, *arguments, places=None):
    """The records of a script with the real package and with ours."""
    ours = paths_of_ours(build)

    def run(name, path):
        out = tmp_path / f"{name}.pickle"
        env = {**os.environ, "PYTHONPATH": path, "ORT_DISABLE_TELEMETRY": "1", "PYTHONWARNINGS": "ignore",
               "PYTHONDONTWRITEBYTECODE": "1", "OPENCV_LOG_LEVEL": "ERROR"}
        (tmp_path / name).mkdir()
        given = [tmp_path / name if item == "FOLDER" else item for item in arguments]
        done = call([python, CLIENTS / script, out, *given], env=env, timeout=1500)
        assert out.is_file(), f"{name}: exit code {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-4000:]}"
        return pickle.loads(out.read_bytes())
    with ThreadPoolExecutor(2) as pool:
        real, mine = pool.map(run, ("real", "ours"), ("", ours))
    assert "python-onnxruntime" not in real.pop("module") and "python-onnxruntime" in mine.pop("module")
    return real, mine


def differ(expected, got):
    """What is not the same, as a text; "" when all is. Floats may differ by TOLERANCE."""
    if isinstance(expected, np.ndarray) or isinstance(got, np.ndarray):
        expected, got = np.asarray(expected), np.asarray(got)
        if expected.shape != got.shape or expected.dtype != got.dtype:
            return f"{got.dtype}{list(got.shape)} for {expected.dtype}{list(expected.shape)}"
        if expected.dtype.kind != "f":
            return "" if np.array_equal(expected, got) else f"{np.sum(expected != got)} elements differ"
        close = np.isclose(got, expected, equal_nan=True, **TOLERANCE)
        return "" if close.all() else f"{np.sum(~close)} of {close.size} floats differ, most by " \
                                      f"{np.abs(got - expected).max():g}"
    if type(expected) is not type(got):
        return f"{type(got).__name__} for {type(expected).__name__}"
    if isinstance(expected, list):
        faults = [differ(one, two) for one, two in zip(expected, got)]
        faults += [f"{len(got)} items for {len(expected)}"] if len(got) != len(expected) else []
        return next(filter(None, faults), "")
    if isinstance(expected, dict):
        if set(expected) != set(got):
            return f"keys {sorted(got)} for {sorted(expected)}"
        return next(filter(None, (differ(expected[key], got[key]) for key in expected)), "")
    if isinstance(expected, float):
        return "" if np.isclose(got, expected, equal_nan=True, **TOLERANCE) else f"{got} for {expected}"
    return "" if expected == got else f"{got!r} for {expected!r}"


def compare(real, mine):
    faults = []
    for name, expected in real.items():
        if name.endswith(" is not run"):  # the real package could not
            continue
        faults.append((name, differ(expected, mine[name]) if name in mine else "is not there"))
    faults = [f"{name}: {fault}" for name, fault in faults if fault]
    assert not faults, "\n".join(faults)


def test_skl2onnx(build, tmp_path):
    python = client_python(build, "sklearn", SKLEARN)
    real, mine = run_both(build, tmp_path, python, "client_skl2onnx.py")
    compare(real, mine)
    assert len(real) > 80


def test_slimmers(build, tmp_path):
    """Models of floats only: what onnxslim feeds is random, and no index then."""
    python = client_python(build, "slim", SLIM)
    places = [HERE.parent.parent / "examples/digits/digits.onnx",
              Path(os.environ.get("SDX_REAL", "")) / "ultraface_rfb320/model.onnx",
              *(Path(os.environ.get("SDX_ZOO", "")) / name / "model.onnx" for name in
                ("shufflenet_v2_x0_5.op11", "mobilenet_v3_small.op16"))]
    models = [place for place in places if place.is_file()]
    compare(*run_both(build, tmp_path, python, "client_slim.py", "FOLDER", *models))


def test_rtmlib(build, tmp_path, shared):
    python = client_python(build, "rtmlib", VISION)
    real, mine = run_both(build, tmp_path, python, "client_rtmlib.py", os.environ.get("SDX_REAL", "none"),
                          os.environ.get("SDX_ZOO", "none"), shared / "real/media/img")
    if not real:
        pytest.skip("no models (SDX_REAL, SDX_ZOO)")
    compare(real, mine)


def test_packages_with_models(build, tmp_path, shared, root):
    python = client_python(build, "shipped", SHIPPED)
    files = [root / name for name in ("README.md", "Makefile", "scripts/check.py", "src/base/arena.c",
                                      "examples/digits/digits.onnx", "bench/goals.tsv")]
    real, mine = run_both(build, tmp_path, python, "client_shipped.py", shared / "real/media/img", *files)
    compare(real, mine)
    assert len(real) > 25


def test_ultralytics(build, tmp_path, shared):
    """PyTorch, which the rest of the tests do not need, comes from where torch_place finds it."""
    zoo = Path(os.environ.get("SDX_ZOO", "none"))
    if not (zoo / "yolo11n").is_dir():
        pytest.skip("no models (SDX_ZOO)")
    beside = torch_place()
    python = client_python(build, "ultralytics", YOLO, ["ultralytics==8.4.190", "ultralytics-thop==2.2.3"], beside)
    works = call([python, "-c", "import numpy, torch; torch.from_numpy(numpy.ones(1))"])
    if works.returncode != 0:
        pytest.skip(f"the PyTorch in {beside} does not go with this NumPy: {works.stderr.strip().splitlines()[-1]}")
    real, mine = run_both(build, tmp_path, python, "client_ultralytics.py", "FOLDER", zoo, shared / "real/media/img")
    compare(real, mine)
    assert any(name.endswith("keypoints") for name in real) and any(name.endswith("masks") for name in real)


@pytest.mark.slow
def test_names_that_packages_use(build, tmp_path):
    """Each name of onnxruntime in the sources of these packages that the real one has, ours has."""
    found = wheels(build, READ)
    if not found:
        pytest.skip("none of the packages can be had")
    real, mine = run_both(build, tmp_path, sys.executable, "client_names.py", *found)
    missing = [f"{package} {name}" for package, names in real.items() for name, there in names.items()
               if there and not mine[package].get(name)]
    assert not missing, "\n".join(missing)
    print(f"{len(real)} packages, {sum(map(len, real.values()))} uses of names")
