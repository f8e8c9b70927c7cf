/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a model through the public interface: check, load, make a session, run on zeros.
 * Memory is limited, and a run is cancelled after a second, as a user of untrusted models would do.
 * Every failure must have a text; what fails to allocate or to run must leave nothing behind. */
#include <stdint.h>
#include <stdlib.h>

#include "run_on_zeros.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void count_fault(const char *text, void *user)
{
    if (text[0] == 0) abort();
    ++*(int *)user;
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
    int faults = 0;
    if (!cx) abort();
    size_t before = sdx_memory_now(cx);
    sdx_status checked = sdx_check_bytes(cx, bytes, size, count_fault, &faults);
    if (checked == SDX_OK && faults) abort();
    if (checked == SDX_BAD_MODEL && !faults) abort();
    sdx_status status = sdx_model_load(cx, bytes, size, NULL, &model);
    if (status == SDX_OK) status = sdx_session_create(cx, model, NULL, &session);
    if (status == SDX_INTERNAL || (status != SDX_OK && sdx_error(cx)[0] == 0)) abort();
    if (status == SDX_OK) run_on_zeros(cx, model, session);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    if (sdx_memory_now(cx) != before) abort();
    sdx_context_destroy(cx);
    return 0;
}
