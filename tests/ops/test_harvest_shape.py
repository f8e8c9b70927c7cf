# SPDX-License-Identifier: Apache-2.0
"""The shape inference vectors of the standard's own tests (1,647): what `sardonyx infer` finds is at
least as precise as what the standard finds, and what the standard refuses, infer or check refuses.
harvest_shape.tsv says where not, and why."""
import json

import pytest
import reasons
import types_found

onnx = pytest.importorskip("onnx")


def link(cases, folder):
    """The models under names of their own."""
    folder.mkdir()
    paths = {}
    for case in cases:
        paths[case] = folder / f"{case.name}.onnx"
        paths[case].symlink_to(case / "model.onnx")
    return paths


def what_differs(case, error, found, faults):
    """Why ours is weaker, stricter or laxer than the vector; None: it is not."""
    if (case / "error.txt").exists():
        return None if error or faults else f"laxer: {(case / 'error.txt').read_text()[:300]}"
    if error:
        return f"stricter: {error}"
    mine = types_found.values(onnx.load(found).graph)
    theirs = types_found.values(onnx.load(case / "inferred.onnx").graph)
    for name, wanted in theirs.items():
        why = types_found.weaker(mine.get(name), wanted)
        if why:
            return f"{name}: {why}: {types_found.show(mine.get(name))}, not {types_found.show(wanted)}"
    return None


def test_vectors(harvest, program, tmp_path):
    cases = sorted((harvest / "shape").iterdir())
    assert len(cases) >= 1647
    paths = link(cases, tmp_path / "in")
    lenient = {case for case in cases
               if json.loads((case / "opts.json").read_text()).get("strict_mode") is False}
    strict = [paths[case] for case in cases if case not in lenient]
    errors = types_found.infer(program, strict, tmp_path / "out")
    errors.update(types_found.infer(program, [paths[case] for case in lenient], tmp_path / "out",
                                    lenient=True))
    refused = [paths[case] for case in cases if (case / "error.txt").exists()]
    faults = types_found.check(program, refused)
    differ = {}
    for case in cases:
        path = str(paths[case])
        why = what_differs(case, errors[path], tmp_path / "out" / f"{case.name}.onnx",
                           faults.get(path))
        if why:
            differ[case.name] = why
    reasons.compare(differ, "harvest_shape.tsv")
