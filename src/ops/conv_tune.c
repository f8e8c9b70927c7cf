/* SPDX-License-Identifier: Apache-2.0
 * Times the forms of a convolution on this machine: they take turns on one thread, and each is
 * judged by its fastest call. Weights leave the caches before each call, as in a model, where those
 * of the other layers push them out. */
#include "ops/conv_tune.h"

#include <stdio.h>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "kernels/conv_block.h"

enum { WAYS = 9, PLAIN = WAYS - 1, ROUNDS = 4, TURN_NS = 2000000, KEY_MOST = 300 };
_Static_assert((int)WAYS <= (int)SDX_WAYS_MOST, "sdx_prepare_choose has room for fewer");

static const char *const names[WAYS] = {"block",         "tiles",      "winograd_2",
                                        "winograd_3",    "winograd_4", "winograd_6",
                                        "winograd_line", "spans",      "plain"};
static const struct {
    int winograd;
    enum sdx_conv_block_form form; /* NONE: any */
    double worth; /* taken when it needs less than this share: F(6 x 6) is less exact, and plain
                     layout costs the reorders around it */
} kinds[WAYS] = {{-1, SDX_CONV_BLOCK_NONE, 1},         {1, SDX_CONV_BLOCK_TILES, 1},
                 {2, SDX_CONV_BLOCK_WINOGRAD_2, 1},    {3, SDX_CONV_BLOCK_WINOGRAD_3, 1},
                 {4, SDX_CONV_BLOCK_WINOGRAD_4, 1},    {6, SDX_CONV_BLOCK_WINOGRAD_6, 0.9},
                 {4, SDX_CONV_BLOCK_WINOGRAD_LINE, 1}, {0, SDX_CONV_BLOCK_SPANS, 1},
                 {0, SDX_CONV_BLOCK_NONE, 0.8}};

/* Can way i serve the shape? *s becomes what that is called with. */
static bool serves(int i, struct sdx_conv_shape *s)
{
    s->winograd = kinds[i].winograd;
    if (i == PLAIN) return s->half == SDX_HALF_NONE;
    const enum sdx_conv_block_form form = sdx_conv_block_form(s);
    if (form == SDX_CONV_BLOCK_SPANS) s->winograd = sdx_conv_block_winograd(s);
    return form != SDX_CONV_BLOCK_NONE && (!kinds[i].form || form == kinds[i].form);
}

struct way {
    struct sdx_conv_shape shape;
    bool is_plain;
    void *packed, *scratch; /* packed NULL: does not serve */
    size_t size;            /* of packed */
    double best;            /* ns */
};

struct operands {
    float *x, *weights, *bias, *y;
};

/* Numbers that 16 bits hold. NULL: no memory. */
static float *noise(struct sdx_context *cx, int64_t count)
{
    float *to = sdx_mem_alloc(cx->mem, SDX_MEM_SCRATCH, (size_t)count * sizeof *to + 64);
    uint32_t state = 1;
    for (int64_t i = 0; to && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        to[i] = (float)((int)(state >> 25) - 64) / 64;
    }
    return to;
}

static int64_t values(int64_t channels, const int64_t *dims)
{
    const int64_t lanes = sdx_block_lanes();
    return (channels + lanes - 1) / lanes * lanes * dims[0] * dims[1] * dims[2];
}

static bool open_way(struct sdx_context *cx, struct way *w, const float *weights)
{
    const struct sdx_conv_shape *s = &w->shape;
    const size_t of_pack = w->is_plain ? 0 : sdx_conv_block_pack_scratch(s);
    size_t scratch = w->is_plain ? sdx_conv_f32_scratch(s) : sdx_conv_block_scratch(s);
    if (scratch < of_pack) scratch = of_pack;
    w->size = w->is_plain ? sdx_conv_f32_packed_size(s) : sdx_conv_block_packed_size(s);
    w->packed = sdx_mem_alloc(cx->mem, SDX_MEM_SCRATCH, w->size + 64);
    w->scratch = sdx_mem_alloc(cx->mem, SDX_MEM_SCRATCH, scratch + 64);
    if (!w->packed || !w->scratch) return false;
    if (w->is_plain)
        sdx_conv_f32_pack(s, weights, w->packed);
    else
        sdx_conv_block_pack(s, weights, w->packed, w->scratch, NULL);
    return true;
}

static bool call_way(const struct way *w, const struct operands *o, const atomic_int *cancel)
{
    const struct sdx_epilogue e = {.bias_row = o->bias};
    const int64_t parts =
        w->is_plain ? sdx_conv_f32_parts(&w->shape) : sdx_conv_block_parts(&w->shape);
    const int64_t together = w->is_plain ? 1 : sdx_conv_block_together(&w->shape);
    for (int64_t part = 0; part < parts; part += together) {
        if (atomic_load_explicit(cancel, memory_order_relaxed)) return false;
        if (w->is_plain)
            sdx_conv_f32_part(&w->shape, o->x, w->packed, o->y, &e, part, w->scratch);
        else
            sdx_conv_block_run(&w->shape, o->x, w->packed, o->y, &e, part,
                               part + together < parts ? part + together : parts, w->scratch);
    }
    return true;
}

/* One turn: as many calls as fit. false: cancelled. */
static bool turn(struct way *w, const struct operands *o, const atomic_int *cancel)
{
    const int64_t calls = w->best > 0 && w->best < TURN_NS ? (int64_t)(TURN_NS / w->best) : 1;
    for (int64_t i = 0; i < calls; i++) {
        sdx_machine_evict(w->packed, w->size);
        const int64_t begin = sdx_clock_ns();
        if (!call_way(w, o, cancel)) return false;
        const double taken = (double)(sdx_clock_ns() - begin) + 1;
        if (w->best == 0 || taken < w->best) w->best = taken;
    }
    return true;
}

static enum sdx_status measure(struct sdx_context *cx, void *arg, const atomic_int *cancel,
                               double *ns)
{
    const struct sdx_conv_shape *s = arg;
    struct way ways[WAYS] = {{.size = 0}};
    const int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    const struct operands o = {noise(cx, values(s->ic, s->in)),
                               noise(cx, s->oc * s->ic / s->groups * taps), noise(cx, s->oc),
                               noise(cx, values(s->oc, s->out))};
    enum sdx_status status =
        o.x && o.weights && o.bias && o.y ? SDX_OK : SDX_OUT_OF_MEMORY; /* goes on untuned */
    for (int i = 0; i < WAYS && status == SDX_OK; i++) {
        ways[i].shape = *s;
        ways[i].is_plain = i == PLAIN;
        if (serves(i, &ways[i].shape) && !open_way(cx, &ways[i], o.weights))
            status = SDX_OUT_OF_MEMORY;
    }
    for (int i = 0; i < ROUNDS * WAYS && status == SDX_OK; i++)
        if (ways[i % WAYS].packed && !turn(&ways[i % WAYS], &o, cancel)) status = SDX_CANCELLED;
    for (int i = 0; i < WAYS; i++) {
        ns[i] = ways[i].packed ? ways[i].best / kinds[i].worth : -1;
        sdx_mem_free(cx->mem, ways[i].packed);
        sdx_mem_free(cx->mem, ways[i].scratch);
    }
    float *const all[] = {o.x, o.weights, o.bias, o.y};
    for (int i = 0; i < SDX_COUNT_OF(all); i++)
        sdx_mem_free(cx->mem, all[i]);
    return status;
}

static void put(char *key, const char *name, const int64_t *v, int count)
{
    size_t at = strlen(key);
    for (int i = 0; i < count && at < KEY_MOST; i++, name = "x")
        at += (size_t)snprintf(key + at, KEY_MOST - at, "%s%lld", name, (long long)v[i]);
}

bool sdx_conv_tune(struct sdx_prepare *px, struct sdx_conv_shape *shape)
{
    struct sdx_conv_shape one = *shape, tuned = *shape;
    if (!sdx_prepare_tunes(px) || !px->in[1]->is_constant) return false;
    char key[KEY_MOST] = "Conv";
    const int64_t of_weights[] = {shape->oc, shape->ic, shape->groups, (int64_t)shape->half};
    one.batch = 1;
    put(key, " ", of_weights, SDX_COUNT_OF(of_weights));
    put(key, " in ", shape->in, 3);
    put(key, " out ", shape->out, 3);
    put(key, " kernel ", shape->kernel, 3);
    put(key, " stride ", shape->stride, 3);
    put(key, " dilation ", shape->dilation, 3);
    put(key, " pad ", shape->pad_begin, 3);
    const struct sdx_choice choice = {
        .key = key, .count = WAYS, .ways = names, .measure = measure, .arg = &one};
    const int way = sdx_prepare_choose(px, &choice);
    if (way < 0 || !serves(way, &tuned)) return false;
    *shape = tuned;
    return way == PLAIN;
}
