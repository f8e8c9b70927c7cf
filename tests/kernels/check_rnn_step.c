/* SPDX-License-Identifier: Apache-2.0
 * Checks of rnn_step.h: every kind, hidden sizes around vectors and panels, rows around tiles,
 * against f64. The bound: a chain of `hidden` additions before the gates, whose slopes are at most
 * 1, and 1e-6 for the activations; GRU's and LSTM's states add what they multiply. */
#include "kernelcheck.h"

struct cell {
    struct sdx_rnn_step step;
    float *r, *x, *bias_h, *h, *h_next, *c, *gates, *packed;
    int64_t padded, width;
};

static float *numbers(int64_t n, float most)
{
    float *p = guarded((size_t)n * sizeof *p, 0);
    for (int64_t i = 0; i < n; i++)
        p[i] = random_float(-most, most);
    return p;
}

static struct cell make(enum sdx_rnn_kind kind, int64_t hidden, int64_t rows)
{
    struct cell m = {.padded = sdx_rnn_padded(hidden), .width = sdx_rnn_width(kind, hidden)};
    m.r = numbers(sdx_rnn_gates(kind) * hidden * hidden, 0.5f);
    m.x = numbers(rows * (m.width + 3), 4.0f);
    m.bias_h = numbers(m.padded, 0.5f);
    m.h = numbers(rows * m.padded, 1.0f);
    m.c = numbers(rows * m.padded, 2.0f);
    m.h_next = numbers(rows * m.padded, 1.0f);
    m.gates = numbers(rows * m.width, 1.0f);
    m.packed = guarded(sdx_rnn_packed_size(kind, hidden), 0);
    sdx_rnn_pack(kind, hidden, m.r, m.packed);
    m.step = (struct sdx_rnn_step){.kind = kind,
                                   .rows = rows,
                                   .hidden = hidden,
                                   .end = m.padded,
                                   .x = m.x,
                                   .row_x = m.width + 3,
                                   .weights = m.packed,
                                   .bias_h = m.bias_h,
                                   .h = m.h,
                                   .h_next = m.h_next,
                                   .c = m.c,
                                   .gates = m.gates};
    return m;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The exact new state of one unit; *c: LSTM's cell, changed. *size: the largest sum of absolute
 * products, for the bound. */
static double exact_unit(const struct cell *m, int64_t row, int64_t unit, double *c, double *size)
{
    const struct sdx_rnn_step *s = &m->step;
    double sum[4] = {0}, from[4] = {0};
    *size = 0;
    for (int g = 0; g < sdx_rnn_gates(s->kind); g++) {
        double magnitude = 8;
        for (int64_t k = 0; k < s->hidden; k++) {
            double product =
                (double)m->r[(g * s->hidden + unit) * s->hidden + k] * m->h[row * m->padded + k];
            sum[g] += product;
            magnitude += fabs(product);
        }
        from[g] = m->x[row * s->row_x + sdx_rnn_column(s->kind, g, unit)];
        *size = magnitude > *size ? magnitude : *size;
    }
    if (s->kind == SDX_RNN_TANH) return tanh(from[0] + sum[0]);
    if (s->kind == SDX_RNN_RELU) return fmax(from[0] + sum[0], 0);
    if (s->kind == SDX_RNN_LSTM) {
        *c = sigmoid(from[2] + sum[2]) * *c + sigmoid(from[0] + sum[0]) * tanh(from[3] + sum[3]);
        return sigmoid(from[1] + sum[1]) * tanh(*c);
    }
    double keep = sigmoid(from[0] + sum[0]), reset = sigmoid(from[1] + sum[1]);
    double fresh = tanh(from[2] + reset * (sum[2] + m->bias_h[unit]));
    return (1 - keep) * fresh + keep * m->h[row * m->padded + unit];
}

static void check_one(enum sdx_rnn_kind kind, int64_t hidden, int64_t rows)
{
    struct cell m = make(kind, hidden, rows);
    double *want = calloc((size_t)(rows * hidden * 3), sizeof *want);
    for (int64_t i = 0; i < rows * hidden; i++) {
        int64_t row = i / hidden, unit = i % hidden;
        want[3 * i + 1] = m.c[row * m.padded + unit];
        want[3 * i] = exact_unit(&m, row, unit, &want[3 * i + 1], &want[3 * i + 2]);
    }
    sdx_rnn_step_f32(&m.step);
    for (int64_t i = 0; i < rows * hidden; i++) {
        int64_t at = i / hidden * m.padded + i % hidden;
        double bound = 4e-6 + 4.0 * (double)(hidden + 2) * ldexp(1, -24) * want[3 * i + 2];
        expect(fabs(m.h_next[at] - want[3 * i]) <= bound,
               "kind %d, hidden %lld, row %lld of %lld, unit %lld: %g, expected %g", (int)kind,
               (long long)hidden, (long long)(i / hidden), (long long)rows, (long long)(i % hidden),
               (double)m.h_next[at], want[3 * i]);
        if (kind == SDX_RNN_LSTM)
            expect(fabs(m.c[at] - want[3 * i + 1]) <= bound, "cell: %g, expected %g",
                   (double)m.c[at], want[3 * i + 1]);
    }
    free(want);
}

/* Some units alone have the bits they have among others. */
static void check_units(enum sdx_rnn_kind kind, int64_t hidden, int64_t rows)
{
    struct cell m = make(kind, hidden, rows);
    float *cells = numbers(rows * m.padded, 1.0f), *next = numbers(rows * m.padded, 1.0f);
    memcpy(cells, m.c, (size_t)(rows * m.padded) * sizeof *cells);
    sdx_rnn_step_f32(&m.step);
    struct sdx_rnn_step some = m.step;
    some.h_next = next;
    some.c = cells;
    for (some.begin = 0; some.begin < m.padded; some.begin = some.end) {
        some.end = some.begin + sdx_rnn_units() * random_int(1, 2);
        if (some.end > m.padded) some.end = m.padded;
        sdx_rnn_step_f32(&some);
    }
    for (int64_t r = 0; r < rows; r++)
        expect(memcmp(next + r * m.padded, m.h_next + r * m.padded,
                      (size_t)hidden * sizeof *next) == 0,
               "kind %d, hidden %lld, row %lld of %lld: units alone differ", (int)kind,
               (long long)hidden, (long long)r, (long long)rows);
}

/* A row alone has the bits it has among others. */
static void check_row(enum sdx_rnn_kind kind, int64_t hidden, int64_t rows)
{
    struct cell m = make(kind, hidden, rows);
    float *cells = numbers(rows * m.padded, 1.0f), *alone = numbers(m.padded, 1.0f);
    memcpy(cells, m.c, (size_t)(rows * m.padded) * sizeof *cells);
    sdx_rnn_step_f32(&m.step);
    for (int64_t r = 0; r < rows; r++) {
        struct sdx_rnn_step one = m.step;
        one.rows = 1;
        one.x = m.x + r * one.row_x;
        one.h = m.h + r * m.padded;
        one.h_next = alone;
        one.c = cells + r * m.padded;
        sdx_rnn_step_f32(&one);
        expect(memcmp(alone, m.h_next + r * m.padded, (size_t)hidden * sizeof *alone) == 0,
               "kind %d, hidden %lld: row %lld of %lld alone differs", (int)kind, (long long)hidden,
               (long long)r, (long long)rows);
    }
}

void check_rnn_step(void)
{
    static const int64_t sizes[] = {1, 3, 4, 7, 8, 9, 16, 17, 31, 33, 40, 64, 100, 200};
    for (int kind = SDX_RNN_TANH; kind <= SDX_RNN_LSTM; kind++)
        for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
            for (int64_t rows = 1; rows <= 10; rows++)
                check_one((enum sdx_rnn_kind)kind, sizes[i], rows);
            check_row((enum sdx_rnn_kind)kind, sizes[i], 7);
            check_units((enum sdx_rnn_kind)kind, sizes[i], 1 + i % 3);
            guards_intact();
            guards_release();
        }
}

static void timed(void *arg)
{
    sdx_rnn_step_f32(arg);
}
double bench_rnn_step(void)
{
    struct cell m = make(SDX_RNN_LSTM, 96, 3);
    return best_ns(timed, &m.step) / (3.0 * 96 * 4 * 96);
}
