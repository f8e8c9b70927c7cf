# SPDX-License-Identifier: Apache-2.0
"""bench/peers: every engine that is asked for is in the report, measured or with the reason why not; the
goals are reckoned from the rows as bench/goals.tsv says; bench/operators lists what it is asked for. No time is
judged."""
import argparse
import json
import os
import subprocess
import sys

import models
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper


@pytest.fixture(scope="module")
def report(root):
    sys.path.insert(0, str(root / "bench"))
    import peer_report
    return peer_report


def make_case(folder, op, domain=""):
    """A folder as the zoo's: y = op(x)."""
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    node = helper.make_node(op, ["x"], ["y"], domain=domain)
    graph = helper.make_graph([node], "g", [models.value("x", [2, 3])],
                              [models.value("y", [2, 3])])
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    (folder / "test_data_set_0").mkdir(parents=True)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for name, value in (("input_0", x), ("output_0", np.tanh(x))):
        data = numpy_helper.from_array(value, name[0]).SerializeToString()
        (folder / f"test_data_set_0/{name}.pb").write_bytes(data)
    return folder


def run_peers(root, build, tmp_path, *words):
    """The rows of a run and what it printed."""
    if not (build / "bench/own_worker").is_file():
        pytest.skip("bench/ is not built")
    out = tmp_path / "rows.json"
    done = subprocess.run([sys.executable, root / "bench/peers", "--threads", "1", "--rounds", "1", "--turn", "1",
                           "--spend", "0", "--json", out, *words], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "SDX_BUILD": str(build), "SDX_BENCH_CACHE": str(tmp_path / "cases"),
                               "SDX_BENCH_PYTHON": sys.executable})
    rows = [json.loads(line) for line in out.read_text().split("\n") if line] if out.is_file() else []
    return rows, done.stdout + done.stderr


def test_each_engine_is_reported(root, build, tmp_path):
    """An engine that is not installed, a result that is wrong and a model that does not load are rows too."""
    case = make_case(tmp_path / "case", "Tanh")
    rows, text = run_peers(root, build, tmp_path, "--engines", "own,ort,tract,rten", case)
    found = {row["engine"]: row for row in rows}
    assert list(found) == ["own", "ort", "tract", "rten"], text
    assert found["own"]["error"] < 1e-6 and found["own"]["median_ms"] > 0
    for engine, row in found.items():
        assert "failure" not in row or row["failure"] in text and f"{engine}: not installed" in text
    wrong, text = run_peers(root, build, tmp_path, "--engines", "own", make_case(tmp_path / "wrong", "Abs"))
    assert wrong[-1]["failure"].startswith("wrong results: error ") and "fails: wrong results" in text
    absent, text = run_peers(root, build, tmp_path, "--engines", "own", make_case(tmp_path / "odd", "Odd", "x.y"))
    assert "Odd" in absent[-1]["failure"], text
    rows, text = run_peers(root, build, tmp_path, "--engines", "own,fastest", case)
    assert "no engine is called fastest" in text


def test_memory_of_a_process_with_packed_weights(root, build, tmp_path):
    """What was packed leaves memory, in the model's file as in one of external data, though small constants beside
    it stay in use: 48 MB of weights are not held twice."""
    if not (build / "bench/own_worker").is_file():
        pytest.skip("bench/ is not built")
    side, layers = 1024, 12
    x = np.ones((1, side), np.float32)
    nodes, weights = [], []
    for i in range(layers):
        weights += [numpy_helper.from_array(np.full((side, side), 1 / side, np.float32), f"w{i}"),
                    numpy_helper.from_array(np.zeros(side, np.float32), f"b{i}")]
        nodes += [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"h{i}"]),
                  helper.make_node("Add", [f"h{i}", f"b{i}"], [f"x{i + 1}"])]
    make = lambda path: models.save(path, nodes, [models.value("x0", [1, side])],
                                    [models.value(f"x{layers}", [1, side])], weights)
    case = models.case(tmp_path / "case", [("x0", x)], [(f"x{layers}", x)], make)
    model = onnx.load(case / "model.onnx")

    def peak(case):
        done = subprocess.run([build / "bench/own_worker", case, "1"], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120, check=True)
        found = json.loads(done.stdout.split("\n")[1])
        assert found["error"] < 1e-5
        return found["peak_mb"]

    (case / "model.onnx").write_bytes(model.SerializeToString())
    inside = peak(case)
    onnx.save(model, case / "model.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    data = (case / "weights").read_bytes()
    (case / "weights").write_bytes(data)  # at once: in large pages, where the file system has them
    outside = peak(case)
    weights_mb = layers * side * side * 4 / 2**20
    assert outside < inside + weights_mb / 4, (inside, outside)
    bare = peak(make_case(tmp_path / "bare", "Tanh"))
    assert inside - bare < weights_mb * 1.5, (inside, bare)


def test_earlier_rows(root, build, tmp_path):
    """A report of rows measured before: of each engine the fastest, and nothing is measured again."""
    earlier = tmp_path / "earlier.json"
    lines = [row(engine, "yolo11n", ms, flops=None, bytes=None, min_ms=ms, p10_ms=ms, p90_ms=ms, turns=1, clean=1)
             for engine, ms in (("own", 9.0), ("ort", 6.0), ("own", 2.0), ("ort", 8.0))]
    earlier.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    rows, text = run_peers(root, build, tmp_path, "--engines", "own,ort", "--earlier", earlier)
    assert rows == [] and "1 threads, time, ONNX Runtime (ort): 1.30, reached 3.000: met" in text, text


def row(engine, model, ms, threads=1, **more):
    return {"engine": engine, "model": model, "threads": threads, "median_ms": ms, "load_ms": 1.0, "cold_ms": ms,
            "peak_mb": 10 * ms, "error": 0.0, "version": "1", **more}


def results(report, rows, goals):
    names = "group model measure peers goal note set".split()
    args = argparse.Namespace(threads=[1, 2], missing=["lost"], absent={"rten": "not installed"}, words=[], engines=[],
                              limits="f32 multiply-add, registers      GFLOP/s         1      100.0       90.0\n"
                                     "read memory, one stream          GB/s            1       12.0       10.0\n"
                                     "read memory, four streams        GB/s            1       20.0       16.0\n")
    return report.Results(rows, [dict(zip(names, goal)) for goal in goals], args)


@pytest.mark.parametrize("measure, peers, ratio, against", [
    ("time", "best", 1.5, "mnn"), ("time", "ort", 2.0, "ort-c"), ("time", "ort-exact", 1.25, "ort-exact"),
    ("time", "own:b", 3.0, "own:b"), ("time", "fma", 0.5, "fma"), ("time", "bandwidth", 0.25, "bandwidth"),
    ("cold", "mnn", 1.5, "mnn"), ("plan", "ort-c", 8.0, "ort-c"), ("memory", "ort-c", 2.0, "ort-c"),
    ("time", "rten", None, "rten: not installed"), ("time", "tract", None, "tract: one thread"),
    ("new_shape", "steady", 0.75, "steady"), ("sessions", "one session", None, "not measured"),
])
def test_goal(report, measure, peers, ratio, against):
    rows = [row("own", "a", 2.0, flops=1e8, bytes=1e7, new_shape=0.75), row("own-plan", "a", 0.5), row("ort", "a", 5.0),
            row("ort-c", "a", 4.0), row("ort-exact", "a", 2.5), row("mnn", "a", 3.0), row("own", "b", 6.0),
            {"engine": "tract", "model": "a", "threads": 1, "failure": "one thread"}]
    found = results(report, rows, [["g", "a", measure, peers, "1.00", "n", "all"]])
    goal, threads, got, who = next(found.goal_rows())
    assert threads == 1 and who == against and got == (ratio if ratio is None else pytest.approx(ratio))
    assert report.verdict(goal, got) == ("not measured" if ratio is None else "met" if ratio >= 1 else "missed")


def test_goal_of_group_and_of_absent_model(report):
    goals = [["g", "a", "time", "best", "1.10", "n", "all"], ["g", "b", "time", "best", "1.10", "n", "all"],
             ["g", "*", "time", "ort", "1.35", "n", "all"], ["g", "lost", "cold", "ort", "1.35", "n", "all"]]
    found = results(report, [row("own", "a", 1.0), row("ort", "a", 2.0), row("own", "b", 1.0), row("ort", "b", 8.0)], goals)
    reached = [(goal["model"], threads, ratio, who) for goal, threads, ratio, who in found.goal_rows()]
    assert reached[4][:2] == ("*", 1) and reached[4][2] == pytest.approx(4.0) and reached[4][3] == "ort, 2 models"
    assert reached[6] == ("lost", 1, None, "the model is not in the zoo")


def test_limit_of_its_time(report):
    """A limit that was measured with a model counts in place of the run's."""
    rows = [row("own", "a", 2.0, flops=1e8, bytes=1e7, limits={"bandwidth": 10.0})]
    goals = [["g", "a", "time", peers, "1.00", "n", "all"] for peers in ("bandwidth", "fma")]
    reached = [ratio for _, threads, ratio, _ in results(report, rows, goals).goal_rows() if threads == 1]
    assert reached == [pytest.approx(0.5), None]


def test_fast_tenth(report):
    """The same goals from another figure of the rows: there the peers are the slower ones."""
    goals = [("g", "a", "time", "best", "1.10", "", "all"), ("g", "a", "cold", "ort", "1.00", "", "all")]
    rows = [row("own", "a", 4.0, p10_ms=2.0), row("ort", "a", 3.0, p10_ms=3.0)]
    fast = list(results(report, rows, goals).with_statistic("p10_ms").goal_rows())
    assert [ratio for _, threads, ratio, _ in fast if threads == 1] == [1.5, 0.75]


def test_goals_file(report):
    """Each line is one that the report knows."""
    goals = report.read_goals("all")
    assert len(goals) > 90 and len(report.read_goals("short")) < len(goals)
    for goal in goals:
        assert None not in goal.values() and goal["set"] in ("short", "all") and float(goal["goal"]) > 0
        assert goal["measure"] in (*report.KEYS, *report.FACTS)


def run_operators(root, build, tmp_path, *words):
    if not (build / "bench/own_worker").is_file():
        pytest.skip("bench/ is not built")
    return subprocess.run([root / "bench/operators", *words], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "SDX_BUILD": str(build), "SDX_BENCH_CACHE": str(tmp_path / "cases"),
                               "SDX_BENCH_PYTHON": sys.executable})


def test_operators(root, build, tmp_path):
    """Cases by name and by operator are measured and listed; names are there once; others are refused."""
    done = run_operators(root, build, tmp_path, "--engines", "own,ort", "--rounds", "1", "--turn", "1", "add_one", "Det")
    lines = done.stdout.strip().split("\n")
    assert sorted(line.split()[1] for line in lines[:-1]) == ["add_one", "det"], done.stdout + done.stderr
    assert "geometric mean of 2" in lines[-1] and "not compared: 0" in lines[-1]
    names = run_operators(root, build, tmp_path, "--list").stdout.split()
    assert len(names) == len(set(names)) > 200
    refused = run_operators(root, build, tmp_path, "nothing")
    assert refused.returncode == 1 and refused.stderr.startswith("no case is called nothing")
