# SPDX-License-Identifier: Apache-2.0
"""Models of the suite and the zoo broken on purpose (mutants.py): `sardonyx check` and
onnx.checker.check_model(full_check=True) give the same verdict. mutants.tsv lists where they do not: the
mutation, who refuses, a pattern of what is said, and why."""
import os
import random
import re
from pathlib import Path

import pytest
import types_found

onnx = pytest.importorskip("onnx")
import mutants  # noqa: E402
import standard_check  # noqa: E402

SMALL = 60_000, 1_500_000  # bytes of a model of the suite, of the zoo
WITH_BODIES = "loop", "if_", "scan", "sequence_map", "expanded", "function"


def base_models(suite):
    """Lists of models to choose from: one that holds a lot is not chosen more often."""
    cases = [path for path in sorted(suite.glob("*/*/model.onnx")) if path.stat().st_size < SMALL[0]]
    bodies = [path for path in cases if any(word in path.parent.name for word in WITH_BODIES)]
    zoo = Path(os.environ.get("SDX_ZOO", "absent"))
    models = [path for path in sorted(zoo.glob("*/model.onnx")) if path.stat().st_size < SMALL[1]]
    return [paths for paths in (cases, bodies, models) if paths]


def make(suite, folder, count, seed):
    """{path: mutation} of `count` mutants, every mutation as often."""
    chance, bases, loaded, made = random.Random(seed), base_models(suite), {}, {}
    while len(made) < count:
        mutation = mutants.MUTATIONS[len(made) % len(mutants.MUTATIONS)]
        path = chance.choice(chance.choice(bases))
        if path not in loaded:
            loaded[path] = onnx.load(path)
        model = mutants.mutant(loaded[path], chance, mutation)
        if model is None:
            continue
        to = folder / f"{len(made):05d}_{mutation.__name__}_{path.parent.name}.onnx"
        to.write_bytes(model.SerializeToString())
        made[to] = mutation.__name__
    return made


def known_differences():
    """[(mutation, "ours" or "theirs" for who refuses, pattern, reason)]"""
    lines = (Path(__file__).parent / "mutants.tsv").read_text(encoding="utf-8").split("\n")
    return [tuple(line.split("\t")) for line in lines if line and not line.startswith("#")]


def is_known(rows, mutation, who, text):
    return any(fnmatch in ("*", mutation) and refuses == who and re.search(pattern, text)
               for fnmatch, refuses, pattern, _ in rows)


def compare(suite, program, folder, count, seed):
    made = make(suite, folder, count, seed)
    ours = types_found.check(program, list(made))
    theirs = standard_check.verdicts(made)
    rows, agree, known, unknown = known_differences(), 0, 0, []
    for path, mutation in made.items():
        faults, error = ours[str(path)], theirs[str(path)]
        if error == "crash" or bool(faults) == bool(error):
            agree += 1
            continue
        who, text = ("ours", faults[0]) if faults else ("theirs", error)
        if is_known(rows, mutation, who, text):
            known += 1
        else:
            unknown.append(f"{path.name}: only {who}: {text[:300]}")
    print(f"{count} mutants: {agree} agree, {known} differ for a known reason")
    assert not unknown, "\n".join(unknown)


def test_mutants(suite, program, tmp_path):
    compare(suite, program, tmp_path, 240, "sardonyx")


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["1", "2"])
def test_many_mutants(suite, program, tmp_path, seed):
    compare(suite, program, tmp_path, 1200, seed)
