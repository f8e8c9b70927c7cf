# SPDX-License-Identifier: Apache-2.0
"""sardonyx.transformers under this name."""
from sardonyx import _later

_later.mirror(__name__, globals())
