"""HTTP/3 in both clocks: `airloom serve h3` and `airloom h3 get` in real time, and the same library simulated.

Client and server are two hosts with a link between them. Their settings of QUIC are those of the daemon, which are the
library's: CUBIC with the standard's initial window, paced from the first packet on, acknowledgements after every second
packet or 25 ms, datagrams of 1200 octets at first and of 1452 where the path takes them. Certificates have the same
size, and so does the signature. What is compared is the time from the client's first packet to the last packet with
data.
"""

from __future__ import annotations

import base64
import subprocess
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from airloom import _core
from airloom.errors import RunError
from airloom.programs import needed
from airloom.reference import addresses
from airloom.run import measure
from airloom.scenario import Scenario
from airloom.validate import pairs
from airloom.validate.both_clocks import Cell
from airloom.validate.pairs import Fetch

#: The median in real time against the simulated one: links that lose nothing, and those that do.
CLEAN = 0.01
LOSSY = 0.03

_WIRE = {"bearer": "wireline", "rate": "2Mbit/s", "delay": "50ms"}
# As for WAP, whatever arrives does so behind the grid of the transmission intervals, here by 6 ms: with 3 the second
# datagram of the server's flight, which its pacer sends 26.6 ms after the first, would be 0.4 ms in front of an
# interval, and the 1.4 ms that a real server needs for its signature would decide.
_UMTS = {"bearer": "umts-dch", "rate": {"downlink": "384kbit/s", "uplink": "64kbit/s"}, "radio_delay": "46ms"}
_SIZES = {"200kB": 200_000, "1MB": 1_000_000}

#: The library probes for datagrams of up to 1452 octets: 1480 with IP and UDP.
_MTU = 1480
#: Octets of a Certificate message (RFC 8446, 4.4.2) besides its one certificate.
_AROUND = 13
#: The library's clients choose 20 octets as the first name of a connection, the model's 8: a server's parameters
#: repeat it (RFC 9000, 18.2, original_destination_connection_id).
_LONGER_NAME = 12
_POINT = "mobile.link.ip"
#: No packet of an acknowledgement alone is longer.
_LONGEST_ACK = 100


def _cells() -> list[Cell]:
    cells = []
    for size, octets in _SIZES.items():
        cells.append(Cell(f"2M-100ms/{size}", _WIRE, octets, CLEAN))
        cells.append(Cell(f"2M-100ms-loss/{size}", _WIRE | {"loss": 0.01}, octets, LOSSY))
        cells.append(Cell(f"umts-dch/{size}", _UMTS, octets, CLEAN))
        blocks = {"per": "fec-frame", "downlink": 0.05, "uplink": 0.05}
        cells.append(Cell(f"umts-dch-loss/{size}", _UMTS | {"loss": blocks}, octets, LOSSY))
    return cells


#: The table, in its order.
CELLS = _cells()

Verdict = pairs.Verdict[Cell, Fetch]
#: The cells whose names match a pattern (`*` for any text).
chosen = partial(pairs.chosen, CELLS)


def scenario(cell: Cell, seed: int, *, begin_ns: int = 0, certificates: int = 1_500) -> Scenario:
    """The network of a cell; both hosts are real in real time."""
    quic = {"quic": {"controller": "cubic", "pacing": "always", "certificates": f"{certificates}B"}}
    client = {"http": "3", "connections": 1, "start": f"{begin_ns}ns", "reaction": "0s", "objects": [f"/{cell.size}"]}
    hosts = {
        "mobile": {"app": {"http-client": client}, "transport": quic, "real": True},
        "origin": {"app": {"http-server": {"http": "3"}}, "transport": quic, "real": True},
    }
    links = {"link": {**cell.link, "mtu": _MTU}}
    return pairs.scenario(f"{cell.name}, seed {seed}", ["mobile", "link", "origin"], hosts, links, seed, _POINT)


def _pair(cell: Cell, seed: int) -> tuple[Fetch, Fetch, int]:
    with TemporaryDirectory(prefix="airloom-") as place:
        folder = Path(place)
        certificates = make_certificate(folder)
        planned = scenario(cell, seed)
        found, repeated = pairs.believed(lambda: in_real_time(planned, cell.size, folder))
    return (
        found,
        simulated(scenario(cell, seed, begin_ns=found.began_ns, certificates=certificates + _LONGER_NAME)),
        repeated,
    )


#: A verdict for each cell; see `pairs.fill`.
compare = partial(pairs.compare, pair=_pair)


def simulated(scenario: Scenario) -> Fetch:
    """The fetch in virtual time."""
    _, rows = measure(scenario)
    return _fetch(scenario, rows["packets"])


def make_certificate(folder: Path) -> int:
    """`cert.pem` and `key.pem` with a key of 2048 bits, whose signatures the model has; the message's octets."""
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "10", "-subj", "/CN=origin"]
    # The model has no chain as small as one certificate with nothing in it.
    words += ["-keyout", "key.pem", "-out", "cert.pem", "-addext", f"nsComment={'x' * 500}"]
    done = subprocess.run([needed("openssl"), *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"openssl req: {done.stderr.strip()}")
    lines = (folder / "cert.pem").read_text(encoding="ascii").splitlines()
    return len(base64.b64decode("".join(lines[1:-1]))) + _AROUND


def in_real_time(scenario: Scenario, size: int, keys: Path, patience_s: float = 300) -> Fetch:
    """The fetch by `h3 get` from `serve h3`, with the certificate in `keys`; `RunError` if it is not over in time."""
    site, got = keys / "site", keys / "got"
    site.mkdir(exist_ok=True)
    (site / str(size)).write_bytes(bytes(size))
    at = f"{addresses(scenario.understood, 'origin')[0]}:443"
    shown = ["--cert", str(keys / "cert.pem"), "--key", str(keys / "key.pem")]

    def work(lab: _core.Lab) -> None:
        everybody = ["--allow-client", "0.0.0.0/0"]
        with pairs.airloom(lab, "origin", "serve", "h3", str(site), "--listen", at, *shown, *everybody) as server:
            try:
                pairs.expect(server, "listening", scenario.title)
                words = ["h3", "get", f"https://{at}/{size}", "-o", str(got), "--insecure"]
                pairs.carry_through(lab, "mobile", words, patience_s, scenario.title)
                if got.stat().st_size != size:
                    raise RunError(f"{scenario.title}: not all octets have come")
            finally:
                server.terminate()

    packets, results = pairs.recorded(scenario, work)
    return _fetch(scenario, packets, results.verdict)


def _fetch(scenario: Scenario, packets: pl.DataFrame, verdict: str | None = None) -> Fetch:
    seen = pairs.at(packets, _POINT)
    began = seen.filter(pl.col("event") == "tx")["t_ns"].min()
    data = seen.filter((pl.col("event") == "rx") & (pl.col("len") > _LONGEST_ACK))["t_ns"]
    last = data.max()
    if not isinstance(began, int) or not isinstance(last, int):
        raise RunError(f"{scenario.title}: nothing was fetched")
    return Fetch((last - began) / 1e9, began, len(data), verdict)
