/* SPDX-License-Identifier: Apache-2.0
 * Files: mappings and their errors, confinement to a folder, all-or-nothing writing. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char top[64]; /* a fresh folder: in/{data.bin,empty,sub/deep.bin,links}, outside.bin */

static const char *at(const char *relative)
{
    static char path[4][256];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", top, relative);
    return path[next];
}

static void put_file(const char *relative, const char *text)
{
    FILE *file = fopen(at(relative), "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "/tmp/sdx_test_file_XXXXXX");
    if (mkdtemp(top) == NULL) return -1;
    mkdir(at("in"), 0755);
    mkdir(at("in/sub"), 0755);
    mkdir(at("in-beside"), 0755);
    put_file("in/data.bin", "0123456789");
    put_file("in/empty", "");
    put_file("in/sub/deep.bin", "deep");
    put_file("in/..dots..", "dots");
    put_file("outside.bin", "secret");
    put_file("in-beside/near.bin", "secret");
    int failed = symlink("../outside.bin", at("in/link_out"));
    failed |= symlink("/etc/hostname", at("in/link_abs"));
    failed |= symlink("..", at("in/folder_out"));
    failed |= symlink("../in-beside/near.bin", at("in/link_beside"));
    failed |= symlink("sub/deep.bin", at("in/link_in"));
    failed |= symlink("loop", at("in/loop"));
    failed |= symlink("in", at("alias"));
    failed |= mkfifo(at("in/pipe"), 0644);
    return failed;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    return system(command);
}

static void maps_whole_files(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_file_map map;
    assert_int_equal(sdx_file_map_open(&unit.cx, at("in/data.bin"), &map), SDX_OK);
    assert_int_equal(map.size, 10);
    assert_memory_equal(map.data, "0123456789", 10);
    sdx_file_map_close(&map);
    sdx_file_map_close(&map);
    assert_int_equal(sdx_file_map_open(&unit.cx, at("in/empty"), &map), SDX_OK);
    assert_int_equal(map.size, 0);
    assert_null(map.data);
    sdx_file_map_close(&map);
    assert_int_equal(sdx_file_map_open(&unit.cx, at("in/link_out"), &map), SDX_OK);
    sdx_file_map_close(&map);
}

static void open_errors_say_why(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    static const struct {
        const char *path;
        enum sdx_status status;
        const char *text;
    } cases[] = {{"in/none", SDX_NOT_FOUND, "no such file"},
                 {"in", SDX_IO, "is a folder"},
                 {"in/data.bin/x", SDX_NOT_FOUND, "not a folder"},
                 {"in/loop", SDX_IO, "links"},
                 {"in/pipe", SDX_IO, "not a regular file"}};
    for (int i = 0; i < SDX_COUNT_OF(cases); i++) {
        struct sdx_file_map map;
        assert_int_equal(sdx_file_map_open(&unit.cx, at(cases[i].path), &map), cases[i].status);
        assert_contains(unit.cx.error.text, cases[i].text);
        assert_contains(unit.cx.error.text, cases[i].path);
        assert_null(map.data);
        sdx_context_clear(&unit.cx);
    }
}

static void external_data_stays_below(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_context *cx = &unit.cx;
    struct sdx_file_map map;
    static const char *const inside[] = {"data.bin",      "./data.bin", "sub/deep.bin",
                                         "sub//deep.bin", "link_in",    "..dots.."};
    static const char *const folders[] = {"in", "in/", "alias", "in/sub/.."};
    for (int f = 0; f < SDX_COUNT_OF(folders); f++) {
        for (int i = 0; i < SDX_COUNT_OF(inside); i++) {
            assert_int_equal(sdx_file_map_open_below(cx, at(folders[f]), sdx_str(inside[i]), &map),
                             SDX_OK);
            assert_true(map.size > 0);
            sdx_file_map_close(&map);
        }
    }
    static const struct {
        const char *relative;
        enum sdx_status status;
        const char *text;
    } cases[] = {{"", SDX_BAD_MODEL, "empty"},
                 {"/etc/hostname", SDX_BAD_MODEL, "absolute"},
                 {"..", SDX_BAD_MODEL, ".."},
                 {"../outside.bin", SDX_BAD_MODEL, ".."},
                 {"sub/../data.bin", SDX_BAD_MODEL, ".."},
                 {"sub/..", SDX_BAD_MODEL, ".."},
                 {"link_out", SDX_BAD_MODEL, "leads out"},
                 {"link_abs", SDX_BAD_MODEL, "leads out"},
                 {"link_beside", SDX_BAD_MODEL, "leads out"},
                 {"folder_out/outside.bin", SDX_BAD_MODEL, "leads out"},
                 {"loop", SDX_IO, "links"},
                 {"none.bin", SDX_NOT_FOUND, "no such file"},
                 {"sub", SDX_IO, "folder"},
                 {".", SDX_BAD_MODEL, "leads out"},
                 {"pipe", SDX_IO, "not a regular file"}};
    for (int i = 0; i < SDX_COUNT_OF(cases); i++) {
        enum sdx_status status =
            sdx_file_map_open_below(cx, at("in"), sdx_str(cases[i].relative), &map);
        assert_int_equal(status, cases[i].status);
        assert_contains(cx->error.text, cases[i].text);
        assert_null(map.data);
        sdx_context_clear(cx);
    }
    struct sdx_str cut = {"data.bin\0/../../x", 17};
    assert_int_equal(sdx_file_map_open_below(cx, at("in"), cut, &map), SDX_BAD_MODEL);
}

static void writes_all_or_nothing(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_file_writer w;
    struct sdx_file_map map;
    put_file("out.bin", "old");
    chmod(at("out.bin"), 0600);
    assert_int_equal(symlink("out.bin", at("out_link")), 0);
    assert_int_equal(sdx_file_writer_open(&unit.cx, at("out_link"), &w), SDX_OK);
    assert_int_equal(sdx_file_writer_put(&w, "new text", 8), SDX_OK);
    assert_int_equal(sdx_file_map_open(&unit.cx, at("out.bin"), &map), SDX_OK);
    assert_int_equal(map.size, 3); /* readers still see the old file */
    sdx_file_map_close(&map);
    assert_int_equal(sdx_file_writer_close(&w), SDX_OK);
    assert_int_equal(sdx_file_map_open(&unit.cx, at("out.bin"), &map), SDX_OK);
    assert_memory_equal(map.data, "new text", 8);
    sdx_file_map_close(&map);
    struct stat facts;
    assert_int_equal(lstat(at("out_link"), &facts), 0);
    assert_true(S_ISLNK(facts.st_mode));
    assert_int_equal(stat(at("out.bin"), &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0600);

    assert_int_equal(sdx_file_writer_open(&unit.cx, at("gone/x.bin"), &w), SDX_NOT_FOUND);
    sdx_context_clear(&unit.cx);
    assert_int_equal(sdx_file_writer_open(&unit.cx, at("in"), &w), SDX_IO);
    sdx_file_writer_abandon(&w);
    sdx_context_clear(&unit.cx);
    assert_int_equal(sdx_file_writer_open(&unit.cx, at("left.bin"), &w), SDX_OK);
    assert_int_equal(access(w.path_temp, F_OK), 0);
    char temp[256];
    snprintf(temp, sizeof temp, "%s", w.path_temp);
    sdx_file_writer_abandon(&w);
    assert_int_not_equal(access(temp, F_OK), 0);
    assert_int_not_equal(access(at("left.bin"), F_OK), 0);
    for (int fail_at = 0; fail_at < 2; fail_at++) {
        atomic_store(&unit.mem.fail_at, fail_at);
        assert_int_equal(sdx_file_writer_open(&unit.cx, at("left.bin"), &w), SDX_OUT_OF_MEMORY);
        sdx_context_clear(&unit.cx);
    }
    atomic_store(&unit.mem.fail_at, -1);
    assert_int_equal(sdx_file_writer_open(&unit.cx, "/dev/full", &w), SDX_OK);
    assert_int_equal(sdx_file_writer_put(&w, "x", 1), SDX_OK);
    assert_int_equal(sdx_file_writer_close(&w), SDX_IO);
    assert_contains(unit.cx.error.text, "no space");
    unit_deinit(&unit);
}

static void folders_of_paths(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_arena arena;
    sdx_arena_init(&arena, &unit.mem, SDX_MEM_OTHER);
    assert_string_equal(sdx_path_folder(&arena, "model.onnx"), ".");
    assert_string_equal(sdx_path_folder(&arena, "a/b/model.onnx"), "a/b");
    assert_string_equal(sdx_path_folder(&arena, "/model.onnx"), "/");
    sdx_arena_deinit(&arena);
    unit_deinit(&unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_whole_files),          cmocka_unit_test(open_errors_say_why),
        cmocka_unit_test(external_data_stays_below), cmocka_unit_test(writes_all_or_nothing),
        cmocka_unit_test(folders_of_paths),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
