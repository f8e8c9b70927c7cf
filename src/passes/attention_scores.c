/* SPDX-License-Identifier: Apache-2.0
 * The pass `attention`, between the product of q and k and the softmax: scores that are scaled, by
 * constants or for each head, chosen by a Where, and masked by what is added to them, whole or in
 * parts. */
#include "passes/attention.h"
#include "tensor/convert.h"

/* f32, or a large constant that the pass narrow left as it is. */
static bool may_mask(const struct sdx_ir_graph *g, int32_t value)
{
    const struct sdx_tensor *t = sdx_match_constant(g, value);
    return sdx_attention_is_f32(g, value) || (t && (t->dtype == SDX_F16 || t->dtype == SDX_BF16));
}

/* value = rest * factor, where the factor is a constant of one element that does not add axes. */
bool sdx_attention_scaled(const struct sdx_ir_graph *g, int32_t value, int32_t *rest,
                          double *factor)
{
    double c = 0;
    if (sdx_match_with_scalar(g, value, "Mul", rest, &c))
        *factor = c;
    else if (sdx_match_with_scalar(g, value, "Div", rest, &c) && c != 0)
        *factor = 1 / c;
    else
        return false;
    return sdx_attention_rank(g, *rest) == sdx_attention_rank(g, value);
}

/* The same where the factor is known only when shapes are, as GPT-2's root of the head size. */
static bool scaled_by_value(const struct sdx_ir_graph *g, int32_t value, int32_t *rest,
                            struct sdx_attention_found *f)
{
    const struct sdx_ir_node *node = sdx_match_maker(g, value, "Div");
    const bool divides = node != NULL;
    if (!divides) node = sdx_match_maker(g, value, "Mul");
    if (!node || node->count_inputs != 2 || f->factor >= 0) return false;
    const int32_t factor = node->inputs[1];
    const int rank = factor < 0 ? -1 : sdx_attention_rank(g, factor);
    if (rank < 0 || !sdx_attention_is_f32(g, factor) ||
        sdx_attention_rank(g, node->inputs[0]) != sdx_attention_rank(g, value))
        return false;
    for (int d = 0; d < rank; d++)
        if (g->values[factor].type.dims[d] != 1) return false;
    f->factor = factor;
    f->factor_divides = divides;
    *rest = node->inputs[0];
    return true;
}

enum stage { AT_MASK, AT_CHOICE, AT_SCALE };

static bool find_scores(const struct sdx_attention_search *s, int32_t value, enum stage stage,
                        struct sdx_attention_found *f);

static bool find_under_mask(const struct sdx_attention_search *s, const struct sdx_ir_node *add,
                            struct sdx_attention_found *f)
{
    for (int i = 0; i < 2; i++) {
        struct sdx_attention_found tried = *f;
        int32_t other = add->inputs[1 - i];
        if (other < 0 || other == add->inputs[i] || !may_mask(s->g, other)) continue;
        if (sdx_attention_rank(s->g, other) < 0 || sdx_attention_rank(s->g, other) > f->rank)
            continue;
        tried.mask = other;
        if (!find_scores(s, add->inputs[i], AT_CHOICE, &tried)) {
            tried = *f;
            if (f->more >= 0 ||
                !sdx_match_same_type(s->g, add->inputs[i], add->outputs[0])) /* adds no axis */
                continue;
            tried.more = other;
            if (!find_scores(s, add->inputs[i], AT_MASK, &tried)) continue;
        }
        *f = tried;
        return true;
    }
    return false;
}

static bool find_under_choice(const struct sdx_attention_search *s, const struct sdx_ir_node *where,
                              struct sdx_attention_found *f)
{
    int rank = sdx_attention_rank(s->g, where->inputs[0]);
    for (int i = 1; i <= 2 && rank >= 0 && rank <= f->rank; i++) {
        if (!sdx_match_scalar(s->g, where->inputs[3 - i], &f->fill)) continue;
        f->choice = where->inputs[0];
        f->choice_is_false = i == 2;
        return find_scores(s, where->inputs[i], AT_SCALE, f);
    }
    return false;
}

/* Do the lengths of a and b broadcast to those of `to`, all known? */
static bool broadcasts_to(const struct sdx_ir_graph *g, int32_t a, int32_t b, int32_t to)
{
    const struct sdx_type *x = &g->values[a].type, *y = &g->values[b].type;
    const struct sdx_type *t = &g->values[to].type;
    if (!x->has_shape || !y->has_shape || !t->has_shape || x->rank != t->rank || y->rank != t->rank)
        return false;
    for (int d = 0; d < t->rank; d++)
        if (x->dims[d] < 0 || y->dims[d] < 0 || t->dims[d] < 0 ||
            (x->dims[d] == 1 ? y->dims[d] : x->dims[d]) != t->dims[d])
            return false;
    return true;
}

/* Are `outer` and `inner` [..., height, 1] and [..., 1, width] where the scores, of the shape of
 * `scores`, were reshaped to [..., height, width]? Then the attention adds them key by key. */
static bool is_outer_sum(const struct sdx_ir_graph *g, int32_t outer, int32_t inner, int32_t wide,
                         int32_t scores)
{
    const struct sdx_type *o = &g->values[outer].type, *i = &g->values[inner].type;
    const struct sdx_type *w = &g->values[wide].type, *s = &g->values[scores].type;
    const int last = w->rank - 1;
    if (last < 2 || !s->has_shape || s->rank < 1 || o->dims[last] != 1 || i->dims[last - 1] != 1)
        return false;
    if (s->dims[s->rank - 1] != w->dims[last - 1] * w->dims[last]) return false;
    if (o->dims[last - 1] != w->dims[last - 1] || i->dims[last] != w->dims[last]) return false;
    for (int d = 0; d < last - 1; d++)
        if (o->dims[d] != w->dims[d] || i->dims[d] != w->dims[d]) return false;
    return w->dims[last] > 0;
}

/* In either order? Then it notes them. */
static bool find_parts(const struct sdx_ir_graph *g, int32_t a, int32_t b, int32_t wide,
                       int32_t scores, struct sdx_attention_found *f)
{
    const bool turned = !is_outer_sum(g, a, b, wide, scores);
    if (turned && !is_outer_sum(g, b, a, wide, scores)) return false;
    f->outer = turned ? b : a;
    f->inner = turned ? a : b;
    return true;
}

/* SAM adds its mask in two parts, for rows and for columns of the image, to scores reshaped to
 * [..., height, width] and back: then the mask is the sum of the parts, reshaped. */
static bool find_split_mask(const struct sdx_attention_search *s, int32_t value,
                            struct sdx_attention_found *f)
{
    const struct sdx_ir_node *back = sdx_match_maker(s->g, value, "Reshape");
    const struct sdx_ir_node *second = back ? sdx_match_maker(s->g, back->inputs[0], "Add") : NULL;
    for (int i = 0; second && s->uses[back->inputs[0]] == 1 && i < 2; i++) {
        const struct sdx_ir_node *first = sdx_match_maker(s->g, second->inputs[i], "Add");
        for (int j = 0; first && s->uses[second->inputs[i]] == 1 && j < 2; j++) {
            const struct sdx_ir_node *split = sdx_match_maker(s->g, first->inputs[j], "Reshape");
            const int32_t a = first->inputs[1 - j], b = second->inputs[1 - i];
            if (!split || s->uses[first->inputs[j]] != 1 || !sdx_attention_is_f32(s->g, a) ||
                !sdx_attention_is_f32(s->g, b))
                continue;
            if (!sdx_match_same_type(s->g, split->inputs[0], value) ||
                !broadcasts_to(s->g, a, b, first->inputs[j]))
                continue;
            (void)find_parts(s->g, a, b, first->inputs[j], value, f);
            f->split_mask[0] = a;
            f->split_mask[1] = b;
            f->split_add = (int32_t)(second - s->g->nodes);
            f->split_back = (int32_t)(back - s->g->nodes);
            return find_scores(s, split->inputs[0], AT_CHOICE, f);
        }
    }
    return false;
}

/* Or that sum is there already, reshaped, as the mask of all scores. */
static void find_summed_mask(const struct sdx_attention_search *s, struct sdx_attention_found *f)
{
    const struct sdx_ir_node *back = sdx_match_maker(s->g, f->mask, "Reshape");
    const struct sdx_ir_node *sum = back ? sdx_match_maker(s->g, back->inputs[0], "Add") : NULL;
    if (!sum || s->uses[f->mask] != 1 || s->uses[back->inputs[0]] != 1 ||
        !sdx_match_same_type(s->g, f->mask, s->g->nodes[f->softmax].outputs[0]))
        return;
    const int32_t a = sum->inputs[0], b = sum->inputs[1];
    if (sdx_attention_is_f32(s->g, a) && sdx_attention_is_f32(s->g, b) &&
        broadcasts_to(s->g, a, b, back->inputs[0]) &&
        find_parts(s->g, a, b, back->inputs[0], f->mask, f))
        f->mask = -1;
}

/* Does the Reshape only put a 1 before all axes of `from`? */
static bool adds_one(const struct sdx_type *from, const struct sdx_type *to)
{
    if (!from->has_shape || !to->has_shape || to->rank != from->rank + 1 || to->dims[0] != 1)
        return false;
    for (int d = 0; d < from->rank; d++)
        if (from->dims[d] < 1 || from->dims[d] != to->dims[d + 1]) return false;
    return true;
}

/* What Swin's mask of windows is added to; Swin v2 of Hugging Face adds it twice. */
static int32_t under_window_mask(const struct sdx_attention_search *s, int32_t scores, int32_t mask,
                                 float *times)
{
    const struct sdx_ir_node *add = sdx_match_maker(s->g, scores, "Add");
    *times = 1;
    for (int i = 0; add && s->uses[scores] == 1 && i < 2; i++) {
        if (add->inputs[1 - i] != mask) continue;
        *times = 2;
        return add->inputs[i];
    }
    return scores;
}

/* Without the first `drop` axes, f32, so many times its elements. -1: no memory. */
static int32_t new_window_mask(const struct sdx_attention_search *s, const struct sdx_tensor *mask,
                               int drop, float times)
{
    const int rank = mask->rank - drop;
    const struct sdx_window_mask *last = s->last_mask;
    if (last->made && last->data == mask->data && last->times == times &&
        sdx_dims_equal(last->made->dims, last->made->rank, mask->dims + drop, rank))
        return last->value;
    struct sdx_tensor *t = sdx_match_new_constant(s->ir, SDX_F32, rank, mask->dims + drop);
    if (!t) return -1;
    for (int64_t k = 0; k < t->count; k++)
        ((float *)t->data)[k] = (float)sdx_load_f64(mask->dtype, mask->data, k) * times;
    const int32_t value = sdx_match_add_constant(s->ir, s->g, SDX_STR("window_mask"), t);
    *s->last_mask = (struct sdx_window_mask){mask->data, times, t, value};
    return value;
}

/* Swin adds the mask of shifted windows to scores reshaped to [1, windows, heads, rows, keys] and
 * back: a mask for each window. */
static bool find_window_mask(const struct sdx_attention_search *s, int32_t value,
                             struct sdx_attention_found *f)
{
    const struct sdx_ir_node *back = sdx_match_maker(s->g, value, "Reshape");
    const struct sdx_ir_node *add = back ? sdx_match_maker(s->g, back->inputs[0], "Add") : NULL;
    if (!add || f->more >= 0 || s->uses[back->inputs[0]] != 1) return false;
    for (int i = 0; i < 2; i++) {
        float times;
        const int32_t scores = under_window_mask(s, add->inputs[i], add->inputs[1 - i], &times);
        const struct sdx_ir_node *split = sdx_match_maker(s->g, scores, "Reshape");
        const struct sdx_tensor *mask = sdx_match_constant(s->g, add->inputs[1 - i]);
        if (!split || !mask || !may_mask(s->g, add->inputs[1 - i]) || s->uses[scores] != 1 ||
            !sdx_match_same_type(s->g, split->inputs[0], value) ||
            !adds_one(&s->g->values[value].type, &s->g->values[scores].type))
            continue;
        f->more = new_window_mask(s, mask, mask->rank > f->rank, times);
        return f->more >= 0 && find_scores(s, split->inputs[0], AT_MASK, f);
    }
    return false;
}

/* value = rest * c, c a constant [..., heads, 1, 1]. */
static bool scaled_by_head(const struct sdx_ir_graph *g, int32_t value, int32_t *rest,
                           struct sdx_attention_found *f)
{
    const struct sdx_ir_node *mul = sdx_match_maker(g, value, "Mul");
    for (int i = 0; mul && f->rank == 4 && f->head_scale < 0 && i < 2; i++) {
        const struct sdx_tensor *c = sdx_match_constant(g, mul->inputs[1 - i]);
        if (!c || c->dtype != SDX_F32 || c->rank < 3 || c->rank > 4 || c->dims[c->rank - 1] != 1 ||
            c->dims[c->rank - 2] != 1 || (c->rank == 4 && c->dims[0] != 1) ||
            !sdx_match_same_type(g, mul->inputs[i], value))
            continue;
        f->head_scale = mul->inputs[1 - i];
        *rest = mul->inputs[i];
        return true;
    }
    return false;
}

/* Walks up from the softmax: an addition, a choice, factors, and the product of q and k. */
static bool find_scores(const struct sdx_attention_search *s, int32_t value, enum stage stage,
                        struct sdx_attention_found *f)
{
    for (int32_t rest = -1;; value = rest, stage = AT_SCALE) {
        double factor = 1;
        if (value < 0 || s->uses[value] != 1 || sdx_attention_rank(s->g, value) != f->rank)
            return false;
        const struct sdx_ir_node *product = sdx_match_plain_product(s->g, value);
        if (product) {
            f->q = product->inputs[0];
            f->k = product->inputs[1];
            return true;
        }
        if (sdx_attention_scaled(s->g, value, &rest, &factor))
            f->scale *= factor;
        else if (!scaled_by_value(s->g, value, &rest, f) && !scaled_by_head(s->g, value, &rest, f))
            break;
    }
    const struct sdx_ir_node *add = sdx_match_maker(s->g, value, "Add");
    if (add && stage == AT_MASK && add->count_inputs == 2) return find_under_mask(s, add, f);
    if (stage == AT_MASK && (find_split_mask(s, value, f) || find_window_mask(s, value, f)))
        return true;
    const struct sdx_ir_node *where = sdx_match_maker(s->g, value, "Where");
    return where && stage <= AT_CHOICE && where->count_inputs == 3 &&
           find_under_choice(s, where, f);
}

bool sdx_attention_scores(const struct sdx_attention_search *s, struct sdx_attention_found *f)
{
    const struct sdx_ir_node *softmax = &s->g->nodes[f->softmax];
    if (!find_scores(s, softmax->inputs[0], AT_MASK, f)) return false;
    if (f->mask >= 0 && f->outer < 0) find_summed_mask(s, f);
    return true;
}
