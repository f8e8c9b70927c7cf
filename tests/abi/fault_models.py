# SPDX-License-Identifier: Apache-2.0
"""Models with one fault each: write_models(folder) writes them and gives their names."""
import numpy as np
from onnx import AttributeProto, TensorProto, helper

from abi_models import FLOAT, INT64, constant, model, plain, value

W = constant("w", np.ones(3, np.float32))


def relu(**attributes):
    return helper.make_node("Relu", ["x"], ["y"], **attributes)


def one(node="c", **more):
    """Constant 1 under the name `node`, with attributes that the operator does not have."""
    made = helper.make_node("Constant", [], [node], value=constant("", np.ones(1, np.float32)))
    return with_attributes(made, **more)


def with_attributes(node, **more):
    for name, attribute in more.items():
        node.attribute.append(helper.make_attribute(name, attribute))
    return node


def add(left="x", right="c", out="y", **more):
    return helper.make_node("Add", [left, right], [out], **more)


def changed(change, made=None):
    made = made or plain([relu()])
    change(made)
    return made


def attributes():
    softmax = helper.make_node("Softmax", ["x"], ["y"])
    twice = helper.make_node("Softmax", ["x"], ["y"], axis=0)
    twice.attribute.append(helper.make_attribute("axis", 0))
    first = helper.make_node("Constant", [], ["c"])
    with_attributes(first, note=1, value=constant("", np.ones(1, np.float32)))
    untyped = helper.make_node("Softmax", ["x"], ["y"], axis=0)
    untyped.attribute[0].type = AttributeProto.UNDEFINED
    wrong_constant = helper.make_node("Constant", [], ["c"], value_float=1.0)
    wrong_constant.attribute[0].name = "value_int"
    two_values = with_attributes(one(), value_float=2.0)
    unnamed = relu()
    unnamed.attribute.append(AttributeProto(type=AttributeProto.INT, i=1))
    return {
        "attribute_unknown_constant": plain([one(onnxsim_transient_constant=1), add()]),
        "attribute_unknown_first_constant": plain([first, add()]),
        "attribute_unknown": plain([relu(note=1)]),
        "attribute_unknown_internal": plain([with_attributes(relu(), __note=1)]),
        "attribute_unknown_text": plain([relu(note="text")]),
        "attribute_later_version": plain([helper.make_node("ReduceSum", ["x"], ["y"], axes=[0])]),
        "attribute_wrong_type": plain([with_attributes(softmax, axis=0.5)]),
        "attribute_wrong_type_constant": plain([wrong_constant, add()]),
        "attribute_two_values_constant": plain([two_values, add()]),
        "attribute_no_value_constant": plain([helper.make_node("Constant", [], ["c"]), add()]),
        "attribute_twice": plain([twice]),
        "attribute_no_type": plain([untyped]),
        "attribute_no_name": plain([unnamed]),
        "attribute_required_missing": plain([helper.make_node("Cast", ["x"], ["y"])]),
    }


def body():
    """If with an unknown attribute in a branch's Constant."""
    def branch(name):
        return helper.make_graph([one(name, note=1)], name, [], [value(name, FLOAT, [1])])
    yes = constant("yes", np.array(True))
    return plain([helper.make_node("If", ["yes"], ["c"], then_branch=branch("a"),
                                   else_branch=branch("b")), add()], constants=[yes])


def graphs():
    no_type = plain([relu()])
    no_type.graph.output[0].ClearField("type")
    no_input_type = plain([relu()])
    no_input_type.graph.input[0].ClearField("type")
    no_shape = plain([relu()])
    no_shape.graph.output[0].type.tensor_type.ClearField("shape")
    named_twice = plain([helper.make_node("Relu", ["x"], ["a"], name="n"),
                         helper.make_node("Neg", ["a"], ["y"], name="n")])
    info = plain([helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])])
    info_type = changed(lambda m: m.graph.value_info.append(value("a", INT64, ["N"])),
                        model_copy(info))
    info_twice = changed(lambda m: m.graph.value_info.extend([value("a", FLOAT, ["N"])] * 2),
                         model_copy(info))
    info_unused = changed(lambda m: m.graph.value_info.append(value("zz", FLOAT, [7])),
                          model_copy(info))
    info_shape = changed(lambda m: m.graph.value_info.append(value("a", FLOAT, [7, 7])),
                         model_copy(info))
    fixed = [value("x", FLOAT, [3])]
    return {
        "body_unknown_attribute": body(),
        "graph_no_name": changed(lambda m: m.graph.ClearField("name")),
        "graph_no_nodes": model([], fixed, fixed),
        "graph_no_outputs": model([relu()], fixed, []),
        "nodes_unsorted": plain([helper.make_node("Neg", ["a"], ["y"]),
                                 helper.make_node("Relu", ["x"], ["a"])]),
        "node_name_twice": named_twice,
        "node_unused_broken": plain([relu(), helper.make_node("Not", ["x"], ["z"])]),
        "node_no_operator": changed(lambda m: m.graph.node[0].ClearField("op_type")),
        "node_too_many_inputs": plain([helper.make_node("Relu", ["x", "x"], ["y"])]),
        "node_too_few_inputs": plain([helper.make_node("Add", ["x"], ["y"])]),
        "node_too_many_outputs": plain([helper.make_node("Relu", ["x"], ["y", "z"])]),
        "node_trailing_empty_input": plain([helper.make_node("Relu", ["x", ""], ["y"])]),
        "node_empty_input": plain([helper.make_node("Add", ["x", ""], ["y"])]),
        "output_no_type": no_type,
        "output_no_shape": no_shape,
        "input_no_type": no_input_type,
        "output_shape_length": model([relu()], fixed, [value("y", FLOAT, [4])]),
        "output_shape_rank": model([relu()], fixed, [value("y", FLOAT, [3, 1])]),
        "output_type": model([relu()], fixed, [value("y", INT64, [3])]),
        "output_twice": model([relu()], fixed, [value("y", FLOAT, [3])] * 2),
        "output_is_input": model([relu()], fixed, [value("y", FLOAT, [3]), value("x", FLOAT, [3])]),
        "output_not_made": model([relu()], fixed, [value("y", FLOAT, [3]), value("z", FLOAT, [3])]),
        "output_defined_twice": plain([relu(), helper.make_node("Neg", ["x"], ["y"])]),
        "input_twice": model([relu()], fixed * 2, [value("y", FLOAT, [3])]),
        "input_unused": model([relu()], [*fixed, value("u", FLOAT, [3])], [value("y", FLOAT, [3])]),
        "input_negative_length": model([relu()], [value("x", FLOAT, [-1])],
                                       [value("y", FLOAT, [-1])]),
        "value_info_type": info_type, "value_info_twice": info_twice,
        "value_info_unused": info_unused, "value_info_shape": info_shape,
    }


def model_copy(made):
    copy = type(made)()
    copy.CopyFrom(made)
    return copy


def initializers():
    other = constant("w", np.full(3, 2, np.float32))
    wide = model_copy_tensor(W)
    wide.dims[0] = 4
    nameless = constant("", np.ones(3, np.float32))
    untyped = model_copy_tensor(W)
    untyped.data_type = TensorProto.UNDEFINED
    shaped = model([add(right="w")], [value("x", FLOAT, ["N"]), value("w", FLOAT, [4])],
                   [value("y", FLOAT, ["N"])], [W])
    typed = model([add(right="w")], [value("x", FLOAT, ["N"]), value("w", INT64, [3])],
                  [value("y", FLOAT, ["N"])], [W])
    made_by_node = plain([helper.make_node("Neg", ["x"], ["w"]), add(right="w")], constants=[W])
    return {
        "initializer_unused": plain([relu()], constants=[W]),
        "initializer_twice": plain([add(right="w")], constants=[W, other]),
        "initializer_wrong_size": plain([add(right="w")], constants=[wide]),
        "initializer_wrong_size_unused": plain([relu()], constants=[wide]),
        "initializer_no_name": plain([relu()], constants=[nameless]),
        "initializer_no_type": plain([add(right="w")], constants=[untyped]),
        "initializer_other_shape_than_input": shaped,
        "initializer_other_type_than_input": typed,
        "initializer_no_input_ir3": plain([add(right="w")], constants=[W], ir=3),
        "initializer_made_by_node": made_by_node,
        "initializer_as_output": model([relu()], [value("x", FLOAT, [3])],
                                       [value("y", FLOAT, [3]), value("w", FLOAT, [3])], [W]),
    }


def model_copy_tensor(tensor):
    copy = TensorProto()
    copy.CopyFrom(tensor)
    return copy


def heads():
    def props(made, keys):
        for key in keys:
            made.metadata_props.add(key=key, value="1")

    ml = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])
    microsoft = helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")
    return {
        "metadata_twice": changed(lambda m: props(m, ["a", "a"])),
        "metadata_no_key": changed(lambda m: props(m, [""])),
        "ir_missing": changed(lambda m: m.ClearField("ir_version")),
        "ir_zero": changed(lambda m: setattr(m, "ir_version", 0)),
        "ir_one": plain([relu()], ir=1), "ir_two": plain([relu()], ir=2),
        "ir_three": plain([relu()], ir=3), "ir_too_new": plain([relu()], ir=40),
        "opset_missing": changed(lambda m: m.ClearField("opset_import")),
        "opset_missing_ir_two": changed(lambda m: m.ClearField("opset_import"),
                                        plain([relu()], ir=2)),
        "opset_only_of_others": changed(
            lambda m: setattr(m.opset_import[0], "domain", "org.example")),
        "opset_zero": plain([relu()], opset=0),
        "opset_negative": plain([relu()], opset=-1),
        "opset_one": plain([relu(consumed_inputs=[0])], opset=1),
        "opset_too_new": plain([relu()], opset=99),
        "opset_twice": plain([relu()], domains=[("", 17)]),
        "opset_twice_differs": plain([relu()], domains=[("", 13)]),
        "opset_both_names": plain([relu()], domains=[("ai.onnx", 17)]),
        "opset_both_names_differ": plain([relu()], domains=[("ai.onnx", 13)]),
        "opset_unknown_domain": plain([relu()], domains=[("org.example", 3)]),
        "opset_unknown_domain_zero": plain([relu()], domains=[("org.example", 0)]),
        "opset_ml_too_new": plain([relu()], domains=[("ai.onnx.ml", 99)]),
        "opset_microsoft_too_new": plain([relu()], domains=[("com.microsoft", 99)]),
        "domain_not_imported_ml": plain([ml]),
        "domain_not_imported_microsoft": plain([microsoft]),
        "domain_ai_onnx": changed(lambda m: setattr(m.graph.node[0], "domain", "ai.onnx")),
        "operator_too_old": plain([helper.make_node("Gelu", ["x"], ["y"])], opset=17),
        "operator_deprecated": plain([helper.make_node("Upsample", ["x", "w"], ["y"])],
                                     constants=[W]),
    }


def write_models(folder):
    made = {**attributes(), **graphs(), **initializers(), **heads()}
    for name, proto in made.items():
        (folder / f"{name}.onnx").write_bytes(proto.SerializeToString())
    return list(made)
