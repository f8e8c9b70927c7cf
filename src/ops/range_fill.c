/* SPDX-License-Identifier: Apache-2.0
 * Tensors made from little: Constant, ConstantOfShape, Range, EyeLike, OneHot and Trilu. */
#include <math.h>

#include "ops/move.h"
#include "ops/op.h"
#include "tensor/convert.h"

static int64_t row_parts(double bytes, int64_t rows)
{
    return sdx_prepare_parts(bytes, 128 * 1024, rows > 0 ? rows : 1);
}

/* ---- Constant ---- */

static const char *const constant_names[] = {"value",        "sparse_value", "value_float",
                                             "value_floats", "value_int",    "value_ints",
                                             "value_string", "value_strings"};

static enum sdx_status constant_attr(struct sdx_context *cx, const struct sdx_ir_node *node,
                                     const struct sdx_ir_attr **out)
{
    *out = NULL;
    for (int i = 0; i < SDX_COUNT_OF(constant_names); i++) {
        const struct sdx_ir_attr *a = sdx_ir_attr(node, constant_names[i]);
        if (a && *out) return SDX_FAIL(cx, SDX_BAD_MODEL, "Constant: it has more than one value");
        if (a) *out = a;
    }
    if (!*out) return SDX_FAIL(cx, SDX_BAD_MODEL, "Constant: it has no value");
    return SDX_OK;
}

static int constant_dtype(const struct sdx_ir_attr *a)
{
    switch (a->type) {
    case SDX_ATTR_FLOAT:
    case SDX_ATTR_FLOATS: return SDX_F32;
    case SDX_ATTR_INT:
    case SDX_ATTR_INTS: return SDX_I64;
    case SDX_ATTR_STRING:
    case SDX_ATTR_STRINGS: return SDX_STRING;
    default: return a->tensor ? a->tensor->dtype : SDX_DTYPE_NONE;
    }
}

static bool constant_is_list(const struct sdx_ir_attr *a)
{
    return a->type == SDX_ATTR_FLOATS || a->type == SDX_ATTR_INTS || a->type == SDX_ATTR_STRINGS;
}

static enum sdx_status infer_constant(struct sdx_infer *ix)
{
    const struct sdx_ir_attr *a = NULL;
    SDX_TRY(constant_attr(ix->cx, ix->node, &a));
    sdx_infer_set_dtype(ix, 0, constant_dtype(a));
    if (a->type == SDX_ATTR_INT) {
        SDX_TRY(sdx_infer_set_dims(ix, 0, 0, NULL));
        return sdx_infer_set_ints(ix, 0, 0, 1, &a->i, NULL);
    }
    if (constant_is_list(a)) {
        SDX_TRY(sdx_infer_set_dims(ix, 0, 1, &a->count));
        if (a->type != SDX_ATTR_INTS || a->count > SDX_MOVE_INTS_MAX) return SDX_OK;
        return sdx_infer_set_ints(ix, 0, 1, a->count, a->ints, NULL);
    }
    const struct sdx_tensor *t = a->tensor;
    if (!t) return sdx_infer_set_dims(ix, 0, 0, NULL);
    SDX_TRY(sdx_infer_set_dims(ix, 0, t->rank, t->dims));
    if (t->rank > 1 || t->count > SDX_MOVE_INTS_MAX || !sdx_dtype_is_integer(t->dtype) ||
        t->kind != SDX_KIND_TENSOR)
        return SDX_OK;
    int64_t v[SDX_MOVE_INTS_MAX];
    for (int64_t i = 0; i < t->count; i++)
        v[i] = sdx_load_i64(t->dtype, t->data, i);
    return sdx_infer_set_ints(ix, 0, t->rank, t->count, v, NULL);
}

static enum sdx_status run_constant(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_ir_attr *a = step->params;
    struct sdx_tensor *out = step->out[0];
    switch (a->type) {
    case SDX_ATTR_FLOAT: memcpy(out->data, &a->f, sizeof(a->f)); return SDX_OK;
    case SDX_ATTR_INT: memcpy(out->data, &a->i, sizeof(a->i)); return SDX_OK;
    case SDX_ATTR_FLOATS:
        if (out->bytes) memcpy(out->data, a->floats, out->bytes);
        return SDX_OK;
    case SDX_ATTR_INTS:
        if (out->bytes) memcpy(out->data, a->ints, out->bytes);
        return SDX_OK;
    case SDX_ATTR_STRING: return sdx_exec_output_strings(x, step, 0, 0, NULL, &a->s);
    case SDX_ATTR_STRINGS: return sdx_exec_output_strings(x, step, 0, 1, &a->count, a->strings);
    default: return sdx_exec_output_copy(x, step, 0, a->tensor);
    }
}

static enum sdx_status prepare_constant(struct sdx_prepare *px)
{
    const struct sdx_ir_attr *a = NULL;
    SDX_TRY(constant_attr(px->cx, px->node, &a));
    return sdx_prepare_step(px, "constant", run_constant, (void *)(uintptr_t)a, 1, 0);
}

/* ---- ConstantOfShape ---- */

struct fill_params {
    size_t size;
    unsigned char value[16];
};

static const struct sdx_tensor *fill_value(const struct sdx_ir_node *node)
{
    const struct sdx_ir_attr *a = sdx_ir_attr(node, "value");
    return a ? a->tensor : NULL;
}

static enum sdx_status infer_constant_of_shape(struct sdx_infer *ix)
{
    struct sdx_ints shape;
    const struct sdx_tensor *value = fill_value(ix->node);
    if (value && value->count != 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "ConstantOfShape: the value has %lld elements, "
                        "expected 1",
                        (long long)value->count);
    sdx_infer_set_dtype(ix, 0, value ? value->dtype : SDX_F32);
    if (!sdx_infer_ints(ix, 0, &shape)) {
        const int64_t *d = sdx_infer_dims(ix, 0);
        if (!d || sdx_infer_rank(ix, 0) != 1 || d[0] < 0 || d[0] > SDX_RANK_MAX) return SDX_OK;
        return sdx_move_infer_rank(ix, 0, (int)d[0]);
    }
    if (shape.count > SDX_RANK_MAX)
        return SDX_FAIL(ix->cx, SDX_NOT_SUPPORTED, "ConstantOfShape: rank %lld",
                        (long long)shape.count);
    int64_t *dims = sdx_infer_new_dims(ix, 0, (int)shape.count), count = 0;
    if (!dims) return SDX_OUT_OF_MEMORY;
    for (int64_t i = 0; i < shape.count; i++) {
        bool symbolic = shape.sym && shape.sym[i];
        dims[i] = symbolic ? shape.sym[i] : shape.v[i];
        if (!symbolic && shape.v[i] < 0)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "ConstantOfShape: length %lld is %lld",
                            (long long)i, (long long)shape.v[i]);
    }
    SDX_TRY(sdx_move_dims_product(ix->cx, dims, (int)shape.count, &count));
    if (shape.count > 1 || count < 0 || count > SDX_MOVE_INTS_MAX || !value ||
        !sdx_dtype_is_integer(value->dtype))
        return SDX_OK;
    int64_t v[SDX_MOVE_INTS_MAX];
    for (int64_t i = 0; i < count; i++)
        v[i] = sdx_load_i64(value->dtype, value->data, 0);
    return sdx_infer_set_ints(ix, 0, (int)shape.count, count, v, NULL);
}

static enum sdx_status run_fill(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct fill_params *p = step->params;
    struct sdx_tensor *out = step->out[0];
    int64_t begin = sdx_part_begin(out->count, step->parts, part, 64);
    int64_t end = sdx_part_begin(out->count, step->parts, part + 1, 64);
    sdx_move_fill((char *)out->data + (size_t)begin * p->size, p->size, p->value, end - begin);
    return SDX_OK;
}

static enum sdx_status prepare_constant_of_shape(struct sdx_prepare *px)
{
    struct fill_params *p = SDX_PREPARE_NEW(px, struct fill_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    const struct sdx_tensor *value = fill_value(px->node), *out = px->out[0];
    p->size = sdx_move_size(out->dtype);
    if (value) memcpy(p->value, value->data, p->size); /* packed: the low bits of the byte */
    return sdx_move_step(px, "fill", run_fill, p,
                         row_parts((double)out->count * (double)p->size, out->count), 0);
}

/* ---- Range ---- */

/* Elements from start, limit and delta. false: delta is 0, or too many. */
static bool range_count(const struct sdx_tensor *const v[3], int64_t *out)
{
    double count = 0;
    if (sdx_dtype_is_float(v[0]->dtype)) {
        double a = sdx_load_f64(v[0]->dtype, v[0]->data, 0);
        double b = sdx_load_f64(v[1]->dtype, v[1]->data, 0);
        double d = sdx_load_f64(v[2]->dtype, v[2]->data, 0);
        if (d == 0) return false;
        count = ceil((b - a) / d);
        if (!(count < 9e18)) return false;
        *out = count > 0 ? (int64_t)count : 0;
        return true;
    }
    int64_t a = sdx_load_i64(v[0]->dtype, v[0]->data, 0);
    int64_t b = sdx_load_i64(v[1]->dtype, v[1]->data, 0);
    int64_t d = sdx_load_i64(v[2]->dtype, v[2]->data, 0);
    if (d == 0) return false;
    *out = 0;
    if (d > 0 ? b <= a : b >= a) return true;
    uint64_t span = d > 0 ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
    uint64_t step = d > 0 ? (uint64_t)d : 0 - (uint64_t)d, n = (span - 1) / step + 1;
    *out = (int64_t)n;
    return n <= INT64_MAX;
}

static enum sdx_status infer_range(struct sdx_infer *ix)
{
    const struct sdx_tensor *v[3];
    int64_t n = -1;
    struct sdx_ints start, limit, delta;
    int dtype = sdx_infer_dtype(ix, 0);
    sdx_infer_set_dtype(ix, 0, dtype);
    if (sdx_dtype_is_integer(dtype) && sdx_infer_ints(ix, 0, &start) &&
        sdx_infer_ints(ix, 1, &limit) && sdx_infer_ints(ix, 2, &delta) && start.count == 1 &&
        limit.count == 1 && delta.count == 1 && !start.sym && !delta.sym) {
        struct sdx_tensor a[3] = {{.data = (void *)(uintptr_t)start.v, .dtype = SDX_I64},
                                  {.data = (void *)(uintptr_t)limit.v, .dtype = SDX_I64},
                                  {.data = (void *)(uintptr_t)delta.v, .dtype = SDX_I64}};
        const struct sdx_tensor *const list[3] = {&a[0], &a[1], &a[2]};
        if (limit.sym && limit.sym[0]) {
            n = start.v[0] == 0 && delta.v[0] == 1 ? limit.sym[0] : -1;
            return sdx_infer_set_dims(ix, 0, 1, &n);
        }
        if (!range_count(list, &n))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Range: delta is %lld", (long long)delta.v[0]);
        SDX_TRY(sdx_infer_set_dims(ix, 0, 1, &n));
        if (n > SDX_MOVE_INTS_MAX) return SDX_OK;
        int64_t content[SDX_MOVE_INTS_MAX];
        for (int64_t i = 0; i < n; i++)
            content[i] = (int64_t)((uint64_t)start.v[0] + (uint64_t)i * (uint64_t)delta.v[0]);
        return sdx_infer_set_ints(ix, 0, 1, n, content, NULL);
    }
    for (int i = 0; i < 3; i++) {
        v[i] = sdx_infer_value(ix, i);
        if (!v[i]) return sdx_move_infer_rank(ix, 0, 1);
        if (v[i]->count != 1)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Range: input %d is not a scalar", i);
    }
    if (!range_count(v, &n))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Range: delta is 0, or the range is too long");
    return sdx_infer_set_dims(ix, 0, 1, &n);
}

static enum sdx_status run_range(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct sdx_tensor *start = step->in[0], *delta = step->in[2], *out = step->out[0];
    int64_t begin = sdx_part_begin(out->count, step->parts, part, 64);
    int64_t end = sdx_part_begin(out->count, step->parts, part + 1, 64);
    if (out->dtype == SDX_F32) {
        float a = *(const float *)start->data, d = *(const float *)delta->data;
        for (int64_t i = begin; i < end; i++)
            ((float *)out->data)[i] = a + (float)i * d;
    } else if (sdx_dtype_is_float(out->dtype)) {
        double a = sdx_load_f64(start->dtype, start->data, 0);
        double d = sdx_load_f64(delta->dtype, delta->data, 0);
        for (int64_t i = begin; i < end; i++)
            sdx_store_f64(out->dtype, out->data, i, a + (double)i * d);
    } else {
        uint64_t a = (uint64_t)sdx_load_i64(start->dtype, start->data, 0);
        uint64_t d = (uint64_t)sdx_load_i64(delta->dtype, delta->data, 0);
        uint64_t *wide = out->dtype == SDX_I64 ? out->data : NULL;
        for (int64_t i = begin; wide && i < end; i++)
            wide[i] = a + (uint64_t)i * d;
        for (int64_t i = begin; !wide && i < end; i++)
            sdx_store_i64(out->dtype, out->data, i, (int64_t)(a + (uint64_t)i * d));
    }
    return SDX_OK;
}

static enum sdx_status prepare_range(struct sdx_prepare *px)
{
    return sdx_prepare_step(px, "range", run_range, NULL,
                            row_parts((double)px->out[0]->bytes * 4, px->out[0]->count), 0);
}

/* ---- EyeLike ---- */

static enum sdx_status infer_eye_like(struct sdx_infer *ix)
{
    int64_t dtype = sdx_ir_attr_int(ix->node, "dtype", sdx_infer_dtype(ix, 0));
    int rank = sdx_infer_rank(ix, 0);
    if (rank >= 0 && rank != 2)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "EyeLike: the input has rank %d, expected 2", rank);
    sdx_infer_copy(ix, 0, 0);
    if (dtype != SDX_DTYPE_NONE && !sdx_dtype_is_valid((int)dtype))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "EyeLike: dtype %lld", (long long)dtype);
    ix->out[0].kind = SDX_KIND_TENSOR;
    ix->out[0].dtype = (uint8_t)dtype;
    return SDX_OK;
}

static enum sdx_status run_eye_like(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    struct sdx_tensor *out = step->out[0];
    int64_t k = *(const int64_t *)step->params, rows = out->dims[0], cols = out->dims[1];
    if (out->bytes) memset(out->data, 0, out->bytes);
    for (int64_t i = k < 0 ? -k : 0; i < rows && i + k < cols; i++)
        sdx_store_i64(out->dtype, out->data, i * cols + i + k, 1);
    return SDX_OK;
}

static enum sdx_status prepare_eye_like(struct sdx_prepare *px)
{
    int64_t *k = SDX_PREPARE_NEW(px, int64_t);
    if (!k) return SDX_OUT_OF_MEMORY;
    *k = sdx_ir_attr_int(px->node, "k", 0);
    if (*k < -px->out[0]->dims[0]) *k = -px->out[0]->dims[0];
    if (*k > px->out[0]->dims[1]) *k = px->out[0]->dims[1];
    return sdx_prepare_step(px, "eye_like", run_eye_like, k, 1, 0);
}

/* ---- OneHot ---- */

static enum sdx_status infer_one_hot(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), axis = 0, n = 0;
    struct sdx_ints depth;
    int64_t d = -1;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 2));
    if (rank < 0) return SDX_OK;
    SDX_TRY(sdx_infer_axis(ix, sdx_ir_attr_int(ix->node, "axis", -1), rank + 1, &axis));
    if (sdx_infer_ints(ix, 1, &depth) && depth.count >= 1) {
        d = depth.sym && depth.sym[0] ? depth.sym[0] : depth.v[0];
        if (d < 0 && !(depth.sym && depth.sym[0])) d = INT64_MIN;
    } else {
        const struct sdx_tensor *v = sdx_infer_value(ix, 1);
        if (v && v->count >= 1) d = sdx_load_i64(v->dtype, v->data, 0);
        if (v && v->count >= 1 && d < 0) d = INT64_MIN;
    }
    if (d == INT64_MIN) return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "OneHot: the depth is negative");
    int64_t *dims = sdx_infer_new_dims(ix, 0, rank + 1);
    if (!dims) return SDX_OUT_OF_MEMORY;
    for (int i = 0; i < rank + 1; i++)
        dims[i] = i == axis ? d : sdx_infer_dims(ix, 0)[n++];
    return SDX_OK;
}

struct one_hot_params {
    int64_t outer, depth, inner;
    size_t size;
    bool wrap; /* negative indices count from the end: since version 11 */
};

static enum sdx_status run_one_hot(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct one_hot_params *p = step->params;
    const struct sdx_tensor *index = step->in[0];
    const char *off = step->in[2]->data, *on = off + p->size;
    int64_t end = sdx_part_begin(p->outer, step->parts, part + 1, 1);
    for (int64_t o = sdx_part_begin(p->outer, step->parts, part, 1); o < end; o++) {
        int64_t plane = p->depth * p->inner;
        char *dst = (char *)step->out[0]->data + (size_t)(o * plane) * p->size;
        sdx_move_fill(dst, p->size, off, plane);
        for (int64_t i = 0; i < p->inner; i++) {
            int64_t j = sdx_load_i64(index->dtype, index->data, o * p->inner + i);
            if (j < 0 && p->wrap) j += p->depth;
            if (j >= 0 && j < p->depth)
                sdx_move_one(dst + (size_t)(j * p->inner + i) * p->size, on, p->size);
        }
    }
    return SDX_OK;
}

static enum sdx_status prepare_one_hot(struct sdx_prepare *px)
{
    struct one_hot_params *p = SDX_PREPARE_NEW(px, struct one_hot_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    const struct sdx_tensor *out = px->out[0];
    int64_t axis = sdx_ir_attr_int(px->node, "axis", -1);
    if (axis < 0) axis += out->rank;
    if (px->in[2]->count != 2)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "OneHot: %lld values, expected 2",
                        (long long)px->in[2]->count);
    p->outer = out->count ? sdx_move_product(out->dims, 0, (int)axis) : 0;
    p->inner = sdx_move_product(out->dims, (int)axis + 1, out->rank);
    p->depth = out->dims[axis];
    p->size = sdx_move_size(out->dtype);
    p->wrap = px->opset >= 11;
    return sdx_move_step(px, "one_hot", run_one_hot, p, row_parts((double)out->bytes, p->outer), 0);
}

/* ---- Trilu ---- */

struct trilu_params {
    bool upper;
    int64_t rows, cols;
    size_t size;
};

static enum sdx_status infer_trilu(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    if (rank >= 0 && rank < 2)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Trilu: the input has rank %d, expected 2 or more",
                        rank);
    sdx_infer_copy(ix, 0, 0);
    return SDX_OK;
}

static enum sdx_status run_trilu(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct trilu_params *p = step->params;
    const struct sdx_tensor *in = step->in[0];
    int64_t k = 0, rows = p->cols ? in->count / p->cols : 0;
    if (step->count_in > 1 && step->in[1] && step->in[1]->count > 0)
        k = sdx_load_i64(step->in[1]->dtype, step->in[1]->data, 0);
    if (k > p->cols) k = p->cols;
    if (k < -p->rows) k = -p->rows;
    int64_t end = sdx_part_begin(rows, step->parts, part + 1, 1);
    for (int64_t r = sdx_part_begin(rows, step->parts, part, 1); r < end; r++) {
        int64_t edge = r % p->rows + k + (p->upper ? 0 : 1);
        edge = edge < 0 ? 0 : edge > p->cols ? p->cols : edge;
        int64_t from = p->upper ? edge : 0, to = p->upper ? p->cols : edge;
        const char *src = (const char *)in->data + (size_t)(r * p->cols) * p->size;
        char *dst = (char *)step->out[0]->data + (size_t)(r * p->cols) * p->size;
        if (src != dst && to > from)
            memcpy(dst + (size_t)from * p->size, src + (size_t)from * p->size,
                   (size_t)(to - from) * p->size);
        memset(dst, 0, (size_t)from * p->size);
        memset(dst + (size_t)to * p->size, 0, (size_t)(p->cols - to) * p->size);
    }
    return SDX_OK;
}

static enum sdx_status prepare_trilu(struct sdx_prepare *px)
{
    struct trilu_params *p = SDX_PREPARE_NEW(px, struct trilu_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    const struct sdx_tensor *in = px->in[0];
    p->upper = sdx_ir_attr_int(px->node, "upper", 1) != 0;
    p->rows = in->dims[in->rank - 2];
    p->cols = in->dims[in->rank - 1];
    p->size = sdx_move_size(in->dtype);
    int64_t rows = p->cols ? in->count / p->cols : 0;
    return sdx_move_step(px, "trilu", run_trilu, p, row_parts((double)in->bytes, rows), 0);
}

static const struct sdx_op ops[] = {
    {"Constant", 1, 0, infer_constant, KERNEL(prepare_constant), .cost = sdx_cost_none},
    {"ConstantOfShape", 9, 0, infer_constant_of_shape, KERNEL(prepare_constant_of_shape),
     .cost = sdx_cost_none},
    {"Range", 11, 0, infer_range, KERNEL(prepare_range)},
    {"EyeLike", 9, 0, infer_eye_like, KERNEL(prepare_eye_like), .cost = sdx_cost_none},
    {"OneHot", 9, 0, infer_one_hot, KERNEL(prepare_one_hot), .cost = sdx_cost_none},
    {"Trilu", 14, 0, infer_trilu, KERNEL(prepare_trilu), .cost = sdx_cost_none,
     .flags = SDX_OP_INPLACE(0)},
};
const struct sdx_op_family sdx_ops_range_fill = FAMILY("", ops);
