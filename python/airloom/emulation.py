"""A scenario in real time: real programs in network namespaces, every packet through the same model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from airloom.errors import Interrupted
from airloom.folder import Folder, Progress, default_place
from airloom.run import save

if TYPE_CHECKING:
    from airloom.run import Run
    from airloom.scenario import Scenario


def emulate(
    scenario: Scenario,
    command: Sequence[str] | None = None,
    *,
    seed: int | None = None,
    out: Path | None = None,
    progress: Progress | None = None,
) -> tuple[Run, int]:
    """Runs `command` in the first real host; the run, and the command's exit code.

    Without a command the run ends when the scenario says. `run.summary["valid"]` is 0 if packets left the model too
    late for the figures to be believed.
    """
    if seed is not None:
        scenario = scenario.with_seed(seed)
    with Folder(out or default_place(scenario.name, scenario.run_id("real"))) as folder:
        words = None if command is None else list(command)
        results = scenario._core.emulate(words, folder.path("trace.pcapng"), progress)
        if results.outcome == "stopped":
            raise Interrupted(f"{scenario.name}: interrupted, nothing was written")
        code = results.exit_code or 0
        more = {"outcome": results.outcome, "run_command": words, "exit_code": results.exit_code}
        return save(folder, scenario, results, "real", more=more), code
