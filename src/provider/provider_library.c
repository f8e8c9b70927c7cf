/* SPDX-License-Identifier: Apache-2.0
 * Opening an ONNX Runtime library, and its statuses. */
#include "provider/provider.h"

enum { OLDEST_API = 17 }; /* the first with the functions that are called here */

/* "1.30.0" is the release that brought version 30 of the API. Asking for one that a library does
 * not have makes it print a line. */
static uint32_t newest_api(const char *version)
{
    const char *dot = strchr(version, '.');
    size_t length = dot ? strspn(dot + 1, "0123456789") : 0;
    int64_t number = 0;
    bool is_known = dot && sdx_parse_i64((struct sdx_str){dot + 1, length}, &number);
    return is_known && number < ORT_API_VERSION ? (uint32_t)number : ORT_API_VERSION;
}

enum sdx_status sdx_ort_open(struct sdx_context *cx, const char *given, struct sdx_ort_library *out)
{
    static const struct sdx_foreign what = {.variable = "SDX_ORT_LIBRARY",
                                            .file = "libonnxruntime.so.1",
                                            .symbol = "OrtGetApiBase",
                                            .ours = "sdx_ort_abi"};
    struct sdx_foreign from = what;
    void *symbol = NULL;
    const OrtApiBase *(*get_base)(void) = NULL;
    from.given = given;
    memset(out, 0, sizeof *out);
    SDX_TRY(sdx_module_open_foreign(cx, &from, &symbol, out->path));
    memcpy(&get_base, &symbol, sizeof get_base);
    const OrtApiBase *base = get_base();
    out->version = base->GetVersionString();
    const OrtApi *api = NULL;
    for (uint32_t v = newest_api(out->version); v >= OLDEST_API && !api; v--) {
        api = base->GetApi(v);
        out->release = v;
    }
    if (!api)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "%s is ONNX Runtime %s, expected 1.%d or later",
                        out->path, out->version, OLDEST_API);
    out->api = api;
    return sdx_ort_status(out, cx, out->path,
                          api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "sardonyx", &out->env));
}

void sdx_ort_close(struct sdx_ort_library *library)
{
    if (library->env) library->api->ReleaseEnv(library->env);
    library->api = NULL;
    library->env = NULL;
}

enum sdx_status sdx_ort_status(const struct sdx_ort_library *library, struct sdx_context *cx,
                               const char *where, OrtStatusPtr from)
{
    static const uint8_t codes[] = {
        [ORT_FAIL] = SDX_RUN_FAILED,         [ORT_INVALID_ARGUMENT] = SDX_INVALID_ARGUMENT,
        [ORT_NO_SUCHFILE] = SDX_NOT_FOUND,   [ORT_INVALID_PROTOBUF] = SDX_BAD_MODEL,
        [ORT_INVALID_GRAPH] = SDX_BAD_MODEL, [ORT_NOT_IMPLEMENTED] = SDX_NOT_SUPPORTED,
        [ORT_NOT_FOUND] = SDX_NOT_FOUND};
    static const char mark[] = "[ONNXRuntimeError] : ";
    if (!from) return SDX_OK;
    size_t code = (size_t)library->api->GetErrorCode(from);
    const char *text = library->api->GetErrorMessage(from), *inner = text;
    while ((inner = strstr(inner, mark)) != NULL) { /* "file:1 function() [...] : 1 : FAIL : why" */
        inner += sizeof mark - 1;
        const char *why = strstr(inner, " : ");
        why = why ? strstr(why + 3, " : ") : NULL;
        text = why ? why + 3 : inner;
    }
    size_t length = strlen(text);
    while (length && strchr(" \r\n", text[length - 1]))
        length--;
    enum sdx_status status = code < sizeof codes && codes[code] ? codes[code] : SDX_RUN_FAILED;
    status =
        SDX_FAIL(cx, status, "%s%s%.*s", where ? where : "", where ? ": " : "", (int)length, text);
    library->api->ReleaseStatus(from);
    return status;
}
