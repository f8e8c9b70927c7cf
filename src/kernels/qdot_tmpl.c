/* SPDX-License-Identifier: Apache-2.0
 * Panels of qdot.h, once an instruction set: tiles of rows by 16 columns with the lists of
 * qdot_panel.h on AVX2 and AVX-512, which sorts as AVX2 does, plain loops elsewhere. Vectors of 64
 * bytes need as many shuffles as products where AVX2 has half as many, so that they bound the
 * loop: there a tile's windows are rearranged first. */
#include "kernels/qdot_vector.h"
#include "kernels/tables.h"

enum { COLS = SDX_QDOT_COLS };

#if SDX_SIMD_LANES >= 8
/* 16-bit sums and those of 32 bits of FOURS_ROWS rows are in registers at once. */
#if SDX_SIMD_LANES == 16
enum { ROWS = 8, FOURS_ROWS = 8 };
#define V_AND(a, b) _mm512_and_si512(a, b)
#else
enum { ROWS = 6, FOURS_ROWS = 3 };
#define V_AND(a, b) _mm256_and_si256(a, b)
#endif
enum { PARTS = QDOT_PARTS, PART_BYTES = sizeof(qdot_vector) };
#define EACH_PART SDX_UNROLL(2) for (int j = 0; j < PARTS; j++)

SIMD qdot_vector four_bytes(const uint8_t *p)
{
    int32_t v;
    memcpy(&v, p, sizeof v);
    return QDOT_V(set1_epi32)(v);
}
/* The four bytes of a step in all lanes. */
SIMD qdot_vector taken(const int windows, const uint8_t *p, qdot_vector pick)
{
    if (!windows) return four_bytes(p);
    const __m128i all = _mm_loadu_si128((const __m128i *)p);
    return QDOT_V(shuffle_epi8)(V_SPREAD(all), pick);
}
SIMD qdot_vector pick_of(const struct sdx_qdot_step *s)
{
    return QDOT_V(set1_epi32)((int32_t)s->pick);
}
/* acc + the sums of neighbouring shorts */
SIMD qdot_vector add_pairs(qdot_vector acc, qdot_vector pairs)
{
    return QDOT_V(add_epi32)(acc, QDOT_V(madd_epi16)(pairs, QDOT_V(set1_epi16)(1)));
}

SIMD void fetch(const int8_t *w)
{
    _mm_prefetch((const char *)w, _MM_HINT_T0);
}

/* Groups of four steps for `count` rows: their 16-bit sums take as many registers as the rows'
 * own. */
SIMD void run_fours(const int count, const int windows, qdot_vector (*acc)[2],
                    const uint8_t *const *rows, const struct sdx_qdot_step *s, int32_t steps,
                    const int8_t *w, int64_t ahead)
{
    const uint8_t *a[FOURS_ROWS];
    qdot_vector sums[FOURS_ROWS][PARTS];
    QDOT_ROWS(count) a[i] = rows[i];
    for (; steps > 0; steps -= 4, s += 4, w += 4 * QDOT_BYTES)
        SDX_UNROLL(4) for (int g = 0; g < 4; g++)
        {
            const size_t at = s[g].at;
            fetch(w + g * QDOT_BYTES + ahead);
            const qdot_vector pick = pick_of(s + g);
            qdot_vector weights[PARTS];
            EACH_PART
            {
                weights[j] = QDOT_LOAD(w + g * QDOT_BYTES + j * PART_BYTES);
                V_KEEP(weights[j]);
            }
            QDOT_ROWS(count)
            {
                const qdot_vector x = taken(windows, a[i] + at, pick);
                qdot_vector p[PARTS];
                EACH_PART p[j] = QDOT_V(maddubs_epi16)(x, weights[j]);
                EACH_PART
                {
                    sums[i][j] = g ? QDOT_V(add_epi16)(sums[i][j], p[j]) : p[j];
                    V_KEEP(sums[i][j]);
                }
                if (g < 3) continue;
                EACH_PART acc[i][j] = add_pairs(acc[i][j], sums[i][j]);
            }
        }
}
/* Two steps at a time, row by row. */
SIMD void run_twos(const int count, const int windows, qdot_vector (*acc)[2],
                   const uint8_t *const *a, const struct sdx_qdot_step *s, int32_t steps,
                   const int8_t *w, int64_t ahead)
{
    for (; steps > 0; steps -= 2, s += 2, w += 2 * QDOT_BYTES) {
        const size_t at = s[0].at, then = s[1].at;
        fetch(w + ahead);
        fetch(w + QDOT_BYTES + ahead);
        const qdot_vector pick = pick_of(s), next = pick_of(s + 1);
        QDOT_ROWS(count)
        {
            const qdot_vector x = taken(windows, a[i] + at, pick),
                              z = taken(windows, a[i] + then, next);
            EACH_PART
            {
                const qdot_vector p = QDOT_V(maddubs_epi16)(x, QDOT_LOAD(w + PART_BYTES * j));
                const qdot_vector r =
                    QDOT_V(maddubs_epi16)(z, QDOT_LOAD(w + QDOT_BYTES + PART_BYTES * j));
                acc[i][j] = add_pairs(acc[i][j], QDOT_V(add_epi16)(p, r));
            }
        }
    }
}
SIMD void run_ones(const int count, const int windows, qdot_vector (*acc)[2],
                   const uint8_t *const *a, const struct sdx_qdot_step *s, int32_t steps,
                   const int8_t *w, int64_t ahead)
{
    for (; steps > 0; steps--, s++, w += QDOT_BYTES) {
        const size_t at = s->at;
        fetch(w + ahead);
        const qdot_vector pick = pick_of(s);
        qdot_vector weights[PARTS];
        EACH_PART weights[j] = QDOT_LOAD(w + PART_BYTES * j);
        QDOT_ROWS(count)
        {
            const qdot_vector x = taken(windows, a[i] + at, pick);
            EACH_PART acc[i][j] = add_pairs(acc[i][j], QDOT_V(maddubs_epi16)(x, weights[j]));
        }
    }
}
/* Bytes widened to shorts in registers. */
SIMD void run_wide(const int count, const int windows, qdot_vector (*acc)[2],
                   const uint8_t *const *a, const struct sdx_qdot_step *s, int32_t steps,
                   const int8_t *w, int64_t ahead)
{
    const qdot_vector low = QDOT_V(set1_epi16)(255);
    for (; steps > 0; steps--, s++, w += QDOT_WIDE_BYTES) {
        const size_t at = s->at;
        fetch(w + ahead);
        fetch(w + QDOT_BYTES + ahead);
        const qdot_vector pick = pick_of(s);
        QDOT_ROWS(count)
        {
            const qdot_vector x = taken(windows, a[i] + at, pick);
            const qdot_vector even = V_AND(x, low), odd = QDOT_V(srli_epi16)(x, 8);
            EACH_PART
            {
                const int8_t *v = w + PART_BYTES * j;
                acc[i][j] = QDOT_V(add_epi32)(acc[i][j], QDOT_V(madd_epi16)(even, QDOT_LOAD(v)));
                acc[i][j] = QDOT_V(add_epi32)(acc[i][j],
                                              QDOT_V(madd_epi16)(odd, QDOT_LOAD(v + QDOT_BYTES)));
            }
        }
    }
}

#if SDX_SIMD_LANES == 16
/* Bytes from a rearranged row to the next. */
SIMD int64_t pitch_of(const struct sdx_qdot_shape *s)
{
    return (qdot_rearranged(s) + 63) / 64 * 64 + 64;
}
static size_t scratch_of(const struct sdx_qdot_shape *s, int64_t m)
{
    (void)m;
    return s->run < QDOT_WINDOW ? 0 : (size_t)(ROWS * pitch_of(s));
}
/* The picks of 16 steps, of those that `some` names. */
SIMD __m512i picks_of(const struct sdx_qdot_step *s, __mmask16 some)
{
    const __m512i odd =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    const __m512i x = _mm512_maskz_loadu_epi64((__mmask8)some, s);
    return _mm512_permutex2var_epi32(x, odd,
                                     _mm512_maskz_loadu_epi64((__mmask8)(some >> 8), s + 8));
}
/* The windows of `count` rows from `row` on in q->scratch: rows a[]. The last fills the tile. */
static SDX_NOINLINE void rearrange(const struct sdx_qdot *q, const struct sdx_qdot_step *steps,
                                   int64_t row, int64_t count, const uint8_t *a[ROWS])
{
    const struct sdx_qdot_shape *s = &q->shape;
    const int64_t pitch = pitch_of(s), whole = s->run / 64 * 64;
    const uint8_t *from[ROWS];
    uint8_t *to = q->scratch;
    QDOT_ROWS(ROWS)
    {
        from[i] = q->rows[row + (i < count ? i : count - 1)];
        a[i] = to + i * pitch;
    }
    for (int64_t r = 0; r < s->runs; r++) {
        const int64_t start = q->starts ? q->starts[r] : 0;
        int64_t k = 0;
        for (; k < whole; k += 64, steps += 16, to += 64) {
            const __m512i picks = picks_of(steps, 0xffff);
            QDOT_ROWS(ROWS)
            {
                const __m512i x = _mm512_loadu_si512(from[i] + start + k);
                _mm512_storeu_si512(to + i * pitch, _mm512_shuffle_epi8(x, picks));
            }
        }
        for (; k < s->run; k += QDOT_WINDOW, steps += 4, to += QDOT_WINDOW) {
            int64_t skip, at = qdot_place_of(s->run, k / QDOT_WINDOW, QDOT_WINDOW, &skip);
            const __m128i picks = _mm512_castsi512_si128(picks_of(steps, 0xf));
            QDOT_ROWS(ROWS)
            {
                const __m128i x = _mm_loadu_si128((const __m128i *)(from[i] + start + at));
                _mm_storeu_si128((__m128i *)(to + i * pitch), _mm_shuffle_epi8(x, picks));
            }
        }
    }
}
#endif

SIMD void tile(const int count, const int windows, const struct sdx_qdot *q,
               const struct qdot_panel *panel, const struct sdx_qdot_step *s, int64_t ahead,
               const uint8_t *const *rows, int64_t row, int64_t column, int64_t n)
{
    qdot_vector acc[ROWS][2];
    const uint8_t *a[ROWS];
    const int8_t *w = (const int8_t *)q->packed + panel->weights;
    const int32_t *start = q->store.start + column;
    QDOT_ROWS(count)
    {
        a[i] = rows[i];
        EACH_PART acc[i][j] = QDOT_LOAD(start + j * QDOT_PART_LANES);
    }
    int32_t steps = panel->count[QDOT_FOURS];
    if (steps) {
        run_fours(count < FOURS_ROWS ? count : FOURS_ROWS, windows, acc, a, s, steps, w, ahead);
        if (count > FOURS_ROWS)
            run_fours(count - FOURS_ROWS, windows, acc + FOURS_ROWS, a + FOURS_ROWS, s, steps, w,
                      ahead);
        s += steps;
        w += steps * QDOT_BYTES;
    }
    steps = panel->count[QDOT_TWOS];
    run_twos(count, windows, acc, a, s, steps, w, ahead);
    s += steps;
    w += steps * QDOT_BYTES;
    steps = panel->count[QDOT_ONES];
    run_ones(count, windows, acc, a, s, steps, w, ahead);
    s += steps;
    w += steps * QDOT_BYTES;
    run_wide(count, windows, acc, a, s, panel->count[QDOT_WIDE], w, ahead);
    qdot_store_sums(count, 1, &q->store, acc, row, column, n);
}

typedef void tile_fn(const struct sdx_qdot *q, const struct qdot_panel *panel,
                     const struct sdx_qdot_step *s, int64_t ahead, const uint8_t *const *rows,
                     int64_t row, int64_t column, int64_t n);
#define TILE(count, windows)                                                                       \
    static void tile_##count##_##windows(                                                          \
        const struct sdx_qdot *q, const struct qdot_panel *panel, const struct sdx_qdot_step *s,   \
        int64_t ahead, const uint8_t *const *rows, int64_t row, int64_t column, int64_t n)         \
    {                                                                                              \
        tile(count, windows, q, panel, s, ahead, rows, row, column, n);                            \
    }
#define TILE_NAME(count, windows) tile_##count##_##windows,
#define SIX(X, windows)                                                                            \
    X(1, windows) X(2, windows) X(3, windows) X(4, windows) X(5, windows) X(6, windows)
#if SDX_SIMD_LANES == 16
#define HEIGHTS(X, windows) SIX(X, windows) X(7, windows) X(8, windows)
#else
#define HEIGHTS(X, windows) SIX(X, windows)
#endif
HEIGHTS(TILE, 0)
#if SDX_SIMD_LANES == 16
static tile_fn *const tiles[1][ROWS] = {{HEIGHTS(TILE_NAME, 0)}};
#else
HEIGHTS(TILE, 1)
static tile_fn *const tiles[2][ROWS] = {{HEIGHTS(TILE_NAME, 0)}, {HEIGHTS(TILE_NAME, 1)}};
#endif

static void panel_of(const struct sdx_qdot *q, const struct qdot_panel *panel,
                     const struct sdx_qdot_step *steps, int64_t column, int64_t n)
{
    const struct qdot_cut cut = qdot_cut(q->m, ROWS);
    for (int64_t t = 0, row = 0; t < cut.count; t++) {
        const int64_t rows = qdot_height(&cut, t);
        const uint8_t *const *a = q->rows + row;
#if SDX_SIMD_LANES == 16
        tile_fn *const fn = tiles[0][rows - 1];
        const uint8_t *rearranged[ROWS];
        if (panel->windows) {
            rearrange(q, steps, row, rows, rearranged);
            a = rearranged;
        }
#else
        tile_fn *const fn = tiles[panel->windows][rows - 1];
#endif
        for (int64_t j = 0; j * COLS < n; j++) {
            /* the next panel's weights come while the first tile is in hand; one tile alone is a
             * stream */
            const int64_t ahead = cut.count == 1 ? QDOT_AHEAD
                                  : t == 0       ? qdot_panel_bytes(&panel[j])
                                                 : 0;
            fn(q, &panel[j], steps + (panel[j].first - panel->first), ahead, a, row,
               column + j * COLS, n - j * COLS < COLS ? n - j * COLS : COLS);
        }
        row += rows;
    }
}

/* Bytes of A in two parts: sums of two products of 7 bits fit into 16, and so do those of the top
 * bits of BURST steps, which are added 128 times. */
static void row_of(const struct sdx_qdot *q, const struct qdot_panel *panel,
                   const struct sdx_qdot_step *s, int64_t column, int64_t n)
{
    enum { BURST = 64 };
    const qdot_vector low = QDOT_V(set1_epi8)(127), one = QDOT_V(set1_epi8)(1);
    const int64_t steps = panel->count[QDOT_ONES];
    for (int64_t row = 0; row < q->m; row++) {
        const uint8_t *a = q->rows[row];
        const int8_t *w = (const int8_t *)q->packed + panel->weights;
        qdot_vector acc[1][2];
        EACH_PART acc[0][j] = QDOT_LOAD(q->store.start + column + j * QDOT_PART_LANES);
        for (int64_t k = 0; k < steps;) {
            const int64_t end = steps - k < BURST ? steps : k + BURST;
            qdot_vector tops[PARTS];
            EACH_PART tops[j] = QDOT_V(set1_epi32)(0);
            for (; k < end; k++, w += QDOT_BYTES) {
                const qdot_vector x = four_bytes(a + s[k].at), y = V_AND(x, low);
                const qdot_vector top = V_AND(QDOT_V(srli_epi16)(x, 7), one);
                fetch(w + QDOT_AHEAD);
                EACH_PART
                {
                    const qdot_vector v = QDOT_LOAD(w + j * PART_BYTES);
                    acc[0][j] = add_pairs(acc[0][j], QDOT_V(maddubs_epi16)(y, v));
                    tops[j] = QDOT_V(add_epi16)(tops[j], QDOT_V(maddubs_epi16)(top, v));
                }
            }
            EACH_PART
            {
                const qdot_vector sums = QDOT_V(madd_epi16)(tops[j], QDOT_V(set1_epi16)(1));
                acc[0][j] = QDOT_V(add_epi32)(acc[0][j], QDOT_V(slli_epi32)(sums, 7));
            }
        }
        qdot_store_sums(1, 1, &q->store, acc, row, column, n);
    }
}

#if SDX_SIMD_LANES == 8 || defined(SDX_ONE_SET)
#define QDOT_SORTS 1
enum { OPEN = 16 };
/* ---- packing ---- */

/* What is left of 128 for the positive and for the negative weights of each lane of 16 bits. */
struct bin {
    wide positive, negative;
    int32_t count, steps[4];
};
SIMD bool fits(wide room, wide weights) /* every byte of weights <= that of room */
{
    const wide least = _mm256_min_epu8(room, weights);
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(least, weights)) == -1;
}
/* Sums of the pairs of a step: positive weights, and negative ones without their sign. */
SIMD void sums_of_step(const int8_t *bytes, wide *positive, wide *negative)
{
    const wide one = _mm256_set1_epi8(1), zero = _mm256_setzero_si256();
    const wide x = wide_load(bytes), y = wide_load(bytes + 32);
    const wide px = _mm256_maddubs_epi16(one, _mm256_max_epi8(x, zero));
    const wide py = _mm256_maddubs_epi16(one, _mm256_max_epi8(y, zero));
    const wide nx = _mm256_sub_epi16(px, _mm256_maddubs_epi16(one, x));
    const wide ny = _mm256_sub_epi16(py, _mm256_maddubs_epi16(one, y));
    *positive = _mm256_packus_epi16(px, py); /* 256 becomes 255, which does not fit either */
    *negative = _mm256_packus_epi16(nx, ny);
}

struct sorter {
    int32_t *list[QDOT_LISTS]; /* each with room for all steps */
    int32_t *count;
};
static void put(struct sorter *s, enum qdot_list list, int32_t step)
{
    s->list[list][s->count[list]++] = step;
}
static void close_bin(struct sorter *s, const struct bin *b)
{
    for (int i = 0; i < b->count; i++)
        put(s,
            b->count == 4             ? QDOT_FOURS
            : b->count == 1 || i == 2 ? QDOT_ONES
                                      : QDOT_TWOS,
            b->steps[i]);
}

static void sort_steps(const struct qdot_loose *from, struct sorter *s)
{
    struct bin bins[OPEN];
    int open = 0;
    const wide limit = _mm256_set1_epi8((char)128);
    for (int64_t i = 0; i < from->count; i++) {
        wide positive, negative;
        sums_of_step(from->bytes + i * QDOT_BYTES, &positive, &negative);
        if (!fits(limit, positive) || !fits(limit, negative)) {
            put(s, QDOT_WIDE, (int32_t)i);
            continue;
        }
        int b = 0;
        while (b < open && !(fits(bins[b].positive, positive) && fits(bins[b].negative, negative)))
            b++;
        if (b == OPEN) { /* the oldest goes */
            close_bin(s, &bins[0]);
            memmove(bins, bins + 1, sizeof *bins * (OPEN - 1));
            b = --open;
        }
        if (b == open) bins[open++] = (struct bin){limit, limit, 0, {0}};
        bins[b].positive = _mm256_sub_epi8(bins[b].positive, positive);
        bins[b].negative = _mm256_sub_epi8(bins[b].negative, negative);
        bins[b].steps[bins[b].count++] = (int32_t)i;
        if (bins[b].count < 4) continue;
        close_bin(s, &bins[b]);
        open--;
        memmove(bins + b, bins + b + 1, sizeof *bins * (size_t)(open - b));
    }
    for (int b = 0; b < open; b++)
        close_bin(s, &bins[b]);
}

static void sort(const struct qdot_loose *from, int32_t *order, int32_t count[QDOT_LISTS])
{
    struct sorter s = {.count = count};
    for (int l = 0; l < QDOT_LISTS; l++) {
        s.list[l] = order + l * from->count;
        count[l] = 0;
    }
    sort_steps(from, &s);
    for (int l = 0; l < QDOT_LISTS; l++) { /* close up */
        memmove(order, s.list[l], (size_t)count[l] * sizeof *order);
        order += count[l];
    }
}

/* Bit j of masks[i]: k's i and j fit as a pair in all columns. */
static void safe_pairs(const int16_t *columns, uint16_t masks[QDOT_WINDOW])
{
    const wide limit = _mm256_set1_epi16(128);
    wide c[QDOT_WINDOW];
    for (int i = 0; i < QDOT_WINDOW; i++) {
        c[i] = wide_load(columns + i * COLS);
        masks[i] = 0;
    }
    for (int i = 0; i < QDOT_WINDOW; i++)
        for (int j = 0; j < i; j++) {
            const wide over =
                _mm256_cmpgt_epi16(_mm256_abs_epi16(_mm256_add_epi16(c[i], c[j])), limit);
            const unsigned safe = _mm256_testz_si256(over, over) ? 1 : 0; /* no jump */
            masks[i] |= (uint16_t)(safe << j);
            masks[j] |= (uint16_t)(safe << i);
        }
}

#endif

void SDX_INIT(sdx_qdot_init_)(struct sdx_qdot_table *qdot)
{
#ifdef QDOT_SORTS
    *qdot = (struct sdx_qdot_table){.natural = QDOT_WIDE,
                                    .wide = 1,
                                    .sort = sort,
                                    .prices = {0.74, 0.80, 1.0, 1.37}, /* on Zen 3 */
                                    .window_price = 0.06,
                                    .safe_pairs = safe_pairs};
#endif
    qdot->panel = panel_of;
    qdot->row = row_of;
#if SDX_SIMD_LANES == 16 /* of what AVX2's sort() has packed; on Zen 5 */
    memcpy(qdot->prices, (const double[QDOT_LISTS]){0.65, 0.76, 1.0, 1.5}, sizeof qdot->prices);
    qdot->window_price = 0.15;
    qdot->rearranges = true;
    qdot->scratch = scratch_of;
#endif
}
#else
enum { ROWS = 3, VECTORS = COLS / LANES };

/* Steps as shorts: bytes 0 and 2, then 1 and 3. */
SIMD void tile(const int count, const struct sdx_qdot *q, const struct qdot_panel *panel,
               const struct sdx_qdot_step *s, int64_t row, int64_t column, int64_t n)
{
    vi acc[ROWS][VECTORS];
    int32_t sums[COLS];
    const int8_t *w = (const int8_t *)q->packed + panel->weights;
    QDOT_ROWS(count)
    SDX_UNROLL(4)
    for (int v = 0; v < VECTORS; v++)
        acc[i][v] = vi_load(q->store.start + column + v * LANES);
    for (int32_t k = 0; k < panel->count[QDOT_WIDE]; k++, w += QDOT_WIDE_BYTES)
        QDOT_ROWS(count)
        {
            const uint8_t *a = q->rows[row + i] + s[k].at;
            const vi even = vi_set1(a[0] | a[2] << 16), odd = vi_set1(a[1] | a[3] << 16);
            SDX_UNROLL(4) for (int v = 0; v < VECTORS; v++)
            {
                acc[i][v] = vi_dot16(acc[i][v], even, vi_load(w + v * 4 * LANES));
                acc[i][v] = vi_dot16(acc[i][v], odd, vi_load(w + 64 + v * 4 * LANES));
            }
        }
    QDOT_ROWS(count)
    {
        SDX_UNROLL(4) for (int v = 0; v < VECTORS; v++) vi_store(sums + v * LANES, acc[i][v]);
        qdot_store_row(&q->store, sums, row + i, column, n);
    }
}

static void panel_of(const struct sdx_qdot *q, const struct qdot_panel *panel,
                     const struct sdx_qdot_step *steps, int64_t column, int64_t n)
{
    int64_t row = 0;
    for (; row + ROWS <= q->m; row += ROWS)
        tile(ROWS, q, panel, steps, row, column, n);
    for (; row < q->m; row++)
        tile(1, q, panel, steps, row, column, n);
}

void SDX_INIT(sdx_qdot_init_)(struct sdx_qdot_table *qdot)
{
    *qdot = (struct sdx_qdot_table){.natural = QDOT_WIDE, .wide = 1, .panel = panel_of};
}
#endif
