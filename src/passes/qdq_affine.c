/* SPDX-License-Identifier: Apache-2.0
 * Between DequantizeLinear and QuantizeLinear: what scales and shifts each channel by constants
 * becomes a ByteAffine. */
#include <math.h>

#include "passes/affine.h"
#include "passes/qdq.h"

enum { NODES_MAX = 8 }; /* one after the other */

/* Goes up from `value` to what was dequantised. false: something else stands between. */
static enum sdx_status gather(struct sdx_qdq *r, int32_t value, int rank, struct sdx_affine *f,
                              struct sdx_quant *x, bool *ok)
{
    struct sdx_affine one;
    *ok = false;
    SDX_TRY(sdx_affine_init(r->cx, r->ir, f->channels, &one));
    for (int i = 0; i < NODES_MAX; i++) {
        int operand = 0;
        const int32_t at = r->g->values[value].producer;
        if (i > 0 && sdx_qdq_dequantized(r, value, x)) {
            *ok = true;
            return SDX_OK;
        }
        if (at < 0 || r->uses[value] != 1) return SDX_OK;
        const struct sdx_ir_node *node = &r->g->nodes[at];
        if (node->is_dead || node->domain.len ||
            !sdx_affine_read(r->g, node, rank, &one, &operand) || node->inputs[operand] < 0)
            return SDX_OK;
        for (int64_t c = 0; c < f->channels; c++) {
            f->shift[c] += f->scale[c] * one.shift[c];
            f->scale[c] *= one.scale[c];
        }
        value = node->inputs[operand];
    }
    return SDX_OK;
}

enum sdx_status sdx_qdq_affine(struct sdx_qdq *r, int32_t n, int32_t value,
                               const struct sdx_quant *q, int32_t zero,
                               const struct sdx_ir_attr *attrs, int count_attrs, bool *done)
{
    const struct sdx_type *type = &r->g->values[value].type;
    struct sdx_affine f;
    struct sdx_quant x;
    bool ok = false;
    void *scale = NULL, *shift = NULL;
    if (!type->has_shape || type->rank < 2 || type->dims[1] < 1) return SDX_OK;
    const int64_t channels = type->dims[1];
    SDX_TRY(sdx_affine_init(r->cx, r->ir, channels, &f));
    SDX_TRY(gather(r, value, type->rank, &f, &x, &ok));
    const struct sdx_type *from = ok ? &r->g->values[x.x].type : NULL;
    if (!ok || x.dtype != q->dtype || !from->has_shape || from->rank != type->rank ||
        from->dims[1] != channels)
        return SDX_OK;
    const int32_t in[] = {x.x, sdx_qdq_constant(r, SDX_F32, 1, &channels, &scale),
                          sdx_qdq_constant(r, SDX_F32, 1, &channels, &shift), zero};
    if (in[1] < 0 || in[2] < 0) return SDX_FAIL_MEMORY(r->cx);
    for (int64_t c = 0; c < channels; c++) {
        const double by = f.scale[c] * x.s / q->s;
        ((float *)scale)[c] = (float)by;
        ((float *)shift)[c] = (float)(f.shift[c] / q->s - by * x.z);
        if (!isfinite(((float *)scale)[c]) || !isfinite(((float *)shift)[c])) return SDX_OK;
    }
    *done = true;
    return sdx_qdq_become(r, n, "ai.sardonyx", "ByteAffine", 1, 4, in, attrs, count_attrs);
}
