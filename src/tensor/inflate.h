/* SPDX-License-Identifier: Apache-2.0
 * Deflate (RFC 1951), decoding only, into a buffer of known size. */
#ifndef SDX_TENSOR_INFLATE_H
#define SDX_TENSOR_INFLATE_H

#include <stddef.h>

/* NULL when `in` is one whole deflate stream that gives exactly `out_size` bytes; otherwise what is
 * wrong with it. Never reads or writes outside the two buffers. */
const char *sdx_inflate(const unsigned char *in, size_t in_size, unsigned char *out,
                        size_t out_size);
#endif
