# SPDX-License-Identifier: Apache-2.0
"""tools/check_deps on small trees of its own."""

import pathlib
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).parents[2] / "tools/check_deps"


def check(root):
    run = subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout


@pytest.fixture
def tree(tmp_path):
    for name, text in {
        "core/deps.txt": "# comment\nbase:\nobserve: base\nbase/fast: base\nlayers: observe\n",
        "core/base/a.h": "",
        "core/base/fast/a.cc": '#include "core/base/a.h"\n',
        "core/observe/b.cc": '#include "core/base/a.h"\n#include "core/observe/c.h"\n',
        "core/layers/relu.cc": '#include "core/observe/c.h"\n',
        "tests/layers/relu.txt": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_passes_a_tree_that_follows(tree):
    assert check(tree) == (0, "check_deps: core/ and jvm/ follow their deps.txt\n")


@pytest.mark.parametrize("target", ["observe/c.h", "base/fast/a.h"])
def test_names_file_and_line_of_an_include_that_is_not_allowed(tree, target):
    (tree / "core/base/a.h").write_text(f'\n#include "core/{target}"\n')
    folder = target.rpartition("/")[0]
    assert check(tree) == (1, f"core/base/a.h:2: base may not include {folder}\n")


def test_an_allowed_folder_does_not_bring_those_that_it_includes(tree):
    (tree / "core/layers/relu.cc").write_text(
        '#include "core/observe/c.h"\n#include "core/base/a.h"\n'
    )
    assert check(tree) == (1, "core/layers/relu.cc:2: layers may not include base\n")


def test_names_an_edge_that_nothing_uses_and_a_cycle(tree):
    (tree / "core/layers/relu.cc").write_text("")
    assert check(tree) == (1, "core/deps.txt: layers does not include observe\n")
    (tree / "core/deps.txt").write_text("base: layers\nlayers: base\n")
    assert "core/deps.txt:1: base names layers, which is not above it\n" in check(tree)[1]


def test_refuses_relative_includes_and_unknown_folders(tree):
    (tree / "core/base/a.h").write_text('#include "../observe/c.h"\n')
    (tree / "core/extra").mkdir()
    (tree / "core/extra/x.h").write_text("")
    code, out = check(tree)
    assert code == 1
    assert "core/base/a.h:1: ../observe/c.h: write includes from the root" in out
    assert "core/extra/x.h:1: folder extra is not in core/deps.txt" in out


def test_wants_a_case_file_for_each_layer(tree):
    (tree / "tests/layers/relu.txt").unlink()
    assert check(tree) == (1, "core/layers/relu.cc:1: no test: add tests/layers/relu.*\n")


@pytest.fixture
def java(tree):
    for name, text in {
        "deps.txt": "public: Fit Net\nfeed:\nrun: feed Net\n",
        "Fit.java": "import cafetiere.spark.run.Job;\npublic final class Fit {}\n",
        "Net.java": "public interface Net {}\n",
        "Helper.java": "final class Helper {}\n",
        "feed/Row.java": "public record Row() {}\n",
        "run/Job.java": "import cafetiere.spark.Net;\nimport cafetiere.spark.feed.Row;\n",
    }.items():
        folder = tree / ("jvm" if name == "deps.txt" else "jvm/spark/src/main/java/cafetiere/spark")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return tree / "jvm/spark/src/main/java/cafetiere/spark"


def test_passes_packages_that_follow(tree, java):
    assert check(tree)[0] == 0


def test_names_an_import_of_a_package_above(tree, java):
    (java / "feed/Row.java").write_text("\nimport static cafetiere.spark.run.Job.Kind;\n")
    path = "jvm/spark/src/main/java/cafetiere/spark/feed/Row.java"
    assert check(tree) == (1, f"{path}:2: feed may not import run\n")


def test_names_a_package_of_more_than_ten_classes(tree, java):
    for number in range(10):
        (java / f"run/Class{number}.java").write_text("")
    assert check(tree) == (
        1,
        "jvm/spark/src/main/java/cafetiere/spark/run: 11 classes, 10 is the most\n",
    )


def test_names_a_public_class_that_is_not_listed(tree, java):
    (java / "Helper.java").write_text("public final class Helper {}\n")
    assert check(tree) == (1, "jvm/deps.txt: cafetiere.spark.Helper is public\n")


def test_names_an_import_of_spark_s_internals(tree, java):
    (java / "feed/Row.java").write_text("import org.apache.spark.SparkEnv;\n")
    path = "jvm/spark/src/main/java/cafetiere/spark/feed/Row.java"
    assert check(tree) == (1, f"{path}:1: feed may not import org.apache.spark.SparkEnv\n")


@pytest.fixture
def scala(tree, java):
    compat = tree / "jvm/compat/src/main"
    for name, text in {"dsl/layers.txt": "# types\nReLU relu_param\n", "scala/A.scala": ""}.items():
        (compat / name).parent.mkdir(parents=True)
        (compat / name).write_text(text)
    (tree / "core/layers/relu.cc").write_text('#include "core/observe/c.h"\ny{.name = "ReLU"};\n')
    return compat


def test_passes_scala_that_uses_what_is_public(tree, scala):
    (scala / "scala/A.scala").write_text(
        "import cafetiere.spark.{Fit, Net}\nimport cafetiere.core.X\n"
    )
    assert check(tree) == (0, "check_deps: core/ and jvm/ follow their deps.txt\n")


def test_names_what_scala_may_not_use(tree, scala):
    (scala / "scala/A.scala").write_text("\nval x = cafetiere.spark.feed.Row()\n")
    path = "jvm/compat/src/main/scala/A.scala"
    assert check(tree) == (1, f"{path}:2: compat may not use cafetiere.spark.feed\n")


def test_names_layers_that_the_scala_language_lacks(tree, scala):
    (scala / "dsl/layers.txt").write_text("Relu\n")
    table = "jvm/compat/src/main/dsl/layers.txt"
    assert check(tree) == (
        1, f"{table}: the engine has a type ReLU\n{table}: the engine has no type Relu\n"
    )  # fmt: skip


def test_refuses_layer_types_by_name(tree):
    (tree / "core/layers/relu.cc").write_text(
        '#include "core/observe/c.h"\nx = activation_type<ReLU>("ReLU"); y{.name = "Split"};\n'
    )
    (tree / "core/model").mkdir()
    (tree / "core/model/upgrade.cc").write_text('"ReLU"\n')
    (tree / "core/deps.txt").write_text((tree / "core/deps.txt").read_text() + "model:\n")
    (tree / "core/observe/b.cc").write_text(
        '#include "core/base/a.h"\n// a "ReLU" in words\nif (type == "Split") "ReLUs";\n'
    )
    assert check(tree) == (
        1,
        "core/observe/b.cc:2: names ReLU: let its LayerType say what you ask\n"
        "core/observe/b.cc:3: names Split: let its LayerType say what you ask\n",
    )
