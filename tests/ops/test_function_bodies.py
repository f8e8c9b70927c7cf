# SPDX-License-Identifier: Apache-2.0
"""Operators for which the standard gives a function body: every case of the suite that has one runs
again with the body in place of the operator, as a function of the model, and gives the same. The
cases themselves (with our kernel or lowering) are run by the suite's own test."""
import os
from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx")

# Outputs of these are drawn at random: the body draws others.
RANDOM = {"Bernoulli", "Dropout", "RandomUniformLike", "RandomNormalLike"}


def body_of(node, opset, types):
    """FunctionProto of the operator's body for these types of inputs, or None."""
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None
    for version in sorted(schema.context_dependent_function_opset_versions, reverse=True):
        if version <= opset:
            data = schema.get_context_dependent_function_with_opset_version(
                version, node.SerializeToString(), [t.SerializeToString() for t in types])
            return onnx.FunctionProto.FromString(data) if data else None
    for version in sorted(schema.function_opset_versions, reverse=True):
        if version <= opset:
            data = schema.get_function_with_opset_version(version)
            return onnx.FunctionProto.FromString(data) if data else None
    return None


def drop_unmade(node, body):
    """A body for a node that leaves outputs out names them all the same: such outputs go from both."""
    made = {name for inner in body.node for name in inner.output} | set(body.input)
    kept = [k for k, name in enumerate(body.output) if name in made]
    outputs = [node.output[k] if k < len(node.output) else "" for k in kept]
    names = [body.output[k] for k in kept]
    del body.output[:], node.output[:]
    body.output.extend(names)
    node.output.extend(outputs)


def expand(model):
    """Puts functions in place of the main graph's operators that have a body; their names."""
    opsets = {o.domain: o.version for o in model.opset_import}
    known = {i.name: i.type for i in list(model.graph.input) + list(model.graph.value_info)}
    for tensor in model.graph.initializer:
        known.setdefault(tensor.name, onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims))
    names = []
    for k, node in enumerate(model.graph.node):
        if any(name and name not in known for name in node.input):
            continue
        types = [known[name] if name else onnx.TypeProto() for name in node.input]
        body = body_of(node, opsets.get(node.domain, 0), types)
        if body is None or not body.node:
            continue
        body.name, body.domain = f"{node.op_type}_{k}", "bodies"
        drop_unmade(node, body)
        given = {a.name for a in node.attribute}
        schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
        for name, attribute in schema.attributes.items():
            if name not in given and attribute.default_value.name:
                node.attribute.append(attribute.default_value)
        del body.attribute[:], body.attribute_proto[:]
        body.attribute.extend(sorted(set(schema.attributes) | {a.name for a in node.attribute}))
        if not any(o.domain == "" for o in body.opset_import):
            body.opset_import.append(onnx.helper.make_opsetid("", opsets.get("", 1)))
        model.functions.append(body)
        names.append(node.op_type)
        node.op_type, node.domain = body.name, "bodies"
    if names:
        model.opset_import.append(onnx.helper.make_opsetid("bodies", 1))
        model.ir_version = max(model.ir_version, 8)
    return names


def test_bodies_give_the_same(sardonyx, suite, tmp_path, record_property):
    operators, cases = set(), {}
    for path in sorted((suite / "node").glob("*/model.onnx")):
        model = onnx.load(path)
        names = expand(model)
        if not names or RANDOM & set(names):
            continue
        operators.update(names)
        folder = tmp_path / path.parent.name
        folder.mkdir()
        onnx.save(model, folder / "model.onnx")
        for data in path.parent.glob("test_data_set_*"):
            os.symlink(data, folder / data.name)
        cases[path.parent.name] = names
    result = sardonyx("test", tmp_path, "--json", code=None)
    failed = {}
    for record in result.json["cases"]:
        name = Path(record["case"].rstrip("/")).parent.name
        if record["result"] != "passed":
            failed[name] = record.get("why") or record["result"]
    record_property("cases", len(cases))
    print(f"{len(cases)} cases of {len(operators)} operators, {len(failed)} differ")
    assert len(operators) >= 40 and len(result.json["cases"]) >= len(cases)
    assert failed == {}
