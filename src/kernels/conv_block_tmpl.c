/* SPDX-License-Identifier: Apache-2.0
 * Register tiles of the convolution over blocked channels, and the reorders between plain and
 * blocked. Once an instruction set. A tile is some pixels by one to four vectors of channels; every
 * output is one chain of additions in the order of the packed weights, whatever the tile. */
#include "kernels/conv_block_curve.h"
#include "kernels/tables.h"
#include "kernels/transpose.h"

/* Heights of the tiles by their vectors, and the largest one: the accumulators, the weights of one
 * k and a broadcast value fill the registers, the pointers of the pixels the other ones. */
#if defined(SDX_SIMD_NEON) /* and a vector of four values of each pixel */
#define HEIGHTS_1(X, v) HEIGHTS_2(X, v) X(v, 10) X(v, 11) X(v, 12)
#define HEIGHTS_2(X, v) X(v, 1) X(v, 2) X(v, 3) X(v, 4) X(v, 5) X(v, 6) X(v, 7) X(v, 8) X(v, 9)
#define VECTORS(X)      X(1, 12) X(2, 9)
enum { MOST_VECTORS = 2, MOST_ROWS = 12 };
#elif defined(SDX_SET_AVX512)
#define HEIGHTS_1(X, v) HEIGHTS_2(X, v)
#define HEIGHTS_2(X, v) HEIGHTS_3(X, v) X(v, 10) X(v, 11) X(v, 12)
#define HEIGHTS_3(X, v) HEIGHTS_4(X, v) X(v, 7) X(v, 8) X(v, 9)
#define HEIGHTS_4(X, v) X(v, 1) X(v, 2) X(v, 3) X(v, 4) X(v, 5) X(v, 6)
#define VECTORS(X)      X(1, 12) X(2, 12) X(3, 9) X(4, 6)
#define HALVED(X)       X(2, 12) X(3, 9)
enum { MOST_VECTORS = 4, MOST_ROWS = 12 };
#elif defined(SDX_SET_AVX2)
#define HEIGHTS_1(X, v) HEIGHTS_2(X, v) X(v, 7) X(v, 8)
#define HEIGHTS_2(X, v) HEIGHTS_3(X, v) X(v, 5) X(v, 6)
#define HEIGHTS_3(X, v) X(v, 1) X(v, 2) X(v, 3) X(v, 4)
#define VECTORS(X)      X(1, 8) X(2, 6) X(3, 4)
enum { MOST_VECTORS = 3, MOST_ROWS = 8 };
#else
#define HEIGHTS_1(X, v) HEIGHTS_2(X, v) X(v, 5) X(v, 6)
#define HEIGHTS_2(X, v) X(v, 1) X(v, 2) X(v, 3) X(v, 4)
#define VECTORS(X)      X(1, 6) X(2, 4)
enum { MOST_VECTORS = 2, MOST_ROWS = 6 };
#endif
#define MOST_OF(v, most) most,
static const int most_rows[] = {VECTORS(MOST_OF)};
enum { LINE = 16 };
#define ROWS(n) SDX_UNROLL(16) for (int i = 0; i < (n); i++)
#define COLS(n) SDX_UNROLL(4) for (int j = 0; j < (n); j++)

/* a * b + c in the lower half: half the work where a vector is worked in halves (Zen 4). */
#ifdef SDX_SET_AVX512
SIMD vf v_fma_lower(vf a, vf b, vf c)
{
    return (vf)_mm512_zextps256_ps512(_mm256_fmadd_ps(_mm512_castps512_ps256((__m512)a),
                                                      _mm512_castps512_ps256((__m512)b),
                                                      _mm512_castps512_ps256((__m512)c)));
}
#else
#define v_fma_lower(a, b, c) v_fma(a, b, c)
#endif

typedef vf sums[MOST_ROWS][MOST_VECTORS];

/* halved: outputs are the lower half of the last vector, or fewer. */
SIMD void tile_step(const int mr, const int nv, const bool halved, sums s,
                    const float *const p[MOST_ROWS], int64_t at, const int u, const float *w)
{
    vf v[MOST_VECTORS];
    COLS(nv)
    {
        v[j] = v_load(w + (u * nv + j) * LANES);
        V_KEEP(v[j]);
    }
    ROWS(mr)
    {
        const vf x = v_set1(p[i][at + u]);
        COLS(nv - halved) s[i][j] = v_fma(x, v[j], s[i][j]);
        if (halved) s[i][nv - 1] = v_fma_lower(x, v[nv - 1], s[i][nv - 1]);
        V_USE(x);
    }
    COLS(nv) V_USE(v[j]);
}
#ifdef SDX_SIMD_NEON
/* A chunk of all lanes: every value is a lane of its pixel's vector. */
SIMD void tile_lanes(const int mr, const int nv, sums s, const float *const p[MOST_ROWS],
                     int64_t at, const float *w)
{
    vf x[MOST_ROWS];
    ROWS(mr)
    {
        x[i] = v_load(p[i] + at);
        V_KEEP(x[i]);
    }
    SDX_UNROLL(4) for (int u = 0; u < LANES; u++)
    {
        vf v[MOST_VECTORS];
        COLS(nv)
        {
            v[j] = v_load(w + (u * nv + j) * LANES);
            V_KEEP(v[j]);
        }
        ROWS(mr) COLS(nv) s[i][j] = v_fma_lane(v[j], x[i], u, s[i][j]);
        COLS(nv) V_USE(v[j]);
    }
    ROWS(mr) V_USE(x[i]);
}
#endif
SIMD void tile_chunk(const int mr, const int nv, const bool halved, const int length, sums s,
                     const float *const p[MOST_ROWS], int64_t at, const float *w)
{
#ifdef SDX_SIMD_NEON
    if (length == LANES) {
        tile_lanes(mr, nv, s, p, at, w);
        return;
    }
#endif
#if SDX_SIMD_LANES == 16 /* large tiles: less code */
    SDX_UNROLL(4)
#else
    SDX_UNROLL(8)
#endif
    for (int u = 0; u < length; u++)
        tile_step(mr, nv, halved, s, p, at, u, w);
}
/* Runs of chunks of a number of values known when compiling. With each chunk come `lines` of what
 * lies `ahead` floats behind its weights. */
SIMD void tile_runs(const int mr, const int nv, const bool halved, const int length, sums s,
                    const float *const p[MOST_ROWS], const struct sdx_conv_block_job *g,
                    const struct sdx_conv_block_run *run, int64_t runs, int64_t chunks,
                    const float *weights, int64_t ahead, int64_t lines)
{
    const int64_t beyond = g->brings_pixels ? mr * LANES : 0;
    for (; runs > 0; runs--, run++) {
        int64_t at = run->x;
        const float *w = weights + run->w * (nv * LANES);
        for (int64_t n = chunks; n > 0; n--) {
            P_KEEP(at); /* or each pixel gets an index of its own */
            if (length >= LANES) {
                for (int64_t i = 0; i < lines; i++)
                    __builtin_prefetch(w + ahead + i * LINE, 0, 2);
                if (beyond) {
                    const float *next = p[0] + at + beyond;
                    ROWS(mr) if (i * LANES % LINE == 0) __builtin_prefetch(next + i * LANES, 0, 3);
                }
            }
            tile_chunk(mr, nv, halved, length, s, p, at, w);
            w += length * nv * LANES;
            at += g->step;
        }
    }
}
SIMD void tile_tail(const int mr, const int nv, const bool halved, sums s,
                    const float *const p[MOST_ROWS], const struct sdx_conv_block_job *g)
{
    const struct sdx_conv_block_run *run = g->run + g->runs;
    for (int64_t r = g->tail_runs; r > 0; r--, run++) {
        int64_t first = run->x;
        const float *w = g->weights_tail + run->w * (nv * LANES);
        for (int64_t n = g->tail_chunks; n > 0; n--, first += g->step)
            for (int64_t at = first; at < first + g->tail; at++, w += nv * LANES) {
                int64_t here = at;
                P_KEEP(here);
                tile_step(mr, nv, halved, s, p, here, 0, w);
            }
    }
}

SIMD void tile_begin(const int mr, const int nv, sums s, const struct sdx_conv_block_job *g,
                     const int64_t *to)
{
    if (g->bias) {
        ROWS(mr) COLS(nv) s[i][j] = v_load(g->bias + j * LANES);
    } else {
        ROWS(mr) COLS(nv) s[i][j] = v_load(g->y + to[i] + j * g->y_step);
    }
}
SIMD void tile_end(const int mr, const int nv, sums s, const struct sdx_conv_block_job *g,
                   const int64_t *to)
{
    float *const y = g->y;
    const int64_t step = g->y_step; /* gcc would read both again after each store */
    const vf lo = v_set1(g->lo), hi = v_set1(g->hi);
    if (SDX_UNLIKELY(g->residual)) {
        ROWS(mr) COLS(nv) s[i][j] += v_load(g->residual + to[i] + j * step);
    }
    ROWS(mr)
    {
        float *at = y + to[i];
        COLS(nv) v_store(at + j * step, v_min(hi, v_max(lo, s[i][j])));
    }
}
/* The lines of a chunk's weights that the pixels before this one have brought of the next ones: all
 * pixels bring all of them. */
SIMD int64_t line_at(const struct sdx_conv_block_job *g, const int nv, int64_t pixel)
{
    return g->ahead ? (int64_t)((float)(g->phase + pixel) * g->share * (float)nv) : 0;
}
/* `count` tiles of pixels in turn. few: no run but those of chunks of 3 or 7 values. */
SIMD void strip(const int mr, const int nv, const bool halved, const bool few,
                const struct sdx_conv_block_job *g, int64_t pixel, int64_t count)
{
    for (; count > 0; count--, pixel += mr) {
        sums s;
        const float *p[MOST_ROWS];
        ROWS(mr) p[i] = g->x + g->from[pixel + i];
        tile_begin(mr, nv, s, g, g->to + pixel);
        if (!few) {
            const int64_t line = line_at(g, nv, pixel);
            tile_runs(mr, nv, halved, LANES, s, p, g, g->run, g->runs, g->chunks, g->weights,
                      g->ahead + line * LINE, line_at(g, nv, pixel + mr) - line);
            tile_tail(mr, nv, halved, s, p, g);
        } else if (g->tail == 3)
            tile_runs(mr, nv, halved, 3, s, p, g, g->run, g->tail_runs, g->tail_chunks,
                      g->weights_tail, 0, 0);
        else
            tile_runs(mr, nv, halved, 7, s, p, g, g->run, g->tail_runs, g->tail_chunks,
                      g->weights_tail, 0, 0);
        tile_end(mr, nv, s, g, g->to + pixel);
    }
}

/* One function a tile, so that it is inlined in its loop. Few values have the largest tile only. */
typedef void (*strip_fn)(const struct sdx_conv_block_job *g, int64_t pixel, int64_t count);
#define STRIP(v, mr)                                                                               \
    static void strip_##v##_##mr(const struct sdx_conv_block_job *g, int64_t pixel, int64_t count) \
    {                                                                                              \
        strip(mr, v, false, false, g, pixel, count);                                               \
    }
#define STRIPS(v, most) HEIGHTS_##v(STRIP, v)
#define FEW(v, most)                                                                               \
    static void few_##v(const struct sdx_conv_block_job *g, int64_t pixel, int64_t count)          \
    {                                                                                              \
        strip(most, v, false, true, g, pixel, count);                                              \
    }
VECTORS(STRIPS)
VECTORS(FEW)
#define NAME(v, mr)       strip_##v##_##mr,
#define NAMES(v, most)    {HEIGHTS_##v(NAME, v)},
#define FEW_NAME(v, most) few_##v,
static const strip_fn strips[MOST_VECTORS][MOST_ROWS] = {VECTORS(NAMES)};
static const strip_fn fews[MOST_VECTORS] = {VECTORS(FEW_NAME)};

/* The largest tiles of a panel whose last vector is halved. */
#ifdef HALVED
#define HALF(v, most)                                                                              \
    static void half_##v(const struct sdx_conv_block_job *g, int64_t pixel, int64_t count)         \
    {                                                                                              \
        strip(most, v, true, false, g, pixel, count);                                              \
    }
HALVED(HALF)
#define HALF_NAME(v, most) [(v)-1] = half_##v,
static const strip_fn halves[MOST_VECTORS] = {HALVED(HALF_NAME)};
#else
static const strip_fn halves[MOST_VECTORS];
#endif

/* The activation that is a curve, of these pixels of all vectors. */
static void curve_pixels(int vectors, const struct sdx_conv_block_job *g, int64_t pixel,
                         int64_t count)
{
    const int64_t end = pixel + count;
    while (pixel < end) {
        const int64_t *to = g->to + pixel;
        int64_t n = 1; /* side by side */
        while (pixel + n < end && to[n] - to[n - 1] == LANES)
            n++;
        for (int j = 0; j < vectors; j++)
            block_curve(g->y + to[0] + j * g->y_step, n, g->act, g->a, g->b);
        pixel += n;
    }
}
/* `count` tiles of `rows` pixels from `pixel` on. A curve comes over some tiles at once, while they
 * lie in the first cache: over one, each vector would wait for the operation before. */
static void tiles_at(strip_fn run, int rows, int vectors, const struct sdx_conv_block_job *g,
                     int64_t pixel, int64_t count)
{
    enum { SOME = 16 };
    if (!block_is_curved(g->act)) {
        run(g, pixel, count);
        return;
    }
    while (count > 0) {
        const int64_t n = count < SOME ? count : SOME;
        run(g, pixel, n);
        curve_pixels(vectors, g, pixel, n * rows);
        pixel += n * rows;
        count -= n;
    }
}
/* All pixels, in tiles whose heights differ by at most one, so that none is thin. */
static void panel(int vectors, const struct sdx_conv_block_job *g)
{
    const int most = most_rows[vectors - 1];
    const bool is_few = g->runs == 0 && (g->tail == 3 || g->tail == 7);
    const strip_fn largest = is_few ? fews[vectors - 1] : g->is_halved ? halves[vectors - 1] : NULL;
    const int64_t done = largest ? g->pixels / most * most : 0;
    if (largest) tiles_at(largest, most, vectors, g, 0, g->pixels / most);
    const int64_t left = g->pixels - done, tiles = (left + most - 1) / most;
    if (tiles <= 0) return;
    const int64_t taller = left % tiles;
    const int height = (int)(left / tiles);
    const strip_fn *fns = strips[vectors - 1];
    if (taller) tiles_at(fns[height], height + 1, vectors, g, done, taller);
    tiles_at(fns[height - 1], height, vectors, g, done + taller * (height + 1), tiles - taller);
}

SIMD void turn_floats(const float *src, int64_t stride, float *dst, int64_t stride_dst)
{
    turn((const uint32_t *)src, (size_t)stride, (uint32_t *)dst, (size_t)stride_dst);
}
/* SIDE pixels of SIDE lanes, of which `channels` have a meaning; the others become zeros. */
SIMD void side_from_plain(const float *plain, int64_t pitch, int64_t channels, float *blocked)
{
    if (channels >= SIDE) {
        turn_floats(plain, pitch, blocked, LANES);
        return;
    }
    float square[SIDE * SIDE] = {0};
    for (int64_t c = 0; c < channels; c++)
        memcpy(square + c * SIDE, plain + c * pitch, SIDE * sizeof(float));
    turn_floats(square, SIDE, blocked, LANES);
}
SIMD void side_to_plain(const float *blocked, int64_t channels, float *plain, int64_t pitch)
{
    if (channels >= SIDE) {
        turn_floats(blocked, LANES, plain, pitch);
        return;
    }
    float turned[SIDE * SIDE];
    turn_floats(blocked, LANES, turned, SIDE);
    for (int64_t c = 0; c < channels; c++)
        memcpy(plain + c * pitch, turned + c * SIDE, SIDE * sizeof(float));
}
static void from_plain(const float *plain, int64_t pitch, int64_t channels, int64_t pixels,
                       float *blocked)
{
    for (int64_t at = 0; at < pixels; at += SIDE, plain += SIDE, blocked += SIDE * LANES) {
        const int64_t some = pixels - at < SIDE ? pixels - at : SIDE;
        if (some == SIDE) {
            for (int64_t c = 0; c < LANES; c += SIDE)
                side_from_plain(plain + c * pitch, pitch, channels - c, blocked + c);
            continue;
        }
        float square[LANES * SIDE] = {0}, turned[SIDE * LANES];
        for (int64_t c = 0; c < channels; c++)
            memcpy(square + c * SIDE, plain + c * pitch, (size_t)some * sizeof(float));
        for (int64_t c = 0; c < LANES; c += SIDE)
            turn_floats(square + c * SIDE, SIDE, turned + c, LANES);
        memcpy(blocked, turned, (size_t)(some * LANES) * sizeof(float));
    }
}
static void to_plain(const float *blocked, int64_t channels, int64_t pixels, float *plain,
                     int64_t pitch)
{
    for (int64_t at = 0; at < pixels; at += SIDE, plain += SIDE, blocked += SIDE * LANES) {
        const int64_t some = pixels - at < SIDE ? pixels - at : SIDE;
        if (some == SIDE) {
            for (int64_t c = 0; c < channels; c += SIDE)
                side_to_plain(blocked + c, channels - c, plain + c * pitch, pitch);
            continue;
        }
        float square[SIDE * LANES] = {0}, turned[LANES * SIDE];
        memcpy(square, blocked, (size_t)(some * LANES) * sizeof(float));
        for (int64_t c = 0; c < LANES; c += SIDE)
            turn_floats(square + c, LANES, turned + c * SIDE, SIDE);
        for (int64_t c = 0; c < channels; c++)
            memcpy(plain + c * pitch, turned + c * SIDE, (size_t)some * sizeof(float));
    }
}

void SDX_INIT(sdx_conv_block_init_)(struct sdx_conv_block_table *table)
{
    table->lanes = LANES;
    table->vectors = MOST_VECTORS;
    table->rows = most_rows[MOST_VECTORS - 1];
    table->f32_panel = panel;
    table->f32_from_plain = from_plain;
    table->f32_to_plain = to_plain;
}
