# SPDX-License-Identifier: Apache-2.0
"""The mini cluster of these tests, and what a training comes to on this machine alone."""

import functools
import getpass
import os
import pathlib

import pytest
import submits
from minicluster import MiniCluster

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LOOPBACK = "127.0.0.1"


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A function: the folder of a training of so many steps, and its model in local mode."""

    @functools.cache
    def train(steps=40):
        work = submits.Work(tmp_path_factory.mktemp(f"work-{steps}"), steps)
        model = work.folder / "local.caffemodel"
        settings = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": JAVA_OPTIONS}
        flags = work.flags(model.as_uri(), 2)
        command = submits.command(["--master", "local[2]"], settings, flags)
        done = submits.run(command, dict(os.environ), work.folder)
        assert done.returncode == 0, done.stdout[-5_000:]
        return work, model.read_bytes()

    return train


class Yarn:
    """How Spark is sent to the mini cluster."""

    def __init__(self, cluster: MiniCluster):
        self.cluster = cluster
        self.home = f"/user/{getpass.getuser()}"

    def command(self, mode: str, flags: list, options: list = (), settings: dict | None = None):
        """A spark-submit: four small executors unless the settings say otherwise."""
        every = {
            "spark.executor.instances": "4",
            "spark.executor.memory": "512m",
            "spark.driver.memory": "512m",
            "spark.yarn.am.memory": "512m",
            # Those of this machine: else each submit uploads them.
            "spark.yarn.jars": f"local:{self.spark}/jars/*",
            "spark.ui.enabled": "false",
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            "spark.executor.extraJavaOptions": JAVA_OPTIONS,
            "spark.yarn.am.extraJavaOptions": JAVA_OPTIONS,
            "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": LOOPBACK,
            "spark.executorEnv.SPARK_LOCAL_IP": LOOPBACK,
        }
        if mode == "client":
            every |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        where = ["--master", "yarn", "--deploy-mode", mode, *options]
        return submits.command(where, every | (settings or {}), flags)

    @property
    def spark(self) -> str:
        """The Spark that is sent."""
        return os.environ["SPARK_HOME"]

    @property
    def environment(self) -> dict[str, str]:
        """In which it is sent."""
        return {**os.environ, "HADOOP_CONF_DIR": str(self.cluster.conf), "SPARK_HOME": self.spark}

    def submit(self, work: submits.Work, mode: str, flags: list, options=(), settings=None):
        """Runs a training that has to end well, from the folder of the work; its output."""
        command = self.command(mode, flags, options, settings)
        done = submits.run(command, self.environment, work.folder)
        assert done.returncode == 0, done.stdout[-10_000:] + self.cluster.outputs()
        return done.stdout


class OldYarn(Yarn):
    """The same with the older line of Spark."""

    @property
    def spark(self) -> str:
        """That of .venv35."""
        (home,) = pathlib.Path(submits.ROOT).glob(".venv35/lib/python3*/site-packages/pyspark")
        return str(home)


@pytest.fixture(scope="session")
def yarn(tmp_path_factory, trained):
    """The mini cluster, with the table in the user's folder of HDFS."""
    with MiniCluster(tmp_path_factory.mktemp("hadoop") / "cluster") as cluster:
        yarn = Yarn(cluster)
        cluster.put(trained()[0].folder / "digits.parquet", f"{yarn.home}/digits.parquet")
        yield yarn
