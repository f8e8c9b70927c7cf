/* SPDX-License-Identifier: Apache-2.0
 * The conversion of a model from one version of a domain to another, on its messages: what the
 * adapters of operators (adapt.h) see and the building blocks they use. A step takes one graph,
 * body or function from a version to the next one up or down; in it every node is adapted once. */
#ifndef SDX_CONVERT_REWRITE_H
#define SDX_CONVERT_REWRITE_H

#include "ir/ir.h"
#include "proto/tensor_data.h"

struct sdx_rewrite_value {
    const struct sdx_type *type;            /* NULL: not known */
    const struct sdx_onnx_tensor *constant; /* NULL: none */
    int32_t ir_value;                       /* in the scope's graph of the IR; -1: none */
    bool moved;                             /* an adapter has taken its content: may go */
};

/* A graph, a body or a function, with the names made in it. */
struct sdx_rewrite_scope {
    struct sdx_rewrite_scope *parent;
    struct sdx_onnx_graph *graph;       /* NULL: of a function */
    struct sdx_onnx_function *function; /* NULL: of a graph */
    struct sdx_onnx_nodes *nodes;
    struct sdx_map names; /* to sdx_rewrite.values */
    int64_t version;
    int32_t ir_graph; /* -1: not known to the IR */
};

struct sdx_rewrite_list {
    struct sdx_onnx_node *at;
    int32_t count, capacity;
};

struct sdx_rewrite {
    struct sdx_context *cx;
    struct sdx_arena *arena;
    struct sdx_external *external;
    struct sdx_onnx_model *model; /* a copy that may be changed: graphs, nodes, attributes */
    const struct sdx_ir *ir;      /* with types; NULL: nothing is known */
    struct sdx_str domain;        /* "" for ai.onnx */
    struct sdx_map taken;         /* every name of the model */
    int64_t count_fresh;
    struct sdx_rewrite_scope **scopes;
    int32_t count_scopes, capacity_scopes;
    struct sdx_rewrite_value *values;
    int32_t count_values, capacity_values;
    enum sdx_status status; /* the first failure of a building block */
    /* The step, and its node: adapters change it in place, put nodes before and after it, or set
     * `drop`. */
    int64_t from, to;
    struct sdx_rewrite_scope *scope;
    struct sdx_onnx_node *node;
    bool drop;
    struct sdx_rewrite_list done, after; /* `done` ends with the nodes before this one */
    struct sdx_onnx_node spare;          /* handed out when there is no memory */
    struct sdx_str spare_name;
};

/* "node "x" (Op): opset 13 to 12: why". */
enum sdx_status sdx_rewrite_refuse(struct sdx_rewrite *rx, const char *format, ...)
    SDX_PRINTF(2, 3);

/* ---- what is known ---- */
static inline struct sdx_str sdx_rewrite_input(const struct sdx_rewrite *rx, int i)
{
    return i < rx->node->inputs.count ? rx->node->inputs.at[i] : SDX_STR("");
}
static inline struct sdx_str sdx_rewrite_output(const struct sdx_rewrite *rx, int i)
{
    return i < rx->node->outputs.count ? rx->node->outputs.at[i] : SDX_STR("");
}
const struct sdx_type *sdx_rewrite_type(const struct sdx_rewrite *rx, struct sdx_str name);
int sdx_rewrite_dtype(const struct sdx_rewrite *rx, struct sdx_str name); /* 0: not known */
int sdx_rewrite_rank(const struct sdx_rewrite *rx, struct sdx_str name);  /* -1: not known */
/* NULL: not known; a dimension below 0 is not known or a symbol. */
const int64_t *sdx_rewrite_dims(const struct sdx_rewrite *rx, struct sdx_str name);
/* The content of a constant of integers (rank 0 or 1); false: it is none. */
bool sdx_rewrite_ints(struct sdx_rewrite *rx, struct sdx_str name, const int64_t **v,
                      int64_t *count);
/* The same of numbers of any type. */
bool sdx_rewrite_floats(struct sdx_rewrite *rx, struct sdx_str name, const float **v,
                        int64_t *count);
/* The content of the constant now stands elsewhere. */
void sdx_rewrite_moved(struct sdx_rewrite *rx, struct sdx_str name);
void sdx_rewrite_set_type(struct sdx_rewrite *rx, struct sdx_str name, const struct sdx_type *type);

/* The type of `like`, with another element type. */
void sdx_rewrite_set_like(struct sdx_rewrite *rx, struct sdx_str name, struct sdx_str like,
                          int dtype);

/* ---- attributes ---- */
struct sdx_onnx_attr *sdx_rewrite_attr(const struct sdx_onnx_node *node, const char *name);
int64_t sdx_rewrite_attr_int(const struct sdx_onnx_node *node, const char *name, int64_t fallback);
float sdx_rewrite_attr_float(const struct sdx_onnx_node *node, const char *name, float fallback);
bool sdx_rewrite_attr_is(const struct sdx_onnx_node *node, const char *name, const char *text,
                         bool fallback); /* fallback: there is none */
void sdx_rewrite_remove(struct sdx_onnx_node *node, const char *name);
/* Adds or replaces; NULL: no memory (the failure is held). */
struct sdx_onnx_attr *sdx_rewrite_set(struct sdx_rewrite *rx, struct sdx_onnx_node *node,
                                      const char *name, enum sdx_attr_type type);
void sdx_rewrite_set_int(struct sdx_rewrite *rx, struct sdx_onnx_node *node, const char *name,
                         int64_t v);
void sdx_rewrite_set_float(struct sdx_rewrite *rx, struct sdx_onnx_node *node, const char *name,
                           float v);
void sdx_rewrite_set_str(struct sdx_rewrite *rx, struct sdx_onnx_node *node, const char *name,
                         const char *text);
void sdx_rewrite_set_ints(struct sdx_rewrite *rx, struct sdx_onnx_node *node, const char *name,
                          int64_t count, const int64_t *v);
void sdx_rewrite_set_floats(struct sdx_rewrite *rx, struct sdx_onnx_node *node, const char *name,
                            int64_t count, const float *v);

/* ---- nodes and values ---- */
struct sdx_str sdx_rewrite_fresh(struct sdx_rewrite *rx, struct sdx_str what);
void sdx_rewrite_set_input(struct sdx_rewrite *rx, int i, struct sdx_str name);
void sdx_rewrite_trim_inputs(struct sdx_rewrite *rx, int most); /* and empty ones at the end */
/* Output k gets a fresh name; returns the old one, which a node behind must make. */
struct sdx_str sdx_rewrite_take_output(struct sdx_rewrite *rx, int k);
/* A node of the standard before (after) this one, at the version of the step's end; `output` "":
 * a fresh name. It has one output, and up to three inputs: those up to the last that is not "". */
struct sdx_onnx_node *sdx_rewrite_before(struct sdx_rewrite *rx, const char *op,
                                         struct sdx_str output, struct sdx_str a, struct sdx_str b,
                                         struct sdx_str c);
struct sdx_onnx_node *sdx_rewrite_after(struct sdx_rewrite *rx, const char *op,
                                        struct sdx_str output, struct sdx_str a, struct sdx_str b,
                                        struct sdx_str c);
/* The same before this one, with `count` inputs. */
struct sdx_onnx_node *sdx_rewrite_add(struct sdx_rewrite *rx, struct sdx_str op,
                                      struct sdx_str output, int count, const struct sdx_str *in);
#define SDX_NONE SDX_STR("")
static inline struct sdx_str sdx_rewrite_out(const struct sdx_onnx_node *node)
{
    return node->outputs.at[0];
}
/* Constants: nodes, or initializers where the version has no Constant of the type. */
struct sdx_str sdx_rewrite_const(struct sdx_rewrite *rx, int dtype, int rank, int64_t count,
                                 const void *data);
struct sdx_str sdx_rewrite_const_ints(struct sdx_rewrite *rx, int64_t count, const int64_t *v);
struct sdx_str sdx_rewrite_const_int(struct sdx_rewrite *rx, int64_t v); /* rank 0 */
struct sdx_str sdx_rewrite_const_number(struct sdx_rewrite *rx, int dtype, int rank, double v);
/* With the input that IR versions before 4 want beside it. */
void sdx_rewrite_add_initializer(struct sdx_rewrite *rx, struct sdx_onnx_graph *graph,
                                 const struct sdx_onnx_tensor *tensor);
/* Reshape, Squeeze, Unsqueeze and Cast as the step's end writes them. */
struct sdx_str sdx_rewrite_reshape(struct sdx_rewrite *rx, struct sdx_str x, int64_t count,
                                   const int64_t *shape);
struct sdx_onnx_node *sdx_rewrite_squeeze(struct sdx_rewrite *rx, const char *op, bool after,
                                          struct sdx_str output, struct sdx_str x, int64_t count,
                                          const int64_t *axes);
struct sdx_onnx_node *sdx_rewrite_cast(struct sdx_rewrite *rx, bool after, struct sdx_str output,
                                       struct sdx_str x, int dtype);
/* The scope of a new body, inside that of the node. NULL: no memory. */
struct sdx_rewrite_scope *sdx_rewrite_scope_add(struct sdx_rewrite *rx,
                                                struct sdx_rewrite_scope *parent);
/* The entry of a name in a scope, made when there is none; NULL: no memory. */
struct sdx_rewrite_value *sdx_rewrite_value(struct sdx_rewrite *rx, struct sdx_rewrite_scope *scope,
                                            struct sdx_str name);
#endif
