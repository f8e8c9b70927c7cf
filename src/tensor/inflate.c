/* SPDX-License-Identifier: Apache-2.0
 * Deflate (RFC 1951). Codes of up to FAST bits are one table look-up; longer ones walk the
 * canonical code bit by bit. */
#include "tensor/inflate.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    FAST = 10,     /* bits of the look-up table: 2 KiB a code */
    CODE_MAX = 15, /* bits of the longest code */
    SYMBOLS_MAX = 288,
    DISTANCES_MAX = 32,
    END_OF_BLOCK = 256
};

struct bits {
    const unsigned char *at, *end;
    uint64_t held;
    int count;
    bool ran_out; /* more bits were taken than the stream has */
};

struct code {
    uint16_t fast[1 << FAST];      /* symbol << 4 | length; 0: longer, or no such code */
    uint16_t count[CODE_MAX + 1];  /* codes of each length */
    uint16_t symbols[SYMBOLS_MAX]; /* by length, then by value */
};

static void refill(struct bits *b)
{
    while (b->count <= 56 && b->at < b->end) {
        b->held |= (uint64_t)*b->at++ << b->count;
        b->count += 8;
    }
}

/* n <= 32 */
static uint32_t take(struct bits *b, int n)
{
    if (b->count < n) refill(b);
    if (b->count < n) {
        b->ran_out = true;
        b->count = 0;
        b->held = 0;
        return 0;
    }
    uint32_t value = (uint32_t)(b->held & (((uint64_t)1 << n) - 1));
    b->held >>= n;
    b->count -= n;
    return value;
}

static uint32_t reverse(uint32_t code, int length)
{
    uint32_t result = 0;
    for (int i = 0; i < length; i++)
        result |= (code >> i & 1) << (length - 1 - i);
    return result;
}

/* false: more codes than the lengths have room for, or fewer (a single code may stand alone). */
static bool make_code(struct code *code, const uint8_t *lengths, int n)
{
    uint16_t place[CODE_MAX + 2] = {0};
    uint32_t next[CODE_MAX + 2] = {0};
    memset(code, 0, sizeof *code);
    for (int i = 0; i < n; i++)
        code->count[lengths[i]]++;
    int used = n - code->count[0], left = 1;
    code->count[0] = 0;
    for (int length = 1; length <= CODE_MAX; length++) {
        left = 2 * left - code->count[length];
        if (left < 0) return false;
        place[length + 1] = place[length] + code->count[length];
        next[length + 1] = (next[length] + code->count[length]) << 1;
    }
    if (left > 0 && used > 1) return false;
    for (int i = 0; i < n; i++) {
        int length = lengths[i];
        if (length == 0) continue;
        code->symbols[place[length]++] = (uint16_t)i;
        uint32_t bits = next[length]++;
        if (length > FAST) continue;
        for (uint32_t k = reverse(bits, length); k < 1 << FAST; k += (uint32_t)1 << length)
            code->fast[k] = (uint16_t)(i << 4 | length);
    }
    return true;
}

/* -1: no such code, or the stream ended. */
static int decode(struct bits *b, const struct code *code)
{
    if (b->count < CODE_MAX) refill(b);
    uint16_t entry = code->fast[b->held & ((1 << FAST) - 1)];
    int length = entry & 15;
    if (length > 0 && length <= b->count) {
        b->held >>= length;
        b->count -= length;
        return entry >> 4;
    }
    int value = 0, first = 0, index = 0;
    for (length = 1; length <= CODE_MAX && length <= b->count; length++) {
        value |= (int)(b->held >> (length - 1) & 1);
        int count = code->count[length];
        if (value - first < count) {
            b->held >>= length;
            b->count -= length;
            return code->symbols[index + value - first];
        }
        index += count;
        first = (first + count) << 1;
        value <<= 1;
    }
    return -1;
}

struct output {
    unsigned char *start;
    size_t at, size;
};

static const char *copy_stored(struct bits *b, struct output *out)
{
    take(b, b->count & 7);
    uint32_t length = take(b, 16), complement = take(b, 16);
    if (b->ran_out || (length ^ complement) != 0xffff) return "a stored block's length is wrong";
    if (length > out->size - out->at) return "it gives more bytes than it says";
    for (; length > 0 && b->count > 0; length--)
        out->start[out->at++] = (unsigned char)take(b, 8);
    if (length > (size_t)(b->end - b->at)) return "it is cut off";
    if (length > 0) memcpy(out->start + out->at, b->at, length);
    b->at += length;
    out->at += length;
    return NULL;
}

/* RFC 1951, 3.2.5 */
static const uint16_t length_base[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                       15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                       67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t length_extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                       2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
static const uint16_t distance_base[] = {
    1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
    193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
static const uint8_t distance_extra[] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                         6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

static const char *copy_match(struct bits *b, struct output *out, int symbol,
                              const struct code *distances)
{
    symbol -= END_OF_BLOCK + 1;
    if (symbol >= 29) return "it has a length code that does not exist";
    size_t length = length_base[symbol] + take(b, length_extra[symbol]);
    int code = decode(b, distances);
    if (code < 0 || code >= 30) return "it has a distance code that does not exist";
    size_t distance = distance_base[code] + take(b, distance_extra[code]);
    if (b->ran_out) return "it is cut off";
    if (distance > out->at) return "a distance reaches before its start";
    if (length > out->size - out->at) return "it gives more bytes than it says";
    unsigned char *to = out->start + out->at;
    for (size_t i = 0; i < length; i++)
        to[i] = to[(ptrdiff_t)i - (ptrdiff_t)distance];
    out->at += length;
    return NULL;
}

static const char *inflate_block(struct bits *b, struct output *out, const struct code *literals,
                                 const struct code *distances)
{
    for (;;) {
        int symbol = decode(b, literals);
        if (symbol < 0) return "a code does not exist, or it is cut off";
        if (symbol == END_OF_BLOCK) return NULL;
        if (symbol < END_OF_BLOCK) {
            if (out->at == out->size) return "it gives more bytes than it says";
            out->start[out->at++] = (unsigned char)symbol;
            continue;
        }
        const char *fault = copy_match(b, out, symbol, distances);
        if (fault) return fault;
    }
}

static void fixed_codes(struct code *literals, struct code *distances)
{
    uint8_t lengths[SYMBOLS_MAX];
    memset(lengths, 8, 144);
    memset(lengths + 144, 9, 112);
    memset(lengths + 256, 7, 24);
    memset(lengths + 280, 8, 8);
    make_code(literals, lengths, SYMBOLS_MAX);
    memset(lengths, 5, DISTANCES_MAX);
    make_code(distances, lengths, DISTANCES_MAX);
}

/* RFC 1951, 3.2.7 */
static const char *read_codes(struct bits *b, struct code *literals, struct code *distances)
{
    static const uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                    11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[SYMBOLS_MAX + DISTANCES_MAX] = {0};
    int count_literals = (int)take(b, 5) + 257, count_distances = (int)take(b, 5) + 1;
    int count = (int)take(b, 4) + 4, total = count_literals + count_distances;
    if (count_literals > 286 || count_distances > 30) return "it has too many codes";
    for (int i = 0; i < count; i++)
        lengths[order[i]] = (uint8_t)take(b, 3);
    if (b->ran_out || !make_code(literals, lengths, 19)) return "its code lengths are not a code";
    memset(lengths, 0, sizeof lengths);
    for (int i = 0; i < total;) {
        int symbol = decode(b, literals), repeat = 1;
        if (symbol < 0 || (symbol == 16 && i == 0)) return "its code lengths are not valid";
        uint8_t value = symbol < 16 ? (uint8_t)symbol : symbol == 16 ? lengths[i - 1] : 0;
        if (symbol == 16) repeat = 3 + (int)take(b, 2);
        if (symbol == 17) repeat = 3 + (int)take(b, 3);
        if (symbol == 18) repeat = 11 + (int)take(b, 7);
        if (b->ran_out || repeat > total - i) return "its code lengths are not valid";
        while (repeat-- > 0)
            lengths[i++] = value;
    }
    if (lengths[END_OF_BLOCK] == 0) return "it has no code for the end of a block";
    if (!make_code(literals, lengths, count_literals) ||
        !make_code(distances, lengths + count_literals, count_distances))
        return "its codes are not complete";
    return NULL;
}

const char *sdx_inflate(const unsigned char *in, size_t in_size, unsigned char *out,
                        size_t out_size)
{
    struct bits b = {.at = in, .end = in + in_size};
    struct output o = {out, 0, out_size};
    struct code literals, distances;
    for (bool last = false; !last;) {
        const char *fault = NULL;
        last = take(&b, 1);
        uint32_t kind = take(&b, 2);
        if (b.ran_out) return "it is cut off";
        if (kind == 0) {
            fault = copy_stored(&b, &o);
        } else if (kind == 3) {
            fault = "it has a block of unknown kind";
        } else {
            if (kind == 1)
                fixed_codes(&literals, &distances);
            else
                fault = read_codes(&b, &literals, &distances);
            if (!fault) fault = inflate_block(&b, &o, &literals, &distances);
        }
        if (fault) return fault;
    }
    return o.at == out_size ? NULL : "it gives fewer bytes than it says";
}
