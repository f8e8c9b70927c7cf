/* SPDX-License-Identifier: Apache-2.0
 * The tables of all kernels: filled with the generic versions, then overwritten in rising order of
 * instruction sets, once. */
#include "kernels/tables.h"

#include <stdatomic.h>

#include "base/compiler.h"

static struct sdx_kernel_tables tables;
static atomic_int state; /* 0 empty, 1 being filled, 2 ready */

static void fill(struct sdx_kernel_tables *t, enum sdx_cpu_set most,
                 bool (*has)(enum sdx_cpu_set set))
{
    t->qdw.row_of_fours = NULL;
    t->gemm.f32_tile_a = NULL;
    t->gemm.f32_tile_pixels = NULL;
    t->gemm.f32_tile_b = NULL;
    t->gemm.f32_tiles = NULL;
    t->gemm.nbits_digit_row = NULL;
    t->gemm.nbits_digit_run = NULL;
    t->gemm.nbits_whole_fours = NULL;
    t->gemm.nbits_whole_bytes = NULL;
    t->gemm.nbits_tall_size = NULL;
#define HAS(flag) (flag == SDX_CPU_GENERIC || (flag <= most && has(flag)))
#define FILL(set, flag)                                                                            \
    if (HAS(flag)) {                                                                               \
        sdx_vec_map_init_##set(&t->vec);                                                           \
        sdx_vec_reduce_init_##set(&t->vec);                                                        \
        sdx_vec_convert_init_##set(&t->vec);                                                       \
        sdx_fft_init_##set(&t->fft);                                                               \
        sdx_gemm_init_##set(&t->gemm);                                                             \
        sdx_gemm_other_init_##set(&t->gemm);                                                       \
        sdx_nbits_init_##set(&t->gemm);                                                            \
        sdx_conv_init_##set(&t->gemm);                                                             \
        sdx_conv_block_depthwise_init_##set(&t->block);                                            \
        sdx_conv_block_group_init_##set(&t->block);                                                \
        sdx_conv_block_winograd_init_##set(&t->block);                                             \
        sdx_conv_block_init_##set(&t->block);                                                      \
        sdx_channel_block_init_##set(&t->channel);                                                 \
        sdx_pool_block_init_##set(&t->pool);                                                       \
        sdx_rnn_step_init_##set(&t->rnn);                                                          \
        sdx_sample_init_##set(&t->sample);                                                         \
        sdx_qbytes_init_##set(&t->qbytes);                                                         \
        sdx_qshorts_init_##set(&t->qshorts);                                                       \
        sdx_qdot_init_##set(&t->qdot);                                                             \
        sdx_qwinograd_init_##set(&t->qwinograd);                                                   \
        sdx_qdw_init_##set(&t->qdw);                                                               \
    }
    SDX_KERNEL_SETS(FILL)
#undef FILL
#define FILL(set, flag)                                                                            \
    if (HAS(flag)) sdx_elements_init_##set(&t->elements);
    SDX_KERNEL_SETS_32(FILL)
#undef FILL
#undef HAS
#if defined(__x86_64__) && !defined(SDX_ONE_SET)
    const bool is_avx512 = SDX_CPU_AVX512 <= most && has(SDX_CPU_AVX512);
    if (SDX_CPU_AVXVNNI <= most && has(SDX_CPU_AVXVNNI) && !is_avx512)
        sdx_qdot_init_avxvnni(&t->qdot);
    if (SDX_CPU_AVX512VNNI <= most && has(SDX_CPU_AVX512VNNI)) {
        sdx_qdot_init_avx512vnni(&t->qdot);
        sdx_qdw_init_avx512vnni(&t->qdw);
        sdx_nbits_init_avx512vnni(&t->gemm);
    }
    if (t->qdot.natural == QDOT_ONES) { /* products of bytes are faster than those of shorts */
        t->qwinograd.run = NULL;
        t->qshorts.panels = NULL;
    }
    if (SDX_CPU_AVX512VBMI <= most && has(SDX_CPU_AVX512VBMI))
        sdx_qbytes_init_avx512vbmi(&t->qbytes);
    if (SDX_CPU_AMX <= most && has(SDX_CPU_AMX)) {
        sdx_qdot_init_amx(&t->qdot);
        sdx_gemm_init_amx(&t->gemm);
        sdx_nbits_init_amx(&t->gemm);
    }
#elif defined(__aarch64__) && !defined(SDX_ONE_SET)
    if (SDX_CPU_DOTPROD <= most && has(SDX_CPU_DOTPROD)) sdx_qdot_init_dotprod(&t->qdot);
#endif
}

const struct sdx_kernel_tables *sdx_kernel_tables(void)
{
    if (SDX_LIKELY(atomic_load_explicit(&state, memory_order_acquire) == 2)) return &tables;
    int empty = 0;
    if (atomic_compare_exchange_strong(&state, &empty, 1)) {
        fill(&tables, SDX_CPU_SET_COUNT, sdx_cpu_has);
        atomic_store_explicit(&state, 2, memory_order_release);
    }
    while (atomic_load_explicit(&state, memory_order_acquire) != 2) {
    }
    return &tables;
}

void sdx_kernel_tables_use(enum sdx_cpu_set most)
{
    fill(&tables, most, sdx_cpu_has_unmasked);
    atomic_store_explicit(&state, 2, memory_order_release);
}

const struct sdx_vec *sdx_vec(void)
{
    return &sdx_kernel_tables()->vec;
}

const struct sdx_fft_kernels *sdx_fft_kernels(void)
{
    return &sdx_kernel_tables()->fft;
}

const struct sdx_qbytes *sdx_qbytes(void)
{
    return &sdx_kernel_tables()->qbytes;
}

const struct sdx_channel_block *sdx_channel_block(void)
{
    return &sdx_kernel_tables()->channel;
}

const struct sdx_sample *sdx_sample(void)
{
    return &sdx_kernel_tables()->sample;
}
