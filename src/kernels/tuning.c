/* SPDX-License-Identifier: Apache-2.0
 * One row a class of CPU, chosen by the size of its second cache. The figures for 512 KB were
 * measured on Zen 3; those for other sizes scale the blocks that are meant to stay there. Zen 4
 * (AMD family 25 with 1 MB) reads streams that are fetched from afar at half its speed. */
#include "kernels/tuning.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/cpu.h"

static const struct {
    size_t l2_from;
    bool amd_25; /* only those */
    struct sdx_kernel_tuning tuning;
} rows[] = {
    {1024 << 10,
     true,
     {1536, 768, 64, 640 << 10, 512 << 10, 2, 384 << 10, 512, 4, 96, 6144, 65536, 384 << 10, 1024,
      8, 512}},
    {1024 << 10,
     false,
     {1536, 768, 64, 640 << 10, 512 << 10, 2, 384 << 10, 512, 4, 96, 6144, 65536, 384 << 10, 1024,
      8, 4096}},
    {512 << 10,
     false,
     {1536, 768, 64, 256 << 10, 256 << 10, 2, 192 << 10, 512, 4, 96, 6144, 65536, 192 << 10, 1024,
      8, 4096}},
    {0,
     false,
     {1024, 512, 64, 128 << 10, 128 << 10, 2, 96 << 10, 256, 4, 96, 6144, 65536, 96 << 10, 512, 8,
      4096}},
};

const struct sdx_kernel_tuning *sdx_kernel_tuning(void)
{
    static atomic_int chosen; /* 1 + row; found by whoever comes first, always the same */
    int row = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (SDX_UNLIKELY(!row)) {
        const size_t l2 = sdx_cpu_l2();
        const bool amd_25 = sdx_cpu_is_amd_25();
        row = 1;
        while (row < SDX_COUNT_OF(rows) &&
               (l2 < rows[row - 1].l2_from || (rows[row - 1].amd_25 && !amd_25)))
            row++;
        atomic_store_explicit(&chosen, row, memory_order_relaxed);
    }
    return &rows[row - 1].tuning;
}
