/* SPDX-License-Identifier: Apache-2.0
 * The recurrent step. Once an instruction set. An element of the product is one chain of additions
 * in rising k that begins at the input's part, whatever the tile. With FMA a step of it rounds
 * once, in generic twice: sets differ by at most 2 k 2^-24 * sum |h| |r| before the activations. */
#include "kernels/rnn_step.h"
#include "kernels/tables.h"
#include "kernels/vec_math.h"

/* Rows of a tile; of three vectors a third more. */
#if SDX_SIMD_LANES == 16
enum { ROWS = 6 };
#else
enum { ROWS = 3 };
#endif

enum { GROUP = 4 };

static int64_t padded_of(const struct sdx_rnn_step *s)
{
    return (s->hidden + LANES - 1) / LANES * LANES;
}

/* A tile's place. Its sums begin at x (GRU's third gate: at bias_h) and go to the gates. */
struct tile {
    const struct sdx_rnn_step *s;
    int64_t row, column, width, padded;
    const float *b;
};

SIMD vf start(const struct tile *t, int64_t row, int64_t column, const int v, const bool gru)
{
    const struct sdx_rnn_step *s = t->s;
    if (gru && v == 2) return v_load(s->bias_h + column / 3);
    return v_load(s->x + row * s->row_x + column + v * LANES);
}

/* m rows by v vectors of one panel. */
SIMD void run_tile(const int m, const int vectors, const struct tile *t, const bool gru)
{
    const struct sdx_rnn_step *s = t->s;
    const float *h = s->h + t->row * t->padded, *b = t->b;
    const int64_t n = s->hidden, padded = t->padded;
    vf sum[8][4];
    SDX_UNROLL(8)
    for (int i = 0; i < m; i++)
        SDX_UNROLL(4)
    for (int v = 0; v < vectors; v++)
        sum[i][v] = start(t, t->row + i, t->column, v, gru);
    for (int64_t k = 0; k < n; k++, b += vectors * LANES) {
        if (m <= vectors) { /* the fewer of rows and vectors stay in registers */
            vf x[8];
            SDX_UNROLL(8)
            for (int i = 0; i < m; i++)
                x[i] = v_set1(h[i * padded + k]);
            SDX_UNROLL(4)
            for (int v = 0; v < vectors; v++) {
                vf w = v_load(b + v * LANES);
                V_KEEP(w);
                SDX_UNROLL(8)
                for (int i = 0; i < m; i++)
                    sum[i][v] = v_fma(x[i], w, sum[i][v]);
            }
        } else {
            vf w[4];
            SDX_UNROLL(4)
            for (int v = 0; v < vectors; v++) {
                w[v] = v_load(b + v * LANES);
                V_KEEP(w[v]);
            }
            SDX_UNROLL(8)
            for (int i = 0; i < m; i++) {
                vf x = v_set1(h[i * padded + k]);
                SDX_UNROLL(4)
                for (int v = 0; v < vectors; v++)
                    sum[i][v] = v_fma(x, w[v], sum[i][v]);
            }
        }
    }
    SDX_UNROLL(8)
    for (int i = 0; i < m; i++)
        SDX_UNROLL(4)
    for (int v = 0; v < vectors; v++)
        v_store(s->gates + (t->row + i) * t->width + t->column + v * LANES, sum[i][v]);
}

/* One row by two neighbouring panels: one alone would wait for its own sums. */
SIMD void run_pair(const int vectors, const struct tile *t, const bool gru)
{
    const struct sdx_rnn_step *s = t->s;
    const int64_t n = s->hidden, panel = vectors * LANES;
    const float *h = s->h + t->row * t->padded, *b = t->b;
    vf sum[2][4];
    SDX_UNROLL(2)
    for (int q = 0; q < 2; q++)
        SDX_UNROLL(4)
    for (int v = 0; v < vectors; v++)
        sum[q][v] = start(t, t->row, t->column + q * panel, v, gru);
    for (int64_t k = 0; k < n; k++, b += panel) {
        const vf x = v_set1(h[k]);
        SDX_UNROLL(2)
        for (int q = 0; q < 2; q++)
            SDX_UNROLL(4)
        for (int v = 0; v < vectors; v++)
            sum[q][v] = v_fma(x, v_load(b + q * n * panel + v * LANES), sum[q][v]);
    }
    SDX_UNROLL(2)
    for (int q = 0; q < 2; q++)
        SDX_UNROLL(4)
    for (int v = 0; v < vectors; v++)
        v_store(s->gates + t->row * t->width + t->column + q * panel + v * LANES, sum[q][v]);
}

/* All panels of `vectors` vectors from column `begin` to `end`. Tiles higher than `most` there are
 * none, which the compiler would not see. */
#define TILE_CASE(m)                                                                               \
    case m:                                                                                        \
        if ((m) <= most) run_tile(m, vectors, &t, gru);                                            \
        break;
SIMD void product(const int vectors, const struct sdx_rnn_step *s, int64_t begin, int64_t end,
                  int64_t width, const bool gru)
{
    const int most = vectors == 3 ? ROWS * 4 / 3 : ROWS;
    const int64_t n = s->hidden, panel = vectors * LANES;
    struct tile t = {.s = s, .column = begin, .width = width, .padded = padded_of(s)};
    while (t.column < end) {
        t.b = s->weights + t.column * n;
        bool pair = s->rows == 1 && end - t.column >= 2 * panel;
        if (pair) run_pair(vectors, &t, gru);
        for (t.row = 0; t.row < s->rows && !pair;) {
            int64_t left = s->rows - t.row, tiles = (left + most - 1) / most;
            int64_t m = (left + tiles - 1) / tiles;
            switch (m) {
                TILE_CASE(1)
                TILE_CASE(2)
                TILE_CASE(3)
                TILE_CASE(4)
#if SDX_SIMD_LANES == 16
                TILE_CASE(5)
                TILE_CASE(6)
                TILE_CASE(7)
                TILE_CASE(8)
#endif
            default: break;
            }
            t.row += m;
        }
        t.row = 0;
        t.column += pair ? 2 * panel : panel;
    }
}

/* Four vectors of units, each `step` floats from the one before; beyond `count` the last again. */
SIMD struct vx gather(const float *p, int64_t step, int count)
{
    struct vx y;
    EACH y.r[i] = v_load(p + (i < count ? i : count - 1) * step);
    return y;
}
SIMD void scatter(float *p, struct vx y, int count)
{
    EACH if (i < count) v_store(p + i * LANES, y.r[i]);
}

/* e^x = scale (1 + p), for x that 2^n can scale: the parts of x_exp_parts, with FMA. */
SIMD struct vx exp_parts(struct vx x, struct vx *scale)
{
    const vf magic = v_set1(12582912.0f);
    struct vx r, y, p;
    EACH y.r[i] = v_fma(x.r[i], v_set1(1.44269504f), magic);
    EACH scale->r[i] = v_bits(vi_add(vi_bits(y.r[i]), vi_set1(127 - 0x4b400000)) << 23);
    EACH y.r[i] = y.r[i] - magic;
    EACH r.r[i] = v_fma(y.r[i], v_set1(-0.693359375f), x.r[i]);
    EACH r.r[i] = v_fma(y.r[i], v_set1(2.12194440e-4f), r.r[i]);
    EACH p.r[i] = v_fma(r.r[i], v_set1(exp_fit[0]), v_set1(exp_fit[1]));
    SDX_UNROLL(3)
    for (int k = 2; k < 5; k++)
        EACH p.r[i] = v_fma(p.r[i], r.r[i], v_set1(exp_fit[k]));
    EACH p.r[i] = v_fma(r.r[i] * r.r[i], p.r[i], r.r[i]);
    return p;
}
/* 1 + e^-x: sigmoid(x) is 1 over it. */
SIMD struct vx sigmoid_under(struct vx x)
{
    struct vx scale, p = exp_parts(x_clip(x_neg(x), -87.0f, 87.0f), &scale);
    EACH p.r[i] = v_fma(scale.r[i], p.r[i], scale.r[i]) + v_set1(1.0f);
    return p;
}
/* tanh(x) = (e^2x - 1) / (e^2x + 1); is 1 in f32 from 9.02 on. e^2x - 1 does not cancel. */
SIMD struct vx tanh_over(struct vx x, struct vx *under)
{
    struct vx scale, p = exp_parts(x_clip(x_add(x, x), -18.1f, 18.1f), &scale);
    EACH under->r[i] = v_fma(scale.r[i], p.r[i], scale.r[i] + v_set1(1.0f));
    EACH p.r[i] = v_fma(scale.r[i], p.r[i], scale.r[i] - v_set1(1.0f));
    return p;
}
/* Gates that are multiplied share a division. */
SIMD struct vx tanh_times_sigmoid(struct vx x, struct vx gate)
{
    struct vx under, over = tanh_over(x, &under);
    return x_div(over, x_mul(under, sigmoid_under(gate)));
}

/* The new state of four vectors of units, from their gates at g and the old state. */
SIMD void lstm_units(const float *g, float *c, float *h, int count)
{
    const int64_t step = 4 * LANES;
    struct vx cell = tanh_times_sigmoid(gather(g + 3 * LANES, step, count), gather(g, step, count));
    struct vx keep = sigmoid_under(gather(g + 2 * LANES, step, count));
    cell = x_add(x_div(gather(c, LANES, count), keep), cell);
    scatter(c, cell, count);
    scatter(h, tanh_times_sigmoid(cell, gather(g + LANES, step, count)), count);
}
SIMD void gru_units(const float *g, const float *x, const float *h, float *next, int count)
{
    const int64_t step = 3 * LANES;
    struct vx reset = sigmoid_under(gather(g + LANES, step, count));
    struct vx part = x_div(gather(g + 2 * LANES, step, count), reset), under;
    struct vx over = tanh_over(x_add(gather(x + 2 * LANES, step, count), part), &under);
    struct vx fresh = x_div(over, under), keep = sigmoid_under(gather(g, step, count));
    struct vx old = x_sub(gather(h, LANES, count), fresh); /* n + z (h - n) */
    scatter(next, x_add(fresh, x_div(old, keep)), count);
}
SIMD void tanh_units(const float *g, float *next, int count)
{
    struct vx under, over = tanh_over(gather(g, LANES, count), &under);
    scatter(next, x_div(over, under), count);
}

static void states(const struct sdx_rnn_step *s, int64_t width, int64_t padded)
{
    int64_t gates = width / padded;
    for (int64_t r = 0; r < s->rows; r++) {
        for (int64_t j = s->begin; j < s->end; j += BLOCK) {
            int count = s->end - j < BLOCK ? (int)((s->end - j) / LANES) : 4;
            int64_t at = r * padded + j;
            const float *g = s->gates + r * width + j * gates;
            if (s->kind == SDX_RNN_LSTM)
                lstm_units(g, s->c + at, s->h_next + at, count);
            else if (s->kind == SDX_RNN_GRU)
                gru_units(g, s->x + r * s->row_x + j * gates, s->h + at, s->h_next + at, count);
            else if (s->kind == SDX_RNN_TANH)
                tanh_units(g, s->h_next + at, count);
            else
                scatter(s->h_next + at, x_relu(gather(g, LANES, count)), count);
        }
    }
}

/* Panels of four vectors, LSTM's and others'. */
static SDX_NOINLINE void fours(const struct sdx_rnn_step *s, int64_t begin, int64_t end,
                               int64_t width)
{
    product(4, s, begin, end, width, false);
}
static void step(const struct sdx_rnn_step *s)
{
    int gates = s->kind == SDX_RNN_LSTM ? 4 : s->kind == SDX_RNN_GRU ? 3 : 1;
    int64_t padded = padded_of(s), width = gates * padded;
    int64_t begin = gates * s->begin, end = gates * s->end;
    if (!s->weights) {
        /* the gates are there */
    } else if (s->kind == SDX_RNN_LSTM) {
        fours(s, begin, end, width);
    } else if (s->kind == SDX_RNN_GRU) {
        product(3, s, begin, end, width, true);
    } else {
        int64_t whole = end / (GROUP * LANES) * GROUP * LANES;
        int64_t pair = (end - whole) / (2 * LANES) * 2 * LANES;
        fours(s, begin, whole, width);
        product(2, s, whole, whole + pair, width, false);
        product(1, s, whole + pair, end, width, false);
    }
    states(s, width, padded);
}

void SDX_INIT(sdx_rnn_step_init_)(struct sdx_rnn_table *rnn)
{
    rnn->lanes = LANES;
    rnn->f32_step = step;
}
