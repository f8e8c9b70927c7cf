# SPDX-License-Identifier: Apache-2.0
"""One-node models of com.microsoft as test folders, run by the program with 1, 2 and 7 threads."""
import re

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from case_folder import write_case

TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16,
         np.dtype(np.int32): TensorProto.INT32, np.dtype(np.int64): TensorProto.INT64,
         np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8,
         np.dtype(np.bool_): TensorProto.BOOL, np.dtype(np.float64): TensorProto.DOUBLE}


def ort_session(model):
    """A session of onnxruntime without its optimisations."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def ort_run(model, feeds):
    """Its outputs."""
    return ort_session(model).run(None, feeds)


class OnnxRuntime:
    """In place of the standard's evaluator (single_nodes.Reference)."""

    def run(self, model, feeds):
        return ort_run(model, {name: value if isinstance(value, (list, dict)) else np.asarray(value)
                               for name, value in feeds.items()})


def one_node(op, inputs, count_out, attributes=None, types_out=(), constants=(), domain="com.microsoft",
             shapes=True):
    """A model of one node. inputs: (name, array or None) in the operator's order."""
    names = [n if a is not None else "" for n, a in inputs]
    while names and not names[-1]:
        names.pop()
    first = next(a for _, a in inputs if a is not None)
    outs = [f"out{k}" for k in range(count_out)]
    node = helper.make_node(op, names, outs, domain=domain, **(attributes or {}))
    kinds = list(types_out) + [first.dtype] * (count_out - len(types_out))
    values_in = [helper.make_tensor_value_info(n, TYPES[a.dtype], a.shape if shapes else None)
                 for n, a in inputs if a is not None and n not in constants]
    values_out = [helper.make_tensor_value_info(n, TYPES[np.dtype(t)], None)
                  for n, t in zip(outs, kinds)]
    initializers = [numpy_helper.from_array(a, n) for n, a in inputs
                    if a is not None and n in constants]
    graph = helper.make_graph([node], "g", values_in, values_out, initializers)
    return helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])


class Cases:
    """Test folders under one folder."""

    def __init__(self, folder):
        self.folder, self.count = folder / "cases", 0

    def add(self, model, feeds, golden=None):
        """golden None: what onnxruntime gives."""
        if golden is None:
            golden = ort_run(model, feeds)
        write_case(self.folder / f"case_{self.count:03d}", model, feeds, golden)
        self.count += 1
        return golden

    def node(self, op, inputs, count_out=1, attributes=None, golden=None, constants=(), **more):
        model = one_node(op, inputs, count_out, attributes, constants=constants, **more)
        feeds = {n: a for n, a in inputs if a is not None and n not in constants}
        return self.add(model, feeds, golden)

    def run(self, sardonyx, rtol=1e-4, atol=1e-5, peak=0):
        """All pass, with the same bits whatever the number of threads."""
        digests = set()
        for threads in (1, 2, 7):
            done = sardonyx("test", self.folder, "--threads", threads, "--rtol", rtol, "--atol", atol,
                            "--peak", peak, "--digest", code=None)
            lines = [line for line in (done.out + done.err).split("\n") if "DIGEST" not in line]
            assert done.code == 0, "\n".join(lines)[-3000:]
            digests.add(tuple(re.findall(r"DIGEST .*", done.out)))
        assert len(digests) == 1 and next(iter(digests))
