#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests/data/pb: small .pb data files as the onnx package makes them.

    python tests/data/make_pb.py tests/data/pb

A file's name begins with its kind; "bad" in it says that it is refused.
"""
import argparse
import os

import numpy as np
from onnx import MapProto, OptionalProto, SequenceProto, TensorProto, helper, numpy_helper as nh


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    out = parser.parse_args().out
    os.makedirs(out, exist_ok=True)

    def put(name, message):
        data = message if isinstance(message, bytes) else message.SerializeToString(deterministic=True)
        with open(os.path.join(out, name), "wb") as f:
            f.write(data)

    a, b = np.arange(3, dtype=np.float32), np.array([[5, 6]], np.float32)
    put("tensor.pb", nh.from_array(a, "a"))
    put("tensor_typed.pb", helper.make_tensor("a", TensorProto.FLOAT, [3], [0.0, 1.0, 2.0]))
    put("tensor_string.pb", nh.from_array(np.array(["x", "", "\u00e9"], object), "s"))
    put("tensor_int4.pb", helper.make_tensor("q", TensorProto.INT4, [3], [-8, 7, -1]))
    put("tensor_bad_empty.pb", b"")
    put("tensor_bad_cut.pb", nh.from_array(a, "a").SerializeToString()[:-1])
    external = nh.from_array(a, "a")
    external.ClearField("raw_data")
    external.data_location = TensorProto.EXTERNAL
    external.external_data.add(key="location", value="tensor.pb")
    put("tensor_bad_external.pb", external)

    seq = nh.from_list([a, b], "l")
    put("sequence.pb", seq)
    put("sequence_empty.pb", nh.from_list([], "l", SequenceProto.TENSOR))
    put("sequence_nested.pb", nh.from_list([[a], [a, b]], "n"))
    bad = SequenceProto()
    bad.CopyFrom(seq)
    bad.elem_type = SequenceProto.SPARSE_TENSOR
    put("sequence_bad_kind.pb", bad)

    put("optional.pb", nh.from_optional(a, "o"))
    put("optional_empty.pb", nh.from_optional(None, "o", OptionalProto.TENSOR))
    put("optional_sequence.pb", nh.from_optional([a, b], "o"))
    both = nh.from_optional(a, "o")
    both.sequence_value.CopyFrom(seq)
    put("optional_bad_both.pb", both)

    put("map_int.pb", nh.from_dict({3: np.float32(0.5), -1: np.float32(2)}, "m"))
    words = MapProto(name="m", key_type=TensorProto.STRING, string_keys=[b"one", b"two"])
    words.values.CopyFrom(nh.from_list([np.array(1, np.int64), np.array(2, np.int64)], "v"))
    put("map_string.pb", words)
    rows = MapProto(name="m", key_type=TensorProto.INT64, keys=[1, 2])
    rows.values.CopyFrom(seq)
    put("map_rows.pb", rows)
    rows.keys.append(3)
    put("map_bad_count.pb", rows)
    floats = MapProto(name="m", key_type=TensorProto.FLOAT)
    put("map_bad_key.pb", floats)

    values, indices = nh.from_array(np.array([1, 2], np.float32), "v"), nh.from_array(np.array([1, 5], np.int64), "i")
    put("sparse.pb", helper.make_sparse_tensor(values, indices, [2, 3]))
    put("sparse_bad.pb", helper.make_sparse_tensor(values, indices, [2, 2]))


main()
