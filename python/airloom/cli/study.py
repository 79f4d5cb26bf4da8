"""`airloom study`: replications of papers, from their sweeps to verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from airloom.cli import common
from airloom.cli.terminal import interruptible, print_json, print_table, quoted, say, steps

HELP = "Replicate a paper: make its sweeps, hold every claim against them."

app = typer.Typer(help=HELP, no_args_is_help=True)

_OUT_HELP = "Where the study's sweeps are kept. Default: runs/studies/NAME."
_REAL_HELP = "What the full study makes in real time with real programs, in place of what it simulates."
_QUICK_HELP = "Few seeds, one assumption at a time: seconds instead of many minutes."

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A study (airloom study list), or a folder with claims.toml.")
]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help=_OUT_HELP)]
Json = Annotated[bool, typer.Option("--json", help=common.JSON_HELP)]


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the studies, each with the score of its last run in this folder."""
    from airloom.study.execute import default_place
    from airloom.study.folder import names, open_study
    from airloom.study.outcome import last

    found: list[dict[str, Any]] = []
    for name in names():
        study = open_study(name)
        kept = last(default_place(study.name)) or {}
        found.append(
            {
                "study": name,
                "title": study.title,
                "claims": len(study.claims.claims),
                **{key: kept.get(key) for key in ("depth", "seeds", "score", "score_parts")},
            }
        )
    if as_json:
        print_json(found)
        return
    rows = [
        [
            each["study"],
            str(each["claims"]),
            each["depth"] or "–",
            str(each["seeds"] or "–"),
            _score(each["score"]) or "not run here",
            _score(each["score_parts"]),
        ]
        for each in found
    ]
    print_table(["study", "claims", "last run", "seeds", "score", "parts and procedures"], rows)
    say("next: airloom study run NAME --quick")


def _score(counts: dict[str, int] | None) -> str:
    return ", ".join(f"{n} {verdict}" for verdict, n in (counts or {}).items())


@app.command("run")
def run(
    name: Name,
    quick: Annotated[bool, typer.Option("--quick", help=_QUICK_HELP)] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. Default: one per core.")] = None,
    on: Annotated[str | None, typer.Option(metavar="WHERE", help="A Dask cluster, as for airloom sweep.")] = None,
    real: Annotated[bool, typer.Option("--real", help=_REAL_HELP)] = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Make the runs of a study that are not there yet, and judge its claims."""
    from airloom.study import execute, text
    from airloom.study.folder import open_study
    from airloom.study.outcome import document, evaluate

    study, depth = open_study(name), "quick" if quick else "full"
    place = (out or execute.default_place(study.name)) / depth
    if real:
        execute.check_real_time(study)
    sweeps = execute.planned(study, depth, real=real)
    total = execute.size(sweeps)
    with interruptible(), steps(study.name, total) as told:
        execute.run(sweeps, place, workers=workers, on=on, progress=told)
        execute.run_programs(study, place, depth, real=real)
    outcome = evaluate(study, place, depth)
    if as_json:
        print_json(document(outcome))
        return
    print(text.headline(outcome))
    flag = " --quick" if quick else ""
    say(f"{total} runs in {quoted(place)}   next: airloom study report {quoted(name)}{flag}")


@app.command("report")
def report(
    name: Name,
    quick: Annotated[bool, typer.Option("--quick", help="The last quick run, even if there is a full one.")] = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Print claim by claim: the paper, ours with its interval, and the verdict; deviations first."""
    from airloom.study import Data, execute, text
    from airloom.study.folder import open_study
    from airloom.study.outcome import document, evaluate

    study = open_study(name)
    home = out or execute.default_place(study.name)
    depth = "quick" if quick or not any((home / "full").glob("*/runs.parquet")) else "full"
    outcome = evaluate(study, home / depth, depth)
    if as_json:
        print_json(document(outcome))
        return
    print(text.headline(outcome))
    for line in text.deviations(outcome):
        print(f"  {line}")
    own = text.of_study(study, Data(home / depth, None, study.real_time))
    for table in (*text.terminal(outcome), *own):
        print(f"\n{table.title}")
        print_table(table.columns, table.rows)
    from airloom.study.page import build

    made = build(outcome, home / depth, home / depth / "report.html")
    say(f"with figures in {quoted(made)}   next: xdg-open {quoted(made)}")
