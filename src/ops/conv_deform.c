/* SPDX-License-Identifier: Apache-2.0
 * DeformConv: the samples of a block of pixels are gathered into a matrix [channels * taps, pixels]
 * by multilinear interpolation (0 outside the input), which the weights then multiply. Positions of
 * f32 are rounded to f32, but in three dimensions. */
#include "ops/conv_deform.h"

#include <math.h>

#include "kernels/gemm.h"
#include "kernels/sample.h"
#include "kernels/vec.h"
#include "ops/window.h"

enum { BLOCK = 128, CORNERS_MAX = 8 };

enum sdx_status sdx_deform_conv_infer(struct sdx_infer *ix)
{
    struct sdx_window w;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    int rank = sdx_infer_rank(ix, 0);
    const int64_t *dims_x = sdx_infer_dims(ix, 0), *dims_w = sdx_infer_dims(ix, 1);
    if (rank >= 0 && rank < 3)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "DeformConv: input has rank %d, expected at least 3",
                        rank);
    if (rank < 0 || !dims_w) return SDX_OK;
    if (sdx_infer_rank(ix, 1) != rank)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "DeformConv: weight has rank %d, expected %d",
                        sdx_infer_rank(ix, 1), rank);
    SDX_TRY(sdx_window_read(ix->cx, ix->node, rank - 2, dims_w + 2, &w));
    int64_t *out = sdx_infer_new_dims(ix, 0, rank);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    out[0] = dims_x[0];
    out[1] = dims_w[0];
    return sdx_window_infer(ix, &w, dims_x, out);
}

struct params {
    struct sdx_conv_shape s;
    int axes; /* 1 to 3, the last ones of s */
    int64_t offset_groups, taps, in_plane, out_plane, blocks;
    bool in_planes; /* gather_planes */
};

/* Where a sample lies: `corners` elements of a plane and their weights; elements outside have
 * weight 0 and index 0. */
struct sample {
    int64_t at[CORNERS_MAX];
    double weight[CORNERS_MAX];
};

static void place_sample(const struct params *p, const double *position, double mask,
                         struct sample *out)
{
    int corners = 1 << p->axes;
    for (int c = 0; c < corners; c++) {
        double weight = mask;
        int64_t at = 0;
        bool inside = true;
        for (int i = 0; i < p->axes; i++) {
            int64_t length = p->s.in[3 - p->axes + i];
            double low = floor(position[i]), part = position[i] - low;
            bool upper = (c >> i & 1) != 0;
            double where = upper ? low + 1 : low;
            weight *= upper ? part : 1 - part;
            inside = inside && where >= 0 && where < (double)length;
            at = at * length + (inside ? (int64_t)where : 0);
        }
        out->at[c] = inside ? at : 0;
        out->weight[c] = inside ? weight : 0;
    }
}

/* Where tap t of an offset group reads pixels begin .. begin + n - 1 of the output, along axis i of
 * the last two; limited, so that an integer holds it. */
static void places_of(const struct params *p, const float *offset, int64_t t, int64_t begin,
                      int64_t n, int i, float *to)
{
    const struct sdx_conv_shape *s = &p->s;
    const int a = 1 + i;
    const int64_t k = i ? t % s->kernel[2] : t / s->kernel[2];
    const int64_t shift = k * s->dilation[a] - s->pad_begin[a];
    for (int64_t j = 0; j < n; j++) {
        const int64_t pixel = begin + j, o = i ? pixel % s->out[2] : pixel / s->out[2];
        const float at = (float)(o * s->stride[a] + shift) + (offset ? offset[pixel] : 0);
        to[j] = at > -1e9f ? (at < 1e9f ? at : 1e9f) : -1e9f;
    }
}

/* The matrix of a block of at most two dimensions, as `gather` makes it. */
static void gather_planes(const struct params *p, const struct sdx_step *step, int64_t n, int64_t g,
                          int64_t begin, int64_t count, float *columns)
{
    enum { MOST = SDX_SAMPLE_BLOCK, TAPS = 4 };
    const struct sdx_conv_shape *s = &p->s;
    const struct sdx_sample_plane plane = {
        .taps = 2, .width = (int32_t)s->in[2], .height = (int32_t)s->in[1], .none = -1};
    const float *offset = step->in[2]->data, *mask = step->in[4] ? step->in[4]->data : NULL;
    const int64_t icg = s->ic / s->groups, per_offset = s->ic / p->offset_groups;
    float x[MOST] = {0}, y[MOST] = {0}, weight[TAPS * MOST];
    int32_t at[TAPS * MOST];
    for (int64_t c = 0, last; c < icg; c = last) {
        const int64_t channel = g * icg + c, og = channel / per_offset;
        const float *from = (const float *)step->in[0]->data + (n * s->ic + channel) * p->in_plane;
        last = (og + 1) * per_offset - g * icg < icg ? (og + 1) * per_offset - g * icg : icg;
        for (int64_t t = 0; t < p->taps; t++) {
            const int64_t slot = (n * p->offset_groups + og) * p->taps + t;
            const float *moves = offset + slot * p->axes * p->out_plane;
            for (int64_t j = 0; j < count; j += MOST) {
                const int64_t some = count - j < MOST ? count - j : MOST;
                places_of(p, p->axes > 1 ? moves : NULL, t, begin + j, some, 0, y);
                places_of(p, moves + (p->axes - 1) * p->out_plane, t, begin + j, some, 1, x);
                sdx_sample()->f32_taps(&plane, x, y, some, at, weight);
                for (int i = 0; mask && i < TAPS; i++)
                    sdx_vec()->f32_mul(weight + i * MOST, 1, mask + slot * p->out_plane + begin + j,
                                       1, weight + i * MOST, (size_t)some);
                sdx_sample()->f32_gather(from, p->in_plane, last - c, at, weight, TAPS, some,
                                         columns + (c * p->taps + t) * count + j, p->taps * count);
            }
        }
    }
}

/* One type: `gather` fills the matrix of a block, `run` multiplies it. */
#define DEFORM(gather, run, T, MULTIPLY)                                                           \
    static void gather(const struct params *p, const struct sdx_step *step, int64_t n, int64_t g,  \
                       int64_t begin, int64_t count, T *columns)                                   \
    {                                                                                              \
        const struct sdx_conv_shape *s = &p->s;                                                    \
        const T *x = (const T *)step->in[0]->data, *offset = step->in[2]->data;                    \
        const T *mask = step->in[4] ? step->in[4]->data : NULL;                                    \
        int64_t icg = s->ic / s->groups, per_offset = s->ic / p->offset_groups;                    \
        for (int64_t c = 0; c < icg;) {                                                            \
            int64_t channel = g * icg + c, og = channel / per_offset;                              \
            int64_t last = (og + 1) * per_offset - g * icg;                                        \
            if (last > icg) last = icg;                                                            \
            for (int64_t t = 0; t < p->taps; t++)                                                  \
                for (int64_t j = 0; j < count; j++) {                                              \
                    int64_t pixel = begin + j, tap_rest = t, pixel_rest = pixel;                   \
                    int64_t slot = (n * p->offset_groups + og) * p->taps + t;                      \
                    double position[3], m = mask ? (double)mask[slot * p->out_plane + pixel] : 1;  \
                    struct sample at;                                                              \
                    for (int i = p->axes - 1; i >= 0; i--) {                                       \
                        int a = 3 - p->axes + i;                                                   \
                        int64_t k = tap_rest % s->kernel[a], o = pixel_rest % s->out[a];           \
                        tap_rest /= s->kernel[a];                                                  \
                        pixel_rest /= s->out[a];                                                   \
                        position[i] =                                                              \
                            (double)(o * s->stride[a] + k * s->dilation[a] - s->pad_begin[a]) +    \
                            (double)offset[(slot * p->axes + i) * p->out_plane + pixel];           \
                    }                                                                              \
                    place_sample(p, position, m, &at);                                             \
                    for (int64_t k = c; k < last; k++) {                                           \
                        const T *plane = x + (n * s->ic + g * icg + k) * p->in_plane;              \
                        double sum = 0;                                                            \
                        for (int i = 0; i < 1 << p->axes; i++)                                     \
                            sum += at.weight[i] * (double)plane[at.at[i]];                         \
                        columns[(k * p->taps + t) * count + j] = (T)sum;                           \
                    }                                                                              \
                }                                                                                  \
            c = last;                                                                              \
        }                                                                                          \
    }                                                                                              \
    static enum sdx_status run(struct sdx_exec *x, const struct sdx_step *step, int64_t part)      \
    {                                                                                              \
        const struct params *p = step->params;                                                     \
        const struct sdx_conv_shape *s = &p->s;                                                    \
        int64_t block = part % p->blocks, g = part / p->blocks % s->groups;                        \
        int64_t n = part / p->blocks / s->groups, begin = block * BLOCK;                           \
        int64_t count = p->out_plane - begin < BLOCK ? p->out_plane - begin : BLOCK;               \
        int64_t ocg = s->oc / s->groups, k = s->ic / s->groups * p->taps;                          \
        T *columns = x->scratch, *y = step->out[0]->data;                                          \
        const T *w = (const T *)step->in[1]->data + g * ocg * k;                                   \
        const T *bias = step->in[3] ? (const T *)step->in[3]->data + g * ocg : NULL;               \
        if (sdx_exec_cancelled(x)) return SDX_OK;                                                  \
        if (p->in_planes)                                                                          \
            gather_planes(p, step, n, g, begin, count, (void *)columns);                           \
        else                                                                                       \
            gather(p, step, n, g, begin, count, columns);                                          \
        y += (n * s->oc + g * ocg) * p->out_plane + begin;                                         \
        MULTIPLY(ocg, count, k, w, columns, bias, y, p->out_plane);                                \
        return SDX_OK;                                                                             \
    }

static size_t columns_size(int64_t k, size_t element)
{
    return ((size_t)(k * BLOCK) * element + 63) / 64 * 64;
}

static void multiply_f32(int64_t m, int64_t n, int64_t k, const float *w, float *columns,
                         const float *bias, float *y, int64_t row_y)
{
    struct sdx_gemm_f32 g = {.m = m, .n = n, .k = k, .a = w, .row_a = k, .col_a = 1, .alpha = 1};
    g.c = y;
    g.row_c = row_y;
    g.epilogue.bias_row = bias;
    sdx_gemm_f32_plain(&g, columns, n, 1, 0, m, 0, n, (char *)columns + columns_size(k, 4));
}

static void multiply_f64(int64_t m, int64_t n, int64_t k, const double *w, double *columns,
                         const double *bias, double *y, int64_t row_y)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            y[i * row_y + j] = bias ? bias[i] : 0;
    sdx_gemm_f64(m, n, k, 1, w, k, 1, columns, n, 1, 1, y, row_y);
}

DEFORM(gather_f32, run_f32, float, multiply_f32)
DEFORM(gather_f64, run_f64, double, multiply_f64)
#undef DEFORM

static enum sdx_status check(struct sdx_prepare *px, const struct params *p)
{
    const struct sdx_conv_shape *s = &p->s;
    const struct sdx_tensor *offset = px->in[2];
    const struct sdx_tensor *mask = sdx_prepare_has(px, 4) ? px->in[4] : NULL;
    if (s->groups < 1 || s->ic != px->in[1]->dims[1] * s->groups || s->oc % s->groups != 0)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "DeformConv: %lld channels, weights for %lld and group %lld do not agree",
                        (long long)s->ic, (long long)px->in[1]->dims[1], (long long)s->groups);
    if (p->offset_groups < 1 || s->ic % p->offset_groups != 0)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "DeformConv: %lld channels do not divide into %lld offset groups",
                        (long long)s->ic, (long long)p->offset_groups);
    int64_t slots = s->batch * p->offset_groups * p->taps * p->out_plane;
    if (offset->count != slots * p->axes)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "DeformConv: offset has %lld values, expected %lld",
                        (long long)offset->count, (long long)(slots * p->axes));
    if (mask && mask->count != slots)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "DeformConv: mask has %lld values, expected %lld",
                        (long long)mask->count, (long long)slots);
    if (sdx_prepare_has(px, 3) && px->in[3]->count != s->oc)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "DeformConv: bias has %lld values, expected %lld",
                        (long long)px->in[3]->count, (long long)s->oc);
    return SDX_OK;
}

enum sdx_status sdx_deform_conv_prepare(struct sdx_prepare *px)
{
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    struct sdx_window w;
    int64_t length;
    const struct sdx_tensor *x = px->in[0], *y = px->out[0];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (y->count == 0) return SDX_OK;
    if (x->rank > 5)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED,
                        "DeformConv: %d spatial axes, at most 3 are supported", x->rank - 2);
    SDX_TRY(sdx_window_read(px->cx, px->node, x->rank - 2, px->in[1]->dims + 2, &w));
    for (int i = 0; i < w.rank; i++)
        SDX_TRY(sdx_window_length(px->cx, px->node, &w, i, x->dims[i + 2], &length));
    sdx_window_shape(&w, x->dims + 2, y->dims + 2, &p->s);
    p->s.batch = x->dims[0];
    p->s.groups = sdx_ir_attr_int(px->node, "group", 1);
    p->s.ic = x->dims[1];
    p->s.oc = y->dims[1];
    p->axes = w.rank;
    p->offset_groups = sdx_ir_attr_int(px->node, "offset_group", 1);
    p->taps = p->s.kernel[0] * p->s.kernel[1] * p->s.kernel[2];
    p->in_plane = p->s.in[0] * p->s.in[1] * p->s.in[2];
    p->out_plane = p->s.out[0] * p->s.out[1] * p->s.out[2];
    p->blocks = (p->out_plane + BLOCK - 1) / BLOCK;
    p->in_planes = x->dtype == SDX_F32 && p->axes < 3 && p->in_plane < INT32_MAX;
    SDX_TRY(check(px, p));
    struct sdx_tensor *in[] = {px->in[0], px->in[1], px->in[2],
                               sdx_prepare_has(px, 3) ? px->in[3] : NULL,
                               sdx_prepare_has(px, 4) ? px->in[4] : NULL};
    int64_t parts = p->s.batch * p->s.groups * p->blocks, ocg = p->s.oc / p->s.groups;
    int64_t k = p->s.ic / p->s.groups * p->taps;
    if (x->dtype == SDX_F32)
        return sdx_prepare_step_on(px, "deform_conv_f32", run_f32, p, parts,
                                   columns_size(k, 4) + sdx_gemm_f32_plain_scratch(ocg, BLOCK, k),
                                   5, in, 1, px->out);
    if (x->dtype == SDX_F64)
        return sdx_prepare_step_on(px, "deform_conv_f64", run_f64, p, parts, columns_size(k, 8), 5,
                                   in, 1, px->out);
    return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "DeformConv: element type %s",
                    sdx_dtype_short_name(x->dtype));
}
