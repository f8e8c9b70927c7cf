/* SPDX-License-Identifier: Apache-2.0
 * Register tiles of the f32 matrix product and its packing. Once an instruction set. Every element
 * of C is one chain of additions in rising k, whatever the tile, so results do not depend on how M
 * and N are cut. With FMA (avx2, avx512, NEON) a step rounds once, else twice: sets differ by at
 * most 2 k 2^-24 * sum |a| |b|. */
#include "kernels/act_blocks.h"
#include "kernels/tables.h"
#include "kernels/transpose.h"

/* Accumulators, one row of B and a broadcast of A fill the registers: 16 of them, or 32. */
#if SDX_SIMD_LANES == 16
enum { ROWS = 12, STEP = 4 };
#elif SDX_SIMD_LANES == 8
enum { ROWS = 6, STEP = 8 };
#elif defined(SDX_SIMD_NEON)
enum { ROWS = 8, STEP = 4 }; /* and a vector of four k of each row of A */
#else
enum { ROWS = 4, STEP = 1 }; /* more mix their loads and spill */
#endif
enum { FETCHES = LANES > 4 };
enum { COLS = 2 * LANES, TILE = ROWS * COLS, LINE = 64 };
/* With few tiles the next panel comes faster: of a lone one as much in STEP steps as it reads. */
enum { FEW_LINES = 4, FEW_ROWS = 4 * ROWS, READ_LINES = STEP * COLS * 4 / LINE };
enum { ALL_LINES = READ_LINES > FEW_LINES ? READ_LINES : FEW_LINES };
#define TIMES(n) SDX_UNROLL(16) for (int i = 0; i < (n); i++)

struct place {
    const float *a, *b;
    float *c;
    const float *bias_col, *bias_row, *residual;
    const char *ahead; /* what to fetch into the second cache meanwhile, */
    int lines;         /* so many at a time */
    const uint16_t *half, *next;
};

/* The activation of `count` sums in t, which has room for whole blocks: one function, as in every
 * tile it would take too much code. */
static SDX_NOINLINE void curve_tile(float *t, int count, const struct sdx_epilogue *e)
{
    const int whole = (count + BLOCK - 1) / BLOCK * BLOCK;
    for (int i = count; i < whole; i++)
        t[i] = 0.0f;
    act_blocks(t, whole, e->act, e->a, e->b);
}
#define CELLS TIMES(mr) SDX_UNROLL(2) for (int j = 0; j < nv; j++)
SIMD void finish_tile(const int mr, const int nv, vf s[ROWS][2], const struct sdx_gemm_job *g,
                      const struct place *p)
{
    const struct sdx_epilogue *e = &g->epilogue;
    if (g->alpha != 1.0f) CELLS s[i][j] *= v_set1(g->alpha);
    if (g->last && p->bias_row) CELLS s[i][j] += v_set1(p->bias_row[i]);
    if (g->last && p->bias_col) CELLS s[i][j] += v_load(p->bias_col + j * LANES);
    if (p->residual) CELLS s[i][j] += v_load(p->residual + i * g->row_c + j * LANES);
    if (g->last && (e->act == SDX_ACT_RELU || e->act == SDX_ACT_CLIP)) {
        const vf lo = v_set1(e->act == SDX_ACT_RELU ? 0.0f : e->a);
        const vf hi = v_set1(e->act == SDX_ACT_RELU ? INFINITY : e->b);
        CELLS s[i][j] = v_min(hi, v_max(lo, s[i][j]));
    } else if (g->last && e->act != SDX_ACT_NONE) {
        float t[(TILE + BLOCK - 1) / BLOCK * BLOCK];
        CELLS v_store(t + (i * nv + j) * LANES, s[i][j]);
        curve_tile(t, mr * nv * LANES, e);
        CELLS s[i][j] = v_load(t + (i * nv + j) * LANES);
    }
    CELLS v_store(p->c + i * g->row_c + j * LANES, s[i][j]);
}
#undef CELLS

/* Row i of A begins at group[i / 3] + i % 3 * row_a: three rows to a pointer are what x86
 * addressing can reach, and one pointer a row would be too many. NEON has the registers. */
#ifdef SDX_SIMD_NEON
enum { GROUP = 1 };
#else
enum { GROUP = 3 };
#endif
enum { GROUPS = (ROWS + GROUP - 1) / GROUP };
SIMD void tile_step(const int mr, const int nv, vf s[ROWS][2], const float *const group[GROUPS],
                    const int u, int64_t row_a, const float *b)
{
    vf w[2];
    P_KEEP(row_a); /* or each u gets offsets of its own */
    SDX_UNROLL(2) for (int j = 0; j < nv; j++)
    {
        w[j] = v_load(b + j * LANES);
        V_KEEP(w[j]);
    }
    TIMES(mr)
    {
        vf x = v_set1(group[i / GROUP][i % GROUP * row_a + u]);
        SDX_UNROLL(2) for (int j = 0; j < nv; j++) s[i][j] = v_fma(x, w[j], s[i][j]);
        V_USE(x);
    }
    SDX_UNROLL(2) for (int j = 0; j < nv; j++) V_USE(w[j]);
}
#ifdef SDX_SIMD_NEON
SIMD void tile_steps(const int mr, const int nv, vf s[ROWS][2], const float *const group[GROUPS],
                     int64_t row_a, const float *b, int64_t row_b)
{
    vf x[ROWS];
    (void)row_a;
    TIMES(mr)
    {
        x[i] = v_load(group[i]);
        V_KEEP(x[i]);
    }
    SDX_UNROLL(4) for (int u = 0; u < STEP; u++, b += row_b)
    {
        vf w[2];
        SDX_UNROLL(2) for (int j = 0; j < nv; j++)
        {
            w[j] = v_load(b + j * LANES);
            V_KEEP(w[j]);
        }
        TIMES(mr)
        SDX_UNROLL(2) for (int j = 0; j < nv; j++) s[i][j] = v_fma_lane(w[j], x[i], u, s[i][j]);
        SDX_UNROLL(2) for (int j = 0; j < nv; j++) V_USE(w[j]);
    }
    TIMES(mr) V_USE(x[i]);
}
#else
SIMD void tile_steps(const int mr, const int nv, vf s[ROWS][2], const float *const group[GROUPS],
                     int64_t row_a, const float *b, int64_t row_b)
{
#if SDX_SIMD_LANES == 16 /* large tiles: less code */
    SDX_UNROLL(4)
#else
    SDX_UNROLL(8)
#endif
    for (int u = 0; u < STEP; u++)
        tile_step(mr, nv, s, group, u, row_a, b + u * row_b);
}
#endif
/* A tile fetches lines of the panel behind its own for STEP steps: one, so that eight tiles fetch
 * all of it, or `lines`. */
SIMD void tile(const int mr, const int nv, const bool fetches, const struct sdx_gemm_job *g,
               const struct place *p, const int64_t row_b)
{
    vf s[ROWS][2];
    const char *ahead = p->ahead;
    const int lines = p->lines;
    const int64_t row_a = g->row_a;
    if (g->from_c) TIMES(mr)
    SDX_UNROLL(2) for (int j = 0; j < nv; j++) s[i][j] = v_load(p->c + i * g->row_c + j * LANES);
    else TIMES(mr) SDX_UNROLL(2) for (int j = 0; j < nv; j++) s[i][j] = v_set1(0.0f);
    const float *group[GROUPS], *b = p->b;
    TIMES((mr + GROUP - 1) / GROUP) group[i] = p->a + GROUP * i * row_a;
    int64_t k = g->k;
    for (; k >= STEP; k -= STEP, b += STEP * row_b) {
        if (fetches) {
            __builtin_prefetch(ahead, 0, 2);
            if (lines > 1) {
                SDX_UNROLL(8)
                for (int i = 1; i < FEW_LINES; i++)
                    __builtin_prefetch(ahead + i * LINE, 0, 2);
                if (lines > FEW_LINES) SDX_UNROLL(8)
                for (int i = FEW_LINES; i < ALL_LINES; i++)
                    __builtin_prefetch(ahead + i * LINE, 0, 2);
            }
            ahead += lines * LINE;
        }
        tile_steps(mr, nv, s, group, row_a, b, row_b);
        TIMES((mr + GROUP - 1) / GROUP)
        {
            group[i] += STEP;
            P_KEEP(group[i]);
        }
    }
    for (; k > 0; k--, b += row_b) {
        tile_step(mr, nv, s, group, 0, row_a, b);
        TIMES((mr + GROUP - 1) / GROUP) group[i]++;
    }
    finish_tile(mr, nv, s, g, p);
}
/* `count` tiles one below the other. */
SIMD void strip(const int mr, const int nv, const bool fetches, const struct sdx_gemm_job *g,
                struct place p, int64_t count, const int64_t row_b)
{
    for (; count > 0; count--) {
        tile(mr, nv, fetches, g, &p, row_b);
        p.a += mr * g->row_a;
        p.c += mr * g->row_c;
        p.ahead += g->k / STEP * p.lines * LINE;
        if (p.bias_row) p.bias_row += mr;
        if (p.residual) p.residual += mr * g->row_c;
    }
}

/* One function a tile height, so that the tile is inlined in its loop. */
typedef void (*strip_fn)(const struct sdx_gemm_job *g, struct place p, int64_t count);
#define STRIP(mr)                                                                                  \
    static void strip_##mr(const struct sdx_gemm_job *g, struct place p, int64_t count)            \
    {                                                                                              \
        strip(mr, 2, FETCHES, g, p, count, COLS);                                                  \
    }                                                                                              \
    static void strip_half_##mr(const struct sdx_gemm_job *g, struct place p, int64_t count)       \
    {                                                                                              \
        strip(mr, 1, false, g, p, count, COLS);                                                    \
    }                                                                                              \
    static void strip_plain_##mr(const struct sdx_gemm_job *g, struct place p, int64_t count)      \
    {                                                                                              \
        strip(mr, 2, false, g, p, count, g->row_b);                                                \
    }
#define NAMES(prefix, mr) prefix##mr,
#if SDX_SIMD_LANES == 16
#define HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#elif SDX_SIMD_LANES == 8
#define HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#elif defined(SDX_SIMD_NEON)
#define HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
#define HEIGHTS(X) X(1) X(2) X(3) X(4)
#endif
HEIGHTS(STRIP)
enum { FULL, HALF, PLAIN };
#define ROW_FULL(mr)  strip_##mr,
#define ROW_HALF(mr)  strip_half_##mr,
#define ROW_PLAIN(mr) strip_plain_##mr,
static const strip_fn strips[3][ROWS] = {
    {HEIGHTS(ROW_FULL)}, {HEIGHTS(ROW_HALF)}, {HEIGHTS(ROW_PLAIN)}};

SIMD void place_down(struct place *p, const struct sdx_gemm_job *g, int64_t rows, int64_t tiles)
{
    p->a += rows * g->row_a;
    p->c += rows * g->row_c;
    p->ahead += tiles * (g->k / STEP) * p->lines * LINE;
    if (p->bias_row) p->bias_row += rows;
    if (p->residual) p->residual += rows * g->row_c;
}
/* All rows of a panel, in tiles whose heights differ by at most one, so that none is thin. */
static void panel_rows(const struct sdx_gemm_job *g, struct place p, const strip_fn *fns)
{
    int64_t tiles = (g->m + ROWS - 1) / ROWS, height = g->m / tiles, taller = g->m % tiles;
    if (taller) {
        fns[height](g, p, taller);
        place_down(&p, g, taller * (height + 1), taller);
    }
    fns[height - 1](g, p, tiles - taller);
}
/* n floats; fours may overlap. */
SIMD void copy_few(float *to, const float *from, int n)
{
    enum { FOUR = 4 };
    int j = 0;
    for (; j + FOUR <= n; j += FOUR)
        memcpy(to + j, from + j, FOUR * sizeof *to);
    if (j < n && n >= FOUR)
        memcpy(to + n - FOUR, from + n - FOUR, FOUR * sizeof *to);
    else
        for (; j < n; j++)
            to[j] = from[j];
}
/* The last panel, of n < COLS columns: through a tile of C on the stack. */
static void panel_edge(const struct sdx_gemm_job *g, struct place p, int n)
{
    float c[TILE], residual[TILE], bias[COLS] = {0};
    struct sdx_gemm_job part = *g;
    struct place q = p;
    const strip_fn *fns = strips[n <= LANES ? HALF : FULL];
    part.row_c = COLS;
    q.c = c;
    if (p.bias_col) {
        memcpy(bias, p.bias_col, (size_t)n * sizeof *bias);
        q.bias_col = bias;
    }
    if (g->from_c) memset(c, 0, sizeof c);
    if (p.residual) {
        memset(residual, 0, sizeof residual);
        q.residual = residual;
    }
    int64_t tiles = (g->m + ROWS - 1) / ROWS, height = g->m / tiles, taller = g->m % tiles;
    for (int64_t t = 0; t < tiles; t++) {
        int64_t rows = height + (t < taller);
        for (int64_t i = 0; i < rows && g->from_c; i++)
            copy_few(c + i * COLS, p.c + i * g->row_c, n);
        for (int64_t i = 0; i < rows && p.residual; i++)
            copy_few(residual + i * COLS, p.residual + i * g->row_c, n);
        q.a = p.a;
        q.bias_row = p.bias_row;
        fns[rows - 1](&part, q, 1);
        for (int64_t i = 0; i < rows; i++)
            copy_few(p.c + i * g->row_c, c + i * COLS, n);
        place_down(&p, g, rows, 1);
    }
}

/* Few rows times packed panels: `streams` panels a distance apart at once, as one stream of loads
 * may not use the memory's bandwidth. The most rows fetch the next panel meanwhile. */
SIMD vf thin_load(const enum sdx_half half, const float *b, const uint16_t *b_half, int64_t at)
{
    return half == SDX_HALF_F16    ? v_load_f16(b_half + at)
           : half == SDX_HALF_BF16 ? v_load_bf16(b_half + at)
                                   : v_load(b + at);
}
SIMD void thin_streams(const int mr, const int streams, const enum sdx_half half,
                       const struct sdx_gemm_job *g, const struct place *p, int64_t apart)
{
    vf s[ROWS][2];
    vf sums[4][4][2];
    const float *a = p->a, *b = p->b;
    const uint16_t *b_half = p->half;
    const int64_t step = apart * g->panel_step, row_a = g->row_a;
    int64_t at_b = 0;
#define STREAMS SDX_UNROLL(4) for (int q = 0; q < streams; q++)
#define EACH_SUM                                                                                   \
    STREAMS SDX_UNROLL(4) for (int i = 0; i < mr; i++) SDX_UNROLL(2) for (int j = 0; j < 2; j++)
    EACH_SUM sums[q][i][j] =
        g->from_c ? v_load(p->c + i * g->row_c + q * apart * COLS + j * LANES) : v_set1(0.0f);
    for (int64_t k = 0; k < g->k; k++, at_b += COLS) {
        vf x[4];
        SDX_UNROLL(4) for (int i = 0; i < mr; i++) x[i] = v_set1(a[k + i * row_a]);
        STREAMS
        {
            vf w[2];
            if (mr == SDX_GEMM_THIN && !half) __builtin_prefetch(b + at_b + g->panel_step, 0, 2);
#ifdef SDX_SET_AVX512
            if (half) V_PREFETCH(b_half + at_b + q * step + 2048); /* a page ahead */
#endif
            SDX_UNROLL(2) for (int j = 0; j < 2; j++)
            {
                w[j] = thin_load(half, b, b_half, at_b + q * step + j * LANES);
                V_KEEP(w[j]);
            }
            SDX_UNROLL(4)
            for (int i = 0; i < mr; i++)
                SDX_UNROLL(2)
            for (int j = 0; j < 2; j++)
                sums[q][i][j] = v_fma(x[i], w[j], sums[q][i][j]);
        }
    }
    STREAMS
    {
        struct place at = *p;
        at.c += q * apart * COLS;
        if (at.bias_col) at.bias_col += q * apart * COLS;
        if (at.residual) at.residual += q * apart * COLS;
        SDX_UNROLL(4)
        for (int i = 0; i < mr; i++)
            SDX_UNROLL(2) for (int j = 0; j < 2; j++) s[i][j] = sums[q][i][j];
        finish_tile(mr, 2, s, g, &at);
    }
#undef EACH_SUM
#undef STREAMS
}
#define THIN(name, mr, streams, half)                                                              \
    static void name##_##mr(const struct sdx_gemm_job *g, const struct place *p, int64_t apart)    \
    {                                                                                              \
        thin_streams(mr, streams, half, g, p, apart);                                              \
    }
#define THIN_HEIGHT(mr, streams, streams_half)                                                     \
    THIN(thin, mr, streams, SDX_HALF_NONE)                                                         \
    THIN(thin_f16, mr, streams_half, SDX_HALF_F16)                                                 \
    THIN(thin_bf16, mr, streams_half, SDX_HALF_BF16)
#define THIN_NAMES(mr, streams, streams_half)                                                      \
    {{thin_##mr, thin_f16_##mr, thin_bf16_##mr}, {streams, streams_half, streams_half}},
/* X(rows, streams of floats, of 16-bit numbers), by measurement: on Zen 3 and, where vectors are
 * wide, on Zen 5, whose window of instructions reaches far enough along one stream. */
#if defined(SDX_SMALL_SET)
#define EACH_THIN(X) X(1, 1, 1) X(2, 1, 1) X(3, 1, 1) X(4, 1, 1)
#elif defined(SDX_SET_AVX512)
#define EACH_THIN(X) X(1, 2, 2) X(2, 1, 2) X(3, 2, 2) X(4, 1, 1)
#else
#define EACH_THIN(X) X(1, 4, 4) X(2, 3, 3) X(3, 2, 2) X(4, 1, 1)
#endif
EACH_THIN(THIN_HEIGHT)
static const struct {
    void (*run[3])(const struct sdx_gemm_job *g, const struct place *p, int64_t apart);
    int streams[3];
} thin[SDX_GEMM_THIN] = {EACH_THIN(THIN_NAMES)};

/* One panel of 16-bit numbers. */
THIN(last_f16, 1, 1, SDX_HALF_F16)
THIN(last_f16, 2, 1, SDX_HALF_F16)
THIN(last_f16, 3, 1, SDX_HALF_F16)
THIN(last_bf16, 1, 1, SDX_HALF_BF16)
THIN(last_bf16, 2, 1, SDX_HALF_BF16)
THIN(last_bf16, 3, 1, SDX_HALF_BF16)
static void (*const thin_last[2][SDX_GEMM_THIN])(const struct sdx_gemm_job *g,
                                                 const struct place *p, int64_t apart) = {
    {last_f16_1, last_f16_2, last_f16_3, thin_f16_4},
    {last_bf16_1, last_bf16_2, last_bf16_3, thin_bf16_4}};

static void place_right(struct place *p, const struct sdx_gemm_job *g, int64_t panels)
{
    if (p->half) {
        p->half += panels * g->panel_step;
    } else {
        p->b += panels * g->panel_step;
        if (p->next) p->next += panels * g->panel_step;
        p->ahead = p->next ? (const char *)p->next : (const char *)(p->b + g->panel_step);
    }
    p->c += panels * COLS;
    if (p->bias_col) p->bias_col += panels * COLS;
    if (p->residual) p->residual += panels * COLS;
}

/* Few rows times `panels` panels; what is left over by the streams stays. Returns the panels done.
 */
static int64_t thin_panels(const struct sdx_gemm_job *g, struct place *p, int64_t panels)
{
    const int64_t streams = thin[g->m - 1].streams[g->half], apart = panels / streams;
    for (int64_t i = 0; i < apart; i++) {
        thin[g->m - 1].run[g->half](g, p, apart);
        place_right(p, g, 1);
    }
    place_right(p, g, (streams - 1) * apart);
    return streams * apart;
}
static void thin_half(const struct sdx_gemm_job *g)
{
    const struct sdx_epilogue *e = &g->epilogue;
    struct place p = {.a = g->a,
                      .c = g->c,
                      .bias_col = e->bias_col,
                      .bias_row = e->bias_row,
                      .residual = e->residual,
                      .half = g->b_half};
    if (g->m <= 0 || g->n <= 0) return;
    int64_t panels = g->n / COLS;
    panels -= thin_panels(g, &p, panels);
    for (; panels > 0; panels--) {
        thin_last[g->half == SDX_HALF_BF16][g->m - 1](g, &p, 0);
        place_right(&p, g, 1);
    }
}

/* Few rows times a plain matrix, each row of which is a page or more from the next: some rows of it
 * at a time, side by side, are added to sums that stay in the first cache. */
enum { SHALLOW = 3, DEEP = 8, SPAN = 512 };
SIMD void add_rows(const int deep, const float *x, const float *b, int64_t row_b, float *c,
                   int64_t n)
{
    vf w[DEEP];
    SDX_UNROLL(8) for (int d = 0; d < deep; d++) w[d] = v_set1(x[d]);
    for (int64_t j = 0; j < n; j += LANES) {
        vf s = v_load(c + j);
        SDX_UNROLL(8) for (int d = 0; d < deep; d++) s = v_fma(w[d], v_load(b + d * row_b + j), s);
        v_store(c + j, s);
    }
}
static void shallow(const struct sdx_gemm_job *g, struct place p, int64_t n)
{
    for (int64_t j0 = 0, some; j0 < n; j0 += some) {
        some = n - j0 < SPAN ? n - j0 : SPAN;
        for (int64_t i = 0; i < g->m && !g->from_c; i++)
            memset(p.c + i * g->row_c, 0, (size_t)some * sizeof *p.c);
        int64_t k = 0;
        for (; k + DEEP <= g->k; k += DEEP)
            for (int64_t i = 0; i < g->m; i++)
                add_rows(DEEP, p.a + i * g->row_a + k, p.b + k * g->row_b, g->row_b,
                         p.c + i * g->row_c, some);
        for (; k < g->k; k++)
            for (int64_t i = 0; i < g->m; i++)
                add_rows(1, p.a + i * g->row_a + k, p.b + k * g->row_b, g->row_b,
                         p.c + i * g->row_c, some);
        for (int64_t j = 0; j < some; j += COLS) {
            struct place q = p;
            for (int64_t i = 0; i < g->m; i++, place_down(&q, g, 1, 0)) {
                vf s[ROWS][2] = {{v_load(q.c), v_load(q.c + LANES)}};
                finish_tile(1, 2, s, g, &q);
            }
            place_right(&p, g, 1);
        }
    }
}

static void block(const struct sdx_gemm_job *g)
{
    if (g->m <= 0 || g->n <= 0) return;
    const struct sdx_epilogue *e = &g->epilogue;
    struct place p = {g->a,
                      g->b,
                      g->c,
                      e->bias_col,
                      e->bias_row,
                      e->residual,
                      g->next ? (const char *)g->next : (const char *)(g->b + g->panel_step),
                      g->m <= ROWS       ? ALL_LINES
                      : g->m <= FEW_ROWS ? FEW_LINES
                                         : 1,
                      NULL,
                      g->next};
    const int kind = g->row_b != COLS ? PLAIN : FULL;
    int64_t panels = g->n / COLS;
    if (g->m <= SDX_GEMM_THIN && g->row_b == COLS) panels -= thin_panels(g, &p, panels);
    if (kind == PLAIN && g->m <= SHALLOW && g->panel_step == COLS) {
        shallow(g, p, panels * COLS);
        place_right(&p, g, panels);
        panels = 0;
    }
    for (int64_t i = 0; i < panels; i++) {
        panel_rows(g, p, strips[kind]);
        place_right(&p, g, 1);
    }
    if (g->n % COLS == LANES && g->row_b == COLS)
        panel_rows(g, p, strips[HALF]);
    else if (g->n % COLS)
        panel_edge(g, p, (int)(g->n % COLS));
}

/* Whole panels of contiguous rows: some at a time, as rows far apart are a page each, and lines of
 * panels that lie a power of 2 apart would push each other out of the first cache. */
SIMD void pack_rows(const int panels, const float *from, int64_t row_b, int64_t k, float *packed,
                    int64_t panel_step)
{
    enum { AHEAD = 12 };
    for (; k > 0; k--, from += row_b, packed += COLS)
        SDX_UNROLL(4) for (int p = 0; p < panels; p++)
        {
            V_PREFETCH(from + AHEAD * row_b + p * COLS);
            v_store(packed + p * panel_step, v_load(from + p * COLS));
            v_store(packed + p * panel_step + LANES, v_load(from + p * COLS + LANES));
        }
}
/* `cols` columns of a panel, in squares or vectors as far as they go, zeros behind them. */
static void pack_panel(const sdx_weight_f32 *b, int64_t row_b, int64_t col_b, int64_t k,
                       int64_t cols, float *packed)
{
    const int64_t squares = row_b == 1 ? cols / SIDE * SIDE : 0, deep = k / SIDE * SIDE;
    const int64_t rows = col_b == 1 ? cols / LANES * LANES : 0;
    if (cols < COLS) memset(packed, 0, (size_t)(k * COLS) * sizeof *packed);
    for (int64_t k0 = 0; k0 < deep; k0 += SIDE)
        for (int64_t j = 0; j < squares; j += SIDE)
            turn(b + j * col_b + k0, (size_t)col_b, (uint32_t *)(packed + k0 * COLS + j), COLS);
    for (int64_t k0 = 0; k0 < k; k0++) {
        for (int64_t j = 0; j < rows; j += LANES)
            v_store(packed + k0 * COLS + j, v_load(b + k0 * row_b + j));
        for (int64_t j = rows > 0 ? rows : k0 < deep ? squares : 0; j < cols; j++)
            packed[k0 * COLS + j] = b[k0 * row_b + j * col_b];
    }
}
static void pack(const sdx_weight_f32 *b, int64_t row_b, int64_t col_b, int64_t k, int64_t n,
                 float *packed_first, int64_t panel_step)
{
    int64_t j0 = 0;
    if (col_b == 1) {
        for (; n - j0 >= 4 * COLS; j0 += 4 * COLS, packed_first += 4 * panel_step)
            pack_rows(4, b + j0, row_b, k, packed_first, panel_step);
        for (; n - j0 >= COLS; j0 += COLS, packed_first += panel_step)
            pack_rows(1, b + j0, row_b, k, packed_first, panel_step);
    }
    for (; j0 < n; j0 += COLS, packed_first += panel_step)
        pack_panel(b + j0 * col_b, row_b, col_b, k, n - j0 < COLS ? n - j0 : COLS, packed_first);
}

void SDX_INIT(sdx_gemm_init_)(struct sdx_gemm_table *gemm)
{
    gemm->rows = ROWS;
    gemm->cols = COLS;
    gemm->f32_block = block;
    gemm->f32_thin_half = thin_half;
    gemm->f32_pack = pack;
}
