/* SPDX-License-Identifier: Apache-2.0
 * What kernels of custom operators ask of their node: attributes, names, types, constants. */
#include "ort_customop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

OrtStatusPtr ort_kernel_info_create(const sdx_node *node, struct ort_custom_table *table,
                                    OrtKernelInfo **out)
{
    OrtKernelInfo *info = calloc(1, sizeof *info);
    *out = NULL;
    if (!info) return ort_no_memory();
    atomic_init(&info->refs, 1);
    info->node = node;
    info->table = table;
    info->constants = calloc((size_t)sdx_node_count_inputs(node) + 1, sizeof(OrtValue *));
    if (!info->constants) {
        free(info);
        return ort_no_memory();
    }
    for (int i = 0; i < sdx_node_count_inputs(node); i++) {
        sdx_tensor *value = (sdx_tensor *)(uintptr_t)sdx_node_value(node, i);
        OrtStatusPtr failed = value ? ort_value_item(NULL, value, &info->constants[i]) : NULL;
        if (!failed) continue;
        ort_kernel_info_release(info);
        return failed;
    }
    *out = info;
    return NULL;
}

/* The node may be gone when the last one lets go: what is kept does not need it. */
void ort_kernel_info_release(OrtKernelInfo *info)
{
    if (!info || atomic_fetch_sub(&info->refs, 1) > 1) return;
    free(info->constants);
    free(info);
}

OrtStatusPtr ort_give_text(const char *from, char *text, size_t *size, const char *error)
{
    const size_t room = *size, need = strlen(from) + 1;
    *size = need;
    if (!text) return NULL;
    if (room < need) return ort_status(ORT_INVALID_ARGUMENT, error);
    memcpy(text, from, need);
    return NULL;
}

/* ---- attributes ---- */

static OrtStatusPtr find_attr(const OrtKernelInfo *info, const char *name, sdx_attr_type type,
                              const sdx_attr **out)
{
    *out = sdx_node_attr(info->node, name);
    if (!*out) return ort_fail(ORT_FAIL, "No attribute with name:'%s'is defined.", name);
    if ((*out)->type != type) return ort_fail(ORT_FAIL, "Attribute name and type don't match");
    return NULL;
}

/* The same of a list, which has another text. */
static OrtStatusPtr find_list(const OrtKernelInfo *info, const char *name, sdx_attr_type type,
                              const sdx_attr **out)
{
    *out = sdx_node_attr(info->node, name);
    if (*out && (*out)->type == type) return NULL;
    return ort_fail(ORT_FAIL, "No attribute with this name is defined.");
}

static OrtStatusPtr get_float(const OrtKernelInfo *info, const char *name, float *out)
{
    const sdx_attr *attr = NULL;
    ORT_TRY(find_attr(info, name, SDX_ATTR_FLOAT, &attr));
    *out = attr->f;
    return NULL;
}

static OrtStatusPtr get_int64(const OrtKernelInfo *info, const char *name, int64_t *out)
{
    const sdx_attr *attr = NULL;
    ORT_TRY(find_attr(info, name, SDX_ATTR_INT, &attr));
    *out = attr->i;
    return NULL;
}

static OrtStatusPtr get_string(const OrtKernelInfo *info, const char *name, char *text,
                               size_t *size)
{
    const sdx_attr *attr = NULL;
    ORT_TRY(find_attr(info, name, SDX_ATTR_STRING, &attr));
    const size_t room = *size, need = attr->lengths[0] + 1;
    *size = need;
    if (!text) return NULL;
    if (room < need) return ort_fail(ORT_INVALID_ARGUMENT, "Result buffer is not large enough");
    memcpy(text, attr->strings[0], need);
    return NULL;
}

/* `out` NULL asks for the count. */
static OrtStatusPtr give_list(const void *from, size_t count, size_t element, void *out,
                              size_t *size)
{
    const size_t room = *size;
    *size = count;
    if (!out) return NULL;
    if (room < count) return ort_fail(ORT_INVALID_ARGUMENT, "Result buffer is not large enough");
    if (count) memcpy(out, from, count * element);
    return NULL;
}

static OrtStatusPtr get_floats(const OrtKernelInfo *info, const char *name, float *out,
                               size_t *size)
{
    const sdx_attr *attr = NULL;
    ORT_TRY(find_list(info, name, SDX_ATTR_FLOATS, &attr));
    return give_list(attr->floats, (size_t)attr->count, sizeof *out, out, size);
}

static OrtStatusPtr get_ints(const OrtKernelInfo *info, const char *name, int64_t *out,
                             size_t *size)
{
    const sdx_attr *attr = NULL;
    ORT_TRY(find_list(info, name, SDX_ATTR_INTS, &attr));
    return give_list(attr->ints, (size_t)attr->count, sizeof *out, out, size);
}

/* An array of texts, all of the allocator. */
static OrtStatusPtr get_strings(const OrtKernelInfo *info, const char *name,
                                OrtAllocator *allocator, char ***out, size_t *size)
{
    const sdx_attr *attr = NULL;
    *out = NULL;
    *size = 0;
    ORT_TRY(find_list(info, name, SDX_ATTR_STRINGS, &attr));
    if (attr->count == 0) return NULL;
    char **texts = allocator->Alloc(allocator, (size_t)attr->count * sizeof *texts);
    if (!texts) return ort_no_memory();
    for (size_t i = 0; i < (size_t)attr->count; i++) {
        OrtStatusPtr failed = ort_copy_text(allocator, attr->strings[i], &texts[i]);
        if (!failed) continue;
        while (i-- > 0)
            allocator->Free(allocator, texts[i]);
        allocator->Free(allocator, texts);
        return failed;
    }
    *out = texts;
    *size = (size_t)attr->count;
    return NULL;
}

/* A copy in memory of the allocator. */
static OrtStatusPtr get_tensor(const OrtKernelInfo *info, const char *name, OrtAllocator *allocator,
                               OrtValue **out)
{
    const sdx_attr *attr = NULL;
    *out = NULL;
    ORT_TRY(find_attr(info, name, SDX_ATTR_TENSOR, &attr));
    const sdx_tensor *from = attr->tensors[0];
    ORT_TRY(ort_value_create(allocator, sdx_tensor_dims(from), (size_t)sdx_tensor_rank(from),
                             (ONNXTensorElementDataType)sdx_tensor_dtype(from), out));
    if (sdx_tensor_dtype(from) != SDX_STRING) {
        memcpy(sdx_tensor_data(ort_value_tensor(*out)), sdx_tensor_const_data(from),
               sdx_tensor_bytes(from));
        return NULL;
    }
    const OrtApi *api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    for (int64_t i = 0; i < sdx_tensor_count(from); i++) {
        size_t length = 0;
        const char *text = sdx_tensor_string(from, i, &length);
        char *place = NULL;
        OrtStatusPtr failed =
            api->GetResizedStringTensorElementBuffer(*out, (size_t)i, length, &place);
        if (failed) {
            ort_value_release(*out);
            *out = NULL;
            return failed;
        }
        memcpy(place, text, length);
    }
    return NULL;
}

/* ---- names and types ---- */

static OrtStatusPtr get_input_count(const OrtKernelInfo *info, size_t *out)
{
    *out = (size_t)sdx_node_count_inputs(info->node);
    return NULL;
}

static OrtStatusPtr get_output_count(const OrtKernelInfo *info, size_t *out)
{
    *out = (size_t)sdx_node_count_outputs(info->node);
    return NULL;
}

static OrtStatusPtr find_value(const OrtKernelInfo *info, bool input, size_t index,
                               const sdx_value_info **out)
{
    const int count =
        input ? sdx_node_count_inputs(info->node) : sdx_node_count_outputs(info->node);
    *out = NULL;
    if (index >= (size_t)count)
        return ort_fail(ORT_INVALID_ARGUMENT, "::OrtKernelInfo %s index is out of bounds",
                        input ? "input" : "output");
    *out = input ? sdx_node_input(info->node, (int)index) : sdx_node_output(info->node, (int)index);
    return NULL;
}

static OrtStatusPtr get_input_name(const OrtKernelInfo *info, size_t index, char *text,
                                   size_t *size)
{
    const sdx_value_info *value = NULL;
    ORT_TRY(find_value(info, true, index, &value));
    return ort_give_text(value ? value->name : "", text, size,
                         "Output buffer is not large enough for ::OrtKernelInfo input name");
}

static OrtStatusPtr get_output_name(const OrtKernelInfo *info, size_t index, char *text,
                                    size_t *size)
{
    const sdx_value_info *value = NULL;
    ORT_TRY(find_value(info, false, index, &value));
    return ort_give_text(value ? value->name : "", text, size,
                         "Output buffer is not large enough for ::OrtKernelInfo output name");
}

static OrtStatusPtr give_type(const OrtKernelInfo *info, bool input, size_t index,
                              OrtTypeInfo **out)
{
    const sdx_value_info *value = NULL;
    *out = NULL;
    ORT_TRY(find_value(info, input, index, &value));
    if (!value || value->kind == SDX_KIND_NONE)
        return ort_fail(ORT_INVALID_ARGUMENT, "::OrtKernelInfo %s does not have a type",
                        input ? "input" : "output");
    return ort_type_of_info(value, out);
}

static OrtStatusPtr get_input_type(const OrtKernelInfo *info, size_t index, OrtTypeInfo **out)
{
    return give_type(info, true, index, out);
}

static OrtStatusPtr get_output_type(const OrtKernelInfo *info, size_t index, OrtTypeInfo **out)
{
    return give_type(info, false, index, out);
}

static OrtStatusPtr get_constant_input(const OrtKernelInfo *info, size_t index, int *is_constant,
                                       const OrtValue **out)
{
    const sdx_value_info *value = NULL;
    *is_constant = 0;
    *out = NULL;
    ORT_TRY(find_value(info, true, index, &value));
    *out = info->constants[index];
    *is_constant = *out != NULL;
    return NULL;
}

static OrtStatusPtr get_node_name(const OrtKernelInfo *info, char *text, size_t *size)
{
    return ort_give_text(sdx_node_name(info->node), text, size,
                         "Output buffer is not large enough for ::OrtKernelInfo node name");
}

static OrtStatusPtr get_operator_domain(const OrtKernelInfo *info, char *text, size_t *size)
{
    return ort_give_text(sdx_node_domain(info->node), text, size,
                         "Output buffer is not large enough for ::OrtKernelInfo's operator domain");
}

static OrtStatusPtr get_operator_type(const OrtKernelInfo *info, char *text, size_t *size)
{
    return ort_give_text(sdx_node_op(info->node), text, size,
                         "Output buffer is not large enough for ::OrtKernelInfo's operator type");
}

/* The version from which on the operator that serves the node is there. */
static OrtStatusPtr get_operator_since(const OrtKernelInfo *info, int *out)
{
    const struct ort_custom_table *table = info->table;
    const int opset = sdx_node_opset(info->node);
    *out = 1;
    for (size_t i = 0; i < table->count; i++) {
        const sdx_custom_op *row = &table->rows[i]->engine;
        if (!strcmp(row->name, sdx_node_op(info->node)) && row->since <= opset && row->since > *out)
            *out = row->since;
    }
    return NULL;
}

static OrtStatusPtr get_config_entries(const OrtKernelInfo *info, OrtKeyValuePairs **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? ort_pairs_copy(*out, &info->table->config) : ort_no_memory();
}

static OrtStatusPtr get_allocator(const OrtKernelInfo *info, OrtMemType type, OrtAllocator **out)
{
    (void)info, (void)type;
    *out = ort_default_allocator();
    return NULL;
}

static OrtStatusPtr copy_kernel_info(const OrtKernelInfo *info, OrtKernelInfo **out)
{
    *out = (OrtKernelInfo *)(uintptr_t)info;
    atomic_fetch_add(&(*out)->refs, 1);
    return NULL;
}

/* ---- loggers ---- */

static OrtStatusPtr get_logger(const OrtKernelInfo *info, const OrtLogger **out)
{
    *out = &info->table->logger;
    return NULL;
}

static OrtStatusPtr log_message(const OrtLogger *logger, OrtLoggingLevel level, const char *text,
                                const char *file, int line, const char *function)
{
    const char *slash = strrchr(file, '/');
    char place[256];
    snprintf(place, sizeof place, "%s:%d %s", slash ? slash + 1 : file, line, function);
    ort_log(logger, level, place, "%s", text);
    return NULL;
}

static OrtStatusPtr get_logging_level(const OrtLogger *logger, OrtLoggingLevel *out)
{
    *out = logger->level;
    return NULL;
}

void ort_fill_kernel_info(OrtApi *api)
{
    api->KernelInfoGetAttribute_float = get_float;
    api->KernelInfoGetAttribute_int64 = get_int64;
    api->KernelInfoGetAttribute_string = get_string;
    api->KernelInfoGetAttributeArray_float = get_floats;
    api->KernelInfoGetAttributeArray_int64 = get_ints;
    api->KernelInfoGetAttributeArray_string = get_strings;
    api->KernelInfoGetAttribute_tensor = get_tensor;
    api->KernelInfo_GetInputCount = get_input_count;
    api->KernelInfo_GetOutputCount = get_output_count;
    api->KernelInfo_GetInputName = get_input_name;
    api->KernelInfo_GetOutputName = get_output_name;
    api->KernelInfo_GetInputTypeInfo = get_input_type;
    api->KernelInfo_GetOutputTypeInfo = get_output_type;
    api->KernelInfoGetConstantInput_tensor = get_constant_input;
    api->KernelInfo_GetNodeName = get_node_name;
    api->KernelInfo_GetOperatorDomain = get_operator_domain;
    api->KernelInfo_GetOperatorType = get_operator_type;
    api->KernelInfo_GetOperatorSinceVersion = get_operator_since;
    api->KernelInfo_GetConfigEntries = get_config_entries;
    api->KernelInfo_GetLogger = get_logger;
    api->KernelInfoGetAllocator = get_allocator;
    api->CopyKernelInfo = copy_kernel_info;
    api->ReleaseKernelInfo = ort_kernel_info_release;
    api->Logger_LogMessage = log_message;
    api->Logger_GetLoggingSeverityLevel = get_logging_level;
}
