/* SPDX-License-Identifier: Apache-2.0
 * sardonyx ops: the table of operators; with --markdown what scripts/gen_operators.py
 * makes docs/operators.md of. */
#include "args.h"
#include "json_out.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum form { FORM_TEXT, FORM_JSON, FORM_MARKDOWN };

struct filter {
    const char *domain; /* NULL: all */
    bool missing;       /* only what cannot run */
    struct sdx_cli_list names;
};

static bool wanted(const struct filter *filter, const sdx_op_info *info)
{
    if (filter->domain != NULL && strcmp(filter->domain, info->domain) != 0) return false;
    if (filter->missing && info->support != NULL) return false;
    for (int i = 0; i < filter->names.count; i++)
        if (strcasecmp(filter->names.items[i], info->name) == 0) return true;
    return filter->names.count == 0;
}

static json_t *row_json(const sdx_op_info *info)
{
    json_t *row = json_object();
    json_object_set_new(row, "domain", json_string(info->domain));
    json_object_set_new(row, "name", json_string(info->name));
    json_object_set_new(row, "since", json_integer(info->since));
    json_object_set_new(row, "deprecated", json_boolean(info->deprecated));
    json_object_set_new(row, "support", info->support ? json_string(info->support) : json_null());
    json_object_set_new(row, "note", info->note ? json_string(info->note) : json_null());
    json_object_set_new(row, "types", info->types ? json_string(info->types) : json_null());
    return row;
}

static void print_row(enum form form, const sdx_op_info *info)
{
    const char *support = info->support ? info->support : info->deprecated ? "-" : "no";
    const char *types = info->types ? info->types : "", *note = info->note ? info->note : "";
    const char *gone = info->deprecated ? "deprecated" : "";
    const char *between = *note && *gone ? "; " : "";
    if (form == FORM_MARKDOWN)
        printf("| %s | %d | %s | %s | %s%s%s |\n", info->name, info->since, support, types, gone,
               between, note);
    else
        printf("%-24s %-30s %5d  %-9s %s%s%s\n", info->domain, info->name, info->since, support,
               gone, between, note);
}

static void print_head(enum form form)
{
    if (form == FORM_TEXT)
        printf("%-24s %-30s %5s  %-9s %s\n", "domain", "operator", "since", "runs as", "note");
    if (form == FORM_MARKDOWN)
        printf("<!-- Written by: sardonyx ops --markdown -->\n# Operators\n\n"
               "A row for every version of an operator that the standard defines. *Runs as*: a "
               "**kernel** of its own,\na **lowering** to other operators, the **function** body "
               "that the standard gives, or **no**.\n*Types*: element types of the first input "
               "that the standard allows.\n");
}

static int run_ops(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct sdx_cli cli = {0};
    struct filter filter = {0};
    bool markdown = false;
    const struct sdx_cli_option options[] = {
        {"--markdown", SDX_CLI_FLAG, &markdown, NULL, "print as a page of Markdown", 0, 0},
        {"--missing", SDX_CLI_FLAG, &filter.missing, NULL, "only what cannot run", 0, 0},
        {"--domain", SDX_CLI_TEXT, &filter.domain, "NAME", "only this domain, as ai.onnx.ml", 0, 0},
        {0}};
    int rc = sdx_cli_args(verb, &cli, options, argc, argv, &filter.names, 0, 0);
    if (rc >= 0) goto done;
    rc = SDX_CLI_OK;
    enum form form = cli.json ? FORM_JSON : markdown ? FORM_MARKDOWN : FORM_TEXT;
    json_t *rows = json_array();
    sdx_op_info info;
    char domain[128] = "";
    int count = 0, runs = 0;
    print_head(form);
    for (int i = 0; sdx_op_info_get(i, &info); i++) {
        if (!wanted(&filter, &info)) continue;
        count++;
        runs += info.support != NULL;
        if (form == FORM_JSON) {
            json_array_append_new(rows, row_json(&info));
            continue;
        }
        if (form == FORM_MARKDOWN && strcmp(domain, info.domain) != 0) {
            snprintf(domain, sizeof domain, "%s", info.domain);
            printf("\n## %s\n\n| operator | since | runs as | types | note |\n|---|---|---|---|---|"
                   "\n",
                   domain);
        }
        print_row(form, &info);
    }
    if (form == FORM_JSON) {
        json_t *object = json_object();
        json_object_set(object, "operators", rows);
        json_object_set_new(object, "count", json_integer(count));
        json_object_set_new(object, "supported", json_integer(runs));
        sdx_cli_json_print(object);
    } else {
        printf("\n%d of %d rows run\n", runs, count);
    }
    json_decref(rows);
done:
    sdx_cli_list_free(&filter.names);
    return rc;
}

const struct sdx_cli_verb sdx_cli_verb_ops = {
    "ops", "[NAME...] [options]", "List the operators of the standard and how each one runs.",
    "  sardonyx ops\n"
    "  sardonyx ops Conv ConvTranspose\n"
    "  sardonyx ops --missing --domain ai.onnx.ml\n"
    "  sardonyx ops --markdown > operators.md\n",
    run_ops};
