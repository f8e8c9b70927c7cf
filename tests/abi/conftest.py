# SPDX-License-Identifier: Apache-2.0
"""What the tests of libonnxruntime.so.1 share: the library, the real one, models, transcripts.

Clients and what they download lie in SDX_CLIENTS (build/clients): a second run is quick. A client
prints one line a check, `name | text`. It runs on the real library, then on ours, and the two
transcripts are compared; differ.tsv lists what may differ, and why.
"""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import abi_models  # noqa: E402
from client_steps import HERE, ROOT, call, compare, fetch, make_program, need  # noqa: E402

NODE_PACKAGE = "onnxruntime-node@1.30.0"


@pytest.fixture(scope="session")
def clients_cache():
    """The folder of built clients and downloaded packages."""
    folder = Path(os.environ.get("SDX_CLIENTS", ROOT / "build/clients"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def our_ort(build, sanitizers):
    """Our libonnxruntime.so.1."""
    path = build / "libonnxruntime.so.1"
    if not path.is_file():
        pytest.skip(f"{path} is not built")
    if sanitizers:
        pytest.skip("the library is built with sanitizers, clients are not")
    return path


@pytest.fixture(scope="session")
def node_package(clients_cache):
    """The folder node_modules with onnxruntime-node."""
    folder = clients_cache / "node"
    package = folder / "node_modules/onnxruntime-node/package.json"
    if not package.is_file():
        need("npm")
        folder.mkdir(exist_ok=True)
        fetch(NODE_PACKAGE, ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund",
                             "--no-save", "--fetch-retries=0", "--prefix", folder,
                             NODE_PACKAGE])
    return folder / "node_modules"


@pytest.fixture(scope="session")
def real_ort(node_package):
    """The real libonnxruntime.so.1, release 1.30.0, of the npm package."""
    found = sorted(node_package.glob("onnxruntime-node/bin/*/linux/x64/libonnxruntime.so.1"))
    if not found:
        pytest.skip(f"no libonnxruntime.so.1 in {node_package}")
    return found[0]


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """The folder with the models of abi_models.py; programs run beside it as `models`."""
    return abi_models.write_models(tmp_path_factory.mktemp("abi") / "models")


@pytest.fixture(scope="session")
def c_client(clients_cache):
    """Builds a C program of tests/abi/clients/c over ort.h: c_client("scenarios") is its path."""
    def build_client(name):
        need("gcc")
        sources = [HERE / "clients/c/abi_client.c", HERE / f"clients/c/{name}.c"]
        return make_program(clients_cache / name,
                            ["gcc", "-std=gnu17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I",
                             ROOT / "include", *sources, "-ldl", "-pthread", "-o"])
    return build_client


@pytest.fixture(scope="session")
def transcripts(models, clients_cache):
    """transcripts(client, on_real, on_ours): runs (command, env) twice and compares the output."""
    def run(client, on_real, on_ours):
        lines = []
        for which, (command, env) in (("real", on_real), ("ours", on_ours)):
            code, out, err = call(command, 300, env, models.parent)
            (clients_cache / f"{client}.{which}.txt").write_text(out)
            shown = f"{client} on the {which} library: code {code}\n{out[-2000:]}\n{err[-4000:]}"
            if which == "real":
                assert code == 0 and out.rstrip().endswith("end | reached"), shown
            lines.append((out.rstrip("\n").split("\n"), shown))
        (expected, _), (found, shown) = lines
        wrong = compare(client, expected, found)
        report = "\n".join(f"  real: {want}\n  ours: {got}" for want, got in wrong[:40])
        assert not wrong, f"{len(wrong)} of {len(expected)} lines differ\n{report}\n{shown}"
    return run
