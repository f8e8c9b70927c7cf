# SPDX-License-Identifier: Apache-2.0
"""sardonyx.tools under this name."""
from sardonyx import _later

_later.mirror(__name__, globals())
