/* SPDX-License-Identifier: Apache-2.0
 * The tables of onnx.proto (IR version 14): a row's index is its field number. What has no row
 * (training_info, configuration, device_configurations) is kept as unknown fields. */
#include "proto/messages.h"

static const struct sdx_message pair, dimension, type_message, value_info, attribute, node,
    graph_message, opset;

static const struct sdx_field pair_fields[] = {
    [1] = SDX_FIELD(TEXT, sdx_onnx_pair, key, key),
    [2] = SDX_FIELD(TEXT, sdx_onnx_pair, value, value),
};
static const struct sdx_message pair =
    SDX_MESSAGE("StringStringEntryProto", sdx_onnx_pair, unknown, pair_fields);

/* ---- tensors ---- */

static const struct sdx_field segment_fields[] = {
    [1] = SDX_FIELD_HAS(I64, sdx_onnx_tensor, begin, segment_begin, has_segment_begin),
    [2] = SDX_FIELD_HAS(I64, sdx_onnx_tensor, end, segment_end, has_segment_end),
};
static const struct sdx_message segment =
    SDX_MESSAGE("TensorProto.Segment", sdx_onnx_tensor, unknown_segment, segment_fields);

static const struct sdx_field tensor_fields[] = {
    [1] = SDX_FIELD_LIST(I64S, sdx_onnx_tensor, dims, dims.at, dims.count),
    [2] = SDX_FIELD_HAS(I32, sdx_onnx_tensor, data_type, data_type, has_data_type),
    [3] = SDX_FIELD_PART_HAS(sdx_onnx_tensor, segment, has_segment, segment),
    [4] = SDX_FIELD_PACKED(F32S, sdx_onnx_tensor, float_data, float_data, count_float),
    [5] = SDX_FIELD_PACKED(I32S, sdx_onnx_tensor, int32_data, int32_data, count_int32),
    [6] = SDX_FIELD_LIST(BYTESS, sdx_onnx_tensor, string_data, strings.at, strings.count),
    [7] = SDX_FIELD_PACKED(I64S, sdx_onnx_tensor, int64_data, int64_data, count_int64),
    [8] = SDX_FIELD(TEXT, sdx_onnx_tensor, name, name),
    [9] = SDX_FIELD_HAS(BYTES, sdx_onnx_tensor, raw_data, raw, has_raw),
    [10] = SDX_FIELD_PACKED(F64S, sdx_onnx_tensor, double_data, double_data, count_double),
    [11] = SDX_FIELD_PACKED(U64S, sdx_onnx_tensor, uint64_data, uint64_data, count_uint64),
    [12] = SDX_FIELD(TEXT, sdx_onnx_tensor, doc_string, doc),
    [13] = SDX_FIELD_MANY(sdx_onnx_tensor, external_data, external.at, external.count, pair),
    [14] = SDX_FIELD_HAS(I32, sdx_onnx_tensor, data_location, data_location, has_location),
    [16] = SDX_FIELD_MANY(sdx_onnx_tensor, metadata_props, metadata.at, metadata.count, pair),
};
const struct sdx_message sdx_message_tensor =
    SDX_MESSAGE("TensorProto", sdx_onnx_tensor, unknown, tensor_fields);

static const struct sdx_field sparse_fields[] = {
    [1] = SDX_FIELD_PTR(sdx_onnx_sparse, values, values, sdx_message_tensor),
    [2] = SDX_FIELD_PTR(sdx_onnx_sparse, indices, indices, sdx_message_tensor),
    [3] = SDX_FIELD_LIST(I64S, sdx_onnx_sparse, dims, dims.at, dims.count),
};
const struct sdx_message sdx_message_sparse =
    SDX_MESSAGE("SparseTensorProto", sdx_onnx_sparse, unknown, sparse_fields);

/* ---- types ---- */

static const struct sdx_field dimension_fields[] = {
    [1] = SDX_FIELD_WHICH(I64, sdx_onnx_dim, dim_value, value, SDX_DIM_VALUE),
    [2] = SDX_FIELD_WHICH(TEXT, sdx_onnx_dim, dim_param, param, SDX_DIM_PARAM),
    [3] = SDX_FIELD(TEXT, sdx_onnx_dim, denotation, denotation),
};
static const struct sdx_message dimension =
    SDX_MESSAGE("TensorShapeProto.Dimension", sdx_onnx_dim, unknown, dimension_fields);

static const struct sdx_field shape_fields[] = {
    [1] = SDX_FIELD_MANY(sdx_onnx_type, dim, dims, rank, dimension),
};
static const struct sdx_message shape =
    SDX_MESSAGE("TensorShapeProto", sdx_onnx_type, unknown_shape, shape_fields);

static const struct sdx_field type_tensor_fields[] = {
    [1] = SDX_FIELD_HAS(I32, sdx_onnx_type, elem_type, elem_type, has_elem_type),
    [2] = SDX_FIELD_PART_HAS(sdx_onnx_type, shape, has_shape, shape),
};
static const struct sdx_message type_tensor =
    SDX_MESSAGE("TypeProto.Tensor", sdx_onnx_type, unknown_inner, type_tensor_fields);

static const struct sdx_field type_elem_fields[] = {
    [1] = SDX_FIELD_PTR(sdx_onnx_type, elem_type, elem, type_message),
};
static const struct sdx_message type_elem =
    SDX_MESSAGE("TypeProto.Sequence", sdx_onnx_type, unknown_inner, type_elem_fields);

static const struct sdx_field type_map_fields[] = {
    [1] = SDX_FIELD_HAS(I32, sdx_onnx_type, key_type, elem_type, has_elem_type),
    [2] = SDX_FIELD_PTR(sdx_onnx_type, value_type, elem, type_message),
};
static const struct sdx_message type_map =
    SDX_MESSAGE("TypeProto.Map", sdx_onnx_type, unknown_inner, type_map_fields);

static const struct sdx_field type_opaque_fields[] = {
    [1] = SDX_FIELD(TEXT, sdx_onnx_type, domain, opaque_domain),
    [2] = SDX_FIELD(TEXT, sdx_onnx_type, name, opaque_name),
};
static const struct sdx_message type_opaque =
    SDX_MESSAGE("TypeProto.Opaque", sdx_onnx_type, unknown_inner, type_opaque_fields);

static const struct sdx_field type_fields[] = {
    [1] = SDX_FIELD_PART_WHICH(sdx_onnx_type, tensor_type, SDX_TYPE_TENSOR, type_tensor),
    [4] = SDX_FIELD_PART_WHICH(sdx_onnx_type, sequence_type, SDX_TYPE_SEQUENCE, type_elem),
    [5] = SDX_FIELD_PART_WHICH(sdx_onnx_type, map_type, SDX_TYPE_MAP, type_map),
    [6] = SDX_FIELD(TEXT, sdx_onnx_type, denotation, denotation),
    [7] = SDX_FIELD_PART_WHICH(sdx_onnx_type, opaque_type, SDX_TYPE_OPAQUE, type_opaque),
    [8] = SDX_FIELD_PART_WHICH(sdx_onnx_type, sparse_tensor_type, SDX_TYPE_SPARSE, type_tensor),
    [9] = SDX_FIELD_PART_WHICH(sdx_onnx_type, optional_type, SDX_TYPE_OPTIONAL, type_elem),
};
static const struct sdx_message type_message =
    SDX_MESSAGE("TypeProto", sdx_onnx_type, unknown, type_fields);

static const struct sdx_field value_info_fields[] = {
    [1] = SDX_FIELD(TEXT, sdx_onnx_value_info, name, name),
    [2] = SDX_FIELD_PTR(sdx_onnx_value_info, type, type, type_message),
    [3] = SDX_FIELD(TEXT, sdx_onnx_value_info, doc_string, doc),
    [4] = SDX_FIELD_MANY(sdx_onnx_value_info, metadata_props, metadata.at, metadata.count, pair),
};
static const struct sdx_message value_info =
    SDX_MESSAGE("ValueInfoProto", sdx_onnx_value_info, unknown, value_info_fields);

/* ---- graphs ---- */

static const struct sdx_field attribute_fields[] = {
    [1] = SDX_FIELD(TEXT, sdx_onnx_attr, name, name),
    [2] = SDX_FIELD_HAS(F32, sdx_onnx_attr, f, f, has_f),
    [3] = SDX_FIELD_HAS(I64, sdx_onnx_attr, i, i, has_i),
    [4] = SDX_FIELD_HAS(BYTES, sdx_onnx_attr, s, s, has_s),
    [5] = SDX_FIELD_PTR(sdx_onnx_attr, t, t, sdx_message_tensor),
    [6] = SDX_FIELD_PTR(sdx_onnx_attr, g, g, graph_message),
    [7] = SDX_FIELD_LIST(F32S, sdx_onnx_attr, floats, floats, count_floats),
    [8] = SDX_FIELD_LIST(I64S, sdx_onnx_attr, ints, ints.at, ints.count),
    [9] = SDX_FIELD_LIST(BYTESS, sdx_onnx_attr, strings, strings.at, strings.count),
    [10] = SDX_FIELD_MANY(sdx_onnx_attr, tensors, tensors.at, tensors.count, sdx_message_tensor),
    [11] = SDX_FIELD_MANY(sdx_onnx_attr, graphs, graphs, count_graphs, graph_message),
    [13] = SDX_FIELD(TEXT, sdx_onnx_attr, doc_string, doc),
    [14] = SDX_FIELD_PTR(sdx_onnx_attr, tp, tp, type_message),
    [15] = SDX_FIELD_MANY(sdx_onnx_attr, type_protos, types, count_types, type_message),
    [20] = SDX_FIELD_HAS(I32, sdx_onnx_attr, type, type, has_type),
    [21] = SDX_FIELD(TEXT, sdx_onnx_attr, ref_attr_name, ref),
    [22] = SDX_FIELD_PTR(sdx_onnx_attr, sparse_tensor, sparse, sdx_message_sparse),
    [23] = SDX_FIELD_MANY(sdx_onnx_attr, sparse_tensors, sparses.at, sparses.count,
                          sdx_message_sparse),
};
static const struct sdx_message attribute =
    SDX_MESSAGE("AttributeProto", sdx_onnx_attr, unknown, attribute_fields);

static const struct sdx_field node_fields[] = {
    [1] = SDX_FIELD_LIST(TEXTS, sdx_onnx_node, input, inputs.at, inputs.count),
    [2] = SDX_FIELD_LIST(TEXTS, sdx_onnx_node, output, outputs.at, outputs.count),
    [3] = SDX_FIELD(TEXT, sdx_onnx_node, name, name),
    [4] = SDX_FIELD(TEXT, sdx_onnx_node, op_type, op_type),
    [5] = SDX_FIELD_MANY(sdx_onnx_node, attribute, attrs.at, attrs.count, attribute),
    [6] = SDX_FIELD(TEXT, sdx_onnx_node, doc_string, doc),
    [7] = SDX_FIELD(TEXT, sdx_onnx_node, domain, domain),
    [8] = SDX_FIELD(TEXT, sdx_onnx_node, overload, overload),
    [9] = SDX_FIELD_MANY(sdx_onnx_node, metadata_props, metadata.at, metadata.count, pair),
};
static const struct sdx_message node =
    SDX_MESSAGE("NodeProto", sdx_onnx_node, unknown, node_fields);

static const struct sdx_field quant_fields[] = {
    [1] = SDX_FIELD(TEXT, sdx_onnx_quant, tensor_name, tensor_name),
    [2] = SDX_FIELD_MANY(sdx_onnx_quant, quant_parameter_tensor_names, pairs.at, pairs.count, pair),
};
static const struct sdx_message quant =
    SDX_MESSAGE("TensorAnnotation", sdx_onnx_quant, unknown, quant_fields);

static const struct sdx_field graph_fields[] = {
    [1] = SDX_FIELD_MANY(sdx_onnx_graph, node, nodes.at, nodes.count, node),
    [2] = SDX_FIELD(TEXT, sdx_onnx_graph, name, name),
    [5] = SDX_FIELD_MANY(sdx_onnx_graph, initializer, initializers.at, initializers.count,
                         sdx_message_tensor),
    [10] = SDX_FIELD(TEXT, sdx_onnx_graph, doc_string, doc),
    [11] = SDX_FIELD_MANY(sdx_onnx_graph, input, inputs.at, inputs.count, value_info),
    [12] = SDX_FIELD_MANY(sdx_onnx_graph, output, outputs.at, outputs.count, value_info),
    [13] = SDX_FIELD_MANY(sdx_onnx_graph, value_info, values.at, values.count, value_info),
    [14] = SDX_FIELD_MANY(sdx_onnx_graph, quantization_annotation, quants, count_quants, quant),
    [15] = SDX_FIELD_MANY(sdx_onnx_graph, sparse_initializer, sparse_initializers.at,
                          sparse_initializers.count, sdx_message_sparse),
    [16] = SDX_FIELD_MANY(sdx_onnx_graph, metadata_props, metadata.at, metadata.count, pair),
};
static const struct sdx_message graph_message =
    SDX_MESSAGE("GraphProto", sdx_onnx_graph, unknown, graph_fields);

/* ---- models ---- */

static const struct sdx_field opset_fields[] = {
    [1] = SDX_FIELD(TEXT, sdx_onnx_opset, domain, domain),
    [2] = SDX_FIELD_HAS(I64, sdx_onnx_opset, version, version, has_version),
};
static const struct sdx_message opset =
    SDX_MESSAGE("OperatorSetIdProto", sdx_onnx_opset, unknown, opset_fields);

static const struct sdx_field function_fields[] = {
    [1] = SDX_FIELD(TEXT, sdx_onnx_function, name, name),
    [4] = SDX_FIELD_LIST(TEXTS, sdx_onnx_function, input, inputs.at, inputs.count),
    [5] = SDX_FIELD_LIST(TEXTS, sdx_onnx_function, output, outputs.at, outputs.count),
    [6] = SDX_FIELD_LIST(TEXTS, sdx_onnx_function, attribute, attr_names.at, attr_names.count),
    [7] = SDX_FIELD_MANY(sdx_onnx_function, node, nodes.at, nodes.count, node),
    [8] = SDX_FIELD(TEXT, sdx_onnx_function, doc_string, doc),
    [9] = SDX_FIELD_MANY(sdx_onnx_function, opset_import, opsets.at, opsets.count, opset),
    [10] = SDX_FIELD(TEXT, sdx_onnx_function, domain, domain),
    [11] = SDX_FIELD_MANY(sdx_onnx_function, attribute_proto, attrs.at, attrs.count, attribute),
    [12] = SDX_FIELD_MANY(sdx_onnx_function, value_info, values.at, values.count, value_info),
    [13] = SDX_FIELD(TEXT, sdx_onnx_function, overload, overload),
    [14] = SDX_FIELD_MANY(sdx_onnx_function, metadata_props, metadata.at, metadata.count, pair),
};
static const struct sdx_message function =
    SDX_MESSAGE("FunctionProto", sdx_onnx_function, unknown, function_fields);

static const struct sdx_field model_fields[] = {
    [1] = SDX_FIELD_HAS(I64, sdx_onnx_model, ir_version, ir_version, has_ir_version),
    [2] = SDX_FIELD(TEXT, sdx_onnx_model, producer_name, producer),
    [3] = SDX_FIELD(TEXT, sdx_onnx_model, producer_version, producer_version),
    [4] = SDX_FIELD(TEXT, sdx_onnx_model, domain, domain),
    [5] = SDX_FIELD_HAS(I64, sdx_onnx_model, model_version, model_version, has_model_version),
    [6] = SDX_FIELD(TEXT, sdx_onnx_model, doc_string, doc),
    [7] = SDX_FIELD_PTR(sdx_onnx_model, graph, graph, graph_message),
    [8] = SDX_FIELD_MANY(sdx_onnx_model, opset_import, opsets.at, opsets.count, opset),
    [14] = SDX_FIELD_MANY(sdx_onnx_model, metadata_props, metadata.at, metadata.count, pair),
    [25] = SDX_FIELD_MANY(sdx_onnx_model, functions, functions, count_functions, function),
};
const struct sdx_message sdx_message_model =
    SDX_MESSAGE("ModelProto", sdx_onnx_model, unknown, model_fields);
