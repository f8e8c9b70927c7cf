# SPDX-License-Identifier: Apache-2.0
"""The models that bench/peers times: found, made, and converted for engines that read no ONNX.

Each becomes a folder below build/bench/cases (or SDX_BENCH_CACHE) with model.onnx, its arrays as
.npy and as test_data_set_0/, case.json (names, work of a run), and the converted forms,
which are kept until the model is newer. Some models are made here: call_add (one Add), gemm_large and
conv_large_* (one operator each, the work counted), tdnn where the zoo has none, and NAME.weight8 and
NAME.weight4: the model NAME with the constants of its products in blocks of 32 integers (MatMulNBits);
NAME.weight8i, NAME.weight4i: with integer arithmetic (accuracy_level 4).
"""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

CONVERT_SECONDS = 600
BLOCK = 32
LARGE = {"gemm_large": None,  # 1024 x 1024 x 1024
         # channels in and out, kernel, stride, height and width
         "conv_large_1x1": (256, 256, 1, 1, 56), "conv_large_3x3": (128, 128, 3, 1, 56),
         "conv_large_3x3_s2": (256, 256, 3, 2, 56)}


# ---- arrays ----

def write_arrays(case, kind, values):
    from onnx import numpy_helper
    import numpy
    (case / "test_data_set_0").mkdir(exist_ok=True)
    for i, (name, value) in enumerate(values):
        numpy.save(case / f"{kind}_{i}.npy", value)
        data = numpy_helper.from_array(value, name).SerializeToString()
        (case / f"test_data_set_0/{kind}_{i}.pb").write_bytes(data)


def read_arrays(folder, kind):
    import onnx
    found = []
    while (folder / f"{kind}_{len(found)}.pb").is_file():
        tensor = onnx.load_tensor(str(folder / f"{kind}_{len(found)}.pb"))
        found.append((tensor.name, onnx.numpy_helper.to_array(tensor)))
    return found


# ---- made models ----

def save_graph(case, nodes, feeds, constants, output, result=None):
    """A model of f32 values with its arrays; result: what comes out, or the reference computes it."""
    from onnx import TensorProto, ValueInfoProto, helper, numpy_helper, save
    from onnx.reference import ReferenceEvaluator

    def info(name, x):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape)
    graph = helper.make_graph(nodes, case.name, [info(*feed) for feed in feeds], [ValueInfoProto(name=output)],
                              [numpy_helper.from_array(x, name) for name, x in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if result is None:
        result = ReferenceEvaluator(model).run(None, dict(feeds))[0]
    model.graph.output[0].CopyFrom(info(output, result))
    save(model, str(case / "model.onnx"))
    write_arrays(case, "input", feeds)
    write_arrays(case, "output", [(output, result)])


def save_node(case, op, feeds, constants, result, **attributes):
    """A model of one node, with its arrays."""
    from onnx import helper
    node = helper.make_node(op, [name for name, _ in feeds + constants], ["y"], **attributes)
    save_graph(case, [node], feeds, constants, "y", result)


def make_add(case, _name):
    import numpy
    four = numpy.arange(4, dtype=numpy.float32)
    save_node(case, "Add", [("a", four), ("b", four)], [], four + four)


def make_large(case, name):
    """One large product or convolution; the operations of a run."""
    import numpy
    random = numpy.random.default_rng(1)
    if LARGE[name] is None:
        a, b = (random.standard_normal((1024, 1024), numpy.float32) for _ in range(2))
        save_node(case, "MatMul", [("a", a)], [("b", b)], a @ b)
        return 2.0 * 1024 ** 3
    channels, filters, kernel, stride, size = LARGE[name]
    pad = kernel // 2
    x = random.standard_normal((1, channels, size, size), numpy.float32)
    w = random.standard_normal((filters, channels, kernel, kernel), numpy.float32)
    padded = numpy.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
    y = numpy.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride], w, optimize=True)
    save_node(case, "Conv", [("x", x)], [("w", w)], numpy.ascontiguousarray(y),
              kernel_shape=[kernel] * 2, pads=[pad] * 4, strides=[stride] * 2)
    return 2.0 * y.size * channels * kernel * kernel


def make_tdnn(case, _name):
    """The time-delay network of x-vectors (Snyder and others, 2018) on 300 frames of 24 features: five
    layers over frames, their mean and deviation, two layers of 512. Weights are random."""
    import numpy
    from onnx import helper
    random = numpy.random.default_rng(1)
    nodes, constants = [], []

    def constant(name, array):
        constants.append((name, array))
        return name

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def weights(name, *shape):
        scale = (2 / numpy.prod(shape[1:])) ** 0.5
        return constant(name, (random.standard_normal(shape) * scale).astype(numpy.float32))
    at = "features"
    frames = [(24, 512, 5, 1), (512, 512, 3, 2), (512, 512, 3, 3), (512, 512, 1, 1), (512, 1500, 1, 1)]
    for i, (channels, filters, kernel, dilation) in enumerate(frames):
        bias = constant(f"b{i}", numpy.full(filters, 0.01, numpy.float32))
        at = add("Conv", [at, weights(f"w{i}", filters, channels, kernel), bias], f"c{i}",
                 kernel_shape=[kernel], dilations=[dilation])
        at = add("Relu", [at], f"r{i}")
        facts = [constant(f"norm_{k}{i}", random.uniform(0.5, 1.5, filters).astype(numpy.float32))
                 for k in ("scale", "shift", "mean", "var")]
        at = add("BatchNormalization", [at, *facts], f"n{i}")
    mean = add("ReduceMean", [at], "mean", axes=[2], keepdims=0)
    square = add("ReduceMean", [add("Mul", [at, at], "squares")], "square", axes=[2], keepdims=0)
    spread = add("Sub", [square, add("Mul", [mean, mean], "mean2")], "variance")
    spread = add("Sqrt", [add("Relu", [spread], "spread")], "deviation")
    at = add("Concat", [mean, spread], "statistics", axis=1)
    for i, depth in enumerate((3000, 512)):
        bias = constant(f"gb{i}", numpy.zeros(512, numpy.float32))
        at = add("Gemm", [at, weights(f"g{i}", 512, depth), bias], f"embedding{i}", transB=1)
        if i == 0:
            at = add("Relu", [at], "hidden")
    x = random.standard_normal((1, 24, 300), numpy.float32)
    save_graph(case, nodes, [("features", x)], constants, at)


def pack_blocks(weights, bits):
    """MatMulNBits' operands for weights of shape [K, N]: blocks along K, symmetric about the middle."""
    import numpy
    depth, width = weights.shape
    blocks = -(-depth // BLOCK)
    padded = numpy.zeros((width, blocks * BLOCK), numpy.float32)
    padded[:, :depth] = weights.T
    padded = padded.reshape(width, blocks, BLOCK)
    middle = 1 << (bits - 1)
    scales = numpy.abs(padded).max(axis=2) / (middle - 1)
    steps = padded / numpy.where(scales == 0, 1, scales)[..., None]
    packed = (numpy.rint(steps) + middle).clip(0, 2 * middle - 1).astype(numpy.uint8)
    if bits == 4:
        packed = packed[..., 0::2] | packed[..., 1::2] << 4
    return packed, scales.astype(numpy.float32)


def make_weight_only(source, target, bits, level):
    """The model with each product by a constant matrix of f32 as MatMulNBits of that accuracy_level."""
    import onnx
    from onnx import helper, numpy_helper
    model = onnx.load(str(source))
    constants = {item.name: item for item in model.graph.initializer if item.data_type == 1}
    nodes, made, count = [], {}, 0
    for node in model.graph.node:
        given = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        plain = node.op_type == "MatMul" or node.op_type == "Gemm" and not given.get("transA", 0) and \
            given.get("alpha", 1.0) == given.get("beta", 1.0) == 1.0
        if not plain or len(constants.get(node.input[1], onnx.TensorProto()).dims) != 2:
            nodes.append(node)
            continue
        name, turned = node.input[1], bool(given.get("transB", 0))
        weights = numpy_helper.to_array(constants[name])
        depth, width = weights.shape[::-1] if turned else weights.shape
        if (name, turned) not in made:
            stem = f"{name}_{bits}{'t' * turned}"
            packed, scales = pack_blocks(weights.T if turned else weights, bits)
            model.graph.initializer.extend([numpy_helper.from_array(packed, f"{stem}_packed"),
                                            numpy_helper.from_array(scales, f"{stem}_scales")])
            made[name, turned] = [f"{stem}_packed", f"{stem}_scales"]
        bias = list(node.input[2:])
        product = f"{node.output[0]}_product" if bias else node.output[0]
        nodes.append(helper.make_node(
            "MatMulNBits", [node.input[0], *made[name, turned]], [product], f"{node.name}_{count}",
            domain="com.microsoft", K=depth, N=width, bits=bits, block_size=BLOCK,
            accuracy_level=level))
        if bias:
            nodes.append(helper.make_node("Add", [product, bias[0]], [node.output[0]]))
        count += 1
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input}
    for item in [item for item in model.graph.initializer if item.name not in used]:
        model.graph.initializer.remove(item)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, str(target))


# ---- found models ----

def find_folder(name, zoo):
    for folder in [Path(name)] + [Path(base) / name for base in zoo]:
        if (folder / "model.onnx").is_file():
            return folder.resolve()
    return None


def describe(case, work):
    """Writes case.json: names of inputs and outputs, `work`, and the bytes of constant operands that
    products read."""
    import onnx
    model = onnx.load(str(case / "model.onnx"), load_external_data=False)
    sizes = {}
    for item in model.graph.initializer:
        count = 1
        for length in item.dims:
            count *= length
        sizes[item.name] = count * onnx.helper.tensor_dtype_to_np_dtype(item.data_type).itemsize
    read = sum(sizes.get(name, 0) for node in model.graph.node
               if node.op_type in ("MatMul", "Gemm") for name in node.input[:2])
    facts = {"inputs": [item.name for item in model.graph.input if item.name not in sizes],
             "outputs": [item.name for item in model.graph.output],
             "flops": work, "bytes": read}
    (case / "case.json").write_text(json.dumps(facts))


def link_model(case, folder):
    link = case / "model.onnx"
    link.unlink(missing_ok=True)
    link.symlink_to(folder / "model.onnx")
    for beside in folder.glob("*.data"):
        if not (case / beside.name).exists():
            (case / beside.name).symlink_to(beside)


def prepare(name, zoo, cases):
    """A folder below `cases` with the model and its arrays in every form a worker reads; None: not
    there."""
    import onnx
    case = cases / Path(name).name
    case.mkdir(parents=True, exist_ok=True)
    makers = {"call_add": make_add, **dict.fromkeys(LARGE, make_large)}
    if find_folder(name, zoo) is None:
        makers["tdnn"] = make_tdnn
    if name in makers:
        if not (case / "case.json").is_file():
            describe(case, makers[name](case, name))
        return case
    one_row = name.startswith("call_")
    base, _, bits = name.partition(".weight")
    folder = find_folder(name[5:] if one_row else base, zoo)
    if folder is None:
        return None
    if not bits:
        link_model(case, folder)
    elif outdated(case, "model.onnx", folder / "model.onnx"):
        make_weight_only(folder / "model.onnx", case / "model.onnx", int(bits[0]), 4 if bits[1:] else 0)
    try:
        inputs = read_arrays(folder / "test_data_set_0", "input")
        outputs = [] if one_row else read_arrays(folder / "test_data_set_0", "output")
    except (ValueError, TypeError, onnx.onnx_cpp2py_export.checker.ValidationError):
        outputs = []
    if one_row:
        inputs = [(name, value[:1]) for name, value in inputs]
    write_arrays(case, "input", inputs)
    write_arrays(case, "output", outputs)
    describe(case, None)
    return case


# ---- conversions ----

def outdated(case, made, source=None):
    """Whether the file is absent or older than the model it was made of."""
    made, source = case / made, source or case / "model.onnx"
    return not made.is_file() or made.stat().st_mtime < source.stat().st_mtime


def call(command, case):
    """The last line that a converter printed when it failed or ran too long; None."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, cwd=case, text=True,
                              timeout=CONVERT_SECONDS, errors="replace", check=False)
    except subprocess.TimeoutExpired:
        return f"the conversion ran past {CONVERT_SECONDS} s"
    lines = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").split("\n")
    return None if done.returncode == 0 else f"does not convert: {lines[-1][-120:]}"


def convert_mnn(case):
    tool = shutil.which("mnnconvert", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if tool is None:
        return "mnnconvert is not installed"
    return call([tool, "-f", "ONNX", "--modelFile", case / "model.onnx", "--MNNModel",
                 case / "model.mnn", "--bizCode", "bench"], case)


def convert_ncnn(case):
    """By the program pnnx, which lies in the package of that name and needs nothing of PyTorch."""
    spec = importlib.util.find_spec("pnnx")
    if spec is None:
        return "pnnx is not installed"
    inputs = sorted(case.glob("input_*.npy"), key=lambda path: int(path.stem[6:]))
    fault = call([Path(spec.origin).parent / "pnnx", "model.onnx",
                  "input=" + ",".join(path.name for path in inputs), "fp16=0",
                  "ncnnparam=model.param", "ncnnbin=model.bin"], case)
    for path in [*case.glob("*pnnx*"), *case.glob("model_ncnn.py")]:
        path.unlink()
    return fault


def convert_plan(case, build):
    return call([build / "sardonyx", "compile", case / "model.onnx", "-o", case / "model.sdx", "--inputs",
                 case / "test_data_set_0"], case)


def convert(engine, case, build):
    """Makes what the engine reads, unless it is there; why it cannot, or None. Faults are kept too."""
    if engine == "own-plan":  # good for one version of the library only
        return convert_plan(case, build)
    known = {"mnn": ("model.mnn", convert_mnn), "ncnn": ("model.param", convert_ncnn)}
    if engine not in known:
        return None
    made, function = known[engine]
    noted = case / f"{engine}.failed"
    if not outdated(case, noted.name):
        return noted.read_text()
    if not outdated(case, made):
        return None
    (case / made).unlink(missing_ok=True)
    fault = function(case)
    if fault is None and not (case / made).is_file():
        fault = "does not convert"
    noted.unlink(missing_ok=True)
    if fault and "not installed" not in fault:
        noted.write_text(fault)
    return fault
