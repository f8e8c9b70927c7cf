/* SPDX-License-Identifier: Apache-2.0
 * Resizing of 8-bit pictures to the last bit as the tools do that models were trained with.
 *
 * Bilinear: OpenCV's INTER_LINEAR on 8 bits (modules/imgproc/src/resize.cpp): half-pixel centres
 * (weights and passes: bilinear.c), and the mean of 2 x 2 when both sides are halved exactly.
 * Antialias: Pillow's BILINEAR (src/libImaging/Resample.c): a triangle as wide as the step, weights
 * of 22 bits, horizontal pass first, rounded to 8 bits between the passes (Pillow up to 11; later
 * ones exchange the passes when that is cheaper).
 */
#include "bilinear.h"
#include "fault.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- bilinear ---- */

/* OpenCV puts the whole weight on the border's value across (`whole`), but shares it between the
 * border's row and itself down: the same value, another rounding. */
static void taps_make(struct sdx_tap *taps, int from, int to, bool whole)
{
    double step = 1.0 / ((double)to / from);
    for (int i = 0; i < to; i++) {
        float place = (float)((i + 0.5) * step - 0.5);
        int at = (int)floorf(place);
        float rest = place - (float)at;
        if (whole && (at < 0 || at >= from - 1)) rest = 0;
        sdx_tap_set(&taps[i], at, from, rest);
    }
}

static void halve(const sdx_image *in, sdx_image *out)
{
    size_t c = (size_t)in->channels, line = (size_t)in->width * c;
    uint8_t *to = out->pixels;
    for (int y = 0; y < out->height; y++)
        for (int x = 0; x < out->width; x++) {
            const uint8_t *p = in->pixels + 2 * (size_t)y * line + 2 * (size_t)x * c;
            for (size_t k = 0; k < c; k++)
                *to++ = (uint8_t)((p[k] + p[c + k] + p[line + k] + p[line + c + k] + 2) >> 2);
        }
}

static sdx_status bilinear(const sdx_image *in, sdx_image *out, sdx_vision_fault *fault)
{
    if (in->width == 2 * out->width && in->height == 2 * out->height) {
        halve(in, out);
        return SDX_OK;
    }
    struct sdx_tap *taps = calloc((size_t)out->width + (size_t)out->height, sizeof *taps);
    int *rows = calloc(2 * (size_t)out->width * (size_t)out->channels, sizeof *rows);
    bool ok = taps != NULL && rows != NULL;
    if (ok) {
        taps_make(taps, in->width, out->width, true);
        taps_make(taps + out->width, in->height, out->height, false);
        sdx_bilinear_apply(in->pixels, (size_t)in->width * (size_t)in->channels, taps,
                           taps + out->width, out, rows);
    }
    free(taps);
    free(rows);
    return ok ? SDX_OK : sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to resize a picture");
}

/* ---- antialias ---- */

enum { WEIGHT_BITS = 32 - 8 - 2 };

/* The weights of all output places of one axis: place i reads `count[i]` values from `first[i]`. */
struct filter {
    int width; /* room for weights of one place */
    int *first, *count, *weights;
};

static void filter_deinit(struct filter *f)
{
    free(f->first);
    free(f->count);
    free(f->weights);
}

static bool filter_init(struct filter *f, int from, int to)
{
    double step = (double)from / to, wide = step < 1.0 ? 1.0 : step;
    f->width = (int)ceil(wide) * 2 + 1;
    f->first = calloc((size_t)to, sizeof(int));
    f->count = calloc((size_t)to, sizeof(int));
    f->weights = calloc((size_t)to * (size_t)f->width, sizeof(int));
    double *exact = calloc((size_t)f->width, sizeof(double));
    if (f->first == NULL || f->count == NULL || f->weights == NULL || exact == NULL) {
        free(exact);
        return false;
    }
    for (int i = 0; i < to; i++) {
        double centre = (i + 0.5) * step, sum = 0;
        int begin = (int)(centre - wide + 0.5), end = (int)(centre + wide + 0.5);
        if (begin < 0) begin = 0;
        if (end > from) end = from;
        for (int k = begin; k < end; k++) {
            double distance = fabs((k - centre + 0.5) * (1.0 / wide));
            exact[k - begin] = distance < 1.0 ? 1.0 - distance : 0.0;
            sum += exact[k - begin];
        }
        for (int k = 0; k < end - begin; k++)
            f->weights[(size_t)i * (size_t)f->width + (size_t)k] =
                (int)(0.5 + (sum != 0 ? exact[k] / sum : exact[k]) * (1 << WEIGHT_BITS));
        f->first[i] = begin;
        f->count[i] = end - begin;
    }
    free(exact);
    return true;
}

/* out[o][i][c] = sum over k of in[o][first + k][c] * weight, for `outer` rows of `from` places of
 * `inner` values. */
static void filter_apply(const struct filter *f, const uint8_t *in, size_t outer, int from, int to,
                         size_t inner, uint8_t *out)
{
    for (size_t o = 0; o < outer; o++, in += (size_t)from * inner)
        for (int i = 0; i < to; i++) {
            const int *weights = f->weights + (size_t)i * (size_t)f->width;
            const uint8_t *p = in + (size_t)f->first[i] * inner;
            for (size_t c = 0; c < inner; c++) {
                int sum = 1 << (WEIGHT_BITS - 1);
                for (int k = 0; k < f->count[i]; k++)
                    sum += p[(size_t)k * inner + c] * weights[k];
                sum >>= WEIGHT_BITS;
                *out++ = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
            }
        }
}

static sdx_status antialias(const sdx_image *in, sdx_image *out, sdx_vision_fault *fault)
{
    struct filter across = {0}, down = {0};
    size_t c = (size_t)in->channels;
    uint8_t *half = malloc((size_t)in->height * (size_t)out->width * c);
    bool ok = half != NULL && filter_init(&across, in->width, out->width) &&
              filter_init(&down, in->height, out->height);
    if (ok) {
        filter_apply(&across, in->pixels, (size_t)in->height, in->width, out->width, c, half);
        filter_apply(&down, half, 1, in->height, out->height, (size_t)out->width * c, out->pixels);
    }
    filter_deinit(&across);
    filter_deinit(&down);
    free(half);
    return ok ? SDX_OK : sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to resize a picture");
}

sdx_status sdx_image_resize(const sdx_image *image, int width, int height, sdx_resize how,
                            sdx_image *out, sdx_vision_fault *fault)
{
    sdx_status status = sdx_image_init(out, width, height, image->channels, fault);
    if (status) return status;
    if (width == image->width && height == image->height)
        memcpy(out->pixels, image->pixels,
               (size_t)width * (size_t)height * (size_t)image->channels);
    else
        status = how == SDX_RESIZE_ANTIALIAS ? antialias(image, out, fault)
                                             : bilinear(image, out, fault);
    if (status) sdx_image_deinit(out);
    return status;
}

sdx_status sdx_image_crop(const sdx_image *image, int left, int top, int width, int height,
                          uint8_t grey, sdx_image *out, sdx_vision_fault *fault)
{
    sdx_status status = sdx_image_init(out, width, height, image->channels, fault);
    if (status) return status;
    size_t c = (size_t)image->channels;
    memset(out->pixels, grey, (size_t)width * (size_t)height * c);
    int x0 = left < 0 ? -left : 0, x1 = image->width - left < width ? image->width - left : width;
    int y0 = top < 0 ? -top : 0, y1 = image->height - top < height ? image->height - top : height;
    for (int y = y0; y < y1 && x0 < x1; y++)
        memcpy(out->pixels + ((size_t)y * (size_t)width + (size_t)x0) * c,
               image->pixels + ((size_t)(y + top) * (size_t)image->width + (size_t)(x0 + left)) * c,
               (size_t)(x1 - x0) * c);
    return SDX_OK;
}
