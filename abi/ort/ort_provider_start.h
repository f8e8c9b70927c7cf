/* SPDX-License-Identifier: Apache-2.0
 * Providers of a real ONNX Runtime library, which SDX_ORT_LIBRARY names. */
#ifndef SDX_ABI_ORT_PROVIDER_START_H
#define SDX_ABI_ORT_PROVIDER_START_H

#include "ort_objects.h"

/* Appends provider `name` when a session with it can be made. Otherwise a status with the text
 * `missing`, and the reason behind it when there is a library. */
OrtStatusPtr ort_provider_start(OrtSessionOptions *to, const char *name,
                                const struct OrtKeyValuePairs *with, OrtErrorCode code,
                                const char *missing);
/* Sets what runs the sessions of the engine; *room, of malloc, must live as long as `to`. */
OrtStatusPtr ort_provider_set(const OrtSessionOptions *options, sdx_session_options *to,
                              void **room);
#endif
