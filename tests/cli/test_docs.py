# SPDX-License-Identifier: Apache-2.0
"""What is generated and committed must be current."""
import subprocess
import sys


def test_operators_table_is_current(build, root):
    done = subprocess.run([sys.executable, root / "scripts/gen_operators.py", build / "sardonyx"],
                          capture_output=True, text=True, check=True)
    assert done.stdout == (root / "docs/operators.md").read_text(), "docs/operators.md is stale: run make docs"
