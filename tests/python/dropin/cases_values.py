# SPDX-License-Identifier: Apache-2.0
"""Cases: OrtValue, OrtDevice, sparse tensors, memory information, DLPack."""
import numpy as np
from dropin_kit import T, add_one, case, cases, fails, h, model, sequence_out, unary, value

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def make(kit, array=X, *more):
    return kit.ort.OrtValue.ortvalue_from_numpy(array, *more)


def facts(item):
    return (item.shape(), item.data_type(), item.element_type(), item.device_name(), item.has_value(),
            item.is_tensor(), item.is_sparse_tensor(), item.is_tensor_sequence(),
            fails(item.tensor_size_in_bytes))


@cases({name: name for name in ("float32", "float64", "float16", "int8", "int16", "int32", "int64",
                                "uint8", "uint16", "uint32", "uint64", "bool")})
def value_from_numpy(kit, name):
    item = make(kit, np.array([0, 1], name))
    return facts(item), item.numpy()


@cases({"device": ("cpu",), "device_id": ("cpu", 0), "cuda": ("cuda", 0), "other": ("foo", 0),
        "dml": ("dml", 0)})
def value_from_numpy_on(kit, device):
    return fails(lambda: facts(make(kit, X, *device)))


@cases({"strings": np.array(["a", "b"]), "objects": np.array(["a", "b"], object), "list": [1.0, 2.0],
        "none": None, "complex": np.ones(2, np.complex64), "scalar": np.array(3.0, np.float32),
        "empty": np.ones((0, 3), np.float32), "transposed": X.T, "stepped": X[:, ::2],
        "number": 3.0, "bytes": b"abc", "text": "abc", "bytes_array": np.array([b"a"]),
        "datetime": np.array(["2020-01-01"], "datetime64[D]")})
def value_from(kit, given):
    def run():
        item = make(kit, given)
        return facts(item), item.numpy()
    return fails(run)


@case
def value_numpy_of_strings(kit):
    item = make(kit, np.array([["a", "\u03b2"], ["", "dd"]]))
    return item.shape(), item.data_type(), item.numpy()


@case
def value_shares_numpy(kit):
    array = X.copy()
    item = make(kit, array)
    array[0, 0] = 50
    return item.data_ptr() == array.ctypes.data, item.numpy()[0, 0]


@case
def value_numpy_is_a_copy(kit):
    array = X.copy()
    item = make(kit, array)
    out = item.numpy()
    out[0, 0] = 9
    return item.numpy()[0, 0], out.flags.writeable


@case
def value_from_shape(kit):
    item = kit.ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    return facts(item)


@cases({"dtype": ([1], np.dtype("int64")), "number": ([2], 1), "bfloat16": ([2], 16),
        "text": ([2], "float32"), "tuple": ((2, 2), np.uint8), "empty": ([], np.float32),
        "zero": ([0], np.float32), "negative": ([-1], np.float32), "strings": ([2], np.str_),
        "objects": ([2], object), "bool": ([2], np.bool_), "pybool": ([2], bool), "float": ([2], float),
        "int": ([2], int), "number_8": ([1], 8), "number_99": ([1], 99), "not_a_list": (3, np.float32),
        "float8": ([2], 17)})
def value_from_shape_of(kit, given):
    return fails(lambda: facts(kit.ort.OrtValue.ortvalue_from_shape_and_type(*given)))


@case
def value_from_shape_positional(kit):
    return facts(kit.ort.OrtValue.ortvalue_from_shape_and_type([2], np.int32, "cpu", 0))


@case
def value_with_onnx_type(kit):
    kind = kit.ort.OrtValue
    item = kind.ortvalue_from_numpy_with_onnx_type(np.array([1, 2], np.uint16), T.BFLOAT16)
    return facts(item), fails(item.numpy)


@cases({"float8": (np.array([1], np.uint8), T.FLOAT8E4M3FN), "size": (np.array([1], np.uint8), T.FLOAT),
        "strings": (np.array(["a"]), T.STRING), "same": (np.array([1.0], np.float32), T.FLOAT),
        "unknown": (np.array([1], np.uint8), 99), "int4": (np.array([1], np.uint8), T.INT4)})
def value_with_onnx_type_of(kit, pair):
    return fails(lambda: facts(kit.ort.OrtValue.ortvalue_from_numpy_with_onnx_type(*pair)))


@case
def value_update(kit):
    item = make(kit, X.copy())
    item.update_inplace(X + 1)
    return item.numpy()


@cases({"type": X.astype(np.float64), "shape": np.ones((3, 2), np.float32), "small": np.ones(2, "f"),
        "list": [1.0], "none": None, "transposed": np.arange(6, dtype="f").reshape(3, 2).T,
        "strings": np.array(["a"] * 6)})
def value_update_with(kit, given):
    item = make(kit, X.copy())
    return fails(item.update_inplace, given), item.numpy()


@case
def value_update_with_value(kit):
    item = make(kit, X.copy())
    item.update_inplace(make(kit, X + 2))
    return item.numpy()


@case
def value_array_protocol(kit):
    item = make(kit)
    return np.asarray(item), np.asarray(item, dtype=np.float64), np.array(item, copy=True)


@case
def value_array_protocol_no_copy(kit):
    return fails(np.array, make(kit), copy=False)


@case
def value_dlpack(kit):
    item = make(kit)
    return item.__dlpack_device__(), np.from_dlpack(item)


@case
def value_dlpack_keeps_memory(kit):
    array = np.from_dlpack(make(kit, X.copy()))
    import gc
    gc.collect()
    return array


@case
def value_from_dlpack(kit):
    return facts(kit.ort.OrtValue.from_dlpack(X.copy())), \
        kit.ort.OrtValue.from_dlpack(X.copy()).numpy()


@case
def value_from_dlpack_bool(kit):
    item = kit.ort.OrtValue.from_dlpack(np.array([True, False]))
    return item.data_type(), item.numpy()


@case
def value_from_dlpack_of_value(kit):
    return facts(kit.ort.OrtValue.from_dlpack(make(kit)))


@cases({"number": 3, "none": None, "list": [1]})
def value_from_dlpack_wrong(kit, given):
    return fails(kit.ort.OrtValue.from_dlpack, given).split(":")[0]


@case
def value_dlpack_strings(kit):
    return fails(make(kit, np.array(["a"])).__dlpack__).split(":")[0]


@case
def value_of_sequence(kit):
    session = kit.session(sequence_out())
    item = session.run_with_ort_values(["s"], {"x": make(kit, np.ones(2, "f"))})[0]
    return item.data_type(), item.is_tensor(), item.is_tensor_sequence(), item.has_value(), \
        fails(item.shape), fails(item.numpy), fails(item.element_type)


@case
def value_attributes(kit):
    item = make(kit)
    return type(item).__module__, type(item).__qualname__, type(item._ortvalue).__qualname__, \
        type(item._get_c_value()).__module__


@case
def value_made_directly(kit):
    return fails(kit.ort.OrtValue, 3), fails(kit.ort.OrtValue)


@case
def run_with_values(kit):
    session = kit.session(add_one())
    x = make(kit, np.array([[1, 2]], np.float32))
    results = session.run_with_ort_values(["y", "z"], {"x": x})
    return type(results).__name__, [type(r).__name__ for r in results], [r.numpy() for r in results]


@case
def run_with_values_all(kit):
    x = make(kit, np.array([[1, 2]], np.float32))
    return [r.numpy() for r in kit.session(add_one()).run_with_ort_values(None, {"x": x})]


@case
def run_with_values_wrong(kit):
    session = kit.session(add_one())
    return (fails(session.run_with_ort_values, None, {"x": X}),
            fails(session.run_with_ort_values, ["q"], {"x": make(kit, np.ones((1, 2), "f"))}),
            fails(session.run_with_ort_values, None, {"x": make(kit, np.ones((1, 3), "f"))}),
            fails(session.run_with_ort_values, None, {}))


@cases({"cpu": ("cpu", 0), "cuda": ("cuda", 1), "dml": ("dml", 0), "cann": ("cann", 0),
        "gpu": ("gpu", 0), "npu": ("npu", 0), "webgpu": ("webgpu", 0), "vendor": ("gpu", 0, 0x10de),
        "other": ("foo", 0), "number": (1, 0), "text_id": ("cpu", "0"), "upper": ("CPU", 0)})
def device(kit, given):
    def run():
        item = kit.ort.OrtDevice.make(*given)
        return item.device_type(), item.device_id(), item.device_mem_type(), item.device_vendor_id()
    return fails(run)


@case
def device_from_other(kit):
    return fails(kit.ort.OrtDevice, 3)


@case
def device_vendor_ids(kit):
    return {item.name: int(item) for item in kit.ort.OrtDeviceVendorId}


@case
def memory_info(kit):
    ort = kit.ort
    info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    return info.name, info.device_id, info.mem_type, info.allocator_type, info.device_mem_type, \
        info.device_vendor_id


@case
def memory_info_wrong(kit):
    return fails(kit.ort.OrtMemoryInfo, "Cpu"), \
        fails(kit.ort.OrtMemoryInfo, "Nope", kit.ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0,
              kit.ort.OrtMemType.DEFAULT)


@case
def arena_configuration(kit):
    arena = kit.ort.OrtArenaCfg(1 << 20, 0, 1024, 512)
    keys = kit.ort.OrtArenaCfg({"max_mem": 10, "arena_extend_strategy": 1})
    return [(a.max_mem, a.arena_extend_strategy, a.initial_chunk_size_bytes, a.max_dead_bytes_per_chunk,
             a.initial_growth_chunk_size_bytes, a.max_power_of_two_extend_bytes) for a in (arena, keys)]


@case
def arena_configuration_unknown(kit):
    return fails(kit.ort.OrtArenaCfg, {"nope": 1})


def cpu(kit):
    return kit.ort.OrtDevice.make("cpu", 0)


def coo(kit, shape=(3, 3), values=(1, 2), indices=(1, 5)):
    return kit.ort.SparseTensor.sparse_coo_from_numpy(
        np.array(shape, np.int64), np.array(values, np.float32), np.array(indices, np.int64), cpu(kit))


@case
def sparse_coo(kit):
    item = coo(kit)
    return item.values(), item.as_coo_view().indices(), item.dense_shape(), item.format(), \
        item.data_type(), item.device_name()


@case
def sparse_coo_pairs(kit):
    item = coo(kit, indices=((0, 1), (1, 2)))
    return item.as_coo_view().indices(), item.dense_shape()


@case
def sparse_coo_wrong(kit):
    return fails(coo, kit, (3, 3), (1, 2), (1, 2, 3)), fails(lambda: coo(kit).as_csrc_view()), \
        fails(lambda: coo(kit).as_blocksparse_view())


@case
def sparse_csr(kit):
    item = kit.ort.SparseTensor.sparse_csr_from_numpy(
        np.array([3, 3], np.int64), np.array([1, 2], np.float32), np.array([1, 2], np.int64),
        np.array([0, 1, 2, 2], np.int64), cpu(kit))
    view = item.as_csrc_view()
    return item.values(), view.inner(), view.outer(), item.format(), item.data_type()


@case
def sparse_strings(kit):
    item = kit.ort.SparseTensor.sparse_coo_from_numpy(
        np.array([4], np.int64), np.array(["a", "b"], object), np.array([0, 2], np.int64), cpu(kit))
    return item.values(), item.data_type()


@case
def sparse_value(kit):
    item = kit.ort.OrtValue.ort_value_from_sparse_tensor(coo(kit))
    return item.is_sparse_tensor(), item.is_tensor(), item.data_type(), fails(item.shape), \
        item.as_sparse_tensor().values(), fails(item.numpy)


@case
def sparse_to_cuda(kit):
    return fails(coo(kit).to_cuda, kit.ort.OrtDevice.make("cuda", 0))


@case
def sparse_made_directly(kit):
    return fails(kit.ort.SparseTensor, 3)


@case
def sparse_not_a_sparse_value(kit):
    return fails(make(kit).as_sparse_tensor)


@case
def sparse_run_constant(kit):
    tensor = h.make_sparse_tensor(h.make_tensor("v", T.FLOAT, [2], [1.0, 2.0]),
                                  h.make_tensor("i", T.INT64, [2], [1, 3]), [4])
    data = model([h.make_node("Constant", [], ["c"], sparse_value=tensor),
                  h.make_node("Add", ["x", "c"], ["y"])], [value("x", T.FLOAT, [4])],
                 [value("y", T.FLOAT, [4])])
    return kit.session(data).run(None, {"x": np.zeros(4, "f")})


@case
def copy_tensors(kit):
    source, target = make(kit, X + 3), make(kit, X.copy())
    return kit.ort.copy_tensors([source], [target]), target.numpy()


@case
def copy_tensors_wrong(kit):
    return fails(kit.ort.copy_tensors, [make(kit)], [])


@case
def session_value(kit):
    item = kit.session(add_one()).create_ortvalue_from_shape_and_type([2], np.float32, "cpu")
    return facts(item)


@case
def vector_of_values(kit):
    from onnxruntime.capi import onnxruntime_pybind11_state as C
    vector = C.OrtValueVector()
    vector.reserve(2)
    vector.push_back(make(kit)._ortvalue)
    vector.push_back(make(kit, np.ones(2, bool))._ortvalue)
    return len(vector), [item.shape() for item in vector], vector[1].data_type(), \
        vector.bool_tensor_indices(), vector.element_type_at(0), fails(lambda: vector[5])


@case
def c_level_device(kit):
    from onnxruntime.capi import onnxruntime_pybind11_state as C
    return C.OrtDevice.cpu(), C.OrtDevice.cuda(), C.OrtDevice.default_memory(), \
        C.OrtDevice(C.OrtDevice.cpu(), C.OrtDevice.default_memory(), 0).device_type()


@case
def c_level_value(kit):
    from onnxruntime.capi import onnxruntime_pybind11_state as C
    item = C.OrtValue.ortvalue_from_numpy(X, C.OrtDevice(C.OrtDevice.cpu(), 0, 0))
    return item.shape(), item.data_type(), item.numpy()


@case
def c_level_session(kit):
    from onnxruntime.capi import onnxruntime_pybind11_state as C
    session = C.InferenceSession(C.get_default_session_options(), add_one(), False, False)
    session.initialize_session([], [], set())
    return [a.name for a in session.inputs_meta], session.get_providers()[-1], \
        session.run(["y"], {"x": np.zeros((1, 2), "f")}, None), session.model_meta.graph_name


@case
def unary_of_every_layout(kit):
    session = kit.session(unary("Neg", shape=("a", "b", "c")))
    cube = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    return [session.run(None, {"x": view})[0].tolist() for view in
            (cube, cube.T, cube[::-1], cube[:, 1:, ::2], cube.transpose(1, 0, 2), cube[:, :0])]
