/* SPDX-License-Identifier: Apache-2.0
 * The product of gemm_other_tmpl.c for one type: ROWS x (2 vectors) tiles over blocks of K packed
 * on the stack. An element is a sum of blocks of 128 products in rising k, each block one chain of
 * additions. T: the type, V: a vector of LANES_T of them, SET1, LOAD, STORE, MUL_ADD: of V,
 * SUFFIX(name): the name for this type. */

enum { SUFFIX(COLS) = 2 * LANES_T };
#define COLS SUFFIX(COLS)

/* t = A * B over one block: b packed [depth][COLS]. */
SIMD void SUFFIX(tile)(const int mr, const T *a, int64_t row_a, int64_t col_a, const T *b,
                       int64_t depth, T t[ROWS][COLS])
{
    V s[ROWS][2];
    SDX_UNROLL(6) for (int i = 0; i < mr; i++) s[i][0] = s[i][1] = SET1(0);
    for (int64_t k = 0; k < depth; k++, a += col_a, b += COLS) {
        const V w0 = LOAD(b), w1 = LOAD(b + LANES_T);
        SDX_UNROLL(6) for (int i = 0; i < mr; i++)
        {
            const V x = SET1(a[i * row_a]);
            s[i][0] = MUL_ADD(x, w0, s[i][0]);
            s[i][1] = MUL_ADD(x, w1, s[i][1]);
        }
    }
    SDX_UNROLL(6) for (int i = 0; i < mr; i++)
    {
        STORE(t[i], s[i][0]);
        STORE(t[i] + LANES_T, s[i][1]);
    }
}

static void SUFFIX(pack)(T *packed, const T *b, int64_t row_b, int64_t col_b, int64_t depth,
                         int cols)
{
    if (cols == COLS && col_b == 1) {
        for (int64_t e = 0; e < depth; e++, b += row_b)
            memcpy(packed + e * COLS, b, COLS * sizeof *b);
        return;
    }
    for (int j = 0; j < COLS; j++)
        for (int64_t e = 0; e < depth; e++)
            packed[e * COLS + j] = j < cols ? b[e * row_b + j * col_b] : 0;
}

/* c += alpha * t */
static SDX_NOINLINE void SUFFIX(add_tile)(T *c, int64_t row_c, T t[ROWS][COLS], int rows, int cols,
                                          T alpha)
{
    const V by = SET1(alpha);
    for (int i = 0; i < rows; i++, c += row_c) {
        if (cols == COLS) {
            STORE(c, LOAD(c) + by * LOAD(t[i]));
            STORE(c + LANES_T, LOAD(c + LANES_T) + by * LOAD(t[i] + LANES_T));
            continue;
        }
        for (int j = 0; j < cols; j++)
            c[j] += alpha * t[i][j];
    }
}

static void SUFFIX(gemm)(int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t row_a,
                         int64_t col_a, const T *b, int64_t row_b, int64_t col_b, T beta, T *c,
                         int64_t row_c)
{
    T packed[DEPTH * COLS], t[ROWS][COLS];
    for (int64_t i = 0; i < m; i++) {
        if (beta == 0) memset(c + i * row_c, 0, (size_t)n * sizeof *c);
        for (int64_t j = 0; beta != 0 && j < n; j++)
            c[i * row_c + j] *= beta;
    }
    for (int64_t j0 = 0; j0 < n; j0 += COLS) {
        const int cols = (int)(n - j0 < COLS ? n - j0 : COLS);
        for (int64_t k0 = 0; k0 < k; k0 += DEPTH) {
            const int64_t depth = k - k0 < DEPTH ? k - k0 : DEPTH;
            SUFFIX(pack)(packed, b + k0 * row_b + j0 * col_b, row_b, col_b, depth, cols);
            for (int64_t i = 0, rows; i < m; i += rows) {
                const T *from = a + i * row_a + k0 * col_a;
                rows = m - i >= ROWS ? ROWS : m - i >= 2 ? 2 : 1;
                if (rows == ROWS)
                    SUFFIX(tile)(ROWS, from, row_a, col_a, packed, depth, t);
                else if (rows == 2)
                    SUFFIX(tile)(2, from, row_a, col_a, packed, depth, t);
                else
                    SUFFIX(tile)(1, from, row_a, col_a, packed, depth, t);
                SUFFIX(add_tile)(c + i * row_c + j0, row_c, t, (int)rows, cols, alpha);
            }
        }
    }
}
#undef COLS
