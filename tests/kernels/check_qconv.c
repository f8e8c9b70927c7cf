/* SPDX-License-Identifier: Apache-2.0
 * Checks of qconv.h: every sum of every output pixel, whatever the shape and the strips. */
#include <math.h>

#include "kernelcheck.h"
#include "kernels/qconv.h"

static int value(const void *p, bool is_signed, int64_t i)
{
    return is_signed ? ((const int8_t *)p)[i] : ((const uint8_t *)p)[i];
}
static uint8_t *bytes(int64_t n, size_t offset)
{
    uint8_t *p = guarded((size_t)n, offset);
    const unsigned kind = random_bits() % 4;
    static const uint8_t ends[] = {0, 255, 127, 128};
    for (int64_t i = 0; i < n; i++)
        p[i] = kind == 0 ? 255 : kind == 1 ? ends[random_bits() % 4] : (uint8_t)random_bits();
    return p;
}
static int32_t zero_point(bool is_signed)
{
    return (int32_t)(is_signed ? random_int(-128, 127) : random_int(0, 255));
}

struct image {
    const void *x, *w;
    int32_t zero_x;
};
static int32_t exact_at(const struct sdx_qconv *q, const struct image *im, int64_t n, int64_t c,
                        const int64_t o[3])
{
    const struct sdx_conv_shape *s = &q->shape;
    const int64_t icg = s->ic / s->groups, first = c / (s->oc / s->groups) * icg;
    int32_t sum = 0;
    for (int64_t i = 0; i < icg; i++)
        for (int64_t d = 0; d < s->kernel[0]; d++)
            for (int64_t h = 0; h < s->kernel[1]; h++)
                for (int64_t v = 0; v < s->kernel[2]; v++) {
                    const int64_t k[3] = {d, h, v};
                    int64_t at = n, inside = 1;
                    for (int a = 0; a < 3; a++) {
                        const int64_t p =
                            o[a] * s->stride[a] + k[a] * s->dilation[a] - s->pad_begin[a];
                        inside = inside && p >= 0 && p < s->in[a];
                        at = at * s->in[a] + p;
                    }
                    if (!inside) continue;
                    const int64_t tap =
                        (((c * icg + i) * s->kernel[0] + d) * s->kernel[1] + h) * s->kernel[2] + v;
                    sum += (value(im->x, q->x_signed, at * s->ic + first + i) - im->zero_x) *
                           (value(im->w, q->w_signed, tap) - (q->zero_w ? q->zero_w[c] : 0));
                }
    return sum;
}

static bool compare(const struct sdx_qconv *q, const struct image *im, const int32_t *y)
{
    const struct sdx_conv_shape *s = &q->shape;
    int64_t at = 0, o[3];
    for (int64_t n = 0; n < s->batch; n++)
        for (o[0] = 0; o[0] < s->out[0]; o[0]++)
            for (o[1] = 0; o[1] < s->out[1]; o[1]++)
                for (o[2] = 0; o[2] < s->out[2]; o[2]++)
                    for (int64_t c = 0; c < s->oc; c++, at++) {
                        const int32_t exact = exact_at(q, im, n, c, o);
                        if (!expect(y[at] == exact,
                                    "%lldx%lldx%lldx%lldx%lld kernel %lldx%lldx%lld stride %lld "
                                    "groups %lld: channel %lld at %lld,%lld,%lld is %d, expected "
                                    "%d",
                                    (long long)s->batch, (long long)s->ic, (long long)s->in[0],
                                    (long long)s->in[1], (long long)s->in[2],
                                    (long long)s->kernel[0], (long long)s->kernel[1],
                                    (long long)s->kernel[2], (long long)s->stride[2],
                                    (long long)s->groups, (long long)c, (long long)o[0],
                                    (long long)o[1], (long long)o[2], y[at], exact))
                            return false;
                    }
    return true;
}

/* All parts in calls of some of them, the last first. */
static void run_parts(const struct sdx_qconv *q, const struct image *im, const void *packed,
                      const void *steps, const struct sdx_qdot_store *store, void *scratch)
{
    for (int64_t part = sdx_qconv_parts(q), end = part; end > 0; end = part) {
        const int64_t most = sdx_qconv_together(q) + 1;
        part -= random_int(1, (int)(end < most ? end : most));
        sdx_qconv_run(q, im->x, im->zero_x, packed, steps, store, part, end, scratch);
    }
}

/* What the store makes of the sums: rounded, limited, turned over, added to others. */
static uint8_t *expected_bytes(const struct sdx_qconv *q, const struct sdx_qdot_store *store,
                               const int32_t *sums, int64_t count)
{
    uint8_t *to = guarded((size_t)count, 1);
    for (int64_t i = 0; i < count; i++) {
        const float scaled = (float)sums[i] * store->factor[sdx_qconv_place_of(q, i % q->shape.oc)];
        const int32_t rounded = (int32_t)lrintf(fminf(fmaxf(scaled, -300), 300)) + store->zero;
        const int32_t least = rounded < store->lo ? store->lo : rounded;
        to[i] = (uint8_t)(least > store->hi ? store->hi : least) ^ store->flip;
    }
    if (store->sum) sdx_qbytes()->add(store->sum, to, 1, store->addend, 1, to, (size_t)count);
    return to;
}

/* The sums once more, as bytes; how: bit 0: limited, 1: turned over, 2: added to others, 3: of
 * another zero point, 4: over those where that can be. */
static void check_bytes(const struct sdx_qconv *q, const struct image *im, const void *packed,
                        const void *steps, struct sdx_qdot_store store, void *scratch, unsigned how)
{
    const int32_t *sums = store.y;
    int64_t count = q->shape.batch * q->shape.oc;
    for (int i = 0; i < 3; i++)
        count *= q->shape.out[i];
    float *factor = guarded((size_t)sdx_qconv_width(q) * 4, 4);
    for (int64_t c = 0; c < sdx_qconv_width(q); c++)
        factor[c] = random_float(0.0005f, 0.01f);
    store.to = SDX_QDOT_BYTES;
    store.y = guarded((size_t)count, 1);
    store.factor = factor;
    store.factors_are_small = true;
    store.zero = (int32_t)random_int(0, 255);
    store.lo = how & 1 ? 3 : 0;
    store.hi = how & 1 ? 250 : 255;
    store.flip = how & 2 ? 0x80 : 0;
    struct sdx_qpair sum = {.zero_a = how & 8 ? 100 : store.zero,
                            .zero_b = (int32_t)random_int(0, 255),
                            .zero_y = (int32_t)random_int(0, 255),
                            .scale_a = random_float(0.1f, 2.0f),
                            .scale_b = random_float(0.1f, 2.0f),
                            .flip = store.flip};
    sum.base = sdx_qpair_base(&sum);
    if (how & 4) {
        store.sum = &sum;
        store.addend = bytes(count, 0);
    }
    const uint8_t *expected = expected_bytes(q, &store, sums, count), *found = store.y;
    if (how & 4 && how & 16 && sdx_qconv_sums_in_place(q)) {
        memcpy(store.y, store.addend, (size_t)count);
        store.addend = store.y;
    }
    run_parts(q, im, packed, steps, &store, scratch);
    for (int64_t i = 0; i < count; i++)
        if (!expect(found[i] == expected[i], "byte %lld of a sum %d is %u, expected %u",
                    (long long)i, sums[i], found[i], expected[i]))
            return;
}

/* how: bits 0, 1: signed x, weights; 2: zero points of weights; 3: the form is chosen by weights;
 * 5: the zero point of x is the least byte. Returns the form. */
static enum sdx_qconv_form check_shape_how(const struct sdx_conv_shape *shape, unsigned how)
{
    struct sdx_qconv q = {.shape = *shape};
    struct sdx_conv_shape *s = &q.shape;
    int64_t pixels = 1, pixels_in = 1, taps = 1;
    for (int i = 0; i < 3; i++) {
        const int64_t room =
            s->in[i] + 2 * s->pad_begin[i] - (s->kernel[i] - 1) * s->dilation[i] - 1;
        s->out[i] = room < 0 ? 0 : room / s->stride[i] + 1;
        pixels *= s->out[i];
        pixels_in *= s->in[i];
        taps *= s->kernel[i];
    }
    q.x_signed = how & 1;
    q.w_signed = how & 2;
    q.quickly = !(how & 8) && how % 5 == 0;
    int32_t *zero_w = guarded((size_t)s->oc * 4, 0);
    for (int64_t i = 0; i < s->oc; i++)
        zero_w[i] = how & 4 ? zero_point(q.w_signed) : q.w_signed ? 0 : 128;
    q.zero_w = zero_w;
    const struct image im = {.x = bytes(s->batch * s->ic * pixels_in, 1),
                             .w = bytes(s->oc * (s->ic / s->groups) * taps, 5),
                             .zero_x = how & 32 ? (q.x_signed ? -128 : 0) : zero_point(q.x_signed)};
    if (how & 8) sdx_qconv_choose(&q, im.w);
    const int64_t width = sdx_qconv_width(&q);
    int32_t *start = guarded((size_t)width * 4, 4), *zeros = guarded((size_t)width * 4, 4);
    memset(zeros, 0, (size_t)width * 4);
    for (int64_t c = 0; c < s->oc; c++)
        zeros[sdx_qconv_place_of(&q, c)] = zero_w[c] - (q.w_signed ? 0 : 128);
    char *packed = guarded(sdx_qconv_packed_size(&q), 0);
    void *steps = guarded(sdx_qconv_steps_size(&q), 0);
    void *scratch = guarded(sdx_qconv_scratch(&q), 0);
    const size_t used = sdx_qconv_pack(&q, im.w, packed);
    memset(packed + used, 0xa5, sdx_qconv_packed_size(&q) - used); /* not read */
    sdx_qconv_steps(&q, packed, steps);
    sdx_qconv_start(&q, packed, im.zero_x, start);
    const struct sdx_qdot_store store = {.to = SDX_QDOT_SUMS,
                                         .y = guarded((size_t)(s->batch * s->oc * pixels) * 4, 4),
                                         .start = start,
                                         .zero_w = how & 4 ? zeros : NULL};
    run_parts(&q, &im, packed, steps, &store, scratch);
    if (compare(&q, &im, store.y)) {
        check_bytes(&q, &im, packed, steps, store, scratch, random_bits());
        guards_intact();
    }
    guards_release();
    return q.form;
}

static void check_shape(const struct sdx_conv_shape *shape)
{
    check_shape_how(shape, random_bits());
}

/* Winograd's form: whatever tiles overhang, signs, channels beyond whole vectors. */
static void check_winograd(int64_t batch, int64_t ic, int64_t oc, int64_t h, int64_t w, int64_t pad)
{
    const struct sdx_conv_shape s = {.batch = batch,
                                     .groups = 1,
                                     .ic = ic,
                                     .oc = oc,
                                     .in = {1, h, w},
                                     .kernel = {1, 3, 3},
                                     .stride = {1, 1, 1},
                                     .dilation = {1, 1, 1},
                                     .pad_begin = {0, pad, pad}};
    for (unsigned how = 8; how < 12; how++)
        check_shape_how(&s, how);
}
/* Planes of deep kernels, pieces of larger ones, dilated ones, lines. */
static void check_winograd_pieces(void)
{
    int taken = 0;
    if (!sdx_kernel_tables()->qwinograd.run) return; /* this set has none */
    for (unsigned turn = 0; turn < 36; turn++) {
        const int64_t deep = 1 + turn % 3, high = turn % 4 == 3 ? 5 : 3,
                      wide = 3 + turn % 5 / 3 * 2;
        const int64_t dilation = 1 + turn % 7 / 4, step = 1 + turn % 2;
        struct sdx_conv_shape s = {
            .batch = 1 + turn % 2,
            .groups = 1,
            .ic = 16 + 14 * (turn % 3),
            .oc = 8 + 5 * (turn % 4),
            .in = {deep + turn % 2, 11 * dilation + turn % 3, 11 * dilation + turn % 5},
            .kernel = {deep, high, wide},
            .stride = {step, 1, 1},
            .dilation = {1 + turn % 13 / 12, turn % 5 ? dilation : 1, dilation},
            .pad_begin = {deep / 2, dilation, turn % 4}};
        if (turn % 3 == 1) { /* a line */
            const int axis = 1 + (int)(turn % 2);
            s.kernel[axis] = 1;
            s.pad_begin[axis] = 0;
        }
        taken += check_shape_how(&s, 8 + turn % 4) == SDX_QCONV_WINOGRAD;
    }
    /* but for weights that are all at the ends of their range */
    expect(taken >= 20, "only %d of 36 are taken", taken);
}

static void check_2d(int64_t batch, int64_t groups, int64_t icg, int64_t ocg, int64_t h, int64_t w,
                     int64_t kernel, int64_t stride, int64_t pad, int64_t dilation)
{
    const struct sdx_conv_shape s = {.batch = batch,
                                     .groups = groups,
                                     .ic = groups * icg,
                                     .oc = groups * ocg,
                                     .in = {1, h, w},
                                     .kernel = {1, kernel, kernel},
                                     .stride = {1, stride, stride},
                                     .dilation = {1, dilation, dilation},
                                     .pad_begin = {0, pad, pad}};
    check_shape(&s);
}

void check_qconv(void)
{
    for (int64_t kernel = 1; kernel <= 4; kernel++)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int64_t pad = -1; pad <= 2; pad++)
                for (int64_t size = 3; size <= 13; size += 5) {
                    const int64_t dilation = 1 + size % 2;
                    check_2d(1, 1, 3, 7, size + 1, size, kernel, stride, pad, 1);
                    check_2d(2, 3, 1, 1, size, size + 2, kernel, stride, pad, dilation);
                    check_2d(1, 35, 1, 1, size, size + 2, kernel, stride, pad, 1);
                    check_2d(1, 48, 1, 1, size, size, kernel, stride, pad, dilation);
                    check_2d(1, 2, 5, 9, size, size, kernel, stride, pad, dilation);
                    check_2d(1, 4, 2, 2, size, size, kernel, stride, pad, 1);
                    check_2d(1, 1, 20, 33, size, size, kernel, stride, pad, dilation);
                }
    for (int64_t dilation = 2; dilation <= 17; dilation += 3) /* also beyond the image */
        for (int64_t channels = 16; channels <= 80; channels += 32) {
            check_2d(2, channels, 1, 1, 9, 12, 3, 1, dilation, dilation);
            check_2d(1, channels - 3, 1, 1, 10, 7, 3, 1, dilation - 1, dilation);
            check_2d(1, channels, 1, 1, 10, 7, 3, 2, dilation, dilation);
            check_2d(1, 1, channels, 40, 9, 12, 3, 1, dilation, dilation);
        }
    for (int64_t pad = 0; pad < 2; pad++) {
        const struct sdx_conv_shape s = {.batch = 2,
                                         .groups = 1,
                                         .ic = 6,
                                         .oc = 10,
                                         .in = {5, 6, 7},
                                         .kernel = {2, 3, 3},
                                         .stride = {1, 2, 1},
                                         .dilation = {1 + pad, 1, 1},
                                         .pad_begin = {pad, pad, pad}};
        check_shape(&s);
    }
    for (unsigned how = 0; how < 64; how++) { /* slices whose taps lie beyond the volume */
        const struct sdx_conv_shape s = {.batch = 1,
                                         .groups = 1 + how % 3 / 2,
                                         .ic = 24,
                                         .oc = 38,
                                         .in = {1 + how % 4, 5, 4},
                                         .kernel = {3, 3, 1 + how % 2},
                                         .stride = {1 + how % 5 / 3, 1, 1},
                                         .dilation = {1 + how % 7 / 6, 1, 1 + how % 9 / 8},
                                         .pad_begin = {1 + how % 7 / 5, 1, 1}};
        check_shape_how(&s, how);
    }
    check_2d(1, 1, 64, 150, 14, 14, 3, 1, 1, 1);
    check_2d(1, 1, 400, 60, 7, 7, 1, 1, 0, 1);
    check_2d(2, 1, 100, 60, 1, 1, 1, 1, 0, 1);
    check_2d(1, 1, 16, 20, 64, 200, 3, 1, 1, 1);
    check_2d(1, 96, 1, 1, 60, 100, 5, 1, 2, 1);
    for (int i = 0; i < 5; i++) { /* many columns, with whatever store */
        check_2d(2, 1, 64, 192, 14, 14, 1, 1, 0, 1);
        check_2d(1, 1, 32, 100, 20, 28, 3, 1, 1, 1);
        check_2d(1, 1, 3, 70, 30, 33, 7, 2, 3, 1);
        check_2d(1, 1, 128, 64, 14, 14, 3, 2, 1, 1);
        check_2d(1, 1, 700, 80, 9, 9, 1, 1, 0, 1);
        check_2d(1, 1, 48, 48, 18, 20, 1, 1, 0, 1);
        check_2d(1, 1, 130, 144, 12, 13, 3, 1, 1, 1);
    }
    for (int i = 0; i < 5; i++) { /* small images, of which several are worked together */
        check_2d(9, 1, 20, 33, 5, 4, 3, 1, 1, 1);
        check_2d(11, 1, 64, 64, 7, 7, 1, 1, 0, 1);
        check_2d(7, 1, 3, 48, 8, 8, 3, 2, 1, 1);
        check_2d(5, 2, 5, 9, 6, 7, 2, 1, 0, 2);
        check_2d(40, 1, 36, 70, 8, 8, 3, 1, 1, 1);
    }
    for (int64_t pad = -1; pad <= 2; pad++) {
        check_winograd(2, 16, 8, 14, 11, pad);
        check_winograd(1, 42, 37, 15, 20, pad);
    }
    check_winograd(1, 130, 20, 14, 14, 1);
    check_winograd_pieces();
}

struct timed {
    struct sdx_qconv q;
    const void *x, *packed, *steps;
    void *scratch;
    struct sdx_qdot_store store;
};
static void timed_run(void *arg)
{
    struct timed *t = arg;
    sdx_qconv_run(&t->q, t->x, 0, t->packed, t->steps, &t->store, 0, sdx_qconv_parts(&t->q),
                  t->scratch);
}
double bench_qconv(void)
{
    struct timed t = {.q = {.shape = {.batch = 1,
                                      .groups = 1,
                                      .ic = 64,
                                      .oc = 64,
                                      .in = {1, 28, 28},
                                      .out = {1, 28, 28},
                                      .kernel = {1, 3, 3},
                                      .stride = {1, 1, 1},
                                      .dilation = {1, 1, 1},
                                      .pad_begin = {0, 1, 1}},
                            .w_signed = true}};
    void *packed = guarded(sdx_qconv_packed_size(&t.q), 0);
    void *steps = guarded(sdx_qconv_steps_size(&t.q), 0);
    uint8_t *w = bytes(64 * 64 * 9, 0);
    int32_t *start = guarded((size_t)sdx_qconv_width(&t.q) * 4, 0);
    for (int i = 0; i < 64 * 64 * 9; i++)
        w[i] = (uint8_t)(random_int(-40, 40) + random_int(-40, 40) + random_int(-40, 40));
    (void)sdx_qconv_pack(&t.q, w, packed);
    sdx_qconv_steps(&t.q, packed, steps);
    sdx_qconv_start(&t.q, packed, 0, start);
    t.x = bytes(64 * 28 * 28, 0);
    t.packed = packed;
    t.steps = steps;
    t.scratch = guarded(sdx_qconv_scratch(&t.q), 0);
    t.store = (struct sdx_qdot_store){
        .to = SDX_QDOT_SUMS, .y = guarded(64 * 28 * 28 * 4, 0), .start = start};
    return best_ns(timed_run, &t) / sdx_conv_macs(&t.q.shape);
}
