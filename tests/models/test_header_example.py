# SPDX-License-Identifier: Apache-2.0
"""The program in the head of sardonyx.h compiles as C99 and runs, on both libraries."""
import os
import re
import shutil
import subprocess

import pytest

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-D_POSIX_C_SOURCE=200809L"]


def program_text(header):
    comment = header.read_text(encoding="utf-8").split("*/", 1)[0]
    lines = re.findall(r"^ \*(     .*|)$", comment, re.M)
    text = "\n".join(line[5:] for line in lines)
    start, end = text.index("#include <sardonyx"), text.rindex("\n}") + 3
    return text[start:end]


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_example(kind, root, build, sanitizers, tmp_path):
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("no C compiler")
    library = build / ("libsardonyx.so" if kind == "shared" else "libsardonyx.a")
    if not library.is_file():
        pytest.skip(f"{library} is not built")
    source, program = tmp_path / "example.c", tmp_path / "example"
    source.write_text(program_text(root / "include/sardonyx/sardonyx.h"), encoding="utf-8")
    link = [f"-L{build}", "-lsardonyx", f"-Wl,-rpath,{build}"] if kind == "shared" else [str(library)]
    flags = FLAGS + ([f"-fsanitize={sanitizers}"] if sanitizers else [])
    subprocess.run([compiler, *flags, f"-I{root / 'include'}", str(source), "-o", str(program), *link,
                    "-lm", "-lpthread"], check=True, timeout=120)
    done = subprocess.run([str(program), str(root / "examples/digits/digits.onnx")],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\w+: 10 values, the first is -?[\d.e+-]+\n", done.stdout), done.stdout
    missing = subprocess.run([str(program), str(tmp_path / "none.onnx")], capture_output=True,
                             text=True, timeout=60)
    assert missing.returncode == 1 and missing.stderr.count("\n") == 1, missing.stderr
