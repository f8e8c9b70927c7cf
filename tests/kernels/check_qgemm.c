/* SPDX-License-Identifier: Apache-2.0
 * Checks of qgemm.h: the integers must be exact, also at the ends of their ranges. */
#include "kernelcheck.h"

static int value(const void *p, bool is_signed, int64_t i)
{
    return is_signed ? ((const int8_t *)p)[i] : ((const uint8_t *)p)[i];
}
/* Random bytes, or only the extremes, which saturating kernels get wrong. */
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

static void check_product(int64_t m, int64_t n, int64_t k, unsigned how)
{
    const bool b_signed = how & 2;
    struct sdx_qgemm g = {.m = m, .n = n, .k = k, .a_signed = how & 1, .zero_a_per_row = how & 4};
    g.row_a = how & 8 ? 1 : k + 1;
    g.col_a = how & 8 ? m + 1 : 1;
    g.row_c = n + 1;
    const int64_t row_b = how & 16 ? 1 : n, col_b = how & 16 ? k : 1;
    uint8_t *a = bytes((m + 1) * (k + 1), 1), *b = bytes(k * n, 3);
    int32_t *zero_a = guarded((size_t)(m + 1) * 4, 4), *zero_b = guarded((size_t)n * 4, 4);
    for (int64_t i = 0; i <= m; i++)
        zero_a[i] = zero_point(g.a_signed);
    for (int64_t j = 0; j < n; j++)
        zero_b[j] = how & 32 ? zero_point(b_signed) : 0;
    void *packed = guarded(sdx_qgemm_packed_size(k, n), 0);
    void *scratch = guarded(sdx_qgemm_scratch(m, n, k), 0);
    sdx_qgemm_pack(b, b_signed, row_b, col_b, k, n, packed);
    g.a = a;
    g.zero_a = zero_a;
    g.zero_b = zero_b;
    g.packed = packed;
    g.c = guarded((size_t)(m > 0 ? (m - 1) * g.row_c + n : 0) * 4, 4);
    const int64_t cut = sdx_qgemm_panel();
    for (int64_t i = 0; i < m; i += 5)
        for (int64_t j = 0; j < n; j += cut)
            sdx_qgemm_run(&g, i, i + 5 < m ? i + 5 : m, j, j + cut < n ? j + cut : n, scratch);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            uint32_t sum = 0;
            for (int64_t e = 0; e < k; e++)
                sum += (uint32_t)((value(a, g.a_signed, i * g.row_a + e * g.col_a) -
                                   zero_a[g.zero_a_per_row ? i : 0]) *
                                  (value(b, b_signed, e * row_b + j * col_b) - zero_b[j]));
            if (!expect((uint32_t)g.c[i * g.row_c + j] == sum,
                        "%lldx%lldx%lld (layout %u) at %lld,%lld: %d, expected %d", (long long)m,
                        (long long)n, (long long)k, how, (long long)i, (long long)j,
                        g.c[i * g.row_c + j], (int32_t)sum)) {
                guards_release();
                return;
            }
        }
    guards_intact();
    guards_release();
}
void check_qgemm(void)
{
    for (unsigned how = 0; how < 64; how++) {
        check_product(1 + how % 14, 1 + how % 70, how % 19, how);
        check_product(13, 2 * sdx_qgemm_panel(), 64, how);
        check_product(how % 9, sdx_qgemm_panel() + how % 3, 37, how);
    }
    check_product(40, 100, 700, 63);
    check_product(300, 20, 1500, 38);
}

struct sums {
    const struct sdx_conv_shape *shape;
    int32_t *y;
};
static void store(void *arg, int64_t n, int64_t channel, int64_t pixel, int64_t count,
                  const int32_t *from)
{
    const struct sums *s = arg;
    const int64_t pixels = s->shape->out[0] * s->shape->out[1] * s->shape->out[2];
    memcpy(s->y + (n * s->shape->oc + channel) * pixels + pixel, from, (size_t)count * 4);
}
static int32_t exact_at(const struct sdx_qconv *q, const void *x, const void *w, int64_t n,
                        int64_t c, int64_t oh, int64_t ow)
{
    const struct sdx_conv_shape *s = &q->shape;
    const int64_t icg = s->ic / s->groups, g = c / (s->oc / s->groups);
    int32_t sum = 0;
    for (int64_t i = 0; i < icg; i++)
        for (int64_t h = 0; h < s->kernel[1]; h++)
            for (int64_t v = 0; v < s->kernel[2]; v++) {
                const int64_t ih = oh * s->stride[1] + h * s->dilation[1] - s->pad_begin[1];
                const int64_t iw = ow * s->stride[2] + v * s->dilation[2] - s->pad_begin[2];
                if (ih < 0 || ih >= s->in[1] || iw < 0 || iw >= s->in[2]) continue;
                const int64_t at = ((n * s->ic + g * icg + i) * s->in[1] + ih) * s->in[2] + iw;
                const int64_t tap = ((c * icg + i) * s->kernel[1] + h) * s->kernel[2] + v;
                sum += (value(x, q->x_signed, at) - q->zero_x) *
                       (value(w, q->w_signed, tap) - (q->zero_w ? q->zero_w[c] : 0));
            }
    return sum;
}
static void check_shape(int64_t batch, int64_t groups, int64_t icg, int64_t ocg, int64_t h,
                        int64_t w, int64_t kernel, int64_t stride, int64_t pad)
{
    struct sdx_qconv q = {.shape = {.batch = batch,
                                    .groups = groups,
                                    .ic = groups * icg,
                                    .oc = groups * ocg,
                                    .in = {1, h, w},
                                    .kernel = {1, kernel, kernel},
                                    .stride = {1, stride, stride},
                                    .dilation = {1, 1, 1},
                                    .pad_begin = {0, pad, pad}}};
    struct sdx_conv_shape *s = &q.shape;
    const unsigned how = random_bits();
    s->out[0] = 1;
    for (int i = 1; i < 3; i++)
        s->out[i] = s->in[i] + 2 * pad < kernel ? 0 : (s->in[i] + 2 * pad - kernel) / stride + 1;
    q.x_signed = how & 1;
    q.w_signed = how & 2;
    q.zero_x = zero_point(q.x_signed);
    int32_t *zero_w = guarded((size_t)s->oc * 4, 0);
    for (int64_t i = 0; i < s->oc; i++)
        zero_w[i] = zero_point(q.w_signed);
    if (how & 4) q.zero_w = zero_w;
    const uint8_t *x = bytes(batch * s->ic * h * w, 1),
                  *v = bytes(s->oc * icg * kernel * kernel, 5);
    void *packed = guarded(sdx_qconv_packed_size(&q), 0);
    void *scratch = guarded(sdx_qconv_scratch(&q), 0);
    struct sums sums = {s, guarded((size_t)(batch * s->oc * s->out[1] * s->out[2]) * 4, 4)};
    sdx_qconv_pack(&q, v, packed);
    for (int64_t part = sdx_qconv_parts(&q); part-- > 0;)
        sdx_qconv_part(&q, x, packed, part, scratch, store, &sums);
    int64_t at = 0;
    for (int64_t n = 0; n < batch; n++)
        for (int64_t c = 0; c < s->oc; c++)
            for (int64_t oh = 0; oh < s->out[1]; oh++)
                for (int64_t ow = 0; ow < s->out[2]; ow++, at++) {
                    const int32_t exact = exact_at(&q, x, v, n, c, oh, ow);
                    if (!expect(
                            sums.y[at] == exact,
                            "%lldx%lldx%lldx%lld kernel %lld groups %lld: at %lld,%lld,%lld %d, "
                            "expected %d",
                            (long long)batch, (long long)s->ic, (long long)h, (long long)w,
                            (long long)kernel, (long long)groups, (long long)c, (long long)oh,
                            (long long)ow, sums.y[at], exact)) {
                        guards_release();
                        return;
                    }
                }
    guards_intact();
    guards_release();
}
void check_qconv(void)
{
    for (int64_t kernel = 1; kernel <= 4; kernel++)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int64_t pad = -1; pad <= 2; pad++)
                for (int64_t size = 1; size <= 13; size += 3) {
                    check_shape(1, 1, 3, 7, size + 1, size, kernel, stride, pad);
                    check_shape(2, 3, 1, 1 + size % 2, size, size + 2, kernel, stride, pad);
                    check_shape(1, 2, 5, 9, size, size, kernel, stride, pad);
                }
    check_shape(1, 1, 64, 150, 14, 14, 3, 1, 1);
    check_shape(1, 1, 400, 60, 7, 7, 1, 1, 0);
    check_shape(2, 1, 100, 60, 1, 1, 1, 1, 0);
}

struct timed {
    struct sdx_qgemm g;
    void *scratch;
};
static void timed_run(void *arg)
{
    struct timed *t = arg;
    sdx_qgemm_run(&t->g, 0, t->g.m, 0, t->g.n, t->scratch);
}
double bench_qgemm(void)
{
    const int64_t m = 128, n = 384, k = 384;
    static int32_t zero_a, zero_b[384];
    struct timed t = {.g = {.m = m, .n = n, .k = k, .row_a = k, .col_a = 1, .row_c = n}};
    void *packed = guarded(sdx_qgemm_packed_size(k, n), 0);
    sdx_qgemm_pack(bytes(k * n, 0), true, n, 1, k, n, packed);
    t.g.a = bytes(m * k, 0);
    t.g.packed = packed;
    t.g.zero_a = &zero_a;
    t.g.zero_b = zero_b;
    t.g.c = guarded((size_t)(m * n) * 4, 0);
    t.scratch = guarded(sdx_qgemm_scratch(m, n, k), 0);
    return best_ns(timed_run, &t) / (double)(m * n * k);
}
struct timed_conv {
    struct sdx_qconv q;
    const void *x, *packed;
    void *scratch;
    struct sums sums;
};
static void timed_conv_run(void *arg)
{
    struct timed_conv *t = arg;
    const int64_t parts = sdx_qconv_parts(&t->q);
    for (int64_t part = 0; part < parts; part++)
        sdx_qconv_part(&t->q, t->x, t->packed, part, t->scratch, store, &t->sums);
}
double bench_qconv(void)
{
    struct timed_conv t = {.q = {.shape = {.batch = 1,
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
    sdx_qconv_pack(&t.q, bytes(64 * 64 * 9, 0), packed);
    t.x = bytes(64 * 28 * 28, 0);
    t.packed = packed;
    t.scratch = guarded(sdx_qconv_scratch(&t.q), 0);
    t.sums.shape = &t.q.shape;
    t.sums.y = guarded(64 * 28 * 28 * 4, 0);
    return best_ns(timed_conv_run, &t) / sdx_conv_macs(&t.q.shape);
}
