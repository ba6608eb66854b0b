# SPDX-License-Identifier: Apache-2.0
"""What is made of the benches' results; nothing here looks at the clock."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULT = {
    "date": "2026-01-02T03:04:05Z",
    "commit": "abcdef0",
    "machine": {"cpu": "Some CPU", "cores": 2, "memory_gib": 8, "os": "Some OS"},
    "load": 0.5,
    "bench": "train",
    "net": "lenet",
    "batch": 64,
    "threads": 2,
    "isa": "avx2",
    "precision": "float32",
    "figure": "images_per_s",
    "reports": {"torch": "2.15.0+cpu", "torch_cpu": "AVX2", "onednn": "Intel AVX2"},
    "ours": [1000, 2000, 4000],
    "theirs": {"PyTorch eager": [900, 1000, 1100], "PyTorch compile": [800, 700, 600]},
    "best": "PyTorch eager",
    "ratios": [1.1, 2.0, 3.6],
}
EMPTY = "before\n<!-- bench/readme_table -->\nold\n<!-- end of bench/readme_table -->\nafter\n"


def readme_table(*arguments):
    command = [sys.executable, ROOT / "bench" / "readme_table", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def made_of(folder, *results):
    """A README with the table of these results."""
    (folder / "results.jsonl").write_text("".join(json.dumps(r) + "\n" for r in results))
    (folder / "README.md").write_text(EMPTY)
    files = ["--results", folder / "results.jsonl", "--readme", folder / "README.md"]
    run = readme_table(*files)
    assert run.returncode == 0, run.stderr
    assert readme_table("--check", *files).returncode == 0
    return (folder / "README.md").read_text()


def test_the_readme_has_the_table_of_the_results():
    run = readme_table("--check")
    assert run.returncode == 0, run.stderr


def test_a_row_names_the_machine_and_both_sides(tmp_path):
    text = made_of(tmp_path, RESULT)
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "Some CPU, 2 cores, 8 GiB, Some OS; 2 threads, float32, code for avx2" in text
    assert "| LeNet, training, batch 64 | 2,000 images/s | PyTorch eager 1,000 |" in text
    assert "| 2.00 (1.10..3.60) | 3 | 0.5 | 2026-01-02, abcdef0 |" in text


def test_the_newest_result_of_a_bench_counts(tmp_path):
    newer = {**RESULT, "ours": [3000], "ratios": [3.0], "commit": "1234567"}
    other = {**RESULT, "isa": "avx512"}
    text = made_of(tmp_path, RESULT, other, newer)
    assert text.count("| LeNet") == 2
    assert "3,000 images/s" in text and "1234567" in text and "code for avx512" in text


def test_a_table_that_is_not_that_of_the_results_is_told(tmp_path):
    made_of(tmp_path, RESULT)
    changed = (tmp_path / "README.md").read_text().replace("2,000", "9,000")
    (tmp_path / "README.md").write_text(changed)
    files = ["--results", tmp_path / "results.jsonl", "--readme", tmp_path / "README.md"]
    run = readme_table("--check", *files)
    assert run.returncode != 0 and "run bench/readme_table" in run.stderr
    (tmp_path / "README.md").write_text("no markers\n")
    assert "once each" in readme_table(*files).stderr


def test_history_keeps_when_what_and_where(tmp_path):
    sys.path.insert(0, str(ROOT / "bench"))
    import history

    file = tmp_path / "below" / "history.jsonl"
    history.append(file, {"bench": "train", "net": "a", "ours": [1]})
    history.append(file, {"bench": "train", "net": "b", "ours": [2]})
    history.append(file, {"bench": "train", "net": "a", "ours": [3]})
    records = history.load(file)
    assert len(records) == 3
    assert all(r["date"] and r["commit"] and r["machine"]["cpu"] for r in records)
    assert [r["ours"] for r in history.newest(records, ("bench", "net"))] == [[3], [2]]


def test_nets_of_the_benches_compile(tmp_path):
    from program import PROGRAM

    if PROGRAM is None:
        return
    for name in ("transformer", "lstm"):
        make = [sys.executable, ROOT / "bench" / "make_net.py", name, "2"]
        net = tmp_path / f"{name}.prototxt"
        net.write_bytes(subprocess.run(make, capture_output=True, check=True).stdout)
        explain = subprocess.run(
            [PROGRAM, "explain", net], capture_output=True, text=True, check=False
        )
        assert explain.returncode == 0, explain.stderr
        assert "weight gradient" in explain.stdout
