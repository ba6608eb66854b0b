# SPDX-License-Identifier: Apache-2.0
"""How sessions come by the jar and the plugin, on every Spark that is installed here."""

import json
import os
import pathlib
import shutil
import subprocess
import zipfile

import pytest

from cafetiere import __version__

ROOT = pathlib.Path(__file__).parents[2]
JAR = ROOT / "jvm/spark/target/cafetiere-spark.jar"
OURS = "cafetiere.spark.CafetierePlugin"
PYTHONS = [ROOT / venv / "bin/python" for venv in (".venv", ".venv35")]
JAVAC = shutil.which("javac", path=f"{os.environ.get('JAVA_HOME', '')}/bin:{os.environ['PATH']}")
pytestmark = pytest.mark.skipif(not (JAR.exists() and JAVAC), reason="needs the jar and a JDK")

OTHER_PLUGIN = """
package other;
public class Plugin implements org.apache.spark.api.plugin.SparkPlugin {
  public org.apache.spark.api.plugin.DriverPlugin driverPlugin() { return null; }
  public org.apache.spark.api.plugin.ExecutorPlugin executorPlugin() { return null; }
}
"""
# What a running session has; one that could not load a plugin on an executor never counts to 10.
TELL = """
import json
def tell(spark):
    conf, jars = spark.sparkContext.getConf(), spark.sparkContext._jsc.sc().listJars()
    print("told " + json.dumps({
        "jars": sorted(jars.apply(i).split("/")[-1] for i in range(jars.size())),
        "plugins": conf.get("spark.plugins"),
        "files": conf.get("spark.files", ""),
        "rows": spark._jsparkSession.range(10).count(),
        "engine": CaffeEstimator().getEngine(),
        "version": spark._jvm.cafetiere.core.Engine.version(),
    }))
"""
BOTH = {
    "jars": ["cafetiere-spark.jar", "other.jar"],
    "plugins": f"other.Plugin,{OURS}",
    "rows": 10,
    "engine": "barrier",
    "version": __version__,
}


@pytest.fixture(params=PYTHONS, ids=lambda python: python.parents[1].name)
def python(request):
    """An interpreter that has Spark."""
    if not request.param.exists():
        pytest.skip(f"there is no {request.param.parents[1].name}")
    return request.param


def spark_home(python):
    return next(python.parents[1].glob("lib/python3*/site-packages/pyspark"))


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A user's own jar, with a plugin of Spark; its class file suits both lines."""
    folder = tmp_path_factory.mktemp("other")
    source = folder / "Plugin.java"
    source.write_text(OTHER_PLUGIN)
    jars = f"{spark_home(PYTHONS[0])}/jars/*"
    subprocess.run([JAVAC, "-cp", jars, "-d", folder / "classes", source], check=True)
    with zipfile.ZipFile(folder / "other.jar", "w") as jar:
        jar.write(folder / "classes/other/Plugin.class", "other/Plugin.class")
    return folder / "other.jar"


def run(command, python, folder, script, **environment):
    """Runs a script by a command, without the UI; spark-defaults.conf lies in `folder`/conf."""
    (folder / "conf").mkdir(exist_ok=True)
    with (folder / "conf/spark-defaults.conf").open("a") as defaults:
        defaults.write("spark.ui.enabled false\nspark.driver.host 127.0.0.1\n")
        defaults.write("spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1\n")
    (folder / "script.py").write_text(TELL + script)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "SPARK_HOME": str(spark_home(python)),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        **environment,
    }
    return subprocess.run(
        [*command, folder / "script.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def told(done) -> list:
    """What the script's sessions told."""
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("told ")]
    return [json.loads(line.removeprefix("told ")) for line in lines]


def test_session_builder_keeps_what_files_flags_and_environment_say(python, other, tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/spark-defaults.conf").write_text("spark.plugins other.Plugin\n")
    (tmp_path / "some.txt").write_text("text")
    script = """
from cafetiere.spark import CaffeEstimator, session_builder
builder = session_builder().master("local-cluster[1,1,512]")
tell(builder.config("spark.executor.memory", "512m").getOrCreate())
"""
    flags = f"--jars {other} --conf spark.files={tmp_path}/some.txt pyspark-shell"
    (session,) = told(run([python], python, tmp_path, script, PYSPARK_SUBMIT_ARGS=flags))
    assert session.pop("files").endswith("/some.txt")
    assert session == BOTH


@pytest.mark.parametrize(
    ("way", "python"),
    [
        ("python", PYTHONS[0]),
        ("spark-submit", PYTHONS[0]),
        ("python", PYTHONS[1]),
        pytest.param("spark-submit", PYTHONS[1], marks=pytest.mark.long),
    ],
    ids=lambda value: value if isinstance(value, str) else value.parents[1].name,
    indirect=["python"],
)
def test_an_import_is_enough_for_a_plain_builder(way, python, other, tmp_path):
    script = f"""
import cafetiere.spark
from cafetiere.spark import CaffeEstimator
from pyspark.sql import SparkSession
for _ in range(2):
    builder = SparkSession.builder.master("local[1]").config("spark.jars", "{other}")
    session = builder.config("spark.plugins", "other.Plugin").getOrCreate()
    tell(session)
    session.stop()
"""
    command = [python] if way == "python" else [spark_home(python) / "bin/spark-submit"]
    if way == "spark-submit":
        command += ["--jars", other]  # too late for a class of a builder's jar
    sessions = told(run(command, python, tmp_path, script))
    assert sessions == 2 * [{**BOTH, "files": ""}]


@pytest.mark.parametrize("python", PYTHONS[:1], indirect=True, ids=[".venv"])
def test_a_jar_that_the_user_gives_is_not_added_again(python, tmp_path):
    shutil.copy(JAR, tmp_path / "mine.jar")
    script = f"""
from cafetiere.spark import CaffeEstimator, session_builder
tell(session_builder().master("local[1]").config("spark.jars", "{tmp_path}/mine.jar").getOrCreate())
"""
    (session,) = told(run([python], python, tmp_path, script))
    assert (session["jars"], session["plugins"]) == (["mine.jar"], None)


def test_a_running_session_without_the_jar_is_told_what_to_set(python, other, tmp_path):
    script = f"""
from pyspark.sql import SparkSession
SparkSession.builder.master("local[1]").config("spark.jars", "{other}").getOrCreate()
from cafetiere.spark import CaffeEstimator
CaffeEstimator()
"""
    done = run([python], python, tmp_path, script)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "RuntimeError: the running Spark session does not have Cafetiere's jar; import "
        "cafetiere.spark before the session starts, or start it with "
        f"--conf spark.jars={other},{JAR} --conf spark.plugins={OURS}"
    )
