/* SPDX-License-Identifier: Apache-2.0
 * Graph to graph: one pass a file, one ordered list (passes.c). Every pass keeps the meaning of the
 * graph and leaves it valid for sdx_ir_verify; dead nodes are marked and removed by the clean pass.
 */
#ifndef SDX_PASSES_PASSES_H
#define SDX_PASSES_PASSES_H

#include "ops/op.h"

/* Sets *changed when it did something. */
typedef enum sdx_status sdx_pass_fn(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);

enum sdx_status sdx_pass_lower(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_weights(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_fold(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_narrow(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
/* The DequantizeLinear nodes of constants, which `fold` leaves for the pass `qdq`, and all else. */
enum sdx_status sdx_pass_fold_all(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_qdq(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_identity(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_shape(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_if(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_merge(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_einsum(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_scatter(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_grids(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_gather(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_loop(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_chains(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_pad(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_affine(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_branches(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_resample(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_norm(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_group_norm(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_channel_norm(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_rotate(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_windows(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_attention(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_activation(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_channels_last(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_siblings(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_shuffle(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_patches(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_rows(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_columns(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_product(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_pointwise(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_epilogue(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_transposed(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);
enum sdx_status sdx_pass_dead(struct sdx_context *cx, struct sdx_ir *ir, bool *changed);

/* Types and shapes of all values anew, after a pass told more; what fails is said when the model
 * runs, if it comes there: a branch may not. */
SDX_MUST_CHECK enum sdx_status sdx_passes_infer(struct sdx_context *cx, struct sdx_ir *ir);
/* Runs all passes of a level on a bound and inferred IR. */
SDX_MUST_CHECK enum sdx_status sdx_passes_run(struct sdx_context *cx, struct sdx_ir *ir,
                                              sdx_level level);
/* Only those whose results a model can say that imports `version` of the standard; the rest of the
 * way is run/model_save.c's. */
SDX_MUST_CHECK enum sdx_status sdx_passes_run_said(struct sdx_context *cx, struct sdx_ir *ir,
                                                   sdx_level level, int64_t version);
#endif
