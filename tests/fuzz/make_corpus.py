#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the seeds of the fuzzers: OUT/fuzz_wire and OUT/fuzz_npy.

    python tests/fuzz/make_corpus.py tests/fuzz/corpus
"""
import argparse
import glob
import os
import shutil

import numpy as np
from onnx import TensorProto, helper, numpy_helper

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")


def models():
    """Small models that hold every message and most fields between them."""
    f = TensorProto.FLOAT
    x = helper.make_tensor_value_info("x", f, ["N", 3], "doc")
    y = helper.make_tensor_value_info("y", f, None)
    w = numpy_helper.from_array(np.ones((3, 2), np.float32), "w")
    typed = [helper.make_tensor("t%d" % t, t, [2], [1, 0]) for t in (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 16, 17, 21)]
    typed.append(helper.make_tensor("s", TensorProto.STRING, [2], ["a", "b"]))
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(np.ones(1, np.float32), "sv"),
                                       numpy_helper.from_array(np.array([[0, 1]]), "si"), [2, 2])
    inner = helper.make_graph([helper.make_node("Relu", ["x"], ["z"])], "inner", [], [y])
    node = helper.make_node("Thing", ["x", "w", ""], ["y"], name="n", domain="d", f=1.5, i=-2, s="text", t=w, g=inner,
                            fs=[1.0, 2.0], ints=[1, -1], ss=["a", "b"], ts=[w], gs=[inner], sp=sparse,
                            tp=helper.make_sequence_type_proto(x.type), tps=[helper.make_map_type_proto(7, x.type)])
    external = TensorProto(name="e", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    external.external_data.add(key="location", value="make_npy.py")
    external.external_data.add(key="offset", value="4")
    graph = helper.make_graph([node], "g", [x], [y], [w, external] + typed, sparse_initializer=[sparse], value_info=[x])
    function = helper.make_function("d", "Thing", ["a"], ["b"], [helper.make_node("Abs", ["a"], ["b"])],
                                    [helper.make_opsetid("", 20)], ["f"])
    model = helper.make_model(graph, functions=[function], producer_name="p", doc_string="doc")
    helper.set_model_props(model, {"k": "v"})
    yield "model", model
    b = numpy_helper.from_array(np.ones(3, np.float32), "b")
    yield "graph", helper.make_model(helper.make_graph([helper.make_node("Add", ["x", "b"], ["y"])], "g", [x], [y], [b]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    out = parser.parse_args().out
    for name in ("fuzz_wire", "fuzz_npy"):
        os.makedirs(os.path.join(out, name), exist_ok=True)
    for name, model in models():
        with open(os.path.join(out, "fuzz_wire", name + ".onnx"), "wb") as file:
            file.write(model.SerializeToString())
    for path in glob.glob(os.path.join(DATA, "pb", "*.pb")):
        shutil.copy(path, os.path.join(out, "fuzz_wire"))
    for path in glob.glob(os.path.join(DATA, "npy", "*.np[yz]")):
        shutil.copy(path, os.path.join(out, "fuzz_npy"))


main()
