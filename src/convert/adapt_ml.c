/* SPDX-License-Identifier: Apache-2.0
 * Adapters of ai.onnx.ml. */
#include "convert/adapt.h"

/* Version 1 numbers a list of strings; version 2 maps keys to values. */
enum sdx_status sdx_adapt_label_encoder_up(struct sdx_rewrite *rx)
{
    struct sdx_onnx_node *node = rx->node;
    const struct sdx_onnx_attr *classes = sdx_rewrite_attr(node, "classes_strings");
    const int dtype = sdx_rewrite_dtype(rx, sdx_rewrite_input(rx, 0));
    if (!classes || (dtype != SDX_STRING && dtype != SDX_I64))
        return sdx_rewrite_refuse(rx, "classes_strings or the type of the input is not known");
    const struct sdx_onnx_strings list = classes->strings;
    int64_t *numbers = sdx_arena_array(rx->arena, (size_t)list.count + 1, sizeof *numbers);
    if (!numbers) return SDX_FAIL_MEMORY(rx->cx);
    for (int32_t i = 0; i < list.count; i++)
        numbers[i] = i;
    const bool from_text = dtype == SDX_STRING;
    sdx_rewrite_remove(node, "classes_strings");
    sdx_rewrite_set_ints(rx, node, from_text ? "values_int64s" : "keys_int64s", list.count,
                         numbers);
    struct sdx_onnx_attr *text =
        sdx_rewrite_set(rx, node, from_text ? "keys_strings" : "values_strings", SDX_ATTR_STRINGS);
    if (text) text->strings = list;
    return SDX_OK;
}

enum sdx_status sdx_adapt_label_encoder_down(struct sdx_rewrite *rx)
{
    struct sdx_onnx_node *node = rx->node;
    const struct sdx_onnx_attr *text = sdx_rewrite_attr(node, "keys_strings");
    const struct sdx_onnx_attr *numbers = sdx_rewrite_attr(node, "values_int64s");
    if (!text || !numbers) {
        text = sdx_rewrite_attr(node, "values_strings");
        numbers = sdx_rewrite_attr(node, "keys_int64s");
    }
    bool counts = text && numbers && numbers->ints.count == text->strings.count;
    for (int64_t i = 0; counts && i < numbers->ints.count; i++)
        counts = numbers->ints.at[i] == i;
    if (!counts) return sdx_rewrite_refuse(rx, "does not map strings to 0, 1, 2 ... or back");
    static const char *const gone[] = {"keys_strings", "values_int64s", "values_strings",
                                       "keys_int64s", "default_float"};
    const struct sdx_onnx_strings list = text->strings;
    for (int i = 0; i < SDX_COUNT_OF(gone); i++)
        sdx_rewrite_remove(node, gone[i]);
    struct sdx_onnx_attr *classes = sdx_rewrite_set(rx, node, "classes_strings", SDX_ATTR_STRINGS);
    if (classes) classes->strings = list;
    return SDX_OK;
}
