# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site: built from this tree, complete, with no link that leads nowhere."""

import importlib.util
import re
import subprocess

import pytest
from program import ROOT, needs_the_program

import cafetiere

pytestmark = needs_the_program


def module(name):
    """A module of tools/pages."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/pages/{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def site():
    done = subprocess.run([ROOT / "tools/site"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "build/site"


def ids(page):
    return set(re.findall(r'id="([^"]+)"', page.read_text()))


def test_every_page_has_its_place(site):
    """What is in docs/ is a page, and the list of pages names it."""
    listed = (ROOT / "mkdocs.yml").read_text()
    for path in (ROOT / "docs").rglob("*.md"):
        name = path.relative_to(ROOT / "docs")
        assert (site / name.with_suffix(".html")).exists(), name
        assert name.parts[0] == "decisions" or f"- {name}\n" in listed, f"mkdocs.yml lacks {name}"


def test_the_layers_are_those_of_the_engine(site):
    shown = ids(site / "reference/layers.html")
    missing = [name for name in cafetiere.layer_type_list() if name.lower() not in shown]
    assert not missing
    assert "Messages that several layers take" in (site / "reference/layers.html").read_text()


def test_the_c_page_has_every_function(site):
    header = (ROOT / "include/cafetiere/c_api.h").read_text()
    functions = set(re.findall(r"CFT_API [^;]*?\b(cft_\w+)\(", header))
    assert functions and functions <= ids(site / "reference/c.html")


@pytest.mark.parametrize("page", ["c", "layers"])
def test_comments_are_shown_as_they_stand(site, page):
    """No backslash of Markdown is left in what readers see."""
    text = (site / f"reference/{page}.html").read_text()
    assert "struct_size" in text or "num_axes" in text
    assert not re.findall(r"^.*\\(?:[_*|\[\]]|&[lg]t;).*$", text, re.MULTILINE)


def test_no_page_shows_markup(site):
    """A table or a list that Markdown took for text, and comment signs of sources."""
    for path in site.rglob("*.html"):
        if "reference/java" not in str(path):
            text = re.sub(r"<(pre|code|script)\b.*?</\1>", "", path.read_text(), flags=re.DOTALL)
            assert not re.findall(r"\|\s*:?-{3,}|<t[dh][^>]*>- |\*/", text), path.relative_to(site)


def test_the_c_page_keeps_sentences_out_of_blocks(site):
    text = (site / "reference/c.html").read_text()
    assert "<p>Later versions may append fields." in text
    assert 'id="lmdb">LMDB<' in text


def test_a_folder_leads_to_its_files(site):
    assert 'href="train.c"' in (site / "tree/examples/c/index.html").read_text()
    assert (site / "tree/examples/c/train.c").exists()
    assert "Small nets" in (site / "tree/examples/nets/index.html").read_text()


@pytest.mark.parametrize(
    ("comment", "markdown"),
    [
        ("set `struct_size` and a*b_c", r"set `struct_size` and a\*b\_c"),
        ("from <= k, [x] | `[y] | <z>`", r"from &lt;= k, \[x\] \| `[y] | <z>`"),
    ],
)
def test_marks_are_escaped_outside_code(comment, markdown):
    assert module("comments").escaped(comment) == markdown


def test_the_python_page_has_every_name(site):
    shown = ids(site / "reference/python.html")
    names = [name for name in cafetiere.__all__ if callable(getattr(cafetiere, name))]
    assert {f"cafetiere.{name}" for name in names} <= shown
    assert "cafetiere.spark.ml.CaffeClassifier" in shown


def test_the_python_page_hides_private_bases(site):
    """What models inherit from them is there, under the models' own names."""
    page = site / "reference/python.html"
    assert "_TableModel" not in re.sub(r"<[^>]*>", "", page.read_text())
    for name in ("nets", "netOf", "caffeModel", "exportOnnx", "summary"):
        for model in ("Classification", "Regression"):
            assert f"cafetiere.spark.ml.Caffe{model}Model.{name}" in ids(page)


def test_examples_on_the_python_page_are_code(site):
    text = (site / "reference/python.html").read_text()
    shown = re.findall(r"<pre>.*?</pre>", text, re.DOTALL)
    shown = [re.sub(r"<[^>]*>", "", block) for block in shown]
    for line in ("spark import CaffeEstimator, session_builder", "spark.ml import CaffeClassifier"):
        assert any(f"from cafetiere.{line}\n" in block for block in shown)
    assert not re.findall(r"<p>(?:from|import) [^<]*", text)


def test_flags_in_tables_are_kept_whole(site):
    text = (site / "migration-caffeonspark.html").read_text()
    assert '<td><code><span class="whole">-devices</span> D</code></td>' in text
    assert "<td><code>-" not in text
    assert "SubmitTest#<wbr>trainLeavesTheModel" in (site / "status.html").read_text()
    blocks = re.findall(r"<pre>.*?</pre>", (site / "clusters.html").read_text(), re.DOTALL)
    assert blocks and not [block for block in blocks if "<wbr>" in block or "whole" in block]


def test_the_java_pages_have_the_stages(site):
    classes = site / "reference/java/cafetiere"
    for name in ("spark/CaffeEstimator", "spark/ml/CaffeRegressor", "core/score/Scorer"):
        assert (classes / f"{name}.html").exists()


def test_the_commands_are_those_of_the_program(site):
    assert {"train", "explain", "doctor"} <= ids(site / "reference/cafetiere.html")


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="none.html">', "index.html: none.html leads nowhere"),
        ('<a href="#none">', "index.html: #none has no such place"),
        ('<script src="https://example.org/a.js">', "is fetched from elsewhere"),
        ('<p id="here"><a href="#here"><a href="https://example.org">', None),
    ],
)
def test_what_leads_nowhere_is_told(tmp_path, body, fault):
    (tmp_path / "index.html").write_text(body)
    found = module("check").faults(tmp_path)
    assert found == [] if fault is None else fault in found[0]
