/* SPDX-License-Identifier: Apache-2.0
 * Any bytes behind the header of a plan file: the header is put right first (version, CPU, sizes,
 * checksum), so that what is fuzzed is the index, the facts, the graph and the packed forms. Then
 * the plan is opened and run on zeros. A failure must have a text and leave nothing behind. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/plan_file.h"

enum { INPUTS_MAX = 8, OUTPUTS_MAX = 16, COUNT_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Zeros of the declared type, unknown lengths 2; NULL for what is not a small tensor. */
static sdx_tensor *zeros(sdx_context *cx, const sdx_value_info *info)
{
    int64_t dims[8] = {2}, count = 1;
    const int rank = info->rank < 0 ? 1 : info->rank;
    sdx_tensor *t = NULL;
    if (info->kind != SDX_KIND_TENSOR || rank > 8) return NULL;
    for (int d = 0; d < info->rank; d++)
        dims[d] = info->dims[d] < 0 ? 2 : info->dims[d];
    for (int d = 0; d < rank; d++) {
        if (dims[d] > COUNT_MAX) return NULL;
        count *= dims[d];
        if (count > COUNT_MAX) return NULL;
    }
    return sdx_tensor_create(cx, info->dtype, rank, dims, &t) ? NULL : t;
}

static void run(sdx_context *cx, const sdx_model *model, sdx_session *session)
{
    sdx_tensor *in[INPUTS_MAX] = {0}, *out[OUTPUTS_MAX] = {0};
    sdx_feed feeds[INPUTS_MAX];
    const int count_in = sdx_model_count_inputs(model), count_out = sdx_model_count_outputs(model);
    if (count_in > INPUTS_MAX || count_out > OUTPUTS_MAX) return;
    int count = 0;
    bool whole = true;
    for (int i = 0; i < count_in; i++) {
        const sdx_value_info *info = sdx_model_input(model, i);
        if (info->optional) continue;
        in[i] = zeros(cx, info);
        whole = whole && in[i];
        feeds[count++] = (sdx_feed){info->name, in[i]};
    }
    if (whole) {
        sdx_status status = sdx_run(session, count, feeds, count_out, NULL, out);
        if (status != SDX_OK && sdx_error(cx)[0] == 0) abort();
        for (int i = 0; i < count_out; i++)
            sdx_tensor_destroy(out[i]);
    }
    for (int i = 0; i < count_in; i++)
        sdx_tensor_destroy(in[i]);
}

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
    if (status == SDX_OK) run(cx, model, session);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    if (sdx_memory_now(cx) != before) abort();
    sdx_context_destroy(cx);
    free(copy);
    return 0;
}
