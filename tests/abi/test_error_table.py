# SPDX-License-Identifier: Apache-2.0
"""The recorded errors of ONNX Runtime, code and message, through a C program.

Every row of the table has its situation in clients/c/error_table.c. Messages that name a source file
of the real library change between its releases: of those the code counts.
"""
import re

import pytest
from client_steps import SOURCE_PATH, call

# Rows of which only the code is compared though they name no source file, each with its reason.
BY_CODE = {
    "provider: CUDA absent": "what the loader of shared libraries says",
}


@pytest.fixture(scope="session")
def recorded(shared):
    """{name: (code, message)} of the table; a line end is written | in it."""
    path = shared / "ort/errors.tsv"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    rows = [line.split("\t") for line in path.read_text().split("\n") if line]
    return {row[0]: (row[1], row[2]) for row in rows}


def answers(program, library, models):
    """{name: (code, message)} as the library gives them."""
    code, out, err = call([program, library, "models"], 300, cwd=models.parent)
    assert code == 0 and out.endswith("end | reached\n"), f"code {code}\n{out[-2000:]}\n{err[-2000:]}"
    found = {}
    for line in out.split("\n")[:-2]:
        name, _, text = line.partition(" | ")
        match = re.match(r"code=(\d+) (.*)", text)
        if match:
            found[name] = (match.group(1), match.group(2).replace("\\n", "|"))
        else:
            found[name] = ("0", "(ok)") if text == "ok" else ("-", text)
    return found


def differences(recorded, found):
    wrong = []
    for name, (code, message) in recorded.items():
        got_code, got = found.get(name, ("", "no such situation"))
        if SOURCE_PATH.search(message) or name in BY_CODE:
            got = message
        if (code, message) != (got_code, got):
            wrong.append(f"{name}\n  recorded: {code} {message}\n  found:    {got_code} {got}")
    return wrong


def test_every_row_has_a_situation(recorded, c_client, real_ort, models):
    found = answers(c_client("error_table"), real_ort, models)
    assert set(recorded) == set(found)


def test_the_real_library_says_what_was_recorded(recorded, c_client, real_ort, models):
    wrong = differences(recorded, answers(c_client("error_table"), real_ort, models))
    assert not wrong, "\n".join(wrong)


def test_ours(recorded, c_client, our_ort, models):
    wrong = differences(recorded, answers(c_client("error_table"), our_ort, models))
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong)
