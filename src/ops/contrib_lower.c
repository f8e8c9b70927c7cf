/* SPDX-License-Identifier: Apache-2.0
 * Operators of com.microsoft that are the standard's under another name, or a few of them. */
#include "ops/contrib_lower.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

enum { OPSET = 22 }; /* of the standard's operators that lowerings use */

static int32_t input(const struct sdx_lower *lx, int i)
{
    return sdx_lower_input(lx, i);
}

static int32_t cast(struct sdx_lower *lx, int32_t value, int dtype)
{
    int32_t out = sdx_lower_unary(lx, "Cast", value);
    sdx_lower_attr_int(lx, "to", dtype); /* numbered as in ONNX */
    return out;
}

static int32_t with_ints(struct sdx_lower *lx, const char *op, int32_t value, int64_t count,
                         const int64_t *v)
{
    return sdx_lower_binary(lx, op, value, sdx_lower_ints(lx, count, v));
}

static enum sdx_status output(struct sdx_lower *lx, int32_t value)
{
    sdx_lower_output(lx, 0, value);
    return lx->status;
}

/* ---- the same under another name ---- */

/* Standard operators that take the node's inputs and attributes as they are. */
static const struct alias {
    const char *name, *standard;
    int opset;
} aliases[] = {
    {"GridSample", "GridSample", 16}, {"SampleOp", "Identity", 14},
    {"TorchEmbedding", "Gather", 13}, {"Trilu", "Trilu", 14},
    {"GatherND", "GatherND", 13},
};

static const struct alias *alias_of(const struct sdx_ir_node *node)
{
    const struct alias *a = aliases;
    while (!sdx_str_is(node->op_type, a->name))
        a++;
    return a;
}

static enum sdx_status infer_alias(struct sdx_infer *ix)
{
    const struct alias *a = alias_of(ix->node);
    return sdx_contrib_infer_as(ix, "", a->standard, a->opset);
}

static enum sdx_status lower_alias(struct sdx_lower *lx)
{
    const struct alias *a = alias_of(sdx_lower_node(lx));
    int32_t inputs[3] = {input(lx, 0), input(lx, 1), -1}, count = inputs[1] < 0 ? 1 : 2;
    lx->opset = a->opset;
    if (sdx_str_is(sdx_lower_node(lx)->op_type, "GatherND"))
        inputs[1] = cast(lx, input(lx, 1), SDX_I64);
    int32_t y = sdx_lower_op(lx, a->standard, count, inputs);
    sdx_lower_attrs(lx, NULL);
    return output(lx, y);
}

static enum sdx_status infer_range(struct sdx_infer *ix)
{
    const int64_t unknown = -1;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    return sdx_infer_set_dims(ix, 0, 1, &unknown);
}

static enum sdx_status lower_range(struct sdx_lower *lx)
{
    int32_t v[3];
    lx->opset = OPSET;
    for (int i = 0; i < 3; i++)
        v[i] = input(lx, i) >= 0 ? with_ints(lx, "Reshape", input(lx, i), 0, NULL)
                                 : sdx_lower_scalar_like(lx, 0, 1);
    return output(lx, sdx_lower_op(lx, "Range", 3, v));
}

static enum sdx_status infer_pad(struct sdx_infer *ix)
{
    if (sdx_infer_rank(ix, 1) == 1) return sdx_contrib_infer_as(ix, "", "Pad", 13);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (sdx_infer_rank(ix, 0) < 0) return SDX_OK;
    int64_t *dims = sdx_infer_new_dims(ix, 0, sdx_infer_rank(ix, 0));
    if (!dims) return SDX_FAIL_MEMORY(ix->cx);
    for (int i = 0; i < sdx_infer_rank(ix, 0); i++)
        dims[i] = -1;
    return SDX_OK;
}

static enum sdx_status lower_pad(struct sdx_lower *lx)
{
    const int64_t all = -1;
    lx->opset = 13;
    int32_t v[] = {input(lx, 0), with_ints(lx, "Reshape", input(lx, 1), 1, &all), -1};
    if (input(lx, 2) >= 0) v[2] = with_ints(lx, "Reshape", input(lx, 2), 0, NULL);
    int32_t y = sdx_lower_op(lx, "Pad", v[2] < 0 ? 2 : 3, v);
    sdx_lower_attrs(lx, NULL);
    return output(lx, y);
}

static enum sdx_status infer_unique(struct sdx_infer *ix)
{
    const int64_t unknown = -1;
    if (sdx_infer_rank(ix, 0) >= 0 && sdx_infer_rank(ix, 0) != 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Unique: input has rank %d, expected 1",
                        sdx_infer_rank(ix, 0));
    for (int k = 0; k < ix->count_out; k++) {
        sdx_infer_set_dtype(ix, k, k ? SDX_I64 : sdx_infer_dtype(ix, 0));
        SDX_TRY(sdx_infer_set_dims(
            ix, k, 1, k == 1 && sdx_infer_dims(ix, 0) ? sdx_infer_dims(ix, 0) : &unknown));
    }
    return SDX_OK;
}

static enum sdx_status lower_unique(struct sdx_lower *lx)
{
    int32_t x = input(lx, 0), out[4];
    lx->opset = 11;
    sdx_lower_op_outputs(lx, "Unique", 1, &x, 4, out);
    sdx_lower_attr_int(lx, "sorted", 0);
    sdx_lower_output(lx, 0, out[0]);
    sdx_lower_output(lx, 1, out[2]);
    sdx_lower_output(lx, 2, out[3]);
    return lx->status;
}

static enum sdx_status infer_expand_dims(struct sdx_infer *ix)
{
    const int64_t *axis, *dims = sdx_infer_dims(ix, 0);
    int64_t count = 0, out[SDX_RANK_MAX + 1];
    int rank = sdx_infer_rank(ix, 0), at;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    bool known = sdx_infer_known_ints(ix, 1, &axis, &count) && count == 1;
    if (known) SDX_TRY(sdx_infer_axis(ix, axis[0], rank + 1, &at));
    for (int i = 0; i <= rank; i++)
        out[i] = !known ? -1 : i == at ? 1 : dims[i < at ? i : i - 1];
    return sdx_infer_set_dims(ix, 0, rank + 1, out);
}

static enum sdx_status lower_expand_dims(struct sdx_lower *lx)
{
    const int64_t one = 1;
    lx->opset = 13;
    int32_t axis = with_ints(lx, "Reshape", cast(lx, input(lx, 1), SDX_I64), 1, &one);
    return output(lx, sdx_lower_binary(lx, "Unsqueeze", input(lx, 0), axis));
}

/* ---- Fourier transforms over the last signal_ndim axes ---- */

static enum sdx_status infer_fft(struct sdx_infer *ix)
{
    const int64_t *dims = sdx_infer_dims(ix, 0);
    bool inverse = sdx_str_is(ix->node->op_type, "Irfft");
    int rank = sdx_infer_rank(ix, 0);
    int64_t signal = sdx_ir_attr_int(ix->node, "signal_ndim", 1), out[SDX_RANK_MAX + 1];
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (sdx_ir_attr_int(ix->node, "normalized", 0) || !sdx_ir_attr_int(ix->node, "onesided", 1))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: normalized or two-sided transforms",
                        NAME(ix->node));
    if (rank < 0) return SDX_OK;
    if (signal < 1 || signal > 3 || signal > rank - inverse)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: %lld signal axes of rank %d", NAME(ix->node),
                        (long long)signal, rank);
    memcpy(out, dims, (size_t)rank * sizeof *out);
    int last = rank - 1 - inverse;
    if (inverse)
        out[last] = dims[last] < 0 ? -1 : 2 * (dims[last] - 1);
    else
        out[last] = dims[last] < 0 ? -1 : dims[last] / 2 + 1;
    out[rank] = 2;
    return sdx_infer_set_dims(ix, 0, inverse ? rank - 1 : rank + 1, out);
}

static int32_t dft(struct sdx_lower *lx, int32_t value, int64_t axis, bool onesided, bool inverse)
{
    const int32_t v[] = {value, -1,
                         with_ints(lx, "Reshape", sdx_lower_ints(lx, 1, &axis), 0, NULL)};
    int32_t out = sdx_lower_op(lx, "DFT", 3, v);
    sdx_lower_attr_int(lx, "onesided", onesided);
    sdx_lower_attr_int(lx, "inverse", inverse);
    return out;
}

static enum sdx_status lower_fft(struct sdx_lower *lx)
{
    const int64_t last = -1;
    bool inverse = sdx_str_is(sdx_lower_node(lx)->op_type, "Irfft");
    int64_t signal = sdx_ir_attr_int(sdx_lower_node(lx), "signal_ndim", 1);
    int32_t v = input(lx, 0);
    lx->opset = OPSET;
    if (!inverse) v = dft(lx, with_ints(lx, "Unsqueeze", v, 1, &last), -2, true, false);
    for (int64_t i = 2; i <= signal; i++)
        v = dft(lx, v, -1 - i, false, inverse);
    if (inverse) v = with_ints(lx, "Squeeze", dft(lx, v, -2, true, true), 1, &last);
    return output(lx, v);
}

/* ---- integers ---- */

static enum sdx_status infer_mul_integer(struct sdx_infer *ix)
{
    SDX_TRY(sdx_infer_broadcast(ix, 0, 0, ix->count_in));
    sdx_infer_set_dtype(ix, 0, SDX_I32);
    return SDX_OK;
}

static enum sdx_status lower_mul_integer(struct sdx_lower *lx)
{
    int32_t side[2];
    lx->opset = OPSET;
    for (int i = 0; i < 2; i++) {
        side[i] = cast(lx, input(lx, 2 * i), SDX_I32);
        if (input(lx, 2 * i + 1) >= 0)
            side[i] = sdx_lower_binary(lx, "Sub", side[i], cast(lx, input(lx, 2 * i + 1), SDX_I32));
    }
    return output(lx, sdx_lower_binary(lx, "Mul", side[0], side[1]));
}

static int sum_type(bool is_signed)
{
    return is_signed ? SDX_I32 : SDX_U32;
}

static enum sdx_status infer_matmul16(struct sdx_infer *ix)
{
    SDX_TRY(sdx_contrib_infer_as(ix, "", "MatMul", 13));
    sdx_infer_set_dtype(
        ix, 0, sum_type(sdx_infer_dtype(ix, 0) == SDX_I16 || sdx_infer_dtype(ix, 1) == SDX_I16));
    return SDX_OK;
}

static enum sdx_status lower_matmul16(struct sdx_lower *lx)
{
    int to = sum_type(sdx_lower_type(lx, 0)->dtype == SDX_I16 ||
                      sdx_lower_type(lx, 1)->dtype == SDX_I16);
    lx->opset = OPSET;
    return output(
        lx, sdx_lower_binary(lx, "MatMul", cast(lx, input(lx, 0), to), cast(lx, input(lx, 1), to)));
}

static enum sdx_status infer_reduce_sum(struct sdx_infer *ix)
{
    SDX_TRY(sdx_contrib_infer_as(ix, "", "ReduceSum", 11));
    sdx_infer_set_dtype(ix, 0, sum_type(sdx_infer_dtype(ix, 0) == SDX_I8));
    return SDX_OK;
}

static enum sdx_status lower_reduce_sum(struct sdx_lower *lx)
{
    lx->opset = 11;
    int32_t x = cast(lx, input(lx, 0), sum_type(sdx_lower_type(lx, 0)->dtype == SDX_I8));
    int32_t y = sdx_lower_unary(lx, "ReduceSum", x);
    sdx_lower_attrs(lx, NULL);
    return output(lx, y);
}

/* ---- distances, finiteness, complex products ---- */

static enum sdx_status infer_cdist(struct sdx_infer *ix)
{
    const int64_t *a = sdx_infer_dims(ix, 0), *b = sdx_infer_dims(ix, 1);
    int64_t unused;
    struct sdx_str metric = sdx_ir_attr_str(ix->node, "metric", "sqeuclidean");
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (!sdx_str_is(metric, "sqeuclidean") && !sdx_str_is(metric, "euclidean"))
        return SDX_FAIL(ix->cx, SDX_NOT_SUPPORTED, "CDist: metric \"%.*s\"", SDX_STR_ARG(metric));
    if ((a && sdx_infer_rank(ix, 0) != 2) || (b && sdx_infer_rank(ix, 1) != 2))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "CDist: inputs must have rank 2");
    if (a && b) SDX_TRY(sdx_infer_merge_dim(ix, a[1], b[1], "length of a point", &unused));
    const int64_t out[] = {a ? a[0] : -1, b ? b[0] : -1};
    return sdx_infer_set_dims(ix, 0, 2, out);
}

/* |a - b|^2 = |a|^2 + |b|^2 - 2ab, not below 0. */
static enum sdx_status lower_cdist(struct sdx_lower *lx)
{
    const int64_t last = 1;
    struct sdx_str metric = sdx_ir_attr_str(sdx_lower_node(lx), "metric", "sqeuclidean");
    int32_t square[2];
    lx->opset = OPSET;
    for (int i = 0; i < 2; i++)
        square[i] = with_ints(lx, "ReduceSumSquare", input(lx, i), 1, &last);
    int32_t product = sdx_lower_binary(lx, "MatMul", input(lx, 0),
                                       sdx_lower_unary(lx, "Transpose", input(lx, 1)));
    int32_t y = sdx_lower_binary(lx, "Add", square[0], sdx_lower_unary(lx, "Transpose", square[1]));
    product = sdx_lower_binary(lx, "Mul", product, sdx_lower_scalar_like(lx, 0, 2));
    y = sdx_lower_unary(lx, "Relu", sdx_lower_binary(lx, "Sub", y, product));
    return output(lx, sdx_str_is(metric, "euclidean") ? sdx_lower_unary(lx, "Sqrt", y) : y);
}

static enum sdx_status infer_all_finite(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, SDX_BOOL);
    return sdx_infer_set_dims(ix, 0, 0, NULL);
}

static enum sdx_status lower_all_finite(struct sdx_lower *lx)
{
    const struct sdx_ir_node *node = sdx_lower_node(lx);
    bool only_inf = sdx_ir_attr_int(node, "isinf_only", 0) != 0;
    bool only_nan = sdx_ir_attr_int(node, "isnan_only", 0) != 0;
    int32_t bad = -1, count = node->count_inputs;
    lx->opset = OPSET;
    for (int i = 0; i < count; i++) {
        const char *test = only_inf ? "IsInf" : "IsNaN";
        int32_t x = input(lx, i);
        /* x - x is NaN where x is not finite. */
        if (!only_inf && !only_nan) x = sdx_lower_binary(lx, "Sub", x, x);
        x = sdx_lower_unary(lx, "ReduceMax", sdx_lower_unary(lx, test, x));
        sdx_lower_attr_int(lx, "keepdims", 0);
        bad = bad < 0 ? x : sdx_lower_binary(lx, "Or", bad, x);
    }
    return output(lx, sdx_lower_unary(lx, "Not", bad));
}

static void halves(struct sdx_lower *lx, int32_t value, int32_t *out)
{
    sdx_lower_op_outputs(lx, "Split", 1, &value, 2, out);
    sdx_lower_attr_int(lx, "axis", -1);
    sdx_lower_attr_int(lx, "num_outputs", 2);
}

static enum sdx_status infer_complex_mul(struct sdx_infer *ix)
{
    for (int i = 0; i < 2; i++) {
        int rank = sdx_infer_rank(ix, i);
        if (rank < 0) continue;
        int64_t last = rank > 0 ? sdx_infer_dims(ix, i)[rank - 1] : 0;
        if (last >= 0 && last != 2)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                            "%.*s: last axis of input %d has length %lld, expected 2",
                            NAME(ix->node), i, (long long)last);
    }
    return sdx_infer_binary(ix);
}

static enum sdx_status lower_complex_mul(struct sdx_lower *lx)
{
    bool conjugate = sdx_str_is(sdx_lower_node(lx)->op_type, "ComplexMulConj");
    int32_t a[2], b[2], y[2];
    lx->opset = OPSET;
    halves(lx, input(lx, 0), a);
    halves(lx, input(lx, 1), b);
    y[0] = sdx_lower_binary(lx, conjugate ? "Add" : "Sub", sdx_lower_binary(lx, "Mul", a[0], b[0]),
                            sdx_lower_binary(lx, "Mul", a[1], b[1]));
    y[1] = sdx_lower_binary(lx, conjugate ? "Sub" : "Add", sdx_lower_binary(lx, "Mul", a[1], b[0]),
                            sdx_lower_binary(lx, "Mul", a[0], b[1]));
    int32_t out = sdx_lower_op(lx, "Concat", 2, y);
    sdx_lower_attr_int(lx, "axis", -1);
    return output(lx, out);
}

/* ---- fused forms ---- */

static enum sdx_status lower_bias_add(struct sdx_lower *lx)
{
    lx->opset = OPSET;
    int32_t sum = sdx_lower_binary(lx, "Add", input(lx, 0), input(lx, 1));
    return output(lx, sdx_lower_binary(lx, "Add", sum, input(lx, 2)));
}

static enum sdx_status infer_bias_split_gelu(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    int rank = sdx_infer_rank(ix, 0);
    if (rank < 1) return SDX_OK;
    int64_t *out = sdx_infer_new_dims(ix, 0, rank);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    memcpy(out, sdx_infer_dims(ix, 0), (size_t)rank * sizeof *out);
    if (out[rank - 1] % 2 && out[rank - 1] > 0)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "BiasSplitGelu: last axis has odd length %lld",
                        (long long)out[rank - 1]);
    out[rank - 1] = out[rank - 1] < 0 ? -1 : out[rank - 1] / 2;
    return SDX_OK;
}

static enum sdx_status lower_bias_split_gelu(struct sdx_lower *lx)
{
    int32_t half[2];
    lx->opset = OPSET;
    halves(lx, sdx_lower_binary(lx, "Add", input(lx, 0), input(lx, 1)), half);
    return output(lx, sdx_lower_binary(lx, "Mul", half[0], sdx_lower_unary(lx, "Gelu", half[1])));
}

static enum sdx_status infer_matmul(struct sdx_infer *ix)
{
    return sdx_contrib_infer_as(ix, "", "MatMul", 13);
}

static enum sdx_status lower_gemm_fast_gelu(struct sdx_lower *lx)
{
    lx->opset = OPSET;
    int32_t y = sdx_lower_binary(lx, "MatMul", input(lx, 0), input(lx, 1));
    if (input(lx, 2) >= 0) y = sdx_lower_binary(lx, "Add", y, input(lx, 2));
    y = sdx_lower_unary(lx, "Gelu", y);
    sdx_lower_attr_str(lx, "approximate", "tanh");
    return output(lx, y);
}

/* Softmax over all axes from `axis` on, as the standard had it before version 13. */
static enum sdx_status lower_bias_softmax(struct sdx_lower *lx)
{
    int64_t axis = sdx_ir_attr_int(sdx_lower_node(lx), "axis", 1);
    lx->opset = 11;
    int32_t y =
        sdx_lower_unary(lx, "Softmax", sdx_lower_binary(lx, "Add", input(lx, 0), input(lx, 1)));
    sdx_lower_attr_int(lx, "axis", axis);
    return output(lx, y);
}

static enum sdx_status infer_dropout(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    if (ix->count_out < 2) return SDX_OK;
    const int64_t *dims = sdx_infer_dims(ix, 0);
    if (sdx_str_is(ix->node->op_type, "BiasDropout")) {
        sdx_infer_set_dtype(ix, 1, SDX_BOOL);
        return dims ? sdx_infer_set_dims(ix, 1, sdx_infer_rank(ix, 0), dims) : SDX_OK;
    }
    int64_t words = 1;
    for (int i = 0; dims && i < sdx_infer_rank(ix, 0); i++)
        if (words < 0 || dims[i] < 0 || !sdx_mul_i64(words, dims[i], &words)) words = -1;
    words = dims && words >= 0 ? words / 32 + (words % 32 != 0) : -1;
    sdx_infer_set_dtype(ix, 1, SDX_U32);
    return sdx_infer_set_dims(ix, 1, 1, &words);
}

/* Bit i % 32 of word i / 32 is element i. */
static int32_t pack_bits(struct sdx_lower *lx, int32_t mask)
{
    const int64_t all = -1, one = 1, zero = 0, pads[] = {0, 31}, shape[] = {-1, 32};
    const int32_t bounds[] = {sdx_lower_scalar(lx, SDX_I32, 0), sdx_lower_scalar(lx, SDX_I32, 32),
                              sdx_lower_scalar(lx, SDX_I32, 1)};
    int32_t width = sdx_lower_scalar(lx, SDX_I64, 32);
    int32_t bits = with_ints(lx, "Reshape", cast(lx, mask, SDX_U8), 1, &all);
    bits = with_ints(lx, "Pad", bits, 2, pads);
    int32_t count = sdx_lower_binary(lx, "Div", sdx_lower_unary(lx, "Size", bits), width);
    count = with_ints(lx, "Reshape", sdx_lower_binary(lx, "Mul", count, width), 1, &one);
    const int32_t cut[] = {bits, sdx_lower_ints(lx, 1, &zero), count};
    bits = with_ints(lx, "Reshape", sdx_lower_op(lx, "Slice", 3, cut), 2, shape);
    int32_t places = cast(lx, sdx_lower_op(lx, "Range", 3, bounds), SDX_U32);
    int32_t words = sdx_lower_binary(lx, "BitShift", cast(lx, bits, SDX_U32), places);
    sdx_lower_attr_str(lx, "direction", "LEFT");
    words = with_ints(lx, "ReduceSum", words, 1, &one);
    sdx_lower_attr_int(lx, "keepdims", 0);
    return words;
}

static enum sdx_status lower_dropout(struct sdx_lower *lx)
{
    const struct sdx_ir_node *node = sdx_lower_node(lx);
    bool has_bias = !sdx_str_is(node->op_type, "BitmaskDropout");
    bool packs = !sdx_str_is(node->op_type, "BiasDropout"), wants_mask = node->count_outputs > 1;
    int first = has_bias ? 3 : 1;
    lx->opset = OPSET;
    int32_t v[] = {input(lx, 0), input(lx, first), input(lx, first + 1)}, out[2] = {-1, -1};
    if (has_bias) v[0] = sdx_lower_binary(lx, "Add", v[0], input(lx, 1));
    sdx_lower_op_outputs(lx, "Dropout",
                         v[2] >= 0   ? 3
                         : v[1] >= 0 ? 2
                                     : 1,
                         v, wants_mask ? 2 : 1, out);
    sdx_lower_attrs(lx, NULL);
    if (has_bias && input(lx, 2) >= 0) out[0] = sdx_lower_binary(lx, "Add", out[0], input(lx, 2));
    sdx_lower_output(lx, 0, out[0]);
    if (wants_mask) sdx_lower_output(lx, 1, packs ? pack_bits(lx, out[1]) : out[1]);
    return lx->status;
}

/* ---- GroupNorm, SkipGroupNorm ---- */

static enum sdx_status infer_group_norm(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    if (rank >= 0 && rank != 4)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: input has rank %d, expected 4",
                        NAME(ix->node), rank);
    return sdx_infer_same_all(ix);
}

/* x + skip + bias: skip may be [N, C], bias is [C]. */
static int32_t add_skip(struct sdx_lower *lx, bool is_last)
{
    const int64_t of_last[] = {1, 2}, of_first[] = {2, 3}, *spatial = is_last ? of_last : of_first;
    int32_t skip = input(lx, 3), bias = input(lx, 4);
    if (sdx_lower_type(lx, 3)->rank == 2) skip = with_ints(lx, "Unsqueeze", skip, 2, spatial);
    if (bias >= 0 && !is_last) bias = with_ints(lx, "Unsqueeze", bias, 2, of_last);
    int32_t sum = sdx_lower_binary(lx, "Add", input(lx, 0), skip);
    return bias < 0 ? sum : sdx_lower_binary(lx, "Add", sum, bias);
}

static enum sdx_status lower_group_norm(struct sdx_lower *lx)
{
    static const int64_t to_first[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};
    const struct sdx_ir_node *node = sdx_lower_node(lx);
    int64_t groups = sdx_ir_attr_int(node, "groups", 1);
    bool is_last = sdx_ir_attr_int(node, "channels_last", 1) != 0;
    bool is_silu = sdx_ir_attr_int(node, "activation", 0) != 0;
    float epsilon = sdx_ir_attr_float(node, "epsilon", 1e-5f);
    int dtype = sdx_lower_type(lx, 0)->dtype, inner = sdx_lower_type(lx, 1)->dtype;
    int32_t v[] = {input(lx, 0), input(lx, 1), input(lx, 2)};
    lx->opset = OPSET;
    if (sdx_str_is(node->op_type, "SkipGroupNorm")) {
        if (!sdx_lower_type(lx, 3)->has_shape)
            return SDX_FAIL(lx->cx, SDX_NOT_SUPPORTED, "SkipGroupNorm: skip of unknown rank");
        v[0] = add_skip(lx, is_last);
        sdx_lower_output(lx, 1, v[0]);
    }
    if (dtype != inner) v[0] = cast(lx, v[0], inner);
    if (is_last) {
        v[0] = sdx_lower_unary(lx, "Transpose", v[0]);
        sdx_lower_attr_ints(lx, "perm", 4, to_first);
    }
    int32_t y = sdx_lower_op(lx, "GroupNormalization", 3, v);
    sdx_lower_attr_int(lx, "num_groups", groups);
    sdx_lower_attr_float(lx, "epsilon", epsilon);
    if (is_silu) y = sdx_lower_binary(lx, "Mul", y, sdx_lower_unary(lx, "Sigmoid", y));
    if (is_last) {
        y = sdx_lower_unary(lx, "Transpose", y);
        sdx_lower_attr_ints(lx, "perm", 4, to_last);
    }
    return output(lx, dtype == inner ? y : cast(lx, y, dtype));
}

static const struct sdx_op ops[] = {
    {"GridSample", 1, 0, infer_alias, LOWER(lower_alias)},
    {"SampleOp", 1, 0, infer_alias, LOWER(lower_alias)},
    {"TorchEmbedding", 1, 0, infer_alias, LOWER(lower_alias)},
    {"Trilu", 1, 0, infer_alias, LOWER(lower_alias)},
    {"GatherND", 1, 0, infer_alias, LOWER(lower_alias)},
    {"Range", 1, 0, infer_range, LOWER(lower_range)},
    {"Pad", 1, 0, infer_pad, LOWER(lower_pad)},
    {"Unique", 1, 0, infer_unique, LOWER(lower_unique)},
    {"ExpandDims", 1, 0, infer_expand_dims, LOWER(lower_expand_dims)},
    {"Rfft", 1, 0, infer_fft, LOWER(lower_fft)},
    {"Irfft", 1, 0, infer_fft, LOWER(lower_fft)},
    {"MulInteger", 1, 0, infer_mul_integer, LOWER(lower_mul_integer)},
    {"MatMulInteger16", 1, 0, infer_matmul16, LOWER(lower_matmul16)},
    {"ReduceSumInteger", 1, 0, infer_reduce_sum, LOWER(lower_reduce_sum)},
    {"CDist", 1, 0, infer_cdist, LOWER(lower_cdist)},
    {"IsAllFinite", 1, 0, infer_all_finite, LOWER(lower_all_finite)},
    {"ComplexMul", 1, 0, infer_complex_mul, LOWER(lower_complex_mul)},
    {"ComplexMulConj", 1, 0, infer_complex_mul, LOWER(lower_complex_mul)},
    {"BiasAdd", 1, 0, sdx_infer_same, LOWER(lower_bias_add)},
    {"BiasSplitGelu", 1, 0, infer_bias_split_gelu, LOWER(lower_bias_split_gelu)},
    {"GemmFastGelu", 1, 0, infer_matmul, LOWER(lower_gemm_fast_gelu)},
    {"BiasSoftmax", 1, 0, sdx_infer_same, LOWER(lower_bias_softmax)},
    {"BiasDropout", 1, 0, infer_dropout, LOWER(lower_dropout)},
    {"BitmaskDropout", 1, 0, infer_dropout, LOWER(lower_dropout)},
    {"BitmaskBiasDropout", 1, 0, infer_dropout, LOWER(lower_dropout)},
    {"GroupNorm", 1, 0, infer_group_norm, LOWER(lower_group_norm)},
    {"SkipGroupNorm", 1, 0, infer_group_norm, LOWER(lower_group_norm)},
};

const struct sdx_op_family sdx_ops_contrib_lower = FAMILY("com.microsoft", ops);
