# SPDX-License-Identifier: Apache-2.0
"""Hosts that are network namespaces of this machine, joined by links with a rate and a delay.

Needs root and Linux with veth, bridge and tbf; a delay also needs TUN. Nothing is attached to the
machine's own network. Addresses are 192.0.2.10 and up, which are kept for documentation.
"""

import dataclasses
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "rig"
PAYLOAD = 1448 / 1514  # of what tbf counts
ROUND_TRIP_MS = 0.05  # of veth


@dataclasses.dataclass(frozen=True)
class Link:
    """What joins a host to the switch: Mbit/s, tbf's bucket in KiB, one-way delay in ms.

    Without a rate it is as fast as the machine's cores, which are the network.
    """

    mbit: float | None
    burst_kib: int = 0
    delay_ms: float = 0

    def as_predicted(self, most):
        """What the model is told, where the cores move `most` Mbit/s of payload for a host."""
        return f"{self.mbit * PAYLOAD:.4f},{self.delay_ms or ROUND_TRIP_MS / 2},{most:.4f}"


LINKS = {
    "cores": Link(None),
    "10gbe": Link(10_000, 256),
    "1gbe": Link(1_000, 256),
    "wan": Link(1_000, 64, delay_ms=25),
}


class Network:
    """`hosts` namespaces on links of one kind: a context manager that removes what it made."""

    def __init__(self, hosts, link):
        self.link = link
        self.switch = f"cft{os.getpid()}sw"
        self.hosts = [f"cft{os.getpid()}h{i}" for i in range(hosts)]
        self._made = []
        self._delay = None

    def address(self, host):
        """The address of a host by number."""
        return f"192.0.2.{10 + host}"

    def __enter__(self):
        """Makes the namespaces and their links."""
        try:
            for name in (self.switch, *self.hosts):
                _ip("netns", "add", name)
                self._made.append(name)
                _ip("-n", name, "link", "set", "lo", "up")
            if self.link.delay_ms:
                self._join_by_delay()
            else:
                self._join_by_bridge()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        """Removes what was made."""
        if self._delay:
            self._delay.kill()
            self._delay.wait()
        for name in self._made:
            _ip("netns", "delete", name)
        self._made.clear()

    def enter(self, host):
        """What to put before a command to run it on a host; the process is the command's own."""
        return ["ip", "netns", "exec", self.hosts[host]]

    def start(self, host, command, **popen):
        """Starts a command on a host."""
        return subprocess.Popen([*self.enter(host), *command], **popen)

    def drop(self, host):
        """From now on all that a host sends or is sent is lost untold; on links without delay."""
        _ip("-n", self.switch, "link", "set", f"p{host}", "nomaster")

    def _join_by_bridge(self):
        _ip("-n", self.switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", self.switch, "link", "set", "br0", "up")
        for i, host in enumerate(self.hosts):
            port = f"p{i}"
            peer = ("type", "veth", "peer", "name", "eth0", "netns", host)
            _ip("-n", self.switch, "link", "add", port, *peer)
            _ip("-n", self.switch, "link", "set", port, "master", "br0", "up")
            self._up(i)
            for name, device in ((host, "eth0"), (self.switch, port)):
                if self.link.mbit:
                    _limit(name, device, self.link)

    def _join_by_delay(self):
        ends = [f"{host}={self.address(i)}" for i, host in enumerate(self.hosts)]
        command = [_delay_program(), str(self.link.delay_ms), str(self.link.mbit), *ends]
        # Late packets would be a slower line: before whatever else runs here.
        command = ["nice", "-n", "-20", *command]
        self._delay = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if self._delay.stdout.readline().strip() != "ready":
            raise RuntimeError("tools/rig/delay.cc could not make its devices; see above")
        for i in range(len(self.hosts)):
            self._up(i)

    def _up(self, i):
        _ip("-n", self.hosts[i], "addr", "add", f"{self.address(i)}/24", "dev", "eth0")
        _ip("-n", self.hosts[i], "link", "set", "eth0", "txqueuelen", "2000", "up")


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def _limit(namespace, device, link):
    tbf = ["rate", f"{link.mbit:.0f}mbit", "burst", f"{link.burst_kib}kb", "latency", "20ms"]
    command = ["tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", *tbf]
    subprocess.run(command, check=True)


def _delay_program():
    source, program = pathlib.Path(__file__).with_name("delay.cc"), BUILT / "delay"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        BUILT.mkdir(parents=True, exist_ok=True)
        command = ["c++", "-std=c++20", "-O2", "-Wall", "-Wextra", source, "-o", program]
        subprocess.run(command, check=True)
    return str(program)
