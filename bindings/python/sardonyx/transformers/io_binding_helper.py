# SPDX-License-Identifier: Apache-2.0
"""What a type is called by ONNX Runtime, NumPy, PyTorch and ONNX. PyTorch is imported when one of its
types is asked for."""
import importlib

from sardonyx import _later

# "tensor(NAME)", NumPy's name, PyTorch's name, ONNX's number; "": there is no such type.
_TYPES = (
    ("float", "float32", "float32", 1), ("uint8", "uint8", "uint8", 2), ("int8", "int8", "int8", 3),
    ("uint16", "uint16", "uint16", 4), ("int16", "int16", "int16", 5), ("int32", "int32", "int32", 6),
    ("int64", "int64", "int64", 7), ("string", "", "", 8), ("bool", "bool", "bool", 9),
    ("float16", "float16", "float16", 10), ("double", "float64", "float64", 11),
    ("uint32", "uint32", "uint32", 12), ("uint64", "uint64", "uint64", 13),
    ("complex64", "complex64", "complex64", 14), ("complex128", "complex128", "complex128", 15),
    ("bfloat16", "", "bfloat16", 16), ("float8e4m3fn", "", "float8_e4m3fn", 17),
    ("float8e4m3fnuz", "", "float8_e4m3fnuz", 18), ("float8e5m2", "", "float8_e5m2", 19),
    ("float8e5m2fnuz", "", "float8_e5m2fnuz", 20), ("uint4", "", "uint4", 21), ("int4", "", "int4", 22),
    ("float4e2m1", "", "", 23))


def _column(library, column):
    """The types that a library, "numpy" or "torch", has for the rows of the table; None: it has none."""
    module = importlib.import_module(library)
    return [bool if library == "numpy" and row[column] == "bool" else getattr(module, row[column], None)
            if row[column] else None for row in _TYPES]


def _look_up(keys, values, key):
    for i, known in enumerate(keys):
        if known is not None and known == key and values[i] is not None:
            return values[i]
    raise ValueError(f"{key} not found in map")


def _named(items, name, kind):
    for item in items:
        if item.name == name:
            return item.type
    raise ValueError(f"{kind} name {name} not found")


class TypeHelper:
    """Types by their names in a session: "tensor(float)", numpy.float32, torch.float32, 1.
    ValueError for one that the other side does not have."""

    @staticmethod
    def get_input_type(ort_session, name):
        return _named(ort_session.get_inputs(), name, "input")

    @staticmethod
    def get_output_type(ort_session, name):
        return _named(ort_session.get_outputs(), name, "output")

    @staticmethod
    def ort_type_to_numpy_type(ort_type):
        return _look_up([f"tensor({row[0]})" for row in _TYPES], _column("numpy", 1), ort_type)

    @staticmethod
    def ort_type_to_torch_type(ort_type):
        return _look_up([f"tensor({row[0]})" for row in _TYPES], _column("torch", 2), ort_type)

    @staticmethod
    def ort_type_to_onnx_type(ort_type):
        return _look_up([f"tensor({row[0]})" for row in _TYPES], [row[3] for row in _TYPES], ort_type)

    @staticmethod
    def numpy_type_to_torch_type(numpy_type):
        return _look_up(_column("numpy", 1), _column("torch", 2), numpy_type)

    @staticmethod
    def torch_type_to_numpy_type(torch_type):
        return _look_up(_column("torch", 2), _column("numpy", 1), torch_type)

    @staticmethod
    def get_io_onnx_type_map(ort_session):
        return _of_session(ort_session, TypeHelper.ort_type_to_onnx_type)

    @staticmethod
    def get_io_numpy_type_map(ort_session):
        return _of_session(ort_session, TypeHelper.ort_type_to_numpy_type)

    @staticmethod
    def get_io_torch_type_map(ort_session):
        return _of_session(ort_session, TypeHelper.ort_type_to_torch_type)


def _of_session(session, convert):
    """{name of an input or output: its type, converted}."""
    return {item.name: convert(item.type) for item in [*session.get_inputs(), *session.get_outputs()]}


_later.fill(__name__, globals())
