"""The folder of a sweep.

```
runs/2026-11-21-umts-page-7f3c02ab91/
  sweep.json        what the sweep is: scenario in full, axes, seeds, version, command; written first
  runs.parquet      one row per run: point, one column per axis, seed, run_id, status, error, and its summary
  pages.parquet     one row per page load of every run; likewise flows, states, congestion, if they were asked for
  rate.parquet      octets received over time, for the first seed of every point
  sessions.json     one entry per time the command ran: when, how long, how much of it inside the simulation
  runs/             whole run folders, only if they were asked for
  parts/            results of groups of runs while the sweep is unfinished, a file each (`parts`); gone afterwards
```

All tables begin with `point`, the axes and `seed`, and are sorted by point and seed: however often the sweep was
interrupted, their octets are the same. Everything is written under a temporary name and renamed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloom import places
from airloom._core import Tables, sweep_tables
from airloom.errors import UsageError
from airloom.places import alone_in, check, clear, creating
from airloom.sweep import parts

if TYPE_CHECKING:
    import polars as pl

    from airloom.sweep.axes import Axis, Label

#: Version of `sweep.json` and of the tables.
SCHEMA = 1

MANIFEST = "sweep.json"

#: What the person has to see first when a table has more columns than a screen.
LEADING = ("run_id", "status", "error")


def default_place(name: str, identity: str) -> Path:
    """`runs/<date>-<name>-<sweep-id>`; the folder of an earlier day if the same sweep was begun then."""
    begun = sorted(Path("runs").glob(f"*-{name}-{identity}/{MANIFEST}"))
    return begun[-1].parent if begun else places.default_place(name, identity)


def run_folder(place: Path, point: int, seed: int) -> Path:
    """Where a whole run of the sweep is kept, if it is."""
    return place / "runs" / f"point-{point}-seed-{seed}"


class SweepFolder:
    """A sweep's folder while it is written. One process at a time may have it open."""

    def __init__(self, place: Path) -> None:
        """Names the folder; nothing is made yet."""
        self.place = place

    @contextmanager
    def open(self, manifest: dict[str, Any], *, force: bool = False) -> Iterator[None]:
        """Makes the folder, or goes on with the one of the same sweep; `force`: another result there is replaced."""
        check(self.place, manifest["sweep_id"], force=force)
        clear(self.place, manifest["sweep_id"])
        with creating(self.place):
            self.place.mkdir(parents=True, exist_ok=True)
        with alone_in(self.place):
            self.tidy()
            self.parts.mkdir(exist_ok=True)
            self.write_json(MANIFEST, manifest)
            if manifest["folders"] or manifest["clock"] == "real":
                # Here, not by the workers: a run that fails takes the folders it made away again, also from under
                # the run beside it.
                (self.place / "runs").mkdir(exist_ok=True)
            yield

    def write_json(self, name: str, value: object) -> None:
        """Writes a JSON file for people to read too."""
        temporary = self.place / f"{name}.part"
        temporary.write_text(_readable(value), encoding="utf-8")
        temporary.rename(self.place / name)

    @property
    def parts(self) -> Path:
        """Where the results of groups lie (`parts.keep`)."""
        return self.place / "parts"

    def write_part(self, octets: bytes) -> None:
        """Keeps what a group of runs gave."""
        parts.keep(str(self.parts), lambda path: Path(path).write_bytes(octets))

    def tidy(self) -> None:
        """Takes away what was not written to its end. Nobody else may be writing."""
        for left in (*self.place.glob("*.part"), *self.parts.glob(f"*{parts.PARTIAL}")):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)

    def done(self) -> dict[tuple[int, int], str]:
        """Status of each (point, seed) that is there already, from the finished table and from parts."""
        found: dict[tuple[int, int], str] = {}
        table = self.place / "runs.parquet"
        if table.exists():
            from airloom import tables

            rows = tables.read(table, ["point", "seed", "status"])
            found.update({(point, seed): status for point, seed, status in rows.iter_rows()})
        for path in self._parts():
            try:
                part = parts.decode(path.read_bytes())
                statuses = list(zip(part.runs, part.statuses, strict=True))
            except (UsageError, ValueError) as error:
                raise UsageError(f"{path}: {error}; without this file its runs are made again") from None
            for run, status in statuses:
                if found.get(run, "lost") == "lost":
                    found[run] = status
        return found

    def runs(self, axes: Sequence[Axis], points: Sequence[Sequence[Label]]) -> pl.DataFrame:
        """The table of all runs that are there."""
        import polars as pl

        from airloom import tables

        made = self._gather(["runs"], axes, points)
        if made is None:
            return tables.read(self.place / "runs.parquet")
        return pl.read_parquet(BytesIO(made.octets("runs")))

    def finish(self, names: Sequence[str], axes: Sequence[Axis], points: Sequence[Sequence[Label]]) -> None:
        """Puts the tables together and drops the parts."""
        made = self._gather(names, axes, points)
        if made is not None:
            files = {name: str(self.place / f"{name}.parquet") for name in names if name in made.names()}
            made.write([(name, f"{file}.part") for name, file in files.items()])
            for file in files.values():
                os.rename(f"{file}.part", file)
        shutil.rmtree(self.parts)

    def _parts(self) -> list[Path]:
        names = sorted(name for name in os.listdir(self.parts) if not name.endswith(parts.PARTIAL))
        return [self.parts / name for name in names]

    def _gather(self, names: Sequence[str], axes: Sequence[Axis], points: Sequence[Sequence[Label]]) -> Tables | None:
        """The tables with the rows from everywhere, each run once; `None` if no run is new."""
        found = self._parts()
        if not found:
            return None
        before: list[bytes] = []
        if (self.place / "runs.parquet").exists():
            # Here, not above: only this needs a table library.
            from airloom.sweep import kept

            before = kept.as_parts(self.place, [name for name in names if name != "runs"], [a.key for a in axes])
        labels = [(axis.key, _labels(axis, [of_point[n] for of_point in points])) for n, axis in enumerate(axes)]
        try:
            return sweep_tables([*before, *found], labels, names)
        except ValueError as error:
            number, why = error.args
            raise _unreadable([self.place / "runs.parquet"] * len(before) + found, number, why) from None


def _readable(value: object) -> str:
    """JSON with a line for each entry. (`indent` of the library takes ten times as long, and a line for each seed.)"""
    text = partial(json.dumps, ensure_ascii=False)
    if isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f"  {text(key)}: {text(entry)}" for key, entry in value.items()) + "\n}\n"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {text(entry)}" for entry in value) + "\n]\n"
    return text(value) + "\n"


def _unreadable(paths: Sequence[Path], number: int, why: str) -> UsageError:
    return UsageError(f"{paths[number]}: {parts.CANNOT}: {why}; without this file its runs are made again")


def _labels(axis: Axis, labels: list[Any]) -> list[Any]:
    if not axis.is_numeric:
        return [str(label).lower() if isinstance(label, bool) else str(label) for label in labels]
    is_whole = all(isinstance(level.label, int) and abs(level.label) < 2**63 for level in axis.levels)
    return labels if is_whole else [float(label) for label in labels]


def give_back(path: Path) -> None:
    """Under sudo, files belong to the user who called it."""
    if os.geteuid() == 0 and (uid := os.environ.get("SUDO_UID", "")).isdecimal():
        gid = os.environ.get("SUDO_GID", "")
        for each in (path, *path.rglob("*")):
            os.chown(each, int(uid), int(gid) if gid.isdecimal() else -1, follow_symlinks=False)
