/* SPDX-License-Identifier: Apache-2.0
 * Sardonyx: load, check and run ONNX models. The whole public interface.
 *
 * A complete program (compiled and run by the tests):
 *
 *     #include <sardonyx/sardonyx.h>
 *     #include <stdio.h>
 *
 *     int main(int argc, char **argv)
 *     {
 *         static float pixels[1 * 1 * 8 * 8];
 *         const int64_t dims[4] = {1, 1, 8, 8};
 *         sdx_context *cx = sdx_context_create(NULL);
 *         sdx_model *model = NULL;
 *         sdx_session *session = NULL;
 *         sdx_tensor *in = NULL, *out = NULL;
 *         if (sdx_model_open(cx, argc > 1 ? argv[1] : "digits.onnx", NULL, &model)
 *             || sdx_session_create(cx, model, NULL, &session)
 *             || sdx_tensor_view(cx, SDX_F32, 4, dims, pixels, &in)
 *             || sdx_run(session, 1, &(sdx_feed){sdx_model_input(model, 0)->name, in}, 1,
 *                        &(const char *){sdx_model_output(model, 0)->name}, &out))
 *             return fprintf(stderr, "%s\n", sdx_error(cx)), 1;
 *         printf("%s: %lld values, the first is %g\n", sdx_model_output(model, 0)->name,
 *                (long long)sdx_tensor_count(out), sdx_tensor_f64(out, 0));
 *         sdx_tensor_destroy(out);
 *         sdx_tensor_destroy(in);
 *         sdx_session_destroy(session);
 *         sdx_model_destroy(model);
 *         sdx_context_destroy(cx);
 *         return 0;
 *     }
 *
 * Rules that hold everywhere:
 *  - A function that can fail returns sdx_status; 0 is success. The text of the first failure since
 * the call began is sdx_error(cx): one line, without a full stop.
 *  - Out parameters are set to NULL on failure. Destroy functions accept NULL.
 *  - `create`/`open`/`load`/`take`: the caller owns the result. A plain noun: borrowed from its
 * parent.
 *  - Option structs start with their size; fill them with their `_init` function.
 *  - A model is immutable and may be shared by threads. A session is used by one thread at a time.
 *  - After fork() the child goes on with everything that no other thread was using at that moment.
 *  - Sizes are in bytes, times in nanoseconds unless the name says otherwise. Strings are UTF-8.
 */
#ifndef SARDONYX_H
#define SARDONYX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define SDX_API        __attribute__((visibility("default")))
#define SDX_MUST_CHECK __attribute__((warn_unused_result))
#else
#define SDX_API
#define SDX_MUST_CHECK
#endif

#define SDX_VERSION_MAJOR  0
#define SDX_VERSION_MINOR  1
#define SDX_VERSION_PATCH  0
#define SDX_VERSION_STRING "0.1.0"

/* The version of the library that is loaded, "MAJOR.MINOR.PATCH". Static storage. */
SDX_API const char *sdx_version(void);

/* ---- status ---------------------------------------------------------------------------------- */

/* X(code, number, meaning) */
#define SDX_STATUS_MAP(X)                                                                          \
    X(SDX_OK, 0, "success")                                                                        \
    X(SDX_OUT_OF_MEMORY, 1, "memory could not be had, or the limit the user set was reached")      \
    X(SDX_INVALID_ARGUMENT, 2, "an argument of the call is wrong")                                 \
    X(SDX_NOT_FOUND, 3, "no such file, input, output or name")                                     \
    X(SDX_IO, 4, "the operating system could not read or write a file")                            \
    X(SDX_BAD_MODEL, 5, "the file is not a valid ONNX model")                                      \
    X(SDX_BAD_DATA, 6, "a data file (.npy, .npz, .pb, picture) is broken")                         \
    X(SDX_NOT_SUPPORTED, 7, "valid, but an operator, type or version is not supported")            \
    X(SDX_BAD_INPUT, 8, "a fed value's type or shape does not fit the model")                      \
    X(SDX_RUN_FAILED, 9, "a value met while running breaks an operator's rules")                   \
    X(SDX_CANCELLED, 10, "the run was cancelled")                                                  \
    X(SDX_INTERNAL, 11, "a fault of Sardonyx itself")

typedef enum sdx_status {
#define SDX_STATUS_ENUM(code, number, meaning) code = number,
    SDX_STATUS_MAP(SDX_STATUS_ENUM)
#undef SDX_STATUS_ENUM
} sdx_status;

/* "SDX_BAD_MODEL" and its meaning. Static storage; an unknown code gives "unknown status". */
SDX_API const char *sdx_status_name(sdx_status status);
SDX_API const char *sdx_status_meaning(sdx_status status);

/* ---- element types --------------------------------------------------------------------------- */

/* X(name, ONNX number, bits an element, ONNX name). The numbers are those of
 * onnx.TensorProto.DataType. */
#define SDX_DTYPES(X)                                                                              \
    X(SDX_F32, 1, 32, "float")                                                                     \
    X(SDX_U8, 2, 8, "uint8")                                                                       \
    X(SDX_I8, 3, 8, "int8")                                                                        \
    X(SDX_U16, 4, 16, "uint16")                                                                    \
    X(SDX_I16, 5, 16, "int16")                                                                     \
    X(SDX_I32, 6, 32, "int32")                                                                     \
    X(SDX_I64, 7, 64, "int64")                                                                     \
    X(SDX_STRING, 8, 128, "string")                                                                \
    X(SDX_BOOL, 9, 8, "bool")                                                                      \
    X(SDX_F16, 10, 16, "float16")                                                                  \
    X(SDX_F64, 11, 64, "double")                                                                   \
    X(SDX_U32, 12, 32, "uint32")                                                                   \
    X(SDX_U64, 13, 64, "uint64")                                                                   \
    X(SDX_C64, 14, 64, "complex64")                                                                \
    X(SDX_C128, 15, 128, "complex128")                                                             \
    X(SDX_BF16, 16, 16, "bfloat16")                                                                \
    X(SDX_F8E4M3FN, 17, 8, "float8e4m3fn")                                                         \
    X(SDX_F8E4M3FNUZ, 18, 8, "float8e4m3fnuz")                                                     \
    X(SDX_F8E5M2, 19, 8, "float8e5m2")                                                             \
    X(SDX_F8E5M2FNUZ, 20, 8, "float8e5m2fnuz")                                                     \
    X(SDX_U4, 21, 4, "uint4")                                                                      \
    X(SDX_I4, 22, 4, "int4")                                                                       \
    X(SDX_F4E2M1, 23, 4, "float4e2m1")                                                             \
    X(SDX_F8E8M0, 24, 8, "float8e8m0")                                                             \
    X(SDX_U2, 25, 2, "uint2")                                                                      \
    X(SDX_I2, 26, 2, "int2")                                                                       \
    X(SDX_F6E2M3, 27, 6, "float6e2m3")                                                             \
    X(SDX_F6E3M2, 28, 6, "float6e3m2")

typedef enum sdx_dtype {
    SDX_DTYPE_NONE = 0,
#define SDX_DTYPE_ENUM(name, number, bits, onnx_name) name = number,
    SDX_DTYPES(SDX_DTYPE_ENUM)
#undef SDX_DTYPE_ENUM
} sdx_dtype;

/* What a value is. Everything but SDX_KIND_TENSOR is rare outside classical machine learning. */
typedef enum sdx_kind {
    SDX_KIND_NONE = 0,
    SDX_KIND_TENSOR = 1,
    SDX_KIND_SEQUENCE = 2, /* items: values of one type */
    SDX_KIND_OPTIONAL = 3, /* items: none or one */
    SDX_KIND_MAP = 4,      /* items: a tensor of keys and a tensor (or sequence) of values */
    SDX_KIND_SPARSE = 5 /* items: values [n] and indices [n] or [n, rank]; dims: the dense shape */
} sdx_kind;

/* "float", "int64", ...; "undefined" for an unknown one. Static storage. */
SDX_API const char *sdx_dtype_name(sdx_dtype dtype);
/* Bits an element takes: 4 for int4, 128 for a string's pointer and length; 0 for an unknown one.
 */
SDX_API int sdx_dtype_bits(sdx_dtype dtype);

/* ---- context: errors, log, memory, threads -----------------------------------------------------
 */

typedef struct sdx_context sdx_context;
typedef struct sdx_model sdx_model;
typedef struct sdx_session sdx_session;
typedef struct sdx_tensor sdx_tensor;

typedef enum sdx_log_level {
    SDX_LOG_DEBUG = 0,
    SDX_LOG_INFO = 1,
    SDX_LOG_WARNING = 2,
    SDX_LOG_ERROR = 3
} sdx_log_level;

typedef void (*sdx_log_fn)(sdx_log_level level, const char *area, const char *text, void *user);

typedef struct sdx_context_options {
    size_t size;    /* sizeof(sdx_context_options) */
    sdx_log_fn log; /* NULL: silent */
    void *log_user;
    sdx_log_level log_level;                 /* what is below it is not sent; SDX_LOG_WARNING */
    void *(*alloc)(size_t size, void *user); /* NULL: malloc; may be called from several threads */
    void (*free)(void *block, void *user);   /* NULL: free */
    void *alloc_user;
    size_t memory_limit; /* bytes that may be held at once; 0: no limit */
    int threads; /* threads a run may use, the caller's included; 0: SDX_THREADS or the CPUs given
                  */
    /* Memory, threads and log are this context's, and what is above is ignored: the new one has an
     * error text of its own. `parent` must be destroyed later; tensors may outlive the new one. */
    sdx_context *parent;
    /* Who makes the threads: all of them now, so that a context with a `parent` has `threads` of
     * its own. thread_start calls work(arg) in a new thread and gives a handle, NULL: none is left,
     * it goes on with fewer; thread_join returns when that work has. Both, or NULL: the system. */
    void *(*thread_start)(void (*work)(void *arg), void *arg, void *user);
    void (*thread_join)(void *thread, void *user);
    void *thread_user;
} sdx_context_options;

SDX_API void sdx_context_options_init(sdx_context_options *options);
/* NULL when there is no memory. `options` may be NULL. A context may serve several threads; models,
 * sessions and tensors made with it must be destroyed before it. */
SDX_API sdx_context *sdx_context_create(const sdx_context_options *options);
SDX_API void sdx_context_destroy(sdx_context *cx);
/* The text of the last failed call that was given `cx` (or an object made with it): one line, ""
 * when there was none. Valid until the next failing call. */
SDX_API const char *sdx_error(const sdx_context *cx);
/* Bytes held now, and the most that were held at once, through this context. Without memory_limit
 * and alloc, tensors of 64 KB and more that are released wait, uncounted, for those of later runs:
 * as many bytes at most as tensors had at once. */
SDX_API size_t sdx_memory_now(const sdx_context *cx);
SDX_API size_t sdx_memory_peak(const sdx_context *cx);
/* One row a use ("weights", "slab", ...): returns false when `i` is past the end. */
SDX_API bool sdx_memory_row(const sdx_context *cx, int i, const char **tag, size_t *now,
                            size_t *peak);
/* Name of the instruction set the kernels use ("generic", "avx2", "avxvnni", "avx512",
 * "avx512vnni", "avx512vbmi", "amx"); SDX_CPU masks it. */
SDX_API const char *sdx_cpu_name(void);
/* Name of instruction set `i` that SDX_CPU may be; NULL past the end. *present (may be NULL): this
 * machine has it. */
SDX_API const char *sdx_cpu_set(int i, bool *present);
/* The threads that `cx` uses. */
SDX_API int sdx_threads(const sdx_context *cx);

/* ---- tensors and other values ------------------------------------------------------------------
 */

/* A tensor with memory of its own, zeroed. dims: `rank` lengths >= 0. The caller owns *out. */
SDX_API SDX_MUST_CHECK sdx_status sdx_tensor_create(sdx_context *cx, sdx_dtype dtype, int rank,
                                                    const int64_t *dims, sdx_tensor **out);
/* A tensor over the caller's memory, row-major and packed; `data` must outlive the tensor. Not for
 * strings. */
SDX_API SDX_MUST_CHECK sdx_status sdx_tensor_view(sdx_context *cx, sdx_dtype dtype, int rank,
                                                  const int64_t *dims, void *data,
                                                  sdx_tensor **out);
/* A tensor of strings; the texts are copied. `lengths` may be NULL: then texts end with NUL. */
SDX_API SDX_MUST_CHECK sdx_status sdx_tensor_create_strings(sdx_context *cx, int rank,
                                                            const int64_t *dims,
                                                            const char *const *texts,
                                                            const size_t *lengths,
                                                            sdx_tensor **out);
/* A sequence, optional or map of `count` items (see sdx_kind); the items are retained, the caller
 * keeps its own. For an empty sequence or optional `dtype` names the element type. */
SDX_API SDX_MUST_CHECK sdx_status sdx_value_create(sdx_context *cx, sdx_kind kind, sdx_dtype dtype,
                                                   int64_t count, sdx_tensor *const *items,
                                                   sdx_tensor **out);
/* A sparse tensor of the dense shape `dims`. values: [n]; indices, int64: [n], places in the
 * flattened dense tensor, or [n, rank], coordinates. Both are retained and not copied; where an
 * index lies outside of the shape the node that reads it fails. SDX_INVALID_ARGUMENT: types or
 * shapes do not fit each other. The caller owns *out. */
SDX_API SDX_MUST_CHECK sdx_status sdx_tensor_create_sparse(sdx_context *cx, int rank,
                                                           const int64_t *dims, sdx_tensor *values,
                                                           sdx_tensor *indices, sdx_tensor **out);
/* A tensor that grows on `axis`: zeroed memory for `capacity` positions of it, of which dims[axis]
 * are in use at first (0 is usual). It is for what a decoder hands from one run to the next: give
 * one tensor as the feed of past.0.key, [batch, heads, past, size], and as the output
 * present.0.key, [batch, heads, past + new, size], of each run (a pair of tensors a layer, axis 2).
 * The run reads the positions in use, and when it succeeds those of the output are in use: dims
 * tell. Where present is past with the new positions behind, as a Concat or Attention makes it,
 * only these are written and nothing is copied, otherwise the whole output is; the bits are those
 * of runs with other tensors. A run that fails leaves the positions in use as they were, one whose
 * output is longer than the capacity fails. A run needs the tensor for itself alone.
 * The elements lie as in a tensor whose dims[axis] is `capacity`: sdx_tensor_data is the first
 * one's address, sdx_tensor_bytes the size of it all. Elements of a byte at least, no strings; rank
 * 1 to 6. The caller owns *out. */
SDX_API SDX_MUST_CHECK sdx_status sdx_tensor_create_growing(sdx_context *cx, sdx_dtype dtype,
                                                            int rank, const int64_t *dims, int axis,
                                                            int64_t capacity, sdx_tensor **out);
/* The first `length` positions of a tensor that grows are in use from now on: fewer, to take tokens
 * back or begin anew (0), or more that the caller has written. */
SDX_API SDX_MUST_CHECK sdx_status sdx_tensor_set_length(sdx_context *cx, sdx_tensor *tensor,
                                                        int64_t length);
/* Positions that there is memory for; -1: the tensor does not grow. */
SDX_API int64_t sdx_tensor_capacity(const sdx_tensor *tensor);
SDX_API void sdx_tensor_destroy(sdx_tensor *tensor);

SDX_API sdx_kind sdx_tensor_kind(const sdx_tensor *tensor);
SDX_API sdx_dtype sdx_tensor_dtype(const sdx_tensor *tensor);
SDX_API int sdx_tensor_rank(const sdx_tensor *tensor);
SDX_API const int64_t *sdx_tensor_dims(const sdx_tensor *tensor); /* rank lengths; borrowed */
SDX_API int64_t sdx_tensor_count(const sdx_tensor *tensor);       /* elements, or items */
SDX_API size_t sdx_tensor_bytes(const sdx_tensor *tensor);
/* Elements, row-major, packed (see sdx_tensor_create_growing for one that grows); NULL for strings.
 */
SDX_API void *sdx_tensor_data(sdx_tensor *tensor);
SDX_API const void *sdx_tensor_const_data(const sdx_tensor *tensor);
/* Element `i` as a double (complex: real part; strings: 0). */
SDX_API double sdx_tensor_f64(const sdx_tensor *tensor, int64_t i);
/* Element `i` as an integer; floating values are truncated. */
SDX_API int64_t sdx_tensor_i64(const sdx_tensor *tensor, int64_t i);
/* Text of element `i` of a tensor of strings; not NUL-terminated; borrowed. */
SDX_API const char *sdx_tensor_string(const sdx_tensor *tensor, int64_t i, size_t *length);
/* Item `i` of a sequence, optional, map or sparse tensor; borrowed; NULL past the end. */
SDX_API sdx_tensor *sdx_tensor_item(const sdx_tensor *tensor, int64_t i);

/* .npy (one array), .npz member (path "file.npz", `member` its name, or NULL for the only one), and
 * .pb with a TensorProto, SequenceProto, OptionalProto, MapProto or SparseTensorProto (`kind` and
 * `dtype` say which is expected, as the file does not; SDX_KIND_NONE: tensor). */
SDX_API SDX_MUST_CHECK sdx_status sdx_tensor_load_npy(sdx_context *cx, const char *path,
                                                      sdx_tensor **out);
SDX_API SDX_MUST_CHECK sdx_status sdx_tensor_load_npz(sdx_context *cx, const char *path,
                                                      const char *member, sdx_tensor **out);
SDX_API SDX_MUST_CHECK sdx_status sdx_tensor_load_pb(sdx_context *cx, const char *path,
                                                     sdx_kind kind, sdx_tensor **out);
SDX_API SDX_MUST_CHECK sdx_status sdx_tensor_save_npy(sdx_context *cx, const char *path,
                                                      const sdx_tensor *tensor);
SDX_API SDX_MUST_CHECK sdx_status sdx_tensor_save_npz(sdx_context *cx, const char *path, int count,
                                                      const char *const *names,
                                                      sdx_tensor *const *tensors);
SDX_API SDX_MUST_CHECK sdx_status sdx_tensor_save_pb(sdx_context *cx, const char *path,
                                                     const char *name, const sdx_tensor *tensor);

/* How two values differ. */
typedef struct sdx_difference {
    bool same_type; /* kind, element type and shape agree; nothing else is set when they do not */
    int64_t count;  /* elements compared */
    int64_t count_bad;       /* elements over the tolerance */
    int64_t first_bad;       /* flat index of the first of them, or -1 */
    double found, expected;  /* there */
    double max_abs, max_rel; /* the largest differences; rel: against |expected|, 0/0 is 0 */
    double peak;             /* largest finite |expected| */
    bool arg_max_equal; /* the largest element of each row of the last axis is at the same place */
} sdx_difference;

typedef struct sdx_tolerance {
    size_t size;
    double rtol, atol; /* passes when |found - expected| <= atol + rtol * |expected| ... */
    double peak; /* ... or, when > 0, when |found - expected| <= peak * (largest |expected|) */
} sdx_tolerance;

SDX_API void sdx_tolerance_init(sdx_tolerance *tolerance); /* rtol 1e-3, atol 1e-7, peak 0 */
/* Compares element by element (sequences and maps item by item; strings for equality; NaN equals
 * NaN). */
SDX_API void sdx_compare(const sdx_tensor *found, const sdx_tensor *expected,
                         const sdx_tolerance *tolerance, sdx_difference *difference);

/* ---- models ------------------------------------------------------------------------------------
 */

/* A value and the name of what it is for. */
typedef struct sdx_feed {
    const char *name;
    const sdx_tensor *value;
} sdx_feed;

/* The length of dimensions that the model gives a symbol or a denotation. */
typedef struct sdx_dim_override {
    const char *name; /* the symbol ("batch"), wherever it stands in the model */
    const char
        *denotation; /* "DATA_BATCH" ...: that dimension of graph inputs; name is NULL then */
    int64_t length;  /* >= 0 */
} sdx_dim_override;

/* A file with external data, in memory. */
typedef struct sdx_file_bytes {
    const char *name; /* as the model's tensors name it */
    const void *bytes;
    size_t size;
} sdx_file_bytes;

typedef struct sdx_custom_op sdx_custom_op; /* below, "operators of your own" */

typedef struct sdx_model_options {
    size_t size;
    bool check_fully; /* run the whole checker first, as sdx_check does; true */
    size_t
        memory_limit; /* bytes this model and its sessions may hold; 0: the context's limit only */
    /* Operators that the library does not have. The structs and their texts are copied. */
    int count_custom_ops;
    const sdx_custom_op *const *custom_ops;
    /* A dimension override that fits nothing changes nothing; one that contradicts a constant
     * length is SDX_INVALID_ARGUMENT. Copied. */
    int count_dims;
    const sdx_dim_override *dims;
    /* Initializers of the main graph given by the caller: in place of those of the file, whose data
     * is not read then and may be missing, or for an input that has none, which is no input any
     * more. Type and shape must be what the model says. The tensors stay the caller's: they must
     * outlive the model and not change. A name that the model does not have is SDX_NOT_FOUND. */
    int count_initializers;
    const sdx_feed *initializers;
    /* Files with external data from memory, looked at before those of the folder; the bytes must
     * outlive the model. */
    int count_files;
    const sdx_file_bytes *files;
    /* Where the other files with external data are: NULL is the model's own folder, and none for
     * sdx_model_load. */
    const char *folder;
    /* Read over faults that other runtimes read over, with a warning in the log for each: in a
     * Constant, attributes behind the first; attributes whose name begins with "__"; initializers,
     * metadata and imports given twice (the last counts); initializers without a name; ir_version
     * 0; domains of known operators that are not imported (the newest version is meant);
     * `initializers` of names that the model does not have. false. */
    bool tolerate;
} sdx_model_options;

SDX_API void sdx_model_options_init(sdx_model_options *options);
/* Maps the file (it must not change while the model lives) and reads external data from the model's
 * own folder only. The caller owns *out. Takes plan files (sdx_session_save_plan) as well. */
SDX_API SDX_MUST_CHECK sdx_status sdx_model_open(sdx_context *cx, const char *path,
                                                 const sdx_model_options *options, sdx_model **out);
/* The same from memory; the bytes must outlive the model. External data: as `files` and `folder` of
 * the options say, otherwise refused. A plan file's bytes must begin at a multiple of 64. */
SDX_API SDX_MUST_CHECK sdx_status sdx_model_load(sdx_context *cx, const void *bytes, size_t size,
                                                 const sdx_model_options *options, sdx_model **out);
SDX_API void sdx_model_destroy(sdx_model *model);
/* Writes the model as it was read: every field, unknown ones included. Not of a plan file. */
SDX_API SDX_MUST_CHECK sdx_status sdx_model_save(sdx_context *cx, const sdx_model *model,
                                                 const char *path);

/* A version of a domain: "" or "ai.onnx", "ai.onnx.ml" ... */
typedef struct sdx_opset {
    const char *domain;
    int64_t version;
} sdx_opset;

typedef struct sdx_convert_options {
    size_t size;
    bool check_fully; /* run the whole checker before and after; true */
} sdx_convert_options;

SDX_API void sdx_convert_options_init(sdx_convert_options *options);
/* Writes the model in `path` to the file `to`, with its nodes as other versions of the standard
 * write them, up or down: one domain after the other. It computes the same; names, functions and
 * fields that we do not know stay. SDX_NOT_SUPPORTED with the node and the reason where the other
 * version cannot say it. Inputs with initializers that had to become attributes are no longer
 * inputs. External data stays where it is, or comes into the file when that is in another folder.
 */
SDX_API SDX_MUST_CHECK sdx_status sdx_model_convert(sdx_context *cx, const char *path, int count,
                                                    const sdx_opset *opsets,
                                                    const sdx_convert_options *options,
                                                    const char *to);

/* What the model says of an input or output. Borrowed from the model. */
typedef struct sdx_value_info {
    const char *name;
    sdx_kind kind;
    sdx_dtype dtype;              /* of the elements; for maps of the values */
    sdx_dtype key_dtype;          /* maps only */
    int rank;                     /* -1: unknown */
    const int64_t *dims;          /* -1: not a constant */
    const char *const *dim_names; /* symbolic names; an entry is NULL when the dimension has none */
    bool optional; /* input with an initializer: need not be fed; slower once it is, and not taken
                      by a plan file */
    const char *type;                   /* as text: "float[N,3,224,224]", "seq(map(int64,float))" */
    const char *const *dim_denotations; /* "DATA_BATCH" ...; an entry is NULL where there is none */
    /* Of the items of a sequence or optional, or of a map's values; NULL: a tensor, or unknown.
     * Its name is "". */
    const struct sdx_value_info *elem;
    bool unused; /* input that nothing reads: need not be fed */
} sdx_value_info;

SDX_API int sdx_model_count_inputs(const sdx_model *model);
SDX_API int sdx_model_count_outputs(const sdx_model *model);
SDX_API const sdx_value_info *sdx_model_input(const sdx_model *model,
                                              int i); /* NULL past the end */
SDX_API const sdx_value_info *sdx_model_output(const sdx_model *model, int i);

typedef struct sdx_model_facts {
    const char *name, *producer, *producer_version, *domain, *doc; /* "" when absent */
    int64_t ir_version, model_version;
    int count_opsets;
    const char *const *opset_domains; /* "ai.onnx" for the standard's */
    const int64_t *opset_versions;
    int count_metadata;
    const char *const *metadata_keys, *const *metadata_values;
    int count_nodes; /* of all graphs and function bodies */
    int count_functions;
    int count_initializers;
    int64_t parameters; /* elements of all initializers and tensor constants */
    size_t parameter_bytes;
    int64_t macs;          /* multiply-accumulates of one run with unknown dimensions taken as 1 */
    bool macs_exact;       /* false: a dimension was unknown, or a shape depends on data */
    const char *graph_doc; /* description of the main graph; "" when absent */
} sdx_model_facts;

SDX_API const sdx_model_facts *sdx_model_get_facts(const sdx_model *model);

/* One operator type of a model. Borrowed. */
typedef struct sdx_op_use {
    const char *domain, *name; /* domain "ai.onnx" for the standard's */
    int opset;
    int count;
    const char *unsupported; /* NULL, or why it cannot run */
} sdx_op_use;

SDX_API int sdx_model_count_op_uses(const sdx_model *model);
SDX_API const sdx_op_use *sdx_model_op_use(const sdx_model *model, int i);

typedef void (*sdx_text_fn)(const char *text, void *user); /* one line, without newline */
/* Prints the graphs, a line a node. */
SDX_API SDX_MUST_CHECK sdx_status sdx_model_print(sdx_context *cx, const sdx_model *model,
                                                  sdx_text_fn line, void *user);
/* Checks a file against the standard and calls `fault` for every fault found: one line each, with
 * the place. Returns SDX_BAD_MODEL when there was one. */
SDX_API SDX_MUST_CHECK sdx_status sdx_check(sdx_context *cx, const char *path, sdx_text_fn fault,
                                            void *user);
SDX_API SDX_MUST_CHECK sdx_status sdx_check_bytes(sdx_context *cx, const void *bytes, size_t size,
                                                  sdx_text_fn fault, void *user);
/* The same without types and shapes: what can be told of a model without inference. */
SDX_API SDX_MUST_CHECK sdx_status sdx_check_structure(sdx_context *cx, const char *path,
                                                      sdx_text_fn fault, void *user);
/* Writes the model at `path` to the file `to` with the types and shapes that inference finds for
 * all its values: value_info, and the outputs' types. An input with an initializer is taken to have
 * its value. fault NULL: the first contradiction is a failure. Otherwise each is told in a line,
 * and what the node makes stays as the file declares it. */
SDX_API SDX_MUST_CHECK sdx_status sdx_infer(sdx_context *cx, const char *path, const char *to,
                                            sdx_text_fn fault, void *user);

/* ---- sessions ----------------------------------------------------------------------------------
 */

typedef enum sdx_level {
    SDX_LEVEL_NONE = 0,
    SDX_LEVEL_BASIC = 1,
    SDX_LEVEL_EXTENDED = 2,
    SDX_LEVEL_ALL = 99
} sdx_level;

/* An option of a provider, handed on as it is: {"CUDAExecutionProvider", "device_id", "1"}. */
typedef struct sdx_provider_option {
    const char *provider; /* as in the list of providers */
    const char *key, *value;
} sdx_provider_option;

typedef struct sdx_session_options {
    size_t size;
    int threads;         /* 0: the context's */
    sdx_level level;     /* of graph optimisation; SDX_LEVEL_ALL */
    bool profile;        /* record the time of every node */
    int plans;           /* input shapes whose plans are kept; 8 */
    size_t memory_limit; /* bytes this session may hold; 0: none of its own */
    /* Measures the ways to compute a convolution when a shape is met for the first time, on one
     * thread, and keeps the fastest in the user's cache folder ($XDG_CACHE_HOME or ~/.cache,
     * sardonyx/tune-*.txt, a file for each version, instruction set and CPU model), where sessions
     * that are tuned find it. Several processes may do so at once; a file that is broken or not of
     * this machine is told of through the log and ignored. Results of two ways differ in the last
     * bits, so those of tuned sessions are the same only where the choices are. false */
    bool tune;
    bool cancel_holds; /* sdx_cancel ends runs until sdx_cancel_clear, also those that begin later;
                        * false: the run under way only */
    /* What runs the model, in order of priority; none: the engine. "What runs a model", below. */
    int count_providers;
    const char *const *providers;
    int count_provider_options;
    const sdx_provider_option *provider_options;
    /* A provider that cannot start is told of through the log, and those behind it serve. Without:
     * it is a failure that says what is missing. false */
    bool provider_fallback;
    const char *ort_library; /* path of an ONNX Runtime library; NULL: where it usually is */
    /* A session of the same model and context with the same options otherwise, for another thread.
     * When an ONNX Runtime library runs the model, both have one session of it in common, which
     * takes runs of several threads at once; those of the engine share what they can anyway. Either
     * may be destroyed first. NULL: none */
    const sdx_session *sibling;
    /* Tells an ONNX Runtime library more than these options can, before it makes the session. `api`
     * is its OrtApi, `options` an OrtSessionOptions of it (sardonyx/ort.h). Returns NULL, or why
     * the session cannot be. A model with operators of the caller's own runs in the library only
     * when this brings them along. NULL: nothing is told */
    const char *(*ort_setup)(const void *api, void *options, void *user);
    void *ort_setup_user;
} sdx_session_options;

SDX_API void sdx_session_options_init(sdx_session_options *options);
SDX_API SDX_MUST_CHECK sdx_status sdx_session_create(sdx_context *cx, const sdx_model *model,
                                                     const sdx_session_options *options,
                                                     sdx_session **out);
SDX_API void sdx_session_destroy(sdx_session *session);
/* Runs the model. `feeds` name inputs (an optional one that is not fed is empty); an output named
 * in `names` (NULL: all, in the model's order) comes back in outputs[i]. An entry that is not NULL
 * on entry is a tensor of the right type and shape to write into, or one that grows; otherwise the
 * caller owns what comes back. On failure entries that were NULL stay NULL. */
SDX_API SDX_MUST_CHECK sdx_status sdx_run(sdx_session *session, int count_feeds,
                                          const sdx_feed *feeds, int count_outputs,
                                          const char *const *names, sdx_tensor **outputs);
/* Writes the session's model, ready for this version of the library on this kind of CPU: rewritten
 * at SDX_LEVEL_ALL, with its weights as the kernels want them for the shapes run so far (others are
 * made when they are needed). sdx_model_open takes such a plan file like a model, refuses it on
 * another CPU or with another version, and checks it, but not that the numbers are the model's:
 * like a program, it should be from a source you trust. The file is replaced as a whole. */
SDX_API SDX_MUST_CHECK sdx_status sdx_session_save_plan(sdx_session *session, const char *path);
/* Writes the model as an ONNX file, as the passes of the session's level left it: constants folded,
 * what nothing reads gone, and, from SDX_LEVEL_EXTENDED on, operators fused as far as the
 * standard's operators and those of com.microsoft can say it; where they cannot, as the passes of
 * SDX_LEVEL_BASIC left it. Inputs, outputs and metadata are the model's; functions are inlined. The
 * data of all initializers is in the file. */
SDX_API SDX_MUST_CHECK sdx_status sdx_session_save_model(sdx_session *session, const char *path);
/* Makes a run under way in another thread return SDX_CANCELLED soon (within 50 ms). Any thread may
 * call it. */
SDX_API void sdx_cancel(sdx_session *session);
/* For a session whose options say cancel_holds: its next run is one like any other again. */
SDX_API void sdx_cancel_clear(sdx_session *session);
/* The text of this session's last failure; "" when there was none. */
SDX_API const char *sdx_session_error(const sdx_session *session);

/* One node of the last runs, in order of execution; times are sums over `runs`. */
typedef struct sdx_profile_row {
    const char *name;   /* of the node; may be "" */
    const char *op;     /* operator type, or the kernel's name for work the engine added */
    const char *kernel; /* what ran */
    const char *shapes; /* "f32[1,3,8,8] f32[4,3,3,3] -> f32[1,4,8,8]" */
    int64_t runs;
    int64_t ns;       /* time taken by all runs */
    int64_t start_ns; /* begin within the last run */
    int64_t last_ns;  /* duration in the last run */
    double flops;     /* of one run */
    double bytes;     /* read and written by one run */
} sdx_profile_row;

/* NULL past the end. Borrowed; valid until the next run. */
SDX_API const sdx_profile_row *sdx_session_profile(const sdx_session *session, int i);
SDX_API void sdx_session_profile_reset(sdx_session *session);

/* ---- what runs a model -------------------------------------------------------------------------
 *
 * The engine of this library is CPUExecutionProvider ("cpu" for short). An ONNX Runtime library
 * that is installed brings others, by their own names: CUDAExecutionProvider,
 * TensorrtExecutionProvider, ROCMExecutionProvider, MIGraphXExecutionProvider,
 * OpenVINOExecutionProvider, CoreMLExecutionProvider, DmlExecutionProvider and more; its own for
 * the CPU is ort:CPUExecutionProvider ("ort"). "auto" is the best that starts, the engine at last.
 * The library is the one of `ort_library`, otherwise of the environment variable SDX_ORT_LIBRARY,
 * otherwise libonnxruntime.so.1 beside the program or this library or where the loader finds it;
 * release 1.17 or later.
 *
 * Providers of the library that follow each other in the list make one session of it: a node goes
 * to the first that takes it, those that none takes to ort:CPUExecutionProvider. The engine runs
 * the model when it comes first, or when nothing before it started (provider_fallback). When
 * nothing is left the failure is "No ONNX Runtime execution providers available".
 *
 * A session of the library checks feeds as others do, and writes into outputs that the caller
 * brings. It has no profile and no plan file; operators of the caller's own must be the library's
 * too (ort_setup); `plans`, `tune` and the limits of memory are of the engine only. Sequences
 * without items and optionals without a value cannot be fed. Lengths, initializers and files that
 * the model's options give are handed on; initializers must not be strings, and be in the file.
 * Where the file holds the data of one itself, and other data than is given, the library rewrites
 * nothing (SDX_LEVEL_NONE), because it would use those of the file. */

/* Name of provider `i` that runs the session, in order of priority; NULL past the end. */
SDX_API const char *sdx_session_provider(const sdx_session *session, int i);

typedef struct sdx_provider_info {
    const char *name;
    bool starts;         /* a session with it was made */
    const char *reason;  /* why not; NULL when it starts */
    const char *library; /* path of the ONNX Runtime library it is of; NULL: none */
    const char *version; /* of that library, "1.30.0"; NULL: none */
} sdx_provider_info;

typedef void (*sdx_provider_fn)(const sdx_provider_info *info, void *user);
/* Tries every provider there is or could be, the engine first, and calls `each` with what came of
 * it; texts are valid during the call only. ort_library: as in the options of a session. */
SDX_API SDX_MUST_CHECK sdx_status sdx_providers(sdx_context *cx, const char *ort_library,
                                                sdx_provider_fn each, void *user);
/* Whether the providers of these session options start: makes what sdx_session_create would, for a
 * model of one node. The failure is that of sdx_session_create: it names which does not, and why.
 */
SDX_API SDX_MUST_CHECK sdx_status sdx_providers_start(sdx_context *cx,
                                                      const sdx_session_options *options);

/* ---- operators of your own ---------------------------------------------------------------------
 *
 *     static sdx_status infer(sdx_node *node, void *user)            // the type and shape of input
 * 0
 *     {
 *         return sdx_node_set_output(node, 0, sdx_node_input(node, 0));
 *     }
 *
 *     static sdx_status run(sdx_call *call, void *state, void *user)
 *     {
 *         const sdx_tensor *in = sdx_call_input(call, 0);
 *         sdx_tensor *out = NULL;
 *         sdx_status status = sdx_call_make_output(call, 0, SDX_F32, sdx_tensor_rank(in),
 *                                                  sdx_tensor_dims(in), &out);
 *         for (int64_t i = 0; status == SDX_OK && i < sdx_tensor_count(in); i++)
 *             ((float *)sdx_tensor_data(out))[i] = 2 * ((const float
 * *)sdx_tensor_const_data(in))[i]; return status;
 *     }
 *
 *     const sdx_custom_op twice = {.size = sizeof twice, .domain = "mine", .name = "Twice",
 *                                  .inputs_min = 1, .inputs_max = 1, .outputs_min = 1,
 *                                  .outputs_max = 1, .infer = infer, .run = run};
 *     const sdx_custom_op *ops[] = {&twice};
 *     sdx_model_options options;
 *     sdx_model_options_init(&options);
 *     options.count_custom_ops = 1, options.custom_ops = ops;
 */

typedef struct sdx_node sdx_node; /* a node of such an operator */
typedef struct sdx_call sdx_call; /* one run of it */

struct sdx_custom_op {
    size_t size;        /* sizeof(sdx_custom_op) */
    const char *domain; /* "" for the standard's; an operator given here goes before the library's
                           of the same name */
    const char *name;
    int since, until; /* versions of the domain that it serves, both included; until 0: no end */
    /* How many inputs and outputs a node has; INT_MAX: any number. */
    int inputs_min, inputs_max, outputs_min, outputs_max;
    uint64_t inputs_optional; /* bit i: input i may be left out though later ones are there (what is
                                 beyond 63: may not) */
    uint64_t outputs_optional;
    /* Says the types and, as far as they can be told, the shapes of the outputs, and refuses inputs
     * that the operator does not take (sdx_node_fail). Called when a model is opened and a session
     * made, with lengths that may be unknown, from one thread at a time; and once for every new set
     * of input shapes, by each session in its own thread. Where lengths are all known then, outputs
     * have memory before `run`; otherwise their shape is known when `run` gives it. NULL: outputs
     * are tensors of which nothing is known. */
    sdx_status (*infer)(sdx_node *node, void *user);
    /* Once for each node and session, when the session is made. *state (NULL before) is given to
     * `run`, which one thread at a time calls, and to `destroy`, when the session ends. Both may be
     * NULL; sessions of other threads have states of their own. */
    sdx_status (*create)(const sdx_node *node, void **state, void *user);
    sdx_status (*run)(sdx_call *call, void *state, void *user);
    void (*destroy)(void *state, void *user);
    void *user; /* handed to the callbacks; must outlive the model */
};

/* What a node says. Borrowed, and valid as long as the callback runs; in `create` and `run`: as
 * long as the session lives. */
SDX_API const char *sdx_node_name(const sdx_node *node); /* "" when it has none */
SDX_API const char *sdx_node_domain(const sdx_node *node);
SDX_API const char *sdx_node_op(const sdx_node *node); /* operator type */
SDX_API int sdx_node_opset(const sdx_node *node);      /* version imported for the domain */
/* The same number for the same node in all sessions of one model and level; of no other node. */
SDX_API int64_t sdx_node_number(const sdx_node *node);
SDX_API int sdx_node_count_inputs(const sdx_node *node); /* those left out included */
SDX_API int sdx_node_count_outputs(const sdx_node *node);
/* Name and type of input or output `i`, as far as known: kind NONE, dtype NONE, rank -1 and lengths
 * of -1 are not known. NULL: left out, or past the end. */
SDX_API const sdx_value_info *sdx_node_input(const sdx_node *node, int i);
SDX_API const sdx_value_info *sdx_node_output(const sdx_node *node, int i);
/* The elements of input `i` where they are known: in `create` those of constants; in `infer` also
 * what was computed before, and asking for it makes the result of `infer` hold for these elements
 * only. NULL: not known. */
SDX_API const sdx_tensor *sdx_node_value(const sdx_node *node, int i);

/* The kinds of attributes; the numbers are those of onnx.AttributeProto.AttributeType. */
typedef enum sdx_attr_type {
    SDX_ATTR_UNDEFINED = 0,
    SDX_ATTR_FLOAT = 1,
    SDX_ATTR_INT = 2,
    SDX_ATTR_STRING = 3,
    SDX_ATTR_TENSOR = 4,
    SDX_ATTR_GRAPH = 5,
    SDX_ATTR_FLOATS = 6,
    SDX_ATTR_INTS = 7,
    SDX_ATTR_STRINGS = 8,
    SDX_ATTR_TENSORS = 9,
    SDX_ATTR_GRAPHS = 10,
    SDX_ATTR_SPARSE = 11,
    SDX_ATTR_SPARSES = 12,
    SDX_ATTR_TYPE = 13,
    SDX_ATTR_TYPES = 14
} sdx_attr_type;

/* An attribute of a node; members of other kinds than `type` are 0. */
typedef struct sdx_attr {
    const char *name;
    sdx_attr_type type; /* of graphs and types there is no more than this */
    float f;
    int64_t i;
    int64_t count; /* of the lists; of a string: 1 */
    const float *floats;
    const int64_t *ints;
    const char *const *strings; /* also of a string; each ends with NUL, which is not counted */
    const size_t *lengths;      /* of the strings */
    const sdx_tensor *const *tensors; /* also of a tensor; sparse ones are made dense */
} sdx_attr;

SDX_API const sdx_attr *sdx_node_attr(const sdx_node *node, const char *name); /* NULL: absent */
SDX_API const sdx_attr *sdx_node_attr_at(const sdx_node *node, int i); /* NULL: past the end */

/* In `infer`: output `i` is of this type: kind, dtype, key_dtype (maps), rank, dims and dim_names
 * count; a length of -1 is unknown, or what its name (which may be NULL) says. What
 * sdx_node_input(node, k) gave may be given: then lengths without a name are the same too. An
 * output that the node leaves out is ignored. */
SDX_API SDX_MUST_CHECK sdx_status sdx_node_set_output(sdx_node *node, int i,
                                                      const sdx_value_info *type);
/* In `infer` and `create`: why they fail, one line; the node's name is put in front. Returns
 * `status`, which the callback then returns; SDX_BAD_MODEL where that is 0. */
SDX_API sdx_status sdx_node_fail(const sdx_node *node, sdx_status status, const char *text);

/* In `run`, all of them. Inputs are packed and row-major. NULL: left out. */
SDX_API const sdx_node *sdx_call_node(const sdx_call *call);
SDX_API const sdx_tensor *sdx_call_input(const sdx_call *call, int i);
/* Memory for output `i`, a tensor of other than strings, to be written as a whole; once a call.
 * Where `infer` told type or shape they must be these. *out is NULL, without a failure, when the
 * node leaves the output out. Borrowed. */
SDX_API SDX_MUST_CHECK sdx_status sdx_call_make_output(sdx_call *call, int i, sdx_dtype dtype,
                                                       int rank, const int64_t *dims,
                                                       sdx_tensor **out);
/* Output `i` becomes a copy of `value`: for strings, sequences and the like. Items of sequences are
 * shared, so they may not change later on. */
SDX_API SDX_MUST_CHECK sdx_status sdx_call_set_output(sdx_call *call, int i,
                                                      const sdx_tensor *value);
/* For tensors that are made and destroyed within the call, or the node's state. */
SDX_API sdx_context *sdx_call_context(sdx_call *call);
/* Calls fn(i, user) for i = 0 .. count - 1 in any order, on the session's threads, and returns when
 * all are done. */
SDX_API void sdx_call_parallel(sdx_call *call, int64_t count, void (*fn)(int64_t i, void *user),
                               void *user);
SDX_API int sdx_call_threads(const sdx_call *call); /* the most that work at once */
/* Has sdx_cancel been called? Then the callback should return soon, whatever. */
SDX_API bool sdx_call_is_cancelled(const sdx_call *call);
/* As sdx_node_fail; SDX_RUN_FAILED where status is 0. */
SDX_API sdx_status sdx_call_fail(sdx_call *call, sdx_status status, const char *text);

/* ---- what is supported
 * --------------------------------------------------------------------------- */

typedef struct sdx_op_info {
    const char *domain, *name;
    int since; /* the standard's version that this row describes */
    bool deprecated;
    const char *support; /* "kernel", "lowering", "function" or NULL when it cannot run */
    const char *note;    /* limits, or NULL */
    const char *types;   /* element types of its first type variable, "float, double" */
} sdx_op_info;

/* Row `i` of the operator table, sorted by domain, name and version; false past the end. */
SDX_API bool sdx_op_info_get(int i, sdx_op_info *info);

#ifdef __cplusplus
}
#endif
#endif
