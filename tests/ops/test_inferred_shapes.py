# SPDX-License-Identifier: Apache-2.0
"""What `sardonyx infer` finds for every case of the standard's suite and for the zoo, with the shapes that
the files declare taken away: never less than onnx.shape_inference.infer_shapes(data_prop=True), and
never against the shapes that the expected outputs have. inferred_shapes.tsv lists where we find less."""
import os
from pathlib import Path

import pytest
import reasons
import types_found
import zoo

onnx = pytest.importorskip("onnx")

SMALL = 4_000_000  # bytes of a model that `make test` reads


def strip(path, to):
    """Writes the model without what it declares of the values that its nodes make."""
    model = onnx.load(path, load_external_data=False)
    for output in model.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
        else:
            output.ClearField("type")
    del model.graph.value_info[:]
    to.write_bytes(model.SerializeToString())


def expected(folder):
    """[(index of the output, shape, element type)] of the tensors among the expected outputs."""
    for data in sorted(folder.glob("test_data_set_*/output_*.pb")):
        tensor = onnx.TensorProto()
        tensor.ParseFromString(data.read_bytes())
        yield int(data.stem.split("_")[1]), tuple(tensor.dims), tensor.data_type


def against_run(model, folder):
    """How the inferred types of the outputs contradict what comes out."""
    lengths = {}  # of symbols that the outputs share with each other: those of one run
    for index, shape, dtype in expected(folder):
        output = model.graph.output[index]
        if output.type.WhichOneof("value") != "tensor_type":
            continue
        tensor = output.type.tensor_type
        if types_found.contradicts(output.type, shape) or tensor.elem_type != dtype:
            return f"{output.name} is {types_found.show(output.type)}, at run time {shape} {dtype}"
        for dim, length in zip(tensor.shape.dim if tensor.HasField("shape") else (), shape):
            if dim.dim_param and lengths.setdefault(dim.dim_param, length) != length:
                return f"{dim.dim_param} is {lengths[dim.dim_param]} and {length}"
    return None


def against_standard(path, model):
    """What the standard's inference knows and ours does not."""
    try:
        theirs = onnx.shape_inference.infer_shapes(onnx.load(path, load_external_data=False),
                                                   data_prop=True)
    except onnx.shape_inference.InferenceError:
        return None
    mine = types_found.values(model.graph)
    for name, wanted in types_found.values(theirs.graph).items():
        why = types_found.weaker(mine.get(name), wanted)
        if why:
            return f"{name}: {why}: {types_found.show(mine.get(name))}, not {types_found.show(wanted)}"
    return None


def compare(program, folders, tmp_path):
    """{name: what is wrong or weaker} of folders of cases; and how many there were."""
    (tmp_path / "in").mkdir()
    paths = {name: tmp_path / "in" / f"{name}.onnx" for name in folders}
    for name, folder in folders.items():
        strip(folder / "model.onnx", paths[name])
    errors = types_found.infer(program, list(paths.values()), tmp_path / "out")
    wrong, weak = {}, {}
    for name, path in paths.items():
        error = errors[str(path)]
        model = None if error else onnx.load(tmp_path / "out" / path.name, load_external_data=False)
        why = error or against_run(model, folders[name])
        if why:
            wrong[name] = why
            continue
        why = against_standard(path, model)
        if why:
            weak[name] = why
    return wrong, weak


def test_suite(suite, program, tmp_path):
    folders = {f"{path.parent.parent.name}-{path.parent.name}": path.parent
               for path in sorted(suite.glob("*/*/model.onnx"))}
    assert len(folders) >= 2000
    wrong, weak = compare(program, folders, tmp_path)
    assert not wrong, wrong
    reasons.compare(weak, "inferred_shapes.tsv")


def zoo_folders(shared, largest):
    names = [row["name"] for row in zoo.rows(shared / "zoo/INDEX.tsv")]
    given = os.environ.get("SDX_ZOO")
    found = [Path(given) / name for name in names] if given else []
    return {folder.name: folder for folder in found if (folder / "model.onnx").is_file() and
            (folder / "model.onnx").stat().st_size <= largest}


def check_zoo(shared, program, tmp_path, largest):
    folders = zoo_folders(shared, largest)
    if not folders:
        pytest.skip("no filled zoo (SDX_ZOO)")
    wrong, weak = compare(program, folders, tmp_path)
    assert not wrong, wrong
    assert not weak, weak


def test_small_zoo(shared, program, tmp_path):
    check_zoo(shared, program, tmp_path, SMALL)


@pytest.mark.slow
def test_zoo(shared, program, tmp_path):
    check_zoo(shared, program, tmp_path, 1 << 40)
