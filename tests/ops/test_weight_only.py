# SPDX-License-Identifier: Apache-2.0
"""Weight-only quantisation against onnxruntime: MatMulNBits, and products of a DequantizeLinear of
constants, which must give what the two operators give one after the other."""
import itertools

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from case_folder import write_case  # noqa: E402

BITS = {2: (TensorProto.UINT2, TensorProto.INT2), 4: (TensorProto.UINT4, TensorProto.INT4),
        8: (TensorProto.UINT8, TensorProto.INT8)}


def ort_run(model, feeds):
    """onnxruntime's outputs without its optimisations; skips where it has no kernel."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        return session.run(None, feeds)
    except Exception as e:  # its exceptions have no common type
        if "NOT_IMPLEMENTED" in str(e) or "not implemented" in str(e).lower():
            pytest.skip("onnxruntime cannot run it")
        raise


def model_of(nodes, inputs, outputs, initializers, opset=21):
    def info(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "g", [info(n, s) for n, s in inputs],
                              [info(n, s) for n, s in outputs], initializers)
    return helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])


def pack(q, bits):
    """[..., count] to bytes, low bits first, each row padded to whole bytes."""
    each = 8 // bits
    pad = -q.shape[-1] % each
    q = np.pad(q, [(0, 0)] * (q.ndim - 1) + [(0, pad)]).reshape(*q.shape[:-1], -1, each)
    return (q.astype(np.uint32) << (np.arange(each) * bits)).sum(-1).astype(np.uint8)


NBITS = [(bits, block, zeros, m, n, k, bias)
         for (bits, block, zeros), (m, n, k, bias) in itertools.product(
             [(4, 16, True), (4, 32, False), (4, 128, True), (8, 32, True), (8, 256, False),
              (2, 32, True), (2, 64, False)],
             [(1, 70, 256, True), (3, 33, 96, False), (9, 70, 300, True), (130, 40, 1100, False)])]


def nbits_case(seed, bits, block, zeros, m, n, k, bias, **attributes):
    """A model of one MatMulNBits, A [2, m, k], the weights less their zero points [n, blocks, block], their scales
    [n, blocks] and what is added."""
    rng = np.random.default_rng(seed)
    blocks = -(-k // block)
    q = rng.integers(0, 1 << bits, (n, blocks, block))
    scale = rng.uniform(0.01, 0.1, (n, blocks)).astype(np.float32)
    zero = rng.integers(0, 1 << bits, (n, blocks)) if zeros else np.full((n, blocks), 1 << (bits - 1))
    a = rng.standard_normal((2, m, k)).astype(np.float32)
    added = rng.standard_normal(n).astype(np.float32)
    constants = [numpy_helper.from_array(pack(q, bits), "B"), numpy_helper.from_array(scale, "s")]
    if zeros:
        constants.append(numpy_helper.from_array(pack(zero, bits), "z"))
    if bias:
        constants.append(numpy_helper.from_array(added, "bias"))
    node = helper.make_node("MatMulNBits", ["A", "B", "s", "z" if zeros else "", "",
                                            "bias" if bias else ""], ["Y"], domain="com.microsoft",
                            K=k, N=n, bits=bits, block_size=block, **attributes)
    model = model_of([node], [("A", [2, m, k])], [("Y", [2, m, n])], constants)
    return model, a, q - zero[..., None], scale, added if bias else 0


@pytest.mark.parametrize("bits,block,zeros,m,n,k,bias", NBITS)
def test_matmul_nbits(sardonyx, tmp_path, bits, block, zeros, m, n, k, bias):
    model, a, p, scale, added = nbits_case(bits * 1000 + block + m, bits, block, zeros, m, n, k, bias)
    w = (p * scale[..., None].astype(np.float64)).reshape(n, -1)[:, :k]
    exact = a @ w.T + added
    golden = ort_run(model, {"A": a})[0]
    assert np.abs(golden - exact).max() <= 1e-4 * np.abs(exact).max()
    write_case(tmp_path / "case", model, {"A": a}, [golden])
    for threads in (1, 2):
        sardonyx("test", tmp_path / "case", "--threads", threads, "--rtol", "1e-4", "--atol", "1e-6",
                 "--peak", "1e-5")


def in_whole_numbers(a, p, scale, block):
    """The product by its definition: rows of A in 8 bits for each block, exact sums of a block, f32 between blocks.
    p: [n, blocks, block], weights less their zero points."""
    n, blocks, _ = p.shape
    padded = np.zeros((*a.shape[:-1], blocks * block), np.float32)
    padded[..., :a.shape[-1]] = a
    rows = padded.reshape(-1, blocks, block)
    scale_a = np.abs(rows).max(-1) / np.float32(127)
    q = np.rint(rows / np.where(scale_a == 0, np.float32(1), scale_a)[..., None])
    sums = np.einsum("mgk,ngk->mng", q.astype(np.int64), p)
    y = np.zeros((len(rows), n), np.float32)
    for g in range(blocks):
        y += sums[..., g].astype(np.float32) * (scale_a[:, None, g] * scale[:, g])
    return y.reshape(*a.shape[:-1], n)


@pytest.mark.parametrize("bits,block,zeros,m,n,k,bias", NBITS)
def test_accuracy_level_4(sardonyx, tmp_path, bits, block, zeros, m, n, k, bias):
    model, a, p, scale, added = nbits_case(bits * 1000 + block + m + 1, bits, block, zeros, m, n, k, bias, accuracy_level=4)
    a[0, 0, :block] = 0  # a block without a scale
    defined = in_whole_numbers(a, p, scale, block) + added
    write_case(tmp_path / "defined", model, {"A": a}, [defined.astype(np.float32)])
    # Sums are exact; what is left is the rounding of one chain over the blocks.
    for threads in (1, 2):
        sardonyx("test", tmp_path / "defined", "--threads", threads, "--rtol", "1e-5", "--atol", "0", "--peak", "2e-6")
    # onnxruntime's sums are the same but for numbers midway between two, as it multiplies by 1 / scale: 4e-4 was seen.
    golden = ort_run(model, {"A": a})[0]
    write_case(tmp_path / "golden", model, {"A": a}, [golden])
    sardonyx("test", tmp_path / "golden", "--rtol", "0", "--atol", "0", "--peak", "2e-3")


@pytest.mark.parametrize("level", [0, 4])
def test_one_constant_in_many_forms(sardonyx, tmp_path, level):
    """The packed form of weights belongs to their scales and zero points too: products of one B differ in those only."""
    bits, block, m, n, k = 4, 32, 3, 40, 128
    model, a, p, scale, _ = nbits_case(7, bits, block, False, m, n, k, False, accuracy_level=level)
    zero = np.random.default_rng(8).integers(0, 16, (n, k // block))
    middle = np.full_like(zero, 8)
    other = (scale * np.float32(1.5)).astype(np.float32)
    model.graph.initializer.extend([
        numpy_helper.from_array(pack(zero, bits), "z"), numpy_helper.from_array(pack(middle, bits), "middle"),
        numpy_helper.from_array(pack(15 - zero, bits), "z2"), numpy_helper.from_array(other, "s2")])
    forms = [("s", "z", zero), ("s2", "z", zero), ("s", "z2", 15 - zero), ("s", "middle", middle), ("s2", "", middle)]
    first = model.graph.node[0]
    for i, (s, z, _) in enumerate(forms):
        node = onnx.NodeProto()
        node.CopyFrom(first)
        node.input[2], node.input[3], node.output[0] = s, z, f"Y{i}"
        model.graph.node.append(node)
        model.graph.output.append(helper.make_tensor_value_info(f"Y{i}", TensorProto.FLOAT, [2, m, n]))
    scales = {"s": scale, "s2": other}
    expected = [in_whole_numbers(a, p + 8 - z[..., None], scales[s], block) if level else
                a @ ((p + 8 - z[..., None]) * scales[s][..., None].astype(np.float64)).reshape(n, k).T
                for s, _, z in [("s", "", middle), *forms]]
    write_case(tmp_path / "case", model, {"A": a}, [y.astype(np.float32) for y in expected])
    sardonyx("test", tmp_path / "case", "--rtol", "1e-4", "--atol", "1e-6", "--peak", "1e-5")


@pytest.mark.parametrize("level", [-1, 5])
def test_accuracy_level_beyond_its_range(sardonyx, tmp_path, level):
    node = helper.make_node("MatMulNBits", ["A", "B", "s"], ["Y"], domain="com.microsoft", K=16, N=2, bits=4, block_size=16,
                            accuracy_level=level)
    constants = [numpy_helper.from_array(np.zeros((2, 1, 8), np.uint8), "B"),
                 numpy_helper.from_array(np.ones((2, 1), np.float32), "s")]
    model = model_of([node], [("A", [1, 16])], [("Y", [1, 2])], constants)
    onnx.save(model, tmp_path / "model.onnx")
    shown = sardonyx("run", tmp_path / "model.onnx", code=None)
    assert f"accuracy_level is {level}, expected 0 to 4" in shown.err


QDQ = [(bits, signed, layout, block, op)
       for bits, signed, (layout, block, op) in itertools.product(
           (4, 8), (False, True),
           [("kn", 32, "MatMul"), ("kn", 0, "MatMul"), ("nk", 16, "Gemm"), ("nk", 0, "Gemm"),
            ("turned", 64, "MatMul"), ("one", 0, "MatMul")])]


@pytest.mark.parametrize("bits,signed,layout,block,op", QDQ)
def test_dequantised_weights(sardonyx, tmp_path, bits, signed, layout, block, op):
    rng = np.random.default_rng(bits + block + signed)
    m, n, k = 5, 520, 1024  # too large to be folded to floats
    lo = -(1 << (bits - 1)) if signed else 0
    q = rng.integers(lo, lo + (1 << bits), (k, n))
    k_axis = 0 if layout in ("kn", "one") else 1
    dims = (k, n) if k_axis == 0 else (n, k)
    if block:
        facts = (k // block, n) if k_axis == 0 else (n, k // block)
    else:
        facts = () if layout == "one" else (n,)
    scale = np.asarray(rng.uniform(0.01, 0.1, facts), np.float32)
    zero = rng.integers(lo, lo + (1 << bits), facts)
    dtype = BITS[bits][signed]

    def low(name, values, shape):
        raw = pack(np.asarray(values).reshape(-1) & ((1 << bits) - 1), bits).tobytes()
        return helper.make_tensor(name, dtype, shape, raw, raw=True)
    attributes = {"axis": k_axis if block else 1 - k_axis}
    if block:
        attributes["block_size"] = block
    nodes = [helper.make_node("DequantizeLinear", ["W", "s", "z"], ["w"], **attributes)]
    if layout == "turned":
        nodes.append(helper.make_node("Transpose", ["w"], ["wt"], perm=[1, 0]))
    right = "wt" if layout == "turned" else "w"
    added = rng.standard_normal(n).astype(np.float32)
    nodes.append(helper.make_node("Gemm", ["A", right, "bias"], ["Y"], transB=k_axis)
                 if op == "Gemm" else helper.make_node("MatMul", ["A", right], ["Y"]))
    a = rng.standard_normal((m, k)).astype(np.float32)
    constants = [low("W", q if k_axis == 0 else q.T, dims), numpy_helper.from_array(scale, "s"),
                 low("z", zero, facts), numpy_helper.from_array(added, "bias")]
    model = model_of(nodes, [("A", [m, k])], [("Y", [m, n])], constants)
    golden = ort_run(model, {"A": a})[0]
    write_case(tmp_path / "case", model, {"A": a}, [golden])
    sardonyx("test", tmp_path / "case", "--rtol", "1e-4", "--atol", "1e-6", "--peak", "1e-5")
    shown = sardonyx("profile", tmp_path / "case" / "model.onnx", "--runs", "1")
    assert "MatMulBlocks" in shown.out and "DequantizeLinear" not in shown.out
