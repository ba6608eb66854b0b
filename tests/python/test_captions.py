# SPDX-License-Identifier: Apache-2.0
"""ImageCaption.py tells the same sentences with a net of all words and one of a word at a time."""

import importlib.util
import io
import pathlib

import numpy as np
import pytest

import cafetiere

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples/caffeonspark"
WORDS = ["<EOS>", "UNK", "a", "red", "green", "blue", "square", "bar"]


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("pyspark")
    spec = importlib.util.spec_from_file_location("ImageCaption", FOLDER / "ImageCaption.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Weights so large that the picture decides on the words."""
    random = np.random.default_rng(4)
    net = cafetiere.Net(str(FOLDER / "caption_words.prototxt"), cafetiere.TEST)
    for blobs in net.params.values():
        for blob in blobs:
            blob.data[...] = random.normal(size=blob.data.shape)
    file = tmp_path_factory.mktemp("captions") / "words.caffemodel"
    net.save(str(file))
    return str(file)


def test_one_word_at_a_time_tells_what_all_at_once_do(script, model):
    whole, stepped = (
        cafetiere.Net(str(FOLDER / name), model, cafetiere.TEST)
        for name in ("caption_words.prototxt", "caption_word.prototxt")
    )
    random = np.random.default_rng(5)
    steps = whole.blobs["probs"].data.shape[0]
    told = set()
    for _ in range(20):
        picture = random.normal(size=(1, 16))
        script.blob_of(whole, "picture", "image_features").data[...] = picture
        script.blob_of(stepped, "picture", "image_features").data[...] = picture
        sentence = script.tell(whole, WORDS)
        longer = script.tell(stepped, WORDS)
        assert " ".join(longer.split()[:steps]) == sentence
        told.add(sentence)
    assert len(told) > 3


def test_pixels_are_those_that_a_net_was_trained_on(script):
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.new("RGB", (4, 4), (10, 20, 30)).save(file, format="png")
    planes = script.pixels(file.getvalue(), 2, 3, (1, 2, 3), 0.5)
    assert planes.shape == (3, 2, 3)
    assert [plane.mean() for plane in planes] == [14.5, 9.0, 3.5]


def test_a_net_without_a_place_for_the_picture_is_refused(script, model):
    net = cafetiere.Net(str(FOLDER / "caption_words.prototxt"), model, cafetiere.TEST)
    with pytest.raises(SystemExit, match="none of the blobs fc8, image_features"):
        script.blob_of(net, "fc8", "image_features")
