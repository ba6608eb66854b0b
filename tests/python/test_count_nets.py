# SPDX-License-Identifier: Apache-2.0
"""tools/count_nets on a folder of nets written here."""

import pathlib
import subprocess
import sys

import pytest
from program import PROGRAM, needs_the_program

pytestmark = needs_the_program

TOOL = pathlib.Path(__file__).parents[2] / "tools/count_nets"
INPUT = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [1, 4, 8, 8] } } }\n'

NETS = {
    "good/pool.prototxt": INPUT + 'layer { name: "p" type: "Pooling" bottom: "x" top: "y"'
    " pooling_param { kernel_size: 3 stride: 2 ceil_mode: false engine: MKL2017 } }",
    "good/depthwise.pt": INPUT + 'layer { name: "c" type: "DepthwiseConvolution" bottom: "x"'
    ' top: "y" convolution_param { num_output: 4 group: 4 kernel_size: 3 } }',
    # Neither its rows nor its module are here.
    "good/train.prototxt": 'layer { name: "d" type: "Data" top: "x" top: "l" data_param {'
    ' source: "nowhere" batch_size: 2 backend: LMDB shuffle: true threads: 4 } }\n'
    'layer { name: "p" type: "Python" bottom: "x" top: "y"'
    ' python_param { module: "m" layer: "L" } }',
    "bad/field.prototxt": INPUT + 'layer { name: "r" type: "Region" bottom: "x"\n'
    "  region_param { classes: 20 } }",
    "bad/type.prototxt": INPUT + 'layer { name: "r" type: "ROIAlign" bottom: "x" top: "y" }',
    "bad/shape.prototxt": INPUT + 'layer { name: "s" type: "ShuffleChannel" bottom: "x" top: "y"'
    " shuffle_channel_param { group: 3 } }",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in NETS.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "solver.prototxt").write_text('net: "good/pool.prototxt" base_lr: 0.1\n')
    (tmp_path / "same.prototxt").write_text(NETS["good/pool.prototxt"])
    (tmp_path / "readme.txt").write_text("layer {")
    return tmp_path


def test_counts_distinct_nets_and_names_what_is_missing(folder):
    run = subprocess.run(
        [sys.executable, TOOL, folder, "--program", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = run.stdout.splitlines()
    assert lines[-1] == "3 of 6 distinct nets can be read"
    assert lines[-4:-1] == [
        '    1 LayerParameter has no field "region_param"',
        "    1 other",
        "    1 Unknown layer type: ROIAlign",
    ]
    first = "bad/field.prototxt: 3:3: LayerParameter has no field"
    assert any(line.startswith(first) and "cut the net before it" in line for line in lines)
    assert "forks disagree on it" in run.stdout
    assert "group 3 must divide" in run.stdout
