/* SPDX-License-Identifier: Apache-2.0
 * What the caller gives beside the file: lengths of dimensions, initializers, files with external
 * data. Everything but the tensors and the files' bytes is copied. */
#include "run/model.h"

static const char *copy_text(struct sdx_arena *arena, const char *text)
{
    return text ? sdx_arena_strndup(arena, text, strlen(text)) : NULL;
}

static enum sdx_status take_dims(struct sdx_context *cx, struct sdx_model *m,
                                 const struct sdx_model_options *options)
{
    const int count = options->count_dims;
    struct sdx_dim_override *dims = sdx_arena_array(&m->arena, (size_t)count + 1, sizeof *dims);
    if (!dims) return SDX_FAIL_MEMORY(cx);
    for (int i = 0; i < count; i++) {
        const struct sdx_dim_override *given = &options->dims[i];
        const char *text = given->name ? given->name : given->denotation;
        if (!text || !text[0] || (given->name && given->denotation) || given->length < 0)
            return SDX_FAIL(cx, SDX_INVALID_ARGUMENT,
                            "dimension override %d: expected a name or a denotation, and a length "
                            "of at least 0",
                            i);
        dims[i] = (struct sdx_dim_override){.name = copy_text(&m->arena, given->name),
                                            .denotation = copy_text(&m->arena, given->denotation),
                                            .length = given->length};
        if (!dims[i].name && !dims[i].denotation) return SDX_FAIL_MEMORY(cx);
    }
    m->dims = dims;
    m->count_dims = count;
    return SDX_OK;
}

enum sdx_status sdx_model_take_given(struct sdx_context *cx, struct sdx_model *m,
                                     const struct sdx_model_options *options)
{
    struct sdx_external *ex = &m->external;
    if (options->folder && !(ex->folder = copy_text(&m->arena, options->folder)))
        return SDX_FAIL_MEMORY(cx);
    for (int i = 0; i < options->count_initializers; i++) {
        const struct sdx_feed *feed = &options->initializers[i];
        const struct sdx_tensor *t = feed->value;
        if (!feed->name || !t || t->kind != SDX_KIND_TENSOR || t->layout != SDX_LAYOUT_PLAIN)
            return SDX_FAIL(cx, SDX_INVALID_ARGUMENT,
                            "initializer %d: expected a name and a packed tensor", i);
        SDX_TRY(sdx_external_give_tensor(cx, ex, feed->name, t));
    }
    for (int i = 0; i < options->count_files; i++) {
        const struct sdx_file_bytes *file = &options->files[i];
        if (!file->name || (file->size && !file->bytes))
            return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "file %d: expected a name and bytes", i);
        SDX_TRY(sdx_external_give_file(cx, ex, file->name, file->bytes, file->size));
    }
    return take_dims(cx, m, options);
}

bool sdx_model_is_given(const struct sdx_model_options *options)
{
    return options->count_dims || options->count_initializers || options->count_files;
}

/* ---- dimensions ---- */

/* The length that is given for a dimension of the type; itself where none is. */
static int64_t length_of(const struct sdx_model *m, const struct sdx_ir *ir, int64_t dim)
{
    if (!sdx_ir_symbol_has_name(ir, dim)) return dim;
    for (int i = 0; i < m->count_dims; i++)
        if (m->dims[i].name && sdx_str_is(ir->symbols[-(dim + 2)].name, m->dims[i].name))
            return m->dims[i].length;
    return dim;
}

static int64_t *own_dims(struct sdx_ir *ir, struct sdx_type *type)
{
    int64_t *dims = sdx_arena_copy(ir->arena, type->dims, (size_t)type->rank * sizeof *dims);
    if (dims) type->dims = dims;
    return dims;
}

static enum sdx_status set_named(struct sdx_context *cx, const struct sdx_model *m,
                                 struct sdx_ir *ir, struct sdx_type *type)
{
    if (type->elem) {
        struct sdx_type *elem = sdx_arena_copy(ir->arena, type->elem, sizeof *elem);
        if (!elem) return SDX_FAIL_MEMORY(cx);
        type->elem = elem;
        return set_named(cx, m, ir, elem);
    }
    bool any = false;
    for (int d = 0; type->has_shape && d < type->rank; d++)
        any = any || length_of(m, ir, type->dims[d]) != type->dims[d];
    if (!any) return SDX_OK;
    int64_t *dims = own_dims(ir, type);
    if (!dims) return SDX_FAIL_MEMORY(cx);
    for (int d = 0; d < type->rank; d++)
        dims[d] = length_of(m, ir, dims[d]);
    return SDX_OK;
}

static enum sdx_status set_denoted(struct sdx_context *cx, const struct sdx_model *m,
                                   struct sdx_ir *ir, struct sdx_ir_value *v,
                                   const struct sdx_onnx_type *declared)
{
    for (int d = 0; v->type.has_shape && declared->rank == v->type.rank && d < v->type.rank; d++)
        for (int i = 0; i < m->count_dims; i++) {
            const struct sdx_dim_override *given = &m->dims[i];
            if (!given->denotation || !sdx_str_is(declared->dims[d].denotation, given->denotation))
                continue;
            const int64_t now = v->type.dims[d];
            if (now >= 0 && now != given->length)
                return SDX_FAIL(cx, SDX_INVALID_ARGUMENT,
                                "input \"%.*s\": dimension %d, denoted \"%s\", is %lld, but %lld "
                                "is given for it",
                                SDX_STR_ARG(v->name), d, given->denotation, (long long)now,
                                (long long)given->length);
            int64_t *dims = own_dims(ir, &v->type);
            if (!dims) return SDX_FAIL_MEMORY(cx);
            dims[d] = given->length;
            break;
        }
    return SDX_OK;
}

enum sdx_status sdx_model_set_dims(struct sdx_context *cx, const struct sdx_model *m,
                                   struct sdx_ir *ir)
{
    struct sdx_ir_graph *g = &ir->graphs[0];
    const struct sdx_onnx_value_infos *infos = &m->message->graph->inputs;
    for (int32_t v = 0; m->count_dims && v < g->count_values; v++)
        SDX_TRY(set_named(cx, m, ir, &g->values[v].type));
    for (int32_t i = 0; m->count_dims && i < g->count_inputs; i++) {
        struct sdx_ir_value *value = &g->values[g->inputs[i]];
        for (int32_t k = 0; k < infos->count; k++)
            if (infos->at[k].type && sdx_str_equal(infos->at[k].name, value->name))
                SDX_TRY(set_denoted(cx, m, ir, value, infos->at[k].type));
    }
    return SDX_OK;
}
