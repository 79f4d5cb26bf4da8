"""A run again with something changed: the same radio, the same luck, one other setting.

Random numbers have names, and what happens to a packet is a function of the seed, its place and its number: so what is
not changed meets the same channel, and the first packet that differs is the first one that the change has touched.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from airloom._core import __version__
from airloom.errors import UsageError
from airloom.run import Run, with_records

if TYPE_CHECKING:
    from airloom.comparison import Comparison
    from airloom.folder import Progress
    from airloom.scenario import Scenario


class Replay(NamedTuple):
    """What the change did."""

    #: The run with the change.
    run: Run
    #: The original (A) beside it (B).
    comparison: Comparison


def scenario_of(run: Run) -> Scenario:
    """The scenario of a run as it was understood, with its seed."""
    from airloom.scenario import parse

    return parse(json.dumps(run.manifest["scenario"]), f"{run.manifest['name']}.json").with_seed(run.manifest["seed"])


def replay(
    run: Run | Path | str,
    overrides: Mapping[str, object],
    *,
    out: Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Replay:
    """Simulates a run again with other values for some keys; both record their packets.

    Raises `UsageError` for a run in real time, where no moment comes twice.

    >>> import airloom as al
    >>> page = al.load("umts-page").run(seed=1, out="one")
    >>> replay(page, {"links.radio.loss.downlink": 0.1}).comparison.first.t_s < 1
    True
    """
    from airloom.comparison import compare

    original = run if isinstance(run, Run) else Run(run)
    if original.manifest.get("clock") != "virtual":
        raise UsageError(
            f"{original.folder} was made in real time, where no moment comes twice; "
            "airloom run makes its scenario one that can be replayed"
        )
    as_it_was = with_records(scenario_of(original), "packets")
    changed = as_it_was.with_keys(overrides).with_seed(as_it_was.seed)
    if "run.seed" in overrides:
        changed = as_it_was.with_keys(overrides)
    done = changed.run(out=out, force=force, progress=progress)
    is_complete = (original.folder / "packets.parquet").is_file() and original.manifest["version"] == __version__
    with tempfile.TemporaryDirectory(prefix="airloom-replay-") as temporary:
        # What another version made, or one that noted no packets, is made again.
        base = original if is_complete else as_it_was.run(out=Path(temporary) / "run", progress=progress)
        found = compare(base.folder, done.folder)
        found.names["A"] = found.names["A"].replace(str(base.folder), str(original.folder))
    return Replay(done, found)
