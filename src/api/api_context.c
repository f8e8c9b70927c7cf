/* SPDX-License-Identifier: Apache-2.0
 * Public API: version, status, contexts. */
#include <string.h>

#include "base/context.h"
#include "base/cpu.h"
#include "base/mem.h"
#include "base/thread_pool.h"
#include "tensor/tensor.h"

const char *sdx_version(void)
{
    return SDX_VERSION_STRING;
}

const char *sdx_status_name(sdx_status status)
{
    switch (status) {
#define STATUS_CASE(code, number, meaning)                                                         \
    case code: return #code;
        SDX_STATUS_MAP(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

const char *sdx_status_meaning(sdx_status status)
{
    switch (status) {
#define STATUS_CASE(code, number, meaning)                                                         \
    case code: return meaning;
        SDX_STATUS_MAP(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

void sdx_context_options_init(sdx_context_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->log_level = SDX_LOG_WARNING;
}

static struct sdx_pool *pool_of(struct sdx_mem *mem, const sdx_context_options *options)
{
    const int threads = options->threads > 0 ? options->threads : sdx_threads_available();
    const struct sdx_thread_source source = {options->thread_start, options->thread_join,
                                             options->thread_user};
    return source.start && source.join ? sdx_pool_create_from(mem, threads, &source)
                                       : sdx_pool_create(mem, threads);
}

static sdx_context *child_of(const sdx_context_options *options)
{
    const sdx_context *parent = options->parent;
    sdx_context *cx = sdx_mem_calloc(parent->mem, SDX_MEM_OTHER, 1, sizeof *cx);
    if (!cx) return NULL;
    sdx_context_init_child(cx, parent);
    if (!options->thread_start) return cx;
    cx->pool = pool_of(cx->mem, options);
    cx->owns_pool = cx->pool != NULL;
    if (cx->owns_pool) return cx;
    sdx_mem_free(parent->mem, cx);
    return NULL;
}

sdx_context *sdx_context_create(const sdx_context_options *given)
{
    sdx_context_options options;
    sdx_context_options_init(&options);
    if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    if (options.parent) return child_of(&options);
    struct sdx_mem start;
    sdx_mem_init(&start, NULL, options.memory_limit);
    start.alloc = options.alloc;
    start.free = options.free;
    start.user = options.alloc_user;
    struct sdx_mem *mem = sdx_mem_alloc(&start, SDX_MEM_OTHER, sizeof *mem);
    if (!mem) return NULL;
    sdx_mem_init(mem, NULL, options.memory_limit);
    mem->alloc = options.alloc;
    mem->free = options.free;
    mem->user = options.alloc_user;
    sdx_context *cx = sdx_mem_calloc(mem, SDX_MEM_OTHER, 1, sizeof *cx);
    struct sdx_pool *pool = cx && sdx_mem_keep(mem) ? pool_of(mem, &options) : NULL;
    if (!pool) {
        sdx_mem_keep_end(mem);
        sdx_mem_free(mem, cx);
        sdx_mem_free(&start, mem);
        return NULL;
    }
    cx->mem = mem;
    cx->pool = pool;
    cx->log = options.log;
    cx->log_user = options.log_user;
    cx->log_level = options.log_level;
    cx->owns_mem = cx->owns_pool = true;
    const char *bad = NULL;
    if (!sdx_cpu_mask_ok(&bad))
        sdx_log(cx, SDX_LOG_WARNING, "cpu", "SDX_CPU=%s is not a known set and is ignored", bad);
    return cx;
}

void sdx_context_destroy(sdx_context *cx)
{
    if (!cx) return;
    struct sdx_mem *mem = cx->mem;
    const bool is_child = !cx->owns_mem;
    if (cx->owns_pool) sdx_pool_destroy(cx->pool);
    sdx_mem_free(mem, cx);
    if (is_child) return;
    sdx_mem_keep_end(mem);
    struct sdx_mem end;
    sdx_mem_init(&end, NULL, 0);
    end.alloc = mem->alloc;
    end.free = mem->free;
    end.user = mem->user;
    atomic_store(&end.now, sdx_mem_size(mem));
    sdx_mem_free(&end, mem);
}

const char *sdx_error(const sdx_context *cx)
{
    return cx ? cx->error.text : "no context: memory could not be had";
}

size_t sdx_memory_now(const sdx_context *cx)
{
    return atomic_load(&cx->mem->now);
}

size_t sdx_memory_peak(const sdx_context *cx)
{
    return atomic_load(&cx->mem->peak);
}

bool sdx_memory_row(const sdx_context *cx, int i, const char **tag, size_t *now, size_t *peak)
{
    static const char *const names[] = {
#define TAG_NAME(id, name) name,
        SDX_MEM_TAGS(TAG_NAME)
#undef TAG_NAME
    };
    if (i < 0 || i >= SDX_MEM_TAG_COUNT) return false;
    *tag = names[i];
    *now = atomic_load(&cx->mem->tag_now[i]);
    *peak = atomic_load(&cx->mem->tag_peak[i]);
    return true;
}

const char *sdx_cpu_name(void)
{
    return sdx_cpu_set_name(sdx_cpu_best());
}

const char *sdx_cpu_set(int i, bool *present)
{
    if (i < 0 || i >= SDX_CPU_SET_COUNT) return NULL;
    if (present) *present = sdx_cpu_has_unmasked((enum sdx_cpu_set)i);
    return sdx_cpu_set_name((enum sdx_cpu_set)i);
}

int sdx_threads(const sdx_context *cx)
{
    return sdx_pool_threads(cx->pool);
}
