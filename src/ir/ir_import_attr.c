/* SPDX-License-Identifier: Apache-2.0
 * Import of types, tensors and attributes. Attributes without a type (IR versions 1 and 2) take it
 * from the field that is set; references to attributes of a function are replaced by what the call
 * gives. */
#include "ir/ir_import.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

static const size_t sparse_bytes_max = (size_t)1 << 30;

/* Symbols of bodies and functions are their own: a body may run with another length each time. */
static enum sdx_status symbol(struct sdx_import *im, int32_t graph,
                              const struct sdx_import_frame *frame, struct sdx_str name,
                              int64_t *dim)
{
    if (graph > 0 || frame) {
        char *place = sdx_arena_printf(im->arena, "@%s%d", frame ? frame->prefix : "", (int)graph);
        if (!place) return SDX_FAIL_MEMORY(im->cx);
        name = sdx_import_join(im, name, sdx_str(place));
        if (name.len == 0) return SDX_FAIL_MEMORY(im->cx);
    }
    *dim = sdx_ir_symbol(im->ir, name);
    return *dim == 0 ? SDX_FAIL_MEMORY(im->cx) : SDX_OK;
}

static enum sdx_status import_shape(struct sdx_import *im, int32_t graph,
                                    const struct sdx_import_frame *frame,
                                    const struct sdx_onnx_type *from, struct sdx_type *to)
{
    if (from->rank > SDX_RANK_MAX)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL, "rank is %d, expected at most %d", from->rank,
                        SDX_RANK_MAX);
    int64_t *dims = sdx_arena_array(im->arena, (size_t)from->rank, sizeof(*dims));
    if (!dims) return SDX_FAIL_MEMORY(im->cx);
    for (int32_t i = 0; i < from->rank; i++) {
        const struct sdx_onnx_dim *dim = &from->dims[i];
        dims[i] = -1;
        if (dim->which == SDX_DIM_VALUE && dim->value < -1)
            return SDX_FAIL(im->cx, SDX_BAD_MODEL,
                            "dimension %d is %" PRId64 ", expected at least 0", i, dim->value);
        if (dim->which == SDX_DIM_VALUE) dims[i] = dim->value;
        if (dim->which == SDX_DIM_PARAM && dim->param.len)
            SDX_TRY(symbol(im, graph, frame, dim->param, &dims[i]));
    }
    to->has_shape = true;
    to->rank = from->rank;
    to->dims = dims;
    return SDX_OK;
}

static enum sdx_status import_elem(struct sdx_import *im, int32_t graph,
                                   const struct sdx_import_frame *frame,
                                   const struct sdx_onnx_type *from, struct sdx_type *to)
{
    if (!from->elem) return SDX_OK;
    struct sdx_type *elem = sdx_arena_alloc(im->arena, sizeof(*elem));
    if (!elem) return SDX_FAIL_MEMORY(im->cx);
    SDX_TRY(sdx_import_type(im, graph, frame, from->elem, elem));
    to->elem = elem;
    to->dtype = elem->dtype;
    return SDX_OK;
}

enum sdx_status sdx_import_type(struct sdx_import *im, int32_t graph,
                                const struct sdx_import_frame *frame,
                                const struct sdx_onnx_type *from, struct sdx_type *to)
{
    static const uint8_t kinds[] = {
        [SDX_TYPE_NONE] = SDX_KIND_NONE,         [SDX_TYPE_TENSOR] = SDX_KIND_TENSOR,
        [SDX_TYPE_SEQUENCE] = SDX_KIND_SEQUENCE, [SDX_TYPE_MAP] = SDX_KIND_MAP,
        [SDX_TYPE_OPTIONAL] = SDX_KIND_OPTIONAL, [SDX_TYPE_SPARSE] = SDX_KIND_SPARSE,
        [SDX_TYPE_OPAQUE] = SDX_KIND_NONE};
    *to = (struct sdx_type){.kind = SDX_KIND_NONE};
    /* Opaque values go from one custom operator to another; nothing is known of them. */
    if (!from || from->which == SDX_TYPE_NONE || from->which == SDX_TYPE_OPAQUE) return SDX_OK;
    bool typed = from->which == SDX_TYPE_TENSOR || from->which == SDX_TYPE_SPARSE ||
                 from->which == SDX_TYPE_MAP;
    if (typed && from->elem_type != 0 && !sdx_dtype_is_valid(from->elem_type))
        return SDX_FAIL(im->cx, SDX_BAD_MODEL, "element type is %d, expected 1 to %d",
                        from->elem_type, SDX_DTYPE_LAST);
    to->kind = kinds[from->which];
    if (from->which == SDX_TYPE_MAP) {
        to->key_dtype = (uint8_t)from->elem_type;
        return import_elem(im, graph, frame, from, to);
    }
    if (!typed) return import_elem(im, graph, frame, from, to);
    to->dtype = (uint8_t)from->elem_type;
    return from->has_shape ? import_shape(im, graph, frame, from, to) : SDX_OK;
}

/* A function's tensors are imported once however often it is called. */
static struct sdx_tensor *find_shared(const struct sdx_import *im, const void *message)
{
    int32_t at =
        sdx_map_get(&im->tensor_map, (struct sdx_str){(const char *)&message, sizeof(message)});
    return at < 0 ? NULL : im->tensors[at];
}

static enum sdx_status add_shared(struct sdx_import *im, const void *message,
                                  struct sdx_tensor *tensor)
{
    if (im->count_tensors == im->capacity_tensors) {
        int32_t grown = im->capacity_tensors ? 2 * im->capacity_tensors : 16;
        void *to = sdx_mem_realloc(im->cx->mem, SDX_MEM_MODEL, im->tensors,
                                   (size_t)grown * sizeof(struct sdx_tensor *));
        if (!to) return SDX_FAIL_MEMORY(im->cx);
        im->tensors = to;
        im->capacity_tensors = grown;
    }
    const char *key = sdx_arena_copy(im->arena, &message, sizeof(message));
    if (!key ||
        !sdx_map_put(&im->tensor_map, (struct sdx_str){key, sizeof(message)}, im->count_tensors))
        return SDX_FAIL_MEMORY(im->cx);
    im->tensors[im->count_tensors++] = tensor;
    return SDX_OK;
}

enum sdx_status sdx_import_tensor(struct sdx_import *im, const struct sdx_import_frame *frame,
                                  const struct sdx_onnx_tensor *from, struct sdx_tensor **to)
{
    *to = frame ? find_shared(im, from) : NULL;
    if (*to) return SDX_OK;
    SDX_TRY(sdx_onnx_tensor_import(im->cx, im->arena, im->ex, from, to));
    return frame ? add_shared(im, from, *to) : SDX_OK;
}

enum sdx_status sdx_import_sparse(struct sdx_import *im, const struct sdx_import_frame *frame,
                                  const struct sdx_onnx_sparse *from, struct sdx_tensor **to)
{
    *to = frame ? find_shared(im, from) : NULL;
    if (*to) return SDX_OK;
    SDX_TRY(sdx_onnx_sparse_import(im->cx, im->arena, im->ex, from, sparse_bytes_max, to));
    return frame ? add_shared(im, from, *to) : SDX_OK;
}

int32_t sdx_ir_attr_infer_type(const struct sdx_onnx_attr *attr)
{
    const struct {
        bool is_set;
        enum sdx_attr_type type;
    } fields[] = {{attr->has_f, SDX_ATTR_FLOAT},
                  {attr->has_i, SDX_ATTR_INT},
                  {attr->has_s, SDX_ATTR_STRING},
                  {attr->t != NULL, SDX_ATTR_TENSOR},
                  {attr->g != NULL, SDX_ATTR_GRAPH},
                  {attr->count_floats > 0, SDX_ATTR_FLOATS},
                  {attr->ints.count > 0, SDX_ATTR_INTS},
                  {attr->strings.count > 0, SDX_ATTR_STRINGS},
                  {attr->tensors.count > 0, SDX_ATTR_TENSORS},
                  {attr->count_graphs > 0, SDX_ATTR_GRAPHS},
                  {attr->sparse != NULL, SDX_ATTR_SPARSE},
                  {attr->sparses.count > 0, SDX_ATTR_SPARSES},
                  {attr->tp != NULL, SDX_ATTR_TYPE},
                  {attr->count_types > 0, SDX_ATTR_TYPES}};
    if (attr->type != SDX_ATTR_UNDEFINED) return attr->type;
    for (int i = 0; i < SDX_COUNT_OF(fields); i++)
        if (fields[i].is_set) return (int32_t)fields[i].type;
    return SDX_ATTR_UNDEFINED;
}

static enum sdx_status import_tensors(struct sdx_import *im, const struct sdx_import_frame *frame,
                                      const struct sdx_onnx_attr *from, struct sdx_ir_attr *to)
{
    bool sparse = to->type == SDX_ATTR_SPARSES;
    to->count = sparse ? from->sparses.count : from->tensors.count;
    to->tensors = sdx_arena_array(im->arena, (size_t)to->count, sizeof(*to->tensors));
    if (!to->tensors) return SDX_FAIL_MEMORY(im->cx);
    for (int64_t i = 0; i < to->count; i++) {
        if (sparse)
            SDX_TRY(sdx_import_sparse(im, frame, &from->sparses.at[i], &to->tensors[i]));
        else
            SDX_TRY(sdx_import_tensor(im, frame, &from->tensors.at[i], &to->tensors[i]));
    }
    return SDX_OK;
}

static enum sdx_status import_graphs(struct sdx_import *im, struct sdx_import_scope *scope,
                                     int32_t node, const struct sdx_onnx_attr *from,
                                     struct sdx_ir_attr *to)
{
    int32_t *graphs = sdx_arena_array(im->arena, (size_t)from->count_graphs, sizeof(*graphs));
    if (!graphs) return SDX_FAIL_MEMORY(im->cx);
    for (int32_t i = 0; i < from->count_graphs; i++)
        SDX_TRY(sdx_import_body(im, scope, &from->graphs[i], node, &graphs[i]));
    to->graphs = graphs;
    to->count = from->count_graphs;
    return SDX_OK;
}

/* `scope` is where the attribute was written: names in its bodies are resolved there. */
static enum sdx_status import_value(struct sdx_import *im, struct sdx_import_scope *scope,
                                    int32_t node, const struct sdx_onnx_attr *from,
                                    struct sdx_ir_attr *to)
{
    const struct sdx_import_frame *frame = scope->frame;
    to->type = (uint8_t)sdx_ir_attr_infer_type(from);
    bool missing =
        (to->type == SDX_ATTR_TENSOR && !from->t) || (to->type == SDX_ATTR_GRAPH && !from->g) ||
        (to->type == SDX_ATTR_SPARSE && !from->sparse) || (to->type == SDX_ATTR_TYPE && !from->tp);
    if (missing || from->type < 0 || from->type > SDX_ATTR_TYPES || to->type == SDX_ATTR_UNDEFINED)
        return SDX_FAIL(im->cx, SDX_BAD_MODEL, "type is %d and there is no value of that type",
                        from->type);
    switch ((enum sdx_attr_type)to->type) {
    case SDX_ATTR_FLOAT: to->f = from->f; return SDX_OK;
    case SDX_ATTR_INT: to->i = from->i; return SDX_OK;
    case SDX_ATTR_STRING: to->s = from->s; return SDX_OK;
    case SDX_ATTR_TENSOR: return sdx_import_tensor(im, frame, from->t, &to->tensor);
    case SDX_ATTR_SPARSE: return sdx_import_sparse(im, frame, from->sparse, &to->tensor);
    case SDX_ATTR_GRAPH: return sdx_import_body(im, scope, from->g, node, &to->graph);
    case SDX_ATTR_GRAPHS: return import_graphs(im, scope, node, from, to);
    case SDX_ATTR_TENSORS:
    case SDX_ATTR_SPARSES: return import_tensors(im, frame, from, to);
    case SDX_ATTR_FLOATS:
        to->floats = from->floats;
        to->count = from->count_floats;
        return SDX_OK;
    case SDX_ATTR_INTS:
        to->ints = from->ints.at;
        to->count = from->ints.count;
        return SDX_OK;
    case SDX_ATTR_STRINGS:
        to->strings = from->strings.at;
        to->count = from->strings.count;
        return SDX_OK;
    case SDX_ATTR_TYPE: {
        struct sdx_type *type = sdx_arena_alloc(im->arena, sizeof(*type));
        if (!type) return SDX_FAIL_MEMORY(im->cx);
        to->type_value = type;
        return sdx_import_type(im, scope->graph, frame, from->tp, type);
    }
    default: return SDX_FAIL(im->cx, SDX_NOT_SUPPORTED, "a list of types is not supported");
    }
}

static const struct sdx_onnx_attr *find_attr(const struct sdx_onnx_attrs *attrs,
                                             struct sdx_str name)
{
    for (int32_t i = 0; i < attrs->count; i++)
        if (sdx_str_equal(attrs->at[i].name, name)) return &attrs->at[i];
    return NULL;
}

/* Follows references through the calls: *from and *scope become the attribute with a value and the
 * place where it is written. *from NULL: not given. */
static void follow_reference(const struct sdx_onnx_attr **from, struct sdx_import_scope **scope)
{
    while (*from && (*from)->ref.len && (*scope)->frame) {
        const struct sdx_import_frame *frame = (*scope)->frame;
        struct sdx_str name = (*from)->ref;
        *from = find_attr(&frame->call->attrs, name);
        if (*from)
            *scope = frame->caller;
        else
            *from = find_attr(&frame->function->attrs, name);
        if (*from && *scope != frame->caller) return; /* a default is never a reference */
    }
}

enum sdx_status sdx_import_attr(struct sdx_import *im, struct sdx_import_scope *scope, int32_t node,
                                const struct sdx_onnx_attr *from)
{
    struct sdx_str name = from->name;
    int32_t graph = scope->graph;
    follow_reference(&from, &scope);
    if (!from) return SDX_OK;
    struct sdx_ir_attr attr = {.name = name, .graph = -1};
    bool holds_graphs = from->g || from->count_graphs > 0;
    if (from->ref.len)
        return SDX_FAIL(
            im->cx, SDX_BAD_MODEL,
            "attribute %.*s refers to \"%.*s\", expected an attribute of a function around it",
            SDX_STR_ARG(name), SDX_STR_ARG(from->ref));
    if (holds_graphs && scope->graph != graph)
        return SDX_FAIL(im->cx, SDX_NOT_SUPPORTED,
                        "attribute %.*s: a graph given to a function and used in one of its "
                        "subgraphs is not supported",
                        SDX_STR_ARG(name));
    if (import_value(im, scope, node, from, &attr) != SDX_OK)
        return sdx_fail_where(im->cx, "attribute %.*s", SDX_STR_ARG(name));
    struct sdx_ir_node *to = &im->ir->graphs[graph].nodes[node];
    to->attrs[to->count_attrs++] = attr;
    return SDX_OK;
}
