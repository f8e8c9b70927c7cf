/* SPDX-License-Identifier: Apache-2.0
 * What Loop, Scan and SequenceMap keep between trips: carried values, outputs that grow by one
 * element a trip, and slices of scanned inputs. */
#ifndef SDX_OPS_CONTROL_STATE_H
#define SDX_OPS_CONTROL_STATE_H

#include "ops/step.h"

/* Values from one trip to the next. `now` are the operands of the next trip: at first the node's
 * inputs, then handles of our own. */
struct sdx_carried {
    struct sdx_context *cx;
    int count;
    const struct sdx_tensor **now;
    struct sdx_tensor **own; /* NULL: `now` is borrowed */
};
SDX_MUST_CHECK enum sdx_status sdx_carried_init(struct sdx_carried *c, struct sdx_context *cx,
                                                int count);
void sdx_carried_deinit(struct sdx_carried *c);
/* Takes over the body's outputs, which live only until the body runs again and may alias `now`. */
SDX_MUST_CHECK enum sdx_status sdx_carried_update(struct sdx_carried *c,
                                                  struct sdx_tensor *const *from);

/* Tensors of equal shape, one a trip. */
struct sdx_stack {
    struct sdx_context *cx;
    const struct sdx_type *declared; /* what an element is when there was no trip; may be NULL */
    int dtype, rank;
    int64_t dims[SDX_RANK_MAX];
    int64_t each, trips, capacity; /* elements of one; how many; how many fit */
    char *data;                    /* strings: array of struct sdx_str */
    struct sdx_tensor **texts;     /* strings: the owners */
};
void sdx_stack_init(struct sdx_stack *s, struct sdx_context *cx, const struct sdx_type *declared);
void sdx_stack_deinit(struct sdx_stack *s);
SDX_MUST_CHECK enum sdx_status sdx_stack_push(struct sdx_stack *s, const struct sdx_tensor *t);
/* Shape of the stacked tensor, `length` (>= trips) elements along `axis`. */
SDX_MUST_CHECK enum sdx_status sdx_stack_shape(struct sdx_stack *s, int64_t axis, int64_t length,
                                               int *rank, int64_t *dims, int *axis_out);
/* Writes the elements to dst (laid out as sdx_stack_shape says); `reverse`: the last trip first. */
SDX_MUST_CHECK enum sdx_status sdx_stack_write(const struct sdx_stack *s, int axis, int64_t length,
                                               bool reverse, void *dst);
/* Output k of the step becomes the stacked tensor. */
SDX_MUST_CHECK enum sdx_status sdx_stack_output(struct sdx_stack *s, struct sdx_exec *x,
                                                const struct sdx_step *step, int k, int64_t axis,
                                                bool reverse);

/* Element t along an axis of a tensor, as a tensor of one rank less. */
struct sdx_slice {
    struct sdx_tensor head; /* the slice: points into the input or into `buffer` */
    struct sdx_context *cx;
    const struct sdx_tensor *from;
    int axis;
    void *buffer;
    int64_t dims[SDX_RANK_MAX];
};
SDX_MUST_CHECK enum sdx_status sdx_slice_init(struct sdx_slice *s, struct sdx_context *cx,
                                              const struct sdx_tensor *from, int axis);
void sdx_slice_deinit(struct sdx_slice *s);
SDX_MUST_CHECK enum sdx_status sdx_slice_set(struct sdx_slice *s, int64_t t);
#endif
