/* SPDX-License-Identifier: Apache-2.0
 * A Pad of zeros along the spatial axes moves into the pads of the convolutions and average pools
 * that read it, and one of -infinity into those of a MaxPool: exporters write padding that differs
 * from side to side ("SAME" of TensorFlow) so. A Slice that cuts the ends off what a convolution
 * makes moves into its pads too: causal ones are written as convolutions that pad both ends (TCN,
 * Mamba), or transposed ones that leave out nothing (neural codecs). What of a kernel sees padding
 * only is left out. */
#include <float.h>
#include <math.h>

#include "ops/window.h"
#include "passes/match.h"
#include "passes/passes.h"

/* What a Pad does along the spatial axes: begins, then ends. */
struct padding {
    int rank; /* number of spatial axes */
    int64_t pads[2 * SDX_RANK_MAX];
    double value;
};

enum { PAD_MOST = INT32_MAX }; /* sums and products of such fit */
static bool are_small(const int64_t *pads, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (pads[i] < -PAD_MOST || pads[i] > PAD_MOST) return false;
    return true;
}

/* false: the Pad is of another kind. */
static bool padding_of(const struct sdx_ir_graph *g, const struct sdx_ir_node *pad,
                       struct padding *p)
{
    const struct sdx_type *x = &g->values[pad->inputs[0]].type;
    int64_t count, count_axes;
    const int64_t *pads, *axes;
    if (!sdx_match_list(g, pad, 1, "pads", &pads, &count) || !pads ||
        !sdx_match_list(g, pad, 3, NULL, &axes, &count_axes) || !x->has_shape || x->rank < 3 ||
        x->rank > SDX_RANK_MAX || !sdx_str_is(sdx_ir_attr_str(pad, "mode", "constant"), "constant"))
        return false;
    p->value = sdx_ir_attr_float(pad, "value", 0);
    if (pad->count_inputs > 2 && pad->inputs[2] >= 0 &&
        !sdx_match_scalar(g, pad->inputs[2], &p->value))
        return false;
    const int64_t n = axes ? count_axes : x->rank;
    if (count != 2 * n || !are_small(pads, count)) return false;
    *p = (struct padding){.rank = x->rank - 2, .value = p->value};
    for (int64_t i = 0; i < n; i++) {
        const int64_t axis = axes ? axes[i] + (axes[i] < 0 ? x->rank : 0) : i;
        if (pads[i] < 0 || pads[n + i] < 0 || axis < 0 || axis >= x->rank) return false;
        if (axis < 2 && (pads[i] || pads[n + i])) return false;
        if (axis < 2) continue;
        p->pads[axis - 2] += pads[i];
        p->pads[p->rank + axis - 2] += pads[n + i];
    }
    return true;
}

/* Can the node's own pads stand for these? *counted: an average has to count them. */
static bool takes(const struct sdx_ir_node *node, const struct padding *p, bool *counted)
{
    const struct sdx_str automatic = sdx_ir_attr_str(node, "auto_pad", "NOTSET");
    int64_t count = 0;
    const int64_t *own = sdx_ir_attr_ints(node, "pads", &count);
    *counted = false;
    if (node->domain.len || (own && (count != 2 * p->rank || !are_small(own, count)))) return false;
    if (!sdx_str_is(automatic, "NOTSET") && !sdx_str_is(automatic, "VALID")) return false;
    if (sdx_str_is(node->op_type, "Conv")) return p->value == 0;
    if (sdx_ir_attr_int(node, "ceil_mode", 0)) return false; /* windows beyond the padding */
    if (sdx_str_is(node->op_type, "MaxPool"))
        return node->count_outputs == 1 && p->value <= -FLT_MAX;
    if (!sdx_str_is(node->op_type, "AveragePool") || p->value != 0 || node->opset < 7) return false;
    *counted = true;
    if (sdx_ir_attr_int(node, "count_include_pad", 0)) return true;
    for (int64_t i = 0; i < count; i++)
        if (own[i]) return false; /* pads of its own do not count */
    return true;
}

static struct sdx_ir_attr *set_attr(struct sdx_ir_node *node, const char *name, uint8_t type)
{
    int32_t i = 0;
    while (i < node->count_attrs && !sdx_str_is(node->attrs[i].name, name))
        i++;
    if (i == node->count_attrs) node->count_attrs++;
    node->attrs[i] = (struct sdx_ir_attr){.name = sdx_str(name), .type = type};
    return &node->attrs[i];
}

static enum sdx_status move_into(struct sdx_context *cx, struct sdx_ir *ir,
                                 struct sdx_ir_node *node, const struct padding *p, bool counted)
{
    const size_t count = (size_t)node->count_attrs, sides = 2 * (size_t)p->rank;
    struct sdx_ir_attr *attrs = sdx_arena_array(ir->arena, count + 3, sizeof *attrs);
    int64_t *pads = sdx_arena_array(ir->arena, sides, sizeof *pads), own_count = 0;
    const int64_t *own = sdx_ir_attr_ints(node, "pads", &own_count);
    const bool valid = sdx_str_is(sdx_ir_attr_str(node, "auto_pad", "NOTSET"), "VALID");
    if (!attrs || !pads) return SDX_FAIL_MEMORY(cx);
    for (size_t i = 0; i < sides; i++)
        pads[i] = p->pads[i] + (own && !valid ? own[i] : 0);
    if (count) memcpy(attrs, node->attrs, count * sizeof *attrs);
    node->attrs = attrs;
    struct sdx_ir_attr *attr = set_attr(node, "pads", SDX_ATTR_INTS);
    attr->ints = pads;
    attr->count = (int64_t)sides;
    set_attr(node, "auto_pad", SDX_ATTR_STRING)->s = SDX_STR("NOTSET");
    if (counted) set_attr(node, "count_include_pad", SDX_ATTR_INT)->i = 1;
    return SDX_OK;
}

/* ---- before ---- */

static enum sdx_status pad_before(struct sdx_context *cx, struct sdx_ir *ir,
                                  const struct sdx_ir_graph *g, struct sdx_ir_node *node,
                                  bool *changed)
{
    struct padding p;
    bool counted = false;
    const struct sdx_ir_node *pad =
        node->count_inputs ? sdx_match_maker(g, node->inputs[0], "Pad") : NULL;
    if (!pad || !padding_of(g, pad, &p) || !takes(node, &p, &counted)) return SDX_OK;
    SDX_TRY(move_into(cx, ir, node, &p, counted));
    node->inputs[0] = pad->inputs[0];
    *changed = true;
    return SDX_OK;
}

/* ---- behind ---- */

/* starts, ends, axes, steps of a Slice; NULL: it has none. false: they are not known. */
static bool slice_constants(const struct sdx_ir_graph *g, const struct sdx_ir_node *slice,
                            const int64_t *list[4], int64_t *n)
{
    static const char *const names[4] = {"starts", "ends", "axes"};
    for (int i = 0; i < 4; i++) {
        int64_t count;
        if (!sdx_match_list(g, slice, i + 1, names[i], &list[i], &count)) return false;
        if (i == 0) *n = count;
        if (list[i] ? count != *n : i < 2) return false;
    }
    return true;
}

/* What a Slice leaves out of an axis, at its begin and its end; a length below 0 is not known.
 * false: that depends on the length, or all of it. */
static bool cut_of(int64_t length, int64_t start, int64_t end, int64_t cut[2])
{
    const bool is_known = length >= 0;
    if (!is_known &&
        (start < 0 || start > PAD_MOST || end < -PAD_MOST || (end >= 0 && end < PAD_MOST)))
        return false;
    if (is_known && start < 0) start = start < -length ? 0 : start + length;
    if (is_known && end < 0) end = end < -length ? 0 : end + length;
    cut[0] = start;
    cut[1] = is_known ? (end < length ? length - end : 0) : end < 0 ? -end : 0;
    return !is_known || (start < end && start < length);
}

/* What a Slice leaves out, along spatial axes only and with step 1. */
static bool cuts_of(const struct sdx_ir_graph *g, const struct sdx_ir_node *slice,
                    struct padding *cuts)
{
    const struct sdx_type *x = &g->values[slice->inputs[0]].type;
    const int64_t *list[4];
    int64_t n = 0;
    if (!x->has_shape || x->rank < 3 || x->rank > SDX_RANK_MAX ||
        !slice_constants(g, slice, list, &n))
        return false;
    *cuts = (struct padding){.rank = x->rank - 2};
    for (int64_t i = 0; i < n; i++) {
        const int64_t given = list[2] ? list[2][i] : i, axis = given + (given < 0 ? x->rank : 0);
        int64_t cut[2];
        if (axis < 0 || axis >= x->rank || (list[3] && list[3][i] != 1) ||
            !cut_of(x->dims[axis], list[0][i], list[1][i], cut) || (axis < 2 && (cut[0] || cut[1])))
            return false;
        if (axis < 2) continue;
        cuts->pads[axis - 2] = cut[0];
        cuts->pads[cuts->rank + axis - 2] = cut[1];
    }
    return are_small(cuts->pads, 2 * cuts->rank);
}

/* The window of a Conv or ConvTranspose without automatic pads, of numbers whose products fit.
 * false: it is of another kind. */
static bool window_of(struct sdx_context *cx, const struct sdx_ir_graph *g,
                      const struct sdx_ir_node *conv, int rank, struct sdx_window *w)
{
    const struct sdx_type *weights = &g->values[conv->inputs[1]].type;
    if (sdx_ir_attr(conv, "output_shape") || !weights->has_shape || weights->rank != rank + 2)
        return false;
    if (sdx_window_read(cx, conv, rank, weights->dims + 2, w) != SDX_OK) {
        sdx_context_clear(cx); /* said when the model runs, if it comes there */
        return false;
    }
    for (int i = 0; i < rank; i++)
        if (w->kernel[i] < 1 || w->kernel[i] > INT16_MAX || w->stride[i] > INT16_MAX ||
            w->dilation[i] > INT16_MAX)
            return false;
    return w->auto_pad == SDX_PAD_EXPLICIT && are_small(w->pad_begin, rank) &&
           are_small(w->pad_end, rank);
}

/* What the pads of the convolution take over of the cuts: a Conv then pads less, a ConvTranspose
 * leaves out more. false: they cannot. */
static bool takes_cuts(struct sdx_context *cx, const struct sdx_ir_graph *g,
                       const struct sdx_ir_node *conv, const struct padding *cuts,
                       struct padding *more)
{
    const struct sdx_type *y = &g->values[conv->outputs[0]].type;
    const bool is_transposed = sdx_str_is(conv->op_type, "ConvTranspose");
    const int rank = cuts->rank;
    struct sdx_window w;
    *more = (struct padding){.rank = rank};
    if (!window_of(cx, g, conv, rank, &w)) return false;
    for (int i = 0; i < rank; i++) {
        const int64_t reach = w.dilation[i] * (w.kernel[i] - 1);
        int64_t both = 0;
        for (int side = i; side < 2 * rank; side += rank) {
            const int64_t cut = cuts->pads[side];
            more->pads[side] = is_transposed ? cut : -cut * w.stride[i];
            const int64_t own = side < rank ? w.pad_begin[i] : w.pad_end[i];
            const int64_t pad = own + more->pads[side];
            if (cut && (pad < 0 || (is_transposed && pad > reach))) return false;
            both += pad;
        }
        /* of one element at least something is left */
        if (y->dims[i + 2] < 0 && (is_transposed ? both > reach : both < reach)) return false;
    }
    return true;
}

static enum sdx_status cut_behind(struct sdx_context *cx, struct sdx_ir *ir, struct sdx_ir_graph *g,
                                  struct sdx_ir_node *slice, const int32_t **uses, bool *changed)
{
    const int32_t y = slice->inputs[0];
    struct padding cuts, more;
    struct sdx_ir_node *conv = sdx_match_maker(g, y, "Conv");
    if (!conv) conv = sdx_match_maker(g, y, "ConvTranspose");
    if (!conv || sdx_match_is_fused(conv) || !cuts_of(g, slice, &cuts) ||
        !takes_cuts(cx, g, conv, &cuts, &more))
        return SDX_OK;
    if (!*uses) *uses = sdx_ir_uses(g, ir->arena);
    if (!*uses) return SDX_FAIL_MEMORY(cx);
    if ((*uses)[y] != 1) return SDX_OK;
    SDX_TRY(move_into(cx, ir, conv, &more, false));
    g->values[y].producer = -1;
    sdx_ir_node_set_output(g, conv, (int32_t)(conv - g->nodes), 0, slice->outputs[0]);
    slice->is_dead = true;
    *changed = true;
    return SDX_OK;
}

/* ---- what sees padding only ---- */

/* Positions begin .. end - 1 of a kernel along one axis. */
struct taps {
    int64_t begin, end;
};
/* Those of axis i that meet the image for some output; none: begin is not before end. */
static struct taps taps_of(const struct sdx_window *w, int i, int64_t in, int64_t out)
{
    struct taps t = {w->kernel[i], 0};
    for (int64_t k = 0; k < w->kernel[i]; k++) {
        const int64_t first = k * w->dilation[i] - w->pad_begin[i], step = w->stride[i];
        const int64_t o = first < 0 ? (step - 1 - first) / step : 0; /* the first not before it */
        if (o >= out || first + o * step >= in) continue;
        if (t.begin > k) t.begin = k;
        t.end = k + 1;
    }
    return t;
}

/* Weights at some positions of the kernel's axes. */
struct cropped {
    struct sdx_recipe recipe;
    int64_t dims[SDX_RANK_MAX]; /* of what is left */
    struct taps taps[SDX_RANK_MAX];
};

static void make_cropped(const struct sdx_recipe *recipe, void *elements)
{
    const struct cropped *c = (const struct cropped *)recipe;
    const struct sdx_tensor *w = recipe->of;
    const int last = w->rank - 1;
    const size_t size = w->bytes / (size_t)w->count, row = (size_t)c->dims[last] * size;
    int64_t rows = 1;
    for (int i = 0; i < last; i++)
        rows *= c->dims[i];
    for (int64_t r = 0; r < rows; r++) {
        int64_t left = r, at = c->taps[last - 2].begin, step = w->dims[last];
        for (int i = last - 1; i >= 0; left /= c->dims[i], step *= w->dims[i], i--)
            at += (left % c->dims[i] + (i > 1 ? c->taps[i - 2].begin : 0)) * step;
        memcpy((char *)elements + (size_t)r * row, (const char *)w->data + (size_t)at * size, row);
    }
}

/* The weights w at these positions. NULL: no memory. */
static struct sdx_tensor *new_cropped(struct sdx_ir *ir, const struct sdx_tensor *w,
                                      const struct taps *taps)
{
    struct cropped *c = sdx_arena_alloc(ir->arena, sizeof *c);
    if (!c) return NULL;
    *c = (struct cropped){.recipe = {make_cropped, w, NULL}};
    for (int i = 0; i < w->rank; i++)
        c->dims[i] = w->dims[i];
    for (int i = 2; i < w->rank; i++) {
        c->taps[i - 2] = taps[i - 2];
        c->dims[i] = taps[i - 2].end - taps[i - 2].begin;
    }
    return sdx_match_new_recipe(ir, &c->recipe, w->rank, c->dims);
}

/* Positions of a Conv's kernel that no output sees the image at are left out, with the padding that
 * they saw: most of 3 x 3 where an image has become one pixel, or where a dilation is wider. */
static enum sdx_status leave_out(struct sdx_context *cx, struct sdx_ir *ir, struct sdx_ir_graph *g,
                                 struct sdx_ir_node *conv, bool *changed)
{
    if (conv->count_inputs < 2 || conv->inputs[0] < 0 || conv->inputs[1] < 0) return SDX_OK;
    const struct sdx_type *x = &g->values[conv->inputs[0]].type,
                          *y = &g->values[conv->outputs[0]].type;
    struct sdx_window w;
    struct taps taps[SDX_RANK_MAX];
    struct padding less = {0};
    bool any = false;
    if (sdx_match_is_fused(conv) || !x->has_shape || !y->has_shape || x->rank < 3 ||
        x->rank > SDX_RANK_MAX || y->rank != x->rank || !window_of(cx, g, conv, x->rank - 2, &w))
        return SDX_OK;
    less.rank = w.rank;
    for (int i = 0; i < w.rank; i++) {
        const int64_t in = x->dims[i + 2], out = y->dims[i + 2];
        taps[i] = (struct taps){0, w.kernel[i]};
        if (in < 1 || out < 1 || in > PAD_MOST || out > PAD_MOST) continue;
        const struct taps t = taps_of(&w, i, in, out);
        const int64_t begin = -t.begin * w.dilation[i],
                      end = -(w.kernel[i] - t.end) * w.dilation[i];
        if (t.begin >= t.end || w.pad_begin[i] + begin < 0 || w.pad_end[i] + end < 0) continue;
        taps[i] = t;
        less.pads[i] = begin;
        less.pads[i + w.rank] = end;
        any = any || begin || end;
    }
    const struct sdx_tensor *all = any ? sdx_match_constant(g, conv->inputs[1]) : NULL;
    if (!all || !all->count) return SDX_OK;
    struct sdx_tensor *part = new_cropped(ir, all, taps);
    if (!part) return SDX_FAIL_MEMORY(cx);
    const int32_t value = sdx_match_add_constant(ir, g, g->values[conv->inputs[1]].name, part);
    if (value < 0) return SDX_FAIL_MEMORY(cx);
    SDX_TRY(move_into(cx, ir, conv, &less, false));
    conv->inputs[1] = value;
    for (int i = 0; i < conv->count_attrs; i++)
        if (sdx_str_is(conv->attrs[i].name, "kernel_shape")) conv->attrs[i].ints = part->dims + 2;
    *changed = true;
    return SDX_OK;
}

enum sdx_status sdx_pass_pad(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    static const char *const ops[] = {"Conv", "MaxPool", "AveragePool"};
    for (int32_t n_graph = 0; n_graph < ir->count_graphs; n_graph++) {
        struct sdx_ir_graph *g = &ir->graphs[n_graph];
        const int32_t *uses = NULL; /* counted where they are asked for */
        for (int32_t n = 0; n < g->count_nodes; n++) {
            struct sdx_ir_node *node = &g->nodes[n];
            if (node->is_dead || node->domain.len) continue;
            for (int i = 0; i < SDX_COUNT_OF(ops); i++)
                if (sdx_str_is(node->op_type, ops[i]))
                    SDX_TRY(pad_before(cx, ir, g, node, changed));
            if (sdx_str_is(node->op_type, "Conv")) SDX_TRY(leave_out(cx, ir, g, node, changed));
            if (sdx_str_is(node->op_type, "Slice"))
                SDX_TRY(cut_behind(cx, ir, g, node, &uses, changed));
        }
    }
    return SDX_OK;
}
