/* SPDX-License-Identifier: Apache-2.0
 * Looking up a model's metadata. */
#ifndef SDX_VISION_META_H
#define SDX_VISION_META_H

#include <sardonyx/sardonyx.h>

/* NULL when the model has no such key. Borrowed from the model. */
const char *sdx_vision_meta(const sdx_model *model, const char *key);

#endif
