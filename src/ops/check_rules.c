/* SPDX-License-Identifier: Apache-2.0
 * What the standard's own inference refuses although it says nothing of shapes, and although a
 * runtime could often give it a meaning: values of attributes, attributes that exclude each other,
 * ranks. One function an operator or family; only the checker asks. */
#include "ops/check_messages.h"

#include <inttypes.h>

struct subject {
    struct sdx_context *cx;
    const struct sdx_ir *ir;
    const struct sdx_ir_graph *graph;
    const struct sdx_ir_node *node;
};

typedef enum sdx_status rule_fn(const struct subject *s);

/* ---- what a node has ---- */

static bool has_input(const struct subject *s, int i)
{
    return i < s->node->count_inputs && s->node->inputs[i] >= 0;
}

static bool has_output(const struct subject *s, int i)
{
    return i < s->node->count_outputs && s->node->outputs[i] >= 0;
}

static const struct sdx_type *type_of(const struct subject *s, int i)
{
    return has_input(s, i) ? &s->graph->values[s->node->inputs[i]].type : NULL;
}

/* -1: not known. */
static int rank_of(const struct subject *s, int i)
{
    const struct sdx_type *type = type_of(s, i);
    return type && type->has_shape ? type->rank : -1;
}

/* Length of an axis, counted from the end when negative; -1: not known. */
static int64_t length_of(const struct subject *s, int i, int axis)
{
    const int rank = rank_of(s, i), at = axis < 0 ? axis + rank : axis;
    const int64_t length = rank > 0 && at >= 0 && at < rank ? type_of(s, i)->dims[at] : -1;
    return length < 0 ? -1 : length;
}

static bool has_attr(const struct subject *s, const char *name)
{
    return sdx_ir_attr(s->node, name) != NULL;
}

/* Elements of a list or tensor; 0: absent. */
static int64_t count_of(const struct subject *s, const char *name)
{
    const struct sdx_ir_attr *attr = sdx_ir_attr(s->node, name);
    if (!attr) return 0;
    return attr->type == SDX_ATTR_TENSOR ? attr->tensor->count : attr->count;
}

static int dtype_of(const struct subject *s, const char *name)
{
    const struct sdx_ir_attr *attr = sdx_ir_attr(s->node, name);
    return attr && attr->type == SDX_ATTR_TENSOR ? attr->tensor->dtype : SDX_DTYPE_NONE;
}

static enum sdx_status want_rank(const struct subject *s, int i, int least, int most)
{
    const int rank = rank_of(s, i);
    if (rank < 0 || (rank >= least && rank <= most)) return SDX_OK;
    return SDX_FAIL(s->cx, SDX_BAD_MODEL, "input %d has rank %d, expected %s%d", i, rank,
                    least == most ? "" : "at least ", least);
}

/* A text attribute is one of those listed, which end with NULL. */
static enum sdx_status want_text(const struct subject *s, const char *name, const char *fallback,
                                 const char *const *texts)
{
    const struct sdx_str found = sdx_ir_attr_str(s->node, name, fallback);
    for (; *texts; texts++)
        if (sdx_str_is(found, *texts)) return SDX_OK;
    return SDX_FAIL(s->cx, SDX_BAD_MODEL, "attribute %s is \"%.*s\", which is not known", name,
                    SDX_STR_ARG(found));
}

/* ---- neural networks ---- */

static enum sdx_status check_pads(const struct subject *s)
{
    int64_t count = 0;
    const int64_t *pads = sdx_ir_attr_ints(s->node, "pads", &count);
    for (int64_t i = 0; i < count; i++)
        if (pads[i] < 0)
            return SDX_FAIL(s->cx, SDX_BAD_MODEL,
                            "attribute pads holds %" PRId64 ", expected at least 0", pads[i]);
    return SDX_OK;
}

static enum sdx_status check_conv_transpose(const struct subject *s)
{
    const struct sdx_str automatic = sdx_ir_attr_str(s->node, "auto_pad", "NOTSET");
    if (has_attr(s, "pads") && !sdx_str_is(automatic, "NOTSET"))
        return SDX_FAIL(s->cx, SDX_BAD_MODEL,
                        "attributes pads and auto_pad are both given, expected one");
    return check_pads(s);
}

static enum sdx_status check_batch_norm(const struct subject *s)
{
    for (int i = 1; i < 5; i++)
        SDX_TRY(want_rank(s, i, 1, 1));
    return SDX_OK;
}

static enum sdx_status check_axis_exists(const struct subject *s)
{
    return want_rank(s, 0, 1, SDX_RANK_MAX);
}

static enum sdx_status check_unpool(const struct subject *s)
{
    SDX_TRY(want_rank(s, 0, 2, SDX_RANK_MAX));
    return want_rank(s, 1, 2, SDX_RANK_MAX);
}

static enum sdx_status check_class_weights(const struct subject *s)
{
    return want_rank(s, 2, 1, 1);
}

static enum sdx_status check_one_hot(const struct subject *s)
{
    if (s->node->opset >= 11) return SDX_OK;
    const int32_t graph = (int32_t)(s->graph - s->ir->graphs);
    const struct sdx_tensor *indices =
        has_input(s, 0) ? s->graph->values[s->node->inputs[0]].constant : NULL;
    if (!indices && has_input(s, 0)) indices = sdx_ir_constant(s->ir, graph, s->node->inputs[0]);
    if (!indices || indices->dtype != SDX_I64) return SDX_OK;
    for (int64_t i = 0; i < indices->count; i++)
        if (((const int64_t *)indices->data)[i] < 0)
            return SDX_FAIL(s->cx, SDX_BAD_MODEL,
                            "an index is %" PRId64 ", expected at least 0 before version 11",
                            ((const int64_t *)indices->data)[i]);
    return SDX_OK;
}

static enum sdx_status check_dft(const struct subject *s)
{
    const bool inverse = sdx_ir_attr_int(s->node, "inverse", 0) != 0;
    const int64_t parts = length_of(s, 0, -1);
    if (!sdx_ir_attr_int(s->node, "onesided", 0) || parts < 0) return SDX_OK;
    if (parts == (inverse ? 2 : 1)) return SDX_OK;
    return SDX_FAIL(s->cx, SDX_BAD_MODEL,
                    "the last axis of a onesided %s has length %" PRId64 ", expected %d",
                    inverse ? "inverse" : "transform", parts, inverse ? 2 : 1);
}

/* ---- attention and its kin ---- */

static enum sdx_status check_attention(const struct subject *s)
{
    static const char *const sides[] = {"left_window_size", "right_window_size"};
    for (int i = 0; i < SDX_COUNT_OF(sides); i++) {
        const int64_t size = sdx_ir_attr_int(s->node, sides[i], -1);
        if (size < -1)
            return SDX_FAIL(s->cx, SDX_BAD_MODEL,
                            "attribute %s is %" PRId64 ", expected at least -1", sides[i], size);
    }
    if (s->node->opset < 25) return SDX_OK;
    if (has_output(s, 1) != has_output(s, 2))
        return SDX_FAIL(s->cx, SDX_BAD_MODEL,
                        "one of present_key and present_value is asked for, expected both");
    if (rank_of(s, 0) == 4 && (has_attr(s, "q_num_heads") || has_attr(s, "kv_num_heads")))
        return SDX_FAIL(s->cx, SDX_BAD_MODEL,
                        "q_num_heads or kv_num_heads is given for inputs of rank 4");
    return SDX_OK;
}

enum { LINEAR_DECAY = 4, LINEAR_BETA = 5 };

/* Is an input there exactly where the rule wants it? */
static enum sdx_status want_present(const struct subject *s, int i, bool wanted, const char *name,
                                    struct sdx_str rule)
{
    if (has_input(s, i) == wanted) return SDX_OK;
    return SDX_FAIL(s->cx, SDX_BAD_MODEL, "input %s is %s, update_rule \"%.*s\" %s it", name,
                    wanted ? "left out" : "given", SDX_STR_ARG(rule), wanted ? "needs" : "forbids");
}

static enum sdx_status check_linear_attention(const struct subject *s)
{
    static const char *const rules[] = {"linear", "gated", "delta", "gated_delta", NULL};
    const struct sdx_str rule = sdx_ir_attr_str(s->node, "update_rule", "gated_delta");
    const int64_t heads = sdx_ir_attr_int(s->node, "kv_num_heads", -1);
    const int64_t q_heads = sdx_ir_attr_int(s->node, "q_num_heads", -1);
    const bool is_both = sdx_str_is(rule, "gated_delta");
    SDX_TRY(want_text(s, "update_rule", "gated_delta", rules));
    SDX_TRY(want_present(s, LINEAR_DECAY, is_both || sdx_str_is(rule, "gated"), "decay", rule));
    SDX_TRY(want_present(s, LINEAR_BETA, is_both || sdx_str_is(rule, "delta"), "beta", rule));
    const int64_t decay = length_of(s, LINEAR_DECAY, -1), beta = length_of(s, LINEAR_BETA, -1);
    const int64_t width = length_of(s, 0, -1),
                  key = q_heads > 0 && width >= 0 ? width / q_heads : -1;
    if (decay >= 0 && heads > 0 && key >= 0 && decay != heads && decay != heads * key)
        return SDX_FAIL(s->cx, SDX_BAD_MODEL,
                        "the last axis of decay has length %" PRId64 ", expected %" PRId64
                        " or %" PRId64,
                        decay, heads, heads * key);
    if (beta >= 0 && heads > 0 && beta != 1 && beta != heads)
        return SDX_FAIL(s->cx, SDX_BAD_MODEL,
                        "the last axis of beta has length %" PRId64 ", expected 1 or %" PRId64,
                        beta, heads);
    return SDX_OK;
}

static enum sdx_status check_causal_conv(const struct subject *s)
{
    static const char *const activations[] = {"none", "silu", "swish", NULL};
    return want_text(s, "activation", "none", activations);
}

/* ---- classical machine learning ---- */

static enum sdx_status check_label_encoder(const struct subject *s)
{
    const int value = dtype_of(s, "values_tensor"), other = dtype_of(s, "default_tensor");
    if (!has_attr(s, "default_tensor")) return SDX_OK;
    if (count_of(s, "default_tensor") != 1)
        return SDX_FAIL(s->cx, SDX_BAD_MODEL, "default_tensor has %" PRId64 " elements, expected 1",
                        count_of(s, "default_tensor"));
    if (value && value != other)
        return SDX_FAIL(s->cx, SDX_BAD_MODEL, "default_tensor is %s, expected %s as values_tensor",
                        sdx_dtype_name((sdx_dtype)other), sdx_dtype_name((sdx_dtype)value));
    return SDX_OK;
}

static enum sdx_status check_category_mapper(const struct subject *s)
{
    const int64_t ints = count_of(s, "cats_int64s"), strings = count_of(s, "cats_strings");
    if (ints > 0 && ints == strings) return SDX_OK;
    return SDX_FAIL(s->cx, SDX_BAD_MODEL,
                    "cats_int64s has %" PRId64 " entries and cats_strings %" PRId64
                    ", expected as many of both",
                    ints, strings);
}

static enum sdx_status check_one_hot_encoder(const struct subject *s)
{
    if (has_attr(s, "cats_int64s") != has_attr(s, "cats_strings")) return SDX_OK;
    return SDX_FAIL(s->cx, SDX_BAD_MODEL, "cats_int64s and cats_strings are %s, expected one",
                    has_attr(s, "cats_int64s") ? "both given" : "both left out");
}

static enum sdx_status check_tree_ensemble(const struct subject *s)
{
    static const char *const lists[] = {"nodes_featureids",  "nodes_splits",    "nodes_modes",
                                        "nodes_truenodeids", "nodes_trueleafs", "nodes_falseleafs",
                                        "nodes_falsenodeids"};
    static const char *const tensors[] = {"leaf_weights", "nodes_splits", "nodes_hitrates"};
    const int64_t count = count_of(s, "nodes_featureids");
    for (int i = 0; i < SDX_COUNT_OF(lists); i++)
        if (count_of(s, lists[i]) != count)
            return SDX_FAIL(s->cx, SDX_BAD_MODEL, "%s has %" PRId64 " entries, expected %" PRId64,
                            lists[i], count_of(s, lists[i]), count);
    if (count_of(s, "leaf_targetids") != count_of(s, "leaf_weights"))
        return SDX_FAIL(s->cx, SDX_BAD_MODEL,
                        "leaf_targetids has %" PRId64 " entries, leaf_weights %" PRId64,
                        count_of(s, "leaf_targetids"), count_of(s, "leaf_weights"));
    const int wanted = type_of(s, 0) ? type_of(s, 0)->dtype : SDX_DTYPE_NONE;
    for (int i = 0; i < SDX_COUNT_OF(tensors); i++) {
        const int found = dtype_of(s, tensors[i]);
        if (found && wanted && found != wanted)
            return SDX_FAIL(s->cx, SDX_BAD_MODEL, "%s is %s, expected %s as the input", tensors[i],
                            sdx_dtype_name((sdx_dtype)found), sdx_dtype_name((sdx_dtype)wanted));
    }
    return SDX_OK;
}

static const struct rule {
    const char *domain, *op;
    rule_fn *fn;
} rules[] = {
    {"", "Conv", check_pads},
    {"", "MaxPool", check_pads},
    {"", "AveragePool", check_pads},
    {"", "LpPool", check_pads},
    {"", "ConvInteger", check_pads},
    {"", "QLinearConv", check_pads},
    {"", "ConvTranspose", check_conv_transpose},
    {"", "BatchNormalization", check_batch_norm},
    {"", "Softmax", check_axis_exists},
    {"", "LogSoftmax", check_axis_exists},
    {"", "Hardmax", check_axis_exists},
    {"", "MaxUnpool", check_unpool},
    {"", "NegativeLogLikelihoodLoss", check_class_weights},
    {"", "SoftmaxCrossEntropyLoss", check_class_weights},
    {"", "OneHot", check_one_hot},
    {"", "DFT", check_dft},
    {"", "Attention", check_attention},
    {"", "LinearAttention", check_linear_attention},
    {"", "CausalConvWithState", check_causal_conv},
    {"ai.onnx.ml", "LabelEncoder", check_label_encoder},
    {"ai.onnx.ml", "CategoryMapper", check_category_mapper},
    {"ai.onnx.ml", "OneHotEncoder", check_one_hot_encoder},
    {"ai.onnx.ml", "TreeEnsemble", check_tree_ensemble},
};

enum sdx_status sdx_check_rules(struct sdx_context *cx, const struct sdx_ir *ir,
                                const struct sdx_ir_graph *graph, const struct sdx_ir_node *node)
{
    const struct subject s = {cx, ir, graph, node};
    for (int i = 0; i < SDX_COUNT_OF(rules); i++)
        if (sdx_str_is(node->op_type, rules[i].op) && sdx_str_is(node->domain, rules[i].domain))
            return rules[i].fn(&s);
    return SDX_OK;
}
