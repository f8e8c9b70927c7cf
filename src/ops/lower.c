/* SPDX-License-Identifier: Apache-2.0
 * The builder that lowerings use. */
#include "ops/lower.h"

#include "tensor/convert.h"

const struct sdx_ir_node *sdx_lower_node(const struct sdx_lower *lx)
{
    return &lx->graph->nodes[lx->node];
}

int32_t sdx_lower_input(const struct sdx_lower *lx, int i)
{
    const struct sdx_ir_node *node = sdx_lower_node(lx);
    return i < node->count_inputs ? node->inputs[i] : -1;
}

const struct sdx_type *sdx_lower_type(const struct sdx_lower *lx, int i)
{
    static const struct sdx_type none = {0};
    int32_t v = sdx_lower_input(lx, i);
    return v < 0 ? &none : &lx->graph->values[v].type;
}

static void fail_memory(struct sdx_lower *lx)
{
    if (lx->status == SDX_OK) lx->status = SDX_FAIL_MEMORY(lx->cx);
}

enum { ATTRS_MAX = 10 };

static void add_node(struct sdx_lower *lx, const char *domain, int64_t opset, const char *op,
                     int count, const int32_t *inputs, int count_out, int32_t *out)
{
    for (int k = 0; k < count_out; k++)
        out[k] = -1;
    if (lx->status != SDX_OK) return;
    struct sdx_str name = sdx_lower_node(lx)->name;
    struct sdx_ir_node *node = sdx_ir_node_create(lx->ir, lx->graph, sdx_str(domain), sdx_str(op),
                                                  count, count_out, ATTRS_MAX);
    if (!node) {
        fail_memory(lx);
        return;
    }
    node->name = name;
    node->opset = opset;
    node->count_attrs = 0;
    for (int i = 0; i < count; i++)
        node->inputs[i] = inputs[i];
    for (int k = 0; k < count_out; k++) {
        out[k] = node->outputs[k];
        lx->graph->values[out[k]].name = name;
    }
    node->op = sdx_op_find(node->domain, node->op_type, node->opset);
    if (!node->op)
        lx->status = SDX_FAIL(lx->cx, SDX_NOT_SUPPORTED,
                              "operator %s version %lld is not supported", op, (long long)opset);
}

int32_t sdx_lower_op(struct sdx_lower *lx, const char *op, int count, const int32_t *inputs)
{
    int32_t value;
    add_node(lx, "", lx->opset, op, count, inputs, 1, &value);
    return value;
}

void sdx_lower_op_outputs(struct sdx_lower *lx, const char *op, int count, const int32_t *inputs,
                          int count_out, int32_t *out)
{
    add_node(lx, "", lx->opset, op, count, inputs, count_out, out);
}

int32_t sdx_lower_contrib(struct sdx_lower *lx, const char *op, int count, const int32_t *inputs)
{
    int32_t value;
    add_node(lx, "com.microsoft", 1, op, count, inputs, 1, &value);
    return value;
}

void sdx_lower_attrs(struct sdx_lower *lx, const char *skip)
{
    if (lx->status != SDX_OK) return;
    const struct sdx_ir_node *from = sdx_lower_node(lx);
    struct sdx_ir_node *node = &lx->graph->nodes[lx->graph->count_nodes - 1];
    for (int i = 0; i < from->count_attrs; i++)
        if ((!skip || !sdx_str_is(from->attrs[i].name, skip)) && node->count_attrs < ATTRS_MAX)
            node->attrs[node->count_attrs++] = from->attrs[i];
}

static struct sdx_ir_attr *new_attr(struct sdx_lower *lx, const char *name, enum sdx_attr_type type)
{
    if (lx->status != SDX_OK) return NULL;
    struct sdx_ir_node *node = &lx->graph->nodes[lx->graph->count_nodes - 1];
    SDX_ASSERT(node->count_attrs < ATTRS_MAX);
    struct sdx_ir_attr *attr = &node->attrs[node->count_attrs++];
    memset(attr, 0, sizeof *attr);
    attr->name = sdx_str(name);
    attr->type = (uint8_t)type;
    return attr;
}

void sdx_lower_attr_int(struct sdx_lower *lx, const char *name, int64_t v)
{
    struct sdx_ir_attr *attr = new_attr(lx, name, SDX_ATTR_INT);
    if (attr) attr->i = v;
}

void sdx_lower_attr_float(struct sdx_lower *lx, const char *name, float v)
{
    struct sdx_ir_attr *attr = new_attr(lx, name, SDX_ATTR_FLOAT);
    if (attr) attr->f = v;
}

void sdx_lower_attr_str(struct sdx_lower *lx, const char *name, const char *v)
{
    struct sdx_ir_attr *attr = new_attr(lx, name, SDX_ATTR_STRING);
    if (attr) attr->s = sdx_str(v);
}

void sdx_lower_attr_ints(struct sdx_lower *lx, const char *name, int64_t count, const int64_t *v)
{
    struct sdx_ir_attr *attr = new_attr(lx, name, SDX_ATTR_INTS);
    if (!attr) return;
    attr->count = count;
    attr->ints = sdx_arena_copy(lx->ir->arena, v, (size_t)count * sizeof *v);
    if (!attr->ints) fail_memory(lx);
}

static int32_t constant(struct sdx_lower *lx, int dtype, int rank, int64_t count)
{
    if (lx->status != SDX_OK) return -1;
    int32_t value = sdx_ir_value_create(lx->ir, lx->graph, SDX_STR("constant"));
    struct sdx_tensor *t = sdx_arena_alloc(lx->ir->arena, sizeof *t);
    size_t bytes = 0;
    if (value < 0 || !t || !sdx_dtype_bytes(dtype, count, &bytes)) {
        fail_memory(lx);
        return -1;
    }
    *t = (struct sdx_tensor){.kind = SDX_KIND_TENSOR,
                             .dtype = (uint8_t)dtype,
                             .rank = rank,
                             .count = count,
                             .bytes = bytes,
                             .is_constant = true,
                             .in_model = true,
                             .dims_inline = {count}};
    t->dims = t->dims_inline;
    t->data = sdx_arena_alloc(lx->ir->arena, bytes + 16);
    if (!t->data) {
        fail_memory(lx);
        return -1;
    }
    lx->graph->values[value].constant = t;
    lx->graph->values[value].type = (struct sdx_type){.kind = SDX_KIND_TENSOR,
                                                      .dtype = (uint8_t)dtype,
                                                      .has_shape = true,
                                                      .rank = rank,
                                                      .dims = t->dims};
    return value;
}

int32_t sdx_lower_scalar(struct sdx_lower *lx, int dtype, double v)
{
    int32_t value = constant(lx, dtype, 0, 1);
    if (value >= 0) sdx_store_f64(dtype, lx->graph->values[value].constant->data, 0, v);
    return value;
}

int32_t sdx_lower_scalar_like(struct sdx_lower *lx, int i, double v)
{
    return sdx_lower_scalar(lx, sdx_lower_type(lx, i)->dtype, v);
}

int32_t sdx_lower_ints(struct sdx_lower *lx, int64_t count, const int64_t *v)
{
    int32_t value = constant(lx, SDX_I64, 1, count);
    if (value >= 0 && count)
        memcpy(lx->graph->values[value].constant->data, v, (size_t)count * sizeof *v);
    return value;
}

void sdx_lower_output(struct sdx_lower *lx, int k, int32_t value)
{
    if (lx->status != SDX_OK) return;
    const struct sdx_ir_node *node = sdx_lower_node(lx);
    if (k >= node->count_outputs || node->outputs[k] < 0) return;
    int32_t from = node->outputs[k];
    struct sdx_ir_value *made = &lx->graph->values[value];
    if (made->producer > lx->node && made->type.kind == SDX_KIND_NONE)
        made->name = lx->graph->values[from].name; /* Gradient finds values by name */
    sdx_ir_replace_uses(lx->ir, (int32_t)(lx->graph - lx->ir->graphs), from, value);
}
