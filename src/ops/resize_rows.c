/* SPDX-License-Identifier: Apache-2.0
 * Filters on two neighbouring axes, row by row: of f32 the last two, where rows are made as wide as
 * the output and kept for the next output rows, or, where there become fewer, are mixed before they
 * are made as wide; of bytes any two. */
#include "kernels/qbytes.h"
#include "kernels/vec.h"
#include "ops/move.h"
#include "ops/resize.h"

/* ---- filters on the last two axes, f32 ---- */

enum {
    ROWS = 16,           /* lanes of a cell of turned rows */
    WIDE_MOST = 1 << 14, /* numbers in such a row */
    BLOCK_MOST = 64      /* output rows that are made at a time */
};

struct planes {
    const struct sdx_resize_axis *v, *h; /* rows, columns */
    int64_t cell;
    int64_t count, blocks, block; /* planes; blocks of rows in each */
    bool turned;                  /* rows are made as wide together */
    float extrapolation;
};

/* One source row resized to the output's width: of cells of several values. */
static void resize_row_cells(const struct sdx_resize_axis *h, int64_t cell, const float *src,
                             float *dst)
{
    sdx_vec()->f32_mix_cells(src, h->index, h->weight, h->taps, (size_t)cell, dst,
                             (size_t)h->n_out);
}

/* The same of single values. */
static void resize_row(const struct sdx_resize_axis *h, const float *src, float *dst)
{
    const int32_t *index = h->index;
    const float *w = h->weight;
    int64_t n = h->n_out;
    if (h->identity) {
        memcpy(dst, src, (size_t)n * sizeof(*dst));
    } else if (h->taps == 2) {
        for (int64_t j = 0; j < n; j++)
            dst[j] = src[index[2 * j]] * w[2 * j] + src[index[2 * j + 1]] * w[2 * j + 1];
    } else {
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int t = 0; t < h->taps; t++)
                sum += src[index[j * h->taps + t]] * w[j * h->taps + t];
            dst[j] = sum;
        }
    }
}

static void widen(const struct sdx_resize_axis *h, int64_t cell, const float *src, float *dst)
{
    if (cell == 1)
        resize_row(h, src, dst);
    else
        resize_row_cells(h, cell, src, dst);
}

/* Sets what is outside of the input in output row y. */
static void extrapolate(const struct planes *p, int64_t y, float *to)
{
    const bool *outside = p->h->outside;
    if (p->v->outside && p->v->outside[y])
        sdx_move_fill(to, sizeof(*to), &p->extrapolation, p->h->n_out * p->cell);
    else
        for (int64_t j = 0; outside && j < p->h->n_out; j++) /* plain layout only */
            if (outside[j]) to[j] = p->extrapolation;
}

/* Scratch: the addresses of `taps` rows, the source row in each slot, the rows. A source row lives
 * in slot (row % taps); the rows of one output row are neighbours, so they never share a slot. */
static enum sdx_status run_planes(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct planes *p = step->params;
    const struct sdx_resize_axis *v = p->v, *h = p->h;
    int64_t n = h->n_out * p->cell, pitch = h->n_in * p->cell, units = p->count * p->blocks;
    int64_t end = sdx_part_begin(units, step->parts, part + 1, 1);
    float **rows = x->scratch;
    int64_t *held = (int64_t *)(void *)(rows + v->taps);
    float *cache = (float *)(void *)(held + v->taps);
    for (int64_t u = sdx_part_begin(units, step->parts, part, 1); u < end; u++) {
        const float *src = (const float *)step->in[0]->data + u / p->blocks * v->n_in * pitch;
        float *dst = (float *)step->out[0]->data + u / p->blocks * v->n_out * n;
        int64_t y = u % p->blocks * p->block,
                stop = y + p->block < v->n_out ? y + p->block : v->n_out;
        for (int t = 0; t < v->taps; t++)
            held[t] = -1;
        for (; y < stop; y++) {
            const int32_t *index = v->index + y * v->taps;
            for (int t = 0; t < v->taps; t++) {
                int64_t slot = index[t] % v->taps;
                rows[t] = cache + slot * n;
                if (held[slot] == index[t]) continue;
                widen(h, p->cell, src + index[t] * pitch, rows[t]);
                held[slot] = index[t];
            }
            sdx_vec()->f32_mix((const float *const *)rows, v->weight + y * v->taps, v->taps,
                               dst + y * n, (size_t)n);
            extrapolate(p, y, dst + y * n);
        }
    }
    return SDX_OK;
}

/* Makes up to ROWS rows of the plain layout as wide as the output at once: turned, so that they are
 * the lanes of a cell. cells: [n_in][ROWS], and room for [n_out][ROWS] behind it. */
static void widen_rows(const struct sdx_resize_axis *h, const float *src, int64_t rows,
                       float *cells, float *dst)
{
    const struct sdx_vec *vec = sdx_vec();
    float *wide = cells + h->n_in * ROWS;
    vec->b32_transpose(src, (size_t)h->n_in, cells, ROWS, (size_t)rows, (size_t)h->n_in);
    resize_row_cells(h, ROWS, cells, wide);
    vec->b32_transpose(wide, ROWS, dst, (size_t)h->n_out, (size_t)h->n_out, (size_t)rows);
}

/* The source rows, first .. last, of output rows y .. stop - 1. */
static void sources_of(const struct sdx_resize_axis *v, int64_t y, int64_t stop, int64_t *first,
                       int64_t *last)
{
    *first = *last = v->index[y * v->taps];
    for (int64_t i = y * v->taps; i < stop * v->taps; i++) {
        if (v->index[i] < *first) *first = v->index[i];
        if (v->index[i] > *last) *last = v->index[i];
    }
}

/* Output rows, in equal blocks, of which each needs no more than ROWS source rows; 0: there are
 * none. */
static int64_t rows_together(const struct sdx_resize_axis *v)
{
    int64_t block = (ROWS - v->taps) * v->n_out / v->n_in, most = 0;
    for (block = block < BLOCK_MOST ? block : BLOCK_MOST; block > 0; block /= 2) {
        most = 0;
        for (int64_t y = 0, first, last; y < v->n_out; y += block) {
            sources_of(v, y, y + block < v->n_out ? y + block : v->n_out, &first, &last);
            if (last - first >= most) most = last - first + 1;
        }
        if (most <= ROWS) return block;
    }
    return 0;
}

/* As run_planes, of plain rows that do not become fewer, those of a block together. Scratch:
 * addresses, the cells, the rows. */
static enum sdx_status run_turned(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct planes *p = step->params;
    const struct sdx_resize_axis *v = p->v, *h = p->h;
    const int64_t n = h->n_out, units = p->count * p->blocks;
    const int64_t end = sdx_part_begin(units, step->parts, part + 1, 1);
    const float **from = x->scratch;
    float *cells = (float *)(void *)(from + v->taps), *rows = cells + (h->n_in + n) * ROWS;
    memset(cells, 0, (size_t)(h->n_in * ROWS) * sizeof *cells); /* lanes without a row */
    for (int64_t u = sdx_part_begin(units, step->parts, part, 1); u < end; u++) {
        const float *src = (const float *)step->in[0]->data + u / p->blocks * v->n_in * h->n_in;
        float *dst = (float *)step->out[0]->data + u / p->blocks * v->n_out * n;
        const int64_t y0 = u % p->blocks * p->block;
        const int64_t stop = y0 + p->block < v->n_out ? y0 + p->block : v->n_out;
        int64_t first, last;
        sources_of(v, y0, stop, &first, &last);
        widen_rows(h, src + first * h->n_in, last - first + 1, cells, rows);
        for (int64_t y = y0; y < stop; y++) {
            for (int t = 0; t < v->taps; t++)
                from[t] = rows + (v->index[y * v->taps + t] - first) * n;
            sdx_vec()->f32_mix(from, v->weight + y * v->taps, v->taps, dst + y * n, (size_t)n);
            extrapolate(p, y, dst + y * n);
        }
    }
    return SDX_OK;
}

/* Where the rows become fewer they are mixed first, then made as wide. Scratch: addresses, the
 * cells of turned rows, the mixed rows. */
static enum sdx_status run_shrunk(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct planes *p = step->params;
    const struct sdx_resize_axis *v = p->v, *h = p->h;
    const int64_t n = h->n_out * p->cell, pitch = h->n_in * p->cell, units = p->count * p->blocks;
    const int64_t end = sdx_part_begin(units, step->parts, part + 1, 1);
    const float **from = x->scratch;
    float *cells = (float *)(void *)(from + v->taps), *mixed = cells;
    if (p->turned) {
        memset(cells, 0, (size_t)(pitch * ROWS) * sizeof *cells); /* lanes without a row */
        mixed += (pitch + n) * ROWS;
    }
    for (int64_t u = sdx_part_begin(units, step->parts, part, 1); u < end; u++) {
        const float *src = (const float *)step->in[0]->data + u / p->blocks * v->n_in * pitch;
        const int64_t y = u % p->blocks * p->block;
        const int64_t rows = v->n_out - y < p->block ? v->n_out - y : p->block;
        float *dst = (float *)step->out[0]->data + (u / p->blocks * v->n_out + y) * n;
        for (int64_t i = 0; i < rows; i++) {
            float *row = h->identity ? dst + i * n : p->turned ? mixed + i * pitch : mixed;
            for (int t = 0; t < v->taps; t++)
                from[t] = src + v->index[(y + i) * v->taps + t] * pitch;
            sdx_vec()->f32_mix(from, v->weight + (y + i) * v->taps, v->taps, row, (size_t)pitch);
            if (!h->identity && !p->turned) widen(h, p->cell, mixed, dst + i * n);
        }
        if (p->turned) widen_rows(h, mixed, rows, cells, dst);
        for (int64_t i = 0; i < rows; i++)
            extrapolate(p, y + i, dst + i * n);
    }
    return SDX_OK;
}

enum sdx_status sdx_resize_planes(struct sdx_prepare *px, const struct sdx_resize *r,
                                  struct sdx_tensor *in)
{
    const struct sdx_resize_axis *v = &r->axis[r->rank - 2], *h = v + 1;
    const int64_t n = h->n_out * r->cell, pitch = h->n_in * r->cell;
    const bool shrinks = v->n_out < v->n_in;
    struct planes *p = SDX_PREPARE_NEW(px, struct planes);
    if (!p) return SDX_OUT_OF_MEMORY;
    *p = (struct planes){.v = v,
                         .h = h,
                         .cell = r->cell,
                         .count = 1,
                         .block = ROWS,
                         .extrapolation = r->extrapolation};
    for (int i = 0; i < r->rank - 2; i++)
        p->count *= r->axis[i].n_out;
    p->turned = r->cell == 1 && !h->identity && h->n_in <= WIDE_MOST && h->n_out <= WIDE_MOST;
    if (!shrinks) {
        p->block = p->turned ? rows_together(v) : 0;
        p->turned = p->block > 0;
        if (!p->turned) p->block = BLOCK_MOST / 2;
    }
    p->blocks = (v->n_out + p->block - 1) / p->block;
    const size_t addresses = (size_t)v->taps * sizeof(float *);
    const size_t row = (size_t)(shrinks ? pitch : n) * sizeof(float);
    const size_t scratch = p->turned ? ((size_t)(pitch + n) * sizeof(float) + row) * ROWS
                           : shrinks ? row
                                     : (size_t)v->taps * (sizeof(int64_t) + row);
    const double work = (double)px->out[0]->count * (v->taps + h->taps);
    const int64_t units = p->count * p->blocks;
    return sdx_prepare_step_on(px, "resize_planes",
                               shrinks     ? run_shrunk
                               : p->turned ? run_turned
                                           : run_planes,
                               p, sdx_prepare_parts(work, 65536, units > 0 ? units : 1),
                               addresses + scratch, 1, &in, 1, px->out);
}

/* ---- filters on two neighbouring axes, bytes ---- */

enum { BEYOND = 16 }; /* a row that is read */

struct bytes {
    const struct sdx_resize_axis *v, *h; /* rows, columns */
    int64_t cell, rows;                  /* bytes that lie together at a place; output rows */
    uint8_t flip;                        /* makes bytes unsigned, each 128 too large */
};

/* One row of numbers resized to the output's width. wide: room for it, where cells are small. */
static void byte_row(const struct bytes *p, const float *src, float *wide, uint8_t *dst)
{
    const struct sdx_resize_axis *h = p->h;
    const struct sdx_qblend blend = {h->index, h->weight, h->taps, p->cell, h->n_out, p->flip};
    if (p->cell >= SDX_RESIZE_CELL_LEAST) {
        sdx_qbytes()->blend(&blend, src, dst);
        return;
    }
    widen(h, p->cell, src, wide);
    sdx_qbytes()->quantize(wide, 1, p->flip, p->flip, dst, (size_t)(h->n_out * p->cell));
}

/* An output row at a time: its source rows mixed, then made as wide. Scratch: the mixed row, the
 * wide one, addresses. */
static enum sdx_status run_bytes(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct bytes *p = step->params;
    const struct sdx_resize_axis *v = p->v, *h = p->h;
    const int64_t pitch = h->n_in * p->cell, width = h->n_out * p->cell;
    const int64_t end = sdx_part_begin(p->rows, step->parts, part + 1, 1);
    const uint8_t **from = x->scratch;
    float *mixed = (float *)(void *)(from + v->taps), *wide = mixed + pitch + BEYOND;
    for (int64_t u = sdx_part_begin(p->rows, step->parts, part, 1); u < end; u++) {
        const int64_t y = u % v->n_out;
        const float *w = v->weight + y * v->taps;
        const uint8_t *src = (const uint8_t *)step->in[0]->data + u / v->n_out * v->n_in * pitch;
        float shift = 0;
        for (int t = 0; t < v->taps; t++) {
            from[t] = src + v->index[y * v->taps + t] * pitch;
            shift -= (float)p->flip * w[t];
        }
        sdx_vec()->u8_mix(from, p->flip, shift, w, v->taps, mixed, (size_t)pitch);
        byte_row(p, mixed, wide, (uint8_t *)step->out[0]->data + u * width);
    }
    return SDX_OK;
}

int sdx_resize_byte_columns(const struct sdx_tensor *in, const struct sdx_resize *r)
{
    int first = r->rank, last = -1;
    for (int i = 0; i < r->rank; i++) {
        if (r->axis[i].identity) continue;
        if (r->axis[i].outside) return -1;
        first = first < i ? first : i;
        last = i;
    }
    if ((in->dtype != SDX_U8 && in->dtype != SDX_I8) || last - first > 1) return -1;
    return last > 0 ? last : r->rank > 1 ? 1 : -1;
}

enum sdx_status sdx_resize_bytes(struct sdx_prepare *px, const struct sdx_resize *r, int columns)
{
    struct bytes *p = SDX_PREPARE_NEW(px, struct bytes);
    if (!p) return SDX_OUT_OF_MEMORY;
    p->v = &r->axis[columns - 1];
    p->h = &r->axis[columns];
    p->flip = px->in[0]->dtype == SDX_I8 ? 0x80 : 0;
    p->rows = p->v->n_out;
    p->cell = r->cell;
    for (int i = 0; i < r->rank; i++) {
        if (i < columns - 1) p->rows *= r->axis[i].n_in;
        if (i > columns) p->cell *= r->axis[i].n_in;
    }
    const double work = (double)px->out[0]->count * (p->v->taps + p->h->taps);
    const int64_t wide = p->cell < SDX_RESIZE_CELL_LEAST ? p->h->n_out * p->cell : 0;
    return sdx_prepare_step(px, "resize_bytes", run_bytes, p,
                            sdx_prepare_parts(work, 65536, p->rows),
                            (size_t)p->v->taps * sizeof(float *) +
                                (size_t)(p->h->n_in * p->cell + BEYOND + wide) * sizeof(float));
}
