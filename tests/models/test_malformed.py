# SPDX-License-Identifier: Apache-2.0
"""Broken and hostile model files: each gets the verdict it deserves from `check` and from `run`,
in bounded time and memory, with at least one line that says why, and never a crash.

The files are written by the generator of the shared test data; cases.json holds the verdicts:
reject, accept, or any (either, as long as it is clean).
"""
import json
import resource
import subprocess
import sys

import pytest

MEMORY = 3 << 30  # bytes of address space; what the cost cases ask for is a terabyte
SECONDS = 30
# Valid, and asks for more trips than anyone can wait for: running it must stay within memory only.
ENDLESS = {"loop_2_62_trips"}


@pytest.fixture(scope="module")
def cases(shared, tmp_path_factory):
    generator = shared / "malformed" / "make_malformed.py"
    pytest.importorskip("onnx")
    if not generator.is_file():
        pytest.skip(f"{generator} is not there")
    folder = tmp_path_factory.mktemp("malformed")
    subprocess.run([sys.executable, str(generator), str(folder)], check=True, timeout=300,
                   stdout=subprocess.DEVNULL)
    rows = json.loads((folder / "cases.json").read_text())
    assert len(rows) >= 100
    return [(folder / row["file"], row["class"], row["expect"]) for row in rows]


def limit():
    """In the child: bounded memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def verdict(program, verb, path, limited):
    """('accept' | 'reject' | what went wrong, what was printed)"""
    endless = verb == "run" and path.stem[4:] in ENDLESS
    try:
        done = subprocess.run([str(program), verb, str(path)], capture_output=True, text=True,
                              errors="replace", timeout=2 if endless else SECONDS,
                              preexec_fn=limit if limited else None)
    except subprocess.TimeoutExpired:
        return ("accept" if endless else "hang"), ""
    said = (done.stdout + done.stderr).strip()
    if done.returncode == 0:
        return "accept", said
    if done.returncode != 1:
        return f"exit code {done.returncode}", said
    return ("reject" if said else "reject without a line"), said


@pytest.fixture(scope="module")
def verdicts(cases, build, sanitizers):
    program = build / "sardonyx"
    if not program.is_file():
        pytest.skip(f"{program} is not built")
    limited = not sanitizers  # these need more address space than any bound
    return [(path.name, kind, expect, verdict(program, "check", path, limited),
             verdict(program, "run", path, limited)) for path, kind, expect in cases]


def test_nothing_crashes_or_hangs(verdicts):
    faults = [(name, verb, found) for name, _, _, *both in verdicts
              for verb, found in zip(("check", "run"), both) if found[0] not in ("accept", "reject")]
    assert not faults, faults


def test_run_verdicts(verdicts):
    faults = [(name, expect, ran) for name, _, expect, _, ran in verdicts
              if expect != "any" and ran[0] != expect]
    assert not faults, faults


def test_check_verdicts(verdicts):
    """What only a run can tell (class cost: values of operands) need not be found by `check`."""
    faults = [(name, expect, checked) for name, kind, expect, checked, _ in verdicts
              if expect != "any" and checked[0] != expect and not (kind == "cost" and expect == "reject")]
    assert not faults, faults


def test_lines_are_short(verdicts):
    """One line a fault, no dump: hostile names are cut."""
    for name, _, _, *both in verdicts:
        for _, said in both:
            assert all(len(line) < 2500 for line in said.splitlines()), name
