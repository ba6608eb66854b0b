# SPDX-License-Identifier: Apache-2.0
"""CaffeOnSpark's command line by spark-submit, and what it trains here."""

import dataclasses
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "faults"))

import cluster as standalone  # noqa: E402
import plan  # noqa: E402

SHARDS = 4
ROWS = 517
SOLVER = (
    'net: "lenet.prototxt" base_lr: 0.01 momentum: 0.9 lr_policy: "fixed" random_seed: 7'
    ' snapshot_prefix: "lenet" max_iter: {steps} snapshot: {snapshot}'
)
# As CaffeOnSpark names a table: relative to the user's folder of the default file system.
SOURCE = (
    'source_class: "com.yahoo.ml.caffe.ImageDataFrame" memory_data_param { source: "digits.parquet"'
)
LENET = ROOT / "examples" / "quickstart" / "lenet_train_test.prototxt"


@dataclasses.dataclass
class Work:
    """A folder with a table, a net and a solver: what it trains has the same bits everywhere."""

    folder: pathlib.Path
    steps: int = 40
    snapshot: int = 20

    def __post_init__(self):
        """Writes them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "digits.parquet").exists():
            plan.write_table(self.folder / "digits.parquet", ROWS)
        net = LENET.read_text().replace("memory_data_param {", SOURCE)
        (self.folder / "lenet.prototxt").write_text(net)
        solver = SOLVER.format(steps=self.steps, snapshot=self.snapshot)
        (self.folder / "solver.prototxt").write_text(solver)

    @property
    def files(self) -> str:
        """What `--files` takes along."""
        return f"{self.folder / 'solver.prototxt'},{self.folder / 'lenet.prototxt'}"

    def flags(self, model: str, workers: int) -> list[str]:
        """The flags of a training whose model goes to that path."""
        flags = [
            "-train",
            "-conf",
            "solver.prototxt",
            "-model",
            model,
            "-clusterSize",
            str(workers),
        ]
        return [*flags, "-shards", str(SHARDS)]


def command(options: list, settings: dict[str, str], flags: list[str]) -> list[str]:
    """A spark-submit of the product's jar, by the Spark of SPARK_HOME."""
    confs = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    submit = ["spark-submit", *options, *confs, "--class", "cafetiere.spark.Submit"]
    return [str(word) for word in [*submit, standalone.JAR, *flags]]


def run(words: list[str], environment: dict[str, str], folder: pathlib.Path):
    """Runs it in a folder; what it has said is on stdout and stderr together."""
    home = pathlib.Path(environment["SPARK_HOME"])
    return subprocess.run(
        [home / "bin" / words[0], *words[1:]],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
        check=False,
    )
