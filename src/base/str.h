/* SPDX-License-Identifier: Apache-2.0
 * String views (pointer and length, not NUL-terminated), growing text, number parsing that ignores
 * the locale, UTF-8 check, and a map from string views to 32-bit numbers, which also interns names.
 */
#ifndef SDX_BASE_STR_H
#define SDX_BASE_STR_H

#include <stdarg.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"

struct sdx_str {
    const char *ptr; /* may be NULL when len is 0 */
    size_t len;
};

#define SDX_STR(literal) ((struct sdx_str){(literal), sizeof(literal) - 1})
/* For printf: "%.*s" with SDX_STR_ARG(s); cut at 200 bytes, so a hostile name cannot flood a
 * message. */
#define SDX_STR_ARG(s) (int)((s).len > 200 ? 200 : (s).len), ((s).ptr ? (s).ptr : "")

static inline struct sdx_str sdx_str(const char *text)
{
    return (struct sdx_str){text, text ? strlen(text) : 0};
}
static inline bool sdx_str_equal(struct sdx_str a, struct sdx_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}
static inline bool sdx_str_is(struct sdx_str a, const char *text)
{
    return sdx_str_equal(a, sdx_str(text));
}
int sdx_str_compare(struct sdx_str a, struct sdx_str b);
bool sdx_str_is_utf8(struct sdx_str s); /* and holds no NUL */
uint64_t sdx_hash_bytes(const void *bytes, size_t size, uint64_t seed);
/* 32 bits, by 2^64 over the golden ratio; not for keys that an input could choose to collide. */
static inline uint64_t sdx_hash_number(uint64_t x)
{
    return x * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

/* The whole view must be a number. false: it is not, or it does not fit. */
bool sdx_parse_i64(struct sdx_str s, int64_t *out);
bool sdx_parse_f64(struct sdx_str s, double *out); /* C locale always; inf, nan allowed */
/* Shortest text that reads back as the same float/double, C locale. Returns the length; buf >= 32.
 */
int sdx_format_f64(char *buf, double value);
int sdx_format_f32(char *buf, float value);

/* Growing NUL-terminated text. Failures to grow are remembered: `ok` turns false, text stays valid.
 */
struct sdx_text {
    struct sdx_mem *mem;
    char *ptr;
    size_t len, capacity;
    bool ok;
};
void sdx_text_init(struct sdx_text *text, struct sdx_mem *mem);
void sdx_text_deinit(struct sdx_text *text);
void sdx_text_clear(struct sdx_text *text);
void sdx_text_add(struct sdx_text *text, const char *format, ...) SDX_PRINTF(2, 3);
void sdx_text_add_bytes(struct sdx_text *text, const void *bytes, size_t size);
const char *sdx_text_get(const struct sdx_text *text); /* never NULL */

/* Map from string view to a number >= 0. Keys are borrowed. Open addressing. */
struct sdx_map {
    struct sdx_mem *mem;
    struct sdx_map_entry *entries;
    size_t count, capacity;
    uint64_t seed; /* of the hash, so that a file cannot be made to collide */
};
void sdx_map_init(struct sdx_map *map, struct sdx_mem *mem);
void sdx_map_deinit(struct sdx_map *map);
int32_t sdx_map_get(const struct sdx_map *map, struct sdx_str key); /* -1: not there */
/* Adds or replaces. false: no memory. */
bool sdx_map_put(struct sdx_map *map, struct sdx_str key, int32_t value);
#endif
