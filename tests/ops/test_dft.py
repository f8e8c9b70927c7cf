# SPDX-License-Identifier: Apache-2.0
"""DFT of lengths with small, large and mixed factors, both directions and types, against NumPy."""
import numpy
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

LENGTHS = [*range(1, 40), 45, 61, 64, 67, 97, 121, 128, 210, 256, 360, 509, 1000, 1024, 1155, 2 * 521, 4096]


@pytest.mark.parametrize("inverse", (0, 1))
@pytest.mark.parametrize("dtype", (numpy.float32, numpy.float64))
def test_lengths(inverse, dtype, sardonyx, tmp_path):
    rng = numpy.random.default_rng(5)
    for n in LENGTHS:
        folder = tmp_path / f"n{n}"
        (folder / "test_data_set_0").mkdir(parents=True)
        x = rng.normal(size=(3, n, 2)).astype(dtype)
        values = x[..., 0].astype(numpy.float64) + 1j * x[..., 1]
        y = numpy.fft.ifft(values) if inverse else numpy.fft.fft(values)
        y = numpy.stack([y.real, y.imag], axis=-1).astype(dtype)
        kind = helper.np_dtype_to_tensor_dtype(x.dtype)
        graph = helper.make_graph(
            [helper.make_node("DFT", ["x", "", "axis"], ["y"], inverse=inverse)], "dft",
            [helper.make_tensor_value_info("x", kind, x.shape)],
            [helper.make_tensor_value_info("y", kind, y.shape)],
            [helper.make_tensor("axis", TensorProto.INT64, [], [1])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10),
                  str(folder / "model.onnx"))
        for name, value in (("input_0", x), ("output_0", y)):
            path = folder / "test_data_set_0" / f"{name}.pb"
            path.write_bytes(numpy_helper.from_array(value).SerializeToString())
    # Rounding grows with the square root of the logarithm of the length; values are about 1.
    tolerance = 4e-6 if dtype == numpy.float32 else 4e-13
    sardonyx("test", *sorted(tmp_path.iterdir()), "--rtol", tolerance, "--atol", tolerance)
