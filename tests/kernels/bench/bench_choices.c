/* SPDX-License-Identifier: Apache-2.0
 * Times the forms that can serve each convolution of stdin (the rows of conv_shapes.tsv), for
 * bench/choices: bench_choices LIMIT_PERCENT ROUNDS ALL. Forms of a shape take turns; a figure is
 * the least of its calls. Before each call the packed weights leave the caches, as in a model,
 * where those of the other layers push them out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kernels/conv_block.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#define EVICT(p) _mm_clflush(p)
#else
#define EVICT(p) (void)(p)
#endif

enum { LARGE = 2 << 20, FORMS = 9, TURN_NS = 2000000, LINE = 64 };
enum { DIRECT, PLAIN = FORMS - 1 };
static const struct {
    const char *name;
    int winograd;
    enum sdx_conv_block_form form;
    double worth; /* the less exact form is wanted when it takes less than this share */
} kinds[FORMS] = {{"direct", -1, SDX_CONV_BLOCK_DIRECT, 1},
                  {"tiles", 1, SDX_CONV_BLOCK_TILES, 1},
                  {"winograd_2", 2, SDX_CONV_BLOCK_WINOGRAD_2, 1},
                  {"winograd_3", 3, SDX_CONV_BLOCK_WINOGRAD_3, 1},
                  {"winograd_4", 4, SDX_CONV_BLOCK_WINOGRAD_4, 1},
                  {"winograd_6", 6, SDX_CONV_BLOCK_WINOGRAD_6, 0.9},
                  {"winograd_line", 4, SDX_CONV_BLOCK_WINOGRAD_LINE, 1},
                  {"spans", 0, SDX_CONV_BLOCK_SPANS, 1},
                  {"plain", 0, SDX_CONV_BLOCK_NONE, 1}};

struct form {
    struct sdx_conv_shape shape;
    bool plain, served;
    float *packed;
    size_t packed_size;
    void *scratch;
    int64_t parts;
    double best; /* ns of a call */
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
/* On large pages, as the library has its weights and scratch. */
static void *room(size_t bytes)
{
    const size_t align = bytes < LARGE / 2 ? 64 : LARGE,
                 size = (bytes + 64 + align) / align * align;
    void *p = aligned_alloc(align, size);
#ifdef MADV_HUGEPAGE
    if (p && align == LARGE) (void)madvise(p, size, MADV_HUGEPAGE);
#endif
    if (!p) {
        fprintf(stderr, "choices: no memory\n");
        exit(2);
    }
    return p;
}
static float *noise(int64_t count)
{
    float *p = room((size_t)count * sizeof(float));
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        p[i] = (float)(state >> 8) / (1 << 23) - 1;
    }
    return p;
}

static bool read_row(const char *line, struct sdx_conv_shape *s)
{
    long long v[22];
    int count = 0;
    char *end;
    for (; count < 22 && *line; count++, line = *end ? end + 1 : end) {
        v[count] = strtoll(line, &end, 10);
        if (end == line) return false;
    }
    *s = (struct sdx_conv_shape){.batch = v[0], .groups = v[1], .ic = v[2], .oc = v[3]};
    for (int i = 0; i < 3 && count == 22; i++) {
        s->in[i] = v[4 + i];
        s->out[i] = v[7 + i];
        s->kernel[i] = v[10 + i];
        s->stride[i] = v[13 + i];
        s->dilation[i] = v[16 + i];
        s->pad_begin[i] = v[19 + i];
    }
    return count == 22;
}

struct operands {
    float *x, *weights, *bias, *y;
};
static int64_t values(int64_t batch, int64_t channels, const int64_t *dims)
{
    const int64_t lanes = sdx_block_lanes();
    return batch * ((channels + lanes - 1) / lanes) * lanes * dims[0] * dims[1] * dims[2];
}
static struct operands operands_of(const struct sdx_conv_shape *s)
{
    const int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    return (struct operands){noise(values(s->batch, s->ic, s->in)),
                             noise(s->oc * s->ic / s->groups * taps), noise(s->oc),
                             noise(values(s->batch, s->oc, s->out))};
}

static void form_open(struct form *f, const float *weights)
{
    const struct sdx_conv_shape *s = &f->shape;
    const size_t packed = f->plain ? sdx_conv_f32_packed_size(s) : sdx_conv_block_packed_size(s);
    f->packed_size = packed;
    f->packed = room(packed);
    const size_t of_pack = f->plain ? 0 : sdx_conv_block_pack_scratch(s);
    const size_t scratch = f->plain ? sdx_conv_f32_scratch(s) : sdx_conv_block_scratch(s);
    f->scratch = room(scratch > of_pack ? scratch : of_pack);
    f->parts = f->plain ? sdx_conv_f32_parts(s) : sdx_conv_block_parts(s);
    if (f->plain)
        sdx_conv_f32_pack(s, weights, f->packed);
    else
        sdx_conv_block_pack(s, weights, f->packed, f->scratch, NULL);
}
static void form_run(const struct form *f, const struct operands *o)
{
    const struct sdx_epilogue e = {.bias_row = o->bias};
    const int64_t together = f->plain ? 1 : sdx_conv_block_together(&f->shape);
    for (int64_t part = 0; part < f->parts; part += together)
        if (f->plain)
            sdx_conv_f32_part(&f->shape, o->x, f->packed, o->y, &e, part, f->scratch);
        else
            sdx_conv_block_run(&f->shape, o->x, f->packed, o->y, &e, part,
                               part + together < f->parts ? part + together : f->parts, f->scratch);
}
/* One turn: as many calls as take TURN_NS, or one. */
static void form_turn(struct form *f, const struct operands *o)
{
    const int64_t calls = f->best > 0 && f->best < TURN_NS ? (int64_t)(TURN_NS / f->best) : 1;
    for (int64_t i = 0; i < calls; i++) {
        for (size_t at = 0; at < f->packed_size; at += LINE)
            EVICT((const char *)f->packed + at);
        const double begin = now_ns();
        form_run(f, o);
        const double taken = now_ns() - begin;
        if (f->best == 0 || taken < f->best) f->best = taken;
    }
}

/* The forms that serve s, and which of them is the pick. Returns their number. */
static int find_forms(const struct sdx_conv_shape *s, bool all, struct form *forms, int *pick)
{
    const enum sdx_conv_block_form picked = sdx_conv_block_form(s);
    int count = 0;
    *pick = DIRECT;
    for (int i = 0; i < FORMS; i++) {
        struct form *f = &forms[i];
        *f = (struct form){.shape = *s, .plain = i == PLAIN};
        f->shape.winograd = kinds[i].winograd;
        const enum sdx_conv_block_form form = sdx_conv_block_form(&f->shape);
        f->served = i == PLAIN    ? all
                    : i == DIRECT ? form != SDX_CONV_BLOCK_NONE
                                  : form == kinds[i].form;
        if (form == SDX_CONV_BLOCK_SPANS) f->shape.winograd = sdx_conv_block_winograd(&f->shape);
        if (kinds[i].form == picked) *pick = i;
        count += f->served;
    }
    return count;
}
/* Its least time, as it counts against the others. */
static double weight(const struct form *forms, int i, int pick)
{
    return i == pick ? forms[i].best : forms[i].best / kinds[i].worth;
}
static int best_of(const struct form *forms, int pick)
{
    int best = -1;
    for (int i = 0; i < FORMS; i++)
        if (forms[i].served && (best < 0 || weight(forms, i, pick) < weight(forms, best, pick)))
            best = i;
    return best;
}
static void take_turns(struct form *forms, const struct operands *o, int rounds)
{
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < FORMS; i++)
            if (forms[i].served) form_turn(&forms[i], o);
}

struct counts {
    int shapes, beyond;
    double picked, best; /* ns */
};
static void compare(const char *row, const struct sdx_conv_shape *s, double limit, int rounds,
                    bool all, struct counts *counts)
{
    struct form forms[FORMS];
    int pick;
    if (find_forms(s, all, forms, &pick) < 2) return;
    const struct operands o = operands_of(s);
    for (int i = 0; i < FORMS; i++)
        if (forms[i].served) form_open(&forms[i], o.weights);
    take_turns(forms, &o, rounds);
    int best = best_of(forms, pick);
    if (forms[pick].best > limit * weight(forms, best, pick)) take_turns(forms, &o, 4 * rounds);
    best = best_of(forms, pick);
    const double ratio = forms[pick].best / weight(forms, best, pick);
    printf("%-13s %-13s %5.2f%s", kinds[pick].name, kinds[best].name, ratio,
           ratio > limit ? " beyond" : "       ");
    for (int i = 0; i < FORMS; i++)
        printf(" %13.1f", forms[i].served ? forms[i].best / 1000 : 0.0);
    printf("  %s\n", row);
    fflush(stdout);
    counts->shapes++;
    counts->beyond += ratio > limit;
    counts->picked += forms[pick].best;
    counts->best += weight(forms, best, pick);
    for (int i = 0; i < FORMS; i++) {
        free(forms[i].packed);
        free(forms[i].scratch);
    }
    free(o.x);
    free(o.weights);
    free(o.bias);
    free(o.y);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: bench_choices LIMIT_PERCENT ROUNDS ALL <conv_shapes.tsv\n");
        return 2;
    }
    const double limit = 1 + atof(argv[1]) / 100;
    const int rounds = atoi(argv[2]);
    struct counts counts = {0};
    char line[512];
    printf("%-13s %-13s ratio us:      ", "pick", "best");
    for (int i = 0; i < FORMS; i++)
        printf(" %13s", kinds[i].name);
    printf("  shape\n");
    while (fgets(line, sizeof line, stdin)) {
        struct sdx_conv_shape s;
        line[strcspn(line, "\n")] = 0;
        if (line[0] == 0) continue;
        if (!read_row(line, &s)) {
            fprintf(stderr, "choices: no shape: %s\n", line);
            return 2;
        }
        compare(line, &s, limit, rounds, atoi(argv[3]), &counts);
    }
    printf("%d shapes, %d picks beyond %.0f %% of the best; all picks take %.3f of the best\n",
           counts.shapes, counts.beyond, (limit - 1) * 100,
           counts.best > 0 ? counts.picked / counts.best : 1.0);
    return counts.beyond > 0;
}
