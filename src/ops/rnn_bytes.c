/* SPDX-License-Identifier: Apache-2.0
 * Packing and products of rnn_bytes.h. */
#include "ops/rnn_bytes.h"

#include <math.h>

#include "kernels/qbytes.h"
#include "kernels/vec.h"
#include "ops/product.h"
#include "tensor/convert.h"

enum { ROWS = 96, COLS = SDX_QDOT_COLS }; /* of rows: at a time */
enum { AT_ONCE = 8 }; /* panels whose starts and factors are made together, near to their use */

void sdx_rnn_byte_scale(const float *x, int64_t n, float *scale, int32_t *zero)
{
    const float lo = n > 0 ? fminf(sdx_vec()->f32_reduce_min(x, (size_t)n), 0) : 0;
    const float hi = n > 0 ? fmaxf(sdx_vec()->f32_reduce_max(x, (size_t)n), 0) : 0;
    *scale = hi > lo ? (hi - lo) / 255.0f : 1.0f;
    *zero = (int32_t)rintf(fminf(fmaxf(-lo / *scale, 0), 255));
}

struct pack_arg {
    const struct sdx_rnn_bytes *w;
    const struct sdx_tensor *weights;
    enum sdx_rnn_kind kind;
    int64_t hidden;
    size_t used; /* by pack() */
};

/* Of each direction the columns in their order, one after another; those of no unit are 0. */
static enum sdx_status pack(struct sdx_context *cx, void *dst, void *arg_)
{
    struct pack_arg *arg = arg_;
    const struct sdx_qdot_shape *s = &arg->w->shape;
    const int64_t k = s->run, n = arg->weights->dims[2];
    const bool is_signed = arg->weights->dtype == SDX_I8;
    const size_t count = (size_t)(s->n * k);
    uint8_t *columns = sdx_mem_calloc(cx->mem, SDX_MEM_OTHER, count + 1, 1);
    if (!columns) return SDX_FAIL_MEMORY(cx);
    const struct sdx_qdot_weights from = {
        .w = columns, .is_signed = is_signed, .inner = k, .step_inner = 1, .step_n = k};
    memset(columns, is_signed ? 0 : 0x80, count);
    for (int64_t d = 0; d < arg->weights->dims[0]; d++) {
        const uint8_t *w = (const uint8_t *)arg->weights->data + d * k * n;
        for (int64_t j = 0; j < n; j++) {
            const int gate = (int)(j / arg->hidden);
            uint8_t *to = columns + sdx_rnn_column(arg->kind, gate, j % arg->hidden) * k;
            for (int64_t i = 0; i < k; i++)
                to[i] = w[i * n + j];
        }
        arg->used = sdx_qdot_pack_one(s, &from, dst, arg->w->size, d, arg->weights->dims[0]);
    }
    sdx_mem_free(cx->mem, columns);
    return SDX_OK;
}

static bool check(const void *packed, void *arg_)
{
    const struct pack_arg *arg = arg_;
    for (int64_t d = 0; d < arg->weights->dims[0]; d++)
        if (!sdx_qdot_check(&arg->w->shape, (const char *)packed + (size_t)d * arg->w->size))
            return false;
    return true;
}

static enum sdx_status read_facts(struct sdx_prepare *px, const struct pack_arg *arg,
                                  const struct sdx_tensor *scale, const struct sdx_tensor *zero,
                                  struct sdx_rnn_bytes *w)
{
    const int64_t d = arg->weights->dims[0], n = arg->weights->dims[2];
    const size_t all = (size_t)(d * w->shape.n);
    const int32_t shift = arg->weights->dtype == SDX_I8 ? 0 : 128;
    bool any = false;
    w->scale = sdx_prepare_alloc(px, all * sizeof *w->scale);
    w->zero = sdx_prepare_alloc(px, all * sizeof *w->zero);
    if (!w->scale || !w->zero) return SDX_FAIL_MEMORY(px->cx);
    for (int64_t j = 0; j < d * n; j++) {
        const int gate = (int)(j % n / arg->hidden);
        const int64_t at = j / n * w->shape.n + sdx_rnn_column(arg->kind, gate, j % arg->hidden);
        w->scale[at] = ((const float *)scale->data)[scale->count == d ? j / n : j];
        w->zero[at] =
            (int32_t)sdx_load_i64(zero->dtype, zero->data, zero->count == d ? j / n : j) - shift;
        any = any || w->zero[at];
    }
    if (!any) w->zero = NULL;
    return SDX_OK;
}

enum sdx_status sdx_rnn_bytes_prepare(struct sdx_prepare *px, int i, enum sdx_rnn_kind kind,
                                      int64_t hidden, int64_t rows, struct sdx_rnn_bytes *w)
{
    struct pack_arg arg = {w, px->in[i], kind, hidden, 0};
    const int64_t *dims = arg.weights->dims;
    const struct sdx_qdot_shape plain = {.n = dims[2], .runs = 1, .run = dims[1]};
    const struct sdx_qdot_weights weights = {.w = arg.weights->data,
                                             .is_signed = arg.weights->dtype == SDX_I8,
                                             .step_inner = dims[2],
                                             .step_n = 1};
    const int facts = sdx_rnn_facts_of(i);
    size_t size;
    w->shape = (struct sdx_qdot_shape){.n = sdx_rnn_width(kind, hidden), .runs = 1, .run = dims[1]};
    w->shape.is_row = rows == 1 && sdx_qdot_suits_row(&plain, &weights);
    const int64_t form[] = {kind, sdx_rnn_padded(1), w->shape.is_row};
    w->size = (sdx_qdot_packed_size(&w->shape) + 63) / 64 * 64;
    SDX_TRY(read_facts(px, &arg, px->in[facts], px->in[facts + 1], w));
    if (!sdx_mul_size(w->size, (size_t)dims[0], &size))
        return SDX_FAIL(px->cx, SDX_OUT_OF_MEMORY, "packed weights do not fit into memory");
    const struct sdx_pack wanted = {.key = "rnn_bytes",
                                    .variant = sdx_pack_variant(form, 3),
                                    .size = size,
                                    .pack = pack,
                                    .used = &arg.used,
                                    .check = check,
                                    .arg = &arg};
    w->packed = sdx_prepare_pack(px, i, &wanted);
    return w->packed ? SDX_OK : px->cx->error.status;
}

size_t sdx_rnn_bytes_scratch(const struct sdx_rnn_bytes *w)
{
    const size_t columns = 2 * (size_t)w->shape.n * sizeof(int32_t);
    return (columns + 63) / 64 * 64 + (sdx_qdot_scratch(&w->shape, ROWS) + 63) / 64 * 64;
}

void sdx_rnn_bytes_multiply(const struct sdx_rnn_bytes *w, int direction,
                            const struct sdx_rnn_rows *rows, int64_t n0, int64_t n1,
                            const float *bias, float *y, int64_t pitch, void *scratch)
{
    const int64_t n = w->shape.n, k = w->shape.run;
    const float *scale = w->scale + direction * n;
    int32_t *start = scratch, sums[ROWS];
    float *factor = (float *)(start + n);
    const uint8_t *at[ROWS];
    struct sdx_qdot q = {.shape = w->shape, .packed = w->packed + (size_t)direction * w->size};
    q.rows = at;
    q.scratch = (char *)scratch + (2 * (size_t)n * sizeof *start + 63) / 64 * 64;
    q.store = (struct sdx_qdot_store){.to = SDX_QDOT_FLOATS,
                                      .pitch = pitch,
                                      .start = start,
                                      .zero_w = w->zero ? w->zero + direction * n : NULL,
                                      .row_sums = sums,
                                      .factor = factor,
                                      .bias = bias};
    for (int64_t row = 0; row < rows->count; row += q.m) {
        q.m = rows->count - row < ROWS ? rows->count - row : ROWS;
        for (int64_t i = 0; i < q.m; i++) {
            at[i] = rows->x + (row + i) * rows->pitch;
            if (w->zero)
                sums[i] = (int32_t)(sdx_qbytes()->sum(at[i], 0, (size_t)k) -
                                    (uint32_t)k * (uint32_t)rows->zero);
        }
        q.store.y = y + row * pitch;
        for (int64_t j = n0; j < n1; j += AT_ONCE * COLS) {
            const int64_t end = n1 - j < AT_ONCE * COLS ? n1 : j + AT_ONCE * COLS;
            sdx_qdot_start(&q.shape, q.packed, j / COLS, end / COLS, rows->zero, NULL, start);
            sdx_vec()->f32_affine(scale + j, rows->scale, 0, factor + j, (size_t)(end - j));
            sdx_qdot_run(&q, j / COLS, end / COLS);
        }
    }
}
