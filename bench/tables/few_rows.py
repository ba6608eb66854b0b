# SPDX-License-Identifier: Apache-2.0
"""Defaults for small tables: other ones beside them, rows held back, and scikit-learn's trees.

    bench/tables/setup-peers
    build/tables/bin/python bench/tables/few_rows.py

Two times five-fold cross-validation; of examples/tables/visitors.csv on the rows that the tutorial
trains on alone. AUC of two classes, accuracy of more, root mean squared error of numbers. Prints a
line a table: its learners and what they reach on average.
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
    "a tenth held back": {"validation": 0.1},
    "and patience 5": {"validation": 0.1, "patience": 5},
    "and patience 10": {"validation": 0.1, "patience": 10},
}
TREES = "HistGradientBoosting"


def visitors(rows=None):
    """The columns of the tutorial, and the rows that it trains on, or the first of them."""
    columns = tables.read(ROOT / "examples/tables/visitors.csv")
    kept = [place for place, number in enumerate(columns["id"]) if int(number) % 5 > 0][:rows]
    names = {"age": "age", "city": "city", "since": "since", "visits": "visits", "buys": "y"}
    return {name: [columns[of][place] for place in kept] for of, name in names.items()}


def made(rows, seed):
    """A generated table, of a hundred rows a place."""
    (train, _), _ = generate(rows, max(5, rows // 100), seed)
    train["y"] = train.pop("label")
    return train


def known(load, rows=None):
    """A table of scikit-learn, or some of its rows."""
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
    """AUC, accuracy or error of what is said: a row of chances, or a number, for each label."""
    if not kinds:
        return np.sqrt(np.mean((said[:, 0] - np.array(labels, float)) ** 2))
    places = np.array([kinds.index(tables.class_name(label)) for label in labels])
    return auc(places, said[:, 1]) if len(kinds) == 2 else np.mean(said.argmax(axis=1) == places)


def of_net(train, test, is_class, options):
    """A net of these options."""
    model, _ = tables.fit(train, "y", classes=is_class, **options)
    return measured(test["y"], model.labels, model.scores(test))


def as_number(cell, texts):
    """A cell as trees want it: dates as days, and texts by their place among those so far."""
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
    """Ten pairs of rows to train and to test on, and a seed each."""
    for seed in (1, 2):
        folds = model_selection.KFold(5, shuffle=True, random_state=seed)
        for parts in folds.split(np.arange(len(columns["y"]))):
            yield *({n: [v[i] for i in part] for n, v in columns.items()} for part in parts), seed


def main():
    """Takes all learners to all tables."""
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
