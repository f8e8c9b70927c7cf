/* SPDX-License-Identifier: Apache-2.0
 * What npy.c and npz.c share: an array written to anything that takes bytes. */
#ifndef SDX_TENSOR_NPY_INTERNAL_H
#define SDX_TENSOR_NPY_INTERNAL_H

#include "tensor/npy.h"

struct sdx_npy_sink {
    enum sdx_status (*put)(struct sdx_npy_sink *sink, const void *bytes, size_t size);
};
SDX_MUST_CHECK enum sdx_status sdx_npy_put(struct sdx_context *cx, const struct sdx_tensor *tensor,
                                           struct sdx_npy_sink *to);
#endif
