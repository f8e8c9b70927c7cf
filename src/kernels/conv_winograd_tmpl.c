/* SPDX-License-Identifier: Apache-2.0
 * The transforms of Winograd's F(4 x 4, 3 x 3), a tile a lane, between plain lines of pixels and
 * planes of tiles. Once an instruction set. Points 0, +-a, +-b, infinity with a b = 1. */
#include "kernels/simd.h"
#include "kernels/tables.h"
#include "kernels/winograd_points.h"

/* Four pixels a tile; a vector holds those of every fourth tile, so that a turn within quarters
 * suffices. */
enum { QUARTERS = LANES / 4 };
typedef float quarter __attribute__((vector_size(16)));
SIMD quarter load_quarter(const float *p)
{
    quarter v;
    memcpy(&v, p, sizeof v);
    return v;
}
SIMD vf load_quarters(const float *p)
{
#if SDX_SIMD_LANES == 4
    return load_quarter(p);
#else
    typedef float half __attribute__((vector_size(32)));
    const half low =
        __builtin_shufflevector(load_quarter(p), load_quarter(p + 16), 0, 1, 2, 3, 4, 5, 6, 7);
#if SDX_SIMD_LANES == 8
    return low;
#else
    const half high =
        __builtin_shufflevector(load_quarter(p + 32), load_quarter(p + 48), 0, 1, 2, 3, 4, 5, 6, 7);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
#endif
}
#if SDX_SIMD_LANES == 16
#define PAIR(a, b, i, j)                                                                           \
    __builtin_shufflevector(a, b, i, 16 + i, j, 16 + j, 4 + i, 20 + i, 4 + j, 20 + j, 8 + i,       \
                            24 + i, 8 + j, 24 + j, 12 + i, 28 + i, 12 + j, 28 + j)
#elif SDX_SIMD_LANES == 8
#define PAIR(a, b, i, j)                                                                           \
    __builtin_shufflevector(a, b, i, 8 + i, j, 8 + j, 4 + i, 12 + i, 4 + j, 12 + j)
#else
#define PAIR(a, b, i, j) __builtin_shufflevector(a, b, i, 4 + i, j, 4 + j)
#endif
/* Element c of quarter q of v[r] changes places with element r of quarter q of v[c]. */
SIMD void turn_quarters(vf v[4])
{
    const vf low02 = PAIR(v[0], v[2], 0, 1), high02 = PAIR(v[0], v[2], 2, 3);
    const vf low13 = PAIR(v[1], v[3], 0, 1), high13 = PAIR(v[1], v[3], 2, 3);
    v[0] = PAIR(low02, low13, 0, 1);
    v[1] = PAIR(low02, low13, 2, 3);
    v[2] = PAIR(high02, high13, 0, 1);
    v[3] = PAIR(high02, high13, 2, 3);
}

SIMD void input_six(const vf d[6], vf t[6])
{
    const vf a = v_set1(A), b = v_set1(B), s = v_set1(-S2);
    const vf even_a = v_fma(v_set1(-B2), d[2], d[4]), even_b = v_fma(v_set1(-A2), d[2], d[4]);
    const vf odd_a = v_fma(a, d[3], v_set1(-B) * d[1]), odd_b = v_fma(b, d[3], v_set1(-A) * d[1]);
    t[0] = v_fma(s, d[2], d[0] + d[4]);
    t[1] = even_a + odd_a;
    t[2] = even_a - odd_a;
    t[3] = even_b + odd_b;
    t[4] = even_b - odd_b;
    t[5] = v_fma(s, d[3], d[1] + d[5]);
}
SIMD void output_four(const vf m[6], vf y[4])
{
    const vf even_a = m[1] + m[2], odd_a = m[1] - m[2];
    const vf even_b = m[3] + m[4], odd_b = m[3] - m[4];
    y[0] = m[0] + even_a + even_b;
    y[1] = v_fma(v_set1(A), odd_a, v_set1(B) * odd_b);
    y[2] = v_fma(v_set1(A2), even_a, v_set1(B2) * even_b);
    y[3] = v_fma(v_set1(A3), odd_a, v_fma(v_set1(B3), odd_b, m[5]));
}

static void columns(const float *lines, int64_t pitch, int64_t count, float *to, int64_t step)
{
    vf d[6], t[6];
    float before[12];
    for (int i = 0; i < 12; i++)
        before[i] = to[(i / 2 * 6 + 4 + i % 2) * step - 1];
    for (int64_t at = 0; at < count; at += LANES) {
        vf all[6][4];
        const float *from = lines + 4 * at;
        SDX_UNROLL(4) for (int k = 0; k < 4; k++)
        {
            SDX_UNROLL(6)
            for (int i = 0; i < 6; i++)
                d[i] = load_quarters(from + i * pitch + 4 * k);
            input_six(d, t);
            SDX_UNROLL(6) for (int i = 0; i < 6; i++) all[i][k] = t[i];
        }
        SDX_UNROLL(6) for (int i = 0; i < 6; i++)
        {
            float *line = to + 6 * i * step + at;
            turn_quarters(all[i]);
            SDX_UNROLL(4) for (int k = 0; k < 4; k++) v_store(line + k * step, all[i][k]);
            v_store(line + 4 * step - 1, all[i][0]);
            v_store(line + 5 * step - 1, all[i][1]);
        }
    }
    for (int i = 0; i < 12; i++)
        to[(i / 2 * 6 + 4 + i % 2) * step - 1] = before[i];
    SDX_UNROLL(6) for (int i = 0; i < 6; i++) d[i] = v_load(lines + i * pitch + 4 * count);
    input_six(d, t);
    SDX_UNROLL(6) for (int i = 0; i < 6; i++)
    {
        to[(6 * i + 4) * step + count - 1] = t[i][0];
        to[(6 * i + 5) * step + count - 1] = t[i][1];
    }
}

static void rows(const float *from, int64_t step, int64_t tiles, float *to, int64_t plane,
                 int64_t panel_step)
{
    for (int64_t at = 0; at < tiles; at += LANES) {
        float *panel = to + at / (2 * LANES) * panel_step + at % (2 * LANES);
        for (int i = 0; i < 6; i++) {
            vf d[6], t[6];
            SDX_UNROLL(6) for (int j = 0; j < 6; j++) d[j] = v_load(from + (6 * i + j) * step + at);
            input_six(d, t);
            SDX_UNROLL(6) for (int j = 0; j < 6; j++) v_store(panel + (6 * i + j) * plane, t[j]);
        }
    }
}

static void output(const float *m, int64_t plane, int64_t tiles, float bias, float *to,
                   int64_t pitch)
{
    const vf shift = v_set1(bias);
    for (int64_t at = 0; at < tiles; at += LANES) {
        vf half[4][6], y[4];
        SDX_UNROLL(6) for (int j = 0; j < 6; j++)
        {
            vf d[6];
            SDX_UNROLL(6) for (int i = 0; i < 6; i++) d[i] = v_load(m + (6 * i + j) * plane + at);
            output_four(d, y);
            SDX_UNROLL(4) for (int i = 0; i < 4; i++) half[i][j] = y[i];
        }
        SDX_UNROLL(4) for (int i = 0; i < 4; i++)
        {
            output_four(half[i], y);
            SDX_UNROLL(4) for (int k = 0; k < 4; k++) y[k] += shift;
            turn_quarters(y);
            float *line = to + i * pitch + 4 * at;
            SDX_UNROLL(4)
            for (int k = 0; k < 4; k++)
                SDX_UNROLL(4)
            for (int q = 0; q < QUARTERS; q++)
                memcpy(line + 16 * q + 4 * k, (const float *)&y[k] + 4 * q, 16);
        }
    }
}

SIMD vf clamp(vf v, vf lo, vf hi)
{
    return v_min(hi, v_max(lo, v));
}
static void clamp_rows(const float *from, const float *residual, float *to, struct sdx_rectangle r,
                       float lo, float hi)
{
    const vf least = v_set1(lo), most = v_set1(hi), none = v_set1(0.0f);
    for (int64_t i = 0; i < r.rows; i++, from += r.pitch_from, to += r.pitch_to) {
        const float *add = residual ? residual + i * r.pitch_to : NULL;
        const int64_t whole = r.width / LANES * LANES, rest = r.width - whole;
        for (int64_t at = 0; at < whole; at += LANES) {
            const vf v = v_load(from + at);
            v_store(to + at, clamp(add ? v + v_load(add + at) : v, least, most));
        }
        if (!rest) continue;
        vf v = none, more = none;
        const size_t bytes = (size_t)rest * sizeof(float);
        memcpy(&v, from + whole, bytes);
        if (add) {
            memcpy(&more, add + whole, bytes);
            v += more;
        }
        v = clamp(v, least, most);
        memcpy(to + whole, &v, bytes);
    }
}

void SDX_INIT(sdx_conv_winograd_init_)(struct sdx_gemm_table *gemm)
{
    gemm->f32_winograd_columns = columns;
    gemm->f32_winograd_rows = rows;
    gemm->f32_winograd_output = output;
    gemm->f32_clamp_rows = clamp_rows;
}
