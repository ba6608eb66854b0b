# SPDX-License-Identifier: Apache-2.0
"""cafetiere.io, Classifier and Detector."""

import numpy as np
import pytest
from built import aligned, caffe

from cafetiere import classify, detect

pytest.importorskip("google.protobuf")
Image = pytest.importorskip("PIL.Image")

NET = """
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 4 dim: 3 dim: 6 dim: 8 } } }
layer { name: "mean" type: "Pooling" bottom: "data" top: "mean"
  pooling_param { pool: AVE global_pooling: true } }
layer { name: "scores" type: "Flatten" bottom: "mean" top: "scores" }
"""


@pytest.fixture
def random():
    return np.random.default_rng(2)


@pytest.fixture
def net_files(tmp_path):
    """A net that averages each channel, and its (empty) weights."""
    net, weights = tmp_path / "net.prototxt", tmp_path / "net.caffemodel"
    net.write_text(NET)
    caffe.Net(str(net), caffe.TEST).save(str(weights))
    return str(net), str(weights)


def test_blobproto(random):
    data, diff = random.standard_normal((2, 4, 3)), random.standard_normal((2, 4, 3))
    blob = caffe.io.array_to_blobproto(data, diff)
    np.testing.assert_allclose(caffe.io.blobproto_to_array(blob), data, rtol=1e-6)
    np.testing.assert_allclose(caffe.io.blobproto_to_array(blob, True), diff, rtol=1e-6)
    scalar = caffe.io.blobproto_to_array(caffe.io.array_to_blobproto(np.array(123.0)))
    assert scalar.shape == () and scalar == 123


def test_old_blobproto():
    from cafetiere.proto import caffe_pb2

    blob = caffe_pb2.BlobProto(num=1, channels=2, height=1, width=3, data=range(6))
    assert caffe.io.blobproto_to_array(blob).shape == (1, 2, 1, 3)


def test_blobproto_vector(random):
    arrays = [random.standard_normal(shape) for shape in ((2, 3), (4,))]
    text = caffe.io.arraylist_to_blobprotovector_str(arrays)
    for one, other in aligned(arrays, caffe.io.blobprotovector_str_to_arraylist(text)):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_datum(random):
    pixels = random.integers(256, size=(3, 4, 5)).astype(np.uint8)
    datum = caffe.io.array_to_datum(pixels, 7)
    assert datum.label == 7 and len(datum.data) == 60
    np.testing.assert_array_equal(caffe.io.datum_to_array(datum), pixels)
    datum = caffe.io.array_to_datum(pixels / 3)
    np.testing.assert_allclose(caffe.io.datum_to_array(datum), pixels / 3, rtol=1e-6)
    with pytest.raises(ValueError, match="3 axes"):
        caffe.io.array_to_datum(np.zeros((2, 2)))


def test_load_image(tmp_path, random):
    pixels = random.integers(256, size=(5, 7, 3)).astype(np.uint8)
    path = tmp_path / "image.png"
    Image.fromarray(pixels).save(path)
    loaded = caffe.io.load_image(str(path))
    assert loaded.dtype == np.float32
    np.testing.assert_allclose(loaded, pixels / 255, atol=1e-6)
    assert caffe.io.load_image(str(path), color=False).shape == (5, 7, 1)
    Image.fromarray(pixels).convert("RGBA").save(path)
    assert caffe.io.load_image(str(path)).shape == (5, 7, 3)
    deep = np.linspace(0, 65535, 35).astype(np.uint16).reshape(5, 7)
    Image.fromarray(deep).save(path)
    for color, channels in ((True, 3), (False, 1)):
        loaded = caffe.io.load_image(str(path), color)
        expected = np.repeat(deep[:, :, np.newaxis], channels, axis=2) / 65535
        np.testing.assert_allclose(loaded, expected, atol=1e-6)


def test_resize_image():
    ramp = np.tile(np.arange(8, dtype=np.float32)[None, :, None], (4, 1, 2))
    half = caffe.io.resize_image(ramp, (2, 4))
    assert half.shape == (2, 4, 2) and half.dtype == np.float32
    np.testing.assert_allclose(half[0, :, 0], [0.5, 2.5, 4.5, 6.5])
    double = caffe.io.resize_image(ramp, (4, 16))
    np.testing.assert_allclose(double[0, :4, 0], [0, 0.25, 0.75, 1.25])
    np.testing.assert_array_equal(caffe.io.resize_image(ramp, (4, 8)), ramp)
    assert set(np.unique(caffe.io.resize_image(ramp, (3, 5), 0))) <= set(range(8))


def test_oversample():
    image = np.arange(5 * 6, dtype=np.float32).reshape(5, 6, 1)
    crops = caffe.io.oversample([image, image + 100], (3, 2))
    assert crops.shape == (20, 3, 2, 1)
    np.testing.assert_array_equal(crops[0], image[:3, :2])
    np.testing.assert_array_equal(crops[1], image[:3, 4:])
    np.testing.assert_array_equal(crops[2], image[2:, :2])
    np.testing.assert_array_equal(crops[3], image[2:, 4:])
    np.testing.assert_array_equal(crops[4], image[1:4, 2:4])
    np.testing.assert_array_equal(crops[5], image[:3, :2][:, ::-1])
    np.testing.assert_array_equal(crops[10], crops[0] + 100)


def test_crops_larger_than_their_images(net_files):
    with pytest.raises(ValueError, match="crops of 4 x 4 do not fit images of 3 x 5"):
        caffe.io.oversample([np.zeros((3, 5, 1))], (4, 4))
    with pytest.raises(ValueError, match="image_dims are 4 x 8, and the net's input is 6 x 8"):
        caffe.Classifier(*net_files, image_dims=(4, 8))


def test_transformer(random):
    transformer = caffe.io.Transformer({"data": (1, 3, 6, 8)})
    transformer.set_transpose("data", (2, 0, 1))
    transformer.set_channel_swap("data", (2, 1, 0))
    transformer.set_raw_scale("data", 255)
    transformer.set_mean("data", np.array([1, 2, 3]))
    transformer.set_input_scale("data", 0.5)
    image = random.random((6, 8, 3)).astype(np.float32)
    kept = image.copy()
    out = transformer.preprocess("data", image)
    expected = (image[:, :, ::-1].transpose(2, 0, 1) * 255 - [[[1]], [[2]], [[3]]]) * 0.5
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(image, kept)
    np.testing.assert_allclose(transformer.deprocess("data", out), image, rtol=1e-4, atol=1e-6)
    assert transformer.preprocess("data", random.random((12, 16, 3))).shape == (3, 6, 8)


def test_transformer_refuses(random):
    transformer = caffe.io.Transformer({"data": (1, 3, 6, 8)})
    with pytest.raises(ValueError, match="not one of the net's inputs"):
        transformer.set_raw_scale("other", 1)
    with pytest.raises(ValueError, match="2 channels"):
        transformer.set_mean("data", np.zeros(2))
    with pytest.raises(ValueError):
        transformer.set_transpose("data", (1, 0))
    with pytest.raises(ValueError):
        transformer.set_channel_swap("data", (0, 1))
    transformer.set_mean("data", np.ones((3, 12, 16)))
    assert transformer.mean["data"].shape == (3, 6, 8)


def test_classifier(net_files, random):
    classifier = caffe.Classifier(*net_files, image_dims=(8, 10), raw_scale=255)
    images = [random.random((9, 11, 3)).astype(np.float32) for _ in range(3)]
    for oversample in (True, False):
        scores = classifier.predict(images, oversample)
        assert scores.shape == (3, 3)
    resized = caffe.io.resize_image(images[0], (8, 10))
    np.testing.assert_allclose(scores[0], resized[1:7, 1:9].mean((0, 1)) * 255, rtol=1e-4)


def test_detector(net_files, tmp_path, random):
    path = str(tmp_path / "image.png")
    Image.fromarray(random.integers(256, size=(20, 30, 3)).astype(np.uint8)).save(path)
    image = caffe.io.load_image(path)
    detector = caffe.Detector(*net_files)
    found = detector.detect_windows([(path, [(2, 3, 8, 11), (0, 0, 12, 16)])])
    assert [d["window"] for d in found] == [(2, 3, 8, 11), (0, 0, 12, 16)]
    np.testing.assert_allclose(found[0]["prediction"], image[2:8, 3:11].mean((0, 1)), rtol=1e-4)
    mean = np.array([0.1, 0.2, 0.3])
    context = caffe.Detector(*net_files, mean=mean, context_pad=1)
    crop = context.crop(image, np.array([8, 10, 12, 16]))
    np.testing.assert_allclose(crop, image[7:13, 9:17], rtol=1e-5)
    corner = context.crop(image, np.array([0, 0, 4, 6]))
    np.testing.assert_allclose(corner[0], np.tile(mean, (8, 1)), rtol=1e-5)
    np.testing.assert_allclose(corner[1:, 1:], image[:5, :7], rtol=1e-5)
    assert detector.detect_windows([]) == []
    for detects in (detector, context):
        with pytest.raises(
            ValueError, match=r"the window \(3\.0, 3\.0, 3\.0, 3\.0\) has no pixels"
        ):
            detects.detect_windows([(path, [(3, 3, 3, 3)])])


def test_classify_from_the_command_line(net_files, tmp_path, random):
    for name in ("a.png", "b.png"):
        Image.fromarray(random.integers(256, size=(9, 9, 3)).astype(np.uint8)).save(tmp_path / name)
    model = ["--model_def", net_files[0], "--pretrained_model", net_files[1]]
    out = str(tmp_path / "scores.npy")
    classify.main([str(tmp_path), out, *model, "--ext", "png", "--images_dim", "8,10"])
    assert np.load(out).shape == (2, 3)
    classify.main([str(tmp_path / "a.png"), out, *model, "--center_only", "--raw_scale", "1"])
    assert np.load(out).shape == (1, 3)


def test_detect_from_the_command_line(net_files, tmp_path, random):
    pandas = pytest.importorskip("pandas")
    image = tmp_path / "a.png"
    Image.fromarray(random.integers(256, size=(20, 30, 3)).astype(np.uint8)).save(image)
    windows, out = tmp_path / "windows.csv", tmp_path / "found.csv"
    windows.write_text(f"filename,ymin,xmin,ymax,xmax\n{image},1,2,9,12\n{image},0,0,20,30\n")
    model = ["--model_def", net_files[0], "--pretrained_model", net_files[1]]
    detect.main([str(windows), str(out), *model, "--crop_mode", "list", "--context_pad", "0"])
    table = pandas.read_csv(out)
    assert list(table.columns[-4:]) == ["ymin", "xmin", "ymax", "xmax"] and len(table) == 2
    pixels = caffe.io.load_image(str(image))[:, :, ::-1] * 255
    np.testing.assert_allclose(
        table.loc[0, ["class0", "class1", "class2"]].to_numpy(float),
        caffe.io.resize_image(pixels[1:9, 2:12], (6, 8)).mean((0, 1)),
        rtol=1e-4,
    )
