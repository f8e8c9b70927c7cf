/* SPDX-License-Identifier: Apache-2.0
 * ConvInteger and QLinearConv of one to three spatial axes, on channels-last bytes. For the pass
 * qdq QLinearConv gives floats where the scale of the output is left out, bounds its bytes by
 * "clamp", adds others to them as QLinearAdd does (inputs 10 to 14: its inputs 3 to 7) and looks
 * them up in a table (input 9). */
#include "ops/conv_quant.h"

#include <math.h>

#include "kernels/qconv.h"
#include "kernels/vec.h"
#include "ops/conv_common.h"
#include "ops/layout.h"
#include "ops/product.h"
#include "ops/qlinear.h"
#include "ops/requant.h"
#include "ops/shared.h"
#include "tensor/convert.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

/* Inputs of QLinearConv that the pass qdq gives it. */
enum { TABLE = 9, ADDEND, ADDEND_SCALE, ADDEND_ZERO, SUM_SCALE, SUM_ZERO };

static enum sdx_status infer_conv_integer(struct sdx_infer *ix)
{
    return sdx_conv_infer_of(ix, 0, 1, -1, SDX_I32);
}

static enum sdx_status infer_qlinear_conv(struct sdx_infer *ix)
{
    return sdx_conv_infer_of(ix, 0, 3, sdx_infer_has(ix, 7) ? 8 : -1,
                             sdx_infer_has(ix, 7) ? sdx_infer_dtype(ix, 7) : SDX_F32);
}

static void cost_qlinear_conv(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    sdx_conv_cost_of(ix, 3, cost);
}

/* May the sum be written over what is added? */
static bool sums_in_place(const struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[0], *y = px->out[0];
    struct sdx_qconv q = {.shape = {.groups = sdx_ir_attr_int(px->node, "group", 1)}};
    q.shape.ic = x->dims[1];
    q.shape.oc = y->dims[1];
    return sdx_qconv_sums_in_place(&q);
}

static void layout_conv(struct sdx_prepare *px, struct sdx_layouts *want)
{
    const struct sdx_tensor *x = px->in[0], *y = px->out[0];
    if (sdx_layout_serves(SDX_LAYOUT_LAST, x->dtype, x->rank)) want->in[0] = SDX_LAYOUT_LAST;
    const bool bytes = y->dtype == SDX_U8 || y->dtype == SDX_I8;
    if (!bytes || !sdx_layout_serves(SDX_LAYOUT_LAST, y->dtype, y->rank)) return;
    want->out[0] = SDX_LAYOUT_LAST;
    if (!sdx_prepare_has(px, ADDEND)) return;
    want->in[ADDEND] = SDX_LAYOUT_LAST;
    if (sums_in_place(px)) want->over = SDX_OVER(ADDEND);
}

/* ---- what a run needs beside the operands ---- */

/* Inputs of the step that makes the facts. */
enum { PACKED = SDX_CONV_Q_FACTS, FACT_INPUTS };

/* In a block of memory: this, then arrays of `width` values. */
struct facts {
    int32_t zero_x, zero_y;
    int32_t has_zero_w; /* some are not 0 (less 128 for unsigned weights) */
    int32_t has_bias;   /* of floats */
    int32_t has_large;  /* factors above SDX_QDOT_SMALL */
    int32_t unused[11]; /* to 64 bytes */
};

struct conv_q {
    struct sdx_qconv q;
    int64_t joined;                     /* groups of the node that are one of q's */
    int64_t channels;                   /* after which facts repeat */
    const void *packed, *facts, *steps; /* NULL: inputs of the step */
    struct sdx_qclamp clamp;
    struct sdx_qpair sum; /* with input 5 */
    int dtype_y;          /* i32: the sums; f32: scaled; u8, i8: requantised */
    int64_t width;
};

static const int32_t *array_of(const struct conv_q *p, const struct facts *facts, int n)
{
    return (const int32_t *)(facts + 1) + n * p->width;
}

static int32_t zero_at(const struct sdx_tensor *t, int64_t i)
{
    return t ? (int32_t)sdx_load_i64(t->dtype, t->data, t->count == 1 ? 0 : i) : 0;
}

static float scale_at(const struct sdx_tensor *t, int64_t i)
{
    return t ? (float)sdx_load_f64(t->dtype, t->data, t->count == 1 ? 0 : i) : 1.0f;
}

static size_t facts_size(const struct conv_q *p)
{
    return sizeof(struct facts) + (size_t)(4 * p->width) * sizeof(int32_t);
}

static void fill_facts(const struct conv_q *p, struct sdx_tensor *const *in, const void *packed,
                       void *block)
{
    struct facts *f = block;
    int32_t *start = (int32_t *)(f + 1), *zero_w = start + p->width;
    float *factor = (float *)(zero_w + p->width), *bias = factor + p->width;
    const struct sdx_tensor *b = in[SDX_CONV_Q_BIAS];
    memset(block, 0, facts_size(p));
    f->zero_x = zero_at(in[SDX_CONV_Q_ZERO_X], 0);
    f->zero_y = zero_at(in[SDX_CONV_Q_ZERO_Y], 0);
    for (int64_t c = 0; c < p->q.shape.oc; c++) {
        const int64_t at = sdx_qconv_place_of(&p->q, c), own = c % p->channels;
        zero_w[at] = zero_at(in[SDX_CONV_Q_ZERO_W], own) - (p->q.w_signed ? 0 : 128);
        f->has_zero_w = f->has_zero_w || zero_w[at];
        factor[at] = scale_at(in[SDX_CONV_Q_SCALE_X], 0) * scale_at(in[SDX_CONV_Q_SCALE_W], own) /
                     scale_at(in[SDX_CONV_Q_SCALE_Y], 0);
        f->has_large = f->has_large || !(fabsf(factor[at]) <= SDX_QDOT_SMALL);
    }
    f->has_bias = b && b->dtype == SDX_F32;
    sdx_qconv_start(&p->q, packed, f->zero_x, start);
    for (int64_t c = 0; b && c < p->q.shape.oc; c++) {
        const int64_t at = sdx_qconv_place_of(&p->q, c), own = c % p->channels;
        if (f->has_bias)
            bias[at] = ((const float *)b->data)[own];
        else
            start[at] = (int32_t)((uint32_t)start[at] + ((const uint32_t *)b->data)[own]);
    }
}

static enum sdx_status run_facts(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    const struct conv_q *p = step->params;
    fill_facts(p, step->in, p->packed ? p->packed : step->in[PACKED]->data, step->out[0]->data);
    return SDX_OK;
}

static enum sdx_status run_conv_q(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct conv_q *p = step->params;
    const struct facts *f = p->facts ? p->facts : step->in[2]->data;
    const int32_t shift = p->dtype_y == SDX_I8 ? 128 : 0;
    if (sdx_exec_cancelled(x)) return SDX_OK;
    const struct sdx_qdot_store store = {
        .to = p->dtype_y == SDX_I32   ? SDX_QDOT_SUMS
              : p->dtype_y == SDX_F32 ? SDX_QDOT_FLOATS
                                      : SDX_QDOT_BYTES,
        .y = step->out[0]->data,
        .start = array_of(p, f, 0),
        .zero_w = f->has_zero_w ? array_of(p, f, 1) : NULL,
        .factor = (const float *)array_of(p, f, 2),
        .factors_are_small = !f->has_large,
        .bias = f->has_bias ? (const float *)array_of(p, f, 3) : NULL,
        .zero = f->zero_y + shift,
        .lo = p->clamp.lo + shift,
        .hi = p->clamp.hi + shift,
        .flip = (uint8_t)shift,
        .sum = step->in[5] ? &p->sum : NULL,
        .addend = step->in[5] ? step->in[5]->data : NULL,
        .table = step->in[4] ? step->in[4]->data : NULL,
    };
    sdx_qconv_run(&p->q, step->in[0]->data, f->zero_x, p->packed ? p->packed : step->in[1]->data,
                  p->steps ? p->steps : step->in[3]->data, &store, part, x->part_end, x->scratch);
    return SDX_OK;
}

/* ---- weights ---- */

struct pack_q {
    const struct conv_q *p;
    const struct sdx_conv_q_source *source;
    const uint8_t *weights;
    size_t used; /* by pack_conv_q() */
};

/* Groups of few channels fill a part of a panel's columns, so that some are worked as one. */
static int64_t groups_joined(const struct sdx_qconv *q)
{
    const int64_t groups = q->shape.groups, ocg = q->shape.oc / groups;
    if (sdx_qconv_is_depthwise(q) || ocg == 0 || SDX_QDOT_COLS % ocg) return 1;
    return groups % (SDX_QDOT_COLS / ocg) ? 1 : SDX_QDOT_COLS / ocg;
}
/* Weights of joined groups: zero points, which have no effect, where a channel is another's. */
static void join_weights(const struct conv_q *p, const uint8_t *weights, uint8_t *to)
{
    const struct sdx_conv_shape *s = &p->q.shape;
    const int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    const int64_t all = s->ic / s->groups * taps, own = all / p->joined;
    const int64_t ocg = s->oc / s->groups / p->joined;
    for (int64_t c = 0; c < s->oc; c++, to += all) {
        memset(to, p->q.zero_w[c], (size_t)all);
        memcpy(to + c / ocg % p->joined * own, weights + c * own, (size_t)own);
    }
}

static enum sdx_status pack_conv_q(struct sdx_context *cx, void *dst, void *arg_)
{
    struct pack_q *arg = arg_;
    const struct sdx_conv_shape *s = &arg->p->q.shape;
    if (arg->p->joined == 1 && !arg->source->make) {
        arg->used = sdx_qconv_pack(&arg->p->q, arg->weights, dst);
        return SDX_OK;
    }
    const int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    const size_t size = (size_t)(s->oc * (s->ic / s->groups) * taps);
    uint8_t *weights = sdx_mem_alloc(cx->mem, SDX_MEM_SCRATCH, size);
    if (!weights) return SDX_FAIL_MEMORY(cx);
    if (arg->source->make)
        arg->source->make(arg->source->arg, arg->weights, weights);
    else
        join_weights(arg->p, arg->weights, weights);
    arg->used = sdx_qconv_pack(&arg->p->q, weights, dst);
    sdx_mem_free(cx->mem, weights);
    return SDX_OK;
}

static bool check_conv_q(const void *packed, void *arg_)
{
    const struct pack_q *arg = arg_;
    return sdx_qconv_check(&arg->p->q, packed);
}

/* Weights that are computed: packed for this run. */
static enum sdx_status run_pack_q(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct conv_q *p = step->params;
    struct sdx_qconv q = p->q;
    int32_t *zeros = x->scratch;
    for (int64_t c = 0; c < q.shape.oc; c++)
        zeros[c] = zero_at(step->in[1], c);
    q.zero_w = zeros;
    (void)sdx_qconv_pack(&q, step->in[0]->data, step->out[0]->data);
    sdx_qconv_steps(&q, step->out[0]->data, step->out[1]->data);
    return SDX_OK;
}

/* Weights and their zero points are constant: packed once. */
static enum sdx_status pack_constant_q(struct sdx_prepare *px,
                                       const struct sdx_conv_q_source *source, struct conv_q *p)
{
    const struct sdx_conv_shape *s = &p->q.shape;
    const struct sdx_tensor *zero = source->facts[SDX_CONV_Q_ZERO_W];
    int32_t *zeros = sdx_prepare_alloc(px, (size_t)(s->oc ? s->oc : 1) * sizeof *zeros);
    if (!zeros) return SDX_FAIL_MEMORY(px->cx);
    for (int64_t c = 0; c < s->oc; c++)
        zeros[c] = zero_at(zero, c % p->channels);
    p->q.zero_w = zeros;
    struct pack_q arg = {p, source, px->in[source->w]->data, 0};
    if (p->joined == 1 && !source->make) sdx_qconv_choose(&p->q, arg.weights);
    void *steps = sdx_prepare_alloc(px, sdx_qconv_steps_size(&p->q) + 8);
    if (!steps) return SDX_FAIL_MEMORY(px->cx);
    const int64_t form[] = {
        s->groups,       p->joined,
        s->kernel[0],    s->kernel[1],
        s->kernel[2],    s->dilation[2] == 1,
        p->q.w_signed,   p->q.form,
        source->variant, (int64_t)sdx_hash_bytes(zeros, (size_t)s->oc * sizeof *zeros, 3)};
    const struct sdx_pack wanted = {.key = "conv_q",
                                    .variant = sdx_pack_variant(form, SDX_COUNT_OF(form)),
                                    .size = sdx_qconv_packed_size(&p->q),
                                    .pack = pack_conv_q,
                                    .used = &arg.used,
                                    .check = check_conv_q,
                                    .arg = &arg};
    p->packed = sdx_prepare_pack(px, source->w, &wanted);
    if (!p->packed) return px->cx->error.status;
    sdx_qconv_steps(&p->q, p->packed, steps);
    p->steps = steps;
    return SDX_OK;
}

static struct sdx_tensor *byte_temp(struct sdx_prepare *px, size_t size)
{
    const int64_t dims[] = {(int64_t)size};
    return sdx_prepare_temp(px, SDX_U8, 1, dims);
}

enum sdx_status sdx_conv_q_check(struct sdx_prepare *px, struct sdx_tensor *const *facts,
                                 int64_t channels, int dtype_y)
{
    static const char *const names[] = {"zero point of the input",   "scale of the input",
                                        "zero point of the weights", "scale of the weights",
                                        "zero point of the output",  "scale of the output"};
    const struct sdx_tensor *bias = facts[SDX_CONV_Q_BIAS];
    for (int i = SDX_CONV_Q_ZERO_X; i <= SDX_CONV_Q_SCALE_Y; i++) {
        const bool by_channel = i == SDX_CONV_Q_ZERO_W || i == SDX_CONV_Q_SCALE_W;
        if (!facts[i] || facts[i]->count == 1 || (by_channel && facts[i]->count == channels))
            continue;
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: %s has %lld values, expected %s%lld",
                        NAME(px->node), names[i], (long long)facts[i]->count,
                        by_channel ? "1 or " : "", by_channel ? (long long)channels : 1LL);
    }
    if (bias && (bias->count != channels ||
                 (bias->dtype != SDX_I32 && (bias->dtype != SDX_F32 || dtype_y != SDX_F32))))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: bias must be %lld values of i32",
                        NAME(px->node), (long long)channels);
    return SDX_OK;
}

/* ---- preparation ---- */

struct sdx_tensor *sdx_conv_q_last(struct sdx_prepare *px, struct sdx_tensor *t)
{
    if (t->layout == SDX_LAYOUT_LAST || sdx_layout_is_same(SDX_LAYOUT_LAST, t->rank, t->dims))
        return t;
    struct sdx_tensor *last = sdx_prepare_temp(px, t->dtype, t->rank, t->dims);
    if (last) last->layout = SDX_LAYOUT_LAST;
    return last;
}

/* Facts and packed weights, made now or by steps. temps: packed, facts, steps; NULL: made. */
static enum sdx_status prepare_facts(struct sdx_prepare *px, const struct sdx_conv_q_source *source,
                                     bool is_constant, struct conv_q *p,
                                     struct sdx_tensor *temps[3])
{
    struct sdx_tensor *in[FACT_INPUTS] = {NULL};
    memcpy(in, source->facts, sizeof source->facts);
    if (is_constant) {
        SDX_TRY(pack_constant_q(px, source, p));
    } else {
        p->q.quickly = true;
        struct sdx_tensor *from[] = {px->in[source->w], in[SDX_CONV_Q_ZERO_W]};
        struct sdx_tensor *to[] = {byte_temp(px, sdx_qconv_packed_size(&p->q)),
                                   byte_temp(px, sdx_qconv_steps_size(&p->q))};
        if (!to[0] || !to[1]) return SDX_FAIL_MEMORY(px->cx);
        temps[0] = in[PACKED] = to[0];
        temps[2] = to[1];
        SDX_TRY(sdx_prepare_step_on(px, "conv_q_pack", run_pack_q, p, 1,
                                    (size_t)p->q.shape.oc * sizeof(int32_t), 2, from, 2, to));
    }
    for (int i = 0; i < PACKED; i++)
        is_constant = is_constant && (!in[i] || in[i]->is_constant);
    if (is_constant) {
        void *block = sdx_prepare_alloc(px, facts_size(p));
        if (!block) return SDX_FAIL_MEMORY(px->cx);
        fill_facts(p, in, p->packed, block);
        p->facts = block;
        return SDX_OK;
    }
    temps[1] = byte_temp(px, facts_size(p));
    if (!temps[1]) return SDX_FAIL_MEMORY(px->cx);
    return sdx_prepare_step_on(px, "conv_q_facts", run_facts, p, 1, 0, FACT_INPUTS, in, 1,
                               &temps[1]);
}

/* A convolution ready to run, with what its packed weights, facts and steps are at each run. */
static enum sdx_status make_conv_q(struct sdx_prepare *px, const struct sdx_conv_q_source *source,
                                   const struct sdx_conv_shape *shape, const struct sdx_tensor *x,
                                   int dtype_y, struct conv_q **made, struct sdx_tensor *temps[3])
{
    const struct sdx_tensor *w = px->in[source->w], *zero = source->facts[SDX_CONV_Q_ZERO_W];
    const bool is_constant = w->is_constant && (!zero || zero->is_constant);
    struct conv_q *p = *made = SDX_PREPARE_NEW(px, struct conv_q);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (source->make && !is_constant)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: weights must be constant",
                        NAME(px->node));
    p->q.shape = *shape;
    SDX_TRY(sdx_qclamp_read(px, &p->clamp));
    p->q.x_signed = x->dtype == SDX_I8;
    p->q.w_signed = w->dtype == SDX_I8;
    p->dtype_y = dtype_y;
    p->joined = is_constant && !source->make ? groups_joined(&p->q) : 1;
    p->channels = source->channels;
    p->q.shape.groups /= p->joined;
    p->width = sdx_qconv_width(&p->q);
    SDX_TRY(prepare_facts(px, source, is_constant, p, temps));
    p->sum = source->sum;
    return SDX_OK;
}

enum sdx_status sdx_conv_q_add(struct sdx_prepare *px, const struct sdx_conv_q_source *source,
                               const struct sdx_conv_shape *shape, struct sdx_tensor *x,
                               struct sdx_tensor *y)
{
    struct conv_q *p = NULL;
    struct sdx_tensor *temps[3] = {NULL, NULL, NULL};
    SDX_TRY(make_conv_q(px, source, shape, x, y->dtype, &p, temps));
    struct sdx_tensor *operands[] = {x,        temps[0],      temps[1],
                                     temps[2], source->table, source->addend};
    const char *kernel = p->q.form == SDX_QCONV_WINOGRAD ? "conv_q_winograd"
                         : p->q.form == SDX_QCONV_SHORTS ? "conv_q_shorts"
                         : sdx_qconv_is_depthwise(&p->q) ? "conv_q_depthwise"
                                                         : "conv_q";
    SDX_TRY(sdx_prepare_step_on(px, kernel, run_conv_q, p, sdx_qconv_parts(&p->q),
                                sdx_qconv_scratch(&p->q), 6, operands, 1, &y));
    sdx_prepare_together(px, sdx_qconv_together(&p->q));
    return SDX_OK;
}

/* ---- few output channels ---- */

/* A panel has 16 columns, which few channels leave empty. So its columns are channels at several
 * positions of the kernel: a convolution without these positions makes sums of every pixel of the
 * input for each of them, and those that an output is made of are added up. */
enum { FEW_BYTES = 1 << 17 /* of sums at a time */ };

struct few {
    const struct conv_q *p;  /* of the sums; its lengths are of a strip */
    struct sdx_conv_shape s; /* the convolution */
    bool rows;               /* positions of all rows are columns, else those of one */
    int64_t columns, strip;  /* strip: rows of the output */
    size_t steps;            /* bytes of what the convolution of any strip reads */
    const uint8_t *table;
};

static int64_t few_columns(const struct sdx_conv_shape *s, bool rows)
{
    return s->oc * s->kernel[2] * (rows ? s->kernel[1] : 1);
}
/* Instructions for `pixels`: products of 64 bytes, and what adding up takes. */
static double few_cost(const struct sdx_conv_shape *s, int64_t taps, int64_t columns,
                       int64_t pixels)
{
    const int64_t panels = (columns + SDX_QDOT_COLS - 1) / SDX_QDOT_COLS;
    const int64_t sums = columns == s->oc ? 0 : columns; /* to be added up */
    return (double)pixels * (double)(panels * taps * ((s->ic + 3) / 4) + sums);
}
/* Are the columns a gain? *rows: which ones. */
static bool few_fits(const struct sdx_prepare *px, const struct sdx_conv_q_source *source,
                     const struct sdx_conv_shape *s, const struct sdx_tensor *y, bool *rows)
{
    enum { GAIN = 2, PIXELS_LEAST = 256 };
    if (s->groups != 1 || s->in[0] != 1 || s->kernel[0] != 1 || s->out[0] != 1 ||
        s->stride[1] != 1 || s->stride[2] != 1 || s->kernel[2] == 1 || source->addend ||
        source->make || s->out[1] * s->out[2] < PIXELS_LEAST ||
        (y->dtype != SDX_U8 && y->dtype != SDX_I8) || !px->in[source->w]->is_constant)
        return false;
    for (int i = 0; i < SDX_CONV_Q_FACTS; i++)
        if (source->facts[i] && !source->facts[i]->is_constant) return false;
    if (source->table && !source->table->is_constant) return false;
    const int64_t of_one = few_columns(s, false), of_all = few_columns(s, true);
    const double whole = few_cost(s, s->kernel[1] * s->kernel[2], s->oc, s->out[1] * s->out[2]);
    const double one = few_cost(s, s->kernel[1], of_one, s->out[1] * s->in[2]);
    const double all = few_cost(s, 1, of_all, s->in[1] * s->in[2]);
    *rows = all <= one;
    return s->in[2] * (*rows ? of_all : of_one) * (int64_t)sizeof(int32_t) <= FEW_BYTES &&
           GAIN * (*rows ? all : one) < whole;
}

/* Weights [oc, ic, rows, columns] of the kernel as [column][row of them all][oc][ic][row]. */
static void few_weights(const void *arg, const uint8_t *weights, uint8_t *to)
{
    const struct few *f = arg;
    const struct sdx_conv_shape *s = &f->s;
    const int64_t high = s->kernel[1], wide = s->kernel[2], own = f->rows ? 1 : high;
    for (int64_t c = 0; c < f->columns; c++) {
        const int64_t tap = c / s->oc, across = tap % wide, down = tap / wide;
        const uint8_t *from = weights + c % s->oc * s->ic * high * wide + down * wide + across;
        for (int64_t i = 0; i < s->ic; i++)
            for (int64_t k = 0; k < own; k++)
                *to++ = from[(i * high + k) * wide];
    }
}

static int64_t few_strips(const struct few *f) /* of an image */
{
    return (f->s.out[1] + f->strip - 1) / f->strip;
}
/* The convolution of strip i, rows *row0 .. *row1 of the output; *first: the row of the input it
 * begins at. */
static struct sdx_qconv few_strip(const struct few *f, int64_t i, int64_t *row0, int64_t *row1,
                                  int64_t *first)
{
    const struct sdx_conv_shape *s = &f->s;
    const int64_t r0 = *row0 = i * f->strip;
    const int64_t r1 = *row1 = r0 + f->strip < s->out[1] ? r0 + f->strip : s->out[1];
    struct sdx_qconv q = f->p->q;
    const int64_t span = (s->kernel[1] - 1) * s->dilation[1], begin = r0 - s->pad_begin[1];
    const int64_t end = r1 - s->pad_begin[1] + span;
    *first = begin > 0 ? begin : 0;
    const int64_t rows = (end < s->in[1] ? end : s->in[1]) - *first;
    if (f->rows) {
        q.shape.in[2] = q.shape.out[2] = rows > 0 ? rows * s->in[2] : 0;
        return q;
    }
    q.shape.in[1] = rows > 0 ? rows : 0;
    q.shape.out[1] = r1 - r0;
    q.shape.pad_begin[1] = *first - begin;
    return q;
}
static int64_t few_lines(const struct few *f, int64_t rows) /* of sums of so many output rows */
{
    return f->rows ? rows + (f->s.kernel[1] - 1) * f->s.dilation[1] : rows;
}
struct few_room {
    int32_t *sums, *lines, *total; /* pixel by pixel, column by column, and of an output row */
    uint8_t *bytes;
    void *steps, *scratch;
    size_t size;
};
static struct few_room few_room_of(const struct few *f, void *room)
{
    const struct sdx_conv_shape *s = &f->s;
    const size_t sums = (size_t)(few_lines(f, f->strip) * s->in[2] * f->columns);
    struct few_room r = {.sums = room};
    r.lines = r.sums + sums;
    r.total = r.lines + sums;
    r.bytes = (uint8_t *)(r.total + s->out[2]);
    r.size = (2 * sums + (size_t)s->out[2]) * sizeof(int32_t) + (size_t)s->out[2];
    r.size = (r.size + 63) / 64 * 64;
    r.steps = (uint8_t *)room + r.size;
    r.size += (f->steps + 63) / 64 * 64;
    r.scratch = (uint8_t *)room + r.size;
    return r;
}
/* Channel o of output row `row`; the lines begin at row `first` of the input, or of the output. */
static void few_row(const struct few *f, const struct few_room *r, int64_t row, int64_t first,
                    int64_t lines, int64_t o)
{
    const struct sdx_conv_shape *s = &f->s;
    const int64_t high = f->rows ? s->kernel[1] : 1, in = s->in[2], out = s->out[2];
    memset(r->total, 0, (size_t)out * sizeof *r->total);
    for (int64_t k = 0; k < high; k++) {
        const int64_t line =
            f->rows ? row - s->pad_begin[1] + k * s->dilation[1] - first : row - first;
        if (line < 0 || line >= lines) continue;
        for (int64_t j = 0; j < s->kernel[2]; j++) {
            const int64_t at = j * s->dilation[2] - s->pad_begin[2];
            const int64_t begin = at < 0 ? -at : 0, end = in - at < out ? in - at : out;
            const int64_t column = (k * s->kernel[2] + j) * s->oc + o;
            const int32_t *from = r->lines + (line * f->columns + column) * in + begin + at;
            if (end > begin) sdx_qbytes()->add_sums(from, r->total + begin, (size_t)(end - begin));
        }
    }
}

static enum sdx_status run_few(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct few *f = step->params;
    const struct conv_q *p = f->p;
    const struct sdx_conv_shape *s = &f->s;
    const struct facts *facts = p->facts;
    const struct few_room r = few_room_of(f, x->scratch);
    const int64_t strips = few_strips(f), image = part / strips;
    const int32_t *bias = step->in[1] ? step->in[1]->data : NULL;
    int64_t r0, r1, first;
    if (sdx_exec_cancelled(x)) return SDX_OK;
    const struct sdx_qconv q = few_strip(f, part % strips, &r0, &r1, &first);
    const struct sdx_qdot_store store = {.to = SDX_QDOT_SUMS,
                                         .y = r.sums,
                                         .start = array_of(p, facts, 0),
                                         .zero_w =
                                             facts->has_zero_w ? array_of(p, facts, 1) : NULL};
    const uint8_t *from =
        (const uint8_t *)step->in[0]->data + (image * s->in[1] + first) * s->in[2] * s->ic;
    const int64_t pixels = q.shape.out[1] * q.shape.out[2], lines = pixels / s->in[2];
    if (pixels > 0) {
        sdx_qconv_steps(&q, p->packed, r.steps); /* they depend on the rows of a strip */
        sdx_qconv_run(&q, from, facts->zero_x, p->packed, r.steps, &store, 0, sdx_qconv_parts(&q),
                      r.scratch);
    }
    for (int64_t i = 0; i < lines; i++)
        sdx_vec()->b32_transpose(r.sums + i * s->in[2] * f->columns, (size_t)f->columns,
                                 r.lines + i * f->columns * s->in[2], (size_t)s->in[2],
                                 (size_t)s->in[2], (size_t)f->columns);
    uint8_t *y = (uint8_t *)step->out[0]->data + (image * s->out[1] + r0) * s->out[2] * s->oc;
    for (int64_t row = r0; row < r1; row++, y += s->out[2] * s->oc)
        for (int64_t o = 0; o < s->oc; o++) {
            few_row(f, &r, row, f->rows ? first : r0, lines, o);
            const float factor =
                ((const float *)array_of(p, facts, 2))[sdx_qconv_place_of(&p->q, o)];
            sdx_requantize(r.total, s->out[2], bias ? bias[o] : 0, factor, facts->zero_y, p->clamp,
                           r.bytes);
            if (f->table) sdx_qbytes()->lookup(f->table, r.bytes, r.bytes, (size_t)s->out[2]);
            for (int64_t i = 0; i < s->out[2]; i++)
                y[i * s->oc + o] = r.bytes[i];
        }
    return SDX_OK;
}

static enum sdx_status add_few(struct sdx_prepare *px, const struct sdx_conv_q_source *whole,
                               const struct sdx_conv_shape *s, bool rows, struct sdx_tensor *x,
                               struct sdx_tensor *y)
{
    struct few *f = SDX_PREPARE_NEW(px, struct few);
    struct conv_q *p = NULL;
    struct sdx_tensor *temps[3];
    if (!f) return SDX_FAIL_MEMORY(px->cx);
    *f = (struct few){.s = *s, .rows = rows, .columns = few_columns(s, rows)};
    struct sdx_conv_q_source source = *whole;
    struct sdx_tensor *bias = source.facts[SDX_CONV_Q_BIAS];
    const int64_t form[] = {rows, s->oc, s->kernel[1], s->kernel[2]};
    source.facts[SDX_CONV_Q_BIAS] = NULL;
    source.make = few_weights;
    source.arg = f;
    source.variant = sdx_pack_variant(form, SDX_COUNT_OF(form));
    struct sdx_conv_shape sums = *s;
    sums.oc = f->columns;
    sums.out[2] = s->in[2];
    sums.kernel[2] = sums.dilation[2] = 1;
    sums.pad_begin[2] = 0;
    sums.batch = 1;
    if (rows) { /* pixels of all rows at once */
        sums.kernel[1] = sums.dilation[1] = sums.in[1] = sums.out[1] = 1;
        sums.pad_begin[1] = 0;
    }
    SDX_TRY(make_conv_q(px, &source, &sums, x, SDX_I32, &p, temps));
    SDX_ASSERT(p->packed && p->facts);
    f->p = p;
    f->table = whole->table ? whole->table->data : NULL;
    const int64_t line = s->in[2] * f->columns * (int64_t)sizeof(int32_t);
    f->strip = FEW_BYTES / line > 0 ? FEW_BYTES / line : 1;
    const int64_t least = s->out[1] / 4 > 0 ? s->out[1] / 4 : 1; /* several parts */
    if (f->strip > least) f->strip = least;
    const int64_t strips = few_strips(f);
    size_t scratch = 0; /* what a strip needs depends on the padding it sees */
    for (int64_t i = 0, r0, r1, first; i < strips; i++) {
        const struct sdx_qconv q = few_strip(f, i, &r0, &r1, &first);
        const size_t own = sdx_qconv_scratch(&q), steps = sdx_qconv_steps_size(&q);
        scratch = own > scratch ? own : scratch;
        f->steps = steps > f->steps ? steps : f->steps;
    }
    struct sdx_tensor *in[] = {x, bias};
    char none[1];
    return sdx_prepare_step_on(px, "conv_q_few", run_few, f, s->batch * strips,
                               few_room_of(f, none).size + scratch, 2, in, 1, &y);
}

/* Both integer convolutions. */
static enum sdx_status prepare_conv_q(struct sdx_prepare *px, struct sdx_conv_q_source *source)
{
    struct sdx_tensor *y = px->out[0];
    struct sdx_conv_shape shape;
    if (y->count == 0) return SDX_OK;
    SDX_TRY(sdx_conv_shape_of(px, px->in[0], px->in[source->w], y, &shape));
    SDX_TRY(sdx_conv_q_check(px, source->facts, shape.oc, y->dtype));
    source->channels = shape.oc;
    struct sdx_tensor *x = sdx_conv_q_last(px, px->in[0]), *to = sdx_conv_q_last(px, y);
    if (!x || !to) return SDX_FAIL_MEMORY(px->cx);
    if (x != px->in[0]) SDX_TRY(sdx_layout_reorder(px, px->in[0], x));
    if (source->addend) {
        struct sdx_tensor *addend = sdx_conv_q_last(px, source->addend);
        if (!addend) return SDX_FAIL_MEMORY(px->cx);
        if (addend != source->addend) SDX_TRY(sdx_layout_reorder(px, source->addend, addend));
        source->addend = addend;
    }
    bool rows = false;
    if (few_fits(px, source, &shape, y, &rows))
        SDX_TRY(add_few(px, source, &shape, rows, x, to));
    else
        SDX_TRY(sdx_conv_q_add(px, source, &shape, x, to));
    return to != y ? sdx_layout_reorder(px, to, y) : SDX_OK;
}

static struct sdx_tensor *input(struct sdx_prepare *px, int i)
{
    return sdx_prepare_has(px, i) ? px->in[i] : NULL;
}

static enum sdx_status prepare_conv_integer(struct sdx_prepare *px)
{
    struct sdx_conv_q_source source = {.w = 1};
    source.facts[SDX_CONV_Q_ZERO_X] = input(px, 2);
    source.facts[SDX_CONV_Q_ZERO_W] = input(px, 3);
    return prepare_conv_q(px, &source);
}

void sdx_conv_q_facts(struct sdx_prepare *px, struct sdx_conv_q_source *source)
{
    static const int inputs[SDX_CONV_Q_FACTS] = {2, 1, 5, 4, 7, 6, 8};
    source->w = 3;
    for (int i = 0; i < SDX_CONV_Q_FACTS; i++)
        source->facts[i] = input(px, inputs[i]);
}

/* The addend and how it is added. */
static enum sdx_status read_addend(struct sdx_prepare *px, struct sdx_conv_q_source *source)
{
    const struct sdx_tensor *y = px->out[0];
    struct sdx_tensor *const in[8] = {NULL,
                                      input(px, 6),
                                      input(px, 7),
                                      NULL,
                                      input(px, ADDEND_SCALE),
                                      input(px, ADDEND_ZERO),
                                      input(px, SUM_SCALE),
                                      input(px, SUM_ZERO)};
    struct sdx_tensor *addend = source->addend = input(px, ADDEND);
    if (!addend) return SDX_OK;
    for (int i = 0; i < 8; i++)
        if (in[i] && (!in[i]->is_constant || in[i]->count != 1))
            return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED,
                            "%.*s: scales and zero points of the sum must be constants of 1 value",
                            NAME(px->node));
    if (!in[1] || !in[4] || !in[6] || addend->dtype != y->dtype || addend->rank != y->rank ||
        memcmp(addend->dims, y->dims, (size_t)y->rank * sizeof *y->dims))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "%.*s: what is added must have the type and shape of the result",
                        NAME(px->node));
    source->sum = sdx_qlinear_pair(in, false, y->dtype);
    return SDX_OK;
}

static enum sdx_status prepare_qlinear_conv(struct sdx_prepare *px)
{
    struct sdx_conv_q_source source = {.table = input(px, TABLE)};
    sdx_conv_q_facts(px, &source);
    SDX_TRY(read_addend(px, &source));
    return prepare_conv_q(px, &source);
}

static const struct sdx_op ops[] = {
    {"ConvInteger", 10, 0, infer_conv_integer, KERNEL(prepare_conv_integer), .cost = sdx_conv_cost,
     .layout = layout_conv, .note = "1 to 3 spatial axes"},
    {"QLinearConv", 10, 0, infer_qlinear_conv, KERNEL(prepare_qlinear_conv),
     .cost = cost_qlinear_conv, .layout = layout_conv, .note = "1 to 3 spatial axes"},
};

const struct sdx_op_family sdx_ops_conv_quant = FAMILY("", ops);
