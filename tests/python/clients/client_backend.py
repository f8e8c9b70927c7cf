# SPDX-License-Identifier: Apache-2.0
"""The test runner of the package onnx on a backend: its cases on the CPU.

    client_backend.py RECORD BACKEND [PATTERN]     BACKEND: a module such as sardonyx.backend
"""
import importlib
import os
import pickle
import sys
import tempfile
import unittest
from pathlib import Path

os.environ.setdefault("ONNX_HOME", tempfile.mkdtemp())
import onnx.backend.test  # noqa: E402


class Ends(unittest.TestResult):
    """Remembers how each case ended: {name: ("passed" | "failed" | "skipped", why)}."""

    def __init__(self):
        super().__init__()
        self.ends = {}

    def end(self, test, kind, text=""):
        self.ends[test.id().rsplit(".", 1)[-1]] = (kind, text)

    def addSuccess(self, test):  # noqa: N802
        self.end(test, "passed")

    def addSkip(self, test, reason):  # noqa: N802
        self.end(test, "skipped", reason)

    def addFailure(self, test, err):  # noqa: N802
        self.end(test, "failed", str(err[1]).strip())

    def addError(self, test, err):  # noqa: N802
        self.end(test, "failed", f"{type(err[1]).__name__}: {err[1]}")


tests = onnx.backend.test.BackendTest(importlib.import_module(sys.argv[2]), "onnx_backend_cases")
tests.include(sys.argv[3] if len(sys.argv) > 3 else "_cpu$")
ends = Ends()
tests.test_suite.run(ends)
run = {name: end for name, end in ends.ends.items() if end[1] != "no matched include pattern"}
Path(sys.argv[1]).write_bytes(pickle.dumps(run))
