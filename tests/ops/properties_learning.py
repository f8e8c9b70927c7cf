# SPDX-License-Identifier: Apache-2.0
"""Families of the property test for ai.onnx.ml: classical machine learning on random models. Expected
values are the reference evaluator's, or NumPy's where that one fails or leaves the text (said there)."""
import numpy as np
from draws import Families
from single_nodes import DTYPES, Case

learning = Families()
ML = {"domain": "ai.onnx.ml", "tolerance": "loose"}
TEXT = DTYPES["string"]


def floats(r, count, scale=1.0):
    return [float(v) for v in (r.rng.standard_normal(count) * scale).astype(np.float32)]


def rows(r, columns):
    return r.array(np.float32, (r.int(1, 9), columns), 2, False)


@learning("ml scale")
def _(r):
    op, c = r.pick("Scaler", "Normalizer", "Binarizer", "Imputer", "FeatureVectorizer", "ArrayFeatureExtractor"), r.int(1, 6)
    x = rows(r, c)
    if op == "Scaler":
        k = r.pick(1, c)
        return Case(op, [x], {"offset": floats(r, k), "scale": floats(r, k)}, opset=1, **ML)
    if op == "Normalizer":
        norm = r.pick("MAX", "L1", "L2")

        def normed(v):  # the reference's MAX is of the values, L1 and L2 of rows of zeros divide by 0
            size = {"MAX": np.abs(v).max(1), "L1": np.abs(v).sum(1), "L2": np.sqrt((v ** 2).sum(1))}[norm]
            return (v / np.where(size == 0, 1, size)[:, None]).astype(np.float32)
        x = np.abs(x) if norm == "MAX" else x  # of the largest value or the largest size: runtimes differ
        return Case(op, [x], {"norm": norm}, opset=1, expected=normed, **ML)
    if op == "Binarizer":
        dtype = r.dtype("float", "double", "int32", "int64")
        return Case(op, [r.array(dtype, (3, c), 3, False)], {"threshold": r.pick(0.0, 1.0, 0.5)}, opset=1, **ML)
    if op == "Imputer":
        x = np.round(x)
        if r.chance(0.4):
            return Case(op, [x.astype(np.int64)], {"imputed_value_int64s": r.pick([7], [r.int(-9, 9) for _ in range(c)]),
                                                   "replaced_value_int64": 1}, opset=1, **ML)
        return Case(op, [x], {"imputed_value_floats": r.pick([7.0], floats(r, c)), "replaced_value_float": 1.0}, opset=1, **ML)
    if op == "FeatureVectorizer":
        n = r.int(1, 4)
        parts = [r.array(np.float32, (n, r.int(1, 4)), 2, False) for _ in range(r.int(1, 4))]
        return Case(op, parts, {"inputdimensions": [p.shape[1] for p in parts]}, opset=1, **ML)
    index = r.rng.integers(0, c, r.int(1, 5))
    return Case(op, [r.array(r.dtype("float", "double", "int64", "int32", "string"), (3, c)), index], opset=1,
                domain="ai.onnx.ml", expected=lambda v, i: v[:, i])


@learning("ml encode")
def _(r):
    op = r.pick("LabelEncoder", "LabelEncoder", "OneHotEncoder", "CategoryMapper", "DictVectorizer")
    words = np.array(["a", "bc", "Zebra", "none", ""], object)
    if op == "DictVectorizer":
        chosen = [str(w) for w in r.rng.permutation(words)[:r.int(1, 4)]]
        values = {w: np.float32(v) for w, v in zip(chosen, floats(r, 4))}
        vocabulary = ["bc", "a", "none", "other"]
        return Case(op, [values], {"string_vocabulary": vocabulary}, opset=1, domain="ai.onnx.ml", expected=lambda d: np.array(
            [[d.get(w, 0) for w in vocabulary]], np.float32))
    if op == "OneHotEncoder":
        kind = r.dtype("int64", "float", "int32", "double", "string")
        x = r.rng.choice(words, (r.int(1, 5),)) if kind.kind == "O" else r.rng.integers(0, 5, r.int(1, 5)).astype(kind)
        cats = {"cats_strings": ["a", "none", "q"]} if kind.kind == "O" else {"cats_int64s": [0, 3, 4]}
        table = np.array(list(cats.values())[0], object if kind.kind == "O" else np.int64)
        return Case(op, [x], {**cats, "zeros": 1}, opset=1, domain="ai.onnx.ml", expected=lambda v: (
            v[:, None] == table[None]).astype(np.float32))
    if op == "CategoryMapper":
        ints, texts = [4, 5, 6], ["a", "bc", "Zebra"]
        if r.chance(0.5):
            return Case(op, [r.rng.choice(words, r.shape(1, 2, empty=0))], {
                "cats_int64s": ints, "cats_strings": texts, "default_int64": -7}, opset=1, domain="ai.onnx.ml",
                expected=lambda v: np.vectorize(lambda w: dict(zip(texts, ints)).get(w, -7), otypes=[np.int64])(v))
        return Case(op, [r.rng.integers(3, 8, r.shape(1, 2, empty=0))], {
            "cats_int64s": ints, "cats_strings": texts, "default_string": "d"}, opset=1, domain="ai.onnx.ml",
            expected=lambda v: np.vectorize(lambda w: dict(zip(ints, texts)).get(w, "d"), otypes=[object])(v))
    kinds = {"strings": TEXT, "int64s": np.dtype(np.int64), "floats": np.dtype(np.float32)}
    pools = {"strings": ["a", "bc", "Zebra", ""], "int64s": [1, -2, 3, 2**40], "floats": [0.5, -1.0, 2.0, float("inf")]}
    key, value = r.pick(*kinds), r.pick(*kinds)
    known, made = pools[key][:3], pools[value][:3]
    default = pools[value][3]
    x = np.asarray(r.rng.choice(np.array(pools[key], kinds[key]), r.shape(0, 3)), kinds[key])
    return Case("LabelEncoder", [x], {f"keys_{key}": known, f"values_{value}": made, {
        "strings": "default_string", "int64s": "default_int64", "floats": "default_float"}[value]: default},
        opset=r.pick(2, 4), domain="ai.onnx.ml", expected=lambda v: np.array(
            [dict(zip(known, made)).get(w, default) for w in v.reshape(-1).tolist()], kinds[value]).reshape(v.shape))


def kernel_of(kind, params, a, b):
    gamma, coefficient, degree = params
    product = a.astype(np.float64) @ b.T.astype(np.float64)
    if kind == "LINEAR":
        return product
    if kind == "POLY":
        return (gamma * product + coefficient) ** degree
    if kind == "SIGMOID":
        return np.tanh(gamma * product + coefficient)
    return np.exp(-gamma * ((a[:, None].astype(np.float64) - b[None]) ** 2).sum(-1))


@learning("ml linear")
def _(r):
    op, c = r.pick("LinearRegressor", "LinearClassifier", "SVMRegressor"), r.int(1, 6)
    x, t = rows(r, c), r.int(1, 3)
    if op == "SVMRegressor":  # the definition: the reference fails in NumPy 2
        kind, n = r.pick("LINEAR", "POLY", "RBF", "SIGMOID"), r.int(1, 5)
        params, rho = [0.25, 0.5, 2.0], floats(r, 1)
        weights, vectors = np.array(floats(r, n), np.float32), np.array(floats(r, n * c), np.float32).reshape(n, c)
        return Case(op, [x], {"kernel_type": kind, "kernel_params": params, "n_supports": n, "rho": rho,
                              "coefficients": weights.tolist(), "support_vectors": vectors.reshape(-1).tolist()}, opset=1,
                    expected=lambda v: (kernel_of(kind, params, v, vectors) @ weights + rho[0])[:, None].astype(np.float32), **ML)
    w = np.array(floats(r, t * c), np.float32).reshape(t, c)
    if op == "LinearRegressor":
        bias = floats(r, t)
        return Case(op, [x], {"coefficients": w.reshape(-1).tolist(), "targets": t, "intercepts": bias}, opset=1,
                    expected=lambda v: (v @ w.T + np.array(bias, np.float32)).astype(np.float32), **ML)
    t = t + 1
    w, bias = np.array(floats(r, t * c), np.float32).reshape(t, c), floats(r, t)
    post = r.pick("NONE", "SOFTMAX", "LOGISTIC")
    labels = np.array([10 + 3 * k for k in range(t)])

    def classified(v):
        s = v.astype(np.float64) @ w.T + np.array(bias)
        e = np.exp(s - s.max(1, keepdims=True))
        z = {"NONE": s, "SOFTMAX": e / e.sum(1, keepdims=True), "LOGISTIC": 1 / (1 + np.exp(-s))}[post]
        return labels[s.argmax(1)], z.astype(np.float32)
    return Case(op, [x], {"coefficients": w.reshape(-1).tolist(), "intercepts": bias, "post_transform": post,
                          "classlabels_ints": labels.tolist()}, opset=1, outputs=2, expected=classified, **ML)


def grow(r, depth, columns, nodes, tree):
    """Appends a random subtree; the id of its root."""
    me = len([n for n in nodes if n["tree"] == tree])
    node = {"tree": tree, "id": me, "feature": r.int(0, columns - 1), "value": float(r.int(-3, 3)), "yes": 0, "no": 0,
            "mode": r.pick("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"),
            "missing": r.int(0, 1)}
    nodes.append(node)
    if depth == 0 or r.chance(0.2):
        node["mode"] = "LEAF"
        return me
    node["yes"] = grow(r, depth - 1, columns, nodes, tree)
    node["no"] = grow(r, depth - 1, columns, nodes, tree)
    return me


TESTS = {"BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less, "BRANCH_GTE": np.greater_equal, "BRANCH_GT": np.greater,
         "BRANCH_EQ": np.equal, "BRANCH_NEQ": np.not_equal}


def leaf_of(nodes, tree, row):
    by_id = {n["id"]: n for n in nodes if n["tree"] == tree}
    at = by_id[0]
    while at["mode"] != "LEAF":
        value = row[at["feature"]]
        took = bool(TESTS[at["mode"]](value, np.float32(at["value"]))) or (at["missing"] and np.isnan(value))
        at = by_id[at["yes" if took else "no"]]
    return at


@learning("ml trees", 2)
def _(r):
    """Trees of every test, by walking them."""
    c, targets, count, nodes = r.int(1, 4), r.int(1, 4), r.int(1, 5), []
    for tree in range(count):
        grow(r, r.int(0, 4), c, nodes, tree)
    x = np.round(rows(r, c))
    x = np.where(r.rng.random(x.shape) < 0.1, np.float32(np.nan), x).astype(np.float32)
    classifier = r.chance(0.4)
    targets = max(targets, 3) if classifier else targets
    leaves = [(n, k) for n in nodes if n["mode"] == "LEAF" for k in range(targets)]
    weights = dict(zip([(n["tree"], n["id"], k) for n, k in leaves], floats(r, len(leaves))))
    base = r.pick(None, floats(r, targets))
    how = "SUM" if classifier else r.pick("SUM", "AVERAGE", "MIN", "MAX")
    name = "class" if classifier else "target"
    attributes = {f"nodes_{key}": [n[what] for n in nodes] for key, what in (
        ("treeids", "tree"), ("nodeids", "id"), ("featureids", "feature"), ("values", "value"), ("modes", "mode"),
        ("truenodeids", "yes"), ("falsenodeids", "no"), ("missing_value_tracks_true", "missing"))}
    attributes.update({f"{name}_treeids": [n["tree"] for n, _ in leaves], f"{name}_nodeids": [n["id"] for n, _ in leaves],
                       f"{name}_ids": [k for _, k in leaves], f"{name}_weights": list(weights.values()),
                       "base_values": base})

    def walked(v):
        each = np.array([[[weights[t, leaf_of(nodes, t, row)["id"], k] for k in range(targets)] for t in range(count)]
                         for row in v])
        y = {"SUM": each.sum(1), "AVERAGE": each.mean(1), "MIN": each.min(1), "MAX": each.max(1)}[how]
        y = (y + (0 if base is None else np.array(base))).astype(np.float32)
        return (np.array([7 + k for k in y.argmax(1)]), y) if classifier else y
    if classifier:
        return Case("TreeEnsembleClassifier", [x], {**attributes, "classlabels_int64s": [7 + k for k in range(targets)]},
                    opset=r.pick(1, 3), outputs=2, expected=walked, **ML)
    return Case("TreeEnsembleRegressor", [x], {**attributes, "n_targets": targets, "aggregate_function": how},
                opset=r.pick(1, 3), expected=walked, **ML)


@learning("ml svm")
def _(r):
    """Three classes and more by votes of pairs, without probabilities (onnxruntime gives the pairs' scores)."""
    c, classes = r.int(1, 4), r.int(3, 4)
    each = [r.int(1, 3) for _ in range(classes)]
    n, pairs = sum(each), classes * (classes - 1) // 2
    kind, params = r.pick("LINEAR", "RBF", "SIGMOID"), [0.25, 0.5, 2.0]
    vectors = np.array(floats(r, n * c), np.float32).reshape(n, c)
    weights, rho = np.array(floats(r, n * (classes - 1)), np.float32).reshape(classes - 1, n), floats(r, pairs)
    start = np.cumsum([0, *each])

    def voted(v):
        k, scores = kernel_of(kind, params, v, vectors), []
        votes = np.zeros((len(v), classes))
        for i in range(classes):
            for j in range(i + 1, classes):
                s = k[:, start[i]:start[i + 1]] @ weights[j - 1, start[i]:start[i + 1]] + \
                    k[:, start[j]:start[j + 1]] @ weights[i, start[j]:start[j + 1]] + rho[len(scores)]
                scores.append(s)
                votes[:, i] += s > 0
                votes[:, j] += s <= 0
        return votes.argmax(1) + 5, np.stack(scores, 1).astype(np.float32)
    return Case("SVMClassifier", [rows(r, c)], {
        "kernel_type": kind, "kernel_params": params, "vectors_per_class": each, "rho": rho,
        "coefficients": weights.reshape(-1).tolist(), "support_vectors": vectors.reshape(-1).tolist(),
        "classlabels_ints": [5 + k for k in range(classes)]}, opset=1, outputs=2, expected=voted, **ML)
