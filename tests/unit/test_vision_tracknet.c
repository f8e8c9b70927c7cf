/* SPDX-License-Identifier: Apache-2.0
 * vision/tracknet.c and vision/inpaint.c with models that hand their input on: the heat map of a
 * frame is its difference from the background, so positions are known. The numbers of real models
 * are in tests/vision/test_tracknet.py. */
#include "unit.h"

#include "make_model.h"

#include <sardonyx/vision.h>

enum { WIDTH = 1024, HEIGHT = 576, FRAMES = 12, WINDOW = 4 };

/* op(frames) -> heat, both [1, WINDOW, 288, 512]. */
static void write_tracknet(char *path, size_t size)
{
    static const int64_t dims[4] = {1, WINDOW, SDX_TRACKNET_HEIGHT, SDX_TRACKNET_WIDTH};
    static struct make m;
    make_init(&m);
    make_input(&m, "frames", SDX_F32, 4, dims);
    make_output(&m, "heat", SDX_F32, 4, dims);
    make_node(&m, "Relu", "frames -> heat");
    make_write(&m, path, size);
}

/* coords + mask: a gap becomes the corner, (1, 1). */
static void write_inpaint(char *path, size_t size)
{
    static const int64_t coords[3] = {2, WINDOW, 2}, mask[3] = {2, WINDOW, 1};
    static struct make m;
    make_init(&m);
    make_input(&m, "coords", SDX_F32, 3, coords);
    make_input(&m, "mask", SDX_F32, 3, mask);
    make_output(&m, "filled", SDX_F32, 3, coords);
    make_node(&m, "Add", "coords mask -> filled");
    make_write(&m, path, size);
}

/* A grey picture with a block of 2 x 2 at (40 i + 6, 20 i + 4). */
static void draw(uint8_t *bgr, int i)
{
    memset(bgr, 100, (size_t)WIDTH * HEIGHT * 3);
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 6; x++)
            bgr[((size_t)(20 * i + 4 + y) * WIDTH + (size_t)(40 * i + 6)) * 3 + (size_t)x] = 160;
}

static void check(const sdx_track *track, int i)
{
    assert_int_equal(track->frame, i);
    assert_int_equal(track->x, 40 * i + 6);
    assert_int_equal(track->y, 20 * i + 4);
    assert_int_equal(track->visibility, 1);
}

static void test_stream(void **state)
{
    (void)state;
    char path[128];
    write_tracknet(path, sizeof path);
    sdx_context *cx = sdx_context_create(NULL);
    sdx_vision_fault fault = {""};
    size_t size = (size_t)WIDTH * HEIGHT * 3;
    uint8_t *bgr = malloc(size), *median = malloc(size);
    memset(median, 100, size);
    sdx_tracknet_options options;
    sdx_tracknet_options_init(&options);
    options.median = median;
    options.median_width = WIDTH;
    options.median_height = HEIGHT;
    sdx_tracknet *t = NULL;
    if (sdx_tracknet_open(cx, path, &options, &t, &fault)) fail_msg("%s", fault.text);
    free(median);
    assert_int_equal(sdx_tracknet_seq_len(t), WINDOW);
    assert_string_equal(sdx_tracknet_bg_mode(t), "subtract");
    assert_null(sdx_tracknet_heat(t));
    for (int round = 0; round < 2; round++) {
        int out = 0;
        sdx_track track;
        for (int i = 0; i < FRAMES; i++) {
            bool found = false;
            draw(bgr, i);
            assert_int_equal(
                sdx_tracknet_push(t, bgr, WIDTH, HEIGHT, 0, NULL, &track, &found, &fault), SDX_OK);
            assert_int_equal(found, i >= WINDOW - 1);
            if (found) check(&track, out++);
        }
        assert_float_equal(sdx_tracknet_heat(t)[(20 * out - 16) / 2 * 512 + (40 * out - 34) / 2],
                           180 / 255.0, 1e-6);
        while (sdx_tracknet_flush(t, &track))
            check(&track, out++);
        assert_int_equal(out, FRAMES);
        sdx_tracknet_reset(t);
    }
    sdx_track_stats stats;
    sdx_tracknet_get_stats(t, &stats);
    assert_int_equal(stats.push_calls, 2 * FRAMES);
    assert_int_equal(stats.outputs, 2 * (FRAMES - WINDOW + 1));
    sdx_tracknet_destroy(t);
    sdx_context_destroy(cx);
    free(bgr);
    remove(path);
}

/* The median of 5 frames, in each of which the block is elsewhere, is the plain picture. */
static void test_warmup(void **state)
{
    (void)state;
    char path[128];
    write_tracknet(path, sizeof path);
    sdx_context *cx = sdx_context_create(NULL);
    sdx_vision_fault fault = {""};
    uint8_t *bgr = malloc((size_t)WIDTH * HEIGHT * 3);
    sdx_tracknet_options options;
    sdx_tracknet_options_init(&options);
    options.bg_mode = "subtract";
    options.median_warmup = 5;
    sdx_tracknet *t = NULL;
    if (sdx_tracknet_open(cx, path, &options, &t, &fault)) fail_msg("%s", fault.text);
    int out = 4;
    for (int i = 0; i < FRAMES; i++) {
        sdx_track track;
        bool found = false;
        draw(bgr, i);
        assert_int_equal(sdx_tracknet_push(t, bgr, WIDTH, HEIGHT, 3 * WIDTH, &(int64_t){i}, &track,
                                           &found, &fault),
                         SDX_OK);
        assert_int_equal(found, i >= 4 + WINDOW - 1);
        if (found) check(&track, out++);
    }
    sdx_tracknet_destroy(t);
    sdx_context_destroy(cx);
    free(bgr);
    remove(path);
}

static void test_inpaint(void **state)
{
    (void)state;
    char path[128];
    write_inpaint(path, sizeof path);
    sdx_context *cx = sdx_context_create(NULL);
    sdx_vision_fault fault = {""};
    sdx_inpaint_options options;
    sdx_inpaint_options_init(&options);
    options.scale_x = options.scale_y = 2;
    sdx_inpaint *p = NULL;
    if (sdx_inpaint_open(cx, path, &options, &p, &fault)) fail_msg("%s", fault.text);
    assert_int_equal(sdx_inpaint_seq_len(p), WINDOW);
    sdx_track filled;
    for (int i = 0; i < FRAMES; i++) {
        bool found = false;
        sdx_track track = {i, 64 * (i + 1), 32 * (i + 1), i % 3 != 0};
        assert_int_equal(sdx_inpaint_push(p, &track, &filled, &found, &fault), SDX_OK);
        assert_int_equal(found, i >= WINDOW - 1);
        if (!found) continue;
        bool gap = filled.frame % 3 == 0;
        assert_int_equal(filled.frame, i - (WINDOW - 1));
        assert_int_equal(filled.x, gap ? 1024 : 64 * (filled.frame + 1));
        assert_int_equal(filled.y, gap ? 576 : 32 * (filled.frame + 1));
    }
    int left = 0;
    for (; sdx_inpaint_flush(p, &filled); left++)
        assert_int_equal(filled.visibility, filled.frame % 3 != 0);
    assert_int_equal(left, WINDOW);
    sdx_inpaint_destroy(p);
    sdx_context_destroy(cx);
    remove(path);
}

static void test_refused(void **state)
{
    (void)state;
    sdx_context *cx = sdx_context_create(NULL);
    sdx_vision_fault fault = {""};
    sdx_tracknet *t = NULL;
    sdx_inpaint *p = NULL;
    assert_int_equal(sdx_tracknet_open(cx, "/no/such.onnx", NULL, &t, &fault), SDX_NOT_FOUND);
    assert_string_equal(fault.text, "ONNX model file not found: /no/such.onnx");
    assert_int_equal(sdx_inpaint_open(cx, "/no/such.onnx", NULL, &p, &fault), SDX_NOT_FOUND);
    assert_null(t);
    assert_null(p);
    sdx_tracknet_destroy(NULL);
    sdx_inpaint_destroy(NULL);
    sdx_context_destroy(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_warmup),
        cmocka_unit_test(test_inpaint),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
