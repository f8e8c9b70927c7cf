/* SPDX-License-Identifier: Apache-2.0
 * A program that appends providers by name and runs a model: what one written for ONNX Runtime does
 * that wants a GPU. borrowed_client LIBRARY MODELS PROVIDER */
#include "abi_client.h"

static const char *name_of(const OrtCustomOp *op)
{
    (void)op;
    return "Mine";
}

static const char *provider_of(const OrtCustomOp *op)
{
    (void)op;
    return NULL;
}

static size_t one(const OrtCustomOp *op)
{
    (void)op;
    return 1;
}

static ONNXTensorElementDataType type_of(const OrtCustomOp *op, size_t index)
{
    (void)op, (void)index;
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
}

/* With an operator of this program, which the model does not use. */
static void open_with_operator(struct client *c, OrtSessionOptions *options)
{
    static const OrtCustomOp mine = {.version = 1,
                                     .GetName = name_of,
                                     .GetExecutionProviderType = provider_of,
                                     .GetInputTypeCount = one,
                                     .GetInputType = type_of,
                                     .GetOutputTypeCount = one,
                                     .GetOutputType = type_of};
    OrtCustomOpDomain *domain = NULL;
    OrtSession *session = NULL;
    if (!good(c, "own", c->api->CreateCustomOpDomain("mine", &domain)) ||
        !good(c, "own", c->api->CustomOpDomain_Add(domain, &mine)) ||
        !good(c, "own", c->api->AddCustomOpDomain(options, domain)))
        return;
    say_status(c, "own.session",
               c->api->CreateSession(c->env, model_path(c, "linear.onnx"), options, &session));
    c->api->ReleaseSession(session);
    c->api->ReleaseCustomOpDomain(domain);
}

int main(int argc, char **argv)
{
    struct client c;
    OrtSessionOptions *options = NULL;
    OrtCUDAProviderOptionsV2 *cuda = NULL;
    OrtSession *session = NULL;
    float data[4] = {1, 2, 3, 4};
    if (argc < 4) return 2;
    client_open(&c, argv[1], argv[2]);
    if (!good(&c, "options", c.api->CreateSessionOptions(&options))) return 1;
    if (good(&c, "cuda.create", c.api->CreateCUDAProviderOptions(&cuda)))
        say_status(&c, "cuda.append",
                   c.api->SessionOptionsAppendExecutionProvider_CUDA_V2(options, cuda));
    c.api->ReleaseCUDAProviderOptions(cuda);
    say_status(&c, "append",
               c.api->SessionOptionsAppendExecutionProvider(options, argv[3], NULL, NULL, 0));
    if (good(&c, "session",
             c.api->CreateSession(c.env, model_path(&c, "linear.onnx"), options, &session)))
        run_one(&c, "y", session, float_tensor(&c, data, 1, 4));
    c.api->ReleaseSession(session);
    open_with_operator(&c, options);
    c.api->ReleaseSessionOptions(options);
    client_close(&c);
    say("end", "reached");
    return 0;
}
