/* SPDX-License-Identifier: Apache-2.0
 * Counted memory: the only callers of malloc. Every block is 64-byte aligned, carries its size and
 * a tag, counts against a limit, and can be made to fail for tests. Safe from several threads. */
#ifndef SDX_BASE_MEM_H
#define SDX_BASE_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* X(tag, name shown by `sardonyx run --memory`) */
#define SDX_MEM_TAGS(X)                                                                            \
    X(SDX_MEM_OTHER, "other")                                                                      \
    X(SDX_MEM_MODEL, "model")                                                                      \
    X(SDX_MEM_WEIGHTS, "weights")                                                                  \
    X(SDX_MEM_PLAN, "plan")                                                                        \
    X(SDX_MEM_SLAB, "slab")                                                                        \
    X(SDX_MEM_SCRATCH, "scratch")                                                                  \
    X(SDX_MEM_TENSOR, "tensor")

enum sdx_mem_tag {
#define SDX_MEM_TAG_ENUM(tag, name) tag,
    SDX_MEM_TAGS(SDX_MEM_TAG_ENUM)
#undef SDX_MEM_TAG_ENUM
        SDX_MEM_TAG_COUNT
};

struct sdx_mem {
    void *(*alloc)(size_t size, void *user); /* NULL: malloc */
    void (*free)(void *block, void *user);
    void *user;
    struct sdx_mem *parent; /* counts and limits apply there too; NULL at the top */
    size_t limit;           /* 0: none */
    atomic_size_t now, peak;
    atomic_size_t tag_now[SDX_MEM_TAG_COUNT], tag_peak[SDX_MEM_TAG_COUNT];
    atomic_size_t count;  /* allocations made so far: tests compare it before and after a run */
    atomic_llong fail_at; /* 0: the next allocation fails, 1: the one after it ...; < 0: none */
    /* The last allocation that was refused here or below: its size, and whether and which limit was
     * the reason. */
    atomic_size_t failed, failed_limit;
    atomic_bool failed_by_limit;
    struct sdx_kept *kept; /* of sdx_mem_keep(); NULL: none */
};

/* `parent` may be NULL. */
void sdx_mem_init(struct sdx_mem *mem, struct sdx_mem *parent, size_t limit);
/* From now on large blocks of the kind `tensor` that are freed at this level or below wait for the
 * next ones, as results of one run do for those of the run after; as many bytes at most as such
 * blocks had at once. Nothing where a limit holds or an allocator of the program serves. The level
 * is left by sdx_mem_keep_end(), when nothing allocates any more. */
bool sdx_mem_keep(struct sdx_mem *mem); /* false: no memory */
void sdx_mem_keep_end(struct sdx_mem *mem);
/* Size 0 is allowed and gives a unique block. Not zeroed. NULL: no memory, or over the limit. */
void *sdx_mem_alloc(struct sdx_mem *mem, enum sdx_mem_tag tag, size_t size);
void *sdx_mem_calloc(struct sdx_mem *mem, enum sdx_mem_tag tag, size_t count,
                     size_t size); /* zeroed, checked product */
/* Keeps the content; on failure the old block stays. `block` may be NULL. */
void *sdx_mem_realloc(struct sdx_mem *mem, enum sdx_mem_tag tag, void *block, size_t size);
void sdx_mem_free(struct sdx_mem *mem, void *block); /* NULL allowed */
size_t sdx_mem_size(const void *block);              /* of a block of ours */

/* For memory that comes from elsewhere: counts it, or refuses it as sdx_mem_alloc does; and counts
 * it out. */
bool sdx_mem_count(struct sdx_mem *mem, enum sdx_mem_tag tag, size_t size);
void sdx_mem_uncount(struct sdx_mem *mem, enum sdx_mem_tag tag, size_t size);
/* Only a hint: the pages of the bytes begin .. end - 1 at once, not fault by fault. */
void sdx_mem_populate(char *begin, const char *end);
bool sdx_mem_is_malloc(struct sdx_mem *mem); /* no allocator of the program serves it */

/* Checked size arithmetic: false when the result does not fit. */
bool sdx_mul_size(size_t a, size_t b, size_t *out);
bool sdx_add_size(size_t a, size_t b, size_t *out);
bool sdx_mul_i64(int64_t a, int64_t b, int64_t *out);
bool sdx_add_i64(int64_t a, int64_t b, int64_t *out);

/* Arena: objects are never freed one by one. Storage of the struct is the caller's. */
struct sdx_arena {
    struct sdx_mem *mem;
    struct sdx_arena_block *blocks; /* newest first */
    char *at, *end;
    enum sdx_mem_tag tag;
};

void sdx_arena_init(struct sdx_arena *arena, struct sdx_mem *mem, enum sdx_mem_tag tag);
void sdx_arena_deinit(struct sdx_arena *arena);
void sdx_arena_reset(struct sdx_arena *arena); /* all objects gone, the first block kept */
/* Zeroed, 16-byte aligned (64 for size >= 256). NULL: no memory. */
void *sdx_arena_alloc(struct sdx_arena *arena, size_t size);
void *sdx_arena_array(struct sdx_arena *arena, size_t count, size_t size); /* checked product */
void *sdx_arena_copy(struct sdx_arena *arena, const void *bytes, size_t size);
char *sdx_arena_strndup(struct sdx_arena *arena, const char *text,
                        size_t length); /* NUL-terminated */
char *sdx_arena_printf(struct sdx_arena *arena, const char *format, ...) SDX_PRINTF(2, 3);
#endif
