/* SPDX-License-Identifier: Apache-2.0
 * Mixing neighbours as OpenCV does on 8 bits (modules/imgproc/src/resize.cpp): weights of 11 bits,
 * two exact shifts in the vertical pass. Where the places lie, the caller's taps say. */
#include "bilinear.h"

#include <math.h>

void sdx_tap_set(struct sdx_tap *tap, int at, int from, float rest)
{
    int last = from - 1;
    *tap = (struct sdx_tap){at < 0      ? 0
                            : at > last ? last
                                        : at,
                            at + 1 > last ? last : at + 1, (int)lrintf((1.0f - rest) * 2048),
                            (int)lrintf(rest * 2048)};
}

static void bilinear_row(const uint8_t *row, const struct sdx_tap *taps, int width, int channels,
                         int *out)
{
    for (int x = 0; x < width; x++)
        for (int c = 0; c < channels; c++)
            *out++ = row[taps[x].at * channels + c] * taps[x].w0 +
                     row[taps[x].next * channels + c] * taps[x].w1;
}

void sdx_bilinear_apply(const uint8_t *in, size_t stride, const struct sdx_tap *across,
                        const struct sdx_tap *down, const sdx_image *out, int *rows)
{
    size_t line = (size_t)out->width * (size_t)out->channels;
    int held[2] = {-1, -1};
    for (int y = 0; y < out->height; y++) {
        /* Source row r lives in slot r % 2, so that neighbours never share one. */
        int need[2] = {down[y].at, down[y].next};
        for (int k = 0; k < 2; k++)
            if (held[need[k] & 1] != need[k]) {
                bilinear_row(in + (size_t)need[k] * stride, across, out->width, out->channels,
                             rows + (size_t)(need[k] & 1) * line);
                held[need[k] & 1] = need[k];
            }
        const int *a = rows + (size_t)(need[0] & 1) * line;
        const int *b = rows + (size_t)(need[1] & 1) * line;
        uint8_t *to = out->pixels + (size_t)y * line;
        for (size_t i = 0; i < line; i++)
            to[i] = (uint8_t)((((down[y].w0 * (a[i] >> 4)) >> 16) +
                               ((down[y].w1 * (b[i] >> 4)) >> 16) + 2) >>
                              2);
    }
}
