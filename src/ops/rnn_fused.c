/* SPDX-License-Identifier: Apache-2.0
 * One product of all inputs with the weights of all gates and directions, then the time steps in
 * kernels/rnn_step.h. DynamicQuantizeLSTM multiplies bytes (ops/rnn_bytes.h): X and, before each
 * step, the states of all batch entries are rounded with a scale and zero point as
 * DynamicQuantizeLinear has them. */
#include "ops/rnn_fused.h"

#include "base/thread_pool.h"
#include "kernels/qbytes.h"
#include "kernels/vec.h"
#include "ops/product.h"
#include "ops/qproduct.h"
#include "ops/rnn_bytes.h"

enum { TILE_GRAIN = 1 << 16 /* elements */ };
enum { STEP_GRAIN = 1 << 15 }; /* multiply-adds of a time step that are worth a thread */
enum { BYTES_GRAIN = 4 };      /* times as many of bytes */
/* Inputs of the step that walks. */
enum { IN_XW, IN_H, IN_C, IN_COUNT };

struct fused {
    struct sdx_rnn_walk walk;
    enum sdx_rnn_kind kind;
    int64_t padded, width; /* floats of a row of states; of gates */
    int64_t unit_parts;    /* of a time step, where one part walks alone */
    const void *input;     /* packed weights of X, all directions side by side */
    bool in_tiles;         /* as sdx_gemm_tiles_pack makes them */
    const char *hidden;    /* packed recurrent weights; hidden_size bytes a direction */
    size_t hidden_size;
    struct sdx_rnn_bytes w, r; /* instead of them, where walk.rounds */
    int64_t pitch;             /* of rows of states in bytes */
    float *bias;               /* [directions * width] */
    float *bias_h;             /* GRU: [directions, padded] */
    struct sdx_split split;
};

struct fused_arg {
    const struct fused *f;
    const float *weights;
};

/* The rows of W in the order of the columns, as the right side of the product. */
static enum sdx_status pack_input(struct sdx_context *cx, void *dst, void *arg_)
{
    const struct fused_arg *arg = arg_;
    const struct fused *f = arg->f;
    const float *from = arg->weights;
    int64_t n = f->walk.directions * f->width, k = f->walk.input;
    float *rows = sdx_mem_calloc(cx->mem, SDX_MEM_OTHER, (size_t)(n * k) + 1, sizeof *rows);
    if (!rows) return SDX_FAIL_MEMORY(cx);
    for (int d = 0; d < f->walk.directions; d++)
        for (int g = 0; g < (int)f->walk.gates; g++)
            for (int64_t j = 0; j < f->walk.hidden; j++, from += k) {
                int64_t column = d * f->width + sdx_rnn_column(f->kind, g, j);
                if (k) memcpy(rows + column * k, from, (size_t)k * sizeof *rows);
            }
    if (f->in_tiles)
        sdx_gemm_tiles_pack(rows, 1, k, NULL, k, n, dst);
    else
        sdx_gemm_f32_pack(rows, 1, k, k, n, dst);
    sdx_mem_free(cx->mem, rows);
    return SDX_OK;
}

static enum sdx_status pack_hidden(struct sdx_context *cx, void *dst, void *arg_)
{
    (void)cx;
    const struct fused_arg *arg = arg_;
    const struct fused *f = arg->f;
    for (int d = 0; d < f->walk.directions; d++)
        sdx_rnn_pack(f->kind, f->walk.hidden,
                     arg->weights + d * f->walk.gates * f->walk.hidden * f->walk.hidden,
                     (float *)(void *)((char *)dst + (size_t)d * f->hidden_size));
    return SDX_OK;
}

/* Both biases of a gate are added to the product of the input, but for the one that GRU's reset
 * gate multiplies. */
static enum sdx_status read_bias(struct sdx_prepare *px, struct fused *f)
{
    int64_t n = f->walk.hidden, all = f->walk.gates * n;
    f->bias = sdx_prepare_alloc(px, (size_t)(f->walk.directions * f->width) * sizeof *f->bias);
    f->bias_h = sdx_prepare_alloc(px, (size_t)(f->walk.directions * f->padded) * sizeof *f->bias_h);
    if (!f->bias || !f->bias_h) return px->cx->error.status;
    for (int d = 0; d < f->walk.directions && sdx_prepare_has(px, 3); d++) {
        const float *b = (const float *)px->in[3]->data + d * 2 * all;
        for (int g = 0; g < (int)f->walk.gates; g++) {
            bool apart = f->kind == SDX_RNN_GRU && g == 2;
            for (int64_t j = 0; j < n; j++) {
                float of_h = b[all + g * n + j];
                f->bias[d * f->width + sdx_rnn_column(f->kind, g, j)] =
                    b[g * n + j] + (apart ? 0 : of_h);
                if (apart) f->bias_h[d * f->padded + j] = of_h;
            }
        }
    }
    return SDX_OK;
}

/* The product of all inputs with the weights of all directions, but for where the result goes. */
static struct sdx_gemm_f32 fused_input(const struct fused *f, const struct sdx_step *step)
{
    return (struct sdx_gemm_f32){.m = f->walk.seq * f->walk.batch,
                                 .n = f->walk.directions * f->width,
                                 .k = f->walk.input,
                                 .a = step->in[0]->data,
                                 .row_a = f->walk.input,
                                 .col_a = 1,
                                 .packed = f->input,
                                 .row_c = f->walk.directions * f->width,
                                 .alpha = 1,
                                 .epilogue.bias_col = f->bias};
}
static enum sdx_status run_tile_input(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_gemm_f32 g = fused_input(step->params, step);
    const int64_t rows = sdx_gemm_f32_tile_rows(g.m), tiles = (g.m + rows - 1) / rows;
    (void)x;
    sdx_gemm_f32_tile_a(&g, sdx_part_begin(tiles, step->parts, part, 1),
                        sdx_part_begin(tiles, step->parts, part + 1, 1), step->out[0]->data);
    return SDX_OK;
}
static enum sdx_status run_input(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct fused *f = step->params;
    struct sdx_gemm_f32 g = fused_input(f, step);
    if (step->in[1]) g.a_tiles = step->in[1]->data;
    g.c = step->out[0]->data;
    while (part < x->part_end && !sdx_exec_cancelled(x)) {
        const struct sdx_split_range r = sdx_split_next(&f->split, &part, x->part_end);
        sdx_gemm_f32_run(&g, r.m0, r.m1, r.n0, r.n1, x->scratch);
    }
    return SDX_OK;
}

/* in: X in bytes, its scale and zero point. */
static enum sdx_status run_bytes_input(struct sdx_exec *x, const struct sdx_step *step,
                                       int64_t part)
{
    const struct fused *f = step->params;
    const int64_t width = f->width, pitch = f->walk.directions * width;
    struct sdx_rnn_rows rows = {.pitch = f->walk.input,
                                .scale = *(const float *)step->in[1]->data,
                                .zero = *(const uint8_t *)step->in[2]->data};
    while (part < x->part_end && !sdx_exec_cancelled(x)) {
        const struct sdx_split_range r = sdx_split_next(&f->split, &part, x->part_end);
        float *y = (float *)step->out[0]->data + r.m0 * pitch;
        rows.x = (const uint8_t *)step->in[0]->data + r.m0 * rows.pitch;
        rows.count = r.m1 - r.m0;
        for (int d = 0; d < f->walk.directions; d++) {
            const int64_t begin = d * width, end = begin + width;
            const int64_t n0 = r.n0 > begin ? r.n0 : begin, n1 = r.n1 < end ? r.n1 : end;
            if (n0 < n1)
                sdx_rnn_bytes_multiply(&f->w, d, &rows, n0 - begin, n1 - begin, f->bias + begin,
                                       y + begin, pitch, x->scratch);
        }
    }
    return SDX_OK;
}

static void load_state(const struct fused *f, const struct sdx_tensor *from, int direction,
                       int64_t begin, int64_t rows, float *to)
{
    memset(to, 0, (size_t)(rows * f->padded) * sizeof *to);
    for (int64_t r = 0; from && r < rows; r++)
        memcpy(to + r * f->padded,
               (const float *)from->data +
                   sdx_rnn_state_at(&f->walk, direction, begin + r) * f->walk.hidden,
               (size_t)f->walk.hidden * sizeof *to);
}

static void store_state(const struct fused *f, const struct sdx_tensor *to, int direction,
                        int64_t begin, int64_t rows, const float *from)
{
    for (int64_t r = 0; to && r < rows; r++)
        memcpy((float *)to->data +
                   sdx_rnn_state_at(&f->walk, direction, begin + r) * f->walk.hidden,
               from + r * f->padded, (size_t)f->walk.hidden * sizeof *from);
}

/* One time step, its units on several threads where that is worth it. */
struct time_step {
    const struct fused *f;
    struct sdx_rnn_step s;
    int direction;
    struct sdx_rnn_rows bytes; /* the states, with walk.rounds */
    char *scratch;             /* of their product: `size` bytes a part */
    size_t size;
};

/* The gates of units s->begin .. s->end. */
static void multiply_bytes(const struct time_step *t, const struct sdx_rnn_step *s, int64_t part)
{
    const struct fused *f = t->f;
    const int64_t n0 = f->walk.gates * s->begin, n1 = f->walk.gates * s->end;
    sdx_rnn_bytes_multiply(&f->r, t->direction, &t->bytes, n0, n1, s->rows == 1 ? s->x : NULL,
                           s->gates, f->width, t->scratch + (size_t)part * t->size);
    for (int64_t r = 0; r < s->rows && s->rows > 1; r++)
        sdx_vec()->f32_axpy(1, s->x + r * s->row_x + n0, s->gates + r * f->width + n0,
                            (size_t)(n1 - n0));
}

static void run_units(void *arg, int64_t part, int worker)
{
    const struct time_step *t = arg;
    const struct fused *f = t->f;
    struct sdx_rnn_step s = t->s;
    (void)worker;
    s.begin = sdx_part_begin(f->padded, f->unit_parts, part, sdx_rnn_units());
    s.end = sdx_part_begin(f->padded, f->unit_parts, part + 1, sdx_rnn_units());
    if (f->walk.rounds) multiply_bytes(t, &s, part);
    sdx_rnn_step_f32(&s);
}

static void quantize_states(const struct fused *f, const float *h, uint8_t *to,
                            struct sdx_rnn_rows *rows)
{
    sdx_rnn_byte_scale(h, rows->count * f->padded, &rows->scale, &rows->zero);
    rows->x = to;
    rows->pitch = f->pitch;
    for (int64_t r = 0; r < rows->count; r++)
        sdx_qbytes()->quantize(h + r * f->padded, rows->scale, rows->zero, 0, to + r * f->pitch,
                               (size_t)f->padded);
}

static size_t round_64(size_t size)
{
    return (size + 63) / 64 * 64;
}
/* Of a part's scratch: floats; then the states in bytes; then what their products need. */
static size_t floats_size(const struct fused *f, int64_t rows)
{
    return round_64((size_t)(rows * (3 * f->padded + f->width)) * sizeof(float));
}
static size_t bytes_size(const struct fused *f, int64_t rows)
{
    return f->walk.rounds ? round_64((size_t)(rows * f->pitch)) : 0;
}

/* One part: some batch entries of one direction through all time steps. */
static enum sdx_status run_fused(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct fused *f = step->params;
    const struct sdx_rnn_walk *w = &f->walk;
    int direction = (int)(part / w->blocks);
    int64_t begin = part % w->blocks * w->rows_a_part, n = w->hidden;
    int64_t rows = w->batch - begin < w->rows_a_part ? w->batch - begin : w->rows_a_part;
    float *h = x->scratch, *next = h + rows * f->padded, *c = next + rows * f->padded;
    const float *xw = (const float *)step->in[IN_XW]->data + direction * f->width;
    float *y = step->out[0] ? step->out[0]->data : NULL;
    bool is_reverse = w->is_reverse || direction == 1;
    struct time_step now = {.f = f, .direction = direction, .bytes.count = rows};
    struct sdx_rnn_step *s = &now.s;
    *s = (struct sdx_rnn_step){.kind = f->kind, .rows = rows, .hidden = n, .c = c};
    s->gates = c + rows * f->padded;
    uint8_t *bytes = (uint8_t *)x->scratch + floats_size(f, rows);
    if (w->rounds) {
        now.scratch = (char *)bytes + bytes_size(f, rows);
        now.size = sdx_rnn_bytes_scratch(&f->r);
    } else {
        s->weights = (const float *)(const void *)(f->hidden + (size_t)direction * f->hidden_size);
    }
    s->bias_h = f->bias_h + direction * f->padded;
    s->row_x = w->directions * f->width * (w->batch_first ? w->seq : 1);
    load_state(f, step->in[IN_H], direction, begin, rows, h);
    load_state(f, step->in[IN_C], direction, begin, rows, c);
    const bool in_place = y && !w->batch_first && f->padded == n; /* y's rows are the states */
    for (int64_t t = 0; t < w->seq && !sdx_exec_cancelled(x); t++) {
        int64_t time = is_reverse ? w->seq - 1 - t : t;
        s->x = xw + sdx_rnn_input_at(w, time, begin) * w->directions * f->width;
        s->h = h;
        s->h_next = in_place ? y + sdx_rnn_output_at(w, time, direction, begin) * n : next;
        if (w->rounds) quantize_states(f, h, bytes, &now.bytes);
        sdx_parallel_for(x->pool, x->threads, f->unit_parts, 1, run_units, &now);
        if (!in_place) next = h;
        h = s->h_next;
        for (int64_t r = 0; y && !in_place && r < rows; r++)
            memcpy(y + sdx_rnn_output_at(w, time, direction, begin + r) * n, h + r * f->padded,
                   (size_t)n * sizeof *y);
    }
    store_state(f, step->out[1], direction, begin, rows, h);
    store_state(f, step->out[2], direction, begin, rows, c);
    return SDX_OK;
}

static void split_units(struct fused *f)
{
    const struct sdx_rnn_walk *w = &f->walk;
    f->unit_parts = 1;
    if (w->blocks * w->directions > 1) return;
    const double work =
        (double)w->rows_a_part * (double)w->hidden * (double)w->hidden * (double)w->gates;
    const int64_t most = f->padded / sdx_rnn_units();
    f->unit_parts = sdx_prepare_parts(work, w->rounds ? BYTES_GRAIN * STEP_GRAIN : STEP_GRAIN,
                                      most > 0 ? most : 1);
}

/* The packed weights of X and the steps that multiply them, in tiles where the machine has them. */
static enum sdx_status prepare_input(struct sdx_prepare *px, struct fused *f, int64_t variant,
                                     struct sdx_tensor **product)
{
    const int64_t m = f->walk.seq * f->walk.batch, n = f->walk.directions * f->width;
    struct fused_arg arg = {f, px->in[1]->data};
    f->in_tiles = sdx_gemm_f32_wants_tiles(f->walk.input, n);
    const struct sdx_pack wanted = {.key = f->in_tiles ? "rnn_input_tiles" : "rnn_input",
                                    .variant = variant,
                                    .size = f->in_tiles
                                                ? sdx_gemm_tiles_packed_size(f->walk.input, n)
                                                : sdx_gemm_f32_packed_size(f->walk.input, n),
                                    .pack = pack_input,
                                    .arg = &arg};
    f->input = sdx_prepare_pack(px, 1, &wanted);
    if (!f->input) return px->cx->error.status;
    const int64_t rows = f->in_tiles ? sdx_gemm_f32_tile_rows(m) : 0;
    size_t scratch = f->in_tiles ? 0 : sdx_gemm_f32_scratch(m, n, f->walk.input);
    struct sdx_tensor *in[] = {px->in[0], NULL};
    if (f->in_tiles) {
        const int64_t size = (int64_t)sdx_gemm_f32_tiles_size(m, f->walk.input);
        in[1] = sdx_prepare_temp(px, SDX_U8, 1, &size);
        if (!in[1]) return SDX_FAIL_MEMORY(px->cx);
        const int64_t parts =
            sdx_prepare_parts((double)m * (double)f->walk.input, TILE_GRAIN, (m + rows - 1) / rows);
        SDX_TRY(sdx_prepare_step_on(px, "rnn_tiles", run_tile_input, f, parts, 0, 1, &px->in[0], 1,
                                    &in[1]));
    }
    f->split = sdx_split_make(1, m, n, f->walk.input, 2 * rows, sdx_gemm_f32_panel());
    SDX_TRY(sdx_prepare_step_on(px, "rnn_input", run_input, f, f->split.parts, scratch, 2, in, 1,
                                product));
    sdx_prepare_in_ranges(px);
    return SDX_OK;
}

static enum sdx_status prepare_bytes_input(struct sdx_prepare *px, struct fused *f,
                                           struct sdx_tensor **product)
{
    enum { BEYOND = 16 }; /* what short rows are read beyond their end */
    const int64_t m = f->walk.seq * f->walk.batch, n = f->walk.directions * f->width;
    const int64_t count = m * f->walk.input + BEYOND;
    struct sdx_tensor *in[] = {sdx_prepare_temp(px, SDX_U8, 1, &count),
                               sdx_prepare_temp(px, SDX_F32, 0, NULL),
                               sdx_prepare_temp(px, SDX_U8, 0, NULL)};
    if (!in[0] || !in[1] || !in[2]) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(sdx_dynamic_quantize(px, px->in[0], in[0], in[1], in[2]));
    f->split = sdx_split_make(1, m, n, f->walk.input, 0, sdx_qdot_width());
    SDX_TRY(sdx_prepare_step_on(px, "rnn_input", run_bytes_input, f, f->split.parts,
                                sdx_rnn_bytes_scratch(&f->w), 3, in, 1, product));
    sdx_prepare_in_ranges(px);
    return SDX_OK;
}

static enum sdx_status pack_weights(struct sdx_prepare *px, struct fused *f, int64_t variant)
{
    struct fused_arg arg = {f, px->in[2]->data};
    f->hidden_size = round_64(sdx_rnn_packed_size(f->kind, f->walk.hidden));
    const struct sdx_pack wanted = {.key = "rnn_hidden",
                                    .variant = variant,
                                    .size = f->hidden_size * (size_t)f->walk.directions,
                                    .pack = pack_hidden,
                                    .arg = &arg};
    f->hidden = sdx_prepare_pack(px, 2, &wanted);
    return f->hidden ? SDX_OK : px->cx->error.status;
}

enum sdx_status sdx_rnn_fused_prepare(struct sdx_prepare *px, const struct sdx_rnn_walk *walk,
                                      enum sdx_rnn_kind kind)
{
    struct fused *f = SDX_PREPARE_NEW(px, struct fused);
    struct sdx_tensor *in[IN_COUNT] = {NULL}, *out[3] = {NULL, NULL, NULL};
    if (!f) return SDX_FAIL_MEMORY(px->cx);
    f->walk = *walk;
    f->kind = kind;
    f->padded = sdx_rnn_padded(walk->hidden);
    f->width = sdx_rnn_width(kind, walk->hidden);
    f->pitch = f->padded + 16;
    const int64_t dims[] = {walk->seq, walk->batch, walk->directions * f->width};
    const int64_t variant = kind * 1000 + sdx_rnn_padded(1);
    SDX_TRY(read_bias(px, f));
    in[IN_XW] = sdx_prepare_temp(px, SDX_F32, 3, dims);
    if (!in[IN_XW]) return px->cx->error.status;
    if (walk->rounds) {
        const int64_t rows = walk->batch;
        SDX_TRY(sdx_rnn_bytes_prepare(px, 1, kind, walk->hidden, walk->seq * rows, &f->w));
        SDX_TRY(sdx_rnn_bytes_prepare(px, 2, kind, walk->hidden, rows, &f->r));
        SDX_TRY(prepare_bytes_input(px, f, &in[IN_XW]));
    } else {
        SDX_TRY(pack_weights(px, f, variant));
        SDX_TRY(prepare_input(px, f, variant, &in[IN_XW]));
    }
    for (int i = 0; i < 2; i++)
        in[IN_H + i] = sdx_prepare_has(px, 5 + i) ? px->in[5 + i] : NULL;
    for (int k = 0; k < 3 && k < px->count_out; k++)
        out[k] = px->out[k];
    sdx_rnn_split_batch(&f->walk, walk->rounds ? walk->batch : SDX_RNN_ROWS);
    split_units(f);
    size_t scratch = floats_size(f, f->walk.rows_a_part) + bytes_size(f, f->walk.rows_a_part);
    if (walk->rounds) scratch += (size_t)f->unit_parts * sdx_rnn_bytes_scratch(&f->r);
    return sdx_prepare_step_on(px, "rnn_fused", run_fused, f, walk->directions * f->walk.blocks,
                               scratch, IN_COUNT, in, 3, out);
}
