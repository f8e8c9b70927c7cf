# SPDX-License-Identifier: Apache-2.0
"""The families of functions beyond loading and running, on the real library and on ours."""
import subprocess

import pytest

import family_models

FAMILIES = ("objects", "editor", "binding", "containers", "providers", "rest", "threads")


@pytest.fixture(scope="session")
def family_folder(models):
    """The folder of models with those of these tests too."""
    return family_models.write_models(models)


@pytest.fixture(scope="session")
def custom_ops(clients_cache, root):
    """The library of tests/abi/clients/c/custom_ops_library.c, which brings operators."""
    library = clients_cache / "libcustom_ops.so"
    command = ["gcc", "-std=gnu17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
               "-fvisibility=hidden", "-I", root / "include",
               root / "tests/abi/clients/c/custom_ops_library.c", "-o", library]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return library


@pytest.mark.parametrize("family", FAMILIES)
def test_transcript(family, c_client, transcripts, family_folder, real_ort, our_ort):
    program = c_client(f"{family}_client")
    transcripts(family, ([program, real_ort, "models"], {}), ([program, our_ort, "models"], {}))


def test_custom_operators(c_client, transcripts, family_folder, custom_ops, real_ort, our_ort):
    program = c_client("customop_client")
    transcripts("customop", ([program, real_ort, "models", custom_ops], {}),
                ([program, our_ort, "models", custom_ops], {}))


# The standard's rules for y = Relu(x + w): who makes a value, who reads it, what it is to the graph.
GRAPH = """\
few | code=2 There are 2 nodes, the array has room for 1
node | 0 sum Add-14 inputs 2
info | x of none consumers 1 required 1 output 0 constant 0
info | w of none consumers 1 required 0 output 0 constant 1
info | s of sum consumers 1 required 0 output 0 constant 0
node | 1 positive Relu-14 inputs 1
info | s of sum consumers 1 required 0 output 0 constant 0
info | y of positive consumers 0 required 0 output 1 constant 0
end | reached
"""


def test_graph_of_the_editor(c_client, our_ort):
    """The real library has no reading of graphs that programs make."""
    done = subprocess.run([c_client("graph_client"), our_ort, "."], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, GRAPH)
