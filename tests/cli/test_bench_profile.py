# SPDX-License-Identifier: Apache-2.0
"""sardonyx bench and profile: what they report; not how fast it is."""
import json

import models
import numpy as np

KEYS = {"load_ms", "first_ms", "min_ms", "median_ms", "p90_ms", "runs", "threads", "peak_rss_mb", "gflops",
        "peak_gflops", "share"}


def test_bench(sardonyx, tmp_path):
    model = models.gemm_model(tmp_path / "gemm.onnx", 64, 256, 256)
    result = sardonyx("bench", model, "--runs", "20", "--threads", "2", "--json").json
    assert KEYS <= set(result)
    assert result["runs"] == 20 and result["threads"] == 2
    assert 0 < result["min_ms"] <= result["median_ms"] <= result["p90_ms"]
    assert result["gflop"] == 2 * 64 * 256 * 256 / 1e9
    assert result["gflops"] > 0 and result["share"] > 0 and result["peak_rss_mb"] > 1
    text = sardonyx("bench", model, "--seconds", "0.1").out
    for part in ("load", "first run", "median", "p90", "peak RSS", "GFLOP/s"):
        assert part in text


def test_bench_counts_open_shapes_by_a_run(sardonyx, tmp_path):
    weight = models.numpy_helper.from_array(np.ones((64, 32), np.float32), "w")
    model = models.save(tmp_path / "open.onnx", [models.helper.make_node("MatMul", ["x", "w"], ["y"])],
                        [models.value("x", ["N", 64])], [models.value("y", ["N", 32])], [weight])
    result = sardonyx("bench", model, "--shape", "x=10x64", "--runs", "3", "--json").json
    assert result["gflop"] == 2 * 10 * 64 * 32 / 1e9


def test_bench_with_data(sardonyx, tmp_path):
    a = np.ones((4, 3), np.float32)
    folder = models.case(tmp_path / "case", [("a", a), ("b", a)], [])
    result = sardonyx("bench", folder / "model.onnx", "--inputs", folder / "test_data_set_0", "--runs", "2", "--json")
    assert result.json["runs"] == 2


def test_profile(sardonyx, tmp_path):
    model = models.gemm_model(tmp_path / "gemm.onnx", 64, 256, 256)
    trace = tmp_path / "trace.json"
    result = sardonyx("profile", model, "--runs", "3", "--level", "none", "--trace", trace, "--json").json
    assert result["runs"] == 3 and result["nodes"] and result["operators"]
    assert abs(sum(o["share"] for o in result["operators"]) - 1) < 0.01
    product = next(n for n in result["nodes"] if n["op"] == "MatMul" and n["flops"])
    assert product["name"] == "product" and product["flops"] == 2 * 64 * 256 * 256
    events = json.loads(trace.read_text())["traceEvents"]
    assert len(events) == len(result["nodes"])
    for event in events:
        assert event["ph"] == "X" and event["dur"] >= 0 and event["ts"] >= 0
    text = sardonyx("profile", model, "--runs", "1", "--top", "1").out
    assert "operator" in text and "GFLOP/s" in text
