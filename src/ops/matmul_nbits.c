/* SPDX-License-Identifier: Apache-2.0
 * Products with weights of 2, 4 or 8 bits that stay packed: MatMulNBits of com.microsoft, and the
 * operator that the pass `weights` makes of MatMul or Gemm on a DequantizeLinear of constants. That
 * one has inputs A, W [K, N] or [N, K], scale, zero point, bias and the attributes k_axis (of W)
 * and block_size (along K; 0: the scale is one number or one for each column).
 *
 * MatMulNBits with accuracy_level 4 quantises A and computes in integers; levels 0 to 3 are floats.
 * So are, at any level, operands that are not constant, a g_idx in another order, blocks that are
 * not whole words of 32 bits or too long for sums in 32 bits. */
#include "kernels/nbits.h"

#include "ops/contrib_quant.h"
#include "ops/product.h"
#include "tensor/convert.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

static struct sdx_tensor *input(struct sdx_prepare *px, int i)
{
    return sdx_prepare_has(px, i) ? px->in[i] : NULL;
}

/* ---- the step ---- */

struct params {
    struct sdx_nbits w;
    int64_t m;
    const void *packed;
    struct sdx_split split;
    enum sdx_act act;
    float act_a, act_b;
};

static enum sdx_status run_nbits(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    const struct sdx_split_range r = sdx_split_next(&p->split, &part, x->part_end);
    struct sdx_epilogue e = {.act = p->act, .a = p->act_a, .b = p->act_b};
    if (r.n0 == r.n1 || sdx_exec_cancelled(x)) return SDX_OK;
    if (step->in[1]) e.bias_col = step->in[1]->data;
    sdx_nbits_run(&p->w, p->packed, p->m, step->in[0]->data, step->out[0]->data, p->w.n, &e, r.n0,
                  r.n1);
    return SDX_OK;
}

static enum sdx_status run_rows(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    (void)x;
    sdx_nbits_rows(&p->w, p->m, step->in[0]->data, p->w.k,
                   sdx_part_begin(p->m, step->parts, part, 1),
                   sdx_part_begin(p->m, step->parts, part + 1, 1), step->out[0]->data);
    return SDX_OK;
}

/* Scales and zero points of the unsigned weights, [n][blocks] both, in `floats`; NULL: not wanted.
 */
typedef void facts_fn(const struct sdx_prepare *px, const struct sdx_nbits *w, float *scales,
                      float *zeros);

/* What the packed form depends on besides the weights. It is found once a model: reading all scales
 * for each plan would take longer than a product of one row. */
struct digest {
    uint64_t hash;
    uint64_t has_zeros; /* of zero points: not all are the middle */
};

struct digest_arg {
    const struct sdx_prepare *px;
    const struct sdx_nbits *w;
    facts_fn *facts;
    int64_t count;
    int input;
};

static enum sdx_status pack_digest(struct sdx_context *cx, void *dst, void *arg_)
{
    const struct digest_arg *arg = arg_;
    const struct sdx_tensor *t = arg->px->in[arg->input];
    struct digest d = {.hash = sdx_hash_bytes(t->data, t->bytes, 3)};
    if (arg->input == 3) {
        float *zeros = sdx_mem_calloc(cx->mem, SDX_MEM_SCRATCH, (size_t)arg->count, sizeof *zeros);
        if (!zeros) return SDX_FAIL_MEMORY(cx);
        arg->facts(arg->px, arg->w, NULL, zeros);
        for (int64_t i = 0; i < arg->count && !d.has_zeros; i++)
            d.has_zeros = zeros[i] != (float)(1 << (arg->w->bits - 1));
        sdx_mem_free(cx->mem, zeros);
    }
    memcpy(dst, &d, sizeof d);
    return SDX_OK;
}

static enum sdx_status read_digest(struct sdx_prepare *px, struct digest_arg *arg, int input,
                                   struct digest *d)
{
    const int64_t form[] = {arg->w->n, arg->w->k, arg->w->bits, arg->w->block};
    const struct sdx_pack wanted = {.key = "nbits_digest",
                                    .variant = sdx_pack_variant(form, 4),
                                    .size = sizeof *d,
                                    .pack = pack_digest,
                                    .arg = arg};
    arg->input = input;
    const void *packed = sdx_prepare_pack(px, input, &wanted);
    if (!packed) return px->cx->error.status;
    memcpy(d, packed, sizeof *d);
    return SDX_OK;
}

struct pack_arg {
    const struct sdx_prepare *px;
    const struct sdx_nbits *w;
    struct sdx_nbits_source *source;
    facts_fn *facts;
    int64_t count; /* of scales */
};

static enum sdx_status pack(struct sdx_context *cx, void *dst, void *arg_)
{
    const struct pack_arg *arg = arg_;
    float *scales =
        sdx_mem_calloc(cx->mem, SDX_MEM_SCRATCH, 2 * (size_t)arg->count, sizeof *scales);
    if (!scales) return SDX_FAIL_MEMORY(cx);
    arg->facts(arg->px, arg->w, scales, scales + arg->count);
    arg->source->weights = arg->px->in[1]->data;
    arg->source->scales = scales;
    arg->source->zeros = scales + arg->count;
    sdx_nbits_pack(arg->w, arg->source, dst);
    sdx_mem_free(cx->mem, scales);
    return SDX_OK;
}

/* Packs input 1 and adds the step. centred: without zero points, zero is the middle. */
static enum sdx_status add_step(struct sdx_prepare *px, struct params *p,
                                struct sdx_nbits_source *source, facts_fn *facts, bool centred,
                                struct sdx_tensor *bias)
{
    struct sdx_nbits *w = &p->w;
    const int64_t count = w->n * ((w->k + w->block - 1) / w->block);
    struct digest_arg about = {px, w, facts, count, 2};
    struct digest scales, zeros = {.has_zeros = !centred};
    SDX_TRY(read_digest(px, &about, 2, &scales));
    if (input(px, 3)) SDX_TRY(read_digest(px, &about, 3, &zeros));
    w->has_zeros = zeros.has_zeros != 0;
    struct pack_arg arg = {px, w, source, facts, count};
    const int64_t form[] = {w->n,
                            w->k,
                            w->bits,
                            w->block,
                            source->row,
                            (int64_t)(scales.hash >> 1),
                            w->has_zeros ? (int64_t)(zeros.hash >> 1) : -1};
    const struct sdx_pack wanted = {.key = sdx_nbits_packs_bytes(w) ? "nbits_whole" : "nbits",
                                    .variant = sdx_pack_variant(form, SDX_COUNT_OF(form)),
                                    .size = sdx_nbits_packed_size(w),
                                    .pack = pack,
                                    .arg = &arg};
    p->packed = sdx_prepare_pack(px, 1, &wanted);
    if (!p->packed) return px->cx->error.status;
    /* columns only: every part decodes what it reads */
    p->split = sdx_split_make(1, 1, w->n, w->k * p->m, 0, sdx_nbits_columns(w, p->m));
    const int64_t size = (int64_t)sdx_nbits_rows_size(w, p->m);
    struct sdx_tensor *rows = sdx_prepare_temp(px, SDX_I8, 1, &size);
    if (!rows) return SDX_FAIL_MEMORY(px->cx);
    struct sdx_tensor *in[] = {rows, bias};
    const int64_t parts = sdx_prepare_parts((double)(p->m * w->k), 1 << 14, p->m);
    SDX_TRY(sdx_prepare_step_on(px, "nbits_rows", run_rows, p, parts, 0, 1, px->in, 1, &rows));
    SDX_TRY(sdx_prepare_step_on(px, w->whole ? "nbits_whole" : "nbits", run_nbits, p,
                                p->split.parts, 0, 2, in, 1, px->out));
    sdx_prepare_in_ranges(px); /* columns only are cut: any number of parts is one range */
    return SDX_OK;
}

/* ---- MatMulNBits ---- */

enum sdx_status sdx_nbits_infer(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    int64_t n = sdx_ir_attr_int(ix->node, "N", 0), k = sdx_ir_attr_int(ix->node, "K", 0), unused;
    const int64_t *a = sdx_infer_dims(ix, 0);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (n < 1 || k < 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: N is %lld and K is %lld",
                        SDX_STR_ARG(ix->node->op_type), (long long)n, (long long)k);
    if (rank < 0) return SDX_OK;
    if (rank < 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: A is a scalar",
                        SDX_STR_ARG(ix->node->op_type));
    SDX_TRY(sdx_infer_merge_dim(ix, a[rank - 1], k, "inner length", &unused));
    int64_t *out = sdx_infer_new_dims(ix, 0, rank);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    memcpy(out, a, (size_t)rank * sizeof *out);
    out[rank - 1] = n;
    return SDX_OK;
}

void sdx_nbits_cost(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    cost->macs = (double)sdx_ir_attr_int(ix->node, "K", 0);
    for (int i = 0; i < ix->out[0].rank; i++)
        cost->macs *= (double)ix->out[0].dims[i];
    cost->flops = 2 * cost->macs;
}

static int64_t row_bytes(const struct sdx_nbits *w) /* of packed zero points */
{
    return ((w->k + w->block - 1) / w->block * w->bits + 7) / 8;
}

/* zeros: packed like B's rows, floats, or left out (the middle). */
static void nbits_facts(const struct sdx_prepare *px, const struct sdx_nbits *w, float *scales,
                        float *zeros)
{
    const struct sdx_tensor *s = px->in[2], *z = sdx_prepare_has(px, 3) ? px->in[3] : NULL;
    const int64_t blocks = (w->k + w->block - 1) / w->block, each = 8 / w->bits;
    if (scales) sdx_convert(SDX_F32, scales, 0, s->dtype, s->data, 0, w->n * blocks, true);
    if (zeros && z && sdx_dtype_is_float(z->dtype)) {
        sdx_convert(SDX_F32, zeros, 0, z->dtype, z->data, 0, w->n * blocks, true);
        return;
    }
    for (int64_t i = 0; zeros && i < w->n * blocks; i++) {
        const int64_t n = i / blocks, g = i % blocks;
        zeros[i] = (float)(1 << (w->bits - 1));
        if (!z) continue;
        const int byte = ((const uint8_t *)z->data)[n * row_bytes(w) + g / each];
        zeros[i] = (float)(byte >> (g % each * w->bits) & ((1 << w->bits) - 1));
    }
}

/* Operands that are not constant are widened to [N, K] at each run. */
static enum sdx_status run_widen(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_nbits *w = &((const struct params *)step->params)->w;
    const int64_t blocks = (w->k + w->block - 1) / w->block, per_byte = 8 / w->bits;
    const struct sdx_prepare px = {.count_in = 4, .in = step->in};
    const struct sdx_tensor *groups = step->in[4];
    float *scales = x->scratch, *zeros = scales + w->n * blocks, *out = step->out[0]->data;
    nbits_facts(&px, w, scales, zeros);
    for (int64_t n = 0; n < w->n; n++)
        for (int64_t k = 0; k < w->k; k++) {
            const int64_t own = k / w->block;
            const int64_t g = groups ? sdx_load_i64(groups->dtype, groups->data, k) : own;
            const uint8_t *block =
                (const uint8_t *)step->in[1]->data + (n * blocks + own) * (w->block * w->bits / 8);
            if (g < 0 || g >= blocks)
                return SDX_FAIL(x->cx, SDX_RUN_FAILED, "MatMulNBits: g_idx %lld of %lld blocks",
                                (long long)g, (long long)blocks);
            const int64_t i = k % w->block;
            const int q = block[i / per_byte] >> (i % per_byte * w->bits) & ((1 << w->bits) - 1);
            out[n * w->k + k] = ((float)q - zeros[n * blocks + g]) * scales[n * blocks + g];
        }
    return SDX_OK;
}

static enum sdx_status widen(struct sdx_prepare *px, struct params *p, struct sdx_tensor *groups,
                             struct sdx_tensor *bias)
{
    const struct sdx_nbits *w = &p->w;
    const int64_t dims[] = {w->n, w->k}, count = w->n * ((w->k + w->block - 1) / w->block);
    struct sdx_tensor *wide = sdx_prepare_temp(px, SDX_F32, 2, dims);
    struct sdx_tensor *in[] = {NULL, px->in[1], px->in[2], input(px, 3), groups};
    if (!wide) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(sdx_prepare_step_on(px, "nbits_widen", run_widen, p, 1, 2 * (size_t)count * 4, 5, in, 1,
                                &wide));
    struct sdx_product q = {.a = px->in[0], .b = wide, .c = px->out[0], .input_b = -1};
    q.batch = q.col_a = q.row_b = 1;
    q.m = p->m;
    q.n = w->n;
    q.k = q.row_a = q.col_b = w->k;
    q.alpha = 1;
    q.bias_col = bias;
    return sdx_product_prepare(px, &q);
}

/* Is the group of every k the block that it stands in? */
static bool is_plain_order(const struct sdx_tensor *groups, const struct sdx_nbits *w)
{
    if (!groups->is_constant) return false;
    for (int64_t k = 0; k < w->k; k++)
        if (sdx_load_i64(groups->dtype, groups->data, k) != k / w->block) return false;
    return true;
}

static enum sdx_status read_nbits(struct sdx_prepare *px, struct params *p)
{
    const struct sdx_tensor *b = px->in[1], *scales = px->in[2], *zeros = input(px, 3);
    struct sdx_nbits *w = &p->w;
    const int64_t bits = sdx_ir_attr_int(px->node, "bits", 4);
    w->n = sdx_ir_attr_int(px->node, "N", 0);
    w->k = sdx_ir_attr_int(px->node, "K", 0);
    w->block = sdx_ir_attr_int(px->node, "block_size", 0);
    if ((bits != 2 && bits != 4 && bits != 8) || w->block < 16 || w->block % 8 ||
        w->block > 1 << 20)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "MatMulNBits: %lld bits in blocks of %lld",
                        (long long)bits, (long long)w->block);
    const int64_t level = sdx_ir_attr_int(px->node, "accuracy_level", 0);
    if (level < 0 || level > 4)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "MatMulNBits: accuracy_level is %lld, expected 0 to 4", (long long)level);
    w->bits = (int)bits;
    w->whole = level == 4 && w->block <= SDX_NBITS_WHOLE_BLOCK;
    p->m = px->in[0]->count / w->k;
    const int64_t blocks = (w->k + w->block - 1) / w->block;
    int64_t want_zeros =
        zeros && sdx_dtype_is_float(zeros->dtype) ? w->n * blocks : w->n * row_bytes(w);
    if (b->count != w->n * blocks * (w->block * bits / 8) || scales->count != w->n * blocks ||
        (zeros && zeros->count != want_zeros) || (input(px, 4) && input(px, 4)->count < w->k) ||
        (input(px, 5) && input(px, 5)->count != w->n))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL,
                        "MatMulNBits: inputs do not fit K, N and block_size");
    return SDX_OK;
}

enum sdx_status sdx_nbits_prepare(struct sdx_prepare *px)
{
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    struct sdx_tensor *zeros = input(px, 3), *groups = input(px, 4), *bias = input(px, 5);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(read_nbits(px, p));
    if (px->in[0]->dtype != SDX_F32)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "MatMulNBits: element type %s",
                        sdx_dtype_short_name(px->in[0]->dtype));
    if (p->m == 0) return SDX_OK;
    const struct sdx_nbits *w = &p->w;
    bool is_constant = px->in[1]->is_constant && px->in[2]->is_constant;
    if (groups && is_plain_order(groups, w)) groups = NULL;
    if (!is_constant || groups || (zeros && !zeros->is_constant) || w->block % (32 / w->bits))
        return widen(px, p, groups, bias);
    struct sdx_nbits_source source = {.row = (w->k + w->block - 1) / w->block * w->block,
                                      .column = 1};
    return add_step(px, p, &source, nbits_facts, true, bias);
}

/* ---- the product of dequantised constants ---- */

static enum sdx_status infer_blocks(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0), k_axis = (int)sdx_ir_attr_int(ix->node, "k_axis", 0);
    const int64_t *a = sdx_infer_dims(ix, 0), *w = sdx_infer_dims(ix, 1);
    int64_t unused;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0 || !w) return SDX_OK;
    if (rank < 1 || sdx_infer_rank(ix, 1) != 2 || k_axis < 0 || k_axis > 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: operand ranks", NAME(ix->node));
    SDX_TRY(sdx_infer_merge_dim(ix, a[rank - 1], w[k_axis], "inner length", &unused));
    int64_t *out = sdx_infer_new_dims(ix, 0, rank);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    memcpy(out, a, (size_t)rank * sizeof *out);
    out[rank - 1] = w[1 - k_axis];
    return SDX_OK;
}

static void cost_blocks(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    cost->macs = (double)sdx_infer_dims(ix, 0)[sdx_infer_rank(ix, 0) - 1];
    for (int i = 0; i < ix->out[0].rank; i++)
        cost->macs *= (double)ix->out[0].dims[i];
    cost->flops = 2 * cost->macs;
}

/* Place of the scale of column n and block g: one for all, one a column, or in blocks along K. */
static int64_t fact_at(const struct sdx_prepare *px, const struct sdx_nbits *w, int64_t n,
                       int64_t g)
{
    if (px->in[2]->count == 1) return 0;
    if (!sdx_ir_attr_int(px->node, "block_size", 0)) return n;
    const int64_t blocks = (w->k + w->block - 1) / w->block;
    return sdx_ir_attr_int(px->node, "k_axis", 0) ? n * blocks + g : g * w->n + n;
}

static void blocks_facts(const struct sdx_prepare *px, const struct sdx_nbits *w, float *scales,
                         float *zeros)
{
    const struct sdx_tensor *s = px->in[2], *z = sdx_prepare_has(px, 3) ? px->in[3] : NULL;
    const int64_t blocks = (w->k + w->block - 1) / w->block;
    const bool is_signed = sdx_dtype_is_signed(px->in[1]->dtype);
    for (int64_t i = 0; i < w->n * blocks; i++) {
        const int64_t at = fact_at(px, w, i / blocks, i % blocks);
        if (scales) scales[i] = ((const float *)s->data)[at];
        if (!zeros) continue;
        zeros[i] = is_signed ? (float)(1 << (w->bits - 1)) : 0.0f;
        if (z) zeros[i] += (float)sdx_load_i64(z->dtype, z->data, at);
    }
}

static enum sdx_status prepare_blocks(struct sdx_prepare *px)
{
    struct params *p = SDX_PREPARE_NEW(px, struct params);
    const struct sdx_tensor *t = px->in[1], *s = px->in[2], *z = input(px, 3);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    struct sdx_nbits *w = &p->w;
    const int64_t k_axis = sdx_ir_attr_int(px->node, "k_axis", 0);
    const int64_t block = sdx_ir_attr_int(px->node, "block_size", 0);
    w->bits = sdx_dtype_bits(t->dtype);
    if (px->in[0]->dtype != SDX_F32 || s->dtype != SDX_F32 || !t->is_constant || !s->is_constant ||
        (z && (!z->is_constant || z->count != s->count)) || w->bits > 8 || w->bits < 2 ||
        !sdx_dtype_is_integer(t->dtype))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: operand types", NAME(px->node));
    const int64_t each = 32 / w->bits;
    w->k = t->dims[k_axis];
    w->n = t->dims[1 - k_axis];
    w->block = block ? block : (w->k + each - 1) / each * each;
    const int64_t facts = block ? w->n * ((w->k + block - 1) / block) : w->n;
    if (block % each || block < 0 || (s->count != facts && s->count != 1) ||
        (block && s->count != facts))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: blocks of %lld", NAME(px->node),
                        (long long)block);
    if (px->out[0]->count == 0) return SDX_OK;
    if (w->k == 0)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: product over nothing", NAME(px->node));
    SDX_TRY(sdx_fused_act(px->cx, px->node, &p->act, &p->act_a, &p->act_b));
    p->m = px->in[0]->count / w->k;
    struct sdx_nbits_source source = {.row = k_axis ? w->k : 1,
                                      .column = k_axis ? 1 : w->n,
                                      .is_signed = sdx_dtype_is_signed(t->dtype)};
    return add_step(px, p, &source, blocks_facts, source.is_signed, input(px, 4));
}

static const struct sdx_op ops[] = {
    {"MatMulBlocks", 1, 0, infer_blocks, KERNEL(prepare_blocks), .cost = cost_blocks,
     .packs = SDX_NBITS_PACKS},
};

const struct sdx_op_family sdx_ops_nbits = FAMILY("sardonyx", ops);
