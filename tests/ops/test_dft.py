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


def save(folder, nodes, feeds, expected, constants):
    (folder / "test_data_set_0").mkdir(parents=True)
    def info(name, a):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
    graph = helper.make_graph(nodes, "g", [info(*item) for item in feeds.items()],
                              [info(*item) for item in expected.items()],
                              [numpy_helper.from_array(numpy.asarray(a), name) for name, a in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10),
              str(folder / "model.onnx"))
    for stem, values in (("input", feeds), ("output", expected)):
        for i, value in enumerate(values.values()):
            (folder / "test_data_set_0" / f"{stem}_{i}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())


@pytest.mark.parametrize("inverse", (0, 1))
@pytest.mark.parametrize("dtype", (numpy.float32, numpy.float64))
@pytest.mark.parametrize("shape", [(21, 12), (9, 45), (17, 67), (3, 128, 7), (1, 400, 19)])
def test_lines_are_alone(shape, dtype, inverse, sardonyx, tmp_path):
    """A line's result is the same to the last bit whatever lines are transformed with it, and in each number of
    threads."""
    rng = numpy.random.default_rng(7)
    nodes = [helper.make_node("DFT", ["x", "", "axis"], ["y"], inverse=inverse)]
    x = rng.normal(size=(*shape, 2)).astype(dtype)
    save(tmp_path / "all", nodes, {"x": x}, {"y": x}, {"axis": numpy.int64(1)})
    sardonyx("run", tmp_path / "all/model.onnx", "--inputs", tmp_path / "all/test_data_set_0", "--out", tmp_path)
    y = numpy.load(tmp_path / "y.npy")
    one = (shape[0] - 1, slice(None), -1) if len(shape) == 3 else (shape[0] - 1,)
    save(tmp_path / "cases/one", nodes, {"x": x[one][None]}, {"y": y[one][None]}, {"axis": numpy.int64(1)})
    save(tmp_path / "cases/all", nodes, {"x": x}, {"y": y}, {"axis": numpy.int64(1)})
    sardonyx("test", tmp_path / "cases", "--rtol", 0, "--atol", 0, "--threads", 3)


@pytest.mark.parametrize("length", [12, 67, 400])
def test_frames(length, sardonyx, tmp_path):
    """STFT of two signals, with a window, whose frames fill some vectors and leave a rest."""
    rng = numpy.random.default_rng(8)
    x, window = rng.normal(size=(2, 3000, 1)).astype(numpy.float32), numpy.hanning(length).astype(numpy.float32)
    frames = numpy.lib.stride_tricks.sliding_window_view(x[..., 0].astype(numpy.float64), length, axis=1)[:, ::61]
    y = numpy.fft.rfft(frames * window, axis=-1)
    y = numpy.stack([y.real, y.imag], axis=-1).astype(numpy.float32)
    save(tmp_path / "case", [helper.make_node("STFT", ["x", "step", "window"], ["y"], onesided=1)], {"x": x}, {"y": y},
         {"step": numpy.int64(61), "window": window})
    sardonyx("test", tmp_path / "case", "--rtol", 4e-6, "--atol", 4e-6)
