# SPDX-License-Identifier: Apache-2.0
"""onnxslim and onnxsim with their own check of the result, which runs both models through the module.

    client_slim.py RECORD FOLDER MODEL...
"""
import contextlib
import io
import sys
from pathlib import Path

import onnx
import onnxslim
from client_kit import finish, record

folder = Path(sys.argv[2])
for path in map(Path, sys.argv[3:]):
    name = path.parent.name
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        onnxslim.slim(str(path), str(folder / f"{name}.onnx"), model_check=True)
    slimmed = onnx.load(folder / f"{name}.onnx")
    record(f"onnxslim {name}", [sorted({node.op_type for node in slimmed.graph.node}),
                                len(slimmed.graph.node), "not equal" in out.getvalue() + err.getvalue()])
    try:
        import onnxsim
    except ImportError:
        continue
    with contextlib.redirect_stdout(out):
        simplified, good = onnxsim.simplify(onnx.load(path), check_n=1)
    record(f"onnxsim {name}", [good, len(simplified.graph.node)])
finish()
