/* SPDX-License-Identifier: Apache-2.0
 * A map is a value with two items: a tensor of keys and a tensor of values of the same length. */
#include "ops/ml_map.h"

#include "ops/cast.h"
#include "ops/ml_common.h"
#include "ops/ml_lookup.h"
#include "tensor/convert.h"

/* The two lists of a map; fails when `map` is none. */
static enum sdx_status lists_of(struct sdx_context *cx, const struct sdx_tensor *map,
                                const struct sdx_tensor **keys, const struct sdx_tensor **values)
{
    if (map->kind != SDX_KIND_MAP || map->count != 2 || !map->items ||
        map->items[1]->kind != SDX_KIND_TENSOR || map->items[0]->count != map->items[1]->count)
        return SDX_FAIL(cx, SDX_BAD_INPUT, "the input is not a map of tensors");
    *keys = map->items[0];
    *values = map->items[1];
    return SDX_OK;
}

static struct sdx_ml_labels vocabulary(const struct sdx_ir_node *node)
{
    return sdx_ml_labels_of(node, "int64_vocabulary", "string_vocabulary");
}

/* ---- DictVectorizer: [1, length of the vocabulary] ---- */

static enum sdx_status run_vector(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_lookup *table = step->params;
    const struct sdx_tensor *keys = NULL, *values = NULL;
    struct sdx_tensor *out = step->out[0];
    SDX_TRY(lists_of(x->cx, step->in[0], &keys, &values));
    if ((keys->dtype == SDX_STRING) != (table->kind == SDX_LOOKUP_TEXT) ||
        values->dtype != out->dtype)
        return SDX_FAIL(x->cx, SDX_BAD_INPUT, "DictVectorizer: a map from %s to %s",
                        sdx_dtype_name(keys->dtype), sdx_dtype_name(values->dtype));
    bool text = out->dtype == SDX_STRING;
    size_t size = (size_t)sdx_dtype_bits(out->dtype) / 8;
    char *to = text ? x->scratch : out->data;
    memset(to, 0, size * (size_t)table->count);
    for (int64_t i = 0; i < keys->count; i++) {
        int64_t at = sdx_lookup_element(table, keys, i);
        if (at < 0)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "DictVectorizer: key %lld is not in the %s",
                            (long long)i, "vocabulary");
        memcpy(to + (size_t)at * size, (const char *)values->data + (size_t)i * size, size);
    }
    if (!text) return SDX_OK;
    return sdx_exec_output_strings(x, step, 0, out->rank, out->dims, x->scratch);
}

enum sdx_status sdx_map_prepare_vector(struct sdx_prepare *px)
{
    struct sdx_lookup *table = SDX_PREPARE_NEW(px, struct sdx_lookup);
    if (!table) return px->cx->error.status;
    struct sdx_ml_labels words = vocabulary(px->node);
    if (words.count == 0) return SDX_FAIL(px->cx, SDX_BAD_MODEL, "DictVectorizer: no vocabulary");
    SDX_TRY(words.strings ? sdx_lookup_texts(px, table, words.strings, words.count)
                          : sdx_lookup_ints(px, table, words.ints, words.count));
    size_t scratch = (size_t)words.count * sizeof(struct sdx_str);
    return sdx_prepare_step(px, "DictVectorizer", run_vector, table, 1, scratch);
}

enum sdx_status sdx_map_infer_vector(struct sdx_infer *ix)
{
    const struct sdx_type *type = ix->in[0];
    int64_t dims[2] = {1, vocabulary(ix->node).count};
    if (type && type->kind == SDX_KIND_MAP)
        sdx_infer_set_dtype(ix, 0, type->elem ? type->elem->dtype : type->dtype);
    else
        sdx_infer_set_dtype(ix, 0, SDX_DTYPE_NONE);
    return sdx_infer_set_dims(ix, 0, 2, dims);
}

/* ---- ZipMap: a sequence of maps from labels to the columns of each row ---- */

static enum sdx_status make_keys(struct sdx_context *cx, const struct sdx_ml_labels *labels,
                                 struct sdx_tensor **out)
{
    if (labels->strings) return sdx_tensor_new_strings(cx, 1, &labels->count, labels->strings, out);
    SDX_TRY(sdx_tensor_new(cx, SDX_I64, 1, &labels->count, out));
    memcpy((*out)->data, labels->ints, (size_t)labels->count * sizeof(int64_t));
    return SDX_OK;
}

static enum sdx_status make_map(struct sdx_context *cx, struct sdx_tensor *keys, const float *row,
                                struct sdx_tensor **out)
{
    struct sdx_tensor *values = NULL;
    SDX_TRY(sdx_tensor_new(cx, SDX_F32, 1, &keys->count, &values));
    memcpy(values->data, row, (size_t)keys->count * sizeof *row);
    struct sdx_tensor *items[2] = {keys, values};
    enum sdx_status status =
        sdx_tensor_new_items(cx, SDX_KIND_MAP, SDX_F32, 2, items, 0, NULL, out);
    sdx_tensor_release(values);
    return status;
}

static enum sdx_status run_zip(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_ml_labels *labels = step->params;
    const struct sdx_tensor *in = step->in[0];
    struct sdx_tensor **maps = x->scratch, *keys = NULL;
    int64_t rows = in->rank == 2 ? in->dims[0] : 1, made = 0;
    SDX_TRY(make_keys(x->cx, labels, &keys));
    enum sdx_status status = SDX_OK;
    for (; made < rows && status == SDX_OK; made += status == SDX_OK)
        status = make_map(x->cx, keys, (const float *)in->data + made * labels->count, &maps[made]);
    if (status == SDX_OK)
        status = sdx_exec_output_items(x, step, 0, SDX_KIND_SEQUENCE, SDX_F32, rows, maps);
    for (int64_t i = 0; i < made; i++)
        sdx_tensor_release(maps[i]);
    sdx_tensor_release(keys);
    return status;
}

static struct sdx_ml_labels zip_labels(const struct sdx_ir_node *node)
{
    return sdx_ml_labels_of(node, "classlabels_int64s", "classlabels_strings");
}

enum sdx_status sdx_map_prepare_zip(struct sdx_prepare *px)
{
    struct sdx_ml_labels *labels = SDX_PREPARE_NEW(px, struct sdx_ml_labels);
    int64_t rows = 0, columns = 0;
    if (!labels) return px->cx->error.status;
    *labels = zip_labels(px->node);
    SDX_TRY(sdx_ml_matrix(px, &rows, &columns));
    if (columns != labels->count)
        return SDX_FAIL(px->cx, SDX_BAD_INPUT, "ZipMap: %lld columns for %lld labels",
                        (long long)columns, (long long)labels->count);
    return sdx_prepare_step(px, "ZipMap", run_zip, labels, 1,
                            ((size_t)rows + 1) * sizeof(struct sdx_tensor *));
}

enum sdx_status sdx_map_infer_zip(struct sdx_infer *ix)
{
    struct sdx_type *types = sdx_arena_array(ix->arena, 2, sizeof *types);
    if (!types) return SDX_FAIL_MEMORY(ix->cx);
    uint8_t key = zip_labels(ix->node).strings ? SDX_STRING : SDX_I64;
    types[0] = (struct sdx_type){.kind = SDX_KIND_TENSOR, .dtype = SDX_F32, .has_shape = true};
    types[1] = (struct sdx_type){
        .kind = SDX_KIND_MAP, .dtype = SDX_F32, .key_dtype = key, .elem = &types[0]};
    ix->out[0] = (struct sdx_type){
        .kind = SDX_KIND_SEQUENCE, .dtype = SDX_F32, .key_dtype = key, .elem = &types[1]};
    return SDX_OK;
}

/* ---- CastMap: values in the order of their keys, or at the places the keys say ---- */

struct cast_map {
    int dtype;
    bool sparse;
    int64_t length; /* of the output when sparse */
};

/* Puts value i of the map at element `to` of the output; texts get room of their own. */
static bool cast_value(const struct sdx_tensor *values, int64_t i, int dtype, void *out, int64_t to,
                       char *room)
{
    if (values->dtype == SDX_STRING && dtype == SDX_STRING) {
        ((struct sdx_str *)out)[to] = ((const struct sdx_str *)values->data)[i];
        return true;
    }
    if (values->dtype == SDX_STRING)
        return sdx_cast_parse(dtype, ((const struct sdx_str *)values->data)[i], out, to);
    if (dtype == SDX_STRING) {
        int length = sdx_cast_format(values->dtype, values->data, i, room);
        ((struct sdx_str *)out)[to] = (struct sdx_str){room, (size_t)length};
        return true;
    }
    sdx_convert(dtype, out, to, values->dtype, values->data, i, 1, true);
    return true;
}

/* How many keys are smaller: the place of value i in order. */
static int64_t rank_of(const struct sdx_tensor *keys, int64_t i)
{
    const int64_t *k = keys->data;
    int64_t rank = 0;
    for (int64_t j = 0; j < keys->count; j++)
        rank += k[j] < k[i] || (k[j] == k[i] && j < i);
    return rank;
}

static enum sdx_status fill_cast(struct sdx_exec *x, const struct sdx_step *step,
                                 const struct sdx_tensor *keys, const struct sdx_tensor *values,
                                 void *out, char *room)
{
    const struct cast_map *p = step->params;
    for (int64_t i = 0; i < keys->count; i++) {
        int64_t at = p->sparse ? ((const int64_t *)keys->data)[i] : rank_of(keys, i);
        if (p->sparse && (at < 0 || at >= p->length))
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "CastMap: key %lld, max_map is %lld",
                            (long long)at, (long long)p->length);
        if (!cast_value(values, i, p->dtype, out, at, room ? room + i * SDX_CAST_TEXT : NULL))
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "CastMap: value %lld is not a number",
                            (long long)i);
    }
    return SDX_OK;
}

static enum sdx_status run_cast_map(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct cast_map *p = step->params;
    const struct sdx_tensor *keys = NULL, *values = NULL;
    SDX_TRY(lists_of(x->cx, step->in[0], &keys, &values));
    if (keys->dtype != SDX_I64)
        return SDX_FAIL(x->cx, SDX_BAD_INPUT, "CastMap: keys are not int64");
    int64_t dims[2] = {1, p->sparse ? p->length : keys->count};
    if (p->dtype != SDX_STRING) {
        SDX_TRY(sdx_exec_output(x, step, 0, p->dtype, 2, dims));
        memset(step->out[0]->data, 0, step->out[0]->bytes);
        return fill_cast(x, step, keys, values, step->out[0]->data, NULL);
    }
    size_t texts = (size_t)dims[1] * sizeof(struct sdx_str);
    char *memory = sdx_mem_calloc(x->cx->mem, SDX_MEM_SCRATCH, 1,
                                  texts + ((size_t)keys->count + 1) * SDX_CAST_TEXT);
    if (!memory) return SDX_FAIL_MEMORY(x->cx);
    struct sdx_str *list = (struct sdx_str *)(void *)memory;
    enum sdx_status status = fill_cast(x, step, keys, values, list, memory + texts);
    if (status == SDX_OK) status = sdx_exec_output_strings(x, step, 0, 2, dims, list);
    sdx_mem_free(x->cx->mem, memory);
    return status;
}

static int cast_map_dtype(const struct sdx_ir_node *node)
{
    struct sdx_str to = sdx_ir_attr_str(node, "cast_to", "TO_FLOAT");
    return sdx_str_is(to, "TO_STRING")  ? SDX_STRING
           : sdx_str_is(to, "TO_INT64") ? SDX_I64
           : sdx_str_is(to, "TO_FLOAT") ? SDX_F32
                                        : SDX_DTYPE_NONE;
}

enum sdx_status sdx_map_prepare_cast(struct sdx_prepare *px)
{
    struct cast_map *p = SDX_PREPARE_NEW(px, struct cast_map);
    if (!p) return px->cx->error.status;
    p->dtype = cast_map_dtype(px->node);
    p->sparse = sdx_str_is(sdx_ir_attr_str(px->node, "map_form", "DENSE"), "SPARSE");
    p->length = sdx_ir_attr_int(px->node, "max_map", 1);
    if (p->dtype == SDX_DTYPE_NONE || p->length < 0 || p->length > INT32_MAX)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "CastMap: cast_to or max_map is wrong");
    return sdx_prepare_step(px, "CastMap", run_cast_map, p, 1, 0);
}

enum sdx_status sdx_map_infer_cast(struct sdx_infer *ix)
{
    bool sparse = sdx_str_is(sdx_ir_attr_str(ix->node, "map_form", "DENSE"), "SPARSE");
    int64_t length = sdx_ir_attr_int(ix->node, "max_map", 1);
    int64_t dims[2] = {1, sparse && length >= 0 ? length : -1};
    sdx_infer_set_dtype(ix, 0, cast_map_dtype(ix->node));
    return sdx_infer_set_dims(ix, 0, 2, dims);
}
