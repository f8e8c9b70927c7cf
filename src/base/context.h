/* SPDX-License-Identifier: Apache-2.0
 * The surroundings of a piece of work: error text, memory, log, threads. Loader, session and run
 * each have one. The first failure wins: nobody overwrites its text until sdx_context_clear. */
#ifndef SDX_BASE_CONTEXT_H
#define SDX_BASE_CONTEXT_H

#include <stdarg.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "sardonyx/sardonyx.h"

struct sdx_mem;
struct sdx_pool;

enum { SDX_ERROR_TEXT = 1024 };

struct sdx_error {
    atomic_int
        taken; /* 0 free, 1 being written, 2 set; parts of a parallel step may fail together */
    enum sdx_status status;
    const char *file;
    int line;
    char text[SDX_ERROR_TEXT];
};

struct sdx_context {
    struct sdx_error error;
    struct sdx_mem *mem;   /* never NULL */
    struct sdx_pool *pool; /* NULL: the caller's thread only */
    sdx_log_fn log;        /* may be NULL */
    void *log_user;
    sdx_log_level log_level;
    bool owns_mem, owns_pool;
};

/* A context that shares `parent`'s memory, pool and log, with an error text of its own. Storage is
 * the caller's; nothing to release. */
void sdx_context_init_child(struct sdx_context *cx, const struct sdx_context *parent);
void sdx_context_clear(struct sdx_context *cx);

/* Stores code, text and place in `cx` unless an earlier failure is held; returns `status`. */
enum sdx_status sdx_fail(struct sdx_context *cx, enum sdx_status status, const char *file, int line,
                         const char *format, ...) SDX_PRINTF(5, 6);
#define SDX_FAIL(cx, status, ...) sdx_fail((cx), (status), __FILE__, __LINE__, __VA_ARGS__)
/* "out of memory: N bytes for WHAT", or the limit's text when the limit was the reason. */
#define SDX_FAIL_MEMORY(cx) sdx_fail_memory((cx), __FILE__, __LINE__)
enum sdx_status sdx_fail_memory(struct sdx_context *cx, const char *file, int line);
/* Puts "where: " in front of the text held (once a level; upper layers say where). Returns the held
 * code. */
enum sdx_status sdx_fail_where(struct sdx_context *cx, const char *format, ...) SDX_PRINTF(2, 3);

/* Returns at once when nothing is held; otherwise set pointers to NULL first and `goto done`. */
#define SDX_TRY(call)                                                                              \
    do {                                                                                           \
        enum sdx_status try_status_ = (call);                                                      \
        if (SDX_UNLIKELY(try_status_ != SDX_OK)) return try_status_;                               \
    } while (0)

void sdx_log(const struct sdx_context *cx, sdx_log_level level, const char *area,
             const char *format, ...) SDX_PRINTF(4, 5);
#endif
