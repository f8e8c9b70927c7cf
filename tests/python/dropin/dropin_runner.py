# SPDX-License-Identifier: Apache-2.0
"""Runs dropin_script.py to its end, over cases that end the process."""
import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT = 300  # seconds a process may take


def read_transcript(path):
    """({case: text}, the case that was running when the file ended or None)."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    texts = {name: text for name, text in lines if text is not None}
    return texts, None if not lines or lines[-1][1] is not None else lines[-1][0]


def transcribe(python, folder, names, env):
    """{case: text} for all of `names`, run by the program `python` with the environment `env`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "transcript.jsonl"
    env = {**os.environ, "ORT_DISABLE_TELEMETRY": "1", "PYTHONDONTWRITEBYTECODE": "1", **env}
    crashes, first = {}, []
    while True:
        command = [str(python), str(HERE / "dropin_script.py"), str(path), str(folder), *first]
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT,
                                  errors="replace")
            end = f"process ended: {done.returncode}"
        except subprocess.TimeoutExpired:
            end = f"process ran past {LIMIT} s"
        if not path.is_file():
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[-3000:]}")
        texts, last = read_transcript(path)
        if last is None:
            break
        crashes[last] = end
        following = names[names.index(last) + 1:]
        if not following:
            break
        first = following[:1]
    return {name: texts.get(name, crashes.get(name, "was not run")) for name in names}
