/* SPDX-License-Identifier: Apache-2.0
 * Coordinates and filters of Resize, one axis at a time, in double. */
#include "ops/resize_table.h"

#include <math.h>

/* Position of output index o in the input; *outside: beyond the crop's source. */
static double source_of(const struct sdx_resize_rule *rule, const struct sdx_resize_axis *a,
                        double o, bool *outside)
{
    double n_in = (double)a->n_in, n_out = a->scale * n_in, x = 0;
    switch (rule->coordinates) {
    case SDX_RESIZE_ASYMMETRIC: return o / a->scale;
    case SDX_RESIZE_TF_NEAREST: return (o + 0.5) / a->scale;
    case SDX_RESIZE_ALIGN_CORNERS: return n_out == 1 ? 0 : o * (n_in - 1) / (n_out - 1);
    case SDX_RESIZE_PYTORCH_HALF_PIXEL: return n_out == 1 ? 0 : (o + 0.5) / a->scale - 0.5;
    case SDX_RESIZE_HALF_PIXEL_SYMMETRIC:
        x = n_in / 2 * (1 - (double)a->n_out / n_out);
        return x + (o + 0.5) / a->scale - 0.5;
    case SDX_RESIZE_CROP:
        /* the region's numbers are floats, and are worked on as floats */
        x = (double)((float)a->roi_end - (float)a->roi_begin);
        x = n_out == 1 ? x * (n_in - 1) / 2 : o * x * (n_in - 1) / (n_out - 1);
        x += (double)((float)a->roi_begin * (float)(n_in - 1));
        *outside = x < 0 || x > n_in - 1;
        return x;
    default: return (o + 0.5) / a->scale - 0.5;
    }
}

static double cubic_at(double x, double a)
{
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return 0;
}

/* Taps on each side that the filter reaches; shrinking with antialias stretches it. */
static int taps_of(const struct sdx_resize_rule *rule, double scale)
{
    double reach = rule->mode == SDX_RESIZE_CUBIC ? 2 : 1;
    if (rule->mode == SDX_RESIZE_NEAREST) return 1;
    if (!rule->antialias || scale >= 1) return (int)(2 * reach);
    double start = floor(-reach / scale) + 1, taps = 2 - 2 * start;
    return taps > 1e6 ? 1000000 : (int)taps;
}

static int64_t nearest_of(const struct sdx_resize_rule *rule, double scale, double x)
{
    double low = floor(x), ratio = x - low;
    bool up = false;
    if (ratio == 0) return (int64_t)x;
    switch (rule->rounding) {
    case SDX_RESIZE_PREFER_FLOOR: up = ratio > 0.5; break;
    case SDX_RESIZE_PREFER_CEIL: up = ratio >= 0.5; break;
    case SDX_RESIZE_FLOOR: up = false; break;
    case SDX_RESIZE_CEIL: up = true; break;
    case SDX_RESIZE_SIMPLE: up = scale < 1; break;
    }
    return (int64_t)low + up;
}

static int32_t clamp_index(int64_t i, int64_t n)
{
    return (int32_t)(i < 0 ? 0 : i >= n ? n - 1 : i);
}

/* Weights of the taps around x. An x that is a whole number has ratio 1 to the tap on its left. */
static void fill_taps(const struct sdx_resize_rule *rule, struct sdx_resize_axis *a, int64_t o,
                      double x)
{
    int taps = a->taps;
    double low = floor(x), ratio = x == low ? 1 : x - low, sum = 0;
    double scale = rule->antialias && a->scale < 1 ? a->scale : 1;
    int64_t first = (int64_t)low - taps / 2 + (x == low ? 0 : 1);
    double *w = a->weight64 + o * taps;
    for (int t = 0; t < taps; t++) {
        double d = (t - taps / 2 + 1 - ratio) * scale;
        double f = 1 - fabs(d);
        w[t] = rule->mode == SDX_RESIZE_CUBIC ? cubic_at(d, rule->cubic_a) : f > 0 ? f : 0;
        if (rule->exclude_outside && (first + t < 0 || first + t >= a->n_in)) w[t] = 0;
        sum += w[t];
        a->index[o * taps + t] = clamp_index(first + t, a->n_in);
    }
    bool normalise = (rule->antialias || rule->exclude_outside) && sum != 0;
    for (int t = 0; t < taps; t++) {
        if (normalise) w[t] /= sum;
        a->weight[o * taps + t] = (float)w[t];
    }
}

enum sdx_status sdx_resize_axis_init(struct sdx_prepare *px, const struct sdx_resize_rule *rule,
                                     struct sdx_resize_axis *a)
{
    bool whole = rule->coordinates != SDX_RESIZE_CROP ||
                 (fabs(a->roi_begin) < 1e-9 && fabs(a->roi_end - 1) < 1e-9);
    a->identity = a->n_in == a->n_out && fabs(a->scale - 1) <= 1e-9 && whole;
    a->taps = a->identity ? 1 : taps_of(rule, a->scale);
    if (a->n_in > INT32_MAX)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "Resize: an axis of length %lld",
                        (long long)a->n_in);
    size_t n = 0;
    if (!sdx_mul_size((size_t)a->n_out, (size_t)a->taps, &n) || n > SIZE_MAX / 32)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "Resize: the filter of an axis is too long");
    a->index = sdx_prepare_alloc(px, (n + 1) * sizeof(*a->index));
    a->weight = sdx_prepare_alloc(px, (n + 1) * sizeof(*a->weight));
    a->weight64 = sdx_prepare_alloc(px, (n + 1) * sizeof(*a->weight64));
    if (rule->coordinates == SDX_RESIZE_CROP && !a->identity)
        a->outside = sdx_prepare_alloc(px, ((size_t)a->n_out + 1) * sizeof(*a->outside));
    if (!a->index || !a->weight || !a->weight64 ||
        (rule->coordinates == SDX_RESIZE_CROP && !a->identity && !a->outside))
        return SDX_OUT_OF_MEMORY;
    for (int64_t o = 0; o < a->n_out; o++) {
        bool outside = false;
        double x = a->identity ? (double)o : source_of(rule, a, (double)o, &outside);
        if (!isfinite(x) || fabs(x) > 1e15) x = 0;
        if (a->outside) a->outside[o] = outside;
        if (a->taps == 1) {
            int64_t i = a->identity ? o : nearest_of(rule, a->scale, x);
            a->index[o] = clamp_index(i, a->n_in);
            a->weight[o] = 1;
            a->weight64[o] = 1;
        } else {
            fill_taps(rule, a, o, x);
        }
    }
    return SDX_OK;
}
