/* SPDX-License-Identifier: Apache-2.0
 * A session that meets 300 input shapes holds no more memory at its peak than 1.1 times what a new
 * session needs for the largest of them alone: plans are dropped, buffers are reused. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sardonyx/sardonyx.h>

#include "make_model.h"

enum { CHANNELS = 8, SIDE_MAX = 96, BATCH_MAX = 4, RUNS = 300 };

/* x [N, 3, H, W] -> Conv 3x3 -> Relu -> Conv 3x3 -> Add -> y. */
static void make_dynamic(char *path, size_t size)
{
    static struct make m;
    static float w1[CHANNELS * 3 * 9], w2[CHANNELS * CHANNELS * 9];
    for (int i = 0; i < CHANNELS * 3 * 9; i++)
        w1[i] = (float)(i % 7 - 3) / 16;
    for (int i = 0; i < CHANNELS * CHANNELS * 9; i++)
        w2[i] = (float)(i % 5 - 2) / 32;
    make_init(&m);
    make_input(&m, "x", SDX_F32, 4, (int64_t[]){-1, 3, -1, -1});
    make_output(&m, "y", SDX_F32, -1, NULL);
    /* The three open lengths have names of their own. */
    m.dims[0][2].param = SDX_STR("H");
    m.dims[0][3].param = SDX_STR("W");
    make_initializer(&m, "w1", SDX_F32, 4, (int64_t[]){CHANNELS, 3, 3, 3}, w1, sizeof w1);
    make_initializer(&m, "w2", SDX_F32, 4, (int64_t[]){CHANNELS, CHANNELS, 3, 3}, w2, sizeof w2);
    make_node(&m, "Conv", "x w1 -> a");
    make_node(&m, "Relu", "a -> b");
    make_node(&m, "Conv", "b w2 -> c");
    make_node(&m, "Relu", "c -> d");
    make_node(&m, "Exp", "d -> y");
    make_write(&m, path, size);
}

static void run_shape(sdx_context *cx, sdx_session *session, int64_t n, int64_t h, int64_t w)
{
    static float pixels[BATCH_MAX * 3 * SIDE_MAX * SIDE_MAX];
    sdx_tensor *x = NULL, *y = NULL;
    assert_int_equal(sdx_tensor_view(cx, SDX_F32, 4, (int64_t[]){n, 3, h, w}, pixels, &x), SDX_OK);
    if (sdx_run(session, 1, &(sdx_feed){"x", x}, 1, NULL, &y)) fail_msg("%s", sdx_error(cx));
    assert_int_equal(sdx_tensor_count(y), n * CHANNELS * (h - 4) * (w - 4));
    sdx_tensor_destroy(y);
    sdx_tensor_destroy(x);
}

/* The peak of a context that runs `runs` shapes; the first is the largest when `runs` is 1. */
static size_t peak_of(const char *path, int runs)
{
    sdx_context_options options;
    sdx_context_options_init(&options);
    options.threads = 2;
    sdx_context *cx = sdx_context_create(&options);
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    if (sdx_model_open(cx, path, NULL, &model) || sdx_session_create(cx, model, NULL, &session))
        fail_msg("%s", sdx_error(cx));
    uint32_t seed = 12345;
    for (int i = 0; i < runs - 1; i++) {
        uint32_t r[3];
        for (int k = 0; k < 3; k++)
            r[k] = (seed = seed * 1664525 + 1013904223) >> 16;
        run_shape(cx, session, 1 + r[0] % BATCH_MAX, 8 + r[1] % (SIDE_MAX - 7),
                  8 + r[2] % (SIDE_MAX - 7));
    }
    run_shape(cx, session, BATCH_MAX, SIDE_MAX, SIDE_MAX);
    size_t peak = sdx_memory_peak(cx);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    sdx_context_destroy(cx);
    return peak;
}

static void test_many_shapes(void **state)
{
    (void)state;
    char path[80];
    make_dynamic(path, sizeof path);
    size_t alone = peak_of(path, 1), many = peak_of(path, RUNS);
    printf("peak: %zu bytes for the largest shape alone, %zu for %d shapes\n", alone, many, RUNS);
    assert_true(many <= alone + alone / 10);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
