/* SPDX-License-Identifier: Apache-2.0
 * What the families that move data share: strided copies of elements of any size, steps that hide
 * strings and packed types from their kernels, and small helpers for shapes. */
#ifndef SDX_OPS_MOVE_H
#define SDX_OPS_MOVE_H

#include "ops/infer.h"
#include "ops/step.h"

enum { SDX_MOVE_RANK = 2 * SDX_RANK_MAX };

/* A copy of an n-dimensional box: dims with source and destination strides (elements, may be 0 or
 * negative for the source). Made once; run over units 0 .. units-1 in any split. */
struct sdx_move {
    size_t size;            /* bytes of an element: 1, 2, 4, 8 or 16 */
    int64_t src_at, dst_at; /* first element */
    int64_t block, blocks;  /* of the axis `split` */
    int64_t units;          /* outer indices x blocks; 0: nothing to copy */
    int32_t rank, outer;    /* axes 0 .. outer-1 are looped over; the rest is the inner kernel's */
    int32_t split, kernel;  /* private */
    int64_t dims[SDX_MOVE_RANK], src[SDX_MOVE_RANK], dst[SDX_MOVE_RANK];
};
void sdx_move_init(struct sdx_move *m, size_t size, int rank, const int64_t *dims,
                   const int64_t *src, const int64_t *dst, int64_t src_at, int64_t dst_at);
void sdx_move_run(const struct sdx_move *m, const void *src, void *dst, int64_t begin, int64_t end);
/* How many parts a move is worth. */
int64_t sdx_move_parts(const struct sdx_move *m);
/* Row-major strides in elements. */
void sdx_move_strides(int rank, const int64_t *dims, int64_t *strides);
/* Product of dims[from .. to). Wraps where a length of 0 elsewhere makes it meaningless. */
static inline int64_t sdx_move_product(const int64_t *dims, int from, int to)
{
    uint64_t n = 1;
    for (int i = from; i < to; i++)
        n *= (uint64_t)dims[i];
    return (int64_t)n;
}
/* n elements of `size` bytes (1, 2, 4, 8 or 16), each a copy of *value. */
void sdx_move_fill(void *dst, size_t size, const void *value, int64_t n);
/* Few elements of `size` bytes (1, 2, 4, 8 or 16) in each of many rows, column by column: in row r
 * element k < n from src + r * row_src + at[k] to dst + r * row_dst + k * step_dst, all in bytes.
 */
void sdx_move_columns(size_t size, const void *src, int64_t row_src, const int64_t *at, int64_t n,
                      void *dst, int64_t row_dst, int64_t step_dst, int64_t rows);
/* memcpy of what is short as a rule. */
void sdx_move_bytes(void *dst, const void *src, size_t bytes);
/* One element, of 4 bytes mostly. */
static inline void sdx_move_one(void *dst, const void *src, size_t size)
{
    if (SDX_LIKELY(size == 4)) {
        memcpy(dst, src, 4);
        return;
    }
    switch (size) {
    case 1: memcpy(dst, src, 1); break;
    case 2: memcpy(dst, src, 2); break;
    case 8: memcpy(dst, src, 8); break;
    default: memcpy(dst, src, size); break;
    }
}

/* Bytes of an element as the kernels of sdx_move_step see it: packed types as one byte, strings as
 * struct sdx_str. */
size_t sdx_move_size(int dtype);
/* Adds the step `run` over the node's operands (output shapes known). Inputs of packed types come
 * as bytes, outputs of packed types are packed afterwards, texts of string outputs set afterwards.
 */
SDX_MUST_CHECK enum sdx_status sdx_move_step(struct sdx_prepare *px, const char *kernel,
                                             sdx_step_fn *run, void *params, int64_t parts,
                                             size_t scratch);
/* The step of one move from input `i` to output 0 (element types equal). */
SDX_MUST_CHECK enum sdx_status sdx_move_add(struct sdx_prepare *px, const char *kernel, int i,
                                            const struct sdx_move *m);
/* Content of input i, which inference needed; fails when the host does not have it. */
SDX_MUST_CHECK enum sdx_status sdx_move_value(struct sdx_prepare *px, int i,
                                              const struct sdx_tensor **out);
/* The same as int64 numbers in the plan's memory. */
SDX_MUST_CHECK enum sdx_status sdx_move_ints(struct sdx_prepare *px, int i, const int64_t **v,
                                             int64_t *count);

/* Inference: output k has `rank` unknown lengths. */
SDX_MUST_CHECK enum sdx_status sdx_move_infer_rank(struct sdx_infer *ix, int k, int rank);
/* Product of lengths, -1 when it cannot be told, a symbol when the others are 1. Fails on overflow.
 */
SDX_MUST_CHECK enum sdx_status sdx_move_dims_product(struct sdx_context *cx, const int64_t *dims,
                                                     int n, int64_t *out);
/* Output 0 has the content of input 0 (of another rank): value propagation. */
SDX_MUST_CHECK enum sdx_status sdx_move_infer_pass_ints(struct sdx_infer *ix);
/* The axes [*begin, *end) that a Shape of a tensor of that rank tells of. */
void sdx_move_shape_range(const struct sdx_ir_node *node, int rank, int *begin, int *end);
/* Contents longer than this are not propagated. */
enum { SDX_MOVE_INTS_MAX = 1024 };
/* Names the node's operator in messages. */
#define SDX_MOVE_OP(ix) SDX_STR_ARG((ix)->node->op_type)

/* An element of an index tensor, which is int32 or int64. */
static inline int64_t sdx_move_index(const struct sdx_tensor *t, int64_t i)
{
    return t->dtype == SDX_I32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
}
#endif
