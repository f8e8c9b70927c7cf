/* SPDX-License-Identifier: Apache-2.0
 * Finding ONNX test folders: a model beside folders test_data_set_*. */
#include "cases.h"
#include "inputs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 16 };
static const char set_prefix[] = "test_data_set_";

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void free_names(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static char *copy_text(const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL) sdx_cli_no_memory();
    return copy;
}

/* What a folder holds of its own. */
struct content {
    int models;
    const char *model; /* model.onnx, or the last .onnx seen */
    int sets;
};

static struct content look(struct dirent **names, int count)
{
    struct content content = {0};
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        size_t length = strlen(name);
        if (strcmp(name, "model.onnx") == 0) {
            content.models = 1;
            content.model = name;
            break;
        }
        if (length > 5 && strcmp(name + length - 5, ".onnx") == 0) {
            content.models++;
            content.model = name;
        }
    }
    for (int i = 0; i < count; i++)
        content.sets += strncmp(names[i]->d_name, set_prefix, sizeof set_prefix - 1) == 0;
    return content;
}

static void add_case(struct sdx_cli_cases *cases, const char *folder, struct dirent **names,
                     int count, const struct content *content)
{
    if (cases->count == cases->capacity) {
        int capacity = cases->capacity ? 2 * cases->capacity : 64;
        struct sdx_cli_case *items = realloc(cases->items, (size_t)capacity * sizeof *items);
        if (items == NULL) sdx_cli_no_memory();
        cases->items = items;
        cases->capacity = capacity;
    }
    struct sdx_cli_case *one = &cases->items[cases->count++];
    *one = (struct sdx_cli_case){.folder = copy_text(folder)};
    one->sets = calloc((size_t)content->sets + 1, sizeof(char *));
    if (one->sets == NULL) sdx_cli_no_memory();
    if (content->models == 1) one->model = sdx_cli_join(folder, content->model);
    for (int i = 0; i < count; i++)
        if (strncmp(names[i]->d_name, set_prefix, sizeof set_prefix - 1) == 0) {
            char *path = sdx_cli_join(folder, names[i]->d_name);
            if (is_folder(path)) one->sets[one->count_sets++] = copy_text(names[i]->d_name);
            free(path);
        }
    if (content->models != 1)
        one->why = copy_text(content->models == 0 ? "no model beside its data sets"
                                                  : "several models and none is model.onnx");
    else if (one->count_sets == 0)
        one->why = copy_text("no test_data_set_* folder");
}

static bool walk(struct sdx_cli_cases *cases, const char *folder, const char *filter, int depth,
                 char **why)
{
    struct dirent **names = NULL;
    int count = scandir(folder, &names, not_hidden, versionsort);
    if (count < 0) {
        if (asprintf(why, "%s: %s", folder, strerror(errno)) < 0) sdx_cli_no_memory();
        return false;
    }
    struct content content = look(names, count);
    bool ok = true;
    if (content.models == 1 || content.sets > 0) {
        if (filter == NULL || strstr(folder, filter) != NULL)
            add_case(cases, folder, names, count, &content);
    }
    for (int i = 0; i < count && ok && depth < DEPTH_MAX; i++) {
        if (strncmp(names[i]->d_name, set_prefix, sizeof set_prefix - 1) == 0) continue;
        char *path = sdx_cli_join(folder, names[i]->d_name);
        if (is_folder(path)) ok = walk(cases, path, filter, depth + 1, why);
        free(path);
    }
    free_names(names, count);
    return ok;
}

bool sdx_cli_cases_find(struct sdx_cli_cases *cases, const char *root, const char *filter,
                        char **why)
{
    *why = NULL;
    return walk(cases, root, filter, 0, why);
}

void sdx_cli_cases_free(struct sdx_cli_cases *cases)
{
    for (int i = 0; i < cases->count; i++) {
        struct sdx_cli_case *one = &cases->items[i];
        for (int k = 0; k < one->count_sets; k++)
            free(one->sets[k]);
        free(one->sets);
        free(one->folder);
        free(one->model);
        free(one->why);
    }
    free(cases->items);
    *cases = (struct sdx_cli_cases){0};
}
