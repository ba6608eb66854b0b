# SPDX-License-Identifier: Apache-2.0
"""A net of 600 M weights, beyond the 2 GiB of the binary form: part `large` of ./test --full.

Needs 10 GiB of memory and 20 GiB of disk, in the folder for temporary files.
"""

import filecmp
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = ROOT / "build/release/cli/cafetiere"
INPUTS, OUTPUTS = 20_000, 30_000
ARENAS = 3 * 4 * INPUTS * OUTPUTS  # bytes of weights, gradients and history
GIB = 1 << 30
SKIPPED = 77  # what ./test takes for a part that this machine cannot run

NET = f"""
name: "large"
layer {{ name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {{ data_filler {{ type: "constant" value: 0.01 }}
    data_filler {{ type: "constant" value: 7 }}
    shape {{ dim: 1 dim: {INPUTS} }} shape {{ dim: 1 }} }} }}
layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param {{ num_output: {OUTPUTS} weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}
"""
SOLVER = 'net: "net.prototxt" base_lr: 0.01 momentum: 0.9 lr_policy: "fixed" random_seed: 1\n'


def available_bytes():
    text = pathlib.Path("/proc/meminfo").read_text().split("MemAvailable:")[1]
    return int(text.split()[0]) * 1024


def train(folder, prefix, max_iter, *flags, settings="snapshot_format: HDF5"):
    """Trains to `max_iter`, with a snapshot after each second iteration; the log."""
    solver = folder / f"{prefix}.prototxt"
    snapshot = f'snapshot: 2 snapshot_prefix: "{prefix}" {settings}'
    solver.write_text(f"{SOLVER} max_iter: {max_iter} {snapshot}")
    with (folder / f"{prefix}.log").open("w+") as log:
        process = subprocess.Popen(
            [PROGRAM, "train", "-solver", solver.name, *flags], cwd=folder, stderr=log
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        text = log.read()
    assert process.returncode == 0, text
    peak = usage.ru_maxrss * 1024
    print(f"{prefix}: peak {peak / GIB:.2f} GiB, {peak / ARENAS:.3f} x weights, gradients, history")
    assert peak <= 1.2 * ARENAS
    return text


@pytest.fixture
def folder(tmp_path):
    if available_bytes() < 10 * GIB or shutil.disk_usage(tmp_path).free < 20 * GIB:
        pytest.exit("skipped: needs 10 GiB of memory and 20 GiB of disk", SKIPPED)
    (tmp_path / "net.prototxt").write_text(NET)
    yield tmp_path
    shutil.rmtree(tmp_path)


def test_600_million_weights_snapshot_and_resume_within_their_arenas(folder):
    train(folder, "whole", 3)
    state = folder / "whole_iter_2.solverstate.h5"
    assert state.stat().st_size > 2 * GIB
    # Without the setting what is too large for the binary form is HDF5, too.
    text = train(folder, "rest", 3, "-snapshot", state.name, settings="")
    assert "larger than the 2 GiB of the binary form, hence HDF5" in text
    for kind in ("caffemodel", "solverstate"):
        names = [f"{prefix}_iter_3.{kind}.h5" for prefix in ("whole", "rest")]
        sizes = [(folder / name).stat().st_size for name in names]
        assert sizes[0] == sizes[1] > 2 * GIB
    assert filecmp.cmp(
        folder / "whole_iter_3.caffemodel.h5", folder / "rest_iter_3.caffemodel.h5", shallow=False
    )
