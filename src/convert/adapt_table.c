/* SPDX-License-Identifier: Apache-2.0
 * The rows of the adapters, by the version that brought the change. */
#include "convert/adapt.h"

#define BOTH(op, version, name)                                                                    \
    {                                                                                              \
        (op), (version), sdx_adapt_##name##_up, sdx_adapt_##name##_down                            \
    }
#define UP(op, version, name)                                                                      \
    {                                                                                              \
        (op), (version), sdx_adapt_##name, NULL                                                    \
    }
#define DOWN(op, version, name)                                                                    \
    {                                                                                              \
        (op), (version), NULL, sdx_adapt_##name                                                    \
    }

static const struct sdx_adapter adapters[] = {
    {"GlobalLpPool", 2, sdx_adapt_p_up, sdx_adapt_p_down},
    {"LpPool", 2, sdx_adapt_p_up, sdx_adapt_p_down},
    BOTH("Pad", 2, pad_2),
    UP("Split", 2, split_2_up),
    UP("Concat", 4, concat_up),
    BOTH("Reshape", 5, inputs),
    DOWN("BatchNormalization", 6, batch_norm_6_down),
    BOTH("Cast", 6, cast_6),
    {"Selu", 6, sdx_adapt_selu, sdx_adapt_selu},
    BOTH("Tile", 6, tile),
    BOTH("Add", 7, broadcast),
    BOTH("And", 7, broadcast),
    BOTH("Div", 7, broadcast),
    BOTH("Equal", 7, broadcast),
    BOTH("Greater", 7, broadcast),
    BOTH("Less", 7, broadcast),
    BOTH("Mul", 7, broadcast),
    BOTH("Or", 7, broadcast),
    BOTH("Pow", 7, broadcast),
    BOTH("Sub", 7, broadcast),
    BOTH("Xor", 7, broadcast),
    BOTH("BatchNormalization", 7, batch_norm_7),
    BOTH("Dropout", 7, dropout_7),
    BOTH("GRU", 7, rnn_7),
    BOTH("Gemm", 7, gemm_7),
    BOTH("LSTM", 7, rnn_7),
    BOTH("PRelu", 7, prelu),
    BOTH("RNN", 7, rnn_7),
    BOTH("Upsample", 7, upsample_7),
    DOWN("Max", 8, same_shapes_down),
    DOWN("Mean", 8, same_shapes_down),
    DOWN("Min", 8, same_shapes_down),
    DOWN("Sum", 8, same_shapes_down),
    UP("BatchNormalization", 9, batch_norm_9_up),
    DOWN("Constant", 9, constant_9_down),
    DOWN("Flatten", 9, flatten_9_down),
    DOWN("Gemm", 9, through_double_down),
    DOWN("Greater", 9, through_double_down),
    DOWN("Less", 9, through_double_down),
    DOWN("MatMul", 9, through_double_down),
    DOWN("PRelu", 9, through_double_down),
    BOTH("Scan", 9, scan),
    BOTH("Upsample", 9, inputs),
    DOWN("Resize", 10, resize_10_down),
    {"Slice", 10, sdx_adapt_inputs_up, sdx_adapt_slice_down},
    BOTH("TopK", 10, inputs),
    UP("Upsample", 10, upsample_10_up),
    DOWN("ArgMax", 11, axes_11_down),
    DOWN("ArgMin", 11, axes_11_down),
    BOTH("Clip", 11, inputs),
    DOWN("Compress", 11, axes_11_down),
    DOWN("Concat", 11, axes_11_down),
    DOWN("Constant", 11, constant_11_down),
    DOWN("Flatten", 11, axes_11_down),
    DOWN("Gather", 11, axes_11_down),
    DOWN("Gemm", 11, gemm_11_down),
    DOWN("Hardmax", 11, axes_11_down),
    DOWN("LogSoftmax", 11, axes_11_down),
    {"OneHot", 11, sdx_adapt_one_hot, sdx_adapt_one_hot},
    BOTH("Pad", 11, inputs),
    DOWN("ReduceL1", 11, axes_11_down),
    DOWN("ReduceL2", 11, axes_11_down),
    DOWN("ReduceLogSum", 11, axes_11_down),
    DOWN("ReduceLogSumExp", 11, axes_11_down),
    DOWN("ReduceMax", 11, axes_11_down),
    DOWN("ReduceMean", 11, axes_11_down),
    DOWN("ReduceMin", 11, axes_11_down),
    DOWN("ReduceProd", 11, axes_11_down),
    DOWN("ReduceSum", 11, axes_11_down),
    DOWN("ReduceSumSquare", 11, axes_11_down),
    BOTH("Resize", 11, resize_11),
    UP("Scatter", 11, scatter_up),
    DOWN("ScatterElements", 11, scatter_down),
    DOWN("Softmax", 11, axes_11_down),
    DOWN("Split", 11, axes_11_down),
    DOWN("Squeeze", 11, axes_11_down),
    DOWN("TopK", 11, topk_11_down),
    DOWN("Unsqueeze", 11, axes_11_down),
    DOWN("Celu", 12, expand_celu),
    DOWN("Constant", 12, constant_12_down),
    {"Dropout", 12, sdx_adapt_inputs_up, sdx_adapt_dropout_12_down},
    DOWN("GreaterOrEqual", 12, expand_or_equal),
    DOWN("LessOrEqual", 12, expand_or_equal),
    DOWN("NegativeLogLikelihoodLoss", 12, expand_nll),
    DOWN("SoftmaxCrossEntropyLoss", 12, expand_cross_entropy),
    DOWN("DequantizeLinear", 13, quantize_13_down),
    BOTH("Hardmax", 13, softmax),
    BOTH("LogSoftmax", 13, softmax),
    DOWN("QuantizeLinear", 13, quantize_13_down),
    {"ReduceSum", 13, sdx_adapt_inputs_up, sdx_adapt_reduce_down},
    DOWN("Resize", 13, resize_13_down),
    BOTH("Softmax", 13, softmax),
    BOTH("Split", 13, inputs),
    BOTH("Squeeze", 13, inputs),
    BOTH("Unsqueeze", 13, inputs),
    {"BatchNormalization", 14, sdx_adapt_batch_norm_14, sdx_adapt_batch_norm_14},
    DOWN("GRU", 14, rnn_14_down),
    DOWN("HardSwish", 14, expand_hard_swish),
    DOWN("LSTM", 14, rnn_14_down),
    DOWN("RNN", 14, rnn_14_down),
    DOWN("Reshape", 14, reshape_14_down),
    DOWN("Trilu", 14, expand_trilu),
    DOWN("CastLike", 15, expand_cast_like),
    DOWN("Shape", 15, shape_down),
    BOTH("RoiAlign", 16, roi_align),
    DOWN("BlackmanWindow", 17, expand_blackman),
    DOWN("HammingWindow", 17, expand_hamming),
    DOWN("HannWindow", 17, expand_hann),
    DOWN("LayerNormalization", 17, expand_layer_norm),
    DOWN("GroupNormalization", 18, expand_group_norm),
    DOWN("Mish", 18, expand_mish),
    DOWN("Pad", 18, pad_18_down),
    {"ReduceL1", 18, sdx_adapt_inputs_up, sdx_adapt_reduce_down},
    {"ReduceL2", 18, sdx_adapt_inputs_up, sdx_adapt_reduce_down},
    {"ReduceLogSum", 18, sdx_adapt_inputs_up, sdx_adapt_reduce_down},
    {"ReduceLogSumExp", 18, sdx_adapt_inputs_up, sdx_adapt_reduce_down},
    {"ReduceMax", 18, sdx_adapt_inputs_up, sdx_adapt_reduce_down},
    {"ReduceMean", 18, sdx_adapt_inputs_up, sdx_adapt_reduce_down},
    {"ReduceMin", 18, sdx_adapt_inputs_up, sdx_adapt_reduce_down},
    {"ReduceProd", 18, sdx_adapt_inputs_up, sdx_adapt_reduce_down},
    {"ReduceSumSquare", 18, sdx_adapt_inputs_up, sdx_adapt_reduce_down},
    DOWN("Resize", 18, resize_18_down),
    DOWN("ScatterElements", 18, scatter_18_down),
    DOWN("ScatterND", 18, scatter_18_down),
    BOTH("Split", 18, split_18),
    DOWN("Pad", 19, pad_19_down),
    DOWN("Resize", 19, resize_19_down),
    {"DFT", 20, sdx_adapt_inputs_up, sdx_adapt_dft_down},
    DOWN("Gelu", 20, expand_gelu),
    BOTH("GridSample", 20, grid_sample),
    BOTH("GroupNormalization", 21, group_norm_21),
    DOWN("QuantizeLinear", 21, quantize_output_down),
    DOWN("Attention", 23, expand_attention),
    DOWN("DequantizeLinear", 23, quantize_output_down),
    DOWN("RMSNormalization", 23, expand_rms_norm),
    DOWN("RotaryEmbedding", 23, expand_rotary),
    DOWN("Attention", 24, attention_down),
    DOWN("Swish", 24, expand_swish),
    DOWN("Attention", 25, attention_down),
    DOWN("CausalConvWithState", 27, expand_causal_conv),
    DOWN("SwiGLU", 28, expand_swiglu),
};

static const struct sdx_adapter adapters_ml[] = {
    BOTH("LabelEncoder", 2, label_encoder),
    DOWN("TreeEnsemble", 5, trees_down),
    UP("TreeEnsembleClassifier", 5, tree_classifier_up),
    UP("TreeEnsembleRegressor", 5, tree_regressor_up),
};

#define INT(op, version, attr, value)                                                              \
    {                                                                                              \
        (op), (version), (attr), SDX_DROP_INT, (value), NULL                                       \
    }
#define TEXT(op, version, attr, text)                                                              \
    {                                                                                              \
        (op), (version), (attr), SDX_DROP_TEXT, 0, (text)                                          \
    }
#define ONES(op, version, attr)                                                                    \
    {                                                                                              \
        (op), (version), (attr), SDX_DROP_ONES, 0, NULL                                            \
    }
#define ALWAYS(op, version, attr)                                                                  \
    {                                                                                              \
        (op), (version), (attr), SDX_DROP_ALWAYS, 0, NULL                                          \
    }

static const struct sdx_adapt_default defaults[] = {
    INT("GRU", 3, "linear_before_reset", 0),
    INT("AveragePool", 7, "count_include_pad", 0),
    INT("MaxPool", 8, "storage_order", 0),
    INT("AveragePool", 10, "ceil_mode", 0),
    INT("MaxPool", 10, "ceil_mode", 0),
    ONES("MaxPool", 10, "dilations"),
    TEXT("DepthToSpace", 11, "mode", "DCR"),
    INT("ArgMax", 12, "select_last_index", 0),
    INT("ArgMin", 12, "select_last_index", 0),
    ALWAYS("Dropout", 12, "seed"),
    INT("GatherND", 12, "batch_dims", 0),
    TEXT("ScatterElements", 16, "reduction", "none"),
    TEXT("ScatterND", 16, "reduction", "none"),
    INT("LpPool", 18, "ceil_mode", 0),
    ONES("LpPool", 18, "dilations"),
    INT("Resize", 18, "antialias", 0),
    TEXT("Resize", 18, "keep_aspect_ratio_policy", "stretch"),
    ONES("AveragePool", 19, "dilations"),
    ALWAYS("Cast", 19, "saturate"),
    ALWAYS("CastLike", 19, "saturate"),
    ALWAYS("QuantizeLinear", 19, "saturate"),
    INT("DequantizeLinear", 21, "block_size", 0),
    INT("QuantizeLinear", 21, "block_size", 0),
    INT("QuantizeLinear", 23, "precision", 0),
    ALWAYS("Cast", 24, "round_mode"),
    ALWAYS("CastLike", 24, "round_mode"),
    INT("Attention", 25, "left_window_size", -1),
    INT("Attention", 25, "right_window_size", -1),
    ALWAYS("Range", 27, "stash_type"),
    TEXT("SpaceToDepth", 28, "mode", "DCR"),
};

const struct sdx_adapter *sdx_adapt_rows(struct sdx_str domain, int *count)
{
    const bool ml = sdx_str_is(domain, "ai.onnx.ml");
    *count = ml ? SDX_COUNT_OF(adapters_ml) : domain.len ? 0 : SDX_COUNT_OF(adapters);
    return ml ? adapters_ml : adapters;
}

const struct sdx_adapter *sdx_adapt_find(struct sdx_str domain, struct sdx_str op, int64_t version)
{
    int count = 0;
    const struct sdx_adapter *rows = sdx_adapt_rows(domain, &count);
    for (int i = 0; i < count; i++)
        if (rows[i].version == version && sdx_str_is(op, rows[i].op)) return &rows[i];
    return NULL;
}

const struct sdx_adapt_default *sdx_adapt_defaults(int *count)
{
    *count = SDX_COUNT_OF(defaults);
    return defaults;
}
