# SPDX-License-Identifier: Apache-2.0
"""The families of functions beyond loading and running, on the real library and on ours."""
import pytest

import family_models

FAMILIES = ("objects", "editor", "binding")


@pytest.fixture(scope="session")
def family_folder(models):
    """The folder of models with those of these tests too."""
    return family_models.write_models(models)


@pytest.mark.parametrize("family", FAMILIES)
def test_transcript(family, c_client, transcripts, family_folder, real_ort, our_ort):
    program = c_client(f"{family}_client")
    transcripts(family, ([program, real_ort, "models"], {}), ([program, our_ort, "models"], {}))
