/* SPDX-License-Identifier: Apache-2.0
 * The sliding window of convolutions and pools. All arithmetic on attributes is checked: they come
 * from the file. */
#include "ops/window.h"

#include <string.h>

#define NAME(node) SDX_STR_ARG((node)->op_type)

/* Bound of every attribute and length: sums and differences of a few of them cannot overflow. */
static const int64_t length_max = INT64_C(1) << 56;

static enum sdx_status read_list(struct sdx_context *cx, const struct sdx_ir_node *node,
                                 const char *name, int64_t want, const int64_t **out)
{
    int64_t count = 0;
    *out = sdx_ir_attr_ints(node, name, &count);
    if (!*out) return SDX_OK;
    if (count == 0) *out = NULL;
    if (count && count != want)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: %s has %lld values, expected %lld", NAME(node),
                        name, (long long)count, (long long)want);
    for (int64_t i = 0; i < count; i++)
        if ((*out)[i] > length_max || (*out)[i] < -length_max)
            return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: %s has %lld, out of range", NAME(node), name,
                            (long long)(*out)[i]);
    return SDX_OK;
}

static enum sdx_status positive(struct sdx_context *cx, const struct sdx_ir_node *node,
                                const char *name, int64_t value)
{
    if (value > 0) return SDX_OK;
    return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: %s has %lld, expected at least 1", NAME(node), name,
                    (long long)value);
}

static enum sdx_status read_auto_pad(struct sdx_context *cx, const struct sdx_ir_node *node,
                                     enum sdx_auto_pad *out)
{
    struct sdx_str text = sdx_ir_attr_str(node, "auto_pad", "NOTSET");
    if (sdx_str_is(text, "NOTSET") || text.len == 0)
        *out = SDX_PAD_EXPLICIT;
    else if (sdx_str_is(text, "SAME_UPPER"))
        *out = SDX_PAD_SAME_UPPER;
    else if (sdx_str_is(text, "SAME_LOWER"))
        *out = SDX_PAD_SAME_LOWER;
    else if (sdx_str_is(text, "VALID"))
        *out = SDX_PAD_VALID;
    else
        return SDX_FAIL(cx, SDX_BAD_MODEL,
                        "%.*s: auto_pad is \"%.*s\", expected NOTSET, SAME_UPPER, SAME_LOWER or "
                        "VALID",
                        NAME(node), SDX_STR_ARG(text));
    return SDX_OK;
}

enum sdx_status sdx_window_read(struct sdx_context *cx, const struct sdx_ir_node *node, int rank,
                                const int64_t *kernel, struct sdx_window *w)
{
    const int64_t *shape, *strides, *dilations, *pads;
    if (rank < 1 || rank > SDX_RANK_MAX - 2)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: input has rank %d, expected at least 3",
                        NAME(node), rank + 2);
    SDX_TRY(read_list(cx, node, "kernel_shape", rank, &shape));
    SDX_TRY(read_list(cx, node, "strides", rank, &strides));
    SDX_TRY(read_list(cx, node, "dilations", rank, &dilations));
    SDX_TRY(read_list(cx, node, "pads", 2 * (int64_t)rank, &pads));
    SDX_TRY(read_auto_pad(cx, node, &w->auto_pad));
    if (!shape && !kernel)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: attribute kernel_shape is missing", NAME(node));
    w->rank = rank;
    w->ceil_mode = sdx_ir_attr_int(node, "ceil_mode", 0) != 0;
    for (int i = 0; i < rank; i++) {
        int64_t from_weights = kernel ? kernel[i] : -1;
        w->kernel[i] = shape ? shape[i] : from_weights;
        if (shape && from_weights >= 0 && shape[i] != from_weights)
            return SDX_FAIL(cx, SDX_BAD_MODEL,
                            "%.*s: kernel_shape[%d] is %lld, but the weights have %lld", NAME(node),
                            i, (long long)shape[i], (long long)from_weights);
        if (shape || from_weights >= 0) SDX_TRY(positive(cx, node, "kernel_shape", w->kernel[i]));
        if (w->kernel[i] > length_max)
            return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: kernel is too large", NAME(node));
        w->stride[i] = strides ? strides[i] : 1;
        SDX_TRY(positive(cx, node, "strides", w->stride[i]));
        w->dilation[i] = dilations ? dilations[i] : 1;
        SDX_TRY(positive(cx, node, "dilations", w->dilation[i]));
        bool explicit_pads = pads && w->auto_pad == SDX_PAD_EXPLICIT;
        w->pad_begin[i] = explicit_pads ? pads[i] : 0;
        w->pad_end[i] = explicit_pads ? pads[rank + i] : 0;
    }
    return SDX_OK;
}

bool sdx_window_extent(const struct sdx_window *w, int i, int64_t *extent)
{
    return sdx_mul_i64(w->kernel[i] - 1, w->dilation[i], extent) && *extent < length_max &&
           (++*extent, true);
}

static enum sdx_status too_small(struct sdx_context *cx, const struct sdx_ir_node *node,
                                 const struct sdx_window *w, int i, int64_t in, int64_t extent)
{
    return SDX_FAIL(cx, SDX_BAD_MODEL,
                    "%.*s: window of %lld does not fit into axis %d of length %lld with pads %lld "
                    "and %lld",
                    NAME(node), (long long)extent, i + 2, (long long)in, (long long)w->pad_begin[i],
                    (long long)w->pad_end[i]);
}

enum sdx_status sdx_window_length(struct sdx_context *cx, const struct sdx_ir_node *node,
                                  struct sdx_window *w, int i, int64_t in, int64_t *out)
{
    int64_t extent, stride = w->stride[i];
    *out = -1;
    if (w->kernel[i] < 0) return SDX_OK;
    if (!sdx_window_extent(w, i, &extent) || in > length_max)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: window is too large", NAME(node));
    if (w->auto_pad == SDX_PAD_SAME_UPPER || w->auto_pad == SDX_PAD_SAME_LOWER) {
        if (in < 0) {
            if (stride == 1) *out = in;
            return SDX_OK;
        }
        *out = in ? (in - 1) / stride + 1 : 0;
        int64_t pad = *out ? (*out - 1) * stride + extent - in : 0;
        if (pad < 0) pad = 0;
        w->pad_begin[i] = w->auto_pad == SDX_PAD_SAME_UPPER ? pad / 2 : pad - pad / 2;
        w->pad_end[i] = pad - w->pad_begin[i];
        return SDX_OK;
    }
    int64_t pads = w->pad_begin[i] + w->pad_end[i];
    if (in < 0) {
        if (stride == 1 && pads == extent - 1) *out = in;
        return SDX_OK;
    }
    int64_t room = in + pads - extent;
    if (room < 0) return too_small(cx, node, w, i, in, extent);
    *out = room / stride + 1;
    /* A window more when a rest is left, unless it would begin in the padding behind. */
    if (w->ceil_mode && room % stride != 0 && *out * stride < in + w->pad_begin[i]) ++*out;
    return SDX_OK;
}

/* The symbol of a length that sdx_window_length cannot tell. */
static int64_t symbol_of(struct sdx_infer *ix, const struct sdx_window *w, int i, int64_t in)
{
    struct sdx_ir_length l = {.dim = in, .factor = 1, .divisor = w->stride[i]};
    int64_t extent;
    const bool is_same = w->auto_pad == SDX_PAD_SAME_UPPER || w->auto_pad == SDX_PAD_SAME_LOWER;
    if (w->kernel[i] < 0 || !sdx_window_extent(w, i, &extent)) return -1;
    if (w->ceil_mode && !is_same && w->stride[i] > 1) return -1;
    l.term = w->stride[i] - (is_same ? 1 : extent);
    if (!is_same) l.term += w->pad_begin[i] + w->pad_end[i];
    return sdx_infer_scaled(ix, l);
}

enum sdx_status sdx_window_infer(struct sdx_infer *ix, struct sdx_window *w, const int64_t *dims,
                                 int64_t *out)
{
    for (int i = 0; i < w->rank; i++) {
        SDX_TRY(sdx_window_length(ix->cx, ix->node, w, i, dims[i + 2], &out[i + 2]));
        if (out[i + 2] == -1) out[i + 2] = symbol_of(ix, w, i, dims[i + 2]);
    }
    return SDX_OK;
}

void sdx_window_shape(const struct sdx_window *w, const int64_t *in, const int64_t *out,
                      struct sdx_conv_shape *shape)
{
    memset(shape, 0, sizeof *shape);
    for (int i = 0; i < 3; i++) {
        int k = i - (3 - w->rank);
        shape->in[i] = k < 0 ? 1 : in[k];
        shape->out[i] = k < 0 ? 1 : out[k];
        shape->kernel[i] = k < 0 ? 1 : w->kernel[k];
        shape->stride[i] = k < 0 ? 1 : w->stride[k];
        shape->dilation[i] = k < 0 ? 1 : w->dilation[k];
        shape->pad_begin[i] = k < 0 ? 0 : w->pad_begin[k];
    }
}
