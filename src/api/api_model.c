/* SPDX-License-Identifier: Apache-2.0
 * Public API: models, the checker, the operator table. */
#include "ops/op.h"
#include "ops/schema.h"
#include "run/model.h"

void sdx_model_options_init(sdx_model_options *options)
{
    *options = (sdx_model_options){.size = sizeof *options, .check_fully = true};
}

static sdx_model_options options_of(const sdx_model_options *given)
{
    sdx_model_options options;
    sdx_model_options_init(&options);
    if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    return options;
}

sdx_status sdx_model_open(sdx_context *cx, const char *path, const sdx_model_options *given,
                          sdx_model **out)
{
    *out = NULL;
    sdx_context_clear(cx);
    if (!path) return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "path is NULL");
    sdx_model_options options = options_of(given);
    return sdx_model_create(cx, path, NULL, 0, &options, out);
}

sdx_status sdx_model_load(sdx_context *cx, const void *bytes, size_t size,
                          const sdx_model_options *given, sdx_model **out)
{
    *out = NULL;
    sdx_context_clear(cx);
    if (!bytes && size) return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "bytes is NULL");
    sdx_model_options options = options_of(given);
    return sdx_model_create(cx, NULL, bytes, size, &options, out);
}

void sdx_model_destroy(sdx_model *model)
{
    sdx_model_free(model);
}

sdx_status sdx_model_save(sdx_context *cx, const sdx_model *model, const char *path)
{
    sdx_context_clear(cx);
    if (model->plan.bytes)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED,
                        "the model is from a plan file, which holds no ONNX model to save");
    struct sdx_file_writer writer;
    SDX_TRY(sdx_file_writer_open(cx, path, &writer));
    sdx_status status = sdx_onnx_write_model(cx, model->message, &writer);
    if (status == SDX_OK) return sdx_file_writer_close(&writer);
    sdx_file_writer_abandon(&writer);
    return status;
}

int sdx_model_count_inputs(const sdx_model *model)
{
    return model->count_inputs;
}

int sdx_model_count_outputs(const sdx_model *model)
{
    return model->count_outputs;
}

const sdx_value_info *sdx_model_input(const sdx_model *model, int i)
{
    return i >= 0 && i < model->count_inputs ? &model->inputs[i] : NULL;
}

const sdx_value_info *sdx_model_output(const sdx_model *model, int i)
{
    return i >= 0 && i < model->count_outputs ? &model->outputs[i] : NULL;
}

const sdx_model_facts *sdx_model_get_facts(const sdx_model *model)
{
    return &model->facts;
}

int sdx_model_count_op_uses(const sdx_model *model)
{
    return model->count_op_uses;
}

const sdx_op_use *sdx_model_op_use(const sdx_model *model, int i)
{
    return i >= 0 && i < model->count_op_uses ? &model->op_uses[i] : NULL;
}

sdx_status sdx_model_print(sdx_context *cx, const sdx_model *model, sdx_text_fn line, void *user)
{
    sdx_context_clear(cx);
    return sdx_ir_print(cx, model->ir, line, user);
}

sdx_status sdx_check(sdx_context *cx, const char *path, sdx_text_fn fault, void *user)
{
    sdx_context_clear(cx);
    return sdx_model_check(cx, path, NULL, 0, true, fault, user);
}

sdx_status sdx_check_structure(sdx_context *cx, const char *path, sdx_text_fn fault, void *user)
{
    sdx_context_clear(cx);
    return sdx_model_check(cx, path, NULL, 0, false, fault, user);
}

sdx_status sdx_check_bytes(sdx_context *cx, const void *bytes, size_t size, sdx_text_fn fault,
                           void *user)
{
    sdx_context_clear(cx);
    return sdx_model_check(cx, NULL, bytes, size, true, fault, user);
}

sdx_status sdx_infer(sdx_context *cx, const char *path, const char *to, sdx_text_fn fault,
                     void *user)
{
    sdx_context_clear(cx);
    if (!path || !to) return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "a path is NULL");
    return sdx_model_infer(cx, path, to, fault, user);
}

/* Element types of the first type variable (or of the first input or output) of a row. */
static const struct sdx_schema_types *first_types(const struct sdx_schema *s)
{
    int first = s->count_params_in ? s->params_in : s->params_out;
    int count = s->count_params_in + s->count_params_out;
    if (!count) return NULL;
    for (int i = 0; i < s->count_params_in; i++)
        if (sdx_schema_params[s->params_in + i].variable == 0)
            return &sdx_schema_typesets[sdx_schema_params[s->params_in + i].types];
    for (int i = 0; i < s->count_params_out; i++)
        if (sdx_schema_params[s->params_out + i].variable == 0)
            return &sdx_schema_typesets[sdx_schema_params[s->params_out + i].types];
    return &sdx_schema_typesets[sdx_schema_params[first].types];
}

bool sdx_op_info_get(int i, sdx_op_info *info)
{
    static _Thread_local char types[400];
    const struct sdx_schema *s = sdx_schema_at(i);
    if (!s) return false;
    const char *domain = sdx_schema_domain_name(s), *name = sdx_schema_str(s->name);
    /* One that was deprecated from its first version on was so later: models have it. */
    const bool is_gone =
        s->deprecated && sdx_schema_find(sdx_str(domain), sdx_str(name), s->since - 1, NULL);
    const struct sdx_op *op =
        is_gone ? NULL : sdx_op_find(sdx_str(domain), sdx_str(name), s->since);
    const struct sdx_schema_types *t = first_types(s);
    size_t len = 0;
    types[0] = 0;
    for (int dtype = 1; t && dtype <= SDX_DTYPE_LAST; dtype++) {
        if (!(t->tensor >> dtype & 1)) continue;
        const char *type = sdx_dtype_name((sdx_dtype)dtype);
        size_t n = strlen(type);
        if (len + n + 3 > sizeof types) break;
        if (len) memcpy(types + len, ", ", 3), len += 2;
        memcpy(types + len, type, n + 1);
        len += n;
    }
    *info = (sdx_op_info){.domain = domain[0] ? domain : "ai.onnx",
                          .name = name,
                          .since = s->since,
                          .deprecated = s->deprecated,
                          .types = types};
    if (op) info->support = op->lower ? "lowering" : "kernel";
    if (op) info->note = op->note;
    return true;
}
