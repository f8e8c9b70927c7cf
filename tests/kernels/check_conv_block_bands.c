/* SPDX-License-Identifier: Apache-2.0
 * Checks of conv_block_bands.h: the bits of the convolutions one after the other, whose values
 * their own checks hold; for parts alone and together, several images, and lanes of the input
 * beyond the channels that must not matter. */
#include "kernelcheck.h"
#include "kernels/conv_block_bands.h"
#include "kernels/pool_block.h"
#include "kernels/tuning.h"

enum { CACHE = 192 << 10 /* block_bytes for which these shapes are made */ };

static void axis(struct sdx_conv_shape *s, int i, int64_t in, int64_t kernel, int64_t stride,
                 int64_t dilation, int64_t pad)
{
    s->in[i] = in;
    s->kernel[i] = kernel;
    s->stride[i] = stride;
    s->dilation[i] = dilation;
    s->pad_begin[i] = pad;
    s->out[i] = (in + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
}
struct window {
    int64_t kernel, stride, dilation, pad;
};
static void plane(struct sdx_conv_shape *s, int64_t h, int64_t w, struct window k)
{
    axis(s, 0, 1, 1, 1, 1, 0);
    axis(s, 1, h, k.kernel, k.stride, k.dilation, k.pad);
    axis(s, 2, w, k.kernel, k.stride, k.dilation, k.pad);
}
/* A direct convolution of `ic` channels to `c` and a depthwise one. */
static struct sdx_conv_bands pair_of(int64_t batch, int64_t ic, int64_t c, int64_t h, int64_t w,
                                     struct window direct, struct window depthwise)
{
    struct sdx_conv_bands p = {.has_direct = true,
                               .direct = {.batch = batch, .groups = 1, .ic = ic, .oc = c},
                               .depthwise = {.batch = batch, .groups = c, .ic = c, .oc = c}};
    plane(&p.direct, h, w, direct);
    plane(&p.depthwise, p.direct.out[1], p.direct.out[2], depthwise);
    /* whole sums, where the other ways to do a kernel of nine would have other bits */
    p.direct.winograd = -1;
    return p;
}
/* And a pointwise one of that to `oc`. */
static struct sdx_conv_bands three_of(struct sdx_conv_bands p, int64_t oc)
{
    p.has_pointwise = true;
    p.pointwise = (struct sdx_conv_shape){
        .batch = p.depthwise.batch, .groups = 1, .ic = p.depthwise.oc, .oc = oc};
    plane(&p.pointwise, p.depthwise.out[1], p.depthwise.out[2], (struct window){1, 1, 1, 0});
    return p;
}
/* With a maximum pool for the depthwise one. */
static struct sdx_conv_bands pooled(struct sdx_conv_bands p)
{
    p.is_pool = true;
    return p;
}
/* Without the first. */
static struct sdx_conv_bands last_of(struct sdx_conv_bands p)
{
    p.has_direct = false;
    return p;
}

struct side {
    float *w, *bias;
    void *packed, *scratch;
    struct sdx_epilogue epilogue;
};
struct operands {
    float *x, *rows, *lines, *y, *in_bands, *residual;
    int64_t size_y;
    struct side direct, depthwise, pointwise;
    void *scratch;
};
static int64_t pixels_of(const int64_t dims[3])
{
    return dims[0] * dims[1] * dims[2];
}
static struct side make_side(const struct sdx_conv_shape *s, enum sdx_act act)
{
    struct side side = {
        .epilogue = {.act = act, .a = act == SDX_ACT_CLIP ? -0.5f : 0.2f, .b = 0.5f}};
    const int64_t size = s->oc * (s->ic / s->groups) * pixels_of(s->kernel);
    side.w = guarded((size_t)size * 4, 4);
    side.bias = guarded((size_t)s->oc * 4, 4);
    side.packed = guarded(sdx_conv_block_packed_size(s), 0);
    side.scratch = guarded(sdx_conv_block_scratch(s), 0);
    for (int64_t i = 0; i < size; i++)
        side.w[i] = random_float(-1, 1);
    if (s->half) random_half(s->half, side.w, NULL, size);
    for (int64_t i = 0; i < s->oc; i++)
        side.bias[i] = random_float(-1, 1);
    side.epilogue.bias_row = side.bias;
    sdx_conv_block_pack(s, side.w, side.packed, NULL, NULL);
    return side;
}
static int64_t floats_of(int64_t batch, int64_t channels, const int64_t dims[3])
{
    const int64_t lanes = sdx_block_lanes();
    return batch * ((channels + lanes - 1) / lanes * lanes) * pixels_of(dims);
}
static const struct sdx_conv_shape *first_of(const struct sdx_conv_bands *p)
{
    return p->has_direct ? &p->direct : &p->depthwise;
}
static const struct sdx_conv_shape *end_of(const struct sdx_conv_bands *p)
{
    return p->has_pointwise ? &p->pointwise : &p->depthwise;
}
static float *floats(int64_t count)
{
    float *at = guarded((size_t)count * 4, 4);
    for (int64_t i = 0; i < count; i++)
        at[i] = NAN;
    return at;
}
static struct operands make(const struct sdx_conv_bands *p, enum sdx_act act)
{
    const struct sdx_conv_shape *first = first_of(p), *end = end_of(p);
    const bool plain = sdx_conv_block_form(first) == SDX_CONV_BLOCK_FIRST;
    struct operands o = {.size_y = floats_of(end->batch, end->oc, end->out)};
    if (!p->is_pool) o.depthwise = make_side(&p->depthwise, (enum sdx_act)(act / 2));
    if (p->has_direct) o.direct = make_side(&p->direct, act);
    if (p->has_pointwise) o.pointwise = make_side(&p->pointwise, (enum sdx_act)(act / 3));
    o.x = blocked_tensor(first->batch, first->ic, pixels_of(first->in),
                         plain ? 1 : sdx_block_lanes());
    o.rows = floats(floats_of(first->batch, p->depthwise.ic, p->depthwise.in));
    o.lines = floats(floats_of(first->batch, p->depthwise.oc, p->depthwise.out));
    o.residual = blocked_tensor(end->batch, end->oc, pixels_of(end->out), sdx_block_lanes());
    o.y = floats(o.size_y);
    o.in_bands = floats(o.size_y);
    o.scratch = guarded(sdx_conv_bands_scratch(p), 0);
    return o;
}
static void run_alone(const struct sdx_conv_shape *s, const float *x, const struct side *side,
                      float *y)
{
    const int64_t most = sdx_conv_block_together(s), parts = sdx_conv_block_parts(s);
    for (int64_t part = 0, end; part < parts; part = end) {
        end = part + most < parts ? part + most : parts;
        sdx_conv_block_run(s, x, side->packed, y, &side->epilogue, part, end, side->scratch);
    }
}
static void run_pool(const struct sdx_conv_shape *s, const float *x, float *y)
{
    struct sdx_pool_block pool;
    memset(&pool, 0, sizeof pool);
    for (int i = 0; i < 3; i++) {
        pool.in[i] = s->in[i];
        pool.out[i] = s->out[i];
        pool.kernel[i] = s->kernel[i];
        pool.stride[i] = s->stride[i];
        pool.dilation[i] = s->dilation[i];
        pool.pad_begin[i] = s->pad_begin[i];
    }
    const int64_t lanes = sdx_block_lanes();
    for (int64_t i = floats_of(s->batch, s->oc, s->out) / lanes / pixels_of(s->out); i > 0; i--) {
        sdx_pool_block_max(&pool, x, y, 0, s->out[1]);
        x += pixels_of(s->in) * lanes;
        y += pixels_of(s->out) * lanes;
    }
}
static void run_in_turn(const struct sdx_conv_bands *p, const struct operands *o)
{
    const float *x = p->has_direct ? o->rows : o->x;
    float *y = p->has_pointwise ? o->lines : o->y;
    if (p->has_direct) run_alone(&p->direct, o->x, &o->direct, o->rows);
    if (p->is_pool)
        run_pool(&p->depthwise, x, y);
    else
        run_alone(&p->depthwise, x, &o->depthwise, y);
    if (p->has_pointwise) run_alone(&p->pointwise, o->lines, &o->pointwise, o->y);
}
static struct sdx_conv_side side_of(const struct side *side)
{
    return (struct sdx_conv_side){side->packed, side->epilogue};
}
/* `together` parts a call, the last ones first. */
static void run_bands(const struct sdx_conv_bands *p, const struct operands *o, int64_t together)
{
    const struct sdx_conv_bands_run run = {o->x, side_of(&o->direct), side_of(&o->depthwise),
                                           side_of(&o->pointwise), o->in_bands};
    for (int64_t end = sdx_conv_bands_parts(p), part; end > 0; end = part) {
        part = end > together ? end - together : 0;
        sdx_conv_bands_run(p, &run, part, end, o->scratch);
    }
}
static void check_bands(struct sdx_conv_bands p)
{
    static unsigned turn;
    const enum sdx_act act = (enum sdx_act)(turn++ % (SDX_ACT_GELU_TANH + 1));
    const struct sdx_conv_shape *first = first_of(&p), *end = end_of(&p);
    if (!sdx_conv_bands_fit(&p)) {
        expect(sdx_kernel_tuning()->block_bytes < CACHE, "%lld to %lld of %lldx%lld do not fit",
               (long long)first->ic, (long long)end->oc, (long long)first->in[1],
               (long long)first->in[2]);
        return;
    }
    struct operands o = make(&p, act);
    struct side *last = p.has_pointwise ? &o.pointwise : &o.depthwise;
    if (turn % 2 && last->packed) last->epilogue.residual = o.residual;
    run_in_turn(&p, &o);
    const int64_t parts = sdx_conv_bands_parts(&p), ways[] = {1, 3, parts};
    for (int i = 0; i < 3; i++) {
        for (int64_t k = 0; k < o.size_y; k++)
            o.in_bands[k] = NAN;
        run_bands(&p, &o, ways[i]);
        expect(memcmp(o.y, o.in_bands, (size_t)o.size_y * 4) == 0,
               "%lld to %lld of %lldx%lld, kernels %lld and %lld, %lld of %lld parts a call: other "
               "bits than one after the other",
               (long long)first->ic, (long long)end->oc, (long long)first->in[1],
               (long long)first->in[2], (long long)first->kernel[1],
               (long long)p.depthwise.kernel[1], (long long)ways[i], (long long)parts);
    }
    guards_intact();
    guards_release();
}

static const struct window one = {1, 1, 1, 0}, three = {3, 1, 1, 1}, half = {3, 2, 1, 1};

void check_conv_bands(void)
{
    const struct window readers[] = {three,         half,         {5, 1, 1, 2}, {5, 2, 1, 2},
                                     {7, 1, 1, 3},  {3, 1, 3, 3}, {3, 3, 1, 0}, {1, 2, 1, 0},
                                     {3, 1, 1, -1}, {2, 4, 1, 1}, {3, 2, 1, 2}};
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        const struct sdx_conv_bands big = pair_of(1, 19, 43, 95, 101, one, readers[i]);
        check_bands(big);
        check_bands(pair_of(1, 3, 36, 211, 213, half, readers[i]));
        const int64_t stride = readers[i].stride;
        const struct sdx_conv_bands more = /* strided far: narrow, as many rows have to stay */
            stride > 2 ? pair_of(7, 19, 23, 60 * stride, 34 * stride, one, readers[i])
                       : pair_of(3, 19, 43, 60 * stride, 45 * stride, one, readers[i]);
        check_bands(three_of(more, 21));
        check_bands(last_of(three_of(more, 33)));
        check_bands(pooled(big));
        check_bands(pooled(three_of(more, 21)));
        check_bands(last_of(pooled(three_of(more, 33))));
    }
    check_bands(pair_of(3, 16, 96, 80, 81, one, half));
    check_bands(pair_of(2, 2, 33, 131, 129, three, three));
    check_bands(pair_of(1, 20, 300, 57, 57, one, three));
    check_bands(pair_of(1, 24, 1030, 28, 28, one, three));
    check_bands(pair_of(1, 40, 40, 99, 100, (struct window){5, 1, 1, 2}, half));
    check_bands(pair_of(40, 16, 64, 14, 15, one, three)); /* all images together are large */
    check_bands(three_of(pair_of(40, 16, 64, 14, 15, one, three), 16));
    check_bands(three_of(pair_of(80, 16, 64, 1, 100, one, three), 16));
    check_bands(three_of(pair_of(1, 3, 32, 224, 224, half, three), 16));
    struct sdx_conv_bands narrow = three_of(pair_of(1, 19, 60, 90, 91, one, three), 19);
    narrow.direct.half = narrow.pointwise.half = SDX_HALF_F16;
    check_bands(narrow);
    const struct sdx_conv_bands small = pair_of(1, 16, 32, 28, 28, one, three);
    expect(!sdx_conv_bands_fit(&small), "an image that stays in the cache is taken");
    const struct sdx_conv_bands wide = pair_of(1, 16, 32, 9, 20000, one, three);
    expect(!sdx_conv_bands_fit(&wide), "rows of which too few stay in the cache are taken");
    const struct sdx_conv_bands long_line = three_of(pair_of(1, 16, 64, 1, 40000, one, three), 16);
    expect(!sdx_conv_bands_fit(&long_line), "a line longer than what stays in the cache is taken");
    const struct sdx_conv_bands lines = three_of(pair_of(3, 16, 64, 1, 2000, one, three), 16);
    expect(!sdx_conv_bands_fit(&lines), "three lines are taken, which two threads share badly");
    struct sdx_conv_bands many = pair_of(1, 16, 48, 112, 112, one, three);
    expect(sdx_conv_bands_fit(&many), "one filter a channel is not taken");
    many.depthwise.oc *= 2;
    expect(!sdx_conv_bands_fit(&many), "several filters a channel are taken");
    struct sdx_conv_bands strided = three_of(pair_of(1, 16, 48, 112, 112, one, three), 16);
    expect(sdx_conv_bands_fit(&strided), "a pointwise convolution is not taken");
    plane(&strided.pointwise, 112, 112, half);
    expect(!sdx_conv_bands_fit(&strided), "a kernel of nine is taken for a pointwise one");
}

struct timed {
    struct sdx_conv_bands bands;
    struct operands o;
};
static void timed_bands(void *arg)
{
    const struct timed *t = arg;
    run_bands(&t->bands, &t->o, sdx_conv_bands_parts(&t->bands));
}
static void timed_in_turn(void *arg)
{
    const struct timed *t = arg;
    run_in_turn(&t->bands, &t->o);
}
double bench_conv_bands(void)
{
    const struct window five = {5, 2, 1, 2};
    const struct sdx_conv_bands bands[] = {
        pair_of(1, 24, 144, 56, 56, one, half),
        pair_of(1, 24, 144, 56, 56, one, five),
        three_of(pair_of(1, 3, 32, 224, 224, half, three), 16),
        three_of(pair_of(1, 16, 96, 112, 112, one, half), 24),
        three_of(pair_of(1, 24, 144, 56, 56, one, three), 24),
        three_of(pair_of(8, 64, 384, 14, 14, one, three), 64),
        last_of(three_of(pair_of(1, 0, 128, 112, 112, one, half), 128))};
    double total = 0, macs = 0;
    for (size_t i = 0; i < sizeof bands / sizeof bands[0]; i++) {
        struct timed t = {.bands = bands[i]};
        const struct sdx_conv_bands *p = &t.bands;
        if (!sdx_conv_bands_fit(p)) continue; /* tiles multiply */
        t.o = make(p, SDX_ACT_CLIP);
        const double ns = best_ns(timed_bands, &t), apart = best_ns(timed_in_turn, &t);
        double work = sdx_conv_macs(&p->depthwise);
        if (p->has_direct) work += sdx_conv_macs(&p->direct);
        if (p->has_pointwise) work += sdx_conv_macs(&p->pointwise);
        fprintf(stderr,
                "  %lld to %lld to %lld of %lldx%lldx%lld, kernel %lld stride %lld: %.1f us, %.1f "
                "GFLOP/s; one after the other %.1f us\n",
                (long long)first_of(p)->ic, (long long)p->depthwise.oc, (long long)end_of(p)->oc,
                (long long)p->depthwise.batch, (long long)first_of(p)->in[1],
                (long long)first_of(p)->in[2], (long long)p->depthwise.kernel[1],
                (long long)p->depthwise.stride[1], ns / 1000, 2 * work / ns, apart / 1000);
        total += ns;
        macs += work;
        guards_release();
    }
    return total / (macs > 0 ? macs : 1);
}
