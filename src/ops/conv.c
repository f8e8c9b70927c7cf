/* SPDX-License-Identifier: Apache-2.0
 * Conv and FusedConv of one to three spatial axes. f32 goes to the kernels of kernels/conv.h; f64
 * is a plain direct loop. The integers are in conv_quant.c. */
#include "kernels/conv_block.h"
#include "kernels/conv_block_bands.h"
#include "ops/conv_common.h"
#include "ops/conv_tune.h"
#include "ops/conv_deform.h"
#include "ops/layout.h"
#include "ops/pool_blocked.h"
#include "ops/product.h"
#include "ops/shared.h"
#include "ops/window.h"
#include "tensor/convert.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

enum {
    FEW_TAPS = 9,
    GATHER_CHANNELS = 32,      /* of an image whose taps take long to gather */
    SUBSAMPLE_CHANNELS = 1024, /* of the output that pay for bringing pixels together */
    SUBSAMPLE_GRAIN = 1 << 16
};

/* ---- inference ---- */

static enum sdx_status check_channels(struct sdx_context *cx, const struct sdx_ir_node *node,
                                      const int64_t *x, const int64_t *w, int64_t groups)
{
    int64_t want;
    if (groups < 1)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "%.*s: group is %lld, expected at least 1", NAME(node),
                        (long long)groups);
    if (x[1] >= 0 && w[1] >= 0 && (!sdx_mul_i64(w[1], groups, &want) || want != x[1]))
        return SDX_FAIL(cx, SDX_BAD_MODEL,
                        "%.*s: input has %lld channels, but the weights take %lld in each of %lld "
                        "groups",
                        NAME(node), (long long)x[1], (long long)w[1], (long long)groups);
    if (w[0] >= 0 && w[0] % groups != 0)
        return SDX_FAIL(cx, SDX_BAD_MODEL,
                        "%.*s: %lld output channels do not divide into %lld groups", NAME(node),
                        (long long)w[0], (long long)groups);
    return SDX_OK;
}

enum sdx_status sdx_conv_infer_of(struct sdx_infer *ix, int x, int w, int bias, int dtype)
{
    struct sdx_window win;
    sdx_infer_set_dtype(ix, 0, dtype);
    int rank = sdx_infer_rank(ix, x), rank_w = sdx_infer_rank(ix, w);
    const int64_t *dims_x = sdx_infer_dims(ix, x), *dims_w = sdx_infer_dims(ix, w);
    if (rank >= 0 && rank < 3)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: input has rank %d, expected at least 3",
                        NAME(ix->node), rank);
    if (rank >= 0 && rank_w >= 0 && rank != rank_w)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: weight has rank %d, expected %d",
                        NAME(ix->node), rank_w, rank);
    if (rank < 0 || rank_w < 0) return SDX_OK;
    SDX_TRY(
        check_channels(ix->cx, ix->node, dims_x, dims_w, sdx_ir_attr_int(ix->node, "group", 1)));
    SDX_TRY(sdx_window_read(ix->cx, ix->node, rank - 2, dims_w + 2, &win));
    const int64_t *dims_b = bias >= 0 ? sdx_infer_dims(ix, bias) : NULL;
    if (dims_b && (sdx_infer_rank(ix, bias) != 1 ||
                   (dims_b[0] >= 0 && dims_w[0] >= 0 && dims_b[0] != dims_w[0])))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: bias must have one axis of length %lld",
                        NAME(ix->node), (long long)dims_w[0]);
    int64_t *out = sdx_infer_new_dims(ix, 0, rank);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    out[0] = dims_x[0];
    out[1] = dims_w[0];
    return sdx_window_infer(ix, &win, dims_x, out);
}

enum sdx_status sdx_conv_infer(struct sdx_infer *ix)
{
    return sdx_conv_infer_of(ix, 0, 1, 2, sdx_infer_dtype(ix, 0));
}

void sdx_conv_cost_of(const struct sdx_infer *ix, int w, struct sdx_cost *cost)
{
    const int64_t *dims_w = sdx_infer_dims(ix, w), *out = ix->out[0].dims;
    double work = 1;
    for (int i = 0; i < ix->out[0].rank; i++)
        work *= (double)out[i];
    for (int i = 1; dims_w && i < sdx_infer_rank(ix, w); i++)
        work *= (double)dims_w[i];
    cost->macs = work;
    cost->flops = 2 * work;
}

void sdx_conv_cost(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    sdx_conv_cost_of(ix, 1, cost);
}

/* ---- f32 and f64 ---- */

struct conv_f32 {
    struct sdx_conv_shape shape;
    const void *packed; /* NULL: input 1 of the step */
    struct sdx_epilogue epilogue;
};

/* A kernel that is deep alone sees planes as lines: those are the rows of an image then. */
static void fold_planes(struct sdx_conv_shape *s)
{
    for (int i = 1; i < 3; i++)
        if (s->kernel[i] != 1 || s->stride[i] != 1 || s->pad_begin[i] || s->in[i] != s->out[i])
            return;
    if (s->kernel[0] == 1) return;
    s->in[2] *= s->in[1];
    s->out[2] *= s->out[1];
    s->in[1] = s->in[0];
    s->out[1] = s->out[0];
    s->kernel[1] = s->kernel[0];
    s->stride[1] = s->stride[0];
    s->dilation[1] = s->dilation[0];
    s->pad_begin[1] = s->pad_begin[0];
    s->in[0] = s->out[0] = s->kernel[0] = s->stride[0] = s->dilation[0] = 1;
    s->pad_begin[0] = 0;
}

enum sdx_status sdx_conv_shape_of(struct sdx_prepare *px, const struct sdx_tensor *x,
                                  const struct sdx_tensor *w, const struct sdx_tensor *y,
                                  struct sdx_conv_shape *s)
{
    struct sdx_window win;
    int64_t length;
    if (x->rank > 5)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: %d spatial axes, at most 3 are supported",
                        NAME(px->node), x->rank - 2);
    SDX_TRY(sdx_window_read(px->cx, px->node, x->rank - 2, w->dims + 2, &win));
    for (int i = 0; i < win.rank; i++)
        SDX_TRY(sdx_window_length(px->cx, px->node, &win, i, x->dims[i + 2], &length));
    sdx_window_shape(&win, x->dims + 2, y->dims + 2, s);
    s->batch = x->dims[0];
    s->groups = sdx_ir_attr_int(px->node, "group", 1);
    s->ic = x->dims[1];
    s->oc = y->dims[1];
    s->half = w->is_constant ? sdx_half_of(w) : SDX_HALF_NONE;
    fold_planes(s);
    return SDX_OK;
}

int64_t sdx_conv_variant(const struct sdx_conv_shape *s)
{
    const int64_t form[] = {s->groups,
                            s->ic,
                            s->oc,
                            s->kernel[0],
                            s->kernel[1],
                            s->kernel[2],
                            s->half,
                            s->out[0] * s->out[1] * s->out[2] > 1,
                            sdx_conv_f32_is_few(s),
                            s->winograd};
    return sdx_pack_variant(form, SDX_COUNT_OF(form));
}

static enum sdx_status run_conv_f32(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct conv_f32 *p = step->params;
    struct sdx_epilogue e = p->epilogue;
    if (sdx_exec_cancelled(x)) return SDX_OK;
    if (step->in[2]) e.bias_row = step->in[2]->data;
    if (step->in[3]) e.residual = step->in[3]->data;
    sdx_conv_f32_part(&p->shape, step->in[0]->data, p->packed ? p->packed : step->in[1]->data,
                      step->out[0]->data, &e, part, x->scratch);
    return SDX_OK;
}

struct pack_conv {
    struct sdx_prepare *px;
    const struct sdx_conv_shape *shape;
    const struct sdx_tensor *weights;
};

static enum sdx_status pack_conv_f32(struct sdx_context *cx, void *dst, void *arg_)
{
    const struct pack_conv *arg = arg_;
    float *temp;
    const float *weights = sdx_weights_f32(cx, arg->weights, &temp);
    if (!weights) return cx->error.status;
    sdx_conv_f32_pack(arg->shape, weights, dst);
    sdx_mem_free(cx->mem, temp);
    return SDX_OK;
}

static enum sdx_status run_pack_f32(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    const struct conv_f32 *p = step->params;
    sdx_conv_f32_pack(&p->shape, step->in[0]->data, step->out[0]->data);
    return SDX_OK;
}

/* Weights that are fed: a step packs them in each run. NULL: no memory. */
static struct sdx_tensor *pack_fed(struct sdx_prepare *px, const char *kernel, sdx_step_fn *run,
                                   struct conv_f32 *p, size_t size, size_t scratch)
{
    const int64_t dims[] = {(int64_t)size};
    struct sdx_tensor *packed = sdx_prepare_temp(px, SDX_U8, 1, dims);
    if (!packed ||
        sdx_prepare_step_on(px, kernel, run, p, 1, scratch, 1, &px->in[1], 1, &packed) != SDX_OK)
        return NULL;
    return packed;
}

/* ---- blocked channels ---- */

/* in: image, fed weights, bias, residual. */
static struct sdx_conv_side side_of(const struct conv_f32 *p, struct sdx_tensor *const *in)
{
    struct sdx_conv_side side = {p->packed ? p->packed : in[1]->data, p->epilogue};
    if (in[2]) side.epilogue.bias_row = in[2]->data;
    if (in[3]) side.epilogue.residual = in[3]->data;
    return side;
}
static enum sdx_status run_conv_block(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct conv_f32 *p = step->params;
    if (sdx_exec_cancelled(x)) return SDX_OK;
    const struct sdx_conv_side side = side_of(p, step->in);
    sdx_conv_block_run(&p->shape, step->in[0]->data, side.packed, step->out[0]->data,
                       &side.epilogue, part, x->part_end, x->scratch);
    return SDX_OK;
}

/* Operators that read one another. in: the image, then the weights, bias and residual of each
 * convolution, in the order of the shapes. */
struct conv_bands {
    struct sdx_conv_bands shapes;
    const struct conv_f32 *direct, *depthwise, *pointwise; /* NULL: not there, or the pool */
};
enum { OPERANDS = 3 /* of a convolution beside its image */ };

static enum sdx_status run_conv_bands(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct conv_bands *p = step->params;
    struct sdx_tensor *const *in = step->in;
    struct sdx_conv_bands_run run = {.x = in[0]->data, .y = step->out[0]->data};
    if (sdx_exec_cancelled(x)) return SDX_OK;
    if (p->direct) {
        run.direct = side_of(p->direct, in);
        in += OPERANDS;
    }
    if (p->depthwise) {
        run.depthwise = side_of(p->depthwise, in);
        in += OPERANDS;
    }
    if (p->pointwise) run.pointwise = side_of(p->pointwise, in);
    sdx_conv_bands_run(&p->shapes, &run, part, x->part_end, x->scratch);
    return SDX_OK;
}
/* A maximum pool, as the shape of a convolution. */
static struct sdx_conv_shape shape_of_pool(const struct sdx_step *step)
{
    const struct sdx_pool_block *pool = sdx_pool_blocked_max(step);
    const int64_t *dims = step->out[0]->dims;
    struct sdx_conv_shape s = {.batch = dims[0], .groups = dims[1], .ic = dims[1], .oc = dims[1]};
    for (int i = 0; i < 3; i++) {
        s.in[i] = pool->in[i];
        s.out[i] = pool->out[i];
        s.kernel[i] = pool->kernel[i];
        s.stride[i] = pool->stride[i];
        s.dilation[i] = pool->dilation[i];
        s.pad_begin[i] = pool->pad_begin[i];
    }
    return s;
}
/* Adds what a step does behind what is there; false: it does not go there. */
static bool add_band(struct conv_bands *bands, const struct sdx_step *step)
{
    struct sdx_conv_bands *s = &bands->shapes;
    const struct conv_f32 *p = step->params;
    const bool has_middle = bands->depthwise || s->is_pool;
    if (sdx_pool_blocked_max(step)) {
        if (has_middle) return false;
        s->is_pool = true;
        s->depthwise = shape_of_pool(step);
    } else if (step->run != run_conv_block) {
        return false;
    } else if (has_middle) {
        if (bands->pointwise) return false;
        bands->pointwise = p;
        s->pointwise = p->shape;
        s->has_pointwise = true;
    } else if (sdx_conv_block_form(&p->shape) == SDX_CONV_BLOCK_DEPTHWISE) {
        bands->depthwise = p;
        s->depthwise = p->shape;
    } else {
        if (bands->direct) return false;
        bands->direct = p;
        s->direct = p->shape;
        s->has_direct = true;
    }
    return true;
}
enum sdx_status sdx_conv_absorb(struct sdx_context *cx, struct sdx_arena *arena,
                                const struct sdx_step *maker, struct sdx_step *reader, bool *done)
{
    struct conv_bands bands = {0};
    const int32_t more = reader->count_in - 1, count = maker->count_in + more;
    *done = false;
    if (maker->count_in > 1 && maker->in[maker->count_in - 1]) return SDX_OK; /* a residual */
    if (maker->run == run_conv_bands)
        bands = *(const struct conv_bands *)maker->params;
    else if (!add_band(&bands, maker))
        return SDX_OK;
    if (!add_band(&bands, reader) || !sdx_conv_bands_fit(&bands.shapes)) return SDX_OK;
    struct sdx_tensor **in = sdx_arena_array(arena, (size_t)count, sizeof *in);
    struct conv_bands *params = sdx_arena_copy(arena, &bands, sizeof bands);
    if (!in || !params) return SDX_FAIL_MEMORY(cx);
    memcpy(in, maker->in, (size_t)maker->count_in * sizeof *in);
    memcpy(in + maker->count_in, reader->in + 1, (size_t)more * sizeof *in);
    reader->run = run_conv_bands;
    reader->params = params;
    reader->in = in;
    reader->count_in = count;
    reader->parts = sdx_conv_bands_parts(&bands.shapes);
    reader->together = sdx_conv_bands_together(&bands.shapes);
    reader->scratch = sdx_conv_bands_scratch(&bands.shapes);
    reader->kernel = bands.shapes.has_direct && bands.shapes.has_pointwise ? "conv_block_bands_3"
                                                                           : "conv_block_bands_2";
    *done = true;
    return SDX_OK;
}

static enum sdx_status run_pack_block(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct conv_f32 *p = step->params;
    sdx_conv_block_pack(&p->shape, step->in[0]->data, step->out[0]->data, x->scratch, NULL);
    return SDX_OK;
}

static enum sdx_status pack_conv_block(struct sdx_context *cx, void *dst, void *arg_)
{
    const struct pack_conv *arg = arg_;
    float *temp;
    const sdx_weight_f32 *weights = sdx_weights_f32(cx, arg->weights, &temp);
    if (!weights) return cx->error.status;
    const size_t size = sdx_conv_block_pack_scratch(arg->shape);
    void *scratch = size ? sdx_mem_alloc(cx->mem, SDX_MEM_SCRATCH, size) : NULL;
    struct sdx_pieces pieces;
    if (scratch || !size)
        sdx_conv_block_pack(arg->shape, weights, dst, scratch,
                            sdx_drops_pieces(arg->px, arg->weights, &pieces));
    sdx_mem_free(cx->mem, temp);
    sdx_mem_free(cx->mem, scratch);
    return scratch || !size ? SDX_OK : SDX_FAIL_MEMORY(cx);
}

/* Does a convolution read every stride-th pixel, and make enough of it that bringing those
 * together first is worth it? */
static bool wants_subsample(const struct sdx_conv_shape *s)
{
    for (int i = 0; i < 3; i++)
        if (s->kernel[i] != 1 || s->pad_begin[i] != 0 || (s->out[i] - 1) * s->stride[i] >= s->in[i])
            return false;
    return s->stride[2] > 1 && s->oc / s->groups >= SUBSAMPLE_CHANNELS;
}

static enum sdx_status run_subsample(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct conv_f32 *p = step->params;
    const struct sdx_conv_shape *s = &p->shape;
    const int64_t lanes = sdx_block_lanes(), row = s->out[2] * lanes;
    const int64_t rows = step->out[0]->count / row;
    (void)x;
    for (int64_t r = sdx_part_begin(rows, step->parts, part, 1);
         r < sdx_part_begin(rows, step->parts, part + 1, 1); r++) {
        const int64_t h = r % s->out[1], d = r / s->out[1] % s->out[0];
        const int64_t block = r / s->out[1] / s->out[0];
        const int64_t line = (block * s->in[0] + d * s->stride[0]) * s->in[1] + h * s->stride[1];
        const float *from = (const float *)step->in[0]->data + line * s->in[2] * lanes;
        float *to = (float *)step->out[0]->data + r * row;
        for (int64_t w = 0; w < s->out[2]; w++)
            memcpy(to + w * lanes, from + w * s->stride[2] * lanes, (size_t)lanes * sizeof *to);
    }
    return SDX_OK;
}

/* The pixels that are read, one beside the other; *shape becomes that of what is left to do. */
static struct sdx_tensor *subsample(struct sdx_prepare *px, struct sdx_conv_shape *shape)
{
    struct conv_f32 *p = SDX_PREPARE_NEW(px, struct conv_f32);
    const int64_t lanes = sdx_block_lanes(), blocks = (shape->ic + lanes - 1) / lanes;
    const int64_t dims[] = {shape->batch * blocks, shape->out[0] * shape->out[1],
                            shape->out[2] * lanes};
    struct sdx_tensor *pixels = sdx_prepare_temp(px, SDX_F32, 3, dims);
    if (!p || !pixels) return NULL;
    p->shape = *shape;
    if (sdx_prepare_step_on(px, "conv_block_subsample", run_subsample, p,
                            sdx_prepare_parts((double)pixels->count, SUBSAMPLE_GRAIN, dims[0]), 0,
                            1, &px->in[0], 1, &pixels) != SDX_OK)
        return NULL;
    for (int i = 0; i < 3; i++) {
        shape->in[i] = shape->out[i];
        shape->stride[i] = 1;
    }
    return pixels;
}

static enum sdx_status prepare_block(struct sdx_prepare *px, const struct sdx_conv_shape *whole)
{
    static const char *const names[] = {[SDX_CONV_BLOCK_FIRST] = "conv_block_first",
                                        [SDX_CONV_BLOCK_DEPTHWISE] = "conv_block_depthwise",
                                        [SDX_CONV_BLOCK_TILES] = "conv_block_tiles",
                                        [SDX_CONV_BLOCK_WINOGRAD_2] = "conv_block_winograd_2",
                                        [SDX_CONV_BLOCK_WINOGRAD_3] = "conv_block_winograd_3",
                                        [SDX_CONV_BLOCK_WINOGRAD_4] = "conv_block_winograd_4",
                                        [SDX_CONV_BLOCK_WINOGRAD_6] = "conv_block_winograd_6",
                                        [SDX_CONV_BLOCK_WINOGRAD_LINE] = "conv_block_winograd_line",
                                        [SDX_CONV_BLOCK_SPANS] = "conv_block_spans",
                                        [SDX_CONV_BLOCK_GROUP] = "conv_block_group",
                                        [SDX_CONV_BLOCK_DIRECT] = "conv_block_direct"};
    struct sdx_tensor *x = px->in[0];
    struct sdx_conv_shape reduced = *whole, *shape = &reduced;
    if (sdx_conv_block_form(whole) != SDX_CONV_BLOCK_TILES && wants_subsample(whole))
        x = subsample(px, shape);
    const enum sdx_conv_block_form form = sdx_conv_block_form(shape);
    struct conv_f32 *p = SDX_PREPARE_NEW(px, struct conv_f32);
    if (!p || !x) return SDX_FAIL_MEMORY(px->cx);
    p->shape = *shape;
    p->shape.winograd = sdx_conv_block_winograd(shape);
    SDX_TRY(sdx_fused_act(px->cx, px->node, &p->epilogue.act, &p->epilogue.a, &p->epilogue.b));
    const size_t size = sdx_conv_block_packed_size(&p->shape);
    struct sdx_tensor *packed = NULL;
    if (px->in[1]->is_constant) {
        struct pack_conv arg = {px, &p->shape, px->in[1]};
        const struct sdx_pack wanted = {.key = names[form],
                                        .variant = sdx_conv_variant(&p->shape),
                                        .size = size,
                                        .pack = pack_conv_block,
                                        .arg = &arg,
                                        .reads_anywhere = px->in[1]->dtype == SDX_F32};
        p->packed = sdx_prepare_pack(px, 1, &wanted);
        if (!p->packed) return px->cx->error.status;
    } else {
        packed = pack_fed(px, "conv_block_pack", run_pack_block, p, size,
                          sdx_conv_block_pack_scratch(&p->shape));
        if (!packed) return px->cx->error.status;
    }
    struct sdx_tensor *in[] = {x, packed, sdx_prepare_has(px, 2) ? px->in[2] : NULL,
                               sdx_prepare_has(px, 3) ? px->in[3] : NULL};
    SDX_TRY(sdx_prepare_step_on(px, names[form], run_conv_block, p, sdx_conv_block_parts(&p->shape),
                                sdx_conv_block_scratch(&p->shape), 4, in, 1, px->out));
    sdx_prepare_together(px, sdx_conv_block_together(&p->shape));
    sdx_prepare_absorbs(px, sdx_conv_absorb);
    return SDX_OK;
}

/* Of few outputs, does Winograd save more than the empty lanes of a block and the reorders around
 * it cost? */
static bool winograd_pays(const struct sdx_tensor *x, const struct sdx_conv_shape *s,
                          enum sdx_conv_block_form form)
{
    return (form == SDX_CONV_BLOCK_WINOGRAD_4 || form == SDX_CONV_BLOCK_WINOGRAD_6) &&
           4 * s->oc > sdx_block_lanes() &&
           (x->layout == SDX_LAYOUT_BLOCKED ||
            s->ic * s->kernel[1] * s->kernel[2] >= FEW_TAPS * sdx_block_lanes());
}

/* A pointwise convolution to fewer channels, of an image that may lie in rows only? */
static bool is_bottleneck(const struct sdx_conv_shape *s)
{
    return sdx_conv_is_pointwise(s) && 2 * s->oc <= s->ic && sdx_conv_bands_leave(s);
}

void sdx_conv_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    const struct sdx_tensor *x = px->in[0], *w = px->in[1], *y = px->out[0];
    struct sdx_conv_shape shape;
    if (x->dtype != SDX_F32 || y->dtype != SDX_F32 || y->count == 0 ||
        !sdx_layout_serves(SDX_LAYOUT_BLOCKED, SDX_F32, y->rank) ||
        sdx_conv_shape_of(px, x, w, y, &shape) != SDX_OK)
        return;
    enum sdx_conv_block_form form = sdx_conv_block_form(&shape);
    if (form == SDX_CONV_BLOCK_NONE) return;
    const bool as_it_lies = form == SDX_CONV_BLOCK_DEPTHWISE && x->layout == SDX_LAYOUT_BLOCKED;
    if (shape.out[0] * shape.out[1] * shape.out[2] == 1 && !as_it_lies) return;
    /* Few outputs leave most lanes of a block empty: with more kernel positions than it costs to
     * bring blocked channels apart, pixels fill them. */
    const bool is_few = 2 * shape.oc <= sdx_block_lanes() && sdx_conv_f32_is_few(&shape) &&
                        !winograd_pays(x, &shape, form);
    if (is_few && (x->layout == SDX_LAYOUT_PLAIN || shape.kernel[1] * shape.kernel[2] >= FEW_TAPS))
        return;
    /* Few channels would mostly be lanes without meaning; but to bring the taps of many channels of
     * a plain image together for few outputs takes longer still. A product of few channels with few
     * is all reading and writing: half of the lanes is too few then. */
    const bool is_thin = sdx_conv_is_pointwise(&shape) && shape.ic < sdx_block_lanes();
    const int64_t least = is_thin ? sdx_block_lanes() : sdx_block_lanes() / 2;
    const bool gathers = shape.kernel[1] * shape.kernel[2] > 1 && shape.ic >= GATHER_CHANNELS;
    if (x->layout == SDX_LAYOUT_PLAIN &&
        ((shape.oc < least && !gathers) || (shape.ic < least && form != SDX_CONV_BLOCK_FIRST)))
        return;
    if (sdx_prepare_has(px, 3) &&
        !sdx_dims_equal(px->in[3]->dims, px->in[3]->rank, y->dims, y->rank))
        return;
    /* A matrix product as it lies: to reorder both sides would cost more than its own packing, or
     * than weights that are packed anew save. */
    if (!w->is_constant && x->layout == SDX_LAYOUT_PLAIN && sdx_conv_is_pointwise(&shape)) return;
    if (want->leaves && x->layout == SDX_LAYOUT_PLAIN && shape.groups == 1 && !shape.half &&
        form == SDX_CONV_BLOCK_DIRECT && sdx_conv_is_pointwise(&shape))
        return;
    if (sdx_conv_tune(px, &shape)) return;
    form = sdx_conv_block_form(&shape);
    want->in[0] = form == SDX_CONV_BLOCK_FIRST ? SDX_LAYOUT_PLAIN : SDX_LAYOUT_BLOCKED;
    if (sdx_prepare_has(px, 3)) want->in[3] = SDX_LAYOUT_BLOCKED;
    /* Groups add the residual to what they have stored; and rows of a bottleneck's input may be
     * read while others of its output are written (sdx_conv_absorb). */
    const bool reads_rows = form == SDX_CONV_BLOCK_DIRECT && is_bottleneck(&shape);
    if (form != SDX_CONV_BLOCK_GROUP && !reads_rows) want->over = SDX_OVER(3);
    want->out[0] = SDX_LAYOUT_BLOCKED;
}

/* ---- plain ---- */

/* FusedConv's input Z; NULL: there is none. */
static enum sdx_status residual_of(struct sdx_prepare *px, struct sdx_tensor **z)
{
    *z = sdx_prepare_has(px, 3) ? px->in[3] : NULL;
    if (*z && !sdx_dims_equal((*z)->dims, (*z)->rank, px->out[0]->dims, px->out[0]->rank))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: input Z must have the shape of the output",
                        NAME(px->node));
    return SDX_OK;
}

static enum sdx_status prepare_f32(struct sdx_prepare *px, const struct sdx_conv_shape *shape)
{
    struct conv_f32 *p = SDX_PREPARE_NEW(px, struct conv_f32);
    struct sdx_tensor *packed = NULL;
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    p->shape = *shape;
    SDX_TRY(sdx_fused_act(px->cx, px->node, &p->epilogue.act, &p->epilogue.a, &p->epilogue.b));
    size_t size = sdx_conv_f32_packed_size(shape);
    if (px->in[1]->is_constant) {
        struct pack_conv arg = {px, &p->shape, px->in[1]};
        const struct sdx_pack wanted = {.key = "conv_f32",
                                        .variant = sdx_conv_variant(shape),
                                        .size = size,
                                        .pack = pack_conv_f32,
                                        .arg = &arg};
        p->packed = sdx_prepare_pack(px, 1, &wanted);
        if (!p->packed) return px->cx->error.status;
    } else {
        packed = pack_fed(px, "conv_f32_pack", run_pack_f32, p, size, 0);
        if (!packed) return px->cx->error.status;
    }
    struct sdx_tensor *in[] = {px->in[0], packed, sdx_prepare_has(px, 2) ? px->in[2] : NULL, NULL};
    SDX_TRY(residual_of(px, &in[3]));
    return sdx_prepare_step_on(px, "conv_f32", run_conv_f32, p, sdx_conv_f32_parts(shape),
                               sdx_conv_f32_scratch(shape), 4, in, 1, px->out);
}

/* Do constant filters as large as the images see each of these once? Then the images are the rows
 * of a matrix. One image of one pixel stays with the kernel that reads rows of weights. */
static bool is_product(const struct sdx_prepare *px, const struct sdx_conv_shape *s)
{
    for (int i = 0; i < 3; i++)
        if (s->kernel[i] != s->in[i] || s->out[i] != 1 || s->pad_begin[i]) return false;
    return s->groups == 1 && px->in[1]->is_constant &&
           s->batch * s->in[0] * s->in[1] * s->in[2] > 1;
}

static enum sdx_status prepare_product(struct sdx_prepare *px, const struct sdx_conv_shape *s)
{
    struct sdx_product g = {.a = px->in[0], .b = px->in[1], .c = px->out[0], .input_b = 1};
    g.batch = 1;
    g.m = s->batch;
    g.n = s->oc;
    g.k = s->ic * s->in[0] * s->in[1] * s->in[2];
    g.row_a = g.col_b = g.k;
    g.col_a = g.row_b = 1;
    g.alpha = 1;
    g.bias_col = sdx_prepare_has(px, 2) ? px->in[2] : NULL;
    SDX_TRY(residual_of(px, &g.residual));
    SDX_TRY(sdx_fused_act(px->cx, px->node, &g.act, &g.act_a, &g.act_b));
    return sdx_product_prepare(px, &g);
}

/* First and one past the last output along an axis for which tap k falls into the input. */
static void tap_range(const struct sdx_conv_shape *s, int axis, int64_t k, int64_t *begin,
                      int64_t *end)
{
    int64_t at = k * s->dilation[axis] - s->pad_begin[axis], stride = s->stride[axis];
    *begin = at >= 0 ? 0 : (-at + stride - 1) / stride;
    int64_t room = s->in[axis] - at;
    *end = room <= 0 ? 0 : (room + stride - 1) / stride;
    if (*end > s->out[axis]) *end = s->out[axis];
}

/* y plane += x plane * taps of one pair of channels. */
static void add_plane_f64(const struct sdx_conv_shape *s, const double *x, const double *w,
                          double *y)
{
    for (int64_t a = 0; a < s->kernel[0]; a++)
        for (int64_t b = 0; b < s->kernel[1]; b++)
            for (int64_t c = 0; c < s->kernel[2]; c++, w++) {
                int64_t lo[3], hi[3];
                const int64_t k[3] = {a, b, c};
                for (int i = 0; i < 3; i++)
                    tap_range(s, i, k[i], &lo[i], &hi[i]);
                for (int64_t d = lo[0]; d < hi[0]; d++)
                    for (int64_t h = lo[1]; h < hi[1]; h++) {
                        int64_t id = d * s->stride[0] + a * s->dilation[0] - s->pad_begin[0];
                        int64_t ih = h * s->stride[1] + b * s->dilation[1] - s->pad_begin[1];
                        const double *row = x + (id * s->in[1] + ih) * s->in[2];
                        double *out = y + (d * s->out[1] + h) * s->out[2];
                        int64_t shift = c * s->dilation[2] - s->pad_begin[2];
                        for (int64_t j = lo[2]; j < hi[2]; j++)
                            out[j] += *w * row[j * s->stride[2] + shift];
                    }
            }
}

static enum sdx_status run_conv_f64(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_conv_shape *s = step->params;
    int64_t in_plane = s->in[0] * s->in[1] * s->in[2];
    int64_t out_plane = s->out[0] * s->out[1] * s->out[2];
    int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    int64_t icg = s->ic / s->groups, n = part / s->oc, oc = part % s->oc;
    int64_t ic = oc / (s->oc / s->groups) * icg;
    const double *from = (const double *)step->in[0]->data + (n * s->ic + ic) * in_plane;
    const double *w = (const double *)step->in[1]->data + oc * icg * taps;
    double *y = (double *)step->out[0]->data + part * out_plane;
    double bias = step->count_in > 2 && step->in[2] ? ((const double *)step->in[2]->data)[oc] : 0;
    for (int64_t i = 0; i < out_plane; i++)
        y[i] = bias;
    for (int64_t i = 0; i < icg && !sdx_exec_cancelled(x); i++)
        add_plane_f64(s, from + i * in_plane, w + i * taps, y);
    return SDX_OK;
}

enum sdx_status sdx_conv_prepare(struct sdx_prepare *px)
{
    struct sdx_conv_shape shape;
    if (px->out[0]->count == 0) return SDX_OK;
    SDX_TRY(sdx_conv_shape_of(px, px->in[0], px->in[1], px->out[0], &shape));
    if (px->out[0]->layout == SDX_LAYOUT_BLOCKED) {
        (void)sdx_conv_tune(px, &shape);
        return prepare_block(px, &shape);
    }
    if (px->in[0]->dtype == SDX_F32)
        return is_product(px, &shape) ? prepare_product(px, &shape) : prepare_f32(px, &shape);
    if (px->in[0]->dtype != SDX_F64 || sdx_ir_attr(px->node, "activation") ||
        sdx_prepare_has(px, 3))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s", NAME(px->node),
                        sdx_dtype_short_name(px->in[0]->dtype));
    struct sdx_conv_shape *params = SDX_PREPARE_NEW(px, struct sdx_conv_shape);
    if (!params) return SDX_FAIL_MEMORY(px->cx);
    *params = shape;
    return sdx_prepare_step(px, "conv_f64", run_conv_f64, params, shape.batch * shape.oc, 0);
}

static const struct sdx_op ops[] = {
    {"Conv", 1, 0, sdx_conv_infer, KERNEL(sdx_conv_prepare), .cost = sdx_conv_cost,
     .layout = sdx_conv_layout, .packs = 1u << 1,
     .flags = SDX_OP_VIA_F32 | SDX_OP_NARROW_WEIGHTS | SDX_OP_TAKES_BLOCKS,
     .note = "1 to 3 spatial axes"},
    {"DeformConv", 19, 0, sdx_deform_conv_infer, KERNEL(sdx_deform_conv_prepare),
     .cost = sdx_conv_cost, .flags = SDX_OP_VIA_F32, .note = "1 to 3 spatial axes"},
};

const struct sdx_op_family sdx_ops_conv = FAMILY("", ops);
