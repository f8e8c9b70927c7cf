/* SPDX-License-Identifier: Apache-2.0
 * Optional modules: shared libraries of ours that are opened when they are needed, from the folder
 * of the library or program this code is in, or from where an environment variable says. And
 * libraries of others, which the loader may look for too. */
#ifndef SDX_BASE_MODULE_H
#define SDX_BASE_MODULE_H

#include "base/context.h"

/* Opens `file` (a name without folder; `variable` names another path when set) and finds `count`
 * functions by name. The module stays open. NOT_SUPPORTED, with the places looked at, when it is
 * not there. */
SDX_MUST_CHECK enum sdx_status sdx_module_open(struct sdx_context *cx, const char *file,
                                               const char *variable, int count,
                                               const char *const *names, void **functions);

/* A library of others that a program may have. */
struct sdx_foreign {
    const char *given;    /* path; NULL: as the variable says, or searched for */
    const char *variable; /* of the environment */
    const char *file;   /* its name, "libthing.so.1", beside this code or where the loader looks */
    const char *symbol; /* what is wanted of it */
    const char *ours;   /* a symbol of a stand-in that we make ourselves: not to be taken */
};

enum { SDX_MODULE_PATH = 512 };

/* Opens it, finds the symbol and writes the path of the file that has it. The library stays open.
 * NOT_SUPPORTED with the reason. */
SDX_MUST_CHECK enum sdx_status sdx_module_open_foreign(struct sdx_context *cx,
                                                       const struct sdx_foreign *what,
                                                       void **symbol, char path[SDX_MODULE_PATH]);
#endif
