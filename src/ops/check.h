/* SPDX-License-Identifier: Apache-2.0
 * The checker: is a model valid ONNX? Works on the messages (so that every fault has its place)
 * with the schema table, then on the IR with type inference. Reports all faults, one line each:
 * where, found, expected. */
#ifndef SDX_OPS_CHECK_H
#define SDX_OPS_CHECK_H

#include "ir/ir.h"

struct sdx_faults {
    sdx_text_fn fault; /* NULL: only the first is kept, in the context's error */
    void *user;
    int64_t count;
    const struct sdx_customs *customs; /* operators that the caller gives; NULL: none */
    /* To the letter: what the standard forbids although every runtime can read it is a fault too
     * (nodes out of order, a graph without a name, a declared shape that is wrong). */
    bool is_strict;
    bool is_structure_only; /* nothing that takes types or shapes */
};

/* Structure: IR version, opsets, names, SSA, scopes, arity, attributes, deprecation, tensors
 * (through sdx_onnx_tensor_data), functions (no recursion, unique). Returns SDX_BAD_MODEL when
 * faults were found. */
SDX_MUST_CHECK enum sdx_status sdx_check_messages(struct sdx_context *cx, struct sdx_arena *arena,
                                                  struct sdx_external *ex,
                                                  const struct sdx_onnx_model *model,
                                                  struct sdx_faults *faults);
/* Types: input types allowed by the schema, equal type variables, shapes that fit (inference). */
SDX_MUST_CHECK enum sdx_status sdx_check_types(struct sdx_context *cx, struct sdx_ir *ir,
                                               struct sdx_faults *faults);
#endif
