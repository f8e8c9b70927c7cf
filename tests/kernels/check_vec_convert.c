/* SPDX-License-Identifier: Apache-2.0
 * Checks of the functions of vec.h that convert, transpose and copy. */
#include "timed_row.h"

#include <float.h>

static double value_of_f16(uint16_t h)
{
    const int exponent = h >> 10 & 31, mantissa = h & 1023;
    double v = exponent == 31 ? (mantissa ? NAN : INFINITY)
               : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                              : ldexp(mantissa, -24);
    return h & 0x8000 ? -v : v;
}
void check_f16_to_f32(void)
{
    uint16_t *x = guarded(65536 * 2, 2);
    float *y = guarded(65536 * 4, 4), *z = guarded(65536 * 4, 0);
    for (int i = 0; i < 65536; i++)
        x[i] = (uint16_t)i;
    vec_now->f16_to_f32(x, y, 65536);
    vec_generic.f16_to_f32(x, z, 65536);
    for (int i = 0; i < 65536; i++) {
        expect(same_bits(y[i], (float)value_of_f16(x[i])), "%04x: %.9g", i, y[i]);
        expect(memcmp(&y[i], &z[i], 4) == 0, "%04x: not as generic", i);
    }
    for (size_t n = 0; n < 40; n++) {
        float *to = guarded(n * 4, 4);
        vec_now->f16_to_f32(x + 0x3c00, to, n);
        for (size_t i = 0; i < n; i++)
            expect(to[i] == y[0x3c00 + i], "n %zu, element %zu", n, i);
    }
}
/* Floats around everything a 16-bit float can round at. */
static size_t rounding_inputs(float *x, size_t n, int low_bits)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = random_bits();
        if (i % 3) bits = bits >> low_bits << low_bits; /* ties and exact values */
        if (i % 3 == 2) bits ^= 1u << (low_bits - 1);
        if (i % 5) bits = (bits & 0x8fffffff) | 0x30000000; /* sizes of f16 */
        memcpy(&x[i], &bits, 4);
    }
    const float special[] = {0.0f,    -0.0f,         INFINITY,      -INFINITY,
                             NAN,     65504.0f,      65519.9f,      65520.0f,
                             FLT_MAX, 5.9604645e-8f, 2.9802322e-8f, 2.98023223e-8f,
                             6.1e-5f, 1e-40f,        3.3895314e38f, 3.3961775e38f};
    memcpy(x, special, sizeof special);
    return n;
}
void check_f32_to_f16(void)
{
    enum { MANY = 100000 };
    float *x = guarded(MANY * 4, 4);
    uint16_t *y = guarded(MANY * 2, 2), *z = guarded(MANY * 2, 0);
    rounding_inputs(x, MANY, 13);
    vec_now->f32_to_f16(x, y, MANY);
    vec_generic.f32_to_f16(x, z, MANY);
    for (size_t i = 0; i < MANY; i++) {
        const double error = fabs(value_of_f16(y[i]) - x[i]);
        expect(y[i] == z[i], "%.9g: %04x, generic %04x", x[i], y[i], z[i]);
        if (x[i] != x[i]) {
            expect((y[i] & 0x7fff) > 0x7c00, "NaN: %04x", y[i]);
        } else if (fabsf(x[i]) >= 65520.0f) {
            expect((y[i] & 0x7fff) == 0x7c00, "%.9g: %04x", x[i], y[i]);
        } else { /* no neighbour is nearer; a tie has an even last bit */
            const double up = fabs(value_of_f16((uint16_t)(y[i] + 1)) - x[i]);
            const double down =
                y[i] & 0x7fff ? fabs(value_of_f16((uint16_t)(y[i] - 1)) - x[i]) : up;
            const bool even = !(y[i] & 1);
            expect((even ? error <= up : error < up) && (even ? error <= down : error < down),
                   "%.9g: %04x is not the nearest", x[i], y[i]);
        }
    }
    for (size_t n = 0; n < 40; n++) {
        uint16_t *to = guarded(n * 2, 2);
        vec_now->f32_to_f16(x, to, n);
        expect(memcmp(to, y, n * 2) == 0, "n %zu", n);
    }
}
void check_bf16_to_f32(void)
{
    uint16_t *x = guarded(65536 * 2, 2);
    float *y = guarded(65536 * 4, 4);
    for (int i = 0; i < 65536; i++)
        x[i] = (uint16_t)i;
    vec_now->bf16_to_f32(x, y, 65536);
    for (uint32_t i = 0; i < 65536; i++) {
        uint32_t bits;
        memcpy(&bits, &y[i], 4);
        expect(bits == i << 16, "%04x: %08x", i, bits);
    }
}
void check_f32_to_bf16(void)
{
    enum { MANY = 100000 };
    float *x = guarded(MANY * 4, 4);
    uint16_t *y = guarded(MANY * 2, 2);
    rounding_inputs(x, MANY, 16);
    vec_now->f32_to_bf16(x, y, MANY);
    for (size_t i = 0; i < MANY; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], 4);
        const uint32_t low = bits & 0xffff, cut = bits >> 16;
        const uint32_t right = cut + (low > 0x8000 || (low == 0x8000 && (cut & 1)));
        if (x[i] != x[i])
            expect((y[i] & 0x7fff) > 0x7f80, "NaN: %04x", y[i]);
        else
            expect(y[i] == right, "%.9g: %04x, expected %04x", x[i], y[i], right);
    }
}

#define FROM_BYTES(name, type)                                                                     \
    void check_##name(void)                                                                        \
    {                                                                                              \
        type *x = guarded(256, 1);                                                                 \
        for (int i = 0; i < 256; i++)                                                              \
            x[i] = (type)i;                                                                        \
        for (size_t n = 0; n <= 256; n++) {                                                        \
            float *y = guarded(n * 4, 4);                                                          \
            vec_now->name(x, 0.037f, 11, y, n);                                                    \
            for (size_t i = 0; i < n; i++)                                                         \
                expect(same_bits(y[i], (float)(x[i] - 11) * 0.037f), "%d: %.9g", x[i], y[i]);      \
        }                                                                                          \
    }
FROM_BYTES(u8_to_f32, uint8_t)
FROM_BYTES(s8_to_f32, int8_t)

static const float mixing[] = {0.375f, -1.25f, 0.6f, 2.0f};

void check_u8_mix(void)
{
    for (size_t n = 0; n < 80; n++) {
        const uint8_t *rows[4];
        for (size_t r = 0; r < 4; r++) {
            uint8_t *row = guarded(n, 1);
            for (size_t i = 0; i < n; i++)
                row[i] = (uint8_t)(i * (37 + 6 * r) + r * 91);
            rows[r] = row;
        }
        for (int count = 1; count <= 4; count++) {
            const uint8_t flip = count % 2 ? 0x80 : 0;
            float *y = guarded(n * 4, 4);
            vec_now->u8_mix(rows, flip, 0.3f, mixing, count, y, n);
            for (size_t i = 0; i < n; i++) {
                float right = 0.3f;
                for (int r = 0; r < count; r++) {
                    const float product = (float)(rows[r][i] ^ flip) * mixing[r];
                    right += product;
                }
                expect(y[i] == right, "%d rows, n %zu, element %zu: %.9g", count, n, i, y[i]);
            }
        }
    }
}

static void check_turned(size_t rows, size_t cols, size_t stride, size_t stride_to)
{
    const size_t size_to = cols ? (cols - 1) * stride_to + rows : 0;
    uint32_t *from = guarded(rows * stride * 4, 4), *to = guarded(size_to * 4, 4);
    for (size_t i = 0; i < rows * stride; i++)
        from[i] = random_bits();
    vec_now->b32_transpose(from, stride, to, stride_to, rows, cols);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            expect(to[j * stride_to + i] == from[i * stride + j], "%zux%zu: at %zu,%zu", rows, cols,
                   i, j);
    guards_intact();
    guards_release();
}
void check_b32_transpose(void)
{
    for (size_t rows = 0; rows <= 40; rows += rows < 18 ? 1 : 11)
        for (size_t cols = 0; cols <= 70; cols += cols < 18 ? 1 : 13)
            check_turned(rows, cols, cols + rows % 3, rows + cols % 2);
    for (size_t rows = 31; rows <= 70; rows += 13) /* far apart: by whole lines */
        for (size_t cols = 1; cols <= 70; cols += cols % 2 ? 7 : 10)
            check_turned(rows, cols, cols + rows % 3, 1030);
}

void check_b32_rows(void)
{
    for (size_t width = 1; width <= 70; width += width < 18 ? 1 : 13)
        for (size_t rows = 0; rows <= 5; rows++)
            for (size_t stride = 0; stride <= width + 1; stride += width / 2 + 1)
                for (int splat = 0; splat < 2; splat++) {
                    const size_t row = splat ? 1 : width, count = rows * width;
                    const size_t used = rows ? (rows - 1) * stride + row : 0;
                    uint32_t *from = guarded(used * 4, 4), *to = guarded(count * 4 + 63, 4);
                    for (size_t i = 0; i < used; i++)
                        from[i] = random_bits();
                    vec_now->b32_rows((float *)from, stride, splat != 0, (float *)to, width, rows);
                    for (size_t i = 0; i < count; i++) {
                        const size_t at = i / width * stride + (splat ? 0 : i % width);
                        expect(to[i] == from[at], "%zux%zu, stride %zu, splat %d: at %zu", rows,
                               width, stride, splat, i);
                    }
                    guards_intact();
                    guards_release();
                }
}

/* ---- benchmarks ---- */
BENCH(f16_to_f32, vec_now->f16_to_f32(timed_bytes, timed_y, TIMED))
BENCH(f32_to_f16, vec_now->f32_to_f16(timed_x, timed_bytes, TIMED))
BENCH(bf16_to_f32, vec_now->bf16_to_f32(timed_bytes, timed_y, TIMED))
BENCH(f32_to_bf16, vec_now->f32_to_bf16(timed_x, timed_bytes, TIMED))
BENCH(u8_to_f32, vec_now->u8_to_f32(timed_bytes, 0.03f, 128, timed_y, TIMED))
BENCH(u8_mix, vec_now->u8_mix((const uint8_t *const[]){timed_bytes, timed_bytes}, 0, 0, mixing, 2,
                              timed_y, TIMED))
BENCH(s8_to_f32, vec_now->s8_to_f32(timed_bytes, 0.03f, 3, timed_y, TIMED))
BENCH(b32_transpose,
      vec_now->b32_transpose((uint32_t *)timed_x, 64, (uint32_t *)timed_y, 64, 64, 64))
BENCH(b32_rows, vec_now->b32_rows(timed_x, 16, false, timed_y, 16, TIMED / 16 - 4))
