# SPDX-License-Identifier: Apache-2.0
"""C programs over include/sardonyx/ort.h on the real library and on ours."""
import pytest


@pytest.mark.parametrize("name", ["scenarios", "containers"])
def test_transcript(name, c_client, transcripts, real_ort, our_ort):
    program = c_client(name)
    transcripts(name, ([program, real_ort, "models"], {}), ([program, our_ort, "models"], {}))
