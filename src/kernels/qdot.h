/* SPDX-License-Identifier: Apache-2.0
 * Products of rows of bytes with packed weights, exact in 32 bits on every instruction set:
 * C(i, j) = sum over k of (A(i, k) - zero_a) * (W(k, j) - zero_w(j)), modulo 2^32, A unsigned bytes
 * read where they lie. Columns come in panels of 16, k in steps of 4.
 *
 * Without VNNI there is vpmaddubsw, which adds two products in 16 bits and saturates. With A in
 * 0..255, sums of products fit into 16 bits when their positive weights sum up to at most 128 and
 * the negative ones to at least -128. So packing sorts the steps of a panel into lists: groups of
 * four steps or two steps whose sums fit, single steps whose pairs fit, and wide ones, for which
 * everything is widened first. Where a panel has wide steps, the 16 values of k of each window are
 * paired anew so that few pairs do not fit; the kernel picks their bytes by a shuffle, a step's as
 * it takes them or, where shuffles bound it, all of a tile's rows before. */
#ifndef SDX_KERNELS_QDOT_H
#define SDX_KERNELS_QDOT_H

#include "kernels/gemm.h"
#include "kernels/qbytes.h"

enum { SDX_QDOT_COLS = 16 };

/* K is `runs` stretches of `run` bytes, each of which lies together in A. */
struct sdx_qdot_shape {
    int64_t n, runs, run;
    bool is_row; /* packed for one row of A at a time: sdx_qdot_suits_row() */
};
static inline int64_t sdx_qdot_panels(const struct sdx_qdot_shape *s)
{
    return (s->n + SDX_QDOT_COLS - 1) / SDX_QDOT_COLS;
}
/* Element i of run r, column j: w[r * step_run + i / inner * step_outer + i % inner * step_inner +
 * j * step_n]. */
struct sdx_qdot_weights {
    const void *w; /* u8 or s8 */
    bool is_signed;
    bool quickly; /* packed for one use: nothing is sorted, or cleared between forms */
    int64_t inner, step_run, step_outer, step_inner, step_n;
};
/* Are products of one row, with one run, quicker by a packed form of their own? Where most weights
 * are too large for pairs, steps are widened for many rows; one reads half as many bytes of steps
 * as they are, and takes its bytes in two parts, 7 bits and the top one, whose products fit. */
bool sdx_qdot_suits_row(const struct sdx_qdot_shape *s, const struct sdx_qdot_weights *w);
size_t sdx_qdot_packed_size(const struct sdx_qdot_shape *s);
/* Returns how many bytes are filled; the others are not read and hold anything. */
size_t sdx_qdot_pack(const struct sdx_qdot_shape *s, const struct sdx_qdot_weights *w,
                     void *packed);
/* The same for form i of `count` that lie `each` bytes apart, with zeros between forms: the bytes
 * from `packed` on. */
size_t sdx_qdot_pack_one(const struct sdx_qdot_shape *s, const struct sdx_qdot_weights *w,
                         void *packed, size_t each, int64_t i, int64_t count);
/* Can a packed form that comes from a file be used without reading outside of it or of A? */
bool sdx_qdot_check(const struct sdx_qdot_shape *s, const void *packed);

/* Where the bytes of each step lie, relative to a row: `at` beyond the row, four bytes in order or,
 * in panels with windows, the ones of 16 that `pick` names. */
struct sdx_qdot_step {
    uint32_t at, pick;
};
/* Packed steps hold at = run * SDX_QDOT run-less places: this gives them those of runs that begin
 * at starts[r]. steps: sdx_qdot_steps() of them. With one run that begins at 0, NULL serves. */
int64_t sdx_qdot_steps(const struct sdx_qdot_shape *s);
void sdx_qdot_place(const struct sdx_qdot_shape *s, const void *packed, const int64_t *starts,
                    struct sdx_qdot_step *steps);

enum sdx_qdot_to {
    SDX_QDOT_SUMS,   /* int32_t */
    SDX_QDOT_BYTES,  /* round_to_even(sum * factor) + zero within lo..hi, xor flip; then table */
    SDX_QDOT_FLOATS, /* sum * factor + bias */
};
#define SDX_QDOT_SMALL 0.5f
/* Arrays have an element for each column of whole panels. */
struct sdx_qdot_store {
    enum sdx_qdot_to to;
    void *y;                 /* element (i, j) at y[i * pitch + j] */
    int64_t pitch;           /* elements */
    const int32_t *start;    /* the sums begin here: sdx_qdot_start */
    const int32_t *zero_w;   /* less 128 for unsigned weights; NULL: all 0 */
    const int32_t *row_sums; /* with zero_w: sum of (A(i, k) - zero_a) of each row */
    const float *factor;
    bool factors_are_small; /* |factor| <= SDX_QDOT_SMALL, so that no product reaches 2^31 */
    const float *bias;      /* NULL: 0 */
    int32_t zero, lo, hi;
    uint8_t flip;
    /* Bytes to which others are added: y = sum(y, addend), which lie as those of y do, and in its
     * memory only where sdx_qdot_sums_in_place() says so; NULL: none. */
    const struct sdx_qpair *sum;
    const uint8_t *addend;
    const uint8_t *table; /* 256 bytes, the last of it; NULL: none */
};
/* start[j] = bias[j] - zero_a * sum of column j, for the columns of panels p0 .. p1 - 1; bias [n],
 * NULL: 0. */
void sdx_qdot_start(const struct sdx_qdot_shape *s, const void *packed, int64_t p0, int64_t p1,
                    int32_t zero_a, const int32_t *bias, int32_t *start);

struct sdx_qdot {
    struct sdx_qdot_shape shape;
    const void *packed;
    const struct sdx_qdot_step *steps; /* of sdx_qdot_place(); NULL: the packed ones */
    const int64_t *starts;             /* of the runs, from a row; NULL: of the only one, 0 */
    int64_t m;
    const uint8_t *const *rows; /* may be read up to 15 bytes beyond a run that is below 16 */
    int64_t first, some;        /* sdx_qdot_only(); some 0: all */
    struct sdx_qdot_store store;
    void *scratch; /* sdx_qdot_scratch() bytes, 64-byte aligned */
};
/* Columns that are worked at a time: ranges are best cut at multiples of it. */
int64_t sdx_qdot_width(void);
/* Do rows with few weights come before panels? */
bool sdx_qdot_rows_first(void);
/* Is each addend read before its element is stored? */
bool sdx_qdot_sums_in_place(void);
/* What m rows at most need. */
size_t sdx_qdot_scratch(const struct sdx_qdot_shape *s, int64_t m);
/* The bytes of rows are 0 but for runs run0 .. run0 + runs - 1: products of the others may be left
 * out. */
void sdx_qdot_only(struct sdx_qdot *q, int64_t run0, int64_t runs);
/* Panels p0 .. p1 - 1 of all rows. A run of 4 bytes or more is never read beyond its end. */
void sdx_qdot_run(const struct sdx_qdot *q, int64_t p0, int64_t p1);
/* What is left of a store: n bytes from y on get their addends and go through the table, where
 * there are any; the same of columns n0 .. n1 - 1 of m rows. */
void sdx_qdot_finish(const struct sdx_qdot_store *store, uint8_t *y, size_t n);
void sdx_qdot_finish_rows(const struct sdx_qdot_store *store, int64_t m, int64_t n0, int64_t n1);
#endif
