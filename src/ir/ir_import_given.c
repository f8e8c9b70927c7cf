/* SPDX-License-Identifier: Apache-2.0
 * Initializers of the main graph that the caller gives, in place of the file's or for an input. */
#include "ir/ir_import.h"

enum sdx_status sdx_import_given(struct sdx_import *im, const struct sdx_tensor *given,
                                 struct sdx_str name, int dtype, int64_t rank, const int64_t *dims,
                                 struct sdx_tensor **out)
{
    bool fits = dtype == SDX_DTYPE_NONE || dtype == given->dtype;
    for (int64_t d = 0; fits && rank >= 0 && d < rank; d++)
        fits = rank == given->rank && (dims[d] < 0 || dims[d] == given->dims[d]);
    if (rank == 0) fits = fits && given->rank == 0;
    if (!fits) {
        char a[160], b[160];
        return SDX_FAIL(
            im->cx, SDX_INVALID_ARGUMENT, "initializer \"%.*s\": given %s, expected %s%s",
            SDX_STR_ARG(name), sdx_tensor_describe(given, a, sizeof a), sdx_dtype_short_name(dtype),
            rank < 0 || rank > SDX_RANK_MAX ? "" : sdx_dims_describe(dims, (int)rank, b, sizeof b));
    }
    struct sdx_tensor *t = sdx_arena_alloc(im->arena, sizeof *t);
    if (!t) return SDX_FAIL_MEMORY(im->cx);
    *t = (struct sdx_tensor){.data = given->data,
                             .dims = given->dims,
                             .count = given->count,
                             .bytes = given->bytes,
                             .rank = given->rank,
                             .kind = SDX_KIND_TENSOR,
                             .dtype = given->dtype,
                             .is_constant = true,
                             .in_model = true};
    const unsigned bits = (unsigned)sdx_dtype_bits((sdx_dtype)given->dtype);
    const size_t align = bits <= 8 ? 1 : bits >= 64 ? 8 : bits / 8;
    t->needs_copy = given->bytes && (uintptr_t)given->data % align != 0;
    *out = t;
    return SDX_OK;
}

/* An input that is given a value is a constant from now on. */
static void drop_input(struct sdx_ir_graph *g, int32_t value)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < g->count_inputs; i++)
        if (g->inputs[i] != value) g->inputs[kept++] = g->inputs[i];
    g->count_inputs = kept;
    g->values[value].flags &= ~(uint32_t)SDX_IR_INPUT;
}

enum sdx_status sdx_import_given_inputs(struct sdx_import *im, const struct sdx_import_scope *scope)
{
    struct sdx_ir_graph *g = &im->ir->graphs[scope->graph];
    for (int32_t i = 0; im->ex && i < im->ex->count_given; i++) {
        const struct sdx_str name = im->ex->given[i].name;
        const int32_t at = sdx_map_get(&scope->names, name);
        if (at <= 0 && im->ex->tolerate) {
            sdx_log(im->cx, SDX_LOG_WARNING, "model",
                    "no initializer or input is named \"%.*s\", what is given for it is ignored",
                    SDX_STR_ARG(name));
            continue;
        }
        if (at <= 0)
            return SDX_FAIL(im->cx, SDX_NOT_FOUND, "no initializer or input is named \"%.*s\"",
                            SDX_STR_ARG(name));
        struct sdx_ir_value *v = &g->values[at - 1];
        if (v->constant) continue;
        if (v->type.kind != SDX_KIND_NONE && v->type.kind != SDX_KIND_TENSOR)
            return SDX_FAIL(im->cx, SDX_INVALID_ARGUMENT,
                            "initializer \"%.*s\": the input is not a tensor", SDX_STR_ARG(name));
        SDX_TRY(sdx_import_given(im, im->ex->given[i].tensor, name, v->type.dtype,
                                 v->type.has_shape ? v->type.rank : -1, v->type.dims,
                                 &v->constant));
        drop_input(g, at - 1);
    }
    return SDX_OK;
}
