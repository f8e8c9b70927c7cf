/* SPDX-License-Identifier: Apache-2.0
 * MaxUnpool: values go back to the places that MaxPool told, zeros to all others. */
#include "ops/op.h"
#include "ops/step.h"
#include "ops/window.h"
#include "tensor/convert.h"

/* Shape that the attributes alone give: what the indices are relative to. */
static enum sdx_status unpool_shape(struct sdx_context *cx, const struct sdx_ir_node *node,
                                    int rank, const int64_t *in, int64_t *out)
{
    struct sdx_window w;
    SDX_TRY(sdx_window_read(cx, node, rank - 2, NULL, &w));
    out[0] = in[0];
    out[1] = in[1];
    for (int i = 0; i < w.rank; i++) {
        int64_t length = in[i + 2];
        out[i + 2] = -1;
        if (length < 0) continue;
        if (!sdx_mul_i64(length - 1, w.stride[i], &length) ||
            !sdx_add_i64(length, w.kernel[i] - w.pad_begin[i] - w.pad_end[i], &length) ||
            length < 0)
            return SDX_FAIL(cx, SDX_BAD_MODEL, "MaxUnpool: axis %d has no possible length", i + 2);
        out[i + 2] = length;
    }
    return SDX_OK;
}

static enum sdx_status infer_unpool(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    int64_t out[SDX_RANK_MAX], count;
    const int64_t *given;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    SDX_TRY(unpool_shape(ix->cx, ix->node, rank, sdx_infer_dims(ix, 0), out));
    if (!sdx_infer_has(ix, 2)) return sdx_infer_set_dims(ix, 0, rank, out);
    if (!sdx_infer_known_ints(ix, 2, &given, &count)) return SDX_OK;
    if (count != rank)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "MaxUnpool: output_shape has %lld values, expected %d", (long long)count,
                        rank);
    for (int i = 0; i < rank; i++)
        if (given[i] < 0 || (out[i] >= 0 && given[i] < out[i]))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                            "MaxUnpool: output_shape[%d] is %lld, expected at least %lld", i,
                            (long long)given[i], (long long)(out[i] < 0 ? 0 : out[i]));
    return sdx_infer_set_dims(ix, 0, rank, given);
}

struct unpool {
    int64_t dims[SDX_RANK_MAX]; /* what the indices are relative to */
    int64_t count;
};

static enum sdx_status run_unpool(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct unpool *p = step->params;
    const struct sdx_tensor *in = step->in[0], *out = step->out[0];
    const int64_t *index = step->in[1]->data;
    size_t size = out->dtype == SDX_F64 ? 8 : 4;
    const bool is_same = memcmp(p->dims, out->dims, (size_t)out->rank * sizeof(int64_t)) == 0;
    memset(out->data, 0, out->bytes);
    bool is_inside = is_same && size == 4;
    for (int64_t i = 0; is_inside && i < in->count; i++) {
        is_inside = (uint64_t)index[i] < (uint64_t)p->count;
        if (is_inside) ((float *)out->data)[index[i]] = ((const float *)in->data)[i];
    }
    if (is_inside) return SDX_OK;
    for (int64_t i = 0; i < in->count; i++) {
        if (index[i] < 0 || index[i] >= p->count)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "MaxUnpool: index %lld is not in 0..%lld",
                            (long long)index[i], (long long)(p->count - 1));
        int64_t rest = index[i], at = is_same ? rest : 0, stride = 1;
        for (int d = out->rank - 1; d >= 0 && !is_same; d--) {
            at += rest % p->dims[d] * stride;
            rest /= p->dims[d];
            stride *= out->dims[d];
        }
        if (size == 4)
            ((float *)out->data)[at] = ((const float *)in->data)[i];
        else
            ((double *)out->data)[at] = ((const double *)in->data)[i];
    }
    return SDX_OK;
}

static enum sdx_status prepare_unpool(struct sdx_prepare *px)
{
    struct unpool *p = SDX_PREPARE_NEW(px, struct unpool);
    const struct sdx_tensor *x = px->in[0];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (x->dtype != SDX_F32 && x->dtype != SDX_F64)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "MaxUnpool: element type %s",
                        sdx_dtype_short_name(x->dtype));
    if (px->in[1]->count != x->count)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "MaxUnpool: %lld indices for %lld values",
                        (long long)px->in[1]->count, (long long)x->count);
    SDX_TRY(unpool_shape(px->cx, px->node, x->rank, x->dims, p->dims));
    if (!sdx_dims_count(p->dims, x->rank, &p->count))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "MaxUnpool: output is too large");
    return sdx_prepare_step(px, "max_unpool", run_unpool, p, 1, 0);
}

static const struct sdx_op ops[] = {
    {"MaxUnpool", 9, 0, infer_unpool, KERNEL(prepare_unpool), .flags = SDX_OP_VIA_F32},
};
const struct sdx_op_family sdx_ops_unpool = FAMILY("", ops);
