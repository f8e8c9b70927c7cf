/* SPDX-License-Identifier: Apache-2.0
 * Steps of blocked channels from others: for each block of the output, the blocks that give it
 * lanes. */
#include "ops/channel_pick.h"

#include "kernels/channel_block.h"
#include "kernels/conv_block.h"
#include "ops/move.h"
#include "ops/step_host.h"

enum { GRAIN = 16384 /* elements of a part */, CHUNK = 512 /* pixels at a time */ };

/* Where the lanes of an output block come from. */
struct source {
    int32_t input;
    int64_t block;
    struct sdx_channel_source lanes;
};
struct pick {
    int64_t batch, blocks, pixels, chunks; /* blocks of the output */
    const int64_t *first;                  /* sources of block b: first[b] .. first[b + 1] */
    struct source *sources;
    int64_t blocks_in[]; /* of each input */
};

static enum sdx_status run_pick(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct pick *p = step->params;
    const int64_t lanes = sdx_block_lanes(), units = p->batch * p->blocks * p->chunks;
    const int64_t end = sdx_part_begin(units, step->parts, part + 1, 1);
    struct sdx_channel_source at[16];
    for (int64_t u = sdx_part_begin(units, step->parts, part, 1); u < end && !sdx_exec_cancelled(x);
         u++) {
        const int64_t row = u / p->chunks, image = row / p->blocks, block = row % p->blocks;
        const int64_t p0 = u % p->chunks * CHUNK;
        const int64_t pixels = p->pixels - p0 < CHUNK ? p->pixels - p0 : CHUNK;
        const int64_t count = p->first[block + 1] - p->first[block];
        for (int64_t k = 0; k < count; k++) {
            const struct source *s = &p->sources[p->first[block] + k];
            const int64_t plane = image * p->blocks_in[s->input] + s->block;
            at[k] = s->lanes;
            at[k].x = (const float *)step->in[s->input]->data + (plane * p->pixels + p0) * lanes;
        }
        sdx_channel_block()->f32_pick(
            at, count, (float *)step->out[0]->data + (row * p->pixels + p0) * lanes, pixels);
    }
    return SDX_OK;
}

/* Lane `lane` of an output block comes from there: of a source that it has, or of a new one. */
static void add_lane(struct source *sources, int64_t *count, int64_t lane, int64_t lanes,
                     struct sdx_channel from)
{
    int64_t k = 0;
    while (k < *count &&
           (sources[k].input != from.input || sources[k].block != from.channel / lanes))
        k++;
    if (k == *count) {
        (*count)++;
        sources[k].input = from.input;
        sources[k].block = from.channel / lanes;
    }
    sources[k].lanes.from[lane] = (int32_t)(from.channel % lanes);
    sources[k].lanes.take[lane] = -1;
}

enum sdx_status sdx_channel_pick(struct sdx_prepare *px, const char *kernel, int count_in,
                                 struct sdx_tensor *const *in, struct sdx_tensor *out,
                                 const struct sdx_channel *map)
{
    const int64_t lanes = sdx_block_lanes(), channels = out->dims[1];
    const int64_t blocks = (channels + lanes - 1) / lanes;
    struct pick *p = sdx_prepare_alloc(px, sizeof *p + (size_t)count_in * sizeof(int64_t));
    int64_t *first = sdx_prepare_alloc(px, (size_t)(blocks + 1) * sizeof *first);
    if (!p || !first) return SDX_FAIL_MEMORY(px->cx);
    p->sources = sdx_prepare_alloc(px, (size_t)channels * sizeof *p->sources);
    if (!p->sources) return SDX_FAIL_MEMORY(px->cx);
    p->batch = out->dims[0];
    p->blocks = blocks;
    p->pixels = sdx_move_product(out->dims, 2, out->rank);
    p->chunks = (p->pixels + CHUNK - 1) / CHUNK;
    for (int i = 0; i < count_in; i++)
        p->blocks_in[i] = (in[i]->dims[1] + lanes - 1) / lanes;
    for (int64_t b = 0; b < blocks; b++) {
        int64_t count = 0;
        for (int64_t c = b * lanes; c < channels && c < (b + 1) * lanes; c++)
            if (map[c].channel >= 0)
                add_lane(p->sources + first[b], &count, c - b * lanes, lanes, map[c]);
        first[b + 1] = first[b] + count;
    }
    p->first = first;
    if (out->count == 0) return SDX_OK;
    return sdx_prepare_step_on(
        px, kernel, run_pick, p,
        sdx_prepare_parts((double)out->count, GRAIN, p->batch * blocks * p->chunks), 0, count_in,
        in, 1, &out);
}
