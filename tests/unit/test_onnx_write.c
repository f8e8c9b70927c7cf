/* SPDX-License-Identifier: Apache-2.0
 * Reading and writing whole models: what is written reads back to the same bytes, over every model
 * of the test data, and every field of the messages survives. */
#include "unit.h"

#include "data.h"
#include "message_bytes.h"
#include "proto/messages.h"
#include "proto/tensor_data.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/sdx_test_write_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    unlink(path);
    return rmdir(folder);
}

/* Reads `bytes` and writes it again to a file, which is mapped. */
static enum sdx_status rewrite(struct sdx_context *cx, const void *bytes, size_t size,
                               struct sdx_file_map *out)
{
    struct sdx_arena arena;
    struct sdx_onnx_model *model = NULL;
    struct sdx_file_writer file;
    char path[128];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    sdx_arena_init(&arena, cx->mem, SDX_MEM_MODEL);
    enum sdx_status status = sdx_onnx_read_model(cx, &arena, bytes, size, &model);
    if (status == SDX_OK) status = sdx_file_writer_open(cx, path, &file);
    if (status == SDX_OK) {
        status = sdx_onnx_write_model(cx, model, &file);
        if (status == SDX_OK)
            status = sdx_file_writer_close(&file);
        else
            sdx_file_writer_abandon(&file);
    }
    sdx_arena_deinit(&arena);
    if (status == SDX_OK) status = sdx_file_map_open(cx, path, out);
    return status;
}

static void check_rewrite(const char *name, const void *bytes, size_t size)
{
    struct unit unit;
    struct sdx_file_map once, twice;
    unit_init(&unit);
    if (rewrite(&unit.cx, bytes, size, &once) != SDX_OK)
        fail_msg("%s: %s", name, unit.cx.error.text);
    if (rewrite(&unit.cx, once.data, once.size, &twice) != SDX_OK)
        fail_msg("%s: %s", name, unit.cx.error.text);
    if (once.size != twice.size || memcmp(once.data, twice.data, once.size) != 0)
        fail_msg("%s: the second copy differs", name);
    if (once.size > size) fail_msg("%s: grew from %zu to %zu bytes", name, size, once.size);
    sdx_file_map_close(&once);
    sdx_file_map_close(&twice);
    unit_deinit(&unit);
}

static int count_models;

static int visit(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    (void)info;
    if (kind != FTW_F || strcmp(path + ftw->base, "model.onnx") != 0) return 0;
    if (info->st_size > 16 << 20) return 0; /* large models differ in nothing but their weights */
    struct unit unit;
    struct sdx_file_map map;
    unit_init(&unit);
    if (sdx_file_map_open(&unit.cx, path, &map) != SDX_OK) fail_msg("%s", unit.cx.error.text);
    check_rewrite(path, map.data, map.size);
    sdx_file_map_close(&map);
    count_models++;
    return 0;
}

static void models(void **state)
{
    (void)state;
    char path[300];
    if (!data_path("suite", path, sizeof path)) skip();
    nftw(path, visit, 16, 0);
    printf("%d models\n", count_models);
    assert_true(count_models > 0);
}

/* ---- written by hand: one of each ---- */

static void unknown_fields_and_zeros_stay(void **state)
{
    (void)state;
    struct bytes model = {0}, graph = {0}, node = {0}, attribute = {0}, tensor = {0};
    add_text(&attribute, 1, "");
    add_varint(&attribute, 2 << 3 | 5); /* f = -0 */
    memcpy(attribute.at + attribute.size, "\0\0\0\x80", 4);
    attribute.size += 4;
    add_number(&attribute, 20, 0); /* type = 0, given */
    add_text(&attribute, 99, "unknown in the attribute");
    add_text(&node, 1, "x");
    add_text(&node, 1, "");
    add_message(&node, 5, &attribute);
    add_text(&node, 10, "device configuration");
    add_number(&tensor, 1, 0);
    add_number(&tensor, 2, 1);
    add_bytes(&tensor, 9, "", 0);
    add_number(&tensor, 14, 0);
    add_message(&graph, 1, &node);
    add_message(&graph, 5, &tensor);
    add_number(&model, 1, 0);
    add_message(&model, 7, &graph);
    add_text(&model, 20, "training");
    add_number(&model, 500, 1);

    struct unit unit;
    struct sdx_file_map map;
    unit_init(&unit);
    if (rewrite(&unit.cx, model.at, model.size, &map) != SDX_OK) fail_msg("%s", unit.cx.error.text);
    assert_int_equal(map.size, model.size);
    assert_memory_equal(map.data, model.at, model.size);
    sdx_file_map_close(&map);
    unit_deinit(&unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_fields_and_zeros_stay),
        cmocka_unit_test(models),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
