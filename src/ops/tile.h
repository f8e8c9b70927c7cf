/* SPDX-License-Identifier: Apache-2.0
 * Chains: steps that work element by element (struct sdx_tiles), run one after the other over a
 * tile that stays in the first-level cache, then over the next tile. What only members of the chain
 * read lies in scratch memory, a tile of it at a time. */
#ifndef SDX_OPS_TILE_H
#define SDX_OPS_TILE_H

#include "ops/step.h"

enum { SDX_TILE_MEMORY = -1 };

struct sdx_chain_member {
    struct sdx_step step;
    /* Number of a tile in scratch memory; SDX_TILE_MEMORY: the step's operand. */
    int32_t from[SDX_TILE_IN], to;
    /* What the run needs of that: where the tile begins; bits by which an operand moves. */
    size_t at[SDX_TILE_IN], at_out;
    unsigned bits[SDX_TILE_IN], bits_out;
};

struct sdx_chain {
    int32_t count, count_tiles;
    int64_t multiple;  /* that tiles are to be of, itself one of 64; 0: of that */
    int64_t tile;      /* elements of a tile */
    size_t tile_bytes; /* of a tile in scratch memory */
    struct sdx_chain_member *members;
};

/* Step of a chain; params: the struct sdx_chain. Its scratch: sdx_chain_scratch bytes. */
enum sdx_status sdx_chain_run(struct sdx_exec *x, const struct sdx_step *step, int64_t part);
/* Sets the size of a tile and what depends on it, for members whose tiles are numbered. */
void sdx_chain_size(struct sdx_chain *chain);
size_t sdx_chain_scratch(const struct sdx_chain *chain);
/* The chain that a step runs; NULL: it is a single step. */
const struct sdx_chain *sdx_chain_of(const struct sdx_step *step);
/* Cost of an element of a chain against an addition. */
double sdx_chain_weight(const struct sdx_chain *chain);
/* A step that takes rows of `run` elements one after the other, which need not lie in memory. */
struct sdx_rows_reader {
    int64_t rows, run;
    size_t scratch; /* bytes */
    /* `count` rows from number `first` on, of step->params; out: of the whole output */
    void (*take)(const void *params, const void *from, int64_t first, int64_t count, void *out,
                 void *scratch);
};
/* As sdx_absorb_fn: the reader takes the rows of tiles that a chain or a step like its members
 * makes, of as many whole rows as a tile has room for. */
SDX_MUST_CHECK enum sdx_status
sdx_chain_absorb_rows(struct sdx_context *cx, struct sdx_arena *arena, const struct sdx_step *maker,
                      struct sdx_step *reader, const struct sdx_rows_reader *how, bool *done);
/* How many parts a step that works element by element has. */
int64_t sdx_tile_parts(int64_t count, double weight);
#endif
