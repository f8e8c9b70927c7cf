# SPDX-License-Identifier: Apache-2.0
"""Nothing is lost: many calls of every kind leave memory and references as they were."""
import gc
import os
import sys
import tracemalloc

import numpy as np
import pytest

import python_models as models

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
X = np.arange(64, dtype="f4")
ROUNDS = 2000
LOST = 8 * ROUNDS  # bytes: an object in every second call


def resident():
    """Bytes of this process that are in memory."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE
    except OSError:
        pytest.skip("no /proc/self/statm")


def wrong(call):
    """A call that fails."""
    try:
        call()
    except Exception:
        return
    raise AssertionError("it must fail")


def calls_of(sdx):
    """Calls that are made many times, by name."""
    session = sdx.InferenceSession(models.identity())
    text = sdx.InferenceSession(models.identity(models.TensorProto.STRING))
    words = np.array(["a", "\u03b2" * 40] * 8, object)
    sequence = sdx.InferenceSession(models.to_sequence())
    value = sdx.OrtValue.ortvalue_from_numpy(X)
    strided, swapped = np.arange(128, dtype="f4")[::2], X.astype(">f4")
    options = sdx.RunOptions()

    def bind():
        io = session.io_binding()
        io.bind_cpu_input("x", X)
        io.bind_output("y")
        session.run_with_iobinding(io)
        io.copy_outputs_to_cpu()
        io.get_outputs()

    return {
        "run": lambda: session.run(None, {"x": X}),
        "run by name": lambda: session.run(["y"], {"x": X}, options),
        "list": lambda: session.run(None, {"x": [1.0, 2.0]}),
        "copies": lambda: (session.run(None, {"x": strided}), session.run(None, {"x": swapped})),
        "text": lambda: text.run(None, {"x": words}),
        "sequence": lambda: sequence.run(None, {"x": X}),
        "values": lambda: session.run_with_ort_values(None, {"x": value})[0].numpy(),
        "value": lambda: sdx.OrtValue.ortvalue_from_numpy(X).numpy(),
        "dlpack": lambda: (np.from_dlpack(value), sdx.OrtValue.from_dlpack(X), value.__dlpack__()),
        "bind": bind,
        "missing": lambda: wrong(lambda: session.run(None, {})),
        "unknown": lambda: wrong(lambda: session.run(["q"], {"x": X})),
        "wrong type": lambda: wrong(lambda: session.run(None, {"x": X.astype("f8"), "z": X})),
        "wrong object": lambda: wrong(lambda: session.run(None, {"x": object()})),
        "options": lambda: setattr(sdx.SessionOptions(), "logid", "me"),
        "facts": lambda: (session.get_inputs(), session.get_modelmeta(), session.get_providers()),
    }


NAMES = ["run", "run by name", "list", "copies", "text", "sequence", "values", "value", "dlpack", "bind",
         "missing", "unknown", "wrong type", "wrong object", "options", "facts"]


@pytest.mark.parametrize("name", NAMES)
def test_calls_lose_nothing(sdx, name):
    call = calls_of(sdx)[name]
    for _ in range(ROUNDS // 4):
        call()
    gc.collect()
    before, references = resident(), sys.getrefcount(X)
    grown = []
    while len(grown) < 3 and min(grown, default=LOST) >= LOST:  # what is lost is lost in every turn
        tracemalloc.start()
        traced = tracemalloc.get_traced_memory()[0]
        for _ in range(ROUNDS):
            call()
        gc.collect()
        grown.append(tracemalloc.get_traced_memory()[0] - traced)
        tracemalloc.stop()
    assert sys.getrefcount(X) == references
    assert grown[-1] < LOST, f"{grown} bytes of Python"
    assert resident() - before < 6 << 20, "memory of the process grows"


def test_sessions_go(sdx):
    """Sessions and what they loaded are freed, those that failed too."""
    data = models.make([models.helper.make_node("Add", ["x", "w"], ["y"])],
                       [models.value("x", shape=(1 << 18,))], [models.value("y", shape=(1 << 18,))],
                       initializer=[models.helper.make_tensor("w", models.FLOAT, [1 << 18],
                                                              np.ones(1 << 18, "f4"))])

    def use():
        sdx.InferenceSession(data).run(None, {"x": np.zeros(1 << 18, "f4")})
        wrong(lambda: sdx.InferenceSession(data[:-100]))

    for _ in range(5):
        use()
    gc.collect()
    before = resident()
    for _ in range(40):
        use()
    gc.collect()
    assert resident() - before < 8 << 20


def test_references_of_names(sdx):
    """Arguments, results and interned names keep their counts."""
    session = sdx.InferenceSession(models.identity())
    names, feed = ["y"], {"x": X}
    counts = [sys.getrefcount(thing) for thing in (names, feed, X, session, None)]
    for _ in range(500):
        session.run(names, feed)
    after = [sys.getrefcount(thing) for thing in (names, feed, X, session, None)]
    assert after[:4] == counts[:4] and abs(after[4] - counts[4]) < 200
