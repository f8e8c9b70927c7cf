/* SPDX-License-Identifier: Apache-2.0
 * Sampling of pictures. Once an instruction set. */
#include "kernels/sample.h"

#include "kernels/simd.h"
#include "kernels/tables.h"

enum { BLOCK = SDX_SAMPLE_BLOCK };

SIMD vf scaled(vf g, float scale, float shift) /* rounded once: the same in every set */
{
#if defined(SDX_SET_AVX2) || defined(SDX_SET_AVX512) || defined(SDX_SIMD_NEON)
    return v_fma(g, v_set1(scale), v_set1(shift));
#else
    for (int i = 0; i < LANES; i++)
        g[i] = (float)((double)g[i] * scale + shift);
    return g;
#endif
}
SIMD vf v_floor(vf x) /* of what fits an integer */
{
    const vf t = v_from_int(v_to_int(x));
    return t + v_from_int(t > x);
}
SIMD vf v_nearest(vf x) /* even, in the middle */
{
    const vf magic = v_set1(8388608.0f), a = v_abs(x);
    vf t = a + magic;
    V_KEEP(t);
    return v_or(v_select(a < magic, t - magic, a), v_sign(x));
}
/* Gathers of eight are faster than those of sixteen. */
#if (defined(SDX_SET_AVX512) || defined(SDX_SET_AVX2)) && SDX_SIMD_LANES >= 8
SIMD __m256 gather_8(const float *p, const int32_t *at)
{
    const __m256i i = _mm256_loadu_si256((const __m256i *)at);
    const __m256i in = _mm256_xor_si256(i, _mm256_set1_epi32(-1));
    return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), p, i, _mm256_castsi256_ps(in), 4);
}
#endif
SIMD vf v_gather(const float *p, const int32_t *at) /* 0 for a negative one */
{
#if defined(SDX_SET_AVX512) && SDX_SIMD_LANES == 16
    return (vf)_mm512_insertf32x8(_mm512_castps256_ps512(gather_8(p, at)), gather_8(p, at + 8), 1);
#elif defined(SDX_SET_AVX2) && SDX_SIMD_LANES == 8
    return (vf)gather_8(p, at);
#else
    vf v;
    for (int i = 0; i < LANES; i++)
        v[i] = at[i] < 0 ? 0 : p[at[i]];
    return v;
#endif
}

static void f32_places(const float *pairs, const float scale[2], const float shift[2], bool whole,
                       int64_t n, float *x, float *y)
{
    const vi twice = v_lane() * 2 & vi_set1(LANES - 1), first = v_lane() < vi_set1(LANES / 2);
    for (int64_t i = 0; i < n; i += LANES) {
        float last[2 * LANES] = {0};
        const float *from = pairs + 2 * i;
        if (n - i < LANES) from = memcpy(last, from, (size_t)(n - i) * 8);
        for (int axis = 0; axis < 2; axis++) {
            const vi odd = twice + vi_set1(axis);
            vf v =
                v_select(first, v_permute(v_load(from), odd), v_permute(v_load(from + LANES), odd));
            v = scaled(v, scale[axis], shift[axis]);
            v = v_min(v_max(v, v_set1(-1e9f)), v_set1(1e9f));
            v_store((axis ? y : x) + i, whole ? v_nearest(v) : v);
        }
    }
}

struct axis {
    vi at[4], in[4];
    vf w[4];
};
static void axis_taps(struct axis *to, const struct sdx_sample_plane *p, int32_t length, vf x)
{
    if (p->border && p->taps < 4) {
        const vf last = v_set1((float)length - 1), zero = v_set1(0), first = v_set1(p->first);
        x = v_select((x < first) | (x > last - first), v_min(v_max(x, zero), last), x);
    }
    const vf low = v_floor(x), r = x - low, one = v_set1(1), l = one - r;
    if (p->taps == 4) {
        const vf a = v_set1(-0.75f), a2 = v_set1(1.25f), a3 = v_set1(2.25f);
        to->w[0] = a * r * l * l;
        to->w[1] = (a2 * r - a3) * r * r + one;
        to->w[2] = (a2 * l - a3) * l * l + one;
        to->w[3] = a * l * r * r;
    } else {
        to->w[0] = p->taps == 2 ? l : one;
        to->w[1] = r;
    }
    const vi end = vi_set1(length), zero = vi_set1(0);
    for (int t = 0; t < p->taps; t++) {
        vi at = v_to_int(low) + vi_set1(t - p->taps / 4);
        to->in[t] = (at >= zero) & (at < end);
        at &= at >= zero;
        const vi above = at >= end;
        to->at[t] = (above & (end - 1)) | (~above & at);
        if (p->border) to->in[t] = vi_set1(-1);
    }
}
static void f32_taps(const struct sdx_sample_plane *p, const float *x, const float *y, int64_t n,
                     int32_t *offset, float *weight)
{
    const vi none = vi_set1(p->none);
    for (int64_t i = 0; i < n; i += LANES) {
        struct axis h, v;
        axis_taps(&h, p, p->width, v_load(x + i));
        axis_taps(&v, p, p->height, v_load(y + i));
        int64_t to = i;
        for (int j = 0; j < p->taps; j++)
            for (int k = 0; k < p->taps; k++, to += BLOCK) {
                const vi in = v.in[j] & h.in[k];
                const vi at = v.at[j] * vi_set1(p->width) + h.at[k];
                vi_store(offset + to, (in & at) | (~in & none));
                v_store(weight + to, v.w[j] * h.w[k]);
            }
    }
}

static void f32_gather(const float *plane, int64_t pitch, int64_t channels, const int32_t *offset,
                       const float *weight, int64_t taps, int64_t n, float *out, int64_t pitch_out)
{
    for (int64_t c = 0; c < channels; c++, plane += pitch, out += pitch_out)
        for (int64_t i = 0; i < n; i += LANES) {
            vf sum = v_gather(plane, offset + i);
            if (taps > 1) sum *= v_load(weight + i);
            for (int64_t t = i + BLOCK; t < taps * BLOCK; t += BLOCK)
                sum = v_fma(v_load(weight + t), v_gather(plane, offset + t), sum);
            if (n - i < LANES)
                v_store_masked(out + i, sum, (size_t)(n - i));
            else
                v_store(out + i, sum);
        }
}

static void f32_lanes(const float *blocked, const int32_t *offset, const float *weight,
                      int64_t taps, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++, out += LANES) {
        vf sum = v_load(blocked + (int64_t)offset[i] * LANES);
        if (taps > 1) sum *= v_set1(weight[i]);
        for (int64_t t = i + BLOCK; t < taps * BLOCK; t += BLOCK)
            sum = v_fma(v_set1(weight[t]), v_load(blocked + (int64_t)offset[t] * LANES), sum);
        v_store(out, sum);
    }
}

void SDX_INIT(sdx_sample_init_)(struct sdx_sample *sample)
{
    *sample = (struct sdx_sample){f32_places, f32_taps, f32_gather, f32_lanes};
}
