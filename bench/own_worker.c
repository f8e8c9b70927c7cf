/* SPDX-License-Identifier: Apache-2.0
 * The worker of bench/peers for Sardonyx, through the public header; see worker.h. Reads
 * MODEL_DIR/test_data_set_0/input_i.pb; what is not there is made of zeros. The error is the
 * largest difference to output_i.pb over the largest number there. Outputs are written into the
 * same memory in every run where their type allows. */
#include <sardonyx/sardonyx.h>

#include "worker.h"

struct job {
    sdx_context *cx;
    sdx_session *session;
    sdx_feed feeds[WORKER_VALUES_MAX];
    sdx_tensor *inputs[WORKER_VALUES_MAX], *outputs[WORKER_VALUES_MAX];
    const char *names[WORKER_VALUES_MAX];
    int count_feeds, count_outputs;
    bool keeps[WORKER_VALUES_MAX];
};

static int fail(const sdx_context *cx)
{
    fprintf(stderr, "%s\n", sdx_error(cx));
    return 1;
}

static bool run(void *arg)
{
    struct job *job = arg;
    for (int i = 0; i < job->count_outputs; i++) {
        if (job->keeps[i]) continue;
        sdx_tensor_destroy(job->outputs[i]);
        job->outputs[i] = NULL;
    }
    return sdx_run(job->session, job->count_feeds, job->feeds, job->count_outputs, job->names,
                   job->outputs) == SDX_OK;
}

static bool load(struct job *job, const char *folder, const char *kind, int i, sdx_kind type,
                 sdx_tensor **out)
{
    char path[WORKER_PATH];
    snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, kind, i);
    return sdx_tensor_load_pb(job->cx, path, type, out) == SDX_OK;
}

static bool make_zeros(struct job *job, const sdx_value_info *info, sdx_tensor **out)
{
    int64_t dims[64];
    for (int d = 0; d < info->rank && d < 64; d++)
        dims[d] = info->dims[d] > 0 ? info->dims[d] : 1;
    return sdx_tensor_create(job->cx, info->dtype, info->rank > 0 ? info->rank : 0, dims, out) ==
           SDX_OK;
}

static double largest_error(struct job *job, const sdx_model *model, const char *folder)
{
    double worst = -1;
    for (int i = 0; i < job->count_outputs; i++) {
        sdx_tensor *expected = NULL;
        sdx_difference difference;
        sdx_tolerance tolerance;
        sdx_tolerance_init(&tolerance);
        if (!load(job, folder, "output", i, sdx_model_output(model, i)->kind, &expected)) continue;
        sdx_compare(job->outputs[i], expected, &tolerance, &difference);
        if (difference.same_type) {
            double error = difference.peak > 0 ? difference.max_abs / difference.peak : 0;
            worst = error > worst ? error : worst;
        }
        sdx_tensor_destroy(expected);
    }
    return worst;
}

int main(int argc, char **argv)
{
    static struct job job;
    char path[WORKER_PATH];
    sdx_model *model = NULL;
    if (argc != 3) return 2;
    double begin = worker_us();
    sdx_context_options options;
    sdx_context_options_init(&options);
    options.threads = (int)strtol(argv[2], NULL, 10);
    job.cx = sdx_context_create(&options);
    if (!job.cx) return 1;
    snprintf(path, sizeof path, "%s/model.onnx", argv[1]);
    if (sdx_model_open(job.cx, path, NULL, &model) ||
        sdx_session_create(job.cx, model, NULL, &job.session))
        return fail(job.cx);
    double loaded = worker_us();
    for (int i = 0; i < sdx_model_count_inputs(model) && i < WORKER_VALUES_MAX; i++) {
        const sdx_value_info *info = sdx_model_input(model, i);
        sdx_tensor **to = &job.inputs[job.count_feeds];
        if (!load(&job, argv[1], "input", i, info->kind, to)) {
            if (info->optional) continue;
            if (!make_zeros(&job, info, to)) return fail(job.cx);
        }
        job.feeds[job.count_feeds++] = (sdx_feed){info->name, *to};
    }
    job.count_outputs = sdx_model_count_outputs(model);
    if (job.count_outputs > WORKER_VALUES_MAX) return 1;
    for (int i = 0; i < job.count_outputs; i++)
        job.names[i] = sdx_model_output(model, i)->name;
    double first = worker_us();
    if (!run(&job)) return fail(job.cx);
    first = worker_us() - first;
    for (int i = 0; i < job.count_outputs; i++)
        job.keeps[i] = sdx_tensor_kind(job.outputs[i]) == SDX_KIND_TENSOR &&
                       sdx_tensor_dtype(job.outputs[i]) != SDX_STRING;
    printf("{\"version\": \"%s\", \"cpu\": \"%s\", \"load_ms\": %.3f, \"first_ms\": %.3f, "
           "\"peak_mb\": %.1f, \"error\": %.3g}\n",
           sdx_version(), sdx_cpu_name(), (loaded - begin) * 1e-3, first * 1e-3, worker_peak_mb(),
           largest_error(&job, model, argv[1]));
    fflush(stdout);
    return worker_answer(run, &job);
}
