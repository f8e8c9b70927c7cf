// SPDX-License-Identifier: Apache-2.0
// A C++ program linked with libonnxruntime.so.1: `raii_client MODELS` prints one line a check.
#include "ort_raii.hpp"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <thread>

using raii::Allocator;
using raii::api;
using raii::MemoryInfo;
using raii::RunOptions;
using raii::Session;
using raii::SessionOptions;
using raii::Shape;
using raii::Value;

namespace
{

raii::Env *env;
MemoryInfo *cpu;
std::string folder;

void say(const std::string &name, const std::string &text)
{
    std::string line = name + " | ";
    for (char c : text) {
        if (c == '\n')
            line += "\\n";
        else if (c == '\\')
            line += "\\\\";
        else
            line += c;
    }
    std::puts(line.c_str());
    std::fflush(stdout);
}

// A check that may throw; prints ok when it does not.
void attempt(const std::string &name, const std::function<void()> &body)
{
    try {
        body();
        say(name, "ok");
    } catch (const raii::Error &error) {
        say(name, "code=" + std::to_string(error.code()) + " " + error.what());
    }
}

template <typename T> void put(std::ostream &out, const Value &value, size_t count)
{
    const T *data = value.data<T>();
    for (size_t i = 0; i < count; i++)
        out << ' ' << +data[i];
}

std::string shape_text(const Shape &shape)
{
    std::ostringstream out;
    out << "type" << shape.type << '[';
    for (size_t i = 0; i < shape.dims.size(); i++) {
        out << (i ? "," : "");
        if (shape.dims[i] >= 0)
            out << shape.dims[i];
        else
            out << (shape.names[i].empty() ? "?" : shape.names[i]);
    }
    out << ']';
    return out.str();
}

void say_tensor(const std::string &name, const Value &value)
{
    Shape shape = value.shape();
    std::ostringstream out;
    out.precision(8);
    out << shape_text(shape);
    switch (shape.type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: put<float>(out, value, shape.count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: put<double>(out, value, shape.count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: put<int32_t>(out, value, shape.count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: put<int64_t>(out, value, shape.count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL: put<bool>(out, value, shape.count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: put<uint16_t>(out, value, shape.count); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING:
        for (size_t i = 0; i < shape.count; i++)
            out << " \"" << value.text(i) << '"';
        break;
    default: out << " ?"; break;
    }
    say(name, out.str());
}

void say_value(const std::string &name, const Value &value)
{
    ONNXType kind = value.kind();
    if (kind == ONNX_TYPE_TENSOR) {
        say_tensor(name, value);
        return;
    }
    say(name, "kind " + std::to_string(kind) + " of " + std::to_string(value.count()));
    Allocator allocator;
    for (size_t i = 0; i < value.count(); i++)
        say_value(name + "." + std::to_string(i), value.item(static_cast<int>(i), allocator));
}

Session open(const std::string &name)
{
    return Session(*env, folder + "/" + name + ".onnx", SessionOptions());
}

template <typename T>
void run(const std::string &name, const Session &session, std::vector<T> data,
         const std::vector<int64_t> &dims)
{
    attempt(name, [&] {
        std::vector<Value> in;
        in.push_back(Value::tensor(*cpu, data.data(), data.size(), dims));
        say_value(name, session.run({"x"}, in, {session.names(false)[0].c_str()})[0]);
    });
}

void say_type(const std::string &name, const OrtTypeInfo *type)
{
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    raii::check(api().GetOnnxTypeFromTypeInfo(type, &kind));
    if (kind == ONNX_TYPE_TENSOR) {
        const OrtTensorTypeAndShapeInfo *info = nullptr;
        raii::check(api().CastTypeInfoToTensorInfo(type, &info));
        say(name, shape_text(Shape(info)));
    } else if (kind == ONNX_TYPE_SEQUENCE) {
        const OrtSequenceTypeInfo *sequence = nullptr;
        OrtTypeInfo *element = nullptr;
        raii::check(api().CastTypeInfoToSequenceTypeInfo(type, &sequence));
        raii::check(api().GetSequenceElementType(sequence, &element));
        raii::TypeHandle owner(element);
        say_type(name + ".element", element);
    } else {
        const OrtMapTypeInfo *map = nullptr;
        ONNXTensorElementDataType key = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
        raii::check(api().CastTypeInfoToMapTypeInfo(type, &map));
        raii::check(api().GetMapKeyType(map, &key));
        say(name, "map of type" + std::to_string(key));
    }
}

void check_ends()
{
    for (const char *model : {"linear", "types", "scalar", "two_inputs", "zipmap_string",
                              "zipmap_int64", "sequence", "sequence_in"}) {
        attempt(std::string("ends.") + model, [&] {
            Session session = open(model);
            for (bool input : {true, false}) {
                std::vector<std::string> names = session.names(input);
                for (size_t i = 0; i < names.size(); i++)
                    say_type(std::string("ends.") + model + "." + names[i],
                             session.type(input, i).get());
            }
        });
    }
}

void check_runs()
{
    Session linear = open("linear");
    run<float>("run.float", linear, {1, 2, 3, 4, -1, -2, -3, -4}, {2, 4});
    run<float>("run.one", linear, {1, 2, 3, 4}, {1, 4});
    run<float>("run.empty", linear, {}, {0, 4});
    run<float>("run.scalar", open("scalar"), {2.5f}, {});
    run<int64_t>("run.int64", open("int64"), {1, -2, 1LL << 60}, {3});
    run<int32_t>("run.int32", open("int32"), {1, -2, 1 << 30}, {3});
    run<double>("run.double", open("float64"), {0.5, -2}, {2});
    run<uint16_t>("run.half", open("float16"), {0x3c00, 0xc000, 0x3555}, {3});
    bool bools[] = {true, false, true};
    std::vector<Value> in;
    in.push_back(Value::tensor(*cpu, bools, 3, {3}));
    say_value("run.bool", open("bool").run({"x"}, in, {"y"})[0]);
    attempt("run.string", [] {
        Allocator allocator;
        std::vector<Value> texts;
        texts.push_back(Value::allocated(allocator, {3}, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING));
        texts[0].fill({"a", "", "gr\xc3\xbc\xc3\x9f"});
        say_value("run.string", open("string").run({"x"}, texts, {"y"})[0]);
    });
    attempt("run.allocated", [] {
        Allocator allocator;
        std::vector<Value> made;
        made.push_back(Value::allocated(allocator, {1, 4}, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT));
        for (int i = 0; i < 4; i++)
            made[0].mutable_data<float>()[i] = static_cast<float>(i);
        say_value("run.allocated", open("linear").run({"x"}, made, {"y"})[0]);
    });
    std::ifstream file(folder + "/linear.onnx", std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    run<float>("run.memory", Session(*env, bytes, SessionOptions()), {1, 2, 3, 4}, {1, 4});
    bytes.resize(bytes.size() / 2);
    attempt("error.memory", [&] { Session(*env, bytes, SessionOptions()); });
    attempt("error.no_bytes", [&] { Session(*env, std::vector<char>(), SessionOptions()); });
}

void check_containers()
{
    run<float>("zipmap.string", open("zipmap_string"), {1, 2, 3, 4, 5, 6}, {2, 3});
    run<float>("zipmap.int64", open("zipmap_int64"), {1, 2, 3, 4, 5, 6}, {2, 3});
    run<float>("zipmap.empty", open("zipmap_int64"), {}, {0, 3});
    run<float>("sequence", open("sequence"), {1, 2, 3, 4, 5, 6}, {3, 2});
    attempt("sequence.in", [] {
        float data[] = {1, 2, 3, 4};
        std::vector<Value> rows, in;
        rows.push_back(Value::tensor(*cpu, data, 2, {1, 2}));
        rows.push_back(Value::tensor(*cpu, data + 2, 2, {1, 2}));
        in.push_back(Value::of(ONNX_TYPE_SEQUENCE, rows));
        say_value("sequence.in", open("sequence_in").run({"rows"}, in, {"y"})[0]);
    });
    attempt("map.made", [] {
        Allocator allocator;
        int64_t keys[] = {2, 1};
        float values[] = {20, 10};
        std::vector<Value> parts;
        parts.push_back(Value::tensor(*cpu, keys, 2, {2}));
        parts.push_back(Value::tensor(*cpu, values, 2, {2}));
        say_value("map.made", Value::of(ONNX_TYPE_MAP, parts));
    });
}

void check_errors()
{
    for (const char *model : {"nofile", "garbage", "empty", "truncated", "badop", "baddomain",
                              "badopset", "badir", "badedge", "badtype", "cycle", "linear"})
        attempt(std::string("error.") + model, [&] { open(model); });
    Session linear = open("linear"), gather = open("gather");
    run<float>("error.dimension", linear, {1, 2, 3, 4, 5}, {1, 5});
    run<float>("error.rank", linear, {1, 2, 3, 4}, {4});
    run<double>("error.type", linear, {1, 2, 3, 4}, {1, 4});
    run<float>("error.input", gather, {1}, {1}); // its input has another name
    attempt("error.kernel", [&] {
        int64_t index[] = {0, 7};
        std::vector<Value> in;
        in.push_back(Value::tensor(*cpu, index, 2, {2}));
        gather.run({"i"}, in, {"y"});
    });
    attempt("error.none", [&] { linear.run({}, {}, {"y"}); });
    float data[] = {1, 2, 3, 4};
    std::vector<Value> in;
    in.push_back(Value::tensor(*cpu, data, 4, {1, 4}));
    attempt("error.output", [&] { linear.run({"x"}, in, {"q"}); });
    attempt("error.small", [&] { Value::tensor(*cpu, data, 3, {1, 4}); });
    attempt("error.negative", [&] { Value::tensor(*cpu, data, 4, {-1, 4}); });
}

void check_metadata()
{
    Session session = open("linear");
    raii::MetadataHandle meta = session.metadata();
    Allocator a;
    char *text = nullptr;
    using Getter = OrtStatusPtr (*OrtApi::*)(const OrtModelMetadata *, OrtAllocator *, char **);
    for (Getter getter : {&OrtApi::ModelMetadataGetProducerName, &OrtApi::ModelMetadataGetGraphName,
                          &OrtApi::ModelMetadataGetDomain, &OrtApi::ModelMetadataGetDescription,
                          &OrtApi::ModelMetadataGetGraphDescription}) {
        raii::check((api().*getter)(meta.get(), a.get(), &text));
        say("meta", a.take(text));
    }
    for (const char *key : {"author", "empty", "absent"}) {
        raii::check(api().ModelMetadataLookupCustomMetadataMap(meta.get(), a.get(), key, &text));
        say(std::string("meta.") + key, a.take(text));
    }
    int64_t version = 0;
    raii::check(api().ModelMetadataGetVersion(meta.get(), &version));
    say("meta.version", std::to_string(version));
}

void check_binding()
{
    Session session = open("linear");
    raii::IoBinding binding(session);
    float x[] = {1, 2, 3, 4}, y[3] = {0};
    Value in = Value::tensor(*cpu, x, 4, {1, 4}), out = Value::tensor(*cpu, y, 3, {1, 3});
    attempt("bind.input", [&] { binding.input("x", in); });
    attempt("bind.unknown", [&] { binding.input("q", in); });
    attempt("bind.output", [&] { binding.output("y", out); });
    attempt("bind.run", [&] { binding.run(); });
    say("bind.memory", std::to_string(y[0]) + " " + std::to_string(y[2]));
    for (const Value &value : binding.outputs())
        say_value("bind.value", value);
    attempt("bind.device", [&] { binding.output("y", *cpu); });
    attempt("bind.again", [&] { binding.run(); });
    for (const Value &value : binding.outputs())
        say_value("bind.value", value);
    binding.clear();
    say("bind.cleared", std::to_string(binding.outputs().size()));
}

void check_options()
{
    attempt("options", [] {
        SessionOptions options;
        options.threads(2, 1).level(ORT_ENABLE_ALL).entry("session.intra_op.allow_spinning", "0");
        options.dimension("N", 1).provider("CPU");
        Session session(*env, folder + "/linear.onnx", options);
        say_type("options.x", session.type(true, 0).get());
        run<float>("options.run", session, {1, 2, 3, 4}, {1, 4});
    });
    for (int level : {0, 1, 2, 3, 99})
        attempt("options.level." + std::to_string(level), [&] {
            SessionOptions options;
            options.level(level).threads(1, 1);
            run<float>("options.level", Session(*env, folder + "/classify.onnx", options),
                       {0, 0, 0, 0}, {1, 4});
        });
    SessionOptions options;
    attempt("options.level.7", [&] { options.level(7); });
    attempt("options.key", [&] { options.entry("", "x"); });
    attempt("options.provider", [&] { options.provider("NoSuch"); });
    attempt("options.xnnpack", [&] { options.provider("XNNPACK"); });
    attempt("options.dimension", [] {
        SessionOptions fixed;
        fixed.dimension("N", 2);
        run<float>("options.dimension", Session(*env, folder + "/linear.onnx", fixed), {1, 2, 3, 4},
                   {1, 4});
    });
}

void check_terminate()
{
    Session session = open("endless");
    auto turn = [&](const char *name, int64_t turns, const RunOptions &options) {
        attempt(name, [&] {
            float x[] = {0};
            std::vector<Value> in;
            in.push_back(Value::tensor(*cpu, &turns, 1, {}));
            in.push_back(Value::tensor(*cpu, x, 1, {1}));
            say_value(name, session.run({"count", "x"}, in, {"y"}, &options)[0]);
        });
    };
    RunOptions options;
    options.tag("mine");
    say("terminate.tag", options.tag());
    turn("terminate.before", 5, options);
    options.terminate(true);
    turn("terminate.set", 5, options);
    options.terminate(false);
    turn("terminate.unset", 5, options);
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        options.terminate(true);
    });
    turn("terminate.thread", INT64_MAX, options);
    other.join();
}

void check_threads()
{
    Session shared = open("linear");
    std::vector<std::thread> threads;
    int wrong[4] = {0};
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 50; i++) {
                float x[] = {float(t), float(i), 0, 0}; // column 0 of w: -4 -1 2 5
                std::vector<Value> in;
                in.push_back(Value::tensor(*cpu, x, 4, {1, 4}));
                Value y = std::move(shared.run({"x"}, in, {"y"})[0]);
                wrong[t] += y.data<float>()[0] != x[0] * -4 - x[1] + 1;
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    say("threads", std::to_string(wrong[0] + wrong[1] + wrong[2] + wrong[3]) + " wrong");
    std::vector<Session> many;
    for (int i = 0; i < 40; i++)
        many.push_back(open("classify"));
    run<float>("many", many[39], {0, 0, 0, 0}, {1, 4});
}

void check_providers()
{
    char **names = nullptr;
    int count = 0;
    raii::check(api().GetAvailableProviders(&names, &count));
    say("providers.last", names[count - 1]);
    raii::check(api().ReleaseAvailableProviders(names, count));
    say("memory",
        cpu->name() + " " + std::to_string(cpu->id()) + " " + std::to_string(cpu->device()));
    say("version.string", OrtGetApiBase()->GetVersionString());
    say("version.build", api().GetBuildInfoString());
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2) return std::fprintf(stderr, "usage: raii_client MODELS\n"), 2;
    folder = argv[1];
    raii::Env the_env(ORT_LOGGING_LEVEL_FATAL, "raii");
    MemoryInfo the_cpu(OrtArenaAllocator, OrtMemTypeDefault);
    env = &the_env;
    cpu = &the_cpu;
    for (void (*part)() :
         {check_ends, check_runs, check_containers, check_errors, check_metadata, check_binding,
          check_options, check_terminate, check_threads, check_providers})
        try {
            part();
        } catch (const raii::Error &error) {
            say("stopped", "code=" + std::to_string(error.code()) + " " + error.what());
        }
    say("end", "reached");
    return 0;
}
