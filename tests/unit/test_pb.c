/* SPDX-License-Identifier: Apache-2.0
 * .pb data files: each kind of value as the onnx package writes it (tests/data/make_pb.py), what is
 * refused, saving, and every data file of the standard's suite. Runs in the repository's top
 * folder. */
#include "unit.h"

#include <dirent.h>

#include "data.h"
#include "proto/tensor_data.h"
#include "tensor/convert.h"

static char saved[] = "/tmp/sdx_test_pb_XXXXXX";

static int make_saved(void **state)
{
    (void)state;
    int fd = mkstemp(saved);
    return fd < 0 ? -1 : close(fd);
}

static int remove_saved(void **state)
{
    (void)state;
    return unlink(saved);
}

static int kind_of_name(const char *name)
{
    return strncmp(name, "sequence", 8) == 0   ? SDX_KIND_SEQUENCE
           : strncmp(name, "optional", 8) == 0 ? SDX_KIND_OPTIONAL
           : strncmp(name, "map", 3) == 0      ? SDX_KIND_MAP
           : strncmp(name, "sparse", 6) == 0   ? SDX_KIND_SPARSE
                                               : SDX_KIND_NONE;
}

static enum sdx_status load(struct unit *unit, const char *name, struct sdx_tensor **out)
{
    char path[256];
    snprintf(path, sizeof path, "tests/data/pb/%s", name);
    return sdx_pb_load(&unit->cx, path, kind_of_name(name), out);
}

static bool values_equal(const struct sdx_tensor *a, const struct sdx_tensor *b)
{
    if (a->kind != b->kind || a->count != b->count || a->dtype != b->dtype) return false;
    if (!sdx_dims_equal(a->dims, a->rank, b->dims, b->rank)) return false;
    if (a->kind != SDX_KIND_TENSOR) {
        for (int64_t i = 0; i < a->count; i++)
            if (!values_equal(a->items[i], b->items[i])) return false;
        return true;
    }
    if (a->dtype != SDX_STRING) return a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0;
    for (int64_t i = 0; i < a->count; i++)
        if (!sdx_str_equal(((struct sdx_str *)a->data)[i], ((struct sdx_str *)b->data)[i]))
            return false;
    return true;
}

/* Saves and loads again. */
static void check_saving(struct unit *unit, const char *name, const struct sdx_tensor *t)
{
    struct sdx_tensor *back = NULL;
    if (sdx_pb_save(&unit->cx, saved, "name", t) != SDX_OK ||
        sdx_pb_load(&unit->cx, saved, t->kind, &back) != SDX_OK)
        fail_msg("%s: %s", name, unit->cx.error.text);
    if (!values_equal(t, back)) fail_msg("%s: differs when saved and loaded", name);
    sdx_tensor_release(back);
}

static void every_file(void **state)
{
    (void)state;
    DIR *folder = opendir("tests/data/pb");
    int count = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct unit unit;
        struct sdx_tensor *t = NULL;
        if (!strstr(entry->d_name, ".pb")) continue;
        unit_init(&unit);
        enum sdx_status status = load(&unit, entry->d_name, &t);
        if (strstr(entry->d_name, "bad") != NULL) {
            if (status != SDX_BAD_DATA) fail_msg("%s: status %d", entry->d_name, (int)status);
            assert_contains(unit.cx.error.text, "tests/data/pb/");
        } else {
            if (status != SDX_OK) fail_msg("%s", unit.cx.error.text);
            check_saving(&unit, entry->d_name, t);
        }
        sdx_tensor_release(t);
        unit_deinit(&unit);
        count++;
    }
    closedir(folder);
    assert_true(count > 15);
}

static void contents(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"tensor.pb", "f32[3]"},
        {"tensor_typed.pb", "f32[3]"},
        {"tensor_string.pb", "str[3]"},
        {"sequence.pb", "seq(2 items)"},
        {"sequence_empty.pb", "seq(0 items)"},
        {"optional.pb", "optional(1 item)"},
        {"optional_empty.pb", "optional(0 items)"},
        {"map_int.pb", "map(2 keys)"},
        {"sparse.pb", "sparse f32[2,3]"},
    };
    struct unit unit;
    struct sdx_tensor *t = NULL;
    char text[64];
    unit_init(&unit);
    for (int i = 0; i < SDX_COUNT_OF(rows); i++) {
        assert_int_equal(load(&unit, rows[i][0], &t), SDX_OK);
        assert_string_equal(sdx_tensor_describe(t, text, sizeof text), rows[i][1]);
        sdx_tensor_release(t);
    }
    assert_int_equal(load(&unit, "tensor_int4.pb", &t), SDX_OK);
    assert_true(sdx_load_f64(SDX_I4, t->data, 0) == -8 && sdx_load_f64(SDX_I4, t->data, 2) == -1);
    sdx_tensor_release(t);
    assert_int_equal(load(&unit, "sequence_nested.pb", &t), SDX_OK);
    assert_string_equal(sdx_tensor_describe(t->items[1]->items[1], text, sizeof text), "f32[1,2]");
    sdx_tensor_release(t);
    unit_deinit(&unit);
}

static void maps(void **state)
{
    (void)state;
    struct unit unit;
    struct sdx_tensor *t = NULL;
    unit_init(&unit);
    assert_int_equal(load(&unit, "map_int.pb", &t), SDX_OK);
    assert_true(t->items[0]->dtype == SDX_I64 && t->items[1]->dtype == SDX_F32);
    assert_true(t->items[1]->kind == SDX_KIND_TENSOR && t->items[1]->count == 2);
    assert_true(sdx_load_i64(SDX_I64, t->items[0]->data, 1) == -1);
    assert_true(sdx_load_f64(SDX_F32, t->items[1]->data, 1) == 2);
    sdx_tensor_release(t);
    assert_int_equal(load(&unit, "map_string.pb", &t), SDX_OK);
    assert_true(sdx_str_is(((struct sdx_str *)t->items[0]->data)[1], "two"));
    sdx_tensor_release(t);
    assert_int_equal(load(&unit, "map_rows.pb", &t), SDX_OK);
    assert_int_equal(t->items[1]->kind, SDX_KIND_SEQUENCE);
    sdx_tensor_release(t);
    assert_int_equal(load(&unit, "map_bad_count.pb", &t), SDX_BAD_DATA);
    assert_string_equal(unit.cx.error.text,
                        "tests/data/pb/map_bad_count.pb: map has 3 keys and 2 values");
    unit_deinit(&unit);
}

static void out_of_memory(void **state)
{
    (void)state;
    for (long long fail_at = 0;; fail_at++) {
        struct unit unit;
        struct sdx_tensor *t = NULL;
        unit_init(&unit);
        atomic_store(&unit.mem.fail_at, fail_at);
        enum sdx_status status = load(&unit, "map_int.pb", &t);
        if (status == SDX_OK) status = sdx_pb_save(&unit.cx, saved, "m", t);
        sdx_tensor_release(t);
        unit_deinit(&unit);
        if (status == SDX_OK) return;
        assert_int_equal(status, SDX_OUT_OF_MEMORY);
    }
}

/* ---- the standard's suite: the model says of which kind a file is ---- */

static int count_files;

static int kind_of_type(const struct sdx_onnx_value_info *info)
{
    switch (info->type ? info->type->which : SDX_TYPE_NONE) {
    case SDX_TYPE_SEQUENCE: return SDX_KIND_SEQUENCE;
    case SDX_TYPE_OPTIONAL: return SDX_KIND_OPTIONAL;
    case SDX_TYPE_MAP: return SDX_KIND_MAP;
    case SDX_TYPE_SPARSE: return SDX_KIND_SPARSE;
    default: return SDX_KIND_TENSOR;
    }
}

static void check_values(struct unit *unit, const char *folder, const char *what,
                         const struct sdx_onnx_value_infos *infos)
{
    for (int i = 0; i < infos->count; i++) {
        struct sdx_tensor *t = NULL;
        char path[512];
        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, what, i);
        if (access(path, R_OK) != 0) continue;
        if (sdx_pb_load(&unit->cx, path, kind_of_type(&infos->at[i]), &t) != SDX_OK)
            fail_msg("%s", unit->cx.error.text);
        check_saving(unit, path, t);
        sdx_tensor_release(t);
        count_files++;
    }
}

static int visit(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    (void)info;
    if (kind != FTW_F || strcmp(path + ftw->base, "model.onnx") != 0) return 0;
    struct unit unit;
    struct sdx_file_map map;
    struct sdx_arena arena;
    struct sdx_onnx_model *model = NULL;
    char folder[400];
    unit_init(&unit);
    sdx_arena_init(&arena, &unit.mem, SDX_MEM_MODEL);
    snprintf(folder, sizeof folder, "%.*s", ftw->base - 1, path);
    if (sdx_file_map_open(&unit.cx, path, &map) != SDX_OK ||
        sdx_onnx_read_model(&unit.cx, &arena, map.data, map.size, &model) != SDX_OK)
        fail_msg("%s: %s", path, unit.cx.error.text);
    check_values(&unit, folder, "input", &model->graph->inputs);
    check_values(&unit, folder, "output", &model->graph->outputs);
    sdx_arena_deinit(&arena);
    sdx_file_map_close(&map);
    unit_deinit(&unit);
    return 0;
}

static void suite(void **state)
{
    (void)state;
    char path[300];
    if (!data_path("suite", path, sizeof path)) skip();
    nftw(path, visit, 16, 0);
    printf("%d files\n", count_files);
    assert_true(count_files > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_file), cmocka_unit_test(contents),
                                       cmocka_unit_test(maps), cmocka_unit_test(out_of_memory),
                                       cmocka_unit_test(suite)};
    return cmocka_run_group_tests(tests, make_saved, remove_saved);
}
