/* SPDX-License-Identifier: Apache-2.0
 * Packed constants: a chained hash table under a lock. Packing happens under the lock too: it is
 * done once, and a second session then waits for the result instead of repeating the work. */
#include "run/store.h"

#include <pthread.h>

enum { BUCKETS = 1024 };

struct entry {
    struct entry *next;
    const void *constant;
    const char *key;
    int64_t variant;
    size_t size;
    void *packed;
};

struct sdx_store {
    struct sdx_mem *mem;
    const struct sdx_file_map *map;
    pthread_mutex_t lock;
    struct entry *buckets[BUCKETS];
};

struct sdx_store *sdx_store_create(struct sdx_mem *mem, const struct sdx_file_map *map)
{
    struct sdx_store *store = sdx_mem_calloc(mem, SDX_MEM_WEIGHTS, 1, sizeof *store);
    if (!store) return NULL;
    store->mem = mem;
    store->map = map;
    pthread_mutex_init(&store->lock, NULL);
    return store;
}

void sdx_store_destroy(struct sdx_store *store)
{
    if (!store) return;
    for (int b = 0; b < BUCKETS; b++)
        for (struct entry *e = store->buckets[b], *next; e; e = next) {
            next = e->next;
            sdx_mem_free(store->mem, e->packed);
            sdx_mem_free(store->mem, e);
        }
    pthread_mutex_destroy(&store->lock);
    sdx_mem_free(store->mem, store);
}

static void *pack_new(struct sdx_store *store, struct sdx_context *cx, struct entry **bucket,
                      struct entry wanted, sdx_pack_fn *pack, void *arg)
{
    struct entry *e = sdx_mem_alloc(store->mem, SDX_MEM_WEIGHTS, sizeof *e);
    wanted.packed = e ? sdx_mem_alloc(store->mem, SDX_MEM_WEIGHTS, wanted.size) : NULL;
    if (!wanted.packed) {
        (void)SDX_FAIL_MEMORY(cx);
    } else if (pack(cx, wanted.packed, arg) == SDX_OK) {
        wanted.next = *bucket;
        *e = wanted;
        *bucket = e;
        return e->packed;
    }
    sdx_mem_free(store->mem, wanted.packed);
    sdx_mem_free(store->mem, e);
    return NULL;
}

const void *sdx_store_get(struct sdx_store *store, struct sdx_context *cx,
                          const struct sdx_tensor *constant, const char *key, int64_t variant,
                          size_t size, sdx_pack_fn *pack, void *arg)
{
    struct entry wanted = {
        .constant = constant->data, .key = key, .variant = variant, .size = size};
    uint64_t h = sdx_hash_bytes(&wanted.constant, sizeof wanted.constant, (uint64_t)variant);
    struct entry **bucket = &store->buckets[h % BUCKETS];
    pthread_mutex_lock(&store->lock);
    void *packed = NULL;
    for (struct entry *e = *bucket; e && !packed; e = e->next)
        if (e->constant == wanted.constant && e->variant == variant && e->size == size &&
            strcmp(e->key, key) == 0)
            packed = e->packed;
    if (!packed) {
        packed = pack_new(store, cx, bucket, wanted, pack, arg);
        sdx_file_map_drop(store->map, constant->data, constant->bytes);
    }
    pthread_mutex_unlock(&store->lock);
    return packed;
}
