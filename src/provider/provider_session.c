/* SPDX-License-Identifier: Apache-2.0
 * Sessions of an ONNX Runtime library: made, run, cancelled, closed. What is fed is checked like
 * everywhere, so its errors are the engine's; what happens inside carries the library's text. */
#include "provider/provider.h"

#include "base/thread_pool.h"

#define TRY_ORT(call) SDX_TRY(sdx_ort_status(&r->library, &s->cx, r->names[0], (call)))

static void take_log(void *user, OrtLoggingLevel severity, const char *category, const char *id,
                     const char *place, const char *message)
{
    (void)category, (void)id, (void)place;
    int level = severity < ORT_LOGGING_LEVEL_ERROR ? (int)severity : SDX_LOG_ERROR;
    sdx_log(user, (sdx_log_level)level, "ort", "%s", message);
}

static enum sdx_status create(struct sdx_session *s, const struct sdx_session_options *options)
{
    struct sdx_remote *r = s->remote;
    const OrtApi *api = r->library.api;
    const struct sdx_model *m = s->model;
    int threads = options->threads > 0 ? options->threads : sdx_pool_threads(s->cx.pool);
    const bool is_foreign = m->customs && !options->ort_setup;
    if (m->plan.bytes || is_foreign || options->profile)
        return SDX_FAIL(&s->cx, SDX_NOT_SUPPORTED, "%s: %s only with " SDX_PROVIDER_OWN,
                        r->names[0],
                        m->plan.bytes ? "a plan file runs"
                        : is_foreign  ? "operators of the caller's own run"
                                      : "there is a profile");
    sdx_level level = options->level;
    TRY_ORT(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &r->memory));
    TRY_ORT(api->GetAllocatorWithDefaultOptions(&r->allocator));
    SDX_TRY(sdx_remote_give(&s->cx, s->model, r, &level));
    const char *why =
        options->ort_setup ? options->ort_setup(api, r->options, options->ort_setup_user) : NULL;
    if (why) return SDX_FAIL(&s->cx, SDX_NOT_SUPPORTED, "%s: %s", r->names[0], why);
    TRY_ORT(api->SetUserLoggingFunction(r->options, take_log, s->user));
    TRY_ORT(api->SetSessionLogSeverityLevel(r->options, (int)s->user->log_level));
    TRY_ORT(api->SetIntraOpNumThreads(r->options, threads));
    TRY_ORT(api->SetSessionGraphOptimizationLevel(r->options, (GraphOptimizationLevel)level));
    if (m->path && !m->has_folder)
        TRY_ORT(api->CreateSession(r->library.env, m->path, r->options, &r->session));
    else
        TRY_ORT(api->CreateSessionFromArray(r->library.env, m->bytes, m->size, r->options,
                                            &r->session));
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->names[i], SDX_PROVIDER_CPU) == 0) return SDX_OK;
    if (r->count < SDX_PROVIDERS)
        memcpy(r->names[r->count++], SDX_PROVIDER_CPU, sizeof SDX_PROVIDER_CPU);
    return SDX_OK;
}

static struct sdx_remote *new_remote(struct sdx_context *cx)
{
    struct sdx_remote *r = sdx_mem_calloc(cx->mem, SDX_MEM_PLAN, 1, sizeof *r);
    if (r) atomic_store(&r->refs, 1);
    return r;
}

static void close_remote(struct sdx_mem *mem, struct sdx_remote *r)
{
    const OrtApi *api = r->library.api;
    if (atomic_fetch_sub(&r->refs, 1) > 1) return;
    if (r->memory) api->ReleaseMemoryInfo(r->memory);
    if (r->session) api->ReleaseSession(r->session);
    if (r->options) api->ReleaseSessionOptions(r->options);
    for (int i = 0; i < r->count_given; i++)
        if (r->given[i]) api->ReleaseValue(r->given[i]);
    sdx_mem_free(mem, r->given);
    sdx_ort_close(&r->library);
    sdx_mem_free(mem, r);
}

enum sdx_status sdx_remote_open(struct sdx_context *cx, struct sdx_model *model,
                                const struct sdx_session_options *options, struct sdx_session **out)
{
    const struct sdx_session *sibling = options->sibling;
    *out = NULL;
    if (sibling && (sibling->model != model || sibling->user != cx))
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "the sibling is of another model or context");
    if (sibling && !sibling->remote) return SDX_OK;
    struct sdx_remote *r = sibling ? sibling->remote : new_remote(cx);
    if (!r) return SDX_FAIL_MEMORY(cx);
    enum sdx_status status = SDX_OK;
    if (sibling)
        atomic_fetch_add(&r->refs, 1);
    else
        status = sdx_remote_choose(cx, options, r);
    if (status != SDX_OK || r->count == 0) {
        close_remote(cx->mem, r);
        return status;
    }
    struct sdx_session *s = sdx_session_new(cx, model, options->memory_limit);
    if (!s) {
        close_remote(cx->mem, r);
        return SDX_FAIL_MEMORY(cx);
    }
    s->remote = r;
    s->cancel_holds = options->cancel_holds;
    s->level = options->level;
    if (!sibling) status = create(s, options);
    if (status == SDX_OK)
        status = sdx_ort_status(&r->library, &s->cx, r->names[0],
                                r->library.api->CreateRunOptions(&s->remote_run));
    if (status == SDX_OK) {
        *out = s;
        return SDX_OK;
    }
    bool is_left = r->is_lenient && r->own_is_next;
    if (is_left)
        sdx_log(cx, SDX_LOG_WARNING, "provider", "%s", s->cx.error.text);
    else
        (void)SDX_FAIL(cx, status, "%s", s->cx.error.text);
    sdx_remote_close(s);
    return is_left ? SDX_OK : status;
}

enum sdx_status sdx_remote_try(struct sdx_context *cx, const struct sdx_session_options *options)
{
    struct sdx_remote *r = new_remote(cx);
    if (!r) return SDX_FAIL_MEMORY(cx);
    enum sdx_status status = sdx_remote_choose(cx, options, r);
    if (status == SDX_OK && r->count)
        status = sdx_remote_probe(&r->library, cx, r->names[0], r->options);
    close_remote(cx->mem, r);
    return status;
}

void sdx_remote_close(struct sdx_session *s)
{
    if (s->remote_run) s->remote->library.api->ReleaseRunOptions(s->remote_run);
    if (s->remote) close_remote(s->user->mem, s->remote);
    s->remote = NULL;
    sdx_session_close(s);
}

void sdx_remote_cancel(struct sdx_session *s)
{
    const OrtApi *api = s->remote->library.api;
    OrtStatusPtr failed = api->RunOptionsSetTerminate(s->remote_run);
    if (failed) api->ReleaseStatus(failed);
}

/* ---- runs ---- */

/* What one run hands over: an entry a feed, an entry an output. */
struct call {
    struct sdx_session *s;
    const char **in_names, **out_names;
    OrtValue **in, **out;
    struct sdx_tensor **packed; /* copies of feeds that grow */
    struct sdx_tensor **made;   /* outputs, before all of them are there */
    const struct sdx_value_info **infos;
};

static const struct sdx_value_info *find(const struct sdx_value_info *infos, int32_t count,
                                         const char *name)
{
    for (int32_t i = 0; name && i < count; i++)
        if (strcmp(infos[i].name, name) == 0) return &infos[i];
    return NULL;
}

static enum sdx_status take_feed(struct call *c, int f, const struct sdx_feed *feed)
{
    struct sdx_session *s = c->s;
    const struct sdx_value_info *info = find(s->model->inputs, s->model->count_inputs, feed->name);
    const struct sdx_tensor *t = feed->value;
    SDX_TRY(sdx_session_check_feed(s, info, feed));
    if (t->kind == SDX_KIND_OPTIONAL && t->count) t = t->items[0];
    if (t->kind == SDX_KIND_TENSOR && t->layout == SDX_LAYOUT_GROWING) {
        SDX_TRY(sdx_tensor_clone(&s->cx, t, &c->packed[f]));
        t = c->packed[f];
    }
    c->in_names[f] = info->name;
    enum sdx_status status =
        sdx_remote_value(&s->cx, s->remote, t, info->rank == 0 ? 0 : t->rank, &c->in[f]);
    return status ? sdx_fail_where(&s->cx, "input \"%s\"", info->name) : SDX_OK;
}

static enum sdx_status take_output(struct call *c, int k, const char *name,
                                   const struct sdx_tensor *to)
{
    struct sdx_session *s = c->s;
    const struct sdx_value_info *info = find(s->model->outputs, s->model->count_outputs, name);
    if (!info)
        return SDX_FAIL(&s->cx, SDX_NOT_FOUND, "no output is named \"%s\"", name ? name : "");
    c->infos[k] = info;
    c->out_names[k] = info->name;
    if (!to || to->layout == SDX_LAYOUT_GROWING) return SDX_OK;
    if (to->kind != SDX_KIND_TENSOR || to->dtype == SDX_STRING)
        return SDX_FAIL(&s->cx, SDX_NOT_SUPPORTED,
                        "output \"%s\": only tensors of numbers are written into", name);
    return sdx_remote_value(&s->cx, s->remote, to, to->rank, &c->out[k]);
}

/* Into a tensor that grows: `from` is what is in use of it afterwards. */
static enum sdx_status grow(struct sdx_session *s, const char *name, const struct sdx_tensor *from,
                            struct sdx_tensor *to)
{
    char text[256];
    bool fits = from->kind == SDX_KIND_TENSOR && from->dtype == to->dtype && from->rank == to->rank;
    for (int d = 0; fits && d < to->rank; d++)
        fits = d == to->axis ? from->dims[d] <= to->capacity : from->dims[d] == to->dims[d];
    if (!fits)
        return SDX_FAIL(&s->cx, SDX_BAD_INPUT, "output \"%s\" is %s, which does not fit its tensor",
                        name, sdx_tensor_describe(from, text, sizeof text));
    sdx_tensor_grow_to(to, from->dims[to->axis]);
    sdx_tensor_copy(from, to, 0, sdx_tensor_copy_parts(from, to));
    return SDX_OK;
}

static enum sdx_status give(struct call *c, int count, struct sdx_tensor **outputs)
{
    struct sdx_session *s = c->s;
    for (int k = 0; k < count; k++) {
        const struct sdx_value_info *info = c->infos[k];
        if (outputs[k] && outputs[k]->layout != SDX_LAYOUT_GROWING) continue;
        sdx_context_clear(&s->results_cx);
        enum sdx_status status = sdx_remote_tensor(&s->results_cx, s->remote, c->out[k], info->kind,
                                                   info->dtype, &c->made[k]);
        if (status)
            return SDX_FAIL(&s->cx, status, "output \"%s\": %s", info->name,
                            s->results_cx.error.text);
    }
    for (int k = 0; k < count; k++) {
        if (outputs[k] && c->made[k]) SDX_TRY(grow(s, c->infos[k]->name, c->made[k], outputs[k]));
        if (outputs[k]) continue;
        outputs[k] = c->made[k];
        c->made[k] = NULL;
    }
    return SDX_OK;
}

static enum sdx_status run(struct call *c, int count_feeds, const struct sdx_feed *feeds, int count,
                           const char *const *names, struct sdx_tensor **outputs)
{
    struct sdx_session *s = c->s;
    struct sdx_remote *r = s->remote;
    const OrtApi *api = r->library.api;
    if (!s->cancel_holds) atomic_store(&s->cancel, 0);
    TRY_ORT(api->RunOptionsUnsetTerminate(s->remote_run));
    if (!names && count != s->model->count_outputs)
        return SDX_FAIL(&s->cx, SDX_INVALID_ARGUMENT, "room for %d outputs, the model has %d",
                        count, s->model->count_outputs);
    for (int f = 0; f < count_feeds; f++)
        SDX_TRY(take_feed(c, f, &feeds[f]));
    for (int k = 0; k < count; k++)
        SDX_TRY(take_output(c, k, names ? names[k] : s->model->outputs[k].name, outputs[k]));
    const bool is_cancelled = atomic_load(&s->cancel); /* since then, or it holds */
    OrtStatusPtr failed = NULL;
    if (!is_cancelled)
        failed = api->Run(r->session, s->remote_run, c->in_names, (const OrtValue *const *)c->in,
                          (size_t)count_feeds, c->out_names, (size_t)count, c->out);
    if (is_cancelled || (failed && atomic_load(&s->cancel))) {
        if (failed) api->ReleaseStatus(failed);
        return SDX_FAIL(&s->cx, SDX_CANCELLED, "the run was cancelled");
    }
    TRY_ORT(failed);
    return give(c, count, outputs);
}

enum sdx_status sdx_remote_run(struct sdx_session *s, int count_feeds, const struct sdx_feed *feeds,
                               int count_outputs, const char *const *names,
                               struct sdx_tensor **outputs)
{
    const OrtApi *api = s->remote->library.api;
    struct sdx_arena arena;
    sdx_context_clear(&s->cx);
    sdx_arena_init(&arena, &s->mem, SDX_MEM_SCRATCH);
    const size_t feeds_room = (size_t)count_feeds + 1, outputs_room = (size_t)count_outputs + 1;
    void **room = sdx_arena_array(&arena, 3 * feeds_room + 4 * outputs_room, sizeof *room);
    struct call c = {.s = s};
    enum sdx_status status = room ? SDX_OK : SDX_FAIL_MEMORY(&s->cx);
    if (room) {
        c.in_names = (const char **)room;
        c.in = (OrtValue **)(room += feeds_room);
        c.packed = (struct sdx_tensor **)(room += feeds_room);
        c.out_names = (const char **)(room += feeds_room);
        c.out = (OrtValue **)(room += outputs_room);
        c.made = (struct sdx_tensor **)(room += outputs_room);
        c.infos = (const struct sdx_value_info **)(room += outputs_room);
        status = run(&c, count_feeds, feeds, count_outputs, names, outputs);
        for (int f = 0; f < count_feeds; f++) {
            if (c.in[f]) api->ReleaseValue(c.in[f]);
            sdx_tensor_release(c.packed[f]);
        }
        for (int k = 0; k < count_outputs; k++) {
            if (c.out[k]) api->ReleaseValue(c.out[k]);
            sdx_tensor_release(c.made[k]);
        }
    }
    sdx_arena_deinit(&arena);
    return status ? SDX_FAIL(s->user, status, "%s", s->cx.error.text) : SDX_OK;
}
