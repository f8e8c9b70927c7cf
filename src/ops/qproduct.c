/* SPDX-License-Identifier: Apache-2.0
 * Batches of integer matrix products. A block of rows is summed into scratch and rounded or scaled
 * from there, so that sums never go to memory. */
#include "ops/qproduct.h"

#include <math.h>

#include "kernels/qgemm.h"
#include "kernels/vec.h"
#include "ops/product.h"

enum { SUMS = 1 << 14, ROWS_MAX = 64, DIRECT_ROWS = 256 }; /* of a block in scratch */

struct params {
    struct sdx_qproduct p;
    struct sdx_split split;
    struct sdx_qclamp clamp;
    const char *packed;
    size_t packed_size;
    const void *facts; /* NULL: input 2 of the step */
    int64_t rows;      /* of a block */
    size_t gemm_scratch;
};

static int64_t place(const int64_t *at, int64_t i)
{
    return at ? at[i] : 0;
}

/* Rows m0.. of product i, columns n0..: from sums to what is wanted. */
static void finish(const struct params *s, const struct sdx_step *step,
                   const struct sdx_qfacts *facts, int64_t i, int64_t row, int64_t n0, int64_t n,
                   int32_t *sums)
{
    const struct sdx_qproduct *p = &s->p;
    int64_t at = (i * p->m + row) * p->n + n0;
    float scale_a = facts->scale_a[p->facts.rows > 1 ? row : 0];
    if (p->to == SDX_QPRODUCT_FLOAT) {
        const float *bias = step->in[3] ? (const float *)step->in[3]->data + n0 : NULL;
        float *y = (float *)step->out[0]->data + at;
        scale_a *= (float)p->alpha;
        for (int64_t j = 0; j < n; j++)
            y[j] = (float)sums[j] * (scale_a * facts->scale_b[n0 + j]) + (bias ? bias[j] : 0);
        return;
    }
    const int32_t *bias = step->in[3] ? (const int32_t *)step->in[3]->data + n0 : NULL;
    for (int64_t j = 0; bias && j < n; j++)
        sums[j] = (int32_t)((uint32_t)sums[j] + (uint32_t)bias[j]);
    uint8_t *y = (uint8_t *)step->out[0]->data + at;
    if (p->facts.rows == 1 && p->alpha == 1) {
        sdx_requantize_each(sums, n, facts->factor + n0, facts->zero_y, s->clamp, y);
        return;
    }
    scale_a *= (float)p->alpha;
    for (int64_t j = 0; j < n; j++) {
        float factor = scale_a * facts->scale_b[n0 + j] / facts->scale_y;
        sdx_requantize(sums + j, 1, 0, factor, facts->zero_y, s->clamp, y + j);
    }
}

static void run_one(const struct params *s, const struct sdx_step *step,
                    const struct sdx_qfacts *facts, int64_t i, const struct sdx_split_range *r,
                    char *scratch)
{
    const struct sdx_qproduct *p = &s->p;
    const char *b = s->packed ? s->packed + (p->at_b ? (size_t)i * s->packed_size : 0) : scratch;
    int64_t n0 = r->n0, n = r->n1 - r->n0;
    int32_t *sums = (int32_t *)(scratch + s->gemm_scratch);
    struct sdx_qgemm g = {.n = p->n, .k = p->k, .row_a = p->row_a, .col_a = p->col_a};
    g.a_signed = step->in[0]->dtype == SDX_I8;
    g.zero_a_per_row = p->facts.rows > 1;
    g.packed = b;
    g.zero_b = facts->zero_b;
    char *gemm_scratch = scratch;
    if (!s->packed) {
        sdx_qgemm_pack((const char *)step->in[1]->data + place(p->at_b, i) + n0 * p->col_b,
                       step->in[1]->dtype == SDX_I8, p->row_b, p->col_b, p->k, n, scratch);
        g.n = n;
        g.zero_b += n0;
        gemm_scratch += s->packed_size;
    }
    for (int64_t row = r->m0; row < r->m1; row += s->rows) {
        g.m = r->m1 - row < s->rows ? r->m1 - row : s->rows;
        g.a = (const char *)step->in[0]->data + place(p->at_a, i) + row * p->row_a;
        g.zero_a = facts->zero_a + (g.zero_a_per_row ? row : 0);
        bool is_direct = p->to == SDX_QPRODUCT_SUMS;
        g.row_c = is_direct ? p->n : n;
        int32_t *c =
            is_direct ? (int32_t *)step->out[0]->data + (i * p->m + row) * p->n + n0 : sums;
        if (s->packed) {
            g.c = c - n0; /* the kernel writes columns n0.. only */
            sdx_qgemm_run(&g, 0, g.m, n0, r->n1, gemm_scratch);
        } else {
            g.c = c;
            sdx_qgemm_run(&g, 0, g.m, 0, n, gemm_scratch);
        }
        for (int64_t k = 0; !is_direct && k < g.m; k++)
            finish(s, step, facts, i, row + k, n0, n, sums + k * n);
    }
}

static enum sdx_status run(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *s = step->params;
    const struct sdx_qproduct *p = &s->p;
    struct sdx_split_range r = sdx_split_at(&s->split, part);
    struct sdx_qfacts facts =
        sdx_qfacts_view(s->facts ? s->facts : step->in[2]->data, p->facts.rows, p->facts.columns);
    if (r.m0 == r.m1 || r.n0 == r.n1) return SDX_OK;
    for (int64_t i = r.begin; i < r.end && !sdx_exec_cancelled(x); i++)
        run_one(s, step, &facts, i, &r, x->scratch);
    return SDX_OK;
}

struct pack_arg {
    const struct params *s;
    int64_t count;
};

static enum sdx_status pack(struct sdx_context *cx, void *dst, void *arg_)
{
    (void)cx;
    const struct pack_arg *arg = arg_;
    const struct sdx_qproduct *p = &arg->s->p;
    for (int64_t i = 0; i < arg->count; i++)
        sdx_qgemm_pack((const char *)p->b->data + place(p->at_b, i), p->b->dtype == SDX_I8,
                       p->row_b, p->col_b, p->k, p->n,
                       (char *)dst + (size_t)i * arg->s->packed_size);
    return SDX_OK;
}

static size_t round_64(size_t size)
{
    return (size + 63) / 64 * 64;
}

enum sdx_status sdx_qproduct_prepare(struct sdx_prepare *px, const struct sdx_qproduct *product)
{
    struct params *s = SDX_PREPARE_NEW(px, struct params);
    struct sdx_tensor *facts = NULL;
    if (!s) return SDX_FAIL_MEMORY(px->cx);
    s->p = *product;
    struct sdx_qproduct *p = &s->p;
    if (p->batch == 0 || p->m == 0 || p->n == 0) return SDX_OK;
    p->facts.columns = p->n;
    SDX_TRY(sdx_qclamp_read(px, &s->clamp));
    SDX_TRY(sdx_qfacts_prepare(px, &p->facts, &s->facts, &facts));
    s->split = sdx_split_make(p->batch, p->m, p->n, p->k, sdx_qgemm_panel());
    int64_t widest = 0;
    for (int64_t j = 0; j < s->split.split_n; j++) {
        int64_t n0 = sdx_part_begin(p->n, s->split.split_n, j, s->split.step_n);
        int64_t n1 = sdx_part_begin(p->n, s->split.split_n, j + 1, s->split.step_n);
        if (n1 - n0 > widest) widest = n1 - n0;
    }
    s->rows = p->to == SDX_QPRODUCT_SUMS ? DIRECT_ROWS : SUMS / widest;
    if (s->rows > ROWS_MAX && p->to != SDX_QPRODUCT_SUMS) s->rows = ROWS_MAX;
    if (s->rows > p->m) s->rows = p->m;
    if (s->rows < 4) s->rows = 4;
    s->gemm_scratch = round_64(sdx_qgemm_scratch(s->rows, p->n, p->k));
    if (p->input_b >= 0 && p->b->is_constant) {
        struct pack_arg arg = {s, p->at_b ? p->batch : 1};
        s->packed_size = round_64(sdx_qgemm_packed_size(p->k, p->n));
        size_t size;
        int64_t form[] = {p->row_b,  p->col_b,
                          p->k,      p->n,
                          arg.count, p->at_b ? sdx_pack_variant(p->at_b, (int)p->batch) : 0};
        if (!sdx_mul_size(s->packed_size, (size_t)arg.count, &size))
            return SDX_FAIL(px->cx, SDX_OUT_OF_MEMORY, "packed weights do not fit into memory");
        s->packed =
            sdx_prepare_pack(px, p->input_b, "gemm_q", sdx_pack_variant(form, 6), size, pack, &arg);
        if (!s->packed) return SDX_FAIL_MEMORY(px->cx);
    } else {
        s->packed_size = round_64(sdx_qgemm_packed_size(p->k, widest));
        s->gemm_scratch += s->packed_size;
    }
    size_t scratch = s->gemm_scratch + (size_t)(s->rows * widest) * 4;
    struct sdx_tensor *in[] = {p->a, s->packed ? NULL : p->b, facts, p->bias};
    return sdx_prepare_step_on(px, "gemm_q", run, s, s->split.parts, scratch, 4, in, 1, &p->c);
}

enum sdx_status sdx_qproduct_matmul(struct sdx_prepare *px, struct sdx_qproduct *p)
{
    const struct sdx_tensor *a = p->a, *b = p->b, *c = p->c;
    int batch_rank = c->rank - (a->rank > 1) - (b->rank > 1);
    p->m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    p->k = a->dims[a->rank - 1];
    p->n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    p->row_a = p->k;
    p->col_a = p->col_b = 1;
    p->row_b = p->n;
    p->batch = p->alpha = 1;
    for (int i = 0; i < batch_rank; i++)
        p->batch *= c->dims[i];
    bool one_b = b->rank <= 2 || b->count == p->k * p->n;
    bool own_rows = p->facts.zero_a && p->facts.zero_a->count > 1;
    own_rows = own_rows || (p->facts.scale_a && p->facts.scale_a->count > 1);
    p->facts.rows = own_rows ? p->m : 1;
    if (p->batch <= 1) return SDX_OK;
    if (one_b && !own_rows && a->count == p->batch * p->m * p->k) {
        p->m *= p->batch;
        p->batch = 1;
        return SDX_OK;
    }
    SDX_TRY(sdx_product_places(px, batch_rank, c->dims, a, p->m * p->k, p->batch, &p->at_a));
    if (one_b) return SDX_OK;
    return sdx_product_places(px, batch_rank, c->dims, b, p->k * p->n, p->batch, &p->at_b);
}

/* ---- dynamic quantisation ---- */

static enum sdx_status run_range(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct sdx_tensor *in = step->in[0];
    float *out = (float *)step->out[0]->data + 2 * part;
    int64_t begin = sdx_part_begin(in->count, step->parts, part, 16);
    int64_t end = sdx_part_begin(in->count, step->parts, part + 1, 16);
    const float *data = (const float *)in->data + begin;
    out[0] = sdx_vec()->f32_reduce_min(data, (size_t)(end - begin));
    out[1] = sdx_vec()->f32_reduce_max(data, (size_t)(end - begin));
    return SDX_OK;
}

static enum sdx_status run_scale(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    const float *range = step->in[0]->data;
    float low = 0, high = 0;
    for (int64_t i = 0; i < step->in[0]->count; i += 2) {
        if (range[i] < low) low = range[i];
        if (range[i + 1] > high) high = range[i + 1];
    }
    float scale = (high == low ? 1.0f : high - low) / 255.0f;
    *(float *)step->out[0]->data = scale;
    *(uint8_t *)step->out[1]->data = (uint8_t)sdx_round_saturate(0.0f - low / scale, 0, 0, 255);
    return SDX_OK;
}

static enum sdx_status run_quantize(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct sdx_tensor *in = step->in[0];
    int64_t begin = sdx_part_begin(in->count, step->parts, part, 16);
    int64_t end = sdx_part_begin(in->count, step->parts, part + 1, 16);
    sdx_vec()->f32_to_u8((const float *)in->data + begin, *(const float *)step->in[1]->data,
                         *(const uint8_t *)step->in[2]->data, (uint8_t *)step->out[0]->data + begin,
                         (size_t)(end - begin));
    return SDX_OK;
}

enum sdx_status sdx_dynamic_quantize(struct sdx_prepare *px, struct sdx_tensor *x,
                                     struct sdx_tensor *y, struct sdx_tensor *scale,
                                     struct sdx_tensor *zero)
{
    int64_t parts = sdx_prepare_parts((double)x->count, 1 << 15, 64), words = 2 * parts;
    struct sdx_tensor *range = sdx_prepare_temp(px, SDX_F32, 1, &words);
    if (!range) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(sdx_prepare_step_on(px, "dynamic_range", run_range, NULL, parts, 0, 1, &x, 1, &range));
    struct sdx_tensor *facts[] = {scale, zero}, *in[] = {x, scale, zero};
    SDX_TRY(sdx_prepare_step_on(px, "dynamic_scale", run_scale, NULL, 1, 0, 1, &range, 2, facts));
    return sdx_prepare_step_on(px, "dynamic_quantize", run_quantize, NULL, parts, 0, 3, in, 1, &y);
}
