# SPDX-License-Identifier: Apache-2.0
"""What tests of several files need: a session on real executors, a folder to work in."""

import pathlib
import signal

import pytest

# They write, or read while others write, the same files below build/.
TOGETHER = {"test_release", "test_site", "test_wheel"}


def group(nodeid):
    """What one worker of `./test python` runs in turn: a file, so its fixtures are made once."""
    name = pathlib.PurePath(nodeid.partition("::")[0]).stem
    return "together" if name in TOGETHER else name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    # Marks of groups do not reach the scheduler: pytest 9.2 sends names of tests without them.
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group(nodeid)

    return Groups(config, log)


@pytest.fixture(scope="session", autouse=True)
def interruptible():
    """Ctrl-C works in the tests' processes, though a shell's `&` had it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def new_session(master="local-cluster[2,1,1024]"):
    """A session on real executors; a test's program may start one of its own."""
    from cafetiere.spark import session_builder

    return (
        session_builder()
        .master(master)
        .config("spark.executor.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        # The tests are too short to earn back what the second compiler costs.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .getOrCreate()
    )


@pytest.fixture(scope="session")
def spark():
    session = new_session()
    yield session
    session.stop()


@pytest.fixture
def work(tmp_path, monkeypatch):
    """An empty folder, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
