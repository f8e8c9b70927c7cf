/* SPDX-License-Identifier: Apache-2.0
 * Regions on large pages, of which only those that blocks lie on are had: the last one of a region
 * is not full, so there are few regions. The first one is on small pages, as a small model would
 * not fill the last large one; they are had block by block, not fault by fault. Where memory comes
 * from an allocator of the program, and under AddressSanitizer, which shall see where a block ends,
 * each block is one of sdx_mem. */
#include "base/pages.h"

#include <sys/mman.h>

enum { LINE = 64, HUGE = 2 << 20, FIRST = 16 << 20, REGION_LEAST = 32 << 20 };
enum { REGION = sizeof(void *) > 4 ? 1 << 30 : REGION_LEAST };

struct sdx_region {
    struct sdx_region *next;
    size_t mapped; /* bytes; 0: one block, of sdx_mem */
};
_Static_assert(sizeof(struct sdx_region) <= LINE, "the head of a region fits in one line");

void sdx_pages_init(struct sdx_pages *pages, struct sdx_mem *mem, enum sdx_mem_tag tag)
{
    *pages = (struct sdx_pages){.mem = mem, .tag = tag};
}

static bool maps(const struct sdx_pages *pages)
{
#ifdef __SANITIZE_ADDRESS__
    (void)pages;
    return false;
#else
    return sdx_mem_is_malloc(pages->mem);
#endif
}

static char *map_anonymous(size_t size)
{
#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *base = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}
/* `size`, a multiple of HUGE, at a multiple of it. */
static char *map_huge(size_t size)
{
    char *base = map_anonymous(size + HUGE);
    if (!base) return NULL;
    const size_t skip = (HUGE - (uintptr_t)base % HUGE) % HUGE;
    if (skip) (void)munmap(base, skip);
    if (skip < HUGE) (void)munmap(base + skip + size, HUGE - skip);
#ifdef MADV_HUGEPAGE
    (void)madvise(base + skip, size, MADV_HUGEPAGE); /* only a hint */
#endif
    return base + skip;
}

static bool add_region(struct sdx_pages *pages, struct sdx_region *region, size_t mapped)
{
    if (!region) return false;
    *region = (struct sdx_region){.next = pages->regions, .mapped = mapped};
    pages->regions = region;
    return true;
}
/* A new region with room for `size` and its head. */
static bool grow(struct sdx_pages *pages, size_t size)
{
    const bool first = !pages->regions && size <= FIRST;
    size_t mapped = FIRST, least = 0;
    void *region = NULL;
    if (first) {
        region = map_anonymous(mapped);
    } else {
        if (!sdx_add_size(size, HUGE - 1, &least)) return false;
        least = least < REGION_LEAST ? REGION_LEAST : least / HUGE * HUGE;
        mapped = least < REGION ? REGION : least;
        region = map_huge(mapped);
        if (!region) region = map_huge(mapped = least); /* addresses may be limited */
    }
    if (!add_region(pages, region, mapped)) return false;
    pages->at = (char *)pages->regions + LINE;
    pages->left = mapped - LINE;
    return true;
}

void *sdx_pages_alloc(struct sdx_pages *pages, size_t size)
{
    size_t room;
    if (!sdx_add_size(size, 2 * LINE, &room)) return NULL;
    if (!maps(pages)) {
        struct sdx_region *one = sdx_mem_alloc(pages->mem, pages->tag, size + LINE);
        return add_region(pages, one, 0) ? (char *)one + LINE : NULL;
    }
    room = room / LINE * LINE; /* with the head of a region */
    if (!sdx_mem_count(pages->mem, pages->tag, size)) return NULL;
    if (pages->left < room - LINE && !grow(pages, room)) {
        sdx_mem_uncount(pages->mem, pages->tag, size);
        return NULL;
    }
    pages->counted += size;
    char *block = pages->at;
    pages->at += room - LINE;
    pages->left -= room - LINE;
    if (!pages->regions->next) sdx_mem_populate(block, pages->at);
    return block;
}

void sdx_pages_trim(struct sdx_pages *pages, void *block, size_t size, size_t used)
{
    if (!maps(pages)) return;
    char *end = (char *)block + (used + LINE - 1) / LINE * LINE;
    SDX_ASSERT(used <= size && end <= pages->at);
    pages->left += (size_t)(pages->at - end);
    pages->at = end;
    pages->counted -= size - used;
    sdx_mem_uncount(pages->mem, pages->tag, size - used);
}

void sdx_pages_deinit(struct sdx_pages *pages)
{
    for (struct sdx_region *region = pages->regions, *next; region; region = next) {
        next = region->next;
        if (region->mapped)
            (void)munmap(region, region->mapped);
        else
            sdx_mem_free(pages->mem, region);
    }
    sdx_mem_uncount(pages->mem, pages->tag, pages->counted);
    sdx_pages_init(pages, pages->mem, pages->tag);
}
