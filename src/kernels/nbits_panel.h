/* SPDX-License-Identifier: Apache-2.0
 * Inside the kernels of nbits.h: a panel of columns, its words and where its sums go. */
#ifndef SDX_KERNELS_NBITS_PANEL_H
#define SDX_KERNELS_NBITS_PANEL_H

#include "kernels/simd.h"
#include "kernels/tables.h"

enum { NBITS_COLS = 2 * LANES, NBITS_ROWS = 4 };
/* each vector of a panel's columns; each of mr rows */
#define NBITS_PAIR SDX_UNROLL(2) for (int j = 0; j < 2; j++)
#define NBITS_ROW  SDX_UNROLL(6) for (int r = 0; r < mr; r++)

/* The lines of a word of each column, ahead of it: as a rule a page, where the processor's own
 * fetching ends. */
SIMD void nbits_fetch_word(const uint32_t *word, int64_t ahead)
{
    for (int i = 0; i < NBITS_COLS; i += 16)
        V_PREFETCH(word + ahead + i);
}

/* The n columns of the last panel, of rows i .. i + mr. */
static SDX_NOINLINE void nbits_store_part(int mr, const struct sdx_nbits_job *g, int64_t i,
                                          int64_t column, int64_t n, const float *s)
{
    for (int64_t r = 0; r < mr; r++)
        for (int64_t j = 0; j < n; j++) {
            const float bias = g->bias ? g->bias[column + j] : 0.0f;
            P_KEEP(s); /* no vectors: it is rare */
            g->c[(i + r) * g->row_c + column + j] = s[r * NBITS_COLS + j] + bias;
        }
}
SIMD void nbits_store_panel(const int mr, const struct sdx_nbits_job *g, int64_t i, int64_t column,
                            vf (*s)[2])
{
    float out[NBITS_ROWS * NBITS_COLS], *c = g->c + i * g->row_c + column;
    if (g->width - column >= NBITS_COLS) {
        NBITS_PAIR
        {
            const vf bias = g->bias ? v_load(g->bias + column + j * LANES) : v_set1(0.0f);
            NBITS_ROW v_store(c + r * g->row_c + j * LANES, s[r][j] + bias);
        }
        return;
    }
    NBITS_ROW NBITS_PAIR v_store(out + r * NBITS_COLS + j * LANES, s[r][j]);
    nbits_store_part(mr, g, i, column, g->width - column, out);
}

/* Weights i, i + 1 and so on of a word of whole products, `bits` wide, in bytes (of 8 bits: in
 * shorts, times 256). */
SIMD vi nbits_whole_run(const int bits, const int i, vi word)
{
    if (bits == 8) return i ? word & vi_set1((int32_t)0xff00ff00) : vi_shift16_left(word, 8);
    return (vi)((vu)word >> (i * bits)) & vi_set1(0x01010101 * ((1 << bits) - 1));
}
SIMD vi nbits_four_bytes(const uint8_t *p)
{
    int32_t x;
    memcpy(&x, p, sizeof x);
    return vi_set1(x);
}
/* Of the facts of row r, at `facts`. */
#define NBITS_FACT(of)                                                                             \
    nbits_four_bytes(facts + r * g->row_bytes + offsetof(struct sdx_nbits_fact, of))
#endif
