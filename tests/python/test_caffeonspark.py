# SPDX-License-Identifier: Apache-2.0
"""CaffeOnSpark's Python names, as its scripts use them."""

import base64
import html.parser
import io
import os
import pathlib
import subprocess
import sys
import textwrap

import PIL.Image
import pyspark
import pytest

ROOT = pathlib.Path(__file__).parents[2]
LINE = "2.12" if pyspark.__version__.startswith("3.") else "2.13"
JARS = [
    ROOT / f"jvm/compat/target/{LINE}/cafetiere-compat_{LINE}.jar",
    ROOT / "jvm/spark/target/cafetiere-spark.jar",
]

NET = """
layer {{ name: "data" type: "MemoryData" top: "data" top: "label"
  source_class: "com.yahoo.ml.caffe.ImageDataFrame"
  memory_data_param {{ source: "{table}" batch_size: 8 channels: 1 height: 2 width: 2 }} }}
layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param {{ num_output: 2 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include {{ phase: TEST }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}
"""

SOLVER = """net: "net" base_lr: 0.01 lr_policy: "fixed" max_iter: 21 random_seed: 1
test_interval: 10 test_iter: 1 snapshot_prefix: "net" """

# As a user of CaffeOnSpark writes it, with print() of Python 3.
SCRIPT = """
from com.yahoo.ml.caffe.RegisterContext import registerContext, registerSQLContext
from com.yahoo.ml.caffe.CaffeOnSpark import CaffeOnSpark
from com.yahoo.ml.caffe.Config import Config
from com.yahoo.ml.caffe.DataSource import DataSource
from com.yahoo.ml.caffe import DisplayUtils
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

conf = SparkConf()
sc = SparkContext(conf=conf)
registerContext(sc)
spark = SparkSession(sc)
rows = [(str(i), str(i % 2), 2, 2, bytearray([200 * (i % 2), i, 0, 50])) for i in range(61)]
spark.createDataFrame(rows, "id string, label string, height int, width int, data binary") \\
    .write.parquet("table")
words = sc.getConf().get("spark.pythonargs").split()
cfg = Config(sc, dict(zip(words[::2], words[1::2])))
cfg.label = "label"
cfg.features = ["ip"]
assert cfg.features == ["ip", "label"], cfg.features
assert cfg.devices == 1 and cfg.train_data_layer_id == 0 and cfg.imageRoot is None
assert "model:" in str(cfg)
for wrong in (lambda: cfg.nothing, lambda: setattr(cfg, "netParam", 1)):
    try:
        wrong()
        raise SystemExit("no error")
    except AttributeError:
        pass
def refused(kind, words, code):
    try:
        code()
    except kind as e:
        assert words in str(e), e
    else:
        raise SystemExit(f"no error for {words}")
for name, value in (("devices", "two"), ("devices", None), ("resize", 1), ("modelPath", 3)):
    words = f"{value!r}, a {type(value).__name__}, is no value for {name} of Config, which is now"
    refused(TypeError, words, lambda: setattr(cfg, name, value))
listed = Config(sc, {"features": ["ip1", "ip2"], "label": "label"})
assert listed.features == ["ip1", "ip2", "label"], listed.features
refused(TypeError, "and not a list", lambda: Config(sc, ["-train"]))
cos = CaffeOnSpark(sc)
train = DataSource(sc).getSource(cfg, True)
held = DataSource(sc).getSource(cfg, False)
refused(TypeError, "and not None", lambda: cos.train(None))
refused(TypeError, "and not a Config", lambda: cos.features(cfg))
refused(TypeError, "given a NoneType and a bool", lambda: DataSource(sc).getSource(None, True))
cos.train(train)
rounds = cos.trainWithValidation(train, held)
assert rounds.columns == ["accuracy", "loss"] and rounds.count() == 2, rounds
features = cos.features(held)
assert features.columns == ["SampleID", "ip", "label"] and features.count() == 61, features
assert features.filter("SampleID = '7'").first().label == [1.0]
result = cos.test(held)
assert sorted(result) == ["accuracy", "loss"] and 0 <= result["accuracy"][0] <= 1, result
one = spark.createDataFrame([("a<b", "7", 2, 3, bytearray([1, 2, 3, 4, 250, 0]))] * 3,
                            "id string, label string, height int, width int, data binary")
refused(ValueError, "no column height and no width:",
        lambda: DisplayUtils.show_df(one.drop("height", "width")))
page = DisplayUtils.show_df(one, 2)._repr_html_()
open("page.html", "w").write(page)
print("done")
"""


class Page(html.parser.HTMLParser):
    """The cells of a table, and where its images come from."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells, self.images = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, _attrs):
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag == "img"
        self.images.append(dict(attrs)["src"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells.append((self.open[-1], data))


def check_table_of_images(text):
    page = Page(text)
    assert page.open == []
    heads = [("th", name) for name in ("Index", "Label", "Image")]
    assert page.cells == heads + [("td", "a<b"), ("td", "7")] * 2
    assert len(page.images) == 2
    kind, data = page.images[0].split(",")
    assert kind == "data:image/png;base64"
    image = PIL.Image.open(io.BytesIO(base64.b64decode(data)))
    assert image.size == (3, 2) and list(image.getdata()) == [1, 2, 3, 4, 250, 0]


@pytest.mark.parametrize("name", ["CaffeOnSpark", "Config", "DataSource"])
def test_a_module_has_the_class_of_its_name(name):
    module = __import__(f"com.yahoo.ml.caffe.{name}", fromlist=[name])
    assert isinstance(getattr(module, name), type)


def test_a_script_runs(tmp_path):
    for jar in JARS:
        assert jar.exists(), f"there is no {jar}; run tools/build"
    (tmp_path / "net").write_text(NET.format(table=(tmp_path / "table").as_uri()))
    (tmp_path / "solver").write_text(SOLVER)
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    flags = f"-conf solver -model {(tmp_path / 'the.model').as_uri()} -devices 1"
    arguments = [
        "--master local[1]",
        f"--jars {','.join(map(str, JARS))}",
        f'--conf "spark.pythonargs={flags}"',
        "--conf spark.ui.enabled=false",
        "--driver-java-options -XX:TieredStopAtLevel=1",
        "pyspark-shell",
    ]
    environment = {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": " ".join(arguments),
        "PYTHONPATH": str(ROOT / "python"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    run = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.endswith("done\n")
    assert (tmp_path / "the.model").exists()
    check_table_of_images((tmp_path / "page.html").read_text())
