"""Further than the paper: other rivals, radio links, a shared bottleneck, and what our own choices do."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from airloom import analysis
from airloom.errors import UsageError
from airloom.study import Data
from airloom.study.data import NotMade

from .printed import TABLE_1
from .transfers import BASE, completion, total

Table = tuple[list[str], list[list[str]]]


def labels(data: Data, sweep: str, axis: str) -> list[str]:
    """The levels of an axis, in the order of the file."""
    return data.table(sweep, "runs").sort("point")[axis].unique(maintain_order=True).to_list()


def rivals(data: Data) -> Table:
    """Mean time and overhead behind the same element, of the transfers that their transport did not give up."""
    cases = labels(data, "rivals", "element")
    rows = []
    for rival in labels(data, "rivals", "rival"):
        cells = [rival]
        for case in cases:
            where = {"rival": rival, "element": case}
            times = data.table("rivals", "runs", **where).sort("seed")["completion_s"]
            over = (total(data, "rivals", **where)[times.is_not_null().to_numpy()].mean() - BASE) / 1000
            given_up = f"; {times.null_count()} of {len(times)} given up" if times.null_count() else ""
            cells.append(f"{times.drop_nulls().to_numpy().mean():.0f} s, {over:.0f} kB{given_up}")
        rows.append(cells)
    return ["", *cases], rows


def tried(data: Data) -> Table:
    """TCP's rows of Table 1 with one thing or two changed, in the search for the times of 33 and 50 %."""
    rows = [
        [
            "the paper",
            *(f"{row['tcp'].seconds:.0f} s, {row['tcp'].byte_over / 1000:.0f} kB" for row in TABLE_1.values()),
        ]
    ]
    for how in labels(data, "tried", "how"):
        cells = [how]
        for drop in TABLE_1:
            where = {"how": how, "drop": drop}
            over = (total(data, "tried", **where).mean() - BASE) / 1000
            cells.append(f"{completion(data, 'tried', **where).mean():.0f} s, {over:.0f} kB")
        rows.append(cells)
    return ["", *(f"{drop} %" for drop in TABLE_1)], rows


def locked(data: Data) -> Table:
    """TCP's times at 33 % by the length of phases, and what they are where the timer and the phases cannot lock."""
    rows = []
    lengths = data.table("locked", "runs")["phase"].unique().sort().to_list()
    for how in labels(data, "locked", "how"):
        times = [completion(data, "locked", how=how, phase=length) for length in lengths]
        rows.append([f"TCP, {how}", *(f"{of.mean():.0f}" for of in times)])
    for label, sweep, where in (("every third", "table-2-wwp", {"drop": 33}), ("a third, by chance", "locked-wwp", {})):
        times = [completion(data, sweep, phase=length, **where) for length in lengths]
        rows.append([f"WWP, {label}", *(f"{of.mean():.0f}" for of in times)])
    return ["33 %: s", *(f"{length} s" for length in lengths)], rows


def sensitivity(data: Data) -> Table:
    """WWP with one of our choices changed."""
    drops = (10, 33)
    rows = []
    for choice in labels(data, "sensitivity", "choice"):
        cells = [choice]
        for drop in drops:
            where = {"choice": choice, "drop": drop}
            over = (total(data, "sensitivity", **where).mean() - BASE) / 1000
            cells += [f"{completion(data, 'sensitivity', **where).mean():.1f}", f"{over:.1f}"]
        rows.append(cells)
    return ["", *(f"{drop} %: {what}" for drop in drops for what in ("s", "kB"))], rows


def radio(data: Data) -> Table:
    """1 MB to a mobile over radio links behind the element: time, and on UMTS what the radio spends in its states."""
    rows = []
    for bearer, model in (("umts-dch", "umts.captivate"), ("egprs", None)):
        for protocol in labels(data, "radio", "protocol"):
            runs = [run for _, run in data.runs("radio", bearer=bearer, protocol=protocol)]
            cells = [f"{np.mean([run.summary['completion_s'] for run in runs]):.0f}"]
            for tail in (False, True):
                if model is None:
                    cells.append("no model")
                    continue
                of_runs = [analysis.joules_per_megabyte(r, analysis.energy(r, model), tail=tail) for r in runs]
                cells.append(f"{np.mean(of_runs):.1f}")
            rows.append([bearer, protocol, *cells])
    return ["bearer, 33 %", "protocol", "time (s)", "J per MB", "with the tail"], rows


#: The real transfers' names, their simulated twins, and what the table calls them.
REAL = (("wwp", "real-model", "WWP"), ("reno", "real-reno-model", "Linux, Reno"))
#: Energy models of the real transfers: an interface that never sleeps, a telephone that is released.
REAL_MODELS = ("wlan.ns3", "lte.aro")
#: As measure_real.py has it.
REAL_LIMIT_S = 600.0


def real(data: Data) -> Table:
    """The same octets in real time by `airloom wwp` and by this machine's Reno, beside their simulated twins."""
    transfers = data.program("real")["transfers"]
    if not any(of["valid"] for of in transfers):
        raise NotMade("no transfer in real time was valid")
    if any(of["is_same"] is False for of in transfers):
        raise UsageError("octets arrived as others")
    rows = []
    for protocol, sweep, title in REAL:
        for drop in sorted({of["drop"] for of in transfers}):
            made = [of for of in transfers if (of["protocol"], of["drop"], of["valid"]) == (protocol, drop, True)]
            if not made:
                continue
            simulated = completion(data, sweep, drop=drop)
            done = [of for of in made if of["seconds"] is not None]
            within = simulated[simulated <= REAL_LIMIT_S]
            cells = [_span([of["seconds"] for of in done]), f"{len(done)} of {len(made)}"]
            cells += [_span(within), f"{len(within)} of {len(simulated)}"]
            cells.append(f"{np.mean([of['octets'] - BASE for of in done]) / 1000:.0f}" if done else "-")
            joules = [[of["joules_per_mb"][model] for of in done] for model in REAL_MODELS]
            cells += [f"{np.mean(of):.1f}" if done else "-" for of in joules]
            rows.append([title, f"{drop} %", *cells])
    limit = f"done in {REAL_LIMIT_S:.0f} s"
    heads = ["real (s)", limit, "simulated (s)", limit, "real, overhead with IP (kB)"]
    return ["", "drops", *heads, *(f"real, J per MB, {model}" for model in REAL_MODELS)], rows


def _span(seconds: Iterable[float]) -> str:
    of = np.asarray(list(seconds))
    if of.size == 0:
        return "none"
    return f"{of.mean():.1f} ({of.min():.1f} to {of.max():.1f})"


def shared(data: Data) -> Table:
    """Two flows on one bottleneck for a minute: what each gets, and Jain's index."""
    rows = []
    for pair in labels(data, "shared", "pair"):
        flows = data.table("shared", "flows", pair=pair)
        found = []
        for _, of_seed in sorted(flows.group_by("seed"), key=lambda group: group[0]):
            by_source = of_seed.sort("src")["app_bytes_up"].to_numpy().astype(float)
            found.append((*by_source, by_source.sum() ** 2 / (len(by_source) * (by_source**2).sum())))
        first, second, jain = np.mean(np.asarray(found), axis=0)
        rate = [f"{octets * 8 / 60 / 1e6:.2f}" for octets in (first, second)]
        rows.append([pair, *rate, f"{(first + second) * 8 / 60 / 3.3e6:.0%}", f"{jain:.3f}"])
    return ["a and b", "a (Mbit/s)", "b (Mbit/s)", "of the link", "Jain's index"], rows
