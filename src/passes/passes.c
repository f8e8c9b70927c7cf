/* SPDX-License-Identifier: Apache-2.0
 * The ordered list of passes. Lowering always runs; the rest by level. */
#include "passes/passes.h"

#include "ops/infer.h"

static const struct {
    const char *name;
    sdx_pass_fn *run;
    sdx_level level;
    int said; /* version of the standard that can say the result; 0: any, -1: none, or it does not
                 improve the file */
} passes[] = {
    {"lower", sdx_pass_lower, SDX_LEVEL_NONE, -1},
    {"weights", sdx_pass_weights, SDX_LEVEL_EXTENDED, -1},
    {"fold", sdx_pass_fold, SDX_LEVEL_BASIC, 0},
    {"shape", sdx_pass_shape, SDX_LEVEL_BASIC, 14},
    {"fold", sdx_pass_fold, SDX_LEVEL_BASIC, 0}, /* what is reckoned from lengths */
    {"if", sdx_pass_if, SDX_LEVEL_BASIC, 0},
    {"identity", sdx_pass_identity, SDX_LEVEL_BASIC, 0},
    {"narrow", sdx_pass_narrow, SDX_LEVEL_EXTENDED, -1},
    {"qdq", sdx_pass_qdq, SDX_LEVEL_EXTENDED, -1},
    {"fold_all", sdx_pass_fold_all, SDX_LEVEL_BASIC, -1},
    {"einsum", sdx_pass_einsum, SDX_LEVEL_EXTENDED, 0},
    {"scatter", sdx_pass_scatter, SDX_LEVEL_BASIC, 0},
    {"grids", sdx_pass_grids, SDX_LEVEL_EXTENDED, -1},
    {"gather", sdx_pass_gather, SDX_LEVEL_EXTENDED, -1},
    {"shape", sdx_pass_shape, SDX_LEVEL_BASIC, 14},
    {"merge", sdx_pass_merge, SDX_LEVEL_BASIC, 0},
    {"loop", sdx_pass_loop, SDX_LEVEL_BASIC, 0},
    {"chains", sdx_pass_chains, SDX_LEVEL_BASIC, 0},
    {"pad", sdx_pass_pad, SDX_LEVEL_BASIC, 0},
    {"affine", sdx_pass_affine, SDX_LEVEL_BASIC, 0},
    {"branches", sdx_pass_branches, SDX_LEVEL_EXTENDED, 0},
    {"resample", sdx_pass_resample, SDX_LEVEL_EXTENDED, 0},
    {"norm", sdx_pass_norm, SDX_LEVEL_EXTENDED, 17},
    {"group_norm", sdx_pass_group_norm, SDX_LEVEL_EXTENDED, 21},
    {"channel_norm", sdx_pass_channel_norm, SDX_LEVEL_EXTENDED, -1},
    {"rotate", sdx_pass_rotate, SDX_LEVEL_EXTENDED, -1},
    {"windows", sdx_pass_windows, SDX_LEVEL_EXTENDED, -1},
    {"attention", sdx_pass_attention, SDX_LEVEL_EXTENDED, -1},
    {"activation", sdx_pass_activation, SDX_LEVEL_EXTENDED, 0},
    {"channels_last", sdx_pass_channels_last, SDX_LEVEL_EXTENDED, 0},
    {"shuffle", sdx_pass_shuffle, SDX_LEVEL_EXTENDED, 13},
    {"dead", sdx_pass_dead, SDX_LEVEL_NONE, 0}, /* what patterns left reads nothing any more */
    {"patches", sdx_pass_patches, SDX_LEVEL_EXTENDED, -1},
    {"rows", sdx_pass_rows, SDX_LEVEL_EXTENDED, 0},
    {"columns", sdx_pass_columns, SDX_LEVEL_EXTENDED, 0},
    {"product", sdx_pass_product, SDX_LEVEL_EXTENDED, -1},
    {"pointwise", sdx_pass_pointwise, SDX_LEVEL_EXTENDED, 0},
    {"epilogue", sdx_pass_epilogue, SDX_LEVEL_EXTENDED, -1},
    {"siblings", sdx_pass_siblings, SDX_LEVEL_EXTENDED, -1},
    {"transposed", sdx_pass_transposed, SDX_LEVEL_EXTENDED, -1},
    {"dead", sdx_pass_dead, SDX_LEVEL_NONE, 0},
};

enum { ROUNDS_MAX = 4 };

/* version < 0: all passes. */
static enum sdx_status run_passes(struct sdx_context *cx, struct sdx_ir *ir, sdx_level level,
                                  int64_t version)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        bool any = false;
        for (int p = 0; p < SDX_COUNT_OF(passes); p++) {
            if (passes[p].level > level) continue;
            if (version >= 0 && (passes[p].said < 0 || passes[p].said > version)) continue;
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

static bool go_on(void *user, struct sdx_context *cx, const struct sdx_ir_graph *graph,
                  const struct sdx_ir_node *node)
{
    (void)user, (void)cx, (void)graph, (void)node;
    return true;
}

enum sdx_status sdx_passes_infer(struct sdx_context *cx, struct sdx_ir *ir)
{
    return sdx_infer_model(cx, ir, 0, go_on, NULL);
}

enum sdx_status sdx_passes_run(struct sdx_context *cx, struct sdx_ir *ir, sdx_level level)
{
    return run_passes(cx, ir, level, -1);
}

enum sdx_status sdx_passes_run_said(struct sdx_context *cx, struct sdx_ir *ir, sdx_level level,
                                    int64_t version)
{
    return run_passes(cx, ir, level, version);
}
