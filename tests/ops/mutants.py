# SPDX-License-Identifier: Apache-2.0
"""Models broken on purpose, one fault each: `mutant(model, random)` makes a copy with one of MUTATIONS
applied. Some of them are still valid: what matters is that two checkers agree about them."""
import onnx
from onnx import TensorProto, helper


def graphs_of(model):
    """The graph, its bodies and theirs."""
    found = [model.graph]
    for graph in found:
        for node in graph.node:
            for attr in node.attribute:
                found += [attr.g] if attr.HasField("g") else []
                found += attr.graphs
    return found


def any_graph(model, random):
    return random.choice([graph for graph in graphs_of(model) if graph.node])


def any_node(model, random, fits=lambda node: True):
    """A node that fits; IndexError: there is none."""
    return random.choice([node for graph in graphs_of(model) for node in graph.node if fits(node)])


def any_attribute(model, random, fits=lambda attr: True):
    return random.choice([attr for graph in graphs_of(model) for node in graph.node
                          for attr in node.attribute if fits(attr)])


def any_initializer(model, random, fits=lambda tensor: True):
    return random.choice([tensor for graph in graphs_of(model) for tensor in graph.initializer
                          if fits(tensor)])


def any_tensor_type(model, random, fits=lambda info: True):
    infos = [info for info in [*model.graph.input, *model.graph.output, *model.graph.value_info]
             if info.type.HasField("tensor_type") and fits(info)]
    return random.choice(infos).type.tensor_type


def drop_attribute(model, random):
    node = any_node(model, random, lambda node: node.attribute)
    del node.attribute[random.randrange(len(node.attribute))]


def change_attribute_type(model, random):
    attr = any_attribute(model, random)
    name = attr.name
    value = random.choice([1, 1.5, "text", [1, 2], [1.5], ["a", "b"]])
    attr.CopyFrom(helper.make_attribute(name, value))


def mislabel_attribute(model, random):
    any_attribute(model, random).type = random.choice([1, 2, 3, 4, 6, 7, 8])


def add_attribute(model, random):
    any_node(model, random).attribute.append(helper.make_attribute("flavour", 3))


def repeat_attribute(model, random):
    node = any_node(model, random, lambda node: node.attribute)
    node.attribute.append(random.choice(node.attribute))


def two_values(model, random):
    attr = any_attribute(model, random)
    attr.i = 7
    attr.s = b"seven"


def unname_attribute(model, random):
    any_attribute(model, random).name = ""


def refer_outside_function(model, random):
    any_attribute(model, random).ref_attr_name = "alpha"


def unknown_operator(model, random):
    any_node(model, random).op_type = random.choice(["Frobnicate", "relu", ""])


def unknown_domain(model, random):
    any_node(model, random).domain = random.choice(["com.nowhere", "ai.onnx.ml", "ai.onnx"])


def other_operator(model, random):
    any_node(model, random).op_type = any_node(model, random).op_type


def drop_input(model, random):
    node = any_node(model, random, lambda node: node.input)
    del node.input[random.randrange(len(node.input))]


def blank_input(model, random):
    node = any_node(model, random, lambda node: node.input)
    node.input[random.randrange(len(node.input))] = ""


def add_input(model, random):
    node = any_node(model, random, lambda node: node.input)
    node.input.append(node.input[0])


def swap_inputs(model, random):
    node = any_node(model, random, lambda node: len(node.input) > 1)
    node.input[0], node.input[1] = node.input[1], node.input[0]


def blank_output(model, random):
    node = any_node(model, random, lambda node: node.output)
    node.output[random.randrange(len(node.output))] = ""


def add_output(model, random):
    any_node(model, random).output.append("more")


def drop_node(model, random):
    graph = any_graph(model, random)
    del graph.node[random.randrange(len(graph.node))]


def swap_nodes(model, random):
    graph = random.choice([graph for graph in graphs_of(model) if len(graph.node) > 1])
    at = random.randrange(len(graph.node) - 1)
    first = onnx.NodeProto()
    first.CopyFrom(graph.node[at])
    graph.node[at].CopyFrom(graph.node[at + 1])
    graph.node[at + 1].CopyFrom(first)


def repeat_node(model, random):
    graph = any_graph(model, random)
    graph.node.append(random.choice(graph.node))


def repeat_output(model, random):
    graph = random.choice([graph for graph in graphs_of(model) if len(graph.node) > 1])
    one, other = random.sample(list(graph.node), 2)
    one.output[0] = other.output[0]


def output_of_input(model, random):
    node = any_node(model, random, lambda node: node.input and node.input[0] and node.output)
    node.output[0] = node.input[0]


def undefined_input(model, random):
    any_node(model, random, lambda node: node.input).input[0] = "nobody"


def own_output(model, random):
    node = any_node(model, random, lambda node: node.input and node.output)
    node.input[0] = node.output[0]


def body_name_outside(model, random):
    inner = [graph for graph in graphs_of(model)[1:] if graph.node and graph.node[0].output]
    name = random.choice(inner).node[0].output[0]
    next(node for node in model.graph.node if node.input).input[0] = name


def shadow(model, random):
    inner = [graph for graph in graphs_of(model)[1:] if graph.node and graph.node[0].output]
    random.choice(inner).node[0].output[0] = random.choice(model.graph.input).name


def drop_body_output(model, random):
    graph = random.choice([graph for graph in graphs_of(model)[1:] if graph.output])
    del graph.output[-1]


def unname_graph(model, random):
    random.choice(graphs_of(model)).name = ""


def drop_opsets(model, random):
    del model.opset_import[:]


def drop_opset(model, random):
    del model.opset_import[random.randrange(len(model.opset_import))]


def other_opset(model, random):
    random.choice(model.opset_import).version = random.choice([0, 1, 5, 7, 9, 11, 13, 18, 21, 99, -3])


def repeat_opset(model, random):
    model.opset_import.append(helper.make_opsetid("", random.choice([7, 13, 99])))


def other_ir_version(model, random):
    model.ir_version = random.choice([0, 1, 2, 3, 4, 7, 10, 14, 99])


def drop_ir_version(model, random):
    model.ClearField("ir_version")


def repeat_input(model, random):
    model.graph.input.append(random.choice(model.graph.input))


def unname_input(model, random):
    random.choice(model.graph.input).name = ""


def untype_input(model, random):
    random.choice(model.graph.input).ClearField("type")


def unshape_value(model, random):
    any_tensor_type(model, random).ClearField("shape")


def unknown_dtype(model, random):
    any_tensor_type(model, random).elem_type = random.choice([0, 27, 99, -1])


def other_dtype(model, random):
    any_tensor_type(model, random).elem_type = random.choice(
        [TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL])


def other_rank(model, random):
    info = any_tensor_type(model, random, lambda info: info.type.tensor_type.HasField("shape"))
    if info.shape.dim and random.random() < 0.5:
        del info.shape.dim[-1]
    else:
        info.shape.dim.add().dim_value = 3


def other_length(model, random):
    info = any_tensor_type(model, random, lambda info: info.type.tensor_type.shape.dim)
    random.choice(info.shape.dim).dim_value = random.choice([0, 1, 2, 5, 77])


def negative_length(model, random):
    info = any_tensor_type(model, random, lambda info: info.type.tensor_type.shape.dim)
    random.choice(info.shape.dim).dim_value = -4


def missing_output(model, random):
    random.choice(model.graph.output).name = "nobody"


def drop_outputs(model, random):
    del model.graph.output[:]


def repeat_graph_output(model, random):
    model.graph.output.append(random.choice(model.graph.output))


def short_initializer(model, random):
    tensor = any_initializer(model, random, lambda tensor: tensor.raw_data)
    tensor.raw_data = tensor.raw_data[:-1]


def no_data(model, random):
    tensor = any_initializer(model, random)
    for field in ("raw_data", "float_data", "int32_data", "int64_data", "string_data"):
        tensor.ClearField(field)


def initializer_dims(model, random):
    any_initializer(model, random).dims.append(random.choice([0, 2, -1]))


def initializer_dtype(model, random):
    any_initializer(model, random).data_type = random.choice([0, 1, 2, 7, 8, 27, 99])


def unname_initializer(model, random):
    any_initializer(model, random).name = ""


def repeat_initializer(model, random):
    graph = random.choice([graph for graph in graphs_of(model) if graph.initializer])
    graph.initializer.append(random.choice(graph.initializer))


def wrong_field(model, random):
    tensor = any_initializer(model, random)
    tensor.ClearField("raw_data")
    tensor.double_data.append(1.0)


def tensor_attribute_dims(model, random):
    any_attribute(model, random, lambda attr: attr.HasField("t")).t.dims.append(3)


def repeat_metadata(model, random):
    for _ in range(2):
        model.metadata_props.add(key="twice", value=str(random.random()))


def add_function(model, domain="local", name="F", nodes=(), inputs=("a",), outputs=("b",)):
    model.functions.append(helper.make_function(
        domain, name, list(inputs), list(outputs), list(nodes),
        [helper.make_opsetid("", next((o.version for o in model.opset_import if not o.domain), 13)),
         helper.make_opsetid("local", 1)]))
    if not any(opset.domain == "local" for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid("local", 1))


def call_function(model, random):
    add_function(model, nodes=[helper.make_node("Identity", ["a"], ["b"])])
    name = random.choice(model.graph.input).name
    model.graph.node.append(helper.make_node("F", [name] * random.choice([1, 1, 2]), ["called"],
                                             domain="local"))


def recursive_function(model, random):
    add_function(model, nodes=[helper.make_node("F", ["a"], ["b"], domain="local")])


def mutual_functions(model, random):
    add_function(model, nodes=[helper.make_node("G", ["a"], ["b"], domain="local")])
    add_function(model, name="G", nodes=[helper.make_node("F", ["a"], ["b"], domain="local")])


def repeat_function(model, random):
    for _ in range(2):
        add_function(model, nodes=[helper.make_node("Identity", ["a"], ["b"])])


def broken_function(model, random):
    node = random.choice([helper.make_node("Relu", ["c"], ["b"]), helper.make_node("Relu", ["a"], ["c"]),
                          helper.make_node("Frobnicate", ["a"], ["b"]),
                          helper.make_node("Relu", ["a", "a"], ["b"]),
                          helper.make_node("Relu", ["a"], ["a"]),
                          helper.make_node("H", ["a"], ["b"], domain="elsewhere")])
    add_function(model, nodes=[node])


MUTATIONS = [
    drop_attribute, change_attribute_type, mislabel_attribute, add_attribute, repeat_attribute,
    two_values, unname_attribute, refer_outside_function, unknown_operator, unknown_domain,
    other_operator, drop_input, blank_input, add_input, swap_inputs, blank_output, add_output,
    drop_node, swap_nodes, repeat_node, repeat_output, output_of_input, undefined_input, own_output,
    body_name_outside, shadow, drop_body_output, unname_graph, drop_opsets, drop_opset, other_opset,
    repeat_opset, other_ir_version, drop_ir_version, repeat_input, unname_input, untype_input,
    unshape_value, unknown_dtype, other_dtype, other_rank, other_length, negative_length,
    missing_output, drop_outputs, repeat_graph_output, short_initializer, no_data, initializer_dims,
    initializer_dtype, unname_initializer, repeat_initializer, wrong_field, tensor_attribute_dims,
    repeat_metadata, call_function, recursive_function, mutual_functions, repeat_function,
    broken_function]


def mutant(model, random, mutation):
    """A copy of the model with the mutation; None: the model has nothing to apply it to."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    try:
        mutation(copy, random)
    except (IndexError, StopIteration, ValueError):
        return None
    return copy
