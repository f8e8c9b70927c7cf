/* SPDX-License-Identifier: Apache-2.0
 * The other side of ops/step.h: what a planner or evaluator provides to `prepare`, and the
 * evaluation of one node whose inputs are known. */
#ifndef SDX_OPS_STEP_HOST_H
#define SDX_OPS_STEP_HOST_H

#include "ops/op.h"

/* A body made ready to run; the run layer puts this first in its own struct. */
struct sdx_body {
    enum sdx_status (*run)(struct sdx_exec *x, struct sdx_body *body, int count_in,
                           const struct sdx_tensor *const *in, struct sdx_tensor *const **out);
};

/* Steps and temporaries collected from prepare, in order. Arrays grow in the arena. */
struct sdx_step_list {
    struct sdx_arena *arena;
    struct sdx_step *steps;
    int32_t count, capacity;
    struct sdx_temp {
        struct sdx_tensor *tensor;
        int32_t node;
    } * temps;
    int32_t count_temps, capacity_temps;
    int32_t node; /* index that new steps and temps get */
};

struct sdx_prepare_host {
    struct sdx_step_list *list;
    const struct sdx_tensor *(*value)(struct sdx_prepare *px, int i);
    /* The packed form of a constant; `in_model` ones are shared and kept by the model. */
    const void *(*pack)(struct sdx_prepare *px, const struct sdx_tensor *constant,
                        const struct sdx_pack *pack);
    /* NULL: nothing is dropped. */
    void (*drop)(struct sdx_prepare *px, const void *bytes, size_t size);
    struct sdx_body *(*body)(struct sdx_prepare *px, int32_t graph); /* NULL: error is set */
    struct sdx_node *(*custom)(struct sdx_prepare *px); /* the node, with what `create` made */
    int (*choose)(struct sdx_prepare *px, const struct sdx_choice *choice); /* NULL: untuned */
    void *user;
};

/* Calls the operator's prepare; for SDX_OP_VIA_F32 rows narrow floats are converted around it.
 * px->host is a struct sdx_prepare_host. */
SDX_MUST_CHECK enum sdx_status sdx_op_prepare_node(struct sdx_prepare *px, const struct sdx_op *op);

/* New tensor header in the arena with these dims and no data. NULL: no memory, or sizes overflow
 * (error is set). */
struct sdx_tensor *sdx_op_tensor(struct sdx_context *cx, struct sdx_arena *arena, int dtype,
                                 int rank, const int64_t *dims);
/* Frees what a header owns (its data, items) and leaves it without data. */
void sdx_op_tensor_clear(struct sdx_tensor *t);

/* Evaluates one node with all inputs known, on this thread. Outputs come as constants in `arena`.
 * *done is false, without failure, when the node cannot be evaluated here: bodies, impure, outputs
 * that are not tensors or larger than `limit` bytes together. */
SDX_MUST_CHECK enum sdx_status sdx_op_eval(struct sdx_context *cx, struct sdx_arena *arena,
                                           const struct sdx_ir *ir, const struct sdx_ir_node *node,
                                           const struct sdx_tensor *const *in,
                                           struct sdx_tensor **out, size_t limit, bool *done);
#endif
