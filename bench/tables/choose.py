# SPDX-License-Identifier: Apache-2.0
"""Generated tables of any seed, with embeddings that decay more or less, and other initial weights.

    bench/tables/setup-peers
    build/tables/bin/python bench/tables/choose.py --rows 100000 --seeds 2,3 --decays 1,100,300

A default is chosen on the validation rows of some seeds, and reported on the test rows of others:
each is half of the rows that generated.py makes besides the training rows. A decay is how many
times as much as other weights embeddings decay; 0: the default's. Prints a line for each training,
with its seconds of CPU time.
"""

import argparse
import pathlib
import re
import sys
import time

import numpy as np
from generated import auc, generate

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
from cafetiere import tables  # noqa: E402

FILLERS = {
    "he": 'weight_filler { type: "msra" }',
    "glorot": 'weight_filler { type: "xavier" variance_norm: AVERAGE }',
}
MADE = tables._net  # noqa: SLF001 - the net as it is made, of which a bench changes two lines


def changed(decay, first):
    """A function that makes nets with this embedding decay and these initial hidden weights."""

    def net(*arguments):
        text = MADE(*arguments)
        if decay:
            text, count = re.subn(r"decay_mult: [1-9]\S*", f"decay_mult: {decay}", text)
            assert count > 0, "no embedding has a decay of its own"
        if first:
            hidden = r'(name: "hidden\d+"\n.*?)weight_filler \{[^}]*\}'
            text, count = re.subn(hidden, rf"\g<1>{FILLERS[first]}", text, flags=re.DOTALL)
            assert count > 0, "there is no hidden layer"
        return text

    return net


def halves(columns, size):
    """Rows to choose on, and rows to report."""
    return [
        {name: cells[part] for name, cells in columns.items()}
        for part in (slice(size // 2), slice(size // 2, size))
    ]


def main():
    """Trains on each seed with each decay and each filler."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--per-place", type=int, default=100, help="rows for each of the texts")
    parser.add_argument("--seeds", default="2,3")
    parser.add_argument("--decays", default="0")
    parser.add_argument("--first", default="", help="he, glorot; empty: the default's")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    print(
        "| rows | a place | batch | epochs | seed | decay | first | best | validation | test | s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for seed in map(int, args.seeds.split(",")):
        made = generate(args.rows, args.rows // args.per_place, seed)
        (train, _), (other, chance) = made
        parts = halves(other, len(chance))
        best = auc(np.array(other["label"]), chance)
        for decay in args.decays.split(","):
            for first in args.first.split(","):
                tables._net = changed(float(decay), first)  # noqa: SLF001
                began = time.process_time()
                model, _ = tables.fit(train, "label", epochs=args.epochs, batch=args.batch)
                seconds = time.process_time() - began
                said = [auc(np.array(part["label"]), model.scores(part)[:, 1]) for part in parts]
                line = [args.rows, args.per_place, args.batch, args.epochs, seed, decay, first]
                line += [f"{share:.4f}" for share in (best, *said)] + [f"{seconds:.0f}"]
                print(f"| {' | '.join(map(str, line))} |", flush=True)


if __name__ == "__main__":
    main()
