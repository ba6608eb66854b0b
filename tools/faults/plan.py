# SPDX-License-Identifier: Apache-2.0
"""What can fail, in which ways of training, and which faults a seed draws."""

import dataclasses
import json
import pathlib
import random

ENGINES = ("barrier", "survivors", "rounds")
MODES = ("allreduce", "average", "diloco", "easgd", "downpour", "hierarchical", "auto")
# The most telling ones first: those are what a short run comes to.
PAIRS = (
    ("barrier", "allreduce"),
    ("survivors", "average"),
    ("rounds", "average"),
    ("barrier", "hierarchical"),
    ("survivors", "easgd"),
    ("rounds", "diloco"),
    ("barrier", "diloco"),
    ("survivors", "diloco"),
    ("barrier", "average"),
    ("barrier", "easgd"),
    ("barrier", "auto"),
    ("survivors", "downpour"),
)
# auto promises the bits of what it chooses, and measures before it does.
WITHOUT_BITS = ("easgd", "downpour", "auto")
KINDS = ("kill", "stop", "pause", "cut", "slow", "disk", "driver")
RANKS = 3  # one on each worker, so that every fault is felt
# The members that are left go on at once: longer, so that the lost one can come back.
STEPS = {"barrier": 400, "survivors": 1200, "rounds": 400}
INTERVAL = 10  # of checkpoints, the progress that is seen
FAULTS_A_FIT = 3


@dataclasses.dataclass(frozen=True)
class Fault:
    """One fault: in which fit of a pair, when, where, for how long.

    kill and driver are SIGKILL, stop is SIGSTOP and pause the same with SIGCONT after `seconds`;
    cut and slow are of a worker's link, for `seconds`, disk is one that is full for so long. It
    happens `delay_ms` after the checkpoint of `step` was seen.
    """

    engine: str
    mode: str
    fit: int
    step: int
    delay_ms: int
    kind: str
    worker: int
    seconds: float
    mbit: float

    def __str__(self):
        """As the fault list prints it."""
        where = "" if self.kind in ("disk", "driver") else f" worker {self.worker}"
        rate = f" to {self.mbit} Mbit/s" if self.kind == "slow" else ""
        lasts = "" if self.kind in ("kill", "stop", "driver") else f" for {self.seconds} s"
        return f"{self.kind}{where}{rate}{lasts}, {self.delay_ms} ms after step {self.step}"


def promises_bits(engine: str, mode: str) -> bool:
    """Whether the weights are those of an undisturbed run."""
    return engine != "survivors" and mode not in WITHOUT_BITS


def drawn(seed: int, engine: str, mode: str):
    """The faults of one fit after the other, without end; every kind comes before one repeats."""
    draw = random.Random(f"{seed} {engine} {mode}")
    deck, fit = [], 0
    while True:
        # Far enough from each other that the training gets on between them: what fails twice at
        # one step is, rightly, not tried for ever.
        places = range(INTERVAL, STEPS[engine] - 4 * INTERVAL, 4 * INTERVAL)
        faults = []
        for step in sorted(draw.sample(places, FAULTS_A_FIT)):
            deck = deck or draw.sample(KINDS, len(KINDS))
            faults.append(
                Fault(
                    engine,
                    mode,
                    fit,
                    step,
                    delay_ms=draw.randrange(400),
                    kind=deck.pop(),
                    worker=draw.randint(1, RANKS),
                    seconds=round(draw.uniform(0.5, 8), 1),
                    mbit=round(draw.uniform(0.5, 20), 1),
                )
            )
        yield faults
        fit += 1


def listed(path: pathlib.Path) -> dict[tuple[str, str], list[list[Fault]]]:
    """The faults of a list that an earlier run has written, by pair and fit."""
    fits: dict[tuple[str, str, int], list[Fault]] = {}
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if "kind" in entry:
            fault = Fault(**entry)
            fits.setdefault((fault.engine, fault.mode, fault.fit), []).append(fault)
    pairs: dict[tuple[str, str], list[list[Fault]]] = {}
    for (engine, mode, _), faults in fits.items():
        pairs.setdefault((engine, mode), []).append(faults)
    return pairs


def write_table(path: pathlib.Path, rows: int):
    """A table of images of a bright bar on noise, whose place is the label."""
    # Only here: whoever asks for help needs neither.
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    noise = np.random.default_rng(1)
    images = noise.integers(0, 64, (rows, 28, 28), dtype=np.uint8)
    for row in range(rows):
        top = 2 + 2 * (row % 10)
        images[row, top : top + 3, 4:24] = 230
    table = {
        "image": pyarrow.array([image.tobytes() for image in images], pyarrow.binary()),
        "label": pyarrow.array([row % 10 for row in range(rows)], pyarrow.int32()),
    }
    pyarrow.parquet.write_table(pyarrow.table(table), path)
