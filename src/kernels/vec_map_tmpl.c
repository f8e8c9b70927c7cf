/* SPDX-License-Identifier: Apache-2.0
 * Maps and binary operations of vec.h. Once an instruction set. A remainder shorter than a block
 * passes through a buffer, so that every element sees the same operations. */
#include "kernels/tables.h"
#include "kernels/vec_math.h"

/* Of the n < BLOCK elements of a remainder: how many are in vector i, and where they begin. */
static inline size_t first_of(size_t n, int i)
{
    return (size_t)i * LANES < n ? (size_t)i * LANES : n;
}
static inline size_t lanes_of(size_t n, int i)
{
    const size_t left = n - first_of(n, i);
    return left < LANES ? left : LANES;
}

typedef void map_fn(const float *from, float *to, size_t n, float a, float b);
static SDX_NOINLINE void map_rest(map_fn *map, const float *from, float *to, size_t n, float a,
                                  float b)
{
    float rest[BLOCK];
    EACH v_store(rest + i * LANES, v_load_masked(from + first_of(n, i), lanes_of(n, i), 0.0f));
    map(rest, rest, BLOCK, a, b);
    EACH v_store_masked(to + first_of(n, i), v_load(rest + i * LANES), lanes_of(n, i));
}
#define MAP(name, expression)                                                                      \
    static void map_##name(const float *from, float *to, size_t n, float a, float b)               \
    {                                                                                              \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        size_t at = 0;                                                                             \
        for (; at + BLOCK <= n; at += BLOCK) {                                                     \
            struct vx x = x_load(from + at);                                                       \
            x_store(to + at, expression);                                                          \
        }                                                                                          \
        if (at < n) map_rest(map_##name, from + at, to + at, n - at, a, b);                        \
    }

static inline struct vx elu(struct vx x, float a)
{
    return x_select(x_less(x, x_set1(0.0f)), x_scale(x_expm1_negative(x), a), x);
}

MAP(abs, x_abs(x))
MAP(neg, x_neg(x))
MAP(sqrt, x_sqrt(x))
MAP(rsqrt, x_div(x_set1(1.0f), x_sqrt(x)))
MAP(reciprocal, x_div(x_set1(1.0f), x))
MAP(square, x_mul(x, x))
MAP(floor, x_floor(x))
MAP(ceil, x_ceil(x))
MAP(round, x_round(x))
MAP(trunc, x_trunc(x))
MAP(relu, x_relu(x))
MAP(clip, x_clip(x, a, b))
MAP(leaky_relu, x_leaky_relu(x, a))
MAP(elu, elu(x, a))
MAP(hard_sigmoid, x_hard_sigmoid(x, a, b))
MAP(hard_swish, x_hard_swish(x))
MAP(fake_quantize, x_fake_quantize(x, a, b))
MAP(thresholded_relu, x_select(x_less(x_set1(a), x), x, x_set1(0.0f)))
MAP(exp, x_exp(x))
MAP(log, x_log(x))
MAP(tanh, x_tanh(x))
MAP(sigmoid, x_sigmoid(x))
MAP(silu, x_silu(x))
MAP(erf, x_erf(x))
MAP(gelu_erf, x_gelu_erf(x))
MAP(gelu_tanh, x_gelu_tanh(x))
MAP(softplus, x_softplus(x))
MAP(softsign, x_softsign(x))
MAP(mish, x_mish(x))
MAP(asin, x_asin(x))
MAP(acos, x_acos(x))
MAP(atan, x_atan(x))
MAP(sinh, x_sinh(x))
MAP(cosh, x_cosh(x))
MAP(asinh, x_asinh(x))
MAP(acosh, x_acosh(x))
MAP(atanh, x_atanh(x))

/* Beyond 8192, where the reduction would lose bits, each element goes to libm. */
#define PERIODIC(name, exact)                                                                      \
    static void map_##name(const float *from, float *to, size_t n, float a, float b)               \
    {                                                                                              \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        for (size_t at = 0; at < n; at += BLOCK) {                                                 \
            size_t count = n - at < BLOCK ? n - at : BLOCK;                                        \
            float x[BLOCK] = {0}, y[BLOCK];                                                        \
            memcpy(x, from + at, count * sizeof(float));                                           \
            x_store(y, x_##name(x_load(x)));                                                       \
            int far = 0;                                                                           \
            for (int i = 0; i < BLOCK; i++)                                                        \
                far |= !(fabsf(x[i]) < 8192.0f);                                                   \
            for (int i = 0; far && i < BLOCK; i++)                                                 \
                if (!(fabsf(x[i]) < 8192.0f)) y[i] = exact(x[i]);                                  \
            memcpy(to + at, y, count * sizeof(float));                                             \
        }                                                                                          \
    }
PERIODIC(sin, sinf)
PERIODIC(cos, cosf)

static inline vf larger(vf a, vf b) /* NaN wins */
{
    return v_select(a != a, a, v_max(a, b));
}
static inline vf smaller(vf a, vf b)
{
    return v_select(a != a, a, v_min(a, b));
}
static inline vf prelu(vf a, vf b)
{
    return v_select(a < v_set1(0.0f), a * b, a);
}

#define BINARY(name, expression)                                                                   \
    SIMD void loop_##name(const float *pa, const size_t step_a, const float *pb,                   \
                          const size_t step_b, float *to, size_t n)                                \
    {                                                                                              \
        size_t at = 0;                                                                             \
        const vf a0 = v_set1(n ? *pa : 0), b0 = v_set1(n ? *pb : 0);                               \
        for (; at + BLOCK <= n; at += BLOCK) {                                                     \
            vf y[4];                                                                               \
            EACH                                                                                   \
            {                                                                                      \
                vf a = step_a ? v_load(pa + at + i * LANES) : a0;                                  \
                vf b = step_b ? v_load(pb + at + i * LANES) : b0;                                  \
                y[i] = expression;                                                                 \
            }                                                                                      \
            EACH v_store(to + at + i * LANES, y[i]);                                               \
        }                                                                                          \
        for (; at + LANES <= n; at += LANES) {                                                     \
            const vf a = step_a ? v_load(pa + at) : a0, b = step_b ? v_load(pb + at) : b0;         \
            v_store(to + at, expression);                                                          \
        }                                                                                          \
        if (at < n) {                                                                              \
            const vf a = step_a ? v_load_masked(pa + at, n - at, 0.0f) : a0;                       \
            const vf b = step_b ? v_load_masked(pb + at, n - at, 0.0f) : b0;                       \
            v_store_masked(to + at, expression, n - at);                                           \
        }                                                                                          \
    }                                                                                              \
    static void binary_##name(const float *a, size_t step_a, const float *b, size_t step_b,        \
                              float *y, size_t n)                                                  \
    {                                                                                              \
        if (step_a && step_b)                                                                      \
            loop_##name(a, 1, b, 1, y, n);                                                         \
        else if (step_a)                                                                           \
            loop_##name(a, 1, b, 0, y, n);                                                         \
        else if (step_b)                                                                           \
            loop_##name(a, 0, b, 1, y, n);                                                         \
        else                                                                                       \
            loop_##name(a, 0, b, 0, y, n);                                                         \
    }
BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a *b)
BINARY(div, a / b)
BINARY(max, larger(a, b))
BINARY(min, smaller(a, b))
BINARY(prelu, prelu(a, b))

/* A run of columns of one row; the last vector overlaps the one before, so it is read before all
 * are written. */
SIMD void add_outer_run(float outer, const float *inner, float *y, size_t n)
{
    const vf add = v_set1(outer);
    if (n < LANES) {
        for (size_t i = 0; i < n; i++)
            y[i] += outer + inner[i];
        return;
    }
    const vf last = v_load(y + n - LANES) + (add + v_load(inner + n - LANES));
    for (size_t at = 0; at + LANES < n; at += LANES)
        v_store(y + at, v_load(y + at) + (add + v_load(inner + at)));
    v_store(y + n - LANES, last);
}
static void add_outer(const float *outer, const float *inner, size_t width, size_t begin, float *y,
                      size_t n)
{
    if (!n) return;
    size_t row = begin / width, column = begin % width;
    while (n) {
        const size_t count = width - column < n ? width - column : n;
        add_outer_run(outer[row++], inner + column, y, count);
        y += count;
        n -= count;
        column = 0;
    }
}
static void rows_of(const float *x, size_t stride, bool splat, float *y, size_t width, size_t rows)
{
    const size_t whole = splat ? 0 : width / LANES * LANES;
    for (size_t r = 0; r < rows; r++, x += stride, y += width) {
        for (size_t at = 0; at < whole; at += LANES)
            v_store(y + at, v_load(x + at));
        if (splat) {
            const vf all = v_set1(*x);
            for (size_t at = 0; at < width; at += LANES)
                v_store(y + at, all);
        } else if (whole < width) {
            v_store(y + whole, v_load_masked(x + whole, width - whole, 0.0f));
        }
    }
}
static void axpy(float a, const float *x, float *y, size_t n)
{
    size_t at = 0;
    const vf w = v_set1(a);
    for (; at + LANES <= n; at += LANES)
        v_store(y + at, v_load(y + at) + w * v_load(x + at));
    for (; at < n; at++)
        y[at] += a * x[at];
}
SIMD void mix_of(const int vectors, const float *const *rows, const float *w, int count, size_t at,
                 float *y)
{
    vf sums[4];
    SDX_UNROLL(4)
    for (int v = 0; v < vectors; v++)
        sums[v] = v_load(rows[0] + at + v * LANES) * v_set1(w[0]);
    for (int t = 1; t < count; t++) {
        const vf by = v_set1(w[t]);
        SDX_UNROLL(4)
        for (int v = 0; v < vectors; v++)
            sums[v] += v_load(rows[t] + at + v * LANES) * by;
    }
    SDX_UNROLL(4)
    for (int v = 0; v < vectors; v++)
        v_store(y + at + v * LANES, sums[v]);
}
static void mix(const float *const *rows, const float *w, int count, float *y, size_t n)
{
    size_t at = 0;
    for (; at + 4 * LANES <= n; at += 4 * LANES)
        mix_of(4, rows, w, count, at, y);
    for (; at + 2 * LANES <= n; at += 2 * LANES)
        mix_of(2, rows, w, count, at, y);
    for (; at + LANES <= n; at += LANES)
        mix_of(1, rows, w, count, at, y);
    for (; at < n; at++) {
        float sum = rows[0][at] * w[0];
        for (int t = 1; t < count; t++)
            sum += rows[t][at] * w[t];
        y[at] = sum;
    }
}
SIMD void cell_of(const int vectors, const float *x, const int32_t *index, const float *w,
                  int count, size_t cell, float *y)
{
    vf sums[2];
    SDX_UNROLL(2)
    for (int v = 0; v < vectors; v++)
        sums[v] = v_load(x + (size_t)index[0] * cell + v * LANES) * v_set1(w[0]);
    for (int t = 1; t < count; t++) {
        const float *from = x + (size_t)index[t] * cell;
        SDX_UNROLL(2)
        for (int v = 0; v < vectors; v++)
            sums[v] += v_load(from + v * LANES) * v_set1(w[t]);
    }
    SDX_UNROLL(2)
    for (int v = 0; v < vectors; v++)
        v_store(y + v * LANES, sums[v]);
}
static void mix_cells(const float *x, const int32_t *index, const float *w, int count, size_t cell,
                      float *y, size_t n)
{
    for (size_t j = 0; j < n; j++, index += count, w += count, y += cell) {
        size_t at = 0;
        for (; at + 2 * LANES <= cell; at += 2 * LANES)
            cell_of(2, x + at, index, w, count, cell, y + at);
        for (; at + LANES <= cell; at += LANES)
            cell_of(1, x + at, index, w, count, cell, y + at);
        for (; at < cell; at++) {
            float sum = x[(size_t)index[0] * cell + at] * w[0];
            for (int t = 1; t < count; t++)
                sum += x[(size_t)index[t] * cell + at] * w[t];
            y[at] = sum;
        }
    }
}
/* Of two vectors at once: the sums of one wait for each other. */
SIMD void distances_of(const int vectors, const float *x, size_t count, const float *rows,
                       size_t step, float *y)
{
    vf sums[2] = {v_set1(0.0f), v_set1(0.0f)};
    for (size_t k = 0; k < count; k++, rows += step)
        for (int v = 0; v < vectors; v++) {
            const vf apart = v_set1(x[k]) - v_load(rows + v * LANES);
            sums[v] += apart * apart;
        }
    for (int v = 0; v < vectors; v++)
        v_store(y + v * LANES, sums[v]);
}
static void distances(const float *x, size_t count, const float *rows, size_t step, float *y,
                      size_t n)
{
    size_t at = 0;
    for (; at + 2 * LANES <= n; at += 2 * LANES)
        distances_of(2, x, count, rows + at, step, y + at);
    for (; at + LANES <= n; at += LANES)
        distances_of(1, x, count, rows + at, step, y + at);
    for (; at < n; at++) {
        y[at] = 0;
        for (size_t k = 0; k < count; k++) {
            const float apart = x[k] - rows[k * step + at];
            y[at] += apart * apart;
        }
    }
}
static void affine(const float *x, float scale, float shift, float *y, size_t n)
{
    size_t at = 0;
    const vf s = v_set1(scale), t = v_set1(shift);
    for (; at + LANES <= n; at += LANES)
        v_store(y + at, v_load(x + at) * s + t);
    for (; at < n; at++)
        y[at] = x[at] * scale + shift;
}

static void rotate(const float *x, const float *cos, const float *sin, size_t second, float *y,
                   size_t half, size_t rows)
{
    const size_t width = half + second;
    for (; rows > 0; rows--, x += 2 * half, cos += width, sin += width, y += 2 * half) {
        size_t at = 0;
        for (; at + LANES <= half; at += LANES) {
            const vf a = v_load(x + at), b = v_load(x + half + at);
            v_store(y + at, a * v_load(cos + at) - b * v_load(sin + at));
            v_store(y + half + at, b * v_load(cos + second + at) + a * v_load(sin + second + at));
        }
        for (; at < half; at++) {
            const float a = x[at], b = x[half + at];
            y[at] = a * cos[at] - b * sin[at];
            y[half + at] = b * cos[second + at] + a * sin[second + at];
        }
    }
}

SIMD void rotate_pairs_step(const float *x, const float *cos, const float *sin, float *y)
{
    const vi other = v_lane() ^ vi_set1(1), minus = (vi)((vu)other << 31);
    const vf a = v_load(x), b = v_bits(vi_bits(v_permute(a, other)) ^ minus);
    v_store(y, a * v_load(cos) + b * v_load(sin));
}

/* No pairs in scalars: gcc 12 makes vfmaddsub of a product less and one more a product, whatever
 * -ffp-contract says. */
static void rotate_pairs(const float *x, const float *cos, const float *sin, float *y, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        rotate_pairs_step(x + i, cos + i, sin + i, y + i);
    if (i == n) return;
    float left[3][LANES] = {{0}};
    memcpy(left[0], x + i, (n - i) * sizeof *x);
    memcpy(left[1], cos + i, (n - i) * sizeof *x);
    memcpy(left[2], sin + i, (n - i) * sizeof *x);
    rotate_pairs_step(left[0], left[1], left[2], left[0]);
    memcpy(y + i, left[0], (n - i) * sizeof *x);
}

void SDX_INIT(sdx_vec_map_init_)(struct sdx_vec *vec)
{
#define FIELD(name) vec->f32_##name = map_##name;
    SDX_VEC_MAPS(FIELD)
#undef FIELD
#define FIELD(name) vec->f32_##name = binary_##name;
    SDX_VEC_BINARIES(FIELD)
#undef FIELD
    vec->f32_axpy = axpy;
    vec->f32_mix = mix;
    vec->f32_mix_cells = mix_cells;
    vec->f32_distances = distances;
    vec->f32_add_outer = add_outer;
    vec->f32_rotate = rotate;
    vec->f32_rotate_pairs = rotate_pairs;
    vec->f32_affine = affine;
    vec->b32_rows = rows_of;
}
