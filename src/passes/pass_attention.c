/* SPDX-License-Identifier: Apache-2.0
 * Attention as exporters spell it, softmax(q k^T * scale [chosen by a Where] [+ mask]) v, becomes
 * one operator (ops/attention_fused.c). Transposes around it become the axes of its operands, and
 * constant factors of q, k or the scores its scale: PyTorch writes them as a division of the
 * scores, a multiplication of q, or the root of the scale on both sides. Re-associates. */
#include "ops/attention_place.h"
#include "passes/attention.h"
#include "passes/origin.h"
#include "passes/passes.h"

enum { PLACES = 9 /* the attribute of q's place */ };

/* ---- around the operands ---- */

/* Shapes asked of `from` are asked of `to`, which has the same. */
static void move_shapes(const struct sdx_attention_search *s, int32_t from, int32_t to)
{
    for (int32_t n = 0; n < s->g->count_nodes; n++) {
        struct sdx_ir_node *node = &s->g->nodes[n];
        if (!node->is_dead && !node->domain.len && sdx_str_is(node->op_type, "Shape") &&
            node->inputs[0] == from)
            node->inputs[0] = to;
    }
}

/* Are the last two axes of [a, b, c, d] swapped in three axes, [a * b, c, d] to [a * b, d, c], as
 * PyTorch does it for its product of batches? *before: what is swapped. */
static bool is_swapped_flat(const struct sdx_attention_search *s, int32_t value, int32_t *before)
{
    const struct sdx_ir_node *apart = sdx_match_maker(s->g, value, "Reshape");
    const struct sdx_ir_node *turn =
        apart ? sdx_match_maker(s->g, apart->inputs[0], "Transpose") : NULL;
    const struct sdx_ir_node *flat =
        turn ? sdx_match_maker(s->g, turn->inputs[0], "Reshape") : NULL;
    if (!flat || !sdx_match_moves_axis(turn, 3, 1, 2) ||
        sdx_attention_rank(s->g, turn->inputs[0]) != 3 ||
        sdx_attention_rank(s->g, flat->inputs[0]) != 4 || sdx_attention_rank(s->g, value) != 4)
        return false;
    *before = flat->inputs[0];
    const int64_t *x = s->g->values[*before].type.dims, *y = s->g->values[value].type.dims;
    const int64_t *joined = s->g->values[turn->inputs[0]].type.dims;
    for (int d = 0; d < 4; d++)
        if (x[d] == -1 || x[d] != y[d < 2 ? d : 5 - d]) return false;
    return joined[1] == x[2] && joined[2] == x[3];
}

/* Goes up through transpositions and, when scale is given, constant factors; axes[i] stays the axis
 * of *value that is axis i of the product's operand. */
static void peel(const struct sdx_attention_search *s, int32_t *value, int64_t *axes, int rank,
                 double *scale)
{
    for (;;) {
        const struct sdx_ir_node *turn = sdx_match_maker(s->g, *value, "Transpose");
        int64_t count = 0;
        const int64_t *perm = turn ? sdx_ir_attr_ints(turn, "perm", &count) : NULL;
        int32_t rest = -1;
        double factor = 1;
        if (perm && count == rank && sdx_attention_rank(s->g, turn->inputs[0]) == rank) {
            for (int d = 0; d < rank; d++)
                axes[d] = perm[axes[d]];
            *value = turn->inputs[0];
        } else if (rank == 4 && is_swapped_flat(s, *value, &rest)) {
            for (int d = 0; d < rank; d++)
                axes[d] = axes[d] < 2 ? axes[d] : 5 - axes[d];
            *value = rest;
        } else if (scale && sdx_attention_scaled(s->g, *value, &rest, &factor)) {
            *scale *= factor;
            *value = rest;
        } else {
            break;
        }
    }
    struct sdx_ir_node *reshape = sdx_match_maker(s->g, *value, "Reshape");
    int32_t rest = -1;
    double factor = 1;
    if (!scale || !reshape || s->uses[*value] != 1) return;
    if (!sdx_attention_scaled(s->g, reshape->inputs[0], &rest, &factor)) return;
    *scale *= factor;
    move_shapes(s, reshape->inputs[0], rest);
    reshape->inputs[0] = rest;
}

/* Operand i where its axes, or an earlier place, say that it is; false: its shape is not known. */
static bool place_of(const struct sdx_attention_search *s, int32_t value, const int64_t *axes,
                     int rank, const int64_t *place, struct sdx_origin *at)
{
    int64_t dims[SDX_RANK_MAX];
    at->value = value;
    if (!sdx_origin_lengths(s->ir, value, at->sample, dims)) return false;
    if (place) {
        for (int d = 0; d < SDX_ATTENTION_AXES; d++) {
            at->dims[d] = sdx_attention_place(place, d, dims);
            at->steps[d] = sdx_attention_place(place, SDX_ATTENTION_AXES + d, dims);
        }
        at->first = sdx_attention_place(place, SDX_ATTENTION_FIRST, dims);
        return true;
    }
    if (sdx_attention_rank(s->g, value) != rank) return false;
    at->first = 0;
    for (int d = 0, to = 0; d < rank; d++, to++) {
        at->dims[to] = dims[axes[d]];
        at->steps[to] = at->dims[to] > 1;
        for (int64_t i = axes[d] + 1; i < rank; i++)
            at->steps[to] *= dims[i];
        if (rank == 3 && d == 0) {
            at->dims[++to] = 1;
            at->steps[to] = 0;
        }
    }
    return true;
}

/* A number of a place that is a[0] in one sample and a[1] in the other: a factor and open lengths
 * of the value, dims[0] and dims[1] there; false: it is something else. */
static bool write_number(const struct sdx_attention_search *s, int32_t value, const int64_t a[2],
                         int64_t dims[2][SDX_RANK_MAX], int64_t *place, int at)
{
    const struct sdx_type *t = &s->g->values[value].type;
    int64_t rest[2] = {a[0], a[1]}, axes = 0;
    for (int d = 0; d < t->rank; d++) {
        if (t->dims[d] >= 0 || a[0] == 0 || rest[0] % dims[0][d] || rest[1] % dims[1][d]) continue;
        rest[0] /= dims[0][d];
        rest[1] /= dims[1][d];
        axes |= INT64_C(1) << d;
    }
    place[at] = rest[0];
    place[SDX_ATTENTION_PLACE / 2 + at] = axes;
    return rest[0] == rest[1];
}

/* The place that both samples come to, or NULL. */
static const int64_t *write_place(const struct sdx_attention_search *s, const struct sdx_origin *a,
                                  const struct sdx_origin *b)
{
    int64_t *place = sdx_arena_array(s->ir->arena, SDX_ATTENTION_PLACE, sizeof *place);
    int64_t dims[2][SDX_RANK_MAX];
    if (!place || a->value != b->value || !sdx_origin_lengths(s->ir, a->value, 0, dims[0]) ||
        !sdx_origin_lengths(s->ir, a->value, 1, dims[1]))
        return NULL;
    for (int d = 0; d < SDX_ATTENTION_AXES; d++)
        if (!write_number(s, a->value, (const int64_t[]){a->dims[d], b->dims[d]}, dims, place, d) ||
            !write_number(s, a->value, (const int64_t[]){a->steps[d], b->steps[d]}, dims, place,
                          SDX_ATTENTION_AXES + d))
            return NULL;
    return write_number(s, a->value, (const int64_t[]){a->first, b->first}, dims, place,
                        SDX_ATTENTION_FIRST)
               ? place
               : NULL;
}

/* Heads that an Expand gave to several heads of queries each, before the axis `heads` of `value`,
 * say [B, heads, rows, columns] to [B, heads, n, rows, columns] to [B, heads * n, rows, columns]:
 * what it was given. Returns n; 0: it is none. */
static int64_t find_shared(const struct sdx_attention_search *s, int32_t value, int64_t heads,
                           int32_t *before)
{
    const struct sdx_ir_node *view = sdx_match_maker(s->g, value, "Reshape");
    const struct sdx_ir_node *expand =
        view ? sdx_match_maker(s->g, view->inputs[0], "Expand") : NULL;
    if (!expand || sdx_attention_rank(s->g, view->inputs[0]) != 5 ||
        sdx_attention_rank(s->g, expand->inputs[0]) != 5)
        return 0;
    const int64_t *all = s->g->values[value].type.dims;
    const int64_t *to = s->g->values[view->inputs[0]].type.dims;
    const int64_t *from = s->g->values[expand->inputs[0]].type.dims;
    const int32_t producer = s->g->values[expand->inputs[0]].producer;
    const struct sdx_ir_node *insert = producer < 0 ? NULL : &s->g->nodes[producer];
    if (!insert || !insert->op || !(insert->op->flags & SDX_OP_VIEW) || insert->count_inputs < 1 ||
        sdx_attention_rank(s->g, insert->inputs[0]) != 4)
        return 0;
    *before = insert->inputs[0];
    const int64_t *own = s->g->values[*before].type.dims;
    if (from[heads] < 1 || to[heads + 1] < 1 || from[heads + 1] != 1 ||
        all[heads] != from[heads] * to[heads + 1])
        return 0;
    for (int64_t d = 0; d < 4; d++) {
        const int64_t d5 = d > heads ? d + 1 : d;
        if (own[d] == -1 || own[d] != from[d5] || own[d] != to[d5] ||
            (d != heads && own[d] != all[d]))
            return 0;
    }
    return to[heads + 1];
}

/* Attention reads the heads of keys and values for as many of queries as share them. */
static void share_heads(const struct sdx_attention_search *s, int32_t *k, int64_t *k_axes,
                        int32_t *v, int64_t *v_axes, int rank)
{
    int32_t k_before = -1, v_before = -1;
    if (rank != 4 || sdx_attention_rank(s->g, *k) != 4 || sdx_attention_rank(s->g, *v) != 4) return;
    const int64_t n = find_shared(s, *k, k_axes[1], &k_before);
    if (n < 1 || find_shared(s, *v, v_axes[1], &v_before) != n) return;
    *k = k_before;
    *v = v_before;
    peel(s, k, k_axes, rank, NULL);
    peel(s, v, v_axes, rank, NULL);
}

/* Heads of keys or values that an Expand gave to several heads of queries each, [B, heads, 1, rows,
 * columns] to [B, heads, n, rows, columns], where find_shared sees no heads: the operand is what it
 * reads. Returns n; 0: none. */
static int64_t find_shared_at(const struct sdx_attention_search *s, struct sdx_origin *at)
{
    const struct sdx_ir_node *view = sdx_match_maker(s->g, at->value, "Reshape");
    for (; view && s->uses[at->value] == 1; view = sdx_match_maker(s->g, at->value, "Reshape"))
        at->value = view->inputs[0];
    const struct sdx_ir_node *expand = sdx_match_maker(s->g, at->value, "Expand");
    const struct sdx_type *to = &s->g->values[at->value].type;
    const struct sdx_type *from = expand ? &s->g->values[expand->inputs[0]].type : NULL;
    if (!from || s->uses[at->value] != 1 || !from->has_shape || from->rank != 5 || to->rank != 5 ||
        from->dims[2] != 1)
        return 0;
    for (int d = 0; d < 5; d++)
        if (to->dims[d] < 1 || (d != 2 && from->dims[d] != to->dims[d])) return 0;
    const int64_t head = to->dims[3] * to->dims[4], n = to->dims[2];
    const int64_t dims[] = {to->dims[0], to->dims[1] * n, to->dims[3], to->dims[4]};
    const int64_t steps[] = {dims[1] * head, head, to->dims[4], 1};
    for (int d = 0; d < 4; d++)
        if (at->dims[d] != dims[d] || (dims[d] > 1 && at->steps[d] != steps[d])) return 0;
    at->value = expand->inputs[0];
    at->dims[1] = to->dims[1];
    at->steps[0] /= n;
    if (at->dims[1] == 1) at->steps[1] = 0;
    return at->first == 0 ? n : 0;
}

/* The operands where they lie in what they are only moved from, in both samples, as what holds for
 * these holds for any lengths. The node's attributes are its own. */
static enum sdx_status find_places(const struct sdx_attention_search *s, struct sdx_ir_node *node,
                                   bool *did)
{
    struct sdx_origin at[2][3];
    bool went[2][3];
    const int rank = (int)node->attrs[0].count;
    if (s->g != &s->ir->graphs[0]) return SDX_OK;
    for (int sample = 0; sample < 2; sample++) {
        for (int i = 0; i < 3; i++) {
            const struct sdx_ir_attr *place = &node->attrs[PLACES + i];
            at[sample][i].sample = sample;
            if (!place_of(s, node->inputs[i], node->attrs[i].ints, rank,
                          place->count ? place->ints : NULL, &at[sample][i]))
                return SDX_OK;
        }
        sdx_origin_climb(s->ir, s->uses, at[sample], 3, went[sample]);
        struct sdx_origin k = at[sample][1], v = at[sample][2];
        const int64_t shared = find_shared_at(s, &k);
        if (shared > 1 && find_shared_at(s, &v) == shared) {
            at[sample][1] = k;
            at[sample][2] = v;
            went[sample][1] = went[sample][2] = true;
        }
    }
    for (int i = 0; i < 3; i++) {
        if (!went[0][i] || !went[1][i]) continue;
        const int64_t *place = write_place(s, &at[0][i], &at[1][i]);
        if (!place) continue;
        node->inputs[i] = at[0][i].value;
        node->attrs[PLACES + i].ints = place;
        node->attrs[PLACES + i].count = SDX_ATTENTION_PLACE;
        *did = true;
    }
    return SDX_OK;
}

static void straight(int64_t *axes, int rank)
{
    for (int d = 0; d < rank; d++)
        axes[d] = d;
}

/* The output goes to memory as the Transpose behind it wants, when columns stay the last axis. */
static void find_turn(const struct sdx_attention_search *s, struct sdx_attention_found *f)
{
    straight(f->axes[3], f->rank);
    f->turn = -1;
    if (s->uses[f->y] != 1) return;
    for (int32_t n = f->weigh + 1; n < s->g->count_nodes; n++) {
        const struct sdx_ir_node *node = &s->g->nodes[n];
        if (node->is_dead || node->count_inputs != 1 || node->inputs[0] != f->y) continue;
        int64_t count = 0;
        const int64_t *perm = sdx_ir_attr_ints(node, "perm", &count);
        if (node->domain.len || !sdx_str_is(node->op_type, "Transpose") || !perm ||
            count != f->rank || perm[count - 1] != count - 1)
            return;
        memcpy(f->axes[3], perm, (size_t)count * sizeof *perm);
        f->turn = n;
        f->y = node->outputs[0];
        return;
    }
}

static bool is_last_axis(const struct sdx_ir_node *softmax, int rank)
{
    int64_t axis = sdx_ir_attr_int(softmax, "axis", softmax->opset < 13 ? 1 : -1);
    return axis == -1 || axis == rank - 1;
}

/* What stands for the weights w in w = softmax(...) or, as PyTorch has it for rows that see
 * nothing, Where(IsNaN(w), 0, w); a row of w is NaN as a whole. */
static int32_t find_weights(const struct sdx_attention_search *s, int32_t w,
                            struct sdx_attention_found *f)
{
    if (s->uses[w] != 2) return w;
    for (int32_t n = f->softmax + 1; n < s->g->count_nodes; n++) {
        const struct sdx_ir_node *where = &s->g->nodes[n];
        double zero = 1;
        if (where->is_dead || where->domain.len || !sdx_str_is(where->op_type, "Where") ||
            where->count_inputs != 3 || where->inputs[2] != w)
            continue;
        const struct sdx_ir_node *is_nan = sdx_match_maker(s->g, where->inputs[0], "IsNaN");
        if (!is_nan || is_nan->inputs[0] != w || s->uses[where->inputs[0]] != 1 ||
            !sdx_match_scalar(s->g, where->inputs[1], &zero) || zero != 0 ||
            !sdx_match_same_type(s->g, where->outputs[0], w))
            return w;
        f->nan_is_zero = true;
        f->where = n;
        f->is_nan = s->g->values[where->inputs[0]].producer;
        return where->outputs[0];
    }
    return w;
}

/* The product that alone reads the softmax as its left operand; -1: none. */
static int32_t find_weigh(const struct sdx_attention_search *s, int32_t softmax, int32_t weights)
{
    if (s->uses[weights] != 1) return -1;
    for (int32_t n = softmax + 1; n < s->g->count_nodes; n++) {
        const struct sdx_ir_node *node = &s->g->nodes[n];
        if (node->is_dead || node->domain.len || node->count_inputs != 2) continue;
        if (node->inputs[0] == weights)
            return sdx_match_plain_product(s->g, node->outputs[0]) == node ? n : -1;
    }
    return -1;
}

static bool match(const struct sdx_attention_search *s, int32_t n, struct sdx_attention_found *f)
{
    const struct sdx_ir_node *softmax = &s->g->nodes[n];
    *f = (struct sdx_attention_found){.choice = -1,
                                      .mask = -1,
                                      .factor = -1,
                                      .more = -1,
                                      .head_scale = -1,
                                      .outer = -1,
                                      .inner = -1,
                                      .split_add = -1,
                                      .where = -1,
                                      .is_nan = -1,
                                      .scale = 1,
                                      .softmax = n};
    f->rank = sdx_attention_rank(s->g, softmax->outputs[0]);
    if ((f->rank != 3 && f->rank != 4) || !sdx_attention_is_f32(s->g, softmax->outputs[0]))
        return false;
    if (!is_last_axis(softmax, f->rank)) return false;
    f->weigh = find_weigh(s, n, find_weights(s, softmax->outputs[0], f));
    if (f->weigh < 0 || !sdx_attention_scores(s, f)) return false;
    f->v = s->g->nodes[f->weigh].inputs[1];
    f->y = s->g->nodes[f->weigh].outputs[0];
    return sdx_attention_rank(s->g, f->q) == f->rank && sdx_attention_rank(s->g, f->k) == f->rank &&
           sdx_attention_rank(s->g, f->v) == f->rank && sdx_attention_rank(s->g, f->y) == f->rank;
}

/* ---- the node ---- */

/* A node of the standard's like `model`, which makes a value of the type of `typed`; -1: no memory.
 */
static int32_t add_node(const struct sdx_attention_search *s, int32_t model, int32_t typed,
                        int32_t a, int32_t b)
{
    const struct sdx_ir_node like = s->g->nodes[model];
    struct sdx_ir_node *node = sdx_ir_node_create(s->ir, s->g, like.domain, like.op_type, 2, 1, 0);
    if (!node) return -1;
    node->name = like.name;
    node->opset = like.opset;
    node->op = like.op;
    node->attrs = like.attrs;
    node->count_attrs = like.count_attrs;
    node->inputs[0] = a;
    node->inputs[1] = b;
    s->g->values[node->outputs[0]].type = s->g->values[typed].type;
    return node->outputs[0];
}

/* The factors of the heads go to q. */
static enum sdx_status scale_heads(const struct sdx_attention_search *s,
                                   struct sdx_attention_found *f)
{
    if (f->head_scale < 0) return SDX_OK;
    struct sdx_ir_node *mul = sdx_ir_node_create(s->ir, s->g, SDX_STR(""), SDX_STR("Mul"), 2, 1, 0);
    if (!mul) return SDX_FAIL_MEMORY(s->cx);
    mul->opset = 14;
    mul->op = sdx_op_find(mul->domain, mul->op_type, mul->opset);
    mul->inputs[0] = f->q;
    mul->inputs[1] = f->head_scale;
    s->g->values[mul->outputs[0]].type = s->g->values[f->q].type;
    f->q = mul->outputs[0];
    return SDX_OK;
}

/* The two parts of a split mask as one. */
static enum sdx_status join_mask(const struct sdx_attention_search *s,
                                 struct sdx_attention_found *f)
{
    if (f->split_add < 0 || f->outer >= 0) return SDX_OK;
    const struct sdx_ir_node back = s->g->nodes[f->split_back];
    int32_t sum = add_node(s, f->split_add, back.inputs[0], f->split_mask[0], f->split_mask[1]);
    if (sum >= 0) f->mask = add_node(s, f->split_back, back.outputs[0], sum, back.inputs[1]);
    return sum >= 0 && f->mask >= 0 ? SDX_OK : SDX_FAIL_MEMORY(s->cx);
}

/* A narrow mask is widened in each run, as it is beside an Add. */
static enum sdx_status widen_mask(const struct sdx_attention_search *s, int32_t *mask)
{
    if (*mask < 0 || sdx_attention_is_f32(s->g, *mask)) return SDX_OK;
    const int32_t wide = sdx_match_f32_like(s->ir, s->g, *mask);
    if (wide < 0 || !sdx_match_add_cast(s->ir, s->g, *mask, wide)) return SDX_FAIL_MEMORY(s->cx);
    *mask = wide;
    return SDX_OK;
}

static enum sdx_status build(const struct sdx_attention_search *s, struct sdx_attention_found *f)
{
    static const char *const names[] = {"q_axes", "k_axes", "v_axes", "y_axes"};
    static const char *const places[] = {"q_place", "k_place", "v_place"};
    struct sdx_ir *ir = s->ir;
    int64_t *axes = sdx_arena_copy(ir->arena, f->axes, sizeof f->axes);
    struct sdx_str name = s->g->nodes[f->weigh].name;
    SDX_TRY(join_mask(s, f));
    SDX_TRY(widen_mask(s, &f->mask));
    SDX_TRY(widen_mask(s, &f->more));
    if (!axes) return SDX_FAIL_MEMORY(s->cx);
    struct sdx_ir_node *node =
        sdx_ir_node_create(ir, s->g, SDX_STR("sardonyx"), SDX_STR("Attention"), 9, 1, PLACES + 3);
    if (!node) return SDX_FAIL_MEMORY(s->cx);
    const int32_t inputs[] = {f->q,      f->k,     f->v,     f->choice, f->mask,
                              f->factor, f->outer, f->inner, f->more};
    memcpy(node->inputs, inputs, sizeof inputs);
    node->name = name;
    node->opset = 1;
    node->op = sdx_op_find(node->domain, node->op_type, 1);
    SDX_ASSERT(node->op);
    for (int i = 0; i < 4; i++)
        node->attrs[i] = (struct sdx_ir_attr){.name = sdx_str(names[i]),
                                              .type = SDX_ATTR_INTS,
                                              .count = f->rank,
                                              .ints = axes + (size_t)i * SDX_ATTENTION_RANK};
    node->attrs[4] = (struct sdx_ir_attr){
        .name = SDX_STR("scale"), .type = SDX_ATTR_FLOAT, .f = (float)f->scale};
    node->attrs[5] =
        (struct sdx_ir_attr){.name = SDX_STR("fill"), .type = SDX_ATTR_FLOAT, .f = (float)f->fill};
    node->attrs[6] = (struct sdx_ir_attr){
        .name = SDX_STR("choice_is_false"), .type = SDX_ATTR_INT, .i = f->choice_is_false};
    node->attrs[7] = (struct sdx_ir_attr){
        .name = SDX_STR("factor_divides"), .type = SDX_ATTR_INT, .i = f->factor_divides};
    node->attrs[8] = (struct sdx_ir_attr){
        .name = SDX_STR("nan_is_zero"), .type = SDX_ATTR_INT, .i = f->nan_is_zero};
    for (int i = 0; i < 3; i++) /* peel_again may find them */
        node->attrs[PLACES + i] =
            (struct sdx_ir_attr){.name = sdx_str(places[i]), .type = SDX_ATTR_INTS};
    const int32_t dead[] = {f->softmax, f->weigh, f->turn, f->where, f->is_nan};
    for (int i = 0; i < SDX_COUNT_OF(dead); i++) {
        if (dead[i] < 0) continue;
        struct sdx_ir_node *old = &s->g->nodes[dead[i]];
        old->is_dead = true;
        s->g->values[old->outputs[0]].producer = -1;
    }
    s->g->values[node->outputs[0]].producer = -1; /* the value that came with the node */
    sdx_ir_node_set_output(s->g, node, s->g->count_nodes - 1, 0, f->y);
    return SDX_OK;
}

/* What other passes uncovered around an attention made before. */
static enum sdx_status peel_again(const struct sdx_attention_search *s, struct sdx_ir_node *node,
                                  bool *did)
{
    double scale = (double)node->attrs[4].f;
    const int rank = (int)node->attrs[0].count;
    int32_t before[3];
    int64_t *axes[3];
    bool peeled = false;
    for (int i = 0; i < 3; i++) {
        before[i] = node->inputs[i];
        axes[i] = sdx_arena_copy(s->ir->arena, node->attrs[i].ints, (size_t)rank * sizeof **axes);
        if (!axes[i]) return SDX_FAIL_MEMORY(s->cx);
        if (node->attrs[PLACES + i].count == 0)
            peel(s, &node->inputs[i], axes[i], rank, i < 2 ? &scale : NULL);
        node->attrs[i].ints = axes[i];
    }
    if (node->attrs[PLACES + 1].count == 0 && node->attrs[PLACES + 2].count == 0)
        share_heads(s, &node->inputs[1], axes[1], &node->inputs[2], axes[2], rank);
    for (int i = 0; i < 3; i++)
        peeled = peeled || node->inputs[i] != before[i];
    node->attrs[4].f = (float)scale;
    *did = *did || peeled;
    return peeled ? SDX_OK : find_places(s, node, did);
}

static enum sdx_status fuse_graph(struct sdx_attention_search *s, bool *changed)
{
    bool did = false;
    for (int32_t n = 0, count = s->g->count_nodes; n < count; n++) {
        struct sdx_ir_node *node = &s->g->nodes[n];
        struct sdx_attention_found f;
        const bool is_ours = sdx_str_is(node->domain, "sardonyx");
        if (node->is_dead || (node->domain.len && !is_ours)) continue;
        if (!sdx_str_is(node->op_type, is_ours ? "Attention" : "Softmax")) continue;
        s->uses = sdx_ir_uses(s->g, s->ir->arena);
        if (!s->uses) return SDX_FAIL_MEMORY(s->cx);
        if (is_ours) {
            SDX_TRY(peel_again(s, node, &did));
            continue;
        }
        if (!match(s, n, &f)) continue;
        SDX_TRY(scale_heads(s, &f));
        for (int i = 0; i < 3; i++)
            straight(f.axes[i], f.rank);
        f.axes[1][f.rank - 2] = f.rank - 1; /* the product reads k transposed */
        f.axes[1][f.rank - 1] = f.rank - 2;
        peel(s, &f.q, f.axes[0], f.rank, &f.scale);
        peel(s, &f.k, f.axes[1], f.rank, &f.scale);
        peel(s, &f.v, f.axes[2], f.rank, NULL);
        share_heads(s, &f.k, f.axes[1], &f.v, f.axes[2], f.rank);
        find_turn(s, &f);
        SDX_TRY(build(s, &f));
        did = true;
    }
    if (did) SDX_TRY(sdx_ir_sort(s->cx, s->ir, s->g));
    *changed = *changed || did;
    return SDX_OK;
}

enum sdx_status sdx_pass_attention(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n = 0; n < ir->count_graphs; n++) {
        struct sdx_window_mask last_mask = {0};
        struct sdx_attention_search s = {
            .cx = cx, .ir = ir, .g = &ir->graphs[n], .last_mask = &last_mask};
        SDX_TRY(fuse_graph(&s, changed));
    }
    return SDX_OK;
}
