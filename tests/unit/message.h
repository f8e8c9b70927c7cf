/* SPDX-License-Identifier: Apache-2.0
 * Models for tests, written as text. A line is one of
 *     in NAME        out NAME        init NAME        (float[2]; init: two ones)
 *     OUT, OUT = [DOMAIN.]OP(IN, IN) KEY=INT KEY=$REFERENCE KEY={GRAPH}
 * where GRAPH is the index of a graph in `bodies`, and _ is a value that is left out. */
#ifndef SDX_TESTS_MESSAGE_H
#define SDX_TESTS_MESSAGE_H

#include <stdlib.h>

#include "proto/onnx.h"
#include "unit.h"

enum { MESSAGE_MAX = 64 };

static inline struct sdx_str message_word(struct sdx_arena *arena, const char **at,
                                          const char *stop)
{
    while (**at == ' ' || **at == ',')
        ++*at;
    size_t n = strcspn(*at, stop);
    struct sdx_str word = {sdx_arena_strndup(arena, *at, n), n};
    *at += n;
    if (word.len == 1 && word.ptr[0] == '_') word.len = 0;
    return word;
}

static inline struct sdx_onnx_value_info message_info(struct sdx_arena *arena, struct sdx_str name)
{
    struct sdx_onnx_value_info info = {.name = name};
    info.type = sdx_arena_alloc(arena, sizeof *info.type);
    info.type->which = SDX_TYPE_TENSOR;
    info.type->elem_type = SDX_F32;
    info.type->has_shape = true;
    info.type->rank = 1;
    info.type->dims = sdx_arena_alloc(arena, sizeof *info.type->dims);
    info.type->dims[0].which = SDX_DIM_VALUE;
    info.type->dims[0].value = 2;
    return info;
}

static inline struct sdx_onnx_tensor message_tensor(struct sdx_arena *arena, struct sdx_str name)
{
    static const float ones[2] = {1, 1};
    struct sdx_onnx_tensor tensor = {.name = name, .data_type = SDX_F32, .count_float = 2};
    tensor.dims.at = sdx_arena_alloc(arena, sizeof(int64_t));
    tensor.dims.at[0] = 2;
    tensor.dims.count = 1;
    tensor.float_data = sdx_arena_copy(arena, ones, sizeof ones);
    return tensor;
}

static inline void message_attr(struct sdx_arena *arena, struct sdx_onnx_attr *attr,
                                const char **at, struct sdx_onnx_graph *const *bodies)
{
    attr->name = message_word(arena, at, "=");
    ++*at;
    struct sdx_str value = message_word(arena, at, " \n");
    if (value.ptr[0] == '$') {
        attr->ref = (struct sdx_str){value.ptr + 1, value.len - 1};
        attr->type = SDX_ATTR_INT;
    } else if (value.ptr[0] == '{') {
        attr->g = bodies[strtol(value.ptr + 1, NULL, 10)];
        attr->type = SDX_ATTR_GRAPH;
    } else {
        attr->i = strtol(value.ptr, NULL, 10);
        attr->has_i = true;
        attr->type = SDX_ATTR_INT;
    }
}

static inline void message_node(struct sdx_arena *arena, struct sdx_onnx_node *node,
                                const char **at, struct sdx_onnx_graph *const *bodies)
{
    node->inputs.at = sdx_arena_array(arena, MESSAGE_MAX, sizeof(struct sdx_str));
    node->outputs.at = sdx_arena_array(arena, MESSAGE_MAX, sizeof(struct sdx_str));
    node->attrs.at = sdx_arena_array(arena, MESSAGE_MAX, sizeof(struct sdx_onnx_attr));
    while (**at != '=') {
        node->outputs.at[node->outputs.count++] = message_word(arena, at, " ,=");
        while (**at == ' ')
            ++*at;
    }
    ++*at;
    node->op_type = message_word(arena, at, "(");
    const char *dot = strrchr(node->op_type.ptr, '.');
    if (dot) {
        node->domain = (struct sdx_str){node->op_type.ptr, (size_t)(dot - node->op_type.ptr)};
        node->op_type = sdx_str(dot + 1);
    }
    ++*at;
    while (**at != ')')
        node->inputs.at[node->inputs.count++] = message_word(arena, at, ",)");
    ++*at;
    while (**at == ' ')
        ++*at;
    while (**at != '\n' && **at != '\0') {
        message_attr(arena, &node->attrs.at[node->attrs.count++], at, bodies);
        while (**at == ' ')
            ++*at;
    }
}

static inline struct sdx_onnx_graph *message_graph(struct sdx_arena *arena, const char *text,
                                                   struct sdx_onnx_graph *const *bodies)
{
    struct sdx_onnx_graph *g = sdx_arena_alloc(arena, sizeof *g);
    g->name = SDX_STR("g");
    g->nodes.at = sdx_arena_array(arena, MESSAGE_MAX, sizeof *g->nodes.at);
    g->inputs.at = sdx_arena_array(arena, MESSAGE_MAX, sizeof *g->inputs.at);
    g->outputs.at = sdx_arena_array(arena, MESSAGE_MAX, sizeof *g->outputs.at);
    g->initializers.at = sdx_arena_array(arena, MESSAGE_MAX, sizeof *g->initializers.at);
    for (const char *at = text; *at;) {
        if (strncmp(at, "in ", 3) == 0) {
            at += 3;
            g->inputs.at[g->inputs.count++] = message_info(arena, message_word(arena, &at, "\n"));
        } else if (strncmp(at, "out ", 4) == 0) {
            at += 4;
            g->outputs.at[g->outputs.count++] = message_info(arena, message_word(arena, &at, "\n"));
        } else if (strncmp(at, "init ", 5) == 0) {
            at += 5;
            g->initializers.at[g->initializers.count++] =
                message_tensor(arena, message_word(arena, &at, "\n"));
        } else {
            message_node(arena, &g->nodes.at[g->nodes.count++], &at, bodies);
        }
        at += *at == '\n';
    }
    return g;
}

/* A function from the same text: its inputs, outputs and nodes; domain "f". */
static inline struct sdx_onnx_function message_function(struct sdx_arena *arena, const char *name,
                                                        const char *text,
                                                        struct sdx_onnx_graph *const *bodies)
{
    struct sdx_onnx_graph *g = message_graph(arena, text, bodies);
    struct sdx_onnx_function f = {.name = sdx_str(name), .domain = SDX_STR("f"), .nodes = g->nodes};
    f.inputs.at = sdx_arena_array(arena, MESSAGE_MAX, sizeof(struct sdx_str));
    f.outputs.at = sdx_arena_array(arena, MESSAGE_MAX, sizeof(struct sdx_str));
    for (int i = 0; i < g->inputs.count; i++)
        f.inputs.at[f.inputs.count++] = g->inputs.at[i].name;
    for (int i = 0; i < g->outputs.count; i++)
        f.outputs.at[f.outputs.count++] = g->outputs.at[i].name;
    return f;
}

/* ai.onnx 17 and domain "f". */
static inline struct sdx_onnx_model *message_model(struct sdx_arena *arena,
                                                   struct sdx_onnx_graph *graph,
                                                   struct sdx_onnx_function *functions, int count)
{
    static const struct sdx_onnx_opset opsets[2] = {{.domain = {"", 0}, .version = 17},
                                                    {.domain = {"f", 1}, .version = 1}};
    struct sdx_onnx_model *model = sdx_arena_alloc(arena, sizeof *model);
    model->ir_version = 8;
    model->has_ir_version = true;
    model->opsets.at = sdx_arena_copy(arena, opsets, sizeof opsets);
    model->opsets.count = 2;
    model->graph = graph;
    model->functions = functions;
    model->count_functions = count;
    return model;
}
#endif
