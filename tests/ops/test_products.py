# SPDX-License-Identifier: Apache-2.0
"""Matrix products whose operands are fed, in shapes of which parts pack the same columns, and by
16-bit weights that parts decode: the reference's values, and the same bits with any number of threads.
"""
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from case_folder import write_case

RNG = np.random.default_rng(23)
#         batch of A, of B, m, k, n
SHAPES = [((), (), 256, 64, 260), ((), (), 700, 33, 64), ((), (), 197, 3, 7), ((6,), (6,), 197, 64, 197),
          ((6,), (6,), 100, 197, 21), ((2, 3), (), 50, 66, 300), ((3,), (1,), 40, 5, 97), ((), (), 30, 2, 600)]


def check(sardonyx, folder, nodes, feeds, constants, tolerance, expected=None):
    """expected: what nodes of wider types make, where the reference rounds its sums."""
    kind = helper.np_dtype_to_tensor_dtype
    made = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, kind(a.dtype), a.shape) for n, a in feeds.items()],
        [onnx.ValueInfoProto(name="y")], [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]),
        ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    if expected is None:
        expected = ReferenceEvaluator(made).run(None, feeds)[0]
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", kind(expected.dtype), expected.shape))
    write_case(folder, made, feeds, [expected])
    said = {sardonyx("test", folder, "--threads", threads, "--digest", *tolerance).out.split("\n")[0]
            for threads in (1, 2, 3, 7)}
    assert len(said) == 1 and "DIGEST" in next(iter(said)), said


def drawn(dtype, *shape):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("type_b", (np.uint8, np.int8))
@pytest.mark.parametrize("zeros", ("none", "one", "columns"))
def test_integers(sardonyx, tmp_path, shape, type_b, zeros):
    outer_a, outer_b, m, k, n = shape
    if zeros == "columns" and outer_b:
        zeros = "one"  # of each column they would be [.., 1, n]
    feeds = {"a": drawn(np.uint8, *outer_a, m, k), "b": drawn(type_b, *outer_b, k, n)}
    constants = {"za": np.uint8(77), "zb": {"none": type_b(0), "one": type_b(99), "columns": drawn(type_b, n)}[zeros]}
    check(sardonyx, tmp_path / "sums", [helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])], feeds,
          constants, ("--rtol", 0, "--atol", 0))
    scales = {"sa": np.float32(0.02), "sb": np.full_like(constants["zb"], 1, np.float32) * np.float32(0.03),
              "sy": np.float32(0.05 * k), "zy": np.uint8(120)}
    check(sardonyx, tmp_path / "bytes",
          [helper.make_node("QLinearMatMul", ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], ["y"])], feeds,
          {**constants, **scales}, ("--rtol", 0, "--atol", 1))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", (np.float32, np.float16))
@pytest.mark.parametrize("fed", (True, False))
def test_floats(sardonyx, tmp_path, shape, dtype, fed):
    outer_a, outer_b, m, k, n = shape
    a, b = (RNG.standard_normal(s).astype(dtype) for s in ((*outer_a, m, k), (*outer_b, k, n)))
    check(sardonyx, tmp_path, [helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": a, "b": b} if fed else {"a": a},
          {} if fed else {"b": b}, ("--rtol", 0, "--atol", 0, "--peak", 2e-6 if dtype == np.float32 else 1e-3),
          np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(dtype))


@pytest.mark.parametrize("shape", ((384, 384, 384), (300, 700, 500), (64, 1100, 400), (20, 1500, 260)))
@pytest.mark.parametrize("turned", ((1, 0), (0, 1), (1, 1), (0, 0)))
def test_turned(sardonyx, tmp_path, shape, turned):
    """A is copied once for all ranges of columns, where it is turned or K is cut."""
    m, k, n = shape
    a, b, c = (RNG.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (n,)))
    feeds = {"a": np.ascontiguousarray(a.T) if turned[0] else a, "b": np.ascontiguousarray(b.T) if turned[1] else b}
    node = helper.make_node("Gemm", ["a", "b", "c"], ["y"], transA=turned[0], transB=turned[1], alpha=0.5, beta=2.0)
    check(sardonyx, tmp_path, [node], feeds, {"c": c}, ("--rtol", 0, "--atol", 0, "--peak", 2e-6),
          (0.5 * (a.astype(np.float64) @ b) + 2 * c.astype(np.float64)).astype(np.float32))
