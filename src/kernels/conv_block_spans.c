/* SPDX-License-Identifier: Apache-2.0
 * Spans of conv_block_spans.h. Groups whose outputs, and whose channels, fill whole blocks
 * together are a period, after which the spans have the same shapes again. Parts are
 * [image][span][share of its parts]; packed weights are those of one span after the other. */
#include "kernels/conv_block_spans.h"

#include <string.h>

#include "kernels/conv_block.h"
#include "kernels/conv_gather.h"

/* s->winograd: WAYS and, for each span of a period, three bits: its own number and 1. */
enum { WAYS = 1 << 27, WAY_BITS = 3, MOST_SPANS = 9, LINE = 64 /* bytes */ };

struct spans_cut {
    int64_t lanes, icg, ocg, blocks; /* blocks of outputs */
    int64_t period, each;            /* blocks and spans of a period */
    int64_t count, shares;           /* spans; parts of one */
};
struct span {
    int64_t number, begin, end; /* blocks of outputs */
    int64_t group, more;        /* groups, from the first to behind the last */
    int64_t channel;            /* the first one that is read, of a whole block */
    struct sdx_conv_shape s;    /* of one image */
};

static int64_t volume(const int64_t *lengths)
{
    return lengths[0] * lengths[1] * lengths[2];
}
/* The span behind *p; the first one of a period where p->begin = p->end. false: there is none. */
static bool next_span(const struct sdx_conv_shape *s, const struct spans_cut *c, struct span *p)
{
    if (p->end > p->begin) p->number++;
    p->begin = p->end;
    if (p->begin >= c->blocks) return false;
    for (; p->end < c->blocks; p->end++) {
        const int64_t group = p->end * c->lanes / c->ocg;
        const int64_t last = (conv_least(s->oc, (p->end + 1) * c->lanes) - 1) / c->ocg;
        if (p->end > p->begin && (group != p->group || last + 1 != p->more)) break;
        p->group = group;
        p->more = last + 1;
    }
    p->channel = p->group * c->icg / c->lanes * c->lanes;
    p->s = *s;
    p->s.batch = p->s.groups = 1;
    p->s.ic = p->more * c->icg - p->channel;
    p->s.oc = conv_least(s->oc, p->end * c->lanes) - p->begin * c->lanes;
    p->s.winograd = 0;
    if (s->winograd >= WAYS && c->each)
        p->s.winograd = (s->winograd >> (p->number % c->each * WAY_BITS) & 7) - 1;
    return true;
}
/* Do groups end with these blocks, of outputs and of channels? */
static bool is_period(const struct spans_cut *c)
{
    const int64_t outputs = c->period * c->lanes;
    return outputs % c->ocg == 0 && outputs / c->ocg * c->icg % c->lanes == 0;
}
static struct spans_cut cut_of(const struct sdx_conv_shape *s)
{
    struct spans_cut c = {.lanes = sdx_block_lanes(), .period = 1};
    struct span p = {0};
    c.icg = s->ic / s->groups;
    c.ocg = s->oc / s->groups;
    c.blocks = conv_divide_up(s->oc, c.lanes);
    while (c.period < c.blocks && !is_period(&c))
        c.period++;
    while (p.end < c.period && next_span(s, &c, &p))
        c.each++;
    p = (struct span){.end = c.blocks / c.period * c.period};
    c.count = c.blocks / c.period * c.each;
    p.begin = p.end;
    while (next_span(s, &c, &p))
        c.count++;
    c.shares = conv_divide_up(conv_wanted(conv_worth(s)), c.count);
    return c;
}
static size_t size_of(const struct span *p)
{
    return (sdx_conv_block_packed_size(&p->s) + LINE - 1) / LINE * LINE;
}
/* *p becomes span `number`; its weights lie so many bytes behind the first. */
static size_t find_span(const struct sdx_conv_shape *s, const struct spans_cut *c, int64_t number,
                        struct span *p)
{
    const int64_t periods = number / c->each, end = periods * c->period;
    size_t bytes = 0;
    *p = (struct span){0};
    while (periods && p->end < c->period && next_span(s, c, p))
        bytes += size_of(p);
    bytes *= (size_t)periods;
    *p = (struct span){.number = periods * c->each, .begin = end, .end = end};
    while (next_span(s, c, p) && p->number < number)
        bytes += size_of(p);
    return bytes;
}

/* ---- what is worth it ---- */

/* Work for a multiply-add, where a direct convolution on blocks has 1. 0: it is not served. */
static double work_of(const struct sdx_conv_shape *s)
{
    switch (sdx_conv_block_form(s)) {
    case SDX_CONV_BLOCK_TILES:
    case SDX_CONV_BLOCK_DIRECT: return 1;
    case SDX_CONV_BLOCK_WINOGRAD_2: return 0.7;
    case SDX_CONV_BLOCK_WINOGRAD_3:
    case SDX_CONV_BLOCK_WINOGRAD_LINE: return 0.8;
    case SDX_CONV_BLOCK_WINOGRAD_4: return 0.55;
    case SDX_CONV_BLOCK_WINOGRAD_6: return 0.5;
    default: return 0;
    }
}
/* Are the spans of the last period, which may be cut short and of fewer channels, served in the
 * ways of the others? */
static bool serves_last(const struct sdx_conv_shape *s, const struct spans_cut *c, int ways)
{
    struct sdx_conv_shape all = *s;
    const int64_t periods = (c->blocks - 1) / c->period, end = periods * c->period;
    struct span p = {.number = periods * c->each, .begin = end, .end = end};
    all.winograd = ways;
    while (next_span(&all, c, &p))
        if (work_of(&p.s) == 0) return false;
    return true;
}
int sdx_spans_block_ways(const struct sdx_conv_shape *s)
{
    const struct spans_cut c = cut_of(s);
    const bool is_whole = c.icg % c.lanes == 0 && c.ocg % c.lanes == 0;
    const double most = is_whole ? 0.95 : 1.6; /* what other ways need */
    const double pairs = (double)c.period * (double)(c.lanes * c.icg);
    double work = 0;
    int ways = WAYS;
    if (c.each > MOST_SPANS) return 0;
    for (struct span p = {0}; p.end < c.period && next_span(s, &c, &p);) {
        const double each = work_of(&p.s);
        if (each == 0) return 0;
        work += each * (double)((p.end - p.begin) * c.lanes) * (double)p.s.ic;
        ways |= (sdx_conv_block_winograd(&p.s) + 1) << (p.number * WAY_BITS);
    }
    return work < most * pairs && serves_last(s, &c, ways) ? ways : 0;
}
bool sdx_spans_block_fits(const struct sdx_conv_shape *s)
{
    const int64_t least = sdx_block_lanes() / 2;
    if (s->winograd >= WAYS) return true;
    if (s->winograd != 0 || s->groups < 2 || s->ic % s->groups || s->oc % s->groups) return false;
    if (s->ic / s->groups < least || s->oc / s->groups < least) return false;
    return sdx_spans_block_ways(s) != 0;
}

/* ---- weights ---- */

size_t sdx_spans_block_packed_size(const struct sdx_conv_shape *s)
{
    const struct spans_cut c = cut_of(s);
    struct span p;
    const size_t before = find_span(s, &c, c.count - 1, &p);
    return before + size_of(&p);
}
/* Of a span: does it read channels that not all of its outputs sum up? */
static bool is_mixed(const struct spans_cut *c, const struct span *p)
{
    return p->s.ic != c->icg;
}
static int64_t dense_size(const struct span *p)
{
    return p->s.oc * p->s.ic * volume(p->s.kernel);
}
size_t sdx_spans_block_pack_scratch(const struct sdx_conv_shape *s)
{
    const struct spans_cut c = cut_of(s);
    int64_t most = 0;
    for (struct span p = {0}; next_span(s, &c, &p);)
        if (is_mixed(&c, &p)) most = conv_most(most, dense_size(&p));
    return (size_t)most * sizeof(float);
}
void sdx_spans_block_pack(const struct sdx_conv_shape *s, const sdx_weight_f32 *weights,
                          void *packed, void *scratch)
{
    const struct spans_cut c = cut_of(s);
    const int64_t filter = c.icg * volume(s->kernel);
    char *to = packed;
    for (struct span p = {0}; next_span(s, &c, &p); to += size_of(&p)) {
        const int64_t first = p.begin * c.lanes, taps = volume(s->kernel);
        if (!is_mixed(&c, &p)) {
            sdx_conv_block_pack(&p.s, weights + first * filter, to, NULL, NULL);
            continue;
        }
        float *dense = scratch;
        memset(dense, 0, (size_t)dense_size(&p) * sizeof *dense);
        for (int64_t o = 0; o < p.s.oc; o++) {
            const int64_t channel = (first + o) / c.ocg * c.icg - p.channel;
            memcpy(dense + (o * p.s.ic + channel) * taps, weights + (first + o) * filter,
                   (size_t)filter * sizeof *dense);
        }
        sdx_conv_block_pack(&p.s, dense, to, NULL, NULL);
    }
}

/* ---- runs ---- */

int64_t sdx_spans_block_parts(const struct sdx_conv_shape *s)
{
    const struct spans_cut c = cut_of(s);
    return s->batch * c.count * c.shares;
}
int64_t sdx_spans_block_together(const struct sdx_conv_shape *s)
{
    return cut_of(s).shares;
}
size_t sdx_spans_block_scratch(const struct sdx_conv_shape *s)
{
    const struct spans_cut c = cut_of(s);
    size_t most = 0;
    for (struct span p = {0}; next_span(s, &c, &p);) {
        const size_t size = sdx_conv_block_scratch(&p.s);
        if (size > most) most = size;
    }
    return most;
}
void sdx_spans_block_run(const struct sdx_conv_shape *s, const float *x, const void *packed,
                         float *y, const struct sdx_epilogue *epilogue, int64_t part, int64_t end,
                         void *scratch)
{
    const struct spans_cut c = cut_of(s);
    const int64_t in = volume(s->in), out = volume(s->out) * c.lanes;
    const int64_t image_x = conv_divide_up(s->ic, c.lanes) * c.lanes * in;
    while (part < end) {
        struct span p;
        const int64_t share = part % c.shares, image = part / c.shares / c.count;
        const int64_t last = conv_least(share + end - part, c.shares);
        const size_t at = find_span(s, &c, part / c.shares % c.count, &p);
        const int64_t parts = sdx_conv_block_parts(&p.s);
        const int64_t from = conv_share(parts, share, c.shares),
                      to = (image * c.blocks + p.begin) * out;
        const int64_t upto = conv_share(parts, last, c.shares);
        struct sdx_epilogue e = *epilogue;
        if (e.bias_row) e.bias_row += p.begin * c.lanes;
        if (e.residual) e.residual += to;
        if (from < upto)
            sdx_conv_block_run(&p.s, x + image * image_x + p.channel * in,
                               (const char *)packed + at, y + to, &e, from, upto, scratch);
        part += last - share;
    }
}
