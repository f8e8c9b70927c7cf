/* SPDX-License-Identifier: Apache-2.0
 * The models that sessions of the process have open. Sessions of one file, or of equal bytes within
 * one container of packed weights, share the model, and with it the weights. */
#include "ort_objects.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct ort_model {
    struct ort_model *next;
    int refs;
    sdx_context *cx; /* the model's: sessions come and go */
    sdx_model *model;
    struct stat file; /* of models from a path */
    const OrtPrepackedWeightsContainer *container;
    void *bytes; /* owned */
    size_t size;
    char *folder; /* of external data; NULL: the default */
    struct ort_dim_override *dims;
    size_t count_dims;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and the counts */
static struct ort_model *models;

/* A child must not find the lock taken by a thread that it does not have. */
static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

static void free_model(struct ort_model *model)
{
    if (!model) return;
    sdx_model_destroy(model->model);
    sdx_context_destroy(model->cx);
    for (size_t i = 0; i < model->count_dims; i++)
        free(model->dims[i].name);
    free(model->dims);
    free(model->folder);
    free(model->bytes);
    free(model);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_source(const struct ort_model *a, const struct ort_model *b)
{
    if (a->bytes || b->bytes)
        return a->bytes && b->bytes && a->container == b->container && a->size == b->size &&
               !memcmp(a->bytes, b->bytes, a->size);
    return a->file.st_dev == b->file.st_dev && a->file.st_ino == b->file.st_ino &&
           a->file.st_size == b->file.st_size && a->file.st_mtim.tv_sec == b->file.st_mtim.tv_sec &&
           a->file.st_mtim.tv_nsec == b->file.st_mtim.tv_nsec;
}

static bool is_same(const struct ort_model *a, const struct ort_model *b)
{
    if (!same_text(a->folder, b->folder) || a->count_dims != b->count_dims) return false;
    for (size_t i = 0; i < a->count_dims; i++)
        if (a->dims[i].length != b->dims[i].length ||
            a->dims[i].is_denotation != b->dims[i].is_denotation ||
            strcmp(a->dims[i].name, b->dims[i].name) != 0)
            return false;
    return same_source(a, b);
}

/* One that is open and the same; counted. */
static struct ort_model *find(const struct ort_model *like)
{
    struct ort_model *each = models;
    while (each && !is_same(each, like))
        each = each->next;
    if (each) each->refs++;
    return each;
}

static OrtStatusPtr describe(const OrtSession *session, const sdx_model_options *options,
                             struct ort_model *model)
{
    const OrtSessionOptions *from = session->options;
    if (options->folder) ORT_TRY(ort_set_text(&model->folder, options->folder));
    model->dims = calloc(from->count_dims + 1, sizeof *model->dims);
    if (!model->dims) return ort_no_memory();
    for (size_t i = 0; i < from->count_dims; i++) {
        model->dims[i] = from->dims[i];
        model->dims[i].name = NULL;
        model->count_dims++;
        ORT_TRY(ort_set_text(&model->dims[i].name, from->dims[i].name));
    }
    sdx_context_options with;
    sdx_context_options_init(&with);
    with.parent = ort_context();
    model->cx = sdx_context_create(&with);
    return model->cx ? NULL : ort_no_memory();
}

static OrtStatusPtr open_new(const OrtSession *session, const sdx_model_options *options,
                             struct ort_model *model)
{
    const sdx_status status =
        session->path
            ? sdx_model_open(model->cx, session->path, options, &model->model)
            : sdx_model_load(model->cx, session->bytes, session->size, options, &model->model);
    return status ? ort_load_status(status, sdx_error(model->cx), session->path, session->bytes,
                                    session->size)
                  : NULL;
}

/* May another session use the model? What the caller gives for it may be freed or change. */
static bool can_share(const OrtSession *session, const sdx_model_options *options,
                      struct ort_model *model)
{
    if (options->count_custom_ops || options->count_initializers || options->count_files)
        return false;
    return session->path ? !stat(session->path, &model->file)
                         : session->container && session->owns_bytes;
}

/* The first of equal models that were opened at once stays. */
static struct ort_model *enlist(struct ort_model *model)
{
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    pthread_once(&watched, watch_forks);
    pthread_mutex_lock(&lock);
    struct ort_model *other = find(model);
    if (!other) {
        model->next = models;
        models = model;
    }
    pthread_mutex_unlock(&lock);
    if (!other) return model;
    free_model(model);
    return other;
}

OrtStatusPtr ort_model_open(OrtSession *session, const sdx_model_options *options)
{
    struct ort_model *model = calloc(1, sizeof *model), *other = NULL;
    if (!model) return ort_no_memory();
    model->refs = 1;
    OrtStatusPtr status = describe(session, options, model);
    const bool is_shared = !status && can_share(session, options, model);
    if (is_shared && !session->path) { /* the bytes live as long as the model */
        model->container = session->container;
        model->bytes = session->bytes;
        model->size = session->size;
        session->owns_bytes = false;
    }
    if (is_shared) {
        pthread_mutex_lock(&lock);
        other = find(model);
        pthread_mutex_unlock(&lock);
    }
    if (!status && !other) status = open_new(session, options, model);
    if (status || other) {
        free_model(model);
        model = other;
    } else if (is_shared) {
        model = enlist(model);
    }
    if (is_shared && !session->path) session->bytes = status ? NULL : model->bytes;
    session->shared = model;
    session->model = model ? model->model : NULL;
    return status;
}

void ort_model_close(struct ort_model *model)
{
    if (!model) return;
    pthread_mutex_lock(&lock);
    const bool is_last = --model->refs == 0;
    struct ort_model **at = &models;
    while (is_last && *at && *at != model)
        at = &(*at)->next;
    if (is_last && *at) *at = model->next;
    pthread_mutex_unlock(&lock);
    if (is_last) free_model(model);
}
