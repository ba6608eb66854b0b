# SPDX-License-Identifier: Apache-2.0
"""The wheel as a user installs it: into an environment that knows nothing of the source tree."""

import os
import pathlib
import subprocess
import sys
import sysconfig
import venv
import zipfile

import pytest

from cafetiere import __version__

ROOT = pathlib.Path(__file__).parents[2]
JAR = ROOT / "jvm/spark/target/cafetiere-spark.jar"
LIBRARY = ROOT / "build/release/lib/shipped/libcafetiere.so"
pytestmark = pytest.mark.skipif(
    not (JAR.exists() and LIBRARY.exists()), reason="the project has not been built"
)


def wheel() -> pathlib.Path:
    return next((ROOT / "build/wheel").glob("cafetiere-*.whl"))


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of a fresh environment with the wheel; its dependencies are borrowed."""
    subprocess.run([ROOT / "python/build_wheel"], check=True)
    folder = tmp_path_factory.mktemp("wheel") / "venv"
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python3*/site-packages"))
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin/python"]
    install = [*pip, "install", "-q", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*install, wheel()], check=True)
    return folder / "bin/python"


def run(command: list, folder: pathlib.Path) -> list[str]:
    """The lines that a command prints, run away from the source tree."""
    apart = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "CAFETIERE_LIBRARY")}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**apart, "CAFETIERE_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_engine_is_inside_once(python, tmp_path):
    names = zipfile.ZipFile(wheel()).namelist()
    assert [name for name in names if ".so" in name] == ["cafetiere/lib/libcafetiere.so"]
    with zipfile.ZipFile(wheel()).open("cafetiere/jars/cafetiere-spark.jar") as jar:
        assert not any(name.startswith("native/") for name in zipfile.ZipFile(jar).namelist())
    script = "import cafetiere; print(cafetiere.__file__, len(cafetiere.layer_type_list()))"
    place, layers = run([python, "-c", script], tmp_path)[0].split()
    assert place.startswith(str(python.parents[1]))
    assert int(layers) > 15


def test_the_types_of_the_params_are_inside(python):
    wheel_file = zipfile.ZipFile(wheel())
    names = set(wheel_file.namelist())
    files = ("ml_params.json", "params.json", "py.typed")
    assert {f"cafetiere/spark/{name}" for name in files} <= names
    stub = wheel_file.read("cafetiere/spark/params.pyi").decode()
    assert "def setEpochs(self, value: int) -> Self: ..." in stub


def test_the_program_is_inside(python, tmp_path):
    told = run([python.parent / "cafetiere", "version"], tmp_path)
    assert told == [f"cafetiere version {__version__}"]


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
    jar, engine, version = run([python, "-c", script], tmp_path)[-3:]
    assert jar.startswith(str(tmp_path / "cache"))
    assert (engine, version) == ("barrier", __version__)
