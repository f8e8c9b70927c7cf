# SPDX-License-Identifier: Apache-2.0
"""The standard's own checker in a process of its own, which some models bring down.

As a program: paths of models on stdin, a line of JSON a model on stdout: the error's text or null."""
import json
import subprocess
import sys


def verdicts(paths):
    """{path: None, the error's text, or "crash"} of onnx.checker.check_model(full_check=True)."""
    found, left = {}, [str(path) for path in paths]
    while left:
        done = subprocess.run([sys.executable, __file__], input="\n".join(left), capture_output=True,
                              text=True, errors="replace", timeout=1200)
        lines = [json.loads(line) for line in done.stdout.split("\n") if line]
        found.update(zip(left, lines))
        if len(lines) < len(left):
            assert done.returncode != 0, done.stderr[-2000:]
            found[left[len(lines)]] = "crash"
        left = left[len(lines) + 1:]
    return found


def main():
    import onnx
    for path in sys.stdin.read().split("\n"):
        try:
            onnx.checker.check_model(onnx.load(path), full_check=True)
            error = None
        except Exception as fault:  # whatever it throws is a verdict
            error = str(fault).strip() or type(fault).__name__
        print(json.dumps(error), flush=True)


if __name__ == "__main__":
    main()
