/* SPDX-License-Identifier: Apache-2.0
 * Scan: version 8 ran over axis 1 of each item of a batch, version 9 has no batch. */
#include "convert/adapt.h"

/* Names as the inputs or outputs of a body, without types. */
static struct sdx_onnx_value_infos infos_of(struct sdx_rewrite *rx, const struct sdx_str *names,
                                            int32_t count)
{
    struct sdx_onnx_value_infos infos = {NULL, 0};
    infos.at = sdx_arena_array(rx->arena, (size_t)count + 1, sizeof *infos.at);
    if (!infos.at) return infos;
    infos.count = count;
    for (int32_t i = 0; i < count; i++)
        infos.at[i].name = names[i];
    return infos;
}

/* The items one after the other: a Scan over the batch, with this one as its body. */
static enum sdx_status around_batch(struct sdx_rewrite *rx)
{
    struct sdx_onnx_node *node = rx->node;
    const int32_t count_in = node->inputs.count, count_out = node->outputs.count;
    struct sdx_str *in = sdx_arena_array(rx->arena, (size_t)count_in + 1, sizeof *in);
    struct sdx_str *out = sdx_arena_array(rx->arena, (size_t)count_out + 1, sizeof *out);
    struct sdx_onnx_graph *body = sdx_arena_alloc(rx->arena, sizeof *body);
    struct sdx_onnx_node *inner = sdx_arena_copy(rx->arena, node, sizeof *inner);
    struct sdx_rewrite_scope *scope = sdx_rewrite_scope_add(rx, rx->scope);
    if (!in || !out || !body || !inner || !scope) return SDX_FAIL_MEMORY(rx->cx);
    for (int32_t i = 0; i < count_in; i++)
        in[i] = sdx_rewrite_fresh(rx, SDX_STR("item"));
    for (int32_t i = 0; i < count_out; i++)
        out[i] = sdx_rewrite_fresh(rx, SDX_STR("item"));
    inner->inputs.at = in;
    inner->outputs.at = out;
    *body = (struct sdx_onnx_graph){.name = SDX_STR("item"),
                                    .nodes = {inner, 1},
                                    .inputs = infos_of(rx, in, count_in),
                                    .outputs = infos_of(rx, out, count_out)};
    scope->graph = body;
    scope->nodes = &body->nodes;
    const struct sdx_onnx_attr *held = sdx_rewrite_attr(node, "body");
    for (int32_t s = 0; held && s < rx->count_scopes; s++)
        if (rx->scopes[s]->graph == held->g) rx->scopes[s]->parent = scope;
    node->attrs = (struct sdx_onnx_attrs){NULL, 0};
    sdx_rewrite_set_int(rx, node, "num_scan_inputs", count_in);
    struct sdx_onnx_attr *attr = sdx_rewrite_set(rx, node, "body", SDX_ATTR_GRAPH);
    if (attr) attr->g = body;
    return SDX_OK;
}

enum sdx_status sdx_adapt_scan_up(struct sdx_rewrite *rx)
{
    static const int64_t first[] = {0};
    struct sdx_onnx_node *node = rx->node;
    const int32_t count = node->inputs.count - 1;
    bool single = true;
    if (count < 1) return sdx_rewrite_refuse(rx, "has no inputs, expected some");
    if (sdx_rewrite_input(rx, 0).len)
        return sdx_rewrite_refuse(rx, "has sequence_lens, which version 9 has not");
    for (int32_t i = 1; i <= count; i++) {
        const int64_t *dims = sdx_rewrite_dims(rx, node->inputs.at[i]);
        if (!node->inputs.at[i].len) return sdx_rewrite_refuse(rx, "input %d is missing", i);
        single &= dims && sdx_rewrite_rank(rx, node->inputs.at[i]) > 0 && dims[0] == 1;
    }
    struct sdx_str *names =
        sdx_arena_copy(rx->arena, node->inputs.at + 1, (size_t)count * sizeof *names);
    if (!names) return SDX_FAIL_MEMORY(rx->cx);
    node->inputs = (struct sdx_onnx_strings){names, count};
    struct sdx_onnx_attr *directions = sdx_rewrite_attr(node, "directions");
    if (directions) directions->name = SDX_STR("scan_input_directions");
    if (!single) return around_batch(rx);
    for (int32_t i = 0; i < count; i++)
        sdx_rewrite_set_input(rx, i,
                              sdx_rewrite_out(sdx_rewrite_squeeze(rx, "Squeeze", false, SDX_NONE,
                                                                  names[i], 1, first)));
    for (int32_t k = 0; k < node->outputs.count; k++) {
        if (!node->outputs.at[k].len) continue;
        struct sdx_str y = sdx_rewrite_take_output(rx, k);
        sdx_rewrite_set_type(rx, node->outputs.at[k], NULL);
        sdx_rewrite_squeeze(rx, "Unsqueeze", true, y, node->outputs.at[k], 1, first);
    }
    return SDX_OK;
}

static bool all_zero(const struct sdx_onnx_node *node, const char *name)
{
    const struct sdx_onnx_attr *attr = sdx_rewrite_attr(node, name);
    for (int64_t i = 0; attr && i < attr->ints.count; i++)
        if (attr->ints.at[i]) return false;
    return true;
}

enum sdx_status sdx_adapt_scan_down(struct sdx_rewrite *rx)
{
    static const int64_t first[] = {0};
    static const char *const gone[] = {"scan_input_axes", "scan_output_axes",
                                       "scan_output_directions"};
    struct sdx_onnx_node *node = rx->node;
    const int32_t count = node->inputs.count;
    for (int i = 0; i < SDX_COUNT_OF(gone); i++) {
        if (!all_zero(node, gone[i]))
            return sdx_rewrite_refuse(rx, "%s is not all 0, as version 8 means it", gone[i]);
        sdx_rewrite_remove(node, gone[i]);
    }
    struct sdx_onnx_attr *directions = sdx_rewrite_attr(node, "scan_input_directions");
    if (directions) directions->name = SDX_STR("directions");
    const struct sdx_onnx_strings held = node->inputs;
    for (int32_t i = count; i > 0; i--)
        sdx_rewrite_set_input(rx, i,
                              sdx_rewrite_out(sdx_rewrite_squeeze(rx, "Unsqueeze", false, SDX_NONE,
                                                                  held.at[i - 1], 1, first)));
    sdx_rewrite_set_input(rx, 0, SDX_NONE);
    for (int32_t k = 0; k < node->outputs.count; k++) {
        if (!node->outputs.at[k].len) continue;
        struct sdx_str y = sdx_rewrite_take_output(rx, k);
        sdx_rewrite_set_type(rx, node->outputs.at[k], NULL);
        sdx_rewrite_squeeze(rx, "Squeeze", true, y, node->outputs.at[k], 1, first);
    }
    return SDX_OK;
}
