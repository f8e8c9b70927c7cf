/* SPDX-License-Identifier: Apache-2.0
 * The operator row: what an operator family tells the rest of the engine. Facts of the standard are
 * in the schema table (ops/schema.h); behaviour is one row here, next to the code it names.
 *
 *   static const struct sdx_op ops[] = {
 *       {"Abs", 1, 0, infer_same, KERNEL(prepare_unary), .cost = cost_map, .flags =
 * SDX_OP_INPLACE(0)},
 *       {"Celu", 12, 0, infer_same, LOWER(lower_celu)},
 *   };
 *   const struct sdx_op_family sdx_ops_unary = FAMILY("", ops);
 *
 * and the family's name in ops/families.h. */
#ifndef SDX_OPS_OP_H
#define SDX_OPS_OP_H

#include "ir/ir.h"
#include "ops/infer.h"
#include "ops/step.h"

struct sdx_lower; /* ops/lower.h */

struct sdx_cost {
    double macs;  /* multiply-accumulates */
    double flops; /* all floating operations (a MAC counts two) */
};

/* Shapes and types of the outputs from those of the inputs: ops/infer.h. */
typedef enum sdx_status sdx_op_infer_fn(struct sdx_infer *ix);
/* Once a node and set of shapes: reads attributes, checks, packs, adds steps: ops/step.h. */
typedef enum sdx_status sdx_op_prepare_fn(struct sdx_prepare *px);
/* Replaces the node by others: ops/lower.h. */
typedef enum sdx_status sdx_op_lower_fn(struct sdx_lower *lx);
/* Work of one run; all types in `ix` are concrete. */
typedef void sdx_op_cost_fn(const struct sdx_infer *ix, struct sdx_cost *cost);
sdx_op_cost_fn sdx_cost_none; /* of what only moves data */

/* Which layout each operand shall have for these shapes (px->in[i]->layout: what it has now);
 * everything is plain to begin with. The planner reorders inputs that have another. */
struct sdx_layouts {
    uint8_t *in, *out; /* enum sdx_layout, one an operand */
    bool leaves;       /* output 0 will be read plain, by the caller or a body */
    bool feeds;        /* SDX_OP_MAKES_BLOCKS: only SDX_OP_TAKES_BLOCKS read output 0, as it is or
                          through what keeps its layout */
    uint32_t over;     /* in these layouts, SDX_OVER besides SDX_OP_INPLACE of the operator */
    bool logical; /* SDX_OP_PHYSICAL, but these layouts are not shown as they lie in memory, and
                     nothing lies within another operand */
};
typedef void sdx_op_layout_fn(struct sdx_prepare *px, struct sdx_layouts *want);
/* Where operands lie inside one another, in elements: SDX_OP_PIECES: at[k] of output k in input 0;
 * SDX_OP_JOIN: at[i] of input i in output 0. false: not in one piece for these shapes. */
typedef bool sdx_op_place_fn(struct sdx_prepare *px, int64_t *at);
/* Is output k of the node, of this rank, an input with more positions behind on an axis? Then that
 * input and that output may be SDX_LAYOUT_GROWING over one memory, and only what is new is written.
 */
typedef bool sdx_op_grow_fn(const struct sdx_ir_node *node, int k, int rank, int *input, int *axis);

struct sdx_op {
    const char *name;
    int since, until; /* opset versions it serves, both included; until 0: the newest */
    sdx_op_infer_fn *infer;
    sdx_op_prepare_fn *prepare; /* exactly one of prepare ... */
    sdx_op_lower_fn *lower;     /* ... and lower */
    sdx_op_cost_fn *cost;       /* NULL: one flop an output element */
    sdx_op_layout_fn *layout;   /* NULL: all operands are plain */
    sdx_op_place_fn *place;     /* SDX_OP_PIECES, SDX_OP_JOIN */
    sdx_op_grow_fn *grow;       /* NULL: no output */
    uint32_t growing;           /* bit i: input i may be SDX_LAYOUT_GROWING */
    uint32_t packs; /* bit i: prepare reads elements of a constant input i in pack functions only */
    uint32_t anywhere; /* bit i: elements of input i are read by steps only, at any address */
    uint32_t flags;
    const char *note; /* limits, shown in docs/operators.md; NULL: none */
};

#define KERNEL(fn) .prepare = (fn)
#define LOWER(fn)  .lower = (fn)

enum {
    /* Output 0 is input k seen with another shape or name: the planner aliases, prepare is not
       called. */
    SDX_OP_VIEW = 1u << 0,
    /* Output shapes are known only after running: the steps call sdx_exec_output. Also for
     * sequences, optionals and maps: any output that is not a plain tensor. */
    SDX_OP_DYNAMIC = 1u << 1,
    /* Not a pure function of its inputs (random numbers): never folded or merged. */
    SDX_OP_IMPURE = 1u << 2,
    /* Written for f32: the planner converts f16, bf16 and float8 operands to f32 and the results
       back. */
    SDX_OP_VIA_F32 = 1u << 3,
    /* Operands that are not plain are shown to `prepare` and `place` as plain tensors of the shape
     * they have in memory (ops/layout.h); px->layout tells which that is. */
    SDX_OP_PHYSICAL = 1u << 4,
    /* Finite operands give finite results, elementwise: may run over lanes without meaning. */
    SDX_OP_FINITE = 1u << 5,
    /* Outputs are pieces of input 0, or output 0 is its inputs one after another, wherever `place`
     * says so: then nothing is copied. */
    SDX_OP_PIECES = 1u << 6,
    SDX_OP_JOIN = 1u << 7,
    /* Output 0 may be written over input k (k = 0..7) when that dies here and has the same size in
     * bytes: the kernel reads element i of input k before it writes element i of the output, in
     * each part. */
    SDX_OP_INPLACE_SHIFT = 8,
    /* Outputs whose type or shape inference cannot tell, though all that it asks for is known, are
     * made like those of SDX_OP_DYNAMIC. */
    SDX_OP_TOLD_LATE = 1u << 17,
    /* Reads blocked channels best, whatever its other operands are. */
    SDX_OP_TAKES_BLOCKS = 1u << 18,
    /* Output 0 has the layout of input 0. */
    SDX_OP_KEEPS_BLOCKS = 1u << 19,
    /* Makes blocked channels of a plain input where such operators read them: `layout` asks. */
    SDX_OP_MAKES_BLOCKS = 1u << 20,
    /* SDX_OP_VIA_F32 rows: a constant input 1 of f16 or bf16 comes to `prepare` as it is. */
    SDX_OP_NARROW_WEIGHTS = 1u << 16,
    /* SDX_OP_VIA_F32 rows: so do inputs 3 and 4 and outputs 1 and 2, caches, which hold more than
     * a run needs. */
    SDX_OP_NARROW_CACHES = 1u << 21
};
static inline bool sdx_op_is_cache_in(const struct sdx_op *op, int i)
{
    return op->flags & SDX_OP_NARROW_CACHES && (i == 3 || i == 4);
}
static inline bool sdx_op_is_cache_out(const struct sdx_op *op, int k)
{
    return op->flags & SDX_OP_NARROW_CACHES && (k == 1 || k == 2);
}
enum { SDX_OP_INPLACE_MOST = 8 };
#define SDX_OP_INPLACE(k) (1u << (SDX_OP_INPLACE_SHIFT + (k)))
/* The same of struct sdx_layouts, of any of the first 32 inputs. */
#define SDX_OVER(k) (1u << (k))

struct sdx_op_family {
    const char *domain; /* "", "ai.onnx.ml", "com.microsoft", ... */
    const struct sdx_op *ops;
    int count;
};
#define FAMILY(domain_, array)                                                                     \
    {                                                                                              \
        (domain_), (array), SDX_COUNT_OF(array)                                                    \
    }

/* The only lookup of behaviour. NULL: not supported. */
const struct sdx_op *sdx_op_find(struct sdx_str domain, struct sdx_str name, int64_t opset);
/* Sets node->op everywhere. Unsupported operators stay NULL; the first is reported when `must` is
 * true. */
SDX_MUST_CHECK enum sdx_status sdx_ops_bind(struct sdx_context *cx, struct sdx_ir *ir, bool must);
#endif
