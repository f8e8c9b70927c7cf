/* SPDX-License-Identifier: Apache-2.0
 * The user's cache folder (XDG Base Directory Specification 0.8) and locks in it. */
#include "base/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

char *sdx_cache_folder(struct sdx_arena *arena)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/') return sdx_arena_printf(arena, "%s/sardonyx", cache);
    if (home && home[0] == '/') return sdx_arena_printf(arena, "%s/.cache/sardonyx", home);
    return NULL;
}

/* All folders above the last name; of each that is not there, only the user may see what is in. */
static enum sdx_status make_folders(struct sdx_context *cx, const char *path)
{
    struct sdx_arena arena;
    enum sdx_status status = SDX_OK;
    sdx_arena_init(&arena, cx->mem, SDX_MEM_OTHER);
    char *copy = sdx_arena_strndup(&arena, path, strlen(path));
    if (!copy) status = SDX_FAIL_MEMORY(cx);
    for (char *at = copy; at && status == SDX_OK && (at = strchr(at + 1, '/')) != NULL; *at = '/') {
        *at = 0;
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            status = SDX_FAIL(cx, SDX_IO, "cannot make \"%s\": %s", copy, strerror(errno));
    }
    sdx_arena_deinit(&arena);
    return status;
}

enum sdx_status sdx_cache_lock(struct sdx_context *cx, const char *path, int *lock)
{
    *lock = -1;
    SDX_TRY(make_folders(cx, path));
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int rc = -1;
    if (fd >= 0) do
            rc = flock(fd, LOCK_EX);
        while (rc != 0 && errno == EINTR);
    if (rc == 0) {
        *lock = fd;
        return SDX_OK;
    }
    const int code = errno;
    if (fd >= 0) close(fd);
    return SDX_FAIL(cx, SDX_IO, "cannot lock \"%s\": %s", path, strerror(code));
}

void sdx_cache_unlock(int lock)
{
    if (lock >= 0) close(lock);
}
