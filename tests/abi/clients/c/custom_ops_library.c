/* SPDX-License-Identifier: Apache-2.0
 * A library with custom operators, as programs bring them: `libcustom_ops.so` exports
 * RegisterCustomOps. The operators say on stdout what the library tells them.
 *
 *     my.ops Scale(x, bias?) -> y    y = x * factor + offset of attributes, + bias; shapes inferred
 *     my.ops Join(x...) -> y, count  sums variadic inputs of one shape; count of them as int64
 *     my.ops Any(x) -> y             a copy, of whatever type
 *     my.ops Shout(text) -> text     strings with '!' behind
 *     my.ops Fails(x) -> y           fails with a status
 *     my.ops Composed(x) -> y        Neg, then Add of itself, through CreateOp and InvokeOp */
#include <sardonyx/ort.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const OrtApi *api;

static void tell(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void tell(const char *name, const char *format, ...)
{
    va_list arguments;
    printf("%s | ", name);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout); /* whole lines between those of a host that does not write through stdio */
}

static bool well(const char *name, OrtStatus *status)
{
    if (!status) return true;
    tell(name, "code=%d %s", (int)api->GetErrorCode(status), api->GetErrorMessage(status));
    api->ReleaseStatus(status);
    return false;
}

/* ---- what all operators share ---- */

static const char *provider(const OrtCustomOp *op)
{
    (void)op;
    return NULL;
}

static OrtMemType memory(const OrtCustomOp *op, size_t index)
{
    (void)op, (void)index;
    return OrtMemTypeDefault;
}

static int one(const OrtCustomOp *op)
{
    (void)op;
    return 1;
}

static size_t one_value(const OrtCustomOp *op)
{
    (void)op;
    return 1;
}

static OrtCustomOpInputOutputCharacteristic required(const OrtCustomOp *op, size_t index)
{
    (void)op, (void)index;
    return INPUT_OUTPUT_REQUIRED;
}

static ONNXTensorElementDataType of_floats(const OrtCustomOp *op, size_t index)
{
    (void)op, (void)index;
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
}

static ONNXTensorElementDataType of_any(const OrtCustomOp *op, size_t index)
{
    (void)op, (void)index;
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

/* The elements, shape and number of elements of a tensor. */
struct view {
    const void *data;
    int64_t dims[8];
    size_t rank, count;
    ONNXTensorElementDataType type;
};

static OrtStatus *look(const OrtValue *value, struct view *out)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    OrtStatus *failed = api->GetTensorTypeAndShape(value, &info);
    if (!failed) failed = api->GetDimensionsCount(info, &out->rank);
    if (!failed) failed = api->GetDimensions(info, out->dims, out->rank);
    if (!failed) failed = api->GetTensorShapeElementCount(info, &out->count);
    if (!failed) failed = api->GetTensorElementType(info, &out->type);
    if (!failed && out->type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
        failed = api->GetTensorMutableData((OrtValue *)value, (void **)&out->data);
    if (info) api->ReleaseTensorTypeAndShapeInfo(info);
    return failed;
}

/* ---- Scale ---- */

struct scale {
    float factor, offset;
};

static const char *scale_name(const OrtCustomOp *op)
{
    (void)op;
    return "Scale";
}

static size_t two_values(const OrtCustomOp *op)
{
    (void)op;
    return 2;
}

static OrtCustomOpInputOutputCharacteristic scale_input(const OrtCustomOp *op, size_t index)
{
    (void)op;
    return index == 0 ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
}

/* Prints what a text of the node is: the size first, then with room, then with too little. */
static void tell_text(const char *name, const OrtKernelInfo *info,
                      OrtStatus *(*get)(const OrtKernelInfo *info, char *text, size_t *size))
{
    char text[64] = "unset", few[2];
    size_t size = 0, room = sizeof text, little = sizeof few;
    if (!well(name, get(info, NULL, &size))) return;
    if (well(name, get(info, text, &room))) tell(name, "%zu %zu %s", size, room, text);
    (void)well(name, get(info, few, &little));
    tell(name, "needs %zu", little);
}

static OrtStatus *mode(const OrtKernelInfo *info, char *text, size_t *size)
{
    return api->KernelInfoGetAttribute_string(info, "mode", text, size);
}

static OrtStatus *input_0(const OrtKernelInfo *info, char *text, size_t *size)
{
    return api->KernelInfo_GetInputName(info, 0, text, size);
}

static OrtStatus *output_0(const OrtKernelInfo *info, char *text, size_t *size)
{
    return api->KernelInfo_GetOutputName(info, 0, text, size);
}

static OrtStatus *output_9(const OrtKernelInfo *info, char *text, size_t *size)
{
    return api->KernelInfo_GetOutputName(info, 9, text, size);
}

static void tell_lists(const OrtKernelInfo *info)
{
    float floats[4] = {0};
    int64_t ints[4] = {0};
    size_t count = 0;
    (void)well("scale.floats",
               api->KernelInfoGetAttributeArray_float(info, "floats", NULL, &count));
    tell("scale.floats", "%zu", count);
    count = 1;
    (void)well("scale.floats",
               api->KernelInfoGetAttributeArray_float(info, "floats", floats, &count));
    tell("scale.floats", "%zu", count);
    count = 4;
    if (well("scale.floats",
             api->KernelInfoGetAttributeArray_float(info, "floats", floats, &count)))
        tell("scale.floats", "%zu: %g %g", count, (double)floats[0], (double)floats[1]);
    count = 4;
    if (well("scale.ints", api->KernelInfoGetAttributeArray_int64(info, "ints", ints, &count)))
        tell("scale.ints", "%zu: %" PRId64 " %" PRId64 " %" PRId64, count, ints[0], ints[1],
             ints[2]);
    count = 4;
    (void)well("scale.no_ints", api->KernelInfoGetAttributeArray_int64(info, "none", ints, &count));
    OrtAllocator *allocator = NULL;
    char **texts = NULL;
    if (!well("scale.allocator", api->KernelInfoGetAllocator(info, OrtMemTypeDefault, &allocator)))
        return;
    if (well("scale.texts",
             api->KernelInfoGetAttributeArray_string(info, "texts", allocator, &texts, &count))) {
        tell("scale.texts", "%zu: %s %s", count, texts[0], texts[1]);
        for (size_t i = 0; i < count; i++)
            allocator->Free(allocator, texts[i]);
        allocator->Free(allocator, texts);
    }
    OrtValue *tensor = NULL;
    struct view seen = {0};
    if (well("scale.tensor",
             api->KernelInfoGetAttribute_tensor(info, "table", allocator, &tensor)) &&
        well("scale.tensor", look(tensor, &seen)))
        tell("scale.tensor", "%zu %g %g", seen.count, (double)((const float *)seen.data)[0],
             (double)((const float *)seen.data)[1]);
    api->ReleaseValue(tensor);
    (void)well("scale.no_tensor",
               api->KernelInfoGetAttribute_tensor(info, "none", allocator, &tensor));
}

static void tell_types(const OrtKernelInfo *info)
{
    OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *shape = NULL;
    ONNXTensorElementDataType of = 0;
    size_t rank = 9, inputs = 0, outputs = 0;
    int is_constant = 9, since = 0;
    const OrtValue *constant = NULL;
    if (well("scale.count", api->KernelInfo_GetInputCount(info, &inputs)) &&
        well("scale.count", api->KernelInfo_GetOutputCount(info, &outputs)))
        tell("scale.count", "%zu %zu", inputs, outputs);
    if (well("scale.type", api->KernelInfo_GetInputTypeInfo(info, 0, &type)) &&
        well("scale.type", api->CastTypeInfoToTensorInfo(type, &shape)) &&
        well("scale.type", api->GetTensorElementType(shape, &of)) &&
        well("scale.type", api->GetDimensionsCount(shape, &rank)))
        tell("scale.type", "%d rank %zu", (int)of, rank);
    if (type) api->ReleaseTypeInfo(type);
    if (well("scale.out_type", api->KernelInfo_GetOutputTypeInfo(info, 0, &type)) &&
        well("scale.out_type", api->CastTypeInfoToTensorInfo(type, &shape)) &&
        well("scale.out_type", api->GetTensorElementType(shape, &of)) &&
        well("scale.out_type", api->GetDimensionsCount(shape, &rank)))
        tell("scale.out_type", "%d rank %zu", (int)of, rank);
    if (type) api->ReleaseTypeInfo(type);
    (void)well("scale.no_type", api->KernelInfo_GetInputTypeInfo(info, 9, &type));
    for (size_t i = 0; i < inputs; i++)
        if (well("scale.constant",
                 api->KernelInfoGetConstantInput_tensor(info, i, &is_constant, &constant)))
            tell("scale.constant", "%d %s", is_constant, constant ? "there" : "NULL");
    if (well("scale.since", api->KernelInfo_GetOperatorSinceVersion(info, &since)))
        tell("scale.since", "%d", since);
}

static OrtStatus *scale_create(const OrtCustomOp *op, const OrtApi *given,
                               const OrtKernelInfo *info, void **kernel)
{
    (void)op;
    float number = 0;
    int64_t whole = 0;
    struct scale *scale = calloc(1, sizeof *scale);
    *kernel = scale;
    if (given != api) tell("scale.api", "another table");
    (void)well("scale.factor", api->KernelInfoGetAttribute_float(info, "factor", &scale->factor));
    if (well("scale.offset", api->KernelInfoGetAttribute_int64(info, "offset", &whole)))
        scale->offset = (float)whole;
    (void)well("scale.absent", api->KernelInfoGetAttribute_float(info, "absent", &number));
    (void)well("scale.other_type", api->KernelInfoGetAttribute_float(info, "offset", &number));
    tell_text("scale.mode", info, mode);
    tell_text("scale.node", info, api->KernelInfo_GetNodeName);
    tell_text("scale.input", info, input_0);
    tell_text("scale.output", info, output_0);
    tell_text("scale.no_output", info, output_9);
    tell_text("scale.domain", info, api->KernelInfo_GetOperatorDomain);
    tell_text("scale.operator", info, api->KernelInfo_GetOperatorType);
    tell_lists(info);
    tell_types(info);
    OrtKernelInfo *copy = NULL;
    if (well("scale.copy", api->CopyKernelInfo(info, &copy))) {
        tell_text("scale.copy", copy, api->KernelInfo_GetNodeName);
        api->ReleaseKernelInfo(copy);
    }
    OrtKeyValuePairs *config = NULL;
    if (well("scale.config", api->KernelInfo_GetConfigEntries(info, &config))) {
        const char *mine = api->GetKeyValue(config, "my.entry");
        tell("scale.config", "%s", mine ? mine : "NULL");
        api->ReleaseKeyValuePairs(config);
    }
    const OrtLogger *logger = NULL;
    OrtLoggingLevel level = ORT_LOGGING_LEVEL_VERBOSE;
    if (well("scale.logger", api->KernelInfo_GetLogger(info, &logger)) &&
        well("scale.logger", api->Logger_GetLoggingSeverityLevel(logger, &level)))
        tell("scale.logger", "%d", (int)level);
    return NULL;
}

struct part {
    const float *from, *bias;
    float *to;
    const struct scale *scale;
};

static void scale_part(void *data, size_t i)
{
    const struct part *part = data;
    part->to[i] = part->from[i] * part->scale->factor + part->scale->offset +
                  (part->bias ? part->bias[i] : 0);
}

static OrtStatus *scale_compute(void *kernel, OrtKernelContext *context)
{
    const OrtValue *x = NULL, *bias = NULL;
    OrtValue *y = NULL;
    struct view in = {0}, more = {0};
    float *out = NULL;
    size_t inputs = 0, outputs = 0;
    void *stream = &in, *scratch = NULL;
    OrtAllocator *allocator = NULL;
    OrtMemoryInfo *cpu = NULL;
    OrtStatus *failed = api->KernelContext_GetInputCount(context, &inputs);
    if (!failed) failed = api->KernelContext_GetOutputCount(context, &outputs);
    if (!failed) failed = api->KernelContext_GetInput(context, 0, &x);
    if (!failed && inputs > 1) failed = api->KernelContext_GetInput(context, 1, &bias);
    if (!failed) failed = look(x, &in);
    if (!failed && bias) failed = look(bias, &more);
    if (!failed) failed = api->KernelContext_GetOutput(context, 0, in.dims, in.rank, &y);
    if (!failed) failed = api->GetTensorMutableData(y, (void **)&out);
    if (!failed) failed = api->KernelContext_GetGPUComputeStream(context, &stream);
    if (!failed) failed = api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &cpu);
    if (!failed) failed = api->KernelContext_GetAllocator(context, cpu, &allocator);
    if (!failed) failed = api->KernelContext_GetScratchBuffer(context, cpu, 1000, &scratch);
    if (failed) return failed;
    memset(scratch, 1, 1000);
    tell("scale.run", "%zu inputs %zu outputs%s stream %s", inputs, outputs, bias ? " bias" : "",
         stream ? "there" : "NULL");
    void *block = allocator->Alloc(allocator, 10);
    tell("scale.block", "%s", block ? "there" : "NULL");
    allocator->Free(allocator, block);
    api->ReleaseMemoryInfo(cpu);
    struct part part = {.from = in.data, .bias = more.data, .to = out, .scale = kernel};
    return api->KernelContext_ParallelFor(context, scale_part, in.count, 2, &part);
}

static void release(void *kernel)
{
    free(kernel);
}

static OrtStatus *scale_infer(const OrtCustomOp *op, OrtShapeInferContext *context)
{
    OrtTensorTypeAndShapeInfo *shape = NULL;
    const OrtOpAttr *attr = NULL;
    size_t count = 0, rank = 0, read = 0;
    float factor = 0;
    (void)op;
    OrtStatus *failed = api->ShapeInferContext_GetInputCount(context, &count);
    if (!failed) failed = api->ShapeInferContext_GetInputTypeShape(context, 0, &shape);
    if (!failed) failed = api->GetDimensionsCount(shape, &rank);
    if (!failed) failed = api->ShapeInferContext_GetAttribute(context, "factor", &attr);
    if (!failed) failed = api->ReadOpAttr(attr, ORT_OP_ATTR_FLOAT, &factor, sizeof factor, &read);
    if (failed) return failed;
    static bool told;
    if (!told) tell("scale.infer", "%zu inputs rank %zu factor %g", count, rank, (double)factor);
    if (!told)
        (void)well("scale.infer.absent",
                   api->ShapeInferContext_GetAttribute(context, "absent", &attr));
    told = true;
    return api->ShapeInferContext_SetOutputTypeShape(context, 0, shape);
}

static const OrtCustomOp scale_op = {
    .version = 23,
    .GetName = scale_name,
    .GetExecutionProviderType = provider,
    .GetInputType = of_floats,
    .GetInputTypeCount = two_values,
    .GetOutputType = of_floats,
    .GetOutputTypeCount = one_value,
    .KernelDestroy = release,
    .GetInputCharacteristic = scale_input,
    .GetOutputCharacteristic = required,
    .GetInputMemoryType = memory,
    .GetVariadicInputMinArity = one,
    .GetVariadicInputHomogeneity = one,
    .GetVariadicOutputMinArity = one,
    .GetVariadicOutputHomogeneity = one,
    .CreateKernelV2 = scale_create,
    .KernelComputeV2 = scale_compute,
    .InferOutputShapeFn = scale_infer,
    .GetStartVersion = one,
    .GetEndVersion = one,
};

/* ---- Join: of version 14, with the old functions ---- */

static const char *join_name(const OrtCustomOp *op)
{
    (void)op;
    return "Join";
}

static OrtCustomOpInputOutputCharacteristic variadic(const OrtCustomOp *op, size_t index)
{
    (void)op, (void)index;
    return INPUT_OUTPUT_VARIADIC;
}

static ONNXTensorElementDataType join_output(const OrtCustomOp *op, size_t index)
{
    (void)op;
    return index == 0 ? ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT : ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
}

static int two(const OrtCustomOp *op)
{
    (void)op;
    return 2;
}

static void *join_create(const OrtCustomOp *op, const OrtApi *given, const OrtKernelInfo *info)
{
    size_t count = 0;
    (void)op;
    (void)well("join.create", given->KernelInfo_GetInputCount(info, &count));
    tell("join.create", "%zu inputs", count);
    return NULL;
}

static void join_compute(void *kernel, OrtKernelContext *context)
{
    size_t inputs = 0;
    const OrtValue *x = NULL;
    OrtValue *y = NULL, *count = NULL, *preallocated = NULL;
    struct view in = {0};
    float *sum = NULL;
    int64_t *number = NULL;
    (void)kernel;
    if (!well("join.run", api->KernelContext_GetInputCount(context, &inputs)) ||
        !well("join.run", api->KernelContext_GetInput(context, 0, &x)) ||
        !well("join.run", look(x, &in)) ||
        !well("join.run", api->KernelContext_GetOutput(context, 0, in.dims, in.rank, &y)) ||
        !well("join.run", api->KernelContext_GetOutput(context, 1, NULL, 0, &count)) ||
        !well("join.run",
              api->KernelContext_GetOutput(context, 0, in.dims, in.rank, &preallocated)) ||
        !well("join.run", api->GetTensorMutableData(y, (void **)&sum)))
        return;
    tell("join.run", "%zu inputs, count %s, again %s", inputs, count ? "there" : "NULL",
         preallocated == y ? "the same" : "another");
    memset(sum, 0, in.count * sizeof *sum);
    for (size_t i = 0; i < inputs; i++) {
        if (!well("join.run", api->KernelContext_GetInput(context, i, &x)) ||
            !well("join.run", look(x, &in)))
            return;
        for (size_t k = 0; k < in.count; k++)
            sum[k] += ((const float *)in.data)[k];
    }
    (void)well("join.past", api->KernelContext_GetInput(context, inputs, &x));
    if (count && well("join.run", api->GetTensorMutableData(count, (void **)&number)))
        *number = (int64_t)inputs;
}

static const OrtCustomOp join_op = {
    .version = 14,
    .CreateKernel = join_create,
    .GetName = join_name,
    .GetExecutionProviderType = provider,
    .GetInputType = of_floats,
    .GetInputTypeCount = one_value,
    .GetOutputType = join_output,
    .GetOutputTypeCount = two_values,
    .KernelCompute = join_compute,
    .KernelDestroy = release,
    .GetInputCharacteristic = variadic,
    .GetOutputCharacteristic = scale_input, /* the second may be left out */
    .GetInputMemoryType = memory,
    .GetVariadicInputMinArity = two,
    .GetVariadicInputHomogeneity = one,
    .GetVariadicOutputMinArity = one,
    .GetVariadicOutputHomogeneity = one,
};

/* ---- Any, Shout, Fails: one input, one output ---- */

static void *no_kernel(const OrtCustomOp *op, const OrtApi *given, const OrtKernelInfo *info)
{
    (void)op, (void)given, (void)info;
    return NULL;
}

static const char *any_name(const OrtCustomOp *op)
{
    (void)op;
    return "Any";
}

static void any_compute(void *kernel, OrtKernelContext *context)
{
    const OrtValue *x = NULL;
    OrtValue *y = NULL;
    struct view in = {0};
    void *to = NULL;
    size_t bytes = 0;
    (void)kernel;
    if (well("any.run", api->KernelContext_GetInput(context, 0, &x)) &&
        well("any.run", look(x, &in)) &&
        well("any.run", api->KernelContext_GetOutput(context, 0, in.dims, in.rank, &y)) &&
        well("any.run", api->GetTensorMutableData(y, &to)) &&
        well("any.run", api->GetTensorSizeInBytes(x, &bytes)))
        memcpy(to, in.data, bytes);
}

static const OrtCustomOp any_op = {
    .version = 11,
    .CreateKernel = no_kernel,
    .GetName = any_name,
    .GetExecutionProviderType = provider,
    .GetInputType = of_any,
    .GetInputTypeCount = one_value,
    .GetOutputType = of_any,
    .GetOutputTypeCount = one_value,
    .KernelCompute = any_compute,
    .KernelDestroy = release,
    .GetInputCharacteristic = required,
    .GetOutputCharacteristic = required,
};

static const char *shout_name(const OrtCustomOp *op)
{
    (void)op;
    return "Shout";
}

static ONNXTensorElementDataType of_strings(const OrtCustomOp *op, size_t index)
{
    (void)op, (void)index;
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
}

static void shout_compute(void *kernel, OrtKernelContext *context)
{
    const OrtValue *x = NULL;
    OrtValue *y = NULL;
    struct view in = {0};
    (void)kernel;
    if (!well("shout.run", api->KernelContext_GetInput(context, 0, &x)) ||
        !well("shout.run", look(x, &in)) ||
        !well("shout.run", api->KernelContext_GetOutput(context, 0, in.dims, in.rank, &y)))
        return;
    for (size_t i = 0; i < in.count; i++) {
        char text[64] = "";
        size_t length = 0;
        if (!well("shout.run", api->GetStringTensorElementLength(x, i, &length)) ||
            !well("shout.run", api->GetStringTensorElement(x, sizeof text - 2, i, text)))
            return;
        text[length] = '!';
        text[length + 1] = 0;
        if (!well("shout.run", api->FillStringTensorElement(y, text, i))) return;
    }
}

static const OrtCustomOp shout_op = {
    .version = 11,
    .CreateKernel = no_kernel,
    .GetName = shout_name,
    .GetExecutionProviderType = provider,
    .GetInputType = of_strings,
    .GetInputTypeCount = one_value,
    .GetOutputType = of_strings,
    .GetOutputTypeCount = one_value,
    .KernelCompute = shout_compute,
    .KernelDestroy = release,
    .GetInputCharacteristic = required,
    .GetOutputCharacteristic = required,
};

static const char *fails_name(const OrtCustomOp *op)
{
    (void)op;
    return "Fails";
}

static OrtStatus *fails_create(const OrtCustomOp *op, const OrtApi *given,
                               const OrtKernelInfo *info, void **kernel)
{
    int64_t early = 0;
    (void)op;
    *kernel = NULL;
    if (!given->KernelInfoGetAttribute_int64(info, "early", &early) && early)
        return given->CreateStatus(ORT_INVALID_ARGUMENT, "no kernel today");
    return NULL;
}

static OrtStatus *fails_compute(void *kernel, OrtKernelContext *context)
{
    (void)kernel, (void)context;
    return api->CreateStatus(ORT_INVALID_ARGUMENT, "it always fails");
}

static const OrtCustomOp fails_op = {
    .version = 16,
    .GetName = fails_name,
    .GetExecutionProviderType = provider,
    .GetInputType = of_floats,
    .GetInputTypeCount = one_value,
    .GetOutputType = of_floats,
    .GetOutputTypeCount = one_value,
    .KernelDestroy = release,
    .GetInputCharacteristic = required,
    .GetOutputCharacteristic = required,
    .GetInputMemoryType = memory,
    .GetVariadicInputMinArity = one,
    .GetVariadicInputHomogeneity = one,
    .GetVariadicOutputMinArity = one,
    .GetVariadicOutputHomogeneity = one,
    .CreateKernelV2 = fails_create,
    .KernelComputeV2 = fails_compute,
};

/* ---- Composed ---- */

struct composed {
    OrtOp *neg, *add, *top;
};

static const char *composed_name(const OrtCustomOp *op)
{
    (void)op;
    return "Composed";
}

static void *composed_create(const OrtCustomOp *op, const OrtApi *given, const OrtKernelInfo *info)
{
    struct composed *made = calloc(1, sizeof *made);
    const char *constraint = "T";
    const ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    const int64_t axis = -1, sorted = 1, largest = 1;
    OrtOpAttr *attrs[3] = {NULL};
    OrtOp *none = NULL;
    (void)op;
    (void)well("composed.neg", given->CreateOp(info, "Neg", "", 13, &constraint, &type, 1, NULL, 0,
                                               1, 1, &made->neg));
    (void)well("composed.add", given->CreateOp(info, "Add", "", 14, &constraint, &type, 1, NULL, 0,
                                               2, 1, &made->add));
    if (well("composed.attr", given->CreateOpAttr("axis", &axis, 1, ORT_OP_ATTR_INT, &attrs[0])) &&
        well("composed.attr",
             given->CreateOpAttr("largest", &largest, 1, ORT_OP_ATTR_INT, &attrs[1])) &&
        well("composed.attr",
             given->CreateOpAttr("sorted", &sorted, 1, ORT_OP_ATTR_INT, &attrs[2])))
        (void)well("composed.top",
                   given->CreateOp(info, "TopK", "", 11, (const char *[]){"T", "I"},
                                   (const ONNXTensorElementDataType[]){
                                       type, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64},
                                   2, (const OrtOpAttr *const *)attrs, 3, 2, 2, &made->top));
    for (int i = 0; i < 3; i++)
        given->ReleaseOpAttr(attrs[i]);
    (void)well("composed.none", given->CreateOp(info, "NoSuchOp", "", 13, &constraint, &type, 1,
                                                NULL, 0, 1, 1, &none));
    return made;
}

static void composed_compute(void *kernel, OrtKernelContext *context)
{
    const struct composed *ops = kernel;
    const OrtValue *x = NULL;
    OrtValue *y = NULL, *between = NULL, *k = NULL, *values = NULL, *indices = NULL;
    OrtMemoryInfo *cpu = NULL;
    struct view in = {0};
    float room[16], best[1] = {0};
    int64_t where[1] = {0}, one_of[1] = {1};
    const int64_t single = 1;
    if (!well("composed.run", api->KernelContext_GetInput(context, 0, &x)) ||
        !well("composed.run", look(x, &in)) ||
        !well("composed.run", api->KernelContext_GetOutput(context, 0, in.dims, in.rank, &y)) ||
        !well("composed.run",
              api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &cpu)) ||
        !well("composed.run", api->CreateTensorWithDataAsOrtValue(cpu, room, sizeof room, in.dims,
                                                                  in.rank, in.type, &between)) ||
        !well("composed.run",
              api->CreateTensorWithDataAsOrtValue(cpu, one_of, sizeof one_of, &single, 1,
                                                  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &k)) ||
        !well("composed.run", api->CreateTensorWithDataAsOrtValue(cpu, best, sizeof best, &single,
                                                                  1, in.type, &values)) ||
        !well("composed.run",
              api->CreateTensorWithDataAsOrtValue(cpu, where, sizeof where, &single, 1,
                                                  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &indices)))
        return;
    (void)well("composed.neg", api->InvokeOp(context, ops->neg, &x, 1, &between, 1));
    (void)well("composed.add",
               api->InvokeOp(context, ops->add, (const OrtValue *[]){between, between}, 2, &y, 1));
    (void)well("composed.top", api->InvokeOp(context, ops->top, (const OrtValue *[]){x, k}, 2,
                                             (OrtValue *[]){values, indices}, 2));
    tell("composed.top", "%g at %" PRId64, (double)best[0], where[0]);
    api->ReleaseValue(between);
    api->ReleaseValue(k);
    api->ReleaseValue(values);
    api->ReleaseValue(indices);
    api->ReleaseMemoryInfo(cpu);
}

static void composed_destroy(void *kernel)
{
    struct composed *ops = kernel;
    api->ReleaseOp(ops->neg);
    api->ReleaseOp(ops->add);
    api->ReleaseOp(ops->top);
    free(ops);
}

static const OrtCustomOp composed_op = {
    .version = 12,
    .CreateKernel = composed_create,
    .GetName = composed_name,
    .GetExecutionProviderType = provider,
    .GetInputType = of_floats,
    .GetInputTypeCount = one_value,
    .GetOutputType = of_floats,
    .GetOutputTypeCount = one_value,
    .KernelCompute = composed_compute,
    .KernelDestroy = composed_destroy,
    .GetInputCharacteristic = required,
    .GetOutputCharacteristic = required,
};

/* ---- registration ---- */

static OrtCustomOpDomain *domain;

__attribute__((visibility("default"))) OrtStatus *RegisterCustomOps(OrtSessionOptions *options,
                                                                    const OrtApiBase *base)
{
    const OrtCustomOp *const ops[] = {&scale_op, &join_op,  &any_op,
                                      &shout_op, &fails_op, &composed_op};
    for (uint32_t version = ORT_API_VERSION; !api && version > 22; version--)
        api = base->GetApi(version);
    if (!domain) {
        OrtStatus *failed = api->CreateCustomOpDomain("my.ops", &domain);
        for (size_t i = 0; i < sizeof ops / sizeof ops[0] && !failed; i++)
            failed = api->CustomOpDomain_Add(domain, ops[i]);
        if (failed) return failed;
    }
    return api->AddCustomOpDomain(options, domain);
}
