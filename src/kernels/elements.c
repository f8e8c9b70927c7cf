/* SPDX-License-Identifier: Apache-2.0
 * Runs kernels of whole blocks on any number of elements: an operand that stands still becomes a
 * block of it, and the last elements pass through blocks of their own, filled with them again. */
#include "kernels/elements.h"

#include <string.h>

#include "base/compiler.h"
#include "kernels/tables.h"

const struct sdx_elements *sdx_elements(void)
{
    return sdx_kernel_tables()->elements;
}

/* Fills `bytes` bytes with the first `done` of them again and again. */
static void repeat(char *room, size_t done, size_t bytes)
{
    for (; done < bytes; done *= 2)
        memcpy(room + done, room, done < bytes - done ? done : bytes - done);
}

void sdx_element_run(sdx_element_fn *fn, const float *arg, int count_in, const uint8_t *size,
                     const void *const *in, const int64_t *step, void *out, int64_t n)
{
    enum { BYTES = SDX_ELEMENT_BLOCK * SDX_ELEMENT_BYTES };
    _Alignas(64) char room[SDX_ELEMENT_IN + 1][BYTES];
    const void *at[SDX_ELEMENT_IN];
    size_t steps[SDX_ELEMENT_IN];
    const size_t blocks = (size_t)n / SDX_ELEMENT_BLOCK, rest = (size_t)n % SDX_ELEMENT_BLOCK;
    static const float none[2];
    if (n <= 0) return;
    if (!arg) arg = none;
    for (int i = 0; i < count_in; i++) {
        at[i] = in[i];
        steps[i] = step[i] ? SDX_ELEMENT_BLOCK : 0;
        if (step[i]) continue;
        memcpy(room[i], in[i], size[i]);
        repeat(room[i], size[i], (size_t)size[i] * SDX_ELEMENT_BLOCK);
        at[i] = room[i];
    }
    if (blocks) fn(at, steps, out, blocks, arg);
    if (!rest) return;
    for (int i = 0; i < count_in; i++) {
        if (!step[i]) continue;
        const size_t bytes = rest * size[i], skip = blocks * SDX_ELEMENT_BLOCK * size[i];
        memcpy(room[i], (const char *)in[i] + skip, bytes);
        repeat(room[i], bytes, (size_t)size[i] * SDX_ELEMENT_BLOCK);
        at[i] = room[i];
    }
    fn(at, steps, room[SDX_ELEMENT_IN], 1, arg);
    memcpy((char *)out + blocks * SDX_ELEMENT_BLOCK * size[count_in], room[SDX_ELEMENT_IN],
           rest * size[count_in]);
}
