# SPDX-License-Identifier: Apache-2.0
"""The tools that make and read databases, run as users run them, and nets that read image files."""

import re
import struct
import zlib

import pytest
from bars import write_idx
from program import needs_the_program, run

pytestmark = needs_the_program

SIDE, CLASSES = 8, 4


def png(rows):
    """An 8-bit RGB PNG of rows of (red, green, blue)."""
    height, width = len(rows), len(rows[0])
    raw = b"".join(b"\0" + bytes(v for pixel in row for v in pixel) for row in rows)

    def chunk(kind, body):
        return (struct.pack(">I", len(body)) + kind + body
                + struct.pack(">I", zlib.crc32(kind + body)))  # fmt: skip

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))  # fmt: skip


def bar(label, number):
    """A bright red bar whose row tells the class, on blue that differs from image to image."""
    return png([[(250, 0, 0) if row == 2 * label else (0, 0, number) for _ in range(SIDE)]
                for row in range(SIDE)])  # fmt: skip


@pytest.fixture
def images(tmp_path):
    """A folder with 20 images in photos/ and list.txt, which also names one that is missing."""
    (tmp_path / "photos").mkdir()
    lines = []
    for i in range(20):
        (tmp_path / "photos" / f"{i}.png").write_bytes(bar(i % CLASSES, i))
        lines.append(f"{i}.png {i % CLASSES}")
    lines.insert(3, "missing.png 1")
    (tmp_path / "list.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


NET = """
name: "Bars"
{source}
layer {{
  name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param {{ num_output: 4 weight_filler {{ type: "xavier" }} }}
}}
layer {{
  name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include {{ phase: TEST }}
}}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}
"""
SOLVER = """
net: "net.prototxt" base_lr: 0.05 momentum: 0.9 lr_policy: "fixed" max_iter: 40
test_iter: 5 test_interval: 40 snapshot_prefix: "bars" random_seed: 3
"""
DATABASE = """
layer {{
  name: "images" type: "Data" top: "data" top: "label" include {{ phase: {phase} }}
  transform_param {{ scale: 0.004 mean_file: "mean.binaryproto" }}
  data_param {{ source: "{db}" batch_size: 4 backend: {backend} }}
}}
"""


def databases(backend):
    """Data layers for both phases; LevelDB lets only one reader into a database."""
    return "".join(
        DATABASE.format(phase=phase, db=f"{phase.lower()}_db", backend=backend.upper())
        for phase in ("TRAIN", "TEST")
    )


def train(folder, source):
    (folder / "net.prototxt").write_text(NET.format(source=source))
    (folder / "solver.prototxt").write_text(SOLVER)
    log = run("train", "-solver", "solver.prototxt", cwd=folder)
    accuracy = float(re.findall(r"Test net output #0: accuracy = (\S+)", log)[-1])
    assert accuracy == 1
    return log


@pytest.mark.parametrize(("backend", "flags"), [
    ("lmdb", ["-shuffle"]),
    ("leveldb", ["--encoded=true"]),
    ("lmdb", ["-encode_type", "jpg", "-resize_height", "16", "-resize_width=16"]),
])  # fmt: skip
def test_images_become_a_database_that_trains(images, backend, flags):
    for db in ("train_db", "test_db"):
        log = run("convert_imageset", *flags, f"-backend={backend}", "photos/", "list.txt", db,
                  cwd=images)  # fmt: skip
    assert "] A total of 21 images." in log and "] Processed 20 files." in log
    assert re.search(
        r"^E.*\] list.txt:4: Could not open or find file photos/missing.png", log, re.M
    )
    mean = run("compute_image_mean", "-backend", backend, "test_db", "mean.binaryproto", cwd=images)
    assert "] Write to mean.binaryproto" in mean and "] Number of channels: 3" in mean
    blue, green, red = map(float, re.findall(r"mean_value channel \[\d\]: (\S+)", mean))
    assert abs(blue - 9.5 * 7 / 8) < 1 and green < 2 and abs(red - 250 / 8) < 1
    train(images, databases(backend))


def test_images_train_from_their_list(images):
    text = (images / "list.txt").read_text()
    (images / "list.txt").write_text(text.replace("missing.png 1\n", ""))
    source = """
      layer {
        name: "images" type: "ImageData" top: "data" top: "label"
        transform_param { scale: 0.004 mirror: true crop_size: 16 }
        image_data_param {
          source: "list.txt" root_folder: "photos/" batch_size: 4 shuffle: true
          new_height: 16 new_width: 18
        }
      }"""
    log = train(images, source)
    assert "] A total of 20 images." in log and "] Shuffling data" in log
    (images / "photos" / "7.png").write_bytes(bar(3, 7)[:60])
    failed = run("train", "-solver", "solver.prototxt", cwd=images, code=1).splitlines()[-1]
    assert 'layer "images" (ImageData): list.txt:8: Could not load 7.png' in failed
    assert "ends too early" in failed


def test_features_are_extracted_and_read_back(images):
    for db in ("train_db", "test_db"):
        run("convert_imageset", "photos/", "list.txt", db, cwd=images)
    run("compute_image_mean", "test_db", "mean.binaryproto", cwd=images)
    train(images, databases("lmdb"))
    log = run("extract_features", "bars_iter_40.caffemodel", "net.prototxt", "ip,data",
              "scores,pixels", 5, "lmdb", "GPU", 0, cwd=images)  # fmt: skip
    for line in ("Extracting Features", "Successfully extracted the features!",
                 "Extracted features of 20 query images for feature blob ip",
                 "Extracted features of 20 query images for feature blob data"):  # fmt: skip
        assert re.search(rf"^E.*\] {line}$", log, re.M), line
    mean = run("compute_image_mean", "scores", cwd=images)
    assert "] Number of channels: 4" in mean and "] Processed 20 files." in mean
    scores = """
      layer { name: "s" type: "Data" top: "s" data_param { source: "scores" batch_size: 4
        backend: LMDB } }
      layer { name: "out" type: "HDF5Output" bottom: "s" bottom: "s"
        hdf5_output_param { file_name: "out.h5" } }"""
    (images / "read.prototxt").write_text(scores)
    run("test", "-model", "read.prototxt", "-weights", "bars_iter_40.caffemodel", "-iterations", 2,
        cwd=images)  # fmt: skip
    assert (images / "out.h5").stat().st_size > 0


@pytest.mark.parametrize(("arguments", "message"), [
    (["convert_imageset", "nowhere/", "list.txt", "x"], "none of the images could be read"),
    (["convert_imageset", "photos/", "none.txt", "x"], "File not found: none.txt"),
    (["convert_imageset", "-encode_type", "gif", "photos/", "list.txt", "x"], "none of the images"),
    (["compute_image_mean", "nowhere"], "nowhere"),
    (["extract_features", "w", "net", "a,b", "c", 1, "lmdb"], "File not found: net"),
    (["convert_cifar_data", ".", ".", "lmdb"], "data_batch_1.bin"),
    (["upgrade_net_proto_text", "list.txt", "x"], "list.txt:1:"),
    (["upgrade_net_proto_binary", "list.txt", "x"], "not a binary NetParameter"),
])  # fmt: skip
def test_failures_say_why(images, arguments, message):
    text = run(*arguments, cwd=images, code=1)
    assert message in text.split("cafetiere: ")[-1]


def test_images_of_different_sizes_are_refused_when_asked(images):
    (images / "photos" / "9.png").write_bytes(png([[(0, 0, 0)]]))
    text = run("convert_imageset", "-check_size", "photos/", "list.txt", "x", cwd=images, code=1)
    assert "list.txt:11: Incorrect data field size 3, the first image has 192" in text


@pytest.mark.parametrize("backend", [None, "lmdb"])
def test_digits_become_pairs(tmp_path, backend):
    write_idx(tmp_path, "d", 40, 1)
    flags = ["-backend", backend] if backend else []
    log = run("convert_mnist_siamese_data", *flags, "d-images", "d-labels", "db", cwd=tmp_path)
    assert "] Processed 40 pairs." in log
    net = """
      layer { name: "d" type: "Data" top: "pair" top: "sim"
        data_param { source: "db" batch_size: 40 backend: %s } }
      layer { name: "s" type: "Reduction" bottom: "sim" top: "alike"
        reduction_param { operation: MEAN } }
      layer { name: "x" type: "Silence" bottom: "pair" }"""
    (tmp_path / "net.prototxt").write_text(net % (backend or "leveldb").upper())
    (tmp_path / "none.caffemodel").write_bytes(b"\n\x01n")
    log = run("test", "-model", "net.prototxt", "-weights", "none.caffemodel", "-iterations", 1,
              cwd=tmp_path)  # fmt: skip
    assert "Top shape: 40 2 8 8 (5120)" in log
    assert 0 < float(re.search(r"\] alike = (\S+)", log)[1]) < 0.6  # one in four, by chance


def test_cifar_batches_become_two_databases(tmp_path):
    for name in ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5",
                 "test_batch"):  # fmt: skip
        (tmp_path / f"{name}.bin").write_bytes(b"".join(bytes([i] * 3073) for i in range(3)))
    run("convert_cifar_data", ".", ".", "lmdb", cwd=tmp_path)
    for part, count in (("train", 15), ("test", 3)):
        mean = run("compute_image_mean", f"cifar10_{part}_lmdb", cwd=tmp_path)
        assert f"] Processed {count} files." in mean
        assert re.findall(r"mean_value channel \[\d\]: (\S+)", mean) == ["1", "1", "1"]


V1_NET = """
name: "old"
input: "data" input_dim: 1 input_dim: 3 input_dim: 4 input_dim: 4
layers { name: "ip" type: INNER_PRODUCT bottom: "data" top: "ip" blobs_lr: 1 blobs_lr: 2
         inner_product_param { num_output: 2 } }
"""


def test_old_files_are_upgraded(tmp_path):
    (tmp_path / "old.prototxt").write_text(V1_NET)
    log = run("upgrade_net_proto_text", "old.prototxt", "new.prototxt", cwd=tmp_path)
    assert "] Wrote upgraded NetParameter text proto to new.prototxt" in log
    text = (tmp_path / "new.prototxt").read_text()
    assert 'type: "InnerProduct"' in text and "layers" not in text and "lr_mult: 2" in text
    again = run("upgrade_net_proto_text", "new.prototxt", "same.prototxt", cwd=tmp_path)
    assert "] File already in latest proto format: new.prototxt" in again
    assert (tmp_path / "same.prototxt").read_text() == text
    (tmp_path / "solver.prototxt").write_text('solver_type: ADAM net: "solver_type.prototxt"')
    run("upgrade_solver_proto_text", "solver.prototxt", "solver2.prototxt", cwd=tmp_path)
    assert 'type: "Adam"' in (tmp_path / "solver2.prototxt").read_text()


def test_what_an_upgrade_leaves_out_is_told_and_fails(tmp_path):
    old = 'layers { layer { name: "c" type: "relu" num_output: 2 } bottom: "d" top: "c" }'
    (tmp_path / "old.prototxt").write_text(old)
    log = run("upgrade_net_proto_text", "old.prototxt", "new.prototxt", cwd=tmp_path, code=1)
    assert "] old.prototxt: layer 'c': a relu layer has no num_output; ignored" in log
    assert 'type: "ReLU"' in (tmp_path / "new.prototxt").read_text()


def test_old_weights_are_upgraded(tmp_path):
    def field(number, kind, body):
        return bytes([number << 3 | kind]) + body

    # NetParameter { name: "old" layers { name: "relu" type: RELU } }
    layer = field(4, 2, b"\x04relu") + field(5, 0, b"\x12")
    (tmp_path / "old.caffemodel").write_bytes(
        field(1, 2, b"\x03old") + field(2, 2, bytes([len(layer)]) + layer)
    )
    log = run("upgrade_net_proto_binary", "old.caffemodel", "new.caffemodel", cwd=tmp_path)
    assert "] Wrote upgraded NetParameter binary proto to new.caffemodel" in log
    assert b"ReLU" in (tmp_path / "new.caffemodel").read_bytes()
