/* SPDX-License-Identifier: Apache-2.0
 * Resize and Upsample. Nearest moves elements of any type by index tables. Filters are separable:
 * two neighbouring axes go row by row (resize_rows.c), everything else axis by axis through
 * temporaries, in f32 or (other numbers) double. */
#include "ops/resize.h"

#include <math.h>

#include "kernels/conv_block.h"
#include "kernels/qbytes.h"
#include "kernels/vec.h"
#include "ops/layout.h"
#include "ops/move.h"
#include "ops/op.h"
#include "tensor/convert.h"

/* ---- what the node says ---- */

struct resize_inputs {
    int scales, sizes, roi; /* input indices; -1: none */
};

static struct resize_inputs inputs_of(struct sdx_str op, int64_t opset)
{
    if (sdx_str_is(op, "Upsample")) return (struct resize_inputs){opset >= 9 ? 1 : -1, -1, -1};
    if (opset < 11) return (struct resize_inputs){1, -1, -1};
    return (struct resize_inputs){2, 3, 1};
}

/* The axes that scales and sizes speak of; all when the attribute is missing. */
static enum sdx_status read_axes(struct sdx_context *cx, const struct sdx_ir_node *node, int rank,
                                 int *axes, int *n)
{
    int64_t count = 0;
    const int64_t *given = sdx_ir_attr_ints(node, "axes", &count);
    *n = given ? (int)count : rank;
    if (given && (count > rank || count < 0))
        return SDX_FAIL(cx, SDX_BAD_MODEL, "Resize: %lld axes of a tensor of rank %d",
                        (long long)count, rank);
    for (int i = 0; i < *n; i++) {
        int64_t axis = given ? given[i] : i;
        if (axis < -rank || axis >= rank)
            return SDX_FAIL(cx, SDX_BAD_MODEL, "Resize: axis %lld of a tensor of rank %d",
                            (long long)axis, rank);
        axes[i] = (int)(axis < 0 ? axis + rank : axis);
    }
    return SDX_OK;
}

/* Scales of old Upsample versions. false: they are an input. */
static bool attr_scales(const struct sdx_ir_node *node, int64_t opset, int rank, double *scale,
                        int64_t *count)
{
    if (!sdx_str_is(node->op_type, "Upsample") || opset >= 9) return false;
    *count = 0;
    if (opset >= 7) {
        const float *v = sdx_ir_attr_floats(node, "scales", count);
        for (int64_t i = 0; v && i < *count && i < rank; i++)
            scale[i] = v[i];
        return true;
    }
    if (rank != 4) return true;
    *count = 4;
    scale[0] = scale[1] = 1;
    scale[2] = sdx_ir_attr_float(node, "height_scale", 0);
    scale[3] = sdx_ir_attr_float(node, "width_scale", 0);
    return true;
}

static enum sdx_status check_scales(struct sdx_context *cx, const double *scale, int64_t count,
                                    int64_t wanted)
{
    if (count != wanted)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "Resize: %lld scales for %lld axes", (long long)count,
                        (long long)wanted);
    for (int64_t i = 0; i < count; i++)
        if (!(scale[i] > 0) || !isfinite(scale[i]))
            return SDX_FAIL(cx, SDX_BAD_MODEL,
                            "Resize: scale %g of axis %lld, expected more than 0", scale[i],
                            (long long)i);
    return SDX_OK;
}

/* Scales as doubles from a tensor. */
static int64_t load_scales(const struct sdx_tensor *t, double *scale)
{
    for (int64_t i = 0; i < t->count && i < SDX_RANK_MAX; i++)
        scale[i] = sdx_load_f64(t->dtype, t->data, i);
    return t->count;
}

/* ---- keep_aspect_ratio_policy ---- */

enum policy { POLICY_STRETCH, POLICY_NOT_LARGER, POLICY_NOT_SMALLER };

static enum policy policy_of(const struct sdx_ir_node *node)
{
    struct sdx_str s = sdx_ir_attr_str(node, "keep_aspect_ratio_policy", "stretch");
    return sdx_str_is(s, "not_larger")    ? POLICY_NOT_LARGER
           : sdx_str_is(s, "not_smaller") ? POLICY_NOT_SMALLER
                                          : POLICY_STRETCH;
}

/* The one scale of all axes. */
static double common_scale(enum policy policy, const int64_t *dims, const int *axes, int n,
                           const int64_t *sizes)
{
    double best = 0;
    for (int i = 0; i < n; i++) {
        double s = (double)sizes[i] / (double)dims[axes[i]];
        if (i == 0 || (policy == POLICY_NOT_LARGER ? s < best : s > best)) best = s;
    }
    return best;
}

/* ---- inference ---- */

static bool scaled_length(int64_t n, double scale, int64_t *out)
{
    /* In float, as ONNX Runtime and the models made for it; not where float cannot hold the length.
     */
    double d = n < 1 << 24 ? floor((double)((float)n * (float)scale))
                           : floor((double)n * (double)(float)scale);
    *out = (int64_t)d;
    return d >= 0 && d < 9e18;
}

/* The symbol of a length times a whole number or over one. */
static int64_t scaled_symbol(struct sdx_infer *ix, int64_t dim, double scale)
{
    enum { MOST = 64 };
    const double times = floor(scale + 0.5), over = floor(1 / scale + 0.5);
    struct sdx_ir_length l = {.dim = dim, .factor = 1, .divisor = 1};
    if (times == scale && times <= MOST)
        l.factor = (int64_t)times;
    else if (over <= MOST && 1 / over == scale && ((int64_t)over & ((int64_t)over - 1)) == 0)
        l.divisor = (int64_t)over; /* a power of two: exact in floats */
    else
        return -1;
    return sdx_infer_scaled(ix, l);
}

static enum sdx_status infer_by_scales(struct sdx_infer *ix, const int *axes, int n,
                                       const double *scale, int64_t count)
{
    int rank = sdx_infer_rank(ix, 0);
    const int64_t *in = sdx_infer_dims(ix, 0);
    SDX_TRY(check_scales(ix->cx, scale, count, n));
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank);
    if (!dims) return SDX_OUT_OF_MEMORY;
    memcpy(dims, in, (size_t)rank * sizeof(*dims));
    for (int i = 0; i < n; i++) {
        int64_t *d = &dims[axes[i]];
        if (scale[i] == 1) continue;
        if (*d >= 0 && !scaled_length(*d, scale[i], d))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Resize: axis %d is too long", axes[i]);
        if (*d < 0) *d = scaled_symbol(ix, *d, scale[i]);
    }
    return SDX_OK;
}

static enum sdx_status infer_by_sizes(struct sdx_infer *ix, const int *axes, int n,
                                      const struct sdx_ints *sizes)
{
    int rank = sdx_infer_rank(ix, 0);
    const int64_t *in = sdx_infer_dims(ix, 0);
    enum policy policy = policy_of(ix->node);
    if (sizes->count != n)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Resize: %lld sizes for %d axes",
                        (long long)sizes->count, n);
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank);
    if (!dims) return SDX_OUT_OF_MEMORY;
    memcpy(dims, in, (size_t)rank * sizeof(*dims));
    bool known = true;
    for (int i = 0; i < n; i++) {
        bool symbolic = sizes->sym && sizes->sym[i];
        if (!symbolic && sizes->v[i] < 0)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Resize: size %lld", (long long)sizes->v[i]);
        dims[axes[i]] = symbolic ? sizes->sym[i] : sizes->v[i];
        known = known && !symbolic && in[axes[i]] > 0;
    }
    if (policy == POLICY_STRETCH) return SDX_OK;
    double scale = known ? common_scale(policy, in, axes, n, sizes->v) : 0;
    for (int i = 0; i < n; i++)
        dims[axes[i]] = known ? (int64_t)(scale * (double)in[axes[i]] + 0.5) : -1;
    return SDX_OK;
}

/* The new lengths are not known: those of other axes stay. */
static enum sdx_status infer_by_axes(struct sdx_infer *ix, const int *axes, int n)
{
    SDX_TRY(sdx_infer_set_dims(ix, 0, sdx_infer_rank(ix, 0), sdx_infer_dims(ix, 0)));
    for (int i = 0; i < n; i++)
        ((int64_t *)(uintptr_t)ix->out[0].dims)[axes[i]] = -1;
    return SDX_OK;
}

static enum sdx_status infer_resize(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), axes[SDX_RANK_MAX], n = 0;
    double scale[SDX_RANK_MAX];
    int64_t count = 0;
    struct resize_inputs in = inputs_of(ix->node->op_type, ix->opset);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    SDX_TRY(read_axes(ix->cx, ix->node, rank, axes, &n));
    struct sdx_str mode = sdx_ir_attr_str(ix->node, "coordinate_transformation_mode", "");
    if (sdx_str_is(mode, "tf_crop_and_resize") && in.roi >= 0 && !sdx_infer_value(ix, in.roi))
        return infer_by_axes(ix, axes, n); /* planning needs the region too */
    if (attr_scales(ix->node, ix->opset, rank, scale, &count))
        return infer_by_scales(ix, axes, n, scale, count);
    bool has_sizes = in.sizes >= 0 && sdx_infer_has(ix, in.sizes);
    if (has_sizes) { /* an empty tensor stands for a missing one */
        const int64_t *d = sdx_infer_dims(ix, in.sizes);
        has_sizes = !(d && sdx_infer_rank(ix, in.sizes) == 1 && d[0] == 0);
    }
    if (has_sizes) {
        struct sdx_ints sizes;
        if (!sdx_infer_ints(ix, in.sizes, &sizes)) return infer_by_axes(ix, axes, n);
        return infer_by_sizes(ix, axes, n, &sizes);
    }
    if (!sdx_infer_has(ix, in.scales))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Resize: neither scales nor sizes are given");
    const struct sdx_tensor *t = sdx_infer_value(ix, in.scales);
    if (!t) return infer_by_axes(ix, axes, n);
    count = load_scales(t, scale);
    return infer_by_scales(ix, axes, n, scale, count);
}

/* ---- the axes of one node ---- */

static enum sdx_status read_choice(struct sdx_prepare *px, const char *attr, const char *fallback,
                                   const char *const *names, int count, int *out)
{
    struct sdx_str s = sdx_ir_attr_str(px->node, attr, fallback);
    for (int i = 0; i < count; i++)
        if (sdx_str_is(s, names[i])) {
            *out = i;
            return SDX_OK;
        }
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: %s \"%.*s\" is not known", SDX_MOVE_OP(px), attr,
                    SDX_STR_ARG(s));
}

static enum sdx_status read_rule(struct sdx_prepare *px, struct sdx_resize_rule *r)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear"};
    static const char *const coordinates[] = {
        "half_pixel",           "asymmetric",         "align_corners",       "pytorch_half_pixel",
        "half_pixel_symmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    int mode = 0, coordinate = 1, rounding = SDX_RESIZE_SIMPLE;
    SDX_TRY(read_choice(px, "mode", "nearest", modes, SDX_COUNT_OF(modes), &mode));
    bool old = px->opset < 11 || sdx_str_is(px->node->op_type, "Upsample");
    if (!old) {
        SDX_TRY(read_choice(px, "coordinate_transformation_mode", "half_pixel", coordinates,
                            SDX_COUNT_OF(coordinates), &coordinate));
        SDX_TRY(read_choice(px, "nearest_mode", "round_prefer_floor", roundings,
                            SDX_COUNT_OF(roundings), &rounding));
    }
    r->mode = mode == 3 ? SDX_RESIZE_LINEAR : (enum sdx_resize_mode)mode;
    r->coordinates = (enum sdx_resize_coordinates)coordinate;
    r->rounding = (enum sdx_resize_rounding)rounding;
    r->antialias = sdx_ir_attr_int(px->node, "antialias", 0) != 0;
    r->exclude_outside = sdx_ir_attr_int(px->node, "exclude_outside", 0) != 0;
    r->cubic_a = sdx_ir_attr_float(px->node, "cubic_coeff_a", -0.75f);
    return SDX_OK;
}

/* Sets lengths, scales and the region of each axis. */
static enum sdx_status read_geometry(struct sdx_prepare *px, struct sdx_resize *r)
{
    const struct sdx_tensor *in = px->in[0], *out = px->out[0], *t = NULL;
    struct resize_inputs at = inputs_of(px->node->op_type, px->opset);
    int axes[SDX_RANK_MAX], n = 0;
    double scale[SDX_RANK_MAX];
    int64_t count = 0;
    SDX_TRY(read_axes(px->cx, px->node, in->rank, axes, &n));
    for (int i = 0; i < in->rank; i++)
        r->axis[i] = (struct sdx_resize_axis){
            .n_in = in->dims[i], .n_out = out->dims[i], .scale = 1, .roi_end = 1};
    bool has_sizes = at.sizes >= 0 && sdx_prepare_has(px, at.sizes) && px->in[at.sizes]->count > 0;
    if (has_sizes) {
        const int64_t *sizes = NULL;
        enum policy policy = policy_of(px->node);
        double common = 0;
        if (policy != POLICY_STRETCH) {
            SDX_TRY(sdx_move_ints(px, at.sizes, &sizes, &count));
            common = common_scale(policy, in->dims, axes, n, sizes);
        }
        for (int i = 0; i < n; i++) {
            struct sdx_resize_axis *a = &r->axis[axes[i]];
            a->scale = policy == POLICY_STRETCH ? (double)a->n_out / (double)a->n_in : common;
        }
    } else {
        if (!attr_scales(px->node, px->opset, in->rank, scale, &count)) {
            SDX_TRY(sdx_move_value(px, at.scales, &t));
            count = load_scales(t, scale);
        }
        SDX_TRY(check_scales(px->cx, scale, count, n));
        for (int i = 0; i < n; i++)
            r->axis[axes[i]].scale = scale[i];
    }
    if (r->rule.coordinates != SDX_RESIZE_CROP) return SDX_OK;
    SDX_TRY(sdx_move_value(px, at.roi, &t));
    if (t->count != 2 * n)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Resize: %lld numbers in roi, expected %d",
                        (long long)t->count, 2 * n);
    for (int i = 0; i < n; i++) {
        r->axis[axes[i]].roi_begin = sdx_load_f64(t->dtype, t->data, i);
        r->axis[axes[i]].roi_end = sdx_load_f64(t->dtype, t->data, n + i);
    }
    return SDX_OK;
}

static enum sdx_status resize_create(struct sdx_prepare *px, struct sdx_resize **out)
{
    struct sdx_resize *r = SDX_PREPARE_NEW(px, struct sdx_resize);
    if (!r) return SDX_OUT_OF_MEMORY;
    r->rank = px->in[0]->rank;
    r->cell = 1;
    r->extrapolation = sdx_ir_attr_float(px->node, "extrapolation_value", 0);
    SDX_TRY(read_rule(px, &r->rule));
    SDX_TRY(read_geometry(px, r));
    if (px->in[0]->layout == SDX_LAYOUT_BLOCKED) {
        r->cell = sdx_block_lanes();
        r->axis[1].n_in = r->axis[1].n_out = (r->axis[1].n_in + r->cell - 1) / r->cell;
    } else if (px->in[0]->layout == SDX_LAYOUT_LAST) { /* cells of all channels */
        r->cell = r->axis[1].n_in;
        r->rank--;
        for (int i = 1; i < r->rank; i++)
            r->axis[i] = r->axis[i + 1];
    }
    for (int i = 0; i < r->rank; i++) {
        if (r->axis[i].n_in == 0 && r->axis[i].n_out > 0)
            return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Resize: axis %d is empty", i);
        SDX_TRY(sdx_resize_axis_init(px, &r->rule, &r->axis[i]));
    }
    *out = r;
    return SDX_OK;
}

/* Images and channels stay as they are. What leaves larger is reordered while it is small, but for
 * bytes that are filtered, which is quick in cells only. */
static void resize_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    const struct sdx_tensor *in = px->in[0], *out = px->out[0];
    struct sdx_resize r = {.rank = in->rank};
    if (in->layout == SDX_LAYOUT_PLAIN || out->count == 0 ||
        !sdx_dims_equal(in->dims, 2, out->dims, 2) || read_rule(px, &r.rule) != SDX_OK ||
        read_geometry(px, &r) != SDX_OK || r.rule.coordinates == SDX_RESIZE_CROP ||
        r.axis[0].scale != 1 || r.axis[1].scale != 1)
        return;
    const bool filters = r.rule.mode != SDX_RESIZE_NEAREST;
    const bool bytes = filters && in->layout == SDX_LAYOUT_LAST;
    if (bytes && (in->dims[1] < SDX_RESIZE_CELL_LEAST || in->rank > 4)) return;
    if (want->leaves && out->count > in->count && !bytes) return;
    want->in[0] = want->out[0] = in->layout;
}

/* ---- nearest: data movement ---- */

struct nearest {
    const struct sdx_resize *r;
    size_t size;
    int64_t rows;
    int64_t strides[SDX_RANK_MAX]; /* of the input */
    unsigned char extrapolation[16];
    bool straight; /* the last axis is copied as it is */
    bool doubled;  /* each element of 4 bytes of the last axis comes twice */
};

struct cell16 {
    char bytes[16];
};
struct cell32 {
    char bytes[32];
};
struct cell64 {
    char bytes[64];
};
#define NEAREST_ROW(type)                                                                          \
    for (int64_t j = 0; j < n; j++)                                                                \
    memcpy(dst + j * (int64_t)sizeof(type), src + (int64_t)index[j] * (int64_t)sizeof(type),       \
           sizeof(type))

/* Each of n elements of 4 bytes twice. */
static void double_row(const char *src, char *dst, int64_t n)
{
    enum { FEW = 4 };
    typedef uint32_t few __attribute__((vector_size(4 * FEW)));
    const int64_t whole = n / FEW * FEW;
    for (int64_t i = 0; i < whole; i += FEW) {
        few v, left, right;
        memcpy(&v, src + 4 * i, sizeof v);
        left = __builtin_shufflevector(v, v, 0, 0, 1, 1);
        right = __builtin_shufflevector(v, v, 2, 2, 3, 3);
        memcpy(dst + 8 * i, &left, sizeof left);
        memcpy(dst + 8 * i + sizeof left, &right, sizeof right);
    }
    for (int64_t i = whole; i < n; i++) {
        memcpy(dst + 8 * i, src + 4 * i, 4);
        memcpy(dst + 8 * i + 4, src + 4 * i, 4);
    }
}

static void nearest_row(const struct nearest *p, const char *src, char *dst)
{
    const struct sdx_resize_axis *a = &p->r->axis[p->r->rank - 1];
    const int32_t *index = a->index;
    int64_t n = a->n_out;
    if (p->straight) {
        memcpy(dst, src, (size_t)n * p->size);
        return;
    }
    if (p->doubled) {
        double_row(src, dst, a->n_in);
        return;
    }
    switch (p->size) {
    case 1: NEAREST_ROW(uint8_t); break;
    case 2: NEAREST_ROW(uint16_t); break;
    case 4: NEAREST_ROW(uint32_t); break;
    case 8: NEAREST_ROW(uint64_t); break;
    case 16: NEAREST_ROW(struct cell16); break;
    case 32: NEAREST_ROW(struct cell32); break;
    case 64: NEAREST_ROW(struct cell64); break;
    default:
        for (int64_t j = 0; j < n; j++)
            memcpy(dst + (size_t)j * p->size, src + (size_t)index[j] * p->size, p->size);
    }
    for (int64_t j = 0; a->outside && j < n; j++)
        if (a->outside[j]) memcpy(dst + (size_t)j * p->size, p->extrapolation, p->size);
}
#undef NEAREST_ROW

static enum sdx_status run_nearest(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct nearest *p = step->params;
    const struct sdx_resize *r = p->r;
    const int last = r->rank - 1;
    const int64_t n = r->axis[last].n_out, end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    int64_t row = sdx_part_begin(p->rows, step->parts, part, 1), rest = row, previous = -1;
    int64_t at[SDX_RANK_MAX]; /* of the row on the other axes */
    for (int i = last - 1; i >= 0; i--) {
        at[i] = rest % r->axis[i].n_out;
        rest /= r->axis[i].n_out;
    }
    for (; row < end; row++) {
        int64_t from = 0;
        bool outside = false, is_next = true;
        for (int i = last - 1; i >= 0; i--) {
            const struct sdx_resize_axis *a = &r->axis[i];
            outside = outside || (a->outside && a->outside[at[i]]);
            from += a->index[at[i]] * p->strides[i];
            if (!is_next) continue;
            is_next = ++at[i] == a->n_out;
            if (is_next) at[i] = 0;
        }
        char *dst = (char *)step->out[0]->data + (size_t)(row * n) * p->size;
        if (outside)
            sdx_move_fill(dst, p->size, p->extrapolation, n);
        else if (from == previous)
            memcpy(dst, dst - (size_t)n * p->size, (size_t)n * p->size);
        else
            nearest_row(p, (const char *)step->in[0]->data + (size_t)from * p->size, dst);
        previous = outside ? -1 : from;
    }
    return SDX_OK;
}

static bool is_doubled(const struct sdx_resize_axis *a)
{
    if (a->n_out != 2 * a->n_in || a->outside) return false;
    for (int64_t j = 0; j < a->n_out; j++)
        if (a->index[j] != j / 2) return false;
    return true;
}

static enum sdx_status add_nearest(struct sdx_prepare *px, const struct sdx_resize *r)
{
    const struct sdx_tensor *in = px->in[0], *out = px->out[0];
    struct nearest *p = SDX_PREPARE_NEW(px, struct nearest);
    if (!p) return SDX_OUT_OF_MEMORY;
    p->r = r;
    p->size = sdx_move_size(in->dtype) * (size_t)r->cell;
    p->straight = r->axis[r->rank - 1].identity;
    p->doubled = is_doubled(&r->axis[r->rank - 1]) && p->size == 4;
    if (in->dtype != SDX_STRING)
        sdx_store_f64(in->dtype, p->extrapolation, 0, (double)r->extrapolation);
    int64_t dims[SDX_RANK_MAX];
    p->rows = out->count ? 1 : 0;
    for (int i = 0; i < r->rank; i++) {
        dims[i] = r->axis[i].n_in;
        if (i + 1 < r->rank) p->rows *= r->axis[i].n_out;
    }
    sdx_move_strides(r->rank, dims, p->strides);
    int64_t parts = sdx_prepare_parts((double)out->bytes, 64 * 1024, p->rows > 0 ? p->rows : 1);
    return sdx_move_step(px, "resize_nearest", run_nearest, p, parts, 0);
}

/* ---- filters axis by axis ---- */

struct pass {
    const struct sdx_resize_axis *axis;
    int64_t outer, inner;
    double extrapolation;
};

/* Scratch: the addresses of `taps` sources. */
static enum sdx_status run_pass_f32(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct pass *p = step->params;
    const struct sdx_resize_axis *a = p->axis;
    const int64_t units = p->outer * a->n_out,
                  end = sdx_part_begin(units, step->parts, part + 1, 1);
    const float **near = x->scratch, extrapolation = (float)p->extrapolation;
    for (int64_t u = sdx_part_begin(units, step->parts, part, 1); u < end; u++) {
        const int64_t y = u % a->n_out;
        float *dst = (float *)step->out[0]->data + u * p->inner;
        if (a->outside && a->outside[y]) {
            sdx_move_fill(dst, sizeof(*dst), &extrapolation, p->inner);
            continue;
        }
        for (int t = 0; t < a->taps; t++)
            near[t] = (const float *)step->in[0]->data +
                      (u / a->n_out * a->n_in + a->index[y * a->taps + t]) * p->inner;
        sdx_vec()->f32_mix(near, a->weight + y * a->taps, a->taps, dst, (size_t)p->inner);
    }
    return SDX_OK;
}

static enum sdx_status run_pass_f64(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct pass *p = step->params;
    const struct sdx_resize_axis *a = p->axis;
    const int64_t units = p->outer * a->n_out,
                  end = sdx_part_begin(units, step->parts, part + 1, 1);
    (void)x;
    for (int64_t u = sdx_part_begin(units, step->parts, part, 1); u < end; u++) {
        const int64_t y = u % a->n_out;
        const bool outside = a->outside && a->outside[y];
        double *dst = (double *)step->out[0]->data + u * p->inner;
        for (int64_t k = 0; k < p->inner; k++)
            dst[k] = outside ? p->extrapolation : 0;
        for (int t = 0; t < a->taps && !outside; t++) {
            const double *from = (const double *)step->in[0]->data +
                                 (u / a->n_out * a->n_in + a->index[y * a->taps + t]) * p->inner;
            const double w = a->weight64[y * a->taps + t];
            for (int64_t k = 0; k < p->inner; k++)
                dst[k] += from[k] * w;
        }
    }
    return SDX_OK;
}

static enum sdx_status run_load(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct sdx_tensor *in = step->in[0];
    double *out = step->out[0]->data;
    int64_t end = sdx_part_begin(in->count, step->parts, part + 1, 64);
    for (int64_t i = sdx_part_begin(in->count, step->parts, part, 64); i < end; i++)
        out[i] = sdx_load_f64(in->dtype, in->data, i);
    return SDX_OK;
}

/* To nearest, ties to even, saturating. */
static enum sdx_status run_store(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    struct sdx_tensor *out = step->out[0];
    const double *in = step->in[0]->data;
    int64_t end = sdx_part_begin(out->count, step->parts, part + 1, 64);
    bool whole = !sdx_dtype_is_float(out->dtype);
    for (int64_t i = sdx_part_begin(out->count, step->parts, part, 64); i < end; i++)
        sdx_store_f64(out->dtype, out->data, i, whole ? nearbyint(in[i]) : in[i]);
    return SDX_OK;
}

/* Along one axis of an input of those lengths. */
static enum sdx_status add_pass(struct sdx_prepare *px, const struct sdx_resize *r, int axis,
                                const int64_t *dims, struct sdx_tensor *in, struct sdx_tensor *out)
{
    struct pass *p = SDX_PREPARE_NEW(px, struct pass);
    if (!p) return SDX_OUT_OF_MEMORY;
    p->axis = &r->axis[axis];
    p->extrapolation = (double)r->extrapolation;
    p->outer = sdx_move_product(dims, 0, axis);
    p->inner = sdx_move_product(dims, axis + 1, r->rank) * r->cell;
    int64_t units = p->outer * p->axis->n_out;
    const double work = (double)units * (double)p->inner * (p->axis->taps + 1);
    return sdx_prepare_step_on(px, "resize_axis",
                               in->dtype == SDX_F64 ? run_pass_f64 : run_pass_f32, p,
                               sdx_prepare_parts(work, 65536, units > 0 ? units : 1),
                               (size_t)p->axis->taps * sizeof(float *), 1, &in, 1, &out);
}

/* Of f32, which leaves the last two axes to the rows of planes, or f64. */
static enum sdx_status add_passes(struct sdx_prepare *px, const struct sdx_resize *r,
                                  struct sdx_tensor *in, struct sdx_tensor *out)
{
    int64_t dims[SDX_RANK_MAX];
    int left = 0;
    for (int i = 0; i < r->rank; i++) {
        dims[i] = r->axis[i].n_in;
        left += !r->axis[i].identity;
    }
    for (int i = 0; i < r->rank; i++) {
        if (in->dtype == SDX_F32 && r->rank > 1 && i == r->rank - 2 && left > 0)
            return sdx_resize_planes(px, r, in);
        if (r->axis[i].identity) continue;
        int64_t made[SDX_RANK_MAX];
        memcpy(made, dims, sizeof made);
        made[i] = r->axis[i].n_out;
        made[r->rank - 1] *= r->cell;
        struct sdx_tensor *to = --left > 0 ? sdx_prepare_temp(px, in->dtype, r->rank, made) : out;
        if (!to) return SDX_OUT_OF_MEMORY;
        SDX_TRY(add_pass(px, r, i, dims, in, to));
        dims[i] = r->axis[i].n_out;
        in = to;
    }
    return SDX_OK;
}

/* Of other types: in f64. */
static enum sdx_status add_widened(struct sdx_prepare *px, const struct sdx_resize *r)
{
    struct sdx_tensor *in = px->in[0], *out = px->out[0];
    const int64_t parts = sdx_prepare_parts((double)out->count, 65536, 64);
    struct sdx_tensor *from = sdx_prepare_temp(px, SDX_F64, in->rank, in->dims);
    struct sdx_tensor *to = sdx_prepare_temp(px, SDX_F64, out->rank, out->dims);
    if (!from || !to) return SDX_OUT_OF_MEMORY;
    SDX_TRY(sdx_prepare_step_on(px, "load", run_load, NULL, parts, 0, 1, &in, 1, &from));
    SDX_TRY(add_passes(px, r, from, to));
    return sdx_prepare_step_on(px, "store", run_store, NULL, parts, 0, 1, &to, 1, &out);
}

static enum sdx_status prepare_resize(struct sdx_prepare *px)
{
    const struct sdx_tensor *in = px->in[0];
    struct sdx_resize *r = NULL;
    if (in->rank == 0 || px->out[0]->count == 0) {
        struct sdx_move m;
        sdx_move_init(&m, sdx_move_size(in->dtype), px->out[0]->rank, px->out[0]->dims,
                      px->out[0]->dims, px->out[0]->dims, 0, 0);
        return sdx_move_add(px, "copy", 0, &m);
    }
    SDX_TRY(resize_create(px, &r));
    bool all = true;
    for (int i = 0; i < r->rank; i++)
        all = all && r->axis[i].identity;
    if (all || r->rule.mode == SDX_RESIZE_NEAREST) return add_nearest(px, r);
    if (in->dtype == SDX_STRING || sdx_dtype_is_complex(in->dtype))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s in modes that calculate",
                        SDX_MOVE_OP(px), sdx_dtype_short_name(in->dtype));
    if (in->dtype == SDX_F32 || in->dtype == SDX_F64)
        return add_passes(px, r, px->in[0], px->out[0]);
    const int columns = sdx_resize_byte_columns(in, r);
    return columns > 0 ? sdx_resize_bytes(px, r, columns) : add_widened(px, r);
}

static void cost_resize(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    struct sdx_str mode = sdx_ir_attr_str(ix->node, "mode", "nearest");
    double n = 1, each = sdx_str_is(mode, "nearest") ? 0 : sdx_str_is(mode, "cubic") ? 14 : 6;
    for (int i = 0; i < ix->out[0].rank; i++)
        n *= (double)ix->out[0].dims[i];
    *cost = (struct sdx_cost){0, n * each};
}

#define LIMITS "strings and complex numbers in mode nearest only"
static const struct sdx_op ops[] = {
    {"Resize", 10, 0, infer_resize, KERNEL(prepare_resize), .cost = cost_resize,
     .layout = resize_layout, .flags = SDX_OP_VIA_F32 | SDX_OP_KEEPS_BLOCKS, .note = LIMITS},
    {"Upsample", 1, 9, infer_resize, KERNEL(prepare_resize), .cost = cost_resize,
     .layout = resize_layout, .flags = SDX_OP_VIA_F32 | SDX_OP_KEEPS_BLOCKS, .note = LIMITS},
};
const struct sdx_op_family sdx_ops_resize = FAMILY("", ops);
