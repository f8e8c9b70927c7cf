/* SPDX-License-Identifier: Apache-2.0
 * Broadcasting nests against index arithmetic: random shapes, random ranges, all element sizes. */
#include "unit.h"

#include "ops/nest.h"

static unsigned seed = 7;
static int pick(int n)
{
    seed = seed * 1103515245u + 12345u;
    return (int)((seed >> 16) % (unsigned)n);
}

enum { MOST = 60000 };
static uint64_t data[3][MOST];
static uint64_t got[MOST];

/* r = a + 3 b + 5 c for elements of `size` bytes, and a check that each element is met once */
struct mix {
    int size, count_in;
    int64_t met;
};

static uint64_t load(const void *p, int64_t i, int size)
{
    uint64_t v = 0;
    memcpy(&v, (const char *)p + i * size, (size_t)size);
    return v;
}

static bool mix(const void *arg, const void *const *in, const int64_t *step, void *out, int64_t n)
{
    struct mix *m = (struct mix *)(uintptr_t)arg;
    for (int64_t j = 0; j < n; j++) {
        uint64_t v = 0, factor = 1;
        for (int i = 0; i < m->count_in; i++, factor += 2)
            v += factor * load(in[i], j * step[i], m->size);
        memcpy((char *)out + j * m->size, &v, (size_t)m->size);
    }
    m->met += n;
    return true;
}

static struct sdx_tensor tensor_of(int dtype, int rank, const int64_t *dims)
{
    struct sdx_tensor t = {.dims = dims, .rank = rank, .dtype = (uint8_t)dtype, .count = 1};
    for (int d = 0; d < rank; d++)
        t.count *= dims[d];
    return t;
}

/* The element of operand i that belongs to element `at` of the output. */
static int64_t source_of(const struct sdx_tensor *out, const struct sdx_tensor *in, int64_t at)
{
    int64_t offset = 0, stride = 1;
    for (int d = out->rank - 1, e = in->rank - 1; d >= 0; d--, e--) {
        int64_t index = at % out->dims[d];
        at /= out->dims[d];
        if (e < 0) continue;
        if (in->dims[e] > 1) offset += index * stride;
        stride *= in->dims[e];
    }
    return offset;
}

static void check_one(struct sdx_prepare *px, int dtype, int size)
{
    int64_t dims[6], in_dims[3][6], count = 1;
    int rank = pick(6), count_in = 1 + pick(3);
    for (int d = 0; d < rank; d++) {
        dims[d] = pick(3) == 0 ? 1 + pick(40) : 1 + pick(5);
        while (count * dims[d] > MOST)
            dims[d] = 1;
        count *= dims[d];
    }
    struct sdx_tensor out = tensor_of(dtype, rank, dims), in[3], *operands[3];
    const void *pointers[3];
    for (int i = 0; i < count_in; i++) {
        int lead = pick(4) == 0 ? pick(rank + 1) : 0;
        for (int d = lead; d < rank; d++)
            in_dims[i][d - lead] = pick(3) == 0 ? 1 : dims[d];
        in[i] = tensor_of(dtype, rank - lead, in_dims[i]);
        operands[i] = &in[i];
        pointers[i] = data[i];
    }
    struct sdx_nest nest;
    assert_int_equal(sdx_nest_plain(px, &nest, &out, count_in, operands), SDX_OK);
    static char scratch[SDX_NEST_SCRATCH];
    struct mix m = {size, count_in, 0};
    int parts = 1 + pick(4);
    for (int part = 0; part < parts; part++)
        assert_true(sdx_nest_run(&nest, pointers, got, count * part / parts,
                                 count * (part + 1) / parts, scratch, mix, &m));
    assert_int_equal(m.met, count);
    for (int64_t at = 0; at < count; at++) {
        uint64_t v = 0, factor = 1, mask = size == 8 ? ~0ull : (1ull << (size * 8)) - 1;
        for (int i = 0; i < count_in; i++, factor += 2)
            v += factor * load(data[i], source_of(&out, &in[i], at), size);
        if (load(got, at, size) != (v & mask)) fail_msg("element %lld differs", (long long)at);
    }
}

static void test_random_shapes(void **state)
{
    (void)state;
    struct unit unit;
    struct sdx_arena arena;
    unit_init(&unit);
    sdx_arena_init(&arena, &unit.mem, SDX_MEM_PLAN);
    struct sdx_prepare px = {.cx = &unit.cx, .arena = &arena};
    static const int dtypes[] = {SDX_U8, SDX_U16, SDX_U32, SDX_U64}, sizes[] = {1, 2, 4, 8};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < MOST; j++)
            data[i][j] = (uint64_t)(j + 1) * 0x9e3779b97f4a7c15ull + (uint64_t)i;
    for (int round = 0; round < 1500; round++) {
        check_one(&px, dtypes[round % 4], sizes[round % 4]);
        sdx_arena_reset(&arena);
    }
    sdx_arena_deinit(&arena);
    unit_deinit(&unit);
}

static void test_refusals(void **state)
{
    (void)state;
    struct unit unit;
    struct sdx_arena arena;
    unit_init(&unit);
    sdx_arena_init(&arena, &unit.mem, SDX_MEM_PLAN);
    struct sdx_ir_node node = {.op_type = SDX_STR("Add")};
    struct sdx_prepare px = {.cx = &unit.cx, .arena = &arena, .node = &node};
    struct sdx_tensor out = tensor_of(SDX_F32, 2, (int64_t[]){2, 3});
    struct sdx_tensor wrong = tensor_of(SDX_F32, 1, (int64_t[]){2}), *operand = &wrong;
    struct sdx_nest nest;
    assert_int_equal(sdx_nest_plain(&px, &nest, &out, 1, &operand), SDX_BAD_INPUT);
    assert_contains(unit.cx.error.text, "length 2 of input 0 does not broadcast to 3");
    sdx_context_clear(&unit.cx);
    struct sdx_tensor deep = tensor_of(SDX_F32, 3, (int64_t[]){1, 2, 3});
    operand = &deep;
    assert_int_equal(sdx_nest_plain(&px, &nest, &out, 1, &operand), SDX_BAD_INPUT);
    sdx_arena_deinit(&arena);
    unit_deinit(&unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_shapes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
