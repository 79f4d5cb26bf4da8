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

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloom.errors import UsageError
from airloom.sweep import parts
from airloom.sweep.parts import Part

if TYPE_CHECKING:
    import polars as pl

    from airloom.sweep.axes import Axis, Label

#: Version of `sweep.json` and of the tables.
SCHEMA = 1

MANIFEST = "sweep.json"

#: What the person has to see first when a table has more columns than a screen.
LEADING = ("run_id", "status", "error")

#: Within one run, the rows of each table are sorted by these.
_ORDER = {"pages": "start_ns", "flows": "open_ns", "states": "t_ns", "congestion": "t_ns", "rate": "t_ns"}


def default_place(name: str, identity: str) -> Path:
    """`runs/<date>-<name>-<sweep-id>`; the folder of an earlier day if the same sweep was begun then."""
    begun = sorted(Path("runs").glob(f"*-{name}-{identity}/{MANIFEST}"))
    return begun[-1].parent if begun else Path("runs") / f"{datetime.now(UTC):%Y-%m-%d}-{name}-{identity}"


def run_folder(place: Path, point: int, seed: int) -> Path:
    """Where a whole run of the sweep is kept, if it is."""
    return place / "runs" / f"point-{point}-seed-{seed}"


class SweepFolder:
    """A sweep's folder while it is written. One process at a time may have it open."""

    def __init__(self, place: Path) -> None:
        """Names the folder; nothing is made yet."""
        self.place = place

    @contextmanager
    def open(self, manifest: dict[str, Any]) -> Iterator[None]:
        """Makes the folder, or goes on with the one of the same sweep."""
        if self.place.exists() and not self.place.is_dir():
            raise UsageError(f"{self.place} exists and is not a folder: choose another --out")
        if self.place.is_dir():
            self._refuse_others(manifest["sweep_id"])
        self.place.mkdir(parents=True, exist_ok=True)
        with (self.place / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"{self.place}: another process is at this sweep; wait for it, or end it") from None
            for left in (*self.place.glob("*.part"), *self.place.glob("parts/*.partial")):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            (self.place / "parts").mkdir(exist_ok=True)
            self.write_json(MANIFEST, manifest)
            if manifest["folders"] or manifest["clock"] == "real":
                # Here, not by the workers: a run that fails takes the folders it made away again, also from under
                # the run beside it.
                (self.place / "runs").mkdir(exist_ok=True)
            yield

    def _refuse_others(self, identity: str) -> None:
        path = self.place / MANIFEST
        if not path.exists():
            # Begun and killed before it had a manifest: nothing but the lock is there.
            if any(p.name not in (".lock", "parts", f"{MANIFEST}.part") for p in self.place.iterdir()):
                raise UsageError(f"{self.place} exists and is not a sweep: choose another --out, or move it away")
            return
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UsageError(f"{path} cannot be read ({error}): move {self.place} away") from None
        if not isinstance(found, dict):
            raise UsageError(f"{path} is not what a sweep writes: move {self.place} away")
        if found.get("sweep_id") != identity:
            raise UsageError(
                f"{self.place} holds another sweep ({found.get('name')}, {found.get('sweep_id')}): choose another "
                "--out, or move it away"
            )

    def write_json(self, name: str, value: object) -> None:
        """Writes a JSON file for people to read too."""
        temporary = self.place / f"{name}.part"
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.rename(self.place / name)

    def write_part(self, part: Part) -> None:
        """Keeps what a group of runs gave: a file that has its name once everything in it is written."""
        name = uuid.uuid4().hex
        partial = self.place / "parts" / f"{name}.partial"
        try:
            partial.write_bytes(parts.encode(part))
        except OSError as error:
            error.filename = str(partial)  # `write` does not know it
            partial.unlink(missing_ok=True)
            raise
        partial.rename(self.place / "parts" / name)

    def done(self) -> dict[tuple[int, int], str]:
        """Status of each (point, seed) that is there already, from the finished table and from parts."""
        found: dict[tuple[int, int], str] = {}
        table = self.place / "runs.parquet"
        if table.exists():
            import polars as pl

            rows = pl.read_parquet(table.absolute(), columns=["point", "seed", "status"])
            found.update({(point, seed): status for point, seed, status in rows.iter_rows()})
        for part in self._parts():
            for run, status in zip(part.runs, part.statuses, strict=True):
                if found.get(run, "lost") == "lost":
                    found[run] = status
        return found

    def runs(self, axes: Sequence[Axis], points: Sequence[Sequence[Label]]) -> pl.DataFrame:
        """The table of all runs that are there."""
        return self._gather(["runs"], axes, points)["runs"]

    def finish(self, names: Sequence[str], axes: Sequence[Axis], points: Sequence[Sequence[Label]]) -> None:
        """Puts the tables together and drops the parts."""
        from airloom import tables

        for name, rows in self._gather(names, axes, points).items():
            head = ["point", *(axis.key for axis in axes), "seed", *(LEADING if name == "runs" else ("run_id",))]
            rest = [c for c in rows.columns if c not in head]
            # The summary's names in alphabetical order; the columns of other tables as they come from a run.
            rest = sorted(rest) if name == "runs" else rest
            order = ["point", "seed", *([_ORDER[name]] if name in _ORDER else [])]
            rows = rows.select(*head, *rest).sort(order, maintain_order=True).rechunk()
            temporary = self.place / f"{name}.parquet.part"
            tables.write_one(rows, temporary)
            temporary.rename(self.place / f"{name}.parquet")
        shutil.rmtree(self.place / "parts")

    def _parts(self) -> list[Part]:
        found = []
        for path in sorted(self.place.glob("parts/*")):
            try:
                found.append(parts.decode(path.read_bytes()))
            except UsageError as error:
                raise UsageError(f"{path}: {error}; without this file its runs are made again") from None
        return found

    def _gather(
        self, names: Sequence[str], axes: Sequence[Axis], points: Sequence[Sequence[Label]]
    ) -> dict[str, pl.DataFrame]:
        """The rows of each table from everywhere, each run once."""
        import polars as pl

        from airloom.sweep import plain

        read = self._parts()
        new = plain.tables(read, axes, points) if read else {}
        found: dict[str, pl.DataFrame] = {}
        for name in names:
            path = self.place / f"{name}.parquet"
            rows = new.get(name)
            if path.exists():
                old = pl.read_parquet(path.absolute()).with_columns(pl.lit(-1, pl.Int64).alias(plain.SOURCE))
                rows = old if rows is None else pl.concat((old, rows), how="diagonal_relaxed")
            if rows is None:
                continue
            # A run can be there twice if the process was killed between writing a table and dropping the parts: the
            # first source that has it counts, with all its rows.
            first = pl.col(plain.SOURCE).min().over("point", "seed")
            if name == "runs":  # what was lost with its worker gives way to the same run made later
                lost = pl.col("status") == "lost"
                rows = rows.filter(~lost | lost.all().over("point", "seed"))
            found[name] = rows.filter(pl.col(plain.SOURCE) == first).drop(plain.SOURCE)
        return found


def give_back(path: Path) -> None:
    """Under sudo, files belong to the user who called it."""
    if os.geteuid() == 0 and (uid := os.environ.get("SUDO_UID", "")).isdecimal():
        gid = os.environ.get("SUDO_GID", "")
        for each in (path, *path.rglob("*")):
            os.chown(each, int(uid), int(gid) if gid.isdecimal() else -1, follow_symlinks=False)
