/* SPDX-License-Identifier: Apache-2.0
 * Texts and pairs of texts that the other families share, and OrtKeyValuePairs itself. */
#include "ort_objects.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

OrtStatusPtr ort_fail(OrtErrorCode code, const char *format, ...)
{
    char few[512];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(few, sizeof few, format, args);
    va_end(args);
    if (length < (int)sizeof few) return ort_status(code, length < 0 ? format : few);
    char *text = malloc((size_t)length + 1);
    if (!text) return ort_status(code, few);
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    OrtStatusPtr status = ort_status(code, text);
    free(text);
    return status;
}

OrtStatusPtr ort_no_memory(void)
{
    return ort_status(ORT_FAIL, "out of memory");
}

OrtStatusPtr ort_copy_text(OrtAllocator *allocator, const char *text, char **out)
{
    const size_t size = strlen(text) + 1;
    *out = allocator ? allocator->Alloc(allocator, size) : malloc(size);
    if (!*out) return ort_no_memory();
    memcpy(*out, text, size);
    return NULL;
}

OrtStatusPtr ort_set_text(char **text, const char *with)
{
    char *copy = NULL;
    ORT_TRY(ort_copy_text(NULL, with ? with : "", &copy));
    free(*text);
    *text = copy;
    return NULL;
}

OrtStatusPtr ort_grow(void *array, size_t count, size_t size)
{
    if (count & (count - 1)) return NULL; /* grows when the count is a power of two */
    void *old, *more;
    memcpy(&old, array, sizeof old);
    more = realloc(old, (count ? count * 2 : 1) * size);
    if (!more) return ort_no_memory();
    memcpy(array, &more, sizeof more);
    return NULL;
}

static size_t find_key(const struct OrtKeyValuePairs *pairs, const char *key)
{
    size_t i = 0;
    while (i < pairs->count && strcmp(pairs->keys[i], key) != 0)
        i++;
    return i;
}

OrtStatusPtr ort_pairs_set(struct OrtKeyValuePairs *pairs, const char *key, const char *value)
{
    const size_t at = find_key(pairs, key);
    if (at < pairs->count) return ort_set_text(&pairs->values[at], value);
    ORT_TRY(ort_grow(&pairs->keys, at, sizeof *pairs->keys));
    ORT_TRY(ort_grow(&pairs->values, at, sizeof *pairs->values));
    pairs->keys[at] = pairs->values[at] = NULL;
    OrtStatusPtr status = ort_set_text(&pairs->keys[at], key);
    if (!status) status = ort_set_text(&pairs->values[at], value);
    if (status)
        free(pairs->keys[at]);
    else
        pairs->count++;
    return status;
}

const char *ort_pairs_get(const struct OrtKeyValuePairs *pairs, const char *key)
{
    const size_t at = find_key(pairs, key);
    return at < pairs->count ? pairs->values[at] : NULL;
}

OrtStatusPtr ort_pairs_copy(struct OrtKeyValuePairs *to, const struct OrtKeyValuePairs *from)
{
    for (size_t i = 0; i < from->count; i++)
        ORT_TRY(ort_pairs_set(to, from->keys[i], from->values[i]));
    return NULL;
}

void ort_pairs_deinit(struct OrtKeyValuePairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        free(pairs->keys[i]);
        free(pairs->values[i]);
    }
    free(pairs->keys);
    free(pairs->values);
    *pairs = (struct OrtKeyValuePairs){0};
}

static void create_pairs(OrtKeyValuePairs **out)
{
    *out = calloc(1, sizeof **out);
}

/* Programs see pairs in the order in which keys came, sorted by key since one was replaced or
 * removed. */
static void sort_pairs(OrtKeyValuePairs *pairs)
{
    for (size_t i = 1; i < pairs->count; i++) {
        char *key = pairs->keys[i], *value = pairs->values[i];
        size_t at = i;
        for (; at > 0 && strcmp(pairs->keys[at - 1], key) > 0; at--) {
            pairs->keys[at] = pairs->keys[at - 1];
            pairs->values[at] = pairs->values[at - 1];
        }
        pairs->keys[at] = key;
        pairs->values[at] = value;
    }
}

static void add_pair(OrtKeyValuePairs *pairs, const char *key, const char *value)
{
    if (!pairs || !key || !*key || !value) return;
    const bool again = ort_pairs_get(pairs, key) != NULL;
    OrtStatusPtr status = ort_pairs_set(pairs, key, value);
    if (again) sort_pairs(pairs);
    ort_release_status(status); /* the caller cannot be told */
}

static const char *get_pair(const OrtKeyValuePairs *pairs, const char *key)
{
    return ort_pairs_get(pairs, key);
}

static void get_pairs(const OrtKeyValuePairs *pairs, const char *const **keys,
                      const char *const **values, size_t *count)
{
    *keys = pairs ? (const char *const *)pairs->keys : NULL;
    *values = pairs ? (const char *const *)pairs->values : NULL;
    *count = pairs ? pairs->count : 0;
}

static void remove_pair(OrtKeyValuePairs *pairs, const char *key)
{
    const size_t at = find_key(pairs, key);
    if (at == pairs->count) return;
    free(pairs->keys[at]);
    free(pairs->values[at]);
    pairs->count--;
    pairs->keys[at] = pairs->keys[pairs->count];
    pairs->values[at] = pairs->values[pairs->count];
    sort_pairs(pairs);
}

static void release_pairs(OrtKeyValuePairs *pairs)
{
    if (pairs) ort_pairs_deinit(pairs);
    free(pairs);
}

void ort_fill_text(OrtApi *api)
{
    api->CreateKeyValuePairs = create_pairs;
    api->AddKeyValuePair = add_pair;
    api->GetKeyValue = get_pair;
    api->GetKeyValuePairs = get_pairs;
    api->RemoveKeyValuePair = remove_pair;
    api->ReleaseKeyValuePairs = release_pairs;
}
