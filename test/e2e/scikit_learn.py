#!/usr/bin/env python3
"""Pipelines of scikit-learn, converted with skl2onnx, give scikit-learn's own labels and probabilities; also row by row, with a batch
that is known only at run time."""
import argparse
import pathlib
import shutil
import sys
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np
import onnx
from onnx import numpy_helper

import product


def features(rows=240, columns=6, classes=3, seed=1):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, columns)).astype(np.float32)
    y = (np.argsort(np.argsort(x[:, 0] + x[:, 1] * x[:, 2] + random.normal(scale=0.2, size=rows))) * classes // rows)
    return x, y


TEXTS = ['the cat sat on the mat', 'a dog barked at the cat', 'stocks fell on monday', 'markets rose as stocks gained', 'the dog slept',
         'bonds and stocks and markets', 'a cat and a dog', 'monday markets', 'the mat was red', 'bonds gained on monday'] * 4
TOPICS = ['animals', 'animals', 'money', 'money', 'animals', 'money', 'animals', 'money', 'animals', 'money'] * 4


def pipelines():
    """Yields name, fitted model, inputs by name, the types that skl2onnx wants, and options for it."""
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
    from sklearn.cluster import KMeans
    from sklearn.compose import ColumnTransformer
    from sklearn.decomposition import PCA
    from sklearn.ensemble import (AdaBoostClassifier, ExtraTreesRegressor, GradientBoostingClassifier, GradientBoostingRegressor,
                                  IsolationForest, RandomForestClassifier, RandomForestRegressor, VotingClassifier)
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier, SGDClassifier
    from sklearn.naive_bayes import BernoulliNB, GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import (Binarizer, KBinsDiscretizer, MaxAbsScaler, MinMaxScaler, Normalizer, OneHotEncoder, OrdinalEncoder,
                                       PolynomialFeatures, RobustScaler, StandardScaler)
    from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    x, y = features()
    target = (x[:, 0] * 2 - x[:, 1] ** 2 + x[:, 2]).astype(np.float32)
    numbers = [('x', FloatTensorType([None, x.shape[1]]))]

    def classifier(name, model, labels=y):
        return name, model.fit(x, labels), {'x': x}, numbers, {}

    def regressor(name, model, wanted=target):
        return name, model.fit(x, wanted), {'x': x}, numbers, {}

    two, names = (y > 0).astype(np.int64), np.array(['low', 'middle', 'high'])[y]
    yield classifier('random_forest', RandomForestClassifier(20, max_depth=6, random_state=0))
    yield classifier('random_forest_binary', RandomForestClassifier(10, random_state=0), two)
    yield classifier('random_forest_strings', RandomForestClassifier(10, max_depth=4, random_state=0), names)
    yield regressor('random_forest_regressor', RandomForestRegressor(10, max_depth=8, random_state=0))
    yield regressor('extra_trees_two_targets', ExtraTreesRegressor(10, max_depth=5, random_state=0), np.stack([target, -target ** 2], 1))
    yield classifier('decision_tree', DecisionTreeClassifier(random_state=0))
    yield regressor('decision_tree_regressor', DecisionTreeRegressor(max_depth=5, random_state=0))
    yield classifier('gradient_boosting', GradientBoostingClassifier(n_estimators=20, random_state=0))
    yield classifier('gradient_boosting_binary', GradientBoostingClassifier(n_estimators=20, random_state=0), two)
    yield regressor('gradient_boosting_regressor', GradientBoostingRegressor(n_estimators=20, random_state=0))
    yield classifier('ada_boost', AdaBoostClassifier(n_estimators=8, random_state=0))
    yield regressor('isolation_forest', IsolationForest(n_estimators=8, random_state=0), None)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # scikit-learn means to drop `probability`
        yield classifier('svc_probabilities', SVC(probability=True, random_state=0))
        yield classifier('svc_probabilities_binary', SVC(probability=True, random_state=0), two)
        yield classifier('nu_svc_polynomial', NuSVC(nu=0.3, kernel='poly', probability=True, random_state=0))
    yield classifier('svc_scores', SVC(kernel='sigmoid', decision_function_shape='ovo'))
    yield classifier('svc_scores_binary', SVC(kernel='rbf'), two)
    yield classifier('linear_svc', LinearSVC(random_state=0))
    yield regressor('svr', SVR())
    yield regressor('svr_polynomial', SVR(kernel='poly', degree=2))
    yield regressor('one_class_svm', OneClassSVM(), None)
    yield classifier('k_means', KMeans(4, n_init=2, random_state=0), None)
    yield classifier('k_neighbours', KNeighborsClassifier(5))
    yield classifier('logistic_regression', LogisticRegression(max_iter=300))
    yield classifier('logistic_regression_binary_strings', LogisticRegression(), np.array(['no', 'yes'])[two])
    yield classifier('ridge', RidgeClassifier())
    yield classifier('stochastic_gradient', SGDClassifier(loss='log_loss', random_state=0))
    yield classifier('naive_bayes', GaussianNB())
    yield classifier('bernoulli_bayes', make_pipeline(Binarizer(threshold=0.1), BernoulliNB()))
    yield classifier('voting', VotingClassifier([('a', LogisticRegression()), ('b', DecisionTreeClassifier(max_depth=3))], voting='soft',
                                                flatten_transform=False))
    yield regressor('linear_regression', LinearRegression())
    yield classifier('scaler_and_perceptron', make_pipeline(StandardScaler(), MLPClassifier((16,), max_iter=200, random_state=0)))
    yield regressor('scalers_and_perceptron', make_pipeline(MinMaxScaler(), MaxAbsScaler(), RobustScaler(),
                                                            MLPRegressor(hidden_layer_sizes=(8, 8), max_iter=200, random_state=0)))
    yield classifier('norms_and_components', make_pipeline(Normalizer('l1'), Normalizer('max'), Normalizer('l2'), PCA(3), LogisticRegression()))
    yield classifier('polynomial_features', make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=500)))
    yield classifier('bins', make_pipeline(KBinsDiscretizer(4, encode='onehot-dense', quantile_method='averaged_inverted_cdf'),
                                           LogisticRegression()))

    text = [('text', StringTensorType([None, 1]))]
    sentences = np.array(TEXTS).reshape(-1, 1)
    yield ('tf_idf', make_pipeline(ColumnTransformer([('t', TfidfVectorizer(), 0)]), LogisticRegression()).fit(sentences, TOPICS),
           {'text': sentences}, text, {})
    yield ('tf_idf_pairs', make_pipeline(ColumnTransformer([('t', TfidfVectorizer(ngram_range=(1, 2), token_pattern='[a-zA-Z0-9_]+'), 0)]),
                                         LogisticRegression()).fit(sentences, TOPICS), {'text': sentences}, text, {})
    yield ('word_counts', make_pipeline(ColumnTransformer([('t', CountVectorizer(), 0)]), RandomForestClassifier(5, random_state=0)).fit(
        sentences, TOPICS), {'text': sentences}, text, {})

    import pandas
    holed = x[:, :3].copy()
    holed[::7, 1] = np.nan
    random = np.random.default_rng(5)
    colours, sizes = random.choice(['red', 'green', 'blue'], len(x)), random.integers(0, 4, len(x))
    table = pandas.DataFrame({'a': holed[:, 0], 'b': holed[:, 1], 'c': holed[:, 2], 'colour': colours, 'size': sizes})
    columns = ColumnTransformer([('numbers', make_pipeline(SimpleImputer(), StandardScaler()), ['a', 'b', 'c']),
                                 ('colour', OneHotEncoder(handle_unknown='ignore'), ['colour']),
                                 ('size', OneHotEncoder(), ['size'])])
    types = [(name, FloatTensorType([None, 1])) for name in 'abc'] + [('colour', StringTensorType([None, 1])), ('size', Int64TensorType([None, 1]))]
    yield ('column_transformer', make_pipeline(columns, LogisticRegression()).fit(table, y), table, types, {})
    ordinal = ColumnTransformer([('colour', OrdinalEncoder(), ['colour']), ('rest', 'passthrough', ['a', 'c'])])
    yield ('ordinal_encoder', make_pipeline(ordinal, RandomForestClassifier(5, max_depth=4, random_state=0)).fit(table[['a', 'c', 'colour']], y),
           table[['a', 'c', 'colour']], [types[0], types[2], types[3]], {})


def expected(model, inputs):
    """What scikit-learn says, in the order of the converted model's outputs."""
    x = inputs if not isinstance(inputs, dict) else next(iter(inputs.values()))
    results = [model.predict(x)]
    for more in ('predict_proba', 'decision_function', 'transform'):
        if hasattr(model, more):
            results.append(getattr(model, more)(x))
            break
    return results


def differs(got, want):
    want = np.asarray(want)
    if want.dtype.kind in 'OUS':
        want = want.astype(str).reshape(got.shape)
        got = np.array([word.decode() if isinstance(word, bytes) else str(word) for word in got.ravel()]).reshape(got.shape)
        return '' if (got == want).all() else f'{(got != want).sum()} labels differ'
    want = want.reshape(len(want), -1).astype(np.float64)
    got = np.asarray(got, np.float64).reshape(len(got), -1)
    if got.shape[1] == 2 and want.shape[1] == 1:  # the score of each of two classes; libsvm's first one comes first
        got = got[:, 1:] if np.abs(got[:, 1:] - want).max() < 1 else got[:, :1]
    if got.shape != want.shape:
        return f'shape {got.shape}, expected {want.shape}'
    error = np.abs(got - want) / (1 + np.abs(want))
    return '' if error.max(initial=0) < 2e-5 else f'differs by {error.max():.2g}'


def check_maps(tools, folder, model, inputs, types):
    """Yields why the probabilities as a sequence of maps, which the converter makes by default, are not scikit-learn's."""
    from skl2onnx import to_onnx
    folder = folder / 'maps'
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(to_onnx(model, initial_types=types, target_opset={'': 21, 'ai.onnx.ml': 3}), folder / 'model.onnx')
    result = tools.compile(folder / 'model.onnx', folder / 'model.firn', timeout=120)
    if result.status == product.DONE:
        save_inputs(folder / 'in', inputs)
        shutil.rmtree(folder / 'out', ignore_errors=True)
        (folder / 'out').mkdir()
        result = tools.run(folder / 'model.firn', folder / 'in', folder / 'out')
    if result.status != product.DONE:
        yield f'maps: {result.describe()}: {result.message.strip()[:300]}'
        return
    sequence = onnx.SequenceProto()
    sequence.ParseFromString((folder / 'out/output_1.pb').read_bytes())
    maps = numpy_helper.to_list(sequence)
    classes = [label if isinstance(label, str) else int(label) for label in model.classes_]
    keys = [[key.decode() if isinstance(key, bytes) else key for key in row] for row in maps]
    yield '' if all(row == classes for row in keys) else f'keys {keys[:1]}, expected {classes}'
    yield differs(np.array([[float(value) for value in row.values()] for row in maps]), expected(model, inputs)[1])


def save_inputs(folder, inputs):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for i, (name, array) in enumerate(inputs.items()):
        if not isinstance(array, np.ndarray):
            array = array.to_numpy().reshape(-1, 1)
            array = array.astype(np.float32) if array.dtype.kind == 'f' else array.astype(object) if array.dtype.kind in 'OUT' else array
        (folder / f'input_{i}.pb').write_bytes(numpy_helper.from_array(array.astype(object) if array.dtype.kind == 'U' else array, name).SerializeToString())


def check(tools, work, name, model, inputs, types, options):
    """Yields why a claim is false, or ''."""
    from skl2onnx import to_onnx
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    if hasattr(model, 'classes_'):
        options = {id(model): {'zipmap': False}}
    try:
        converted = to_onnx(model, initial_types=types, options=options, target_opset={'': 21, 'ai.onnx.ml': 3})
    except NameError:  # this converter has no such option and never makes maps
        converted = to_onnx(model, initial_types=types, target_opset={'': 21, 'ai.onnx.ml': 3})
    onnx.save(converted, folder / 'model.onnx')
    result = tools.compile(folder / 'model.onnx', folder / 'model.firn', timeout=120)
    if result.status != product.DONE:
        yield f'{result.describe()}: {result.message.strip()[:300]}'
        return
    if name in ('random_forest', 'random_forest_strings', 'logistic_regression_binary_strings'):
        yield from check_maps(tools, folder, model, inputs, types)
    whole = dict(inputs.items())
    for rows in (slice(None), slice(0, 1), slice(3, 20)):
        part = {key: value[rows] for key, value in whole.items()}
        save_inputs(folder / 'in', part)
        shutil.rmtree(folder / 'out', ignore_errors=True)
        (folder / 'out').mkdir()
        result = tools.run(folder / 'model.firn', folder / 'in', folder / 'out')
        if result.status != product.DONE:
            yield f'{result.describe()}: {result.message.strip()[:300]}'
            return
        for i, want in enumerate(expected(model, inputs if not isinstance(inputs, dict) else whole)):
            path = folder / f'out/output_{i}.pb'
            if path.exists():
                yield differs(numpy_helper.to_array(product.load_tensor(path)), np.asarray(want)[rows])
            elif i == 0:
                yield 'no output'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/e2e/scikit_learn')
    parser.add_argument('--only', default='', metavar='TEXT')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    failures, passed = [], 0
    warnings.simplefilter('ignore')  # of fits that stop early, and of what the next release changes
    for name, model, inputs, types, options in pipelines():
        if args.only not in name:
            continue
        try:
            why = [reason for reason in check(tools, args.work, name, model, inputs, types, options) if reason]
        except Exception as error:
            why = [f'{type(error).__name__}: {error}']
        passed += not why
        failures += [f'FAILED {name}: {why[0]}'] if why else []
    print('\n'.join(failures))
    print(f'{passed} passed, {len(failures)} failed')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
