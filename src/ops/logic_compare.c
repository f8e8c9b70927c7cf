/* SPDX-License-Identifier: Apache-2.0
 * Logical operators and comparisons: two operands with broadcasting, a bool result. */
#include "ops/loops.h"
#include "ops/op.h"

#define COMPARE(op, sign)                                                                          \
    SDX_LOOP_BINARY(op##_f32, float, float, uint8_t, x sign y)                                     \
    SDX_LOOP_BINARY(op##_f64, double, double, uint8_t, x sign y)                                   \
    SDX_LOOP_BINARY(op##_u8, uint8_t, uint8_t, uint8_t, x sign y)                                  \
    SDX_LOOP_BINARY(op##_u16, uint16_t, uint16_t, uint8_t, x sign y)                               \
    SDX_LOOP_BINARY(op##_u32, uint32_t, uint32_t, uint8_t, x sign y)                               \
    SDX_LOOP_BINARY(op##_u64, uint64_t, uint64_t, uint8_t, x sign y)                               \
    SDX_LOOP_BINARY(op##_i8, int8_t, int8_t, uint8_t, x sign y)                                    \
    SDX_LOOP_BINARY(op##_i16, int16_t, int16_t, uint8_t, x sign y)                                 \
    SDX_LOOP_BINARY(op##_i32, int32_t, int32_t, uint8_t, x sign y)                                 \
    SDX_LOOP_BINARY(op##_i64, int64_t, int64_t, uint8_t, x sign y)
COMPARE(equal, ==)
COMPARE(less, <)
COMPARE(greater, >)
COMPARE(less_equal, <=)
COMPARE(greater_equal, >=)
SDX_LOOP_BINARY(equal_string, struct sdx_str, struct sdx_str, uint8_t, sdx_str_equal(x, y))
SDX_LOOP_BINARY(equal_bool, uint8_t, uint8_t, uint8_t, !x == !y)
SDX_LOOP_BINARY(and_bool, uint8_t, uint8_t, uint8_t, x &&y)
SDX_LOOP_BINARY(or_bool, uint8_t, uint8_t, uint8_t, x || y)
SDX_LOOP_BINARY(xor_bool, uint8_t, uint8_t, uint8_t, !x != !y)

#define NUMBERS(op) [SDX_F32] = op##_f32, [SDX_F64] = op##_f64, SDX_LOOP_INT_ROWS(op)

static const struct {
    const char *name;
    sdx_nest_fn *fns[SDX_LOOP_TYPES];
} defs[] = {
    {"And", {[SDX_BOOL] = and_bool}},
    {"Or", {[SDX_BOOL] = or_bool}},
    {"Xor", {[SDX_BOOL] = xor_bool}},
    {"Equal", {NUMBERS(equal), [SDX_BOOL] = equal_bool, [SDX_STRING] = equal_string}},
    {"Less", {NUMBERS(less)}},
    {"Greater", {NUMBERS(greater)}},
    {"LessOrEqual", {NUMBERS(less_equal)}},
    {"GreaterOrEqual", {NUMBERS(greater_equal)}},
};

static enum sdx_status prepare(struct sdx_prepare *px)
{
    struct sdx_nest_job *job = SDX_PREPARE_NEW(px, struct sdx_nest_job);
    if (!job) return px->cx->error.status;
    int dtype = px->in[0]->dtype;
    for (int i = 0; i < SDX_COUNT_OF(defs); i++) {
        if (!sdx_str_is(px->node->op_type, defs[i].name)) continue;
        job->fn = defs[i].fns[dtype];
        if (!job->fn || px->in[1]->dtype != dtype) break;
        SDX_TRY(sdx_nest_binary(px, &job->nest));
        double weight = dtype == SDX_STRING ? 16 : 1;
        return sdx_nest_add(px, defs[i].name, job, weight, 2, px->in, px->out[0]);
    }
    return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element types %s and %s",
                    SDX_STR_ARG(px->node->op_type), sdx_dtype_name(dtype),
                    sdx_dtype_name(px->in[1]->dtype));
}

static enum sdx_status infer(struct sdx_infer *ix)
{
    sdx_infer_set_dtype(ix, 0, SDX_BOOL);
    return sdx_nest_infer_shape(ix);
}

#define BOTH (SDX_OP_INPLACE(0) | SDX_OP_INPLACE(1))
static const struct sdx_op ops[] = {
    {"And", 1, 0, infer, KERNEL(prepare), .flags = BOTH},
    {"Or", 1, 0, infer, KERNEL(prepare), .flags = BOTH},
    {"Xor", 1, 0, infer, KERNEL(prepare), .flags = BOTH},
    {"Equal", 1, 0, infer, KERNEL(prepare), .flags = SDX_OP_VIA_F32},
    {"Less", 1, 0, infer, KERNEL(prepare), .flags = SDX_OP_VIA_F32},
    {"Greater", 1, 0, infer, KERNEL(prepare), .flags = SDX_OP_VIA_F32},
    {"LessOrEqual", 12, 0, infer, KERNEL(prepare), .flags = SDX_OP_VIA_F32},
    {"GreaterOrEqual", 12, 0, infer, KERNEL(prepare), .flags = SDX_OP_VIA_F32},
};
const struct sdx_op_family sdx_ops_logic_compare = FAMILY("", ops);
