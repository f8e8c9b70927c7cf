# SPDX-License-Identifier: Apache-2.0
"""sardonyx track-ball on films that the tests write, and the films themselves."""
import os
import signal
import subprocess
import time

import numpy as np
import pytest

import track_models
import tracknet_original
import vision_library

SIZE = (512, 288)


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """A film of 30 frames and what its decoder gives back."""
    path = tmp_path_factory.mktemp("clip") / "rally.mp4"
    background, frames = track_models.rally(*SIZE, 30, 8)
    vision_library.write_film(path, frames, 30)
    facts, decoded = vision_library.read_video(path)
    return path, frames, facts, decoded


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return track_models.tracknet(tmp_path_factory.mktemp("model") / "tracknet.onnx", 3, "concat",
                                 {"seq_len": 3, "bg_mode": "concat"})


def table(text):
    lines = text.splitlines()
    assert lines[0] == "Frame,X,Y,Visibility"
    names = lines[0].split(",")
    return [dict(zip(names, map(int, line.split(",")))) for line in lines[1:]]


def test_film_and_back(clip, tmp_path):
    _, frames, facts, decoded = clip
    assert (facts["width"], facts["height"], facts["frames"], facts["live"]) == (*SIZE, 30, False)
    assert facts["fps"] == pytest.approx(30) and len(decoded) == 30
    for given, got in zip(frames, decoded):
        assert np.abs(given.astype(int) - got).mean() < 8
    odd = [frame[:255, :301] for frame in frames[:3]]
    for name in ("odd.mkv", "odd.avi", "odd.mov"):
        facts, decoded = vision_library.read_video(vision_library.write_film(tmp_path / name, odd))
        assert (facts["width"], facts["height"], len(decoded)) == (300, 254, 3)


def test_tracks(clip, model, sardonyx, tmp_path):
    """The table is what the published module makes of the same frames; without outputs it is on stdout."""
    path, _, _, decoded = clip
    out, csv = tmp_path / "marked.mp4", tmp_path / "ball.csv"
    told = sardonyx("track-ball", "--model", model, path, "-o", out, "--csv", csv,
                    "--median-warmup", 7, "--json").json
    original = tracknet_original.TrackNet(model, 3, "concat", median_warmup=7)
    wanted = [row for row in map(original.push, decoded) if row] + original.flush()
    assert table(csv.read_text()) == wanted
    assert told["frames"] == 30 and told["dropped"] == 0 and told["tracks"] == len(wanted) == 24
    assert told["visible"] == 24 and told["seq_len"] == 3 and told["bg_mode"] == "concat"
    assert told["frames_per_second"] > 0 and told["provider"] == "CPUExecutionProvider"
    facts, marked = vision_library.read_video(out)
    assert (facts["width"], facts["height"], len(marked)) == (*SIZE, 30)
    row = wanted[12]
    assert np.abs(marked[row["Frame"]].astype(int) - decoded[row["Frame"]]).max() > 60
    blue, green, red = marked[row["Frame"]][row["Y"], row["X"]].astype(int)
    assert red > 150 and green > 120 and blue < 120
    text = sardonyx("track-ball", "--model", model, path, "--median-warmup", 7).out
    assert table(text) == wanted
    text = sardonyx("track-ball", "--model", model, path, "--csv", tmp_path / "again.csv").out
    assert text.startswith("30 frames, ") and "ball seen in 1 of" not in text


def test_options(clip, sardonyx, tmp_path):
    path, _, _, decoded = clip
    plain = track_models.tracknet(tmp_path / "plain.onnx", 4, "")
    text = sardonyx("track-ball", "--model", plain, path, "--frames", 9, "--eval-mode", "average",
                    "--seq-len", 4, "--bg-mode", "", "--trail", 0).out
    original = tracknet_original.TrackNet(plain, 4, "", eval_mode="average")
    wanted = [row for row in map(original.push, decoded[:9]) if row] + original.flush()
    rows = table(text)
    assert [row["Frame"] for row in rows] == [row["Frame"] for row in wanted] == list(range(9))
    # Without a background to compare with, neighbours of the ball's middle are nearly as bright.
    assert all(abs(a[key] - b[key]) <= 3 for a, b in zip(rows, wanted) for key in "XY")


def test_inpaint(clip, model, sardonyx, tmp_path):
    """Every frame has one row, in order, where gaps may be filled."""
    filler = track_models.inpaintnet(tmp_path / "filler.onnx", 6, {"seq_len": 6})
    rows = table(sardonyx("track-ball", "--model", model, "--inpaint", filler, clip[0],
                          "--median-warmup", 5).out)
    assert [row["Frame"] for row in rows] == list(range(4, 30))


def test_dropping(clip, sardonyx, tmp_path):
    """A film plays at its speed; what is left out has no row, the rest keeps its frame numbers."""
    plain = track_models.tracknet(tmp_path / "plain.onnx", 3, "")
    told = sardonyx("track-ball", "--model", plain, clip[0], "--drop-if-lagging", "--csv",
                    tmp_path / "ball.csv", "--json").json
    rows = table((tmp_path / "ball.csv").read_text())
    assert told["frames"] + told["dropped"] == 30 and len(rows) == told["frames"]
    assert all(a["Frame"] < b["Frame"] for a, b in zip(rows, rows[1:]))


def test_interrupted(clip, model, program, tmp_path):
    """SIGINT ends the stream: what is known is written, the film can be read."""
    many = vision_library.write_film(tmp_path / "long.mp4", clip[3] * 20)
    out, csv = tmp_path / "marked.mp4", tmp_path / "ball.csv"
    running = subprocess.Popen([program, "track-ball", "--model", model, many, "-o", out, "--csv",
                                csv, "--median-warmup", "3"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if csv.is_file() and csv.stat().st_size > 100:
            break
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    text, errors = running.communicate(timeout=120)
    assert running.returncode == 0 and errors == ""
    frames = int(text.split()[0])
    assert 5 <= frames < 600
    rows = table(csv.read_text())
    assert [row["Frame"] for row in rows] == list(range(2, frames))
    assert len(vision_library.read_video(out)[1]) == frames


def test_refused(clip, model, sardonyx, tmp_path):
    path = clip[0]

    def line(*arguments, code=1):
        result = sardonyx("track-ball", *arguments, code=code)
        lines = result.err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("sardonyx: ") and result.out == ""
        return lines[0][len("sardonyx: "):]

    assert line(path, code=2).startswith("track-ball: --model FILE is missing")
    assert line("--model", model, code=2).startswith("track-ball: too few arguments")
    assert line("--model", model, "none.mp4") == "none.mp4: No such file or directory"
    assert line("--model", "none.onnx", path) == "ONNX model file not found: none.onnx"
    (tmp_path / "text.mp4").write_text("no film at all\n" * 100)
    assert line("--model", model, tmp_path / "text.mp4").startswith(f"{tmp_path}/text.mp4: Invalid data")
    assert "expected seq_len=4, got 3" in line("--model", model, path, "--seq-len", 4)
    assert "expected bg_mode='subtract', got 'concat'" in line("--model", model, path, "--bg-mode", "subtract")
    assert line("--model", model, path, "--eval-mode", "best") == "Invalid eval_mode: 'best'"
    assert line("--model", model, path, "-o", tmp_path / "film.txt").startswith(
        f"{tmp_path}/film.txt: the name's ending is none of a film")
    assert line("--model", model, path, "-o", tmp_path / "no/film.mp4") == (
        f"{tmp_path}/no/film.mp4: No such file or directory")
    assert line("--model", model, path, "--csv", tmp_path / "no/ball.csv") == (
        f"{tmp_path}/no/ball.csv: No such file or directory")
    assert line("--model", model, "999", "--frames", 1).startswith("999: ")
    if os.path.exists("/dev/full"):
        assert line("--model", model, path, "--csv", "/dev/full").startswith("/dev/full: writing failed")


def test_broken_film(clip, model, sardonyx, tmp_path):
    """A film that ends in the middle gives what is there or one line."""
    whole = clip[0].read_bytes()
    cut = tmp_path / "cut.ts"
    vision_library.write_film(cut, clip[3])
    cut.write_bytes(cut.read_bytes()[:2 * cut.stat().st_size // 3])
    rows = table(sardonyx("track-ball", "--model", model, cut, "--median-warmup", 3).out)
    assert 5 < len(rows) < 28
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(whole[:len(whole) // 2])
    result = sardonyx("track-ball", "--model", model, bad, code=None)
    assert result.code == 1 and len(result.err.splitlines()) == 1
