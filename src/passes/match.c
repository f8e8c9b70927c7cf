/* SPDX-License-Identifier: Apache-2.0
 * Recognising patterns. */
#include "passes/match.h"

#include <math.h>

#include "tensor/convert.h"

struct sdx_ir_node *sdx_match_maker(const struct sdx_ir_graph *g, int32_t value, const char *op)
{
    if (value < 0 || g->values[value].producer < 0 || g->values[value].constant) return NULL;
    struct sdx_ir_node *node = &g->nodes[g->values[value].producer];
    return sdx_match_is(node, op) ? node : NULL;
}

bool sdx_match_is_one_of(const struct sdx_ir_node *node, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (sdx_str_is(node->op_type, names[i])) return true;
    return false;
}

static struct sdx_tensor *any_constant(const struct sdx_ir_graph *g, int32_t value)
{
    if (value < 0 || g->values[value].flags & SDX_IR_INPUT) return NULL;
    return g->values[value].constant;
}

const struct sdx_tensor *sdx_match_constant(const struct sdx_ir_graph *g, int32_t value)
{
    struct sdx_tensor *t = any_constant(g, value);
    if (t && t->recipe) {
        void *data = sdx_arena_alloc(t->recipe->arena, t->bytes + 64);
        if (!data) return NULL;
        sdx_tensor_copy_elements(t, data);
        sdx_tensor_settle(t, data);
    }
    return t;
}

bool sdx_match_all_are(const struct sdx_ir_node *node, const char *attr, int64_t value)
{
    int64_t count = 0;
    const int64_t *list = sdx_ir_attr_ints(node, attr, &count);
    for (int64_t i = 0; list && i < count; i++)
        if (list[i] != value) return false;
    return true;
}

bool sdx_match_scalar(const struct sdx_ir_graph *g, int32_t value, double *scalar)
{
    const struct sdx_tensor *t = sdx_match_constant(g, value);
    if (!t || t->kind != SDX_KIND_TENSOR || t->count != 1 || !t->data) return false;
    *scalar = sdx_load_f64(t->dtype, t->data, 0);
    return true;
}

bool sdx_match_with_scalar(const struct sdx_ir_graph *g, int32_t value, const char *op,
                           int32_t *rest, double *scalar)
{
    const struct sdx_ir_node *node = sdx_match_maker(g, value, op);
    if (!node || node->count_inputs != 2) return false;
    bool commutes = sdx_str_is(node->op_type, "Mul") || sdx_str_is(node->op_type, "Add");
    for (int i = 1; i >= (commutes ? 0 : 1); i--) {
        if (!sdx_match_scalar(g, node->inputs[i], scalar)) continue;
        *rest = node->inputs[1 - i];
        return *rest >= 0;
    }
    return false;
}

const struct sdx_tensor *sdx_match_constant_f32(const struct sdx_ir_graph *g,
                                                const struct sdx_ir_node *node, int i)
{
    const struct sdx_tensor *t =
        i < node->count_inputs ? sdx_match_constant(g, node->inputs[i]) : NULL;
    return t && t->dtype == SDX_F32 ? t : NULL;
}

const int64_t *sdx_match_ints(const struct sdx_ir_graph *g, const struct sdx_ir_node *node, int i,
                              int64_t *count)
{
    const struct sdx_tensor *t =
        i < node->count_inputs ? sdx_match_constant(g, node->inputs[i]) : NULL;
    if (!t || t->dtype != SDX_I64 || t->rank != 1 || t->needs_copy) return NULL;
    *count = t->count;
    return t->data;
}

bool sdx_match_list(const struct sdx_ir_graph *g, const struct sdx_ir_node *node, int i,
                    const char *name, const int64_t **list, int64_t *count)
{
    const bool is_input = node->count_inputs > i && node->inputs[i] >= 0;
    *count = 0;
    *list = is_input ? sdx_match_ints(g, node, i, count)
            : name   ? sdx_ir_attr_ints(node, name, count)
                     : NULL;
    return *list || !is_input;
}

bool sdx_match_is_channels(const struct sdx_tensor *t, int rank, int64_t channels)
{
    if (t->rank > rank || (t->count != 1 && t->count != channels)) return false;
    for (int d = 0; d < t->rank && t->count > 1; d++)
        if (t->dims[d] != (rank - t->rank + d == 1 ? channels : 1)) return false;
    return true;
}

bool sdx_match_moves_axis(const struct sdx_ir_node *node, int rank, int from, int to)
{
    int64_t count = 0;
    const int64_t *perm =
        sdx_match_is(node, "Transpose") ? sdx_ir_attr_ints(node, "perm", &count) : NULL;
    if (!perm || count != rank) return false;
    for (int i = 0, other = 0; i < rank; i++) {
        other += other == from;
        if (perm[i] != (i == to ? from : other++)) return false;
    }
    return true;
}

bool sdx_match_near(double a, double b)
{
    return fabs(a - b) <= 1e-4 * fabs(b) || a == (double)sdx_f16_to_f32(sdx_f32_to_f16((float)b)) ||
           a == (double)sdx_bf16_to_f32(sdx_f32_to_bf16((float)b));
}

bool sdx_match_same_type(const struct sdx_ir_graph *g, int32_t a, int32_t b)
{
    const struct sdx_type *x = &g->values[a].type, *y = &g->values[b].type;
    if (x->kind != SDX_KIND_TENSOR || y->kind != SDX_KIND_TENSOR || x->dtype != y->dtype ||
        !x->has_shape || !y->has_shape || x->rank != y->rank)
        return false;
    for (int d = 0; d < x->rank; d++)
        if (x->dims[d] == -1 || x->dims[d] != y->dims[d]) return false;
    return true;
}

struct sdx_ir_node *sdx_match_plain_product(const struct sdx_ir_graph *g, int32_t value)
{
    struct sdx_ir_node *node = sdx_match_maker(g, value, "MatMul");
    return node && node->count_inputs == 2 && node->count_attrs == 0 ? node : NULL;
}

bool sdx_match_is_fused(const struct sdx_ir_node *product)
{
    return product->count_inputs > 3 || sdx_ir_attr(product, "activation");
}

struct sdx_ir_node *sdx_match_adds_row(const struct sdx_ir_graph *g, struct sdx_ir_node *node,
                                       int32_t y, int64_t columns, int32_t *row)
{
    *row = -1;
    if (!sdx_match_is(node, "Add") || node->count_inputs != 2) return NULL;
    const int i = node->inputs[0] == y;
    const struct sdx_tensor *t = sdx_match_constant_f32(g, node, i);
    if (!t || t->rank != 1 || t->count != columns) return NULL;
    *row = node->inputs[i];
    return node;
}

bool sdx_match_takes_residual(const struct sdx_ir_graph *g, const struct sdx_ir_node *product)
{
    if (product->count_inputs > 3 && product->inputs[3] >= 0) return false;
    if (!sdx_str_is(product->op_type, "Gemm") || product->count_inputs < 3 ||
        product->inputs[2] < 0)
        return true;
    const struct sdx_type *type = &g->values[product->inputs[2]].type;
    return type->has_shape && type->rank <= 1;
}

int32_t sdx_match_add_constant(struct sdx_ir *ir, struct sdx_ir_graph *g, struct sdx_str name,
                               struct sdx_tensor *t)
{
    int32_t v = sdx_ir_value_create(ir, g, name);
    if (v < 0) return -1;
    g->values[v].constant = t;
    g->values[v].type = (struct sdx_type){.kind = SDX_KIND_TENSOR,
                                          .dtype = t->dtype,
                                          .has_shape = true,
                                          .rank = t->rank,
                                          .dims = t->dims};
    return v;
}

bool sdx_match_is_pointwise(const struct sdx_ir_node *conv, const struct sdx_tensor *weights)
{
    if (weights->rank < 3 || sdx_ir_attr_int(conv, "group", 1) != 1) return false;
    for (int d = 2; d < weights->rank; d++)
        if (weights->dims[d] != 1) return false;
    return sdx_match_all_are(conv, "strides", 1) && sdx_match_all_are(conv, "pads", 0);
}

static struct sdx_tensor *new_constant(struct sdx_ir *ir, int dtype, int rank, const int64_t *dims)
{
    struct sdx_tensor *t = sdx_arena_alloc(ir->arena, sizeof *t);
    int64_t *own = sdx_arena_copy(ir->arena, dims, (size_t)rank * sizeof *dims);
    if (!t || !own || !sdx_dims_count(dims, rank, &t->count) ||
        !sdx_dtype_bytes(dtype, t->count, &t->bytes))
        return NULL;
    t->kind = SDX_KIND_TENSOR;
    t->dtype = (uint8_t)dtype;
    t->rank = rank;
    t->dims = own;
    t->is_constant = t->in_model = true;
    return t;
}

struct sdx_tensor *sdx_match_new_constant(struct sdx_ir *ir, int dtype, int rank,
                                          const int64_t *dims)
{
    struct sdx_tensor *t = new_constant(ir, dtype, rank, dims);
    if (t) t->data = sdx_arena_alloc(ir->arena, t->bytes + 64);
    return t && t->data ? t : NULL;
}

struct sdx_tensor *sdx_match_new_recipe(struct sdx_ir *ir, struct sdx_recipe *recipe, int rank,
                                        const int64_t *dims)
{
    struct sdx_tensor *t = new_constant(ir, recipe->of->dtype, rank, dims);
    if (!t) return NULL;
    recipe->arena = ir->arena;
    t->recipe = recipe;
    t->needs_copy = true;
    return t;
}

const struct sdx_tensor *sdx_match_weights(const struct sdx_ir_graph *g,
                                           const struct sdx_ir_node *product, int i)
{
    const struct sdx_tensor *t =
        i < product->count_inputs ? any_constant(g, product->inputs[i]) : NULL;
    const bool fits = t && t->count > 0 && g->values[product->outputs[0]].type.dtype == SDX_F32 &&
                      (t->dtype == SDX_F32 || t->dtype == SDX_F16 || t->dtype == SDX_BF16);
    return fits ? t : NULL;
}

int32_t sdx_match_add_ints(struct sdx_ir *ir, struct sdx_ir_graph *g, const char *name,
                           const int64_t *values, int64_t count)
{
    struct sdx_tensor *t = sdx_arena_alloc(ir->arena, sizeof *t);
    if (!t) return -1;
    *t = (struct sdx_tensor){.kind = SDX_KIND_TENSOR,
                             .dtype = SDX_I64,
                             .rank = 1,
                             .count = count,
                             .bytes = (size_t)count * sizeof *values,
                             .is_constant = true,
                             .in_model = true,
                             .dims_inline = {count}};
    t->dims = t->dims_inline;
    t->data = sdx_arena_copy(ir->arena, values, t->bytes);
    return t->data ? sdx_match_add_constant(ir, g, sdx_str(name), t) : -1;
}

struct sdx_ir_node *sdx_match_add_node(struct sdx_ir *ir, struct sdx_ir_graph *g, const char *op,
                                       int64_t opset, struct sdx_str name, const int32_t *inputs,
                                       int count, int32_t output, int room_attrs)
{
    struct sdx_ir_node *node =
        sdx_ir_node_create(ir, g, SDX_STR(""), sdx_str(op), count, 0, room_attrs);
    if (!node) return NULL;
    node->outputs = sdx_arena_alloc(ir->arena, sizeof *node->outputs);
    if (!node->outputs) return NULL;
    node->count_outputs = 1;
    node->name = name;
    node->opset = opset;
    node->op = sdx_op_find(node->domain, node->op_type, opset);
    SDX_ASSERT(node->op);
    for (int i = 0; i < count; i++)
        node->inputs[i] = inputs[i];
    sdx_ir_node_set_output(g, node, g->count_nodes - 1, 0, output);
    return node;
}

void sdx_match_discard(struct sdx_ir_graph *g, struct sdx_ir_node *node)
{
    if (!node) return;
    for (int k = 0; k < node->count_outputs; k++)
        if (node->outputs[k] >= 0) g->values[node->outputs[k]].producer = -1;
    node->is_dead = true;
}

void sdx_match_take_over(struct sdx_ir_graph *g, struct sdx_ir_node *node,
                         struct sdx_ir_node *swallowed)
{
    const int32_t old = node->outputs[0], value = swallowed->outputs[0];
    node->outputs[0] = value;
    g->values[value].producer = (int32_t)(node - g->nodes);
    g->values[value].producer_slot = 0;
    g->values[old].producer = -1;
    swallowed->is_dead = true;
}

int32_t sdx_match_value_like(struct sdx_ir *ir, struct sdx_ir_graph *g, int32_t like)
{
    const struct sdx_type type = g->values[like].type; /* values may move */
    const int32_t made = sdx_ir_value_create(ir, g, g->values[like].name);
    if (made >= 0) g->values[made].type = type;
    return made;
}

int32_t sdx_match_value_shaped(struct sdx_ir *ir, struct sdx_ir_graph *g, int32_t like, int rank,
                               const int64_t *dims)
{
    const int32_t made = sdx_match_value_like(ir, g, like);
    int64_t *own = sdx_arena_copy(ir->arena, dims, (size_t)rank * sizeof *dims);
    if (made < 0 || !own) return -1;
    struct sdx_type *type = &g->values[made].type;
    type->has_shape = true;
    type->rank = rank;
    type->dims = own;
    return made;
}
int32_t sdx_match_value_channels(struct sdx_ir *ir, struct sdx_ir_graph *g, int32_t like,
                                 int64_t channels)
{
    const struct sdx_type *type = &g->values[like].type;
    int64_t dims[SDX_RANK_MAX];
    memcpy(dims, type->dims, (size_t)type->rank * sizeof *dims);
    dims[1] = channels;
    return sdx_match_value_shaped(ir, g, like, type->rank, dims);
}

int32_t sdx_match_f32_like(struct sdx_ir *ir, struct sdx_ir_graph *g, int32_t like)
{
    const int32_t made = sdx_match_value_like(ir, g, like);
    if (made >= 0) g->values[made].type.dtype = SDX_F32;
    return made;
}

struct sdx_ir_node *sdx_match_add_cast(struct sdx_ir *ir, struct sdx_ir_graph *g, int32_t from,
                                       int32_t to)
{
    struct sdx_ir_node *node =
        sdx_match_add_node(ir, g, "Cast", 13, g->values[to].name, &from, 1, to, 1);
    if (node)
        node->attrs[0] = (struct sdx_ir_attr){.name = SDX_STR("to"),
                                              .type = SDX_ATTR_INT,
                                              .graph = -1,
                                              .i = g->values[to].type.dtype};
    return node;
}

void sdx_match_rename(struct sdx_ir_node *node, const char *domain, const char *op, int64_t opset)
{
    node->domain = sdx_str(domain);
    node->op_type = sdx_str(op);
    node->opset = opset;
    node->op = sdx_op_find(node->domain, node->op_type, opset);
    SDX_ASSERT(node->op);
}

enum sdx_status sdx_match_become_in(struct sdx_context *cx, struct sdx_ir *ir,
                                    struct sdx_ir_node *node, const char *domain, const char *op,
                                    int64_t opset, const int32_t *inputs, int count, int room_attrs)
{
    int32_t *own = sdx_arena_copy(ir->arena, inputs, (size_t)count * sizeof *inputs);
    struct sdx_ir_attr *attrs = sdx_arena_array(ir->arena, (size_t)room_attrs + 1, sizeof *attrs);
    if (!own || !attrs) return SDX_FAIL_MEMORY(cx);
    node->inputs = own;
    node->count_inputs = count;
    node->attrs = attrs;
    node->count_attrs = 0;
    sdx_match_rename(node, domain, op, opset);
    return SDX_OK;
}
enum sdx_status sdx_match_become(struct sdx_context *cx, struct sdx_ir *ir,
                                 struct sdx_ir_node *node, const char *op, int64_t opset,
                                 const int32_t *inputs, int count, int room_attrs)
{
    return sdx_match_become_in(cx, ir, node, "", op, opset, inputs, count, room_attrs);
}

struct sdx_ir_node *sdx_match_reader(const struct sdx_match_walk *w, int32_t value)
{
    if (value >= w->count_values || w->uses[value] != 1 || w->reader[value] < 0) return NULL;
    struct sdx_ir_node *node = &w->g->nodes[w->reader[value]];
    return node->is_dead || node->domain.len ? NULL : node;
}

static enum sdx_status walk_graph(struct sdx_match_walk *w, struct sdx_arena *arena,
                                  enum sdx_status (*node)(struct sdx_match_walk *w, int32_t n))
{
    w->count_values = w->g->count_values;
    w->uses = sdx_ir_uses(w->g, arena);
    w->reader = sdx_ir_last_readers(w->g, arena);
    if (!w->uses || !w->reader) return SDX_FAIL_MEMORY(w->cx);
    for (int32_t n = 0, count = w->g->count_nodes; n < count; n++)
        SDX_TRY(node(w, n));
    return w->did ? sdx_ir_sort(w->cx, w->ir, w->g) : SDX_OK;
}

enum sdx_status sdx_match_walk_nodes(struct sdx_context *cx, struct sdx_ir *ir,
                                     enum sdx_status (*node)(struct sdx_match_walk *w, int32_t n),
                                     bool *changed)
{
    for (int32_t n = 0; n < ir->count_graphs; n++) {
        struct sdx_match_walk w = {.cx = cx, .ir = ir, .g = &ir->graphs[n]};
        struct sdx_arena arena;
        sdx_arena_init(&arena, cx->mem, SDX_MEM_PLAN);
        const enum sdx_status status = walk_graph(&w, &arena, node);
        sdx_arena_deinit(&arena);
        SDX_TRY(status);
        *changed = *changed || w.did;
    }
    return SDX_OK;
}
