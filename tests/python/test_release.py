# SPDX-License-Identifier: Apache-2.0
"""What ships: library, jar and wheel of a build, and what tools/release left in dist/."""

import datetime
import getpass
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tomllib
import xml.etree.ElementTree as xml
import zipfile
import zlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
JAR = ROOT / "jvm/spark/target/cafetiere-spark.jar"
LIBRARY = ROOT / "build/release/lib/shipped/libcafetiere.so"
DIST = ROOT / "dist"
PROJECT = tomllib.loads((ROOT / "project.toml").read_text())
MB = 1_000_000
ZIPS = (".jar", ".whl", ".zip")
LEGAL = {"LICENSE", "NOTICE", "THIRD-PARTY-NOTICES", "cafetiere.cdx.json"}
# Names that say nothing of a machine, and that code has for its own reasons.
COMMON = {"root", "user", "build", "builder", "debian", "ubuntu", "runner", "localhost"}
pytestmark = pytest.mark.skipif(
    not (JAR.exists() and LIBRARY.exists()), reason="the project has not been built"
)


def in_dist(pattern):
    """The files of dist/ of that form; one that says why there is none where there is none."""
    found = sorted(DIST.rglob(pattern))
    missing = pytest.mark.skip(reason="there is no dist/: tools/release makes it")
    return found or [pytest.param(None, marks=missing, id="none")]


def named(value):
    return value.name if isinstance(value, pathlib.Path) else None


def members(name, data):
    """(name, bytes) of a file and of all that is packed into it."""
    yield name, data
    if name.endswith(ZIPS):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.namelist():
                yield from members(f"{name}/{entry}", archive.read(entry))
    elif name.endswith(".tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for entry in archive:
                if entry.isfile():
                    yield entry.name, archive.extractfile(entry).read()


def libraries(path):
    return [data for name, data in members(path.name, path.read_bytes()) if name.endswith(".so")]


def readelf(path, *options):
    command = ["readelf", "-W", *options, path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def told_by_the_machine():
    """Texts that only this tree, this user or this host can have put into a file."""
    user, host = getpass.getuser(), socket.gethostname()
    words = [name for name in (user, host) if len(name) > 3 and name not in COMMON]
    return [str(ROOT), f"{pathlib.Path.home()}/", f"{user}@{host}", *words]


BUILT = [LIBRARY, JAR, *sorted((ROOT / "build/wheel").glob("*.whl"))]
SHIPPED = [p for form in ("*.whl", "*.gz", "*.zip", "*.json") for p in in_dist(form)]


@pytest.mark.parametrize("path", BUILT + SHIPPED, ids=named)
def test_nothing_tells_of_the_machine_that_built(path):
    secrets = [text.encode() for text in told_by_the_machine()]
    for name, data in members(path.name, path.read_bytes()):
        told = [secret for secret in secrets if secret in data or secret in name.encode()]
        assert not told, name


@pytest.mark.parametrize("path", SHIPPED, ids=named)
def test_no_time_but_the_commits(path):
    [bom] = DIST.glob("*.cdx.json")
    text = json.loads(bom.read_text())["metadata"]["timestamp"]
    commits = int(datetime.datetime.fromisoformat(text).timestamp())
    log = ["git", "log", "--format=%ct"]
    history = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=True)
    assert str(commits) in history.stdout.split()
    for name, data in members(path.name, path.read_bytes()):
        if name.endswith(ZIPS):
            dates = {entry.date_time for entry in zipfile.ZipFile(io.BytesIO(data)).infolist()}
            date = datetime.datetime.fromtimestamp(commits // 2 * 2, datetime.UTC)
            assert dates == {tuple(date.timetuple())[:6]}, name
        elif name.endswith(".tar.gz"):
            assert data[4:8] == bytes(4)  # gzip's own
            with tarfile.open(fileobj=io.BytesIO(gzip.decompress(data))) as archive:
                owners = {(e.mtime, e.uid, e.gid, e.uname, e.gname) for e in archive}
            assert owners == {(commits, 0, 0, "", "")}


@pytest.mark.parametrize("path", [LIBRARY, *in_dist("*-linux-*.tar.gz")], ids=named)
def test_the_library_needs_glibc_2_17_and_no_more(path, tmp_path):
    [data] = libraries(path)
    copy = tmp_path / "libcafetiere.so"
    copy.write_bytes(data)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(copy, "-d")))
    allowed = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
    assert needed <= allowed | {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    versions = set(re.findall(r"Name: GLIBC_(\S+)", readelf(copy, "-V")))
    assert max(tuple(map(int, version.split("."))) for version in versions) <= (2, 17)
    rows = [line.split() for line in readelf(copy, "--dyn-syms").splitlines()]
    symbols = [row[4:8] for row in rows if len(row) == 8 and row[4] in ("GLOBAL", "WEAK")]
    exported = {name for _, _, section, name in symbols if section != "UND"}
    assert {name for name in exported if not name.startswith(("cft_", "Java_"))} == set()
    assert "cft_version" in exported


@pytest.mark.parametrize("path", BUILT + in_dist("cafetiere-*.whl") + in_dist("*.jar"), ids=named)
def test_sizes(path):
    for library in libraries(path):
        assert len(zlib.compress(library)) <= 8 * MB
    # cafetiere-all has Scala's classes and protobuf's for Java besides.
    jar = 18 if path.name.startswith("cafetiere-all_") else 15
    assert path.stat().st_size <= {".so": 20, ".jar": jar, ".whl": 18}[path.suffix] * MB


@pytest.mark.parametrize("path", in_dist("*-linux-*.tar.gz"), ids=named)
def test_the_program_needs_glibc_2_17_and_no_more(path, tmp_path):
    programs = [d for n, d in members(path.name, path.read_bytes()) if n.endswith("/bin/cafetiere")]
    assert len(programs) == ("sdk" not in path.name)
    for program in programs:
        (tmp_path / "cafetiere").write_bytes(program)
        versions = re.findall(r"Name: GLIBC_(\S+)", readelf(tmp_path / "cafetiere", "-V"))
        assert max(tuple(map(int, version.split("."))) for version in versions) <= (2, 17)
        assert "[$ORIGIN/../lib]" in readelf(tmp_path / "cafetiere", "-d")


@pytest.mark.parametrize("path", in_dist("cafetiere-*.whl"), ids=named)
def test_the_wheel_is_for_every_linux_since_glibc_2_17(path):
    command = [sys.executable, "-m", "auditwheel", "show", path]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    platform = path.stem.split("-")[-1]
    assert platform.startswith("manylinux_2_17_")
    assert f'following platform tag: "{platform}".' in " ".join(shown.split())


def test_what_is_linked_in_is_in_the_notices():
    build = ROOT / "build/release"
    loaded = re.findall(r"^LOAD (.*\.a)$", (build / "lib/libcafetiere.map").read_text(), re.M)
    archives = sorted({str(build / name) for name in loaded})
    assert len(archives) > 20
    command = [sys.executable, ROOT / "tools/third_party", "check", "--archives", *archives]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", SHIPPED, ids=named)
def test_licences_go_with_every_copy_of_the_library(path):
    inside = {}  # names and texts, for each archive that is not a jar in a wheel
    for name, data in members(path.name, path.read_bytes()):
        if name.endswith(".so"):
            inside["library"] = name
        elif name.count(".jar/") + name.count(".whl/") <= 1:
            inside[name.split("/")[-1]] = data
    if "library" in inside:
        assert inside.keys() >= LEGAL
        assert inside["LICENSE"] == (ROOT / "LICENSE").read_bytes()
        bom = json.loads(inside["cafetiere.cdx.json"])
        assert bom["metadata"]["component"]["version"] == PROJECT["version"]


@pytest.mark.parametrize("path", in_dist("*.pom"), ids=named)
def test_the_pom_says_what_central_asks_and_names_no_repository(path):
    pom = xml.parse(path).getroot()
    wanted = ["name", "description", "url", "licenses/license/name", "developers/developer/name"]
    for path_of in [*wanted, "scm/url", "scm/connection", "scm/developerConnection"]:
        found = pom.findtext("/".join(f"{{*}}{part}" for part in path_of.split("/")))
        assert found, f"no {path_of}"
    assert pom.findtext("{*}groupId") == PROJECT["group"]
    assert pom.findtext("{*}version") == PROJECT["version"]
    assert pom.find("{*}parent") is None and pom.find("{*}repositories") is None
    dependencies = pom.findall("{*}dependencies/{*}dependency")
    scopes = {(d.findtext("{*}groupId"), d.findtext("{*}scope")) for d in dependencies}
    own = {(PROJECT["group"], None)} if "compat" in path.stem else set()
    assert scopes == {("org.apache.spark", "provided")} | own
    files = {file.name.removeprefix(path.stem) for file in path.parent.iterdir()}
    parts = {".jar", "-sources.jar", "-javadoc.jar", ".pom"}
    assert files == parts | {f"{part}.{kind}" for part in parts for kind in ("md5", "sha1")}
    for file in path.parent.glob("*.sha1"):
        assert file.read_text() == hashlib.sha1(file.with_suffix("").read_bytes()).hexdigest()


@pytest.mark.parametrize("path", in_dist(f"cafetiere-spark-{PROJECT['version']}.jar"), ids=named)
def test_the_published_jar_has_no_pom_of_the_build(path):
    names = zipfile.ZipFile(path).namelist()
    assert names[0] == "META-INF/MANIFEST.MF"
    assert [name for name in names if "maven" in name] == []


@pytest.mark.parametrize("path", in_dist("cafetiere-spark-*-sources.jar"), ids=named)
def test_sources_and_javadoc_have_what_is_generated(path):
    sources = zipfile.ZipFile(path).namelist()
    javadoc = zipfile.ZipFile(str(path).replace("-sources.jar", "-javadoc.jar"))
    for name in ("PredictionParams", "CaffeParams", "CaffeModelParams"):
        assert f"cafetiere/spark/{name}.java" in sources
        assert f"cafetiere/spark/{name}.html" in javadoc.namelist()
    page = javadoc.read("cafetiere/spark/CaffeParams.html").decode()
    assert "Tasks that train together." in page and "setNumWorkers" in page


@pytest.mark.parametrize("path", in_dist("SHA256SUMS"), ids=named)
def test_the_sums_are_those_of_every_file(path):
    done = subprocess.run(["sha256sum", "--strict", "-c", path.name], cwd=DIST, check=False)
    assert done.returncode == 0
    listed = {line.split()[1] for line in path.read_text().splitlines()}
    files = {str(p.relative_to(DIST)) for p in DIST.rglob("*") if p.is_file()} - {path.name}
    assert {name for name in files if not name.endswith((".md5", ".sha1"))} == listed


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone with the scripts as they stand here."""
    folder = tmp_path_factory.mktemp("clone") / "cafetiere"
    subprocess.run(["git", "clone", "-q", "--shared", ROOT, folder], check=True)
    for name in ("tools/release", "tools/common.sh", "project.toml"):
        shutil.copy(ROOT / name, folder / name)
    who = ["-c", "user.name=A Tester", "-c", "user.email=tester@example.org"]
    command = ["git", *who, "commit", "-q", "--allow-empty", "-am", "as it stands"]
    subprocess.run(command, cwd=folder, check=True)
    return folder


def refusal(clone, *arguments):
    done = subprocess.run(
        ["tools/release", *arguments], cwd=clone, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode == 1 and not (clone / "dist").exists()
    return done.stdout + done.stderr


def test_a_release_refuses_another_version(clone):
    assert f"project.toml has version {PROJECT['version']}, not 99.0.0" in refusal(clone, "99.0.0")
    assert f"tools/release {PROJECT['version']}" in refusal(clone)
    assert "unknown option '--pubish'" in refusal(clone, PROJECT["version"], "--pubish")


@pytest.mark.skipif("PLACEHOLDER" not in PROJECT["group"], reason="the placeholders are filled in")
def test_publishing_refuses_placeholders(clone):
    told = refusal(clone, PROJECT["version"], "--publish")
    assert "still has the placeholders above" in told and 'developer = "PLACEHOLDER"' in told


def test_a_release_refuses_a_tree_that_is_not_its_commit(clone):
    (clone / "notes").touch()
    told = refusal(clone, PROJECT["version"])
    (clone / "notes").unlink()
    assert "the tree differs from its commit" in told
