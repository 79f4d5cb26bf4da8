"""`airloom shrink`: the fewest losses and changes of the timeline with which a scenario still fails a test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import common, names
from airloom.cli.terminal import emit, interruptible, print_json, quoted, say, steps
from airloom.errors import CannotWrite, UsageError
from airloom.places import check_file


def shrink(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run, or a scenario: one that fails.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="The test: fails unless it ends with 0. {} is the scenario's file."),
    ] = None,
    unless: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="Instead: fails unless this is true of a simulated run: 'page_load_s <= 8'."),
    ] = None,
    settings: names.Settings = None,
    most: Annotated[int, typer.Option(metavar="N", min=2, help="Try at most so often.")] = 1000,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the test there. Default: print it on stdout.")
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Prints what is left as a test for pytest."""
    from airloom import shrink as small

    if (unless is None) == (not command):
        raise UsageError("say when it fails: `-- COMMAND`, or --unless RULE, and not both")
    if out is not None:
        check_file(out, run)
        if out.is_dir() or not out.parent.is_dir():
            why = "it is a folder" if out.is_dir() else f"{out.parent} is not there"
            raise UsageError(f"{out} cannot be written: {why}")
    overrides = common.overrides(settings or [])
    if (Path(run) / "run.json").is_file():
        from airloom.replay import scenario_of
        from airloom.run import Run

        scenario = scenario_of(Run(run))
        scenario = scenario.with_keys(overrides).with_seed(scenario.seed) if overrides else scenario
    else:
        scenario = common.load(run, settings or [])
    fails = small.by_rule(unless) if unless is not None else small.by_command(command or [])
    with interruptible(), steps(f"shrinking {scenario.name}", most) as step:
        found = small.shrink(scenario, fails, most=most, told=lambda tries, _: step(tries))
    test = small.as_test(found, unless, command or [])
    refused: CannotWrite | None = None
    if out:
        try:
            out.write_text(test, encoding="utf-8")
        except OSError as error:
            refused = CannotWrite(f"{quoted(out)}: {error.strerror or error}; the test is on stdout")
    if as_json:
        print_json(
            {
                "before": found.before,
                "left": len(found.parts),
                "tries": found.tries,
                "drops": found.drops,
                "timeline": found.timeline,
                "scenario": found.scenario.understood,
                "test": test,
            }
        )
    elif refused or not out:
        emit(test, end="")
    if refused:
        raise refused
    left = f"{len(found.parts)} of {found.before} parts are left after {found.tries} tries"
    say(f"{left}{f'; the test is in {quoted(out)}' if out else ''}")
