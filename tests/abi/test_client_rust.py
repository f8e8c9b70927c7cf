# SPDX-License-Identifier: Apache-2.0
"""The Rust crate ort (load-dynamic) on the real library and on ours."""
import pytest

from client_steps import HERE, fetch, make, need_version


@pytest.fixture(scope="module")
def program(clients_cache):
    need_version("cargo", (1, 92))
    manifest = HERE / "clients/rust/Cargo.toml"
    env = {"CARGO_TARGET_DIR": str(clients_cache / "rust"), "CARGO_TERM_COLOR": "never"}
    options = ["--quiet", "--locked", "--manifest-path", manifest]
    fetch("the crate ort", ["cargo", "fetch", *options], env=env)
    make("client.rs", ["cargo", "build", "--offline", *options], env=env)
    return clients_cache / "rust/debug/rust_client"


def test_transcript(program, transcripts, real_ort, our_ort):
    def on(library):
        return [program, "models"], {"ORT_DYLIB_PATH": str(library)}

    transcripts("rust", on(real_ort), on(our_ort))
