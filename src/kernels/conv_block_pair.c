/* SPDX-License-Identifier: Apache-2.0
 * A direct convolution and the depthwise one that reads it. Parts are (image, group of panels, band
 * of lines), the last fastest; bands that follow one another in a call are one, so that only the
 * rows that two threads see are made twice. Within it, a few lines at a time: rows that the next
 * ones see too move to the front, the others are made behind them. */
#include "kernels/conv_block_pair.h"

#include <string.h>

#include "kernels/conv_block_depthwise.h"
#include "kernels/conv_block_direct.h"
#include "kernels/conv_gather.h"
#include "kernels/flush.h"

enum {
    ROWS_LEAST = 8,    /* of the image between the two that are kept, */
    HALOS = 2,         /* and as often what a line sees */
    PIXELS_LEAST = 96, /* of those rows, which read the weights once */
    BAND_LEAST = 7     /* lines */
};

struct pair_cut {
    int64_t lanes, row; /* row: floats of a row of a block between the two */
    int64_t panels, groups, bands;
    int64_t blocks; /* of a group, at most */
    int64_t rows;   /* of the image between that are kept */
    int64_t lines;  /* that they are enough for */
};

static int64_t span_of(const struct sdx_conv_shape *s)
{
    return (s->kernel[1] - 1) * s->dilation[1] + 1;
}
static int64_t group_begin(const struct sdx_conv_pair *p, const struct pair_cut *c, int64_t group)
{
    return sdx_direct_block_panel(&p->maker, conv_share(c->panels, group, c->groups));
}
/* As many panels a group as leave rows enough, so that all share the places of their pixels. */
static struct pair_cut cut_of(const struct sdx_conv_pair *p)
{
    const struct sdx_conv_shape *s = &p->reader;
    const int64_t least = conv_most(ROWS_LEAST, HALOS * span_of(s));
    struct pair_cut c = {.lanes = sdx_block_lanes()};
    c.row = s->in[2] * c.lanes;
    c.panels = sdx_direct_block_panels(&p->maker);
    while (c.groups < c.panels && c.rows < conv_least(least, s->in[1])) {
        c.groups++;
        c.blocks = 0;
        for (int64_t g = 0; g < c.groups; g++)
            c.blocks = conv_most(c.blocks, group_begin(p, &c, g + 1) - group_begin(p, &c, g));
        const int64_t bytes = c.blocks * c.row * (int64_t)sizeof(float);
        c.rows = conv_least(s->in[1], sdx_kernel_tuning()->block_bytes * 3 / 2 / bytes);
    }
    c.lines = (c.rows - span_of(s)) / s->stride[1] + 1;
    const int64_t wanted = conv_divide_up(sdx_kernel_tuning()->block_parts, s->batch * c.groups);
    c.bands = conv_most(1, conv_least(wanted, s->out[1] / BAND_LEAST) & ~1);
    return c;
}

static bool is_flat(const struct sdx_conv_shape *s)
{
    return s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && s->pad_begin[0] == 0;
}
bool sdx_conv_pair_fits(const struct sdx_conv_pair *p)
{
    const struct sdx_conv_shape *m = &p->maker, *s = &p->reader;
    const enum sdx_conv_block_form form = sdx_conv_block_form(m);
    if ((form != SDX_CONV_BLOCK_DIRECT && form != SDX_CONV_BLOCK_FIRST) ||
        sdx_conv_block_form(s) != SDX_CONV_BLOCK_DEPTHWISE)
        return false;
    if (!is_flat(m) || !is_flat(s) || s->oc != s->ic || s->ic != m->oc || s->batch != m->batch ||
        s->in[1] != m->out[1] || s->in[2] != m->out[2])
        return false;
    const int64_t stays =
        4 * sdx_kernel_tuning()->block_bytes; /* half as much again as the cache */
    const int64_t blocks = conv_divide_up(s->ic, sdx_block_lanes());
    if (blocks * s->in[1] * s->in[2] * sdx_block_lanes() * (int64_t)sizeof(float) <= stays)
        return false;
    const struct pair_cut c = cut_of(p);
    return c.panels > 0 && c.rows >= conv_most(ROWS_LEAST, HALOS * span_of(s)) &&
           c.rows * s->in[2] >= PIXELS_LEAST;
}

int64_t sdx_conv_pair_parts(const struct sdx_conv_pair *p)
{
    const struct pair_cut c = cut_of(p);
    return p->reader.batch * c.groups * c.bands;
}
static size_t kept_bytes(const struct pair_cut *c)
{
    return (size_t)(c->blocks * c->rows * c->row) * sizeof(float);
}
size_t sdx_conv_pair_scratch(const struct sdx_conv_pair *p)
{
    const struct pair_cut c = cut_of(p);
    const size_t made = sdx_direct_block_rows_scratch(&p->maker, c.rows);
    const size_t read = sdx_depthwise_block_scratch(&p->reader);
    return kept_bytes(&c) + (made > read ? made : read);
}

/* What a call works on. */
struct work {
    const struct sdx_conv_pair *p;
    const struct pair_cut *c;
    const float *x;
    const struct sdx_conv_side *maker, *reader;
    float *y, *kept;
    void *scratch;
};
/* Lines line0 .. line1 - 1 of a group. */
static void run_lines(const struct work *w, int64_t image, int64_t group, int64_t line0,
                      int64_t line1)
{
    const struct sdx_conv_shape *s = &w->p->reader;
    const int64_t step = w->c->rows * w->c->row, row = w->c->row;
    struct sdx_depthwise_lines l = {.image = image,
                                    .block0 = group_begin(w->p, w->c, group),
                                    .block1 = group_begin(w->p, w->c, group + 1)};
    struct sdx_direct_rows r = {.image = image,
                                .panel0 = conv_share(w->c->panels, group, w->c->groups),
                                .panel1 = conv_share(w->c->panels, group + 1, w->c->groups)};
    const int64_t rounds = conv_divide_up(line1 - line0, w->c->lines);
    for (int64_t i = 0; i < rounds; i++) {
        l.line0 = line0 + conv_share(line1 - line0, i, rounds);
        l.line1 = line0 + conv_share(line1 - line0, i + 1, rounds);
        const int64_t top = l.line0 * s->stride[1] - s->pad_begin[1];
        const int64_t bottom = (l.line1 - 1) * s->stride[1] - s->pad_begin[1] + span_of(s);
        const int64_t row0 = conv_least(conv_most(top, 0), s->in[1]);
        const int64_t row1 = conv_least(conv_most(bottom, row0), s->in[1]);
        /* of the last round l.row0 and r.row1 are the rows that are there */
        const int64_t left = i ? conv_most(r.row1 - row0, 0) : 0;
        for (int64_t b = 0; left > 0 && b < l.block1 - l.block0; b++)
            memmove(w->kept + b * step, w->kept + b * step + (row0 - l.row0) * row,
                    (size_t)(left * row) * sizeof(float));
        r.row0 = row0 + left;
        r.row1 = conv_most(row1, r.row0);
        l.row0 = row0;
        l.rows = row1 - row0;
        if (r.row0 < r.row1)
            sdx_direct_block_rows(&w->p->maker, &r, w->x, w->maker->packed, &w->maker->epilogue,
                                  w->kept + left * row, step, w->scratch);
        sdx_depthwise_block_lines(s, &l, w->kept, step, w->reader->packed, w->y,
                                  &w->reader->epilogue, w->scratch);
    }
}
void sdx_conv_pair_run(const struct sdx_conv_pair *p, const float *x,
                       const struct sdx_conv_side *maker, const struct sdx_conv_side *reader,
                       float *y, int64_t part, int64_t end, void *scratch)
{
    const struct pair_cut c = cut_of(p);
    const struct work w = {p, &c, x, maker, reader, y, scratch, (char *)scratch + kept_bytes(&c)};
    const unsigned before = sdx_flush_begin();
    while (part < end) {
        const int64_t band = part % c.bands, group = part / c.bands % c.groups;
        const int64_t bands = conv_least(c.bands - band, end - part);
        run_lines(&w, part / c.bands / c.groups, group, conv_share(p->reader.out[1], band, c.bands),
                  conv_share(p->reader.out[1], band + bands, c.bands));
        part += bands;
    }
    sdx_flush_end(before);
}
