/* SPDX-License-Identifier: Apache-2.0
 * Inlining of model-local functions. What inlining will make is counted before anything is made, so
 * recursion and explosive expansion are refused at once. */
#include "ir/ir_import.h"

#include <inttypes.h>

enum { IDENTITY_OPSET = 16 }; /* the first that copies every kind of value */

struct cost {
    int64_t weight; /* nodes that a call becomes; long lists of names count too */
    int depth;      /* of calls below it, itself included */
    enum { UNSEEN, OPEN, DONE } state;
};

struct counter {
    struct sdx_import *im;
    struct cost *costs; /* of each function */
};

static enum sdx_status make_key(struct sdx_import *im, struct sdx_str domain, struct sdx_str name,
                                struct sdx_str overload, struct sdx_str *key)
{
    sdx_text_clear(&im->key);
    domain = sdx_ir_domain(domain);
    sdx_text_add_bytes(&im->key, domain.ptr, domain.len);
    sdx_text_add_bytes(&im->key, "\n", 1);
    sdx_text_add_bytes(&im->key, name.ptr, name.len);
    sdx_text_add_bytes(&im->key, "\n", 1);
    sdx_text_add_bytes(&im->key, overload.ptr, overload.len);
    *key = (struct sdx_str){sdx_text_get(&im->key), im->key.len};
    return im->key.ok ? SDX_OK : SDX_FAIL_MEMORY(im->cx);
}

enum sdx_status sdx_import_find_function(struct sdx_import *im, const struct sdx_onnx_node *node,
                                         const struct sdx_onnx_function **function)
{
    *function = NULL;
    if (im->model->count_functions == 0) return SDX_OK;
    struct sdx_str key;
    SDX_TRY(make_key(im, node->domain, node->op_type, node->overload, &key));
    int32_t at = sdx_map_get(&im->functions, key);
    if (at >= 0) *function = &im->model->functions[at];
    return SDX_OK;
}

static enum sdx_status count_nodes(struct counter *c, const struct sdx_onnx_nodes *nodes, int calls,
                                   struct cost *total);

static void add_weight(struct cost *total, int64_t weight)
{
    total->weight += weight;
    if (total->weight > SDX_IR_NODES_MAX) total->weight = (int64_t)SDX_IR_NODES_MAX + 1;
}

static enum sdx_status count_call(struct counter *c, const struct sdx_onnx_function *function,
                                  int calls, struct cost *total)
{
    struct cost *cost = &c->costs[function - c->im->model->functions];
    if (cost->state == OPEN)
        return SDX_FAIL(c->im->cx, SDX_BAD_MODEL,
                        "function \"%.*s\" calls itself, expected no recursion",
                        SDX_STR_ARG(function->name));
    if (cost->state == UNSEEN) {
        cost->state = OPEN;
        if (calls < SDX_IR_CALL_DEPTH_MAX)
            SDX_TRY(count_nodes(c, &function->nodes, calls + 1, cost));
        cost->depth++;
        cost->state = DONE;
    }
    if (calls + cost->depth > SDX_IR_CALL_DEPTH_MAX)
        return SDX_FAIL(c->im->cx, SDX_BAD_MODEL,
                        "calls of functions nest more than %d deep at function \"%.*s\"",
                        SDX_IR_CALL_DEPTH_MAX, SDX_STR_ARG(function->name));
    add_weight(total, cost->weight);
    if (cost->depth > total->depth) total->depth = cost->depth;
    return SDX_OK;
}

static enum sdx_status count_nodes(struct counter *c, const struct sdx_onnx_nodes *nodes, int calls,
                                   struct cost *total)
{
    for (int32_t n = 0; n < nodes->count; n++) {
        const struct sdx_onnx_node *node = &nodes->at[n];
        const struct sdx_onnx_function *function;
        int64_t names = (int64_t)node->inputs.count + node->outputs.count + node->attrs.count;
        add_weight(total, 1 + names / 16);
        SDX_TRY(sdx_import_find_function(c->im, node, &function));
        if (function) SDX_TRY(count_call(c, function, calls, total));
        for (int32_t a = 0; a < node->attrs.count; a++) {
            const struct sdx_onnx_attr *attr = &node->attrs.at[a];
            if (attr->g) SDX_TRY(count_nodes(c, &attr->g->nodes, calls, total));
            for (int32_t g = 0; g < attr->count_graphs; g++)
                SDX_TRY(count_nodes(c, &attr->graphs[g].nodes, calls, total));
        }
    }
    return SDX_OK;
}

enum sdx_status sdx_import_functions(struct sdx_import *im)
{
    const struct sdx_onnx_model *model = im->model;
    for (int32_t i = 0; i < model->count_functions; i++) {
        const struct sdx_onnx_function *function = &model->functions[i];
        struct sdx_str key;
        SDX_TRY(make_key(im, function->domain, function->name, function->overload, &key));
        if (sdx_map_get(&im->functions, key) >= 0)
            return SDX_FAIL(im->cx, SDX_BAD_MODEL, "function \"%.*s\" is defined twice",
                            SDX_STR_ARG(function->name));
        char *kept = sdx_arena_copy(im->arena, key.ptr, key.len);
        if (!kept || !sdx_map_put(&im->functions, (struct sdx_str){kept, key.len}, i))
            return SDX_FAIL_MEMORY(im->cx);
    }
    struct counter c = {.im = im};
    c.costs = sdx_mem_calloc(im->cx->mem, SDX_MEM_MODEL, (size_t)model->count_functions,
                             sizeof(*c.costs));
    if (!c.costs) return SDX_FAIL_MEMORY(im->cx);
    struct cost total = {0, 0, UNSEEN};
    enum sdx_status status = count_nodes(&c, &model->graph->nodes, 0, &total);
    sdx_mem_free(im->cx->mem, c.costs);
    if (status == SDX_OK && total.weight > SDX_IR_NODES_MAX)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL,
                        "the model has more than %d nodes once its functions are inlined",
                        SDX_IR_NODES_MAX);
    return status;
}

static enum sdx_status bind_inputs(struct sdx_import *im, struct sdx_import_scope *inner,
                                   struct sdx_import_scope *outer, const struct sdx_onnx_node *node,
                                   const struct sdx_onnx_function *function)
{
    for (int32_t i = 0; i < function->inputs.count; i++) {
        int32_t value = -1;
        if (i < node->inputs.count)
            SDX_TRY(sdx_import_resolve(im, outer, node->inputs.at[i], &value));
        if (sdx_map_get(&inner->names, function->inputs.at[i]) >= 0)
            return SDX_FAIL(im->cx, SDX_BAD_MODEL, "function \"%.*s\": input \"%.*s\" stands twice",
                            SDX_STR_ARG(function->name), SDX_STR_ARG(function->inputs.at[i]));
        if (!sdx_map_put(&inner->names, function->inputs.at[i], value + 1))
            return SDX_FAIL_MEMORY(im->cx);
    }
    return SDX_OK;
}

/* Makes the call's output `to` equal to `from`. */
static enum sdx_status add_identity(struct sdx_import *im, struct sdx_import_scope *scope,
                                    int32_t from, int32_t to)
{
    int32_t index = -1;
    SDX_TRY(sdx_import_node_create(im, scope, SDX_STR(""), SDX_STR("Identity"), 1, 1, 0, &index));
    struct sdx_ir_node *node = &im->ir->graphs[scope->graph].nodes[index];
    node->opset = IDENTITY_OPSET;
    node->inputs[0] = from;
    return sdx_import_set_output(im, scope, index, 0, to);
}

/* A node of the body makes the call's output itself where it can: the first output under a name
 * that is not an input. The others are copies, made once the nodes are there. */
static enum sdx_status bind_outputs(struct sdx_import *im, struct sdx_import_scope *inner,
                                    struct sdx_import_scope *outer,
                                    const struct sdx_onnx_node *node,
                                    const struct sdx_onnx_function *function)
{
    for (int32_t i = 0; i < node->outputs.count; i++) {
        struct sdx_str name = function->outputs.at[i];
        if (node->outputs.at[i].len == 0 || sdx_map_get(&inner->names, name) >= 0) continue;
        int32_t value = -1;
        SDX_TRY(sdx_import_resolve(im, outer, node->outputs.at[i], &value));
        if (!sdx_map_put(&inner->names, name, value + 1)) return SDX_FAIL_MEMORY(im->cx);
    }
    return SDX_OK;
}

static enum sdx_status finish_outputs(struct sdx_import *im, struct sdx_import_scope *inner,
                                      struct sdx_import_scope *outer,
                                      const struct sdx_onnx_node *node,
                                      const struct sdx_onnx_function *function)
{
    for (int32_t i = 0; i < node->outputs.count; i++) {
        int32_t from = -1, to = -1;
        if (node->outputs.at[i].len == 0) continue;
        SDX_TRY(sdx_import_resolve(im, inner, function->outputs.at[i], &from));
        SDX_TRY(sdx_import_resolve(im, outer, node->outputs.at[i], &to));
        if (from < 0)
            return SDX_FAIL(
                im->cx, SDX_BAD_MODEL,
                "function \"%.*s\": output \"%.*s\" is an input that the call leaves out",
                SDX_STR_ARG(function->name), SDX_STR_ARG(function->outputs.at[i]));
        if (from != to) SDX_TRY(add_identity(im, outer, from, to));
        if (im->ir->graphs[outer->graph].values[to].producer < 0)
            return SDX_FAIL(im->cx, SDX_BAD_MODEL,
                            "function \"%.*s\": nothing makes output \"%.*s\"",
                            SDX_STR_ARG(function->name), SDX_STR_ARG(function->outputs.at[i]));
    }
    return SDX_OK;
}

static enum sdx_status check_call(struct sdx_import *im, const struct sdx_import_scope *scope,
                                  const struct sdx_onnx_node *node,
                                  const struct sdx_onnx_function *function)
{
    if (node->inputs.count > function->inputs.count)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL,
                        "function \"%.*s\" is given %d inputs, expected at most %d",
                        SDX_STR_ARG(function->name), node->inputs.count, function->inputs.count);
    if (node->outputs.count > function->outputs.count)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL,
                        "function \"%.*s\" has %d outputs asked of it, expected at most %d",
                        SDX_STR_ARG(function->name), node->outputs.count, function->outputs.count);
    if (scope->frame && scope->frame->depth >= SDX_IR_CALL_DEPTH_MAX)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL, "calls of functions nest more than %d deep",
                        SDX_IR_CALL_DEPTH_MAX);
    return SDX_OK;
}

enum sdx_status sdx_import_call(struct sdx_import *im, struct sdx_import_scope *scope,
                                const struct sdx_onnx_node *node,
                                const struct sdx_onnx_function *function)
{
    SDX_TRY(check_call(im, scope, node, function));
    struct sdx_import_frame frame = {.function = function, .call = node, .caller = scope};
    frame.depth = scope->frame ? scope->frame->depth + 1 : 1;
    frame.prefix =
        sdx_arena_printf(im->arena, "%.*s#%d/", SDX_STR_ARG(function->name), ++im->count_calls);
    if (!frame.prefix) return SDX_FAIL_MEMORY(im->cx);
    struct sdx_import_scope inner;
    sdx_import_scope_init(im, &inner, NULL, &frame, scope->graph);
    inner.depth = scope->depth;
    enum sdx_status status = bind_inputs(im, &inner, scope, node, function);
    if (status == SDX_OK) status = bind_outputs(im, &inner, scope, node, function);
    if (status == SDX_OK) status = sdx_import_declare_nodes(im, &inner, &function->nodes);
    if (status == SDX_OK) status = sdx_import_nodes(im, &inner, &function->nodes);
    if (status == SDX_OK) status = finish_outputs(im, &inner, scope, node, function);
    sdx_import_scope_deinit(&inner);
    return status;
}
