/* SPDX-License-Identifier: Apache-2.0
 * Integer matrix product on 16-bit pairs: products of bytes less their zero points are exact in 32
 * bits. Once an instruction set. */
#define V_DOT vi_dot16
#include "kernels/qgemm_tile.h"
#include "kernels/tables.h"

#define WIDEN(type)                                                                                \
    do {                                                                                           \
        const type *p = x;                                                                         \
        if (step == 1)                                                                             \
            for (int64_t i = 0; i < n; i++) {                                                      \
                to[i] = (int16_t)(p[i] - zero);                                                    \
                sum += to[i];                                                                      \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                to[i] = (int16_t)(p[i * step] - zero);                                             \
                sum += to[i];                                                                      \
            }                                                                                      \
    } while (0)
static int32_t widen(const void *x, bool is_signed, int64_t step, int64_t n, int32_t zero,
                     int16_t *to)
{
    int32_t sum = 0;
    if (is_signed)
        WIDEN(int8_t);
    else
        WIDEN(uint8_t);
    return sum;
}

static void correct(int32_t *c, int64_t n, int32_t row, const int32_t *column)
{
    const uint32_t r = (uint32_t)row;
    for (int64_t j = 0; j < n; j++)
        c[j] = (int32_t)((uint32_t)c[j] - r * (uint32_t)column[j]);
}

void SDX_INIT(sdx_qgemm_init_)(struct sdx_qgemm_table *qgemm)
{
    *qgemm = (struct sdx_qgemm_table){.rows = ROWS,
                                      .cols = COLS,
                                      .bytes = false,
                                      .block = block,
                                      .widen = widen,
                                      .correct = correct};
}
