# SPDX-License-Identifier: Apache-2.0
"""The engine loads where the machine or the process is not as one would have it."""

import os
import platform
import shutil
import subprocess
import zipfile

import pytest
from bars import make_work
from program import ROOT, needs_the_program
from test_ranks import Ranks, weights

JAR = ROOT / "jvm/spark/target/cafetiere-spark.jar"
ENTRY = f"native/linux-{platform.machine()}/libcafetiere.so"

needs_a_jar = pytest.mark.skipif(
    not JAR.exists() or shutil.which("javac") is None, reason="no jar has been built, or no JDK"
)

# Activates providers that no copy of OpenSSL has, and allows no protocol that TLS groups use.
OPENSSL_CONF = """
openssl_conf = all
[all]
providers = providers
ssl_conf = ssl
[providers]
absent = absent
[absent]
identity = absent
module = /nowhere/absent.so
activate = 1
[ssl]
system_default = defaults
[defaults]
MaxProtocol = TLSv1.2
"""


@pytest.fixture(autouse=True)
def plain_java(monkeypatch):
    """java would mention the variable in its output."""
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)


@needs_the_program
def test_ranks_encrypt_whatever_openssl_is_told(tmp_path, monkeypatch):
    work = make_work(tmp_path, "lmdb")
    bytes_of = []
    for conf in None, "openssl.cnf":
        if conf:
            (tmp_path / conf).write_text(OPENSSL_CONF)
            monkeypatch.setenv("OPENSSL_CONF", str(tmp_path / conf))
        folder = tmp_path / f"with_{conf}"
        folder.mkdir()
        ends = Ranks(work, folder, 2, "--encrypt").wait()
        assert [code for code, _ in ends] == [0, 0], ends
        bytes_of.append(weights(folder))
    assert bytes_of[0] == bytes_of[1]


def compiled(folder, *names):
    """A folder with the classes of tests/jvm/NAME.java."""
    sources = [ROOT / f"tests/jvm/{name}.java" for name in names]
    flags = ["-proc:none", "-Xlint:all,-path,-options", "-cp", JAR, "-d", folder]
    subprocess.run(["javac", *flags, *sources], check=True)
    return folder


def java(*arguments, prefix=(), code=0, **options):
    done = subprocess.run(
        [*prefix, shutil.which("java"), "-Xmx256m", *map(str, arguments)],
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
        **options,
    )
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def loaders(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("classes"), "Loaders", "OneStep")


def train_in_loaders(jars, classes, **options):
    """What each class loader of one process trained: its engine's version, its weights' hash."""
    answer = java("-cp", classes, "Loaders", *jars, **options)
    return [tuple(line.split()) for line in answer.splitlines()]


@needs_a_jar
def test_two_class_loaders_work_beside_each_other(loaders):
    first, second = train_in_loaders([JAR, JAR], loaders)
    assert first == second
    assert len(first[1]) == 64


@needs_a_jar
def test_two_versions_work_beside_each_other(loaders, tmp_path):
    other = tmp_path / "other.jar"
    [(version, sha256)] = train_in_loaders([JAR], loaders)
    assert len(version) == len("9.9.9")
    with zipfile.ZipFile(JAR) as jar, zipfile.ZipFile(other, "w") as changed:
        for name in jar.namelist():
            content = jar.read(name)
            if name == ENTRY:
                content = content.replace(b"\0%s\0" % version.encode(), b"\x009.9.9\0")
            changed.writestr(name, content)
    trained = train_in_loaders([JAR, other, JAR], loaders)
    assert trained == [(version, sha256), ("9.9.9", sha256), (version, sha256)]


# Mounts a folder of its own at $1, from which nothing may be executed, and goes on in it.
NO_EXECUTION = 'mount -t tmpfs -o noexec tmpfs "$1" && cd "$2" && shift 2 && exec "$@"'


class Machine:
    """A machine whose /tmp is mounted noexec, and a class that loads the engine there."""

    def __init__(self, folder):
        self.classes = compiled(folder / "classes", "Alone")
        self.locked, self.open = folder / "locked", folder / "open"
        self.locked.mkdir()
        self.open.mkdir()
        self.namespace = ["unshare", "--mount"]
        if os.getuid() != 0:  # a user namespace lets anybody mount
            self.namespace.append("--map-root-user")

    def command(self, cwd):
        return [*self.namespace, "sh", "-c", NO_EXECUTION, "sh", self.locked, cwd]

    def allows_mounts(self):
        probe = [*self.command(self.locked), "true"]
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0

    def load(self, cwd, *properties, code=0, **environment):
        options = [f"-Djava.io.tmpdir={self.locked}", *properties]
        return java(
            *options, "-cp", f"{JAR}:{self.classes}", "Alone",
            prefix=self.command(cwd), code=code, env={**os.environ, **environment},
        )  # fmt: skip


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path)
    if not made.allows_mounts():
        pytest.skip("folders cannot be mounted here: unshare --mount is not allowed")
    return made


@needs_a_jar
def test_the_next_folder_is_taken_where_tmp_is_noexec(machine):
    assert machine.load(machine.open).endswith("true\n")
    assert machine.load(machine.locked, LOCAL_DIRS=f"/nowhere,{machine.open}").endswith("true\n")
    assert list(machine.open.iterdir()) == []


@needs_a_jar
def test_where_all_folders_are_noexec_it_says_what_to_set(machine):
    error = machine.load(machine.locked, LOCAL_DIRS="", SPARK_LOCAL_DIRS="/proc/nowhere", code=1)
    assert "cannot load the native library" in error
    for part in (f"{machine.locked}/cafetiere-native-", "cannot write to /proc/nowhere", "noexec"):
        assert part in error, error
    # The two ways out that it names.
    with zipfile.ZipFile(JAR) as jar:
        (machine.open / "libcafetiere.so").write_bytes(jar.read(ENTRY))
    for folder in "java.io.tmpdir", "cafetiere.native.path":
        assert f"-D{folder}" in error
        assert machine.load(machine.locked, f"-D{folder}={machine.open}").endswith("true\n")
