/* SPDX-License-Identifier: Apache-2.0
 * Reading of plan files. Nothing in a file is trusted: every offset, size and text is checked
 * before it is used. What packed forms hold inside is checked where they are taken (run/store.h).
 */
#include "run/plan_file.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/cpu.h"
#include "kernels/conv_block.h"
#include "kernels/gemm.h"
#include "kernels/tuning.h"

static const unsigned char magic[8] = {0x8f, 'S', 'D', 'X', '\r', '\n', 0x1a, '\n'};

#if defined(__x86_64__)
#define ARCHITECTURE "x86-64"
#elif defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#else
#define ARCHITECTURE "other"
#endif

bool sdx_plan_is(const void *bytes, size_t size)
{
    return size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

void sdx_plan_header_init(struct sdx_plan_header *h)
{
    *h = (struct sdx_plan_header){.format = SDX_PLAN_FORMAT, .header_size = sizeof *h};
    memcpy(h->magic, magic, sizeof magic);
    snprintf(h->version, sizeof h->version, "%s", SDX_VERSION_STRING);
    snprintf(h->cpu, sizeof h->cpu, "%s %s", ARCHITECTURE, sdx_cpu_set_name(sdx_cpu_best()));
    h->lanes = (uint32_t)sdx_block_lanes();
    h->tuning = sdx_hash_bytes(sdx_kernel_tuning(), sizeof *sdx_kernel_tuning(),
                               (uint64_t)sdx_gemm_f32_panel());
}

uint64_t sdx_plan_checksum(const struct sdx_plan_header *h, const void *rest, size_t rest_size)
{
    struct sdx_plan_header bare = *h;
    bare.checksum = 0;
    return sdx_hash_bytes(rest, rest_size, sdx_hash_bytes(&bare, sizeof bare, 0));
}

static bool ends(const char *text, size_t size)
{
    return memchr(text, 0, size) != NULL;
}

/* Is the file of this library and for this CPU? */
static enum sdx_status check_maker(struct sdx_context *cx, const struct sdx_plan_header *h)
{
    struct sdx_plan_header own;
    sdx_plan_header_init(&own);
    if (!ends(h->version, sizeof h->version) || !ends(h->cpu, sizeof h->cpu))
        return SDX_FAIL(cx, SDX_BAD_DATA, "plan file: version and CPU are not texts");
    if (h->format != own.format || strcmp(h->version, own.version) != 0)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED,
                        "plan file: made by version %s, format %" PRIu32
                        ", expected version %s, format %" PRIu32 ": compile the model again",
                        h->version, h->format, own.version, own.format);
    if (strcmp(h->cpu, own.cpu) != 0)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED,
                        "plan file: made for %s, expected %s: compile the model again", h->cpu,
                        own.cpu);
    if (h->lanes != own.lanes || h->tuning != own.tuning)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED,
                        "plan file: made for a CPU with block sizes %" PRIu32 "-%" PRIx64
                        ", expected %" PRIu32 "-%" PRIx64 ": compile the model again",
                        h->lanes, h->tuning, own.lanes, own.tuning);
    return SDX_OK;
}

static bool within(uint64_t at, uint64_t size, uint64_t begin, uint64_t end)
{
    return at >= begin && at <= end && size <= end - at;
}

static enum sdx_status check_sections(struct sdx_context *cx, const struct sdx_plan_header *h)
{
    const uint64_t begin = h->header_size, end = h->lead_size;
    const bool packs_fit =
        h->count_packs <= end / sizeof(struct sdx_plan_pack) && h->packs % sizeof(uint64_t) == 0 &&
        within(h->packs, h->count_packs * sizeof(struct sdx_plan_pack), begin, end);
    const struct {
        const char *name;
        bool fits;
    } sections[] = {
        {"index", packs_fit},
        {"keys", within(h->keys, h->keys_size, begin, end)},
        {"facts", h->facts % sizeof(uint64_t) == 0 && within(h->facts, h->facts_size, begin, end)},
        {"graph", within(h->graph, h->graph_size, begin, end)},
        {"constants", h->constants % SDX_PLAN_ALIGN == 0 &&
                          within(h->constants, h->constants_size, end, h->file_size)}};
    for (int i = 0; i < SDX_COUNT_OF(sections); i++)
        if (!sections[i].fits)
            return SDX_FAIL(cx, SDX_BAD_DATA, "plan file: section \"%s\" is not within the file",
                            sections[i].name);
    return SDX_OK;
}

static enum sdx_status check_packs(struct sdx_context *cx, const struct sdx_plan_header *h,
                                   const struct sdx_plan_file *f)
{
    if (h->keys_size && f->keys[h->keys_size - 1] != 0)
        return SDX_FAIL(cx, SDX_BAD_DATA, "plan file: the keys do not end with NUL");
    for (uint64_t i = 0; i < f->count_packs; i++) {
        const struct sdx_plan_pack *p = &f->packs[i];
        if (p->key < h->keys_size && p->constant < h->constants_size &&
            p->at % SDX_PLAN_ALIGN == 0 && within(p->at, p->size, h->lead_size, h->file_size))
            continue;
        return SDX_FAIL(cx, SDX_BAD_DATA,
                        "plan file: packed form %" PRIu64 " (%" PRIu64 " bytes at %" PRIu64
                        ") is not within the file's %" PRIu64 " bytes",
                        i, p->size, p->at, h->file_size);
    }
    return SDX_OK;
}

enum sdx_status sdx_plan_read(struct sdx_context *cx, const void *bytes, size_t size,
                              struct sdx_plan_file *out)
{
    struct sdx_plan_header h;
    const unsigned char *base = bytes;
    *out = (struct sdx_plan_file){0};
    if (!sdx_plan_is(bytes, size)) return SDX_FAIL(cx, SDX_BAD_DATA, "not a plan file");
    if (size < sizeof h)
        return SDX_FAIL(cx, SDX_BAD_DATA, "plan file: has %zu bytes, expected at least %zu", size,
                        sizeof h);
    memcpy(&h, bytes, sizeof h);
    SDX_TRY(check_maker(cx, &h));
    if (h.file_size != size)
        return SDX_FAIL(cx, SDX_BAD_DATA, "plan file: has %zu bytes, expected %" PRIu64, size,
                        h.file_size);
    if (h.header_size != sizeof h || h.lead_size < sizeof h || h.lead_size > size)
        return SDX_FAIL(cx, SDX_BAD_DATA,
                        "plan file: lead has %" PRIu64 " bytes, expected %zu to %zu", h.lead_size,
                        sizeof h, size);
    const uint64_t sum = sdx_plan_checksum(&h, base + sizeof h, (size_t)h.lead_size - sizeof h);
    if (sum != h.checksum)
        return SDX_FAIL(cx, SDX_BAD_DATA,
                        "plan file: checksum is %016" PRIx64 ", expected %016" PRIx64, sum,
                        h.checksum);
    if ((uintptr_t)base % SDX_PLAN_ALIGN != 0)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT,
                        "plan file: bytes are at an odd address, expected a multiple of %d",
                        SDX_PLAN_ALIGN);
    SDX_TRY(check_sections(cx, &h));
    *out = (struct sdx_plan_file){.bytes = base,
                                  .size = size,
                                  .graph = {(const char *)base + h.graph, (size_t)h.graph_size},
                                  .facts = {(const char *)base + h.facts, (size_t)h.facts_size},
                                  .constants = base + h.constants,
                                  .constants_size = (size_t)h.constants_size,
                                  .packs =
                                      (const struct sdx_plan_pack *)(const void *)(base + h.packs),
                                  .count_packs = h.count_packs,
                                  .keys = (const char *)base + h.keys,
                                  .level = (int)h.level};
    return check_packs(cx, &h, out);
}
