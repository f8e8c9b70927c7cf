/* SPDX-License-Identifier: Apache-2.0
 * Small models for the tests of the engine, put together as messages and written to a file below
 * /tmp. */
#ifndef SDX_TESTS_MAKE_MODEL_H
#define SDX_TESTS_MAKE_MODEL_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "proto/onnx.h"

enum { MAKE_MAX = 32, MAKE_RANK = 4 };

/* A graph under construction. Names are literals. */
struct make {
    struct sdx_onnx_graph graph;
    struct sdx_onnx_node nodes[MAKE_MAX];
    struct sdx_onnx_tensor initializers[MAKE_MAX];
    struct sdx_onnx_value_info inputs[MAKE_MAX], outputs[MAKE_MAX];
    struct sdx_onnx_type types[2 * MAKE_MAX];
    struct sdx_onnx_dim dims[2 * MAKE_MAX][MAKE_RANK];
    struct sdx_str names[MAKE_MAX][4 * MAKE_RANK];
    struct sdx_onnx_attr attrs[MAKE_MAX][MAKE_RANK];
    int64_t init_dims[MAKE_MAX][MAKE_RANK];
    int count_types;
    int64_t opset; /* 0: 17 */
    struct sdx_onnx_function *functions;
    int32_t count_functions;
    bool has_contrib; /* imports com.microsoft */
};

static inline void make_init(struct make *m)
{
    memset(m, 0, sizeof *m);
    m->graph.name = SDX_STR("g");
    m->graph.nodes.at = m->nodes;
    m->graph.initializers.at = m->initializers;
    m->graph.inputs.at = m->inputs;
    m->graph.outputs.at = m->outputs;
}

/* rank -1: no shape; a length of -1 is the symbol "N". */
static inline struct sdx_onnx_value_info make_info(struct make *m, const char *name, int dtype,
                                                   int rank, const int64_t *dims)
{
    int t = m->count_types++;
    struct sdx_onnx_type *type = &m->types[t];
    *type = (struct sdx_onnx_type){.which = SDX_TYPE_TENSOR,
                                   .elem_type = dtype,
                                   .has_shape = rank >= 0,
                                   .dims = m->dims[t],
                                   .rank = rank < 0 ? 0 : rank};
    for (int d = 0; d < rank; d++) {
        m->dims[t][d].which = dims[d] < 0 ? SDX_DIM_PARAM : SDX_DIM_VALUE;
        m->dims[t][d].value = dims[d];
        m->dims[t][d].param = SDX_STR("N");
    }
    return (struct sdx_onnx_value_info){.name = sdx_str(name), .type = type};
}

static inline void make_input(struct make *m, const char *name, int dtype, int rank,
                              const int64_t *dims)
{
    m->inputs[m->graph.inputs.count++] = make_info(m, name, dtype, rank, dims);
}

static inline void make_output(struct make *m, const char *name, int dtype, int rank,
                               const int64_t *dims)
{
    m->outputs[m->graph.outputs.count++] = make_info(m, name, dtype, rank, dims);
}

/* `data` must outlive the writing. */
static inline void make_initializer(struct make *m, const char *name, int dtype, int rank,
                                    const int64_t *dims, const void *data, size_t bytes)
{
    int i = m->graph.initializers.count++;
    for (int d = 0; d < rank; d++)
        m->init_dims[i][d] = dims[d];
    m->initializers[i] = (struct sdx_onnx_tensor){.name = sdx_str(name),
                                                  .data_type = dtype,
                                                  .has_raw = true,
                                                  .dims = {m->init_dims[i], rank},
                                                  .raw = {data, bytes}};
}

/* names: inputs, then "->", then outputs: "x w -> y". Returns the node for attributes. */
static inline struct sdx_onnx_node *make_node(struct make *m, const char *op, const char *names)
{
    int n = m->graph.nodes.count++, count = 0;
    struct sdx_onnx_node *node = &m->nodes[n];
    *node = (struct sdx_onnx_node){.op_type = sdx_str(op), .name = sdx_str(op)};
    node->inputs.at = node->outputs.at = m->names[n];
    node->attrs.at = m->attrs[n];
    bool out = false;
    while (*names) {
        size_t len = strcspn(names, " ");
        if (len == 2 && memcmp(names, "->", 2) == 0) {
            out = true;
            node->outputs.at = &m->names[n][count];
        } else if (len) {
            m->names[n][count++] = (struct sdx_str){names, len == 1 && *names == '_' ? 0 : len};
            if (out)
                node->outputs.count++;
            else
                node->inputs.count++;
        }
        names += len + (names[len] == ' ');
    }
    return node;
}

static inline void make_attr_int(struct sdx_onnx_node *node, const char *name, int64_t v)
{
    node->attrs.at[node->attrs.count++] =
        (struct sdx_onnx_attr){.name = sdx_str(name), .type = SDX_ATTR_INT, .has_i = true, .i = v};
}

static inline void make_attr_graph(struct sdx_onnx_node *node, const char *name, struct make *body)
{
    node->attrs.at[node->attrs.count++] =
        (struct sdx_onnx_attr){.name = sdx_str(name), .type = SDX_ATTR_GRAPH, .g = &body->graph};
}

/* Writes the model; `path` gets room for at least 64 bytes. */
static inline void make_write(struct make *m, char *path, size_t size)
{
    sdx_context *cx = sdx_context_create(NULL);
    struct sdx_onnx_opset opsets[2] = {
        {.version = m->opset ? m->opset : 17},
        {.domain = m->has_contrib ? SDX_STR("com.microsoft") : SDX_STR("local"), .version = 1}};
    struct sdx_onnx_model model = {.ir_version = 8,
                                   .has_ir_version = true,
                                   .graph = &m->graph,
                                   .opsets = {opsets, m->count_functions || m->has_contrib ? 2 : 1},
                                   .functions = m->functions,
                                   .count_functions = m->count_functions};
    struct sdx_file_writer writer;
    snprintf(path, size, "/tmp/sdx_test_%ld_%p.onnx", (long)getpid(), (void *)m);
    if (sdx_file_writer_open(cx, path, &writer) || sdx_onnx_write_model(cx, &model, &writer) ||
        sdx_file_writer_close(&writer)) {
        fprintf(stderr, "make_write: %s\n", sdx_error(cx));
        abort();
    }
    sdx_context_destroy(cx);
}
#endif
