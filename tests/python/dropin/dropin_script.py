# SPDX-License-Identifier: Apache-2.0
"""Runs the cases on the module `onnxruntime` that this Python finds, and writes what they give.

    dropin_script.py TRANSCRIPT FOLDER [FIRST]

One JSON line a case in TRANSCRIPT, [name, text], written before the next case starts; FIRST: the case
to begin with, after one that ended the process.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import dropin_cases  # noqa: E402,F401
from dropin_kit import CASES, run_case  # noqa: E402


def main():
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
    transcript, folder = Path(sys.argv[1]), Path(sys.argv[2])
    names = list(CASES)
    first = names.index(sys.argv[3]) if len(sys.argv) > 3 else 0
    with transcript.open("a", encoding="utf-8") as file:
        for name in names[first:]:
            file.write(json.dumps([name, None]) + "\n")
            file.flush()
            text = run_case(name, onnxruntime, folder)
            file.write(json.dumps([name, text]) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
