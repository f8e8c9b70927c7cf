/* SPDX-License-Identifier: Apache-2.0
 * Direct convolution over blocked channels. The order of work in a part: pass over input channels,
 * panel of output channels, tiles of pixels. A pass reads its strip of the image in place or from a
 * patch that has the padding around it, both small enough for L2. */
#include "kernels/conv_block_direct.h"

#include <string.h>

#include "kernels/conv_gather.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    FIRST_CHANNELS = 4, /* so many are read from plain layout */
    PASS_LEAST = 512,   /* shorter sums pay too much for the sums they begin at */
    STRIP_LEAST = 96    /* pixels that make reading the weights worth while */
};

/* How a shape is cut, and where its input lies. A "unit" is what the channels of one block take of
 * a pixel: the lanes, or 1 in plain layout. */
struct plan {
    struct sdx_conv_shape s; /* a pointwise one is a single row of pixels */
    bool first, in_place;
    int64_t lanes, unit;
    int64_t icg, ocg;           /* channels of a group */
    int64_t taps;               /* kernel positions */
    int64_t in_blocks, tail;    /* of a group; channels of the last one when it is not full */
    int64_t out_blocks, panels; /* of a group */
    int64_t pass_blocks;
    int64_t rows, cols, row_strips, col_strips; /* pixels of a strip: at most rows * cols */
    int64_t splits, split_panels;
    int64_t row_step, patch_rows, patch_cols; /* rows between two kernel rows */
};

static int64_t span(const struct sdx_conv_shape *s, int axis)
{
    return (s->kernel[axis] - 1) * s->dilation[axis] + 1;
}
/* Rows of a patch: all that lie between the first and the last one, or, when the dilation leaves
 * gaps, those of each kernel row. */
static void measure_patch(struct plan *p)
{
    const int64_t apart = (p->rows - 1) * p->s.stride[1] + 1;
    p->row_step = conv_least(p->s.dilation[1], apart);
    p->patch_rows = apart + (p->s.kernel[1] - 1) * p->row_step;
    p->patch_cols = (p->cols - 1) * p->s.stride[2] + span(&p->s, 2);
}
static int64_t patch_block(const struct plan *p) /* floats of an input block */
{
    return p->s.kernel[0] * p->patch_rows * p->patch_cols * p->unit;
}
/* What a strip of one block reads, in bytes; rows that a stride jumps over do not count. */
static int64_t strip_bytes(struct plan *p, int64_t rows, int64_t cols)
{
    p->rows = rows;
    p->cols = cols;
    measure_patch(p);
    int64_t floats = patch_block(p);
    if (p->in_place && span(&p->s, 1) < p->s.stride[1])
        floats = floats / p->patch_rows * (rows * p->s.kernel[1]);
    return floats * (int64_t)sizeof(float);
}

/* The largest strip of whole rows, or of a part of one row, whose pass fits. */
static void cut_strip(struct plan *p, int64_t bytes)
{
    const struct sdx_conv_shape *s = &p->s;
    const int64_t most = sdx_kernel_tuning()->block_pixels;
    p->col_strips = conv_divide_up(s->out[2], most);
    int64_t cols = conv_divide_up(s->out[2], p->col_strips);
    while (cols > STRIP_LEAST && strip_bytes(p, 1, cols) * p->pass_blocks > bytes)
        cols = conv_divide_up(s->out[2], ++p->col_strips);
    int64_t rows = 1;
    if (p->col_strips == 1) {
        const int64_t one = strip_bytes(p, 1, cols), more = strip_bytes(p, 2, cols) - one;
        rows = 1 + (bytes / p->pass_blocks - one) / conv_most(more, 1);
        rows = conv_most(1, conv_least(conv_least(rows, most / cols), s->out[1]));
    }
    p->row_strips = conv_divide_up(s->out[1], rows);
    p->rows = conv_divide_up(s->out[1], p->row_strips);
    p->cols = cols;
}
static void cut_passes(struct plan *p)
{
    const struct sdx_kernel_tuning *t = sdx_kernel_tuning();
    const int64_t block_k = p->taps * (p->first ? 1 : p->lanes), pixels = p->s.out[1] * p->s.out[2];
    int64_t passes = conv_divide_up(p->in_blocks * block_k, t->whole_k);
    for (;; passes *= 2) {
        p->pass_blocks = p->first ? p->in_blocks : conv_divide_up(p->in_blocks, passes);
        cut_strip(p, t->block_bytes);
        if (p->rows * p->cols >= conv_least(STRIP_LEAST, pixels) || p->first ||
            p->pass_blocks / 2 * block_k < PASS_LEAST)
            break;
    }
}
/* Enough parts for a few threads: smaller strips first, then ranges of panels. */
static void cut_parts(struct plan *p)
{
    const int64_t wanted = sdx_kernel_tuning()->block_parts;
    const int64_t planes = p->s.batch * p->s.groups * p->s.out[0];
    int64_t strips = p->row_strips * p->col_strips;
    while (planes * strips < wanted && p->rows * p->cols >= 2 * STRIP_LEAST) {
        if (p->rows > 1) {
            p->rows = conv_divide_up(p->s.out[1], ++p->row_strips);
            p->row_strips = conv_divide_up(p->s.out[1], p->rows);
        } else {
            p->cols = conv_divide_up(p->s.out[2], ++p->col_strips);
            p->col_strips = conv_divide_up(p->s.out[2], p->cols);
        }
        strips = p->row_strips * p->col_strips;
    }
    p->splits = conv_least(p->panels, conv_divide_up(wanted, planes * strips));
    p->split_panels = conv_divide_up(p->panels, p->splits);
    p->splits = conv_divide_up(p->panels, p->split_panels);
}
static struct plan plan_of(const struct sdx_conv_shape *shape)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    const struct conv_sizes z = conv_sizes(shape);
    struct plan p = {.s = *shape, .icg = z.icg, .ocg = z.ocg, .taps = z.taps};
    p.first = sdx_direct_block_is_first(shape);
    p.in_place = conv_is_unpadded(shape);
    p.lanes = table->lanes;
    p.unit = p.first ? 1 : p.lanes;
    if (conv_is_pointwise(shape)) {
        p.s.in[2] = p.s.out[2] = z.pixels;
        p.s.in[0] = p.s.in[1] = p.s.out[0] = p.s.out[1] = 1;
    }
    p.in_blocks = conv_divide_up(p.icg, p.unit);
    p.tail = p.icg % p.unit;
    p.out_blocks = conv_divide_up(p.ocg, p.lanes);
    p.panels = conv_divide_up(p.out_blocks, table->vectors);
    cut_passes(&p);
    cut_parts(&p);
    measure_patch(&p);
    return p;
}
/* First block of a panel; widths differ by one at most. */
static int64_t panel_begin(const struct plan *p, int64_t panel)
{
    const int64_t width = p->out_blocks / p->panels, wider = p->out_blocks % p->panels;
    return panel * width + conv_least(panel, wider);
}
static int64_t channels_before(const struct plan *p, int64_t block)
{
    return conv_least(block * p->unit, p->icg);
}

bool sdx_direct_block_fits(const struct sdx_conv_shape *s)
{
    if (s->groups < 1 || s->ic < s->groups || s->oc < s->groups) return false;
    const struct conv_sizes z = conv_sizes(s);
    if (z.pixels < 1 || z.pixels_in < 1 || z.taps < 1) return false;
    const int64_t lanes = sdx_kernel_tables()->block.lanes;
    return s->groups == 1 || (z.icg % lanes == 0 && z.ocg % lanes == 0);
}
bool sdx_direct_block_is_first(const struct sdx_conv_shape *s)
{
    return s->groups == 1 && s->ic <= FIRST_CHANNELS;
}

size_t sdx_direct_block_packed_size(const struct sdx_conv_shape *s)
{
    const struct plan p = plan_of(s);
    return (size_t)(s->groups * p.out_blocks * p.lanes * p.icg * p.taps) * sizeof(float);
}
/* [group][panel][block][kernel position][channel of the block][channel of the panel]: a pass reads
 * a range of blocks of a panel, so passes may differ from one image size to the next. */
void sdx_direct_block_pack(const struct sdx_conv_shape *s, const float *weights, float *packed)
{
    const struct plan p = plan_of(s);
    for (int64_t g = 0; g < s->groups; g++, weights += p.ocg * p.icg * p.taps)
        for (int64_t panel = 0; panel < p.panels; panel++) {
            const int64_t o0 = panel_begin(&p, panel) * p.lanes;
            const int64_t o1 = panel_begin(&p, panel + 1) * p.lanes;
            for (int64_t b = 0; b < p.in_blocks; b++)
                for (int64_t tap = 0; tap < p.taps; tap++)
                    for (int64_t c = channels_before(&p, b); c < channels_before(&p, b + 1); c++)
                        for (int64_t o = o0; o < o1; o++)
                            *packed++ = o < p.ocg ? weights[(o * p.icg + c) * p.taps + tap] : 0.0f;
        }
}
int64_t sdx_direct_block_parts(const struct sdx_conv_shape *s)
{
    const struct plan p = plan_of(s);
    return s->batch * s->groups * p.s.out[0] * p.row_strips * p.col_strips * p.splits;
}

/* Scratch of a part: places of its pixels in the input and in the output, offsets of the runs of a
 * pass, the patch. */
struct room {
    int64_t *from, *to, *runs;
    float *patch;
    size_t size;
};
static size_t whole_lines(int64_t bytes)
{
    return ((size_t)bytes + 63) / 64 * 64;
}
static struct room room_of(const struct plan *p, void *scratch)
{
    struct room r;
    char *at = scratch;
    const int64_t word = sizeof(int64_t);
    const size_t pixels = whole_lines(p->rows * p->cols * word);
    const size_t runs = whole_lines(p->pass_blocks * p->s.kernel[0] * p->s.kernel[1] * word);
    const size_t patch =
        p->in_place ? 0 : whole_lines(p->pass_blocks * patch_block(p) * (int64_t)sizeof(float));
    r.from = scratch;
    r.to = (void *)(at + pixels);
    r.runs = (void *)(at + 2 * pixels);
    r.patch = (void *)(at + 2 * pixels + runs);
    r.size = 2 * pixels + runs + patch;
    return r;
}
size_t sdx_direct_block_scratch(const struct sdx_conv_shape *s)
{
    const struct plan p = plan_of(s);
    char none[1];
    return room_of(&p, none).size;
}

/* The strip in hand. */
struct strip {
    int64_t image, group, od, row0, row1, col0, col1, panel0, panel1;
};
static struct strip strip_of(const struct plan *p, int64_t part)
{
    struct strip t;
    const int64_t split = part % p->splits;
    part /= p->splits;
    const int64_t col = part % p->col_strips;
    part /= p->col_strips;
    const int64_t row = part % p->row_strips;
    part /= p->row_strips;
    t.od = part % p->s.out[0];
    part /= p->s.out[0];
    t.group = part % p->s.groups;
    t.image = part / p->s.groups;
    t.panel0 = split * p->split_panels;
    t.panel1 = conv_least(p->panels, t.panel0 + p->split_panels);
    t.row0 = conv_least(p->s.out[1], row * p->rows);
    t.row1 = conv_least(p->s.out[1], t.row0 + p->rows);
    t.col0 = conv_least(p->s.out[2], col * p->cols);
    t.col1 = conv_least(p->s.out[2], t.col0 + p->cols);
    return t;
}
/* Places of the pixels, for an input that begins at the first one's. Returns their number. */
static int64_t place_pixels(const struct plan *p, const struct strip *t, const struct room *room)
{
    const struct sdx_conv_shape *s = &p->s;
    const int64_t pitch = (p->in_place ? s->in[2] : p->patch_cols) * s->stride[1] * p->unit;
    const int64_t step = s->stride[2] * p->unit;
    int64_t count = 0;
    for (int64_t r = t->row0; r < t->row1; r++) {
        const int64_t from = (r - t->row0) * pitch;
        const int64_t to = ((t->od * s->out[1] + r) * s->out[2] + t->col0) * p->lanes;
        for (int64_t c = 0; c < t->col1 - t->col0; c++, count++) {
            room->from[count] = from + c * step;
            room->to[count] = to + c * p->lanes;
        }
    }
    return count;
}
/* How the job walks the blocks b0..b1: a run for each of their kernel rows. A kernel of one
 * position has its blocks for chunks instead: one run holds all full ones. */
static void place_runs(const struct plan *p, int64_t b0, int64_t b1, int64_t *runs,
                       struct sdx_conv_block_job *job)
{
    const struct sdx_conv_shape *s = &p->s;
    const int64_t cols = p->in_place ? s->in[2] : p->patch_cols;
    const int64_t row = (p->in_place ? s->dilation[1] : p->row_step) * cols;
    const int64_t plane = p->in_place ? s->dilation[0] * s->in[1] * cols : p->patch_rows * cols;
    const int64_t block = p->in_place ? s->in[0] * s->in[1] * cols : s->kernel[0] * plane;
    const int64_t whole = b1 * p->unit > p->icg ? b1 - b0 - 1 : b1 - b0;
    const bool one = p->taps == 1;
    const int64_t lines = s->kernel[0] * s->kernel[1];
    job->step = (one ? block : s->dilation[2]) * p->unit;
    job->chunks = one ? whole : s->kernel[2];
    job->tail_chunks = s->kernel[2];
    job->runs = one ? whole > 0 : whole * lines;
    job->tail_runs = (b1 - b0 - whole) * lines;
    job->tail = p->tail;
    if (p->first) { /* the kernel positions of a row are neighbours */
        job->tail_runs = (b1 - b0) * lines;
        job->runs = 0;
        job->tail = s->dilation[2] == 1 ? s->kernel[2] : 1;
        job->tail_chunks = s->dilation[2] == 1 ? 1 : s->kernel[2];
    }
    for (int64_t b = 0; b < b1 - b0; b++) {
        if (one && !p->first && b > 0 && b < whole) continue;
        for (int64_t d = 0; d < s->kernel[0]; d++)
            for (int64_t h = 0; h < s->kernel[1]; h++)
                *runs++ = (b * block + d * plane + h * row) * p->unit;
    }
}

static void copy_row(float *to, const float *row, int64_t first, int64_t count, int64_t size,
                     int64_t unit)
{
    int64_t lo, hi;
    conv_valid(first, 1, size, count, &lo, &hi);
    memset(to, 0, (size_t)(lo * unit) * sizeof(float));
    if (hi > lo) memcpy(to + lo * unit, row + (first + lo) * unit, (size_t)((hi - lo) * unit) * 4);
    memset(to + hi * unit, 0, (size_t)((count - hi) * unit) * sizeof(float));
}
/* x: the first block of the pass. */
static void copy_patch(const struct plan *p, const struct strip *t, const float *x, int64_t blocks,
                       float *to)
{
    const struct sdx_conv_shape *s = &p->s;
    const int64_t ih0 = t->row0 * s->stride[1] - s->pad_begin[1];
    const int64_t iw0 = t->col0 * s->stride[2] - s->pad_begin[2];
    const int64_t pitch = p->patch_cols * p->unit, plane = s->in[1] * s->in[2] * p->unit;
    for (int64_t b = 0; b < blocks; b++, x += s->in[0] * plane)
        for (int64_t d = 0; d < s->kernel[0]; d++) {
            const int64_t id = t->od * s->stride[0] + d * s->dilation[0] - s->pad_begin[0];
            for (int64_t r = 0; r < p->patch_rows; r++, to += pitch) {
                const int64_t k = conv_least(r / p->row_step, s->kernel[1] - 1);
                const int64_t ih = ih0 + k * (s->dilation[1] - p->row_step) + r;
                const bool inside = id >= 0 && id < s->in[0] && ih >= 0 && ih < s->in[1];
                copy_row(to, inside ? x + id * plane + ih * s->in[2] * p->unit : x, iw0,
                         p->patch_cols, inside ? s->in[2] : 0, p->unit);
            }
        }
}

enum { MOST_PANEL = 64 }; /* channels */

void sdx_direct_block_part(const struct sdx_conv_shape *shape, const float *x, const float *packed,
                           float *y, const struct sdx_epilogue *e, int64_t part, void *scratch)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    const struct plan p = plan_of(shape);
    const struct sdx_conv_shape *s = &p.s;
    const struct strip t = strip_of(&p, part);
    const struct room room = room_of(&p, scratch);
    const int64_t pixels_in = s->in[0] * s->in[1] * s->in[2] * p.unit;
    const int64_t pixels_out = s->out[0] * s->out[1] * s->out[2] * p.lanes;
    const int64_t to = (t.image * s->groups + t.group) * p.out_blocks * pixels_out;
    x += (t.image * s->groups + t.group) * p.in_blocks * pixels_in;
    packed += t.group * p.out_blocks * p.lanes * p.icg * p.taps;
    struct sdx_conv_block_job job = {.pixels = place_pixels(&p, &t, &room),
                                     .from = room.from,
                                     .to = room.to,
                                     .run = room.runs,
                                     .y_step = pixels_out,
                                     .act = e->act,
                                     .a = e->a,
                                     .b = e->b};
    if (job.pixels <= 0) return;
    for (int64_t b0 = 0; b0 < p.in_blocks; b0 += p.pass_blocks) {
        const int64_t b1 = conv_least(p.in_blocks, b0 + p.pass_blocks);
        const float *from = x + b0 * pixels_in;
        place_runs(&p, b0, b1, room.runs, &job);
        if (p.in_place) {
            job.x = from + (((t.od * s->stride[0] - s->pad_begin[0]) * s->in[1] +
                             t.row0 * s->stride[1] - s->pad_begin[1]) *
                                s->in[2] +
                            t.col0 * s->stride[2] - s->pad_begin[2]) *
                               p.unit;
        } else {
            copy_patch(&p, &t, from, b1 - b0, room.patch);
            job.x = room.patch;
        }
        job.last = b1 == p.in_blocks;
        for (int64_t panel = t.panel0; panel < t.panel1; panel++) {
            const int64_t block = panel_begin(&p, panel), o0 = block * p.lanes;
            const int64_t vectors = panel_begin(&p, panel + 1) - block;
            float bias[MOST_PANEL] = {0};
            if (b0 == 0 && e->bias_row)
                memcpy(bias, e->bias_row + t.group * p.ocg + o0,
                       (size_t)conv_least(vectors * p.lanes, p.ocg - o0) * sizeof(float));
            job.bias = b0 == 0 ? bias : NULL;
            job.weights =
                packed + (o0 * p.icg + channels_before(&p, b0) * vectors * p.lanes) * p.taps;
            job.y = y + to + block * pixels_out;
            job.residual = e->residual ? e->residual + to + block * pixels_out : NULL;
            table->f32_panel((int)vectors, &job);
        }
    }
}
