# SPDX-License-Identifier: Apache-2.0
"""Sardonyx as a backend of the package onnx (onnx.backend.base), for its test runner and for programs.

    import onnx, sardonyx.backend as backend
    rep = backend.prepare(onnx.load("model.onnx"))
    outputs = rep.run([x])

Arrays of the narrow types that NumPy lacks (bfloat16, float8, float4, int4, int2) are those of the
package ml_dtypes, as the package onnx gives and expects them. Needs the package onnx.
"""
import os

import numpy as np
import onnx
from onnx import helper
from onnx.backend import base

import sardonyx

_SESSION_ATTRIBUTES = frozenset((
    "enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse", "execution_mode",
    "execution_order", "graph_optimization_level", "inter_op_num_threads", "intra_op_num_threads",
    "log_severity_level", "log_verbosity_level", "logid", "use_deterministic_compute",
    "use_per_session_threads"))
_RUN_ATTRIBUTES = frozenset((
    "log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches"))


def _set(options, given, allowed, kind):
    for name, setting in given.items():
        if name in allowed:
            setattr(options, name, setting)
        elif hasattr(options, name):
            raise RuntimeError(f"{kind} attribute '{name}' cannot be set through a backend; "
                               f"those that can: {', '.join(sorted(allowed))}")


class BackendRep(base.BackendRep):
    """A model that is ready to run."""

    def __init__(self, session):
        self._session = session

    def run(self, inputs, **kwargs):
        """The outputs, in order, as a list.

        inputs: a list of one item an input, in order, a dict by name, or a single array for a model of
        one input. kwargs: attributes of RunOptions."""
        options = sardonyx.RunOptions()
        _set(options, kwargs, _RUN_ATTRIBUTES, "RunOptions")
        names = [item.name for item in self._session.get_inputs()]
        if isinstance(inputs, dict):
            feed = dict(inputs)
        elif isinstance(inputs, (list, tuple)):
            feed = dict(zip(names, inputs))
        elif len(names) != 1:
            raise RuntimeError(f"the model has {len(names)} inputs, given is a single one")
        else:
            feed = {names[0]: inputs}
        feed = {name: np.asarray(item) if isinstance(item, np.generic) else item
                for name, item in feed.items()}
        return self._session.run(None, feed, options)


class Backend(base.Backend):
    """The methods of onnx.backend.base.Backend; all are class methods."""

    @classmethod
    def supports_device(cls, device):
        """Whether models run on a device ("CPU", "CPU:0", "CUDA:1"): the CPU only."""
        return device.split(":")[0] == "CPU"

    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        """Whether a model can be prepared for a device."""
        try:
            cls.prepare(model, device, **kwargs)
        except Exception:  # whatever is wrong with it, it is not compatible
            return False
        return True

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        """A BackendRep of a model: a ModelProto, a path, bytes, an InferenceSession or a BackendRep.

        kwargs: attributes of SessionOptions. RuntimeError for a device that is not there, and what
        InferenceSession raises."""
        device = "CPU" if device is None else device
        if not cls.supports_device(device):
            raise RuntimeError(f"device {device} is not supported; it is CPU alone")
        if isinstance(model, BackendRep):
            return model
        if isinstance(model, sardonyx.InferenceSession):
            return BackendRep(model)
        if isinstance(model, onnx.ModelProto):
            onnx.checker.check_model(model)
            model = model.SerializeToString()
        elif not isinstance(model, bytes):
            model = os.fspath(model)
        options = sardonyx.SessionOptions()
        _set(options, kwargs, _SESSION_ATTRIBUTES, "SessionOptions")
        return BackendRep(sardonyx.InferenceSession(model, options))

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        """The outputs of a model on inputs; kwargs: attributes of SessionOptions and RunOptions."""
        given = {name: item for name, item in kwargs.items() if name in _RUN_ATTRIBUTES}
        rest = {name: item for name, item in kwargs.items()
                if name in _SESSION_ATTRIBUTES or name not in _RUN_ATTRIBUTES}
        return cls.prepare(model, device, **rest).run(inputs, **given)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        """The outputs of a single node on arrays, as a list.

        outputs_info: (type, shape) an output, where the node does not tell them; kwargs: opset_version,
        attributes of SessionOptions."""
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        names = [name for name in node.input if name]
        arrays = [np.asarray(item) for item in
                  (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
        if len(names) != len(arrays):
            raise RuntimeError(f"the node has {len(names)} inputs, given are {len(arrays)}")
        ins = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(item.dtype), item.shape)
               for name, item in zip(names, arrays)]
        outs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        for info, (dtype, shape) in zip(outs, outputs_info or ()):
            info.CopyFrom(helper.make_tensor_value_info(
                info.name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape))
        graph = helper.make_graph([node], "node", ins, outs)
        imports = [helper.make_opsetid(node.domain or "", version)]
        if node.domain not in ("", "ai.onnx"):
            imports.append(helper.make_opsetid("", onnx.defs.onnx_opset_version()))
        made = helper.make_model(graph, opset_imports=imports,
                                 ir_version=helper.find_min_ir_version_for(imports, True))
        made = onnx.shape_inference.infer_shapes(made) if outputs_info is None else made
        return cls.prepare(made.SerializeToString(), device, **kwargs).run(arrays)


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run = Backend.run_model
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
