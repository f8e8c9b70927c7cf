/* SPDX-License-Identifier: Apache-2.0
 * What kernels of custom operators ask for while they run: inputs, outputs, memory, threads. */
#include "ort_customop.h"

#include <stdlib.h>
#include <string.h>

static OrtKernelContext *open_context(const OrtKernelContext *context)
{
    return (OrtKernelContext *)(uintptr_t)context; /* what it hands out it keeps */
}

static OrtStatusPtr get_input_count(const OrtKernelContext *context, size_t *out)
{
    *out = (size_t)context->count_inputs;
    return NULL;
}

static OrtStatusPtr get_output_count(const OrtKernelContext *context, size_t *out)
{
    *out = (size_t)context->count_outputs;
    return NULL;
}

static OrtStatusPtr get_input(const OrtKernelContext *given, size_t index, const OrtValue **out)
{
    OrtKernelContext *context = open_context(given);
    *out = NULL;
    if (index >= (size_t)context->count_inputs) return NULL;
    sdx_tensor *tensor = (sdx_tensor *)(uintptr_t)sdx_call_input(context->call, (int)index);
    if (tensor && !context->inputs[index])
        ORT_TRY(ort_value_item(NULL, tensor, &context->inputs[index]));
    *out = context->inputs[index];
    return NULL;
}

/* Strings are the kernel's until it is done; all else is written where the engine wants it. */
static OrtStatusPtr make_output(OrtKernelContext *context, int index, const int64_t *dims,
                                size_t rank)
{
    ONNXTensorElementDataType type = ort_custom_output_type(context->kernel->op, (size_t)index);
    const sdx_value_info *info = sdx_node_output(sdx_call_node(context->call), index);
    if (!info) return NULL;
    if (!type) type = (ONNXTensorElementDataType)info->dtype;
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
        return ort_value_create(NULL, dims, rank, type, &context->outputs[index]);
    sdx_tensor *made = NULL;
    if (sdx_call_make_output(context->call, index, (sdx_dtype)type, (int)rank, dims, &made))
        return ort_fail(ORT_INVALID_ARGUMENT, "output %d cannot have this type and shape", index);
    return made ? ort_value_item(NULL, made, &context->outputs[index]) : NULL;
}

static OrtStatusPtr get_output(OrtKernelContext *context, size_t index, const int64_t *dims,
                               size_t rank, OrtValue **out)
{
    *out = NULL;
    if (index >= (size_t)context->count_outputs) return NULL;
    if (!context->outputs[index]) ORT_TRY(make_output(context, (int)index, dims, rank));
    *out = context->outputs[index];
    return NULL;
}

/* The engine has no outputs before the kernel names their shape. */
static OrtStatusPtr get_preallocated_output(const OrtKernelContext *context, size_t index,
                                            OrtValue **out)
{
    *out = NULL;
    if (index >= (size_t)context->count_outputs)
        return ort_fail(ORT_INVALID_ARGUMENT, "output index %zu is out of bounds", index);
    *out = context->outputs[index];
    return NULL;
}

static OrtStatusPtr no_stream(const OrtKernelContext *context, void **out)
{
    (void)context;
    *out = NULL;
    return NULL;
}

static OrtStatusPtr no_sync_stream(const OrtKernelContext *context, OrtSyncStream **out)
{
    (void)context;
    *out = NULL;
    return NULL;
}

static OrtStatusPtr get_allocator(const OrtKernelContext *context, const OrtMemoryInfo *memory,
                                  OrtAllocator **out)
{
    (void)context;
    *out = NULL;
    if (memory->device != OrtMemoryInfoDeviceType_CPU)
        return ort_fail(ORT_INVALID_ARGUMENT, "No requested allocator available");
    *out = ort_default_allocator();
    return NULL;
}

/* It lasts until the kernel is done. */
static OrtStatusPtr get_scratch_buffer(const OrtKernelContext *given, const OrtMemoryInfo *memory,
                                       size_t size, void **out)
{
    OrtKernelContext *context = open_context(given);
    OrtAllocator *allocator = NULL;
    *out = NULL;
    if (size == 0) return NULL;
    ORT_TRY(get_allocator(context, memory, &allocator));
    ORT_TRY(ort_grow(&context->scratch, context->count_scratch, sizeof *context->scratch));
    *out = allocator->Alloc(allocator, size);
    if (!*out) return ort_no_memory();
    context->scratch[context->count_scratch++] = *out;
    return NULL;
}

static OrtStatusPtr get_resource(const OrtKernelContext *context, int version, int id, void **out)
{
    (void)context, (void)version, (void)id;
    *out = NULL;
    return NULL;
}

static OrtStatusPtr get_logger(const OrtKernelContext *context, const OrtLogger **out)
{
    *out = &context->table->logger;
    return NULL;
}

/* `total` calls, `share` of them a part of the engine's. */
struct parallel {
    void (*fn)(void *data, size_t i);
    void *data;
    size_t total, share;
};

static void run_part(int64_t part, void *user)
{
    const struct parallel *all = user;
    const size_t begin = (size_t)part * all->share;
    const size_t end = begin + all->share < all->total ? begin + all->share : all->total;
    for (size_t i = begin; i < end; i++)
        all->fn(all->data, i);
}

/* batches 0: as many parts as threads work. */
static OrtStatusPtr parallel_for(const OrtKernelContext *context, void (*fn)(void *data, size_t i),
                                 size_t total, size_t batches, void *data)
{
    if (total == 0) return NULL;
    size_t parts = batches ? batches : (size_t)sdx_call_threads(context->call);
    if (parts > total) parts = total;
    struct parallel all = {
        .fn = fn, .data = data, .total = total, .share = (total + parts - 1) / parts};
    sdx_call_parallel(context->call, (int64_t)((total + all.share - 1) / all.share), run_part,
                      &all);
    return NULL;
}

void ort_fill_kernel_context(OrtApi *api)
{
    api->KernelContext_GetInputCount = get_input_count;
    api->KernelContext_GetOutputCount = get_output_count;
    api->KernelContext_GetInput = get_input;
    api->KernelContext_GetOutput = get_output;
    api->KernelContext_GetPreallocatedOutput = get_preallocated_output;
    api->KernelContext_GetGPUComputeStream = no_stream;
    api->KernelContext_GetSyncStream = no_sync_stream;
    api->KernelContext_GetAllocator = get_allocator;
    api->KernelContext_GetScratchBuffer = get_scratch_buffer;
    api->KernelContext_GetResource = get_resource;
    api->KernelContext_GetLogger = get_logger;
    api->KernelContext_ParallelFor = parallel_for;
}
