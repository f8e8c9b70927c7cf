/* SPDX-License-Identifier: Apache-2.0
 * A model from one version of a domain to another, up or down: ADR 0018. Works on the messages, so
 * that names, functions, documentation and unknown fields stay; the IR tells types. */
#ifndef SDX_CONVERT_CONVERT_MODEL_H
#define SDX_CONVERT_CONVERT_MODEL_H

#include "convert/rewrite.h"

/* Gives every node of the domain the form that `version` has, in all bodies and functions. *out
 * lives in `arena` and points into `model`. ir: of the model, with types; NULL: none are known.
 * *more: *out is at a version on the way down, because the next steps want types of what was made:
 * call again. */
SDX_MUST_CHECK enum sdx_status
sdx_convert_model(struct sdx_context *cx, struct sdx_arena *arena, struct sdx_external *external,
                  const struct sdx_onnx_model *model, const struct sdx_ir *ir,
                  struct sdx_str domain, int64_t version, struct sdx_onnx_model **out, bool *more);
/* Reads, checks, converts to all of `opsets`, checks again and writes. folder: of the model, where
 * its external data is; it is taken into the file when that goes to another folder. */
SDX_MUST_CHECK enum sdx_status sdx_convert_bytes(struct sdx_context *cx, struct sdx_arena *arena,
                                                 const void *bytes, size_t size, const char *folder,
                                                 int count, const struct sdx_opset *opsets,
                                                 bool check, const char *to);

/* convert_scopes.c: fills model, scopes and values from the message. */
SDX_MUST_CHECK enum sdx_status sdx_convert_scopes(struct sdx_rewrite *rx,
                                                  const struct sdx_onnx_model *model);
/* The version of a domain in a list of imports; NULL: it has none. */
int64_t *sdx_convert_version(const struct sdx_onnx_opsets *opsets, struct sdx_str domain);
/* convert_step.c: takes a scope to the next version. */
SDX_MUST_CHECK enum sdx_status sdx_convert_step(struct sdx_rewrite *rx,
                                                struct sdx_rewrite_scope *scope, int64_t to);
#endif
