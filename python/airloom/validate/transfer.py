"""One transfer over TCP in both clocks: between this machine's kernel and itself in real time, and simulated.

The scenario has two hosts, `source` and `sink`, that are real in real time and run `bulk` in virtual time: the same
octets over the same link from the same settings of TCP. In real time two programs of a few lines take the part of
`bulk`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import polars as pl

from airloom import _core
from airloom.errors import RunError
from airloom.reference import addresses
from airloom.run import measure
from airloom.scenario import Scenario, parse
from airloom.validate.pairs import expect, python, recorded

# Transfers go on in several threads, and polars looks for numpy when it first meets an array, in a way that two threads
# must not do at once: it looks now.
pl.Series(np.zeros(1))

#: Octets that `bulk` sends before the data; they are part of the transfer.
_REQUEST = 16

_PORT = 5001

#: Takes so many octets of one connection; ends without a word if nobody is left to be told that it is ready.
_SINK = """\
import signal, socket
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
with socket.create_server(("", int(sys.argv[1]))) as server:
    print("ready", flush=True)
    connection, _ = server.accept()
left = int(sys.argv[2])
while left > 0:
    taken = connection.recv(1 << 20)
    if not taken:
        sys.exit(f"{left} octets are missing")
    left -= len(taken)
"""

#: Sends a request and the data behind it in one go, as `bulk` does, and stays until everything has arrived.
_SOURCE = """\
import socket
request, data = bytes(int(sys.argv[3])), bytes(int(sys.argv[4]))
with socket.socket() as connection:
    connection.connect((sys.argv[1], int(sys.argv[2])))
    connection.sendall(request + data)
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)
"""


@dataclass(frozen=True)
class Transfer:
    """One of them."""

    #: From when the SYN came to the link until the last octet of the data left it, in the model's time.
    seconds: float
    #: When the SYN came to the link, in the model's time.
    began_ns: int
    #: Segments with data that came to the link again.
    resent: int
    packets: pl.DataFrame
    #: What the same took when it was made once more in real time, if it was.
    again_s: float | None = field(default=None, kw_only=True)
    #: Of real time: `valid`, `suspect` or `invalid`, and why.
    verdict: str | None = None
    reasons: tuple[str, ...] = ()
    #: Of real time, where a simulated one stands beside it: positions at which both had to decide about a loss, and
    #: those at which they decided differently.
    decided: tuple[int, int] = (0, 0)


def to_json(measured: Transfer) -> dict[str, Any]:
    """A transfer as plain data, without its packets."""
    return {f.name: getattr(measured, f.name) for f in fields(measured) if f.name != "packets"}


def from_json(said: Mapping[str, Any]) -> Transfer:
    """The transfer that `to_json` turned into that."""
    lists = {"reasons": tuple(said["reasons"]), "decided": tuple(said["decided"])}
    return Transfer(packets=pl.DataFrame(), **{**said, **lists})


def scenario(
    title: str,
    link: Mapping[str, Any],
    size: int,
    tcp: Mapping[str, Any],
    *,
    seed: int = 1,
    begin_ns: int = 0,
    downlink: bool = False,
    timeline: Sequence[Mapping[str, Any]] = (),
    reaction: str = "0s",
) -> Scenario:
    """`size` octets from `source` over `link` to `sink`; the source is the near end unless the data goes down.

    `reaction`: how long after octets have arrived the simulated sink reads them; a program takes what it takes.
    """
    bulk = {
        "mode": "put",
        "server": "sink",
        "port": _PORT,
        "size": f"{size - _REQUEST}B",
        "request": f"{_REQUEST}B",
        "start": f"{begin_ns}ns",
    }
    ends = ["source", "sink"]
    near, far = reversed(ends) if downlink else ends
    whole = {
        "title": title,
        "path": [near, "link", far],
        "hosts": {
            "source": {"app": {"bulk": bulk}, "transport": {"tcp": dict(tcp)}, "real": True},
            "sink": {
                "app": {"bulk-server": {"port": _PORT, "reaction": reaction}},
                "transport": {"tcp": dict(tcp)},
                "real": True,
            },
        },
        "links": {"link": dict(link)},
        "timeline": [dict(event) for event in timeline],
        "run": {"seed": seed, "record": ["packets"]},
    }
    return parse(json.dumps(whole), title)


def simulated(scenario: Scenario) -> Transfer:
    """The transfer in virtual time."""
    _, rows = measure(scenario)
    return _transfer(scenario, rows["packets"])


def real(scenario: Scenario, *, request: bool = True, patience_s: float = 600) -> Transfer:
    """The transfer in real time, by this machine's kernel; `RunError` if it is not over after `patience_s`.

    The source sends the request that `bulk` sends, unless told otherwise, and the data behind it.
    """
    size = _octets(scenario)
    first = _REQUEST if request else 0
    address = addresses(scenario.understood, "sink")[0]

    def work(lab: _core.Lab) -> None:
        with python(lab, "sink", _SINK, str(_PORT), str(size)) as sink:
            expect(sink, "ready", scenario.title)
            with python(lab, "source", _SOURCE, address, str(_PORT), str(first), str(size - first)) as source:
                try:
                    sink.wait(patience_s)
                    source.wait(patience_s)
                except subprocess.TimeoutExpired:
                    raise RunError(f"{scenario.title}: not done after {patience_s:g} s") from None
        if sink.returncode or source.returncode:
            raise RunError(f"{scenario.title}: the transfer did not complete")

    packets, results = recorded(scenario, work)
    return _transfer(scenario, packets, results.verdict, tuple(results.verdict_reasons))


#: No segment without data is longer.
_LONGEST_HEADERS = 120


def _transfer(
    scenario: Scenario, packets: pl.DataFrame, verdict: str | None = None, reasons: tuple[str, ...] = ()
) -> Transfer:
    def rows(host: str, event: str) -> pl.DataFrame:
        here = pl.col("point").cast(pl.String) == f"{host}.link.ip"
        return packets.filter(here & (pl.col("event").cast(pl.String) == event))

    began = rows("source", "tx")["t_ns"].min()
    has_data = pl.col("len") > _LONGEST_HEADERS
    sent = rows("source", "tx").filter(has_data)["seq"]
    # When each segment was there for the first time: the last of these completes the stream.
    ended = rows("sink", "rx").filter(has_data).group_by("seq").agg(pl.col("t_ns").min())["t_ns"].max()
    if not isinstance(began, int) or not isinstance(ended, int):
        raise RunError(f"{scenario.title}: nothing was transferred")
    return Transfer((ended - began) / 1e9, began, len(sent) - sent.n_unique(), packets, verdict, reasons)


def _octets(scenario: Scenario) -> int:
    (app,) = (a for a in scenario.understood["hosts"]["source"]["app"] if "bulk" in a)
    return int(app["bulk"]["size"].removesuffix("B")) + _REQUEST


def decisions(packets: pl.DataFrame) -> dict[tuple[str, int, int], bool]:
    """What the link decided: whether the packet or block at a position is lost.

    A position is a point, and on a wire the number of the packet among those that the queue took; on a radio channel
    the time of the transmission interval and the block's place in it.
    """
    found: dict[tuple[str, int, int], bool] = {}
    columns = packets.select(
        "t_ns", pl.col("point").cast(pl.String), pl.col("event").cast(pl.String), pl.col("reason").cast(pl.String)
    )
    places: dict[tuple[str, int], int] = {}
    for time, point, event, reason in columns.iter_rows():
        if point.endswith(".ip") or not point.endswith(".tx") or ".ppp." in point:
            # Frames of PPP are lost with the circuit that they are on, at whatever time they are.
            continue
        if reason == "queue full":
            continue
        if ".queue." in point:
            number = places[point, 0] = places.get((point, 0), -1) + 1
            found[point, number, 0] = event == "drop"
        elif event == "enq":
            # A datagram enters the link's buffer.
            continue
        elif event == "drop":
            # The row of a lost block follows the block's own; what goes down with its circuit follows none.
            if (point, time) in places:
                found[point, time, places[point, time]] = True
        else:
            place = places[point, time] = places.get((point, time), -1) + 1
            found[point, time, place] = False
    return found
