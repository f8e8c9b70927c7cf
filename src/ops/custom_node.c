/* SPDX-License-Identifier: Apache-2.0
 * A node of the caller's own operator in the words of the public interface. */
#include "ops/custom.h"

static const char *text_of(struct sdx_arena *arena, struct sdx_str s)
{
    return sdx_arena_strndup(arena, s.ptr ? s.ptr : "", s.len);
}

static int32_t graph_of(const struct sdx_ir *ir, const struct sdx_ir_node *node)
{
    for (int32_t g = 0; g < ir->count_graphs; g++) {
        const struct sdx_ir_node *nodes = ir->graphs[g].nodes;
        if (nodes && node >= nodes && node < nodes + ir->graphs[g].count_nodes) return g;
    }
    SDX_ASSERT(false);
    return 0;
}

static bool describe_values(const struct sdx_node *n, const int32_t *values, int32_t count,
                            const struct sdx_type *const *types, struct sdx_value_info **out)
{
    const struct sdx_ir_graph *g = &n->ir->graphs[n->graph];
    *out = sdx_arena_array(n->arena, (size_t)count + 1, sizeof **out);
    for (int32_t i = 0; *out && i < count; i++)
        if (values[i] >= 0 && types[i] &&
            !sdx_ir_value_describe(n->ir, n->arena, g->values[values[i]].name, types[i],
                                   &(*out)[i]))
            return false;
    return *out != NULL;
}

static bool describe_strings(struct sdx_arena *arena, const struct sdx_str *strings, int64_t count,
                             struct sdx_attr *attr)
{
    const char **texts = sdx_arena_array(arena, (size_t)count + 1, sizeof *texts);
    size_t *lengths = sdx_arena_array(arena, (size_t)count + 1, sizeof *lengths);
    if (!texts || !lengths) return false;
    for (int64_t i = 0; i < count; i++) {
        texts[i] = text_of(arena, strings[i]);
        lengths[i] = strings[i].len;
        if (!texts[i]) return false;
    }
    attr->strings = texts;
    attr->lengths = lengths;
    return true;
}

static bool describe_attr(struct sdx_arena *arena, const struct sdx_ir_attr *from,
                          struct sdx_attr *attr)
{
    *attr = (struct sdx_attr){.name = text_of(arena, from->name),
                              .type = from->type,
                              .f = from->f,
                              .i = from->i,
                              .count = from->count,
                              .floats = from->floats,
                              .ints = from->ints};
    if (!attr->name) return false;
    switch (attr->type) {
    case SDX_ATTR_STRING: attr->count = 1; return describe_strings(arena, &from->s, 1, attr);
    case SDX_ATTR_STRINGS: return describe_strings(arena, from->strings, from->count, attr);
    case SDX_ATTR_TENSOR:
    case SDX_ATTR_SPARSE:
        attr->count = 1;
        attr->tensors = (const struct sdx_tensor *const *)&from->tensor;
        return true;
    case SDX_ATTR_TENSORS:
    case SDX_ATTR_SPARSES:
        attr->tensors = (const struct sdx_tensor *const *)from->tensors;
        return true;
    default: return true;
    }
}

enum sdx_status sdx_node_describe(struct sdx_node *n, const struct sdx_type *const *in,
                                  const struct sdx_type *const *out)
{
    const struct sdx_ir_node *node = n->node;
    n->row = sdx_custom_of(node);
    n->graph = graph_of(n->ir, node);
    n->name = sdx_arena_strndup(n->arena, node->name.ptr ? node->name.ptr : "", node->name.len);
    n->attrs = sdx_arena_array(n->arena, (size_t)node->count_attrs + 1, sizeof *n->attrs);
    bool ok = n->name && n->attrs &&
              describe_values(n, node->inputs, node->count_inputs, in, &n->in) &&
              describe_values(n, node->outputs, node->count_outputs, out, &n->out);
    for (int32_t a = 0; ok && a < node->count_attrs; a++)
        ok = describe_attr(n->arena, &node->attrs[a], &n->attrs[a]);
    return ok ? SDX_OK : SDX_FAIL_MEMORY(n->cx);
}
