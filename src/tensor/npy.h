/* SPDX-License-Identifier: Apache-2.0
 * NumPy's .npy (format 1.0 to 3.0; little and big endian, C and Fortran order; numbers, bool,
 * complex, fixed-width 'S' and 'U' strings, ml_dtypes' bfloat16/float8/int4 names as '<V2', '|V1'
 * are refused with a clear line) and .npz (zip, stored or deflated; zlib is not used: inflate is
 * ours, bounded). Object arrays are refused. */
#ifndef SDX_TENSOR_NPY_H
#define SDX_TENSOR_NPY_H

#include "tensor/tensor.h"

SDX_MUST_CHECK enum sdx_status sdx_npy_read(struct sdx_context *cx, const void *bytes, size_t size,
                                            struct sdx_tensor **out);
SDX_MUST_CHECK enum sdx_status sdx_npy_load(struct sdx_context *cx, const char *path,
                                            struct sdx_tensor **out);
SDX_MUST_CHECK enum sdx_status sdx_npy_save(struct sdx_context *cx, const char *path,
                                            const struct sdx_tensor *tensor);
/* From memory; `member` without ".npy", NULL: the only one. */
SDX_MUST_CHECK enum sdx_status sdx_npz_read(struct sdx_context *cx, const void *bytes, size_t size,
                                            const char *member, struct sdx_tensor **out);
SDX_MUST_CHECK enum sdx_status sdx_npz_load(struct sdx_context *cx, const char *path,
                                            const char *member, struct sdx_tensor **out);
SDX_MUST_CHECK enum sdx_status sdx_npz_save(struct sdx_context *cx, const char *path, int count,
                                            const char *const *names,
                                            struct sdx_tensor *const *tensors);
#endif
