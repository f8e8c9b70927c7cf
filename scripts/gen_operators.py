#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write docs/operators.md: what `sardonyx ops --markdown` prints, and for each row the types that do
not run (tests/ops/types_open.tsv, written by tests/ops/test_types.py) and what tests it
(tests/ops/tested.tsv). Prints the page; with --tested it counts the tests anew into tested.tsv, which
needs the onnx package, the suite (SDX_SUITE) and the cases of older releases, which `scripts/test suite`
unpacks into build/old_node."""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPS = ROOT / "tests/ops"
OLD = ROOT / "build/old_node/old_node"
HEAD = "# operator\tcases of the suite\tof older releases\tfamily of test_properties.py\tof test_edges.py\tcompared with onnxruntime\n"


def key_of(domain, name):
    return name if domain in ("", "ai.onnx") else f"{domain}.{name}"


def read_rows(path):
    if not path.is_file():
        return []
    return [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")
            if line and not line.startswith("#")]


def short(kind):
    """seq(tensor(float)) as the page writes it."""
    return kind.replace("tensor(", "").replace("))", ")").rstrip(")") + (")" if "seq(" in kind else "")


def short_reason(name, text):
    """The part of an error that is no place."""
    return text.split(f"{name.split('.')[-1]}: ")[-1].split(", expected")[0].split(" found ")[0].replace("|", "/")


def page(program):
    printed = subprocess.run([program, "ops", "--markdown"], stdout=subprocess.PIPE, check=True,
                             text=True).stdout
    closed = collections.defaultdict(list)
    for name, since, _, kind, why in read_rows(OPS / "types_open.tsv"):
        closed[name, since].append(f"{short(kind)} ({short_reason(name, why)})")
    tested = {row[0]: row[1:] for row in read_rows(OPS / "tested.tsv")}
    lines, domain = [], ""
    for line in printed.split("\n"):
        if line.startswith("## "):
            domain = line[3:].strip()
        if line.startswith("| operator |"):
            line += " types that do not run | tested by |"
        elif line.startswith("|---"):
            line += "---|---|"
        elif line.startswith("| "):
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            key = key_of(domain, cells[0])
            suite, old, family, edges, ort = tested.get(key, [""] * 5)
            by = [text for text in (f"suite {suite}" if suite else "", f"older releases {old}" if old else "",
                                    f"properties: {family}" if family else "", f"edges: {edges}" if edges else "",
                                    "onnxruntime" if ort else "") if text]
            line += f" {'; '.join(sorted(set(closed[key, cells[1]])))} | {', '.join(by)} |"
        elif line.startswith("*Types*"):
            line += ("\n*Tested by*: cases of the standard's suite and of its 36 older releases that contain the "
                     "operator; the family of\ntests/ops/test_properties.py; the family of tests/ops/test_edges.py "
                     "and tests/ops/test_contrib*.py, both against\nONNX Runtime. tests/ops/test_types.py walks all types of all rows.")
        lines.append(line)
    return "\n".join(lines).replace("sardonyx ops --markdown -->", "scripts/gen_operators.py -->")


def count_cases(onnx, folder):
    """{operator: cases that contain it}"""
    found = collections.Counter()
    for path in sorted(pathlib.Path(folder).rglob("model.onnx")):
        model = onnx.load(path, load_external_data=False)
        found.update({key_of(node.domain, node.op_type) for node in model.graph.node})
    return found


def families_of(makers_of):
    """{operator: the first family that draws it}"""
    from draws import Random
    found = {}
    for name, makers in sorted(makers_of.items()):
        for at in range(400 * len(makers)):
            case = makers[at % len(makers)](Random([7, at]))
            if case is not None:
                found.setdefault(key_of(case.domain, case.op), name)
    return found


def write_tested():
    import onnx
    sys.path.insert(0, str(OPS))
    sys.path.insert(0, str(OPS.parent))
    import test_edges
    import test_properties
    suite, old = (count_cases(onnx, folder) for folder in (os.environ["SDX_SUITE"], OLD))
    families, edges = (families_of(module) for module in (test_properties.FAMILIES, test_edges.EDGES))
    ort = set()
    for path in OPS.glob("test_contrib*.py"):
        names = re.findall(r'^@operator\("(\w+)"', path.read_text(encoding="utf-8"), re.M)
        ort |= {key_of("com.microsoft", name) for name in names}
    keys = sorted(set(suite) | set(old) | set(families) | set(edges) | ort)
    (OPS / "tested.tsv").write_text(HEAD + "".join(
        f"{key}\t{suite[key] or ''}\t{old[key] or ''}\t{families.get(key, '')}\t{edges.get(key, '')}\t"
        f"{'yes' if key in ort else ''}\n" for key in keys),
        encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tested", action="store_true", help="count the tests into tests/ops/tested.tsv")
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/sardonyx"))
    args = parser.parse_args()
    if args.tested:
        write_tested()
    else:
        sys.stdout.write(page(args.program))
    return 0


if __name__ == "__main__":
    sys.exit(main())
