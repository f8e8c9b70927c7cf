/* SPDX-License-Identifier: Apache-2.0
 * Reading a graph that the model editor made, which the real library does not do: the expected
 * lines are in test_families.py. The graph: y = Relu(x + w). */
#include "abi_client.h"

#include <stdlib.h>

static const OrtModelEditorApi *editor;

static OrtValueInfo *value_info(struct client *c, const char *name)
{
    OrtTensorTypeAndShapeInfo *shape = NULL;
    OrtTypeInfo *type = NULL;
    OrtValueInfo *info = NULL;
    if (!good(c, name, c->api->CreateTensorTypeAndShapeInfo(&shape)) ||
        !good(c, name, c->api->SetTensorElementType(shape, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)) ||
        !good(c, name, c->api->SetDimensions(shape, (int64_t[]){2}, 1)) ||
        !good(c, name, editor->CreateTensorTypeInfo(shape, &type)) ||
        !good(c, name, editor->CreateValueInfo(name, type, &info)))
        exit(1);
    c->api->ReleaseTypeInfo(type);
    c->api->ReleaseTensorTypeAndShapeInfo(shape);
    return info;
}

static OrtGraph *make_graph(struct client *c)
{
    OrtGraph *graph = NULL;
    OrtNode *add = NULL, *relu = NULL;
    OrtValue *w = NULL;
    if (!good(c, "make", editor->CreateGraph(&graph)) ||
        !good(c, "make",
              editor->CreateNode("Add", "", "sum", (const char *[]){"x", "w"}, 2,
                                 (const char *[]){"s"}, 1, NULL, 0, &add)) ||
        !good(c, "make",
              editor->CreateNode("Relu", "", "positive", (const char *[]){"s"}, 1,
                                 (const char *[]){"y"}, 1, NULL, 0, &relu)) ||
        !good(c, "make",
              c->api->CreateTensorAsOrtValue(c->allocator, (int64_t[]){2}, 1,
                                             ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &w)) ||
        !good(c, "make",
              editor->SetGraphInputs(graph, (OrtValueInfo *[]){value_info(c, "x")}, 1)) ||
        !good(c, "make",
              editor->SetGraphOutputs(graph, (OrtValueInfo *[]){value_info(c, "y")}, 1)) ||
        !good(c, "make", editor->AddInitializerToGraph(graph, "w", w, false)) ||
        !good(c, "make", editor->AddNodeToGraph(graph, add)) ||
        !good(c, "make", editor->AddNodeToGraph(graph, relu)))
        exit(1);
    return graph;
}

static void say_info(struct client *c, const OrtValueInfo *info)
{
    const char *name = NULL, *maker = NULL;
    const OrtNode *producer = NULL;
    size_t output = 9, consumers = 9;
    bool required = false, is_output = false, constant = false;
    if (!good(c, "info", c->api->GetValueInfoName(info, &name)) ||
        !good(c, "info", c->api->ValueInfo_GetValueProducer(info, &producer, &output)) ||
        !good(c, "info", c->api->ValueInfo_GetValueNumConsumers(info, &consumers)) ||
        !good(c, "info", c->api->ValueInfo_IsRequiredGraphInput(info, &required)) ||
        !good(c, "info", c->api->ValueInfo_IsGraphOutput(info, &is_output)) ||
        !good(c, "info", c->api->ValueInfo_IsConstantInitializer(info, &constant)) ||
        (producer && !good(c, "info", c->api->Node_GetName(producer, &maker))))
        return;
    say("info", "%s of %s consumers %zu required %d output %d constant %d", name,
        maker ? maker : "none", consumers, required, is_output, constant);
}

static void say_node(struct client *c, const OrtNode *node)
{
    const char *name = NULL, *op = NULL;
    const OrtValueInfo *inputs[2] = {NULL}, *outputs[1] = {NULL};
    size_t count = 0, id = 9;
    int since = 0;
    if (!good(c, "node", c->api->Node_GetName(node, &name)) ||
        !good(c, "node", c->api->Node_GetOperatorType(node, &op)) ||
        !good(c, "node", c->api->Node_GetId(node, &id)) ||
        !good(c, "node", c->api->Node_GetSinceVersion(node, &since)) ||
        !good(c, "node", c->api->Node_GetNumInputs(node, &count)) ||
        !good(c, "node", c->api->Node_GetInputs(node, inputs, 2)) ||
        !good(c, "node", c->api->Node_GetOutputs(node, outputs, 1)))
        return;
    say("node", "%zu %s %s-%d inputs %zu", id, name, op, since, count);
    for (size_t i = 0; i < count; i++)
        say_info(c, inputs[i]);
    say_info(c, outputs[0]);
}

int main(int argc, char **argv)
{
    struct client c;
    OrtModel *model = NULL;
    const OrtNode *nodes[2] = {NULL};
    const int version = 18;
    size_t count = 0;
    if (argc < 3) return 2;
    client_open(&c, argv[1], argv[2]);
    editor = c.api->GetModelEditorApi();
    OrtGraph *graph = make_graph(&c);
    if (!good(&c, "model", editor->CreateModel((const char *[]){""}, &version, 1, &model)) ||
        !good(&c, "model", editor->AddGraphToModel(model, graph)) ||
        !good(&c, "nodes", c.api->Graph_GetNumNodes(graph, &count)))
        return 1;
    say_status(&c, "few", c.api->Graph_GetNodes(graph, nodes, 1));
    if (good(&c, "nodes", c.api->Graph_GetNodes(graph, nodes, 2)))
        for (size_t i = 0; i < count; i++)
            say_node(&c, nodes[i]);
    c.api->ReleaseModel(model);
    client_close(&c);
    say("end", "reached");
    return 0;
}
