/* SPDX-License-Identifier: Apache-2.0
 * Operators that read one another, a few lines at a time. Parts are (image, group of panels,
 * band of lines), the last fastest; bands that follow one another in a call are one, so that only
 * the rows that two threads see are made twice. Within it go rounds of lines: rows of the direct
 * convolution that the next round sees too move to the front, others are made behind them. A
 * pointwise one reads all channels at once, so they are one group then. */
#include "kernels/conv_block_bands.h"

#include <string.h>

#include "kernels/conv_block_depthwise.h"
#include "kernels/conv_block_direct.h"
#include "kernels/conv_gather.h"
#include "kernels/flush.h"
#include "kernels/pool_block.h"

enum {
    LINES_LEAST = 4,   /* of a round */
    HALOS = 2,         /* rows of a round, at least, to what a line sees of them */
    PIXELS_LEAST = 96, /* of a round, which read the weights once */
    BAND_LEAST = 2,    /* lines: with few threads most bands are one */
    EVEN = 16          /* parts, of which one more is little for a thread */
};

struct bands_cut {
    int64_t lanes;
    int64_t row, line; /* floats of a block: of a row that the depthwise one reads, and writes */
    int64_t panels, groups, bands;
    int64_t blocks;      /* of a group, at most */
    int64_t lines, rows; /* of a round: kept of the depthwise one and of the direct one */
};

static int64_t span_of(const struct sdx_conv_shape *s)
{
    return (s->kernel[1] - 1) * s->dilation[1] + 1;
}
static int64_t blocks_of(const struct sdx_conv_bands *p)
{
    return conv_divide_up(p->depthwise.oc, sdx_block_lanes());
}
/* First block of a group. Without a direct convolution all blocks are one. */
static int64_t group_begin(const struct sdx_conv_bands *p, const struct bands_cut *c, int64_t group)
{
    if (!p->has_direct) return group ? blocks_of(p) : 0;
    return sdx_direct_block_panel(&p->direct, conv_share(c->panels, group, c->groups));
}
static int64_t rows_for(const struct sdx_conv_shape *s, int64_t lines)
{
    return conv_least(s->in[1], (lines - 1) * s->stride[1] + span_of(s));
}
/* The most lines of a round whose rows stay in the cache; 0: not even one's do. */
static void cut_lines(const struct sdx_conv_bands *p, struct bands_cut *c)
{
    const struct sdx_conv_shape *s = &p->depthwise;
    const int64_t bytes = c->blocks * (int64_t)sizeof(float);
    const int64_t row = p->has_direct ? c->row * bytes : 0;
    const int64_t line = p->has_pointwise ? c->line * bytes : 0;
    const int64_t room = sdx_kernel_tuning()->block_bytes * 3 / 2;
    c->lines = (room - (span_of(s) - s->stride[1]) * row) / (s->stride[1] * row + line);
    c->lines = conv_least(conv_most(c->lines, 0), s->out[1]);
    c->rows = rows_for(s, c->lines);
}
static bool are_enough(const struct sdx_conv_bands *p, const struct bands_cut *c)
{
    const struct sdx_conv_shape *s = &p->depthwise;
    return c->lines > 0 && c->lines >= conv_least(s->out[1], LINES_LEAST) &&
           c->rows >= conv_least(s->in[1], HALOS * span_of(s)) &&
           c->lines * s->out[2] >= PIXELS_LEAST;
}
/* As many panels a group as leave lines enough, so that all share the places of their pixels. */
static struct bands_cut cut_of(const struct sdx_conv_bands *p)
{
    const struct sdx_conv_shape *s = &p->depthwise;
    struct bands_cut c = {.lanes = sdx_block_lanes()};
    c.row = s->in[2] * c.lanes;
    c.line = s->out[2] * c.lanes;
    c.panels = p->has_direct ? sdx_direct_block_panels(&p->direct) : 1;
    const int64_t most = p->has_pointwise ? 1 : c.panels;
    do {
        c.groups++;
        c.blocks = 0;
        for (int64_t g = 0; g < c.groups; g++)
            c.blocks = conv_most(c.blocks, group_begin(p, &c, g + 1) - group_begin(p, &c, g));
        cut_lines(p, &c);
    } while (c.groups < most && !are_enough(p, &c));
    const int64_t wanted = conv_divide_up(EVEN, s->batch * c.groups);
    c.bands = conv_most(1, conv_least(wanted, s->out[1] / BAND_LEAST) & ~1);
    return c;
}

static bool is_flat(const struct sdx_conv_shape *s)
{
    return s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && s->pad_begin[0] == 0;
}
bool sdx_conv_bands_leave(const struct sdx_conv_shape *s)
{
    const int64_t lanes = sdx_block_lanes(), blocks = conv_divide_up(s->ic, lanes);
    return s->batch * blocks * lanes * s->in[1] * s->in[2] * (int64_t)sizeof(float) >
           3 * sdx_kernel_tuning()->block_bytes;
}
/* Does `reader` read what `maker` makes, and is it worth while to have it at once? */
static bool is_between(const struct sdx_conv_shape *maker, const struct sdx_conv_shape *reader)
{
    return reader->ic == maker->oc && reader->batch == maker->batch &&
           reader->in[1] == maker->out[1] && reader->in[2] == maker->out[2] &&
           sdx_conv_bands_leave(reader);
}
static bool is_direct(const struct sdx_conv_shape *s)
{
    const enum sdx_conv_block_form form = sdx_conv_block_form(s);
    return (form == SDX_CONV_BLOCK_DIRECT || form == SDX_CONV_BLOCK_FIRST) && is_flat(s) &&
           sdx_direct_block_panels(s) > 0;
}
bool sdx_conv_bands_fit(const struct sdx_conv_bands *p)
{
    const struct sdx_conv_shape *s = &p->depthwise;
    if (!p->has_direct && !p->has_pointwise) return false;
    if (!is_flat(s) || s->oc != s->ic) return false;
    if (!p->is_pool && sdx_conv_block_form(s) != SDX_CONV_BLOCK_DEPTHWISE) return false;
    if (p->has_direct && !(is_direct(&p->direct) && is_between(&p->direct, s))) return false;
    if (p->has_pointwise && !(sdx_conv_is_pointwise(&p->pointwise) && is_direct(&p->pointwise) &&
                              is_between(s, &p->pointwise)))
        return false;
    const struct bands_cut c = cut_of(p);
    return are_enough(p, &c) && s->batch * c.groups * c.bands >= sdx_kernel_tuning()->block_parts;
}

int64_t sdx_conv_bands_together(const struct sdx_conv_bands *p)
{
    const struct bands_cut c = cut_of(p);
    return c.groups * c.bands;
}
int64_t sdx_conv_bands_parts(const struct sdx_conv_bands *p)
{
    return p->depthwise.batch * sdx_conv_bands_together(p);
}

/* The pointwise convolution of a round, of an image as high as that. */
static struct sdx_conv_shape pointwise_of(const struct sdx_conv_bands *p, const struct bands_cut *c)
{
    struct sdx_conv_shape s = p->pointwise;
    s.in[1] = s.out[1] = c->lines;
    return s;
}
/* Bytes that are kept of the direct and of the depthwise convolution. */
static size_t kept_rows(const struct sdx_conv_bands *p, const struct bands_cut *c)
{
    return p->has_direct ? (size_t)(c->blocks * c->rows * c->row) * sizeof(float) : 0;
}
static size_t kept_lines(const struct sdx_conv_bands *p, const struct bands_cut *c)
{
    return p->has_pointwise ? (size_t)(c->blocks * c->lines * c->line) * sizeof(float) : 0;
}
size_t sdx_conv_bands_scratch(const struct sdx_conv_bands *p)
{
    const struct bands_cut c = cut_of(p);
    const struct sdx_conv_shape pointwise = pointwise_of(p, &c);
    size_t most = p->is_pool ? 0 : sdx_depthwise_block_scratch(&p->depthwise);
    if (p->has_direct) {
        const size_t size = sdx_direct_block_rows_scratch(&p->direct, c.rows);
        most = size > most ? size : most;
    }
    if (p->has_pointwise) {
        const size_t size = sdx_direct_block_rows_scratch(&pointwise, c.lines);
        most = size > most ? size : most;
    }
    return kept_rows(p, &c) + kept_lines(p, &c) + most;
}

/* A group of an image, and the round in hand: its lines, and what these see. */
struct work {
    const struct sdx_conv_bands *p;
    const struct sdx_conv_bands_run *run;
    struct bands_cut c;
    float *rows, *lines; /* kept */
    void *scratch;
    int64_t image, panel0, panel1, block0, block1;
    int64_t line0, line1, row0, row1;
};

/* Rows row0..row1 of the direct convolution; those up to `made` are there, from row `first` on. */
static void make_rows(const struct work *w, int64_t first, int64_t made)
{
    const struct sdx_conv_shape *s = &w->p->direct;
    const int64_t step = w->c.rows * w->c.row, row = w->c.row;
    const int64_t left = conv_most(made - w->row0, 0);
    for (int64_t b = 0; left > 0 && b < w->block1 - w->block0; b++)
        memmove(w->rows + b * step, w->rows + b * step + (w->row0 - first) * row,
                (size_t)(left * row) * sizeof(float));
    const struct sdx_direct_rows r = {w->panel0, w->panel1, w->row0 + left, w->row1, step};
    if (r.row0 >= r.row1) return;
    const bool plain = sdx_direct_block_is_first(s);
    const int64_t channels = plain ? s->ic : conv_divide_up(s->ic, w->c.lanes) * w->c.lanes;
    sdx_direct_block_rows(s, &r, w->run->x + w->image * channels * s->in[1] * s->in[2],
                          w->run->direct.packed, &w->run->direct.epilogue, w->rows + left * row,
                          w->scratch);
}
/* Where line0 of block0 lies in a tensor with so many floats a line and lines a block. */
static int64_t place_of(const struct work *w, int64_t blocks, int64_t lines, int64_t line)
{
    return ((w->image * blocks + w->block0) * lines + w->line0) * line;
}
/* The lines of a maximum pool. */
static void pool_lines(const struct sdx_conv_shape *s, const struct sdx_depthwise_lines *l,
                       const float *x, float *y)
{
    const int64_t lines = l->line1 - l->line0;
    struct sdx_pool_block seen = {.in = {1, l->rows, s->in[2]},
                                  .out = {1, lines, s->out[2]},
                                  .pad_begin = {0, s->pad_begin[1], s->pad_begin[2]}};
    seen.pad_begin[1] += l->row0 - l->line0 * s->stride[1];
    for (int i = 0; i < 3; i++) {
        seen.kernel[i] = s->kernel[i];
        seen.stride[i] = s->stride[i];
        seen.dilation[i] = s->dilation[i];
    }
    for (int64_t b = l->block0; b < l->block1; b++, x += l->x_step, y += l->y_step)
        sdx_pool_block_max(&seen, x, y, 0, lines);
}
static void make_lines(const struct work *w)
{
    const struct sdx_conv_shape *s = &w->p->depthwise;
    const int64_t blocks = blocks_of(w->p), to = place_of(w, blocks, s->out[1], w->c.line);
    struct sdx_epilogue e = w->run->depthwise.epilogue;
    struct sdx_depthwise_lines l = {w->block0,
                                    w->block1,
                                    w->line0,
                                    w->line1,
                                    w->row0,
                                    w->row1 - w->row0,
                                    .x_step = s->in[1] * w->c.row,
                                    .y_step = s->out[1] * w->c.line};
    const float *x = w->run->x + (w->image * blocks * s->in[1] + w->row0) * w->c.row;
    if (w->p->has_direct) {
        x = w->rows;
        l.x_step = w->c.rows * w->c.row;
    }
    if (w->p->has_pointwise) l.y_step = w->c.lines * w->c.line;
    float *y = w->p->has_pointwise ? w->lines : w->run->y + to;
    if (e.residual) e.residual += to;
    if (w->p->is_pool)
        pool_lines(s, &l, x, y);
    else
        sdx_depthwise_block_lines(s, &l, x, w->run->depthwise.packed, y, &e, w->scratch);
}
static void make_pixels(const struct work *w)
{
    const struct sdx_conv_shape s = pointwise_of(w->p, &w->c);
    const int64_t height = w->p->pointwise.out[1], blocks = conv_divide_up(s.oc, w->c.lanes);
    const int64_t to = place_of(w, blocks, height, w->c.line);
    struct sdx_epilogue e = w->run->pointwise.epilogue;
    const struct sdx_direct_rows r = {0, sdx_direct_block_panels(&s), 0, w->line1 - w->line0,
                                      height * w->c.line};
    if (e.residual) e.residual += to;
    sdx_direct_block_rows(&s, &r, w->lines, w->run->pointwise.packed, &e, w->run->y + to,
                          w->scratch);
}
/* Lines begin .. end - 1 of a group. */
static void run_lines(struct work *w, int64_t begin, int64_t end)
{
    const struct sdx_conv_shape *s = &w->p->depthwise;
    const int64_t rounds = conv_divide_up(end - begin, w->c.lines);
    int64_t first = 0, made = 0;
    for (int64_t i = 0; i < rounds; i++) {
        w->line0 = begin + conv_share(end - begin, i, rounds);
        w->line1 = begin + conv_share(end - begin, i + 1, rounds);
        const int64_t top = w->line0 * s->stride[1] - s->pad_begin[1];
        const int64_t bottom = (w->line1 - 1) * s->stride[1] - s->pad_begin[1] + span_of(s);
        w->row0 = conv_least(conv_most(top, 0), s->in[1]);
        w->row1 = conv_least(conv_most(bottom, w->row0), s->in[1]);
        if (w->p->has_direct) make_rows(w, first, i ? made : 0);
        first = w->row0;
        made = w->row1;
        make_lines(w);
        if (w->p->has_pointwise) make_pixels(w);
    }
}
void sdx_conv_bands_run(const struct sdx_conv_bands *p, const struct sdx_conv_bands_run *run,
                        int64_t part, int64_t end, void *scratch)
{
    struct work w = {.p = p, .run = run, .c = cut_of(p)};
    const struct bands_cut *c = &w.c;
    char *at = scratch;
    w.rows = scratch;
    w.lines = (void *)(at + kept_rows(p, c));
    w.scratch = at + kept_rows(p, c) + kept_lines(p, c);
    const unsigned before = sdx_flush_begin();
    while (part < end) {
        const int64_t band = part % c->bands, group = part / c->bands % c->groups;
        const int64_t bands = conv_least(c->bands - band, end - part);
        w.image = part / c->bands / c->groups;
        w.panel0 = conv_share(c->panels, group, c->groups);
        w.panel1 = conv_share(c->panels, group + 1, c->groups);
        w.block0 = group_begin(p, c, group);
        w.block1 = group_begin(p, c, group + 1);
        run_lines(&w, conv_share(p->depthwise.out[1], band, c->bands),
                  conv_share(p->depthwise.out[1], band + bands, c->bands));
        part += bands;
    }
    sdx_flush_end(before);
}
