/* SPDX-License-Identifier: Apache-2.0
 * Operators of detection and spatial transformers: RoiAlign, MaxRoiPool, AffineGrid, Col2Im and
 * GridSample (grid_sample.c). ImageDecoder needs image codecs, which the library does not have. */
#include <math.h>

#include "kernels/vec.h"
#include "ops/grid_sample.h"
#include "ops/move.h"
#include "ops/op.h"
#include "ops/scatter_reduce.h"
#include "tensor/convert.h"

enum { CHANNEL_BLOCK = 32 };

/* ---- RoiAlign ---- */

static enum sdx_status infer_roi_align(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    int64_t dims[4] = {-1, -1, sdx_ir_attr_int(ix->node, "output_height", 1),
                       sdx_ir_attr_int(ix->node, "output_width", 1)};
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if ((rank >= 0 && rank != 4) || dims[2] < 1 || dims[3] < 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "RoiAlign: input of rank %d, output %lld x %lld",
                        rank, (long long)dims[2], (long long)dims[3]);
    if (sdx_infer_rank(ix, 1) == 2) dims[0] = sdx_infer_dims(ix, 1)[0];
    if (sdx_infer_rank(ix, 2) == 1)
        SDX_TRY(sdx_infer_merge_dim(ix, dims[0], sdx_infer_dims(ix, 2)[0], "regions", &dims[0]));
    if (rank == 4) dims[1] = sdx_infer_dims(ix, 0)[1];
    return sdx_infer_set_dims(ix, 0, 4, dims);
}

struct roi_params {
    bool max, half_pixel;
    int64_t ratio, blocks; /* blocks of channels of one region */
    double scale;
};

/* Four elements of a plane and their weights. */
struct corner {
    int64_t at[4];
    double w[4];
};

static bool corners_of(double y, double x, int64_t height, int64_t width, struct corner *c)
{
    if (!(y >= -1 && y <= (double)height && x >= -1 && x <= (double)width)) return false;
    y = y < 0 ? 0 : y;
    x = x < 0 ? 0 : x;
    int64_t y0 = (int64_t)y, x0 = (int64_t)x, y1 = y0 + 1, x1 = x0 + 1;
    if (y0 >= height - 1) {
        y0 = y1 = height - 1;
        y = (double)y0;
    }
    if (x0 >= width - 1) {
        x0 = x1 = width - 1;
        x = (double)x0;
    }
    double ly = y - (double)y0, lx = x - (double)x0, hy = 1 - ly, hx = 1 - lx;
    *c = (struct corner){{y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1},
                         {hy * hx, hy * lx, ly * hx, ly * lx}};
    return true;
}

/* One sample point added to the channels [c0, c1) of a bin. src: channel c0; dst: its bin. */
#define ROI_POINT(name, type)                                                                      \
    static void name(const struct corner *k, const type *src, int64_t plane, type *dst,            \
                     int64_t plane_out, int64_t n, bool max, bool first, double share)             \
    {                                                                                              \
        type w0 = (type)k->w[0], w1 = (type)k->w[1], w2 = (type)k->w[2], w3 = (type)k->w[3];       \
        for (int64_t c = 0; c < n; c++, src += plane, dst += plane_out) {                          \
            type a = w0 * src[k->at[0]], b = w1 * src[k->at[1]];                                   \
            type d = w2 * src[k->at[2]], e = w3 * src[k->at[3]];                                   \
            if (max) {                                                                             \
                type v = a > b ? a : b;                                                            \
                v = v > d ? v : d;                                                                 \
                v = v > e ? v : e;                                                                 \
                *dst = first || v > *dst ? v : *dst;                                               \
            } else {                                                                               \
                *dst += (a + b + d + e) * (type)share;                                             \
            }                                                                                      \
        }                                                                                          \
    }
ROI_POINT(roi_point_f32, float)
ROI_POINT(roi_point_f64, double)
#undef ROI_POINT

struct region {
    double y, x, bin_h, bin_w;
    int64_t grid_h, grid_w;
};

static struct region region_of(const struct roi_params *p, const struct sdx_tensor *rois, int64_t r,
                               int64_t out_h, int64_t out_w)
{
    double v[4], offset = p->half_pixel ? 0.5 : 0;
    for (int i = 0; i < 4; i++)
        v[i] = sdx_load_f64(rois->dtype, rois->data, 4 * r + i) * p->scale - offset;
    double w = v[2] - v[0], h = v[3] - v[1];
    if (!p->half_pixel) {
        w = w > 1 ? w : 1;
        h = h > 1 ? h : 1;
    }
    struct region g = {v[1], v[0], h / (double)out_h, w / (double)out_w, p->ratio, p->ratio};
    if (p->ratio <= 0) {
        double gh = ceil(g.bin_h), gw = ceil(g.bin_w);
        g.grid_h = gh > 0 && gh < 1e6 ? (int64_t)gh : 0;
        g.grid_w = gw > 0 && gw < 1e6 ? (int64_t)gw : 0;
    }
    return g;
}

static void align_bin(const struct roi_params *p, const struct sdx_step *step,
                      const struct region *g, int64_t py, int64_t px, int64_t src, int64_t dst,
                      int64_t channels)
{
    const struct sdx_tensor *in = step->in[0], *out = step->out[0];
    int64_t plane = in->dims[2] * in->dims[3], plane_out = out->dims[2] * out->dims[3];
    int64_t points = g->grid_h * g->grid_w;
    double share = points > 0 ? 1.0 / (double)points : 1;
    for (int64_t i = 0; i < points; i++) {
        int64_t iy = i / g->grid_w, ix = i % g->grid_w;
        double y = g->y + (double)py * g->bin_h + ((double)iy + 0.5) * g->bin_h / (double)g->grid_h;
        double x = g->x + (double)px * g->bin_w + ((double)ix + 0.5) * g->bin_w / (double)g->grid_w;
        struct corner k = {{0}, {0}};
        (void)corners_of(y, x, in->dims[2], in->dims[3], &k); /* outside: all weights 0 */
        if (in->dtype == SDX_F32)
            roi_point_f32(&k, (const float *)in->data + src, plane, (float *)out->data + dst,
                          plane_out, channels, p->max, i == 0, share);
        else
            roi_point_f64(&k, (const double *)in->data + src, plane, (double *)out->data + dst,
                          plane_out, channels, p->max, i == 0, share);
    }
}

static enum sdx_status run_roi_align(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct roi_params *p = step->params;
    const struct sdx_tensor *in = step->in[0], *out = step->out[0];
    int64_t channels = in->dims[1], plane_out = out->dims[2] * out->dims[3];
    int64_t units = out->dims[0] * p->blocks;
    int64_t end = sdx_part_begin(units, step->parts, part + 1, 1);
    size_t size = in->dtype == SDX_F32 ? sizeof(float) : sizeof(double);
    for (int64_t u = sdx_part_begin(units, step->parts, part, 1); u < end; u++) {
        int64_t r = u / p->blocks, c = u % p->blocks * CHANNEL_BLOCK, n = channels - c;
        int64_t batch = sdx_move_index(step->in[2], r);
        if (n > CHANNEL_BLOCK) n = CHANNEL_BLOCK;
        if (batch < 0 || batch >= in->dims[0])
            return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                            "RoiAlign: batch index %lld is outside a batch of %lld",
                            (long long)batch, (long long)in->dims[0]);
        struct region g = region_of(p, step->in[1], r, out->dims[2], out->dims[3]);
        int64_t dst = (r * channels + c) * plane_out;
        int64_t src = (batch * channels + c) * in->dims[2] * in->dims[3];
        memset((char *)out->data + (size_t)dst * size, 0, (size_t)(n * plane_out) * size);
        for (int64_t b = 0; b < plane_out; b++)
            align_bin(p, step, &g, b / out->dims[3], b % out->dims[3], src, dst + b, n);
    }
    return SDX_OK;
}

static enum sdx_status prepare_roi_align(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0], *rois = px->in[1], *out = px->out[0];
    struct roi_params *p = SDX_PREPARE_NEW(px, struct roi_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    struct sdx_str mode = sdx_ir_attr_str(px->node, "mode", "avg");
    struct sdx_str how = sdx_ir_attr_str(px->node, "coordinate_transformation_mode",
                                         px->opset >= 16 ? "half_pixel" : "output_half_pixel");
    p->max = sdx_str_is(mode, "max");
    p->half_pixel = sdx_str_is(how, "half_pixel");
    p->ratio = sdx_ir_attr_int(px->node, "sampling_ratio", 0);
    p->scale = (double)sdx_ir_attr_float(px->node, "spatial_scale", 1);
    if (!p->max && !sdx_str_is(mode, "avg"))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "RoiAlign: mode \"%.*s\", expected avg or max",
                        SDX_STR_ARG(mode));
    if (rois->rank != 2 || rois->dims[1] != 4 || px->in[2]->count != rois->dims[0] ||
        p->ratio < 0 || p->ratio > 4096)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "RoiAlign: regions of rank %d for %lld batch indices, sampling_ratio %lld",
                        rois->rank, (long long)px->in[2]->count, (long long)p->ratio);
    if (out->count == 0) return SDX_OK;
    if (in->count == 0) return SDX_FAIL(px->cx, SDX_BAD_MODEL, "RoiAlign: the input is empty");
    p->blocks = (in->dims[1] + CHANNEL_BLOCK - 1) / CHANNEL_BLOCK;
    return sdx_prepare_step(
        px, "roi_align", run_roi_align, p,
        sdx_prepare_parts((double)out->count * 16, 65536, out->dims[0] * p->blocks), 0);
}

/* ---- MaxRoiPool ---- */

static enum sdx_status infer_max_roi_pool(struct sdx_infer *ix)
{
    int64_t count = 0, dims[4] = {-1, -1, 0, 0};
    const int64_t *shape = sdx_ir_attr_ints(ix->node, "pooled_shape", &count);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (!shape || count != 2 || shape[0] < 1 || shape[1] < 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "MaxRoiPool: pooled_shape is missing or wrong");
    if (sdx_infer_rank(ix, 0) >= 0 && sdx_infer_rank(ix, 0) != 4)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "MaxRoiPool: the input has rank %d, expected 4",
                        sdx_infer_rank(ix, 0));
    if (sdx_infer_rank(ix, 0) == 4) dims[1] = sdx_infer_dims(ix, 0)[1];
    if (sdx_infer_rank(ix, 1) == 2) dims[0] = sdx_infer_dims(ix, 1)[0];
    dims[2] = shape[0];
    dims[3] = shape[1];
    return sdx_infer_set_dims(ix, 0, 4, dims);
}

/* Bounds of bin b of n over a region that starts at `start` and is `length` long, clipped: in f32,
 * as the operator's first implementations have it. */
static void bin_range(int64_t b, int64_t n, int64_t start, int64_t length, int64_t limit,
                      int64_t *from, int64_t *to)
{
    const float bin = (float)length / (float)n;
    const int64_t a = start + (int64_t)floorf((float)b * bin);
    const int64_t z = start + (int64_t)ceilf((float)(b + 1) * bin);
    *from = a < 0 ? 0 : a > limit ? limit : a;
    *to = z < 0 ? 0 : z > limit ? limit : z;
}

/* Of a plane of f64. */
static double max_in(const double *plane, int64_t width, const int64_t *y, const int64_t *x)
{
    double most = y[0] < y[1] && x[0] < x[1] ? -INFINITY : 0;
    for (int64_t i = y[0]; i < y[1]; i++)
        for (int64_t j = x[0]; j < x[1]; j++)
            most = plane[i * width + j] > most ? plane[i * width + j] : most;
    return most;
}

/* line[n] and a row: the greater of each two, and no NaN of the row. */
static void take_greater(float *line, const float *row, int64_t n)
{
    enum { FEW = 4 };
    typedef float few __attribute__((vector_size(4 * FEW)));
    typedef int32_t bits __attribute__((vector_size(4 * FEW)));
    int64_t i = 0;
    for (; i + FEW <= n; i += FEW) {
        few a, b;
        memcpy(&a, line + i, sizeof a);
        memcpy(&b, row + i, sizeof b);
        const bits is_greater = b > a;
        a = (few)(((bits)b & is_greater) | ((bits)a & ~is_greater));
        memcpy(line + i, &a, sizeof a);
    }
    for (; i < n; i++)
        line[i] = row[i] > line[i] ? row[i] : line[i];
}

/* Of a plane of f32, a row of `bins` at a time: first each column, into line[width]. */
static void max_in_row(const float *plane, int64_t width, const int64_t *y, const int64_t *columns,
                       int64_t bins, float *line, float *to)
{
    const int64_t first = columns[0], end = columns[2 * bins - 1];
    for (int64_t j = first; j < end; j++)
        line[j] = -INFINITY;
    for (int64_t i = y[0]; i < y[1]; i++)
        take_greater(line + first, plane + i * width + first, end - first);
    for (int64_t b = 0; b < bins; b++, columns += 2) {
        float most = y[0] < y[1] && columns[0] < columns[1] ? -INFINITY : 0;
        for (int64_t j = columns[0]; j < columns[1]; j++)
            most = line[j] > most ? line[j] : most;
        to[b] = most;
    }
}

static int64_t round_coordinate(double x)
{
    return x > 1e9 ? 1000000000 : x > -1e9 ? (int64_t)round(x) : -1000000000;
}

/* A part is one region: [batch, x1, y1, x2, y2], both ends included. */
static enum sdx_status run_max_roi_pool(struct sdx_exec *x, const struct sdx_step *step,
                                        int64_t part)
{
    double scale = (double)*(const float *)step->params;
    const struct sdx_tensor *in = step->in[0], *rois = step->in[1];
    struct sdx_tensor *out = step->out[0];
    int64_t v[5], channels = in->dims[1];
    v[0] = (int64_t)sdx_load_f64(rois->dtype, rois->data, 5 * part);
    for (int i = 1; i < 5; i++)
        v[i] = round_coordinate(sdx_load_f64(rois->dtype, rois->data, 5 * part + i) * scale);
    if (v[0] < 0 || v[0] >= in->dims[0])
        return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                        "MaxRoiPool: batch index %lld is outside a batch of %lld", (long long)v[0],
                        (long long)in->dims[0]);
    int64_t w = v[3] - v[1] + 1, h = v[4] - v[2] + 1,
            at = part * channels * out->dims[2] * out->dims[3];
    w = w > 1 ? w : 1;
    h = h > 1 ? h : 1;
    const int64_t high = out->dims[2], wide = out->dims[3], plane = in->dims[2] * in->dims[3];
    int64_t *rows = x->scratch, *columns = rows + 2 * high;
    for (int64_t i = 0; i < high; i++)
        bin_range(i, high, v[2], h, in->dims[2], rows + 2 * i, rows + 2 * i + 1);
    for (int64_t i = 0; i < wide; i++)
        bin_range(i, wide, v[1], w, in->dims[3], columns + 2 * i, columns + 2 * i + 1);
    float *line = (float *)(void *)(columns + 2 * wide);
    for (int64_t base = v[0] * channels * plane, c = 0; c < channels; c++, base += plane)
        for (const int64_t *y = rows; y < columns; y += 2, at += wide) {
            if (in->dtype == SDX_F32) {
                max_in_row((const float *)in->data + base, in->dims[3], y, columns, wide, line,
                           (float *)out->data + at);
                continue;
            }
            for (int64_t i = 0; i < wide; i++)
                ((double *)out->data)[at + i] =
                    max_in((const double *)in->data + base, in->dims[3], y, columns + 2 * i);
        }
    return SDX_OK;
}

static enum sdx_status prepare_max_roi_pool(struct sdx_prepare *px)
{
    float *scale = SDX_PREPARE_NEW(px, float);
    if (!scale) return SDX_OUT_OF_MEMORY;
    *scale = sdx_ir_attr_float(px->node, "spatial_scale", 1);
    if (px->in[1]->rank != 2 || px->in[1]->dims[1] != 5)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "MaxRoiPool: the regions are no list of 5 numbers");
    if (px->out[0]->count == 0) return SDX_OK;
    return sdx_prepare_step(px, "max_roi_pool", run_max_roi_pool, scale, px->out[0]->dims[0],
                            (size_t)(px->out[0]->dims[2] + px->out[0]->dims[3]) * 2 *
                                    sizeof(int64_t) +
                                (size_t)px->in[0]->dims[3] * sizeof(float));
}

/* ---- AffineGrid ---- */

static enum sdx_status infer_affine_grid(struct sdx_infer *ix)
{
    struct sdx_ints size;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (!sdx_infer_ints(ix, 1, &size)) {
        const int64_t *d = sdx_infer_rank(ix, 1) == 1 ? sdx_infer_dims(ix, 1) : NULL;
        if (!d || (d[0] != 4 && d[0] != 5)) return SDX_OK;
        const int64_t grid[] = {-1, -1, -1, d[0] == 4 ? 2 : -1, 3};
        return sdx_infer_set_dims(ix, 0, (int)d[0], grid);
    }
    if (size.count != 4 && size.count != 5)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "AffineGrid: %lld numbers in size, expected 4 or 5",
                        (long long)size.count);
    int n = (int)size.count;
    int64_t *dims = sdx_infer_new_dims(ix, 0, n);
    if (!dims) return SDX_OUT_OF_MEMORY;
    for (int i = 0, k = 0; i < n; i++) {
        if (i == 1) continue;
        bool symbolic = size.sym && size.sym[i];
        if (!symbolic && size.v[i] < 0)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "AffineGrid: length %lld", (long long)size.v[i]);
        dims[k++] = symbolic ? size.sym[i] : size.v[i];
    }
    dims[n - 1] = n - 2;
    return SDX_OK;
}

static double grid_at(int64_t i, int64_t n, bool align)
{
    if (align) return n > 1 ? -1 + 2.0 * (double)i / (double)(n - 1) : -1;
    return (2.0 * (double)i + 1) / (double)n - 1;
}

/* A part is a range of rows of the grid. */
static enum sdx_status run_affine_grid(struct sdx_exec *x, const struct sdx_step *step,
                                       int64_t part)
{
    bool align = *(const bool *)step->params;
    double *across = x->scratch;
    const struct sdx_tensor *theta = step->in[0];
    struct sdx_tensor *out = step->out[0];
    int axes = out->rank - 2;
    int64_t width = out->dims[axes], rows = out->count / axes / width;
    int64_t per_batch = rows / out->dims[0];
    int64_t end = sdx_part_begin(rows, step->parts, part + 1, 1);
    for (int64_t j = 0; j < width; j++)
        across[j] = grid_at(j, width, align);
    for (int64_t r = sdx_part_begin(rows, step->parts, part, 1); r < end; r++) {
        double down, deep = 0, m[12];
        int64_t rest = r % per_batch, height = out->dims[axes - 1];
        for (int i = 0; i < axes * (axes + 1); i++)
            m[i] = sdx_load_f64(theta->dtype, theta->data, r / per_batch * axes * (axes + 1) + i);
        down = grid_at(rest % height, height, align);
        if (axes == 3) deep = grid_at(rest / height, out->dims[1], align);
        for (int a = 0; a < axes; a++) {
            const double *row = m + a * (axes + 1), by_down = row[1] * down;
            for (int64_t j = 0, at = r * width * axes + a; j < width; j++, at += axes) {
                double sum = row[axes] + row[0] * across[j] + by_down;
                if (axes == 3) sum += row[2] * deep;
                if (out->dtype == SDX_F32)
                    ((float *)out->data)[at] = (float)sum;
                else
                    sdx_store_f64(out->dtype, out->data, at, sum);
            }
        }
    }
    return SDX_OK;
}

static enum sdx_status prepare_affine_grid(struct sdx_prepare *px)
{
    const struct sdx_tensor *theta = px->in[0], *out = px->out[0];
    int64_t axes = out->rank - 2;
    bool *align = SDX_PREPARE_NEW(px, bool);
    if (!align) return SDX_OUT_OF_MEMORY;
    *align = sdx_ir_attr_int(px->node, "align_corners", 0) != 0;
    if (theta->rank != 3 || theta->dims[0] != out->dims[0] || theta->dims[1] != axes ||
        theta->dims[2] != axes + 1) {
        char text[128];
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "AffineGrid: theta has shape %s, the grid %lld axes",
                        sdx_dims_describe(theta->dims, theta->rank, text, sizeof(text)),
                        (long long)axes);
    }
    if (out->count == 0) return SDX_OK;
    int64_t rows = out->count / axes / out->dims[axes];
    return sdx_prepare_step(px, "affine_grid", run_affine_grid, align,
                            sdx_prepare_parts((double)out->count, 16384, rows),
                            (size_t)out->dims[axes] * sizeof(double));
}

/* ---- Col2Im ---- */

struct col2im {
    int axes;
    int64_t channels, block, length, plane; /* per image: channels; kernel, blocks, pixels */
    int64_t image[SDX_RANK_MAX], kernel[SDX_RANK_MAX], cols[SDX_RANK_MAX];
    int64_t stride[SDX_RANK_MAX], dilation[SDX_RANK_MAX], pad[SDX_RANK_MAX];
    size_t size;
    bool is_f32;
    sdx_scatter_fn *add;
};

static enum sdx_status infer_col2im(struct sdx_infer *ix)
{
    const int64_t *image = NULL, *block = NULL, *in = sdx_infer_dims(ix, 0);
    int64_t n = 0, n_block = 0, size = 1;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (!sdx_infer_known_ints(ix, 1, &image, &n) ||
        !sdx_infer_known_ints(ix, 2, &block, &n_block)) {
        const int64_t *d = sdx_infer_rank(ix, 1) == 1 ? sdx_infer_dims(ix, 1) : NULL;
        if (!d || d[0] < 1 || d[0] > SDX_RANK_MAX - 2) return SDX_OK;
        SDX_TRY(sdx_move_infer_rank(ix, 0, (int)d[0] + 2));
        if (in) ((int64_t *)(uintptr_t)ix->out[0].dims)[0] = in[0];
        return SDX_OK;
    }
    if (n != n_block || n < 1 || n > SDX_RANK_MAX - 2 || (in && sdx_infer_rank(ix, 0) != 3))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "Col2Im: %lld image lengths, %lld block lengths, input of rank %d",
                        (long long)n, (long long)n_block, sdx_infer_rank(ix, 0));
    int64_t *dims = sdx_infer_new_dims(ix, 0, (int)n + 2);
    if (!dims) return SDX_OUT_OF_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        dims[i + 2] = image[i];
        if (image[i] < 1 || block[i] < 1 || !sdx_mul_i64(size, block[i], &size))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Col2Im: image length %lld, block length %lld",
                            (long long)image[i], (long long)block[i]);
    }
    dims[0] = in ? in[0] : -1;
    dims[1] = in && in[1] >= 0 ? in[1] / size : -1;
    if (in && in[1] >= 0 && in[1] % size != 0)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "Col2Im: %lld rows are no multiple of a block of %lld", (long long)in[1],
                        (long long)size);
    return SDX_OK;
}

/* Texts have no sum: one may be added to nothing, and nothing to one. Others leave a mark. */
static void add_text(void *dst, const void *src, int64_t n)
{
    struct sdx_str *to = dst;
    const struct sdx_str *from = src;
    for (int64_t i = 0; i < n; i++)
        if (to[i].len == 0)
            to[i] = from[i];
        else if (from[i].len > 0)
            to[i].len = SIZE_MAX;
}

static enum sdx_status check_texts(struct sdx_exec *x, const struct sdx_str *texts, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (texts[i].len == SIZE_MAX)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                            "Col2Im: two texts meet at pixel %lld, and texts have no sum",
                            (long long)i);
    return SDX_OK;
}

/* Adds `n` elements to every `stride`-th pixel. */
static void add_line(const struct col2im *p, char *to, const char *from, int64_t n, int64_t stride)
{
    if (p->is_f32) {
        const float *x = (const void *)from;
        float *y = (void *)to;
        const int64_t whole = stride == 1 ? n & ~(int64_t)3 : 0; /* the least vectors */
        if (whole) sdx_vec()->f32_add(y, 1, x, 1, y, (size_t)whole);
        for (int64_t i = whole; i < n; i++)
            y[i * stride] += x[i];
    } else if (stride == 1)
        p->add(to, from, n);
    else
        for (int64_t i = 0; i < n; i++)
            p->add(to + i * stride * (int64_t)p->size, from + i * (int64_t)p->size, 1);
}

/* Adds the row of kernel position k to an image plane, line by line of the last axis. */
static void col2im_row(const struct col2im *p, int64_t k, const char *row, char *image)
{
    const int last = p->axes - 1;
    int64_t at[SDX_RANK_MAX] = {0}, origin[SDX_RANK_MAX];
    for (int a = last; a >= 0; a--) {
        origin[a] = k % p->kernel[a] * p->dilation[a] - p->pad[a];
        k /= p->kernel[a];
    }
    const int64_t stride = p->stride[last], first = origin[last], wide = p->image[last];
    const int64_t lo = first < 0 ? (-first + stride - 1) / stride : 0;
    int64_t hi = first < wide ? (wide - first + stride - 1) / stride : 0;
    if (hi > p->cols[last]) hi = p->cols[last];
    for (int64_t i = 0; i < p->length; i += p->cols[last]) {
        int64_t to = 0;
        bool inside = lo < hi;
        for (int a = 0; a < last; a++) {
            int64_t v = at[a] * p->stride[a] + origin[a];
            inside = inside && v >= 0 && v < p->image[a];
            to = to * p->image[a] + v;
        }
        if (inside)
            add_line(p, image + (to * wide + first + lo * stride) * (int64_t)p->size,
                     row + (i + lo) * (int64_t)p->size, hi - lo, stride);
        for (int a = last - 1; a >= 0; a--) {
            if (++at[a] < p->cols[a]) break;
            at[a] = 0;
        }
    }
}

static enum sdx_status run_col2im(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct col2im *p = step->params;
    int64_t end = sdx_part_begin(p->channels, step->parts, part + 1, 1);
    for (int64_t c = sdx_part_begin(p->channels, step->parts, part, 1); c < end; c++) {
        const char *src =
            (const char *)step->in[0]->data + (size_t)(c * p->block * p->length) * p->size;
        char *dst = (char *)step->out[0]->data + (size_t)(c * p->plane) * p->size;
        memset(dst, 0, (size_t)p->plane * p->size);
        for (int64_t k = 0; k < p->block; k++)
            col2im_row(p, k, src + (size_t)(k * p->length) * p->size, dst);
        if (p->add == add_text) SDX_TRY(check_texts(x, (const void *)dst, p->plane));
    }
    return SDX_OK;
}

/* stride, dilation, padding of axis i, with their defaults. */
static enum sdx_status col2im_axis(struct sdx_prepare *px, struct col2im *p, int i)
{
    int64_t n[3] = {0}, n_axes = p->axes;
    const int64_t *strides = sdx_ir_attr_ints(px->node, "strides", &n[0]);
    const int64_t *dilations = sdx_ir_attr_ints(px->node, "dilations", &n[1]);
    const int64_t *pads = sdx_ir_attr_ints(px->node, "pads", &n[2]);
    bool ok = (!strides || n[0] == n_axes) && (!dilations || n[1] == n_axes) &&
              (!pads || n[2] == 2 * n_axes);
    p->stride[i] = ok && strides ? strides[i] : 1;
    p->dilation[i] = ok && dilations ? dilations[i] : 1;
    p->pad[i] = ok && pads ? pads[i] : 0;
    int64_t pad_end = ok && pads ? pads[n_axes + i] : 0, limit = INT32_MAX;
    ok = ok && p->stride[i] > 0 && p->dilation[i] > 0 && p->stride[i] < limit &&
         p->dilation[i] < limit && p->pad[i] >= 0 && pad_end >= 0 && p->pad[i] < limit &&
         pad_end < limit && p->kernel[i] < limit && p->image[i] < limit;
    if (!ok)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Col2Im: strides, dilations or pads of axis %d", i);
    int64_t room = p->image[i] + p->pad[i] + pad_end - p->dilation[i] * (p->kernel[i] - 1) - 1;
    p->cols[i] = room < 0 ? 0 : room / p->stride[i] + 1;
    return SDX_OK;
}

static enum sdx_status prepare_col2im(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0], *out = px->out[0];
    const int64_t *block = NULL;
    int64_t n = 0, cols = 1;
    struct col2im *p = SDX_PREPARE_NEW(px, struct col2im);
    if (!p) return SDX_OUT_OF_MEMORY;
    SDX_TRY(sdx_move_ints(px, 2, &block, &n));
    p->axes = out->rank - 2;
    p->channels = out->dims[0] * out->dims[1];
    p->block = p->plane = 1;
    for (int i = 0; i < p->axes; i++) {
        p->image[i] = out->dims[i + 2];
        p->kernel[i] = block[i];
        p->block *= block[i];
        p->plane *= p->image[i];
        SDX_TRY(col2im_axis(px, p, i));
        cols *= p->cols[i];
    }
    p->length = in->dims[2];
    p->size = sdx_move_size(in->dtype);
    p->is_f32 = in->dtype == SDX_F32;
    p->add = in->dtype == SDX_STRING ? add_text : sdx_scatter_find(SDX_STR("add"), in->dtype);
    if (!p->add)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "Col2Im: element type %s",
                        sdx_dtype_short_name(in->dtype));
    if (cols != p->length)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Col2Im: %lld columns, expected %lld",
                        (long long)p->length, (long long)cols);
    if (out->count == 0) return SDX_OK;
    return sdx_move_step(px, "col2im", run_col2im, p,
                         sdx_prepare_parts((double)in->count, 16384, p->channels), 0);
}

static const struct sdx_op ops[] = {
    {"GridSample", 16, 0, sdx_grid_sample_infer, KERNEL(sdx_grid_sample_prepare),
     .flags = SDX_OP_VIA_F32, .note = "strings and complex numbers in mode nearest only"},
    {"RoiAlign", 10, 0, infer_roi_align, KERNEL(prepare_roi_align), .flags = SDX_OP_VIA_F32},
    {"MaxRoiPool", 1, 0, infer_max_roi_pool, KERNEL(prepare_max_roi_pool), .flags = SDX_OP_VIA_F32},
    {"AffineGrid", 20, 0, infer_affine_grid, KERNEL(prepare_affine_grid)},
    {"Col2Im", 18, 0, infer_col2im, KERNEL(prepare_col2im),
     .note = "strings where no two meet at a pixel"},
};
const struct sdx_op_family sdx_ops_image = FAMILY("", ops);
