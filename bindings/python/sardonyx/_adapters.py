# SPDX-License-Identifier: Apache-2.0
"""Files of LoRA adapters: the class that writes them and looks into them."""
import ctypes as _ctypes
import struct as _struct

_FORMAT = 1
# Both tables of a file have their fields at 4, 8, 12 and 16 of 20 bytes.
_HEAD, _FIELDS = 8, (12, 20, 4, 8, 12, 16)


class _Table:
    """A FlatBuffers table under way: what a field points to lies behind it."""

    def __init__(self, out: bytearray) -> None:
        self.out, self.at = out, len(out)
        out += _struct.pack("<i16x", self.at - _HEAD)

    def number(self, field: int, value: int) -> None:
        _struct.pack_into("<i", self.out, self.at + field, value)

    def vector(self, field: int, count: int, content: bytes, align: int = 4) -> int:
        """The place of its first element."""
        self.out += bytes(-(len(self.out) + 4) % align)
        _point(self.out, self.at + field)
        self.out += _struct.pack("<I", count)
        first = len(self.out)
        self.out += content + bytes(-len(content) % 4)
        return first


def _point(out: bytearray, at: int) -> None:
    _struct.pack_into("<I", out, at, len(out) - at)


def _pack(versions, parameters) -> bytes:
    out = bytearray(_struct.pack("<I4s6H", _HEAD + 12, b"TORT", *_FIELDS))
    root = _Table(out)
    for field, version in zip((4, 8, 12), versions):
        root.number(field, version)
    first = root.vector(16, len(parameters), bytes(4 * len(parameters)))
    for i, (name, value) in enumerate(parameters.items()):
        _point(out, first + 4 * i)
        table, shape, text = _Table(out), value.shape(), name.encode()
        table.number(12, value.element_type())
        table.vector(4, len(text), text + b"\0")
        table.vector(8, len(shape), _struct.pack(f"<{len(shape)}q", *shape), 8)
        data = _ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
        table.vector(16, len(data), data, 8)
    return bytes(out)


class AdapterFormat:
    """A file of an adapter: named tensors and versions.

    parameters: {name: OrtValue}, tensors of numbers. adapter_version, model_version: ints of the
    user's. RuntimeError: a file is none of an adapter.
    """

    __slots__ = {"adapter_version": "A number of the user's.", "model_version": "A number of the user's.",
                 "parameters": "{name: OrtValue}", "_format": "The version of the file's format."}
    _loader = None  # the class LoraAdapter whose OrtValues are given; None: the package's

    def __init__(self, adapter=None) -> None:
        self.adapter_version, self.model_version, self.parameters = 0, 0, {}
        self._format = _FORMAT
        if adapter is not None:
            self._format = adapter.format_version
            self.adapter_version, self.model_version = adapter.adapter_version, adapter.model_version
            self.parameters = dict(adapter.parameters)

    @classmethod
    def read_adapter(cls, file_path):
        """What is in a file."""
        loader = cls._loader
        if loader is None:
            from ._sardonyx import LoraAdapter as loader
        adapter, made = loader(), cls()
        adapter.Load(file_path)
        made._format, made.adapter_version, made.model_version = adapter._versions()
        made.parameters = adapter._parameters()
        return made

    def export_adapter(self, file_path) -> None:
        """Writes the file."""
        versions = (_FORMAT, self.adapter_version, self.model_version)
        with open(file_path, "wb") as file:
            file.write(_pack(versions, self.parameters))

    @property
    def format_version(self) -> int:
        """The version of the file's format."""
        return self._format

    def get_format_version(self) -> int:
        """The version of the file's format."""
        return self._format

    def set_adapter_version(self, adapter_version: int) -> None:
        """Sets a number of the user's."""
        self.adapter_version = adapter_version

    def get_adapter_version(self) -> int:
        """A number of the user's."""
        return self.adapter_version

    def set_model_version(self, model_version: int) -> None:
        """Sets a number of the user's."""
        self.model_version = model_version

    def get_model_version(self) -> int:
        """A number of the user's."""
        return self.model_version

    def set_parameters(self, params) -> None:
        """params: {name: OrtValue}."""
        self.parameters = dict(params)

    def get_parameters(self):
        """{name: OrtValue}, over memory that lives with them."""
        return self.parameters
