/* SPDX-License-Identifier: Apache-2.0
 * Gradients of convolutions and means over windows, and of BatchNormalization with given
 * statistics. A convolution's input gets the transposed convolution of the gradient; its weights
 * the convolution of the input with the gradient, batch and channels exchanged, strides and
 * dilations too. */
#include "ops/gradient.h"
#include "ops/window.h"

#define OP1 sdx_gradient_op1
#define OP2 sdx_gradient_op2

/* What of a window the gradients need; all lengths known. */
struct view {
    struct sdx_window w;
    int64_t in[SDX_RANK_MAX], out[SDX_RANK_MAX];
    int64_t batch, channels, channels_out;
};

/* false: refused, or failed. */
static bool read_view(struct sdx_gradient *d, const int64_t *kernel, struct view *v)
{
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    const struct sdx_type *x = sdx_gradient_type(d, sdx_gradient_in(d, 0));
    const struct sdx_type *y = sdx_gradient_type(d, sdx_gradient_out(d, 0));
    bool known = x->has_shape && y->has_shape && x->rank >= 3 && y->rank == x->rank;
    for (int i = 0; known && i < x->rank; i++)
        known = x->dims[i] >= 0 && y->dims[i] >= 0;
    if (!known) {
        sdx_gradient_refuse(d, "lengths that only the run tells");
        return false;
    }
    enum sdx_status status = sdx_window_read(d->lx->cx, node, x->rank - 2, kernel, &v->w);
    for (int i = 0; status == SDX_OK && i < v->w.rank; i++) {
        v->in[i] = x->dims[i + 2];
        status = sdx_window_length(d->lx->cx, node, &v->w, i, v->in[i], &v->out[i]);
    }
    if (status != SDX_OK) {
        d->lx->status = status;
        return false;
    }
    v->batch = x->dims[0];
    v->channels = x->dims[1];
    v->channels_out = y->dims[1];
    return true;
}

static void put_pads(struct sdx_gradient *d, const struct sdx_window *w)
{
    int64_t pads[2 * SDX_RANK_MAX];
    for (int i = 0; i < w->rank; i++) {
        pads[i] = w->pad_begin[i];
        pads[w->rank + i] = w->pad_end[i];
    }
    sdx_lower_attr_ints(d->lx, "pads", 2 * (int64_t)w->rank, pads);
}

static int32_t spread(struct sdx_gradient *d, const struct view *v, int32_t g, int32_t weights,
                      int64_t group)
{
    int64_t rest[SDX_RANK_MAX];
    for (int i = 0; i < v->w.rank; i++) {
        int64_t covered =
            (v->out[i] - 1) * v->w.stride[i] + (v->w.kernel[i] - 1) * v->w.dilation[i] + 1;
        rest[i] = v->in[i] + v->w.pad_begin[i] + v->w.pad_end[i] - covered;
    }
    int32_t x = OP2(d, "ConvTranspose", g, weights);
    sdx_lower_attr_ints(d->lx, "kernel_shape", v->w.rank, v->w.kernel);
    sdx_lower_attr_ints(d->lx, "strides", v->w.rank, v->w.stride);
    sdx_lower_attr_ints(d->lx, "dilations", v->w.rank, v->w.dilation);
    sdx_lower_attr_ints(d->lx, "output_padding", v->w.rank, rest);
    sdx_lower_attr_int(d->lx, "group", group);
    put_pads(d, &v->w);
    return x;
}

static int32_t reshape(struct sdx_gradient *d, int32_t value, int count, const int64_t *dims)
{
    return OP2(d, "Reshape", value, sdx_lower_ints(d->lx, count, dims));
}

/* [batch, group, channels of one, ...] becomes [channels of one, group * batch, ...]. */
static int32_t exchange(struct sdx_gradient *d, const struct view *v, int32_t x, int64_t group)
{
    int64_t dims[SDX_RANK_MAX + 1] = {v->batch, group, v->channels / group};
    int64_t order[SDX_RANK_MAX + 1] = {2, 1, 0};
    int64_t last[SDX_RANK_MAX] = {v->channels / group, group * v->batch};
    for (int i = 0; i < v->w.rank; i++) {
        dims[3 + i] = last[2 + i] = v->in[i];
        order[3 + i] = 3 + i;
    }
    x = reshape(d, x, v->w.rank + 3, dims);
    x = sdx_gradient_transpose(d, x, v->w.rank + 3, order);
    return reshape(d, x, v->w.rank + 2, last);
}

static int32_t weights_of(struct sdx_gradient *d, const struct view *v, int32_t x, int32_t g,
                          int64_t group)
{
    int rank = v->w.rank;
    int64_t swap[SDX_RANK_MAX] = {1, 0}, starts[SDX_RANK_MAX] = {0}, axes[SDX_RANK_MAX];
    for (int i = 0; i < rank; i++) {
        swap[2 + i] = 2 + i;
        axes[i] = 2 + i;
    }
    int32_t kernel = sdx_gradient_transpose(d, g, rank + 2, swap);
    int32_t w = OP2(d, "Conv", exchange(d, v, x, group), kernel);
    sdx_lower_attr_ints(d->lx, "kernel_shape", rank, v->out);
    sdx_lower_attr_ints(d->lx, "strides", rank, v->w.dilation);
    sdx_lower_attr_ints(d->lx, "dilations", rank, v->w.stride);
    sdx_lower_attr_int(d->lx, "group", group);
    put_pads(d, &v->w);
    w = sdx_gradient_transpose(d, w, rank + 2, swap);
    int32_t in[4] = {w, sdx_lower_ints(d->lx, rank, starts),
                     sdx_lower_ints(d->lx, rank, v->w.kernel), sdx_lower_ints(d->lx, rank, axes)};
    return sdx_lower_op(d->lx, "Slice", 4, in);
}

/* The sum over all axes but that of channels. */
static int32_t sum_channels(struct sdx_gradient *d, int32_t value, int rank)
{
    int64_t axes[SDX_RANK_MAX];
    int count = 0;
    for (int i = 0; i < rank; i++)
        if (i != 1) axes[count++] = i;
    return sdx_gradient_sum(d, value, count, axes, false);
}

static void rule_conv(struct sdx_gradient *d)
{
    struct view v;
    int32_t x = sdx_gradient_in(d, 0), w = sdx_gradient_in(d, 1), g = sdx_gradient_of(d, 0);
    int64_t group = sdx_ir_attr_int(sdx_gradient_node(d), "group", 1);
    const struct sdx_type *type = sdx_gradient_type(d, w);
    if (!type->has_shape || type->rank < 3) {
        sdx_gradient_refuse(d, "weights of unknown rank");
        return;
    }
    if (!read_view(d, type->dims + 2, &v)) return;
    if (sdx_gradient_wants(d, 0)) sdx_gradient_give(d, 0, spread(d, &v, g, w, group));
    if (sdx_gradient_wants(d, 1)) sdx_gradient_give(d, 1, weights_of(d, &v, x, g, group));
    if (sdx_gradient_wants(d, 2)) sdx_gradient_give(d, 2, sum_channels(d, g, v.w.rank + 2));
}

static void rule_average_pool(struct sdx_gradient *d)
{
    struct view v;
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    bool counts_pads = sdx_ir_attr_int(node, "count_include_pad", 0) != 0, has_pads = false;
    int32_t x = sdx_gradient_in(d, 0), g = sdx_gradient_of(d, 0);
    if (!read_view(d, NULL, &v)) return;
    if (v.w.ceil_mode) {
        sdx_gradient_refuse(d, "ceil_mode");
        return;
    }
    int64_t dims[SDX_RANK_MAX] = {v.channels, 1};
    double size = 1;
    for (int i = 0; i < v.w.rank; i++) {
        dims[2 + i] = v.w.kernel[i];
        size *= (double)v.w.kernel[i];
        has_pads = has_pads || v.w.pad_begin[i] || v.w.pad_end[i];
    }
    int32_t share = OP2(d, "Mul", g, sdx_gradient_scalar(d, x, 1 / size));
    if (has_pads && !counts_pads) { /* the part of each window that is inside */
        int32_t ones = OP2(d, "Expand", sdx_gradient_scalar(d, x, 1), OP1(d, "Shape", x));
        int32_t part = OP1(d, "AveragePool", ones);
        sdx_lower_attr_ints(d->lx, "kernel_shape", v.w.rank, v.w.kernel);
        sdx_lower_attr_ints(d->lx, "strides", v.w.rank, v.w.stride);
        sdx_lower_attr_ints(d->lx, "dilations", v.w.rank, v.w.dilation);
        sdx_lower_attr_int(d->lx, "count_include_pad", 1);
        put_pads(d, &v.w);
        share = OP2(d, "Div", share, part);
    }
    int32_t weights =
        OP2(d, "Expand", sdx_gradient_scalar(d, x, 1), sdx_lower_ints(d->lx, v.w.rank + 2, dims));
    sdx_gradient_give(d, 0, spread(d, &v, share, weights, v.channels));
}

static void rule_global_average(struct sdx_gradient *d)
{
    int32_t x = sdx_gradient_in(d, 0), g = sdx_gradient_of(d, 0);
    int32_t all = OP2(d, "CastLike", OP1(d, "Size", x), x);
    int32_t left = OP2(d, "CastLike", OP1(d, "Size", g), x);
    int32_t share = OP2(d, "Mul", g, OP2(d, "Div", left, all));
    sdx_gradient_give(d, 0, OP2(d, "Expand", share, OP1(d, "Shape", x)));
}

static void rule_batch_norm(struct sdx_gradient *d)
{
    const struct sdx_ir_node *node = sdx_gradient_node(d);
    int32_t x = sdx_gradient_in(d, 0), g = sdx_gradient_of(d, 0);
    const struct sdx_type type = *sdx_gradient_type(d, x);
    double epsilon = sdx_ir_attr_float(node, "epsilon", 1e-5f);
    if (node->opset < 9 || node->count_outputs > 1 || !type.has_shape ||
        sdx_ir_attr_int(node, "training_mode", 0) != 0) {
        sdx_gradient_refuse(d, "training_mode, or of a version before 9");
        return;
    }
    if (sdx_gradient_wants(d, 3) || sdx_gradient_wants(d, 4)) {
        sdx_gradient_refuse(d, "statistics that depend on xs");
        return;
    }
    int64_t dims[SDX_RANK_MAX] = {1, -1};
    for (int i = 2; i < type.rank; i++)
        dims[i] = 1;
    int rank = type.rank < 2 ? 2 : type.rank;
    int32_t variance = sdx_gradient_in(d, 4);
    int32_t root =
        OP1(d, "Sqrt", OP2(d, "Add", variance, sdx_gradient_scalar(d, variance, epsilon)));
    int32_t inverse = OP2(d, "CastLike", reshape(d, OP1(d, "Reciprocal", root), rank, dims), x);
    if (sdx_gradient_wants(d, 0)) {
        int32_t scale = reshape(d, sdx_gradient_in(d, 1), rank, dims);
        int32_t factor = OP2(d, "Mul", OP2(d, "CastLike", scale, x), inverse);
        sdx_gradient_give(d, 0, OP2(d, "Mul", g, factor));
    }
    if (sdx_gradient_wants(d, 1)) {
        int32_t mean = OP2(d, "CastLike", reshape(d, sdx_gradient_in(d, 3), rank, dims), x);
        int32_t normal = OP2(d, "Mul", OP2(d, "Sub", x, mean), inverse);
        int32_t sum = sum_channels(d, OP2(d, "Mul", g, normal), type.rank);
        sdx_gradient_give(d, 1, OP2(d, "CastLike", sum, sdx_gradient_in(d, 1)));
    }
    if (sdx_gradient_wants(d, 2)) {
        int32_t sum = sum_channels(d, g, type.rank);
        sdx_gradient_give(d, 2, OP2(d, "CastLike", sum, sdx_gradient_in(d, 2)));
    }
}

static const struct sdx_gradient_row rows[] = {
    {"Conv", rule_conv},
    {"AveragePool", rule_average_pool},
    {"GlobalAveragePool", rule_global_average},
    {"BatchNormalization", rule_batch_norm},
};

const struct sdx_gradient_rows sdx_gradient_window = {rows, SDX_COUNT_OF(rows)};
