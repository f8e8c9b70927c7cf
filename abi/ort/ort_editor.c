/* SPDX-License-Identifier: Apache-2.0
 * The model editor: models made piece by piece, and sessions of them. */
#include "ort_graph.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- making and freeing the pieces ---- */

void ort_value_info_free(OrtValueInfo *info)
{
    if (!info) return;
    ort_type_free(info->type);
    free(info->name);
    free(info);
}

static void free_infos(OrtValueInfo **infos, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ort_value_info_free(infos[i]);
    free(infos);
}

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

void ort_node_free(OrtNode *node)
{
    if (!node) return;
    for (size_t i = 0; node->attributes && i < node->count_attributes; i++)
        ort_attr_free(node->attributes[i]);
    free(node->attributes);
    free_names(node->inputs, node->count_inputs);
    free_names(node->outputs, node->count_outputs);
    free(node->op);
    free(node->domain);
    free(node->name);
    free(node);
}

void ort_graph_free(OrtGraph *graph)
{
    if (!graph) return;
    for (size_t i = 0; i < graph->count_nodes; i++)
        ort_node_free(graph->nodes[i]);
    for (size_t i = 0; i < graph->count_initializers; i++)
        ort_value_release(graph->initializers[i].value);
    free_infos(graph->inputs, graph->count_inputs);
    free_infos(graph->outputs, graph->count_outputs);
    free_infos(graph->others, graph->count_others);
    free(graph->initializers);
    free(graph->nodes);
    free(graph);
}

void ort_model_free(OrtModel *model)
{
    if (!model) return;
    ort_graph_free(model->graph);
    free_names(model->domains, model->count_domains);
    free(model->versions);
    free(model);
}

OrtStatusPtr ort_value_info_create(const char *name, const OrtTypeInfo *type, OrtValueInfo **out)
{
    OrtValueInfo *info = calloc(1, sizeof *info);
    *out = NULL;
    if (!info) return ort_no_memory();
    OrtStatusPtr failed = ort_set_text(&info->name, name);
    if (!failed && type) failed = ort_type_copy(type, &info->type);
    if (failed)
        ort_value_info_free(info);
    else
        *out = info;
    return failed;
}

/* The graph has a value of that name from now on. */
static OrtStatusPtr know_value(OrtGraph *graph, const char *name, OrtValueInfo **out)
{
    for (size_t i = 0; i < graph->count_others; i++) {
        if (strcmp(graph->others[i]->name, name) != 0) continue;
        if (out) *out = graph->others[i];
        return NULL;
    }
    ORT_TRY(ort_grow(&graph->others, graph->count_others, sizeof *graph->others));
    OrtValueInfo *info = NULL;
    ORT_TRY(ort_value_info_create(name, NULL, &info));
    info->graph = graph;
    graph->others[graph->count_others++] = info;
    if (out) *out = info;
    return NULL;
}

/* ---- types ---- */

static OrtStatusPtr new_type(ONNXType kind, OrtTypeInfo **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return ort_no_memory();
    (*out)->kind = kind;
    return NULL;
}

/* `failed` came while *type was being made. */
static OrtStatusPtr end_type(OrtStatusPtr failed, OrtTypeInfo **type)
{
    if (!failed) return NULL;
    ort_type_free(*type);
    *type = NULL;
    return failed;
}

static OrtStatusPtr create_tensor_type_info(const OrtTensorTypeAndShapeInfo *shape,
                                            OrtTypeInfo **out)
{
    ORT_TRY(new_type(ONNX_TYPE_TENSOR, out));
    return end_type(ort_shape_copy(shape, &(*out)->tensor), out);
}

static OrtStatusPtr create_sparse_tensor_type_info(const OrtTensorTypeAndShapeInfo *shape,
                                                   OrtTypeInfo **out)
{
    ORT_TRY(new_type(ONNX_TYPE_SPARSETENSOR, out));
    return end_type(ort_shape_copy(shape, &(*out)->tensor), out);
}

static OrtStatusPtr create_map_type_info(ONNXTensorElementDataType key, const OrtTypeInfo *value,
                                         OrtTypeInfo **out)
{
    ORT_TRY(new_type(ONNX_TYPE_MAP, out));
    (*out)->map = calloc(1, sizeof *(*out)->map);
    if (!(*out)->map) return end_type(ort_no_memory(), out);
    (*out)->map->key = key;
    return end_type(ort_type_copy(value, &(*out)->map->value), out);
}

static OrtStatusPtr create_sequence_type_info(const OrtTypeInfo *element, OrtTypeInfo **out)
{
    ORT_TRY(new_type(ONNX_TYPE_SEQUENCE, out));
    (*out)->sequence = calloc(1, sizeof *(*out)->sequence);
    if (!(*out)->sequence) return end_type(ort_no_memory(), out);
    return end_type(ort_type_copy(element, &(*out)->sequence->element), out);
}

static OrtStatusPtr create_optional_type_info(const OrtTypeInfo *contained, OrtTypeInfo **out)
{
    ORT_TRY(new_type(ONNX_TYPE_OPTIONAL, out));
    (*out)->optional = calloc(1, sizeof *(*out)->optional);
    if (!(*out)->optional) return end_type(ort_no_memory(), out);
    return end_type(ort_type_copy(contained, &(*out)->optional->contained), out);
}

/* ---- graphs ---- */

static OrtStatusPtr create_value_info(const char *name, const OrtTypeInfo *type, OrtValueInfo **out)
{
    *out = NULL;
    if (!name || !*name)
        return ort_fail(ORT_INVALID_ARGUMENT, "name cannot be null or empty string");
    if (!type) return ort_fail(ORT_INVALID_ARGUMENT, "type_info cannot be null");
    return ort_value_info_create(name, type, out);
}

static OrtStatusPtr copy_names(const char *const *names, size_t count, char ***out)
{
    *out = calloc(count + 1, sizeof **out);
    if (!*out) return ort_no_memory();
    for (size_t i = 0; i < count; i++)
        ORT_TRY(ort_set_text(&(*out)[i], names[i] ? names[i] : ""));
    return NULL;
}

static OrtStatusPtr fill_node(OrtNode *node, const char *const *inputs, const char *const *outputs,
                              OrtOpAttr *const *attributes, size_t count_attributes)
{
    ORT_TRY(copy_names(inputs, node->count_inputs, &node->inputs));
    ORT_TRY(copy_names(outputs, node->count_outputs, &node->outputs));
    node->attributes = calloc(count_attributes + 1, sizeof(OrtOpAttr *));
    if (!node->attributes) return ort_no_memory();
    for (; node->count_attributes < count_attributes; node->count_attributes++)
        ORT_TRY(ort_attr_copy(attributes[node->count_attributes],
                              &node->attributes[node->count_attributes]));
    return NULL;
}

static OrtStatusPtr create_node(const char *op, const char *domain, const char *name,
                                const char *const *inputs, size_t count_inputs,
                                const char *const *outputs, size_t count_outputs,
                                OrtOpAttr **attributes, size_t count_attributes, OrtNode **out)
{
    OrtNode *node = calloc(1, sizeof *node);
    *out = NULL;
    if (!node) return ort_no_memory();
    node->count_inputs = count_inputs;
    node->count_outputs = count_outputs;
    OrtStatusPtr failed = ort_set_text(&node->op, op);
    if (!failed) failed = ort_set_text(&node->domain, strcmp(domain, "ai.onnx") ? domain : "");
    if (!failed) failed = ort_set_text(&node->name, name);
    if (!failed) failed = fill_node(node, inputs, outputs, attributes, count_attributes);
    if (failed) {
        ort_node_free(node);
        return failed;
    }
    for (size_t i = 0; i < count_attributes; i++) /* they are the library's from now on */
        ort_attr_free(attributes[i]);
    *out = node;
    return NULL;
}

static OrtStatusPtr create_graph(OrtGraph **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? NULL : ort_no_memory();
}

/* The infos are the graph's from now on; its old ones are freed. */
static OrtStatusPtr take_infos(OrtGraph *graph, OrtValueInfo **infos, size_t count,
                               OrtValueInfo ***list, size_t *count_list)
{
    for (size_t i = 0; i < count; i++) {
        if (!infos[i]) return ort_fail(ORT_INVALID_ARGUMENT, "inputs cannot contain null entries");
        if (infos[i]->graph)
            return ort_fail(ORT_INVALID_ARGUMENT, "value info \"%s\" is part of a graph already",
                            infos[i]->name);
    }
    OrtValueInfo **taken = calloc(count + 1, sizeof *taken);
    if (!taken) return ort_no_memory();
    for (size_t i = 0; i < count; i++) {
        taken[i] = infos[i];
        taken[i]->graph = graph;
    }
    free_infos(*list, *count_list);
    *list = taken;
    *count_list = count;
    return NULL;
}

static OrtStatusPtr set_graph_inputs(OrtGraph *graph, OrtValueInfo **inputs, size_t count)
{
    return take_infos(graph, inputs, count, &graph->inputs, &graph->count_inputs);
}

static OrtStatusPtr set_graph_outputs(OrtGraph *graph, OrtValueInfo **outputs, size_t count)
{
    return take_infos(graph, outputs, count, &graph->outputs, &graph->count_outputs);
}

static OrtStatusPtr add_initializer_to_graph(OrtGraph *graph, const char *name, OrtValue *value,
                                             bool data_is_external)
{
    sdx_tensor *tensor = NULL;
    ORT_TRY(ort_need_tensor(value, &tensor));
    const size_t bytes = sdx_tensor_bytes(tensor);
    if (data_is_external && bytes < 128)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "data_is_external=true requires the tensor to be larger than 127 bytes "
                        "(got %zu bytes). For smaller tensors, copy the data into an ORT-allocated "
                        "tensor via CreateTensorAsOrtValue and pass data_is_external=false.",
                        bytes);
    OrtValueInfo *info = NULL;
    ORT_TRY(know_value(graph, name, &info));
    if (!info->type) ORT_TRY(ort_type_of_tensor(tensor, &info->type));
    ORT_TRY(ort_grow(&graph->initializers, graph->count_initializers, sizeof *graph->initializers));
    graph->initializers[graph->count_initializers++] = (struct ort_graph_initializer){
        .info = info, .value = value, .is_external = data_is_external};
    return NULL;
}

static OrtStatusPtr add_node_to_graph(OrtGraph *graph, OrtNode *node)
{
    if (node->graph)
        return ort_fail(ORT_INVALID_ARGUMENT, "node \"%s\" is part of a graph already", node->name);
    ORT_TRY(ort_grow(&graph->nodes, graph->count_nodes, sizeof(OrtNode *)));
    for (size_t i = 0; i < node->count_inputs; i++)
        if (*node->inputs[i]) ORT_TRY(know_value(graph, node->inputs[i], NULL));
    for (size_t i = 0; i < node->count_outputs; i++)
        if (*node->outputs[i]) ORT_TRY(know_value(graph, node->outputs[i], NULL));
    node->graph = graph;
    node->id = graph->count_nodes;
    graph->nodes[graph->count_nodes++] = node;
    return NULL;
}

static OrtStatusPtr create_model(const char *const *domains, const int *versions, size_t count,
                                 OrtModel **out)
{
    OrtModel *model = calloc(1, sizeof *model);
    *out = NULL;
    if (!model) return ort_no_memory();
    model->count_domains = count;
    model->versions = calloc(count + 1, sizeof *model->versions);
    OrtStatusPtr failed = copy_names(domains, count, &model->domains);
    if (!failed && !model->versions) failed = ort_no_memory();
    if (failed) {
        ort_model_free(model);
        return failed;
    }
    for (size_t i = 0; i < count; i++)
        model->versions[i] = versions[i];
    *out = model;
    return NULL;
}

static OrtStatusPtr add_graph_to_model(OrtModel *model, OrtGraph *graph)
{
    if (!model) return ort_fail(ORT_INVALID_ARGUMENT, "model cannot be null");
    if (!graph) return ort_fail(ORT_INVALID_ARGUMENT, "graph cannot be null");
    ort_graph_free(model->graph);
    model->graph = graph;
    graph->model = model;
    return NULL;
}

/* ---- sessions ---- */

/* The session's options with the initializers that lie in the program's memory. */
static OrtStatusPtr options_with(const OrtSessionOptions *options, const OrtGraph *graph,
                                 OrtSessionOptions **out)
{
    ORT_TRY(ort_options_copy(options, out));
    OrtSessionOptions *own = *out;
    for (size_t i = 0; graph && i < graph->count_initializers; i++) {
        const struct ort_graph_initializer *from = &graph->initializers[i];
        struct ort_initializer *to;
        if (!from->is_external || sdx_tensor_dtype(from->value->tensor) == SDX_STRING) continue;
        OrtStatusPtr failed = ort_grow(&own->initializers, own->count_initializers, sizeof *to);
        to = failed ? NULL : &own->initializers[own->count_initializers];
        if (to) *to = (struct ort_initializer){.value = ort_value_retain(from->value)};
        own->count_initializers += to != NULL;
        if (to) failed = ort_set_text(&to->name, from->info->name);
        if (!failed) continue;
        ort_options_free(own);
        *out = NULL;
        return failed;
    }
    return NULL;
}

static OrtStatusPtr create_session_from_model(const OrtEnv *env, const OrtModel *model,
                                              const OrtSessionOptions *options, OrtSession **out)
{
    struct ort_bytes bytes = {0};
    OrtSessionOptions *own = NULL;
    *out = NULL;
    ORT_TRY(ort_model_write(model, &bytes));
    OrtStatusPtr failed = options_with(options, model->graph, &own);
    if (!failed) failed = ort_session_create(env, NULL, bytes.data, bytes.size, own, out);
    ort_options_free(own);
    ort_bytes_deinit(&bytes);
    return failed;
}

/* What a session keeps until it is finalized: the model's bytes and what was added to them. */
struct ort_editor {
    const OrtEnv *env;
    struct ort_bytes bytes;
    OrtSessionOptions *options; /* with the initializers in the program's memory */
};

void ort_editor_free(struct ort_editor *editor)
{
    if (!editor) return;
    ort_bytes_deinit(&editor->bytes);
    ort_options_free(editor->options);
    free(editor);
}

OrtStatusPtr ort_read_file(const char *path, struct ort_bytes *out)
{
    unsigned char block[16384];
    FILE *file = fopen(path, "rb");
    if (!file) return ort_fail(ORT_NO_SUCHFILE, "Load model from %s failed", path);
    for (size_t count; (count = fread(block, 1, sizeof block, file)) > 0;)
        ort_bytes_add(out, block, count);
    const bool broken = ferror(file);
    fclose(file);
    if (broken) return ort_fail(ORT_FAIL, "Load model from %s failed", path);
    return out->failed ? ort_no_memory() : NULL;
}

/* Where the external data of a model in `path` is, unless the options say so. */
static OrtStatusPtr remember_folder(OrtSessionOptions *options, const char *path)
{
    static const char key[] = "session.model_external_initializers_file_folder_path";
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    if (ort_pairs_get(&options->config, key)) return NULL;
    if (slash) snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path);
    return ort_pairs_set(&options->config, key, folder);
}

/* `bytes` are taken, also on failure. */
static OrtStatusPtr start_editing(const OrtEnv *env, const char *path, struct ort_bytes *bytes,
                                  const OrtSessionOptions *options, OrtSession **out)
{
    struct ort_editor *editor = calloc(1, sizeof *editor);
    if (!editor) {
        ort_bytes_deinit(bytes);
        return ort_no_memory();
    }
    editor->env = env;
    editor->bytes = *bytes;
    OrtStatusPtr failed = ort_options_copy(options, &editor->options);
    if (!failed && path) failed = remember_folder(editor->options, path);
    if (!failed)
        failed =
            ort_session_create(env, path, editor->bytes.data, editor->bytes.size, options, out);
    if (failed)
        ort_editor_free(editor);
    else
        (*out)->editor = editor;
    return failed;
}

static OrtStatusPtr create_model_editor_session(const OrtEnv *env, const char *path,
                                                const OrtSessionOptions *options, OrtSession **out)
{
    struct ort_bytes bytes = {0};
    *out = NULL;
    OrtStatusPtr failed = ort_read_file(path, &bytes);
    if (!failed) return start_editing(env, path, &bytes, options, out);
    ort_bytes_deinit(&bytes);
    return failed;
}

static OrtStatusPtr create_model_editor_session_from_array(const OrtEnv *env, const void *model,
                                                           size_t size,
                                                           const OrtSessionOptions *options,
                                                           OrtSession **out)
{
    struct ort_bytes bytes = {0};
    *out = NULL;
    ort_bytes_add(&bytes, model, size);
    if (bytes.failed) {
        ort_bytes_deinit(&bytes);
        return ort_no_memory();
    }
    return start_editing(env, NULL, &bytes, options, out);
}

static OrtStatusPtr session_get_opset_for_domain(const OrtSession *session, const char *domain,
                                                 int *version)
{
    const sdx_model_facts *facts = sdx_model_get_facts(session->model);
    const char *sought = *domain ? domain : "ai.onnx";
    for (int i = 0; i < facts->count_opsets; i++) {
        if (strcmp(facts->opset_domains[i], sought) != 0) continue;
        *version = (int)facts->opset_versions[i];
        return NULL;
    }
    return ort_fail(ORT_FAIL, "Domain not used by model.");
}

static OrtStatusPtr apply_model_to_model_editor_session(OrtSession *session, OrtModel *model)
{
    struct ort_editor *editor = session->editor;
    if (!editor) return ort_fail(ORT_MODEL_LOADED, "This session has already been initialized.");
    struct ort_bytes merged = {0};
    OrtSessionOptions *options = NULL;
    ORT_TRY(ort_model_merge(editor->bytes.data, editor->bytes.size, model, &merged));
    OrtStatusPtr failed = options_with(editor->options, model->graph, &options);
    if (failed) {
        ort_bytes_deinit(&merged);
        return failed;
    }
    ort_bytes_deinit(&editor->bytes);
    ort_options_free(editor->options);
    editor->bytes = merged;
    editor->options = options;
    return NULL;
}

/* The session becomes one of the model as it is now. Its handle stays, its content is exchanged: no
 * other thread may have it yet. */
static OrtStatusPtr finalize_model_editor_session(OrtSession *session,
                                                  const OrtSessionOptions *options,
                                                  OrtPrepackedWeightsContainer *prepacked)
{
    struct ort_editor *editor = session->editor;
    OrtSession *made = NULL;
    (void)options, (void)prepacked; /* those it began with; weights are shared in any case */
    if (!editor) return NULL;
    ORT_TRY(ort_session_create(editor->env, NULL, editor->bytes.data, editor->bytes.size,
                               editor->options, &made));
    const OrtSession old = *session;
    *session = *made;
    *made = old;
    ort_session_free(made);
    return NULL;
}

static const OrtModelEditorApi editor_table = {
    .CreateTensorTypeInfo = create_tensor_type_info,
    .CreateSparseTensorTypeInfo = create_sparse_tensor_type_info,
    .CreateMapTypeInfo = create_map_type_info,
    .CreateSequenceTypeInfo = create_sequence_type_info,
    .CreateOptionalTypeInfo = create_optional_type_info,
    .CreateValueInfo = create_value_info,
    .CreateNode = create_node,
    .CreateGraph = create_graph,
    .SetGraphInputs = set_graph_inputs,
    .SetGraphOutputs = set_graph_outputs,
    .AddInitializerToGraph = add_initializer_to_graph,
    .AddNodeToGraph = add_node_to_graph,
    .CreateModel = create_model,
    .AddGraphToModel = add_graph_to_model,
    .CreateSessionFromModel = create_session_from_model,
    .CreateModelEditorSession = create_model_editor_session,
    .CreateModelEditorSessionFromArray = create_model_editor_session_from_array,
    .SessionGetOpsetForDomain = session_get_opset_for_domain,
    .ApplyModelToModelEditorSession = apply_model_to_model_editor_session,
    .FinalizeModelEditorSession = finalize_model_editor_session,
};

static const OrtModelEditorApi *get_model_editor_api(void)
{
    return &editor_table;
}

void ort_fill_editor(OrtApi *api)
{
    api->GetModelEditorApi = get_model_editor_api;
}
