/* SPDX-License-Identifier: Apache-2.0
 * Operators of the caller's own: rows like the library's, found before them, whose functions call
 * back. What a callback is given, a node or a call of it, is here too. */
#ifndef SDX_OPS_CUSTOM_H
#define SDX_OPS_CUSTOM_H

#include "ops/op.h"

struct sdx_custom_row {
    struct sdx_op op; /* first */
    struct sdx_custom_op given;
    struct sdx_str domain, hidden; /* hidden: what nodes are put into, see sdx_custom_take */
};

struct sdx_customs {
    struct sdx_custom_row *rows;
    int32_t count;
};

/* Checks and copies what the caller gives. The arena must outlive what is made of the model. */
SDX_MUST_CHECK enum sdx_status sdx_customs_create(struct sdx_context *cx, struct sdx_arena *arena,
                                                  int count, const struct sdx_custom_op *const *ops,
                                                  const struct sdx_customs **out);
/* customs NULL: none. opset 0 (the domain is not imported): the first of that name. */
const struct sdx_custom_row *sdx_customs_find(const struct sdx_customs *customs,
                                              struct sdx_str domain, struct sdx_str name,
                                              int64_t opset);
/* The row of a node's operator; NULL: one of the library's, or none. */
const struct sdx_custom_row *sdx_custom_of(const struct sdx_ir_node *node);
/* Binds the node when its operator is one of ir->customs. One that the library has too moves to
 * another domain, where passes do not take it for the library's. */
SDX_MUST_CHECK enum sdx_status sdx_custom_take(struct sdx_context *cx, struct sdx_ir *ir,
                                               struct sdx_ir_node *node);

/* A node as callbacks see it. */
struct sdx_node {
    struct sdx_context *cx; /* gets the failures; not while it runs */
    struct sdx_arena *arena;
    const struct sdx_ir *ir;
    const struct sdx_ir_node *node;
    const struct sdx_custom_row *row;
    int32_t graph; /* the node's */
    char *name;
    struct sdx_value_info *in, *out; /* name NULL: left out */
    struct sdx_attr *attrs;
    struct sdx_infer *ix; /* while it is inferred, else NULL */
    const struct sdx_tensor *(*value)(const struct sdx_node *node, int i);
    const void *host; /* of `value` */
    void *state;      /* what `create` made */
};

/* Describes a node whose inputs have the types `in`, outputs `out` (NULL entries: left out), in
 * n->arena; the caller has set cx, arena, ir and node. */
SDX_MUST_CHECK enum sdx_status sdx_node_describe(struct sdx_node *n,
                                                 const struct sdx_type *const *in,
                                                 const struct sdx_type *const *out);
/* Calls a callback's result `status` what it is: a failure without a text gets one. */
SDX_MUST_CHECK enum sdx_status sdx_custom_result(struct sdx_context *cx, enum sdx_status status,
                                                 const char *callback);

/* One run of it. */
struct sdx_call {
    struct sdx_exec *x;
    const struct sdx_step *step;
    const struct sdx_node *node;
    const bool *is_dynamic; /* outputs whose shape the call gives */
    bool *is_made;
};
#endif
