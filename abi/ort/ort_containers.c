/* SPDX-License-Identifier: Apache-2.0
 * Sequences and maps made by programs. Opaque values have no types that are registered here. */
#include "ort_inside.h"
#include "ort_objects.h"

#include <stdlib.h>
#include <string.h>

/* The values whose tensors a sequence has: their memory is theirs. */
struct kept {
    size_t count;
    OrtValue *values[];
};

static void free_kept(void *data)
{
    struct kept *kept = data;
    for (size_t i = 0; i < kept->count; i++)
        ort_value_release(kept->values[i]);
    free(kept);
}

static OrtStatusPtr make_value(sdx_kind kind, sdx_dtype dtype, size_t count,
                               sdx_tensor *const *items, OrtValue **out)
{
    sdx_tensor *made = NULL;
    sdx_context *cx = ort_context();
    if (!cx) return ort_no_memory();
    if (sdx_value_create(cx, kind, dtype, (int64_t)count, items, &made))
        return ort_status(ORT_FAIL, sdx_error(cx));
    return ort_value_own(made, out);
}

static OrtStatusPtr check_items(const OrtValue *const *in, size_t count)
{
    const sdx_tensor *first = ort_value_tensor(in[0]);
    for (size_t i = 0; i < count; i++) {
        const sdx_tensor *tensor = ort_value_tensor(in[i]);
        const sdx_kind kind = tensor ? sdx_tensor_kind(tensor) : SDX_KIND_NONE;
        if (kind != SDX_KIND_TENSOR && kind != SDX_KIND_MAP)
            return ort_fail(ORT_FAIL,
                            "Each element of the sequence should be either tensor or map.");
        if (kind != sdx_tensor_kind(first))
            return ort_fail(ORT_FAIL, "At least one element in the sequence is of a type different "
                                      "from others.");
        if (kind == SDX_KIND_TENSOR && sdx_tensor_dtype(tensor) != sdx_tensor_dtype(first))
            return ort_fail(ORT_FAIL,
                            "Sequences must have tensors of the same data type. There was at least "
                            "one tensor in the input that was different.");
    }
    return NULL;
}

OrtStatusPtr ort_sequence_empty(ONNXTensorElementDataType type, OrtValue **out)
{
    *out = NULL;
    return make_value(SDX_KIND_SEQUENCE, (sdx_dtype)type, 0, NULL, out);
}

static OrtStatusPtr make_sequence(const OrtValue *const *in, size_t count, OrtValue **out)
{
    if (count == 0) return ort_fail(ORT_FAIL, "Number of values should be at least 1.");
    ORT_TRY(check_items(in, count));
    struct kept *kept = calloc(1, sizeof *kept + count * sizeof kept->values[0]);
    sdx_tensor **items = calloc(count, sizeof *items);
    OrtStatusPtr failed = kept && items ? NULL : ort_no_memory();
    for (size_t i = 0; i < count && !failed; i++) {
        items[i] = ort_value_tensor(in[i]);
        kept->values[kept->count++] = ort_value_retain(in[i]);
    }
    if (!failed)
        failed = make_value(SDX_KIND_SEQUENCE, sdx_tensor_dtype(items[0]), count, items, out);
    free(items);
    if (failed) {
        if (kept) free_kept(kept);
        return failed;
    }
    (*out)->opaque = kept;
    (*out)->opaque_free = free_kept;
    return NULL;
}

/* ---- maps: entries sorted by key, of equal keys the first ---- */

struct keys {
    const sdx_tensor *tensor;
};

static int compare_keys(const void *a, const void *b, void *data)
{
    const struct keys *keys = data;
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    if (sdx_tensor_dtype(keys->tensor) == SDX_I64) {
        const int64_t left = sdx_tensor_i64(keys->tensor, x),
                      right = sdx_tensor_i64(keys->tensor, y);
        return left < right ? -1 : left > right;
    }
    size_t lengths[2];
    const char *left = sdx_tensor_string(keys->tensor, x, &lengths[0]);
    const char *right = sdx_tensor_string(keys->tensor, y, &lengths[1]);
    const size_t both = lengths[0] < lengths[1] ? lengths[0] : lengths[1];
    const int order = both ? memcmp(left, right, both) : 0;
    return order ? order : lengths[0] < lengths[1] ? -1 : lengths[0] > lengths[1];
}

/* By key, then by place. */
static int compare_entries(const void *a, const void *b, void *data)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    const int order = compare_keys(a, b, data);
    return order ? order : (x > y) - (x < y);
}

/* Places of the entries in `order`; returns how many there are. */
static size_t sort_entries(const sdx_tensor *tensor, int64_t *order)
{
    struct keys keys = {tensor};
    const size_t count = (size_t)sdx_tensor_count(tensor);
    for (size_t i = 0; i < count; i++)
        order[i] = (int64_t)i;
    qsort_r(order, count, sizeof *order, compare_entries, &keys);
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        if (left == 0 || compare_keys(&order[left - 1], &order[i], &keys) != 0)
            order[left++] = order[i];
    return left;
}

/* The elements of a tensor in another order. */
static OrtStatusPtr take_elements(const sdx_tensor *from, const int64_t *order, size_t count,
                                  sdx_tensor **out)
{
    sdx_context *cx = ort_context();
    const int64_t dims[] = {(int64_t)count};
    const size_t size = (size_t)sdx_dtype_bits(sdx_tensor_dtype(from)) / 8;
    if (!cx) return ort_no_memory();
    if (sdx_tensor_dtype(from) != SDX_STRING) {
        if (sdx_tensor_create(cx, sdx_tensor_dtype(from), 1, dims, out)) return ort_no_memory();
        for (size_t i = 0; i < count; i++)
            memcpy((char *)sdx_tensor_data(*out) + i * size,
                   (const char *)sdx_tensor_const_data(from) + (size_t)order[i] * size, size);
        return NULL;
    }
    const char **texts = calloc(count + 1, sizeof *texts);
    size_t *lengths = calloc(count + 1, sizeof *lengths);
    sdx_status status = SDX_OUT_OF_MEMORY;
    for (size_t i = 0; texts && lengths && i < count; i++)
        texts[i] = sdx_tensor_string(from, order[i], &lengths[i]);
    if (texts && lengths) status = sdx_tensor_create_strings(cx, 1, dims, texts, lengths, out);
    free(texts);
    free(lengths);
    return status ? ort_no_memory() : NULL;
}

static OrtStatusPtr check_map(const sdx_tensor *keys, const sdx_tensor *values)
{
    if (sdx_tensor_rank(keys) > 1 || sdx_tensor_rank(values) > 1)
        return ort_fail(ORT_FAIL,
                        "Either the key tensor or the value tensor has NumDimensions > 1");
    if (sdx_tensor_count(keys) != sdx_tensor_count(values))
        return ort_fail(ORT_FAIL, "Key and value tensors have unequal number of elements.");
    const sdx_dtype key = sdx_tensor_dtype(keys), value = sdx_tensor_dtype(values);
    if (key != SDX_I64 && key != SDX_STRING)
        return ort_fail(ORT_FAIL, "Key type is not supported yet.");
    if (value != SDX_F32 && value != SDX_F64 && value != SDX_I64 && value != SDX_STRING)
        return ort_fail(ORT_FAIL, "Value type is not supported yet: %s", sdx_dtype_name(value));
    return NULL;
}

static sdx_tensor *tensor_of(const OrtValue *value)
{
    sdx_tensor *tensor = ort_value_tensor(value);
    return tensor && sdx_tensor_kind(tensor) == SDX_KIND_TENSOR ? tensor : NULL;
}

static OrtStatusPtr make_map(const OrtValue *const *in, size_t count, OrtValue **out)
{
    sdx_tensor *items[2] = {NULL}, *keys = NULL, *values = NULL;
    if (count != 2) return ort_fail(ORT_FAIL, "For map type num_values MUST be 2");
    keys = tensor_of(in[0]);
    values = tensor_of(in[1]);
    if (!keys || !values)
        return ort_fail(ORT_FAIL, "Either the key tensor or the value tensor has NULL handle");
    ORT_TRY(check_map(keys, values));
    int64_t *order = calloc((size_t)sdx_tensor_count(keys) + 1, sizeof *order);
    if (!order) return ort_no_memory();
    const size_t entries = sort_entries(keys, order);
    OrtStatusPtr failed = take_elements(keys, order, entries, &items[0]);
    if (!failed) failed = take_elements(values, order, entries, &items[1]);
    if (!failed) failed = make_value(SDX_KIND_MAP, sdx_tensor_dtype(values), 2, items, out);
    sdx_tensor_destroy(items[0]);
    sdx_tensor_destroy(items[1]);
    free(order);
    return failed;
}

static OrtStatusPtr create_value(const OrtValue *const *in, size_t count, ONNXType kind,
                                 OrtValue **out)
{
    *out = NULL;
    if (kind == ONNX_TYPE_SEQUENCE) return make_sequence(in, count, out);
    if (kind == ONNX_TYPE_MAP) return make_map(in, count, out);
    return ort_fail(ORT_FAIL, "Input is not of type sequence or map.");
}

static OrtStatusPtr create_opaque_value(const char *domain, const char *type, const void *data,
                                        size_t size, OrtValue **out)
{
    (void)data, (void)size;
    *out = NULL;
    return ort_fail(ORT_FAIL, "opaque(%s,%s) is not a registered type", domain, type);
}

static OrtStatusPtr get_opaque_value(const char *domain, const char *type, const OrtValue *value,
                                     void *data, size_t size)
{
    (void)value, (void)data, (void)size;
    return ort_fail(ORT_FAIL, "opaque(%s,%s) is not a registered type", domain, type);
}

void ort_fill_containers(OrtApi *api)
{
    api->CreateValue = create_value;
    api->CreateOpaqueValue = create_opaque_value;
    api->GetOpaqueValue = get_opaque_value;
}
