# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's small tables, 5 x 2 cross-validation: this engine and scikit-learn's learners.

    bench/tables/setup-peers
    build/tables/bin/python bench/tables/small.py

Prints a table of mean and standard deviation over the ten test halves. All learners use their
defaults; scikit-learn's MLP has a StandardScaler before it.
"""

import pathlib
import sys
import time

import numpy as np
from sklearn import datasets, ensemble, model_selection, neural_network, pipeline, preprocessing

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
from cafetiere import tables  # noqa: E402

TABLES = {
    "breast-cancer": (datasets.load_breast_cancer, True),
    "digits": (datasets.load_digits, True),
    "diabetes": (datasets.load_diabetes, False),
}


class Cafetiere:
    """tables.fit() and predict() as an estimator, on columns c0, c1, .."""

    def __init__(self, classes, **options):
        self.classes, self.options = classes, options

    def fit(self, x, y):
        """Learns rows x with the labels y."""
        columns = {**self.columns(x), "y": y.tolist()}
        self.model, _ = tables.fit(columns, "y", classes=self.classes, **self.options)

    def predict(self, x):
        """The labels of rows."""
        return np.array([float(value) for value in self.model.predict(self.columns(x))[0]])

    @staticmethod
    def columns(x):
        """Rows as tables.fit() takes them."""
        return {f"c{i}": column.tolist() for i, column in enumerate(x.T)}


def learners(classes):
    """A factory for each learner, by name."""

    def scaled(mlp):
        return lambda: pipeline.make_pipeline(preprocessing.StandardScaler(), mlp(random_state=1))

    if classes:
        return {
            "cafetiere": lambda: Cafetiere(True),
            "MLPClassifier": scaled(neural_network.MLPClassifier),
            "HistGradientBoostingClassifier": ensemble.HistGradientBoostingClassifier,
        }
    return {
        "cafetiere": lambda: Cafetiere(False),
        "MLPRegressor": scaled(neural_network.MLPRegressor),
        "HistGradientBoostingRegressor": ensemble.HistGradientBoostingRegressor,
    }


def halves(classes, x, y):
    """The ten pairs of training and test rows."""
    kind = "RepeatedStratifiedKFold" if classes else "RepeatedKFold"
    folds = getattr(model_selection, kind)(n_splits=2, n_repeats=5, random_state=1)
    return folds.split(x, y)


def main():
    """Runs all tables and learners."""
    print(
        "| table | measure | learner | mean | deviation | s a fit | CPU s a fit |\n"
        "|---|---|---|---|---|---|---|"
    )
    for name, (load, classes) in TABLES.items():
        x, y = load(return_X_y=True)
        measure = "accuracy" if classes else "root mean squared error"
        for learner, make in learners(classes).items():
            scores, began, cpu = [], time.perf_counter(), time.process_time()
            for train, test in halves(classes, x, y):
                model = make()
                model.fit(x[train], y[train])
                said = model.predict(x[test])
                right = np.mean(said == y[test])
                scores.append(right if classes else np.sqrt(np.mean((said - y[test]) ** 2)))
            seconds = (time.perf_counter() - began) / len(scores)
            cpu = (time.process_time() - cpu) / len(scores)
            mean, spread = np.mean(scores), np.std(scores, ddof=1)
            print(
                f"| {name} | {measure} | {learner} | {mean:.4g} | {spread:.2g} | {seconds:.2f} "
                f"| {cpu:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
