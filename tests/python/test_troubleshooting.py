# SPDX-License-Identifier: Apache-2.0
"""docs/troubleshooting.md explains each text that preflight refuses with and doctor advises."""

import re

import pytest
from program import ROOT

JAVA = ROOT / "jvm/spark/src/main/java/cafetiere/spark"
GOLDEN = ROOT / "jvm/spark/src/test/resources/preflight"
DOCTOR = ROOT / "cli/doctor.cc"
PAGE = (ROOT / "docs/troubleshooting.md").read_text()
LATER = "\0"  # stands for what varies

# Sources whose sentences are all findings; in others only what is added to them is one.
ALL_FINDINGS = ("preflight", "netfiles", "FeedSchema", "Encryption", "DriverPorts", "PortRange")
TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|//[^\n]*|/\*.*?\*/|\'(?:[^\'\\]|\\.)\'|(.)', re.DOTALL)
REFUSES = re.compile(r"PreflightException\(List\.of\(|findings\.add\(")


def statements(source):
    """The code of each statement, without its texts, and the texts, joined as it joins them."""
    code, said = "", ""
    for token in TOKEN.finditer(source):
        if token[1] is not None:
            said += token[1]
        elif token[2] and token[2] in ";{}":
            yield code, said.strip(LATER)
            code, said = "", ""
        elif token[2] and not token[2].isspace():
            code += token[2]
            if token[2] != "+" and not said.endswith(LATER):
                said += LATER


def findings():
    """Each text that a fit can be refused with, by where its source has it."""
    for path in sorted(JAVA.rglob("*.java")):
        whole = path.parent.name in ALL_FINDINGS or path.stem in ALL_FINDINGS
        for code, said in statements(path.read_text()):
            is_sentence = whole and ": " in said and "LOG." not in code and "NO_CLASS" not in code
            is_finding = is_sentence or REFUSES.search(code)
            if is_finding and re.search(r"\w \w", said):
                yield path.name, said
    for path in sorted(GOLDEN.glob("*.txt")):
        yield path.name, re.sub("<[a-z]+>", LATER, path.read_text())


def advice():
    """Each text of doctor that says what to do."""
    for code, said in statements(DOCTOR.read_text()):
        words = said.split(LATER)[-1] if code.startswith("kDoubtful") or "kWrong," in code else said
        if re.search(r"advice=|kInstead=|^k(Wrong|Doubtful),", code) and " " in words:
            yield DOCTOR.name, words


def entries(heading):
    """The quoted texts of the first column of a section's tables."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE)[1]
    return re.findall(r'^\| "(.+?)" \|', section, re.MULTILINE)


def explains(entry, text):
    return re.search(
        ".*".join(re.escape(part.strip()) for part in entry.split("…")), text, re.DOTALL
    )


SECTIONS = [("What a fit refuses, text by text", findings), ("What doctor advises", advice)]


@pytest.mark.parametrize(("heading", "said"), SECTIONS, ids=["preflight", "doctor"])
def test_every_text_is_explained(heading, said):
    listed = entries(heading)
    missing = [
        (where, text.replace(LATER, "…"))
        for where, text in said()
        if not any(explains(entry, text) for entry in listed)
    ]
    assert not missing


@pytest.mark.parametrize(("heading", "said"), SECTIONS, ids=["preflight", "doctor"])
def test_no_text_is_explained_that_nobody_says(heading, said):
    texts = [text for _, text in said()]
    assert len(texts) > 10
    stale = [
        entry for entry in entries(heading) if not any(explains(entry, text) for text in texts)
    ]
    assert not stale


def test_a_new_check_is_found():
    new = 'findings.add("the moon is " + phase + ", so that"\n  + " nothing learns: wait");'
    ((code, said),) = statements(new)
    assert REFUSES.search(code)
    assert said == f"the moon is {LATER}, so that nothing learns: wait"
