# SPDX-License-Identifier: Apache-2.0
"""What the package tells of itself. There is nothing to validate: the extension needs libc alone."""
from onnxruntime.capi import build_and_package_info as _info


def check_distro_info():
    """Nothing: no system is unsupported by its name."""


def get_package_name_and_version_info():
    """(name of the package, its version, version of CUDA or "")."""
    return _info.package_name, _info.__version__, ""


def check_training_module():
    """(whether there is ORTModule, name, version, version of CUDA): there is none."""
    return (False, *get_package_name_and_version_info())
