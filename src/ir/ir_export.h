/* SPDX-License-Identifier: Apache-2.0
 * From the IR back to ONNX messages: functions inlined, bodies as graphs, every value with a name
 * of its own. What passes made (operators and attributes of ours) is written as it stands. */
#ifndef SDX_IR_IR_EXPORT_H
#define SDX_IR_IR_EXPORT_H

#include "ir/ir.h"

/* Gives a constant's bytes a place outside of the message: sets `to`'s location and entries, or
 * leaves it alone: then the message holds them. */
typedef enum sdx_status sdx_ir_place_fn(void *user, const struct sdx_tensor *constant,
                                        struct sdx_onnx_tensor *to);

struct sdx_ir_export {
    /* What the IR does not know is taken from here: names and declarations of inputs and outputs,
     * documentation, metadata, producer. */
    const struct sdx_onnx_model *from;
    sdx_ir_place_fn *place; /* NULL: all bytes are in the message */
    void *user;
    bool with_types; /* declares the types of inner values too */
    /* A node of another version than the model imports of its domain (passes make some, functions
     * bring some) keeps it in its metadata, where only the import of a plan file looks. Otherwise
     * such a node is an error. */
    bool keeps_versions;
};

/* The key in a node's metadata of the version that it keeps. */
#define SDX_IR_VERSION_KEY "opset"

/* *out lives in `arena` and points into the IR and `from`. */
SDX_MUST_CHECK enum sdx_status sdx_ir_export(struct sdx_context *cx, struct sdx_arena *arena,
                                             const struct sdx_ir *ir,
                                             const struct sdx_ir_export *options,
                                             struct sdx_onnx_model **out);
/* *out is NULL for a type of which nothing is known; in_body: of a value of a body. */
SDX_MUST_CHECK enum sdx_status sdx_ir_export_type(struct sdx_context *cx, struct sdx_arena *arena,
                                                  const struct sdx_ir *ir, bool in_body,
                                                  const struct sdx_type *from,
                                                  struct sdx_onnx_type **out);
/* The model as it is, with the types of all values of its graphs as the IR has them; the IR is that
 * which was imported from it. *out lives in `arena` and points into both. */
SDX_MUST_CHECK enum sdx_status sdx_ir_annotate(struct sdx_context *cx, struct sdx_arena *arena,
                                               const struct sdx_ir *ir,
                                               const struct sdx_onnx_model *model,
                                               struct sdx_onnx_model **out);
#endif
