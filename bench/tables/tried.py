# SPDX-License-Identifier: Apache-2.0
"""Changes to the net of a generated table, to come closer to its best AUC.

    python bench/tables/tried.py --rows 100000 --epochs 20 --seeds 2,3,6 [CHANGE..]

Each change is trained on the table of each seed. Prints each AUC on the validation rows, half of
those that generated.py makes besides the training rows, and the net's error: the variance of the
error of its log odds over all places and plans, of a place's mean and of the rest. First come the
best possible AUC, and what a learner would reach that must learn only each place's effect and kind
from the rows.

The changes are made to the net without hidden layers of the place's own, which had been the default
before; "defaults" is that of today, and "embeddings as trained" the same without the last pass
over the rows.
"""

import argparse
import functools
import pathlib
import re
import sys

import generated
import numpy as np
from generated import KINDS, NOISE, PLANS, SPREAD, auc, generate

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
from cafetiere import tables  # noqa: E402

MADE, TRAIN = tables._net, tables._train  # noqa: SLF001 - as they are, of which lines are changed
OWN = np.linspace(-3.2, 3.2, 65)  # own effects of a place that a learner tells apart
GAPS = ("place", "plan", "age", "usage", "price", "since")
FLAT = '\nlayer { name: "wide/flat" type: "Flatten" bottom: "wide/place" top: "wide/flat" }\n'
EMBEDDED = "embedding/place/flat"
SUM = '\nlayer { name: "sum" type: "Eltwise" bottom: "deep" bottom: "wide/flat" top: "score" }\n'


def replaced(pattern, by, text):
    """The text with something replaced that must be there."""
    text, count = re.subn(pattern, by, text, flags=re.DOTALL)
    assert count > 0, pattern
    return text


def layer(name, text):
    """The text of a layer."""
    return re.search(rf'layer \{{\s+name: "{name}".*?\n\}}', text, re.DOTALL)[0]


def as_trained(text):
    """Embeddings do not end as posterior means."""
    return re.sub(r"\n    posterior \{.*?\n    \}", "", text, flags=re.DOTALL)


def without_own_layers(text):
    """The net as it was before embeddings had hidden layers of their own."""
    text = as_trained(text)
    number = 1
    while f'name: "embedding/place/hidden{number}"' in text:
        for name in (
            f"embedding/place/hidden{number}",
            f"embedding/place/hidden{number}/activation",
        ):
            text = text.replace(layer(name, text) + "\n", "")
        number += 1
    hidden = float(re.search(r"decay_mult: (\S+)", layer("score", text))[1])
    text = replaced(rf"\n\s+decay_mult: {hidden:.9g}\b", "", text)
    text = decayed(100 / hidden, text)  # of what 0.3 x hidden / 30 had left
    return replaced(rf'"embedding/place/hidden{number - 1}"', f'"{EMBEDDED}"', text)


def decayed(factor, text):
    """Embeddings decay `factor` times as much as before."""
    return replaced(
        r"decay_mult: ([1-9]\S*)", lambda m: f"decay_mult: {float(m[1]) * factor}", text
    )


def sized(size, text):
    """Embeddings of `size` numbers."""
    return replaced(r"num_output: \d+(\s+input_dim)", rf"num_output: {size}\1", text)


def dropped(share, text):
    """Dropout on the output of embeddings."""
    flat = 'bottom: "embedding/place/flat" top: "embedding/place/flat"'
    dropout = f"dropout_param {{ dropout_ratio: {share} }}"
    old = layer("embedding/place/flat", text)
    return text.replace(old, f'{old}\nlayer {{ name: "drop" type: "Dropout" {flat} {dropout} }}')


def hurried(factor, text):
    """Embeddings learn at a multiple of the rate, and decay as much a step as before."""
    rate = f" lr_mult: {factor}"
    return replaced(r"decay_mult: [1-9]\S*", lambda m: m[0] + rate, decayed(1 / factor, text))


def widened(text):
    """A weight for each place and class, beside the hidden layers."""
    deep, score = layer("embedding/place", text), layer("score", text)
    wide = sized(2, deep.replace("embedding/place", "wide/place"))
    text = text.replace(deep, f"{deep}\n{wide}{FLAT}")
    return text.replace(score, score.replace('top: "score"', 'top: "deep"') + SUM)


def of_type(kind, bottoms, top, rest=""):
    """The text of a layer that has the name of its top."""
    read = " ".join(f'bottom: "{bottom}"' for bottom in bottoms)
    return f'layer {{\n  name: "{top}" type: "{kind}" {read} top: "{top}" {rest}\n}}\n'


def product(bottom, top, size, filler="xavier"):
    """The text of an InnerProduct."""
    rest = "param { lr_mult: 1 } param { lr_mult: 1 decay_mult: 0 } "
    rest += f'inner_product_param {{ num_output: {size} weight_filler {{ type: "{filler}" }} }}'
    return of_type("InnerProduct", [bottom], top, rest)


def joined(text, parts):
    """The hidden layers read these instead of the embedding."""
    old = layer("input", text)
    read = "\n  ".join(f'bottom: "{part}"' for part in parts)
    return text.replace(old, old.replace(f'bottom: "{EMBEDDED}"', read))


def pairs(size, own, to, text, gate=""):
    """Products of numbers made from the dense columns and from the embedding, or from another one.

    to: "input" of the hidden layers, "score", or both; gate: the type of a layer that the numbers
    of the embedding pass through first.
    """
    if own:
        new = layer("embedding/place", text).replace("embedding/place", "factor/own")
        new = f"{sized(size, new)}\n{of_type('Flatten', ['factor/own'], 'factor/place')}"
    else:
        new = product(EMBEDDED, "factor/place", size)
    if gate:
        new += of_type(gate, ["factor/place"], "factor/gate")
    new += product("features", "factor/features", size)
    both = ["factor/features", "factor/gate" if gate else "factor/place"]
    new += of_type("Eltwise", both, "pairs", "eltwise_param { operation: PROD }")
    if "score" in to:
        new += product("pairs", "pairs/score", 2)
        old = layer("score", text)
        summed = SUM.replace("wide/flat", "pairs/score")
        text = text.replace(old, old.replace('top: "score"', 'top: "deep"') + summed)
    old = layer("input", text)
    text = text.replace(old, new + old)
    return joined(text, [EMBEDDED, "pairs"]) if "input" in to else text


def branch(sizes, text, bend_last=True, keep=False):
    """The embedding has its own hidden layers before it joins the rest."""
    new, bottom = "", EMBEDDED
    for i, size in enumerate(sizes):
        top = f"branch{i + 1}"
        new += product(bottom, top, size, "msra")
        if bend_last or i + 1 < len(sizes):
            new += f'layer {{ name: "{top}/bend" type: "ReLU" bottom: "{top}" top: "{top}" }}\n'
        bottom = top
    old = layer("input", text)
    return joined(text.replace(old, new + old), [EMBEDDED, bottom] if keep else [bottom])


def all_decay(factor, of_embeddings=1, change=str):
    """Hidden layers and scores decay `factor` times as much, embeddings `of_embeddings` times."""

    def net(text):
        return change(decayed(of_embeddings / factor, text))

    return {"net": net, "decay": 0.01 * factor}


def change_of(function, *arguments):
    """A change only of the net's text."""
    return {"net": functools.partial(function, *arguments)}


CHANGES = {
    "defaults": {},
    "embeddings as trained": {"whole": as_trained},
    "no layers of the place's own": change_of(str),
    "hidden decay 3": all_decay(3),
    "hidden decay 10": all_decay(10),
    "hidden decay 30": all_decay(30),
    "hidden decay 100": all_decay(100),
    "[128, 64]": {"layers": (128, 64)},
    "[256, 128]": {"layers": (256, 128)},
    "hidden decay 3, [128, 64]": {**all_decay(3), "layers": (128, 64)},
    "hidden decay 30, [128, 64]": {**all_decay(30), "layers": (128, 64)},
    "hidden decay 3, dropout of embeddings 0.2": all_decay(3, 1, functools.partial(dropped, 0.2)),
    "hidden decay 30, wide part": all_decay(30, 1, widened),
    "wide part": change_of(widened),
    "embedding decay x 0.5": change_of(decayed, 0.5),
    "embedding decay x 2": change_of(decayed, 2),
    "dropout of embeddings 0.2": change_of(dropped, 0.2),
    "dropout of embeddings 0.3, decay x 0.3": {
        "net": lambda text: dropped(0.3, decayed(0.3, text))
    },
    "embeddings of 8, decay x 0.3": {"net": lambda text: sized(8, decayed(0.3, text))},
    "embeddings at 3 times the rate": change_of(hurried, 3),
    "pairs of 8 to the layers": change_of(pairs, 8, False, "input"),
    "pairs of 8 to the score": change_of(pairs, 8, False, "score"),
    "pairs of 50 to the layers": change_of(pairs, 50, False, "input"),
    "pairs of 50 to the score": change_of(pairs, 50, False, "score"),
    "own pairs of 8 to the layers": change_of(pairs, 8, True, "input"),
    "own pairs of 8 to the score": change_of(pairs, 8, True, "score"),
    "own pairs of 16 to both": change_of(pairs, 16, True, "input, score"),
    "gated pairs of 16 to the layers": change_of(
        functools.partial(pairs, gate="Softmax"), 16, False, "input"
    ),
    "gated pairs of 16 to the score": change_of(
        functools.partial(pairs, gate="Softmax"), 16, False, "score"
    ),
    "hidden decay 30, pairs of 8 to the layers": all_decay(
        30, 1, functools.partial(pairs, 8, False, "input")
    ),
    "hidden decay 30, own pairs of 8 to the score": all_decay(
        30, 1, functools.partial(pairs, 8, True, "score")
    ),
    "hidden decay 30, gated pairs of 16 to the score": all_decay(
        30, 1, functools.partial(pairs, 16, False, "score", gate="Softmax")
    ),
    "branch of 64, 32 without the last ReLU": change_of(
        functools.partial(branch, bend_last=False), (64, 32)
    ),
    "embeddings of 4": change_of(sized, 4),
    "embeddings of 16": change_of(sized, 16),
}


for hidden, embeddings in ((3, 0.3), (10, 1), (10, 0.5), (10, 0.3), (30, 1), (30, 0.5)):
    for sizes in ((), (64,), (64, 32)):
        name = f"hidden decay {hidden}, of embeddings x {embeddings}, branch of {sizes}"
        CHANGES[name] = all_decay(hidden, embeddings, functools.partial(branch, sizes))


def log_odds(chance):
    """The log odds of each probability."""
    chance = np.clip(chance, 1e-6, 1 - 1e-6)
    return np.log(chance / (1 - chance))


def chances(odds):
    """The probabilities of labels of which some are flipped."""
    return NOISE + (1 - 2 * NOISE) / (1 + np.exp(-odds))


def errors(model, seed, places):
    """The variance of the error of a place's mean, and of what its plans add."""
    kinds = len(PLANS) + 1  # with one for a gap
    place, plan = np.divmod(np.arange(places * kinds), kinds)
    zero = np.zeros(len(place))
    gaps = {name: zero > 0 for name in GAPS} | {"plan": plan == len(PLANS), "since": zero == 0}
    effects = generated._effects(np.random.default_rng(seed), places)  # noqa: SLF001
    known = np.minimum(plan, len(PLANS) - 1)
    true = generated._logit(effects, place, known, zero + 45, zero, zero, zero, gaps)  # noqa: SLF001
    cells = {
        "place": [f"place {number}" for number in place],
        "plan": [[*PLANS, None][number] for number in plan],
        "since": [None] * len(place),
    }
    cells |= {"age": [45] * len(place), "usage": [100.0] * len(place), "price": [9.0] * len(place)}
    off = log_odds(model.scores(cells)[:, 1]) - log_odds(chances(true))
    off = off.reshape(places, kinds)
    means = off.mean(axis=1)
    rest = off - means[:, None]
    return means.var(), (rest - rest.mean(axis=0)).var() * kinds / (kinds - 1)


def without_places(columns):
    """Places (-1: missing), plans, and the log odds without what these two add."""

    def cells(name):
        return np.array([np.nan if cell is None else float(cell) for cell in columns[name]])

    numbers = {name: place for place, name in enumerate(PLANS)}
    plan = np.array([numbers.get(cell, len(PLANS)) for cell in columns["plan"]])
    place = np.array([-1 if cell is None else int(cell.split()[1]) for cell in columns["place"]])
    first = generated.FIRST_DAY.astype(object)
    days = [np.nan if day is None else float((day - first).days) for day in columns["since"]]
    age, usage, price = cells("age"), (cells("usage") - 100) / 40, (cells("price") - 9) / 2
    told = {"age": age, "usage": usage, "price": price, "since": np.array(days)}
    gaps = {name: np.isnan(values) for name, values in told.items()}
    gaps |= {"plan": plan == len(PLANS), "place": place < -1}
    none = {"place": np.zeros(1), "kind": np.zeros(1, int), "plan": np.zeros((1, len(PLANS) + 1))}
    numbers = [np.nan_to_num(values) for values in told.values()]
    at = np.minimum(plan, len(PLANS) - 1)
    return place, plan, generated._logit(none, 0 * place, at, *numbers, gaps)  # noqa: SLF001


def beliefs(likely):
    """Chances of kinds and own effects, by place, from the logarithms of the rows' likelihoods."""
    belief = likely - (OWN[:, None] / SPREAD) ** 2 / 2
    belief = np.exp(belief - belief.max(axis=(0, 1)))
    return belief / belief.sum(axis=(0, 1))


def ideal(train, other, seed, places):
    """Probabilities given all effects, where only the rows tell which place has which effect."""
    effects = generated._effects(np.random.default_rng(seed), places)  # noqa: SLF001
    place, plan, base = without_places(train)
    label, named = np.array(train["label"]) == 1, place >= 0
    likely = np.zeros((KINDS, len(OWN), places))
    for kind, at in np.ndindex(KINDS, len(OWN)):
        chance = chances(base + effects["plan"][kind, plan] + OWN[at])[named]
        of_row = np.log(np.where(label[named], chance, 1 - chance))
        likely[kind, at] = np.bincount(place[named], of_row, places)
    belief = beliefs(likely)
    place, plan, base = without_places(other)
    said = np.zeros(len(place))
    for kind, at in np.ndindex(KINDS, len(OWN)):
        said += belief[kind, at, place] * chances(base + effects["plan"][kind, plan] + OWN[at])
    return np.where(place < 0, chances(base + 0.3 + effects["plan"][0, plan]), said)


def trained(columns, change, epochs):
    """A model of the changed net."""
    options = {key: value for key, value in change.items() if key not in ("net", "decay", "whole")}
    decay = f"weight_decay: {change.get('decay', 0.01)}"
    if "whole" in change:
        tables._net = lambda *given: change["whole"](MADE(*given))  # noqa: SLF001
    elif change:  # of the net that the figures of docs/accuracy.md are of
        made = change.get("net", str)
        tables._net = lambda *given: made(without_own_layers(MADE(*given)))  # noqa: SLF001
    else:
        tables._net = MADE  # noqa: SLF001
    tables._train = lambda given, *rest: TRAIN(  # noqa: SLF001
        {**given, "solver": replaced(r"weight_decay: 0\.01", decay, given["solver"])}, *rest
    )
    return tables.fit(columns, "label", epochs=epochs, **options)[0]


def main():
    """Trains on each seed with each change."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("changes", nargs="*", help="of those in CHANGES; none: all")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", default="2,3,6")
    args = parser.parse_args()
    places = args.rows // 100
    print("| seed | change | AUC | error of places | of plans |\n|---|---|---|---|---|", flush=True)
    for seed in map(int, args.seeds.split(",")):
        (train, _), (other, chance) = generate(args.rows, places, seed)
        half = slice(len(chance) // 2)
        label = np.array(other["label"])[half]
        known = ideal(train, other, seed, places)
        for name, said in (("the best there is", chance), ("ideal of the rows", known)):
            print(f"| {seed} | {name} | {auc(label, said[half]):.4f} | | |", flush=True)
        for name in args.changes or CHANGES:
            model = trained(train, CHANGES[name], args.epochs)
            off = " | ".join(f"{part:.3f}" for part in errors(model, seed, places))
            said = model.scores(other)[half, 1]
            print(f"| {seed} | {name} | {auc(label, said):.4f} | {off} |", flush=True)


if __name__ == "__main__":
    main()
