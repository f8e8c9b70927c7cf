/* SPDX-License-Identifier: Apache-2.0
 * A program that appends providers by name and runs a model: what one written for ONNX Runtime does
 * that wants a GPU. borrowed_client LIBRARY MODELS PROVIDER */
#include "abi_client.h"

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
    c.api->ReleaseSessionOptions(options);
    client_close(&c);
    say("end", "reached");
    return 0;
}
