# SPDX-License-Identifier: Apache-2.0
"""Which rows of a table are tested on, in place of training on them."""

import hashlib

# As in cli/fit_rows.cc. What they were chosen on: docs/tables.md.
_SHARE, _PATIENCE = 0.1, 10
FEWEST_TO_HOLD_BACK, _FEWEST_TO_STOP = 100, 1500
_NONE = (
    "none of {} rows, as too few differ or have a class that others have; give another share, or "
    "more rows"
)


def is_held_out(row, fraction):
    """Whether a row is held back: by a hash of all its values, so that equal rows stay together."""
    return int.from_bytes(hashlib.sha256(row).digest()[:8], "big") < fraction * 2**64


def split(rows, labels, validation, patience):
    """Whether each row is held back, for a share `validation` of them.

    rows: their bytes; labels: the bytes of their classes, or None of numbers. A class of which all
    rows would be held back is trained on. Without a share a tenth is held back of 100 rows or more,
    or nothing where that leaves one part empty; with a share, or where patience needs rows to test
    on, it is an error then.
    """
    if not rows:
        raise ValueError("the table has no rows to train on")
    is_asked = validation is not None or (patience or 0) > 0
    share = validation
    if share is None:
        share = _SHARE if is_asked or len(rows) >= FEWEST_TO_HOLD_BACK else 0
    held_out = [share > 0 and is_held_out(row, share) for row in rows]
    if labels is not None and any(held_out):
        known = {label for label, held in zip(labels, held_out) if not held}
        held_out = [held and label in known for label, held in zip(labels, held_out)]
    count = sum(held_out)
    if count == len(rows) or (share > 0 and count == 0):
        if is_asked:
            why = "all of {} rows: give another share" if count else _NONE
            raise ValueError(f"validation {share} holds back {why.format(len(rows))}")
        held_out = [False] * len(rows)
    return held_out


def patience_of(patience, held_out):
    """The epochs without a better one that end a training; 0: none do.

    Unless it is given, none do below 1,500 rows: what is held back of them is too little to judge
    an epoch by.
    """
    if patience is not None:
        return patience
    return _PATIENCE if len(held_out) >= _FEWEST_TO_STOP and any(held_out) else 0
