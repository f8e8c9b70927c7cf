/* SPDX-License-Identifier: Apache-2.0
 * vision/picture.c and vision/orientation.c: the same picture from every format, upright, and clean
 * failures for what is no picture. */
#include "vision_golden.h"

#include <unistd.h>

static void check_file(const char *name, const sdx_image *expected, int tolerance)
{
    char path[200];
    sdx_vision_fault fault = {""};
    sdx_image image;
    snprintf(path, sizeof path, GOLDEN "%s", name);
    if (sdx_image_load(path, expected->channels, &image, &fault) != SDX_OK)
        fail_msg("%s", fault.text);
    int difference = image_difference(&image, expected);
    if (difference > tolerance) fail_msg("%s: differs by up to %d", name, difference);
    sdx_image_deinit(&image);
}

static void test_formats(void **state)
{
    (void)state;
    struct golden smooth = golden_load("smooth"), jpg = golden_load("smooth_jpg");
    struct golden palette = golden_load("palette");
    check_file("smooth.png", &smooth.source, 0);
    check_file("smooth.bmp", &smooth.source, 0);
    check_file("smooth.webp", &smooth.source, 0);
    check_file("alpha.png", &smooth.source, 0);
    check_file("palette.png", &palette.result, 0);
    /* Decoders of JPEG may differ by a level in the transform and one in the colours. */
    check_file("smooth.jpg", &jpg.result, 3);
    golden_free(&smooth);
    golden_free(&jpg);
    golden_free(&palette);
}

static void test_grey(void **state)
{
    (void)state;
    struct golden grey = golden_load("grey"), smooth = golden_load("smooth");
    sdx_vision_fault fault = {""};
    sdx_image image;
    char path[] = "/tmp/sdx_grey_XXXXXX.png";
    int file = mkstemps(path, 4);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(sdx_image_save(path, &grey.source, &fault), SDX_OK);
    assert_int_equal(sdx_image_load(path, 1, &image, &fault), SDX_OK);
    assert_int_equal(image_difference(&image, &grey.result), 0);
    sdx_image_deinit(&image);
    unlink(path);
    /* A grey file gives the same value in each channel. */
    assert_int_equal(sdx_image_load(GOLDEN "grey.png", 3, &image, &fault), SDX_OK);
    for (int i = 0; i < image.width * image.height; i++)
        for (int c = 0; c < 3; c++)
            assert_int_equal(image.pixels[3 * i + c], smooth.source.pixels[3 * i]);
    sdx_image_deinit(&image);
    golden_free(&grey);
    golden_free(&smooth);
}

static void test_orientation(void **state)
{
    (void)state;
    struct golden smooth = golden_load("smooth");
    for (int i = 1; i <= 8; i++) {
        char name[32];
        snprintf(name, sizeof name, "turned_%d.jpg", i);
        check_file(name, &smooth.source, 8);
    }
    check_file("turned_6.png", &smooth.source, 0);
    check_file("turned_6.webp", &smooth.source, 0);
    golden_free(&smooth);
}

static void test_save(void **state)
{
    (void)state;
    static const struct {
        const char *ending;
        int tolerance;
    } formats[] = {{".png", 0}, {".bmp", 0}, {".jpg", 10}, {".jpeg", 10}, {".webp", 40}};
    struct golden smooth = golden_load("smooth");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char path[64];
        sdx_vision_fault fault = {""};
        sdx_image image;
        snprintf(path, sizeof path, "/tmp/sdx_save_%d%s", (int)getpid(), formats[i].ending);
        sdx_status status = sdx_image_save(path, &smooth.source, &fault);
        if (status == SDX_NOT_SUPPORTED) continue; /* an FFmpeg without libwebp */
        if (status) fail_msg("%s", fault.text);
        if (sdx_image_load(path, 3, &image, &fault)) fail_msg("%s", fault.text);
        int difference = image_difference(&image, &smooth.source);
        if (difference > formats[i].tolerance) fail_msg("%s differs by %d", path, difference);
        sdx_image_deinit(&image);
        unlink(path);
    }
    sdx_vision_fault fault = {""};
    assert_int_equal(sdx_image_save("/tmp/x.gif", &smooth.source, &fault), SDX_INVALID_ARGUMENT);
    assert_int_equal(sdx_image_save("/nowhere/x.png", &smooth.source, &fault), SDX_IO);
    golden_free(&smooth);
}

/* Every shorter file and files with a byte changed: an error or a picture, no crash. */
static void test_broken(void **state)
{
    (void)state;
    static const char *const names[] = {"smooth.png", "turned_6.jpg", "turned_6.webp", "smooth.bmp",
                                        "turned_6.png"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char path[200];
        static uint8_t bytes[1 << 16];
        snprintf(path, sizeof path, GOLDEN "%s", names[k]);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        sdx_image image;
        sdx_vision_fault fault = {""};
        for (size_t cut = 0; cut < size; cut += cut < 200 ? 1 : 37) {
            uint8_t *copy = malloc(cut + 1);
            assert_non_null(copy);
            memcpy(copy, bytes, cut);
            if (sdx_image_decode(copy, cut, 3, &image, &fault) == SDX_OK) sdx_image_deinit(&image);
            assert_in_range(sdx_image_orientation(copy, cut), 1, 8);
            free(copy);
        }
        for (size_t at = 0; at < size && at < 300; at++) {
            bytes[at] ^= 0x5a;
            if (sdx_image_decode(bytes, size, 1, &image, &fault) == SDX_OK)
                sdx_image_deinit(&image);
            bytes[at] ^= 0x5a;
        }
    }
    sdx_image image;
    sdx_vision_fault fault = {""};
    assert_int_equal(sdx_image_load("no/such.png", 3, &image, &fault), SDX_NOT_FOUND);
    assert_int_equal(sdx_image_load("CMakeLists.txt", 3, &image, &fault), SDX_BAD_DATA);
    assert_string_equal(fault.text, "CMakeLists.txt: not a PNG, JPEG, WebP or BMP picture");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),     cmocka_unit_test(test_grey),
        cmocka_unit_test(test_orientation), cmocka_unit_test(test_save),
        cmocka_unit_test(test_broken),
    };
    sdx_vision_log(false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
