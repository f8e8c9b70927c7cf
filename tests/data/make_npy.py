#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests/data/npy: small .npy and .npz files as NumPy makes them.

    python tests/data/make_npy.py tests/data/npy

Names say what to expect: "num_*" hold 0 to 5 in shape [2, 3], "str_*" six texts, "bad_*" are refused.
"""
import argparse
import io
import os
import zipfile

import ml_dtypes
import numpy as np
from numpy.lib import format as npy

TEXTS = np.array([["a", "bc", "\u00e9"], ["", "x y", "\u65e5\u672c\U0001f600"]])


def blob(array, version=(1, 0)):
    f = io.BytesIO()
    npy.write_array(f, array, version=version)
    return f.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    out = parser.parse_args().out
    os.makedirs(out, exist_ok=True)

    def put(name, data):
        with open(os.path.join(out, name), "wb") as f:
            f.write(data)

    six = np.arange(6).reshape(2, 3)
    for t in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16", ">f2", ">f4", ">f8",
              ">i2", ">i4", ">i8", ">u4", ">c8", ">c16"):
        put("num_%s.npy" % t.replace(">", "be_"), blob(six.astype(t)))
    put("num_fortran.npy", blob(np.asfortranarray(six.astype("f4"))))
    put("num_fortran_be.npy", blob(np.asfortranarray(six.astype(">i2"))))
    put("num_version2.npy", blob(six.astype("f4"), (2, 0)))
    put("num_version3.npy", blob(six.astype("f4"), (3, 0)))
    put("bool.npy", blob(six % 2 == 1))
    put("scalar.npy", blob(np.array(7, "i4")))
    put("vector.npy", blob(np.arange(4, dtype="f4")))
    put("empty.npy", blob(np.zeros((0, 3), "f8")))
    put("str_u.npy", blob(TEXTS))
    put("str_u_be.npy", blob(TEXTS.astype(">U4")))
    put("str_u_fortran.npy", blob(np.asfortranarray(TEXTS)))
    put("str_s.npy", blob(np.char.encode(TEXTS, "utf-8")))
    put("bad_object.npy", blob(np.array([None, 1], object)))
    put("bad_bfloat16.npy", blob(six.astype(ml_dtypes.bfloat16)))
    put("bad_record.npy", blob(np.zeros(2, [("a", "f4"), ("b", "i4")])))
    good = blob(six.astype("f4"))
    put("bad_magic.npy", b"\x93NUMPX" + good[6:])
    put("bad_version.npy", good[:6] + b"\x09" + good[7:])
    put("bad_short.npy", good[:-1])
    put("bad_long.npy", good + b"\0")
    put("bad_header_cut.npy", good[:60])
    put("bad_header_length.npy", good[:8] + b"\xff\xff" + good[10:])
    put("bad_dict.npy", good.replace(b"{'descr'", b"['descr'"))
    put("bad_key.npy", good.replace(b"'descr'", b"'descX'"))
    put("bad_shape.npy", good.replace(b"(2, 3)", b"(2, x)"))
    put("bad_shape_negative.npy", good.replace(b"(2, 3)", b"(2,-3)"))
    put("bad_shape_huge.npy", good.replace(b"(2, 3), }", b"(9999999999999999999,), }"))
    put("bad_shape_wraps.npy", good.replace(b"(2, 3), }               ", b"(4294967296, 4294967296)}"))
    put("bad_type.npy", good.replace(b"'<f4'", b"'<q4'"))
    put("bad_order.npy", good.replace(b"False", b"Maybe"))

    members = {"six": six.astype("f4"), "texts": TEXTS, "noise": np.random.RandomState(0).randint(0, 9, 999).astype("i4")}
    np.savez(os.path.join(out, "stored.npz"), **members)
    np.savez_compressed(os.path.join(out, "deflated.npz"), **members)
    np.savez_compressed(os.path.join(out, "one.npz"), only=np.zeros((50, 50), "f4"))
    z = bytearray(open(os.path.join(out, "one.npz"), "rb").read())
    put("bad_end.npz", bytes(z[:-22]))
    z[60] ^= 0xFF
    put("bad_deflate.npz", bytes(z))
    z = bytearray(open(os.path.join(out, "stored.npz"), "rb").read())
    z[200] ^= 1
    put("bad_checksum.npz", bytes(z))
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("six.npy", good)
    put("bad_method.npz", f.getvalue())


main()
