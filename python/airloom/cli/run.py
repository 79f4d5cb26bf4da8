"""`airloom run`: a scenario in virtual time."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from airloom import digest
from airloom.cli import common, names
from airloom.cli.terminal import emit, interruptible, print_json, print_table, progress, quoted, say

if TYPE_CHECKING:
    from airloom.run import Run


def run(
    scenario: Annotated[str, typer.Argument(help=common.SCENARIO_HELP, autocompletion=names.scenarios)],
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**64 - 1, help="Seed of all random numbers. Default: the scenario's."),
    ] = None,
    settings: names.Settings = None,
    out: common.Out = None,
    force: common.Force = False,
    plot: Annotated[bool, typer.Option("--plot", help="Draw what each layer did, in time-sequence.svg.")] = False,
    width_mm: common.Width = None,
    everything: Annotated[bool, typer.Option("--all", help=common.ALL_HELP)] = False,
    as_json: common.Json = False,
) -> None:
    """Runs it, prints the summary, and says where the files are."""
    common.check_width(width_mm, "--plot", is_drawn=plot)
    read = common.load(scenario, settings or [])
    common.say_if_idle(read, scenario)
    with interruptible(), progress(read.name) as report:
        done = read.run(seed, out=out, force=force, plot=plot, width_mm=width_mm, progress=report)
    for note in done.notes:
        say(note)
    then = shlex.join(["airloom", "sweep", scenario, *(word for key in settings or [] for word in ("--set", key))])
    show(done, everything=everything, as_json=as_json, then=then)


def show(done: Run, *, everything: bool, as_json: bool, then: str) -> None:
    """Prints what people ask of a run, then its numbers; the last line says where the files are and what comes next."""
    if as_json:
        print_json({"folder": str(done.folder), "run_id": done.manifest["run_id"], "summary": done.summary})
    else:
        print_table(["", done.manifest["name"]], [list(line) for line in digest.of_run(done)])
        emit()
        print_numbers(done.summary, everything=everything)
        if done.capture:
            say(f"read the capture: tshark --enable-heuristic rlc_udp -r {quoted(done.capture)}")
    say(f"results in {quoted(done.folder)}   next: {then}")


def print_numbers(summary: Mapping[str, float], *, everything: bool) -> None:
    """The numbers of a summary by groups, and how many are not shown."""
    rows: list[list[str]] = []
    groups = digest.grouped(summary, everything=everything)
    for group in groups:
        rows += [[group.title, ""], *([f"  {key}", digest.number(value)] for key, value in group.lines)]
    print_table(["result", "value"], rows, right=(1,))
    if more := len(summary) - sum(len(group.lines) for group in groups):
        say(f"{more} more (zeros, repetitions, by host, link and direction): --all")
