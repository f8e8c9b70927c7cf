/* SPDX-License-Identifier: Apache-2.0
 * Code points in UTF-8 texts, for the text operators. Bytes that are no UTF-8 count as one code
 * point each. */
#ifndef SDX_OPS_UTF8_H
#define SDX_OPS_UTF8_H

#include "base/str.h"

/* The code point at *at, which moves on; *at < s.len. */
static inline uint32_t sdx_utf8_next(struct sdx_str s, size_t *at)
{
    const unsigned char *p = (const unsigned char *)s.ptr + *at;
    size_t left = s.len - *at, n = 1;
    uint32_t c = p[0];
    if (c >= 0xC2 && c < 0xE0)
        n = 2;
    else if (c >= 0xE0 && c < 0xF0)
        n = 3;
    else if (c >= 0xF0 && c < 0xF5)
        n = 4;
    uint32_t v = n == 1 ? c : c & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if (i >= left || (p[i] & 0xC0) != 0x80) {
            *at += 1;
            return c;
        }
        v = v << 6 | (p[i] & 0x3F);
    }
    *at += n;
    return v;
}

/* Writes c, returns the bytes used (1 to 4). */
static inline size_t sdx_utf8_put(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* Simple case mapping of the scripts that have cases in everyday text: Latin (to U+017F and
 * U+1E00..), Greek, Cyrillic, Armenian. Others are returned as they are. */
uint32_t sdx_utf8_lower(uint32_t c);
uint32_t sdx_utf8_upper(uint32_t c);
#endif
