"""WAP in both clocks: the gateway's daemon and the client on the command line in real time, and both simulated.

Client and gateway are two hosts with a W-CDMA channel between them. In real time `airloom serve wap-gateway` and
`airloom wap get` run in their namespaces, and a server of a few lines beside the gateway; the simulation has the
same machines of WTP, WSP and gateway without sockets. What is compared is the response time: from when the request
comes to the link until the last packet of the reply has left it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from airloom import _core
from airloom.errors import RunError
from airloom.reference import addresses
from airloom.run import measure
from airloom.scenario import Scenario
from airloom.validate import pairs
from airloom.validate.pairs import Fetch

#: The median response time in real time against the simulated one.
BAR = 0.03
#: The server is on the gateway's loopback in real time and a host in virtual time, with as long a name.
_ORIGIN_REAL, _ORIGIN = "127.0.0.1", "webserver"

#: With IP and UDP: what an acknowledgement (31 octets) and a Disconnect (34) have at most, and a ConnectReply (50).
_LONGEST_SMALL, _LONGEST_CONNECT_REPLY = 40, 100

#: Answers as the simulated server does, field by field.
_SERVER = """\
import socket, threading
body = b"x" * int(sys.argv[1])
lines = ["HTTP/1.1 200 OK", "Content-Type: application/octet-stream", "Content-Length: %d" % len(body)]
answer = "\\r\\n".join([*lines, "Server: airloom", "", ""]).encode() + body
def serve(connection):
    asked = b""
    while octets := connection.recv(65536):
        asked += octets
        while b"\\r\\n\\r\\n" in asked:
            asked = asked.partition(b"\\r\\n\\r\\n")[2]
            connection.sendall(answer)
with socket.create_server(("127.0.0.1", 80)) as server:
    print("ready", flush=True)
    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""


@dataclass(frozen=True)
class Cell:
    """One row of the table: a size and the rate of the downlink."""

    name: str
    size: int
    downlink: str
    bar: float = BAR


CELLS = [
    Cell(f"{rate}k/{name}", size, f"{rate}kbit/s")
    for rate in (384, 64)
    for name, size in (("1kB", 1_000), ("10kB", 10_000), ("100kB", 100_000))
]
#: The cells whose names match a pattern (`*` for any text).
chosen = partial(pairs.chosen, CELLS)


Verdict = pairs.Verdict[Cell, Fetch]


def scenario(cell: Cell, seed: int, *, real: bool, begin_ns: int = 0) -> Scenario:
    """The network of a cell: in virtual time with the server as a host of its own."""
    # Whatever arrives does so 3 ms behind the grid of the transmission intervals: what is answered at once, in real
    # time a millisecond or two later than in the model, then finds the same interval at either end.
    radio = {
        "bearer": "umts-dch",
        "rate": {"downlink": cell.downlink, "uplink": "64kbit/s"},
        "loss": {"per": "fec-frame", "downlink": 0.05, "uplink": 0.05},
        "radio_delay": "43ms",
    }
    browser = {"start": f"{begin_ns}ns", "objects": [f"/{cell.size}"], "server": _ORIGIN}
    hosts: dict[str, Any] = {"mobile": {"app": {"wap-browser": browser}}, "gateway": {"proxy": "wap-gateway"}}
    path, links = ["mobile", "radio", "gateway"], {"radio": radio}
    if real:
        hosts = {"mobile": {"real": True}, "gateway": {"real": True}}
    else:
        path += ["lan", _ORIGIN]
        hosts[_ORIGIN] = {"app": "http-server"}
        links["lan"] = {"bearer": "wireline", "rate": "1Gbit/s", "delay": "10us", "queue": "1000 packets"}
    return pairs.scenario(f"{cell.name}, seed {seed}", path, hosts, links, seed, "mobile.radio.ip")


def _pair(cell: Cell, seed: int) -> tuple[Fetch, Fetch, int]:
    planned = scenario(cell, seed, real=True)
    found, repeated = pairs.believed(lambda: in_real_time(planned, cell.size))
    return found, simulated(scenario(cell, seed, real=False, begin_ns=found.began_ns)), repeated


#: A verdict for each cell; see `pairs.fill`.
compare = partial(pairs.compare, pair=_pair)


def simulated(scenario: Scenario) -> Fetch:
    """The fetch in virtual time."""
    _, rows = measure(scenario)
    return _fetch(scenario, rows["packets"])


def in_real_time(scenario: Scenario, size: int, patience_s: float = 300) -> Fetch:
    """The fetch by the client on the command line, from the daemon; `RunError` if it is not over in time."""
    gateway = f"{addresses(scenario.understood, 'gateway')[0]}:9201"

    def work(lab: _core.Lab) -> None:
        origin = pairs.python(lab, "gateway", _SERVER, str(size), quiet=True)
        # As in the simulated network, nobody is asked whether he is there: the question would be a packet more.
        daemon = ["serve", "wap-gateway", "--listen", gateway, "--connectionless", "off", "--no-log"]
        rules = ["--set", "amplification=0", "--allow-origin", _ORIGIN_REAL]
        server = pairs.airloom(lab, "gateway", *daemon, *rules)
        with origin, server:
            try:
                pairs.expect(origin, "ready", scenario.title)
                pairs.expect(server, "", scenario.title)
                words = ["wap", "get", f"http://{_ORIGIN_REAL}/{size}", "--gateway", gateway, "--raw"]
                words += ["-o", "/dev/null", "--time", f"{patience_s:g}"]
                pairs.carry_through(lab, "mobile", words, patience_s, scenario.title)
            finally:
                server.terminate()
                origin.kill()

    packets, results = pairs.recorded(scenario, work)
    return _fetch(scenario, packets, results.verdict)


def _fetch(scenario: Scenario, packets: pl.DataFrame, verdict: str | None = None) -> Fetch:
    seen = pairs.at(packets, "mobile.radio.ip")
    sent, came = seen.filter(pl.col("event") == "tx"), seen.filter(pl.col("event") == "rx")
    # Of the client's packets the Connect and the request are the only ones of some length. Either may be sent again,
    # the Connect until the ConnectReply has come.
    asked, answered = (way.filter(pl.col("len") > _LONGEST_SMALL)["t_ns"] for way in (sent, came))
    reply = came.filter(pl.col("len") > _LONGEST_CONNECT_REPLY)["t_ns"]
    if reply.is_empty() or (requested := asked.filter(asked >= answered.min())).is_empty():
        raise RunError(f"{scenario.title}: nothing was fetched")
    last = reply.max()
    assert isinstance(last, int)
    return Fetch((last - requested[0]) / 1e9, asked[0], len(reply), verdict)
