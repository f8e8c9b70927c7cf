/* SPDX-License-Identifier: Apache-2.0
 * Open addressing with linear steps; at most half of the slots are taken. */
#include "ops/ml_lookup.h"

#include <math.h>

#include "tensor/convert.h"

static uint64_t hash_of(const struct sdx_lookup *t, int64_t number, double real, struct sdx_str s)
{
    if (t->kind == SDX_LOOKUP_TEXT) return sdx_hash_bytes(s.ptr, s.len, 0);
    if (t->kind == SDX_LOOKUP_INT) return sdx_hash_bytes(&number, sizeof number, 0);
    double key = isnan(real) ? (double)NAN : real + 0.0;
    return sdx_hash_bytes(&key, sizeof key, 0);
}

static bool is_key(const struct sdx_lookup *t, int64_t position, int64_t number, double real,
                   struct sdx_str s)
{
    if (t->kind == SDX_LOOKUP_TEXT) return sdx_str_equal(t->texts[position], s);
    if (t->kind == SDX_LOOKUP_INT) return t->ints[position] == number;
    return t->reals[position] == real || (isnan(t->reals[position]) && isnan(real));
}

/* The slot of the key, or the free one where it would stand. */
static int64_t slot_of(const struct sdx_lookup *t, int64_t number, double real, struct sdx_str s)
{
    int64_t at = (int64_t)(hash_of(t, number, real, s) & (uint64_t)(t->capacity - 1));
    while (t->slots[at] && !is_key(t, t->slots[at] - 1, number, real, s))
        at = (at + 1) & (t->capacity - 1);
    return at;
}

static enum sdx_status fill(struct sdx_prepare *px, struct sdx_lookup *t)
{
    if (t->count > INT32_MAX / 4)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: %lld keys",
                        SDX_STR_ARG(px->node->op_type), (long long)t->count);
    for (t->capacity = 8; t->capacity < t->count * 2;)
        t->capacity *= 2;
    t->slots = sdx_prepare_alloc(px, (size_t)t->capacity * sizeof *t->slots);
    if (!t->slots) return px->cx->error.status;
    struct sdx_str none = {NULL, 0};
    for (int64_t i = 0; i < t->count; i++) {
        int64_t slot = slot_of(t, t->ints ? t->ints[i] : 0, t->reals ? t->reals[i] : 0,
                               t->texts ? t->texts[i] : none);
        t->slots[slot] = (int32_t)i + 1;
    }
    return SDX_OK;
}

enum sdx_status sdx_lookup_ints(struct sdx_prepare *px, struct sdx_lookup *out, const int64_t *keys,
                                int64_t count)
{
    *out = (struct sdx_lookup){.kind = SDX_LOOKUP_INT, .count = count, .ints = keys};
    return fill(px, out);
}

enum sdx_status sdx_lookup_reals(struct sdx_prepare *px, struct sdx_lookup *out, const double *keys,
                                 int64_t count)
{
    *out = (struct sdx_lookup){.kind = SDX_LOOKUP_REAL, .count = count, .reals = keys};
    return fill(px, out);
}

enum sdx_status sdx_lookup_texts(struct sdx_prepare *px, struct sdx_lookup *out,
                                 const struct sdx_str *keys, int64_t count)
{
    *out = (struct sdx_lookup){.kind = SDX_LOOKUP_TEXT, .count = count, .texts = keys};
    return fill(px, out);
}

int64_t sdx_lookup_int(const struct sdx_lookup *table, int64_t key)
{
    return table->slots[slot_of(table, key, 0, (struct sdx_str){NULL, 0})] - 1;
}

int64_t sdx_lookup_real(const struct sdx_lookup *table, double key)
{
    return table->slots[slot_of(table, 0, key, (struct sdx_str){NULL, 0})] - 1;
}

int64_t sdx_lookup_text(const struct sdx_lookup *table, struct sdx_str key)
{
    return table->slots[slot_of(table, 0, 0, key)] - 1;
}

int64_t sdx_lookup_element(const struct sdx_lookup *table, const struct sdx_tensor *x, int64_t i)
{
    if (table->kind == SDX_LOOKUP_TEXT)
        return sdx_lookup_text(table, ((const struct sdx_str *)x->data)[i]);
    if (table->kind == SDX_LOOKUP_REAL)
        return sdx_lookup_real(table, sdx_load_f64(x->dtype, x->data, i));
    return sdx_lookup_int(table, sdx_load_i64(x->dtype, x->data, i));
}
