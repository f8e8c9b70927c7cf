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
