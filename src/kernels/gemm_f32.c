/* SPDX-License-Identifier: Apache-2.0
 * Blocking of the f32 matrix product around the register tiles of gemm_tmpl.c. A packed B is stored
 * [block of K][panel][k][column]; sums of several blocks of K pass through C as they are, so that
 * an element is one chain of additions. */
#include "kernels/gemm.h"

#include <string.h>

#include "kernels/flush.h"
#include "kernels/gemm_tiles.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum { PIECE_PACKED = 1 << 20 /* numbers of B after which pieces.done is told */ };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}
static int64_t block_depth(int64_t k)
{
    const struct sdx_kernel_tuning *t = sdx_kernel_tuning();
    return most(1, k <= t->whole_k ? k : t->block_k);
}
/* Rows of A whose block of K stays in the second cache, at most. */
static int64_t most_rows(int64_t m, int64_t depth)
{
    const int64_t rows = sdx_kernel_tables()->gemm.rows;
    int64_t fit = sdx_kernel_tuning()->a_bytes / (depth * (int64_t)sizeof(float)) / rows * rows;
    return least(m, most(fit, rows));
}
/* The same in blocks of about one size: a small last one would be done before the panel behind is
 * there. */
static int64_t block_rows(int64_t m, int64_t depth)
{
    const int64_t fit = most_rows(m, depth), blocks = (m + fit - 1) / fit;
    return least(fit, round_up((m + blocks - 1) / blocks, sdx_kernel_tables()->gemm.rows));
}

size_t sdx_gemm_f32_packed_size(int64_t k, int64_t n)
{
    return (size_t)k * (size_t)round_up(n, sdx_gemm_f32_panel()) * sizeof(float);
}
int64_t sdx_gemm_f32_panel(void)
{
    return sdx_kernel_tables()->gemm.cols;
}

void sdx_gemm_f32_pack_in_pieces(const sdx_weight_f32 *b, int64_t row_b, int64_t col_b, int64_t k,
                                 int64_t n, float *packed, const struct sdx_pieces *pieces)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t depth = block_depth(k), width = round_up(n, table->cols);
    const bool by_columns = pieces && row_b == 1 && col_b != 1;
    const int64_t some = by_columns ? most(PIECE_PACKED / col_b, 1) : n;
    const int64_t columns = round_up(some, table->cols);
    for (int64_t n0 = 0; n0 < n; n0 += columns) {
        const int64_t nc = least(columns, n - n0);
        for (int64_t k0 = 0; k0 < k; k0 += depth) {
            const int64_t kc = least(depth, k - k0);
            table->f32_pack(b + k0 * row_b + n0 * col_b, row_b, col_b, kc, nc,
                            packed + k0 * width + n0 * kc, kc * table->cols);
            if (pieces && !by_columns && col_b == 1)
                pieces->done(pieces->user, b + k0 * row_b, kc * row_b);
        }
        if (by_columns) pieces->done(pieces->user, b + n0 * col_b, nc * col_b);
    }
}
void sdx_gemm_f32_pack(const sdx_weight_f32 *b, int64_t row_b, int64_t col_b, int64_t k, int64_t n,
                       float *packed)
{
    sdx_gemm_f32_pack_in_pieces(b, row_b, col_b, k, n, packed, NULL);
}
void sdx_gemm_f32_pack_scale(const sdx_weight_f32 *scale, int64_t k, int64_t n, float *packed)
{
    const int64_t cols = sdx_gemm_f32_panel(), depth = block_depth(k);
    for (int64_t k0 = 0; k0 < k; k0 += depth)
        for (int64_t j0 = 0; j0 < n; j0 += cols)
            for (int64_t i = least(depth, k - k0); i > 0; i--, packed += cols)
                for (int64_t j = 0; j < least(cols, n - j0); j++)
                    packed[j] *= scale[j0 + j];
}

void sdx_half_decode(enum sdx_half half, const uint16_t *src, float *dst, int64_t n)
{
    const struct sdx_vec *vec = &sdx_kernel_tables()->vec;
    SDX_ASSERT(half != SDX_HALF_NONE);
    (half == SDX_HALF_F16 ? vec->f16_to_f32 : vec->bf16_to_f32)(src, dst, (size_t)n);
}
void sdx_half_encode(enum sdx_half half, const float *src, uint16_t *dst, int64_t n)
{
    const struct sdx_vec *vec = &sdx_kernel_tables()->vec;
    SDX_ASSERT(half != SDX_HALF_NONE);
    (half == SDX_HALF_F16 ? vec->f32_to_f16 : vec->f32_to_bf16)(src, dst, (size_t)n);
}
size_t sdx_gemm_half_packed_size(int64_t k, int64_t n)
{
    return sdx_gemm_f32_packed_size(k, n) / 2;
}
void sdx_gemm_half_pack(const uint16_t *b, int64_t row_b, int64_t col_b, int64_t k, int64_t n,
                        uint16_t *packed)
{
    const int64_t cols = sdx_gemm_f32_panel(), depth = block_depth(k);
    for (int64_t k0 = 0; k0 < k; k0 += depth)
        for (int64_t j0 = 0; j0 < n; j0 += cols) {
            const int64_t some = least(cols, n - j0);
            for (int64_t i = k0; i < least(k, k0 + depth); i++, packed += cols)
                for (int64_t j = 0; j < cols; j++)
                    packed[j] = j < some ? b[i * row_b + (j0 + j) * col_b] : 0;
        }
}

static size_t scratch_of_a(int64_t m, int64_t depth)
{
    return (size_t)round_up(most_rows(most(m, 1), depth) * depth, 16) * sizeof(float);
}
size_t sdx_gemm_f32_scratch(int64_t m, int64_t n, int64_t k)
{
    (void)n;
    return scratch_of_a(m, block_depth(k));
}

/* The job of rows i0.., columns j0.. and block k0 .. k0 + kc. */
static struct sdx_gemm_job job_at(const struct sdx_gemm_f32 *g, int64_t i0, int64_t j0, int64_t k0,
                                  int64_t kc)
{
    struct sdx_gemm_job job = {.k = kc,
                               .a = g->a ? g->a + i0 * g->row_a + k0 * g->col_a : NULL,
                               .row_a = g->row_a,
                               .c = g->c + i0 * g->row_c + j0,
                               .row_c = g->row_c,
                               .from_c = k0 > 0 || g->accumulate,
                               .last = k0 + kc >= g->k,
                               .alpha = 1.0f,
                               .epilogue = g->epilogue};
    if (g->a_in_blocks) {
        job.a = g->a + k0 * g->m + i0 * kc;
        job.row_a = kc;
    }
    if (job.last) job.alpha = g->alpha;
    if (job.epilogue.bias_col) job.epilogue.bias_col += j0;
    if (job.epilogue.bias_row) job.epilogue.bias_row += i0;
    if (g->residual_first ? k0 > 0 : !job.last) job.epilogue.residual = NULL;
    if (job.epilogue.residual) job.epilogue.residual += i0 * g->row_c + j0;
    return job;
}
/* A block of A, m x k, one row after the other. */
static void copy_a(const float *a, int64_t row_a, int64_t col_a, int64_t m, int64_t k, float *to)
{
    const struct sdx_kernel_tables *tables = sdx_kernel_tables();
    if (col_a == 1) {
        for (int64_t i = 0; i < m; i++)
            memcpy(to + i * k, a + i * row_a, (size_t)k * sizeof(float));
    } else if (row_a == 1) {
        tables->vec.b32_transpose(a, (size_t)col_a, (uint32_t *)to, (size_t)k, (size_t)k,
                                  (size_t)m);
    } else {
        tables->gemm.f32_copy_rows(
            a, to,
            (struct sdx_rectangle){
                .rows = m, .width = k, .pitch_from = row_a, .step = col_a, .pitch_to = k});
    }
}
static void take_copy(struct sdx_gemm_job *job, int64_t col_a, float *scratch)
{
    copy_a(job->a, job->row_a, col_a, job->m, job->k, scratch);
    job->a = scratch;
    job->row_a = job->k;
}
bool sdx_gemm_f32_wants_blocks(int64_t m, int64_t k, int64_t col_a)
{
    return m > sdx_kernel_tables()->gemm.rows && (col_a != 1 || block_depth(k) < k);
}
void sdx_gemm_f32_block_a(const struct sdx_gemm_f32 *g, int64_t m0, int64_t m1, float *blocks)
{
    const int64_t depth = block_depth(g->k);
    for (int64_t k0 = 0; k0 < g->k; k0 += depth) {
        const int64_t kc = least(depth, g->k - k0);
        copy_a(g->a + m0 * g->row_a + k0 * g->col_a, g->row_a, g->col_a, m1 - m0, kc,
               blocks + k0 * g->m + m0 * kc);
    }
}
/* All rows m0..m1 over columns j0..j1, one block of K; b, row_b, panel_step and next as in the job.
 */
static void run_rows(const struct sdx_gemm_f32 *g, int64_t m0, int64_t m1, int64_t j0, int64_t j1,
                     int64_t k0, int64_t kc, const float *b, int64_t row_b, int64_t panel_step,
                     const uint16_t *next, float *scratch)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const bool copied = !g->a_in_blocks && (g->col_a != 1 || (kc < g->k && m1 - m0 > table->rows));
    const int64_t rows = block_rows(m1 - m0, block_depth(g->k));
    const unsigned before = sdx_flush_begin();
    for (int64_t i0 = m0; i0 < m1; i0 += rows) {
        struct sdx_gemm_job job = job_at(g, i0, j0, k0, kc);
        job.m = least(rows, m1 - i0);
        job.n = j1 - j0;
        job.b = b;
        job.row_b = row_b;
        job.panel_step = panel_step;
        job.next = next;
        if (copied) take_copy(&job, g->col_a, scratch);
        table->f32_block(&job);
    }
    sdx_flush_end(before);
}

/* Columns of B in `bytes` of scratch at a time. */
static int64_t block_cols(int64_t n, int64_t depth, int64_t bytes)
{
    const int64_t cols = sdx_gemm_f32_panel();
    int64_t fit = bytes / (depth * (int64_t)sizeof(float)) / cols * cols;
    return least(round_up(n, cols), most(fit, cols));
}
/* Few rows times whole panels of 16-bit numbers as they are. */
static void run_thin(const struct sdx_gemm_f32 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                     int64_t k0, int64_t kc, const uint16_t *panels, float *scratch)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    struct sdx_gemm_job job = job_at(g, m0, n0, k0, kc);
    job.m = m1 - m0;
    job.n = n1 - n0;
    job.b_half = panels;
    job.half = g->half;
    job.row_b = table->cols;
    job.panel_step = kc * table->cols;
    if (g->col_a != 1 && !g->a_in_blocks) take_copy(&job, g->col_a, scratch);
    const unsigned before = sdx_flush_begin();
    table->f32_thin_half(&job);
    sdx_flush_end(before);
}
/* A packed B of 16-bit numbers: block of K and columns by block decoded into scratch, where it is
 * to stay beside A until it is used. */
enum { DECODED = 4 /* part of what a block packed on the fly takes */ };
static void run_half(const struct sdx_gemm_f32 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                     void *scratch)
{
    const int64_t cols = sdx_gemm_f32_panel(), width = round_up(g->n, cols);
    const int64_t depth = block_depth(g->k);
    const int64_t some = block_cols(n1 - n0, depth, sdx_kernel_tuning()->b_bytes / DECODED);
    const int64_t whole = m1 - m0 <= SDX_GEMM_THIN ? n0 + (n1 - n0) / cols * cols : n0;
    float *panels = (float *)((char *)scratch + scratch_of_a(g->m, depth));
    int64_t k0 = 0;
    do {
        const int64_t kc = least(depth, g->k - k0);
        const uint16_t *packed = (const uint16_t *)g->packed + k0 * width;
        if (whole > n0) run_thin(g, m0, m1, n0, whole, k0, kc, packed + n0 * kc, scratch);
        for (int64_t j0 = whole; j0 < n1; j0 += some) {
            const int64_t j1 = least(n1, j0 + some);
            sdx_half_decode(g->half, packed + j0 * kc, panels, round_up(j1 - j0, cols) * kc);
            run_rows(g, m0, m1, j0, j1, k0, kc, panels, cols, kc * cols, packed + j1 * kc, scratch);
        }
        k0 += depth;
    } while (k0 < g->k);
}

/* ---- tiles ---- */

enum {
    TILES_LEAST = 1 << 14, /* elements of B: a single row of less is done before it is in tiles */
    TILES_K = 1024,        /* of a span at most: tiles of a panel stay in the second cache */
    TILES_BYTES = 1 << 20  /* of A that are worked at a time */
};
/* K is worked in spans of about one size, in whole chunks. */
static int64_t span_of(int64_t k)
{
    const int64_t count = most(1, (k + TILES_K - 1) / TILES_K);
    return most(1, sdx_tiles_chunks((k + count - 1) / count)) * SDX_TILES_CHUNK;
}
/* Of all spans. */
static int64_t spans_bytes(int64_t k, int64_t (*bytes)(int64_t k))
{
    const int64_t span = span_of(k);
    return k / span * bytes(span) + (k % span ? bytes(k % span) : 0);
}
/* Its digits, the products of all columns, of a long K from the second cache, their stores. */
double sdx_gemm_f32_tiles_cost(int64_t k, int64_t n)
{
    const double depth = (double)round_up(k, SDX_TILES_CHUNK);
    const double columns = (double)round_up(n, sdx_gemm_f32_panel());
    return 0.8 * depth + depth * columns / (k <= TILES_K ? 115 : 80) + 0.75 * columns;
}
bool sdx_gemm_f32_tiles_pay(int64_t k, int64_t n)
{
    return sdx_kernel_tables()->gemm.f32_tiles &&
           sdx_gemm_f32_tiles_cost(k, n) < 0.97 * (double)k * (double)n / 30;
}
bool sdx_gemm_f32_wants_tiles(int64_t k, int64_t n)
{
    return k >= SDX_TILES_LEAST_K && k * n >= TILES_LEAST && sdx_gemm_f32_tiles_pay(k, n);
}
size_t sdx_gemm_tiles_packed_size(int64_t k, int64_t n)
{
    return (size_t)(spans_bytes(k, sdx_tiles_bytes_b) *
                    (round_up(n, sdx_gemm_f32_panel()) / sdx_gemm_f32_panel()));
}
/* [span][panel][chunk] */
void sdx_gemm_tiles_pack(const sdx_weight_f32 *b, int64_t row_b, int64_t col_b,
                         const sdx_weight_f32 *scale, int64_t k, int64_t n, void *packed)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t span = span_of(k), cols = table->cols;
    char *to = packed;
    for (int64_t k0 = 0; k0 < k; k0 += span) {
        const int64_t kc = least(span, k - k0);
        for (int64_t j = 0; j < n; j += cols, to += sdx_tiles_bytes_b(kc))
            table->f32_tile_b(b + k0 * row_b + j * col_b, row_b, col_b, kc, least(cols, n - j),
                              scale ? scale + j : NULL, to);
    }
}
size_t sdx_gemm_half_tiles_packed_size(int64_t k, int64_t n)
{
    return (size_t)(spans_bytes(k, sdx_tiles_bytes_half) *
                    (round_up(n, sdx_gemm_f32_panel()) / sdx_gemm_f32_panel()));
}
/* A span of a panel of B. */
struct half_panel {
    const uint16_t *b;
    int64_t row_b, col_b, k, n;
};
static void gather_half(const void *arg, int64_t k0, uint16_t *rows)
{
    const struct half_panel *p = arg;
    const int64_t some = least(SDX_TILES_CHUNK, p->k - k0);
    const uint16_t *b = p->b + k0 * p->row_b;
    memset(rows, 0, SDX_TILES_CHUNK_HALF);
    if (p->col_b == 1) {
        for (int64_t i = 0; i < some; i++, b += p->row_b, rows += SDX_TILES_WIDTH)
            memcpy(rows, b, (size_t)p->n * sizeof *rows);
        return;
    }
    for (int64_t j = 0; j < p->n; j++, b += p->col_b)
        for (int64_t i = 0; i < some; i++)
            rows[i * SDX_TILES_WIDTH + j] = b[i * p->row_b];
}
void sdx_gemm_half_tiles_pack(const uint16_t *b, int64_t row_b, int64_t col_b, enum sdx_half half,
                              int64_t k, int64_t n, void *packed)
{
    const int64_t span = span_of(k);
    char *to = packed;
    for (int64_t k0 = 0; k0 < k; k0 += span)
        for (int64_t j = 0; j < n; j += SDX_TILES_WIDTH) {
            const struct half_panel p = {b + k0 * row_b + j * col_b, row_b, col_b,
                                         least(span, k - k0), least(SDX_TILES_WIDTH, n - j)};
            sdx_tiles_pack_half(half, p.k, gather_half, &p, to);
            to += sdx_tiles_bytes_half(p.k);
        }
}
int64_t sdx_gemm_f32_tile_rows(int64_t m)
{
    return sdx_tiles_height(m);
}
size_t sdx_gemm_f32_tiles_size(int64_t m, int64_t k)
{
    return (size_t)(spans_bytes(k, sdx_tiles_bytes_a) * sdx_tiles_of(m));
}
/* [span][tile] */
void sdx_gemm_f32_tile_a(const struct sdx_gemm_f32 *g, int64_t t0, int64_t t1, void *tiles)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t height = sdx_gemm_f32_tile_rows(g->m), span = span_of(g->k);
    char *to = tiles;
    for (int64_t k0 = 0; k0 < g->k; k0 += span) {
        const int64_t kc = least(span, g->k - k0), size = sdx_tiles_bytes_a(kc);
        for (int64_t t = t0; t < t1; t++) {
            float copy[SDX_TILES_HEIGHT * TILES_K];
            const float *a = g->a + t * height * g->row_a + k0 * g->col_a;
            const int64_t rows = least(height, g->m - t * height);
            if (g->col_a != 1) copy_a(a, g->row_a, g->col_a, rows, kc, copy);
            table->f32_tile_a(g->col_a == 1 ? a : copy, g->col_a == 1 ? g->row_a : kc, rows, height,
                              kc, to + t * size);
        }
        to += sdx_tiles_of(g->m) * size;
    }
}
static void run_tiles(const struct sdx_gemm_f32 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                      void *scratch)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t height = sdx_gemm_f32_tile_rows(g->m), span = span_of(g->k);
    const int64_t panels = (g->n + table->cols - 1) / table->cols;
    const bool is_half = g->half != SDX_HALF_NONE;
    const char *a = g->a_tiles, *b = g->packed;
    const unsigned before = sdx_flush_begin();
    SDX_ASSERT(m0 % height == 0);
    for (int64_t k0 = 0; k0 < g->k; k0 += span) {
        const int64_t kc = least(span, g->k - k0), size = sdx_tiles_bytes_a(kc);
        const int64_t panel = is_half ? sdx_tiles_bytes_half(kc) : sdx_tiles_bytes_b(kc);
        const int64_t rows = most(2, TILES_BYTES / size / 2 * 2) * height;
        for (int64_t i0 = m0; i0 < m1; i0 += rows) {
            struct sdx_gemm_tiles t = {.job = job_at(g, i0, n0, k0, kc),
                                       .col_a = g->col_a,
                                       .a = a + i0 / height * size,
                                       .b = b + n0 / table->cols * panel,
                                       .half = g->half,
                                       .panel = scratch,
                                       .height = height,
                                       .half_c = SDX_TILES_WIDTH / 2,
                                       .panel_c = SDX_TILES_WIDTH};
            t.job.m = least(rows, m1 - i0);
            t.job.n = n1 - n0;
            table->f32_tiles(&t);
        }
        a += sdx_tiles_of(g->m) * size;
        b += panels * panel;
    }
    sdx_flush_end(before);
}

void sdx_gemm_f32_run(const struct sdx_gemm_f32 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                      void *scratch)
{
    if (m0 >= m1 || n0 >= n1) return;
    const int64_t cols = sdx_gemm_f32_panel(), width = round_up(g->n, cols);
    const int64_t depth = block_depth(g->k);
    SDX_ASSERT(n0 % cols == 0);
    if (g->a_tiles) {
        run_tiles(g, m0, m1, n0, n1, scratch);
        return;
    }
    if (g->half != SDX_HALF_NONE) {
        run_half(g, m0, m1, n0, n1, scratch);
        return;
    }
    const float *packed = g->packed;
    int64_t k0 = 0;
    do {
        const int64_t kc = least(depth, g->k - k0);
        run_rows(g, m0, m1, n0, n1, k0, kc, packed + k0 * width + n0 * kc, cols, kc * cols, NULL,
                 scratch);
        k0 += depth;
    } while (k0 < g->k);
}

size_t sdx_gemm_f32_plain_scratch(int64_t m, int64_t n, int64_t k)
{
    const int64_t depth = block_depth(k);
    return scratch_of_a(m, depth) +
           (size_t)(depth * block_cols(most(n, 1), depth, sdx_kernel_tuning()->b_bytes)) *
               sizeof(float);
}

size_t sdx_gemm_half_scratch(int64_t m, int64_t n, int64_t k)
{
    return sdx_gemm_f32_plain_scratch(m, n, k);
}
size_t sdx_gemm_half_tiles_scratch(int64_t k)
{
    return (size_t)sdx_tiles_bytes_b(least(k, span_of(k)));
}

/* Few rows and B's columns side by side: whole panels are read where they are. */
static int64_t run_direct(const struct sdx_gemm_f32 *g, const float *b, int64_t row_b, int64_t m0,
                          int64_t m1, int64_t n0, int64_t n1, float *scratch)
{
    const int64_t cols = sdx_gemm_f32_panel(), whole = n0 + (n1 - n0) / cols * cols;
    const int64_t depth = least(sdx_kernel_tuning()->block_k_direct, most(g->k, 1));
    if (whole == n0) return n0;
    int64_t k0 = 0;
    do {
        run_rows(g, m0, m1, n0, whole, k0, least(depth, g->k - k0), b + k0 * row_b + n0, row_b,
                 cols, NULL, scratch);
        k0 += depth;
    } while (k0 < g->k);
    return whole;
}
void sdx_gemm_f32_plain(const struct sdx_gemm_f32 *g, const float *b, int64_t row_b, int64_t col_b,
                        int64_t m0, int64_t m1, int64_t n0, int64_t n1, void *scratch)
{
    if (m0 >= m1 || n0 >= n1) return;
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t depth = block_depth(g->k), cols = table->cols;
    const int64_t few = sdx_kernel_tuning()->direct_tiles * table->rows;
    float *packed = (float *)((char *)scratch + scratch_of_a(g->m, depth));
    if (col_b == 1 && m1 - m0 <= few) n0 = run_direct(g, b, row_b, m0, m1, n0, n1, scratch);
    const int64_t width = block_cols(n1 - n0, depth, sdx_kernel_tuning()->b_bytes);
    for (int64_t j0 = n0; j0 < n1; j0 += width) {
        const int64_t j1 = least(n1, j0 + width);
        int64_t k0 = 0;
        do {
            const int64_t kc = least(depth, g->k - k0);
            table->f32_pack(b + k0 * row_b + j0 * col_b, row_b, col_b, kc, j1 - j0, packed,
                            kc * cols);
            run_rows(g, m0, m1, j0, j1, k0, kc, packed, cols, kc * cols, NULL, scratch);
            k0 += depth;
        } while (k0 < g->k);
    }
}

void sdx_gemm_f32_rows_dot(const float *a, int64_t row_a, const float *x, int64_t m, int64_t k,
                           float *y)
{
    sdx_kernel_tables()->gemm.f32_rows_dot(a, row_a, x, m, k, y);
}

/* Short rows (colours, coordinates): some are turned, each column is a sum of them, and the columns
 * are turned back. */
static void columns_of_short_rows(const struct sdx_gemm_f32 *g, int64_t m0, int64_t m1)
{
    enum { ROWS = 128 };
    const struct sdx_vec *vec = &sdx_kernel_tables()->vec;
    const struct sdx_epilogue *e = &g->epilogue;
    float turned[SDX_GEMM_SHORT_ROW * ROWS], sums[SDX_GEMM_COLUMNS * ROWS];
    const float *row[SDX_GEMM_SHORT_ROW];
    for (int64_t k = 0; k < g->k; k++)
        row[k] = turned + k * ROWS;
    for (int64_t m = m0, rows; m < m1; m += rows) {
        float *c = g->c + m * g->n;
        rows = least(ROWS, m1 - m);
        vec->b32_transpose(g->a + m * g->row_a, (size_t)g->row_a, turned, ROWS, (size_t)rows,
                           (size_t)g->k);
        for (int64_t j = 0; j < g->n; j++) {
            float *sum = sums + j * ROWS;
            vec->f32_mix(row, (const float *)g->packed + j * g->k, (int)g->k, sum, (size_t)rows);
            if (e->bias_col) vec->f32_add(sum, 1, e->bias_col + j, 0, sum, (size_t)rows);
        }
        vec->b32_transpose(sums, ROWS, c, (size_t)g->n, (size_t)g->n, (size_t)rows);
        if (e->act != SDX_ACT_NONE)
            sdx_kernel_tables()->gemm.f32_finish(c, c, rows * g->n, 0, NULL, e);
    }
}

void sdx_gemm_f32_columns(const struct sdx_gemm_f32 *g, int64_t m0, int64_t m1)
{
    if (g->k <= SDX_GEMM_SHORT_ROW) {
        columns_of_short_rows(g, m0, m1);
        return;
    }
    enum { BYTES = 16 << 10, ROWS = 64 }; /* that stay in the first cache for all columns */
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const struct sdx_epilogue *e = &g->epilogue;
    const int64_t fit = BYTES / (g->k * (int64_t)sizeof(float)) / 4 * 4;
    const int64_t some = least(most(fit, 4), ROWS);
    float y[ROWS];
    for (int64_t m = m0, rows; m < m1; m += rows) {
        float *c = g->c + m * g->n;
        rows = least(some, m1 - m);
        for (int64_t j = 0; j < g->n; j++) {
            const float bias = e->bias_col ? e->bias_col[j] : 0;
            table->f32_rows_dot(g->a + m * g->row_a, g->row_a, (const float *)g->packed + j * g->k,
                                rows, g->k, y);
            for (int64_t i = 0; i < rows; i++)
                c[i * g->n + j] = y[i] + bias;
        }
        if (e->act != SDX_ACT_NONE) table->f32_finish(c, c, rows * g->n, 0, NULL, e);
    }
}

void sdx_gemm_f32_small(const struct sdx_gemm_small *g, int64_t count, const float *a,
                        const float *b, float *c)
{
    enum { SOME = 64, SIDE = SDX_GEMM_SMALL };
    const struct sdx_vec *vec = &sdx_kernel_tables()->vec;
    const int64_t mk = g->m * g->k, kn = g->k * g->n, mn = g->m * g->n;
    float of_a[SIDE * SIDE][SOME], of_b[SIDE * SIDE][SOME], sums[SIDE * SIDE][SOME], product[SOME];
    for (int64_t n; count > 0; count -= n, a += n * mk, b += n * kn, c += n * mn) {
        n = least(count, SOME);
        const size_t some = (size_t)n;
        vec->b32_transpose(a, (size_t)mk, of_a, SOME, some, (size_t)mk);
        vec->b32_transpose(b, (size_t)kn, of_b, SOME, some, (size_t)kn);
        for (int64_t at = 0; at < mn; at++) {
            const int64_t i = at / g->n, j = at % g->n;
            for (int64_t k = 0; k < g->k; k++) {
                const float *x = of_a[i * g->row_a + k * g->col_a];
                const float *y = of_b[k * g->row_b + j * g->col_b];
                vec->f32_mul(x, 1, y, 1, k ? product : sums[at], some);
                if (k) vec->f32_add(sums[at], 1, product, 1, sums[at], some);
            }
        }
        vec->b32_transpose(sums, SOME, c, (size_t)mn, (size_t)mn, some);
    }
}

void sdx_gemm_f64(int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t row_a,
                  int64_t col_a, const double *b, int64_t row_b, int64_t col_b, double beta,
                  double *c, int64_t row_c)
{
    sdx_kernel_tables()->gemm.f64_gemm(m, n, k, alpha, a, row_a, col_a, b, row_b, col_b, beta, c,
                                       row_c);
}

void sdx_gemm_b32(int64_t m, int64_t n, int64_t k, const uint32_t *a, int64_t row_a, int64_t col_a,
                  const uint32_t *b, int64_t row_b, int64_t col_b, uint32_t *c, int64_t row_c)
{
    sdx_kernel_tables()->gemm.b32_gemm(m, n, k, 1, a, row_a, col_a, b, row_b, col_b, 0, c, row_c);
}
