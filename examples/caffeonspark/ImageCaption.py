# SPDX-License-Identifier: Apache-2.0
"""Tells what is in pictures, in the executors.

    spark-submit --conf spark.pythonargs="-input coco/rows -model captions.model \
        -imagenet caption_image.prototxt -lstmnet caption_words.prototxt -vocab coco/vocab \
        -output captions" ImageCaption.py

-input is a table of id and data, whose field image is a picture's file; -output gets JSON of id and
prediction. All paths but those two are read in the executors, which need the package cafetiere with
Pillow. -imagenet makes the blob picture of data; -lstmnet makes probs of picture, input_sentence
and cont_sentence, as many steps at once as a caption may have words.
"""

import argparse
import functools
import io
import pathlib

import numpy as np
from pyspark import SparkContext
from pyspark.sql import SparkSession

END = 0  # begins and ends a sentence


def read_words(folder):
    """The words by number, of what Vocab.save() wrote."""
    parts = sorted(pathlib.Path(folder).glob("part-*"))
    return ["<EOS>", *(word for part in parts for word in part.read_text().splitlines())]


def pixels(file, height, width):
    """A picture as the net was trained on it: planes of blue, green and red, from 0 to 1."""
    from PIL import Image

    image = Image.open(io.BytesIO(file)).convert("RGB")
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(image, np.float32)[:, :, ::-1].transpose(2, 0, 1) / 256


def tell(net, words):
    """The sentence that a net with a picture in it tells: the likeliest word at each step."""
    steps = net.blobs["probs"].data.shape[0]
    net.blobs["input_sentence"].data[...] = END
    net.blobs["cont_sentence"].data[...] = 1
    net.blobs["cont_sentence"].data[0] = 0
    told = []
    for step in range(steps):
        net.forward()
        word = int(net.blobs["probs"].data[step, 0].argmax())
        if word == END:
            break
        told.append(words[word])
        if step + 1 < steps:
            net.blobs["input_sentence"].data[step + 1] = word
    return " ".join(told)


def captions(rows, model, imagenet, lstmnet, vocab):
    """(id, sentence) of each row of a partition."""
    import cafetiere

    seen = cafetiere.Net(imagenet, model, cafetiere.TEST)
    said = cafetiere.Net(lstmnet, model, cafetiere.TEST)
    words = read_words(vocab)
    height, width = seen.blobs["data"].data.shape[2:]
    for row in rows:
        seen.blobs["data"].data[0] = pixels(row["image"], height, width)
        seen.forward()
        said.blobs["picture"].data[...] = seen.blobs["picture"].data
        yield row["id"], tell(said, words)


def predictions(images, model, imagenet, lstmnet, vocab):
    """A DataFrame of id and prediction for one of id and image."""
    job = functools.partial(captions, model=model, imagenet=imagenet, lstmnet=lstmnet, vocab=vocab)
    return images.rdd.mapPartitions(job).toDF("id string, prediction string")


def main():
    """Entry point."""
    parser = argparse.ArgumentParser(description="Captions of pictures", allow_abbrev=False)
    for name in ("input", "model", "imagenet", "lstmnet", "vocab", "output"):
        parser.add_argument(f"-{name}", required=True)
    sc = SparkContext.getOrCreate()
    args = parser.parse_args(sc.getConf().get("spark.pythonargs").split())
    images = SparkSession(sc).read.parquet(args.input).select("id", "data.image")
    told = predictions(images, args.model, args.imagenet, args.lstmnet, args.vocab)
    told.write.json(args.output)


if __name__ == "__main__":
    main()
