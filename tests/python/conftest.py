# SPDX-License-Identifier: Apache-2.0
"""What tests of several files need: a session on real executors, a folder to work in."""

import pytest

# They write, or read while others write, the same files below build/.
TOGETHER = {"test_release", "test_site", "test_wheel"}


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items):
    """What one worker of `./test python` runs in turn: a file, and of documentation a page.

    So a fixture of a file is made once, and a page's blocks find what those before them have left.
    """
    for item in items:
        group = "together" if item.path.stem in TOGETHER else item.path.stem
        if group == "test_readme" and hasattr(item, "callspec"):
            group = item.callspec.id.rsplit(":", 1)[0]
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def spark():
    from cafetiere.spark import session_builder

    session = (
        session_builder()
        .master("local-cluster[2,1,1024]")
        .config("spark.executor.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        # The tests are too short to earn back what the second compiler costs.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture
def work(tmp_path, monkeypatch):
    """An empty folder, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
