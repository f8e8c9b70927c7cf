/* SPDX-License-Identifier: Apache-2.0
 * Public API: what the callbacks of the caller's own operators ask of a node and of a call. */
#include "base/thread_pool.h"
#include "ops/custom.h"

/* ---- the node ---- */

const char *sdx_node_name(const sdx_node *node)
{
    return node->name;
}

const char *sdx_node_domain(const sdx_node *node)
{
    return node->row->given.domain;
}

const char *sdx_node_op(const sdx_node *node)
{
    return node->row->given.name;
}

int sdx_node_opset(const sdx_node *node)
{
    return (int)node->node->opset;
}

int64_t sdx_node_number(const sdx_node *node)
{
    const struct sdx_ir_graph *g = &node->ir->graphs[node->graph];
    return (int64_t)node->graph << 32 | (node->node - g->nodes);
}

int sdx_node_count_inputs(const sdx_node *node)
{
    return node->node->count_inputs;
}

int sdx_node_count_outputs(const sdx_node *node)
{
    return node->node->count_outputs;
}

static const sdx_value_info *info_at(const sdx_value_info *infos, int i, int count)
{
    return i >= 0 && i < count && infos[i].name ? &infos[i] : NULL;
}

const sdx_value_info *sdx_node_input(const sdx_node *node, int i)
{
    return info_at(node->in, i, node->node->count_inputs);
}

const sdx_value_info *sdx_node_output(const sdx_node *node, int i)
{
    return info_at(node->out, i, node->node->count_outputs);
}

const sdx_tensor *sdx_node_value(const sdx_node *node, int i)
{
    return sdx_node_input(node, i) ? node->value(node, i) : NULL;
}

const sdx_attr *sdx_node_attr(const sdx_node *node, const char *name)
{
    for (int32_t a = 0; a < node->node->count_attrs; a++)
        if (strcmp(node->attrs[a].name, name) == 0) return &node->attrs[a];
    return NULL;
}

const sdx_attr *sdx_node_attr_at(const sdx_node *node, int i)
{
    return i >= 0 && i < node->node->count_attrs ? &node->attrs[i] : NULL;
}

sdx_status sdx_node_fail(const sdx_node *node, sdx_status status, const char *text)
{
    return SDX_FAIL(node->cx, status ? status : SDX_BAD_MODEL, "%s", text ? text : "");
}

/* ---- types ---- */

/* The dimension that a length and a name stand for. */
static int64_t dim_of(const struct sdx_ir *ir, const sdx_value_info *type, int d)
{
    const char *name = type->dim_names ? type->dim_names[d] : NULL;
    if (type->dims && type->dims[d] >= 0) return type->dims[d];
    const int32_t symbol = name && name[0] ? sdx_map_get(&ir->symbol_map, sdx_str(name)) : -1;
    return symbol >= 0 ? -(int64_t)symbol - 2 : -1;
}

static enum sdx_status set_type(const struct sdx_node *n, struct sdx_infer *ix, int i,
                                const sdx_value_info *type)
{
    struct sdx_type *out = &ix->out[i];
    int64_t dims[SDX_RANK_MAX];
    *out = (struct sdx_type){.kind = (uint8_t)type->kind,
                             .dtype = (uint8_t)type->dtype,
                             .key_dtype = (uint8_t)type->key_dtype};
    if (type->kind != SDX_KIND_TENSOR && type->kind != SDX_KIND_SPARSE) {
        struct sdx_type *elem = sdx_arena_alloc(n->arena, sizeof *elem);
        if (!elem) return SDX_FAIL_MEMORY(n->cx);
        *elem = (struct sdx_type){.kind = SDX_KIND_TENSOR, .dtype = out->dtype};
        out->elem = elem;
        return SDX_OK;
    }
    if (type->rank < 0) return SDX_OK;
    for (int d = 0; d < type->rank && d < SDX_RANK_MAX; d++)
        dims[d] = dim_of(n->ir, type, d);
    const uint8_t kind = out->kind;
    SDX_TRY(sdx_infer_set_dims(ix, i, type->rank, dims));
    out->kind = kind;
    return SDX_OK;
}

sdx_status sdx_node_set_output(sdx_node *node, int i, const sdx_value_info *type)
{
    struct sdx_infer *ix = node->ix;
    const int count = node->node->count_outputs;
    if (!ix) return sdx_node_fail(node, SDX_INVALID_ARGUMENT, "outputs are set in infer only");
    if (i < 0 || !type || type->rank > SDX_RANK_MAX || type->kind < SDX_KIND_NONE ||
        type->kind > SDX_KIND_SPARSE || (type->dtype && !sdx_dtype_is_valid((int)type->dtype)))
        return SDX_FAIL(node->cx, SDX_INVALID_ARGUMENT, "output %d is given no valid type", i);
    if (i >= count || !sdx_node_output(node, i)) return SDX_OK;
    for (int k = 0; k < node->node->count_inputs; k++)
        if (type == &node->in[k]) {
            ix->out[i] = *ix->in[k];
            return SDX_OK;
        }
    return set_type(node, ix, i, type);
}

/* ---- the call ---- */

const sdx_node *sdx_call_node(const sdx_call *call)
{
    return call->node;
}

const sdx_tensor *sdx_call_input(const sdx_call *call, int i)
{
    return i >= 0 && i < call->step->count_in ? call->step->in[i] : NULL;
}

/* What is made against what was told. */
static enum sdx_status check_made(const sdx_call *call, int i, int kind, int dtype, int rank,
                                  const int64_t *dims)
{
    struct sdx_context *cx = call->x->cx;
    if (i < 0 || i >= call->step->count_out)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "there is no output %d", i);
    const struct sdx_tensor *t = call->step->out[i];
    if (!t) return SDX_OK;
    if (call->is_made[i]) return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "output %d is made twice", i);
    if (call->is_dynamic[i]) return SDX_OK;
    if (kind != t->kind || dtype != t->dtype || !sdx_dims_equal(dims, rank, t->dims, t->rank)) {
        char found[160], expected[160];
        return SDX_FAIL(cx, SDX_RUN_FAILED, "output %d is made %s%s, infer said %s", i,
                        sdx_dtype_short_name(dtype),
                        sdx_dims_describe(dims, rank, found, sizeof found),
                        sdx_tensor_describe(t, expected, sizeof expected));
    }
    return SDX_OK;
}

sdx_status sdx_call_make_output(sdx_call *call, int i, sdx_dtype dtype, int rank,
                                const int64_t *dims, sdx_tensor **out)
{
    *out = NULL;
    if (dtype == SDX_STRING || !sdx_dtype_is_valid((int)dtype))
        return SDX_FAIL(call->x->cx, SDX_INVALID_ARGUMENT,
                        "output %d: memory for elements of type %s cannot be had", i,
                        sdx_dtype_name(dtype));
    SDX_TRY(check_made(call, i, SDX_KIND_TENSOR, (int)dtype, rank, dims));
    if (!call->step->out[i]) return SDX_OK;
    if (call->is_dynamic[i])
        SDX_TRY(sdx_exec_output(call->x, call->step, i, (int)dtype, rank, dims));
    call->is_made[i] = true;
    *out = call->step->out[i];
    return SDX_OK;
}

sdx_status sdx_call_set_output(sdx_call *call, int i, const sdx_tensor *value)
{
    if (!value) return SDX_FAIL(call->x->cx, SDX_INVALID_ARGUMENT, "output %d: no value", i);
    SDX_TRY(check_made(call, i, value->kind, value->dtype, value->rank, value->dims));
    if (!call->step->out[i]) return SDX_OK;
    SDX_TRY(sdx_exec_output_copy(call->x, call->step, i, value));
    call->is_made[i] = true;
    return SDX_OK;
}

sdx_context *sdx_call_context(sdx_call *call)
{
    return call->x->cx;
}

struct parallel {
    void (*fn)(int64_t i, void *user);
    void *user;
};

static void run_part(void *arg, int64_t part, int worker)
{
    const struct parallel *p = arg;
    (void)worker;
    p->fn(part, p->user);
}

void sdx_call_parallel(sdx_call *call, int64_t count, void (*fn)(int64_t i, void *user), void *user)
{
    struct parallel p = {fn, user};
    sdx_parallel_for(call->x->pool, call->x->threads, count, 1, run_part, &p);
}

int sdx_call_threads(const sdx_call *call)
{
    return call->x->threads;
}

bool sdx_call_is_cancelled(const sdx_call *call)
{
    return sdx_exec_cancelled(call->x);
}

sdx_status sdx_call_fail(sdx_call *call, sdx_status status, const char *text)
{
    return SDX_FAIL(call->x->cx, status ? status : SDX_RUN_FAILED, "%s", text ? text : "");
}
