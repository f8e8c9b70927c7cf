/* SPDX-License-Identifier: Apache-2.0
 * Operators on quantised bytes: ByteTable and ByteAffine (of ours, made by the pass qdq: y =
 * table[x]; y = saturate(round_to_even(x * scale + shift) + y_zero_point) within "clamp", with a
 * scale and a shift for each channel of axis 1), QLinearAdd, QLinearMul, QLinearGlobalAveragePool.
 * Sums and products are rounded once, so that they may differ by one quantum from DequantizeLinear,
 * operator, QuantizeLinear where the exact value lies between two. */
#include "ops/qlinear.h"

#include "ops/contrib_lower.h"
#include "ops/layout.h"
#include "ops/nest.h"
#include "ops/requant.h"
#include "ops/shared.h"
#include "tensor/convert.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

enum { GRAIN = 65536 }; /* bytes a part should have */

static int32_t zero_of(const struct sdx_tensor *t)
{
    return t ? (int32_t)sdx_load_i64(t->dtype, t->data, 0) : 0;
}

/* ---- ByteTable ---- */

static enum sdx_status infer_table(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 1));
    return SDX_OK;
}

static void run_table(const struct sdx_step *step, const void *const *in, void *out, int64_t begin,
                      int64_t end, void *scratch)
{
    (void)step;
    (void)scratch;
    sdx_qbytes()->lookup(in[1], in[0], out, (size_t)(end - begin));
}

static bool is_byte(const struct sdx_tensor *t)
{
    return t->dtype == SDX_U8 || t->dtype == SDX_I8;
}

/* Whatever layout the bytes have. */
static void layout_table(struct sdx_prepare *px, struct sdx_layouts *want)
{
    want->in[0] = want->out[0] = px->in[0]->layout;
}

static enum sdx_status prepare_table(struct sdx_prepare *px)
{
    if (!is_byte(px->in[0]) || !is_byte(px->in[1]) || px->in[1]->count != 256)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "ByteTable: inputs must be bytes and a table of 256 bytes");
    const struct sdx_tiles tiles = {
        .run = run_table, .count = (int64_t)px->in[0]->bytes, .weight = 0.5, .full = 1};
    return sdx_prepare_tiles(px, "byte_table", &tiles, NULL, 0, 2, px->in, px->out[0]);
}

/* ---- ByteAffine ---- */

struct affine {
    struct sdx_qaffine of; /* channels last: all of it */
    int64_t channels, pixels;
    bool is_last;
};

static enum sdx_status infer_affine(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    return SDX_OK;
}

/* Planes of a channel each. */
static void run_planes(const struct affine *p, const uint8_t *x, uint8_t *y, int64_t plane,
                       int64_t end)
{
    float scale[SDX_QAFFINE_STEP], shift[SDX_QAFFINE_STEP];
    struct sdx_qaffine of = p->of;
    of.scale = scale;
    of.shift = shift;
    of.length = SDX_QAFFINE_STEP;
    for (; plane < end; plane++) {
        for (int i = 0; i < SDX_QAFFINE_STEP; i++) {
            scale[i] = p->of.scale[plane % p->channels];
            shift[i] = p->of.shift[plane % p->channels];
        }
        sdx_qbytes()->affine(&of, x + plane * p->pixels, y + plane * p->pixels, (size_t)p->pixels);
    }
}
static enum sdx_status run_affine(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct affine *p = step->params;
    const uint8_t *from = step->in[0]->data;
    uint8_t *to = step->out[0]->data;
    const int64_t count = p->is_last ? step->out[0]->count : step->out[0]->count / p->pixels;
    const int64_t each = p->is_last ? (int64_t)p->of.length : 1;
    const int64_t begin = sdx_part_begin(count, step->parts, part, each);
    const int64_t end = sdx_part_begin(count, step->parts, part + 1, each);
    if (p->is_last)
        sdx_qbytes()->affine(&p->of, from + begin, to + begin, (size_t)(end - begin));
    else
        run_planes(p, from, to, begin, end);
    return SDX_OK;
}

/* Where channels lie last they are repeated until they are whole steps. */
static enum sdx_status fill_affine(struct sdx_prepare *px, struct affine *p)
{
    int64_t length = p->channels;
    while (p->is_last && length % SDX_QAFFINE_STEP)
        length += p->channels;
    float *scale = sdx_prepare_alloc(px, 2 * (size_t)length * sizeof *scale);
    if (!scale) return SDX_FAIL_MEMORY(px->cx);
    for (int64_t i = 0; i < length; i++) {
        scale[i] = ((const float *)px->in[1]->data)[i % p->channels];
        scale[length + i] = ((const float *)px->in[2]->data)[i % p->channels];
    }
    p->of.scale = scale;
    p->of.shift = scale + length;
    p->of.length = (size_t)length;
    return SDX_OK;
}
static enum sdx_status prepare_affine(struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[0], *y = px->out[0], *zero = px->in[3];
    struct affine *p = SDX_PREPARE_NEW(px, struct affine);
    struct sdx_qclamp clamp;
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (y->count == 0) return SDX_OK;
    p->channels = x->rank > 1 ? x->dims[1] : 1;
    for (int i = 1; i < 4; i++)
        if (!px->in[i]->is_constant || px->in[i]->count != (i < 3 ? p->channels : 1))
            return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                            "ByteAffine: input %d must be a constant of %lld values", i,
                            (long long)(i < 3 ? p->channels : 1));
    p->pixels = y->count / x->dims[0] / p->channels;
    p->is_last = x->layout == SDX_LAYOUT_LAST || p->pixels == 1;
    SDX_TRY(sdx_qclamp_read(px, &clamp));
    const int32_t shift = y->dtype == SDX_I8 ? 128 : 0;
    p->of.zero = zero_of(zero) + shift;
    p->of.lo = clamp.lo + shift;
    p->of.hi = clamp.hi + shift;
    p->of.flip = (uint8_t)shift;
    SDX_TRY(fill_affine(px, p));
    const int64_t parts = sdx_prepare_parts((double)y->count, GRAIN / 4, 64);
    return sdx_prepare_step_on(px, "byte_affine", run_affine, p, parts, 0, 1, px->in, 1, px->out);
}

static const struct sdx_op ops[] = {
    {"ByteAffine", 1, 0, infer_affine, KERNEL(prepare_affine), .layout = layout_table,
     .flags = SDX_OP_INPLACE(0)},
    {"ByteTable", 1, 0, infer_table, KERNEL(prepare_table), .layout = layout_table,
     .flags = SDX_OP_INPLACE(0)},
};

const struct sdx_op_family sdx_ops_qlinear = FAMILY("ai.sardonyx", ops);

/* ---- QLinearAdd, QLinearMul ---- */

struct binary {
    struct sdx_nest nest;
    bool multiply;
};

static bool nest_pair(const void *arg, const void *const *in, const int64_t *step, void *out,
                      int64_t n)
{
    const struct sdx_qpair *p = arg;
    sdx_qbytes()->add(p, in[0], (size_t)step[0], in[1], (size_t)step[1], out, (size_t)n);
    return true;
}

static bool nest_product(const void *arg, const void *const *in, const int64_t *step, void *out,
                         int64_t n)
{
    const struct sdx_qpair *p = arg;
    sdx_qbytes()->mul(p, in[0], (size_t)step[0], in[1], (size_t)step[1], out, (size_t)n);
    return true;
}

static float scale_of(const struct sdx_tensor *t)
{
    return *(const float *)t->data;
}

struct sdx_qpair sdx_qlinear_pair(struct sdx_tensor *const in[8], bool multiply, int dtype)
{
    const int32_t shift = dtype == SDX_I8 ? 128 : 0;
    struct sdx_qpair p = {.zero_a = zero_of(in[2]) + shift,
                          .zero_b = zero_of(in[5]) + shift,
                          .zero_y = zero_of(in[7]) + shift,
                          .flip = (uint8_t)shift};
    if (multiply) {
        p.scale_a = scale_of(in[1]) * scale_of(in[4]) / scale_of(in[6]);
    } else {
        p.scale_a = scale_of(in[1]) / scale_of(in[6]);
        p.scale_b = scale_of(in[4]) / scale_of(in[6]);
        p.base = sdx_qpair_base(&p);
    }
    return p;
}

static enum sdx_status run_binary(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct binary *b = step->params;
    struct sdx_tensor *const *in = step->in;
    const struct sdx_qpair p = sdx_qlinear_pair(in, b->multiply, step->out[0]->dtype);
    const void *const operands[] = {in[0]->data, in[3]->data};
    int64_t begin = sdx_part_begin(b->nest.count, step->parts, part, 64);
    int64_t end = sdx_part_begin(b->nest.count, step->parts, part + 1, 64);
    (void)sdx_nest_run(&b->nest, operands, step->out[0]->data, begin, end, x->scratch,
                       b->multiply ? nest_product : nest_pair, &p);
    return SDX_OK;
}

static enum sdx_status check_scalars(struct sdx_prepare *px, const int *inputs, int count)
{
    for (int i = 0; i < count; i++) {
        if (!sdx_prepare_has(px, inputs[i]) || px->in[inputs[i]]->count == 1) continue;
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: input %d has %lld values, expected 1",
                        NAME(px->node), inputs[i], (long long)px->in[inputs[i]]->count);
    }
    return SDX_OK;
}

static enum sdx_status prepare_binary(struct sdx_prepare *px, const char *kernel, bool multiply)
{
    static const int scalars[] = {1, 2, 4, 5, 6, 7};
    struct binary *b = SDX_PREPARE_NEW(px, struct binary);
    struct sdx_tensor *in[8], *operands[] = {px->in[0], px->in[3]};
    if (!b) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(check_scalars(px, scalars, SDX_COUNT_OF(scalars)));
    for (int i = 0; i < 8; i++)
        in[i] = sdx_prepare_has(px, i) ? px->in[i] : NULL;
    b->multiply = multiply;
    SDX_TRY(sdx_nest_plain(px, &b->nest, px->out[0], 2, operands));
    int64_t parts = sdx_prepare_parts((double)b->nest.count, GRAIN / 4, 64);
    return sdx_prepare_step_on(px, kernel, run_binary, b, parts, sdx_nest_scratch(&b->nest), 8, in,
                               1, px->out);
}

enum sdx_status sdx_qlinear_add_prepare(struct sdx_prepare *px)
{
    return prepare_binary(px, "qlinear_add", false);
}

enum sdx_status sdx_qlinear_mul_prepare(struct sdx_prepare *px)
{
    return prepare_binary(px, "qlinear_mul", true);
}

enum sdx_status sdx_qlinear_binary_infer(struct sdx_infer *ix)
{
    int rank_a = sdx_infer_rank(ix, 0), rank_b = sdx_infer_rank(ix, 3);
    const int64_t *a = sdx_infer_dims(ix, 0), *b = sdx_infer_dims(ix, 3);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank_a < 0 || rank_b < 0) return SDX_OK;
    int rank = rank_a > rank_b ? rank_a : rank_b;
    int64_t *out = sdx_infer_new_dims(ix, 0, rank);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    for (int i = 0; i < rank; i++) {
        int at_a = i - (rank - rank_a), at_b = i - (rank - rank_b);
        SDX_TRY(
            sdx_infer_broadcast_dim(ix, at_a < 0 ? 1 : a[at_a], at_b < 0 ? 1 : b[at_b], &out[i]));
    }
    return SDX_OK;
}

/* ---- QLinearGlobalAveragePool ---- */

struct pool {
    int64_t planes, pixels; /* planes: channels of all images */
    int64_t channels;
    bool is_last;
    int64_t chunks; /* of the pixels of an image, where channels lie last */
};

static void pool_facts(const struct sdx_step *step, int64_t pixels, float *factor, int32_t *zero_x,
                       int32_t *zero_y)
{
    struct sdx_tensor *const *in = step->in;
    *factor = scale_of(in[1]) / (float)pixels / scale_of(in[3]);
    *zero_x = zero_of(in[2]);
    *zero_y = zero_of(in[4]);
}

enum { WIDE = 256 /* elements that a kernel adds up at once */ };

/* Sums of channels that lie last, of bytes with the top bit flipped by `flip`. Few channels are
 * added up several pixels at a time. */
static void sum_last(const uint8_t *x, int64_t pixels, int64_t channels, uint8_t flip,
                     uint32_t *sums)
{
    uint32_t several[WIDE] = {0};
    const int64_t at_once = WIDE / channels, n = at_once * channels;
    memset(sums, 0, (size_t)channels * sizeof *sums);
    if (at_once > 1)
        for (; pixels >= at_once; pixels -= at_once, x += n)
            sdx_qbytes()->add_up(x, flip, several, (size_t)n);
    for (; pixels > 0; pixels--, x += channels)
        sdx_qbytes()->add_up(x, flip, sums, (size_t)channels);
    for (int64_t i = 0; i < n; i++)
        sums[i % channels] += several[i];
}

/* To [image][chunk][channel]. */
static enum sdx_status run_pool_sums(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct pool *p = step->params;
    const uint8_t flip = step->in[0]->dtype == SDX_I8 ? 128 : 0;
    const int64_t image = part / p->chunks, chunk = part % p->chunks;
    const int64_t begin = sdx_part_begin(p->pixels, p->chunks, chunk, 1);
    const int64_t end = sdx_part_begin(p->pixels, p->chunks, chunk + 1, 1);
    (void)x;
    sum_last((const uint8_t *)step->in[0]->data + (image * p->pixels + begin) * p->channels,
             end - begin, p->channels, flip, (uint32_t *)step->out[0]->data + part * p->channels);
    return SDX_OK;
}

static uint32_t sum_of(const struct pool *p, const struct sdx_step *step, int64_t plane,
                       uint8_t flip)
{
    if (!p->is_last)
        return sdx_qbytes()->sum((const uint8_t *)step->in[0]->data + plane * p->pixels, flip,
                                 (size_t)p->pixels);
    const int64_t image = plane / p->channels * p->chunks * p->channels;
    const uint32_t *sums = (const uint32_t *)step->in[5]->data + image + plane % p->channels;
    uint32_t sum = 0;
    for (int64_t i = 0; i < p->chunks; i++)
        sum += sums[i * p->channels];
    return sum;
}

static enum sdx_status run_pool(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct pool *p = step->params;
    float factor;
    int32_t zero_x, zero_y;
    (void)x;
    pool_facts(step, p->pixels, &factor, &zero_x, &zero_y);
    const int32_t shift = step->out[0]->dtype == SDX_I8 ? 128 : 0;
    const struct sdx_qclamp range = {-shift, 255 - shift};
    const int64_t end = sdx_part_begin(p->planes, step->parts, part + 1, 1);
    for (int64_t at = sdx_part_begin(p->planes, step->parts, part, 1); at < end; at++) {
        const uint32_t total = sum_of(p, step, at, (uint8_t)shift);
        int32_t sum = (int32_t)(total - (uint32_t)p->pixels * (uint32_t)(zero_x + shift));
        sdx_requantize(&sum, 1, 0, factor, zero_y, range, (uint8_t *)step->out[0]->data + at);
    }
    return SDX_OK;
}

enum sdx_status sdx_qlinear_global_average_pool_infer(struct sdx_infer *ix)
{
    if (sdx_contrib_is_last(ix->node))
        return sdx_contrib_infer_last(ix, "", "GlobalAveragePool", 1, 1);
    return sdx_global_pool_infer(ix);
}

/* One pixel comes out: plain and channels last are the same there. */
void sdx_qlinear_global_average_pool_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    if (px->in[0]->layout == SDX_LAYOUT_LAST && !sdx_contrib_is_last(px->node))
        want->in[0] = SDX_LAYOUT_LAST;
}

enum sdx_status sdx_qlinear_global_average_pool_prepare(struct sdx_prepare *px)
{
    static const int scalars[] = {1, 2, 3, 4};
    struct pool *p = SDX_PREPARE_NEW(px, struct pool);
    struct sdx_tensor *in[6];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(check_scalars(px, scalars, SDX_COUNT_OF(scalars)));
    for (int i = 0; i < 5; i++)
        in[i] = sdx_prepare_has(px, i) ? px->in[i] : NULL;
    p->planes = px->out[0]->count;
    if (p->planes == 0) return SDX_OK;
    p->pixels = px->in[0]->count / p->planes;
    p->is_last = sdx_contrib_is_last(px->node);
    p->channels = px->in[0]->dims[p->is_last ? px->in[0]->rank - 1 : 1];
    p->is_last = p->is_last || px->in[0]->layout == SDX_LAYOUT_LAST;
    if (p->pixels < 1 || p->pixels > 1 << 24)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: %lld elements in a channel",
                        NAME(px->node), (long long)p->pixels);
    const int64_t parts = sdx_prepare_parts((double)px->in[0]->count, GRAIN, p->planes);
    if (!p->is_last)
        return sdx_prepare_step_on(px, "qlinear_pool", run_pool, p, parts, 0, 5, in, 1, px->out);
    const int64_t images = p->planes / p->channels;
    p->chunks = sdx_prepare_parts((double)(p->pixels * p->channels), GRAIN, p->pixels);
    const int64_t count = images * p->chunks * p->channels;
    struct sdx_tensor *out[] = {sdx_prepare_temp(px, SDX_U32, 1, &count), px->out[0]};
    if (!out[0]) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(sdx_prepare_step_on(px, "qlinear_pool_sums", run_pool_sums, p, images * p->chunks, 0, 1,
                                in, 1, out));
    in[5] = out[0];
    return sdx_prepare_step_on(px, "qlinear_pool", run_pool, p, 1, 0, 6, in, 1, px->out);
}
