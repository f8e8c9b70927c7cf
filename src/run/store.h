/* SPDX-License-Identifier: Apache-2.0
 * Packed constants of a model, keyed by (constant, form): two sessions, plans or shapes never pack twice.
 * Safe from several threads. */
#ifndef SDX_RUN_STORE_H
#define SDX_RUN_STORE_H

#include "ops/step.h"

struct sdx_store;

struct sdx_store *sdx_store_create(struct sdx_mem *mem); /* NULL: no memory */
void sdx_store_destroy(struct sdx_store *store);         /* NULL allowed */
/* `size` bytes, 64-byte aligned, filled once by pack(dst, arg); they live as long as the store. NULL: error set. */
const void *sdx_store_get(struct sdx_store *store, struct sdx_context *cx, const void *constant, const char *key,
                          int64_t variant, size_t size, sdx_pack_fn *pack, void *arg);
#endif
