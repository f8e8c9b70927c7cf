/* SPDX-License-Identifier: Apache-2.0
 * Where values lie: blocks of the slab with lifetimes, slices of blocks (joined inputs, pieces,
 * views), memory written over, and addresses within what the caller or an earlier segment gave. */
#include "run/planning.h"

int32_t sdx_place_new_block(struct sdx_planning *p, size_t size, int32_t first, int32_t last)
{
    if (!SDX_RESERVE(p, &p->work, p->blocks, p->count_blocks, p->capacity_blocks)) return -1;
    p->blocks[p->count_blocks] = (struct sdx_block){
        .size = size, .first = first, .last = last < first ? first : last, .whole = -1};
    return p->count_blocks++;
}

int32_t sdx_place_whole(const struct sdx_planning *p, int32_t block, size_t *shift)
{
    while (p->blocks[block].whole >= 0) {
        *shift += p->blocks[block].offset;
        block = p->blocks[block].whole;
    }
    return block;
}

void sdx_place_extend(struct sdx_planning *p, int32_t block, int32_t last)
{
    size_t shift = 0;
    struct sdx_block *b = &p->blocks[sdx_place_whole(p, block, &shift)];
    if (last > b->last) b->last = last;
}

enum sdx_status sdx_place_at(struct sdx_planning *p, struct sdx_tensor *t, struct sdx_spot spot)
{
    struct sdx_segment *s = p->s;
    if (spot.block >= 0) {
        if (!SDX_RESERVE(p, &p->work, p->pending, p->count_pending, p->capacity_pending))
            return p->cx->error.status;
        p->pending[p->count_pending++] = (struct sdx_pending){t, spot};
    } else if (spot.root && spot.root != t) {
        if (!SDX_RESERVE(p, &s->arena, s->aliases, s->count_aliases, s->capacity_aliases))
            return p->cx->error.status;
        s->aliases[s->count_aliases++] = (struct sdx_alias){t, spot.root, spot.shift};
    }
    return SDX_OK;
}

struct sdx_spot sdx_place_of_slot(const struct sdx_planning *p, int32_t value)
{
    const struct sdx_slot *slot = sdx_planning_slot(p, value);
    if (slot->depth == p->s->depth && slot->block >= 0)
        return (struct sdx_spot){.block = slot->block, .shift = slot->shift};
    return (struct sdx_spot){.block = -1, .root = slot->tensor};
}

enum sdx_status sdx_place_value(struct sdx_planning *p, int32_t value, struct sdx_tensor *t,
                                struct sdx_spot spot, bool is_dynamic)
{
    struct sdx_segment *s = p->s;
    struct sdx_slot *slot = sdx_planning_slot(p, value);
    slot->tensor = t;
    slot->block = spot.block;
    slot->shift = spot.shift;
    slot->depth = (int16_t)(t->is_constant ? -1 : s->depth);
    slot->is_dynamic = is_dynamic;
    if (spot.block >= 0) sdx_place_extend(p, spot.block, slot->last_use);
    if (!SDX_RESERVE(p, &s->arena, s->produced, s->count_produced, s->capacity_produced))
        return p->cx->error.status;
    s->produced[s->count_produced++] = (struct sdx_produced){value, t, is_dynamic};
    return SDX_OK;
}

struct sdx_spot sdx_place_over_input(struct sdx_planning *p, const struct sdx_ir_node *node,
                                     uint32_t over, const struct sdx_tensor *out)
{
    const struct sdx_spot none = {.block = -1};
    if (out->dtype == SDX_STRING) return none;
    for (int k = 0; k < 32 && k < node->count_inputs; k++) {
        if (!(over & SDX_OVER(k)) || node->inputs[k] < 0) continue;
        const struct sdx_slot *slot = sdx_planning_slot(p, node->inputs[k]);
        if (slot->depth != p->s->depth || slot->block < 0 || slot->tensor->bytes != out->bytes)
            continue;
        if (slot->tensor->count != out->count || slot->tensor->layout != out->layout) continue;
        size_t shift = 0;
        const int32_t whole = sdx_place_whole(p, slot->block, &shift);
        if (p->blocks[whole].last != p->node) continue;
        /* a piece of something larger could not become a piece of something else */
        if (whole != slot->block) continue;
        bool shared = false;
        for (int i = 0; i < node->count_inputs; i++) {
            size_t other = 0;
            if (i == k || node->inputs[i] < 0) continue;
            const struct sdx_slot *in = sdx_planning_slot(p, node->inputs[i]);
            shared = shared || (in->depth == p->s->depth && in->block >= 0 &&
                                sdx_place_whole(p, in->block, &other) == whole);
        }
        if (!shared) return (struct sdx_spot){.block = slot->block, .shift = slot->shift};
    }
    return none;
}

/* ---- joining: the inputs are made where the whole has them ---- */

struct joining {
    struct sdx_planning *p;
    const struct sdx_ir_node *node;
    struct sdx_tensor *const *in;
    const size_t *at;
    int32_t whole;
};

/* The whole block in which input i lies, and where; -1: in none of this segment. */
static int32_t block_of(const struct joining *j, int i, size_t *shift)
{
    const struct sdx_slot *slot = sdx_planning_slot(j->p, j->node->inputs[i]);
    *shift = slot->shift;
    if (slot->depth != j->p->s->depth || slot->block < 0 || slot->tensor != j->in[i]) return -1;
    return sdx_place_whole(j->p, slot->block, shift);
}

/* May the block that input i lies in become a slice of the whole? Then all inputs that it would
 * cover lie in it, at the right places. *to: where the slice begins. */
static bool can_join(const struct joining *j, int i, int32_t block, size_t shift, size_t *to)
{
    const struct sdx_block *blocks = j->p->blocks;
    const size_t size = blocks[block].size;
    if (block == j->whole || j->at[i] < shift || size > blocks[j->whole].size - (j->at[i] - shift))
        return false;
    *to = j->at[i] - shift;
    for (int k = 0; k < j->node->count_inputs; k++) {
        size_t other = 0;
        if (j->at[k] + j->in[k]->bytes <= *to || j->at[k] >= *to + size) continue;
        if (block_of(j, k, &other) != block || j->at[k] != *to + other) return false;
    }
    return true;
}

void sdx_place_join(struct sdx_planning *p, const struct sdx_ir_node *node, int32_t whole,
                    struct sdx_tensor *const *in, const size_t *at, bool *all)
{
    const struct joining j = {p, node, in, at, whole};
    for (int i = 0; i < node->count_inputs; i++) {
        size_t shift = 0, to = 0;
        const int32_t block = block_of(&j, i, &shift);
        if (block < 0 || !can_join(&j, i, block, shift, &to)) continue;
        struct sdx_block *slice = &p->blocks[block], *w = &p->blocks[whole];
        if (slice->first < w->first) w->first = slice->first;
        if (slice->last > w->last) w->last = slice->last;
        slice->whole = whole;
        slice->offset = to;
    }
    *all = true;
    for (int i = 0; i < node->count_inputs; i++) {
        size_t shift = 0;
        *all = *all && block_of(&j, i, &shift) == whole && shift == at[i];
    }
}

enum sdx_status sdx_place_finish(struct sdx_planning *p)
{
    struct sdx_segment *s = p->s;
    struct sdx_block **roots =
        sdx_arena_array(&p->work, (size_t)p->count_blocks + 1, sizeof *roots);
    s->placed = sdx_arena_array(&s->arena, (size_t)p->count_pending + 1, sizeof *s->placed);
    if (!roots || !s->placed) return SDX_FAIL_MEMORY(p->cx);
    int32_t count = 0;
    for (int32_t b = 0; b < p->count_blocks; b++)
        if (p->blocks[b].whole < 0) roots[count++] = &p->blocks[b];
    SDX_TRY(sdx_slab_plan(p->cx, &p->work, roots, count, &s->slab_size));
    for (int32_t i = 0; i < p->count_pending; i++) {
        size_t shift = p->pending[i].spot.shift;
        const int32_t block = sdx_place_whole(p, p->pending[i].spot.block, &shift);
        s->placed[i] = (struct sdx_placed){p->pending[i].tensor, p->blocks[block].offset + shift};
    }
    s->count_placed = p->count_pending;
    return SDX_OK;
}
