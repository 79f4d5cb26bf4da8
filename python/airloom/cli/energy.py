"""`airloom energy`: what the mobile's radio spent in a run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airloom.cli import common, names
from airloom.cli.terminal import print_json, print_table, quoted, say

if TYPE_CHECKING:
    from airloom.analysis.energy import Model
    from airloom.run import Run


def energy(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.", autocompletion=names.runs)],
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What the radio draws, such as umts.captivate; umts stands for all of these. May be repeated. "
            "Default: umts for a link of UMTS, wlan.ns3 for any other.",
        ),
    ] = None,
    link: Annotated[
        str | None, typer.Option(metavar="NAME", help="The link whose mobiles are meant. Default: the first.")
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Prints a row for each model and host."""
    from airloom.analysis.energy import bearer, default_models
    from airloom.run import Run

    run = Run(folder)
    models = [found for name in model for found in _named(name)] if model else default_models(run, link)
    spent = [row for one in models for row in _row(run, one, link)]
    if as_json:
        print_json(spent)
        return
    headings = ["model", "host", "transfer (J)", "tail (J)", "idle (J)", "J per MB", "J per MB, no tail"]
    print_table(headings, [[row["model"], row["host"], *(_number(row[k]) for k in _SHOWN)] for row in spent])
    if not model:
        say(f"no --model was given; taken for a link of {bearer(run, link)}: {', '.join(one.name for one in models)}")
    for one in models:
        doubt = "" if one.verified else " (not verified)"
        say(f"{one.name}: {one.title}; {one.source}{doubt}")
    say(f"MB are 10^6 octets that applications received   next: airloom report {quoted(folder)}")


_SHOWN = ("transfer_j", "tail_j", "idle_j", "per_mb_j", "per_mb_without_tail_j")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _named(name: str) -> list[Model]:
    from airloom.analysis.energy import energy_model, energy_models

    group = [model for model in energy_models().values() if model.name.startswith(f"{name}.")]
    return group or [energy_model(name)]


def _row(run: Run, model: Model, link: str | None) -> list[dict[str, Any]]:
    import polars as pl

    from airloom.analysis import energy, joules_per_megabyte

    table = energy(run, model, link=link)
    rows = []
    for (host,), of_host in table.group_by("host", maintain_order=True):
        parts = dict(of_host.group_by("part").agg(pl.col("joules").sum()).rows())
        sums = {f"{part}_j": parts.get(part, 0.0) for part in ("transfer", "tail", "idle")}
        # JSON has no number for joules of what did not come.
        ratio, without = (
            None if math.isnan(joules) else joules
            for joules in (joules_per_megabyte(run, of_host, tail=tail) for tail in (True, False))
        )
        ratios = {"per_mb_j": ratio, "per_mb_without_tail_j": without}
        rows.append({"model": model.name, "host": host, **sums, **ratios, "verified": model.verified})
    return rows
