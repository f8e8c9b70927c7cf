#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the seeds of the fuzzers: OUT/fuzz_wire, OUT/fuzz_npy; from the standard's cases, OUT/fuzz_model and
OUT/fuzz_codecs; with the program, OUT/fuzz_plan.

    python tests/fuzz/make_corpus.py tests/fuzz/corpus [--suite build/suite] [--program build/sardonyx]
"""
import argparse
import glob
import os
import shutil
import subprocess
import tempfile

import numpy as np
import onnx
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


def plan_models():
    """Small models whose weights have packed forms of each kind."""
    rng = np.random.default_rng(1)

    def constant(name, shape, dtype=np.float32):
        array = rng.standard_normal(shape) if dtype == np.float32 else rng.integers(0, 127, shape)
        return numpy_helper.from_array(array.astype(dtype), name)

    def model(nodes, x, constants, x_type=TensorProto.FLOAT, y_type=TensorProto.FLOAT):
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", x_type, x)],
                                  [helper.make_tensor_value_info("y", y_type, None)], constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    node = helper.make_node
    yield "gemm", model([node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["y"])], ["N", 8], [constant("w", (8, 9))])
    yield "conv", model([node("Conv", ["x", "w", "b"], ["y"], pads=[1, 1, 1, 1])], [1, 4, 5, 5],
                        [constant("w", (8, 4, 3, 3)), constant("b", (8,))])
    yield "gemm_q", model([node("MatMulInteger", ["x", "w"], ["y"])], [2, 20], [constant("w", (20, 18), np.uint8)],
                          TensorProto.UINT8, TensorProto.INT32)
    yield "conv_q", model([node("ConvInteger", ["x", "w"], ["y"])], [1, 17, 3, 3], [constant("w", (4, 17, 2, 2), np.uint8)],
                          TensorProto.UINT8, TensorProto.INT32)
    body = helper.make_graph([node("MatMul", ["x", "w"], ["t"])], "b", [], [helper.make_tensor_value_info("t", 1, None)])
    other = helper.make_graph([node("Identity", ["x"], ["e"])], "o", [], [helper.make_tensor_value_info("e", 1, None)])
    yield "if", model([node("ReduceSum", ["x"], ["s"], keepdims=0), node("Cast", ["s"], ["c"], to=TensorProto.BOOL),
                       node("If", ["c"], ["y"], then_branch=body, else_branch=other)], [5, 5], [constant("w", (5, 5))])
    yield "lstm", model([node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4)], [2, 1, 3],
                        [constant("w", (1, 16, 3)), constant("r", (1, 16, 4))])


def write_plans(program, folder):
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for name, model in plan_models():
            path = os.path.join(work, "model.onnx")
            onnx.save(model, path)
            subprocess.run([program, "compile", path, "-o", os.path.join(folder, name + ".sdx")], check=True,
                           env={**os.environ, "SDX_CPU": "generic"})  # the only set of the fuzzers' build


def smallest_models(suite):
    """{operator: path} of the smallest node case of every operator, each at most 800 bytes."""
    found = {}
    for path in sorted(glob.glob(os.path.join(suite, "node", "*", "model.onnx"))):
        size = os.path.getsize(path)
        nodes = onnx.load(path).graph.node
        op = nodes[0].op_type if len(nodes) == 1 else "several"
        if size <= 800 and size < found.get(op, (801, ""))[0]:
            found[op] = (size, path)
    return {op: path for op, (_, path) in found.items()}


def pictures(suite):
    """The pictures of the standard's cases, after a byte that chooses the pixels."""
    for path in sorted(glob.glob(os.path.join(suite, "node", "test_image_decoder_*", "test_data_set_0", "input_0.pb"))):
        words = path.split(os.sep)[-3].split("_")
        with open(path, "rb") as file:
            data = numpy_helper.to_array(TensorProto.FromString(file.read())).tobytes()
        yield "_".join(words[-2:]), bytes([("rgb", "bgr", "grayscale").index(words[-1])]) + data


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--suite", help="the folder that scripts/gen_suite.py wrote")
    parser.add_argument("--program", help="sardonyx, to compile plan files")
    args = parser.parse_args()
    out = args.out
    if args.suite:
        os.makedirs(os.path.join(out, "fuzz_model"), exist_ok=True)
        for op, path in smallest_models(args.suite).items():
            shutil.copy(path, os.path.join(out, "fuzz_model", op.lower() + ".onnx"))
        os.makedirs(os.path.join(out, "fuzz_codecs"), exist_ok=True)
        for name, data in pictures(args.suite):
            with open(os.path.join(out, "fuzz_codecs", name), "wb") as file:
                file.write(data)
    if args.program:
        write_plans(os.path.abspath(args.program), os.path.join(out, "fuzz_plan"))
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
