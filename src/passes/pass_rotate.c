/* SPDX-License-Identifier: Apache-2.0
 * Rotary embedding as Hugging Face's models spell it, x * cos + Concat(-x2, x1) * sin with the
 * halves of x by Slice or Split, becomes one operator (ops/rotate.c); so does that of GPT-J and
 * EVA-02, whose x1 and x2 are what stands at even and odd places, woven by Concat along a new last
 * axis and Reshape. A Transpose before it that leaves the last axis where it is goes behind it,
 * where attention takes it along. Keeps bits. */
#include "passes/match.h"
#include "passes/passes.h"
#include "tensor/convert.h"

enum { RANK_MAX = 4 };

struct search {
    struct sdx_context *cx;
    struct sdx_ir *ir;
    struct sdx_ir_graph *g;
    const int32_t *uses;
};

static const struct sdx_type *floats_of(const struct search *s, int32_t value)
{
    const struct sdx_type *t = value < 0 ? NULL : &s->g->values[value].type;
    return t && t->kind == SDX_KIND_TENSOR && t->has_shape && t->dtype == SDX_F32 && t->rank > 0
               ? t
               : NULL;
}

/* A constant of one integer. */
static bool integer(const struct search *s, int32_t value, int64_t *i)
{
    const struct sdx_tensor *t = sdx_match_constant(s->g, value);
    if (!t || t->count != 1 || !sdx_dtype_is_integer(t->dtype)) return false;
    *i = sdx_load_i64(t->dtype, t->data, 0);
    return true;
}

/* The x whose first (0) or second half along the last axis `value` is; -1: it is none. */
static int32_t halved(const struct search *s, int32_t value, int half)
{
    const struct sdx_ir_node *node = sdx_match_maker(s->g, value, "Slice");
    const struct sdx_ir_node *split = node ? NULL : sdx_match_maker(s->g, value, "Split");
    const int32_t x = node ? node->inputs[0] : split ? split->inputs[0] : -1;
    const struct sdx_type *t = floats_of(s, x), *part = floats_of(s, value);
    if (!t || !part || part->rank != t->rank) return -1;
    const int last = t->rank - 1;
    const int64_t size = t->dims[last];
    if (size < 2 || size % 2 || part->dims[last] != size / 2) return -1;
    int64_t axis, start, end, step = 1;
    if (split) {
        axis = sdx_ir_attr_int(split, "axis", 0);
        return (axis == -1 || axis == last) && split->count_outputs == 2 &&
                       split->outputs[half] == value
                   ? x
                   : -1;
    }
    if (node->count_inputs < 4 || !integer(s, node->inputs[3], &axis)) return -1;
    if (!integer(s, node->inputs[1], &start)) { /* up to the end: where it starts is told so too */
        if (!integer(s, node->inputs[2], &end) || end < size) return -1;
        start = size / 2;
    }
    if (node->count_inputs > 4 && node->inputs[4] >= 0 && !integer(s, node->inputs[4], &step))
        return -1;
    if (start < 0) start += size;
    return (axis == -1 || axis == last) && step == 1 && start == half * (size / 2) ? x : -1;
}

/* The x whose even (0) or odd places along the last axis `value` is; -1: it is none. */
static int32_t every_second(const struct search *s, int32_t value, int first)
{
    const struct sdx_ir_node *node = sdx_match_maker(s->g, value, "Slice");
    const struct sdx_type *t = node ? floats_of(s, node->inputs[0]) : NULL;
    const struct sdx_type *part = floats_of(s, value);
    int64_t axis, start, step;
    if (!t || !part || node->count_inputs < 5 || !integer(s, node->inputs[1], &start) ||
        !integer(s, node->inputs[3], &axis) || !integer(s, node->inputs[4], &step))
        return -1;
    const int64_t size = t->dims[t->rank - 1];
    return size >= 2 && size % 2 == 0 && part->dims[t->rank - 1] == size / 2 &&
                   (axis == -1 || axis == t->rank - 1) && step == 2 && start == first
               ? node->inputs[0]
               : -1;
}

/* What `value` is with a new last axis; -1: it is not so. */
static int32_t before_unsqueeze(const struct search *s, int32_t value)
{
    const struct sdx_ir_node *node = sdx_match_maker(s->g, value, "Unsqueeze");
    const struct sdx_type *t = floats_of(s, value);
    const struct sdx_type *from = node ? floats_of(s, node->inputs[0]) : NULL;
    if (!t || !from || t->rank != from->rank + 1 || t->dims[from->rank] != 1) return -1;
    return t->dims[from->rank - 1] == from->dims[from->rank - 1] ? node->inputs[0] : -1;
}

/* The x of which `value` is Concat(-x2, x1), or that with the two woven; -1: it is none. */
static int32_t turned_half(const struct search *s, int32_t value, bool *interleaved)
{
    const struct sdx_ir_node *reshape = sdx_match_maker(s->g, value, "Reshape");
    const struct sdx_ir_node *concat =
        sdx_match_maker(s->g, reshape ? reshape->inputs[0] : value, "Concat");
    const struct sdx_type *t = concat ? floats_of(s, concat->outputs[0]) : NULL;
    if (!t || concat->count_inputs != 2) return -1;
    const int64_t axis = sdx_ir_attr_int(concat, "axis", 0);
    if (axis != -1 && axis != t->rank - 1) return -1;
    *interleaved = reshape != NULL;
    int32_t parts[2];
    for (int i = 0; i < 2; i++)
        parts[i] = reshape ? before_unsqueeze(s, concat->inputs[i]) : concat->inputs[i];
    const struct sdx_ir_node *neg = sdx_match_maker(s->g, parts[0], "Neg");
    if (!neg || parts[1] < 0) return -1;
    const int32_t x = (reshape ? every_second : halved)(s, neg->inputs[0], 1);
    if (x < 0 || (reshape && !sdx_match_same_type(s->g, value, x))) return -1;
    return (reshape ? every_second : halved)(s, parts[1], 0) == x ? x : -1;
}

/* Does it go with x, and has all of its last axis? */
static bool fits(const struct search *s, int32_t value, const struct sdx_type *x)
{
    const struct sdx_type *t = floats_of(s, value);
    return t && t->rank <= x->rank && t->dims[t->rank - 1] == x->dims[x->rank - 1];
}

struct found {
    int32_t x, cos, sin;
    int32_t turn; /* the Transpose that makes x, to go behind; -1: none */
    bool interleaved;
};

static bool match(const struct search *s, const struct sdx_ir_node *add, struct found *f)
{
    for (int i = 0; i < 2; i++) {
        const struct sdx_ir_node *plain = sdx_match_maker(s->g, add->inputs[i], "Mul");
        const struct sdx_ir_node *turned = sdx_match_maker(s->g, add->inputs[1 - i], "Mul");
        for (int j = 0; plain && turned && plain != turned && j < 2; j++) {
            f->x = turned_half(s, turned->inputs[j], &f->interleaved);
            f->sin = turned->inputs[1 - j];
            if (f->x < 0 || (plain->inputs[0] != f->x && plain->inputs[1] != f->x)) continue;
            f->cos = plain->inputs[plain->inputs[0] == f->x];
            const struct sdx_type *x = floats_of(s, f->x);
            return x && fits(s, f->cos, x) && fits(s, f->sin, x);
        }
    }
    return false;
}

/* Do the elements of an operand lie in order when its axes go where those of x come from? */
static bool stays_in_order(const struct search *s, int32_t value, const int64_t *perm, int rank)
{
    const struct sdx_type *t = floats_of(s, value);
    int64_t last = -1;
    for (int d = 0; d < t->rank; d++) {
        const int64_t to = perm[d + rank - t->rank];
        if (t->dims[d] == 1) continue;
        if (to <= last) return false;
        last = to;
    }
    return true;
}

static void find_turn(const struct search *s, struct found *f)
{
    const struct sdx_ir_node *turn = sdx_match_maker(s->g, f->x, "Transpose");
    int64_t count = 0;
    const int64_t *perm = turn ? sdx_ir_attr_ints(turn, "perm", &count) : NULL;
    f->turn = -1;
    if (!perm || count > RANK_MAX || perm[count - 1] != count - 1 || s->uses[f->x] > 3) return;
    if (!floats_of(s, turn->inputs[0]) || !stays_in_order(s, f->cos, perm, (int)count) ||
        !stays_in_order(s, f->sin, perm, (int)count))
        return;
    f->turn = (int32_t)(turn - s->g->nodes);
}

static enum sdx_status build(const struct search *s, int32_t n, const struct found *f)
{
    const struct sdx_ir_node turn = s->g->nodes[f->turn < 0 ? 0 : f->turn];
    struct sdx_ir_node *node =
        sdx_ir_node_create(s->ir, s->g, SDX_STR("sardonyx"), SDX_STR("Rotate"), 3, 1, 2);
    if (!node) return SDX_FAIL_MEMORY(s->cx);
    const int32_t x = f->turn < 0 ? f->x : turn.inputs[0], y = s->g->nodes[n].outputs[0];
    const int32_t rotated = node->outputs[0];
    node->inputs[0] = x;
    node->inputs[1] = f->cos;
    node->inputs[2] = f->sin;
    node->name = s->g->nodes[n].name;
    node->opset = 1;
    node->op = sdx_op_find(node->domain, node->op_type, 1);
    SDX_ASSERT(node->op);
    node->attrs[0] =
        (struct sdx_ir_attr){SDX_STR("interleaved"), SDX_ATTR_INT, .i = f->interleaved};
    if (f->turn >= 0) {
        const struct sdx_type *made = &s->g->values[y].type;
        struct sdx_type *type = &s->g->values[rotated].type;
        int64_t *dims = sdx_arena_array(s->ir->arena, RANK_MAX, sizeof *dims);
        if (!dims) return SDX_FAIL_MEMORY(s->cx);
        *type = *made;
        type->dims = dims;
        for (int d = 0; made->has_shape && d < made->rank; d++)
            dims[turn.attrs[0].ints[d]] = made->dims[d];
        struct sdx_ir_node *behind = &s->g->nodes[n];
        SDX_TRY(sdx_match_become(s->cx, s->ir, behind, "Transpose", turn.opset, &rotated, 1, 1));
        behind->attrs[behind->count_attrs++] = node->attrs[1] = turn.attrs[0];
        node->attrs[1].name = SDX_STR("order");
        return SDX_OK;
    }
    node->count_attrs = 1;
    s->g->nodes[n].is_dead = true;
    s->g->values[rotated].producer = -1;
    sdx_ir_node_set_output(s->g, node, s->g->count_nodes - 1, 0, y);
    return SDX_OK;
}

static enum sdx_status fuse_graph(struct search *s, bool *changed)
{
    int32_t *uses = sdx_ir_uses(s->g, s->ir->arena);
    bool did = false;
    if (!uses) return SDX_FAIL_MEMORY(s->cx);
    s->uses = uses;
    for (int32_t n = 0, count = s->g->count_nodes; n < count; n++) {
        const struct sdx_ir_node *add = &s->g->nodes[n];
        struct found f;
        if (add->is_dead || add->domain.len || !sdx_str_is(add->op_type, "Add") ||
            add->count_inputs != 2 || add->count_attrs || !match(s, add, &f))
            continue;
        find_turn(s, &f);
        SDX_TRY(build(s, n, &f));
        did = true;
    }
    if (did) SDX_TRY(sdx_ir_sort(s->cx, s->ir, s->g));
    *changed = *changed || did;
    return SDX_OK;
}

enum sdx_status sdx_pass_rotate(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t n = 0; n < ir->count_graphs; n++) {
        struct search s = {.cx = cx, .ir = ir, .g = &ir->graphs[n]};
        SDX_TRY(fuse_graph(&s, changed));
    }
    return SDX_OK;
}
