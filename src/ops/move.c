/* SPDX-License-Identifier: Apache-2.0
 * Strided copies (axes collapsed, then runs, fills, strided rows or blocked transpositions), and
 * the steps around kernels that would otherwise have to know strings and packed types. */
#include "ops/move.h"

#include "kernels/qbytes.h"
#include "kernels/vec.h"
#include "tensor/convert.h"

enum { MOVE_RUN, MOVE_FILL, MOVE_STRIDED, MOVE_TRANSPOSE };

/* Elements that a unit of work should have: about half an L1 data cache of 4-byte elements. */
enum { MOVE_BLOCK = 4096, MOVE_TILE = 16 };

/* Elements of a row that are copied one by one sooner than by a call. */
enum { MOVE_SHORT = 4 };

enum { MOVE_ROWS = 256 }; /* of short rows, whose lines the first cache holds */
enum { MOVE_AHEAD = 16 }; /* rows that are fetched before they are copied */

size_t sdx_move_size(int dtype)
{
    if (dtype == SDX_STRING) return sizeof(struct sdx_str);
    int bits = sdx_dtype_bits((sdx_dtype)dtype);
    return bits < 8 ? 1 : (size_t)bits / 8;
}

void sdx_move_strides(int rank, const int64_t *dims, int64_t *strides)
{
    uint64_t s = 1; /* wraps only where a length of 0 leaves nothing to address */
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = (int64_t)s;
        s *= (uint64_t)dims[i];
    }
}

struct pair16 {
    uint64_t half[2];
};

#define FILL(type, times)                                                                          \
    {                                                                                              \
        type one;                                                                                  \
        memcpy(&one, value, sizeof one);                                                           \
        all.half[0] = all.half[1] = one * UINT64_C(times);                                         \
    }

/* Stores of 16 bytes, of which the last two may overlap. */
void sdx_move_fill(void *dst, size_t size, const void *value, int64_t n)
{
    if (n <= 0) return;
    unsigned char *to = dst;
    const size_t total = (size_t)n * size;
    struct pair16 all;
    switch (size) {
    case 1: FILL(uint8_t, 0x0101010101010101) break;
    case 2: FILL(uint16_t, 0x0001000100010001) break;
    case 4: FILL(uint32_t, 0x0000000100000001) break;
    case 8: FILL(uint64_t, 1) break;
    default: memcpy(&all, value, sizeof all); break;
    }
    if (total < sizeof all) {
        sdx_move_bytes(to, &all, total);
        return;
    }
    for (size_t i = 0; i < total - sizeof all; i += sizeof all)
        memcpy(to + i, &all, sizeof all);
    memcpy(to + total - sizeof all, &all, sizeof all);
}
#undef FILL

/* Of the pieces of 16, 8 or 4 bytes the last two may overlap. */
void sdx_move_bytes(void *dst, const void *src, size_t bytes)
{
    char *to = dst;
    const char *from = src;
    if (bytes > 8 * sizeof(struct pair16)) {
        memcpy(to, from, bytes);
    } else if (bytes >= 16) {
        for (size_t i = 0; i < bytes - 16; i += 16)
            memcpy(to + i, from + i, 16);
        memcpy(to + bytes - 16, from + bytes - 16, 16);
    } else if (bytes >= 8) {
        memcpy(to, from, 8);
        memcpy(to + bytes - 8, from + bytes - 8, 8);
    } else if (bytes >= 4) {
        memcpy(to, from, 4);
        memcpy(to + bytes - 4, from + bytes - 4, 4);
    } else {
        for (size_t i = 0; i < bytes; i++)
            to[i] = from[i];
    }
}

/* Drops axes of length 1 and joins neighbours that are one in both strides. */
static void collapse(struct sdx_move *m, int rank, const int64_t *dims, const int64_t *src,
                     const int64_t *dst)
{
    int n = 0;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 1) continue;
        if (n > 0 && m->src[n - 1] == src[i] * dims[i] && m->dst[n - 1] == dst[i] * dims[i]) {
            m->dims[n - 1] *= dims[i];
            m->src[n - 1] = src[i];
            m->dst[n - 1] = dst[i];
        } else {
            m->dims[n] = dims[i];
            m->src[n] = src[i];
            m->dst[n] = dst[i];
            n++;
        }
    }
    if (n == 0) {
        m->dims[0] = 1;
        m->src[0] = m->dst[0] = 1;
        n = 1;
    }
    m->rank = n;
}

/* A last axis that stays together and has 2, 4, 8 or 16 bytes becomes an element, when no stride
 * cuts it. */
static void widen(struct sdx_move *m)
{
    const int last = m->rank - 1;
    const int64_t n = m->dims[last];
    const uint64_t size = (uint64_t)n * m->size;
    int64_t odd = m->src_at | m->dst_at;
    if (last == 0 || m->src[last] != 1 || m->dst[last] != 1 || size > 16 || size & (size - 1))
        return;
    for (int i = 0; i < last; i++)
        odd |= m->src[i] | m->dst[i];
    if (odd & (n - 1)) return;
    for (int i = 0; i < last; i++) {
        m->src[i] /= n;
        m->dst[i] /= n;
    }
    m->size = (size_t)size;
    m->src_at /= n;
    m->dst_at /= n;
    m->rank = last;
}

/* Puts the axis on which the source is contiguous next to the last one. */
static bool find_transposition(struct sdx_move *m)
{
    int last = m->rank - 1;
    for (int t = last - 1; t >= 0 && m->dst[last] == 1; t--) {
        if (m->src[t] != 1) continue;
        int64_t d = m->dims[t], s = m->src[t], o = m->dst[t];
        for (int i = t; i < last - 1; i++) {
            m->dims[i] = m->dims[i + 1];
            m->src[i] = m->src[i + 1];
            m->dst[i] = m->dst[i + 1];
        }
        m->dims[last - 1] = d;
        m->src[last - 1] = s;
        m->dst[last - 1] = o;
        return true;
    }
    return false;
}

void sdx_move_init(struct sdx_move *m, size_t size, int rank, const int64_t *dims,
                   const int64_t *src, const int64_t *dst, int64_t src_at, int64_t dst_at)
{
    SDX_ASSERT(rank <= SDX_MOVE_RANK && size <= sizeof(struct pair16) && !(size & (size - 1)));
    m->size = size;
    m->src_at = src_at;
    m->dst_at = dst_at;
    m->units = 0;
    for (int i = 0; i < rank; i++)
        if (dims[i] == 0) return;
    collapse(m, rank, dims, src, dst);
    widen(m);
    int last = m->rank - 1, split = last;
    m->outer = last;
    if (m->dst[last] == 1 && m->src[last] == 1) {
        m->kernel = MOVE_RUN;
    } else if (m->dst[last] == 1 && m->src[last] == 0) {
        m->kernel = MOVE_FILL;
    } else if (find_transposition(m)) {
        m->kernel = MOVE_TRANSPOSE;
        m->outer = last - 1;
        split = last - 1;
    } else {
        m->kernel = MOVE_STRIDED;
    }
    m->block = MOVE_BLOCK;
    if (m->kernel == MOVE_TRANSPOSE) {
        if (m->dims[last] > MOVE_BLOCK && m->dims[last - 1] < MOVE_TILE) split = last;
        m->block = MOVE_BLOCK / m->dims[split == last ? last - 1 : last] / MOVE_TILE * MOVE_TILE;
        if (m->block < MOVE_TILE) m->block = MOVE_TILE;
    }
    m->split = split;
    m->blocks = (m->dims[split] - 1) / m->block + 1;
    m->units = m->blocks;
    for (int i = 0; i < m->outer; i++)
        m->units *= m->dims[i];
}

int64_t sdx_move_parts(const struct sdx_move *m)
{
    double bytes = (double)m->size;
    for (int i = 0; i < m->rank && m->units > 0; i++)
        bytes *= (double)m->dims[i];
    return m->units > 0 ? sdx_prepare_parts(bytes, 128 * 1024, m->units) : 1;
}

/* dst[j * step_dst + i] = src[i * step_src + j] in tiles that stay in the cache. */
#define TRANSPOSE(type)                                                                            \
    for (int64_t i0 = 0; i0 < rows; i0 += MOVE_TILE) {                                             \
        int64_t i1 = i0 + MOVE_TILE < rows ? i0 + MOVE_TILE : rows;                                \
        for (int64_t j = 0; j < cols; j++)                                                         \
            for (int64_t i = i0; i < i1; i++)                                                      \
                memcpy(dst + (j * step_dst + i) * (int64_t)sizeof(type),                           \
                       src + (i * step_src + j) * (int64_t)sizeof(type), sizeof(type));            \
    }

/* A square of 8 x 8 elements of 2 bytes: rows i and i + 4 interleave, three times over. */
enum { SQUARE = 8 };
static void turn_square(const char *src, int64_t step_src, char *dst, int64_t step_dst)
{
    typedef uint16_t row __attribute__((vector_size(2 * SQUARE)));
    row a[SQUARE], b[SQUARE];
    SDX_UNROLL(8)
    for (int i = 0; i < SQUARE; i++)
        memcpy(&a[i], src + 2 * i * step_src, sizeof a[i]);
    SDX_UNROLL(3)
    for (int round = 0; round < 3; round++) {
        SDX_UNROLL(4)
        for (int i = 0; i < SQUARE / 2; i++) {
            const row x = a[i], y = a[i + SQUARE / 2];
            b[2 * i] = __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
            b[2 * i + 1] = __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
        }
        memcpy(a, b, sizeof a);
    }
    SDX_UNROLL(8)
    for (int i = 0; i < SQUARE; i++)
        memcpy(dst + 2 * i * step_dst, &a[i], sizeof a[i]);
}
static void transpose_shorts(const char *src, int64_t step_src, char *dst, int64_t step_dst,
                             int64_t rows, int64_t cols)
{
    const int64_t square_rows = rows / SQUARE * SQUARE, square_cols = cols / SQUARE * SQUARE;
    for (int64_t i = 0; i < square_rows; i += SQUARE)
        for (int64_t j = 0; j < square_cols; j += SQUARE)
            turn_square(src + 2 * (i * step_src + j), step_src, dst + 2 * (j * step_dst + i),
                        step_dst);
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = j < square_cols ? square_rows : 0; i < rows; i++)
            memcpy(dst + 2 * (j * step_dst + i), src + 2 * (i * step_src + j), 2);
}

static void copy_transposed(size_t size, const char *src, int64_t step_src, char *dst,
                            int64_t step_dst, int64_t rows, int64_t cols)
{
    switch (size) {
    case 1:
        sdx_qbytes()->transpose((const uint8_t *)src, (size_t)step_src, (uint8_t *)dst,
                                (size_t)step_dst, (size_t)rows, (size_t)cols);
        break;
    case 2: transpose_shorts(src, step_src, dst, step_dst, rows, cols); break;
    case 4:
        sdx_vec()->b32_transpose(src, (size_t)step_src, dst, (size_t)step_dst, (size_t)rows,
                                 (size_t)cols);
        break;
    case 8: TRANSPOSE(uint64_t); break;
    default: TRANSPOSE(struct pair16); break;
    }
}
#undef TRANSPOSE

#define STRIDED(type)                                                                              \
    for (; n > 0; n--, src += step_src, dst += step_dst)                                           \
        memcpy(dst, src, sizeof(type));

static void copy_strided(size_t size, const char *src, int64_t step_src, char *dst,
                         int64_t step_dst, int64_t n)
{
    switch (size) {
    case 1: STRIDED(uint8_t) break;
    case 2: STRIDED(uint16_t) break;
    case 4: STRIDED(uint32_t) break;
    case 8: STRIDED(uint64_t) break;
    default: STRIDED(struct pair16) break;
    }
}
#undef STRIDED

/* Rows of n <= 4 bytes that follow each other in dst: four at once, of which the next row
 * overwrites those that are too many. */
static void copy_pixels(const uint8_t *src, int64_t row_src, const int64_t *at, int64_t n,
                        uint8_t *dst, int64_t rows)
{
    const int64_t a = at[0], b = at[n > 1], c = at[n > 2 ? 2 : 0], d = at[n > 3 ? 3 : 0];
    for (; rows > 3; rows--, src += row_src, dst += n) {
        const uint32_t low = src[a] | (uint32_t)src[b] << 8;
        const uint32_t all = low | (uint32_t)src[c] << 16 | (uint32_t)src[d] << 24;
        memcpy(dst, &all, sizeof all);
    }
    for (; rows > 0; rows--, src += row_src, dst += n)
        for (int64_t k = 0; k < n; k++)
            dst[k] = src[at[k]];
}
void sdx_move_columns(size_t size, const void *src_data, int64_t row_src, const int64_t *at,
                      int64_t n, void *dst_data, int64_t row_dst, int64_t step_dst, int64_t rows)
{
    const char *src = src_data;
    char *dst = dst_data;
    if (size == 1 && n <= 4 && row_dst == n && step_dst == 1) {
        copy_pixels(src_data, row_src, at, n, dst_data, rows);
        return;
    }
    for (int64_t some; rows > 0; rows -= some, src += some * row_src, dst += some * row_dst) {
        some = rows < MOVE_ROWS ? rows : MOVE_ROWS;
        for (int64_t k = 0; k < n; k++)
            copy_strided(size, src + at[k], row_src, dst + k * step_dst, row_dst, some);
    }
}

/* n elements of the last axis in each of `rows` rows, which are the axis before it. */
static void copy_rows(const struct sdx_move *m, const char *src, char *dst, int64_t rows, int64_t n)
{
    const int last = m->rank - 1, row = last > 0 ? last - 1 : 0;
    const int64_t size = (int64_t)m->size;
    const int64_t step_src = m->src[last] * size, step_dst = m->dst[last] * size;
    const int64_t row_src = m->src[row] * size, row_dst = m->dst[row] * size;
    if (m->kernel == MOVE_STRIDED || n <= MOVE_SHORT) {
        if (n > MOVE_SHORT || rows < n) {
            for (; rows > 0; rows--, src += row_src, dst += row_dst)
                copy_strided(m->size, src, step_src, dst, step_dst, n);
            return;
        }
        const int64_t at[MOVE_SHORT] = {0, step_src, 2 * step_src, 3 * step_src};
        sdx_move_columns(m->size, src, row_src, at, n, dst, row_dst, step_dst, rows);
        return;
    }
    for (; rows > 0; rows--, src += row_src, dst += row_dst) {
        if (m->kernel != MOVE_RUN) {
            sdx_move_fill(dst, m->size, src, n);
            continue;
        }
        __builtin_prefetch(src + (rows > MOVE_AHEAD ? MOVE_AHEAD * row_src : 0));
        sdx_move_bytes(dst, src, (size_t)(n * size));
    }
}

/* Block b of the split axis. */
static void run_unit(const struct sdx_move *m, const char *src, char *dst, int64_t b)
{
    const int last = m->rank - 1, split = m->split;
    int64_t size = (int64_t)m->size, at = b * m->block, n = m->dims[split] - at;
    if (n > m->block) n = m->block;
    src += at * m->src[split] * size;
    dst += at * m->dst[split] * size;
    if (m->kernel == MOVE_TRANSPOSE)
        copy_transposed(m->size, src, m->src[last], dst, m->dst[last - 1],
                        split == last ? n : m->dims[last], split == last ? m->dims[last - 1] : n);
    else
        copy_rows(m, src, dst, 1, n);
}

void sdx_move_run(const struct sdx_move *m, const void *src_data, void *dst_data, int64_t begin,
                  int64_t end)
{
    if (begin >= end) return;
    int64_t at[SDX_MOVE_RANK], s = m->src_at, d = m->dst_at, rest = begin / m->blocks;
    int64_t b = begin % m->blocks;
    for (int i = m->outer - 1; i >= 0; i--) {
        at[i] = rest % m->dims[i];
        rest /= m->dims[i];
        s += at[i] * m->src[i];
        d += at[i] * m->dst[i];
    }
    const char *src = src_data;
    char *dst = dst_data;
    int64_t size = (int64_t)m->size;
    const bool by_rows = m->kernel != MOVE_TRANSPOSE && m->blocks == 1 && m->outer > 0;
    for (int64_t u = begin; u < end; u++) {
        if (by_rows) {
            const int last = m->outer - 1;
            const int64_t left = m->dims[last] - at[last], n = left < end - u ? left : end - u;
            copy_rows(m, src + s * size, dst + d * size, n, m->dims[m->rank - 1]);
            at[last] += n - 1; /* the last of them is stepped over below */
            s += (n - 1) * m->src[last];
            d += (n - 1) * m->dst[last];
            u += n - 1;
        } else {
            run_unit(m, src + s * size, dst + d * size, b);
            if (++b < m->blocks) continue;
            b = 0;
        }
        for (int i = m->outer - 1; i >= 0; i--) {
            s += m->src[i];
            d += m->dst[i];
            if (++at[i] < m->dims[i]) break;
            s -= m->src[i] * m->dims[i];
            d -= m->dst[i] * m->dims[i];
            at[i] = 0;
        }
    }
}

/* ---- steps ---- */

static enum sdx_status run_unpack(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct sdx_tensor *in = step->in[0];
    const unsigned char *src = in->data;
    unsigned char *dst = step->out[0]->data;
    int64_t begin = sdx_part_begin(in->count, step->parts, part, 8);
    int64_t end = sdx_part_begin(in->count, step->parts, part + 1, 8);
    int bits = sdx_dtype_bits((sdx_dtype)in->dtype), per = 8 / bits, mask = (1 << bits) - 1;
    for (int64_t i = begin; i < end; i++)
        dst[i] = (unsigned char)((src[i / per] >> (i % per * bits)) & mask);
    return SDX_OK;
}

static enum sdx_status run_pack(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct sdx_tensor *out = step->out[0];
    const unsigned char *src = step->in[0]->data;
    unsigned char *dst = out->data;
    int64_t begin = sdx_part_begin(out->count, step->parts, part, 8);
    int64_t end = sdx_part_begin(out->count, step->parts, part + 1, 8);
    int bits = sdx_dtype_bits((sdx_dtype)out->dtype), per = 8 / bits, mask = (1 << bits) - 1;
    for (int64_t i = begin; i < end; i += per) {
        int byte = 0;
        for (int64_t k = 0; k < per && i + k < end; k++)
            byte |= (src[i + k] & mask) << (k * bits);
        dst[i / per] = (unsigned char)byte;
    }
    return SDX_OK;
}

static enum sdx_status run_set_strings(struct sdx_exec *x, const struct sdx_step *step,
                                       int64_t part)
{
    (void)part;
    const struct sdx_tensor *from = step->in[0];
    return sdx_exec_output_strings(x, step, 0, from->rank, from->dims, from->data);
}

static bool is_packed(const struct sdx_tensor *t)
{
    return t && t->kind == SDX_KIND_TENSOR && t->dtype != SDX_DTYPE_NONE &&
           sdx_dtype_bits((sdx_dtype)t->dtype) < 8;
}

static int64_t pack_parts(const struct sdx_tensor *t)
{
    return sdx_prepare_parts((double)t->count, 65536, 64);
}

/* Replaces packed inputs by unpacked ones. */
static enum sdx_status open_inputs(struct sdx_prepare *px, struct sdx_tensor **in)
{
    for (int i = 0; i < px->count_in; i++) {
        in[i] = px->in[i];
        if (!is_packed(in[i])) continue;
        struct sdx_tensor *t = sdx_prepare_temp(px, SDX_U8, in[i]->rank, in[i]->dims);
        if (!t) return SDX_OUT_OF_MEMORY;
        SDX_TRY(sdx_prepare_step_on(px, "unpack", run_unpack, NULL, pack_parts(t), 0, 1, &in[i], 1,
                                    &t));
        in[i] = t;
    }
    return SDX_OK;
}

static enum sdx_status close_outputs(struct sdx_prepare *px, struct sdx_tensor **out)
{
    for (int k = 0; k < px->count_out; k++) {
        struct sdx_tensor *to = px->out[k];
        if (out[k] == to) continue;
        if (to->dtype == SDX_STRING)
            SDX_TRY(sdx_prepare_step_on(px, "set_strings", run_set_strings, NULL, 1, 0, 1, &out[k],
                                        1, &to));
        else
            SDX_TRY(sdx_prepare_step_on(px, "pack", run_pack, NULL, pack_parts(to), 0, 1, &out[k],
                                        1, &to));
    }
    return SDX_OK;
}

enum sdx_status sdx_move_step(struct sdx_prepare *px, const char *kernel, sdx_step_fn *run,
                              void *params, int64_t parts, size_t scratch)
{
    size_t n = (size_t)px->count_in + (size_t)px->count_out;
    struct sdx_tensor **in = sdx_prepare_alloc(px, (n + 1) * sizeof(*in));
    if (!in) return SDX_OUT_OF_MEMORY;
    struct sdx_tensor **out = in + px->count_in;
    SDX_TRY(open_inputs(px, in));
    for (int k = 0; k < px->count_out; k++) {
        out[k] = px->out[k];
        if (!out[k]) continue;
        bool is_string = out[k]->dtype == SDX_STRING;
        if (!is_string && !is_packed(out[k])) continue;
        out[k] = sdx_prepare_temp(px, is_string ? SDX_C128 : SDX_U8, out[k]->rank, out[k]->dims);
        if (!out[k]) return SDX_OUT_OF_MEMORY;
    }
    SDX_TRY(sdx_prepare_step_on(px, kernel, run, params, parts, scratch, px->count_in, in,
                                px->count_out, out));
    return close_outputs(px, out);
}

struct move_params {
    int input;
    struct sdx_move move;
};

static enum sdx_status run_move(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct move_params *p = step->params;
    sdx_move_run(&p->move, step->in[p->input]->data, step->out[0]->data,
                 sdx_part_begin(p->move.units, step->parts, part, 1),
                 sdx_part_begin(p->move.units, step->parts, part + 1, 1));
    return SDX_OK;
}

enum sdx_status sdx_move_add(struct sdx_prepare *px, const char *kernel, int i,
                             const struct sdx_move *m)
{
    struct move_params *p = SDX_PREPARE_NEW(px, struct move_params);
    if (!p) return SDX_OUT_OF_MEMORY;
    p->input = i;
    p->move = *m;
    return sdx_move_step(px, kernel, run_move, p, sdx_move_parts(m), 0);
}

enum sdx_status sdx_move_value(struct sdx_prepare *px, int i, const struct sdx_tensor **out)
{
    *out = sdx_prepare_value(px, i);
    if (!*out)
        return SDX_FAIL(px->cx, SDX_INTERNAL, "%.*s: input %d is not known while planning",
                        SDX_MOVE_OP(px), i);
    return SDX_OK;
}

enum sdx_status sdx_move_ints(struct sdx_prepare *px, int i, const int64_t **v, int64_t *count)
{
    const struct sdx_tensor *t = NULL;
    SDX_TRY(sdx_move_value(px, i, &t));
    int64_t *to = sdx_prepare_alloc(px, (size_t)(t->count + 1) * sizeof(*to));
    if (!to) return SDX_OUT_OF_MEMORY;
    for (int64_t k = 0; k < t->count; k++)
        to[k] = sdx_load_i64(t->dtype, t->data, k);
    *v = to;
    *count = t->count;
    return SDX_OK;
}

/* ---- inference ---- */

enum sdx_status sdx_move_infer_rank(struct sdx_infer *ix, int k, int rank)
{
    int64_t *dims = sdx_infer_new_dims(ix, k, rank);
    if (!dims) return SDX_OUT_OF_MEMORY;
    for (int i = 0; i < rank; i++)
        dims[i] = -1;
    return SDX_OK;
}

enum sdx_status sdx_move_dims_product(struct sdx_context *cx, const int64_t *dims, int n,
                                      int64_t *out)
{
    int64_t known = 1, other = 0;
    bool mixed = false;
    for (int i = 0; i < n; i++)
        if (dims[i] == 0) {
            *out = 0;
            return SDX_OK;
        }
    for (int i = 0; i < n; i++) {
        if (dims[i] < 0) {
            mixed = mixed || other != 0;
            other = dims[i];
        } else if (!sdx_mul_i64(known, dims[i], &known)) {
            return SDX_FAIL(cx, SDX_BAD_MODEL, "the number of elements does not fit in 64 bits");
        }
    }
    *out = other == 0 ? known : mixed || known != 1 ? -1 : other;
    return SDX_OK;
}

enum sdx_status sdx_move_infer_pass_ints(struct sdx_infer *ix)
{
    struct sdx_ints v;
    const struct sdx_type *t = &ix->out[0];
    if (ix->shapes_only || !t->has_shape || t->rank > 1 || !sdx_infer_ints(ix, 0, &v))
        return SDX_OK;
    if (v.count > SDX_MOVE_INTS_MAX || (t->rank == 0 && v.count != 1)) return SDX_OK;
    return sdx_infer_set_ints(ix, 0, t->rank, v.count, v.v, v.sym);
}
