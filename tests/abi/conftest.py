# SPDX-License-Identifier: Apache-2.0
"""What the tests of libonnxruntime.so.1 share: the library, the real one, models, transcripts.

Clients and what they download lie in SDX_CLIENTS (build/clients): a second run is quick. A client
prints one line a check, `name | text`. It runs on the real library, then on ours, and the two
transcripts are compared; differ.tsv lists what may differ, and why.
"""
import difflib
import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import abi_models  # noqa: E402

NODE_PACKAGE = "onnxruntime-node@1.30.0"
SOURCE_PATH = re.compile(r"/onnxruntime_src/|\w+\.(h|cc):\d+ ")
ENV = {"ORT_DISABLE_TELEMETRY": "1", "LC_ALL": "C.UTF-8"}


def call(command, timeout=900, env=None, cwd=None):
    """(exit code, stdout, stderr) of a command; 124 when it hangs, 127 when it is not there."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              errors="replace", timeout=timeout, cwd=cwd,
                              env={**os.environ, **ENV, **(env or {})}, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr
    except FileNotFoundError:
        return 127, "", f"{command[0]}: not there"
    except subprocess.TimeoutExpired as hung:
        text = [part.decode(errors="replace") if isinstance(part, bytes) else part or ""
                for part in (hung.stdout, hung.stderr)]
        return 124, text[0], text[1] + f"\nhung for {timeout} s"


def need(*programs):
    """Skips when a program is not there."""
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        pytest.skip(f"{', '.join(missing)} missing: scripts/setup clients")


def fetch(what, command, timeout=900, env=None, cwd=None):
    """A step that needs a package registry; skips with the last line of its output otherwise."""
    code, out, err = call(command, timeout, env, cwd)
    if code != 0:
        lines = (out + err).strip().split("\n")
        pytest.skip(f"{what} cannot be downloaded: {lines[-1][:200]}")


def make(what, command, timeout=900, env=None, cwd=None):
    """A step of a build, which must succeed."""
    code, out, err = call(command, timeout, env, cwd)
    assert code == 0, f"{what}: exit code {code}\n{(out + err)[-6000:]}"


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
                             "--no-save", "--prefix", folder, NODE_PACKAGE])
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
        program = clients_cache / name
        sources = [HERE / "clients/c/abi_client.c", HERE / f"clients/c/{name}.c"]
        make(name, ["gcc", "-std=gnu17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I",
                    ROOT / "include", *sources, "-o", program, "-ldl", "-pthread"])
        return program
    return build_client


def read_differ():
    """[(client, pattern of a name, rule)] of differ.tsv."""
    rows = [line.split("\t") for line in (HERE / "differ.tsv").read_text().split("\n")
            if line and not line.startswith("#")]
    assert all(len(row) == 4 and row[3] for row in rows), "a row without its reason"
    return [(row[0], re.compile(row[1]), row[2]) for row in rows]


def name_of(line):
    return line.partition(" | ")[0]


def simplify(client, lines, rules, by_code):
    """What of the lines must be equal."""
    simple = []
    for line in lines:
        name, _, text = line.partition(" | ")
        rule = next((rule for owner, pattern, rule in rules
                     if owner in ("*", client) and pattern.fullmatch(name)), "")
        if rule:
            line = name if rule == "any" else f"{name} | {text.split(' ')[0]}"
        elif name in by_code:
            line = re.sub(r"(code=\w+).*", r"\1", line)
        simple.append(line)
    return simple


def compare(client, expected, found):
    """The lines that differ, as pairs; messages with a source path are compared by their code."""
    rules = read_differ()
    by_code = {name_of(line) for line in expected if SOURCE_PATH.search(line)}
    a = simplify(client, expected, rules, by_code)
    b = simplify(client, found, rules, by_code)
    wrong = []
    for kind, i, i_end, j, j_end in difflib.SequenceMatcher(None, a, b, False).get_opcodes():
        if kind != "equal":
            wrong += itertools.zip_longest(expected[i:i_end], found[j:j_end], fillvalue="")
    return wrong


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
