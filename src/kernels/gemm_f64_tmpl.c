/* SPDX-License-Identifier: Apache-2.0
 * f64 matrix product: 6 x (2 vectors) tiles over blocks of K packed on the stack. Once an
 * instruction set. An element is a sum of blocks of 128 products in rising k, each block one chain
 * of additions. */
#include "kernels/tables.h"
#include "kernels/simd.h"

enum { DEPTH = 128, ROWS = 6, HALF = LANES / 2, COLS = 2 * HALF };

/* t = A * B over one block: b packed [depth][COLS]. */
SIMD void tile(const int mr, const double *a, int64_t row_a, int64_t col_a, const double *b,
               int64_t depth, double t[ROWS][COLS])
{
    vd s[ROWS][2];
    SDX_UNROLL(6) for (int i = 0; i < mr; i++) s[i][0] = s[i][1] = vd_set1(0.0);
    for (int64_t k = 0; k < depth; k++, a += col_a, b += COLS) {
        vd w0 = vd_load(b), w1 = vd_load(b + HALF);
        SDX_UNROLL(6) for (int i = 0; i < mr; i++)
        {
            vd x = vd_set1(a[i * row_a]);
            s[i][0] = vd_fma(x, w0, s[i][0]);
            s[i][1] = vd_fma(x, w1, s[i][1]);
        }
    }
    SDX_UNROLL(6) for (int i = 0; i < mr; i++)
    {
        vd_store(t[i], s[i][0]);
        vd_store(t[i] + HALF, s[i][1]);
    }
}

static void pack(double *packed, const double *b, int64_t row_b, int64_t col_b, int64_t depth,
                 int cols)
{
    if (cols == COLS && col_b == 1) {
        for (int64_t e = 0; e < depth; e++, b += row_b)
            memcpy(packed + e * COLS, b, COLS * sizeof *b);
        return;
    }
    for (int j = 0; j < COLS; j++)
        for (int64_t e = 0; e < depth; e++)
            packed[e * COLS + j] = j < cols ? b[e * row_b + j * col_b] : 0.0;
}

/* c += alpha * t */
static void add_tile(double *c, int64_t row_c, double t[ROWS][COLS], int rows, int cols,
                     double alpha)
{
    for (int i = 0; i < rows; i++, c += row_c)
        if (cols == COLS)
            for (int j = 0; j < COLS; j++)
                c[j] += alpha * t[i][j];
        else
            for (int j = 0; j < cols; j++)
                c[j] += alpha * t[i][j];
}

static void gemm_f64(int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t row_a,
                     int64_t col_a, const double *b, int64_t row_b, int64_t col_b, double beta,
                     double *c, int64_t row_c)
{
    double packed[DEPTH * COLS], t[ROWS][COLS];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * row_c + j] = beta == 0.0 ? 0.0 : beta * c[i * row_c + j];
    for (int64_t j0 = 0; j0 < n; j0 += COLS) {
        const int cols = (int)(n - j0 < COLS ? n - j0 : COLS);
        for (int64_t k0 = 0; k0 < k; k0 += DEPTH) {
            const int64_t depth = k - k0 < DEPTH ? k - k0 : DEPTH;
            pack(packed, b + k0 * row_b + j0 * col_b, row_b, col_b, depth, cols);
            for (int64_t i = 0, rows; i < m; i += rows) {
                const double *from = a + i * row_a + k0 * col_a;
                rows = m - i >= ROWS ? ROWS : m - i >= 2 ? 2 : 1;
                if (rows == ROWS)
                    tile(ROWS, from, row_a, col_a, packed, depth, t);
                else if (rows == 2)
                    tile(2, from, row_a, col_a, packed, depth, t);
                else
                    tile(1, from, row_a, col_a, packed, depth, t);
                add_tile(c + i * row_c + j0, row_c, t, (int)rows, cols, alpha);
            }
        }
    }
}

void SDX_INIT(sdx_gemm_f64_init_)(struct sdx_gemm_table *gemm)
{
    gemm->f64_gemm = gemm_f64;
}
