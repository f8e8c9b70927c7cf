/* SPDX-License-Identifier: Apache-2.0
 * Adapters of what moves data: Concat, Split, Pad, Reshape, Tile, TopK, Shape, Resize, Scatter,
 * RoiAlign, GridSample, Constant. */
#include "convert/adapt.h"
#include "convert/formula.h"

enum sdx_status sdx_adapt_concat_up(struct sdx_rewrite *rx)
{
    if (!sdx_rewrite_attr(rx->node, "axis")) sdx_rewrite_set_int(rx, rx->node, "axis", 1);
    return SDX_OK;
}

/* ---- Split ---- */

enum sdx_status sdx_adapt_split_2_up(struct sdx_rewrite *rx)
{
    struct sdx_str split = sdx_rewrite_input(rx, 1);
    const float *v = NULL;
    int64_t count = 0, sizes[SDX_RANK_MAX];
    if (!split.len) return SDX_OK;
    if (!sdx_rewrite_floats(rx, split, &v, &count) || count > SDX_RANK_MAX)
        return sdx_rewrite_refuse(rx, "input 1 is not a constant, expected one to become attribute "
                                      "split");
    for (int64_t i = 0; i < count; i++) {
        if (!(v[i] >= 0 && v[i] < 1e9f)) return sdx_rewrite_refuse(rx, "a piece has no length");
        sizes[i] = (int64_t)v[i];
    }
    sdx_rewrite_set_ints(rx, rx->node, "split", count, sizes);
    sdx_rewrite_moved(rx, split);
    sdx_rewrite_trim_inputs(rx, 1);
    return SDX_OK;
}

enum sdx_status sdx_adapt_split_18_up(struct sdx_rewrite *rx)
{
    if (!sdx_rewrite_input(rx, 1).len)
        sdx_rewrite_set_int(rx, rx->node, "num_outputs", rx->node->outputs.count);
    return SDX_OK;
}

/* Version 18 lets the last piece be shorter. */
enum sdx_status sdx_adapt_split_18_down(struct sdx_rewrite *rx)
{
    struct sdx_str x = sdx_rewrite_input(rx, 0);
    const int rank = sdx_rewrite_rank(rx, x);
    const int64_t *dims = sdx_rewrite_dims(rx, x), count = rx->node->outputs.count;
    int64_t axis = sdx_rewrite_attr_int(rx->node, "axis", 0);
    sdx_rewrite_remove(rx->node, "num_outputs");
    if (sdx_rewrite_input(rx, 1).len) return SDX_OK;
    if (axis < 0) axis += rank;
    if (count < 1 || rank < 1 || axis < 0 || axis >= rank || dims[axis] < 0)
        return sdx_rewrite_refuse(rx, "the length of the split axis is not known");
    if (dims[axis] % count == 0) return SDX_OK;
    int64_t *sizes = sdx_arena_array(rx->arena, (size_t)count, sizeof *sizes);
    if (!sizes) return SDX_FAIL_MEMORY(rx->cx);
    const int64_t each = (dims[axis] + count - 1) / count;
    for (int64_t i = 0, left = dims[axis]; i < count; i++, left -= sizes[i - 1])
        sizes[i] = left < each ? left : each;
    sdx_rewrite_set_input(rx, 1, sdx_rewrite_const_ints(rx, count, sizes));
    return SDX_OK;
}

/* ---- Pad ---- */

static void rename_attr(struct sdx_rewrite *rx, const char *from, const char *to)
{
    struct sdx_onnx_attr *attr = sdx_rewrite_attr(rx->node, from);
    if (!attr) return;
    const struct sdx_onnx_attr held = *attr;
    sdx_rewrite_remove(rx->node, from);
    sdx_rewrite_set_ints(rx, rx->node, to, held.ints.count, held.ints.at);
}

enum sdx_status sdx_adapt_pad_2_up(struct sdx_rewrite *rx)
{
    rename_attr(rx, "paddings", "pads");
    return SDX_OK;
}

enum sdx_status sdx_adapt_pad_2_down(struct sdx_rewrite *rx)
{
    rename_attr(rx, "pads", "paddings");
    return SDX_OK;
}

/* Numbers at the axes' places in both halves of a list as long as the rank twice; zeros elsewhere.
 */
static void spread_pads(struct sdx_rewrite *rx, int rank, const int64_t *place, int64_t count)
{
    struct sdx_formula f;
    sdx_formula_init(&f, rx, SDX_I64);
    for (int i = 0; i < 2 * rank; i++) {
        const int64_t k = place[i % rank] + (i < rank ? 0 : count);
        if (place[i % rank] >= 0)
            sdx_formula_add(&f, "one = Slice(in1, [%lld], [%lld], [0])", (long long)k,
                            (long long)k + 1);
        else
            sdx_formula_add(&f, "one = [0]");
        sdx_formula_add(&f, i ? "all = Concat(all, one){axis=0}" : "all = one");
    }
    if (rank) sdx_rewrite_set_input(rx, 1, sdx_formula_get(&f, "all"));
}

enum sdx_status sdx_adapt_pad_18_down(struct sdx_rewrite *rx)
{
    const int rank = sdx_rewrite_rank(rx, sdx_rewrite_input(rx, 0));
    const int64_t *axes = NULL, *pads = NULL;
    int64_t count = 0, count_pads = 0, all[2 * SDX_RANK_MAX] = {0}, place[SDX_RANK_MAX];
    struct sdx_str name = sdx_rewrite_input(rx, 3), pads_name = sdx_rewrite_input(rx, 1);
    if (!name.len) return SDX_OK;
    if (rank < 0 || !sdx_rewrite_ints(rx, name, &axes, &count))
        return sdx_rewrite_refuse(rx, "has axes, and they and the rank are not constant");
    const bool constant = sdx_rewrite_ints(rx, pads_name, &pads, &count_pads);
    if (constant && count_pads != 2 * count)
        return sdx_rewrite_refuse(rx, "has %lld pads for %lld axes", (long long)count_pads,
                                  (long long)count);
    memset(place, -1, sizeof place);
    for (int64_t i = 0; i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank)
            return sdx_rewrite_refuse(rx, "axis %lld is out of range for rank %d",
                                      (long long)axes[i], rank);
        place[axis] = i;
        all[axis] = constant ? pads[i] : 0;
        all[rank + axis] = constant ? pads[count + i] : 0;
    }
    sdx_rewrite_moved(rx, name);
    if (constant) {
        sdx_rewrite_moved(rx, pads_name);
        sdx_rewrite_set_input(rx, 1, sdx_rewrite_const_ints(rx, 2 * rank, all));
    } else {
        spread_pads(rx, rank, place, count);
    }
    sdx_rewrite_trim_inputs(rx, 3);
    return SDX_OK;
}

enum sdx_status sdx_adapt_pad_19_down(struct sdx_rewrite *rx)
{
    if (sdx_rewrite_attr_is(rx->node, "mode", "wrap", false))
        return sdx_rewrite_refuse(rx, "mode is wrap, which version 18 has not");
    return SDX_OK;
}

/* ---- Reshape, Tile, TopK, Shape ---- */

enum sdx_status sdx_adapt_reshape_14_down(struct sdx_rewrite *rx)
{
    const int64_t *shape = NULL;
    int64_t count = 0;
    const bool zero = sdx_rewrite_attr_int(rx->node, "allowzero", 0) != 0;
    sdx_rewrite_remove(rx->node, "allowzero");
    if (!zero) return SDX_OK;
    bool harmless = sdx_rewrite_ints(rx, sdx_rewrite_input(rx, 1), &shape, &count);
    for (int64_t i = 0; harmless && i < count; i++)
        harmless = shape[i] != 0;
    return harmless ? SDX_OK
                    : sdx_rewrite_refuse(rx, "allowzero is set, and the shape may hold a 0");
}

/* Before version 6 one axis at a time, by inputs of the type of the data. */
enum sdx_status sdx_adapt_tile_up(struct sdx_rewrite *rx)
{
    const int rank = sdx_rewrite_rank(rx, sdx_rewrite_input(rx, 0));
    const float *tiles = NULL, *axis = NULL;
    int64_t one = 0, other = 0, repeats[SDX_RANK_MAX];
    if (rank < 0 || !sdx_rewrite_floats(rx, sdx_rewrite_input(rx, 1), &tiles, &one) ||
        !sdx_rewrite_floats(rx, sdx_rewrite_input(rx, 2), &axis, &other) || one != 1 ||
        other != 1 || !(tiles[0] >= 0 && tiles[0] < 1e9f))
        return sdx_rewrite_refuse(rx, "tiles, axis and the rank are not all constant");
    for (int i = 0; i < rank; i++)
        repeats[i] = (float)i == axis[0] ? (int64_t)tiles[0] : 1;
    sdx_rewrite_moved(rx, sdx_rewrite_input(rx, 1));
    sdx_rewrite_moved(rx, sdx_rewrite_input(rx, 2));
    sdx_rewrite_set_input(rx, 1, sdx_rewrite_const_ints(rx, rank, repeats));
    sdx_rewrite_trim_inputs(rx, 2);
    return SDX_OK;
}

enum sdx_status sdx_adapt_tile_down(struct sdx_rewrite *rx)
{
    struct sdx_str x = sdx_rewrite_input(rx, 0);
    const int dtype = sdx_rewrite_dtype(rx, x);
    const int64_t *repeats = NULL;
    int64_t count = 0;
    if (!dtype || !sdx_rewrite_ints(rx, sdx_rewrite_input(rx, 1), &repeats, &count))
        return sdx_rewrite_refuse(rx, "the repeats are not constant, or the type is not known");
    for (int64_t i = 0; i < count; i++)
        if (repeats[i] != 1)
            x = sdx_rewrite_out(sdx_rewrite_before(
                rx, "Tile", SDX_NONE, x, sdx_rewrite_const_number(rx, dtype, 0, (double)repeats[i]),
                sdx_rewrite_const_number(rx, dtype, 0, (double)i)));
    sdx_rewrite_moved(rx, sdx_rewrite_input(rx, 1));
    sdx_rewrite_before(rx, "Identity", sdx_rewrite_output(rx, 0), x, SDX_NONE, SDX_NONE);
    rx->drop = true;
    return SDX_OK;
}

enum sdx_status sdx_adapt_topk_11_down(struct sdx_rewrite *rx)
{
    if (!sdx_rewrite_attr_int(rx->node, "largest", 1))
        return sdx_rewrite_refuse(rx, "largest is 0, which version 10 has not");
    sdx_rewrite_remove(rx->node, "largest");
    sdx_rewrite_remove(rx->node, "sorted"); /* sorted does for any order */
    return sdx_adapt_axes_11_down(rx);
}

enum sdx_status sdx_adapt_shape_down(struct sdx_rewrite *rx)
{
    const int64_t start = sdx_rewrite_attr_int(rx->node, "start", 0);
    const int64_t end = sdx_rewrite_attr_int(rx->node, "end", INT64_MAX);
    sdx_rewrite_remove(rx->node, "start");
    sdx_rewrite_remove(rx->node, "end");
    if (start == 0 && end == INT64_MAX) return SDX_OK;
    struct sdx_str starts = sdx_rewrite_const_ints(rx, 1, &start);
    struct sdx_str ends = sdx_rewrite_const_ints(rx, 1, &end);
    struct sdx_str y = sdx_rewrite_take_output(rx, 0);
    sdx_rewrite_set_type(rx, sdx_rewrite_output(rx, 0), NULL);
    sdx_rewrite_after(rx, "Slice", y, sdx_rewrite_output(rx, 0), starts, ends);
    return SDX_OK;
}

/* ---- Upsample and Resize ---- */

enum sdx_status sdx_adapt_upsample_7_up(struct sdx_rewrite *rx)
{
    const struct sdx_onnx_attr *h = sdx_rewrite_attr(rx->node, "height_scale");
    const struct sdx_onnx_attr *w = sdx_rewrite_attr(rx->node, "width_scale");
    if (!h || !w) return sdx_rewrite_refuse(rx, "height_scale or width_scale is missing");
    const float scales[4] = {1, 1, h->f, w->f};
    sdx_rewrite_remove(rx->node, "height_scale");
    sdx_rewrite_remove(rx->node, "width_scale");
    sdx_rewrite_set_floats(rx, rx->node, "scales", 4, scales);
    if (sdx_rewrite_attr_is(rx->node, "mode", "bilinear", false))
        sdx_rewrite_set_str(rx, rx->node, "mode", "linear");
    return SDX_OK;
}

enum sdx_status sdx_adapt_upsample_7_down(struct sdx_rewrite *rx)
{
    const struct sdx_onnx_attr *scales = sdx_rewrite_attr(rx->node, "scales");
    if (!scales || scales->count_floats != 4 || scales->floats[0] != 1 || scales->floats[1] != 1)
        return sdx_rewrite_refuse(rx, "scales are not those of a height and a width");
    const float h = scales->floats[2], w = scales->floats[3];
    sdx_rewrite_remove(rx->node, "scales");
    sdx_rewrite_set_float(rx, rx->node, "height_scale", h);
    sdx_rewrite_set_float(rx, rx->node, "width_scale", w);
    if (sdx_rewrite_attr_is(rx->node, "mode", "linear", false))
        sdx_rewrite_set_str(rx, rx->node, "mode", "bilinear");
    return SDX_OK;
}

enum sdx_status sdx_adapt_upsample_10_up(struct sdx_rewrite *rx)
{
    rx->node->op_type = SDX_STR("Resize");
    return SDX_OK;
}

enum sdx_status sdx_adapt_resize_10_down(struct sdx_rewrite *rx)
{
    const float *v = NULL;
    int64_t count = 0;
    bool grows = sdx_rewrite_floats(rx, sdx_rewrite_input(rx, 1), &v, &count);
    for (int64_t i = 0; grows && i < count; i++)
        grows = v[i] >= 1;
    if (!grows)
        return sdx_rewrite_refuse(rx, "the scales are not constants of at least 1, which Upsample "
                                      "expects");
    rx->node->op_type = SDX_STR("Upsample");
    return SDX_OK;
}

static struct sdx_str no_floats(struct sdx_rewrite *rx)
{
    return sdx_rewrite_const(rx, SDX_F32, 1, 0, "");
}

/* Version 10 counts pixels from their corners and takes the one below. */
enum sdx_status sdx_adapt_resize_11_up(struct sdx_rewrite *rx)
{
    struct sdx_str scales = sdx_rewrite_input(rx, 1);
    sdx_rewrite_set_input(rx, 1, no_floats(rx));
    sdx_rewrite_set_input(rx, 2, scales);
    sdx_rewrite_set_str(rx, rx->node, "coordinate_transformation_mode", "asymmetric");
    if (sdx_rewrite_attr_is(rx->node, "mode", "nearest", true))
        sdx_rewrite_set_str(rx, rx->node, "nearest_mode", "floor");
    return SDX_OK;
}

enum sdx_status sdx_adapt_resize_11_down(struct sdx_rewrite *rx)
{
    struct sdx_str roi = sdx_rewrite_input(rx, 1), scales = sdx_rewrite_input(rx, 2);
    const float *v = NULL;
    int64_t count = 0;
    const bool nearest = sdx_rewrite_attr_is(rx->node, "mode", "nearest", true);
    const bool linear = sdx_rewrite_attr_is(rx->node, "mode", "linear", false);
    if (sdx_rewrite_input(rx, 3).len || !scales.len ||
        (sdx_rewrite_floats(rx, scales, &v, &count) && count == 0))
        return sdx_rewrite_refuse(rx, "is by sizes, expected scales");
    if (!sdx_rewrite_attr_is(rx->node, "coordinate_transformation_mode", "asymmetric", false))
        return sdx_rewrite_refuse(rx, "coordinate_transformation_mode is not asymmetric");
    if (!linear && !(nearest && sdx_rewrite_attr_is(rx->node, "nearest_mode", "floor", false)))
        return sdx_rewrite_refuse(rx, "mode is neither linear nor nearest of nearest_mode floor");
    if (sdx_rewrite_attr_int(rx->node, "exclude_outside", 0))
        return sdx_rewrite_refuse(rx, "exclude_outside is set");
    static const char *const gone[] = {"coordinate_transformation_mode", "nearest_mode",
                                       "cubic_coeff_a", "exclude_outside", "extrapolation_value"};
    for (int i = 0; i < SDX_COUNT_OF(gone); i++)
        sdx_rewrite_remove(rx->node, gone[i]);
    sdx_rewrite_moved(rx, roi);
    sdx_rewrite_set_input(rx, 1, scales);
    sdx_rewrite_trim_inputs(rx, 2);
    return SDX_OK;
}

/* Versions 11 and 12 want roi and scales, if only empty ones. */
enum sdx_status sdx_adapt_resize_13_down(struct sdx_rewrite *rx)
{
    for (int i = 1; i < 3; i++)
        if (!sdx_rewrite_input(rx, i).len) sdx_rewrite_set_input(rx, i, no_floats(rx));
    return SDX_OK;
}

enum sdx_status sdx_adapt_resize_18_down(struct sdx_rewrite *rx)
{
    if (sdx_rewrite_attr(rx->node, "axes"))
        return sdx_rewrite_refuse(rx, "has axes, which version 17 has not");
    return SDX_OK;
}

enum sdx_status sdx_adapt_resize_19_down(struct sdx_rewrite *rx)
{
    if (sdx_rewrite_attr_is(rx->node, "coordinate_transformation_mode", "half_pixel_symmetric",
                            false))
        return sdx_rewrite_refuse(rx, "coordinate_transformation_mode is half_pixel_symmetric, "
                                      "which version 18 has not");
    return SDX_OK;
}

/* ---- Scatter, RoiAlign, GridSample ---- */

enum sdx_status sdx_adapt_scatter_up(struct sdx_rewrite *rx)
{
    rx->node->op_type = SDX_STR("ScatterElements");
    return SDX_OK;
}

enum sdx_status sdx_adapt_scatter_down(struct sdx_rewrite *rx)
{
    rx->node->op_type = SDX_STR("Scatter");
    return sdx_adapt_axes_11_down(rx);
}

enum sdx_status sdx_adapt_scatter_18_down(struct sdx_rewrite *rx)
{
    if (sdx_rewrite_attr_is(rx->node, "reduction", "min", false) ||
        sdx_rewrite_attr_is(rx->node, "reduction", "max", false))
        return sdx_rewrite_refuse(rx, "reduction is min or max, which version 17 has not");
    return SDX_OK;
}

enum sdx_status sdx_adapt_roi_align_up(struct sdx_rewrite *rx)
{
    sdx_rewrite_set_str(rx, rx->node, "coordinate_transformation_mode", "output_half_pixel");
    return SDX_OK;
}

enum sdx_status sdx_adapt_roi_align_down(struct sdx_rewrite *rx)
{
    if (!sdx_rewrite_attr_is(rx->node, "coordinate_transformation_mode", "output_half_pixel",
                             false))
        return sdx_rewrite_refuse(rx, "coordinate_transformation_mode is not output_half_pixel");
    sdx_rewrite_remove(rx->node, "coordinate_transformation_mode");
    return SDX_OK;
}

static void rename_mode(struct sdx_rewrite *rx, const char *from, const char *to)
{
    if (sdx_rewrite_attr_is(rx->node, "mode", from, false))
        sdx_rewrite_set_str(rx, rx->node, "mode", to);
}

enum sdx_status sdx_adapt_grid_sample_up(struct sdx_rewrite *rx)
{
    rename_mode(rx, "bilinear", "linear");
    rename_mode(rx, "bicubic", "cubic");
    return SDX_OK;
}

enum sdx_status sdx_adapt_grid_sample_down(struct sdx_rewrite *rx)
{
    const int rank = sdx_rewrite_rank(rx, sdx_rewrite_input(rx, 0));
    if (rank >= 0 && rank != 4)
        return sdx_rewrite_refuse(rx, "input 0 has rank %d, expected 4", rank);
    rename_mode(rx, "linear", "bilinear");
    rename_mode(rx, "cubic", "bicubic");
    return SDX_OK;
}

/* ---- Constant ---- */

enum sdx_status sdx_adapt_constant_12_down(struct sdx_rewrite *rx)
{
    struct sdx_str name = sdx_rewrite_output(rx, 0);
    static const char *const forms[] = {"value_int",    "value_ints",   "value_float",
                                        "value_floats", "value_string", "value_strings"};
    for (int i = 0; i < SDX_COUNT_OF(forms); i++) {
        const struct sdx_onnx_attr *attr = sdx_rewrite_attr(rx->node, forms[i]);
        if (!attr) continue;
        struct sdx_rewrite_value *value = sdx_rewrite_value(rx, rx->scope, name);
        if (!value || !value->constant || attr->ref.len)
            return sdx_rewrite_refuse(rx, "attribute %s cannot be written as a tensor", forms[i]);
        struct sdx_onnx_tensor *t = (struct sdx_onnx_tensor *)(uintptr_t)value->constant;
        sdx_rewrite_remove(rx->node, forms[i]);
        struct sdx_onnx_attr *to = sdx_rewrite_set(rx, rx->node, "value", SDX_ATTR_TENSOR);
        if (to) to->t = t;
        return SDX_OK;
    }
    return SDX_OK;
}

enum sdx_status sdx_adapt_constant_11_down(struct sdx_rewrite *rx)
{
    if (sdx_rewrite_attr(rx->node, "sparse_value"))
        return sdx_rewrite_refuse(rx, "is sparse, which version 10 has not");
    return SDX_OK;
}

/* Before version 9 floating types only: others become initializers. */
enum sdx_status sdx_adapt_constant_9_down(struct sdx_rewrite *rx)
{
    const struct sdx_onnx_attr *attr = sdx_rewrite_attr(rx->node, "value");
    const int dtype = attr && attr->t ? attr->t->data_type : SDX_F32;
    if (dtype == SDX_F32 || dtype == SDX_F16 || dtype == SDX_F64 || rx->scope->function)
        return SDX_OK;
    struct sdx_onnx_tensor *t = sdx_arena_copy(rx->arena, attr->t, sizeof *t);
    if (!t) return SDX_FAIL_MEMORY(rx->cx);
    t->name = sdx_rewrite_output(rx, 0);
    sdx_rewrite_add_initializer(rx, rx->scope->graph, t);
    rx->drop = true;
    return SDX_OK;
}
