/* SPDX-License-Identifier: Apache-2.0
 * What the files of the import share: name scopes, and the frames of functions being inlined. */
#ifndef SDX_IR_IR_IMPORT_H
#define SDX_IR_IR_IMPORT_H

#include "ir/ir.h"
#include "proto/tensor_data.h"

struct sdx_import {
    struct sdx_context *cx;
    struct sdx_arena *arena;
    struct sdx_external *ex;
    const struct sdx_onnx_model *model;
    struct sdx_ir *ir;
    struct sdx_map functions; /* key of a function to its index in the model */
    struct sdx_text key;
    struct sdx_map tensor_map; /* address of a message inside a function to its tensor */
    struct sdx_tensor **tensors;
    int32_t count_tensors, capacity_tensors;
    int32_t count_calls; /* makes the names of inlined values unique */
};

struct sdx_import_frame;

/* Names that are visible at one place. A body's scope has the scope around its node as parent; the
 * scope of an inlined function has none and stands for the same graph as its caller's. */
struct sdx_import_scope {
    struct sdx_import_scope *parent;
    const struct sdx_import_frame *frame; /* of the function that is inlined; NULL: none */
    struct sdx_map names;                 /* to value + 1; 0: an input that the call left out */
    int32_t graph;
    int depth; /* of bodies */
};

/* One call of a function. Attributes are read from the message when they are referred to. */
struct sdx_import_frame {
    const struct sdx_onnx_function *function;
    const struct sdx_onnx_node *call;
    struct sdx_import_scope *caller;
    const char *prefix; /* of names */
    int depth;          /* of calls */
};

void sdx_import_scope_init(struct sdx_import *im, struct sdx_import_scope *scope,
                           struct sdx_import_scope *parent, const struct sdx_import_frame *frame,
                           int32_t graph);
void sdx_import_scope_deinit(struct sdx_import_scope *scope);
/* New value of the scope's graph under `name`, which must be free there. */
SDX_MUST_CHECK enum sdx_status sdx_import_declare(struct sdx_import *im,
                                                  struct sdx_import_scope *scope,
                                                  struct sdx_str name, int32_t *value);
/* `name` as it stands in the IR: with the frame's prefix. SDX_OUT_OF_MEMORY gives an empty name. */
struct sdx_str sdx_import_name(struct sdx_import *im, const struct sdx_import_scope *scope,
                               struct sdx_str name);
/* The value that `name` means here; captures it through every body between. "": -1. */
SDX_MUST_CHECK enum sdx_status sdx_import_resolve(struct sdx_import *im,
                                                  struct sdx_import_scope *scope,
                                                  struct sdx_str name, int32_t *value);
SDX_MUST_CHECK enum sdx_status sdx_import_body(struct sdx_import *im,
                                               struct sdx_import_scope *around,
                                               const struct sdx_onnx_graph *from, int32_t node,
                                               int32_t *graph);
struct sdx_str sdx_import_join(struct sdx_import *im, struct sdx_str a, struct sdx_str b);
/* Nodes are imported in two steps: all outputs are declared, then the nodes are made. */
SDX_MUST_CHECK enum sdx_status sdx_import_declare_nodes(struct sdx_import *im,
                                                        struct sdx_import_scope *scope,
                                                        const struct sdx_onnx_nodes *nodes);
SDX_MUST_CHECK enum sdx_status sdx_import_nodes(struct sdx_import *im,
                                                struct sdx_import_scope *scope,
                                                const struct sdx_onnx_nodes *nodes);
/* A node without values yet; room for count_attrs attributes. */
SDX_MUST_CHECK enum sdx_status sdx_import_node_create(struct sdx_import *im,
                                                      const struct sdx_import_scope *scope,
                                                      struct sdx_str domain, struct sdx_str op_type,
                                                      int32_t count_inputs, int32_t count_outputs,
                                                      int32_t count_attrs, int32_t *index);
SDX_MUST_CHECK enum sdx_status sdx_import_set_output(struct sdx_import *im,
                                                     const struct sdx_import_scope *scope,
                                                     int32_t index, int32_t slot, int32_t value);

/* ---- ir_import_attr.c ---- */
SDX_MUST_CHECK enum sdx_status sdx_import_type(struct sdx_import *im, int32_t graph,
                                               const struct sdx_import_frame *frame,
                                               const struct sdx_onnx_type *from,
                                               struct sdx_type *to);
SDX_MUST_CHECK enum sdx_status sdx_import_tensor(struct sdx_import *im,
                                                 const struct sdx_import_frame *frame,
                                                 const struct sdx_onnx_tensor *from,
                                                 struct sdx_tensor **to);
SDX_MUST_CHECK enum sdx_status sdx_import_sparse(struct sdx_import *im,
                                                 const struct sdx_import_frame *frame,
                                                 const struct sdx_onnx_sparse *from,
                                                 struct sdx_tensor **to);
/* Appends the attribute to node `node` of the scope's graph; one that refers to an attribute that
 * the call does not give and that has no default adds nothing. */
SDX_MUST_CHECK enum sdx_status sdx_import_attr(struct sdx_import *im,
                                               struct sdx_import_scope *scope, int32_t node,
                                               const struct sdx_onnx_attr *from);

/* ---- ir_import_given.c ---- */
/* A constant over the elements of a given tensor, which must be of this type and shape; dtype NONE,
 * rank < 0, lengths < 0: any. */
SDX_MUST_CHECK enum sdx_status sdx_import_given(struct sdx_import *im,
                                                const struct sdx_tensor *given, struct sdx_str name,
                                                int dtype, int64_t rank, const int64_t *dims,
                                                struct sdx_tensor **out);
/* Inputs of the main graph that are given a value become constants. Every tensor that is given must
 * have found its place. */
SDX_MUST_CHECK enum sdx_status sdx_import_given_inputs(struct sdx_import *im,
                                                       const struct sdx_import_scope *scope);

/* ---- ir_import_function.c ---- */
/* Builds the table of functions and refuses recursion and more nodes than the bound. */
SDX_MUST_CHECK enum sdx_status sdx_import_functions(struct sdx_import *im);
/* The function that the node calls. *function NULL: an operator. */
SDX_MUST_CHECK enum sdx_status sdx_import_find_function(struct sdx_import *im,
                                                        const struct sdx_onnx_node *node,
                                                        const struct sdx_onnx_function **function);
SDX_MUST_CHECK enum sdx_status sdx_import_call(struct sdx_import *im,
                                               struct sdx_import_scope *scope,
                                               const struct sdx_onnx_node *node,
                                               const struct sdx_onnx_function *function);
#endif
