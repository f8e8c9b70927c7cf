/* SPDX-License-Identifier: Apache-2.0
 * The checker of types: what each node is given against the schema, before inference (declared
 * types) and after it (all that can be known), and inference itself. A node is reported once. */
#include "ops/check_messages.h"
#include "ops/infer.h"
#include "ops/schema.h"

#include <stdio.h>

enum { PLACE_TEXT = 480, TYPE_TEXT = 256, VARIABLES_MAX = 64 };

struct node_state {
    const struct sdx_schema *schema; /* NULL: none known */
    bool is_reported;
};

struct check_types {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_faults *faults;
    struct node_state **nodes; /* of each graph, of each node */
};

static struct node_state *state_of(struct check_types *c, const struct sdx_ir_graph *graph,
                                   const struct sdx_ir_node *node)
{
    return &c->nodes[graph - c->ir->graphs][node - graph->nodes];
}

static void fault(struct check_types *c, const char *line)
{
    if (c->faults->count++ == 0) (void)SDX_FAIL(c->cx, SDX_BAD_MODEL, "%s", line);
    if (c->faults->fault) c->faults->fault(line, c->faults->user);
}

static void node_fault(struct check_types *c, const struct sdx_ir_graph *graph,
                       const struct sdx_ir_node *node, const char *text)
{
    char place[PLACE_TEXT], line[PLACE_TEXT + SDX_ERROR_TEXT];
    struct sdx_str op = node->op_type;
    /* Texts of operators begin with the operator's name, which the place already says. */
    if (strlen(text) > op.len + 2 && op.len && memcmp(text, op.ptr, op.len) == 0 &&
        memcmp(text + op.len, ": ", 2) == 0)
        text += op.len + 2;
    snprintf(line, sizeof(line), "%s: %s", sdx_ir_node_describe(graph, node, place, sizeof(place)),
             text);
    fault(c, line);
    state_of(c, graph, node)->is_reported = true;
}

/* "tensor(float), tensor(double), ..." of the tensor types in the set. */
static void describe_types(const struct sdx_schema_types *types, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = '\0';
    for (int d = SDX_F32; d <= SDX_DTYPE_LAST; d++) {
        if (!(types->tensor >> d & 1)) continue;
        int n = snprintf(buf + at, size - at, "%s%s", at ? ", " : "", sdx_dtype_name((sdx_dtype)d));
        if (n < 0 || (size_t)n >= size - at) return;
        at += (size_t)n;
    }
    const char *other = (types->sequence | types->others) != 0              ? "a sequence or map"
                        : (types->optional | types->optional_sequence) != 0 ? "an optional"
                                                                            : NULL;
    if (other) snprintf(buf + at, size - at, "%s%s", at ? ", " : "", other);
}

/* Equal as far as both are known; shapes do not count. */
static bool types_agree(const struct sdx_type *a, const struct sdx_type *b)
{
    for (; a && b; a = a->elem, b = b->elem) {
        if (a->kind == SDX_KIND_NONE || b->kind == SDX_KIND_NONE) return true;
        if (a->kind != b->kind) return false;
        if (a->dtype && b->dtype && a->dtype != b->dtype) return false;
        if (a->key_dtype && b->key_dtype && a->key_dtype != b->key_dtype) return false;
    }
    return true;
}

/* First input seen of each type variable. */
struct variables {
    const struct sdx_type *type[VARIABLES_MAX];
    const char *name[VARIABLES_MAX];
};

/* Is the type of an input or output (`what`) in the parameter's set? */
static bool check_allowed(struct check_types *c, const struct sdx_ir_graph *graph,
                          const struct sdx_ir_node *node, const struct sdx_schema_param *param,
                          const struct sdx_type *type, const char *what)
{
    char found[TYPE_TEXT], expected[TYPE_TEXT], text[SDX_ERROR_TEXT];
    if (sdx_schema_allows(&sdx_schema_typesets[param->types], type)) return true;
    describe_types(&sdx_schema_typesets[param->types], expected, sizeof(expected));
    snprintf(text, sizeof(text), "%s %s is %s, expected %s", what, sdx_schema_str(param->name),
             sdx_ir_type_describe(c->ir, type, found, sizeof(found)), expected);
    node_fault(c, graph, node, text);
    return false;
}

static bool check_input(struct check_types *c, const struct sdx_ir_graph *graph,
                        const struct sdx_ir_node *node, const struct sdx_schema_param *param,
                        const struct sdx_type *type, struct variables *vars)
{
    char found[TYPE_TEXT], expected[TYPE_TEXT], text[SDX_ERROR_TEXT];
    if (!check_allowed(c, graph, node, param, type, "input")) return false;
    const char *name = sdx_schema_str(param->name);
    int v = param->variable;
    if (v < 0 || v >= VARIABLES_MAX || (param->option & SDX_PARAM_HETEROGENEOUS)) return true;
    if (!vars->type[v] || vars->type[v]->kind == SDX_KIND_NONE) {
        vars->type[v] = type;
        vars->name[v] = name;
        return true;
    }
    if (types_agree(vars->type[v], type)) return true;
    snprintf(text, sizeof(text), "input %s is %s, expected the type of input %s, which is %s", name,
             sdx_ir_type_describe(c->ir, type, found, sizeof(found)), vars->name[v],
             sdx_ir_type_describe(c->ir, vars->type[v], expected, sizeof(expected)));
    node_fault(c, graph, node, text);
    return false;
}

static void check_node(struct check_types *c, const struct sdx_ir_graph *graph,
                       const struct sdx_ir_node *node)
{
    const struct sdx_schema *schema = state_of(c, graph, node)->schema;
    struct variables vars = {{NULL}, {NULL}};
    if (!schema) return;
    for (int32_t i = 0; i < node->count_inputs; i++) {
        const struct sdx_schema_param *param = sdx_schema_input(schema, i);
        if (!param || node->inputs[i] < 0) continue;
        const struct sdx_type *type = &graph->values[node->inputs[i]].type;
        if (!check_input(c, graph, node, param, type, &vars)) return;
    }
    for (int32_t i = 0; i < node->count_outputs; i++) {
        const struct sdx_schema_param *param = sdx_schema_output(schema, i);
        if (!param || node->outputs[i] < 0) continue;
        const struct sdx_type *type = &graph->values[node->outputs[i]].type;
        if (!check_allowed(c, graph, node, param, type, "output")) return;
    }
}

static void check_inputs_of_all(struct check_types *c)
{
    for (int32_t g = 0; g < c->ir->count_graphs; g++) {
        const struct sdx_ir_graph *graph = &c->ir->graphs[g];
        for (int32_t n = 0; n < graph->count_nodes; n++) {
            const struct sdx_ir_node *node = &graph->nodes[n];
            if (!node->is_dead && !state_of(c, graph, node)->is_reported)
                check_node(c, graph, node);
        }
    }
}

static void check_rules_of_all(struct check_types *c)
{
    for (int32_t g = 0; g < c->ir->count_graphs; g++) {
        const struct sdx_ir_graph *graph = &c->ir->graphs[g];
        for (int32_t n = 0; n < graph->count_nodes; n++) {
            const struct sdx_ir_node *node = &graph->nodes[n];
            struct sdx_context child;
            if (node->is_dead || state_of(c, graph, node)->is_reported) continue;
            sdx_context_init_child(&child, c->cx);
            if (sdx_check_rules(&child, c->ir, graph, node) != SDX_OK)
                node_fault(c, graph, node, child.error.text);
        }
    }
}

static bool take_fault(void *user, struct sdx_context *cx, const struct sdx_ir_graph *graph,
                       const struct sdx_ir_node *node)
{
    struct check_types *c = user;
    if (cx->error.status == SDX_OUT_OF_MEMORY) return false;
    if (!state_of(c, graph, node)->is_reported) node_fault(c, graph, node, cx->error.text);
    return true;
}

static enum sdx_status find_schemas(struct check_types *c)
{
    for (int32_t g = 0; g < c->ir->count_graphs; g++) {
        const struct sdx_ir_graph *graph = &c->ir->graphs[g];
        c->nodes[g] = sdx_mem_calloc(c->cx->mem, SDX_MEM_MODEL, (size_t)graph->count_nodes,
                                     sizeof(struct node_state));
        if (!c->nodes[g]) return SDX_FAIL_MEMORY(c->cx);
        for (int32_t n = 0; n < graph->count_nodes; n++) {
            const struct sdx_ir_node *node = &graph->nodes[n];
            c->nodes[g][n].schema = sdx_schema_find(node->domain, node->op_type, node->opset, NULL);
        }
    }
    return SDX_OK;
}

static enum sdx_status check_types(struct check_types *c)
{
    struct sdx_context child;
    SDX_TRY(find_schemas(c));
    check_inputs_of_all(c);
    /* Inference has an error text of its own, so that the first fault stays in ours. */
    sdx_context_init_child(&child, c->cx);
    const uint32_t flags = c->faults->is_strict ? SDX_INFER_STRICT | SDX_INFER_DEFAULTS_HOLD : 0;
    if (sdx_infer_model(&child, c->ir, flags, take_fault, c) != SDX_OK) {
        if (child.error.status != SDX_BAD_MODEL)
            return SDX_FAIL(c->cx, child.error.status, "%s", child.error.text);
        fault(c, child.error.text);
        return SDX_OK;
    }
    check_inputs_of_all(c);
    if (c->faults->is_strict) check_rules_of_all(c);
    return SDX_OK;
}

enum sdx_status sdx_check_types(struct sdx_context *cx, struct sdx_ir *ir,
                                struct sdx_faults *faults)
{
    struct check_types c = {.cx = cx, .ir = ir, .faults = faults};
    int64_t before = faults->count;
    c.nodes = sdx_mem_calloc(cx->mem, SDX_MEM_MODEL, (size_t)ir->count_graphs, sizeof(*c.nodes));
    if (!c.nodes) return SDX_FAIL_MEMORY(cx);
    enum sdx_status status = check_types(&c);
    for (int32_t g = 0; g < ir->count_graphs; g++)
        sdx_mem_free(cx->mem, c.nodes[g]);
    sdx_mem_free(cx->mem, c.nodes);
    return status == SDX_OK && faults->count > before ? SDX_BAD_MODEL : status;
}
