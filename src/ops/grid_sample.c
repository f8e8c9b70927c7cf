/* SPDX-License-Identifier: Apache-2.0
 * GridSample on any number of spatial axes. A part takes a block of output positions, works out
 * where each one reads and with what weights, and applies that to all channels. f32 pictures of
 * two axes by kernels/sample.h; where they have many channels and are mostly read, these become
 * the lanes of vectors first. */
#include "ops/grid_sample.h"

#include <math.h>

#include "kernels/conv_block.h"
#include "kernels/sample.h"
#include "ops/move.h"
#include "tensor/convert.h"

enum sample_mode { SAMPLE_NEAREST, SAMPLE_LINEAR, SAMPLE_CUBIC };
enum sample_padding { SAMPLE_ZEROS, SAMPLE_BORDER, SAMPLE_REFLECTION };
enum { BLOCK = SDX_SAMPLE_BLOCK, AXES_MAX = 8 };

struct sample_params {
    enum sample_mode mode;
    enum sample_padding padding;
    bool align;
    int axes, taps;                             /* spatial axes; taps of one axis */
    int64_t combined;                           /* taps ^ axes */
    int64_t batch, channels, positions, blocks; /* blocks of positions in one batch element */
    int64_t dims[AXES_MAX], strides[AXES_MAX], plane;
    size_t size;
    /* f32, two axes */
    struct sdx_sample_plane picture;
    float scale[2], shift[2];
    int64_t rows, splits; /* blocks of lanes in one batch element; of positions, 0: by gathers */
};

enum sdx_status sdx_grid_sample_infer(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), rank_grid = sdx_infer_rank(ix, 1);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0 || rank_grid < 0) return rank < 0 ? SDX_OK : sdx_move_infer_rank(ix, 0, rank);
    const int64_t *x = sdx_infer_dims(ix, 0), *grid = sdx_infer_dims(ix, 1);
    if (rank < 3 || rank_grid != rank || (grid[rank - 1] >= 0 && grid[rank - 1] != rank - 2))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "GridSample: input of rank %d and grid of rank %d with %lld coordinates",
                        rank, rank_grid, (long long)(rank_grid > 0 ? grid[rank_grid - 1] : 0));
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank);
    if (!dims) return SDX_OUT_OF_MEMORY;
    SDX_TRY(sdx_infer_merge_dim(ix, x[0], grid[0], "batch", &dims[0]));
    dims[1] = x[1];
    for (int i = 2; i < rank; i++)
        dims[i] = grid[i - 1];
    return SDX_OK;
}

/* ---- where a coordinate reads ---- */

static double reflect(double x, double lo, double hi)
{
    double range = hi - lo;
    if (range <= 0) return lo;
    double d = x < lo ? lo - x : x > hi ? x - hi : -1;
    if (d < 0) return x;
    double n = floor(d / range), rest = d - n * range;
    bool even = fmod(n, 2) == 0;
    if (x < lo) return even ? lo + rest : hi - rest;
    return even ? hi - rest : lo + rest;
}

/* The element that index i stands for on an axis, -1: none (zero). */
static int64_t pixel_of(const struct sample_params *p, int64_t i, int64_t n)
{
    if (i >= 0 && i < n) return i;
    if (p->padding == SAMPLE_ZEROS) return -1;
    if (p->padding == SAMPLE_REFLECTION) {
        double lo = p->align ? 0 : -0.5, hi = p->align ? (double)n - 1 : (double)n - 0.5;
        i = (int64_t)reflect((double)i, lo, hi);
    }
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static void cubic_weights(double x, double *w)
{
    const double a = -0.75;
    double y = 1 - x;
    w[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
    w[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
    w[2] = ((a + 2) * y - (a + 3)) * y * y + 1;
    w[3] = ((a * (y + 1) - 5 * a) * (y + 1) + 8 * a) * (y + 1) - 4 * a;
}

static double within(const struct sample_params *p, double x, int64_t n)
{
    const double lo = p->align ? 0 : -0.5, hi = p->align ? (double)n - 1 : (double)n - 0.5;
    if (p->mode == SAMPLE_CUBIC || (x >= lo && x <= hi)) return x; /* cubic: each tap by itself */
    if (p->padding == SAMPLE_BORDER) return x < 0 ? 0 : x > (double)n - 1 ? (double)n - 1 : x;
    return p->padding == SAMPLE_REFLECTION ? reflect(x, lo, hi) : x;
}

/* Elements and weights of one axis for the normalised coordinate g. */
static void axis_taps(const struct sample_params *p, double g, int64_t n, int64_t *index, double *w)
{
    double x = p->align ? (g + 1) / 2 * ((double)n - 1) : ((g + 1) * (double)n - 1) / 2;
    x = (double)(float)x;
    if (isnan(x)) x = -1e9;
    x = x < -1e9 ? -1e9 : x > 1e9 ? 1e9 : x;
    if (p->mode == SAMPLE_NEAREST) x = nearbyint(x);
    x = within(p, x, n);
    if (p->mode == SAMPLE_NEAREST) {
        index[0] = pixel_of(p, (int64_t)x, n);
        w[0] = 1;
        return;
    }
    double low = floor(x), ratio = x - low;
    if (p->mode == SAMPLE_LINEAR) {
        w[0] = 1 - ratio;
        w[1] = ratio;
    } else {
        cubic_weights(ratio, w);
    }
    for (int t = 0; t < p->taps; t++)
        index[t] = pixel_of(p, (int64_t)low + t - (p->taps == 4 ? 1 : 0), n);
}

/* Offsets in a plane (-1: zero) and weights of one output position. */
static void position_taps(const struct sample_params *p, const struct sdx_tensor *grid, int64_t at,
                          int64_t *offset, double *weight)
{
    int64_t index[4];
    double w[4];
    int64_t have = 1;
    offset[0] = 0;
    weight[0] = 1;
    for (int a = 0; a < p->axes; a++) {
        /* the grid names the last axis first */
        axis_taps(p, sdx_load_f64(grid->dtype, grid->data, at * p->axes + p->axes - 1 - a),
                  p->dims[a], index, w);
        for (int64_t i = have - 1; i >= 0; i--)
            for (int t = p->taps - 1; t >= 0; t--) {
                int64_t to = i * p->taps + t;
                bool none = offset[i] < 0 || index[t] < 0;
                double product = weight[i] * w[t];
                int64_t place = none ? -1 : offset[i] + index[t] * p->strides[a];
                weight[to] = product;
                offset[to] = place;
            }
        have *= p->taps;
    }
}

/* ---- channels ---- */

#define SAMPLE(name, load, store)                                                                  \
    static void name(const struct sample_params *p, const struct sdx_tensor *in,                   \
                     struct sdx_tensor *out, int64_t src, int64_t dst, int64_t n,                  \
                     const int64_t *offset, const double *weight)                                  \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            double sum = 0;                                                                        \
            for (int64_t t = 0; t < p->combined; t++, offset++, weight++)                          \
                if (*offset >= 0) sum += *weight * (double)(load);                                 \
            store;                                                                                 \
        }                                                                                          \
    }
SAMPLE(sample_f32, ((const float *)in->data)[src + *offset],
       ((float *)out->data)[dst + i] = (float)sum)
SAMPLE(sample_f64, ((const double *)in->data)[src + *offset], ((double *)out->data)[dst + i] = sum)
SAMPLE(sample_any, sdx_load_f64(in->dtype, in->data, src + *offset),
       sdx_store_f64(out->dtype, out->data, dst + i, sum))
#undef SAMPLE

static void sample_nearest(const struct sample_params *p, const struct sdx_tensor *in,
                           struct sdx_tensor *out, int64_t src, int64_t dst, int64_t n,
                           const int64_t *offset)
{
    for (int64_t i = 0; i < n; i++) {
        char *to = (char *)out->data + (size_t)(dst + i) * p->size;
        if (offset[i] < 0)
            memset(to, 0, p->size);
        else
            sdx_move_one(to, (const char *)in->data + (size_t)(src + offset[i]) * p->size, p->size);
    }
}

static enum sdx_status run_sample(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sample_params *p = step->params;
    const struct sdx_tensor *in = step->in[0];
    struct sdx_tensor *out = step->out[0];
    int64_t *offset = x->scratch;
    double *weight = (double *)(void *)(offset + BLOCK * p->combined);
    int64_t units = p->batch * p->blocks;
    int64_t end = sdx_part_begin(units, step->parts, part + 1, 1);
    for (int64_t u = sdx_part_begin(units, step->parts, part, 1); u < end; u++) {
        int64_t b = u / p->blocks, first = u % p->blocks * BLOCK, n = p->positions - first;
        if (n > BLOCK) n = BLOCK;
        for (int64_t i = 0; i < n; i++)
            position_taps(p, step->in[1], b * p->positions + first + i, offset + i * p->combined,
                          weight + i * p->combined);
        for (int64_t c = 0; c < p->channels; c++) {
            int64_t src = (b * p->channels + c) * p->plane;
            int64_t dst = (b * p->channels + c) * p->positions + first;
            if (p->mode == SAMPLE_NEAREST)
                sample_nearest(p, in, out, src, dst, n, offset);
            else if (in->dtype == SDX_F32)
                sample_f32(p, in, out, src, dst, n, offset, weight);
            else if (in->dtype == SDX_F64)
                sample_f64(p, in, out, src, dst, n, offset, weight);
            else
                sample_any(p, in, out, src, dst, n, offset, weight);
        }
    }
    return SDX_OK;
}

/* ---- f32 pictures ---- */

struct taps {
    int32_t *offset;
    float *weight;
};
static struct taps picture_taps(const struct sample_params *p, const float *pairs, int64_t n,
                                void *scratch)
{
    const struct taps taps = {scratch, (float *)scratch + BLOCK * p->combined};
    float place[2][BLOCK] = {{0}};
    sdx_sample()->f32_places(pairs, p->scale, p->shift, p->mode == SAMPLE_NEAREST, n, place[0],
                             place[1]);
    if (p->padding == SAMPLE_REFLECTION)
        for (int a = 0; a < 2; a++)
            for (int64_t i = 0; i < n; i++)
                place[a][i] = (float)within(p, (double)place[a][i], p->dims[1 - a]);
    sdx_sample()->f32_taps(&p->picture, place[0], place[1], n, taps.offset, taps.weight);
    return taps;
}

static enum sdx_status run_gather(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sample_params *p = step->params;
    const float *in = step->in[0]->data, *grid = step->in[1]->data;
    const int64_t units = p->batch * p->blocks,
                  end = sdx_part_begin(units, step->parts, part + 1, 1);
    for (int64_t u = sdx_part_begin(units, step->parts, part, 1); u < end; u++) {
        const int64_t b = u / p->blocks, first = u % p->blocks * BLOCK, left = p->positions - first;
        const int64_t n = left < BLOCK ? left : BLOCK;
        const struct taps taps =
            picture_taps(p, grid + (b * p->positions + first) * 2, n, x->scratch);
        sdx_sample()->f32_gather(
            in + b * p->channels * p->plane, p->plane, p->channels, taps.offset, taps.weight,
            p->combined, n, (float *)step->out[0]->data + b * p->channels * p->positions + first,
            p->positions);
    }
    return SDX_OK;
}

/* A unit: some of the positions in one block of lanes of one batch element. */
static enum sdx_status run_lanes(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sample_params *p = step->params;
    const float *grid = step->in[1]->data;
    const int64_t units = p->batch * p->rows * p->splits, lanes = sdx_block_lanes();
    const int64_t begin = sdx_part_begin(units, step->parts, part, 1);
    const int64_t end = sdx_part_begin(units, step->parts, part + 1, 1);
    float *sums = (float *)x->scratch + 2 * BLOCK * p->combined, *blocked = sums + BLOCK * lanes;
    memset(blocked + p->plane * lanes, 0, (size_t)lanes * sizeof(float)); /* what is outside */
    for (int64_t u = begin; u < end && !sdx_exec_cancelled(x); u++) {
        const int64_t row = u / p->splits, b = row / p->rows, c = row % p->rows * lanes;
        const int64_t channels = p->channels - c < lanes ? p->channels - c : lanes;
        if (u == begin || u % p->splits == 0)
            sdx_block_from_plain((const float *)step->in[0]->data +
                                     (b * p->channels + c) * p->plane,
                                 blocked, channels, p->plane, 0, 1, 0, p->plane);
        const int64_t stop = sdx_part_begin(p->positions, p->splits, u % p->splits + 1, BLOCK);
        int64_t first = sdx_part_begin(p->positions, p->splits, u % p->splits, BLOCK);
        for (; first < stop; first += BLOCK) {
            const int64_t n = stop - first < BLOCK ? stop - first : BLOCK;
            const struct taps taps =
                picture_taps(p, grid + (b * p->positions + first) * 2, n, x->scratch);
            sdx_sample()->f32_lanes(blocked, taps.offset, taps.weight, p->combined, n, sums);
            sdx_block_to_plain(
                sums, (float *)step->out[0]->data + (b * p->channels + c) * p->positions + first,
                channels, p->positions, 0, 1, 0, n);
        }
    }
    return SDX_OK;
}

static bool is_picture(const struct sdx_prepare *px, const struct sample_params *p)
{
    return p->axes == 2 && px->in[0]->dtype == SDX_F32 && px->in[1]->dtype == SDX_F32 &&
           p->plane < INT32_MAX && p->dims[0] < 1 << 24 && p->dims[1] < 1 << 24 &&
           !(p->mode == SAMPLE_CUBIC && p->padding == SAMPLE_REFLECTION);
}
static enum sdx_status prepare_picture(struct sdx_prepare *px, struct sample_params *p)
{
    const int64_t lanes = sdx_block_lanes();
    const double work = (double)px->out[0]->count * (double)p->combined;
    for (int a = 0; a < 2; a++) {
        const float n = (float)p->dims[1 - a];
        p->scale[a] = (p->align ? n - 1 : n) / 2;
        p->shift[a] = (n - 1) / 2;
    }
    const bool by_lanes =
        p->channels * 2 >= lanes && p->positions * 2 >= p->plane && p->plane * lanes <= 1 << 22;
    p->picture = (struct sdx_sample_plane){p->taps,
                                           (int32_t)p->dims[1],
                                           (int32_t)p->dims[0],
                                           p->padding != SAMPLE_ZEROS,
                                           by_lanes ? (int32_t)p->plane : -1,
                                           p->align ? 0 : -0.5f};
    size_t scratch = BLOCK * (size_t)p->combined * 8;
    if (!by_lanes)
        return sdx_prepare_step(px, "grid_sample_f32", run_gather, p,
                                sdx_prepare_parts(work, 32768, p->batch * p->blocks), scratch);
    p->rows = (p->channels + lanes - 1) / lanes;
    p->splits = p->batch * p->rows >= 4 ? 1 : 2;
    scratch += (size_t)(p->plane + 1 + BLOCK) * (size_t)lanes * sizeof(float);
    return sdx_prepare_step(px, "grid_sample_f32_lanes", run_lanes, p,
                            sdx_prepare_parts(work, 131072, p->batch * p->rows * p->splits),
                            scratch);
}

static enum sdx_status read_modes(struct sdx_prepare *px, struct sample_params *p)
{
    struct sdx_str mode = sdx_ir_attr_str(px->node, "mode", "linear");
    struct sdx_str padding = sdx_ir_attr_str(px->node, "padding_mode", "zeros");
    if (sdx_str_is(mode, "nearest"))
        p->mode = SAMPLE_NEAREST;
    else if (sdx_str_is(mode, "linear") || sdx_str_is(mode, "bilinear"))
        p->mode = SAMPLE_LINEAR;
    else if (sdx_str_is(mode, "cubic") || sdx_str_is(mode, "bicubic"))
        p->mode = SAMPLE_CUBIC;
    else
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "GridSample: mode \"%.*s\"", SDX_STR_ARG(mode));
    if (sdx_str_is(padding, "zeros"))
        p->padding = SAMPLE_ZEROS;
    else if (sdx_str_is(padding, "border"))
        p->padding = SAMPLE_BORDER;
    else if (sdx_str_is(padding, "reflection"))
        p->padding = SAMPLE_REFLECTION;
    else
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "GridSample: padding_mode \"%.*s\"",
                        SDX_STR_ARG(padding));
    p->align = sdx_ir_attr_int(px->node, "align_corners", 0) != 0;
    return SDX_OK;
}

enum sdx_status sdx_grid_sample_prepare(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0], *grid = px->in[1];
    struct sample_params *p = SDX_PREPARE_NEW(px, struct sample_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    SDX_TRY(read_modes(px, p));
    p->axes = in->rank - 2;
    p->taps = p->mode == SAMPLE_NEAREST ? 1 : p->mode == SAMPLE_LINEAR ? 2 : 4;
    if (p->axes > AXES_MAX || (p->taps == 4 && p->axes > 5))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "GridSample: %d spatial axes", p->axes);
    if (p->taps > 1 && (in->dtype == SDX_STRING || sdx_dtype_is_complex(in->dtype)))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "GridSample: element type %s in this mode",
                        sdx_dtype_short_name(in->dtype));
    p->combined = 1;
    p->plane = p->positions = 1;
    for (int a = p->axes - 1; a >= 0; a--) {
        p->dims[a] = in->dims[a + 2];
        p->strides[a] = p->plane;
        p->plane *= p->dims[a];
        p->positions *= grid->dims[a + 1];
        p->combined *= p->taps;
    }
    p->size = sdx_move_size(in->dtype);
    p->batch = px->out[0]->count ? in->dims[0] : 0;
    p->channels = in->dims[1];
    p->blocks = (p->positions + BLOCK - 1) / BLOCK;
    if (p->batch && p->plane == 0)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "GridSample: the input is empty");
    int64_t units = p->batch * p->blocks;
    if (units > 0 && p->channels > 0 && is_picture(px, p)) return prepare_picture(px, p);
    double work = (double)px->out[0]->count * (double)p->combined;
    return sdx_move_step(px, "grid_sample", run_sample, p,
                         sdx_prepare_parts(work, 32768, units > 0 ? units : 1),
                         BLOCK * (size_t)p->combined * (sizeof(int64_t) + sizeof(double)));
}
