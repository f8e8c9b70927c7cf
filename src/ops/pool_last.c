/* SPDX-License-Identifier: Apache-2.0
 * MaxPool of bytes that lie channels last: the greatest of whole rows, then of pixels, which are
 * vectors of channels. */
#include "ops/pool_last.h"

#include "kernels/qbytes.h"
#include "ops/layout.h"
#include "ops/window.h"

void sdx_max_pool_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    const struct sdx_tensor *x = px->in[0];
    if (x->layout != SDX_LAYOUT_LAST || (x->dtype != SDX_U8 && x->dtype != SDX_I8) ||
        (px->count_out > 1 && px->out[1]))
        return;
    want->in[0] = want->out[0] = SDX_LAYOUT_LAST;
}

/* Taps k0 .. k1 - 1 of the window at output o of an axis that fall on the input. */
static void taps_at(const struct sdx_conv_shape *s, int axis, int64_t o, int64_t *k0, int64_t *k1)
{
    const int64_t dilation = s->dilation[axis], at = o * s->stride[axis] - s->pad_begin[axis];
    *k0 = at >= 0 ? 0 : (-at + dilation - 1) / dilation;
    *k1 = at >= s->in[axis] ? 0 : (s->in[axis] - at + dilation - 1) / dilation;
    if (*k1 > s->kernel[axis]) *k1 = s->kernel[axis];
}

/* The greatest of the rows of the input that output row o[0], o[1] sees. false: it sees none. */
static bool pool_rows(const struct sdx_conv_shape *s, const uint8_t *image, const int64_t o[2],
                      uint8_t flip, uint8_t *row)
{
    int64_t k0[2], k1[2], at[2];
    const size_t bytes = (size_t)(s->in[2] * s->ic);
    bool any = false;
    for (int i = 0; i < 2; i++) {
        taps_at(s, i, o[i], &k0[i], &k1[i]);
        at[i] = o[i] * s->stride[i] - s->pad_begin[i];
    }
    for (int64_t d = k0[0]; d < k1[0]; d++)
        for (int64_t h = k0[1]; h < k1[1]; h++, any = true) {
            const int64_t line =
                (at[0] + d * s->dilation[0]) * s->in[1] + at[1] + h * s->dilation[1];
            const uint8_t *x = image + (size_t)line * bytes;
            if (any)
                sdx_qbytes()->max(x, flip, row, bytes);
            else
                memcpy(row, x, bytes);
        }
    return any;
}
/* Pixel o of the outputs from that row. */
static void pool_pixel(const struct sdx_conv_shape *s, const uint8_t *row, int64_t o, uint8_t flip,
                       uint8_t *y)
{
    int64_t k0, k1;
    const size_t channels = (size_t)s->ic;
    taps_at(s, 2, o, &k0, &k1);
    if (k0 >= k1) {
        memset(y, flip, channels); /* the least value */
        return;
    }
    const uint8_t *x = row + (o * s->stride[2] - s->pad_begin[2] + k0 * s->dilation[2]) * s->ic;
    memcpy(y, x, channels);
    for (int64_t k = k0 + 1; k < k1; k++) {
        x += s->dilation[2] * s->ic;
        sdx_qbytes()->max(x, flip, y, channels);
    }
}

/* One row of outputs. */
static enum sdx_status run_last(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_conv_shape *s = step->params;
    const int64_t lines = s->out[0] * s->out[1], n = part / lines, line = part % lines;
    const uint8_t *image =
        (const uint8_t *)step->in[0]->data + n * s->in[0] * s->in[1] * s->in[2] * s->ic;
    uint8_t *y = (uint8_t *)step->out[0]->data + part * s->out[2] * s->ic;
    const uint8_t flip = step->in[0]->dtype == SDX_I8 ? 0x80 : 0;
    const int64_t o[2] = {line / s->out[1], line % s->out[1]};
    if (!pool_rows(s, image, o, flip, x->scratch)) {
        memset(y, flip, (size_t)(s->out[2] * s->ic));
        return SDX_OK;
    }
    for (int64_t w = 0; w < s->out[2]; w++, y += s->ic)
        pool_pixel(s, x->scratch, w, flip, y);
    return SDX_OK;
}

enum sdx_status sdx_max_pool_last_prepare(struct sdx_prepare *px)
{
    struct sdx_window w;
    int64_t length;
    const struct sdx_tensor *x = px->in[0], *y = px->out[0];
    struct sdx_conv_shape *s = SDX_PREPARE_NEW(px, struct sdx_conv_shape);
    if (!s) return SDX_FAIL_MEMORY(px->cx);
    if (y->count == 0) return SDX_OK;
    SDX_TRY(sdx_window_read(px->cx, px->node, x->rank - 2, NULL, &w));
    for (int i = 0; i < w.rank; i++)
        SDX_TRY(sdx_window_length(px->cx, px->node, &w, i, x->dims[i + 2], &length));
    sdx_window_shape(&w, x->dims + 2, y->dims + 2, s);
    s->batch = x->dims[0];
    s->ic = s->oc = x->dims[1];
    s->groups = 1;
    return sdx_prepare_step(px, "max_pool_last", run_last, s, s->batch * s->out[0] * s->out[1],
                            (size_t)(s->in[2] * s->ic));
}
