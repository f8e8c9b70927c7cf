/* SPDX-License-Identifier: Apache-2.0
 * Panels of qdot.h with sdot, which adds four products of signed bytes to 32 bits exactly. Bytes of
 * A less 128 are signed ones; what that takes from the sums is 128 times the sums of the columns.
 */
#include "kernels/qdot_panel.h"
#include "kernels/qdot_store.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

/* Sums, a step's weights and four steps of each row fill the registers. */
enum { COLS = SDX_QDOT_COLS, VECTORS = COLS / LANES, ROWS = 5, STEPS = 4 };
#define TIMES(n) SDX_UNROLL(8) for (int i = 0; i < (n); i++)
#define EACH     SDX_UNROLL(4) for (int v = 0; v < VECTORS; v++)

SIMD int32x4_t dot_lane(int32x4_t acc, int8x16_t w, int8x16_t x, const int lane)
{
    switch (lane) { /* the instruction wants a literal */
    case 0: return vdotq_laneq_s32(acc, w, x, 0);
    case 1: return vdotq_laneq_s32(acc, w, x, 1);
    case 2: return vdotq_laneq_s32(acc, w, x, 2);
    default: return vdotq_laneq_s32(acc, w, x, 3);
    }
}
/* One step: x holds four bytes of each row in lane `lane`. */
SIMD void step(const int count, const int lane, int32x4_t acc[ROWS][VECTORS],
               const int8x16_t x[ROWS], const int8_t *w)
{
    int8x16_t weights[VECTORS];
    EACH
    {
        weights[v] = vld1q_s8(w + v * 16);
        V_KEEP(weights[v]);
    }
    TIMES(count) EACH acc[i][v] = dot_lane(acc[i][v], weights[v], x[i], lane);
    EACH V_USE(weights[v]);
}
/* Do four steps read 16 bytes that lie together? */
SIMD bool together(const struct sdx_qdot_step *s)
{
    const uint32_t at = s->at;
    return s[1].at == at + 4 && s[2].at == at + 8 && s[3].at == at + 12;
}

SIMD void tile(const int count, const struct sdx_qdot *q, const struct qdot_panel *panel,
               const struct sdx_qdot_step *s, int64_t row, int64_t column, int64_t n)
{
    const struct qdot_header *header = q->packed;
    const int32_t *sums = (const int32_t *)((const char *)q->packed + header->sums) + column;
    const int8_t *w = (const int8_t *)q->packed + panel->weights;
    const int8x16_t flip = vdupq_n_s8(-128);
    int32x4_t acc[ROWS][VECTORS];
    int8x16_t x[ROWS];
    const uint8_t *a[ROWS];
    EACH
    {
        const int32x4_t back = vshlq_n_s32(vld1q_s32(sums + v * LANES), 7);
        const int32x4_t start = vld1q_s32(q->store.start + column + v * LANES);
        TIMES(count) acc[i][v] = vaddq_s32(start, back);
    }
    TIMES(count) a[i] = q->rows[row + i];
    for (int32_t k = panel->count[QDOT_ONES]; k > 0;) {
        for (; k >= STEPS && together(s); k -= STEPS, s += STEPS, w += STEPS * QDOT_BYTES) {
            const size_t at = s->at;
            TIMES(count)
            {
                x[i] = veorq_s8(vreinterpretq_s8_u8(vld1q_u8(a[i] + at)), flip);
                V_KEEP(x[i]);
            }
            SDX_UNROLL(4) for (int lane = 0; lane < STEPS; lane++)
            {
                step(count, lane, acc, x, w + lane * QDOT_BYTES);
            }
            TIMES(count) V_USE(x[i]);
        }
        if (k == 0) break;
        const size_t at = s->at;
        TIMES(count)
        {
            int32_t four;
            memcpy(&four, a[i] + at, sizeof four);
            x[i] = veorq_s8(vreinterpretq_s8_s32(vdupq_n_s32(four)), flip);
        }
        step(count, 0, acc, x, w);
        k--;
        s++;
        w += QDOT_BYTES;
    }
    TIMES(count)
    {
        int32_t all[COLS];
        EACH vst1q_s32(all + v * LANES, acc[i][v]);
        qdot_store_row(&q->store, all, row + i, column, n);
    }
}

typedef void tile_fn(const struct sdx_qdot *q, const struct qdot_panel *panel,
                     const struct sdx_qdot_step *s, int64_t row, int64_t column, int64_t n);
#define TILE(count)                                                                                \
    static void tile_##count(const struct sdx_qdot *q, const struct qdot_panel *panel,             \
                             const struct sdx_qdot_step *s, int64_t row, int64_t column,           \
                             int64_t n)                                                            \
    {                                                                                              \
        tile(count, q, panel, s, row, column, n);                                                  \
    }
#define TILE_NAME(count) tile_##count,
#define HEIGHTS(X)       X(1) X(2) X(3) X(4) X(5)
HEIGHTS(TILE)
static tile_fn *const tiles[ROWS] = {HEIGHTS(TILE_NAME)};

static void panel_of(const struct sdx_qdot *q, const struct qdot_panel *panel,
                     const struct sdx_qdot_step *steps, int64_t column, int64_t n)
{
    const struct qdot_cut cut = qdot_cut(q->m, ROWS);
    for (int64_t t = 0, row = 0; t < cut.count; t++) {
        const int64_t rows = qdot_height(&cut, t);
        tiles[rows - 1](q, panel, steps, row, column, n);
        row += rows;
    }
}

void sdx_qdot_init_dotprod(struct sdx_qdot_table *qdot)
{
    *qdot = (struct sdx_qdot_table){.natural = QDOT_ONES, .wide = 1, .panel = panel_of};
}
