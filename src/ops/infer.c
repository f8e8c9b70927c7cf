/* SPDX-License-Identifier: Apache-2.0
 * What inference functions share: access to inputs, setting of outputs, broadcasting. */
#include "ops/infer.h"

int sdx_infer_dtype(const struct sdx_infer *ix, int i)
{
    return sdx_infer_has(ix, i) ? ix->in[i]->dtype : SDX_DTYPE_NONE;
}

int sdx_infer_rank(const struct sdx_infer *ix, int i)
{
    return sdx_infer_has(ix, i) && ix->in[i]->has_shape ? ix->in[i]->rank : -1;
}

const int64_t *sdx_infer_dims(const struct sdx_infer *ix, int i)
{
    static const int64_t none[1] = {0};
    if (sdx_infer_rank(ix, i) < 0) return NULL;
    return ix->in[i]->dims ? ix->in[i]->dims : none;
}

bool sdx_infer_ints(struct sdx_infer *ix, int i, struct sdx_ints *out)
{
    return sdx_infer_has(ix, i) && ix->ints(ix, i, out);
}

bool sdx_infer_known_ints(struct sdx_infer *ix, int i, const int64_t **v, int64_t *count)
{
    struct sdx_ints ints;
    if (!sdx_infer_ints(ix, i, &ints)) return false;
    for (int64_t k = 0; ints.sym && k < ints.count; k++)
        if (ints.sym[k]) return false;
    *v = ints.v;
    *count = ints.count;
    return true;
}

bool sdx_infer_tensor_ints(struct sdx_infer *ix, const struct sdx_tensor *t, struct sdx_ints *out)
{
    if (!t || t->kind != SDX_KIND_TENSOR || t->rank > 1 ||
        (t->dtype != SDX_I64 && t->dtype != SDX_I32))
        return false;
    *out = (struct sdx_ints){.count = t->count, .rank = t->rank, .v = t->data};
    if (t->dtype == SDX_I64) return true;
    int64_t *v = sdx_arena_array(ix->arena, (size_t)t->count + 1, sizeof *v);
    for (int64_t k = 0; v && k < t->count; k++)
        v[k] = ((const int32_t *)t->data)[k];
    out->v = v;
    return v != NULL;
}

const struct sdx_tensor *sdx_infer_value(struct sdx_infer *ix, int i)
{
    return sdx_infer_has(ix, i) ? ix->value(ix, i) : NULL;
}

void sdx_infer_set_dtype(struct sdx_infer *ix, int k, int dtype)
{
    if (k >= ix->count_out) return;
    ix->out[k].kind = SDX_KIND_TENSOR;
    ix->out[k].dtype = (uint8_t)dtype;
}

int64_t *sdx_infer_new_dims(struct sdx_infer *ix, int k, int rank)
{
    if (rank < 0 || rank > SDX_RANK_MAX) {
        (void)SDX_FAIL(ix->cx, SDX_NOT_SUPPORTED, "output %d has rank %d, the largest is %d", k,
                       rank, SDX_RANK_MAX);
        return NULL;
    }
    int64_t *dims = sdx_arena_array(ix->arena, (size_t)rank + 1, sizeof *dims);
    if (!dims) {
        (void)SDX_FAIL_MEMORY(ix->cx);
        return NULL;
    }
    if (k < ix->count_out) {
        ix->out[k].kind = SDX_KIND_TENSOR;
        ix->out[k].has_shape = true;
        ix->out[k].rank = rank;
        ix->out[k].dims = dims;
    }
    return dims;
}

enum sdx_status sdx_infer_set_dims(struct sdx_infer *ix, int k, int rank, const int64_t *dims)
{
    if (k >= ix->count_out) return SDX_OK;
    int64_t *to = sdx_infer_new_dims(ix, k, rank);
    if (!to) return ix->cx->error.status;
    if (rank) memcpy(to, dims, (size_t)rank * sizeof *to);
    return SDX_OK;
}

void sdx_infer_copy(struct sdx_infer *ix, int k, int i)
{
    if (k < ix->count_out && sdx_infer_has(ix, i)) ix->out[k] = *ix->in[i];
}

enum sdx_status sdx_infer_set_ints(struct sdx_infer *ix, int k, int rank, int64_t count,
                                   const int64_t *v, const int64_t *sym)
{
    if (k >= ix->count_out) return SDX_OK;
    struct sdx_ints *ints = sdx_arena_alloc(ix->arena, sizeof *ints);
    int64_t *values = sdx_arena_array(ix->arena, (size_t)count + 1, sizeof *values);
    int64_t *symbols = sym ? sdx_arena_array(ix->arena, (size_t)count + 1, sizeof *symbols) : NULL;
    if (!ints || !values || (sym && !symbols)) return SDX_FAIL_MEMORY(ix->cx);
    if (count) memcpy(values, v, (size_t)count * sizeof *values);
    if (count && sym) memcpy(symbols, sym, (size_t)count * sizeof *symbols);
    *ints = (struct sdx_ints){.v = values, .sym = symbols, .count = count, .rank = rank};
    ix->out_ints[k] = ints;
    return SDX_OK;
}

enum sdx_status sdx_infer_map_ints(struct sdx_infer *ix, const struct sdx_ints *lists, int count,
                                   const void *arg,
                                   struct sdx_int (*make)(struct sdx_infer *ix, const void *arg,
                                                          const struct sdx_int *at))
{
    enum { MOST = 3 };
    struct sdx_int at[MOST];
    int64_t places = 1;
    int32_t rank = 0;
    SDX_ASSERT(count <= MOST);
    for (int k = 0; k < count; k++) {
        if (lists[k].count != 1) places = lists[k].count;
        if (lists[k].rank > rank) rank = lists[k].rank;
    }
    for (int k = 0; k < count; k++)
        if (lists[k].count != 1 && lists[k].count != places) return SDX_OK;
    int64_t *v = sdx_arena_array(ix->arena, (size_t)places + 1, sizeof *v);
    int64_t *sym = sdx_arena_array(ix->arena, (size_t)places + 1, sizeof *sym);
    if (!v || !sym) return SDX_FAIL_MEMORY(ix->cx);
    for (int64_t i = 0; i < places; i++) {
        for (int k = 0; k < count; k++) {
            const int64_t from = lists[k].count == 1 ? 0 : i;
            at[k] = (struct sdx_int){lists[k].v[from], lists[k].sym ? lists[k].sym[from] : 0};
        }
        const struct sdx_int made = make(ix, arg, at);
        v[i] = made.v;
        sym[i] = made.sym;
    }
    return sdx_infer_set_ints(ix, 0, rank, places, v, sym);
}

int64_t sdx_infer_scaled(struct sdx_infer *ix, struct sdx_ir_length length)
{
    return ix->symbols ? sdx_ir_symbol_scaled(ix->symbols, length) : -1;
}

int64_t sdx_infer_ratio(struct sdx_infer *ix, const int64_t *over, int count_over,
                        const int64_t *under, int count_under)
{
    return ix->symbols ? sdx_ir_symbol_ratio(ix->symbols, over, count_over, under, count_under)
                       : -1;
}

enum sdx_status sdx_infer_axis(struct sdx_infer *ix, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: axis %lld is out of range for rank %d",
                        SDX_STR_ARG(ix->node->op_type), (long long)axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return SDX_OK;
}

enum sdx_status sdx_infer_merge_dim(struct sdx_infer *ix, int64_t a, int64_t b, const char *what,
                                    int64_t *out)
{
    if (a >= 0 && b >= 0 && a != b)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: %s is %lld and %lld, expected equal lengths",
                        SDX_STR_ARG(ix->node->op_type), what, (long long)a, (long long)b);
    *out = a >= 0 ? a : b >= 0 ? b : a < -1 ? a : b;
    return SDX_OK;
}

/* Is it the same length, but for a bound above 1? Where that counts the two do not broadcast. */
static bool is_cut_of(const struct sdx_infer *ix, int64_t cut, int64_t whole)
{
    const struct sdx_ir_length *l = cut < -1 ? &ix->ir->symbols[-(cut + 2)].length : NULL;
    return l && l->most > 1 && l->dim == whole && l->factor == 1 && l->term == 0 && l->divisor == 1;
}

enum sdx_status sdx_infer_broadcast_dim(struct sdx_infer *ix, int64_t a, int64_t b, int64_t *out)
{
    if (a == b)
        *out = a;
    else if (a == 1)
        *out = b;
    else if (b == 1)
        *out = a;
    else if (a >= 0 && b >= 0)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: lengths %lld and %lld do not broadcast",
                        SDX_STR_ARG(ix->node->op_type), (long long)a, (long long)b);
    else if (a >= 0)
        *out = a; /* > 1 or 0: the other must be it or 1 */
    else if (b >= 0)
        *out = b;
    else if (is_cut_of(ix, a, b))
        *out = b;
    else
        *out = is_cut_of(ix, b, a) ? a : -1;
    return SDX_OK;
}

enum sdx_status sdx_infer_broadcast(struct sdx_infer *ix, int k, int first, int n)
{
    int rank = 0;
    for (int i = first; i < first + n; i++) {
        if (!sdx_infer_has(ix, i)) continue;
        int r = sdx_infer_rank(ix, i);
        if (r < 0) return SDX_OK;
        if (r > rank) rank = r;
    }
    int64_t *dims = sdx_infer_new_dims(ix, k, rank);
    if (!dims) return ix->cx->error.status;
    for (int d = 0; d < rank; d++)
        dims[d] = 1;
    for (int i = first; i < first + n; i++) {
        if (!sdx_infer_has(ix, i)) continue;
        int r = sdx_infer_rank(ix, i);
        const int64_t *from = sdx_infer_dims(ix, i);
        for (int d = 0; d < r; d++)
            SDX_TRY(sdx_infer_broadcast_dim(ix, dims[rank - r + d], from[d], &dims[rank - r + d]));
    }
    return SDX_OK;
}

enum sdx_status sdx_infer_same(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    return SDX_OK;
}

enum sdx_status sdx_infer_same_all(struct sdx_infer *ix)
{
    for (int k = 0; k < ix->count_out; k++)
        sdx_infer_copy(ix, k, 0);
    return SDX_OK;
}

enum sdx_status sdx_infer_binary(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    return sdx_infer_broadcast(ix, 0, 0, 2);
}

enum sdx_status sdx_infer_binary_bool(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, SDX_BOOL);
    return sdx_infer_broadcast(ix, 0, 0, 2);
}

enum sdx_status sdx_infer_variadic(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    return sdx_infer_broadcast(ix, 0, 0, ix->count_in);
}
