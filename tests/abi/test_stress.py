# SPDX-License-Identifier: Apache-2.0
"""Many threads on the ONNX Runtime ABI and the edges of its functions: C programs on both libraries,
and under sanitizers."""
import pytest

from client_steps import HERE, ROOT, call, make, need


@pytest.mark.parametrize("name", ["stress", "edges"])
def test_transcript(name, c_client, transcripts, real_ort, our_ort):
    program = c_client(name)
    transcripts(name, ([program, real_ort, "models"], {}), ([program, our_ort, "models"], {}))


@pytest.mark.parametrize("name", ["stress", "edges", "scenarios"])
def test_sanitized(name, build, sanitizers, models, tmp_path):
    """With a build that has -fsanitize: the client is built with it too."""
    library = build / "libonnxruntime.so.1"
    if not sanitizers:
        pytest.skip("the build under test has no sanitizers (SDX_BUILD=build/asan)")
    need("gcc")
    sources = [HERE / f"clients/c/{part}.c" for part in ("abi_client", name)]
    make(name, ["gcc", "-std=gnu17", "-O1", "-g", f"-fsanitize={sanitizers}", "-I",
                ROOT / "include", *sources, "-o", tmp_path / name, "-ldl", "-pthread"])
    code, out, err = call([tmp_path / name, library, "models"], 900, None, models.parent)
    assert code == 0 and out.rstrip().endswith("end | reached"), out[-2000:] + err[-6000:]
    assert "Sanitizer" not in err, err[-6000:]
