/* SPDX-License-Identifier: Apache-2.0
 * Area averaging, equal to OpenCV's INTER_AREA on 8 bits to the last bit (its
 * modules/imgproc/src/resize.cpp says which sums are floats and how they are rounded).
 *
 * Blocks: an integer sum of whole pixels times 1 / count, rounded to even; 2 x 2 of 1, 3 or 4
 * channels rounds up. Cells: each row is summed across with float weights in the order of its
 * pixels, then rows are summed down; every order is OpenCV's, so nothing may be exchanged. Larger
 * on an axis: bilinear with other places. */
#include "area.h"
#include "bilinear.h"
#include "fault.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of 8 bits that a sum of 16 bits can hold. */
enum { ROWS_MAX = 257 };

typedef float v4f __attribute__((vector_size(16)));

/* Four lanes of the inner loop of cells: the channels of one pixel (three are padded to four), or
 * the same pixel of 4 rows of 1 channel or of 2 rows of 2. */
static int rows_at_once(int channels)
{
    return channels == 1 ? 4 : channels == 2 ? 2 : 1;
}

static int lanes_of_pixel(int channels)
{
    return channels == 3 ? 4 : channels;
}

/* ---- tables ---- */

/* OpenCV's cells of one axis: a weight below 0.001 of a pixel at either end is dropped. */
static void cells_make(struct sdx_area_cell *cells, float *weights, int from, int to, double step)
{
    for (int i = 0; i < to; i++) {
        double begin = i * step, end = begin + step;
        double wide = fmin(step, from - begin);
        int first = (int)ceil(begin), last = (int)floor(end);
        if (last > from - 1) last = from - 1;
        if (first > last) first = last;
        struct sdx_area_cell *cell = &cells[i];
        *cell = (struct sdx_area_cell){first, 0, weights};
        if (first - begin > 1e-3) {
            cell->first = first - 1;
            weights[cell->count++] = (float)((first - begin) / wide);
        }
        for (int k = first; k < last; k++)
            weights[cell->count++] = (float)(1.0 / wide);
        if (end - last > 1e-3)
            weights[cell->count++] = (float)(fmin(fmin(end - last, 1.0), wide) / wide);
        weights += cell->count;
    }
}

/* Places of a larger picture: those of a pixel's area, not of its centre. */
static void mix_make(struct sdx_tap *taps, int from, int to, bool whole)
{
    double ratio = (double)to / from, step = 1.0 / ratio;
    for (int i = 0; i < to; i++) {
        int at = (int)floor(i * step);
        float rest = (float)((i + 1) - (at + 1) * ratio);
        rest = rest <= 0 ? 0 : rest - floorf(rest);
        if (whole && at >= from - 1) rest = 0;
        sdx_tap_set(&taps[i], at, from, rest);
    }
}

static bool init_cells(struct sdx_area *area, double step_x, double step_y)
{
    /* A cell of `step` pixels cuts at most two more. */
    size_t across = (size_t)area->width * ((size_t)ceil(step_x) + 2);
    size_t down = (size_t)area->height * ((size_t)ceil(step_y) + 2);
    size_t group = (size_t)rows_at_once(area->channels);
    size_t lanes = (size_t)lanes_of_pixel(area->channels);
    size_t line = (size_t)area->width * lanes;
    area->across = calloc((size_t)area->width + (size_t)area->height, sizeof *area->across);
    area->weights = malloc((across + down) * sizeof *area->weights);
    /* In floats: a group of source rows (a pixel of padding), its sums across, an output row. */
    area->scratch =
        malloc((((size_t)area->in_width + 1) * 4 + group * line + line) * sizeof(float));
    if (area->across == NULL || area->weights == NULL || area->scratch == NULL) return false;
    area->down = area->across + area->width;
    cells_make(area->across, area->weights, area->in_width, area->width, step_x);
    cells_make(area->down, area->weights + across, area->in_height, area->height, step_y);
    return true;
}

static bool init_mix(struct sdx_area *area)
{
    area->taps = malloc(((size_t)area->width + (size_t)area->height) * sizeof *area->taps);
    area->scratch = malloc(2 * (size_t)area->width * (size_t)area->channels * sizeof(int));
    if (area->taps == NULL || area->scratch == NULL) return false;
    mix_make(area->taps, area->in_width, area->width, true);
    mix_make(area->taps + area->width, area->in_height, area->height, false);
    return true;
}

static bool init_blocks(struct sdx_area *area)
{
    size_t channels = (size_t)area->channels;
    area->scratch = malloc((size_t)area->width * channels * sizeof(uint32_t) +
                           (size_t)area->in_width * channels * sizeof(uint16_t));
    return area->scratch != NULL;
}

sdx_status sdx_area_init(struct sdx_area *area, int in_width, int in_height, int width, int height,
                         int channels, sdx_vision_fault *fault)
{
    *area = (struct sdx_area){.in_width = in_width,
                              .in_height = in_height,
                              .width = width,
                              .height = height,
                              .channels = channels};
    double step_x = 1.0 / ((double)width / in_width), step_y = 1.0 / ((double)height / in_height);
    area->step_x = (int)lrint(step_x);
    area->step_y = (int)lrint(step_y);
    bool ok = true;
    if (width == in_width && height == in_height) {
        area->way = SDX_AREA_COPY;
    } else if (step_x < 1 || step_y < 1) {
        area->way = SDX_AREA_MIX;
        ok = init_mix(area);
    } else if (fabs(step_x - area->step_x) < DBL_EPSILON &&
               fabs(step_y - area->step_y) < DBL_EPSILON) {
        area->way = SDX_AREA_BLOCKS;
        ok = init_blocks(area);
    } else {
        area->way = SDX_AREA_CELLS;
        ok = init_cells(area, step_x, step_y);
    }
    if (ok) return SDX_OK;
    sdx_area_deinit(area);
    return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory to resize a picture");
}

void sdx_area_deinit(struct sdx_area *area)
{
    free(area->across);
    free(area->weights);
    free(area->taps);
    free(area->scratch);
    *area = (struct sdx_area){0};
}

bool sdx_area_is_for(const struct sdx_area *area, int in_width, int in_height, int width,
                     int height, int channels)
{
    return area->in_width == in_width && area->in_height == in_height && area->width == width &&
           area->height == height && area->channels == channels;
}

/* ---- blocks ---- */

static void add_row(uint16_t *restrict sums, const uint8_t *restrict row, size_t line)
{
    for (size_t i = 0; i < line; i++)
        sums[i] = (uint16_t)(sums[i] + row[i]);
}

/* Inlined with constants for `channels`, and for the usual steps. */
static inline __attribute__((always_inline)) void add_blocks_of(uint32_t *restrict totals,
                                                                const uint16_t *restrict sums,
                                                                int width, int step, int channels)
{
    for (int x = 0; x < width; x++)
        for (int c = 0; c < channels; c++) {
            uint32_t total = 0;
            for (int k = 0; k < step; k++)
                total +=
                    sums[((size_t)x * (size_t)step + (size_t)k) * (size_t)channels + (size_t)c];
            totals[(size_t)x * (size_t)channels + (size_t)c] += total;
        }
}

static void add_blocks(uint32_t *totals, const uint16_t *sums, int width, int step, int channels)
{
    if (channels == 3 && step == 2)
        add_blocks_of(totals, sums, width, 2, 3);
    else if (channels == 3 && step == 3)
        add_blocks_of(totals, sums, width, 3, 3);
    else if (channels == 3)
        add_blocks_of(totals, sums, width, step, 3);
    else if (channels == 1)
        add_blocks_of(totals, sums, width, step, 1);
    else
        add_blocks_of(totals, sums, width, step, channels);
}

static void blocks_apply(const struct sdx_area *area, const uint8_t *in, size_t stride,
                         uint8_t *out)
{
    size_t in_line = (size_t)area->in_width * (size_t)area->channels;
    size_t line = (size_t)area->width * (size_t)area->channels;
    uint32_t *totals = area->scratch;
    uint16_t *sums = (uint16_t *)(totals + line);
    bool up = area->step_x == 2 && area->step_y == 2 && area->channels != 2;
    float share = 1.0f / (float)(area->step_x * area->step_y);
    for (int y = 0; y < area->height; y++, out += line) {
        memset(totals, 0, line * sizeof *totals);
        for (int left = area->step_y; left > 0; left -= ROWS_MAX) {
            memset(sums, 0, in_line * sizeof *sums);
            for (int k = 0; k < left && k < ROWS_MAX; k++, in += stride)
                add_row(sums, in, in_line);
            add_blocks(totals, sums, area->width, area->step_x, area->channels);
        }
        if (up)
            for (size_t i = 0; i < line; i++)
                out[i] = (uint8_t)((totals[i] + 2) >> 2);
        else
            for (size_t i = 0; i < line; i++)
                out[i] = (uint8_t)lrintf((float)totals[i] * share);
    }
}

/* ---- cells ---- */

/* Source rows from `y` on as floats, four lanes a pixel (three channels stay packed; a lane more is
 * read of them). Rows below the picture repeat its last. */
static void load_rows(const struct sdx_area *area, const uint8_t *in, size_t stride, int y,
                      float *restrict to)
{
    int last = area->in_height - 1;
    size_t width = (size_t)area->in_width;
    const uint8_t *a = in + (size_t)y * stride;
    if (area->channels >= 3) {
        for (size_t i = 0; i < width * (size_t)area->channels; i++)
            to[i] = a[i];
        return;
    }
    const uint8_t *b = in + (size_t)(y + 1 < last ? y + 1 : last) * stride;
    if (area->channels == 2) {
        for (size_t x = 0; x < width; x++, to += 4) {
            to[0] = a[2 * x];
            to[1] = a[2 * x + 1];
            to[2] = b[2 * x];
            to[3] = b[2 * x + 1];
        }
        return;
    }
    const uint8_t *c = in + (size_t)(y + 2 < last ? y + 2 : last) * stride;
    const uint8_t *d = in + (size_t)(y + 3 < last ? y + 3 : last) * stride;
    for (size_t x = 0; x < width; x++, to += 4) {
        to[0] = a[x];
        to[1] = b[x];
        to[2] = c[x];
        to[3] = d[x];
    }
}

static inline v4f load_lanes(const float *from)
{
    v4f value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Sums of the cells of a row, or of a group of them: one row of output after the other. */
static void sum_across(const struct sdx_area *area, const float *rows, float *out)
{
    size_t pixel = area->channels == 3 ? 3 : 4;
    size_t lanes = (size_t)lanes_of_pixel(area->channels);
    size_t line = (size_t)area->width * lanes;
    for (int x = 0; x < area->width; x++) {
        const struct sdx_area_cell *cell = &area->across[x];
        const float *p = rows + (size_t)cell->first * pixel;
        v4f sum = load_lanes(p) * cell->weights[0];
        for (int k = 1; k < cell->count; k++)
            sum += load_lanes(p + (size_t)k * pixel) * cell->weights[k];
        float four[4];
        memcpy(four, &sum, sizeof four);
        for (size_t k = 0; k < 4; k++)
            out[k / lanes * line + (size_t)x * lanes + k % lanes] = four[k];
    }
}

static void first_row(float *restrict sums, const float *restrict row, size_t line, float weight)
{
    for (size_t i = 0; i < line; i++)
        sums[i] = row[i] * weight;
}

static void next_row(float *restrict sums, const float *restrict row, size_t line, float weight)
{
    for (size_t i = 0; i < line; i++)
        sums[i] += row[i] * weight;
}

/* Rounds to even by what a float of 1.5 * 2^23 has as its last bit: for sums of 0 to 255. */
static inline uint8_t round_byte(float value)
{
    float moved = value + 12582912.0f;
    uint32_t bits;
    memcpy(&bits, &moved, sizeof bits);
    return (uint8_t)bits;
}

static void store_row(const float *restrict sums, size_t width, int channels, uint8_t *restrict out)
{
    if (channels != 3) {
        for (size_t i = 0; i < width * (size_t)channels; i++)
            out[i] = round_byte(sums[i]);
        return;
    }
    for (size_t x = 0; x < width; x++)
        for (size_t c = 0; c < 3; c++)
            out[3 * x + c] = round_byte(sums[4 * x + c]);
}

static void cells_apply(const struct sdx_area *area, const uint8_t *in, size_t stride, uint8_t *out)
{
    size_t line = (size_t)area->width * (size_t)lanes_of_pixel(area->channels);
    int group = rows_at_once(area->channels), held = -1;
    float *rows = area->scratch;
    float *across = rows + ((size_t)area->in_width + 1) * 4;
    float *sums = across + (size_t)group * line;
    for (int y = 0; y < area->height; y++) {
        const struct sdx_area_cell *cell = &area->down[y];
        for (int k = 0; k < cell->count; k++) {
            int row = cell->first + k;
            if (row / group != held) {
                held = row / group;
                load_rows(area, in, stride, held * group, rows);
                sum_across(area, rows, across);
            }
            const float *from = across + (size_t)(row % group) * line;
            if (k == 0)
                first_row(sums, from, line, cell->weights[k]);
            else
                next_row(sums, from, line, cell->weights[k]);
        }
        store_row(sums, (size_t)area->width, area->channels, out);
        out += (size_t)area->width * (size_t)area->channels;
    }
}

/* ---- all ---- */

void sdx_area_apply(struct sdx_area *area, const uint8_t *in, size_t stride, uint8_t *out)
{
    size_t line = (size_t)area->width * (size_t)area->channels;
    switch (area->way) {
    case SDX_AREA_COPY:
        for (int y = 0; y < area->height; y++)
            memcpy(out + (size_t)y * line, in + (size_t)y * stride, line);
        break;
    case SDX_AREA_BLOCKS: blocks_apply(area, in, stride, out); break;
    case SDX_AREA_CELLS: cells_apply(area, in, stride, out); break;
    case SDX_AREA_MIX: {
        sdx_image to = {area->width, area->height, area->channels, out};
        sdx_bilinear_apply(in, stride, area->taps, area->taps + area->width, &to, area->scratch);
        break;
    }
    }
}

sdx_status sdx_image_resize_area(const sdx_image *image, int width, int height, sdx_image *out,
                                 sdx_vision_fault *fault)
{
    struct sdx_area area = {0};
    sdx_status status = sdx_image_init(out, width, height, image->channels, fault);
    if (!status)
        status = sdx_area_init(&area, image->width, image->height, width, height, image->channels,
                               fault);
    if (!status)
        sdx_area_apply(&area, image->pixels, (size_t)image->width * (size_t)image->channels,
                       out->pixels);
    sdx_area_deinit(&area);
    if (status) sdx_image_deinit(out);
    return status;
}
