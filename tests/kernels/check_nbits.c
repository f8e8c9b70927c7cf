/* SPDX-License-Identifier: Apache-2.0
 * Checks of nbits.h: all widths, blocks, zero points and numbers of rows against f64. The bound is
 * that of two chains, over the numbers of a run and over the runs. Whole products against their
 * definition, to the last bit where every float of it is exact. */
#include "kernelcheck.h"

#include "kernels/nbits.h"

struct weights {
    struct sdx_nbits w;
    uint8_t *bytes;
    float *scales, *zeros;
    void *packed;
};
static unsigned value_at(const struct weights *s, int64_t n, int64_t k, bool is_signed)
{
    const int64_t bit = (n * s->w.k + k) * s->w.bits;
    const unsigned q = s->bytes[bit / 8] >> (bit % 8) & ((1u << s->w.bits) - 1);
    return is_signed ? q ^ 1u << (s->w.bits - 1) : q;
}
/* is_extreme: the first half all ones, the rest zeros, with scales that are powers of two. */
static struct weights make(struct sdx_nbits w, bool is_signed, bool is_extreme)
{
    struct weights s = {.w = w};
    const int64_t blocks = (w.k + w.block - 1) / w.block, bytes = (w.n * w.k * w.bits + 7) / 8;
    s.bytes = guarded((size_t)bytes, 1);
    s.scales = guarded((size_t)(w.n * blocks) * 4, 4);
    s.zeros = guarded((size_t)(w.n * blocks) * 4, 4);
    for (int64_t i = 0; i < bytes; i++)
        s.bytes[i] = (uint8_t)(!is_extreme ? random_bits() : i < bytes / 2 ? 255 : 0);
    for (int64_t i = 0; i < w.n * blocks; i++) {
        s.scales[i] = is_extreme ? 0.25f : random_float(0.01f, 0.1f);
        s.zeros[i] = (float)(w.has_zeros ? random_int(0, (1 << w.bits) - 1) : 1 << (w.bits - 1));
    }
    s.packed = guarded(sdx_nbits_packed_size(&w), 0);
    const struct sdx_nbits_source source = {s.bytes, w.k, 1, is_signed, s.scales, s.zeros};
    sdx_nbits_pack(&w, &source, s.packed);
    return s;
}
static void check_case(struct sdx_nbits w, int64_t m, bool is_signed, enum sdx_act act)
{
    const struct weights s = make(w, is_signed, false);
    const int64_t row_a = w.k + 3, row_c = w.n + 1, blocks = (w.k + w.block - 1) / w.block;
    float *a = guarded((size_t)(m * row_a) * 4, 4), *bias = guarded((size_t)w.n * 4, 4);
    float *c = guarded((size_t)(m * row_c) * 4, 4), *one = guarded((size_t)w.n * 4, 4);
    uint8_t *rows = guarded(sdx_nbits_rows_size(&w, m), 0);
    const int64_t run = w.block < SDX_NBITS_RUN ? w.block : SDX_NBITS_RUN, runs = 2 * w.k / run + 2;
    const struct sdx_epilogue e = {.bias_col = bias, .act = act};
    for (int64_t i = 0; i < m * row_a; i++)
        a[i] = random_float(-1, 1);
    for (int64_t j = 0; j < w.n; j++)
        bias[j] = random_float(-1, 1);
    const int64_t cut = w.n / 2 / sdx_gemm_f32_panel() * sdx_gemm_f32_panel();
    sdx_nbits_rows(&w, m, a, row_a, 0, m / 2, rows);
    sdx_nbits_rows(&w, m, a, row_a, m / 2, m, rows);
    sdx_nbits_run(&w, s.packed, m, rows, c, row_c, &e, 0, cut);
    sdx_nbits_run(&w, s.packed, m, rows, c, row_c, &e, cut, w.n);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < w.n; j++) {
            double sum = bias[j], size = 1;
            for (int64_t k = 0; k < w.k; k++) {
                const int64_t g = j * blocks + k / w.block;
                const double q = value_at(&s, j, k, is_signed), z = (double)s.zeros[g];
                sum += (double)a[i * row_a + k] * (q - z) * (double)s.scales[g];
                size += fabs((double)a[i * row_a + k] * (double)s.scales[g]) * (q + z);
            }
            if (act == SDX_ACT_RELU && sum < 0) sum = 0;
            if (!expect(fabs((double)c[i * row_c + j] - sum) <=
                            (double)(run + runs + blocks) * size * 6e-8,
                        "%d bits, %lldx%lldx%lld at %lld,%lld: %.9g, expected %.9g", w.bits,
                        (long long)m, (long long)w.n, (long long)w.k, (long long)i, (long long)j,
                        (double)c[i * row_c + j], sum))
                return;
        }
    sdx_nbits_rows(&w, 1, a + (m - 1) * row_a, row_a, 0, 1, rows);
    sdx_nbits_run(&w, s.packed, 1, rows, one, row_c, &e, 0, w.n);
    expect(memcmp(one, c + (m - 1) * row_c, (size_t)w.n * 4) == 0, "a row alone has other bits");
    guards_intact();
    guards_release();
}

/* ---- whole products ---- */

struct whole {
    struct weights s;
    float *a, *bias, *c;
    uint8_t *rows;
    int64_t row_a, row_c;
};
static void whole_run(const struct whole *t, int64_t m, float *c, int64_t n0, int64_t n1)
{
    const struct sdx_epilogue e = {.bias_col = t->bias};
    sdx_nbits_run(&t->s.w, t->s.packed, m, t->rows, c, t->row_c, &e, n0, n1);
}
/* What row i of A becomes alone, times its scales: against the definition, and to `numbers`. */
static void check_row(const struct whole *t, int64_t i, double *numbers)
{
    const struct sdx_nbits *w = &t->s.w;
    const float *a = t->a + i * t->row_a;
    const uint8_t *row = t->rows;
    sdx_nbits_rows(w, 1, a, t->row_a, 0, 1, t->rows);
    const bool is_short = w->bits == 8 && !sdx_kernel_tables()->gemm.nbits_whole_bytes;
    for (int64_t k = 0; k < w->k;) {
        const int64_t end = k + w->block < w->k ? k + w->block : w->k;
        float most = 0;
        int64_t sum = 0;
        for (int64_t j = k; j < end; j++)
            most = fmaxf(most, fabsf(a[j]));
        const float scale = most / 127.0f;
        const struct sdx_nbits_fact *fact = (const void *)row;
        row += sizeof *fact;
        for (; k < end; k++, row += is_short ? 2 : 1) {
            const int q = is_short ? *(const int16_t *)(const void *)row : (int8_t)*row;
            expect((float)q == (most > 0 ? rintf(a[k] / scale) : 0.0f), "%lld,%lld becomes %d",
                   (long long)i, (long long)k, q);
            numbers[k] = (double)q * (double)scale;
            sum += q;
        }
        expect(fact->scale == scale && fact->sum == scale * (float)sum, "facts of a block");
    }
}
/* is_exact: every product and sum of the definition is a float. */
static void check_whole_case(struct sdx_nbits w, int64_t m, bool is_exact)
{
    struct whole t = {.s = make(w, false, is_exact), .row_a = w.k + 3, .row_c = w.n + 1};
    const int64_t blocks = (w.k + w.block - 1) / w.block;
    t.a = guarded((size_t)(m * t.row_a) * 4, 4);
    t.bias = guarded((size_t)w.n * 4, 4);
    t.c = guarded((size_t)(m * t.row_c) * 4, 4);
    t.rows = guarded(sdx_nbits_rows_size(&w, m), 0);
    float *one = guarded((size_t)w.n * 4, 4);
    double *numbers = guarded((size_t)w.k * sizeof *numbers, 0);
    for (int64_t i = 0; i < m * t.row_a; i++)
        t.a[i] = is_exact ? (float)(random_bits() & 1 ? 127 : -127) : random_float(-1, 1);
    for (int64_t i = 0; i < w.block && i < w.k; i++)
        t.a[i] = is_exact ? 127.0f : 0.0f;
    for (int64_t j = 0; j < w.n; j++)
        t.bias[j] = is_exact ? 0.0f : random_float(-1, 1);
    sdx_nbits_rows(&w, m, t.a, t.row_a, 0, m / 2, t.rows);
    sdx_nbits_rows(&w, m, t.a, t.row_a, m / 2, m, t.rows);
    const int64_t cut = w.n / 2 / sdx_gemm_f32_panel() * sdx_gemm_f32_panel();
    whole_run(&t, m, t.c, 0, cut);
    whole_run(&t, m, t.c, cut, w.n);
    for (int64_t i = 0; i < m; i++) {
        check_row(&t, i, numbers);
        for (int64_t j = 0; j < w.n; j++) {
            double sum = (double)t.bias[j], size = 1;
            for (int64_t k = 0; k < w.k; k++) {
                const int64_t g = j * blocks + k / w.block;
                const double p = value_at(&t.s, j, k, false), z = (double)t.s.zeros[g];
                sum += numbers[k] * (p - z) * (double)t.s.scales[g];
                size += fabs(numbers[k] * (double)t.s.scales[g]) * (p + z);
            }
            const double found = (double)t.c[i * t.row_c + j];
            if (!expect(fabs(found - sum) <=
                            (is_exact ? 0 : (double)(2 * blocks + 4) * size * 6e-8),
                        "%d bits, %lldx%lldx%lld at %lld,%lld: %.9g, expected %.9g", w.bits,
                        (long long)m, (long long)w.n, (long long)w.k, (long long)i, (long long)j,
                        found, sum))
                return;
        }
    }
    whole_run(&t, 1, one, 0, w.n);
    expect(memcmp(one, t.c + (m - 1) * t.row_c, (size_t)w.n * 4) == 0,
           "a row alone has other bits");
    guards_intact();
    guards_release();
}
static void check_whole(int bits)
{
    const int64_t panel = sdx_gemm_f32_panel();
    for (int64_t m = 1; m <= 7; m++)
        for (int64_t block = 16; block <= 1024; block *= 4)
            for (int64_t k = 1; k <= 1300; k = k * 5 + 4)
                check_whole_case(
                    (struct sdx_nbits){.n = panel * random_int(0, 3) + random_int(1, 9),
                                       .k = k,
                                       .block = block,
                                       .bits = bits,
                                       .has_zeros = random_bits() & 1,
                                       .whole = true},
                    m, k < 300 && random_bits() & 1);
}
/* A number that is none, or no bound: nothing finite comes of it. */
static void check_not_finite(int bits, bool whole)
{
    const struct sdx_nbits w = {.n = 5, .k = 70, .block = 16, .bits = bits, .whole = whole};
    struct whole t = {.s = make(w, false, false), .row_c = w.n};
    t.a = guarded((size_t)w.k * 4, 4);
    t.c = guarded((size_t)w.n * 4, 4);
    t.rows = guarded(sdx_nbits_rows_size(&w, 1), 0);
    for (int64_t at = 0; at < w.k; at += 23) {
        for (int64_t k = 0; k < w.k; k++)
            t.a[k] = random_float(-1, 1);
        t.a[at] = at % 2 ? INFINITY : NAN;
        sdx_nbits_rows(&w, 1, t.a, w.k, 0, 1, t.rows);
        whole_run(&t, 1, t.c, 0, w.n);
        for (int64_t j = 0; j < w.n; j++)
            expect(!isfinite(t.c[j]), "%g for %g", (double)t.c[j], (double)t.a[at]);
    }
    guards_intact();
    guards_release();
}
/* The longest sums, of numbers that are all alike: none, too small for a scale of their own, large.
 */
static void check_far_numbers(int bits)
{
    static const float sizes[] = {0.0f, 1e-44f, -3e-39f, 1e-33f, -1.0f, 1e30f};
    const struct sdx_nbits w = {.n = 5, .k = 70, .block = 32, .bits = bits};
    struct whole t = {.s = make(w, false, true), .row_c = w.n};
    t.a = guarded((size_t)w.k * 4, 4);
    t.bias = guarded((size_t)w.n * 4, 4);
    t.c = guarded((size_t)w.n * 4, 4);
    t.rows = guarded(sdx_nbits_rows_size(&w, 1), 0);
    memset(t.bias, 0, (size_t)w.n * 4);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int64_t k = 0; k < w.k; k++)
            t.a[k] = sizes[i];
        sdx_nbits_rows(&w, 1, t.a, w.k, 0, 1, t.rows);
        whole_run(&t, 1, t.c, 0, w.n);
        for (int64_t j = 0; j < w.n; j++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < w.k; k++) {
                const double q = (double)value_at(&t.s, j, k, false) - (double)(1 << (bits - 1));
                sum += (double)sizes[i] * q * 0.25;
                size += fabs((double)sizes[i] * q * 0.25);
            }
            expect(fabs((double)t.c[j] - sum) <= 1e-6 * size + 1e-35,
                   "%d bits, %g times: %.9g, not %.9g", bits, (double)sizes[i], (double)t.c[j],
                   sum);
        }
    }
    guards_intact();
    guards_release();
}
/* Rows enough for tile registers: whole runs and blocks, and a shorter last block of runs. */
static void check_tall(void)
{
    const int64_t panel = sdx_gemm_f32_panel();
    for (int bits = 4; bits <= 8; bits += 4)
        for (int64_t m = 8; m < 150; m = m * 2 + 1)
            for (int64_t block = 32; block <= 1024; block = block * 3 / 2 / 32 * 32 + 32)
                for (int64_t k = 32; k <= 1400; k = k * 4 + 192) {
                    const struct sdx_nbits w = {.n = panel + random_int(1, panel),
                                                .k = k,
                                                .block = block,
                                                .bits = bits,
                                                .has_zeros = random_bits() & 1};
                    struct sdx_nbits whole = w;
                    whole.whole = true;
                    whole.k = k > block ? k / block * block : k;
                    check_case(w, m, random_bits() & 1, SDX_ACT_NONE);
                    check_whole_case(whole, m, false);
                }
}
void check_nbits(void)
{
    const int64_t panel = sdx_gemm_f32_panel();
    static const int all_bits[] = {2, 4, 8};
    for (int b = 0; b < 3; b++)
        for (int64_t m = 1; m <= 7; m++)
            for (int64_t block = 16; block <= 128; block *= 2)
                for (int64_t k = 1; k <= 700; k = k * 5 + 4)
                    check_case((struct sdx_nbits){.n = panel * random_int(0, 4) + random_int(1, 9),
                                                  .k = k,
                                                  .block = block,
                                                  .bits = all_bits[b],
                                                  .has_zeros = random_bits() & 1},
                               m, random_bits() & 1,
                               random_bits() & 1 ? SDX_ACT_RELU : SDX_ACT_NONE);
    for (int b = 0; b < 3; b++)
        check_whole(all_bits[b]);
    for (int b = 0; b < 6; b++)
        check_not_finite(all_bits[b / 2], b % 2);
    for (int b = 0; b < 3; b++)
        check_far_numbers(all_bits[b]);
    check_case((struct sdx_nbits){.n = 133, .k = 1100, .block = 1104, .bits = 4}, 100, true,
               SDX_ACT_NONE);
    for (int b = 0; b < 3;
         b++) /* rows enough for decoded panels, and more than one round of them */
        for (int64_t m = 24, k = 700; m < 250; m = m * 3 + 5, k /= 3)
            for (int64_t block = 16; block <= 512; block *= 2)
                check_case((struct sdx_nbits){.n = panel + random_int(1, panel),
                                              .k = k,
                                              .block = block,
                                              .bits = all_bits[b],
                                              .has_zeros = random_bits() & 1},
                           m, random_bits() & 1, SDX_ACT_NONE);
    check_tall();
}

struct timed {
    struct weights s;
    float *a, *c;
    void *rows;
};
static void timed_run(void *arg)
{
    const struct timed *t = arg;
    const struct sdx_epilogue e = {.act = SDX_ACT_NONE};
    sdx_nbits_rows(&t->s.w, 1, t->a, t->s.w.k, 0, 1, t->rows);
    sdx_nbits_run(&t->s.w, t->s.packed, 1, t->rows, t->c, t->s.w.n, &e, 0, t->s.w.n);
}
double bench_nbits(void)
{
    const struct sdx_nbits w = {.n = 2048, .k = 2048, .block = 32, .bits = 4};
    struct timed t = {.s = make(w, false, false)};
    t.a = guarded((size_t)w.k * 4, 0);
    t.c = guarded((size_t)w.n * 4, 0);
    t.rows = guarded(sdx_nbits_rows_size(&w, 1), 0);
    for (int64_t k = 0; k < w.k; k++)
        t.a[k] = random_float(-1, 1);
    const double ns = best_ns(timed_run, &t) / (double)(w.n * w.k);
    guards_release();
    return ns;
}
