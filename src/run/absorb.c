/* SPDX-License-Identifier: Apache-2.0
 * Steps that do the work of the one before them as well (`absorb` in ops/step.h), so that what lies
 * between the two takes no memory of its own. Decided once all steps of a segment are there, from
 * the blocks of memory, as chains are (chain.c), which come first: a chain may be the one before.
 */
#include "run/planning.h"

/* The block of this segment that `t` lies in, as a whole; -1: in none. *is_whole: all of it. */
static int32_t block_of(const struct sdx_planning *p, const struct sdx_tensor *t, bool *is_whole)
{
    for (int32_t i = 0; t && i < p->count_pending; i++) {
        const struct sdx_spot *spot = &p->pending[i].spot;
        size_t shift = spot->shift;
        if (p->pending[i].tensor != t) continue;
        const int32_t block = sdx_place_whole(p, spot->block, &shift);
        *is_whole = block == spot->block && shift == 0 && p->blocks[block].size == t->bytes;
        return block;
    }
    return -1;
}

/* Does the reader alone read what the maker makes, in a block that lives for that only? */
static bool is_between(const struct sdx_planning *p, const struct sdx_step *maker,
                       const struct sdx_step *reader, int32_t *between)
{
    bool is_whole = false;
    if (maker->count_out != 1 || reader->count_out != 1 || !maker->out[0] ||
        reader->in[0] != maker->out[0])
        return false;
    for (int32_t i = 1; i < reader->count_in; i++)
        if (reader->in[i] == maker->out[0]) return false;
    *between = block_of(p, maker->out[0], &is_whole);
    return *between >= 0 && is_whole && p->blocks[*between].first == maker->node &&
           p->blocks[*between].last == reader->node;
}

/* What the maker reads is needed for longer, so the reader's output must not lie there. */
static bool is_apart(const struct sdx_planning *p, const struct sdx_step *maker,
                     const struct sdx_step *reader)
{
    bool is_whole;
    const int32_t to = block_of(p, reader->out[0], &is_whole);
    for (int32_t i = 0; i < maker->count_in; i++) {
        const int32_t from = block_of(p, maker->in[i], &is_whole);
        if (from >= 0 && from == to) return false;
    }
    return true;
}

static enum sdx_status absorb(struct sdx_planning *p, struct sdx_step *maker,
                              struct sdx_step *reader)
{
    int32_t between;
    bool done, is_whole;
    if (!is_between(p, maker, reader, &between) || !is_apart(p, maker, reader)) return SDX_OK;
    SDX_TRY(reader->absorb(p->cx, &p->s->arena, maker, reader, &done));
    if (!done) return SDX_OK;
    p->blocks[between].size = 0;
    for (int32_t i = 0; i < maker->count_in; i++) {
        const int32_t block = block_of(p, maker->in[i], &is_whole);
        if (block >= 0) sdx_place_extend(p, block, reader->node);
    }
    reader->absorbed = sdx_arena_copy(&p->s->arena, maker, sizeof *maker);
    if (!reader->absorbed) return SDX_FAIL_MEMORY(p->cx);
    maker->run = NULL;
    return SDX_OK;
}

enum sdx_status sdx_absorb_steps(struct sdx_planning *p)
{
    struct sdx_step_list *list = &p->s->list;
    int32_t kept = 0;
    for (int32_t s = 1; s < list->count; s++)
        if (list->steps[s].absorb && list->steps[s - 1].run)
            SDX_TRY(absorb(p, &list->steps[s - 1], &list->steps[s]));
    for (int32_t s = 0; s < list->count; s++)
        if (list->steps[s].run) list->steps[kept++] = list->steps[s];
    list->count = kept;
    return SDX_OK;
}
