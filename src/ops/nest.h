/* SPDX-License-Identifier: Apache-2.0
 * The loop nest of elementwise operators with NumPy broadcasting. Axes that all operands walk in
 * the same way are merged, so that what is left is an innermost loop in which every operand either
 * moves by one element or stands still, inside a few outer loops. Where the innermost loop is
 * short, blocks of the operands that do not lie in order are gathered into scratch memory first. */
#ifndef SDX_OPS_NEST_H
#define SDX_OPS_NEST_H

#include "ops/infer.h"
#include "ops/step.h"

enum {
    SDX_NEST_IN = 3,
    SDX_NEST_BLOCK = 512, /* elements gathered at a time */
    SDX_NEST_SCRATCH = SDX_NEST_IN * SDX_NEST_BLOCK * 16,
    SDX_NEST_GRAIN = 32768 /* cheap elements a part should have */
};

struct sdx_nest {
    int64_t count; /* elements of the output */
    int64_t inner; /* length of the innermost loop */
    int64_t *dims; /* outer loops, outermost first */
    int64_t *step[SDX_NEST_IN];
    int64_t inner_step[SDX_NEST_IN]; /* 0 or 1 */
    int32_t rank;                    /* outer loops */
    int32_t count_in;
    int32_t size[SDX_NEST_IN], size_out; /* bytes of an element */
    bool is_full[SDX_NEST_IN];           /* walks like the output */
    bool is_scalar[SDX_NEST_IN];         /* never moves */
    bool gathers;
};

/* One run of n elements: step[i] is 0 or 1. false: a value breaks the operator's rules. */
typedef bool sdx_nest_fn(const void *arg, const void *const *in, const int64_t *step, void *out,
                         int64_t n);

struct sdx_nest_shape {
    const int64_t *dims;
    int rank;
};

/* The nest of `out` over operands of these shapes (right-aligned). Types have whole bytes. */
SDX_MUST_CHECK enum sdx_status sdx_nest_make(struct sdx_prepare *px, struct sdx_nest *nest,
                                             const struct sdx_tensor *out, int count_in,
                                             struct sdx_tensor *const *in,
                                             const struct sdx_nest_shape *shapes);
/* The same with the operands' own shapes. */
SDX_MUST_CHECK enum sdx_status sdx_nest_plain(struct sdx_prepare *px, struct sdx_nest *nest,
                                              const struct sdx_tensor *out, int count_in,
                                              struct sdx_tensor *const *in);
/* Two operands of an operator that before opset 7 had the attributes `broadcast` and `axis`. */
SDX_MUST_CHECK enum sdx_status sdx_nest_binary(struct sdx_prepare *px, struct sdx_nest *nest);
/* Scratch bytes a step with this nest needs. */
static inline size_t sdx_nest_scratch(const struct sdx_nest *nest)
{
    return nest->gathers ? SDX_NEST_SCRATCH : 0;
}
/* Elements begin .. end-1 of the output. `in` and `out`: the first elements. */
bool sdx_nest_run(const struct sdx_nest *nest, const void *const *in, void *out, int64_t begin,
                  int64_t end, void *scratch, sdx_nest_fn *fn, const void *arg);

/* The same for a tile: `out` and the full operands in `in` begin with the element `begin`. */
bool sdx_nest_tile(const struct sdx_nest *nest, const void *const *in, void *out, int64_t begin,
                   int64_t end, void *scratch, sdx_nest_fn *fn, const void *arg);

/* A step that runs one nest. `failure` is the text of what makes `fn` return false; NULL: nothing
 * does, and the step may join a chain. */
struct sdx_nest_job {
    struct sdx_nest nest;
    sdx_nest_fn *fn;
    const void *arg;
    const char *failure;
};
/* Adds the step; `weight` is the cost of an element against an addition. */
SDX_MUST_CHECK enum sdx_status sdx_nest_add(struct sdx_prepare *px, const char *kernel,
                                            struct sdx_nest_job *job, double weight, int count_in,
                                            struct sdx_tensor *const *in, struct sdx_tensor *out);

/* Inference: of old broadcasting binary operators (opset < 7) the output is as input 0; the newer
 * forms broadcast. */
SDX_MUST_CHECK enum sdx_status sdx_nest_infer_shape(struct sdx_infer *ix);
#endif
