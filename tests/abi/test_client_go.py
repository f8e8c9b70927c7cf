# SPDX-License-Identifier: Apache-2.0
"""The Go module github.com/yalue/onnxruntime_go on the real library and on ours."""
import pytest

from client_steps import HERE, fetch, make_program, need, need_version


@pytest.fixture(scope="module")
def program(clients_cache):
    need("gcc")
    need_version("go", (1, 19), "version")
    folder = HERE / "clients/go"
    env = {"GOFLAGS": "-mod=readonly", "CGO_ENABLED": "1"}
    fetch("github.com/yalue/onnxruntime_go", ["go", "mod", "download"], env=env, cwd=folder)
    return make_program(clients_cache / "go_client", ["go", "build", "-o"], env=env, cwd=folder)


def test_transcript(program, transcripts, real_ort, our_ort):
    transcripts("go", ([program, real_ort, "models"], {}), ([program, our_ort, "models"], {}))
