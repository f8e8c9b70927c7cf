/* SPDX-License-Identifier: Apache-2.0
 * Reductions, softmax and normalisation of one row. Once an instruction set. The order of every sum
 * is fixed: 32 lanes, element i goes to lane i % 32 in rising order, then lanes l and l + 16,
 * l + 8, ... 1 are joined. So results are bit-equal between sets, but for those of softmax, which
 * uses FMA where there is one. */
#include <float.h>

#include "kernels/tables.h"
#include "kernels/vec_math.h"

enum { WIDE = 32, PARTS = WIDE / LANES };
struct wide {
    vf r[PARTS];
};
#define EACH_PART SDX_UNROLL(8) for (int i = 0; i < PARTS; i++)

SIMD struct wide wide_set1(float c)
{
    struct wide w;
    EACH_PART w.r[i] = v_set1(c);
    return w;
}
SIMD struct wide wide_load(const float *p)
{
    struct wide w;
    EACH_PART w.r[i] = v_load(p + i * LANES);
    return w;
}
/* Vector i of n elements, as far as it has some; the other lanes are `fill`. */
SIMD vf load_part(const float *p, size_t n, int i, float fill)
{
    const size_t from = (size_t)i * LANES, left = n > from ? n - from : 0;
    if (LANES == 4 && left >= LANES) return v_load(p + from); /* no masks */
    return v_load_masked(p + from, left < LANES ? left : LANES, fill);
}
SIMD void store_part(float *p, size_t n, int i, vf v)
{
    const size_t from = (size_t)i * LANES, left = n > from ? n - from : 0;
    if (LANES < 16 && left >= LANES)
        v_store(p + from, v);
    else
        v_store_masked(p + from, v, left < LANES ? left : LANES);
}

/* The first n of 32 elements, the rest `fill`. */
SIMD struct wide wide_load_part(const float *p, size_t n, float fill)
{
    struct wide w;
    EACH_PART w.r[i] = load_part(p, n, i, fill);
    return w;
}
/* Lane i + half of v in lane i < half, by neighbours that change places. */
SIMD vf upper(vf v, const int half)
{
#if SDX_SIMD_LANES == 16
    if (half == 8)
        return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    if (half == 4)
        return __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    if (half == 2)
        return __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    return __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
#elif SDX_SIMD_LANES == 8
    if (half == 4) return __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    if (half == 2) return __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    return __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
#else
    if (half == 2) return __builtin_shufflevector(v, v, 2, 3, 0, 1);
    return __builtin_shufflevector(v, v, 1, 0, 3, 2);
#endif
}
/* `joined` of s and t over the lanes of s, in pairs. */
#define ACROSS(s, joined)                                                                          \
    SDX_UNROLL(4)                                                                                  \
    for (int half = LANES / 2; half; half /= 2) {                                                  \
        const vf t = upper(s, half);                                                               \
        s = joined;                                                                                \
    }
/* `joined` of s and t, in pairs of vectors and then of lanes. */
#define JOIN(acc, joined)                                                                          \
    do {                                                                                           \
        SDX_UNROLL(4)                                                                              \
        for (int half = PARTS / 2; half; half /= 2)                                                \
            SDX_UNROLL(4) for (int i = 0; i < half; i++)                                           \
            {                                                                                      \
                vf s = (acc).r[i], t = (acc).r[i + half];                                          \
                (acc).r[i] = joined;                                                               \
            }                                                                                      \
        vf s = (acc).r[0];                                                                         \
        ACROSS(s, joined)                                                                          \
        return s[0];                                                                               \
    } while (0)
SIMD float sum_across(vf s)
{
    ACROSS(s, s + t)
    return s[0];
}
SIMD float max_across(vf s)
{
    ACROSS(s, v_max(s, t))
    return s[0];
}

/* A sum over x of an expression of the vector v; the filling must give 0. */
#define SUM(name, fill, expression)                                                                \
    SIMD float name(const float *x, size_t n, float mean)                                          \
    {                                                                                              \
        (void)mean;                                                                                \
        struct wide acc = wide_set1(0.0f);                                                         \
        size_t at = 0;                                                                             \
        for (; at + WIDE <= n; at += WIDE) {                                                       \
            struct wide w = wide_load(x + at);                                                     \
            EACH_PART                                                                              \
            {                                                                                      \
                vf v = w.r[i];                                                                     \
                acc.r[i] += expression;                                                            \
            }                                                                                      \
        }                                                                                          \
        if (at < n) {                                                                              \
            struct wide w = wide_load_part(x + at, n - at, fill);                                  \
            EACH_PART                                                                              \
            {                                                                                      \
                vf v = w.r[i];                                                                     \
                acc.r[i] += expression;                                                            \
            }                                                                                      \
        }                                                                                          \
        JOIN(acc, s + t);                                                                          \
    }
SUM(sum_plain, 0.0f, v)
SUM(sum_squares, 0.0f, v *v)
SUM(sum_absolute, 0.0f, v_abs(v))
SUM(sum_deviations, mean, (v - v_set1(mean)) * (v - v_set1(mean)))

static float reduce_sum(const float *x, size_t n)
{
    return sum_plain(x, n, 0.0f);
}
static float reduce_sumsq(const float *x, size_t n)
{
    return sum_squares(x, n, 0.0f);
}
static float reduce_sumabs(const float *x, size_t n)
{
    return sum_absolute(x, n, 0.0f);
}

static float reduce_prod(const float *x, size_t n)
{
    struct wide acc = wide_set1(1.0f);
    for (size_t at = 0; at < n; at += WIDE) {
        struct wide w = n - at >= WIDE ? wide_load(x + at) : wide_load_part(x + at, n - at, 1.0f);
        EACH_PART acc.r[i] *= w.r[i];
    }
    JOIN(acc, s * t);
}

/* NaN wins; a nothing of elements gives the fill. */
#define EXTREME(name, fill, pick)                                                                  \
    static float name(const float *x, size_t n)                                                    \
    {                                                                                              \
        struct wide acc = wide_set1(fill);                                                         \
        vi nan = vi_set1(0);                                                                       \
        for (size_t at = 0; at < n; at += WIDE) {                                                  \
            struct wide w =                                                                        \
                n - at >= WIDE ? wide_load(x + at) : wide_load_part(x + at, n - at, fill);         \
            EACH_PART                                                                              \
            {                                                                                      \
                nan |= w.r[i] != w.r[i];                                                           \
                acc.r[i] = pick(w.r[i], acc.r[i]);                                                 \
            }                                                                                      \
        }                                                                                          \
        if (v_any(nan)) return NAN;                                                                \
        JOIN(acc, pick(s, t));                                                                     \
    }
EXTREME(reduce_max, -INFINITY, v_max)
EXTREME(reduce_min, INFINITY, v_min)

/* A tile of columns: what beats the best so far takes its place. */
enum { ARG_TILE = 512 };
SIMD void arg_step(vf v, size_t k, float *best, int32_t *place)
{
    const vf b = v_load(best);
    const vi wins = k ? ~(v <= b) & (b == b) : vi_set1(-1);
    v_store(best, v_select(wins, v, b));
    const vf at = v_select(wins, v_bits(vi_set1((int32_t)k)), v_bits(vi_load(place)));
    vi_store(place, vi_bits(at));
}
static void arg_tile(const float *x, size_t length, ptrdiff_t step, size_t n, vf sign, int64_t *y)
{
    float best[ARG_TILE];
    int32_t place[ARG_TILE];
    for (size_t k = 0; k < length; k++, x += step) {
        size_t j = 0;
        for (; j + LANES <= n; j += LANES)
            arg_step(v_bits(vi_bits(v_load(x + j)) ^ vi_bits(sign)), k, best + j, place + j);
        if (j < n)
            arg_step(v_bits(vi_bits(v_load_masked(x + j, n - j, 0)) ^ vi_bits(sign)), k, best + j,
                     place + j);
    }
    for (size_t j = 0; j < n; j++)
        y[j] = place[j];
}
static void arg_columns(const float *x, size_t length, ptrdiff_t step, size_t n, bool is_min,
                        int64_t *y)
{
    const vf sign = v_bits(vi_set1(is_min ? INT32_MIN : 0));
    for (size_t j = 0; j < n; j += ARG_TILE)
        arg_tile(x + j, length, step, n - j < ARG_TILE ? n - j : ARG_TILE, sign, y + j);
}

/* The best k so far stay in order; what one takes the place of moves down, and all below it. */
static void top_columns(const float *x, size_t length, ptrdiff_t step, size_t k, bool is_min,
                        int32_t *at)
{
    const vi flip = vi_set1(is_min ? 0 : -1);
    for (int c = 0; c < SDX_VEC_TOP_COLUMNS; c += LANES) {
        vi best[SDX_VEC_TOP_MOST], place[SDX_VEC_TOP_MOST];
        for (size_t j = 0; j < length; j++) {
            const vf v = v_load(x + (ptrdiff_t)j * step + c) + v_set1(0.0f); /* -0 becomes 0 */
            const vi bits = vi_bits(v), order = bits ^ ((bits >> 31) & vi_set1(INT32_MAX));
            const vi is_nan = v != v;
            vi key = ((is_nan & vi_set1(INT32_MAX)) | (~is_nan & order)) ^ flip;
            vi from = vi_set1((int32_t)j), moves = vi_set1(0);
            for (size_t t = 0; t < k; t++) {
                if (j <= t) { /* an empty place */
                    best[t] = key;
                    place[t] = from;
                    break;
                }
                const vi b = best[t], p = place[t];
                moves |= key < b;
                best[t] = (moves & key) | (~moves & b);
                place[t] = (moves & from) | (~moves & p);
                key ^= b ^ best[t]; /* the other of the two */
                from ^= p ^ place[t];
            }
        }
        for (size_t t = 0; t < k; t++)
            vi_store(at + t * SDX_VEC_TOP_COLUMNS + c, place[t]);
    }
}

static float dot(const float *a, const float *b, size_t n)
{
    struct wide acc = wide_set1(0.0f);
    size_t at = 0;
    for (; at + WIDE <= n; at += WIDE) {
        struct wide v = wide_load(a + at), w = wide_load(b + at);
        EACH_PART acc.r[i] += v.r[i] * w.r[i];
    }
    if (at < n) {
        struct wide v = wide_load_part(a + at, n - at, 0.0f);
        struct wide w = wide_load_part(b + at, n - at, 0.0f);
        EACH_PART acc.r[i] += v.r[i] * w.r[i];
    }
    JOIN(acc, s + t);
}

/* A map with row constants p, q over the row; v is the vector. */
#define ROW(name, expression)                                                                      \
    SIMD void name(const float *from, float *to, size_t n, const float p, const float q)           \
    {                                                                                              \
        (void)p;                                                                                   \
        (void)q;                                                                                   \
        size_t at = 0;                                                                             \
        for (; at + BLOCK <= n; at += BLOCK) {                                                     \
            struct vx v = x_load(from + at);                                                       \
            x_store(to + at, expression);                                                          \
        }                                                                                          \
        if (at < n) {                                                                              \
            struct vx v;                                                                           \
            EACH v.r[i] = load_part(from + at, n - at, i, 0.0f);                                   \
            v = expression;                                                                        \
            EACH store_part(to + at, n - at, i, v.r[i]);                                           \
        }                                                                                          \
    }
ROW(row_scale, x_scale(v, p))
ROW(row_less, x_sub(x_sub(v, x_set1(p)), x_set1(q)))

/* e^x = 2^n 2^r for x <= 0, 0 below -87 and for -inf; 2^r in pairs of terms. One
 * vector, of few operations and a short chain of them: the processor overlaps the vectors of a row,
 * as far as those that wait fit its queues. */
SIMD vf exp_one(vf x)
{
    const vf log2e = v_set1(1.44269504f), magic = v_set1(12582912.0f);
    const vf m = v_fma(x, log2e, magic), r = v_fma(x, log2e, magic - m), r2 = r * r;
    const vf low = v_fma(r, v_set1(pow2_fit[4]), v_set1(pow2_fit[5]));
    const vf mid = v_fma(r, v_set1(pow2_fit[2]), v_set1(pow2_fit[3]));
    const vf high = v_fma(r, v_set1(pow2_fit[0]), v_set1(pow2_fit[1]));
    const vf p = v_fma(v_fma(high, r2, mid), r2, low);
    return v_bits(vi_add(vi_bits(p), vi_bits(m) << 23) & (x >= v_set1(-87.0f)));
}
/* y = e^(x - max); returns the sum, four lanes' vectors apart, then joined as other sums are. */
static float exp_sum(const float *x, float *y, size_t n, float max)
{
    vf sum[4];
    const vf top = v_set1(max);
    EACH sum[i] = v_set1(0.0f);
    size_t at = 0;
    for (; at + BLOCK <= n; at += BLOCK) {
        EACH
        {
            const vf e = exp_one(v_load(x + at + i * LANES) - top);
            v_store(y + at + i * LANES, e);
            sum[i] += e;
        }
    }
    if (at < n) EACH
        {
            const vf e = exp_one(load_part(x + at, n - at, i, -INFINITY) - top);
            store_part(y + at, n - at, i, e);
            sum[i] += e;
        }
    return sum_across((sum[0] + sum[2]) + (sum[1] + sum[3]));
}
/* A row that stays in registers, in the bits of a longer one; false: a NaN or infinity wins. */
SIMD bool softmax_short(const int vectors, const float *x, float *y, size_t n)
{
    vf v[8], top = v_set1(-INFINITY);
    vi bad = vi_set1(0);
#define VECTORS SDX_UNROLL(8) for (int i = 0; i < vectors; i++)
    VECTORS
    {
        v[i] = load_part(x, n, i, -INFINITY);
        top = v_max(v[i], top);
        bad |= v[i] != v[i];
    }
    const float max = max_across(top);
    if (!isfinite(max) || v_any(bad)) return false;
    vf sum[4];
    EACH sum[i] = v_set1(0.0f);
    VECTORS
    {
        v[i] = exp_one(v[i] - v_set1(max));
        sum[i % 4] += v[i];
    }
    const vf scale = v_set1(1.0f / sum_across((sum[0] + sum[2]) + (sum[1] + sum[3])));
    VECTORS store_part(y, n, i, v[i] * scale);
#undef VECTORS
    return true;
}
static void softmax(const float *x, float *y, size_t n)
{
    enum { SHORT = LANES > 4 ? 64 / LANES : 4 }; /* vectors; what the registers hold */
    if (n && n <= SHORT * LANES / 2 && softmax_short(SHORT / 2, x, y, n)) return;
    if (n > SHORT * LANES / 2 && n <= SHORT * LANES && softmax_short(SHORT, x, y, n)) return;
    const float max = n ? reduce_max(x, n) : 0.0f;
    if (isfinite(max)) {
        row_scale(y, y, n, 1.0f / exp_sum(x, y, n, max), 0.0f);
        return;
    }
    for (size_t i = 0; i < n; i++) /* a NaN or infinity somewhere, or nothing but -infinity */
        y[i] = NAN;
}
/* A vector of scores from j on; rest: elements that are there, 0: all. */
SIMD vf masked_scores(const float *x, float scale, const float *const mask[2], size_t j,
                      size_t rest)
{
#define TAKE(from) (rest ? v_load_masked((from) + j, rest, 0.0f) : v_load((from) + j))
    vf v = TAKE(x) * v_set1(scale);
    if (mask[0]) v += TAKE(mask[0]);
    if (mask[1]) v += TAKE(mask[1]);
#undef TAKE
    return v;
}
SIMD float softmax_masked_row(float *x, float scale, const float *const mask[2], const size_t n)
{
    const size_t rest = n % LANES, whole = n - rest;
    const vf nothing = v_set1(-INFINITY);
    vf top = nothing, last = nothing, sum = v_set1(0.0f);
    vi bad = vi_set1(0);
    for (size_t j = 0; j < whole; j += LANES) {
        const vf v = masked_scores(x, scale, mask, j, 0);
        bad |= v != v;
        top = v_max(v, top);
        v_store(x + j, v);
    }
    if (rest) {
        const vf v = masked_scores(x, scale, mask, whole, rest);
        last = v_select(v_lane() < vi_set1((int32_t)rest), v, nothing);
        bad |= last != last;
        top = v_max(last, top);
    }
    const float max = max_across(top);
    if (!isfinite(max) || v_any(bad)) {
        memset(x, 0, n * sizeof *x);
        return v_any(bad) ? NAN : max;
    }
    for (size_t j = 0; j < whole; j += LANES) {
        const vf e = exp_one(v_load(x + j) - v_set1(max));
        v_store(x + j, e);
        sum += e;
    }
    last = exp_one(last - v_set1(max));
    const vf share = v_set1(1.0f / sum_across(sum + last));
    for (size_t j = 0; j < whole; j += LANES)
        v_store(x + j, v_load(x + j) * share);
    if (rest) v_store_masked(x + whole, last * share, rest);
    return max;
}
static void softmax_masked(const struct sdx_masked_rows *s)
{
    const float *mask[2] = {s->mask[0], s->mask[1]};
    float *x = s->x;
    for (size_t r = 0; r < s->rows; r++, x += s->pitch) {
        s->tops[r] = softmax_masked_row(x, s->scale, mask, s->n);
        for (int i = 0; i < 2; i++)
            if (mask[i]) mask[i] += s->mask_pitch[i];
    }
}
/* `vectors` of n columns each. A NaN, or a largest number that is not finite, makes the sum NaN. */
SIMD void softmax_block(const int vectors, const float *x, float *y, size_t length, size_t step,
                        const size_t n)
{
    vf top[4], sum[4];
    vi bad[4];
#define VECTORS SDX_UNROLL(4) for (int i = 0; i < vectors; i++)
    VECTORS
    {
        top[i] = v_set1(-INFINITY);
        bad[i] = vi_set1(0);
    }
    for (size_t k = 0; k < length; k++)
        VECTORS
        {
            const vf v = v_load_masked(x + k * step + i * LANES, n, 0.0f);
            top[i] = v_max(v, top[i]);
            bad[i] |= v != v;
        }
    VECTORS sum[i] = v_select(bad[i], v_set1(NAN), top[i] - top[i]);
    for (size_t k = 0; k < length; k++)
        VECTORS
        {
            const vf e = exp_one(v_load_masked(x + k * step + i * LANES, n, 0.0f) - top[i]);
            v_store_masked(y + k * step + i * LANES, e, n);
            sum[i] += e;
        }
    VECTORS sum[i] = v_set1(1.0f) / sum[i];
    for (size_t k = 0; k < length; k++)
        VECTORS
        {
            float *to = y + k * step + i * LANES;
            v_store_masked(to, v_load_masked(to, n, 0.0f) * sum[i], n);
        }
#undef VECTORS
}
static void softmax_columns(const float *x, float *y, size_t length, size_t step, size_t n)
{
    for (; n >= BLOCK; n -= BLOCK, x += BLOCK, y += BLOCK)
        softmax_block(4, x, y, length, step, LANES);
    for (; n >= LANES; n -= LANES, x += LANES, y += LANES)
        softmax_block(1, x, y, length, step, LANES);
    if (n) softmax_block(1, x, y, length, step, n);
}
/* e^x for x <= 0 to the bits of x_exp, but 0 where that is less than 2^-126; one vector. */
SIMD vf exp_below(vf x)
{
    x = v_max(v_set1(-104.0f), x);
    const vf magic = v_set1(12582912.0f), m = v_fma(x, v_set1(1.44269504f), magic);
    const vi n = vi_add(vi_bits(m), vi_set1(127 - 0x4b400000));
    vf r = v_fma(m - magic, v_set1(-0.693359375f), x), p = v_set1(exp_fit[0]);
    r = v_fma(m - magic, v_set1(2.12194440e-4f), r);
    SDX_UNROLL(4) for (int k = 1; k < 5; k++) p = v_fma(p, r, v_set1(exp_fit[k]));
    p = v_set1(1.0f) + v_fma(r * r, p, r);
    return v_bits(vi_bits(p * v_bits(n << 23)) & (n > vi_set1(0)));
}
SUM(sum_exp, -INFINITY, exp_below(v - v_set1(mean)))
/* x - max - log(sum of exp), a number of 1 among them; the sum is one of blocks. */
static void log_softmax(const float *x, float *y, size_t n)
{
    if (!n) return;
    float max = reduce_max(x, n), total = 0.0f;
    for (size_t at = 0; at < n; at += 8 * WIDE)
        total += sum_exp(x + at, n - at < 8 * WIDE ? n - at : 8 * WIDE, max);
    row_less(x, y, n, max, logf(total));
}
/* y = (x - mean) * inv * scale + bias, of which scale and bias may be NULL; y may be x */
static void normalise(const float *x, const float *scale, const float *bias, float *y, size_t n,
                      float mean, float inv)
{
    for (size_t at = 0; at < n; at += LANES) {
        const size_t left = n - at;
        vf v = left >= LANES ? v_load(x + at) : v_load_masked(x + at, left, 0.0f);
        v = (v - v_set1(mean)) * v_set1(inv);
        if (left >= LANES) {
            if (scale) v = v * v_load(scale + at);
            if (bias) v = v + v_load(bias + at);
            v_store(y + at, v);
            continue;
        }
        if (scale) v = v * v_load_masked(scale + at, left, 0.0f);
        if (bias) v = v + v_load_masked(bias + at, left, 0.0f);
        v_store_masked(y + at, v, left);
    }
}
/* A sum, a root and a quotient wait for each other, so some rows go side by side. */
enum { SIDE_BY_SIDE = 4 };
static SDX_NOINLINE void norm_rows(bool centred, const struct sdx_norm_rows *norm)
{
    const struct sdx_norm_rows s = *norm;
    const float *x = s.x;
    float *y = s.y;
    for (size_t r = 0, m; s.n && r < s.rows; r += m, x += m * s.n, y += m * s.n) {
        float mean[SIDE_BY_SIDE] = {0}, inv[SIDE_BY_SIDE];
        m = s.rows - r < SIDE_BY_SIDE ? s.rows - r : SIDE_BY_SIDE;
        for (size_t i = 0; centred && i < m; i++)
            mean[i] = reduce_sum(x + i * s.n, s.n) / (float)s.n;
        for (size_t i = 0; i < m; i++) {
            const float *row = x + i * s.n;
            const float squares =
                centred ? sum_deviations(row, s.n, mean[i]) : reduce_sumsq(row, s.n);
            inv[i] = 1.0f / sqrtf(squares / (float)s.n + s.epsilon);
        }
        for (size_t i = 0; i < m; i++)
            normalise(x + i * s.n, s.scale, s.bias, y + i * s.n, s.n, mean[i], inv[i]);
        for (size_t i = 0; centred && s.mean && i < m; i++)
            s.mean[r + i] = mean[i];
        for (size_t i = 0; s.inv_std && i < m; i++)
            s.inv_std[r + i] = inv[i];
    }
}
static void layer_norm(const struct sdx_norm_rows *rows)
{
    norm_rows(true, rows);
}
static void rms_norm(const struct sdx_norm_rows *rows)
{
    norm_rows(false, rows);
}
/* The intersection of LANES boxes from b on with `box`, 0 if none, and in *all their union. */
SIMD vf intersection(const float box[5], const float *b, size_t step, vf *all)
{
    const vf zero = v_set1(0.0f);
    const vf y0 = v_max(v_load(b), v_set1(box[0])), x0 = v_max(v_load(b + step), v_set1(box[1]));
    const vf h = v_min(v_load(b + 2 * step), v_set1(box[2])) - y0;
    const vf w = v_min(v_load(b + 3 * step), v_set1(box[3])) - x0;
    const vf both = v_max(h, zero) * v_max(w, zero);
    *all = v_load(b + 4 * step) + v_set1(box[4]) - both;
    return both;
}
/* Divides where a product says that it may be needed. */
static bool overlaps(const float box[5], const float *boxes, size_t step, size_t n, float threshold)
{
    const vf low = v_set1(threshold >= 0.0f ? threshold * (1.0f - 1e-6f) : -INFINITY);
    const vf zero = v_set1(0.0f);
    if (!(box[4] > 0.0f)) return false;
    for (size_t at = 0; at < n; at += BLOCK) {
        vf all, most = v_set1(-1.0f);
        EACH
        {
            const vf both = intersection(box, boxes + at + i * LANES, step, &all);
            most = v_max(both - low * all, most);
        }
        if (!v_any(most >= zero)) continue;
        for (int i = 0; i < 4; i++) {
            const float *b = boxes + at + i * LANES;
            const vf both = intersection(box, b, step, &all);
            if (v_any((v_load(b + 4 * step) > zero) & (all > zero) & (both > zero) &
                      (both / all > v_set1(threshold))))
                return true;
        }
    }
    return false;
}
static size_t above(const float *x, size_t n, uint32_t sign, float bound, uint32_t *at)
{
    const vi flip = vi_set1((int32_t)sign);
    size_t count = 0;
    float rest[BLOCK];
    for (size_t j = 0; j < n; j += BLOCK) {
        const float *from = x + j;
        vi hit[4];
        if (n - j < BLOCK) {
            for (int i = 0; i < BLOCK; i++)
                rest[i] = sign ? INFINITY : -INFINITY;
            memcpy(rest, from, (n - j) * sizeof *x);
            from = rest;
        }
        EACH hit[i] = ~(v_bits(vi_load(from + i * LANES) ^ flip) <= v_set1(bound));
        if (!v_any(hit[0] | hit[1] | hit[2] | hit[3])) continue;
#if defined(SDX_SET_AVX512) && SDX_SIMD_LANES == 16
        EACH
        {
            const __mmask16 mask = _mm512_movepi32_mask((__m512i)hit[i]);
            const vi place = vi_add(v_lane(), vi_set1((int32_t)j + i * LANES));
            vi_store(at + count, (vi)_mm512_maskz_compress_epi32(mask, (__m512i)place));
            count += (size_t)__builtin_popcount(mask);
        }
#else
        int32_t lanes[BLOCK];
        EACH vi_store(lanes + i * LANES, hit[i]);
        for (int i = 0; i < BLOCK; i++) {
            at[count] = (uint32_t)j + (uint32_t)i;
            count -= (size_t)lanes[i];
        }
#endif
    }
    return count;
}

void SDX_INIT(sdx_vec_reduce_init_)(struct sdx_vec *vec)
{
#define FIELD(name) vec->f32_reduce_##name = reduce_##name;
    SDX_VEC_REDUCTIONS(FIELD)
#undef FIELD
    vec->f32_arg_columns = arg_columns;
    vec->f32_top_columns = top_columns;
    vec->f32_dot = dot;
    vec->f32_exp_sum = exp_sum;
    vec->f32_softmax = softmax;
    vec->f32_softmax_masked = softmax_masked;
    vec->f32_log_softmax = log_softmax;
    vec->f32_softmax_columns = softmax_columns;
    vec->f32_layer_norm = layer_norm;
    vec->f32_rms_norm = rms_norm;
    vec->f32_overlaps = overlaps;
    vec->f32_above = above;
}
