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


def write_model(path, trees, targets, aggregate):
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
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=targets,
        aggregate_function=aggregate, post_transform="NONE",
        **{f"nodes_{key}": value for key, value in lists.items()},
        **{f"target_{key}": value for key, value in weights.items()})
    graph = helper.make_graph(
        [node], "forest", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", targets])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18),
                                                      helper.make_opsetid("ai.onnx.ml", 3)],
                                ir_version=9), str(path))


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
