/* SPDX-License-Identifier: Apache-2.0
 * vision/boxes.c, heads.c, classify.c, labels.c and draw.c on small made-up outputs. */
#include "vision_golden.h"

#include <math.h>
#include <unistd.h>

static sdx_tensor *tensor(sdx_context *cx, int64_t rows, int64_t columns, const float *values)
{
    sdx_tensor *t = NULL;
    const int64_t dims[3] = {1, rows, columns};
    assert_int_equal(sdx_tensor_create(cx, SDX_F32, 3, dims, &t), SDX_OK);
    memcpy(sdx_tensor_data(t), values, (size_t)(rows * columns) * sizeof *values);
    return t;
}

static void assert_box(const sdx_box *b, float x0, float y0, float x1, float y1, float score,
                       int label)
{
    assert_float_equal(b->x0, x0, 1e-3);
    assert_float_equal(b->y0, y0, 1e-3);
    assert_float_equal(b->x1, x1, 1e-3);
    assert_float_equal(b->y1, y1, 1e-3);
    assert_float_equal(b->score, score, 1e-5);
    assert_int_equal(b->label, label);
}

static void test_suppress(void **state)
{
    (void)state;
    sdx_box items[] = {
        {0, 0, 10, 10, 0.5f, 0}, /* goes: IoU 0.81 with the next of its class */
        {0, 0, 10, 9, 0.9f, 0},
        {0, 0, 10, 10, 0.8f, 1},  /* another class stays */
        {0, 5, 10, 15, 0.7f, 0},  /* IoU 0.27 stays */
        {20, 20, 20, 20, 0.1f, 0} /* empty stays */
    };
    sdx_boxes boxes = {5, 5, items};
    sdx_boxes_suppress(&boxes, 0.45, 300);
    assert_int_equal(boxes.count, 4);
    assert_float_equal(boxes.items[0].score, 0.9, 1e-6);
    assert_float_equal(boxes.items[1].score, 0.8, 1e-6);
    assert_float_equal(boxes.items[2].score, 0.7, 1e-6);
    assert_float_equal(boxes.items[3].score, 0.1, 1e-6);
    sdx_boxes_suppress(&boxes, 0.45, 2);
    assert_int_equal(boxes.count, 2);
}

static void test_to_picture(void **state)
{
    (void)state;
    sdx_box items[] = {{80, 100, 320, 700, 1, 0}};
    sdx_boxes boxes = {1, 1, items};
    const sdx_letterbox place = {.scale = 0.5, .left = 80, .top = 0, .width = 480, .height = 640};
    sdx_boxes_to_picture(&boxes, &place, 960, 1280);
    assert_box(&items[0], 0, 200, 480, 1280, 1, 0);
}

static void test_heads(void **state)
{
    (void)state;
    sdx_context *cx = sdx_context_create(NULL);
    sdx_vision_fault fault = {""};
    sdx_boxes boxes = {0};
    /* v5: rows of x y w h objectness and two classes. */
    static const float v5[] = {10, 20, 4, 6, 0.9f, 0.1f, 0.8f, 50, 50, 10, 10, 0.1f, 1, 1};
    sdx_tensor *t = tensor(cx, 2, 7, v5);
    assert_int_equal(sdx_head_decode(SDX_HEAD_V5, t, 0, 64, 64, 0.25, &boxes, &fault), SDX_OK);
    assert_int_equal(boxes.count, 1);
    assert_box(&boxes.items[0], 8, 17, 12, 23, 0.72f, 1);
    sdx_tensor_destroy(t);
    /* v8: the same turned, no objectness; a column of masks behind two classes is left alone. */
    static const float v8[] = {10, 50, 20, 50, 4, 10, 6, 10, 0.1f, 0.2f, 0.8f, 0.1f, 0.2f, 9};
    boxes.count = 0;
    t = tensor(cx, 7, 2, v8);
    assert_int_equal(sdx_head_decode(SDX_HEAD_V8, t, 2, 64, 64, 0.25, &boxes, &fault), SDX_OK);
    assert_int_equal(boxes.count, 1);
    assert_box(&boxes.items[0], 8, 17, 12, 23, 0.8f, 1);
    /* Without the count of classes the last column is one: a score of 9 is none. */
    assert_int_equal(sdx_head_decode(SDX_HEAD_V8, t, 0, 64, 64, 0.25, &boxes, &fault),
                     SDX_NOT_SUPPORTED);
    sdx_tensor_destroy(t);
    /* nms: corners, score, class. */
    static const float nms[] = {1, 2, 3, 4, 0.6f, 5, 0, 0, 0, 0, 0, 0};
    boxes.count = 0;
    t = tensor(cx, 2, 6, nms);
    assert_int_equal(sdx_head_decode(SDX_HEAD_NMS, t, 0, 64, 64, 0.25, &boxes, &fault), SDX_OK);
    assert_int_equal(boxes.count, 1);
    assert_box(&boxes.items[0], 1, 2, 3, 4, 0.6f, 5);
    sdx_tensor_destroy(t);
    /* yolox on 32 x 32: 16 + 4 + 1 cells; cell 5 is (1, 1) of stride 8, the last of stride 32. */
    float yolox[21 * 6] = {0};
    const float fine[6] = {0.5f, 0.25f, 0, logf(2), 0.9f, 1},
                coarse[6] = {0.5f, 0.5f, 0, 0, 1, 0.5f};
    memcpy(yolox + 5 * 6, fine, sizeof fine);
    memcpy(yolox + 20 * 6, coarse, sizeof coarse);
    boxes.count = 0;
    t = tensor(cx, 21, 6, yolox);
    assert_int_equal(sdx_head_decode(SDX_HEAD_YOLOX, t, 0, 32, 32, 0.25, &boxes, &fault), SDX_OK);
    assert_int_equal(boxes.count, 2);
    assert_box(&boxes.items[0], 8, 2, 16, 18, 0.9f, 0);
    assert_box(&boxes.items[1], 0, 0, 32, 32, 0.5f, 0);
    assert_int_equal(sdx_head_decode(SDX_HEAD_YOLOX, t, 0, 64, 64, 0.25, &boxes, &fault),
                     SDX_BAD_INPUT);
    sdx_tensor_destroy(t);
    sdx_boxes_deinit(&boxes);
    sdx_context_destroy(cx);
}

static void test_guess(void **state)
{
    (void)state;
    static const struct {
        int64_t dims[3];
        int width, height;
        sdx_head head;
    } rows[] = {
        {{1, 25200, 85}, 640, 640, SDX_HEAD_V5},    {{1, 84, 8400}, 640, 640, SDX_HEAD_V8},
        {{1, 84, 2100}, 320, 320, SDX_HEAD_V8},     {{1, 300, 6}, 640, 640, SDX_HEAD_NMS},
        {{1, 3549, 85}, 416, 416, SDX_HEAD_YOLOX},  {{1, 25200, 6}, 640, 640, SDX_HEAD_V5},
        {{-1, 116, 8400}, 640, 640, SDX_HEAD_V8},   {{1, 5, 8400}, 640, 640, SDX_HEAD_V8},
        {{1, 102000, 85}, 1280, 1280, SDX_HEAD_V5}, {{1, 84, 34000}, 1280, 1280, SDX_HEAD_V8},
        {{1, 1600, 80}, 320, 320, SDX_HEAD_NONE},   {{1, 4420, 2}, 320, 240, SDX_HEAD_NONE},
        {{1, 100, 5}, 640, 640, SDX_HEAD_NONE},     {{2, 84, 8400}, 640, 640, SDX_HEAD_NONE},
        {{1, -1, -1}, 640, 640, SDX_HEAD_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(sdx_head_guess(3, rows[i].dims, rows[i].width, rows[i].height),
                         rows[i].head);
    assert_int_equal(sdx_head_guess(2, rows[0].dims, 640, 640), SDX_HEAD_NONE);
    assert_int_equal(sdx_head_find("yolox"), SDX_HEAD_YOLOX);
    assert_int_equal(sdx_head_find("ssd"), SDX_HEAD_NONE);
    assert_string_equal(sdx_head_name(SDX_HEAD_V8), "v8");
}

static void test_classify(void **state)
{
    (void)state;
    sdx_context *cx = sdx_context_create(NULL);
    sdx_class_score top[4];
    static const float scores[] = {1, 3, 2}, shares[] = {0.25f, 0.0f, 0.5f, 0.25f};
    sdx_tensor *t = tensor(cx, 1, 3, scores);
    assert_int_equal(sdx_classify_top(t, 2, top), 2);
    assert_int_equal(top[0].label, 1);
    assert_int_equal(top[1].label, 2);
    assert_float_equal(top[0].score, 0.66524096, 1e-6);
    assert_int_equal(sdx_classify_top(t, 4, top), 3);
    sdx_tensor_destroy(t);
    t = tensor(cx, 1, 4, shares);
    assert_int_equal(sdx_classify_top(t, 4, top), 4);
    assert_int_equal(top[0].label, 2);
    assert_int_equal(top[1].label, 0);
    assert_int_equal(top[2].label, 3);
    assert_float_equal(top[0].score, 0.5, 0);
    sdx_tensor_destroy(t);
    sdx_context_destroy(cx);
}

static void test_labels(void **state)
{
    (void)state;
    sdx_labels labels;
    sdx_vision_fault fault = {""};
    char number[16], path[] = "/tmp/sdx_labels_XXXXXX";
    int file = mkstemp(path);
    static const char text[] = "cat\r\nsmall dog\n\nbird\n\n";
    assert_true(file >= 0);
    assert_int_equal(write(file, text, sizeof text - 1), sizeof text - 1);
    close(file);
    assert_int_equal(sdx_labels_load(path, &labels, &fault), SDX_OK);
    unlink(path);
    assert_int_equal(labels.count, 4);
    assert_string_equal(labels.names[0], "cat");
    assert_string_equal(labels.names[1], "small dog");
    assert_string_equal(labels.names[3], "bird");
    assert_string_equal(sdx_labels_name(&labels, 7, number, sizeof number), "7");
    sdx_labels_deinit(&labels);
    assert_int_equal(sdx_labels_load(path, &labels, &fault), SDX_NOT_FOUND);
    assert_int_equal(sdx_labels_coco(&labels, &fault), SDX_OK);
    assert_int_equal(labels.count, 80);
    assert_string_equal(labels.names[79], "toothbrush");
    sdx_labels_deinit(&labels);
}

static void test_draw(void **state)
{
    (void)state;
    sdx_image image;
    sdx_vision_fault fault = {""};
    sdx_box items[] = {{10, 30, 90, 90, 0.9f, 0}};
    const sdx_boxes boxes = {1, 1, items};
    const sdx_labels none = {0};
    for (int channels = 1; channels <= 3; channels += 2) {
        assert_int_equal(sdx_image_init(&image, 100, 100, channels, &fault), SDX_OK);
        assert_int_equal(sdx_draw_boxes(&image, &boxes, &none, &fault), SDX_OK);
        size_t c = (size_t)channels;
        assert_true(image.pixels[(60 * 100 + 10) * c] > 200);   /* on the left side */
        assert_int_equal(image.pixels[(60 * 100 + 50) * c], 0); /* inside */
        assert_int_equal(image.pixels[(95 * 100 + 50) * c], 0); /* below */
        sdx_image_deinit(&image);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suppress), cmocka_unit_test(test_to_picture),
        cmocka_unit_test(test_heads),    cmocka_unit_test(test_guess),
        cmocka_unit_test(test_classify), cmocka_unit_test(test_labels),
        cmocka_unit_test(test_draw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
