/* SPDX-License-Identifier: Apache-2.0
 * vision/picture_resize.c, vision/resize_area.c, vision/letterbox.c: equal to OpenCV and Pillow to
 * the last bit; the places that Ultralytics and YOLOX compute. */
#include "vision_golden.h"

static void resize_all(const char *kind, sdx_resize how)
{
    for (int i = 0; i < 8; i++)
        for (int channels = 1; channels <= 3; channels += 2) {
            char name[64];
            sdx_vision_fault fault = {""};
            sdx_image out;
            snprintf(name, sizeof name, "%s_%d_%d", kind, i, channels);
            struct golden golden = golden_load(name);
            assert_int_equal(sdx_image_resize(&golden.source, golden.result.width,
                                              golden.result.height, how, &out, &fault),
                             SDX_OK);
            int difference = image_difference(&out, &golden.result);
            if (difference > 0) fail_msg("%s: differs by up to %d", name, difference);
            sdx_image_deinit(&out);
            golden_free(&golden);
        }
}

static void test_bilinear(void **state)
{
    (void)state;
    resize_all("bilinear", SDX_RESIZE_BILINEAR);
}

static void test_antialias(void **state)
{
    (void)state;
    resize_all("antialias", SDX_RESIZE_ANTIALIAS);
}

static void test_area(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++)
        for (int channels = 1; channels <= 4; channels++) {
            char name[64];
            sdx_vision_fault fault = {""};
            sdx_image out;
            snprintf(name, sizeof name, "area_%d_%d", i, channels);
            struct golden golden = golden_load(name);
            assert_int_equal(sdx_image_resize_area(&golden.source, golden.result.width,
                                                   golden.result.height, &out, &fault),
                             SDX_OK);
            int difference = image_difference(&out, &golden.result);
            if (difference > 0) fail_msg("%s: differs by up to %d", name, difference);
            sdx_image_deinit(&out);
            golden_free(&golden);
        }
}

static void test_crop(void **state)
{
    (void)state;
    uint8_t pixels[6] = {1, 2, 3, 4, 5, 6};
    sdx_image image = {3, 2, 1, pixels}, out;
    sdx_vision_fault fault;
    static const uint8_t around[] = {9, 9, 9, 9, 9, 9, 1, 2, 3, 9, 9, 4, 5, 6, 9};
    assert_int_equal(sdx_image_crop(&image, -1, -1, 5, 3, 9, &out, &fault), SDX_OK);
    assert_memory_equal(out.pixels, around, sizeof around);
    sdx_image_deinit(&out);
    static const uint8_t inside[] = {6, 7};
    assert_int_equal(sdx_image_crop(&image, 2, 1, 2, 1, 7, &out, &fault), SDX_OK);
    assert_memory_equal(out.pixels, inside, sizeof inside);
    sdx_image_deinit(&out);
}

static void test_letterbox(void **state)
{
    (void)state;
    static const struct {
        int width, height, input_width, input_height;
        sdx_fit fit;
        int left, top, placed_width, placed_height;
    } rows[] = {
        /* Computed with ultralytics' LetterBox and YOLOX's preproc in Python. */
        {810, 1080, 640, 640, SDX_FIT_LETTERBOX, 80, 0, 480, 640},
        {768, 576, 320, 320, SDX_FIT_LETTERBOX, 0, 40, 320, 240},
        {1281, 721, 640, 640, SDX_FIT_LETTERBOX, 0, 140, 640, 360},
        {333, 500, 640, 640, SDX_FIT_LETTERBOX, 107, 0, 426, 640},
        {810, 1080, 416, 416, SDX_FIT_LETTERBOX_CORNER, 0, 0, 312, 416},
        {333, 500, 416, 416, SDX_FIT_LETTERBOX_CORNER, 0, 0, 277, 416},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sdx_letterbox at;
        sdx_letterbox_place(rows[i].width, rows[i].height, rows[i].input_width,
                            rows[i].input_height, rows[i].fit, &at);
        assert_int_equal(at.left, rows[i].left);
        assert_int_equal(at.top, rows[i].top);
        assert_int_equal(at.width, rows[i].placed_width);
        assert_int_equal(at.height, rows[i].placed_height);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bilinear),  cmocka_unit_test(test_antialias),
        cmocka_unit_test(test_area),      cmocka_unit_test(test_crop),
        cmocka_unit_test(test_letterbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
