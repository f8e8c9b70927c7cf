/* SPDX-License-Identifier: Apache-2.0
 * vision/input.c: the whole way from a picture to an input, against what the original tools make;
 * layouts and element types; wishes read from a model. */
#include "vision_golden.h"

static sdx_tensor *make(sdx_context *cx, const sdx_vision_input *input, const sdx_image *image,
                        sdx_letterbox *place)
{
    sdx_tensor *out = NULL;
    sdx_vision_fault fault = {""};
    if (sdx_vision_input_make(cx, input, image, &out, place, &fault)) fail_msg("%s", fault.text);
    return out;
}

static sdx_vision_input bytes_input(sdx_fit fit, int side)
{
    return (sdx_vision_input){.name = "x",
                              .dtype = SDX_U8,
                              .channels_last = true,
                              .channels = 3,
                              .width = side,
                              .height = side,
                              .fit = fit,
                              .crop = 0.875,
                              .scale = 1,
                              .std = {1, 1, 1}};
}

static void check_way(const char *name, sdx_fit fit, int side)
{
    sdx_context *cx = sdx_context_create(NULL);
    struct golden golden = golden_load(name);
    sdx_vision_input input = bytes_input(fit, side);
    sdx_letterbox place;
    sdx_tensor *t = make(cx, &input, &golden.source, &place);
    sdx_image got = {side, side, 3, sdx_tensor_data(t)};
    int difference = image_difference(&got, &golden.result);
    if (difference > 0) fail_msg("%s: differs by up to %d", name, difference);
    sdx_tensor_destroy(t);
    golden_free(&golden);
    sdx_context_destroy(cx);
}

static void test_ways(void **state)
{
    (void)state;
    check_way("way_crop", SDX_FIT_CROP, 16);
    check_way("way_letterbox", SDX_FIT_LETTERBOX, 32);
    check_way("way_corner", SDX_FIT_LETTERBOX_CORNER, 32);
}

static void test_values(void **state)
{
    (void)state;
    sdx_context *cx = sdx_context_create(NULL);
    uint8_t pixels[6] = {0, 51, 102, 153, 204, 255};
    const sdx_image image = {2, 1, 3, pixels};
    sdx_vision_input input = bytes_input(SDX_FIT_STRETCH, 1);
    input.width = 2;
    sdx_tensor *t = make(cx, &input, &image, NULL);
    assert_memory_equal(sdx_tensor_data(t), pixels, 6);
    sdx_tensor_destroy(t);
    /* Planes, blue first, scaled: (p / 255 - 0.2) / 0.5, means and deviations of each plane. */
    input.dtype = SDX_F32;
    input.channels_last = false;
    input.bgr = true;
    input.scale = 1.0 / 255;
    for (int i = 0; i < 3; i++) {
        input.mean[i] = 0.2;
        input.std[i] = i == 0 ? 0.25 : 0.5;
    }
    static const double planes[6] = {0.8, 3.2, 0.0, 1.2, -0.4, 0.8};
    t = make(cx, &input, &image, NULL);
    assert_int_equal(sdx_tensor_dims(t)[1], 3);
    for (int i = 0; i < 6; i++)
        assert_float_equal(sdx_tensor_f64(t, i), planes[i], 1e-6);
    sdx_tensor_destroy(t);
    input.dtype = SDX_F16;
    t = make(cx, &input, &image, NULL);
    for (int i = 0; i < 6; i++)
        assert_float_equal(sdx_tensor_f64(t, i), planes[i], 2e-3);
    sdx_tensor_destroy(t);
    input.invert = true;
    t = make(cx, &input, &image, NULL);
    assert_float_equal(sdx_tensor_f64(t, 4), 1.6, 2e-3);
    sdx_tensor_destroy(t);
    sdx_context_destroy(cx);
}

static void test_wishes_of_a_model(void **state)
{
    (void)state;
    sdx_context *cx = sdx_context_create(NULL);
    sdx_model *model = NULL;
    sdx_vision_fault fault = {""};
    sdx_vision_input input;
    sdx_labels labels;
    assert_int_equal(sdx_model_open(cx, "examples/digits/digits.onnx", NULL, &model), SDX_OK);
    assert_int_equal(sdx_vision_input_init(&input, model, SDX_TASK_CLASSIFY, 0, &fault), SDX_OK);
    assert_string_equal(input.name, "scan");
    assert_int_equal(input.channels, 1);
    assert_int_equal(input.width, 8);
    assert_int_equal(input.height, 8);
    assert_int_equal(input.fit, SDX_FIT_STRETCH);
    assert_true(input.invert);
    assert_float_equal(input.scale, 1.0 / 255, 1e-12);
    assert_float_equal(input.std[0], 1, 0);
    assert_int_equal(sdx_labels_from_model(model, &labels, &fault), SDX_OK);
    assert_int_equal(labels.count, 10);
    assert_string_equal(labels.names[9], "9");
    sdx_labels_deinit(&labels);
    sdx_model_destroy(model);
    sdx_context_destroy(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_wishes_of_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
