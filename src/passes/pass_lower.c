/* SPDX-License-Identifier: Apache-2.0
 * Replaces operators that have a lowering instead of a kernel, until none is left. */
#include "ops/lower.h"
#include "ops/schema.h"
#include "passes/passes.h"

enum { ROUNDS_MAX = 16 };

/* Version of the standard's operators beside the node: its own, or the model's for other domains.
 */
static int64_t standard_version(const struct sdx_ir *ir, const struct sdx_ir_node *node)
{
    if (node->domain.len == 0) return node->opset;
    for (int32_t i = 0; i < ir->count_opsets; i++)
        if (ir->opsets[i].domain.len == 0 || sdx_str_is(ir->opsets[i].domain, "ai.onnx"))
            return ir->opsets[i].version;
    return sdx_schema_opset_newest;
}

static enum sdx_status lower_node(struct sdx_context *cx, struct sdx_ir *ir, int32_t graph,
                                  int32_t node)
{
    struct sdx_lower lx = {.cx = cx, .ir = ir, .graph = &ir->graphs[graph], .node = node};
    lx.opset = standard_version(ir, &ir->graphs[graph].nodes[node]);
    enum sdx_status status = ir->graphs[graph].nodes[node].op->lower(&lx);
    if (status == SDX_OK) status = lx.status;
    struct sdx_ir_node *done = &ir->graphs[graph].nodes[node];
    if (status != SDX_OK)
        return sdx_fail_where(cx, "node \"%.*s\" (%.*s)", SDX_STR_ARG(done->name),
                              SDX_STR_ARG(done->op_type));
    done->is_dead = !lx.is_postponed;
    return SDX_OK;
}

enum sdx_status sdx_pass_lower(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    bool again = true;
    for (int round = 0; again && round < ROUNDS_MAX; round++) {
        again = false;
        for (int32_t g = 0; g < ir->count_graphs; g++) {
            int32_t count = ir->graphs[g].count_nodes;
            bool lowered = false;
            for (int32_t n = 0; n < count; n++) {
                const struct sdx_ir_node *node = &ir->graphs[g].nodes[n];
                if (node->is_dead || !node->op || !node->op->lower) continue;
                SDX_TRY(lower_node(cx, ir, g, n));
                lowered = true;
            }
            if (lowered) SDX_TRY(sdx_ir_sort(cx, ir, &ir->graphs[g]));
            again = again || lowered;
        }
        *changed = *changed || again;
        if (again) SDX_TRY(sdx_infer_model(cx, ir, 0, NULL, NULL));
    }
    return again ? SDX_FAIL(cx, SDX_INTERNAL, "lowering does not end") : SDX_OK;
}
