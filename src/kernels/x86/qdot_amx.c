/* SPDX-License-Identifier: Apache-2.0
 * Panels of qdot.h with tile registers (AMX): tdpbusd adds the products of 16 rows of A with a
 * panel over 16 steps, whose weights are a tile as they are packed. Where K is long, two tiles of
 * rows and two panels at a time, so that each of four operands serves two products; where the
 * weights of four panels stay in the first cache, one tile of rows and four panels, whose bytes are
 * stored a line at a time. A tile of A is read in place where its rows are evenly spaced and its
 * bytes lie together; else its bytes are brought together first, beside the products before it. */
#define SDX_SET_AVX512 1 /* the set includes it: width of simd.h */
#include "kernels/qdot_panel.h"
#include "kernels/tables.h"
#include "kernels/x86/qdot_tile_avx512.h"
#include "kernels/x86/tiles_amx.h"

enum {
    COLS = SDX_QDOT_COLS,
    WIDE = QDOT_TILE_WIDE,
    FEW = 4, /* rows for which tiles bring nothing */
    STEPS = SDX_TILE_ROWS,
    TILE_BYTES = SDX_TILE_ROWS * SDX_TILE_BYTES,
    STEP = 8,  /* instructions on tiles of a chunk */
    STORED = 8 /* rows of sums in registers */
};

static struct sdx_qdot_table thin; /* of the set before */

/* Bytes of A, up to 64 from `at` on, that belong to a chunk of 16 steps. */
struct piece {
    __m512i place;  /* of each in what is read */
    __mmask64 from; /* which are read */
    __mmask64 to;   /* where they belong */
    int64_t at;
};
struct chunk {
    struct piece piece[STEPS];
    int64_t count;
    bool is_straight; /* one piece, as it lies */
};
SIMD bool are_straight(const struct sdx_qdot_step *steps, int64_t n)
{
    bool yes = true;
    for (int64_t i = 1; i < n; i++)
        yes = yes && steps[i].at == steps[0].at + QDOT_STEP * (uint32_t)i;
    return yes;
}
/* The next piece of steps[0..n): all of *left that it reaches. */
static void piece_of(const struct sdx_qdot_step *steps, int64_t n, unsigned *left, struct piece *p)
{
    const int first = __builtin_ctz(*left);
    _Alignas(64) uint8_t place[SDX_TILE_BYTES] = {0};
    p->at = steps[first].at;
    p->from = p->to = 0;
    for (int i = first; i < n; i++) {
        const int64_t apart = (int64_t)steps[i].at - p->at;
        if (!(*left >> i & 1) || apart < 0 || apart + QDOT_STEP > SDX_TILE_BYTES) continue;
        *left &= ~(1u << i);
        p->from |= 0xfULL << apart;
        p->to |= 0xfULL << QDOT_STEP * i;
        for (int b = 0; b < QDOT_STEP; b++)
            place[QDOT_STEP * i + b] = (uint8_t)(apart + b);
    }
    p->place = _mm512_load_si512(place);
}
/* n <= 16 */
static void chunk_of(const struct sdx_qdot_step *steps, int64_t n, struct chunk *c)
{
    c->is_straight = are_straight(steps, n);
    c->count = 0;
    if (c->is_straight) {
        c->piece[0].at = steps[0].at;
        c->piece[0].from = ~0ULL >> (SDX_TILE_BYTES - QDOT_STEP * n);
        return;
    }
    for (unsigned left = (1u << n) - 1; left; c->count++)
        piece_of(steps, n, &left, &c->piece[c->count]);
}

/* 16 steps of `height` rows to a tile's memory; zeros beyond its pieces. */
SIMD void bring_straight(const struct chunk *c, const uint8_t *const *rows, int64_t height,
                         uint8_t *to)
{
    for (int64_t i = 0; i < height; i++, to += SDX_TILE_BYTES)
        _mm512_store_si512(to, _mm512_maskz_loadu_epi8(c->piece->from, rows[i] + c->piece->at));
}
enum { FEW_PIECES = 4 };
/* Up to four pieces of half a line at most, which crosses lines less often than a whole one. */
SIMD void bring_few(const int count, const struct piece *from, const uint8_t *const *rows,
                    int64_t height, uint8_t *to)
{
    struct piece p[FEW_PIECES];
    for (int k = 0; k < count; k++)
        p[k] = from[k];
    for (int64_t i = 0; i < height; i++, to += SDX_TILE_BYTES) {
        __m512i x = _mm512_setzero_si512();
        SDX_UNROLL(4)
        for (int k = 0; k < count; k++) {
            const __m256i half = _mm256_maskz_loadu_epi8((__mmask32)p[k].from, rows[i] + p[k].at);
            x = _mm512_mask_permutexvar_epi8(x, p[k].to, p[k].place, _mm512_castsi256_si512(half));
        }
        _mm512_store_si512(to, x);
    }
}
static void bring_pieces(const struct chunk *c, const uint8_t *const *rows, int64_t height,
                         uint8_t *to)
{
    const struct piece *end = c->piece + c->count;
    __mmask64 from = 0;
    for (const struct piece *p = c->piece; p < end; p++)
        from |= p->from;
    switch (from <= UINT32_MAX ? c->count : 0) {
    case 2: bring_few(2, c->piece, rows, height, to); return;
    case 3: bring_few(3, c->piece, rows, height, to); return;
    case FEW_PIECES: bring_few(FEW_PIECES, c->piece, rows, height, to); return;
    default: break;
    }
    for (int64_t i = 0; i < height; i++, to += SDX_TILE_BYTES) {
        __m512i x = _mm512_setzero_si512();
        for (const struct piece *p = c->piece; p < end; p++)
            x = _mm512_mask_permutexvar_epi8(x, p->to, p->place,
                                             _mm512_maskz_loadu_epi8(p->from, rows[i] + p->at));
        _mm512_store_si512(to, x);
    }
}

/* Bytes from row to row, 0 where they differ. */
static int64_t spacing(const uint8_t *const *rows, int64_t height)
{
    if (height < 2) return SDX_TILE_BYTES;
    const int64_t each = rows[1] - rows[0];
    for (int64_t i = 2; i < height; i++)
        if (rows[i] - rows[i - 1] != each) return 0;
    return each;
}

/* A tile's rows: chunk c at from + at[c], and what is less than a chunk at `last`. */
struct tile {
    const uint8_t *from, *last;
    const int64_t *at;
    int64_t pitch;
};
/* The rows of a call as tiles of one height, in segments of rows: in each the last tile may begin
 * within the one before. */
struct tiles {
    int64_t count, height;
    int64_t segment, of_segment; /* rows, tiles */
    int64_t chunks;              /* whole ones */
    int64_t steps;               /* of them and of what follows */
    int64_t *places[2];          /* of chunks: in place; brought together */
    struct tile *tile;
    struct chunk *chunk;
    uint8_t *brought;
};
static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}
static int64_t row_of(const struct tiles *t, int64_t i)
{
    const int64_t row = i % t->of_segment * t->height, last = t->segment - t->height;
    return i / t->of_segment * t->segment + (row < last ? row : last);
}
/* Rows of tile i that belong to the tile before it, too. */
static int64_t shared_rows(const struct tiles *t, int64_t i)
{
    const int64_t row = i % t->of_segment * t->height, last = t->segment - t->height;
    return row > last ? row - last : 0;
}
static int64_t all_chunks(const struct tiles *t)
{
    return divide_up(t->steps, STEPS);
}

/* Tiles at most: rows of the image that are not whole tiles may make some more. */
static int64_t most_tiles(int64_t m)
{
    return divide_up(m, SDX_TILE_ROWS) * 5 / 4;
}
static size_t scratch_size(const struct sdx_qdot_shape *s, int64_t m)
{
    const int64_t chunks = divide_up(s->runs * divide_up(s->run, QDOT_STEP), STEPS);
    return (size_t)((chunks + 4) * 2 * (int64_t)sizeof(int64_t) +
                    chunks * (int64_t)sizeof(struct chunk) +
                    most_tiles(m) * ((int64_t)sizeof(struct tile) + chunks * TILE_BYTES)) +
           2 * SDX_TILE_BYTES;
}

/* Rows from the first on that are evenly spaced, all those after them in segments of so many as
 * well; or all rows where tiles of segments would be too many. */
static int64_t segment_of(const struct sdx_qdot *q)
{
    const int64_t each = q->m > 1 ? q->rows[1] - q->rows[0] : 0;
    int64_t n = 1;
    while (n < q->m && q->rows[n] - q->rows[n - 1] == each)
        n++;
    if (q->m % n || q->m / n * divide_up(n, SDX_TILE_ROWS) > most_tiles(q->m)) return q->m;
    return n;
}
/* In the scratch memory: chunks, then what is brought, tiles and places. */
static struct tiles tiles_of(const struct sdx_qdot *q, int64_t steps, int64_t segment)
{
    struct tiles t = {.segment = segment, .steps = steps, .chunks = steps / STEPS};
    t.of_segment = divide_up(segment, SDX_TILE_ROWS);
    t.height = divide_up(segment, t.of_segment);
    t.count = q->m / segment * t.of_segment;
    const int64_t room = divide_up(all_chunks(&t), 4) * 4;
    t.chunk = q->scratch;
    t.brought = (uint8_t *)(t.chunk + all_chunks(&t));
    t.tile = (struct tile *)(t.brought + t.count * all_chunks(&t) * TILE_BYTES);
    t.places[0] = (int64_t *)(t.tile + t.count);
    t.places[1] = t.places[0] + room;
    return t;
}

/* Tiles whose rows are evenly spaced stay where they are, if each whole chunk lies together. */
static struct tiles prepare(const struct sdx_qdot *q, const struct sdx_qdot_step *steps,
                            int64_t count)
{
    struct chunk *chunk = q->scratch;
    bool together = true;
    for (int64_t c = 0; c < divide_up(count, STEPS); c++) {
        const int64_t left = count - c * STEPS;
        chunk_of(steps + c * STEPS, left < STEPS ? left : STEPS, chunk + c);
        together = together && (chunk[c].is_straight || left < STEPS);
    }
    const struct tiles all = tiles_of(q, count, together ? segment_of(q) : q->m), *t = &all;
    for (int64_t c = 0; c < all_chunks(t); c++) {
        t->places[0][c] = steps[c * STEPS].at;
        t->places[1][c] = c * TILE_BYTES;
    }
    for (int64_t i = 0; i < t->count; i++) {
        const uint8_t *const *rows = q->rows + row_of(t, i);
        const int64_t each = together ? spacing(rows, t->height) : 0;
        uint8_t *brought = t->brought + i * all_chunks(t) * TILE_BYTES;
        t->tile[i] = (struct tile){each ? rows[0] : brought, brought + t->chunks * TILE_BYTES,
                                   t->places[!each], each ? each : SDX_TILE_BYTES};
    }
    return all;
}
/* What does not lie as a tile is read. */
static void bring(const struct sdx_qdot *q, const struct tiles *t, int64_t i)
{
    const uint8_t *const *rows = q->rows + row_of(t, i);
    uint8_t *to = t->brought + i * all_chunks(t) * TILE_BYTES;
    const int64_t first = t->tile[i].at == t->places[0] ? t->chunks : 0;
    for (int64_t c = first; c < all_chunks(t); c++) {
        const struct chunk *chunk = t->chunk + c;
        if (chunk->is_straight)
            bring_straight(chunk, rows, t->height, to + c * TILE_BYTES);
        else
            bring_pieces(chunk, rows, t->height, to + c * TILE_BYTES);
    }
}

/* Sums that wait for their store, which goes on beside the next products: `left` rows, the first of
 * them row `row` of the call, of `across` panels: one or two, or four. Each row is stored once. */
enum { TALL = 2 * SDX_TILE_ROWS, ROW = WIDE * COLS, FOUR = 4, LINE = FOUR * COLS };
struct waiting {
    const struct sdx_qdot *q;
    const int32_t *sums;
    int64_t left, row;  /* of the tile in hand */
    int64_t then, next; /* rows of the tile that follows, and its first */
    int64_t skip;       /* rows between the two */
    int64_t column, n;
    int across;
    int lines;     /* of four panels that a call stores */
    bool is_whole; /* the sums are such that store_sums() does them */
};
SIMD void store_rows(const int count, const int wide, const struct waiting *w)
{
    __m512i acc[STORED][WIDE];
    QDOT_ROWS(count) QDOT_PANELS(wide) acc[i][j] = whole(w->sums + i * ROW + j * COLS);
    store_tile(count, wide, &w->q->store, acc, w->row, w->column, w->n);
}
/* Rows of four panels as bytes: a line of the cache each. */
SIMD void store_bytes(const bool plain, const struct waiting *w, int64_t count)
{
    const struct sdx_qdot_store *st = &w->q->store;
    const struct rounding r = rounding(st);
    const __m512i order = in_order();
    const int64_t pitch = st->pitch;
    const int32_t *sums = w->sums;
    uint8_t *y = (uint8_t *)st->y + w->row * pitch + w->column;
    __m512 by[FOUR];
    SDX_UNROLL(4)
    for (int j = 0; j < FOUR; j++)
        by[j] = _mm512_loadu_ps(st->factor + w->column + j * COLS);
    for (; count > 0; count--, y += pitch, sums += LINE) {
        const __m512i low = shorts(&r, whole(sums), by[0], whole(sums + COLS), by[1]);
        const __m512i high =
            shorts(&r, whole(sums + 2 * COLS), by[2], whole(sums + 3 * COLS), by[3]);
        _mm512_storeu_si512(y, _mm512_permutexvar_epi32(order, bytes(&r, plain, low, high)));
    }
}
SIMD __m512 addends(const bool is_signed, __mmask16 which, const uint8_t *from)
{
    const __m128i x = _mm_maskz_loadu_epi8(which, from);
    const __m512i wide = is_signed ? _mm512_cvtepi8_epi32(x) : _mm512_cvtepu8_epi32(x);
    return _mm512_cvtepi32_ps(wide);
}
/* Bytes of `across` panels, those of `which`. Where all are stored it is by a store of that length:
 * a masked one of a whole line would hold up the reading of what comes next. */
SIMD void store_across(const int across, uint8_t *y, bool whole, __mmask64 which, __m512i x)
{
    if (SDX_UNLIKELY(!whole))
        _mm512_mask_storeu_epi8(y, which, x);
    else if (across == FOUR)
        _mm512_storeu_si512(y, x);
    else if (across == WIDE)
        _mm256_storeu_si256((__m256i *)y, _mm512_castsi512_si256(x));
    else
        _mm_storeu_si128((__m128i *)y, _mm512_castsi512_si128(x));
}
/* The same with others added: in floats the bytes are what they would be stored as. */
static bool adds_lines(const struct sdx_qdot_store *st)
{
    return st->sum && st->factors_are_small && !st->zero_w && st->zero == st->sum->zero_a &&
           sdx_qpair_is_small(st->sum);
}
SIMD void store_sums(const bool is_signed, const int across, const struct waiting *w, int64_t count)
{
    const struct sdx_qdot_store *st = &w->q->store;
    const struct sdx_qpair *sum = st->sum;
    const __m512i order = in_order(), zero = _mm512_set1_epi16((short)sum->zero_y);
    const __m512i flip = _mm512_set1_epi8((char)sum->flip);
    const __m512 lo = _mm512_set1_ps((float)(st->lo - st->zero));
    const __m512 hi = _mm512_set1_ps((float)(st->hi - st->zero));
    /* adding it rounds to even; less of it is taken away, so that the zero point is added */
    const __m512 magic = _mm512_set1_ps(12582912.0f);
    const int32_t zero_a = st->zero - (is_signed ? 128 : 0);
    const __m512 less = _mm512_set1_ps(12582912.0f - (float)zero_a);
    const __m512 base = _mm512_set1_ps(sum->base);
    const __m512 scale_a = _mm512_set1_ps(sum->scale_a), scale_b = _mm512_set1_ps(sum->scale_b);
    const int64_t pitch = st->pitch, at = w->row * pitch + w->column;
    const __mmask64 all = ~0ULL >> (LINE - across * COLS);
    const __mmask64 which = across < FOUR && w->n < across * COLS ? (1ULL << w->n) - 1 : all;
    const int32_t *sums = w->sums;
    uint8_t *y = (uint8_t *)st->y + at;
    const uint8_t *other = st->addend + at;
    __m512 by[FOUR];
    __m512i x[FOUR] = {zero, zero, zero, zero};
    SDX_UNROLL(4)
    for (int j = 0; j < across; j++)
        by[j] = _mm512_loadu_ps(st->factor + w->column + j * COLS);
    for (; count > 0; count--, y += pitch, other += pitch, sums += across == FOUR ? LINE : ROW) {
        SDX_UNROLL(4)
        for (int j = 0; j < across; j++) {
            __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(whole(sums + j * COLS)), by[j]);
            v = _mm512_min_ps(_mm512_max_ps(v, lo), hi);
            v = _mm512_sub_ps(_mm512_add_ps(v, magic), less);
            const __m512 b = addends(is_signed, (__mmask16)(which >> j * COLS), other + j * COLS);
            x[j] =
                _mm512_cvtps_epi32(_mm512_fmadd_ps(v, scale_a, _mm512_fmadd_ps(b, scale_b, base)));
        }
        const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(x[0], x[1]), zero);
        const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(x[2], x[3]), zero);
        const __m512i bytes = _mm512_xor_si512(_mm512_packus_epi16(low, high), flip);
        store_across(across, y, which == all, which, _mm512_permutexvar_epi32(order, bytes));
    }
}
static SDX_NOINLINE void store_whole_sums(const struct waiting *w, int64_t count)
{
    const bool is_signed = w->q->store.sum->flip;
    switch (w->across) {
    case 1: store_sums(is_signed, 1, w, count); break;
    case WIDE: store_sums(is_signed, WIDE, w, count); break;
    default:
        if (is_signed)
            store_sums(true, FOUR, w, count);
        else
            store_sums(false, FOUR, w, count);
    }
}
static void store_lines(const struct waiting *w, int64_t count)
{
    const struct sdx_qdot_store *st = &w->q->store;
    if (SDX_UNLIKELY(st->to == SDX_QDOT_FLOATS)) {
        store_floats((int)count, FOUR, st, w->sums, w->row, w->column);
        return;
    }
    if (SDX_UNLIKELY(!qdot_is_rounded(st))) {
        for (int64_t i = 0; i < count * FOUR; i++)
            store_row(st, w->sums + i * COLS, w->row + i / FOUR, w->column + i % FOUR * COLS, COLS);
        return;
    }
    if (is_plain(st))
        store_bytes(true, w, count);
    else
        store_bytes(false, w, count);
}
/* Columns `column` .. of a store, to `y` as row 0. */
static struct sdx_qdot_store columns_of(const struct sdx_qdot_store *st, int64_t row,
                                        int64_t column, uint8_t *y, int64_t pitch)
{
    struct sdx_qdot_store part = *st;
    part.start += column;
    part.factor += column;
    if (part.zero_w) part.zero_w += column;
    if (part.row_sums) part.row_sums += row;
    part.y = y;
    part.pitch = pitch;
    return part;
}
/* n bytes of row `row` get their addends, which may lie where the result does. */
static void add_row(const struct sdx_qdot_store *st, const uint8_t *bytes, int64_t row,
                    int64_t column, int64_t n)
{
    const int64_t at = row * st->pitch + column;
    sdx_qbytes()->add(st->sum, bytes, 1, st->addend + at, 1, (uint8_t *)st->y + at, (size_t)n);
}
/* What store_sums() does not do. */
static SDX_NOINLINE void store_sums_slowly(const struct waiting *w)
{
    uint8_t bytes[LINE];
    const struct sdx_qdot_store *st = &w->q->store;
    const struct sdx_qdot_store part = columns_of(st, w->row, w->column, bytes, LINE);
    const int64_t n = w->n < w->across * COLS ? w->n : w->across * COLS;
    for (int64_t j = 0; j < n; j += COLS)
        store_row(&part, w->sums + j, 0, j, n - j < COLS ? n - j : COLS);
    add_row(st, bytes, w->row, w->column, n);
}
static SDX_NOINLINE void store_some(struct waiting *w)
{
    const int64_t pitch = w->across == FOUR ? LINE : ROW;
    const int64_t most = w->across == FOUR ? w->lines : STORED;
    int64_t count = w->left < STORED ? 1 : STORED;
    if (SDX_UNLIKELY(w->q->store.sum && !w->is_whole)) {
        count = 1;
        store_sums_slowly(w);
    } else if (w->is_whole) {
        count = w->left < most ? w->left : most;
        store_whole_sums(w, count);
    } else if (w->across == FOUR) {
        count = w->left < most ? w->left : most;
        store_lines(w, count);
    } else if (w->across == WIDE)
        count == 1 ? store_rows(1, WIDE, w) : store_rows(STORED, WIDE, w);
    else
        count == 1 ? store_rows(1, 1, w) : store_rows(STORED, 1, w);
    w->sums += count * pitch;
    w->row += count;
    w->left -= count;
    if (w->left > 0) return;
    w->sums += w->skip * pitch;
    w->left = w->then;
    w->row = w->next;
    w->then = 0;
}

/* Weights of the next panels, which come from memory beside the products of those in hand: a share
 * of their lines a chunk. */
struct fetch {
    const char *at, *end;
    int64_t share; /* bytes */
};
static struct fetch fetch_of(const struct tiles *t, const int8_t *weights, int64_t panels_left,
                             int64_t across, int64_t tiles_at_a_time)
{
    const int64_t panel = t->steps * QDOT_BYTES, next = panels_left < across ? panels_left : across;
    const int64_t chunks = divide_up(t->count, tiles_at_a_time) * (t->chunks ? t->chunks : 1);
    const char *at = (const char *)weights + across * panel;
    return (struct fetch){at, at + (next > 0 ? next * panel : 0),
                          divide_up(next * panel, chunks * SDX_TILE_BYTES) * SDX_TILE_BYTES};
}
SIMD void fetch_share(struct fetch *f)
{
    const char *end = f->end - f->at < f->share ? f->end : f->at + f->share;
    for (; f->at < end; f->at += SDX_TILE_BYTES)
        _mm_prefetch(f->at, _MM_HINT_T1);
}

/* Products of a chunk of two tiles a[0..tall] with a panel or, when wide, two. What lies in the
 * first cache are the weights. */
SIMD void chunk_products(const bool tall, const bool wide, const uint8_t *const a[2],
                         const int64_t pitch[2], const int8_t *weights, int64_t apart)
{
    _tile_stream_loadd(4, a[0], pitch[0]);
    _tile_loadd(6, weights, QDOT_BYTES);
    _tile_dpbusd(0, 4, 6);
    if (wide) {
        _tile_loadd(7, weights + apart, QDOT_BYTES);
        _tile_dpbusd(1, 4, 7);
    }
    if (tall) {
        _tile_stream_loadd(5, a[1], pitch[1]);
        _tile_dpbusd(2, 5, 6);
        if (wide) _tile_dpbusd(3, 5, 7);
    }
}
/* The sums of tile i and, when tall, the next; start: of their columns. */
SIMD void multiply(const bool tall, const bool wide, const struct tiles *t, int64_t i,
                   const int8_t *weights, const int32_t *start, struct fetch *f, struct waiting *w,
                   int32_t *sums)
{
    struct sdx_tile_drain drain;
    drain.since = 0;
    const struct tile *tile = t->tile + i;
    const int64_t apart = t->steps * QDOT_BYTES; /* panels */
    _tile_loadd(0, start, 0);
    if (wide) _tile_loadd(1, start + COLS, 0);
    if (tall) _tile_loadd(2, start, 0);
    if (tall && wide) _tile_loadd(3, start + COLS, 0);
    for (int64_t c = 0; c < t->chunks; c++, weights += STEPS * QDOT_BYTES) {
        const uint8_t *const a[2] = {tile[0].from + tile[0].at[c],
                                     tall ? tile[1].from + tile[1].at[c] : NULL};
        const int64_t pitch[2] = {tile[0].pitch, tall ? tile[1].pitch : 0};
        chunk_products(tall, wide, a, pitch, weights, apart);
        fetch_share(f);
        if (w->left > 0) store_some(w);
        sdx_tile_drain(&drain, STEP);
    }
    if (t->steps > t->chunks * STEPS) {
        const uint8_t *const a[2] = {tile[0].last, tall ? tile[1].last : NULL};
        const int64_t pitch[2] = {SDX_TILE_BYTES, SDX_TILE_BYTES};
        chunk_products(tall, wide, a, pitch, weights, apart);
    }
    while (w->left > 0)
        store_some(w);
    const int64_t row = ROW * (int64_t)sizeof *sums;
    _tile_stored(0, sums, row);
    if (wide) _tile_stored(1, sums + COLS, row);
    if (tall) _tile_stored(2, sums + t->height * ROW, row);
    if (tall && wide) _tile_stored(3, sums + t->height * ROW + COLS, row);
    sdx_tile_fence();
}

/* All rows by one panel or two, the first ones or not; sums: room for two pairs of tiles. */
SIMD void strip(const bool wide, const bool is_first, const struct sdx_qdot *q,
                const struct tiles *t, const int8_t *weights, int64_t column, int64_t n,
                struct waiting *w, int32_t (*sums)[TALL * ROW])
{
    const int32_t *start = q->store.start + column;
    struct fetch f = fetch_of(t, weights, divide_up(n, COLS) - WIDE, WIDE, 2);
    for (int64_t i = 0; i < t->count; i += 2) {
        const bool tall = i + 1 < t->count;
        const int64_t shared = shared_rows(t, i), skip = shared_rows(t, i + 1);
        int32_t *to = sums[w->sums < sums[1]];
        if (is_first) bring(q, t, i);
        if (is_first && tall) bring(q, t, i + 1);
        if (tall)
            multiply(true, wide, t, i, weights, start, &f, w, to);
        else
            multiply(false, wide, t, i, weights, start, &f, w, to);
        *w = (struct waiting){.q = q,
                              .sums = to + shared * ROW,
                              .left = t->height - shared,
                              .row = row_of(t, i) + shared,
                              .then = tall ? t->height - skip : 0,
                              .next = row_of(t, i + 1) + skip,
                              .skip = tall ? skip : 0,
                              .column = column,
                              .n = n,
                              .across = wide ? WIDE : 1,
                              .is_whole = adds_lines(&q->store)};
    }
}

/* ---- one tile of rows by four panels ----
 * Each row of bytes is then a whole line, and where K is short that is what takes the time. The
 * weights are read once a tile, so they have to lie in the first cache: those of all panels, or of
 * four at a time. */
enum { FIRST_CACHE = 40 << 10 };

SIMD void line_products(const uint8_t *a, int64_t pitch, const int8_t *weights, int64_t apart)
{
    _tile_loadd(4, a, pitch);
    _tile_loadd(6, weights, QDOT_BYTES);
    _tile_dpbusd(0, 4, 6);
    _tile_loadd(7, weights + apart, QDOT_BYTES);
    _tile_dpbusd(1, 4, 7);
    _tile_loadd(6, weights + 2 * apart, QDOT_BYTES);
    _tile_dpbusd(2, 4, 6);
    _tile_loadd(7, weights + 3 * apart, QDOT_BYTES);
    _tile_dpbusd(3, 4, 7);
}
/* A chunk of a tile into the first cache. */
SIMD void fetch_chunk(const struct tile *tile, int64_t height, int64_t c)
{
    const uint8_t *row = tile->from + tile->at[c];
    for (int64_t i = 0; i < height; i++, row += tile->pitch)
        _mm_prefetch((const char *)row, _MM_HINT_T0);
}
/* ahead: a tile that comes next, or NULL. */
static void multiply_line(const struct tiles *t, int64_t i, const struct tile *ahead,
                          const int8_t *weights, const int32_t *start, struct fetch *f,
                          struct waiting *w, int32_t *sums)
{
    struct sdx_tile_drain drain;
    drain.since = 0;
    const struct tile *tile = t->tile + i;
    const int64_t apart = t->steps * QDOT_BYTES; /* panels */
    _tile_loadd(0, start, 0);
    _tile_loadd(1, start + COLS, 0);
    _tile_loadd(2, start + 2 * COLS, 0);
    _tile_loadd(3, start + 3 * COLS, 0);
    for (int64_t c = 0; c < t->chunks; c++, weights += STEPS * QDOT_BYTES) {
        line_products(tile->from + tile->at[c], tile->pitch, weights, apart);
        if (ahead) fetch_chunk(ahead, t->height, c);
        fetch_share(f);
        if (w->left > 0) store_some(w);
        sdx_tile_drain(&drain, STEP + 1);
    }
    if (t->steps > t->chunks * STEPS) line_products(tile->last, SDX_TILE_BYTES, weights, apart);
    while (w->left > 0)
        store_some(w);
    const int64_t row = LINE * (int64_t)sizeof *sums;
    _tile_stored(0, sums, row);
    _tile_stored(1, sums + COLS, row);
    _tile_stored(2, sums + 2 * COLS, row);
    _tile_stored(3, sums + 3 * COLS, row);
    sdx_tile_fence();
}
/* All rows by `fours` times four panels. */
static void lines(const struct sdx_qdot *q, const struct tiles *t, const int8_t *weights,
                  int64_t column, int64_t fours, struct waiting *w, int32_t (*sums)[TALL * ROW])
{
    const int64_t apart = FOUR * t->steps * QDOT_BYTES;
    const int64_t some = t->chunks ? divide_up(t->height, t->chunks) : t->height;
    const bool whole_sums = adds_lines(&q->store);
    const int64_t block = apart * fours <= FIRST_CACHE ? fours : 1;
    for (int64_t first = 0; first < fours; first += block) {
        struct fetch fetch =
            fetch_of(t, weights + first * apart, (fours - first - block) * FOUR, block * FOUR, 1);
        for (int64_t i = 0; i < t->count; i++) {
            const int64_t shared = shared_rows(t, i);
            const struct tile *ahead = block == 1 && i + 1 < t->count ? t->tile + i + 1 : NULL;
            if (!first) bring(q, t, i);
            for (int64_t f = first; f < first + block; f++) {
                const int64_t at = column + f * LINE;
                int32_t *to = sums[w->sums < sums[1]];
                multiply_line(t, i, ahead, weights + f * apart, q->store.start + at, &fetch, w, to);
                *w = (struct waiting){.q = q,
                                      .sums = to + shared * LINE,
                                      .left = t->height - shared,
                                      .row = row_of(t, i) + shared,
                                      .column = at,
                                      .n = LINE,
                                      .across = FOUR,
                                      .lines = (int)some,
                                      .is_whole = whole_sums};
            }
        }
    }
}

/* A product of tiles takes as long for 4 k as for 64, and its sums go through memory: many panels
 * or long rows have to make up for bringing bytes together. Bytes that are added are read beside
 * the products of tiles. By measurement; count: steps, n: columns. */
static bool tiles_pay(const struct sdx_qdot *q, const struct sdx_qdot_step *steps, int64_t count,
                      int64_t n)
{
    enum { LEAST_STEPS = 8, SOME_STEPS = 24, LEAST_AREA = 768 }; /* steps; times columns */
    if (q->m <= FEW) return false;
    if (q->store.sum || (count > LEAST_STEPS && count * n > LEAST_AREA)) return true;
    return count > SOME_STEPS && are_straight(steps, STEPS);
}
/* One panel or two without tiles; bytes are added to few rows only. */
static void without_tiles(const struct sdx_qdot *q, const struct qdot_panel *panel,
                          const struct sdx_qdot_step *steps, int64_t column, int64_t n)
{
    if (!q->store.sum) {
        thin.panel(q, panel, steps, column, n);
        return;
    }
    uint8_t bytes[FEW * ROW];
    struct sdx_qdot part = *q;
    part.store = columns_of(&q->store, 0, column, bytes, ROW);
    thin.panel(&part, panel, steps, 0, n);
    for (int64_t i = 0; i < q->m; i++)
        add_row(&q->store, bytes + i * ROW, i, column, n);
}

static void panels(const struct sdx_qdot *q, const struct qdot_panel *panel,
                   const struct sdx_qdot_step *steps, int64_t column, int64_t n)
{
    const int64_t end = column + n, count = panel->count[QDOT_ONES];
    if (!tiles_pay(q, steps, count, n)) {
        for (; column < end; panel += WIDE, column += WIDE * COLS)
            without_tiles(q, panel, steps, column, end - column < ROW ? end - column : ROW);
        return;
    }
    const struct tiles t = prepare(q, steps, count);
    _Alignas(64) int32_t sums[2][TALL * ROW];
    struct waiting w = {.sums = sums[0]};
    sdx_tile_fence();
    sdx_tile_configure((int)t.height, 6);
    const int64_t fours = FOUR * t.steps * QDOT_BYTES <= FIRST_CACHE ? (end - column) / LINE : 0;
    if (fours) {
        lines(q, &t, (const int8_t *)q->packed + panel->weights, column, fours, &w, sums);
        panel += fours * FOUR;
        column += fours * LINE;
    }
    for (bool is_first = !fours; column < end;
         panel += WIDE, column += WIDE * COLS, is_first = false) {
        const int8_t *weights = (const int8_t *)q->packed + panel->weights;
        if (end - column > COLS)
            strip(true, is_first, q, &t, weights, column, end - column, &w, sums);
        else
            strip(false, is_first, q, &t, weights, column, end - column, &w, sums);
    }
    _tile_release();
    while (w.left > 0)
        store_some(&w);
}

void sdx_qdot_init_amx(struct sdx_qdot_table *qdot)
{
    thin = *qdot;
    *qdot = (struct sdx_qdot_table){.natural = QDOT_ONES,
                                    .wide = INT32_MAX / COLS,
                                    .adds = true,
                                    .rows_first = true,
                                    .scratch = scratch_size,
                                    .panel = panels};
}
