# SPDX-License-Identifier: Apache-2.0
"""A small SSD, and a database of the images that it learns: filled rectangles on noise."""

import ctypes
import ctypes.util
import pathlib

import numpy as np

from cafetiere.proto import caffe_pb2

SIZE, CLASSES = 32, 3  # the background, flat rectangles, upright ones
CREATE, MAP_BYTES = 0x40000, 1 << 26


class Val(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_char_p)]


def write_lmdb(folder: pathlib.Path, values: list[bytes]) -> None:
    """A database of these records, by liblmdb itself."""
    lmdb = ctypes.CDLL(ctypes.util.find_library("lmdb"))

    def call(name, *arguments):
        code = getattr(lmdb, f"mdb_{name}")(*arguments)
        assert code == 0, (name, code)

    folder.mkdir()
    env, txn = ctypes.c_void_p(), ctypes.c_void_p()
    dbi = ctypes.c_uint()
    call("env_create", ctypes.byref(env))
    call("env_set_mapsize", env, ctypes.c_size_t(MAP_BYTES))
    call("env_open", env, str(folder).encode(), 0, 0o644)
    call("txn_begin", env, None, 0, ctypes.byref(txn))
    call("dbi_open", txn, None, CREATE, ctypes.byref(dbi))
    for i, value in enumerate(values):
        key = f"{i:08}".encode()
        call(
            "put",
            txn,
            dbi,
            ctypes.byref(Val(len(key), key)),
            ctypes.byref(Val(len(value), value)),
            0,
        )
    call("txn_commit", txn)
    lmdb.mdb_env_close(env)


def record(random: np.random.Generator) -> bytes:
    """An image with one or two objects, none over another, as SSD's AnnotatedDatum."""
    image = random.integers(0, 60, (3, SIZE, SIZE), dtype=np.uint8)
    row = caffe_pb2.AnnotatedDatum(type=caffe_pb2.AnnotatedDatum.BBOX)
    for half in range(int(random.integers(1, 3))):
        label = int(random.integers(1, CLASSES))
        long, short = random.integers(11, 15), random.integers(5, 8)
        w, h = (long, short) if label == 1 else (short, long)
        x = int(random.integers(0, SIZE // 2 - w + 1)) + half * SIZE // 2
        y = int(random.integers(0, SIZE - h + 1))
        image[:, y : y + h, x : x + w] = random.integers(150, 256, (3, 1, 1))
        group = row.annotation_group.add(group_label=label)
        box = group.annotation.add(instance_id=0).bbox
        box.xmin, box.ymin, box.xmax, box.ymax = x / SIZE, y / SIZE, (x + w) / SIZE, (y + h) / SIZE
    datum = row.datum
    datum.channels, datum.height, datum.width = image.shape
    datum.data = image.tobytes()
    return row.SerializeToString()


def write_images(folder: pathlib.Path, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    write_lmdb(folder, [record(random) for _ in range(count)])


def data_layer(phase: str, source: str, batch: int, transform: str, annotated: str) -> str:
    return f"""
layer {{ name: "data" type: "AnnotatedData" top: "data" top: "label" include {{ phase: {phase} }}
  transform_param {{ mean_value: 60 scale: 0.01 {transform} }}
  data_param {{ source: "{source}" backend: LMDB batch_size: {batch} shuffle: true }}
  annotated_data_param {{ {annotated} }} }}"""


def convolution(name: str, bottom: str, outputs: int, stride: int = 1, relu: bool = True) -> str:
    text = f"""
layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{name}"
  convolution_param {{ num_output: {outputs} kernel_size: 3 pad: 1 stride: {stride}
    weight_filler {{ type: "msra" }} }} }}"""
    relu_text = f'\nlayer {{ name: "{name}_relu" type: "ReLU" bottom: "{name}" top: "{name}" }}'
    return text + relu_text * relu


def flat(name: str, bottom: str) -> str:
    return f"""
layer {{ name: "{name}_p" type: "Permute" bottom: "{bottom}" top: "{name}_p"
  permute_param {{ order: 0 order: 2 order: 3 order: 1 }} }}
layer {{ name: "{name}" type: "Flatten" bottom: "{name}_p" top: "{name}" }}"""


def net(train: str, test: str, test_batch: int) -> str:
    """Boxes of 8 x 8 places, three a place."""
    resize = (
        f"resize_param {{ height: {SIZE} width: {SIZE} interp_mode: LINEAR interp_mode: AREA }}"
    )
    distort = "distort_param { brightness_prob: 0.5 brightness_delta: 16 }"
    sampler = """batch_sampler { max_sample: 1 max_trials: 1 }
      batch_sampler {
        sampler { min_scale: 0.7 max_scale: 1 min_aspect_ratio: 0.8 max_aspect_ratio: 1.25 }
        sample_constraint { min_object_coverage: 1 } max_sample: 1 max_trials: 20 }"""
    text = data_layer("TRAIN", train, 16, f"mirror: true {resize} {distort}", sampler)
    text += data_layer("TEST", test, test_batch, resize, "")
    text += convolution("c1", "data", 16, 2) + convolution("c2", "c1", 32, 2)
    text += convolution("c3", "c2", 32) + convolution("loc", "c3", 12, relu=False)
    text += convolution("conf", "c3", 3 * CLASSES, relu=False)
    text += flat("loc_f", "loc") + flat("conf_f", "conf")
    return (
        text
        + f"""
layer {{ name: "prior" type: "PriorBox" bottom: "c3" bottom: "data" top: "prior"
  prior_box_param {{ min_size: 9 aspect_ratio: 2
    variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 }} }}
layer {{ name: "loss" type: "MultiBoxLoss"
  bottom: "loc_f" bottom: "conf_f" bottom: "prior" bottom: "label"
  top: "loss" include {{ phase: TRAIN }} propagate_down: true propagate_down: true
  propagate_down: false propagate_down: false
  multibox_loss_param {{ num_classes: {CLASSES} code_type: CENTER_SIZE overlap_threshold: 0.5 }} }}
layer {{ name: "conf_r" type: "Reshape" bottom: "conf_f" top: "conf_r" include {{ phase: TEST }}
  reshape_param {{ shape {{ dim: 0 dim: -1 dim: {CLASSES} }} }} }}
layer {{ name: "conf_s" type: "Softmax" bottom: "conf_r" top: "conf_s" include {{ phase: TEST }}
  softmax_param {{ axis: 2 }} }}
layer {{ name: "conf_sf" type: "Flatten" bottom: "conf_s" top: "conf_sf"
  include {{ phase: TEST }} }}
layer {{ name: "found" type: "DetectionOutput" bottom: "loc_f" bottom: "conf_sf" bottom: "prior"
  top: "found" include {{ phase: TEST }}
  detection_output_param {{ num_classes: {CLASSES} code_type: CENTER_SIZE keep_top_k: 20
    confidence_threshold: 0.05 nms_param {{ nms_threshold: 0.45 top_k: 50 }} }} }}
layer {{ name: "map" type: "DetectionEvaluate" bottom: "found" bottom: "label" top: "map"
  include {{ phase: TEST }} detection_evaluate_param {{ num_classes: {CLASSES} }} }}
"""
    )
