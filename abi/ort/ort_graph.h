/* SPDX-License-Identifier: Apache-2.0
 * Models that programs make: what the model editor builds and Graph_*, Node_*, ValueInfo_* read. */
#ifndef SDX_ABI_ORT_GRAPH_H
#define SDX_ABI_ORT_GRAPH_H

#include "ort_bytes.h"
#include "ort_objects.h"
#include "ort_opattr.h"

struct OrtValueInfo {
    char *name;
    OrtTypeInfo *type;     /* NULL: not told */
    const OrtGraph *graph; /* it belongs to; NULL: the program */
};

struct OrtNode {
    char *op, *domain, *name;
    char **inputs, **outputs;
    size_t count_inputs, count_outputs;
    OrtOpAttr **attributes;
    size_t count_attributes;
    const OrtGraph *graph; /* NULL: not in one */
    size_t id;
};

/* `info` is one of the graph's `others`. */
struct ort_graph_initializer {
    OrtValueInfo *info;
    OrtValue *value; /* owned */
    bool is_external;
};

struct OrtGraph {
    OrtValueInfo **inputs, **outputs; /* owned */
    size_t count_inputs, count_outputs;
    OrtValueInfo **others; /* of every name that is no input or output; owned */
    size_t count_others;
    OrtNode **nodes; /* owned */
    size_t count_nodes;
    struct ort_graph_initializer *initializers;
    size_t count_initializers;
    const OrtModel *model; /* NULL: not in one */
};

struct OrtModel {
    char **domains;
    int64_t *versions;
    size_t count_domains;
    OrtGraph *graph; /* owned; NULL: none */
};

enum { ORT_EDITOR_IR_VERSION = 10 };

OrtStatusPtr ort_value_info_create(const char *name, const OrtTypeInfo *type, OrtValueInfo **out);
void ort_value_info_free(OrtValueInfo *info);
void ort_node_free(OrtNode *node);
void ort_graph_free(OrtGraph *graph);
void ort_model_free(OrtModel *model);
/* The value of that name in the graph; NULL: there is none. */
const OrtValueInfo *ort_graph_value(const OrtGraph *graph, const char *name);

/* The bytes of a ModelProto. Data of initializers that the program keeps is left out: the caller
 * gives these values to the session. */
OrtStatusPtr ort_model_write(const OrtModel *model, struct ort_bytes *out);
/* The same as an addition to the model in `bytes`: nodes and initializers behind those it has,
 * inputs and outputs in place of its own where the addition has any. */
OrtStatusPtr ort_model_merge(const void *bytes, size_t size, const OrtModel *more,
                             struct ort_bytes *out);
#endif
