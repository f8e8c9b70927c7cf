/* SPDX-License-Identifier: Apache-2.0
 * Packed constants of a model, keyed by (constant, form): two sessions, plans or shapes never pack
 * twice. Safe from several threads. A plan file brings forms along: they are used where they lie.
 */
#ifndef SDX_RUN_STORE_H
#define SDX_RUN_STORE_H

#include "base/file.h"
#include "ops/step.h"
#include "run/plan_file.h"

struct sdx_store;

/* map, external: the model's file and those of its external data; what was packed from them is
 * dropped from memory. NULL: no memory. */
struct sdx_store *sdx_store_create(struct sdx_mem *mem, const struct sdx_file_map *map,
                                   const struct sdx_external *external);
void sdx_store_destroy(struct sdx_store *store); /* NULL allowed */
/* Takes the forms of a file, which must live as long. Before the first use. */
SDX_MUST_CHECK enum sdx_status sdx_store_adopt(struct sdx_store *store, struct sdx_context *cx,
                                               const struct sdx_plan_file *file);

/* `size` bytes, 64-byte aligned, filled once; they live as long as the store. NULL: error set. */
const void *sdx_store_get(struct sdx_store *store, struct sdx_context *cx,
                          const struct sdx_tensor *constant, const struct sdx_pack *pack);
/* The elements as they are, for a constant that needs a copy. Its bytes, not to be written. */
void *sdx_store_get_aligned(struct sdx_store *store, struct sdx_context *cx,
                            const struct sdx_tensor *constant);
/* The same when it is there, else NULL. */
void *sdx_store_find_aligned(struct sdx_store *store, const struct sdx_tensor *constant);

/* The constant's elements are not needed soon: what is in a file of the model leaves memory. */
void sdx_store_drop(const struct sdx_store *store, const struct sdx_tensor *constant);
void sdx_store_drop_bytes(const struct sdx_store *store, const void *bytes, size_t size);

/* One that is there. */
struct sdx_packed {
    const void *constant; /* its sdx_tensor_key */
    const char *key;
    int64_t variant;
    size_t size, used; /* bytes that it has room for, that matter */
    const void *packed;
};
typedef enum sdx_status sdx_packed_fn(void *user, const struct sdx_packed *packed);
/* Calls fn for each, which stays where it is, in the order in which they were made, until it fails.
 * Nothing may be packed meanwhile. */
SDX_MUST_CHECK enum sdx_status sdx_store_each(struct sdx_store *store, sdx_packed_fn *fn,
                                              void *user);
#endif
