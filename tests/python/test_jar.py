# SPDX-License-Identifier: Apache-2.0
"""The wheel's jar and library become one jar, in a folder that is safe to take it from."""

import multiprocessing
import os
import pathlib
import platform
import resource
import tempfile
import zipfile

import pytest

from cafetiere.spark import jar, jar_path

ENTRY = f"native/linux-{platform.machine()}/libcafetiere.so"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package as the wheel installs it, with small files, and a cache of its own."""
    folder = tmp_path / "site-packages/cafetiere"
    (folder / "jars").mkdir(parents=True)
    (folder / "lib").mkdir()
    with zipfile.ZipFile(folder / "jars/cafetiere-spark.jar", "w") as bare:
        bare.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    (folder / "lib/libcafetiere.so").write_bytes(b"\x7fELF" * 100_000)
    monkeypatch.setattr(jar, "_PACKAGE", folder)
    monkeypatch.setenv("CAFETIERE_CACHE", str(tmp_path / "cache"))
    return folder


def test_the_library_is_put_into_the_jar_once(package, tmp_path):
    path = pathlib.Path(jar_path())
    assert path.parent == tmp_path / "cache"
    with zipfile.ZipFile(path) as full:
        assert full.namelist() == ["META-INF/MANIFEST.MF", ENTRY]
        assert full.read(ENTRY) == (package / "lib/libcafetiere.so").read_bytes()
    written = path.stat().st_mtime_ns
    assert jar_path() == str(path)
    assert path.stat().st_mtime_ns == written


def test_the_same_parts_give_the_same_bytes(package, tmp_path, monkeypatch):
    first = pathlib.Path(jar_path()).read_bytes()
    os.utime(package / "lib/libcafetiere.so", (0, 0))
    monkeypatch.setenv("CAFETIERE_CACHE", str(tmp_path / "another"))
    assert pathlib.Path(jar_path()).read_bytes() == first


def test_another_library_gives_another_jar_beside_the_first(package):
    first = jar_path()
    (package / "lib/libcafetiere.so").write_bytes(b"another")
    second = jar_path()
    assert first != second
    assert zipfile.ZipFile(first).read(ENTRY) != zipfile.ZipFile(second).read(ENTRY)


def _wait_and_write(barrier, package):
    jar._PACKAGE = package
    barrier.wait()
    assert zipfile.ZipFile(jar_path()).testzip() is None


def test_processes_may_race(package, tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    racers = [context.Process(target=_wait_and_write, args=(barrier, package)) for _ in range(3)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert [racer.exitcode for racer in racers] == [0, 0, 0]
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_nothing_is_left_of_a_jar_that_does_not_fit_on_the_disk(package, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, before[1]))
    try:
        with pytest.raises(OSError):
            jar_path()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list((tmp_path / "cache").iterdir())


def test_where_the_cache_is(package, tmp_path, monkeypatch):
    def folder():
        return pathlib.Path(jar_path()).parent

    monkeypatch.delenv("CAFETIERE_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert folder() == tmp_path / "xdg/cafetiere"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert folder() == tmp_path / "home/.cache/cafetiere"
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    private = folder()
    assert private == tmp_path / f"cafetiere-{os.getuid()}"
    assert private.stat().st_mode & 0o777 == 0o700

    private.chmod(0o770)
    with pytest.raises(PermissionError, match="CAFETIERE_CACHE"):
        folder()
    private.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o700)
    private.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="CAFETIERE_CACHE"):
        folder()


def test_a_source_trees_jar_is_used_as_it_is(package, tmp_path):
    (package / "jars/cafetiere-spark.jar").unlink()
    with pytest.raises(FileNotFoundError, match="tools/build"):
        jar_path()
    built = tmp_path / "jvm/spark/target/cafetiere-spark.jar"
    built.parent.mkdir(parents=True)
    built.touch()
    assert jar_path() == str(built)
