"""`airloom run`: a scenario in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli import common
from airloom.cli.terminal import interruptible, print_json, print_table, progress, quoted, say

if TYPE_CHECKING:
    from airloom.run import Run


def run(
    scenario: Annotated[str, typer.Argument(help=common.SCENARIO_HELP, autocompletion=common.complete_scenario)],
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**64 - 1, help="Seed of all random numbers. Default: the scenario's."),
    ] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=V", help=common.SET_HELP)] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The result folder. Default: one under runs/, the same for the same run."),
    ] = None,
    force: common.Force = False,
    plot: Annotated[bool, typer.Option("--plot", help="Draw what each layer did, in time-sequence.svg.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help=common.JSON_HELP)] = False,
) -> None:
    """Runs it, prints the summary, and says where the files are."""
    read = common.load(scenario, settings or [])
    with interruptible(), progress(read.name) as report:
        done = read.run(seed, out=out, force=force, plot=plot, progress=report)
    for note in done.notes:
        say(note)
    show(done, as_json=as_json, then=f"airloom emulate {quoted(scenario)}")


def show(done: Run, *, as_json: bool, then: str) -> None:
    """Prints a run's summary; the last line says where the files are and what to try next."""
    if as_json:
        print_json({"folder": str(done.folder), "run_id": done.manifest["run_id"], "summary": done.summary})
    else:
        # What belongs to one host, link or direction has its name in front, with a dot; there is a lot of that.
        whole = {key: value for key, value in done.summary.items() if "." not in key}
        print_table(["result", "value"], [[k, common.number(v)] for k, v in whole.items()], right=(1,))
        more = len(done.summary) - len(whole)
        say(f"{more} more, by host, link and direction, in {quoted(done.folder / 'summary.json')}")
        if done.capture:
            say(f"read the capture: tshark --enable-heuristic rlc_udp -r {quoted(done.capture)}")
    say(f"results in {quoted(done.folder)}   next: {then}")
