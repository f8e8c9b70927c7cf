/* SPDX-License-Identifier: Apache-2.0
 * Counted memory. A block is [padding][head: 64 bytes][content], the content 64-byte aligned. What
 * a block counts for is its content; heads are left out so that limits mean what users ask for. */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"

enum { ALIGNMENT = 64 };

struct head {
    void *base; /* what the allocator gave */
    size_t size, room;
    uint32_t tag;
    uint32_t mark; /* tells a block of ours from a stray pointer */
};

enum { MARK_LIVE = 0x5d0a11fe, MARK_FREED = 0x0dead0ff };

_Static_assert(sizeof(struct head) <= ALIGNMENT, "the head fits in one unit of alignment");

void sdx_mem_init(struct sdx_mem *mem, struct sdx_mem *parent, size_t limit)
{
    mem->alloc = NULL;
    mem->free = NULL;
    mem->user = NULL;
    mem->parent = parent;
    mem->limit = limit;
    atomic_init(&mem->now, 0);
    atomic_init(&mem->peak, 0);
    for (int i = 0; i < SDX_MEM_TAG_COUNT; i++) {
        atomic_init(&mem->tag_now[i], 0);
        atomic_init(&mem->tag_peak[i], 0);
    }
    atomic_init(&mem->count, 0);
    atomic_init(&mem->fail_at, -1);
    atomic_init(&mem->failed, 0);
    atomic_init(&mem->failed_limit, 0);
    atomic_init(&mem->failed_by_limit, false);
    mem->kept = NULL;
}

static struct head *head_of(const void *block)
{
    struct head *head = (struct head *)(void *)((char *)(uintptr_t)block - ALIGNMENT);
    SDX_ASSERT(head->mark == MARK_LIVE);
    return head;
}

static void raise_peak(atomic_size_t *peak, size_t now)
{
    size_t seen = atomic_load_explicit(peak, memory_order_relaxed);
    while (seen < now && !atomic_compare_exchange_weak_explicit(
                             peak, &seen, now, memory_order_relaxed, memory_order_relaxed)) {
    }
}

static void count_out(struct sdx_mem *mem, const struct sdx_mem *end, uint32_t tag, size_t size)
{
    for (; mem != end; mem = mem->parent) {
        atomic_fetch_sub_explicit(&mem->now, size, memory_order_relaxed);
        atomic_fetch_sub_explicit(&mem->tag_now[tag], size, memory_order_relaxed);
    }
}

/* Counts `size` at one level. false: over its limit, or a test asked for a failure. */
static bool count_in_level(struct sdx_mem *mem, uint32_t tag, size_t size, bool *by_limit)
{
    if (atomic_load_explicit(&mem->fail_at, memory_order_relaxed) >= 0 &&
        atomic_fetch_sub(&mem->fail_at, 1) == 0)
        return false;
    size_t now = 0;
    if (mem->limit == 0) {
        now = atomic_fetch_add_explicit(&mem->now, size, memory_order_relaxed);
    } else {
        now = atomic_load_explicit(&mem->now, memory_order_relaxed);
        do {
            if (size > SIZE_MAX - now || now + size > mem->limit) {
                *by_limit = true;
                return false;
            }
        } while (!atomic_compare_exchange_weak_explicit(
            &mem->now, &now, now + size, memory_order_relaxed, memory_order_relaxed));
    }
    raise_peak(&mem->peak, now + size);
    size_t tag_now =
        atomic_fetch_add_explicit(&mem->tag_now[tag], size, memory_order_relaxed) + size;
    raise_peak(&mem->tag_peak[tag], tag_now);
    /* a statistic: threads that allocate at once may lose one */
    atomic_store_explicit(&mem->count, atomic_load_explicit(&mem->count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    return true;
}

/* The level whose allocator serves `mem`: the nearest that has one, else the top. */
static struct sdx_mem *server_of(struct sdx_mem *mem)
{
    while (mem->alloc == NULL && mem->parent != NULL)
        mem = mem->parent;
    return mem;
}

/* Leaves the reason at every level, as any of them may be the one that a context asks. `limiting`:
 * the level whose limit it was, or NULL. */
static void *refuse(struct sdx_mem *mem, size_t size, const struct sdx_mem *limiting)
{
    for (; mem != NULL; mem = mem->parent) {
        atomic_store(&mem->failed, size);
        atomic_store(&mem->failed_limit, limiting != NULL ? limiting->limit : 0);
        atomic_store(&mem->failed_by_limit, limiting != NULL);
    }
    return NULL;
}

void sdx_mem_populate(char *begin, const char *end)
{
#ifdef MADV_POPULATE_WRITE
    enum { PAGE = 4096 };
    begin -= (uintptr_t)begin % PAGE;
    (void)madvise(begin, (size_t)(end - begin), MADV_POPULATE_WRITE);
#else
    (void)begin, (void)end;
#endif
}

/* What is used as a whole, the kinds `slab`, `scratch` and `tensor` from malloc, gets its pages at
 * once, not fault by fault; from one large page on they are large pages, where the system gives
 * them: fewer faults and table walks. Results of each run may be new to the process. Only hints.
 * Constants have pages.h. */
enum { MANY = 64 << 10, LARGE_PAGE = 2 << 20 };

/* The first large page of `size` bytes and two large pages more from base on; the last one of
 * `size` is not asked for unless it is nearly full. */
static char *at_large_page(char *base, size_t size)
{
    char *begin = base + (LARGE_PAGE - (uintptr_t)base % LARGE_PAGE) % LARGE_PAGE;
#ifdef MADV_HUGEPAGE
    const size_t rest = size % LARGE_PAGE, more = rest >= LARGE_PAGE / 4 * 3 ? LARGE_PAGE : 0;
    (void)madvise(begin, (size + more) / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
#endif
    return begin;
}

/* ---- blocks that wait for the next ones ---- */

/* No lock, as a fork may find it taken. What a slot's room says is a hint; the head knows. */
enum { SLOTS = 128 };
struct sdx_kept {
    atomic_uint next; /* slot of the oldest block */
    atomic_size_t bytes;
    struct {
        struct head *_Atomic head; /* NULL: free */
        atomic_size_t room;
    } slots[SLOTS];
};

bool sdx_mem_keep(struct sdx_mem *mem)
{
#ifdef __SANITIZE_ADDRESS__ /* which shall see what is freed */
    (void)mem;
    return true;
#else
    if (mem->limit > 0 || !sdx_mem_is_malloc(mem)) return true;
    mem->kept = sdx_mem_calloc(mem, SDX_MEM_OTHER, 1, sizeof *mem->kept);
    return mem->kept != NULL;
#endif
}

static void let_go(struct sdx_kept *kept, struct head *head)
{
    if (!head) return;
    atomic_fetch_sub(&kept->bytes, head->room);
    free(head->base);
}

static void let_all_go(struct sdx_kept *kept)
{
    for (int i = 0; i < SLOTS; i++)
        let_go(kept, atomic_exchange(&kept->slots[i].head, NULL));
}

void sdx_mem_keep_end(struct sdx_mem *mem)
{
    if (!mem->kept) return;
    let_all_go(mem->kept);
    sdx_mem_free(mem, mem->kept);
    mem->kept = NULL;
}

/* The next one may have a row more. */
static size_t room_behind(size_t size)
{
    return size / 8;
}
/* A block with room for `size`, at most twice that. NULL: none. */
static struct head *take_kept(struct sdx_kept *kept, size_t size)
{
    for (int i = 0; i < SLOTS; i++) {
        const size_t room = atomic_load_explicit(&kept->slots[i].room, memory_order_relaxed);
        if (room < size || room / 2 > size) continue;
        struct head *head = atomic_exchange(&kept->slots[i].head, NULL);
        if (!head) continue;
        if (head->room >= size) {
            atomic_fetch_sub(&kept->bytes, head->room);
            return head;
        }
        let_go(kept, head);
    }
    return NULL;
}

/* The oldest make room. */
static void keep(struct sdx_mem *server, struct head *head)
{
    struct sdx_kept *kept = server->kept;
    const size_t peak = atomic_load(&server->tag_peak[SDX_MEM_TENSOR]);
    const size_t most = peak + room_behind(peak);
    const size_t room = head->room; /* once in a slot, the head is another's */
    unsigned at = atomic_fetch_add(&kept->next, 1);
    atomic_fetch_add(&kept->bytes, room);
    struct head *old = atomic_exchange(&kept->slots[at % SLOTS].head, head);
    atomic_store_explicit(&kept->slots[at % SLOTS].room, room, memory_order_relaxed);
    let_go(kept, old);
    for (int i = 0; i < SLOTS && atomic_load(&kept->bytes) > most; i++)
        let_go(kept, atomic_exchange(&kept->slots[++at % SLOTS].head, NULL));
}

/* ---- blocks ---- */

bool sdx_mem_count(struct sdx_mem *mem, enum sdx_mem_tag tag, size_t size)
{
    bool by_limit = false;
    for (struct sdx_mem *level = mem; level != NULL; level = level->parent) {
        if (!count_in_level(level, tag, size, &by_limit)) {
            count_out(mem, level, tag, size);
            (void)refuse(mem, size, by_limit ? level : NULL);
            return false;
        }
    }
    return true;
}

void sdx_mem_uncount(struct sdx_mem *mem, enum sdx_mem_tag tag, size_t size)
{
    count_out(mem, NULL, tag, size);
}

bool sdx_mem_is_malloc(struct sdx_mem *mem)
{
    return server_of(mem)->alloc == NULL;
}

void *sdx_mem_alloc(struct sdx_mem *mem, enum sdx_mem_tag tag, size_t size)
{
    SDX_ASSERT(tag < SDX_MEM_TAG_COUNT);
    const struct sdx_mem *server = server_of(mem);
    const bool is_whole = tag == SDX_MEM_SLAB || tag == SDX_MEM_SCRATCH || tag == SDX_MEM_TENSOR;
    const bool has_pages = !server->alloc && is_whole;
    const bool is_large = has_pages && size >= LARGE_PAGE;
    const bool is_kept = server->kept && tag == SDX_MEM_TENSOR && size >= MANY;
    size_t room, total;
    if (!sdx_add_size(size, is_kept ? room_behind(size) : 0, &room) ||
        !sdx_add_size(room, is_large ? 2 * LARGE_PAGE : 2 * ALIGNMENT, &total))
        return refuse(mem, size, NULL);
    if (!sdx_mem_count(mem, tag, size)) return NULL;
    struct head *waiting = is_kept ? take_kept(server->kept, size) : NULL;
    if (waiting) {
        waiting->size = size;
        waiting->mark = MARK_LIVE;
        return (char *)waiting + ALIGNMENT;
    }
    char *base = server->alloc != NULL ? server->alloc(total, server->user) : malloc(total);
    if (base == NULL && server->kept) {
        let_all_go(server->kept);
        base = malloc(total);
    }
    if (base == NULL) {
        count_out(mem, NULL, tag, size);
        return refuse(mem, size, NULL);
    }
    char *first = is_large ? at_large_page(base, size + ALIGNMENT) : base;
    size_t past = (uintptr_t)first % ALIGNMENT;
    char *block = first + ALIGNMENT + (past ? ALIGNMENT - past : 0);
    if (has_pages && size >= MANY) sdx_mem_populate(first, block + size);
    struct head *head = (struct head *)(void *)(block - ALIGNMENT);
    *head = (struct head){.base = base, .size = size, .room = room, .tag = tag, .mark = MARK_LIVE};
    return block;
}

void *sdx_mem_calloc(struct sdx_mem *mem, enum sdx_mem_tag tag, size_t count, size_t size)
{
    size_t total;
    if (!sdx_mul_size(count, size, &total)) return refuse(mem, SIZE_MAX, NULL);
    void *block = sdx_mem_alloc(mem, tag, total);
    if (block != NULL) memset(block, 0, total);
    return block;
}

void *sdx_mem_realloc(struct sdx_mem *mem, enum sdx_mem_tag tag, void *block, size_t size)
{
    void *grown = sdx_mem_alloc(mem, tag, size);
    if (grown == NULL || block == NULL) return grown;
    size_t kept = sdx_mem_size(block);
    memcpy(grown, block, kept < size ? kept : size);
    sdx_mem_free(mem, block);
    return grown;
}

void sdx_mem_free(struct sdx_mem *mem, void *block)
{
    if (block == NULL) return;
    struct head *head = head_of(block);
    void *base = head->base;
    count_out(mem, NULL, head->tag, head->size);
    head->mark = MARK_FREED;
    struct sdx_mem *server = server_of(mem);
    if (server->kept && head->tag == SDX_MEM_TENSOR && head->size >= MANY)
        keep(server, head);
    else if (server->alloc == NULL)
        free(base);
    else if (server->free != NULL)
        server->free(base, server->user);
}

size_t sdx_mem_size(const void *block)
{
    return head_of(block)->size;
}

bool sdx_mul_size(size_t a, size_t b, size_t *out)
{
    if (a != 0 && b > SIZE_MAX / a) return false;
    *out = a * b;
    return true;
}

bool sdx_add_size(size_t a, size_t b, size_t *out)
{
    if (b > SIZE_MAX - a) return false;
    *out = a + b;
    return true;
}

bool sdx_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)
              : (b > 0 ? a < INT64_MIN / b : a != 0 && b < INT64_MAX / a))
        return false;
    *out = a * b;
    return true;
}

bool sdx_add_i64(int64_t a, int64_t b, int64_t *out)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return false;
    *out = a + b;
    return true;
}
