# SPDX-License-Identifier: Apache-2.0
"""What a newcomer meets: workflow, issue forms, changelog, and what a release says of itself."""

import pathlib
import re
import tomllib

import pytest
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner, Result
from ruamel.yaml import YAML

ROOT = pathlib.Path(__file__).parents[2]
FORMS = ROOT / ".github/ISSUE_TEMPLATE"
WORKFLOW = ROOT / ".github/workflows/ci.yml"
SCHEMAS = [
    ("vendor.github-workflows", WORKFLOW),
    ("custom.github-workflows-require-timeout", WORKFLOW),
    ("vendor.github-issue-config", FORMS / "config.yml"),
    *(("vendor.github-issue-forms", path) for path in sorted(FORMS.glob("*.yml"))),
]


def check(schema: str, path: pathlib.Path) -> Result:
    """Holds a file against a schema of those that come with the checker: no network is needed."""
    return CliRunner().invoke(check_jsonschema, ["--builtin-schema", schema, str(path)])


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        pytest.param(schema, path, id=f"{path.name}-{schema}")
        for schema, path in SCHEMAS
        if not (schema == "vendor.github-issue-forms" and path.name == "config.yml")
    ],
)
def test_follows_its_schema(schema, path):
    done = check(schema, path)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("schema", "path", "right", "wrong"),
    [
        ("vendor.github-workflows", WORKFLOW, "runs-on:", "run-on:"),
        ("vendor.github-issue-forms", FORMS / "bug.yml", "type: input", "type: inputs"),
    ],
)
def test_a_wrong_word_is_found(schema, path, right, wrong, tmp_path):
    copy = tmp_path / path.name
    copy.write_text(path.read_text().replace(right, wrong, 1))
    assert check(schema, copy).exit_code == 1


def test_the_workflow_calls_scripts_and_parts_that_are_there():
    jobs = YAML(typ="safe").load(WORKFLOW)["jobs"]
    runs = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    scripts = {word for run in runs for word in re.findall(r"^\./(\w+)", run, re.MULTILINE)}
    assert scripts == {"quickstart", "test"}
    parts = re.findall(r"^part_(\w+)\(\)", (ROOT / "test").read_text(), re.MULTILINE)
    assert set(jobs["full"]["strategy"]["matrix"]["part"]) <= set(parts)


def test_the_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text()
    releases = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert releases[0] == "[Unreleased]"
    for release in releases[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", release), release
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_a_release_finds_what_it_says_of_the_project():
    project = tomllib.loads((ROOT / "project.toml").read_text())
    assert set(project) == {"version", "group", "url", "scm", "developer", "security_contact"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", project["version"])
    assert "`security_contact`" in (ROOT / "SECURITY.md").read_text()
