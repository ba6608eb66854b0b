# SPDX-License-Identifier: Apache-2.0
"""Embeddings that end as posterior means beside embeddings as trained.

    bench/tables/setup-peers
    build/tables/bin/python bench/tables/posterior.py [--epochs 10,30] [--seeds 1,2]

The labels of these tables come from known probabilities, which follow from a number and from one or
two columns of text: effects of values that are normal, that are of a few kinds, or that are 0. The
last table has few rows for each value. Prints the mean of the negative logarithm of the probability
given to the label, and the accuracy, on 20,000 rows that were not trained on.
"""

import argparse
import sys

import numpy as np
from tried import MADE, as_trained, tables

OTHERS = 20_000


def normal_effects(random, rows):
    """Two columns of 300 values and three classes."""
    first, second = random.integers(300, size=(2, rows))
    number = random.normal(size=rows)
    effects = random.normal(size=(300, 3))[first] + 0.7 * random.normal(size=(300, 3))[second]
    return {"a": first, "b": second}, number, effects + np.outer(number, random.normal(size=3))


def no_effect(random, rows):
    """A column of 600 values that does not matter."""
    number = random.normal(size=rows)
    return {"a": random.integers(600, size=rows)}, number, binary(1.5 * number - 0.3)


def kinds(random, rows):
    """Two columns of 400 values of 6 kinds, which interact with each other and with the number."""
    first, second = random.integers(400, size=(2, rows))
    number = random.normal(size=rows)
    of_first, of_second = random.integers(6, size=(2, 400))
    together, slope = 1.5 * random.normal(size=(6, 6)), random.normal(size=6)
    odds = together[of_first[first], of_second[second]] + slope[of_first[first]] * number
    return {"a": first, "b": second}, number, binary(odds)


def one_normal_effect(random, rows):
    """A column of 600 values."""
    first, number = random.integers(600, size=rows), random.normal(size=rows)
    return {"a": first}, number, binary(1.2 * random.normal(size=600)[first] + number)


def few_rows(random, rows):
    """A column with 69 rows for each value, which have an effect and a slope."""
    values = rows // 69
    first, number = random.integers(values, size=rows), random.normal(size=rows)
    effect, slope = random.normal(size=(2, values))
    return {"a": first}, number, binary(effect[first] + slope[first] * number)


def binary(odds):
    """The scores of two classes."""
    return np.stack([np.zeros_like(odds), odds], axis=1)


def generated(kind, rows, seed):
    """Columns to train on and others, and the others' probabilities and labels."""
    random = np.random.default_rng(seed)
    texts, number, scores = kind(random, rows + OTHERS)
    chance = softmax(scores)
    label = (chance.cumsum(axis=1) < random.random(rows + OTHERS)[:, None]).sum(axis=1)
    columns = {name: [f"{name} {value}" for value in column] for name, column in texts.items()}
    columns |= {"number": number.tolist(), "label": label.tolist()}
    train = {name: cells[:rows] for name, cells in columns.items()}
    other = {name: cells[rows:] for name, cells in columns.items()}
    return train, other, chance[rows:], label[rows:]


def softmax(scores):
    """The probabilities of the classes."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def quality(chance, label):
    """The two figures."""
    loss = -np.log(np.clip(chance[np.arange(len(label)), label], 1e-9, 1)).mean()
    return f"{loss:.4f}, {(chance.argmax(axis=1) == label).mean():.4f}"


def main():
    """Trains on each table with and without."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--epochs", default="10,30")
    parser.add_argument("--seeds", default="1,2")
    args = parser.parse_args()
    print("| table | seed | epochs | best possible | as trained | posterior means |")
    print("|---|---|---|---|---|---|", flush=True)
    for kind in (normal_effects, no_effect, kinds, one_normal_effect, few_rows):
        for seed in map(int, args.seeds.split(",")):
            train, other, chance, label = generated(kind, args.rows, seed)
            for epochs in map(int, args.epochs.split(",")):
                cells = [kind.__name__, seed, epochs, quality(chance, label)]
                for change in (as_trained, str):
                    tables._net = lambda *given, made=change: made(MADE(*given))  # noqa: SLF001
                    model, _ = tables.fit(train, "label", epochs=epochs, classes=True)
                    cells.append(quality(model.scores(other), label))
                print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
