/* SPDX-License-Identifier: Apache-2.0
 * Profiles of sessions: events in the trace format of Chrome, one a node of each run, with the
 * members that tools for the real library's files read. */
#include "ort_objects.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct ort_profile {
    pthread_mutex_t lock; /* of the text */
    char *text;
    size_t length, capacity;
    bool is_short_of_memory;
    uint64_t begin_ns; /* of ort_clock */
    uint64_t wall_ns;  /* since 1970 */
    atomic_bool has_ended;
    char path[1024];
};

uint64_t ort_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

OrtStatusPtr ort_profile_open(const char *prefix, struct ort_profile **out)
{
    struct ort_profile *profile = calloc(1, sizeof *profile);
    struct timeval now;
    struct tm parts;
    char when[32];
    *out = profile;
    if (!profile) return ort_no_memory();
    pthread_mutex_init(&profile->lock, NULL);
    profile->begin_ns = ort_clock();
    gettimeofday(&now, NULL);
    profile->wall_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_usec * 1000u;
    localtime_r(&now.tv_sec, &parts);
    strftime(when, sizeof when, "%Y-%m-%d_%H-%M-%S", &parts);
    snprintf(profile->path, sizeof profile->path, "%s_%s_%03ld.json", prefix, when,
             (long)now.tv_usec / 1000);
    return NULL;
}

static bool has_room(struct ort_profile *profile, size_t more)
{
    if (profile->length + more < profile->capacity) return true;
    const size_t capacity = 2 * profile->capacity + more + 4096;
    char *text = realloc(profile->text, capacity);
    if (!text) {
        profile->is_short_of_memory = true;
        return false;
    }
    profile->text = text;
    profile->capacity = capacity;
    return true;
}

__attribute__((format(printf, 2, 3))) static void add(struct ort_profile *profile,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !has_room(profile, (size_t)length + 1)) return;
    va_start(args, format);
    vsnprintf(profile->text + profile->length, (size_t)length + 1, format, args);
    va_end(args);
    profile->length += (size_t)length;
}

static void add_quoted(struct ort_profile *profile, const char *text, const char *behind)
{
    add(profile, "\"");
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            add(profile, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            add(profile, "\\u%04x", *text);
        else
            add(profile, "%c", *text);
    add(profile, "%s\"", behind);
}

static void begin_event(struct ort_profile *profile, const char *category, uint64_t begin_ns,
                        int64_t ns)
{
    const long process = (long)getpid();
    add(profile, "%s{\"cat\" : \"%s\",\"pid\" :%ld,\"tid\" :%ld,\"dur\" :%lld,\"ts\" :%lld,",
        profile->length ? ",\n" : "", category, process, process, (long long)(ns / 1000),
        (long long)(begin_ns - profile->begin_ns) / 1000);
    add(profile, "\"ph\" : \"X\",\"name\" :");
}

static void add_session_event(struct ort_profile *profile, const char *name, uint64_t begin_ns,
                              uint64_t end_ns)
{
    begin_event(profile, "Session", begin_ns, (int64_t)(end_ns - begin_ns));
    add_quoted(profile, name, "");
    add(profile, ",\"args\" : {}}");
}

void ort_profile_add(struct ort_profile *profile, const char *name, uint64_t begin_ns,
                     uint64_t end_ns)
{
    pthread_mutex_lock(&profile->lock);
    add_session_event(profile, name, begin_ns, end_ns);
    pthread_mutex_unlock(&profile->lock);
}

/* "f32" of the engine's shapes is "float" here. */
static const char *type_name(const char *brief, size_t length)
{
#define TYPE_NAME(name, number, bits, onnx_name)                                                   \
    if (strlen(#name) - 4 == length && !strncasecmp(brief, &#name[4], length)) return onnx_name;
    SDX_DTYPES(TYPE_NAME)
#undef TYPE_NAME
    return "string";
}

/* `f32[2,4] i64[3]` as [{"float":[2,4]},{"int64":[3]}], up to `end`. */
static void add_shapes(struct ort_profile *profile, const char *at, const char *end)
{
    const char *between = "[";
    while (at < end) {
        const size_t name = strcspn(at, "[ "), whole = strcspn(at, " ");
        if (at[name] == '[' && at + whole <= end) {
            add(profile, "%s{\"%s\":%.*s}", between, type_name(at, name), (int)(whole - name),
                at + name);
            between = ",";
        }
        at += whole + strspn(at + whole, " ");
    }
    add(profile, "%s]", *between == '[' ? "[" : "");
}

static void add_row(struct ort_profile *profile, const sdx_profile_row *row, int index,
                    uint64_t begin_ns)
{
    const char *shapes = row->shapes ? row->shapes : "";
    const char *arrow = strstr(shapes, "-> ");
    const char *end = shapes + strlen(shapes);
    begin_event(profile, "Node", begin_ns + (uint64_t)row->start_ns, row->last_ns);
    add_quoted(profile, row->name && *row->name ? row->name : row->op, "_kernel_time");
    add(profile, ",\"args\" : {\"op_name\" : ");
    add_quoted(profile, row->op, "");
    add(profile, ",\"provider\" : \"CPUExecutionProvider\",\"node_index\" : \"%d\",", index);
    add(profile, "\"kernel\" : ");
    add_quoted(profile, row->kernel ? row->kernel : "", "");
    add(profile, ",\"input_type_shape\" : ");
    add_shapes(profile, shapes, arrow ? arrow : end);
    add(profile, ",\"output_type_shape\" : ");
    add_shapes(profile, arrow ? arrow + strlen("-> ") : end, end);
    add(profile, "}}");
}

void ort_profile_add_run(struct ort_profile *profile, const sdx_session *session, uint64_t begin_ns)
{
    if (atomic_load(&profile->has_ended)) return;
    const uint64_t end_ns = ort_clock();
    const sdx_profile_row *row;
    pthread_mutex_lock(&profile->lock);
    for (int i = 0; (row = sdx_session_profile(session, i)) != NULL; i++)
        add_row(profile, row, i, begin_ns);
    add_session_event(profile, "SequentialExecutor::Execute", begin_ns, end_ns);
    add_session_event(profile, "model_run", begin_ns, end_ns);
    pthread_mutex_unlock(&profile->lock);
}

static OrtStatusPtr write_file(struct ort_profile *profile)
{
    bool ok = false;
    pthread_mutex_lock(&profile->lock);
    FILE *file = profile->is_short_of_memory ? NULL : fopen(profile->path, "w");
    if (file) {
        ok = fprintf(file, "[\n%s\n]\n", profile->text ? profile->text : "") > 0;
        ok = fclose(file) == 0 && ok;
    }
    pthread_mutex_unlock(&profile->lock);
    return ok ? NULL : ort_fail(ORT_FAIL, "the profile %s cannot be written", profile->path);
}

/* Writes the file, once: what runs later is not in it. */
static OrtStatusPtr end_profiling(OrtSession *session, OrtAllocator *allocator, char **out)
{
    struct ort_profile *profile = session->profile;
    *out = NULL;
    if (!profile || atomic_exchange(&profile->has_ended, true)) {
        ort_log(&session->logger, ORT_LOGGING_LEVEL_ERROR, "EndProfiling",
                "Could not write a profile because no profiler is running.");
        return ort_copy_text(allocator, "", out);
    }
    ORT_TRY(write_file(profile));
    return ort_copy_text(allocator, profile->path, out);
}

static OrtStatusPtr start_time(const OrtSession *session, uint64_t *out)
{
    *out = session->profile ? session->profile->wall_ns : 0;
    return NULL;
}

void ort_profile_close(struct ort_profile *profile)
{
    if (!profile) return;
    if (!atomic_exchange(&profile->has_ended, true)) ort_release_status(write_file(profile));
    pthread_mutex_destroy(&profile->lock);
    free(profile->text);
    free(profile);
}

void ort_fill_profile(OrtApi *api)
{
    api->SessionEndProfiling = end_profiling;
    api->SessionGetProfilingStartTimeNs = start_time;
}
