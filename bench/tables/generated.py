# SPDX-License-Identifier: Apache-2.0
"""A table whose best AUC is known, since the probability of each label is known.

    python bench/tables/generated.py 1000000 out/generated

writes train.parquet with that many rows and test.parquet with a fifth as many.

The label follows from the cells of the table: text of 10,000 places and 6 plans, whose effects
depend on each other by kinds of places that the table does not show; numbers, two of which are
multiplied; a date, by season and weekday. A tenth of the cells is missing, which has its own
effect. The label of 2 rows in 100 is flipped.
"""

import pathlib
import sys

import numpy as np

MISSING, NOISE = 0.1, 0.02
SPREAD = 0.9  # of the places' own effects
KINDS, PLANS = 8, ["basic", "plus", "family", "night", "student", "trial"]
FIRST_DAY = np.datetime64("2023-01-01")
TEST_SHARE = 5  # a test row for so many


def auc(labels, scores):
    """The area under the ROC curve; equal scores count half."""
    values, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    positives = int(labels.sum())
    above = ranks[place][labels == 1].sum() - positives * (positives + 1) / 2
    return above / (positives * (len(labels) - positives))


def _effects(random, places):
    """The effects that the label follows from, drawn once for all rows."""
    return {
        "place": random.normal(0, SPREAD, places),
        "kind": random.integers(0, KINDS, places),
        "plan": random.normal(0, 1.3, (KINDS, len(PLANS) + 1)),  # the last: no plan is told
    }


def _logit(effects, place, plan, age, usage, price, days, gaps):
    """The log odds of each row; gaps: which cells are missing, by column."""
    there = {name: ~gap for name, gap in gaps.items()}
    plan = np.where(gaps["plan"], len(PLANS), plan)
    # Without a place nothing is known of its kind: the plan has the effect of the first one.
    kind = np.where(gaps["place"], 0, effects["kind"][place])
    total = np.where(gaps["place"], 0.3, effects["place"][place]) + effects["plan"][kind, plan]
    total += np.where(gaps["age"], -0.5, 1.2 * np.abs(age - 45) / 15 - 0.9)
    total += 1.1 * usage * price * (there["usage"] & there["price"])
    total += 0.6 * gaps["usage"]
    season = np.sin(2 * np.pi * (days % 365.25) / 365.25)
    weekend = (days + 6) % 7 < 2  # the first day is a Sunday
    return total + there["since"] * (0.8 * season + 0.9 * weekend) - 0.6


def generate(rows, places, seed=1):
    """Columns by name, None where missing; each label's chance; both for train and test rows."""
    random = np.random.default_rng(seed)
    effects = _effects(random, places)
    made = []
    for count in (rows, rows // TEST_SHARE):
        place, plan = random.integers(0, places, count), random.integers(0, len(PLANS), count)
        age = random.integers(18, 80, count)
        usage, price = random.normal(0, 1, count), random.normal(0, 1, count)
        days = random.integers(0, 730, count)
        names = ("place", "plan", "age", "usage", "price", "since")
        gaps = {name: random.random(count) < MISSING for name in names}
        odds = np.exp(_logit(effects, place, plan, age, usage, price, days, gaps))
        chance = NOISE + (1 - 2 * NOISE) * odds / (1 + odds)
        cells = {
            "place": np.array([f"place {number}" for number in range(places)], object)[place],
            "plan": np.array(PLANS, object)[plan],
            "age": age.astype(object),
            "usage": (100 + 40 * usage).astype(object),
            "price": (9 + 2 * price).astype(object),
            "since": (FIRST_DAY + days).astype(object),
        }
        for name, gap in gaps.items():
            cells[name][gap] = None
        columns = {name: values.tolist() for name, values in cells.items()}
        columns["label"] = (random.random(count) < chance).astype(int).tolist()
        made.append((columns, chance))
    return made


def write(rows, places, folder):
    """Writes both tables, with the chance as a column, as Parquet."""
    import pyarrow
    import pyarrow.parquet

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (columns, chance) in zip(("train", "test"), generate(rows, places), strict=True):
        best = auc(np.array(columns["label"]), chance)
        print(f"{name}: {len(chance)} rows, the best AUC is {best:.4f}")
        table = pyarrow.table({**columns, "chance": chance})
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")


def places_of(rows):
    """A hundred rows for each place, and 10,000 places at most."""
    return min(10_000, rows // 100)


if __name__ == "__main__":
    write(int(sys.argv[1]), places_of(int(sys.argv[1])), sys.argv[2])
