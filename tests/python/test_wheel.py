# SPDX-License-Identifier: Apache-2.0
"""The wheel as a user installs it: into an environment that knows nothing of the source tree."""

import os
import pathlib
import subprocess
import sys
import sysconfig
import venv

import pytest

ROOT = pathlib.Path(__file__).parents[2]
JAR = ROOT / "jvm/spark/target/cafetiere-spark.jar"
LIBRARY = ROOT / "build/release/lib/libcafetiere.so"
pytestmark = pytest.mark.skipif(
    not (JAR.exists() and LIBRARY.exists()), reason="the project has not been built"
)


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of a fresh environment with the wheel; its dependencies are borrowed."""
    subprocess.run([ROOT / "python/build_wheel"], check=True, capture_output=True)
    folder = tmp_path_factory.mktemp("wheel") / "venv"
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python3*/site-packages"))
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    wheel = max((ROOT / "build/wheel").glob("cafetiere-*.whl"), key=lambda p: p.stat().st_mtime)
    install = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    install += ["--no-index", "--target", str(packages), str(wheel)]
    subprocess.run([sys.executable, *install], check=True)
    return folder / "bin/python"


def run(python: pathlib.Path, folder: pathlib.Path, script: str) -> list[str]:
    """The lines that a script prints, run away from the source tree."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_engine_is_inside(python, tmp_path):
    lines = run(
        python,
        tmp_path,
        "import cafetiere; print(cafetiere.__file__); print(len(cafetiere.layer_type_list()))",
    )
    assert lines[0].startswith(str(python.parents[1]))
    assert int(lines[1]) > 15


def test_spark_finds_the_jar_inside(python, tmp_path):
    script = """
from cafetiere.spark import CaffeEstimator, jar_path, session_builder
session = session_builder().master("local[1]").config("spark.ui.enabled", "false")
spark = session.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1").getOrCreate()
print(jar_path())
print(CaffeEstimator().getEngine())
print(spark.sparkContext._jvm.cafetiere.core.Engine.version())
spark.stop()
"""
    jar, engine, version = run(python, tmp_path, script)[-3:]
    assert jar.startswith(str(python.parents[1]))
    assert (engine, version) == ("barrier", "0.1.0")
