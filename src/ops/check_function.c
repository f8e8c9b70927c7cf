/* SPDX-License-Identifier: Apache-2.0
 * The checker of model-local functions: unique, no recursion, names and nodes of each. */
#include "ops/check_messages.h"

enum { UNSEEN, OPEN, DONE };

struct walk {
    struct sdx_check *c;
    uint8_t *state;
    int depth;
};

static struct sdx_check_place function_place(const struct sdx_onnx_function *function)
{
    return (struct sdx_check_place){.what = "function", .name = function->name};
}

static void walk_nodes(struct walk *w, const struct sdx_onnx_nodes *nodes);

static void walk_function(struct walk *w, int32_t index)
{
    const struct sdx_onnx_function *function = &w->c->model->functions[index];
    if (w->state[index] == DONE) return;
    if (w->state[index] == OPEN || w->depth >= SDX_IR_CALL_DEPTH_MAX) {
        struct sdx_check_place place = function_place(function);
        if (w->state[index] == OPEN)
            sdx_check_fault(w->c, &place, "calls itself, expected no recursion");
        else
            sdx_check_fault(w->c, &place, "calls nest more than %d deep", SDX_IR_CALL_DEPTH_MAX);
        return;
    }
    w->state[index] = OPEN;
    w->depth++;
    walk_nodes(w, &function->nodes);
    w->depth--;
    w->state[index] = DONE;
}

static void walk_nodes(struct walk *w, const struct sdx_onnx_nodes *nodes)
{
    for (int32_t n = 0; n < nodes->count; n++) {
        const struct sdx_onnx_node *node = &nodes->at[n];
        int32_t index = sdx_check_find_function(w->c, node->domain, node->op_type, node->overload);
        if (index >= 0) walk_function(w, index);
        for (int32_t a = 0; a < node->attrs.count; a++) {
            const struct sdx_onnx_attr *attr = &node->attrs.at[a];
            if (attr->g) walk_nodes(w, &attr->g->nodes);
            for (int32_t g = 0; g < attr->count_graphs; g++)
                walk_nodes(w, &attr->graphs[g].nodes);
        }
    }
}

static void check_recursion(struct sdx_check *c)
{
    struct walk w = {.c = c};
    w.state = sdx_mem_calloc(c->cx->mem, SDX_MEM_MODEL, (size_t)c->model->count_functions, 1);
    if (!w.state) c->out_of_memory = true;
    for (int32_t i = 0; w.state && i < c->model->count_functions; i++)
        walk_function(&w, i);
    sdx_mem_free(c->cx->mem, w.state);
}

static void check_unique(struct sdx_check *c, const struct sdx_check_place *place, const char *what,
                         const struct sdx_onnx_strings *names)
{
    struct sdx_map seen;
    sdx_map_init(&seen, c->cx->mem);
    for (int32_t i = 0; i < names->count; i++) {
        if (sdx_map_get(&seen, names->at[i]) >= 0)
            sdx_check_fault(c, place, "%s \"%.*s\" stands twice", what, SDX_STR_ARG(names->at[i]));
        if (!sdx_map_put(&seen, names->at[i], i)) c->out_of_memory = true;
    }
    sdx_map_deinit(&seen);
}

static void check_function(struct sdx_check *c, const struct sdx_onnx_function *function)
{
    struct sdx_check_place place = function_place(function);
    struct sdx_check_scope scope = {.outer = NULL};
    if (function->name.len == 0) sdx_check_fault(c, &place, "has no name");
    sdx_check_opsets(c, &place, &function->opsets);
    check_unique(c, &place, "input", &function->inputs);
    check_unique(c, &place, "output", &function->outputs);
    check_unique(c, &place, "attribute", &function->attr_names);
    sdx_map_init(&scope.names, c->cx->mem);
    for (int32_t i = 0; i < function->inputs.count; i++)
        (void)sdx_check_declare(c, &scope, function->inputs.at[i], 0);
    c->function = function;
    sdx_check_nodes(c, &place, &scope, &function->nodes);
    c->function = NULL;
    for (int32_t i = 0; i < function->outputs.count; i++)
        if (!sdx_check_is_visible(&scope, function->outputs.at[i]))
            sdx_check_fault(c, &place, "output \"%.*s\" is not made by any node",
                            SDX_STR_ARG(function->outputs.at[i]));
    sdx_map_deinit(&scope.names);
}

void sdx_check_functions(struct sdx_check *c)
{
    const struct sdx_onnx_model *model = c->model;
    for (int32_t i = 0; i < model->count_functions; i++) {
        const struct sdx_onnx_function *function = &model->functions[i];
        int32_t before =
            sdx_check_find_function(c, function->domain, function->name, function->overload);
        struct sdx_check_place place = function_place(function);
        if (before >= 0) sdx_check_fault(c, &place, "is defined twice");
        char *key = sdx_arena_copy(c->arena, sdx_text_get(&c->key), c->key.len);
        if (!key || !sdx_map_put(&c->functions, (struct sdx_str){key, c->key.len}, i))
            c->out_of_memory = true;
    }
    if (c->out_of_memory) return;
    check_recursion(c);
    for (int32_t i = 0; i < model->count_functions; i++)
        check_function(c, &model->functions[i]);
}
