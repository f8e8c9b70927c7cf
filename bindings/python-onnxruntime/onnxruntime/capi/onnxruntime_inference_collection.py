# SPDX-License-Identifier: Apache-2.0
"""InferenceSession as programs for ONNX Runtime expect it: what a provider cannot do, the CPU does.

Sardonyx itself is strict: a provider that does not start is an error. Here a provider that is not in
this build is left out with a warning, an unknown one is reported on stdout and the session runs on the
CPU. get_providers() tells what really runs.
"""
import collections.abc
import warnings

from onnxruntime.capi import _pybind_state as C
from onnxruntime.capi._pybind_state import (  # noqa: F401
    IOBinding, ModelCompiler, OrtDevice, OrtDeviceVendorId, OrtValue, SparseTensor,
    copy_tensors)

_DEVICES = ("cuda", "cann", "cpu", "dml", "webgpu", "gpu", "npu")
_VENDORS = {"cuda": OrtDeviceVendorId.NVIDIA, "dml": OrtDeviceVendorId.MICROSOFT,
            "cann": OrtDeviceVendorId.HUAWEI, "webgpu": OrtDeviceVendorId.NONE}
_CPU = "CPUExecutionProvider"
_RIVALS = ("TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider")


def get_ort_device_type(device_type):
    """The number of a device's kind: 0 for "cpu"."""
    if device_type not in _DEVICES:
        raise Exception("Unsupported device type: " + device_type)
    return getattr(C.OrtDevice, device_type)()


def get_vendor_id_for_device_type(device_type):
    """The vendor whom a device's kind implies, or None."""
    return _VENDORS.get(device_type)


def _pair_up(providers, provider_options):
    """[(name, options)] of the two arguments; ValueError for other forms."""
    sequence = collections.abc.Sequence
    if not isinstance(providers, sequence):
        raise ValueError("'providers' should be a sequence.")
    if provider_options is None:
        pairs = [(item, {}) if isinstance(item, str) else item for item in providers]
        for pair in pairs:
            if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)
                    and isinstance(pair[1], dict)):
                raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        return pairs
    if not isinstance(provider_options, sequence):
        raise ValueError("'provider_options' should be a sequence.")
    if len(providers) != len(provider_options):
        raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    if not all(isinstance(item, str) for item in providers):
        raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
    if not all(isinstance(item, dict) for item in provider_options):
        raise ValueError("'provider_options' values must be dicts.")
    return list(zip(providers, provider_options))


def check_and_normalize_provider_args(providers, provider_options, available_provider_names):
    """([names], [options as {str: str}]) of the two arguments of a session.

    Warns of names that are not available and of a name given twice; ValueError for other forms."""
    if providers is None:
        return [], []
    chosen = {}
    for name, options in _pair_up(providers, provider_options):
        if name not in available_provider_names:
            warnings.warn(f"Specified provider '{name}' is not in available provider names."
                          f"Available providers: '{', '.join(available_provider_names)}'")
        if name in chosen:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.")
        else:
            chosen[name] = {str(key): str(value) for key, value in options.items()}
    return list(chosen), list(chosen.values())


def _choose(providers, provider_options):
    """The providers that are here, as ([names], [options]); unknown names are a RuntimeError."""
    named = {item[0] if isinstance(item, tuple) else item for item in providers or ()
             if isinstance(item, (str, tuple)) and item}
    if named.issuperset(_RIVALS):
        raise ValueError(f"Cannot enable both '{_RIVALS[0]}' and '{_RIVALS[1]}' in the same session.")
    available = C.get_available_providers()
    names, options = check_and_normalize_provider_args(providers, provider_options, available)
    for name in names:
        if name not in available and name not in C.get_all_providers():
            raise RuntimeError(f"Unknown Provider Type: {name}")
    pairs = [(name, {} if name == _CPU else given) for name, given in zip(names, options)
             if name in available] or [(_CPU, {})]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


class AdapterFormat(C.AdapterFormat):
    """A file of an adapter: named tensors and versions; see sardonyx.AdapterFormat."""

    _loader = C.LoraAdapter


class Session(C.InferenceSession):
    """A session; see sardonyx.InferenceSession for what it does."""


class InferenceSession(Session):
    """A session on one model, as ONNX Runtime's.

    path_or_bytes: a path (str or os.PathLike) or the bytes of a model; providers: names or (name, options)
    in order of preference. Providers that are not here are left out with a warning; where none is left,
    or one does not start, the session runs on the CPU, which it says on stdout.
    """

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **kwargs):
        fallback = int(kwargs.get("enable_fallback", 1)) == 1
        self._enable_fallback = fallback
        try:
            names, options = _choose(providers, provider_options)
            super().__init__(path_or_bytes, sess_options, names, options)
        except (ValueError, RuntimeError) as error:
            if not fallback:
                raise
            print("*************** EP Error ***************")
            print(f"EP Error {error} when using {providers}")
            print(f"Falling back to {[_CPU]} and retrying.")
            print("****************************************")
            super().__init__(path_or_bytes, sess_options, [_CPU], None)
            self._enable_fallback = False

    def enable_fallback(self):
        """Remembers the wish. A run needs no other provider: what the CPU cannot do is refused at start."""
        self._enable_fallback = True

    def disable_fallback(self):
        """Remembers the wish; see enable_fallback."""
        self._enable_fallback = False

    def set_providers(self, providers=None, provider_options=None):
        """Makes the session anew on these providers; those that are not here are left out."""
        super().set_providers(*_choose(providers, provider_options))
