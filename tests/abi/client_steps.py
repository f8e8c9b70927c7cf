# SPDX-License-Identifier: Apache-2.0
"""Steps that the tests of the ABI's clients share: run, fetch, build, compare two transcripts."""
import difflib
import itertools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
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


def need_version(program, least, *arguments):
    """Skips when a program is not there or older than `least`, a tuple of two numbers."""
    need(program)
    _, out, err = call([program, *(arguments or ["--version"])], 60)
    found = re.search(r"(\d+)\.(\d+)", out + err)
    if not found or (int(found.group(1)), int(found.group(2))) < least:
        pytest.skip(f"{program} {found.group() if found else 'of unknown version'} is older than "
                    f"{least[0]}.{least[1]}")


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


def make_program(program, command, env=None, cwd=None):
    """Builds `program`, which `command` names behind its words. Two runs of the tests may do so at
    once: the old file stays until the new one is whole."""
    new = program.with_name(f"{program.name}.{os.getpid()}")
    make(program.name, [*command, new], env=env, cwd=cwd)
    os.replace(new, program)
    return program


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
            code = re.match(r"code=\w+", text)
            line = f"{name} | {code.group() if code else text.split(' ')[0]}"
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
