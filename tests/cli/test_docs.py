# SPDX-License-Identifier: Apache-2.0
"""What is generated and committed must be current."""


def test_operators_table_is_current(sardonyx, root):
    table = sardonyx("ops", "--markdown").out
    assert table == (root / "docs/operators.md").read_text(), "docs/operators.md is stale: run make docs"
