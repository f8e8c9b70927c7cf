# SPDX-License-Identifier: Apache-2.0
"""Types that shape inference found, out of models: what they say of each value, and whether one says
less than another."""
import json
import subprocess

import onnx


def values(graph, place=""):
    """{place/name: type} of everything that a graph and its bodies give a type to, inputs excepted."""
    found = {f"{place}{info.name}": info.type for info in [*graph.value_info, *graph.output]
             if info.type.WhichOneof("value")}
    for node in graph.node:
        for attr in node.attribute:
            for k, body in enumerate([attr.g] if attr.HasField("g") else attr.graphs):
                made = next((name for name in node.output if name), node.name)
                found.update(values(body, f"{place}{made}.{attr.name}[{k}]/"))
    return found


def show(found):
    """The type as one line."""
    kind = found.WhichOneof("value") if found is not None else None
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(found, kind)
        name = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
        if not tensor.HasField("shape"):
            return name
        dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?"
                for d in tensor.shape.dim]
        return f"{name}[{','.join(dims)}]"
    if kind in ("sequence_type", "optional_type"):
        return f"{kind[:3]}({show(getattr(found, kind).elem_type)})"
    if kind == "map_type":
        return f"map({found.map_type.key_type},{show(found.map_type.value_type)})"
    return str(kind)


def weaker_dim(ours, theirs, fits):
    """Why a dimension says less than, or something else than, the other; None: it does not."""
    if theirs.HasField("dim_value"):
        return None if ours.HasField("dim_value") and ours.dim_value == theirs.dim_value else "length"
    if theirs.dim_param and not theirs.dim_param.startswith("unk__"):
        if ours.HasField("dim_value"):
            return None if fits else "length where there is a symbol"
        return None if ours.dim_param else "no symbol"  # which one is a matter of taste
    return None


def weaker(ours, theirs, fits=True):
    """Why type `ours` says less than `theirs`, or something else; None: it does not. fits: a number
    where the other has a symbol is stronger."""
    kind = theirs.WhichOneof("value")
    if kind is None:
        return None
    if ours is None or ours.WhichOneof("value") != kind:
        return "kind"
    mine, other = getattr(ours, kind), getattr(theirs, kind)
    if kind in ("sequence_type", "optional_type"):
        return weaker(mine.elem_type, other.elem_type, fits)
    if kind == "map_type":
        return weaker(mine.value_type, other.value_type, fits)
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return None
    if other.elem_type and mine.elem_type != other.elem_type:
        return "element type"
    if not other.HasField("shape"):
        return None
    if not mine.HasField("shape"):
        return "no shape"
    if len(mine.shape.dim) != len(other.shape.dim):
        return "rank"
    reasons = [weaker_dim(a, b, fits) for a, b in zip(mine.shape.dim, other.shape.dim)]
    return next((reason for reason in reasons if reason), None)


def contradicts(found, shape):
    """Does an inferred tensor type contradict a shape that was seen? symbols: see `unify`."""
    tensor = found.tensor_type
    if not tensor.HasField("shape"):
        return False
    if len(tensor.shape.dim) != len(shape):
        return True
    return any(d.HasField("dim_value") and d.dim_value != n for d, n in zip(tensor.shape.dim, shape))


def infer(program, paths, to, lenient=False):
    """Runs `sardonyx infer` over files of different names; {path: error or None}, the models of
    those without an error are in folder `to`."""
    verdicts = {}
    for at in range(0, len(paths), 500):
        done = subprocess.run([str(program), "infer", *map(str, paths[at:at + 500]), "-o", f"{to}/",
                               "--json", *(["--lenient"] if lenient else [])],
                              capture_output=True, text=True, errors="replace", timeout=600)
        assert done.returncode in (0, 1), (done.returncode, done.stderr[-2000:])
        rows = json.loads(done.stdout.strip().split("\n")[-1])["files"]
        verdicts.update({row["model"]: row.get("error") for row in rows})
    return verdicts


def check(program, paths, *options):
    """{path: list of faults} of `sardonyx check`."""
    faults = {}
    for at in range(0, len(paths), 500):
        done = subprocess.run([str(program), "check", *map(str, paths[at:at + 500]), "--json", *options],
                              capture_output=True, text=True, errors="replace", timeout=600)
        assert done.returncode in (0, 1), (done.returncode, done.stderr[-2000:])
        rows = json.loads(done.stdout.strip().split("\n")[-1])["files"]
        faults.update({row["model"]: row["faults"] for row in rows})
    return faults
