/* SPDX-License-Identifier: Apache-2.0
 * Operators of com.microsoft that ONNX Runtime's optimiser and quantiser write: fused forms of the
 * standard's, activations, and the normalisations of transformers. Attention forms are not here. */
#include <math.h>

#include "kernels/vec.h"
#include "ops/contrib_quant.h"
#include "ops/layout.h"
#include "ops/qlinear.h"
#include "ops/shared.h"
#include "tensor/convert.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

static struct sdx_tensor *input(struct sdx_prepare *px, int i)
{
    return sdx_prepare_has(px, i) ? px->in[i] : NULL;
}

static struct sdx_tensor *output(struct sdx_prepare *px, int k)
{
    return k < px->count_out ? px->out[k] : NULL;
}

static enum sdx_status want_f32(struct sdx_prepare *px)
{
    if (px->out[0]->dtype == SDX_F32) return SDX_OK;
    return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s", NAME(px->node),
                    sdx_dtype_short_name(px->out[0]->dtype));
}

/* ---- activations ---- */

enum gelu { GELU_ERF, GELU_TANH, GELU_QUICK };
struct map {
    enum gelu kind;
    float alpha;
    int64_t width; /* of a row: the bias' length, or a convenient one */
    int64_t rows, rows_a_part;
};

static void map_row(const struct map *p, const float *x, const float *bias, float *y, size_t n)
{
    const struct sdx_vec *v = sdx_vec();
    float t[256];
    if (p->kind == GELU_QUICK) {
        for (size_t at = 0; at < n; at += 256) {
            size_t count = n - at < 256 ? n - at : 256;
            v->f32_affine(x + at, p->alpha, 0, t, count);
            v->f32_sigmoid(t, t, count, 0, 0);
            v->f32_mul(x + at, 1, t, 1, y + at, count);
        }
        return;
    }
    if (bias) {
        v->f32_add(x, 1, bias, 1, y, n);
        x = y;
    }
    if (p->kind == GELU_ERF)
        v->f32_gelu_erf(x, y, n, 0, 0);
    else
        v->f32_gelu_tanh(x, y, n, 0, 0);
}

static enum sdx_status run_map(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct map *p = step->params;
    int64_t begin = part * p->rows_a_part, end = begin + p->rows_a_part;
    const float *bias = step->in[1] ? step->in[1]->data : NULL;
    for (int64_t r = begin; r < end && r < p->rows && !sdx_exec_cancelled(x); r++) {
        int64_t at = r * p->width, n = step->in[0]->count - at;
        map_row(p, (const float *)step->in[0]->data + at, bias, (float *)step->out[0]->data + at,
                (size_t)(n < p->width ? n : p->width));
    }
    return SDX_OK;
}

static enum sdx_status prepare_map(struct sdx_prepare *px, enum gelu kind, struct sdx_tensor *bias)
{
    struct map *p = SDX_PREPARE_NEW(px, struct map);
    const struct sdx_tensor *x = px->in[0];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(want_f32(px));
    if (x->count == 0) return SDX_OK;
    if (bias && (x->rank < 1 || bias->count != x->dims[x->rank - 1]))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: bias has %lld values, not the last axis'",
                        NAME(px->node), (long long)bias->count);
    p->kind = kind;
    p->alpha = sdx_ir_attr_float(px->node, "alpha", 1.702f);
    p->width = bias ? bias->count : 1024;
    p->rows = (x->count + p->width - 1) / p->width;
    int64_t parts = sdx_prepare_parts((double)x->count, 1 << 14, 128);
    p->rows_a_part = (p->rows + parts - 1) / parts;
    struct sdx_tensor *in[] = {px->in[0], bias};
    return sdx_prepare_step_on(px, "gelu", run_map, p,
                               (p->rows + p->rows_a_part - 1) / p->rows_a_part, 0, 2, in, 1,
                               px->out);
}

static enum sdx_status prepare_gelu(struct sdx_prepare *px)
{
    return prepare_map(px, GELU_ERF, NULL);
}

static enum sdx_status prepare_bias_gelu(struct sdx_prepare *px)
{
    return prepare_map(px, GELU_ERF, px->in[1]);
}

static enum sdx_status prepare_fast_gelu(struct sdx_prepare *px)
{
    return prepare_map(px, GELU_TANH, input(px, 1));
}

static enum sdx_status prepare_quick_gelu(struct sdx_prepare *px)
{
    return prepare_map(px, GELU_QUICK, NULL);
}

/* ---- SkipLayerNormalization and its simplified form ---- */

enum { SKIP_X, SKIP_SKIP, SKIP_GAMMA, SKIP_BETA, SKIP_BIAS };
struct skip {
    int64_t width, rows, rows_a_part, skip_rows; /* skip's rows repeat over the batch */
    float epsilon;
    bool is_simple;
};

static enum sdx_status infer_skip(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    for (int k = 0; k < ix->count_out; k++) {
        sdx_infer_set_dtype(ix, k, k == 0 || k == 3 ? sdx_infer_dtype(ix, 0) : SDX_F32);
        if (rank < 1) continue;
        int64_t *out = sdx_infer_new_dims(ix, k, rank);
        if (!out) return SDX_FAIL_MEMORY(ix->cx);
        memcpy(out, dims, (size_t)rank * sizeof *out);
        if (k == 1 || k == 2) out[rank - 1] = 1;
    }
    return SDX_OK;
}

static enum sdx_status run_skip(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct skip *p = step->params;
    const struct sdx_vec *v = sdx_vec();
    int64_t begin = part * p->rows_a_part, end = begin + p->rows_a_part;
    size_t n = (size_t)p->width;
    float mean = 0, inverse = 0;
    for (int64_t r = begin; r < end && r < p->rows && !sdx_exec_cancelled(x); r++) {
        int64_t at = r * p->width, from = r % p->skip_rows * p->width;
        float *y = (float *)step->out[0]->data + at;
        float *sum = step->out[3] ? (float *)step->out[3]->data + at : y;
        v->f32_add((const float *)step->in[SKIP_X]->data + at, 1,
                   (const float *)step->in[SKIP_SKIP]->data + from, 1, sum, n);
        if (step->in[SKIP_BIAS]) v->f32_add(sum, 1, step->in[SKIP_BIAS]->data, 1, sum, n);
        const struct sdx_norm_rows row = {
            .x = sum,
            .scale = step->in[SKIP_GAMMA]->data,
            .bias = step->in[SKIP_BETA] ? step->in[SKIP_BETA]->data : NULL,
            .y = y,
            .n = n,
            .rows = 1,
            .epsilon = p->epsilon,
            .mean = &mean,
            .inv_std = &inverse,
        };
        if (p->is_simple)
            v->f32_rms_norm(&row);
        else
            v->f32_layer_norm(&row);
        if (step->out[1]) ((float *)step->out[1]->data)[r] = mean;
        if (step->out[2]) ((float *)step->out[2]->data)[r] = inverse;
    }
    return SDX_OK;
}

static enum sdx_status prepare_skip(struct sdx_prepare *px, bool is_simple)
{
    struct skip *p = SDX_PREPARE_NEW(px, struct skip);
    const struct sdx_tensor *x = px->in[0];
    struct sdx_tensor *in[] = {px->in[0], px->in[1], px->in[2], is_simple ? NULL : input(px, 3),
                               input(px, is_simple ? 3 : 4)};
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(want_f32(px));
    if (x->count == 0) return SDX_OK;
    p->is_simple = is_simple;
    p->epsilon = sdx_ir_attr_float(px->node, "epsilon", 1e-12f);
    p->width = x->rank > 0 ? x->dims[x->rank - 1] : 1;
    p->rows = x->count / p->width;
    p->skip_rows = in[SKIP_SKIP]->count / p->width;
    bool fits =
        in[SKIP_SKIP]->count % p->width == 0 && p->skip_rows > 0 && p->rows % p->skip_rows == 0;
    for (int i = SKIP_GAMMA; i <= SKIP_BIAS; i++)
        fits = fits && (!in[i] || in[i]->count == p->width);
    if (!fits)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: shapes of the inputs do not agree",
                        NAME(px->node));
    int64_t parts = sdx_prepare_parts((double)x->count, 1 << 14, 128);
    p->rows_a_part = (p->rows + parts - 1) / parts;
    struct sdx_tensor *out[] = {px->out[0], output(px, 1), output(px, 2), output(px, 3)};
    return sdx_prepare_step_on(px, "skip_norm", run_skip, p,
                               (p->rows + p->rows_a_part - 1) / p->rows_a_part, 0, 5, in, 4, out);
}

static enum sdx_status prepare_skip_norm(struct sdx_prepare *px)
{
    return prepare_skip(px, false);
}

static enum sdx_status prepare_skip_simple(struct sdx_prepare *px)
{
    return prepare_skip(px, true);
}

/* ---- EmbedLayerNormalization ---- */

enum {
    EMBED_IDS,
    EMBED_SEGMENT_IDS,
    EMBED_WORDS,
    EMBED_POSITIONS,
    EMBED_SEGMENTS,
    EMBED_GAMMA,
    EMBED_BETA,
    EMBED_MASK,
    EMBED_POSITION_IDS,
    EMBED_COUNT
};

static enum sdx_status infer_embed(struct sdx_infer *ix)
{
    const int64_t *ids = sdx_infer_dims(ix, EMBED_IDS), *words = sdx_infer_dims(ix, EMBED_WORDS);
    for (int k = 0; k < ix->count_out; k++)
        sdx_infer_set_dtype(ix, k, k == 1 ? SDX_I32 : sdx_infer_dtype(ix, EMBED_WORDS));
    if (!ids || !words) return SDX_OK;
    if (sdx_infer_rank(ix, EMBED_IDS) != 2 || sdx_infer_rank(ix, EMBED_WORDS) != 2)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "EmbedLayerNormalization: input_ids and word_embedding must have rank 2");
    const int64_t out[] = {ids[0], ids[1], words[1]};
    for (int k = 0; k < ix->count_out; k++)
        SDX_TRY(sdx_infer_set_dims(ix, k, k == 1 ? 1 : 3, out));
    return SDX_OK;
}

/* Row `id` of a table of embeddings; NULL: there is none (error is set). */
static const float *row_of(struct sdx_exec *x, const struct sdx_tensor *table, int64_t id)
{
    if (id >= 0 && id < table->dims[0]) return (const float *)table->data + id * table->dims[1];
    (void)SDX_FAIL(x->cx, SDX_RUN_FAILED,
                   "EmbedLayerNormalization: index %lld is not in a table of %lld rows",
                   (long long)id, (long long)table->dims[0]);
    return NULL;
}

static int64_t id_at(const struct sdx_tensor *t, int64_t i)
{
    return sdx_load_i64(t->dtype, t->data, t->count == 1 ? 0 : i);
}

/* One batch entry. */
static enum sdx_status run_embed(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    float epsilon = *(const float *)step->params;
    const struct sdx_vec *v = sdx_vec();
    int64_t length = step->in[EMBED_IDS]->dims[1], width = step->in[EMBED_WORDS]->dims[1];
    const struct sdx_tensor *ids = step->in[EMBED_POSITION_IDS], *mask = step->in[EMBED_MASK];
    int32_t live = 0;
    size_t n = (size_t)width;
    for (int64_t t = 0; t < length; t++) {
        int64_t at = part * length + t;
        float *y = (float *)step->out[0]->data + at * width;
        float *sum = step->out[2] ? (float *)step->out[2]->data + at * width : y;
        int64_t position = !ids ? t : id_at(ids, ids->count == length ? t : at);
        const float *word = row_of(x, step->in[EMBED_WORDS], id_at(step->in[EMBED_IDS], at));
        const float *place = row_of(x, step->in[EMBED_POSITIONS], position);
        if (!word || !place) return SDX_RUN_FAILED;
        v->f32_add(word, 1, place, 1, sum, n);
        if (step->in[EMBED_SEGMENT_IDS] && step->in[EMBED_SEGMENTS]) {
            const float *segment =
                row_of(x, step->in[EMBED_SEGMENTS], id_at(step->in[EMBED_SEGMENT_IDS], at));
            if (!segment) return SDX_RUN_FAILED;
            v->f32_add(sum, 1, segment, 1, sum, n);
        }
        v->f32_layer_norm(&(struct sdx_norm_rows){.x = sum,
                                                  .scale = step->in[EMBED_GAMMA]->data,
                                                  .bias = step->in[EMBED_BETA]->data,
                                                  .y = y,
                                                  .n = n,
                                                  .rows = 1,
                                                  .epsilon = epsilon});
        if (mask) live += id_at(mask, at) != 0;
    }
    if (step->out[1]) ((int32_t *)step->out[1]->data)[part] = live;
    return SDX_OK;
}

static enum sdx_status prepare_embed(struct sdx_prepare *px)
{
    struct sdx_tensor *in[EMBED_COUNT];
    float *epsilon = SDX_PREPARE_NEW(px, float);
    if (!epsilon) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(want_f32(px));
    *epsilon = sdx_ir_attr_float(px->node, "epsilon", 1e-12f);
    for (int i = 0; i < EMBED_COUNT; i++)
        in[i] = input(px, i);
    int64_t places = in[EMBED_IDS]->count, length = in[EMBED_IDS]->dims[1];
    int64_t width = in[EMBED_WORDS]->dims[1];
    static const int tables[] = {EMBED_POSITIONS, EMBED_SEGMENTS},
                     lists[] = {EMBED_SEGMENT_IDS, EMBED_MASK, EMBED_POSITION_IDS};
    bool fits = in[EMBED_GAMMA]->count == width && in[EMBED_BETA]->count == width;
    for (int i = 0; i < 2; i++)
        fits = fits &&
               (!in[tables[i]] || (in[tables[i]]->rank == 2 && in[tables[i]]->dims[1] == width));
    for (int i = 0; i < 3; i++) {
        const struct sdx_tensor *t = in[lists[i]];
        fits = fits && (!t || t->count == places || (i == 2 && t->count == length));
    }
    if (!fits)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "EmbedLayerNormalization: shapes of the inputs do not agree");
    struct sdx_tensor *out[] = {px->out[0], output(px, 1), output(px, 2)};
    if (in[EMBED_IDS]->dims[0] == 0) return SDX_OK;
    return sdx_prepare_step_on(px, "embed_norm", run_embed, epsilon, in[EMBED_IDS]->dims[0], 0,
                               EMBED_COUNT, in, 3, out);
}

static const struct sdx_op ops[] = {
    {"FusedConv", 1, 0, sdx_conv_infer, KERNEL(sdx_conv_prepare), .cost = sdx_conv_cost,
     .layout = sdx_conv_layout, .packs = 1u << 1,
     .flags = SDX_OP_VIA_F32 | SDX_OP_NARROW_WEIGHTS | SDX_OP_TAKES_BLOCKS,
     .note = "1 to 3 spatial axes"},
    {"FusedMatMul", 1, 0, sdx_matmul_infer, KERNEL(sdx_matmul_prepare), .cost = sdx_matmul_cost,
     .layout = sdx_matmul_layout, .packs = 1u << 1,
     .flags = SDX_OP_VIA_F32 | SDX_OP_NARROW_WEIGHTS},
    {"TransposeMatMul", 1, 0, sdx_matmul_infer, KERNEL(sdx_matmul_prepare), .cost = sdx_matmul_cost,
     .flags = SDX_OP_VIA_F32 | SDX_OP_NARROW_WEIGHTS},
    {"FusedMatMulActivation", 1, 0, sdx_matmul_infer, KERNEL(sdx_matmul_prepare),
     .cost = sdx_matmul_cost, .flags = SDX_OP_VIA_F32 | SDX_OP_NARROW_WEIGHTS},
    {"FusedGemm", 1, 0, sdx_gemm_infer, KERNEL(sdx_fused_gemm_prepare), .cost = sdx_gemm_cost,
     .flags = SDX_OP_VIA_F32 | SDX_OP_NARROW_WEIGHTS},
    {"Gelu", 1, 0, sdx_infer_same, KERNEL(prepare_gelu),
     .flags = SDX_OP_VIA_F32 | SDX_OP_INPLACE(0), .note = "float types but double"},
    {"BiasGelu", 1, 0, sdx_infer_same, KERNEL(prepare_bias_gelu),
     .flags = SDX_OP_VIA_F32 | SDX_OP_INPLACE(0), .note = "float types but double"},
    {"FastGelu", 1, 0, sdx_infer_same, KERNEL(prepare_fast_gelu),
     .flags = SDX_OP_VIA_F32 | SDX_OP_INPLACE(0), .note = "float types but double"},
    {"QuickGelu", 1, 0, sdx_infer_same, KERNEL(prepare_quick_gelu),
     .flags = SDX_OP_VIA_F32 | SDX_OP_INPLACE(0), .note = "float types but double"},
    {"SkipLayerNormalization", 1, 0, infer_skip, KERNEL(prepare_skip_norm), .flags = SDX_OP_VIA_F32,
     .note = "float types but double"},
    {"SkipSimplifiedLayerNormalization", 1, 0, infer_skip, KERNEL(prepare_skip_simple),
     .flags = SDX_OP_VIA_F32, .note = "float types but double"},
    {"EmbedLayerNormalization", 1, 0, infer_embed, KERNEL(prepare_embed), .flags = SDX_OP_VIA_F32},
    {"QuantizeLinear", 1, 0, sdx_quantize_infer, KERNEL(sdx_quantize_prepare)},
    {"DequantizeLinear", 1, 0, sdx_dequantize_infer, KERNEL(sdx_dequantize_prepare)},
    {"QGemm", 1, 0, sdx_qgemm_infer, KERNEL(sdx_qgemm_prepare), .cost = sdx_gemm_cost},
    {"DynamicQuantizeMatMul", 1, 0, sdx_float_matmul_infer, KERNEL(sdx_dynamic_matmul_prepare),
     .cost = sdx_matmul_cost},
    {"MatMulIntegerToFloat", 1, 0, sdx_float_matmul_infer, KERNEL(sdx_integer_matmul_prepare),
     .cost = sdx_matmul_cost},
    {"MatMulNBits", 1, 0, sdx_nbits_infer, KERNEL(sdx_nbits_prepare), .cost = sdx_nbits_cost,
     .packs = SDX_NBITS_PACKS, .flags = SDX_OP_VIA_F32,
     .note = "2, 4 and 8 bits; in integers with accuracy_level 4"},
    {"QLinearAdd", 1, 0, sdx_qlinear_binary_infer, KERNEL(sdx_qlinear_add_prepare),
     .layout = sdx_layout_elementwise,
     .flags = SDX_OP_PHYSICAL | SDX_OP_INPLACE(0) | SDX_OP_INPLACE(3)},
    {"QLinearMul", 1, 0, sdx_qlinear_binary_infer, KERNEL(sdx_qlinear_mul_prepare),
     .layout = sdx_layout_elementwise,
     .flags = SDX_OP_PHYSICAL | SDX_OP_INPLACE(0) | SDX_OP_INPLACE(3)},
    {"QLinearSigmoid", 1, 0, sdx_infer_same, LOWER(sdx_qlinear_sigmoid_lower)},
    {"QLinearLeakyRelu", 1, 0, sdx_infer_same, LOWER(sdx_qlinear_leaky_relu_lower)},
    {"QLinearSoftmax", 1, 0, sdx_infer_same, LOWER(sdx_qlinear_softmax_lower)},
    {"QLinearAveragePool", 1, 0, sdx_qlinear_average_pool_infer,
     LOWER(sdx_qlinear_average_pool_lower)},
    {"QLinearGlobalAveragePool", 1, 0, sdx_qlinear_global_average_pool_infer,
     KERNEL(sdx_qlinear_global_average_pool_prepare),
     .layout = sdx_qlinear_global_average_pool_layout},
    {"QLinearConcat", 1, 0, sdx_qlinear_concat_infer, LOWER(sdx_qlinear_concat_lower)},
    {"QLinearReduceMean", 1, 0, sdx_qlinear_reduce_mean_infer,
     LOWER(sdx_qlinear_reduce_mean_lower)},
    {"QLinearWhere", 1, 0, sdx_qlinear_where_infer, LOWER(sdx_qlinear_where_lower)},
    {"QEmbedLayerNormalization", 1, 0, sdx_qembed_infer, LOWER(sdx_qembed_lower)},
};

const struct sdx_op_family sdx_ops_contrib = FAMILY("com.microsoft", ops);
