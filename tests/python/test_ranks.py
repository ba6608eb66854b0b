# SPDX-License-Identifier: Apache-2.0
"""Several processes that train together, and what becomes of them when one dies."""

import contextlib
import ctypes
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from bars import make_work
from program import PROGRAM, needs_the_program

pytestmark = needs_the_program

MODES = ["allreduce", "average", "diloco", "hierarchical", "easgd", "downpour", "auto"]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return make_work(tmp_path_factory.mktemp("ranks"), "lmdb")


class Ranks:
    """The processes of one training, in a folder of their own, perhaps on hosts of a network."""

    def __init__(self, work, folder, ranks, *flags, network=None):
        self.folder = folder
        for name in ("net.prototxt", "solver.prototxt"):
            shutil.copy(work / name, folder)
        for name in ("train_db", "test_db"):
            if not (folder / name).exists():
                (folder / name).symlink_to(work / name)
        group = ["--ranks", str(ranks), "--meet", "meet"] if ranks > 1 else []
        self.processes = []
        for rank in range(ranks):
            command = [PROGRAM, "train", "--threads", "1", *group]
            command += [] if "--solver" in flags else ["--solver", "solver.prototxt"]
            command += ["--rank", str(rank)] if ranks > 1 else []
            command += ["--bind", network.address(rank)] if network else []
            command += [str(flag).format(rank=rank) for flag in flags]
            prefix = network.enter(rank) if network else []
            self.processes.append(
                subprocess.Popen(
                    prefix + command,
                    cwd=folder,
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                )
            )

    def wait(self, seconds=120):
        """Exit status and log of each."""
        ends = []
        for process in self.processes:
            log = process.communicate(timeout=seconds)[0]
            ends.append((process.returncode, log))
        return ends


def weights(folder):
    return (folder / "bars_iter_20.caffemodel").read_bytes()


def folder_in(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    return folder


def read_until(process, text):
    while text not in process.stdout.readline():
        assert process.poll() is None


@pytest.mark.parametrize("mode", ["allreduce", "average", "diloco"])
def test_ranks_do_not_show_in_the_weights(work, tmp_path, mode):
    flags = ["--sync", f"mode: '{mode}' period: 5", "--shards", "4"]
    bytes_of = {}
    for ranks in (1, 2, 3):
        folder = folder_in(tmp_path, str(ranks))
        ends = Ranks(work, folder, ranks, *flags).wait()
        assert all(code == 0 for code, _ in ends), ends
        bytes_of[ranks] = weights(folder)
    assert bytes_of[1] == bytes_of[2] == bytes_of[3]


def test_ranks_listen_on_the_ports_they_are_given(work, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        last = min(taken + 30, 65535)
        ends = Ranks(work, tmp_path, 2, "--ports", f"{taken}-{last}").wait()
    assert all(code == 0 for code, _ in ends), ends
    ports = [int((tmp_path / "meet" / f"rank{r}").read_text().split(":")[1]) for r in range(2)]
    assert all(taken < port <= last for port in ports), ports


def test_ranks_meet_at_an_address(work, tmp_path):
    """Also where a stranger comes between, and one that means another run."""
    expected = folder_in(tmp_path, "one")
    assert Ranks(work, expected, 1, "--shards", "3").wait()[0][0] == 0
    with socket.create_server(("127.0.0.1", 0)) as free:
        server = free.getsockname()
    here = folder_in(tmp_path, "three")
    meet = ["--server", f"127.0.0.1:{server[1]}", "--shards", "3"]
    first = Ranks(work, here, 1, *meet, "--ranks", "3")
    stranger = connect(server)
    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
    [(code, log)] = Ranks(work, folder_in(tmp_path, "two"), 1, *meet, "--ranks", "2").wait()
    assert code == 1
    assert "rank 0 was started with --ranks 3" in log.splitlines()[-1]
    others = [
        Ranks(work, folder_in(tmp_path, name), 1, *meet, "--ranks", "3") for name in ("a", "b")
    ]
    ends = [end for ranks in (first, *others) for end in ranks.wait()]
    stranger.close()
    assert all(code == 0 for code, _ in ends), ends
    assert weights(here) == weights(expected)
    assert sorted(re.search(r"rank (\d) of 3", log).group(1) for _, log in ends) == ["0", "1", "2"]


def connect(address, seconds=60):
    """A connection to one who may begin to listen only now."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(address)
        assert time.monotonic() < deadline, f"nobody listens at {address}"
        time.sleep(0.02)


class Hosts:
    """A host for each rank, as far as shared memory goes: a PID namespace of its own."""

    SPLIT = ["unshare", "--pid", "--fork", "--kill-child"]

    def __init__(self, *settings):
        self.settings = settings

    def address(self, _):
        return "127.0.0.1"

    def enter(self, _):
        return ["env", *self.settings, *self.SPLIT]


@pytest.fixture
def hosts():
    if subprocess.run([*Hosts.SPLIT, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("each rank needs a PID namespace of its own: unshare --pid is not allowed here")
    return Hosts


@pytest.fixture
def ucx():
    try:
        ctypes.CDLL("libucp.so.0")
    except OSError as error:
        pytest.skip(f"UCX is not installed: {error}")


@pytest.mark.usefixtures("ucx")
@pytest.mark.parametrize("tls", ["tcp,self", "sm,self"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_ucx_does_not_show_in_the_weights(work, tmp_path, hosts, ranks, tls):
    # UCX's shared memory by name: /proc/PID/fd does not reach into another PID namespace.
    network = hosts(f"UCX_TLS={tls}", "UCX_POSIX_USE_PROC_LINK=n")
    bytes_of, logs = [], []
    for connection in "ethernet", "infiniband":
        folder = folder_in(tmp_path, connection)
        flags = ["--connection", connection, "--shards", "4"]
        ends = Ranks(work, folder, ranks, *flags, network=network).wait()
        assert all(code == 0 for code, _ in ends), ends
        bytes_of.append(weights(folder))
        logs.append(ends[0][1])
    assert bytes_of[0] == bytes_of[1]
    assert "connection infiniband" not in logs[0]
    assert re.search(r"rank 0: connection infiniband: UCX [\d.]+ is used between hosts", logs[1])


@pytest.mark.usefixtures("ucx")
def test_a_rank_without_ucx_keeps_all_on_tcp(work, tmp_path, hosts):
    network = hosts()
    network.enter = lambda rank: ["env", f"UCX_TLS={['tcp,self', 'none'][rank]}", *hosts.SPLIT]
    ends = Ranks(work, tmp_path, 2, "--connection", "infiniband", network=network).wait()
    assert all(code == 0 for code, _ in ends), ends
    for rank, (_, log) in enumerate(ends):
        told = f"rank {rank}: connection infiniband: TCP is used between hosts: rank 1: "
        assert log.count("connection infiniband") == log.count(told) == 1, log


def test_ucx_is_not_used_for_what_is_encrypted(work, tmp_path):
    ends = Ranks(work, tmp_path, 2, "--connection", "infiniband", "--encrypt").wait()
    assert all(code == 0 for code, _ in ends), ends
    assert "the connections are encrypted, which UCX cannot do" in ends[0][1]


def test_a_connection_that_is_not_known_is_refused(work, tmp_path):
    (code, log), _ = Ranks(work, tmp_path, 2, "--connection", "wifi").wait()
    assert code != 0
    assert "set it to ethernet or infiniband" in log


def test_encryption_does_not_show_in_the_weights(work, tmp_path):
    bytes_of = []
    for flags in [], ["--encrypt"]:
        folder = folder_in(tmp_path, f"with{len(flags)}")
        ends = Ranks(work, folder, 2, *flags).wait()
        assert all(code == 0 for code, _ in ends), ends
        bytes_of.append(weights(folder))
    assert bytes_of[0] == bytes_of[1]


def test_a_rank_that_alone_encrypts_is_told_and_the_others_too(work, tmp_path):
    ends = Ranks(work, tmp_path, 2, "--encrypt={rank}").wait()
    assert all(code != 0 for code, _ in ends)
    assert "encrypts its connections, this rank does not encrypt them" in ends[0][1]
    assert "does not encrypt its connections, this rank encrypts them" in ends[1][1]


def check_account(events, log):
    """The parts add up to cores x seconds."""
    account = json.loads(events.read_text().splitlines()[-1])
    assert account["event"] == "account" and account["cores"] == 2
    assert 0 < account["seconds"] < 120
    whole = account["cores"] * account["seconds"] / 3600
    assert sum(account["core_hours"].values()) == pytest.approx(whole)
    assert account["cost"] == pytest.approx(1800 * whole)
    assert account["core_hours"]["computing"] > 0 and account["core_hours"]["network"] > 0
    assert "Account of rank 1: " in log and f"Account: {account['rows_used']} rows used; " in log
    assert [rank["name"] for rank in account["ranks"]] == ["rank 0", "rank 1"]
    for name, hours in account["core_hours"].items():
        parts = [rank["core_hours"][name] for rank in account["ranks"]]
        assert sum(parts) == pytest.approx(hours)


def check_times(events, together):
    """The net is explained first; ranks that report together tell what each one's time went to."""
    told = [json.loads(line) for line in events.read_text().splitlines()]
    assert told[0]["event"] == "explained" and "InnerProduct" in told[0]["text"]
    progress = [event for event in told if event["event"] == "progress"]
    assert progress and all(("ranks" in event) == together for event in progress)
    for event in progress if together else []:
        assert all(len(values) == 2 for values in event["ranks"].values())
        assert all(0 < value < 120_000 for value in event["ranks"]["step_ms"])
        shares = event["ranks"]["wait_data"] + event["ranks"]["wait_comm"]
        assert all(0 <= share <= 1 for share in shares)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_trains(work, tmp_path, mode):
    told = ["--trace", "trace{rank}.json", "--events", "run{rank}", "--price_per_core_hour", "1800"]
    ends = Ranks(work, tmp_path, 2, "--sync", mode, *told).wait()
    assert all(code == 0 for code, _ in ends), ends
    check_account(tmp_path / "run0.jsonl", ends[0][1])
    check_times(tmp_path / "run0.jsonl", together=mode not in ("easgd", "downpour"))
    losses = [float(x) for x in re.findall(r"Test net output #1: loss = ([\d.e-]+)", ends[0][1])]
    assert losses[-1] < losses[0]
    rows = set()
    for rank in range(2):
        events = json.loads((tmp_path / f"trace{rank}.json").read_text())["traceEvents"]
        assert all(event["pid"] == rank for event in events)
        rows |= {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert "step" in rows
    assert ("exchange" in rows) == (mode in ("allreduce", "hierarchical", "auto"))


def test_deepsparks_parameter_file_is_read_as_it_is(work, tmp_path):
    (tmp_path / "param.prototxt").write_text("period: 3\nmoving_rate: 0.2\ndecay_rate: 0.9\n")
    ends = Ranks(work, tmp_path, 2, "--deepspark", "param.prototxt").wait()
    assert all(code == 0 for code, _ in ends), ends
    assert 'mode: "easgd"' in ends[0][1] and "moving_rate: 0.2" in ends[0][1]


def test_the_death_of_a_rank_is_told_by_name(work, tmp_path):
    ranks = Ranks(work, tmp_path, 2, "--max_iter", "1000000")
    first = ranks.processes[0]
    read_until(first, "Iteration 5 ")
    ranks.processes[1].send_signal(signal.SIGKILL)
    (code, log), _ = ranks.wait()
    assert code == 1
    assert "rank 1" in log.splitlines()[-1]


@pytest.mark.parametrize("compression", ["topk", "powersgd"])
def test_a_killed_run_with_compression_goes_on_to_the_same_bits(work, tmp_path, compression):
    flags = ["--sync", f"compression: '{compression}' compression_density: 0.1"]
    whole, killed, resumed = (folder_in(tmp_path, name) for name in ("whole", "killed", "resumed"))
    assert [code for code, _ in Ranks(work, whole, 2, *flags).wait()] == [0, 0]
    ranks = Ranks(work, killed, 2, *flags, "--max_iter", "1000000")
    state = killed / "bars_iter_10.solverstate"
    while not state.exists():
        assert ranks.processes[0].poll() is None
    ranks.processes[1].send_signal(signal.SIGKILL)
    assert all(code != 0 for code, _ in ranks.wait())
    ends = Ranks(work, resumed, 2, *flags, "--snapshot", state).wait()
    assert [code for code, _ in ends] == [0, 0], ends
    assert weights(resumed) == weights(whole)
    third = folder_in(tmp_path, "third")
    ends = Ranks(work, third, 1, *flags, "--snapshot", state).wait()
    assert "with 1 ranks: error feedback starts at zero" in ends[0][1]


@pytest.mark.parametrize("mode", ["easgd", "downpour"])
def test_the_result_outlives_rank_0_where_nobody_waits_for_it(work, tmp_path, mode):
    flags = ["--sync", f"mode: '{mode}' period: 5", "--shards", "2", "--max_iter", "3000"]
    ranks = Ranks(work, tmp_path, 2, *flags)
    first = ranks.processes[0]
    read_until(first, "Iteration 10, Testing net")
    first.send_signal(signal.SIGKILL)
    _, (code, log) = ranks.wait()
    assert code == 0 and "its part is lost" in log, log
    assert "Test net output" in log
    assert (tmp_path / "bars_iter_3000.caffemodel").exists()


@pytest.mark.parametrize("display", [5, 10_000_000])
def test_a_signal_to_rank_0_stops_all(work, tmp_path, display):
    solver = (work / "solver.prototxt").read_text()
    (tmp_path / "rare.prototxt").write_text(solver.replace("display: 5", f"display: {display}"))
    flags = ["--solver", "rare.prototxt", "--max_iter", "1000000"]
    ranks = Ranks(work, tmp_path, 2, *flags)
    first = ranks.processes[0]
    read_until(first, "Iteration 10, Testing net")
    first.send_signal(signal.SIGINT)
    ends = ranks.wait()
    assert [code for code, _ in ends] == [0, 0], ends
    assert "Optimization stopped early." in ends[0][1]
    assert "Optimization stopped early." in ends[1][1]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--sync", "averag"], 'did you mean "average"?'),
        (["--sync", "mode: 'average' period: 0"], "sync { period: 0 }: it must be from 1"),
        (["--sync", "mode: 'average' perod: 3"], '--sync:1:17: SyncParameter has no field "perod"'),
        (["--sync", "mode: 'average' compression: 'topk'"], 'use mode "allreduce"'),
        (
            ["--ranks", "2", "--rank", "2", "--meet", "m"],
            "--rank 2: with 2 ranks it must be 0 to 1",
        ),
        (["--ranks", "2"], "--ranks needs --meet"),
        (["--ranks", "2", "--meet", "m", "--server", "127.0.0.1:1"], "--ranks needs --meet"),
        (["--ranks", "2", "--server", "127.0.0.1:1", "--encrypt"], "--encrypt needs --meet"),
        (["--ranks", "2", "--server", "127.0.0.1:1", "--rank", "1"], "--rank needs --meet"),
        (["--ranks", "2", "--meet", "used"], "use a new --meet folder for each run"),
    ],
)
def test_what_cannot_be_meant_is_refused(work, tmp_path, flags, message):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "rank0").write_text("127.0.0.1:1")
    code, log = Ranks(work, tmp_path, 1, *flags).wait()[0]
    assert code == 1
    assert message in log.splitlines()[-1]


@pytest.mark.parametrize("flags", [["--meet", "m"], ["--encrypt"], ["--bind", "127.0.0.1"]])
def test_flags_of_several_ranks_need_their_number(work, tmp_path, flags):
    code, log = Ranks(work, tmp_path, 1, *flags).wait()[0]
    assert code == 2
    assert f"{flags[0]} requires --ranks" in log


KINDS = ("images", "labels")


def gunzip(path, folder):
    """The file that a .gz holds, in a folder."""
    target = folder / path.stem
    target.write_bytes(gzip.decompress(path.read_bytes()))
    return target


@pytest.mark.skipif("CAFETIERE_MNIST" not in os.environ, reason="needs a folder with MNIST")
def test_downpour_learns_mnist(tmp_path):
    """LeNet with four workers; takes about a minute. CAFETIERE_MNIST has MNIST's four .gz files."""
    source = pathlib.Path(os.environ["CAFETIERE_MNIST"])
    for part, name in (("train", "train_db"), ("t10k", "test_db")):
        files = [gunzip(next(source.glob(f"{part}-{kind}*.gz")), tmp_path) for kind in KINDS]
        subprocess.run([PROGRAM, "convert_mnist", *files, tmp_path / name], check=True)
    example = pathlib.Path(__file__).parents[2] / "examples/mnist/lenet_train_test.prototxt"
    net = re.sub(r"out/mnist/(\w+)_lmdb", r"\1_db", example.read_text())
    (tmp_path / "net.prototxt").write_text(net)
    (tmp_path / "solver.prototxt").write_text(
        'net: "net.prototxt" base_lr: 0.003 momentum: 0.9 weight_decay: 0.0005 lr_policy: "fixed"'
        ' max_iter: 1500 snapshot_prefix: "lenet" random_seed: 7'
    )
    folder = folder_in(tmp_path, "ranks")
    ends = Ranks(tmp_path, folder, 4, "--sync", "mode: 'downpour' period: 1").wait(900)
    assert all(code == 0 for code, _ in ends), ends
    command = [PROGRAM, "test", "--model", "net.prototxt", "--iterations", "100", "--weights"]
    told = subprocess.run(
        [*command, "lenet_iter_1500.caffemodel"], cwd=folder, capture_output=True, text=True
    )
    assert float(re.findall(r"accuracy = ([\d.]+)", told.stdout + told.stderr)[-1]) >= 0.985
