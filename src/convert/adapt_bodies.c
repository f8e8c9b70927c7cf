/* SPDX-License-Identifier: Apache-2.0
 * Going down past the version that brought an operator, or a form of it, whose meaning takes many
 * older nodes: Attention, RotaryEmbedding, losses, Trilu, windows and others, as formulas. */
#include <math.h>

#include "convert/adapt.h"
#include "convert/formula.h"
#include "ops/schema.h"

#define TO_END "9223372036854775807"

/* A formula in the type of input 0, of which the older `op` has to take input k. */
static enum sdx_status begin(struct sdx_formula *f, struct sdx_rewrite *rx, const char *op, int k)
{
    const int dtype = sdx_rewrite_dtype(rx, sdx_rewrite_input(rx, 0));
    const struct sdx_type type = {.kind = SDX_KIND_TENSOR, .dtype = (uint8_t)dtype};
    const struct sdx_schema *schema = sdx_schema_find(SDX_NONE, sdx_str(op), rx->to, NULL);
    if (!dtype)
        return sdx_rewrite_refuse(rx, "its formula needs the type of input 0, which is not known");
    if (!schema ||
        !sdx_schema_allows(&sdx_schema_typesets[sdx_schema_input(schema, k)->types], &type))
        return sdx_rewrite_refuse(rx,
                                  "its formula needs %s, which does not take the type of input "
                                  "0 in version %lld",
                                  op, (long long)rx->to);
    sdx_formula_init(f, rx, dtype);
    rx->drop = true;
    return SDX_OK;
}

static struct sdx_str number_of(struct sdx_rewrite *rx, int dtype, double v)
{
    return sdx_rewrite_const_number(rx, dtype, 0, v);
}

/* ---- Attention ---- */

struct attention {
    struct sdx_rewrite *rx;
    struct sdx_formula f;
    int64_t heads, heads_kv;
    bool is_flat; /* [batch, length, heads * size] */
    bool has_mask, has_past, has_lengths, has_rule, has_bias;
};

static enum sdx_status attention_heads(struct attention *a)
{
    struct sdx_rewrite *rx = a->rx;
    const struct sdx_str q = sdx_rewrite_input(rx, 0), k = sdx_rewrite_input(rx, 1);
    const int rank = sdx_rewrite_rank(rx, q);
    a->is_flat = rank == 3;
    a->heads = sdx_rewrite_attr_int(rx->node, "q_num_heads", 0);
    a->heads_kv = sdx_rewrite_attr_int(rx->node, "kv_num_heads", 0);
    if (rank == 4 && sdx_rewrite_rank(rx, k) == 4) {
        a->heads = sdx_rewrite_dims(rx, q)[1];
        a->heads_kv = sdx_rewrite_dims(rx, k)[1];
    }
    if (rank < 3 || a->heads < 1 || a->heads_kv < 1)
        return sdx_rewrite_refuse(rx,
                                  "its formula needs the numbers of heads, which are not known");
    return SDX_OK;
}

/* Keys and values so far, outputs 1 and 2. */
static void attention_operands(struct attention *a)
{
    if (a->is_flat)
        sdx_formula_add(&a->f,
                        "q = Transpose(Reshape(in0, [0,0,%lld,-1])){perm=[0,2,1,3]};"
                        "k = Transpose(Reshape(in1, [0,0,%lld,-1])){perm=[0,2,1,3]};"
                        "v = Transpose(Reshape(in2, [0,0,%lld,-1])){perm=[0,2,1,3]}",
                        (long long)a->heads, (long long)a->heads_kv, (long long)a->heads_kv);
    else
        sdx_formula_add(&a->f, "q = in0; k = in1; v = in2");
    if (a->has_past)
        sdx_formula_add(&a->f, "k = Concat(in4, k){axis=2}; v = Concat(in5, v){axis=2}");
    sdx_formula_add(&a->f, "out1 = k; out2 = v; rows = Shape(q){start=2, end=3};"
                           "columns = Shape(k){start=2, end=3}");
}

/* One more rule of `ok`; n: the number in its formula, where there is one. */
static void add_rule(struct attention *a, const char *formula, long long n)
{
    sdx_formula_add(&a->f, formula, n);
    sdx_formula_add(&a->f, a->has_rule ? "ok = And(ok, one)" : "ok = one");
    a->has_rule = true;
}

/* `ok`: which columns a row may see, of what is causal, windows and lengths. */
static void attention_rule(struct attention *a)
{
    const struct sdx_onnx_node *node = a->rx->node;
    const long long left = sdx_rewrite_attr_int(node, "left_window_size", -1);
    const long long right = sdx_rewrite_attr_int(node, "right_window_size", -1);
    const bool causal = sdx_rewrite_attr_int(node, "is_causal", 0) != 0;
    if (causal || left >= 0 || right >= 0 || a->has_lengths)
        sdx_formula_add(&a->f, "column = Range(0i, Squeeze(columns), 1i)");
    if (causal || left >= 0 || right >= 0) {
        sdx_formula_add(&a->f, "row = Unsqueeze(Range(0i, Squeeze(rows), 1i), [1])");
        if (a->has_past)
            sdx_formula_add(&a->f, "row = Add(row, Shape(in4){start=2, end=3})");
        else if (a->has_lengths)
            sdx_formula_add(&a->f, "row = Add(row, Unsqueeze(Sub(in6, rows), [1,2,3]))");
        sdx_formula_add(&a->f, "ahead = Sub(column, row)");
    }
    if (causal) add_rule(a, "one = LessOrEqual(ahead, %lldi)", 0);
    if (left >= 0) add_rule(a, "one = GreaterOrEqual(ahead, %lldi)", -left);
    if (right >= 0) add_rule(a, "one = LessOrEqual(ahead, %lldi)", right);
    if (a->has_lengths) add_rule(a, "one = Less(column, Unsqueeze(in6, [1,2,3]))", 0);
}

/* `bias`: what is added to the scores. Rows without any column that they may see give 0. */
static void attention_bias(struct attention *a)
{
    struct sdx_rewrite *rx = a->rx;
    const int dtype = sdx_rewrite_dtype(rx, sdx_rewrite_input(rx, 3));
    sdx_formula_set(&a->f, "never", number_of(rx, a->f.dtype, -INFINITY));
    if (a->has_mask) {
        if (dtype == SDX_BOOL)
            sdx_formula_add(&a->f, "bias = Where(in3, 0, never)");
        else if (dtype != a->f.dtype)
            sdx_formula_add(&a->f, "bias = Cast(in3){to=%d}", a->f.dtype);
        else
            sdx_formula_add(&a->f, "bias = in3");
        sdx_formula_add(&a->f, "bias = Pad(bias, Concat([0], Sub(columns, Shape(bias){start=-1}))"
                               "{axis=0}, never, [-1])");
    }
    if (a->has_rule) sdx_formula_add(&a->f, "rule = Where(ok, 0, never)");
    if (a->has_rule) sdx_formula_add(&a->f, a->has_mask ? "bias = Add(bias, rule)" : "bias = rule");
    a->has_bias = a->has_mask || a->has_rule;
}

static void attention_scores(struct attention *a, int mode)
{
    struct sdx_rewrite *rx = a->rx;
    const struct sdx_onnx_attr *scale = sdx_rewrite_attr(rx->node, "scale");
    const double softcap = (double)sdx_rewrite_attr_float(rx->node, "softcap", 0);
    const int precision = (int)sdx_rewrite_attr_int(rx->node, "softmax_precision", a->f.dtype);
    if (scale)
        sdx_formula_set(&a->f, "scale", number_of(rx, a->f.dtype, (double)sqrtf(scale->f)));
    else
        sdx_formula_add(&a->f,
                        "scale = Cast(Sqrt(Div(1f, Sqrt(Cast(Shape(q){start=3, end=4}){to=1}))))"
                        "{to=%d}",
                        a->f.dtype);
    if (a->heads != a->heads_kv)
        sdx_formula_add(
            &a->f,
            "wide = Concat(Shape(k){start=0, end=1}, [%lld], Shape(k){start=2}){axis=0};"
            "widev = Concat(Shape(v){start=0, end=1}, [%lld], Shape(v){start=2}){axis=0};"
            "k = Reshape(Expand(Unsqueeze(k, [2]), [1,1,%lld,1,1]), wide);"
            "v = Reshape(Expand(Unsqueeze(v, [2]), [1,1,%lld,1,1]), widev)",
            (long long)a->heads, (long long)a->heads, (long long)(a->heads / a->heads_kv),
            (long long)(a->heads / a->heads_kv));
    sdx_formula_add(&a->f, "p = MatMul(Mul(q, scale), Mul(Transpose(k){perm=[0,1,3,2]}, scale))");
    if (mode == 0) sdx_formula_add(&a->f, "out3 = p");
    if (softcap != 0) {
        sdx_formula_set(&a->f, "cap", number_of(rx, a->f.dtype, softcap));
        sdx_formula_add(&a->f, "p = Mul(Tanh(Div(p, cap)), cap)");
    }
    if (mode == 1) sdx_formula_add(&a->f, "out3 = p");
    if (a->has_bias) sdx_formula_add(&a->f, "p = Add(p, bias)");
    if (mode == 2) sdx_formula_add(&a->f, "out3 = p");
    if (precision != a->f.dtype)
        sdx_formula_add(&a->f, "p = Cast(Softmax(Cast(p){to=%d})){to=%d}", precision, a->f.dtype);
    else
        sdx_formula_add(&a->f, "p = Softmax(p)");
    if (a->has_bias) sdx_formula_add(&a->f, "p = Where(Equal(ReduceMax(bias, [-1]), never), 0, p)");
    if (mode == 3) sdx_formula_add(&a->f, "out3 = p");
}

enum sdx_status sdx_adapt_expand_attention(struct sdx_rewrite *rx)
{
    struct attention a = {.rx = rx,
                          .has_mask = sdx_rewrite_input(rx, 3).len > 0,
                          .has_past = sdx_rewrite_input(rx, 4).len > 0,
                          .has_lengths = sdx_rewrite_input(rx, 6).len > 0};
    const bool asks = sdx_rewrite_output(rx, 3).len > 0;
    SDX_TRY(attention_heads(&a));
    SDX_TRY(begin(&a.f, rx, "Pad", 0));
    attention_operands(&a);
    attention_rule(&a);
    attention_bias(&a);
    attention_scores(&a,
                     asks ? (int)sdx_rewrite_attr_int(rx->node, "qk_matmul_output_mode", 0) : -1);
    if (a.is_flat)
        sdx_formula_add(&a.f, "out0 = Reshape(Transpose(MatMul(p, v)){perm=[0,2,1,3]}, [0,0,-1])");
    else
        sdx_formula_add(&a.f, "out0 = MatMul(p, v)");
    return SDX_OK;
}

/* Version 24 brought lengths of keys, version 25 windows. */
enum sdx_status sdx_adapt_attention_down(struct sdx_rewrite *rx)
{
    const bool has_windows = sdx_rewrite_attr_int(rx->node, "left_window_size", -1) >= 0 ||
                             sdx_rewrite_attr_int(rx->node, "right_window_size", -1) >= 0;
    const bool has_new = rx->to < 24 ? sdx_rewrite_input(rx, 6).len > 0 : has_windows;
    return has_new ? sdx_adapt_expand_attention(rx) : SDX_OK;
}

/* ---- RotaryEmbedding ---- */

enum sdx_status sdx_adapt_expand_rotary(struct sdx_rewrite *rx)
{
    struct sdx_formula f;
    const int rank = sdx_rewrite_rank(rx, sdx_rewrite_input(rx, 0));
    const long long heads = sdx_rewrite_attr_int(rx->node, "num_heads", 0);
    const long long width = sdx_rewrite_attr_int(rx->node, "rotary_embedding_dim", 0);
    const bool pairs = sdx_rewrite_attr_int(rx->node, "interleaved", 0) != 0;
    if (rank != 3 && rank != 4) return sdx_rewrite_refuse(rx, "the rank of input 0 is not known");
    SDX_TRY(begin(&f, rx, "Mul", 0));
    if (rank == 3)
        sdx_formula_add(&f, "x = Reshape(in0, [0,0,%lld,-1])", heads);
    else
        sdx_formula_add(&f, "x = Transpose(in0){perm=[0,2,1,3]}");
    sdx_formula_add(&f, "turned = x; cosine = in1; sine = in2");
    if (sdx_rewrite_input(rx, 3).len)
        sdx_formula_add(&f, "cosine = Gather(cosine, in3); sine = Gather(sine, in3)");
    if (width)
        sdx_formula_add(&f,
                        "turned = Slice(x, [0], [%lld], [3]); cosine = Slice(cosine, [0], [%lld], "
                        "[2]); sine = Slice(sine, [0], [%lld], [2])",
                        width, width / 2, width / 2);
    if (pairs)
        sdx_formula_add(&f, "a = Slice(turned, [0], [" TO_END "], [3], [2]);"
                            "b = Slice(turned, [1], [" TO_END "], [3], [2])");
    else
        sdx_formula_add(&f, "half = Div(Shape(turned){start=3}, [2]);"
                            "a = Slice(turned, [0], half, [3]);"
                            "b = Slice(turned, half, [" TO_END "], [3])");
    sdx_formula_add(&f, "cosine = Unsqueeze(cosine, [2]); sine = Unsqueeze(sine, [2]);"
                        "real = Sub(Mul(cosine, a), Mul(sine, b));"
                        "other = Add(Mul(sine, a), Mul(cosine, b))");
    if (pairs)
        sdx_formula_add(&f, "y = Reshape(Concat(Unsqueeze(real, [4]), Unsqueeze(other, [4]))"
                            "{axis=4}, Shape(turned))");
    else
        sdx_formula_add(&f, "y = Concat(real, other){axis=3}");
    if (width)
        sdx_formula_add(&f, "y = Concat(y, Slice(x, [%lld], [" TO_END "], [3])){axis=3}", width);
    sdx_formula_add(&f, rank == 3 ? "out0 = Reshape(y, Shape(in0))"
                                  : "out0 = Transpose(y){perm=[0,2,1,3]}");
    return SDX_OK;
}

/* ---- losses ---- */

/* out0 of the logarithms of probabilities `logs` [N, C, ...] and the classes of input 1. */
static void expand_loss(struct sdx_rewrite *rx, struct sdx_formula *f)
{
    const struct sdx_onnx_attr *ignored = sdx_rewrite_attr(rx->node, "ignore_index");
    const bool mean = sdx_rewrite_attr_is(rx->node, "reduction", "mean", true);
    const bool weighted = sdx_rewrite_input(rx, 2).len > 0;
    sdx_formula_add(f, "at = Cast(in1){to=7}");
    if (ignored)
        sdx_formula_add(f, "skip = Equal(at, %lldi); at = Where(skip, 0i, at)",
                        (long long)ignored->i);
    sdx_formula_add(f, "y = Neg(Squeeze(GatherElements(logs, Unsqueeze(at){axes=[1]}){axis=1})"
                       "{axes=[1]})");
    if (weighted) sdx_formula_add(f, "weight = Gather(in2, at); y = Mul(y, weight)");
    if (ignored) sdx_formula_add(f, "y = Where(skip, 0, y)");
    if (ignored)
        sdx_formula_add(f, weighted ? "weight = Where(skip, 0, weight)"
                                    : "weight = Where(skip, 0, 1)");
    if (sdx_rewrite_attr_is(rx->node, "reduction", "none", false))
        sdx_formula_add(f, "out0 = y");
    else if (!mean)
        sdx_formula_add(f, "out0 = ReduceSum(y){keepdims=0}");
    else if (weighted || ignored)
        sdx_formula_add(f, "out0 = Div(ReduceSum(y){keepdims=0}, ReduceSum(weight){keepdims=0})");
    else
        sdx_formula_add(f, "out0 = ReduceMean(y){keepdims=0}");
}

enum sdx_status sdx_adapt_expand_nll(struct sdx_rewrite *rx)
{
    struct sdx_formula f;
    SDX_TRY(begin(&f, rx, "ReduceSum", 0));
    sdx_formula_add(&f, "logs = in0");
    expand_loss(rx, &f);
    return SDX_OK;
}

/* LogSoftmax of before version 13 takes its last axes as one. */
enum sdx_status sdx_adapt_expand_cross_entropy(struct sdx_rewrite *rx)
{
    struct sdx_formula f;
    SDX_TRY(begin(&f, rx, "ReduceSum", 0));
    sdx_formula_add(&f, "flat = Transpose(Reshape(in0, [0,0,-1])){perm=[0,2,1]};"
                        "logs = Reshape(Transpose(LogSoftmax(flat){axis=2}){perm=[0,2,1]},"
                        "Shape(in0)); out1 = logs");
    expand_loss(rx, &f);
    return SDX_OK;
}

/* ---- others ---- */

enum sdx_status sdx_adapt_expand_trilu(struct sdx_rewrite *rx)
{
    struct sdx_formula f;
    const bool upper = sdx_rewrite_attr_int(rx->node, "upper", 1) != 0;
    SDX_TRY(begin(&f, rx, "Where", 1));
    sdx_formula_add(&f, "shape = Shape(in0);"
                        "row = Unsqueeze(Range(0i, Gather(shape, -2i), 1i), [1]);"
                        "column = Range(0i, Gather(shape, -1i), 1i);"
                        "ahead = Sub(column, row)");
    sdx_formula_add(&f, sdx_rewrite_input(rx, 1).len ? "k = Reshape(in1, [1])" : "k = 0i");
    sdx_formula_add(&f, upper ? "keep = GreaterOrEqual(ahead, k)" : "keep = LessOrEqual(ahead, k)");
    sdx_formula_add(&f, "out0 = Where(keep, in0, 0)");
    return SDX_OK;
}

enum sdx_status sdx_adapt_expand_swiglu(struct sdx_rewrite *rx)
{
    struct sdx_formula f;
    SDX_TRY(begin(&f, rx, "Swish", 0));
    const float alpha = sdx_rewrite_attr_float(rx->node, "alpha", 1);
    struct sdx_onnx_node *gate =
        sdx_rewrite_before(rx, "Swish", SDX_NONE, sdx_rewrite_input(rx, 0), SDX_NONE, SDX_NONE);
    sdx_rewrite_set_float(rx, gate, "alpha", alpha);
    sdx_formula_set(&f, "gate", sdx_rewrite_out(gate));
    sdx_formula_add(&f, "out0 = Mul(gate, in1)");
    return SDX_OK;
}

enum sdx_status sdx_adapt_expand_causal_conv(struct sdx_rewrite *rx)
{
    struct sdx_formula f;
    const int64_t *dims = sdx_rewrite_dims(rx, sdx_rewrite_input(rx, 1));
    if (sdx_rewrite_rank(rx, sdx_rewrite_input(rx, 1)) != 3 || dims[0] < 1 || dims[2] < 1)
        return sdx_rewrite_refuse(rx, "its formula needs the shape of input 1, which is not known");
    SDX_TRY(begin(&f, rx, "Conv", 0));
    if (sdx_rewrite_input(rx, 3).len)
        sdx_formula_add(&f, "x = Concat(in3, in0){axis=2}");
    else
        sdx_formula_add(&f, "x = Pad(in0, [0,0,%lld,0,0,0], 0)", (long long)dims[2] - 1);
    sdx_formula_add(&f, "y = Conv(x, in1, in2){group=%lld}", (long long)dims[0]);
    if (sdx_rewrite_attr_is(rx->node, "activation", "none", true))
        sdx_formula_add(&f, "out0 = y");
    else if (f.dtype == SDX_F32)
        sdx_formula_add(&f, "out0 = Mul(y, Sigmoid(y))");
    else
        sdx_formula_add(&f, "y = Cast(y){to=1}; out0 = Cast(Mul(y, Sigmoid(y))){to=%d}", f.dtype);
    sdx_formula_add(&f, "end = Shape(x){start=2}; out1 = Slice(x, Sub(end, [%lld]), end, [2])",
                    (long long)dims[2] - 1);
    return SDX_OK;
}

/* Sums of two cosines, as the standard's function makes them. */
static enum sdx_status expand_window(struct sdx_rewrite *rx, double a, double b, double c)
{
    struct sdx_formula f;
    SDX_TRY(begin(&f, rx, "Cast", 0));
    f.dtype = SDX_F32;
    sdx_formula_set(&f, "a", number_of(rx, SDX_F32, a));
    sdx_formula_set(&f, "b", number_of(rx, SDX_F32, b));
    sdx_formula_set(&f, "tau", number_of(rx, SDX_F32, 6.283185307179586));
    sdx_formula_add(&f, "size = Cast(in0){to=1}; length = size");
    if (!sdx_rewrite_attr_int(rx->node, "periodic", 1))
        sdx_formula_add(&f, "length = Sub(size, 1)");
    sdx_formula_add(&f, "angle = Mul(Range(0, size, 1), Div(tau, length));"
                        "y = Sub(a, Mul(b, Cos(angle)))");
    if (c != 0) {
        sdx_formula_set(&f, "c", number_of(rx, SDX_F32, c));
        sdx_formula_add(&f, "y = Add(y, Mul(c, Cos(Mul(angle, 2))))");
    }
    sdx_formula_add(&f, "out0 = Cast(y){to=%lld}",
                    (long long)sdx_rewrite_attr_int(rx->node, "output_datatype", SDX_F32));
    return SDX_OK;
}

enum sdx_status sdx_adapt_expand_hann(struct sdx_rewrite *rx)
{
    return expand_window(rx, 0.5, 0.5, 0);
}

enum sdx_status sdx_adapt_expand_hamming(struct sdx_rewrite *rx)
{
    return expand_window(rx, 25.0 / 46.0, 21.0 / 46.0, 0);
}

enum sdx_status sdx_adapt_expand_blackman(struct sdx_rewrite *rx)
{
    return expand_window(rx, 0.42, 0.5, 0.08);
}
