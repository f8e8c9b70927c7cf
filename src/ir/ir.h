/* SPDX-License-Identifier: Apache-2.0
 * The intermediate representation: graphs of nodes and values in arrays; links are indices, -1 is
 * none. A model is one struct sdx_ir: graph 0 is the main graph, the others are bodies of If, Loop,
 * Scan and their like. Model-local functions are inlined by the import. Values that a body takes
 * from outside are made explicit: the body has a value with `outer` set, and the node that holds
 * the body counts them as inputs. */
#ifndef SDX_IR_IR_H
#define SDX_IR_IR_H

#include "proto/onnx.h"
#include "tensor/tensor.h"

struct sdx_customs; /* ops/custom.h */
struct sdx_op;
struct sdx_external;

struct sdx_ir_attr {
    struct sdx_str name;
    uint8_t type; /* enum sdx_attr_type, never UNDEFINED */
    int64_t i;
    float f;
    struct sdx_str s;
    int64_t count; /* of the list kinds */
    const int64_t *ints;
    const float *floats;
    const struct sdx_str *strings;
    struct sdx_tensor *tensor; /* TENSOR, SPARSE (made dense): a constant */
    struct sdx_tensor **tensors;
    int32_t graph; /* GRAPH: index into sdx_ir.graphs; GRAPHS: `graphs` */
    const int32_t *graphs;
    const struct sdx_type *type_value; /* TYPE */
};

/* In front of the domain of a node whose operator is the caller's own although the library has one
 * of that name: passes do not take it for that. */
#define SDX_IR_HIDDEN "custom:"

struct sdx_ir_node {
    struct sdx_str name, op_type, domain; /* domain "" for ai.onnx */
    const struct sdx_op *op;              /* set by sdx_ops_bind; NULL: not supported */
    int64_t opset;                        /* version imported for the domain */
    int32_t *inputs, *outputs;            /* value indices, -1: left out */
    int32_t count_inputs, count_outputs;
    struct sdx_ir_attr *attrs;
    int32_t count_attrs;
    int32_t *captures; /* values of this graph that bodies of the node take, without repeats */
    int32_t count_captures;
    bool is_dead; /* removed by a pass */
};

enum { SDX_IR_INPUT = 1, SDX_IR_OUTPUT = 2 };

struct sdx_ir_value {
    struct sdx_str name;
    int32_t producer, producer_slot; /* node and its output; -1: graph input, constant or capture */
    int32_t outer;        /* the value of the parent graph that this is; -1: not a capture */
    uint32_t flags;       /* SDX_IR_INPUT, SDX_IR_OUTPUT */
    struct sdx_type type; /* as declared or inferred */
    struct sdx_tensor
        *constant; /* initializer or folded; NULL: none. An input with an initializer has both */
};

/* floor((dim * times * factor + term) / divisor), of symbols, and at most `most`. times 0: without
 * it, only those of sdx_ir_symbol_ratio have it; most 0: any; dim 0: not reckoned from others. */
struct sdx_ir_length {
    int64_t dim, times, factor, term, divisor, most;
};

/* A length that is not known but is the same wherever the symbol stands. */
struct sdx_ir_symbol {
    struct sdx_str name; /* "": none */
    struct sdx_ir_length length;
};

struct sdx_ir_graph {
    struct sdx_str name;
    int32_t parent, parent_node; /* graph and node that hold this body; -1 for the main graph */
    struct sdx_ir_node *nodes;   /* topologically sorted */
    int32_t count_nodes, capacity_nodes;
    struct sdx_ir_value *values;
    int32_t count_values, capacity_values;
    int32_t *inputs, *outputs; /* values; a value may be both, or an output twice */
    int32_t count_inputs, count_outputs;
};

struct sdx_ir {
    struct sdx_context *cx;  /* while it is built */
    struct sdx_arena *arena; /* everything lives here */
    struct sdx_ir_graph *graphs;
    int32_t count_graphs, capacity_graphs;
    const struct sdx_onnx_opset *opsets;
    int32_t count_opsets;
    int64_t ir_version;
    const struct sdx_customs *customs; /* operators that the caller gives; NULL: none */
    struct sdx_ir_symbol *symbols;     /* symbol k is dimension -(k + 2) */
    int32_t count_symbols, capacity_symbols;
    struct sdx_map symbol_map, length_map; /* by name; by struct sdx_ir_length */
    /* A constant that is not read any more, or not soon; NULL: nobody wants to know. */
    void (*drop)(void *user, const struct sdx_tensor *constant);
    void *user;
};

/* Bounds of what inlining may make; a model beyond them is refused with a line that names the
 * bound. */
enum { SDX_IR_NODES_MAX = 4000000, SDX_IR_CALL_DEPTH_MAX = 64, SDX_IR_BODY_DEPTH_MAX = 64 };

/* From the message to the IR: resolves names (scopes, captures), sorts, inlines functions, imports
 * initializers and tensor attributes through `ex`. Fails on undefined or doubly defined names,
 * cycles, recursion, duplicate functions. The message, its bytes and `arena` must outlive the IR.
 */
SDX_MUST_CHECK enum sdx_status sdx_ir_import(struct sdx_context *cx, struct sdx_arena *arena,
                                             struct sdx_external *ex,
                                             const struct sdx_onnx_model *model,
                                             struct sdx_ir **out);
void sdx_ir_deinit(struct sdx_ir *ir); /* the map; the rest goes with the arena */

/* "" for both names of the standard's domain, any other as it is. */
struct sdx_str sdx_ir_domain(struct sdx_str domain);
/* The type of an attribute message (enum sdx_attr_type): as stored, or, where there is none, that
 * of the first field that is set. */
int32_t sdx_ir_attr_infer_type(const struct sdx_onnx_attr *attr);

/* Our own mistakes: indices in range, producer links right, order topological, captures complete,
 * no value produced twice. Returns SDX_INTERNAL with the first fault. Called between passes in
 * tests and debug builds. */
SDX_MUST_CHECK enum sdx_status sdx_ir_verify(struct sdx_context *cx, const struct sdx_ir *ir);
/* One line a node: %name = Op(inputs) {attributes} : types. */
SDX_MUST_CHECK enum sdx_status sdx_ir_print(struct sdx_context *cx, const struct sdx_ir *ir,
                                            sdx_text_fn line, void *user);
/* "float[N,3,?]" into buf. */
const char *sdx_ir_type_describe(const struct sdx_ir *ir, const struct sdx_type *type, char *buf,
                                 size_t size);

/* Name and type of a value as the API tells them; the texts and lists are in `arena`. No optional,
 * no denotations. false: no memory. */
bool sdx_ir_value_describe(const struct sdx_ir *ir, struct sdx_arena *arena, struct sdx_str name,
                           const struct sdx_type *type, struct sdx_value_info *info);

/* `node "conv1" (Conv)`, or `node of "y" (Conv)` after its first output when it has no name: the
 * place in messages. Returns buf. */
const char *sdx_ir_node_describe(const struct sdx_ir_graph *graph, const struct sdx_ir_node *node,
                                 char *buf, size_t size);

/* Building blocks of passes and lowerings. NULL / -1: no memory. Arrays move when they grow: a
 * pointer to a graph is good until the next sdx_ir_graph_create, one to a node or value until the
 * next node or value of its graph. */
int32_t sdx_ir_graph_create(struct sdx_ir *ir, int32_t parent, int32_t parent_node);
/* Room for so many of both, where their number is known: growing leaves what was there before in
 * the arena. Of a graph that has none yet. */
SDX_MUST_CHECK enum sdx_status sdx_ir_reserve(struct sdx_ir *ir, struct sdx_ir_graph *graph,
                                              int32_t nodes, int32_t values);
/* An array in the arena with room for `count` + 1 entries; NULL: no memory. */
void *sdx_ir_array_grow(struct sdx_ir *ir, void *array, int32_t count, int32_t *capacity,
                        size_t size);
int32_t sdx_ir_value_create(struct sdx_ir *ir, struct sdx_ir_graph *graph, struct sdx_str name);
int32_t sdx_ir_symbol(struct sdx_ir *ir,
                      struct sdx_str name); /* the dimension (< -1) of that symbol; 0: no memory */
int64_t sdx_ir_symbol_new(struct sdx_ir *ir); /* one without a name; 0: no memory */
/* The symbol of a length, without `times`, and factor and divisor at least 1; also when it comes by
 * several steps. -1: length.dim is none, numbers are too large, or there is no memory. */
int64_t sdx_ir_symbol_scaled(struct sdx_ir *ir, struct sdx_ir_length length);
/* The product of some lengths (numbers, symbols) over that of others, which divides it: a number or
 * a symbol; 0: it does not. -1 also where the symbols below are not all above, or one is 0. */
int64_t sdx_ir_symbol_ratio(struct sdx_ir *ir, const int64_t *over, int count_over,
                            const int64_t *under, int count_under);
/* The length if each symbol that is reckoned from no other had one of two values that are its own
 * (sample 0, 1), to try what holds for any; never the same in both. -1: there is none. */
int64_t sdx_ir_symbol_sample(const struct sdx_ir *ir, int64_t dim, int sample);
static inline bool sdx_ir_symbol_has_name(const struct sdx_ir *ir, int64_t dim)
{
    return dim < -1 && -(dim + 2) < ir->count_symbols && ir->symbols[-(dim + 2)].name.len > 0;
}
/* A node at the end of `graph` (the caller restores order with sdx_ir_sort) with fresh values as
 * its outputs; inputs are -1, attributes empty, opset 0: the caller fills them. */
struct sdx_ir_node *sdx_ir_node_create(struct sdx_ir *ir, struct sdx_ir_graph *graph,
                                       struct sdx_str domain, struct sdx_str op_type,
                                       int32_t count_inputs, int32_t count_outputs,
                                       int32_t count_attrs);
/* Makes `value` output `slot` of the node, which is number `index` of the graph; -1: left out. */
void sdx_ir_node_set_output(struct sdx_ir_graph *graph, struct sdx_ir_node *node, int32_t index,
                            int32_t slot, int32_t value);
/* Puts nodes in topological order; an order that is right stays, otherwise a node moves up to just
 * before its first consumer. A cycle is SDX_BAD_MODEL with the name of a node on it. */
SDX_MUST_CHECK enum sdx_status sdx_ir_sort(struct sdx_context *cx, struct sdx_ir *ir,
                                           struct sdx_ir_graph *graph);
/* Every use of value `from` (inputs, captures, graph outputs) becomes `to`. Bodies that captured it
 * follow. Names do not: the name of output i of the model is in the message, not in the value. */
void sdx_ir_replace_uses(struct sdx_ir *ir, int32_t graph, int32_t from, int32_t to);
/* Sets the captures of all nodes of the graph from what their bodies take. */
SDX_MUST_CHECK enum sdx_status sdx_ir_update_captures(struct sdx_context *cx, struct sdx_ir *ir,
                                                      int32_t graph);
/* Drops dead nodes and captures that nothing reads (they become values without outer and uses),
 * recomputes captures and holders. A body that no live node holds becomes an empty graph with
 * parent -1. Values keep their indices, nodes do not. */
SDX_MUST_CHECK enum sdx_status sdx_ir_compact(struct sdx_context *cx, struct sdx_ir *ir);
/* uses[v]: how often value v of the graph is read (inputs, captures; a graph output counts one). */
void sdx_ir_count_uses(const struct sdx_ir_graph *graph, int32_t *uses);
/* That array, of the arena. NULL: no memory. */
int32_t *sdx_ir_uses(const struct sdx_ir_graph *graph, struct sdx_arena *arena);
/* For each value the last living node that reads it as an input, -1: none; of the arena. NULL: no
 * memory. */
int32_t *sdx_ir_last_readers(const struct sdx_ir_graph *graph, struct sdx_arena *arena);

/* The bodies of an attribute, none for other kinds. */
const int32_t *sdx_ir_attr_graphs(const struct sdx_ir_attr *attr, int64_t *count);
/* The constant behind a value, seen through captures; NULL: none, or one that a caller may
 * override. */
const struct sdx_tensor *sdx_ir_constant(const struct sdx_ir *ir, int32_t graph, int32_t value);

/* Attributes by name. The getters return `fallback` when absent; types were checked at import and
 * bind. */
const struct sdx_ir_attr *sdx_ir_attr(const struct sdx_ir_node *node,
                                      const char *name); /* NULL: absent */
int64_t sdx_ir_attr_int(const struct sdx_ir_node *node, const char *name, int64_t fallback);
float sdx_ir_attr_float(const struct sdx_ir_node *node, const char *name, float fallback);
struct sdx_str sdx_ir_attr_str(const struct sdx_ir_node *node, const char *name,
                               const char *fallback);
const int64_t *sdx_ir_attr_ints(const struct sdx_ir_node *node, const char *name,
                                int64_t *count); /* NULL: absent */
const float *sdx_ir_attr_floats(const struct sdx_ir_node *node, const char *name, int64_t *count);
const struct sdx_str *sdx_ir_attr_strings(const struct sdx_ir_node *node, const char *name,
                                          int64_t *count);
#endif
