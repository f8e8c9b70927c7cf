/* SPDX-License-Identifier: Apache-2.0
 * String views and growing text. The hash is SipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast
 * short-input PRF", 2012): keyed, because the names hashed come from files we do not trust. */
#include "base/str.h"

#include <stdio.h>

int sdx_str_compare(struct sdx_str a, struct sdx_str b)
{
    size_t shared = a.len < b.len ? a.len : b.len;
    int order = shared == 0 ? 0 : memcmp(a.ptr, b.ptr, shared);
    if (order != 0) return order;
    return (a.len > b.len) - (a.len < b.len);
}

/* Well-formed sequences of the Unicode standard, table 3-7. */
bool sdx_str_is_utf8(struct sdx_str s)
{
    const unsigned char *at = (const unsigned char *)s.ptr;
    const unsigned char *end = at + s.len;
    while (at < end) {
        unsigned char lead = *at++;
        if (lead < 0x80) {
            if (lead == 0) return false;
            continue;
        }
        if (lead < 0xc2 || lead > 0xf4) return false;
        int more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
        if (end - at < more) return false;
        unsigned char low = 0x80, high = 0xbf; /* bounds of the second byte */
        if (lead == 0xe0) low = 0xa0;
        if (lead == 0xed) high = 0x9f;
        if (lead == 0xf0) low = 0x90;
        if (lead == 0xf4) high = 0x8f;
        if (*at < low || *at > high) return false;
        for (int i = 1; i < more; i++)
            if (at[i] < 0x80 || at[i] > 0xbf) return false;
        at += more;
    }
    return true;
}

static uint64_t rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

uint64_t sdx_hash_bytes(const void *bytes, size_t size, uint64_t seed)
{
    const unsigned char *at = bytes;
    uint64_t other = seed ^ 0x9e3779b97f4a7c15U; /* second half of the key */
    uint64_t v[4] = {seed ^ 0x736f6d6570736575U, other ^ 0x646f72616e646f6dU,
                     seed ^ 0x6c7967656e657261U, other ^ 0x7465646279746573U};
    uint64_t word;
    for (size_t left = size; left >= 8; left -= 8, at += 8) {
        memcpy(&word, at, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = (uint64_t)size << 56;
    for (size_t i = 0; i < size % 8; i++)
        word |= (uint64_t)at[i] << (8 * i);
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void sdx_text_init(struct sdx_text *text, struct sdx_mem *mem)
{
    *text = (struct sdx_text){.mem = mem, .ok = true};
}

void sdx_text_deinit(struct sdx_text *text)
{
    sdx_mem_free(text->mem, text->ptr);
    text->ptr = NULL;
    text->len = text->capacity = 0;
}

void sdx_text_clear(struct sdx_text *text)
{
    text->len = 0;
    text->ok = true;
    if (text->ptr != NULL) text->ptr[0] = '\0';
}

/* Room for `size` more bytes and the NUL. */
static bool reserve(struct sdx_text *text, size_t size)
{
    size_t needed;
    if (!text->ok || !sdx_add_size(text->len, size, &needed) || !sdx_add_size(needed, 1, &needed)) {
        text->ok = false;
        return false;
    }
    if (needed <= text->capacity) return true;
    size_t capacity = text->capacity < 64 ? 64 : text->capacity;
    while (capacity < needed)
        capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    char *grown = sdx_mem_realloc(text->mem, SDX_MEM_OTHER, text->ptr, capacity);
    if (grown == NULL) {
        text->ok = false;
        return false;
    }
    text->ptr = grown;
    text->capacity = capacity;
    return true;
}

void sdx_text_add(struct sdx_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0)
        text->ok = false;
    else if (reserve(text, (size_t)length)) {
        vsnprintf(text->ptr + text->len, (size_t)length + 1, format, again);
        text->len += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

void sdx_text_add_bytes(struct sdx_text *text, const void *bytes, size_t size)
{
    if (!reserve(text, size)) return;
    if (size != 0) memcpy(text->ptr + text->len, bytes, size);
    text->len += size;
    text->ptr[text->len] = '\0';
}

const char *sdx_text_get(const struct sdx_text *text)
{
    return text->ptr != NULL ? text->ptr : "";
}
