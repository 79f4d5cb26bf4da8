"""`airloom gate`: rules over links in CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import common
from airloom.cli.terminal import (
    emit,
    interruptible,
    print_json,
    print_table,
    quoted,
    say,
    say_error,
    steps,
    verdict_follows,
)
from airloom.errors import UsageError


def gate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A gate file (TOML): links, what runs, and rules.")],
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="This gate. May be repeated.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML.")] = None,
    summary_md: Annotated[
        Path | None,
        typer.Option("--summary-md", metavar="FILE", help="Append a table in Markdown ($GITHUB_STEP_SUMMARY)."),
    ] = None,
    write_baseline: Annotated[
        Path | None,
        typer.Option("--write-baseline", metavar="FILE", help="Write the figures, for rules with `vs`."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with 3 if a rule is unclear.")] = False,
    skip_unsupported: Annotated[
        bool,
        typer.Option("--skip-unsupported", help="Pass over what this machine cannot do, instead of ending with 3."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Results of what took real time. Default: a new folder under runs/."),
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Makes the runs and decides each rule: pass, fail, or unclear if there were too few runs to tell.

    Ends with 0 if no rule fails, 1 if one does, 3 if this machine cannot do it (with --strict: if a rule is unclear),
    4 if something broke.
    """
    from airloom.gate import Outcome, check_links, load, measure
    from airloom.gate.baseline import Baseline, write
    from airloom.gate.measure import Measured
    from airloom.places import new_place

    gates = load(file)
    names = [each.name for each in gates]
    for name in only or []:
        if name not in names:
            raise UsageError(f"--only {name}: no gate is called so; valid: {', '.join(names)}")
    gates = [each for each in gates if not only or each.name in only]
    if out is not None and ((out.is_dir() and any(out.iterdir())) or (out.exists() and not out.is_dir())):
        raise UsageError(f"{out} exists and is not an empty folder: choose another --out")
    for written in (junit, summary_md, write_baseline):
        if written is not None and (why := _in_the_way(written, is_replaced=written == write_baseline)):
            raise UsageError(f"{written} cannot be written: {why}")
    for baseline in {each.folder / rule.vs for each in gates for rule in each.rules if rule.vs}:
        if write_baseline is None or baseline.resolve() != write_baseline.resolve():
            Baseline(baseline)  # one that cannot be read is said before anything is measured
    is_part = len(gates) < len(names)
    if is_part and write_baseline is not None and write_baseline.exists():
        notes = Baseline(write_baseline).notes
        if notes:
            raise UsageError(f"{notes[0]}: the others' figures cannot stay; leave out --only, or write another file")
    for each in gates:
        check_links(each)
    place: list[Path] = [] if out is None else [out]

    def results() -> Path:
        if not place:
            place.append(new_place("gate", file.stem))
        return place[0]

    def left() -> str:
        kept = f"; results of what was measured are in {quoted(place[0])}" if place and place[0].exists() else ""
        return f"no verdict was written{kept}"

    measured: list[Measured] = []
    with interruptible(left), steps("measuring", sum(each.runs * len(each.links) for each in gates)) as step:
        made = 0
        step(0)

        def done() -> None:
            nonlocal made
            made += 1
            step(made)

        for each in gates:
            measured += measure(each, results, done)
    unwritten = None
    if write_baseline is not None:
        unwritten = write(write_baseline, measured, is_part=is_part, skips=skip_unsupported)
    outcome = Outcome(measured)
    with verdict_follows():
        if as_json:
            print_json(outcome.document())
        else:
            rows = [[row.state, row.gate, row.link, row.rule, row.figures, row.why] for row in outcome.rows]
            print_table(["", "gate", "link", "rule", "measured", "why"], rows)
            if os.environ.get("GITHUB_ACTIONS") == "true":
                for line in outcome.annotations():
                    emit(line)
    if junit is not None:
        junit.write_bytes(outcome.junit())
    if summary_md is not None:
        with summary_md.open("a", encoding="utf-8") as summary:
            summary.write(outcome.markdown())
    for note in outcome.notes:
        say(note)
    if write_baseline is not None and unwritten is not None:
        say_error(f"{quoted(write_baseline)} was not written: {unwritten}")
    if place and place[0].exists() and not all(each.is_virtual for each in gates):
        say(f"results in {quoted(place[0])}")
    if code := outcome.exit_code(strict=strict, skip_unsupported=skip_unsupported) or (3 if unwritten else 0):
        raise typer.Exit(code)


def _in_the_way(file: Path, *, is_replaced: bool) -> str | None:
    """Why a file cannot be written, as far as can be told beforehand."""
    if file.is_dir():
        return "it is a folder"
    if not file.parent.is_dir():
        return f"{file.parent} is not there"
    place = file if file.exists() and not is_replaced else file.parent
    return None if os.access(place, os.W_OK) else f"{place} is not writable"
