/* SPDX-License-Identifier: Apache-2.0
 * Packed constants of a model, keyed by (constant, form): two sessions, plans or shapes never pack
 * twice. Safe from several threads. */
#ifndef SDX_RUN_STORE_H
#define SDX_RUN_STORE_H

#include "base/file.h"
#include "ops/step.h"

struct sdx_store;

/* `map`: the model's file; what was packed from it is dropped from memory. NULL: no memory. */
struct sdx_store *sdx_store_create(struct sdx_mem *mem, const struct sdx_file_map *map);
void sdx_store_destroy(struct sdx_store *store); /* NULL allowed */
/* `size` bytes, 64-byte aligned, filled once by pack(dst, arg); they live as long as the store.
 * NULL: error set. */
const void *sdx_store_get(struct sdx_store *store, struct sdx_context *cx,
                          const struct sdx_tensor *constant, const char *key, int64_t variant,
                          size_t size, sdx_pack_fn *pack, void *arg);
#endif
