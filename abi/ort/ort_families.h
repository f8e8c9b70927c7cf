/* SPDX-License-Identifier: Apache-2.0
 * The families of functions behind struct OrtApi: a file each. A family fills in the members it has
 * (`api->CreateStatus = create_status;`, which checks the types); its functions are static there.
 * scripts/gen_ort_table.py reads these lines for docs/ort_abi.md. */
#ifndef SDX_ABI_ORT_FAMILIES_H
#define SDX_ABI_ORT_FAMILIES_H

#include <sardonyx/ort.h>

/* X(family): file ort_<family>.c, function ort_fill_<family> */
#define ORT_FAMILIES(X)                                                                            \
    X(status)                                                                                      \
    X(text)                                                                                        \
    X(env)                                                                                         \
    X(memory)                                                                                      \
    X(types)                                                                                       \
    X(values)                                                                                      \
    X(strings)                                                                                     \
    X(options)                                                                                     \
    X(session)                                                                                     \
    X(metadata)                                                                                    \
    X(run)                                                                                         \
    X(run_options)                                                                                 \
    X(profile)                                                                                     \
    X(providers)                                                                                   \
    X(opattr)                                                                                      \
    X(graph)                                                                                       \
    X(editor)                                                                                      \
    X(devices)                                                                                     \
    X(binding)                                                                                     \
    X(async)                                                                                       \
    X(customop)                                                                                    \
    X(shape_infer)                                                                                 \
    X(kernel_info)                                                                                 \
    X(kernel_context)                                                                              \
    X(op)                                                                                          \
    X(containers)                                                                                  \
    X(sparse)                                                                                      \
    X(provider_options)                                                                            \
    X(compile)                                                                                     \
    X(external)                                                                                    \
    X(lora)

#define ORT_FILL(family) void ort_fill_##family(OrtApi *api);
ORT_FAMILIES(ORT_FILL)
#undef ORT_FILL

/* A new status with a copy of `text`; the caller owns it. NULL only for code ORT_OK; where there is
 * no memory for the text, a status that says so. */
OrtStatusPtr ort_status(OrtErrorCode code, const char *text);
const char *ort_status_text(const OrtStatus *status); /* "" of NULL */
void ort_release_status(OrtStatus *status);
#endif
