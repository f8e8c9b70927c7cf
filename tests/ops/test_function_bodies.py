# SPDX-License-Identifier: Apache-2.0
"""Operators for which the standard gives a function body: every case of the suite that has one runs
again with the body in place of the operator, as a function of the model, and gives the same. The
cases themselves (with our kernel or lowering) are run by the suite's own test. Versions that no case
has take the cases of a later one, where they mean the same. Every version with a body is run, but
those whose outputs are random."""
import copy
import os
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from case_folder import write_case  # noqa: E402

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


def with_body():
    """(domain, operator, since-version) of every row with a body that is not random."""
    return {(s.domain, s.name, s.since_version) for s in onnx.defs.get_all_schemas_with_history()
            if (s.has_function or s.has_context_dependent_function) and s.name not in RANDOM}


def rows_of(model):
    """The rows whose operators the model has."""
    opsets = {o.domain: o.version for o in model.opset_import}
    return {(n.domain, n.op_type, onnx.defs.get_schema(n.op_type, opsets[n.domain], n.domain).since_version)
            for n in model.graph.node if onnx.defs.has(n.op_type, n.domain)}


def at_version(model, row, rows):
    """The model of one node in the last opset at which another row of its operator is in force (bodies may
    ask for a later opset than the row's); None: not valid."""
    domain, name, since = row
    if [(n.domain, n.op_type) for n in model.graph.node] != [(domain, name)]:
        return None
    later = [s for d, n, s in rows if (d, n) == (domain, name) and s > since]
    older = copy.deepcopy(model)
    for opset in older.opset_import:
        if opset.domain == domain:
            opset.version = min(later) - 1 if later else onnx.defs.onnx_opset_version()
    try:
        onnx.checker.check_model(older, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return None
    return older


def old_group_normalization(folder):
    """Version 18: a scale and a bias for each group."""
    x = np.random.default_rng(3).normal(size=(2, 4, 3, 2)).astype(np.float32)
    scale, bias = np.array([2, -1], np.float32), np.array([0.5, 3], np.float32)
    groups = x.reshape(2, 2, 2, 3, 2).astype(np.float64)
    mean, variance = (f((2, 3, 4), keepdims=True) for f in (groups.mean, groups.var))
    each = (2, 1, 1, 1)
    y = (groups - mean) / np.sqrt(variance + 1e-5) * scale.reshape(each) + bias.reshape(each)
    made = onnx.helper.make_model(onnx.parser.parse_graph(
        "g (float[2,4,3,2] x, float[2] s, float[2] b) => (float[2,4,3,2] y) "
        "{ y = GroupNormalization <num_groups = 2> (x, s, b) }"), opset_imports=[onnx.helper.make_opsetid("", 20)])
    assert expand(made) == ["GroupNormalization"]
    write_case(folder, made, [x, scale, bias], [y.reshape(x.shape).astype(np.float32)])


def test_bodies_give_the_same(sardonyx, suite, tmp_path, record_property):
    operators, cases, left, models = set(), {}, with_body(), {}

    def add(path, name, model):
        before, names = rows_of(model), expand(model)
        if not names or RANDOM & set(names):
            return False
        operators.update(names)
        folder = tmp_path / name
        folder.mkdir()
        onnx.save(model, folder / "model.onnx")
        for data in path.parent.glob("test_data_set_*"):
            os.symlink(data, folder / data.name)
        cases[name] = names
        left.difference_update(row for row in before if row[1] in names)
        return True
    for path in sorted((suite / "node").glob("*/model.onnx")):
        model = onnx.load(path)
        models[path] = copy.deepcopy(model)
        add(path, path.parent.name, model)
    every = {(s.domain, s.name, s.since_version) for s in onnx.defs.get_all_schemas_with_history()}
    for row in sorted(left - {("", "GroupNormalization", 18)}):
        for path, model in models.items():
            older = at_version(model, row, every)
            if older is not None and add(path, f"{path.parent.name}_of_{row[2]}", older):
                break
    old_group_normalization(tmp_path / "group_normalization_18")
    cases["group_normalization_18"] = ["GroupNormalization"]
    left.discard(("", "GroupNormalization", 18))
    result = sardonyx("test", tmp_path, "--json", code=None)
    failed = {}
    for record in result.json["cases"]:
        name = Path(record["case"].rstrip("/")).parent.name
        if record["result"] != "passed":
            failed[name] = record.get("why") or record["result"]
    record_property("cases", len(cases))
    print(f"{len(cases)} cases of {len(operators)} operators, {len(failed)} differ")
    assert not left and len(result.json["cases"]) >= len(cases)
    assert failed == {}
