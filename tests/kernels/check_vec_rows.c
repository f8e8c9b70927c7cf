/* SPDX-License-Identifier: Apache-2.0
 * Checks of the functions of vec.h on rows: dot, axpy, softmax, norms. */
#include "timed_row.h"

#include <float.h>

/* The lengths rows are tried with. */
#define LENGTHS(n) (size_t n = 0; n <= 1100; n += n < 70 ? 1 : n < 300 ? 29 : 200)

void check_f32_arg_columns(void)
{
    for
        LENGTHS(n)
        {
            enum { MOST = 9 };
            const size_t step = n + 3, length = 1 + n % MOST;
            float *x = random_row(MOST * step, -3, 3, 4);
            int64_t *y = guarded(n * 8, 8);
            for (size_t i = 0; i < MOST * step; i++)
                x[i] = i % 11 == 4 ? NAN : i % 5 == 0 ? -0.0f : truncf(x[i]);
            for (int is_min = 0; is_min < 2; is_min++)
                for (int back = 0; back < 2; back++) {
                    const float *from = back ? x + (length - 1) * step : x;
                    const ptrdiff_t turn = back ? -(ptrdiff_t)step : (ptrdiff_t)step;
                    vec_now->f32_arg_columns(from, length, turn, n, is_min, y);
                    for (size_t j = 0; j < n; j++) {
                        ptrdiff_t right = 0;
                        for (ptrdiff_t k = 1; k < (ptrdiff_t)length; k++) {
                            const float v = from[k * turn + (ptrdiff_t)j];
                            const float b = from[right * turn + (ptrdiff_t)j];
                            if (b == b && (v != v || (is_min ? v < b : v > b))) right = k;
                        }
                        expect(y[j] == right, "%zu columns of %zu, column %zu: %lld, expected %lld",
                               n, length, j, (long long)y[j], (long long)right);
                    }
                }
            guards_intact();
            guards_release();
        }
}
/* Does a come before b? */
static bool is_better(float a, float b, bool is_min)
{
    if (isnan(a) || isnan(b)) return isnan(a) != isnan(b) && isnan(a) != is_min;
    return is_min ? a < b : a > b;
}
void check_f32_top_columns(void)
{
    enum { COLUMNS = SDX_VEC_TOP_COLUMNS };
    for (size_t length = 1; length <= 40; length++)
        for (size_t k = 1; k <= SDX_VEC_TOP_MOST && k <= length; k++) {
            const size_t step = COLUMNS + random_bits() % 3;
            const bool is_min = random_bits() & 1;
            float *x = random_row((length - 1) * step + COLUMNS, -3, 3, 4);
            int32_t *at = guarded(k * COLUMNS * 4, 4);
            for (size_t i = 0; i < (length - 1) * step + COLUMNS; i++)
                x[i] = i % 11 == 4   ? NAN
                       : i % 5 == 0  ? -0.0f
                       : i % 13 == 1 ? INFINITY
                                     : truncf(x[i]);
            vec_now->f32_top_columns(x, length, (ptrdiff_t)step, k, is_min, at);
            for (size_t c = 0; c < COLUMNS; c++)
                for (size_t j = 0; j < length; j++) {
                    size_t rank = 0;
                    for (size_t i = 0; i < length; i++)
                        rank += is_better(x[i * step + c], x[j * step + c], is_min) ||
                                (i < j && !is_better(x[j * step + c], x[i * step + c], is_min));
                    if (rank >= k) continue;
                    expect(at[rank * COLUMNS + c] == (int32_t)j,
                           "%zu of %zu, column %zu, place %zu: %d, expected %zu", k, length, c,
                           rank, at[rank * COLUMNS + c], j);
                }
            guards_intact();
            guards_release();
        }
}
void check_f32_above(void)
{
    for
        LENGTHS(n)
        {
            float *x = random_row(n, -3, 3, 4);
            for (size_t i = 0; i < n; i++)
                x[i] = i % 37 == 4 ? NAN : i % 5 == 0 ? -0.0f : roundf(2 * x[i]);
            for (int turn = 0; turn < 10; turn++) {
                const float bound = turn ? (float)(turn - 3) : -INFINITY;
                uint32_t *at = guarded((n + SDX_VEC_ABOVE_ROOM) * 4, 4);
                const uint32_t sign = turn % 2 ? UINT32_C(1) << 31 : 0;
                const size_t count = vec_now->f32_above(x, n, sign, bound, at);
                size_t right = 0;
                for (size_t i = 0; i < n; i++) {
                    if ((sign ? -x[i] : x[i]) <= bound) continue;
                    expect(right < count && at[right] == i, "n %zu, bound %g: not %zu", n, bound,
                           i);
                    right++;
                }
                expect(right == count, "n %zu: %zu, expected %zu", n, count, right);
            }
            guards_intact();
            guards_release();
        }
}
void check_f32_overlaps(void)
{
    enum { STEP = 200, BOX = 5 };
    for (size_t n = 1; n <= 130; n += 1 + n / 9)
        for (int turn = 0; turn < 40; turn++) {
            const float threshold = (float)(turn % 9) * 0.125f - (turn == 39 ? 1.0f : 0.0f);
            float *boxes = guarded(BOX * STEP * 4, 4), box[BOX];
            memset(boxes, 0, BOX * STEP * 4);
            bool right = false;
            for (size_t k = n + 1; k-- > 0;) {
                float b[BOX];
                for (int i = 0; i < 4; i++)
                    b[i] = roundf(random_float(-8, 8)) * (turn < 20 ? 0.1f : 1.0f);
                b[4] = (b[2] - b[0]) * (b[3] - b[1]);
                if (k % 17 == 11) b[random_int(0, 4)] = turn % 2 ? NAN : INFINITY;
                if (k == n) {
                    b[0] = b[1] = -3.0f;
                    b[2] = b[3] = 2.0f;
                    b[4] = 25.0f;
                    memcpy(box, b, sizeof box);
                    continue;
                }
                for (size_t i = 0; i < BOX; i++)
                    boxes[i * STEP + k] = b[i];
                const float h = fminf(b[2], box[2]) - fmaxf(b[0], box[0]);
                const float w = fminf(b[3], box[3]) - fmaxf(b[1], box[1]);
                const float both = h * w, all = b[4] + box[4] - both;
                right |= h > 0 && w > 0 && b[4] > 0 && all > 0 && both / all > threshold;
            }
            expect(vec_now->f32_overlaps(box, boxes, STEP, n, threshold) == right,
                   "%zu boxes, threshold %g", n, threshold);
            guards_intact();
            guards_release();
        }
}
void check_f32_dot(void)
{
    for
        LENGTHS(n)
        {
            float *a = random_row(n, -1, 1, 4), *b = random_row(n, -1, 1, 8);
            double right = 0;
            for (size_t i = 0; i < n; i++)
                right += (double)a[i] * b[i];
            const float got = vec_now->f32_dot(a, b, n);
            expect(same_bits(got, vec_generic.f32_dot(a, b, n)), "n %zu: not as generic", n);
            expect(fabs(got - right) <= 6e-8 * (double)n * 2, "n %zu: %.9g, expected %.9g", n, got,
                   right);
        }
}
void check_f32_axpy(void)
{
    for
        LENGTHS(n)
        {
            float *x = random_row(n, -1, 1, 4), *y = random_row(n, -1, 1, 8);
            float *before = guarded(n * 4, 0);
            memcpy(before, y, n * 4);
            vec_now->f32_axpy(0.37f, x, y, n);
            for (size_t i = 0; i < n; i++) {
                const float product = 0.37f * x[i];
                expect(same_bits(y[i], before[i] + product), "n %zu, element %zu: %.9g", n, i,
                       y[i]);
            }
        }
}
void check_f32_mix_cells(void)
{
    enum { PLACES = 9, OUT = 5, TAPS = 6 };
    for (size_t cell = 1; cell <= 70; cell++)
        for (int count = 1; count <= TAPS; count++) {
            float *x = random_row(PLACES * cell, -3, 3, 4), *y = guarded(OUT * cell * 4, 4);
            float *w = random_row((size_t)(OUT * count), -1, 1, 0);
            int32_t *index = guarded((size_t)(OUT * count) * 4, 0);
            for (int i = 0; i < OUT * count; i++)
                index[i] = (int32_t)(random_bits() % PLACES);
            vec_now->f32_mix_cells(x, index, w, count, cell, y, OUT);
            for (size_t i = 0; i < OUT * cell; i++) {
                const size_t j = i / cell;
                float sum = 0;
                for (int t = 0; t < count; t++) {
                    const float v =
                        x[(size_t)index[j * (size_t)count + (size_t)t] * cell + i % cell];
                    sum = t ? sum + v * w[j * (size_t)count + (size_t)t] : v * w[j * (size_t)count];
                }
                expect(same_bits(y[i], sum), "cells of %zu, %d taps, %zu: %g, expected %g", cell,
                       count, i, y[i], sum);
            }
            guards_intact();
            guards_release();
        }
}
void check_f32_mix(void)
{
    static const float w[] = {0.37f, -1.25f, 0.6f, 2.0f};
    for
        LENGTHS(n)
        {
            const float *rows[4];
            float *y = guarded(n * 4, 4);
            for (int t = 0; t < 4; t++)
                rows[t] = random_row(n, -1, 1, (size_t)t % 2 * 4);
            for (int count = 1; count <= 4; count++) {
                vec_now->f32_mix(rows, w, count, y, n);
                for (size_t i = 0; i < n; i++) {
                    float right = rows[0][i] * w[0];
                    for (int t = 1; t < count; t++) {
                        const float product = rows[t][i] * w[t];
                        right += product;
                    }
                    expect(same_bits(y[i], right), "%d rows, n %zu, element %zu: %.9g", count, n, i,
                           y[i]);
                }
            }
        }
}
void check_f32_distances(void)
{
    enum { COUNT = 5 };
    for
        LENGTHS(n)
        {
            const size_t step = n + 3;
            const float *rows = random_row(COUNT * step, -1, 1, 4),
                        *x = random_row(COUNT, -1, 1, 0);
            float *y = guarded(n * 4, 4);
            vec_now->f32_distances(x, COUNT, rows, step, y, n);
            for (size_t i = 0; i < n; i++) {
                float right = 0;
                for (size_t k = 0; k < COUNT; k++) {
                    const float apart = x[k] - rows[k * step + i], square = apart * apart;
                    right += square;
                }
                expect(same_bits(y[i], right), "n %zu, element %zu: %.9g", n, i, y[i]);
            }
        }
}
void check_f32_affine(void)
{
    for
        LENGTHS(n)
        {
            float *x = random_row(n, -1, 1, 4), *y = guarded(n * 4, 8);
            vec_now->f32_affine(x, 1.7f, -0.3f, y, n);
            for (size_t i = 0; i < n; i++) {
                const float product = x[i] * 1.7f;
                expect(same_bits(y[i], product + -0.3f), "n %zu, element %zu: %.9g", n, i, y[i]);
            }
        }
}

typedef void (*row_fn)(const float *x, float *y, size_t n);
static void check_softmax(row_fn now, row_fn generic, bool is_log)
{
    for
        LENGTHS(n)
        {
            float *x = random_row(n, -30, 30, 4), *y = guarded(n * 4, 8), *z = guarded(n * 4, 0);
            double max = -INFINITY, sum = 0;
            for (size_t i = 0; i < n; i++)
                max = x[i] > max ? x[i] : max;
            for (size_t i = 0; i < n; i++)
                sum += exp(x[i] - max);
            now(x, y, n);
            generic(x, z, n);
            for (size_t i = 0; i < n; i++) {
                const double e = exp(x[i] - max) / sum, right = is_log ? log(e) : e;
                if (is_log)
                    expect(same_bits(y[i], z[i]), "n %zu, element %zu: not as generic", n, i);
                expect(fabs(y[i] - right) <= (is_log ? 1e-5 : 6e-6 * right + 1e-37),
                       "n %zu, element %zu: %.9g, expected %.9g", n, i, y[i], right);
            }
            now(x, x, n);
            for (size_t i = 0; i < n; i++)
                expect(same_bits(x[i], y[i]), "n %zu: other in place", n);
            for (size_t i = 0; i < n; i++)
                x[i] = -INFINITY;
            now(x, y, n);
            for (size_t i = 0; i < n; i++)
                expect(isnan(y[i]), "n %zu: all -inf gives %.9g", n, y[i]);
            if (n > 1 && !is_log) {
                x[n - 1] = NAN;
                x[0] = 1.0f;
                now(x, y, n);
                for (size_t i = 0; i < n; i++)
                    expect(isnan(y[i]), "n %zu: with NaN gives %.9g", n, y[i]);
                x[n - 1] = -INFINITY;
            }
            if (n > 1) { /* masked */
                x[0] = 1.0f;
                now(x, y, n);
                expect(y[0] == (is_log ? 0.0f : 1.0f) && y[1] == (is_log ? -INFINITY : 0.0f),
                       "n %zu: masked row gives %.9g, %.9g", n, y[0], y[1]);
            }
        }
}
void check_f32_add_outer(void)
{
    for
        LENGTHS(n)
        {
            const size_t width = (size_t)random_int(1, 40), begin = (size_t)random_int(0, 50);
            float *outer = random_row((begin + n) / width + 1, -3, 3, 4);
            float *inner = random_row(width, -3, 3, 8), *x = random_row(n, -3, 3, 12);
            float *y = guarded(n * 4, 4);
            memcpy(y, x, n * 4);
            vec_now->f32_add_outer(outer, inner, width, begin, y, n);
            for (size_t i = 0; i < n; i++) {
                const float add = outer[(begin + i) / width] + inner[(begin + i) % width];
                expect(same_bits(y[i], x[i] + add),
                       "n %zu, width %zu: [%zu] is %.9g, expected %.9g", n, width, i, y[i],
                       x[i] + add);
            }
        }
}
void check_f32_rotate(void)
{
    for
        LENGTHS(half)
        {
            const size_t rows = (size_t)random_int(1, 4), n = 2 * half * rows;
            const size_t second = random_int(0, 1) ? half : 0, width = half + second;
            float *x = random_row(n, -3, 3, 4), *y = guarded(n * 4, 8);
            float *cosines = random_row(width * rows, -1, 1, 8);
            float *sines = random_row(width * rows, -1, 1, 12);
            vec_now->f32_rotate(x, cosines, sines, second, y, half, rows);
            for (size_t i = 0; i < n; i++) {
                const size_t column = i % (2 * half);
                const bool is_first = column < half;
                const size_t at =
                    i / (2 * half) * width + (is_first ? column : column - half + second);
                const float other = is_first ? -x[i + half] : x[i - half];
                const float expected = x[i] * cosines[at] + other * sines[at];
                expect(same_bits(y[i], expected), "half %zu: [%zu] is %.9g, expected %.9g", half, i,
                       y[i], expected);
            }
        }
}
void check_f32_rotate_pairs(void)
{
    for
        LENGTHS(half)
        {
            const size_t n = 2 * half;
            float *x = random_row(n, -3, 3, 4), *y = guarded(n * 4, 8);
            float *cosines = random_row(n, -1, 1, 8), *sines = random_row(n, -1, 1, 12);
            vec_now->f32_rotate_pairs(x, cosines, sines, y, n);
            for (size_t i = 0; i < n; i++) {
                const float other = i % 2 ? x[i - 1] : -x[i + 1];
                const float expected = x[i] * cosines[i] + other * sines[i];
                expect(same_bits(y[i], expected), "n %zu: [%zu] is %.9g, expected %.9g", n, i, y[i],
                       expected);
            }
        }
}
void check_f32_exp_sum(void)
{
    for
        LENGTHS(n)
        {
            float *x = random_row(n, -100, 0, 4), *y = guarded(n * 4, 8);
            double right = 0;
            if (n) x[n / 2] = -200.0f;
            float sum = vec_now->f32_exp_sum(x, y, n, 3.0f);
            for (size_t i = 0; i < n; i++) {
                const double e = exp((double)x[i] - 3.0);
                right += e;
                expect(fabs(y[i] - e) <= (3e-7 + 1.2e-7 * (3.0 - x[i])) * e + 2e-38,
                       "n %zu: e^%.9g gives %.9g", n, x[i] - 3.0, y[i]);
            }
            expect(fabs(sum - right) <= 6e-6 * right + 1e-36, "n %zu: sum %.9g, expected %.9g", n,
                   sum, right);
        }
}
void check_f32_softmax(void)
{
    check_softmax(vec_now->f32_softmax, vec_generic.f32_softmax, false);
}
/* Rows with a NaN, of nothing, with an infinity, with an element of nothing, and of numbers. */
enum { SPOILT_ROWS = 4 };
static void check_masked(size_t n, int masks, size_t shared)
{
    const size_t rows = SPOILT_ROWS + 1, pitch = n + (size_t)random_int(0, 9);
    float *x = random_row(rows * pitch, -30, 30, 4), *y = guarded(rows * pitch * 4, 8);
    float *tops = guarded(rows * 4, 0), *mask[2] = {NULL};
    struct sdx_masked_rows s = {
        .x = y, .tops = tops, .pitch = pitch, .rows = rows, .n = n, .scale = 0.25f};
    for (int i = 0; i < masks; i++) {
        s.mask_pitch[i] = shared ? 0 : n + (size_t)i;
        s.mask[i] = mask[i] = random_row((rows - 1) * s.mask_pitch[i] + n, -5, 5, 12);
        if (n > 2) mask[i][n / 2] = -INFINITY;
    }
    x[n / 3] = NAN;
    for (size_t j = 0; j < n; j++)
        x[pitch + j] = -INFINITY;
    x[2 * pitch + n - 1] = INFINITY;
    if (n > 1) x[3 * pitch] = -INFINITY;
    memcpy(y, x, rows * pitch * 4);
    vec_now->f32_softmax_masked(&s);
    for (size_t r = 0; r < rows; r++) {
        double score[200], max = -INFINITY, sum = 0;
        bool is_nan = false;
        for (size_t j = 0; j < n; j++) {
            score[j] = x[r * pitch + j] * 0.25f;
            for (int i = 0; i < masks; i++)
                score[j] = (float)score[j] + mask[i][r * s.mask_pitch[i] + j];
            is_nan = is_nan || isnan(score[j]);
            max = score[j] > max ? score[j] : max;
        }
        for (size_t j = 0; j < n; j++)
            sum += exp(score[j] - max);
        const bool is_zero = is_nan || !isfinite(max);
        expect(is_nan ? isnan(tops[r]) : (float)max == tops[r], "n %zu, row %zu: top %.9g", n, r,
               tops[r]);
        for (size_t j = 0; j < n; j++) {
            const double right = is_zero ? 0 : exp(score[j] - max) / sum, got = y[r * pitch + j];
            expect(fabs(got - right) <= 6e-6 * right + 1e-37,
                   "n %zu, %d masks, row %zu, element %zu: %.9g, expected %.9g", n, masks, r, j,
                   got, right);
        }
        for (size_t j = n; j < pitch; j++)
            expect(same_bits(y[r * pitch + j], x[r * pitch + j]), "n %zu: beyond the row", n);
    }
    guards_intact();
    guards_release();
}
void check_f32_softmax_masked(void)
{
    for (size_t n = 1; n <= 200; n += 1 + n / 9)
        for (int masks = 0; masks <= 2; masks++)
            for (size_t shared = 0; shared < 2; shared++)
                check_masked(n, masks, shared);
}
void check_f32_log_softmax(void)
{
    check_softmax(vec_now->f32_log_softmax, vec_generic.f32_log_softmax, true);
}
/* Against rows of the same numbers, whose bound they share; a NaN and an infinity spoil their
 * column alone. */
void check_f32_softmax_columns(void)
{
    for (size_t n = 1; n <= 80; n += 1 + n / 9) {
        const size_t length = (size_t)random_int(1, 30), step = n + (size_t)random_int(0, 3);
        const size_t size = (length - 1) * step + n, bad = n / 2, infinite = n / 3;
        float *x = random_row(size, -40, 40, 4), *y = guarded(size * 4, 8), row[30], right[30];
        if (n > 20) {
            x[(length / 2) * step + bad] = NAN;
            x[(length / 3) * step + infinite] = INFINITY;
        }
        x[0] = length > 1 ? -INFINITY : 0.0f;
        vec_now->f32_softmax_columns(x, y, length, step, n);
        for (size_t j = 0; j < n; j++) {
            for (size_t k = 0; k < length; k++)
                row[k] = x[k * step + j];
            vec_now->f32_softmax(row, right, length);
            for (size_t k = 0; k < length; k++) {
                const float got = y[k * step + j];
                expect(isnan(got) ? isnan(right[k]) : fabsf(got - right[k]) <= 1e-6f * right[k],
                       "%zu columns of %zu: [%zu] of column %zu is %.9g, as a row %.9g", n, length,
                       k, j, got, right[k]);
            }
        }
        vec_now->f32_softmax_columns(x, x, length, step, n);
        for (size_t k = 0; k < length; k++)
            for (size_t j = 0; j < n; j++)
                expect(same_bits(x[k * step + j], y[k * step + j]), "other in place");
        guards_intact();
        guards_release();
    }
}

void check_f32_layer_norm(void)
{
    for
        LENGTHS(n)
        {
            float *x = random_row(n, -3, 5, 4), *scale = random_row(n, -1, 1, 0);
            float *bias = random_row(n, -1, 1, 8), *y = guarded(n * 4, 4), *z = guarded(n * 4, 0);
            double mean = 0, var = 0;
            for (size_t i = 0; i < n; i++)
                mean += x[i];
            mean /= (double)n;
            for (size_t i = 0; i < n; i++)
                var += (x[i] - mean) * (x[i] - mean);
            const double inv = 1 / sqrt(var / (double)n + 1e-5f);
            const float *s = n % 2 ? scale : NULL, *b = n % 3 ? bias : NULL;
            float got_mean = 0, got_inv = 0;
            struct sdx_norm_rows row = {.x = x, .scale = s, .bias = b, .y = y, .n = n, .rows = 1};
            row.epsilon = 1e-5f;
            row.mean = &got_mean;
            row.inv_std = &got_inv;
            vec_now->f32_layer_norm(&row);
            row.y = z;
            row.mean = row.inv_std = NULL;
            vec_generic.f32_layer_norm(&row);
            for (size_t i = 0; i < n; i++) {
                const double right = (x[i] - mean) * inv * (s ? s[i] : 1) + (b ? b[i] : 0);
                expect(same_bits(y[i], z[i]), "n %zu, element %zu: not as generic", n, i);
                /* n = 1: what the mean loses is divided by sqrt(epsilon) */
                expect(fabs(y[i] - right) <= 2e-6 * (1 + inv),
                       "n %zu, element %zu: %.9g, expected %.9g", n, i, y[i], right);
            }
            if (n) {
                expect(fabs(got_mean - mean) < 1e-5, "n %zu: mean %.9g, expected %.9g", n, got_mean,
                       mean);
                expect(fabs(got_inv - inv) < 1e-5 * inv, "n %zu: 1/std %.9g, expected %.9g", n,
                       got_inv, inv);
            }
        }
}
/* Rows together, y over x, are as each alone, their statistics too; rows behind them stay. */
static void check_norm_rows(void (*norm)(const struct sdx_norm_rows *), bool has_mean)
{
    enum { ROWS = 9 };
    for (size_t n = 1; n <= 300; n += n < 70 ? 1 : 29)
        for (size_t rows = 0; rows <= ROWS; rows++) {
            float *x = random_row(ROWS * n, -3, 5, 4), *scale = random_row(n, -1, 1, 0);
            float *bias = random_row(n, -1, 1, 8), *y = guarded(ROWS * n * 4, 4);
            float *z = guarded(n * 4, 0), *mean = guarded(rows * 4, 4), *inv = guarded(rows * 4, 0);
            float mean_alone = 0, inv_alone = 0;
            memcpy(y, x, ROWS * n * 4);
            struct sdx_norm_rows all = {.x = y, .y = y, .n = n, .rows = rows, .epsilon = 1e-5f};
            all.scale = n % 2 ? scale : NULL;
            all.bias = n % 3 ? bias : NULL;
            all.mean = n % 5 ? mean : NULL;
            all.inv_std = n % 7 ? inv : NULL;
            norm(&all);
            struct sdx_norm_rows one = all;
            one.y = z;
            one.rows = 1;
            one.mean = &mean_alone;
            one.inv_std = &inv_alone;
            for (size_t r = 0; r < ROWS; r++) {
                one.x = x + r * n;
                if (r < rows) norm(&one);
                for (size_t i = 0; i < n; i++)
                    expect(same_bits(y[r * n + i], r < rows ? z[i] : x[r * n + i]),
                           "n %zu, row %zu of %zu, element %zu", n, r, rows, i);
                if (r >= rows) continue;
                if (has_mean && all.mean)
                    expect(same_bits(mean[r], mean_alone), "n %zu, mean %zu of %zu", n, r, rows);
                if (all.inv_std)
                    expect(same_bits(inv[r], inv_alone), "n %zu, 1/std %zu of %zu", n, r, rows);
            }
            guards_intact();
            guards_release();
        }
}
void check_f32_layer_norm_rows(void)
{
    check_norm_rows(vec_now->f32_layer_norm, true);
}
void check_f32_rms_norm_rows(void)
{
    check_norm_rows(vec_now->f32_rms_norm, false);
}
void check_f32_rms_norm(void)
{
    for
        LENGTHS(n)
        {
            float *x = random_row(n, -3, 5, 4), *scale = random_row(n, -1, 1, 0);
            float *y = guarded(n * 4, 4), *z = guarded(n * 4, 0);
            const float *s = n % 2 ? scale : NULL;
            double sum = 0;
            for (size_t i = 0; i < n; i++)
                sum += (double)x[i] * x[i];
            const double inv = 1 / sqrt(sum / (double)n + 1e-6f);
            float got_inv = 0;
            struct sdx_norm_rows row = {.x = x, .scale = s, .y = y, .n = n, .rows = 1};
            row.epsilon = 1e-6f;
            row.inv_std = &got_inv;
            vec_now->f32_rms_norm(&row);
            row.y = z;
            row.inv_std = NULL;
            vec_generic.f32_rms_norm(&row);
            if (n)
                expect(fabs(got_inv - inv) < 1e-5 * inv, "n %zu: 1/root %.9g, expected %.9g", n,
                       got_inv, inv);
            for (size_t i = 0; i < n; i++) {
                const double right = x[i] * inv * (s ? s[i] : 1);
                expect(same_bits(y[i], z[i]), "n %zu, element %zu: not as generic", n, i);
                expect(fabs(y[i] - right) <= 4e-6, "n %zu, element %zu: %.9g, expected %.9g", n, i,
                       y[i], right);
            }
        }
}

/* ---- benchmarks ---- */
static volatile float sink;
BENCH(f32_arg_columns,
      vec_now->f32_arg_columns(timed_x, 16, TIMED / 16, TIMED / 16, false, (int64_t *)timed_y))
BENCH(f32_top_columns, vec_now->f32_top_columns(timed_x, TIMED / SDX_VEC_TOP_COLUMNS,
                                                SDX_VEC_TOP_COLUMNS, 2, false, (int32_t *)timed_y))
BENCH(f32_above, sink = (float)vec_now->f32_above(timed_x, TIMED - SDX_VEC_ABOVE_ROOM, 0, 2.9f,
                                                  (uint32_t *)timed_y))
BENCH(f32_overlaps, sink = vec_now->f32_overlaps((const float[]){9, 9, 10, 10, 1}, timed_x,
                                                 TIMED / 8, TIMED / 8, 0.5f))
BENCH(f32_dot, sink = vec_now->f32_dot(timed_x, timed_y, TIMED))
BENCH(f32_axpy, vec_now->f32_axpy(0.01f, timed_x, timed_y, TIMED))
BENCH(f32_distances, vec_now->f32_distances(timed_x, 1, timed_y, TIMED, timed_y, TIMED))
BENCH(f32_mix_cells,
      vec_now->f32_mix_cells(timed_x, (const int32_t[]){0, 1, 1, 2}, timed_x, 2, 16, timed_y, 2))
BENCH(f32_mix, vec_now->f32_mix((const float *const[]){timed_x, timed_x + 8},
                                (const float[]){0.3f, 0.7f}, 2, timed_y, TIMED - 8))
BENCH(f32_affine, vec_now->f32_affine(timed_x, 0.3f, 0.1f, timed_y, TIMED))
BENCH(f32_rotate, vec_now->f32_rotate(timed_x, timed_x, timed_x, 32, timed_y, 32, TIMED / 64))
BENCH(f32_rotate_pairs, vec_now->f32_rotate_pairs(timed_x, timed_x, timed_x, timed_y, TIMED))
BENCH(f32_add_outer, vec_now->f32_add_outer(timed_x, timed_bytes, 14, 5, timed_y, TIMED))
BENCH(f32_exp_sum, vec_now->f32_exp_sum(timed_x, timed_y, TIMED, 2.0f))
BENCH(f32_softmax, vec_now->f32_softmax(timed_x, timed_y, TIMED))
BENCH(f32_softmax_masked,
      vec_now->f32_softmax_masked(&(struct sdx_masked_rows){.x = timed_x,
                                                            .tops = timed_y,
                                                            .pitch = 64,
                                                            .rows = TIMED / 64,
                                                            .n = 49,
                                                            .scale = 0.2f,
                                                            .mask = {timed_bytes, timed_bytes},
                                                            .mask_pitch = {49, 49}}))
BENCH(f32_softmax_columns,
      vec_now->f32_softmax_columns(timed_x, timed_y, 16, TIMED / 16, TIMED / 16))
BENCH(f32_log_softmax, vec_now->f32_log_softmax(timed_x, timed_y, TIMED))
#define TIMED_NORM(length)                                                                         \
    (&(struct sdx_norm_rows){.x = timed_x,                                                         \
                             .scale = timed_x,                                                     \
                             .bias = timed_x,                                                      \
                             .y = timed_y,                                                         \
                             .n = (length),                                                        \
                             .rows = TIMED / (length),                                             \
                             .epsilon = 1e-5f})
BENCH(f32_layer_norm, vec_now->f32_layer_norm(TIMED_NORM(TIMED)))
BENCH(f32_layer_norm_rows, vec_now->f32_layer_norm(TIMED_NORM(32)))
BENCH(f32_rms_norm, vec_now->f32_rms_norm(TIMED_NORM(TIMED)))
BENCH(f32_rms_norm_rows, vec_now->f32_rms_norm(TIMED_NORM(32)))
