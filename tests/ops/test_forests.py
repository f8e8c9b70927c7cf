# SPDX-License-Identifier: Apache-2.0
"""Random tree ensembles: every test, missing values, infinities, any number of rows, against a walk
in plain Python. The sums have a fixed order, so the results are exact."""
import numpy
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FEATURES = 5
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, numpy.inf, -numpy.inf)
ORDERS = (["LEQ"], ["LT"], ["GT"], ["GTE"], ["LEQ", "LT", "GT", "GTE"], ["LEQ", "EQ", "NEQ", "GT"])
HOLDS = {"LEQ": lambda x, t: x <= t, "LT": lambda x, t: x < t, "GT": lambda x, t: x > t,
         "GTE": lambda x, t: x >= t, "EQ": lambda x, t: x == t, "NEQ": lambda x, t: x != t}


def grow(rng, names, targets, missing, dense):
    """A tree: nodes are (test, feature, threshold, yes, no, missing) or lists of (target, weight)."""
    nodes, open_nodes = {}, [(0, 0)]
    while open_nodes:
        node, depth = open_nodes.pop()
        if depth < int(rng.integers(1, 7)):
            threshold = rng.choice(SPECIAL) if rng.random() < 0.5 else rng.normal()
            yes = 1 + 2 * len(nodes)
            while yes in nodes or any(yes in pair for pair in open_nodes):
                yes += 2
            nodes[node] = (str(rng.choice(names)), int(rng.integers(FEATURES)),
                           numpy.float32(threshold), yes, yes + 1,
                           bool(missing and rng.integers(2)))
            open_nodes += [(yes, depth + 1), (yes + 1, depth + 1)]
        else:
            which = range(targets) if dense else [int(rng.integers(targets))]
            nodes[node] = [(target, numpy.float32(rng.normal())) for target in which]
    return nodes


def tree_lists(trees, kind):
    """The attributes of the trees; kind: "target" or "class"."""
    lists = {key: [] for key in ("treeids", "nodeids", "featureids", "modes", "values",
                                 "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    weights = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    for tree, nodes in enumerate(trees):
        for node in sorted(nodes):
            row = nodes[node]
            if isinstance(row, list):
                for target, weight in row:
                    for key, value in zip(weights, (tree, node, target, float(weight))):
                        weights[key].append(value)
                row = ("LEAF", 0, 0.0, 0, 0, False)
            mode = row[0] if row[0] == "LEAF" else "BRANCH_" + row[0]
            values = (tree, node, row[1], mode, float(row[2]), row[3], row[4], int(row[5]))
            for key, value in zip(lists, values):
                lists[key].append(value)
    return {f"nodes_{key}": value for key, value in lists.items()} | {f"{kind}_{key}": value for key, value in weights.items()}


def save_model(path, node, outputs):
    graph = helper.make_graph(
        [node], "forest", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", FEATURES])], outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18),
                                                      helper.make_opsetid("ai.onnx.ml", 3)],
                                ir_version=9), str(path))


def write_model(path, trees, targets, aggregate):
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=targets,
                            aggregate_function=aggregate, post_transform="NONE", **tree_lists(trees, "target"))
    save_model(path, node, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", targets])])


def walk(nodes, row):
    node = nodes[0]
    while not isinstance(node, list):
        test, feature, threshold, yes, no, missing = node
        x = row[feature]
        node = nodes[yes if HOLDS[test](x, threshold) or (missing and numpy.isnan(x)) else no]
    return node


def expected(trees, x, targets, aggregate):
    y = numpy.zeros((len(x), targets), numpy.float32)
    for i, row in enumerate(x):
        seen = set()
        for nodes in trees:
            for target, weight in walk(nodes, row):
                if aggregate in ("SUM", "AVERAGE") or target not in seen:
                    y[i, target] += weight
                else:
                    y[i, target] = (min if aggregate == "MIN" else max)(y[i, target], weight)
                seen.add(target)
    return y / numpy.float32(len(trees)) if aggregate == "AVERAGE" else y


@pytest.mark.parametrize("case", range(30))
def test_forest(case, sardonyx, tmp_path):
    rng = numpy.random.default_rng(case)
    targets, aggregate = int(rng.integers(1, 6)), ("SUM", "AVERAGE", "MIN", "MAX")[case % 4]
    missing, dense = case % 3 == 1, case % 5 < 3
    trees = [grow(rng, ORDERS[case % 6], targets, missing, dense)
             for _ in range(int(rng.integers(1, 20)))]
    x = rng.normal(size=((1, 8, 13, 30)[case // 2 % 4], FEATURES)).astype(numpy.float32)
    special = rng.random(x.shape) < 0.3
    x[special] = rng.choice(numpy.array(SPECIAL, numpy.float32), size=int(special.sum()))
    if case % 2:
        x[rng.random(x.shape) < 0.1] = numpy.nan
    write_model(tmp_path / "model.onnx", trees, targets, aggregate)
    data = tmp_path / "test_data_set_0"
    data.mkdir()
    for name, value in (("input_0", x), ("output_0", expected(trees, x, targets, aggregate))):
        (data / f"{name}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
    sardonyx("test", tmp_path, "--rtol", "0", "--atol", "0")
    # As TreeEnsemble of version 5, where leaves have one weight, and back.
    for opset, op in ((5, "TreeEnsemble"), (3, "TreeEnsembleRegressor")):
        several = aggregate != "SUM" and dense and targets > 1
        result = sardonyx("convert", tmp_path / "model.onnx", "--opset", f"ai.onnx.ml={opset}", "-o", tmp_path / "model.onnx",
                          code=1 if several else 0)
        assert not several or f"{aggregate} of leaves without one weight each" in result.err
        if several:
            break
        assert [node.op_type for node in onnx.load(str(tmp_path / "model.onnx")).graph.node] == [op]
        sardonyx("test", tmp_path, "--rtol", "0", "--atol", "0")


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("classes", ["first", "first, positive", "second", "second, positive", "three", "words"])
def test_classifier(classes, post, sardonyx, tmp_path):
    """A classifier as TreeEnsemble and nodes of the standard gives what ONNX Runtime says of it as it was."""
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = numpy.random.default_rng(len(classes) + len(post))
    targets = {"three": 3, "words": 4}.get(classes, 1)
    trees = [grow(rng, ["LEQ", "GT"], targets, True, targets > 1) for _ in range(7)]
    labels = {"classlabels_int64s": [3, 5, 9][:max(targets, 2)]} if targets < 4 else {"classlabels_strings": list("abcd")}
    leaves = [leaf for tree in trees for leaf in tree.values() if isinstance(leaf, list)]
    for leaf in leaves if targets == 1 else []:  # of two classes, one has weights
        leaf[:] = [(int("second" in classes), abs(leaf[0][1]) / 8 if "positive" in classes else leaf[0][1])]
    base = {"base_values": rng.normal(size=targets).astype(numpy.float32).tolist()} if targets in (1, 3) else {}
    node = helper.make_node("TreeEnsembleClassifier", ["x"], ["y", "z"], domain="ai.onnx.ml", post_transform=post, **labels,
                            **base, **tree_lists(trees, "class"))
    path, to = tmp_path / "model.onnx", tmp_path / "to/model.onnx"
    kind = TensorProto.STRING if classes == "words" else TensorProto.INT64
    save_model(path, node, [helper.make_tensor_value_info("y", kind, ["N"]),
                            helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N", max(targets, 2)])])
    x = rng.normal(size=(40, FEATURES)).astype(numpy.float32)
    results = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    data = tmp_path / "to/test_data_set_0"
    data.mkdir(parents=True)
    for name, value in (("input_0", x), ("output_0", results[0]), ("output_1", results[1])):
        (data / f"{name}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
    (tmp_path / "to/model.onnx").write_bytes(path.read_bytes())
    sardonyx("test", tmp_path / "to", "--rtol", "1e-5", "--atol", "1e-6")
    sardonyx("convert", path, "--opset", "ai.onnx.ml=5", "-o", to)
    assert "TreeEnsemble" in [node.op_type for node in onnx.load(str(to)).graph.node]
    sardonyx("test", tmp_path / "to", "--rtol", "1e-5", "--atol", "1e-6")
