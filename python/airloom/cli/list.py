"""`airloom list`: what can stand in a scenario, generated from the same types that read it."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airloom.cli import common, names
from airloom.cli.terminal import emit, print_entries, print_json, print_text, quoted, say

if TYPE_CHECKING:
    from airloom.reference import Key


def list_(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="bearers, transports, apps, proxies, presets, scenarios, studies, or measures: what the numbers of a "
            "summary and the columns of tables mean.",
            autocompletion=names.kinds,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Argument(help="One of them: prints its keys, or what it means.", autocompletion=names.entries)
    ] = None,
    picture: Annotated[
        bool, typer.Option("--picture", help="Of a scenario: draw its network into NAME.svg in the current folder.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --picture: where to (.svg, .png or .pdf).")
    ] = None,
    width_mm: common.Width = None,
    as_json: common.Json = False,
) -> None:
    """Prints a registry, or the reference of one entry."""
    from airloom import reference, scenario

    common.check_width(width_mm, "--picture", is_drawn=bool(picture or out))
    if picture or out:
        _picture(kind, name, out, width_mm)
    elif kind == "measures":
        _measures(name, as_json)
    elif kind is None:
        found = {k: reference.names(k) for k in reference.KINDS}
        if as_json:
            print_json(found)
        else:
            # Of the measures there are too many.
            found["measures"] = ["what the numbers of a summary and the columns of tables mean"]
            print_entries((k, ", ".join(v)) for k, v in found.items())
            say("next: airloom list KIND NAME prints the keys of one of them")
    elif name is None:
        summaries = reference.summaries(kind)
        of_studies = scenario.of_studies() if kind == "scenarios" else {}
        if as_json:
            print_json(summaries | of_studies)
        else:
            print_entries(summaries.items())
            if of_studies:
                emit("\nof studies:")
                print_entries(of_studies.items())
            say(f"next: airloom list {kind} NAME")
    elif kind == "scenarios":
        if as_json:
            print_json(scenario.load(name).understood)
        else:
            emit(scenario.load(name).text.decode().rstrip())
            say(f"next: airloom run {name}")
    elif kind == "presets":
        _preset(name, as_json)
    elif kind == "studies":
        _study(name, as_json)
    elif as_json:
        print_json(reference.schema(kind, name))
    else:
        print_text(f"{name}: {reference.description(kind, name)}")
        if rows := reference.keys(kind, name):
            emit("\nkeys, with type and default:")
            print_entries((_head(key), key.meaning) for key in rows)
        for profile in reference.profiles(kind, name):
            emit()
            print_text(f"profile {profile.name}: {profile.source}")
            if profile.differences:
                emit("where its values are not those of the first:")
                values = profile.differences.items()
                print_entries((f"  {key}", json.dumps(value, ensure_ascii=False)) for key, value in values)
        if controllers := reference.choices(kind, name, "congestion"):
            emit("\nvalues of congestion:")
            print_entries(controllers)


def _head(key: Key) -> str:
    """`queue: text = "100 packets"`."""
    default = f" {key.default}" if key.default == "(needed)" else f" = {key.default}" if key.default else ""
    return f"{key.name}: {key.type}{default}"


def _picture(kind: str | None, name: str | None, out: Path | None, width_mm: float | None) -> None:
    from airloom import plot, scenario
    from airloom.errors import UsageError

    if kind != "scenarios" or name is None:
        raise UsageError("--picture draws a scenario: airloom list scenarios NAME --picture")
    target = out or Path(f"{Path(name).stem}.svg")
    plot.save_as(plot.topology(scenario.load(name).understood, width_mm), target)
    emit(str(target))
    say(f"next: xdg-open {quoted(target)}")


def _measures(name: str | None, as_json: bool) -> None:
    from airloom import measures

    found = measures.catalogue(name)
    if as_json:
        print_json(found)
        return
    parts: list[tuple[str, dict[str, dict[str, Any]]]] = [
        (title, {key: one for key, one in found["measures"].items() if one["group"] == group})
        for group, title in measures.groups().items()
    ]
    parts += [(f"Table {table}: {one['about']}", one["columns"]) for table, one in found["tables"].items()]
    shown = [(title, entries) for title, entries in parts if entries]
    for number, (title, entries) in enumerate(shown):
        if number:
            emit()
        print_text(title)
        print_entries((f"{key} ({one['unit']})" if one["unit"] else key, _meaning(one)) for key, one in entries.items())
    say("next: airloom list measures NAME" if name is None else "next: airloom list measures")


def _meaning(entry: dict[str, Any]) -> str:
    """What it is, and what gives it."""
    from airloom.measures import COMPONENTS

    of = ", ".join(COMPONENTS.get(one, one) for one in entry.get("of", ()))
    return f"{entry['meaning']} Given by {of}." if of else str(entry["meaning"])


def _preset(name: str, as_json: bool) -> None:
    from airloom.errors import UsageError
    from airloom.presets import describe, presets

    preset = presets().get(name)
    if preset is None:
        raise UsageError(f"no {name!r} among the presets; valid: {', '.join(presets())}")
    if as_json:
        print_json(preset._asdict())
    else:
        for line in describe(preset).splitlines():
            emit("\n".join(wrap(line, 80, subsequent_indent=" " * 10)))
        say(f"next: airloom emulate {name}")


def _study(name: str, as_json: bool) -> None:
    from airloom.study import open_study

    study = open_study(name)
    if as_json:
        print_json({claim.id: claim.says for claim in study.claims.claims})
    else:
        print_text((study.folder / "README.md").read_text(encoding="utf-8").rstrip())
        say(f"next: airloom study run {name} --quick")
