/* SPDX-License-Identifier: Apache-2.0
 * Reads formulas. They are our own texts: what they hold is asserted, not checked. */
#include "convert/formula.h"

#include <stdio.h>

enum { INPUTS_MAX = 6, LIST_MAX = 16 };

static bool skip(struct sdx_formula *f, char c)
{
    while (*f->at == ' ')
        f->at++;
    if (*f->at != c) return false;
    f->at++;
    return true;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static struct sdx_str word(struct sdx_formula *f)
{
    (void)skip(f, ' ');
    const char *from = f->at;
    while (is_word(*f->at))
        f->at++;
    return (struct sdx_str){from, (size_t)(f->at - from)};
}

static bool is_number(struct sdx_formula *f)
{
    (void)skip(f, ' ');
    return *f->at == '-' || (*f->at >= '0' && *f->at <= '9');
}

/* A whole number, and what stands behind its point. */
static double number(struct sdx_formula *f, int64_t *whole)
{
    const bool minus = skip(f, '-');
    int64_t v = 0;
    double part = 0, unit = 1;
    while (*f->at >= '0' && *f->at <= '9')
        v = 10 * v + (*f->at++ - '0');
    if (*f->at == '.')
        for (f->at++; *f->at >= '0' && *f->at <= '9'; f->at++) {
            unit *= 10;
            part = 10 * part + (*f->at - '0');
        }
    *whole = minus ? -v : v;
    return minus ? -((double)v + part / unit) : (double)v + part / unit;
}

static int list(struct sdx_formula *f, int64_t *v)
{
    int count = 0;
    while (!skip(f, ']')) {
        SDX_ASSERT(count < LIST_MAX);
        (void)number(f, &v[count++]);
        (void)skip(f, ',');
    }
    return count;
}

static void attributes(struct sdx_formula *f, struct sdx_onnx_node *node)
{
    int64_t v[LIST_MAX];
    while (!skip(f, '}')) {
        const struct sdx_str name = word(f);
        const char *key = sdx_arena_printf(f->rx->arena, "%.*s", SDX_STR_ARG(name));
        if (!skip(f, '=') || !key) return; /* no memory: the step fails at the next node */
        if (skip(f, '[')) {
            const int count = list(f, v);
            sdx_rewrite_set_ints(f->rx, node, key, count, v);
        } else {
            (void)number(f, &v[0]);
            sdx_rewrite_set_int(f->rx, node, key, v[0]);
        }
        (void)skip(f, ',');
    }
}

static struct sdx_str named(const struct sdx_formula *f, struct sdx_str name)
{
    if (name.len == 3 && name.ptr[0] == 'i' && name.ptr[1] == 'n')
        return sdx_rewrite_input(f->rx, name.ptr[2] - '0');
    for (int i = 0; i < f->count; i++)
        if (sdx_str_equal(f->locals[i].name, name)) return f->locals[i].value;
    SDX_ASSERT(!"a name that the formula does not know");
    return SDX_NONE;
}

/* Of the version of the step's end; `output` "": a fresh name. */
static struct sdx_str value(struct sdx_formula *f, struct sdx_str output)
{
    struct sdx_rewrite *rx = f->rx;
    int64_t whole, v[LIST_MAX];
    if (is_number(f)) {
        const double x = number(f, &whole);
        if (skip(f, 'i')) return sdx_rewrite_const_int(rx, whole);
        return sdx_rewrite_const_number(rx, skip(f, 'f') ? SDX_F32 : f->dtype, 0, x);
    }
    if (skip(f, '[')) {
        const int count = list(f, v);
        return sdx_rewrite_const_ints(rx, count, v);
    }
    const struct sdx_str name = word(f);
    if (!skip(f, '(')) {
        const struct sdx_str known = named(f, name);
        if (output.len) sdx_rewrite_before(rx, "Identity", output, known, SDX_NONE, SDX_NONE);
        return known;
    }
    struct sdx_str in[INPUTS_MAX];
    int count = 0;
    while (!skip(f, ')')) {
        SDX_ASSERT(count < INPUTS_MAX);
        in[count++] = value(f, SDX_NONE);
        (void)skip(f, ',');
    }
    struct sdx_onnx_node *node = sdx_rewrite_add(rx, name, output, count, in);
    if (skip(f, '{')) attributes(f, node);
    return sdx_rewrite_out(node);
}

void sdx_formula_init(struct sdx_formula *f, struct sdx_rewrite *rx, int dtype)
{
    *f = (struct sdx_formula){.rx = rx, .dtype = dtype};
}

void sdx_formula_set(struct sdx_formula *f, const char *name, struct sdx_str known)
{
    int at = 0;
    while (at < f->count && !sdx_str_is(f->locals[at].name, name))
        at++;
    SDX_ASSERT(at < SDX_COUNT_OF(f->locals));
    if (at == f->count) f->count++;
    f->locals[at].name = sdx_str(name);
    f->locals[at].value = known;
}

struct sdx_str sdx_formula_get(const struct sdx_formula *f, const char *name)
{
    return named(f, sdx_str(name));
}

void sdx_formula_add(struct sdx_formula *f, const char *format, ...)
{
    char text[800];
    va_list numbers;
    va_start(numbers, format);
    const int length = vsnprintf(text, sizeof text, format, numbers);
    va_end(numbers);
    SDX_ASSERT(length > 0 && length < SDX_COUNT_OF(text));
    (void)length;
    f->at = text;
    while (*f->at && f->rx->status == SDX_OK) {
        const struct sdx_str name = word(f);
        const bool is_output = name.len == 4 && memcmp(name.ptr, "out", 3) == 0;
        const struct sdx_str output =
            is_output ? sdx_rewrite_output(f->rx, name.ptr[3] - '0') : SDX_NONE;
        (void)skip(f, '=');
        const struct sdx_str made = value(f, output);
        char *key = is_output ? NULL : sdx_arena_printf(f->rx->arena, "%.*s", SDX_STR_ARG(name));
        if (key) sdx_formula_set(f, key, made);
        (void)skip(f, ';');
        (void)skip(f, ' ');
    }
}
