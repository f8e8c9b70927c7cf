/* SPDX-License-Identifier: Apache-2.0
 * Reading the files that tests/vision/make_golden.py writes. Tests run in the source folder. */
#ifndef SDX_TEST_VISION_GOLDEN_H
#define SDX_TEST_VISION_GOLDEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../vision/include/sardonyx/vision.h"

#define GOLDEN "tests/vision/golden/"

struct golden {
    sdx_image source, result;
};

static inline void golden_image(FILE *file, sdx_image *image, const int32_t shape[3])
{
    sdx_vision_fault fault;
    assert_int_equal(sdx_image_init(image, shape[0], shape[1], shape[2], &fault), SDX_OK);
    size_t size = (size_t)shape[0] * (size_t)shape[1] * (size_t)shape[2];
    assert_int_equal(fread(image->pixels, 1, size, file), size);
}

static inline struct golden golden_load(const char *name)
{
    char path[200];
    struct golden golden;
    int32_t shapes[2][3];
    snprintf(path, sizeof path, GOLDEN "%s.golden", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(shapes, 1, sizeof shapes, file), sizeof shapes);
    golden_image(file, &golden.source, shapes[0]);
    golden_image(file, &golden.result, shapes[1]);
    fclose(file);
    return golden;
}

static inline void golden_free(struct golden *golden)
{
    sdx_image_deinit(&golden->source);
    sdx_image_deinit(&golden->result);
}

/* The largest difference of any value; the shapes must agree. */
static inline int image_difference(const sdx_image *a, const sdx_image *b)
{
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->height, b->height);
    assert_int_equal(a->channels, b->channels);
    int most = 0;
    size_t size = (size_t)a->width * (size_t)a->height * (size_t)a->channels;
    for (size_t i = 0; i < size; i++) {
        int d = abs(a->pixels[i] - b->pixels[i]);
        if (d > most) most = d;
    }
    return most;
}

#endif
