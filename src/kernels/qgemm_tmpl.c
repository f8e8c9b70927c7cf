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

static void deal(const int16_t *first, const int16_t *second, int64_t n, int32_t *panels,
                 int64_t panel_step)
{
    for (int64_t j0 = 0; j0 < n; j0 += COLS, panels += panel_step) {
        const int64_t cols = n - j0 < COLS ? n - j0 : COLS;
        int16_t pairs[2 * COLS] = {0};
        if (cols == COLS)
            for (int j = 0; j < COLS; j++) {
                pairs[2 * j] = first[j0 + j];
                pairs[2 * j + 1] = second[j0 + j];
            }
        else
            for (int j = 0; j < cols; j++) {
                pairs[2 * j] = first[j0 + j];
                pairs[2 * j + 1] = second[j0 + j];
            }
        memcpy(panels, pairs, sizeof pairs);
    }
}

static void correct(int32_t *c, int64_t n, int32_t row, const int32_t *column)
{
    const uint32_t r = (uint32_t)row;
    for (int64_t j = 0; j < n; j++)
        c[j] = (int32_t)((uint32_t)c[j] - r * (uint32_t)column[j]);
}

#define WIDEN_ROWS(type)                                                                           \
    for (int64_t i = 0; i < r.rows; i++, to += r.pitch_to) {                                       \
        const type *p = (const type *)from + i * r.pitch_from;                                     \
        if (r.step == 1)                                                                           \
            for (int64_t j = 0; j < r.width; j++)                                                  \
                to[j] = (int16_t)(p[j] - zero);                                                    \
        else                                                                                       \
            for (int64_t j = 0; j < r.width; j++)                                                  \
                to[j] = (int16_t)(p[j * r.step] - zero);                                           \
    }
static void widen_rows(const void *from, bool is_signed, int32_t zero, int16_t *to,
                       struct sdx_rectangle r)
{
    if (is_signed)
        WIDEN_ROWS(int8_t)
    else
        WIDEN_ROWS(uint8_t)
}

#define AXPY_ROWS(type)                                                                            \
    for (int64_t i = 0; i < r.rows; i++, to += r.pitch_to) {                                       \
        const type *p = (const type *)from + i * r.pitch_from;                                     \
        if (r.step == 1)                                                                           \
            for (int64_t j = 0; j < r.width; j++)                                                  \
                to[j] += w * (p[j] - zero);                                                        \
        else                                                                                       \
            for (int64_t j = 0; j < r.width; j++)                                                  \
                to[j] += w * (p[j * r.step] - zero);                                               \
    }
static void axpy_rows(int32_t w, const void *from, bool is_signed, int32_t zero, int32_t *to,
                      struct sdx_rectangle r)
{
    if (is_signed)
        AXPY_ROWS(int8_t)
    else
        AXPY_ROWS(uint8_t)
}

void SDX_INIT(sdx_qgemm_init_)(struct sdx_qgemm_table *qgemm)
{
    *qgemm = (struct sdx_qgemm_table){.rows = ROWS,
                                      .cols = COLS,
                                      .bytes = false,
                                      .block = block,
                                      .widen = widen,
                                      .deal = deal,
                                      .correct = correct,
                                      .widen_rows = widen_rows,
                                      .axpy_rows = axpy_rows};
}
