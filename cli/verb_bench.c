/* SPDX-License-Identifier: Apache-2.0
 * sardonyx bench: how long a model takes, and how near that is to the machine's limit. */
#include "inputs.h"
#include "json_out.h"
#include "peak.h"
#include "progress.h"
#include "providers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { RUNS_MAX = 1000000, RUNS_LEAST = 3 };

struct bench {
    struct sdx_cli cli;
    struct sdx_cli_sources sources;
    struct sdx_cli_providers providers;
    const char *level;
    bool tune;
    long runs;      /* 0: by time */
    double seconds; /* when runs is 0 */
    double load_ms, first_ms, min_ms, median_ms, p90_ms;
    double *times;
    long count;
    double peak_rss_mb, flops, peak_gflops;
};

static double peak_rss_mb(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss / 1024 : NAN;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* One run; its time in *ms. */
static int run_once(const struct bench *bench, sdx_session *session,
                    const struct sdx_cli_feeds *feeds, int outputs, double *ms)
{
    sdx_tensor **out = calloc((size_t)outputs + 1, sizeof(sdx_tensor *));
    if (out == NULL) sdx_cli_no_memory();
    double begin = sdx_cli_now_ms();
    sdx_status status = sdx_run(session, feeds->count, feeds->items, outputs, NULL, out);
    *ms = sdx_cli_now_ms() - begin;
    for (int i = 0; i < outputs; i++)
        sdx_tensor_destroy(out[i]);
    free(out);
    return status ? sdx_cli_fail(&bench->cli, "%s", sdx_session_error(session)) : SDX_CLI_OK;
}

static int run_many(struct bench *bench, sdx_session *session, const struct sdx_cli_feeds *feeds,
                    int outputs)
{
    long room = bench->runs > 0 ? bench->runs : RUNS_MAX;
    bench->times = malloc((size_t)room * sizeof *bench->times);
    if (bench->times == NULL) sdx_cli_no_memory();
    int64_t total = bench->runs > 0 ? bench->runs : (int64_t)ceil(bench->seconds);
    struct sdx_cli_progress *progress = sdx_cli_progress_begin("measuring", total);
    double begin = sdx_cli_now_ms();
    int rc = SDX_CLI_OK;
    while (bench->count < room && rc == SDX_CLI_OK) {
        double elapsed = (sdx_cli_now_ms() - begin) / 1e3;
        if (bench->runs == 0 && elapsed >= bench->seconds && bench->count >= RUNS_LEAST) break;
        sdx_cli_progress_set(progress, bench->runs > 0            ? bench->count
                                       : elapsed < bench->seconds ? (int64_t)elapsed
                                                                  : total);
        rc = run_once(bench, session, feeds, outputs, &bench->times[bench->count]);
        bench->count += rc == SDX_CLI_OK;
    }
    sdx_cli_progress_end(progress);
    if (rc != SDX_CLI_OK) return rc;
    long n = bench->count;
    qsort(bench->times, (size_t)n, sizeof *bench->times, compare);
    bench->min_ms = bench->times[0];
    bench->median_ms =
        n % 2 ? bench->times[n / 2] : (bench->times[n / 2 - 1] + bench->times[n / 2]) / 2;
    bench->p90_ms = bench->times[(n * 9 + 9) / 10 - 1];
    return SDX_CLI_OK;
}

/* Operations of one run: twice the model's multiply-accumulates when every shape is known from the
 * file, else what a run with records counts for these inputs. */
static int count_flops(struct bench *bench, const sdx_model *model, sdx_session_options options,
                       const struct sdx_cli_feeds *feeds)
{
    const sdx_model_facts *facts = sdx_model_get_facts(model);
    bench->flops = 2.0 * (double)facts->macs;
    if (facts->macs_exact) return SDX_CLI_OK;
    sdx_session *session = NULL;
    options.profile = true;
    options.count_providers = options.count_provider_options = 0; /* the engine counts */
    if (sdx_session_create(bench->cli.cx, model, &options, &session))
        return sdx_cli_fail(&bench->cli, "%s", sdx_error(bench->cli.cx));
    double ms = 0;
    int rc = run_once(bench, session, feeds, sdx_model_count_outputs(model), &ms);
    bench->flops = 0;
    const sdx_profile_row *row = NULL;
    for (int i = 0; rc == SDX_CLI_OK && (row = sdx_session_profile(session, i)) != NULL; i++)
        bench->flops += row->flops;
    sdx_session_destroy(session);
    return rc;
}

static void report(const struct bench *bench, const char *path, const sdx_session *session)
{
    double gflops = bench->flops / (bench->median_ms * 1e6);
    int threads = sdx_threads(bench->cli.cx);
    if (bench->cli.json) {
        json_t *o = json_object();
        json_object_set_new(o, "model", sdx_cli_json_text(path));
        json_object_set_new(o, "load_ms", sdx_cli_json_number(bench->load_ms, 6));
        json_object_set_new(o, "first_ms", sdx_cli_json_number(bench->first_ms, 6));
        json_object_set_new(o, "min_ms", sdx_cli_json_number(bench->min_ms, 6));
        json_object_set_new(o, "median_ms", sdx_cli_json_number(bench->median_ms, 6));
        json_object_set_new(o, "p90_ms", sdx_cli_json_number(bench->p90_ms, 6));
        json_object_set_new(o, "runs", json_integer(bench->count));
        json_object_set_new(o, "threads", json_integer(threads));
        json_object_set_new(o, "cpu", json_string(sdx_cpu_name()));
        json_object_set_new(o, "providers", sdx_cli_providers_json(session));
        json_object_set_new(o, "peak_rss_mb", sdx_cli_json_number(bench->peak_rss_mb, 6));
        json_object_set_new(o, "gflop", sdx_cli_json_number(bench->flops * 1e-9, 9));
        json_object_set_new(o, "gflops", sdx_cli_json_number(gflops, 5));
        json_object_set_new(o, "peak_gflops", sdx_cli_json_number(bench->peak_gflops, 5));
        json_object_set_new(o, "share", sdx_cli_json_number(gflops / bench->peak_gflops, 4));
        sdx_cli_json_print(o);
        return;
    }
    printf("%s: %d thread%s, %s\n", path, threads, threads == 1 ? "" : "s", sdx_cpu_name());
    if (bench->providers.names.count > 0)
        printf("  provider   %s\n", sdx_session_provider(session, 0));
    printf("  load       %10.3f ms\n  first run  %10.3f ms\n", bench->load_ms, bench->first_ms);
    printf("  min        %10.3f ms\n  median     %10.3f ms  (%.1f a second)\n", bench->min_ms,
           bench->median_ms, 1e3 / bench->median_ms);
    printf("  p90        %10.3f ms  of %ld runs\n", bench->p90_ms, bench->count);
    printf("  peak RSS   %10.1f MB\n", bench->peak_rss_mb);
    printf("  speed      %10.2f GFLOP/s, %.1f%% of the %.0f this machine reaches\n", gflops,
           100 * gflops / bench->peak_gflops, bench->peak_gflops);
}

static int bench_session(const struct sdx_cli_verb *verb, struct bench *bench, const char *path,
                         const sdx_session_options *options)
{
    struct sdx_cli_feeds feeds = {0};
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    struct sdx_cli_progress *progress = sdx_cli_progress_begin("loading", 0);
    double begin = sdx_cli_now_ms();
    int rc = sdx_cli_open(&bench->cli, path, &model);
    if (rc == SDX_CLI_OK && sdx_session_create(bench->cli.cx, model, options, &session))
        rc = sdx_cli_fail(&bench->cli, "%s: %s", path, sdx_error(bench->cli.cx));
    bench->load_ms = sdx_cli_now_ms() - begin;
    sdx_cli_progress_end(progress);
    if (rc == SDX_CLI_OK)
        rc = sdx_cli_feeds_make(&bench->cli, verb, model, &bench->sources, &feeds);
    int outputs = rc == SDX_CLI_OK ? sdx_model_count_outputs(model) : 0;
    if (rc == SDX_CLI_OK) rc = run_once(bench, session, &feeds, outputs, &bench->first_ms);
    if (rc == SDX_CLI_OK) rc = run_many(bench, session, &feeds, outputs);
    if (rc == SDX_CLI_OK) {
        bench->peak_rss_mb = peak_rss_mb();
        rc = count_flops(bench, model, *options, &feeds);
    }
    if (rc == SDX_CLI_OK) {
        bench->peak_gflops = sdx_cli_peak_gflops(sdx_threads(bench->cli.cx));
        report(bench, path, session);
    }
    sdx_cli_feeds_free(&feeds);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    return rc;
}

static int run_bench(const struct sdx_cli_verb *verb, int argc, char **argv)
{
    struct bench bench = {.seconds = 3};
    struct sdx_cli_list files = {0};
    const struct sdx_cli_option options[] = {
        {"--inputs", SDX_CLI_TEXT, &bench.sources.folder, "DIR", "feed DIR/input_0.pb, ...", 0, 0},
        {"--input", SDX_CLI_LIST, &bench.sources.inputs, "NAME=WHAT",
         "FILE.npy, FILE.pb, random, zeros or 1,2,3 (default: random)", 0, 0},
        {"--shape", SDX_CLI_LIST, &bench.sources.shapes, "NAME=1x3x8x8",
         "shape of a value that is made (open dimensions: 1)", 0, 0},
        {"--runs", SDX_CLI_INT, &bench.runs, "N", "runs to measure", 1, RUNS_MAX},
        {"--seconds", SDX_CLI_NUMBER, &bench.seconds, "S", "time to measure for (3)", 0.001, 86400},
        {"--level", SDX_CLI_TEXT, &bench.level, "LEVEL",
         "graph optimisation: none, basic, extended, all", 0, 0},
        SDX_CLI_PROVIDER_OPTIONS(&bench.providers),
        {"--tune", SDX_CLI_FLAG, &bench.tune, NULL,
         "measure the ways to compute a convolution once, and keep the fastest", 0, 0},
        {0}};
    int rc = sdx_cli_args(verb, &bench.cli, options, argc, argv, &files, 1, 1);
    sdx_session_options session_options;
    if (rc < 0) {
        rc = sdx_cli_session_options(verb, bench.level, &session_options);
        session_options.tune = bench.tune;
        if (rc == SDX_CLI_OK) rc = sdx_cli_providers_set(verb, &bench.providers, &session_options);
        if (rc == SDX_CLI_OK) rc = sdx_cli_start(&bench.cli);
        if (rc == SDX_CLI_OK) rc = bench_session(verb, &bench, files.items[0], &session_options);
        sdx_cli_end(&bench.cli);
    }
    free(bench.times);
    sdx_cli_sources_free(&bench.sources);
    sdx_cli_providers_free(&bench.providers);
    sdx_cli_list_free(&files);
    return rc;
}

const struct sdx_cli_verb sdx_cli_verb_bench = {
    "bench", "MODEL [options]",
    "Measure loading, the first and the following runs, memory, and the share of the machine's "
    "peak.",
    "  sardonyx bench model.onnx\n"
    "  sardonyx bench model.onnx --threads 1 --runs 100 --json\n"
    "  sardonyx bench bert.onnx --inputs bert/test_data_set_0\n"
    "  sardonyx bench dynamic.onnx --shape x=8x3x224x224\n",
    run_bench};
