# SPDX-License-Identifier: Apache-2.0
"""Nothing: the extension needs no library to be loaded before it."""
