# SPDX-License-Identifier: Apache-2.0
"""A prepared model; see sardonyx.backend."""
from sardonyx.backend import BackendRep as OnnxRuntimeBackendRep  # noqa: F401
