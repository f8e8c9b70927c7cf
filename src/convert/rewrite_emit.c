/* SPDX-License-Identifier: Apache-2.0
 * How adapters make names, nodes and constants. */
#include "convert/rewrite.h"

#include <inttypes.h>
#include <stdio.h>

#include "tensor/convert.h"

static void fail_memory(struct sdx_rewrite *rx)
{
    if (rx->status == SDX_OK) rx->status = SDX_FAIL_MEMORY(rx->cx);
}

struct sdx_str sdx_rewrite_fresh(struct sdx_rewrite *rx, struct sdx_str what)
{
    for (;;) {
        char *text =
            sdx_arena_printf(rx->arena, "%.*s_%" PRId64, SDX_STR_ARG(what), rx->count_fresh++);
        if (!text) break;
        struct sdx_str name = sdx_str(text);
        if (sdx_map_get(&rx->taken, name) >= 0) continue;
        if (!sdx_map_put(&rx->taken, name, 1)) break;
        return name;
    }
    fail_memory(rx);
    return SDX_STR("no_memory");
}

/* The lists of a node are shared with the message that was read until they change. */
static void copy_strings(struct sdx_rewrite *rx, struct sdx_onnx_strings *list, int32_t count)
{
    struct sdx_str *grown = sdx_arena_array(rx->arena, (size_t)count + 1, sizeof *grown);
    if (!grown) {
        fail_memory(rx);
        return;
    }
    for (int32_t i = 0; i < count; i++)
        grown[i] = i < list->count ? list->at[i] : SDX_STR("");
    *list = (struct sdx_onnx_strings){grown, count};
}

void sdx_rewrite_set_input(struct sdx_rewrite *rx, int i, struct sdx_str name)
{
    struct sdx_onnx_strings *inputs = &rx->node->inputs;
    copy_strings(rx, inputs, i < inputs->count ? inputs->count : i + 1);
    if (i < inputs->count) inputs->at[i] = name;
}

void sdx_rewrite_trim_inputs(struct sdx_rewrite *rx, int most)
{
    struct sdx_onnx_strings *inputs = &rx->node->inputs;
    if (inputs->count > most) inputs->count = most;
    while (inputs->count && inputs->at[inputs->count - 1].len == 0)
        inputs->count--;
}

struct sdx_str sdx_rewrite_take_output(struct sdx_rewrite *rx, int k)
{
    struct sdx_onnx_strings *outputs = &rx->node->outputs;
    copy_strings(rx, outputs, outputs->count);
    if (k >= outputs->count) return SDX_STR("");
    struct sdx_str old = outputs->at[k];
    outputs->at[k] = sdx_rewrite_fresh(rx, SDX_STR("before"));
    sdx_rewrite_set_type(rx, outputs->at[k], sdx_rewrite_type(rx, old));
    return old;
}

static struct sdx_onnx_node *append(struct sdx_rewrite *rx, struct sdx_rewrite_list *list)
{
    if (list->count == list->capacity) {
        int32_t capacity = list->capacity ? 2 * list->capacity : 64;
        struct sdx_onnx_node *grown =
            sdx_arena_array(rx->arena, (size_t)capacity, sizeof *list->at);
        if (!grown) {
            fail_memory(rx);
            rx->spare = (struct sdx_onnx_node){.outputs = {&rx->spare_name, 1}};
            return &rx->spare;
        }
        if (list->count) memcpy(grown, list->at, (size_t)list->count * sizeof *grown);
        list->at = grown;
        list->capacity = capacity;
    }
    return &list->at[list->count++];
}

static struct sdx_onnx_node *emit(struct sdx_rewrite *rx, struct sdx_rewrite_list *list,
                                  struct sdx_str op, struct sdx_str output, int32_t count,
                                  const struct sdx_str *in)
{
    while (count && in[count - 1].len == 0)
        count--;
    struct sdx_str *names = sdx_arena_array(rx->arena, (size_t)count + 1, sizeof *names);
    if (!names) {
        fail_memory(rx);
        rx->spare = (struct sdx_onnx_node){.outputs = {&rx->spare_name, 1}};
        return &rx->spare;
    }
    for (int32_t i = 0; i < count; i++)
        names[i] = in[i];
    names[count] = output.len ? output : sdx_rewrite_fresh(rx, op);
    struct sdx_onnx_node *node = append(rx, list);
    *node = (struct sdx_onnx_node){
        .op_type = op, .inputs = {names, count}, .outputs = {&names[count], 1}};
    return node;
}

struct sdx_onnx_node *sdx_rewrite_add(struct sdx_rewrite *rx, struct sdx_str op,
                                      struct sdx_str output, int count, const struct sdx_str *in)
{
    const char *lasting = sdx_arena_printf(rx->arena, "%.*s", SDX_STR_ARG(op));
    if (!lasting) fail_memory(rx);
    return emit(rx, &rx->done, lasting ? sdx_str(lasting) : SDX_NONE, output, count, in);
}

struct sdx_onnx_node *sdx_rewrite_before(struct sdx_rewrite *rx, const char *op,
                                         struct sdx_str output, struct sdx_str a, struct sdx_str b,
                                         struct sdx_str c)
{
    return emit(rx, &rx->done, sdx_str(op), output, 3, (struct sdx_str[]){a, b, c});
}

struct sdx_onnx_node *sdx_rewrite_after(struct sdx_rewrite *rx, const char *op,
                                        struct sdx_str output, struct sdx_str a, struct sdx_str b,
                                        struct sdx_str c)
{
    return emit(rx, &rx->after, sdx_str(op), output, 3, (struct sdx_str[]){a, b, c});
}

/* ---- constants ---- */

enum { CONSTANT_OF_ANY_TYPE = 9 }; /* the version of Constant; before: floating types */

static void add_input(struct sdx_rewrite *rx, struct sdx_onnx_graph *graph,
                      const struct sdx_onnx_tensor *tensor)
{
    struct sdx_onnx_value_infos *inputs = &graph->inputs;
    struct sdx_onnx_value_info *grown =
        sdx_arena_array(rx->arena, (size_t)inputs->count + 1, sizeof *grown);
    struct sdx_onnx_type *type = sdx_arena_alloc(rx->arena, sizeof *type);
    struct sdx_onnx_dim *dims =
        sdx_arena_array(rx->arena, (size_t)tensor->dims.count + 1, sizeof *dims);
    if (!grown || !type || !dims) {
        fail_memory(rx);
        return;
    }
    if (inputs->count) memcpy(grown, inputs->at, (size_t)inputs->count * sizeof *grown);
    for (int64_t d = 0; d < tensor->dims.count; d++)
        dims[d] = (struct sdx_onnx_dim){.which = SDX_DIM_VALUE, .value = tensor->dims.at[d]};
    *type = (struct sdx_onnx_type){.which = SDX_TYPE_TENSOR,
                                   .elem_type = tensor->data_type,
                                   .has_elem_type = true,
                                   .has_shape = true,
                                   .dims = dims,
                                   .rank = (int32_t)tensor->dims.count};
    grown[inputs->count] = (struct sdx_onnx_value_info){.name = tensor->name, .type = type};
    *inputs = (struct sdx_onnx_value_infos){grown, inputs->count + 1};
}

void sdx_rewrite_add_initializer(struct sdx_rewrite *rx, struct sdx_onnx_graph *graph,
                                 const struct sdx_onnx_tensor *tensor)
{
    struct sdx_onnx_tensors *list = &graph->initializers;
    struct sdx_onnx_tensor *grown =
        sdx_arena_array(rx->arena, (size_t)list->count + 1, sizeof *grown);
    if (!grown) {
        fail_memory(rx);
        return;
    }
    if (list->count) memcpy(grown, list->at, (size_t)list->count * sizeof *grown);
    grown[list->count] = *tensor;
    *list = (struct sdx_onnx_tensors){grown, list->count + 1};
    if (rx->model->ir_version < 4 && graph == rx->scopes[0]->graph) add_input(rx, graph, tensor);
}

static void add_constant(struct sdx_rewrite *rx, struct sdx_str name, struct sdx_onnx_tensor *t)
{
    const bool is_float =
        t->data_type == SDX_F32 || t->data_type == SDX_F16 || t->data_type == SDX_F64;
    struct sdx_rewrite_scope *scope = rx->scope;
    if (is_float || rx->to >= CONSTANT_OF_ANY_TYPE || scope->function) {
        struct sdx_onnx_node *node =
            sdx_rewrite_before(rx, "Constant", name, SDX_NONE, SDX_NONE, SDX_NONE);
        struct sdx_onnx_attr *attr = sdx_rewrite_set(rx, node, "value", SDX_ATTR_TENSOR);
        if (attr) attr->t = t;
    } else {
        scope = rx->scopes[0]; /* every body sees it there */
        t->name = name;
        sdx_rewrite_add_initializer(rx, scope->graph, t);
    }
    struct sdx_type *type = sdx_arena_alloc(rx->arena, sizeof *type);
    struct sdx_rewrite_value *value = sdx_rewrite_value(rx, scope, name);
    if (!type) fail_memory(rx);
    if (!type || !value) return;
    *type = (struct sdx_type){.kind = SDX_KIND_TENSOR,
                              .dtype = (uint8_t)t->data_type,
                              .has_shape = true,
                              .rank = (int32_t)t->dims.count,
                              .dims = t->dims.at};
    value->type = type;
    value->constant = t;
}

struct sdx_str sdx_rewrite_const(struct sdx_rewrite *rx, int dtype, int rank, int64_t count,
                                 const void *data)
{
    size_t bytes = 0;
    struct sdx_str name = sdx_rewrite_fresh(rx, SDX_STR("constant"));
    struct sdx_onnx_tensor *t = sdx_arena_alloc(rx->arena, sizeof *t);
    int64_t *dims = sdx_arena_array(rx->arena, 1, sizeof *dims);
    void *copy =
        sdx_dtype_bytes(dtype, count, &bytes) ? sdx_arena_alloc(rx->arena, bytes + 16) : NULL;
    if (!t || !dims || !copy) {
        fail_memory(rx);
        return name;
    }
    if (bytes) memcpy(copy, data, bytes);
    dims[0] = count;
    *t = (struct sdx_onnx_tensor){.data_type = dtype,
                                  .has_data_type = true,
                                  .dims = {dims, rank},
                                  .has_raw = true,
                                  .raw = {copy, bytes}};
    add_constant(rx, name, t);
    return name;
}

struct sdx_str sdx_rewrite_const_ints(struct sdx_rewrite *rx, int64_t count, const int64_t *v)
{
    return sdx_rewrite_const(rx, SDX_I64, 1, count, v);
}

struct sdx_str sdx_rewrite_const_int(struct sdx_rewrite *rx, int64_t v)
{
    return sdx_rewrite_const(rx, SDX_I64, 0, 1, &v);
}

struct sdx_str sdx_rewrite_const_number(struct sdx_rewrite *rx, int dtype, int rank, double v)
{
    _Alignas(16) unsigned char bytes[16] = {0};
    sdx_store_f64(dtype, bytes, 0, v);
    return sdx_rewrite_const(rx, dtype, rank, 1, bytes);
}

/* ---- nodes whose form depends on the version ---- */

struct sdx_str sdx_rewrite_reshape(struct sdx_rewrite *rx, struct sdx_str x, int64_t count,
                                   const int64_t *shape)
{
    struct sdx_str list = rx->to >= 5 ? sdx_rewrite_const_ints(rx, count, shape) : SDX_NONE;
    struct sdx_onnx_node *node = sdx_rewrite_before(rx, "Reshape", SDX_NONE, x, list, SDX_NONE);
    if (rx->to < 5) sdx_rewrite_set_ints(rx, node, "shape", count, shape);
    return sdx_rewrite_out(node);
}

struct sdx_onnx_node *sdx_rewrite_squeeze(struct sdx_rewrite *rx, const char *op, bool after,
                                          struct sdx_str output, struct sdx_str x, int64_t count,
                                          const int64_t *axes)
{
    struct sdx_str list = rx->to >= 13 ? sdx_rewrite_const_ints(rx, count, axes) : SDX_NONE;
    struct sdx_onnx_node *node = after ? sdx_rewrite_after(rx, op, output, x, list, SDX_NONE)
                                       : sdx_rewrite_before(rx, op, output, x, list, SDX_NONE);
    if (rx->to < 13) sdx_rewrite_set_ints(rx, node, "axes", count, axes);
    return node;
}

void sdx_rewrite_set_like(struct sdx_rewrite *rx, struct sdx_str name, struct sdx_str like,
                          int dtype)
{
    const struct sdx_type *type = sdx_rewrite_type(rx, like);
    if (!type || type->kind != SDX_KIND_TENSOR) return;
    struct sdx_type *copy = sdx_arena_copy(rx->arena, type, sizeof *copy);
    if (!copy) {
        fail_memory(rx);
        return;
    }
    copy->dtype = (uint8_t)dtype;
    sdx_rewrite_set_type(rx, name, copy);
}

struct sdx_onnx_node *sdx_rewrite_cast(struct sdx_rewrite *rx, bool after, struct sdx_str output,
                                       struct sdx_str x, int dtype)
{
    static const char *const names[] = {
        "UNDEFINED", "FLOAT", "UINT8",   "INT8",   "UINT16", "INT16",  "INT32",     "INT64",
        "STRING",    "BOOL",  "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128"};
    struct sdx_onnx_node *node =
        after ? sdx_rewrite_after(rx, "Cast", output, x, SDX_NONE, SDX_NONE)
              : sdx_rewrite_before(rx, "Cast", output, x, SDX_NONE, SDX_NONE);
    if (rx->to >= 6)
        sdx_rewrite_set_int(rx, node, "to", dtype);
    else
        sdx_rewrite_set_str(rx, node, "to", names[dtype < SDX_COUNT_OF(names) ? dtype : 0]);
    if (!after) sdx_rewrite_set_like(rx, sdx_rewrite_out(node), x, dtype);
    return node;
}
