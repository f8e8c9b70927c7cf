/* SPDX-License-Identifier: Apache-2.0
 * Random numbers from Philox 4x32-10 (Salmon et al., SC 2011): element i is a function of the key
 * and i, so results do not depend on the split. The key is the seed attribute's bits: a node with a
 * seed gives the same numbers in every run (normal ones but for the last bits of an instruction
 * set's logarithm and sine). Without a seed the key comes from the clock. */
#include <math.h>

#include "base/thread_pool.h"
#include "kernels/vec.h"
#include "ops/move.h"
#include "ops/op.h"
#include "tensor/convert.h"

struct philox {
    uint32_t key[2];
};

enum { ROUNDS = 10 };

static inline void philox_round(const struct philox *g, uint32_t *c0, uint32_t *c1, uint32_t *c2,
                                uint32_t *c3)
{
    const uint64_t a = (uint64_t)0xD2511F53u * *c0, b = (uint64_t)0xCD9E8D57u * *c2;
    *c0 = (uint32_t)(b >> 32) ^ *c1 ^ g->key[0];
    *c1 = (uint32_t)b;
    *c2 = (uint32_t)(a >> 32) ^ *c3 ^ g->key[1];
    *c3 = (uint32_t)a;
}
static inline void philox_next_key(struct philox *g)
{
    g->key[0] += 0x9E3779B9u;
    g->key[1] += 0xBB67AE85u;
}

/* Four 32-bit numbers for counter i. */
static void philox_block(const struct philox *g, uint64_t i, uint32_t out[4])
{
    uint32_t c[4] = {(uint32_t)i, (uint32_t)(i >> 32), 0, 0};
    struct philox at = *g;
    for (int round = 0; round < ROUNDS; round++, philox_next_key(&at))
        philox_round(&at, &c[0], &c[1], &c[2], &c[3]);
    memcpy(out, c, sizeof(c));
}

enum { BLOCKS = 64, ELEMENTS = 4 * BLOCKS }; /* of counters, and of numbers, at a time */

/* Those of BLOCKS counters from `first` on: word w of counter i is words[w][i]. */
static void philox_blocks(const struct philox *g, uint64_t first, uint32_t words[4][BLOCKS])
{
    struct philox at = *g;
    for (int i = 0; i < BLOCKS; i++) {
        words[0][i] = (uint32_t)(first + (uint64_t)i);
        words[1][i] = (uint32_t)((first + (uint64_t)i) >> 32);
        words[2][i] = words[3][i] = 0;
    }
    for (int round = 0; round < ROUNDS; round++, philox_next_key(&at))
        for (int i = 0; i < BLOCKS; i++)
            philox_round(&at, &words[0][i], &words[1][i], &words[2][i], &words[3][i]);
}

/* In [0, 1), 53 bits. */
static double uniform53(uint32_t hi, uint32_t lo)
{
    return (double)(((uint64_t)(hi >> 5) << 26) | (lo >> 6)) * 0x1p-53;
}

struct random_params {
    bool has_seed;
    struct philox seed;
    double a, b; /* low and high, or mean and scale */
    bool normal;
    int64_t classes; /* Multinomial */
};

static struct random_params *random_create(struct sdx_prepare *px)
{
    struct random_params *p = SDX_PREPARE_NEW(px, struct random_params);
    const struct sdx_ir_attr *a = sdx_ir_attr(px->node, "seed");
    if (!p || !a) return p;
    p->has_seed = true;
    memcpy(&p->seed.key[0], &a->f, sizeof(a->f));
    p->seed.key[1] = 0x5d588b65u;
    return p;
}

static struct philox generator(const struct random_params *p, const struct sdx_step *step,
                               int64_t part)
{
    if (p->has_seed) return p->seed;
    uint64_t mix[3] = {(uint64_t)sdx_clock_ns(), (uint64_t)(uintptr_t)step, (uint64_t)part};
    uint64_t h = sdx_hash_bytes(mix, sizeof(mix), 0);
    return (struct philox){{(uint32_t)h, (uint32_t)(h >> 32)}};
}

static void part_range(const struct sdx_step *step, int64_t part, int64_t *begin, int64_t *end)
{
    *begin = sdx_part_begin(step->out[0]->count, step->parts, part, ELEMENTS);
    *end = sdx_part_begin(step->out[0]->count, step->parts, part + 1, ELEMENTS);
}

static int64_t element_parts(const struct sdx_tensor *out)
{
    return sdx_prepare_parts((double)out->count, 8192, 256);
}

/* ---- RandomNormal, RandomUniform and their Like forms ---- */

static enum sdx_status set_dtype(struct sdx_infer *ix, int64_t dtype)
{
    if (dtype != SDX_DTYPE_NONE && !sdx_dtype_is_valid((int)dtype))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: dtype %lld", SDX_MOVE_OP(ix),
                        (long long)dtype);
    if (dtype != SDX_DTYPE_NONE) sdx_infer_set_dtype(ix, 0, (int)dtype);
    return SDX_OK;
}

static enum sdx_status infer_random(struct sdx_infer *ix)
{
    int64_t count = 0;
    const int64_t *shape = sdx_ir_attr_ints(ix->node, "shape", &count);
    SDX_TRY(set_dtype(ix, sdx_ir_attr_int(ix->node, "dtype", SDX_F32)));
    if (!shape || count > SDX_RANK_MAX)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: attribute shape is missing or too long",
                        SDX_MOVE_OP(ix));
    for (int64_t i = 0; i < count; i++)
        if (shape[i] < 0)
            return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: length %lld", SDX_MOVE_OP(ix),
                            (long long)shape[i]);
    return sdx_infer_set_dims(ix, 0, (int)count, shape);
}

static enum sdx_status infer_random_like(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    return set_dtype(ix, sdx_ir_attr_int(ix->node, "dtype", sdx_infer_dtype(ix, 0)));
}

/* Numbers in (0, 1): the middles of 2^23 intervals. */
static void uniform_f32(const uint32_t *words, float *to)
{
    for (int i = 0; i < BLOCKS; i++)
        to[i] = ((float)(int32_t)(words[i] >> 9) + 0.5f) * 0x1p-23f;
}

/* ELEMENTS numbers, the four of counter `first` + i behind each other; of normal ones each pair is
 * a vector of random length and direction (Box and Muller). */
static void random_f32(const struct random_params *p, const struct philox *g, uint64_t first,
                       float *y)
{
    const struct sdx_vec *vec = sdx_vec();
    uint32_t words[4][BLOCKS];
    float u[4][BLOCKS], t[BLOCKS];
    philox_blocks(g, first, words);
    for (int w = 0; w < 4; w++)
        uniform_f32(words[w], u[w]);
    for (int w = 0; p->normal && w < 4; w += 2) {
        const float turn = 6.2831853f, minus_two = -2;
        vec->f32_log(u[w], t, BLOCKS, 0, 0);
        vec->f32_mul(t, 1, &minus_two, 0, t, BLOCKS);
        vec->f32_sqrt(t, t, BLOCKS, 0, 0);
        vec->f32_mul(u[w + 1], 1, &turn, 0, u[w + 1], BLOCKS);
        vec->f32_cos(u[w + 1], u[w], BLOCKS, 0, 0);
        vec->f32_sin(u[w + 1], u[w + 1], BLOCKS, 0, 0);
        vec->f32_mul(t, 1, u[w], 1, u[w], BLOCKS);
        vec->f32_mul(t, 1, u[w + 1], 1, u[w + 1], BLOCKS);
    }
    const float shift = (float)p->a, scale = (float)(p->normal ? p->b : p->b - p->a);
    for (int i = 0; i < BLOCKS; i++)
        for (int w = 0; w < 4; w++)
            y[4 * i + w] = shift + scale * u[w][i];
}

/* Parts begin at whole blocks. */
static void run_random_f32(const struct random_params *p, const struct philox *g, float *y,
                           int64_t begin, int64_t end)
{
    float room[ELEMENTS];
    for (int64_t i = begin; i < end; i += ELEMENTS) {
        const bool is_whole = end - i >= ELEMENTS;
        random_f32(p, g, (uint64_t)i / 4, is_whole ? y + i : room);
        if (!is_whole) memcpy(y + i, room, (size_t)(end - i) * sizeof *y);
    }
}

static enum sdx_status run_random(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct random_params *p = step->params;
    struct philox g = generator(p, step, part);
    struct sdx_tensor *out = step->out[0];
    int64_t begin, end;
    part_range(step, part, &begin, &end);
    if (out->dtype == SDX_F32) {
        run_random_f32(p, &g, out->data, begin, end);
        return SDX_OK;
    }
    for (int64_t i = begin; i < end; i++) {
        uint32_t r[4];
        philox_block(&g, (uint64_t)i, r);
        double u = uniform53(r[0], r[1]), y = p->a + u * (p->b - p->a);
        if (p->normal) /* Box and Muller; 1 - u is never 0 */
            y = p->a +
                p->b * sqrt(-2 * log(1 - u)) * cos(6.283185307179586477 * uniform53(r[2], r[3]));
        sdx_store_f64(out->dtype, out->data, i, y);
    }
    return SDX_OK;
}

static enum sdx_status prepare_random(struct sdx_prepare *px, bool normal)
{
    struct random_params *p = random_create(px);
    if (!p) return SDX_OUT_OF_MEMORY;
    if (!sdx_dtype_is_float(px->out[0]->dtype))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: element type %s, expected a floating one",
                        SDX_MOVE_OP(px), sdx_dtype_short_name(px->out[0]->dtype));
    p->normal = normal;
    p->a = sdx_ir_attr_float(px->node, normal ? "mean" : "low", 0.0f);
    p->b = sdx_ir_attr_float(px->node, normal ? "scale" : "high", 1.0f);
    return sdx_prepare_step(px, normal ? "random_normal" : "random_uniform", run_random, p,
                            element_parts(px->out[0]), 0);
}

static enum sdx_status prepare_random_normal(struct sdx_prepare *px)
{
    return prepare_random(px, true);
}

static enum sdx_status prepare_random_uniform(struct sdx_prepare *px)
{
    return prepare_random(px, false);
}

/* ---- Bernoulli ---- */

static enum sdx_status run_bernoulli(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    const struct random_params *p = step->params;
    struct philox g = generator(p, step, part);
    const struct sdx_tensor *in = step->in[0];
    struct sdx_tensor *out = step->out[0];
    int64_t begin, end;
    part_range(step, part, &begin, &end);
    uint32_t words[4][BLOCKS] = {{0}}; /* parts begin at whole blocks */
    for (int64_t i = begin; i < end; i++) {
        const int64_t of = i % ELEMENTS;
        if (of == 0) philox_blocks(&g, (uint64_t)i / 4, words);
        const double u = words[of % 4][of / 4] * 0x1p-32;
        if (out->dtype == SDX_F32 && in->dtype == SDX_F32)
            ((float *)out->data)[i] = u < (double)((const float *)in->data)[i];
        else
            sdx_store_i64(out->dtype, out->data, i, u < sdx_load_f64(in->dtype, in->data, i));
    }
    return SDX_OK;
}

static enum sdx_status prepare_bernoulli(struct sdx_prepare *px)
{
    struct random_params *p = random_create(px);
    if (!p) return SDX_OUT_OF_MEMORY;
    return sdx_prepare_step(px, "bernoulli", run_bernoulli, p, element_parts(px->out[0]), 0);
}

/* ---- Multinomial ---- */

static enum sdx_status infer_multinomial(struct sdx_infer *ix)
{
    int64_t dtype = sdx_ir_attr_int(ix->node, "dtype", SDX_I32), dims[2] = {-1, 0};
    int rank = sdx_infer_rank(ix, 0);
    dims[1] = sdx_ir_attr_int(ix->node, "sample_size", 1);
    if (dtype != SDX_I32 && dtype != SDX_I64)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Multinomial: dtype %lld, expected int32 or int64",
                        (long long)dtype);
    if (dims[1] < 0 || (rank >= 0 && rank != 2))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "Multinomial: input rank %d, sample_size %lld", rank,
                        (long long)dims[1]);
    sdx_infer_set_dtype(ix, 0, (int)dtype);
    if (rank == 2) dims[0] = sdx_infer_dims(ix, 0)[0];
    return sdx_infer_set_dims(ix, 0, 2, dims);
}

/* The inputs are logarithms of probabilities, not normalised: one sample is the first class whose
 * cumulative sum passes a uniform number. */
static enum sdx_status run_multinomial(struct sdx_exec *x, const struct sdx_step *step,
                                       int64_t part)
{
    const struct random_params *p = step->params;
    struct philox g = generator(p, step, part);
    const struct sdx_tensor *in = step->in[0];
    struct sdx_tensor *out = step->out[0];
    int64_t samples = out->dims[1];
    double *sum = x->scratch, top = -INFINITY, total = 0;
    for (int64_t c = 0; c < p->classes; c++) {
        double v = sdx_load_f64(in->dtype, in->data, part * p->classes + c);
        if (v > top) top = v;
    }
    for (int64_t c = 0; c < p->classes; c++) {
        double v = sdx_load_f64(in->dtype, in->data, part * p->classes + c);
        total += isfinite(top) && !isnan(v) ? exp(v - top) : 1;
        sum[c] = total;
    }
    for (int64_t s = 0; s < samples; s++) {
        uint32_t r[4];
        philox_block(&g, (uint64_t)(part * samples + s), r);
        double u = uniform53(r[0], r[1]) * total;
        int64_t low = 0, high = p->classes - 1;
        while (low < high) {
            int64_t mid = low + (high - low) / 2;
            if (sum[mid] > u)
                high = mid;
            else
                low = mid + 1;
        }
        sdx_store_i64(out->dtype, out->data, part * samples + s, low);
    }
    return SDX_OK;
}

static enum sdx_status prepare_multinomial(struct sdx_prepare *px)
{
    struct random_params *p = random_create(px);
    if (!p) return SDX_OUT_OF_MEMORY;
    p->classes = px->in[0]->dims[1];
    if (p->classes < 1) return SDX_FAIL(px->cx, SDX_BAD_MODEL, "Multinomial: no classes");
    if (px->out[0]->count == 0) return SDX_OK;
    return sdx_prepare_step(px, "multinomial", run_multinomial, p, px->in[0]->dims[0],
                            (size_t)p->classes * sizeof(double));
}

static const struct sdx_op ops[] = {
    {"RandomNormal", 1, 0, infer_random, KERNEL(prepare_random_normal), .flags = SDX_OP_IMPURE},
    {"RandomNormalLike", 1, 0, infer_random_like, KERNEL(prepare_random_normal),
     .flags = SDX_OP_IMPURE},
    {"RandomUniform", 1, 0, infer_random, KERNEL(prepare_random_uniform), .flags = SDX_OP_IMPURE},
    {"RandomUniformLike", 1, 0, infer_random_like, KERNEL(prepare_random_uniform),
     .flags = SDX_OP_IMPURE},
    {"Multinomial", 7, 0, infer_multinomial, KERNEL(prepare_multinomial), .flags = SDX_OP_IMPURE},
    {"Bernoulli", 15, 0, infer_random_like, KERNEL(prepare_bernoulli), .flags = SDX_OP_IMPURE},
};
const struct sdx_op_family sdx_ops_random = FAMILY("", ops);
