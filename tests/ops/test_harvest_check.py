# SPDX-License-Identifier: Apache-2.0
"""The verdicts of the standard's checker in its own tests (1,733 models): `sardonyx check` gives the
same, with types and shapes where the standard looked at them (full_check), on structure alone where it
did not. harvest_check.tsv says where not, and why."""
import json

import reasons
import types_found


def test_verdicts(harvest, program):
    cases = sorted((harvest / "check").iterdir())
    verdicts = {case: json.loads((case / "verdict.json").read_text()) for case in cases}
    full = [case / "model.onnx" for case in cases if verdicts[case]["full_check"]]
    light = [case / "model.onnx" for case in cases if not verdicts[case]["full_check"]]
    faults = types_found.check(program, full)
    faults.update(types_found.check(program, light, "--structure"))
    assert len(cases) >= 1733 and len(faults) == len(cases)
    differ = {}
    for case in cases:
        found, verdict = faults[str(case / "model.onnx")], verdicts[case]
        if bool(found) == verdict["ok"]:
            differ[case.name] = f"standard: {verdict['error']}; ours: {found[:1]}"
    reasons.compare(differ, "harvest_check.tsv")


def test_faults_have_a_place(harvest, program):
    """Each line names a place and says what was found; it is one line."""
    rejected = [case / "model.onnx" for case in sorted((harvest / "check").iterdir())
                if not json.loads((case / "verdict.json").read_text())["ok"]]
    for path, lines in types_found.check(program, rejected).items():
        for line in lines:
            assert line and "\n" not in line and len(line) < 2000, (path, line)
