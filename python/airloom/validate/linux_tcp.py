"""Our TCP against records of real Linux transfers over the same link with the same lost packets.

A folder holds one JSON file per case: what was set, and for each of several runs the seed of the losses and what
was measured. Our side is an ordinary scenario: `bulk` puts as many octets over a `wireline` with the rate, delay,
queue and losses of the record.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from airloom.errors import RunError, UsageError
from airloom.json_file import read_json
from airloom.run import measure
from airloom.scenario import Scenario, parse
from airloom.validate.kept import Kept
from airloom.validate.tasks import Progress, Task, carry_out

#: Octets that `bulk` sends before the data; they are part of the transfer.
_REQUEST = 16


#: Bars, as shares of theirs. Nothing lost, nothing dropped: completion.
CLEAN = 0.005
#: The queue dropped packets: completion. Where the runs of Linux end in two ways, ours has to lie between them.
DROPS = 0.03
#: From so much spread on, the runs of a case without random loss count as two outcomes.
TWO_OUTCOMES = 0.01
#: Random loss, seed by seed: the median of the errors, and the error that so many of the seeds keep.
LOSS_MEDIAN = 0.03
LOSS_SEED = 0.10
LOSS_SHARE = 0.9
#: Packets sent again: this share, or so many packets.
RESENT = 0.10
RESENT_PACKETS = 2
#: Congestion window of Reno: its largest value, and the area between the curves as a share of theirs.
WINDOW_MAXIMUM = 0.05
WINDOW_AREA = 0.10

#: Columns of `cwnd_trace`, and the state that a timeout begins.
_STATE, _RTO, _LOSS = 3, 5, 4
#: From this timeout on a timer expires at a place of the wheel's third level (504 ticks of 4 ms) or of a coarser one,
#: which is a place of the third level, too; and how far those lie apart (64 ticks).
_COARSE_US, _PLACE_US = 504 * 4000, 64 * 4000


@dataclass(frozen=True)
class Bar:
    """One thing that was compared."""

    what: str
    theirs: float
    ours: float
    #: How far ours is off, and how far it may be: shares, or packets.
    error: float
    bar: float
    met: bool


@dataclass(frozen=True)
class Verdict:
    """One case: medians of theirs and ours, the bars, and the errors seed by seed."""

    case: str
    #: Median seconds from the SYN until the last octet was read.
    theirs_s: float
    ours_s: float
    #: Median segments sent again.
    theirs_resent: float
    ours_resent: float
    bars: list[Bar]
    #: Relative error of the completion time, by seed.
    errors: list[float]

    @property
    def error(self) -> float:
        """Relative error of the median completion time."""
        return self.ours_s / self.theirs_s - 1

    @property
    def met(self) -> bool:
        """Were all bars met?"""
        return all(b.met for b in self.bars)


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


#: What is looked at in the parts of a record.
_OF_CASE = itemgetter("id", "profile", "cc", "sack", "iw", "queue", "rate", "rtt_ms", "loss", "bytes")
_OF_RUN = itemgetter("seed", "completion_s", "retransmitted_packets", "queue_dropped", "mss")
_OF_MEDIAN_RUN = itemgetter("seed", "cwnd_trace", "data_trace")


def records(folder: Path) -> list[Record]:
    """The cases in a folder, by name."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder")
    found = []
    paths: dict[str, Path] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            read = read_json(path)
            record = Record(read["case"], read["runs"], read["median_run"])
            _OF_CASE(record.case)
            _OF_MEDIAN_RUN(record.median_run)
            for run in record.runs:
                _OF_RUN(run)
        except (KeyError, TypeError) as error:
            raise UsageError(f"{path} is not a record of a transfer: {type(error).__name__} {error}") from None
        if not record.runs:
            raise UsageError(f"{path} is not a record of a transfer: it has no runs")
        name = str(record.case["id"])
        if (other := paths.setdefault(name, path)) != path:
            raise UsageError(f"{other} and {path} are both records of {name}")
        found.append(record)
    if not found:
        raise UsageError(f"{folder}: no *.json in it")
    return found


def compare(
    found: Sequence[Record],
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    kept: Kept[Verdict] | None = None,
    progress: Progress = lambda _done, _share: None,
) -> list[Verdict]:
    """A verdict per case; `jobs` cases are simulated at a time, and what is `kept` is not made again."""
    tasks = [Task(str(r.case["id"]), float(r.case["bytes"]) * len(r.runs), partial(_compare, r)) for r in found]
    return carry_out(tasks, jobs=jobs, executor=executor, kept=kept, progress=progress)


def from_json(said: Mapping[str, Any]) -> Verdict:
    """The verdict that `dataclasses.asdict` turned into that."""
    return Verdict(**{**said, "bars": [Bar(**bar) for bar in said["bars"]]})


def _compare(record: Record) -> Verdict:
    name = str(record.case["id"])
    loss = record.case["loss"] > 0
    theirs = [float(r["completion_s"]) for r in record.runs]
    # Where nothing is lost at random all runs are one and the same to us.
    seeds = [r["seed"] for r in record.runs] if loss else [None]
    completions: list[float] = []
    resents: list[float] = []
    windows: dict[int | None, pl.DataFrame] = {}
    # Known of the run that was traced only.
    positions = {record.median_run["seed"] if loss else None: wheel_position(record.median_run)}
    for seed in seeds:
        summary, tables = measure(scenario(record.case, seed, positions.get(seed)))
        if "last_put_s" not in summary:
            raise RunError(f"{name}: the transfer did not complete")
        completions.append(summary["last_put_s"])
        resents.append(summary["resent"])
        windows[seed] = tables["congestion"]

    median, ours = statistics.median(theirs), statistics.median(completions)
    if loss:
        errors = [o / t - 1 for o, t in zip(completions, theirs, strict=True)]
        bars = _bars_by_seed(theirs, completions, errors)
    else:
        errors = [ours / median - 1]
        bars = [_completion(record, theirs, median, ours)]
    resent, ours_resent = statistics.median(r["retransmitted_packets"] for r in record.runs), statistics.median(resents)
    allowed = max(RESENT * resent, RESENT_PACKETS)
    off = abs(ours_resent - resent)
    bars.append(Bar("sent again", resent, ours_resent, off, allowed, off <= allowed))
    if record.case["cc"] == "reno":
        bars += window_bars(record, windows[record.median_run["seed"] if loss else None])
    return Verdict(name, median, ours, resent, ours_resent, bars, errors)


def _completion(record: Record, theirs: list[float], median: float, ours: float) -> Bar:
    if record.is_clean:
        error = abs(ours / median - 1)
        return Bar("completion, clean", median, ours, error, CLEAN, error <= CLEAN)
    if (max(theirs) - min(theirs)) / median > TWO_OUTCOMES:
        # How far outside of what was seen; the clean bar is what a run and its repetition may differ by.
        error = max(min(theirs) - ours, ours - max(theirs), 0.0) / median
        return Bar("completion, two outcomes", median, ours, error, CLEAN, error <= CLEAN)
    error = abs(ours / median - 1)
    return Bar("completion, drops", median, ours, error, DROPS, error <= DROPS)


def _bars_by_seed(theirs: list[float], ours: list[float], errors: list[float]) -> list[Bar]:
    off = [abs(e) for e in errors]
    middle = statistics.median(off)
    beyond = sum(e > LOSS_SEED for e in off) / len(off)
    medians = statistics.median(theirs), statistics.median(ours)
    return [
        Bar("completion, median error", *medians, middle, LOSS_MEDIAN, middle <= LOSS_MEDIAN),
        Bar("seeds beyond 10 %", 0.0, beyond, beyond, 1 - LOSS_SHARE, beyond <= 1 - LOSS_SHARE + 1e-9),
    ]


def window_bars(record: Record, congestion: pl.DataFrame) -> list[Bar]:
    """The congestion window of the recorded run against ours, as it was sampled."""
    trace = np.array([point[:2] for point in record.median_run["cwnd_trace"]], dtype=np.float64)
    mss = float(record.runs[0]["mss"])
    rows = congestion.filter(pl.col("host").cast(pl.String) == "sender").sort("t_ns", maintain_order=True)
    times, cwnd = rows["t_ns"].to_numpy() / 1e3, rows["cwnd"].to_numpy() / mss
    # What held at the moment of each sample.
    index = np.maximum(np.searchsorted(times, trace[:, 0], side="right") - 1, 0)
    theirs, ours = trace[:, 1], cwnd[index]
    spans = np.diff(trace[:, 0])
    # Between samples theirs may have been larger too: nobody looked.
    largest = float(theirs.max()), float(ours.max())
    error = abs(largest[1] / largest[0] - 1)
    area = float(np.sum(theirs[:-1] * spans)), float(np.sum(ours[:-1] * spans))
    between = float(np.sum(np.abs(theirs - ours)[:-1] * spans)) / area[0]
    seconds = 1e-6
    return [
        Bar("largest window", *largest, error, WINDOW_MAXIMUM, error <= WINDOW_MAXIMUM),
        Bar("between windows", area[0] * seconds, area[1] * seconds, between, WINDOW_AREA, between <= WINDOW_AREA),
    ]


def wheel_position(run: dict[str, Any]) -> float | None:
    """How the timer wheel of the recorded machine stood, in seconds; `None` where the traced run does not show it.

    Linux lets timers of 2 s and more expire every 256 ms only, at moments that depend on when the machine was started,
    and now and then that decides between two courses. So it belongs to what was given, like the packets that were
    lost: the first such timeout in the trace tells it. A run without one says nothing of it.
    """
    repeated = []
    end = 0
    for at, start, length, *_ in run["data_trace"]:
        if start < end:
            repeated.append(at)
        end = max(end, start + length)
    for before, after in itertools.pairwise(run["cwnd_trace"]):
        timeout = after[_STATE] == _LOSS != before[_STATE] and before[_RTO] >= _COARSE_US
        at = next((at for at in repeated if before[0] < at <= after[0]), None)
        if timeout and at is not None:
            return float(_PLACE_US - at % _PLACE_US) / 1e6
    return None


def transport(case: dict[str, Any]) -> dict[str, Any]:
    """The settings of TCP with which a case was recorded."""
    controllers = {"reno": "newreno"}  # Linux calls NewReno reno
    return {
        "profile": "linux-classic" if case["profile"] == "classic" else "linux",
        "congestion": controllers.get(case["cc"], case["cc"]),
        "hystart": "linux" if case["cc"] == "cubic" else "off",
        "sack": bool(case["sack"]),
        "initial_window": int(case["iw"]),
        # No recorded run was limited by the receive window or by buffers.
        "receive_buffer": "4MiB",
        "initial_receive_window": "2MiB",
        "send_buffer": "4MiB",
    }


def link(case: dict[str, Any]) -> dict[str, Any]:
    """The link of a case, but for its random losses."""
    return {
        "bearer": "wireline",
        "rate": f"{case['rate']}bit/s",
        "delay": f"{case['rtt_ms'] * 500}us",
        "queue": f"{case['queue']} packets",
    }


def scenario(case: dict[str, Any], seed: int | None, position: float | None = None) -> Scenario:
    """The scenario that repeats a case; `seed` is that of its random losses, `position` that of the timer wheel."""
    wire = link(case)
    if seed is not None:
        wire["loss"] = {"uplink": {"loss": case["loss"], "seed": seed, "of": "payload"}, "downlink": 0}
    settings = transport(case)
    if position is not None:
        settings["timer_wheel_position"] = f"{round(position * 1e6)}us"
    tcp = {"tcp": settings}
    whole = {
        "title": f"Linux transfer {case['id']}",
        "path": ["sender", "link", "receiver"],
        "hosts": {
            "sender": {
                "app": {"bulk": {"mode": "put", "size": f"{case['bytes'] - _REQUEST}B", "request": f"{_REQUEST}B"}},
                "transport": tcp,
            },
            "receiver": {"app": "bulk-server", "transport": tcp},
        },
        "links": {"link": wire},
        "run": {"record": ["congestion"]},
    }
    return parse(json.dumps(whole), str(case["id"]))
