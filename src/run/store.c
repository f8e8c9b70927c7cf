/* SPDX-License-Identifier: Apache-2.0
 * Packed constants: a chained hash table under a lock. Packing happens under the lock too: it is
 * done once, and a second session then waits for the result instead of repeating the work. */
#include "run/store.h"

#include "base/lock.h"
#include "base/pages.h"
#include "proto/tensor_data.h"

enum { BUCKETS = 1024, LARGE = 16 << 10 /* bytes that lie in pages */ };

struct entry {
    struct entry *next;  /* of the bucket */
    struct entry *later; /* made after this one */
    struct sdx_packed form;
    void *owned;     /* its memory, when it is a block of its own */
    bool is_adopted; /* of the block of those in a file */
    bool is_checked; /* may be used */
};

struct sdx_store {
    struct sdx_mem *mem;
    const struct sdx_file_map *map;
    const struct sdx_external *external;
    struct sdx_lock lock;
    struct entry *buckets[BUCKETS];
    struct entry *first, *last;
    struct entry *adopted; /* one block */
    struct sdx_pages pages;
};

struct sdx_store *sdx_store_create(struct sdx_mem *mem, const struct sdx_file_map *map,
                                   const struct sdx_external *external)
{
    struct sdx_store *store = sdx_mem_calloc(mem, SDX_MEM_WEIGHTS, 1, sizeof *store);
    if (!store) return NULL;
    store->mem = mem;
    store->map = map;
    store->external = external;
    sdx_pages_init(&store->pages, mem, SDX_MEM_WEIGHTS);
    sdx_lock_init(&store->lock);
    return store;
}

void sdx_store_destroy(struct sdx_store *store)
{
    if (!store) return;
    for (struct entry *e = store->first, *later; e; e = later) {
        later = e->later;
        sdx_mem_free(store->mem, e->owned);
        if (!e->is_adopted) sdx_mem_free(store->mem, e);
    }
    sdx_pages_deinit(&store->pages);
    sdx_mem_free(store->mem, store->adopted);
    sdx_lock_deinit(&store->lock);
    sdx_mem_free(store->mem, store);
}

static struct entry **bucket_of(struct sdx_store *store, const void *constant, int64_t variant)
{
    uint64_t h = sdx_hash_bytes(&constant, sizeof constant, (uint64_t)variant);
    return &store->buckets[h % BUCKETS];
}

static void add(struct sdx_store *store, struct entry *e)
{
    struct entry **bucket = bucket_of(store, e->form.constant, e->form.variant);
    e->next = *bucket;
    *bucket = e;
    *(store->last ? &store->last->later : &store->first) = e;
    store->last = e;
}

enum sdx_status sdx_store_adopt(struct sdx_store *store, struct sdx_context *cx,
                                const struct sdx_plan_file *file)
{
    store->adopted = sdx_mem_calloc(store->mem, SDX_MEM_WEIGHTS, (size_t)file->count_packs + 1,
                                    sizeof *store->adopted);
    if (!store->adopted) return SDX_FAIL_MEMORY(cx);
    for (uint64_t i = 0; i < file->count_packs; i++) {
        const struct sdx_plan_pack *p = &file->packs[i];
        struct entry *e = &store->adopted[i];
        e->form = (struct sdx_packed){.constant = file->constants + p->constant,
                                      .key = file->keys + p->key,
                                      .variant = p->variant,
                                      .size = (size_t)p->size,
                                      .used = (size_t)p->size,
                                      .packed = file->bytes + p->at};
        e->is_adopted = true;
        add(store, e);
    }
    return SDX_OK;
}

static struct entry *find(struct sdx_store *store, const void *constant,
                          const struct sdx_pack *pack)
{
    for (struct entry *e = *bucket_of(store, constant, pack->variant); e; e = e->next)
        if (e->form.constant == constant && e->form.variant == pack->variant &&
            e->form.size == pack->size && strcmp(e->form.key, pack->key) == 0)
            return e;
    return NULL;
}

static struct entry *pack_new(struct sdx_store *store, struct sdx_context *cx, const void *constant,
                              const struct sdx_pack *pack)
{
    struct entry *e = sdx_mem_alloc(store->mem, SDX_MEM_WEIGHTS, sizeof *e);
    void *owned = NULL, *packed = NULL;
    size_t used = pack->size;
    if (e && pack->size < LARGE)
        packed = owned = sdx_mem_alloc(store->mem, SDX_MEM_WEIGHTS, pack->size);
    else if (e)
        packed = sdx_pages_alloc(&store->pages, pack->size);
    if (!packed) {
        (void)SDX_FAIL_MEMORY(cx);
    } else if (pack->pack(cx, packed, pack->arg) == SDX_OK) {
        if (pack->used) used = *pack->used;
        if (!owned) sdx_pages_trim(&store->pages, packed, pack->size, used);
        *e = (struct entry){.form = {constant, pack->key, pack->variant, pack->size, used, packed},
                            .owned = owned,
                            .is_checked = true};
        add(store, e);
        return e;
    }
    sdx_mem_free(store->mem, owned);
    sdx_mem_free(store->mem, e);
    return NULL;
}

/* What lies in a file is used when it can do no harm. */
static bool is_usable(const struct sdx_store *store, struct sdx_context *cx, struct entry *e,
                      const struct sdx_pack *pack)
{
    if (!e->is_checked) sdx_file_map_fetch(store->map, e->form.packed, pack->size);
    if (!e->is_checked && pack->check && !pack->check(e->form.packed, pack->arg)) {
        (void)SDX_FAIL(cx, SDX_BAD_DATA, "plan file: a packed form \"%s\" of %zu bytes is broken",
                       pack->key, pack->size);
        return false;
    }
    e->is_checked = true;
    return true;
}

void sdx_store_drop_bytes(const struct sdx_store *store, const void *bytes, size_t size)
{
    sdx_file_map_drop(store->map, bytes, size);
    sdx_external_drop(store->external, bytes, size);
}

void sdx_store_drop(const struct sdx_store *store, const struct sdx_tensor *constant)
{
    while (constant->recipe)
        constant = constant->recipe->of;
    sdx_store_drop_bytes(store, constant->data, constant->bytes);
}

const void *sdx_store_get(struct sdx_store *store, struct sdx_context *cx,
                          const struct sdx_tensor *constant, const struct sdx_pack *pack)
{
    sdx_lock_take(&store->lock);
    struct entry *e = find(store, sdx_tensor_key(constant), pack);
    if (!e) {
        e = pack_new(store, cx, sdx_tensor_key(constant), pack);
        sdx_store_drop(store, constant);
    }
    const void *packed = e && is_usable(store, cx, e, pack) ? e->form.packed : NULL;
    sdx_lock_give(&store->lock);
    return packed;
}

static enum sdx_status pack_aligned(struct sdx_context *cx, void *dst, void *arg)
{
    const struct sdx_tensor *const *constant = arg;
    (void)cx;
    sdx_tensor_copy_elements(*constant, dst);
    return SDX_OK;
}

static struct sdx_pack aligned_form(const struct sdx_tensor **constant)
{
    return (struct sdx_pack){
        .key = "aligned", .size = (*constant)->bytes, .pack = pack_aligned, .arg = constant};
}

void *sdx_store_get_aligned(struct sdx_store *store, struct sdx_context *cx,
                            const struct sdx_tensor *constant)
{
    const struct sdx_pack form = aligned_form(&constant);
    return (void *)(uintptr_t)sdx_store_get(store, cx, constant, &form);
}

void *sdx_store_find_aligned(struct sdx_store *store, const struct sdx_tensor *constant)
{
    const struct sdx_pack form = aligned_form(&constant);
    sdx_lock_take(&store->lock);
    const struct entry *e = find(store, sdx_tensor_key(constant), &form);
    sdx_lock_give(&store->lock);
    return e ? (void *)(uintptr_t)e->form.packed : NULL;
}

enum sdx_status sdx_store_each(struct sdx_store *store, sdx_packed_fn *fn, void *user)
{
    enum sdx_status status = SDX_OK;
    sdx_lock_take(&store->lock);
    for (const struct entry *e = store->first; e && status == SDX_OK; e = e->later)
        status = fn(user, &e->form);
    sdx_lock_give(&store->lock);
    return status;
}
