/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as .npy, as .npz and as a deflate stream. */
#include <stdint.h>
#include <stdlib.h>

#include "tensor/inflate.h"
#include "tensor/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static unsigned char out[1 << 16];
    struct sdx_mem mem;
    struct sdx_context cx = {0};
    struct sdx_tensor *t = NULL;
    sdx_mem_init(&mem, NULL, (size_t)256 << 20);
    cx.mem = &mem;
    if (sdx_npy_read(&cx, bytes, size, &t) == SDX_OK)
        sdx_tensor_release(t);
    else if (cx.error.text[0] == 0)
        abort(); /* a failure without a text */
    sdx_context_clear(&cx);
    if (sdx_npz_read(&cx, bytes, size, NULL, &t) == SDX_OK)
        sdx_tensor_release(t);
    else if (cx.error.text[0] == 0)
        abort();
    sdx_inflate(bytes, size, out, size > 0 ? (size_t)bytes[0] * 257 : 0);
    if (atomic_load(&mem.now) != 0) abort();
    return 0;
}
