/* SPDX-License-Identifier: Apache-2.0
 * The user's folder for what can be made again, and locks between processes that write there. */
#ifndef SDX_BASE_CACHE_H
#define SDX_BASE_CACHE_H

#include "base/context.h"
#include "base/mem.h"

/* $XDG_CACHE_HOME/sardonyx, or .cache/sardonyx in $HOME; NULL when neither is an absolute path, or
 * without memory. */
char *sdx_cache_folder(struct sdx_arena *arena);
/* Makes the folder of `path`, with those above it, and waits for the lock, a file that stays. */
SDX_MUST_CHECK enum sdx_status sdx_cache_lock(struct sdx_context *cx, const char *path, int *lock);
void sdx_cache_unlock(int lock);
#endif
