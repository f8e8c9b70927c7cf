/* SPDX-License-Identifier: Apache-2.0
 * Memory: infos of where it is, the default allocator, configurations of arenas. There is one kind
 * of memory here; infos of other devices are kept and told, nothing else. */
#include "ort_objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

const struct OrtMemoryInfo ort_cpu_memory = {.name = "Cpu", .type = OrtDeviceAllocator};
const struct OrtMemoryInfo ort_arena_memory = {.name = "Cpu", .type = OrtArenaAllocator};

/* ---- the default allocator ---- */

static void *default_alloc(OrtAllocator *self, size_t size)
{
    (void)self;
    void *block = NULL;
    return posix_memalign(&block, ALIGNMENT, size ? size : 1) ? NULL : block;
}

static void default_free(OrtAllocator *self, void *block)
{
    (void)self;
    free(block);
}

static const OrtMemoryInfo *default_info(const OrtAllocator *self)
{
    (void)self;
    return &ort_cpu_memory;
}

static OrtStatusPtr default_stats(const OrtAllocator *self, OrtKeyValuePairs **out)
{
    (void)self;
    *out = calloc(1, sizeof **out);
    return *out ? NULL : ort_no_memory();
}

static void *default_alloc_on_stream(OrtAllocator *self, size_t size, OrtSyncStream *stream)
{
    (void)stream;
    return default_alloc(self, size);
}

OrtAllocator *ort_default_allocator(void)
{
    static OrtAllocator allocator = {.version = ORT_API_VERSION,
                                     .Alloc = default_alloc,
                                     .Free = default_free,
                                     .Info = default_info,
                                     .Reserve = default_alloc,
                                     .GetStats = default_stats,
                                     .AllocOnStream = default_alloc_on_stream};
    return &allocator;
}

/* The same memory under the name of the arena that sessions of the real library have. */
static const OrtMemoryInfo *arena_info(const OrtAllocator *self)
{
    (void)self;
    return &ort_arena_memory;
}

OrtAllocator *ort_arena_allocator(void)
{
    static OrtAllocator allocator = {.version = ORT_API_VERSION,
                                     .Alloc = default_alloc,
                                     .Free = default_free,
                                     .Info = arena_info,
                                     .Reserve = default_alloc,
                                     .GetStats = default_stats,
                                     .AllocOnStream = default_alloc_on_stream};
    return &allocator;
}

static OrtStatusPtr get_default_allocator(OrtAllocator **out)
{
    *out = ort_default_allocator();
    return NULL;
}

static OrtStatusPtr create_allocator(const OrtSession *session, const OrtMemoryInfo *info,
                                     OrtAllocator **out)
{
    *out = NULL;
    if (info->device != OrtMemoryInfoDeviceType_CPU)
        return ort_status(ORT_INVALID_ARGUMENT, "No requested allocator available");
    *out = session->options->cpu_arena ? ort_arena_allocator() : ort_default_allocator();
    return NULL;
}

static void release_allocator(OrtAllocator *allocator)
{
    (void)allocator; /* the default one, which stays */
}

static OrtStatusPtr allocator_alloc(OrtAllocator *allocator, size_t size, void **out)
{
    *out = allocator->Alloc(allocator, size);
    return NULL;
}

static OrtStatusPtr allocator_free(OrtAllocator *allocator, void *block)
{
    allocator->Free(allocator, block);
    return NULL;
}

static OrtStatusPtr allocator_info(const OrtAllocator *allocator, const OrtMemoryInfo **out)
{
    *out = allocator->Info(allocator);
    return NULL;
}

static OrtStatusPtr allocator_stats(const OrtAllocator *allocator, OrtKeyValuePairs **out)
{
    enum { SINCE = 23 };
    if (allocator->version >= SINCE && allocator->GetStats)
        return allocator->GetStats(allocator, out);
    *out = NULL;
    return ort_status(ORT_NOT_IMPLEMENTED, "the allocator keeps no statistics");
}

/* ---- infos ---- */

/* Names that CreateMemoryInfo knows, and what the info is called then. */
static const struct device_name {
    const char *name, *told;
    OrtMemoryInfoDeviceType device;
    OrtDeviceMemoryType memory;
    uint32_t vendor;
} device_names[] = {
    {"Cuda", "Cuda", OrtMemoryInfoDeviceType_GPU, OrtDeviceMemoryType_DEFAULT, 0x10de},
    {"CudaPinned", "CudaPinned", OrtMemoryInfoDeviceType_GPU, OrtDeviceMemoryType_HOST_ACCESSIBLE,
     0x10de},
    {"Hip", "Hip", OrtMemoryInfoDeviceType_GPU, OrtDeviceMemoryType_DEFAULT, 0x1002},
    {"HipPinned", "HipPinned", OrtMemoryInfoDeviceType_GPU, OrtDeviceMemoryType_HOST_ACCESSIBLE,
     0x1002},
    {"OpenVINO_GPU", "OpenVINO_GPU", OrtMemoryInfoDeviceType_GPU, OrtDeviceMemoryType_DEFAULT,
     0x8086},
    {"OpenVINO_RT_NPU", "OpenVINO_RT_NPU", OrtMemoryInfoDeviceType_NPU, OrtDeviceMemoryType_DEFAULT,
     0x8086},
    {"DML", "DML", OrtMemoryInfoDeviceType_GPU, OrtDeviceMemoryType_DEFAULT, 0x1414},
    {"QnnHtpShared", "QnnHtpShared", OrtMemoryInfoDeviceType_CPU,
     OrtDeviceMemoryType_HOST_ACCESSIBLE, 0x5143},
    {"WebGPU_Buf", "WebGPU_Buf", OrtMemoryInfoDeviceType_GPU, OrtDeviceMemoryType_DEFAULT, 0},
    {"WebGPU_Buffer", "WebGPU_Buf", OrtMemoryInfoDeviceType_GPU, OrtDeviceMemoryType_DEFAULT, 0},
    {"WebNN_Ten", "WebNN_Ten", OrtMemoryInfoDeviceType_GPU, OrtDeviceMemoryType_DEFAULT, 0},
    {"WebNN_Tensor", "WebNN_Ten", OrtMemoryInfoDeviceType_GPU, OrtDeviceMemoryType_DEFAULT, 0},
};
enum { COUNT_DEVICE_NAMES = sizeof device_names / sizeof device_names[0] };

static OrtStatusPtr new_info(const struct OrtMemoryInfo *info, OrtMemoryInfo **out)
{
    *out = malloc(sizeof **out);
    if (!*out) return ort_no_memory();
    **out = *info;
    return NULL;
}

static OrtStatusPtr create_cpu_info(OrtAllocatorType type, OrtMemType mem_type, OrtMemoryInfo **out)
{
    struct OrtMemoryInfo info = ort_cpu_memory;
    info.type = type;
    info.mem_type = mem_type;
    return new_info(&info, out);
}

static OrtStatusPtr create_info(const char *name, OrtAllocatorType type, int id,
                                OrtMemType mem_type, OrtMemoryInfo **out)
{
    *out = NULL;
    if (!strcmp(name, "Cpu")) return create_cpu_info(type, mem_type, out);
    for (int i = 0; i < COUNT_DEVICE_NAMES; i++) {
        const struct device_name *known = &device_names[i];
        if (strcmp(known->name, name) != 0) continue;
        struct OrtMemoryInfo info = {.id = id,
                                     .mem_type = mem_type,
                                     .type = type,
                                     .device = known->device,
                                     .device_memory = known->memory,
                                     .vendor = known->vendor};
        snprintf(info.name, sizeof info.name, "%s", known->told);
        return new_info(&info, out);
    }
    return ort_status(ORT_INVALID_ARGUMENT,
                      "Specified device is not supported. Try CreateMemoryInfo_V2.");
}

static OrtStatusPtr create_info_v2(const char *name, OrtMemoryInfoDeviceType device,
                                   uint32_t vendor, int32_t id, OrtDeviceMemoryType memory,
                                   size_t alignment, OrtAllocatorType type, OrtMemoryInfo **out)
{
    const bool is_host = memory == OrtDeviceMemoryType_HOST_ACCESSIBLE;
    struct OrtMemoryInfo info = {.id = id,
                                 .mem_type = is_host ? OrtMemTypeCPUOutput : OrtMemTypeDefault,
                                 .type = type,
                                 .device = device,
                                 .device_memory = memory,
                                 .vendor = vendor,
                                 .alignment = alignment};
    snprintf(info.name, sizeof info.name, "%s", name);
    return new_info(&info, out);
}

bool ort_memory_equal(const struct OrtMemoryInfo *a, const struct OrtMemoryInfo *b)
{
    return a == b ||
           (a->id == b->id && a->mem_type == b->mem_type && a->type == b->type &&
            a->device == b->device && a->device_memory == b->device_memory &&
            a->vendor == b->vendor && a->alignment == b->alignment && !strcmp(a->name, b->name));
}

/* Few infos differ; those met stay in a list that only grows, so that it is read without a lock. */
struct kept {
    struct OrtMemoryInfo info;
    struct kept *next;
};
static _Atomic(struct kept *) all_kept;

const struct OrtMemoryInfo *ort_memory_keep(const struct OrtMemoryInfo *info)
{
    if (ort_memory_equal(info, &ort_arena_memory)) return &ort_arena_memory;
    if (ort_memory_equal(info, &ort_cpu_memory)) return &ort_cpu_memory;
    struct kept *first = atomic_load(&all_kept);
    for (struct kept *k = first; k; k = k->next)
        if (ort_memory_equal(&k->info, info)) return &k->info;
    struct kept *more = malloc(sizeof *more);
    if (!more) return NULL;
    more->info = *info;
    more->next = first;
    while (!atomic_compare_exchange_weak(&all_kept, &more->next, more)) {
    }
    return &more->info;
}

static OrtStatusPtr compare_infos(const OrtMemoryInfo *a, const OrtMemoryInfo *b, int *out)
{
    *out = ort_memory_equal(a, b) ? 0 : -1;
    return NULL;
}

static OrtStatusPtr info_name(const OrtMemoryInfo *info, const char **out)
{
    *out = info->name;
    return NULL;
}

static OrtStatusPtr info_id(const OrtMemoryInfo *info, int *out)
{
    *out = info->id;
    return NULL;
}

static OrtStatusPtr info_mem_type(const OrtMemoryInfo *info, OrtMemType *out)
{
    *out = info->mem_type;
    return NULL;
}

static OrtStatusPtr info_type(const OrtMemoryInfo *info, OrtAllocatorType *out)
{
    *out = info->type;
    return NULL;
}

static void info_device(const OrtMemoryInfo *info, OrtMemoryInfoDeviceType *out)
{
    *out = info->device;
}

static OrtDeviceMemoryType info_device_memory(const OrtMemoryInfo *info)
{
    return info->device_memory;
}

static uint32_t info_vendor(const OrtMemoryInfo *info)
{
    return info->vendor;
}

static void release_info(OrtMemoryInfo *info)
{
    free(info);
}

/* ---- arenas: accepted, as our memory is laid out by the planner ---- */

struct OrtArenaCfg {
    struct OrtKeyValuePairs options;
};

static OrtStatusPtr create_arena(size_t max_mem, int strategy, int initial_chunk, int max_dead,
                                 OrtArenaCfg **out)
{
    (void)max_mem, (void)strategy, (void)initial_chunk, (void)max_dead;
    *out = calloc(1, sizeof **out);
    return *out ? NULL : ort_no_memory();
}

static OrtStatusPtr create_arena_v2(const char *const *keys, const size_t *values, size_t count,
                                    OrtArenaCfg **out)
{
    static const char *const known[] = {"max_mem",
                                        "arena_extend_strategy",
                                        "initial_chunk_size_bytes",
                                        "max_dead_bytes_per_chunk",
                                        "initial_growth_chunk_size_bytes",
                                        "max_power_of_two_extend_bytes"};
    (void)values;
    *out = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < sizeof known / sizeof known[0] && strcmp(known[k], keys[i]) != 0)
            k++;
        if (k == sizeof known / sizeof known[0])
            return ort_fail(ORT_INVALID_ARGUMENT, "Invalid key found: %s", keys[i]);
    }
    return create_arena(0, 0, 0, 0, out);
}

static void release_arena(OrtArenaCfg *arena)
{
    free(arena);
}

void ort_fill_memory(OrtApi *api)
{
    api->GetAllocatorWithDefaultOptions = get_default_allocator;
    api->CreateAllocator = create_allocator;
    api->ReleaseAllocator = release_allocator;
    api->AllocatorAlloc = allocator_alloc;
    api->AllocatorFree = allocator_free;
    api->AllocatorGetInfo = allocator_info;
    api->AllocatorGetStats = allocator_stats;
    api->CreateMemoryInfo = create_info;
    api->CreateMemoryInfo_V2 = create_info_v2;
    api->CreateCpuMemoryInfo = create_cpu_info;
    api->CompareMemoryInfo = compare_infos;
    api->MemoryInfoGetName = info_name;
    api->MemoryInfoGetId = info_id;
    api->MemoryInfoGetMemType = info_mem_type;
    api->MemoryInfoGetType = info_type;
    api->MemoryInfoGetDeviceType = info_device;
    api->MemoryInfoGetDeviceMemType = info_device_memory;
    api->MemoryInfoGetVendorId = info_vendor;
    api->ReleaseMemoryInfo = release_info;
    api->CreateArenaCfg = create_arena;
    api->CreateArenaCfgV2 = create_arena_v2;
    api->ReleaseArenaCfg = release_arena;
}
