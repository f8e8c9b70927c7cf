/* SPDX-License-Identifier: Apache-2.0
 * What the files of the message checker share: the place of a fault and the names in scope. */
#ifndef SDX_OPS_CHECK_MESSAGES_H
#define SDX_OPS_CHECK_MESSAGES_H

#include "ops/check.h"
#include "ops/schema.h"
#include "proto/tensor_data.h"

/* Lists that are searched in a line may not be longer: operator sets imported, attributes of a node
 * or of a function. */
enum { SDX_CHECK_LIST_MAX = 256 };

/* Where we are: printed, when there is a fault, from the outside in, each followed by ": ". */
struct sdx_check_place {
    const struct sdx_check_place *outer;
    const char *what;        /* "node", "input", ... */
    struct sdx_str name, op; /* what "name" (op) */
};

/* The names that a graph or function makes, each with the number of the node that makes it, plus
 * one; 0: there from the beginning. */
struct sdx_check_scope {
    const struct sdx_check_scope *outer;
    struct sdx_map names;
    int32_t node; /* the one that is being checked */
};

struct sdx_check {
    struct sdx_context *cx;
    struct sdx_arena *arena;
    struct sdx_external *ex;
    const struct sdx_onnx_model *model;
    const struct sdx_onnx_function *function; /* whose nodes are checked; NULL: the model's */
    struct sdx_map functions;                 /* key to index */
    struct sdx_text key, text;
    struct sdx_faults *faults;
    bool out_of_memory;
};

/* Reports one fault: the place, then the text. */
void sdx_check_fault(struct sdx_check *c, const struct sdx_check_place *place, const char *format,
                     ...) SDX_PRINTF(3, 4);
/* Index of the function with this key; -1: none. */
int32_t sdx_check_find_function(struct sdx_check *c, struct sdx_str domain, struct sdx_str name,
                                struct sdx_str overload);
void sdx_check_type(struct sdx_check *c, const struct sdx_check_place *place,
                    const struct sdx_onnx_type *type);
void sdx_check_tensor(struct sdx_check *c, const struct sdx_check_place *place,
                      const struct sdx_onnx_tensor *tensor);
void sdx_check_sparse(struct sdx_check *c, const struct sdx_check_place *place,
                      const struct sdx_onnx_sparse *sparse);
/* The imports of the model or of a function. */
void sdx_check_opsets(struct sdx_check *c, const struct sdx_check_place *place,
                      const struct sdx_onnx_opsets *opsets);
/* A body, or the main graph where outer is NULL. */
void sdx_check_graph(struct sdx_check *c, const struct sdx_check_place *place,
                     const struct sdx_check_scope *outer, const struct sdx_onnx_graph *graph);
/* The nodes of a graph or function, whose other names are in the scope: declares what they make,
 * then checks each. */
void sdx_check_nodes(struct sdx_check *c, const struct sdx_check_place *place,
                     struct sdx_check_scope *scope, const struct sdx_onnx_nodes *nodes);
/* Adds a name; false: it is there already. */
bool sdx_check_declare(struct sdx_check *c, struct sdx_check_scope *scope, struct sdx_str name,
                       int32_t order);
bool sdx_check_is_visible(const struct sdx_check_scope *scope, struct sdx_str name);
/* Is the domain one whose operators the standard defines? */
bool sdx_check_is_standard(struct sdx_str domain);
/* ---- check_rules.c: what the operator itself wants of its attributes and ranks ---- */
SDX_MUST_CHECK enum sdx_status sdx_check_rules(struct sdx_context *cx, const struct sdx_ir *ir,
                                               const struct sdx_ir_graph *graph,
                                               const struct sdx_ir_node *node);
/* ---- check_function.c ---- */
void sdx_check_functions(struct sdx_check *c);
#endif
