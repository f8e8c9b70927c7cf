/* SPDX-License-Identifier: Apache-2.0
 * The nodes of a session whose operators are the caller's own, each with what its `create` made. */
#ifndef SDX_RUN_CUSTOM_NODES_H
#define SDX_RUN_CUSTOM_NODES_H

#include "ops/custom.h"
#include "run/store.h"

struct sdx_custom_nodes;

/* *out NULL: the graphs have none. On failure it is NULL too, and what was made is destroyed. */
SDX_MUST_CHECK enum sdx_status sdx_custom_nodes_create(struct sdx_context *cx,
                                                       const struct sdx_ir *ir,
                                                       struct sdx_store *store,
                                                       struct sdx_custom_nodes **out);
void sdx_custom_nodes_destroy(struct sdx_custom_nodes *nodes); /* NULL allowed */
struct sdx_node *sdx_custom_nodes_find(const struct sdx_custom_nodes *nodes,
                                       const struct sdx_ir_node *node);
#endif
