/* SPDX-License-Identifier: Apache-2.0
 * Values to feed a model with. Made-up values come from a fixed seed, so that two runs agree. */
#include "inputs.h"
#include "values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *sdx_cli_join(const char *folder, const char *name)
{
    char *path = NULL;
    size_t length = strlen(folder);
    const char *slash = length > 0 && folder[length - 1] == '/' ? "" : "/";
    if (asprintf(&path, "%s%s%s", folder, slash, name) < 0) sdx_cli_no_memory();
    return path;
}

void sdx_cli_sources_free(struct sdx_cli_sources *sources)
{
    sdx_cli_list_free(&sources->inputs);
    sdx_cli_list_free(&sources->shapes);
}

static void feeds_reserve(struct sdx_cli_feeds *feeds, int count)
{
    feeds->count = 0;
    feeds->items = calloc((size_t)count + 1, sizeof *feeds->items);
    feeds->values = calloc((size_t)count + 1, sizeof(sdx_tensor *));
    if (feeds->items == NULL || feeds->values == NULL) sdx_cli_no_memory();
}

void sdx_cli_feeds_free(struct sdx_cli_feeds *feeds)
{
    for (int i = 0; i < feeds->count; i++)
        sdx_tensor_destroy(feeds->values[i]);
    free(feeds->items);
    free(feeds->values);
    *feeds = (struct sdx_cli_feeds){0};
}

static void feeds_add(struct sdx_cli_feeds *feeds, const char *name, sdx_tensor *value)
{
    feeds->items[feeds->count] = (sdx_feed){name, value};
    feeds->values[feeds->count++] = value;
}

/* ---- ONNX test data folders ---- */

static bool read_varint(FILE *file, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        int c = getc(file);
        if (c == EOF) return false;
        *value |= (uint64_t)(c & 127) << shift;
        if (c < 128) return true;
    }
    return false;
}

/* The number of the input that the value in a .pb file is named after, or -1. The name is field 8
 * of a TensorProto and field 1 of the other messages (onnx.proto); anything else is stepped over.
 */
static int input_named_in(const char *path, const sdx_model *model)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return -1;
    int found = -1;
    uint64_t tag = 0, length = 0;
    while (found < 0 && read_varint(file, &tag)) {
        unsigned type = (unsigned)(tag & 7);
        if (type == 0) {
            if (!read_varint(file, &length)) break;
            continue;
        }
        length = type == 1 ? 8 : 4;
        if ((type != 1 && type != 2 && type != 5) || (type == 2 && !read_varint(file, &length)))
            break;
        char name[1024];
        if (type == 2 && (tag >> 3 == 8 || tag >> 3 == 1) && length > 0 && length < sizeof name) {
            if (fread(name, 1, (size_t)length, file) != length) break;
            name[length] = '\0';
            for (int i = 0; i < sdx_model_count_inputs(model) && found < 0; i++)
                if (strcmp(sdx_model_input(model, i)->name, name) == 0) found = i;
        } else if (length > INT32_MAX || fseek(file, (long)length, SEEK_CUR) != 0) {
            break;
        }
    }
    fclose(file);
    return found;
}

/* Which input each file belongs to, in target[0 .. count - 1]; numbers[i] is the file's own number.
 */
static bool match_files(const sdx_model *model, const char *folder, const int *numbers, int count,
                        int *target, char **why)
{
    int inputs = sdx_model_count_inputs(model), required = 0;
    bool *taken = calloc((size_t)inputs + 1, sizeof *taken);
    bool named = taken != NULL;
    for (int i = 0; i < inputs; i++)
        required += !sdx_model_input(model, i)->optional;
    for (int i = 0; i < count && named; i++) {
        char file[64];
        snprintf(file, sizeof file, "input_%d.pb", numbers[i]);
        char *path = sdx_cli_join(folder, file);
        target[i] = input_named_in(path, model);
        named = target[i] >= 0 && !taken[target[i]];
        if (named) taken[target[i]] = true;
        free(path);
    }
    free(taken);
    if (named) return true;
    /* By number: among the inputs that must be fed when the numbers fit into those, as models of
     * IR 3 list their weights as inputs too. */
    bool fit = count > 0 && numbers[count - 1] < required;
    for (int i = 0; i < count; i++) {
        int left = numbers[i];
        if (!fit) {
            target[i] = left;
            continue;
        }
        int k = 0;
        for (; left > 0 || sdx_model_input(model, k)->optional; k++)
            left -= !sdx_model_input(model, k)->optional;
        target[i] = k;
    }
    if (count > 0 && target[count - 1] >= inputs) {
        if (asprintf(why, "input_%d.pb: the model has %d inputs", numbers[count - 1], inputs) < 0)
            sdx_cli_no_memory();
        return false;
    }
    return true;
}

/* The numbers of the input files there are, rising. */
static int list_files(const char *folder, int most, int *numbers)
{
    int count = 0;
    for (int i = 0; i < most; i++) {
        char file[64];
        snprintf(file, sizeof file, "input_%d.pb", i);
        char *path = sdx_cli_join(folder, file);
        if (access(path, F_OK) == 0) numbers[count++] = i;
        free(path);
    }
    return count;
}

bool sdx_cli_feeds_load(sdx_context *cx, const sdx_model *model, const char *folder,
                        struct sdx_cli_feeds *feeds, char **why)
{
    *feeds = (struct sdx_cli_feeds){0};
    *why = NULL;
    /* One more than there are inputs, so that a file too many is seen. */
    int most = sdx_model_count_inputs(model) + 1;
    int *numbers = calloc((size_t)most, sizeof *numbers);
    int *target = calloc((size_t)most, sizeof *target);
    if (numbers == NULL || target == NULL) sdx_cli_no_memory();
    int count = list_files(folder, most, numbers);
    bool ok = match_files(model, folder, numbers, count, target, why);
    feeds_reserve(feeds, count);
    for (int i = 0; i < count && ok; i++) {
        const sdx_value_info *info = sdx_model_input(model, target[i]);
        char file[64];
        snprintf(file, sizeof file, "input_%d.pb", numbers[i]);
        char *path = sdx_cli_join(folder, file);
        sdx_tensor *value = NULL;
        ok = sdx_tensor_load_pb(cx, path, info->kind, &value) == SDX_OK;
        if (ok)
            feeds_add(feeds, info->name, value);
        else if (asprintf(why, "%s: %s", file, sdx_error(cx)) < 0)
            sdx_cli_no_memory();
        free(path);
    }
    free(numbers);
    free(target);
    if (!ok) sdx_cli_feeds_free(feeds);
    return ok;
}

/* ---- options ---- */

/* What stands behind "NAME=" in the last item of `list` for input `name`; NULL: no such item. */
static const char *given(const struct sdx_cli_list *list, const char *name)
{
    size_t length = strlen(name);
    for (int i = list->count; i-- > 0;)
        if (strncmp(list->items[i], name, length) == 0 && list->items[i][length] == '=')
            return list->items[i] + length + 1;
    return NULL;
}

/* Every item must name an input. */
static int check_names(const struct sdx_cli_verb *verb, const char *option,
                       const struct sdx_cli_list *list, const sdx_model *model, bool bare)
{
    for (int i = 0; i < list->count; i++) {
        bool found = bare && strchr(list->items[i], '=') == NULL;
        struct sdx_cli_list one = {1, 1, &list->items[i]};
        for (int k = 0; k < sdx_model_count_inputs(model) && !found; k++)
            found = given(&one, sdx_model_input(model, k)->name) != NULL;
        if (!found)
            return sdx_cli_usage(verb, "%s '%.200s': the model has no input of this name", option,
                                 list->items[i]);
    }
    return SDX_CLI_OK;
}

/* "1x3x224x224"; "" is a scalar. */
static bool parse_shape(const char *text, struct sdx_cli_shape *shape)
{
    *shape = (struct sdx_cli_shape){.known = true};
    if (*text == '\0') return true;
    for (;;) {
        char *end = NULL;
        errno = 0;
        long long length = strtoll(text, &end, 10);
        if (end == text || errno != 0 || length < 0 || length > INT32_MAX ||
            shape->rank == SDX_CLI_RANK_MAX)
            return false;
        shape->dims[shape->rank++] = length;
        if (*end == '\0') return true;
        if (*end != 'x' && *end != ',') return false;
        text = end + 1;
    }
}

/* The shape that --shape gives input `info`; .known is false without one. */
static bool shape_given(const struct sdx_cli_sources *sources, const sdx_model *model,
                        const sdx_value_info *info, struct sdx_cli_shape *shape)
{
    *shape = (struct sdx_cli_shape){0};
    const char *text = given(&sources->shapes, info->name);
    int required = 0;
    for (int i = 0; i < sdx_model_count_inputs(model); i++)
        required += !sdx_model_input(model, i)->optional;
    for (int i = 0; i < sources->shapes.count && text == NULL && required == 1; i++)
        if (strchr(sources->shapes.items[i], '=') == NULL && !info->optional)
            text = sources->shapes.items[i];
    return text == NULL || parse_shape(text, shape);
}

/* The length that --shape gives a named dimension through any input, or -1. */
static int64_t length_of_dim(const struct sdx_cli_sources *sources, const sdx_model *model,
                             const char *name)
{
    for (int i = 0; i < sdx_model_count_inputs(model); i++) {
        const sdx_value_info *info = sdx_model_input(model, i);
        struct sdx_cli_shape shape;
        if (info->kind != SDX_KIND_TENSOR || !shape_given(sources, model, info, &shape) ||
            !shape.known || shape.rank != info->rank || info->dim_names == NULL)
            continue;
        for (int k = 0; k < info->rank; k++)
            if (info->dim_names[k] != NULL && strcmp(info->dim_names[k], name) == 0)
                return shape.dims[k];
    }
    return -1;
}

/* The shape to make a value of: --shape, else the model's with what is open from other inputs'
 * --shape. `open` counts dimensions that are still unknown; they are -1. */
static bool shape_for(const struct sdx_cli_sources *sources, const sdx_model *model,
                      const sdx_value_info *info, struct sdx_cli_shape *shape)
{
    if (!shape_given(sources, model, info, shape)) return false;
    if (shape->known || info->rank < 0 || info->rank > SDX_CLI_RANK_MAX) return true;
    *shape = (struct sdx_cli_shape){.known = true, .rank = info->rank};
    for (int k = 0; k < info->rank; k++) {
        const char *name = info->dim_names != NULL ? info->dim_names[k] : NULL;
        shape->dims[k] = info->dims[k];
        if (shape->dims[k] < 0 && name != NULL)
            shape->dims[k] = length_of_dim(sources, model, name);
        shape->open += shape->dims[k] < 0;
    }
    return true;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

static int load_file(const struct sdx_cli *cli, const sdx_value_info *info, const char *path,
                     sdx_tensor **value)
{
    sdx_status status = SDX_OK;
    const char *member = strstr(path, ".npz:");
    if (member != NULL) {
        char *file = strndup(path, (size_t)(member - path) + 4);
        if (file == NULL) sdx_cli_no_memory();
        status = sdx_tensor_load_npz(cli->cx, file, member + 5, value);
        free(file);
    } else if (ends_with(path, ".npz")) {
        status = sdx_tensor_load_npz(cli->cx, path, NULL, value);
    } else if (ends_with(path, ".npy")) {
        status = sdx_tensor_load_npy(cli->cx, path, value);
    } else {
        status = sdx_tensor_load_pb(cli->cx, path, info->kind, value);
    }
    return status ? sdx_cli_fail(cli, "input '%s': %s", info->name, sdx_error(cli->cx))
                  : SDX_CLI_OK;
}

static int make_value(const struct sdx_cli *cli, const struct sdx_cli_verb *verb,
                      const sdx_model *model, const struct sdx_cli_sources *sources,
                      const sdx_value_info *info, sdx_tensor **value)
{
    const char *spec = given(&sources->inputs, info->name);
    if (spec == NULL) spec = "random";
    if (ends_with(spec, ".npy") || ends_with(spec, ".pb") || strstr(spec, ".npz") != NULL)
        return load_file(cli, info, spec, value);
    if (info->kind != SDX_KIND_TENSOR)
        return sdx_cli_fail(cli, "input '%s' is %s: give it with --input NAME=FILE.pb", info->name,
                            info->type);
    struct sdx_cli_shape shape;
    if (!shape_for(sources, model, info, &shape))
        return sdx_cli_usage(verb, "--shape of input '%.100s' is not lengths with x between",
                             info->name);
    if (strcmp(spec, "random") == 0 || strcmp(spec, "zeros") == 0)
        return sdx_cli_value_fill(cli, info, &shape, *spec == 'r', value);
    return sdx_cli_value_parse(cli, verb, info, &shape, spec, value);
}

int sdx_cli_feeds_make(const struct sdx_cli *cli, const struct sdx_cli_verb *verb,
                       const sdx_model *model, const struct sdx_cli_sources *sources,
                       struct sdx_cli_feeds *feeds)
{
    *feeds = (struct sdx_cli_feeds){0};
    int rc = check_names(verb, "--input", &sources->inputs, model, false);
    if (rc == SDX_CLI_OK) rc = check_names(verb, "--shape", &sources->shapes, model, true);
    if (rc != SDX_CLI_OK) return rc;
    if (sources->folder != NULL) {
        char *why = NULL;
        if (access(sources->folder, R_OK | X_OK) != 0)
            return sdx_cli_fail(cli, "%s: %s", sources->folder, strerror(errno));
        if (!sdx_cli_feeds_load(cli->cx, model, sources->folder, feeds, &why)) {
            rc = sdx_cli_fail(cli, "%s: %s", sources->folder, why);
            free(why);
        }
        return rc;
    }
    feeds_reserve(feeds, sdx_model_count_inputs(model));
    for (int i = 0; i < sdx_model_count_inputs(model) && rc == SDX_CLI_OK; i++) {
        const sdx_value_info *info = sdx_model_input(model, i);
        if (info->optional && given(&sources->inputs, info->name) == NULL) continue;
        sdx_tensor *value = NULL;
        rc = make_value(cli, verb, model, sources, info, &value);
        if (rc == SDX_CLI_OK) feeds_add(feeds, info->name, value);
    }
    if (rc != SDX_CLI_OK) sdx_cli_feeds_free(feeds);
    return rc;
}
