# SPDX-License-Identifier: Apache-2.0
"""Defaults for small tables, compared with other settings and with scikit-learn's trees.

    bench/tables/setup-peers
    build/tables/bin/python bench/tables/few_rows.py

Two times five-fold cross-validation; examples/tables/visitors.csv only on the rows that the
tutorial trains on. AUC for two classes, accuracy for more, root mean squared error for numbers.
Prints a line for each table: its learners and what they reach on average.
"""

import datetime
import pathlib
import sys

import numpy as np
from generated import auc, generate
from sklearn import datasets, ensemble, model_selection

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python"))
from cafetiere import tables  # noqa: E402

VARIANTS = {
    "defaults": {},
    "batch 64": {"batch": 64},
    "batch 32": {"batch": 32},
    "100 epochs": {"epochs": 100},
    "rate 0.001": {"lr": 0.001},
    "[128, 64]": {"layers": (128, 64)},
    "[32]": {"layers": (32,)},
    "4 members": {"members": 4},
    "a tenth held back": {"validation": 0.1},
    "and patience 5": {"validation": 0.1, "patience": 5},
    "and patience 10": {"validation": 0.1, "patience": 10},
}
TREES = "HistGradientBoosting"


def visitors(rows=None):
    """The tutorial's columns and the rows that it trains on, or the first of these rows."""
    columns = tables.read(ROOT / "examples/tables/visitors.csv")
    kept = [place for place, number in enumerate(columns["id"]) if int(number) % 5 > 0][:rows]
    names = {"age": "age", "city": "city", "since": "since", "visits": "visits", "buys": "y"}
    return {name: [columns[of][place] for place in kept] for of, name in names.items()}


def made(rows, seed):
    """A generated table with a hundred rows for each place."""
    (train, _), _ = generate(rows, max(5, rows // 100), seed)
    train["y"] = train.pop("label")
    return train


def known(load, rows=None):
    """One of scikit-learn's tables, or some of its rows."""
    x, y = load(return_X_y=True)
    kept = np.random.default_rng(0).permutation(len(y))[:rows]
    return {**{f"c{i}": cells.tolist() for i, cells in enumerate(x[kept].T)}, "y": y[kept].tolist()}


def sources():
    """Tables by name; the label is y."""
    found = {"visitors": visitors(), "visitors, 150 rows": visitors(150)}
    for rows in (150, 500, 1000, 2000, 10_000):
        found |= {f"generated {seed}, {rows} rows": made(rows, seed) for seed in (2, 3)}
    cancer = datasets.load_breast_cancer
    found |= {"breast cancer": known(cancer), "breast cancer, 150 rows": known(cancer, 150)}
    for name in ("iris", "wine", "diabetes"):
        found[name] = known(getattr(datasets, f"load_{name}"))
    return found


def measured(labels, kinds, said):
    """AUC, accuracy or error of the predictions: probabilities, or a number, for each label."""
    if not kinds:
        return np.sqrt(np.mean((said[:, 0] - np.array(labels, float)) ** 2))
    places = np.array([kinds.index(tables.class_name(label)) for label in labels])
    return auc(places, said[:, 1]) if len(kinds) == 2 else np.mean(said.argmax(axis=1) == places)


def of_net(train, test, is_class, options):
    """A net with these options."""
    model, _ = tables.fit(train, "y", classes=is_class, **options)
    return measured(test["y"], model.labels, model.scores(test))


def as_number(cell, texts):
    """A cell as trees need it: dates as days, and text by its index among the values so far."""
    if cell is None or cell == "":
        return np.nan
    for read in (float, lambda day: datetime.date.fromisoformat(str(day)).toordinal()):
        try:
            return read(cell)
        except (TypeError, ValueError):
            continue
    return texts.setdefault(cell, len(texts))


def of_trees(train, test, is_class):
    """scikit-learn's trees, with their defaults."""
    names, numbers, named = [name for name in train if name != "y"], [], []
    for name in names:
        texts = {}
        both = [[as_number(cell, texts) for cell in part[name]] for part in (train, test)]
        named += [bool(texts)]
        numbers.append(both)
    x, asked = (np.array([both[part] for both in numbers], float).T for part in (0, 1))
    if not is_class:
        trees = ensemble.HistGradientBoostingRegressor().fit(x, train["y"])
        return measured(test["y"], [], trees.predict(asked)[:, None])
    trees = ensemble.HistGradientBoostingClassifier(categorical_features=named)
    trees.fit(x, [tables.class_name(label) for label in train["y"]])
    return measured(test["y"], trees.classes_.tolist(), trees.predict_proba(asked))


def halves(columns):
    """Ten pairs of training and test rows, each with a seed."""
    for seed in (1, 2):
        folds = model_selection.KFold(5, shuffle=True, random_state=seed)
        for parts in folds.split(np.arange(len(columns["y"]))):
            yield *({n: [v[i] for i in part] for n, v in columns.items()} for part in parts), seed


def main():
    """Runs all learners on all tables."""
    print(f"| table | {' | '.join([*VARIANTS, TREES])} |\n|{'---|' * (len(VARIANTS) + 2)}")
    for name, columns in sources().items():
        reached = {learner: [] for learner in [*VARIANTS, TREES]}
        is_class = name != "diabetes"
        for train, test, seed in halves(columns):
            for learner, options in VARIANTS.items():
                reached[learner].append(of_net(train, test, is_class, {**options, "seed": seed}))
            reached[TREES].append(of_trees(train, test, is_class))
        told = " | ".join(f"{np.mean(values):.3f}" for values in reached.values())
        print(f"| {name} | {told} |", flush=True)


if __name__ == "__main__":
    main()
