/* SPDX-License-Identifier: Apache-2.0
 * Attributes of operators. */
#include "ort_opattr.h"

#include <stdlib.h>
#include <string.h>

void ort_attr_free(OrtOpAttr *attr)
{
    if (!attr) return;
    for (size_t i = 0; attr->texts && i < attr->count; i++)
        free(attr->texts[i].text);
    ort_value_release(attr->tensor);
    free(attr->texts);
    free(attr->ints);
    free(attr->floats);
    free(attr->name);
    free(attr);
}

/* A copy of `size` bytes with a NUL behind; NULL: no memory. */
static void *copy_of(const void *data, size_t size)
{
    unsigned char *copy = malloc(size + 1);
    if (!copy) return NULL;
    if (size) memcpy(copy, data, size);
    copy[size] = 0;
    return copy;
}

static bool set_texts(OrtOpAttr *attr, const char *const *texts, const size_t *lengths)
{
    attr->texts = calloc(attr->count + 1, sizeof *attr->texts);
    for (size_t i = 0; attr->texts && i < attr->count; i++) {
        const size_t length = lengths ? lengths[i] : strlen(texts[i]);
        attr->texts[i] = (struct ort_text){.text = copy_of(texts[i], length), .length = length};
        if (!attr->texts[i].text) return false;
    }
    return attr->texts != NULL;
}

/* The elements; `type` is one that programs can give. */
static bool set_data(OrtOpAttr *attr, const void *data)
{
    switch (attr->type) {
    case ORT_OP_ATTR_INT:
    case ORT_OP_ATTR_INTS:
        attr->ints = copy_of(data, attr->count * sizeof *attr->ints);
        return attr->ints != NULL;
    case ORT_OP_ATTR_FLOAT:
    case ORT_OP_ATTR_FLOATS:
        attr->floats = copy_of(data, attr->count * sizeof *attr->floats);
        return attr->floats != NULL;
    case ORT_OP_ATTR_STRING: return set_texts(attr, &(const char *){data}, NULL);
    default: return set_texts(attr, data, NULL);
    }
}

OrtStatusPtr ort_attr_create(const char *name, const void *data, int count, OrtOpAttrType type,
                             OrtOpAttr **out)
{
    *out = NULL;
    if (type < ORT_OP_ATTR_INT || type > ORT_OP_ATTR_STRINGS)
        return ort_fail(ORT_FAIL, "Attribute type not supported yet.");
    const bool is_list =
        type == ORT_OP_ATTR_INTS || type == ORT_OP_ATTR_FLOATS || type == ORT_OP_ATTR_STRINGS;
    OrtOpAttr *attr = calloc(1, sizeof *attr);
    if (!attr) return ort_no_memory();
    attr->type = type;
    attr->count = is_list ? (count > 0 ? (size_t)count : 0) : 1;
    attr->name = strdup(name);
    if (!attr->name || !set_data(attr, data)) {
        ort_attr_free(attr);
        return ort_no_memory();
    }
    *out = attr;
    return NULL;
}

OrtStatusPtr ort_attr_copy(const OrtOpAttr *from, OrtOpAttr **out)
{
    OrtOpAttr *attr = calloc(1, sizeof *attr);
    *out = NULL;
    if (!attr) return ort_no_memory();
    attr->type = from->type;
    attr->count = from->count;
    attr->name = strdup(from->name);
    bool copied = attr->name != NULL;
    if (from->ints)
        copied &= (attr->ints = copy_of(from->ints, from->count * sizeof *from->ints)) != NULL;
    if (from->floats)
        copied &=
            (attr->floats = copy_of(from->floats, from->count * sizeof *from->floats)) != NULL;
    if (from->texts) attr->texts = calloc(from->count + 1, sizeof *attr->texts);
    copied &= !from->texts || attr->texts;
    for (size_t i = 0; attr->texts && i < from->count; i++) {
        attr->texts[i].length = from->texts[i].length;
        attr->texts[i].text = copy_of(from->texts[i].text, from->texts[i].length);
        copied &= attr->texts[i].text != NULL;
    }
    if (from->tensor) attr->tensor = ort_value_retain(from->tensor);
    if (!copied) {
        ort_attr_free(attr);
        return ort_no_memory();
    }
    *out = attr;
    return NULL;
}

/* The tensor stays the engine's: whoever has the attribute lives no longer than the node. */
static OrtStatusPtr view_tensor(const sdx_tensor *tensor, OrtValue **out)
{
    return ort_value_item(NULL, (sdx_tensor *)(uintptr_t)tensor, out);
}

OrtStatusPtr ort_attr_of(const sdx_attr *from, OrtOpAttr **out)
{
    static const OrtOpAttrType types[] = {
        [SDX_ATTR_FLOAT] = ORT_OP_ATTR_FLOAT,   [SDX_ATTR_INT] = ORT_OP_ATTR_INT,
        [SDX_ATTR_STRING] = ORT_OP_ATTR_STRING, [SDX_ATTR_TENSOR] = ORT_OP_ATTR_TENSOR,
        [SDX_ATTR_GRAPH] = ORT_OP_ATTR_GRAPH,   [SDX_ATTR_FLOATS] = ORT_OP_ATTR_FLOATS,
        [SDX_ATTR_INTS] = ORT_OP_ATTR_INTS,     [SDX_ATTR_STRINGS] = ORT_OP_ATTR_STRINGS,
    };
    OrtOpAttr *attr = calloc(1, sizeof *attr);
    *out = NULL;
    if (!attr) return ort_no_memory();
    if ((size_t)from->type < sizeof types / sizeof types[0]) attr->type = types[from->type];
    attr->name = strdup(from->name);
    bool copied = attr->name != NULL;
    OrtStatusPtr failed = NULL;
    switch (attr->type) {
    case ORT_OP_ATTR_INT:
    case ORT_OP_ATTR_INTS:
        attr->count = attr->type == ORT_OP_ATTR_INT ? 1 : (size_t)from->count;
        attr->ints = copy_of(attr->type == ORT_OP_ATTR_INT ? &from->i : from->ints,
                             attr->count * sizeof *attr->ints);
        copied &= attr->ints != NULL;
        break;
    case ORT_OP_ATTR_FLOAT:
    case ORT_OP_ATTR_FLOATS:
        attr->count = attr->type == ORT_OP_ATTR_FLOAT ? 1 : (size_t)from->count;
        attr->floats = copy_of(attr->type == ORT_OP_ATTR_FLOAT ? &from->f : from->floats,
                               attr->count * sizeof *attr->floats);
        copied &= attr->floats != NULL;
        break;
    case ORT_OP_ATTR_STRING:
    case ORT_OP_ATTR_STRINGS:
        attr->count = (size_t)from->count;
        copied &= set_texts(attr, from->strings, from->lengths);
        break;
    case ORT_OP_ATTR_TENSOR: failed = view_tensor(from->tensors[0], &attr->tensor); break;
    default: break;
    }
    if (!copied && !failed) failed = ort_no_memory();
    if (failed)
        ort_attr_free(attr);
    else
        *out = attr;
    return failed;
}

/* AttributeProto: name 1, f 2, i 3, s 4, floats 7, ints 8, strings 9, type 20. */
void ort_attr_write(struct ort_bytes *node, const OrtOpAttr *attr)
{
    static const int numbers[] = {
        [ORT_OP_ATTR_INT] = SDX_ATTR_INT,       [ORT_OP_ATTR_INTS] = SDX_ATTR_INTS,
        [ORT_OP_ATTR_FLOAT] = SDX_ATTR_FLOAT,   [ORT_OP_ATTR_FLOATS] = SDX_ATTR_FLOATS,
        [ORT_OP_ATTR_STRING] = SDX_ATTR_STRING, [ORT_OP_ATTR_STRINGS] = SDX_ATTR_STRINGS,
    };
    struct ort_bytes message = {0};
    ort_pb_text(&message, 1, attr->name);
    for (size_t i = 0; i < attr->count; i++) {
        if (attr->ints) ort_pb_int(&message, attr->type == ORT_OP_ATTR_INT ? 3 : 8, attr->ints[i]);
        if (attr->floats)
            ort_pb_float(&message, attr->type == ORT_OP_ATTR_FLOAT ? 2 : 7, attr->floats[i]);
        if (attr->texts)
            ort_pb_bytes(&message, attr->type == ORT_OP_ATTR_STRING ? 4 : 9, attr->texts[i].text,
                         attr->texts[i].length);
    }
    ort_pb_int(&message, 20, numbers[attr->type]);
    ort_pb_message(node, 5, &message);
    ort_bytes_deinit(&message);
}

/* ---- the functions of the table ---- */

static OrtStatusPtr create_op_attr(const char *name, const void *data, int count,
                                   OrtOpAttrType type, OrtOpAttr **out)
{
    return ort_attr_create(name, data, count, type, out);
}

static OrtStatusPtr get_op_attr_type(const OrtOpAttr *attr, OrtOpAttrType *out)
{
    *out = attr->type;
    return NULL;
}

static OrtStatusPtr get_op_attr_name(const OrtOpAttr *attr, const char **out)
{
    *out = attr->name;
    return NULL;
}

static OrtStatusPtr get_op_attr_tensor(const OrtOpAttr *attr, OrtValue **out)
{
    *out = NULL;
    if (attr->type != ORT_OP_ATTR_TENSOR)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "This OrtOpAttr instance is not a 'TENSOR' attribute");
    *out = ort_value_retain(attr->tensor);
    return NULL;
}

/* Copies `size` bytes where there is room. *out is what is needed in any case. */
static OrtStatusPtr read_bytes(const void *from, size_t size, void *data, size_t length,
                               size_t *out, const char *what)
{
    *out = size;
    if (length < size || (size > 0 && !data))
        return ort_fail(ORT_INVALID_ARGUMENT, "Size of data not large enough to hold %s.", what);
    if (size > 0) memcpy(data, from, size);
    return NULL;
}

static OrtStatusPtr read_texts(const OrtOpAttr *attr, char *data, size_t length, size_t *out)
{
    size_t size = 0;
    for (size_t i = 0; i < attr->count; i++)
        size += attr->texts[i].length + 1;
    *out = size;
    if (length < size || (size > 0 && !data))
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "Size of data not large enough to hold the array of strings.");
    for (size_t i = 0, at = 0; i < attr->count; at += attr->texts[i++].length + 1)
        memcpy(data + at, attr->texts[i].text, attr->texts[i].length + 1);
    return NULL;
}

/* Asked for a list, an attribute of another kind is an empty one. */
static OrtStatusPtr read_op_attr(const OrtOpAttr *attr, OrtOpAttrType type, void *data,
                                 size_t length, size_t *out)
{
    const bool same = attr->type == type;
    switch (type) {
    case ORT_OP_ATTR_INT:
        if (!same) return ort_fail(ORT_INVALID_ARGUMENT, "Attribute has no int64 value.");
        return read_bytes(attr->ints, sizeof *attr->ints, data, length, out, "an int64");
    case ORT_OP_ATTR_INTS:
        return read_bytes(attr->ints, same ? attr->count * sizeof *attr->ints : 0, data, length,
                          out, "the array of int64");
    case ORT_OP_ATTR_FLOAT:
        if (!same) return ort_fail(ORT_INVALID_ARGUMENT, "Attribute has no float value.");
        return read_bytes(attr->floats, sizeof *attr->floats, data, length, out, "a float");
    case ORT_OP_ATTR_FLOATS:
        return read_bytes(attr->floats, same ? attr->count * sizeof *attr->floats : 0, data, length,
                          out, "the array of floats");
    case ORT_OP_ATTR_STRING:
        if (!same) return ort_fail(ORT_INVALID_ARGUMENT, "Attribute has no string value.");
        return read_bytes(attr->texts[0].text, attr->texts[0].length, data, length, out,
                          "the string");
    case ORT_OP_ATTR_STRINGS:
        if (same) return read_texts(attr, data, length, out);
        return read_bytes(NULL, 0, data, length, out, "the array of strings");
    default: return ort_fail(ORT_INVALID_ARGUMENT, "Unexpected attribute type.");
    }
}

void ort_fill_opattr(OrtApi *api)
{
    api->CreateOpAttr = create_op_attr;
    api->ReleaseOpAttr = ort_attr_free;
    api->ReadOpAttr = read_op_attr;
    api->OpAttr_GetType = get_op_attr_type;
    api->OpAttr_GetName = get_op_attr_name;
    api->OpAttr_GetTensorAttributeAsOrtValue = get_op_attr_tensor;
}
