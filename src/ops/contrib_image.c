/* SPDX-License-Identifier: Apache-2.0
 * Images in com.microsoft: CropAndResize, MaxpoolWithMask, and ConvTranspose with its padding as an
 * input. */
#include <float.h>
#include <math.h>

#include "ops/contrib_lower.h"
#include "ops/window.h"
#include "tensor/convert.h"

/* ---- CropAndResize ---- */

struct crop {
    int64_t batch, channels, height, width, crop_h, crop_w;
    float outside;
    bool is_nearest;
};

static enum sdx_status infer_crop(struct sdx_infer *ix)
{
    const int64_t *x = sdx_infer_dims(ix, 0), *rois = sdx_infer_dims(ix, 1), *size;
    int64_t count = 0, out[] = {-1, -1, -1, -1};
    struct sdx_str mode = sdx_ir_attr_str(ix->node, "mode", "bilinear");
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (!sdx_str_is(mode, "bilinear") && !sdx_str_is(mode, "nearest"))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "CropAndResize: mode \"%.*s\", expected bilinear or nearest",
                        SDX_STR_ARG(mode));
    if ((x && sdx_infer_rank(ix, 0) != 4) || (rois && sdx_infer_rank(ix, 1) != 2))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "CropAndResize: X must have rank 4, rois rank 2");
    if (rois && sdx_dim_known(rois[1]) && rois[1] != 4)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "CropAndResize: rois have %lld numbers, expected 4",
                        (long long)rois[1]);
    if (sdx_infer_known_ints(ix, 3, &size, &count)) {
        if (count != 2 || size[0] < 1 || size[1] < 1)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                            "CropAndResize: crop_size must be two numbers of at least 1");
        out[2] = size[0];
        out[3] = size[1];
    }
    if (x) out[1] = x[1];
    if (rois) out[0] = rois[0];
    return sdx_infer_set_dims(ix, 0, 4, out);
}

/* Where row or column i of `crop` reads an axis of length n; false: outside. */
static bool place_of(float from, float to, int64_t crop, int64_t i, int64_t n, float *at)
{
    const float last = (float)(n - 1);
    if (crop > 1)
        *at = from * last + (float)i * ((to - from) * last / (float)(crop - 1));
    else
        *at = 0.5f * (from + to) * last;
    return *at >= 0 && *at <= last;
}

static float pixel(const struct crop *p, const float *plane, float y, float x)
{
    if (p->is_nearest) return plane[(int64_t)roundf(y) * p->width + (int64_t)roundf(x)];
    const int64_t top = (int64_t)floorf(y), bottom = (int64_t)ceilf(y);
    const int64_t left = (int64_t)floorf(x), right = (int64_t)ceilf(x);
    const float dy = y - (float)top, dx = x - (float)left;
    const float *high = plane + top * p->width, *low = plane + bottom * p->width;
    const float above = high[left] + (high[right] - high[left]) * dx;
    const float below = low[left] + (low[right] - low[left]) * dx;
    return above + (below - above) * dy;
}

/* One box. */
static enum sdx_status run_crop(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct crop *p = step->params;
    const float *box = (const float *)step->in[1]->data + 4 * part;
    const int64_t entry = ((const int32_t *)step->in[2]->data)[part];
    const int64_t plane = p->height * p->width, size = p->crop_h * p->crop_w;
    float *out = (float *)step->out[0]->data + part * p->channels * size;
    if (entry < 0 || entry >= p->batch)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                        "CropAndResize: batch index %lld, expected 0 to %lld", (long long)entry,
                        (long long)(p->batch - 1));
    const float *image = (const float *)step->in[0]->data + entry * p->channels * plane;
    for (int64_t i = 0; i < p->crop_h && !sdx_exec_cancelled(x); i++)
        for (int64_t j = 0; j < p->crop_w; j++) {
            float at_y, at_x;
            bool inside = place_of(box[0], box[2], p->crop_h, i, p->height, &at_y);
            inside = place_of(box[1], box[3], p->crop_w, j, p->width, &at_x) && inside;
            for (int64_t c = 0; c < p->channels; c++)
                out[c * size + i * p->crop_w + j] =
                    inside ? pixel(p, image + c * plane, at_y, at_x) : p->outside;
        }
    return SDX_OK;
}

static enum sdx_status prepare_crop(struct sdx_prepare *px)
{
    struct crop *p = SDX_PREPARE_NEW(px, struct crop);
    const struct sdx_tensor *x = px->in[0], *y = px->out[0];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (x->dtype != SDX_F32)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "CropAndResize: element type %s",
                        sdx_dtype_short_name(x->dtype));
    if (px->in[2]->count != y->dims[0])
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "CropAndResize: %lld batch indices for %lld boxes",
                        (long long)px->in[2]->count, (long long)y->dims[0]);
    if (y->count == 0) return SDX_OK;
    if (x->dims[2] < 1 || x->dims[3] < 1)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "CropAndResize: the image is empty");
    p->batch = x->dims[0];
    p->channels = x->dims[1];
    p->height = x->dims[2];
    p->width = x->dims[3];
    p->crop_h = y->dims[2];
    p->crop_w = y->dims[3];
    p->outside = sdx_ir_attr_float(px->node, "extrapolation_value", 0);
    p->is_nearest = sdx_str_is(sdx_ir_attr_str(px->node, "mode", "bilinear"), "nearest");
    return sdx_prepare_step(px, "crop_and_resize", run_crop, p, y->dims[0], 0);
}

/* ---- MaxpoolWithMask ---- */

struct masked {
    struct sdx_window w;
    int64_t in[SDX_RANK_MAX], out[SDX_RANK_MAX]; /* spatial */
    int64_t in_plane, out_plane, mask_planes;
};

static enum sdx_status infer_masked(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    int64_t unused;
    const int64_t *x = sdx_infer_dims(ix, 0), *mask = sdx_infer_dims(ix, 1);
    if (rank >= 0 && (rank < 3 || rank > 5))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "MaxpoolWithMask: input has rank %d, expected 3 to 5", rank);
    if (x && mask) {
        if (sdx_infer_rank(ix, 1) != rank)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "MaxpoolWithMask: mask has rank %d, expected %d",
                            sdx_infer_rank(ix, 1), rank);
        for (int i = 2; i < rank; i++)
            SDX_TRY(sdx_infer_merge_dim(ix, x[i], mask[i], "spatial length", &unused));
    }
    return sdx_contrib_infer_as(ix, "", "MaxPool", 8);
}

/* The largest element of the window at output o; a row of it (along the last axis) ends at the
 * first element that the mask leaves out. The very first element of a plane is never left out
 * where there are two or three axes: ONNX Runtime has it so. */
static float masked_max(const struct masked *p, const float *x, const int32_t *mask, int64_t o)
{
    const int last = p->w.rank - 1;
    int64_t begin[SDX_RANK_MAX], end[SDX_RANK_MAX], at[SDX_RANK_MAX];
    float most = -FLT_MAX;
    for (int i = last; i >= 0; i--) {
        begin[i] = o % p->out[i] * p->w.stride[i] - p->w.pad_begin[i];
        end[i] = begin[i] + p->w.kernel[i] < p->in[i] ? begin[i] + p->w.kernel[i] : p->in[i];
        if (begin[i] < 0) begin[i] = 0;
        if (begin[i] >= end[i]) return most;
        o /= p->out[i];
        at[i] = begin[i];
    }
    for (;;) {
        int64_t row = 0;
        for (int i = 0; i < last; i++)
            row = (row + at[i]) * p->in[i + 1];
        for (int64_t k = row + begin[last]; k < row + end[last]; k++) {
            if ((k > 0 || last == 0) && mask[k] == 0) break;
            if (x[k] > most) most = x[k];
        }
        int i = last - 1;
        while (i >= 0 && ++at[i] == end[i]) {
            at[i] = begin[i];
            i--;
        }
        if (i < 0) return most;
    }
}

/* One plane. */
static enum sdx_status run_masked(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct masked *p = step->params;
    (void)x;
    const float *plane = (const float *)step->in[0]->data + part * p->in_plane;
    /* As ONNX Runtime takes it: elements, not planes, modulo the number of planes. */
    const int32_t *mask = (const int32_t *)step->in[1]->data + part * p->in_plane % p->mask_planes;
    float *y = (float *)step->out[0]->data + part * p->out_plane;
    for (int64_t o = 0; o < p->out_plane; o++)
        y[o] = masked_max(p, plane, mask, o);
    return SDX_OK;
}

static enum sdx_status prepare_masked(struct sdx_prepare *px)
{
    struct masked *p = SDX_PREPARE_NEW(px, struct masked);
    const struct sdx_tensor *x = px->in[0], *mask = px->in[1], *y = px->out[0];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (y->count == 0) return SDX_OK;
    SDX_TRY(sdx_window_read(px->cx, px->node, x->rank - 2, NULL, &p->w));
    p->in_plane = p->out_plane = 1;
    for (int i = 0; i < p->w.rank; i++) {
        p->in[i] = x->dims[i + 2];
        p->in_plane *= p->in[i];
        SDX_TRY(sdx_window_length(px->cx, px->node, &p->w, i, p->in[i], &p->out[i]));
        p->out_plane *= p->out[i];
    }
    p->mask_planes = mask->dims[0] * mask->dims[1];
    if (p->mask_planes < 1 || p->in_plane < 1)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "MaxpoolWithMask: the mask is empty");
    return sdx_prepare_step(px, "masked_max_pool", run_masked, p, x->dims[0] * x->dims[1], 0);
}

/* ---- ConvTransposeWithDynamicPads ---- */

/* A copy of the node with the attribute pads in `arena`; NULL: no memory. */
static struct sdx_ir_node *with_pads(struct sdx_arena *arena, const struct sdx_ir_node *node,
                                     const int64_t *pads, int64_t count)
{
    struct sdx_ir_node *copy = sdx_arena_copy(arena, node, sizeof *node);
    struct sdx_ir_attr *attrs =
        sdx_arena_array(arena, (size_t)node->count_attrs + 1, sizeof *attrs);
    const int64_t *list = sdx_arena_copy(arena, pads, (size_t)count * sizeof *pads);
    if (!copy || !attrs || !list) return NULL;
    for (int i = 0; i < node->count_attrs; i++)
        attrs[i] = node->attrs[i];
    attrs[node->count_attrs] = (struct sdx_ir_attr){
        .name = SDX_STR("pads"), .type = SDX_ATTR_INTS, .graph = -1, .count = count, .ints = list};
    copy->attrs = attrs;
    copy->count_attrs++;
    return copy;
}

static enum sdx_status infer_conv_transpose(struct sdx_infer *ix)
{
    struct sdx_infer sub = *ix;
    const struct sdx_type *in[] = {ix->in[0], ix->in[1], sdx_infer_has(ix, 3) ? ix->in[3] : NULL};
    const int64_t *pads;
    int64_t count = 0;
    int rank = sdx_infer_rank(ix, 0);
    sub.in = in;
    sub.count_in = 3;
    if (sdx_infer_has(ix, 2)) {
        if (!sdx_infer_known_ints(ix, 2, &pads, &count)) {
            int64_t out[SDX_RANK_MAX];
            sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
            for (int i = 0; i < rank; i++)
                out[i] = i ? -1 : sdx_infer_dims(ix, 0)[0];
            return rank < 0 ? SDX_OK : sdx_infer_set_dims(ix, 0, rank, out);
        }
        sub.node = with_pads(ix->arena, ix->node, pads, count);
        if (!sub.node) return SDX_FAIL_MEMORY(ix->cx);
    }
    return sdx_contrib_infer_as(&sub, "", "ConvTranspose", 11);
}

static enum sdx_status prepare_conv_transpose(struct sdx_prepare *px)
{
    struct sdx_prepare sub = *px;
    struct sdx_tensor *in[] = {px->in[0], px->in[1], sdx_prepare_has(px, 3) ? px->in[3] : NULL};
    sub.in = in;
    sub.count_in = 3;
    if (sdx_prepare_has(px, 2)) {
        const struct sdx_tensor *pads = sdx_prepare_value(px, 2);
        if (!pads)
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED,
                            "ConvTransposeWithDynamicPads: the padding is not known");
        sub.node = with_pads(px->arena, px->node, pads->data, pads->count);
        if (!sub.node) return SDX_FAIL_MEMORY(px->cx);
    }
    return sdx_op_find(SDX_STR(""), SDX_STR("ConvTranspose"), 11)->prepare(&sub);
}

static const struct sdx_op ops[] = {
    {"CropAndResize", 1, 0, infer_crop, KERNEL(prepare_crop), .flags = SDX_OP_VIA_F32,
     .note = "float types but double"},
    {"MaxpoolWithMask", 1, 0, infer_masked, KERNEL(prepare_masked)},
    {"ConvTransposeWithDynamicPads", 1, 0, infer_conv_transpose, KERNEL(prepare_conv_transpose),
     .flags = SDX_OP_VIA_F32, .note = "1 to 3 spatial axes"},
};

const struct sdx_op_family sdx_ops_contrib_image = FAMILY("com.microsoft", ops);
