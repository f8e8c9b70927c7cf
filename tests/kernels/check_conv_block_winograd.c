/* SPDX-License-Identifier: Apache-2.0
 * Checks of conv_block_winograd.h against f64 sums over the definition; the lanes beyond the
 * channels hold large values. */
#include "kernelcheck.h"
#include "kernels/conv_block_winograd.h"
#include "kernels/conv_block_winograd_digits.h"

static struct sdx_conv_shape shape_of(int64_t batch, int64_t ic, int64_t oc, int64_t h, int64_t w,
                                      int64_t pad_h, int64_t pad_w)
{
    return (struct sdx_conv_shape){.batch = batch,
                                   .groups = 1,
                                   .ic = ic,
                                   .oc = oc,
                                   .in = {1, h, w},
                                   .out = {1, h + 2 * pad_h - 2, w + 2 * pad_w - 2},
                                   .kernel = {1, 3, 3},
                                   .stride = {1, 1, 1},
                                   .dilation = {1, 1, 1},
                                   .pad_begin = {0, pad_h, pad_w}};
}
static struct sdx_conv_shape with_stride_2(struct sdx_conv_shape s)
{
    for (int i = 1; i < 3; i++) {
        s.stride[i] = 2;
        s.out[i] = s.out[i] > 0 ? (s.out[i] + 1) / 2 : 0;
    }
    return s;
}

/* Three weights along an axis, 1 or 2. */
static struct sdx_conv_shape line_of(int axis, int64_t dilation, struct sdx_conv_shape s)
{
    const int64_t reach = 2 * dilation + 1;
    for (int i = 1; i < 3; i++) {
        s.kernel[i] = i == axis ? 3 : 1;
        if (i != axis) s.pad_begin[i] = 0;
        s.out[i] = i == axis ? s.in[i] + 2 * s.pad_begin[i] - reach + 1 : s.in[i];
    }
    s.dilation[axis] = dilation;
    return s;
}
/* The same with a kernel of `high` x `wide`, 1 where it was. */
static struct sdx_conv_shape larger(int64_t high, int64_t wide, struct sdx_conv_shape s)
{
    const int64_t sizes[3] = {1, high, wide};
    for (int i = 1; i < 3; i++) {
        s.out[i] -= (sizes[i] - s.kernel[i]) * s.dilation[i];
        s.kernel[i] = sizes[i];
    }
    return s;
}
/* A line, with a stride along its axis. */
static struct sdx_conv_shape apart(int axis, int64_t stride, struct sdx_conv_shape s)
{
    s.stride[axis] = stride;
    s.out[axis] = s.out[axis] > 0 ? (s.out[axis] - 1) / stride + 1 : 0;
    return s;
}
/* The same over `deep` planes. */
static struct sdx_conv_shape planes_of(int64_t deep, int64_t kernel, int64_t stride,
                                       int64_t dilation, int64_t pad, struct sdx_conv_shape s)
{
    s.in[0] = deep;
    s.kernel[0] = kernel;
    s.stride[0] = stride;
    s.dilation[0] = dilation;
    s.pad_begin[0] = pad;
    s.out[0] = (deep + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
    return s;
}
/* Of so many blocks, the last of which may lack three, half of its channels, or one more. */
static int64_t channels(int64_t blocks, int64_t lacking)
{
    const int64_t lanes = sdx_kernel_tables()->block.lanes;
    return blocks * lanes - (lacking == 1 ? 3 : lacking > 2 ? lanes / 2 + lacking - 3 : 0);
}
static int64_t volume(const int64_t n[3])
{
    return n[0] * n[1] * n[2];
}
static int64_t weights_of(const struct sdx_conv_shape *s)
{
    return s->oc * s->ic * volume(s->kernel);
}

struct operands {
    int64_t lanes, size_x, size_y; /* floats of an image, blocked */
    float *x, *w, *y, *residual, *bias, *packed;
    void *scratch;
    struct sdx_epilogue epilogue;
};
/* How the products are had. */
static const struct way {
    size_t (*packed_size)(const struct sdx_conv_shape *s);
    void (*pack)(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights, void *packed,
                 const struct sdx_pieces *pieces);
    int64_t (*parts)(const struct sdx_conv_shape *s);
    int64_t (*together)(const struct sdx_conv_shape *s);
    size_t (*scratch)(const struct sdx_conv_shape *s);
    void (*run)(const struct sdx_conv_shape *s, const float *x, const void *packed, float *y,
                const struct sdx_epilogue *epilogue, int64_t part, int64_t end, void *scratch);
} by_fmas = {sdx_winograd_block_packed_size, sdx_winograd_block_pack,    sdx_winograd_block_parts,
             sdx_winograd_block_together,    sdx_winograd_block_scratch, sdx_winograd_block_run},
  from_digits = {sdx_winograd_digits_packed_size, sdx_winograd_digits_pack,
                 sdx_winograd_digits_parts,       sdx_winograd_digits_together,
                 sdx_winograd_digits_scratch,     sdx_winograd_digits_run};
static const struct way *way_of(const struct sdx_conv_shape *s)
{
    return sdx_winograd_digits_fits(s) ? &from_digits : &by_fmas;
}
static struct operands make(const struct sdx_conv_shape *s)
{
    struct operands o;
    memset(&o, 0, sizeof o);
    o.lanes = sdx_kernel_tables()->block.lanes;
    o.size_x = (s->ic + o.lanes - 1) / o.lanes * volume(s->in) * o.lanes;
    o.size_y = (s->oc + o.lanes - 1) / o.lanes * volume(s->out) * o.lanes;
    o.x = blocked_tensor(s->batch, s->ic, volume(s->in), o.lanes);
    o.residual = blocked_tensor(s->batch, s->oc, volume(s->out), o.lanes);
    o.w = guarded((size_t)weights_of(s) * 4, 4);
    o.bias = guarded((size_t)s->oc * 4, 4);
    o.y = guarded((size_t)(s->batch * o.size_y) * 4, 4);
    o.packed = guarded(way_of(s)->packed_size(s), 0);
    o.scratch = guarded(way_of(s)->scratch(s), 0);
    for (int64_t i = 0; i < weights_of(s); i++)
        o.w[i] = random_float(-1, 1);
    for (int64_t i = 0; i < s->oc; i++)
        o.bias[i] = random_float(-1, 1);
    const sdx_weight_f32 *next = o.w;
    way_of(s)->pack(s, o.w, o.packed, &(struct sdx_pieces){expect_piece, &next});
    expect(next == o.w + weights_of(s) || way_of(s) == &from_digits,
           "pieces of %lld weights end at %lld", (long long)weights_of(s), (long long)(next - o.w));
    return o;
}
static void run(const struct sdx_conv_shape *s, const struct operands *o, const float *x, float *y,
                const struct sdx_epilogue *epilogue)
{
    const struct way *way = way_of(s);
    const int64_t together = way->together(s);
    for (int64_t end = way->parts(s), some = 1; end > 0; end -= some) {
        some = end < together ? end : 1 + end % together;
        way->run(s, x, o->packed, y, epilogue, end - some, end, o->scratch);
    }
}

/* The input's place that kernel position `tap` meets at an output; -1: none. */
static int64_t place_of(const struct sdx_conv_shape *s, int64_t pixel, int64_t tap)
{
    const int64_t o[3] = {pixel / (s->out[1] * s->out[2]), pixel / s->out[2] % s->out[1],
                          pixel % s->out[2]};
    const int64_t k[3] = {tap / (s->kernel[1] * s->kernel[2]), tap / s->kernel[2] % s->kernel[1],
                          tap % s->kernel[2]};
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        const int64_t place = o[i] * s->stride[i] + k[i] * s->dilation[i] - s->pad_begin[i];
        if (place < 0 || place >= s->in[i]) return -1;
        at = at * s->in[i] + place;
    }
    return at;
}
/* Of a pixel's channels, in blocks `apart` floats apart, by weights that are zeros beyond them. */
static double exact_product(const float *x, int64_t blocks, int64_t apart, int64_t lanes,
                            const double *weights)
{
    double parts[4] = {0};
    for (int64_t b = 0; b < blocks; b++, x += apart, weights += lanes)
        for (int64_t i = 0; i < lanes; i += 4)
            for (int j = 0; j < 4; j++)
                parts[j] += weights[i + j] * x[i + j];
    return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}
/* Sums of one image and output channel. */
static void exact_sums(const struct sdx_conv_shape *s, const struct operands *o, int64_t n,
                       int64_t c, double *sums)
{
    const int64_t taps = volume(s->kernel), pixels = volume(s->out);
    const int64_t blocks = (s->ic + o->lanes - 1) / o->lanes, size = blocks * o->lanes;
    double *weights = guarded((size_t)size * sizeof *weights, 0);
    memset(weights, 0, (size_t)size * sizeof *weights);
    memset(sums, 0, (size_t)pixels * sizeof *sums);
    for (int64_t t = 0; t < taps; t++) {
        for (int64_t i = 0; i < s->ic; i++)
            weights[i] = o->w[(c * s->ic + i) * taps + t];
        for (int64_t p = 0; p < pixels; p++) {
            const int64_t place = place_of(s, p, t);
            if (place < 0) continue;
            sums[p] += exact_product(o->x + n * o->size_x + place * o->lanes, blocks,
                                     volume(s->in) * o->lanes, o->lanes, weights);
        }
    }
}
static void check_values(const struct sdx_conv_shape *s, const struct operands *o)
{
    const int form = sdx_winograd_block_fits(s);
    const int64_t pixels = volume(s->out);
    double *sums = guarded((size_t)pixels * sizeof *sums, 0), peak = 0, worst = 0;
    for (int64_t n = 0; n < s->batch; n++)
        for (int64_t c = 0; c < s->oc; c++) {
            exact_sums(s, o, n, c, sums);
            for (int64_t i = 0; i < pixels; i++) {
                const int64_t at =
                    n * o->size_y + (c / o->lanes * pixels + i) * o->lanes + c % o->lanes;
                double sum = sums[i];
                peak = fmax(peak, fabs(sum));
                if (o->epilogue.bias_row) sum += o->bias[c];
                if (o->epilogue.residual) sum += o->residual[at];
                worst = fmax(worst, fabs(o->y[at] - exact_activation(sum, &o->epilogue)));
            }
        }
    /* A curved activation's slope reaches 1.13, and its own error comes on top. */
    const double bound = (form == 6 ? 3e-5 : form >= 4 ? 5e-6 : 2e-6) * fmax(peak, 1);
    expect(
        worst <= (o->epilogue.act == SDX_ACT_NONE ? bound : 1.2 * bound + 4e-7),
        "%lld to %lld of %lldx%lld stride %lld pads %lld,%lld act %d: F(%d) errs by %g of the peak",
        (long long)s->ic, (long long)s->oc, (long long)s->in[1], (long long)s->in[2],
        (long long)s->stride[1], (long long)s->pad_begin[1], (long long)s->pad_begin[2],
        (int)o->epilogue.act, form, worst / peak);
}
/* The form of a machine without tiles, and of one with them. */
static int wanted_form(int64_t without, int64_t with)
{
    return (int)(sdx_kernel_tables()->gemm.f32_tiles ? with : without);
}
/* Against the definition; finite in all lanes; the last image alone has the same bits. Returns the
 * form. */
static int check_shape(struct sdx_conv_shape s, bool plain)
{
    static unsigned turn;
    const int form = sdx_winograd_block_fits(&s);
    if (!form) return 0;
    struct operands o = make(&s);
    const unsigned how = plain ? 0 : turn++;
    o.epilogue.act = (enum sdx_act)(how % (SDX_ACT_GELU_TANH + 1));
    o.epilogue.a = o.epilogue.act == SDX_ACT_CLIP ? -0.5f : 0.2f;
    o.epilogue.b = 0.5f;
    if (how / 11 % 2) o.epilogue.bias_row = o.bias;
    if (how / 22 % 2) o.epilogue.residual = o.residual;
    run(&s, &o, o.x, o.y, &o.epilogue);
    check_values(&s, &o);
    for (int64_t i = 0; i < s.batch * o.size_y; i++)
        if (!expect(isfinite(o.y[i]), "lane %lld is %g", (long long)i, o.y[i])) break;
    struct sdx_conv_shape last = s;
    struct sdx_epilogue e = o.epilogue;
    last.batch = 1;
    float *y = guarded((size_t)o.size_y * 4, 0);
    if (e.residual) { /* written over it */
        memcpy(y, e.residual + o.size_y * (s.batch - 1), (size_t)o.size_y * 4);
        e.residual = y;
    }
    o.scratch = guarded(way_of(&last)->scratch(&last), 0);
    run(&last, &o, o.x + o.size_x * (s.batch - 1), y, &e);
    expect(memcmp(y, o.y + o.size_y * (s.batch - 1), (size_t)o.size_y * 4) == 0,
           "other bits in a batch");
    guards_intact();
    guards_release();
    return form;
}
static void check_stride_2(void)
{
    for (int64_t pad = -1; pad <= 2; pad++)
        for (int64_t size = 3; size <= 34; size += 1 + size / 12)
            for (int64_t wide = 0; wide < 2; wide++) {
                struct sdx_conv_shape s = with_stride_2(
                    shape_of(1 + size % 3, channels(1 + size % 6, size % 4), 3 + 11 * (size % 5),
                             size, 13 + wide * size, pad, 1 - pad));
                if (s.out[1] < 1 || s.out[2] < 1) continue;
                s.winograd = 3;
                expect(check_shape(s, false) == 3, "stride 2 is not taken when it is wanted");
            }
    /* the bound, and what is taken by itself */
    const int64_t sizes[][5] = {{1, 64, 64, 160, 3},  {2, 128, 128, 56, 3}, {1, 256, 256, 28, 3},
                                {1, 512, 512, 14, 0}, {1, 16, 8, 20, 0},    {1, 32, 32, 5, 0}};
    for (int i = 0; i < 6; i++) {
        const int64_t *z = sizes[i];
        const int form =
            check_shape(with_stride_2(shape_of(z[0], z[1], z[2], z[3], z[3], 1, 1)), true);
        expect(form == wanted_form(z[4], 0), "%lld to %lld of %lldx%lld stride 2 takes form %d",
               (long long)z[1], (long long)z[2], (long long)z[3], (long long)z[3], form);
    }
    struct sdx_conv_shape s = with_stride_2(shape_of(1, 64, 64, 80, 80, 1, 1));
    s.winograd = 4;
    expect(sdx_winograd_block_fits(&s) == 0, "tiles of stride 1 are taken for stride 2");
    s.winograd = 0;
    s.stride[2] = 1;
    s.out[2] = 80;
    expect(check_shape(s, true) == wanted_form(4, 0), "two strides are not taken");
}
/* Along an axis; what is not served. */
static void check_lines(void)
{
    for (int64_t pad = -1; pad <= 3; pad++)
        for (int64_t dilation = 1; dilation <= 4; dilation++)
            for (int64_t size = 9; size <= 60; size += 1 + size / 7)
                for (int axis = 1; axis <= 2; axis++) {
                    const int64_t other = 1 + size % 4;
                    struct sdx_conv_shape s = line_of(
                        axis, dilation,
                        shape_of(1 + size % 3, 7 + 5 * (size % 7), 20 + 7 * (size % 5),
                                 axis == 1 ? size : other, axis == 2 ? size : other, pad, pad));
                    if (s.out[axis] < 1) continue;
                    s.winograd = 4;
                    expect(check_shape(s, false) == 4, "a line is not taken when it is wanted");
                }
    /* the bound, and what is taken by itself */
    const int64_t sizes[][7] = {{1, 512, 512, 1, 296, 2, 4}, {2, 80, 384, 1, 300, 1, 4},
                                {1, 384, 384, 8, 8, 1, 4},   {1, 128, 130, 30, 17, 3, 4},
                                {1, 8, 8, 1, 500, 1, 0},     {1, 16, 16, 1, 40, 32, 0}};
    for (int i = 0; i < 6; i++)
        for (int axis = 1; axis <= 2; axis++) {
            const int64_t *z = sizes[i], h = axis == 2 ? z[3] : z[4], w = axis == 2 ? z[4] : z[3];
            const int form = check_shape(
                line_of(axis, z[5], shape_of(z[0], z[1], z[2], h, w, z[5], z[5])), true);
            expect(form == wanted_form(z[6], 0),
                   "%lld to %lld of %lldx%lld along axis %d takes form %d", (long long)z[1],
                   (long long)z[2], (long long)h, (long long)w, axis, form);
        }
    struct sdx_conv_shape s = line_of(2, 1, shape_of(1, 64, 64, 9, 80, 0, 1));
    expect(sdx_winograd_block_fits(&s) == 4, "a line is not taken");
    s.winograd = 6;
    expect(sdx_winograd_block_fits(&s) == 0, "tiles of 6 x 6 are taken for a line");
    s.winograd = 0;
    s.stride[1] = 2;
    s.out[1] = 5;
    expect(sdx_winograd_block_fits(&s) == 0, "lines two apart are taken");
}
/* Three dimensions: each plane, and kernels that are deep. */
static void check_planes(void)
{
    for (int64_t turn = 0; turn < 72; turn++) {
        const int64_t kernel = 1 + turn % 3, dilation = 1 + turn / 3 % 2, pad = turn / 6 % 3;
        const int64_t deep = (kernel - 1) * dilation + 1 + turn % 4, stride = 1 + turn / 18 % 2;
        struct sdx_conv_shape s =
            shape_of(1 + turn % 2, channels(1 + turn % 3, turn % 5), 5 + 9 * (turn % 4),
                     5 + turn % 11, 6 + turn % 7, turn % 2, 1);
        if (turn % 5 == 0) s = with_stride_2(s);
        s.winograd = turn % 5 == 0 ? 3 : turn % 4 == 0 ? 6 : turn % 4 == 1 ? 2 : 4;
        s = planes_of(deep, kernel, stride, dilation, pad, s);
        expect(check_shape(s, false) == s.winograd, "planes are not taken when they are wanted");
    }
    struct sdx_conv_shape s = planes_of(4, 3, 1, 1, 1, shape_of(1, 64, 64, 14, 14, 1, 1));
    expect(sdx_winograd_block_fits(&s) == wanted_form(4, 2), "3 x 3 x 3 is not taken");
    s.ic = 61;
    expect(sdx_winograd_block_fits(&s) != 0, "61 channels are not taken");
    s = planes_of(4, 1, 1, 1, 0, line_of(2, 1, shape_of(1, 64, 64, 9, 80, 0, 1)));
    expect(sdx_winograd_block_fits(&s) == 0, "lines of planes are taken");
}
/* Tiles whose pixels lie a dilation apart. */
static void check_dilated(void)
{
    for (int64_t turn = 0; turn < 60; turn++) {
        const int64_t high = 3 + turn % 2, wide = 3 + turn / 2 % 3, dilation = 2 + turn % 3;
        struct sdx_conv_shape s =
            shape_of(1 + turn % 2, channels(1 + turn % 3, turn % 5), 5 + 9 * (turn % 4),
                     high * dilation + turn % 11, wide * dilation + turn % 9, turn % 7, turn % 5);
        for (int i = 1; i < 3; i++) {
            s.dilation[i] = i == 1 || turn % 4 ? dilation : 1;
            s.out[i] -= 2 * (s.dilation[i] - 1);
        }
        s = larger(high, wide, s);
        if (turn % 7 == 0) s = planes_of(4, 3, 1, 1, 1, s);
        if (s.out[1] < 1 || s.out[2] < 1) continue;
        s.winograd = 2 + 2 * (int)(turn % 3);
        if (winograd_piece(&s) == 2) s.winograd = 4;
        expect(check_shape(s, false) == s.winograd, "dilated, it is not taken when it is wanted");
    }
}
/* Planes with a stride, in pieces of their phases. */
static void check_strided_planes(void)
{
    for (int64_t turn = 0; turn < 90; turn++) {
        const int64_t stride = 2 + turn % 7 % 2;
        const int64_t high = stride + 1 + turn % 4, wide = stride + 1 + turn / 4 % 5;
        struct sdx_conv_shape s =
            shape_of(1 + turn % 2, channels(1 + turn % 3, turn % 5), 5 + 9 * (turn % 4),
                     high + 3 * (turn % 11), wide + 4 * (turn % 9), turn % 4, turn % 3);
        s = apart(1, stride, apart(2, turn % 6 == 5 ? 1 : stride, larger(high, wide, s)));
        if (winograd_is_phased(&s)) continue;
        if (turn % 7 == 0) s = planes_of(4, 3, 1, 1, 1, s);
        if (s.out[1] < 1 || s.out[2] < 1) continue;
        s.winograd = 2 + 2 * (int)(turn % 3);
        if (winograd_piece(&s) == 2) s.winograd = 4;
        expect(check_shape(s, false) == s.winograd, "%lldx%lld with stride %lld is not taken",
               (long long)high, (long long)wide, (long long)stride);
    }
    struct sdx_conv_shape s = larger(5, 5, with_stride_2(shape_of(1, 64, 64, 80, 80, 1, 1)));
    expect(check_shape(s, true) == 4, "5 x 5 with stride 2 is not taken");
    s = larger(4, 4, with_stride_2(shape_of(1, 64, 64, 80, 80, 1, 1)));
    expect(check_shape(s, true) == 4, "4 x 4 with stride 2 is not taken");
    s = larger(2, 2, with_stride_2(shape_of(1, 64, 64, 80, 80, 1, 1)));
    expect(sdx_winograd_block_fits(&s) == 0, "phases of one tap are taken");
}
/* Kernels of more than one piece. */
static void check_pieces(void)
{
    for (int64_t kernel = 2; kernel <= 17; kernel += 1 + kernel / 8)
        for (int64_t turn = 0; turn < 8; turn++) {
            const int axis = 1 + turn % 2;
            const int64_t size = kernel + 3 + 9 * turn, dilation = 1 + turn / 2 % 2;
            struct sdx_conv_shape s = shape_of(
                1 + turn % 3, channels(1 + turn % 3, turn % 5), 12 + 9 * turn, axis == 1 ? size : 3,
                axis == 2 ? size : 3, turn * 3 % (kernel + 2), turn * 3 % (kernel + 2));
            s = larger(axis == 1 ? kernel : 1, axis == 2 ? kernel : 1, line_of(axis, dilation, s));
            if (s.out[axis] < 1) continue;
            s.winograd = 4;
            expect(check_shape(s, false) == 4, "a long line is not taken when it is wanted");
        }
    for (int64_t kernel = 3; kernel <= 19; kernel += 1 + kernel / 9)
        for (int64_t stride = 2; stride <= 5; stride++)
            for (int64_t turn = 0; turn < 4; turn++) {
                const int axis = 1 + (int)(turn + stride) % 2;
                const int64_t size = kernel + 4 + 29 * turn, pad = turn * 3 % (kernel + 2);
                struct sdx_conv_shape s =
                    shape_of(1 + turn % 3, channels(1 + turn % 3, turn % 5), 12 + 9 * turn,
                             axis == 1 ? size : 3, axis == 2 ? size : 3, pad, pad);
                s = larger(axis == 1 ? kernel : 1, axis == 2 ? kernel : 1, line_of(axis, 1, s));
                s = apart(axis, stride, s);
                s.winograd = 4;
                expect(check_shape(s, false) == (kernel > stride ? 4 : 0),
                       "a line of %lld with stride %lld", (long long)kernel, (long long)stride);
            }
    for (int64_t turn = 0; turn < 84; turn++) {
        const int64_t high = 2 + turn % 6, wide = 2 + turn / 6 % 7;
        struct sdx_conv_shape s =
            shape_of(1 + turn % 2, channels(1 + turn % 3, turn % 5), 5 + 9 * (turn % 4),
                     high + turn % 11, wide + turn % 9, turn % 4, turn % 3);
        s = larger(high, wide, s);
        if (turn % 7 == 0) s = planes_of(4, 3, 1, 1, 1, s);
        if (s.out[1] < 1 || s.out[2] < 1) continue;
        s.winograd = 2 + 2 * (int)(turn % 3);
        if (winograd_piece(&s) == 2) s.winograd = 4;
        expect(check_shape(s, false) == s.winograd, "pieces are not taken when they are wanted");
    }
    check_strided_planes();
    /* the bound, and what is taken by itself; kernel: high, wide */
    const int64_t sizes[][8] = {{1, 64, 64, 40, 40, 5, 5, 4},   {1, 48, 64, 35, 35, 5, 5, 6},
                                {2, 64, 192, 13, 13, 7, 7, 4},  {1, 256, 512, 1, 120, 1, 9, 4},
                                {1, 128, 128, 17, 17, 7, 1, 4}, {1, 64, 64, 1, 900, 1, 11, 4},
                                {1, 256, 256, 3, 3, 5, 5, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t *z = sizes[i];
        struct sdx_conv_shape s = shape_of(z[0], z[1], z[2], z[3], z[4], z[5] / 2, z[6] / 2);
        s = larger(z[5], z[6], s);
        const int form = check_shape(s, true);
        expect(form == z[7] || sdx_kernel_tables()->gemm.f32_tiles,
               "%lld to %lld of %lldx%lld, kernel %lldx%lld, takes form %d", (long long)z[1],
               (long long)z[2], (long long)z[3], (long long)z[4], (long long)z[5], (long long)z[6],
               form);
    }
    struct sdx_conv_shape s = larger(5, 5, shape_of(1, 64, 64, 128, 128, 2, 2));
    expect(sdx_winograd_block_fits(&s) == wanted_form(6, 4), "F(6) in pieces is not taken");
    s = larger(5, 5, shape_of(1, 64, 64, 36, 36, 2, 2)); /* U in each run, of an only block */
    s.winograd = 6;
    check_shape(s, true);
    s = larger(5, 5, shape_of(1, 128, 64, 41, 41, 2, 2)); /* and of two */
    s.winograd = 4;
    check_shape(s, true);
    s = apart(2, 2, line_of(2, 1, shape_of(1, 512, 512, 1, 799, 0, 0)));
    expect(check_shape(s, true) == wanted_form(4, 0), "a long line with stride 2 is not taken");
    s.dilation[2] = 2;
    s.out[2] -= 1;
    expect(sdx_winograd_block_fits(&s) == 0, "a dilated line with stride 2 is taken");
    s = larger(5, 5, shape_of(1, 61, 64, 40, 40, 2, 2));
    expect(check_shape(s, true) == 4, "5 x 5 of 61 channels is not taken");
    s = larger(2, 2, shape_of(1, 64, 64, 40, 40, 1, 1));
    expect(check_shape(s, true) == 4, "2 x 2 is not taken");
}
/* Enough channels for products from digits, where there are tiles: by ranges of tiles and of
 * channels, blocks of tiles that are not full, channels that fill no chunk. */
static void check_digits(void)
{
    const int64_t shapes[][3] = {{97, 200, 5}, {256, 96, 7}, {520, 64, 12}, {130, 72, 26}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int step = 2; step <= 6; step += 2) {
            const int64_t *z = shapes[i];
            struct sdx_conv_shape s =
                shape_of(1 + z[2] % 3, z[0], z[1], z[2], z[2] + 3, 1, z[2] % 2);
            s.winograd = step;
            check_shape(s, step == 4);
        }
    struct sdx_conv_shape s = planes_of(4, 3, 1, 1, 1, shape_of(2, 64, 130, 7, 6, 1, 1));
    s.winograd = 4;
    check_shape(s, true);
}
void check_winograd_block(void)
{
    int taken[7] = {0};
    for (int64_t pad = -1; pad <= 3; pad++)
        for (int64_t size = 5; size <= 24; size++)
            for (int64_t wide = 0; wide < 2; wide++)
                taken[check_shape(shape_of(1 + size % 3, 7 + 5 * (size % 7), 20 + 7 * (size % 5),
                                           size, 13 + wide * size, pad, 3 - pad),
                                  false)]++;
    for (int64_t size = 3; size <= 9; size++)
        taken[check_shape(shape_of(1 + size % 2, 130 + size, 72 + 8 * (size % 3), size, size, 1, 1),
                          false)]++;
    expect(taken[4] >= 100 && taken[2] >= 3, "only %d and %d shapes taken", taken[4], taken[2]);
    /* the stated bounds, and the forms for these */
    const int64_t sizes[][6] = {
        {1, 64, 64, 20, 4, 4},   {3, 40, 101, 13, 4, 2}, {1, 256, 40, 14, 4, 2},
        {2, 200, 200, 10, 4, 2}, {1, 512, 24, 14, 4, 2}, {1, 512, 512, 7, 2, 0},
        {1, 16, 16, 40, 4, 4},   {2, 64, 24, 72, 6, 4},  {1, 512, 40, 61, 6, 4}};
    for (int i = 0; i < 9; i++) {
        const int64_t *z = sizes[i];
        const int form = check_shape(shape_of(z[0], z[1], z[2], z[3], z[3], 1, 1), true);
        expect(form == wanted_form(z[4], z[5]), "%lld to %lld of %lldx%lld takes form %d",
               (long long)z[1], (long long)z[2], (long long)z[3], (long long)z[3], form);
    }
    check_shape(shape_of(1, 8, 16, 9, 300, 1, 1), true); /* rows cut into blocks */
    check_stride_2();
    check_lines();
    check_planes();
    check_pieces();
    check_dilated();
    check_digits();
    expect(sdx_winograd_block_fits(&(struct sdx_conv_shape){.batch = 1}) == 0, "nothing is taken");
    const struct sdx_conv_shape few = shape_of(1, 3, 16, 160, 160, 1, 1);
    expect(sdx_winograd_block_fits(&few) == 0, "3 channels are taken");
}

/* 16-bit filters give the bits of f32 ones. */
static void check_half_shape(struct sdx_conv_shape s)
{
    const int form = sdx_winograd_block_fits(&s);
    if (!form) return;
    struct operands o = make(&s);
    float *wanted = guarded((size_t)(s.batch * o.size_y) * 4, 0);
    random_half(SDX_HALF_F16, o.w, NULL, weights_of(&s));
    way_of(&s)->pack(&s, o.w, o.packed, NULL);
    run(&s, &o, o.x, wanted, &o.epilogue);
    s.half = SDX_HALF_F16;
    o.packed = guarded(way_of(&s)->packed_size(&s), 0);
    o.scratch = guarded(way_of(&s)->scratch(&s), 0);
    way_of(&s)->pack(&s, o.w, o.packed, NULL);
    run(&s, &o, o.x, o.y, &o.epilogue);
    int64_t differ = 0;
    for (int64_t i = 0; i < s.batch * o.size_y; i++)
        differ += memcmp(&o.y[i], &wanted[i], sizeof *wanted) != 0;
    expect(differ == 0, "%lld to %lld of %lldx%lld: F(%d) in 16 bits differs in %lld places",
           (long long)s.ic, (long long)s.oc, (long long)s.in[1], (long long)s.in[2], form,
           (long long)differ);
    guards_intact();
    guards_release();
}
void check_winograd_half(void)
{
    for (int64_t size = 5; size <= 24; size++)
        check_half_shape(shape_of(1 + size % 3, 7 + 5 * (size % 7), 20 + 7 * (size % 5), size,
                                  13 + size, 1, size % 2));
    check_half_shape(shape_of(1, 256, 200, 14, 14, 1, 1));
    check_half_shape(shape_of(2, 512, 512, 7, 7, 1, 1));
    check_half_shape(shape_of(2, 64, 24, 72, 72, 1, 1));
    check_half_shape(with_stride_2(shape_of(2, 128, 72, 56, 40, 1, 1)));
    check_half_shape(planes_of(5, 3, 1, 1, 1, shape_of(2, 64, 72, 14, 14, 1, 1)));
    check_half_shape(line_of(2, 3, shape_of(2, 128, 200, 1, 300, 0, 3)));
    check_half_shape(line_of(1, 1, shape_of(1, 130, 40, 25, 20, 1, 0)));
    check_half_shape(larger(5, 5, shape_of(1, 64, 72, 30, 40, 2, 2)));
    check_half_shape(larger(4, 4, with_stride_2(shape_of(2, 61, 72, 60, 40, 1, 1))));
    check_half_shape(larger(1, 9, line_of(2, 1, shape_of(1, 128, 200, 1, 150, 0, 4))));
    check_half_shape(apart(2, 2, line_of(2, 1, shape_of(1, 256, 200, 1, 150, 0, 1))));
}

struct timed {
    struct sdx_conv_shape shape;
    struct operands o;
};
static void timed_run(void *arg)
{
    struct timed *t = arg;
    run(&t->shape, &t->o, t->o.x, t->o.y, &t->o.epilogue);
}
static double bench_shapes(enum sdx_half half)
{
    /* dilation 0: 3 x 3 */
    const int64_t sizes[][5] = {{64, 64, 56, 56},      {128, 128, 28, 28},    {256, 256, 14, 14},
                                {512, 512, 7, 7},      {16, 16, 160, 160},    {32, 32, 80, 80},
                                {64, 64, 288, 512},    {64, 64, 40, 40},      {128, 128, 20, 20},
                                {80, 384, 1, 3000, 1}, {512, 512, 1, 300, 3}, {384, 384, 8, 8, 1},
                                {64, 64, 60, 80, 1},   {256, 256, 1, 100, 1}};
    double total = 0, macs = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t *z = sizes[i];
        struct timed t = {.shape = shape_of(1, z[0], z[1], z[2], z[3], 1, 1)};
        if (z[4]) t.shape = line_of(2, z[4], t.shape);
        t.shape.half = half;
        t.o = make(&t.shape);
        t.o.epilogue.bias_row = t.o.bias;
        t.o.epilogue.act = SDX_ACT_RELU;
        const double ns = best_ns(timed_run, &t), work = sdx_conv_macs(&t.shape);
        fprintf(stderr, "  %lldx%lldx%lld to %lld F(%d): %.1f us, %.1f GFLOP/s\n", (long long)z[0],
                (long long)z[2], (long long)z[3], (long long)z[1],
                sdx_winograd_block_fits(&t.shape), ns / 1000, 2 * work / ns);
        total += ns;
        macs += work;
        guards_release();
    }
    return total / macs;
}
double bench_winograd_block(void)
{
    return bench_shapes(SDX_HALF_NONE);
}
double bench_winograd_half(void)
{
    return bench_shapes(SDX_HALF_F16);
}
