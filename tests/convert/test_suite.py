# SPDX-License-Identifier: Apache-2.0
"""Every case of the standard's suite in other versions of the standard still gives its outputs:
up to the newest, and down to older ones wherever the conversion is not refused. A sample by default;
all in `make test-all`."""
import os
from pathlib import Path

import onnx
import pytest

NEWEST = 28
OLDER = (20, 15, 12, 9, 6)
SAMPLE = 16
# Outputs that random numbers make: six of NumPy's generator, which no engine meets.
RANDOM = ("test_bernoulli",)


# Operators whose meaning the converter has as a formula.
BODIES = ("attention", "blackmanwindow", "causal_conv", "hammingwindow", "hannwindow", "nllloss", "rotary_embedding", "sce",
          "swiglu", "tril", "triu")


def cases():
    folder = Path(os.environ.get("SDX_SUITE", Path(__file__).resolve().parents[2] / "build/suite"))
    if not folder.is_dir():
        pytest.skip(f"no suite at {folder} (SDX_SUITE)")
    return sorted(path.parent for path in folder.glob("*/*/model.onnx") if not path.parent.name.startswith(RANDOM))


def imports_standard(model):
    return any(o.domain in ("", "ai.onnx") for o in onnx.load(str(model), load_external_data=False).opset_import)


def convert_all(sardonyx, chosen, opset, folder):
    """Folders of the converted cases, and the lines of refusals by name."""
    refused = {}
    for case in chosen:
        if not imports_standard(case / "model.onnx"):
            continue
        to = folder / case.parent.name / case.name
        to.mkdir(parents=True)
        result = sardonyx("convert", case / "model.onnx", "--opset", opset, "-o", to / "model.onnx", code=None)
        if result.code:
            lines = result.err.strip().split("\n")  # warnings, then why not
            assert result.code == 1 and all("warning:" in line for line in lines[:-1]), result.err
            refused[case.name] = lines[-1]
            to.rmdir()
            continue
        for data in case.glob("test_data_set_*"):
            (to / data.name).symlink_to(data)
    return refused


def run(sardonyx, folder):
    result = sardonyx("test", folder, "--json", code=None, timeout=900)
    return result.json["cases"]


def check(sardonyx, chosen, opset, folder):
    refused = convert_all(sardonyx, chosen, opset, folder)
    rows = run(sardonyx, folder) if any(folder.iterdir()) else []
    failed = [row for row in rows if row["result"] != "passed"]
    lines = []
    for row in failed:
        case = next(path for path in chosen if path.name in Path(row["case"]).parts)
        if sardonyx("test", case, code=None).code == 0:
            lines.append(f"{row}")
    assert not lines, "\n".join(lines)
    return len(rows), refused


@pytest.mark.parametrize("step", [SAMPLE, pytest.param(1, marks=pytest.mark.slow)])
def test_up(sardonyx, tmp_path, step):
    chosen = cases()[::step]
    count, refused = check(sardonyx, chosen, NEWEST, tmp_path)
    print(f"{count} cases converted to {NEWEST}")
    assert not refused, "\n".join(refused.values())
    assert count > 100


@pytest.mark.parametrize("step", [SAMPLE, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("opset", OLDER)
def test_down(sardonyx, tmp_path, opset, step):
    count, refused = check(sardonyx, cases()[::step], opset, tmp_path)
    print(f"{count} cases converted to {opset}, {len(refused)} refused")
    assert not [line for line in refused.values() if "the converted model is not valid" in line], refused


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("opset", [26, 22, 18, 11])
def test_bodies(sardonyx, tmp_path, opset, step):
    chosen = [case for case in cases() if case.name.startswith(tuple(f"test_{name}" for name in BODIES))][::step]
    count, refused = check(sardonyx, chosen, opset, tmp_path)
    print(f"{count} cases converted to {opset}, {len(refused)} refused")
    assert opset == 11 or not refused, "\n".join(refused.values())
    assert count > 0.7 * len(chosen)
