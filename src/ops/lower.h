/* SPDX-License-Identifier: Apache-2.0
 * Lowerings: an operator as a few others. Builds nodes into the node's graph; the pass `lower`
 * calls it and repeats until nothing is left to lower. */
#ifndef SDX_OPS_LOWER_H
#define SDX_OPS_LOWER_H

#include "ops/op.h"

struct sdx_lower {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_ir_graph *graph;
    int32_t node; /* being replaced (nodes may move: use the index) */
    int64_t opset;
    enum sdx_status status; /* the first failure; later calls do nothing then */
    bool is_postponed; /* set by a lowering that must wait for others' types: it is called again */
};

const struct sdx_ir_node *sdx_lower_node(const struct sdx_lower *lx);
int32_t sdx_lower_input(const struct sdx_lower *lx, int i); /* value, -1: left out */
const struct sdx_type *sdx_lower_type(const struct sdx_lower *lx,
                                      int i); /* of input i, as inferred */
/* New node of the standard's domain at the model's opset; returns its only output. -1 inputs: left
 * out. */
int32_t sdx_lower_op(struct sdx_lower *lx, const char *op, int count, const int32_t *inputs);
static inline int32_t sdx_lower_unary(struct sdx_lower *lx, const char *op, int32_t a)
{
    return sdx_lower_op(lx, op, 1, &a);
}
static inline int32_t sdx_lower_binary(struct sdx_lower *lx, const char *op, int32_t a, int32_t b)
{
    const int32_t in[] = {a, b};
    return sdx_lower_op(lx, op, 2, in);
}
/* The same with `count_out` outputs in out[]. */
void sdx_lower_op_outputs(struct sdx_lower *lx, const char *op, int count, const int32_t *inputs,
                          int count_out, int32_t *out);
/* New node of com.microsoft. */
int32_t sdx_lower_contrib(struct sdx_lower *lx, const char *op, int count, const int32_t *inputs);
/* The node made last gets the attributes of the node but `skip` (NULL: all). */
void sdx_lower_attrs(struct sdx_lower *lx, const char *skip);
void sdx_lower_attr_int(struct sdx_lower *lx, const char *name,
                        int64_t v); /* on the node made last */
void sdx_lower_attr_ints(struct sdx_lower *lx, const char *name, int64_t count, const int64_t *v);
void sdx_lower_attr_float(struct sdx_lower *lx, const char *name, float v);
void sdx_lower_attr_str(struct sdx_lower *lx, const char *name, const char *v); /* a literal */
/* Constants: a scalar; one of input i's element type; a list of int64. */
int32_t sdx_lower_scalar(struct sdx_lower *lx, int dtype, double v);
int32_t sdx_lower_scalar_like(struct sdx_lower *lx, int i, double v);
int32_t sdx_lower_ints(struct sdx_lower *lx, int64_t count, const int64_t *v);
/* Output k of the node becomes `value`, which takes its name when it is new. */
void sdx_lower_output(struct sdx_lower *lx, int k, int32_t value);
#endif
