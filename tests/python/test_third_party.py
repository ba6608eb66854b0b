# SPDX-License-Identifier: Apache-2.0
"""tools/third_party: on the project's table, and on small tables of its own."""

import json
import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import tomllib

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = pathlib.Path(__file__).parents[2]
TOOL = ROOT / "tools/third_party"
TABLE = tomllib.loads((ROOT / "tools/third_party.toml").read_text())
TIME = {"SOURCE_DATE_EPOCH": "1700000000"}
on_debian = pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="needs dpkg")


def run(*arguments, table=None, environment=None):
    chosen = ["--table", table] if table else []
    done = subprocess.run(
        [sys.executable, "-W", "error", TOOL, *chosen, *arguments],
        capture_output=True, text=True, check=False,
        env={k: v for k, v in os.environ.items() if k not in TIME} | (environment or {}),
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def small(folder, **changes):
    """A table of one library: zlib as it is installed here, with changes; None removes a key."""
    debian = subprocess.run(
        ["dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", "zlib1g-dev"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    row = next(row for row in TABLE["library"] if row["name"] == "zlib") | {"debian": debian}
    row = {k: v for k, v in (row | changes).items() if v is not None}
    path = folder / "table.toml"
    lines = [f"allowed = {TABLE['allowed']}", "[[library]]"]
    path.write_text("\n".join(lines + [f"{key} = {value!r}" for key, value in row.items()]))
    return path


def archive(name):
    """A static archive of this machine's compiler."""
    command = ["gcc", f"-print-file-name={name}"]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert pathlib.Path(path).is_absolute(), f"{name} is not installed"
    return path


def test_the_projects_table_passes():
    code, out = run("check")
    assert code == 0, out
    assert f"third_party: {len(TABLE['library'])} libraries" in out


@pytest.mark.parametrize("row", TABLE["library"], ids=lambda row: row["name"])
def test_a_rows_versions_belong_together(row):
    assert len(row["sha256"]) == 64 and ("archives" in row) != ("part" in row)
    if "package" in row:
        source, debian = row["debian"].split()
        upstream = debian.split(":")[-1].rsplit("-", 1)[0]
        assert row["tarball"].startswith(f"{source}_{upstream}.orig.tar.")
        assert upstream.startswith(row["version"])
    else:
        assert row["version"] in row["tarball"] and row["purl"].endswith(row["version"])


def test_no_licence_text_lies_about_unused():
    used = {text for row in TABLE["library"] for text in row["texts"]} - {"LICENSE"}
    assert used == {f"licences/{path.name}" for path in (ROOT / "licences").iterdir()}


@on_debian
@pytest.mark.parametrize("licence", [
    "LGPL-2.1-or-later", "GPL-3.0-only", "Zlib AND GPL-2.0-or-later", "Zlib OR GPL-2.0-only",
])  # fmt: skip
def test_a_licence_that_is_not_allowed_fails(tmp_path, licence):
    code, out = run("check", table=small(tmp_path, licence=licence))
    assert code == 1
    assert f"zlib: {licence.split(' AND ')[-1]} is not among the licences allowed" in out


@on_debian
def test_a_missing_text_fails(tmp_path):
    code, out = run("check", table=small(tmp_path, texts=["licences/none.txt"]))
    assert code == 1 and "zlib: no file licences/none.txt" in out


@on_debian
@pytest.mark.parametrize(("changes", "message"), [
    ({"debian": "zlib 0.1-1"}, "; the table says zlib 0.1-1"),
    ({"package": "zlib-of-nowhere"}, "zlib-of-nowhere is not installed; the table says"),
])  # fmt: skip
def test_another_version_is_a_warning_and_fails_a_release(tmp_path, changes, message):
    assert run("check", "--strict", table=small(tmp_path))[0] == 0
    table = small(tmp_path, **changes)
    code, out = run("check", table=table)
    assert code == 0 and "third_party: warning: zlib: " in out and message in out
    code, out = run("check", "--strict", table=table)
    assert code == 1 and message in out and "warning" not in out


@on_debian
def test_archives_are_looked_up_in_the_table(tmp_path):
    table = small(tmp_path)
    own = tmp_path / "libcft_base.a"
    own.touch()
    assert run("check", "--strict", "--archives", archive("libz.a"), own, table=table)[0] == 0
    code, out = run("check", "--archives", archive("libz.a"), archive("libssl.a"), table=table)
    assert code == 1
    assert "libssl.a (package libssl-dev) is linked in but in no row of the table" in out
    code, out = run("check", "--archives", tmp_path / "libz.a", table=table)
    assert code == 1 and "libz.a: no such file" in out


@on_debian
def test_an_archive_from_elsewhere_fails_a_release(tmp_path):
    table = small(tmp_path)
    copy = tmp_path / "libz.a"
    copy.touch()
    code, out = run("check", "--archives", copy, table=table)
    assert code == 0 and "libz.a is from no package; the table says zlib1g-dev" in out
    assert run("check", "--strict", "--archives", copy, table=table)[0] == 1
    pinned = small(tmp_path, package=None, debian=None)
    assert run("check", "--strict", "--archives", copy, table=pinned)[0] == 0
    code, out = run("check", "--strict", "--archives", archive("libz.a"), table=pinned)
    assert code == 1 and "libz.a is from zlib1g-dev; the table says no package" in out


@on_debian
def test_glibc_itself_may_not_be_linked_in():
    code, out = run("check", "--archives", archive("libc_nonshared.a"))
    assert code == 0, out
    code, out = run("check", "--archives", archive("libc.a"))
    assert code == 1 and "libc.a (package libc6-dev) is linked in but in no row" in out


def test_links_to_archives_are_followed():
    hdf5 = pathlib.Path(archive("libhdf5_serial.a")).parent / "hdf5/serial/libhdf5.a"
    assert hdf5.is_symlink()
    code, out = run("check", "--archives", hdf5)
    assert code == 0, out


def test_notices_hold_names_and_texts(tmp_path):
    out = tmp_path / "THIRD-PARTY-NOTICES"
    assert run("notices", out) == (0, "")
    text = out.read_text()
    for row in TABLE["library"]:
        assert f"\n{row['name']} {row['version']}\n" in text
        for file in row["texts"]:
            assert text.count((ROOT / file).read_text().strip("\n")) == 1, file
    assert "\nOpenSSL, ONNX\n" in text


def test_page_is_current():
    tool = runpy.run_path(str(TOOL))
    text = (ROOT / "docs/third-party.md").read_text()
    assert tool["page"](TABLE, text) == text, "run tools/third_party page"


def test_sbom_is_valid_and_says_what_the_table_says(tmp_path):
    out = tmp_path / "sbom.json"
    assert run("sbom", out, "--version", "1.2.3", environment=TIME) == (0, "")
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(out.read_text())
    assert fault is None, fault
    bom = json.loads(out.read_text())
    assert bom["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert bom["metadata"]["component"]["version"] == "1.2.3"
    components = {component["name"]: component for component in bom["components"]}
    assert components.keys() == {row["name"] for row in TABLE["library"]}
    for row in TABLE["library"]:
        component = components[row["name"]]
        assert component["version"] == row["version"]
        [source] = [reference for reference in component["externalReferences"]
                    if reference["type"] == "source-distribution"]  # fmt: skip
        assert source["hashes"] == [{"alg": "SHA-256", "content": row["sha256"]}]
        [licence] = component["licenses"]
        assert row["licence"] in (licence.get("expression"), licence.get("license", {}).get("id"))
        if "package" in row:
            name, debian = row["debian"].replace("+", "%2B").split()
            purl = f"pkg:deb/debian/{name}@{debian}?arch=source&distro=debian-12"
        assert component["purl"] == (purl if "package" in row else row["purl"])
    [whole] = [entry for entry in bom["dependencies"] if entry["ref"] == "cafetiere"]
    assert set(whole["dependsOn"]) == components.keys()


def test_sbom_has_the_same_bytes_for_the_same_input(tmp_path):
    texts = []
    for seed, version in (("1", "1.0"), ("2", "1.0"), ("1", "1.1")):
        environment = TIME | {"PYTHONHASHSEED": seed}
        code, _ = run("sbom", tmp_path / "out", "--version", version, environment=environment)
        assert code == 0
        texts.append((tmp_path / "out").read_text())
    assert texts[0] == texts[1]
    numbers = {json.loads(text)["serialNumber"] for text in texts}
    assert len(numbers) == 2


def test_sbom_asks_for_its_time(tmp_path):
    code, out = run("sbom", tmp_path / "out", "--version", "1.0")
    assert code == 1 and out.startswith("third_party: set SOURCE_DATE_EPOCH")
    assert not (tmp_path / "out").exists()
