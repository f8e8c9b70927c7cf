/* SPDX-License-Identifier: Apache-2.0
 * Adapters of normalisations, Dropout, recurrent networks and quantisation. */
#include "convert/adapt.h"

/* ---- BatchNormalization ---- */

static bool has_training_outputs(const struct sdx_rewrite *rx)
{
    for (int i = 1; i < rx->node->outputs.count; i++)
        if (rx->node->outputs.at[i].len) return true;
    return false;
}

static enum sdx_status no_training(struct sdx_rewrite *rx)
{
    if (has_training_outputs(rx))
        return sdx_rewrite_refuse(rx, "has outputs of training, which the other version makes "
                                      "otherwise");
    rx->node->outputs.count = 1;
    return SDX_OK;
}

enum sdx_status sdx_adapt_batch_norm_6_down(struct sdx_rewrite *rx)
{
    sdx_rewrite_set_ints(rx, rx->node, "consumed_inputs", 5, (const int64_t[]){0, 0, 0, 1, 1});
    return SDX_OK;
}

/* One output is the test mode, whatever is_test says. */
enum sdx_status sdx_adapt_batch_norm_7_up(struct sdx_rewrite *rx)
{
    sdx_rewrite_remove(rx->node, "is_test");
    return no_training(rx);
}

enum sdx_status sdx_adapt_batch_norm_7_down(struct sdx_rewrite *rx)
{
    sdx_rewrite_set_int(rx, rx->node, "is_test", 1);
    return no_training(rx);
}

enum sdx_status sdx_adapt_batch_norm_9_up(struct sdx_rewrite *rx)
{
    if (!sdx_rewrite_attr_int(rx->node, "spatial", 1))
        return sdx_rewrite_refuse(rx, "spatial is 0, which version 9 no longer has");
    sdx_rewrite_remove(rx->node, "spatial");
    return SDX_OK;
}

enum sdx_status sdx_adapt_batch_norm_14(struct sdx_rewrite *rx)
{
    if (rx->to < rx->from && sdx_rewrite_attr_int(rx->node, "training_mode", 0))
        return sdx_rewrite_refuse(rx, "training_mode is set, which version 9 makes otherwise");
    sdx_rewrite_remove(rx->node, "training_mode");
    return no_training(rx);
}

/* ---- Dropout before version 7 had a test mode ---- */

enum sdx_status sdx_adapt_dropout_7_up(struct sdx_rewrite *rx)
{
    if (!sdx_rewrite_attr_int(rx->node, "is_test", 0))
        return sdx_rewrite_refuse(rx, "is_test is 0: training, which version 7 has not");
    sdx_rewrite_remove(rx->node, "is_test");
    return SDX_OK;
}

enum sdx_status sdx_adapt_dropout_7_down(struct sdx_rewrite *rx)
{
    sdx_rewrite_set_int(rx, rx->node, "is_test", 1);
    return SDX_OK;
}

/* ---- RNN, GRU, LSTM ---- */

enum sdx_status sdx_adapt_rnn_7_up(struct sdx_rewrite *rx)
{
    sdx_rewrite_remove(rx->node, "output_sequence");
    return SDX_OK;
}

enum sdx_status sdx_adapt_rnn_7_down(struct sdx_rewrite *rx)
{
    if (sdx_rewrite_output(rx, 0).len) sdx_rewrite_set_int(rx, rx->node, "output_sequence", 1);
    return SDX_OK;
}

static void transpose_input(struct sdx_rewrite *rx, int i)
{
    static const int64_t perm[] = {1, 0, 2};
    struct sdx_str name = sdx_rewrite_input(rx, i);
    if (!name.len) return;
    struct sdx_onnx_node *node =
        sdx_rewrite_before(rx, "Transpose", SDX_NONE, name, SDX_NONE, SDX_NONE);
    sdx_rewrite_set_ints(rx, node, "perm", 3, perm);
    sdx_rewrite_set_input(rx, i, sdx_rewrite_out(node));
}

/* layout 1 has the batch first: Y [batch, steps, directions, hidden] and states [batch, directions,
 * hidden]; layout 0: [steps, directions, batch, hidden] and [directions, batch, hidden]. */
enum sdx_status sdx_adapt_rnn_14_down(struct sdx_rewrite *rx)
{
    static const int64_t perm_y[] = {2, 0, 1, 3}, perm_state[] = {1, 0, 2};
    const int64_t layout = sdx_rewrite_attr_int(rx->node, "layout", 0);
    sdx_rewrite_remove(rx->node, "layout");
    if (!layout) return SDX_OK;
    transpose_input(rx, 0);
    transpose_input(rx, 5);
    transpose_input(rx, 6);
    for (int k = 0; k < rx->node->outputs.count; k++) {
        if (!rx->node->outputs.at[k].len) continue;
        struct sdx_str y = sdx_rewrite_take_output(rx, k);
        sdx_rewrite_set_type(rx, rx->node->outputs.at[k], NULL);
        struct sdx_onnx_node *node =
            sdx_rewrite_after(rx, "Transpose", y, rx->node->outputs.at[k], SDX_NONE, SDX_NONE);
        sdx_rewrite_set_ints(rx, node, "perm", k ? 3 : 4, k ? perm_state : perm_y);
    }
    return SDX_OK;
}

/* ---- GroupNormalization: scale and bias of a group, since version 21 of a channel ---- */

/* [groups] to [channels]: each number as often as its group has channels. */
static struct sdx_str spread_groups(struct sdx_rewrite *rx, struct sdx_str list,
                                    struct sdx_str shape)
{
    struct sdx_str column = sdx_rewrite_reshape(rx, list, 2, (const int64_t[]){-1, 1});
    struct sdx_onnx_node *wide =
        sdx_rewrite_before(rx, "Expand", SDX_NONE, column, shape, SDX_NONE);
    return sdx_rewrite_reshape(rx, sdx_rewrite_out(wide), 1, (const int64_t[]){-1});
}

enum sdx_status sdx_adapt_group_norm_21_up(struct sdx_rewrite *rx)
{
    struct sdx_str x = sdx_rewrite_input(rx, 0);
    const int64_t groups = sdx_rewrite_attr_int(rx->node, "num_groups", 0);
    const int64_t *dims = sdx_rewrite_dims(rx, x);
    struct sdx_str shape;
    if (groups < 1) return sdx_rewrite_refuse(rx, "num_groups is %lld", (long long)groups);
    if (dims && sdx_rewrite_rank(rx, x) > 1 && dims[1] > 0) {
        shape = sdx_rewrite_const_ints(rx, 2, (const int64_t[]){1, dims[1] / groups});
    } else {
        struct sdx_onnx_node *all =
            sdx_rewrite_before(rx, "Shape", SDX_NONE, x, SDX_NONE, SDX_NONE);
        sdx_rewrite_set_int(rx, all, "start", 1);
        sdx_rewrite_set_int(rx, all, "end", 2);
        struct sdx_str channels = sdx_rewrite_out(all);
        struct sdx_str each = sdx_rewrite_out(sdx_rewrite_before(
            rx, "Div", SDX_NONE, channels, sdx_rewrite_const_int(rx, groups), SDX_NONE));
        struct sdx_onnx_node *both =
            sdx_rewrite_before(rx, "Concat", SDX_NONE,
                               sdx_rewrite_const_ints(rx, 1, (const int64_t[]){1}), each, SDX_NONE);
        sdx_rewrite_set_int(rx, both, "axis", 0);
        shape = sdx_rewrite_out(both);
    }
    for (int i = 1; i < 3; i++)
        sdx_rewrite_set_input(rx, i, spread_groups(rx, sdx_rewrite_input(rx, i), shape));
    return SDX_OK;
}

/* Version 18 is deprecated: the groups by InstanceNormalization of [N, groups, the rest], then
 * scale and bias as nodes. */
enum sdx_status sdx_adapt_group_norm_21_down(struct sdx_rewrite *rx)
{
    struct sdx_str x = sdx_rewrite_input(rx, 0);
    const int rank = sdx_rewrite_rank(rx, x), dtype = sdx_rewrite_dtype(rx, x);
    const int64_t groups = sdx_rewrite_attr_int(rx->node, "num_groups", 0);
    const struct sdx_onnx_attr *epsilon = sdx_rewrite_attr(rx->node, "epsilon");
    int64_t axes[SDX_RANK_MAX];
    struct sdx_str operand[2], plain[2];
    if (rank < 2 || !dtype) return sdx_rewrite_refuse(rx, "the type of input X is not known");
    if (sdx_rewrite_attr_int(rx->node, "stash_type", 1) != 1 && dtype != SDX_F32)
        return sdx_rewrite_refuse(rx, "stash_type is not 1");
    if (groups < 1) return sdx_rewrite_refuse(rx, "num_groups is %lld", (long long)groups);
    for (int i = 0; i < rank - 2; i++)
        axes[i] = i + 1;
    for (int i = 0; i < 2; i++) {
        operand[i] = sdx_rewrite_input(rx, i + 1);
        if (rank > 2)
            operand[i] = sdx_rewrite_out(
                sdx_rewrite_squeeze(rx, "Unsqueeze", false, SDX_NONE, operand[i], rank - 2, axes));
        struct sdx_str one = sdx_rewrite_const_number(rx, dtype, 1, i == 0);
        struct sdx_str count = sdx_rewrite_const_ints(rx, 1, &groups);
        plain[i] =
            sdx_rewrite_out(sdx_rewrite_before(rx, "Expand", SDX_NONE, one, count, SDX_NONE));
    }
    struct sdx_str grouped = sdx_rewrite_reshape(rx, x, 3, (const int64_t[]){0, groups, -1});
    struct sdx_onnx_node *norm =
        sdx_rewrite_before(rx, "InstanceNormalization", SDX_NONE, grouped, plain[0], plain[1]);
    struct sdx_str normed = sdx_rewrite_out(norm);
    sdx_rewrite_set_float(rx, norm, "epsilon", epsilon ? epsilon->f : 1e-5f);
    struct sdx_onnx_node *shape = sdx_rewrite_before(rx, "Shape", SDX_NONE, x, SDX_NONE, SDX_NONE);
    struct sdx_str list = sdx_rewrite_out(shape);
    struct sdx_onnx_node *back =
        sdx_rewrite_before(rx, "Reshape", SDX_NONE, normed, list, SDX_NONE);
    struct sdx_str same = sdx_rewrite_out(back);
    struct sdx_onnx_node *scaled =
        sdx_rewrite_before(rx, "Mul", SDX_NONE, same, operand[0], SDX_NONE);
    struct sdx_str product = sdx_rewrite_out(scaled);
    sdx_rewrite_before(rx, "Add", sdx_rewrite_output(rx, 0), product, operand[1], SDX_NONE);
    rx->drop = true;
    return SDX_OK;
}

/* ---- quantisation ---- */

/* Before version 13: one scale. */
enum sdx_status sdx_adapt_quantize_13_down(struct sdx_rewrite *rx)
{
    struct sdx_str scale = sdx_rewrite_input(rx, 1);
    const int rank = sdx_rewrite_rank(rx, scale);
    const int64_t *dims = sdx_rewrite_dims(rx, scale);
    if (rank < 0 || (rank == 1 && dims[0] != 1) || rank > 1)
        return sdx_rewrite_refuse(rx, "the scale is not known to be one number");
    sdx_rewrite_remove(rx->node, "axis");
    return SDX_OK;
}

/* output_dtype that says what the operands say anyway. */
enum sdx_status sdx_adapt_quantize_output_down(struct sdx_rewrite *rx)
{
    const bool dequantize = sdx_str_is(rx->node->op_type, "DequantizeLinear");
    const int64_t dtype = sdx_rewrite_attr_int(rx->node, "output_dtype", 0);
    const int usual = dequantize ? sdx_rewrite_dtype(rx, sdx_rewrite_input(rx, 1))
                      : sdx_rewrite_input(rx, 2).len ? (int)dtype
                                                     : SDX_U8;
    if (dtype && dtype != usual)
        return sdx_rewrite_refuse(rx, "output_dtype is %lld, which only a zero point can say",
                                  (long long)dtype);
    sdx_rewrite_remove(rx->node, "output_dtype");
    return SDX_OK;
}
