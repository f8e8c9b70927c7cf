/* SPDX-License-Identifier: Apache-2.0
 * The only list of operator families: each is one file (or a few) of this folder. */
#ifndef SDX_OPS_FAMILIES_H
#define SDX_OPS_FAMILIES_H

/* clang-format off */
#define SDX_OP_FAMILIES(X) \
    X(unary) X(binary) X(ternary) X(logic_compare) X(cast) X(reduce) X(norm) X(softmax) X(gemm) \
    X(einsum) X(conv) X(conv_quant) X(conv_transpose) X(conv_transpose_quant) X(pool) X(unpool) \
    X(resize) X(view) X(concat_split) X(gather_scatter) X(pad_slice) X(transpose_tile) \
    X(range_fill) X(random) X(sort_select) X(quant) X(rnn) X(attention) X(attention_fused) X(dft) \
    X(image) X(text) X(sequence) X(optional) X(control) X(loss) X(ml_tree) X(ml_linear) X(ml_svm) \
    X(ml_encode) X(ml_scale) X(contrib) X(qlinear) X(state_space) X(flex_attention) X(training) \
    X(nbits) X(image_decoder) X(gradient) X(contrib_lower) X(contrib_nhwc) X(contrib_image) \
    X(contrib_text) X(contrib_tokens) X(contrib_matrix) X(rnn_dynamic) X(state_space_contrib) \
    X(contrib_gates) X(contrib_attention) X(contrib_projected) X(contrib_group) \
    X(contrib_rotary) X(contrib_embed) X(contrib_generate) X(contrib_moe) X(contrib_longformer) \
    X(rotate) X(norm_channels) X(scatter_grid) X(unary_own)
/* clang-format on */
#endif
