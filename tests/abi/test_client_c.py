# SPDX-License-Identifier: Apache-2.0
"""A C program over include/sardonyx/ort.h on the real library and on ours."""


def test_transcript(c_client, transcripts, real_ort, our_ort):
    program = c_client("scenarios")
    transcripts("c", ([program, real_ort, "models"], {}), ([program, our_ort, "models"], {}))
