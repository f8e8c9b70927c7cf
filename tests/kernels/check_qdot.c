/* SPDX-License-Identifier: Apache-2.0
 * Checks of qdot.h and qbytes.h: the integers must be exact, also where all products have the
 * greatest size, and the bytes are the same on every set. */
#include "kernelcheck.h"
#include "kernels/qdot.h"

enum kind { UNIFORM, BELL, SMALL, ENDS, KINDS };

static uint8_t weight(enum kind kind)
{
    static const uint8_t ends[] = {0x80, 0x7f, 0x81, 0x80};
    int sum = 0;
    switch (kind) {
    case BELL:
        for (int i = 0; i < 4; i++)
            sum += (int)(random_bits() % 65) - 32;
        return (uint8_t)(sum > 127 ? 127 : sum);
    case SMALL: return (uint8_t)((int)(random_bits() % 41) - 20);
    case ENDS: return ends[random_bits() % 4];
    default: return (uint8_t)random_bits();
    }
}

struct product {
    struct sdx_qdot q;
    struct sdx_qdot_weights w;
    int64_t pitch, starts[8];
    const uint8_t *a;
    int32_t zero_a;
    const int32_t *bias;
};

static int64_t exact_sum(const struct product *p, int64_t row, int64_t j)
{
    const struct sdx_qdot_shape *s = &p->q.shape;
    int64_t sum = p->bias[j];
    const int32_t zero_w = p->q.store.zero_w ? p->q.store.zero_w[j] : 0;
    for (int64_t r = 0; r < s->runs; r++)
        for (int64_t i = 0; i < s->run; i++) {
            const int64_t at = r * p->w.step_run + i / p->w.inner * p->w.step_outer +
                               i % p->w.inner * p->w.step_inner + j * p->w.step_n;
            const uint8_t byte = ((const uint8_t *)p->w.w)[at];
            const int w = p->w.is_signed ? (int8_t)byte : byte - 128;
            sum += (int64_t)(p->a[row * p->pitch + p->starts[r] + i] - p->zero_a) * (w - zero_w);
        }
    return sum;
}

static bool right(const struct product *p, int64_t row, int64_t j)
{
    const struct sdx_qdot_store *st = &p->q.store;
    const int64_t at = row * st->pitch + j;
    const int32_t sum = (int32_t)exact_sum(p, row, j);
    if (st->to == SDX_QDOT_SUMS) return ((const int32_t *)st->y)[at] == sum;
    const float v = (float)sum * st->factor[j];
    if (st->to == SDX_QDOT_FLOATS)
        return same_bits(((const float *)st->y)[at], st->bias ? v + st->bias[j] : v);
    double q = nearbyint((double)v) + st->zero;
    q = q < st->lo ? st->lo : q > st->hi ? st->hi : q;
    const uint8_t byte = (uint8_t)((int)q ^ st->flip);
    return ((const uint8_t *)st->y)[at] == (st->table ? st->table[byte] : byte);
}

static void fill_store(struct product *p, int64_t m, int64_t width, unsigned how)
{
    struct sdx_qdot_store *st = &p->q.store;
    const struct sdx_qdot_shape *s = &p->q.shape;
    int32_t *zero_w = guarded((size_t)width * 4, 4), *sums = guarded((size_t)m * 4, 4);
    float *factor = guarded((size_t)width * 4, 0), *bias = guarded((size_t)width * 4, 0);
    uint8_t *table = guarded(256, 1);
    for (int64_t j = 0; j < width; j++) {
        zero_w[j] = (int32_t)random_int(-256, 255);
        factor[j] = j % 5 ? random_float(1e-5f, 4e-3f) : how & 64 ? SDX_QDOT_SMALL : 1e6f;
        bias[j] = random_float(-3, 3);
    }
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)random_bits();
    for (int64_t i = 0; i < m; i++) {
        int64_t sum = 0;
        for (int64_t r = 0; r < s->runs; r++)
            for (int64_t k = 0; k < s->run; k++)
                sum += p->a[i * p->pitch + p->starts[r] + k] - p->zero_a;
        sums[i] = (int32_t)sum;
    }
    st->to = (enum sdx_qdot_to)(how % 3);
    st->pitch = s->n + (int64_t)(how % 2);
    st->zero = (int32_t)random_int(0, 255);
    st->lo = how & 16 ? (int32_t)random_int(0, 100) : 0;
    st->hi = how & 16 ? (int32_t)random_int(100, 255) : 255;
    st->flip = how & 4 ? 0x80 : 0;
    if (how & 8) {
        st->zero_w = zero_w;
        st->row_sums = sums;
    }
    st->factor = factor;
    st->factors_are_small = how & 64;
    st->bias = how & 1 ? bias : NULL;
    st->table = how & 32 ? table : NULL;
    const size_t size = st->to == SDX_QDOT_BYTES ? 1 : 4;
    st->y = guarded((size_t)((m - 1) * st->pitch + s->n) * size, size);
}

static void check_product(int64_t m, int64_t n, int64_t runs, int64_t run, unsigned how)
{
    struct product p = {.q = {.shape = {n, runs, run}, .m = m}};
    const struct sdx_qdot_shape *s = &p.q.shape;
    p.q.shape.is_row = runs == 1 && how & 16 && sdx_kernel_tables()->qdot.row;
    const int64_t width = sdx_qdot_panels(s) * SDX_QDOT_COLS, slack = run < 4 ? 16 : 0;
    const bool in_place = runs == 1;
    const enum kind kind = (enum kind)(how % KINDS);
    for (int64_t r = 0; r < runs; r++)
        p.starts[r] = r * (run + 3);
    p.pitch = (runs - 1) * (run + 3) + run + (in_place ? 0 : 2);
    uint8_t *a = guarded((size_t)(m * p.pitch + slack), 1);
    for (int64_t i = 0; i < m * p.pitch + slack; i++)
        a[i] = kind == ENDS ? 255 : (uint8_t)random_bits();
    uint8_t *w = guarded((size_t)(n * runs * run), 3);
    for (int64_t i = 0; i < n * runs * run; i++)
        w[i] = weight(kind);
    p.w = (struct sdx_qdot_weights){.w = w,
                                    .is_signed = how & 1,
                                    .quickly = how % 7 == 3,
                                    .inner = run,
                                    .step_run = run,
                                    .step_inner = 1,
                                    .step_n = runs * run};
    if (how & 2) /* taps of two channels, as convolutions have them */
        if (run % 2 == 0) {
            p.w.inner = run / 2;
            p.w.step_outer = 1;
            p.w.step_inner = 2;
        }
    if (how & 64) { /* rows along the columns, as matrices have them */
        p.w.step_run = run * n;
        p.w.step_inner = n;
        p.w.step_outer = 0;
        p.w.step_n = 1;
        p.w.inner = run;
    }
    int32_t *bias = guarded((size_t)n * 4, 4), *start = guarded((size_t)width * 4, 4);
    for (int64_t j = 0; j < n; j++)
        bias[j] = (int32_t)random_int(-100000, 100000);
    const uint8_t **rows = guarded((size_t)m * sizeof *rows, 0);
    for (int64_t i = 0; i < m; i++)
        rows[i] = a + i * p.pitch;
    p.a = a;
    p.bias = bias;
    p.zero_a = (int32_t)random_int(0, 255);
    char *packed = guarded(sdx_qdot_packed_size(s), 0);
    struct sdx_qdot_step *steps = guarded((size_t)sdx_qdot_steps(s) * sizeof *steps, 0);
    const size_t used = sdx_qdot_pack(s, &p.w, packed);
    memset(packed + used, 0xa5, sdx_qdot_packed_size(s) - used); /* not read */
    sdx_qdot_place(s, packed, p.starts, steps);
    sdx_qdot_start(s, packed, 0, sdx_qdot_panels(s), p.zero_a, bias, start);
    fill_store(&p, m, width, how);
    p.q.packed = packed;
    p.q.steps = in_place && how & 1 ? NULL : steps;
    p.q.starts = p.q.steps ? p.starts : NULL;
    p.q.rows = rows;
    p.q.store.start = start;
    p.q.scratch = guarded(sdx_qdot_scratch(s, m), 0);
    for (int64_t panel = 0; panel < sdx_qdot_panels(s); panel++)
        sdx_qdot_run(&p.q, panel, panel + 1);
    bool ok = true;
    for (int64_t i = 0; i < m && ok; i++)
        for (int64_t j = 0; j < n && ok; j++)
            ok = expect(right(&p, i, j), "%lldx%lldx(%lld * %lld) case %u at %lld,%lld",
                        (long long)m, (long long)n, (long long)runs, (long long)run, how,
                        (long long)i, (long long)j);
    if (ok) guards_intact();
    guards_release();
}

void check_qdot(void)
{
    for (unsigned how = 0; how < 96; how++) {
        check_product(1 + how % 14, 1 + how % 50, 1, 1 + how % 67, how);
        check_product(7, 33, 1 + how % 5, 1 + how % 40, how);
        check_product(13, 16, 3, 192, how);
    }
    check_product(49, 64, 1, 2048, 1);
    check_product(2, 64, 1, 2047, 16); /* weights and bytes that are as large as can be, and any */
    for (unsigned how = 16; how < 32; how++)
        check_product(1, 32, 1, 700 + how, how);
    check_product(49, 40, 3, 1536, 3);
    check_product(20, 17, 3, 600, 41);
}

struct timed {
    struct sdx_qdot q;
    int64_t panels;
};
static void timed_run(void *arg)
{
    const struct timed *t = arg;
    sdx_qdot_run(&t->q, 0, t->panels);
}
double bench_qdot(void)
{
    const int64_t m = 196, n = 256, k = 1024;
    struct timed t = {.q = {.shape = {n, 1, k}, .m = m}, .panels = n / SDX_QDOT_COLS};
    uint8_t *a = guarded((size_t)(m * k), 0), *w = guarded((size_t)(n * k), 0);
    const uint8_t **rows = guarded((size_t)m * sizeof *rows, 0);
    float *factor = guarded((size_t)n * 4, 0);
    for (int64_t i = 0; i < m * k; i++)
        a[i] = (uint8_t)random_bits();
    for (int64_t i = 0; i < n * k; i++)
        w[i] = weight(BELL);
    for (int64_t i = 0; i < m; i++)
        rows[i] = a + i * k;
    for (int64_t j = 0; j < n; j++)
        factor[j] = 1e-4f;
    const struct sdx_qdot_weights from = {
        .w = w, .is_signed = true, .inner = k, .step_inner = 1, .step_n = k};
    void *packed = guarded(sdx_qdot_packed_size(&t.q.shape), 0);
    int32_t *start = guarded((size_t)n * 4, 0);
    (void)sdx_qdot_pack(&t.q.shape, &from, packed);
    sdx_qdot_start(&t.q.shape, packed, 0, sdx_qdot_panels(&t.q.shape), 0, NULL, start);
    t.q.packed = packed;
    t.q.rows = rows;
    t.q.scratch = guarded(sdx_qdot_scratch(&t.q.shape, m), 0);
    t.q.store = (struct sdx_qdot_store){.to = SDX_QDOT_BYTES,
                                        .y = guarded((size_t)(m * n), 0),
                                        .pitch = n,
                                        .start = start,
                                        .factor = factor,
                                        .factors_are_small = true,
                                        .zero = 128,
                                        .hi = 255};
    return best_ns(timed_run, &t) / (double)(m * n * k);
}

/* ---- bytes ---- */

static void check_affine(size_t n, unsigned how)
{
    struct sdx_qaffine p = {.length = SDX_QAFFINE_STEP * (1 + how % 3),
                            .zero = (int32_t)random_int(0, 255),
                            .lo = how & 1 ? 20 : 0,
                            .hi = how & 1 ? 200 : 255,
                            .flip = how & 2 ? 0x80 : 0};
    float *scale = guarded(p.length * sizeof *scale, 4), *shift = guarded(p.length * 4, 4);
    uint8_t *x = guarded(n, 1), *y = guarded(n, 3);
    for (size_t i = 0; i < p.length; i++) {
        scale[i] = random_float(-2, 2);
        shift[i] = random_float(-100, 100);
    }
    for (size_t i = 0; i < n; i++)
        x[i] = (uint8_t)random_bits();
    p.scale = scale;
    p.shift = shift;
    sdx_qbytes()->affine(&p, x, y, n);
    for (size_t i = 0; i < n; i++) {
        const float a = p.flip ? (int8_t)x[i] : x[i];
        const float v = fmaf(a, scale[i % p.length], shift[i % p.length]);
        const double byte = fmin(fmax(nearbyint(v) + p.zero, p.lo), p.hi);
        if (!expect(y[i] == ((uint8_t)byte ^ p.flip), "n %zu case %u: %g is %u", n, how, v, y[i]))
            break;
    }
    guards_intact();
    guards_release();
}
static void check_byte_transpose(size_t rows, size_t columns, size_t pitch, size_t pitch_y)
{
    uint8_t *x = guarded((rows - 1) * pitch + columns, 1);
    uint8_t *y = guarded((columns - 1) * pitch_y + rows, 2);
    for (size_t i = 0; i < (rows - 1) * pitch + columns; i++)
        x[i] = (uint8_t)random_bits();
    sdx_qbytes()->transpose(x, pitch, y, pitch_y, rows, columns);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            expect(y[j * pitch_y + i] == x[i * pitch + j], "transpose %zux%zu", rows, columns);
    guards_intact();
    guards_release();
}

static void check_blend(int64_t cell, int taps, uint8_t flip)
{
    enum { CELLS = 7, FROM = 5 };
    int32_t index[CELLS * 4];
    float weight[CELLS * 4], *x = guarded((size_t)(FROM * cell + 15) * 4, 4);
    uint8_t *y = guarded((size_t)(CELLS * cell), 1);
    for (int64_t i = 0; i < FROM * cell + 15; i++)
        x[i] = i < FROM * cell ? (float)random_int(-200, 300) * 0.5f : NAN;
    for (int i = 0; i < CELLS * taps; i++) {
        index[i] = (int32_t)random_int(0, FROM - 1);
        weight[i] = (float)random_int(-2, 6) * 0.25f;
    }
    const struct sdx_qblend b = {index, weight, taps, cell, CELLS, flip};
    sdx_qbytes()->blend(&b, x, y);
    for (int64_t i = 0; i < CELLS * cell; i++) {
        float sum = flip;
        for (int t = 0; t < taps; t++)
            sum += x[index[i / cell * taps + t] * cell + i % cell] * weight[i / cell * taps + t];
        const float whole = nearbyintf(sum < 0 ? 0 : sum > 255 ? 255 : sum);
        expect(y[i] == ((uint8_t)whole ^ flip), "cell %d, %d taps, element %d: %d", (int)cell, taps,
               (int)i, y[i]);
    }
    guards_intact();
    guards_release();
}

void check_qbytes(void)
{
    for (int64_t cell = 1; cell < 70; cell += cell < 36 ? 1 : 11)
        for (int taps = 1; taps <= 4; taps++)
            check_blend(cell, taps, cell % 2 ? 0x80 : 0);
    const struct sdx_qbytes *now = sdx_qbytes();
    for (size_t n = 0; n < 500; n += n < 140 ? 1 : 17)
        for (unsigned how = 0; how < 4; how++)
            check_affine(n, how);
    for (size_t n = 0; n < 200; n += n < 70 ? 1 : 13)
        for (unsigned how = 0; how < 8; how++) {
            struct sdx_qpair p = {.zero_a = (int32_t)random_int(0, 255),
                                  .zero_b = (int32_t)random_int(0, 255),
                                  .zero_y = (int32_t)random_int(0, 255),
                                  .scale_a = how & 1 ? 0.5f : random_float(0.001f, 2),
                                  .scale_b = how & 1 ? 0.25f : random_float(0.001f, 2),
                                  .flip = how & 2 ? 0x80 : 0};
            p.base = sdx_qpair_base(&p);
            const size_t step_a = n % 5 != 0, step_b = !(how & 4);
            uint8_t *a = guarded(n + 1, 1), *b = guarded(n + 1, 2), *table = guarded(256, 0);
            uint8_t *sum = guarded(n, 3), *product = guarded(n, 1), *found = guarded(n, 2),
                    *greatest = guarded(n, 3);
            uint32_t *sums = guarded(n * 4, 4), total = 0;
            int32_t *totals = guarded(n * 4, 4);
            float *floats = guarded(n * 4, 4);
            uint8_t *rounded = guarded(n, 1);
            for (size_t i = 0; i <= n; i++) {
                a[i] = (uint8_t)random_bits();
                b[i] = (uint8_t)random_bits();
                if (i == n) break;
                greatest[i] = b[i];
                sums[i] = (uint32_t)i;
                totals[i] = -3 * (int32_t)i;
                floats[i] = i % 11 == 3 ? NAN : i % 13 == 5 ? INFINITY : random_float(-300, 300);
                if (i % 3 == 0) floats[i] = (float)random_int(-300, 300) * 0.5f;
            }
            for (int i = 0; i < 256; i++)
                table[i] = (uint8_t)random_bits();
            now->add(&p, a, step_a, b, step_b, sum, n);
            now->mul(&p, a, step_a, b, step_b, product, n);
            now->lookup(table, a, found, n);
            now->max(a, p.flip, greatest, n);
            now->add_up(a, p.flip, sums, n);
            now->add_sums((const int32_t *)sums, totals, n);
            now->quantize(floats, p.scale_a, p.zero_y, p.flip, rounded, n);
            for (size_t i = 0; i < n; i++) {
                const float x = (float)((a[i * step_a] ^ p.flip) - p.zero_a);
                const float z = (float)((b[i * step_b] ^ p.flip) - p.zero_b);
                const float u_a = (float)((a[i * step_a] ^ p.flip) - p.flip);
                const float u_b = (float)((b[i * step_b] ^ p.flip) - p.flip);
                const float once = fmaf(u_b, p.scale_b, p.base);
                double s = nearbyint(fmaf(u_a, p.scale_a, once)) + p.zero_y;
                const double exact = (double)x * p.scale_a + (double)z * p.scale_b;
                expect(fabs(fmaf(u_a, p.scale_a, once) - exact) < 1e-4, "sum of %g and %g", x, z);
                double m = nearbyint(x * z * p.scale_a) + p.zero_y;
                s = s < 0 ? 0 : s > 255 ? 255 : s;
                m = m < 0 ? 0 : m > 255 ? 255 : m;
                const uint8_t u = a[i] ^ p.flip, v = b[i] ^ p.flip;
                double q = nearbyint(floats[i] / p.scale_a) + p.zero_y;
                q = !(q > 0) ? 0 : q > 255 ? 255 : q;
                total += u;
                if (!expect(sum[i] == ((uint8_t)s ^ p.flip) &&
                                product[i] == ((uint8_t)m ^ p.flip) && found[i] == table[a[i]] &&
                                greatest[i] == ((u > v ? u : v) ^ p.flip) && sums[i] == i + u &&
                                totals[i] == (int32_t)(u - 2 * i) &&
                                rounded[i] == ((uint8_t)q ^ p.flip),
                            "n %zu case %u at %zu", n, how, i))
                    break;
            }
            expect(now->sum(a, p.flip, n) == total, "n %zu case %u: sum", n, how);
            guards_intact();
            guards_release();
        }
    for (size_t rows = 1; rows < 50; rows += rows < 4 ? 1 : 3)
        for (size_t columns = 1; columns < 50; columns += columns < 4 ? 1 : 5)
            check_byte_transpose(rows, columns, columns + (rows % 2 ? 2 : 0), rows);
    for (size_t rows = 63; rows < 200; rows += 1 + rows / 2) /* far apart: by whole lines */
        for (size_t columns = 1; columns < 50; columns += 8)
            check_byte_transpose(rows, columns, columns, rows + 300);
}

struct timed_bytes {
    uint8_t *a, *b, *y, *table;
    size_t n;
};
static void timed_bytes(void *arg)
{
    const struct timed_bytes *t = arg;
    const struct sdx_qpair p = {.scale_a = 0.5f, .scale_b = 0.3f};
    sdx_qbytes()->add(&p, t->a, 1, t->b, 1, t->y, t->n);
    sdx_qbytes()->lookup(t->table, t->a, t->y, t->n);
}
/* An addition and a lookup. */
double bench_qbytes(void)
{
    struct timed_bytes t = {.n = 50000};
    t.a = guarded(t.n, 0);
    t.b = guarded(t.n, 0);
    t.y = guarded(t.n, 0);
    t.table = guarded(256, 0);
    for (size_t i = 0; i < t.n; i++) {
        t.a[i] = (uint8_t)random_bits();
        t.b[i] = (uint8_t)random_bits();
    }
    memset(t.table, 1, 256);
    return best_ns(timed_bytes, &t) / (double)t.n;
}
