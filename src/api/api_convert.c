/* SPDX-License-Identifier: Apache-2.0
 * Public API: a model in another version of the standard. */
#include "convert/convert_model.h"
#include "run/plan_file.h"

void sdx_convert_options_init(sdx_convert_options *options)
{
    *options = (sdx_convert_options){.size = sizeof *options, .check_fully = true};
}

static sdx_status convert_file(sdx_context *cx, struct sdx_arena *arena, const char *path,
                               struct sdx_file_map *map, int count, const sdx_opset *opsets,
                               bool check, const char *to)
{
    SDX_TRY(sdx_file_map_open(cx, path, map));
    if (sdx_plan_is(map->data, map->size))
        return SDX_FAIL(cx, SDX_BAD_DATA, "is a plan file, expected an ONNX model");
    const char *folder = sdx_path_folder(arena, path);
    if (!folder) return SDX_FAIL_MEMORY(cx);
    return sdx_convert_bytes(cx, arena, map->data, map->size, folder, count, opsets, check, to);
}

sdx_status sdx_model_convert(sdx_context *cx, const char *path, int count, const sdx_opset *opsets,
                             const sdx_convert_options *given, const char *to)
{
    sdx_context_clear(cx);
    if (!path || !to) return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "path is NULL");
    sdx_convert_options options;
    sdx_convert_options_init(&options);
    if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    struct sdx_arena arena;
    struct sdx_file_map map = {0};
    sdx_arena_init(&arena, cx->mem, SDX_MEM_MODEL);
    sdx_status status =
        convert_file(cx, &arena, path, &map, count, opsets, options.check_fully, to);
    sdx_file_map_close(&map);
    sdx_arena_deinit(&arena);
    return status;
}
