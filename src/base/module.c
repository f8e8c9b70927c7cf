/* SPDX-License-Identifier: Apache-2.0
 * Modules through dlopen. Of our own only full paths are opened: neither the current folder nor the
 * search path of the loader decides what runs. */
#include "base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SDX_MODULE_FOLDER
#define SDX_MODULE_FOLDER "../lib" /* from the program's folder, where that is installed */
#endif

/* The file this code is in: the shared library, or the program it is linked into. */
static bool own_path(char path[PATH_MAX])
{
    Dl_info info;
    struct link_map *map = NULL;
    static const char here = 0;
    if (dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) && map && map->l_name[0] == '/')
        return realpath(map->l_name, path) != NULL;
    if (map && map->l_name[0]) return strchr(map->l_name, '/') && realpath(map->l_name, path);
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length <= 0) return false;
    path[length] = 0;
    return true;
}

enum { PLACES = 2, PLACE_SIZE = PATH_MAX + 128 };

/* Full paths where the module may lie; returns their number. */
static int places_of(const char *file, const char *variable, char places[PLACES][PLACE_SIZE])
{
    static const char *const folders[PLACES] = {".", SDX_MODULE_FOLDER};
    const char *given = getenv(variable);
    char own[PATH_MAX];
    if (given && *given) {
        snprintf(places[0], PLACE_SIZE, "%s", given);
        return *given == '/';
    }
    if (!own_path(own)) return 0;
    char *slash = strrchr(own, '/');
    if (!slash) return 0;
    *slash = 0;
    for (int i = 0; i < PLACES; i++)
        snprintf(places[i], PLACE_SIZE, "%s/%s/%s", own, folders[i], file);
    return PLACES;
}

enum sdx_status sdx_module_open(struct sdx_context *cx, const char *file, const char *variable,
                                int count, const char *const *names, void **functions)
{
    char places[PLACES][PLACE_SIZE];
    const char *given = getenv(variable);
    int found = places_of(file, variable, places);
    void *module = NULL;
    for (int i = 0; i < found && !module; i++)
        if (access(places[i], R_OK) == 0) {
            module = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
            if (!module)
                return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "%s cannot be opened: %s", file, dlerror());
        }
    if (!module && given && *given)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "%s is \"%s\", expected the full path of %s",
                        variable, given, file);
    if (!module)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED,
                        "%s is not there: expected beside the library or program, or where %s says",
                        file, variable);
    for (int i = 0; i < count; i++) {
        functions[i] = dlsym(module, names[i]);
        if (!functions[i])
            return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "%s has no function %s", file, names[i]);
    }
    return SDX_OK;
}

/* Opens `path` (without a slash: where the loader looks) unless it is our own stand-in. */
static enum sdx_status open_foreign(struct sdx_context *cx, const struct sdx_foreign *what,
                                    const char *path, void **symbol)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "%s", dlerror());
    *symbol = dlsym(library, what->symbol);
    if (*symbol && !dlsym(library, what->ours)) return SDX_OK;
    enum sdx_status status = SDX_FAIL(cx, SDX_NOT_SUPPORTED, "%s %s %s", path,
                                      *symbol ? "is Sardonyx's own" : "has no function",
                                      *symbol ? what->file : what->symbol);
    *symbol = NULL;
    dlclose(library);
    return status;
}

enum sdx_status sdx_module_open_foreign(struct sdx_context *cx, const struct sdx_foreign *what,
                                        void **symbol, char path[SDX_MODULE_PATH])
{
    char places[PLACES][PLACE_SIZE];
    const char *given = what->given ? what->given : getenv(what->variable);
    *symbol = NULL;
    if (given && *given) {
        SDX_TRY(open_foreign(cx, what, given, symbol));
    } else {
        int found = places_of(what->file, what->variable, places);
        for (int i = 0; i <= found && !*symbol; i++)
            if (i == found || access(places[i], R_OK) == 0) {
                sdx_context_clear(cx);
                (void)open_foreign(cx, what, i == found ? what->file : places[i], symbol);
            }
        if (!*symbol) return sdx_fail_where(cx, "%s names no library", what->variable);
    }
    Dl_info info;
    snprintf(path, SDX_MODULE_PATH, "%s",
             dladdr(*symbol, &info) && info.dli_fname ? info.dli_fname : what->file);
    return SDX_OK;
}
