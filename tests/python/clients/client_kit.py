# SPDX-License-Identifier: Apache-2.0
"""What a client script writes: arrays and texts by name, into the file that its first argument names."""
import pickle
import sys
from pathlib import Path

import numpy as np

RECORD = {}


def plain(item):
    """Lists and dictionaries of arrays and numbers, so that both runs can be compared anywhere."""
    if isinstance(item, dict):
        return {str(key): plain(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [plain(value) for value in item]
    if isinstance(item, np.ndarray):
        return item.tolist() if item.dtype.kind in "OUS" else item
    return item.item() if isinstance(item, np.generic) else item


def record(name, item):
    RECORD[name] = plain(item)


def finish():
    """Writes the record, with where the module onnxruntime came from."""
    import onnxruntime
    RECORD["module"] = onnxruntime.__file__
    Path(sys.argv[1]).write_bytes(pickle.dumps(RECORD))
