# SPDX-License-Identifier: Apache-2.0
"""The versions of CUDA that a build finds: none, there is no CUDA in this one."""


def find_cudart_versions(build_env=False, build_cuda_version=None):
    return []
