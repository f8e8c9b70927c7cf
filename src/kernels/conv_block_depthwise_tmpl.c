/* SPDX-License-Identifier: Apache-2.0
 * Strips of depthwise outputs on blocked channels: a vector holds one pixel of all channels of a
 * block, several neighbouring outputs of a line are summed at a time. Once an instruction set. */
#include "kernels/conv_block_curve.h"
#include "kernels/conv_block_depthwise.h"
#include "kernels/conv_gather.h"
#include "kernels/tables.h"

enum { MOST_ROWS = SDX_DEPTHWISE_ROWS };
struct line {
    const float *rows[MOST_ROWS]; /* of the input, under each row of the kernel in the image */
    int count, taps;
    int64_t stride, dilation, n, pad, width; /* the last: columns of the image */
    const float *w, *bias, *residual;
    float *y, lo, hi;
    int64_t bent; /* first line of y that has no curve yet */
};

SIMD void begin(const int count, const struct line *l, vf *sums)
{
    const vf bias = v_load(l->bias);
    SDX_UNROLL(14) for (int i = 0; i < count; i++) sums[i] = bias;
}
SIMD void finish(const int count, const struct line *l, int64_t at, vf *sums)
{
    const vf lo = v_set1(l->lo), hi = v_set1(l->hi);
    float *y = l->y + at * LANES;
    P_KEEP(y);
    if (l->residual) {
        const float *more = l->residual + at * LANES;
        SDX_UNROLL(14) for (int i = 0; i < count; i++) sums[i] += v_load(more + i * LANES);
    }
    SDX_UNROLL(14)
    for (int i = 0; i < count; i++)
        v_store(y + i * LANES, v_min(hi, v_max(lo, sums[i])));
}

/* Kernels of 3 columns, whose weights all stay in registers: each column of the input is added to
 * the outputs that it reaches. No group of sums has to end before the next begins, and columns
 * beside the image are left out. rows: of the kernel in the image. */
struct window {
    vf w[3][3], bias, lo, hi;
    const float *x, *residual;
    float *y;
    int64_t apart[3]; /* floats from x to the same column of the rows under it */
};
SIMD struct window open_window(const int rows, const struct line *l)
{
    struct window o = {.bias = v_load(l->bias), .lo = v_set1(l->lo), .hi = v_set1(l->hi)};
    SDX_UNROLL(3) for (int r = 0; r < rows; r++)
    {
        o.apart[r] = l->rows[r] - l->rows[0];
        SDX_UNROLL(3) for (int k = 0; k < 3; k++)
        {
            o.w[r][k] = v_load(l->w + (r * 3 + k) * LANES);
            V_KEEP(o.w[r][k]);
        }
    }
    o.x = l->rows[0];
    o.y = l->y;
    o.residual = l->residual;
    return o;
}
SIMD void put(struct window *o, vf sum)
{
    if (SDX_UNLIKELY(o->residual)) {
        sum += v_load(o->residual);
        o->residual += LANES;
    }
    v_store(o->y, v_min(o->hi, v_max(o->lo, sum)));
    o->y += LANES;
}
/* Adds a column to the sums of outputs by the weights given; NULL: of none. */
SIMD void column(const int rows, struct window *o, vf *by_0, vf *by_1, vf *by_2)
{
    SDX_UNROLL(3) for (int r = 0; r < rows; r++)
    {
        vf pixel = v_load(o->x + o->apart[r]);
        V_KEEP(pixel);
        if (by_2) *by_2 = v_fma(o->w[r][2], pixel, *by_2);
        if (by_1) *by_1 = v_fma(o->w[r][1], pixel, *by_1);
        if (by_0) *by_0 = v_fma(o->w[r][0], pixel, *by_0);
    }
    o->x += LANES;
}
/* The next column with stride 1: one output begins, one ends. */
SIMD void step(const int rows, struct window *o, vf *begins, vf *goes_on, vf *ends)
{
    *begins = o->bias;
    column(rows, o, begins, goes_on, ends);
}
SIMD void slide_1(const int rows, const struct line *l)
{
    struct window o = open_window(rows, l);
    int64_t early = 2 - l->pad; /* columns at which no output ends */
    int64_t columns = conv_least(l->width, l->n + early), late = l->n + early - columns;
    vf a = o.bias, b = o.bias, c;
    for (; early > 0 && columns > 0; early--, columns--) {
        c = b, b = a;
        step(rows, &o, &a, &b, &c);
    }
    for (; columns > 2; columns -= 3) {
        step(rows, &o, &c, &a, &b);
        put(&o, b);
        step(rows, &o, &b, &c, &a);
        put(&o, a);
        step(rows, &o, &a, &b, &c);
        put(&o, c);
    }
    for (; columns > 0; columns--) {
        c = b, b = a;
        step(rows, &o, &a, &b, &c);
        put(&o, c);
    }
    for (; late > 0; late--, early--) {
        c = b, b = a, a = o.bias;
        if (early <= 0) put(&o, c);
    }
}
SIMD void slide_2(const int rows, const struct line *l)
{
    struct window o = open_window(rows, l);
    vf a = o.bias, b;
    if (l->pad == 0) column(rows, &o, &a, NULL, NULL);
    column(rows, &o, NULL, &a, NULL);
    for (int64_t left = l->n - 1; left > 0; left--) {
        b = a, a = o.bias;
        column(rows, &o, &a, NULL, &b);
        put(&o, b);
        column(rows, &o, NULL, &a, NULL);
    }
    if (2 * l->n - l->pad < l->width) column(rows, &o, NULL, NULL, &a);
    put(&o, a);
}
#define SLIDE(stride, rows)                                                                        \
    static void slide_##stride##_##rows(const struct line *l)                                      \
    {                                                                                              \
        slide_##stride(rows, l);                                                                   \
    }
SLIDE(1, 1)
SLIDE(1, 2)
SLIDE(1, 3)
SLIDE(2, 1)
SLIDE(2, 2)
SLIDE(2, 3)

/* Kernels of 5 columns: a pixel is loaded once for a row of the kernel, whose weights stay in
 * registers. */
SIMD void dense(const int stride, const int count, const struct line *l, int64_t at)
{
    vf sums[8];
    begin(count, l, sums);
    const float *w = l->w;
    for (int r = 0; r < l->count; r++, w += 5 * LANES) {
        const float *x = l->rows[r] + at * stride * LANES;
        P_KEEP(x);
        vf tap[5];
        SDX_UNROLL(5) for (int k = 0; k < 5; k++)
        {
            tap[k] = v_load(w + k * LANES);
            V_KEEP(tap[k]);
        }
        SDX_UNROLL(24) for (int c = 0; c < (count - 1) * stride + 5; c++)
        {
            vf pixel = v_load(x + c * LANES);
            V_KEEP(pixel);
            SDX_UNROLL(8) for (int i = 0; i < count; i++)
            {
                const int k = c - i * stride;
                if (k >= 0 && k < 5) sums[i] = v_fma(tap[k], pixel, sums[i]);
            }
        }
    }
    finish(count, l, at, sums);
}
/* Any kernel: more sums at a time, one weight in a register, each pixel an operand of its product.
 * stride: 0 if not known when compiling. */
SIMD void sparse(const int stride, const int count, const struct line *l, int64_t at)
{
    const int64_t step = (stride ? stride : l->stride) * LANES, skip = l->dilation * LANES;
    vf sums[14];
    begin(count, l, sums);
    const float *w = l->w;
    for (int r = 0; r < l->count; r++) {
        const float *x = l->rows[r] + at * step;
        for (int k = l->taps; k > 0; k--, x += skip, w += LANES) {
            P_KEEP(x);
            const vf tap = v_load(w);
            SDX_UNROLL(14)
            for (int i = 0; i < count; i++)
                sums[i] = v_fma(tap, v_load(x + i * step), sums[i]);
        }
    }
    finish(count, l, at, sums);
}

/* A line in groups of at most so many outputs, as equal as can be: a group of few runs at the
 * latency of its sums. */
#define UP_TO_8(sums, stride)                                                                      \
    case 1: sums(stride, 1, l, at); break;                                                         \
    case 2: sums(stride, 2, l, at); break;                                                         \
    case 3: sums(stride, 3, l, at); break;                                                         \
    case 4: sums(stride, 4, l, at); break;                                                         \
    case 5: sums(stride, 5, l, at); break;                                                         \
    case 6: sums(stride, 6, l, at); break;                                                         \
    case 7: sums(stride, 7, l, at); break;                                                         \
    case 8:                                                                                        \
        sums(stride, 8, l, at);                                                                    \
        break;
#define FROM_9_TO_14(sums, stride)                                                                 \
    case 9: sums(stride, 9, l, at); break;                                                         \
    case 10: sums(stride, 10, l, at); break;                                                       \
    case 11: sums(stride, 11, l, at); break;                                                       \
    case 12: sums(stride, 12, l, at); break;                                                       \
    case 13: sums(stride, 13, l, at); break;                                                       \
    case 14:                                                                                       \
        sums(stride, 14, l, at);                                                                   \
        break;
#define UP_TO_14(sums, stride) UP_TO_8(sums, stride) FROM_9_TO_14(sums, stride)
#define LINE(name, sums, stride, most)                                                             \
    static void name(const struct line *l)                                                         \
    {                                                                                              \
        for (int64_t at = 0, left = l->n; left > 0;) {                                             \
            const int64_t groups = (left + (most)-1) / (most);                                     \
            const int64_t count = (left + groups - 1) / groups;                                    \
            switch (count) {                                                                       \
                UP_TO_##most(sums, stride)                                                         \
            }                                                                                      \
            at += count;                                                                           \
            left -= count;                                                                         \
        }                                                                                          \
    }
LINE(dense_1, dense, 1, 8)
LINE(dense_2, dense, 2, 8)
LINE(sparse_1, sparse, 1, 14)
LINE(sparse_any, sparse, 0, 14)

typedef void line_function(const struct line *l);
static line_function *line_of(const struct sdx_conv_shape *s)
{
    const bool is_dense = s->kernel[2] == 5 && s->dilation[2] == 1;
    if (s->stride[2] == 1) return is_dense ? dense_1 : sparse_1;
    return s->stride[2] == 2 && is_dense ? dense_2 : sparse_any;
}

/* The columns of the input that a strip reads, and those of them in the image. */
struct columns {
    int64_t first, width, lo, hi;
};
SIMD void copy_row(const struct columns *c, const int32_t *pick, const float *row, float *ring)
{
    const float *from = row + (c->first + c->lo) * LANES;
    float *to = ring + c->lo * LANES;
    int64_t i = c->hi - c->lo;
    if (pick) {
        const vi lanes = vi_load(pick);
        for (; i > 0; i--, from += LANES, to += LANES)
            v_store(to, v_permute(v_load(from), lanes));
    }
    for (; i > 0; i--, from += LANES, to += LANES)
        v_store(to, v_load(from));
}
SIMD struct line line_begin(const struct sdx_conv_shape *s, const struct sdx_depthwise_strip *t)
{
    struct line l = {.taps = (int)s->kernel[2],
                     .stride = s->stride[2],
                     .dilation = s->dilation[2],
                     .n = t->end - t->from,
                     .pad = s->pad_begin[2],
                     .width = s->in[2],
                     .bias = t->bias,
                     .bent = t->h0};
    conv_limits(t->act, t->a, t->b, &l.lo, &l.hi);
    return l;
}
/* The curve over what is summed of y up to line h and not bent yet: whole lines several at a time,
 * as a call takes four vectors at least. */
SIMD void bend(const struct sdx_conv_shape *s, const struct sdx_depthwise_strip *t, int64_t h,
               struct line *l)
{
    enum { ENOUGH = 64 }; /* vectors, still in the first cache */
    if (!block_is_curved(t->act)) return;
    if (l->n < s->out[2]) {
        block_curve(l->y, l->n, t->act, t->a, t->b);
        return;
    }
    const int64_t lines = h + 1 - l->bent;
    if (lines * l->n < ENOUGH && h + 1 < t->h1) return;
    block_curve(t->y + l->bent * l->n * LANES, lines * l->n, t->act, t->a, t->b);
    l->bent = h + 1;
}
/* Line h, which sees the rows lo..hi of the kernel. */
SIMD void line_run(line_function *run, const struct sdx_conv_shape *s,
                   const struct sdx_depthwise_strip *t, int64_t h, int64_t lo, int64_t hi,
                   struct line *l)
{
    const int64_t to = (h * s->out[2] + t->from) * LANES;
    l->count = (int)(hi - lo);
    l->w = t->w + lo * l->taps * LANES;
    l->y = t->y + to;
    l->residual = t->residual ? t->residual + to : NULL;
    run(l);
    bend(s, t, h, l);
}
static void strip(const struct sdx_conv_shape *s, const struct sdx_depthwise_strip *t)
{
    static line_function *const slides[2][4] = {{sparse_any, slide_1_1, slide_1_2, slide_1_3},
                                                {sparse_any, slide_2_1, slide_2_2, slide_2_3}};
    line_function *const *const slide =
        sdx_depthwise_block_slides(s) ? slides[s->stride[2] - 1] : NULL;
    line_function *const run = line_of(s);
    const int64_t pitch = s->in[2] * LANES, dilation = s->dilation[1];
    struct line l = line_begin(s, t);
    struct columns c = {.first = slide ? 0 : t->from * s->stride[2] - s->pad_begin[2],
                        .width = sdx_depthwise_block_columns(s, l.n)};
    conv_valid(c.first, 1, s->in[2], c.width, &c.lo, &c.hi);
    const int64_t size = c.width * LANES;
    const uint32_t span = (uint32_t)((s->kernel[1] - 1) * dilation + 1);
    int64_t next = 0; /* first row not in the ring; dilated, a later line may need an earlier one */
    for (int64_t h = t->h0; h < t->h1; h++) {
        const int64_t top = h * s->stride[1] - s->pad_begin[1];
        int64_t lo, hi;
        conv_valid(top, dilation, s->in[1], s->kernel[1], &lo, &hi);
        const int64_t row = top + lo * dilation;
        if (t->ring && lo < hi) {
            for (next = conv_most(next, conv_most(top, 0)); next <= top + (hi - 1) * dilation;
                 next++)
                copy_row(&c, t->pick, t->x + next * pitch, t->ring + (uint32_t)next % span * size);
            uint32_t slot = (uint32_t)row % span;
            for (int64_t k = lo; k < hi; k++) {
                l.rows[k - lo] = t->ring + slot * size;
                slot += (uint32_t)dilation;
                if (slot >= span) slot -= span;
            }
        } else
            for (int64_t k = lo; k < hi; k++)
                l.rows[k - lo] = t->x + (top + k * dilation) * pitch + c.first * LANES;
        line_run(slide ? slide[hi - lo] : run, s, t, h, lo, hi, &l);
    }
}

void SDX_INIT(sdx_conv_block_depthwise_init_)(struct sdx_conv_block_table *block)
{
    block->lanes = LANES;
    block->f32_depthwise = strip;
}
