/* SPDX-License-Identifier: Apache-2.0
 * Open addressing with linear steps; at most half of the slots are taken. Whole numbers that lie
 * close to each other are looked up where they stand. */
#include "ops/ml_lookup.h"

#include <math.h>

#include "tensor/convert.h"

/* Keys are those of the model: nobody who asks for others can make them meet. */
static uint64_t hash_of_text(struct sdx_str s)
{
    uint64_t hash = s.len, part = 0;
    for (; s.len >= sizeof part; s.ptr += sizeof part, s.len -= sizeof part) {
        memcpy(&part, s.ptr, sizeof part);
        hash = sdx_hash_number(hash ^ part);
    }
    part = 0;
    for (size_t i = 0; i < s.len; i++)
        part = part << 8 | (unsigned char)s.ptr[i];
    return sdx_hash_number(hash ^ part);
}

static uint64_t hash_of(const struct sdx_lookup *t, int64_t number, double real, struct sdx_str s)
{
    if (t->kind == SDX_LOOKUP_TEXT) return hash_of_text(s);
    if (t->kind == SDX_LOOKUP_INT) return sdx_hash_number((uint64_t)number);
    const double key = isnan(real) ? (double)NAN : real + 0.0;
    uint64_t bits;
    memcpy(&bits, &key, sizeof bits);
    return sdx_hash_number(bits ^ bits >> 32);
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
    int64_t most = count > 0 ? keys[0] : 0;
    out->least = most;
    for (int64_t i = 1; i < count; i++) {
        out->least = keys[i] < out->least ? keys[i] : out->least;
        most = keys[i] > most ? keys[i] : most;
    }
    const uint64_t apart = (uint64_t)most - (uint64_t)out->least;
    if (count > INT32_MAX / 4 || apart >= (uint64_t)count * 8) return fill(px, out);
    out->is_direct = true;
    out->capacity = (int64_t)apart + 1;
    out->slots = sdx_prepare_alloc(px, (size_t)out->capacity * sizeof *out->slots);
    if (!out->slots) return px->cx->error.status;
    for (int64_t i = 0; i < count; i++)
        out->slots[keys[i] - out->least] = (int32_t)i + 1;
    return SDX_OK;
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
    const uint64_t at = (uint64_t)key - (uint64_t)table->least;
    if (table->is_direct) return at < (uint64_t)table->capacity ? table->slots[at] - 1 : -1;
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
