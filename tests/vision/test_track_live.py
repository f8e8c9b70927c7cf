# SPDX-License-Identifier: Apache-2.0
"""sardonyx track-ball on sources that send frames when they come: TCP, UDP, a pipe, a camera. The
test itself is the sender, on 127.0.0.1. RTSP goes the same way through FFmpeg once a server has
answered; there is none here."""
import os
import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import track_models
import vision_library

FRAMES, FPS, PACKET = 48, 30, 7 * 188


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """A transport stream, which can be joined and left anywhere."""
    _, frames = track_models.rally(512, 288, FRAMES, 8)
    return vision_library.write_film(tmp_path_factory.mktemp("live") / "rally.ts", frames, FPS)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return track_models.tracknet(tmp_path_factory.mktemp("model") / "tracknet.onnx", 3, "")


def table(text):
    lines = text.splitlines()
    assert lines[0] == "Frame,X,Y,Visibility"
    return [tuple(map(int, line.split(","))) for line in lines[1:]]


def pieces(data, seconds):
    """`data` in packets, over so many seconds."""
    count = (len(data) + PACKET - 1) // PACKET
    for i in range(count):
        yield data[i * PACKET:(i + 1) * PACKET]
        time.sleep(seconds / count)


@contextmanager
def tcp_sender(data, seconds=1.0, hold=None):
    """An address that gives `data` to whoever connects, then ends; with `hold`, an Event, once set."""
    server = socket.create_server(("127.0.0.1", 0))

    def send():
        try:
            connection, _ = server.accept()
            with connection:
                for piece in pieces(data, seconds):
                    connection.sendall(piece)
                if hold:
                    hold.wait(120)
        except OSError:
            pass  # the receiver has left
    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.close()
        if hold:
            hold.set()
        thread.join(60)


@contextmanager
def udp_sender(data, seconds=1.0, rounds=None):
    """An address that gets `data` over and over, or so many times."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = threading.Event()

    def send():
        left = rounds
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            while not done.is_set() and left != 0:
                left = left and left - 1
                for piece in pieces(data, seconds):
                    if done.is_set():
                        break
                    out.sendto(piece, ("127.0.0.1", port))
    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield f"udp://127.0.0.1:{port}"
    finally:
        done.set()
        thread.join(60)


def test_tcp(film, model, sardonyx):
    """Each frame has the row that it has in the file; the sender's end is the stream's end."""
    wanted = table(sardonyx("track-ball", "--model", model, film).out)
    assert [row[0] for row in wanted] == list(range(FRAMES)) and any(row[3] for row in wanted)
    with tcp_sender(film.read_bytes()) as address:
        assert table(sardonyx("track-ball", "--model", model, address).out) == wanted


@pytest.mark.parametrize("seconds", [0, FRAMES / FPS])
def test_dropping(film, model, sardonyx, tmp_path, seconds):
    """What comes too fast is left out; the rest keeps its frame numbers, and nothing is lost count of."""
    csv = tmp_path / "ball.csv"
    with tcp_sender(film.read_bytes(), seconds) as address:
        told = sardonyx("track-ball", "--model", model, address, "--drop-if-lagging", "--csv", csv, "--json").json
    rows = table(csv.read_text())
    assert told["frames"] + told["dropped"] == FRAMES and len(rows) == told["frames"] > 0
    assert all(a[0] < b[0] for a, b in zip(rows, rows[1:])) and rows[-1][0] < FRAMES


def test_sender_breaks_off(film, model, sardonyx, tmp_path):
    """What came until then is tracked, and the film that is written can be read."""
    data = film.read_bytes()
    out = tmp_path / "marked.mp4"
    with tcp_sender(data[:2 * len(data) // 3]) as address:
        told = sardonyx("track-ball", "--model", model, address, "-o", out, "--json").json
    assert 5 < told["frames"] < FRAMES and told["tracks"] == told["frames"]
    assert len(vision_library.read_video(out)[1]) == told["frames"]


def test_interrupted_while_waiting(film, model, program, tmp_path):
    """SIGINT ends a stream that is open and gives nothing."""
    csv = tmp_path / "ball.csv"
    with tcp_sender(film.read_bytes(), 0.5, threading.Event()) as address:
        running = subprocess.Popen([program, "track-ball", "--model", model, address, "--csv", csv],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(600):
            if csv.is_file() and len(csv.read_text().splitlines()) > 20:
                break
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        text, errors = running.communicate(timeout=120)
    assert running.returncode == 0 and errors == ""
    assert int(text.split()[0]) == len(table(csv.read_text())) >= 20


def test_udp(film, model, sardonyx, tmp_path):
    csv = tmp_path / "ball.csv"
    with udp_sender(film.read_bytes()) as address:
        told = sardonyx("track-ball", "--model", model, address, "--frames", 12, "--csv", csv, "--json").json
    assert told["frames"] == len(table(csv.read_text())) == 12


def test_udp_that_falls_silent(film, model, sardonyx, tmp_path):
    """A stream without an end of its own: with FFmpeg's timeout it is one line, and the rows are kept."""
    csv = tmp_path / "ball.csv"
    with udp_sender(film.read_bytes(), rounds=3) as address:
        source = f"{address}?timeout=1500000"
        result = sardonyx("track-ball", "--model", model, source, "--csv", csv, code=1)
    assert result.err == f"sardonyx: {source}: Input/output error\n"
    assert len(table(csv.read_text())) > 5


def test_pipe(film, model, sardonyx, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write():
        with open(pipe, "wb") as out:
            for piece in pieces(film.read_bytes(), 1):
                out.write(piece)
    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    rows = table(sardonyx("track-ball", "--model", model, pipe).out)
    thread.join(60)
    assert [row[0] for row in rows] == list(range(FRAMES))


def test_nobody_sends(model, sardonyx):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    result = sardonyx("track-ball", "--model", model, f"tcp://127.0.0.1:{port}", code=1)
    assert result.err == f"sardonyx: tcp://127.0.0.1:{port}: Connection refused\n"


def test_camera(model, sardonyx):
    camera = next(iter(sorted(Path("/dev").glob("video*"))), None)
    if not camera:
        pytest.skip("no camera: there is no /dev/video*")
    result = sardonyx("track-ball", "--model", model, camera, "--frames", 5, "--json", code=None)
    assert (result.code == 0 and result.json["frames"] == 5) or len(result.err.splitlines()) == 1
