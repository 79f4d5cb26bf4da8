"""The run folder: it has its name only once everything in it is complete.

Everything is written into a hidden folder beside its future place; `run.json`, the last file, says how the run
ended; then the folder is renamed. Ctrl-C, a full disk or a failure leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from airloom._core import __version__
from airloom.errors import AirloomError, UsageError
from airloom.places import check, command, creating, give_back, held, numbered

_log = logging.getLogger(__name__)

#: Version of `run.json` and of the folder's files.
SCHEMA = 1

#: Hidden folders of runs: while one is written, and of one that is being replaced.
_ABANDONED = re.compile(rf"\..+\.{re.escape(os.uname().nodename)}-(\d+)\.(?:partial|\d+\.old)")

#: Seconds in which a folder that nobody holds may be one that somebody is about to hold.
_YOUNG_S = 60

#: How often a run gives way to others that make or take away the same folders at the same moment.
_PATIENCE = 100


class Folder:
    """A run folder while it is written: `with Folder(place, identity) as f: ...; f.finish(manifest)`."""

    def __init__(self, place: Path, identity: str, *, force: bool = False, keeps: bool = False) -> None:
        """For the run that follows from `identity`, if it may take that place (`places.check`).

        The result that it may replace is there until it is finished; with `keeps`, or where something else came there
        meanwhile, that stays, and this run's place gets a number.
        """
        if not keeps:
            check(place, identity, force=force)
            if _is_around_us(place):
                raise UsageError(f"{place} is the current folder, or one around it: choose another --out")
            if os.path.ismount(place):
                # A run takes its place by being given that name, which the system refuses for this one.
                raise UsageError(f"{place} is where a file system begins: choose a folder in it for --out")
        self.place = place
        self._identity = identity
        self._force = force
        self._keeps = keeps
        self._partial = place.parent / f".{place.name}.{os.uname().nodename}-{os.getpid()}.partial"
        self._held: int | None = None
        self._made: list[Path] = []
        self.start = datetime.now(UTC)

    def __enter__(self) -> Self:
        """Makes the hidden folder."""
        with creating(self.place):
            self._begin()
        return self

    def _begin(self) -> None:
        try:
            for attempt in range(_PATIENCE):
                for parent in [*reversed(self.place.parents)]:
                    if not parent.exists():
                        self._make(parent)
                remove_abandoned(self.place.parent)
                try:
                    self._partial.mkdir()
                    self._held = _hold(self._partial)
                    break
                except FileNotFoundError:
                    # A run beside this one failed, and took away the folder that it had made for both.
                    if attempt == _PATIENCE - 1:
                        raise
        except BaseException:
            # A signal may come at any moment, also when a folder was made and nobody knows of it yet.
            self._remove()
            raise

    def __exit__(self, *_: object) -> None:
        """Removes what was not finished."""
        if self._partial.exists():
            self._remove()
        if self._held is not None:
            os.close(self._held)

    def _make(self, parent: Path) -> None:
        # Noted before it is made (a signal may come between); not ours when a run beside this one made it first, as
        # the workers of a sweep do with the folder all their runs lie in.
        self._made.append(parent)
        try:
            parent.mkdir()
        except FileExistsError:
            self._made.remove(parent)
            if not parent.is_dir():
                raise

    def _remove(self) -> None:
        shutil.rmtree(self._partial, ignore_errors=True)
        for parent in reversed(self._made):
            try:
                parent.rmdir()
            except OSError:
                break

    def path(self, name: str) -> Path:
        """Where to write the file `name`."""
        return self._partial / name

    def write_json(self, name: str, value: object) -> None:
        """Writes a JSON file for people to read too."""
        self.write_text(name, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Writes a text file under a temporary name, then renames it."""
        temporary = self.path(f"{name}.part")
        temporary.write_text(text, encoding="utf-8")
        temporary.rename(self.path(name))

    def finish(self, manifest: dict[str, Any], status: str = "ok") -> Path:
        """Writes `run.json` and gives the folder its name."""
        self.write_json(
            "run.json",
            {
                "schema": SCHEMA,
                "status": status,
                **manifest,
                "version": __version__,
                "command": command(),
                "host": {
                    "name": os.uname().nodename,
                    "system": " ".join(os.uname()[::2]),
                    "cpus": os.cpu_count(),
                },
                "start_utc": self.start.isoformat(timespec="milliseconds"),
                "end_utc": datetime.now(UTC).isoformat(timespec="milliseconds"),
            },
        )
        files = sorted(self._partial.rglob("*"))
        for file in files:
            if file.is_file():
                _log.info("wrote %s, %d octets", self.place / file.relative_to(self._partial), file.stat().st_size)
        give_back(files)
        self._take_place()
        give_back((self.place, *self._made))
        return self.place

    def _take_place(self) -> None:
        """Gives the folder its name, instead of an earlier run's that may be replaced."""
        if self._keeps:
            self.place = self._take_free_place()
            return
        replaced = []
        for attempt in range(_PATIENCE):
            try:
                check(self.place, self._identity, force=self._force)
            except AirloomError:
                # It came there while this run was under way.
                self.place = self._take_free_place()
                break
            old = self._partial.with_suffix(f".{attempt}.old")
            # Where nothing is, nothing was there, or a run beside this one has just moved it away.
            with contextlib.suppress(FileNotFoundError):
                self.place.rename(old)
                replaced.append(old)
            try:
                self._partial.rename(self.place)
            except OSError as error:
                # The same run beside this one was faster: it is an earlier run now.
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or attempt == _PATIENCE - 1:
                    raise
            else:
                break
        for old in replaced:
            self._keep_others(old)
            shutil.rmtree(old, ignore_errors=True)

    def _keep_others(self, old: Path) -> None:
        """What lay beside the same results and is none of them stays: reports, exports, notes."""
        found = held(old)
        if found is not None and found.identity == self._identity:
            for entry in _entries(old):
                if not os.path.lexists(self.place / entry.name):
                    with contextlib.suppress(OSError):
                        Path(entry.path).rename(self.place / entry.name)

    def _take_free_place(self) -> Path:
        for place in numbered(self.place):
            if not os.path.lexists(place):
                try:
                    self._partial.rename(place)
                except OSError as error:
                    # A run beside this one had the same name in mind.
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise
                else:
                    return place
        raise AssertionError("numbers do not end")


def _is_around_us(place: Path) -> bool:
    """Is it the current folder, or one around it? The system would not give it another name."""
    with contextlib.suppress(FileNotFoundError):
        return Path.cwd().is_relative_to(os.path.realpath(place))
    return False


def _hold(folder: Path) -> int | None:
    """Locks a folder for as long as this process lives; nothing where the file system has no locks."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held


def remove_abandoned(parent: Path) -> None:
    """Removes hidden folders that runs were written into whose process was killed.

    Only those of this machine, by their names: not every shared file system knows of locks that are held elsewhere.
    One that a process holds is left; so is one younger than a minute, which may not be held yet, and one whose number
    a process has.
    """
    for found in _entries(parent):
        match = _ABANDONED.fullmatch(found.name)
        if match is None or not found.is_dir(follow_symlinks=False) or Path(f"/proc/{match[1]}").exists():
            continue
        with contextlib.suppress(OSError):
            if time.time() - found.stat(follow_symlinks=False).st_mtime < _YOUNG_S:
                continue
            held = os.open(found.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _log.info("removing %s, which a run that was killed has left", found.path)
                shutil.rmtree(found.path, ignore_errors=True)
            finally:
                os.close(held)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What lies in a folder; nothing where we may write and not look."""
    with contextlib.suppress(PermissionError), os.scandir(folder) as found:
        return list(found)
    return []


#: Called now and then during a run with the nanoseconds of model time so far.
Progress = Callable[[int], None]
