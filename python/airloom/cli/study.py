"""`airloom study`: replications of papers, from their sweeps to verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airloom.cli import common, names
from airloom.cli.terminal import busy, emit, interruptible, open_hint, print_json, print_table, quoted, say, steps

if TYPE_CHECKING:
    from airloom.study.document import Document
    from airloom.study.folder import Study

app = typer.Typer(no_args_is_help=True)

_OUT_HELP = "Where the study's sweeps are kept. Default: runs/studies/NAME."
_QUICK_HELP = "Few seeds, one assumption at a time: seconds instead of many minutes."
_REAL_HELP = "Make what the full study has in real time, with real programs, in place of what it simulates."
_READING_HELP = "Another level of an assumption; words of its name are enough. May be given several times."
_SET_HELP = "Another value for a key of the study's scenarios. May be given several times."

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A study (airloom study list), its first author, or a folder with claims.toml.",
        autocompletion=names.studies,
    ),
]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help=_OUT_HELP)]


@app.command("list")
def list_(as_json: common.Json = False) -> None:
    """List the studies: the paper, the score of the full run that ships, and that of the last run in this folder."""
    from airloom.study import document
    from airloom.study.execute import default_place
    from airloom.study.folder import names, open_study

    found: list[dict[str, Any]] = []
    for name in names():
        study = open_study(name)
        paper = study.claims.paper
        kept = document.last(default_place(study.name)) or {}
        found.append(
            {
                "study": name,
                "author": paper.author,
                "authors": list(paper.authors),
                "year": paper.year,
                "title": paper.title,
                "claims": len(study.claims.claims),
                "shipped": (document.shipped(study) or {}).get("score"),
                **{key: kept.get(key) for key in ("depth", "seeds", "score", "score_parts")},
            }
        )
    if as_json:
        print_json(found)
        return
    for each in found:
        emit(f"{each['study']}, or {each['author']}: {', '.join(each['authors'])} ({each['year']}): {each['title']}")
    emit()
    columns = ["study", "full run that ships", "last run here", "seeds", "score", "parts and procedures"]
    rows = [
        [
            each["study"],
            _score(each["shipped"]) or "–",
            each["depth"] or "–",
            str(each["seeds"] or "–"),
            _score(each["score"]) or "not run here",
            _score(each["score_parts"]),
        ]
        for each in found
    ]
    print_table(columns, rows)
    say("next: airloom study report NAME shows the run that ships; airloom study run NAME --quick makes one")


def _score(counts: dict[str, int] | None) -> str:
    return ", ".join(f"{n} {verdict}" for verdict, n in (counts or {}).items())


@app.command("run")
def run(
    name: Name,
    quick: Annotated[bool, typer.Option("--quick", help=_QUICK_HELP)] = False,
    real: Annotated[bool, typer.Option("--real", help=_REAL_HELP)] = False,
    reading: Annotated[list[str] | None, typer.Option(metavar="A=LEVEL", help=_READING_HELP)] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=V", help=_SET_HELP)] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads. Default: one per core.")] = None,
    on: Annotated[str | None, typer.Option(metavar="WHERE", help="A Dask cluster, as for airloom sweep.")] = None,
    out: Out = None,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Make the runs of a study that are not there yet, and judge its claims."""
    from airloom.errors import UsageError
    from airloom.study import execute, text
    from airloom.study.folder import open_study
    from airloom.study.varied import beside, vary

    study, depth = open_study(name), "quick" if quick else "full"
    home = execute.home(study, out, force=force)
    flag = " --quick" if quick else ""
    if not reading and not settings:
        made = _made(study, home / depth, depth, real=real, workers=workers, on=on, force=force)
        if as_json:
            print_json(made)
            return
        emit(text.headline(made))
        say(f"results in {quoted(home / depth)}   next: airloom study report {quoted(name)}{flag}")
        return
    if real:
        raise UsageError("what is made in real time is made at the default alone: without --reading and --set")
    varied = vary(study, reading or [], common.overrides(settings or []))
    for line in varied.says:
        say(line)
    default = _default(study, home, depth)
    if default is None:
        say("the default, to compare with, was not run here yet:")
        default = _made(study, home / depth, depth, workers=workers, on=on, force=force)
    made = _made(varied.study, home / f"{depth}-{varied.name}", depth, workers=workers, on=on, force=force)
    if as_json:
        print_json(made)
        return
    emit(text.headline(made))
    emit(f"default, {default['depth']}: {text.counts(default['score'])}\n")
    print_table(*beside(made, default))
    say(f"results in {quoted(home / f'{depth}-{varied.name}')}")


def _default(study: Study, home: Path, depth: str) -> Document | None:
    """What the default gave: here at this depth, or in the full run that ships."""
    from airloom.study import document

    kept = home / depth / document.NAME
    if kept.is_file():
        return document.read(kept)
    return document.shipped(study) if depth == "full" else None


def _made(
    study: Study,
    place: Path,
    depth: str,
    *,
    real: bool = False,
    workers: int | None = None,
    on: str | None = None,
    force: bool = False,
) -> Document:
    """Makes the runs that are missing, says beforehand how long that may take, and judges."""
    from airloom.study import document, execute
    from airloom.study.outcome import evaluate

    if real:
        execute.check_real_time(study)
    sweeps = execute.planned(study, depth, real=real)
    total = execute.size(sweeps)
    expected = "" if real else execute.expected(document.shipped(study), total, workers)
    runs = f"{total} runs{' in real time' if real else ''}{expected}"
    told = [runs] if total else []
    told += [
        f"the program {p.name}, {p.limit_s / 60:.0f} min at most" for p in execute.programs_of(study, depth, real=real)
    ]
    say(f"{study.name}, {depth}: {'; '.join(told)}; what was made before is kept")
    with interruptible("what was made is kept: the same command goes on with it"), steps(study.name, total) as done:
        execute.run(sweeps, place, workers=workers, on=on, force=force, progress=done)
        execute.run_programs(study, place, depth, real=real)
    with interruptible("what was made is kept: the same command goes on with it"), busy("judging"):
        return _judged(evaluate(study, place, depth), place)


def _judged(outcome: Any, place: Path) -> Document:
    from airloom.study import document

    made = document.of(outcome, place)
    document.save(made, place / document.NAME)
    return made


@app.command("report")
def report(
    name: Name,
    figure: Annotated[
        str | None, typer.Option(metavar="KEY", help="One figure as a file: its key (fig-7), or the paper's number.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="KEY", help="One table: its key (table-1), or the paper's number.")
    ] = None,
    claim: Annotated[str | None, typer.Option(metavar="ID", help="One claim with its parts.")] = None,
    png: Annotated[
        bool, typer.Option("--png", help="The figure as PNG, as it is of a run that ships; of your own: SVG.")
    ] = False,
    pdf: Annotated[bool, typer.Option("--pdf", help="The figure as PDF, of a run of your own.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="The last quick run, even if there is a full one.")] = False,
    out: Out = None,
    as_json: common.Json = False,
) -> None:
    """Print claim by claim: the paper, ours with its interval, and the verdict; deviations first.

    What was not run here is shown from the full run that ships with the package.
    """
    from airloom.errors import UsageError
    from airloom.study import document, execute, pictures, text
    from airloom.study.folder import open_study
    from airloom.study.outcome import evaluate

    if (png or pdf) and figure is None:
        raise UsageError("--png and --pdf go with --figure KEY")
    study = open_study(name)
    home = out or execute.default_place(study.name)
    depth = "quick" if quick or not any((home / "full").glob("*/runs.parquet")) else "full"
    place = home / depth
    was_run = any(place.glob("*/runs.parquet"))
    shipped = None if quick or was_run else document.shipped(study)
    if shipped is not None:
        say(f"the full run that ships, of airloom {shipped['version']}; yours: airloom study run {quoted(name)}")
    if figure is not None:
        # Without judging first: a figure needs its own tables alone.
        listed = shipped or {
            "study": study.name,
            "depth": depth,
            "figures": [{"key": key} for key in study.figures],
        }
        key, kind = (
            document.entry(listed, "figures", figure)["key"],
            "pdf" if pdf else "png" if png or shipped else "svg",
        )
        if shipped is not None:
            file = pictures.from_shipped(study, home / document.SHIPPED, key, kind)
        else:
            if not was_run:
                evaluate(study, place, depth)  # says what to do
            file = pictures.one(study, place, key, kind)
        if as_json:
            print_json({"figure": key, "file": str(file)})
        else:
            emit(str(file))
        return
    with interruptible(), busy("judging"):
        found = shipped or _judged(evaluate(study, place, depth), place)
    if claim is not None:
        _claim(found, claim, as_json=as_json)
    elif table is not None:
        entry = document.entry(found, "tables", table)
        if as_json:
            print_json(entry)
            return
        shown = text.own_table(entry)
        emit(shown.title)
        print_table(shown.columns, shown.rows)
        if entry["caption"]:
            emit(entry["caption"])
    elif as_json:
        print_json(found)
    else:
        _whole(study, found, place, home, is_shipped=shipped is not None)


def _claim(found: Document, name: str, *, as_json: bool) -> None:
    from airloom.study import document, text

    rows = document.claim(found, name)
    if as_json:
        print_json(rows)
        return
    for row in rows:
        emit(f"{row['id']}  {row['verdict']}  ({row['kind']}; {row['where']})")
        emit(f"  says   {text.full_says(found, row)}")
        if row["paper"] != row["says"]:
            emit(f"  paper  {text.paper(row)}")
        emit(f"  ours   {text.ours(row)}")
        emit(f"  why    {text.why(found, row)}")
        rests = ", ".join([*row["assumptions"], *row["tied_to"]])
        if rests:
            emit(f"  rests on {rests}")


def _whole(study: Study, found: Document, place: Path, home: Path, *, is_shipped: bool) -> None:
    from airloom.study import document, page, text

    emit(text.headline(found))
    if said := text.on_deviations(found):
        emit(f"{said}:")
    for line in text.deviations(found):
        emit(f"  {line}")
    for table in (*text.terminal(found), *text.own(found)):
        emit(f"\n{table.title}")
        print_table(table.columns, table.rows)
    if is_shipped:
        target = home / document.SHIPPED / "report.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        made = page.build_shipped(study, found, target)
    else:
        made = page.build(study, found, place, place / "report.html")
    say(f"with figures in {quoted(made)}   next: {open_hint(made)}")


@app.command("copy")
def copy(
    name: Name,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is not there yet.")],
) -> None:
    """Copy a study into a folder of your own, to change what it assumes, asks or draws."""
    from airloom.study.folder import copy_study, open_study

    copy_study(open_study(name), folder)
    say(f"next: edit {quoted(folder / 'assumptions.toml')}; airloom study run {quoted(folder)} --quick")
