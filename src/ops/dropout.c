/* SPDX-License-Identifier: Apache-2.0
 * Dropout of all versions. Training draws the mask as the ONNX reference does: Mersenne Twister
 * MT19937 seeded with `seed`, 53-bit uniform numbers, an element is kept when its number is not
 * below the ratio. */
#include "ops/dropout.h"

#include "base/thread_pool.h"
#include "ops/op.h"
#include "tensor/convert.h"

enum { STATE = 624, SHIFT = 397 };

struct twister {
    uint32_t state[STATE];
    int at;
};

static void twister_seed(struct twister *t, uint32_t seed)
{
    t->state[0] = seed;
    for (uint32_t i = 1; i < STATE; i++)
        t->state[i] = 1812433253u * (t->state[i - 1] ^ (t->state[i - 1] >> 30)) + i;
    t->at = STATE;
}

static uint32_t twister_next(struct twister *t)
{
    if (t->at == STATE) {
        for (int i = 0; i < STATE; i++) {
            uint32_t y = (t->state[i] & 0x80000000u) | (t->state[(i + 1) % STATE] & 0x7fffffffu);
            t->state[i] = t->state[(i + SHIFT) % STATE] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        t->at = 0;
    }
    uint32_t y = t->state[t->at++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

static double twister_uniform(struct twister *t)
{
    uint32_t high = twister_next(t) >> 5, low = twister_next(t) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

struct dropout {
    bool always_trains, may_train, has_seed;
    uint32_t seed;
    double ratio; /* of the attribute */
    bool has_ratio_input;
    bool mask_of_rest; /* without training; versions 7 to 10: false, as ONNX Runtime has it */
};

static void fill_mask(struct sdx_tensor *mask, int64_t i, bool kept)
{
    sdx_store_i64(mask->dtype, mask->data, i, kept);
}

static enum sdx_status run_dropout(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct dropout *p = step->params;
    const struct sdx_tensor *in = step->in[0];
    struct sdx_tensor *out = step->out[0], *mask = step->count_out > 1 ? step->out[1] : NULL;
    double ratio = p->ratio;
    if (p->has_ratio_input) ratio = sdx_load_f64(step->in[1]->dtype, step->in[1]->data, 0);
    bool trains =
        p->may_train && (p->always_trains || (step->count_in > 2 && step->in[2] &&
                                              sdx_load_i64(SDX_BOOL, step->in[2]->data, 0) != 0));
    int64_t begin = sdx_part_begin(in->count, step->parts, part, 64);
    int64_t end = sdx_part_begin(in->count, step->parts, part + 1, 64);
    if (!trains || ratio == 0) {
        size_t size = (size_t)sdx_dtype_bits(in->dtype) / 8;
        if (out && out->data != in->data)
            memcpy((char *)out->data + (size_t)begin * size,
                   (const char *)in->data + (size_t)begin * size, (size_t)(end - begin) * size);
        for (int64_t i = begin; mask && i < end; i++)
            fill_mask(mask, i, p->mask_of_rest);
        return SDX_OK;
    }
    if (!(ratio >= 0 && ratio < 1))
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "Dropout: ratio %g is not in [0, 1)", ratio);
    struct twister twister;
    twister_seed(&twister, p->has_seed ? p->seed : (uint32_t)sdx_clock_ns());
    float scale = (float)(1.0 / (1.0 - ratio));
    for (int64_t i = 0; i < in->count; i++) {
        bool kept = twister_uniform(&twister) >= ratio;
        double value = sdx_load_f64(in->dtype, in->data, i);
        if (out) sdx_store_f64(out->dtype, out->data, i, (kept ? value : value * 0) * scale);
        if (mask) fill_mask(mask, i, kept);
    }
    return SDX_OK;
}

enum sdx_status sdx_dropout_prepare(struct sdx_prepare *px)
{
    struct dropout *p = SDX_PREPARE_NEW(px, struct dropout);
    if (!p) return px->cx->error.status;
    const struct sdx_ir_attr *seed = sdx_ir_attr(px->node, "seed");
    p->has_seed = seed != NULL;
    p->seed = seed ? (uint32_t)seed->i : 0;
    p->ratio = sdx_ir_attr_float(px->node, "ratio", 0.5f);
    p->has_ratio_input = sdx_prepare_has(px, 1);
    p->mask_of_rest = px->opset >= 12 || px->opset < 7;
    p->always_trains = px->opset < 7 && sdx_ir_attr_int(px->node, "is_test", 0) == 0;
    p->may_train = p->always_trains;
    if (sdx_prepare_has(px, 2)) {
        const struct sdx_tensor *mode = sdx_prepare_value(px, 2);
        p->may_train = !mode || sdx_load_i64(SDX_BOOL, mode->data, 0) != 0;
    }
    int64_t count = px->in[0]->count, most = (count + 63) / 64;
    int64_t parts = p->may_train ? 1 : sdx_prepare_parts((double)count, 32768, most ? most : 1);
    return sdx_prepare_step(px, "dropout", run_dropout, p, parts, 0);
}

enum sdx_status sdx_dropout_infer(struct sdx_infer *ix)
{
    sdx_infer_copy(ix, 0, 0);
    if (ix->count_out < 2) return SDX_OK;
    sdx_infer_copy(ix, 1, 0);
    if (ix->opset < 10) return SDX_OK;
    sdx_infer_set_dtype(ix, 1, SDX_BOOL);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    return dims ? sdx_infer_set_dims(ix, 1, sdx_infer_rank(ix, 0), dims) : SDX_OK;
}
