# SPDX-License-Identifier: Apache-2.0
"""The lines that bench/tutorials counts; nothing here is measured."""

import re
import subprocess
import sys

from program import ROOT

LINES = ROOT / "bench/tutorials/lines"


def told(*flags):
    command = [sys.executable, LINES, *flags]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def rows(text):
    """The lines of each side, by tutorial."""
    tables = re.findall(r"^\| (table|images|text|finetune|keys), (.*)", text, re.M)
    return {name: re.findall(r"(\d+) lines|\|  *\|", row) for name, row in tables}


def test_the_page_has_the_lines_of_the_tutorials_and_their_peers():
    counted = rows(told("--count"))
    assert len(counted) == 5
    assert rows((ROOT / "docs/why.md").read_text()) == counted


def test_what_only_shows_or_makes_the_tables_is_not_counted():
    text = told("--show", "finetune", "table")
    assert 'with open("shapes.caffemodel", "wb") as file:' in text, "the figure depends on the file"
    assert "def drawn" not in text and "spark.read" not in text and "import " not in text
    assert "print(" not in text and ".show(" not in text and "search" not in text
    assert '"""' not in text and "model = classifier.fit(train)" in text
