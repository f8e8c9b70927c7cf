/* SPDX-License-Identifier: Apache-2.0
 * Models made through the model editor: built and run, wrong ones, and models that are augmented.
 */
#include "abi_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const OrtModelEditorApi *editor;

static OrtValueInfo *value_info(struct client *c, const char *name, ONNXTensorElementDataType type,
                                size_t rank, const int64_t *dims, const char **symbols)
{
    OrtTensorTypeAndShapeInfo *shape = NULL;
    OrtTypeInfo *of = NULL;
    OrtValueInfo *info = NULL;
    if (!good(c, name, c->api->CreateTensorTypeAndShapeInfo(&shape)) ||
        !good(c, name, c->api->SetTensorElementType(shape, type)) ||
        !good(c, name, c->api->SetDimensions(shape, dims, rank)))
        exit(1);
    if (symbols && !good(c, name, c->api->SetSymbolicDimensions(shape, symbols, rank))) exit(1);
    if (!good(c, name, editor->CreateTensorTypeInfo(shape, &of)) ||
        !good(c, name, editor->CreateValueInfo(name, of, &info)))
        exit(1);
    c->api->ReleaseTypeInfo(of);
    c->api->ReleaseTensorTypeAndShapeInfo(shape);
    return info;
}

static OrtNode *node(struct client *c, const char *op, const char *name, size_t count_inputs,
                     const char **inputs, const char *output, OrtOpAttr *attribute)
{
    OrtNode *made = NULL;
    if (!good(c, name,
              editor->CreateNode(op, "", name, inputs, count_inputs, &output, 1, &attribute,
                                 attribute ? 1 : 0, &made)))
        exit(1);
    return made;
}

/* The graph y = Gemm(x, w, b) with x [N, 2], w [2, 3]; `external`: w is the caller's memory. */
static OrtGraph *gemm_graph(struct client *c, const char *op, float *w)
{
    OrtGraph *graph = NULL;
    OrtValue *weights = NULL, *bias = NULL;
    OrtOpAttr *alpha = NULL;
    const float two = 2;
    float *b = NULL;
    if (!good(c, "graph", editor->CreateGraph(&graph))) exit(1);
    OrtValueInfo *x = value_info(c, "x", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, (int64_t[]){-1, 2},
                                 (const char *[]){"N", ""});
    OrtValueInfo *y = value_info(c, "y", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2,
                                 (int64_t[]){-1, 48}, (const char *[]){"N", ""});
    weights = float_tensor(c, w, 2, 48);
    if (!good(c, "graph.bias",
              c->api->CreateTensorAsOrtValue(c->allocator, (int64_t[]){48}, 1,
                                             ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &bias)) ||
        !good(c, "graph.bias", c->api->GetTensorMutableData(bias, (void **)&b)) ||
        !good(c, "graph.alpha", c->api->CreateOpAttr("alpha", &two, 1, ORT_OP_ATTR_FLOAT, &alpha)))
        exit(1);
    for (int i = 0; i < 48; i++)
        b[i] = (float)i;
    OrtNode *gemm = node(c, op, "gemm_node", 3, (const char *[]){"x", "w", "b"}, "y", alpha);
    say_status(c, "graph.inputs", editor->SetGraphInputs(graph, &x, 1));
    say_status(c, "graph.outputs", editor->SetGraphOutputs(graph, &y, 1));
    say_status(c, "graph.w", editor->AddInitializerToGraph(graph, "w", weights, true));
    say_status(c, "graph.b", editor->AddInitializerToGraph(graph, "b", bias, false));
    say_status(c, "graph.node", editor->AddNodeToGraph(graph, gemm));
    return graph;
}

static OrtModel *model_of(struct client *c, OrtGraph *graph, int version)
{
    OrtModel *model = NULL;
    if (!good(c, "model", editor->CreateModel((const char *[]){""}, &version, 1, &model))) exit(1);
    if (graph) say_status(c, "model.graph", editor->AddGraphToModel(model, graph));
    return model;
}

static void say_session(struct client *c, const char *name, OrtSession *session)
{
    size_t inputs = 0, outputs = 0, over = 0;
    good(c, name, c->api->SessionGetInputCount(session, &inputs));
    good(c, name, c->api->SessionGetOutputCount(session, &outputs));
    good(c, name, c->api->SessionGetOverridableInitializerCount(session, &over));
    say(name, "%zu inputs %zu outputs %zu overridable", inputs, outputs, over);
    for (size_t i = 0; i < inputs + outputs; i++) {
        char *text = NULL;
        OrtTypeInfo *type = NULL;
        OrtStatus *failed =
            i < inputs ? c->api->SessionGetInputName(session, i, c->allocator, &text)
                       : c->api->SessionGetOutputName(session, i - inputs, c->allocator, &text);
        if (!good(c, name, failed)) continue;
        failed = i < inputs ? c->api->SessionGetInputTypeInfo(session, i, &type)
                            : c->api->SessionGetOutputTypeInfo(session, i - inputs, &type);
        if (good(c, name, failed)) {
            say_type(c, text, type);
            c->api->ReleaseTypeInfo(type);
        }
        good(c, name, c->api->AllocatorFree(c->allocator, text));
    }
}

static void check_build(struct client *c, OrtSessionOptions *options)
{
    float w[96], x[] = {1, 2, 3, 4};
    OrtSession *session = NULL;
    for (int i = 0; i < 96; i++)
        w[i] = (float)(i % 7);
    OrtModel *model = model_of(c, gemm_graph(c, "Gemm", w), 18);
    say_status(c, "build", editor->CreateSessionFromModel(c->env, model, options, &session));
    c->api->ReleaseModel(model);
    if (!session) return;
    say_session(c, "build.session", session);
    run_one(c, "build.run", session, float_tensor(c, x, 2, 2));
    c->api->ReleaseSession(session);
}

static void check_wrong(struct client *c, OrtSessionOptions *options)
{
    float w[96] = {0}, small[2] = {0};
    OrtSession *session = NULL;
    OrtModel *model = model_of(c, gemm_graph(c, "NoSuchOperator", w), 18);
    say_status(c, "wrong.operator",
               editor->CreateSessionFromModel(c->env, model, options, &session));
    c->api->ReleaseModel(model);
    OrtGraph *graph = NULL;
    if (!good(c, "wrong.graph", editor->CreateGraph(&graph))) return;
    model = model_of(c, graph, 18);
    say_status(c, "wrong.empty", editor->CreateSessionFromModel(c->env, model, options, &session));
    c->api->ReleaseModel(model);
    say_status(c, "wrong.null_graph", editor->AddGraphToModel(NULL, NULL));
    if (!good(c, "wrong.graph", editor->CreateGraph(&graph))) return;
    OrtValue *tensor = float_tensor(c, small, 1, 2);
    say_status(c, "wrong.small", editor->AddInitializerToGraph(graph, "small", tensor, true));
    c->api->ReleaseValue(tensor);
    c->api->ReleaseGraph(graph);
    OrtNode *made = NULL;
    const char *name = "x";
    say_status(c, "wrong.no_op",
               editor->CreateNode("", "", "n", &name, 1, &name, 1, NULL, 0, &made));
    if (made) c->api->ReleaseNode(made);
    OrtValueInfo *info = NULL;
    OrtTypeInfo *type = NULL;
    OrtTensorTypeAndShapeInfo *shape = NULL;
    if (!good(c, "wrong.shape", c->api->CreateTensorTypeAndShapeInfo(&shape))) return;
    say_status(c, "wrong.type", editor->CreateTensorTypeInfo(shape, &type));
    say_status(c, "wrong.null_type", editor->CreateValueInfo("x", NULL, &info));
    say_status(c, "wrong.no_name", editor->CreateValueInfo("", type, &info));
    c->api->ReleaseTypeInfo(type);
    c->api->ReleaseTensorTypeAndShapeInfo(shape);
}

/* A model of a file with a node put before its output's place: out = Neg(y). */
static void check_augment(struct client *c, OrtSessionOptions *options)
{
    OrtSession *session = NULL;
    int version = 0;
    float x[] = {1, -2, 3, -4};
    if (!good(
            c, "augment",
            editor->CreateModelEditorSession(c->env, model_path(c, "add.onnx"), options, &session)))
        return;
    if (good(c, "augment.opset", editor->SessionGetOpsetForDomain(session, "", &version)))
        say("augment.opset", "%d", version);
    say_status(c, "augment.no_domain",
               editor->SessionGetOpsetForDomain(session, "nowhere", &version));
    OrtGraph *graph = NULL;
    if (!good(c, "augment.graph", editor->CreateGraph(&graph))) return;
    OrtNode *neg = node(c, "Neg", "neg", 1, (const char *[]){"y"}, "out", NULL);
    OrtValueInfo *out =
        value_info(c, "out", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 2, (int64_t[]){-1, 2}, NULL);
    say_status(c, "augment.node", editor->AddNodeToGraph(graph, neg));
    say_status(c, "augment.outputs", editor->SetGraphOutputs(graph, &out, 1));
    OrtModel *model = model_of(c, graph, version);
    say_status(c, "augment.apply", editor->ApplyModelToModelEditorSession(session, model));
    c->api->ReleaseModel(model);
    say_status(c, "augment.final", editor->FinalizeModelEditorSession(session, options, NULL));
    say_session(c, "augment.session", session);
    OrtValue *in = float_tensor(c, x, 2, 2), *result = NULL;
    if (good(c, "augment.run",
             c->api->Run(session, NULL, (const char *[]){"x"}, (const OrtValue *const *)&in, 1,
                         (const char *[]){"out"}, 1, &result)))
        say_value(c, "augment.run", result);
    c->api->ReleaseValue(result);
    c->api->ReleaseValue(in);
    say_status(c, "augment.again", editor->FinalizeModelEditorSession(session, options, NULL));
    c->api->ReleaseSession(session);
    session = open_model(c, "add.onnx");
    if (!session) return;
    model = model_of(c, NULL, version);
    say_status(c, "augment.plain", editor->ApplyModelToModelEditorSession(session, model));
    say_status(c, "augment.plain.final",
               editor->FinalizeModelEditorSession(session, options, NULL));
    c->api->ReleaseModel(model);
    c->api->ReleaseSession(session);
}

static void check_types(struct client *c)
{
    OrtTensorTypeAndShapeInfo *shape = NULL;
    OrtTypeInfo *tensor = NULL, *other = NULL;
    if (!good(c, "types", c->api->CreateTensorTypeAndShapeInfo(&shape)) ||
        !good(c, "types",
              c->api->SetTensorElementType(shape, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64)) ||
        !good(c, "types", c->api->SetDimensions(shape, (int64_t[]){2, -1}, 2)) ||
        !good(c, "types", editor->CreateTensorTypeInfo(shape, &tensor)))
        return;
    say_type(c, "types.tensor", tensor);
    if (good(c, "types.sequence", editor->CreateSequenceTypeInfo(tensor, &other)))
        say_type(c, "types.sequence", other);
    c->api->ReleaseTypeInfo(other);
    if (good(c, "types.map",
             editor->CreateMapTypeInfo(ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, tensor, &other)))
        say_type(c, "types.map", other);
    c->api->ReleaseTypeInfo(other);
    if (good(c, "types.sparse", editor->CreateSparseTensorTypeInfo(shape, &other)))
        say_type(c, "types.sparse", other);
    c->api->ReleaseTypeInfo(other);
    const OrtOptionalTypeInfo *optional = NULL;
    OrtTypeInfo *contained = NULL;
    if (good(c, "types.optional", editor->CreateOptionalTypeInfo(tensor, &other))) {
        say_type(c, "types.optional", other);
        if (good(c, "types.optional", c->api->CastTypeInfoToOptionalTypeInfo(other, &optional)) &&
            good(c, "types.optional", c->api->GetOptionalContainedTypeInfo(optional, &contained)))
            say_type(c, "types.optional.contained", contained);
        c->api->ReleaseTypeInfo(contained);
    }
    c->api->ReleaseTypeInfo(other);
    c->api->ReleaseTypeInfo(tensor);
    c->api->ReleaseTensorTypeAndShapeInfo(shape);
}

int main(int argc, char **argv)
{
    struct client c;
    OrtSessionOptions *options = NULL;
    if (argc < 3) return 2;
    client_open(&c, argv[1], argv[2]);
    editor = c.api->GetModelEditorApi();
    if (!good(&c, "options", c.api->CreateSessionOptions(&options))) return 1;
    check_types(&c);
    check_build(&c, options);
    check_wrong(&c, options);
    check_augment(&c, options);
    c.api->ReleaseSessionOptions(options);
    client_close(&c);
    say("end", "reached");
    return 0;
}
