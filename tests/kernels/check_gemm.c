/* SPDX-License-Identifier: Apache-2.0
 * Checks of gemm.h: shapes around the tiles and blocks, strides, epilogues, splits, against f64
 * sums. The bound is the standard one for a chain of K additions. */
#include "kernelcheck.h"

#include "kernels/tuning.h"

struct product {
    struct sdx_gemm_f32 g;
    float *a, *b, *c, *before;
    int64_t row_b, col_b;
    int64_t size_c;
    bool is_tiles;
};
static void fill(float *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        p[i] = random_float(-1.0f, 1.0f);
}
/* Random operands for m x n x k; bits of `how` choose the layouts. */
static struct product make(int64_t m, int64_t n, int64_t k, unsigned how)
{
    struct product p;
    memset(&p, 0, sizeof p);
    p.g.m = m;
    p.g.n = n;
    p.g.k = k;
    p.g.row_c = n + (how & 1 ? 3 : 0);
    p.g.row_a = how & 2 ? 1 : k + (how & 1);
    p.g.col_a = how & 2 ? m + (how & 1) : 1;
    p.row_b = how & 4 ? 1 : n + (how & 1);
    p.col_b = how & 4 ? k + (how & 1) : 1;
    const size_t offset = how & 1 ? 4 : 0, one = sizeof(float);
    p.a = guarded((size_t)((m + 1) * (k + 1)) * one, offset);
    p.b = guarded((size_t)((n + 1) * (k + 1)) * one, offset);
    p.size_c = m > 0 && n > 0 ? (m - 1) * p.g.row_c + n : 0;
    p.c = guarded((size_t)p.size_c * one, offset);
    p.before = guarded((size_t)p.size_c * one, 0);
    fill(p.a, (m + 1) * (k + 1));
    fill(p.b, (n + 1) * (k + 1));
    fill(p.c, p.size_c);
    memcpy(p.before, p.c, (size_t)p.size_c * one);
    p.g.a = p.a;
    p.g.c = p.c;
    p.g.alpha = 1.0f;
    return p;
}
static void give_epilogue(struct product *p, unsigned how, enum sdx_act act)
{
    const size_t one = sizeof(float);
    p->g.epilogue.act = act;
    p->g.epilogue.a = act == SDX_ACT_CLIP ? -0.5f : 0.2f;
    p->g.epilogue.b = 0.5f;
    if (how & 8) {
        float *bias = guarded((size_t)p->g.n * one, 0);
        fill(bias, p->g.n);
        p->g.epilogue.bias_col = bias;
    }
    if (how & 16) {
        float *bias = guarded((size_t)p->g.m * one, 0);
        fill(bias, p->g.m);
        p->g.epilogue.bias_row = bias;
    }
    if (how & 32) {
        float *residual = guarded((size_t)p->size_c * one, 0);
        fill(residual, p->size_c);
        p->g.epilogue.residual = residual;
    }
    p->g.accumulate = how & 128;
    if (how & 64 && !p->g.accumulate) p->g.alpha = 0.75f;
}
/* What a sum of terms of `size` in all may be off. */
static double bound_of(const struct product *p, int64_t i, int64_t j, double size)
{
    const struct sdx_gemm_f32 *g = &p->g;
    double a = 0, b = 0;
    if (!p->is_tiles) return 2.0 * (double)g->k * size * 6e-8;
    for (int64_t k = 0; k < g->k; k++) {
        a = fmax(a, fabs((double)g->a[i * g->row_a + k * g->col_a]));
        b = fmax(b, fabs((double)p->b[k * p->row_b + j * p->col_b]));
    }
    return (double)g->k * 0x1p-20 * a * b;
}
static void compare(const struct product *p)
{
    const struct sdx_gemm_f32 *g = &p->g;
    const struct sdx_epilogue *e = &g->epilogue;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < g->k; k++) {
                const double t =
                    (double)g->a[i * g->row_a + k * g->col_a] * p->b[k * p->row_b + j * p->col_b];
                sum += t;
                size += fabs(t);
            }
            sum *= g->alpha;
            if (g->accumulate) sum += p->before[i * g->row_c + j];
            if (e->bias_row) sum += e->bias_row[i];
            if (e->bias_col) sum += e->bias_col[j];
            if (e->residual) sum += e->residual[i * g->row_c + j];
            const double exact = exact_activation(sum, e);
            const double bound = bound_of(p, i, j, size) + 8.0 * 6e-8;
            const float got = g->c[i * g->row_c + j];
            if (!expect(fabs(got - exact) <= bound,
                        "%lldx%lldx%lld at %lld,%lld: %.9g, expected %.9g (act %d)",
                        (long long)g->m, (long long)g->n, (long long)g->k, (long long)i,
                        (long long)j, got, exact, e->act))
                return;
        }
    for (int64_t i = 0; g->n > 0 && i + 1 < g->m; i++) /* between the rows */
        for (int64_t j = g->n; j < g->row_c; j++)
            expect(g->c[i * g->row_c + j] == p->before[i * g->row_c + j],
                   "wrote between rows of C");
}

/* Runs the ranges one by one, as parts would. */
static void run(const struct product *p, bool plain, int64_t step_m, int64_t step_n)
{
    const struct sdx_gemm_f32 *g = &p->g;
    void *scratch = guarded(plain     ? sdx_gemm_f32_plain_scratch(g->m, g->n, g->k)
                            : g->half ? sdx_gemm_half_scratch(g->m, g->n, g->k)
                                      : sdx_gemm_f32_scratch(g->m, g->n, g->k),
                            0);
    for (int64_t i = 0; i < g->m; i += step_m)
        for (int64_t j = 0; j < g->n; j += step_n) {
            const int64_t i1 = i + step_m < g->m ? i + step_m : g->m;
            const int64_t j1 = j + step_n < g->n ? j + step_n : g->n;
            if (plain)
                sdx_gemm_f32_plain(g, p->b, p->row_b, p->col_b, i, i1, j, j1, scratch);
            else
                sdx_gemm_f32_run(g, i, i1, j, j1, scratch);
        }
}
static void pack(struct product *p)
{
    float *packed = guarded(sdx_gemm_f32_packed_size(p->g.k, p->g.n), 0);
    sdx_gemm_f32_pack(p->b, p->row_b, p->col_b, p->g.k, p->g.n, packed);
    p->g.packed = packed;
}
/* The same bits from a copy of A in blocks. */
static void check_blocks(const struct product *p, const float *whole)
{
    struct product q = *p;
    float *blocks = guarded((size_t)(q.g.m * q.g.k) * sizeof(float), 0);
    for (int64_t i = 0; i < q.g.m; i += 3)
        sdx_gemm_f32_block_a(&p->g, i, i + 3 < q.g.m ? i + 3 : q.g.m, blocks);
    q.g.a = blocks;
    q.g.a_in_blocks = true;
    memcpy(q.c, q.before, (size_t)q.size_c * sizeof(float));
    run(&q, false, q.g.m > 3 ? q.g.m / 3 : 1, sdx_gemm_f32_panel());
    expect(memcmp(whole, q.c, (size_t)q.size_c * sizeof(float)) == 0,
           "%lldx%lldx%lld: other bits from blocks of A", (long long)q.g.m, (long long)q.g.n,
           (long long)q.g.k);
}
/* The same bits where the residual lies in C, which is cut into ranges. */
static void check_over(const struct product *p)
{
    struct product q = *p;
    const size_t size = (size_t)p->size_c * sizeof(float);
    float *whole = guarded(size, 0);
    q.g.alpha = 1.0f;
    q.g.accumulate = false;
    q.g.residual_first = true;
    memcpy(q.c, q.before, size);
    run(&q, false, q.g.m + 1, q.g.n + 1);
    compare(&q);
    memcpy(whole, q.c, size);
    memcpy(q.c, q.before, size);
    for (int64_t i = 0; i < q.g.m; i++)
        memcpy(q.c + i * q.g.row_c, q.g.epilogue.residual + i * q.g.row_c,
               (size_t)q.g.n * sizeof(float));
    q.g.epilogue.residual = q.c;
    run(&q, false, q.g.m > 3 ? q.g.m / 3 : 1, sdx_gemm_f32_panel());
    expect(memcmp(whole, q.c, size) == 0, "%lldx%lldx%lld: other bits over the residual",
           (long long)q.g.m, (long long)q.g.n, (long long)q.g.k);
}
static void check_case(int64_t m, int64_t n, int64_t k, unsigned how, enum sdx_act act, bool plain)
{
    struct product p = make(m, n, k, how);
    give_epilogue(&p, how, act);
    if (!plain) pack(&p);
    run(&p, plain, m + 1, n + 1);
    compare(&p);
    /* the same bits when cut into ranges */
    float *whole = guarded((size_t)p.size_c * sizeof(float), 0);
    memcpy(whole, p.c, (size_t)p.size_c * sizeof(float));
    memcpy(p.c, p.before, (size_t)p.size_c * sizeof(float));
    run(&p, plain, m > 3 ? m / 3 : 1, sdx_gemm_f32_panel());
    expect(memcmp(whole, p.c, (size_t)p.size_c * sizeof(float)) == 0,
           "%lldx%lldx%lld: other bits when split", (long long)m, (long long)n, (long long)k);
    if (!plain) check_blocks(&p, whole);
    if (!plain && p.g.epilogue.residual) check_over(&p);
    guards_intact();
    guards_release();
}
static void check_product(bool plain)
{
    const int64_t panel = sdx_gemm_f32_panel();
    for (int64_t m = 0; m <= 15; m++)
        for (int64_t n = 0; n <= 2 * panel + 1;
             n += n < 3 || n % (panel / 2) < 2 ? 1 : panel / 2 - 2)
            for (int64_t k = 0; k <= 19; k += k < 3 ? 1 : 8)
                check_case(m, n, k, random_bits() & 255, SDX_ACT_NONE, plain);
    for (int act = 0; act <= SDX_ACT_GELU_TANH; act++)
        for (unsigned how = 0; how < 256; how += 37) {
            check_case(7, 3 * panel + 5, 11, how, (enum sdx_act)act, plain);
            check_case(1, 9 * panel, 21, how, (enum sdx_act)act, plain);
        }
    for (int64_t m = 2; m <= 4; m++) /* several panels at once */
        for (unsigned how = 0; how < 256; how += 29)
            check_case(m, 7 * panel + panel / 2 * (m - 2) + (m == 3), 37, how, SDX_ACT_SILU, plain);
    const int64_t deep = sdx_kernel_tuning()->whole_k + 37;
    for (unsigned how = 0; how < 256; how += 51) {
        check_case(5, panel + 1, deep, how, SDX_ACT_RELU, plain);
        check_case(29, 2 * panel, deep, how, SDX_ACT_NONE, plain);
        check_case(200, 70, 300, how, SDX_ACT_CLIP, plain);
    }
    /* a row alone has the bits of the row among others */
    for (int64_t k = 5; k < 2000; k = k * 3 + 1) {
        struct product p = make(9, 5 * panel + 3, k, 0);
        if (!plain) pack(&p);
        run(&p, plain, 9, p.g.n);
        struct product one = p;
        one.g.m = 1;
        one.g.a = p.a + 4 * p.g.row_a;
        one.g.c = guarded((size_t)p.g.n * sizeof(float), 0);
        run(&one, plain, 1, p.g.n);
        expect(memcmp(one.g.c, p.c + 4 * p.g.row_c, (size_t)p.g.n * sizeof(float)) == 0,
               "K %lld: a row alone has other bits", (long long)k);
        guards_release();
    }
}

/* ---- tiles ---- */

enum { AS_F16 = 256, AS_BF16 = 512 }; /* bits of `how` for B */
static struct product make_tiles(int64_t m, int64_t n, int64_t k, unsigned how, float **plain_a)
{
    struct product p = make(m, n, k, how & ~2u); /* rows of A lie together */
    p.is_tiles = true;
    p.g.half = how & AS_F16 ? SDX_HALF_F16 : how & AS_BF16 ? SDX_HALF_BF16 : SDX_HALF_NONE;
    const size_t size =
        (p.g.half ? sdx_gemm_half_tiles_packed_size : sdx_gemm_tiles_packed_size)(k, n);
    void *packed = guarded(size, 0);
    if (p.g.half) {
        const int64_t count = (n + 1) * (k + 1);
        uint16_t *b = guarded((size_t)count * sizeof *b, how & 1 ? 2 : 0);
        random_half(p.g.half, p.b, b, count);
        sdx_gemm_half_tiles_pack(b, p.row_b, p.col_b, p.g.half, k, n, packed);
    } else {
        sdx_gemm_tiles_pack(p.b, p.row_b, p.col_b, NULL, k, n, packed);
    }
    p.g.packed = packed;
    *plain_a = p.a;
    return p;
}
/* A as tiles, some at a time, and the product in ranges of step_t tiles by step_n columns. */
static void run_tiles(struct product *p, const float *a, int64_t step_t, int64_t step_n)
{
    struct sdx_gemm_f32 g = p->g;
    const int64_t height = sdx_gemm_f32_tile_rows(g.m), tiles = (g.m + height - 1) / height;
    void *in_tiles = guarded(sdx_gemm_f32_tiles_size(g.m, g.k), 0);
    void *scratch = g.half ? guarded(sdx_gemm_half_tiles_scratch(g.k), 0) : NULL;
    g.a = a;
    for (int64_t t = 0; t < tiles; t += 3)
        sdx_gemm_f32_tile_a(&g, t, t + 3 < tiles ? t + 3 : tiles, in_tiles);
    g.a_tiles = in_tiles;
    for (int64_t t = 0; t < tiles; t += step_t)
        for (int64_t j = 0; j < g.n; j += step_n) {
            const int64_t i1 = (t + step_t) * height, j1 = j + step_n;
            sdx_gemm_f32_run(&g, t * height, i1 < g.m ? i1 : g.m, j, j1 < g.n ? j1 : g.n, scratch);
        }
}
static void check_tiles_case(int64_t m, int64_t n, int64_t k, unsigned how, enum sdx_act act)
{
    float *a;
    struct product p = make_tiles(m, n, k, how, &a);
    const size_t size = (size_t)p.size_c * sizeof(float);
    float *whole = guarded(size, 0);
    give_epilogue(&p, how, act);
    run_tiles(&p, a, m, n);
    compare(&p);
    memcpy(whole, p.c, size);
    memcpy(p.c, p.before, size);
    run_tiles(&p, a, 1, sdx_gemm_f32_panel());
    expect(memcmp(whole, p.c, size) == 0, "%lldx%lldx%lld: other bits when split", (long long)m,
           (long long)n, (long long)k);
    memcpy(p.c, p.before, size);
    for (int64_t i = 0; i < m; i++) { /* each row by itself */
        struct product one = p;
        one.g.m = 1;
        one.g.c = p.c + i * p.g.row_c;
        if (one.g.epilogue.bias_row) one.g.epilogue.bias_row += i;
        if (one.g.epilogue.residual) one.g.epilogue.residual += i * p.g.row_c;
        run_tiles(&one, a + i * p.g.row_a, 1, n);
    }
    expect(memcmp(whole, p.c, size) == 0, "%lldx%lldx%lld: a row alone has other bits",
           (long long)m, (long long)n, (long long)k);
    guards_intact();
    guards_release();
}
/* Numbers of all sizes; infinity and NaN come out where they belong. */
static void check_tiles_range(int64_t m, unsigned how)
{
    const int64_t n = 45, k = 100;
    float *a;
    struct product p = make_tiles(m, n, k, how, &a);
    const float large = 3.4028235e38f, bad[] = {INFINITY, -INFINITY, NAN, large, -large};
    for (int64_t i = 0; i < m * k; i++)
        a[i] = ldexpf(a[i], (int)random_int(-60, 60));
    for (int i = 0; i < 5; i++)
        a[(5 * i + 3) % m * k + 7 * i + 40] = bad[i];
    run_tiles(&p, a, 1, n);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int64_t e = 0; e < k; e++) {
                sum += (double)a[i * k + e] * p.b[e * p.row_b + j];
                size += fabs((double)a[i * k + e] * p.b[e * p.row_b + j]);
            }
            const float got = p.g.c[i * p.g.row_c + j];
            const bool right = isnan(sum)   ? isnan(got)
                               : isinf(sum) ? (double)got == sum
                                            : fabs(got - sum) <= bound_of(&p, i, j, size);
            expect(right, "at %lld,%lld: %.9g, expected %.9g", (long long)i, (long long)j, got,
                   sum);
        }
    guards_release();
}
/* Sums of whole numbers of 16 bits are exact. Of others the three digits are made use of, wherever
 * the largest one lies between two powers of 2: root mean square of the error. */
static void check_tiles_digits(bool whole)
{
    const int64_t m = 32, n = 64, k = 192;
    float *a;
    struct product p = make_tiles(m, n, k, 0, &a);
    for (int64_t i = 0; i < m * k; i++)
        a[i] = whole ? (float)random_int(-127, 127) : a[i] * (1.0f + (float)(i / k) / (float)m);
    for (int64_t i = 0; i < k * n; i++)
        p.b[i] = whole ? (float)random_int(-127, 127) : p.b[i] * (1.0f + (float)(i % n) / (float)n);
    void *packed = guarded(sdx_gemm_tiles_packed_size(k, n), 0);
    sdx_gemm_tiles_pack(p.b, n, 1, NULL, k, n, packed);
    p.g.packed = packed;
    run_tiles(&p, a, 1, n);
    double squares = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t e = 0; e < k; e++)
                sum += (double)a[i * k + e] * p.b[e * n + j];
            const double off = p.g.c[i * n + j] - sum;
            /* sqrt(k) 2^-24 max|a| max|b| */
            const double most = bound_of(&p, i, j, 0) * 0x1p-4 / sqrt((double)k);
            squares += off / most * (off / most);
            expect(!whole || off == 0, "at %lld,%lld: %.9g, expected %.9g", (long long)i,
                   (long long)j, p.g.c[i * n + j], sum);
        }
    expect(squares <= (double)(m * n), "root mean square of the error: %.3g of the bound",
           sqrt(squares / (double)(m * n)));
    guards_release();
}
void check_gemm_tiles(void)
{
    check_tiles_digits(true);
    check_tiles_digits(false);
    const int64_t panel = sdx_gemm_f32_panel();
    for (int64_t m = 1; m <= 70; m += m < 20 ? 1 : 7)
        check_tiles_case(m, 1 + random_int(0, 3 * panel), 1 + random_int(0, 140),
                         random_bits() & 1023, SDX_ACT_NONE);
    for (int act = 0; act <= SDX_ACT_GELU_TANH; act++)
        for (unsigned how = 0; how < 256; how += 37)
            check_tiles_case(33, 3 * panel + 5, 75, how, (enum sdx_act)act);
    const int64_t whole = sdx_kernel_tuning()->whole_k;
    for (unsigned how = 0; how < 1024; how += 51) {
        check_tiles_case(20, panel + 1, whole, how, SDX_ACT_RELU);
        check_tiles_case(20, 2 * panel, whole + 37, how, SDX_ACT_NONE);
    }
    for (unsigned form = 0; form <= AS_BF16; form += AS_F16)
        for (int64_t m = 2; m <= 37; m += 35)
            check_tiles_range(m, form);
}

/* Packed in pieces, which follow each other: the same bits. */
static void check_pieces(int64_t n, int64_t k, unsigned how)
{
    struct product p = make(1, n, k, how);
    const size_t size = sdx_gemm_f32_packed_size(k, n);
    float *packed = guarded(size, 0);
    const sdx_weight_f32 *next = p.b;
    pack(&p);
    sdx_gemm_f32_pack_in_pieces(p.b, p.row_b, p.col_b, k, n, packed,
                                &(struct sdx_pieces){expect_piece, &next});
    expect(memcmp(packed, p.g.packed, size) == 0, "%lldx%lld: other bits in pieces", (long long)k,
           (long long)n);
    expect(next == p.b + k * n, "%lldx%lld: pieces end at %lld", (long long)k, (long long)n,
           (long long)(next - p.b));
    guards_intact();
    guards_release();
}

/* A few columns; the same bits row by row. */
static void check_columns(int64_t m, int64_t n, int64_t k, enum sdx_act act)
{
    struct product p = make(m, n, k, 4);
    const size_t size = (size_t)p.size_c * sizeof(float);
    float *whole = guarded(size, 0);
    give_epilogue(&p, 8, act);
    p.g.packed = p.b;
    sdx_gemm_f32_columns(&p.g, 0, m);
    compare(&p);
    memcpy(whole, p.c, size);
    memcpy(p.c, p.before, size);
    for (int64_t i = 0; i < m; i++)
        sdx_gemm_f32_columns(&p.g, i, i + 1);
    expect(memcmp(whole, p.c, size) == 0, "%lldx%lldx%lld: other bits row by row", (long long)m,
           (long long)n, (long long)k);
    guards_intact();
    guards_release();
}

/* Small matrices, A or B turned; the same bits one by one. */
static void check_small(int64_t count, struct sdx_gemm_small g)
{
    const int64_t mk = g.m * g.k, kn = g.k * g.n, mn = g.m * g.n;
    float *a = guarded((size_t)(count * mk) * 4, 4), *b = guarded((size_t)(count * kn) * 4, 4);
    float *c = guarded((size_t)(count * mn) * 4, 4), *one = guarded((size_t)mn * 4, 4);
    for (int64_t i = 0; i < count * mk; i++)
        a[i] = random_float(-1, 1);
    for (int64_t i = 0; i < count * kn; i++)
        b[i] = random_float(-1, 1);
    sdx_gemm_f32_small(&g, count, a, b, c);
    for (int64_t p = 0; p < count; p++) {
        sdx_gemm_f32_small(&g, 1, a + p * mk, b + p * kn, one);
        for (int64_t at = 0; at < mn; at++) {
            const int64_t i = at / g.n, j = at % g.n;
            double right = 0, size = 0;
            for (int64_t k = 0; k < g.k; k++) {
                const double x = (double)a[p * mk + i * g.row_a + k * g.col_a];
                const double y = (double)b[p * kn + k * g.row_b + j * g.col_b];
                right += x * y;
                size += fabs(x * y);
            }
            expect(fabs(c[p * mn + at] - right) <= 5e-7 * size, "small: %.9g", c[p * mn + at]);
            expect(c[p * mn + at] == one[at], "small: other bits alone: %.9g", one[at]);
        }
    }
    guards_intact();
    guards_release();
}

void check_gemm_f32(void)
{
    check_product(false);
    for (int64_t at = 0; at < 64; at++) {
        const int64_t m = 1 + at % 4, n = 1 + at / 4 % 4, k = 1 + at / 16;
        check_small(1 + 9 * at % 150, (struct sdx_gemm_small){m, n, k, k, 1, n, 1});
        check_small(1 + 7 * at % 70, (struct sdx_gemm_small){m, n, k, 1, m, 1, k});
    }
    for (int64_t n = 1; n <= SDX_GEMM_COLUMNS; n++) {
        check_columns(1 + 23 * n, n, 1 + 19 * n, SDX_ACT_NONE);
        check_columns(n, n, 3 + 700 * n, SDX_ACT_SIGMOID);
        check_columns(70, n, 40, SDX_ACT_CLIP);
        for (int64_t k = 1; k <= SDX_GEMM_SHORT_ROW; k += k < 4 ? 1 : 5)
            check_columns(1 + 43 * n, n, k, k % 2 ? SDX_ACT_NONE : SDX_ACT_SIGMOID);
    }
    for (unsigned how = 0; how <= 4; how += 4) {
        check_pieces(1003, 2500, how);
        check_pieces(5, 7, how);
        check_pieces(1, 7, how);
    }
}
/* A column by rows: within its bound, and a row's bits do not depend on those beside it. */
static void check_rows_dot(int64_t m, int64_t k)
{
    const int64_t row_a = k + random_int(0, 5);
    float *a = guarded((size_t)(m * row_a) * sizeof *a, 4), *x = guarded((size_t)k * sizeof *x, 8);
    float *y = guarded((size_t)m * sizeof *y, 4), alone;
    for (int64_t i = 0; i < m * row_a; i++)
        a[i] = random_float(-1, 1);
    for (int64_t i = 0; i < k; i++)
        x[i] = random_float(-1, 1);
    sdx_gemm_f32_rows_dot(a, row_a, x, m, k, y);
    for (int64_t i = 0; i < m; i++) {
        double sum = 0, most = 0;
        for (int64_t j = 0; j < k; j++) {
            sum += (double)a[i * row_a + j] * x[j];
            most += fabs((double)a[i * row_a + j] * x[j]);
        }
        expect(fabs(y[i] - sum) <= 2 * (double)k * 0x1p-24 * most,
               "%lldx%lld, row %lld: %.9g, expected %.9g", (long long)m, (long long)k, (long long)i,
               y[i], sum);
        sdx_gemm_f32_rows_dot(a + i * row_a, row_a, x, 1, k, &alone);
        expect(memcmp(&alone, y + i, sizeof alone) == 0, "%lldx%lld, row %lld: other bits alone",
               (long long)m, (long long)k, (long long)i);
    }
    guards_intact();
    guards_release();
}

void check_gemm_f32_plain(void)
{
    check_product(true);
    for (int64_t m = 1; m <= 11; m += 2)
        for (int64_t k = 1; k <= 300; k += 1 + k / 5)
            check_rows_dot(m, k);
}

/* 16-bit weights give the bits that the same weights as f32 give, however it is split. */
static void check_half_case(int64_t m, int64_t n, int64_t k, unsigned how, enum sdx_half half)
{
    struct product p = make(m, n, k, how);
    const int64_t count = (n + 1) * (k + 1);
    const size_t bytes = (size_t)p.size_c * sizeof(float);
    uint16_t *b = guarded((size_t)count * sizeof *b, how & 1 ? 2 : 0);
    uint16_t *packed = guarded(sdx_gemm_half_packed_size(k, n), 0);
    float *wanted = guarded(bytes, 0);
    random_half(half, p.b, b, count);
    give_epilogue(&p, how, SDX_ACT_RELU);
    pack(&p);
    run(&p, false, m + 1, n + 1);
    memcpy(wanted, p.c, bytes);
    sdx_gemm_half_pack(b, p.row_b, p.col_b, k, n, packed);
    p.g.packed = packed;
    p.g.half = half;
    for (int split = 0; split < 2; split++) {
        memcpy(p.c, p.before, bytes);
        if (split)
            run(&p, false, m > 3 ? m / 3 : 1, sdx_gemm_f32_panel());
        else
            run(&p, false, m + 1, n + 1);
        expect(memcmp(wanted, p.c, bytes) == 0, "%lldx%lldx%lld, form %d: other bits than f32",
               (long long)m, (long long)n, (long long)k, (int)half);
    }
    guards_intact();
    guards_release();
}
void check_gemm_half(void)
{
    const int64_t panel = sdx_gemm_f32_panel(), deep = sdx_kernel_tuning()->whole_k + 37;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const enum sdx_half half = bf16 ? SDX_HALF_BF16 : SDX_HALF_F16;
        for (int64_t m = 0; m <= 15; m++)
            for (int64_t n = 1; n <= 9 * panel; n += panel / 2 + 3)
                check_half_case(m, n, random_int(0, 40), random_bits() & 255, half);
        for (unsigned how = 0; how < 256; how += 51) {
            check_half_case(2, 7 * panel + 1, deep, how, half);
            check_half_case(29, 5 * panel + 3, deep, how, half);
            check_half_case(200, 300, 300, how, half);
        }
    }
}

void check_gemm_b32(void)
{
    for (int64_t m = 0; m < 10; m++)
        for (int64_t n = 0; n < 40; n += 3)
            for (int64_t k = 0; k < 300; k = k * 4 + 1) {
                const bool turned = random_bits() & 1;
                uint32_t *a = guarded((size_t)(m * k) * 4, 4), *b = guarded((size_t)(k * n) * 4, 0);
                uint32_t *c = guarded((size_t)(m * n) * 4, 4);
                for (int64_t i = 0; i < m * k; i++)
                    a[i] = random_bits();
                for (int64_t i = 0; i < k * n; i++)
                    b[i] = random_bits();
                sdx_gemm_b32(m, n, k, a, turned ? 1 : k, turned ? m : 1, b, turned ? 1 : n,
                             turned ? k : 1, c, n);
                for (int64_t i = 0; i < m; i++)
                    for (int64_t j = 0; j < n; j++) {
                        uint32_t sum = 0;
                        for (int64_t e = 0; e < k; e++)
                            sum += (turned ? a[e * m + i] : a[i * k + e]) *
                                   (turned ? b[j * k + e] : b[e * n + j]);
                        expect(c[i * n + j] == sum, "%lldx%lldx%lld at %lld,%lld: %u, expected %u",
                               (long long)m, (long long)n, (long long)k, (long long)i, (long long)j,
                               (unsigned)c[i * n + j], (unsigned)sum);
                    }
                guards_release();
            }
}

void check_gemm_f64(void)
{
    for (int64_t m = 0; m < 10; m++)
        for (int64_t n = 0; n < 20; n += 3)
            for (int64_t k = 0; k < 300; k = k * 4 + 1) {
                const bool turned = random_bits() & 1;
                const double beta = random_bits() & 1 ? 0.5 : 0.0;
                double *a = guarded((size_t)(m * k) * 8, 8), *b = guarded((size_t)(k * n) * 8, 0);
                double *c = guarded((size_t)(m * n) * 8, 8), *d = guarded((size_t)(m * n) * 8, 0);
                for (int64_t i = 0; i < m * k; i++)
                    a[i] = random_float(-1, 1);
                for (int64_t i = 0; i < k * n; i++)
                    b[i] = random_float(-1, 1);
                for (int64_t i = 0; i < m * n; i++)
                    c[i] = d[i] = beta == 0.0 ? NAN : random_float(-1, 1);
                sdx_gemm_f64(m, n, k, 1.5, a, turned ? 1 : k, turned ? m : 1, b, turned ? 1 : n,
                             turned ? k : 1, beta, c, n);
                for (int64_t i = 0; i < m; i++)
                    for (int64_t j = 0; j < n; j++) {
                        double sum = 0;
                        for (int64_t e = 0; e < k; e++)
                            sum += (turned ? a[e * m + i] : a[i * k + e]) *
                                   (turned ? b[j * k + e] : b[e * n + j]);
                        sum = 1.5 * sum + (beta == 0.0 ? 0.0 : beta * d[i * n + j]);
                        expect(fabs(c[i * n + j] - sum) < 1e-12,
                               "%lldx%lldx%lld at %lld,%lld: %g, expected %g", (long long)m,
                               (long long)n, (long long)k, (long long)i, (long long)j, c[i * n + j],
                               sum);
                    }
                guards_intact();
                guards_release();
            }
}

struct timed {
    struct product p;
    bool plain;
    void *scratch;
    void *tiles; /* of A; NULL: none */
};
static void timed_run(void *arg)
{
    struct timed *t = arg;
    const struct sdx_gemm_f32 *g = &t->p.g;
    if (t->tiles) {
        struct sdx_gemm_f32 tiled = *g;
        const int64_t height = sdx_gemm_f32_tile_rows(g->m);
        sdx_gemm_f32_tile_a(g, 0, (g->m + height - 1) / height, t->tiles);
        tiled.a_tiles = t->tiles;
        sdx_gemm_f32_run(&tiled, 0, g->m, 0, g->n, t->scratch);
        return;
    }
    if (t->plain)
        sdx_gemm_f32_plain(g, t->p.b, t->p.row_b, t->p.col_b, 0, g->m, 0, g->n, t->scratch);
    else
        sdx_gemm_f32_run(g, 0, g->m, 0, g->n, t->scratch);
}
static double bench_product(bool plain, bool tiles, enum sdx_half half)
{
    static const int64_t shapes[][3] = {{128, 384, 384},  {128, 1536, 384}, {128, 384, 1536},
                                        {256, 768, 768},  {128, 768, 3072}, {64, 3136, 576},
                                        {1, 2048, 512},   {1, 1008, 2048},  {4, 2048, 512},
                                        {128, 3072, 768}, {197, 3072, 768}};
    double total = 0, macs = 0;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        struct timed t = {.p = make(m, n, k, 0), .plain = plain};
        if (!plain && !half) pack(&t.p);
        if (half) {
            uint16_t *b = guarded((size_t)(n * k) * 2, 0);
            uint16_t *packed = guarded(sdx_gemm_half_packed_size(k, n), 0);
            sdx_half_encode(half, t.p.b, b, n * k);
            sdx_gemm_half_pack(b, n, 1, k, n, packed);
            t.p.g.packed = packed;
            t.p.g.half = half;
        }
        t.scratch = guarded(sdx_gemm_f32_plain_scratch(m, n, k), 0);
        if (tiles) {
            void *packed = guarded(sdx_gemm_tiles_packed_size(k, n), 0);
            sdx_gemm_tiles_pack(t.p.b, n, 1, NULL, k, n, packed);
            t.p.g.packed = packed;
            t.tiles = guarded(sdx_gemm_f32_tiles_size(m, k), 0);
        }
        const double ns = best_ns(timed_run, &t);
        fprintf(stderr, "  %lldx%lldx%lld: %.1f us, %.1f GFLOP/s\n", (long long)m, (long long)n,
                (long long)k, ns / 1000, 2.0 * (double)(m * n * k) / ns);
        total += ns;
        macs += (double)(m * n * k);
        guards_release();
    }
    return total / macs;
}
double bench_gemm_f32(void)
{
    return bench_product(false, false, SDX_HALF_NONE);
}
double bench_gemm_tiles(void)
{
    return bench_product(false, true, SDX_HALF_NONE);
}
double bench_gemm_half(void)
{
    return bench_product(false, false, SDX_HALF_F16);
}
double bench_gemm_f32_plain(void)
{
    return bench_product(true, false, SDX_HALF_NONE);
}
static void timed_b32(void *arg)
{
    uint32_t *p = arg;
    sdx_gemm_b32(64, 64, 64, p, 64, 1, p + 4096, 64, 1, p + 8192, 64);
}
double bench_gemm_b32(void)
{
    uint32_t *p = guarded(3 * 4096 * sizeof(uint32_t), 0);
    for (int i = 0; i < 3 * 4096; i++)
        p[i] = random_bits();
    return best_ns(timed_b32, p) / (64.0 * 64 * 64);
}
static void timed_f64(void *arg)
{
    double *p = arg;
    sdx_gemm_f64(64, 64, 64, 1.0, p, 64, 1, p + 4096, 64, 1, 0.0, p + 8192, 64);
}
double bench_gemm_f64(void)
{
    double *p = guarded(3 * 4096 * sizeof(double), 0);
    for (int i = 0; i < 3 * 4096; i++)
        p[i] = 1.0 / (i + 1);
    return best_ns(timed_f64, p) / (64.0 * 64 * 64);
}
