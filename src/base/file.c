/* SPDX-License-Identifier: Apache-2.0
 * Files through POSIX calls. A mapping is of the file where the file system can do that, else of
 * anonymous memory that the file is read into. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The usual reasons in words; strerror depends on the locale and is not safe in threads. */
static enum sdx_status fail_errno(struct sdx_context *cx, const char *what, const char *path,
                                  int code)
{
    static const struct {
        int code;
        enum sdx_status status;
        const char *text;
    } reasons[] = {
        {ENOENT, SDX_NOT_FOUND, "no such file"},
        {ENOTDIR, SDX_NOT_FOUND, "a part of the path is not a folder"},
        {EACCES, SDX_IO, "no permission"},
        {EPERM, SDX_IO, "not permitted"},
        {EISDIR, SDX_IO, "is a folder"},
        {ELOOP, SDX_IO, "a link, or too many links"},
        {ENAMETOOLONG, SDX_IO, "the path is too long"},
        {EMFILE, SDX_IO, "too many open files"},
        {ENFILE, SDX_IO, "too many open files in the system"},
        {ENOSPC, SDX_IO, "no space left"},
        {EDQUOT, SDX_IO, "quota reached"},
        {EROFS, SDX_IO, "the file system is read-only"},
        {EFBIG, SDX_IO, "the file is too large"},
        {EIO, SDX_IO, "input/output error"},
        {ENOMEM, SDX_OUT_OF_MEMORY, "out of memory"},
    };
    for (int i = 0; i < SDX_COUNT_OF(reasons); i++)
        if (reasons[i].code == code)
            return SDX_FAIL(cx, reasons[i].status, "%s %s: %s", what, path, reasons[i].text);
    return SDX_FAIL(cx, SDX_IO, "%s %s: system error %d", what, path, code);
}

static bool read_all(int fd, unsigned char *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, to + done, size - done, (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) errno = EIO; /* shorter than it said */
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

/* Maps what `fd` is open on; leaves fd open. */
static enum sdx_status map_descriptor(struct sdx_context *cx, const char *path, int fd,
                                      struct sdx_file_map *out)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0) return fail_errno(cx, "cannot read", path, errno);
    if (S_ISDIR(facts.st_mode)) return fail_errno(cx, "cannot read", path, EISDIR);
    if (!S_ISREG(facts.st_mode))
        return SDX_FAIL(cx, SDX_IO, "cannot read %s: not a regular file", path);
    if (facts.st_size == 0) return SDX_OK;
    if ((uintmax_t)facts.st_size > SIZE_MAX / 2) return fail_errno(cx, "cannot read", path, EFBIG);
    size_t size = (size_t)facts.st_size;
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    bool is_file = data != MAP_FAILED;
    if (data == MAP_FAILED) {
        data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED) return fail_errno(cx, "cannot map", path, errno);
        if (!read_all(fd, data, size)) {
            int code = errno;
            munmap(data, size);
            return fail_errno(cx, "cannot read", path, code);
        }
    }
    *out = (struct sdx_file_map){.data = data, .size = size, .mapped = true, .is_file = is_file};
    return SDX_OK;
}

/* O_NONBLOCK: opening a pipe must not hang before it is refused. */
static enum sdx_status map_path(struct sdx_context *cx, const char *shown, const char *path,
                                int flags, struct sdx_file_map *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
    if (fd < 0) return fail_errno(cx, "cannot open", shown, errno);
    enum sdx_status status = map_descriptor(cx, shown, fd, out);
    close(fd);
    return status;
}

enum sdx_status sdx_file_map_open(struct sdx_context *cx, const char *path,
                                  struct sdx_file_map *out)
{
    *out = (struct sdx_file_map){0};
    return map_path(cx, path, path, 0, out);
}

/* A text reason why `relative` may not be opened, or NULL. */
static const char *refuse_relative(struct sdx_str relative)
{
    if (relative.len == 0) return "the path is empty";
    if (memchr(relative.ptr, '\0', relative.len) != NULL) return "the path holds a NUL";
    if (relative.ptr[0] == '/') return "the path is absolute";
    for (size_t i = 0; i < relative.len;) {
        size_t end = i;
        while (end < relative.len && relative.ptr[end] != '/')
            end++;
        if (sdx_str_is((struct sdx_str){relative.ptr + i, end - i}, ".."))
            return "the path holds \"..\"";
        i = end + 1;
    }
    return NULL;
}

static bool is_below(const char *folder, const char *path)
{
    size_t length = strlen(folder);
    if (strcmp(folder, "/") == 0) return true;
    return strncmp(folder, path, length) == 0 && path[length] == '/';
}

enum sdx_status sdx_file_map_open_below(struct sdx_context *cx, const char *folder,
                                        struct sdx_str relative, struct sdx_file_map *out)
{
    *out = (struct sdx_file_map){0};
    const char *reason = refuse_relative(relative);
    if (reason != NULL)
        return SDX_FAIL(cx, SDX_BAD_MODEL, "external data \"%.*s\": %s", SDX_STR_ARG(relative),
                        reason);
    char joined[PATH_MAX], top[PATH_MAX], real[PATH_MAX];
    if (folder[0] == '\0') folder = ".";
    if (strlen(folder) + 1 + relative.len >= sizeof joined)
        return fail_errno(cx, "cannot open", folder, ENAMETOOLONG);
    snprintf(joined, sizeof joined, "%s/%.*s", folder, (int)relative.len, relative.ptr);
    if (realpath(folder, top) == NULL) return fail_errno(cx, "cannot open", folder, errno);
    if (realpath(joined, real) == NULL) return fail_errno(cx, "cannot open", joined, errno);
    if (!is_below(top, real))
        return SDX_FAIL(cx, SDX_BAD_MODEL, "external data \"%.*s\": a link leads out of the folder",
                        SDX_STR_ARG(relative));
    /* The resolved path holds no links; one put there since is refused. */
    return map_path(cx, joined, real, O_NOFOLLOW, out);
}

static bool is_mapped(const struct sdx_file_map *map, const void *bytes, size_t size)
{
    const uintptr_t begin = (uintptr_t)bytes, first = (uintptr_t)map->data;
    return map->is_file && begin >= first && begin - first <= map->size &&
           size <= map->size - (begin - first);
}
/* To the whole pages among the bytes; only a hint. */
static void advise(const struct sdx_file_map *map, const void *bytes, size_t size, int advice)
{
    uintptr_t begin = (uintptr_t)bytes, end = begin + size;
    if (!is_mapped(map, bytes, size)) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    if (begin < end) (void)madvise((void *)begin, end - begin, advice);
}

void sdx_file_map_drop(const struct sdx_file_map *map, const void *bytes, size_t size)
{
    advise(map, bytes, size, MADV_DONTNEED);
}

void sdx_file_map_use_small_pages(const struct sdx_file_map *map)
{
#ifdef MADV_NOHUGEPAGE
    if (map->is_file) (void)madvise((void *)(uintptr_t)map->data, map->size, MADV_NOHUGEPAGE);
#else
    (void)map;
#endif
}

enum { FAULT_AROUND = 64 << 10 }; /* that much of a file Linux maps at a fault */
void sdx_file_map_fetch(const struct sdx_file_map *map, const void *bytes, size_t size)
{
    if (!is_mapped(map, bytes, size)) return;
    const volatile uint8_t *at = bytes;
    for (size_t i = 0; i < size; i += FAULT_AROUND)
        (void)at[i];
}

void sdx_file_map_close(struct sdx_file_map *map)
{
    if (map->mapped) munmap((void *)(uintptr_t)map->data, map->size);
    *map = (struct sdx_file_map){0};
}

static void release(struct sdx_file_writer *w)
{
    sdx_mem_free(w->cx->mem, w->path);
    sdx_mem_free(w->cx->mem, w->path_temp);
    w->path = w->path_temp = NULL;
    w->stream = NULL;
}

/* Opens a new file beside w->path under a name that nobody has; its mode is that of the file it
 * will replace. */
static int open_temp(struct sdx_file_writer *w, size_t size, mode_t mode)
{
    static atomic_uint serial;
    for (int attempt = 0; attempt < 100; attempt++) {
        snprintf(w->path_temp, size, "%s.%ld-%u.tmp", w->path, (long)getpid(),
                 atomic_fetch_add(&serial, 1));
        int fd = open(w->path_temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

static enum sdx_status open_stream(struct sdx_file_writer *w, const char *path)
{
    struct stat facts;
    bool is_there = stat(path, &facts) == 0;
    if (is_there && S_ISDIR(facts.st_mode)) return fail_errno(w->cx, "cannot write", path, EISDIR);
    char real[PATH_MAX]; /* where a link leads: the link stays */
    if (is_there && realpath(path, real) != NULL) path = real;
    size_t length = strlen(path), size = length + 48;
    w->path = sdx_mem_alloc(w->cx->mem, SDX_MEM_OTHER, length + 1);
    if (w->path == NULL) return SDX_FAIL_MEMORY(w->cx);
    memcpy(w->path, path, length + 1);
    int fd;
    if (is_there && !S_ISREG(facts.st_mode)) /* a device or pipe: written as it stands */
        fd = open(path, O_WRONLY | O_CLOEXEC);
    else {
        w->path_temp = sdx_mem_alloc(w->cx->mem, SDX_MEM_OTHER, size);
        if (w->path_temp == NULL) return SDX_FAIL_MEMORY(w->cx);
        fd = open_temp(w, size, is_there ? facts.st_mode & 0777 : 0666);
    }
    if (fd < 0) return fail_errno(w->cx, "cannot write", w->path, errno);
    w->stream = fdopen(fd, "wb");
    if (w->stream != NULL) return SDX_OK;
    int code = errno;
    close(fd);
    if (w->path_temp != NULL) unlink(w->path_temp);
    return fail_errno(w->cx, "cannot write", w->path, code);
}

enum sdx_status sdx_file_writer_open(struct sdx_context *cx, const char *path,
                                     struct sdx_file_writer *out)
{
    *out = (struct sdx_file_writer){.cx = cx};
    enum sdx_status status = open_stream(out, path);
    if (status != SDX_OK) release(out);
    return status;
}

enum sdx_status sdx_file_writer_put(struct sdx_file_writer *w, const void *bytes, size_t size)
{
    if (size == 0 || fwrite(bytes, 1, size, w->stream) == size) return SDX_OK;
    return fail_errno(w->cx, "cannot write", w->path, errno);
}

enum sdx_status sdx_file_writer_close(struct sdx_file_writer *w)
{
    int code = 0;
    if (w->is_synced && (fflush(w->stream) != 0 || fsync(fileno(w->stream)) != 0)) code = errno;
    if (fclose(w->stream) != 0 && code == 0) code = errno;
    if (code == 0 && w->path_temp != NULL && rename(w->path_temp, w->path) != 0) code = errno;
    enum sdx_status status = SDX_OK;
    if (code != 0) {
        if (w->path_temp != NULL) unlink(w->path_temp);
        status = fail_errno(w->cx, "cannot write", w->path, code);
    }
    release(w);
    return status;
}

void sdx_file_writer_abandon(struct sdx_file_writer *w)
{
    if (w->stream == NULL) return;
    fclose(w->stream);
    if (w->path_temp != NULL) unlink(w->path_temp);
    release(w);
}

char *sdx_path_folder(struct sdx_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) return sdx_arena_strndup(arena, ".", 1);
    return sdx_arena_strndup(arena, path, slash == path ? 1 : (size_t)(slash - path));
}
