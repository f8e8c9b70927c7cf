/* SPDX-License-Identifier: Apache-2.0
 * Reading models that programs made: graphs, nodes and values. Arrays are the caller's and must
 * have room for as many as the function that counts them says. */
#include "ort_graph.h"

#include <stdlib.h>
#include <string.h>

static const OrtValueInfo *find(OrtValueInfo *const *infos, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(infos[i]->name, name) == 0) return infos[i];
    return NULL;
}

const OrtValueInfo *ort_graph_value(const OrtGraph *graph, const char *name)
{
    const OrtValueInfo *info = find(graph->inputs, graph->count_inputs, name);
    if (!info) info = find(graph->outputs, graph->count_outputs, name);
    return info ? info : find(graph->others, graph->count_others, name);
}

static const struct ort_graph_initializer *find_initializer(const OrtValueInfo *info)
{
    for (size_t i = 0; info->graph && i < info->graph->count_initializers; i++)
        if (strcmp(info->graph->initializers[i].info->name, info->name) == 0)
            return &info->graph->initializers[i];
    return NULL;
}

static OrtStatusPtr check_room(const char *what, size_t count, size_t room)
{
    if (room >= count) return NULL;
    return ort_fail(ORT_INVALID_ARGUMENT, "There are %zu %s, the array has room for %zu", count,
                    what, room);
}

/* ---- values ---- */

static OrtStatusPtr get_value_info_name(const OrtValueInfo *info, const char **out)
{
    *out = info->name;
    return NULL;
}

static OrtStatusPtr get_value_info_type(const OrtValueInfo *info, const OrtTypeInfo **out)
{
    *out = info->type;
    return NULL;
}

static OrtStatusPtr get_value_producer(const OrtValueInfo *info, const OrtNode **node,
                                       size_t *output)
{
    *node = NULL;
    if (output) *output = 0;
    for (size_t i = 0; info->graph && i < info->graph->count_nodes; i++) {
        const OrtNode *maker = info->graph->nodes[i];
        for (size_t k = 0; k < maker->count_outputs; k++) {
            if (strcmp(maker->outputs[k], info->name) != 0) continue;
            *node = maker;
            if (output) *output = k;
            return NULL;
        }
    }
    return NULL;
}

/* Counts the uses; the first `room` of them are written where the arrays are not NULL. */
static size_t list_consumers(const OrtValueInfo *info, const OrtNode **nodes, int64_t *inputs,
                             size_t room)
{
    size_t count = 0;
    for (size_t i = 0; info->graph && i < info->graph->count_nodes; i++) {
        const OrtNode *node = info->graph->nodes[i];
        for (size_t k = 0; k < node->count_inputs; k++) {
            if (strcmp(node->inputs[k], info->name) != 0) continue;
            if (nodes && count < room) nodes[count] = node;
            if (inputs && count < room) inputs[count] = (int64_t)k;
            count++;
        }
    }
    return count;
}

static OrtStatusPtr get_value_num_consumers(const OrtValueInfo *info, size_t *out)
{
    *out = list_consumers(info, NULL, NULL, 0);
    return NULL;
}

static OrtStatusPtr get_value_consumers(const OrtValueInfo *info, const OrtNode **nodes,
                                        int64_t *inputs, size_t room)
{
    ORT_TRY(check_room("consumers", list_consumers(info, NULL, NULL, 0), room));
    (void)list_consumers(info, nodes, inputs, room);
    return NULL;
}

static OrtStatusPtr get_initializer_value(const OrtValueInfo *info, const OrtValue **out)
{
    const struct ort_graph_initializer *found = find_initializer(info);
    *out = found ? found->value : NULL;
    return NULL;
}

/* Values of the editor lie in memory, not in files. */
static OrtStatusPtr get_external_initializer_info(const OrtValueInfo *info,
                                                  OrtExternalInitializerInfo **out)
{
    (void)info;
    *out = NULL;
    return NULL;
}

static bool is_graph_input(const OrtValueInfo *info)
{
    return info->graph && find(info->graph->inputs, info->graph->count_inputs, info->name);
}

static OrtStatusPtr is_required_graph_input(const OrtValueInfo *info, bool *out)
{
    *out = is_graph_input(info) && !find_initializer(info);
    return NULL;
}

static OrtStatusPtr is_optional_graph_input(const OrtValueInfo *info, bool *out)
{
    *out = is_graph_input(info) && find_initializer(info);
    return NULL;
}

static OrtStatusPtr is_graph_output(const OrtValueInfo *info, bool *out)
{
    *out = info->graph && find(info->graph->outputs, info->graph->count_outputs, info->name);
    return NULL;
}

static OrtStatusPtr is_constant_initializer(const OrtValueInfo *info, bool *out)
{
    *out = !is_graph_input(info) && find_initializer(info);
    return NULL;
}

static OrtStatusPtr is_from_outer_scope(const OrtValueInfo *info, bool *out)
{
    (void)info;
    *out = false; /* the editor makes no graphs within nodes */
    return NULL;
}

/* ---- graphs ---- */

static OrtStatusPtr get_graph_name(const OrtGraph *graph, const char **out)
{
    (void)graph;
    *out = "";
    return NULL;
}

static OrtStatusPtr get_graph_model_path(const OrtGraph *graph, const char **out)
{
    (void)graph;
    *out = "";
    return NULL;
}

static OrtStatusPtr get_graph_ir_version(const OrtGraph *graph, int64_t *out)
{
    (void)graph;
    *out = ORT_EDITOR_IR_VERSION;
    return NULL;
}

static OrtStatusPtr get_graph_num_operator_sets(const OrtGraph *graph, size_t *out)
{
    *out = graph->model ? graph->model->count_domains : 0;
    return NULL;
}

static OrtStatusPtr get_graph_operator_sets(const OrtGraph *graph, const char **domains,
                                            int64_t *versions, size_t room)
{
    const size_t count = graph->model ? graph->model->count_domains : 0;
    ORT_TRY(check_room("operator sets", count, room));
    for (size_t i = 0; i < count; i++) {
        domains[i] = graph->model->domains[i];
        versions[i] = graph->model->versions[i];
    }
    return NULL;
}

static OrtStatusPtr give_infos(const char *what, OrtValueInfo *const *infos, size_t count,
                               const OrtValueInfo **out, size_t room)
{
    ORT_TRY(check_room(what, count, room));
    for (size_t i = 0; i < count; i++)
        out[i] = infos[i];
    return NULL;
}

static OrtStatusPtr get_graph_num_inputs(const OrtGraph *graph, size_t *out)
{
    *out = graph->count_inputs;
    return NULL;
}

static OrtStatusPtr get_graph_inputs(const OrtGraph *graph, const OrtValueInfo **out, size_t room)
{
    return give_infos("inputs", graph->inputs, graph->count_inputs, out, room);
}

static OrtStatusPtr get_graph_num_outputs(const OrtGraph *graph, size_t *out)
{
    *out = graph->count_outputs;
    return NULL;
}

static OrtStatusPtr get_graph_outputs(const OrtGraph *graph, const OrtValueInfo **out, size_t room)
{
    return give_infos("outputs", graph->outputs, graph->count_outputs, out, room);
}

static OrtStatusPtr get_graph_num_initializers(const OrtGraph *graph, size_t *out)
{
    *out = graph->count_initializers;
    return NULL;
}

static OrtStatusPtr get_graph_initializers(const OrtGraph *graph, const OrtValueInfo **out,
                                           size_t room)
{
    ORT_TRY(check_room("initializers", graph->count_initializers, room));
    for (size_t i = 0; i < graph->count_initializers; i++)
        out[i] = ort_graph_value(graph, graph->initializers[i].info->name);
    return NULL;
}

static OrtStatusPtr get_graph_num_nodes(const OrtGraph *graph, size_t *out)
{
    *out = graph->count_nodes;
    return NULL;
}

static OrtStatusPtr get_graph_nodes(const OrtGraph *graph, const OrtNode **out, size_t room)
{
    ORT_TRY(check_room("nodes", graph->count_nodes, room));
    for (size_t i = 0; i < graph->count_nodes; i++)
        out[i] = graph->nodes[i];
    return NULL;
}

static OrtStatusPtr get_graph_parent_node(const OrtGraph *graph, const OrtNode **out)
{
    (void)graph;
    *out = NULL;
    return NULL;
}

/* ---- nodes ---- */

static OrtStatusPtr get_node_id(const OrtNode *node, size_t *out)
{
    *out = node->id;
    return NULL;
}

static OrtStatusPtr get_node_name(const OrtNode *node, const char **out)
{
    *out = node->name;
    return NULL;
}

static OrtStatusPtr get_node_operator_type(const OrtNode *node, const char **out)
{
    *out = node->op;
    return NULL;
}

static OrtStatusPtr get_node_domain(const OrtNode *node, const char **out)
{
    *out = node->domain;
    return NULL;
}

/* The newest version of the operator that the model's version of the domain has. */
static OrtStatusPtr get_node_since_version(const OrtNode *node, int *out)
{
    const OrtModel *model = node->graph ? node->graph->model : NULL;
    const char *domain = *node->domain ? node->domain : "ai.onnx";
    int64_t limit = -1;
    *out = -1;
    for (size_t i = 0; model && i < model->count_domains; i++) {
        const char *of = *model->domains[i] ? model->domains[i] : "ai.onnx";
        if (strcmp(of, domain) == 0) limit = model->versions[i];
    }
    sdx_op_info row;
    for (int i = 0; sdx_op_info_get(i, &row); i++)
        if (row.since <= limit && row.since > *out && strcmp(row.name, node->op) == 0 &&
            strcmp(*row.domain ? row.domain : "ai.onnx", domain) == 0)
            *out = row.since;
    return NULL;
}

static OrtStatusPtr give_named(const char *what, const OrtNode *node, char *const *names,
                               size_t count, const OrtValueInfo **out, size_t room)
{
    ORT_TRY(check_room(what, count, room));
    for (size_t i = 0; i < count; i++)
        out[i] = node->graph && *names[i] ? ort_graph_value(node->graph, names[i]) : NULL;
    return NULL;
}

static OrtStatusPtr get_node_num_inputs(const OrtNode *node, size_t *out)
{
    *out = node->count_inputs;
    return NULL;
}

static OrtStatusPtr get_node_inputs(const OrtNode *node, const OrtValueInfo **out, size_t room)
{
    return give_named("inputs", node, node->inputs, node->count_inputs, out, room);
}

static OrtStatusPtr get_node_num_outputs(const OrtNode *node, size_t *out)
{
    *out = node->count_outputs;
    return NULL;
}

static OrtStatusPtr get_node_outputs(const OrtNode *node, const OrtValueInfo **out, size_t room)
{
    return give_named("outputs", node, node->outputs, node->count_outputs, out, room);
}

static OrtStatusPtr count_none(const OrtNode *node, size_t *out)
{
    (void)node;
    *out = 0;
    return NULL;
}

static OrtStatusPtr get_node_implicit_inputs(const OrtNode *node, const OrtValueInfo **out,
                                             size_t room)
{
    (void)node, (void)out, (void)room;
    return NULL;
}

static OrtStatusPtr get_node_num_attributes(const OrtNode *node, size_t *out)
{
    *out = node->count_attributes;
    return NULL;
}

static OrtStatusPtr get_node_attributes(const OrtNode *node, const OrtOpAttr **out, size_t room)
{
    ORT_TRY(check_room("attributes", node->count_attributes, room));
    for (size_t i = 0; i < node->count_attributes; i++)
        out[i] = node->attributes[i];
    return NULL;
}

static OrtStatusPtr get_node_attribute_by_name(const OrtNode *node, const char *name,
                                               const OrtOpAttr **out)
{
    *out = NULL;
    for (size_t i = 0; i < node->count_attributes; i++)
        if (strcmp(node->attributes[i]->name, name) == 0) *out = node->attributes[i];
    if (*out) return NULL;
    return ort_fail(ORT_NOT_FOUND, "Node attribute does not exist: %s", name);
}

static OrtStatusPtr get_node_subgraphs(const OrtNode *node, const OrtGraph **out, size_t room,
                                       const char **names)
{
    (void)node, (void)out, (void)room, (void)names;
    return NULL;
}

static OrtStatusPtr get_node_graph(const OrtNode *node, const OrtGraph **out)
{
    *out = node->graph;
    return NULL;
}

/* No provider has it: a session is made of a copy of the model. */
static OrtStatusPtr get_node_ep_name(const OrtNode *node, const char **out)
{
    (void)node;
    *out = "";
    return NULL;
}

void ort_fill_graph(OrtApi *api)
{
    api->GetValueInfoName = get_value_info_name;
    api->GetValueInfoTypeInfo = get_value_info_type;
    api->ValueInfo_GetValueProducer = get_value_producer;
    api->ValueInfo_GetValueNumConsumers = get_value_num_consumers;
    api->ValueInfo_GetValueConsumers = get_value_consumers;
    api->ValueInfo_GetInitializerValue = get_initializer_value;
    api->ValueInfo_GetExternalInitializerInfo = get_external_initializer_info;
    api->ValueInfo_IsRequiredGraphInput = is_required_graph_input;
    api->ValueInfo_IsOptionalGraphInput = is_optional_graph_input;
    api->ValueInfo_IsGraphOutput = is_graph_output;
    api->ValueInfo_IsConstantInitializer = is_constant_initializer;
    api->ValueInfo_IsFromOuterScope = is_from_outer_scope;
    api->Graph_GetName = get_graph_name;
    api->Graph_GetModelPath = get_graph_model_path;
    api->Graph_GetOnnxIRVersion = get_graph_ir_version;
    api->Graph_GetNumOperatorSets = get_graph_num_operator_sets;
    api->Graph_GetOperatorSets = get_graph_operator_sets;
    api->Graph_GetNumInputs = get_graph_num_inputs;
    api->Graph_GetInputs = get_graph_inputs;
    api->Graph_GetNumOutputs = get_graph_num_outputs;
    api->Graph_GetOutputs = get_graph_outputs;
    api->Graph_GetNumInitializers = get_graph_num_initializers;
    api->Graph_GetInitializers = get_graph_initializers;
    api->Graph_GetNumNodes = get_graph_num_nodes;
    api->Graph_GetNodes = get_graph_nodes;
    api->Graph_GetParentNode = get_graph_parent_node;
    api->Node_GetId = get_node_id;
    api->Node_GetName = get_node_name;
    api->Node_GetOperatorType = get_node_operator_type;
    api->Node_GetDomain = get_node_domain;
    api->Node_GetSinceVersion = get_node_since_version;
    api->Node_GetNumInputs = get_node_num_inputs;
    api->Node_GetInputs = get_node_inputs;
    api->Node_GetNumOutputs = get_node_num_outputs;
    api->Node_GetOutputs = get_node_outputs;
    api->Node_GetNumImplicitInputs = count_none;
    api->Node_GetImplicitInputs = get_node_implicit_inputs;
    api->Node_GetNumAttributes = get_node_num_attributes;
    api->Node_GetAttributes = get_node_attributes;
    api->Node_GetAttributeByName = get_node_attribute_by_name;
    api->Node_GetNumSubgraphs = count_none;
    api->Node_GetSubgraphs = get_node_subgraphs;
    api->Node_GetGraph = get_node_graph;
    api->Node_GetEpName = get_node_ep_name;
    api->ReleaseValueInfo = ort_value_info_free;
    api->ReleaseNode = ort_node_free;
    api->ReleaseGraph = ort_graph_free;
    api->ReleaseModel = ort_model_free;
}
