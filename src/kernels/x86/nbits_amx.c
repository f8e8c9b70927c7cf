/* SPDX-License-Identifier: Apache-2.0
 * Products of floats with weights of 4 and 8 bits (nbits.h) of many rows with tile registers (AMX):
 * tdpbssd adds the products of 16 rows of bytes with 16 columns of bytes over 32 or 64 k. Weights
 * become bytes less their middle, once for all rows of a job. Sums of a run or block are whole and
 * exact and become floats as in the set below, so C has its bits.
 *
 * A number of A in digits is q = d0 + 2^8 d1 + 2^16 d2. With d1 = e0 + 16 e1 it is
 * (d0 + 16 (16 e0)) + 2^12 (e1 + 16 d2), and 16 times a weight of 4 bits is a byte too: a product
 * of tiles over the weights of a run and 16 times the same gives 12 bits of A at once. */
#define SDX_SET_AVX512 1 /* the set includes it: width of simd.h */
#include "kernels/nbits_panel.h"
#include "kernels/x86/tiles_amx.h"

enum {
    RUN = SDX_NBITS_RUN,
    ROWS = SDX_TILE_ROWS,
    TALL = SDX_NBITS_TALL / SDX_TILE_ROWS, /* tiles of rows of a job */
    LONGEST = 512,                         /* k of a block of whole products */
    CHUNK = 256,         /* k at a time, where blocks are no longer; of digits half of it */
    PANELS = 2,          /* of columns, at a time */
    TILE = ROWS * LANES, /* sums of a product of tiles */
    ROW = 4 * NBITS_COLS /* bytes from one word of a column to its next */
};
#define EACH_ROW SDX_UNROLL(16) for (int r = 0; r < ROWS; r++)

static struct sdx_gemm_table thin; /* of the set before */

/* Facts of 16 rows, and after it their bytes: as one tile after the other. */
struct unit {
    float scale[ROWS], sum[ROWS];
};

/* A unit is what becomes a float at a time: a run of digits or a block of whole products. */
struct walk {
    const struct sdx_nbits *w;
    bool has_digits;
    int64_t depth, step;     /* k of a unit; of a product of tiles */
    int64_t of_block, count; /* units of a block, of K */
    int64_t size;            /* bytes of a unit of 16 rows */
    int64_t scales, block;   /* bytes of a panel's scales; from block to block */
};
static struct walk walk_of(const struct sdx_nbits *w)
{
    struct walk t = {.w = w, .has_digits = !w->whole};
    const int64_t block = w->block < w->k ? w->block : w->k;
    t.depth = w->whole ? block : RUN;
    t.step = w->whole && block % SDX_TILE_BYTES ? RUN : SDX_TILE_BYTES;
    t.of_block = block / t.depth;
    t.count = w->k / t.depth;
    t.size = (int64_t)sizeof(struct unit) + ROWS * (w->whole ? block : 4 * RUN);
    t.scales = (1 + w->has_zeros) * ROW;
    t.block = t.scales + w->block * w->bits / 32 * ROW;
    return t;
}
static int64_t tiles_of(int64_t m)
{
    return (m + ROWS - 1) / ROWS;
}
static size_t tall_size(const struct sdx_nbits *w, int64_t m)
{
    const int64_t block = w->block < w->k ? w->block : w->k;
    /* for which tiles are faster, the fewer the more is multiplied for each sum */
    const int64_t least = !w->whole ? 8 : block < SDX_TILE_BYTES ? 32 : 16;
    if (m < least || w->bits == 2 || (w->bits == 8 && !w->whole) || block % RUN || w->k % RUN ||
        (w->whole && (block > LONGEST || w->k % block)))
        return 0;
    const struct walk t = walk_of(w);
    return (size_t)(tiles_of(m) * t.count * t.size);
}

/* ---- rows ---- */

static void put_digits(const uint8_t *planes, uint8_t *to)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)planes);
    const __m256i middle = _mm256_loadu_si256((const __m256i *)(planes + RUN));
    const __m256i high = _mm256_loadu_si256((const __m256i *)(planes + 2 * RUN));
    const __m256i fours = _mm256_set1_epi8(15), eights = _mm256_set1_epi8(8);
    const __m256i e0 = _mm256_andnot_si256(fours, _mm256_slli_epi16(middle, 4)); /* times 16 */
    const __m256i floor = _mm256_sub_epi8(
        _mm256_xor_si256(_mm256_and_si256(_mm256_srli_epi16(middle, 4), fours), eights), eights);
    const __m256i is_less = _mm256_cmpeq_epi8(_mm256_and_si256(middle, eights), eights);
    const __m256i e1 = _mm256_sub_epi8(floor, is_less); /* e0 is negative where floor is less */
    _mm256_storeu_si256((__m256i *)to, low);
    _mm256_storeu_si256((__m256i *)(to + RUN), e0);
    to += ROWS * SDX_TILE_BYTES;
    _mm256_storeu_si256((__m256i *)to, e1);
    _mm256_storeu_si256((__m256i *)(to + RUN), high);
}
static void tall_row(const struct walk *t, const float *a, int64_t lane, uint8_t *to)
{
    struct {
        struct sdx_nbits_fact fact;
        uint8_t bytes[LONGEST];
    } row;
    const struct sdx_nbits one = {
        .k = t->depth, .block = t->depth, .bits = t->w->bits, .whole = t->w->whole};
    float sum = 0;
    for (int64_t i = 0; i < t->count; i++, a += t->depth, to += t->size) {
        struct unit *u = (void *)to;
        uint8_t *bytes = to + sizeof *u + lane * t->step;
        if (t->has_digits) {
            thin.nbits_digit_row(&one, a, &row);
            put_digits(row.bytes, bytes);
        } else {
            thin.nbits_row(&one, 1, a, &row);
            for (int64_t k = 0; k < t->depth; k += t->step)
                memcpy(bytes + k * ROWS, row.bytes + k, (size_t)t->step);
        }
        sum = i % t->of_block ? sum + row.fact.sum : row.fact.sum;
        u->scale[lane] = row.fact.scale;
        u->sum[lane] = sum;
    }
}
/* Rows of the last tile that there are not get facts of 0. */
static void tall_rows(const struct sdx_nbits *w, int64_t m, const float *a, int64_t row_a,
                      int64_t i0, int64_t i1, void *rows)
{
    const struct walk t = walk_of(w);
    for (int64_t i = i0; i < i1; i++)
        tall_row(&t, a + i * row_a, i % ROWS, (uint8_t *)rows + i / ROWS * t.count * t.size);
    if (i1 < m || m % ROWS == 0) return;
    uint8_t *last = (uint8_t *)rows + m / ROWS * t.count * t.size;
    for (int64_t i = 0; i < t.count; i++, last += t.size) {
        struct unit *u = (void *)last;
        for (int64_t r = m % ROWS; r < ROWS; r++)
            u->scale[r] = u->sum[r] = 0;
    }
}

/* ---- sums ---- */

/* The weights of n units from `unit` on as signed bytes: of whole products four k of all columns
 * after the other, a run of digits as a tile for each vector, the weights and 16 times them. */
static void make_bytes(const struct walk *t, const uint8_t *panel, int64_t unit, int64_t n,
                       uint8_t *to)
{
    const int64_t each = 32 / t->w->bits, block = t->of_block * t->depth;
    const int64_t first = unit % t->of_block * t->depth;
    const vi high = vi_set1((int32_t)0xf0f0f0f0), top = vi_set1((int32_t)0x80808080);
    const __m512i eight = _mm512_set1_epi8(8);
    const uint8_t *from = panel + unit / t->of_block * t->block + t->scales + first / each * ROW;
    enum { HALF = 8 * SDX_TILE_BYTES, BOTH = 2 * HALF };
    for (int64_t k = 0, left = block - first; k < n * t->depth; k += each, from += ROW) {
        NBITS_PAIR
        {
            const vi word = vi_load(from + j * SDX_TILE_BYTES);
            uint8_t *tile = to + j * SDX_TILE_BYTES;
            if (each == 4) {
                vi_store(tile, word ^ top);
                continue;
            }
            const vi even = (vi)_mm512_sub_epi8((__m512i)nbits_whole_run(4, 0, word), eight);
            const vi odd = (vi)_mm512_sub_epi8((__m512i)nbits_whole_run(4, 1, word), eight);
            if (t->has_digits) {
                tile = to + j * BOTH + k % RUN / 4 * SDX_TILE_BYTES;
                vi_store(tile + HALF, ((word << 4) & high) ^ top);
                vi_store(tile + HALF + SDX_TILE_BYTES, (word & high) ^ top);
            }
            vi_store(tile, even);
            vi_store(tile + (t->has_digits ? SDX_TILE_BYTES : ROW), odd);
        }
        if (!t->has_digits)
            to += each / 4 * ROW;
        else if (k % RUN == RUN - each)
            to += 2 * BOTH;
        left -= each;
        if (left > 0) continue;
        left = block;
        from += t->scales;
    }
}

SIMD void load_first(const bool digits, const struct walk *t, const uint8_t *a, const uint8_t *b)
{
    a += sizeof(struct unit);
    _tile_loadd(2, a, t->step);
    if (digits) _tile_loadd(3, a + ROWS * SDX_TILE_BYTES, SDX_TILE_BYTES);
    _tile_loadd(4, b, digits ? SDX_TILE_BYTES : ROW);
}
SIMD void multiply_unit(const bool digits, const struct walk *t, const uint8_t *a, const uint8_t *b)
{
    _tile_zero(0);
    _tile_dpbssd(0, 2, 4);
    if (digits) {
        _tile_zero(1);
        _tile_dpbssd(1, 3, 4);
        return;
    }
    a += sizeof(struct unit);
    for (int64_t k = t->step; k < t->depth; k += t->step) {
        _tile_loadd(5, a + k * ROWS, t->step);
        _tile_loadd(6, b + k / 4 * ROW, ROW);
        _tile_dpbssd(0, 5, 6);
    }
}
/* Adds a unit's sums to c; scale: of the columns, and after it their shifts. */
SIMD void join(const bool digits, const struct unit *u, const int32_t *sums, const float *scale,
               bool shifts, vf c[ROWS])
{
    const vf of = v_load(scale);
    EACH_ROW
    {
        vi sum = vi_load(sums + r * LANES);
        if (digits) sum = vi_add(sum, vi_load(sums + TILE + r * LANES) << 12);
        c[r] = v_fma(v_from_int(sum), v_set1(u->scale[r]) * of, c[r]);
    }
    if (!shifts) return;
    const vf shift = v_load(scale + NBITS_COLS);
    EACH_ROW c[r] = v_fma(v_set1(u->sum[r]), shift, c[r]);
}
/* A tile of rows by a vector of columns over n units, those from `unit` on: a of the rows, b of the
 * weights, `apart` bytes from unit to unit. A unit's sums become floats beside the products of the
 * next one, whose operands are loaded before sums are stored: a load waits for stores that have the
 * same last 12 bits of an address. */
SIMD void run_units(const bool digits, const struct walk *t, const uint8_t *a, const uint8_t *b,
                    int64_t apart, const uint8_t *column, int64_t unit, int64_t n, float *to)
{
    _Alignas(64) int32_t sums[2][2 * TILE];
    vf c[ROWS];
    EACH_ROW c[r] = v_load(to + r * LANES);
    const float *scale = (const void *)(column + unit / t->of_block * t->block);
    int64_t left = t->of_block - unit % t->of_block; /* units of the block */
    load_first(digits, t, a, b);
    for (int64_t i = 0; i <= n; i++, a += t->size, b += apart) {
        if (i < n) multiply_unit(digits, t, a, b);
        if (i + 1 < n) load_first(digits, t, a + t->size, b + apart);
        if (i > 0) {
            const bool ends = --left == 0 || unit + i == t->count;
            join(digits, (const void *)(a - t->size), sums[(i - 1) % 2], scale,
                 t->w->has_zeros && ends, c);
            if (left == 0) {
                scale = (const void *)((const uint8_t *)scale + t->block);
                left = t->of_block;
            }
        }
        if (i == n) break;
        _tile_stored(0, sums[i % 2], SDX_TILE_BYTES);
        if (digits) _tile_stored(1, sums[i % 2] + TILE, SDX_TILE_BYTES);
        sdx_tile_fence();
    }
    EACH_ROW v_store(to + r * LANES, c[r]);
}
static SDX_NOINLINE void run_digits(const struct walk *t, const uint8_t *a, const uint8_t *b,
                                    int64_t apart, const uint8_t *column, int64_t unit, int64_t n,
                                    float *to)
{
    run_units(true, t, a, b, apart, column, unit, n, to);
}
static SDX_NOINLINE void run_whole(const struct walk *t, const uint8_t *a, const uint8_t *b,
                                   int64_t apart, const uint8_t *column, int64_t unit, int64_t n,
                                   float *to)
{
    run_units(false, t, a, b, apart, column, unit, n, to);
}

typedef float tile_sums[2 * PANELS][TILE]; /* of a tile of rows, vector by vector of columns */
static void store_tile(const struct sdx_nbits_job *g, int64_t row, int64_t column, int64_t panels,
                       tile_sums *c)
{
    for (int64_t r = 0; r < ROWS && row + r < g->m; r++)
        for (int64_t p = 0; p < panels; p++) {
            vf s[1][2];
            NBITS_PAIR s[0][j] = v_load((*c)[2 * p + j] + r * LANES);
            nbits_store_panel(1, g, row + r, column + p * NBITS_COLS, s);
        }
}
static void configure(const struct walk *t)
{
    struct sdx_tile_config c = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        const bool is_weights = i == 4 || i == 6;
        c.row_bytes[i] = (uint16_t)(i < 2 || is_weights ? SDX_TILE_BYTES : t->step);
        c.rows[i] = (uint8_t)(is_weights ? t->step / 4 : ROWS);
    }
    _tile_loadconfig(&c);
}
static void tall_run(const struct sdx_nbits_job *g)
{
    const struct walk walk = walk_of(g->w), *t = &walk;
    const int64_t most = t->has_digits ? CHUNK / 2 / t->depth : CHUNK / t->depth;
    const int64_t units = most < 1 ? 1 : most, tiles = tiles_of(g->m), all = t->count * t->size;
    const int64_t apart = t->has_digits ? 2 * ROWS * SDX_TILE_BYTES : t->depth * NBITS_COLS;
    const int64_t next = t->has_digits ? ROWS * SDX_TILE_BYTES : SDX_TILE_BYTES;
    _Alignas(64) uint8_t bytes[PANELS][LONGEST * NBITS_COLS];
    _Alignas(64) tile_sums c[TALL];
    configure(t);
    for (int64_t column = 0; column < g->width; column += PANELS * NBITS_COLS) {
        const int64_t panels = g->width - column > NBITS_COLS ? PANELS : 1;
        const uint8_t *panel = (const uint8_t *)(g->packed + column / NBITS_COLS * g->panel_step);
        memset(c, 0, sizeof c);
        for (int64_t u = 0, n; u < t->count; u += n) {
            n = t->count - u < units ? t->count - u : units;
            for (int64_t p = 0; p < panels; p++)
                make_bytes(t, panel + 4 * p * g->panel_step, u, n, bytes[p]);
            sdx_tile_fence();
            for (int64_t i = 0; i < tiles; i++)
                for (int64_t v = 0; v < 2 * panels; v++) {
                    const uint8_t *a = g->rows + i * all + u * t->size;
                    const uint8_t *of = panel + 4 * (v / 2) * g->panel_step;
                    (t->has_digits ? run_digits : run_whole)(t, a, bytes[v / 2] + v % 2 * next,
                                                             apart, of + v % 2 * SDX_TILE_BYTES, u,
                                                             n, c[i][v]);
                }
        }
        for (int64_t i = 0; i < tiles; i++)
            store_tile(g, i * ROWS, column, panels, c + i);
    }
    _tile_release();
}

void sdx_nbits_init_amx(struct sdx_gemm_table *gemm)
{
    thin = *gemm;
    gemm->nbits_tall_size = tall_size;
    gemm->nbits_tall_rows = tall_rows;
    gemm->nbits_tall_run = tall_run;
}
