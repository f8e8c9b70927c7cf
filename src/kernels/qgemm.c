/* SPDX-License-Identifier: Apache-2.0
 * Integer matrix product around the tiles. With a' and b' what the packed forms hold (bytes shifted
 * to the range that the tile wants), za and zb their zero points:
 * sum (a' - za)(b' - zb) = sum a'b' - zb * (sum a' - K za) - za * sum b'.
 * 16-bit forms hold a' = a - zero_a, so their za is 0. Packed B: header, sums of columns (bytes
 * only), panels. Zero points lie in the range of their type. */
#include "kernels/qgemm.h"

#include <string.h>

#include "kernels/tables.h"
#include "kernels/tuning.h"

struct header {
    int32_t b_signed;
    int32_t unused[15]; /* to 64 bytes */
};

static const struct sdx_qgemm_table *table_now(void)
{
    return &sdx_kernel_tables()->qgemm;
}
static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}
/* Groups of 4 bytes that k values take. */
static int64_t groups_of(const struct sdx_qgemm_table *t, int64_t k)
{
    return t->bytes ? (k + 3) / 4 : (k + 1) / 2;
}

int64_t sdx_qgemm_panel(void)
{
    return table_now()->cols;
}
size_t sdx_qgemm_packed_size(int64_t k, int64_t n)
{
    const struct sdx_qgemm_table *t = table_now();
    const int64_t width = round_up(n, t->cols);
    return sizeof(struct header) + (size_t)(width * (groups_of(t, k) + 1)) * sizeof(int32_t);
}

static void pack_bytes(const struct sdx_qgemm_table *t, const uint8_t *b, int flip, int64_t row_b,
                       int64_t col_b, int64_t k, int64_t n, int32_t *sums, int8_t *panels)
{
    const int64_t groups = groups_of(t, k);
    for (int64_t j = 0; j < round_up(n, t->cols); j++) {
        int8_t *to = panels + (j / t->cols * groups * t->cols + j % t->cols) * 4;
        int32_t sum = 0;
        for (int64_t e = 0; e < groups * 4; e++) {
            int8_t v = 0;
            if (e < k && j < n) v = (int8_t)(b[e * row_b + j * col_b] ^ flip);
            to[e / 4 * t->cols * 4 + e % 4] = v;
            sum += v;
        }
        sums[j] = sum;
    }
}
static void pack_pairs(const struct sdx_qgemm_table *t, const uint8_t *b, bool b_signed,
                       int64_t row_b, int64_t col_b, int64_t k, int64_t n, int16_t *panels)
{
    const int64_t groups = groups_of(t, k);
    for (int64_t j0 = 0; j0 < n; j0 += t->cols)
        for (int64_t e = 0; e < groups * 2; e += 2)
            for (int64_t j = j0; j < j0 + t->cols; j++)
                for (int64_t u = e; u < e + 2; u++) {
                    int16_t v = 0;
                    if (u < k && j < n) {
                        const uint8_t byte = b[u * row_b + j * col_b];
                        v = b_signed ? (int8_t)byte : byte;
                    }
                    *panels++ = v;
                }
}
void sdx_qgemm_pack(const void *b, bool b_signed, int64_t row_b, int64_t col_b, int64_t k,
                    int64_t n, void *packed)
{
    const struct sdx_qgemm_table *t = table_now();
    const struct header header = {.b_signed = b_signed};
    int32_t *sums = (int32_t *)((char *)packed + sizeof header);
    int32_t *panels = sums + round_up(n, t->cols);
    memcpy(packed, &header, sizeof header);
    if (t->bytes)
        pack_bytes(t, b, b_signed ? 0 : 0x80, row_b, col_b, k, n, sums, (int8_t *)panels);
    else
        pack_pairs(t, b, b_signed, row_b, col_b, k, n, (int16_t *)panels);
}

/* Rows of A at a time: they stay in the second cache. */
static int64_t block_rows(const struct sdx_qgemm_table *t, int64_t m, int64_t k)
{
    const int64_t bytes = (groups_of(t, k) + 1) * (int64_t)sizeof(int32_t);
    int64_t rows = sdx_kernel_tuning()->a_bytes / bytes / t->rows * t->rows;
    if (rows < t->rows) rows = t->rows;
    return rows < m ? rows : m;
}
size_t sdx_qgemm_scratch(int64_t m, int64_t n, int64_t k)
{
    const struct sdx_qgemm_table *t = table_now();
    (void)n;
    return (size_t)(block_rows(t, m, k) * (groups_of(t, k) + 1)) * sizeof(int32_t);
}

/* Row i of A as groups; returns sum a' - K za, which zero_b is multiplied by. */
static int32_t pack_row(const struct sdx_qgemm_table *t, const struct sdx_qgemm *g, int64_t i,
                        int32_t *to)
{
    const int64_t groups = groups_of(t, g->k);
    const int32_t zero = g->zero_a ? g->zero_a[g->zero_a_per_row ? i : 0] : 0;
    const uint8_t *a = (const uint8_t *)g->a + i * g->row_a;
    if (groups) to[groups - 1] = 0;
    if (!t->bytes) return t->widen(a, g->a_signed, g->col_a, g->k, zero, (int16_t *)to);
    const int flip = g->a_signed ? 0x80 : 0;
    uint8_t *bytes = (uint8_t *)to;
    uint32_t sum = 0;
    for (int64_t k = 0; k < g->k; k++) {
        bytes[k] = (uint8_t)(a[k * g->col_a] ^ flip);
        sum += bytes[k];
    }
    const int32_t za = zero + (g->a_signed ? 128 : 0);
    return (int32_t)(sum - (uint32_t)g->k * (uint32_t)za);
}

/* Takes off the zero points of the rows i0 .. i0 + m. factors: of zero_b, one a row. */
static void correct_rows(const struct sdx_qgemm_table *t, const struct sdx_qgemm *g, int64_t i0,
                         int64_t m, int64_t n0, int64_t n1, const int32_t *factors)
{
    struct header header;
    memcpy(&header, g->packed, sizeof header);
    const int32_t *sums = (const int32_t *)((const char *)g->packed + sizeof header);
    const int32_t shift = t->bytes && !header.b_signed ? 128 : 0;
    for (int64_t i = 0; i < m; i++) {
        int32_t *c = g->c + (i0 + i) * g->row_c;
        const int32_t zero = g->zero_a ? g->zero_a[g->zero_a_per_row ? i0 + i : 0] : 0;
        const int32_t za = t->bytes ? zero + (g->a_signed ? 128 : 0) : 0;
        if (g->zero_b) t->correct(c + n0, n1 - n0, factors[i], g->zero_b + n0);
        if (za) t->correct(c + n0, n1 - n0, za, sums + n0);
        if (shift) /* zb = zero_b - 128 */
            for (int64_t j = n0; j < n1; j++)
                c[j] = (int32_t)((uint32_t)c[j] + (uint32_t)factors[i] * (uint32_t)shift);
    }
}

void sdx_qgemm_run(const struct sdx_qgemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                   void *scratch)
{
    if (m0 >= m1 || n0 >= n1) return;
    const struct sdx_qgemm_table *t = table_now();
    const int64_t groups = groups_of(t, g->k), rows = block_rows(t, g->m, g->k);
    const int32_t *panels = (const int32_t *)((const char *)g->packed + sizeof(struct header)) +
                            round_up(g->n, t->cols);
    int32_t *a = scratch, *factors = a + rows * groups;
    for (int64_t i0 = m0; i0 < m1; i0 += rows) {
        const int64_t m = m1 - i0 < rows ? m1 - i0 : rows;
        for (int64_t i = 0; i < m; i++)
            factors[i] = pack_row(t, g, i0 + i, a + i * groups);
        t->block(m, n1 - n0, groups, a, groups, panels + n0 * groups, groups * t->cols,
                 g->c + i0 * g->row_c + n0, g->row_c);
        correct_rows(t, g, i0, m, n0, n1, factors);
    }
}
