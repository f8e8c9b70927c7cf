/* SPDX-License-Identifier: Apache-2.0
 * Matrix products of other types than f32: f64, and integers of 32 bits, which wrap. Once an
 * instruction set. */
#include "kernels/tables.h"
#include "kernels/simd.h"

enum { DEPTH = 128, ROWS = 6 };

#define T            double
#define V            vd
#define LANES_T      (LANES / 2)
#define SET1         vd_set1
#define LOAD         vd_load
#define STORE        vd_store
#define MUL_ADD      vd_fma
#define SUFFIX(name) name##_f64
#include "kernels/gemm_block_tmpl.h"
#undef T
#undef V
#undef LANES_T
#undef SET1
#undef LOAD
#undef STORE
#undef MUL_ADD
#undef SUFFIX

#define T                uint32_t
#define V                vu
#define LANES_T          LANES
#define SET1(x)          ((vu)vi_set1((int32_t)(x)))
#define LOAD(at)         ((vu)vi_load(at))
#define STORE(at, v)     vi_store(at, (vi)(v))
#define MUL_ADD(x, w, s) ((x) * (w) + (s))
#define SUFFIX(name)     name##_b32
#include "kernels/gemm_block_tmpl.h"

void SDX_INIT(sdx_gemm_other_init_)(struct sdx_gemm_table *gemm)
{
    gemm->f64_gemm = gemm_f64;
    gemm->b32_gemm = gemm_b32;
}
