/* SPDX-License-Identifier: Apache-2.0
 * One row a class of CPU, chosen by the size of its second cache. The figures for 512 KB were
 * measured on Zen 3; those for other sizes scale the blocks that are meant to stay there. */
#include "kernels/tuning.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/cpu.h"

static const struct {
    size_t l2_from;
    struct sdx_kernel_tuning tuning;
} rows[] = {
    {1024 << 10,
     {1536, 768, 64, 640 << 10, 512 << 10, 2, 384 << 10, 512, 4, 96, 6144, 65536, 384 << 10, 1024,
      8}},
    {512 << 10,
     {1536, 768, 64, 256 << 10, 256 << 10, 2, 192 << 10, 512, 4, 96, 6144, 65536, 192 << 10, 1024,
      8}},
    {0,
     {1024, 512, 64, 128 << 10, 128 << 10, 2, 96 << 10, 256, 4, 96, 6144, 65536, 96 << 10, 512, 8}},
};

const struct sdx_kernel_tuning *sdx_kernel_tuning(void)
{
    static atomic_int chosen; /* 1 + row; found by whoever comes first, always the same */
    int row = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (SDX_UNLIKELY(!row)) {
        const size_t l2 = sdx_cpu_l2();
        row = 1;
        while (row < SDX_COUNT_OF(rows) && l2 < rows[row - 1].l2_from)
            row++;
        atomic_store_explicit(&chosen, row, memory_order_relaxed);
    }
    return &rows[row - 1].tuning;
}
