/* SPDX-License-Identifier: Apache-2.0
 * What the Python extension, which is linked with this, asks for and the table has no slot for. */
#ifndef SDX_ABI_ORT_INSIDE_H
#define SDX_ABI_ORT_INSIDE_H

#include <sardonyx/ort.h>
#include <stdbool.h>

/* Appends a provider by any name that the engine takes ("ort:CPUExecutionProvider", "auto"); it is
 * started with the session, whose making fails when it cannot. */
OrtStatusPtr ort_provider_append(OrtSessionOptions *options, const char *name,
                                 const char *const *keys, const char *const *values, size_t count);
/* Names of what starts, for ReleaseAvailableProviders. with_library: the real library is also
 * looked for where it usually is, and its provider for the CPU is listed, behind ours. */
OrtStatusPtr ort_provider_names(bool with_library, char ***out, int *count);
/* Calls `each` with the name of what runs the session, in order of priority. */
OrtStatusPtr ort_session_providers(OrtSession *session, void (*each)(const char *name, void *user),
                                   void *user);
/* Versions of an adapter: of the format, the adapter, the model; and its parameter `i`, borrowed,
 * NULL past the end. */
void ort_lora_versions(const OrtLoraAdapter *adapter, int32_t versions[3]);
const OrtValue *ort_lora_parameter(const OrtLoraAdapter *adapter, size_t i, const char **name);
/* A sequence of no tensors of that type. */
OrtStatusPtr ort_sequence_empty(ONNXTensorElementDataType type, OrtValue **out);
#endif
