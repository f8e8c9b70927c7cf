/* SPDX-License-Identifier: Apache-2.0
 * .npy and .npz: NumPy's own files (tests/data/make_npy.py), broken ones, and what we write. Runs
 * in the top folder of the repository. */
#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "tensor/convert.h"
#include "tensor/inflate.h"
#include "tensor/npy.h"

static const char *const texts[6] = {"a", "bc",  "\xc3\xa9",
                                     "",  "x y", "\xe6\x97\xa5\xe6\x9c\xac\xf0\x9f\x98\x80"};

static const char *data(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "tests/data/npy/%s", name);
    return path;
}

static void assert_six(const char *name, const struct sdx_tensor *t)
{
    if (t->rank != 2 || t->dims[0] != 2 || t->dims[1] != 3) fail_msg("%s: wrong shape", name);
    for (int i = 0; i < 6; i++)
        if (sdx_load_f64(t->dtype, t->data, i) != i)
            fail_msg("%s: element %d is %g", name, i, sdx_load_f64(t->dtype, t->data, i));
}

static void assert_texts(const char *name, const struct sdx_tensor *t)
{
    const struct sdx_str *found = t->data;
    assert_int_equal(t->dtype, SDX_STRING);
    assert_int_equal(t->count, 6);
    for (int i = 0; i < 6; i++)
        if (!sdx_str_is(found[i], texts[i])) fail_msg("%s: text %d", name, i);
}

static void numpy_files(void **state)
{
    (void)state;
    DIR *folder = opendir("tests/data/npy");
    int count = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *name = entry->d_name;
        struct unit unit;
        struct sdx_tensor *t = NULL;
        if (!strstr(name, ".npy")) continue;
        unit_init(&unit);
        enum sdx_status status = sdx_npy_load(&unit.cx, data(name), &t);
        if (strncmp(name, "bad_", 4) == 0) {
            if (status == SDX_OK) fail_msg("%s was read", name);
            assert_contains(unit.cx.error.text, "npy: ");
            assert_null(t);
        } else {
            if (status != SDX_OK) fail_msg("%s", unit.cx.error.text);
            if (strncmp(name, "num_", 4) == 0) assert_six(name, t);
            if (strncmp(name, "str_", 4) == 0) assert_texts(name, t);
        }
        sdx_tensor_release(t);
        unit_deinit(&unit);
        count++;
    }
    closedir(folder);
    assert_true(count > 40);
}

static void shapes(void **state)
{
    (void)state;
    struct unit unit;
    struct sdx_tensor *t = NULL;
    char text[64];
    unit_init(&unit);
    const char *const rows[][2] = {{"scalar.npy", "i32[]"},
                                   {"vector.npy", "f32[4]"},
                                   {"empty.npy", "f64[0,3]"},
                                   {"bool.npy", "bool[2,3]"}};
    for (int i = 0; i < SDX_COUNT_OF(rows); i++) {
        assert_int_equal(sdx_npy_load(&unit.cx, data(rows[i][0]), &t), SDX_OK);
        assert_string_equal(sdx_tensor_describe(t, text, sizeof text), rows[i][1]);
        sdx_tensor_release(t);
    }
    unit_deinit(&unit);
}

static void faults_are_named(void **state)
{
    (void)state;
    const struct {
        const char *file, *text;
        enum sdx_status status;
    } rows[] = {
        {"bad_object.npy", "Python objects are not supported", SDX_NOT_SUPPORTED},
        {"bad_bfloat16.npy", "'<V2' is not supported", SDX_NOT_SUPPORTED},
        {"bad_record.npy", "records are not supported", SDX_NOT_SUPPORTED},
        {"bad_short.npy", "23 bytes of data do not fit shape [2,3] of 4 bytes", SDX_BAD_DATA},
        {"bad_shape_wraps.npy", "do not fit shape [4294967296,4294967296]", SDX_BAD_DATA},
        {"bad_header_cut.npy", "ends within its header", SDX_BAD_DATA},
        {"bad_order.npy", "expected True or False", SDX_BAD_DATA},
        {"bad_end.npz", "no zip directory", SDX_BAD_DATA},
        {"bad_deflate.npz", "member \"only\"", SDX_BAD_DATA},
        {"bad_checksum.npz", "member \"six\": its checksum is wrong", SDX_BAD_DATA},
        {"bad_method.npz", "packed by method 14", SDX_NOT_SUPPORTED},
    };
    for (int i = 0; i < SDX_COUNT_OF(rows); i++) {
        struct unit unit;
        struct sdx_tensor *t = NULL;
        unit_init(&unit);
        bool zip = strstr(rows[i].file, ".npz") != NULL,
             one = strstr(rows[i].file, "deflate") || strstr(rows[i].file, "end");
        enum sdx_status status =
            zip ? sdx_npz_load(&unit.cx, data(rows[i].file), one ? NULL : "six", &t)
                : sdx_npy_load(&unit.cx, data(rows[i].file), &t);
        assert_int_equal(status, rows[i].status);
        assert_contains(unit.cx.error.text, rows[i].text);
        unit_deinit(&unit);
    }
}

static void archives(void **state)
{
    (void)state;
    const char *const files[] = {"stored.npz", "deflated.npz"};
    struct unit unit;
    struct sdx_tensor *t = NULL, *same = NULL;
    unit_init(&unit);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sdx_npz_load(&unit.cx, data(files[i]), "six", &t), SDX_OK);
        assert_six(files[i], t);
        sdx_tensor_release(t);
        assert_int_equal(sdx_npz_load(&unit.cx, data(files[i]), "texts", &t), SDX_OK);
        assert_texts(files[i], t);
        sdx_tensor_release(t);
    }
    assert_int_equal(sdx_npz_load(&unit.cx, data(files[0]), "noise", &t), SDX_OK);
    assert_int_equal(sdx_npz_load(&unit.cx, data(files[1]), "noise", &same), SDX_OK);
    assert_int_equal(t->bytes, 999 * 4);
    assert_memory_equal(t->data, same->data, t->bytes);
    sdx_tensor_release(t);
    sdx_tensor_release(same);
    assert_int_equal(sdx_npz_load(&unit.cx, data("one.npz"), NULL, &t), SDX_OK);
    assert_int_equal(t->count, 2500);
    sdx_tensor_release(t);
    assert_int_equal(sdx_npz_load(&unit.cx, data("stored.npz"), NULL, &t), SDX_INVALID_ARGUMENT);
    sdx_context_clear(&unit.cx);
    assert_int_equal(sdx_npz_load(&unit.cx, data("stored.npz"), "seven", &t), SDX_NOT_FOUND);
    unit_deinit(&unit);
}

/* NumPy's bytes of num_f4.npy and stored texts come out again. */
static void saving(void **state)
{
    (void)state;
    struct unit unit;
    struct sdx_tensor *six = NULL, *strings = NULL, *back = NULL;
    struct sdx_file_map ours, theirs;
    char path[] = "/tmp/sdx_test_npy_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unit_init(&unit);
    assert_int_equal(sdx_npy_load(&unit.cx, data("num_f4.npy"), &six), SDX_OK);
    assert_int_equal(sdx_npy_load(&unit.cx, data("str_u.npy"), &strings), SDX_OK);
    assert_int_equal(sdx_npy_save(&unit.cx, path, six), SDX_OK);
    assert_int_equal(sdx_file_map_open(&unit.cx, path, &ours), SDX_OK);
    assert_int_equal(sdx_file_map_open(&unit.cx, data("num_f4.npy"), &theirs), SDX_OK);
    assert_int_equal(ours.size, theirs.size);
    assert_memory_equal(ours.data, theirs.data, ours.size);
    sdx_file_map_close(&ours);
    sdx_file_map_close(&theirs);

    struct sdx_tensor *const both[] = {six, strings};
    assert_int_equal(sdx_npz_save(&unit.cx, path, 2, (const char *const[]){"six", "texts"}, both),
                     SDX_OK);
    assert_int_equal(sdx_npz_load(&unit.cx, path, "six", &back), SDX_OK);
    assert_six("saved", back);
    sdx_tensor_release(back);
    assert_int_equal(sdx_npz_load(&unit.cx, path, "texts", &back), SDX_OK);
    assert_texts("saved", back);
    sdx_tensor_release(back);

    assert_int_equal(sdx_tensor_new(&unit.cx, SDX_BF16, 0, NULL, &back), SDX_OK);
    assert_int_equal(sdx_npy_save(&unit.cx, path, back), SDX_NOT_SUPPORTED);
    assert_contains(unit.cx.error.text, "no element type bf16");
    sdx_tensor_release(back);
    sdx_tensor_release(six);
    sdx_tensor_release(strings);
    unlink(path);
    unit_deinit(&unit);
}

static void inflate_refuses(void **state)
{
    (void)state;
    unsigned char out[16];
    const unsigned char fixed[] = {0x4b, 0x4c, 0x4a, 0x06, 0x00}; /* "abc" */
    assert_null(sdx_inflate(fixed, sizeof fixed, out, 3));
    assert_memory_equal(out, "abc", 3);
    assert_string_equal(sdx_inflate(fixed, sizeof fixed, out, 2),
                        "it gives more bytes than it says");
    assert_string_equal(sdx_inflate(fixed, sizeof fixed, out, 4),
                        "it gives fewer bytes than it says");
    for (size_t n = 0; n < 4; n++)
        assert_non_null(sdx_inflate(fixed, n, out, 3));
    assert_non_null(sdx_inflate((const unsigned char *)"\x07", 1, out, 3));
    const unsigned char stored[] = {1, 3, 0, 0xfc, 0xff, 'x', 'y', 'z'};
    assert_null(sdx_inflate(stored, sizeof stored, out, 3));
    assert_non_null(sdx_inflate(stored, sizeof stored - 1, out, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numpy_files), cmocka_unit_test(shapes), cmocka_unit_test(faults_are_named),
        cmocka_unit_test(archives),    cmocka_unit_test(saving), cmocka_unit_test(inflate_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
