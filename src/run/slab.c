/* SPDX-License-Identifier: Apache-2.0
 * The memory planner: blocks with lifetimes get offsets in one slab. Largest first, each in the
 * smallest gap that fits among the blocks that live at the same time (Pisarchyk and Lee 2020,
 * greedy by size). */
#include <stdlib.h>

#include "run/runner.h"

enum { ALIGN = 64 };

static int compare_sizes(const void *a, const void *b)
{
    const struct sdx_block *const *x = a, *const *y = b;
    if ((*x)->size != (*y)->size) return (*x)->size > (*y)->size ? -1 : 1;
    return (*x)->first < (*y)->first   ? -1
           : (*x)->first > (*y)->first ? 1
                                       : (*x < *y ? -1 : *x > *y);
}

enum sdx_status sdx_slab_plan(struct sdx_context *cx, struct sdx_arena *work,
                              struct sdx_block **blocks, int32_t count, size_t *slab_size)
{
    struct sdx_block **order = sdx_arena_array(work, (size_t)count + 1, sizeof *order);
    struct sdx_block **placed =
        sdx_arena_array(work, (size_t)count + 1, sizeof *placed); /* by offset */
    if (!order || !placed) return SDX_FAIL_MEMORY(cx);
    for (int32_t i = 0; i < count; i++) {
        order[i] = blocks[i];
        if (!sdx_add_size(order[i]->size, ALIGN - 1, &order[i]->size)) return SDX_FAIL_MEMORY(cx);
        order[i]->size -= order[i]->size % ALIGN;
    }
    qsort(order, (size_t)count, sizeof *order, compare_sizes);
    size_t total = 0;
    for (int32_t i = 0; i < count; i++) {
        struct sdx_block *b = order[i];
        size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
        for (int32_t j = 0; j < i; j++) {
            const struct sdx_block *p = placed[j];
            if (p->first > b->last || p->last < b->first) continue;
            if (p->offset > end && p->offset - end >= b->size && p->offset - end < best_gap) {
                best = end;
                best_gap = p->offset - end;
            }
            if (p->offset + p->size > end) end = p->offset + p->size;
        }
        b->offset = best != SIZE_MAX ? best : end;
        size_t top = 0;
        if (!sdx_add_size(b->offset, b->size, &top)) return SDX_FAIL_MEMORY(cx);
        if (top > total) total = top;
        int32_t at = i;
        for (; at > 0 && placed[at - 1]->offset > b->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = b;
    }
    *slab_size = total;
    return SDX_OK;
}
