/* SPDX-License-Identifier: Apache-2.0
 * The C ABI of ONNX Runtime, API version 31, written from its facts: types, numbers and the order
 * of functions are what compiled programs rely on. libonnxruntime.so.1 of abi/ort offers it, and
 * the provider `ort` of the engine calls it in an installed library.
 *
 *     const OrtApi *api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
 *
 * A function that returns an OrtStatusPtr gives NULL for success; otherwise the caller frees the
 * status with ReleaseStatus. Which functions do something: docs/ort_abi.md. */
#ifndef SARDONYX_ORT_H
#define SARDONYX_ORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sardonyx/ort_slots.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORT_API_VERSION 31

/* ---- opaque types ---- */

typedef struct OrtEnv OrtEnv;
typedef struct OrtStatus OrtStatus;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtIoBinding OrtIoBinding;
typedef struct OrtSession OrtSession;
typedef struct OrtValue OrtValue;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtMapTypeInfo OrtMapTypeInfo;
typedef struct OrtSequenceTypeInfo OrtSequenceTypeInfo;
typedef struct OrtOptionalTypeInfo OrtOptionalTypeInfo;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtModelMetadata OrtModelMetadata;
typedef struct OrtThreadPoolParams OrtThreadPoolParams;
typedef struct OrtThreadingOptions OrtThreadingOptions;
typedef struct OrtArenaCfg OrtArenaCfg;
typedef struct OrtPrepackedWeightsContainer OrtPrepackedWeightsContainer;
typedef struct OrtTensorRTProviderOptionsV2 OrtTensorRTProviderOptionsV2;
typedef struct OrtCUDAProviderOptionsV2 OrtCUDAProviderOptionsV2;
typedef struct OrtCANNProviderOptions OrtCANNProviderOptions;
typedef struct OrtDnnlProviderOptions OrtDnnlProviderOptions;
typedef struct OrtOp OrtOp;
typedef struct OrtOpAttr OrtOpAttr;
typedef struct OrtLogger OrtLogger;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtLoraAdapter OrtLoraAdapter;
typedef struct OrtValueInfo OrtValueInfo;
typedef struct OrtNode OrtNode;
typedef struct OrtGraph OrtGraph;
typedef struct OrtModel OrtModel;
typedef struct OrtModelCompilationOptions OrtModelCompilationOptions;
typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtSyncStream OrtSyncStream;
typedef struct OrtExternalInitializerInfo OrtExternalInitializerInfo;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtEpAssignedNode OrtEpAssignedNode;
typedef struct OrtEpAssignedSubgraph OrtEpAssignedSubgraph;
typedef struct OrtDeviceEpIncompatibilityDetails OrtDeviceEpIncompatibilityDetails;

typedef OrtStatus *OrtStatusPtr;

/* ---- numbers ---- */

/* The numbers of onnx.TensorProto.DataType, and so of sdx_dtype. */
typedef enum ONNXTensorElementDataType {
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 = 2,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 = 3,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16 = 4,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16 = 5,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 = 6,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING = 8,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL = 9,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 = 10,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE = 11,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 = 12,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 = 13,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64 = 14,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128 = 15,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 = 16,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN = 17,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ = 18,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2 = 19,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ = 20,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4 = 21,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4 = 22,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1 = 23,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0 = 24,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2 = 25,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2 = 26
} ONNXTensorElementDataType;

typedef enum ONNXType {
    ONNX_TYPE_UNKNOWN = 0,
    ONNX_TYPE_TENSOR = 1,
    ONNX_TYPE_SEQUENCE = 2,
    ONNX_TYPE_MAP = 3,
    ONNX_TYPE_OPAQUE = 4,
    ONNX_TYPE_SPARSETENSOR = 5,
    ONNX_TYPE_OPTIONAL = 6
} ONNXType;

typedef enum OrtSparseFormat {
    ORT_SPARSE_UNDEFINED = 0,
    ORT_SPARSE_COO = 1,
    ORT_SPARSE_CSRC = 2,
    ORT_SPARSE_BLOCK_SPARSE = 4
} OrtSparseFormat;

typedef enum OrtSparseIndicesFormat {
    ORT_SPARSE_COO_INDICES = 0,
    ORT_SPARSE_CSR_INNER_INDICES = 1,
    ORT_SPARSE_CSR_OUTER_INDICES = 2,
    ORT_SPARSE_BLOCK_SPARSE_INDICES = 3
} OrtSparseIndicesFormat;

typedef enum OrtLoggingLevel {
    ORT_LOGGING_LEVEL_VERBOSE = 0,
    ORT_LOGGING_LEVEL_INFO = 1,
    ORT_LOGGING_LEVEL_WARNING = 2,
    ORT_LOGGING_LEVEL_ERROR = 3,
    ORT_LOGGING_LEVEL_FATAL = 4
} OrtLoggingLevel;

/* X(code, number, the name that messages carry) */
#define SDX_ORT_ERRORS(X)                                                                          \
    X(ORT_OK, 0, "SUCCESS")                                                                        \
    X(ORT_FAIL, 1, "FAIL")                                                                         \
    X(ORT_INVALID_ARGUMENT, 2, "INVALID_ARGUMENT")                                                 \
    X(ORT_NO_SUCHFILE, 3, "NO_SUCHFILE")                                                           \
    X(ORT_NO_MODEL, 4, "NO_MODEL")                                                                 \
    X(ORT_ENGINE_ERROR, 5, "ENGINE_ERROR")                                                         \
    X(ORT_RUNTIME_EXCEPTION, 6, "RUNTIME_EXCEPTION")                                               \
    X(ORT_INVALID_PROTOBUF, 7, "INVALID_PROTOBUF")                                                 \
    X(ORT_MODEL_LOADED, 8, "MODEL_LOADED")                                                         \
    X(ORT_NOT_IMPLEMENTED, 9, "NOT_IMPLEMENTED")                                                   \
    X(ORT_INVALID_GRAPH, 10, "INVALID_GRAPH")                                                      \
    X(ORT_EP_FAIL, 11, "EP_FAIL")                                                                  \
    X(ORT_MODEL_LOAD_CANCELED, 12, "MODEL_LOAD_CANCELED")                                          \
    X(ORT_MODEL_REQUIRES_COMPILATION, 13, "MODEL_REQUIRES_COMPILATION")                            \
    X(ORT_NOT_FOUND, 14, "NOT_FOUND")
typedef enum OrtErrorCode {
#define SDX_ORT_ERROR(code, number, name) code = number,
    SDX_ORT_ERRORS(SDX_ORT_ERROR)
#undef SDX_ORT_ERROR
} OrtErrorCode;

typedef enum OrtOpAttrType {
    ORT_OP_ATTR_UNDEFINED = 0,
    ORT_OP_ATTR_INT = 1,
    ORT_OP_ATTR_INTS = 2,
    ORT_OP_ATTR_FLOAT = 3,
    ORT_OP_ATTR_FLOATS = 4,
    ORT_OP_ATTR_STRING = 5,
    ORT_OP_ATTR_STRINGS = 6,
    ORT_OP_ATTR_GRAPH = 7,
    ORT_OP_ATTR_TENSOR = 8
} OrtOpAttrType;

typedef enum GraphOptimizationLevel {
    ORT_DISABLE_ALL = 0,
    ORT_ENABLE_BASIC = 1,
    ORT_ENABLE_EXTENDED = 2,
    ORT_ENABLE_LAYOUT = 3,
    ORT_ENABLE_ALL = 99
} GraphOptimizationLevel;

typedef enum ExecutionMode { ORT_SEQUENTIAL = 0, ORT_PARALLEL = 1 } ExecutionMode;

typedef enum OrtLanguageProjection {
    ORT_PROJECTION_C = 0,
    ORT_PROJECTION_CPLUSPLUS = 1,
    ORT_PROJECTION_CSHARP = 2,
    ORT_PROJECTION_PYTHON = 3,
    ORT_PROJECTION_JAVA = 4,
    ORT_PROJECTION_WINML = 5,
    ORT_PROJECTION_NODEJS = 6
} OrtLanguageProjection;

typedef enum OrtAllocatorType {
    OrtInvalidAllocator = -1,
    OrtDeviceAllocator = 0,
    OrtArenaAllocator = 1,
    OrtReadOnlyAllocator = 2
} OrtAllocatorType;

typedef enum OrtMemType {
    OrtMemTypeCPUInput = -2,
    OrtMemTypeCPUOutput = -1,
    OrtMemTypeCPU = -1,
    OrtMemTypeDefault = 0
} OrtMemType;

typedef enum OrtDeviceMemoryType {
    OrtDeviceMemoryType_DEFAULT = 0,
    OrtDeviceMemoryType_HOST_ACCESSIBLE = 5
} OrtDeviceMemoryType;

typedef enum OrtMemoryInfoDeviceType {
    OrtMemoryInfoDeviceType_CPU = 0,
    OrtMemoryInfoDeviceType_GPU = 1,
    OrtMemoryInfoDeviceType_FPGA = 2,
    OrtMemoryInfoDeviceType_NPU = 3
} OrtMemoryInfoDeviceType;

typedef enum OrtHardwareDeviceType {
    OrtHardwareDeviceType_CPU = 0,
    OrtHardwareDeviceType_GPU = 1,
    OrtHardwareDeviceType_NPU = 2
} OrtHardwareDeviceType;

typedef enum OrtExecutionProviderDevicePolicy {
    OrtExecutionProviderDevicePolicy_DEFAULT = 0,
    OrtExecutionProviderDevicePolicy_PREFER_CPU = 1,
    OrtExecutionProviderDevicePolicy_PREFER_NPU = 2,
    OrtExecutionProviderDevicePolicy_PREFER_GPU = 3,
    OrtExecutionProviderDevicePolicy_MAX_PERFORMANCE = 4,
    OrtExecutionProviderDevicePolicy_MAX_EFFICIENCY = 5,
    OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER = 6
} OrtExecutionProviderDevicePolicy;

typedef enum OrtCompiledModelCompatibility {
    OrtCompiledModelCompatibility_EP_NOT_APPLICABLE = 0,
    OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL = 1,
    OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION = 2,
    OrtCompiledModelCompatibility_EP_UNSUPPORTED = 3
} OrtCompiledModelCompatibility;

typedef enum OrtCustomOpInputOutputCharacteristic {
    INPUT_OUTPUT_REQUIRED = 0,
    INPUT_OUTPUT_OPTIONAL = 1,
    INPUT_OUTPUT_VARIADIC = 2
} OrtCustomOpInputOutputCharacteristic;

/* ---- structs that both sides read ---- */

/* Memory: version is ORT_API_VERSION of who made it; members behind Info exist from the versions
 * named. */
typedef struct OrtAllocator {
    uint32_t version;
    void *(*Alloc)(struct OrtAllocator *self, size_t size);
    void (*Free)(struct OrtAllocator *self, void *block);
    const OrtMemoryInfo *(*Info)(const struct OrtAllocator *self);
    void *(*Reserve)(struct OrtAllocator *self, size_t size);                          /* 18 */
    OrtStatusPtr (*GetStats)(const struct OrtAllocator *self, OrtKeyValuePairs **out); /* 23 */
    void *(*AllocOnStream)(struct OrtAllocator *self, size_t size, OrtSyncStream *stream);
} OrtAllocator;

typedef void (*OrtLoggingFunction)(void *param, OrtLoggingLevel severity, const char *category,
                                   const char *logid, const char *code_location,
                                   const char *message);
typedef void (*OrtThreadWorkerFn)(void *worker_param);
typedef const struct OrtCustomHandleType {
    char place;
} * OrtCustomThreadHandle;
typedef OrtCustomThreadHandle (*OrtCustomCreateThreadFn)(void *options, OrtThreadWorkerFn worker,
                                                         void *worker_param);
typedef void (*OrtCustomJoinThreadFn)(OrtCustomThreadHandle handle);
typedef void (*RunAsyncCallbackFn)(void *user, OrtValue **outputs, size_t count,
                                   OrtStatusPtr status);
typedef OrtStatusPtr (*EpSelectionDelegate)(const OrtEpDevice **devices, size_t count,
                                            const OrtKeyValuePairs *model_metadata,
                                            const OrtKeyValuePairs *runtime_metadata,
                                            const OrtEpDevice **selected, size_t max_selected,
                                            size_t *count_selected, void *state);
typedef OrtStatusPtr (*OrtWriteBufferFunc)(void *state, const void *buffer, size_t size);
typedef OrtStatusPtr (*OrtGetInitializerLocationFunc)(void *state, const char *name,
                                                      const OrtValue *value,
                                                      const OrtExternalInitializerInfo *info,
                                                      OrtExternalInitializerInfo **out);
typedef OrtStatusPtr (*OrtReadNamedBufferFunc)(void *state, const char *name,
                                               OrtAllocator *allocator, void **buffer,
                                               size_t *size);

/* What CreateEnvWithOptions takes. Texts are copied; what may be NULL is left out. */
typedef struct OrtEnvCreationOptions {
    uint32_t version; /* ORT_API_VERSION, 24 or later */
    int32_t logging_severity_level;
    const char *log_id;
    OrtLoggingFunction custom_logging_function; /* may be NULL */
    void *custom_logging_param;
    const OrtThreadingOptions *threading_options; /* may be NULL */
    const OrtKeyValuePairs *config_entries;       /* may be NULL */
} OrtEnvCreationOptions;

/* Options of providers that are not in this library: only passed through. */
typedef struct OrtCUDAProviderOptions OrtCUDAProviderOptions;
typedef struct OrtROCMProviderOptions OrtROCMProviderOptions;
typedef struct OrtTensorRTProviderOptions OrtTensorRTProviderOptions;
typedef struct OrtMIGraphXProviderOptions OrtMIGraphXProviderOptions;
typedef struct OrtOpenVINOProviderOptions OrtOpenVINOProviderOptions;
typedef struct OrtThreadPoolCallbacksConfig OrtThreadPoolCallbacksConfig;
typedef struct OrtTrainingApi OrtTrainingApi;
typedef struct OrtCompileApi OrtCompileApi;
typedef struct OrtInteropApi OrtInteropApi;
typedef struct OrtEpApi OrtEpApi;
typedef struct OrtModelEditorApi OrtModelEditorApi;
typedef struct OrtModelPackageApi OrtModelPackageApi;
typedef struct OrtCustomOp OrtCustomOp;
typedef struct OrtApi OrtApi;

/* An operator that a program brings. version: API version it was compiled for, which tells the
 * members there are (those behind a number exist from that version on). */
struct OrtCustomOp {
    uint32_t version;
    void *(*CreateKernel)(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info);
    const char *(*GetName)(const OrtCustomOp *op);
    const char *(*GetExecutionProviderType)(const OrtCustomOp *op);
    ONNXTensorElementDataType (*GetInputType)(const OrtCustomOp *op, size_t index);
    size_t (*GetInputTypeCount)(const OrtCustomOp *op);
    ONNXTensorElementDataType (*GetOutputType)(const OrtCustomOp *op, size_t index);
    size_t (*GetOutputTypeCount)(const OrtCustomOp *op);
    void (*KernelCompute)(void *kernel, OrtKernelContext *context);
    void (*KernelDestroy)(void *kernel);
    OrtCustomOpInputOutputCharacteristic (*GetInputCharacteristic)(const OrtCustomOp *op,
                                                                   size_t index);
    OrtCustomOpInputOutputCharacteristic (*GetOutputCharacteristic)(const OrtCustomOp *op,
                                                                    size_t index);
    OrtMemType (*GetInputMemoryType)(const OrtCustomOp *op, size_t index); /* 13 */
    int (*GetVariadicInputMinArity)(const OrtCustomOp *op);                /* 14 */
    int (*GetVariadicInputHomogeneity)(const OrtCustomOp *op);
    int (*GetVariadicOutputMinArity)(const OrtCustomOp *op);
    int (*GetVariadicOutputHomogeneity)(const OrtCustomOp *op);
    OrtStatusPtr (*CreateKernelV2)(const OrtCustomOp *op, const OrtApi *api,
                                   const OrtKernelInfo *info, void **kernel); /* 16 */
    OrtStatusPtr (*KernelComputeV2)(void *kernel, OrtKernelContext *context);
    OrtStatusPtr (*InferOutputShapeFn)(const OrtCustomOp *op,
                                       OrtShapeInferContext *context); /* 17 */
    int (*GetStartVersion)(const OrtCustomOp *op);
    int (*GetEndVersion)(const OrtCustomOp *op);
    size_t (*GetMayInplace)(int **input_index, int **output_index); /* 18 */
    void (*ReleaseMayInplace)(int *input_index, int *output_index);
    size_t (*GetAliasMap)(int **input_index, int **output_index);
    void (*ReleaseAliasMap)(int *input_index, int *output_index);
};

/* What GetModelEditorApi gives: models made by programs. Functions that take an array of objects,
 * or one to add, take ownership of them when they succeed. */
struct OrtModelEditorApi {
    OrtStatusPtr (*CreateTensorTypeInfo)(const OrtTensorTypeAndShapeInfo *shape, OrtTypeInfo **out);
    OrtStatusPtr (*CreateSparseTensorTypeInfo)(const OrtTensorTypeAndShapeInfo *shape,
                                               OrtTypeInfo **out);
    OrtStatusPtr (*CreateMapTypeInfo)(ONNXTensorElementDataType key, const OrtTypeInfo *value,
                                      OrtTypeInfo **out);
    OrtStatusPtr (*CreateSequenceTypeInfo)(const OrtTypeInfo *element, OrtTypeInfo **out);
    OrtStatusPtr (*CreateOptionalTypeInfo)(const OrtTypeInfo *contained, OrtTypeInfo **out);
    OrtStatusPtr (*CreateValueInfo)(const char *name, const OrtTypeInfo *type, OrtValueInfo **out);
    OrtStatusPtr (*CreateNode)(const char *op, const char *domain, const char *name,
                               const char *const *inputs, size_t count_inputs,
                               const char *const *outputs, size_t count_outputs,
                               OrtOpAttr **attributes, size_t count_attributes, OrtNode **out);
    OrtStatusPtr (*CreateGraph)(OrtGraph **out);
    OrtStatusPtr (*SetGraphInputs)(OrtGraph *graph, OrtValueInfo **inputs, size_t count);
    OrtStatusPtr (*SetGraphOutputs)(OrtGraph *graph, OrtValueInfo **outputs, size_t count);
    OrtStatusPtr (*AddInitializerToGraph)(OrtGraph *graph, const char *name, OrtValue *tensor,
                                          bool data_is_external);
    OrtStatusPtr (*AddNodeToGraph)(OrtGraph *graph, OrtNode *node);
    OrtStatusPtr (*CreateModel)(const char *const *domains, const int *versions, size_t count,
                                OrtModel **out);
    OrtStatusPtr (*AddGraphToModel)(OrtModel *model, OrtGraph *graph);
    OrtStatusPtr (*CreateSessionFromModel)(const OrtEnv *env, const OrtModel *model,
                                           const OrtSessionOptions *options, OrtSession **out);
    OrtStatusPtr (*CreateModelEditorSession)(const OrtEnv *env, const char *path,
                                             const OrtSessionOptions *options, OrtSession **out);
    OrtStatusPtr (*CreateModelEditorSessionFromArray)(const OrtEnv *env, const void *model,
                                                      size_t size, const OrtSessionOptions *options,
                                                      OrtSession **out);
    OrtStatusPtr (*SessionGetOpsetForDomain)(const OrtSession *session, const char *domain,
                                             int *version);
    OrtStatusPtr (*ApplyModelToModelEditorSession)(OrtSession *session, OrtModel *model);
    OrtStatusPtr (*FinalizeModelEditorSession)(OrtSession *session,
                                               const OrtSessionOptions *options,
                                               OrtPrepackedWeightsContainer *prepacked);
};

/* What GetCompileApi gives: models prepared for a provider and written. */
struct OrtCompileApi {
    void (*ReleaseModelCompilationOptions)(OrtModelCompilationOptions *options);
    OrtStatusPtr (*CreateModelCompilationOptionsFromSessionOptions)(
        const OrtEnv *env, const OrtSessionOptions *session_options,
        OrtModelCompilationOptions **out);
    OrtStatusPtr (*ModelCompilationOptions_SetInputModelPath)(OrtModelCompilationOptions *options,
                                                              const char *path);
    OrtStatusPtr (*ModelCompilationOptions_SetInputModelFromBuffer)(
        OrtModelCompilationOptions *options, const void *model, size_t size);
    OrtStatusPtr (*ModelCompilationOptions_SetOutputModelPath)(OrtModelCompilationOptions *options,
                                                               const char *path);
    OrtStatusPtr (*ModelCompilationOptions_SetOutputModelExternalInitializersFile)(
        OrtModelCompilationOptions *options, const char *path, size_t threshold);
    OrtStatusPtr (*ModelCompilationOptions_SetOutputModelBuffer)(
        OrtModelCompilationOptions *options, OrtAllocator *allocator, void **buffer, size_t *size);
    OrtStatusPtr (*ModelCompilationOptions_SetEpContextEmbedMode)(
        OrtModelCompilationOptions *options, bool embed);
    OrtStatusPtr (*CompileModel)(const OrtEnv *env, const OrtModelCompilationOptions *options);
    OrtStatusPtr (*ModelCompilationOptions_SetFlags)(OrtModelCompilationOptions *options,
                                                     uint32_t flags); /* 23 */
    OrtStatusPtr (*ModelCompilationOptions_SetEpContextBinaryInformation)(
        OrtModelCompilationOptions *options, const char *folder, const char *model_name);
    OrtStatusPtr (*ModelCompilationOptions_SetGraphOptimizationLevel)(
        OrtModelCompilationOptions *options, GraphOptimizationLevel level);
    OrtStatusPtr (*ModelCompilationOptions_SetOutputModelWriteFunc)(
        OrtModelCompilationOptions *options, OrtWriteBufferFunc write, void *state);
    OrtStatusPtr (*ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc)(
        OrtModelCompilationOptions *options, OrtGetInitializerLocationFunc locate, void *state);
    OrtStatusPtr (*ModelCompilationOptions_SetInputModel)(OrtModelCompilationOptions *options,
                                                          const OrtModel *model); /* 24 */
};

/* ---- the functions ---- */

struct OrtApi {
#define SDX_ORT_MEMBER(index, since, result, name, arguments) result(*name) arguments;
    SDX_ORT_SLOTS(SDX_ORT_MEMBER)
#undef SDX_ORT_MEMBER
};

typedef struct OrtApiBase {
    const OrtApi *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void);
} OrtApiBase;

/* What the library exports. */
const OrtApiBase *OrtGetApiBase(void);
OrtStatusPtr OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions *options,
                                                          int use_arena);

#ifdef __cplusplus
}
#endif
#endif
