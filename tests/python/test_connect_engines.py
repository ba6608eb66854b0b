# SPDX-License-Identifier: Apache-2.0
"""The other engines over Spark Connect, on a server started and stopped as docs/connect.md says."""

import json
import subprocess

import pytest
from connect_nets import engine_figures
from connect_server import SECONDS, client, connect_daemon


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The figures that a client got."""
    folder = tmp_path_factory.mktemp("daemon")
    settings = {"spark.master": "local-cluster[2,1,1024]"}
    with (
        connect_daemon(folder, settings) as address,
        client(
            address, "connect_engines.py", stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process,
    ):
        try:
            output, said = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0, said[-8_000:]
    return json.loads(output)


@pytest.mark.long
def test_fits_are_those_of_a_classic_session(seen, spark):
    assert (seen["rounds"]["engine"], seen["survivors"]["engine"]) == ("rounds", "survivors")
    assert seen == json.loads(json.dumps(engine_figures(spark)))
