/* SPDX-License-Identifier: Apache-2.0
 * Steps that work element by element, alone and in chains. */
#include "ops/tile.h"

#include <stdio.h>

#include "ops/nest.h"
#include "ops/step_host.h"

enum {
    CACHE =
        24 * 1024, /* bytes that the tiles of a chain may take of a first-level cache of 32 KiB */
    TILE_MIN = 512,
    TILE_MAX = 4096,
    SKEW = 192 /* tiles of a power of two would meet in the same lines of the cache */
};

static unsigned bits_of(const struct sdx_tensor *t)
{
    return (unsigned)sdx_dtype_bits(t->dtype);
}

/* `at` is a multiple of 64. */
static void *element(const struct sdx_tensor *t, int64_t at)
{
    return (char *)t->data + (size_t)at * bits_of(t) / 8;
}

static const void *operand(const struct sdx_step *step, int i, int64_t at)
{
    const struct sdx_tensor *t = step->in[i];
    if (!t) return NULL;
    return step->tiles->full >> i & 1 ? element(t, at) : t->data;
}

static enum sdx_status run_tiles(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_tiles *tiles = step->tiles;
    const int64_t begin = sdx_part_begin(tiles->count, step->parts, part, 64);
    const int64_t end = sdx_part_begin(tiles->count, step->parts, part + 1, 64);
    const void *in[SDX_TILE_IN];
    if (begin >= end) return SDX_OK;
    for (int i = 0; i < step->count_in; i++)
        in[i] = operand(step, i, begin);
    tiles->run(step, in, element(step->out[0], begin), begin, end, x->scratch);
    return SDX_OK;
}

int64_t sdx_tile_parts(int64_t count, double weight)
{
    const int64_t most = (count + 63) / 64;
    return sdx_prepare_parts((double)count * weight, SDX_NEST_GRAIN, most > 0 ? most : 1);
}

enum sdx_status sdx_prepare_tiles(struct sdx_prepare *px, const char *kernel,
                                  const struct sdx_tiles *tiles, void *params, size_t scratch,
                                  int count_in, struct sdx_tensor *const *in,
                                  struct sdx_tensor *out)
{
    struct sdx_step_list *list = ((struct sdx_prepare_host *)px->host)->list;
    struct sdx_tiles *copy = sdx_arena_copy(list->arena, tiles, sizeof *tiles);
    SDX_ASSERT(count_in <= SDX_TILE_IN);
    if (!copy) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(sdx_prepare_step_on(px, kernel, run_tiles, params,
                                sdx_tile_parts(tiles->count, tiles->weight), scratch, count_in, in,
                                1, &out));
    list->steps[list->count - 1].tiles = copy;
    return SDX_OK;
}

/* ---- chains ---- */

static void run_member(const struct sdx_chain_member *m, char *tiles, void *scratch, int64_t begin,
                       int64_t end)
{
    const struct sdx_step *s = &m->step;
    const void *in[SDX_TILE_IN];
    for (int i = 0; i < s->count_in; i++) {
        if (m->from[i] != SDX_TILE_MEMORY)
            in[i] = tiles + m->at[i];
        else
            in[i] = s->in[i] ? (char *)s->in[i]->data + (size_t)begin * m->bits[i] / 8 : NULL;
    }
    void *out = m->to != SDX_TILE_MEMORY
                    ? tiles + m->at_out
                    : (char *)s->out[0]->data + (size_t)begin * m->bits_out / 8;
    s->tiles->run(s, in, out, begin, end, scratch);
}

static void run_members(const struct sdx_chain *chain, char *tiles, int64_t begin, int64_t end)
{
    char *scratch = tiles + (size_t)chain->count_tiles * chain->tile_bytes;
    for (int32_t m = 0; m < chain->count; m++)
        run_member(&chain->members[m], tiles, scratch, begin, end);
}

/* A part is cut into tiles of about the same length. */
enum sdx_status sdx_chain_run(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_chain *chain = step->params;
    const int64_t count = chain->members[0].step.tiles->count;
    const int64_t begin = sdx_part_begin(count, step->parts, part, 64);
    const int64_t last = sdx_part_begin(count, step->parts, part + 1, 64);
    int64_t tile = last - begin;
    if (tile > chain->tile) {
        const int64_t pieces = (tile + chain->tile - 1) / chain->tile;
        tile = ((tile + pieces - 1) / pieces + 63) / 64 * 64;
    }
    for (int64_t at = begin, end = 0; at < last; at = end) {
        end = last - at < tile ? last : at + tile;
        run_members(chain, x->scratch, at, end);
    }
    return SDX_OK;
}

/* Bits that an element takes of the cache: one of each tile, and the operands in memory of the
 * member that has most of them. */
void sdx_chain_size(struct sdx_chain *chain)
{
    unsigned widest = 8, memory = 0;
    for (int32_t m = 0; m < chain->count; m++) {
        const struct sdx_chain_member *member = &chain->members[m];
        const struct sdx_step *s = &member->step;
        unsigned bits = bits_of(s->out[0]);
        if (member->to != SDX_TILE_MEMORY) {
            widest = bits > widest ? bits : widest;
            bits = 0;
        }
        for (int i = 0; i < s->count_in; i++)
            if (member->from[i] == SDX_TILE_MEMORY && s->tiles->full >> i & 1)
                bits += bits_of(s->in[i]);
        memory = bits > memory ? bits : memory;
    }
    const size_t bits = memory + (size_t)chain->count_tiles * widest;
    const int64_t unit = chain->multiple ? chain->multiple : 64;
    int64_t tile = (int64_t)(CACHE * (size_t)8 / (bits ? bits : 1));
    tile = (tile < TILE_MIN ? TILE_MIN : tile > TILE_MAX ? TILE_MAX : tile) / unit * unit;
    if (tile == 0) tile = unit;
    chain->tile = tile;
    chain->tile_bytes = (size_t)tile * widest / 8 + SKEW;
    for (int32_t n = 0; n < chain->count; n++) {
        struct sdx_chain_member *m = &chain->members[n];
        for (int i = 0; i < m->step.count_in; i++)
            if (m->from[i] != SDX_TILE_MEMORY)
                m->at[i] = (size_t)m->from[i] * chain->tile_bytes;
            else if (m->step.tiles->full >> i & 1)
                m->bits[i] = bits_of(m->step.in[i]);
        if (m->to != SDX_TILE_MEMORY) m->at_out = (size_t)m->to * chain->tile_bytes;
        m->bits_out = bits_of(m->step.out[0]);
    }
}

size_t sdx_chain_scratch(const struct sdx_chain *chain)
{
    size_t most = 0;
    for (int32_t m = 0; m < chain->count; m++)
        if (chain->members[m].step.scratch > most) most = chain->members[m].step.scratch;
    return (size_t)chain->count_tiles * chain->tile_bytes + most;
}

const struct sdx_chain *sdx_chain_of(const struct sdx_step *step)
{
    return step->run == sdx_chain_run ? step->params : NULL;
}

double sdx_chain_weight(const struct sdx_chain *chain)
{
    double weight = 0;
    for (int32_t m = 0; m < chain->count; m++)
        weight += chain->members[m].step.tiles->weight;
    return weight;
}

/* ---- rows for a reader ---- */

struct chain_rows {
    struct sdx_chain chain; /* its last member makes the rows */
    struct sdx_rows_reader how;
    int64_t together;   /* rows that have a multiple of 64 elements */
    size_t scratch;     /* where the reader's begins */
    const void *params; /* the reader's */
};

static enum sdx_status run_chain_rows(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct chain_rows *p = step->params;
    const int64_t some = p->chain.tile / p->how.run, run = p->how.run;
    const int64_t end = sdx_part_begin(p->how.rows, step->parts, part + 1, p->together);
    const char *from = (char *)x->scratch + p->chain.members[p->chain.count - 1].at_out;
    int64_t n = 0;
    for (int64_t row = sdx_part_begin(p->how.rows, step->parts, part, p->together); row < end;
         row += n) {
        n = end - row < some ? end - row : some;
        run_members(&p->chain, x->scratch, row * run, (row + n) * run);
        p->how.take(p->params, from, row, n, step->out[0]->data, (char *)x->scratch + p->scratch);
    }
    return SDX_OK;
}

/* The maker as a chain whose last member makes the rows in a tile. false: it is not such a one. */
static bool copy_members(struct sdx_chain *to, const struct sdx_step *maker)
{
    const struct sdx_chain *chain = sdx_chain_of(maker);
    struct sdx_chain_member *last = &to->members[to->count - 1];
    if (chain)
        memcpy(to->members, chain->members, (size_t)to->count * sizeof *last);
    else
        *last = (struct sdx_chain_member){.step = *maker, .to = SDX_TILE_MEMORY};
    for (int i = 0; i < SDX_TILE_IN && !chain; i++)
        last->from[i] = SDX_TILE_MEMORY;
    if (last->to != SDX_TILE_MEMORY || last->step.out[0] != maker->out[0]) return false;
    last->to = to->count_tiles++;
    return true;
}

enum sdx_status sdx_chain_absorb_rows(struct sdx_context *cx, struct sdx_arena *arena,
                                      const struct sdx_step *maker, struct sdx_step *reader,
                                      const struct sdx_rows_reader *how, bool *done)
{
    enum { NAME = 200 };
    const struct sdx_chain *chain = sdx_chain_of(maker);
    const int64_t low = how->run & -how->run, together = 64 / (low < 64 ? low : 64);
    *done = false;
    if ((!chain && !maker->tiles) || how->run * together > TILE_MAX) return SDX_OK;
    struct chain_rows *p = sdx_arena_alloc(arena, sizeof *p);
    char *name = sdx_arena_alloc(arena, NAME);
    if (!p || !name) return SDX_FAIL_MEMORY(cx);
    *p = (struct chain_rows){.how = *how, .together = together, .params = reader->params};
    p->chain.count = chain ? chain->count : 1;
    p->chain.count_tiles = chain ? chain->count_tiles : 0;
    p->chain.multiple = how->run * together;
    p->chain.members = sdx_arena_array(arena, (size_t)p->chain.count, sizeof *p->chain.members);
    if (!p->chain.members) return SDX_FAIL_MEMORY(cx);
    if (!copy_members(&p->chain, maker)) return SDX_OK;
    sdx_chain_size(&p->chain);
    p->scratch = (sdx_chain_scratch(&p->chain) + 63) / 64 * 64;
    snprintf(name, NAME, "%s of %s", reader->kernel, maker->kernel);
    const double work = (double)(how->rows * how->run) * (sdx_chain_weight(&p->chain) + 1);
    const int64_t most = (how->rows + together - 1) / together;
    reader->run = run_chain_rows;
    reader->params = p;
    reader->in = maker->in;
    reader->count_in = maker->count_in;
    reader->parts = sdx_prepare_parts(work, SDX_NEST_GRAIN, most > 0 ? most : 1);
    reader->scratch = p->scratch + how->scratch;
    reader->kernel = name;
    *done = true;
    return SDX_OK;
}
