/* SPDX-License-Identifier: Apache-2.0
 * QEmbedLayerNormalization of com.microsoft: rows of quantised tables of embeddings are added up
 * and normalised; the lengths are the counts of 1 in the mask. */
#include "kernels/vec.h"
#include "ops/attention_heads.h"

enum {
    IDS,
    SEGMENT_IDS,
    WORDS,
    POSITIONS,
    SEGMENTS,
    GAMMA,
    BETA,
    MASK,
    SCALES, /* of WORDS ... BETA */
    ZEROS = SCALES + 5,
    COUNT = ZEROS + 5
};

static enum sdx_status infer_coded_embed(struct sdx_infer *ix)
{
    const int64_t *ids = sdx_infer_dims(ix, IDS), *words = sdx_infer_dims(ix, WORDS);
    sdx_infer_set_dtype(ix, 0, SDX_F32);
    if (ix->count_out > 1) sdx_infer_set_dtype(ix, 1, SDX_I32);
    if (!ids || !words) return SDX_OK;
    if (sdx_infer_rank(ix, IDS) != 2 || sdx_infer_rank(ix, WORDS) != 2)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "QEmbedLayerNormalization: input_ids and word_embedding must have rank 2");
    const int64_t y[] = {ids[0], ids[1], words[1]};
    SDX_TRY(sdx_infer_set_dims(ix, 0, 3, y));
    return ix->count_out > 1 ? sdx_infer_set_dims(ix, 1, 1, ids) : SDX_OK;
}

/* Row `row` of table i as numbers. */
static void row_of(const struct sdx_step *step, int i, int64_t row, int64_t width, float *to)
{
    const struct sdx_tensor *t = step->in[i], *zero = step->in[ZEROS + i - WORDS];
    const float scale = *(const float *)step->in[SCALES + i - WORDS]->data;
    const void *from = (const uint8_t *)t->data + row * width;
    if (t->dtype == SDX_U8)
        sdx_vec()->u8_to_f32(from, scale, *(const uint8_t *)zero->data, to, (size_t)width);
    else
        sdx_vec()->s8_to_f32(from, scale, *(const int8_t *)zero->data, to, (size_t)width);
}

/* One batch entry. */
static enum sdx_status run_coded_embed(struct sdx_exec *x, const struct sdx_step *step,
                                       int64_t part)
{
    const float epsilon = *(const float *)step->params;
    const int64_t length = step->in[IDS]->dims[1], width = step->in[WORDS]->dims[1];
    float *row = x->scratch, *gamma = row + width, *beta = gamma + width;
    const int32_t *mask = step->in[MASK] ? (const int32_t *)step->in[MASK]->data : NULL;
    int32_t live = 0;
    row_of(step, GAMMA, 0, width, gamma);
    row_of(step, BETA, 0, width, beta);
    for (int64_t t = 0; t < length; t++) {
        const int64_t at = part * length + t;
        float *y = (float *)step->out[0]->data + at * width;
        const struct sdx_tensor *segments = step->in[SEGMENT_IDS];
        const int64_t rows[] = {((const int32_t *)step->in[IDS]->data)[at], t,
                                segments ? ((const int32_t *)segments->data)[at] : -1};
        for (int i = 0; i < (segments ? 3 : 2); i++) {
            if (rows[i] < 0 || rows[i] >= step->in[WORDS + i]->dims[0])
                return SDX_FAIL(
                    x->cx, SDX_RUN_FAILED,
                    "QEmbedLayerNormalization: index %lld is not in a table of %lld rows",
                    (long long)rows[i], (long long)step->in[WORDS + i]->dims[0]);
            row_of(step, WORDS + i, rows[i], width, i == 0 ? y : row);
            if (i > 0) sdx_vec()->f32_add(y, 1, row, 1, y, (size_t)width);
        }
        sdx_vec()->f32_layer_norm(&(struct sdx_norm_rows){.x = y,
                                                          .scale = gamma,
                                                          .bias = beta,
                                                          .y = y,
                                                          .n = (size_t)width,
                                                          .rows = 1,
                                                          .epsilon = epsilon});
        if (mask) live += mask[at] == 1;
    }
    if (step->out[1]) ((int32_t *)step->out[1]->data)[part] = live;
    return SDX_OK;
}

static enum sdx_status prepare_coded_embed(struct sdx_prepare *px)
{
    struct sdx_tensor *in[COUNT];
    float *epsilon = SDX_PREPARE_NEW(px, float);
    if (!epsilon) return SDX_FAIL_MEMORY(px->cx);
    *epsilon = sdx_ir_attr_float(px->node, "epsilon", 1e-12f);
    for (int i = 0; i < COUNT; i++)
        in[i] = sdx_heads_input(px, i);
    const int64_t width = in[WORDS]->dims[1], places = in[IDS]->count;
    bool fits = !in[SEGMENT_IDS] == !in[SEGMENTS] && (!in[MASK] || in[MASK]->count == places) &&
                (!in[SEGMENT_IDS] || in[SEGMENT_IDS]->count == places) && in[IDS]->dtype == SDX_I32;
    for (int i = WORDS; i <= BETA; i++) {
        const struct sdx_tensor *t = in[i], *scale = in[SCALES + i - WORDS];
        const struct sdx_tensor *zero = in[ZEROS + i - WORDS];
        if (!t) continue;
        fits = fits && scale && zero && scale->count == 1 && zero->count == 1 &&
               (t->dtype == SDX_U8 || t->dtype == SDX_I8) && zero->dtype == t->dtype &&
               t->rank == (i < GAMMA ? 2 : 1) && t->dims[t->rank - 1] == width;
    }
    if (!fits)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "QEmbedLayerNormalization: shapes or types of the inputs do not agree");
    if (in[IDS]->dims[0] == 0) return SDX_OK;
    struct sdx_tensor *out[] = {px->out[0], sdx_heads_output(px, 1)};
    return sdx_prepare_step_on(px, "embed_norm", run_coded_embed, epsilon, in[IDS]->dims[0],
                               3 * (size_t)width * sizeof(float), COUNT, in, 2, out);
}

static const struct sdx_op ops[] = {
    {"QEmbedLayerNormalization", 1, 0, infer_coded_embed, KERNEL(prepare_coded_embed)},
};

const struct sdx_op_family sdx_ops_contrib_embed = FAMILY("com.microsoft", ops);
