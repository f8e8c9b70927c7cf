/* SPDX-License-Identifier: Apache-2.0
 * Symbols of lengths that are not known. What is reckoned from a symbol is one too, and the same
 * one wherever the same is reckoned, so that the passes see that two lengths are equal. */
#include "ir/ir.h"

int64_t sdx_ir_symbol_new(struct sdx_ir *ir)
{
    struct sdx_ir_symbol *symbols = sdx_ir_array_grow(ir, ir->symbols, ir->count_symbols,
                                                      &ir->capacity_symbols, sizeof *symbols);
    if (!symbols) return 0;
    ir->symbols = symbols;
    symbols[ir->count_symbols] = (struct sdx_ir_symbol){.name = SDX_STR("")};
    return -(ir->count_symbols++ + 2);
}

int32_t sdx_ir_symbol(struct sdx_ir *ir, struct sdx_str name)
{
    int32_t at = sdx_map_get(&ir->symbol_map, name);
    if (at >= 0) return -(at + 2);
    if (!sdx_map_put(&ir->symbol_map, name, ir->count_symbols)) return 0;
    int32_t dim = (int32_t)sdx_ir_symbol_new(ir);
    if (dim) ir->symbols[-(dim + 2)].name = name;
    return dim;
}

static const struct sdx_ir_length *length_of(const struct sdx_ir *ir, int64_t dim)
{
    return &ir->symbols[-(dim + 2)].length;
}

/* The one symbol of a length, which is in its simplest form. */
static int64_t intern(struct sdx_ir *ir, struct sdx_ir_length length)
{
    const int32_t at =
        sdx_map_get(&ir->length_map, (struct sdx_str){(const char *)&length, sizeof length});
    if (at >= 0) return -((int64_t)at + 2);
    const int64_t dim = sdx_ir_symbol_new(ir);
    const char *own = dim ? sdx_arena_copy(ir->arena, &length, sizeof length) : NULL;
    if (!own ||
        !sdx_map_put(&ir->length_map, (struct sdx_str){own, sizeof length}, ir->count_symbols - 1))
        return -1;
    ir->symbols[-(dim + 2)].length = length;
    return dim;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}
static int64_t greatest_common(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The same of the symbol that `to->dim` is reckoned from, where one division is enough. */
static void substitute(struct sdx_ir_length *to, const struct sdx_ir_length *from)
{
    struct sdx_ir_length l = {.dim = from->dim, .most = to->most};
    int64_t term = 0;
    if (!from->dim || from->times || from->most || (to->factor != 1 && from->divisor != 1)) return;
    if (sdx_mul_i64(to->factor, from->factor, &l.factor) &&
        sdx_mul_i64(to->divisor, from->divisor, &l.divisor) &&
        sdx_mul_i64(to->factor, from->term, &l.term) &&
        sdx_mul_i64(to->term, from->divisor, &term) && sdx_add_i64(l.term, term, &l.term))
        *to = l;
}

int64_t sdx_ir_symbol_scaled(struct sdx_ir *ir, struct sdx_ir_length length)
{
    if (length.dim > -2 || length.factor < 1 || length.divisor < 1) return -1;
    substitute(&length, length_of(ir, length.dim));
    const int64_t common = greatest_common(length.factor, length.divisor);
    length.factor /= common;
    length.divisor /= common;
    length.term = floor_div(length.term, common);
    if (length.factor == 1 && length.term == 0 && length.divisor == 1 && !length.most)
        return length.dim;
    return intern(ir, length);
}

enum { FACTORS_MOST = 16 };
/* number * the symbols, which rise. */
struct product {
    int64_t number;
    int count;
    int64_t symbols[FACTORS_MOST];
};

static bool multiply(const struct sdx_ir *ir, struct product *p, int64_t dim)
{
    if (dim == 0 || dim == -1) return false;
    if (dim > 0) return sdx_mul_i64(p->number, dim, &p->number);
    const struct sdx_ir_length *l = length_of(ir, dim);
    if (l->times) return multiply(ir, p, l->dim) && multiply(ir, p, l->times);
    if (l->dim && l->term == 0 && l->divisor == 1 && !l->most)
        return sdx_mul_i64(p->number, l->factor, &p->number) && multiply(ir, p, l->dim);
    if (p->count == FACTORS_MOST) return false;
    int at = p->count++;
    for (; at > 0 && p->symbols[at - 1] > dim; at--)
        p->symbols[at] = p->symbols[at - 1];
    p->symbols[at] = dim;
    return true;
}

int64_t sdx_ir_symbol_ratio(struct sdx_ir *ir, const int64_t *over, int count_over,
                            const int64_t *under, int count_under)
{
    struct product a = {.number = 1}, b = {.number = 1};
    for (int i = 0; i < count_over; i++)
        if (!multiply(ir, &a, over[i])) return -1;
    for (int i = 0; i < count_under; i++)
        if (!multiply(ir, &b, under[i])) return -1;
    for (int i = 0, at = 0; i < b.count; i++, a.count--) {
        while (at < a.count && a.symbols[at] != b.symbols[i])
            at++;
        if (at == a.count) return -1;
        for (int k = at; k + 1 < a.count; k++)
            a.symbols[k] = a.symbols[k + 1];
    }
    if (a.count == 0) return a.number % b.number ? 0 : a.number / b.number;
    int64_t dim = a.symbols[0];
    for (int i = 1; i < a.count && dim != -1; i++)
        dim = intern(ir, (struct sdx_ir_length){
                             .dim = dim, .times = a.symbols[i], .factor = 1, .divisor = 1});
    return sdx_ir_symbol_scaled(
        ir, (struct sdx_ir_length){.dim = dim, .factor = a.number, .divisor = b.number});
}

static int64_t sample_of(const struct sdx_ir *ir, int64_t dim, int sample, int depth)
{
    enum { LEAST = 1031, PRIME = 8191, DEPTH_MOST = 16 };
    static const int64_t strides[2] = {1009, 5003}; /* far apart: lengths are divided by strides */
    if (dim >= -1) return dim;
    const struct sdx_ir_length *l = length_of(ir, dim);
    const int64_t number = -(dim + 2);
    if (depth == DEPTH_MOST || number >= PRIME) return -1;
    if (!l->dim) /* odd numbers, different ones for different symbols */
        return LEAST + 2 * ((number + 1) * strides[sample] % PRIME);
    int64_t value = sample_of(ir, l->dim, sample, depth + 1);
    const int64_t times = l->times ? sample_of(ir, l->times, sample, depth + 1) : 1;
    if (value < 0 || times < 0 || !sdx_mul_i64(value, times, &value) ||
        !sdx_mul_i64(value, l->factor, &value) || !sdx_add_i64(value, l->term, &value))
        return -1;
    value = floor_div(value, l->divisor);
    return l->most && value > l->most ? l->most : value < 0 ? -1 : value;
}

int64_t sdx_ir_symbol_sample(const struct sdx_ir *ir, int64_t dim, int sample)
{
    const int64_t value = sample_of(ir, dim, sample, 0);
    /* of one that is the same in both nothing can be learnt */
    return dim < -1 && value == sample_of(ir, dim, 1 - sample, 0) ? -1 : value;
}
