/* SPDX-License-Identifier: Apache-2.0
 * --provider and its companions: texts to the members of sdx_session_options. */
#include "providers.h"

#include <stdlib.h>
#include <string.h>

/* Cuts `list` at commas; the pieces are names. */
static int add_names(const struct sdx_cli_verb *verb, struct sdx_cli_providers *p, char *list)
{
    for (char *name = list, *comma; name != NULL; name = comma != NULL ? comma + 1 : NULL) {
        comma = strchr(name, ',');
        if (comma != NULL) *comma = '\0';
        if (*name == '\0') return sdx_cli_usage(verb, "--provider: a name is empty");
        sdx_cli_list_add(&p->names, name);
    }
    return SDX_CLI_OK;
}

/* The names and options point into one copy of all texts. */
static char *copy_texts(const struct sdx_cli_providers *p)
{
    const struct sdx_cli_list *lists[] = {&p->lists, &p->settings};
    size_t size = 1;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < lists[k]->count; i++)
            size += strlen(lists[k]->items[i]) + 1;
    char *text = calloc(1, size), *at = text;
    for (int k = 0; text != NULL && k < 2; k++)
        for (int i = 0; i < lists[k]->count; i++)
            at = stpcpy(at, lists[k]->items[i]) + 1;
    return text;
}

int sdx_cli_providers_set(const struct sdx_cli_verb *verb, struct sdx_cli_providers *p,
                          sdx_session_options *options)
{
    p->text = copy_texts(p);
    p->options = calloc((size_t)p->settings.count + 1, sizeof *p->options);
    if (p->text == NULL || p->options == NULL) sdx_cli_no_memory();
    char *at = p->text;
    for (int i = 0; i < p->lists.count; i++) {
        char *next = at + strlen(at) + 1;
        int rc = add_names(verb, p, at);
        if (rc != SDX_CLI_OK) return rc;
        at = next;
    }
    for (int i = 0; i < p->settings.count; i++) {
        char *dot = strchr(at, '.'), *equals = dot != NULL ? strchr(dot, '=') : NULL;
        if (equals == NULL)
            return sdx_cli_usage(verb, "--provider-option: '%.100s' is not NAME.key=value", at);
        char *next = at + strlen(at) + 1;
        *dot = *equals = '\0';
        p->options[i] = (sdx_provider_option){at, dot + 1, equals + 1};
        at = next;
    }
    options->count_providers = p->names.count;
    options->providers = p->names.items;
    options->count_provider_options = p->settings.count;
    options->provider_options = p->options;
    options->provider_fallback = p->fallback;
    options->ort_library = p->library;
    return SDX_CLI_OK;
}

void sdx_cli_providers_free(struct sdx_cli_providers *p)
{
    sdx_cli_list_free(&p->lists);
    sdx_cli_list_free(&p->settings);
    sdx_cli_list_free(&p->names);
    free(p->text);
    free(p->options);
}

json_t *sdx_cli_providers_json(const sdx_session *session)
{
    json_t *names = json_array();
    for (int i = 0; sdx_session_provider(session, i) != NULL; i++)
        json_array_append_new(names, json_string(sdx_session_provider(session, i)));
    return names;
}
