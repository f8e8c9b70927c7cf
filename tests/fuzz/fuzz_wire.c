/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a model: read it, import its tensors, write it again; and as each kind of .pb file.
 * Every failure must have a text, and nothing may be left in memory. */
#include <stdint.h>
#include <stdlib.h>

#include "proto/tensor_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void import_graph(struct sdx_context *cx, struct sdx_arena *arena, struct sdx_external *ex,
                         const struct sdx_onnx_graph *graph)
{
    struct sdx_tensor *t = NULL;
    for (int32_t i = 0; i < graph->initializers.count; i++) {
        sdx_context_clear(cx);
        if (sdx_onnx_tensor_import(cx, arena, ex, &graph->initializers.at[i], &t) != SDX_OK &&
            cx->error.text[0] == 0)
            abort(); /* a failure without a text */
    }
    for (int32_t i = 0; i < graph->sparse_initializers.count; i++) {
        sdx_context_clear(cx);
        if (sdx_onnx_sparse_import(cx, arena, ex, &graph->sparse_initializers.at[i], 1 << 20, &t) !=
                SDX_OK &&
            cx->error.text[0] == 0)
            abort();
    }
}

static void write_model(struct sdx_context *cx, const struct sdx_onnx_model *model)
{
    struct sdx_file_writer file;
    sdx_context_clear(cx);
    if (sdx_file_writer_open(cx, "/dev/null", &file) != SDX_OK) abort();
    if (sdx_onnx_write_model(cx, model, &file) != SDX_OK) abort();
    if (sdx_file_writer_close(&file) != SDX_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct sdx_mem mem;
    struct sdx_context cx = {0};
    struct sdx_arena arena;
    struct sdx_external ex;
    struct sdx_onnx_model *model = NULL;
    struct sdx_tensor *value = NULL;
    sdx_mem_init(&mem, NULL, (size_t)256 << 20);
    cx.mem = &mem;
    sdx_arena_init(&arena, &mem, SDX_MEM_MODEL);
    sdx_external_init(&ex, &arena, "tests/data");
    if (sdx_onnx_read_model(&cx, &arena, bytes, size, &model) == SDX_OK) {
        if (model->graph) import_graph(&cx, &arena, &ex, model->graph);
        write_model(&cx, model);
    }
    sdx_external_deinit(&ex);
    sdx_arena_deinit(&arena);
    for (int kind = SDX_KIND_TENSOR; kind <= SDX_KIND_SPARSE; kind++) {
        sdx_context_clear(&cx);
        if (sdx_pb_read(&cx, bytes, size, kind, &value) == SDX_OK) sdx_tensor_release(value);
    }
    if (atomic_load(&mem.now) != 0) abort();
    return 0;
}
