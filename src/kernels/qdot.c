/* SPDX-License-Identifier: Apache-2.0
 * Packing for qdot.h, and the loop over panels. */
#include "kernels/qdot.h"

#include <string.h>

#include "kernels/tables.h"

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}
static int64_t round_64(int64_t n)
{
    return divide_up(n, 64) * 64;
}
/* Steps of a panel at most: whole windows. */
static int64_t most_steps(const struct sdx_qdot_shape *s)
{
    return qdot_rearranged(s) / QDOT_STEP;
}

int64_t sdx_qdot_steps(const struct sdx_qdot_shape *s)
{
    return most_steps(s) * sdx_qdot_panels(s);
}

static struct qdot_header header_of(const struct sdx_qdot_shape *s)
{
    const int64_t panels = sdx_qdot_panels(s);
    struct qdot_header h = {.sums = (int64_t)sizeof h};
    h.panels = h.sums + panels * SDX_QDOT_COLS * (int64_t)sizeof(int32_t);
    h.steps = h.panels + panels * (int64_t)sizeof(struct qdot_panel);
    h.weights = round_64(h.steps + most_steps(s) * panels * (int64_t)sizeof(struct sdx_qdot_step));
    return h;
}

/* Room for sorting one panel behind the weights: they are written from the front and each panel
 * needs no more than what is reserved for it, so the last of it serves until then. */
struct work {
    int16_t *columns; /* [k of the windows][16] */
    int8_t *bytes[2]; /* natural order; windows */
    struct sdx_qdot_step *steps[2];
    int32_t *order[2];
    uint16_t *masks; /* of the windows of two panels, where they are rearranged: QDOT_WINDOW each */
    uint8_t *orders; /* of the same, as many */
};
static int64_t work_bytes(const struct sdx_qdot_shape *s)
{
    const int64_t steps = most_steps(s);
    return steps *
           (QDOT_STEP * SDX_QDOT_COLS * 2 + 2 * QDOT_BYTES +
            2 * (int64_t)sizeof(struct sdx_qdot_step) + 2 * QDOT_LISTS * (int64_t)sizeof(int32_t) +
            (sdx_kernel_tables()->qdot.rearranges ? QDOT_STEP * 3 : 0));
}
static struct work work_in(const struct sdx_qdot_shape *s, char *at)
{
    const int64_t steps = most_steps(s);
    struct work w;
    w.columns = (int16_t *)at;
    at += steps * QDOT_STEP * SDX_QDOT_COLS * 2;
    for (int i = 0; i < 2; i++, at += steps * QDOT_BYTES)
        w.bytes[i] = (int8_t *)at;
    for (int i = 0; i < 2; i++, at += steps * (int64_t)sizeof(struct sdx_qdot_step))
        w.steps[i] = (struct sdx_qdot_step *)at;
    for (int i = 0; i < 2; i++, at += steps * QDOT_LISTS * (int64_t)sizeof(int32_t))
        w.order[i] = (int32_t *)at;
    w.masks = (uint16_t *)at;
    w.orders = (uint8_t *)(w.masks + steps * QDOT_STEP);
    return w;
}

static bool is_sorted(const struct sdx_qdot_shape *s)
{
    return sdx_kernel_tables()->qdot.sort && !s->is_row;
}
/* The list of all steps where they are not sorted. */
static enum qdot_list natural_of(const struct sdx_qdot_shape *s)
{
    return s->is_row ? QDOT_ONES : sdx_kernel_tables()->qdot.natural;
}
/* Bytes of all weights at most: where steps are not sorted they are all of one kind. */
static int64_t weights_bytes(const struct sdx_qdot_shape *s)
{
    const bool may_widen = is_sorted(s) || natural_of(s) == QDOT_WIDE;
    return most_steps(s) * sdx_qdot_panels(s) * (may_widen ? QDOT_WIDE_BYTES : QDOT_BYTES);
}
size_t sdx_qdot_packed_size(const struct sdx_qdot_shape *s)
{
    return (size_t)(header_of(s).weights + weights_bytes(s) + round_64(work_bytes(s)));
}

/* `run` rows of 16 bytes as shorts; adds to the sums of the columns. */
static void read_rows(const uint8_t *from, int64_t step, int64_t run, int flip, int16_t *columns,
                      int32_t *sums)
{
    typedef int8_t bytes __attribute__((vector_size(SDX_QDOT_COLS)));
    typedef int16_t shorts __attribute__((vector_size(2 * SDX_QDOT_COLS)));
    enum { BURST = 128 }; /* rows whose sums fit into 16 bits */
    for (int64_t end; run > 0; run -= end) {
        shorts sum = {0};
        end = run < BURST ? run : BURST;
        for (int64_t i = 0; i < end; i++, from += step, columns += SDX_QDOT_COLS) {
            bytes row;
            memcpy(&row, from, sizeof row);
            const shorts wide = __builtin_convertvector(row ^ (int8_t)flip, shorts);
            memcpy(columns, &wide, sizeof wide);
            sum += wide;
        }
        for (int j = 0; j < SDX_QDOT_COLS; j++)
            sums[j] += sum[j];
    }
}
/* The bytes of run r of one panel as shorts [i][16]; adds to the sums of the columns. */
static void read_run(const struct sdx_qdot_shape *s, const struct sdx_qdot_weights *w, int64_t r,
                     int64_t column, int64_t n, int16_t *columns, int32_t *sums)
{
    const uint8_t *base = (const uint8_t *)w->w + r * w->step_run + column * w->step_n;
    const int flip = w->is_signed ? 0 : 0x80;
    if (w->step_n == 1 && w->inner >= s->run && n == SDX_QDOT_COLS) {
        read_rows(base, w->step_inner, s->run, flip, columns, sums);
        return;
    }
    memset(columns, 0, (size_t)(s->run * SDX_QDOT_COLS) * sizeof *columns);
    for (int64_t j = 0; j < n; j++) {
        const uint8_t *from = base + j * w->step_n;
        int16_t *to = columns + j;
        int32_t sum = 0;
        for (int64_t i = 0; i < s->run; from += w->step_outer)
            for (int64_t k = 0; k < w->inner && i < s->run; k++, i++) {
                const int8_t v = (int8_t)(from[k * w->step_inner] ^ flip);
                to[i * SDX_QDOT_COLS] = v;
                sum += v;
            }
        sums[j] += sum;
    }
}

/* Four rows of 16 shorts as the bytes of a step. */
static void weave(const int16_t *const rows[QDOT_STEP], int8_t *to)
{
    uint32_t fours[SDX_QDOT_COLS];
    for (int j = 0; j < SDX_QDOT_COLS; j++)
        fours[j] = (uint32_t)(rows[0][j] & 255) | (uint32_t)(rows[1][j] & 255) << 8 |
                   (uint32_t)(rows[2][j] & 255) << 16 | (uint32_t)(rows[3][j] & 255) << 24;
    memcpy(to, fours, sizeof fours);
}
static void natural_steps(const struct sdx_qdot_shape *s, int64_t r, const int16_t *columns,
                          int64_t *count, int8_t *bytes, struct sdx_qdot_step *steps)
{
    static const int16_t nothing[SDX_QDOT_COLS];
    for (int64_t u = 0; u < divide_up(s->run, QDOT_STEP); u++, (*count)++) {
        int64_t skip, at = qdot_place_of(s->run, u, QDOT_STEP, &skip);
        steps[*count] = (struct sdx_qdot_step){(uint32_t)(r * s->run + at), 0x03020100};
        const int16_t *rows[QDOT_STEP];
        for (int64_t b = 0; b < QDOT_STEP; b++)
            rows[b] = b < skip || at + b >= s->run ? nothing : columns + (at + b) * SDX_QDOT_COLS;
        weave(rows, bytes + *count * QDOT_BYTES);
    }
}
/* A partner for k, which others may give up for one that is not in `seen`; -1 is none. */
static bool find_partner(const uint16_t masks[QDOT_WINDOW], int partner[QDOT_WINDOW], int k,
                         unsigned *seen)
{
    *seen |= 1u << k;
    for (unsigned left; (left = masks[k] & ~*seen) != 0;) {
        const int other = __builtin_ctz(left), freed = partner[other];
        *seen |= 1u << other;
        if (freed >= 0 && !find_partner(masks, partner, freed, seen)) continue;
        partner[other] = k;
        partner[k] = other;
        return true;
    }
    return false;
}
/* As many safe pairs as augmenting paths lead to (Berge; odd cycles are not looked into), two and
 * two. The k's that are left, whose number is returned, go last, together. */
static int match(const uint16_t masks[QDOT_WINDOW], uint8_t order[QDOT_WINDOW])
{
    int partner[QDOT_WINDOW], at = 0;
    for (int k = 0; k < QDOT_WINDOW; k++)
        partner[k] = -1;
    for (int k = 0; k < QDOT_WINDOW; k++) {
        unsigned seen = 0;
        if (partner[k] < 0) find_partner(masks, partner, k, &seen);
    }
    for (int k = 0; k < QDOT_WINDOW; k++)
        if (partner[k] > k) {
            order[at++] = (uint8_t)k;
            order[at++] = (uint8_t)partner[k];
        }
    const int paired = at;
    for (int k = 0; k < QDOT_WINDOW; k++)
        if (partner[k] < 0) order[at++] = (uint8_t)k;
    return QDOT_WINDOW - paired;
}
/* Window u of a run of columns, and its place in the run. */
static int64_t window_at(const struct sdx_qdot_shape *s, const int16_t *columns, int64_t u,
                         int16_t window[QDOT_WINDOW * SDX_QDOT_COLS])
{
    int64_t skip, at = qdot_place_of(s->run, u, QDOT_WINDOW, &skip);
    memset(window, 0, (size_t)(skip * SDX_QDOT_COLS) * sizeof *window);
    memcpy(window + skip * SDX_QDOT_COLS, columns + (at + skip) * SDX_QDOT_COLS,
           (size_t)((QDOT_WINDOW - skip) * SDX_QDOT_COLS) * sizeof *window);
    return at;
}
/* orders: of the windows, QDOT_WINDOW k's each; NULL: they are found here. */
static void window_steps(const struct sdx_qdot_table *t, const struct sdx_qdot_shape *s, int64_t r,
                         const int16_t *columns, const uint8_t *orders, int64_t *count,
                         int8_t *bytes, struct sdx_qdot_step *steps)
{
    for (int64_t u = 0; u < divide_up(s->run, QDOT_WINDOW); u++) {
        int16_t window[QDOT_WINDOW * SDX_QDOT_COLS];
        const int64_t at = window_at(s, columns, u, window);
        uint8_t order[QDOT_WINDOW];
        if (orders) {
            memcpy(order, orders + *count * QDOT_STEP, sizeof order);
        } else {
            uint16_t masks[QDOT_WINDOW];
            t->safe_pairs(window, masks);
            match(masks, order);
        }
        for (int g = 0; g < QDOT_WINDOW; g += QDOT_STEP, (*count)++) {
            const int16_t *rows[QDOT_STEP];
            for (int b = 0; b < QDOT_STEP; b++)
                rows[b] = window + order[g + b] * SDX_QDOT_COLS;
            steps[*count].at = (uint32_t)(r * s->run + at);
            memcpy(&steps[*count].pick, order + g, QDOT_STEP);
            weave(rows, bytes + *count * QDOT_BYTES);
        }
    }
}

/* Do the steps of a panel lie in rows that the kernel rearranges? */
static bool is_rearranged(const struct qdot_panel *panel)
{
    return panel->windows && sdx_kernel_tables()->qdot.rearranges;
}
/* Steps in their order behind each other; the wide ones as shorts: bytes 0, 2 of all columns, then
 * 1, 3. */
static void write_panel(struct qdot_panel *panel, const struct qdot_loose *from,
                        const int32_t *order, struct sdx_qdot_step *steps, int8_t *weights,
                        int64_t *used)
{
    const int64_t narrow = from->count - panel->count[QDOT_WIDE];
    for (int64_t i = 0; i < from->count; i++) {
        const int8_t *bytes = from->bytes + (int64_t)order[i] * QDOT_BYTES;
        steps[i] = from->steps[order[i]];
        if (is_rearranged(panel))
            steps[i] =
                (struct sdx_qdot_step){(uint32_t)(order[i] * QDOT_STEP), from->steps[i].pick};
        if (i < narrow) {
            memcpy(weights, bytes, QDOT_BYTES);
            weights += QDOT_BYTES;
            *used += QDOT_BYTES;
            continue;
        }
        int16_t *wide = (int16_t *)weights;
        for (int j = 0; j < SDX_QDOT_COLS; j++)
            for (int b = 0; b < QDOT_STEP; b++)
                wide[b % 2 * 2 * SDX_QDOT_COLS + 2 * j + b / 2] = bytes[j * QDOT_STEP + b];
        weights += QDOT_WIDE_BYTES;
        *used += QDOT_WIDE_BYTES;
    }
}

/* Steps of bytes as shorts as above. */
static void widen(const int8_t *bytes, int64_t count, int8_t *to)
{
    for (; count > 0; count--, bytes += QDOT_BYTES, to += QDOT_WIDE_BYTES) {
        int16_t pairs[QDOT_BYTES / 2], shorts[QDOT_BYTES];
        memcpy(pairs, bytes, sizeof pairs);
        for (int i = 0; i < QDOT_BYTES / 2; i++) {
            shorts[i] = (int8_t)(pairs[i] & 255);
            shorts[i + QDOT_BYTES / 2] = (int16_t)(pairs[i] >> 8);
        }
        memcpy(to, shorts, sizeof shorts);
    }
}

enum { BURST = 32, BURST_K = BURST * QDOT_STEP }; /* steps that are packed at a time */
/* Weights k0 .. k1 - 1 of n columns, as they lie, from `at` of what is 0 otherwise. */
static void copy_few(const struct sdx_qdot_weights *w, const uint8_t *base, int64_t k0, int64_t k1,
                     int64_t n, int64_t at, uint8_t *to)
{
    memset(to, w->is_signed ? 0 : 0x80, BURST_K * SDX_QDOT_COLS);
    if (w->step_n == 1)
        for (int64_t k = k0; k < k1; k++)
            memcpy(to + (at + k - k0) * SDX_QDOT_COLS, base + k * w->step_inner, (size_t)n);
    else
        for (int64_t j = 0; j < n; j++)
            memcpy(to + j * BURST_K + at, base + j * w->step_n + k0, (size_t)(k1 - k0));
}
/* Steps in their natural order of weights whose rows or columns lie together. */
static void pack_quickly(const struct sdx_qdot_shape *s, const struct sdx_qdot_weights *w,
                         int64_t column, int64_t n, struct qdot_panel *panel, int32_t *sums,
                         struct sdx_qdot_step *steps, int8_t *weights, int64_t *used)
{
    const uint8_t *base = (const uint8_t *)w->w + column * w->step_n,
                  flip = w->is_signed ? 0 : 0x80;
    const bool wide = natural_of(s) == QDOT_WIDE, by_row = w->step_n == 1;
    const int64_t size = wide ? QDOT_WIDE_BYTES : QDOT_BYTES, whole = s->run / QDOT_STEP;
    const int64_t count = divide_up(s->run, QDOT_STEP);
    int8_t bytes[BURST * QDOT_BYTES];
    uint8_t few[BURST_K * SDX_QDOT_COLS];
    int64_t skip = 0;
    for (int64_t i = 0; i < count; i++)
        steps[i] = (struct sdx_qdot_step){(uint32_t)qdot_place_of(s->run, i, QDOT_STEP, &skip),
                                          0x03020100};
    for (int64_t u = 0, next; u < count; u = next) {
        next = u + BURST < whole ? u + BURST : u < whole ? whole : count;
        const int64_t k0 = u * QDOT_STEP, k1 = u < whole ? next * QDOT_STEP : s->run;
        const uint8_t *from = base + k0 * w->step_inner;
        size_t step_k = (size_t)w->step_inner, step_n = (size_t)w->step_n;
        if (u >= whole || n < SDX_QDOT_COLS) {
            copy_few(w, base, k0, k1, n, u < whole ? 0 : skip, few);
            from = few;
            step_k = by_row ? SDX_QDOT_COLS : 1;
            step_n = by_row ? 1 : BURST_K;
        }
        int8_t *to = wide ? bytes : weights + u * size;
        sdx_qbytes()->weave(from, step_k, step_n, flip, (size_t)(next - u), to, sums);
        if (wide) widen(bytes, next - u, weights + u * size);
    }
    memset(panel->count, 0, sizeof panel->count);
    panel->count[natural_of(s)] = (int32_t)count;
    panel->windows = 0;
    *used += count * size;
}

static double price_of(const struct sdx_qdot_table *t, const int32_t count[QDOT_LISTS])
{
    double price = 0;
    for (int l = 0; l < QDOT_LISTS; l++)
        price += t->prices[l] * count[l];
    return price;
}
/* Orders of windows that serve panels p and p + 1, whose rows are then rearranged once. false: too
 * few k's find a partner that is safe in both. */
static bool share_windows(const struct sdx_qdot_table *t, const struct sdx_qdot_shape *s,
                          const struct sdx_qdot_weights *w, const struct work *work, int64_t p)
{
    const int64_t each = divide_up(s->run, QDOT_WINDOW), count = s->runs * each;
    for (int64_t j = 0; j < 2; j++) {
        const int64_t column = (p + j) * SDX_QDOT_COLS, left = s->n - column;
        for (int64_t i = 0; i < count; i++) {
            int16_t window[QDOT_WINDOW * SDX_QDOT_COLS];
            uint16_t masks[QDOT_WINDOW], *both = work->masks + i * QDOT_WINDOW;
            int32_t sums[SDX_QDOT_COLS] = {0};
            if (i % each == 0)
                read_run(s, w, i / each, column, left < SDX_QDOT_COLS ? left : SDX_QDOT_COLS,
                         work->columns, sums);
            window_at(s, work->columns, i % each, window);
            t->safe_pairs(window, masks);
            for (int k = 0; k < QDOT_WINDOW; k++)
                both[k] = j ? both[k] & masks[k] : masks[k];
        }
    }
    int64_t unpaired = 0;
    for (int64_t i = 0; i < count; i++)
        unpaired += match(work->masks + i * QDOT_WINDOW, work->orders + i * QDOT_WINDOW) > 0;
    return unpaired * 5 < count * 2; /* a wide step costs more than rearranging a window */
}
/* orders: of the windows, NULL: its own. */
static void pack_panel(const struct sdx_qdot_table *t, const struct sdx_qdot_shape *s,
                       const struct sdx_qdot_weights *w, const struct work *work, int64_t p,
                       const uint8_t *orders, struct qdot_panel *panel, int32_t *sums,
                       struct sdx_qdot_step *steps, int8_t *weights, int64_t *used)
{
    const int64_t column = p * SDX_QDOT_COLS;
    const int64_t n = s->n - column < SDX_QDOT_COLS ? s->n - column : SDX_QDOT_COLS;
    if ((w->quickly || !is_sorted(s)) && s->runs == 1 && w->inner >= s->run &&
        (w->step_n == 1 || w->step_inner == 1)) {
        pack_quickly(s, w, column, n, panel, sums, steps, weights, used);
        return;
    }
    struct qdot_loose loose[2] = {{0, work->bytes[0], work->steps[0]},
                                  {0, work->bytes[1], work->steps[1]}};
    int32_t count[2][QDOT_LISTS] = {{0}};
    for (int64_t r = 0; r < s->runs; r++) {
        int16_t *columns = work->columns + r * s->run * SDX_QDOT_COLS;
        read_run(s, w, r, column, n, columns, sums);
        natural_steps(s, r, columns, &loose[0].count, work->bytes[0], work->steps[0]);
    }
    int best = 0;
    if (is_sorted(s) && !w->quickly) {
        t->sort(&loose[0], work->order[0], count[0]);
        if (count[0][QDOT_WIDE] && s->run >= QDOT_WINDOW) {
            for (int64_t r = 0; r < s->runs; r++)
                window_steps(t, s, r, work->columns + r * s->run * SDX_QDOT_COLS, orders,
                             &loose[1].count, work->bytes[1], work->steps[1]);
            t->sort(&loose[1], work->order[1], count[1]);
            const double windows = t->window_price * (double)loose[1].count / (orders ? 2 : 1);
            best = price_of(t, count[1]) + windows < price_of(t, count[0]);
        }
    } else {
        for (int64_t i = 0; i < loose[0].count; i++)
            work->order[0][i] = (int32_t)i;
        count[0][natural_of(s)] = (int32_t)loose[0].count;
    }
    memcpy(panel->count, count[best], sizeof panel->count);
    panel->windows = best;
    write_panel(panel, &loose[best], work->order[best], steps, weights, used);
}

bool sdx_qdot_suits_row(const struct sdx_qdot_shape *s, const struct sdx_qdot_weights *w)
{
    enum { LOOK = 64 }; /* windows, in panels that are spread over all */
    const struct sdx_qdot_table *t = &sdx_kernel_tables()->qdot;
    const int64_t each = s->run / QDOT_WINDOW, panels = s->n / SDX_QDOT_COLS;
    int64_t unpaired = 0, looked = 0;
    if (!t->row || s->runs != 1) return false;
    for (int64_t i = 0; i < LOOK && each > 0 && panels > 0; i++) {
        const uint8_t *base = (const uint8_t *)w->w;
        const int64_t column = i * panels / LOOK * SDX_QDOT_COLS, k = i % each * QDOT_WINDOW;
        int16_t window[QDOT_WINDOW * SDX_QDOT_COLS];
        uint16_t masks[QDOT_WINDOW];
        uint8_t order[QDOT_WINDOW];
        for (int a = 0; a < QDOT_WINDOW; a++)
            for (int j = 0; j < SDX_QDOT_COLS; j++) {
                const uint8_t v = base[(k + a) * w->step_inner + (column + j) * w->step_n];
                window[a * SDX_QDOT_COLS + j] = (int8_t)(v ^ (w->is_signed ? 0 : 0x80));
            }
        t->safe_pairs(window, masks);
        unpaired += match(masks, order);
        looked += QDOT_WINDOW;
    }
    return unpaired * 2 > looked;
}

/* Bytes of two panels that one tile reads: hardly more than the first cache. */
enum { TWO_PANELS = 64 << 10 };
size_t sdx_qdot_pack(const struct sdx_qdot_shape *s, const struct sdx_qdot_weights *w, void *packed)
{
    const struct sdx_qdot_table *t = &sdx_kernel_tables()->qdot;
    const struct qdot_header h = header_of(s);
    const int64_t panels = sdx_qdot_panels(s), each = most_steps(s);
    char *base = packed;
    memset(base, 0, (size_t)h.weights); /* also what no panel uses */
    memcpy(base, &h, sizeof h);
    int32_t *sums = (int32_t *)(base + h.sums);
    int64_t used = h.weights;
    const bool may_share = t->rearranges && is_sorted(s) && !w->quickly && s->run >= QDOT_WINDOW &&
                           2 * each * QDOT_BYTES <= TWO_PANELS;
    bool shares = false;
    for (int64_t p = 0; p < panels; p++) {
        const struct work work = work_in(s, base + h.weights + weights_bytes(s));
        struct qdot_panel *panel = (struct qdot_panel *)(base + h.panels) + p;
        if (p % 2 == 0) shares = may_share && p + 1 < panels && share_windows(t, s, w, &work, p);
        panel->first = (int32_t)(p * each);
        panel->weights = used;
        pack_panel(t, s, w, &work, p, shares ? work.orders : NULL, panel, sums + p * SDX_QDOT_COLS,
                   (struct sdx_qdot_step *)(base + h.steps) + p * each, (int8_t *)base + used,
                   &used);
        if (shares && p % 2 && panel->windows && panel[-1].windows)
            panel->windows = QDOT_WINDOWS_BEFORE;
    }
    return (size_t)used;
}

size_t sdx_qdot_pack_one(const struct sdx_qdot_shape *s, const struct sdx_qdot_weights *w,
                         void *packed, size_t each, int64_t i, int64_t count)
{
    char *at = (char *)packed + (size_t)i * each;
    const size_t used = sdx_qdot_pack(s, w, at);
    if (i + 1 < count && !w->quickly) memset(at + used, 0, each - used);
    return (size_t)i * each + used;
}

/* Do the bytes of a step lie in its run, or in a rearranged row? */
static bool is_step(const struct sdx_qdot_shape *s, const struct qdot_panel *panel,
                    const struct sdx_qdot_step *step)
{
    const int64_t size = panel->windows ? QDOT_WINDOW : QDOT_STEP;
    if (is_rearranged(panel)) {
        if (step->at > qdot_rearranged(s) - QDOT_STEP) return false;
    } else {
        if (step->at >= s->runs * s->run) return false;
        const int64_t at = step->at % s->run;
        if (s->run < size ? at != 0 : at + size > s->run) return false;
    }
    uint8_t order[QDOT_STEP];
    memcpy(order, &step->pick, sizeof order);
    for (int b = 0; b < QDOT_STEP; b++)
        if (order[b] >= QDOT_WINDOW) return false;
    return true;
}

bool sdx_qdot_check(const struct sdx_qdot_shape *s, const void *packed)
{
    const struct sdx_qdot_table *t = &sdx_kernel_tables()->qdot;
    const int64_t naturals = s->runs * divide_up(s->run, QDOT_STEP);
    const struct qdot_header wanted = header_of(s);
    const int64_t panels = sdx_qdot_panels(s), each = most_steps(s);
    const char *base = packed;
    struct qdot_header h;
    memcpy(&h, base, sizeof h);
    if (h.sums != wanted.sums || h.panels != wanted.panels || h.steps != wanted.steps ||
        h.weights != wanted.weights)
        return false;
    int64_t used = h.weights;
    for (int64_t p = 0; p < panels; p++) {
        const struct qdot_panel *panel = (const struct qdot_panel *)(base + h.panels) + p;
        int64_t count = 0;
        for (int l = 0; l < QDOT_LISTS; l++) {
            if (panel->count[l] < 0 || panel->count[l] > each - count) return false;
            count += panel->count[l];
        }
        if (!is_sorted(s) && (panel->count[natural_of(s)] != naturals || count != naturals))
            return false;
        if (panel->count[QDOT_FOURS] % 4 || panel->count[QDOT_TWOS] % 2) return false;
        if (panel->first != p * each || panel->weights != used ||
            (panel->windows && (!is_sorted(s) || s->run < QDOT_WINDOW)))
            return false;
        const bool follows = t->rearranges && p % 2 && panel[-1].windows == QDOT_WINDOWS;
        if (panel->windows < 0 || panel->windows > (follows ? QDOT_WINDOWS_BEFORE : QDOT_WINDOWS))
            return false;
        const struct sdx_qdot_step *steps =
            (const struct sdx_qdot_step *)(base + h.steps) + panel->first;
        for (int64_t i = 0; i < count; i++)
            if (!is_step(s, panel, &steps[i])) return false;
        used += qdot_panel_bytes(panel);
    }
    return true;
}

void sdx_qdot_place(const struct sdx_qdot_shape *s, const void *packed, const int64_t *starts,
                    struct sdx_qdot_step *steps)
{
    const struct qdot_header h = header_of(s);
    const char *base = packed;
    for (int64_t p = 0; p < sdx_qdot_panels(s); p++) {
        const struct qdot_panel *panel = (const struct qdot_panel *)(base + h.panels) + p;
        const struct sdx_qdot_step *from =
            (const struct sdx_qdot_step *)(base + h.steps) + panel->first;
        struct sdx_qdot_step *to = steps + panel->first;
        for (int64_t i = 0; i < qdot_panel_steps(panel); i++) {
            to[i] = from[i];
            if (!is_rearranged(panel))
                to[i].at = (uint32_t)(starts[from[i].at / s->run] + from[i].at % s->run);
        }
    }
}

void sdx_qdot_start(const struct sdx_qdot_shape *s, const void *packed, int64_t p0, int64_t p1,
                    int32_t zero_a, const int32_t *bias, int32_t *start)
{
    const int32_t *sums = (const int32_t *)((const char *)packed + header_of(s).sums);
    const int64_t n0 = p0 * SDX_QDOT_COLS, n1 = p1 * SDX_QDOT_COLS, given = s->n < n1 ? s->n : n1;
    memset(start + n0, 0, (size_t)(n1 - n0) * sizeof *start);
    if (bias && given > n0) memcpy(start + n0, bias + n0, (size_t)(given - n0) * sizeof *start);
    sdx_qbytes()->less_sums(sums + n0, zero_a, start + n0, (size_t)(p1 - p0));
}

int64_t sdx_qdot_width(void)
{
    return sdx_kernel_tables()->qdot.wide > 1 ? 2 * SDX_QDOT_COLS : SDX_QDOT_COLS;
}
bool sdx_qdot_rows_first(void)
{
    return sdx_kernel_tables()->qdot.rows_first;
}
bool sdx_qdot_sums_in_place(void)
{
    return sdx_kernel_tables()->qdot.adds;
}
size_t sdx_qdot_scratch(const struct sdx_qdot_shape *s, int64_t m)
{
    const struct sdx_qdot_table *t = &sdx_kernel_tables()->qdot;
    return t->scratch ? t->scratch(s, m) : 0;
}

typedef void finish_fn(const struct sdx_qdot_store *store, uint8_t *y, size_t n);
static void add_bytes(const struct sdx_qdot_store *store, uint8_t *y, size_t n)
{
    const uint8_t *addend = store->addend + (y - (uint8_t *)store->y);
    sdx_qbytes()->add(store->sum, y, 1, addend, 1, y, n);
}
static void look_up(const struct sdx_qdot_store *store, uint8_t *y, size_t n)
{
    sdx_qbytes()->lookup(store->table, y, y, n);
}
void sdx_qdot_finish(const struct sdx_qdot_store *store, uint8_t *y, size_t n)
{
    if (store->to != SDX_QDOT_BYTES) return;
    if (store->sum) add_bytes(store, y, n);
    if (store->table) look_up(store, y, n);
}
static void finish_rows(const struct sdx_qdot_store *store, int64_t m, int64_t n0, int64_t n1,
                        finish_fn *finish)
{
    uint8_t *y = (uint8_t *)store->y + n0;
    if (n1 - n0 == store->pitch) {
        finish(store, y, (size_t)(m * (n1 - n0)));
        return;
    }
    for (int64_t i = 0; i < m; i++, y += store->pitch)
        finish(store, y, (size_t)(n1 - n0));
}
void sdx_qdot_finish_rows(const struct sdx_qdot_store *store, int64_t m, int64_t n0, int64_t n1)
{
    if (store->to == SDX_QDOT_BYTES && (store->sum || store->table))
        finish_rows(store, m, n0, n1, sdx_qdot_finish);
}

void sdx_qdot_only(struct sdx_qdot *q, int64_t run0, int64_t runs)
{
    const int64_t each = divide_up(q->shape.run, QDOT_STEP);
    if (!sdx_kernel_tables()->qdot.takes_some) return;
    q->first = run0 * each;
    q->some = runs * each;
}
void sdx_qdot_run(const struct sdx_qdot *q, int64_t p0, int64_t p1)
{
    const struct sdx_kernel_tables *t = sdx_kernel_tables();
    const char *base = q->packed;
    struct qdot_header h;
    memcpy(&h, base, sizeof h);
    const struct sdx_qdot_step *steps =
        q->steps ? q->steps : (const struct sdx_qdot_step *)(base + h.steps);
    const int64_t n1 = p1 * SDX_QDOT_COLS, end = n1 < q->shape.n ? n1 : q->shape.n;
    for (int64_t p = p0, count; p < p1; p += count) {
        const struct qdot_panel *panel = (const struct qdot_panel *)(base + h.panels) + p;
        const int64_t column = p * SDX_QDOT_COLS, left = end - column;
        count = p + 1 < p1 && panel[1].windows == QDOT_WINDOWS_BEFORE ? 2 : t->qdot.wide;
        const int64_t wide = count * SDX_QDOT_COLS;
        /* steps that are not sorted are the same for all panels: the first's stay in the cache */
        const int64_t first = is_sorted(&q->shape) ? panel->first : 0;
        (q->shape.is_row ? t->qdot.row : t->qdot.panel)(q, panel, steps + first, column,
                                                        left < wide ? left : wide);
    }
    if (q->store.to != SDX_QDOT_BYTES) return;
    const int64_t n0 = p0 * SDX_QDOT_COLS;
    if (q->store.sum && !t->qdot.adds) finish_rows(&q->store, q->m, n0, end, add_bytes);
    if (q->store.table) finish_rows(&q->store, q->m, n0, end, look_up);
}
