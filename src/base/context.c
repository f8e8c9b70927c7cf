/* SPDX-License-Identifier: Apache-2.0
 * Error texts. The first failure wins, also among the parts of a parallel step: whoever turns
 * `taken` from 0 to 1 writes. Texts quote names from files, so what would break a line or is not
 * UTF-8 is replaced here, once, for everybody. */
#include "base/context.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { TAKEN_FREE, TAKEN_WRITING, TAKEN_SET };

void sdx_context_init_child(struct sdx_context *cx, const struct sdx_context *parent)
{
    memset(cx, 0, sizeof *cx);
    atomic_init(&cx->error.taken, TAKEN_FREE);
    cx->mem = parent->mem;
    cx->pool = parent->pool;
    cx->log = parent->log;
    cx->log_user = parent->log_user;
    cx->log_level = parent->log_level;
}

/* Threads may share a context: where there is nothing to clear, nothing is written. */
void sdx_context_clear(struct sdx_context *cx)
{
    int expected = TAKEN_SET;
    if (atomic_load_explicit(&cx->error.taken, memory_order_acquire) != TAKEN_SET ||
        !atomic_compare_exchange_strong(&cx->error.taken, &expected, TAKEN_WRITING))
        return;
    cx->error.status = SDX_OK;
    cx->error.file = NULL;
    cx->error.line = 0;
    cx->error.text[0] = '\0';
    atomic_store_explicit(&cx->error.taken, TAKEN_FREE, memory_order_release);
}

/* Bytes of the UTF-8 character at `at` (size > 0 left), 0 when it is none. */
static size_t utf8_length(const char *at, size_t left)
{
    for (size_t n = 1; n <= 4 && n <= left; n++)
        if (sdx_str_is_utf8((struct sdx_str){at, n})) return n;
    return 0;
}

/* One line of UTF-8: control characters and broken bytes become '?'. */
static void make_plain(char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len;) {
        unsigned char byte = (unsigned char)text[i];
        size_t n = byte < 0x80 ? (byte >= 0x20 && byte != 0x7f) : utf8_length(text + i, len - i);
        if (n == 0) {
            text[i] = '?';
            n = 1;
        }
        i += n;
    }
}

static void set_text(struct sdx_error *error, const char *format, va_list args)
{
    if (vsnprintf(error->text, sizeof error->text, format, args) < 0) error->text[0] = '\0';
    make_plain(error->text);
}

enum sdx_status sdx_fail(struct sdx_context *cx, enum sdx_status status, const char *file, int line,
                         const char *format, ...)
{
    SDX_ASSERT(status != SDX_OK);
    int expected = TAKEN_FREE;
    if (cx == NULL || !atomic_compare_exchange_strong(&cx->error.taken, &expected, TAKEN_WRITING))
        return status;
    cx->error.status = status;
    cx->error.file = file;
    cx->error.line = line;
    va_list args;
    va_start(args, format);
    set_text(&cx->error, format, args);
    va_end(args);
    atomic_store_explicit(&cx->error.taken, TAKEN_SET, memory_order_release);
    return status;
}

enum sdx_status sdx_fail_memory(struct sdx_context *cx, const char *file, int line)
{
    if (cx == NULL) return SDX_OUT_OF_MEMORY;
    size_t size = atomic_load(&cx->mem->failed);
    if (!atomic_load(&cx->mem->failed_by_limit))
        return sdx_fail(cx, SDX_OUT_OF_MEMORY, file, line, "out of memory: %zu bytes asked", size);
    return sdx_fail(cx, SDX_OUT_OF_MEMORY, file, line,
                    "memory limit of %zu bytes reached: %zu bytes asked",
                    atomic_load(&cx->mem->failed_limit), size);
}

enum sdx_status sdx_fail_where(struct sdx_context *cx, const char *format, ...)
{
    if (atomic_load_explicit(&cx->error.taken, memory_order_acquire) != TAKEN_SET)
        return cx->error.status;
    char where[SDX_ERROR_TEXT], text[SDX_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    if (vsnprintf(where, sizeof where, format, args) < 0) where[0] = '\0';
    va_end(args);
    memcpy(text, cx->error.text, sizeof text);
    int room = SDX_ERROR_TEXT / 2; /* the place may not push the reason out */
    snprintf(cx->error.text, sizeof cx->error.text, "%.*s: %.*s", room, where, SDX_ERROR_TEXT,
             text);
    make_plain(cx->error.text);
    return cx->error.status;
}
