/* SPDX-License-Identifier: Apache-2.0
 * Tensors and the other ONNX values (sequence, optional, map, sparse), and the type of a value.
 * The same struct is a public handle (refs >= 1, freed by release) and an operand inside a plan
 * (refs == 0, storage and dims belong to the plan). Elements are row-major and packed; elements of
 * less than a byte are packed low bits first, as in TensorProto.raw_data. */
#ifndef SDX_TENSOR_TENSOR_H
#define SDX_TENSOR_TENSOR_H

#include <stdatomic.h>

#include "base/context.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    SDX_RANK_MAX = 64,
    SDX_RANK_INLINE = 6
}; /* 64: what NumPy 2 allows; checked wherever a shape enters */

/* How the elements of a value of dims [N, C, spatial...] lie in memory. Plain everywhere outside a
 * plan. */
enum sdx_layout {
    SDX_LAYOUT_PLAIN,   /* row-major */
    SDX_LAYOUT_BLOCKED, /* [N, C / b, spatial..., b], b = sdx_block_lanes(); lanes beyond C hold
                           finite values of no meaning */
    SDX_LAYOUT_LAST,    /* [N, spatial..., C] */
    SDX_LAYOUT_GROWING  /* row-major, with room for `capacity` positions of axis `axis` */
};

/* How the elements of a constant are made of another's, anew for each reader: weights that a pass
 * changes are packed once, and would else stay in memory beside what is packed. */
struct sdx_recipe {
    void (*make)(const struct sdx_recipe *recipe, void *to); /* to: aligned, room for all */
    const struct sdx_tensor *of;
    struct sdx_arena *arena; /* where the tensor lives, and may get elements that stay */
};

struct sdx_tensor {
    void
        *data; /* elements; strings: array of struct sdx_str; NULL while a plan has not placed it */
    const int64_t *dims;             /* rank lengths >= 0 */
    int64_t count;                   /* elements; items for sequence, optional, map, sparse */
    size_t bytes;                    /* of the elements */
    const struct sdx_recipe *recipe; /* of a constant that needs_copy and has no data; else NULL */
    struct sdx_tensor **items;       /* retained; NULL for tensors */
    struct sdx_mem *mem;             /* what owns_data came from */
    int32_t rank;
    atomic_int refs;
    uint8_t kind;     /* enum sdx_kind */
    uint8_t dtype;    /* enum sdx_dtype; of empty sequences and optionals: the element type */
    uint8_t layout;   /* enum sdx_layout; `bytes` is what that takes */
    bool is_constant; /* same value in every run of its plan: may be folded and packed */
    bool in_model;   /* a constant whose data lives as long as the model: packed forms are shared */
    bool needs_copy; /* a large constant at an odd address of a file, or one with a recipe: whoever
                      * uses the elements copies them first (the planner and the evaluator do, for
                      * every operator) */
    bool owns_data;  /* `data` (and `items`) are freed with the tensor */
    uint8_t axis;    /* SDX_LAYOUT_GROWING */
    int64_t capacity; /* SDX_LAYOUT_GROWING: at least dims[axis] */
    int64_t dims_inline[SDX_RANK_INLINE];
};

/* The static type of a value. A dimension >= 0 is known; -1 is unknown; < -1 is symbol -(d + 2) of
 * the graph's symbol table, and equal symbols are equal lengths. */
struct sdx_type {
    uint8_t kind;      /* SDX_KIND_NONE: nothing known */
    uint8_t dtype;     /* of elements (of map values) ; SDX_DTYPE_NONE: unknown */
    uint8_t key_dtype; /* maps */
    bool has_shape;    /* tensor, sparse: rank and dims are known */
    int32_t rank;
    const int64_t *dims;
    const struct sdx_type
        *elem; /* sequence, optional: of the items; map: of the values; else NULL */
};

/* bits a element 0: unknown type */
enum { SDX_DTYPE_LAST = SDX_F6E3M2 };
static inline bool sdx_dtype_is_valid(int dtype)
{
    return dtype >= SDX_F32 && dtype <= SDX_DTYPE_LAST;
}
bool sdx_dtype_is_float(int dtype);   /* f16 bf16 f32 f64 and the 8-, 6- and 4-bit ones */
bool sdx_dtype_is_integer(int dtype); /* signed or unsigned, 2 to 64 bits; not bool */
bool sdx_dtype_is_signed(int dtype);  /* integers and floats that can be negative */
bool sdx_dtype_is_complex(int dtype);
/* Bytes that `count` elements take: sub-byte types are packed. false: does not fit in size_t. */
bool sdx_dtype_bytes(int dtype, int64_t count, size_t *bytes);
/* Product of dims. false: overflow, or a negative length. Zero lengths give 0 whatever the others
 * are (the others must still be >= 0). */
bool sdx_dims_count(const int64_t *dims, int rank, int64_t *count);
bool sdx_dims_equal(const int64_t *a, int rank_a, const int64_t *b, int rank_b);

/* New handle with zeroed memory of its own. Checks dtype, rank and sizes; for strings all are "".
 */
SDX_MUST_CHECK enum sdx_status sdx_tensor_new(struct sdx_context *cx, int dtype, int rank,
                                              const int64_t *dims, struct sdx_tensor **out);
/* The same, its content undefined (strings are "" here too). */
SDX_MUST_CHECK enum sdx_status sdx_tensor_new_raw(struct sdx_context *cx, int dtype, int rank,
                                                  const int64_t *dims, struct sdx_tensor **out);
/* New handle over memory that is not ours. */
SDX_MUST_CHECK enum sdx_status sdx_tensor_new_view(struct sdx_context *cx, int dtype, int rank,
                                                   const int64_t *dims, void *data,
                                                   struct sdx_tensor **out);
/* New tensor of strings; the texts are copied into its one block. */
SDX_MUST_CHECK enum sdx_status sdx_tensor_new_strings(struct sdx_context *cx, int rank,
                                                      const int64_t *dims,
                                                      const struct sdx_str *texts,
                                                      struct sdx_tensor **out);
/* New sequence, optional, map or sparse value; items are retained. rank/dims: sparse only. */
SDX_MUST_CHECK enum sdx_status sdx_tensor_new_items(struct sdx_context *cx, int kind, int dtype,
                                                    int64_t count, struct sdx_tensor *const *items,
                                                    int rank, const int64_t *dims,
                                                    struct sdx_tensor **out);
/* Deep copy as a handle of its own, row-major and packed. Maps that follow each other and share
 * their keys share them in the copy. */
SDX_MUST_CHECK enum sdx_status
sdx_tensor_clone(struct sdx_context *cx, const struct sdx_tensor *from, struct sdx_tensor **out);
/* Another shape for the same number of elements, not of strings; *tensor, the only handle, may be
 * replaced. */
SDX_MUST_CHECK enum sdx_status sdx_tensor_reshape(struct sdx_context *cx,
                                                  struct sdx_tensor **tensor, int rank,
                                                  const int64_t *dims);

/* New zeroed handle with room for `capacity` positions of `axis`, dims[axis] of them in use: a
 * tensor of SDX_LAYOUT_GROWING. Elements of at least a byte, no strings, rank up to
 * SDX_RANK_INLINE. */
SDX_MUST_CHECK enum sdx_status sdx_tensor_new_growing(struct sdx_context *cx, int dtype, int rank,
                                                      const int64_t *dims, int axis,
                                                      int64_t capacity, struct sdx_tensor **out);
/* So many positions are in use from now on, 0 to capacity. */
void sdx_tensor_grow_to(struct sdx_tensor *growing, int64_t length);
/* A header of `t`'s dims has its elements where `like`, of SDX_LAYOUT_GROWING, has them. */
void sdx_tensor_lie_as(struct sdx_tensor *t, const struct sdx_tensor *like);
/* Length of axis i in memory. */
static inline int64_t sdx_tensor_pitch(const struct sdx_tensor *t, int i)
{
    return t->layout == SDX_LAYOUT_GROWING && t->axis == i ? t->capacity : t->dims[i];
}
/* Where element i of the row-major order lies, in elements. */
static inline int64_t sdx_tensor_index(const struct sdx_tensor *t, int64_t i)
{
    if (t->layout != SDX_LAYOUT_GROWING) return i;
    int64_t chunk = 1;
    for (int d = t->axis; d < t->rank; d++)
        chunk *= t->dims[d];
    const int64_t whole = t->dims[t->axis] ? chunk / t->dims[t->axis] * t->capacity : 0;
    return i / chunk * whole + i % chunk;
}
/* Copies the elements between tensors of one type and the same dims of which one or both grow.
 * Parts begin .. end of sdx_tensor_copy_parts (the lengths before the axis). */
int64_t sdx_tensor_copy_parts(const struct sdx_tensor *from, const struct sdx_tensor *to);
void sdx_tensor_copy(const struct sdx_tensor *from, const struct sdx_tensor *to, int64_t begin,
                     int64_t end);

/* Fills `to` with the elements of a constant in plain layout, wherever they are. */
void sdx_tensor_copy_elements(const struct sdx_tensor *constant, void *to);
/* A constant whose elements are, or will be, at `data`, which is aligned: nobody copies it. */
void sdx_tensor_settle(struct sdx_tensor *constant, void *data);
/* What tells constants apart: an address that no other has. */
const void *sdx_tensor_key(const struct sdx_tensor *constant);

struct sdx_tensor *sdx_tensor_retain(struct sdx_tensor *tensor);
void sdx_tensor_release(struct sdx_tensor *tensor); /* NULL allowed */

/* "f32[1,3,224,224]", "seq(2 items)": into buf, always NUL-terminated. Returns buf. */
const char *sdx_tensor_describe(const struct sdx_tensor *tensor, char *buf, size_t size);
const char *sdx_dims_describe(const int64_t *dims, int rank, char *buf,
                              size_t size); /* "[1,3,?]" */
/* Short names as in shapes: "f32", "i64", "str" ... */
const char *sdx_dtype_short_name(int dtype);
#endif
