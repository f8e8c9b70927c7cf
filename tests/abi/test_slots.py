# SPDX-License-Identifier: Apache-2.0
"""The table of functions itself: given for every version, without holes, missing ones named."""
import ctypes
import re
import subprocess
import sys

import pytest

# These return no status, so a program cannot be told that they are missing: NULL or nothing is all they would give.
QUIET = {"GetEpApi", "GetInteropApi", "GetModelPackageApi"}
NOT_IMPLEMENTED = 9


@pytest.fixture(scope="module")
def slots(root):
    """[(function, what it returns)] in the table's order."""
    text = (root / "include/sardonyx/ort_slots.h").read_text()
    return [(name, result) for result, name in re.findall(r"X\(\d+, \d+, (.*?), (\w+), \\\n", text)]


@pytest.fixture(scope="module")
def have(root):
    """The functions that a family fills in."""
    sources = "".join(path.read_text() for path in (root / "abi/ort").glob("ort_*.c"))
    return set(re.findall(r"\bapi->(\w+) =", sources))


class Base(ctypes.Structure):
    _fields_ = [("get_api", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)),
                ("get_version", ctypes.CFUNCTYPE(ctypes.c_char_p))]


@pytest.fixture(scope="module")
def base(our_ort):
    library = ctypes.CDLL(str(our_ort))
    library.OrtGetApiBase.restype = ctypes.POINTER(Base)
    return library.OrtGetApiBase().contents


def test_any_version(base):
    first = base.get_api(1)
    assert first
    assert all(base.get_api(version) == first for version in (0, 2, 22, 30, 31, 32, 999, 2**32 - 1))
    assert int(base.get_version().split(b".")[1]) >= 31


def test_no_holes(base, slots):
    table = (ctypes.c_void_p * len(slots)).from_address(base.get_api(31))
    assert len(slots) == 428
    assert [name for (name, _), address in zip(slots, table) if not address] == []


def test_missing_name_themselves(base, slots, have):
    table = (ctypes.c_void_p * len(slots)).from_address(base.get_api(31))
    at = {name: table[i] for i, (name, _) in enumerate(slots)}
    message = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(at["GetErrorMessage"])
    code = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(at["GetErrorCode"])
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(at["ReleaseStatus"])
    for name, result in slots:
        if name in have or result != "OrtStatusPtr":
            continue
        status = ctypes.CFUNCTYPE(ctypes.c_void_p)(at[name])()
        assert code(status) == NOT_IMPLEMENTED and name in message(status).decode()
        release(status)


def test_others_are_there(slots, have):
    """A function without a status must do what it says."""
    missing = {name for name, result in slots if name not in have and result != "OrtStatusPtr"}
    assert missing <= QUIET


def test_enough(slots, have):
    assert len(have & {name for name, _ in slots}) >= 300


def test_table_is_current(root):
    made = subprocess.run([sys.executable, root / "scripts/gen_ort_table.py"], capture_output=True, text=True,
                          check=True).stdout
    assert made == (root / "docs/ort_abi.md").read_text(), "run make docs"
