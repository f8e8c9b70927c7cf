/* SPDX-License-Identifier: Apache-2.0
 * TreeEnsemble of ai.onnx.ml 5 as the TreeEnsembleRegressor that was before it: each tree is walked
 * from its root, so that branches and leaves that trees share are written once a use. */
#include "convert/adapt.h"
#include "convert/formula.h"
#include "ops/ml_names.h"

enum { SHARING_MAX = 4 }; /* uses of a node on average, so that what is shared stays in bounds */

struct walk {
    struct sdx_rewrite *rx;
    int64_t count, count_leaves, count_roots;
    const int64_t *features, *yes, *yes_leaf, *no, *no_leaf, *tracks, *roots, *targets;
    const uint8_t *modes;
    const float *splits, *weights;
    /* what is written */
    int64_t made, made_leaves, most;
    int64_t *to_tree, *to_id, *to_feature, *to_yes, *to_no, *to_tracks;
    float *to_value, *to_weight;
    struct sdx_str *to_mode;
    int64_t *leaf_tree, *leaf_id, *leaf_target;
};

static const int64_t *ints_of(struct walk *w, const char *name, int64_t count, bool *ok)
{
    const struct sdx_onnx_attr *attr = sdx_rewrite_attr(w->rx->node, name);
    if (!attr || attr->ints.count != count) *ok = false;
    return attr ? attr->ints.at : NULL;
}

/* The content of an attribute that is a tensor of this type. */
static const void *tensor_of(struct walk *w, const char *name, int dtype, int64_t count, bool *ok)
{
    const struct sdx_onnx_attr *attr = sdx_rewrite_attr(w->rx->node, name);
    const void *data = NULL;
    const struct sdx_onnx_tensor *t = attr ? attr->t : NULL;
    if (!t || t->data_type != dtype || t->dims.count != 1 || t->dims.at[0] != count ||
        sdx_onnx_tensor_data(w->rx->cx, w->rx->arena, w->rx->external, t, &data) != SDX_OK) {
        *ok = false;
        return NULL;
    }
    size_t bytes = 0;
    const void *aligned = sdx_dtype_bytes(dtype, count, &bytes)
                              ? sdx_arena_copy(w->rx->arena, data ? data : "", bytes)
                              : NULL;
    *ok &= aligned != NULL;
    return aligned;
}

static enum sdx_status read_trees(struct walk *w)
{
    const struct sdx_onnx_attr *features = sdx_rewrite_attr(w->rx->node, "nodes_featureids");
    const struct sdx_onnx_attr *targets = sdx_rewrite_attr(w->rx->node, "leaf_targetids");
    const struct sdx_onnx_attr *roots = sdx_rewrite_attr(w->rx->node, "tree_roots");
    bool ok = features && targets && roots;
    w->count = features ? features->ints.count : 0;
    w->count_leaves = targets ? targets->ints.count : 0;
    w->count_roots = roots ? roots->ints.count : 0;
    w->features = ints_of(w, "nodes_featureids", w->count, &ok);
    w->targets = ints_of(w, "leaf_targetids", w->count_leaves, &ok);
    w->roots = ints_of(w, "tree_roots", w->count_roots, &ok);
    w->yes = ints_of(w, "nodes_truenodeids", w->count, &ok);
    w->yes_leaf = ints_of(w, "nodes_trueleafs", w->count, &ok);
    w->no = ints_of(w, "nodes_falsenodeids", w->count, &ok);
    w->no_leaf = ints_of(w, "nodes_falseleafs", w->count, &ok);
    if (sdx_rewrite_attr(w->rx->node, "nodes_missing_value_tracks_true"))
        w->tracks = ints_of(w, "nodes_missing_value_tracks_true", w->count, &ok);
    w->modes = tensor_of(w, "nodes_modes", SDX_U8, w->count, &ok);
    w->splits = tensor_of(w, "nodes_splits", SDX_F32, w->count, &ok);
    w->weights = tensor_of(w, "leaf_weights", SDX_F32, w->count_leaves, &ok);
    if (!ok || w->count > INT32_MAX / 8 || w->count_leaves > INT32_MAX / 8)
        return sdx_rewrite_refuse(w->rx, "its arrays are not float or not of one length");
    for (int64_t i = 0; i < w->count; i++)
        if (w->modes[i] >= SDX_FOREST_MEMBER)
            return sdx_rewrite_refuse(w->rx, "tests membership, which older versions have not");
    return SDX_OK;
}

static bool allocate(struct walk *w)
{
    int64_t **const lists[] = {&w->to_tree,   &w->to_id,   &w->to_feature,
                               &w->to_yes,    &w->to_no,   &w->to_tracks,
                               &w->leaf_tree, &w->leaf_id, &w->leaf_target};
    bool ok = true;
    w->most = SHARING_MAX * (w->count + w->count_leaves) + 3 * w->count_roots;
    const size_t most = (size_t)w->most + 1;
    for (int i = 0; i < SDX_COUNT_OF(lists); i++)
        ok &= (*lists[i] = sdx_arena_array(w->rx->arena, most, sizeof **lists[i])) != NULL;
    w->to_value = sdx_arena_array(w->rx->arena, most, sizeof *w->to_value);
    w->to_weight = sdx_arena_array(w->rx->arena, most, sizeof *w->to_weight);
    w->to_mode = sdx_arena_array(w->rx->arena, most, sizeof *w->to_mode);
    return ok && w->to_value && w->to_weight && w->to_mode;
}

/* A new entry of the tree for a node or leaf; -1: out of range, or too many. from[] keeps the node
 * whose children are to come (-1: a leaf). */
static int64_t put(struct walk *w, int64_t tree, int64_t first, int64_t at, bool leaf,
                   int64_t *from)
{
    const int64_t i = w->made;
    if (i >= w->most || at < 0 || at >= (leaf ? w->count_leaves : w->count)) return -1;
    w->made++;
    w->to_tree[i] = tree;
    w->to_id[i] = i - first;
    w->to_yes[i] = w->to_no[i] = 0;
    w->to_feature[i] = leaf ? 0 : w->features[at];
    w->to_tracks[i] = leaf || !w->tracks ? 0 : w->tracks[at];
    w->to_value[i] = leaf ? 0 : w->splits[at];
    w->to_mode[i] = sdx_str(sdx_forest_mode_names[leaf ? SDX_FOREST_LEAF : w->modes[at]]);
    from[i] = leaf ? -1 : at;
    if (!leaf) return i - first;
    w->leaf_tree[w->made_leaves] = tree;
    w->leaf_id[w->made_leaves] = i - first;
    w->leaf_target[w->made_leaves] = w->targets[at];
    w->to_weight[w->made_leaves++] = w->weights[at];
    return i - first;
}

/* Entries are put level by level: the list itself is the queue. */
static bool walk_tree(struct walk *w, int64_t tree, int64_t *from)
{
    const int64_t first = w->made;
    if (put(w, tree, first, w->roots[tree], false, from) < 0) return false;
    for (int64_t i = first; i < w->made; i++) {
        const int64_t at = from[i];
        if (at < 0) continue;
        w->to_yes[i] = put(w, tree, first, w->yes[at], w->yes_leaf[at] != 0, from);
        w->to_no[i] = put(w, tree, first, w->no[at], w->no_leaf[at] != 0, from);
        if (w->to_yes[i] < 0 || w->to_no[i] < 0) return false;
    }
    return true;
}

static void write_node(struct walk *w)
{
    struct sdx_rewrite *rx = w->rx;
    const struct {
        const char *name;
        int64_t count, *v;
    } lists[] = {{"nodes_treeids", w->made, w->to_tree},
                 {"nodes_nodeids", w->made, w->to_id},
                 {"nodes_featureids", w->made, w->to_feature},
                 {"nodes_truenodeids", w->made, w->to_yes},
                 {"nodes_falsenodeids", w->made, w->to_no},
                 {"nodes_missing_value_tracks_true", w->made, w->to_tracks},
                 {"target_treeids", w->made_leaves, w->leaf_tree},
                 {"target_nodeids", w->made_leaves, w->leaf_id},
                 {"target_ids", w->made_leaves, w->leaf_target}};
    const int64_t targets = sdx_rewrite_attr_int(rx->node, "n_targets", 1);
    const int64_t aggregate = sdx_rewrite_attr_int(rx->node, "aggregate_function", SDX_ML_SUM);
    const int64_t post = sdx_rewrite_attr_int(rx->node, "post_transform", SDX_ML_NONE);
    rx->node->op_type = SDX_STR("TreeEnsembleRegressor");
    rx->node->attrs = (struct sdx_onnx_attrs){NULL, 0};
    for (int i = 0; i < SDX_COUNT_OF(lists); i++)
        sdx_rewrite_set_ints(rx, rx->node, lists[i].name, lists[i].count, lists[i].v);
    sdx_rewrite_set_floats(rx, rx->node, "nodes_values", w->made, w->to_value);
    sdx_rewrite_set_floats(rx, rx->node, "target_weights", w->made_leaves, w->to_weight);
    struct sdx_onnx_attr *modes = sdx_rewrite_set(rx, rx->node, "nodes_modes", SDX_ATTR_STRINGS);
    if (modes) modes->strings = (struct sdx_onnx_strings){w->to_mode, (int32_t)w->made};
    sdx_rewrite_set_int(rx, rx->node, "n_targets", targets);
    sdx_rewrite_set_str(rx, rx->node, "aggregate_function", sdx_ml_aggregate_names[aggregate]);
    sdx_rewrite_set_str(rx, rx->node, "post_transform", sdx_ml_post_names[post]);
}

enum sdx_status sdx_adapt_trees_down(struct sdx_rewrite *rx)
{
    struct walk w = {.rx = rx};
    const int64_t aggregate = sdx_rewrite_attr_int(rx->node, "aggregate_function", SDX_ML_SUM);
    const int64_t post = sdx_rewrite_attr_int(rx->node, "post_transform", SDX_ML_NONE);
    SDX_TRY(sdx_adapt_trees_need_floats(rx));
    if (aggregate < 0 || aggregate >= SDX_ML_AGGREGATES || post < 0 || post >= SDX_ML_POSTS)
        return sdx_rewrite_refuse(rx, "aggregate_function is %lld, post_transform %lld",
                                  (long long)aggregate, (long long)post);
    SDX_TRY(read_trees(&w));
    if (!allocate(&w)) return SDX_FAIL_MEMORY(rx->cx);
    int64_t *from = sdx_arena_array(rx->arena, (size_t)w.most + 1, sizeof *from);
    if (!from) return SDX_FAIL_MEMORY(rx->cx);
    for (int64_t t = 0; t < w.count_roots; t++)
        if (!walk_tree(&w, t, from))
            return sdx_rewrite_refuse(rx, "its arrays do not make trees, or share too much");
    write_node(&w);
    return rx->status;
}
