"""The interop runner's `simple-p2p` as real programs find it: one-way delay and rate, both ways, against its words.

Sender and receiver are programs on both ends of the network that cases have. A delay is from the moment before a
datagram is given to the kernel to the kernel's stamp at the other end, the median of several hundred, less what the
same takes the same program over its own loopback device: that much is the instrument's. A rate is what arrives of more
than the link takes. Both ends read one clock: they are on one machine.
"""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from airloom import interpreter
from airloom.errors import RunError, UsageError
from airloom.interop import network, words
from airloom.laboratory import Lab, lab
from airloom.scenario import parse, toml_value
from airloom.validate import pairs
from airloom.validate.tasks import Progress

#: How far what is found may be from what the words say.
BAR = 0.005

NETWORKS = (
    words.DEFAULT,
    "simple-p2p --delay=50ms --bandwidth=2Mbps --queue=25",
)
_WAYS = {"to server": ("client", "server"), "to client": ("server", "client")}
_ADDRESSES = {"client": network.CLIENT, "server": network.SERVER}
#: Octets of IP and UDP, of a datagram that measures a delay, and of one that measures a rate.
_HEADERS, _SMALL, _LARGE = 28, 100, 1200
_PROBES, _FLOOD_S = 400, 4.0


class Row(NamedTuple):
    """One figure."""

    network: str
    #: `one-way delay to server`.
    what: str
    #: In seconds, or bit/s.
    asked: float
    found: float
    #: Of the network's times, as `airloom emulate` says it.
    verdict: str

    @property
    def error(self) -> float:
        """Relative."""
        return self.found / self.asked - 1

    @property
    def met(self) -> bool:
        """Is it close enough, and can it be believed?"""
        return abs(self.error) <= BAR and self.verdict != "invalid"


class _Found(NamedTuple):
    """What programs found in one run, by direction: seconds, and bit/s."""

    delays: dict[str, float]
    rates: dict[str, float]
    verdict: str | None


def chosen(pattern: str) -> list[str]:
    """The networks whose words match `pattern` (`*` for any text)."""
    found = [each for each in NETWORKS if fnmatch(each, pattern)]
    if not found:
        raise UsageError(f"no network matches {pattern!r}; there are: {'; '.join(NETWORKS)}")
    return found


def compare(networks: list[str], progress: Progress = lambda _done, _share: None) -> list[Row]:
    """Four figures for each network. A run that was late is made again, as comparisons of both clocks do."""
    rows = []
    progress(0, 0.0)
    for number, text in enumerate(networks):
        found, _ = pairs.believed(functools.partial(measure, text))
        rows += judged(text, found)
        progress(number + 1, 0.0)
    return rows


def judged(text: str, found: _Found) -> list[Row]:
    """Beside what the words ask for: a datagram is there when its last bit is."""
    link = words.parse(text).link
    rate, delay = int(link["rate"].removesuffix("bit/s")), int(link["delay"].removesuffix("ns")) / 1e9
    verdict = found.verdict or ""
    whole = delay + (_HEADERS + _SMALL) * 8 / rate
    rows = [Row(text, f"one-way delay {way}", whole, found.delays[way], verdict) for way in _WAYS]
    return rows + [Row(text, f"rate {way}", rate, found.rates[way], verdict) for way in _WAYS]


def measure(text: str, probes: int = _PROBES, flood_s: float = _FLOOD_S) -> _Found:
    """What programs at both ends of the network find, one direction after the other."""
    meant = words.parse(text)
    table = network.scenario(meant, 1)
    rate = int(meant.link["rate"].removesuffix("bit/s"))
    scenario = parse("\n".join(f"{key} = {toml_value(value)}" for key, value in table.items()), f"{meant.name}.toml")
    delays, rates = {}, {}
    with TemporaryDirectory(prefix="airloom-") as temporary:
        behind = lab(scenario, enter=False, out=Path(temporary) / "run")
        with behind as here:
            for way, (source, sink) in _WAYS.items():
                said = _send(here, source, sink, [str(probes), str(flood_s), str(rate)])
                delays[way] = statistics.median(said["delays_ns"]) / 1e9
                rates[way] = said["octets"] * 8e9 / said["ns"]
        return _Found(delays, rates, behind.results.verdict if behind.results else None)


def _send(here: Lab, source: str, sink: str, what: list[str]) -> dict[str, Any]:
    words = interpreter.python("-I", "-S", "-c", pairs.FIRST + _STAMPED + _RECEIVER)
    with here.popen(words, host=sink, stdout=subprocess.PIPE, text=True) as receiving:
        try:
            assert receiving.stdout
            if receiving.stdout.readline() != "ready\n":
                raise RunError(f"{sink}: the program that measures did not begin")
            numbers = [str(_SMALL), str(_LARGE), *what]
            sending = interpreter.python("-I", "-S", "-c", pairs.FIRST + _STAMPED + _SENDER, _ADDRESSES[sink], *numbers)
            done = here.run(sending, host=source, capture_output=True, text=True)
            if done.returncode:
                raise RunError(f"{source}: the program that measures failed: {done.stderr.strip()[-200:]}")
            said: dict[str, Any] = json.loads(receiving.stdout.readline())
            own_ns = int(done.stdout)
            return {**said, "delays_ns": [delay - own_ns for delay in said["delays_ns"]]}
        finally:
            receiving.kill()


# The kernel's stamp on what a socket receives, in nanoseconds, beside the octets.
_STAMPED = """
import socket, struct
def stamped(own):
    own.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
def received(own):
    data, about, _, _ = own.recvmsg(2048, 64)
    seconds, rest = struct.unpack("qq", about[0][2])
    return data, seconds * 10**9 + rest
"""

_SENDER = """
import contextlib, statistics, sys, time
to, small, large, probes, flood_s, rate = sys.argv[1], *map(float, sys.argv[2:])
def send(by):
    # Moments that have nothing to do with anybody's ticks.
    time.sleep(0.0101)
    by.send(b"d" + time.time_ns().to_bytes(8, "big") + bytes(int(small) - 9))
own, near = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
own.connect((to, 7))
stamped(near)
near.bind(("127.0.0.1", 0))
near.connect(near.getsockname())
delays = []
for _ in range(int(probes)):
    # By turns: both meet the same machine.
    send(near)
    data, at = received(near)
    delays.append(at - int.from_bytes(data[1:9], "big"))
    send(own)
print(round(statistics.median(delays)))
time.sleep(0.3)
# A fifth more than the link takes.
each_s = (large + 28) * 8 / rate / 1.2
due = begun = time.monotonic()
while due - begun < flood_s:
    own.send(b"r" + bytes(int(large) - 1))
    due += each_s
    time.sleep(max(0, due - time.monotonic()))
time.sleep(1)
for _ in range(3):
    # Whoever has heard it is gone.
    with contextlib.suppress(ConnectionRefusedError):
        own.send(b"e")
    time.sleep(0.1)
"""

_RECEIVER = """
import json
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
stamped(own)
own.bind(("", 7))
own.settimeout(60)
print("ready", flush=True)
delays, octets, first, last = [], 0, None, 0
while True:
    data, at = received(own)
    if data[:1] == b"d":
        delays.append(at - int.from_bytes(data[1:9], "big"))
    elif data[:1] == b"r":
        if first is None:
            first = at
        else:
            octets += len(data) + 28
        last = at
    else:
        break
print(json.dumps({"delays_ns": delays, "octets": octets, "ns": last - first}), flush=True)
"""
