# SPDX-License-Identifier: Apache-2.0
"""What is only data: enumerations, devices, settings. The extension makes objects of these classes,
so this module must not import it. Public names are these classes, and they are the package's."""
import enum as _enum
import os as _os

from ._adapters import AdapterFormat as AdapterFormat


class _Enum(_enum.IntEnum):
    """Shown as "GraphOptimizationLevel.ORT_ENABLE_ALL", equal to its number."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class GraphOptimizationLevel(_Enum):
    """How far the graph may be rewritten."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Enum):
    """Nodes one after the other or side by side; a node is always split over the threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Enum):
    """Taken for compatibility."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtAllocatorType(_Enum):
    """Kind of an allocator."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(_Enum):
    """Where memory of a provider is."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(_Enum):
    """Memory of the device, or one that the CPU reaches as well."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(_Enum):
    """Kind of a device, for OrtMemoryInfo.create_v2."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtHardwareDeviceType(_Enum):
    """Kind of a processor."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtSparseFormat(_Enum):
    """How the indices of a sparse tensor are written."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class OrtExecutionProviderDevicePolicy(_Enum):
    """Which provider is wanted when none is named."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class OrtCompileApiFlags(_Enum):
    """Flags of ModelCompiler."""

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class OrtCompiledModelCompatibility(_Enum):
    """Whether a compiled model fits a provider."""

    EP_NOT_APPLICABLE = 0
    EP_SUPPORTED_OPTIMAL = 1
    EP_SUPPORTED_PREFER_RECOMPILATION = 2
    EP_UNSUPPORTED = 3


class ArenaExtendStrategy(_Enum):
    """How an arena grows."""

    kNextPowerOfTwo = 0
    kSameAsRequested = 1


class OrtDeviceVendorId(_enum.IntEnum):
    """PCI numbers of vendors."""

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


_DEVICES = {"cpu": 0, "cuda": 1, "gpu": 1, "webgpu": 1, "dml": 1, "fpga": 2, "npu": 3, "cann": 3}
_VENDORS = {"cuda": OrtDeviceVendorId.NVIDIA, "dml": OrtDeviceVendorId.MICROSOFT,
            "cann": OrtDeviceVendorId.HUAWEI}


class OrtDevice:
    """A device by its numbers: OrtDevice(type, memory type, [vendor,] id), or OrtDevice.make()."""

    __slots__ = ("_type", "_memory", "_vendor", "_id")

    def __init__(self, device_type, memory_type=0, vendor_id=0, device_id=None):
        if isinstance(device_type, OrtDevice):
            other = device_type
            device_type, memory_type = other._type, other._memory
            vendor_id, device_id = other._vendor, other._id
        if device_id is None:
            vendor_id, device_id = 0, vendor_id
        self._type, self._memory = int(device_type), int(memory_type)
        self._vendor, self._id = int(vendor_id), int(device_id)

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> "OrtDevice":
        """The device of a name: "cpu", "cuda", ... Exception for an unknown one."""
        if ort_device_name not in _DEVICES:
            raise Exception("Unsupported device type: " + ort_device_name)
        if vendor_id < 0:
            vendor_id = _VENDORS.get(ort_device_name, 0)
        return OrtDevice(_DEVICES[ort_device_name], 0, vendor_id, device_id)

    def device_id(self) -> int:
        """Number of the device among those of its kind."""
        return self._id

    def device_type(self) -> int:
        """0 CPU, 1 GPU, 2 FPGA, 3 NPU."""
        return self._type

    def device_vendor_id(self) -> int:
        """PCI number of the vendor."""
        return self._vendor

    vendor_id = device_vendor_id

    def device_mem_type(self) -> int:
        """0: the device's own memory."""
        return self._memory

    mem_type = device_mem_type

    @staticmethod
    def cpu() -> int:
        """Number of the kind."""
        return 0

    @staticmethod
    def cuda() -> int:
        """Number of the kind."""
        return 1

    gpu = dml = webgpu = cuda

    @staticmethod
    def fpga() -> int:
        """Number of the kind."""
        return 2

    @staticmethod
    def npu() -> int:
        """Number of the kind."""
        return 3

    cann = npu

    @staticmethod
    def default_memory() -> int:
        """Number of the device's own memory."""
        return 0

    def _get_c_device(self) -> "OrtDevice":
        return self


class OrtArenaCfg:
    """Settings of an arena: four numbers, or a dict of them. They are kept and not used."""

    def __init__(self, max_mem, arena_extend_strategy=-1, initial_chunk_size_bytes=-1,
                 max_dead_bytes_per_chunk=-1):
        self.max_mem = 0
        self.arena_extend_strategy = arena_extend_strategy
        self.initial_chunk_size_bytes = initial_chunk_size_bytes
        self.max_dead_bytes_per_chunk = max_dead_bytes_per_chunk
        self.initial_growth_chunk_size_bytes = -1
        self.max_power_of_two_extend_bytes = -1
        if not isinstance(max_mem, dict):
            self.max_mem = max_mem
            return
        for name, value in max_mem.items():
            if name not in self.__dict__:
                raise ValueError(f"Invalid OrtArenaCfg option: {name}")
            setattr(self, name, int(value))


class OrtExternalInitializerInfo:
    """Where the bytes of an initializer are: a file, an offset, a length."""

    def __init__(self, filepath: str, file_offset: int, byte_size: int):
        self.filepath, self.file_offset, self.byte_size = filepath, file_offset, byte_size


class SparseCooView:
    """Indices of a sparse tensor: [n] of the flattened matrix, or [n, 2]."""

    def __init__(self, indices):
        self._indices = indices

    def indices(self):
        """The array, over the tensor's memory."""
        return self._indices


class SparseCsrView:
    """Indices of a sparse tensor: columns [n], and where rows begin [rows + 1]."""

    def __init__(self, inner, outer):
        self._inner, self._outer = inner, outer

    def inner(self):
        """Columns, over the tensor's memory."""
        return self._inner

    def outer(self):
        """Begins of rows, over the tensor's memory."""
        return self._outer


SparseBlockSparseView = SparseCooView


class OrtEpAssignedNode:
    """A node that a provider runs."""

    name = op_type = domain = ""


class OrtEpAssignedSubgraph:
    """Nodes that a provider runs."""

    ep_name = ""

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """None: nothing records them."""
        return []


class _Absent:
    """A class whose objects only other providers make."""

    def __init__(self, *args, **options):
        raise NotImplementedError(f"{type(self).__name__} belongs to parts that Sardonyx does not "
                                  "have: devices other than the CPU, compiled contexts")


class OrtSyncStream(_Absent):
    """A stream of a device."""


class OrtEpContextData(_Absent):
    """Data of a compiled context."""


class OrtEpContextDataBuffer(_Absent):
    """Memory for data of a compiled context."""


class ModelCompiler:
    """Writes a model as a session with these options would run it: an ONNX file.

    No node is compiled for a device by the CPU, so what is told about such nodes is without effect.
    sardonyx.compile writes plan files, which load faster.

    sess_options: SessionOptions. input_model_path_or_bytes: a path or the bytes of a model. flags:
    OrtCompileApiFlags. graph_optimization_level: how far the graph may be rewritten.
    external_initializers_file_path and get_initializer_location_func are refused with NotImplemented
    when the model is compiled: its initializers are in its own file.
    """

    def __init__(self, sess_options, input_model_path_or_bytes,
                 embed_compiled_data_into_model: bool = False,
                 external_initializers_file_path=None,
                 external_initializers_size_threshold: int = 1024,
                 flags: int = OrtCompileApiFlags.NONE,
                 graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_DISABLE_ALL,
                 get_initializer_location_func=None):
        model, file = input_model_path_or_bytes, external_initializers_file_path
        if not isinstance(model, (str, bytes, _os.PathLike)):
            raise TypeError(f"Unable to load from type '{type(model)}'")
        if model in ("", b""):
            raise ValueError("Input model bytes array is empty" if model == b"" else
                             "Input model path is empty")
        if file and not isinstance(file, (str, _os.PathLike)):
            raise TypeError(f"Output external initializer filepath is of unexpected type '{type(file)}'")
        if file and get_initializer_location_func is not None:
            raise ValueError("Cannot initialize ModelCompiler with both `external_initializers_file_path` "
                             "and `get_initializer_location_func`")
        if not hasattr(sess_options, "_compile"):
            raise TypeError(f"sess_options must be SessionOptions, not {type(sess_options).__name__}")
        self._options, self._model = sess_options, model
        self._settings = (bool(embed_compiled_data_into_model), file or None,
                          int(external_initializers_size_threshold), int(flags),
                          int(graph_optimization_level), get_initializer_location_func is not None)

    def compile_to_file(self, output_model_path=None) -> None:
        """Writes the file; without a path one beside the model's, whose name ends with _ctx.onnx."""
        if output_model_path and not isinstance(output_model_path, (str, _os.PathLike)):
            raise TypeError(f"Output model's filepath is of unexpected type '{type(output_model_path)}'")
        self._options._compile(self._model, output_model_path or None, *self._settings)

    def compile_to_bytes(self) -> bytes:
        """The bytes of the file."""
        return self._options._compile(self._model, True, *self._settings)

    def compile_to_stream(self, write_function) -> None:
        """Calls write_function with the bytes of the file, in pieces."""
        if not callable(write_function):
            raise TypeError(f"write_function must be callable, not {type(write_function).__name__}")
        write_function(self.compile_to_bytes())

    def set_ep_context_data_write_func(self, write_func) -> None:
        """Taken: no node is compiled, so there is no data to write."""
        if not callable(write_func):
            raise TypeError(f"write_func must be callable, not {type(write_func).__name__}")

    def clear_ep_context_data_write_func(self) -> None:
        """Takes back what set_ep_context_data_write_func was given."""
