# SPDX-License-Identifier: Apache-2.0
"""The npm package onnxruntime-node on the library that it brings and on ours."""
from client_steps import HERE, call, need


def test_transcript(node_package, transcripts, real_ort, our_ort):
    need("node")
    command = ["node", HERE / "clients/node/client.cjs", "models"]

    def on(library):
        return command, {"NODE_PATH": str(node_package), "LD_LIBRARY_PATH": str(library.parent)}

    transcripts("node", on(real_ort), on(our_ort))


def test_library_is_ours(node_package, our_ort, models):
    """What Node has loaded is our file: the swap works."""
    need("node")
    script = ("require('onnxruntime-node'); "
              "console.log(require('fs').readFileSync('/proc/self/maps', 'utf8'))")
    code, out, err = call(["node", "-e", script], cwd=models,
                          env={"NODE_PATH": str(node_package),
                               "LD_LIBRARY_PATH": str(our_ort.parent)})
    assert code == 0, err
    loaded = {line.split()[-1] for line in out.split("\n") if "libonnxruntime.so" in line}
    assert loaded == {str(our_ort.resolve())}
