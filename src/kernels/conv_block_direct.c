/* SPDX-License-Identifier: Apache-2.0
 * Direct convolution over blocked channels, with no copy of the image: output pixels that see the
 * same kernel positions within the image are a class with its own table of runs, so padding is
 * never read nor multiplied; only where that leaves many classes of few pixels, of a small image,
 * they see a copy with its padding. The order of work in a part: pass over input channels, panel of
 * output channels, class, tiles of pixels; what a pass reads of the strip is small enough for L2.
 */
#include "kernels/conv_block_direct.h"

#include <string.h>

#include "kernels/conv_gather.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    FIRST_CHANNELS = 4, /* so many are read from plain layout, or fewer than half of the lanes */
    PASS_LEAST = 512,   /* shorter sums pay too much for the sums they begin at */
    STRIP_LEAST = 96,   /* pixels that make reading the weights of one position worth while */
    STRIP_MORE = 384,   /* and those of many */
    HALVES_LEAST = 24,  /* pixels that two threads share */
    MOST_PANEL = 64,    /* channels */
    EVEN = 16,          /* parts, of which one more is much for a thread */
    STREAMS = 12,
    FRESH_PIXELS = 800, /* so many read a weight too seldom to keep it in the cache */
    LINE = 16,          /* floats */
    SMALL_PIXELS = 64,  /* of an output whose input may be copied, and floats of the copy */
    FIRST_PIXELS = 256, /* of a first layer's */
    SMALL_COPY = 64 << 10
};

/* How a shape is cut. A "unit" is what the channels of one block take of a pixel of the input: the
 * lanes, or 1 in plain layout. */
struct plan {
    struct sdx_conv_shape s; /* a pointwise one is a single row of pixels */
    bool first, padded;      /* s is that of a copy with its padding */
    int64_t lanes, unit;
    int64_t icg, ocg;           /* channels of a group */
    int64_t taps;               /* kernel positions */
    int64_t in_blocks, tail;    /* of a group; channels of the last one when it is not full */
    int64_t out_blocks, panels; /* of a group */
    int64_t pass_blocks;
    int64_t rows, cols, row_strips, col_strips; /* pixels of a strip: at most rows * cols, */
    int64_t images, image_strips;               /* of each of its images, at most so many */
    int64_t splits;
    int64_t bundle; /* groups of a part */
    int64_t y_from; /* the pixel of the output that y begins at */
};

/* What a strip reads of one block, in bytes; rows that no kernel position reads do not count. */
static int64_t strip_bytes(const struct plan *p, int64_t rows, int64_t cols)
{
    const struct sdx_conv_shape *s = &p->s;
    const int64_t span = (s->kernel[2] - 1) * s->dilation[2] + 1;
    const int64_t across = (cols - 1) * s->stride[2] + span;
    const int64_t more = conv_least(s->stride[1], s->kernel[1]) * (rows - 1);
    const int64_t down = conv_least(s->in[1], s->kernel[1] + more);
    return s->kernel[0] * down * conv_least(across, s->in[2]) * p->unit * (int64_t)sizeof(float);
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
    const int64_t least = conv_least(p->taps > 1 ? STRIP_MORE : STRIP_LEAST, pixels);
    int64_t passes = conv_divide_up(p->in_blocks * block_k, t->whole_k);
    for (;; passes *= 2) {
        p->pass_blocks = p->first ? p->in_blocks : conv_divide_up(p->in_blocks, passes);
        cut_strip(p, t->block_bytes);
        if (p->rows * p->cols >= least || p->first || p->pass_blocks / 2 * block_k < PASS_LEAST)
            break;
    }
}
/* Small images go together until each weight is read for enough pixels. */
static void join_images(struct plan *p)
{
    const int64_t pixels = p->rows * p->cols;
    const int64_t bytes = strip_bytes(p, p->rows, p->cols) * p->pass_blocks;
    int64_t most = conv_divide_up(STRIP_LEAST, pixels);
    most = conv_least(most, sdx_kernel_tuning()->block_bytes / conv_most(bytes, 1));
    if (p->row_strips * p->col_strips * p->s.out[0] > 1 || p->padded) most = 1;
    p->image_strips = conv_divide_up(p->s.batch, conv_most(most, 1));
    p->images = conv_divide_up(p->s.batch, conv_most(p->image_strips, 1));
}
static int64_t strips_of(const struct plan *p)
{
    return p->image_strips * p->s.groups * p->s.out[0] * p->row_strips * p->col_strips;
}
static void cut_once_more(struct plan *p)
{
    if (p->images > 1)
        p->images = conv_divide_up(p->s.batch, ++p->image_strips);
    else if (p->rows > 1)
        p->rows = conv_divide_up(p->s.out[1], ++p->row_strips);
    else
        p->cols = conv_divide_up(p->s.out[2], ++p->col_strips);
}
/* Enough parts for a few threads: smaller strips first, then ranges of panels. Panels first where
 * each strip decodes its weights, and where rows far apart make many small classes of a strip. A
 * few are an even number, which two threads share; what would be one part is cut though both halves
 * read all weights. */
static void cut_parts(struct plan *p)
{
    const double worth = conv_worth(&p->s);
    const int64_t most = sdx_kernel_tuning()->block_parts, wanted = conv_wanted(worth);
    const bool is_spread = p->s.dilation[1] > 1 && p->s.kernel[1] > 1;
    const bool by_panels = (p->s.half || is_spread) && strips_of(p) * p->panels >= wanted;
    while (!by_panels && strips_of(p) < wanted && p->images * p->rows * p->cols >= 2 * STRIP_LEAST)
        cut_once_more(p);
    const int64_t strips = strips_of(p), pixels = p->images * p->rows * p->cols;
    if (conv_even(strips, EVEN) != strips && pixels > 1) cut_once_more(p);
    if (strips * p->panels == 1 && wanted > 1 && pixels >= HALVES_LEAST) cut_once_more(p);
    p->splits = conv_divide_up(wanted, strips_of(p));
    if (strips_of(p) == 1) p->splits += p->splits % 2;
    p->splits = conv_least(p->panels, p->splits);
    const double each = worth / (double)(strips_of(p) * p->splits);
    p->bundle = each < 1 ? conv_least((int64_t)(1 / each), p->s.groups / most) : 1;
    p->bundle = conv_most(p->bundle, 1);
}
/* Panels one block narrower than tiles can be, as higher tiles read each weight less often; a few
 * are as wide, so that none is thin. */
static int64_t panels_of(int64_t blocks, int64_t most)
{
    const int64_t wide = conv_divide_up(blocks, most);
    return most < 3 ? wide : conv_most(wide, blocks / (most - 1));
}
/* A stretch of rows, or of columns, that see the same kernel positions lo..hi of their axis. */
struct stretch {
    int64_t begin, end, lo, hi;
    int64_t runs, tail_runs; /* of a stretch of rows in the pass in hand */
};
static struct stretch stretch_at(const struct sdx_conv_shape *s, int axis, int64_t at, int64_t end)
{
    const int64_t step = s->stride[axis], apart = s->dilation[axis];
    int64_t first = at * step - s->pad_begin[axis];
    struct stretch t = {.begin = at, .end = at + 1};
    conv_valid(first, apart, s->in[axis], s->kernel[axis], &t.lo, &t.hi);
    if (t.lo == 0 && t.hi == s->kernel[axis]) { /* up to the last that sees all */
        const int64_t last = s->in[axis] - 1 - (s->kernel[axis] - 1) * apart + s->pad_begin[axis];
        t.end = conv_least(end, last / step + 1);
        return t;
    }
    for (; t.end < end; t.end++) {
        int64_t lo, hi;
        first += step;
        conv_valid(first, apart, s->in[axis], s->kernel[axis], &lo, &hi);
        if (lo != t.lo || hi != t.hi) break;
    }
    return t;
}
/* The stretches of begin..end. Returns their number. */
static int64_t find_stretches(const struct sdx_conv_shape *s, int axis, int64_t begin, int64_t end,
                              struct stretch *found)
{
    int64_t count = 0;
    for (int64_t at = begin; at < end; at = found[count++].end)
        found[count] = stretch_at(s, axis, at, end);
    return count;
}
/* Cycles of a tile of so many pixels, two vectors wide, for one channel: of few the sums wait for
 * each other. */
static int64_t tile_cycles(int64_t pixels)
{
    return conv_most(pixels, 4);
}
/* Is a small image, or a copy of it with its padding, in fewer tiles of more pixels? */
static bool is_padded(const struct sdx_conv_shape *s, bool first)
{
    const int64_t pixels = s->out[1] * s->out[2], taps = s->kernel[1] * s->kernel[2];
    if (s->groups > 1 || s->in[0] > 1 || s->out[0] > 1 || s->kernel[0] > 1 || taps == 1)
        return false;
    if (pixels > (first ? FIRST_PIXELS : SMALL_PIXELS)) return false;
    if (s->ic * conv_window(s, 1, s->out[1]) * conv_window(s, 2, s->out[2]) > SMALL_COPY)
        return false;
    struct stretch rows[FIRST_PIXELS], cols[FIRST_PIXELS];
    const int64_t down = find_stretches(s, 1, 0, s->out[1], rows);
    const int64_t across = find_stretches(s, 2, 0, s->out[2], cols);
    int64_t cycles = 0;
    for (int64_t i = 0; i < down; i++)
        for (int64_t j = 0; j < across; j++)
            cycles += (rows[i].hi - rows[i].lo) * (cols[j].hi - cols[j].lo) *
                      tile_cycles((rows[i].end - rows[i].begin) * (cols[j].end - cols[j].begin));
    return 8 * taps * tile_cycles(pixels) < 7 * cycles;
}
static struct plan plan_of(const struct sdx_conv_shape *shape)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    const struct conv_sizes z = conv_sizes(shape);
    struct plan p = {.s = *shape, .icg = z.icg, .ocg = z.ocg, .taps = z.taps};
    p.first = sdx_direct_block_is_first(shape);
    p.lanes = table->lanes;
    p.unit = p.first ? 1 : p.lanes;
    if (sdx_conv_is_pointwise(shape)) {
        p.s.in[2] = p.s.out[2] = z.pixels;
        p.s.in[0] = p.s.in[1] = p.s.out[0] = p.s.out[1] = 1;
    }
    p.padded = is_padded(shape, p.first);
    for (int i = 1; i < 3 && p.padded; i++) {
        p.s.in[i] = conv_window(shape, i, shape->out[i]);
        p.s.pad_begin[i] = 0;
    }
    p.in_blocks = conv_divide_up(p.icg, p.unit);
    p.tail = p.icg % p.unit;
    p.out_blocks = conv_divide_up(p.ocg, p.lanes);
    p.panels = panels_of(p.out_blocks, table->vectors);
    cut_passes(&p);
    join_images(&p);
    cut_parts(&p);
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
    return s->groups == 1 &&
           (s->ic <= FIRST_CHANNELS || 2 * s->ic < sdx_kernel_tables()->block.lanes);
}

/* The first layer's few weights stay f32. */
static bool is_half(const struct plan *p)
{
    return p->s.half != SDX_HALF_NONE && !p->first;
}
static int64_t widest_panel(const struct plan *p)
{
    return conv_divide_up(p->out_blocks, conv_most(p->panels, 1));
}

size_t sdx_direct_block_packed_size(const struct sdx_conv_shape *s)
{
    const struct plan p = plan_of(s);
    const size_t one = is_half(&p) ? sizeof(uint16_t) : sizeof(float);
    return (size_t)(s->groups * p.out_blocks * p.lanes * p.icg * p.taps) * one;
}
/* Blocks b of a panel, `rows` output channels from `weights` on, zeros beyond them: [kernel
 * position][channel][width]. */
static void pack_block(const struct plan *p, const sdx_weight_f32 *weights, int64_t rows,
                       int64_t width, int64_t b, void *packed)
{
    enum { ROOM = 8192 };
    float turned[ROOM];
    const int64_t begin = channels_before(p, b), channels = channels_before(p, b + 1) - begin;
    const int64_t piece = ROOM / width;
    if (rows < width) memset(turned, 0, sizeof turned);
    for (int64_t j0 = 0; j0 < channels * p->taps; j0 += piece) {
        const int64_t count = conv_least(piece, channels * p->taps - j0);
        sdx_kernel_tables()->vec.b32_transpose(weights + begin * p->taps + j0,
                                               (size_t)(p->icg * p->taps), (uint32_t *)turned,
                                               (size_t)width, (size_t)rows, (size_t)count);
        for (int64_t j = 0; j < count; j++) {
            const int64_t c = (j0 + j) / p->taps, tap = (j0 + j) % p->taps;
            const int64_t to = (tap * channels + c) * width;
            if (is_half(p))
                sdx_half_encode(p->s.half, turned + j * width, (uint16_t *)packed + to, width);
            else
                memcpy((float *)packed + to, turned + j * width, (size_t)width * sizeof(float));
        }
    }
}
/* The panel of output channels o0 .. o0 + width - 1 of a group. */
static void pack_panel(const struct plan *p, const sdx_weight_f32 *weights, int64_t o0,
                       int64_t width, void *packed)
{
    const size_t one = is_half(p) ? sizeof(uint16_t) : sizeof(float);
    const int64_t rows = conv_least(width, p->ocg - o0);
    weights += o0 * p->icg * p->taps;
    if (p->taps == 1 && !is_half(p) && rows == width) {
        sdx_kernel_tables()->vec.b32_transpose(weights, (size_t)p->icg, packed, (size_t)width,
                                               (size_t)width, (size_t)p->icg);
        return;
    }
    for (int64_t b = 0; b < p->in_blocks; b++) {
        char *to = (char *)packed + (size_t)(channels_before(p, b) * p->taps * width) * one;
        pack_block(p, weights, rows, width, b, to);
    }
}
/* [group][panel][block][kernel position][channel of the block][channel of the panel]: a pass reads
 * a range of blocks of a panel, so passes may differ from one image size to the next. */
void sdx_direct_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                           void *packed, const struct sdx_pieces *pieces)
{
    const struct plan p = plan_of(s);
    const size_t one = is_half(&p) ? sizeof(uint16_t) : sizeof(float);
    char *to = packed;
    for (int64_t g = 0; g < s->groups; g++, weights += p.ocg * p.icg * p.taps)
        for (int64_t panel = 0; panel < p.panels; panel++) {
            const int64_t o0 = panel_begin(&p, panel) * p.lanes;
            const int64_t width = panel_begin(&p, panel + 1) * p.lanes - o0;
            pack_panel(&p, weights, o0, width, to);
            const int64_t filter = p.icg * p.taps, rows = conv_least(width, p.ocg - o0);
            if (pieces) pieces->done(pieces->user, weights + o0 * filter, rows * filter);
            to += (size_t)(width * p.icg * p.taps) * one;
        }
}
int64_t sdx_direct_block_parts(const struct sdx_conv_shape *s)
{
    const struct plan p = plan_of(s);
    const int64_t bundles = conv_divide_up(s->groups, p.bundle);
    return p.image_strips * bundles * p.s.out[0] * p.row_strips * p.col_strips * p.splits;
}

/* Most stretches of `count` places: lo and hi fall from at most `kernel` to 0. */
static int64_t most_stretches(int64_t count, int64_t kernel)
{
    return conv_least(count, 2 * kernel + 1);
}

/* Scratch of a part: places of its pixels in the input and in the output, class by class, and the
 * runs of a pass for each stretch of rows. */
struct room {
    int64_t *from, *to;
    struct sdx_conv_block_run *runs;
    int64_t run_step; /* from one stretch of rows to the next */
    struct stretch *rows, *cols;
    float *panel; /* decoded weights of a pass */
    float *copy;  /* of an image */
    size_t size;
};
static size_t whole_lines(int64_t count, size_t size)
{
    return ((size_t)count * size + 63) / 64 * 64;
}
static struct room room_of(const struct plan *p, void *scratch)
{
    struct room r;
    char *at = scratch;
    const int64_t rows = most_stretches(p->rows, p->s.kernel[1]);
    const int64_t cols = most_stretches(p->cols, p->s.kernel[2]);
    const size_t pixels = whole_lines(p->images * p->rows * p->cols, sizeof(int64_t));
    r.run_step = p->pass_blocks * p->s.kernel[0] * p->s.kernel[1];
    const size_t runs = whole_lines(rows * r.run_step, sizeof *r.runs);
    r.from = scratch;
    r.to = (void *)(at + pixels);
    r.runs = (void *)(at + 2 * pixels);
    r.rows = (void *)(at + 2 * pixels + runs);
    r.cols = r.rows + rows;
    const size_t stretches = whole_lines(rows + cols, sizeof *r.rows);
    r.panel = (void *)(at + 2 * pixels + runs + stretches);
    r.size = 2 * pixels + runs + stretches;
    if (is_half(p))
        r.size += whole_lines(widest_panel(p) * p->lanes * p->pass_blocks * p->unit * p->taps,
                              sizeof *r.panel);
    r.copy = (void *)(at + r.size);
    if (p->padded)
        r.size += whole_lines(p->in_blocks * p->unit * p->s.in[1] * p->s.in[2], sizeof *r.copy);
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
    int64_t image, images, group, group1, od, row0, row1, col0, col1, panel0, panel1;
};
static struct strip strip_of(const struct plan *p, int64_t part)
{
    struct strip t;
    const int64_t split = part % p->splits;
    part /= p->splits;
    /* The axis with more taps first: its strips read the same lines of the input. */
    const bool by_planes = p->s.kernel[0] > p->s.kernel[1];
    const bool by_rows = p->s.kernel[1] > p->s.kernel[2];
    const int64_t next = by_rows ? p->row_strips : p->col_strips;
    const int64_t strips = p->row_strips * p->col_strips;
    t.od = by_planes ? part % p->s.out[0] : part / strips % p->s.out[0];
    const int64_t at = by_planes ? part / p->s.out[0] % strips : part % strips;
    part /= strips * p->s.out[0];
    const int64_t row = by_rows ? at % next : at / next, col = by_rows ? at / next : at % next;
    const int64_t bundles = conv_divide_up(p->s.groups, p->bundle);
    t.group = part % bundles * p->bundle;
    t.group1 = conv_least(p->s.groups, t.group + p->bundle);
    t.image = conv_share(p->s.batch, part / bundles, p->image_strips);
    t.images = conv_share(p->s.batch, part / bundles + 1, p->image_strips) - t.image;
    t.panel0 = conv_share(p->panels, split, p->splits);
    t.panel1 = conv_share(p->panels, split + 1, p->splits);
    t.row0 = conv_share(p->s.out[1], row, p->row_strips);
    t.row1 = conv_share(p->s.out[1], row + 1, p->row_strips);
    t.col0 = conv_share(p->s.out[2], col, p->col_strips);
    t.col1 = conv_share(p->s.out[2], col + 1, p->col_strips);
    return t;
}
/* Places of the pixels of a class: in the input that of their first kernel position within it. */
static int64_t place_pixels(const struct plan *p, const struct stretch *planes,
                            const struct stretch *rows, const struct stretch *cols, int64_t *from,
                            int64_t *to)
{
    const struct sdx_conv_shape *s = &p->s;
    const int64_t od = planes->begin;
    const int64_t id = od * s->stride[0] + planes->lo * s->dilation[0] - s->pad_begin[0];
    const int64_t below = rows->lo * s->dilation[1] - s->pad_begin[1];
    const int64_t right = cols->lo * s->dilation[2] - s->pad_begin[2];
    const bool empty = planes->lo == planes->hi || rows->lo == rows->hi || cols->lo == cols->hi;
    const int64_t step = empty ? 0 : s->stride[2] * p->unit;
    int64_t count = 0;
    for (int64_t r = rows->begin; r < rows->end; r++) {
        int64_t in = ((id * s->in[1] + r * s->stride[1] + below) * s->in[2] + right) * p->unit;
        int64_t out = ((od * s->out[1] + r) * s->out[2] + cols->begin - p->y_from) * p->lanes;
        in = empty ? 0 : in + cols->begin * step;
        for (int64_t c = cols->begin; c < cols->end; c++, count++, in += step, out += p->lanes) {
            from[count] = in;
            to[count] = out;
        }
    }
    return count;
}
/* Runs of the blocks b0..b1 for one stretch of rows: one for each of their kernel rows. A kernel of
 * one position has its blocks for chunks instead: one run holds all full ones. */
static void place_runs(const struct plan *p, const struct stretch *planes, struct stretch *rows,
                       int64_t b0, int64_t b1, struct sdx_conv_block_run *runs)
{
    const struct sdx_conv_shape *s = &p->s;
    const int64_t row = s->dilation[1] * s->in[2], plane = s->dilation[0] * s->in[1] * s->in[2];
    const int64_t block = s->in[0] * s->in[1] * s->in[2];
    const int64_t whole = p->icg / p->unit - b0;
    int64_t count = 0, full = 0;
    for (int64_t b = 0; b < b1 - b0; b++) {
        if (p->taps == 1 && !p->first && b > 0 && b < whole) continue;
        const int64_t channels = channels_before(p, b0 + b + 1) - channels_before(p, b0 + b);
        for (int64_t d = planes->lo; d < planes->hi; d++)
            for (int64_t h = rows->lo; h < rows->hi; h++, count++) {
                const int64_t at = (d - planes->lo) * plane + (h - rows->lo) * row;
                runs[count].x = (b * block + at) * p->unit;
                runs[count].w =
                    b * p->unit * p->taps + (d * s->kernel[1] + h) * s->kernel[2] * channels;
            }
        if (b < whole && !p->first) full = count;
    }
    rows->runs = full;
    rows->tail_runs = count - full;
}
/* What the job reads at one column of runs: kernel positions cols->lo..hi of a row. */
static void shape_chunks(const struct plan *p, const struct stretch *cols, int64_t blocks,
                         struct sdx_conv_block_job *job)
{
    const struct sdx_conv_shape *s = &p->s;
    const int64_t positions = cols->hi - cols->lo;
    job->step = s->dilation[2] * p->unit;
    job->chunks = job->tail_chunks = positions;
    job->tail = p->tail;
    if (p->first && s->dilation[2] == 1) { /* the kernel positions of a row are neighbours */
        job->tail = positions;
        job->tail_chunks = 1;
    } else if (p->first) {
        job->tail = 1;
    } else if (p->taps == 1) {
        job->step = s->in[0] * s->in[1] * s->in[2] * p->unit;
        job->chunks = positions * blocks;
    }
}

/* The activation of a pass: none but at the last one. */
static void finish_of(const struct sdx_epilogue *e, bool last, struct sdx_conv_block_job *job)
{
    const enum sdx_act act = last ? e->act : SDX_ACT_NONE;
    conv_limits(act, e->a, e->b, &job->lo, &job->hi);
    job->act = act > SDX_ACT_CLIP ? act : SDX_ACT_NONE;
    job->a = e->a;
    job->b = e->b;
}

/* Where the packed weights of a panel begin, from block b0 on. */
static int64_t weights_at(const struct plan *p, int64_t panel, int64_t b0)
{
    const int64_t o0 = panel_begin(p, panel) * p->lanes;
    const int64_t width = panel_begin(p, panel + 1) * p->lanes - o0;
    return (o0 * p->icg + channels_before(p, b0) * width) * p->taps;
}

/* One part while it runs. */
struct work {
    struct plan p;
    struct strip t;
    struct room room;
    struct stretch planes;
    int64_t row_count, col_count; /* stretches */
    int64_t b0, b1;               /* the pass */
    int64_t first;                /* output block that y and the residual begin at */
    struct sdx_conv_block_job job;
};

/* Are weights far away when their panel's turn comes: because all of them are large, or few pixels
 * read them and other layers' have been in the cache since? */
static bool is_far(const struct plan *p)
{
    const int64_t pixels = p->s.batch * p->s.out[0] * p->s.out[1] * p->s.out[2];
    const int64_t large = sdx_kernel_tuning()->block_bytes / 2;
    return p->icg * p->taps * p->ocg > (pixels <= FRESH_PIXELS ? large / 16 : large);
}

/* The weights of a panel for the pass in hand, and where those of the next ones are. 16-bit numbers
 * are decoded; what is fetched ahead of them is as many bytes, so two panels of theirs. */
static void place_weights(struct work *w, const void *packed, int64_t panel)
{
    const struct plan *p = &w->p;
    const struct strip *t = &w->t;
    const bool streams = is_far(p);
    const int64_t here = weights_at(p, panel, w->b0);
    int64_t next = here;
    if (streams && panel + 1 < t->panel1)
        next = weights_at(p, panel + 1, w->b0);
    else if (streams && w->b1 < p->in_blocks)
        next = weights_at(p, t->panel0, w->b1);
    else if (streams && panel + 1 < p->panels) /* of the next part, most often of this thread too */
        next = weights_at(p, panel + 1, 0);
    w->job.ahead = next - here;
    w->job.weights = (const float *)packed + here;
    if (!is_half(p)) return;
    const uint16_t *from = packed;
    const int64_t width = (panel_begin(p, panel + 1) - panel_begin(p, panel)) * p->lanes;
    const int64_t k = (channels_before(p, w->b1) - channels_before(p, w->b0)) * p->taps;
    sdx_half_decode(p->s.half, from + here, w->room.panel, k * width);
    w->job.weights = w->room.panel;
    if (next != here)
        w->job.ahead =
            ((intptr_t)(from + next) - (intptr_t)w->room.panel) / (intptr_t)sizeof(float);
}

static void place_work(struct work *w)
{
    const struct sdx_conv_shape *s = &w->p.s;
    const struct strip *t = &w->t;
    int64_t *from = w->room.from, *to = w->room.to;
    const int64_t image_in = s->in[0] * s->in[1] * s->in[2] * w->p.in_blocks * w->p.unit;
    const int64_t image_out = w->p.out_blocks * w->job.y_step, lanes = w->p.lanes;
    const int64_t pixels = t->images * (t->row1 - t->row0) * (t->col1 - t->col0);
    /* half as much again: the last lines are to be there in time */
    w->job.share = 1.5f * (float)(lanes * lanes) / (float)(LINE * conv_most(pixels, 1));
    w->planes = stretch_at(s, 0, t->od, t->od + 1);
    w->row_count = find_stretches(s, 1, t->row0, t->row1, w->room.rows);
    w->col_count = find_stretches(s, 2, t->col0, t->col1, w->room.cols);
    for (int64_t r = 0; r < w->row_count; r++)
        for (int64_t c = 0; c < w->col_count; c++) {
            const int64_t n =
                place_pixels(&w->p, &w->planes, w->room.rows + r, w->room.cols + c, from, to);
            for (int64_t i = n; i < t->images * n; i++) {
                from[i] = from[i - n] + s->groups * image_in;
                to[i] = to[i - n] + s->groups * image_out;
            }
            from += t->images * n;
            to += t->images * n;
        }
}
/* All classes of one panel in one pass. */
static void run_panel(const struct work *w, int64_t vectors)
{
    const struct sdx_conv_block_table *table = &sdx_kernel_tables()->block;
    const struct plan *p = &w->p;
    const int64_t blocks = conv_least(w->b1, p->icg / p->unit) - w->b0, width = vectors * p->lanes;
    struct sdx_conv_block_job job = w->job;
    job.from = w->room.from;
    job.to = w->room.to;
    for (int64_t r = 0; r < w->row_count; r++)
        for (int64_t c = 0; c < w->col_count; c++) {
            const struct stretch *rows = w->room.rows + r, *cols = w->room.cols + c;
            const bool empty = cols->lo == cols->hi;
            shape_chunks(p, cols, blocks, &job);
            job.run = w->room.runs + r * w->room.run_step;
            job.runs = empty ? 0 : rows->runs;
            job.tail_runs = empty ? 0 : rows->tail_runs;
            job.weights = w->job.weights + cols->lo * p->unit * width;
            job.weights_tail = w->job.weights + cols->lo * (p->first ? 1 : p->tail) * width;
            job.pixels = w->t.images * (rows->end - rows->begin) * (cols->end - cols->begin);
            table->f32_panel((int)vectors, &job);
            job.from += job.pixels;
            job.to += job.pixels;
            job.phase += job.pixels;
        }
}

/* More rows of blocks, far apart, than the processor follows by itself? */
static bool brings_pixels(const struct plan *p)
{
    return p->taps == 1 && p->s.stride[2] == 1 && p->pass_blocks >= STREAMS;
}
/* One pass. y and the residual: of block w->first of the group. */
static void run_pass(struct work *w, const void *packed, const struct sdx_epilogue *e, float *y,
                     const float *residual)
{
    const struct plan *p = &w->p;
    const struct strip *t = &w->t;
    for (int64_t r = 0; r < w->row_count; r++)
        place_runs(p, &w->planes, w->room.rows + r, w->b0, w->b1,
                   w->room.runs + r * w->room.run_step);
    for (int64_t panel = t->panel0; panel < t->panel1; panel++) {
        const int64_t block = panel_begin(p, panel), o0 = block * p->lanes;
        const int64_t vectors = panel_begin(p, panel + 1) - block;
        float bias[MOST_PANEL] = {0};
        if (w->b0 == 0 && e->bias_row)
            memcpy(bias, e->bias_row + t->group * p->ocg + o0,
                   (size_t)conv_least(vectors * p->lanes, p->ocg - o0) * sizeof(float));
        w->job.bias = w->b0 == 0 ? bias : NULL;
        w->job.is_halved = p->ocg - o0 - (vectors - 1) * p->lanes <= p->lanes / 2;
        place_weights(w, packed, panel);
        w->job.brings_pixels = panel == t->panel0 && brings_pixels(p);
        w->job.y = y + (block - w->first) * w->job.y_step;
        w->job.residual = residual ? residual + (block - w->first) * w->job.y_step : NULL;
        run_panel(w, vectors);
    }
}

/* The group in hand. x: its channels; packed, y, the residual: of the whole image and kernel. */
static void run_group(struct work *w, const float *x, const void *packed, float *y,
                      const struct sdx_epilogue *e)
{
    const struct plan *p = &w->p;
    const struct sdx_conv_shape *s = &p->s;
    const int64_t group = w->t.image * s->groups + w->t.group;
    const int64_t pixels_in = s->in[0] * s->in[1] * s->in[2] * p->unit;
    const int64_t to = group * p->out_blocks * w->job.y_step; /* rows: of the only group, 0 */
    const int64_t group_at = w->t.group * p->out_blocks * p->lanes * p->icg * p->taps;
    if (is_half(p))
        packed = (const uint16_t *)packed + group_at;
    else
        packed = (const float *)packed + group_at;
    for (w->b0 = 0; w->b0 < p->in_blocks; w->b0 = w->b1) {
        w->b1 = conv_least(p->in_blocks, w->b0 + p->pass_blocks);
        const bool last = w->b1 == p->in_blocks;
        w->job.x = x + w->b0 * pixels_in;
        finish_of(e, last, &w->job);
        run_pass(w, packed, e, y + to, w->b0 == 0 && e->residual ? e->residual + to : NULL);
    }
}

/* The image from x on between zeros. */
static void copy_padded(const struct plan *p, const struct sdx_conv_shape *s, const float *x,
                        float *copy)
{
    const int64_t high = p->s.in[1], wide = p->s.in[2], lanes = p->unit;
    int64_t top, bottom, left, right;
    conv_valid(-s->pad_begin[1], 1, s->in[1], high, &top, &bottom);
    conv_valid(-s->pad_begin[2], 1, s->in[2], wide, &left, &right);
    memset(copy, 0, (size_t)(p->in_blocks * high * wide * lanes) * sizeof *copy);
    for (int64_t b = 0; b < p->in_blocks; b++, x += s->in[1] * s->in[2] * lanes)
        for (int64_t h = top; h < bottom; h++)
            memcpy(copy + ((b * high + h) * wide + left) * lanes,
                   x + ((h - s->pad_begin[1]) * s->in[2] + left - s->pad_begin[2]) * lanes,
                   (size_t)((right - left) * lanes) * sizeof *copy);
}
void sdx_direct_block_part(const struct sdx_conv_shape *shape, const float *x, const void *packed,
                           float *y, const struct sdx_epilogue *e, int64_t part, void *scratch)
{
    struct work w = {.p = plan_of(shape)};
    w.t = strip_of(&w.p, part);
    w.room = room_of(&w.p, scratch);
    w.job.y_step = shape->out[0] * shape->out[1] * shape->out[2] * w.p.lanes;
    place_work(&w);
    const int64_t group = w.p.in_blocks * shape->in[0] * shape->in[1] * shape->in[2] * w.p.unit;
    x += (w.t.image * shape->groups + w.t.group) * group;
    if (w.p.padded) {
        copy_padded(&w.p, shape, x, w.room.copy);
        x = w.room.copy;
    }
    for (; w.t.group < w.t.group1; w.t.group++, x += group)
        run_group(&w, x, packed, y, e);
}

/* ---- rows for a reader ---- */

int64_t sdx_direct_block_panels(const struct sdx_conv_shape *s)
{
    const struct plan p = plan_of(s);
    return s->groups == 1 && s->in[0] == 1 && s->out[0] == 1 && !p.padded ? p.panels : 0;
}
int64_t sdx_direct_block_panel(const struct sdx_conv_shape *s, int64_t panel)
{
    const struct plan p = plan_of(s);
    return panel_begin(&p, panel);
}
/* The plan of a strip of whole rows; a pointwise shape has them side by side. */
static struct plan plan_of_rows(const struct sdx_conv_shape *s, int64_t rows)
{
    struct plan p = plan_of(s);
    const bool is_flat = sdx_conv_is_pointwise(s);
    p.images = 1;
    p.rows = is_flat ? 1 : rows;
    p.cols = is_flat ? rows * s->out[2] : s->out[2];
    return p;
}
size_t sdx_direct_block_rows_scratch(const struct sdx_conv_shape *s, int64_t rows)
{
    const struct plan p = plan_of_rows(s, rows);
    char none[1];
    return room_of(&p, none).size;
}
void sdx_direct_block_rows(const struct sdx_conv_shape *s, const struct sdx_direct_rows *r,
                           const float *x, const void *packed, const struct sdx_epilogue *e,
                           float *y, void *scratch)
{
    struct work w = {.p = plan_of_rows(s, r->row1 - r->row0)};
    const int64_t row = s->out[2];
    const bool is_flat = sdx_conv_is_pointwise(s);
    w.t = (struct strip){.images = 1,
                         .group1 = 1,
                         .row0 = is_flat ? 0 : r->row0,
                         .row1 = is_flat ? 1 : r->row1,
                         .col0 = is_flat ? r->row0 * row : 0,
                         .col1 = is_flat ? r->row1 * row : row,
                         .panel0 = r->panel0,
                         .panel1 = r->panel1};
    w.room = room_of(&w.p, scratch);
    w.first = panel_begin(&w.p, r->panel0);
    w.p.y_from = r->row0 * row;
    w.job.y_step = r->y_step;
    place_work(&w);
    run_group(&w, x, packed, y, e);
}
