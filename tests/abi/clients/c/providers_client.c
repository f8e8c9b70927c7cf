/* SPDX-License-Identifier: Apache-2.0
 * Options of providers that this build does not have, and appending these. */
#include "abi_client.h"

#include <stdio.h>
#include <stdlib.h>

/* Room for the structs of old provider options, all zero. */
static const long long zeros[64];

static void check_cuda(struct client *c, OrtSessionOptions *options)
{
    OrtCUDAProviderOptionsV2 *cuda = NULL;
    char *text = NULL;
    const char *keys[] = {"device_id"}, *values[] = {"0"};
    if (!say_status(c, "cuda.create", c->api->CreateCUDAProviderOptions(&cuda)) && cuda) {
        say_status(c, "cuda.update", c->api->UpdateCUDAProviderOptions(cuda, keys, values, 1));
        if (good(c, "cuda.text", c->api->GetCUDAProviderOptionsAsString(cuda, c->allocator, &text)))
            say("cuda.text", "%s", text);
        say_status(c, "cuda.append",
                   c->api->SessionOptionsAppendExecutionProvider_CUDA_V2(options, cuda));
    }
    c->api->ReleaseCUDAProviderOptions(cuda);
    say_status(c, "cuda.append_v1",
               c->api->SessionOptionsAppendExecutionProvider_CUDA(
                   options, (const OrtCUDAProviderOptions *)zeros));
    int device = 9;
    say_status(c, "gpu.get", c->api->GetCurrentGpuDeviceId(&device));
    say_status(c, "gpu.set", c->api->SetCurrentGpuDeviceId(0));
}

static void check_others(struct client *c, OrtSessionOptions *options)
{
    OrtTensorRTProviderOptionsV2 *trt = NULL;
    OrtROCMProviderOptions *rocm = NULL;
    OrtCANNProviderOptions *cann = NULL;
    OrtDnnlProviderOptions *dnnl = NULL;
    const OrtApi *api = c->api;
    say_status(c, "trt.create", api->CreateTensorRTProviderOptions(&trt));
    say_status(c, "trt.append",
               api->SessionOptionsAppendExecutionProvider_TensorRT(
                   options, (const OrtTensorRTProviderOptions *)zeros));
    say_status(c, "trt.append_v2",
               api->SessionOptionsAppendExecutionProvider_TensorRT_V2(options, trt));
    say_status(c, "rocm.create", api->CreateROCMProviderOptions(&rocm));
    say_status(c, "rocm.append", api->SessionOptionsAppendExecutionProvider_ROCM(options, rocm));
    say_status(c, "cann.create", api->CreateCANNProviderOptions(&cann));
    say_status(c, "cann.append", api->SessionOptionsAppendExecutionProvider_CANN(options, cann));
    say_status(c, "dnnl.create", api->CreateDnnlProviderOptions(&dnnl));
    say_status(c, "dnnl.append", api->SessionOptionsAppendExecutionProvider_Dnnl(options, dnnl));
    say_status(c, "migraphx.append",
               api->SessionOptionsAppendExecutionProvider_MIGraphX(
                   options, (const OrtMIGraphXProviderOptions *)zeros));
    say_status(c, "openvino.append",
               api->SessionOptionsAppendExecutionProvider_OpenVINO(
                   options, (const OrtOpenVINOProviderOptions *)zeros));
    say_status(c, "openvino.append_v2",
               api->SessionOptionsAppendExecutionProvider_OpenVINO_V2(options, NULL, NULL, 0));
    say_status(c, "vitis.append",
               api->SessionOptionsAppendExecutionProvider_VitisAI(options, NULL, NULL, 0));
    api->ReleaseTensorRTProviderOptions(trt);
    api->ReleaseROCMProviderOptions(rocm);
    api->ReleaseCANNProviderOptions(cann);
    api->ReleaseDnnlProviderOptions(dnnl);
}

int main(int argc, char **argv)
{
    struct client c;
    OrtSessionOptions *options = NULL;
    if (argc < 3) return 2;
    client_open(&c, argv[1], argv[2]);
    if (!good(&c, "options", c.api->CreateSessionOptions(&options))) return 1;
    check_cuda(&c, options);
    check_others(&c, options);
    c.api->ReleaseSessionOptions(options);
    client_close(&c);
    say("end", "reached");
    return 0;
}
