/* SPDX-License-Identifier: Apache-2.0
 * Packing and blocking of nbits.h. A panel of columns holds for each block of K its scales, its
 * shifts when there are zero points, and words of 32 / bits neighbouring k for each column. A word
 * has its weights from the low bits on. Of whole products it is four bytes or, of 8-bit weights,
 * two shorts, that masks take apart into runs of neighbouring k: the first run lies at the low end
 * of each byte or short, the next above it. */
#include "kernels/nbits.h"

#include <string.h>

#include "base/compiler.h"
#include "kernels/tables.h"

enum { DEPTH = 512, WIDTH = 128, ROWS = 96 }; /* decoded at a time; rows of A that meet it */
enum { WHOLE_ROWS = 64 };                     /* that meet a panel while it is in the first cache */

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

/* Are packed weights signed? */
static bool is_turned(const struct sdx_nbits *w)
{
    return w->whole && w->bits == 8;
}
static uint32_t weight(const struct sdx_nbits *w, const struct sdx_nbits_source *s, int64_t n,
                       int64_t k)
{
    const int64_t bit = (n * s->row + k * s->column) * w->bits;
    const uint32_t q = (uint32_t)s->weights[bit / 8] >> (bit % 8) & ((1u << w->bits) - 1);
    return s->is_signed != is_turned(w) ? q ^ 1u << (w->bits - 1) : q;
}
/* Where weight i of a word begins. */
static int64_t bit_of(const struct sdx_nbits *w, int64_t i)
{
    const int64_t run = w->bits == 8 ? 2 : 4;
    return w->whole ? i % run * (32 / run) + i / run * w->bits : i * w->bits;
}
static float shift_of(const struct sdx_nbits *w, const struct sdx_nbits_source *s, int64_t at)
{
    const float middle = w->whole ? (float)(1 << (w->bits - 1)) : 0.0f;
    return (middle - s->zeros[at]) * s->scales[at];
}
void sdx_nbits_pack(const struct sdx_nbits *w, const struct sdx_nbits_source *source, void *packed)
{
    const int64_t cols = sdx_gemm_f32_panel(), blocks = blocks_of(w), each = 32 / w->bits;
    uint32_t *to = packed;
    SDX_ASSERT(w->block % each == 0);
    for (int64_t n0 = 0; n0 < w->n; n0 += cols)
        for (int64_t g = 0; g < blocks; g++) {
            for (int64_t j = 0; j < cols * (1 + w->has_zeros); j++) {
                const int64_t n = n0 + j % cols, at = n * blocks + g;
                float f = 0;
                if (n < w->n) f = j < cols ? source->scales[at] : shift_of(w, source, at);
                memcpy(to++, &f, sizeof f);
            }
            const int64_t end = least(w->k, (g + 1) * w->block);
            for (int64_t k = g * w->block; k < end; k += each)
                for (int64_t n = n0; n < n0 + cols; n++) {
                    uint32_t word = 0;
                    for (int64_t i = 0; n < w->n && i < each && k + i < end; i++)
                        word |= weight(w, source, n, k + i) << bit_of(w, i);
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
            job.bias = e.bias_col;
            table->nbits_thin(&job);
            for (int64_t i = 0; i < m && e.act != SDX_ACT_NONE; i++)
                table->f32_finish(job.c + i * row_c, job.c + i * row_c, job.width, 0.0f, NULL, &e);
        } else {
            run_decoded(&job, m, &e, (job.width + cols - 1) / cols * cols, scratch);
        }
    }
}

size_t sdx_nbits_row_bytes(const struct sdx_nbits *w)
{
    const int64_t numbers = words_of(w) * (32 / w->bits);
    return (size_t)blocks_of(w) * sizeof(struct sdx_nbits_fact) +
           (size_t)(numbers * (w->bits == 8 ? 2 : 1));
}
void sdx_nbits_rows(const struct sdx_nbits *w, const float *a, int64_t row_a, int64_t i0,
                    int64_t i1, void *rows)
{
    const size_t step = sdx_nbits_row_bytes(w);
    for (int64_t i = i0; i < i1; i++)
        sdx_kernel_tables()->gemm.nbits_row(w, a + i * row_a, (uint8_t *)rows + (size_t)i * step);
}
void sdx_nbits_run_whole(const struct sdx_nbits *w, const void *packed, int64_t m, const void *rows,
                         float *c, int64_t row_c, const float *bias, int64_t n0, int64_t n1)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    SDX_ASSERT(w->whole && w->block <= SDX_NBITS_WHOLE_BLOCK && n0 % table->cols == 0);
    struct sdx_nbits_job job = {.w = w,
                                .panel_step = panel_step(w),
                                .row_bytes = (int64_t)sdx_nbits_row_bytes(w),
                                .row_c = row_c,
                                .width = n1 - n0,
                                .bias = bias ? bias + n0 : NULL};
    job.packed = (const uint32_t *)packed + n0 / table->cols * job.panel_step;
    for (int64_t i = 0; i < m; i += WHOLE_ROWS) {
        job.m = least(WHOLE_ROWS, m - i);
        job.rows = (const uint8_t *)rows + i * job.row_bytes;
        job.c = c + i * row_c + n0;
        table->nbits_whole(&job);
    }
}
