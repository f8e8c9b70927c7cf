/* SPDX-License-Identifier: Apache-2.0
 * An Einsum of one operand that sums or moves axes becomes ReduceSum and Transpose. One of two that
 * is a matrix product becomes a MatMul between Transposes and Reshapes, of which what constants
 * need is done once: their products are packed, and attention and what a store can do are found as
 * they are behind a MatMul. Labels of both operands are the batch, or K when they are summed; of
 * the others all or a run are the rows and the columns, and what is left are further axes of the
 * batch, along which the operand without them is repeated. One of two that sums nothing is a Mul
 * of operands with axes of length 1 between theirs. */
#include <math.h>

#include "ops/einsum.h"
#include "ops/lower.h"
#include "passes/match.h"
#include "passes/passes.h"

enum { OPERANDS = 2, MOST = SDX_RANK_MAX };

/* Distinct letters. */
struct term {
    int count;
    char labels[MOST];
};
struct equation {
    struct term in[OPERANDS], out;
    int64_t dims[128]; /* of each label; below 0: not known */
};
/* What the lengths of a Reshape say: the number, 0 for that of the same axis, -1 for one of the
 * others. */
struct lengths {
    int count, guessed;
    bool is_needed; /* is anything joined, split or put between? */
    int64_t dims[MOST + 2];
};
/* A product of operand `left` and the other one: [batch..., rows, inner] by
 * [batch..., inner, columns]. */
struct product {
    int left;
    bool joins_rows;
    struct term batch, rows, columns, inner;
    struct term turned[OPERANDS], result; /* operands and result as the product has them */
    struct lengths lengths[OPERANDS], split;
};

static bool has(const struct term *t, char label)
{
    return memchr(t->labels, label, (size_t)t->count) != NULL;
}
static void append(struct term *to, char label)
{
    to->labels[to->count++] = label;
}
static bool equal(const struct term *a, const struct term *b)
{
    return a->count == b->count && memcmp(a->labels, b->labels, (size_t)a->count) == 0;
}

static bool take_term(struct sdx_str from, struct term *to)
{
    if (from.len > MOST) return false;
    to->count = 0;
    for (size_t i = 0; i < from.len; i++) {
        const char c = from.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return false;
        append(to, c);
    }
    return true;
}
/* An explicit equation of two operands. */
static bool read_equation(const struct sdx_ir_node *node, struct equation *eq)
{
    struct sdx_einsum e;
    return node->count_inputs == OPERANDS && sdx_einsum_read(node, &e) && e.is_explicit &&
           take_term(e.term[0], &eq->in[0]) && take_term(e.term[1], &eq->in[1]) &&
           take_term(e.term[OPERANDS], &eq->out);
}
/* The length of each label; a label of both operands must have the same one for certain. */
static bool read_lengths(const struct sdx_ir_graph *g, const struct sdx_ir_node *node,
                         struct equation *eq)
{
    for (int i = 0; i < OPERANDS; i++) {
        const struct sdx_type *t = node->inputs[i] < 0 ? NULL : &g->values[node->inputs[i]].type;
        const struct term *term = &eq->in[i];
        if (!t || t->kind != SDX_KIND_TENSOR || t->dtype != SDX_F32 || !t->has_shape) return false;
        if (t->rank != term->count) return false;
        for (int d = 0; d < t->rank; d++) {
            int64_t *dim = &eq->dims[(int)term->labels[d]];
            if (i == 1 && has(&eq->in[0], term->labels[d]) && (*dim != t->dims[d] || *dim == -1))
                return false;
            *dim = t->dims[d];
            if (*dim == 0) return false;
        }
    }
    return true;
}

/* The labels in the result that `own` has and `other` does not: all, or the last run of them. */
static struct term own_labels(const struct equation *eq, const struct term *own,
                              const struct term *other, bool all)
{
    struct term run = {.count = 0};
    for (int i = 0; i < eq->out.count; i++) {
        const char label = eq->out.labels[i];
        if (!has(own, label) || has(other, label)) continue;
        if (!all && run.count && eq->out.labels[i - 1] != run.labels[run.count - 1]) run.count = 0;
        append(&run, label);
    }
    return run;
}

/* One more axis, at place `from` of the value that is reshaped, or put between. */
static void say_length(struct lengths *l, int64_t dim, int from)
{
    const bool stays = from == l->count;
    if (dim < 0 && !stays) l->guessed++;
    l->dims[l->count++] = dim >= 0 ? dim : stays ? 0 : -1;
}
/* Labels that become one axis, from place `from` on. */
static void say_joined(const struct equation *eq, struct lengths *l, const struct term *labels,
                       int from)
{
    int64_t dim = 1;
    for (int i = 0; i < labels->count; i++) {
        const int64_t one = eq->dims[(int)labels->labels[i]];
        dim = dim < 0 || one < 0 || dim > INT64_MAX / one ? -1 : dim * one;
    }
    l->is_needed = l->is_needed || labels->count > 1;
    say_length(l, dim, labels->count == 1 ? from : -1);
}
static void say_each(const struct equation *eq, struct lengths *l, const struct term *labels,
                     int from)
{
    for (int i = 0; i < labels->count; i++)
        say_length(l, eq->dims[(int)labels->labels[i]], from + i);
}

/* The order and the lengths of an operand's axes of the batch, from the first that it has. */
static void lay_out_batch(const struct equation *eq, struct product *p, int operand)
{
    struct term *t = &p->turned[operand];
    struct lengths *l = &p->lengths[operand];
    for (int i = 0; i < p->batch.count; i++) {
        const char label = p->batch.labels[i];
        const bool is_there = has(&eq->in[operand], label);
        if (!is_there && l->count == 0) continue;
        l->is_needed = l->is_needed || !is_there;
        say_length(l, is_there ? eq->dims[(int)label] : 1, is_there ? t->count : -1);
        if (is_there) append(t, label);
    }
}
/* Of all: batch, then `first` and `second`. */
static void lay_out(const struct equation *eq, struct product *p, int operand,
                    const struct term *first, bool joins_first, const struct term *second)
{
    struct term *t = &p->turned[operand];
    struct lengths *l = &p->lengths[operand];
    lay_out_batch(eq, p, operand);
    if (joins_first)
        say_joined(eq, l, first, t->count);
    else
        say_each(eq, l, first, t->count);
    for (int i = 0; i < first->count; i++)
        append(t, first->labels[i]);
    say_joined(eq, l, second, t->count);
    for (int i = 0; i < second->count; i++)
        append(t, second->labels[i]);
}

/* all: no label of one operand alone is an axis of the batch. */
static bool plan(const struct equation *eq, int left, bool all, struct product *p)
{
    const struct term *x = &eq->in[left], *y = &eq->in[1 - left];
    memset(p, 0, sizeof *p);
    p->left = left;
    p->rows = own_labels(eq, x, y, all);
    p->columns = own_labels(eq, y, x, all);
    for (int i = 0; i < x->count; i++)
        if (!has(&eq->out, x->labels[i])) {
            if (!has(y, x->labels[i])) return false; /* summed alone */
            append(&p->inner, x->labels[i]);
        }
    for (int i = 0; i < y->count; i++)
        if (!has(&eq->out, y->labels[i]) && !has(x, y->labels[i])) return false;
    if (!p->rows.count || !p->columns.count || !p->inner.count) return false;
    for (int i = 0; i < eq->out.count; i++) {
        const char label = eq->out.labels[i];
        if (!has(x, label) && !has(y, label)) return false;
        if (has(&p->rows, label) || has(&p->columns, label)) continue;
        append(&p->batch, label);
        p->joins_rows = p->joins_rows || has(y, label);
    }
    lay_out(eq, p, left, &p->rows, p->joins_rows, &p->inner);
    lay_out(eq, p, 1 - left, &p->inner, true, &p->columns);
    const struct term *parts[] = {&p->batch, &p->rows, &p->columns};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < parts[k]->count; i++)
            append(&p->result, parts[k]->labels[i]);
    p->split.is_needed = (p->joins_rows && p->rows.count > 1) || p->columns.count > 1;
    say_each(eq, &p->split, &p->batch, 0);
    say_each(eq, &p->split, &p->rows, p->joins_rows && p->rows.count > 1 ? MOST : p->batch.count);
    say_each(eq, &p->split, &p->columns,
             p->split.is_needed ? MOST : p->batch.count + p->rows.count);
    for (int i = 0; i < OPERANDS; i++)
        if (p->lengths[i].count > MOST || p->lengths[i].guessed > 1) return false;
    return p->split.guessed <= 1;
}

/* `value`, whose axes are `from`, with those of `to`. */
static int32_t turn(struct sdx_lower *lx, int32_t value, const struct term *from,
                    const struct term *to)
{
    int64_t perm[MOST];
    if (equal(from, to)) return value;
    for (int i = 0; i < to->count; i++)
        perm[i] =
            (const char *)memchr(from->labels, to->labels[i], (size_t)from->count) - from->labels;
    const int32_t turned = sdx_lower_unary(lx, "Transpose", value);
    sdx_lower_attr_ints(lx, "perm", to->count, perm);
    return turned;
}
static int32_t reshape(struct sdx_lower *lx, int32_t value, const struct lengths *l)
{
    if (!l->is_needed) return value;
    return sdx_lower_binary(lx, "Reshape", value, sdx_lower_ints(lx, l->count, l->dims));
}

static int32_t laid_out(struct sdx_lower *lx, const struct equation *eq, const struct product *p,
                        int operand)
{
    const int32_t x = sdx_lower_input(lx, operand);
    return reshape(lx, turn(lx, x, &eq->in[operand], &p->turned[operand]), &p->lengths[operand]);
}
static enum sdx_status replace(struct sdx_lower *lx, const struct equation *eq,
                               const struct product *p)
{
    const int32_t first = laid_out(lx, eq, p, 0), second = laid_out(lx, eq, p, 1);
    const int32_t y =
        sdx_lower_binary(lx, "MatMul", p->left ? second : first, p->left ? first : second);
    sdx_lower_output(lx, 0, turn(lx, reshape(lx, y, &p->split), &p->result, &eq->out));
    lx->graph->nodes[lx->node].is_dead = true;
    return lx->status;
}

/* A length that is not known counts as UNKNOWN. */
static double volume(const struct equation *eq, const struct term *labels)
{
    enum { UNKNOWN = 64 };
    double elements = 1;
    for (int i = 0; i < labels->count; i++) {
        const int64_t dim = eq->dims[(int)labels->labels[i]];
        elements *= dim < 0 ? UNKNOWN : (double)dim;
    }
    return elements;
}
/* What is not multiplications, in elements: those that Transposes move, of values that are not
 * constant, those that each product packs, and what it takes to begin one. */
static double cost_of(const struct sdx_ir_graph *g, const struct sdx_ir_node *node,
                      const struct equation *eq, const struct product *p)
{
    enum { BEGIN = 200 };
    const double packed = sdx_match_constant(g, node->inputs[1 - p->left])
                              ? 0
                              : volume(eq, &p->inner) * volume(eq, &p->columns);
    double sum = volume(eq, &p->batch) * (BEGIN + packed);
    for (int i = 0; i <= OPERANDS; i++) {
        const struct term *from = i < OPERANDS ? &eq->in[i] : &eq->out;
        if (equal(from, i < OPERANDS ? &p->turned[i] : &p->result)) continue;
        if (i < OPERANDS && sdx_match_constant(g, node->inputs[i])) continue;
        sum += volume(eq, from);
    }
    return sum;
}

static bool match_pair(const struct sdx_ir_graph *g, const struct sdx_ir_node *node,
                       struct equation *eq)
{
    return !node->is_dead && !node->domain.len && sdx_str_is(node->op_type, "Einsum") &&
           read_equation(node, eq) && read_lengths(g, node, eq);
}
static bool plan_product(const struct sdx_ir_graph *g, const struct sdx_ir_node *node,
                         const struct equation *eq, struct product *p)
{
    struct product other;
    double least = INFINITY;
    for (int way = 0; way < 4; way++) {
        if (!plan(eq, way % 2, way / 2, &other)) continue;
        const double cost = cost_of(g, node, eq, &other);
        if (!(cost < least)) continue;
        least = cost;
        *p = other;
    }
    return least < INFINITY;
}

static bool has_diagonal(const struct term *t)
{
    for (int i = 0; i < t->count; i++)
        if (memchr(t->labels, t->labels[i], (size_t)i)) return true;
    return false;
}
/* Nothing summed: both operands have the axes of the result, which are those of the batch. */
static bool plan_times(const struct equation *eq, struct product *p)
{
    memset(p, 0, sizeof *p);
    p->batch = eq->out;
    for (int i = 0; i < eq->out.count; i++)
        if (!has(&eq->in[0], eq->out.labels[i]) && !has(&eq->in[1], eq->out.labels[i]))
            return false;
    for (int i = 0; i < OPERANDS; i++) {
        if (has_diagonal(&eq->in[i])) return false;
        lay_out_batch(eq, p, i);
        if (p->turned[i].count != eq->in[i].count || p->lengths[i].guessed > 1) return false;
    }
    return true;
}
static enum sdx_status replace_times(struct sdx_lower *lx, const struct equation *eq,
                                     const struct product *p)
{
    const int32_t first = laid_out(lx, eq, p, 0), second = laid_out(lx, eq, p, 1);
    sdx_lower_output(lx, 0, sdx_lower_binary(lx, "Mul", first, second));
    lx->graph->nodes[lx->node].is_dead = true;
    return lx->status;
}

/* One operand, some of whose axes are summed or moved. */
static bool match_sum(const struct sdx_ir_graph *g, const struct sdx_ir_node *node,
                      struct equation *eq)
{
    struct sdx_einsum e;
    if (node->is_dead || node->domain.len || !sdx_str_is(node->op_type, "Einsum") ||
        node->count_inputs != 1 || !sdx_einsum_read(node, &e) || !e.is_explicit ||
        !take_term(e.term[0], &eq->in[0]) || !take_term(e.term[1], &eq->out))
        return false;
    const struct sdx_type *t = node->inputs[0] < 0 ? NULL : &g->values[node->inputs[0]].type;
    if (!t || t->kind != SDX_KIND_TENSOR || t->dtype != SDX_F32 || !t->has_shape ||
        t->rank != eq->in[0].count)
        return false;
    if (has_diagonal(&eq->in[0])) return false;
    for (int i = 0; i < eq->out.count; i++)
        if (!has(&eq->in[0], eq->out.labels[i])) return false;
    return true;
}
static enum sdx_status replace_sum(struct sdx_lower *lx, const struct equation *eq)
{
    struct term left = {0};
    int64_t axes[MOST];
    int count = 0;
    for (int i = 0; i < eq->in[0].count; i++)
        if (has(&eq->out, eq->in[0].labels[i]))
            append(&left, eq->in[0].labels[i]);
        else
            axes[count++] = i;
    int32_t y = sdx_lower_input(lx, 0);
    if (count && lx->opset >= 13) {
        y = sdx_lower_binary(lx, "ReduceSum", y, sdx_lower_ints(lx, count, axes));
    } else if (count) {
        y = sdx_lower_unary(lx, "ReduceSum", y);
        sdx_lower_attr_ints(lx, "axes", count, axes);
    }
    if (count) sdx_lower_attr_int(lx, "keepdims", 0);
    y = turn(lx, y, &left, &eq->out);
    sdx_lower_output(lx, 0, y == sdx_lower_input(lx, 0) ? sdx_lower_unary(lx, "Identity", y) : y);
    lx->graph->nodes[lx->node].is_dead = true;
    return lx->status;
}

enum sdx_status sdx_pass_einsum(struct sdx_context *cx, struct sdx_ir *ir, bool *changed)
{
    for (int32_t graph = 0; graph < ir->count_graphs; graph++) {
        struct sdx_ir_graph *g = &ir->graphs[graph];
        bool did = false;
        for (int32_t n = 0, count = g->count_nodes; n < count; n++) {
            struct equation eq;
            struct product p;
            const struct sdx_ir_node *node = &g->nodes[n];
            const bool sums = match_sum(g, node, &eq);
            if (!sums && !match_pair(g, node, &eq)) continue;
            const bool times = !sums && plan_times(&eq, &p);
            if (!sums && !times && !plan_product(g, node, &eq, &p)) continue;
            struct sdx_lower lx = {
                .cx = cx, .ir = ir, .graph = g, .node = n, .opset = g->nodes[n].opset};
            SDX_TRY(sums    ? replace_sum(&lx, &eq)
                    : times ? replace_times(&lx, &eq, &p)
                            : replace(&lx, &eq, &p));
            did = true;
        }
        if (did) SDX_TRY(sdx_ir_sort(cx, ir, g));
        *changed = *changed || did;
    }
    return *changed ? sdx_passes_infer(cx, ir) : SDX_OK;
}
