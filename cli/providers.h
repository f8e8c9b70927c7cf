/* SPDX-License-Identifier: Apache-2.0
 * The options that say what runs a model, for verbs that make sessions. */
#ifndef SDX_CLI_PROVIDERS_H
#define SDX_CLI_PROVIDERS_H

#include "args.h"

struct sdx_cli_providers {
    struct sdx_cli_list lists, settings; /* as given: "A,B" and "A.key=value" */
    const char *library;
    bool fallback;
    /* Made from them. */
    char *text;
    struct sdx_cli_list names;
    sdx_provider_option *options;
};

#define SDX_CLI_ORT_LIBRARY(target)                                                                \
    {                                                                                              \
        "--ort-library", SDX_CLI_TEXT, target, "PATH",                                             \
            "the ONNX Runtime library with other providers (default: SDX_ORT_LIBRARY, usual "      \
            "places)",                                                                             \
            0, 0                                                                                   \
    }
/* Rows of a table of options. */
#define SDX_CLI_PROVIDER_OPTIONS(p)                                                                \
    {"--provider",                                                                                 \
     SDX_CLI_LIST,                                                                                 \
     &(p)->lists,                                                                                  \
     "NAME[,NAME...]",                                                                             \
     "what runs the model, by priority: cpu (this engine), auto, ort, CUDAExecutionProvider, ...", \
     0,                                                                                            \
     0},                                                                                           \
        {"--provider-option",                                                                      \
         SDX_CLI_LIST,                                                                             \
         &(p)->settings,                                                                           \
         "NAME.key=value",                                                                         \
         "an option of a provider, handed on",                                                     \
         0,                                                                                        \
         0},                                                                                       \
        {"--provider-fallback",                                                                    \
         SDX_CLI_FLAG,                                                                             \
         &(p)->fallback,                                                                           \
         NULL,                                                                                     \
         "warn of a provider that cannot start, and take the next",                                \
         0,                                                                                        \
         0},                                                                                       \
        SDX_CLI_ORT_LIBRARY(&(p)->library)

/* Fills in the members of `options`, which borrow from `p`. Returns SDX_CLI_USAGE for a text that
 * is no list or option. */
int sdx_cli_providers_set(const struct sdx_cli_verb *verb, struct sdx_cli_providers *p,
                          sdx_session_options *options);
void sdx_cli_providers_free(struct sdx_cli_providers *p);
/* ["CUDAExecutionProvider", ...]: what runs a session. */
json_t *sdx_cli_providers_json(const sdx_session *session);

#endif
