/* SPDX-License-Identifier: Apache-2.0
 * Plan files: a model made ready for one kind of CPU. A file holds, in this order, a header, an
 * index of packed constants, what the API tells about the model, the graph as passes left it (an
 * ONNX message with operators and attributes of ours), its constants, and their packed forms:
 *
 *   header | index | keys | facts | graph || constants ... | packed forms ...
 *   '---------------- lead ---------------'
 *
 * Constants and packed forms are used in place, in the mapped file. The lead has a checksum; what
 * comes behind it, gigabytes perhaps, is only bounds-checked. */
#ifndef SDX_RUN_PLAN_FILE_H
#define SDX_RUN_PLAN_FILE_H

#include "base/file.h"

struct sdx_model;

/* SDX_PLAN_FORMAT rises with each change of the file and of any packed form, and when a pass is
 * found to have made wrong graphs. */
enum { SDX_PLAN_FORMAT = 37, SDX_PLAN_ALIGN = 64, SDX_PLAN_PAGE = 4096 };

/* A packed form: of which constant (its offset in the section of constants), named how, and where
 * it is. */
struct sdx_plan_pack {
    uint64_t constant;
    int64_t variant;
    uint64_t size;
    uint64_t at;  /* offset in the file, a multiple of SDX_PLAN_ALIGN */
    uint64_t key; /* offset of a text that ends with NUL in the keys */
};

/* A file that was read: everything points into its bytes, within bounds. */
struct sdx_plan_file {
    const unsigned char *bytes; /* NULL: none */
    size_t size;
    struct sdx_str graph, facts;
    const unsigned char *constants;
    size_t constants_size;
    const struct sdx_plan_pack *packs;
    uint64_t count_packs;
    const char *keys;
    int level; /* of optimisation */
};

/* Do these bytes begin as a plan file does? */
bool sdx_plan_is(const void *bytes, size_t size);
/* Checks a file against this library and CPU, its checksum and all bounds. `bytes` must be aligned
 * to SDX_PLAN_ALIGN. */
SDX_MUST_CHECK enum sdx_status sdx_plan_read(struct sdx_context *cx, const void *bytes, size_t size,
                                             struct sdx_plan_file *out);
/* Writes `model` as it is optimised at the highest level, with the forms packed so far. */
SDX_MUST_CHECK enum sdx_status sdx_plan_write(struct sdx_context *cx, struct sdx_model *model,
                                              const char *path);

/* plan_facts.c: what the API tells about a model, to the end of `to` and from there. Texts are used
 * in place. */
SDX_MUST_CHECK enum sdx_status
sdx_plan_put_facts(struct sdx_context *cx, const struct sdx_model *model, struct sdx_text *to);
SDX_MUST_CHECK enum sdx_status sdx_plan_get_facts(struct sdx_context *cx, struct sdx_str from,
                                                  struct sdx_model *model);

/* plan_file.c: the head of a file, for its writer. */
struct sdx_plan_header {
    char magic[8];
    uint32_t format, header_size;
    char version[24], cpu[32]; /* texts that end with NUL */
    uint32_t lanes, level;
    uint64_t tuning; /* hash of block sizes and the panel of products */
    uint64_t file_size, lead_size, checksum;
    uint64_t packs, count_packs, keys, keys_size, facts, facts_size, graph, graph_size;
    uint64_t constants, constants_size;
};
/* Magic, format, version, CPU of this library and machine. */
void sdx_plan_header_init(struct sdx_plan_header *h);
/* Of the lead, with the header's checksum taken as 0. */
uint64_t sdx_plan_checksum(const struct sdx_plan_header *h, const void *rest, size_t rest_size);
#endif
