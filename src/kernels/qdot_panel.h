/* SPDX-License-Identifier: Apache-2.0
 * Packed form of qdot.h, shared by its files: header, sums of the columns, panels, steps, weights.
 */
#ifndef SDX_KERNELS_QDOT_PANEL_H
#define SDX_KERNELS_QDOT_PANEL_H

#include "kernels/qdot.h"

#define QDOT_ROWS(n) SDX_UNROLL(12) for (int i = 0; i < (n); i++) /* of a tile */

enum qdot_list { QDOT_FOURS, QDOT_TWOS, QDOT_ONES, QDOT_WIDE, QDOT_LISTS };
enum { QDOT_STEP = 4, QDOT_WINDOW = 16, QDOT_BYTES = 64, QDOT_WIDE_BYTES = 128 }; /* of a step */
/* Do steps pick their bytes from 16, and the same ones as the panel before, which picks too? */
enum qdot_windows { QDOT_NO_WINDOWS, QDOT_WINDOWS, QDOT_WINDOWS_BEFORE };

struct qdot_panel {
    int32_t count[QDOT_LISTS]; /* steps, in this order */
    int32_t windows;           /* enum qdot_windows */
    int32_t first;             /* step */
    int64_t weights;           /* bytes from the beginning of the packed form */
};
static inline int64_t qdot_panel_steps(const struct qdot_panel *p)
{
    return (int64_t)p->count[QDOT_FOURS] + p->count[QDOT_TWOS] + p->count[QDOT_ONES] +
           p->count[QDOT_WIDE];
}
/* Of its weights, behind which those of the next panel are. */
static inline int64_t qdot_panel_bytes(const struct qdot_panel *p)
{
    return qdot_panel_steps(p) * QDOT_BYTES +
           p->count[QDOT_WIDE] * (int64_t)(QDOT_WIDE_BYTES - QDOT_BYTES);
}
struct qdot_header {
    int64_t sums, panels, steps, weights; /* offsets */
    int64_t unused[4];
};

/* Place of step or window `u` of a run: the last is moved back so that it ends with the run; its
 * first `skip` bytes belong to the one before. */
static inline int64_t qdot_place_of(int64_t run, int64_t u, int64_t size, int64_t *skip)
{
    const int64_t at = u * size;
    *skip = 0;
    if (at + size <= run || run < size) return at;
    *skip = at - (run - size);
    return run - size;
}
/* Bytes of a row whose windows are rearranged, behind each other run by run. */
static inline int64_t qdot_rearranged(const struct sdx_qdot_shape *s)
{
    return s->runs * ((s->run + QDOT_WINDOW - 1) / QDOT_WINDOW) * QDOT_WINDOW;
}

/* Steps as [column][4] bytes and where they take theirs from, before they are sorted. */
struct qdot_loose {
    int64_t count;
    const int8_t *bytes; /* QDOT_BYTES each */
    const struct sdx_qdot_step *steps;
};

struct sdx_qdot_table {
    enum qdot_list natural; /* the list of all steps where they are not sorted */
    /* Sorts steps: order[] (room for QDOT_LISTS times as many) gets their numbers list by list.
     * NULL: steps are not sorted. */
    void (*sort)(const struct qdot_loose *from, int32_t *order, int32_t count[QDOT_LISTS]);
    /* Times of a step, against one of QDOT_ONES, and what a window's takes longer. */
    double prices[QDOT_LISTS], window_price;
    /* Which of 16 k's fit as a pair: columns [16][16] as shorts; bit j of masks[i]: i and j do. */
    void (*safe_pairs)(const int16_t *columns, uint16_t masks[QDOT_WINDOW]);
    /* m rows of one panel, or of up to `wide` panels with the same steps behind each other, which
     * they have where steps are not sorted; n of their columns are stored */
    int wide;
    /* panel() rearranges windows: `at` of a step lies in rows that have four bytes by four the ones
     * that the `pick` of the panel's first, second.. step names. It takes two panels of which the
     * second has QDOT_WINDOWS_BEFORE. */
    bool rearranges;
    bool takes_some; /* panel() leaves out steps that sdx_qdot.first and .some do not name */
    bool adds;       /* panel() adds what struct sdx_qdot_store says, before it stores */
    bool rows_first; /* with few weights rows are the outer loop */
    size_t (*scratch)(const struct sdx_qdot_shape *s, int64_t m); /* NULL: none */
    void (*panel)(const struct sdx_qdot *q, const struct qdot_panel *panel,
                  const struct sdx_qdot_step *steps, int64_t column, int64_t n);
    /* the same of weights packed for one row, m of them one by one; NULL: there is no such form */
    void (*row)(const struct sdx_qdot *q, const struct qdot_panel *panel,
                const struct sdx_qdot_step *steps, int64_t column, int64_t n);
};

/* Do sums become bytes in the fast way? What does not fit into shorts saturates there; only above
 * 2^31, which takes a large factor, the conversion to integers would change the sign. */
static inline bool qdot_is_rounded(const struct sdx_qdot_store *st)
{
    return st->to == SDX_QDOT_BYTES && !st->zero_w && st->factors_are_small;
}

/* Bytes from the weights of a tile that reads them alone to those that it fetches. */
enum { QDOT_AHEAD = 4096 };

/* m rows cut into `count` tiles of up to `most`, the first `taller` of height + 1 rows. */
struct qdot_cut {
    int64_t count, height, taller;
};
static inline struct qdot_cut qdot_cut(int64_t m, int64_t most)
{
    if (m <= most) return m > 0 ? (struct qdot_cut){1, m, 0} : (struct qdot_cut){0, 0, 0};
    const int64_t count = (m + most - 1) / most;
    return (struct qdot_cut){count, m / count, m % count};
}
static inline int64_t qdot_height(const struct qdot_cut *cut, int64_t tile)
{
    return cut->height + (tile < cut->taller);
}
#endif
