# SPDX-License-Identifier: Apache-2.0
"""scikit-learn pipelines converted by skl2onnx, run by the module onnxruntime.

    client_skl2onnx.py RECORD
"""
import numpy as np
import onnxruntime as rt
from client_kit import finish, record
from skl2onnx import convert_sklearn, to_onnx
from skl2onnx.common.data_types import (DoubleTensorType, FloatTensorType, Int64TensorType,
                                        StringTensorType)
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import (AdaBoostClassifier, ExtraTreesRegressor, GradientBoostingClassifier,
                              HistGradientBoostingRegressor, IsolationForest, RandomForestClassifier,
                              RandomForestRegressor, VotingClassifier)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (ElasticNet, LinearRegression, LogisticRegression, Ridge,
                                  SGDClassifier)
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (Binarizer, KBinsDiscretizer, MinMaxScaler, Normalizer, OneHotEncoder,
                                   OrdinalEncoder, PolynomialFeatures, RobustScaler, StandardScaler)
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

iris, digits, diabetes = load_iris(), load_digits(), load_diabetes()
NAMES = np.array(["setosa", "versicolor", "virginica"])


def run(name, data, feeds):
    session = rt.InferenceSession(data.SerializeToString(), providers=["CPUExecutionProvider"])
    record(name + " signature", [[item.name, item.type, item.shape] for item in
                                 session.get_inputs() + session.get_outputs()])
    record(name, session.run(None, feeds))


def run_text(name, data, feeds):
    """As run(); a machine without the locale en_US cannot always do it with ONNX Runtime."""
    try:
        run(name, data, feeds)
    except Exception as error:
        record(name + " is not run", str(error))


def on_floats(name, estimator, x, y, **options):
    estimator.fit(x, y)
    x = x[:60].astype(np.float32)
    try:
        data = to_onnx(estimator, x, **options)
    except Exception as error:  # skl2onnx cannot convert all that scikit-learn has
        record(name + " is not converted", type(error).__name__)
    else:
        run(name, data, {"X": x})


def on_iris():
    x, y = iris.data, iris.target
    seed = {"random_state": 0}
    for estimator in (LogisticRegression(max_iter=500), SVC(probability=False), LinearSVC(),
                      RandomForestClassifier(20, **seed), GradientBoostingClassifier(n_estimators=10, **seed),
                      AdaBoostClassifier(n_estimators=8, **seed), DecisionTreeClassifier(**seed),
                      KNeighborsClassifier(3), MLPClassifier((8,), max_iter=300, **seed), GaussianNB(),
                      SGDClassifier(**seed), BernoulliNB(binarize=1.5), MultinomialNB()):
        on_floats(type(estimator).__name__, estimator, x, y)
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    on_floats("no zipmap", scaled, x, y, options={"zipmap": False})
    on_floats("zipmap columns", scaled, x, y, options={"zipmap": "columns"})
    on_floats("labels of text", scaled, x, NAMES[y])
    on_floats("two classes", scaled, x[:100], y[:100])
    on_floats("scores", scaled, x, y, options={"raw_scores": True, "zipmap": False})
    on_floats("voting", VotingClassifier([("a", LogisticRegression(max_iter=500)), ("b", GaussianNB())],
                                         voting="soft", flatten_transform=False), x, y)
    on_floats("union", make_pipeline(make_union(PCA(2), MinMaxScaler()), LogisticRegression()), x, y)
    on_floats("selected", make_pipeline(SelectKBest(k=2), RobustScaler(), SVC()), x, y)
    on_floats("polynomial", make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=2000)), x, y)


def on_diabetes():
    x, y = diabetes.data, diabetes.target
    for estimator in (LinearRegression(), Ridge(), ElasticNet(0.01), RandomForestRegressor(10, random_state=0),
                      ExtraTreesRegressor(10, random_state=0), DecisionTreeRegressor(max_depth=4),
                      HistGradientBoostingRegressor(max_iter=10), KNeighborsRegressor(4), SVR()):
        on_floats(type(estimator).__name__, estimator, x, y)
    model = GaussianProcessRegressor(alpha=1.0).fit(x[:40], y[:40])
    data = convert_sklearn(model, initial_types=[("X", DoubleTensorType([None, 10]))])
    run("GaussianProcessRegressor", data, {"X": x[:20]})
    data = convert_sklearn(LinearRegression().fit(x, y),
                           initial_types=[("X", DoubleTensorType([None, 10]))])
    run("double", data, {"X": x[:20]})


def on_digits():
    x, y = digits.data, digits.target
    on_floats("forest of digits", RandomForestClassifier(15, random_state=1), x, y,
              options={"zipmap": False})
    on_floats("components", make_pipeline(PCA(12, random_state=0), SVC()), x, y)
    on_floats("svd", TruncatedSVD(5, random_state=0), x, y)
    for estimator in (KMeans(10, n_init=1, random_state=0), MiniBatchKMeans(4, n_init=1, random_state=0),
                      Normalizer(), Binarizer(threshold=3.0),
                      KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
                      IsolationForest(n_estimators=10, random_state=0)):
        on_floats(type(estimator).__name__ + " of digits", estimator, x, y)
    data = to_onnx(LogisticRegression(max_iter=50).fit(x, y), x[:1].astype(np.int64),
                   initial_types=[("X", Int64TensorType([None, 64]))])
    run("integers", data, {"X": x[:20].astype(np.int64)})


def on_missing():
    x = iris.data.copy()
    x[::7, 1] = np.nan
    on_floats("imputed", make_pipeline(SimpleImputer(), LogisticRegression(max_iter=500)), x, iris.target)


def on_texts():
    texts = np.array(["the cat sat", "a dog ran far", "cat and dog", "the far hill", "hill of cats",
                      "a dog sat", "Ran to the Hill", "nothing here"]).reshape(-1, 1)
    y = np.array([0, 1, 0, 1, 0, 1, 1, 0])
    kinds = [("text", StringTensorType([None, 1]))]
    for name, vectorizer in (("tfidf", TfidfVectorizer()), ("counts", CountVectorizer(ngram_range=(1, 2)))):
        model = make_pipeline(ColumnTransformer([("v", vectorizer, 0)]), LogisticRegression()).fit(texts, y)
        run_text(name, convert_sklearn(model, initial_types=kinds), {"text": texts})


def on_columns():
    colors, numbers = np.array([["red"], ["green"], ["red"], ["blue"]] * 10), np.arange(40.0)[:, None]
    table = np.concatenate([colors.astype(object), numbers.astype(object)], axis=1)
    y = np.arange(40) % 3
    model = make_pipeline(ColumnTransformer([("c", OneHotEncoder(handle_unknown="ignore"), [0]),
                                             ("n", StandardScaler(), [1])]), LogisticRegression())
    model.fit(table, y)
    kinds = [("color", StringTensorType([None, 1])), ("number", FloatTensorType([None, 1]))]
    feeds = {"color": np.array([["red"], ["black"], ["blue"]], object),
             "number": np.array([[1], [2], [30]], np.float32)}
    run("columns", convert_sklearn(model, initial_types=kinds), feeds)
    encoder = OrdinalEncoder().fit(colors)
    run("ordinal", convert_sklearn(encoder, initial_types=kinds[:1]), {"color": colors[:4]})


for group in (on_iris, on_diabetes, on_digits, on_missing, on_texts, on_columns):
    group()
finish()
