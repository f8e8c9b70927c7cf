/* SPDX-License-Identifier: Apache-2.0
 * From a list of names to providers that start: options are handed on, and a provider counts as
 * started when a session of a model of one node could be made with it. */
#include "provider/provider.h"

enum { OPTIONS = 64 }; /* of one provider */

static const char automatic[] = "auto";

/* Those that are shown to be missing when the library does not know them. */
static const char known[][SDX_PROVIDER_NAME] = {
    "TensorrtExecutionProvider", "CUDAExecutionProvider",     "ROCMExecutionProvider",
    "MIGraphXExecutionProvider", "OpenVINOExecutionProvider", "CoreMLExecutionProvider",
    "DmlExecutionProvider"};
enum { KNOWN = sizeof known / sizeof known[0] };

/* Providers whose options are an object of the library; where in OrtApi their functions are. */
static const struct special {
    const char *name;
    uint16_t create, update, append, release;
} specials[] = {
#define SPECIAL(name, what, append)                                                                \
    {                                                                                              \
        name, offsetof(OrtApi, Create##what##ProviderOptions),                                     \
            offsetof(OrtApi, Update##what##ProviderOptions),                                       \
            offsetof(OrtApi, SessionOptionsAppendExecutionProvider_##append),                      \
            offsetof(OrtApi, Release##what##ProviderOptions)                                       \
    }
    SPECIAL("CUDAExecutionProvider", CUDA, CUDA_V2),
    SPECIAL("TensorrtExecutionProvider", TensorRT, TensorRT_V2),
    SPECIAL("ROCMExecutionProvider", ROCM, ROCM),
    SPECIAL("CANNExecutionProvider", CANN, CANN),
    SPECIAL("DnnlExecutionProvider", Dnnl, Dnnl),
#undef SPECIAL
};

/* Relu of float[1]. */
static const unsigned char probe[] =
    "\x08\x08\x3a\x33"
    "\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu"
    "\x12\x01g"
    "\x5a\x0f\x0a\x01x\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x01"
    "\x62\x0f\x0a\x01y\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x01"
    "\x42\x02\x10\x0d";

/* The name as it is told. */
static const char *full_name(const char *name)
{
    if (strcmp(name, "cpu") == 0) return SDX_PROVIDER_OWN;
    if (strcmp(name, "ort") == 0 || strcmp(name, SDX_PROVIDER_CPU) == 0) return SDX_PROVIDER_CPU;
    return strncmp(name, "ort:", 4) == 0 ? name + 4 : name;
}

static bool is_same(const char *a, const char *b)
{
    return strcmp(full_name(a), full_name(b)) == 0;
}

static enum sdx_status append_special(const struct sdx_ort_library *library, struct sdx_context *cx,
                                      const struct special *row, OrtSessionOptions *to,
                                      const char *const *keys, const char *const *values,
                                      size_t count)
{
    OrtStatusPtr (*create)(void **) = NULL;
    OrtStatusPtr (*update)(void *, const char *const *, const char *const *, size_t) = NULL;
    OrtStatusPtr (*append)(OrtSessionOptions *, const void *) = NULL;
    void (*release)(void *) = NULL;
    const unsigned char *table = (const unsigned char *)library->api;
    memcpy(&create, table + row->create, sizeof create);
    memcpy(&update, table + row->update, sizeof update);
    memcpy(&append, table + row->append, sizeof append);
    memcpy(&release, table + row->release, sizeof release);
    void *object = NULL;
    SDX_TRY(sdx_ort_status(library, cx, NULL, create(&object)));
    /* Without options too: it is what tells why a provider's own library cannot be opened. */
    enum sdx_status status = sdx_ort_status(library, cx, NULL, update(object, keys, values, count));
    if (status == SDX_OK) status = sdx_ort_status(library, cx, NULL, append(to, object));
    release(object);
    return status;
}

static enum sdx_status append(const struct sdx_ort_library *library, struct sdx_context *cx,
                              const struct sdx_session_options *options, const char *name,
                              OrtSessionOptions *to)
{
    const char *keys[OPTIONS], *values[OPTIONS];
    size_t count = 0;
    for (int i = 0; i < options->count_provider_options && count < OPTIONS; i++)
        if (is_same(options->provider_options[i].provider, name)) {
            keys[count] = options->provider_options[i].key;
            values[count++] = options->provider_options[i].value;
        }
    if (strcmp(name, SDX_PROVIDER_CPU) == 0) {
        if (count == 0) return SDX_OK; /* it is in every session */
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "it has no option \"%s\"", keys[0]);
    }
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
        if (strcmp(name, specials[i].name) == 0)
            return append_special(library, cx, &specials[i], to, keys, values, count);
    return sdx_ort_status(
        library, cx, NULL,
        library->api->SessionOptionsAppendExecutionProvider(to, name, keys, values, count));
}

enum sdx_status sdx_remote_probe(const struct sdx_ort_library *library, struct sdx_context *cx,
                                 const char *where, const OrtSessionOptions *options)
{
    OrtSession *session = NULL;
    enum sdx_status status =
        sdx_ort_status(library, cx, where,
                       library->api->CreateSessionFromArray(library->env, probe, sizeof probe - 1,
                                                            options, &session));
    if (session) library->api->ReleaseSession(session);
    return status;
}

static enum sdx_status try_session(const struct sdx_ort_library *library, struct sdx_context *cx,
                                   const struct sdx_session_options *options, const char *name)
{
    const OrtApi *api = library->api;
    OrtSessionOptions *of = NULL;
    SDX_TRY(sdx_ort_status(library, cx, NULL, api->CreateSessionOptions(&of)));
    enum sdx_status status = append(library, cx, options, name, of);
    if (status == SDX_OK)
        status = sdx_ort_status(library, cx, NULL,
                                api->SetSessionLogSeverityLevel(of, ORT_LOGGING_LEVEL_FATAL));
    if (status == SDX_OK) status = sdx_remote_probe(library, cx, NULL, of);
    api->ReleaseSessionOptions(of);
    return status;
}

/* ---- choosing ---- */

struct choice {
    struct sdx_context *cx;
    const struct sdx_session_options *options;
    struct sdx_remote *remote;
    bool is_lenient;
};

/* Adds provider `name` of the library, or tells why not. */
static enum sdx_status add(struct choice *c, const char *name)
{
    struct sdx_remote *remote = c->remote;
    struct sdx_ort_library *library = &remote->library;
    struct sdx_context trial;
    enum sdx_status status = SDX_OK;
    sdx_context_init_child(&trial, c->cx);
    for (int i = 0; i < remote->count; i++)
        if (strcmp(name, remote->names[i]) == 0) return SDX_OK;
    if (remote->count == SDX_PROVIDERS || strlen(name) >= SDX_PROVIDER_NAME)
        return SDX_FAIL(c->cx, SDX_INVALID_ARGUMENT, "provider \"%s\" is one too many or no name",
                        name);
    if (!library->api) status = sdx_ort_open(&trial, c->options->ort_library, library);
    if (status == SDX_OK && c->is_lenient) status = try_session(library, &trial, c->options, name);
    if (status == SDX_OK && !remote->options)
        status = sdx_ort_status(library, &trial, NULL,
                                library->api->CreateSessionOptions(&remote->options));
    if (status == SDX_OK) status = append(library, &trial, c->options, name, remote->options);
    if (status == SDX_OK)
        memcpy(remote->names[remote->count++], name, strlen(name) + 1);
    else if (!c->is_lenient)
        return SDX_FAIL(c->cx, SDX_NOT_SUPPORTED, "%s cannot start: %s", name, trial.error.text);
    else
        sdx_log(c->cx, SDX_LOG_WARNING, "provider", "%s cannot start: %s", name, trial.error.text);
    return SDX_OK;
}

/* All that the library was built with but its CPU's, in its order. */
static enum sdx_status add_all(struct choice *c)
{
    struct sdx_ort_library *library = &c->remote->library;
    struct sdx_context trial;
    sdx_context_init_child(&trial, c->cx);
    c->is_lenient = true;
    if (!library->api && sdx_ort_open(&trial, c->options->ort_library, library)) {
        sdx_log(c->cx, SDX_LOG_WARNING, "provider", "%s", trial.error.text);
        return SDX_OK;
    }
    char **names = NULL;
    int count = 0;
    SDX_TRY(sdx_ort_status(library, c->cx, automatic,
                           library->api->GetAvailableProviders(&names, &count)));
    enum sdx_status status = SDX_OK;
    for (int i = 0; i < count && status == SDX_OK; i++)
        if (strcmp(names[i], SDX_PROVIDER_OWN) != 0) status = add(c, names[i]);
    return sdx_ort_status(library, c->cx, automatic,
                          library->api->ReleaseAvailableProviders(names, count))
               ? SDX_RUN_FAILED
               : status;
}

/* Every option must be of a provider that is asked for and takes options. */
static enum sdx_status check_options(struct sdx_context *cx,
                                     const struct sdx_session_options *options)
{
    for (int i = 0; i < options->count_providers; i++)
        if (!options->providers[i])
            return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "provider %d is NULL", i);
    for (int k = 0; k < options->count_provider_options; k++) {
        const struct sdx_provider_option *option = &options->provider_options[k];
        if (!option->provider || !option->key || !option->value)
            return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "a text of provider option %d is NULL", k);
        bool is_asked = false;
        for (int i = 0; i < options->count_providers; i++)
            is_asked = is_asked || is_same(option->provider, options->providers[i]) ||
                       strcmp(options->providers[i], automatic) == 0;
        if (!is_asked || is_same(option->provider, SDX_PROVIDER_OWN) ||
            strcmp(option->provider, automatic) == 0)
            return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "option \"%s\": %s %s", option->key,
                            option->provider,
                            is_asked ? "has no options" : "is not in the list of providers");
    }
    return SDX_OK;
}

enum sdx_status sdx_remote_choose(struct sdx_context *cx, const struct sdx_session_options *options,
                                  struct sdx_remote *remote)
{
    struct choice c = {cx, options, remote, options->provider_fallback};
    SDX_TRY(check_options(cx, options));
    for (int i = 0; i < options->count_providers && !remote->own_is_next; i++) {
        const char *name = full_name(options->providers[i]);
        if (strcmp(name, automatic) == 0) {
            SDX_TRY(add_all(&c));
            remote->own_is_next = true;
        } else if (strcmp(name, SDX_PROVIDER_OWN) == 0) {
            remote->own_is_next = true;
        } else {
            SDX_TRY(add(&c, name));
        }
    }
    remote->is_lenient = c.is_lenient;
    if (remote->count || remote->own_is_next) return SDX_OK;
    return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "No ONNX Runtime execution providers available");
}

/* ---- listing ---- */

static void tell(struct sdx_context *cx, const struct sdx_ort_library *library, const char *name,
                 sdx_provider_fn each, void *user)
{
    const struct sdx_session_options none = {0};
    sdx_context_clear(cx);
    enum sdx_status status = try_session(library, cx, &none, full_name(name));
    struct sdx_provider_info info = {name, status == SDX_OK, status ? cx->error.text : NULL,
                                     library->path, library->version};
    each(&info, user);
}

enum sdx_status sdx_remote_list(struct sdx_context *cx, const char *given, sdx_provider_fn each,
                                void *user)
{
    struct sdx_ort_library library;
    struct sdx_context trial;
    char **names = NULL;
    int count = 0;
    struct sdx_provider_info info = {.name = SDX_PROVIDER_OWN, .starts = true};
    each(&info, user);
    sdx_context_init_child(&trial, cx);
    enum sdx_status status = sdx_ort_open(&trial, given, &library);
    if (status == SDX_OK)
        status = sdx_ort_status(&library, &trial, library.path,
                                library.api->GetAvailableProviders(&names, &count));
    info = (struct sdx_provider_info){.name = SDX_PROVIDER_CPU, .reason = trial.error.text};
    if (status) each(&info, user);
    for (int i = 0; i < count; i++)
        tell(&trial, &library, strcmp(names[i], SDX_PROVIDER_OWN) ? names[i] : SDX_PROVIDER_CPU,
             each, user);
    for (int k = 0; k < KNOWN; k++) {
        bool is_told = false;
        for (int i = 0; i < count; i++)
            is_told = is_told || strcmp(names[i], known[k]) == 0;
        info.name = known[k];
        if (status)
            each(&info, user);
        else if (!is_told)
            tell(&trial, &library, known[k], each, user);
    }
    if (names)
        status = sdx_ort_status(&library, &trial, library.path,
                                library.api->ReleaseAvailableProviders(names, count));
    sdx_ort_close(&library);
    return SDX_OK;
}
