"""The same scenario in both clocks: transfers of this machine's kernel in real time, and simulated ones.

Every cell is a link and a size, with ten seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

from airloom.validate import pairs, transfer
from airloom.validate.transfer import Transfer

#: The median completion in real time against the simulated one: links that lose nothing, those that do, and
#: bundles of circuits and a wire that loses 3 %.
CLEAN = 0.005
LOSSY = 0.02
HARD = 0.03
#: Reality repeats where it comes so close to itself, seed by seed.
CLOSE = 0.01

_WIRES = {
    "384k-300ms": {"rate": "384kbit/s", "delay": "150ms"},
    "2M-100ms": {"rate": "2Mbit/s", "delay": "50ms"},
}
_SIZES = {"200kB": 200_000, "1MB": 1_000_000}
_LOSS = 0.01
_UMTS = {
    "bearer": "umts-dch",
    "rate": {"downlink": "384kbit/s", "uplink": "64kbit/s"},
    "loss": {"per": "fec-frame", "downlink": 0.05, "uplink": 0.05},
}
#: Six PHS circuits that PPP Multilink bundles, and what happens to them while a file is on its way.
_BUNDLE = {"bearer": "mlppp", "members": ["piafs"], "copies": 6, "detect": "1s"}
_RELEASE = ({"at": "8s", "target": "link.member.5", "set": {"state": "down"}},)
#: Plain `linux`: nothing of it is set for these comparisons.
_TCP = {"profile": "linux"}
#: What a program that waits for data takes from its arrival to `recv`: the acknowledgement has left by then, and says
#: that the window is smaller by what was not read.
_REACTION = "50us"


@dataclass(frozen=True)
class Cell:
    """One row of the table."""

    name: str
    link: Mapping[str, Any]
    size: int
    bar: float
    #: What happens to the link meanwhile: a scenario's `timeline`.
    timeline: Sequence[Mapping[str, Any]] = ()


def _cells() -> list[Cell]:
    cells = []
    for size, octets in _SIZES.items():
        for name, keys in _WIRES.items():
            # Without a limit of the queue, so that nothing is lost where nothing is said to be.
            wire = {"bearer": "wireline", **keys}
            cells.append(Cell(f"{name}/{size}", wire, octets, CLEAN))
            cells.append(Cell(f"{name}-loss/{size}", wire | {"loss": _LOSS}, octets, LOSSY))
        cells.append(Cell(f"umts-dch-loss/{size}", _UMTS, octets, LOSSY))
    thirds = {"bearer": "wireline", **_WIRES["2M-100ms"], "loss": 3 * _LOSS}
    cells.append(Cell("2M-100ms-loss3/1MB", thirds, 1_000_000, HARD))
    cells.append(Cell("phs-384k/1MB", _BUNDLE, 1_000_000, HARD))
    cells.append(Cell("phs-384k-release/1MB", _BUNDLE, 1_000_000, HARD, _RELEASE))
    return cells


#: The table, in its order.
CELLS = _cells()
#: The cells whose names match a pattern (`*` for any text).
chosen = partial(pairs.chosen, CELLS)


class Verdict(pairs.Verdict[Cell, Transfer]):
    """One cell: a pair of transfers for each seed."""

    @property
    def decided(self) -> tuple[int, int]:
        """Positions at which both clocks had to decide about a loss, and those at which they decided differently."""
        return sum(t.decided[0] for t in self.real), sum(t.decided[1] for t in self.real)

    @property
    def repeats(self) -> list[float]:
        """How far a second transfer in real time was from the first one, seed by seed."""
        return [(t.again_s or t.seconds) / t.seconds - 1 for t in self.real]

    @property
    def where_reality_repeats(self) -> tuple[int, int]:
        """Seeds whose transfers in real time agree within `CLOSE`, and how many of them the simulation meets."""
        agree = [error for error, repeat in zip(self.errors, self.repeats, strict=True) if abs(repeat) <= CLOSE]
        return len(agree), sum(abs(error) <= CLOSE for error in agree)

    @property
    def met(self) -> bool:
        """Is the median close enough, was every decision the same, and can the runs be believed?"""
        return super().met and self.decided[1] == 0


def compare(cells: Sequence[Cell], seeds: Sequence[int], **how: Unpack[pairs.How]) -> list[Verdict]:
    """A verdict for each cell; see `pairs.fill`."""
    verdicts = [Verdict(cell) for cell in cells]
    # The longest first, so that none of them is left over at the end.
    order = sorted(verdicts, key=lambda verdict: _weight(verdict.cell), reverse=True)
    pairs.fill(order, seeds, _pair, **how, weight=_weight)
    return verdicts


def decided(real: Transfer, simulated: Transfer) -> Transfer:
    """The one in real time, with what both clocks decided."""
    mine, other = transfer.decisions(simulated.packets), transfer.decisions(real.packets)
    common = mine.keys() & other.keys()
    return replace(real, decided=(len(common), sum(mine[at] != other[at] for at in common)))


def _weight(cell: Cell) -> float:
    slow = any(name in cell.name for name in ("384k", "umts", "phs"))
    return cell.size * (5 if slow else 1)


def _pair(cell: Cell, seed: int) -> tuple[Transfer, Transfer, int]:
    downlink = cell.link["bearer"] != "wireline"
    title = f"{cell.name}, seed {seed}"
    settings: dict[str, Any] = {"seed": seed, "downlink": downlink, "timeline": cell.timeline, "reaction": _REACTION}
    planned = transfer.scenario(title, cell.link, cell.size, _TCP, **settings)
    real, repeated = pairs.believed(lambda: transfer.real(planned))
    twin, more = pairs.believed(lambda: transfer.real(planned))
    real, repeated = replace(real, again_s=twin.seconds), repeated + more
    again = transfer.scenario(title, cell.link, cell.size, _TCP, begin_ns=real.began_ns, **settings)
    simulated = transfer.simulated(again)
    return decided(real, simulated), simulated, repeated
