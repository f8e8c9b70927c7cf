/* SPDX-License-Identifier: Apache-2.0
 * Behaviour of standard operators that the contrib family offers under other names too. */
#ifndef SDX_OPS_SHARED_H
#define SDX_OPS_SHARED_H

#include "ops/op.h"

/* Conv; also FusedConv: input 3 is added before the activation of sdx_fused_act. */
enum sdx_status sdx_conv_infer(struct sdx_infer *ix);
enum sdx_status sdx_conv_prepare(struct sdx_prepare *px);
void sdx_conv_layout(struct sdx_prepare *px, struct sdx_layouts *want);
void sdx_conv_cost(const struct sdx_infer *ix, struct sdx_cost *cost);
/* MatMul; also FusedMatMul: transA, transB, alpha, and for passes of ours input 2 (bias of
 * columns), input 3 (added as is) and the activation of sdx_fused_act. */
enum sdx_status sdx_matmul_infer(struct sdx_infer *ix);
enum sdx_status sdx_matmul_prepare(struct sdx_prepare *px);
void sdx_matmul_layout(struct sdx_prepare *px, struct sdx_layouts *want);
void sdx_matmul_cost(const struct sdx_infer *ix, struct sdx_cost *cost);
/* Gemm; also FusedGemm. */
enum sdx_status sdx_gemm_infer(struct sdx_infer *ix);
enum sdx_status sdx_gemm_prepare(struct sdx_prepare *px);
enum sdx_status sdx_fused_gemm_prepare(struct sdx_prepare *px); /* any activation of ONNX Runtime */
void sdx_gemm_cost(const struct sdx_infer *ix, struct sdx_cost *cost);
/* QuantizeLinear, DequantizeLinear of the newest version. */
enum sdx_status sdx_quantize_infer(struct sdx_infer *ix);
enum sdx_status sdx_quantize_prepare(struct sdx_prepare *px);
enum sdx_status sdx_dequantize_infer(struct sdx_infer *ix);
enum sdx_status sdx_dequantize_prepare(struct sdx_prepare *px);
/* The pools of input 0. */
enum sdx_status sdx_pool_infer(struct sdx_infer *ix);
enum sdx_status sdx_global_pool_infer(struct sdx_infer *ix);
#endif
