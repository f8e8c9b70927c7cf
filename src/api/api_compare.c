/* SPDX-License-Identifier: Apache-2.0
 * Public API: how far two values are apart. */
#include <math.h>
#include <string.h>

#include "tensor/convert.h"
#include "tensor/tensor.h"

void sdx_tolerance_init(sdx_tolerance *tolerance)
{
    *tolerance = (sdx_tolerance){.size = sizeof *tolerance, .rtol = 1e-3, .atol = 1e-7};
}

static void note_bad(sdx_difference *d, int64_t i, double found, double expected)
{
    if (d->count_bad++ == 0) {
        d->first_bad = i;
        d->found = found;
        d->expected = expected;
    }
}

static void compare_strings(const sdx_tensor *a, const sdx_tensor *b, sdx_difference *d)
{
    const struct sdx_str *x = a->data, *y = b->data;
    for (int64_t i = 0; i < a->count; i++)
        if (!sdx_str_equal(x[i], y[i])) note_bad(d, d->count + i, 0, 0);
}

/* Complex numbers count as two elements each. */
static int parts_of(int dtype)
{
    return sdx_dtype_is_complex(dtype) ? 2 : 1;
}

static double part(const sdx_tensor *t, int64_t i)
{
    if (t->layout == SDX_LAYOUT_GROWING)
        i = sdx_tensor_index(t, i / parts_of(t->dtype)) * parts_of(t->dtype) +
            i % parts_of(t->dtype);
    if (t->dtype == SDX_C64) return ((const float *)t->data)[i];
    if (t->dtype == SDX_C128) return ((const double *)t->data)[i];
    return sdx_load_f64(t->dtype, t->data, i);
}

static void compare_numbers(const sdx_tensor *a, const sdx_tensor *b, const sdx_tolerance *tol,
                            sdx_difference *d)
{
    int64_t n = a->count * parts_of(a->dtype);
    double peak = 0;
    for (int64_t i = 0; i < n; i++) {
        double e = fabs(part(b, i));
        if (isfinite(e) && e > peak) peak = e;
    }
    if (peak > d->peak) d->peak = peak;
    bool wide = a->dtype == SDX_I64 || a->dtype == SDX_U64; /* more than a double holds */
    for (int64_t i = 0; i < n; i++) {
        double f = part(a, i), e = part(b, i);
        if (wide && ((const int64_t *)a->data)[sdx_tensor_index(a, i)] ==
                        ((const int64_t *)b->data)[sdx_tensor_index(b, i)])
            continue;
        if (!wide && (f == e || (isnan(f) && isnan(e)))) continue;
        double diff = fabs(f - e), limit = tol->atol + tol->rtol * fabs(e);
        double peak_limit = tol->peak > 0 ? tol->peak * peak : -1;
        if (!(diff <= limit) && !(diff <= peak_limit))
            note_bad(d, d->count + i, f, e);
        else if (!isfinite(f) || !isfinite(e))
            note_bad(d, d->count + i, f, e);
        double rel = e != 0 ? diff / fabs(e) : INFINITY;
        if (diff > d->max_abs || isnan(diff)) d->max_abs = diff;
        if (rel > d->max_rel || isnan(rel)) d->max_rel = rel;
    }
}

static void compare_arg_max(const sdx_tensor *a, const sdx_tensor *b, sdx_difference *d)
{
    int64_t cols = a->rank ? a->dims[a->rank - 1] : 1, rows = cols ? a->count / cols : 0;
    for (int64_t r = 0; r < rows && d->arg_max_equal; r++) {
        int64_t best_a = 0, best_b = 0;
        for (int64_t c = 1; c < cols; c++) {
            if (part(a, r * cols + c) > part(a, r * cols + best_a)) best_a = c;
            if (part(b, r * cols + c) > part(b, r * cols + best_b)) best_b = c;
        }
        d->arg_max_equal = best_a == best_b;
    }
}

static void compare(const sdx_tensor *a, const sdx_tensor *b, const sdx_tolerance *tol,
                    sdx_difference *d)
{
    bool same = a->kind == b->kind && (a->kind != SDX_KIND_TENSOR || a->dtype == b->dtype);
    same = same && (a->kind == SDX_KIND_TENSOR || a->kind == SDX_KIND_SPARSE
                        ? sdx_dims_equal(a->dims, a->rank, b->dims, b->rank)
                        : a->count == b->count);
    if (!same) {
        d->same_type = false;
        return;
    }
    if (a->kind != SDX_KIND_TENSOR) {
        for (int64_t i = 0; i < a->count && d->same_type; i++)
            compare(a->items[i], b->items[i], tol, d);
        return;
    }
    if (a->dtype == SDX_STRING) {
        compare_strings(a, b, d);
    } else {
        compare_numbers(a, b, tol, d);
        if (!sdx_dtype_is_complex(a->dtype)) compare_arg_max(a, b, d);
    }
    d->count += a->count * parts_of(a->dtype);
}

void sdx_compare(const sdx_tensor *found, const sdx_tensor *expected, const sdx_tolerance *given,
                 sdx_difference *difference)
{
    sdx_tolerance tol;
    sdx_tolerance_init(&tol);
    if (given) memcpy(&tol, given, given->size < sizeof tol ? given->size : sizeof tol);
    *difference = (sdx_difference){.same_type = true, .first_bad = -1, .arg_max_equal = true};
    compare(found, expected, &tol, difference);
}
