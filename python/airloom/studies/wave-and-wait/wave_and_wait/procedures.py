"""W26 to W30: what the protocol, the test bed and the definitions are, read back from runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import takewhile

import polars as pl

from airloom.run import Run
from airloom.study import Computation, Data, Evidence, Setting

from .phases import is_off
from .segments import cycles, seen, waves
from .transfers import BASE, DROPS

#: W(i) = 12 i.
_PER_LEVEL = 12
#: Octets of data in a segment, 1 KByte.
_PAYLOAD = 1024


def of_shown(look: Callable[[Run], object], data: Data) -> Evidence:
    """What is read back from the run that is kept whole."""
    data.at_default_only()
    return Setting(look(data.run("shown")))


def headers(run: Run) -> list[int]:
    """Octets in front of a full segment's data, as they stand in the capture: all sizes that occur."""
    data = [segment for wave in waves(run)[:-1] for segment in wave.segments]
    return sorted({segment.octets - _PAYLOAD for segment in data})


def per_level(run: Run) -> list[float]:
    """Segments of a wave over its level, but of those that say they are short: all that occur."""
    whole = (wave for wave in waves(run) if not wave.segments[-1].ends_short_wave)
    return sorted({len(wave.segments) / wave.level for wave in whole})


def not_full(run: Run) -> int:
    """Waves with fewer segments than their level has, of those before the one in which the data end."""
    found = waves(run)
    end = max(segment.number for wave in found for segment in wave.segments)
    with_more = takewhile(lambda wave: all(segment.number != end for segment in wave.segments), found)
    return sum(len(wave.segments) != _PER_LEVEL * wave.level for wave in with_more)


def above(run: Run) -> int:
    """Waves of a higher level than the receiver had told."""
    return sum(wave.level > wave.told for wave in waves(run))


def below(run: Run) -> int:
    """Waves of a lower level than was told, although there was enough: more than that level's segments followed."""
    found = waves(run)
    left = [sum(len(wave.segments) for wave in found[n:]) for n in range(len(found))]
    return sum(
        wave.level < wave.told and rest >= _PER_LEVEL * (wave.level + 1) for wave, rest in zip(found, left, strict=True)
    )


def new_before_old(run: Run) -> int:
    """Waves in which a new segment stands before one that is sent again."""
    count, top = 0, -1
    for wave in waves(run):
        are_old = [segment.number <= top for segment in wave.segments]
        count += are_old != sorted(are_old, reverse=True)
        top = max(top, *(segment.number for segment in wave.segments))
    return count


def orders(run: Run) -> list[list[str]]:
    """The orders in which the segments of completed cycles came."""
    return [list(order) for order in sorted({cycle.kinds for cycle in cycles(run)})]


def sent_while_probing(run: Run) -> int:
    """Data segments that left between a PROBE1 and the N-S_ACK that ended the cycle."""
    count, is_probing = 0, False
    for segment in seen(run, "sender"):
        if segment.kind == "PROBE1":
            is_probing = True
        elif segment.kind == "N-S_ACK":
            is_probing = False
        count += is_probing and segment.kind == "DATA"
    return count


def dropped_in_off_phases(run: Run) -> int:
    """Packets that the element dropped where it should not act."""
    dropped = run.packets.filter(pl.col("event").cast(pl.String) == "drop")
    assert dropped.height, "nothing was dropped at all: is the element's point recorded?"
    return sum(is_off(t / 1e9) for t in dropped["t_ns"])


def rates(data: Data) -> Evidence:
    """Packets dropped of those that met an on-phase, per cent, drop rate by drop rate."""
    data.at_default_only()
    found = []
    for drop in DROPS[1:]:
        met, dropped = (
            sum(data.per_seed(f"table-1-{p}", "runs", f"uplink.{what}", drop=drop).sum() for p in ("tcp", "wwp"))
            for what in ("vdeldrop_met", "vdeldrop_dropped")
        )
        found.append(round(100 * dropped / met))
    return Setting(found)


def moved(run: Run) -> int:
    """Octets that the receiving application got."""
    return int(run.flows["app_bytes_up"].sum())


def octets_not_counted(run: Run) -> int:
    """Octets of segments that left either host, header and all, less those that the flows table has."""
    captured = sum(
        segment.octets
        for host, is_forward in (("sender", True), ("receiver", False))
        for segment in seen(run, host)
        if segment.is_forward == is_forward
    )
    return captured - int(run.flows.select(pl.col("wire_bytes_up", "wire_bytes_down").sum()).sum_horizontal().item())


COMPUTE: dict[str, Computation] = {
    "W26.header": partial(of_shown, headers),
    "W26.waves": partial(of_shown, per_level),
    "W27.full": partial(of_shown, not_full),
    "W27.above": partial(of_shown, above),
    "W27.below": partial(of_shown, below),
    "W27.old-first": partial(of_shown, new_before_old),
    "W28.order": partial(of_shown, orders),
    "W28.silent": partial(of_shown, sent_while_probing),
    "W29.octets": partial(of_shown, moved),
    "W29.rates": rates,
    "W29.off": partial(of_shown, dropped_in_off_phases),
    "W30.octets": partial(of_shown, octets_not_counted),
    "W30.base": partial(of_shown, lambda _: BASE),
}
