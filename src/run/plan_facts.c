/* SPDX-License-Identifier: Apache-2.0
 * The facts of a plan file: numbers of 8 bytes, and texts as their length, bytes and NULs up to the
 * next multiple of 8. The reader checks what memory or a loop depends on. */
#include "run/model.h"

static void put_number(struct sdx_text *to, int64_t number)
{
    sdx_text_add_bytes(to, &number, sizeof number);
}

static void put_text(struct sdx_text *to, const char *text)
{
    static const char zeros[8];
    const size_t length = strlen(text);
    put_number(to, (int64_t)length);
    sdx_text_add_bytes(to, text, length);
    sdx_text_add_bytes(to, zeros, 8 - length % 8);
}

static void put_optional(struct sdx_text *to, const char *text)
{
    put_number(to, text != NULL);
    if (text) put_text(to, text);
}

static void put_value(struct sdx_text *to, const struct sdx_value_info *info)
{
    const int64_t numbers[] = {info->kind, info->dtype, info->key_dtype, info->optional,
                               info->rank};
    put_text(to, info->name);
    put_text(to, info->type);
    sdx_text_add_bytes(to, numbers, sizeof numbers);
    for (int d = 0; d < info->rank; d++) {
        put_number(to, info->dims[d]);
        put_optional(to, info->dim_names[d]);
        put_optional(to, info->dim_denotations[d]);
    }
}

enum sdx_status sdx_plan_put_facts(struct sdx_context *cx, const struct sdx_model *m,
                                   struct sdx_text *to)
{
    const struct sdx_model_facts *f = &m->facts;
    const char *const texts[] = {f->name,   f->producer, f->producer_version,
                                 f->domain, f->doc,      f->graph_doc};
    const int64_t numbers[] = {f->ir_version,
                               f->model_version,
                               f->count_nodes,
                               f->count_functions,
                               f->count_initializers,
                               f->parameters,
                               (int64_t)f->parameter_bytes,
                               f->macs,
                               f->macs_exact,
                               f->count_opsets,
                               f->count_metadata,
                               m->count_op_uses,
                               m->count_inputs,
                               m->count_outputs};
    for (int i = 0; i < SDX_COUNT_OF(texts); i++)
        put_text(to, texts[i]);
    sdx_text_add_bytes(to, numbers, sizeof numbers);
    for (int i = 0; i < f->count_opsets; i++) {
        put_text(to, f->opset_domains[i]);
        put_number(to, f->opset_versions[i]);
    }
    for (int i = 0; i < f->count_metadata; i++) {
        put_text(to, f->metadata_keys[i]);
        put_text(to, f->metadata_values[i]);
    }
    for (int i = 0; i < m->count_op_uses; i++) {
        put_text(to, m->op_uses[i].domain);
        put_text(to, m->op_uses[i].name);
        put_number(to, m->op_uses[i].opset);
        put_number(to, m->op_uses[i].count);
    }
    for (int i = 0; i < m->count_inputs; i++)
        put_value(to, &m->inputs[i]);
    for (int i = 0; i < m->count_outputs; i++)
        put_value(to, &m->outputs[i]);
    return to->ok ? SDX_OK : SDX_FAIL_MEMORY(cx);
}

struct cursor {
    const char *at, *end;
    struct sdx_arena *arena;
    bool ok; /* false: the facts end too early, or there is no memory */
};

static int64_t get_number(struct cursor *c)
{
    int64_t number = 0;
    if (!c->ok || (size_t)(c->end - c->at) < sizeof number) {
        c->ok = false;
        return 0;
    }
    memcpy(&number, c->at, sizeof number);
    c->at += sizeof number;
    return number;
}

static const char *get_text(struct cursor *c)
{
    const int64_t length = get_number(c);
    const char *text = c->at;
    const int64_t left = c->end - c->at;
    if (!c->ok || length < 0 || length >= left || left - length < 8 - length % 8 || text[length]) {
        c->ok = false;
        return "";
    }
    c->at += length + 8 - length % 8;
    return text;
}

/* A number of items, each of which takes at least 8 bytes. */
static int get_count(struct cursor *c)
{
    const int64_t count = get_number(c);
    c->ok = c->ok && count >= 0 && count <= INT32_MAX && count <= (c->end - c->at) / 8;
    return c->ok ? (int)count : 0;
}

static void *get_array(struct cursor *c, int count, size_t size)
{
    void *array = sdx_arena_array(c->arena, (size_t)count + 1, size);
    c->ok = c->ok && array;
    return array;
}

static void get_value(struct cursor *c, struct sdx_value_info *info)
{
    info->name = get_text(c);
    info->type = get_text(c);
    const int64_t kind = get_number(c), dtype = get_number(c), key_dtype = get_number(c);
    info->optional = get_number(c) != 0;
    const int64_t rank = get_number(c);
    c->ok = c->ok && kind >= SDX_KIND_NONE && kind <= SDX_KIND_SPARSE && dtype >= 0 &&
            dtype <= SDX_DTYPE_LAST && key_dtype >= 0 && key_dtype <= SDX_DTYPE_LAST &&
            rank >= -1 && rank <= SDX_RANK_MAX;
    if (!c->ok) return;
    info->kind = (sdx_kind)kind;
    info->dtype = (sdx_dtype)dtype;
    info->key_dtype = (sdx_dtype)key_dtype;
    info->rank = (int)rank;
    int64_t *dims = get_array(c, rank < 0 ? 0 : (int)rank, sizeof *dims);
    const char **names = get_array(c, rank < 0 ? 0 : (int)rank, sizeof *names);
    const char **denotations = get_array(c, rank < 0 ? 0 : (int)rank, sizeof *denotations);
    for (int d = 0; d < rank && c->ok; d++) {
        dims[d] = get_number(c);
        if (get_number(c)) names[d] = get_text(c);
        if (get_number(c)) denotations[d] = get_text(c);
        c->ok = c->ok && dims[d] >= -1;
    }
    info->dims = dims;
    info->dim_names = names;
    info->dim_denotations = denotations;
}

static void get_lists(struct cursor *c, struct sdx_model *m)
{
    struct sdx_model_facts *f = &m->facts;
    const char **domains = get_array(c, f->count_opsets, sizeof *domains);
    int64_t *versions = get_array(c, f->count_opsets, sizeof *versions);
    const char **keys = get_array(c, f->count_metadata, sizeof *keys);
    const char **values = get_array(c, f->count_metadata, sizeof *values);
    m->op_uses = get_array(c, m->count_op_uses, sizeof *m->op_uses);
    m->inputs = get_array(c, m->count_inputs, sizeof *m->inputs);
    m->outputs = get_array(c, m->count_outputs, sizeof *m->outputs);
    for (int i = 0; i < f->count_opsets && c->ok; i++) {
        domains[i] = get_text(c);
        versions[i] = get_number(c);
    }
    for (int i = 0; i < f->count_metadata && c->ok; i++) {
        keys[i] = get_text(c);
        values[i] = get_text(c);
    }
    for (int i = 0; i < m->count_op_uses && c->ok; i++) {
        struct sdx_op_use *use = &m->op_uses[i];
        use->domain = get_text(c);
        use->name = get_text(c);
        use->opset = (int)get_number(c);
        use->count = (int)get_number(c);
    }
    for (int i = 0; i < m->count_inputs && c->ok; i++)
        get_value(c, &m->inputs[i]);
    for (int i = 0; i < m->count_outputs && c->ok; i++)
        get_value(c, &m->outputs[i]);
    f->opset_domains = domains;
    f->opset_versions = versions;
    f->metadata_keys = keys;
    f->metadata_values = values;
}

enum sdx_status sdx_plan_get_facts(struct sdx_context *cx, struct sdx_str from, struct sdx_model *m)
{
    struct cursor c = {from.ptr, from.ptr + from.len, &m->arena, true};
    struct sdx_model_facts *f = &m->facts;
    f->name = get_text(&c);
    f->producer = get_text(&c);
    f->producer_version = get_text(&c);
    f->domain = get_text(&c);
    f->doc = get_text(&c);
    f->graph_doc = get_text(&c);
    f->ir_version = get_number(&c);
    f->model_version = get_number(&c);
    f->count_nodes = (int)get_number(&c);
    f->count_functions = (int)get_number(&c);
    f->count_initializers = (int)get_number(&c);
    f->parameters = get_number(&c);
    f->parameter_bytes = (size_t)get_number(&c);
    f->macs = get_number(&c);
    f->macs_exact = get_number(&c) != 0;
    f->count_opsets = get_count(&c);
    f->count_metadata = get_count(&c);
    m->count_op_uses = get_count(&c);
    m->count_inputs = get_count(&c);
    m->count_outputs = get_count(&c);
    if (c.ok) get_lists(&c, m);
    if (cx->error.status != SDX_OK) return cx->error.status;
    if (!c.ok) return SDX_FAIL(cx, SDX_BAD_DATA, "plan file: the facts do not fit their section");
    const struct sdx_ir_graph *g = &m->ir->graphs[0];
    int32_t needed = 0; /* the others are constants of the graph */
    for (int32_t i = 0; i < m->count_inputs; i++)
        needed += !m->inputs[i].optional;
    if (needed != g->count_inputs || m->count_outputs != g->count_outputs)
        return SDX_FAIL(cx, SDX_BAD_DATA,
                        "plan file: %d inputs and %d outputs are described, the graph has %d and "
                        "%d",
                        m->count_inputs, m->count_outputs, g->count_inputs, g->count_outputs);
    return SDX_OK;
}
