"""The same scenario in both clocks: transfers of this machine's kernel in real time, and simulated ones.

Every cell is a link and a size, with ten seeds. Each transfer is made in real time first; the simulation then repeats
it, with the same seed, beginning at the same moment of the model's time, so that a radio channel's transmission
intervals and the fates of their blocks lie alike.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

from airloom.errors import UsageError
from airloom.validate import transfer
from airloom.validate.transfer import Transfer

#: The median completion in real time against the simulated one: links that lose nothing, and those that do.
CLEAN = 0.005
LOSSY = 0.02
#: How often a run is made whose engine was too late for its figures to be believed.
TRIES = 3

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
#: Plain `linux`: nothing of it is set for these comparisons.
_TCP = {"profile": "linux"}


@dataclass(frozen=True)
class Cell:
    """One row of the table."""

    name: str
    link: Mapping[str, Any]
    size: int
    bar: float


def _cells() -> list[Cell]:
    cells = []
    for size, octets in _SIZES.items():
        for name, keys in _WIRES.items():
            # Without a limit of the queue, so that nothing is lost where nothing is said to be.
            wire = {"bearer": "wireline", **keys}
            cells.append(Cell(f"{name}/{size}", wire, octets, CLEAN))
            cells.append(Cell(f"{name}-loss/{size}", wire | {"loss": _LOSS}, octets, LOSSY))
        cells.append(Cell(f"umts-dch-loss/{size}", _UMTS, octets, LOSSY))
    return cells


#: The table, in its order.
CELLS = _cells()


def chosen(pattern: str) -> list[Cell]:
    """The cells whose names match `pattern` (`*` for any text)."""
    found = [cell for cell in CELLS if fnmatch(cell.name, pattern)]
    if not found:
        raise UsageError(f"no cell matches {pattern!r}; there are: {', '.join(cell.name for cell in CELLS)}")
    return found


@dataclass
class Verdict:
    """One cell: a pair of transfers for each seed."""

    cell: Cell
    real: list[Transfer] = field(default_factory=list)
    simulated: list[Transfer] = field(default_factory=list)
    #: Runs in real time that were made again because the engine was late.
    repeated: int = 0

    @property
    def real_s(self) -> float:
        """Median seconds in real time."""
        return statistics.median(t.seconds for t in self.real)

    @property
    def simulated_s(self) -> float:
        """Median seconds in virtual time."""
        return statistics.median(t.seconds for t in self.simulated)

    @property
    def error(self) -> float:
        """Relative error of the simulated median."""
        return self.simulated_s / self.real_s - 1

    @property
    def errors(self) -> list[float]:
        """The same seed by seed."""
        return [s.seconds / r.seconds - 1 for s, r in zip(self.simulated, self.real, strict=True)]

    @property
    def decided(self) -> tuple[int, int]:
        """Positions at which both clocks had to decide about a loss, and those at which they decided differently."""
        both = differently = 0
        for ours, theirs in zip(self.simulated, self.real, strict=True):
            mine, other = transfer.decisions(ours.packets), transfer.decisions(theirs.packets)
            common = mine.keys() & other.keys()
            both += len(common)
            differently += sum(mine[at] != other[at] for at in common)
        return both, differently

    @property
    def invalid(self) -> int:
        """Runs in real time that were late even at the last try."""
        return sum(t.verdict == "invalid" for t in self.real)

    @property
    def met(self) -> bool:
        """Is the median close enough, was every decision the same, and can the runs be believed?"""
        return abs(self.error) <= self.cell.bar and self.decided[1] == 0 and self.invalid == 0


def compare(
    cells: Sequence[Cell],
    seeds: Sequence[int],
    jobs: int,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Verdict]:
    """A verdict for each cell; `jobs` transfers go on at a time, and `progress` is told how many are done."""
    verdicts = [Verdict(cell) for cell in cells]
    # The longest first, so that none of them is left over at the end.
    order = sorted(range(len(cells)), key=lambda n: _weight(cells[n]), reverse=True)
    with ThreadPoolExecutor(jobs) as pool:
        try:
            work = {n: [pool.submit(_pair, cells[n], seed) for seed in seeds] for n in order}
            done = 0
            for n in order:
                for future in work[n]:
                    real, simulated, repeated = future.result()
                    verdicts[n].real.append(real)
                    verdicts[n].simulated.append(simulated)
                    verdicts[n].repeated += repeated
                    done += 1
                    progress(done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return verdicts


def _weight(cell: Cell) -> float:
    slow = "384k" in cell.name or "umts" in cell.name
    return cell.size * (5 if slow else 1)


def _pair(cell: Cell, seed: int) -> tuple[Transfer, Transfer, int]:
    downlink = cell.link["bearer"] != "wireline"
    title = f"{cell.name}, seed {seed}"
    planned = transfer.scenario(title, cell.link, cell.size, _TCP, seed=seed, downlink=downlink)
    real, tries = transfer.real(planned), 1
    while real.verdict == "invalid" and tries < TRIES:
        real, tries = transfer.real(planned), tries + 1
    repeated = transfer.scenario(
        title, cell.link, cell.size, _TCP, seed=seed, begin_ns=real.began_ns, downlink=downlink
    )
    return real, transfer.simulated(repeated), tries - 1
