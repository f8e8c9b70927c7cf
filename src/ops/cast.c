/* SPDX-License-Identifier: Apache-2.0
 * Cast, CastLike and BitCast. Numbers become text as NumPy writes them: the shortest digits that
 * read back as the same number. */
#include <math.h>
#include <stdio.h>

#include "kernels/elements.h"
#include "kernels/vec.h"
#include "ops/cast.h"
#include "ops/op.h"
#include "tensor/convert.h"

struct cast {
    int from, to;
    bool saturate;
    int round; /* of e8m0: see enum round */
    int64_t count;
};
enum round { ROUND_UP, ROUND_DOWN, ROUND_NEAREST };

/* ---- numbers to text ---- */

static double as_dtype(int dtype, double x)
{
    uint64_t cell = 0;
    sdx_convert(dtype, &cell, 0, SDX_F64, &x, 0, 1, true);
    return sdx_load_f64(dtype, &cell, 0);
}

/* Fewest digits that read back as x (finite, not 0) in `dtype`: digits[0] before the point, times
 * 10^exponent. The text of snprintf is taken apart, so that the locale's point does not matter. */
static int shortest_digits(int dtype, double x, char *digits, int *exponent)
{
    for (int precision = 1;; precision++) {
        char raw[64], plain[80];
        snprintf(raw, sizeof raw, "%.*e", precision - 1, fabs(x));
        int count = 0;
        const char *at = raw;
        for (; *at && *at != 'e'; at++)
            if (*at >= '0' && *at <= '9') digits[count++] = *at;
        int64_t power = 0;
        const char *start = *at ? at + 1 + (at[1] == '+') : at;
        if (!sdx_parse_i64(sdx_str(start), &power)) power = 0;
        *exponent = (int)power;
        snprintf(plain, sizeof plain, "%.*se%d", count, digits, *exponent - count + 1);
        double back = 0;
        if (precision >= 17 ||
            (sdx_parse_f64(sdx_str(plain), &back) && as_dtype(dtype, back) == fabs(x)))
            return count;
    }
}

static int format_float(int dtype, double x, char *text)
{
    if (isnan(x)) return snprintf(text, SDX_CAST_TEXT, "nan");
    if (isinf(x)) return snprintf(text, SDX_CAST_TEXT, x < 0 ? "-inf" : "inf");
    const char *sign = signbit(x) ? "-" : "";
    if (x == 0) return snprintf(text, SDX_CAST_TEXT, "%s0.0", sign);
    char digits[64];
    int exponent = 0, count = shortest_digits(dtype, x, digits, &exponent);
    while (count > 1 && digits[count - 1] == '0')
        count--;
    int large = dtype == SDX_F64 ? 16 : dtype == SDX_F16 ? 3 : 6; /* NumPy 2.4's limits */
    if (fabs(x) < 1e-4 || exponent >= large) {
        if (count == 1)
            return snprintf(text, SDX_CAST_TEXT, "%s%ce%+03d", sign, digits[0], exponent);
        return snprintf(text, SDX_CAST_TEXT, "%s%c.%.*se%+03d", sign, digits[0], count - 1,
                        digits + 1, exponent);
    }
    if (exponent < 0)
        return snprintf(text, SDX_CAST_TEXT, "%s0.%.*s%.*s", sign, -exponent - 1, "0000", count,
                        digits);
    if (count <= exponent + 1)
        return snprintf(text, SDX_CAST_TEXT, "%s%.*s%.*s.0", sign, count, digits,
                        exponent + 1 - count, "0000000000000000");
    return snprintf(text, SDX_CAST_TEXT, "%s%.*s.%.*s", sign, exponent + 1, digits,
                    count - exponent - 1, digits + exponent + 1);
}

int sdx_cast_format(int dtype, const void *data, int64_t i, char *text)
{
    if (dtype == SDX_BOOL)
        return snprintf(text, SDX_CAST_TEXT, "%s", sdx_load_i64(dtype, data, i) ? "True" : "False");
    if (dtype == SDX_U64)
        return snprintf(text, SDX_CAST_TEXT, "%llu", ((const unsigned long long *)data)[i]);
    if (sdx_dtype_is_integer(dtype))
        return snprintf(text, SDX_CAST_TEXT, "%lld", (long long)sdx_load_i64(dtype, data, i));
    return format_float(dtype, sdx_load_f64(dtype, data, i), text);
}

static enum sdx_status run_to_text(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct cast *c = step->params;
    const struct sdx_tensor *in = step->in[0];
    if (c->from == SDX_STRING)
        return sdx_exec_output_strings(x, step, 0, in->rank, in->dims, in->data);
    struct sdx_str *texts = x->scratch;
    char *bytes = (char *)(texts + c->count);
    for (int64_t i = 0; i < c->count; i++) {
        char *text = bytes + i * SDX_CAST_TEXT;
        int length = sdx_cast_format(c->from, in->data, i, text);
        texts[i] = (struct sdx_str){text, (size_t)length};
    }
    return sdx_exec_output_strings(x, step, 0, in->rank, in->dims, texts);
}

/* ---- text to numbers ---- */

static struct sdx_str trimmed(struct sdx_str s)
{
    while (s.len && (s.ptr[0] == ' ' || (s.ptr[0] >= '\t' && s.ptr[0] <= '\r')))
        s.ptr++, s.len--;
    while (s.len &&
           (s.ptr[s.len - 1] == ' ' || (s.ptr[s.len - 1] >= '\t' && s.ptr[s.len - 1] <= '\r')))
        s.len--;
    if (s.len > 1 && s.ptr[0] == '+' && s.ptr[1] != '-' && s.ptr[1] != '+') s.ptr++, s.len--;
    return s;
}

static bool is_word(struct sdx_str s, const char *lower)
{
    size_t i = 0;
    for (; i < s.len && lower[i]; i++)
        if ((s.ptr[i] | 0x20) != lower[i]) return false;
    return i == s.len && !lower[i];
}

static bool parse_float(struct sdx_str s, double *out)
{
    bool negative = s.len > 1 && s.ptr[0] == '-';
    struct sdx_str rest = negative ? (struct sdx_str){s.ptr + 1, s.len - 1} : s;
    if (is_word(rest, "nan")) return *out = NAN, true;
    if (is_word(rest, "inf") || is_word(rest, "infinity"))
        return *out = negative ? -INFINITY : INFINITY, true;
    return sdx_parse_f64(s, out);
}

static bool parse_u64(struct sdx_str s, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') return false;
        uint64_t digit = (uint64_t)(s.ptr[i] - '0');
        if (v > (UINT64_MAX - digit) / 10) return false;
        v = v * 10 + digit;
    }
    *out = v;
    return s.len > 0;
}

bool sdx_cast_parse(int dtype, struct sdx_str text, void *out, int64_t i)
{
    struct sdx_str s = trimmed(text);
    int64_t number = 0;
    uint64_t large = 0;
    double real = 0;
    if (dtype == SDX_BOOL && (is_word(s, "true") || is_word(s, "false"))) {
        sdx_store_i64(dtype, out, i, is_word(s, "true"));
        return true;
    }
    if (sdx_dtype_is_integer(dtype)) {
        if (sdx_parse_i64(s, &number)) return sdx_store_i64(dtype, out, i, number), true;
        if (parse_u64(s, &large)) return sdx_store_i64(dtype, out, i, (int64_t)large), true;
    }
    if (!parse_float(s, &real)) return false;
    if (dtype == SDX_F32 || dtype == SDX_F64 || !sdx_dtype_is_float(dtype))
        sdx_store_f64(dtype, out, i, real);
    else
        sdx_convert(dtype, out, i, SDX_F64, &real, 0, 1, true);
    return true;
}

static enum sdx_status run_from_text(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct cast *c = step->params;
    const struct sdx_str *texts = step->in[0]->data;
    for (int64_t i = 0; i < c->count; i++)
        if (!sdx_cast_parse(c->to, texts[i], step->out[0]->data, i))
            return SDX_FAIL(x->cx, SDX_RUN_FAILED, "Cast: \"%.*s\" is not a number",
                            SDX_STR_ARG(texts[i]));
    return SDX_OK;
}

/* ---- numbers to numbers ---- */

/* The exponent alone: 2^(e - 127). Signs are dropped, infinities and NaN become NaN. */
static uint8_t to_e8m0(float value, int round, bool saturate)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    uint32_t exponent = (bits >> 23) & 0xff, fraction = bits & 0x7fffff;
    if (exponent == 0xff) return 0xff;
    bool up = round == ROUND_UP && fraction > 0;
    if (round == ROUND_NEAREST) up = fraction > 0x400000 || (fraction == 0x400000 && exponent > 0);
    if (up && !(saturate && exponent == 0xfe)) exponent++;
    return (uint8_t)exponent;
}

/* The pairs that graphs use most. false: not one of them. */
static bool cast_kernel(const struct cast *c, const void *in, void *out, int64_t n)
{
    const struct sdx_vec *vec = sdx_vec();
    const struct sdx_elements *elements = sdx_elements();
    static const float as_it_is[] = {0, 1};
    sdx_element_fn *fn = NULL;
#define PAIR(a, b) (SDX_##a * 256 + SDX_##b)
    switch (c->from * 256 + c->to) {
    case PAIR(F32, F16): return vec->f32_to_f16(in, out, (size_t)n), true;
    case PAIR(F32, BF16): return vec->f32_to_bf16(in, out, (size_t)n), true;
    case PAIR(F16, F32): return vec->f16_to_f32(in, out, (size_t)n), true;
    case PAIR(BF16, F32): return vec->bf16_to_f32(in, out, (size_t)n), true;
    case PAIR(U8, F32): return vec->u8_to_f32(in, 1, 0, out, (size_t)n), true;
    case PAIR(I8, F32): return vec->s8_to_f32(in, 1, 0, out, (size_t)n), true;
    case PAIR(BOOL, F32): fn = elements->bool_f32; break;
    case PAIR(BOOL, I32): fn = elements->bool_i32; break;
    case PAIR(BOOL, I64): fn = elements->bool_i64; break;
    case PAIR(U8, I64): fn = elements->u8_i64; break;
    case PAIR(U16, F32): fn = elements->u16_scaled; break;
    case PAIR(I16, F32): fn = elements->i16_scaled; break;
    case PAIR(I32, U8):
    case PAIR(I32, I8): fn = elements->i32_u8; break;
    case PAIR(I32, F32): fn = elements->i32_f32; break;
    case PAIR(I32, I64): fn = elements->i32_i64; break;
    case PAIR(I64, F32): fn = elements->i64_f32; break;
    case PAIR(I64, I32): fn = elements->i64_i32; break;
    case PAIR(I64, BOOL): fn = elements->i64_bool; break;
    case PAIR(F32, U8):
    case PAIR(F32, I8): fn = elements->f32_u8; break;
    case PAIR(F32, I32): fn = elements->f32_i32; break;
    case PAIR(F32, I64): fn = elements->f32_i64; break;
    case PAIR(F32, BOOL): fn = elements->f32_bool; break;
    case PAIR(F32, F64): fn = elements->f32_f64; break;
    case PAIR(F64, F32): fn = elements->f64_f32; break;
    default: return false;
    }
#undef PAIR
    const uint8_t sizes[] = {(uint8_t)(sdx_dtype_bits((sdx_dtype)c->from) / 8),
                             (uint8_t)(sdx_dtype_bits((sdx_dtype)c->to) / 8)};
    sdx_element_run(fn, as_it_is, 1, sizes, &in, &(int64_t){1}, out, n);
    return true;
}

/* The type between two kernels that do the work of one that is not there: f32 has all numbers of 8
 * and 16 bits, i32 the low bits of an i64. SDX_DTYPE_NONE: there is none. */
static int type_between(const struct cast *c)
{
    switch (c->from) {
    case SDX_I64: return c->to == SDX_U8 || c->to == SDX_I8 ? SDX_I32 : SDX_DTYPE_NONE;
    case SDX_U8:
    case SDX_I8:
    case SDX_U16:
    case SDX_I16:
    case SDX_F16:
    case SDX_BF16: return SDX_F32;
    default: return SDX_DTYPE_NONE;
    }
}
static bool cast_in_two(const struct cast *c, const char *in, char *out, int64_t n)
{
    enum { SOME = 512 };
    const int between = type_between(c);
    const struct cast first = {.from = c->from, .to = between};
    const struct cast second = {.from = between, .to = c->to};
    const int64_t size_in = (int64_t)sdx_dtype_bits((sdx_dtype)c->from) / 8;
    const int64_t size_out = (int64_t)sdx_dtype_bits((sdx_dtype)c->to) / 8;
    float tile[SOME];
    if (between == SDX_DTYPE_NONE || !cast_kernel(&second, tile, out, 0)) return false;
    for (int64_t at = 0; at < n; at += SOME) {
        const int64_t some = n - at < SOME ? n - at : SOME;
        (void)cast_kernel(&first, in + at * size_in, tile, some);
        (void)cast_kernel(&second, tile, out + at * size_out, some);
    }
    return true;
}

static void run_cast(const struct sdx_step *step, const void *const *operands, void *out,
                     int64_t begin, int64_t end, void *scratch)
{
    (void)scratch;
    const struct cast *c = step->params;
    const void *in = operands[0];
    size_t n = (size_t)(end - begin);
    if (c->from == c->to) {
        if (in != out) memcpy(out, in, (n * sdx_dtype_bits(c->from) + 7) / 8);
    } else if (cast_kernel(c, in, out, end - begin) || cast_in_two(c, in, out, end - begin)) {
        return;
    } else if (c->to == SDX_F8E8M0) {
        for (int64_t i = 0; i < end - begin; i++)
            ((uint8_t *)out)[i] =
                to_e8m0((float)sdx_load_f64(c->from, in, i), c->round, c->saturate);
    } else {
        sdx_convert(c->to, out, 0, c->from, in, 0, end - begin, c->saturate);
    }
}

static enum sdx_status prepare_cast(struct sdx_prepare *px)
{
    struct cast *c = SDX_PREPARE_NEW(px, struct cast);
    if (!c) return px->cx->error.status;
    c->from = px->in[0]->dtype;
    c->to = px->out[0]->dtype;
    c->count = px->in[0]->count;
    c->saturate = sdx_ir_attr_int(px->node, "saturate", 1) != 0;
    struct sdx_str round = sdx_ir_attr_str(px->node, "round_mode", "up");
    c->round = sdx_str_is(round, "nearest") ? ROUND_NEAREST
               : sdx_str_is(round, "down")  ? ROUND_DOWN
                                            : ROUND_UP;
    if (c->round == ROUND_UP && !sdx_str_is(round, "up"))
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "%.*s: round_mode \"%.*s\"",
                        SDX_STR_ARG(px->node->op_type), SDX_STR_ARG(round));
    if (sdx_dtype_is_complex(c->from) || sdx_dtype_is_complex(c->to))
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: complex numbers",
                        SDX_STR_ARG(px->node->op_type));
    struct sdx_tensor *in = px->in[0], *out = px->out[0];
    if (c->to == SDX_STRING) {
        size_t bytes = 0;
        if (!sdx_mul_size((size_t)c->count, SDX_CAST_TEXT + sizeof(struct sdx_str), &bytes))
            return SDX_FAIL_MEMORY(px->cx);
        return sdx_prepare_step_on(px, "cast to text", run_to_text, c, 1, bytes, 1, &in, 1, &out);
    }
    if (c->from == SDX_STRING)
        return sdx_prepare_step_on(px, "cast from text", run_from_text, c, 1, 0, 1, &in, 1, &out);
    const struct sdx_tiles tiles = {.run = run_cast, .count = c->count, .weight = 2, .full = 1};
    return sdx_prepare_tiles(px, "cast", &tiles, c, 0, 1, &in, out);
}

/* ---- BitCast ---- */

static enum sdx_status run_bit_cast(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    const struct sdx_tensor *in = step->in[0];
    if (in->data != step->out[0]->data && in->bytes)
        memcpy(step->out[0]->data, in->data, in->bytes);
    return SDX_OK;
}

static enum sdx_status prepare_bit_cast(struct sdx_prepare *px)
{
    return sdx_prepare_step(px, "bit cast", run_bit_cast, NULL, 1, 0);
}

/* ---- inference ---- */

/* Of the first version, where `to` was a name: "FLOAT", "INT64", ... */
static int dtype_named(struct sdx_str name)
{
    for (int dtype = SDX_F32; dtype <= SDX_DTYPE_LAST; dtype++)
        if (is_word(name, sdx_dtype_name((sdx_dtype)dtype))) return dtype;
    return SDX_DTYPE_NONE;
}

static enum sdx_status attr_dtype(struct sdx_infer *ix, int *dtype)
{
    const struct sdx_ir_attr *to = sdx_ir_attr(ix->node, "to");
    if (!to)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: no attribute \"to\"",
                        SDX_STR_ARG(ix->node->op_type));
    *dtype = ix->opset < 6                                                   ? dtype_named(to->s)
             : sdx_dtype_is_valid(to->i < 0 || to->i > 255 ? 0 : (int)to->i) ? (int)to->i
                                                                             : SDX_DTYPE_NONE;
    if (*dtype == SDX_DTYPE_NONE)
        return SDX_FAIL(ix->cx, SDX_NOT_SUPPORTED, "%.*s: element type %lld",
                        SDX_STR_ARG(ix->node->op_type), (long long)to->i);
    return SDX_OK;
}

static enum sdx_status infer_to(struct sdx_infer *ix, int dtype)
{
    sdx_infer_set_dtype(ix, 0, dtype);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    return dims ? sdx_infer_set_dims(ix, 0, sdx_infer_rank(ix, 0), dims) : SDX_OK;
}

/* Small integers keep their content; other targets could change it. */
static enum sdx_status cast_ints(struct sdx_infer *ix, int dtype)
{
    struct sdx_ints ints;
    if ((dtype != SDX_I64 && dtype != SDX_I32) || !sdx_dtype_is_integer(sdx_infer_dtype(ix, 0)) ||
        !sdx_infer_ints_to_pass(ix, 0, &ints))
        return SDX_OK;
    for (int64_t i = 0; dtype == SDX_I32 && i < ints.count; i++)
        if (!(ints.sym && ints.sym[i]) && ints.v[i] != (int32_t)ints.v[i]) return SDX_OK;
    return sdx_infer_set_ints(ix, 0, ints.rank, ints.count, ints.v, ints.sym);
}

static enum sdx_status infer_cast(struct sdx_infer *ix)
{
    int dtype = SDX_DTYPE_NONE;
    SDX_TRY(attr_dtype(ix, &dtype));
    SDX_TRY(infer_to(ix, dtype));
    return cast_ints(ix, dtype);
}

static enum sdx_status infer_cast_like(struct sdx_infer *ix)
{
    int dtype = sdx_infer_dtype(ix, 1);
    SDX_TRY(infer_to(ix, dtype));
    return cast_ints(ix, dtype);
}

static enum sdx_status infer_bit_cast(struct sdx_infer *ix)
{
    int dtype = SDX_DTYPE_NONE, from = sdx_infer_dtype(ix, 0);
    SDX_TRY(attr_dtype(ix, &dtype));
    if (dtype == SDX_STRING || from == SDX_STRING)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "BitCast: strings have no bits to keep");
    if (from != SDX_DTYPE_NONE &&
        sdx_dtype_bits((sdx_dtype)from) != sdx_dtype_bits((sdx_dtype)dtype))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "BitCast: %s has %d bits, %s has %d",
                        sdx_dtype_name((sdx_dtype)from), sdx_dtype_bits((sdx_dtype)from),
                        sdx_dtype_name((sdx_dtype)dtype), sdx_dtype_bits((sdx_dtype)dtype));
    return infer_to(ix, dtype);
}

static const struct sdx_op ops[] = {
    {"Cast", 1, 0, infer_cast, KERNEL(prepare_cast), .flags = SDX_OP_INPLACE(0),
     .note = "not to the 6-bit floats of opset 28"},
    {"CastLike", 15, 0, infer_cast_like, KERNEL(prepare_cast), .flags = SDX_OP_INPLACE(0)},
    {"BitCast", 26, 0, infer_bit_cast, KERNEL(prepare_bit_cast), .flags = SDX_OP_INPLACE(0)},
};
const struct sdx_op_family sdx_ops_cast = FAMILY("", ops);
