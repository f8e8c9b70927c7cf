/* SPDX-License-Identifier: Apache-2.0
 * Functions of one byte: elementwise operators between a tensor of bytes and a QuantizeLinear are
 * evaluated for the 256 values once, by the operators themselves. */
#include "ops/step_host.h"
#include "passes/qdq.h"

enum { DEPTH_MAX = 12, VALUES = 256 };

static const char *const elementwise[] = {
    "Relu",
    "LeakyRelu",
    "Elu",
    "Selu",
    "Celu",
    "Sigmoid",
    "Tanh",
    "Clip",
    "Abs",
    "Neg",
    "Sqrt",
    "Exp",
    "Log",
    "Erf",
    "Softplus",
    "Softsign",
    "Mish",
    "Reciprocal",
    "Floor",
    "Ceil",
    "Round",
    "Sign",
    "Identity",
    "HardSigmoid",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "ThresholdedRelu",
    "Swish",
    "Gelu",
    "Min",
    "Max",
    "HardSwish",
    "PRelu",
    "Sin",
    "Cos",
    "FastGelu",
    "QuickGelu",
    "ByteTable",
    "QuantizeLinear",
    "DequantizeLinear",
};

static bool is_elementwise(const struct sdx_qdq *r, const struct sdx_ir_node *node)
{
    struct sdx_quant q;
    bool found = false;
    for (int i = 0; i < SDX_COUNT_OF(elementwise); i++)
        found = found || sdx_str_is(node->op_type, elementwise[i]);
    if (!found || node->is_dead || node->count_outputs != 1 || !node->op || !node->op->prepare)
        return false;
    if (sdx_str_is(node->op_type, "QuantizeLinear")) return sdx_qdq_quantizes(r, node, &q);
    if (sdx_str_is(node->op_type, "DequantizeLinear"))
        return sdx_qdq_dequantized(r, node->outputs[0], &q);
    return true;
}

/* A constant of one element, bytes that are dequantised too, and not of more axes than the tensor
 * of `rank`. */
static bool is_scalar(const struct sdx_qdq *r, int32_t value, int rank)
{
    struct sdx_quant q;
    const bool is_bytes = sdx_qdq_dequantized(r, value, &q);
    const struct sdx_tensor *t = sdx_match_constant(r->g, is_bytes ? q.x : value);
    return t && t->kind == SDX_KIND_TENSOR && t->count == 1 && t->data && t->rank <= rank;
}

static bool trace(const struct sdx_qdq *r, int32_t value, int depth, int32_t *root);

static bool trace_inputs(const struct sdx_qdq *r, const struct sdx_ir_node *node, int rank,
                         int depth, int32_t *root)
{
    bool is_table = sdx_str_is(node->op_type, "ByteTable");
    int count = is_table ? 1 : node->count_inputs;
    for (int i = 0; i < count; i++) {
        if (node->inputs[i] < 0) continue;
        if (is_scalar(r, node->inputs[i], rank)) continue;
        if (!trace(r, node->inputs[i], depth + 1, root)) return false;
    }
    return true;
}

/* *root: the tensor of bytes as far back as it goes; the same for all parts of the expression. */
static bool trace(const struct sdx_qdq *r, int32_t value, int depth, int32_t *root)
{
    const struct sdx_ir_value *v = &r->g->values[value];
    if (depth > DEPTH_MAX || v->constant || v->type.kind != SDX_KIND_TENSOR) return false;
    bool is_bytes = v->type.dtype == SDX_U8 || v->type.dtype == SDX_I8;
    if (!is_bytes && v->type.dtype != SDX_F32) return false;
    const struct sdx_ir_node *node = v->producer < 0 ? NULL : &r->g->nodes[v->producer];
    int rank = v->type.has_shape ? v->type.rank : 0;
    int32_t deeper = *root;
    if (node && is_elementwise(r, node) && trace_inputs(r, node, rank, depth, &deeper) &&
        deeper >= 0) {
        *root = deeper;
        return true;
    }
    if (!is_bytes || (*root >= 0 && *root != value)) return false;
    *root = value;
    return true;
}

bool sdx_qdq_is_byte_function(const struct sdx_qdq *r, int32_t value)
{
    int32_t root = -1;
    return trace(r, value, 0, &root);
}

/* The value for all bytes of the root; NULL without a failure: it cannot be told. */
static enum sdx_status evaluate(struct sdx_qdq *r, int32_t value, int32_t root,
                                const struct sdx_tensor *bytes, const struct sdx_tensor **result)
{
    *result = value == root ? bytes : sdx_match_constant(r->g, value);
    if (*result) return SDX_OK;
    const struct sdx_ir_node *node = &r->g->nodes[r->g->values[value].producer];
    const struct sdx_tensor **in =
        sdx_arena_array(r->ir->arena, (size_t)node->count_inputs + 1, sizeof *in);
    struct sdx_tensor *out[1] = {NULL};
    bool done = false;
    if (!in) return SDX_FAIL_MEMORY(r->cx);
    for (int i = 0; i < node->count_inputs; i++) {
        if (node->inputs[i] < 0) continue;
        SDX_TRY(evaluate(r, node->inputs[i], root, bytes, &in[i]));
        if (!in[i]) return SDX_OK;
    }
    SDX_TRY(sdx_op_eval(r->cx, r->ir->arena, r->ir, node, in, out, VALUES * 16, &done));
    const bool is_known = done && out[0] && (out[0]->count == VALUES || out[0]->count == 1);
    *result = is_known ? out[0] : NULL;
    return SDX_OK;
}

enum sdx_status sdx_qdq_table(struct sdx_qdq *r, int32_t n, bool *done)
{
    int32_t output = r->g->nodes[n].outputs[0], root = -1;
    if (!trace(r, output, 0, &root) || root == output) return SDX_OK;
    const struct sdx_type *from = &r->g->values[root].type, *to = &r->g->values[output].type;
    if (from->has_shape != to->has_shape || (from->has_shape && from->rank != to->rank))
        return SDX_OK;
    /* of the root's rank: slopes of PRelu may not have more axes */
    uint8_t all[VALUES];
    int64_t dims[SDX_RANK_MAX];
    const int rank = from->has_shape && from->rank > 0 ? from->rank : 1;
    for (int i = 0; i < rank; i++)
        dims[i] = i == rank - 1 ? VALUES : 1;
    for (int i = 0; i < VALUES; i++)
        all[i] = (uint8_t)i;
    struct sdx_tensor bytes = {.data = all, .dims = dims, .count = VALUES, .bytes = VALUES};
    bytes.rank = rank;
    bytes.kind = SDX_KIND_TENSOR;
    bytes.dtype = r->g->values[root].type.dtype;
    bytes.is_constant = true;
    const struct sdx_tensor *result = NULL;
    SDX_TRY(evaluate(r, output, root, &bytes, &result));
    if (!result || result->bytes != VALUES) return SDX_OK;
    void *data = NULL;
    int32_t in[] = {root, sdx_qdq_constant(r, result->dtype, 1, &dims[rank - 1], &data)};
    if (in[1] < 0) return SDX_FAIL_MEMORY(r->cx);
    memcpy(data, result->data, VALUES);
    *done = true;
    return sdx_qdq_become(r, n, "ai.sardonyx", "ByteTable", 1, 2, in, NULL, 0);
}
