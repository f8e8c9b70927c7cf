#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the ONNX standard's own test cases, from the installed onnx package, as test folders.

    scripts/gen_suite.py OUT      OUT/KIND/CASE/{model.onnx,test_data_set_N/*.pb}

OUT/done marks a whole suite.
"""
import shutil
import sys
import warnings
from pathlib import Path

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def encode(value, info):
    """A value as the message that its declared type says."""
    import numpy
    from onnx import TensorProto, numpy_helper

    kind = info.type.WhichOneof("value")
    if isinstance(value, TensorProto):
        message = TensorProto()
        message.CopyFrom(value)
        message.name = info.name
    elif kind == "sequence_type":
        message = numpy_helper.from_list(value, info.name)
    elif kind == "optional_type":
        message = numpy_helper.from_optional(value, info.name)
    elif kind == "map_type":
        message = numpy_helper.from_dict(value, info.name)
    else:
        message = numpy_helper.from_array(numpy.asarray(value), info.name)
    return message.SerializeToString(deterministic=True)


def write_case(folder, case):
    folder.mkdir(parents=True, exist_ok=True)
    graph = case.model.graph
    (folder / "model.onnx").write_bytes(case.model.SerializeToString(deterministic=True))
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir(exist_ok=True)
        for word, values, infos in (("input", inputs, graph.input),
                                    ("output", outputs, graph.output)):
            for i, value in enumerate(values):
                (data / f"{word}_{i}.pb").write_bytes(encode(value, infos[i]))


def write_light(folder, path):
    """A model of the package with constant weights: the input is a ramp from 0 to 1, the output lies
    beside it."""
    import numpy
    import onnx
    from onnx import numpy_helper

    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, folder / "model.onnx")
    graph = onnx.load(path).graph
    weights = {value.name for value in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    for i, value in enumerate(inputs):
        shape = [d.dim_value if d.HasField("dim_value") else 1 for d in value.type.tensor_type.shape.dim]
        count = int(numpy.prod(shape))
        ramp = (numpy.arange(count).reshape(shape) / count).astype(numpy.float32)
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(ramp, value.name).SerializeToString())
    for i in range(len(graph.output)):
        shutil.copyfile(path.with_name(f"{path.stem}_output_{i}.pb"), data / f"output_{i}.pb")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stdout if "--help" in sys.argv else sys.stderr)
        return 0 if "--help" in sys.argv or "-h" in sys.argv else 2
    warnings.simplefilter("ignore")
    import onnx
    from onnx.backend.test.loader import load_model_tests

    out = Path(sys.argv[1])
    written = 0
    for kind in KINDS:
        for case in load_model_tests(kind=kind):
            if case.model is not None:
                write_case(out / kind / case.name, case)
            else:  # the package has it as files
                shutil.copytree(case.model_dir, out / kind / case.name, dirs_exist_ok=True)
            written += 1
    light = Path(onnx.__file__).parent / "backend/test/data/light"
    for path in sorted(light.glob("*.onnx")):
        write_light(out / "light" / f"test_{path.stem}", path)
        written += 1
    (out / "done").write_text(f"onnx {onnx.__version__}\n")
    print(f"onnx {onnx.__version__}: {written} cases written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
