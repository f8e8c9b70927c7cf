/* SPDX-License-Identifier: Apache-2.0
 * Zero points, scales and the final rounding of integer products and convolutions. The block that
 * holds them is 32-bit words: zero_y, scale_y, zero_a, scale_a, zero_b, scale_b, factor. */
#include "ops/requant.h"

#include "tensor/convert.h"

static size_t block_words(int64_t rows, int64_t columns)
{
    return 2 + 2 * (size_t)rows + 3 * (size_t)columns;
}

/* How many of `count` are given: each its own, or one for all. */
static int64_t given_of(const struct sdx_tensor *t, int64_t count)
{
    return count > 0 && (!t || t->count == 1) ? 1 : count;
}

static void fill_zeros(const struct sdx_tensor *t, int64_t count, int32_t *zeros)
{
    const int64_t given = given_of(t, count);
    if (t)
        sdx_convert(SDX_I32, zeros, 0, t->dtype, t->data, 0, given, true);
    else if (given > 0)
        zeros[0] = 0;
    for (int64_t i = given; i < count; i++)
        zeros[i] = zeros[0];
}
static void fill_scales(const struct sdx_tensor *t, int64_t count, float *scales)
{
    const int64_t given = given_of(t, count);
    if (t)
        sdx_convert(SDX_F32, scales, 0, t->dtype, t->data, 0, given, true);
    else if (given > 0)
        scales[0] = 1.0f;
    for (int64_t i = given; i < count; i++)
        scales[i] = scales[0];
}

static void fill(const struct sdx_qsource *q, void *block)
{
    const int64_t rows = q->rows, columns = q->columns, given = given_of(q->scale_b, columns);
    int32_t *zeros_a = (int32_t *)block + 2, *zeros_b = zeros_a + 2 * rows;
    float *scale_y = (float *)block + 1, *scales_a = scale_y + 1 + rows;
    float *scales_b = scales_a + rows + columns, *factors = scales_b + columns;
    fill_zeros(q->zero_y, 1, block);
    fill_scales(q->scale_y, 1, scale_y);
    fill_zeros(q->zero_a, rows, zeros_a);
    fill_scales(q->scale_a, rows, scales_a);
    fill_zeros(q->zero_b, columns, zeros_b);
    fill_scales(q->scale_b, columns, scales_b);
    for (int64_t j = 0; j < given; j++)
        factors[j] = scales_a[0] * scales_b[j] / *scale_y;
    for (int64_t j = given; j < columns; j++)
        factors[j] = factors[0];
}

struct sdx_qfacts sdx_qfacts_view(const void *block, int64_t rows, int64_t columns)
{
    const int32_t *words = block;
    const float *floats = block;
    int64_t b = 2 + 2 * rows;
    return (struct sdx_qfacts){.zero_y = words[0],
                               .scale_y = floats[1],
                               .zero_a = words + 2,
                               .scale_a = floats + 2 + rows,
                               .zero_b = words + b,
                               .scale_b = floats + b + columns,
                               .factor = floats + b + 2 * columns};
}

static enum sdx_status run_fill(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    struct sdx_qsource q = *(const struct sdx_qsource *)step->params;
    q.zero_a = step->in[0];
    q.scale_a = step->in[1];
    q.zero_b = step->in[2];
    q.scale_b = step->in[3];
    q.zero_y = step->in[4];
    q.scale_y = step->in[5];
    fill(&q, step->out[0]->data);
    return SDX_OK;
}

static enum sdx_status check_count(struct sdx_prepare *px, const struct sdx_tensor *t,
                                   int64_t count, const char *what)
{
    if (!t || t->count == 1 || t->count == count) return SDX_OK;
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: %s has %lld values, expected 1 or %lld",
                    SDX_STR_ARG(px->node->op_type), what, (long long)t->count, (long long)count);
}

enum sdx_status sdx_qfacts_prepare(struct sdx_prepare *px, const struct sdx_qsource *source,
                                   const void **fixed, struct sdx_tensor **temp)
{
    struct sdx_tensor *in[] = {source->zero_a,  source->scale_a, source->zero_b,
                               source->scale_b, source->zero_y,  source->scale_y};
    bool is_constant = true;
    for (int i = 0; i < 6; i++)
        is_constant = is_constant && (!in[i] || in[i]->is_constant);
    *fixed = NULL;
    *temp = NULL;
    SDX_TRY(check_count(px, source->zero_a, source->rows, "zero point of the first operand"));
    SDX_TRY(check_count(px, source->scale_a, source->rows, "scale of the first operand"));
    SDX_TRY(check_count(px, source->zero_b, source->columns, "zero point of the weights"));
    SDX_TRY(check_count(px, source->scale_b, source->columns, "scale of the weights"));
    SDX_TRY(check_count(px, source->zero_y, 1, "zero point of the output"));
    SDX_TRY(check_count(px, source->scale_y, 1, "scale of the output"));
    int64_t words = (int64_t)block_words(source->rows, source->columns);
    if (is_constant) {
        void *block = sdx_prepare_alloc(px, (size_t)words * 4);
        if (!block) return SDX_FAIL_MEMORY(px->cx);
        fill(source, block);
        *fixed = block;
        return SDX_OK;
    }
    struct sdx_qsource *params = SDX_PREPARE_NEW(px, struct sdx_qsource);
    *temp = sdx_prepare_temp(px, SDX_I32, 1, &words);
    if (!params || !*temp) return SDX_FAIL_MEMORY(px->cx);
    *params = *source;
    return sdx_prepare_step_on(px, "quant_facts", run_fill, params, 1, 0, 6, in, 1, temp);
}

enum sdx_status sdx_qclamp_read(struct sdx_prepare *px, struct sdx_qclamp *clamp)
{
    int64_t count = 0;
    const int64_t *bounds = sdx_ir_attr_ints(px->node, "clamp", &count);
    bool is_signed = px->out[0]->dtype == SDX_I8;
    *clamp = (struct sdx_qclamp){is_signed ? -128 : 0, is_signed ? 127 : 255};
    if (!bounds) return SDX_OK;
    if (count != 2 || bounds[0] < clamp->lo || bounds[1] > clamp->hi || bounds[0] > bounds[1])
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: attribute clamp is not a range of bytes",
                        SDX_STR_ARG(px->node->op_type));
    clamp->lo = (int32_t)bounds[0];
    clamp->hi = (int32_t)bounds[1];
    return SDX_OK;
}

void sdx_requantize(const int32_t *sums, int64_t n, int32_t bias, float factor, int32_t zero,
                    struct sdx_qclamp clamp, void *y)
{
    uint8_t *out = y;
    for (int64_t i = 0; i < n; i++) {
        float sum = (float)(int32_t)((uint32_t)sums[i] + (uint32_t)bias);
        out[i] = (uint8_t)sdx_round_saturate(sum * factor, zero, clamp.lo, clamp.hi);
    }
}
