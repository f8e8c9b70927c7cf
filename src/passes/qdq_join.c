/* SPDX-License-Identifier: Apache-2.0
 * What a QLinearConv does at its store instead of nodes behind it: a sum, a table. */
#include "passes/qdq.h"

/* Inputs of the QLinearConv of ops/conv_quant.c. */
enum { SCALE_Y = 6, ZERO_Y = 7, TABLE = 9, ADDEND = 10, INPUTS = 15 };

/* The QLinearConv that makes `value`, bytes of this type, for one node alone; or NULL. */
static const struct sdx_ir_node *conv_of(const struct sdx_qdq *r, int32_t value, int dtype)
{
    const struct sdx_ir_node *conv = sdx_qdq_maker(r, value, "QLinearConv");
    return conv && !conv->domain.len && r->uses[value] == 1 &&
                   r->g->values[value].type.dtype == dtype
               ? conv
               : NULL;
}
static void inputs_of(const struct sdx_ir_node *conv, int32_t in[INPUTS])
{
    for (int i = 0; i < INPUTS; i++)
        in[i] = i < conv->count_inputs ? conv->inputs[i] : -1;
}
/* Node n, which reads `bytes`, dies: their QLinearConv, with these inputs, makes its result. */
static enum sdx_status join(struct sdx_qdq *r, int32_t n, int32_t bytes, const int32_t in[INPUTS])
{
    const struct sdx_ir_node *node = &r->g->nodes[n];
    const int32_t at = r->g->values[bytes].producer, output = node->outputs[0];
    int count = INPUTS;
    while (in[count - 1] < 0)
        count--;
    SDX_TRY(sdx_qdq_inputs(r, at, count, in));
    for (int i = 0; i < node->count_inputs; i++)
        if (node->inputs[i] >= 0) r->uses[node->inputs[i]]--;
    r->g->nodes[n].is_dead = true;
    r->g->values[bytes].producer = -1;
    sdx_ir_node_set_output(r->g, &r->g->nodes[at], at, 0, output);
    return SDX_OK;
}

/* Do both hold the same constant of one element? Left out: 0. */
static bool are_same(const struct sdx_qdq *r, int32_t a, int32_t b)
{
    double x = 0, y = 0;
    return (a < 0 || sdx_match_scalar(r->g, a, &x)) && (b < 0 || sdx_match_scalar(r->g, b, &y)) &&
           x == y;
}
static bool are_constants(const struct sdx_qdq *r, const int32_t *values, int count)
{
    double x;
    for (int i = 0; i < count; i++)
        if (values[i] >= 0 && !sdx_match_scalar(r->g, values[i], &x)) return false;
    return true;
}

enum sdx_status sdx_qdq_join_sum(struct sdx_qdq *r, int32_t n)
{
    enum { A = 0, B = 3, SUM_SCALE = 6, SUM_ZERO = 7, SUM_INPUTS = 8 };
    const struct sdx_ir_node *node = &r->g->nodes[n];
    if (node->is_dead || !sdx_str_is(node->op_type, "QLinearAdd")) return SDX_OK;
    const int dtype = r->g->values[node->outputs[0]].type.dtype;
    int32_t sum[SUM_INPUTS];
    for (int i = 0; i < SUM_INPUTS; i++)
        sum[i] = i < node->count_inputs ? node->inputs[i] : -1;
    for (int side = A; side <= B; side += B) {
        const int32_t *a = sum + side, *b = sum + B - side;
        const struct sdx_ir_node *conv = conv_of(r, a[0], dtype);
        if (!conv || conv->count_inputs > TABLE || conv->inputs[SCALE_Y] < 0) continue;
        if (!are_same(r, conv->inputs[SCALE_Y], a[1]) || !are_same(r, conv->inputs[ZERO_Y], a[2]) ||
            !are_constants(r, b + 1, 2) || !are_constants(r, sum + SUM_SCALE, 2) ||
            !sdx_match_same_type(r->g, a[0], b[0]))
            continue;
        int32_t in[INPUTS];
        inputs_of(conv, in);
        for (int i = 0; i < B; i++)
            in[ADDEND + i] = b[i];
        in[ADDEND + B] = sum[SUM_SCALE];
        in[ADDEND + B + 1] = sum[SUM_ZERO];
        return join(r, n, a[0], in);
    }
    return SDX_OK;
}

enum sdx_status sdx_qdq_join_table(struct sdx_qdq *r, int32_t n)
{
    const struct sdx_ir_node *node = &r->g->nodes[n];
    if (node->is_dead || !sdx_str_is(node->op_type, "ByteTable")) return SDX_OK;
    const struct sdx_ir_node *conv =
        conv_of(r, node->inputs[0], r->g->values[node->outputs[0]].type.dtype);
    int32_t in[INPUTS];
    if (!conv) return SDX_OK;
    inputs_of(conv, in);
    if (in[TABLE] >= 0) return SDX_OK;
    in[TABLE] = node->inputs[1];
    return join(r, n, node->inputs[0], in);
}
