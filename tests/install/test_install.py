# SPDX-License-Identifier: Apache-2.0
"""`make install`: another project finds the library through pkg-config and CMake, and the program in
the head of the public header does what it says."""
import os
import re
import subprocess

import pytest


def call(command, **kwargs):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **kwargs)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(build, tmp_path_factory):
    prefix = tmp_path_factory.mktemp("prefix")
    call(["cmake", "--install", build, "--prefix", prefix])
    return prefix


@pytest.fixture(scope="module")
def example(root, tmp_path_factory):
    """The program in the head comment of sardonyx.h, as a file."""
    text = (root / "include/sardonyx/sardonyx.h").read_text()
    comment = text[:text.index("*/")]
    lines = re.findall(r"^ \*     (.*)$|^ \*$", comment, re.M)
    path = tmp_path_factory.mktemp("example") / "example.c"
    path.write_text("\n".join(lines) + "\n")
    assert "int main" in path.read_text()
    return path


def pkg_config(installed, *flags):
    folders = sorted(installed.rglob("pkgconfig"))
    env = dict(os.environ, PKG_CONFIG_PATH=":".join(map(str, folders)))
    return call(["pkg-config", *flags, "sardonyx"], env=env).split()


def is_plain_build(build):
    """A sanitized library does not link into a program that is not."""
    return "SDX_SANITIZE:STRING=\n" in (build / "CMakeCache.txt").read_text()


def test_example_runs(installed, example, build, root, tmp_path):
    if not is_plain_build(build):
        pytest.skip("the library is sanitized")
    model = root / "examples/digits/digits.onnx"
    if not model.is_file():
        pytest.skip("examples/digits is not there")
    libraries = next(installed.rglob("libsardonyx.so")).parent
    outputs = []
    for standard, kind in (("c99", "shared"), ("c17", "static")):
        program = tmp_path / f"example_{kind}"
        flags = pkg_config(installed, "--cflags", "--libs", *(["--static"] * (kind == "static")))
        if kind == "static":
            flags = [str(libraries / "libsardonyx.a") if f == "-lsardonyx" else f for f in flags]
        call(["gcc", f"-std={standard}", "-Wall", "-Wextra", "-Werror", example, "-o", program,
              *flags])
        env = dict(os.environ, LD_LIBRARY_PATH=str(libraries))
        outputs.append(call([program, model], env=env))
    assert re.fullmatch(r"\S+: \d+ values, the first is \S+\n", outputs[0])
    assert outputs[0] == outputs[1]


def test_cmake_package(installed, build, tmp_path):
    if not is_plain_build(build):
        pytest.skip("the library is sanitized")
    (tmp_path / "main.c").write_text(
        '#include <sardonyx/sardonyx.h>\n#include <stdio.h>\n'
        "int main(void)\n{\n    return puts(sdx_version()) < 0;\n}\n")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(user C)\n"
        "find_package(sardonyx 0.1 REQUIRED)\n"
        "add_executable(user_shared main.c)\n"
        "target_link_libraries(user_shared sardonyx::sardonyx)\n"
        "add_executable(user_static main.c)\n"
        "target_link_libraries(user_static sardonyx::sardonyx_static)\n")
    call(["cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build",
          f"-DCMAKE_PREFIX_PATH={installed}"])
    call(["cmake", "--build", tmp_path / "build"])
    version = pkg_config(installed, "--modversion")[0]
    for name in ("user_shared", "user_static"):
        assert call([tmp_path / "build" / name]).strip() == version


def test_version_is_everywhere_the_same(root, installed):
    header = (root / "include/sardonyx/sardonyx.h").read_text()
    version = re.search(r'SDX_VERSION_STRING "([\d.]+)"', header).group(1)
    assert f"project(sardonyx VERSION {version} " in (root / "CMakeLists.txt").read_text()
    assert pkg_config(installed, "--modversion") == [version]
    numbers = re.findall(r"#define SDX_VERSION_(?:MAJOR|MINOR|PATCH)\s+(\d+)", header)
    assert ".".join(numbers) == version
