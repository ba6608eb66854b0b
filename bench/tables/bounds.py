# SPDX-License-Identifier: Apache-2.0
"""What learners reach on a generated table that are told more of it than a net is.

    python bench/tables/bounds.py --rows 100000 --seed 2

All of them know the effects of all columns but the place. What a place adds to each plan, they
learn from the training rows:

    posterior  knowing the effects of the kinds, the mean over all that the rows leave open
    counts     the same, but from the labels counted by place and plan instead of the rows
    mixture    knowing the same, the most probable own effect and softmax weights of the kinds
    normal     the most probable under a normal distribution with the covariance of all places

A net that is trained to the least loss learns points, as the last two do, and not means over what
is open, and it is told nothing. Prints each one's AUC on the validation rows, half of those that
generated.py makes besides the training rows.
"""

import argparse

import generated
import numpy as np
from generated import KINDS, NOISE, PLANS, SPREAD, auc, generate
from tried import OWN, beliefs, chances, ideal, without_places

COLUMNS = len(PLANS) + 1  # the last: no plan is told


class Rows:
    """The training rows that have a place, and what is known of them."""

    def __init__(self, columns, seed, places):
        effects = generated._effects(np.random.default_rng(seed), places)  # noqa: SLF001
        place, plan, base = without_places(columns)
        told = place >= 0
        self.cell = place[told] * COLUMNS + plan[told]
        self.base, self.label = base[told], np.array(columns["label"], float)[told]
        self.places, self.plans = places, effects["plan"]
        self.true = effects["plan"][effects["kind"]] + effects["place"][:, None]

    def by_cell(self, values):
        """Sums by place and plan."""
        sums = np.bincount(self.cell, values, self.places * COLUMNS)
        return sums.reshape(self.places, COLUMNS)

    def slope(self, added):
        """The derivative of the rows' loss by what places add to plans."""
        share = 1 / (1 + np.exp(-self.base - added.ravel()[self.cell]))
        chance = NOISE + (1 - 2 * NOISE) * share
        by_chance = (1 - self.label) / (1 - chance) - self.label / chance
        return self.by_cell(by_chance * (1 - 2 * NOISE) * share * (1 - share))


def least(slopes, values, steps=300, rate=0.1):
    """Adam from `values`, at a rate that falls to 0 along a cosine."""
    means, squares = np.zeros_like(values), np.zeros_like(values)
    for step in range(1, steps + 1):
        slope = slopes(values)
        means += 0.1 * (slope - means)
        squares += 0.01 * (slope**2 - squares)
        move = means / (1 - 0.9**step) / (np.sqrt(squares / (1 - 0.99**step)) + 1e-6)
        values = values - rate * 0.5 * (1 + np.cos(np.pi * step / steps)) * move
    return values


def from_mixture(rows):
    """What places add: their own effect, and the kinds' effects by weights of a softmax."""

    def parts(values):
        weights = np.exp(values[:, 1:] - values[:, 1:].max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        return weights, weights @ rows.plans + values[:, :1]

    def slopes(values):
        weights, added = parts(values)
        by_added = rows.slope(added)
        by_weight = by_added @ rows.plans.T
        by_odds = weights * (by_weight - (by_weight * weights).sum(1, keepdims=True))
        own = by_added.sum(1, keepdims=True) + values[:, :1] / SPREAD**2
        return np.hstack([own, by_odds + 0.02 * values[:, 1:]])

    return parts(least(slopes, np.zeros((rows.places, 1 + KINDS))))[1]


def from_normal(rows):
    """What places add, if the prior knows its mean and covariance."""
    mean = rows.true.mean(0)
    precision = np.linalg.inv(np.cov(rows.true.T) + 1e-3 * np.eye(COLUMNS))
    start = np.tile(mean, (rows.places, 1))
    return least(lambda added: rows.slope(added) + (added - mean) @ precision, start)


def from_counts(rows):
    """What places add, from the counts of their labels by plan."""
    ones = rows.by_cell(rows.label)
    zeros = rows.by_cell(1 - rows.label)
    base = np.random.default_rng(0).choice(rows.base, 2000)[:, None]
    likely = np.zeros((KINDS, len(OWN), rows.places))
    for kind, plan in np.ndindex(KINDS, COLUMNS):
        chance = chances(base + rows.plans[kind, plan] + OWN).mean(0)
        likely[kind] += np.outer(np.log(chance), ones[:, plan])
        likely[kind] += np.outer(np.log(1 - chance), zeros[:, plan])
    belief = beliefs(likely)
    own = (belief * OWN[:, None]).sum((0, 1))
    return belief.sum(1).T @ rows.plans + own[:, None]


def main():
    """Prints a line for each learner."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=2)
    args = parser.parse_args()
    places = args.rows // 100
    (train, _), (other, chance) = generate(args.rows, places, args.seed)
    half = slice(len(chance) // 2)
    label = np.array(other["label"])[half]
    rows = Rows(train, args.seed, places)
    place, plan, base = without_places(other)

    def scores(added):
        unplaced = base + 0.3 + rows.plans[0, plan]
        return np.where(place < 0, unplaced, base + added[place, plan])

    learners = {
        "the best there is": chance,
        "posterior": ideal(train, other, args.seed, places),
        "counts": scores(from_counts(rows)),
        "mixture": scores(from_mixture(rows)),
        "normal": scores(from_normal(rows)),
    }
    for name, said in learners.items():
        print(f"| {name} | {auc(label, said[half]):.4f} |", flush=True)


if __name__ == "__main__":
    main()
