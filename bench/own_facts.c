/* SPDX-License-Identifier: Apache-2.0
 * What own_worker tells of a model besides times: memory for weights in one session and in two, and
 * what the first run of a new input shape costs. */
#include "own_job.h"

enum { SHAPES = 3, RUNS = 9, GRID = 32 };

static double weights_mb(const sdx_context *cx)
{
    const char *tag = NULL;
    size_t now = 0, peak = 0;
    for (int i = 0; sdx_memory_row(cx, i, &tag, &now, &peak); i++)
        if (strcmp(tag, "weights") == 0) return (double)now / (1 << 20);
    return 0;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

/* Another shape of input 0: heights and widths that are open become quarters of what they were, on
 * a grid that detectors want; without such the number of rows grows. False: no dimension is open.
 */
static bool new_dims(const struct own_job *job, int k, int rank, int64_t *dims)
{
    const sdx_value_info *info = sdx_model_input(job->model, 0);
    bool any = false;
    for (int d = 2; d < rank; d++) {
        if (info->dims[d] > 0) continue;
        dims[d] = (dims[d] * (k + 1) / (SHAPES + 1) + GRID - 1) / GRID * GRID;
        any = true;
    }
    if (!any && rank > 0 && info->dims[0] <= 0) {
        dims[0] += k + 1;
        any = true;
    }
    return any;
}

/* Steady state over first run of three new shapes, the median; 0: there is no other shape. */
static double new_shape_ratio(struct own_job *job)
{
    const sdx_tensor *given = job->inputs[0];
    int rank = sdx_tensor_rank(given);
    double ratios[SHAPES];
    memset(job->keeps, 0, sizeof job->keeps);
    for (int k = 0; k < SHAPES; k++) {
        int64_t dims[16];
        if (rank > 16) return 0;
        memcpy(dims, sdx_tensor_dims(given), (size_t)rank * sizeof *dims);
        sdx_tensor *other = NULL;
        if (!new_dims(job, k, rank, dims) ||
            sdx_tensor_create(job->cx, sdx_tensor_dtype(given), rank, dims, &other))
            return 0;
        job->feeds[0].value = other;
        double times[RUNS];
        for (int i = 0; i < RUNS; i++) {
            double begin = worker_us();
            if (!own_run(job)) return 0;
            times[i] = worker_us() - begin;
        }
        ratios[k] = median(times + 1, RUNS - 1) / times[0];
        job->feeds[0].value = job->inputs[0];
        sdx_tensor_destroy(other);
    }
    return median(ratios, SHAPES);
}

int own_tell_facts(struct own_job *job)
{
    double before = weights_mb(job->cx), share = 0;
    sdx_session *first = job->session;
    bool ok =
        sdx_session_create(job->cx, job->model, NULL, &job->session) == SDX_OK && own_run(job);
    if (ok) share = before > 0 ? 1 - (weights_mb(job->cx) - before) / before : 1;
    sdx_session_destroy(job->session);
    job->session = first;
    if (!ok) {
        fprintf(stderr, "%s\n", sdx_error(job->cx));
        return 1;
    }
    printf("{\"weights_mb\": %.2f, \"sessions\": %.4f, \"new_shape\": %.4f}\n", before, share,
           new_shape_ratio(job));
    return 0;
}
