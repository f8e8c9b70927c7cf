/* SPDX-License-Identifier: Apache-2.0
 * The adapters: one row an operator and version that changed more than the number and the types.
 * Whatever has no row is compatible: the driver checks the node against the schema of the step's
 * end (attributes, inputs, types) and refuses what it does not have. */
#ifndef SDX_CONVERT_ADAPT_H
#define SDX_CONVERT_ADAPT_H

#include "convert/rewrite.h"

typedef enum sdx_status sdx_adapt_fn(struct sdx_rewrite *rx);

/* Between version - 1 and version. NULL: nothing to do in that direction. */
struct sdx_adapter {
    const char *op;
    int16_t version;
    sdx_adapt_fn *up, *down;
};

/* An attribute that `version` brought: going down it is dropped where it says what the older
 * operator does anyway. */
enum sdx_adapt_drop {
    SDX_DROP_INT,   /* it is `value` */
    SDX_DROP_TEXT,  /* it is `text` */
    SDX_DROP_ONES,  /* a list of ones */
    SDX_DROP_ALWAYS /* it has no effect on what the older one takes */
};
struct sdx_adapt_default {
    const char *op;
    int16_t version;
    const char *attr;
    enum sdx_adapt_drop kind;
    int64_t value;
    const char *text;
};

/* All rows of a domain, by rising version. */
const struct sdx_adapter *sdx_adapt_rows(struct sdx_str domain, int *count);
/* NULL: no row. */
const struct sdx_adapter *sdx_adapt_find(struct sdx_str domain, struct sdx_str op, int64_t version);
const struct sdx_adapt_default *sdx_adapt_defaults(int *count);

/* Attributes that became inputs, by a table of their own: adapt_inputs.c. */
enum sdx_status sdx_adapt_inputs_up(struct sdx_rewrite *rx);
enum sdx_status sdx_adapt_inputs_down(struct sdx_rewrite *rx);

/* Fails where input 0 is not known to be float: the other version of a tree gives its type. */
SDX_MUST_CHECK enum sdx_status sdx_adapt_trees_need_floats(struct sdx_rewrite *rx);

/* X(name): functions of the rows, by file. */
#define SDX_ADAPTERS(X)                                                                            \
    X(reduce_down)                                                                                 \
    X(slice_down)                                                                                  \
    X(dropout_12_down)                                                                             \
    X(dft_down)                                                                                    \
    X(broadcast_up)                                                                                \
    X(broadcast_down)                                                                              \
    X(same_shapes_down)                                                                            \
    X(prelu_up)                                                                                    \
    X(prelu_down)                                                                                  \
    X(gemm_7_up)                                                                                   \
    X(gemm_7_down)                                                                                 \
    X(gemm_11_down)                                                                                \
    X(softmax_up)                                                                                  \
    X(softmax_down)                                                                                \
    X(cast_6_up)                                                                                   \
    X(cast_6_down)                                                                                 \
    X(through_double_down)                                                                         \
    X(flatten_9_down)                                                                              \
    X(one_hot)                                                                                     \
    X(axes_11_down)                                                                                \
    X(selu)                                                                                        \
    X(p_up)                                                                                        \
    X(p_down)                                                                                      \
    X(batch_norm_6_down)                                                                           \
    X(batch_norm_7_up)                                                                             \
    X(batch_norm_7_down)                                                                           \
    X(batch_norm_9_up)                                                                             \
    X(batch_norm_14)                                                                               \
    X(dropout_7_up)                                                                                \
    X(dropout_7_down)                                                                              \
    X(rnn_7_up)                                                                                    \
    X(rnn_7_down)                                                                                  \
    X(rnn_14_down)                                                                                 \
    X(group_norm_21_up)                                                                            \
    X(group_norm_21_down)                                                                          \
    X(quantize_13_down)                                                                            \
    X(quantize_output_down)                                                                        \
    X(concat_up)                                                                                   \
    X(split_2_up)                                                                                  \
    X(split_18_up)                                                                                 \
    X(split_18_down)                                                                               \
    X(pad_2_up)                                                                                    \
    X(pad_2_down)                                                                                  \
    X(pad_18_down)                                                                                 \
    X(pad_19_down)                                                                                 \
    X(reshape_14_down)                                                                             \
    X(tile_up)                                                                                     \
    X(tile_down)                                                                                   \
    X(topk_11_down)                                                                                \
    X(shape_down)                                                                                  \
    X(upsample_7_up)                                                                               \
    X(upsample_7_down)                                                                             \
    X(upsample_10_up)                                                                              \
    X(resize_10_down)                                                                              \
    X(resize_11_up)                                                                                \
    X(resize_11_down)                                                                              \
    X(resize_13_down)                                                                              \
    X(resize_18_down)                                                                              \
    X(resize_19_down)                                                                              \
    X(scatter_up)                                                                                  \
    X(scatter_down)                                                                                \
    X(scatter_18_down)                                                                             \
    X(roi_align_up)                                                                                \
    X(roi_align_down)                                                                              \
    X(grid_sample_up)                                                                              \
    X(grid_sample_down)                                                                            \
    X(constant_9_down)                                                                             \
    X(constant_11_down)                                                                            \
    X(constant_12_down)                                                                            \
    X(scan_up)                                                                                     \
    X(scan_down)                                                                                   \
    X(expand_hard_swish)                                                                           \
    X(expand_mish)                                                                                 \
    X(expand_gelu)                                                                                 \
    X(expand_celu)                                                                                 \
    X(expand_or_equal)                                                                             \
    X(expand_swish)                                                                                \
    X(expand_cast_like)                                                                            \
    X(expand_layer_norm)                                                                           \
    X(expand_rms_norm)                                                                             \
    X(expand_group_norm)                                                                           \
    X(expand_attention)                                                                            \
    X(expand_rotary)                                                                               \
    X(expand_nll)                                                                                  \
    X(expand_cross_entropy)                                                                        \
    X(expand_trilu)                                                                                \
    X(expand_swiglu)                                                                               \
    X(expand_causal_conv)                                                                          \
    X(expand_hann)                                                                                 \
    X(expand_hamming)                                                                              \
    X(expand_blackman)                                                                             \
    X(attention_down)                                                                              \
    X(tree_classifier_up)                                                                          \
    X(tree_regressor_up)                                                                           \
    X(trees_down)                                                                                  \
    X(label_encoder_up)                                                                            \
    X(label_encoder_down)
#define SDX_ADAPTER_DECLARE(name) enum sdx_status sdx_adapt_##name(struct sdx_rewrite *rx);
SDX_ADAPTERS(SDX_ADAPTER_DECLARE)
#undef SDX_ADAPTER_DECLARE
#endif
