/* SPDX-License-Identifier: Apache-2.0
 * Batches of matrix products. f32: a constant B is packed once; otherwise each part packs the block
 * of B that it works on into its scratch, which costs one pass over B for every block of rows.
 * Where the machine multiplies tiles, A is brought into them by a step before.
 * Parts are whole products when there are many, otherwise blocks of rows and columns of one. */
#include "ops/product.h"

#include <math.h>

#include "kernels/flush.h"
#include "tensor/convert.h"

enum {
    PART_MACS = 1 << 18, /* a part below this costs as much to start as to do */
    PARTS_MAX = 128,
    COLUMN_PARTS = 8,         /* that threads can share */
    FEW_ROWS = 4,             /* fewer wait for B: so much less work is worth a part, */
    FEW_PARTS = 4,            /* up to so many parts, which two threads share */
    PLAIN_ROWS = 4,           /* up to this many rows packing B does not pay */
    BLOCK_BYTES = 512 * 1024, /* of B packed in scratch */
    BIG_ROWS = 512,
    BLOCK_A_GRAIN = 1 << 16 /* elements a part copies */
};

struct params {
    struct sdx_product p;
    const char *packed;
    size_t packed_size;     /* of one matrix of B */
    enum sdx_half half;     /* what packed is made of */
    const int32_t *index_b; /* which packed matrix product i takes; NULL: the first */
    struct sdx_split split;
    int64_t block_n; /* columns packed at a time */
    bool is_plain, a_in_blocks;
    bool is_dots;      /* one column: rows of A by it */
    bool is_columns;   /* `packed` are columns: rows of A by each */
    size_t tiles_size; /* of one A in tiles; 0: it stays as it is */
};

int64_t sdx_pack_variant(const int64_t *values, int count)
{
    return (int64_t)(sdx_hash_bytes(values, (size_t)count * sizeof *values, 7) >> 1);
}

enum sdx_status sdx_fused_act(struct sdx_context *cx, const struct sdx_ir_node *node,
                              enum sdx_act *act, float *a, float *b)
{
    static const struct {
        const char *name;
        enum sdx_act act;
        float a, b;
    } table[] = {
        {"", SDX_ACT_NONE, 0, 0},
        {"Relu", SDX_ACT_RELU, 0, 0},
        {"Clip", SDX_ACT_CLIP, -INFINITY, INFINITY},
        {"LeakyRelu", SDX_ACT_LEAKY_RELU, 0.01f, 0},
        {"Sigmoid", SDX_ACT_SIGMOID, 0, 0},
        {"Tanh", SDX_ACT_TANH, 0, 0},
        {"Silu", SDX_ACT_SILU, 0, 0},
        {"HardSwish", SDX_ACT_HARD_SWISH, 0, 0},
        {"HardSigmoid", SDX_ACT_HARD_SIGMOID, 0.2f, 0.5f},
        {"Gelu", SDX_ACT_GELU_ERF, 0, 0},
        {"GeluTanh", SDX_ACT_GELU_TANH, 0, 0},
    };
    struct sdx_str name = sdx_ir_attr_str(node, "activation", "");
    for (int i = 0; i < SDX_COUNT_OF(table); i++) {
        if (!sdx_str_is(name, table[i].name)) continue;
        int64_t count = 0;
        const float *list = sdx_ir_attr_floats(node, "activation_params", &count);
        *act = table[i].act;
        *a = sdx_ir_attr_float(node, "activation_alpha", table[i].a);
        *b = sdx_ir_attr_float(node, "activation_beta", table[i].b);
        if (list && count > 0) *a = list[0];
        if (list && count > 1) *b = list[1];
        return SDX_OK;
    }
    return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "%.*s: activation \"%.*s\" is not known",
                    SDX_STR_ARG(node->op_type), SDX_STR_ARG(name));
}

const sdx_weight_f32 *sdx_weights_f32(struct sdx_context *cx, const struct sdx_tensor *weights,
                                      float **temp)
{
    const enum sdx_half half = sdx_half_of(weights);
    *temp = NULL;
    if (half == SDX_HALF_NONE) return weights->data;
    *temp = sdx_mem_alloc(cx->mem, SDX_MEM_SCRATCH, (size_t)weights->count * sizeof **temp);
    if (*temp)
        sdx_half_decode(half, weights->data, *temp, weights->count);
    else
        (void)SDX_FAIL_MEMORY(cx);
    return *temp;
}

static void drop_piece(void *px, const sdx_weight_f32 *begin, int64_t count)
{
    sdx_prepare_drop(px, (const void *)begin, (size_t)count * sizeof *begin);
}

const struct sdx_pieces *sdx_drops_pieces(struct sdx_prepare *px, const struct sdx_tensor *weights,
                                          struct sdx_pieces *pieces)
{
    enum { LEAST = 1 << 20 };
    if (weights->dtype != SDX_F32 || weights->bytes < LEAST) return NULL;
    *pieces = (struct sdx_pieces){drop_piece, px};
    return pieces;
}

enum sdx_status sdx_product_places(struct sdx_prepare *px, int rank_batch, const int64_t *dims_c,
                                   const struct sdx_tensor *operand, int64_t elements,
                                   int64_t count, const int64_t **at)
{
    int own = operand->rank - 2, shift = rank_batch - own;
    int64_t *out = sdx_prepare_alloc(px, (size_t)(count ? count : 1) * sizeof *out);
    if (!out) return SDX_FAIL_MEMORY(px->cx);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, stride = elements, place = 0;
        for (int d = rank_batch - 1; d >= 0; d--) {
            int64_t at_d = rest % dims_c[d];
            rest /= dims_c[d];
            if (d < shift) continue;
            int64_t length = operand->dims[d - shift];
            if (length != 1) place += at_d * stride;
            stride *= length;
        }
        out[i] = place;
    }
    *at = out;
    return SDX_OK;
}

static int64_t place(const int64_t *at, int64_t i)
{
    return at ? at[i] : 0;
}

struct sdx_split_range sdx_split_at(const struct sdx_split *s, int64_t part)
{
    struct sdx_split_range r;
    int64_t cells = s->split_m * s->split_n, cell = part % cells;
    r.begin = part / cells * s->per_part;
    r.end = r.begin + s->per_part < s->batch ? r.begin + s->per_part : s->batch;
    r.m0 = sdx_part_begin(s->m, s->split_m, cell / s->split_n, s->step_m);
    r.m1 = sdx_part_begin(s->m, s->split_m, cell / s->split_n + 1, s->step_m);
    r.n0 = sdx_part_begin(s->n, s->split_n, cell % s->split_n, s->step_n);
    r.n1 = sdx_part_begin(s->n, s->split_n, cell % s->split_n + 1, s->step_n);
    return r;
}

struct sdx_split_range sdx_split_next(const struct sdx_split *s, int64_t *part, int64_t end)
{
    struct sdx_split_range r = sdx_split_at(s, *part), last;
    const int64_t cells = s->split_m * s->split_n, cell = *part % cells, row = cell % s->split_n;
    int64_t most = end - *part;
    if (cells > 1 && cells - cell < most) most = cells - cell;
    if (row == 0 && most >= s->split_n)
        most -= most % s->split_n; /* whole rows of cells */
    else if (s->split_n - row < most)
        most = s->split_n - row;
    *part += most;
    last = sdx_split_at(s, *part - 1);
    r.end = last.end;
    r.m1 = last.m1;
    r.n1 = last.n1;
    return r;
}

static int64_t blocks(int64_t count, int64_t step)
{
    return (count + step - 1) / step;
}

struct sdx_split sdx_split_make(int64_t batch, int64_t m, int64_t n, int64_t k, int64_t step_m,
                                int64_t step_n)
{
    struct sdx_split s = {.batch = batch, .m = m, .n = n, .step_m = step_m, .step_n = step_n};
    double work = (double)batch * (double)m * (double)n * (double)(k ? k : 1);
    int64_t parts = sdx_prepare_parts(work, PART_MACS, PARTS_MAX);
    if (m < FEW_ROWS) {
        const int64_t few = sdx_prepare_parts(work, PART_MACS / FEW_ROWS, FEW_PARTS) & ~INT64_C(1);
        if (few > parts) parts = few;
    }
    if (!step_m) s.step_m = m >= BIG_ROWS ? 84 : 12;
    s.split_m = s.split_n = s.per_part = 1;
    if (batch >= parts) {
        s.per_part = blocks(batch, parts);
        s.parts = blocks(batch, s.per_part);
        return s;
    }
    int64_t want = blocks(parts, batch), most_m = blocks(m, s.step_m), most_n = blocks(n, step_n);
    if (m >= n) {
        s.split_m = want < most_m ? want : most_m;
        want = blocks(want, s.split_m);
        s.split_n = want < most_n ? want : most_n;
    } else {
        s.split_n = want < most_n ? want : most_n;
        want /= 2 * s.split_n; /* B is read again for each block of rows */
        s.split_m = want < 1 ? 1 : want < most_m ? want : most_m;
    }
    s.parts = batch * s.split_m * s.split_n;
    return s;
}

static struct sdx_gemm_f32 shape_of(const struct params *s)
{
    const struct sdx_product *p = &s->p;
    return (struct sdx_gemm_f32){.m = p->m,
                                 .n = p->n,
                                 .k = p->k,
                                 .row_a = p->row_a,
                                 .col_a = p->col_a,
                                 .row_c = p->n,
                                 .alpha = (float)p->alpha,
                                 .a_in_blocks = s->a_in_blocks};
}

static enum sdx_status run_tile_a(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *s = step->params;
    struct sdx_gemm_f32 g = shape_of(s);
    const int64_t height = sdx_gemm_f32_tile_rows(g.m), tiles = blocks(g.m, height);
    const int64_t end = sdx_part_begin(s->p.batch * tiles, step->parts, part + 1, 1);
    (void)x;
    for (int64_t t = sdx_part_begin(s->p.batch * tiles, step->parts, part, 1), last; t < end;
         t = last) {
        const int64_t i = t / tiles;
        last = (i + 1) * tiles < end ? (i + 1) * tiles : end;
        g.a = (const float *)step->in[0]->data + place(s->p.at_a, i);
        sdx_gemm_f32_tile_a(&g, t - i * tiles, last - i * tiles,
                            (char *)step->out[0]->data + (size_t)i * s->tiles_size);
    }
    return SDX_OK;
}

static enum sdx_status run_block_a(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *s = step->params;
    struct sdx_gemm_f32 g = shape_of(s);
    (void)x;
    g.a = (const float *)step->in[0]->data + place(s->p.at_a, 0);
    sdx_gemm_f32_block_a(&g, sdx_part_begin(g.m, step->parts, part, 1),
                         sdx_part_begin(g.m, step->parts, part + 1, 1), step->out[0]->data);
    return SDX_OK;
}

static void run_f32_one(const struct params *s, const struct sdx_step *step, int64_t i,
                        const struct sdx_split_range *r, char *scratch)
{
    const struct sdx_product *p = &s->p;
    const float *b = step->in[1] ? (const float *)step->in[1]->data + place(p->at_b, i) : NULL;
    struct sdx_gemm_f32 g = shape_of(s);
    g.a = (const float *)step->in[0]->data + (s->a_in_blocks ? 0 : place(p->at_a, i));
    if (s->tiles_size) g.a_tiles = (const char *)step->in[5]->data + (size_t)i * s->tiles_size;
    g.c = (float *)step->out[0]->data + i * p->m * p->n;
    g.epilogue.act = p->act;
    g.epilogue.a = p->act_a;
    g.epilogue.b = p->act_b;
    if (step->in[2]) g.epilogue.bias_col = step->in[2]->data;
    if (step->in[3]) g.epilogue.bias_row = step->in[3]->data;
    if (step->in[4]) g.epilogue.residual = (const float *)step->in[4]->data + i * p->m * p->n;
    if (s->is_columns) {
        g.packed = s->packed;
        sdx_gemm_f32_columns(&g, r->m0, r->m1);
        return;
    }
    if (s->packed) {
        g.residual_first = p->alpha == 1;
        g.packed = s->packed + (s->index_b ? (size_t)s->index_b[i] : 0) * s->packed_size;
        g.half = s->half;
        sdx_gemm_f32_run(&g, r->m0, r->m1, r->n0, r->n1, scratch);
        return;
    }
    if (s->is_dots) {
        sdx_gemm_f32_rows_dot(g.a + r->m0 * p->row_a, p->row_a, b, r->m1 - r->m0, p->k,
                              g.c + r->m0);
        return;
    }
    if (s->is_plain) {
        sdx_gemm_f32_plain(&g, b, p->row_b, p->col_b, r->m0, r->m1, r->n0, r->n1, scratch);
        return;
    }
    struct sdx_gemm_f32 whole = g;
    for (int64_t n = r->n0; n < r->n1; n += s->block_n) {
        g = whole;
        g.n = r->n1 - n < s->block_n ? r->n1 - n : s->block_n;
        g.packed = scratch;
        sdx_gemm_f32_pack(b + n * p->col_b, p->row_b, p->col_b, p->k, g.n, (float *)scratch);
        g.c += n;
        if (g.epilogue.bias_col) g.epilogue.bias_col += n;
        if (g.epilogue.residual) g.epilogue.residual += n;
        sdx_gemm_f32_run(&g, r->m0, r->m1, 0, g.n, scratch + s->packed_size);
    }
}

static enum sdx_status run_f32(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *s = step->params;
    const unsigned before = sdx_flush_begin();
    while (part < x->part_end) {
        const struct sdx_split_range r = sdx_split_next(&s->split, &part, x->part_end);
        if (r.m0 == r.m1 || r.n0 == r.n1) continue;
        for (int64_t i = r.begin; i < r.end && !sdx_exec_cancelled(x); i++)
            run_f32_one(s, step, i, &r, x->scratch);
    }
    sdx_flush_end(before);
    return SDX_OK;
}

static enum sdx_status run_small(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_product *p = &((const struct params *)step->params)->p;
    const struct sdx_gemm_small g = {p->m, p->n, p->k, p->row_a, p->col_a, p->row_b, p->col_b};
    const int64_t begin = sdx_part_begin(p->batch, step->parts, part, 1);
    const int64_t end = sdx_part_begin(p->batch, step->parts, part + 1, 1);
    (void)x;
    sdx_gemm_f32_small(&g, end - begin, (const float *)step->in[0]->data + begin * p->m * p->k,
                       (const float *)step->in[1]->data + begin * p->k * p->n,
                       (float *)step->out[0]->data + begin * p->m * p->n);
    return SDX_OK;
}

static enum sdx_status run_f64(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *s = step->params;
    const struct sdx_product *p = &s->p;
    struct sdx_split_range r = sdx_split_at(&s->split, part);
    if (r.m0 == r.m1 || r.n0 == r.n1) return SDX_OK;
    for (int64_t i = r.begin; i < r.end && !sdx_exec_cancelled(x); i++) {
        const double *a = (const double *)step->in[0]->data + place(p->at_a, i);
        const double *b = (const double *)step->in[1]->data + place(p->at_b, i);
        double *c = (double *)step->out[0]->data + i * p->m * p->n;
        sdx_gemm_f64(r.m1 - r.m0, r.n1 - r.n0, p->k, p->alpha, a + r.m0 * p->row_a, p->row_a,
                     p->col_a, b + r.n0 * p->col_b, p->row_b, p->col_b, 0, c + r.m0 * p->n + r.n0,
                     p->n);
    }
    return SDX_OK;
}

static enum sdx_status run_i32(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct params *s = step->params;
    const struct sdx_product *p = &s->p;
    const struct sdx_split_range r = sdx_split_at(&s->split, part);
    for (int64_t i = r.begin; i < r.end && !sdx_exec_cancelled(x); i++) {
        const uint32_t *a = (const uint32_t *)step->in[0]->data + place(p->at_a, i);
        const uint32_t *b = (const uint32_t *)step->in[1]->data + place(p->at_b, i);
        uint32_t *c = (uint32_t *)step->out[0]->data + i * p->m * p->n;
        sdx_gemm_b32(r.m1 - r.m0, r.n1 - r.n0, p->k, a + r.m0 * p->row_a, p->row_a, p->col_a,
                     b + r.n0 * p->col_b, p->row_b, p->col_b, c + r.m0 * p->n + r.n0, p->n);
    }
    return SDX_OK;
}

/* Integers modulo 2^bits: signed and unsigned are the same bits, so unsigned serves both. */
#define PRODUCT_INT(name, T)                                                                       \
    static enum sdx_status name(struct sdx_exec *x, const struct sdx_step *step, int64_t part)     \
    {                                                                                              \
        const struct params *s = step->params;                                                     \
        const struct sdx_product *p = &s->p;                                                       \
        struct sdx_split_range r = sdx_split_at(&s->split, part);                                  \
        for (int64_t i = r.begin; i < r.end && !sdx_exec_cancelled(x); i++) {                      \
            const T *a = (const T *)step->in[0]->data + place(p->at_a, i);                         \
            const T *b = (const T *)step->in[1]->data + place(p->at_b, i);                         \
            T *c = (T *)step->out[0]->data + i * p->m * p->n;                                      \
            for (int64_t m = r.m0; m < r.m1; m++) {                                                \
                T *row = c + m * p->n;                                                             \
                memset(row + r.n0, 0, (size_t)(r.n1 - r.n0) * sizeof(T));                          \
                for (int64_t k = 0; k < p->k; k++) {                                               \
                    const uint64_t v = a[m * p->row_a + k * p->col_a];                             \
                    const T *from = b + k * p->row_b;                                              \
                    for (int64_t n = r.n0; n < r.n1; n++)                                          \
                        row[n] = (T)(row[n] + v * from[n * p->col_b]);                             \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return SDX_OK;                                                                             \
    }
PRODUCT_INT(run_i8, uint8_t)
PRODUCT_INT(run_i16, uint16_t)
PRODUCT_INT(run_i64, uint64_t)
#undef PRODUCT_INT

/* What a constant B is packed into: the name of its steps and of the packed weights, and its size.
 */
struct form {
    const char *name;
    size_t (*size)(int64_t k, int64_t n);
};
static const struct form *form_of(const struct params *s)
{
    static const struct form forms[2][2] = {
        {{"gemm_f32", sdx_gemm_f32_packed_size}, {"gemm_half", sdx_gemm_half_packed_size}},
        {{"gemm_tiles", sdx_gemm_tiles_packed_size},
         {"gemm_half_tiles", sdx_gemm_half_tiles_packed_size}},
    };
    return &forms[s->tiles_size != 0][s->half != SDX_HALF_NONE];
}

struct pack_arg {
    struct sdx_prepare *px;
    const struct params *s;
    const int64_t *places;
    int64_t count;
};

static enum sdx_status pack_all(struct sdx_context *cx, void *dst, void *arg_)
{
    const struct pack_arg *arg = arg_;
    const struct sdx_product *p = &arg->s->p;
    float *temp = NULL;
    struct sdx_pieces pieces;
    const sdx_weight_f32 *b = arg->s->half ? NULL : sdx_weights_f32(cx, p->b, &temp);
    if (!arg->s->half && !b) return cx->error.status;
    for (int64_t i = 0; i < arg->count; i++) {
        void *to = (char *)dst + (size_t)i * arg->s->packed_size;
        const uint16_t *bits = (const uint16_t *)p->b->data + arg->places[i];
        if (arg->s->tiles_size && arg->s->half) {
            sdx_gemm_half_tiles_pack(bits, p->row_b, p->col_b, arg->s->half, p->k, p->n, to);
            continue;
        }
        if (arg->s->tiles_size) {
            sdx_gemm_tiles_pack(b + arg->places[i], p->row_b, p->col_b,
                                p->scale_col ? p->scale_col->data : NULL, p->k, p->n, to);
            continue;
        }
        if (arg->s->half) {
            sdx_gemm_half_pack(bits, p->row_b, p->col_b, p->k, p->n, to);
            continue;
        }
        sdx_gemm_f32_pack_in_pieces(b + arg->places[i], p->row_b, p->col_b, p->k, p->n, to,
                                    sdx_drops_pieces(arg->px, p->b, &pieces));
        if (p->scale_col) sdx_gemm_f32_pack_scale(p->scale_col->data, p->k, p->n, to);
    }
    sdx_mem_free(cx->mem, temp);
    return SDX_OK;
}

/* The bias of a scaled product, scaled. */
static enum sdx_status scale_bias(struct sdx_prepare *px, struct sdx_product *p)
{
    if (!p->scale_col || !p->bias_col) return SDX_OK;
    struct sdx_tensor *bias = sdx_prepare_alloc(px, sizeof *bias);
    float *scaled = sdx_prepare_alloc(px, (size_t)p->n * sizeof *scaled);
    if (!bias || !scaled) return SDX_FAIL_MEMORY(px->cx);
    for (int64_t j = 0; j < p->n; j++)
        scaled[j] = ((const float *)p->bias_col->data)[j] * ((const float *)p->scale_col->data)[j];
    *bias = *p->bias_col;
    bias->dims = bias->dims_inline;
    bias->rank = 1;
    bias->dims_inline[0] = p->n;
    bias->in_model = bias->needs_copy = false;
    bias->data = scaled;
    p->bias_col = bias;
    return SDX_OK;
}

/* Packs the distinct matrices of a constant B. */
static enum sdx_status pack_constant(struct sdx_prepare *px, struct params *s)
{
    const struct sdx_product *p = &s->p;
    static const int64_t zero = 0;
    struct pack_arg arg = {px, s, &zero, 1};
    if (p->at_b) {
        int32_t *index = sdx_prepare_alloc(px, (size_t)p->batch * sizeof *index);
        int64_t *places = sdx_prepare_alloc(px, (size_t)p->batch * sizeof *places);
        if (!index || !places) return SDX_FAIL_MEMORY(px->cx);
        arg.count = 0;
        for (int64_t i = 0; i < p->batch; i++) {
            int64_t at = arg.count;
            bool is_new = at == 0 || p->at_b[i] > places[at - 1]; /* rising so far */
            for (int64_t j = 0; !is_new && j < arg.count; j++)
                if (places[j] == p->at_b[i]) at = j;
            if (at == arg.count) places[arg.count++] = p->at_b[i];
            index[i] = (int32_t)at;
        }
        arg.places = places;
        s->index_b = index;
    }
    s->half =
        p->scale_col ? SDX_HALF_NONE : sdx_half_of(p->b); /* scaled ones are no f16 any more */
    if ((p->row_b == 1 || p->col_b == 1) && sdx_gemm_f32_wants_tiles(p->k, p->n))
        s->tiles_size = sdx_gemm_f32_tiles_size(p->m, p->k);
    s->packed_size = form_of(s)->size(p->k, p->n);
    size_t size;
    if (!sdx_mul_size(s->packed_size, (size_t)arg.count, &size))
        return SDX_FAIL(px->cx, SDX_OUT_OF_MEMORY, "packed weights do not fit into memory");
    int64_t form[] = {
        p->row_b,
        p->col_b,
        p->k,
        p->n,
        arg.count,
        sdx_pack_variant(arg.places, (int)arg.count),
        p->scale_col ? (int64_t)(sdx_hash_bytes(p->scale_col->data, p->scale_col->bytes, 5) >> 1)
                     : 0};
    const struct sdx_pack wanted = {.key = form_of(s)->name,
                                    .variant = sdx_pack_variant(form, 7),
                                    .size = size,
                                    .pack = pack_all,
                                    .arg = &arg,
                                    .reads_anywhere = p->b->dtype == SDX_F32};
    s->packed = sdx_prepare_pack(px, p->input_b, &wanted);
    return s->packed ? SDX_OK : px->cx->error.status;
}

/* Products that share one B and follow each other in A and C are one product. */
static void merge_batch(struct sdx_product *p)
{
    if (p->batch <= 1 || p->bias_row) return;
    for (int64_t i = 0; i < p->batch; i++)
        if (place(p->at_b, i) != place(p->at_b, 0) ||
            place(p->at_a, i) != place(p->at_a, 0) + i * p->m * p->row_a)
            return;
    if (place(p->at_a, 0) != 0 || place(p->at_b, 0) != 0) return;
    p->m *= p->batch;
    p->batch = 1;
    p->at_a = p->at_b = NULL;
}

/* A vector behind a matrix whose columns lie together is worked on as the row before its transpose:
 * C^T = B^T A^T, and C lies the same. */
static void turn(struct sdx_product *p)
{
    if (p->n != 1 || p->m == 1 || p->row_a != 1 || p->b->is_constant) return;
    const struct sdx_product q = *p;
    p->a = q.b;
    p->b = q.a;
    p->input_b = -1;
    p->m = 1;
    p->n = q.m;
    p->at_a = q.at_b;
    p->at_b = q.at_a;
    p->row_a = q.col_b;
    p->col_a = q.row_b;
    p->row_b = q.col_a;
    p->col_b = 1;
    p->bias_col = q.bias_row;
    p->bias_row = q.bias_col;
}

/* One product by a B that is cut along its columns: A is brought into the form that the parts read,
 * once for all of them. */
static enum sdx_status block_a(struct sdx_prepare *px, struct params *s)
{
    struct sdx_product *p = &s->p;
    if (p->batch != 1 || s->split.split_n == 1 || !sdx_gemm_f32_wants_blocks(p->m, p->k, p->col_a))
        return SDX_OK;
    const int64_t dims[] = {p->m, p->k};
    struct sdx_tensor *blocks = sdx_prepare_temp(px, SDX_F32, 2, dims);
    if (!blocks) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(sdx_prepare_step_on(px, "gemm_f32_block_a", run_block_a, s,
                                sdx_prepare_parts((double)p->m * (double)p->k, BLOCK_A_GRAIN, p->m),
                                0, 1, &p->a, 1, &blocks));
    s->a_in_blocks = true;
    p->a = blocks;
    return SDX_OK;
}

/* Brings A into tiles. */
static enum sdx_status tile_a(struct sdx_prepare *px, struct params *s, struct sdx_tensor **tiles)
{
    const struct sdx_product *p = &s->p;
    const int64_t rows = sdx_gemm_f32_tile_rows(p->m), count = p->batch * blocks(p->m, rows);
    const int64_t dims[] = {p->batch, (int64_t)(s->tiles_size / sizeof(float))};
    *tiles = sdx_prepare_temp(px, SDX_F32, 2, dims);
    if (!*tiles) return SDX_FAIL_MEMORY(px->cx);
    return sdx_prepare_step_on(
        px, "gemm_tiles_a", run_tile_a, s,
        sdx_prepare_parts((double)p->batch * (double)p->m * (double)p->k, BLOCK_A_GRAIN, count), 0,
        1, &p->a, 1, tiles);
}

/* One column that lies together, and nothing done at the store. */
static bool is_dots(const struct sdx_product *p)
{
    return p->n == 1 && p->col_a == 1 && p->row_b == 1 && p->alpha == 1 && !p->bias_col &&
           !p->bias_row && !p->residual && p->act == SDX_ACT_NONE;
}

/* Nothing but products of small matrices, which lie one behind the other in A and in B. */
static bool is_small(const struct sdx_product *p)
{
    const int64_t side = SDX_GEMM_SMALL;
    if (p->m > side || p->n > side || p->k > side || p->k < 1 || p->alpha != 1 || p->bias_col ||
        p->bias_row || p->residual || p->act != SDX_ACT_NONE ||
        (p->m - 1) * p->row_a + (p->k - 1) * p->col_a >= p->m * p->k ||
        (p->k - 1) * p->row_b + (p->n - 1) * p->col_b >= p->k * p->n)
        return false;
    for (int64_t i = 0; i < p->batch; i++)
        if (place(p->at_a, i) != i * p->m * p->k || place(p->at_b, i) != i * p->k * p->n)
            return false;
    return true;
}

/* Few columns of constants, and no more at the store than a bias for each and an activation. */
static bool is_columns(const struct sdx_product *p)
{
    return p->n <= SDX_GEMM_COLUMNS && p->k > 0 && p->col_a == 1 && !p->at_b && p->batch == 1 &&
           p->alpha == 1 && p->b->dtype == SDX_F32 && !p->scale_col && !p->bias_row && !p->residual;
}

/* B as its columns. */
static enum sdx_status pack_columns(struct sdx_context *cx, void *dst, void *arg)
{
    const struct sdx_product *p = arg;
    const sdx_weight_f32 *b = p->b->data;
    float *to = dst;
    (void)cx;
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t k = 0; k < p->k; k++)
            *to++ = b[k * p->row_b + j * p->col_b];
    return SDX_OK;
}
static enum sdx_status prepare_columns(struct sdx_prepare *px, struct params *s)
{
    struct sdx_product *p = &s->p;
    const int64_t form[] = {p->row_b, p->col_b, p->k, p->n};
    const struct sdx_pack wanted = {.key = "gemm_columns",
                                    .variant = sdx_pack_variant(form, SDX_COUNT_OF(form)),
                                    .size = (size_t)(p->n * p->k) * sizeof(float),
                                    .pack = pack_columns,
                                    .arg = p,
                                    .reads_anywhere = true};
    s->is_columns = true;
    s->packed = sdx_prepare_pack(px, p->input_b, &wanted);
    return s->packed ? SDX_OK : px->cx->error.status;
}

/* One product whose B parts pack or decode: in parts of columns alone, if those are enough for
 * threads to share. */
static void prefer_columns(struct sdx_split *s)
{
    const int64_t most = blocks(s->n, s->step_n);
    if (s->batch != 1 || most < COLUMN_PARTS) return;
    s->split_n = s->parts < most ? s->parts : most;
    s->split_m = 1;
    s->parts = s->split_n;
}

static enum sdx_status prepare_f32(struct sdx_prepare *px, struct params *s)
{
    struct sdx_product *p = &s->p;
    struct sdx_tensor *tiles = NULL;
    size_t scratch;
    const char *name;
    const bool is_packed = p->input_b >= 0 && p->b->is_constant;
    if (p->scale_col && (!is_packed || !p->scale_col->is_constant || p->bias_row ||
                         (p->bias_col && !p->bias_col->is_constant)))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: a scale that is not constant",
                        SDX_STR_ARG(px->node->op_type));
    SDX_TRY(scale_bias(px, p));
    if (is_packed && is_columns(p)) {
        SDX_TRY(prepare_columns(px, s));
        scratch = 0;
        name = "gemm_f32_columns";
    } else if (is_packed) {
        SDX_TRY(pack_constant(px, s));
        name = form_of(s)->name;
        if (s->tiles_size) {
            SDX_TRY(tile_a(px, s, &tiles));
            s->split = sdx_split_make(p->batch, p->m, p->n, p->k, 2 * sdx_gemm_f32_tile_rows(p->m),
                                      sdx_gemm_f32_panel());
            scratch = s->half ? sdx_gemm_half_tiles_scratch(p->k) : 0;
        } else {
            if (s->half) prefer_columns(&s->split);
            SDX_TRY(block_a(px, s));
            scratch = s->half ? sdx_gemm_half_scratch(p->m, p->n, p->k)
                              : sdx_gemm_f32_scratch(p->m, p->n, p->k);
        }
    } else if (is_dots(p)) {
        s->is_dots = true;
        scratch = 0;
        name = "gemm_f32_dots";
    } else if (is_small(p)) {
        const double work = (double)p->batch * (double)(p->m * p->n * p->k);
        struct sdx_tensor *in[] = {p->a, p->b};
        return sdx_prepare_step_on(px, "gemm_f32_small", run_small, s,
                                   sdx_prepare_parts(work, PART_MACS, p->batch), 0, 2, in, 1,
                                   &p->c);
    } else if (p->m <= PLAIN_ROWS || (double)p->n * (double)p->k < 256) {
        s->is_plain = true;
        scratch = sdx_gemm_f32_plain_scratch(p->m, p->n, p->k);
        name = "gemm_f32_plain";
    } else {
        int64_t panel = sdx_gemm_f32_panel(), column = (p->k ? p->k : 1) * 4;
        int64_t fit = BLOCK_BYTES / column / panel * panel;
        s->block_n = fit < panel ? panel : fit;
        if (s->block_n > p->n) s->block_n = blocks(p->n, panel) * panel;
        s->packed_size = sdx_gemm_f32_packed_size(p->k, s->block_n);
        s->packed_size = (s->packed_size + 63) / 64 * 64;
        prefer_columns(&s->split);
        SDX_TRY(block_a(px, s));
        scratch = s->packed_size + sdx_gemm_f32_scratch(p->m, s->block_n, p->k);
        name = "gemm_f32_pack";
    }
    struct sdx_tensor *in[] = {p->a, s->packed ? NULL : p->b, p->bias_col, p->bias_row, p->residual,
                               tiles};
    SDX_TRY(sdx_prepare_step_on(px, name, run_f32, s, s->split.parts, scratch, 6, in, 1, &p->c));
    const bool makes_b = s->block_n || (s->half && !tiles); /* a range does, of its columns */
    if (makes_b && s->split.split_m > 1 && p->m < BIG_ROWS)
        sdx_prepare_together(px, s->split.split_m * s->split.split_n);
    else if (p->m > PLAIN_ROWS)
        sdx_prepare_in_ranges(px); /* few rows wait for memory: no gain */
    return SDX_OK;
}

enum sdx_status sdx_product_prepare(struct sdx_prepare *px, const struct sdx_product *product)
{
    struct params *s = SDX_PREPARE_NEW(px, struct params);
    if (!s) return SDX_FAIL_MEMORY(px->cx);
    s->p = *product;
    struct sdx_product *p = &s->p;
    if (p->batch == 0 || p->m == 0 || p->n == 0) return SDX_OK;
    merge_batch(p);
    turn(p);
    s->split = sdx_split_make(p->batch, p->m, p->n, p->k, 0,
                              p->c->dtype == SDX_F32 ? sdx_gemm_f32_panel() : 16);
    int64_t parts = s->split.parts;
    struct sdx_tensor *in[] = {p->a, p->b};
    switch (p->c->dtype) {
    case SDX_F32: return prepare_f32(px, s);
    case SDX_F64: return sdx_prepare_step_on(px, "gemm_f64", run_f64, s, parts, 0, 2, in, 1, &p->c);
    case SDX_U8:
    case SDX_I8: return sdx_prepare_step_on(px, "gemm_i8", run_i8, s, parts, 0, 2, in, 1, &p->c);
    case SDX_U16:
    case SDX_I16: return sdx_prepare_step_on(px, "gemm_i16", run_i16, s, parts, 0, 2, in, 1, &p->c);
    case SDX_U32:
    case SDX_I32: return sdx_prepare_step_on(px, "gemm_i32", run_i32, s, parts, 0, 2, in, 1, &p->c);
    case SDX_U64:
    case SDX_I64: return sdx_prepare_step_on(px, "gemm_i64", run_i64, s, parts, 0, 2, in, 1, &p->c);
    default: break;
    }
    return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s",
                    SDX_STR_ARG(px->node->op_type), sdx_dtype_short_name(p->c->dtype));
}
