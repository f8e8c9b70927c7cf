/* SPDX-License-Identifier: Apache-2.0
 * Arenas: objects are cut from blocks that double in size; big objects get a block of their own
 * behind the current one, so the room left in it stays in use. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"

enum { BLOCK_FIRST = 4096, BLOCK_LARGEST = 1 << 20, BLOCK_HEAD = 64, WIDE = 256 };

struct sdx_arena_block {
    struct sdx_arena_block *next; /* older */
    size_t size;                  /* of the content behind the head */
};

_Static_assert(sizeof(struct sdx_arena_block) <= BLOCK_HEAD, "the head keeps the alignment");

void sdx_arena_init(struct sdx_arena *arena, struct sdx_mem *mem, enum sdx_mem_tag tag)
{
    *arena = (struct sdx_arena){.mem = mem, .tag = tag};
}

void sdx_arena_deinit(struct sdx_arena *arena)
{
    for (struct sdx_arena_block *block = arena->blocks, *next; block != NULL; block = next) {
        next = block->next;
        sdx_mem_free(arena->mem, block);
    }
    arena->blocks = NULL;
    arena->at = arena->end = NULL;
}

static char *content_of(struct sdx_arena_block *block)
{
    return (char *)block + BLOCK_HEAD;
}

static void use_block(struct sdx_arena *arena, struct sdx_arena_block *block)
{
    arena->at = content_of(block);
    arena->end = arena->at + block->size;
}

void sdx_arena_reset(struct sdx_arena *arena)
{
    if (arena->blocks == NULL) return;
    struct sdx_arena_block *block = arena->blocks;
    while (block->next != NULL) {
        struct sdx_arena_block *next = block->next;
        sdx_mem_free(arena->mem, block);
        block = next;
    }
    arena->blocks = block;
    use_block(arena, block);
}

static struct sdx_arena_block *new_block(struct sdx_arena *arena, size_t size)
{
    size_t total;
    if (!sdx_add_size(size, BLOCK_HEAD, &total)) total = SIZE_MAX;
    struct sdx_arena_block *block = sdx_mem_alloc(arena->mem, arena->tag, total);
    if (block == NULL) return NULL;
    *block = (struct sdx_arena_block){.next = NULL, .size = size};
    return block;
}

static void *alloc_from_new_block(struct sdx_arena *arena, size_t size)
{
    size_t wanted = BLOCK_FIRST;
    if (arena->blocks != NULL) {
        wanted = arena->blocks->size >= BLOCK_LARGEST / 2 ? BLOCK_LARGEST : arena->blocks->size * 2;
        if (wanted < BLOCK_FIRST) wanted = BLOCK_FIRST;
    }
    if (size > wanted / 4 && arena->blocks != NULL) { /* a block of its own, behind the current */
        struct sdx_arena_block *block = new_block(arena, size);
        if (block == NULL) return NULL;
        block->next = arena->blocks->next;
        arena->blocks->next = block;
        return memset(content_of(block), 0, size);
    }
    struct sdx_arena_block *block = new_block(arena, size > wanted ? size : wanted);
    if (block == NULL) return NULL;
    block->next = arena->blocks;
    arena->blocks = block;
    use_block(arena, block);
    char *object = arena->at;
    arena->at += size;
    return memset(object, 0, size);
}

void *sdx_arena_alloc(struct sdx_arena *arena, size_t size)
{
    if (size == 0) size = 1;
    size_t alignment = size >= WIDE ? 64 : 16;
    size_t past = (uintptr_t)arena->at % alignment;
    size_t padding = past ? alignment - past : 0;
    size_t room = (size_t)(arena->end - arena->at);
    if (room < padding || room - padding < size) return alloc_from_new_block(arena, size);
    char *object = arena->at + padding;
    arena->at = object + size;
    return memset(object, 0, size);
}

void *sdx_arena_array(struct sdx_arena *arena, size_t count, size_t size)
{
    size_t total;
    return sdx_mul_size(count, size, &total) ? sdx_arena_alloc(arena, total) : NULL;
}

void *sdx_arena_copy(struct sdx_arena *arena, const void *bytes, size_t size)
{
    void *copy = sdx_arena_alloc(arena, size);
    if (copy != NULL && size != 0) memcpy(copy, bytes, size);
    return copy;
}

char *sdx_arena_strndup(struct sdx_arena *arena, const char *text, size_t length)
{
    size_t size;
    if (!sdx_add_size(length, 1, &size)) return NULL;
    char *copy = sdx_arena_alloc(arena, size);
    if (copy != NULL && length != 0) memcpy(copy, text, length);
    return copy;
}

char *sdx_arena_printf(struct sdx_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = length < 0 ? NULL : sdx_arena_alloc(arena, (size_t)length + 1);
    if (text != NULL) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}
