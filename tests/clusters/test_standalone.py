# SPDX-License-Identifier: Apache-2.0
"""CaffeOnSpark's command line on a standalone master and its workers."""

import os

from submits import command, standalone


def test_submit_trains_the_weights_of_one_machine(trained, tmp_path):
    work, expected = trained()
    model = tmp_path / "lenet.caffemodel"
    with standalone.Cluster(tmp_path / "cluster", workers=2) as cluster:
        settings = cluster.settings()
        master = settings.pop("spark.master")
        assert master.startswith("spark://")
        _, *words = command(["--master", master], settings, work.flags(model.as_uri(), 2))
        program = f"{os.environ['SPARK_HOME']}/bin/spark-submit"
        submit = cluster.start(0, [program, *words], "submit", cwd=work.folder)
        code = submit.wait(300)
        said = (cluster.folder / "log" / "submit").read_text()
    assert code == 0, said[-10_000:]
    assert model.read_bytes() == expected
    assert (tmp_path / "lenet_iter_40.solverstate").exists()
