/* SPDX-License-Identifier: Apache-2.0
 * Logical operators and comparisons: two operands with broadcasting, a bool result. */
#include "kernels/elements.h"
#include "ops/loops.h"
#include "ops/op.h"

/* Types few comparisons have. */
#define COMPARE(op, sign)                                                                          \
    SDX_LOOP_BINARY(op##_f64, double, double, uint8_t, x sign y)                                   \
    SDX_LOOP_BINARY(op##_u8, uint8_t, uint8_t, uint8_t, x sign y)                                  \
    SDX_LOOP_BINARY(op##_u16, uint16_t, uint16_t, uint8_t, x sign y)                               \
    SDX_LOOP_BINARY(op##_u32, uint32_t, uint32_t, uint8_t, x sign y)                               \
    SDX_LOOP_BINARY(op##_u64, uint64_t, uint64_t, uint8_t, x sign y)                               \
    SDX_LOOP_BINARY(op##_i8, int8_t, int8_t, uint8_t, x sign y)                                    \
    SDX_LOOP_BINARY(op##_i16, int16_t, int16_t, uint8_t, x sign y)
COMPARE(less, <)
COMPARE(less_equal, <=)
SDX_LOOP_BINARY(equal_f64, double, double, uint8_t, x == y)
SDX_LOOP_BINARY(equal_string, struct sdx_str, struct sdx_str, uint8_t, sdx_str_equal(x, y))

/* A kernel of elements.h by its place there, or a loop of this file. */
struct way {
    size_t kernel; /* offset in struct sdx_elements */
    uint8_t size;  /* of an element; 0: a loop */
    bool is_not;   /* the contrary of b, a */
    sdx_nest_fn *loop;
};
#define ELEMENT(name, bytes)                                                                       \
    {                                                                                              \
        .kernel = offsetof(struct sdx_elements, name), .size = bytes                               \
    }
#define LOOP(name)                                                                                 \
    {                                                                                              \
        .loop = name                                                                               \
    }
#define ORDER(op)                                                                                  \
    [SDX_F32] = ELEMENT(f32_##op, 4), [SDX_F64] = LOOP(op##_f64), [SDX_U8] = LOOP(op##_u8),        \
    [SDX_U16] = LOOP(op##_u16), [SDX_U32] = LOOP(op##_u32), [SDX_U64] = LOOP(op##_u64),            \
    [SDX_I8] = LOOP(op##_i8), [SDX_I16] = LOOP(op##_i16)

static const struct way and_ways[] = {[SDX_BOOL] = ELEMENT(bool_and, 1)};
static const struct way or_ways[] = {[SDX_BOOL] = ELEMENT(bool_or, 1)};
static const struct way xor_ways[] = {[SDX_BOOL] = ELEMENT(bool_xor, 1)};
static const struct way equal_ways[] = {
    [SDX_F32] = ELEMENT(f32_equal, 4), [SDX_BOOL] = ELEMENT(bool_equal, 1),
    [SDX_U8] = ELEMENT(equal_1, 1),    [SDX_I8] = ELEMENT(equal_1, 1),
    [SDX_U16] = ELEMENT(equal_2, 2),   [SDX_I16] = ELEMENT(equal_2, 2),
    [SDX_U32] = ELEMENT(equal_4, 4),   [SDX_I32] = ELEMENT(equal_4, 4),
    [SDX_U64] = ELEMENT(equal_8, 8),   [SDX_I64] = ELEMENT(equal_8, 8),
    [SDX_F64] = LOOP(equal_f64),       [SDX_STRING] = LOOP(equal_string)};
static const struct way less_ways[] = {
    ORDER(less), [SDX_I32] = ELEMENT(i32_less, 4), [SDX_I64] = ELEMENT(i64_less, 8)};
static const struct way less_equal_ways[] = {
    ORDER(less_equal), [SDX_I32] = {offsetof(struct sdx_elements, i32_less), 4, .is_not = true},
    [SDX_I64] = {offsetof(struct sdx_elements, i64_less), 8, .is_not = true}};

static const struct {
    const char *name;
    const struct way *ways;
    int count;
    bool swaps; /* a > b is b < a */
} defs[] = {
    {"And", and_ways, SDX_COUNT_OF(and_ways), false},
    {"Or", or_ways, SDX_COUNT_OF(or_ways), false},
    {"Xor", xor_ways, SDX_COUNT_OF(xor_ways), false},
    {"Equal", equal_ways, SDX_COUNT_OF(equal_ways), false},
    {"Less", less_ways, SDX_COUNT_OF(less_ways), false},
    {"Greater", less_ways, SDX_COUNT_OF(less_ways), true},
    {"LessOrEqual", less_equal_ways, SDX_COUNT_OF(less_equal_ways), false},
    {"GreaterOrEqual", less_equal_ways, SDX_COUNT_OF(less_equal_ways), true},
};

struct compare {
    struct sdx_nest_job job;
    struct way way;
    bool swaps;
};

static bool compare(const void *arg, const void *const *in, const int64_t *step, void *out,
                    int64_t n)
{
    const struct compare *c = arg;
    const bool first = c->swaps != c->way.is_not;
    const void *const pair[] = {in[first], in[!first]};
    const int64_t steps[] = {step[first], step[!first]};
    if (!c->way.size) return c->way.loop(NULL, pair, steps, out, n);
    const uint8_t sizes[] = {c->way.size, c->way.size, 1};
    sdx_element_fn *const *fn =
        (sdx_element_fn *const *)(const void *)((const char *)sdx_elements() + c->way.kernel);
    sdx_element_run(*fn, NULL, 2, sizes, pair, steps, out, n);
    if (c->way.is_not)
        sdx_element_run(sdx_elements()->bool_not, NULL, 1, (const uint8_t[]){1, 1},
                        &(const void *){out}, &(int64_t){1}, out, n);
    return true;
}

static enum sdx_status prepare(struct sdx_prepare *px)
{
    struct compare *c = SDX_PREPARE_NEW(px, struct compare);
    if (!c) return px->cx->error.status;
    int dtype = px->in[0]->dtype;
    for (int i = 0; i < SDX_COUNT_OF(defs); i++) {
        if (!sdx_str_is(px->node->op_type, defs[i].name)) continue;
        if (dtype >= defs[i].count || px->in[1]->dtype != dtype) break;
        c->way = defs[i].ways[dtype];
        c->swaps = defs[i].swaps;
        c->job.fn = compare;
        c->job.arg = c;
        if (!c->way.size && !c->way.loop) break;
        SDX_TRY(sdx_nest_binary(px, &c->job.nest));
        double weight = dtype == SDX_STRING ? 16 : 1;
        return sdx_nest_add(px, defs[i].name, &c->job, weight, 2, px->in, px->out[0]);
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

/* Of lists of lengths, as exporters ask them of Expand's: a length is no number below 0. */
static struct sdx_int equal_int(struct sdx_infer *ix, const void *arg, const struct sdx_int *at)
{
    const int64_t a = at[0].sym, b = at[1].sym;
    (void)ix, (void)arg;
    if (a == b && a != -1) return (struct sdx_int){a || at[0].v == at[1].v, 0};
    const bool is_open = (a && b) || a == -1 || b == -1 || at[a != 0].v >= 0;
    return (struct sdx_int){0, is_open ? -1 : 0};
}

static enum sdx_status infer_equal(struct sdx_infer *ix)
{
    struct sdx_ints lists[2];
    SDX_TRY(infer(ix));
    if (!sdx_infer_ints_to_pass(ix, 0, &lists[0]) || !sdx_infer_ints_to_pass(ix, 1, &lists[1]))
        return SDX_OK;
    return sdx_infer_map_ints(ix, lists, 2, NULL, equal_int);
}

#define BOTH (SDX_OP_INPLACE(0) | SDX_OP_INPLACE(1))
static const struct sdx_op ops[] = {
    {"And", 1, 0, infer, KERNEL(prepare), .flags = BOTH},
    {"Or", 1, 0, infer, KERNEL(prepare), .flags = BOTH},
    {"Xor", 1, 0, infer, KERNEL(prepare), .flags = BOTH},
    {"Equal", 1, 0, infer_equal, KERNEL(prepare), .flags = SDX_OP_VIA_F32},
    {"Less", 1, 0, infer, KERNEL(prepare), .flags = SDX_OP_VIA_F32},
    {"Greater", 1, 0, infer, KERNEL(prepare), .flags = SDX_OP_VIA_F32},
    {"LessOrEqual", 12, 0, infer, KERNEL(prepare), .flags = SDX_OP_VIA_F32},
    {"GreaterOrEqual", 12, 0, infer, KERNEL(prepare), .flags = SDX_OP_VIA_F32},
};
const struct sdx_op_family sdx_ops_logic_compare = FAMILY("", ops);
