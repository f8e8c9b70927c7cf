/* SPDX-License-Identifier: Apache-2.0
 * sardonyx test: runs ONNX test folders (model.onnx, test_data_set_*) and compares. */
#include "cases.h"
#include "inputs.h"
#include "json_out.h"
#include "progress.h"
#include "providers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct test {
    struct sdx_cli cli;
    const char *level, *filter;
    struct sdx_cli_providers providers;
    sdx_tolerance tolerance;
    bool arg_max, digest;
    sdx_session_options options;
    int64_t passed, failed, skipped;
    json_t *records; /* with --json */
    struct sdx_cli_progress *progress;
};

/* One data set under way: its name as printed, what went wrong first. */
struct outcome {
    char *name;
    char *why; /* NULL: nothing */
    double ms, max_abs, max_rel;
    uint64_t digest;
};

enum verdict { PASS, FAIL, SKIP };

static void record(struct test *test, const struct outcome *outcome, enum verdict verdict)
{
    static const char *const words[] = {"PASS", "FAIL", "SKIP"}, *const keys[] = {
                                                                     "passed", "failed", "skipped"};
    int64_t *counts[] = {&test->passed, &test->failed, &test->skipped};
    ++*counts[verdict];
    if (test->cli.json) {
        json_t *o = json_object();
        char hex[24];
        snprintf(hex, sizeof hex, "%016" PRIx64, outcome->digest);
        json_object_set_new(o, "case", sdx_cli_json_text(outcome->name));
        json_object_set_new(o, "result", json_string(keys[verdict]));
        if (outcome->why) json_object_set_new(o, "why", sdx_cli_json_text(outcome->why));
        json_object_set_new(o, "ms", sdx_cli_json_number(outcome->ms, 6));
        json_object_set_new(o, "max_abs", sdx_cli_json_number(outcome->max_abs, 6));
        json_object_set_new(o, "max_rel", sdx_cli_json_number(outcome->max_rel, 6));
        if (test->digest) json_object_set_new(o, "digest", json_string(hex));
        json_array_append_new(test->records, o);
        return;
    }
    if (verdict == PASS && !test->cli.verbose && !test->digest) return;
    sdx_cli_progress_clear(test->progress);
    char *why = outcome->why ? sdx_cli_clean(outcome->why) : NULL;
    if (verdict != PASS || test->cli.verbose)
        printf("%s %s%s%s\n", words[verdict], outcome->name, why ? ": " : "", why ? why : "");
    free(why);
    if (test->digest && verdict != SKIP)
        printf("DIGEST %s %016" PRIx64 "\n", outcome->name, outcome->digest);
    fflush(stdout);
}

/* FNV-1a, 64 bits. */
static void hash_bytes(uint64_t *hash, const void *bytes, size_t size)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; i < size; i++)
        *hash = (*hash ^ p[i]) * 0x100000001b3;
}

static void hash_value(uint64_t *hash, const sdx_tensor *value)
{
    const int64_t head[] = {sdx_tensor_kind(value), sdx_tensor_dtype(value),
                            sdx_tensor_count(value)};
    hash_bytes(hash, head, sizeof head);
    if (sdx_tensor_kind(value) != SDX_KIND_TENSOR) {
        const sdx_tensor *item = NULL;
        for (int64_t i = 0; (item = sdx_tensor_item(value, i)) != NULL; i++)
            hash_value(hash, item);
        return;
    }
    hash_bytes(hash, sdx_tensor_dims(value), (size_t)sdx_tensor_rank(value) * sizeof(int64_t));
    if (sdx_tensor_dtype(value) != SDX_STRING) {
        hash_bytes(hash, sdx_tensor_const_data(value), sdx_tensor_bytes(value));
        return;
    }
    for (int64_t i = 0; i < sdx_tensor_count(value); i++) {
        size_t length = 0;
        const char *text = sdx_tensor_string(value, i, &length);
        hash_bytes(hash, &length, sizeof length);
        hash_bytes(hash, text, length);
    }
}

/* "[0,3,17]" of flat index `at`; "[at]" for what is no tensor. Caller frees. */
static char *place_text(const sdx_tensor *value, int64_t at)
{
    int rank = sdx_tensor_kind(value) == SDX_KIND_TENSOR ? sdx_tensor_rank(value) : 0;
    const int64_t *dims = sdx_tensor_dims(value);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) sdx_cli_no_memory();
    int64_t step = 1;
    for (int k = 0; k < rank; k++)
        step *= dims[k];
    fputc('[', out);
    for (int k = 0; k < rank; k++) {
        step /= dims[k] > 0 ? dims[k] : 1;
        fprintf(out, "%s%lld", k ? "," : "", (long long)(at / step % dims[k]));
    }
    if (sdx_tensor_kind(value) != SDX_KIND_TENSOR) fprintf(out, "%lld", (long long)at);
    fputc(']', out);
    fclose(out);
    return text;
}

/* The tensor that element *at of a value is in; *at becomes its place there. NULL: past the end. */
static const sdx_tensor *leaf_at(const sdx_tensor *value, int64_t *at)
{
    if (sdx_tensor_kind(value) == SDX_KIND_TENSOR) {
        if (*at < sdx_tensor_count(value)) return value;
        *at -= sdx_tensor_count(value);
        return NULL;
    }
    for (int64_t i = 0; i < sdx_tensor_count(value); i++) {
        const sdx_tensor *leaf = leaf_at(sdx_tensor_item(value, i), at);
        if (leaf) return leaf;
    }
    return NULL;
}

/* Element `at` of a value in quotes; NULL: it is no text. Caller frees. */
static char *string_text(const sdx_tensor *value, int64_t at)
{
    const sdx_tensor *leaf = leaf_at(value, &at);
    char *text = NULL;
    if (!leaf || sdx_tensor_dtype(leaf) != SDX_STRING) return NULL;
    char *string = sdx_cli_value_text(leaf, at);
    if (asprintf(&text, "\"%.100s%s\"", string, strlen(string) > 100 ? "..." : "") < 0)
        sdx_cli_no_memory();
    free(string);
    return text;
}

/* Says how `found` differs from `expected`; NULL when it does not. Caller frees. */
static char *difference_text(const struct test *test, const char *name, const sdx_tensor *found,
                             const sdx_tensor *expected, struct outcome *outcome)
{
    sdx_difference d;
    char *text = NULL;
    int rc = 0;
    sdx_compare(found, expected, &test->tolerance, &d);
    if (!d.same_type) {
        char *have = sdx_cli_type_text(found), *want = sdx_cli_type_text(expected);
        rc = asprintf(&text, "output %s: found %s, expected %s", name, have, want);
        free(have);
        free(want);
    } else {
        if (d.max_abs > outcome->max_abs) outcome->max_abs = d.max_abs;
        if (d.max_rel > outcome->max_rel) outcome->max_rel = d.max_rel;
        if (d.count_bad > 0) {
            char *place = place_text(expected, d.first_bad);
            char *have = string_text(found, d.first_bad),
                 *want = string_text(expected, d.first_bad);
            if (have && want)
                rc = asprintf(&text,
                              "output %s: first differing element %s found %s expected %s, %lld of "
                              "%lld differ",
                              name, place, have, want, (long long)d.count_bad, (long long)d.count);
            else
                rc = asprintf(
                    &text,
                    "output %s: first differing element %s found %.9g expected %.9g, max abs "
                    "%.3g, max rel %.3g, %lld of %lld differ",
                    name, place, d.found, d.expected, d.max_abs, d.max_rel, (long long)d.count_bad,
                    (long long)d.count);
            free(have);
            free(want);
            free(place);
        } else if (test->arg_max && !d.arg_max_equal) {
            rc = asprintf(&text, "output %s: the largest element is at another place", name);
        }
    }
    if (rc < 0) sdx_cli_no_memory();
    return text;
}

/* Compares output `i` with output_i.pb; NULL when it is right. */
static char *check_output(struct test *test, const sdx_model *model, const char *folder, int i,
                          const sdx_tensor *found, struct outcome *outcome)
{
    const sdx_value_info *info = sdx_model_output(model, i);
    char file[64], *text = NULL;
    snprintf(file, sizeof file, "output_%d.pb", i);
    char *path = sdx_cli_join(folder, file);
    sdx_tensor *expected = NULL;
    if (sdx_tensor_load_pb(test->cli.cx, path, info->kind, &expected) == SDX_OK)
        text = difference_text(test, info->name, found, expected, outcome);
    else if (asprintf(&text, "output %s: %s: %s", info->name, file, sdx_error(test->cli.cx)) < 0)
        sdx_cli_no_memory();
    sdx_tensor_destroy(expected);
    free(path);
    return text;
}

static void run_set(struct test *test, const sdx_model *model, sdx_session *session,
                    const char *folder, struct outcome *outcome)
{
    struct sdx_cli_feeds feeds;
    if (!sdx_cli_feeds_load(test->cli.cx, model, folder, &feeds, &outcome->why)) return;
    int count = sdx_model_count_outputs(model);
    sdx_tensor **outputs = calloc((size_t)count + 1, sizeof(sdx_tensor *));
    if (outputs == NULL) sdx_cli_no_memory();
    double begin = sdx_cli_now_ms();
    sdx_status status = sdx_run(session, feeds.count, feeds.items, count, NULL, outputs);
    outcome->ms = sdx_cli_now_ms() - begin;
    if (status && (outcome->why = strdup(sdx_session_error(session))) == NULL) sdx_cli_no_memory();
    outcome->digest = 0xcbf29ce484222325;
    for (int i = 0; i < count && !status; i++) {
        hash_value(&outcome->digest, outputs[i]);
        if (outcome->why == NULL)
            outcome->why = check_output(test, model, folder, i, outputs[i], outcome);
    }
    for (int i = 0; i < count; i++)
        sdx_tensor_destroy(outputs[i]);
    free(outputs);
    sdx_cli_feeds_free(&feeds);
}

/* Has the folder one expected output more than the model has outputs? */
static char *surplus_output(const sdx_model *model, const char *folder)
{
    char file[64], *text = NULL;
    int count = sdx_model_count_outputs(model);
    snprintf(file, sizeof file, "output_%d.pb", count);
    char *path = sdx_cli_join(folder, file);
    if (access(path, F_OK) == 0 &&
        asprintf(&text, "%s: the model has only %d outputs", file, count) < 0)
        sdx_cli_no_memory();
    free(path);
    return text;
}

static void run_case(struct test *test, const struct sdx_cli_case *one)
{
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    struct outcome outcome = {.name = one->folder};
    if (one->model == NULL || one->count_sets == 0) {
        outcome.why = one->why;
        record(test, &outcome, SKIP);
        return;
    }
    sdx_status status = sdx_model_open(test->cli.cx, one->model, NULL, &model);
    if (!status) status = sdx_session_create(test->cli.cx, model, &test->options, &session);
    char *load_error = status ? strdup(sdx_error(test->cli.cx)) : NULL;
    for (int i = 0; i < one->count_sets; i++) {
        char *folder = sdx_cli_join(one->folder, one->sets[i]);
        char *first = sdx_cli_join(folder, "output_0.pb");
        outcome = (struct outcome){.name = folder};
        enum verdict verdict = PASS;
        if (access(first, F_OK) != 0) {
            verdict = SKIP;
            outcome.why = strdup("no output_0.pb to compare with");
        } else if (status) {
            outcome.why = strdup(load_error ? load_error : "out of memory");
        } else {
            outcome.why = surplus_output(model, folder);
            if (outcome.why == NULL) run_set(test, model, session, folder, &outcome);
        }
        if (outcome.why != NULL && verdict == PASS) verdict = FAIL;
        record(test, &outcome, verdict);
        free(outcome.why);
        free(first);
        free(folder);
    }
    free(load_error);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
}

static void test_all(struct test *test, const struct sdx_cli_cases *cases)
{
    test->progress = sdx_cli_progress_begin("testing", cases->count);
    for (int i = 0; i < cases->count; i++) {
        run_case(test, &cases->items[i]);
        sdx_cli_progress_set(test->progress, i + 1);
    }
    sdx_cli_progress_end(test->progress);
    test->progress = NULL;
    if (test->cli.json) {
        json_t *o = json_object();
        json_object_set_new(o, "passed", json_integer(test->passed));
        json_object_set_new(o, "failed", json_integer(test->failed));
        json_object_set_new(o, "skipped", json_integer(test->skipped));
        json_object_set_new(o, "threads", json_integer(sdx_threads(test->cli.cx)));
        json_object_set_new(o, "cpu", json_string(sdx_cpu_name()));
        json_object_set(o, "cases", test->records);
        sdx_cli_json_print(o);
    } else {
        printf("%lld passed, %lld failed, %lld skipped\n", (long long)test->passed,
               (long long)test->failed, (long long)test->skipped);
    }
}

static int test_folders(const struct sdx_cli_verb *verb, struct test *test,
                        const struct sdx_cli_list *folders)
{
    int rc = sdx_cli_session_options(verb, test->level, &test->options);
    if (rc == SDX_CLI_OK) rc = sdx_cli_providers_set(verb, &test->providers, &test->options);
    if (rc == SDX_CLI_OK) rc = sdx_cli_start(&test->cli);
    if (rc != SDX_CLI_OK) return rc;
    struct sdx_cli_cases cases = {0};
    for (int i = 0; i < folders->count && rc == SDX_CLI_OK; i++) {
        char *why = NULL;
        if (!sdx_cli_cases_find(&cases, folders->items[i], test->filter, &why))
            rc = sdx_cli_fail(&test->cli, "%s", why);
        free(why);
    }
    if (rc == SDX_CLI_OK && cases.count == 0)
        rc = sdx_cli_fail(&test->cli, "%s: no folder with a model in it%s%s", folders->items[0],
                          test->filter ? " is named like " : "", test->filter ? test->filter : "");
    if (rc == SDX_CLI_OK) {
        test->records = json_array();
        test_all(test, &cases);
        json_decref(test->records);
        rc = test->failed > 0 ? SDX_CLI_FAILED : SDX_CLI_OK;
    }
    sdx_cli_cases_free(&cases);
    sdx_cli_end(&test->cli);
    return rc;
}

static int run_test(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct test test = {0};
    struct sdx_cli_list folders = {0};
    sdx_tolerance_init(&test.tolerance);
    const struct sdx_cli_option options[] = {
        {"--rtol", SDX_CLI_NUMBER, &test.tolerance.rtol, "R",
         "passes: |found - expected| <= atol + R * |expected| (1e-3)", 0, 1e9},
        {"--atol", SDX_CLI_NUMBER, &test.tolerance.atol, "A", "see --rtol (1e-7)", 0, 1e9},
        {"--peak", SDX_CLI_NUMBER, &test.tolerance.peak, "T",
         "passes too: |found - expected| <= T * largest |expected| of the output", 0, 1e9},
        {"--argmax", SDX_CLI_FLAG, &test.arg_max, NULL,
         "the largest of each row must be at the same place", 0, 0},
        {"--filter", SDX_CLI_TEXT, &test.filter, "TEXT", "only folders with TEXT in their path", 0,
         0},
        {"--digest", SDX_CLI_FLAG, &test.digest, NULL,
         "print a hash of all output bytes of every case", 0, 0},
        {"--level", SDX_CLI_TEXT, &test.level, "LEVEL",
         "graph optimisation: none, basic, extended, all", 0, 0},
        SDX_CLI_PROVIDER_OPTIONS(&test.providers),
        {0}};
    int rc = sdx_cli_args(verb, &test.cli, options, argc, argv, &folders, 1, 0);
    if (rc < 0) rc = test_folders(verb, &test, &folders);
    sdx_cli_providers_free(&test.providers);
    sdx_cli_list_free(&folders);
    return rc;
}

const struct sdx_cli_verb sdx_cli_verb_test = {
    "test", "DIR... [options]",
    "Run ONNX test folders and compare the outputs; a folder of folders is walked.",
    "  sardonyx test onnx/backend/test/data/node\n"
    "  sardonyx test models --rtol 1e-3 --atol 1e-6 --peak 1e-4\n"
    "  sardonyx test node --filter conv --verbose\n"
    "  sardonyx test models --threads 7 --digest --json\n",
    run_test};
