"""Our TCP against records of real Linux transfers over the same link with the same lost packets.

A folder holds one JSON file per case: what was set, and for each of several runs the seed of the losses and what
was measured. Our side is an ordinary scenario: `bulk` puts as many octets over a `wireline` with the rate, delay,
queue and losses of the record.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from airloom.errors import RunError, UsageError
from airloom.run import measure
from airloom.scenario import Scenario, parse

#: Cases without loss and queue drops: acknowledged octets against time, this far, at most this wrong.
ROUND_TRIPS = 10
TOLERANCE = 0.01

#: Octets that `bulk` sends before the data; they are part of the transfer.
_REQUEST = 16


@dataclass(frozen=True)
class Verdict:
    """One case: theirs, ours, error."""

    case: str
    #: Median seconds from the SYN until the last octet was read.
    theirs_s: float
    #: The same of our runs; `None` if the case was not run.
    ours_s: float | None = None
    #: Median segments sent again.
    theirs_resent: float | None = None
    ours_resent: float | None = None
    #: Largest relative error of the time at which so many octets were acknowledged, in the first round trips.
    start_error: float | None = None
    #: Did it meet its bar? `None`: it has none.
    met: bool | None = None
    #: Why it was not run, or what there is to say.
    note: str = ""

    @property
    def error(self) -> float | None:
        """Relative error of the completion time."""
        return None if self.ours_s is None else self.ours_s / self.theirs_s - 1


@dataclass(frozen=True)
class Record:
    """One file of the folder."""

    case: dict[str, Any]
    runs: list[dict[str, Any]]
    median_run: dict[str, Any]

    @property
    def is_clean(self) -> bool:
        """Was nothing lost and nothing dropped by the queue, in any run?"""
        return self.case["loss"] == 0 and not any(r["queue_dropped"] or r["retransmitted_packets"] for r in self.runs)

    @property
    def is_classic(self) -> bool:
        """Was it made without what came after 2000: timestamps, RACK, tail loss probe, F-RTO, D-SACK?"""
        return bool(self.case["profile"] == "classic")


def records(folder: Path) -> list[Record]:
    """The cases in a folder, by name."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder")
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            found.append(Record(read["case"], read["runs"], read["median_run"]))
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise UsageError(f"{path} is not a record of a transfer: {type(error).__name__} {error}") from None
    if not found:
        raise UsageError(f"{folder}: no *.json in it")
    return found


def compare(found: list[Record], progress: Callable[[int], None] = lambda _: None) -> list[Verdict]:
    """A verdict per case; `progress` is told how many are done."""
    verdicts = []
    for done, record in enumerate(found):
        progress(done)
        verdicts.append(_compare(record))
    return verdicts


def _compare(record: Record) -> Verdict:
    name = str(record.case["id"])
    theirs = statistics.median(r["completion_s"] for r in record.runs)
    resent = statistics.median(r["retransmitted_packets"] for r in record.runs)
    if not record.is_clean and not record.is_classic:
        return Verdict(name, theirs, theirs_resent=resent, note="not covered yet: loss recovery of the default profile")

    # Where nothing is lost at random all runs are one and the same to us.
    seeds = [r["seed"] for r in record.runs] if record.case["loss"] > 0 else [None]
    completions, resents = [], []
    packets = None
    for seed in seeds:
        summary, tables = measure(scenario(record.case, seed))
        try:
            completions.append(summary["last_put_s"])
        except KeyError:
            raise RunError(f"{name}: the transfer did not complete") from None
        resents.append(summary["resent"])
        packets = tables["packets"]
    ours = statistics.median(completions)
    if not record.is_clean:
        return Verdict(name, theirs, ours, resent, statistics.median(resents))

    assert packets is not None
    worst = start_error(record, packets)
    return Verdict(
        name,
        theirs,
        ours,
        resent,
        statistics.median(resents),
        start_error=worst,
        met=worst <= TOLERANCE,
        note=f"first {ROUND_TRIPS} round trips: error {worst:.2%}, bar {TOLERANCE:.0%}",
    )


def scenario(case: dict[str, Any], seed: int | None) -> Scenario:
    """The scenario that repeats a case; `seed` is that of its random losses."""
    controllers = {"reno": "newreno"}  # Linux calls NewReno reno
    transport = {
        "profile": "linux-classic" if case["profile"] == "classic" else "linux",
        # CUBIC differs from it only after the first loss, and such cases are not run.
        "congestion": controllers.get(case["cc"], "newreno"),
        "sack": bool(case["sack"]),
        "initial_window": int(case["iw"]),
        "receive_buffer": "4MiB",
        "send_buffer": "4MiB",
    }
    link: dict[str, Any] = {
        "bearer": "wireline",
        "rate": f"{case['rate']}bit/s",
        "delay": f"{case['rtt_ms'] * 500}us",
        "queue": f"{case['queue']} packets",
    }
    if seed is not None:
        link["loss"] = {"uplink": {"loss": case["loss"], "seed": seed, "of": "payload"}, "downlink": 0}
    whole = {
        "title": f"Linux transfer {case['id']}",
        "path": ["sender", "link", "receiver"],
        "hosts": {
            "sender": {
                "app": {"bulk": {"mode": "put", "size": f"{case['bytes'] - _REQUEST}B", "request": f"{_REQUEST}B"}},
                "transport": {"tcp": transport},
            },
            "receiver": {"app": "bulk-server", "transport": {"tcp": transport}},
        },
        "links": {"link": link},
        "run": {"record": ["packets"]},
    }
    return parse(json.dumps(whole), str(case["id"]))


def start_error(record: Record, packets: pl.DataFrame) -> float:
    """Largest relative error of the time at which the sender knew so many octets to be acknowledged."""
    trace = np.array(record.median_run["ack_trace"], dtype=np.float64)
    connect_us = float(record.median_run["data_trace"][0][0])
    until_us = connect_us + ROUND_TRIPS * record.case["rtt_ms"] * 1000
    trace = trace[trace[:, 0] <= until_us]
    times, acknowledged = _acknowledged(packets)
    # When had ours acknowledged as much?
    index = np.searchsorted(acknowledged, trace[:, 1])
    if len(trace) == 0 or index[-1] >= len(times):
        return float("inf")
    return float(np.max(np.abs(times[index] / trace[:, 0] - 1)))


def _acknowledged(packets: pl.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times (us) and octets acknowledged so far, as the sender sees them."""
    at_sender = packets.filter(pl.col("point").cast(pl.String) == "sender.link.ip")
    event = pl.col("event").cast(pl.String)
    syn = at_sender.filter(event == "tx")["seq"][0]
    acks = at_sender.filter((event == "rx") & pl.col("ack").is_not_null())
    octets = (acks["ack"].to_numpy().astype(np.int64) - int(syn) - 1) % 2**32
    times = acks["t_ns"].to_numpy() / 1e3
    grown = np.maximum.accumulate(octets)
    return times, grown.astype(np.float64)
