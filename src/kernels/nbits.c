/* SPDX-License-Identifier: Apache-2.0
 * Packing and blocking of nbits.h. A panel of columns holds for each block of K its scales, its
 * shifts when there are zero points, and words of 32 / bits neighbouring k for each column, low
 * bits first. */
#include "kernels/nbits.h"

#include <string.h>

#include "base/compiler.h"
#include "kernels/tables.h"

enum { DEPTH = 512, WIDTH = 128, ROWS = 96 }; /* decoded at a time; rows of A that meet it */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t blocks_of(const struct sdx_nbits *w)
{
    return (w->k + w->block - 1) / w->block;
}
static int64_t words_of(const struct sdx_nbits *w)
{
    const int64_t each = 32 / w->bits;
    return (w->k + each - 1) / each;
}
/* In 4-byte lanes. */
static int64_t panel_step(const struct sdx_nbits *w)
{
    return (blocks_of(w) * (1 + w->has_zeros) + words_of(w)) * sdx_gemm_f32_panel();
}

size_t sdx_nbits_packed_size(const struct sdx_nbits *w)
{
    const int64_t cols = sdx_gemm_f32_panel(), panels = (w->n + cols - 1) / cols;
    return (size_t)(panels * panel_step(w)) * 4;
}

static uint32_t weight(const struct sdx_nbits *w, const struct sdx_nbits_source *s, int64_t n,
                       int64_t k)
{
    const int64_t bit = (n * s->row + k * s->column) * w->bits;
    const uint32_t q = (uint32_t)s->weights[bit / 8] >> (bit % 8) & ((1u << w->bits) - 1);
    return s->is_signed ? q ^ 1u << (w->bits - 1) : q;
}
void sdx_nbits_pack(const struct sdx_nbits *w, const struct sdx_nbits_source *source, void *packed)
{
    const int64_t cols = sdx_gemm_f32_panel(), blocks = blocks_of(w), each = 32 / w->bits;
    uint32_t *to = packed;
    SDX_ASSERT(w->block % each == 0);
    for (int64_t n0 = 0; n0 < w->n; n0 += cols)
        for (int64_t g = 0; g < blocks; g++) {
            for (int64_t j = 0; j < cols * (1 + w->has_zeros); j++) {
                const int64_t n = n0 + j % cols;
                float f = n < w->n ? source->scales[n * blocks + g] : 0.0f;
                if (j >= cols && n < w->n) f *= -source->zeros[n * blocks + g];
                memcpy(to++, &f, sizeof f);
            }
            const int64_t end = least(w->k, (g + 1) * w->block);
            for (int64_t k = g * w->block; k < end; k += each)
                for (int64_t n = n0; n < n0 + cols; n++) {
                    uint32_t word = 0;
                    for (int64_t i = 0; n < w->n && i < each && k + i < end; i++)
                        word |= weight(w, source, n, k + i) << (i * w->bits);
                    *to++ = word;
                }
        }
}

static bool is_thin(int64_t m)
{
    return m <= SDX_NBITS_THIN;
}
size_t sdx_nbits_scratch(const struct sdx_nbits *w, int64_t m)
{
    (void)w;
    return is_thin(m) ? 0 : (size_t)DEPTH * WIDTH * sizeof(float);
}

/* Panels of columns j0 .. j0 + width, decoded block of K by block of K. */
static void run_decoded(const struct sdx_nbits_job *job, int64_t m, const struct sdx_epilogue *e,
                        int64_t width, float *scratch)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t cols = table->cols, k_all = job->w->k;
    int64_t k0 = 0;
    do {
        const int64_t depth = least(DEPTH, k_all - k0);
        for (int64_t j = 0; j < width; j += cols)
            table->nbits_decode(job->w, job->packed + j / cols * job->panel_step, k0, k0 + depth,
                                scratch + j * depth);
        for (int64_t i = 0; i < m; i += ROWS) {
            struct sdx_gemm_job g = {.m = least(ROWS, m - i),
                                     .n = job->width,
                                     .k = depth,
                                     .a = job->a + i * job->row_a + k0,
                                     .row_a = job->row_a,
                                     .b = scratch,
                                     .row_b = cols,
                                     .panel_step = depth * cols,
                                     .c = job->c + i * job->row_c,
                                     .row_c = job->row_c,
                                     .from_c = k0 > 0,
                                     .last = k0 + depth >= k_all,
                                     .alpha = 1.0f,
                                     .epilogue = *e};
            table->f32_block(&g);
        }
        k0 += depth;
    } while (k0 < k_all);
}

void sdx_nbits_run(const struct sdx_nbits *w, const void *packed, int64_t m, const float *a,
                   int64_t row_a, float *c, int64_t row_c, const struct sdx_epilogue *epilogue,
                   int64_t n0, int64_t n1, void *scratch)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t cols = table->cols;
    SDX_ASSERT(n0 % cols == 0 && !epilogue->residual && !epilogue->bias_row);
    if (m <= 0 || n0 >= n1) return;
    struct sdx_nbits_job job = {
        .w = w, .a = a, .row_a = row_a, .row_c = row_c, .panel_step = panel_step(w), .m = m};
    const int64_t width = is_thin(m) ? n1 - n0 : WIDTH;
    for (int64_t j = n0; j < n1; j += width) {
        struct sdx_epilogue e = *epilogue;
        job.width = least(width, n1 - j);
        job.packed = (const uint32_t *)packed + j / cols * job.panel_step;
        job.c = c + j;
        if (e.bias_col) e.bias_col += j;
        if (is_thin(m)) {
            job.epilogue = &e;
            table->nbits_thin(&job);
            for (int64_t i = 0; i < m && e.act != SDX_ACT_NONE; i++)
                table->f32_finish(job.c + i * row_c, job.c + i * row_c, job.width, 0.0f, NULL, &e);
        } else {
            run_decoded(&job, m, &e, (job.width + cols - 1) / cols * cols, scratch);
        }
    }
}
