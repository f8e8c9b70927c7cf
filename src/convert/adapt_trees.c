/* SPDX-License-Identifier: Apache-2.0
 * Trees of ai.onnx.ml: TreeEnsembleClassifier and -Regressor name nodes by tree and number and give
 * leaves any number of weights; TreeEnsemble of version 5 has arrays of branches and of leaves with
 * one weight each. A tree whose leaves have several weights becomes as many trees, a base value a
 * tree of one leaf; a classifier gets its labels by nodes of the standard. */
#include "convert/adapt.h"
#include "convert/convert_model.h"
#include "convert/formula.h"
#include "ops/ml_names.h"

enum { OPSET_MIN = 12 };

/* ---- lists of the old operators ---- */

struct lists {
    struct sdx_rewrite *rx;
    int64_t count, count_weights, count_base;
    const int64_t *trees, *ids, *features, *yes, *no, *tracks; /* tracks: NULL: none */
    const int64_t *leaf_trees, *leaf_ids, *targets;
    const struct sdx_str *modes;
    const float *values, *weights, *base;
    int32_t *head, *next; /* weights of a node: a chain; -1: the end */
    int32_t *same;        /* the next node of the tree; -1: none */
    int32_t *roots, count_roots;
    struct sdx_map map; /* (tree, node) to entry */
    int64_t (*keys)[2];
};

static const int64_t *ints_of(struct lists *l, const char *name, int64_t count, bool *ok)
{
    const struct sdx_onnx_attr *attr = sdx_rewrite_attr(l->rx->node, name);
    if (!attr || attr->ints.count != count) *ok = false;
    return attr ? attr->ints.at : NULL;
}

static const float *floats_of(struct lists *l, const char *name, int64_t *count)
{
    const struct sdx_onnx_attr *attr = sdx_rewrite_attr(l->rx->node, name);
    *count = attr ? attr->count_floats : 0;
    return attr ? attr->floats : NULL;
}

static int32_t find(const struct lists *l, int64_t tree, int64_t id)
{
    const int64_t key[2] = {tree, id};
    return sdx_map_get(&l->map, (struct sdx_str){(const char *)key, sizeof key});
}

static bool is_leaf(const struct lists *l, int64_t i)
{
    return sdx_str_is(l->modes[i], "LEAF");
}

/* The first entry of a tree is its root; its entries are chained. */
static bool chain_trees(struct lists *l, int32_t *last)
{
    struct sdx_map seen;
    bool ok = true;
    sdx_map_init(&seen, l->rx->cx->mem);
    for (int32_t i = 0; i < l->count && ok; i++) {
        const struct sdx_str key = {(const char *)&l->trees[i], sizeof l->trees[i]};
        const struct sdx_str pair = {(const char *)l->keys[i], sizeof l->keys[i]};
        int32_t tree = sdx_map_get(&seen, key);
        l->keys[i][0] = l->trees[i];
        l->keys[i][1] = l->ids[i];
        l->same[i] = -1;
        l->head[i] = -1;
        ok = sdx_map_get(&l->map, pair) < 0 && sdx_map_put(&l->map, pair, i);
        if (tree >= 0) {
            l->same[last[tree]] = i;
        } else {
            tree = l->count_roots++;
            l->roots[tree] = i;
            ok = ok && sdx_map_put(&seen, key, tree);
        }
        last[tree] = i;
    }
    sdx_map_deinit(&seen);
    return ok;
}

static bool chain_weights(struct lists *l)
{
    for (int64_t w = l->count_weights - 1; w >= 0; w--) {
        const int32_t at = find(l, l->leaf_trees[w], l->leaf_ids[w]);
        if (at < 0 || !is_leaf(l, at) || l->targets[w] < 0) return false;
        l->next[w] = l->head[at];
        l->head[at] = (int32_t)w;
    }
    return true;
}

static bool modes_are_known(const struct lists *l)
{
    for (int64_t i = 0; i < l->count; i++) {
        const int mode = sdx_ml_find_name(sdx_forest_mode_names, SDX_FOREST_MODES, l->modes[i]);
        if (mode < 0 || (!is_leaf(l, i) && (find(l, l->trees[i], l->yes[i]) < 0 ||
                                            find(l, l->trees[i], l->no[i]) < 0)))
            return false;
    }
    return true;
}

/* kind: "class" or "target". */
static enum sdx_status read_lists(struct lists *l, const char *kind)
{
    static const char *const tensors[] = {"nodes_values_as_tensor", "base_values_as_tensor",
                                          "class_weights_as_tensor", "target_weights_as_tensor"};
    struct sdx_rewrite *rx = l->rx;
    struct sdx_arena *arena = rx->arena;
    const struct sdx_onnx_attr *modes = sdx_rewrite_attr(rx->node, "nodes_modes");
    const char *names[4] = {"_weights", "_treeids", "_nodeids", "_ids"};
    for (int i = 0; i < SDX_COUNT_OF(tensors); i++)
        if (sdx_rewrite_attr(rx->node, tensors[i]))
            return sdx_rewrite_refuse(rx, "%s: numbers in double have no form in float",
                                      tensors[i]);
    for (int i = 0; i < SDX_COUNT_OF(names); i++)
        if (!(names[i] = sdx_arena_printf(arena, "%s%s", kind, names[i])))
            return SDX_FAIL_MEMORY(rx->cx);
    l->values = floats_of(l, "nodes_values", &l->count);
    l->weights = floats_of(l, names[0], &l->count_weights);
    l->base = floats_of(l, "base_values", &l->count_base);
    bool ok = modes && modes->strings.count == l->count && l->count > 0 &&
              l->count < INT32_MAX / 8 && l->count_weights < INT32_MAX / 8;
    l->modes = modes ? modes->strings.at : NULL;
    l->trees = ints_of(l, "nodes_treeids", l->count, &ok);
    l->ids = ints_of(l, "nodes_nodeids", l->count, &ok);
    l->features = ints_of(l, "nodes_featureids", l->count, &ok);
    l->yes = ints_of(l, "nodes_truenodeids", l->count, &ok);
    l->no = ints_of(l, "nodes_falsenodeids", l->count, &ok);
    if (sdx_rewrite_attr(rx->node, "nodes_missing_value_tracks_true"))
        l->tracks = ints_of(l, "nodes_missing_value_tracks_true", l->count, &ok);
    l->leaf_trees = ints_of(l, names[1], l->count_weights, &ok);
    l->leaf_ids = ints_of(l, names[2], l->count_weights, &ok);
    l->targets = ints_of(l, names[3], l->count_weights, &ok);
    if (!ok) return sdx_rewrite_refuse(rx, "the lists of its trees are not of one length");
    const size_t count = (size_t)l->count;
    l->head = sdx_arena_array(arena, count, sizeof *l->head);
    l->same = sdx_arena_array(arena, count, sizeof *l->same);
    l->roots = sdx_arena_array(arena, count, sizeof *l->roots);
    l->keys = sdx_arena_array(arena, count, sizeof *l->keys);
    l->next = sdx_arena_array(arena, (size_t)l->count_weights + 1, sizeof *l->next);
    int32_t *last = sdx_arena_array(arena, count, sizeof *last);
    if (!l->head || !l->same || !l->roots || !l->keys || !l->next || !last)
        return SDX_FAIL_MEMORY(rx->cx);
    if (!chain_trees(l, last) || !chain_weights(l) || !modes_are_known(l))
        return sdx_rewrite_refuse(rx, "its nodes do not make trees");
    return SDX_OK;
}

/* ---- arrays of the new operator ---- */

struct arrays {
    int64_t count, count_leaves, count_roots;
    int64_t *features, *yes, *yes_leaf, *no, *no_leaf, *tracks, *roots, *targets;
    uint8_t *modes;
    float *splits, *weights;
};

static bool allocate(struct sdx_arena *arena, struct arrays *a, size_t nodes, size_t leaves)
{
    int64_t **const lists[] = {&a->features, &a->yes,    &a->yes_leaf, &a->no,
                               &a->no_leaf,  &a->tracks, &a->roots};
    bool ok = true;
    for (int i = 0; i < SDX_COUNT_OF(lists); i++)
        ok &= (*lists[i] = sdx_arena_array(arena, nodes, sizeof **lists[i])) != NULL;
    a->targets = sdx_arena_array(arena, leaves, sizeof *a->targets);
    a->modes = sdx_arena_array(arena, nodes, sizeof *a->modes);
    a->splits = sdx_arena_array(arena, nodes, sizeof *a->splits);
    a->weights = sdx_arena_array(arena, leaves, sizeof *a->weights);
    return ok && a->targets && a->modes && a->splits && a->weights;
}

static void add_leaf(struct arrays *a, int64_t target, float weight)
{
    a->targets[a->count_leaves] = target;
    a->weights[a->count_leaves++] = weight;
}

/* A tree of one leaf is a branch whose two sides are that leaf. */
static void add_only_leaf(struct arrays *a, int64_t leaf)
{
    const int64_t i = a->count++;
    a->features[i] = a->modes[i] = 0;
    a->splits[i] = 0;
    a->tracks[i] = 0;
    a->yes[i] = a->no[i] = leaf;
    a->yes_leaf[i] = a->no_leaf[i] = 1;
    a->roots[a->count_roots++] = i;
}

/* The weight of turn `turn` of a leaf; -1: it has fewer. */
static int32_t weight_of(const struct lists *l, int32_t node, int32_t turn)
{
    int32_t w = l->head[node];
    while (w >= 0 && turn-- > 0)
        w = l->next[w];
    return w;
}

/* The tree with each leaf's weight of turn `turn`. place: of each entry, in its array. */
static void add_tree(struct lists *l, struct arrays *a, int32_t root, int32_t turn, int64_t *place,
                     bool one_target)
{
    for (int32_t i = root, branches = 0; i >= 0; i = l->same[i]) {
        place[i] = is_leaf(l, i) ? a->count_leaves : a->count + branches++;
        if (!is_leaf(l, i)) continue;
        const int32_t w = weight_of(l, i, turn);
        add_leaf(a, w < 0 || one_target ? 0 : l->targets[w], w < 0 ? 0 : l->weights[w]);
    }
    if (is_leaf(l, root)) {
        add_only_leaf(a, place[root]);
        return;
    }
    a->roots[a->count_roots++] = place[root];
    for (int32_t i = root; i >= 0; i = l->same[i]) {
        if (is_leaf(l, i)) continue;
        const int64_t at = a->count++;
        const int32_t yes = find(l, l->trees[i], l->yes[i]), no = find(l, l->trees[i], l->no[i]);
        a->modes[at] =
            (uint8_t)sdx_ml_find_name(sdx_forest_mode_names, SDX_FOREST_MODES, l->modes[i]);
        a->features[at] = l->features[i];
        a->splits[at] = l->values[i];
        a->tracks[at] = l->tracks ? l->tracks[i] : 0;
        a->yes[at] = place[yes];
        a->no[at] = place[no];
        a->yes_leaf[at] = is_leaf(l, yes);
        a->no_leaf[at] = is_leaf(l, no);
    }
}

/* one_target: all weights are of target 0. */
static enum sdx_status build(struct lists *l, struct arrays *a, int64_t targets, int aggregate,
                             bool one_target)
{
    struct sdx_rewrite *rx = l->rx;
    int64_t most = 0, nodes = l->count_base + targets;
    bool has_base = false, has_bare = false;
    int64_t *place = sdx_arena_array(rx->arena, (size_t)l->count, sizeof *place);
    for (int64_t b = 0; b < l->count_base; b++)
        has_base |= l->base[b] != 0;
    for (int32_t t = 0; t < l->count_roots; t++) {
        int64_t turns = 1, entries = 0;
        for (int32_t i = l->roots[t]; i >= 0; i = l->same[i], entries++) {
            int64_t own = 0;
            for (int32_t w = l->head[i]; w >= 0; w = l->next[w])
                own++;
            turns = own > turns ? own : turns;
            has_bare |= is_leaf(l, i) && !own;
        }
        most = turns > most ? turns : most;
        nodes += turns * entries;
    }
    if (aggregate != SDX_ML_SUM && (has_base || has_bare || most > 1))
        return sdx_rewrite_refuse(rx,
                                  "%s of leaves without one weight each, or of base values, has "
                                  "no form in version 5",
                                  sdx_ml_aggregate_names[aggregate]);
    if (nodes > INT32_MAX / 8 || (has_base && l->count_base != 1 && l->count_base != targets))
        return sdx_rewrite_refuse(rx, "%lld base values for %lld targets", (long long)l->count_base,
                                  (long long)targets);
    if (!place || !allocate(rx->arena, a, (size_t)nodes, (size_t)nodes))
        return SDX_FAIL_MEMORY(rx->cx);
    for (int32_t t = 0; t < l->count_roots; t++) {
        int32_t turns = 1;
        for (int32_t i = l->roots[t]; i >= 0; i = l->same[i])
            while (weight_of(l, i, turns) >= 0)
                turns++;
        for (int32_t turn = 0; turn < turns; turn++)
            add_tree(l, a, l->roots[t], turn, place, one_target);
    }
    for (int64_t t = 0; has_base && t < targets; t++) {
        add_leaf(a, t, l->base[l->count_base > 1 ? t : 0]);
        add_only_leaf(a, a->count_leaves - 1);
    }
    return SDX_OK;
}

static void set_tensor(struct sdx_rewrite *rx, struct sdx_onnx_node *node, const char *name,
                       int dtype, int64_t count, const void *data)
{
    struct sdx_onnx_tensor *t = sdx_arena_alloc(rx->arena, sizeof *t);
    int64_t *dims = sdx_arena_copy(rx->arena, &count, sizeof count);
    struct sdx_onnx_attr *attr = sdx_rewrite_set(rx, node, name, SDX_ATTR_TENSOR);
    size_t bytes = 0;
    if (!t || !dims || !attr || !sdx_dtype_bytes(dtype, count, &bytes)) {
        if (rx->status == SDX_OK) rx->status = SDX_FAIL_MEMORY(rx->cx);
        return;
    }
    *t = (struct sdx_onnx_tensor){.data_type = dtype,
                                  .has_data_type = true,
                                  .dims = {dims, 1},
                                  .has_raw = true,
                                  .raw = {data, bytes}};
    attr->t = t;
}

/* The node TreeEnsemble; its output. */
static struct sdx_str add_ensemble(struct sdx_rewrite *rx, const struct arrays *a,
                                   struct sdx_str output, int64_t targets, int aggregate, int post)
{
    struct sdx_onnx_node *node = sdx_rewrite_before(rx, "TreeEnsemble", output,
                                                    sdx_rewrite_input(rx, 0), SDX_NONE, SDX_NONE);
    const struct {
        const char *name;
        int64_t count, *v;
    } lists[] = {{"nodes_featureids", a->count, a->features},
                 {"nodes_truenodeids", a->count, a->yes},
                 {"nodes_trueleafs", a->count, a->yes_leaf},
                 {"nodes_falsenodeids", a->count, a->no},
                 {"nodes_falseleafs", a->count, a->no_leaf},
                 {"nodes_missing_value_tracks_true", a->count, a->tracks},
                 {"tree_roots", a->count_roots, a->roots},
                 {"leaf_targetids", a->count_leaves, a->targets}};
    node->domain = rx->domain;
    for (int i = 0; i < SDX_COUNT_OF(lists); i++)
        sdx_rewrite_set_ints(rx, node, lists[i].name, lists[i].count, lists[i].v);
    set_tensor(rx, node, "nodes_modes", SDX_U8, a->count, a->modes);
    set_tensor(rx, node, "nodes_splits", SDX_F32, a->count, a->splits);
    set_tensor(rx, node, "leaf_weights", SDX_F32, a->count_leaves, a->weights);
    sdx_rewrite_set_int(rx, node, "n_targets", targets);
    sdx_rewrite_set_int(rx, node, "aggregate_function", aggregate);
    sdx_rewrite_set_int(rx, node, "post_transform", post);
    return sdx_rewrite_out(node);
}

/* ---- up ---- */

static enum sdx_status index_of(struct sdx_rewrite *rx, const char *attr, const char *const *names,
                                int count, int fallback, int *out)
{
    *out = fallback;
    if (!sdx_rewrite_attr(rx->node, attr)) return SDX_OK;
    for (*out = 0; *out < count; ++*out)
        if (sdx_rewrite_attr_is(rx->node, attr, names[*out], false)) return SDX_OK;
    return sdx_rewrite_refuse(rx, "%s is not one that the standard knows", attr);
}

enum sdx_status sdx_adapt_trees_need_floats(struct sdx_rewrite *rx)
{
    if (sdx_rewrite_dtype(rx, sdx_rewrite_input(rx, 0)) == SDX_F32) return SDX_OK;
    return sdx_rewrite_refuse(rx,
                              "input 0 is not known to be float, as the other version's result");
}

static enum sdx_status regressor_up(struct lists *l)
{
    struct sdx_rewrite *rx = l->rx;
    struct arrays a = {0};
    int aggregate, post;
    SDX_TRY(sdx_adapt_trees_need_floats(rx));
    SDX_TRY(index_of(rx, "aggregate_function", sdx_ml_aggregate_names, SDX_ML_AGGREGATES,
                     SDX_ML_SUM, &aggregate));
    SDX_TRY(index_of(rx, "post_transform", sdx_ml_post_names, SDX_ML_POSTS, SDX_ML_NONE, &post));
    SDX_TRY(read_lists(l, "target"));
    int64_t targets = sdx_rewrite_attr_int(rx->node, "n_targets", 0);
    for (int64_t w = 0; w < l->count_weights; w++)
        if (l->targets[w] >= targets) targets = l->targets[w] + 1;
    if (targets > INT32_MAX / 8) return sdx_rewrite_refuse(rx, "a target id is out of range");
    SDX_TRY(build(l, &a, targets, aggregate, false));
    add_ensemble(rx, &a, sdx_rewrite_output(rx, 0), targets, aggregate, post);
    rx->drop = true;
    return SDX_OK;
}

/* The labels as a constant of the standard. */
static struct sdx_str add_labels(struct sdx_rewrite *rx, int64_t *count)
{
    const struct sdx_onnx_attr *ints = sdx_rewrite_attr(rx->node, "classlabels_int64s");
    const struct sdx_onnx_attr *text = sdx_rewrite_attr(rx->node, "classlabels_strings");
    if (ints && ints->ints.count) {
        *count = ints->ints.count;
        return sdx_rewrite_const_ints(rx, *count, ints->ints.at);
    }
    *count = text ? text->strings.count : 0;
    if (!*count) return SDX_NONE;
    const struct sdx_onnx_strings list = text->strings;
    struct sdx_onnx_node *node =
        sdx_rewrite_before(rx, "Constant", SDX_NONE, SDX_NONE, SDX_NONE, SDX_NONE);
    struct sdx_onnx_attr *attr = sdx_rewrite_set(rx, node, "value_strings", SDX_ATTR_STRINGS);
    if (attr) attr->strings = list;
    return sdx_rewrite_out(node);
}

/* Scores as they are or in a curve that keeps their order. */
static void add_scores(struct sdx_formula *f, int post)
{
    sdx_formula_add(f, post == SDX_ML_SOFTMAX    ? "out1 = Softmax(z){axis=1}"
                       : post == SDX_ML_LOGISTIC ? "out1 = Sigmoid(z)"
                                                 : "out1 = z");
}

/* Weights of one class decide between two: from 1/2 up where they are probabilities, else from 0.
 */
static void two_classes(struct lists *l, struct sdx_formula *f, int post)
{
    bool positive = true;
    for (int64_t w = 0; w < l->count_weights; w++)
        positive &= l->weights[w] >= 0;
    sdx_formula_add(f, positive ? "hot = Greater(s, 0.5)" : "hot = Greater(s, 0)");
    sdx_formula_add(f, "at = Reshape(Cast(hot){to=7}, [-1]); out0 = Gather(labels, at)");
    if (l->targets[0] == 1)
        sdx_formula_add(f, "z = Concat(Sub(s, s), s){axis=1}");
    else if (positive && post != SDX_ML_LOGISTIC)
        sdx_formula_add(f, "z = Concat(Sub(1, s), s){axis=1}");
    else
        sdx_formula_add(f, "z = Concat(Neg(s), s){axis=1}");
    add_scores(f, l->targets[0] == 0 && post == SDX_ML_SOFTMAX ? SDX_ML_NONE : post);
}

static enum sdx_status classifier_nodes(struct lists *l)
{
    struct sdx_rewrite *rx = l->rx;
    struct arrays a = {0};
    struct sdx_formula f;
    int64_t labels = 0;
    int post;
    SDX_TRY(sdx_adapt_trees_need_floats(rx));
    SDX_TRY(index_of(rx, "post_transform", sdx_ml_post_names, SDX_ML_POSTS, SDX_ML_NONE, &post));
    SDX_TRY(read_lists(l, "class"));
    if (post > SDX_ML_LOGISTIC)
        return sdx_rewrite_refuse(rx, "post_transform is %s", sdx_ml_post_names[post]);
    sdx_formula_init(&f, rx, SDX_F32);
    sdx_formula_set(&f, "labels", add_labels(rx, &labels));
    bool binary = labels <= 2 && l->count_weights > 0;
    for (int64_t w = 0; w < l->count_weights; w++) {
        binary &= l->targets[w] == l->targets[0];
        if (l->targets[w] >= labels) return sdx_rewrite_refuse(rx, "a class has no label");
    }
    if (binary && (labels != 2 || l->count_base > 1))
        return sdx_rewrite_refuse(rx,
                                  "decides between two classes with %lld labels and %lld base "
                                  "values",
                                  (long long)labels, (long long)l->count_base);
    const int64_t targets = binary ? 1 : labels;
    if (binary && l->targets[0] == 1) l->count_base = 0; /* it is the first class's */
    SDX_TRY(build(l, &a, targets, SDX_ML_SUM, binary));
    sdx_formula_set(&f, "s", add_ensemble(rx, &a, SDX_NONE, targets, SDX_ML_SUM, SDX_ML_NONE));
    if (binary) {
        two_classes(l, &f, post);
    } else {
        sdx_formula_add(&f, "out0 = Gather(labels, ArgMax(s){axis=1, keepdims=0}); z = s");
        add_scores(&f, post);
    }
    rx->drop = true;
    return SDX_OK;
}

/* Nodes of the standard are written in the version that the graph or function imports. */
static enum sdx_status classifier_up(struct lists *l)
{
    struct sdx_rewrite *rx = l->rx;
    const struct sdx_rewrite_scope *scope = rx->scope;
    while (scope->parent)
        scope = scope->parent;
    const struct sdx_onnx_opsets *opsets =
        scope->function ? &scope->function->opsets : &rx->model->opsets;
    const int64_t *version = sdx_convert_version(opsets, SDX_STR("")), to = rx->to;
    if (!version || *version < OPSET_MIN)
        return sdx_rewrite_refuse(rx,
                                  "its form needs version %d or newer of ai.onnx, which the "
                                  "model does not import",
                                  OPSET_MIN);
    rx->to = *version;
    enum sdx_status status = classifier_nodes(l);
    rx->to = to;
    return status;
}

static enum sdx_status with_lists(struct sdx_rewrite *rx, enum sdx_status (*fn)(struct lists *))
{
    struct lists l = {.rx = rx};
    sdx_map_init(&l.map, rx->cx->mem);
    enum sdx_status status = fn(&l);
    sdx_map_deinit(&l.map);
    return status;
}

enum sdx_status sdx_adapt_tree_regressor_up(struct sdx_rewrite *rx)
{
    return with_lists(rx, regressor_up);
}

enum sdx_status sdx_adapt_tree_classifier_up(struct sdx_rewrite *rx)
{
    return with_lists(rx, classifier_up);
}
