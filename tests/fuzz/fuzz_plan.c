/* SPDX-License-Identifier: Apache-2.0
 * Any bytes behind the header of a plan file: the header is put right first (version, CPU, sizes,
 * checksum), so that what is fuzzed is the index, the facts, the graph and the packed forms. Then
 * the plan is opened and run on zeros. A failure must have a text and leave nothing behind. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/plan_file.h"
#include "run_on_zeros.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The header as a writer of this library on this machine would have made it. */
static void put_right(uint8_t *bytes, size_t size)
{
    struct sdx_plan_header own, h;
    sdx_plan_header_init(&own);
    memcpy(&h, bytes, sizeof h);
    memcpy(h.magic, own.magic, sizeof h.magic);
    memcpy(h.version, own.version, sizeof h.version);
    memcpy(h.cpu, own.cpu, sizeof h.cpu);
    h.format = own.format;
    h.header_size = own.header_size;
    h.lanes = own.lanes;
    h.tuning = own.tuning;
    h.file_size = size;
    if (h.lead_size < sizeof h || h.lead_size > size) h.lead_size = size;
    h.checksum = sdx_plan_checksum(&h, bytes + sizeof h, (size_t)h.lead_size - sizeof h);
    memcpy(bytes, &h, sizeof h);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    sdx_context_options options;
    sdx_context_options_init(&options);
    options.memory_limit = (size_t)256 << 20;
    options.threads = 1;
    sdx_context *cx = sdx_context_create(&options);
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    if (!cx) abort();
    const size_t rounded = (size + SDX_PLAN_ALIGN) / SDX_PLAN_ALIGN * SDX_PLAN_ALIGN;
    uint8_t *copy = aligned_alloc(SDX_PLAN_ALIGN, rounded);
    if (!copy) abort();
    memcpy(copy, bytes, size);
    if (size >= sizeof(struct sdx_plan_header)) put_right(copy, size);
    const size_t before = sdx_memory_now(cx);
    sdx_status status = sdx_model_load(cx, copy, size, NULL, &model);
    if (status == SDX_OK) status = sdx_session_create(cx, model, NULL, &session);
    if (status == SDX_INTERNAL || (status != SDX_OK && sdx_error(cx)[0] == 0)) abort();
    if (status == SDX_OK) run_on_zeros(cx, model, session);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    if (sdx_memory_now(cx) != before) abort();
    sdx_context_destroy(cx);
    free(copy);
    return 0;
}
