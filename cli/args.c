/* SPDX-License-Identifier: Apache-2.0
 * Options of a verb, as a table: reading, checking, help text. Long options only, "--name value" or
 * "--name=value", anywhere among the files; "--" ends them. */
#include "args.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMON_COUNT = 6 };

static void common_options(struct sdx_cli *cli, struct sdx_cli_option common[COMMON_COUNT])
{
    common[0] = (struct sdx_cli_option){"--threads",
                                        SDX_CLI_INT,
                                        &cli->threads,
                                        "N",
                                        "threads to use (default: SDX_THREADS or the CPUs given)",
                                        1,
                                        1024};
    common[1] =
        (struct sdx_cli_option){"--cpu",
                                SDX_CLI_TEXT,
                                &cli->cpu,
                                "SET",
                                "highest instruction set to use: generic, avx2, avx512, ...",
                                0,
                                0};
    common[2] = (struct sdx_cli_option){
        "--json", SDX_CLI_FLAG, &cli->json, NULL, "print one JSON object on the last line", 0, 0};
    common[3] = (struct sdx_cli_option){
        "--verbose", SDX_CLI_FLAG, &cli->verbose, NULL, "print what the library logs", 0, 0};
    common[4] = (struct sdx_cli_option){"--memory-limit",
                                        SDX_CLI_SIZE,
                                        &cli->memory_limit,
                                        "SIZE",
                                        "most memory the library may hold, as 512M or 2G",
                                        0,
                                        0};
    common[5] = (struct sdx_cli_option){0};
}

int sdx_cli_usage(const struct sdx_cli_verb *verb, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    char *line = sdx_cli_clean(text);
    fprintf(stderr, "sardonyx: %s: %s (see sardonyx %s --help)\n", verb->name, line, verb->name);
    free(line);
    return SDX_CLI_USAGE;
}

void sdx_cli_list_add(struct sdx_cli_list *list, const char *item)
{
    if (list->count == list->capacity) {
        int capacity = list->capacity ? 2 * list->capacity : 8;
        const char **items = realloc(list->items, (size_t)capacity * sizeof *items);
        if (items == NULL) sdx_cli_no_memory();
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
}

void sdx_cli_list_free(struct sdx_cli_list *list)
{
    free(list->items);
    *list = (struct sdx_cli_list){0};
}

static void help_options(const struct sdx_cli_option *options)
{
    for (; options->name != NULL; options++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", options->name, options->argument ? " " : "",
                 options->argument ? options->argument : "");
        printf("  %-26s %s\n", left, options->help);
    }
}

static void help(const struct sdx_cli_verb *verb, const struct sdx_cli_option *options,
                 const struct sdx_cli_option *common)
{
    printf("Usage: sardonyx %s %s\n\n%s\n\nOptions:\n", verb->name, verb->usage, verb->summary);
    help_options(options);
    help_options(common);
    printf("  %-26s %s\n\nExamples:\n%s", "--help", "print this", verb->examples);
}

static const struct sdx_cli_option *find(const struct sdx_cli_option *options, const char *name,
                                         size_t length)
{
    for (; options->name != NULL; options++)
        if (strlen(options->name) == length && memcmp(options->name, name, length) == 0)
            return options;
    return NULL;
}

static bool in_limits(const struct sdx_cli_option *option, double value)
{
    return (option->least == 0 && option->most == 0) ||
           (value >= option->least && value <= option->most);
}

/* Stores `text`; false when it is not what the option takes. */
static bool set(const struct sdx_cli_option *option, const char *text)
{
    char *end = NULL;
    errno = 0;
    switch (option->kind) {
    case SDX_CLI_INT: {
        long value = strtol(text, &end, 10);
        if (end == text || *end != '\0' || errno != 0 || !in_limits(option, (double)value))
            return false;
        *(long *)option->target = value;
        return true;
    }
    case SDX_CLI_NUMBER: {
        double value = strtod(text, &end);
        if (end == text || *end != '\0' || !isfinite(value) || !in_limits(option, value))
            return false;
        *(double *)option->target = value;
        return true;
    }
    case SDX_CLI_SIZE: {
        double value = strtod(text, &end);
        static const char units[] = "KMG";
        const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
        if (unit != NULL) {
            value *= (double)(1ull << (10 * (unit - units + 1)));
            end++;
        }
        if (end == text || *end != '\0' || !(value >= 1 && value < 9e18)) return false;
        *(size_t *)option->target = (size_t)value;
        return true;
    }
    case SDX_CLI_TEXT: *(const char **)option->target = text; return true;
    case SDX_CLI_LIST: sdx_cli_list_add(option->target, text); return true;
    default: return false;
    }
}

/* Reads the option at argv[*at] and steps over what belongs to it. */
static int read_option(const struct sdx_cli_verb *verb, const struct sdx_cli_option *options,
                       const struct sdx_cli_option *common, int argc, char **argv, int *at)
{
    const char *text = argv[(*at)++];
    size_t length = strcspn(text, "=");
    const struct sdx_cli_option *option = find(options, text, length);
    if (option == NULL) option = find(common, text, length);
    if (option == NULL) return sdx_cli_usage(verb, "unknown option %.*s", (int)length, text);
    const char *value = text[length] == '=' ? text + length + 1 : NULL;
    if (option->kind == SDX_CLI_FLAG) {
        if (value != NULL) return sdx_cli_usage(verb, "%s takes no value", option->name);
        *(bool *)option->target = true;
        return -1;
    }
    if (value == NULL && *at < argc) value = argv[(*at)++];
    if (value == NULL)
        return sdx_cli_usage(verb, "%s needs a value: %s", option->name, option->argument);
    if (!set(option, value)) {
        if (option->most > 0)
            return sdx_cli_usage(verb, "%s: '%.100s' is not a number from %g to %g", option->name,
                                 value, option->least, option->most);
        return sdx_cli_usage(verb, "%s: '%.100s' is not a %s", option->name, value,
                             option->kind == SDX_CLI_SIZE ? "size (512M, 2G)" : "number");
    }
    return -1;
}

int sdx_cli_args(const struct sdx_cli_verb *verb, struct sdx_cli *cli,
                 const struct sdx_cli_option *options, int argc, char **argv,
                 struct sdx_cli_list *files, int least, int most)
{
    struct sdx_cli_option common[COMMON_COUNT];
    common_options(cli, common);
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            help(verb, options, common);
            return SDX_CLI_OK;
        }
    bool ended = false;
    for (int i = 0; i < argc;) {
        if (!ended && strcmp(argv[i], "--") == 0) {
            ended = true;
            i++;
        } else if (!ended && argv[i][0] == '-' && argv[i][1] != '\0') {
            int rc = read_option(verb, options, common, argc, argv, &i);
            if (rc >= 0) return rc;
        } else {
            sdx_cli_list_add(files, argv[i++]);
        }
    }
    if (files->count < least)
        return sdx_cli_usage(verb, "too few arguments, expected: %s", verb->usage);
    if (most > 0 && files->count > most)
        return sdx_cli_usage(verb, "too many arguments, from '%.100s' on", files->items[most]);
    return -1;
}
