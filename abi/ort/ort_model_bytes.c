/* SPDX-License-Identifier: Apache-2.0
 * Models that programs made, as bytes of a ModelProto, which the engine then reads like a file. The
 * numbers are those of onnx.proto. */
#include "ort_graph.h"

#include <string.h>

static void write_shape(struct ort_bytes *type, const OrtTensorTypeAndShapeInfo *info)
{
    struct ort_bytes shape = {0}, dim = {0};
    if (!info->has_shape) return;
    for (size_t i = 0; i < info->rank; i++) {
        if (info->dims[i] >= 0)
            ort_pb_int(&dim, 1, info->dims[i]);
        else if (info->names)
            ort_pb_text(&dim, 2, info->names[i]);
        ort_pb_message(&shape, 1, &dim);
    }
    ort_pb_message(type, 2, &shape);
    ort_bytes_deinit(&dim);
    ort_bytes_deinit(&shape);
}

/* TypeProto: tensor 1, sequence 4, map 5, sparse tensor 8, optional 9. */
static void write_type(struct ort_bytes *out, const OrtTypeInfo *type)
{
    struct ort_bytes message = {0}, below = {0};
    switch (type->kind) {
    case ONNX_TYPE_TENSOR:
    case ONNX_TYPE_SPARSETENSOR:
        ort_pb_int(&message, 1, type->tensor->type);
        write_shape(&message, type->tensor);
        ort_pb_message(out, type->kind == ONNX_TYPE_TENSOR ? 1 : 8, &message);
        break;
    case ONNX_TYPE_SEQUENCE:
        write_type(&below, type->sequence->element);
        ort_pb_message(&message, 1, &below);
        ort_pb_message(out, 4, &message);
        break;
    case ONNX_TYPE_MAP:
        write_type(&below, type->map->value);
        ort_pb_int(&message, 1, type->map->key);
        ort_pb_message(&message, 2, &below);
        ort_pb_message(out, 5, &message);
        break;
    case ONNX_TYPE_OPTIONAL:
        write_type(&below, type->optional->contained);
        ort_pb_message(&message, 1, &below);
        ort_pb_message(out, 9, &message);
        break;
    default: break;
    }
    ort_bytes_deinit(&below);
    ort_bytes_deinit(&message);
}

static void write_value_infos(struct ort_bytes *graph, int field, OrtValueInfo *const *infos,
                              size_t count)
{
    struct ort_bytes message = {0}, type = {0};
    for (size_t i = 0; i < count; i++) {
        ort_pb_text(&message, 1, infos[i]->name);
        if (infos[i]->type) {
            write_type(&type, infos[i]->type);
            ort_pb_message(&message, 2, &type);
        }
        ort_pb_message(graph, field, &message);
    }
    ort_bytes_deinit(&type);
    ort_bytes_deinit(&message);
}

static void write_node(struct ort_bytes *graph, const OrtNode *node)
{
    struct ort_bytes message = {0};
    for (size_t i = 0; i < node->count_inputs; i++) /* a name may be empty: left out */
        ort_pb_bytes(&message, 1, node->inputs[i], strlen(node->inputs[i]));
    for (size_t i = 0; i < node->count_outputs; i++)
        ort_pb_bytes(&message, 2, node->outputs[i], strlen(node->outputs[i]));
    ort_pb_text(&message, 3, node->name);
    ort_pb_text(&message, 4, node->op);
    ort_pb_text(&message, 7, node->domain);
    for (size_t i = 0; i < node->count_attributes; i++)
        ort_attr_write(&message, node->attributes[i]);
    ort_pb_message(graph, 1, &message);
    ort_bytes_deinit(&message);
}

/* TensorProto: dims 1, data_type 2, string_data 6, name 8, raw_data 9. */
static void write_initializer(struct ort_bytes *graph, const struct ort_graph_initializer *from)
{
    struct ort_bytes message = {0};
    const sdx_tensor *tensor = ort_value_tensor(from->value);
    for (int i = 0; i < sdx_tensor_rank(tensor); i++)
        ort_pb_int(&message, 1, sdx_tensor_dims(tensor)[i]);
    ort_pb_int(&message, 2, sdx_tensor_dtype(tensor));
    ort_pb_text(&message, 8, from->info->name);
    if (sdx_tensor_dtype(tensor) == SDX_STRING) {
        for (int64_t i = 0; i < sdx_tensor_count(tensor); i++) {
            size_t length = 0;
            const char *text = sdx_tensor_string(tensor, i, &length);
            ort_pb_bytes(&message, 6, text, length);
        }
    } else if (!from->is_external) {
        ort_pb_bytes(&message, 9, sdx_tensor_const_data(tensor), sdx_tensor_bytes(tensor));
    }
    ort_pb_message(graph, 5, &message);
    ort_bytes_deinit(&message);
}

static void write_graph_parts(struct ort_bytes *out, const OrtGraph *graph)
{
    for (size_t i = 0; i < graph->count_nodes; i++)
        write_node(out, graph->nodes[i]);
    for (size_t i = 0; i < graph->count_initializers; i++)
        write_initializer(out, &graph->initializers[i]);
    write_value_infos(out, 11, graph->inputs, graph->count_inputs);
    write_value_infos(out, 12, graph->outputs, graph->count_outputs);
}

static void write_opset(struct ort_bytes *model, const char *domain, int64_t version)
{
    struct ort_bytes message = {0};
    ort_pb_text(&message, 1, domain);
    ort_pb_int(&message, 2, version);
    ort_pb_message(model, 8, &message);
    ort_bytes_deinit(&message);
}

static OrtStatusPtr finish(struct ort_bytes *out)
{
    if (!out->failed) return NULL;
    ort_bytes_deinit(out);
    return ort_no_memory();
}

OrtStatusPtr ort_model_write(const OrtModel *model, struct ort_bytes *out)
{
    struct ort_bytes graph = {0};
    *out = (struct ort_bytes){0};
    if (!model->graph) return ort_fail(ORT_INVALID_ARGUMENT, "OrtModel has no graph");
    write_graph_parts(&graph, model->graph);
    ort_pb_text(&graph, 2, "OrtModelEditorApi");
    ort_pb_int(out, 1, ORT_EDITOR_IR_VERSION);
    ort_pb_message(out, 7, &graph);
    for (size_t i = 0; i < model->count_domains; i++)
        write_opset(out, model->domains[i], model->versions[i]);
    ort_bytes_deinit(&graph);
    return finish(out);
}

/* The graph in `field` with the parts of `more`. */
static bool merge_graph(const struct ort_pb_field *field, const OrtGraph *more,
                        struct ort_bytes *out)
{
    struct ort_bytes graph = {0};
    const unsigned char *at = field->data, *end = field->data + field->size;
    struct ort_pb_field part;
    while (ort_pb_next(&at, end, &part)) {
        if ((part.number == 11 && more->count_inputs) || (part.number == 12 && more->count_outputs))
            continue;
        ort_bytes_add(&graph, part.begin, (size_t)(part.end - part.begin));
    }
    write_graph_parts(&graph, more);
    ort_pb_message(out, 7, &graph);
    ort_bytes_deinit(&graph);
    return at == end;
}

/* Is that domain among the opset imports of the model? */
static bool has_opset(const unsigned char *at, const unsigned char *end, const char *domain)
{
    struct ort_pb_field field, part;
    while (ort_pb_next(&at, end, &field)) {
        if (field.number != 8 || field.wire != 2) continue;
        const unsigned char *inner = field.data, *inner_end = field.data + field.size;
        bool same = !*domain;
        while (ort_pb_next(&inner, inner_end, &part))
            if (part.number == 1 && part.wire == 2)
                same = part.size == strlen(domain) && memcmp(part.data, domain, part.size) == 0;
        if (same) return true;
    }
    return false;
}

OrtStatusPtr ort_model_merge(const void *bytes, size_t size, const OrtModel *more,
                             struct ort_bytes *out)
{
    static const OrtGraph nothing = {0};
    const OrtGraph *addition = more->graph ? more->graph : &nothing;
    const unsigned char *at = bytes, *end = at + size;
    struct ort_pb_field field;
    bool whole = true;
    *out = (struct ort_bytes){0};
    while (ort_pb_next(&at, end, &field)) {
        if (field.number == 7 && field.wire == 2)
            whole &= merge_graph(&field, addition, out);
        else
            ort_bytes_add(out, field.begin, (size_t)(field.end - field.begin));
    }
    for (size_t i = 0; i < more->count_domains; i++)
        if (!has_opset(bytes, end, more->domains[i]))
            write_opset(out, more->domains[i], more->versions[i]);
    if (at == end && whole) return finish(out);
    ort_bytes_deinit(out);
    return ort_fail(ORT_INVALID_PROTOBUF, "the model to augment is no ONNX model");
}
