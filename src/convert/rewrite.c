/* SPDX-License-Identifier: Apache-2.0
 * What adapters know of values, and how they read and write attributes. */
#include "convert/rewrite.h"

#include <inttypes.h>
#include <stdio.h>

#include "tensor/convert.h"

enum sdx_status sdx_rewrite_refuse(struct sdx_rewrite *rx, const char *format, ...)
{
    char why[400];
    va_list list;
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    const struct sdx_onnx_node *node = rx->node;
    const bool named = node->name.len > 0 || node->outputs.count == 0;
    return SDX_FAIL(rx->cx, SDX_NOT_SUPPORTED,
                    "node %s\"%.*s\" (%.*s): opset %" PRId64 " to %" PRId64 ": %s",
                    named ? "" : "of ", SDX_STR_ARG(named ? node->name : node->outputs.at[0]),
                    SDX_STR_ARG(node->op_type), rx->from, rx->to, why);
}

static void fail_memory(struct sdx_rewrite *rx)
{
    if (rx->status == SDX_OK) rx->status = SDX_FAIL_MEMORY(rx->cx);
}

/* ---- values ---- */

static struct sdx_rewrite_value *find_value(const struct sdx_rewrite *rx, struct sdx_str name)
{
    if (name.len == 0) return NULL;
    for (struct sdx_rewrite_scope *s = rx->scope; s; s = s->parent) {
        int32_t at = sdx_map_get(&s->names, name);
        if (at >= 0) return &rx->values[at];
    }
    return NULL;
}

struct sdx_rewrite_value *sdx_rewrite_value(struct sdx_rewrite *rx, struct sdx_rewrite_scope *scope,
                                            struct sdx_str name)
{
    int32_t at = sdx_map_get(&scope->names, name);
    if (at >= 0) return &rx->values[at];
    if (rx->count_values == rx->capacity_values) {
        int32_t capacity = rx->capacity_values ? 2 * rx->capacity_values : 256;
        void *grown = sdx_mem_realloc(rx->cx->mem, SDX_MEM_MODEL, rx->values,
                                      (size_t)capacity * sizeof *rx->values);
        if (!grown) {
            fail_memory(rx);
            return NULL;
        }
        rx->values = grown;
        rx->capacity_values = capacity;
    }
    at = rx->count_values;
    if (!sdx_map_put(&scope->names, name, at) || !sdx_map_put(&rx->taken, name, 1)) {
        fail_memory(rx);
        return NULL;
    }
    rx->count_values++;
    rx->values[at] = (struct sdx_rewrite_value){.ir_value = -1};
    return &rx->values[at];
}

const struct sdx_type *sdx_rewrite_type(const struct sdx_rewrite *rx, struct sdx_str name)
{
    const struct sdx_rewrite_value *value = find_value(rx, name);
    return value && value->type && value->type->kind != SDX_KIND_NONE ? value->type : NULL;
}

int sdx_rewrite_dtype(const struct sdx_rewrite *rx, struct sdx_str name)
{
    const struct sdx_type *type = sdx_rewrite_type(rx, name);
    return type && type->kind == SDX_KIND_TENSOR ? type->dtype : 0;
}

int sdx_rewrite_rank(const struct sdx_rewrite *rx, struct sdx_str name)
{
    const struct sdx_type *type = sdx_rewrite_type(rx, name);
    return type && type->kind == SDX_KIND_TENSOR && type->has_shape ? type->rank : -1;
}

const int64_t *sdx_rewrite_dims(const struct sdx_rewrite *rx, struct sdx_str name)
{
    return sdx_rewrite_rank(rx, name) >= 0 ? sdx_rewrite_type(rx, name)->dims : NULL;
}

void sdx_rewrite_set_type(struct sdx_rewrite *rx, struct sdx_str name, const struct sdx_type *type)
{
    struct sdx_rewrite_value *value = sdx_rewrite_value(rx, rx->scope, name);
    if (value) value->type = type;
}

static const void *constant_data(struct sdx_rewrite *rx, struct sdx_str name, int *dtype,
                                 int64_t *count)
{
    const struct sdx_rewrite_value *value = find_value(rx, name);
    const void *data = NULL;
    if (!value || !value->constant || value->constant->dims.count > 1) return NULL;
    *dtype = value->constant->data_type;
    if (*dtype == SDX_STRING || sdx_dtype_is_complex(*dtype)) return NULL;
    enum sdx_status status =
        sdx_onnx_tensor_data(rx->cx, rx->arena, rx->external, value->constant, &data);
    if (status != SDX_OK) {
        if (rx->status == SDX_OK) rx->status = status;
        return NULL;
    }
    *count = value->constant->dims.count == 1 ? value->constant->dims.at[0] : 1;
    return data ? data : "";
}

bool sdx_rewrite_ints(struct sdx_rewrite *rx, struct sdx_str name, const int64_t **v,
                      int64_t *count)
{
    int dtype = 0;
    const char *data = constant_data(rx, name, &dtype, count);
    if (!data || (dtype != SDX_I64 && dtype != SDX_I32)) return false;
    int64_t *out = sdx_arena_array(rx->arena, (size_t)*count + 1, sizeof *out);
    if (!out) {
        fail_memory(rx);
        return false;
    }
    for (int64_t i = 0; i < *count; i++) {
        int32_t narrow = 0;
        if (dtype == SDX_I64) {
            memcpy(&out[i], data + 8 * i, 8);
        } else {
            memcpy(&narrow, data + 4 * i, 4);
            out[i] = narrow;
        }
    }
    *v = out;
    return true;
}

bool sdx_rewrite_floats(struct sdx_rewrite *rx, struct sdx_str name, const float **v,
                        int64_t *count)
{
    int dtype = 0;
    size_t bytes = 0;
    const void *data = constant_data(rx, name, &dtype, count);
    if (!data || !sdx_dtype_bytes(dtype, *count, &bytes)) return false;
    float *out = sdx_arena_array(rx->arena, (size_t)*count + 1, sizeof *out);
    const void *aligned = sdx_arena_copy(rx->arena, data, bytes);
    if (!out || !aligned) {
        fail_memory(rx);
        return false;
    }
    for (int64_t i = 0; i < *count; i++)
        out[i] = (float)sdx_load_f64(dtype, aligned, i);
    *v = out;
    return true;
}

void sdx_rewrite_moved(struct sdx_rewrite *rx, struct sdx_str name)
{
    struct sdx_rewrite_value *value = find_value(rx, name);
    if (value) value->moved = true;
}

/* ---- attributes ---- */

struct sdx_onnx_attr *sdx_rewrite_attr(const struct sdx_onnx_node *node, const char *name)
{
    for (int32_t i = 0; i < node->attrs.count; i++)
        if (sdx_str_is(node->attrs.at[i].name, name)) return &node->attrs.at[i];
    return NULL;
}

int64_t sdx_rewrite_attr_int(const struct sdx_onnx_node *node, const char *name, int64_t fallback)
{
    const struct sdx_onnx_attr *attr = sdx_rewrite_attr(node, name);
    return attr ? attr->i : fallback;
}

float sdx_rewrite_attr_float(const struct sdx_onnx_node *node, const char *name, float fallback)
{
    const struct sdx_onnx_attr *attr = sdx_rewrite_attr(node, name);
    return attr ? attr->f : fallback;
}

bool sdx_rewrite_attr_is(const struct sdx_onnx_node *node, const char *name, const char *text,
                         bool fallback)
{
    const struct sdx_onnx_attr *attr = sdx_rewrite_attr(node, name);
    return attr ? sdx_str_is(attr->s, text) : fallback;
}

void sdx_rewrite_remove(struct sdx_onnx_node *node, const char *name)
{
    const struct sdx_onnx_attr *attr = sdx_rewrite_attr(node, name);
    if (!attr) return;
    int32_t at = (int32_t)(attr - node->attrs.at);
    for (int32_t i = at + 1; i < node->attrs.count; i++)
        node->attrs.at[i - 1] = node->attrs.at[i];
    node->attrs.count--;
}

struct sdx_onnx_attr *sdx_rewrite_set(struct sdx_rewrite *rx, struct sdx_onnx_node *node,
                                      const char *name, enum sdx_attr_type type)
{
    struct sdx_onnx_attr *attr = sdx_rewrite_attr(node, name);
    if (!attr) {
        const int32_t count = node->attrs.count;
        struct sdx_onnx_attr *grown =
            sdx_arena_array(rx->arena, (size_t)count + 1, sizeof *node->attrs.at);
        if (!grown) {
            fail_memory(rx);
            return NULL;
        }
        if (count) memcpy(grown, node->attrs.at, (size_t)count * sizeof *grown);
        node->attrs = (struct sdx_onnx_attrs){grown, count + 1};
        attr = &grown[count];
    }
    *attr = (struct sdx_onnx_attr){.name = sdx_str(name), .type = (int32_t)type, .has_type = true};
    return attr;
}

void sdx_rewrite_set_int(struct sdx_rewrite *rx, struct sdx_onnx_node *node, const char *name,
                         int64_t v)
{
    struct sdx_onnx_attr *attr = sdx_rewrite_set(rx, node, name, SDX_ATTR_INT);
    if (!attr) return;
    attr->i = v;
    attr->has_i = true;
}

void sdx_rewrite_set_float(struct sdx_rewrite *rx, struct sdx_onnx_node *node, const char *name,
                           float v)
{
    struct sdx_onnx_attr *attr = sdx_rewrite_set(rx, node, name, SDX_ATTR_FLOAT);
    if (!attr) return;
    attr->f = v;
    attr->has_f = true;
}

void sdx_rewrite_set_str(struct sdx_rewrite *rx, struct sdx_onnx_node *node, const char *name,
                         const char *text)
{
    struct sdx_onnx_attr *attr = sdx_rewrite_set(rx, node, name, SDX_ATTR_STRING);
    if (!attr) return;
    attr->s = sdx_str(text);
    attr->has_s = true;
}

void sdx_rewrite_set_ints(struct sdx_rewrite *rx, struct sdx_onnx_node *node, const char *name,
                          int64_t count, const int64_t *v)
{
    int64_t *copy = sdx_arena_array(rx->arena, (size_t)count + 1, sizeof *copy);
    struct sdx_onnx_attr *attr = sdx_rewrite_set(rx, node, name, SDX_ATTR_INTS);
    if (!copy) fail_memory(rx);
    if (!attr || !copy) return;
    if (count) memcpy(copy, v, (size_t)count * sizeof *v);
    attr->ints = (struct sdx_onnx_ints){copy, count};
}

void sdx_rewrite_set_floats(struct sdx_rewrite *rx, struct sdx_onnx_node *node, const char *name,
                            int64_t count, const float *v)
{
    float *copy = sdx_arena_array(rx->arena, (size_t)count + 1, sizeof *copy);
    struct sdx_onnx_attr *attr = sdx_rewrite_set(rx, node, name, SDX_ATTR_FLOATS);
    if (!copy) fail_memory(rx);
    if (!attr || !copy) return;
    if (count) memcpy(copy, v, (size_t)count * sizeof *v);
    attr->floats = copy;
    attr->count_floats = count;
}
