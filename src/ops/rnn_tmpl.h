/* SPDX-License-Identifier: Apache-2.0
 * The time steps of RNN, GRU and LSTM for one element type. Included by rnn.c once a type, with T
 * (the type), SUFFIX(name), ACTIVATE(act, x, n), MULTIPLY(...) and ADD_PRODUCT(...) defined there.
 * A template: not compiled by itself. */

/* One part: `rows` batch entries of one direction, all in scratch. */
struct SUFFIX(cell) {
    T *h, *c;       /* [rows, hidden] */
    T *gates;       /* [rows, gates * hidden] */
    T *extra, *new; /* [rows, hidden] */
    T *bias;        /* [gates * hidden] */
    const T *bias_h, *peephole;
    void *scratch;
};

static void SUFFIX(clip)(const struct params *p, T *x, int64_t n)
{
    T limit = (T)p->clip;
    for (int64_t i = 0; p->has_clip && i < n; i++)
        x[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
}

static void SUFFIX(gate)(const struct params *p, int direction, int act, T *x, int64_t n)
{
    SUFFIX(clip)(p, x, n);
    ACTIVATE(&p->acts[direction * p->acts_a_direction + act], x, n);
}

static void SUFFIX(lstm_row)(const struct params *p, int direction, const struct SUFFIX(cell) * s,
                             int64_t row)
{
    int64_t n = p->walk.hidden;
    T *i = s->gates + row * 4 * n, *o = i + n, *f = o + n, *g = f + n;
    T *c = s->c + row * n, *h = s->h + row * n;
    for (int64_t j = 0; s->peephole && j < n; j++) {
        i[j] += s->peephole[j] * c[j];
        f[j] += s->peephole[2 * n + j] * c[j];
    }
    SUFFIX(gate)(p, direction, 0, i, n);
    if (p->input_forget) {
        for (int64_t j = 0; j < n; j++)
            f[j] = 1 - i[j];
    } else {
        SUFFIX(gate)(p, direction, 0, f, n);
    }
    SUFFIX(gate)(p, direction, 1, g, n);
    for (int64_t j = 0; j < n; j++) {
        c[j] = f[j] * c[j] + i[j] * g[j];
        if (s->peephole) o[j] += s->peephole[n + j] * c[j];
        h[j] = c[j];
    }
    SUFFIX(gate)(p, direction, 0, o, n);
    ACTIVATE(&p->acts[direction * p->acts_a_direction + 2], h, n); /* no clip, as ONNX Runtime */
    for (int64_t j = 0; j < n; j++)
        h[j] *= o[j];
}

/* Rows of the part that are still within their sequence get a new state. */
static void SUFFIX(update_rows)(const struct params *p, const struct sdx_step *step, int direction,
                                const struct SUFFIX(cell) * s, int64_t rows, const bool *is_live)
{
    int64_t n = p->walk.hidden, width = p->walk.gates * n;
    if (p->kind == KIND_GRU) {
        for (int64_t r = 0; r < rows; r++) {
            T *z = s->gates + r * width, *reset = z + n, *h = s->h + r * n;
            SUFFIX(gate)(p, direction, 0, z, n);
            SUFFIX(gate)(p, direction, 0, reset, n);
            for (int64_t j = 0; j < n && !p->linear_before_reset; j++)
                s->extra[r * n + j] = reset[j] * h[j];
        }
        T *to = p->linear_before_reset ? s->extra : s->new;
        MULTIPLY(p, step, direction, 1, rows, p->linear_before_reset ? s->h : s->extra, n, to, n,
                 s->scratch);
    }
    for (int64_t r = 0; r < rows; r++) {
        T *row = s->gates + r * width, *h = s->h + r * n;
        if (p->kind == KIND_GRU) {
            T *next = row + 2 * n, *extra = s->extra + r * n, *fresh = s->new + r *n;
            for (int64_t j = 0; j < n; j++)
                next[j] += p->linear_before_reset
                               ? row[n + j] * (extra[j] + (s->bias_h ? s->bias_h[j] : 0))
                               : fresh[j];
            SUFFIX(gate)(p, direction, 1, next, n);
            for (int64_t j = 0; is_live[r] && j < n; j++)
                h[j] = (1 - row[j]) * next[j] + row[j] * h[j];
        } else if (!is_live[r]) {
            continue;
        } else if (p->kind == KIND_LSTM) {
            SUFFIX(lstm_row)(p, direction, s, r);
        } else {
            SUFFIX(gate)(p, direction, 0, row, n);
            memcpy(h, row, (size_t)n * sizeof(T));
        }
    }
}

/* Sum of the biases of input and recurrence; the one inside GRU's reset stays apart. */
static void SUFFIX(set_bias)(const struct params *p, const struct sdx_step *step, int direction,
                             struct SUFFIX(cell) * s)
{
    int64_t n = p->walk.hidden, width = p->walk.gates * n;
    memset(s->bias, 0, (size_t)width * sizeof(T));
    if (step->in[IN_B]) {
        const T *b = (const T *)step->in[IN_B]->data + direction * 2 * width;
        bool apart = p->kind == KIND_GRU && p->linear_before_reset;
        for (int64_t j = 0; j < width; j++)
            s->bias[j] = b[j] + (apart && j >= 2 * n ? 0 : b[width + j]);
        if (apart) s->bias_h = b + width + 2 * n;
    }
    if (step->in[IN_P]) s->peephole = (const T *)step->in[IN_P]->data + direction * 3 * n;
}

static enum sdx_status SUFFIX(run)(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *p = step->params;
    int direction = (int)(part / p->walk.blocks);
    int64_t begin = part % p->walk.blocks * p->walk.rows_a_part, n = p->walk.hidden,
            width = p->walk.gates * n;
    int64_t rows =
        p->walk.batch - begin < p->walk.rows_a_part ? p->walk.batch - begin : p->walk.rows_a_part;
    bool is_reverse = p->walk.is_reverse || direction == 1, is_live[SDX_RNN_ROWS];
    int64_t length[SDX_RNN_ROWS];
    struct SUFFIX(cell) s = {.h = x->scratch};
    SDX_TRY(read_lengths(x, p, step->in[IN_LENGTHS], begin, rows, length));
    s.c = s.h + rows * n;
    s.gates = s.c + rows * n;
    s.extra = s.gates + rows * width;
    s.new = s.extra + rows *n;
    s.bias = s.new + rows *n;
    s.scratch = (char *)x->scratch + p->state_size;
    SUFFIX(set_bias)(p, step, direction, &s);
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = sdx_rnn_state_at(&p->walk, direction, begin + r) * n;
        /* A row without steps ends in zeros, whatever it begins with: ONNX Runtime's rule where the
         * standard is silent. */
        const struct sdx_tensor *h0 = length[r] ? step->in[IN_H] : NULL;
        const struct sdx_tensor *c0 = length[r] ? step->in[IN_C] : NULL;
        for (int64_t j = 0; j < n; j++) {
            s.h[r * n + j] = h0 ? ((const T *)h0->data)[at + j] : 0;
            s.c[r * n + j] = c0 ? ((const T *)c0->data)[at + j] : 0;
        }
    }
    const T *xw =
        (const T *)step->in[IN_XW]->data + direction * p->walk.seq * p->walk.batch * width;
    T *y = step->out[0] ? step->out[0]->data : NULL;
    for (int64_t t = 0; t < p->walk.seq && !sdx_exec_cancelled(x); t++) {
        for (int64_t r = 0; r < rows; r++) {
            is_live[r] = t < length[r];
            int64_t time = is_reverse && is_live[r] ? length[r] - 1 - t : t;
            const T *from = xw + sdx_rnn_input_at(&p->walk, time, begin + r) * width;
            for (int64_t j = 0; j < width; j++)
                s.gates[r * width + j] = from[j] + s.bias[j];
        }
        ADD_PRODUCT(p, step, direction, 0, rows, s.h, n, s.gates, width, s.scratch);
        SUFFIX(update_rows)(p, step, direction, &s, rows, is_live);
        for (int64_t r = 0; y && r < rows; r++) {
            int64_t time = is_reverse && is_live[r] ? length[r] - 1 - t : t;
            T *to = y + sdx_rnn_output_at(&p->walk, time, direction, begin + r) * n;
            if (is_live[r])
                memcpy(to, s.h + r * n, (size_t)n * sizeof(T));
            else
                memset(to, 0, (size_t)n * sizeof(T));
        }
    }
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = sdx_rnn_state_at(&p->walk, direction, begin + r) * n;
        if (step->out[1]) memcpy((T *)step->out[1]->data + at, s.h + r * n, (size_t)n * sizeof(T));
        if (step->out[2]) memcpy((T *)step->out[2]->data + at, s.c + r * n, (size_t)n * sizeof(T));
    }
    return SDX_OK;
}
