/* SPDX-License-Identifier: Apache-2.0
 * The table of measured choices and its file. */
#include "run/tune.h"

#include <stdio.h>

#include "base/cache.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/machine.h"

enum { FORMAT = 1, FILE_MOST = 16 << 20, TEXT_MOST = 400 };

struct sdx_tune {
    struct sdx_context *cx;
    struct sdx_arena arena;
    struct sdx_map index; /* of keys in `entries` */
    struct entry {
        struct sdx_str key, way;
    } * entries;
    int32_t count, capacity;
    bool is_changed, is_told; /* is_told: that the file is not used */
    const char *path;         /* NULL: there is no folder */
    const char *head;         /* first line, with its end */
};

/* ---- the table ---- */

/* What is there already stays when `keeps`. false: no memory. */
static bool put(struct sdx_tune *t, struct sdx_str key, struct sdx_str way, bool keeps)
{
    const int32_t at = sdx_map_get(&t->index, key);
    if (at >= 0 && keeps) return true;
    struct entry e = {{sdx_arena_strndup(&t->arena, key.ptr, key.len), key.len},
                      {sdx_arena_strndup(&t->arena, way.ptr, way.len), way.len}};
    if (!e.key.ptr || !e.way.ptr) return false;
    if (at >= 0) {
        t->entries[at].way = e.way;
        return true;
    }
    if (t->count == t->capacity) {
        const int32_t wanted = t->capacity ? 2 * t->capacity : 64;
        struct entry *bigger = sdx_arena_array(&t->arena, (size_t)wanted, sizeof *bigger);
        if (!bigger) return false;
        if (t->count) memcpy(bigger, t->entries, (size_t)t->count * sizeof *bigger);
        t->entries = bigger;
        t->capacity = wanted;
    }
    t->entries[t->count] = e;
    return sdx_map_put(&t->index, e.key, t->count) && ++t->count;
}

/* ---- the file ---- */

/* Size of the line at `at`, its end included; 0: it has none. */
static size_t line_size(const char *at, size_t size)
{
    const char *end = size ? memchr(at, '\n', size) : NULL;
    return end ? (size_t)(end - at) + 1 : 0;
}

static void put_end(char *buf, size_t size, int32_t count, const void *bytes, size_t length)
{
    snprintf(buf, size, "end %d %016llx\n", (int)count,
             (unsigned long long)sdx_hash_bytes(bytes, length, FORMAT));
}

/* What is wrong with a file's text; NULL: nothing, its choices are in the table where that has none
 * of their keys. */
static const char *take(struct sdx_tune *t, const char *text, size_t size)
{
    char end[64];
    int32_t count = 0;
    size_t at = line_size(text, size);
    if (size > FILE_MOST || at == 0) return "it is broken";
    if (at != strlen(t->head) || memcmp(text, t->head, at) != 0)
        return size > 14 && memcmp(text, "sardonyx tune ", 14) == 0
                   ? "it is of another version or CPU"
                   : "it is broken";
    const size_t first = at;
    for (size_t line; (line = line_size(text + at, size - at)) > 0; at += line, count++) {
        if (at + line == size) break; /* the end */
        const char *tab = memchr(text + at, '\t', line);
        if (!tab || tab == text + at || tab == text + at + line - 2 || line > TEXT_MOST)
            return "it is broken";
    }
    put_end(end, sizeof end, count, text, at);
    if (size - at != strlen(end) || memcmp(text + at, end, size - at) != 0) return "it is broken";
    at = first;
    for (int32_t i = 0; i < count; i++) {
        const size_t line = line_size(text + at, size - at);
        const char *tab = memchr(text + at, '\t', line);
        const size_t key = (size_t)(tab - text) - at;
        if (!put(t, (struct sdx_str){text + at, key}, (struct sdx_str){tab + 1, line - key - 2},
                 true))
            return "there is no memory";
        at += line;
    }
    return NULL;
}

static void read_file(struct sdx_tune *t)
{
    struct sdx_context quiet;
    struct sdx_file_map map;
    sdx_context_init_child(&quiet, t->cx);
    enum sdx_status status = sdx_file_map_open(&quiet, t->path, &map);
    if (status == SDX_NOT_FOUND) return;
    const char *fault = status == SDX_OK ? take(t, (const char *)map.data, map.size) : NULL;
    if (status != SDX_OK && !t->is_told)
        sdx_log(t->cx, SDX_LOG_WARNING, "tune", "%s; it is ignored", quiet.error.text);
    else if (fault && !t->is_told)
        sdx_log(t->cx, SDX_LOG_WARNING, "tune", "\"%s\" is ignored: %s", t->path, fault);
    t->is_told = t->is_told || fault || status != SDX_OK;
    if (status == SDX_OK) sdx_file_map_close(&map);
}

static enum sdx_status write_file(struct sdx_tune *t, struct sdx_context *cx)
{
    struct sdx_text text;
    struct sdx_file_writer writer;
    char end[64];
    sdx_text_init(&text, cx->mem);
    sdx_text_add(&text, "%s", t->head);
    for (int32_t i = 0; i < t->count; i++)
        sdx_text_add(&text, "%.*s\t%.*s\n", SDX_STR_ARG(t->entries[i].key),
                     SDX_STR_ARG(t->entries[i].way));
    put_end(end, sizeof end, t->count, sdx_text_get(&text), text.len);
    sdx_text_add(&text, "%s", end);
    enum sdx_status status =
        !text.ok ? SDX_FAIL_MEMORY(cx) : sdx_file_writer_open(cx, t->path, &writer);
    if (status == SDX_OK) {
        writer.is_synced = true;
        status = sdx_file_writer_put(&writer, text.ptr, text.len);
        if (status == SDX_OK)
            status = sdx_file_writer_close(&writer);
        else
            sdx_file_writer_abandon(&writer);
    }
    sdx_text_deinit(&text);
    return status;
}

void sdx_tune_save(struct sdx_tune *t)
{
    struct sdx_context quiet;
    if (!t->is_changed) return;
    t->is_changed = false;
    if (!t->path) return;
    int lock = -1;
    sdx_context_init_child(&quiet, t->cx);
    struct sdx_arena work;
    sdx_arena_init(&work, quiet.mem, SDX_MEM_OTHER);
    const char *path = sdx_arena_printf(&work, "%s.lock", t->path);
    enum sdx_status status = path ? sdx_cache_lock(&quiet, path, &lock) : SDX_FAIL_MEMORY(&quiet);
    if (status == SDX_OK) {
        read_file(t); /* what others have written meanwhile */
        status = write_file(t, &quiet);
    }
    sdx_cache_unlock(lock);
    sdx_arena_deinit(&work);
    if (status != SDX_OK)
        sdx_log(t->cx, SDX_LOG_WARNING, "tune", "choices are not kept: %s", quiet.error.text);
}

/* ---- opening and choosing ---- */

/* The file's name and first line, from the CPU's name. */
static enum sdx_status init_names(struct sdx_tune *t)
{
    char model[96], name[96];
    size_t n = 0;
    sdx_machine_cpu(model, sizeof model);
    for (const char *c = model; *c; c++) {
        const bool is_plain = (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') ||
                              (*c >= 'a' && *c <= 'z') || *c == '.';
        if (is_plain || (n && name[n - 1] != '-')) name[n++] = is_plain ? *c : '-';
    }
    name[n] = 0;
    const char *set = sdx_cpu_set_name(sdx_cpu_best()), *folder = sdx_cache_folder(&t->arena);
    t->head = sdx_arena_printf(&t->arena, "sardonyx tune %d, %s, %s, %s\n", FORMAT,
                               SDX_VERSION_STRING, set, model);
    if (folder)
        t->path = sdx_arena_printf(&t->arena, "%s/tune-%s-%s-%s.txt", folder, SDX_VERSION_STRING,
                                   set, name);
    return t->head && (!folder || t->path) ? SDX_OK : SDX_FAIL_MEMORY(t->cx);
}

enum sdx_status sdx_tune_open(struct sdx_context *cx, struct sdx_tune **out)
{
    struct sdx_tune *t = sdx_mem_calloc(cx->mem, SDX_MEM_PLAN, 1, sizeof *t);
    *out = NULL;
    if (!t) return SDX_FAIL_MEMORY(cx);
    t->cx = cx;
    sdx_arena_init(&t->arena, cx->mem, SDX_MEM_PLAN);
    sdx_map_init(&t->index, cx->mem);
    enum sdx_status status = init_names(t);
    if (status == SDX_OK && t->path)
        read_file(t);
    else if (status == SDX_OK)
        sdx_log(cx, SDX_LOG_WARNING, "tune",
                "choices are not kept: neither XDG_CACHE_HOME nor HOME is set");
    if (status == SDX_OK)
        *out = t;
    else
        sdx_tune_close(t);
    return status;
}

void sdx_tune_close(struct sdx_tune *t)
{
    if (!t) return;
    struct sdx_mem *mem = t->cx->mem;
    sdx_map_deinit(&t->index);
    sdx_arena_deinit(&t->arena);
    sdx_mem_free(mem, t);
}

int sdx_tune_choose(struct sdx_tune *t, const struct sdx_choice *c, const atomic_int *cancel)
{
    double ns[SDX_WAYS_MOST];
    int best = -1;
    const int32_t at = sdx_map_get(&t->index, sdx_str(c->key));
    for (int i = 0; at >= 0 && i < c->count; i++)
        if (sdx_str_is(t->entries[at].way, c->ways[i])) return i;
    enum sdx_status status = c->measure(t->cx, c->arg, cancel, ns);
    if (status == SDX_CANCELLED) (void)SDX_FAIL(t->cx, status, "the run was cancelled");
    if (status != SDX_OK) return -1;
    for (int i = 0; i < c->count; i++)
        if (ns[i] >= 0 && (best < 0 || ns[i] < ns[best])) best = i;
    if (best >= 0 && strlen(c->key) + strlen(c->ways[best]) + 2 <= TEXT_MOST)
        t->is_changed = put(t, sdx_str(c->key), sdx_str(c->ways[best]), false) || t->is_changed;
    return best;
}
