"""`airloom sweep`: a scenario over a range of conditions, with many seeds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airloom.cli import common, names
from airloom.cli.terminal import print_json, print_table, quoted, runs_bar, say, verdict_follows
from airloom.errors import UsageError

if TYPE_CHECKING:
    from airloom.sweep import SweepResults


def sweep(
    scenario: Annotated[
        str,
        typer.Argument(
            help="A scenario file, a shipped scenario, or a sweep file (TOML with the key `scenario`).",
            autocompletion=names.scenarios,
        ),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="With --emulate: runs in the first real host."),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=A,B,C",
            help="Values of a key of the scenario. May be repeated.",
            autocompletion=names.keys,
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="1..20", help="Seeds that every point is run with; 20 alone is that one seed. Default: 1..20."
        ),
    ] = None,
    settings: names.Settings = None,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Threads. Default: one for each core.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask cluster: dask://HOST:PORT or scheduler-file:PATH."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The result folder. Default: one under runs/.")
    ] = None,
    force: common.Force = False,
    max_failures: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Stop when more than N runs failed; N are forgiven by the exit code."),
    ] = None,
    until_ci: Annotated[
        str | None,
        typer.Option(
            metavar="2%", help="Take seeds until the 95 % interval of every mean is within this; at least 30 seeds."
        ),
    ] = None,
    measure: Annotated[
        str | None, typer.Option(metavar="NAME", help="The measure of the summary to show, and to look at.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A table to keep of every run: pages, flows (both by default), states, congestion."
        ),
    ] = None,
    folders: Annotated[
        bool | None, typer.Option("--folders", help="Keep the whole folder of each run too, under DIR/runs.")
    ] = None,
    plot: Annotated[
        bool, typer.Option("--plot", help="Draw the measure over each axis, in response-AXIS.svg in the result folder.")
    ] = False,
    width_mm: common.Width = None,
    emulate: Annotated[
        bool | None, typer.Option("--emulate", help="Run in real time, one run at a time on each core.")
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Makes the runs that are missing, prints a row for each point, and says where the files are."""
    from airloom.sweep import overview
    from airloom.sweep.axes import from_option
    from airloom.sweep.file import plan

    common.check_width(width_mm, "--plot", is_drawn=plot)
    options = {
        "seeds": seeds,
        "workers": workers,
        "on": on,
        "out": None if out is None else str(out),
        "force": force or None,
        "max_failures": max_failures,
        "until_ci": until_ci,
        "measure": measure,
        "tables": table,
        "folders": folders,
        "emulate": emulate,
        "command": command,
    }
    axes = dict(from_option(option) for option in vary or [])
    read = plan(scenario, common.overrides(settings or []), axes, options)
    with runs_bar(read.sweep.name) as progress:
        results = read.sweep.run(**read.options, progress=progress)
    try:
        if plot:
            _draw(results, overview.measures(results, read.options.get("measure"))[:1], width_mm)
        with verdict_follows():
            _show(results, read.options.get("measure"), as_json)
            _say_if_wide(results, read.options)
    except UsageError as error:
        # What is wrong with a measure is known only when there are runs: they are not made in vain.
        raise UsageError(f"{error}; all runs are kept in {quoted(results.folder)}") from None
    failed = results.failed
    if failed > (read.options.get("max_failures") or 0):
        raise typer.Exit(4)


def _show(results: SweepResults, measure: str | None, as_json: bool) -> None:
    from airloom.sweep import overview

    names = overview.measures(results, measure)
    if as_json:
        print_json(
            {
                "folder": str(results.folder),
                "sweep_id": results.manifest["sweep_id"],
                "runs": results.total,
                "failed": results.failed,
                "points": overview.points(results, names),
                "session": results.session,
            }
        )
    else:
        print_table(*overview.overview(results, names))
    _say_failures(results)
    say(_spent(results))
    say(f"results in {quoted(results.folder)}   next: airloom report {quoted(results.folder)}")


def _say_if_wide(results: SweepResults, options: Mapping[str, Any]) -> None:
    """All seeds that it might take were not enough."""
    from airloom.analysis.stop import USUAL, is_precise

    wanted, measure = options.get("until_ci"), options.get("measure")
    if wanted is None or results.failed == results.total:
        return
    names = [name for name in ([measure] if measure else USUAL) if name in results.columns]
    if not is_precise(results.some("point", *names), measure, wanted, points=results.heads().height):
        say(f"with all these seeds an interval is still wider than {wanted:.3g} of its mean: --seeds gives more")


def _draw(results: SweepResults, measures: list[str], width_mm: float | None) -> None:
    """A picture for each axis with several levels, as the terminal estimates: medians."""
    from airloom.plot import save_svg

    varied = [axis for axis, levels in results.axes.items() if len(levels) > 1]
    if not varied or not measures:
        say("nothing to draw: nothing was varied" if measures else "nothing to draw: no run came to its end")
    for axis, name in zip(varied, _file_names(varied), strict=True) if measures else ():
        path = results.folder / f"response-{name}.svg"
        save_svg(results.plot.response(measures[0], axis, statistic="median", width_mm=width_mm), path)
        say(f"wrote {quoted(path)}")


def _file_names(axes: Iterable[str]) -> list[str]:
    """Axes may have any name: what no file may be called is left out, and equal names are numbered.

    >>> _file_names(["links.wire.loss", "größe", "a/b", "a b"])
    ['links.wire.loss', 'größe', 'a-b', 'a-b-2']
    """
    found: list[str] = []
    for axis in axes:
        first = re.sub(r"[^\w.-]+", "-", axis).strip("-.") or "axis"
        names = chain([first], (f"{first}-{number}" for number in count(2)))
        found.append(next(name for name in names if name not in found))
    return found


def _spent(results: SweepResults) -> str:
    session: dict[str, Any] | None = results.session
    if session is None:
        return f"all {results.total} runs were there already"
    real = results.manifest["clock"] == "real"
    verb, inside = ("emulated", "") if real else ("simulated", f", {session['share_of_workers']:.0%} of it simulating")
    minutes = results.some("simulated_s").to_series().sum() / 60 if "simulated_s" in results.columns else 0
    workers = session["on"]
    there = results.total - session["runs"]
    before = f" ({there} more were there already)" if there else ""
    made = f"{verb} {session['runs']} runs{before} in {session['wall_s']:.1f} s on {workers}{inside}"
    return f"{made}; all of them are {minutes:.3g} min of link time"


def _say_failures(results: SweepResults) -> None:
    failures = results.failures
    if failures.is_empty():
        return
    say(f"{failures.height} of {results.total} runs failed:")
    for (error,), rows in failures.group_by("error", maintain_order=True):
        where = [_where(row, list(results.axes)) for row in rows.head(3).iter_rows(named=True)]
        more = f" and {rows.height - 3} more" if rows.height > 3 else ""
        say(f"  {error}: {'; '.join(where)}{more}")


def _where(row: dict[str, Any], axes: list[str]) -> str:
    return ", ".join([*(f"{axis}={row[axis]}" for axis in axes), f"seed {row['seed']}"])
