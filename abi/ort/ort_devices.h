/* SPDX-License-Identifier: Apache-2.0
 * The choice of a device for a session. */
#ifndef SDX_ABI_ORT_DEVICES_H
#define SDX_ABI_ORT_DEVICES_H

#include "ort_objects.h"

/* Asks the program's function, where it gave one and no provider, which devices to use. */
OrtStatusPtr ort_choose_device(const OrtSessionOptions *options, const sdx_model *model);
#endif
