"""What a summary says first: how long it took, what was repeated by whom, what it cost; and the rest by groups.

>>> from airloom import digest
>>> digest.asked({"page_load_s": 8.47, "objects": 9.0, "bytes": 200000.0, "segments": 185.0, "resent": 3.0})
[('page', '8.47 s; 9 objects, 200 kB'), ('sent again', 'TCP 3 of 185 segments (1.6 %)')]
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from airloom.measures import describe, groups, measures

if TYPE_CHECKING:
    from airloom.run import Run

#: Numbers that are the same thing where they are equal: the first one says it.
_SAME = (
    ("page_load_s", "page_load_mean_s", "completion_s", "arrival_max_s", "simulated_s"),
    ("completion_s", "transfer_mean_s", "last_put_s", "simulated_s"),
    ("objects", "requests", "requests_sent", "requests_per_connection"),
    ("bytes", "sent_bytes", "received_bytes"),
    ("transfers", "transfers_served"),
    ("packets", "segments"),
)

#: Ends of names that are statistics of one quantity: where all are equal, one says it.
_STATISTIC = re.compile(r"_(mean|min|max|median|p\d\d)(?=_)")

#: Nothing of the network, for whoever works on the simulator.
INNER = {"events"}

#: Who repeats: a name, what was sent again, what was sent at all, and of what.
_REPEATED = (
    ("resent", "segments", "segments"),
    ("retransmissions", "datagrams_sent", "datagrams of WAP"),
    ("rlc_resent", "rlc_pdus", "PDUs"),
    ("rlc_resent", "rlc_blocks", "blocks"),
    ("mac_hs_resent", "mac_hs_blocks", "blocks"),
    ("piafs_resent", "piafs_frames", "frames"),
)

_LAYERS = {"retransmissions": "WTP", "rlc_resent": "RLC", "mac_hs_resent": "HARQ", "piafs_resent": "PIAFS"}

#: Hosts that have a line of their own.
_MOST_HOSTS = 4

#: Transports whose units are counted together, as tables call them.
_TRANSPORTS = ("tcp", "sctp", "quic", "wwp")


class Group(NamedTuple):
    """Numbers of one kind: a title, and pairs of key and value."""

    title: str
    lines: list[tuple[str, float]]


def grouped(summary: Mapping[str, float], *, everything: bool = False) -> list[Group]:
    """The numbers by the groups of the catalogue, in its order.

    Unless `everything` is wanted, without zeros, repetitions (`page_load_mean_s` beside an equal `page_load_s`) and
    what belongs to one host, link or direction.
    """
    keys = order(key for key in summary if everything or "." not in key)
    if not everything:
        hidden = repetitions(summary, keys)
        keys = [key for key in keys if summary[key] != 0 and key not in hidden and key not in INNER]
    found: dict[str, list[tuple[str, float]]] = {}
    for key in keys:
        found.setdefault(describe(key).group, []).append((key, summary[key]))
    titles = {**groups(), "": "Others"}
    return [Group(titles[group], found[group]) for group in titles if group in found]


def order(keys: Iterable[str]) -> list[str]:
    """Keys of a summary in the order of the catalogue; what it has not comes last."""
    place = {name: number for number, name in enumerate(measures())}
    return sorted(keys, key=lambda key: (place.get(describe(key).name, len(place)), key))


def repetitions(summary: Mapping[str, float], keys: Collection[str]) -> set[str]:
    """Those of `keys` that only repeat another one of them."""
    hidden: set[str] = set()
    for same in _SAME:
        there = [key for key in same if key in keys]
        hidden.update(key for key in there[1:] if summary[key] == summary[there[0]])
    families: dict[str, list[str]] = {}
    for key in keys:
        families.setdefault(_STATISTIC.sub("", key), []).append(key)
    for family, members in families.items():
        # `page_load_s` itself, or else the first by the catalogue.
        first = family if family in members else members[0]
        if all(summary[key] == summary[first] for key in members):
            hidden.update(key for key in members if key != first)
    return hidden


def of_run(run: Run) -> list[tuple[str, str]]:
    """What people ask of a run first, each with its answer: `asked`, and how sure it is."""
    spoken = set(run.flows["proto"].cast(str).to_list())
    transport = ", ".join(name.upper() for name in _TRANSPORTS if name in spoken)
    first, *others = asked(run.summary, transport) or [("time", f"{number(run.summary.get('simulated_s', 0))} s")]
    sure = f"one run, seed {run.manifest['seed']}: no interval; a sweep over seeds gives one"
    if run.verdict is not None:
        sure = "; ".join([f"in real time, {run.verdict}", *run.verdict_reasons, "one run: no interval"])
    return [first, ("how sure", sure), *others]


def asked(summary: Mapping[str, float], transport: str = "TCP") -> list[tuple[str, str]]:
    """What people ask first, each with its answer: how long, what was sent again by whom, what it cost.

    `transport` is what the hosts speak: summaries count its units, whichever it is.
    """
    lines = [*_pages(summary), ("transfer", _transfer(summary)), ("round trip", _ping(summary))]
    lines += [("sent again", _again(summary, transport)), ("lost", _lost(summary)), ("cost", _cost(summary))]
    return [(what, answer) for what, answer in lines if answer]


def number(value: float, digits: int = 4) -> str:
    """A number for reading: whole numbers whole, others with some digits that count.

    >>> number(55468.0), number(8.470001), number(246799.3)
    ('55 468', '8.47', '246 799')
    """
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", " ")
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}".replace(",", " ")


def octets(count: float) -> str:
    """Octets for reading.

    >>> octets(208_282)
    '208 kB'
    """
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(count) >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def _pages(summary: Mapping[str, float]) -> list[tuple[str, str]]:
    """A line; where several hosts load pages, one for each of the first."""
    if answer := _page(summary):
        return [("page", answer)]
    hosts = [key.removesuffix(".pages") for key in summary if key.endswith(".pages")]
    lines = [(f"page, {host}", _page(_of_host(summary, host))) for host in hosts if ".app[" not in host]
    more = len(lines) - _MOST_HOSTS
    return [*lines[:_MOST_HOSTS], *([("pages", f"of {more} hosts more: --all")] if more > 0 else [])]


def _of_host(summary: Mapping[str, float], host: str) -> dict[str, float]:
    return {key.removeprefix(f"{host}."): value for key, value in summary.items() if key.startswith(f"{host}.")}


def _page(summary: Mapping[str, float]) -> str:
    pages, failed = summary.get("pages", 0), summary.get("pages_failed", 0)
    if "page_load_s" not in summary:
        return f"none of {number(pages)} arrived; {number(summary.get('failed', 0))} objects failed" if pages else ""
    arrived = pages - failed
    parts = [f"{number(summary['page_load_s'])} s" + (f", the mean of {number(arrived)}" if arrived > 1 else "")]
    if arrived > 1:
        parts[0] += f" ({number(summary['page_load_min_s'])} to {number(summary['page_load_max_s'])})"
    objects = summary.get("objects", 0)
    got = f"{number(objects)} object{'s' * (objects != 1)}, {octets(summary.get('bytes', 0))}"
    lost = [f"{number(failed)} page{'s' * (failed != 1)} failed"] if failed else []
    return "; ".join([*parts, got, *lost])


def _transfer(summary: Mapping[str, float]) -> str:
    if "transfers" not in summary or "page_load_s" in summary:
        return ""
    time = summary.get("completion_s", summary.get("transfer_mean_s"))
    parts = [] if time is None else [f"{number(time)} s"]
    parts.append(f"{number(summary['transfers'])} files, {octets(summary.get('bytes', 0))}")
    if summary["transfers"] == 1:
        parts[-1] = octets(summary.get("bytes", 0))
    if "goodput_bit_s" in summary:
        parts.append(f"{number(summary['goodput_bit_s'] / 1e3)} kbit/s")
    if failed := summary.get("transfers_failed", 0):
        parts.append(f"{number(failed)} failed")
    return "; ".join(parts)


def _ping(summary: Mapping[str, float]) -> str:
    if "rtt_median_s" not in summary:
        return ""
    times = f"{number(1e3 * summary['rtt_median_s'])} ms (median)"
    return f"{times}; {number(summary.get('received', 0))} of {number(summary.get('sent', 0))} answered"


def _again(summary: Mapping[str, float], transport: str) -> str:
    parts = []
    for again, of, what in _REPEATED:
        sent, count = _sum(summary, of), _sum(summary, again, beside=of)
        if sent and count is not None:
            share = f" ({100 * count / sent:.2g} %)" if count else ""
            parts.append(f"{_LAYERS.get(again, transport)} {number(count)} of {number(sent)} {what}{share}")
    if timeouts := summary.get("rto_count"):
        parts.append(f"{number(timeouts)} {'timeout' if timeouts == 1 else 'timeouts'}")
    if needless := summary.get("spurious"):
        parts.append(f"{number(needless)} needless")
    return ", ".join(parts)


def _lost(summary: Mapping[str, float]) -> str:
    lost, packets = summary.get("lost", 0), summary.get("packets", 0)
    if not lost or "rtt_median_s" in summary:
        return ""
    dropped = sum(value for key, value in summary.items() if _of_link(key, "queue_drops"))
    inside = f", {number(dropped)} of them in queues" if dropped else ""
    return f"{number(lost)} of {number(packets)} datagrams{inside}"


def _cost(summary: Mapping[str, float]) -> str:
    links = dict.fromkeys(key.split(".")[0] for key in summary if _of_link(key, "delivered_bytes"))
    parts = []
    for link in links:
        down, up = (summary.get(f"{link}.{way}.delivered_bytes", 0) for way in ("downlink", "uplink"))
        parts.append(f"{octets(down)} down and {octets(up)} up over {link}")
    return ", ".join(parts)


def _of_link(key: str, name: str) -> bool:
    """Is it this number of one direction of a whole link?"""
    parts = key.split(".")
    return len(parts) == 3 and parts[1] in ("uplink", "downlink") and parts[2] == name


def _sum(summary: Mapping[str, float], name: str, beside: str = "") -> float | None:
    """A number of the run, or the sum over its links' directions, those that have `beside` too; `None` if it has none.

    Several kinds of links may have a number of that name.
    """
    if name in summary:
        return summary[name]
    ways = [key.removesuffix(name) for key in summary if _of_link(key, name)]
    found = [summary[way + name] for way in ways if not beside or way + beside in summary]
    return sum(found) if found else None
