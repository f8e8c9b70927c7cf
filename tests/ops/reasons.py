# SPDX-License-Identifier: Apache-2.0
"""Lists of places where we judge differently from the standard, and why: tables beside the tests, a
key and a reason a line. A row that is no longer needed is a fault too, unless its reason begins with
"not yet"."""
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def read(name):
    """{key: reason} of a table."""
    lines = (FOLDER / name).read_text(encoding="utf-8").split("\n")
    return dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))


def compare(found, name):
    """found: {key: what differs}. Fails on what the table does not explain, and on rows without use."""
    reasons = read(name)
    unexplained = {key: text for key, text in found.items() if key not in reasons}
    needless = sorted(key for key, reason in reasons.items()
                      if key not in found and not reason.startswith("not yet"))
    shown = "\n".join(f"{key}: {text}" for key, text in sorted(unexplained.items())[:40])
    assert not unexplained, f"{len(unexplained)} not explained in {name}\n{shown}"
    assert not needless, f"rows of {name} without use: {needless}"
