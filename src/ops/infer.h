/* SPDX-License-Identifier: Apache-2.0
 * Shape and type inference of one node. The same functions serve the checker (dimensions may be
 * unknown or symbols), the passes and the planner (all dimensions concrete).
 *
 * A function sets out[k] for each output: dtype always when it can be told, the shape when it can.
 * It returns a failure only for what is wrong whatever the unknown parts are. What depends on the
 * value of an input asks sdx_infer_ints / sdx_infer_value and leaves the output's shape unset when
 * the answer is "not known". */
#ifndef SDX_OPS_INFER_H
#define SDX_OPS_INFER_H

#include "ir/ir.h"

/* A list of integers some of which may be symbols: the content of a small integer tensor.
 * sym[i] == 0: v[i] is the number. Otherwise sym[i] is a dimension as in struct sdx_type (-1
 * unknown, < -1 a symbol). sym NULL: all are numbers. */
struct sdx_ints {
    const int64_t *v;
    const int64_t *sym;
    int64_t count;
    int32_t rank; /* 0 or 1 */
};

/* An element of one. */
struct sdx_int {
    int64_t v, sym;
};

struct sdx_infer {
    struct sdx_context *cx;
    struct sdx_arena *arena; /* for dims and value lists */
    const struct sdx_ir *ir;
    const struct sdx_ir_node *node; /* attributes */
    int64_t opset;
    int count_in, count_out;
    const struct sdx_type *const *in; /* NULL: input left out; kind NONE: nothing known */
    struct sdx_type *out;             /* preset to kind NONE */
    const struct sdx_ints *
        *out_ints; /* preset to NULL; a function may set an integer output's content */
    /* Host: content of input i. `value`: NULL when not known. `ints`: false when not known. */
    const struct sdx_tensor *(*value)(struct sdx_infer *ix, int i);
    bool (*ints)(struct sdx_infer *ix, int i, struct sdx_ints *out);
    /* Host: infers the body `graph` with these input types (count_in of them; NULL: as declared)
     * and gives its output types (arrays of the body's count_outputs). */
    enum sdx_status (*body)(struct sdx_infer *ix, int32_t graph, int count_in,
                            const struct sdx_type *in, const struct sdx_type **out);
    /* Host: where new symbols are made. NULL: there are none. */
    struct sdx_ir *symbols;
    /* Host: only what shapes need is asked for. A function that would read contents just to hand
     * them on (set_ints) does not, because the plan would then hold for these contents only. */
    bool shapes_only;
    void *host;
};

static inline bool sdx_infer_has(const struct sdx_infer *ix, int i)
{
    return i >= 0 && i < ix->count_in && ix->in[i];
}
static inline bool sdx_dim_known(int64_t d)
{
    return d >= 0;
}

/* Element type of input i; SDX_DTYPE_NONE when absent or not known. */
int sdx_infer_dtype(const struct sdx_infer *ix, int i);
/* Rank of input i, -1 when not known. */
int sdx_infer_rank(const struct sdx_infer *ix, int i);
const int64_t *sdx_infer_dims(const struct sdx_infer *ix,
                              int i); /* NULL when the rank is not known */
/* Content of an integer input. false: not known. Constants, and what shape arithmetic gave. */
bool sdx_infer_ints(struct sdx_infer *ix, int i, struct sdx_ints *out);
/* The same for functions that only hand contents on: false where the host wants shapes only. */
static inline bool sdx_infer_ints_to_pass(struct sdx_infer *ix, int i, struct sdx_ints *out)
{
    return !ix->shapes_only && sdx_infer_ints(ix, i, out);
}
/* The same, all numbers known. */
bool sdx_infer_known_ints(struct sdx_infer *ix, int i, const int64_t **v, int64_t *count);
/* Output 0 is a list: what `make` says of the elements at[0 .. count) of each place of those lists
 * (at most 3), where one of one element lasts for all places. Nothing is known when others differ
 * in length. */
SDX_MUST_CHECK enum sdx_status sdx_infer_map_ints(
    struct sdx_infer *ix, const struct sdx_ints *lists, int count, const void *arg,
    struct sdx_int (*make)(struct sdx_infer *ix, const void *arg, const struct sdx_int *at));
/* Content of any input that is constant or already computed. NULL: not known. */
const struct sdx_tensor *sdx_infer_value(struct sdx_infer *ix, int i);

/* The content of an integer tensor of rank 0 or 1 (int32 is widened). false: NULL or another
 * tensor, or no memory. For hosts. */
bool sdx_infer_tensor_ints(struct sdx_infer *ix, const struct sdx_tensor *t, struct sdx_ints *out);

/* Makes output k a tensor of `dtype`; its shape stays unknown. */
void sdx_infer_set_dtype(struct sdx_infer *ix, int k, int dtype);
/* Sets the shape of output k (dims are copied). Fails when a length is impossible or there is no
 * memory. */
SDX_MUST_CHECK enum sdx_status sdx_infer_set_dims(struct sdx_infer *ix, int k, int rank,
                                                  const int64_t *dims);
/* A fresh dims array to fill: out[k] gets has_shape. NULL: no memory or rank over SDX_RANK_MAX
 * (error is set). */
int64_t *sdx_infer_new_dims(struct sdx_infer *ix, int k, int rank);
/* Output k has the type and shape of input i. */
void sdx_infer_copy(struct sdx_infer *ix, int k, int i);
/* Content of output k as numbers (sym NULL: all known). Copied. */
SDX_MUST_CHECK enum sdx_status sdx_infer_set_ints(struct sdx_infer *ix, int k, int rank,
                                                  int64_t count, const int64_t *v,
                                                  const int64_t *sym);

/* A length reckoned from one that is not known, a symbol where that is one; -1: not known. */
int64_t sdx_infer_scaled(struct sdx_infer *ix, struct sdx_ir_length length);
int64_t sdx_infer_ratio(struct sdx_infer *ix, const int64_t *over, int count_over,
                        const int64_t *under, int count_under);

/* axis in -rank..rank-1 to 0..rank-1; fails with the operator's name otherwise. */
SDX_MUST_CHECK enum sdx_status sdx_infer_axis(struct sdx_infer *ix, int64_t axis, int rank,
                                              int *out);
/* The length that two lengths which must be equal have; fails when both are known and differ. */
SDX_MUST_CHECK enum sdx_status sdx_infer_merge_dim(struct sdx_infer *ix, int64_t a, int64_t b,
                                                   const char *what, int64_t *out);
/* NumPy broadcasting of two lengths or of whole shapes; unknown with 1 gives unknown, with n > 1
 * gives n. */
SDX_MUST_CHECK enum sdx_status sdx_infer_broadcast_dim(struct sdx_infer *ix, int64_t a, int64_t b,
                                                       int64_t *out);
/* Output k gets the broadcast of the inputs first .. first+n-1 that are present. */
SDX_MUST_CHECK enum sdx_status sdx_infer_broadcast(struct sdx_infer *ix, int k, int first, int n);

/* Inference functions that many families use. */
enum sdx_status sdx_infer_same(struct sdx_infer *ix);        /* output 0 as input 0 */
enum sdx_status sdx_infer_same_all(struct sdx_infer *ix);    /* every output as input 0 */
enum sdx_status sdx_infer_binary(struct sdx_infer *ix);      /* broadcast, dtype of input 0 */
enum sdx_status sdx_infer_binary_bool(struct sdx_infer *ix); /* broadcast, bool */
enum sdx_status
sdx_infer_variadic(struct sdx_infer *ix); /* broadcast of all inputs, dtype of input 0 */

/* ---- a whole graph: ops/infer_graph.c ---- */
/* Called for each node whose inference fails or whose result contradicts the declared type;
 * returning true goes on with unknown outputs. The text is in cx (cleared after the call returns
 * true). */
typedef bool (*sdx_infer_fault_fn)(void *user, struct sdx_context *cx,
                                   const struct sdx_ir_graph *graph,
                                   const struct sdx_ir_node *node);
enum {
    SDX_INFER_STRICT = 1,       /* a shape that contradicts the declared one is a fault */
    SDX_INFER_DEFAULTS_HOLD = 2 /* an input with an initializer is taken to have its value */
};
/* Infers all types of the model, merging with what is declared; flags 0 is right for running. fault
 * NULL: the first failure is returned. */
SDX_MUST_CHECK enum sdx_status sdx_infer_model(struct sdx_context *cx, struct sdx_ir *ir,
                                               uint32_t flags, sdx_infer_fault_fn fault,
                                               void *user);
#endif
