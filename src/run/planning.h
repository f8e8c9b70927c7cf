/* SPDX-License-Identifier: Apache-2.0
 * The making of one segment: state that segment.c (the walk over the nodes), place.c (memory) and
 * operands.c (inputs and outputs of steps) share. */
#ifndef SDX_RUN_PLANNING_H
#define SDX_RUN_PLANNING_H

#include "run/runner.h"

/* Where a tensor lies: `shift` bytes into a block of this segment, or into `root` (what an earlier
 * segment or the caller gave); neither: not placed, or a constant. */
struct sdx_spot {
    int32_t block; /* -1: none */
    const struct sdx_tensor *root;
    size_t shift;
};

/* A value in another layout than its slot's tensor has. */
struct sdx_twin {
    struct sdx_twin *next;
    struct sdx_tensor *tensor;
    struct sdx_spot spot;
};

struct sdx_planning {
    struct sdx_runner *r;
    struct sdx_segment *s;
    struct sdx_context *cx;
    struct sdx_arena work;
    struct sdx_block *blocks;
    int32_t count_blocks, capacity_blocks;
    struct sdx_pending {
        struct sdx_tensor *tensor;
        struct sdx_spot spot;
    } * pending;
    int32_t count_pending, capacity_pending;
    int32_t temps_placed;
    struct sdx_twin **twins; /* one list a value */
    char *aligned;           /* copies of unaligned constants while their node is prepared */
    size_t aligned_size;
    struct sdx_aligned_copy {
        struct sdx_tensor *copy;
        const struct sdx_tensor *original;
        void *place; /* of the copy */
        bool is_filled;
    } * copies;
    int count_copies;
    int32_t node;
    bool waits; /* the node asked for content that is not there yet */
};

/* Room for one more in an arena array. false: no memory (error set). */
bool sdx_planning_reserve(struct sdx_planning *p, struct sdx_arena *arena, void **array,
                          int32_t count, int32_t *capacity, size_t size);
#define SDX_RESERVE(p, arena, array, count, capacity)                                              \
    sdx_planning_reserve((p), (arena), (void **)&(array), (count), &(capacity), sizeof *(array))

static inline struct sdx_slot *sdx_planning_slot(const struct sdx_planning *p, int32_t value)
{
    return &p->r->slots[value];
}

/* What the caller, a body or a later plan reads is plain. */
static inline bool sdx_planning_must_be_plain(const struct sdx_planning *p, int32_t value)
{
    const struct sdx_slot *slot = sdx_planning_slot(p, value);
    return slot->last_use == SDX_TIME_FOREVER || slot->is_taken;
}

/* segment.c: the content of input i of a node when it is there; it becomes a fact of the plan.
 * NULL: it is not (p->waits when it will be), or an error is set. */
const struct sdx_tensor *sdx_planning_value(struct sdx_planning *p, const struct sdx_ir_node *node,
                                            int i);

/* A tensor of a type and shape that are known? */
bool sdx_planning_is_concrete(const struct sdx_type *type);

/* ---- place.c ---- */

/* New memory that lives from node `first` to `last`; -1: error set. */
int32_t sdx_place_new_block(struct sdx_planning *p, size_t size, int32_t first, int32_t last);
/* The block that `block` is a slice of, at *shift bytes more; itself when of none. */
int32_t sdx_place_whole(const struct sdx_planning *p, int32_t block, size_t *shift);
/* The block's memory is needed until `last` at least. */
void sdx_place_extend(struct sdx_planning *p, int32_t block, int32_t last);
/* Gives `t` its address when memory is bound. */
SDX_MUST_CHECK enum sdx_status sdx_place_at(struct sdx_planning *p, struct sdx_tensor *t,
                                            struct sdx_spot spot);
/* Where the tensor of a slot lies. */
struct sdx_spot sdx_place_of_slot(const struct sdx_planning *p, int32_t value);
/* From now on `value` is `t`, at `spot`. */
SDX_MUST_CHECK enum sdx_status sdx_place_value(struct sdx_planning *p, int32_t value,
                                               struct sdx_tensor *t, struct sdx_spot spot,
                                               bool is_dynamic);
/* Memory of an input that output 0 may be written over, of those that SDX_OVER bits name; block
 * -1: none. */
struct sdx_spot sdx_place_over_input(struct sdx_planning *p, const struct sdx_ir_node *node,
                                     uint32_t over, const struct sdx_tensor *out);
/* Input tensors become slices of `whole`'s block, at[i] bytes into it, as far as that can be.
 * *all: every one of them. */
void sdx_place_join(struct sdx_planning *p, const struct sdx_ir_node *node, int32_t whole,
                    struct sdx_tensor *const *in, const size_t *at, bool *all);
/* Offsets for all blocks, once every node is planned. */
SDX_MUST_CHECK enum sdx_status sdx_place_finish(struct sdx_planning *p);

/* ---- absorb.c ---- */

/* Steps that do the work of the one before them as well, where it is for them alone. */
SDX_MUST_CHECK enum sdx_status sdx_absorb_steps(struct sdx_planning *p);

/* ---- chain.c ---- */

/* Steps that work element by element and feed one another become chains. */
SDX_MUST_CHECK enum sdx_status sdx_chain_join(struct sdx_planning *p);

/* ---- operands.c ---- */

/* Value in `layout`, reordered by a step of the present node when it has another. *spot: where it
 * lies. NULL: error set. */
struct sdx_tensor *sdx_operand(struct sdx_planning *p, int32_t value, int layout, int rank,
                               struct sdx_spot *spot);
/* Steps of a node that is not a view; types: of its outputs. */
SDX_MUST_CHECK enum sdx_status sdx_operand_steps(struct sdx_planning *p,
                                                 const struct sdx_ir_node *node,
                                                 const struct sdx_type *types);
/* The copy that a view of strings is. */
SDX_MUST_CHECK enum sdx_status sdx_operand_copy_strings(struct sdx_planning *p,
                                                        const struct sdx_ir_node *node,
                                                        const struct sdx_type *type);
#endif
