"""The folder of some loads of a page: a folder for each, a manifest and a report."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from airloom._core import __version__
from airloom.page_load.measure import Loaded
from airloom.page_load.outcome import as_json, together
from airloom.page_load.report import write_report
from airloom.places import check, creating, held, numbered


class LoadFolder:
    """Where some loads of `url` go: `out`, or a new folder in `runs/`."""

    def __init__(self, out: Path | None, url: str, *, force: bool = False) -> None:
        """Loads never come again: results that are in `out` are replaced with `force` only."""
        self._url = url
        # Every time another one.
        self._identity = uuid4().hex[:10]
        self._began = datetime.now(UTC)
        if out is None:
            first = Path("runs") / f"{self._began:%Y-%m-%dT%H%M%S}-load"
            self.path = next(place for place in numbered(first) if not place.exists())
        else:
            check(out, self._identity, force=force)
            self.path = out
        self._is_ready = False
        #: Where the results that are replaced wait until something is loaded.
        self._old = self.path.parent / f".{self.path.name}.{self._identity}.old"
        #: Folders around it that had to be made, from within.
        self._made: list[Path] = []

    @contextmanager
    def place(self, link: str, way: str, http: str | None, number: int | None) -> Iterator[Path]:
        """The place of a load, or of one of several; gone again if the load does not come to its end."""
        if not self._is_ready:
            with creating(self.path):
                if held(self.path) is not None:
                    self.path.rename(self._old)
                self._made = [parent for parent in self.path.parents if not parent.exists()]
                self.path.mkdir(parents=True, exist_ok=True)
            self._is_ready = True
        place = self.path / f"{link.replace('/', '-')}-{way}{f'-http{http}' if http else ''}"
        place = place if number is None else place / f"run-{number + 1}"
        try:
            yield place
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            if number is not None:
                with suppress(OSError):  # others of its kind are there
                    place.parent.rmdir()
            raise

    def remove(self) -> None:
        """Nothing was loaded: what was there before is there again."""
        if self._is_ready:
            shutil.rmtree(self.path, ignore_errors=True)
            with suppress(OSError):  # others are there
                for parent in self._made:
                    parent.rmdir()
        # Looked for, not noted: Ctrl-C may come at any moment.
        with suppress(FileNotFoundError):
            self._old.rename(self.path)

    def finish(self, loads: Sequence[Loaded], command: Sequence[str]) -> Path:
        """Writes the manifest and the report; the report's path. What was there before is gone now."""
        shutil.rmtree(self._old, ignore_errors=True)
        manifest = {
            "load_id": self._identity,
            "name": self._url,
            "url": self._url,
            "version": __version__,
            "command": list(command),
            "began": self._began.isoformat(timespec="seconds"),
            "loads": [as_json(group) for group in together(loads)],
        }
        (self.path / "loads.json").write_text(json.dumps(manifest, indent=1) + "\n")
        report = self.path / "report.html"
        is_ours = os.path.basename(command[0]) in ("__main__.py", "airloom")
        write_report(loads, self._url, report, shlex.join(["airloom", *command[1:]]) if is_ours else "")
        return report
