/* SPDX-License-Identifier: Apache-2.0
 * Public API: sessions, runs, profile. */
#include "provider/provider.h"

void sdx_session_options_init(sdx_session_options *options)
{
    *options = (sdx_session_options){.size = sizeof *options, .level = SDX_LEVEL_ALL, .plans = 8};
}

static sdx_session_options options_of(const sdx_session_options *given)
{
    sdx_session_options options;
    sdx_session_options_init(&options);
    if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    return options;
}

sdx_status sdx_session_create(sdx_context *cx, const sdx_model *model,
                              const sdx_session_options *given, sdx_session **out)
{
    *out = NULL;
    sdx_context_clear(cx);
    if (!model) return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "model is NULL");
    const sdx_session_options options = options_of(given);
    /* Only what the model keeps behind its lock (graphs, packed constants) changes. */
    struct sdx_model *shared = (struct sdx_model *)(uintptr_t)model;
    if (options.count_providers || options.count_provider_options)
        SDX_TRY(sdx_remote_open(cx, shared, &options, out));
    return *out ? SDX_OK : sdx_session_open(cx, shared, &options, out);
}

void sdx_session_destroy(sdx_session *session)
{
    if (session && session->remote)
        sdx_remote_close(session);
    else
        sdx_session_close(session);
}

sdx_status sdx_session_save_plan(sdx_session *session, const char *path)
{
    sdx_context_clear(session->user);
    sdx_context_clear(&session->cx);
    sdx_status status =
        path && !session->remote
            ? sdx_plan_write(&session->cx, session->model, path)
            : SDX_FAIL(&session->cx, path ? SDX_NOT_SUPPORTED : SDX_INVALID_ARGUMENT, "%s",
                       path ? "only " SDX_PROVIDER_OWN " has plan files" : "path is NULL");
    return status ? SDX_FAIL(session->user, status, "%s", session->cx.error.text) : SDX_OK;
}

sdx_status sdx_session_save_model(sdx_session *session, const char *path)
{
    sdx_context_clear(session->user);
    sdx_context_clear(&session->cx);
    sdx_status status =
        path ? sdx_model_save_optimised(&session->cx, session->model, session->level, path)
             : SDX_FAIL(&session->cx, SDX_INVALID_ARGUMENT, "path is NULL");
    return status ? SDX_FAIL(session->user, status, "%s", session->cx.error.text) : SDX_OK;
}

sdx_status sdx_run(sdx_session *session, int count_feeds, const sdx_feed *feeds, int count_outputs,
                   const char *const *names, sdx_tensor **outputs)
{
    sdx_context_clear(session->user);
    return (session->remote ? sdx_remote_run : sdx_session_run)(session, count_feeds, feeds,
                                                                count_outputs, names, outputs);
}

void sdx_cancel(sdx_session *session)
{
    atomic_store(&session->cancel, 1);
    if (session->remote) sdx_remote_cancel(session);
}

const char *sdx_session_provider(const sdx_session *session, int i)
{
    if (!session->remote) return i == 0 ? SDX_PROVIDER_OWN : NULL;
    return i >= 0 && i < session->remote->count ? session->remote->names[i] : NULL;
}

sdx_status sdx_providers(sdx_context *cx, const char *ort_library, sdx_provider_fn each, void *user)
{
    sdx_context_clear(cx);
    if (!each) return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "each is NULL");
    return sdx_remote_list(cx, ort_library, each, user);
}

sdx_status sdx_providers_start(sdx_context *cx, const sdx_session_options *given)
{
    sdx_context_clear(cx);
    const sdx_session_options options = options_of(given);
    return options.count_providers || options.count_provider_options ? sdx_remote_try(cx, &options)
                                                                     : SDX_OK;
}

void sdx_cancel_clear(sdx_session *session)
{
    atomic_store(&session->cancel, 0);
}

const char *sdx_session_error(const sdx_session *session)
{
    return session->cx.error.text;
}

const sdx_profile_row *sdx_session_profile(const sdx_session *session, int i)
{
    return session->graph.shared.profile && i >= 0 && i < session->profile.count
               ? &session->profile.rows[i]
               : NULL;
}

void sdx_session_profile_reset(sdx_session *session)
{
    if (session->graph.shared.profile) sdx_profile_reset(&session->profile);
}
