/* SPDX-License-Identifier: Apache-2.0
 * Custom operators for sessions of a real ONNX Runtime library. Such an operator keeps the
 * functions of the runtime that registered it, and its handles are of one runtime only. So its
 * library is loaded a second time, from a copy in memory, and registers itself with the real one:
 * state of its own, another file to the loader. Operators of the program itself cannot be had
 * twice. */
#include "ort_customop.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where the header-only interface in C++ keeps the table of functions. Libraries that export it
 * have it in common with all their copies. */
static const char shared_api[] = "_ZN3Ort6GlobalIvE4api_E";

/* What `address` is in; NULL: nothing that has a name. */
static const char *file_of(const void *address, void **base)
{
    Dl_info info = {0};
    if (!dladdr(address, &info)) return NULL;
    *base = info.dli_fbase;
    return info.dli_fname;
}

/* The library of an operator, if that can be loaded twice; otherwise why not. */
static const char *find_library(const OrtCustomOp *op, const char **path)
{
    const void *function = NULL;
    void *base = NULL, *register_base = NULL;
    memcpy(&function, &op->GetName, sizeof function);
    *path = file_of(function, &base);
    void *library = *path ? dlopen(*path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    const void *entry = library ? dlsym(library, "RegisterCustomOps") : NULL;
    const bool is_library = entry && file_of(entry, &register_base) && base == register_base;
    const bool is_shared = library && dlsym(library, shared_api);
    if (library) dlclose(library);
    return !is_library ? "is the program's own; only those of a library go to another runtime"
           : is_shared ? "is of a library that exports its table of functions, so that it cannot "
                         "serve two runtimes"
                       : NULL;
}

/* A copy of a file in memory; -1: it cannot be made. */
static int copy_file(const char *path)
{
    struct stat about;
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    int to = from < 0 ? -1 : memfd_create("custom operators", MFD_CLOEXEC);
    if (to >= 0 && fstat(from, &about) == 0)
        for (ssize_t sent = 1; about.st_size > 0 && sent > 0; about.st_size -= sent)
            sent = sendfile(to, from, NULL, (size_t)about.st_size);
    if (to >= 0 && about.st_size != 0) {
        close(to);
        to = -1;
    }
    if (from >= 0) close(from);
    return to;
}

static const char *fail(struct ort_handed *handed, const char *what, const char *why)
{
    snprintf(handed->why, sizeof handed->why, "%s %s", what, why);
    return handed->why;
}

/* The copy stays open with the session: its number is the name that the loader knows it by. */
static const char *hand_library(struct ort_handed *handed, const OrtApi *api,
                                OrtSessionOptions *options, const char *path)
{
    enum { MOST = sizeof handed->copies / sizeof handed->copies[0] };
    char name[64];
    if (handed->count == MOST) return fail(handed, path, "is one library too many");
    const int copy = copy_file(path);
    if (copy < 0) return fail(handed, path, "cannot be copied");
    handed->copies[handed->count++] = copy;
    snprintf(name, sizeof name, "/proc/self/fd/%d", copy);
    OrtStatusPtr failed = api->RegisterCustomOpsLibrary_V2(options, name);
    if (!failed) return NULL;
    fail(handed, path, api->GetErrorMessage(failed));
    api->ReleaseStatus(failed);
    return handed->why;
}

const char *ort_custom_hand(const void *api, void *options, void *user)
{
    OrtSession *session = user;
    const OrtSessionOptions *given = session->options;
    const char *done[sizeof session->handed.copies / sizeof session->handed.copies[0]];
    size_t count = 0;
    for (size_t i = 0; i < given->count_domains; i++)
        for (size_t k = 0; k < given->domains[i]->count; k++) {
            const OrtCustomOp *op = given->domains[i]->ops[k];
            const char *path = NULL, *why = find_library(op, &path);
            size_t at = 0;
            if (why) return fail(&session->handed, op->GetName(op), why);
            while (at < count && strcmp(done[at], path) != 0)
                at++;
            if (at < count) continue;
            why = hand_library(&session->handed, api, options, path);
            if (why) return why;
            done[count++] = path;
        }
    return NULL;
}

void ort_custom_unhand(struct ort_handed *handed)
{
    while (handed->count)
        close(handed->copies[--handed->count]);
}
