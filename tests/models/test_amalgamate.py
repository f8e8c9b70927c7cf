# SPDX-License-Identifier: Apache-2.0
"""The engine in two files compiles alone and classifies as the library does."""
import os
import platform
import re
import shutil
import subprocess
import sys

import pytest

PROGRAM = """
#include "sardonyx.h"
#include <stdio.h>
int main(int argc, char **argv)
{
    sdx_context *cx = sdx_context_create(NULL);
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    sdx_tensor *in = NULL, *out = NULL;
    int64_t i;
    if (argc != 3 || sdx_model_open(cx, argv[1], NULL, &model)
        || sdx_session_create(cx, model, NULL, &session) || sdx_tensor_load_npy(cx, argv[2], &in)
        || sdx_run(session, 1, &(sdx_feed){sdx_model_input(model, 0)->name, in}, 1, NULL, &out))
        return fprintf(stderr, "%s\\n", sdx_error(cx)), 1;
    for (i = 0; i < sdx_tensor_count(out); i++)
        printf("%.9g\\n", sdx_tensor_f64(out, i));
    sdx_tensor_destroy(out);
    sdx_tensor_destroy(in);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    sdx_context_destroy(cx);
    return 0;
}
"""

# Other instruction sets have kernels, and so names, of their own.
TARGETS = {"x86_64": ("-mavx2 -mfma -mf16c", "-march=skylake-avx512")}


@pytest.fixture(scope="module")
def two_files(root, tmp_path_factory):
    """The compiler, and the folder with the two files."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("two_files")
    subprocess.run([sys.executable, str(root / "scripts/amalgamate.py"), str(folder)], check=True,
                   timeout=300)
    return compiler, folder


@pytest.mark.parametrize("flags", ["", *TARGETS.get(platform.machine(), ())])
def test_two_files_are_c(two_files, flags):
    compiler, folder = two_files
    done = subprocess.run([compiler, "-fsyntax-only", *flags.split(), "sardonyx.c"], cwd=folder,
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_two_files(sardonyx, root, two_files):
    numpy = pytest.importorskip("numpy")
    compiler, tmp_path = two_files
    (tmp_path / "main.c").write_text(PROGRAM, encoding="utf-8")
    subprocess.run([compiler, "-O2", "-c", "sardonyx.c"], cwd=tmp_path, check=True, timeout=1200)
    subprocess.run([compiler, "main.c", "sardonyx.o", "-o", "main", "-lm", "-lpthread"],
                   cwd=tmp_path, check=True, timeout=60)
    model = root / "examples/digits/digits.onnx"
    x = numpy.linspace(0, 1, 64, dtype=numpy.float32).reshape(1, 1, 8, 8)
    numpy.save(tmp_path / "x.npy", x)
    done = subprocess.run([str(tmp_path / "main"), str(model), str(tmp_path / "x.npy")],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    inputs = sardonyx("info", model, "--json").json["inputs"]
    sardonyx("run", model, "--input", f"{inputs[0]['name']}={tmp_path / 'x.npy'}", "--out",
             tmp_path / "out")
    expected = numpy.load(next((tmp_path / "out").glob("*.npy"))).ravel()
    found = numpy.array([float(line) for line in done.stdout.split()])
    assert numpy.allclose(found, expected, rtol=1e-5, atol=1e-5)
    text = (tmp_path / "sardonyx.c").read_text(encoding="utf-8")
    assert not re.search(r'#\s*include\s+"(?!sardonyx\.h)', text)
