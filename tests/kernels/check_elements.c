/* SPDX-License-Identifier: Apache-2.0
 * Checks of elements.h: each kernel through sdx_element_run, on special and random bits, with every
 * operand moving or standing still, against its definition. */
#include <stdint.h>

#include "kernelcheck.h"
#include "kernels/elements.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
enum { MOST = 3 * SDX_ELEMENT_BLOCK + 5 };

static const float floats[] = {0.0f,
                               -0.0f,
                               1.0f,
                               -1.0f,
                               0.5f,
                               -0.5f,
                               255.7f,
                               256.0f,
                               300.5f,
                               -3.7f,
                               INFINITY,
                               -INFINITY,
                               NAN,
                               1e-40f,
                               3e9f,
                               -3e9f,
                               1e19f,
                               -1e19f,
                               2147483648.0f,
                               -2147483648.0f,
                               2147483520.0f,
                               9.2233720e18f,
                               -9.2233720368547758e18f};
static const int64_t wholes[] = {0,
                                 1,
                                 -1,
                                 2,
                                 255,
                                 256,
                                 INT32_MAX,
                                 INT32_MIN,
                                 INT64_MAX,
                                 INT64_MIN,
                                 16777217,
                                 -16777219,
                                 INT64_C(1) << 32,
                                 (INT64_C(1) << 53) + 1,
                                 0x7fffff7fffffffff,
                                 (INT64_C(1) << 50) - 1,
                                 -(INT64_C(1) << 50),
                                 INT64_C(1) << 50};

enum kind { BYTE, BITS, FLOAT, WHOLE, DIVIDEND, DIVISOR };

/* In some blocks numbers of 51 bits at most, in others some of any. A divisor is not 0. */
static uint64_t of_division(enum kind kind, size_t size, size_t i)
{
    const int64_t any = (int64_t)((uint64_t)random_bits() << 32 | random_bits());
    int64_t number = any >> (13 + random_bits() % 51);
    if (i % 100 == 57) number = random_bits() % 2 ? any : wholes[random_bits() % COUNT(wholes)];
    if (size == 4) number = random_bits() % 2 ? (int32_t)number : (int32_t)any >> (number & 31);
    return kind == DIVISOR && !number ? 1 : (uint64_t)number;
}

static void operand(enum kind kind, size_t size, void *to)
{
    for (size_t i = 0; i < MOST; i++) {
        uint64_t bits = (uint64_t)random_bits() << 32 | random_bits();
        if (kind >= DIVIDEND) bits = of_division(kind, size, i);
        if (kind == BYTE) bits = random_bits() % 3 ? bits % 4 : 0;
        if (kind == BITS && random_bits() % 2) bits %= 3; /* equal ones */
        if (kind == WHOLE && random_bits() % 2)
            bits = (uint64_t)wholes[random_bits() % COUNT(wholes)];
        if (kind == FLOAT && random_bits() % 2)
            memcpy(&bits, &floats[random_bits() % COUNT(floats)], 4);
        memcpy((char *)to + i * size, &bits, size);
    }
}

/* one(in, out): the definition on one element of each operand. */
static void check(sdx_element_fn *fn, const float *arg, int count_in, const enum kind *kinds,
                  const uint8_t *size, void (*one)(const void *const *in, void *out))
{
    const uint8_t size_out = size[count_in];
    for (int still = 0; still < 1 << count_in; still++)
        for (size_t n = 0; n <= MOST; n += n < 8 ? 1 : 37) {
            const void *in[SDX_ELEMENT_IN];
            int64_t step[SDX_ELEMENT_IN];
            for (int i = 0; i < count_in; i++) {
                void *x = guarded(MOST * (size_t)size[i], 8);
                operand(kinds[i], size[i], x);
                in[i] = x;
                step[i] = !(still >> i & 1);
            }
            char *y = guarded(n * size_out, 8);
            sdx_element_run(fn, arg, count_in, size, in, step, y, (int64_t)n);
            for (size_t j = 0; j < n; j++) {
                const void *at[SDX_ELEMENT_IN];
                uint64_t right = 0, got = 0;
                for (int i = 0; i < count_in; i++)
                    at[i] = (const char *)in[i] + (size_t)step[i] * j * size[i];
                one(at, &right);
                memcpy(&got, y + j * size_out, size_out);
                expect(got == right, "n %zu, still %d, element %zu: %llx, expected %llx", n, still,
                       j, (unsigned long long)got, (unsigned long long)right);
            }
            for (int i = 0; i < count_in; i++) { /* in place of an operand as wide */
                if (size[i] != size_out || !step[i]) continue;
                char *same = guarded(n * size_out, 8);
                memcpy(same, in[i], n * size_out);
                const void *from[SDX_ELEMENT_IN];
                memcpy(from, in, sizeof(void *) * (size_t)count_in);
                from[i] = same;
                sdx_element_run(fn, arg, count_in, size, from, step, same, (int64_t)n);
                expect(memcmp(same, y, n * size_out) == 0, "n %zu: other in place", n);
            }
            guards_intact();
            guards_release();
        }
}

static const float args[] = {0.25f, 0.5f};
static int64_t whole(float x, double limit) /* what has no room is the smallest */
{
    return x >= -limit && x < limit ? (int64_t)x : limit > 1e10 ? INT64_MIN : INT32_MIN;
}

#define ONE(name, R, expression, ...)                                                              \
    static void one_##name(const void *const *in, void *out)                                       \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
        const R r = (R)(expression);                                                               \
        memcpy(out, &r, sizeof r);                                                                 \
    }
#define UNARY(name, of, A, R, expression)                                                          \
    ONE(name, R, expression, const A x = *(const A *)in[0])                                        \
    static void check_##name(void)                                                                 \
    {                                                                                              \
        check(sdx_elements()->name, args, 1, (const enum kind[]){of},                              \
              (const uint8_t[]){sizeof(A), sizeof(R)}, one_##name);                                \
    }
#define BINARY(name, of, A, R, expression) PAIR(name, of, of, A, R, expression)
#define PAIR(name, of, second, A, R, expression)                                                   \
    ONE(name, R, expression, const A x = *(const A *)in[0], y = *(const A *)in[1])                 \
    static void check_##name(void)                                                                 \
    {                                                                                              \
        check(sdx_elements()->name, args, 2, (const enum kind[]){of, second},                      \
              (const uint8_t[]){sizeof(A), sizeof(A), sizeof(R)}, one_##name);                     \
    }
#define WHERE(name, T)                                                                             \
    ONE(name, T, *(const uint8_t *)in[0] ? *(const T *)in[1] : *(const T *)in[2], (void)in)        \
    static void check_##name(void)                                                                 \
    {                                                                                              \
        check(sdx_elements()->name, args, 3, (const enum kind[]){BYTE, BITS, BITS},                \
              (const uint8_t[]){1, sizeof(T), sizeof(T), sizeof(T)}, one_##name);                  \
    }
UNARY(bool_f32, BYTE, uint8_t, float, x != 0)
UNARY(bool_i32, BYTE, uint8_t, int32_t, x != 0)
UNARY(bool_i64, BYTE, uint8_t, int64_t, x != 0)
UNARY(i32_f32, WHOLE, int32_t, float, x)
UNARY(i32_i64, WHOLE, int32_t, int64_t, x)
UNARY(i64_f32, WHOLE, int64_t, float, x)
UNARY(i64_i32, WHOLE, int64_t, int32_t, x)
UNARY(i64_bool, WHOLE, int64_t, uint8_t, x != 0)
UNARY(u8_i64, BITS, uint8_t, int64_t, x)
UNARY(i32_u8, BITS, int32_t, uint8_t, x)
UNARY(f32_u8, FLOAT, float, uint8_t, whole(x, 0x1p31))
UNARY(f32_i32, FLOAT, float, int32_t, whole(x, 0x1p31))
UNARY(f32_i64, FLOAT, float, int64_t, whole(x, 0x1p63))
UNARY(f32_bool, FLOAT, float, uint8_t, x != 0)
UNARY(f32_f64, FLOAT, float, double, x)
UNARY(f64_f32, BITS, double, float, x)
UNARY(bool_not, BYTE, uint8_t, uint8_t, !x)
BINARY(bool_and, BYTE, uint8_t, uint8_t, x &&y)
BINARY(bool_or, BYTE, uint8_t, uint8_t, x || y)
BINARY(bool_xor, BYTE, uint8_t, uint8_t, !x != !y)
BINARY(bool_equal, BYTE, uint8_t, uint8_t, !x == !y)
BINARY(equal_1, BITS, uint8_t, uint8_t, x == y)
BINARY(equal_2, BITS, uint16_t, uint8_t, x == y)
BINARY(equal_4, BITS, uint32_t, uint8_t, x == y)
BINARY(equal_8, BITS, uint64_t, uint8_t, x == y)
BINARY(f32_equal, FLOAT, float, uint8_t, x == y)
BINARY(f32_less, FLOAT, float, uint8_t, x < y)
BINARY(i32_less, WHOLE, int32_t, uint8_t, x < y)
BINARY(i64_less, WHOLE, int64_t, uint8_t, x < y)
BINARY(f32_less_equal, FLOAT, float, uint8_t, x <= y)
BINARY(b32_add, BITS, uint32_t, uint32_t, x + y)
BINARY(b32_sub, BITS, uint32_t, uint32_t, x - y)
BINARY(b32_mul, BITS, uint32_t, uint32_t, x *y)
BINARY(b64_add, BITS, uint64_t, uint64_t, x + y)
BINARY(b64_sub, BITS, uint64_t, uint64_t, x - y)
BINARY(b64_mul, BITS, uint64_t, uint64_t, x *y)
BINARY(i32_max, BITS, int32_t, int32_t, x > y ? x : y)
BINARY(i32_min, BITS, int32_t, int32_t, x < y ? x : y)
BINARY(i64_max, WHOLE, int64_t, int64_t, x > y ? x : y)
BINARY(i64_min, WHOLE, int64_t, int64_t, x < y ? x : y)
BINARY(f64_add, BITS, double, double, x + y)
BINARY(f64_sub, BITS, double, double, x - y)
BINARY(f64_mul, BITS, double, double, x *y)
BINARY(f64_div, BITS, double, double, x / y)
BINARY(f64_max, BITS, double, double, x > y || isnan(x) ? x : y)
BINARY(f64_min, BITS, double, double, x < y || isnan(x) ? x : y)
BINARY(u8_max, BITS, uint8_t, uint8_t, x > y ? x : y)
BINARY(u8_min, BITS, uint8_t, uint8_t, x < y ? x : y)
BINARY(bits_and, BITS, uint8_t, uint8_t, x &y)
BINARY(bits_or, BITS, uint8_t, uint8_t, x | y)
BINARY(bits_xor, BITS, uint8_t, uint8_t, x ^ y)
UNARY(i32_abs, WHOLE, int32_t, uint32_t, x < 0 ? -(int64_t)x : x)
UNARY(i64_abs, WHOLE, int64_t, uint64_t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
UNARY(i32_sign, WHOLE, int32_t, int32_t, x<0 ? -1 : x> 0)
UNARY(f64_sqrt, BITS, double, double, sqrt(x))
UNARY(f64_round, BITS, double, double, rint(x))
UNARY(u16_scaled, BITS, uint16_t, float, ((float)x - args[0]) * args[1])
UNARY(i16_scaled, BITS, int16_t, float, ((float)x - args[0]) * args[1])
UNARY(f32_quantized_u16, FLOAT, float, uint16_t,
      isnan(x) ? 0 : fmaxf(fminf(rintf(x / args[1]), 65535), 0))
UNARY(f32_quantized_i16, FLOAT, float, int16_t,
      isnan(x) ? -32768 : fmaxf(fminf(rintf(x / args[1]), 32767), -32768))
BINARY(f32_fmod, FLOAT, float, float, fmodf(x, y))
/* The quotient and the remainder of the smallest by -1 have no place in C. */
#define QUOTIENT(x, y)  ((y) == -1 ? (int64_t)(0 - (uint64_t)(x)) : (x) / (y))
#define REMAINDER(x, y) ((y) == -1 ? 0 : (x) % (y))
#define FLOOR_MOD(x, y)                                                                            \
    (REMAINDER(x, y) + (REMAINDER(x, y) && (REMAINDER(x, y) < 0) != ((y) < 0) ? (y) : 0))
PAIR(i32_div, DIVIDEND, DIVISOR, int32_t, int32_t, QUOTIENT(x, y))
PAIR(i64_div, DIVIDEND, DIVISOR, int64_t, int64_t, QUOTIENT(x, y))
PAIR(i32_modp, DIVIDEND, DIVISOR, int32_t, int32_t, FLOOR_MOD(x, y))
PAIR(i64_modp, DIVIDEND, DIVISOR, int64_t, int64_t, FLOOR_MOD(x, y))
WHERE(where_1, uint8_t)
WHERE(where_2, uint16_t)
WHERE(where_4, uint32_t)
WHERE(where_8, uint64_t)
UNARY(f32_is_nan, FLOAT, float, uint8_t, isnan(x) != 0)
UNARY(f32_is_inf, FLOAT, float, uint8_t, x == args[0] || x == args[1])
UNARY(f32_sign, FLOAT, float, float, x > 0 ? 1 : x < 0 ? -1 : x)
UNARY(f32_shrink, FLOAT, float, float, x<-args[1] ? x + args[0] : x> args[1] ? x - args[0] : 0)

/* Within 0.51 ulp of the power, which f64 has to 1e-16. */
static void expect_power(float x, float y, float got)
{
    const double right = pow(x, y);
    const float nearest = (float)right;
    if (isnan(right) || isinf(nearest) || nearest == 0) {
        expect(isnan(right) ? isnan(got) != 0 : got == nearest, "pow(%a, %a) %a, expected %a",
               (double)x, (double)y, (double)got, (double)nearest);
        return;
    }
    const double room = fabs((double)nextafterf(nearest, INFINITY) - (double)nearest);
    expect(fabs(got - right) <= 0.51 * room, "pow(%a, %a) %a, expected %a", (double)x, (double)y,
           (double)got, right);
}
static float random_number(int how)
{
    if (how % 4 == 0) return floats[random_bits() % COUNT(floats)];
    if (how % 4 == 1) return (float)(int32_t)random_bits() * 0x1p-26f;
    const uint32_t bits = random_bits() >> (how % 4 - 2);
    float x;
    memcpy(&x, &bits, sizeof x);
    return isnan(x) ? NAN : x; /* 1 to the power of a signalling one is one */
}
static void check_f32_pow(void)
{
    for (int turn = 0; turn < 400; turn++) {
        const size_t n = random_bits() % MOST;
        float *x = guarded(MOST * 4, 4), *y = guarded(MOST * 4, 4), *r = guarded(n * 4, 4);
        for (int i = 0; i < MOST; i++) {
            x[i] = turn % 3 ? fabsf(random_number(1 + turn % 3)) : random_number(i);
            y[i] = random_number(turn % 4 ? 1 : i / 4);
        }
        const int64_t step[] = {turn % 5 != 4, turn % 7 != 6};
        sdx_element_run(sdx_elements()->f32_pow, NULL, 2, (const uint8_t[]){4, 4, 4},
                        (const void *const[]){x, y}, step, r, (int64_t)n);
        for (size_t j = 0; j < n; j++)
            expect_power(x[step[0] ? j : 0], y[step[1] ? j : 0], r[j]);
        sdx_element_run(sdx_elements()->f32_pow, NULL, 2, (const uint8_t[]){4, 4, 4},
                        (const void *const[]){x, y}, (const int64_t[]){1, 1}, x, (int64_t)n);
        for (size_t j = 0; j < n && step[0] && step[1]; j++)
            expect(memcmp(&x[j], &r[j], 4) == 0, "element %zu of %zu: other in place", j, n);
        guards_intact();
        guards_release();
    }
}

void check_elements(void)
{
#define CHECK(name) check_##name();
    SDX_ELEMENTS(CHECK)
#undef CHECK
}

enum { TIMED = 4096 };
struct timed {
    const void *in[SDX_ELEMENT_IN];
    void *y;
};
static void timed_where(void *arg)
{
    const struct timed *t = arg;
    for (int i = 0; i < 16; i++)
        sdx_element_run(sdx_elements()->where_4, NULL, 3, (const uint8_t[]){1, 4, 4, 4}, t->in,
                        (const int64_t[]){1, 1, 1}, t->y, TIMED);
}
double bench_elements(void) /* of a selection of 4 bytes */
{
    struct timed t = {.y = guarded(TIMED * 4, 0)};
    for (int i = 0; i < SDX_ELEMENT_IN; i++) {
        void *x = guarded(TIMED * 4, 0);
        memset(x, i, TIMED * 4);
        t.in[i] = x;
    }
    return best_ns(timed_where, &t) / (16.0 * TIMED);
}
