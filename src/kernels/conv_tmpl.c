/* SPDX-License-Identifier: Apache-2.0
 * Row loops of the convolutions: depthwise rows, strided copies, the finish of a row. Once an
 * instruction set. */
#include "kernels/conv_block_curve.h"
#include "kernels/conv_gather.h"
#include "kernels/tables.h"
#include "kernels/transpose.h"

/* `rows` rows at once: as many streams of memory, and x is read once. Rows behind them are fetched
 * meanwhile, as the processor's own streams end with a page and rows are often short. A row's sum
 * is the same in any company: two chains of lanes, their sum, the lanes by halves, then what no
 * vector holds. */
enum { DOT_ROWS = 4, CHAINS = 2, AHEAD = 8, LINE = 64 / sizeof(float) };
typedef float four __attribute__((vector_size(16)));
SIMD four four_of(turn_row v, const bool upper)
{
    four f;
    memcpy(&f, (const char *)&v + (upper ? sizeof f : 0), sizeof f);
    return f;
}
/* The sums of four rows' lanes: halves are added to halves as long as there are two. */
SIMD four four_sums(float lanes[DOT_ROWS][LANES])
{
    turn_row columns[4];
    four sums[4];
    SDX_UNROLL(4) for (int r = 0; r < DOT_ROWS; r++)
    {
        for (int e = 0; e < LANES - SIDE; e++)
            lanes[r][e] += lanes[r][e + SIDE];
    }
    turn_four((const char *)lanes, LANES, columns);
    SDX_UNROLL(4) for (int c = 0; c < 4; c++)
    {
        sums[c] = four_of(columns[c], false);
        if (SIDE > 4) sums[c] += four_of(columns[c], true);
    }
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}
SIMD void dots(const int rows, const float *a, int64_t row_a, const float *x, int64_t k, float *y)
{
    vf s[DOT_ROWS][CHAINS];
    float lanes[DOT_ROWS][LANES], rest[DOT_ROWS] = {0};
#define EACH_ROW SDX_UNROLL(4) for (int r = 0; r < rows; r++)
    EACH_ROW SDX_UNROLL(2) for (int c = 0; c < CHAINS; c++) s[r][c] = v_set1(0.0f);
    int64_t at = 0;
    for (; at + CHAINS * LANES <= k; at += CHAINS * LANES) {
        SDX_UNROLL(2) for (int c = 0; c < CHAINS; c++)
        {
            const vf v = v_load(x + at + c * LANES);
            EACH_ROW s[r][c] = v_fma(v_load(a + r * row_a + at + c * LANES), v, s[r][c]);
        }
        EACH_ROW for (int line = 0; line < CHAINS * LANES; line += LINE)
            V_PREFETCH(a + (r + AHEAD) * row_a + at + line);
    }
    for (; at + LANES <= k; at += LANES)
        EACH_ROW s[r][0] = v_fma(v_load(a + r * row_a + at), v_load(x + at), s[r][0]);
    EACH_ROW v_store(lanes[r], s[r][0] + s[r][1]);
    four sums;
    if (rows == DOT_ROWS)
        sums = four_sums(lanes);
    else
        for (int half = LANES / 2; half; half /= 2)
            for (int e = 0; e < half; e++)
                EACH_ROW lanes[r][e] += lanes[r][e + half];
    for (; at < k; at++)
        EACH_ROW rest[r] += a[r * row_a + at] * x[at];
    EACH_ROW y[r] = (rows == DOT_ROWS ? sums[r] : lanes[r][0]) + rest[r];
#undef EACH_ROW
}
static void rows_dot(const float *a, int64_t row_a, const float *x, int64_t m, int64_t k, float *y)
{
    int64_t row = 0;
    for (; row + DOT_ROWS <= m; row += DOT_ROWS)
        dots(DOT_ROWS, a + row * row_a, row_a, x, k, y + row);
    for (; row < m; row++)
        dots(1, a + row * row_a, row_a, x, k, y + row);
}

/* Of whole blocks. A curve goes over them in the first cache. */
static SDX_NOINLINE void finish_blocks(const float *from, float *to, int64_t n, float bias,
                                       const float *residual, const struct sdx_epilogue *e)
{
    enum { AT_ONCE = 16 * BLOCK };
    const vf shift = v_set1(bias);
    float least, most;
    conv_limits(e->act, e->a, e->b, &least, &most);
    const vf lo = v_set1(least), hi = v_set1(most);
    for (int64_t at = 0; at < n; at += AT_ONCE) {
        const int64_t end = conv_least(at + AT_ONCE, n);
        for (int64_t i = at; i < end; i += LANES) {
            vf v = v_load(from + i) + shift;
            if (residual) v += v_load(residual + i);
            v_store(to + i, v_min(hi, v_max(lo, v)));
        }
        if (block_is_curved(e->act)) act_blocks(to + at, (int)(end - at), e->act, e->a, e->b);
    }
}
static void finish(const float *from, float *to, int64_t n, float bias, const float *residual,
                   const struct sdx_epilogue *e)
{
    const int64_t whole = n / BLOCK * BLOCK;
    const size_t rest = (size_t)(n - whole) * sizeof(float);
    finish_blocks(from, to, whole, bias, residual, e);
    if (rest == 0) return;
    float t[BLOCK] = {0}, r[BLOCK] = {0};
    memcpy(t, from + whole, rest);
    if (residual) memcpy(r, residual + whole, rest);
    finish_blocks(t, t, BLOCK, bias, residual ? r : NULL, e);
    memcpy(to + whole, t, rest);
}

#if defined(SDX_SET_AVX512) || defined(__aarch64__)
enum { FEW_REGISTERS = 32 };
#else
enum { FEW_REGISTERS = 16 };
#endif

/* Four vectors of outputs a time; the taps of one kernel row reuse its lines in L1. */
SIMD void depthwise_vectors(const int size, const int stride, const int vectors,
                            const float *const *rows, int64_t odd, const float *w, float *y)
{
    vf s[4];
    SDX_UNROLL(4) for (int i = 0; i < vectors; i++) s[i] = v_set1(0.0f);
    SDX_UNROLL(5) for (int r = 0; r < size; r++) SDX_UNROLL(5) for (int c = 0; c < size; c++)
    {
        const vf tap = v_set1(w[r * size + c]);
        const float *x = rows[r] + (stride == 1 ? c : (c & 1) * odd + c / 2);
        SDX_UNROLL(4)
        for (int i = 0; i < vectors; i++)
            s[i] = v_fma(tap, v_load(x + i * LANES), s[i]);
    }
    SDX_UNROLL(4) for (int i = 0; i < vectors; i++) v_store(y + i * LANES, s[i]);
}
SIMD void depthwise_line(const int size, const int stride, const float *const *rows, int64_t odd,
                         const float *w, float *y, int64_t n)
{
    const float *at[5];
    for (int r = 0; r < size; r++)
        at[r] = rows[r];
    for (; n > 2 * LANES; n -= BLOCK, y += BLOCK) {
        depthwise_vectors(size, stride, 4, at, odd, w, y);
        for (int r = 0; r < size; r++)
            at[r] += BLOCK;
    }
    for (; n > 0; n -= LANES, y += LANES) {
        depthwise_vectors(size, stride, 1, at, odd, w, y);
        for (int r = 0; r < size; r++)
            at[r] += LANES;
    }
}
static void depthwise(int size, int stride, const float *const *rows, int64_t odd, const float *w,
                      float *y, int64_t n)
{
    if (size == 3 && stride == 1)
        depthwise_line(3, 1, rows, odd, w, y, n);
    else if (size == 3)
        depthwise_line(3, 2, rows, odd, w, y, n);
    else if (stride == 1)
        depthwise_line(5, 1, rows, odd, w, y, n);
    else
        depthwise_line(5, 2, rows, odd, w, y, n);
}

/* The sums of `vectors` vectors of each channel stay in registers over all taps. */
SIMD void few_vectors(const int channels, const int vectors, const struct sdx_few_job *j,
                      int64_t at)
{
    vf s[4][8], in[8];
    const float *w = j->w;
    float *y = j->y + at;
#define EACH_SUM                                                                                   \
    SDX_UNROLL(4) for (int c = 0; c < channels; c++) SDX_UNROLL(8) for (int v = 0; v < vectors; v++)
    EACH_SUM s[c][v] = j->more ? v_load(y + c * j->pitch + v * LANES) : v_set1(0.0f);
    for (int64_t t = 0; t < j->taps; t++, w += channels) {
        const float *x = j->x + j->offsets[t] + at;
        SDX_UNROLL(8) for (int v = 0; v < vectors; v++) in[v] = v_load(x + v * LANES);
        SDX_UNROLL(4) for (int c = 0; c < channels; c++)
        {
            const vf tap = v_set1(w[c]);
            SDX_UNROLL(8)
            for (int v = 0; v < vectors; v++)
                s[c][v] = v_fma(tap, in[v], s[c][v]);
        }
    }
    EACH_SUM v_store(y + c * j->pitch + v * LANES, s[c][v]);
#undef EACH_SUM
}
SIMD void few_line(const int channels, const int vectors, const struct sdx_few_job *j)
{
    int64_t at = 0;
    for (; at + 2 * LANES < j->n; at += vectors * LANES)
        few_vectors(channels, vectors, j, at);
    for (; at < j->n; at += LANES)
        few_vectors(channels, 1, j, at);
}
static void few(const struct sdx_few_job *j)
{
    enum { WIDE = FEW_REGISTERS == 32 };
    switch (j->channels) {
    case 1: few_line(1, 8, j); break;
    case 2: few_line(2, WIDE ? 8 : 5, j); break;
    case 3: few_line(3, WIDE ? 6 : 3, j); break;
    default: few_line(4, WIDE ? 6 : 3, j);
    }
}

SIMD void copy_row(const float *from, float *to, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        v_store(to + i, v_load(from + i));
    if (i < n && n >= LANES) {
        v_store(to + n - LANES, v_load(from + n - LANES));
        return;
    }
    for (; i + 4 <= n; i += 4)
        memcpy(to + i, from + i, 4 * sizeof(float));
    SDX_UNROLL(1) for (; i < n; i++) to[i] = from[i];
}
/* Lanes 0, 2, 4, ... of a and then of b. */
#if SDX_SIMD_LANES == 16
#define EVEN(a, b)                                                                                 \
    __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#elif SDX_SIMD_LANES == 8
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#else
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#endif
static void copy_even(const float *from, float *to, int64_t n)
{
    int64_t j = 0; /* the float behind the last one is not read */
    for (; j + LANES < n; j += LANES) {
        const vf a = v_load(from + 2 * j), b = v_load(from + 2 * j + LANES);
        v_store(to + j, EVEN(a, b));
    }
    for (; j < n; j++)
        to[j] = from[2 * j];
}
static void copy_rows(const float *from, float *to, struct sdx_rectangle r)
{
    for (int64_t i = 0; i < r.rows; i++, from += r.pitch_from, to += r.pitch_to) {
        if (r.step == 1)
            copy_row(from, to, r.width);
        else if (r.step == 2)
            copy_even(from, to, r.width);
        else
            for (int64_t j = 0; j < r.width; j++)
                to[j] = from[j * r.step];
    }
}
static void axpy_rows(float w, const float *from, float *to, struct sdx_rectangle r)
{
    const vf s = v_set1(w);
    for (int64_t i = 0; i < r.rows; i++, from += r.pitch_from, to += r.pitch_to) {
        int64_t j = 0;
        if (r.step == 1)
            for (; j + LANES <= r.width; j += LANES)
                v_store(to + j, v_load(to + j) + s * v_load(from + j));
        for (; j < r.width; j++)
            to[j] += w * from[j * r.step];
    }
}

void SDX_INIT(sdx_conv_init_)(struct sdx_gemm_table *gemm)
{
    gemm->f32_rows_dot = rows_dot;
    gemm->f32_finish = finish;
    gemm->f32_depthwise = depthwise;
    gemm->f32_few = few;
    gemm->f32_copy_rows = copy_rows;
    gemm->f32_axpy_rows = axpy_rows;
}
