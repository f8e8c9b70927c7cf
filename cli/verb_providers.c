/* SPDX-License-Identifier: Apache-2.0
 * sardonyx providers: what can run models here, tried, and why the rest cannot. */
#include "json_out.h"
#include "providers.h"

#include <stdio.h>
#include <stdlib.h>

struct listing {
    bool json;
    json_t *rows;
};

static void show(const sdx_provider_info *info, void *user)
{
    struct listing *listing = user;
    if (listing->json) {
        json_t *row = json_object();
        json_object_set_new(row, "name", sdx_cli_json_text(info->name));
        json_object_set_new(row, "starts", json_boolean(info->starts));
        json_object_set_new(row, "reason",
                            info->reason ? sdx_cli_json_text(info->reason) : json_null());
        json_object_set_new(row, "library",
                            info->library ? sdx_cli_json_text(info->library) : json_null());
        json_object_set_new(row, "version",
                            info->version ? sdx_cli_json_text(info->version) : json_null());
        json_array_append_new(listing->rows, row);
        return;
    }
    char *reason = sdx_cli_clean(info->reason ? info->reason : info->library ? info->library : "");
    printf("%-4s %-28s %s%s%s\n", info->starts ? "yes" : "no", info->name,
           info->starts && info->version ? info->version : "",
           info->starts && info->version ? "  " : "", reason);
    free(reason);
}

static int run_providers(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct sdx_cli cli = {0};
    struct sdx_cli_list files = {0};
    const char *library = NULL;
    const struct sdx_cli_option options[] = {SDX_CLI_ORT_LIBRARY(&library), {0}};
    int rc = sdx_cli_args(verb, &cli, options, argc, argv, &files, 0, 0);
    if (rc < 0 && files.count > 0) rc = sdx_cli_usage(verb, "'%.100s' is too much", files.items[0]);
    if (rc < 0) rc = sdx_cli_start(&cli);
    if (rc == SDX_CLI_OK && cli.cx != NULL) {
        struct listing listing = {cli.json, json_array()};
        if (sdx_providers(cli.cx, library, show, &listing))
            rc = sdx_cli_fail(&cli, "%s", sdx_error(cli.cx));
        if (rc == SDX_CLI_OK && cli.json) {
            json_t *object = json_object();
            json_object_set(object, "providers", listing.rows);
            sdx_cli_json_print(object);
        }
        json_decref(listing.rows);
    }
    sdx_cli_end(&cli);
    sdx_cli_list_free(&files);
    return rc;
}

const struct sdx_cli_verb sdx_cli_verb_providers = {
    "providers", "[options]",
    "List what can run models here: this engine, and what an ONNX Runtime library brings.",
    "  sardonyx providers\n"
    "  sardonyx providers --ort-library /opt/onnxruntime/lib/libonnxruntime.so.1\n"
    "  sardonyx providers --json | jq '.providers[] | select(.starts) | .name'\n",
    run_providers};
