/* SPDX-License-Identifier: Apache-2.0
 * Memory for what is large, made once and kept: blocks side by side in regions on large pages,
 * where the system has them, given back all together. A block of its own from malloc would lie on
 * small pages at both ends, whose faults cost more than filling them. Not safe from several
 * threads. */
#ifndef SDX_BASE_PAGES_H
#define SDX_BASE_PAGES_H

#include "base/mem.h"

/* Storage of the struct is the caller's. */
struct sdx_pages {
    struct sdx_mem *mem;
    struct sdx_region *regions; /* newest first */
    char *at;                   /* what is left of the newest: */
    size_t left;                /* so many bytes */
    size_t counted;             /* at `mem`, in mapped regions */
    enum sdx_mem_tag tag;
};

void sdx_pages_init(struct sdx_pages *pages, struct sdx_mem *mem, enum sdx_mem_tag tag);
/* 64-byte aligned, not zeroed, counted as its size. NULL: no memory, or over the limit. */
void *sdx_pages_alloc(struct sdx_pages *pages, size_t size);
/* Of the newest block, of `size` bytes, only `used` are kept. */
void sdx_pages_trim(struct sdx_pages *pages, void *block, size_t size, size_t used);
void sdx_pages_deinit(struct sdx_pages *pages); /* all blocks are gone */
#endif
