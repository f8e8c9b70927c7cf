/* SPDX-License-Identifier: Apache-2.0
 * Tensors with room to grow on one axis (SDX_LAYOUT_GROWING): a decoder's keys and values of the
 * tokens so far. Rows of new positions are written behind the old ones, which stay where they are.
 */
#include "tensor/tensor.h"

enum sdx_status sdx_tensor_new_growing(struct sdx_context *cx, int dtype, int rank,
                                       const int64_t *dims, int axis, int64_t capacity,
                                       struct sdx_tensor **out)
{
    int64_t memory[SDX_RANK_INLINE];
    *out = NULL;
    if (dtype == SDX_STRING || (sdx_dtype_is_valid(dtype) && sdx_dtype_bits(dtype) < 8))
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "a tensor of type %s cannot grow",
                        sdx_dtype_name(dtype));
    if (rank < 1 || rank > SDX_RANK_INLINE)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "a growing tensor has rank %d, expected 1 to %d",
                        rank, SDX_RANK_INLINE);
    if (axis < 0 || axis >= rank)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "axis %d, expected 0 to %d", axis, rank - 1);
    if (dims[axis] < 0 || dims[axis] > capacity)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "length %lld, expected 0 to the capacity, %lld",
                        (long long)dims[axis], (long long)capacity);
    memcpy(memory, dims, (size_t)rank * sizeof *dims);
    memory[axis] = capacity;
    SDX_TRY(sdx_tensor_new(cx, dtype, rank, memory, out));
    (*out)->layout = SDX_LAYOUT_GROWING;
    (*out)->axis = (uint8_t)axis;
    (*out)->capacity = capacity;
    sdx_tensor_grow_to(*out, dims[axis]);
    return SDX_OK;
}

void sdx_tensor_grow_to(struct sdx_tensor *growing, int64_t length)
{
    SDX_ASSERT(growing->layout == SDX_LAYOUT_GROWING && growing->dims == growing->dims_inline);
    SDX_ASSERT(length >= 0 && length <= growing->capacity);
    growing->dims_inline[growing->axis] = length;
    growing->count = 1;
    for (int d = 0; d < growing->rank; d++)
        growing->count *= growing->dims[d];
}

void sdx_tensor_lie_as(struct sdx_tensor *t, const struct sdx_tensor *like)
{
    SDX_ASSERT(t->rank == like->rank && t->dtype == like->dtype);
    t->layout = SDX_LAYOUT_GROWING;
    t->axis = like->axis;
    t->capacity = like->capacity;
    t->bytes = like->bytes;
}

static int axis_of(const struct sdx_tensor *from, const struct sdx_tensor *to)
{
    return from->layout == SDX_LAYOUT_GROWING ? from->axis : to->axis;
}

int64_t sdx_tensor_copy_parts(const struct sdx_tensor *from, const struct sdx_tensor *to)
{
    int64_t parts = from->count ? 1 : 0;
    for (int d = 0; d < axis_of(from, to) && parts; d++)
        parts *= from->dims[d];
    return parts;
}

void sdx_tensor_copy(const struct sdx_tensor *from, const struct sdx_tensor *to, int64_t begin,
                     int64_t end)
{
    const int axis = axis_of(from, to);
    SDX_ASSERT(from->layout != SDX_LAYOUT_GROWING || to->layout != SDX_LAYOUT_GROWING ||
               from->axis == to->axis);
    size_t row = (size_t)sdx_dtype_bits(from->dtype) / 8; /* bytes of a position */
    for (int d = axis + 1; d < from->rank; d++)
        row *= (size_t)from->dims[d];
    const size_t size = row * (size_t)from->dims[axis];
    const size_t step_from = row * (size_t)sdx_tensor_pitch(from, axis);
    const size_t step_to = row * (size_t)sdx_tensor_pitch(to, axis);
    for (int64_t i = begin; i < end; i++)
        memcpy((char *)to->data + (size_t)i * step_to,
               (const char *)from->data + (size_t)i * step_from, size);
}
