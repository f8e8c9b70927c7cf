/* SPDX-License-Identifier: Apache-2.0
 * Lookup of operator rows. The families' arrays are indexed by a hash of domain and name, built at
 * the first use; rows of one operator are chained. */
#include <pthread.h>

#include "ops/custom.h"
#include "ops/families.h"

#define FAMILY_DECLARE(name) extern const struct sdx_op_family sdx_ops_##name;
SDX_OP_FAMILIES(FAMILY_DECLARE)
#undef FAMILY_DECLARE

static const struct sdx_op_family *const families[] = {
#define FAMILY_POINTER(name) &sdx_ops_##name,
    SDX_OP_FAMILIES(FAMILY_POINTER)
#undef FAMILY_POINTER
};

enum { SLOTS = 4096, ROWS_MAX = 2000 };

struct entry {
    const struct sdx_op *op;
    const char *domain;
    int16_t next; /* entry of another version of the same operator, or of another with the same
                     slot; -1: none */
};

static struct entry entries[ROWS_MAX];
static int16_t slots[SLOTS];
static int count_entries;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static unsigned slot_of(struct sdx_str domain, struct sdx_str name)
{
    uint64_t h = sdx_hash_bytes(name.ptr, name.len, sdx_hash_bytes(domain.ptr, domain.len, 0));
    return (unsigned)(h % SLOTS);
}

static void build_index(void)
{
    for (int i = 0; i < SLOTS; i++)
        slots[i] = -1;
    for (int f = 0; f < SDX_COUNT_OF(families); f++) {
        for (int i = 0; i < families[f]->count; i++) {
            const struct sdx_op *op = &families[f]->ops[i];
            unsigned s = slot_of(sdx_str(families[f]->domain), sdx_str(op->name));
            SDX_ASSERT(count_entries < ROWS_MAX);
            entries[count_entries] = (struct entry){op, families[f]->domain, slots[s]};
            slots[s] = (int16_t)count_entries++;
        }
    }
}

void sdx_cost_none(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    (void)ix;
    *cost = (struct sdx_cost){0, 0};
}

const struct sdx_op *sdx_op_find(struct sdx_str domain, struct sdx_str name, int64_t opset)
{
    pthread_once(&once, build_index);
    if (sdx_str_is(domain, "ai.onnx")) domain = SDX_STR("");
    for (int e = slots[slot_of(domain, name)]; e >= 0; e = entries[e].next) {
        const struct sdx_op *op = entries[e].op;
        if (opset < op->since || (op->until && opset > op->until)) continue;
        if (sdx_str_is(name, op->name) && sdx_str_is(domain, entries[e].domain)) return op;
    }
    return NULL;
}

enum sdx_status sdx_ops_bind(struct sdx_context *cx, struct sdx_ir *ir, bool must)
{
    for (int g = 0; g < ir->count_graphs; g++)
        for (int n = 0; n < ir->graphs[g].count_nodes; n++) {
            struct sdx_ir_node *node = &ir->graphs[g].nodes[n];
            if (node->is_dead) continue;
            if (ir->customs) {
                SDX_TRY(sdx_custom_take(cx, ir, node));
                if (sdx_custom_of(node)) continue;
            }
            node->op = sdx_op_find(node->domain, node->op_type, node->opset);
            if (!node->op && must)
                return SDX_FAIL(cx, SDX_NOT_SUPPORTED,
                                "node \"%.*s\": operator %.*s%s%.*s version %lld is not supported",
                                SDX_STR_ARG(node->name), SDX_STR_ARG(node->domain),
                                node->domain.len ? "." : "", SDX_STR_ARG(node->op_type),
                                (long long)node->opset);
        }
    return SDX_OK;
}
