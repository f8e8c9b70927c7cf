/* SPDX-License-Identifier: Apache-2.0
 * Map from string views to numbers: open addressing, linear probing, at most 2/3 full. The hash is
 * keyed by the map's own seed; see sdx_hash_bytes. */
#include <stdint.h>

#include "base/thread_pool.h"
#include "base/str.h"

struct sdx_map_entry {
    struct sdx_str key;
    uint32_t hash;
    uint32_t stored; /* value + 1; 0: free */
};

enum { CAPACITY_FIRST = 16 };

void sdx_map_init(struct sdx_map *map, struct sdx_mem *mem)
{
    uint64_t seed = (uint64_t)(uintptr_t)map ^ ((uint64_t)sdx_clock_ns() << 20);
    *map = (struct sdx_map){.mem = mem, .seed = seed};
}

void sdx_map_deinit(struct sdx_map *map)
{
    sdx_mem_free(map->mem, map->entries);
    map->entries = NULL;
    map->count = map->capacity = 0;
}

static uint32_t hash_of(const struct sdx_map *map, struct sdx_str key)
{
    return (uint32_t)sdx_hash_bytes(key.ptr, key.len, map->seed);
}

/* The entry of `key`, or the free one where it belongs. There is always a free one. */
static struct sdx_map_entry *find(const struct sdx_map *map, struct sdx_str key, uint32_t hash)
{
    size_t mask = map->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct sdx_map_entry *entry = &map->entries[i];
        if (entry->stored == 0 || (entry->hash == hash && sdx_str_equal(entry->key, key)))
            return entry;
    }
}

static bool grow(struct sdx_map *map)
{
    struct sdx_map wider = *map;
    if (!sdx_mul_size(map->capacity, 2, &wider.capacity)) return false;
    if (wider.capacity == 0) wider.capacity = CAPACITY_FIRST;
    wider.entries =
        sdx_mem_calloc(map->mem, SDX_MEM_OTHER, wider.capacity, sizeof(struct sdx_map_entry));
    if (wider.entries == NULL) return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->entries[i].stored != 0)
            *find(&wider, map->entries[i].key, map->entries[i].hash) = map->entries[i];
    sdx_mem_free(map->mem, map->entries);
    *map = wider;
    return true;
}

int32_t sdx_map_get(const struct sdx_map *map, struct sdx_str key)
{
    if (map->capacity == 0) return -1;
    return (int32_t)(find(map, key, hash_of(map, key))->stored - 1); /* 0 gives -1 */
}

bool sdx_map_put(struct sdx_map *map, struct sdx_str key, int32_t value)
{
    SDX_ASSERT(value >= 0);
    if ((map->count + 1) * 3 > map->capacity * 2 && !grow(map)) return false;
    uint32_t hash = hash_of(map, key);
    struct sdx_map_entry *entry = find(map, key, hash);
    if (entry->stored == 0) {
        map->count++;
        entry->key = key;
        entry->hash = hash;
    }
    entry->stored = (uint32_t)value + 1;
    return true;
}
