/* SPDX-License-Identifier: Apache-2.0
 * Between the files of Gradient: what the rule of one operator sees while the graph from xs to y is
 * walked backwards. Rules write nodes of the standard's newest version. */
#ifndef SDX_OPS_GRADIENT_H
#define SDX_OPS_GRADIENT_H

#include "ops/lower.h"

struct sdx_gradient {
    struct sdx_lower *lx;
    int32_t count_values; /* of the arrays below: values that were there before */
    int32_t *grads;       /* of a value: its gradient so far, -1: none */
    bool *needs;          /* a value: depends on xs */
    int32_t node;         /* whose rule runs */
};

typedef void sdx_gradient_rule(struct sdx_gradient *d);
struct sdx_gradient_row {
    const char *op;
    sdx_gradient_rule *rule;
};
/* The rules of a file. */
struct sdx_gradient_rows {
    const struct sdx_gradient_row *rows;
    int count;
};
extern const struct sdx_gradient_rows sdx_gradient_broadcast, sdx_gradient_move,
    sdx_gradient_window, sdx_gradient_linear;
/* That of the unary operators; NULL: op is none of them. */
sdx_gradient_rule *sdx_gradient_find_map(struct sdx_str op);

/* Replaces a node by others that have rules, where that can be: false: it stays. */
bool sdx_gradient_expand(struct sdx_lower *lx, int32_t node);

/* ---- the node whose rule runs ---- */
const struct sdx_ir_node *sdx_gradient_node(const struct sdx_gradient *d);
int32_t sdx_gradient_in(const struct sdx_gradient *d, int i);  /* -1: left out */
int32_t sdx_gradient_out(const struct sdx_gradient *d, int k); /* -1: left out */
int32_t sdx_gradient_of(const struct sdx_gradient *d, int k);  /* of output k; -1: none */
bool sdx_gradient_wants(const struct sdx_gradient *d, int i);  /* input i depends on xs */
const struct sdx_type *sdx_gradient_type(const struct sdx_gradient *d, int32_t value);
/* Adds to the gradient of input i a value of its shape, or of output 0's, which input i was
 * broadcast to. */
void sdx_gradient_give(struct sdx_gradient *d, int i, int32_t value);
void sdx_gradient_give_broadcast(struct sdx_gradient *d, int i, int32_t value);
/* Sums `value`, of the shape of `from`, to the shape of `to`. */
int32_t sdx_gradient_unbroadcast(struct sdx_gradient *d, int32_t value, const struct sdx_type *from,
                                 int32_t to);
/* NOT_SUPPORTED: "Gradient: OP with REASON". */
void sdx_gradient_refuse(struct sdx_gradient *d, const char *reason);

/* ---- nodes; -1 after a failure, which lx keeps ---- */
int32_t sdx_gradient_op1(struct sdx_gradient *d, const char *op, int32_t a);
int32_t sdx_gradient_op2(struct sdx_gradient *d, const char *op, int32_t a, int32_t b);
int32_t sdx_gradient_op3(struct sdx_gradient *d, const char *op, int32_t a, int32_t b, int32_t c);
/* A scalar of the element type of `like`. */
int32_t sdx_gradient_scalar(struct sdx_gradient *d, int32_t like, double v);
int32_t sdx_gradient_reshape_like(struct sdx_gradient *d, int32_t value, int32_t like);
int32_t sdx_gradient_transpose(struct sdx_gradient *d, int32_t value, int count,
                               const int64_t *order);
/* The sum over axes; all where count is 0. */
int32_t sdx_gradient_sum(struct sdx_gradient *d, int32_t value, int count, const int64_t *axes,
                         bool keep);
/* A copy of the node with another input 0 and `outputs` outputs; returns the last of them. */
int32_t sdx_gradient_copy_node(struct sdx_gradient *d, int32_t node, int32_t in0, int outputs);
#endif
