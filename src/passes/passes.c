/* SPDX-License-Identifier: Apache-2.0
 * The ordered list of passes. Lowering always runs; the rest by level. */
#include "passes/passes.h"

static const struct {
    const char *name;
    sdx_pass_fn *run;
    sdx_level level;
} passes[] = {
    {"lower", sdx_pass_lower, SDX_LEVEL_NONE},
    {"weights", sdx_pass_weights, SDX_LEVEL_EXTENDED},
    {"fold", sdx_pass_fold, SDX_LEVEL_BASIC},
    {"narrow", sdx_pass_narrow, SDX_LEVEL_EXTENDED},
    {"qdq", sdx_pass_qdq, SDX_LEVEL_EXTENDED},
    {"fold_all", sdx_pass_fold_all, SDX_LEVEL_BASIC},
    {"identity", sdx_pass_identity, SDX_LEVEL_BASIC},
    {"chains", sdx_pass_chains, SDX_LEVEL_BASIC},
    {"batch_norm", sdx_pass_batch_norm, SDX_LEVEL_BASIC},
    {"norm", sdx_pass_norm, SDX_LEVEL_EXTENDED},
    {"attention", sdx_pass_attention, SDX_LEVEL_EXTENDED},
    {"activation", sdx_pass_activation, SDX_LEVEL_EXTENDED},
    {"product", sdx_pass_product, SDX_LEVEL_EXTENDED},
    {"epilogue", sdx_pass_epilogue, SDX_LEVEL_EXTENDED},
    {"dead", sdx_pass_dead, SDX_LEVEL_NONE},
};

enum { ROUNDS_MAX = 4 };

enum sdx_status sdx_passes_run(struct sdx_context *cx, struct sdx_ir *ir, sdx_level level)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        bool any = false;
        for (int p = 0; p < SDX_COUNT_OF(passes); p++) {
            if (passes[p].level > level) continue;
            bool changed = false;
            enum sdx_status status = passes[p].run(cx, ir, &changed);
            if (status != SDX_OK) return sdx_fail_where(cx, "pass %s", passes[p].name);
            any = any || changed;
            if (!changed) continue;
            SDX_TRY(sdx_ir_compact(cx, ir));
#if defined(SDX_ASSERTS) && SDX_ASSERTS
            SDX_TRY(sdx_ir_verify(cx, ir));
#endif
            sdx_log(cx, SDX_LOG_DEBUG, "passes", "%s: %d nodes in the main graph", passes[p].name,
                    ir->graphs[0].count_nodes);
        }
        if (!any) break;
    }
    return SDX_OK;
}
