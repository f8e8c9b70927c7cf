/* SPDX-License-Identifier: Apache-2.0
 * sardonyx info: what a model is. */
#include "args.h"
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_text_row(const char *title, const char *text)
{
    if (*text == '\0') return;
    char *line = sdx_cli_clean(text);
    printf("%-13s%s\n", title, line);
    free(line);
}

static void print_values(const char *title, const sdx_model *model,
                         const sdx_value_info *(*get)(const sdx_model *, int), int count)
{
    printf("\n%s\n", title);
    for (int i = 0; i < count; i++) {
        const sdx_value_info *info = get(model, i);
        char *name = sdx_cli_clean(info->name);
        printf("  %-30s %s%s\n", name, info->type, info->optional ? "  (has a value)" : "");
        free(name);
    }
}

static void print_facts(const char *path, const sdx_model_facts *facts)
{
    printf("%s\n\n", path);
    print_text_row("name", facts->name);
    print_text_row("producer", facts->producer);
    print_text_row("  version", facts->producer_version);
    print_text_row("domain", facts->domain);
    print_text_row("about", facts->doc);
    printf("%-13s%lld\n", "IR version", (long long)facts->ir_version);
    if (facts->model_version != 0)
        printf("%-13s%lld\n", "model version", (long long)facts->model_version);
    for (int i = 0; i < facts->count_opsets; i++)
        printf("%-13s%s %lld\n", i == 0 ? "opsets" : "", facts->opset_domains[i],
               (long long)facts->opset_versions[i]);
    printf("%-13s%d%s", "nodes", facts->count_nodes, facts->count_functions ? "" : "\n");
    if (facts->count_functions) printf(" (%d functions)\n", facts->count_functions);
    printf("%-13s%s in %d initializers, %s\n", "parameters",
           sdx_cli_count((double)facts->parameters), facts->count_initializers,
           sdx_cli_bytes((double)facts->parameter_bytes));
    printf("%-13s%s%s\n", "MACs", sdx_cli_count((double)facts->macs),
           facts->macs_exact ? "" : " (with unknown dimensions taken as 1)");
}

static void print_info(const struct sdx_cli *cli, const char *path, const sdx_model *model)
{
    const sdx_model_facts *facts = sdx_model_get_facts(model);
    (void)cli;
    print_facts(path, facts);
    print_values("inputs", model, sdx_model_input, sdx_model_count_inputs(model));
    print_values("outputs", model, sdx_model_output, sdx_model_count_outputs(model));
    if (facts->count_metadata > 0) printf("\nmetadata\n");
    for (int i = 0; i < facts->count_metadata; i++) {
        char *key = sdx_cli_clean(facts->metadata_keys[i]);
        char *value = sdx_cli_clean(facts->metadata_values[i]);
        printf("  %-20s %.200s%s\n", key, value, strlen(value) > 200 ? " ..." : "");
        free(key);
        free(value);
    }
    int unsupported = 0;
    printf("\noperators\n");
    for (int i = 0; i < sdx_model_count_op_uses(model); i++) {
        const sdx_op_use *use = sdx_model_op_use(model, i);
        bool standard = strcmp(use->domain, "ai.onnx") == 0;
        printf("  %6d  %s%s%s-%d", use->count, standard ? "" : use->domain, standard ? "" : ".",
               use->name, use->opset);
        if (use->unsupported != NULL) printf("  NOT SUPPORTED: %s", use->unsupported);
        unsupported += use->unsupported != NULL;
        putchar('\n');
    }
    if (unsupported > 0)
        printf("\n%d of %d operator types are not supported\n", unsupported,
               sdx_model_count_op_uses(model));
}

static json_t *values_json(const sdx_model *model,
                           const sdx_value_info *(*get)(const sdx_model *, int), int count)
{
    static const char *const kinds[] = {"none", "tensor", "sequence", "optional", "map", "sparse"};
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        const sdx_value_info *info = get(model, i);
        json_t *row = json_object();
        json_object_set_new(row, "name", sdx_cli_json_text(info->name));
        json_object_set_new(row, "kind", json_string(kinds[info->kind]));
        json_object_set_new(row, "dtype", json_string(sdx_dtype_name(info->dtype)));
        json_object_set_new(row, "dims", sdx_cli_json_dims(info));
        json_object_set_new(row, "type", sdx_cli_json_text(info->type));
        json_object_set_new(row, "optional", json_boolean(info->optional));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *ops_json(const sdx_model *model)
{
    json_t *list = json_array();
    for (int i = 0; i < sdx_model_count_op_uses(model); i++) {
        const sdx_op_use *use = sdx_model_op_use(model, i);
        json_t *row = json_object();
        json_object_set_new(row, "domain", sdx_cli_json_text(use->domain));
        json_object_set_new(row, "name", sdx_cli_json_text(use->name));
        json_object_set_new(row, "opset", json_integer(use->opset));
        json_object_set_new(row, "count", json_integer(use->count));
        json_object_set_new(row, "unsupported",
                            use->unsupported ? sdx_cli_json_text(use->unsupported) : json_null());
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *info_json(const char *path, const sdx_model *model)
{
    const sdx_model_facts *facts = sdx_model_get_facts(model);
    json_t *object = json_object(), *opsets = json_object(), *metadata = json_object();
    for (int i = 0; i < facts->count_opsets; i++) {
        json_t *version = json_integer(facts->opset_versions[i]);
        if (json_object_set(opsets, facts->opset_domains[i], version) != 0)
            json_object_set(opsets, "?", version);
        json_decref(version);
    }
    for (int i = 0; i < facts->count_metadata; i++) {
        json_t *value = sdx_cli_json_text(facts->metadata_values[i]);
        json_t *key = sdx_cli_json_text(facts->metadata_keys[i]);
        json_object_set_new(metadata, json_string_value(key), value);
        json_decref(key);
    }
    json_object_set_new(object, "model", sdx_cli_json_text(path));
    json_object_set_new(object, "name", sdx_cli_json_text(facts->name));
    json_object_set_new(object, "producer", sdx_cli_json_text(facts->producer));
    json_object_set_new(object, "producer_version", sdx_cli_json_text(facts->producer_version));
    json_object_set_new(object, "domain", sdx_cli_json_text(facts->domain));
    json_object_set_new(object, "doc", sdx_cli_json_text(facts->doc));
    json_object_set_new(object, "ir_version", json_integer(facts->ir_version));
    json_object_set_new(object, "model_version", json_integer(facts->model_version));
    json_object_set_new(object, "opsets", opsets);
    json_object_set_new(object, "metadata", metadata);
    json_object_set_new(object, "nodes", json_integer(facts->count_nodes));
    json_object_set_new(object, "functions", json_integer(facts->count_functions));
    json_object_set_new(object, "initializers", json_integer(facts->count_initializers));
    json_object_set_new(object, "parameters", json_integer(facts->parameters));
    json_object_set_new(object, "parameter_bytes",
                        json_integer((json_int_t)facts->parameter_bytes));
    json_object_set_new(object, "macs", json_integer(facts->macs));
    json_object_set_new(object, "macs_exact", json_boolean(facts->macs_exact));
    json_object_set_new(object, "inputs",
                        values_json(model, sdx_model_input, sdx_model_count_inputs(model)));
    json_object_set_new(object, "outputs",
                        values_json(model, sdx_model_output, sdx_model_count_outputs(model)));
    json_object_set_new(object, "operators", ops_json(model));
    return object;
}

static void print_line(const char *text, void *user)
{
    (void)user;
    char *line = sdx_cli_clean(text);
    puts(line);
    free(line);
}

static void collect_line(const char *text, void *user)
{
    json_array_append_new(user, sdx_cli_json_text(text));
}

static int show(const struct sdx_cli *cli, const char *path, const sdx_model *model, bool graph)
{
    json_t *lines = json_array();
    sdx_status status = SDX_OK;
    if (graph)
        status = sdx_model_print(cli->cx, model, cli->json ? collect_line : print_line, lines);
    if (status) {
        json_decref(lines);
        return sdx_cli_fail(cli, "%s: %s", path, sdx_error(cli->cx));
    }
    if (cli->json) {
        json_t *object = info_json(path, model);
        if (graph) json_object_set(object, "graph", lines);
        sdx_cli_json_print(object);
    } else if (!graph) {
        print_info(cli, path, model);
    }
    json_decref(lines);
    return SDX_CLI_OK;
}

static int run_info(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct sdx_cli cli = {0};
    struct sdx_cli_list files = {0};
    bool graph = false;
    const struct sdx_cli_option options[] = {
        {"--graph", SDX_CLI_FLAG, &graph, NULL, "print the graph, a line a node", 0, 0}, {0}};
    int rc = sdx_cli_args(verb, &cli, options, argc, argv, &files, 1, 1);
    if (rc < 0)
        rc = sdx_cli_start(&cli);
    else
        goto done;
    sdx_model *model = NULL;
    if (rc == SDX_CLI_OK) rc = sdx_cli_open(&cli, files.items[0], &model);
    if (rc == SDX_CLI_OK) rc = show(&cli, files.items[0], model, graph);
    sdx_model_destroy(model);
    sdx_cli_end(&cli);
done:
    sdx_cli_list_free(&files);
    return rc;
}

const struct sdx_cli_verb sdx_cli_verb_info = {
    "info", "MODEL [options]",
    "Show a model's inputs, outputs, opsets, metadata, size and operators.",
    "  sardonyx info model.onnx\n"
    "  sardonyx info model.onnx --graph\n"
    "  sardonyx info model.onnx --json | jq .inputs\n",
    run_info};
