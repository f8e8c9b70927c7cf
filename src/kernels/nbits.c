/* SPDX-License-Identifier: Apache-2.0
 * Packing and blocking of nbits.h. A panel of columns holds for each block of K its scales, its
 * shifts when there are zero points, and words of 32 / bits neighbouring k for each column.
 *
 * A word for floats has its weights from the low bits on, the top bit of the topmost turned, which
 * makes that signed; weights of 8 bits are signed bytes, those of one k of all columns side by
 * side. A word of whole products is four bytes or, of 8-bit weights, two shorts, that masks take
 * apart into runs of neighbouring k: the first run lies at the low end of each byte or short, the
 * next above it. Where a kernel takes bytes of 8-bit weights, a word is four of them, unsigned. */
#include "kernels/nbits.h"

#include <string.h>

#include "base/compiler.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

/* Rows of A that meet a panel while both are in the caches; and those of which 16 go together. */
enum { ROWS = 64, ROW_BYTES = 1 << 18, TOGETHER = 16, TALL_BYTES = 1 << 20 };

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
static bool has_digits(const struct sdx_nbits *w)
{
    return !w->whole && w->bits == 4 && sdx_kernel_tables()->gemm.nbits_digit_run;
}
/* Are whole products those of bytes with weights of 8 bits, which are unsigned then? */
static bool has_bytes(const struct sdx_nbits *w)
{
    return w->whole && w->bits == 8 && sdx_kernel_tables()->gemm.nbits_whole_bytes;
}
/* Bytes of a number of whole products. */
static int size_of(const struct sdx_nbits *w)
{
    return w->bits == 8 && !has_bytes(w) ? 2 : 1;
}
bool sdx_nbits_packs_bytes(const struct sdx_nbits *w)
{
    return w->whole || has_digits(w);
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

/* Where a weight begins in its word, and the bit that is turned to make it signed or unsigned. */
struct place {
    int64_t bit;
    uint32_t turn;
};
static void find_places(const struct sdx_nbits *w, bool is_signed, struct place *places)
{
    const int64_t run = size_of(w) == 2 ? 2 : 4, each = 32 / w->bits;
    const bool is_bytes = sdx_nbits_packs_bytes(w);
    for (int64_t i = 0; i < each; i++) {
        const bool becomes_signed = w->bits == 8 ? !has_bytes(w) : !is_bytes && i == each - 1;
        places[i].bit = is_bytes ? i % run * (32 / run) + i / run * w->bits : i * w->bits;
        places[i].turn = is_signed != becomes_signed ? 1u << (w->bits - 1) : 0;
    }
}
static uint32_t weight(const struct sdx_nbits *w, const struct sdx_nbits_source *s, int64_t n,
                       int64_t k)
{
    const int64_t bit = (n * s->row + k * s->column) * w->bits;
    return (uint32_t)s->weights[bit / 8] >> (bit % 8) & ((1u << w->bits) - 1);
}
/* What each byte of 32 bits of a row, where its weights lie side by side, becomes in their word. */
typedef uint32_t moves[4][256];
static void find_moves(const struct sdx_nbits *w, const struct place *places, moves to)
{
    const int64_t each = 8 / w->bits;
    for (int64_t b = 0; b < 4; b++, places += each)
        for (uint32_t v = 0; v < 256; v++) {
            to[b][v] = 0;
            for (int64_t i = 0; i < each; i++) {
                const uint32_t q = v >> (i * w->bits) & ((1u << w->bits) - 1);
                to[b][v] |= (q ^ places[i].turn) << places[i].bit;
            }
        }
}
/* The word of a column among those of `cols`. */
static void put(const struct sdx_nbits *w, uint32_t *words, int64_t cols, int64_t column,
                uint32_t word)
{
    if (w->whole || w->bits != 8) {
        words[column] = word;
        return;
    }
    for (int64_t i = 0; i < 4; i++)
        ((uint8_t *)words)[i * cols + column] = (uint8_t)(word >> 8 * i);
}
static float shift_of(const struct sdx_nbits *w, const struct sdx_nbits_source *s, int64_t at)
{
    return ((float)(1 << (w->bits - 1)) - s->zeros[at]) * s->scales[at];
}
void sdx_nbits_pack(const struct sdx_nbits *w, const struct sdx_nbits_source *source, void *packed)
{
    const int64_t cols = sdx_gemm_f32_panel(), blocks = blocks_of(w), each = 32 / w->bits;
    uint32_t *to = packed;
    const bool is_row = source->column == 1 && source->row % each == 0;
    struct place places[16];
    moves bytes;
    SDX_ASSERT(w->block % each == 0);
    find_places(w, source->is_signed, places);
    find_moves(w, places, bytes);
    for (int64_t n0 = 0; n0 < w->n; n0 += cols)
        for (int64_t g = 0; g < blocks; g++) {
            for (int64_t j = 0; j < cols * (1 + w->has_zeros); j++) {
                const int64_t n = n0 + j % cols, at = n * blocks + g;
                float f = 0;
                if (n < w->n) f = j < cols ? source->scales[at] : shift_of(w, source, at);
                memcpy(to++, &f, sizeof f);
            }
            const int64_t end = least(w->k, (g + 1) * w->block);
            for (int64_t k = g * w->block; k < end; k += each, to += cols)
                for (int64_t j = 0; j < cols; j++) {
                    const int64_t n = n0 + j, count = n < w->n ? least(each, end - k) : 0;
                    uint32_t word = 0;
                    if (is_row && count == each) {
                        const uint8_t *from = source->weights + (n * source->row + k) * w->bits / 8;
                        for (int b = 0; b < 4; b++)
                            word |= bytes[b][from[b]];
                    } else {
                        for (int64_t i = 0; i < count; i++)
                            word |= (weight(w, source, n, k + i) ^ places[i].turn) << places[i].bit;
                    }
                    put(w, to, cols, j, word);
                }
        }
}

/* Bytes of a row that is not one of many that go together. */
static size_t row_bytes_of(const struct sdx_nbits *w)
{
    const int64_t each = 32 / w->bits, numbers = words_of(w) * each, rest = w->k % w->block;
    if (w->whole)
        return (size_t)blocks_of(w) * sizeof(struct sdx_nbits_fact) +
               (size_t)(numbers * size_of(w));
    const int64_t runs = w->k / w->block * ((w->block + SDX_NBITS_RUN - 1) / SDX_NBITS_RUN) +
                         (rest + SDX_NBITS_RUN - 1) / SDX_NBITS_RUN;
    if (has_digits(w)) return (size_t)runs * (sizeof(struct sdx_nbits_fact) + 3 * SDX_NBITS_RUN);
    return (size_t)(blocks_of(w) + runs + numbers) * sizeof(float);
}
static size_t tall_size(const struct sdx_nbits *w, int64_t m)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    return table->nbits_tall_size ? table->nbits_tall_size(w, m) : 0;
}
size_t sdx_nbits_rows_size(const struct sdx_nbits *w, int64_t m)
{
    const size_t tall = tall_size(w, m);
    return tall ? tall : (size_t)m * row_bytes_of(w);
}
void sdx_nbits_rows(const struct sdx_nbits *w, int64_t m, const float *a, int64_t row_a, int64_t i0,
                    int64_t i1, void *rows)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const size_t step = row_bytes_of(w);
    if (tall_size(w, m)) {
        table->nbits_tall_rows(w, m, a, row_a, i0, i1, rows);
        return;
    }
    for (int64_t i = i0; i < i1; i++) {
        uint8_t *row = (uint8_t *)rows + (size_t)i * step;
        if (has_digits(w))
            table->nbits_digit_row(w, a + i * row_a, row);
        else
            table->nbits_row(w, size_of(w), a + i * row_a, row);
    }
}
int64_t sdx_nbits_columns(const struct sdx_nbits *w, int64_t m)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    const int64_t panels = m % 2 ? table->nbits_panels[0] : m % 4 ? table->nbits_panels[1] : 1;
    return table->cols * (sdx_nbits_packs_bytes(w) ? 1 : panels);
}
/* Rows of A that meet a panel at a time. */
static int64_t rows_of(const struct sdx_nbits *w, int64_t row_bytes)
{
    if (!sdx_nbits_packs_bytes(w) && w->block <= SDX_NBITS_CHUNK) return SDX_NBITS_TILED;
    const int64_t fit = ROW_BYTES / row_bytes / 4 * 4;
    return fit < 8 ? 8 : least(fit, ROWS);
}
/* The same of those that go together, of which 16 take so many bytes. */
static int64_t tall_rows_of(int64_t bytes)
{
    const int64_t fit = TALL_BYTES / bytes * TOGETHER;
    return fit < SDX_NBITS_TALL / 2 ? SDX_NBITS_TALL / 2 : least(fit, SDX_NBITS_TALL);
}
void sdx_nbits_run(const struct sdx_nbits *w, const void *packed, int64_t m, const void *rows,
                   float *c, int64_t row_c, const struct sdx_epilogue *epilogue, int64_t n0,
                   int64_t n1)
{
    const struct sdx_gemm_table *table = &sdx_kernel_tables()->gemm;
    SDX_ASSERT((!w->whole || w->block <= SDX_NBITS_WHOLE_BLOCK) && n0 % table->cols == 0 &&
               !epilogue->residual && !epilogue->bias_row);
    struct sdx_nbits_job job = {.w = w,
                                .panel_step = panel_step(w),
                                .row_bytes = (int64_t)row_bytes_of(w),
                                .row_c = row_c,
                                .width = n1 - n0,
                                .ahead = sdx_kernel_tuning()->stream_ahead / 4,
                                .bias = epilogue->bias_col ? epilogue->bias_col + n0 : NULL};
    const int64_t tall = (int64_t)tall_size(w, m) / ((m + TOGETHER - 1) / TOGETHER);
    const int64_t most = tall ? tall_rows_of(tall) : rows_of(w, job.row_bytes);
    job.packed = (const uint32_t *)packed + n0 / table->cols * job.panel_step;
    for (int64_t i = 0; i < m; i += most) {
        job.m = least(most, m - i);
        job.rows = (const uint8_t *)rows + (tall ? i / TOGETHER * tall : i * job.row_bytes);
        job.c = c + i * row_c + n0;
        if (tall) {
            table->nbits_tall_run(&job);
            continue;
        }
        if (w->whole && w->bits == 4 && table->nbits_whole_fours) {
            const int64_t fours = job.m / 4 * 4;
            table->nbits_whole_fours(&job);
            job.m -= fours;
            job.rows += fours * job.row_bytes;
            job.c += fours * row_c;
        }
        (has_digits(w)  ? table->nbits_digit_run
         : has_bytes(w) ? table->nbits_whole_bytes
                        : table->nbits_run)(&job);
    }
    struct sdx_epilogue act = {.act = epilogue->act, .a = epilogue->a, .b = epilogue->b};
    for (int64_t i = 0; i < m && act.act != SDX_ACT_NONE; i++)
        table->f32_finish(c + i * row_c + n0, c + i * row_c + n0, n1 - n0, 0.0f, NULL, &act);
}
