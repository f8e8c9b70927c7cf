# SPDX-License-Identifier: Apache-2.0
"""A C++ program linked with the real library, started on it and on ours."""
import pytest

from client_steps import HERE, ROOT, make_program, need


@pytest.fixture(scope="module")
def program(clients_cache, real_ort):
    need("g++")
    return make_program(clients_cache / "raii_client",
                        ["g++", "-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I",
                         ROOT / "include", HERE / "clients/cpp/raii_client.cpp", "-L",
                         real_ort.parent, "-l:libonnxruntime.so.1", "-pthread", "-o"])


def test_transcript(program, transcripts, real_ort, our_ort):
    command = [program, "models"]
    transcripts("cpp", (command, {"LD_LIBRARY_PATH": str(real_ort.parent)}),
                (command, {"LD_LIBRARY_PATH": str(our_ort.parent)}))
