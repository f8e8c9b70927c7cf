# SPDX-License-Identifier: Apache-2.0
"""Cases: IOBinding."""
import numpy as np
from dropin_kit import T, add_one, case, cases, fails, h, matmul, model, sequence_out, unary, value

X = np.array([[1.0, 2.0]], np.float32)


def start(kit, data=None):
    session = kit.session(data or add_one())
    return session, session.io_binding()


@case
def binding_cpu(kit):
    session, binding = start(kit)
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    binding.bind_output("z", "cpu")
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


@case
def binding_order_of_outputs(kit):
    session, binding = start(kit)
    binding.bind_cpu_input("x", X)
    binding.bind_output("z")
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu(), [o.numpy() for o in binding.get_outputs()]


@case
def binding_pointers(kit):
    session, binding = start(kit)
    out = np.zeros((1, 2), np.float32)
    binding.bind_input(name="x", device_type="cpu", device_id=0, element_type=np.float32,
                       shape=X.shape, buffer_ptr=X.ctypes.data)
    binding.bind_output(name="y", device_type="cpu", device_id=0, element_type=np.float32,
                        shape=out.shape, buffer_ptr=out.ctypes.data)
    session.run_with_iobinding(binding)
    return out, len(binding.get_outputs())


@case
def binding_pointer_of_onnx_type(kit):
    session, binding = start(kit)
    binding.bind_input("x", "cpu", 0, T.FLOAT, [1, 2], X.ctypes.data)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


@case
def binding_values(kit):
    session, binding = start(kit)
    target = kit.ort.OrtValue.ortvalue_from_shape_and_type([1, 2], np.float32)
    binding.bind_ortvalue_input("x", kit.ort.OrtValue.ortvalue_from_numpy(X))
    binding.bind_ortvalue_output("y", target)
    session.run_with_iobinding(binding)
    return target.numpy(), binding.get_outputs()[0].numpy()


@case
def binding_values_updated(kit):
    session, binding = start(kit)
    source = kit.ort.OrtValue.ortvalue_from_numpy(X.copy())
    binding.bind_ortvalue_input("x", source)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    first = binding.copy_outputs_to_cpu()
    source.update_inplace(X + 10)
    session.run_with_iobinding(binding)
    return first, binding.copy_outputs_to_cpu()


@case
def binding_run_twice(kit):
    session, binding = start(kit)
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    held = binding.get_outputs()[0]
    binding.bind_cpu_input("x", np.ones((3, 2), np.float32))
    session.run_with_iobinding(binding)
    return held.shape(), binding.get_outputs()[0].shape()


@case
def binding_cleared(kit):
    session, binding = start(kit)
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    binding.clear_binding_inputs()
    binding.clear_binding_outputs()
    return len(binding.get_outputs()), fails(session.run_with_iobinding, binding)


@case
def binding_synchronise(kit):
    _, binding = start(kit)
    return binding.synchronize_inputs(), binding.synchronize_outputs()


@case
def binding_no_outputs(kit):
    session, binding = start(kit)
    binding.bind_cpu_input("x", X)
    return fails(session.run_with_iobinding, binding), binding.copy_outputs_to_cpu()


@case
def binding_without_input(kit):
    session, binding = start(kit, matmul())
    binding.bind_cpu_input("x", np.ones((2, 4), np.float32))
    binding.bind_output("y")
    return fails(session.run_with_iobinding, binding).split(":")[0]


@cases({"type": X.astype(np.float64), "rank": np.ones(2, np.float32), "dim": np.ones((1, 3), np.float32),
        "list": [[1.0, 2.0]], "none": None, "strings": np.array([["a", "b"]]),
        "transposed": np.ones((2, 3), np.float32).T[:, :2].T.T})
def binding_input_of(kit, given):
    session, binding = start(kit)

    def run():
        binding.bind_cpu_input("x", given)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu()
    return fails(run)


@case
def binding_unknown_input(kit):
    session, binding = start(kit)
    return fails(binding.bind_cpu_input, "q", X)


@case
def binding_unknown_output(kit):
    session, binding = start(kit)
    binding.bind_cpu_input("x", X)
    return fails(binding.bind_output, "q"), fails(session.run_with_iobinding, binding)


@case
def binding_unknown_device(kit):
    _, binding = start(kit)
    return fails(binding.bind_output, "y", "foo")


@case
def binding_cuda(kit):
    session, binding = start(kit)
    binding.bind_cpu_input("x", X)
    return fails(lambda: (binding.bind_output("y", "cuda"), session.run_with_iobinding(binding)))


@case
def binding_pointer_without_type(kit):
    _, binding = start(kit)
    return fails(binding.bind_output, "y", "cpu", 0, None, None, X.ctypes.data)


@case
def binding_output_too_small(kit):
    session, binding = start(kit)
    binding.bind_cpu_input("x", np.ones((3, 2), np.float32))
    binding.bind_ortvalue_output("y", kit.ort.OrtValue.ortvalue_from_shape_and_type([1, 2], np.float32))
    return fails(session.run_with_iobinding, binding).split(" Status Message")[0]


@case
def binding_output_of_other_type(kit):
    session, binding = start(kit)
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_output("y", kit.ort.OrtValue.ortvalue_from_shape_and_type([1, 2], np.int64))
    return fails(session.run_with_iobinding, binding).split(" Status Message")[0]


@case
def binding_of_other_session(kit):
    _, binding = start(kit)
    return fails(kit.session(add_one()).run_with_iobinding, binding)


@case
def binding_with_run_options(kit):
    session, binding = start(kit)
    options = kit.ort.RunOptions()
    options.terminate = True
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    return fails(session.run_with_iobinding, binding, options)


@case
def binding_strings(kit):
    session, binding = start(kit, unary("Identity", T.STRING))
    def run():
        binding.bind_cpu_input("x", np.array(["a", "b"]))
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu()
    return fails(run)


@case
def binding_sequence(kit):
    session, binding = start(kit, sequence_out())
    binding.bind_cpu_input("x", np.ones(2, np.float32))
    binding.bind_output("s")
    return fails(lambda: (session.run_with_iobinding(binding), binding.copy_outputs_to_cpu())[1])


@case
def binding_dynamic_output(kit):
    data = model([h.make_node("NonZero", ["x"], ["y"])], [value("x", T.FLOAT, ["n"])],
                 [value("y", T.INT64, [1, "k"])])
    session, binding = start(kit, data)
    binding.bind_cpu_input("x", np.array([0, 1, 2], np.float32))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


@case
def binding_outputs_outlive(kit):
    session, binding = start(kit)
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    outputs = binding.get_outputs()
    del binding, session
    return outputs[0].numpy()


@case
def binding_numpy_is_held(kit):
    session, binding = start(kit)
    binding.bind_cpu_input("x", np.full((2, 2), 3, np.float32))
    import gc
    gc.collect()
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


@case
def binding_vector(kit):
    session, binding = start(kit)
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    vector = binding.get_outputs_as_ortvaluevector()
    return type(vector).__name__, len(vector), vector[0].numpy()


@case
def binding_types(kit):
    session, binding = start(kit)
    raw = binding._iobinding
    return type(binding).__module__, type(raw).__module__, type(raw).__qualname__, \
        type(session._sess).__qualname__, kit.ort.SessionIOBinding is type(raw)


@case
def run_with_vectors(kit):
    from onnxruntime.capi import onnxruntime_pybind11_state as C
    session = kit.session(add_one())
    device = C.OrtDevice(C.OrtDevice.cpu(), C.OrtDevice.default_memory(), 0)
    feeds, fetches = C.OrtValueVector(), C.OrtValueVector()
    feeds.push_back(kit.ort.OrtValue.ortvalue_from_numpy(X)._ortvalue)
    session.run_with_ortvaluevector(kit.ort.RunOptions(), ["x"], feeds, ["y"], fetches, [device])
    return [item.numpy() for item in fetches]
