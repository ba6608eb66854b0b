# SPDX-License-Identifier: Apache-2.0
"""Scores windows of images from the command line.

    python -m cafetiere.detect INPUT OUTPUT --model_def NET --pretrained_model WEIGHTS [...]

INPUT: a .txt of image files, one a line, for which selective search proposes windows, or a .csv
with the columns filename, ymin, xmin, ymax, xmax (--crop_mode list). OUTPUT: .csv with a column for
each class, or .h5. Needs pandas.
"""

import argparse
import time

import cafetiere
from cafetiere.classify import preprocessing, preprocessing_arguments

SIDES = ["ymin", "xmin", "ymax", "xmax"]


def detections(detector, path, crop_mode):
    """The detections of a list of images or of windows."""
    import pandas

    if crop_mode == "list":
        rows = pandas.read_csv(path, sep=r",\s*", dtype={"filename": str}, engine="python")
        windows = rows.groupby("filename", sort=False)
        return detector.detect_windows([(name, group[SIDES].to_numpy()) for name, group in windows])
    with open(path) as file:
        return detector.detect_selective_search([line.strip() for line in file if line.strip()])


def write(path, found):
    """Writes detections as a table."""
    import pandas

    table = pandas.DataFrame(found).set_index("filename")
    for i, side in enumerate(SIDES):
        table[side] = [window[i] for window in table["window"]]
    if not path.lower().endswith("csv"):
        table.drop(columns="window").to_hdf(path, key="df", mode="w")
        return
    scores = pandas.DataFrame(table["prediction"].tolist(), index=table.index)
    scores.columns = [f"class{i}" for i in scores.columns]
    pandas.concat([scores, table[SIDES]], axis=1).to_csv(path)


def main(arguments=None):
    """The command line: see the module."""
    parser = argparse.ArgumentParser(prog="cafetiere.detect", description="Scores windows.")
    parser.add_argument("input_file")
    parser.add_argument("output_file")
    preprocessing_arguments(parser)
    parser.add_argument(
        "--crop_mode", default="selective_search", choices=["selective_search", "list"]
    )
    parser.add_argument("--context_pad", type=int, default=16, help="pixels around a window")
    options = parser.parse_args(arguments)
    detector = cafetiere.Detector(
        options.model_def,
        options.pretrained_model,
        context_pad=options.context_pad,
        **preprocessing(options),
    )
    begun = time.perf_counter()
    found = detections(detector, options.input_file, options.crop_mode)
    print(f"Processed {len(found)} windows in {time.perf_counter() - begun:.3f} s.")
    write(options.output_file, found)


if __name__ == "__main__":
    main()
