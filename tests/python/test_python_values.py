# SPDX-License-Identifier: Apache-2.0
"""Values in and out: every element type there and back, memory that is shared, DLPack."""
import gc

import numpy as np
import pytest
from onnx import TensorProto

import python_models as models

DTYPES = {"f4": TensorProto.FLOAT, "f8": TensorProto.DOUBLE, "f2": TensorProto.FLOAT16,
          "i1": TensorProto.INT8, "i2": TensorProto.INT16, "i4": TensorProto.INT32,
          "i8": TensorProto.INT64, "u1": TensorProto.UINT8, "u2": TensorProto.UINT16,
          "u4": TensorProto.UINT32, "u8": TensorProto.UINT64, "?": TensorProto.BOOL,
          "c8": TensorProto.COMPLEX64, "c16": TensorProto.COMPLEX128}
NARROW = {"bfloat16": TensorProto.BFLOAT16, "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
          "float8_e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ, "float8_e5m2": TensorProto.FLOAT8E5M2,
          "float8_e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ, "int4": TensorProto.INT4,
          "uint4": TensorProto.UINT4}


def through(sdx, data, dtype, shape=("N", "M")):
    """What comes out of Identity."""
    return sdx.InferenceSession(models.identity(dtype, shape)).run(None, {"x": data})[0]


@pytest.mark.parametrize("name", DTYPES)
def test_there_and_back(sdx, name):
    data = np.arange(15).reshape(3, 5).astype(name)
    found = through(sdx, data, DTYPES[name])
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, data)


@pytest.mark.parametrize("name", DTYPES)
def test_other_byte_order(sdx, name):
    data = np.arange(15).reshape(3, 5).astype(np.dtype(name).newbyteorder(">"))
    np.testing.assert_array_equal(through(sdx, data, DTYPES[name]), data)


@pytest.mark.parametrize("name", NARROW)
def test_narrow(sdx, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    data = np.arange(15).reshape(3, 5).astype(getattr(ml_dtypes, name))
    found = through(sdx, data, NARROW[name])
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, data)


def test_signs_of_int4(sdx):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    data = np.array([[-8, 7, -1]]).astype(ml_dtypes.int4)
    np.testing.assert_array_equal(through(sdx, data, TensorProto.INT4), data)


@pytest.mark.parametrize("text", ["", "a", "\u03b2\u03b3", "with\0nul", "\U0001f600", "x" * 5000])
def test_text(sdx, text):
    found = through(sdx, np.array([[text, "b"]], object), TensorProto.STRING)
    assert found.tolist() == [[text, "b"]] and found.dtype == object
    assert all(type(item) is str for item in found.ravel())


def test_bytes_text(sdx):
    assert through(sdx, np.array([[b"ab", b"c"]]), TensorProto.STRING).tolist() == [["ab", "c"]]


def test_empty_and_large(sdx):
    assert through(sdx, np.zeros((0, 5), "f4"), models.FLOAT).shape == (0, 5)
    assert through(sdx, np.zeros((0, 5), object), TensorProto.STRING).shape == (0, 5)
    data = np.random.default_rng(0).random((300, 400), "f4")
    np.testing.assert_array_equal(through(sdx, data, models.FLOAT), data)


def test_strides(sdx):
    base = np.arange(120, dtype="f4").reshape(4, 5, 6)
    for data in (base[::2, :, 0], base[1, ::-1], base[:, :, 3].T, np.broadcast_to(base[0, 0], (3, 6))):
        np.testing.assert_array_equal(through(sdx, data, models.FLOAT), data)


def test_results_own_their_memory(sdx):
    session = sdx.InferenceSession(models.identity(shape=("N", "M")))
    first = session.run(None, {"x": np.full((50, 50), 1, "f4")})[0]
    second = session.run(None, {"x": np.full((50, 50), 2, "f4")})[0]
    del session
    gc.collect()
    assert (first == 1).all() and (second == 2).all()
    assert first.flags.writeable and first.flags.c_contiguous and first.flags.aligned
    first[:] = 7  # its own memory
    assert (second == 2).all()


def test_inputs_are_not_changed(sdx):
    data = np.arange(12, dtype="f4").reshape(3, 4)
    kept = data.copy()
    out = sdx.InferenceSession(models.identity(shape=("N", "M"))).run(None, {"x": data})[0]
    out += 1
    np.testing.assert_array_equal(data, kept)


def test_value_shares_memory(sdx):
    data = np.arange(12, dtype="f4").reshape(3, 4)
    value = sdx.OrtValue.ortvalue_from_numpy(data)
    assert value.data_ptr() == data.ctypes.data
    view = value.numpy()
    assert view.ctypes.data == data.ctypes.data
    del value, data
    gc.collect()
    assert view[2, 3] == 11
    strided = sdx.OrtValue.ortvalue_from_numpy(view[:, ::2])
    np.testing.assert_array_equal(strided.numpy(), view[:, ::2])


def test_bound_output_is_written_in_place(sdx):
    session = sdx.InferenceSession(models.matmul())
    out = np.zeros((2, 3), "f4")
    value = sdx.OrtValue.ortvalue_from_numpy(out)
    io = session.io_binding()
    io.bind_cpu_input("x", np.ones((2, 4), "f4"))
    io.bind_cpu_input("w", np.ones((4, 3), "f4"))
    io.bind_ortvalue_output("y", value)
    session.run_with_iobinding(io)
    assert (out == 4).all()
    assert io.get_outputs()[0].data_ptr() == out.ctypes.data


def test_update_inplace(sdx):
    value = sdx.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    value.update_inplace(np.full((2, 3), 5, "f4"))
    assert (value.numpy() == 5).all()
    value.update_inplace(np.full((3, 2), 6, "f4").T)
    assert (value.numpy() == 6).all()
    other = sdx.OrtValue.ortvalue_from_numpy(np.full((2, 3), 7, "f4"))
    value.update_inplace(other)
    assert (np.asarray(value) == 7).all()
    sdx.copy_tensors([sdx.OrtValue.ortvalue_from_numpy(np.full((2, 3), 8, "f4"))], [value])
    assert (value.numpy() == 8).all()


def test_array_protocol(sdx):
    value = sdx.OrtValue.ortvalue_from_numpy(np.arange(3, dtype="f4"))
    assert np.asarray(value).dtype == np.float32
    assert np.asarray(value, dtype="f8").dtype == np.float64
    assert np.array(value).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["f4", "f8", "f2", "i1", "i8", "u1", "u8", "?", "c8"])
def test_dlpack(sdx, name):
    data = np.arange(12).reshape(3, 4).astype(name)
    value = sdx.OrtValue.from_dlpack(data)
    assert value.data_ptr() == data.ctypes.data and value.shape() == [3, 4]
    back = np.from_dlpack(value)
    assert back.dtype == data.dtype and back.ctypes.data == data.ctypes.data
    del value, data
    gc.collect()
    np.testing.assert_array_equal(back, np.arange(12).reshape(3, 4).astype(name))


def test_dlpack_capsules(sdx):
    value = sdx.OrtValue.ortvalue_from_numpy(np.arange(3, dtype="f4"))
    for _ in range(3):
        value.__dlpack__()  # nobody takes it
        value.to_dlpack(max_version=(1, 0))
    capsule = value.to_dlpack()
    other = sdx.OrtValue.from_dlpack(capsule)
    assert other.data_ptr() == value.data_ptr()
    with pytest.raises(TypeError):
        sdx.OrtValue.from_dlpack(capsule)  # it is used up
    assert value.__dlpack_device__() == (1, 0)


def test_dlpack_of_strided_arrays(sdx):
    with pytest.raises(RuntimeError, match="contiguous"):
        sdx.OrtValue.from_dlpack(np.zeros((3, 4), "f4").T)


def test_tensors_of_other_libraries(sdx):
    """Anything with __dlpack__ can be fed."""

    class Tensor:
        def __init__(self, data):
            self.data = data

        def __dlpack__(self, **options):
            return self.data.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.data.__dlpack_device__()

    data = np.arange(6, dtype="f4").reshape(2, 3)
    np.testing.assert_array_equal(through(sdx, Tensor(data), models.FLOAT), data)


def test_torch(sdx):
    torch = pytest.importorskip("torch")
    data = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    np.testing.assert_array_equal(through(sdx, data, models.FLOAT), data.numpy())


def test_maps_come_as_dicts(sdx, ort):
    from pathlib import Path
    import os
    path = Path(os.environ.get("SDX_ZOO", "")) / "sk_logreg_zipmap/model.onnx"
    if not path.is_file():
        pytest.skip("no SDX_ZOO")
    session, expected = sdx.InferenceSession(path), ort.InferenceSession(str(path))
    node = session.get_inputs()[0]
    data = np.random.default_rng(1).random((4, node.shape[1]), "f4")
    found, wanted = (s.run(None, {node.name: data}) for s in (session, expected))
    assert found[0].tolist() == wanted[0].tolist()
    assert [list(row) for row in found[1]] == [list(row) for row in wanted[1]]
    for one, two in zip(found[1], wanted[1]):
        assert all(type(a) is type(b) for a, b in zip(one.values(), two.values()))
        np.testing.assert_allclose(list(one.values()), list(two.values()), rtol=1e-4, atol=1e-6)


def test_sparse(sdx):
    device = sdx.OrtDevice.make("cpu", 0)
    values = np.array([1, 2], "f4")
    coo = sdx.SparseTensor.sparse_coo_from_numpy(np.array([3, 3]), values, np.array([0, 4]), device)
    assert coo.format() == sdx.OrtSparseFormat.ORT_SPARSE_COO
    assert (coo.dense_shape(), coo.data_type(), coo.device_name()) == ([3, 3], "sparse_tensor(float)",
                                                                       "cpu")
    assert coo.values().tolist() == [1, 2] and coo.as_coo_view().indices().tolist() == [0, 4]
    assert coo.values().ctypes.data == values.ctypes.data
    with pytest.raises(RuntimeError, match="does not contain CSR"):
        coo.as_csrc_view()
    csr = sdx.SparseTensor.sparse_csr_from_numpy([2, 2], values, np.array([0, 1]),
                                                 np.array([0, 1, 2]), device)
    assert csr.as_csrc_view().inner().tolist() == [0, 1]
    assert csr.as_csrc_view().outer().tolist() == [0, 1, 2]
    value = sdx.OrtValue.ort_value_from_sparse_tensor(coo)
    assert value.is_sparse_tensor() and value.as_sparse_tensor().values().tolist() == [1, 2]


def test_vector_of_many(sdx):
    """Values over arrays that the vector keeps, and what a function makes of each capsule."""
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([True, False])]
    vector, cpu = sdx.OrtValueVector(), sdx.OrtDevice.make("cpu", 0)
    vector.push_back_batch(arrays, [array.ctypes.data for array in arrays],
                           [array.dtype for array in arrays], [array.shape for array in arrays], [cpu] * 2)
    arrays[0][0, 0] = 7
    assert len(vector) == 2 and vector.bool_tensor_indices() == [1]
    np.testing.assert_array_equal(vector[0].numpy(), [[7, 1, 2], [3, 4, 5]])
    assert [type(item).__name__ for item in vector.to_dlpacks(None)] == ["PyCapsule"] * 2
    assert [item.shape() for item in vector.to_dlpacks(sdx.OrtValue.from_dlpack)] == [[2, 3], [2]]
    with pytest.raises(IndexError):
        vector.push_back_batch(arrays, [0], [np.float32], [[1]], [cpu])
