/* SPDX-License-Identifier: Apache-2.0
 * Quantised graphs as exporters write them, DequantizeLinear -> operator -> QuantizeLinear, become
 * operators on the bytes themselves:
 *   - DequantizeLinear moves down through operators that only move elements, QuantizeLinear up;
 *     the two next to each other vanish, or become a table when their scales differ;
 *   - whatever computes one byte from one byte becomes a table of 256 (qdq_table.c);
 *   - Conv, MatMul, Gemm, Add, Mul and GlobalAveragePool become their integer operators
 *     (qdq_product.c), Relu and Clip before the QuantizeLinear bounds of its range;
 *   - what scales and shifts channels by constants becomes a ByteAffine (qdq_affine.c);
 *   - a QLinearConv does the sum and the table behind it at its store (qdq_join.c);
 *   - MatMulInteger and ConvInteger take in their Cast, scales and bias (qdq_dynamic.c);
 *   - QuantizeLinear and DequantizeLinear to and from 16 bits become a FakeQuantize of floats.
 *
 * Results are those of the graph as written, but that one rounding of float operations less or more
 * may move a value that lies between two quanta to the other one. */
#include "passes/qdq.h"

#include <math.h>

#include "ops/resize_table.h"
#include "tensor/convert.h"

/* ---- nodes and values ---- */

struct sdx_ir_node *sdx_qdq_maker(const struct sdx_qdq *r, int32_t value, const char *op)
{
    const struct sdx_ir_graph *g = r->g;
    if (value < 0 || g->values[value].producer < 0 || g->values[value].constant) return NULL;
    struct sdx_ir_node *node = &g->nodes[g->values[value].producer];
    return !node->is_dead && sdx_str_is(node->op_type, op) ? node : NULL;
}

static enum sdx_status room_for_uses(struct sdx_qdq *r)
{
    if (r->g->count_values <= r->capacity_uses) return SDX_OK;
    int32_t capacity = r->g->count_values * 2;
    int32_t *uses = sdx_arena_array(r->ir->arena, (size_t)capacity, sizeof *uses);
    if (!uses) return SDX_FAIL_MEMORY(r->cx);
    if (r->capacity_uses) memcpy(uses, r->uses, (size_t)r->capacity_uses * sizeof *uses);
    r->uses = uses;
    r->capacity_uses = capacity;
    return SDX_OK;
}

int32_t sdx_qdq_value(struct sdx_qdq *r, int32_t like, int dtype)
{
    int32_t value = sdx_ir_value_create(r->ir, r->g, SDX_STR(""));
    if (value < 0 || room_for_uses(r) != SDX_OK) return -1;
    if (like >= 0) {
        r->g->values[value].name = r->g->values[like].name;
        r->g->values[value].type = r->g->values[like].type;
    }
    r->g->values[value].type.kind = SDX_KIND_TENSOR;
    r->g->values[value].type.dtype = (uint8_t)dtype;
    return value;
}

int32_t sdx_qdq_constant(struct sdx_qdq *r, int dtype, int rank, const int64_t *dims, void **data)
{
    struct sdx_tensor *t = sdx_arena_alloc(r->ir->arena, sizeof *t);
    int64_t *own = sdx_arena_array(r->ir->arena, (size_t)rank + 1, sizeof *own);
    int32_t value = sdx_qdq_value(r, -1, dtype);
    if (!t || !own || value < 0) return -1;
    for (int i = 0; i < rank; i++)
        own[i] = dims[i];
    t->kind = SDX_KIND_TENSOR;
    t->dtype = (uint8_t)dtype;
    t->rank = rank;
    t->dims = own;
    t->is_constant = t->in_model = true;
    if (!sdx_dims_count(own, rank, &t->count) || !sdx_dtype_bytes(dtype, t->count, &t->bytes))
        return -1;
    t->data = *data = sdx_arena_alloc(r->ir->arena, t->bytes + 64);
    r->g->values[value].constant = t;
    r->g->values[value].type.has_shape = true;
    r->g->values[value].type.rank = rank;
    r->g->values[value].type.dims = own;
    return t->data ? value : -1;
}

static void release(struct sdx_qdq *r, int32_t value)
{
    if (value < 0 || --r->uses[value] > 0 || r->g->values[value].producer < 0) return;
    struct sdx_ir_node *node = &r->g->nodes[r->g->values[value].producer];
    if (node->is_dead || node->count_captures) return;
    for (int k = 0; k < node->count_outputs; k++)
        if (node->outputs[k] >= 0 && r->uses[node->outputs[k]] > 0) return;
    node->is_dead = true;
    for (int i = 0; i < node->count_inputs; i++)
        release(r, node->inputs[i]);
}

enum sdx_status sdx_qdq_inputs(struct sdx_qdq *r, int32_t n, int count, const int32_t *inputs)
{
    struct sdx_ir_node *node = &r->g->nodes[n];
    int32_t *own = sdx_arena_array(r->ir->arena, (size_t)count + 1, sizeof *own),
            *old = node->inputs;
    int32_t count_old = node->count_inputs;
    if (!own) return SDX_FAIL_MEMORY(r->cx);
    for (int i = 0; i < count; i++) {
        own[i] = inputs[i];
        if (inputs[i] >= 0) r->uses[inputs[i]]++;
    }
    node->inputs = own;
    node->count_inputs = count;
    for (int i = 0; i < count_old; i++)
        release(r, old[i]);
    r->changed = true;
    return SDX_OK;
}

enum sdx_status sdx_qdq_become(struct sdx_qdq *r, int32_t n, const char *domain, const char *op,
                               int64_t opset, int count, const int32_t *inputs,
                               const struct sdx_ir_attr *attrs, int count_attrs)
{
    struct sdx_ir_node *node = &r->g->nodes[n];
    struct sdx_ir_attr *own = sdx_arena_array(r->ir->arena, (size_t)count_attrs + 1, sizeof *own);
    if (!own) return SDX_FAIL_MEMORY(r->cx);
    for (int i = 0; i < count_attrs; i++)
        own[i] = attrs[i];
    node->attrs = own;
    node->count_attrs = count_attrs;
    sdx_match_rename(node, domain, op, opset);
    return sdx_qdq_inputs(r, n, count, inputs);
}

/* ---- scales and zero points ---- */

static bool is_byte(int dtype)
{
    return dtype == SDX_U8 || dtype == SDX_I8;
}

bool sdx_qdq_params(const struct sdx_qdq *r, const struct sdx_ir_node *node, struct sdx_quant *q)
{
    double scale = 0, zero = 0;
    *q = (struct sdx_quant){.x = node->inputs[0], .scale = node->inputs[1], .zero = -1};
    if (sdx_ir_attr_int(node, "block_size", 0) || sdx_ir_attr_int(node, "precision", 0))
        return false;
    const struct sdx_tensor *s = sdx_match_constant(r->g, q->scale);
    if (!s || s->dtype != SDX_F32 || !sdx_match_scalar(r->g, q->scale, &scale)) return false;
    if (!(scale > 0) || !isfinite(scale)) return false;
    if (node->count_inputs > 2 && node->inputs[2] >= 0) {
        q->zero = node->inputs[2];
        if (!sdx_match_scalar(r->g, q->zero, &zero)) return false;
    }
    q->s = (float)scale;
    q->z = (int32_t)zero;
    return true;
}

bool sdx_qdq_dequantized(const struct sdx_qdq *r, int32_t value, struct sdx_quant *q)
{
    const struct sdx_ir_node *node = sdx_qdq_maker(r, value, "DequantizeLinear");
    if (!node || node->inputs[0] < 0 || !sdx_qdq_params(r, node, q)) return false;
    q->dtype = r->g->values[q->x].type.dtype;
    return is_byte(q->dtype) && r->g->values[value].type.dtype == SDX_F32;
}

bool sdx_qdq_quantizes(const struct sdx_qdq *r, const struct sdx_ir_node *node, struct sdx_quant *q)
{
    if (!sdx_str_is(node->op_type, "QuantizeLinear") || node->inputs[0] < 0 ||
        !sdx_qdq_params(r, node, q))
        return false;
    q->dtype = r->g->values[node->outputs[0]].type.dtype;
    return is_byte(q->dtype) && r->g->values[q->x].type.dtype == SDX_F32;
}

bool sdx_qdq_same(const struct sdx_quant *a, const struct sdx_quant *b)
{
    return a->s == b->s && a->z == b->z && a->dtype == b->dtype;
}

int32_t sdx_qdq_zero(struct sdx_qdq *r, int32_t zero, int dtype)
{
    void *data = NULL;
    return zero >= 0 ? zero : sdx_qdq_constant(r, dtype, 0, NULL, &data);
}

/* ---- operators that only move elements ---- */

static const struct mover {
    const char *op;
    int data;     /* how many inputs are moved, 0: all */
    bool shrinks; /* the result may be much smaller */
} movers[] = {
    {"Reshape", 1, false},      {"Transpose", 1, false},    {"Flatten", 1, false},
    {"Squeeze", 1, false},      {"Unsqueeze", 1, false},    {"Identity", 1, false},
    {"Concat", 0, false},       {"MaxPool", 1, true},       {"Resize", 1, false},
    {"DepthToSpace", 1, false}, {"SpaceToDepth", 1, false}, {"Expand", 1, false},
    {"Tile", 1, false},         {"Pad", 1, false},          {"Slice", 1, true},
    {"Split", 1, true},         {"Gather", 1, true},        {"GatherElements", 1, true},
    {"GatherND", 1, true},
};

/* Moves bytes as it moves floats; *pads: it adds zeros of its own. */
static const struct mover *mover_of(const struct sdx_qdq *r, const struct sdx_ir_node *node,
                                    bool *pads)
{
    double value = 0;
    *pads = false;
    if (node->is_dead || node->domain.len || node->count_inputs < 1) return NULL;
    const struct mover *m = NULL;
    for (int i = 0; i < SDX_COUNT_OF(movers); i++)
        if (sdx_str_is(node->op_type, movers[i].op)) m = &movers[i];
    if (!m) return NULL;
    if (sdx_str_is(node->op_type, "MaxPool"))
        return node->count_outputs == 1 && node->opset >= 8 ? m : NULL;
    if (sdx_str_is(node->op_type, "Resize"))
        return sdx_str_is(sdx_ir_attr_str(node, "mode", "nearest"), "nearest") &&
                       !sdx_str_is(sdx_ir_attr_str(node, "coordinate_transformation_mode", ""),
                                   "tf_crop_and_resize")
                   ? m
                   : NULL;
    if (!sdx_str_is(node->op_type, "Pad")) return m;
    if (node->opset < 11) return NULL;
    *pads = sdx_str_is(sdx_ir_attr_str(node, "mode", "constant"), "constant");
    bool has_value = node->count_inputs > 2 && node->inputs[2] >= 0;
    bool is_zero = !has_value || (sdx_match_scalar(r->g, node->inputs[2], &value) && value == 0);
    return !*pads || is_zero ? m : NULL;
}

static int data_inputs(const struct mover *m, const struct sdx_ir_node *node)
{
    return m->data ? m->data : node->count_inputs;
}

/* Node n moves these values (its data inputs) of quantised bytes from now on. */
static enum sdx_status move_bytes(struct sdx_qdq *r, int32_t n, int count, const int32_t *values,
                                  bool pads, const struct sdx_quant *q)
{
    const struct sdx_ir_node *node = &r->g->nodes[n];
    int total = pads && node->count_inputs < 3 ? 3 : node->count_inputs;
    int32_t *inputs = sdx_arena_array(r->ir->arena, (size_t)total + 1, sizeof *inputs);
    if (!inputs) return SDX_FAIL_MEMORY(r->cx);
    for (int i = 0; i < total; i++)
        inputs[i] = i < count ? values[i] : i < node->count_inputs ? node->inputs[i] : -1;
    if (pads) {
        void *data = NULL;
        inputs[2] = sdx_qdq_constant(r, q->dtype, 0, NULL, &data);
        if (inputs[2] < 0) return SDX_FAIL_MEMORY(r->cx);
        *(uint8_t *)data = (uint8_t)q->z;
    }
    SDX_TRY(sdx_qdq_inputs(r, n, total, inputs));
    struct sdx_ir_node *moved = &r->g->nodes[n];
    if (sdx_str_is(moved->op_type, "MaxPool") && moved->opset < 12) { /* bytes came with 12 */
        moved->opset = 12;
        moved->op = sdx_op_find(moved->domain, moved->op_type, moved->opset);
    }
    return SDX_OK;
}

/* All that node n moves was dequantised alike: it moves the bytes, and its outputs are dequantised.
 */
static enum sdx_status push_down(struct sdx_qdq *r, int32_t n)
{
    bool pads = false;
    struct sdx_ir_node *node = &r->g->nodes[n];
    const struct mover *m = mover_of(r, node, &pads);
    if (!m) return SDX_OK;
    int count = data_inputs(m, node);
    struct sdx_quant first = {0}, q;
    int32_t *values = sdx_arena_array(r->ir->arena, (size_t)count + 1, sizeof *values);
    if (!values) return SDX_FAIL_MEMORY(r->cx);
    for (int i = 0; i < count; i++) {
        if (!sdx_qdq_dequantized(r, node->inputs[i], &q)) return SDX_OK;
        if (i == 0) first = q;
        if (!sdx_qdq_same(&first, &q)) return SDX_OK;
        values[i] = q.x;
    }
    SDX_TRY(move_bytes(r, n, count, values, pads, &first));
    for (int k = 0; k < r->g->nodes[n].count_outputs; k++) {
        int32_t old = r->g->nodes[n].outputs[k];
        if (old < 0) continue;
        int32_t bytes = sdx_qdq_value(r, old, first.dtype);
        if (bytes < 0) return SDX_FAIL_MEMORY(r->cx);
        sdx_ir_node_set_output(r->g, &r->g->nodes[n], n, k, bytes);
        int32_t in[] = {bytes, first.scale, first.zero};
        SDX_TRY(sdx_qdq_add(r, "DequantizeLinear", first.zero < 0 ? 2 : 3, in, old));
    }
    return SDX_OK;
}

enum sdx_status sdx_qdq_add(struct sdx_qdq *r, const char *op, int count, const int32_t *inputs,
                            int32_t output)
{
    if (!sdx_match_add_node(r->ir, r->g, op, SDX_QDQ_OPSET, r->g->values[output].name, inputs,
                            count, output, 0))
        return SDX_FAIL_MEMORY(r->cx);
    for (int i = 0; i < count; i++)
        if (inputs[i] >= 0) r->uses[inputs[i]]++;
    r->changed = true;
    return SDX_OK;
}

/* Node `at`, which made what only the QuantizeLinear n reads, makes the bytes of n itself. */
static void take_place(struct sdx_qdq *r, int32_t n, int32_t at, const struct sdx_quant *q)
{
    const int32_t output = r->g->nodes[n].outputs[0];
    r->g->nodes[n].is_dead = true;
    r->uses[q->x] = 0;
    release(r, q->scale);
    release(r, q->zero);
    r->g->values[q->x].producer = -1;
    sdx_ir_node_set_output(r->g, &r->g->nodes[at], at, 0, output);
}

/* Value `v`, which only the QuantizeLinear n reads, is moved together: its parts are quantised
 * instead. */
static enum sdx_status push_up(struct sdx_qdq *r, int32_t n, const struct sdx_quant *q, bool *done)
{
    bool pads = false;
    int32_t v = q->x, at = r->g->values[v].producer;
    if (at < 0 || r->uses[v] != 1) return SDX_OK;
    const struct mover *m = mover_of(r, &r->g->nodes[at], &pads);
    if (!m || r->g->nodes[at].count_outputs != 1) return SDX_OK;
    int count = data_inputs(m, &r->g->nodes[at]);
    for (int i = 0; i < count; i++) {
        int32_t in = r->g->nodes[at].inputs[i];
        if (in < 0 || (m->shrinks && !sdx_qdq_is_byte_function(r, in))) return SDX_OK;
    }
    int32_t *values = sdx_arena_array(r->ir->arena, (size_t)count + 1, sizeof *values);
    if (!values) return SDX_FAIL_MEMORY(r->cx);
    for (int i = 0; i < count; i++) {
        int32_t in[] = {r->g->nodes[at].inputs[i], q->scale, q->zero};
        values[i] = sdx_qdq_value(r, in[0], q->dtype);
        if (values[i] < 0) return SDX_FAIL_MEMORY(r->cx);
        SDX_TRY(sdx_qdq_add(r, "QuantizeLinear", q->zero < 0 ? 2 : 3, in, values[i]));
    }
    SDX_TRY(move_bytes(r, at, count, values, pads, q));
    take_place(r, n, at, q);
    *done = true;
    return SDX_OK;
}

/* What the QuantizeLinear n reads is filtered from bytes of the same scale: then the bytes are.
 * Sums of weights are 1, so that scale and zero point have no part in it, nor has saturation. */
static enum sdx_status resize_bytes(struct sdx_qdq *r, int32_t n, const struct sdx_quant *q,
                                    bool *done)
{
    const int32_t at = r->uses[q->x] == 1 ? r->g->values[q->x].producer : -1;
    if (at < 0) return SDX_OK;
    const struct sdx_ir_node *node = &r->g->nodes[at];
    struct sdx_quant from;
    if (node->domain.len || !sdx_str_is(node->op_type, "Resize") || node->opset < 11 ||
        sdx_str_is(sdx_ir_attr_str(node, "coordinate_transformation_mode", ""),
                   "tf_crop_and_resize") ||
        !sdx_qdq_dequantized(r, node->inputs[0], &from) || !sdx_qdq_same(q, &from))
        return SDX_OK;
    const struct sdx_type *type = &r->g->values[from.x].type;
    if (!type->has_shape || type->rank != 4 || type->dims[1] < SDX_RESIZE_CELL_LEAST) return SDX_OK;
    SDX_TRY(move_bytes(r, at, 1, &from.x, false, q));
    take_place(r, n, at, q);
    *done = true;
    return SDX_OK;
}

/* ---- QuantizeLinear ---- */

static enum sdx_status vanish(struct sdx_qdq *r, int32_t n, int32_t bytes)
{
    struct sdx_ir_node *node = &r->g->nodes[n];
    int32_t old = node->outputs[0];
    if (r->g->values[old].flags & SDX_IR_OUTPUT) { /* keeps the output's name */
        int32_t in[] = {bytes};
        return sdx_qdq_become(r, n, "", "Identity", SDX_QDQ_OPSET, 1, in, NULL, 0);
    }
    r->uses[bytes] += r->uses[old];
    r->uses[old] = 0;
    sdx_ir_replace_uses(r->ir, r->graph, old, bytes);
    node->is_dead = true;
    for (int i = 0; i < node->count_inputs; i++)
        release(r, node->inputs[i]);
    r->changed = true;
    return SDX_OK;
}

static enum sdx_status rewrite_quantize(struct sdx_qdq *r, int32_t n)
{
    struct sdx_quant q, from;
    bool done = false;
    if (!sdx_qdq_quantizes(r, &r->g->nodes[n], &q)) return SDX_OK;
    if (sdx_qdq_dequantized(r, q.x, &from) && sdx_qdq_same(&q, &from)) return vanish(r, n, from.x);
    SDX_TRY(sdx_qdq_table(r, n, &done));
    if (!done) SDX_TRY(resize_bytes(r, n, &q, &done));
    if (!done) SDX_TRY(push_up(r, n, &q, &done));
    if (!done) SDX_TRY(sdx_qdq_operator(r, n, &q));
    return SDX_OK;
}

/* ---- 16 bits ---- */

/* What node n, a DequantizeLinear, quantises and dequantises alike in 16 bits. */
static bool is_pair(const struct sdx_qdq *r, const struct sdx_ir_node *node, struct sdx_quant *q)
{
    struct sdx_quant own;
    if (node->is_dead || !sdx_str_is(node->op_type, "DequantizeLinear")) return false;
    const struct sdx_ir_node *from = sdx_qdq_maker(r, node->inputs[0], "QuantizeLinear");
    if (!from || !sdx_qdq_params(r, from, q) || !sdx_qdq_params(r, node, &own)) return false;
    q->dtype = own.dtype = r->g->values[own.x].type.dtype;
    return (q->dtype == SDX_U16 || q->dtype == SDX_I16) && sdx_qdq_same(q, &own) &&
           r->g->values[q->x].type.dtype == SDX_F32 &&
           r->g->values[node->outputs[0]].type.dtype == SDX_F32;
}
/* Was `value` rounded so already, before it was moved? */
static bool is_rounded(const struct sdx_qdq *r, int32_t value, float scale, float low)
{
    bool pads = false;
    while (value >= 0 && r->g->values[value].producer >= 0 && !r->g->values[value].constant) {
        const struct sdx_ir_node *node = &r->g->nodes[r->g->values[value].producer];
        if (sdx_str_is(node->op_type, "FakeQuantize"))
            return sdx_ir_attr_float(node, "scale", 0) == scale &&
                   sdx_ir_attr_float(node, "low", 1) == low;
        const struct mover *m = mover_of(r, node, &pads);
        if (!m || data_inputs(m, node) != 1 || pads) return false;
        value = node->inputs[0];
    }
    return false;
}
static enum sdx_status round_floats(struct sdx_qdq *r, int32_t n)
{
    struct sdx_quant q;
    if (!is_pair(r, &r->g->nodes[n], &q)) return SDX_OK;
    const float low = (float)((q.dtype == SDX_U16 ? 0 : INT16_MIN) - q.z);
    if (is_rounded(r, q.x, q.s, low))
        return sdx_qdq_become(r, n, "", "Identity", SDX_QDQ_OPSET, 1, &q.x, NULL, 0);
    const struct sdx_ir_attr attrs[] = {
        {.name = SDX_STR("scale"), .type = SDX_ATTR_FLOAT, .f = q.s, .graph = -1},
        {.name = SDX_STR("low"), .type = SDX_ATTR_FLOAT, .f = low, .graph = -1}};
    return sdx_qdq_become(r, n, "ai.sardonyx", "FakeQuantize", 1, 1, &q.x, attrs, 2);
}

static enum sdx_status rewrite_graph(struct sdx_qdq *r)
{
    SDX_TRY(room_for_uses(r));
    sdx_ir_count_uses(r->g, r->uses);
    for (int32_t n = 0; n < r->g->count_nodes; n++)
        if (!r->g->nodes[n].is_dead) SDX_TRY(push_down(r, n));
    for (int32_t n = 0; n < r->g->count_nodes; n++)
        if (!r->g->nodes[n].is_dead) SDX_TRY(rewrite_quantize(r, n));
    for (int32_t n = 0; n < r->g->count_nodes; n++)
        if (!r->g->nodes[n].is_dead) SDX_TRY(sdx_qdq_float_product(r, n));
    SDX_TRY(sdx_qdq_dynamic(r));
    for (int32_t n = 0; n < r->g->count_nodes; n++)
        SDX_TRY(round_floats(r, n));
    for (int32_t n = 0; n < r->g->count_nodes; n++)
        SDX_TRY(sdx_qdq_join_sum(r, n));
    for (int32_t n = 0; n < r->g->count_nodes; n++)
        SDX_TRY(sdx_qdq_join_table(r, n));
    return r->changed ? sdx_ir_sort(r->cx, r->ir, r->g) : SDX_OK;
}

enum sdx_status sdx_pass_qdq(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t graph = 0; graph < ir->count_graphs; graph++) {
        struct sdx_qdq r = {.cx = cx, .ir = ir, .g = &ir->graphs[graph], .graph = graph};
        bool any = false;
        for (int32_t n = 0; n < r.g->count_nodes && !any; n++)
            any = sdx_str_is(r.g->nodes[n].op_type, "DequantizeLinear") ||
                  sdx_str_is(r.g->nodes[n].op_type, "MatMulInteger") ||
                  sdx_str_is(r.g->nodes[n].op_type, "ConvInteger");
        if (any) SDX_TRY(rewrite_graph(&r));
        *changed = *changed || r.changed;
    }
    return SDX_OK;
}
