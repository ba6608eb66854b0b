# SPDX-License-Identifier: Apache-2.0
"""Spark Connect where HDFS is the default file system, as on a cluster of Hadoop.

The server writes every model that it fits to its own disk, by a path without a scheme.
"""

import pytest
from connect_nets import FITS
from connect_server import CACHED_BYTES, connect_server, run_client
from minicluster import MiniCluster

pytestmark = pytest.mark.long


def test_models_of_a_server_on_hdfs(tmp_path):
    with MiniCluster(tmp_path / "hadoop") as cluster:
        settings = {"spark.master": "local-cluster[2,1,1024]", CACHED_BYTES: "1b"}
        environment = {"HADOOP_CONF_DIR": str(cluster.conf)}
        with connect_server(tmp_path, settings, environment) as server:
            seen = run_client(server, "/saved", tmp_path / "seen.json")
        files = cluster.files("/")
    assert seen["loaded"] == seen["figures"]
    for name in FITS:
        net = name if name == "net" else f"{name}/net"
        assert f"/saved/{net}/data/model.caffemodel" in files
    assert not any("spark_connect" in path for path in files)
    assert seen["run"]["state"] == "ended"
