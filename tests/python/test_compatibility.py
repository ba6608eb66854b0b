# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md says what the builds pin, and names tests that are there."""

import pathlib
import re
import runpy
import tomllib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
VERSION = re.compile(r"\d+(?:\.\d+)+|\d+")


def rows() -> dict[str, list[str]]:
    """The table's cells by the word in its first column."""
    found = {}
    for line in (ROOT / "docs/compatibility.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "what":
            found[cells[0]] = cells[1:]
    return found


def versions(what: str) -> list[str]:
    return VERSION.findall(rows()[what][0])


def of_pom(tag: str) -> list[str]:
    return re.findall(rf"<{tag}>([^<$]+)</{tag}>", (ROOT / "jvm/pom.xml").read_text())


def test_spark_is_what_the_jar_is_built_and_tested_with():
    pinned = [
        re.search(r"^pyspark==(\S+)$", (ROOT / "tools" / name).read_text(), re.MULTILINE).group(1)
        for name in ("requirements-spark35.txt", "requirements.txt")
    ]
    assert versions("Spark") == pinned
    assert sorted(of_pom("spark.version")) == pinned


def test_scala_and_java_are_those_of_the_pom():
    assert versions("Scala") == sorted(of_pom("scala.line"))
    assert versions("Java") == of_pom("java.release")


def test_python_is_what_the_wheel_asks_for():
    project = tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=" + versions("Python")[0]


@pytest.mark.parametrize("what", rows())
def test_what_confirms_it_is_run(what):
    page = runpy.run_path(str(ROOT / "tools/check_status"))["Page"](ROOT)
    names = re.findall(r"`([^`]*)`", rows()[what][1])
    assert names
    assert [name for name in names if not page.runs(name)] == []
