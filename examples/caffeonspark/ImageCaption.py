# SPDX-License-Identifier: Apache-2.0
"""Tells what is in pictures, in the executors.

    spark-submit --conf spark.pythonargs="-input coco/rows -model captions.model \
        -imagenet caption_image.prototxt -lstmnet caption_words.prototxt -vocab coco/vocab \
        -output captions" ImageCaption.py

-input is a table of id and data, whose field image is a picture's file; -output gets JSON of id and
prediction. All paths but those two are read in the executors, which need the package cafetiere with
Pillow. -imagenet makes the blob picture, or fc8, of data; -lstmnet makes probs of that, as picture
or image_features, and of input_sentence and cont_sentence: as many steps at once as a caption may
have words, or one step at a time, as lrcn_word_to_preds.deploy.prototxt does. Pixels are blue,
green and red, less -mean and times -scale, as -imagenet was trained on them: by default 0,0,0 and
1/256, and for LRCN -mean 104,117,123 -scale 1.
"""

import argparse
import functools
import io
import pathlib

import numpy as np
from pyspark import SparkContext
from pyspark.sql import SparkSession

END = 0  # begins and ends a sentence
MOST_WORDS = 50  # of a net that makes one step at a time


def read_words(folder):
    """The words by number, of what Vocab.save() wrote."""
    parts = sorted(pathlib.Path(folder).glob("part-*"))
    return ["<EOS>", *(word for part in parts for word in part.read_text().splitlines())]


def pixels(file, height, width, mean, scale):
    """A picture as the net was trained on it: planes of blue, green and red."""
    from PIL import Image

    image = Image.open(io.BytesIO(file)).convert("RGB")
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    return ((np.asarray(image, np.float32)[:, :, ::-1] - mean) * scale).transpose(2, 0, 1)


def tell(net, words):
    """The sentence that a net with a picture in it tells: the likeliest word at each step."""
    told = []
    for number in likeliest(net):
        if number == END:
            break
        told.append(words[number])
    return " ".join(told)


def likeliest(net):
    """The numbers of the likeliest words, each after those before it."""
    steps = net.blobs["probs"].data.shape[0]
    sentence, cont = net.blobs["input_sentence"].data, net.blobs["cont_sentence"].data
    sentence[...] = END
    cont[...] = 1
    cont[0] = 0  # here a sentence begins
    for step in range(steps if steps > 1 else MOST_WORDS):
        net.forward()
        word = int(net.blobs["probs"].data[step % steps, 0].argmax())
        yield word
        sentence[(step + 1) % steps] = word
        if steps == 1:
            cont[0] = 1  # the net remembers the words before


def blob_of(net, *names):
    """The first of these blobs that a net has."""
    for name in names:
        if name in net.blobs:
            return net.blobs[name]
    raise SystemExit(f"the net has none of the blobs {', '.join(names)}")


def captions(rows, model, imagenet, lstmnet, vocab, mean, scale):
    """(id, sentence) of each row of a partition."""
    import cafetiere

    seen = cafetiere.Net(imagenet, model, cafetiere.TEST)
    said = cafetiere.Net(lstmnet, model, cafetiere.TEST)
    from_picture = blob_of(seen, "picture", "fc8")
    to_words = blob_of(said, "picture", "image_features")
    words = read_words(vocab)
    height, width = seen.blobs["data"].data.shape[2:]
    for row in rows:
        seen.blobs["data"].data[0] = pixels(row["image"], height, width, mean, scale)
        seen.forward()
        to_words.data[...] = from_picture.data
        yield row["id"], tell(said, words)


def predictions(images, model, imagenet, lstmnet, vocab, mean=(0, 0, 0), scale=1 / 256):
    """A DataFrame of id and prediction for one of id and image."""
    job = functools.partial(
        captions,
        model=model,
        imagenet=imagenet,
        lstmnet=lstmnet,
        vocab=vocab,
        mean=mean,
        scale=scale,
    )
    return images.rdd.mapPartitions(job).toDF("id string, prediction string")


def main():
    """Entry point."""
    parser = argparse.ArgumentParser(description="Captions of pictures", allow_abbrev=False)
    for name in ("input", "model", "imagenet", "lstmnet", "vocab", "output"):
        parser.add_argument(f"-{name}", required=True)
    parser.add_argument("-mean", default="0,0,0")
    parser.add_argument("-scale", type=float, default=1 / 256)
    sc = SparkContext.getOrCreate()
    args = parser.parse_args(sc.getConf().get("spark.pythonargs").split())
    images = SparkSession(sc).read.parquet(args.input).select("id", "data.image")
    mean = tuple(float(number) for number in args.mean.split(","))
    told = predictions(
        images, args.model, args.imagenet, args.lstmnet, args.vocab, mean, args.scale
    )
    told.write.json(args.output)


if __name__ == "__main__":
    main()
