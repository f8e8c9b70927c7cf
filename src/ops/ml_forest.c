/* SPDX-License-Identifier: Apache-2.0
 * Building forests from the attributes of the tree operators, and walking them. */
#include "ops/ml_forest.h"

#include <math.h>
#include <stdio.h>

#include "tensor/convert.h"

/* A tree as the model has it. References: >= 0 a branch node, -1 - k leaf k. */
struct source {
    int64_t count, count_leaves, count_roots, count_weights;
    uint8_t *mode, *missing;
    int64_t *feature;
    double *value;
    int32_t *yes, *no, *roots;
    int32_t *head, *next; /* weights of a leaf: a chain */
    int64_t *target;
    double *weight;
    bool *leaf_used; /* NULL: leaves may be shared */
};

static enum sdx_status broken(struct sdx_prepare *px, const char *what, int64_t i)
{
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: %s at entry %lld", SDX_STR_ARG(px->node->op_type),
                    what, (long long)i);
}

static enum sdx_status wrong_length(struct sdx_prepare *px, const char *name, int64_t found,
                                    int64_t expected)
{
    return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: %s has %lld entries, expected %lld",
                    SDX_STR_ARG(px->node->op_type), name, (long long)found, (long long)expected);
}

static enum sdx_status ints_of(struct sdx_prepare *px, const char *name, int64_t count,
                               const int64_t **out)
{
    int64_t found = 0;
    *out = sdx_ir_attr_ints(px->node, name, &found);
    if (!*out) found = 0;
    return found == count ? SDX_OK : wrong_length(px, name, found, count);
}

/* Numbers from a float list, or from the tensor NAME_as_tensor. count -1: any. */
static enum sdx_status reals_of(struct sdx_prepare *px, const char *name, int64_t count,
                                double **out, int64_t *found, bool *wide)
{
    char as_tensor[64];
    snprintf(as_tensor, sizeof as_tensor, "%s_as_tensor", name);
    const struct sdx_ir_attr *attr = sdx_ir_attr(px->node, as_tensor);
    const struct sdx_tensor *tensor = attr ? attr->tensor : NULL;
    *found = 0;
    const float *list = tensor ? NULL : sdx_ir_attr_floats(px->node, name, found);
    if (tensor) *found = tensor->count;
    if (!list && !tensor) *found = 0;
    if (count >= 0 && *found != count) return wrong_length(px, name, *found, count);
    *out = sdx_prepare_alloc(px, sizeof(double) * (size_t)(*found + 1));
    if (!*out) return px->cx->error.status;
    for (int64_t i = 0; i < *found; i++)
        (*out)[i] = tensor ? sdx_load_f64(tensor->dtype, tensor->data, i) : list[i];
    if (tensor && tensor->dtype == SDX_F64) *wide = true;
    return SDX_OK;
}

static enum sdx_status allocate(struct sdx_prepare *px, struct source *s)
{
    int64_t limit = INT32_MAX / 8;
    if (s->count > limit || s->count_leaves > limit || s->count_weights > limit ||
        s->count_roots > limit)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: more than %lld nodes",
                        SDX_STR_ARG(px->node->op_type), (long long)limit);
    size_t n = (size_t)s->count + 1, w = (size_t)s->count_weights + 1;
    s->mode = sdx_prepare_alloc(px, n);
    s->missing = sdx_prepare_alloc(px, n);
    s->feature = sdx_prepare_alloc(px, n * sizeof *s->feature);
    s->yes = sdx_prepare_alloc(px, n * sizeof *s->yes);
    s->no = sdx_prepare_alloc(px, n * sizeof *s->no);
    s->roots = sdx_prepare_alloc(px, ((size_t)s->count_roots + 1) * sizeof *s->roots);
    s->head = sdx_prepare_alloc(px, ((size_t)s->count_leaves + 1) * sizeof *s->head);
    s->next = sdx_prepare_alloc(px, w * sizeof *s->next);
    if (!s->mode || !s->missing || !s->feature || !s->yes || !s->no || !s->roots || !s->head ||
        !s->next)
        return px->cx->error.status;
    for (int64_t i = 0; i < s->count_leaves; i++)
        s->head[i] = -1;
    return SDX_OK;
}

/* ---- from the source to the layout ---- */

struct builder {
    const struct source *s;
    struct sdx_forest *f;
    bool *used;                             /* branch nodes */
    int32_t *stack_ref, *stack_to, *levels; /* levels: branches above a node */
    int64_t depth;
};

static enum sdx_status emit_leaf(struct sdx_prepare *px, struct builder *b, int32_t leaf,
                                 int32_t to)
{
    const struct source *s = b->s;
    struct sdx_forest *f = b->f;
    if (leaf >= s->count_leaves) return broken(px, "a leaf is out of range", leaf);
    if (s->leaf_used && s->leaf_used[leaf]) return broken(px, "a node is used twice", leaf);
    if (s->leaf_used) s->leaf_used[leaf] = true;
    f->nodes[to] = (struct sdx_forest_node){NAN, (uint32_t)to - 1};
    f->values[to] = NAN;
    f->mode[to] = SDX_FOREST_LEAF;
    f->leaves[to].first = (int32_t)f->count_leaves;
    for (int32_t w = s->head[leaf]; w >= 0; w = s->next[w]) {
        f->leaf_target[f->count_leaves] = (int32_t)s->target[w];
        f->leaf_narrow[f->count_leaves] = (float)s->weight[w];
        f->leaf_weight[f->count_leaves++] = s->weight[w];
    }
    f->leaves[to].count = (int32_t)f->count_leaves - f->leaves[to].first;
    return SDX_OK;
}

/* Turns a test for an order into LEQ. true: the children change places. */
static bool make_leq(struct sdx_forest *f, int32_t i)
{
    bool below = f->mode[i] == SDX_FOREST_LT || f->mode[i] == SDX_FOREST_GTE;
    bool swap = f->mode[i] == SDX_FOREST_GT || f->mode[i] == SDX_FOREST_GTE;
    float *narrow = &f->nodes[i].value;
    double *value = &f->values[i];
    if (below) { /* nothing is below -inf: NaN, which nothing is at most */
        *narrow = *narrow == -INFINITY ? NAN : nextafterf(*narrow, -INFINITY);
        *value = *value == -INFINITY ? NAN : nextafter(*value, -INFINITY);
    }
    if (swap) f->missing[i] = !f->missing[i];
    if (below || swap) f->mode[i] = SDX_FOREST_LEQ;
    return swap;
}

static enum sdx_status emit_branch(struct sdx_prepare *px, struct builder *b, int32_t i, int32_t to)
{
    const struct source *s = b->s;
    struct sdx_forest *f = b->f;
    if (i >= s->count) return broken(px, "a child is out of range", i);
    if (b->used[i]) return broken(px, "a node is used twice", i);
    if (s->feature[i] < 0 || s->feature[i] >= INT32_MAX) return broken(px, "a feature id", i);
    b->used[i] = true;
    int32_t child = (int32_t)f->count_nodes;
    f->count_nodes += 2;
    if (b->levels[to] >= f->depth) f->depth = b->levels[to] + 1;
    f->nodes[to] = (struct sdx_forest_node){(float)s->value[i], (uint32_t)child};
    f->values[to] = s->value[i];
    f->feature[to] = (uint32_t)s->feature[i];
    f->mode[to] = s->mode[i];
    f->missing[to] = s->missing[i];
    bool swap = make_leq(f, to);
    if (f->mode[to] != SDX_FOREST_LEQ) f->kind = SDX_FOREST_MIXED;
    if (f->missing[to] && f->kind == SDX_FOREST_PLAIN) f->kind = SDX_FOREST_ORDERED;
    if (s->feature[i] >= f->features) f->features = s->feature[i] + 1;
    for (int side = 1; side >= 0; side--) {
        b->stack_ref[b->depth] = (side != 0) != swap ? s->no[i] : s->yes[i];
        b->levels[child + side] = b->levels[to] + 1;
        b->stack_to[b->depth++] = child + side;
    }
    return SDX_OK;
}

static enum sdx_status build(struct sdx_prepare *px, const struct source *s, struct sdx_forest *f)
{
    size_t most = (size_t)(s->count_roots + 2 * s->count) + 2;
    size_t leaves = (size_t)s->count_weights + 1;
    if (!s->leaf_used) leaves += most; /* shared leaves, which have one weight each */
    struct builder b = {.s = s, .f = f};
    f->nodes = sdx_prepare_alloc(px, most * sizeof *f->nodes);
    f->values = sdx_prepare_alloc(px, most * sizeof *f->values);
    f->feature = sdx_prepare_alloc(px, most * sizeof *f->feature);
    f->mode = sdx_prepare_alloc(px, most);
    f->missing = sdx_prepare_alloc(px, most);
    f->roots =
        sdx_prepare_alloc(px, ((size_t)s->count_roots + SDX_FOREST_LANES) * sizeof *f->roots);
    f->leaf_target = sdx_prepare_alloc(px, leaves * sizeof *f->leaf_target);
    f->leaf_weight = sdx_prepare_alloc(px, leaves * sizeof *f->leaf_weight);
    f->leaf_narrow = sdx_prepare_alloc(px, leaves * sizeof *f->leaf_narrow);
    f->leaves = sdx_prepare_alloc(px, most * sizeof *f->leaves);
    b.used = sdx_prepare_alloc(px, (size_t)s->count + 1);
    b.stack_ref = sdx_prepare_alloc(px, most * sizeof *b.stack_ref);
    b.stack_to = sdx_prepare_alloc(px, most * sizeof *b.stack_to);
    b.levels = sdx_prepare_alloc(px, most * sizeof *b.levels);
    if (!f->nodes || !f->values || !f->feature || !f->mode || !f->missing || !f->roots ||
        !b.levels || !f->leaf_target || !f->leaf_weight || !f->leaf_narrow || !f->leaves ||
        !b.used || !b.stack_ref || !b.stack_to)
        return px->cx->error.status;
    f->count_trees = s->count_roots;
    for (int64_t t = 0; t < s->count_roots; t++) {
        f->roots[t] = (int32_t)f->count_nodes++;
        b.stack_ref[0] = s->roots[t];
        b.stack_to[0] = f->roots[t];
        b.depth = 1;
        while (b.depth > 0) {
            b.depth--;
            int32_t ref = b.stack_ref[b.depth], to = b.stack_to[b.depth];
            SDX_TRY(ref < 0 ? emit_leaf(px, &b, -1 - ref, to) : emit_branch(px, &b, ref, to));
        }
    }
    for (int64_t t = s->count_roots; t > 0 && t % SDX_FOREST_LANES; t++)
        f->roots[t] = f->roots[t - 1];
    return SDX_OK;
}

/* ---- TreeEnsembleClassifier, TreeEnsembleRegressor ---- */

/* Nodes are named by (tree, node): a map from such pairs to positions. */
struct pairs {
    struct sdx_map map;
    int64_t (*keys)[2];
    int64_t probe[2];
};

static int32_t find_pair(struct pairs *p, int64_t tree, int64_t node)
{
    p->probe[0] = tree;
    p->probe[1] = node;
    return sdx_map_get(&p->map, (struct sdx_str){(const char *)p->probe, sizeof p->probe});
}

static enum sdx_status index_nodes(struct sdx_prepare *px, struct source *s, struct pairs *p,
                                   const int64_t *trees, const int64_t *nodes)
{
    p->keys = sdx_prepare_alloc(px, ((size_t)s->count + 1) * sizeof *p->keys);
    if (!p->keys) return px->cx->error.status;
    for (int64_t i = 0; i < s->count; i++) {
        p->keys[i][0] = trees[i];
        p->keys[i][1] = nodes[i];
        struct sdx_str key = {(const char *)p->keys[i], sizeof p->keys[i]};
        if (sdx_map_get(&p->map, key) >= 0) return broken(px, "a node is there twice", i);
        if (!sdx_map_put(&p->map, key, (int32_t)i)) return SDX_FAIL_MEMORY(px->cx);
    }
    return SDX_OK;
}

/* The first node listed of each tree is its root. Trees are summed in the order they appear. */
static enum sdx_status find_roots(struct sdx_prepare *px, struct source *s, struct sdx_map *seen,
                                  const int64_t *trees)
{
    for (int64_t i = 0; i < s->count; i++) {
        struct sdx_str key = {(const char *)&trees[i], sizeof trees[i]};
        if (i > 0 && trees[i] == trees[i - 1]) continue;
        if (sdx_map_get(seen, key) >= 0) continue;
        if (!sdx_map_put(seen, key, 0)) return SDX_FAIL_MEMORY(px->cx);
        s->roots[s->count_roots++] = s->mode[i] == SDX_FOREST_LEAF ? -1 - (int32_t)i : (int32_t)i;
    }
    return SDX_OK;
}

static enum sdx_status link_children(struct sdx_prepare *px, struct source *s, struct pairs *p,
                                     const int64_t *trees)
{
    const int64_t *yes = NULL, *no = NULL;
    SDX_TRY(ints_of(px, "nodes_truenodeids", s->count, &yes));
    SDX_TRY(ints_of(px, "nodes_falsenodeids", s->count, &no));
    for (int64_t i = 0; i < s->count; i++) {
        if (s->mode[i] == SDX_FOREST_LEAF) continue;
        int32_t y = find_pair(p, trees[i], yes[i]), n = find_pair(p, trees[i], no[i]);
        if (y < 0 || n < 0) return broken(px, "a child does not exist", i);
        s->yes[i] = s->mode[y] == SDX_FOREST_LEAF ? -1 - y : y;
        s->no[i] = s->mode[n] == SDX_FOREST_LEAF ? -1 - n : n;
    }
    return SDX_OK;
}

static enum sdx_status link_weights(struct sdx_prepare *px, struct source *s, struct pairs *p,
                                    const char *kind)
{
    char name[32];
    const int64_t *trees = NULL, *nodes = NULL, *ids = NULL;
    snprintf(name, sizeof name, "%s_treeids", kind);
    SDX_TRY(ints_of(px, name, s->count_weights, &trees));
    snprintf(name, sizeof name, "%s_nodeids", kind);
    SDX_TRY(ints_of(px, name, s->count_weights, &nodes));
    snprintf(name, sizeof name, "%s_ids", kind);
    SDX_TRY(ints_of(px, name, s->count_weights, &ids));
    s->target = sdx_prepare_alloc(px, ((size_t)s->count_weights + 1) * sizeof *s->target);
    if (!s->target) return px->cx->error.status;
    for (int64_t w = s->count_weights - 1; w >= 0; w--) {
        int32_t leaf = find_pair(p, trees[w], nodes[w]);
        if (leaf < 0) return broken(px, "a weight's node does not exist", w);
        if (ids[w] < 0 || ids[w] >= INT32_MAX) return broken(px, "a target id", w);
        s->target[w] = ids[w];
        s->next[w] = s->head[leaf];
        s->head[leaf] = (int32_t)w;
    }
    return SDX_OK;
}

static enum sdx_status read_lists(struct sdx_prepare *px, struct source *s, struct pairs *p,
                                  struct sdx_map *seen, const char *kind)
{
    const int64_t *trees = NULL, *nodes = NULL, *features = NULL;
    int64_t modes = 0, missing = 0;
    const struct sdx_str *mode = sdx_ir_attr_strings(px->node, "nodes_modes", &modes);
    SDX_TRY(ints_of(px, "nodes_treeids", s->count, &trees));
    SDX_TRY(ints_of(px, "nodes_nodeids", s->count, &nodes));
    SDX_TRY(ints_of(px, "nodes_featureids", s->count, &features));
    const int64_t *tracks = sdx_ir_attr_ints(px->node, "nodes_missing_value_tracks_true", &missing);
    if (!tracks) missing = 0;
    if (missing && missing != s->count)
        return wrong_length(px, "nodes_missing_value_tracks_true", missing, s->count);
    if (!mode || modes != s->count) return wrong_length(px, "nodes_modes", modes, s->count);
    for (int64_t i = 0; i < s->count; i++) {
        const int found = sdx_ml_find_name(sdx_forest_mode_names, SDX_FOREST_MODES, mode[i]);
        if (found < 0) return broken(px, "an unknown mode", i);
        s->mode[i] = (uint8_t)found;
        s->feature[i] = features[i];
        s->missing[i] = missing && tracks[i] != 0;
    }
    SDX_TRY(index_nodes(px, s, p, trees, nodes));
    s->count_roots = 0;
    SDX_TRY(find_roots(px, s, seen, trees));
    SDX_TRY(link_children(px, s, p, trees));
    return link_weights(px, s, p, kind);
}

enum sdx_status sdx_forest_from_lists(struct sdx_prepare *px, const char *kind,
                                      struct sdx_forest *out)
{
    char weights[32];
    struct source s = {0};
    struct pairs pairs;
    struct sdx_map seen;
    snprintf(weights, sizeof weights, "%s_weights", kind);
    *out = (struct sdx_forest){.wide = px->in[0]->dtype == SDX_F64};
    if (!sdx_ir_attr_ints(px->node, "nodes_treeids", &s.count) || s.count == 0)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: no nodes", SDX_STR_ARG(px->node->op_type));
    int64_t values = 0;
    SDX_TRY(reals_of(px, "nodes_values", s.count, &s.value, &values, &out->wide));
    SDX_TRY(reals_of(px, weights, -1, &s.weight, &s.count_weights, &out->wide));
    s.count_leaves = s.count_roots = s.count;
    SDX_TRY(allocate(px, &s));
    s.leaf_used = sdx_prepare_alloc(px, (size_t)s.count);
    if (!s.leaf_used) return px->cx->error.status;
    sdx_map_init(&pairs.map, px->cx->mem);
    sdx_map_init(&seen, px->cx->mem);
    enum sdx_status status = read_lists(px, &s, &pairs, &seen, kind);
    sdx_map_deinit(&pairs.map);
    sdx_map_deinit(&seen);
    if (status != SDX_OK) return status;
    return build(px, &s, out);
}

/* ---- TreeEnsemble ---- */

static enum sdx_status tensor_of(struct sdx_prepare *px, const char *name, int64_t count,
                                 double **out, int64_t *found)
{
    const struct sdx_ir_attr *attr = sdx_ir_attr(px->node, name);
    const struct sdx_tensor *tensor = attr ? attr->tensor : NULL;
    *found = tensor ? tensor->count : 0;
    if (count >= 0 && *found != count) return wrong_length(px, name, *found, count);
    *out = sdx_prepare_alloc(px, sizeof(double) * (size_t)(*found + 1));
    if (!*out) return px->cx->error.status;
    for (int64_t i = 0; i < *found; i++)
        (*out)[i] = sdx_load_f64(tensor->dtype, tensor->data, i);
    return SDX_OK;
}

/* A child: a branch node, or a leaf where `leaf` says so. */
static enum sdx_status child_of(struct sdx_prepare *px, const struct source *s, int64_t id,
                                int64_t leaf, int64_t entry, int32_t *out)
{
    if (id < 0 || id >= (leaf ? s->count_leaves : s->count))
        return broken(px, "a child is out of range", entry);
    *out = leaf ? -1 - (int32_t)id : (int32_t)id;
    return SDX_OK;
}

/* Sets of members, one for each MEMBER node in the order of the nodes, ended by NaN. */
static enum sdx_status read_members(struct sdx_prepare *px, struct source *s, struct sdx_forest *f)
{
    double *list = NULL;
    int64_t found = 0, at = 0, sets = 0;
    SDX_TRY(tensor_of(px, "membership_values", -1, &list, &found));
    f->members = list;
    f->member_first = sdx_prepare_alloc(px, ((size_t)s->count + 2) * sizeof *f->member_first);
    if (!f->member_first) return px->cx->error.status;
    for (int64_t i = 0; i < s->count; i++) {
        if (s->mode[i] != SDX_FOREST_MEMBER) continue;
        int64_t first = at, kept = f->member_first[sets];
        while (at < found && !isnan(list[at]))
            at++;
        if (at == found) return broken(px, "membership_values ends before", i);
        for (int64_t k = first; k < at; k++)
            list[kept++] = list[k];
        at++;
        s->value[i] = (double)sets++;
        f->member_first[sets] = (int32_t)kept;
    }
    return SDX_OK;
}

enum sdx_status sdx_forest_from_tensors(struct sdx_prepare *px, struct sdx_forest *out)
{
    struct source s = {0};
    const int64_t *features = NULL, *yes = NULL, *no = NULL, *yes_leaf = NULL, *no_leaf = NULL;
    const int64_t *targets = NULL, *tracks = NULL, *roots = NULL;
    double *modes = NULL;
    int64_t found = 0, missing = 0;
    *out = (struct sdx_forest){.wide = px->in[0]->dtype == SDX_F64};
    SDX_TRY(tensor_of(px, "nodes_modes", -1, &modes, &s.count));
    SDX_TRY(tensor_of(px, "nodes_splits", s.count, &s.value, &found));
    SDX_TRY(tensor_of(px, "leaf_weights", -1, &s.weight, &s.count_leaves));
    s.count_weights = s.count_leaves;
    roots = sdx_ir_attr_ints(px->node, "tree_roots", &s.count_roots);
    if (!roots) s.count_roots = 0;
    SDX_TRY(ints_of(px, "nodes_featureids", s.count, &features));
    SDX_TRY(ints_of(px, "nodes_truenodeids", s.count, &yes));
    SDX_TRY(ints_of(px, "nodes_falsenodeids", s.count, &no));
    SDX_TRY(ints_of(px, "nodes_trueleafs", s.count, &yes_leaf));
    SDX_TRY(ints_of(px, "nodes_falseleafs", s.count, &no_leaf));
    SDX_TRY(ints_of(px, "leaf_targetids", s.count_leaves, &targets));
    tracks = sdx_ir_attr_ints(px->node, "nodes_missing_value_tracks_true", &missing);
    if (tracks && missing && missing != s.count)
        return wrong_length(px, "nodes_missing_value_tracks_true", missing, s.count);
    SDX_TRY(allocate(px, &s));
    s.target = sdx_prepare_alloc(px, ((size_t)s.count_leaves + 1) * sizeof *s.target);
    if (!s.target) return px->cx->error.status;
    for (int64_t i = 0; i < s.count; i++) {
        if (!(modes[i] >= 0 && modes[i] <= SDX_FOREST_MEMBER))
            return broken(px, "an unknown mode", i);
        s.mode[i] = (uint8_t)modes[i];
        s.feature[i] = features[i];
        s.missing[i] = tracks && missing && tracks[i] != 0;
        SDX_TRY(child_of(px, &s, yes[i], yes_leaf[i], i, &s.yes[i]));
        SDX_TRY(child_of(px, &s, no[i], no_leaf[i], i, &s.no[i]));
    }
    for (int64_t i = 0; i < s.count_leaves; i++) {
        if (targets[i] < 0 || targets[i] >= INT32_MAX) return broken(px, "a target id", i);
        s.target[i] = targets[i];
        s.head[i] = (int32_t)i;
        s.next[i] = -1;
    }
    for (int64_t i = 0; i < s.count_roots; i++)
        SDX_TRY(child_of(px, &s, roots[i], 0, i, &s.roots[i]));
    SDX_TRY(read_members(px, &s, out));
    return build(px, &s, out);
}

/* ---- walking ---- */

static bool is_member(const struct sdx_forest *f, int64_t set, double x)
{
    for (int32_t i = f->member_first[set]; i < f->member_first[set + 1]; i++)
        if (f->members[i] == x) return true;
    return false;
}

/* A step of every lane is the same few instructions, at a leaf too, and no branch hangs on data.
 * The walk ends when no lane has moved in the second step of two. */
#define STEP(T, threshold, element, tracks, unrolled)                                              \
    SDX_UNROLL(unrolled) for (int i = 0; i < SDX_FOREST_LANES; i++)                                \
    {                                                                                              \
        uint32_t n = at[i];                                                                        \
        T x = (element);                                                                           \
        uint32_t no = !(x <= (threshold));                                                         \
        if (tracks) no &= !(f->missing[n] & (x != x));                                             \
        at[i] = nodes[n].child + no;                                                               \
    }
#define WALK_ORDERED(name, T, threshold, rows_type, element, tracks, unrolled)                     \
    static void name(const struct sdx_forest *f, rows_type rows, int32_t *leaf)                    \
    {                                                                                              \
        const struct sdx_forest_node *nodes = f->nodes;                                            \
        const uint32_t *feature = f->feature;                                                      \
        const double *values = f->values;                                                          \
        uint32_t at[SDX_FOREST_LANES], before[SDX_FOREST_LANES], moved = 1;                        \
        memcpy(at, leaf, sizeof at);                                                               \
        (void)values;                                                                              \
        for (int32_t left = f->depth; left > 0 && moved; left -= 2) {                              \
            STEP(T, threshold, element, tracks, unrolled)                                          \
            memcpy(before, at, sizeof at);                                                         \
            STEP(T, threshold, element, tracks, unrolled)                                          \
            moved = 0;                                                                             \
            SDX_UNROLL(unrolled)                                                                   \
            for (int i = 0; i < SDX_FOREST_LANES; i++)                                             \
                moved |= before[i] ^ at[i];                                                        \
        }                                                                                          \
        memcpy(leaf, at, sizeof at);                                                               \
    }
typedef const void *const *rows_t;
#define OF_ROWS(T) ((const T *)rows[i])[feature[n]]
#define OF_ROW(T)  ((const T *)rows)[feature[n]]
WALK_ORDERED(walk_plain_f32, float, nodes[n].value, rows_t, OF_ROWS(float), false, 16)
WALK_ORDERED(walk_plain_f64, double, values[n], rows_t, OF_ROWS(double), false, 4)
WALK_ORDERED(walk_ordered_f32, float, nodes[n].value, rows_t, OF_ROWS(float), true, 16)
WALK_ORDERED(walk_ordered_f64, double, values[n], rows_t, OF_ROWS(double), true, 4)
WALK_ORDERED(row_plain_f32, float, nodes[n].value, const void *, OF_ROW(float), false, 16)
WALK_ORDERED(row_plain_f64, double, values[n], const void *, OF_ROW(double), false, 4)
WALK_ORDERED(row_ordered_f32, float, nodes[n].value, const void *, OF_ROW(float), true, 16)
WALK_ORDERED(row_ordered_f64, double, values[n], const void *, OF_ROW(double), true, 4)

#define WALK_MIXED(name, T, threshold)                                                             \
    static bool name##_test(const struct sdx_forest *f, uint32_t n, T x)                           \
    {                                                                                              \
        T t = (threshold);                                                                         \
        bool holds = false;                                                                        \
        switch (f->mode[n]) {                                                                      \
        case SDX_FOREST_LEQ: holds = x <= t; break;                                                \
        case SDX_FOREST_EQ: holds = x == t; break;                                                 \
        case SDX_FOREST_NEQ: holds = x != t; break;                                                \
        default: holds = is_member(f, (int64_t)f->values[n], x); break;                            \
        }                                                                                          \
        return holds || (f->missing[n] && x != x);                                                 \
    }                                                                                              \
    static void name(const struct sdx_forest *f, const void *const *rows, int32_t *leaf)           \
    {                                                                                              \
        for (int i = 0; i < SDX_FOREST_LANES; i++) {                                               \
            uint32_t n = (uint32_t)leaf[i];                                                        \
            while (f->mode[n] != SDX_FOREST_LEAF)                                                  \
                n = f->nodes[n].child + !name##_test(f, n, ((const T *)rows[i])[f->feature[n]]);   \
            leaf[i] = (int32_t)n;                                                                  \
        }                                                                                          \
    }
WALK_MIXED(walk_mixed_f32, float, f->nodes[n].value)
WALK_MIXED(walk_mixed_f64, double, f->values[n])

#define HAS_NAN(name, T)                                                                           \
    static bool name(const void *row, int64_t columns)                                             \
    {                                                                                              \
        const T *x = row;                                                                          \
        int found = 0;                                                                             \
        for (int64_t i = 0; i < columns; i++)                                                      \
            found |= x[i] != x[i];                                                                 \
        return found != 0;                                                                         \
    }
HAS_NAN(has_nan_f32, float)
HAS_NAN(has_nan_f64, double)

enum sdx_forest_kind sdx_forest_row_kind(const struct sdx_forest *f, const void *row,
                                         int64_t columns)
{
    if (f->kind != SDX_FOREST_ORDERED) return f->kind;
    bool found = f->wide ? has_nan_f64(row, columns) : has_nan_f32(row, columns);
    return found ? SDX_FOREST_ORDERED : SDX_FOREST_PLAIN;
}

void sdx_forest_walk(const struct sdx_forest *f, enum sdx_forest_kind kind, const void *const *rows,
                     int32_t *leaf)
{
    typedef void walk_fn(const struct sdx_forest *, const void *const *, int32_t *);
    static walk_fn *const walks[2][3] = {{walk_plain_f32, walk_ordered_f32, walk_mixed_f32},
                                         {walk_plain_f64, walk_ordered_f64, walk_mixed_f64}};
    if (f->depth > 0) walks[f->wide][kind](f, rows, leaf);
}

void sdx_forest_walk_row(const struct sdx_forest *f, enum sdx_forest_kind kind, const void *row,
                         int32_t *leaf)
{
    typedef void walk_fn(const struct sdx_forest *, const void *, int32_t *);
    static walk_fn *const walks[2][2] = {{row_plain_f32, row_ordered_f32},
                                         {row_plain_f64, row_ordered_f64}};
    if (kind == SDX_FOREST_MIXED) {
        const void *rows[SDX_FOREST_LANES];
        for (int i = 0; i < SDX_FOREST_LANES; i++)
            rows[i] = row;
        sdx_forest_walk(f, kind, rows, leaf);
    } else if (f->depth > 0) {
        walks[f->wide][kind](f, row, leaf);
    }
}
