/* SPDX-License-Identifier: Apache-2.0
 * What passes use to recognise patterns of nodes. Values are indices of one graph; -1 never
 * matches. */
#ifndef SDX_PASSES_MATCH_H
#define SDX_PASSES_MATCH_H

#include "ops/op.h"

/* The living node of the standard's domain with this type that makes `value`, or NULL. */
struct sdx_ir_node *sdx_match_maker(const struct sdx_ir_graph *g, int32_t value, const char *op);
/* Is it a living node of the standard's domain with this type? NULL is none. */
static inline bool sdx_match_is(const struct sdx_ir_node *node, const char *op)
{
    return node && !node->is_dead && !node->domain.len && sdx_str_is(node->op_type, op);
}
/* Is the node's type one of these `count` names? */
bool sdx_match_is_one_of(const struct sdx_ir_node *node, const char *const *names, int count);
/* `value` is made by a node of two inputs, one of which makes *scalar (a constant of one element);
 * the other is *rest. For operators that do not commute the constant must be input 1. */
bool sdx_match_with_scalar(const struct sdx_ir_graph *g, int32_t value, const char *op,
                           int32_t *rest, double *scalar);
/* Are all numbers of the node's list that? Where it has none, they are. */
bool sdx_match_all_are(const struct sdx_ir_node *node, const char *attr, int64_t value);
/* Is it a constant of one element? */
bool sdx_match_scalar(const struct sdx_ir_graph *g, int32_t value, double *scalar);
/* A constant that no caller can override, or NULL. What is to be made of others is made. */
const struct sdx_tensor *sdx_match_constant(const struct sdx_ir_graph *g, int32_t value);
/* Input i of the node where it is such a constant of f32, or NULL; and its element, which may lie
 * at an odd address of the file. */
const struct sdx_tensor *sdx_match_constant_f32(const struct sdx_ir_graph *g,
                                                const struct sdx_ir_node *node, int i);
static inline float sdx_match_f32_at(const struct sdx_tensor *t, int64_t i)
{
    float value;
    memcpy(&value, (const char *)t->data + (size_t)i * sizeof value, sizeof value);
    return value;
}
/* Input i of the node where it is a constant list of integers of 64 bits, or NULL. */
const int64_t *sdx_match_ints(const struct sdx_ir_graph *g, const struct sdx_ir_node *node, int i,
                              int64_t *count);
/* *list: such an input i or, where the node has none, its attribute `name` (NULL: there is no such
 * attribute), as older versions have it; NULL where there is neither. false: the input is not
 * constant. */
bool sdx_match_list(const struct sdx_ir_graph *g, const struct sdx_ir_node *node, int i,
                    const char *name, const int64_t **list, int64_t *count);
/* One number, or one for each of `channels` along axis 1, beside a value of this rank? */
bool sdx_match_is_channels(const struct sdx_tensor *t, int rank, int64_t channels);
/* Is the node a Transpose that takes axis `from` of `rank` axes to place `to`, the others in their
 * order? */
bool sdx_match_moves_axis(const struct sdx_ir_node *node, int rank, int from, int to);
/* Within 1e-4 relative, as exporters write constants with few digits, or b as f16 or bf16. */
bool sdx_match_near(double a, double b);
/* Do two values have the same element type and shape for certain? */
bool sdx_match_same_type(const struct sdx_ir_graph *g, int32_t a, int32_t b);
/* Did an earlier round of passes give the MatMul, Conv or Gemm what its operator does not have: an
 * activation, a residual, a scale? */
bool sdx_match_is_fused(const struct sdx_ir_node *product);
/* The MatMul that makes `value` and that nothing was fused into, or NULL. */
struct sdx_ir_node *sdx_match_plain_product(const struct sdx_ir_graph *g, int32_t value);
/* `node`, the only reader of y, where it is the Add of a row of `columns` f32, *row; else NULL and
 * -1. */
struct sdx_ir_node *sdx_match_adds_row(const struct sdx_ir_graph *g, struct sdx_ir_node *node,
                                       int32_t y, int64_t columns, int32_t *row);
/* Has the store of a MatMul, Conv or Gemm room for a residual? Gemm's C may be one already. */
bool sdx_match_takes_residual(const struct sdx_ir_graph *g, const struct sdx_ir_node *product);
/* Does the Conv take each pixel for itself: a kernel of 1 x 1 and nothing that moves it? */
bool sdx_match_is_pointwise(const struct sdx_ir_node *conv, const struct sdx_tensor *weights);
/* A new value: the constant `t`, of the arena. -1: no memory. */
int32_t sdx_match_add_constant(struct sdx_ir *ir, struct sdx_ir_graph *g, struct sdx_str name,
                               struct sdx_tensor *t);
/* A constant of that type and shape, to be filled; of the arena. NULL: no memory. */
struct sdx_tensor *sdx_match_new_constant(struct sdx_ir *ir, int dtype, int rank,
                                          const int64_t *dims);
/* A constant of that shape and of the type of recipe->of, which is made of it as often as it is
 * read. The recipe is one of the arena. NULL: no memory. */
struct sdx_tensor *sdx_match_new_recipe(struct sdx_ir *ir, struct sdx_recipe *recipe, int rank,
                                        const int64_t *dims);
/* Constant weights, input i of a product of f32: f32, or as narrow as the file has them; else NULL.
 * Their type and shape, as elements may have yet to be made: sdx_match_constant. */
const struct sdx_tensor *sdx_match_weights(const struct sdx_ir_graph *g,
                                           const struct sdx_ir_node *product, int i);
/* A new value: the constant list of `count` integers. -1: no memory. */
int32_t sdx_match_add_ints(struct sdx_ir *ir, struct sdx_ir_graph *g, const char *name,
                           const int64_t *values, int64_t count);
/* A new node of the standard's domain at the end of the graph, which makes `output` of copies of
 * those inputs, with room for attributes, all unset; NULL: no memory. The caller restores the
 * order. */
struct sdx_ir_node *sdx_match_add_node(struct sdx_ir *ir, struct sdx_ir_graph *g, const char *op,
                                       int64_t opset, struct sdx_str name, const int32_t *inputs,
                                       int count, int32_t output, int room_attrs);
/* The node is gone and nothing makes its results any more; NULL: nothing to do. */
void sdx_match_discard(struct sdx_ir_graph *g, struct sdx_ir_node *node);
/* The node makes the value of the one that it swallows, in place of its own. */
void sdx_match_take_over(struct sdx_ir_graph *g, struct sdx_ir_node *node,
                         struct sdx_ir_node *swallowed);
/* A fresh value of the name, type and shape of `like`; -1: no memory. */
int32_t sdx_match_value_like(struct sdx_ir *ir, struct sdx_ir_graph *g, int32_t like);
/* The same of another shape, whose dims are copied. */
int32_t sdx_match_value_shaped(struct sdx_ir *ir, struct sdx_ir_graph *g, int32_t like, int rank,
                               const int64_t *dims);
/* The same but for its channels (axis 1); `like` has them. */
int32_t sdx_match_value_channels(struct sdx_ir *ir, struct sdx_ir_graph *g, int32_t like,
                                 int64_t channels);
/* The same of f32. */
int32_t sdx_match_f32_like(struct sdx_ir *ir, struct sdx_ir_graph *g, int32_t like);
/* A Cast that makes `to`, of the type that value has, of `from`; NULL: no memory. */
struct sdx_ir_node *sdx_match_add_cast(struct sdx_ir *ir, struct sdx_ir_graph *g, int32_t from,
                                       int32_t to);
/* A pass over the nodes of each graph that asks who reads a value. */
struct sdx_match_walk {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_ir_graph *g;
    int32_t *uses, *reader; /* as sdx_ir_uses and sdx_ir_last_readers have them */
    int32_t count_values;   /* that these two tell of: those before there were new ones */
    bool did;               /* set by what changes the graph */
};
/* The one living node of the standard's domain that reads the value, NULL: there are none or
 * several, or the value is new. */
struct sdx_ir_node *sdx_match_reader(const struct sdx_match_walk *w, int32_t value);
/* Calls `node` for each node n that was there, of all graphs; then nodes are in order again. */
SDX_MUST_CHECK enum sdx_status
sdx_match_walk_nodes(struct sdx_context *cx, struct sdx_ir *ir,
                     enum sdx_status (*node)(struct sdx_match_walk *w, int32_t n), bool *changed);
/* The node is of that operator from now on; its inputs and attributes stay. */
void sdx_match_rename(struct sdx_ir_node *node, const char *domain, const char *op, int64_t opset);
/* The node becomes `op` of those inputs in that version, without attributes, with room for some;
 * its other inputs are let go. The first: of the standard's domain. */
SDX_MUST_CHECK enum sdx_status sdx_match_become(struct sdx_context *cx, struct sdx_ir *ir,
                                                struct sdx_ir_node *node, const char *op,
                                                int64_t opset, const int32_t *inputs, int count,
                                                int room_attrs);
SDX_MUST_CHECK enum sdx_status sdx_match_become_in(struct sdx_context *cx, struct sdx_ir *ir,
                                                   struct sdx_ir_node *node, const char *domain,
                                                   const char *op, int64_t opset,
                                                   const int32_t *inputs, int count,
                                                   int room_attrs);
#endif
