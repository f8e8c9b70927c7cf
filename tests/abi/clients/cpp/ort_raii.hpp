// SPDX-License-Identifier: Apache-2.0
// Classes over the ONNX Runtime ABI in the style in which C++ programs use it: every function a
// call through the table, every status an exception, every handle freed by its owner. Header only;
// the program links libonnxruntime.so.1.
#ifndef SARDONYX_TESTS_ORT_RAII_HPP
#define SARDONYX_TESTS_ORT_RAII_HPP

#include <sardonyx/ort.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace raii
{

constexpr uint32_t api_version = 24; // what a program compiled two years ago asks for

inline const OrtApi &api()
{
    static const OrtApi *const table = OrtGetApiBase()->GetApi(api_version);
    return *table;
}

class Error : public std::runtime_error
{
  public:
    Error(OrtErrorCode code, const std::string &message) : std::runtime_error(message), code_(code)
    {
    }
    OrtErrorCode code() const
    {
        return code_;
    }

  private:
    OrtErrorCode code_;
};

inline void check(OrtStatus *status)
{
    if (!status) return;
    Error error(api().GetErrorCode(status), api().GetErrorMessage(status));
    api().ReleaseStatus(status);
    throw error;
}

// A handle that its owner frees through one member of the table.
template <typename T, void (*OrtApi::*Release)(T *)> struct Deleter {
    void operator()(T *handle) const
    {
        (api().*Release)(handle);
    }
};
template <typename T, void (*OrtApi::*Release)(T *)>
using Handle = std::unique_ptr<T, Deleter<T, Release>>;

using EnvHandle = Handle<OrtEnv, &OrtApi::ReleaseEnv>;
using OptionsHandle = Handle<OrtSessionOptions, &OrtApi::ReleaseSessionOptions>;
using RunOptionsHandle = Handle<OrtRunOptions, &OrtApi::ReleaseRunOptions>;
using SessionHandle = Handle<OrtSession, &OrtApi::ReleaseSession>;
using ValueHandle = Handle<OrtValue, &OrtApi::ReleaseValue>;
using MemoryHandle = Handle<OrtMemoryInfo, &OrtApi::ReleaseMemoryInfo>;
using TypeHandle = Handle<OrtTypeInfo, &OrtApi::ReleaseTypeInfo>;
using ShapeHandle = Handle<OrtTensorTypeAndShapeInfo, &OrtApi::ReleaseTensorTypeAndShapeInfo>;
using BindingHandle = Handle<OrtIoBinding, &OrtApi::ReleaseIoBinding>;
using MetadataHandle = Handle<OrtModelMetadata, &OrtApi::ReleaseModelMetadata>;

// The element type of a C++ type.
template <typename T> struct ElementType;
#define RAII_ELEMENT(type, number)                                                                 \
    template <> struct ElementType<type> {                                                         \
        static constexpr ONNXTensorElementDataType value = ONNX_TENSOR_ELEMENT_DATA_TYPE_##number; \
    };
RAII_ELEMENT(float, FLOAT)
RAII_ELEMENT(double, DOUBLE)
RAII_ELEMENT(int32_t, INT32)
RAII_ELEMENT(int64_t, INT64)
RAII_ELEMENT(uint8_t, UINT8)
RAII_ELEMENT(uint16_t, FLOAT16) // its bits
RAII_ELEMENT(bool, BOOL)
#undef RAII_ELEMENT

class Allocator
{
  public:
    Allocator()
    {
        check(api().GetAllocatorWithDefaultOptions(&allocator_));
    }
    OrtAllocator *get() const
    {
        return allocator_;
    }
    // A text that the library allocated; freed through the allocator's own members.
    std::string take(char *text) const
    {
        if (!text) return "(none)";
        std::string copy(text);
        free(text);
        return copy;
    }
    void free(void *block) const
    {
        allocator_->Free(allocator_, block);
    }

  private:
    OrtAllocator *allocator_ = nullptr;
};

class MemoryInfo
{
  public:
    MemoryInfo(OrtAllocatorType allocator, OrtMemType memory)
    {
        OrtMemoryInfo *made = nullptr;
        check(api().CreateCpuMemoryInfo(allocator, memory, &made));
        handle_.reset(made);
    }
    const OrtMemoryInfo *get() const
    {
        return handle_.get();
    }
    std::string name() const
    {
        const char *name = nullptr;
        check(api().MemoryInfoGetName(get(), &name));
        return name;
    }
    int id() const
    {
        int id = -1;
        check(api().MemoryInfoGetId(get(), &id));
        return id;
    }
    OrtMemoryInfoDeviceType device() const
    {
        OrtMemoryInfoDeviceType type = OrtMemoryInfoDeviceType_NPU;
        api().MemoryInfoGetDeviceType(get(), &type);
        return type;
    }

  private:
    MemoryHandle handle_;
};

struct Shape {
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    std::vector<int64_t> dims;
    std::vector<std::string> names;
    size_t count = 0; // of elements

    explicit Shape(const OrtTensorTypeAndShapeInfo *info)
    {
        size_t rank = 0;
        check(api().GetTensorElementType(info, &type));
        check(api().GetDimensionsCount(info, &rank));
        dims.resize(rank);
        check(api().GetDimensions(info, dims.data(), rank));
        std::vector<const char *> symbols(rank);
        check(api().GetSymbolicDimensions(info, symbols.data(), rank));
        names.assign(symbols.begin(), symbols.end());
        bool known = true;
        for (int64_t dim : dims)
            known = known && dim >= 0;
        if (known) check(api().GetTensorShapeElementCount(info, &count));
    }
};

class Value
{
  public:
    Value() = default;
    explicit Value(OrtValue *value) : handle_(value)
    {
    }
    template <typename T>
    static Value tensor(const MemoryInfo &memory, T *data, size_t count,
                        const std::vector<int64_t> &dims)
    {
        OrtValue *made = nullptr;
        check(api().CreateTensorWithDataAsOrtValue(memory.get(), data, count * sizeof(T),
                                                   dims.data(), dims.size(), ElementType<T>::value,
                                                   &made));
        return Value(made);
    }
    static Value allocated(const Allocator &allocator, const std::vector<int64_t> &dims,
                           ONNXTensorElementDataType type)
    {
        OrtValue *made = nullptr;
        check(api().CreateTensorAsOrtValue(allocator.get(), dims.data(), dims.size(), type, &made));
        return Value(made);
    }
    static Value of(ONNXType kind, const std::vector<Value> &items)
    {
        std::vector<const OrtValue *> handles;
        for (const Value &item : items)
            handles.push_back(item.get());
        OrtValue *made = nullptr;
        check(api().CreateValue(handles.data(), handles.size(), kind, &made));
        return Value(made);
    }
    const OrtValue *get() const
    {
        return handle_.get();
    }
    ONNXType kind() const
    {
        ONNXType kind = ONNX_TYPE_UNKNOWN;
        check(api().GetValueType(get(), &kind));
        return kind;
    }
    Shape shape() const
    {
        OrtTensorTypeAndShapeInfo *info = nullptr;
        check(api().GetTensorTypeAndShape(get(), &info));
        ShapeHandle owner(info);
        return Shape(info);
    }
    template <typename T> const T *data() const
    {
        const void *data = nullptr;
        check(api().GetTensorData(get(), &data));
        return static_cast<const T *>(data);
    }
    template <typename T> T *mutable_data()
    {
        void *data = nullptr;
        check(api().GetTensorMutableData(handle_.get(), &data));
        return static_cast<T *>(data);
    }
    void fill(const std::vector<const char *> &texts)
    {
        check(api().FillStringTensor(handle_.get(), texts.data(), texts.size()));
    }
    std::string text(size_t index) const
    {
        size_t length = 0;
        check(api().GetStringTensorElementLength(get(), index, &length));
        std::string out(length, 0);
        check(api().GetStringTensorElement(get(), length, index, &out[0]));
        return out;
    }
    size_t count() const
    {
        size_t count = 0;
        check(api().GetValueCount(get(), &count));
        return count;
    }
    Value item(int index, const Allocator &allocator) const
    {
        OrtValue *out = nullptr;
        check(api().GetValue(get(), index, allocator.get(), &out));
        return Value(out);
    }

  private:
    ValueHandle handle_;
};

class Env
{
  public:
    Env(OrtLoggingLevel level, const char *name)
    {
        OrtEnv *made = nullptr;
        check(api().CreateEnv(level, name, &made));
        handle_.reset(made);
        check(api().SetLanguageProjection(made, ORT_PROJECTION_CPLUSPLUS));
    }
    OrtEnv *get() const
    {
        return handle_.get();
    }

  private:
    EnvHandle handle_;
};

class SessionOptions
{
  public:
    SessionOptions()
    {
        OrtSessionOptions *made = nullptr;
        check(api().CreateSessionOptions(&made));
        handle_.reset(made);
    }
    OrtSessionOptions *get() const
    {
        return handle_.get();
    }
    SessionOptions &threads(int intra, int inter)
    {
        check(api().SetIntraOpNumThreads(get(), intra));
        check(api().SetInterOpNumThreads(get(), inter));
        return *this;
    }
    SessionOptions &level(int level)
    {
        check(api().SetSessionGraphOptimizationLevel(get(),
                                                     static_cast<GraphOptimizationLevel>(level)));
        return *this;
    }
    SessionOptions &entry(const char *key, const char *value)
    {
        check(api().AddSessionConfigEntry(get(), key, value));
        return *this;
    }
    SessionOptions &dimension(const char *name, int64_t size)
    {
        check(api().AddFreeDimensionOverrideByName(get(), name, size));
        return *this;
    }
    SessionOptions &provider(const char *name)
    {
        check(api().SessionOptionsAppendExecutionProvider(get(), name, nullptr, nullptr, 0));
        return *this;
    }

  private:
    OptionsHandle handle_;
};

class RunOptions
{
  public:
    RunOptions()
    {
        OrtRunOptions *made = nullptr;
        check(api().CreateRunOptions(&made));
        handle_.reset(made);
    }
    OrtRunOptions *get() const
    {
        return handle_.get();
    }
    void tag(const char *tag)
    {
        check(api().RunOptionsSetRunTag(get(), tag));
    }
    std::string tag() const
    {
        const char *tag = nullptr;
        check(api().RunOptionsGetRunTag(get(), &tag));
        return tag;
    }
    void terminate(bool set)
    {
        check(set ? api().RunOptionsSetTerminate(get()) : api().RunOptionsUnsetTerminate(get()));
    }

  private:
    RunOptionsHandle handle_;
};

class Session
{
  public:
    Session(const Env &env, const std::string &path, const SessionOptions &options)
    {
        OrtSession *made = nullptr;
        check(api().CreateSession(env.get(), path.c_str(), options.get(), &made));
        handle_.reset(made);
    }
    Session(const Env &env, const std::vector<char> &bytes, const SessionOptions &options)
    {
        OrtSession *made = nullptr;
        check(api().CreateSessionFromArray(env.get(), bytes.data(), bytes.size(), options.get(),
                                           &made));
        handle_.reset(made);
    }
    OrtSession *get() const
    {
        return handle_.get();
    }
    std::vector<Value> run(const std::vector<const char *> &inputs,
                           const std::vector<Value> &values,
                           const std::vector<const char *> &outputs,
                           const RunOptions *options = nullptr) const
    {
        std::vector<const OrtValue *> in;
        for (const Value &value : values)
            in.push_back(value.get());
        std::vector<OrtValue *> out(outputs.size());
        check(api().Run(get(), options ? options->get() : nullptr, inputs.data(), in.data(),
                        in.size(), outputs.data(), outputs.size(), out.data()));
        std::vector<Value> results;
        for (OrtValue *value : out)
            results.emplace_back(value);
        return results;
    }
    std::vector<std::string> names(bool input) const
    {
        size_t count = 0;
        check(input ? api().SessionGetInputCount(get(), &count)
                    : api().SessionGetOutputCount(get(), &count));
        std::vector<std::string> names;
        Allocator allocator;
        for (size_t i = 0; i < count; i++) {
            char *name = nullptr;
            check(input ? api().SessionGetInputName(get(), i, allocator.get(), &name)
                        : api().SessionGetOutputName(get(), i, allocator.get(), &name));
            names.push_back(allocator.take(name));
        }
        return names;
    }
    TypeHandle type(bool input, size_t index) const
    {
        OrtTypeInfo *type = nullptr;
        check(input ? api().SessionGetInputTypeInfo(get(), index, &type)
                    : api().SessionGetOutputTypeInfo(get(), index, &type));
        return TypeHandle(type);
    }
    MetadataHandle metadata() const
    {
        OrtModelMetadata *made = nullptr;
        check(api().SessionGetModelMetadata(get(), &made));
        return MetadataHandle(made);
    }

  private:
    SessionHandle handle_;
};

class IoBinding
{
  public:
    explicit IoBinding(const Session &session) : session_(session)
    {
        OrtIoBinding *made = nullptr;
        check(api().CreateIoBinding(session.get(), &made));
        handle_.reset(made);
    }
    void input(const char *name, const Value &value)
    {
        check(api().BindInput(handle_.get(), name, value.get()));
    }
    void output(const char *name, const Value &value)
    {
        check(api().BindOutput(handle_.get(), name, value.get()));
    }
    void output(const char *name, const MemoryInfo &memory)
    {
        check(api().BindOutputToDevice(handle_.get(), name, memory.get()));
    }
    void run()
    {
        check(api().SynchronizeBoundInputs(handle_.get()));
        check(api().RunWithBinding(session_.get(), nullptr, handle_.get()));
        check(api().SynchronizeBoundOutputs(handle_.get()));
    }
    void clear()
    {
        api().ClearBoundInputs(handle_.get());
        api().ClearBoundOutputs(handle_.get());
    }
    std::vector<Value> outputs() const
    {
        Allocator allocator;
        OrtValue **values = nullptr;
        size_t count = 0;
        check(api().GetBoundOutputValues(handle_.get(), allocator.get(), &values, &count));
        std::vector<Value> out;
        for (size_t i = 0; i < count; i++)
            out.emplace_back(values[i]);
        if (values) allocator.free(values);
        return out;
    }

  private:
    const Session &session_;
    BindingHandle handle_;
};

} // namespace raii
#endif
