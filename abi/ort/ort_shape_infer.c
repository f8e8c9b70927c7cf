/* SPDX-License-Identifier: Apache-2.0
 * Types and shapes of the outputs of custom operators: what the operator's own function says, in
 * terms of ShapeInferContext_*, and the types that it declares. */
#include "ort_customop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SINCE_SHAPES = 17 };

struct OrtShapeInferContext {
    sdx_node *node;
    const OrtCustomOp *op;
    OrtTensorTypeAndShapeInfo **inputs; /* made when they are asked for */
    OrtOpAttr **attributes;
    size_t count_attributes;
    bool *told; /* of each output: the operator has set it */
};

static OrtStatusPtr get_input_count(const OrtShapeInferContext *context, size_t *out)
{
    *out = (size_t)sdx_node_count_inputs(context->node);
    return NULL;
}

static OrtStatusPtr get_input_type_shape(const OrtShapeInferContext *context, size_t index,
                                         OrtTensorTypeAndShapeInfo **out)
{
    const sdx_value_info *info = index < (size_t)sdx_node_count_inputs(context->node)
                                     ? sdx_node_input(context->node, (int)index)
                                     : NULL;
    *out = NULL;
    if (!info)
        return ort_fail(ORT_INVALID_ARGUMENT, "Failed to fetch type shape info for the index.");
    if (!context->inputs[index]) {
        const size_t rank = info->rank < 0 ? 0 : (size_t)info->rank;
        ORT_TRY(ort_shape_create((ONNXTensorElementDataType)info->dtype, rank, info->dims,
                                 info->dim_names, &context->inputs[index]));
        context->inputs[index]->has_shape = info->rank >= 0;
    }
    *out = context->inputs[index];
    return NULL;
}

static OrtStatusPtr get_attribute(const OrtShapeInferContext *given, const char *name,
                                  const OrtOpAttr **out)
{
    OrtShapeInferContext *context = (OrtShapeInferContext *)(uintptr_t)given;
    const sdx_attr *attr = sdx_node_attr(context->node, name);
    OrtOpAttr *made = NULL;
    *out = NULL;
    if (!attr) return ort_fail(ORT_INVALID_ARGUMENT, "Attribute does not exist.");
    ORT_TRY(ort_grow(&context->attributes, context->count_attributes, sizeof(OrtOpAttr *)));
    ORT_TRY(ort_attr_of(attr, &made));
    context->attributes[context->count_attributes++] = made;
    *out = made;
    return NULL;
}

static ONNXTensorElementDataType declared_type(const OrtShapeInferContext *context, int output);

/* Passes on a shape that the operator sets, with the type it declares where that is one. */
static OrtStatusPtr set_output_type_shape(const OrtShapeInferContext *given, size_t index,
                                          const OrtTensorTypeAndShapeInfo *shape)
{
    OrtShapeInferContext *context = (OrtShapeInferContext *)(uintptr_t)given;
    if (index >= (size_t)sdx_node_count_outputs(context->node)) return NULL; /* left out */
    const ONNXTensorElementDataType type = ort_custom_output_type(context->op, index);
    const sdx_value_info info = {
        .kind = SDX_KIND_TENSOR,
        .dtype = (sdx_dtype)(type                   ? type
                             : (int)shape->type > 0 ? shape->type
                                                    : declared_type(context, (int)index)),
        .rank = shape->has_shape ? (int)shape->rank : -1,
        .dims = shape->dims,
        .dim_names = (const char *const *)shape->names,
    };
    if (sdx_node_set_output(context->node, (int)index, &info))
        return ort_fail(ORT_FAIL, "output %zu cannot be of this type and shape", index);
    context->told[index] = true;
    return NULL;
}

/* An output without a type of its own is of the type of the first input without one. */
static ONNXTensorElementDataType declared_type(const OrtShapeInferContext *context, int output)
{
    const ONNXTensorElementDataType type = ort_custom_output_type(context->op, (size_t)output);
    for (int i = 0; !type && i < sdx_node_count_inputs(context->node); i++) {
        const sdx_value_info *info = sdx_node_input(context->node, i);
        if (info && !ort_custom_input_type(context->op, (size_t)i))
            return (ONNXTensorElementDataType)info->dtype;
    }
    return type;
}

static sdx_status set_the_rest(OrtShapeInferContext *context)
{
    for (int i = 0; i < sdx_node_count_outputs(context->node); i++) {
        const ONNXTensorElementDataType type = declared_type(context, i);
        if (context->told[i] || !type) continue;
        const sdx_value_info info = {.kind = SDX_KIND_TENSOR, .dtype = (sdx_dtype)type, .rank = -1};
        const sdx_status status = sdx_node_set_output(context->node, i, &info);
        if (status) return status;
    }
    return SDX_OK;
}

static sdx_status ask_operator(OrtShapeInferContext *context)
{
    const OrtCustomOp *op = context->op;
    if (op->version < SINCE_SHAPES || !op->InferOutputShapeFn) return SDX_OK;
    OrtStatusPtr failed = op->InferOutputShapeFn(op, context);
    if (!failed) return SDX_OK;
    const sdx_status status =
        sdx_node_fail(context->node, SDX_BAD_MODEL,
                      OrtGetApiBase()->GetApi(ORT_API_VERSION)->GetErrorMessage(failed));
    ort_release_status(failed);
    return status;
}

/* In the words of ONNX Runtime, which programs look for. */
static sdx_status wrong_type(const sdx_node *node, int input)
{
    char text[512];
    const sdx_value_info *info = sdx_node_input(node, input);
    snprintf(text, sizeof text,
             "Type Error: Type 'tensor(%s)' of input parameter (%s) of operator (%s) in node (%s) "
             "is invalid.",
             sdx_dtype_name(info->dtype), info->name, sdx_node_op(node), sdx_node_name(node));
    return sdx_node_fail(node, SDX_BAD_MODEL, text);
}

sdx_status ort_custom_infer(sdx_node *node, void *user)
{
    const size_t inputs = (size_t)sdx_node_count_inputs(node);
    const size_t outputs = (size_t)sdx_node_count_outputs(node);
    int wrong = -1;
    OrtShapeInferContext context = {.node = node, .op = ort_custom_variant(user, node, &wrong)};
    if (!context.op) return wrong_type(node, wrong);
    context.inputs = calloc(inputs + 1, sizeof(OrtTensorTypeAndShapeInfo *));
    context.told = calloc(outputs + 1, sizeof(bool));
    sdx_status status = context.inputs && context.told ? ask_operator(&context) : SDX_OUT_OF_MEMORY;
    if (!status) status = set_the_rest(&context);
    for (size_t i = 0; context.inputs && i < inputs; i++)
        ort_shape_free(context.inputs[i]);
    for (size_t i = 0; i < context.count_attributes; i++)
        ort_attr_free(context.attributes[i]);
    free(context.attributes);
    free(context.inputs);
    free(context.told);
    return status;
}

void ort_fill_shape_infer(OrtApi *api)
{
    api->ShapeInferContext_GetInputCount = get_input_count;
    api->ShapeInferContext_GetInputTypeShape = get_input_type_shape;
    api->ShapeInferContext_GetAttribute = get_attribute;
    api->ShapeInferContext_SetOutputTypeShape = set_output_type_shape;
}
