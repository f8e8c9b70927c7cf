/* SPDX-License-Identifier: Apache-2.0
 * The worker of bench/peers for ONNX Runtime through its C interface; see worker.h. The library is
 * loaded at run time from the path in ORT_LIB. Its table of functions only ever grows at the end,
 * so the few that are used are called by their places in it and no header of it is needed. Reads
 * MODEL_DIR/input_i.npy and output_i.npy (f32, f64, i64, i32, bool, u8), which bench/peers makes.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>

#include "worker.h"

enum place {
    GET_MESSAGE = 2,
    CREATE_ENV = 3,
    CREATE_SESSION = 7,
    RUN = 9,
    CREATE_OPTIONS = 10,
    SET_LEVEL = 23,
    SET_INTRA_THREADS = 24,
    COUNT_INPUTS = 30,
    COUNT_OUTPUTS = 31,
    INPUT_NAME = 36,
    OUTPUT_NAME = 37,
    CREATE_TENSOR = 49,
    TENSOR_DATA = 51,
    SHAPE_COUNT = 64,
    TENSOR_SHAPE = 65,
    CPU_MEMORY = 69,
    ALLOCATOR = 78,
    RELEASE_VALUE = 96
};

struct base {
    const void *(*get_api)(uint32_t version);
    const char *(*version)(void);
};
typedef void *status;
typedef void function(void);

static function *const *api;
static void *session;
static void *inputs[WORKER_VALUES_MAX], *outputs[WORKER_VALUES_MAX];
static char *names_in[WORKER_VALUES_MAX], *names_out[WORKER_VALUES_MAX];
static size_t count_in, count_out;

/* The function at `place` with these types of parameters. */
#define AT(place, ...) ((status(*)(__VA_ARGS__))api[place])

static void check(status failed)
{
    if (failed == NULL) return;
    fprintf(stderr, "%s\n", ((const char *(*)(status))api[GET_MESSAGE])(failed));
    exit(1);
}

static bool run(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < count_out; i++) {
        if (outputs[i]) ((void (*)(void *))api[RELEASE_VALUE])(outputs[i]);
        outputs[i] = NULL;
    }
    return AT(RUN, void *, void *, const char *const *, void *const *, size_t, const char *const *,
              size_t, void **)(session, NULL, (const char *const *)names_in, inputs, count_in,
                               (const char *const *)names_out, count_out, outputs) == NULL;
}

struct array {
    char *data;
    size_t bytes, count, rank;
    int64_t dims[16];
    int type; /* as ONNX numbers them */
};

/* A file as numpy.save writes it, version 1. */
static bool read_npy(const char *path, struct array *a)
{
    static const struct {
        const char *name;
        int type;
        size_t size;
    } types[] = {{"'<f4'", 1, 4}, {"'<f8'", 11, 8}, {"'<i8'", 7, 8}, {"'<i4'", 6, 4},
                 {"'|b1'", 9, 1}, {"'|u1'", 2, 1},  {"'<f2'", 10, 2}};
    unsigned char head[10];
    char text[8192];
    size_t size = 0;
    FILE *file = fopen(path, "rb");
    if (file == NULL) return false;
    bool ok = fread(head, 1, 10, file) == 10;
    size_t length = ok ? head[8] | (size_t)head[9] << 8 : 0;
    ok = ok && length < sizeof text && fread(text, 1, length, file) == length;
    text[ok ? length : 0] = '\0';
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strstr(text, types[i].name)) {
            a->type = types[i].type;
            size = types[i].size;
        }
    char *at = strstr(text, "'shape': (");
    ok = ok && size > 0 && at != NULL;
    a->count = 1;
    a->rank = 0;
    for (at = ok ? at + 10 : text; ok && *at && *at != ')' && a->rank < 16;) {
        char *end = at;
        long dim = strtol(at, &end, 10);
        if (end == at) {
            at++;
            continue;
        }
        a->dims[a->rank++] = dim;
        a->count *= (size_t)dim;
        at = end;
    }
    a->bytes = a->count * size;
    a->data = ok ? aligned_alloc(64, (a->bytes + 128) / 64 * 64) : NULL;
    ok = ok && a->data && fread(a->data, 1, a->bytes, file) == a->bytes;
    fclose(file);
    return ok;
}

/* Largest difference to output_i.npy over its peak, of the f32 outputs; -1: none to compare. */
static double largest_error(const char *folder)
{
    double worst = -1;
    for (size_t i = 0; i < count_out; i++) {
        char path[WORKER_PATH];
        struct array a = {0};
        void *shape = NULL, *data = NULL;
        size_t count = 0;
        snprintf(path, sizeof path, "%s/output_%zu.npy", folder, i);
        if (!read_npy(path, &a) || a.type != 1) continue;
        check(AT(TENSOR_SHAPE, const void *, void **)(outputs[i], &shape));
        check(AT(SHAPE_COUNT, const void *, size_t *)(shape, &count));
        check(AT(TENSOR_DATA, void *, void **)(outputs[i], &data));
        double peak = 0, most = 0;
        for (size_t k = 0; count == a.count && k < count; k++) {
            double expected = ((float *)(void *)a.data)[k];
            peak = fmax(peak, fabs(expected));
            most = fmax(most, fabs(((float *)data)[k] - expected));
        }
        if (peak > 0) worst = fmax(worst, most / peak);
        free(a.data);
    }
    return worst;
}

static const char *open_library(void)
{
    const char *path = getenv("ORT_LIB");
    void *library = dlopen(path ? path : "libonnxruntime.so.1", RTLD_NOW);
    void *symbol = library ? dlsym(library, "OrtGetApiBase") : NULL;
    if (symbol == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    const struct base *(*get)(void) = NULL;
    memcpy(&get, &symbol, sizeof get);
    api = get()->get_api(8); /* all that is used is older */
    return get()->version();
}

static void read_inputs(const char *folder, const void *memory)
{
    for (size_t i = 0; i < count_in; i++) {
        char path[WORKER_PATH];
        struct array a = {0};
        snprintf(path, sizeof path, "%s/input_%zu.npy", folder, i);
        if (!read_npy(path, &a)) {
            fprintf(stderr, "%s: no array\n", path);
            exit(1);
        }
        check(AT(CREATE_TENSOR, const void *, void *, size_t, const int64_t *, size_t, int,
                 void **)(memory, a.data, a.bytes, a.dims, a.rank, a.type, &inputs[i]));
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    double begin = worker_us();
    const char *version = open_library();
    char path[WORKER_PATH];
    void *env = NULL, *options = NULL, *memory = NULL, *allocator = NULL;
    check(AT(CREATE_ENV, int, const char *, void **)(3, "bench", &env));
    check(AT(CREATE_OPTIONS, void **)(&options));
    check(AT(SET_INTRA_THREADS, void *, int)(options, (int)strtol(argv[2], NULL, 10)));
    check(AT(SET_LEVEL, void *, int)(options, 99));
    snprintf(path, sizeof path, "%s/model.onnx", argv[1]);
    check(AT(CREATE_SESSION, void *, const char *, const void *, void **)(env, path, options,
                                                                          &session));
    double loaded = worker_us();
    check(AT(CPU_MEMORY, int, int, void **)(1, 0, &memory));
    check(AT(ALLOCATOR, void **)(&allocator));
    check(AT(COUNT_INPUTS, const void *, size_t *)(session, &count_in));
    check(AT(COUNT_OUTPUTS, const void *, size_t *)(session, &count_out));
    if (count_in > WORKER_VALUES_MAX || count_out > WORKER_VALUES_MAX) return 1;
    for (size_t i = 0; i < count_in; i++)
        check(AT(INPUT_NAME, const void *, size_t, void *, char **)(session, i, allocator,
                                                                    &names_in[i]));
    for (size_t i = 0; i < count_out; i++)
        check(AT(OUTPUT_NAME, const void *, size_t, void *, char **)(session, i, allocator,
                                                                     &names_out[i]));
    read_inputs(argv[1], memory);
    double first = worker_us();
    if (!run(NULL)) return 1;
    first = worker_us() - first;
    worker_tell_first();
    double peak = worker_peak_mb();
    printf("{\"version\": \"%s\", \"load_ms\": %.3f, \"first_ms\": %.3f, \"peak_mb\": %.1f, "
           "\"error\": %.3g}\n",
           version, (loaded - begin) * 1e-3, first * 1e-3, peak, largest_error(argv[1]));
    fflush(stdout);
    return worker_answer(run, NULL);
}
