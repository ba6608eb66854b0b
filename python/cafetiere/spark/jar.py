# SPDX-License-Identifier: Apache-2.0
"""The jar that sessions get: the package's, with the package's native library put in."""

import contextlib
import hashlib
import os
import pathlib
import platform
import shutil
import stat
import tempfile
import zipfile

import cafetiere

_JAR = "cafetiere-spark.jar"
_PACKAGE = pathlib.Path(cafetiere.__file__).resolve().parent


def jar_path() -> str:
    """Path of the jar, with the native library inside.

    The wheel holds the two apart, since Python needs the library as a file of its own. The first
    call puts them together in a cache folder: $CAFETIERE_CACHE, else $XDG_CACHE_HOME/cafetiere,
    else ~/.cache/cafetiere, else one for this user alone below the folder for temporary files. In a
    source tree the jar that was built is complete, and used as it is.

    Raises FileNotFoundError where there is no jar, and OSError where none can be written.
    """
    bare = _PACKAGE / "jars" / _JAR
    if bare.exists():
        return str(_complete(bare, _PACKAGE / "lib" / "libcafetiere.so"))
    built = _PACKAGE.parents[1] / "jvm" / "spark" / "target" / _JAR
    if built.exists():
        return str(built)
    raise FileNotFoundError(
        f"{_JAR} is neither in the package nor in a built source tree (looked at {bare} and "
        f"{built}); install the wheel, or run tools/build in the tree"
    )


def _complete(bare: pathlib.Path, library: pathlib.Path) -> pathlib.Path:
    """The jar of the cache for these two files, written unless it is there."""
    entry = f"native/linux-{platform.machine()}/{library.name}"
    digest = hashlib.sha256(entry.encode())
    for part in (bare, library):
        digest.update(hashlib.sha256(part.read_bytes()).digest())
    name = f"cafetiere-spark-{cafetiere.__version__}-{digest.hexdigest()[:16]}.jar"
    target = _cache_folder() / name
    if not target.exists():
        _write(target, bare, library, entry)
    return target


def _write(target: pathlib.Path, bare: pathlib.Path, library: pathlib.Path, entry: str) -> None:
    """Writes `bare` with `library` as one entry more; others see all of the file or none."""
    # ZipInfo's own date is fixed, so that the same parts give the same bytes.
    info = zipfile.ZipInfo(entry)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    handle, unfinished = tempfile.mkstemp(prefix=f"{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w+b") as file:
            with bare.open("rb") as source:
                shutil.copyfileobj(source, file)
            with zipfile.ZipFile(file, "a") as jar:
                jar.writestr(info, library.read_bytes())
        os.chmod(unfinished, 0o644)
        os.replace(unfinished, target)
    except BaseException:
        os.unlink(unfinished)
        raise


def _cache_folder() -> pathlib.Path:
    told = os.environ.get("CAFETIERE_CACHE")
    if told:
        folder = pathlib.Path(told).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    for parent in (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache")):
        folder = pathlib.Path(parent) / "cafetiere"
        if not folder.is_absolute():  # the variable is not set, or there is no home
            continue
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return _private_folder()


def _private_folder() -> pathlib.Path:
    """A folder that nobody else can have put a jar into."""
    folder = pathlib.Path(tempfile.gettempdir()) / f"cafetiere-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not ours or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(
            f"{folder} is not a folder that this user alone can enter: remove it, or set "
            "CAFETIERE_CACHE to a folder for the jar"
        )
    return folder
