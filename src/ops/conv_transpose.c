/* SPDX-License-Identifier: Apache-2.0
 * ConvTranspose by phases; the last step interleaves them. On blocked channels a phase has whole
 * blocks of its own, elsewhere the phases of a channel are neighbours, so that groups stay
 * together. f64 adds taps directly. */
#include "ops/conv_transpose.h"

#include "kernels/conv_block.h"
#include "ops/conv_common.h"
#include "ops/layout.h"
#include "ops/product.h"
#include "ops/window.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

enum {
    PHASES_MAX = 4096,
    GRAIN = 1 << 15, /* elements of a part of the interleaving */
    PIECE = 1024     /* outputs of a long row that one part puts in turn */
};

/* ---- inference ---- */

/* Length of the output along axis i and the padding at its begin (auto_pad and output_shape make
 * their own). in < 0: not known. */
static enum sdx_status out_length(struct sdx_context *cx, const struct sdx_ir_node *node,
                                  struct sdx_window *w, int i, int64_t in, const int64_t *shape,
                                  const int64_t *extra, int64_t *out)
{
    int64_t extent, full;
    *out = shape ? shape[i] : -1;
    if (w->kernel[i] < 0 || in < 0) return SDX_OK;
    if (!sdx_window_extent(w, i, &extent) ||
        !sdx_mul_i64(in > 0 ? in - 1 : 0, w->stride[i], &full) ||
        !sdx_add_i64(full, extent + (extra ? extra[i] : 0), &full))
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: output is too large", NAME(node));
    if (in == 0) full = 0;
    bool is_same = w->auto_pad == SDX_PAD_SAME_UPPER || w->auto_pad == SDX_PAD_SAME_LOWER;
    if (shape || is_same) {
        /* SAME: in * stride, but no more than there is, as shape inference of the standard has it.
         */
        int64_t pad = shape ? full - shape[i] : extent - w->stride[i] + (extra ? extra[i] : 0);
        if (pad < 0) pad = 0; /* with a shape: the rest of the output is bias only */
        w->pad_begin[i] = w->auto_pad == SDX_PAD_SAME_UPPER ? pad / 2 : pad - pad / 2;
        w->pad_end[i] = pad - w->pad_begin[i];
    }
    if (!shape) *out = full - w->pad_begin[i] - w->pad_end[i];
    if (*out < 0)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: axis %d of the output has length %lld",
                        NAME(node), i + 2, (long long)*out);
    return SDX_OK;
}

static enum sdx_status read_list(struct sdx_context *cx, const struct sdx_ir_node *node,
                                 const char *name, int rank, const int64_t **out)
{
    int64_t count = 0;
    *out = sdx_ir_attr_ints(node, name, &count);
    if (!*out || count == 0) {
        *out = NULL;
        return SDX_OK;
    }
    /* Exporters are seen that give the whole shape. */
    if (count == rank + 2) *out += 2;
    if (count != rank && count != rank + 2)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: %s has %lld values, expected %d", NAME(node),
                        name, (long long)count, rank);
    for (int i = 0; i < rank; i++)
        if ((*out)[i] < 0 || (*out)[i] > INT64_C(1) << 48)
            return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: %s has %lld, out of range", NAME(node), name,
                            (long long)(*out)[i]);
    return SDX_OK;
}

/* Output dims of x [N, C, in...] and w [C, OC / groups, kernel...]; the window gets its pads. */
static enum sdx_status shape_out(struct sdx_context *cx, const struct sdx_ir_node *node, int rank,
                                 const int64_t *x, const int64_t *w_dims, struct sdx_window *w,
                                 int64_t *out)
{
    const int64_t *shape, *extra;
    int64_t groups = sdx_ir_attr_int(node, "group", 1);
    SDX_TRY(sdx_window_read(cx, node, rank - 2, w_dims + 2, w));
    SDX_TRY(read_list(cx, node, "output_shape", rank - 2, &shape));
    SDX_TRY(read_list(cx, node, "output_padding", rank - 2, &extra));
    if (groups < 1)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: group is %lld, expected at least 1", NAME(node),
                        (long long)groups);
    if (x[1] >= 0 && w_dims[0] >= 0 && x[1] != w_dims[0])
        return SDX_FAIL(cx, SDX_BAD_MODEL,
                        "%.*s: input has %lld channels, but the weights take %lld", NAME(node),
                        (long long)x[1], (long long)w_dims[0]);
    if (w_dims[0] >= 0 && w_dims[0] % groups != 0)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: %lld channels do not divide into %lld groups",
                        NAME(node), (long long)w_dims[0], (long long)groups);
    out[0] = x[0];
    out[1] = -1;
    if (w_dims[1] >= 0 && !sdx_mul_i64(w_dims[1], groups, &out[1]))
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: output is too large", NAME(node));
    for (int i = 0; i < rank - 2; i++)
        SDX_TRY(out_length(cx, node, w, i, x[i + 2], shape, extra, &out[i + 2]));
    return SDX_OK;
}

/* Symbols for the lengths that are reckoned from one; with SAME and output_shape there are none. */
static enum sdx_status out_symbols(struct sdx_infer *ix, int rank, const int64_t *x,
                                   const struct sdx_window *w, int64_t *out)
{
    const int64_t *shape, *extra;
    SDX_TRY(read_list(ix->cx, ix->node, "output_shape", rank - 2, &shape));
    SDX_TRY(read_list(ix->cx, ix->node, "output_padding", rank - 2, &extra));
    if (shape || w->auto_pad == SDX_PAD_SAME_UPPER || w->auto_pad == SDX_PAD_SAME_LOWER)
        return SDX_OK;
    for (int i = 0; i < rank - 2; i++) {
        int64_t extent;
        if (out[i + 2] != -1 || w->kernel[i] < 0 || !sdx_window_extent(w, i, &extent)) continue;
        out[i + 2] = sdx_infer_scaled(
            ix, (struct sdx_ir_length){.dim = x[i + 2],
                                       .factor = w->stride[i],
                                       .term = extent - w->stride[i] + (extra ? extra[i] : 0) -
                                               w->pad_begin[i] - w->pad_end[i],
                                       .divisor = 1});
    }
    return SDX_OK;
}

enum sdx_status sdx_conv_transpose_infer_of(struct sdx_infer *ix, int x, int input_w,
                                            int input_bias, int dtype)
{
    struct sdx_window w;
    int64_t out[SDX_RANK_MAX];
    int rank = sdx_infer_rank(ix, x);
    const int64_t *dims_w = sdx_infer_dims(ix, input_w);
    sdx_infer_set_dtype(ix, 0, dtype);
    if (rank >= 0 && rank < 3)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: input has rank %d, expected at least 3",
                        NAME(ix->node), rank);
    if (rank < 0 || !dims_w) return SDX_OK;
    if (sdx_infer_rank(ix, input_w) != rank)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: weight has rank %d, expected %d",
                        NAME(ix->node), sdx_infer_rank(ix, input_w), rank);
    SDX_TRY(shape_out(ix->cx, ix->node, rank, sdx_infer_dims(ix, x), dims_w, &w, out));
    SDX_TRY(out_symbols(ix, rank, sdx_infer_dims(ix, x), &w, out));
    const int64_t *bias = input_bias < 0 ? NULL : sdx_infer_dims(ix, input_bias);
    if (bias &&
        (sdx_infer_rank(ix, input_bias) != 1 || (bias[0] >= 0 && out[1] >= 0 && bias[0] != out[1])))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: bias must have one axis of length %lld",
                        NAME(ix->node), (long long)out[1]);
    return sdx_infer_set_dims(ix, 0, rank, out);
}

static enum sdx_status infer_conv_transpose(struct sdx_infer *ix)
{
    return sdx_conv_transpose_infer_of(ix, 0, 1, sdx_infer_has(ix, 2) ? 2 : -1,
                                       sdx_infer_dtype(ix, 0));
}

void sdx_conv_transpose_cost_of(const struct sdx_infer *ix, int input_w, struct sdx_cost *cost)
{
    const int64_t *x = sdx_infer_dims(ix, 0), *w = sdx_infer_dims(ix, input_w);
    cost->macs = 1;
    for (int i = 0; i < sdx_infer_rank(ix, 0); i++)
        cost->macs *= (double)x[i];
    for (int i = 1; i < sdx_infer_rank(ix, input_w); i++)
        cost->macs *= (double)w[i];
    cost->flops = 2 * cost->macs;
}

static void cost_conv_transpose(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    sdx_conv_transpose_cost_of(ix, 1, cost);
}

/* ---- phases ---- */

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static struct sdx_phase_axis axis_of(const struct sdx_conv_shape *t, int i, int64_t first)
{
    struct sdx_phase_axis a = {.first = first};
    int64_t s = t->stride[i], d = t->dilation[i], pad = t->pad_begin[i];
    a.count = first < t->out[i] ? (t->out[i] - first + s - 1) / s : 0;
    int64_t phase = ((first + pad) % s + s) % s, common = gcd(d, s);
    a.tap_step = s / common;
    a.dilation = d / common;
    for (a.tap = 0; a.tap < a.tap_step && a.tap * d % s != phase; a.tap++) {
    }
    a.taps = a.tap < a.tap_step && a.tap < t->kernel[i]
                 ? (t->kernel[i] - a.tap + a.tap_step - 1) / a.tap_step
                 : 0;
    /* Exact: first + pad - tap * d is a multiple of s. */
    if (a.taps) a.begin = (first + pad - a.tap * d) / s;
    return a;
}

struct params {
    struct sdx_phases f;
    bool is_blocked;
    struct sdx_epilogue epilogue;
};

/* One convolution's place in its params: what its steps get. */
struct conv_step {
    const struct params *p;
    const struct sdx_phase_conv *conv;
};

static bool same_shape(const struct sdx_phase *a, const struct sdx_phase *b)
{
    for (int i = 0; i < 3; i++)
        if (a->axes[i].count != b->axes[i].count || a->axes[i].taps != b->axes[i].taps ||
            a->axes[i].begin != b->axes[i].begin || a->axes[i].dilation != b->axes[i].dilation)
            return false;
    return true;
}

static void conv_shape_of(const struct sdx_conv_shape *t, const struct sdx_phase *f,
                          struct sdx_conv_shape *s)
{
    *s = *t;
    for (int i = 0; i < 3; i++) {
        const struct sdx_phase_axis *a = &f->axes[i];
        s->out[i] = a->count;
        s->kernel[i] = a->taps;
        s->stride[i] = 1;
        s->dilation[i] = a->dilation;
        s->pad_begin[i] = (a->taps - 1) * a->dilation - a->begin;
    }
}

/* n: phases along the axes. Returns how many there are together; 0: more than PHASES_MAX. */
static int64_t count_phases(const struct sdx_conv_shape *t, int64_t n[3])
{
    int64_t total = 1;
    for (int i = 0; i < 3; i++) {
        n[i] = t->stride[i] < t->out[i] ? t->stride[i] : t->out[i];
        if (!sdx_mul_i64(total, n[i], &total) || total > PHASES_MAX) return 0;
    }
    return total;
}
/* The axes of phase f. false: one has no taps. */
static bool phase_of(const struct sdx_conv_shape *t, const int64_t n[3], int64_t f,
                     struct sdx_phase *phase)
{
    const int64_t first[3] = {f / (n[1] * n[2]), f / n[2] % n[1], f % n[2]};
    bool has_taps = true;
    for (int i = 0; i < 3; i++) {
        phase->axes[i] = axis_of(t, i, first[i]);
        has_taps = has_taps && phase->axes[i].taps != 0;
    }
    return has_taps;
}

enum sdx_status sdx_phases_find(struct sdx_prepare *px, int64_t lanes, struct sdx_phases *p)
{
    int64_t n[3];
    const int64_t total = count_phases(&p->t, n);
    if (total == 0)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: strides over %d phases", NAME(px->node),
                        PHASES_MAX);
    p->phases = sdx_prepare_alloc(px, (size_t)total * sizeof *p->phases);
    p->convs = sdx_prepare_alloc(px, (size_t)total * sizeof *p->convs);
    if (!p->phases || !p->convs) return SDX_FAIL_MEMORY(px->cx);
    p->count_phases = (int32_t)total;
    for (int32_t f = 0; f < total; f++) {
        struct sdx_phase *phase = &p->phases[f];
        phase->group = -1;
        if (!phase_of(&p->t, n, f, phase)) continue;
        int32_t g = p->is_apart ? p->count_convs : 0;
        while (g < p->count_convs && !same_shape(phase, &p->phases[p->convs[g].first]))
            g++;
        if (g == p->count_convs) {
            p->convs[g].first = f;
            conv_shape_of(&p->t, phase, &p->convs[g].s);
            p->count_convs++;
        }
        phase->group = g;
        phase->slot = p->convs[g].slots++;
    }
    p->channels = total > 1 ? (p->t.oc + lanes - 1) / lanes * lanes : p->t.oc;
    for (int32_t g = 0; g < p->count_convs; g++)
        p->convs[g].s.oc = p->channels * p->convs[g].slots;
    return SDX_OK;
}

int64_t sdx_phases_variant(const struct sdx_phases *p, int32_t g)
{
    const struct sdx_phase_conv *c = &p->convs[g];
    int64_t form[3 + 3 * 6] = {g, c->slots, c->s.out[0] * c->s.out[1] * c->s.out[2] > 1};
    for (int i = 0; i < 3; i++) {
        const int64_t stride = p->t.stride[i], length = p->t.out[i];
        const int64_t axis[] = {c->s.kernel[i],   stride,
                                p->t.dilation[i], p->t.pad_begin[i],
                                length % stride,  length < stride ? length : stride};
        memcpy(form + 3 + 6 * i, axis, sizeof axis);
    }
    return sdx_pack_variant(form, SDX_COUNT_OF(form));
}

void *sdx_phase_filter(const struct sdx_conv_shape *t, const struct sdx_phase *phase,
                       const void *from, size_t size, void *to_)
{
    const struct sdx_phase_axis *a = phase->axes;
    char *to = to_;
    for (int64_t i = a[0].taps - 1; i >= 0; i--)
        for (int64_t j = a[1].taps - 1; j >= 0; j--)
            for (int64_t k = a[2].taps - 1; k >= 0; k--, to += size) {
                const int64_t row =
                    (a[0].tap + i * a[0].tap_step) * t->kernel[1] + a[1].tap + j * a[1].tap_step;
                const int64_t at = row * t->kernel[2] + a[2].tap + k * a[2].tap_step;
                if (size == 1)
                    *to = ((const char *)from)[at];
                else
                    memcpy(to, (const float *)from + at, sizeof(float));
            }
    return to;
}

/* The output channel of its convolution that channel oc of a phase is. */
static int64_t channel_at(const struct params *p, const struct sdx_phase_conv *c, int64_t oc,
                          int32_t slot)
{
    return p->is_blocked ? slot * p->f.channels + oc : oc * c->slots + slot;
}

/* A channel a group, and these whole blocks. */
static bool is_depthwise(const struct sdx_conv_shape *t)
{
    return t->groups == t->ic && t->ic == t->oc && t->ic % sdx_block_lanes() == 0;
}

/* Weights of a convolution [oc * slots, ic / groups, taps...] from w [ic, oc / groups, kernel...],
 * taps reversed; zeros for channels that fill up a block. */
static void gather_weights(const struct params *p, const struct sdx_phase_conv *c, const float *w,
                           float *out)
{
    const struct sdx_conv_shape *t = &p->f.t;
    int64_t ocg = t->oc / t->groups, icg = t->ic / t->groups;
    int64_t volume = t->kernel[0] * t->kernel[1] * t->kernel[2];
    int64_t taps = c->s.kernel[0] * c->s.kernel[1] * c->s.kernel[2];
    if (p->f.channels > t->oc) memset(out, 0, (size_t)(c->s.oc * icg * taps) * sizeof *out);
    for (int32_t f = 0; f < p->f.count_phases; f++) {
        const struct sdx_phase *phase = &p->f.phases[f];
        if (phase->group < 0 || &p->f.convs[phase->group] != c) continue;
        for (int64_t oc = 0; oc < t->oc; oc++)
            for (int64_t ic = 0; ic < icg; ic++) {
                const float *from = w + ((oc / ocg * icg + ic) * ocg + oc % ocg) * volume;
                float *to = out + (channel_at(p, c, oc, phase->slot) * icg + ic) * taps;
                (void)sdx_phase_filter(t, phase, from, sizeof *from, to);
            }
    }
}

static size_t gathered_size(const struct sdx_phase_conv *c)
{
    return (size_t)(c->s.oc * (c->s.ic / c->s.groups) * c->s.kernel[0] * c->s.kernel[1] *
                    c->s.kernel[2]) *
           sizeof(float);
}

struct pack_arg {
    const struct params *p;
    const struct sdx_phase_conv *c;
    const struct sdx_tensor *w;
};

static enum sdx_status pack(struct sdx_context *cx, void *dst, void *arg_)
{
    const struct pack_arg *arg = arg_;
    float *temp, *gathered = sdx_mem_alloc(cx->mem, SDX_MEM_SCRATCH, gathered_size(arg->c));
    if (!gathered) return SDX_FAIL_MEMORY(cx);
    const float *weights = sdx_weights_f32(cx, arg->w, &temp);
    if (weights) {
        gather_weights(arg->p, arg->c, weights, gathered);
        if (arg->p->is_blocked)
            sdx_conv_block_pack(&arg->c->s, gathered, dst, NULL, /* no groups of several channels */
                                NULL);
        else
            sdx_conv_f32_pack(&arg->c->s, gathered, dst);
    }
    sdx_mem_free(cx->mem, temp);
    sdx_mem_free(cx->mem, gathered);
    return weights ? SDX_OK : cx->error.status;
}

static enum sdx_status run_pack(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct conv_step *p = step->params;
    gather_weights(p->p, p->conv, step->in[0]->data, x->scratch);
    sdx_conv_f32_pack(&p->conv->s, x->scratch, step->out[0]->data);
    return SDX_OK;
}

static enum sdx_status run_conv(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct conv_step *p = step->params;
    struct sdx_epilogue e = {.act = SDX_ACT_NONE};
    if (sdx_exec_cancelled(x)) return SDX_OK;
    if (p->p->is_blocked || p->p->f.count_phases == 1) e = p->p->epilogue;
    if (step->in[2]) e.bias_row = step->in[2]->data;
    if (p->p->is_blocked)
        sdx_conv_block_run(&p->conv->s, step->in[0]->data, p->conv->packed, step->out[0]->data, &e,
                           part, x->part_end, x->scratch);
    else
        sdx_conv_f32_part(&p->conv->s, step->in[0]->data,
                          p->conv->packed ? p->conv->packed : step->in[1]->data, step->out[0]->data,
                          &e, part, x->scratch);
    return SDX_OK;
}

/* The bias for each phase of one convolution on blocks. */
static enum sdx_status run_bias(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    const int64_t channels = step->out[0]->count;
    float *to = step->out[0]->data;
    (void)x, (void)part;
    for (int64_t c = 0; c < channels; c++)
        to[c] = c % p->f.channels < p->f.t.oc
                    ? ((const float *)step->in[0]->data)[c % p->f.channels]
                    : 0;
    return SDX_OK;
}

/* Puts the phases of one plane (part: batch * oc) into their places, adds the bias and applies the
 * activation. */
static enum sdx_status run_interleave(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct params *p = step->params;
    const struct sdx_conv_shape *t = &p->f.t;
    const int64_t *s = t->stride, *out = t->out;
    const int64_t n = part / t->oc, oc = part % t->oc, pixels = out[0] * out[1] * out[2];
    float *y = (float *)step->out[0]->data + part * pixels;
    for (int32_t f = 0; f < p->f.count_phases; f++) {
        const struct sdx_phase *phase = &p->f.phases[f];
        const struct sdx_phase_axis *a = phase->axes;
        const float *from = NULL;
        if (phase->group >= 0) {
            const struct sdx_phase_conv *c = &p->f.convs[phase->group];
            from =
                (const float *)step->in[1 + phase->group]->data +
                ((n * t->oc + oc) * c->slots + phase->slot) * a[0].count * a[1].count * a[2].count;
        }
        for (int64_t i = 0; i < a[0].count; i++)
            for (int64_t j = 0; j < a[1].count; j++) {
                float *to = y +
                            ((a[0].first + i * s[0]) * out[1] + a[1].first + j * s[1]) * out[2] +
                            a[2].first;
                for (int64_t k = 0; k < a[2].count; k++)
                    to[k * s[2]] = from ? from[k] : 0;
                if (from) from += a[2].count;
            }
    }
    sdx_conv_f32_finish(y, pixels, step->in[0] ? ((const float *)step->in[0]->data)[oc] : 0,
                        &p->epilogue);
    return SDX_OK;
}

/* So many that each has about PIECE outputs. */
static int64_t row_pieces(const struct sdx_conv_shape *t)
{
    return t->out[2] > PIECE ? t->out[2] / PIECE : 1;
}

/* `count` pixels of `lanes` floats, neighbours, to places `apart` floats from each other. */
SDX_INLINE void spread(const float *from, float *to, int64_t count, int64_t apart,
                       const int64_t lanes)
{
    for (int64_t k = 0; k < count; k++, from += lanes, to += apart) {
        SDX_UNROLL(4)
        for (int64_t i = 0; i < lanes; i += 4) /* more at once is a call in code that is small */
            memcpy(to + i, from + i, 4 * sizeof *to);
    }
}
static void spread_pixels(const float *from, float *to, int64_t count, int64_t apart, int64_t lanes)
{
    if (lanes == 16) /* a size known here is no call */
        spread(from, to, count, apart, 16);
    else if (lanes == 8)
        spread(from, to, count, apart, 8);
    else
        spread(from, to, count, apart, lanes);
}

/* Pieces of rows of one block of channels, from the phases that they alternate between. */
static enum sdx_status run_interleave_blocks(struct sdx_exec *x, const struct sdx_step *step,
                                             int64_t part)
{
    const struct params *p = step->params;
    const int64_t *s = p->f.t.stride, *out = p->f.t.out, lanes = sdx_block_lanes();
    const int64_t blocks = p->f.channels / lanes, lines = out[0] * out[1];
    const int64_t high = s[1] < out[1] ? s[1] : out[1], wide = s[2] < out[2] ? s[2] : out[2];
    const int64_t pieces = row_pieces(&p->f.t), all = p->f.t.batch * blocks * lines * pieces;
    const int64_t end = sdx_part_begin(all, step->parts, part + 1, 1);
    for (int64_t at = sdx_part_begin(all, step->parts, part, 1); at < end && !sdx_exec_cancelled(x);
         at++) {
        const int64_t r = at / pieces, piece = at % pieces;
        const int64_t plane = r / lines, d = r % lines / out[1], h = r % out[1];
        float *to = (float *)step->out[0]->data + r * out[2] * lanes;
        for (int64_t w = 0; w < wide; w++) {
            const struct sdx_phase *phase = &p->f.phases[(d % s[0] * high + h % s[1]) * wide + w];
            const struct sdx_phase_axis *a = phase->axes;
            const int64_t of = plane / blocks * p->f.convs[phase->group].slots + phase->slot;
            const int64_t line =
                ((of * blocks + plane % blocks) * a[0].count + d / s[0]) * a[1].count + h / s[1];
            const float *from =
                (const float *)step->in[phase->group]->data + line * a[2].count * lanes;
            const int64_t k0 = sdx_part_begin(a[2].count, pieces, piece, 1);
            const int64_t k1 = sdx_part_begin(a[2].count, pieces, piece + 1, 1);
            spread_pixels(from + k0 * lanes, to + (w + k0 * s[2]) * lanes, k1 - k0, s[2] * lanes,
                          lanes);
        }
    }
    return SDX_OK;
}

/* The steps of convolution g into `out`; bias: NULL when the interleaving adds it. */
static enum sdx_status add_conv(struct sdx_prepare *px, struct params *p, int32_t g,
                                struct sdx_tensor *bias, struct sdx_tensor *out)
{
    struct sdx_phase_conv *c = &p->f.convs[g];
    struct conv_step *params = SDX_PREPARE_NEW(px, struct conv_step);
    struct sdx_tensor *packed = NULL;
    const char *kernel = p->is_blocked ? "conv_transpose_block" : "conv_transpose_f32";
    if (!params) return SDX_FAIL_MEMORY(px->cx);
    *params = (struct conv_step){p, c};
    if (p->is_blocked) c->s.winograd = sdx_conv_block_winograd(&c->s);
    const size_t size =
        p->is_blocked ? sdx_conv_block_packed_size(&c->s) : sdx_conv_f32_packed_size(&c->s);
    if (px->in[1]->is_constant) {
        struct pack_arg arg = {p, c, px->in[1]};
        const int64_t name[] = {sdx_phases_variant(&p->f, g), sdx_conv_variant(&c->s),
                                p->is_blocked ? (int64_t)sdx_conv_block_form(&c->s) : -1};
        const struct sdx_pack wanted = {.key = kernel,
                                        .variant = sdx_pack_variant(name, 3),
                                        .size = size,
                                        .pack = pack,
                                        .arg = &arg};
        c->packed = sdx_prepare_pack(px, 1, &wanted);
        if (!c->packed) return px->cx->error.status;
    } else {
        int64_t bytes = (int64_t)size;
        packed = sdx_prepare_temp(px, SDX_U8, 1, &bytes);
        if (!packed) return SDX_FAIL_MEMORY(px->cx);
        SDX_TRY(sdx_prepare_step_on(px, "conv_transpose_pack", run_pack, params, 1,
                                    gathered_size(c), 1, &px->in[1], 1, &packed));
    }
    struct sdx_tensor *in[] = {px->in[0], packed, bias};
    SDX_TRY(sdx_prepare_step_on(
        px, kernel, run_conv, params,
        p->is_blocked ? sdx_conv_block_parts(&c->s) : sdx_conv_f32_parts(&c->s),
        p->is_blocked ? sdx_conv_block_scratch(&c->s) : sdx_conv_f32_scratch(&c->s), 3, in, 1,
        &out));
    if (p->is_blocked) sdx_prepare_together(px, sdx_conv_block_together(&c->s));
    return SDX_OK;
}

/* *repeated: the bias of convolution g; NULL without one. */
static enum sdx_status repeat_bias(struct sdx_prepare *px, struct params *p, int32_t g,
                                   struct sdx_tensor *bias, struct sdx_tensor **repeated)
{
    *repeated = bias;
    if (!bias || p->f.convs[g].s.oc == p->f.t.oc) return SDX_OK;
    *repeated = sdx_prepare_temp(px, SDX_F32, 1, &p->f.convs[g].s.oc);
    if (!*repeated) return SDX_FAIL_MEMORY(px->cx);
    return sdx_prepare_step_on(px, "conv_transpose_bias", run_bias, p, 1, 0, 1, &bias, 1, repeated);
}

static enum sdx_status prepare_f32(struct sdx_prepare *px, struct params *p,
                                   struct sdx_tensor *bias)
{
    p->is_blocked = px->out[0]->layout == SDX_LAYOUT_BLOCKED;
    p->f.is_apart = p->is_blocked && p->f.t.groups > 1;
    SDX_TRY(sdx_fused_act(px->cx, px->node, &p->epilogue.act, &p->epilogue.a, &p->epilogue.b));
    SDX_TRY(sdx_phases_find(px, p->is_blocked ? sdx_block_lanes() : 1, &p->f));
    if (p->f.count_phases == 1 && p->f.count_convs == 1)
        return add_conv(px, p, 0, bias, px->out[0]);
    struct sdx_tensor **in =
        sdx_prepare_alloc(px, (size_t)(p->f.count_convs + 1) * sizeof(struct sdx_tensor *));
    if (!in) return SDX_FAIL_MEMORY(px->cx);
    in[0] = bias;
    for (int32_t g = 0; g < p->f.count_convs; g++) {
        const struct sdx_conv_shape *s = &p->f.convs[g].s;
        struct sdx_tensor *repeated = NULL;
        int64_t dims[] = {s->batch, s->oc, s->out[0], s->out[1], s->out[2]};
        in[g + 1] = sdx_prepare_temp(px, SDX_F32, 5, dims);
        if (!in[g + 1]) return SDX_FAIL_MEMORY(px->cx);
        if (p->is_blocked) SDX_TRY(repeat_bias(px, p, g, bias, &repeated));
        SDX_TRY(add_conv(px, p, g, repeated, in[g + 1]));
    }
    if (!p->is_blocked)
        return sdx_prepare_step_on(px, "conv_transpose_interleave", run_interleave, p,
                                   p->f.t.batch * p->f.t.oc, 0, p->f.count_convs + 1, in, 1,
                                   px->out);
    const int64_t rows = p->f.t.batch * (p->f.channels / sdx_block_lanes()) * p->f.t.out[0] *
                         p->f.t.out[1] * row_pieces(&p->f.t);
    return sdx_prepare_step_on(px, "conv_transpose_interleave", run_interleave_blocks, p,
                               sdx_prepare_parts((double)px->out[0]->count, GRAIN, rows), 0,
                               p->f.count_convs, in + 1, 1, px->out);
}

enum sdx_status sdx_conv_transpose_shape(struct sdx_prepare *px, int input_w,
                                         struct sdx_conv_shape *t)
{
    struct sdx_window w;
    int64_t out[SDX_RANK_MAX];
    const struct sdx_tensor *x = px->in[0];
    if (x->rank > 5)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: %d spatial axes, at most 3 are supported",
                        NAME(px->node), x->rank - 2);
    SDX_TRY(shape_out(px->cx, px->node, x->rank, x->dims, px->in[input_w]->dims, &w, out));
    sdx_window_shape(&w, x->dims + 2, out + 2, t);
    t->batch = x->dims[0];
    t->groups = sdx_ir_attr_int(px->node, "group", 1);
    t->ic = x->dims[1];
    t->oc = out[1];
    return SDX_OK;
}

/* Has every phase of the blocked kernels a form that reads blocks, and taps? */
static bool phases_fit(const struct sdx_conv_shape *t)
{
    int64_t n[3];
    const int64_t total = count_phases(t, n);
    for (int64_t f = 0; f < total; f++) {
        struct sdx_phase phase;
        struct sdx_conv_shape s;
        if (!phase_of(t, n, f, &phase)) return false;
        conv_shape_of(t, &phase, &s);
        if (sdx_conv_block_form(&s) <= SDX_CONV_BLOCK_FIRST) return false; /* few are read plain */
    }
    return total > 0;
}

/* Blocks of channels where all is whole: constant weights of one group or one a channel. */
static void conv_transpose_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    const struct sdx_tensor *x = px->in[0], *y = px->out[0];
    const int64_t least = sdx_block_lanes() / 2;
    struct sdx_conv_shape t = {0};
    if (x->dtype != SDX_F32 || y->dtype != SDX_F32 || !px->in[1]->is_constant || y->count == 0 ||
        !sdx_layout_serves(SDX_LAYOUT_BLOCKED, SDX_F32, y->rank) ||
        sdx_conv_transpose_shape(px, 1, &t) != SDX_OK)
        return;
    if ((t.groups != 1 && !is_depthwise(&t)) || t.oc < least || t.ic < least || !phases_fit(&t))
        return;
    want->in[0] = want->out[0] = SDX_LAYOUT_BLOCKED;
}

/* ---- f64 ---- */

static void add_plane_f64(const struct sdx_conv_shape *t, const double *x, const double *w,
                          double *y)
{
    int64_t pixels = t->in[0] * t->in[1] * t->in[2];
    for (int64_t i = 0; i < pixels; i++) {
        int64_t place[3] = {i / (t->in[1] * t->in[2]), i / t->in[2] % t->in[1], i % t->in[2]};
        for (int64_t a = 0; a < t->kernel[0]; a++)
            for (int64_t b = 0; b < t->kernel[1]; b++)
                for (int64_t c = 0; c < t->kernel[2]; c++) {
                    int64_t k[3] = {a, b, c}, o[3];
                    bool inside = true;
                    for (int d = 0; d < 3; d++) {
                        o[d] = place[d] * t->stride[d] + k[d] * t->dilation[d] - t->pad_begin[d];
                        inside = inside && o[d] >= 0 && o[d] < t->out[d];
                    }
                    if (inside)
                        y[(o[0] * t->out[1] + o[1]) * t->out[2] + o[2]] +=
                            x[i] * w[(a * t->kernel[1] + b) * t->kernel[2] + c];
                }
    }
}

static enum sdx_status run_f64(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_conv_shape *t = &((const struct params *)step->params)->f.t;
    int64_t in_plane = t->in[0] * t->in[1] * t->in[2];
    int64_t out_plane = t->out[0] * t->out[1] * t->out[2];
    int64_t taps = t->kernel[0] * t->kernel[1] * t->kernel[2];
    int64_t n = part / t->oc, oc = part % t->oc, ocg = t->oc / t->groups;
    int64_t icg = t->ic / t->groups, ic = oc / ocg * icg;
    double *y = (double *)step->out[0]->data + part * out_plane;
    double bias = step->in[2] ? ((const double *)step->in[2]->data)[oc] : 0;
    for (int64_t i = 0; i < out_plane; i++)
        y[i] = bias;
    for (int64_t i = 0; i < icg && !sdx_exec_cancelled(x); i++)
        add_plane_f64(t, (const double *)step->in[0]->data + (n * t->ic + ic + i) * in_plane,
                      (const double *)step->in[1]->data + ((ic + i) * ocg + oc % ocg) * taps, y);
    return SDX_OK;
}

static enum sdx_status prepare_conv_transpose(struct sdx_prepare *px)
{
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    const struct sdx_tensor *x = px->in[0];
    struct sdx_tensor *bias = sdx_prepare_has(px, 2) ? px->in[2] : NULL;
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (px->out[0]->count == 0) return SDX_OK;
    SDX_TRY(sdx_conv_transpose_shape(px, 1, &p->f.t));
    if (x->dtype == SDX_F32) return prepare_f32(px, p, bias);
    if (x->dtype != SDX_F64)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s", NAME(px->node),
                        sdx_dtype_short_name(x->dtype));
    struct sdx_tensor *in[] = {px->in[0], px->in[1], bias};
    return sdx_prepare_step_on(px, "conv_transpose_f64", run_f64, p, p->f.t.batch * p->f.t.oc, 0, 3,
                               in, 1, px->out);
}

static const struct sdx_op ops[] = {
    {"ConvTranspose", 1, 0, infer_conv_transpose, KERNEL(prepare_conv_transpose),
     .cost = cost_conv_transpose, .layout = conv_transpose_layout, .packs = 1u << 1,
     .flags = SDX_OP_VIA_F32 | SDX_OP_NARROW_WEIGHTS, .note = "1 to 3 spatial axes"},
};

const struct sdx_op_family sdx_ops_conv_transpose = FAMILY("", ops);
