# SPDX-License-Identifier: Apache-2.0
"""Classifies images from the command line.

    python -m cafetiere.classify INPUT OUTPUT.npy --model_def NET --pretrained_model WEIGHTS [...]

INPUT: an image, a folder of images or an .npy file of an array of images; OUTPUT receives the
scores, (images, classes).
"""

import argparse
import glob
import os
import time

import numpy as np

import cafetiere


def preprocessing_arguments(parser):
    """Adds the flags that say how images become inputs."""
    parser.add_argument("--model_def", required=True, help="the net, a prototxt")
    parser.add_argument("--pretrained_model", required=True, help="its weights")
    parser.add_argument("--gpu", action="store_true", help="warns: there is no GPU support yet")
    parser.add_argument("--mean_file", default="", help=".npy of (channels, height, width)")
    parser.add_argument("--input_scale", type=float, help="multiplies inputs, after the mean")
    parser.add_argument("--raw_scale", type=float, default=255.0, help="multiplies pixels first")
    parser.add_argument("--channel_swap", default="2,1,0", help="the order of channels, BGR")


def preprocessing(options):
    """What Classifier and Detector take of these flags."""
    if options.gpu:
        cafetiere.set_mode_gpu()
    mean = np.load(options.mean_file) if options.mean_file else None
    swap = [int(c) for c in options.channel_swap.split(",")] if options.channel_swap else None
    return {
        "mean": mean,
        "input_scale": options.input_scale,
        "raw_scale": options.raw_scale,
        "channel_swap": swap,
    }


def read_images(path, ending):
    """The images of an .npy file, a folder or a file."""
    path = os.path.expanduser(path)
    if path.endswith("npy"):
        return np.load(path)
    if os.path.isdir(path):
        names = sorted(glob.glob(os.path.join(path, "*." + ending)))
        return [cafetiere.io.load_image(name) for name in names]
    return [cafetiere.io.load_image(path)]


def main(arguments=None):
    """The command line: see the module."""
    parser = argparse.ArgumentParser(prog="cafetiere.classify", description="Classifies images.")
    parser.add_argument("input_file")
    parser.add_argument("output_file")
    preprocessing_arguments(parser)
    parser.add_argument("--center_only", action="store_true", help="no oversampling")
    parser.add_argument("--images_dim", default="256,256", help="height,width before cropping")
    parser.add_argument("--ext", default="jpg", help="which images of a folder")
    options = parser.parse_args(arguments)
    classifier = cafetiere.Classifier(
        options.model_def,
        options.pretrained_model,
        image_dims=[int(side) for side in options.images_dim.split(",")],
        **preprocessing(options),
    )
    images = read_images(options.input_file, options.ext)
    print(f"Classifying {len(images)} inputs.")
    begun = time.perf_counter()
    scores = classifier.predict(images, not options.center_only)
    print(f"Done in {time.perf_counter() - begun:.2f} s.")
    np.save(options.output_file, scores)


if __name__ == "__main__":
    main()
