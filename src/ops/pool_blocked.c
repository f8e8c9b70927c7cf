/* SPDX-License-Identifier: Apache-2.0
 * Steps of the pools over blocked channels: parts are blocks of channels of an image. */
#include "ops/pool_blocked.h"

#include "kernels/conv_block.h"
#include "ops/conv_common.h"
#include "ops/layout.h"
#include "ops/window.h"

enum {
    GRAIN = 16384, /* reads a part */
    COLUMNS = 8    /* windows that the kernel takes at a time */
};

struct pool {
    struct sdx_pool_block shape;
    /* of a large window of a maximum: along the rows first, to a plane that `shape` reduces */
    struct sdx_pool_block across;
    bool is_average, count_pads, is_split;
    int64_t planes; /* blocks of channels of all images */
    int64_t channels, blocks;
};

static int64_t pixels_of(const int64_t *lengths)
{
    return lengths[0] * lengths[1] * lengths[2];
}

static bool is_dilated(const struct sdx_ir_node *node)
{
    int64_t count = 0;
    const int64_t *dilations = sdx_ir_attr_ints(node, "dilations", &count);
    for (int64_t i = 0; i < count; i++)
        if (dilations[i] != 1) return true;
    return false;
}

/* Images that are not blocked are reordered, there and back, in less time than windows take on
 * their rows, if these are of neighbours. */
void sdx_pool_blocked_layout(struct sdx_prepare *px, struct sdx_layouts *want)
{
    const struct sdx_tensor *x = px->in[0];
    if (x->layout == SDX_LAYOUT_PLAIN && (x->rank > 4 || is_dilated(px->node))) return;
    if (x->layout != SDX_LAYOUT_BLOCKED &&
        (x->layout != SDX_LAYOUT_PLAIN ||
         !sdx_layout_serves(SDX_LAYOUT_BLOCKED, x->dtype, x->rank) ||
         x->dims[1] < sdx_block_lanes()))
        return;
    if (px->count_out > 1 && px->out[1]) return;
    want->in[0] = want->out[0] = SDX_LAYOUT_BLOCKED;
}

static enum sdx_status run_pool(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct pool *p = step->params;
    const int64_t lanes = sdx_block_lanes(), rows = p->shape.out[0] * p->shape.out[1];
    const int64_t end = sdx_part_begin(p->planes, step->parts, part + 1, 1);
    for (int64_t i = sdx_part_begin(p->planes, step->parts, part, 1);
         i < end && !sdx_exec_cancelled(x); i++) {
        const struct sdx_pool_block *first = p->is_split ? &p->across : &p->shape;
        const float *from = (const float *)step->in[0]->data + i * pixels_of(first->in) * lanes;
        float *to = (float *)step->out[0]->data + i * pixels_of(p->shape.out) * lanes;
        if (p->is_split) {
            sdx_pool_block_max(first, from, x->scratch, 0, first->out[0] * first->out[1]);
            from = x->scratch;
        }
        if (p->is_average)
            sdx_pool_block_average(&p->shape, p->count_pads, from, to, 0, rows);
        else
            sdx_pool_block_max(&p->shape, from, to, 0, rows);
    }
    return SDX_OK;
}

const struct sdx_pool_block *sdx_pool_blocked_max(const struct sdx_step *step)
{
    const struct pool *p = step->params;
    return step->run == run_pool && !p->is_average && !p->is_split ? &p->shape : NULL;
}

/* Returns the bytes of the plane between. */
static size_t split(struct pool *p)
{
    struct sdx_pool_block *s = &p->shape, *across = &p->across;
    const int64_t down = s->kernel[0] * s->kernel[1];
    const double whole = (double)pixels_of(s->out) * (double)(down * s->kernel[2]);
    *across = *s;
    for (int i = 0; i < 2; i++) {
        across->kernel[i] = across->stride[i] = across->dilation[i] = 1;
        across->pad_begin[i] = across->pad_end[i] = 0;
        across->out[i] = s->in[i];
    }
    const double parts = (double)pixels_of(across->out) * (double)(s->kernel[2] + 2) +
                         (double)pixels_of(s->out) * (double)down;
    p->is_split = !p->is_average && parts < 0.8 * whole;
    if (!p->is_split) return 0;
    s->in[2] = s->out[2];
    s->kernel[2] = s->stride[2] = s->dilation[2] = 1;
    s->pad_begin[2] = s->pad_end[2] = 0;
    return (size_t)(pixels_of(s->in) * sdx_block_lanes()) * sizeof(float);
}

static struct pool *pool_create(struct sdx_prepare *px)
{
    const struct sdx_tensor *x = px->in[0];
    struct pool *p = SDX_PREPARE_NEW(px, struct pool);
    if (!p) return NULL;
    const int64_t lanes = sdx_block_lanes();
    p->channels = x->dims[1];
    p->blocks = (p->channels + lanes - 1) / lanes;
    p->planes = x->dims[0] * p->blocks;
    return p;
}

enum sdx_status sdx_pool_blocked_prepare(struct sdx_prepare *px, bool is_average)
{
    const struct sdx_tensor *x = px->in[0];
    struct pool *p = pool_create(px);
    struct sdx_window w;
    if (!p) return px->cx->error.status;
    p->is_average = is_average;
    p->count_pads = sdx_ir_attr_int(px->node, "count_include_pad", 0) != 0;
    SDX_TRY(sdx_window_read(px->cx, px->node, x->rank - 2, NULL, &w));
    double taps = 1;
    for (int i = 0; i < 3; i++) { /* fewer axes: the first have length 1 */
        const int axis = i - (3 - w.rank);
        struct sdx_pool_block *s = &p->shape;
        s->in[i] = s->out[i] = s->kernel[i] = s->stride[i] = s->dilation[i] = 1;
        if (axis < 0) continue;
        s->in[i] = x->dims[axis + 2];
        SDX_TRY(sdx_window_length(px->cx, px->node, &w, axis, s->in[i], &s->out[i]));
        s->kernel[i] = w.kernel[axis];
        s->stride[i] = w.stride[axis];
        s->dilation[i] = w.dilation[axis];
        s->pad_begin[i] = w.pad_begin[axis];
        s->pad_end[i] = w.pad_end[axis];
        taps *= (double)w.kernel[axis];
    }
    if (px->out[0]->count == 0) return SDX_OK;
    const size_t scratch = split(p);
    SDX_TRY(sdx_prepare_step(
        px, is_average ? "average_pool_blocked" : "max_pool_blocked", run_pool, p,
        sdx_prepare_parts((double)px->out[0]->count * taps, GRAIN, p->planes), scratch));
    sdx_prepare_absorbs(px, sdx_conv_absorb);
    return SDX_OK;
}

/* The greatest of each lane over a plane: down eight columns, then across those and what is left
 * over. room: vectors for both. */
static void plane_max(int64_t pixels, const float *x, float *room, float *y)
{
    const int64_t lanes = sdx_block_lanes(), rows = pixels / COLUMNS, whole = rows * COLUMNS;
    struct sdx_pool_block p = {.in = {1, rows, COLUMNS},
                               .out = {1, 1, COLUMNS},
                               .kernel = {1, rows, 1},
                               .stride = {1, 1, 1},
                               .dilation = {1, 1, 1}};
    if (rows) sdx_pool_block_max(&p, x, room, 0, 1);
    p.in[1] = p.kernel[1] = p.out[2] = 1;
    p.in[2] = p.kernel[2] = (rows ? COLUMNS : 0) + pixels - whole;
    memcpy(room + (rows ? COLUMNS : 0) * lanes, x + whole * lanes,
           (size_t)((pixels - whole) * lanes) * sizeof *x);
    sdx_pool_block_max(&p, room, y, 0, 1);
}

static enum sdx_status run_global(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct pool *p = step->params;
    const int64_t lanes = sdx_block_lanes(), pixels = pixels_of(p->shape.in);
    const int64_t end = sdx_part_begin(p->planes, step->parts, part + 1, 1);
    float *found = x->scratch;
    for (int64_t i = sdx_part_begin(p->planes, step->parts, part, 1); i < end; i++) {
        const int64_t first = i % p->blocks * lanes, left = p->channels - first;
        const float *from = (const float *)step->in[0]->data + i * pixels * lanes;
        if (p->is_average)
            sdx_pool_block_mean(pixels, from, found);
        else
            plane_max(pixels, from, found + lanes, found);
        memcpy((float *)step->out[0]->data + i / p->blocks * p->channels + first, found,
               (size_t)(left < lanes ? left : lanes) * sizeof *found);
    }
    return SDX_OK;
}

enum sdx_status sdx_global_blocked_prepare(struct sdx_prepare *px, bool is_average)
{
    struct pool *p = pool_create(px);
    struct sdx_tensor *x = px->in[0], *y = px->out[0];
    if (!p) return px->cx->error.status;
    p->is_average = is_average;
    p->shape.in[0] = p->shape.in[1] = p->shape.in[2] = 1;
    for (int d = 2; d < x->rank; d++)
        p->shape.in[2] *= x->dims[d];
    if (y->count == 0) return SDX_OK;
    return sdx_prepare_step_on(px, is_average ? "mean_blocked" : "max_blocked", run_global, p,
                               sdx_prepare_parts((double)x->count, GRAIN, p->planes),
                               (size_t)(2 * COLUMNS * sdx_block_lanes()) * sizeof(float), 1, &x, 1,
                               &y);
}
