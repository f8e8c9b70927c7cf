/* SPDX-License-Identifier: Apache-2.0
 * Checks of conv_block_pair.h: the bits of the two convolutions one after the other, whose values
 * their own checks hold; for parts alone and together, several images, and lanes of the input
 * beyond the channels that must not matter. */
#include "kernelcheck.h"
#include "kernels/conv_block_pair.h"

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
static struct sdx_conv_pair pair_of(int64_t batch, int64_t ic, int64_t oc, int64_t h, int64_t w,
                                    struct window maker, struct window reader)
{
    struct sdx_conv_pair p = {{.batch = batch, .groups = 1, .ic = ic, .oc = oc},
                              {.batch = batch, .groups = oc, .ic = oc, .oc = oc}};
    plane(&p.maker, h, w, maker);
    plane(&p.reader, p.maker.out[1], p.maker.out[2], reader);
    /* whole sums, where the other ways to do a kernel of nine would have other bits */
    p.maker.winograd = -1;
    return p;
}

struct side {
    float *w, *bias;
    void *packed, *scratch;
    struct sdx_epilogue epilogue;
};
struct operands {
    float *x, *between, *y, *paired, *residual;
    int64_t size_y;
    struct side maker, reader;
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
    sdx_conv_block_pack(s, side.w, side.packed);
    return side;
}
static struct operands make(const struct sdx_conv_pair *p, enum sdx_act act)
{
    const int64_t lanes = sdx_block_lanes(), batch = p->maker.batch;
    const int64_t wide = (p->reader.oc + lanes - 1) / lanes * lanes;
    const bool plain = sdx_conv_block_form(&p->maker) == SDX_CONV_BLOCK_FIRST;
    struct operands o = {.maker = make_side(&p->maker, act),
                         .reader = make_side(&p->reader, (enum sdx_act)(act / 2)),
                         .size_y = batch * wide * pixels_of(p->reader.out)};
    o.x = blocked_tensor(batch, p->maker.ic, pixels_of(p->maker.in), plain ? 1 : lanes);
    o.between = guarded((size_t)(batch * wide * pixels_of(p->maker.out)) * 4, 0);
    o.residual = blocked_tensor(batch, p->reader.oc, pixels_of(p->reader.out), lanes);
    o.y = guarded((size_t)o.size_y * 4, 4);
    o.paired = guarded((size_t)o.size_y * 4, 4);
    o.scratch = guarded(sdx_conv_pair_scratch(p), 0);
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
/* `together` parts a call, the last ones first. */
static void run_pair(const struct sdx_conv_pair *p, const struct operands *o, int64_t together)
{
    const struct sdx_conv_side maker = {o->maker.packed, o->maker.epilogue};
    const struct sdx_conv_side reader = {o->reader.packed, o->reader.epilogue};
    for (int64_t end = sdx_conv_pair_parts(p), part; end > 0; end = part) {
        part = end > together ? end - together : 0;
        sdx_conv_pair_run(p, o->x, &maker, &reader, o->paired, part, end, o->scratch);
    }
}
static void check_pair(struct sdx_conv_pair p)
{
    static unsigned turn;
    const enum sdx_act act = (enum sdx_act)(turn++ % (SDX_ACT_GELU_TANH + 1));
    if (!expect(sdx_conv_pair_fits(&p), "%lld to %lld of %lldx%lld does not fit",
                (long long)p.maker.ic, (long long)p.maker.oc, (long long)p.maker.in[1],
                (long long)p.maker.in[2]))
        return;
    struct operands o = make(&p, act);
    if (turn % 2) o.reader.epilogue.residual = o.residual;
    run_alone(&p.maker, o.x, &o.maker, o.between);
    run_alone(&p.reader, o.between, &o.reader, o.y);
    const int64_t parts = sdx_conv_pair_parts(&p), ways[] = {1, 3, parts};
    for (int i = 0; i < 3; i++) {
        for (int64_t k = 0; k < o.size_y; k++)
            o.paired[k] = NAN;
        run_pair(&p, &o, ways[i]);
        expect(memcmp(o.y, o.paired, (size_t)o.size_y * 4) == 0,
               "%lld to %lld of %lldx%lld, kernels %lld and %lld, %lld of %lld parts a call: other "
               "bits than one after the other",
               (long long)p.maker.ic, (long long)p.maker.oc, (long long)p.maker.in[1],
               (long long)p.maker.in[2], (long long)p.maker.kernel[1],
               (long long)p.reader.kernel[1], (long long)ways[i], (long long)parts);
    }
    guards_intact();
    guards_release();
}

static const struct window one = {1, 1, 1, 0}, three = {3, 1, 1, 1}, half = {3, 2, 1, 1};

void check_conv_pair(void)
{
    const struct window readers[] = {three,         half,         {5, 1, 1, 2}, {5, 2, 1, 2},
                                     {7, 1, 1, 3},  {3, 1, 3, 3}, {3, 3, 1, 0}, {1, 2, 1, 0},
                                     {3, 1, 1, -1}, {2, 4, 1, 1}, {3, 2, 1, 2}};
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        check_pair(pair_of(1, 19, 43, 95, 101, one, readers[i]));
        check_pair(pair_of(1, 3, 36, 211, 213, half, readers[i]));
    }
    check_pair(pair_of(3, 16, 96, 80, 81, one, half));
    check_pair(pair_of(2, 2, 33, 131, 129, three, three));
    check_pair(pair_of(1, 20, 300, 57, 57, one, three));
    check_pair(pair_of(1, 24, 1030, 28, 28, one, three));
    check_pair(pair_of(1, 40, 40, 99, 100, (struct window){5, 1, 1, 2}, half));
    struct sdx_conv_pair narrow = pair_of(1, 19, 60, 90, 91, one, three);
    narrow.maker.half = SDX_HALF_F16;
    check_pair(narrow);
    const struct sdx_conv_pair small = pair_of(1, 16, 32, 28, 28, one, three);
    expect(!sdx_conv_pair_fits(&small), "an image that stays in the cache is taken");
    const struct sdx_conv_pair wide = pair_of(1, 16, 32, 9, 20000, one, three);
    expect(!sdx_conv_pair_fits(&wide), "rows of which too few stay in the cache are taken");
    struct sdx_conv_pair many = pair_of(1, 16, 48, 112, 112, one, three);
    many.reader.oc *= 2;
    expect(!sdx_conv_pair_fits(&many), "several filters a channel are taken");
}

struct timed {
    struct sdx_conv_pair pair;
    struct operands o;
};
static void timed_pair(void *arg)
{
    const struct timed *t = arg;
    run_pair(&t->pair, &t->o, sdx_conv_pair_parts(&t->pair));
}
static void timed_alone(void *arg)
{
    const struct timed *t = arg;
    run_alone(&t->pair.maker, t->o.x, &t->o.maker, t->o.between);
    run_alone(&t->pair.reader, t->o.between, &t->o.reader, t->o.y);
}
double bench_conv_pair(void)
{
    const struct sdx_conv_pair pairs[] = {
        pair_of(1, 3, 32, 224, 224, half, three), pair_of(1, 16, 96, 112, 112, one, half),
        pair_of(1, 24, 144, 56, 56, one, three), pair_of(1, 24, 144, 56, 56, one, half),
        pair_of(1, 24, 144, 56, 56, one, (struct window){5, 2, 1, 2})};
    double total = 0, macs = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct timed t = {.pair = pairs[i]};
        if (!sdx_conv_pair_fits(&t.pair)) continue; /* tiles multiply */
        t.o = make(&t.pair, SDX_ACT_CLIP);
        const double ns = best_ns(timed_pair, &t), apart = best_ns(timed_alone, &t);
        const double work = sdx_conv_macs(&t.pair.maker) + sdx_conv_macs(&t.pair.reader);
        fprintf(stderr,
                "  %lld to %lld of %lldx%lld, kernel %lld stride %lld: %.1f us, %.1f GFLOP/s; one "
                "after the other %.1f us\n",
                (long long)t.pair.maker.ic, (long long)t.pair.maker.oc,
                (long long)t.pair.maker.in[1], (long long)t.pair.maker.in[2],
                (long long)t.pair.reader.kernel[1], (long long)t.pair.reader.stride[1], ns / 1000,
                2 * work / ns, apart / 1000);
        total += ns;
        macs += work;
        guards_release();
    }
    return total / (macs > 0 ? macs : 1);
}
