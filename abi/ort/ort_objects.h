/* SPDX-License-Identifier: Apache-2.0
 * What is behind the opaque types of ort.h, and what the families share. One context of the engine
 * serves the process: values may outlive sessions and environments. */
#ifndef SDX_ABI_ORT_OBJECTS_H
#define SDX_ABI_ORT_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>

#include <sardonyx/sardonyx.h>

#include "ort_families.h"

/* ---- statuses and texts ---- */

/* A new status; the text is made as printf makes it. */
__attribute__((format(printf, 2, 3))) OrtStatusPtr ort_fail(OrtErrorCode code, const char *format,
                                                            ...);
OrtStatusPtr ort_no_memory(void);
/* A copy of `text` from `allocator` (NULL: malloc), which the caller frees with it. */
OrtStatusPtr ort_copy_text(OrtAllocator *allocator, const char *text, char **out);
/* Replaces *text, a block of malloc or NULL, by a copy of `with`. */
OrtStatusPtr ort_set_text(char **text, const char *with);

/* Returns from the caller with the status of `call` when that failed. */
#define ORT_TRY(call)                                                                              \
    do {                                                                                           \
        OrtStatusPtr try_status_ = (call);                                                         \
        if (__builtin_expect(try_status_ != NULL, 0)) return try_status_;                          \
    } while (0)

/* Pairs of texts in the order in which keys came; keys are unique. {0} is empty. */
struct OrtKeyValuePairs {
    char **keys, **values;
    size_t count;
};

OrtStatusPtr ort_pairs_set(struct OrtKeyValuePairs *pairs, const char *key, const char *value);
const char *ort_pairs_get(const struct OrtKeyValuePairs *pairs, const char *key); /* NULL: none */
OrtStatusPtr ort_pairs_copy(struct OrtKeyValuePairs *to, const struct OrtKeyValuePairs *from);
void ort_pairs_deinit(struct OrtKeyValuePairs *pairs);

/* ---- environment ---- */

struct OrtLogger {
    OrtLoggingFunction fn; /* NULL: one line on standard error */
    void *param;
    OrtLoggingLevel level; /* what is below is not told */
    char *id;
};

/* How a program makes threads; create NULL: it does not. */
struct ort_threads {
    OrtCustomCreateThreadFn create;
    void *options;
    OrtCustomJoinThreadFn join;
};

/* The environment of the process: CreateEnv gives the one there is, ReleaseEnv the last time ends
 * it. */
struct OrtEnv {
    int refs;
    struct OrtLogger logger;
    int threads; /* of sessions with DisablePerSessionThreads; -1: no global pool was asked for */
    OrtAllocator *allocators[8]; /* registered: sessions with session.use_env_allocators */
    int count_allocators;
    struct ort_threads own;
    sdx_context *pool; /* with threads that the program makes; NULL: it makes none */
};

struct OrtThreadingOptions {
    int intra, inter, spin, denormal_as_zero;
    char *affinity;
    struct ort_threads own;
};

/* The context of the process, made when it is first asked for; NULL: no memory. */
sdx_context *ort_context(void);
/* A context with its memory and, where the program makes threads, a pool of `count` (0: as many as
 * there are CPUs) of them. `own` must live as long as the context. */
OrtStatusPtr ort_context_create(sdx_context *parent, const struct ort_threads *own, int count,
                                sdx_context **out);
/* Tells the logger of the environment (NULL) or another one. */
__attribute__((format(printf, 4, 5))) void ort_log(const struct OrtLogger *logger,
                                                   OrtLoggingLevel level, const char *place,
                                                   const char *format, ...);
/* What the engine says in this thread goes to `logger` (NULL: the environment's) from now on; gives
 * what was set before. */
const struct OrtLogger *ort_log_here(const struct OrtLogger *logger);
/* The allocator that a caller registered for the memory of the process; NULL: none. */
OrtAllocator *ort_env_allocator(const OrtEnv *env);
/* The logger of the environment; one of defaults where there is no environment. */
struct OrtLogger ort_env_logger(void);

/* ---- memory ---- */

struct OrtMemoryInfo {
    char name[48];
    int id;
    OrtMemType mem_type;
    OrtAllocatorType type;
    OrtMemoryInfoDeviceType device;
    OrtDeviceMemoryType device_memory;
    uint32_t vendor;
    size_t alignment;
};

extern const struct OrtMemoryInfo ort_cpu_memory;   /* "Cpu", what the default allocator tells */
extern const struct OrtMemoryInfo ort_arena_memory; /* what those of sessions tell */
/* The default allocator: malloc, aligned to 64 bytes. Static. */
OrtAllocator *ort_default_allocator(void);
OrtAllocator *ort_arena_allocator(void);
/* An equal info that lives as long as the process. NULL: no memory. */
const struct OrtMemoryInfo *ort_memory_keep(const struct OrtMemoryInfo *info);
bool ort_memory_equal(const struct OrtMemoryInfo *a, const struct OrtMemoryInfo *b);

/* ---- values ---- */

struct ort_text {
    char *text; /* of malloc, ends with NUL; NULL: empty */
    size_t length;
};

/* A value. `tensor` is what is run and looked at, through ort_value_tensor; it belongs to `holder`,
 * the handle that is destroyed with the value, or is an item of `parent`'s tensor. */
struct OrtValue {
    atomic_int refs;
    sdx_tensor *tensor; /* NULL: an optional without a value, or an output that is not made yet */
    sdx_tensor *holder;
    struct OrtValue *parent;            /* retained; NULL: none */
    const struct OrtMemoryInfo *memory; /* kept, where the elements are */
    OrtAllocator *allocator; /* frees `block` with the value; NULL: the caller's memory */
    void *block;
    struct ort_text *texts; /* of a tensor of strings that is being written element by element */
    atomic_bool stale;      /* `texts` changed since `tensor` was made of them */
    void *opaque;           /* more: what a family keeps with the value ... */
    void (*opaque_free)(void *opaque); /* ... and how that is freed; NULL: it is not */
};

/* A value that owns `tensor`, also when this fails. `tensor` may be NULL. An optional with a value
 * becomes that value, one without becomes a value without a tensor. */
OrtStatusPtr ort_value_own(sdx_tensor *tensor, OrtValue **out);
/* A value for `item`, which belongs to `parent` (retained; NULL: to what outlives the value). */
OrtStatusPtr ort_value_item(OrtValue *parent, sdx_tensor *item, OrtValue **out);
/* Over the caller's memory of at least `bytes` bytes; checks type, shape, size. */
OrtStatusPtr ort_value_view(const struct OrtMemoryInfo *memory, void *data, size_t bytes,
                            const int64_t *dims, size_t rank, ONNXTensorElementDataType type,
                            OrtValue **out);
/* New memory of `allocator` (NULL: the default one). */
OrtStatusPtr ort_value_create(OrtAllocator *allocator, const int64_t *dims, size_t rank,
                              ONNXTensorElementDataType type, OrtValue **out);
OrtValue *ort_value_retain(const OrtValue *value);
void ort_value_release(OrtValue *value); /* NULL allowed */
/* Its tensor with all strings written so far; NULL: it has none. */
sdx_tensor *ort_value_tensor(const OrtValue *value);
/* Puts `tensor` (taken) in place of what the value has. */
void ort_value_set(OrtValue *value, sdx_tensor *tensor);
OrtStatusPtr ort_need_tensor(const OrtValue *value, sdx_tensor **out);
void ort_texts_free(struct OrtValue *value);
/* Makes `tensor` of `texts` where that is stale. */
void ort_texts_gather(struct OrtValue *value);

/* ---- types ---- */

struct OrtTensorTypeAndShapeInfo {
    ONNXTensorElementDataType type;
    bool has_shape;
    size_t rank;
    int64_t *dims; /* `few` or of malloc; -1: not a constant */
    char **names;  /* rank of them, of malloc; NULL: none has a name; an entry may be NULL */
    int64_t few[8];
};

struct OrtMapTypeInfo {
    ONNXTensorElementDataType key;
    struct OrtTypeInfo *value;
};
struct OrtSequenceTypeInfo {
    struct OrtTypeInfo *element;
};
struct OrtOptionalTypeInfo {
    struct OrtTypeInfo *contained;
};

/* The member that `kind` names is set; all are owned. */
struct OrtTypeInfo {
    ONNXType kind;
    char *denotation;                         /* NULL: "" */
    struct OrtTensorTypeAndShapeInfo *tensor; /* dense and sparse */
    struct OrtMapTypeInfo *map;
    struct OrtSequenceTypeInfo *sequence;
    struct OrtOptionalTypeInfo *optional;
};

OrtStatusPtr ort_shape_create(ONNXTensorElementDataType type, size_t rank, const int64_t *dims,
                              const char *const *names, OrtTensorTypeAndShapeInfo **out);
OrtStatusPtr ort_shape_copy(const OrtTensorTypeAndShapeInfo *from, OrtTensorTypeAndShapeInfo **out);
void ort_shape_free(OrtTensorTypeAndShapeInfo *shape);
OrtStatusPtr ort_type_of_info(const sdx_value_info *info, OrtTypeInfo **out);
OrtStatusPtr ort_type_of_tensor(const sdx_tensor *tensor, OrtTypeInfo **out);
OrtStatusPtr ort_type_copy(const OrtTypeInfo *from, OrtTypeInfo **out);
void ort_type_free(OrtTypeInfo *type);
ONNXType ort_kind(sdx_kind kind);
/* "tensor(float)", "seq(map(int64,tensor(float)))", as messages write types. Returns `text`. */
const char *ort_type_text(const sdx_value_info *info, char *text, size_t size);
const char *ort_tensor_type_text(const sdx_tensor *tensor, char *text, size_t size);

/* ---- session options ---- */

/* A provider that was appended; `options` owned. */
struct ort_provider {
    char *name; /* "CPUExecutionProvider" */
    struct OrtKeyValuePairs options;
};

/* What the caller gives for an initializer; the value is retained. */
struct ort_initializer {
    char *name;
    OrtValue *value;
};

/* A file of external data from memory; shared by the copies of the options. */
struct ort_file {
    atomic_int refs;
    char *name;
    size_t size;
    _Alignas(64) unsigned char bytes[];
};

void ort_file_release(struct ort_file *file);

struct ort_dim_override {
    char *name;
    bool is_denotation;
    int64_t length;
};

struct OrtSessionOptions {
    ExecutionMode mode;
    GraphOptimizationLevel level;
    int threads_intra, threads_inter; /* 0: as many as the process has CPUs */
    bool per_session_threads, mem_pattern, cpu_arena, deterministic, profile;
    int verbosity, severity; /* severity -1: the environment's */
    char *log_id, *profile_prefix, *optimized_path;
    struct OrtKeyValuePairs config;
    struct ort_dim_override *dims;
    size_t count_dims;
    struct ort_initializer *initializers;
    size_t count_initializers;
    struct ort_provider *providers;
    size_t count_providers;
    OrtCustomOpDomain **domains; /* not owned */
    size_t count_domains;
    void **libraries; /* of custom operators, of dlopen; counted by the loader */
    size_t count_libraries;
    OrtLoggingFunction log_fn;
    void *log_param;
    struct ort_threads threads;
    EpSelectionDelegate choose_device; /* NULL: the program gave none */
    void *choose_state;
    struct ort_file **files;
    size_t count_files;
    atomic_bool load_cancelled;
};

OrtStatusPtr ort_options_copy(const OrtSessionOptions *from, OrtSessionOptions **out);
void ort_options_free(OrtSessionOptions *options);
/* Providers in the order of preference; copies. */
OrtStatusPtr ort_options_add_provider(OrtSessionOptions *options, const char *name,
                                      const struct OrtKeyValuePairs *with);
OrtStatusPtr ort_options_add_domain(OrtSessionOptions *options, OrtCustomOpDomain *domain);
/* Takes a handle of dlopen, which is closed with the options. */
OrtStatusPtr ort_options_add_library(OrtSessionOptions *options, void *library);
/* *array has room for one more of `size` bytes each; count is raised by the caller. */
OrtStatusPtr ort_grow(void *array, size_t count, size_t size);

/* All of a file; the caller ends *out with ort_bytes_deinit, also when this fails. */
struct ort_bytes;
OrtStatusPtr ort_read_file(const char *path, struct ort_bytes *out);

/* ---- run options ---- */

/* A run under way with run options; on the stack of who runs. */
struct ort_running {
    sdx_session *session;
    struct ort_running *next;
};

struct OrtRunOptions {
    int verbosity, severity;
    char *tag;
    char *profile_prefix; /* each run writes a profile; NULL: none does */
    struct OrtKeyValuePairs config;
    const OrtLoraAdapter **adapters; /* active ones, the caller's */
    size_t count_adapters;
    atomic_bool terminate;
    pthread_mutex_t lock; /* of `running` */
    struct ort_running *running;
};

/* ---- sessions ---- */

/* A session of the engine; one thread at a time has it. */
struct ort_worker {
    sdx_session *session;
    struct ort_worker *next_idle, *next;
};

struct ort_profile;

/* Libraries of custom operators that a real ONNX Runtime library has copies of. */
struct ort_handed {
    int copies[8]; /* of memfd_create */
    size_t count;
    char why[512]; /* the last failure */
};

struct OrtSession {
    sdx_context *cx; /* errors of this session; memory and threads of the process */
    sdx_model *model;
    OrtSessionOptions *options; /* a copy */
    struct OrtLogger logger;
    sdx_session_options engine;
    const sdx_value_info **inputs, **overridable, **outputs;
    size_t count_inputs, count_overridable, count_outputs;
    const sdx_value_info **feeds; /* inputs and overridable, sorted by name */
    size_t count_feeds;
    size_t count_optional; /* inputs of optional type: not fed, they have no value, ... */
    sdx_tensor *nothing;   /* ... which is this */
    _Atomic(struct ort_worker *) hot; /* an idle one, taken without a lock */
    pthread_mutex_t lock;             /* of what follows */
    struct ort_worker *idle, *all;
    struct ort_worker *profiled; /* idle ones that record the time of nodes, where others do not */
    char *path;                  /* of the model; NULL: from bytes */
    void *bytes;
    bool owns_bytes;
    size_t size;
    struct ort_profile *profile; /* NULL: is not asked for */
    OrtAllocator *allocator;     /* of the environment, for outputs; NULL: the engine's memory */
    struct ort_editor *editor;   /* of a session of the model editor, until it is finalized */
    struct ort_model *shared;    /* what `model` belongs to */
    const OrtPrepackedWeightsContainer *container;
    struct ort_custom_table *custom; /* NULL: the options bring no operators */
    void *providers;                 /* what `engine` has of them, of malloc */
    struct ort_handed handed;
};

/* From a file, or where path is NULL from bytes, which are copied. */
OrtStatusPtr ort_session_create(const OrtEnv *env, const char *path, const void *bytes, size_t size,
                                const OrtSessionOptions *options, OrtSession **out);
void ort_session_free(OrtSession *session);
void ort_editor_free(struct ort_editor *editor);

/* Sets `model` and `shared` of a session whose source is known: one that is open, or a new one. */
OrtStatusPtr ort_model_open(OrtSession *session, const sdx_model_options *options);
void ort_model_close(struct ort_model *model);

uint64_t ort_clock(void); /* nanoseconds since some time */
/* Begins a profile that is written to `prefix` with the time behind. */
OrtStatusPtr ort_profile_open(const char *prefix, struct ort_profile **out);
/* What the session did between two times of ort_clock. */
void ort_profile_add(struct ort_profile *profile, const char *name, uint64_t begin_ns,
                     uint64_t end_ns);
/* The nodes of the last run of `session`. */
void ort_profile_add_run(struct ort_profile *profile, const sdx_session *session,
                         uint64_t begin_ns);
void ort_profile_close(struct ort_profile *profile); /* written where it is not yet */

/* A session of the engine for this thread alone, until it is given back. */
OrtStatusPtr ort_worker_take(OrtSession *session, struct ort_worker **out);
void ort_worker_give(OrtSession *session, struct ort_worker *worker);
/* The same for a run with a profile of its own. */
OrtStatusPtr ort_worker_take_profiled(OrtSession *session, struct ort_worker **out);
void ort_worker_give_profiled(OrtSession *session, struct ort_worker *worker);
OrtStatusPtr ort_metadata_of(const sdx_model *model, OrtModelMetadata **out);
/* The input of that name, NULL: none. `position`: of the feed in the call. */
const sdx_value_info *ort_find_input(OrtSession *session, size_t position, const char *name);
const sdx_value_info *ort_find_output(const OrtSession *session, size_t position, const char *name);
/* Why a model that was read from `path`, or else from bytes, cannot be loaded. */
OrtStatusPtr ort_load_status(sdx_status status, const char *line, const char *path,
                             const void *bytes, size_t size);
/* What a failed run tells, in the words of the real library where they are known. */
OrtStatusPtr ort_run_status(const OrtSession *session, sdx_status status, const char *text);
/* Name and operator of the first node of the file that makes or reads a value; two texts of `size`
 * bytes. */
bool ort_find_node(const OrtSession *session, const char *value, bool makes, char *node, char *op,
                   size_t size);
/* What a run is fed; own_*: arrays of malloc, or NULL. */
struct ort_feeds {
    const char *const *names;
    const OrtValue *const *values;
    size_t count;
    const char **own_names;
    const OrtValue **own_values;
};
/* Adds the parameters of the active adapters. The caller frees own_*. */
OrtStatusPtr ort_lora_feed(const OrtRunOptions *options, struct ort_feeds *feeds);
/* Checks what is fed and asked for, runs, gives outputs[i] (NULL on entry: a new value). */
OrtStatusPtr ort_run(OrtSession *session, const OrtRunOptions *options,
                     const char *const *input_names, const OrtValue *const *inputs,
                     size_t count_inputs, const char *const *output_names, size_t count_outputs,
                     OrtValue **outputs);
#endif
