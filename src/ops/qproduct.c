/* SPDX-License-Identifier: Apache-2.0
 * Batches of integer matrix products on kernels/qdot.h: rows of A where they lie, columns rounded
 * or scaled as they are stored. Zero points or scales for each row: the sums of a block of rows are
 * finished from scratch. */
#include "ops/qproduct.h"

#include <math.h>

#include "kernels/qbytes.h"
#include "kernels/qdot.h"
#include "kernels/vec.h"
#include "ops/product.h"

/* Of a block: bytes of A, rows, sums that are held. */
enum { A_BYTES = 192 * 1024, ROWS_LEAST = 48, ROWS_MAX = 768, SUMS = 1 << 16 };

struct params {
    struct sdx_qproduct p;
    struct sdx_split split;
    struct sdx_qclamp clamp;
    const char *packed; /* NULL: input 1 of the step is packed by each part */
    size_t packed_size;
    const void *facts; /* NULL: input 2 of the step */
    bool copies;       /* rows of A are made unsigned, or gathered */
    bool is_row;       /* packed for one row */
    int64_t rows;      /* of a block */
    int64_t width;     /* whole panels */
    int64_t pitch;     /* of copied rows */
};

static int64_t place(const int64_t *at, int64_t i)
{
    return at ? at[i] : 0;
}

static size_t round_64(size_t size)
{
    return (size + 63) / 64 * 64;
}

/* What a part has for itself: arrays of columns, then of rows. */
struct own {
    char *packed;
    int32_t *start, *zero_w, *column_sums;
    float *factor, *bias;
    int32_t *sums; /* block of sums; products with facts of their own for each row */
    const uint8_t **rows;
    int32_t *row_sums;
    uint8_t *copy;
    void *scratch; /* of the product */
    struct sdx_qdot_store store;
    /* the product whose `start`, and `packed` unless it is constant, and columns whose arrays are
     * there */
    int64_t i, n0, n1;
};
static struct sdx_qdot_shape shape_of(const struct params *s, int64_t n)
{
    return (struct sdx_qdot_shape){.n = n, .runs = 1, .run = s->p.k, .is_row = s->is_row};
}
/* at NULL: only the size. */
static size_t own_in(const struct params *s, char *at, struct own *o)
{
    const size_t column = round_64((size_t)s->width * sizeof(int32_t));
    const size_t rows = (size_t)s->rows;
    const struct sdx_qdot_shape shape = shape_of(s, s->width);
    const size_t sizes[] = {s->packed ? 0 : round_64(s->packed_size),
                            column,
                            column,
                            column,
                            column,
                            column,
                            s->p.facts.rows > 1 ? rows * column : 0,
                            round_64(rows * sizeof *o->rows),
                            round_64(rows * sizeof *o->row_sums),
                            s->copies ? round_64(rows * (size_t)s->pitch) : 0,
                            sdx_qdot_scratch(&shape, s->rows)};
    char *places[SDX_COUNT_OF(sizes)] = {NULL};
    size_t total = 0;
    for (int i = 0; i < SDX_COUNT_OF(sizes); i++) {
        if (at) places[i] = at + total;
        total += sizes[i];
    }
    *o = (struct own){.packed = places[0],
                      .start = (int32_t *)places[1],
                      .zero_w = (int32_t *)places[2],
                      .column_sums = (int32_t *)places[3],
                      .factor = (float *)places[4],
                      .bias = (float *)places[5],
                      .sums = (int32_t *)places[6],
                      .rows = (const uint8_t **)places[7],
                      .row_sums = (int32_t *)places[8],
                      .copy = (uint8_t *)places[9],
                      .scratch = places[10],
                      .i = -1};
    return total;
}

static struct sdx_qdot_weights weights_of(const struct sdx_qproduct *p, const void *b, bool quickly)
{
    return (struct sdx_qdot_weights){.w = b,
                                     .is_signed = p->b->dtype == SDX_I8,
                                     .quickly = quickly,
                                     .inner = p->k > 0 ? p->k : 1,
                                     .step_inner = p->row_b,
                                     .step_n = p->col_b};
}

/* Facts of columns n0 .. n1, of which the first stands at n0 - base, and what is stored. */
static void fill_columns(const struct params *s, const struct sdx_step *step,
                         const struct sdx_qfacts *facts, int64_t base, int64_t n0, int64_t n1,
                         struct own *o)
{
    const struct sdx_qproduct *p = &s->p;
    const bool by_row = p->facts.rows > 1;
    const int32_t shift = p->c->dtype == SDX_I8 ? 128 : 0;
    const int32_t shift_b = p->b->dtype == SDX_I8 ? 0 : 128;
    const float scale_a = facts->scale_a[0] * (float)p->alpha;
    const bool is_float = p->to == SDX_QPRODUCT_FLOAT, adds = is_float && step->in[3] && !by_row;
    const int64_t at = n0 - base, count = n1 - n0;
    const size_t beyond = (size_t)((SDX_QDOT_COLS - count % SDX_QDOT_COLS) % SDX_QDOT_COLS);
    int32_t *zero_w = o->zero_w + at, any_zero = 0, any_large = 0;
    float *factor = o->factor + at;
    for (int64_t j = 0; j < count; j++) {
        zero_w[j] = facts->zero_b[n0 + j] - shift_b;
        any_zero |= zero_w[j];
    }
    if (is_float || p->alpha != 1)
        for (int64_t j = 0; j < count; j++)
            factor[j] = scale_a * facts->scale_b[n0 + j] / (is_float ? 1 : facts->scale_y);
    else
        memcpy(factor, facts->factor + n0, (size_t)count * sizeof *factor);
    for (int64_t j = 0; j < count; j++)
        any_large |= !(fabsf(factor[j]) <= SDX_QDOT_SMALL);
    if (adds)
        memcpy(o->bias + at, (const float *)step->in[3]->data + n0, (size_t)count * sizeof *factor);
    memset(zero_w + count, 0, beyond * sizeof *zero_w);
    memset(factor + count, 0, beyond * sizeof *factor);
    memset(o->bias + at + count, 0, beyond * sizeof *o->bias);
    o->store = (struct sdx_qdot_store){.to = p->to == SDX_QPRODUCT_SUMS || by_row ? SDX_QDOT_SUMS
                                             : is_float                           ? SDX_QDOT_FLOATS
                                                                                  : SDX_QDOT_BYTES,
                                       .pitch = by_row ? s->width : p->n,
                                       .start = o->start,
                                       .zero_w = any_zero ? o->zero_w : NULL,
                                       .row_sums = o->row_sums,
                                       .factor = o->factor,
                                       .factors_are_small = !any_large,
                                       .bias = adds ? o->bias : NULL,
                                       .zero = facts->zero_y + shift,
                                       .lo = s->clamp.lo + shift,
                                       .hi = s->clamp.hi + shift,
                                       .flip = (uint8_t)shift};
}

/* Pointers to `count` rows of A as unsigned bytes. */
static void take_rows(const struct params *s, const uint8_t *a, int64_t count, struct own *o)
{
    const struct sdx_qproduct *p = &s->p;
    const uint8_t flip = p->a->dtype == SDX_I8 ? 0x80 : 0;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *from = a + i * p->row_a;
        o->rows[i] = from;
        if (!s->copies) continue;
        uint8_t *to = o->copy + i * s->pitch;
        if (p->col_a == 1)
            sdx_qbytes()->flip(from, flip, to, (size_t)p->k);
        else
            for (int64_t k = 0; k < p->k; k++)
                to[k] = from[k * p->col_a] ^ flip;
        o->rows[i] = to;
    }
}

/* Row `row` of product i with its own facts: from sums (start 0) to what is wanted. */
static void finish_row(const struct params *s, const struct sdx_step *step,
                       const struct sdx_qfacts *facts, const struct own *o, int64_t i, int64_t row,
                       int64_t base, int64_t n0, int64_t n1, const int32_t *sums)
{
    const struct sdx_qproduct *p = &s->p;
    const int32_t zero = facts->zero_a[row] + (p->a->dtype == SDX_I8 ? 128 : 0);
    const float scale_a = facts->scale_a[row] * (float)p->alpha;
    const struct sdx_tensor *bias = step->in[3];
    const int64_t to = (i * p->m + row) * p->n;
    for (int64_t j = n0; j < n1; j++) {
        uint32_t sum = (uint32_t)sums[j - base];
        sum -= (uint32_t)zero * (uint32_t)o->column_sums[j - base];
        if (p->to == SDX_QPRODUCT_SUMS) {
            ((int32_t *)step->out[0]->data)[to + j] = (int32_t)sum;
        } else if (p->to == SDX_QPRODUCT_FLOAT) {
            ((float *)step->out[0]->data)[to + j] =
                (float)(int32_t)sum * (scale_a * facts->scale_b[j]) +
                (bias ? ((const float *)bias->data)[j] : 0);
        } else {
            const float factor = scale_a * facts->scale_b[j] / facts->scale_y;
            const int32_t whole = (int32_t)sum;
            sdx_requantize(&whole, 1, bias ? ((const int32_t *)bias->data)[j] : 0, factor,
                           facts->zero_y, s->clamp, (uint8_t *)step->out[0]->data + to + j);
        }
    }
}

static void run_rows(const struct params *s, const struct sdx_step *step,
                     const struct sdx_qfacts *facts, struct own *o, struct sdx_qdot *q, int64_t i,
                     const struct sdx_split_range *r, int64_t base)
{
    const struct sdx_qproduct *p = &s->p;
    const bool by_row = p->facts.rows > 1;
    const int32_t shift = p->a->dtype == SDX_I8 ? 128 : 0;
    const uint8_t *a = (const uint8_t *)step->in[0]->data + place(p->at_a, i);
    const int64_t size = p->to == SDX_QPRODUCT_REQUANT ? 1 : 4;
    const int64_t p0 = (r->n0 - base) / SDX_QDOT_COLS;
    const int64_t p1 = (r->n1 - base + SDX_QDOT_COLS - 1) / SDX_QDOT_COLS;
    q->rows = o->rows;
    for (int64_t row = r->m0; row < r->m1; row += q->m) {
        q->m = r->m1 - row < s->rows ? r->m1 - row : s->rows;
        take_rows(s, a + row * p->row_a, q->m, o);
        for (int64_t k = 0; q->store.zero_w && k < q->m; k++) {
            const int32_t zero = facts->zero_a[by_row ? row + k : 0] + shift;
            o->row_sums[k] = (int32_t)(sdx_qbytes()->sum(o->rows[k], 0, (size_t)p->k) -
                                       (uint32_t)p->k * (uint32_t)zero);
        }
        q->store.y = by_row
                         ? (void *)o->sums
                         : (uint8_t *)step->out[0]->data + ((i * p->m + row) * p->n + base) * size;
        sdx_qdot_run(q, p0, p1);
        for (int64_t k = 0; by_row && k < q->m; k++)
            finish_row(s, step, facts, o, i, row + k, base, r->n0, r->n1, o->sums + k * s->width);
    }
}

/* What product i needs of the columns of its range, unless it is there from the range before: those
 * of one product lie behind each other. */
static void take_columns(const struct params *s, const struct sdx_step *step,
                         const struct sdx_qfacts *facts, struct sdx_qdot *q, int64_t i,
                         const struct sdx_split_range *r, struct own *o)
{
    const struct sdx_qproduct *p = &s->p;
    const bool by_row = p->facts.rows > 1, is_same = o->n0 == r->n0 && o->n1 == r->n1;
    const int64_t base = s->packed ? 0 : r->n0;
    const int64_t p0 = (r->n0 - base) / SDX_QDOT_COLS;
    const int64_t p1 = (r->n1 - base + SDX_QDOT_COLS - 1) / SDX_QDOT_COLS;
    const int32_t shift_a = p->a->dtype == SDX_I8 ? 128 : 0;
    const bool adds = p->to == SDX_QPRODUCT_REQUANT && step->in[3] && !by_row;
    if (!is_same) fill_columns(s, step, facts, base, r->n0, r->n1, o);
    q->store = o->store;
    q->scratch = o->scratch;
    q->shape = shape_of(s, s->packed ? p->n : r->n1 - r->n0);
    q->packed = s->packed ? s->packed + (p->at_b ? (size_t)i * s->packed_size : 0) : o->packed;
    const int64_t own = p->at_b ? i : 0;
    if (is_same && o->i == own) return;
    o->i = own;
    o->n0 = r->n0;
    o->n1 = r->n1;
    if (!s->packed) {
        const struct sdx_qdot_weights w = weights_of(
            p, (const char *)step->in[1]->data + place(p->at_b, i) + r->n0 * p->col_b, true);
        (void)sdx_qdot_pack(&q->shape, &w, o->packed);
    }
    sdx_qdot_start(&q->shape, q->packed, p0, p1, by_row ? 0 : facts->zero_a[0] + shift_a,
                   adds ? (const int32_t *)step->in[3]->data + base : NULL, o->start);
    if (by_row) sdx_qdot_start(&q->shape, q->packed, p0, p1, -1, NULL, o->column_sums);
}

static enum sdx_status run(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *s = step->params;
    const struct sdx_qproduct *p = &s->p;
    const struct sdx_qfacts facts =
        sdx_qfacts_view(s->facts ? s->facts : step->in[2]->data, p->facts.rows, p->facts.columns);
    struct own o;
    (void)own_in(s, x->scratch, &o);
    while (part < x->part_end) {
        const struct sdx_split_range r = sdx_split_next(&s->split, &part, x->part_end);
        if (r.m0 == r.m1 || r.n0 == r.n1) continue;
        for (int64_t i = r.begin; i < r.end && !sdx_exec_cancelled(x); i++) {
            struct sdx_qdot q = {.m = 0};
            take_columns(s, step, &facts, &q, i, &r, &o);
            run_rows(s, step, &facts, &o, &q, i, &r, s->packed ? 0 : r.n0);
        }
    }
    return SDX_OK;
}

struct pack_arg {
    const struct params *s;
    int64_t count;
    size_t used; /* by pack() */
};

static enum sdx_status pack(struct sdx_context *cx, void *dst, void *arg_)
{
    (void)cx;
    struct pack_arg *arg = arg_;
    const struct sdx_qproduct *p = &arg->s->p;
    const struct sdx_qdot_shape shape = shape_of(arg->s, p->n);
    for (int64_t i = 0; i < arg->count; i++) {
        const struct sdx_qdot_weights w =
            weights_of(p, (const char *)p->b->data + place(p->at_b, i), false);
        arg->used = sdx_qdot_pack_one(&shape, &w, dst, arg->s->packed_size, i, arg->count);
    }
    return SDX_OK;
}

static bool check(const void *packed, void *arg_)
{
    const struct pack_arg *arg = arg_;
    const struct sdx_qdot_shape shape = shape_of(arg->s, arg->s->p.n);
    for (int64_t i = 0; i < arg->count; i++)
        if (!sdx_qdot_check(&shape, (const char *)packed + (size_t)i * arg->s->packed_size))
            return false;
    return true;
}

static enum sdx_status pack_constant(struct sdx_prepare *px, struct params *s)
{
    struct sdx_qproduct *p = &s->p;
    struct pack_arg arg = {s, p->at_b ? p->batch : 1, 0};
    const int64_t form[] = {p->row_b,  p->col_b,
                            p->k,      p->n,
                            arg.count, p->at_b ? sdx_pack_variant(p->at_b, (int)p->batch) : 0,
                            s->is_row};
    size_t size;
    if (!sdx_mul_size(s->packed_size, (size_t)arg.count, &size))
        return SDX_FAIL(px->cx, SDX_OUT_OF_MEMORY, "packed weights do not fit into memory");
    const struct sdx_pack wanted = {.key = "gemm_q",
                                    .variant = sdx_pack_variant(form, 7),
                                    .size = size,
                                    .pack = pack,
                                    .used = &arg.used,
                                    .check = check,
                                    .arg = &arg};
    s->packed = sdx_prepare_pack(px, p->input_b, &wanted);
    return s->packed ? SDX_OK : px->cx->error.status;
}

enum sdx_status sdx_qproduct_prepare(struct sdx_prepare *px, const struct sdx_qproduct *product)
{
    struct params *s = SDX_PREPARE_NEW(px, struct params);
    struct sdx_tensor *facts = NULL;
    struct own unused;
    if (!s) return SDX_FAIL_MEMORY(px->cx);
    s->p = *product;
    struct sdx_qproduct *p = &s->p;
    if (p->batch == 0 || p->m == 0 || p->n == 0) return SDX_OK;
    p->facts.columns = p->n;
    SDX_TRY(sdx_qclamp_read(px, &s->clamp));
    SDX_TRY(sdx_qfacts_prepare(px, &p->facts, &s->facts, &facts));
    s->split = sdx_split_make(p->batch, p->m, p->n, p->k, 0, sdx_qdot_width());
    int64_t widest = 0;
    for (int64_t j = 0; j < s->split.split_n; j++) {
        int64_t n0 = sdx_part_begin(p->n, s->split.split_n, j, s->split.step_n);
        int64_t n1 = sdx_part_begin(p->n, s->split.split_n, j + 1, s->split.step_n);
        if (n1 - n0 > widest) widest = n1 - n0;
    }
    const bool is_constant = p->input_b >= 0 && p->b->is_constant;
    if (is_constant && p->m == 1 && p->batch == 1) {
        const struct sdx_qdot_shape whole = shape_of(s, p->n);
        const struct sdx_qdot_weights weights = weights_of(p, p->b->data, false);
        s->is_row = sdx_qdot_suits_row(&whole, &weights);
    }
    const struct sdx_qdot_shape shape = shape_of(s, is_constant ? p->n : widest);
    s->copies = p->a->dtype == SDX_I8 || p->col_a != 1 || p->k < 4;
    s->pitch = (int64_t)round_64((size_t)p->k + 16);
    s->width = sdx_qdot_panels(&shape) * SDX_QDOT_COLS;
    s->rows = A_BYTES / s->pitch < ROWS_LEAST ? ROWS_LEAST : A_BYTES / s->pitch;
    if (p->facts.rows > 1 && s->rows > SUMS / s->width) s->rows = SUMS / s->width;
    s->rows = s->rows / 6 * 6;
    if (s->rows < 6) s->rows = 6;
    if (s->rows > ROWS_MAX) s->rows = ROWS_MAX;
    if (s->rows > p->m) s->rows = p->m;
    s->packed_size = round_64(sdx_qdot_packed_size(&shape));
    if (is_constant) SDX_TRY(pack_constant(px, s));
    struct sdx_tensor *in[] = {p->a, s->packed ? NULL : p->b, facts, p->bias};
    SDX_TRY(sdx_prepare_step_on(px, "gemm_q", run, s, s->split.parts, own_in(s, NULL, &unused), 4,
                                in, 1, &p->c));
    if (s->packed)
        sdx_prepare_in_ranges(px); /* otherwise scratch is for the columns of a part */
    else if (s->split.split_n == 1)
        sdx_prepare_together(px, s->split.split_m); /* they pack the same */
    return SDX_OK;
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

enum { RANGE_TILE = 4096 }; /* elements that stay in the first cache between both ends of a range */

static enum sdx_status run_range(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct sdx_tensor *in = step->in[0];
    float *out = (float *)step->out[0]->data + 2 * part;
    int64_t begin = sdx_part_begin(in->count, step->parts, part, 16);
    int64_t end = sdx_part_begin(in->count, step->parts, part + 1, 16);
    const float *data = (const float *)in->data;
    out[0] = out[1] = 0; /* is in the range anyway */
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < RANGE_TILE ? end - at : RANGE_TILE;
        const float low = sdx_vec()->f32_reduce_min(data + at, (size_t)n);
        const float high = sdx_vec()->f32_reduce_max(data + at, (size_t)n);
        if (low < out[0]) out[0] = low;
        if (high > out[1]) out[1] = high;
    }
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

/* The last parts first: those the range was read from last are still near. */
static enum sdx_status run_quantize(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct sdx_tensor *in = step->in[0];
    part = step->parts - 1 - part;
    int64_t begin = sdx_part_begin(in->count, step->parts, part, 16);
    int64_t end = sdx_part_begin(in->count, step->parts, part + 1, 16);
    sdx_qbytes()->quantize((const float *)in->data + begin, *(const float *)step->in[1]->data,
                           *(const uint8_t *)step->in[2]->data, 0,
                           (uint8_t *)step->out[0]->data + begin, (size_t)(end - begin));
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
