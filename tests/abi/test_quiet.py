# SPDX-License-Identifier: Apache-2.0
"""The library calls nobody and writes only where it is told to: system calls under strace."""
import json
import re
import shutil

import pytest

from client_steps import call, need

CALLS = ("%network,open,openat,openat2,creat,mkdir,mkdirat,mknod,mknodat,rename,renameat,renameat2,"
         "unlink,unlinkat,rmdir,link,linkat,symlink,symlinkat,truncate,chmod,fchmodat")
ALWAYS = ("/dev/null", "/dev/tty")
OPENS = ("open", "openat", "openat2")


@pytest.fixture
def traced(models, tmp_path):
    """traced(program, library): runs it in a folder of its own; (lines of strace, that folder)."""
    def run(program, library):
        need("strace")
        shutil.copytree(models, tmp_path / "models")
        for name in ("out", "home", "tmp"):
            (tmp_path / name).mkdir()
        log = tmp_path / "calls.txt"
        command = ["strace", "-f", "-qq", "-o", log, "-e", f"trace={CALLS}"]
        env = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}
        if call([*command, "true"])[0] != 0:
            pytest.skip("strace may not trace here")
        code, out, err = call([*command, program, library, "models"], 300, env, tmp_path)
        assert code == 0 and out.endswith("end | reached\n"), out[-2000:] + err[-2000:]
        return log.read_text(errors="replace").split("\n"), tmp_path
    return run


def name_of(line):
    match = re.match(r"(?:\d+ +)?(\w+)\(", line)
    return match.group(1) if match else ""


def written(lines):
    """The paths that the calls name to be made, changed or opened for writing."""
    paths = []
    for line in lines:
        name, texts = name_of(line), re.findall(r'"((?:[^"\\]|\\.)*)"', line)
        if not texts or (name in OPENS and not re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC)", line)):
            continue
        if not name.startswith(("send", "recv", "connect")):
            paths += texts
    return [path for path in paths if path not in ALWAYS]


def networked(lines):
    """Calls of the network; a pair of sockets within the process is none."""
    calls = ("socket", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg",
             "sendmmsg", "recvfrom", "recvmsg", "recvmmsg", "getpeername", "getsockname")
    return [line for line in lines if name_of(line) in calls]


def test_parsing():
    """The reader of strace's lines sees what it is to see."""
    lines = ['12 openat(AT_FDCWD, "/a b", O_RDONLY|O_CLOEXEC) = 3',
             '12 openat(AT_FDCWD, "/c", O_WRONLY|O_CREAT, 0666) = 3', 'mkdir("d", 0777) = 0',
             '12 connect(3, {sa_family=AF_INET, sin_port=htons(53)}, 16) = 0']
    assert written(lines) == ["/c", "d"]
    assert networked(lines) == lines[3:]


def test_scenarios_touch_nothing(c_client, our_ort, traced):
    lines, _ = traced(c_client("scenarios"), our_ort)
    assert any(name_of(line) == "openat" and "linear.onnx" in line for line in lines)
    assert networked(lines) == []
    assert written(lines) == []


def test_writes_where_told(c_client, our_ort, traced):
    lines, folder = traced(c_client("writes"), our_ort)
    assert networked(lines) == []
    outside = [path for path in written(lines) if not path.startswith("out/")]
    assert outside == []
    assert list((folder / "home").iterdir()) == list((folder / "tmp").iterdir()) == []
    profile, = (folder / "out").glob("profile*")
    events = json.loads(profile.read_text())
    assert any(event.get("cat") == "Node" for event in events)
    single, = (folder / "out").glob("single*")
    events = json.loads(single.read_text())
    assert {event["args"]["op_name"] for event in events if event["cat"] == "Node"} & {"Gemm", "MatMul"}
    assert {event["name"] for event in events if event["cat"] == "Session"} == {"SequentialExecutor::Execute", "model_run"}


def test_written_model(c_client, transcripts, real_ort, our_ort, models):
    """The optimised model computes the same, in both libraries."""
    folder = models.parent / "out"
    program = ["sh", "-c", 'rm -rf out; mkdir out; exec "$0" "$@"', c_client("writes")]
    transcripts("writes", ([*program, real_ort, "models"], {}), ([*program, our_ort, "models"], {}))
    single, = folder.glob("single*")
    assert [event["cat"] for event in json.loads(single.read_text())][-2:] == ["Session", "Session"]
