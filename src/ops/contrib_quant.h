/* SPDX-License-Identifier: Apache-2.0
 * Quantised operators of com.microsoft; their rows are in the contrib family. */
#ifndef SDX_OPS_CONTRIB_QUANT_H
#define SDX_OPS_CONTRIB_QUANT_H

#include "ops/lower.h"

enum sdx_status sdx_qgemm_infer(struct sdx_infer *ix);
enum sdx_status sdx_qgemm_prepare(struct sdx_prepare *px);
enum sdx_status sdx_float_matmul_infer(struct sdx_infer *ix); /* MatMul, output f32 */
enum sdx_status sdx_dynamic_matmul_prepare(struct sdx_prepare *px);
enum sdx_status sdx_integer_matmul_prepare(struct sdx_prepare *px);
/* MatMulNBits: ops/matmul_nbits.c. infer and cost serve every product of A with weights of which
 * only K and N are told. */
enum sdx_status sdx_nbits_infer(struct sdx_infer *ix);
enum sdx_status sdx_nbits_prepare(struct sdx_prepare *px);
enum { SDX_NBITS_PACKS = 7 << 1 }; /* inputs that are read in pack functions only, as sdx_op says */
void sdx_nbits_cost(const struct sdx_infer *ix, struct sdx_cost *cost);
/* Operators on quantised values as DequantizeLinear, the standard's operator, QuantizeLinear. */
enum sdx_status sdx_qlinear_concat_infer(struct sdx_infer *ix);
enum sdx_status sdx_qlinear_sigmoid_lower(struct sdx_lower *lx);
enum sdx_status sdx_qlinear_leaky_relu_lower(struct sdx_lower *lx);
enum sdx_status sdx_qlinear_softmax_lower(struct sdx_lower *lx);
enum sdx_status sdx_qlinear_average_pool_infer(struct sdx_infer *ix);
enum sdx_status sdx_qlinear_average_pool_lower(struct sdx_lower *lx);
enum sdx_status sdx_qlinear_reduce_mean_infer(struct sdx_infer *ix);
enum sdx_status sdx_qlinear_reduce_mean_lower(struct sdx_lower *lx);
enum sdx_status sdx_qlinear_where_infer(struct sdx_infer *ix);
enum sdx_status sdx_qlinear_where_lower(struct sdx_lower *lx);
/* EmbedLayerNormalization on tables of bytes. */
enum sdx_status sdx_qembed_infer(struct sdx_infer *ix);
enum sdx_status sdx_qembed_lower(struct sdx_lower *lx);
enum sdx_status sdx_qlinear_concat_lower(struct sdx_lower *lx);
#endif
