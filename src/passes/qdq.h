/* SPDX-License-Identifier: Apache-2.0
 * What the files of the pass `qdq` share. Values and nodes are indices of one graph; making either
 * moves the arrays. */
#ifndef SDX_PASSES_QDQ_H
#define SDX_PASSES_QDQ_H

#include "passes/match.h"
#include "passes/passes.h"

enum { SDX_QDQ_OPSET = 21 }; /* of the nodes that the pass makes */

struct sdx_qdq {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_ir_graph *g;
    int32_t graph;
    int32_t *uses; /* of each value, kept while nodes change */
    int32_t capacity_uses;
    bool changed;
};

/* How a tensor is quantised, all of it alike; x: the value on the other side of the node. */
struct sdx_quant {
    int32_t x, scale, zero; /* zero -1: left out */
    float s;
    int32_t z;
    int dtype; /* SDX_U8 or SDX_I8 */
};

/* The living node of that type, whatever its domain, that makes `value`, or NULL. */
struct sdx_ir_node *sdx_qdq_maker(const struct sdx_qdq *r, int32_t value, const char *op);
/* Scale and zero point of a node, when they are constants of one element. */
bool sdx_qdq_params(const struct sdx_qdq *r, const struct sdx_ir_node *node, struct sdx_quant *q);
/* `value` is bytes dequantised to f32; q->x: the bytes. */
bool sdx_qdq_dequantized(const struct sdx_qdq *r, int32_t value, struct sdx_quant *q);
/* The node quantises f32 to bytes; q->x: the floats. */
bool sdx_qdq_quantizes(const struct sdx_qdq *r, const struct sdx_ir_node *node,
                       struct sdx_quant *q);
bool sdx_qdq_same(const struct sdx_quant *a, const struct sdx_quant *b);
/* The zero point, or a new constant 0 where it is left out. -1: no memory. */
int32_t sdx_qdq_zero(struct sdx_qdq *r, int32_t zero, int dtype);

/* New value with the name and shape of `like` (-1: neither). -1: no memory. */
int32_t sdx_qdq_value(struct sdx_qdq *r, int32_t like, int dtype);
int32_t sdx_qdq_constant(struct sdx_qdq *r, int dtype, int rank, const int64_t *dims, void **data);
/* Node n reads these instead; what nobody reads any more dies. */
SDX_MUST_CHECK enum sdx_status sdx_qdq_inputs(struct sdx_qdq *r, int32_t n, int count,
                                              const int32_t *inputs);
SDX_MUST_CHECK enum sdx_status sdx_qdq_become(struct sdx_qdq *r, int32_t n, const char *domain,
                                              const char *op, int64_t opset, int count,
                                              const int32_t *inputs,
                                              const struct sdx_ir_attr *attrs, int count_attrs);
/* A new node of the standard's domain that makes `output`. */
SDX_MUST_CHECK enum sdx_status sdx_qdq_add(struct sdx_qdq *r, const char *op, int count,
                                           const int32_t *inputs, int32_t output);

/* qdq_affine.c: the QuantizeLinear n becomes the ByteAffine that makes `value` of bytes, if
 * operators do that scale and shift channels; zero: the zero point. */
SDX_MUST_CHECK enum sdx_status sdx_qdq_affine(struct sdx_qdq *r, int32_t n, int32_t value,
                                              const struct sdx_quant *q, int32_t zero,
                                              const struct sdx_ir_attr *attrs, int count_attrs,
                                              bool *done);
/* qdq_table.c: does each element of `value` depend on one byte of one tensor alone? */
bool sdx_qdq_is_byte_function(const struct sdx_qdq *r, int32_t value);
/* The QuantizeLinear n becomes a table when its result depends on one byte alone. */
SDX_MUST_CHECK enum sdx_status sdx_qdq_table(struct sdx_qdq *r, int32_t n, bool *done);
/* qdq_join.c: the QLinearAdd n, or the table n, of what a QLinearConv makes for it alone becomes
 * part of that. */
SDX_MUST_CHECK enum sdx_status sdx_qdq_join_sum(struct sdx_qdq *r, int32_t n);
SDX_MUST_CHECK enum sdx_status sdx_qdq_join_table(struct sdx_qdq *r, int32_t n);

/* qdq_product.c: the QuantizeLinear n becomes the integer operator that makes what it reads. */
SDX_MUST_CHECK enum sdx_status sdx_qdq_operator(struct sdx_qdq *r, int32_t n,
                                                const struct sdx_quant *q);
/* The product n of dequantised operands becomes an integer product with a float result. */
SDX_MUST_CHECK enum sdx_status sdx_qdq_float_product(struct sdx_qdq *r, int32_t n);

/* qdq_dynamic.c: integer products, their Cast, scales and bias become one product. */
SDX_MUST_CHECK enum sdx_status sdx_qdq_dynamic(struct sdx_qdq *r);
#endif
