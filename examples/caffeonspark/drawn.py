# SPDX-License-Identifier: Apache-2.0
"""Data that need no download: digits, and pictures with captions in COCO's form. Needs Pillow."""

import json
import pathlib
import random

from PIL import Image, ImageDraw, ImageFont

SIDE = 28
DIGITS = "id string, label string, channels int, height int, width int, data binary"
COLORS = ("red", "green", "blue")


def digits(count, seed=1):
    """Rows of the schema DIGITS: the classes in turn, each digit a little elsewhere."""
    place = random.Random(seed)
    font = ImageFont.load_default(size=22)
    rows = []
    for i in range(count):
        image = Image.new("L", (SIDE, SIDE))
        corner = (place.randint(4, 12), place.randint(-1, 5))
        ImageDraw.Draw(image).text(corner, str(i % 10), fill=place.randint(128, 255), font=font)
        rows.append((f"{i:05d}", str(i % 10), 1, SIDE, SIDE, bytearray(image.tobytes())))
    return rows


def caption(i):
    """What picture i shows."""
    return f"A {COLORS[i % 3]} {'bar' if i % 2 else 'square'}."


def pictures(folder, count):
    """Writes pictures and captions.json into a new folder."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    images, annotations = [], []
    for i in range(count):
        image = Image.new("RGB", (24, 20))
        x, y = i % 5, i // 5 % 4
        box = (x, 7 + y, x + 19, 10 + y) if i % 2 else (4 + x, 2 + y, 15 + x, 13 + y)
        ImageDraw.Draw(image).rectangle(box, fill=COLORS[i % 3])
        name = f"picture_{i}.png"
        image.save(folder / name)
        images.append({"id": i, "height": 20, "width": 24, "file_name": name})
        annotations.append({"id": i, "image_id": i, "caption": caption(i)})
    coco = {"images": images, "annotations": annotations}
    (folder / "captions.json").write_text(json.dumps(coco))
