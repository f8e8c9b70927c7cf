/* SPDX-License-Identifier: Apache-2.0
 * From a node to steps, and the running of steps. `prepare` runs once a node and set of input
 * shapes: it reads attributes, checks, packs weights, picks the loop and adds one or more steps. A
 * step is split into parts that may run at once on several threads; the split depends on shapes
 * only, never on the number of threads, so results do not either (how many parts come in one call
 * may, where a part's result does not depend on its neighbours). A step sees operands and its
 * parameters, never the graph. */
#ifndef SDX_OPS_STEP_H
#define SDX_OPS_STEP_H

#include "ir/ir.h"

struct sdx_exec;
struct sdx_body; /* a body of If, Loop, Scan made ready to run; owned by the plan */
struct sdx_step;

/* Runs one part. Operands: step->in[i], step->out[k] (data, dims, dtype). Returns a failure only
 * for values that break the operator's rules, or for want of memory. */
typedef enum sdx_status sdx_step_fn(struct sdx_exec *x, const struct sdx_step *step, int64_t part);

/* Elements begin .. end-1 of a step whose every element of the output depends on the elements at
 * the same place of its full operands, and on other operands. `in` and `out`: of full operands and
 * of the output the element `begin`, of others the first. begin is a multiple of 64. `out` may be
 * the memory of a full operand with elements of the same size. scratch: step->scratch bytes. */
typedef void sdx_tile_fn(const struct sdx_step *step, const void *const *in, void *out,
                         int64_t begin, int64_t end, void *scratch);
enum { SDX_TILE_IN = 3 };

struct sdx_tiles {
    sdx_tile_fn *run;
    int64_t count; /* elements of the output */
    double weight; /* cost of an element against an addition */
    unsigned full; /* bit i: operand i has `count` elements and is walked like the output */
};

/* Makes `reader` do what `maker` does as well, if that costs less: its operand 0 is what maker, the
 * step before, makes and nobody else reads. Sets run, params, in, count_in, parts, together,
 * scratch and kernel, with memory of the arena that lives as long as the plan; *done: whether. */
typedef enum sdx_status sdx_absorb_fn(struct sdx_context *cx, struct sdx_arena *arena,
                                      const struct sdx_step *maker, struct sdx_step *reader,
                                      bool *done);

struct sdx_step {
    sdx_step_fn *run;
    void *params; /* of the plan; constant while running */
    /* All that the step reads and writes but constants: run/chain.c relies on it. */
    struct sdx_tensor *const *in;  /* NULL entries: left out */
    struct sdx_tensor *const *out; /* NULL entries: not wanted */
    int32_t count_in, count_out;
    int64_t parts;                   /* >= 1 */
    bool in_ranges;                  /* run does the parts from `part` to x->part_end */
    int64_t together;                /* >= 1: so does it, for so many at most; each thread gets its
                                        share at once */
    size_t scratch;                  /* bytes each worker has for itself while it runs a part */
    int32_t node;                    /* index for messages and the profile */
    const char *kernel;              /* name for the profile */
    const struct sdx_tiles *tiles;   /* NULL: does not work element by element */
    sdx_absorb_fn *absorb;           /* NULL: does no other step's work */
    const struct sdx_step *absorbed; /* whose work this step does as well; NULL: none's */
};

/* One worker's view of a run. */
struct sdx_exec {
    struct sdx_context *cx;
    void *scratch; /* step->scratch bytes, 64-byte aligned, content undefined */
    int worker;
    int64_t part_end;         /* behind the last part of this call; part + 1 but as the step says */
    const atomic_int *cancel; /* long loops look at it: sdx_exec_cancelled */
    struct sdx_pool *pool;    /* of a step of one part, for calls of its own; NULL: serial */
    int threads;
    void *host;
};
static inline bool sdx_exec_cancelled(const struct sdx_exec *x)
{
    return atomic_load_explicit(x->cancel, memory_order_relaxed) != 0;
}

/* For SDX_OP_DYNAMIC operators, in a step of one part: gives output k memory for this shape (zeroed
 * only for strings); out[k]->data is set. Previous content is released. */
SDX_MUST_CHECK enum sdx_status sdx_exec_output(struct sdx_exec *x, const struct sdx_step *step,
                                               int k, int dtype, int rank, const int64_t *dims);
/* Output k becomes a sequence, optional or map of `items` (retained handles). */
SDX_MUST_CHECK enum sdx_status sdx_exec_output_items(struct sdx_exec *x,
                                                     const struct sdx_step *step, int k, int kind,
                                                     int dtype, int64_t count,
                                                     struct sdx_tensor *const *items);
/* Output k (dynamic or not) becomes a copy of `from`, whatever its kind. */
SDX_MUST_CHECK enum sdx_status sdx_exec_output_copy(struct sdx_exec *x, const struct sdx_step *step,
                                                    int k, const struct sdx_tensor *from);
/* Texts for a string output: strings of non-dynamic outputs too must be set through this (texts are
 * copied). */
SDX_MUST_CHECK enum sdx_status sdx_exec_output_strings(struct sdx_exec *x,
                                                       const struct sdx_step *step, int k, int rank,
                                                       const int64_t *dims,
                                                       const struct sdx_str *texts);
/* Runs a body: in[] are its graph inputs; *out its outputs, valid until the body runs again. */
SDX_MUST_CHECK enum sdx_status sdx_exec_body(struct sdx_exec *x, struct sdx_body *body,
                                             int count_in, const struct sdx_tensor *const *in,
                                             struct sdx_tensor *const **out);

struct sdx_prepare {
    struct sdx_context *cx;
    struct sdx_arena *arena; /* lives as long as the plan */
    const struct sdx_ir *ir;
    const struct sdx_ir_node *node;
    int64_t opset;
    int count_in, count_out;
    struct sdx_tensor *const
        *in; /* dims and dtype set; data only when is_constant; NULL: left out */
    struct sdx_tensor *const
        *out;       /* dims and dtype set (not for SDX_OP_DYNAMIC); NULL: not wanted */
    uint8_t layout; /* SDX_OP_PHYSICAL: what the operands' shapes are in memory */
    int narrow; /* SDX_OP_VIA_F32: the type of output 0 where f32 stands for it; 0: it is itself */
    void *host;
};

static inline bool sdx_prepare_has(const struct sdx_prepare *px, int i)
{
    return i < px->count_in && px->in[i];
}
/* The content of input i: when it is constant, or was needed to infer shapes. NULL: only known at
 * run time. */
const struct sdx_tensor *sdx_prepare_value(struct sdx_prepare *px, int i);
/* Zeroed memory of the plan. NULL: no memory (error is set). */
void *sdx_prepare_alloc(struct sdx_prepare *px, size_t size);
#define SDX_PREPARE_NEW(px, type) ((type *)sdx_prepare_alloc((px), sizeof(type)))
/* Adds a step over the node's own operands. */
SDX_MUST_CHECK enum sdx_status sdx_prepare_step(struct sdx_prepare *px, const char *kernel,
                                                sdx_step_fn *run, void *params, int64_t parts,
                                                size_t scratch);
/* Adds a step over given operands (of the node or made by sdx_prepare_temp); arrays are copied. */
SDX_MUST_CHECK enum sdx_status sdx_prepare_step_on(struct sdx_prepare *px, const char *kernel,
                                                   sdx_step_fn *run, void *params, int64_t parts,
                                                   size_t scratch, int count_in,
                                                   struct sdx_tensor *const *in, int count_out,
                                                   struct sdx_tensor *const *out);
/* The last step added does neighbouring parts in one call, where that costs less. */
void sdx_prepare_in_ranges(struct sdx_prepare *px);
/* The same where that is so of all parts of a thread, up to `most`. */
void sdx_prepare_together(struct sdx_prepare *px, int64_t most);
/* The last step added may do the work of the one before it. */
void sdx_prepare_absorbs(struct sdx_prepare *px, sdx_absorb_fn *absorb);
/* Adds a step of at most SDX_TILE_IN operands that works element by element; `tiles` is copied. */
SDX_MUST_CHECK enum sdx_status sdx_prepare_tiles(struct sdx_prepare *px, const char *kernel,
                                                 const struct sdx_tiles *tiles, void *params,
                                                 size_t scratch, int count_in,
                                                 struct sdx_tensor *const *in,
                                                 struct sdx_tensor *out);
/* A tensor that lives while this node's steps run (memory shared with other nodes'). NULL: no
 * memory. */
struct sdx_tensor *sdx_prepare_temp(struct sdx_prepare *px, int dtype, int rank,
                                    const int64_t *dims);
typedef enum sdx_status sdx_pack_fn(struct sdx_context *cx, void *dst, void *arg);
typedef bool sdx_pack_check_fn(const void *packed, void *arg);
/* Which form of a constant, and how it is made. */
struct sdx_pack {
    const char *key; /* with `variant`: the name of the form; a static string */
    int64_t variant;
    size_t size;
    sdx_pack_fn *pack; /* fills `size` bytes, once */
    /* `pack` sets it to the bytes that are filled, where what follows is not read: the store has
     * it back. NULL: all. */
    size_t *used;
    /* A form from a plan file that holds more than plain numbers is checked before it is used;
     * NULL: no content of its `size` bytes does harm. */
    sdx_pack_check_fn *check;
    void *arg;           /* of both */
    bool reads_anywhere; /* `pack` reads the constant at any address: no aligned copy is made */
};
/* Packed form of constant input i, 64-byte aligned, shared by all plans and sessions of the model.
 * NULL: no memory, or packing failed (error is set). Fails an assertion when the input is not
 * constant. */
const void *sdx_prepare_pack(struct sdx_prepare *px, int i, const struct sdx_pack *pack);
/* Of a constant that a pack function reads, these bytes are read: what lies in a file of the model
 * may leave memory. */
void sdx_prepare_drop(struct sdx_prepare *px, const void *bytes, size_t size);
/* The body in graph attribute `name`. NULL: absent or no memory (error is set). */
struct sdx_body *sdx_prepare_body(struct sdx_prepare *px, const char *name);
/* Ways to compute one thing, of which a session that is tuned takes the fastest. */
enum { SDX_WAYS_MOST = 12 };
struct sdx_choice {
    const char *key; /* operator and shape, one line without tabs */
    int count;
    const char *const *ways; /* names, as `key` */
    /* Sets ns[i]: the time of way i, < 0 where it does not serve. Asks `cancel` within 50 ms. */
    enum sdx_status (*measure)(struct sdx_context *cx, void *arg, const atomic_int *cancel,
                               double *ns);
    void *arg;
};
/* Is the session tuned? */
bool sdx_prepare_tunes(const struct sdx_prepare *px);
/* The fastest way, as recorded or measured now, in a session that is tuned. -1: measuring failed
 * (an error may be set). */
int sdx_prepare_choose(struct sdx_prepare *px, const struct sdx_choice *choice);
/* How many parts for `work` units when a part should be at least `grain` units; at most `most`.
 * From shapes only. */
int64_t sdx_prepare_parts(double work, double grain, int64_t most);
/* The bounds of part p of n over `count` items: multiples of `step` but for the last. */
static inline int64_t sdx_part_begin(int64_t count, int64_t parts, int64_t part, int64_t step)
{
    int64_t blocks = (count + step - 1) / step, at = (blocks * part / parts) * step;
    return at < count ? at : count;
}
#endif
