/* SPDX-License-Identifier: Apache-2.0
 * Encoders: OneHotEncoder, LabelEncoder, CategoryMapper, FeatureVectorizer and
 * ArrayFeatureExtractor. Those of maps are in ml_map.c. */
#include "ops/ml_common.h"
#include "ops/ml_lookup.h"
#include "ops/ml_map.h"
#include "ops/op.h"
#include "tensor/convert.h"

/* ---- OneHotEncoder ---- */

struct one_hot {
    struct sdx_lookup table;
    bool zeros; /* unknown values give zeros; otherwise they fail */
};

static enum sdx_status run_one_hot(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct one_hot *p = step->params;
    const struct sdx_tensor *in = step->in[0];
    float *y = step->out[0]->data;
    memset(y, 0, step->out[0]->bytes);
    for (int64_t i = 0; i < in->count; i++) {
        int64_t at = sdx_lookup_element(&p->table, in, i);
        if (at >= 0)
            y[i * p->table.count + at] = 1;
        else if (!p->zeros)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "OneHotEncoder: element %lld is no category",
                            (long long)i);
    }
    return SDX_OK;
}

static enum sdx_status prepare_one_hot(struct sdx_prepare *px)
{
    struct one_hot *p = SDX_PREPARE_NEW(px, struct one_hot);
    if (!p) return px->cx->error.status;
    struct sdx_ml_labels cats = sdx_ml_labels_of(px->node, "cats_int64s", "cats_strings");
    bool text = px->in[0]->dtype == SDX_STRING;
    if (cats.count == 0 || text != (cats.strings != NULL))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "OneHotEncoder: no categories for %s",
                        sdx_dtype_name(px->in[0]->dtype));
    p->zeros = sdx_ir_attr_int(px->node, "zeros", 1) != 0;
    SDX_TRY(text ? sdx_lookup_texts(px, &p->table, cats.strings, cats.count)
                 : sdx_lookup_ints(px, &p->table, cats.ints, cats.count));
    return sdx_prepare_step(px, "OneHotEncoder", run_one_hot, p, 1, 0);
}

static enum sdx_status infer_one_hot(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, SDX_F32);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    int rank = sdx_infer_rank(ix, 0);
    if (!dims) return SDX_OK;
    int64_t *result = sdx_infer_new_dims(ix, 0, rank + 1);
    if (!result) return ix->cx->error.status;
    for (int d = 0; d < rank; d++)
        result[d] = dims[d];
    result[rank] = sdx_ml_labels_of(ix->node, "cats_int64s", "cats_strings").count;
    return SDX_OK;
}

/* ---- LabelEncoder, CategoryMapper ---- */

struct mapper {
    struct sdx_lookup table;
    bool by_position; /* the element itself is the position (LabelEncoder 1) */
    int64_t count;    /* of values */
    const struct sdx_str *texts;
    struct sdx_str text_otherwise;
    void *values; /* of the output's type; the last is for what is not there */
};

static int64_t position_of(const struct mapper *p, const struct sdx_tensor *x, int64_t i)
{
    int64_t at =
        p->by_position ? sdx_load_i64(x->dtype, x->data, i) : sdx_lookup_element(&p->table, x, i);
    return at >= 0 && at < p->count ? at : p->count;
}

static enum sdx_status run_mapper(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct mapper *p = step->params;
    const struct sdx_tensor *in = step->in[0];
    struct sdx_tensor *out = step->out[0];
    int64_t begin = sdx_part_begin(in->count, step->parts, part, 64);
    int64_t end = sdx_part_begin(in->count, step->parts, part + 1, 64);
    if (out->dtype == SDX_STRING) {
        struct sdx_str *texts = x->scratch;
        for (int64_t i = 0; i < in->count; i++) {
            int64_t at = position_of(p, in, i);
            texts[i] = at < p->count ? p->texts[at] : p->text_otherwise;
        }
        return sdx_exec_output_strings(x, step, 0, out->rank, out->dims, texts);
    }
    size_t size = (size_t)sdx_dtype_bits(out->dtype) / 8;
    for (int64_t i = begin; i < end; i++)
        memcpy((char *)out->data + (size_t)i * size,
               (const char *)p->values + (size_t)position_of(p, in, i) * size, size);
    return SDX_OK;
}

static enum sdx_status add_mapper(struct sdx_prepare *px, struct mapper *p)
{
    int64_t count = px->in[0]->count, most = (count + 63) / 64;
    if (px->out[0]->dtype == SDX_STRING)
        return sdx_prepare_step(px, "map to text", run_mapper, p, 1,
                                (size_t)count * sizeof(struct sdx_str));
    int64_t parts = sdx_prepare_parts((double)count * 8, 32768, most > 0 ? most : 1);
    return sdx_prepare_step(px, "map", run_mapper, p, parts, 0);
}

/* One of the lists an encoder may have: NAME_strings, NAME_int64s, NAME_floats, NAME_tensor. */
struct list {
    int dtype; /* SDX_DTYPE_NONE: there is none */
    int64_t count;
    const struct sdx_str *texts;
    const int64_t *ints;
    const float *floats;
    const struct sdx_tensor *tensor;
};

static struct list list_of(const struct sdx_ir_node *node, const char *strings, const char *ints,
                           const char *floats, const char *tensor)
{
    struct list list = {0};
    const struct sdx_ir_attr *attr = sdx_ir_attr(node, tensor);
    list.texts = sdx_ir_attr_strings(node, strings, &list.count);
    if (list.texts && list.count) return list.dtype = SDX_STRING, list;
    list.ints = sdx_ir_attr_ints(node, ints, &list.count);
    if (list.ints && list.count) return list.dtype = SDX_I64, list;
    list.floats = sdx_ir_attr_floats(node, floats, &list.count);
    if (list.floats && list.count) return list.dtype = SDX_F32, list;
    list.tensor = attr ? attr->tensor : NULL;
    list.count = list.tensor ? list.tensor->count : 0;
    list.dtype = list.tensor ? list.tensor->dtype : SDX_DTYPE_NONE;
    if (list.dtype == SDX_STRING) list.texts = list.tensor->data;
    return list;
}

static struct list keys_of(const struct sdx_ir_node *node)
{
    return list_of(node, "keys_strings", "keys_int64s", "keys_floats", "keys_tensor");
}

static struct list values_of(const struct sdx_ir_node *node)
{
    return list_of(node, "values_strings", "values_int64s", "values_floats", "values_tensor");
}

static enum sdx_status set_keys(struct sdx_prepare *px, struct mapper *p, const struct list *keys)
{
    if (keys->dtype == SDX_STRING) return sdx_lookup_texts(px, &p->table, keys->texts, keys->count);
    size_t room = ((size_t)keys->count + 1) * 8;
    if (sdx_dtype_is_float(keys->dtype)) {
        double *reals = sdx_prepare_alloc(px, room);
        if (!reals) return px->cx->error.status;
        for (int64_t i = 0; i < keys->count; i++)
            reals[i] =
                keys->floats ? keys->floats[i] : sdx_load_f64(keys->dtype, keys->tensor->data, i);
        return sdx_lookup_reals(px, &p->table, reals, keys->count);
    }
    int64_t *ints = sdx_prepare_alloc(px, room);
    if (!ints) return px->cx->error.status;
    for (int64_t i = 0; i < keys->count; i++)
        ints[i] = keys->ints ? keys->ints[i] : sdx_load_i64(keys->dtype, keys->tensor->data, i);
    return sdx_lookup_ints(px, &p->table, ints, keys->count);
}

/* Values in the output's type, and what stands for elements that are no key. */
static enum sdx_status set_values(struct sdx_prepare *px, struct mapper *p,
                                  const struct list *values)
{
    const struct sdx_ir_attr *attr = sdx_ir_attr(px->node, "default_tensor");
    const struct sdx_tensor *other = attr ? attr->tensor : NULL;
    int dtype = values->dtype;
    if (other && (other->count != 1 || other->dtype != dtype))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "LabelEncoder: default_tensor must be one %s",
                        sdx_dtype_name(dtype));
    p->count = values->count;
    if (dtype == SDX_STRING) {
        p->texts = values->texts;
        p->text_otherwise = other ? *(const struct sdx_str *)other->data
                                  : sdx_ir_attr_str(px->node, "default_string", "_Unused");
        return SDX_OK;
    }
    p->values = sdx_prepare_alloc(px, ((size_t)values->count + 1) * 8);
    if (!p->values) return px->cx->error.status;
    for (int64_t i = 0; i <= values->count; i++) {
        bool last = i == values->count;
        if (sdx_dtype_is_float(dtype)) {
            double v = values->floats && !last ? values->floats[i] : 0;
            if (last && other)
                v = sdx_load_f64(dtype, other->data, 0);
            else if (last)
                v = sdx_ir_attr_float(px->node, "default_float", -0.0f);
            else if (!values->floats)
                v = sdx_load_f64(dtype, values->tensor->data, i);
            sdx_store_f64(dtype, p->values, i, v);
        } else {
            int64_t v = last           ? (other ? sdx_load_i64(dtype, other->data, 0)
                                                : sdx_ir_attr_int(px->node, "default_int64", -1))
                        : values->ints ? values->ints[i]
                                       : sdx_load_i64(dtype, values->tensor->data, i);
            sdx_store_i64(dtype, p->values, i, v);
        }
    }
    return SDX_OK;
}

static enum sdx_status prepare_label(struct sdx_prepare *px)
{
    struct mapper *p = SDX_PREPARE_NEW(px, struct mapper);
    if (!p) return px->cx->error.status;
    struct list keys = keys_of(px->node), values = values_of(px->node);
    if (keys.dtype == SDX_DTYPE_NONE || keys.count != values.count)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "LabelEncoder: %lld keys and %lld values",
                        (long long)keys.count, (long long)values.count);
    if (keys.dtype != px->in[0]->dtype || values.dtype != px->out[0]->dtype)
        return SDX_FAIL(px->cx, SDX_BAD_INPUT, "LabelEncoder: keys are %s, the input is %s",
                        sdx_dtype_name(keys.dtype), sdx_dtype_name(px->in[0]->dtype));
    SDX_TRY(set_keys(px, p, &keys));
    SDX_TRY(set_values(px, p, &values));
    return add_mapper(px, p);
}

static enum sdx_status infer_label(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, values_of(ix->node).dtype);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    return dims ? sdx_infer_set_dims(ix, 0, sdx_infer_rank(ix, 0), dims) : SDX_OK;
}

/* Texts to numbers or numbers to texts over two lists; numbers NULL: the positions. */
static enum sdx_status prepare_two_lists(struct sdx_prepare *px, const struct sdx_str *texts,
                                         const int64_t *numbers, int64_t count)
{
    struct mapper *p = SDX_PREPARE_NEW(px, struct mapper);
    if (!p) return px->cx->error.status;
    p->count = count;
    if (px->in[0]->dtype != SDX_STRING) {
        p->texts = texts;
        p->text_otherwise = sdx_ir_attr_str(px->node, "default_string", "_Unused");
        p->by_position = !numbers;
        if (numbers) SDX_TRY(sdx_lookup_ints(px, &p->table, numbers, count));
        return add_mapper(px, p);
    }
    int64_t *values = sdx_prepare_alloc(px, ((size_t)count + 1) * sizeof *values);
    if (!values) return px->cx->error.status;
    for (int64_t i = 0; i < count; i++)
        values[i] = numbers ? numbers[i] : i;
    values[count] = sdx_ir_attr_int(px->node, "default_int64", -1);
    p->values = values;
    SDX_TRY(sdx_lookup_texts(px, &p->table, texts, count));
    return add_mapper(px, p);
}

static enum sdx_status prepare_label_old(struct sdx_prepare *px)
{
    int64_t count = 0;
    const struct sdx_str *texts = sdx_ir_attr_strings(px->node, "classes_strings", &count);
    if (!texts) return SDX_FAIL(px->cx, SDX_BAD_MODEL, "LabelEncoder: no classes_strings");
    return prepare_two_lists(px, texts, NULL, count);
}

static enum sdx_status prepare_category(struct sdx_prepare *px)
{
    int64_t texts_count = 0, count = 0;
    const struct sdx_str *texts = sdx_ir_attr_strings(px->node, "cats_strings", &texts_count);
    const int64_t *numbers = sdx_ir_attr_ints(px->node, "cats_int64s", &count);
    if (!texts || !numbers || texts_count != count)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "CategoryMapper: %lld strings and %lld integers",
                        (long long)texts_count, (long long)count);
    return prepare_two_lists(px, texts, numbers, count);
}

static enum sdx_status infer_text_or_int(struct sdx_infer *ix)
{
    int dtype = sdx_infer_dtype(ix, 0);
    if (dtype != SDX_DTYPE_NONE)
        sdx_infer_set_dtype(ix, 0, dtype == SDX_STRING ? SDX_I64 : SDX_STRING);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    return dims ? sdx_infer_set_dims(ix, 0, sdx_infer_rank(ix, 0), dims) : SDX_OK;
}

/* ---- FeatureVectorizer: rows of all inputs side by side, each cut or filled to its width ---- */

static enum sdx_status run_features(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    const int64_t *widths = step->params;
    float *y = step->out[0]->data;
    int64_t rows = step->out[0]->dims[0], columns = step->out[0]->dims[1], at = 0;
    for (int k = 0; k < step->count_in; k++) {
        const struct sdx_tensor *in = step->in[k];
        int64_t width = in->dims[in->rank - 1];
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < widths[k]; j++)
                y[i * columns + at + j] =
                    j < width ? (float)sdx_load_f64(in->dtype, in->data, i * width + j) : 0;
        at += widths[k];
    }
    return SDX_OK;
}

static enum sdx_status prepare_features(struct sdx_prepare *px)
{
    int64_t count = 0, total = 0;
    const int64_t *given = sdx_ir_attr_ints(px->node, "inputdimensions", &count);
    int64_t *widths = sdx_prepare_alloc(px, (size_t)(px->count_in + 1) * sizeof *widths);
    if (!widths) return px->cx->error.status;
    for (int k = 0; k < px->count_in; k++) {
        const struct sdx_tensor *in = px->in[k];
        int64_t rows = in->rank == 2 ? in->dims[0] : 1;
        if (in->rank < 1 || in->rank > 2 || rows != px->out[0]->dims[0])
            return SDX_FAIL(px->cx, SDX_BAD_INPUT, "FeatureVectorizer: input %d does not fit", k);
        widths[k] = given && k < count ? given[k] : in->dims[in->rank - 1];
        total += widths[k];
    }
    if (total != px->out[0]->dims[1])
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "FeatureVectorizer: %lld columns, expected %lld",
                        (long long)total, (long long)px->out[0]->dims[1]);
    return sdx_prepare_step(px, "FeatureVectorizer", run_features, widths, 1, 0);
}

static enum sdx_status infer_features(struct sdx_infer *ix)
{
    int64_t count = 0, dims[2] = {-1, 0};
    const int64_t *given = sdx_ir_attr_ints(ix->node, "inputdimensions", &count);
    for (int k = 0; k < ix->count_in; k++) {
        const int64_t *in = sdx_infer_dims(ix, k);
        int rank = sdx_infer_rank(ix, k);
        int64_t width = given && k < count ? given[k] : in && rank > 0 ? in[rank - 1] : -1;
        if (given && k < count && (width < 0 || width > INT32_MAX))
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "FeatureVectorizer: inputdimensions[%d] is %lld",
                            k, (long long)width);
        dims[1] = width < 0 || dims[1] < 0 ? -1 : dims[1] + width;
        if (in) dims[0] = rank == 2 ? (in[0] >= 0 || dims[0] == -1 ? in[0] : dims[0]) : 1;
    }
    sdx_infer_set_dtype(ix, 0, SDX_F32);
    return sdx_infer_set_dims(ix, 0, 2, dims);
}

/* ---- ArrayFeatureExtractor: columns of the last axis ---- */

/* y[i, j] = x[i, at[j]]; x: [rows, length], y: [rows, n] */
#define EXTRACT(T)                                                                                 \
    static void extract_##T(const T *x, int64_t rows, int64_t length, const int64_t *at,           \
                            int64_t n, T *y)                                                       \
    {                                                                                              \
        for (const T *end = x + rows * length; x < end; x += length, y += n)                       \
            for (int64_t j = 0; j < n; j++)                                                        \
                y[j] = x[at[j]];                                                                   \
    }
EXTRACT(uint32_t)
EXTRACT(uint64_t)

static enum sdx_status run_extract(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_tensor *in = step->in[0], *index = step->in[1];
    struct sdx_tensor *out = step->out[0];
    int64_t length = in->rank ? in->dims[in->rank - 1] : 1, n = index->count;
    int64_t rows = length ? in->count / length : 0;
    const int64_t *at = index->data;
    size_t size = (size_t)sdx_dtype_bits(in->dtype) / 8;
    char *to = out->dtype == SDX_STRING ? x->scratch : out->data;
    for (int64_t j = 0; j < n; j++)
        if (at[j] < 0 || at[j] >= length)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "ArrayFeatureExtractor: index %lld of %lld",
                            (long long)at[j], (long long)length);
    if (size == 4) extract_uint32_t(in->data, rows, length, at, n, (uint32_t *)(void *)to);
    if (size == 8) extract_uint64_t(in->data, rows, length, at, n, (uint64_t *)(void *)to);
    for (int64_t i = 0; size != 4 && size != 8 && i < rows; i++)
        for (int64_t j = 0; j < n; j++)
            memcpy(to + (size_t)(i * n + j) * size,
                   (const char *)in->data + (size_t)(i * length + at[j]) * size, size);
    if (out->dtype != SDX_STRING) return SDX_OK;
    return sdx_exec_output_strings(x, step, 0, out->rank, out->dims, x->scratch);
}

static enum sdx_status prepare_extract(struct sdx_prepare *px)
{
    size_t scratch = 0;
    if (px->out[0]->dtype == SDX_STRING)
        scratch = (size_t)px->out[0]->count * sizeof(struct sdx_str);
    return sdx_prepare_step(px, "ArrayFeatureExtractor", run_extract, NULL, 1, scratch);
}

static enum sdx_status infer_extract(struct sdx_infer *ix)
{
    const int64_t *dims = sdx_infer_dims(ix, 0), *index = sdx_infer_dims(ix, 1);
    int rank = sdx_infer_rank(ix, 0), rank_index = sdx_infer_rank(ix, 1);
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (!dims) return SDX_OK;
    int64_t count = index ? 1 : -1;
    for (int d = 0; index && d < rank_index; d++)
        if (count == 1)
            count = index[d]; /* may be a symbol */
        else if (index[d] != 1)
            count = index[d] < 0 || count < 0 ? -1 : count * index[d];
    int64_t *result = sdx_infer_new_dims(ix, 0, rank > 1 ? rank : 2);
    if (!result) return ix->cx->error.status;
    result[0] = 1;
    for (int d = 0; d < rank - 1; d++)
        result[d] = dims[d];
    result[rank > 1 ? rank - 1 : 1] = count;
    return SDX_OK;
}

static const struct sdx_op ops[] = {
    {"OneHotEncoder", 1, 0, infer_one_hot, KERNEL(prepare_one_hot)},
    {"LabelEncoder", 1, 1, infer_text_or_int, KERNEL(prepare_label_old)},
    {"LabelEncoder", 2, 0, infer_label, KERNEL(prepare_label)},
    {"CategoryMapper", 1, 0, infer_text_or_int, KERNEL(prepare_category)},
    {"FeatureVectorizer", 1, 0, infer_features, KERNEL(prepare_features)},
    {"ArrayFeatureExtractor", 1, 0, infer_extract, KERNEL(prepare_extract)},
    {"DictVectorizer", 1, 0, sdx_map_infer_vector, KERNEL(sdx_map_prepare_vector)},
    {"ZipMap", 1, 0, sdx_map_infer_zip, KERNEL(sdx_map_prepare_zip), .flags = SDX_OP_DYNAMIC},
    {"CastMap", 1, 0, sdx_map_infer_cast, KERNEL(sdx_map_prepare_cast), .flags = SDX_OP_DYNAMIC},
};
const struct sdx_op_family sdx_ops_ml_encode = FAMILY("ai.onnx.ml", ops);
