/* SPDX-License-Identifier: Apache-2.0
 * A model: the mapped file, its messages, the IR as imported, what the API tells about it, the
 * graphs that sessions run (made when first asked for) and the packed constants. Immutable for its
 * users and shared by sessions of any thread. */
#ifndef SDX_RUN_MODEL_H
#define SDX_RUN_MODEL_H

#include "base/lock.h"
#include "proto/tensor_data.h"
#include "run/plan_file.h"
#include "run/store.h"

/* A graph rewritten for one level. It holds the initializers of inputs as constants and lengths of
 * one name as equal, which lets passes use that, or is open: the initializers are inputs, what is
 * fed takes their place, and names say nothing. */
struct sdx_model_graph {
    struct sdx_model_graph *next;
    sdx_level level;
    bool is_open;
    struct sdx_ir *ir;
};

struct sdx_model {
    struct sdx_context cx; /* own memory counter, the creator's log and pool */
    struct sdx_mem mem;
    struct sdx_arena arena;
    struct sdx_file_map map;
    const char *path;  /* as it was opened; NULL: from memory */
    const void *bytes; /* of the file */
    size_t size;
    struct sdx_external external;
    struct sdx_dim_override *dims; /* that the caller gives */
    int count_dims;
    bool has_folder; /* that of `external` is the caller's */
    struct sdx_onnx_model *message;
    struct sdx_ir *ir; /* as imported, types inferred, operators bound where supported */
    struct sdx_store *store;
    struct sdx_plan_file plan; /* the plan file that it is from; bytes NULL: none */
    struct sdx_lock lock;      /* of `graphs` and the arena */
    struct sdx_model_graph *graphs;
    struct sdx_value_info *inputs, *outputs;
    int32_t count_inputs, count_outputs;
    struct sdx_model_facts facts;
    const struct sdx_customs *customs; /* NULL: none */
    struct sdx_op_use *op_uses;
    int32_t count_op_uses;
};

/* path NULL: from memory. */
SDX_MUST_CHECK enum sdx_status sdx_model_create(struct sdx_context *cx, const char *path,
                                                const void *bytes, size_t size,
                                                const struct sdx_model_options *options,
                                                struct sdx_model **out);
void sdx_model_free(struct sdx_model *model);
/* The graph for a level: lowered, folded, rewritten; every operator bound, or a failure that names
 * the first that is not supported. Its inputs are the model's, in their order; open: all of them,
 * else those without initializers. */
SDX_MUST_CHECK enum sdx_status sdx_model_graph_get(struct sdx_context *cx, struct sdx_model *model,
                                                   sdx_level level, bool open,
                                                   const struct sdx_ir **out);
/* Imports the model with what the caller gives, bound and inferred, into `arena`. */
SDX_MUST_CHECK enum sdx_status sdx_model_import(struct sdx_context *cx, struct sdx_model *m,
                                                struct sdx_arena *arena, bool open,
                                                struct sdx_ir **out);
/* model_save.c: writes the graph of a level, or of SDX_LEVEL_BASIC where that cannot be said. */
SDX_MUST_CHECK enum sdx_status sdx_model_save_optimised(struct sdx_context *cx, struct sdx_model *m,
                                                        sdx_level level, const char *path);
/* Writes the file with the types of all its values to `to`. fault NULL: the first node that
 * inference refuses is a failure; else each is told, and what it makes stays unknown. */
SDX_MUST_CHECK enum sdx_status sdx_model_infer(struct sdx_context *cx, const char *path,
                                               const char *to, sdx_text_fn fault, void *user);
/* Reports every fault of a file (path NULL: of bytes); fully: those of types and shapes too. */
SDX_MUST_CHECK enum sdx_status sdx_model_check(struct sdx_context *cx, const char *path,
                                               const void *bytes, size_t size, bool fully,
                                               sdx_text_fn fault, void *user);
/* model_given.c: takes what the options give, once the external data has a folder. */
SDX_MUST_CHECK enum sdx_status sdx_model_take_given(struct sdx_context *cx, struct sdx_model *m,
                                                    const struct sdx_model_options *options);
bool sdx_model_is_given(const struct sdx_model_options *options); /* anything */
/* model_tolerate.c: mends the messages, as the option `tolerate` says. */
SDX_MUST_CHECK enum sdx_status sdx_model_tolerate(struct sdx_context *cx, struct sdx_model *m);
/* Sets the lengths that are given, before inference. */
SDX_MUST_CHECK enum sdx_status sdx_model_set_dims(struct sdx_context *cx, const struct sdx_model *m,
                                                  struct sdx_ir *ir);
/* model_info.c: fills inputs, outputs, facts, op_uses. */
SDX_MUST_CHECK enum sdx_status sdx_model_describe(struct sdx_context *cx, struct sdx_model *model);
#endif
