/* SPDX-License-Identifier: Apache-2.0
 * The IR as text, a line a node, for people and tests. */
#include "ir/ir.h"

#include <inttypes.h>
#include <stdio.h>

enum { SHOWN_MAX = 8 }; /* items of a list attribute that are shown */

static void add_dim(const struct sdx_ir *ir, struct sdx_text *text, int64_t dim)
{
    if (dim >= 0)
        sdx_text_add(text, "%" PRId64, dim);
    else if (!sdx_ir_symbol_has_name(ir, dim))
        sdx_text_add(text, "?");
    else
        sdx_text_add(text, "%.*s", SDX_STR_ARG(ir->symbols[-(dim + 2)].name));
}

static void add_type(const struct sdx_ir *ir, struct sdx_text *text, const struct sdx_type *type)
{
    static const char *const wrap[] = {"", "", "seq(", "optional(", "map(", "sparse("};
    if (!type || type->kind > SDX_KIND_SPARSE || type->kind == SDX_KIND_NONE) {
        sdx_text_add(text, "?");
        return;
    }
    sdx_text_add(text, "%s", wrap[type->kind]);
    if (type->kind == SDX_KIND_MAP)
        sdx_text_add(text, "%s,", sdx_dtype_name((sdx_dtype)type->key_dtype));
    if (type->kind == SDX_KIND_TENSOR || type->kind == SDX_KIND_SPARSE || !type->elem)
        sdx_text_add(text, "%s", type->dtype ? sdx_dtype_name((sdx_dtype)type->dtype) : "?");
    else
        add_type(ir, text, type->elem);
    if (type->has_shape) {
        sdx_text_add(text, "[");
        for (int32_t i = 0; i < type->rank; i++) {
            if (i) sdx_text_add(text, ",");
            add_dim(ir, text, type->dims[i]);
        }
        sdx_text_add(text, "]");
    }
    if (type->kind != SDX_KIND_TENSOR) sdx_text_add(text, ")");
}

const char *sdx_ir_type_describe(const struct sdx_ir *ir, const struct sdx_type *type, char *buf,
                                 size_t size)
{
    struct sdx_text text;
    sdx_text_init(&text, ir->arena->mem);
    add_type(ir, &text, type);
    snprintf(buf, size, "%s", sdx_text_get(&text));
    sdx_text_deinit(&text);
    return buf;
}

static void add_value(struct sdx_text *text, const struct sdx_ir_graph *graph, int32_t value)
{
    if (value < 0)
        sdx_text_add(text, "_");
    else if (graph->values[value].name.len)
        sdx_text_add(text, "%%%.*s", SDX_STR_ARG(graph->values[value].name));
    else
        sdx_text_add(text, "%%#%d", value);
}

static void add_string(struct sdx_text *text, struct sdx_str s)
{
    sdx_text_add(text, "\"");
    for (size_t i = 0; i < s.len && i < 200; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < 32 || c == 127)
            sdx_text_add(text, "\\x%02x", c);
        else
            sdx_text_add_bytes(text, &s.ptr[i], 1);
    }
    sdx_text_add(text, s.len > 200 ? "...\"" : "\"");
}

static void add_tensor(struct sdx_text *text, const struct sdx_tensor *tensor)
{
    char buf[256];
    sdx_text_add(text, "<%s>", sdx_tensor_describe(tensor, buf, sizeof(buf)));
}

static void add_float(struct sdx_text *text, float f)
{
    char buf[32];
    sdx_format_f32(buf, f);
    sdx_text_add(text, "%s", buf);
}

static void add_item(struct sdx_text *text, const struct sdx_ir_attr *attr, int64_t i)
{
    switch (attr->type) {
    case SDX_ATTR_FLOATS: add_float(text, attr->floats[i]); break;
    case SDX_ATTR_INTS: sdx_text_add(text, "%" PRId64, attr->ints[i]); break;
    case SDX_ATTR_STRINGS: add_string(text, attr->strings[i]); break;
    case SDX_ATTR_GRAPHS: sdx_text_add(text, "graph %d", attr->graphs[i]); break;
    default: add_tensor(text, attr->tensors[i]); break;
    }
}

static void add_attr(const struct sdx_ir *ir, struct sdx_text *text, const struct sdx_ir_attr *attr)
{
    sdx_text_add(text, "%.*s=", SDX_STR_ARG(attr->name));
    switch (attr->type) {
    case SDX_ATTR_FLOAT: add_float(text, attr->f); return;
    case SDX_ATTR_INT: sdx_text_add(text, "%" PRId64, attr->i); return;
    case SDX_ATTR_STRING: add_string(text, attr->s); return;
    case SDX_ATTR_TENSOR:
    case SDX_ATTR_SPARSE: add_tensor(text, attr->tensor); return;
    case SDX_ATTR_GRAPH: sdx_text_add(text, "graph %d", attr->graph); return;
    case SDX_ATTR_TYPE: add_type(ir, text, attr->type_value); return;
    default: break;
    }
    sdx_text_add(text, "[");
    for (int64_t i = 0; i < attr->count && i < SHOWN_MAX; i++) {
        if (i) sdx_text_add(text, ", ");
        add_item(text, attr, i);
    }
    if (attr->count > SHOWN_MAX) sdx_text_add(text, ", ... %" PRId64 " in all", attr->count);
    sdx_text_add(text, "]");
}

static void add_node(const struct sdx_ir *ir, const struct sdx_ir_graph *graph,
                     const struct sdx_ir_node *node, struct sdx_text *text)
{
    for (int32_t i = 0; i < node->count_outputs; i++) {
        if (i) sdx_text_add(text, ", ");
        add_value(text, graph, node->outputs[i]);
    }
    sdx_text_add(text, " = ");
    if (node->domain.len) sdx_text_add(text, "%.*s.", SDX_STR_ARG(node->domain));
    sdx_text_add(text, "%.*s(", SDX_STR_ARG(node->op_type));
    for (int32_t i = 0; i < node->count_inputs; i++) {
        if (i) sdx_text_add(text, ", ");
        add_value(text, graph, node->inputs[i]);
    }
    sdx_text_add(text, ")");
    if (node->count_attrs) sdx_text_add(text, " {");
    for (int32_t i = 0; i < node->count_attrs; i++) {
        if (i) sdx_text_add(text, ", ");
        add_attr(ir, text, &node->attrs[i]);
    }
    if (node->count_attrs) sdx_text_add(text, "}");
    if (node->count_captures) sdx_text_add(text, " takes ");
    for (int32_t i = 0; i < node->count_captures; i++) {
        if (i) sdx_text_add(text, ", ");
        add_value(text, graph, node->captures[i]);
    }
    sdx_text_add(text, " : ");
    for (int32_t i = 0; i < node->count_outputs; i++) {
        if (i) sdx_text_add(text, ", ");
        add_type(ir, text, node->outputs[i] < 0 ? NULL : &graph->values[node->outputs[i]].type);
    }
}

struct printer {
    const struct sdx_ir *ir;
    struct sdx_text text;
    sdx_text_fn line;
    void *user;
    bool ok;
};

static void flush_line(struct printer *p)
{
    p->ok = p->ok && p->text.ok;
    p->line(sdx_text_get(&p->text), p->user);
    sdx_text_clear(&p->text);
}

static void print_graph(struct printer *p, int32_t g)
{
    const struct sdx_ir_graph *graph = &p->ir->graphs[g];
    sdx_text_add(&p->text, "graph %d \"%.*s\"", g, SDX_STR_ARG(graph->name));
    if (graph->parent >= 0)
        sdx_text_add(&p->text, " of node %d of graph %d", graph->parent_node, graph->parent);
    flush_line(p);
    for (int32_t i = 0; i < graph->count_inputs; i++) {
        sdx_text_add(&p->text, "  input ");
        add_value(&p->text, graph, graph->inputs[i]);
        sdx_text_add(&p->text, " : ");
        add_type(p->ir, &p->text, &graph->values[graph->inputs[i]].type);
        flush_line(p);
    }
    for (int32_t v = 0; v < graph->count_values; v++) {
        const struct sdx_ir_value *value = &graph->values[v];
        if (!value->constant && value->outer < 0) continue;
        sdx_text_add(&p->text, value->constant ? "  constant " : "  capture ");
        add_value(&p->text, graph, v);
        sdx_text_add(&p->text, " : ");
        add_type(p->ir, &p->text, &value->type);
        flush_line(p);
    }
    for (int32_t n = 0; n < graph->count_nodes; n++) {
        if (graph->nodes[n].is_dead) continue;
        sdx_text_add(&p->text, "  ");
        add_node(p->ir, graph, &graph->nodes[n], &p->text);
        flush_line(p);
    }
    for (int32_t i = 0; i < graph->count_outputs; i++) {
        sdx_text_add(&p->text, "  output ");
        add_value(&p->text, graph, graph->outputs[i]);
        sdx_text_add(&p->text, " : ");
        add_type(p->ir, &p->text, &graph->values[graph->outputs[i]].type);
        flush_line(p);
    }
}

enum sdx_status sdx_ir_print(struct sdx_context *cx, const struct sdx_ir *ir, sdx_text_fn line,
                             void *user)
{
    struct printer p = {.ir = ir, .line = line, .user = user, .ok = true};
    sdx_text_init(&p.text, cx->mem);
    for (int32_t g = 0; g < ir->count_graphs; g++)
        print_graph(&p, g);
    sdx_text_deinit(&p.text);
    return p.ok ? SDX_OK : SDX_FAIL_MEMORY(cx);
}
