/* SPDX-License-Identifier: Apache-2.0
 * sardonyx profile: where the time of a run goes, by operator type and by node. */
#include "inputs.h"
#include "json_out.h"
#include "progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct profile {
    struct sdx_cli cli;
    struct sdx_cli_sources sources;
    const char *level, *trace;
    bool tune;
    long runs, top;
};

/* A line of a table; times and work of one run. */
struct row {
    const char *name, *op, *kernel, *shapes;
    int64_t order; /* place in execution; count of nodes in the table by type */
    double ms, flops, bytes;
};

struct table {
    struct row *rows;
    int count;
    double ms; /* of all rows */
};

static int by_time(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    if (a->ms != b->ms) return a->ms < b->ms ? 1 : -1;
    return (a->order > b->order) - (a->order < b->order);
}

static struct table nodes_of(const sdx_session *session)
{
    struct table table = {0};
    const sdx_profile_row *p = NULL;
    while (sdx_session_profile(session, table.count) != NULL)
        table.count++;
    table.rows = calloc((size_t)table.count + 1, sizeof *table.rows);
    if (table.rows == NULL) sdx_cli_no_memory();
    for (int i = 0; i < table.count; i++) {
        p = sdx_session_profile(session, i);
        double runs = p->runs > 0 ? (double)p->runs : 1;
        table.rows[i] =
            (struct row){p->name,  p->op,   p->kernel, p->shapes, i, (double)p->ns * 1e-6 / runs,
                         p->flops, p->bytes};
        table.ms += table.rows[i].ms;
    }
    return table;
}

/* One row a type; the number of nodes in `order`. */
static struct table types_of(const struct table *nodes)
{
    struct table table = {.ms = nodes->ms};
    table.rows = calloc((size_t)nodes->count + 1, sizeof *table.rows);
    if (table.rows == NULL) sdx_cli_no_memory();
    for (int i = 0; i < nodes->count; i++) {
        int k = 0;
        while (k < table.count && strcmp(table.rows[k].op, nodes->rows[i].op) != 0)
            k++;
        struct row *row = &table.rows[k];
        if (k == table.count) {
            table.count++;
            row->name = row->op = nodes->rows[i].op;
        }
        row->order++;
        row->ms += nodes->rows[i].ms;
        row->flops += nodes->rows[i].flops;
        row->bytes += nodes->rows[i].bytes;
    }
    qsort(table.rows, (size_t)table.count, sizeof *table.rows, by_time);
    return table;
}

static double per_second(double amount, double ms)
{
    return ms > 0 ? amount / (ms * 1e6) : 0;
}

static void print_types(const struct table *types)
{
    printf("%-28s %6s %10s %7s %9s %9s %12s\n", "operator", "nodes", "ms", "share", "GFLOP/s",
           "GB/s", "bytes");
    for (int i = 0; i < types->count; i++) {
        const struct row *r = &types->rows[i];
        printf("%-28.28s %6lld %10.3f %6.1f%% %9.2f %9.2f %12s\n", r->op, (long long)r->order,
               r->ms, types->ms > 0 ? 100 * r->ms / types->ms : 0, per_second(r->flops, r->ms),
               per_second(r->bytes, r->ms), sdx_cli_bytes(r->bytes));
    }
    printf("%-28s %6s %10.3f\n", "all", "", types->ms);
}

static void print_nodes(const struct table *nodes, long top)
{
    printf("\n%5s %9s %7s %9s %9s %10s  %s\n", "node", "ms", "share", "GFLOP/s", "GB/s", "bytes",
           "operator, name, kernel, shapes");
    for (int i = 0; i < nodes->count && (top == 0 || i < top); i++) {
        const struct row *r = &nodes->rows[i];
        char *name = sdx_cli_clean(r->name);
        printf("%5lld %9.3f %6.1f%% %9.2f %9.2f %10s  %s %s [%s] %s\n", (long long)r->order, r->ms,
               nodes->ms > 0 ? 100 * r->ms / nodes->ms : 0, per_second(r->flops, r->ms),
               per_second(r->bytes, r->ms), sdx_cli_bytes(r->bytes), r->op, name, r->kernel,
               r->shapes);
        free(name);
    }
    if (top > 0 && nodes->count > top)
        printf("... %ld more (--top 0 prints all)\n", nodes->count - top);
}

static json_t *row_json(const struct row *r, bool node, double all)
{
    json_t *o = json_object();
    json_object_set_new(o, "op", sdx_cli_json_text(r->op));
    if (node) {
        json_object_set_new(o, "name", sdx_cli_json_text(r->name));
        json_object_set_new(o, "kernel", sdx_cli_json_text(r->kernel));
        json_object_set_new(o, "shapes", sdx_cli_json_text(r->shapes));
    }
    json_object_set_new(o, node ? "order" : "nodes", json_integer(r->order));
    json_object_set_new(o, "ms", sdx_cli_json_number(r->ms, 6));
    json_object_set_new(o, "share", sdx_cli_json_number(all > 0 ? r->ms / all : 0, 4));
    json_object_set_new(o, "gflops", sdx_cli_json_number(per_second(r->flops, r->ms), 5));
    json_object_set_new(o, "flops", sdx_cli_json_number(r->flops, 15));
    json_object_set_new(o, "bytes", sdx_cli_json_number(r->bytes, 15));
    return o;
}

static json_t *table_json(const struct table *table, bool node)
{
    json_t *list = json_array();
    for (int i = 0; i < table->count; i++)
        json_array_append_new(list, row_json(&table->rows[i], node, table->ms));
    return list;
}

/* Chrome's trace format ("Trace Event Format", complete events): times in microseconds. */
static int write_trace(const struct profile *profile, const sdx_session *session)
{
    json_t *events = json_array();
    const sdx_profile_row *p = NULL;
    for (int i = 0; (p = sdx_session_profile(session, i)) != NULL; i++) {
        json_t *event = json_object(), *args = json_object();
        json_object_set_new(event, "name", sdx_cli_json_text(*p->name ? p->name : p->op));
        json_object_set_new(event, "cat", sdx_cli_json_text(p->op));
        json_object_set_new(event, "ph", json_string("X"));
        json_object_set_new(event, "ts", json_real((double)p->start_ns * 1e-3));
        json_object_set_new(event, "dur", json_real((double)p->last_ns * 1e-3));
        json_object_set_new(event, "pid", json_integer(1));
        json_object_set_new(event, "tid", json_integer(1));
        json_object_set_new(args, "op", sdx_cli_json_text(p->op));
        json_object_set_new(args, "kernel", sdx_cli_json_text(p->kernel));
        json_object_set_new(args, "shapes", sdx_cli_json_text(p->shapes));
        json_object_set_new(args, "flops", json_real(p->flops));
        json_object_set_new(args, "bytes", json_real(p->bytes));
        json_object_set_new(event, "args", args);
        json_array_append_new(events, event);
    }
    json_t *trace = json_object();
    json_object_set_new(trace, "traceEvents", events);
    json_object_set_new(trace, "displayTimeUnit", json_string("ms"));
    errno = 0;
    int failed = json_dump_file(trace, profile->trace, JSON_INDENT(1));
    json_decref(trace);
    if (failed)
        return sdx_cli_fail(&profile->cli, "%s: %s", profile->trace,
                            errno ? strerror(errno) : "cannot be written");
    return SDX_CLI_OK;
}

static void report(const struct profile *profile, const char *path, const sdx_session *session)
{
    struct table nodes = nodes_of(session), types = types_of(&nodes);
    if (profile->cli.json) {
        json_t *o = json_object();
        json_object_set_new(o, "model", sdx_cli_json_text(path));
        json_object_set_new(o, "runs", json_integer(profile->runs));
        json_object_set_new(o, "threads", json_integer(sdx_threads(profile->cli.cx)));
        json_object_set_new(o, "ms", sdx_cli_json_number(nodes.ms, 6));
        json_object_set_new(o, "operators", table_json(&types, false));
        json_object_set_new(o, "nodes", table_json(&nodes, true));
        sdx_cli_json_print(o);
    } else {
        printf("%s: mean of %ld runs, %d threads, %s\n\n", path, profile->runs,
               sdx_threads(profile->cli.cx), sdx_cpu_name());
        print_types(&types);
        qsort(nodes.rows, (size_t)nodes.count, sizeof *nodes.rows, by_time);
        print_nodes(&nodes, profile->top);
    }
    free(nodes.rows);
    free(types.rows);
}

static int run_all(const struct profile *profile, sdx_session *session,
                   const struct sdx_cli_feeds *feeds, int outputs)
{
    sdx_tensor **out = calloc((size_t)outputs + 1, sizeof(sdx_tensor *));
    if (out == NULL) sdx_cli_no_memory();
    struct sdx_cli_progress *progress = sdx_cli_progress_begin("running", profile->runs);
    sdx_status status = SDX_OK;
    /* The first run makes plans and packs weights: it is not counted. */
    for (long i = -1; i < profile->runs && !status; i++) {
        if (i == 0) sdx_session_profile_reset(session);
        status = sdx_run(session, feeds->count, feeds->items, outputs, NULL, out);
        for (int k = 0; k < outputs; k++) {
            sdx_tensor_destroy(out[k]);
            out[k] = NULL;
        }
        sdx_cli_progress_set(progress, i + 1);
    }
    sdx_cli_progress_end(progress);
    free(out);
    return status ? sdx_cli_fail(&profile->cli, "%s", sdx_session_error(session)) : SDX_CLI_OK;
}

static int profile_model(const struct sdx_cli_verb *verb, struct profile *profile, const char *path)
{
    sdx_session_options options;
    int rc = sdx_cli_session_options(verb, profile->level, &options);
    if (rc == SDX_CLI_OK) rc = sdx_cli_start(&profile->cli);
    if (rc != SDX_CLI_OK) return rc;
    options.profile = true;
    options.tune = profile->tune;
    struct sdx_cli_feeds feeds = {0};
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    rc = sdx_cli_open(&profile->cli, path, &model);
    if (rc == SDX_CLI_OK && sdx_session_create(profile->cli.cx, model, &options, &session))
        rc = sdx_cli_fail(&profile->cli, "%s: %s", path, sdx_error(profile->cli.cx));
    if (rc == SDX_CLI_OK)
        rc = sdx_cli_feeds_make(&profile->cli, verb, model, &profile->sources, &feeds);
    if (rc == SDX_CLI_OK) rc = run_all(profile, session, &feeds, sdx_model_count_outputs(model));
    if (rc == SDX_CLI_OK && profile->trace != NULL) rc = write_trace(profile, session);
    if (rc == SDX_CLI_OK) report(profile, path, session);
    sdx_cli_feeds_free(&feeds);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    sdx_cli_end(&profile->cli);
    return rc;
}

static int run_profile(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct profile profile = {.runs = 10, .top = 20};
    struct sdx_cli_list files = {0};
    const struct sdx_cli_option options[] = {
        {"--trace", SDX_CLI_TEXT, &profile.trace, "FILE",
         "write the last run for chrome://tracing or ui.perfetto.dev", 0, 0},
        {"--runs", SDX_CLI_INT, &profile.runs, "N", "runs to take the mean of (10)", 1, 1e6},
        {"--top", SDX_CLI_INT, &profile.top, "N", "nodes to print; 0: all (20)", 0, 1e9},
        {"--inputs", SDX_CLI_TEXT, &profile.sources.folder, "DIR", "feed DIR/input_0.pb, ...", 0,
         0},
        {"--input", SDX_CLI_LIST, &profile.sources.inputs, "NAME=WHAT",
         "FILE.npy, FILE.pb, random, zeros or 1,2,3 (default: random)", 0, 0},
        {"--shape", SDX_CLI_LIST, &profile.sources.shapes, "NAME=1x3x8x8",
         "shape of a value that is made (open dimensions: 1)", 0, 0},
        {"--level", SDX_CLI_TEXT, &profile.level, "LEVEL",
         "graph optimisation: none, basic, extended, all", 0, 0},
        {"--tune", SDX_CLI_FLAG, &profile.tune, NULL,
         "measure the ways to compute a convolution once, and keep the fastest", 0, 0},
        {0}};
    int rc = sdx_cli_args(verb, &profile.cli, options, argc, argv, &files, 1, 1);
    if (rc < 0) rc = profile_model(verb, &profile, files.items[0]);
    sdx_cli_sources_free(&profile.sources);
    sdx_cli_list_free(&files);
    return rc;
}

const struct sdx_cli_verb sdx_cli_verb_profile = {
    "profile", "MODEL [options]", "Show where the time goes, by operator type and by node.",
    "  sardonyx profile model.onnx\n"
    "  sardonyx profile model.onnx --threads 1 --top 50\n"
    "  sardonyx profile model.onnx --trace trace.json\n",
    run_profile};
