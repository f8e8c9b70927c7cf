/* SPDX-License-Identifier: Apache-2.0
 * Attributes that became inputs, and back: a table says which, and in what form. */
#include "convert/adapt.h"

enum form {
    INTS,    /* list of integers */
    INT_1,   /* one integer, as a list of one */
    INT_0,   /* one integer, rank 0 */
    FLOATS,  /* list of floats */
    FLOAT_0, /* one float, rank 0 */
    LIKE_X   /* one number of input 0's type, rank 0 */
};

static const struct moved {
    const char *op;
    int16_t version;
    const char *attr;
    uint8_t input, form;
} table[] = {
    {"Reshape", 5, "shape", 1, INTS},
    {"Upsample", 9, "scales", 1, FLOATS},
    {"Slice", 10, "starts", 1, INTS},
    {"Slice", 10, "ends", 2, INTS},
    {"Slice", 10, "axes", 3, INTS},
    {"TopK", 10, "k", 1, INT_1},
    {"Clip", 11, "min", 1, LIKE_X},
    {"Clip", 11, "max", 2, LIKE_X},
    {"Pad", 11, "pads", 1, INTS},
    {"Pad", 11, "value", 2, LIKE_X},
    {"Dropout", 12, "ratio", 1, FLOAT_0},
    {"ReduceSum", 13, "axes", 1, INTS},
    {"Split", 13, "split", 1, INTS},
    {"Squeeze", 13, "axes", 1, INTS},
    {"Unsqueeze", 13, "axes", 1, INTS},
    {"ReduceL1", 18, "axes", 1, INTS},
    {"ReduceL2", 18, "axes", 1, INTS},
    {"ReduceLogSum", 18, "axes", 1, INTS},
    {"ReduceLogSumExp", 18, "axes", 1, INTS},
    {"ReduceMax", 18, "axes", 1, INTS},
    {"ReduceMean", 18, "axes", 1, INTS},
    {"ReduceMin", 18, "axes", 1, INTS},
    {"ReduceProd", 18, "axes", 1, INTS},
    {"ReduceSumSquare", 18, "axes", 1, INTS},
    {"DFT", 20, "axis", 2, INT_0},
};

enum { DFT_AXIS_OLD = 1, DFT_AXIS_NEW = -2 }; /* what no axis means */

/* An attribute of a function: a Constant that takes the function's value. */
static enum sdx_status up_reference(struct sdx_rewrite *rx, const struct moved *row,
                                    const struct sdx_onnx_attr *attr)
{
    static const char *const names[] = {[INTS] = "value_ints",
                                        [INT_0] = "value_int",
                                        [FLOATS] = "value_floats",
                                        [FLOAT_0] = "value_float"};
    const char *name = row->form < SDX_COUNT_OF(names) ? names[row->form] : NULL;
    if (!name || rx->to < 12)
        return sdx_rewrite_refuse(rx,
                                  "attribute %s is the function's \"%.*s\", whose value is not "
                                  "known",
                                  row->attr, SDX_STR_ARG(attr->ref));
    const struct sdx_onnx_attr held = *attr;
    struct sdx_onnx_node *node =
        sdx_rewrite_before(rx, "Constant", SDX_NONE, SDX_NONE, SDX_NONE, SDX_NONE);
    struct sdx_onnx_attr *to = sdx_rewrite_set(rx, node, name, (enum sdx_attr_type)held.type);
    if (to) to->ref = held.ref;
    sdx_rewrite_set_input(rx, row->input, sdx_rewrite_out(node));
    return SDX_OK;
}

static enum sdx_status up_one(struct sdx_rewrite *rx, const struct moved *row)
{
    const struct sdx_onnx_attr *attr = sdx_rewrite_attr(rx->node, row->attr);
    struct sdx_str name = SDX_NONE;
    if (!attr && row->form == INT_0) name = sdx_rewrite_const_int(rx, DFT_AXIS_OLD);
    if (!attr && name.len) sdx_rewrite_set_input(rx, row->input, name);
    if (!attr) return SDX_OK;
    if (attr->ref.len) {
        SDX_TRY(up_reference(rx, row, attr));
        sdx_rewrite_remove(rx->node, row->attr);
        return SDX_OK;
    }
    const int dtype = sdx_rewrite_dtype(rx, sdx_rewrite_input(rx, 0));
    switch ((enum form)row->form) {
    case INTS: name = sdx_rewrite_const_ints(rx, attr->ints.count, attr->ints.at); break;
    case INT_1: name = sdx_rewrite_const_ints(rx, 1, &attr->i); break;
    case INT_0: name = sdx_rewrite_const_int(rx, attr->i); break;
    case FLOATS: name = sdx_rewrite_const(rx, SDX_F32, 1, attr->count_floats, attr->floats); break;
    case FLOAT_0: name = sdx_rewrite_const_number(rx, SDX_F32, 0, attr->f); break;
    case LIKE_X:
        if (!dtype)
            return sdx_rewrite_refuse(rx,
                                      "attribute %s becomes an input of the type of input 0, "
                                      "which is not known",
                                      row->attr);
        name = sdx_rewrite_const_number(rx, dtype, 0, attr->f);
        break;
    }
    sdx_rewrite_remove(rx->node, row->attr);
    sdx_rewrite_set_input(rx, row->input, name);
    return SDX_OK;
}

enum sdx_status sdx_adapt_inputs_up(struct sdx_rewrite *rx)
{
    for (int i = 0; i < SDX_COUNT_OF(table); i++)
        if (table[i].version == rx->to && sdx_str_is(rx->node->op_type, table[i].op))
            SDX_TRY(up_one(rx, &table[i]));
    return SDX_OK;
}

static enum sdx_status down_one(struct sdx_rewrite *rx, const struct moved *row)
{
    struct sdx_str name = sdx_rewrite_input(rx, row->input);
    const bool is_float = row->form >= FLOATS, is_list = row->form == INTS || row->form == FLOATS;
    const int64_t *ints = NULL;
    const float *floats = NULL;
    int64_t count = 0;
    if (name.len == 0) return SDX_OK;
    if (!(is_float ? sdx_rewrite_floats(rx, name, &floats, &count)
                   : sdx_rewrite_ints(rx, name, &ints, &count)))
        return sdx_rewrite_refuse(rx,
                                  "input %d (\"%.*s\") is not a constant, expected one to "
                                  "become attribute %s",
                                  row->input, SDX_STR_ARG(name), row->attr);
    if (!is_list && count != 1)
        return sdx_rewrite_refuse(rx,
                                  "input %d (\"%.*s\") has %lld elements, expected one to "
                                  "become attribute %s",
                                  row->input, SDX_STR_ARG(name), (long long)count, row->attr);
    switch ((enum form)row->form) {
    case INTS: sdx_rewrite_set_ints(rx, rx->node, row->attr, count, ints); break;
    case INT_1:
    case INT_0: sdx_rewrite_set_int(rx, rx->node, row->attr, ints[0]); break;
    case FLOATS: sdx_rewrite_set_floats(rx, rx->node, row->attr, count, floats); break;
    case FLOAT_0:
    case LIKE_X: sdx_rewrite_set_float(rx, rx->node, row->attr, floats[0]); break;
    }
    sdx_rewrite_moved(rx, name);
    sdx_rewrite_set_input(rx, row->input, SDX_NONE);
    return SDX_OK;
}

enum sdx_status sdx_adapt_inputs_down(struct sdx_rewrite *rx)
{
    for (int i = 0; i < SDX_COUNT_OF(table); i++)
        if (table[i].version == rx->from && sdx_str_is(rx->node->op_type, table[i].op))
            SDX_TRY(down_one(rx, &table[i]));
    sdx_rewrite_trim_inputs(rx, rx->node->inputs.count);
    return SDX_OK;
}

/* No axes: all of them, unless noop_with_empty_axes says none. */
enum sdx_status sdx_adapt_reduce_down(struct sdx_rewrite *rx)
{
    const bool noop = sdx_rewrite_attr_int(rx->node, "noop_with_empty_axes", 0) != 0;
    static const char *const same[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin",
                                       "ReduceProd"};
    SDX_TRY(sdx_adapt_inputs_down(rx));
    sdx_rewrite_remove(rx->node, "noop_with_empty_axes");
    const struct sdx_onnx_attr *axes = sdx_rewrite_attr(rx->node, "axes");
    if (axes && axes->ints.count) return SDX_OK;
    sdx_rewrite_remove(rx->node, "axes");
    if (!noop) return SDX_OK;
    for (int i = 0; i < SDX_COUNT_OF(same); i++) {
        if (!sdx_str_is(rx->node->op_type, same[i])) continue;
        sdx_rewrite_before(rx, "Identity", sdx_rewrite_output(rx, 0), sdx_rewrite_input(rx, 0),
                           SDX_NONE, SDX_NONE);
        rx->drop = true;
        return SDX_OK;
    }
    return sdx_rewrite_refuse(rx, "noop_with_empty_axes without axes has no older form");
}

enum sdx_status sdx_adapt_slice_down(struct sdx_rewrite *rx)
{
    struct sdx_str steps = sdx_rewrite_input(rx, 4);
    const int64_t *v = NULL;
    int64_t count = 0;
    if (steps.len) {
        bool ones = sdx_rewrite_ints(rx, steps, &v, &count);
        for (int64_t i = 0; ones && i < count; i++)
            ones = v[i] == 1;
        if (!ones)
            return sdx_rewrite_refuse(rx, "steps (\"%.*s\") are not constant ones",
                                      SDX_STR_ARG(steps));
        sdx_rewrite_moved(rx, steps);
        sdx_rewrite_set_input(rx, 4, SDX_NONE);
    }
    return sdx_adapt_inputs_down(rx);
}

/* Without training the ratio does nothing. */
enum sdx_status sdx_adapt_dropout_12_down(struct sdx_rewrite *rx)
{
    struct sdx_str ratio = sdx_rewrite_input(rx, 1), training = sdx_rewrite_input(rx, 2);
    const float *v = NULL;
    int64_t count = 0;
    if (training.len) {
        if (!sdx_rewrite_floats(rx, training, &v, &count) || count != 1 || v[0] != 0)
            return sdx_rewrite_refuse(rx, "training_mode (\"%.*s\") is not a constant false",
                                      SDX_STR_ARG(training));
        sdx_rewrite_moved(rx, training);
        sdx_rewrite_set_input(rx, 2, SDX_NONE);
    }
    if (ratio.len && !sdx_rewrite_floats(rx, ratio, &v, &count))
        sdx_rewrite_set_input(rx, 1, SDX_NONE);
    return sdx_adapt_inputs_down(rx);
}

enum sdx_status sdx_adapt_dft_down(struct sdx_rewrite *rx)
{
    SDX_TRY(sdx_adapt_inputs_down(rx));
    if (!sdx_rewrite_attr(rx->node, "axis"))
        sdx_rewrite_set_int(rx, rx->node, "axis", DFT_AXIS_NEW);
    return SDX_OK;
}
