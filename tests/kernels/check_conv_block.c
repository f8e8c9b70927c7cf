/* SPDX-License-Identifier: Apache-2.0
 * Checks of conv_block.h against f64 sums over the definition: odd shapes, every activation,
 * padding lanes of the input that must not matter and those of the output that must be finite, one
 * image alone and in a batch. */
#include "kernelcheck.h"
#include "kernels/conv_block.h"

static struct sdx_conv_shape shape_of(int64_t batch, int64_t groups, int64_t ic, int64_t oc,
                                      const int64_t in[3], const int64_t kernel[3],
                                      const int64_t stride[3], const int64_t dilation[3],
                                      const int64_t pad[3])
{
    struct sdx_conv_shape s = {.batch = batch, .groups = groups, .ic = ic, .oc = oc};
    for (int i = 0; i < 3; i++) {
        const int64_t span = (kernel[i] - 1) * dilation[i] + 1, room = in[i] + 2 * pad[i];
        s.in[i] = in[i];
        s.kernel[i] = kernel[i];
        s.stride[i] = stride[i];
        s.dilation[i] = dilation[i];
        s.pad_begin[i] = pad[i];
        s.out[i] = room < span ? 0 : (room - span) / stride[i] + 1;
    }
    return s;
}
static struct sdx_conv_shape square(int64_t batch, int64_t groups, int64_t ic, int64_t oc,
                                    int64_t h, int64_t w, int64_t kernel, int64_t stride,
                                    int64_t dilation, int64_t pad)
{
    return shape_of(batch, groups, ic, oc, (int64_t[]){1, h, w}, (int64_t[]){1, kernel, kernel},
                    (int64_t[]){1, stride, stride}, (int64_t[]){1, dilation, dilation},
                    (int64_t[]){0, pad, pad});
}
static int64_t volume(const int64_t n[3])
{
    return n[0] * n[1] * n[2];
}
static int64_t blocks_of(int64_t channels)
{
    return (channels + sdx_block_lanes() - 1) / sdx_block_lanes();
}

struct operands {
    int64_t size_x, size_w, size_y; /* plain */
    int64_t blocked_x, blocked_y;   /* floats in memory */
    float *x, *w, *residual, *bias; /* plain */
    float *bx, *by, *br, *y;        /* blocked; y plain again */
    float *packed;
    void *scratch;
    struct sdx_epilogue epilogue;
};
static float *random_floats(int64_t n, size_t offset)
{
    float *p = guarded((size_t)n * 4, offset);
    for (int64_t i = 0; i < n; i++)
        p[i] = random_float(-1, 1);
    return p;
}
static float *zeros(int64_t n, size_t offset)
{
    float *p = guarded((size_t)n * 4, offset);
    memset(p, 0, (size_t)n * 4);
    return p;
}
/* Writes `value` to the lanes beyond the channels. */
static void fill_padding(float *blocked, int64_t batch, int64_t channels, int64_t pixels,
                         float value)
{
    const int64_t lanes = sdx_block_lanes(), blocks = blocks_of(channels);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t c = channels; c < blocks * lanes; c++)
                blocked[((n * blocks + c / lanes) * pixels + p) * lanes + c % lanes] = value;
}
static struct operands make(const struct sdx_conv_shape *s)
{
    struct operands o;
    const int64_t in = volume(s->in), out = volume(s->out), lanes = sdx_block_lanes();
    memset(&o, 0, sizeof o);
    o.size_x = s->batch * s->ic * in;
    o.size_w = s->oc * (s->ic / s->groups) * volume(s->kernel);
    o.size_y = s->batch * s->oc * out;
    o.blocked_x = s->batch * blocks_of(s->ic) * in * lanes;
    o.blocked_y = s->batch * blocks_of(s->oc) * out * lanes;
    o.x = random_floats(o.size_x, 4);
    o.w = random_floats(o.size_w, 4);
    if (s->half) random_half(s->half, o.w, NULL, o.size_w);
    o.residual = random_floats(o.size_y, 0);
    o.bias = random_floats(s->oc, 4);
    o.bx = zeros(o.blocked_x, 4);
    o.by = zeros(o.blocked_y, 4);
    o.br = zeros(o.blocked_y, 4);
    o.y = zeros(o.size_y, 4);
    sdx_block_from_plain(o.x, o.bx, s->ic, in, 0, s->batch * blocks_of(s->ic), 0, in);
    sdx_block_from_plain(o.residual, o.br, s->oc, out, 0, s->batch * blocks_of(s->oc), 0, out);
    fill_padding(o.bx, s->batch, s->ic, in, 1e30f);
    fill_padding(o.br, s->batch, s->oc, out, 2.0f);
    o.packed = guarded(sdx_conv_block_packed_size(s), 0);
    o.scratch = guarded(sdx_conv_block_scratch(s), 0);
    void *scratch = guarded(sdx_conv_block_pack_scratch(s), 0);
    const sdx_weight_f32 *next = o.w;
    sdx_conv_block_pack(s, o.w, o.packed, scratch, &(struct sdx_pieces){expect_piece, &next});
    const bool tells = sdx_conv_block_form(s) == SDX_CONV_BLOCK_DIRECT;
    expect(next == o.w + (tells ? o.size_w : 0) || next == o.w + o.size_w,
           "pieces of %lld weights end at %lld", (long long)o.size_w, (long long)(next - o.w));
    return o;
}
/* All parts, the last first; the result in plain layout too. */
static void run_parts(const struct sdx_conv_shape *s, struct operands *o)
{
    const bool plain = sdx_conv_block_form(s) == SDX_CONV_BLOCK_FIRST;
    const int64_t together = sdx_conv_block_together(s);
    for (int64_t end = sdx_conv_block_parts(s), some = 1; end > 0; end -= some) {
        some = end < together ? end : 1 + end % together;
        sdx_conv_block_run(s, plain ? o->x : o->bx, o->packed, o->by, &o->epilogue, end - some, end,
                           o->scratch);
    }
    sdx_block_to_plain(o->by, o->y, s->oc, volume(s->out), 0, s->batch * blocks_of(s->oc), 0,
                       volume(s->out));
}

static void convolve(const struct sdx_conv_shape *s, struct operands *o)
{
    for (int64_t i = 0; i < o->blocked_y; i++)
        o->by[i] = NAN;
    run_parts(s, o);
}
/* The same bits where the residual lies in y. */
static void convolve_over(const struct sdx_conv_shape *s, const struct operands *o,
                          const float *wanted)
{
    struct operands over = *o;
    memcpy(over.by, o->br, (size_t)o->blocked_y * sizeof *over.by);
    over.epilogue.residual = over.by;
    run_parts(s, &over);
    expect(memcmp(wanted, over.y, (size_t)over.size_y * sizeof *wanted) == 0,
           "%lld to %lld of %lldx%lld, kernel %lldx%lld: written over the residual it differs",
           (long long)s->ic, (long long)s->oc, (long long)s->in[1], (long long)s->in[2],
           (long long)s->kernel[1], (long long)s->kernel[2]);
}

/* One output before the epilogue, and the sum of magnitudes. at: image, channel, pixel. */
static double exact_at(const struct sdx_conv_shape *s, const struct operands *o, int64_t n,
                       int64_t c, const int64_t pixel[3], double *size)
{
    const int64_t icg = s->ic / s->groups, g = c / (s->oc / s->groups), taps = volume(s->kernel);
    double sum = 0;
    *size = 0;
    for (int64_t tap = 0; tap < taps; tap++) {
        const int64_t k[3] = {tap / s->kernel[2] / s->kernel[1], tap / s->kernel[2] % s->kernel[1],
                              tap % s->kernel[2]};
        int64_t at = 0;
        bool inside = true;
        for (int i = 0; i < 3; i++) {
            const int64_t place = pixel[i] * s->stride[i] + k[i] * s->dilation[i] - s->pad_begin[i];
            inside = inside && place >= 0 && place < s->in[i];
            at = at * s->in[i] + place;
        }
        if (!inside) continue;
        for (int64_t i = 0; i < icg; i++) {
            const double t = (double)o->x[(n * s->ic + g * icg + i) * volume(s->in) + at] *
                             o->w[(c * icg + i) * taps + tap];
            sum += t;
            *size += fabs(t);
        }
    }
    return sum;
}
static double activated(const struct sdx_epilogue *e, double x)
{
    switch (e->act) {
    case SDX_ACT_NONE: return x;
    case SDX_ACT_RELU: return fmax(x, 0);
    case SDX_ACT_CLIP: return fmin((double)e->b, fmax((double)e->a, x));
    case SDX_ACT_LEAKY_RELU: return x < 0 ? x * (double)e->a : x;
    case SDX_ACT_SIGMOID: return 1 / (1 + exp(-x));
    case SDX_ACT_TANH: return tanh(x);
    case SDX_ACT_SILU: return x / (1 + exp(-x));
    case SDX_ACT_HARD_SWISH: return x * fmin(1, fmax(0, x / 6 + 0.5));
    case SDX_ACT_HARD_SIGMOID: return fmin(1, fmax(0, x * (double)e->a + (double)e->b));
    case SDX_ACT_GELU_ERF: return 0.5 * x * (1 + erf(x * 0.70710678118654752));
    case SDX_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    }
    return x;
}
static bool compare(const struct sdx_conv_shape *s, const struct operands *o)
{
    const struct sdx_epilogue *e = &o->epilogue;
    const double k = (double)o->size_w / (double)s->oc;
    const bool is_tiles = sdx_conv_block_form(s) == SDX_CONV_BLOCK_TILES;
    int64_t at = 0;
    for (int64_t n = 0; n < s->batch; n++)
        for (int64_t c = 0; c < s->oc; c++)
            for (int64_t p = 0; p < volume(s->out); p++, at++) {
                const int64_t pixel[3] = {p / s->out[2] / s->out[1], p / s->out[2] % s->out[1],
                                          p % s->out[2]};
                double size, sum = exact_at(s, o, n, c, pixel, &size);
                if (e->bias_row) sum += o->bias[c];
                if (e->residual) sum += o->residual[at];
                sum = activated(e, sum);
                /* of tiles: operands are at most 1 */
                const double most = is_tiles ? k * 0x1p-20 : 2 * k * size * 6e-8;
                if (!expect(fabs(o->y[at] - sum) <= most + 20 * 6e-8,
                            "%lldx%lldx%lldx%lldx%lld to %lld kernel %lldx%lldx%lld stride "
                            "%lld groups %lld pad %lld act %d: at %lld,%lld,%lld %.9g, expected "
                            "%.9g",
                            (long long)s->batch, (long long)s->ic, (long long)s->in[0],
                            (long long)s->in[1], (long long)s->in[2], (long long)s->oc,
                            (long long)s->kernel[0], (long long)s->kernel[1],
                            (long long)s->kernel[2], (long long)s->stride[2], (long long)s->groups,
                            (long long)s->pad_begin[2], (int)e->act, (long long)n, (long long)c,
                            (long long)p, o->y[at], sum))
                    return false;
            }
    for (int64_t i = 0; i < o->blocked_y; i++)
        if (!expect(isfinite(o->by[i]), "%lld to %lld: element %lld of y is %g", (long long)s->ic,
                    (long long)s->oc, (long long)i, o->by[i]))
            return false;
    return true;
}
/* The same bits from other padding lanes, and for the last image alone. */
static void repeat(const struct sdx_conv_shape *s, struct operands *o)
{
    float *first = guarded((size_t)o->size_y * 4, 0);
    memcpy(first, o->y, (size_t)o->size_y * 4);
    fill_padding(o->bx, s->batch, s->ic, volume(s->in), -3e29f);
    convolve(s, o);
    expect(memcmp(first, o->y, (size_t)o->size_y * 4) == 0,
           "%lld to %lld: padding lanes of the input matter", (long long)s->ic, (long long)s->oc);
    if (o->epilogue.residual && sdx_conv_block_form(s) != SDX_CONV_BLOCK_GROUP)
        convolve_over(s, o, first);
    if (s->batch == 1) return;
    struct sdx_conv_shape alone = *s;
    struct operands last = *o;
    const int64_t skip = s->batch - 1;
    alone.batch = 1;
    last.x += o->size_x / s->batch * skip;
    last.bx += o->blocked_x / s->batch * skip;
    last.by += o->blocked_y / s->batch * skip;
    last.y += o->size_y / s->batch * skip;
    last.blocked_y /= s->batch;
    if (last.epilogue.residual) last.epilogue.residual += last.blocked_y * skip;
    last.scratch = guarded(sdx_conv_block_scratch(&alone), 0);
    convolve(&alone, &last);
    expect(memcmp(first, o->y, (size_t)o->size_y * 4) == 0,
           "%lld to %lld: an image alone differs from itself in a batch", (long long)s->ic,
           (long long)s->oc);
}
static bool is_winograd(const struct sdx_conv_shape *s)
{
    const enum sdx_conv_block_form form = sdx_conv_block_form(s);
    return form >= SDX_CONV_BLOCK_WINOGRAD_2 && form <= SDX_CONV_BLOCK_WINOGRAD_LINE;
}
/* Is it one of those that Winograd serves in pieces, which check_conv_block_winograd.c checks? */
static bool is_in_pieces(const struct sdx_conv_shape *s)
{
    return (is_winograd(s) || sdx_conv_block_form(s) == SDX_CONV_BLOCK_SPANS) &&
           !((s->kernel[1] == 3 || s->kernel[1] == 1) && (s->kernel[2] == 3 || s->kernel[2] == 1));
}
static void check_shape(struct sdx_conv_shape s)
{
    if (volume(s.out) > 0 && is_in_pieces(&s)) s.winograd = -1;
    if (volume(s.out) == 0) {
        expect(sdx_conv_block_form(&s) == SDX_CONV_BLOCK_NONE, "an empty output is served");
        return;
    }
    if (!expect(sdx_conv_block_form(&s) != SDX_CONV_BLOCK_NONE, "%lld to %lld: not served",
                (long long)s.ic, (long long)s.oc))
        return;
    struct operands o = make(&s);
    const unsigned how = random_bits() >> 8;
    if (how & 1) o.epilogue.bias_row = o.bias;
    if (how & 2) o.epilogue.residual = o.br;
    o.epilogue.act = (enum sdx_act)((how >> 2) % (SDX_ACT_GELU_TANH + 1));
    o.epilogue.a = o.epilogue.act == SDX_ACT_CLIP ? -0.5f : 0.25f;
    o.epilogue.b = 0.75f;
    convolve(&s, &o);
    if (compare(&s, &o)) repeat(&s, &o);
    guards_intact();
    guards_release();
}

/* 16-bit weights give the bits that the same weights as f32 give; Winograd's within its bound. */
static void check_half(struct sdx_conv_shape s, enum sdx_half half)
{
    struct operands o = make(&s);
    const enum sdx_conv_block_form form = sdx_conv_block_form(&s);
    float *wanted = guarded((size_t)o.size_y * 4, 0);
    double worst = 0, peak = 0;
    random_half(half, o.w, NULL, o.size_w);
    sdx_conv_block_pack(&s, o.w, o.packed, NULL, NULL);
    convolve(&s, &o);
    memcpy(wanted, o.y, (size_t)o.size_y * 4);
    s.half = half;
    expect(sdx_conv_block_form(&s) == form, "%lld to %lld: another form", (long long)s.ic,
           (long long)s.oc);
    o.packed = guarded(sdx_conv_block_packed_size(&s), 0);
    o.scratch = guarded(sdx_conv_block_scratch(&s), 0);
    sdx_conv_block_pack(&s, o.w, o.packed, NULL, NULL);
    convolve(&s, &o);
    for (int64_t i = 0; i < o.size_y; i++) {
        worst = fmax(worst, fabs((double)o.y[i] - wanted[i]));
        peak = fmax(peak, fabs((double)wanted[i]));
    }
    expect(worst <= (is_winograd(&s) ? 3e-4 * fmax(peak, 1) : 0),
           "%lld to %lld of %lldx%lld kernel %lld, form %d of 16 bits: %g off, peak %g",
           (long long)s.ic, (long long)s.oc, (long long)s.in[1], (long long)s.in[2],
           (long long)s.kernel[2], (int)form, worst, peak);
    repeat(&s, &o);
    guards_intact();
    guards_release();
}
void check_conv_block_half(void)
{
    const int64_t lanes = sdx_block_lanes();
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const enum sdx_half half = bf16 ? SDX_HALF_BF16 : SDX_HALF_F16;
        for (int64_t kernel = 1; kernel <= 5; kernel += 2)
            for (int64_t size = 5; size <= 13; size += 4)
                for (int64_t turn = 0; turn < 4; turn++) {
                    const int64_t ic = random_int(5, 4 * lanes), oc = random_int(1, 7 * lanes);
                    check_half(square(2, 1, ic, oc, size, size + 2, kernel, 1 + turn % 2, 1, 1),
                               half);
                }
        check_half(square(2, 2, 2 * lanes, 4 * lanes, 9, 9, 3, 1, 1, 1), half);
        check_half(square(1, 1, 600, 13, 9, 9, 3, 1, 12, 12), half); /* several passes */
        check_half(square(1, 1, 1700, 200, 4, 3, 1, 1, 1, 0), half);
        check_half(square(1, 1, 3, 16, 64, 61, 7, 2, 1, 3), half);
        check_half(square(2, 24, 24, 24, 9, 9, 3, 1, 1, 1), half);
        check_half(square(2, 12, 12, 48, 9, 9, 3, 1, 1, 1), half);
    }
}

/* Kernels, strides, pads and channels around the width of a block and of a panel. */
static void check_small_shapes(void)
{
    const int64_t lanes = sdx_block_lanes();
    for (int64_t kernel = 1; kernel <= 5; kernel++)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int64_t pad = -1; pad <= 2; pad++)
                for (int64_t size = 1; size <= 13; size += 4) {
                    const int64_t ic = random_int(1, 3 * lanes), oc = random_int(1, 7 * lanes);
                    check_shape(square(1, 1, ic, oc, size, size + 2, kernel, stride, 1, pad));
                    check_shape(square(2, 1, ic, lanes, size + 1, size, kernel, stride, 2, pad));
                    check_shape(square(1, 1, 1 + size / 4, oc, size + 8, size, kernel, stride,
                                       1 + (pad & 1), pad));
                    check_shape(
                        square(2, 2, 2 * lanes, 4 * lanes, size, size, kernel, stride, 1, pad));
                }
}
/* Images that are so small that several go together, in equal shares and not, with pixels that see
 * all of the kernel, some of it and nothing. */
static void check_small_images(void)
{
    const int64_t lanes = sdx_block_lanes();
    for (int64_t size = 1; size <= 9; size += 2)
        for (int64_t batch = 3; batch <= 40; batch += 9 - size / 2) {
            const int64_t ic = random_int(3, 5 * lanes), oc = random_int(1, 9 * lanes);
            check_shape(square(batch, 1, ic, oc, size, size + batch % 2, 1, 1, 1, 0));
            check_shape(square(batch, 1, ic, oc, size, size + 1, 3, 1 + batch % 2, 1, 1));
            check_shape(square(batch, 1, ic, oc, size, size, 3, 1, 2, 3));
            check_shape(square(batch, 2, 4 * lanes, 2 * lanes, size, size, 3, 1, 1, 1));
        }
    check_shape(square(30, 1, 1200, 40, 2, 3, 1, 1, 1, 0)); /* several passes */
}
static void check_other_axes(void)
{
    const int64_t lanes = sdx_block_lanes(), one[3] = {1, 1, 1};
    for (int64_t size = 1; size <= 9; size += 2) {
        const int64_t line[3] = {1, 1, 40 * size}, kernel[3] = {1, 1, size};
        const int64_t step[3] = {1, 1, 1 + size % 3}, pad[3] = {0, 0, size / 2};
        check_shape(shape_of(2, 1, 5 * size, 9 * size, line, kernel, step, one, pad));
        const int64_t box[3] = {size, 4, 5}, cube[3] = {3, 2, 3}, steps[3] = {1, 1, 2};
        const int64_t wide[3] = {2, 1, 1}, pads[3] = {2, 0, 1};
        check_shape(shape_of(2, 1, 2 * size, lanes + 3, box, cube, steps, wide, pads));
        check_shape(shape_of(1, 3, 3 * lanes, 6 * lanes, box, cube, wide, one, pads));
        check_shape(shape_of(1, 1, lanes + size, 11, box, one, one, one, (int64_t[]){0, 0, 0}));
    }
}
/* Several outputs of each channel are served as one of each is. */
static void check_multiplied(void)
{
    for (int64_t times = 2; times <= 32; times += 1 + (times > 4) * 3)
        for (int64_t kernel = 1; kernel <= 7; kernel += 2) {
            const int64_t groups = 2 + 3 * kernel;
            const struct sdx_conv_shape s =
                square(1 + kernel % 4 / 2, groups, groups, groups * times, 12, 9 + times, kernel,
                       1 + times % 2, 1, kernel / 2);
            expect(sdx_conv_block_form(&s) == SDX_CONV_BLOCK_DEPTHWISE, "%lld outputs of a channel",
                   (long long)times);
            check_shape(s);
        }
}
/* Groups of one block of outputs: lines that are copied, that are read in place but for their ends,
 * and with all their ends beside the image. */
static void check_groups(void)
{
    const int64_t lanes = sdx_block_lanes(), one[3] = {1, 1, 1};
    const bool served = sdx_kernel_tables()->block.f32_group_row != NULL;
    for (int64_t width = 5; width <= 100; width += 1 + width / 9)
        for (int64_t stride = 1; stride <= 2; stride++)
            for (int64_t pad = -1; pad <= 3; pad++) {
                const int64_t groups = 2 + width % 3, blocks = 1 + width % 2;
                const int64_t in[3] = {1, 3 + width % 5, width}, kernel[3] = {1, 1 + width % 4, 3};
                const int64_t steps[3] = {1, 1 + width % 2, stride}, pads[3] = {0, pad, pad};
                const struct sdx_conv_shape s =
                    shape_of(1 + width % 2, groups, groups * blocks * lanes, groups * lanes, in,
                             kernel, steps, one, pads);
                if (served && s.out[1] > 0 && s.out[2] >= 5)
                    expect(sdx_conv_block_form(&s) == SDX_CONV_BLOCK_GROUP,
                           "groups of a block are not served: %lld wide", (long long)s.out[2]);
                check_shape(s);
                /* groups that share a block, the last one not full */
                for (int64_t few = 2; few < lanes; few *= 2) {
                    const int64_t many = 1 + (width + few) % (2 * lanes / few);
                    const struct sdx_conv_shape few_of =
                        shape_of(s.batch, 1 + many, (1 + many) * few, (1 + many) * few, in, kernel,
                                 steps, one, pads);
                    if (served && s.out[1] > 0 && s.out[2] >= 5)
                        expect(sdx_conv_block_form(&few_of) == SDX_CONV_BLOCK_GROUP,
                               "groups of %lld channels are not served", (long long)few);
                    if (sdx_conv_block_form(&few_of) != SDX_CONV_BLOCK_NONE) check_shape(few_of);
                }
            }
    check_shape(square(2, 9, 9 * lanes, 9 * lanes, 64, 30, 3, 1, 1, 1)); /* parts */
    check_shape(square(1, 2, 2 * lanes, 2 * lanes, 90, 150, 3, 2, 1, 1));
}
/* Groups of one and a half blocks and more, which share blocks; and of two, by Winograd. */
static void check_spans(void)
{
    const int64_t half = sdx_block_lanes() / 2;
    for (int64_t halves = 3; halves <= 7; halves++)
        for (int64_t groups = 2; groups <= 5; groups++)
            for (int64_t stride = 1; stride <= 2; stride++) {
                const int64_t channels = groups * halves * half, size = 3 + 5 * stride + groups;
                struct sdx_conv_shape s = square(1 + halves % 2, groups, channels, channels, size,
                                                 size + 1, 3, stride, 1, 1);
                s.half = groups == 3 ? SDX_HALF_F16 : SDX_HALF_NONE;
                if (halves % 2)
                    expect(sdx_conv_block_form(&s) == SDX_CONV_BLOCK_SPANS,
                           "groups of %lld channels are not served", (long long)(halves * half));
                check_shape(s);
                s.winograd = sdx_conv_block_winograd(&s); /* as the parts are called */
                check_shape(s);
            }
    check_shape(square(1, 3, 9 * half, 12 * half, 11, 9, 3, 1, 1, 1)); /* more outputs */
    check_shape(square(1, 2, 6 * half, 10 * half, 6, 9, 1, 1, 1, 0));
    struct sdx_conv_shape whole = square(2, 3, 18 * half, 18 * half, 28, 28, 3, 1, 1, 1);
    expect(sdx_kernel_tables()->gemm.f32_tiles || half < 4 ||
               sdx_conv_block_form(&whole) == SDX_CONV_BLOCK_SPANS,
           "groups of three blocks go by Winograd");
    check_shape(whole);
}
/* What a machine with tiles multiplies by them: kernels of one position, and of several. */
static void check_if_tiles(struct sdx_conv_shape s)
{
    s.winograd = 1;
    for (int half = SDX_HALF_NONE; half <= SDX_HALF_BF16; half++) {
        s.half = (enum sdx_half)half;
        if (volume(s.out) >= 32 && sdx_conv_block_form(&s) == SDX_CONV_BLOCK_TILES) check_shape(s);
    }
}
static void check_tiles(void)
{
    const int64_t channels[][2] = {{48, 32}, {70, 45}, {130, 100}, {64, 33}, {1100, 81}};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
        for (int64_t stride = 1; stride <= 2; stride++)
            for (int64_t width = 6; width <= 40; width += 17) {
                check_if_tiles(square(1 + (int64_t)i % 2, 1, channels[i][0], channels[i][1], 13,
                                      width, 1, stride, 1, 0));
                check_if_tiles(square(1, 1, channels[i][0], channels[i][1], 13, width, 3, stride,
                                      1 + width % 3, 1 + width % 3));
            }
    check_if_tiles(square(2, 1, 40, 70, 12, 9, 5, 2, 1, 2));
    check_if_tiles(shape_of(1, 1, 33, 40, (int64_t[]){4, 9, 8}, (int64_t[]){2, 3, 1},
                            (int64_t[]){1, 1, 2}, (int64_t[]){2, 1, 1}, (int64_t[]){1, 2, 0}));
}

void check_conv_block(void)
{
    check_small_shapes();
    check_groups();
    check_spans();
    check_multiplied();
    check_small_images();
    check_other_axes();
    check_tiles();
    check_shape(square(1, 1, 8, 24, 56, 60, 1, 1, 1, 0)); /* several strips */
    check_shape(square(1, 1, 40, 72, 30, 31, 1, 2, 1, 0));
    check_shape(
        square(1, 1, 20, 16, 9, 96, 5, 1, 1, 2)); /* nine rows: cut in three, then in five */
    check_shape(square(1, 1, 40, 20, 33, 33, 3, 1, 12, 12)); /* kernel rows of their own */
    check_shape(square(1, 1, 600, 13, 9, 9, 3, 1, 1, 1));    /* several passes */
    check_shape(square(2, 1, 517, 21, 5, 7, 3, 2, 1, 1));
    check_shape(square(1, 1, 1700, 30, 4, 3, 1, 1, 1, 0));
    check_shape(square(1, 1, 96, 200, 7, 7, 1, 1, 1, 0)); /* channels split */
    check_shape(square(3, 1, 48, 20, 1, 1, 1, 1, 1, 0));  /* one pixel */
    check_shape(square(1, 1, 3, 16, 64, 61, 7, 2, 1, 3));
    check_shape(square(1, 1, 3, 16, 5, 1500, 3, 2, 1, 1)); /* rows cut */
    check_shape(square(1, 1, 24, 8, 4, 1100, 3, 1, 1, 1));
    struct sdx_conv_shape s = square(1, 2, 6, 8, 4, 4, 3, 1, 1, 1);
    expect(sdx_conv_block_form(&s) == SDX_CONV_BLOCK_NONE, "groups of 3 channels are served");
}

void check_conv_block_reorder(void)
{
    const int64_t lanes = sdx_block_lanes();
    for (int64_t channels = 1; channels <= 2 * lanes + 1; channels += 1 + channels / 5)
        for (int64_t pixels = 1; pixels <= 40; pixels++) {
            const int64_t rows = 2 * blocks_of(channels), p0 = random_int(0, pixels - 1);
            const int64_t p1 = random_int(p0, pixels), row = random_int(0, rows);
            float *x = random_floats(2 * channels * pixels, 4);
            float *b = random_floats(rows * pixels * lanes, 4),
                  *back = zeros(2 * channels * pixels, 4);
            sdx_block_from_plain(x, b, channels, pixels, 0, row, 0, pixels);
            sdx_block_from_plain(x, b, channels, pixels, row, rows, 0, p0);
            sdx_block_from_plain(x, b, channels, pixels, row, rows, p0, p1);
            sdx_block_from_plain(x, b, channels, pixels, row, rows, p1, pixels);
            for (int64_t i = 0; i < rows * lanes * pixels; i++) {
                const int64_t n = i / (rows / 2 * lanes * pixels), p = i / lanes % pixels;
                const int64_t c = i / lanes / pixels % (rows / 2) * lanes + i % lanes;
                const float want = c < channels ? x[(n * channels + c) * pixels + p] : 0.0f;
                if (!expect(same_bits(b[i], want), "%lld channels of %lld: element %lld",
                            (long long)channels, (long long)pixels, (long long)i))
                    break;
            }
            fill_padding(b, 2, channels, pixels, 7.0f);
            sdx_block_to_plain(b, back, channels, pixels, row, rows, 0, pixels);
            sdx_block_to_plain(b, back, channels, pixels, 0, row, p0, p1);
            sdx_block_to_plain(b, back, channels, pixels, 0, row, 0, p0);
            sdx_block_to_plain(b, back, channels, pixels, 0, row, p1, pixels);
            expect(memcmp(x, back, (size_t)(2 * channels * pixels) * 4) == 0,
                   "%lld channels of %lld pixels and back", (long long)channels, (long long)pixels);
            guards_intact();
            guards_release();
        }
}

struct timed {
    struct sdx_conv_shape shape;
    struct operands o;
};
static void timed_run(void *arg)
{
    struct timed *t = arg;
    const bool plain = sdx_conv_block_form(&t->shape) == SDX_CONV_BLOCK_FIRST;
    const int64_t parts = sdx_conv_block_parts(&t->shape);
    const int64_t together = sdx_conv_block_together(&t->shape);
    for (int64_t part = 0; part < parts; part += together)
        sdx_conv_block_run(&t->shape, plain ? t->o.x : t->o.bx, t->o.packed, t->o.by,
                           &t->o.epilogue, part, part + together < parts ? part + together : parts,
                           t->o.scratch);
}
static double bench_shapes(enum sdx_half half)
{
    static const int64_t shapes[][6] = {
        /* channels, to, size, kernel, stride, pad */
        {64, 256, 56, 1, 1, 0},   {256, 64, 56, 1, 1, 0},    {256, 128, 56, 1, 1, 0},
        {512, 1024, 14, 1, 1, 0}, {1024, 256, 14, 1, 1, 0},  {512, 2048, 7, 1, 1, 0},
        {256, 512, 56, 1, 2, 0},  {1024, 2048, 14, 1, 2, 0}, {128, 128, 56, 3, 2, 1},
        {512, 512, 14, 3, 2, 1},  {64, 64, 160, 3, 2, 1},    {16, 32, 320, 3, 2, 1},
        {512, 512, 7, 3, 1, 1},   {3, 64, 224, 7, 2, 3},     {3, 16, 640, 3, 2, 1},
        {3, 32, 224, 3, 2, 1},    {16, 96, 112, 1, 1, 0},    {96, 24, 56, 1, 1, 0},
        {160, 960, 7, 1, 1, 0}};
    double total = 0, macs = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const int64_t *n = shapes[i];
        struct timed t = {.shape = square(1, 1, n[0], n[1], n[2], n[2], n[3], n[4], 1, n[5])};
        t.shape.half = half;
        t.o = make(&t.shape);
        t.o.epilogue.bias_row = t.o.bias;
        t.o.epilogue.act = SDX_ACT_RELU;
        const double ns = best_ns(timed_run, &t), work = sdx_conv_macs(&t.shape);
        fprintf(stderr, "  %lldx%lldx%lld kernel %lld to %lld stride %lld: %.1f us, %.1f GFLOP/s\n",
                (long long)n[0], (long long)n[2], (long long)n[2], (long long)n[3], (long long)n[1],
                (long long)n[4], ns / 1000, 2 * work / ns);
        total += ns;
        macs += work;
        guards_release();
    }
    return total / macs;
}
double bench_conv_block(void)
{
    return bench_shapes(SDX_HALF_NONE);
}
double bench_conv_block_half(void)
{
    return bench_shapes(SDX_HALF_F16);
}
struct reorder {
    float *plain, *blocked;
    int64_t channels, pixels;
};
static void reorder_run(void *arg)
{
    const struct reorder *r = arg;
    const int64_t rows = blocks_of(r->channels);
    sdx_block_from_plain(r->plain, r->blocked, r->channels, r->pixels, 0, rows, 0, r->pixels);
    sdx_block_to_plain(r->blocked, r->plain, r->channels, r->pixels, 0, rows, 0, r->pixels);
}
double bench_conv_block_reorder(void)
{
    struct reorder r = {.channels = 64, .pixels = 28 * 28};
    const int64_t n = r.channels * r.pixels;
    r.plain = random_floats(n, 0);
    r.blocked = zeros(n, 0);
    return best_ns(reorder_run, &r) / (double)(2 * n);
}
