/* SPDX-License-Identifier: Apache-2.0
 * The worker of bench/peers for Sardonyx, through the public header; see worker.h. A third argument
 * names the file in MODEL_DIR to load in place of model.onnx, a plan file; or is --facts: in place
 * of times it prints what own_job.h says, and ends. Reads MODEL_DIR/test_data_set_0/input_i.pb;
 * what is not there is made of zeros. The error is the largest difference to output_i.pb over the
 * largest number there. Outputs are written into the same memory in every run where their type
 * allows. */
#include <math.h>

#include "own_job.h"

static int fail(const sdx_context *cx)
{
    fprintf(stderr, "%s\n", cx ? sdx_error(cx) : "no memory");
    return 1;
}

bool own_run(void *arg)
{
    struct own_job *job = arg;
    for (int i = 0; i < job->count_outputs; i++) {
        if (job->keeps[i]) continue;
        sdx_tensor_destroy(job->outputs[i]);
        job->outputs[i] = NULL;
    }
    return sdx_run(job->session, job->count_feeds, job->feeds, job->count_outputs, NULL,
                   job->outputs) == SDX_OK;
}

static bool load(struct own_job *job, const char *folder, const char *kind, int i, sdx_kind type,
                 sdx_tensor **out)
{
    char path[WORKER_PATH];
    snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, kind, i);
    return sdx_tensor_load_pb(job->cx, path, type, out) == SDX_OK;
}

static bool make_zeros(struct own_job *job, const sdx_value_info *info, sdx_tensor **out)
{
    int64_t dims[64];
    for (int d = 0; d < info->rank && d < 64; d++)
        dims[d] = info->dims[d] > 0 ? info->dims[d] : 1;
    return sdx_tensor_create(job->cx, info->dtype, info->rank > 0 ? info->rank : 0, dims, out) ==
           SDX_OK;
}

static double largest_error(struct own_job *job, const char *folder)
{
    double worst = -1;
    for (int i = 0; i < job->count_outputs; i++) {
        sdx_tensor *expected = NULL;
        sdx_difference difference;
        sdx_tolerance tolerance;
        sdx_tolerance_init(&tolerance);
        if (!load(job, folder, "output", i, sdx_model_output(job->model, i)->kind, &expected))
            continue;
        sdx_compare(job->outputs[i], expected, &tolerance, &difference);
        if (difference.same_type) {
            double error = difference.peak > 0 ? difference.max_abs / difference.peak : 0;
            worst = error > worst ? error : worst;
        }
        sdx_tensor_destroy(expected);
    }
    return worst;
}

/* Opens the model or plan file and makes the session; the inputs are read after. */
static bool start(struct own_job *job, const char *folder, const char *file, int threads)
{
    char path[WORKER_PATH];
    sdx_context_options options;
    sdx_context_options_init(&options);
    options.threads = threads;
    job->cx = sdx_context_create(&options);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return job->cx && sdx_model_open(job->cx, path, NULL, &job->model) == SDX_OK &&
           sdx_session_create(job->cx, job->model, NULL, &job->session) == SDX_OK;
}

static bool read_inputs(struct own_job *job, const char *folder)
{
    for (int i = 0; i < sdx_model_count_inputs(job->model) && i < WORKER_VALUES_MAX; i++) {
        const sdx_value_info *info = sdx_model_input(job->model, i);
        sdx_tensor **to = &job->inputs[job->count_feeds];
        if (!load(job, folder, "input", i, info->kind, to)) {
            if (info->optional) continue;
            if (!make_zeros(job, info, to)) return false;
        }
        job->feeds[job->count_feeds++] = (sdx_feed){info->name, *to};
    }
    job->count_outputs = sdx_model_count_outputs(job->model);
    return job->count_outputs <= WORKER_VALUES_MAX;
}

int main(int argc, char **argv)
{
    static struct own_job job;
    if (argc != 3 && argc != 4) return 2;
    bool facts = argc == 4 && strcmp(argv[3], "--facts") == 0;
    double begin = worker_us();
    if (!start(&job, argv[1], argc == 4 && !facts ? argv[3] : "model.onnx",
               (int)strtol(argv[2], NULL, 10)))
        return fail(job.cx);
    double loaded = worker_us();
    if (!read_inputs(&job, argv[1])) return fail(job.cx);
    double first = worker_us();
    if (!own_run(&job)) return fail(job.cx);
    first = worker_us() - first;
    if (facts) return own_tell_facts(&job);
    worker_tell_first();
    double peak = worker_peak_mb();
    for (int i = 0; i < job.count_outputs; i++)
        job.keeps[i] = sdx_tensor_kind(job.outputs[i]) == SDX_KIND_TENSOR &&
                       sdx_tensor_dtype(job.outputs[i]) != SDX_STRING;
    char error[32] = "Infinity"; /* as Python's JSON has it */
    const double worst = largest_error(&job, argv[1]);
    if (isfinite(worst)) snprintf(error, sizeof error, "%.3g", worst);
    printf("{\"version\": \"%s\", \"cpu\": \"%s\", \"load_ms\": %.3f, \"first_ms\": %.3f, "
           "\"peak_mb\": %.1f, \"error\": %s}\n",
           sdx_version(), sdx_cpu_name(), (loaded - begin) * 1e-3, first * 1e-3, peak, error);
    fflush(stdout);
    return worker_answer(own_run, &job);
}
