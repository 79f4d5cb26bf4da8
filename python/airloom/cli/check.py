"""`airloom check`: is this scenario right, and what does it mean?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from airloom.cli import common, names
from airloom.cli.terminal import emit, print_json, quoted, say
from airloom.reference import addresses


def check(
    scenario: Annotated[str, typer.Argument(help=common.SCENARIO_HELP, autocompletion=names.scenarios)],
    settings: names.Settings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scenario as understood.")] = False,
) -> None:
    """Reads the scenario; errors name file, line, what was found and the valid choices."""
    read = common.load(scenario, settings or [])
    understood = read.understood
    if as_json:
        print_json(understood)
        return
    emit(f"{read.name}: ok")
    if read.title:
        emit(f"  {read.title}")
    for name, host in understood["hosts"].items():
        where = ", ".join(addresses(understood, name)[:4])
        emit(f"  host {name}{_times(host)}: {_runs(host)} ({where})")
    for name, link in understood["links"].items():
        emit(f"  link {name}: {link['bearer']} between {' and '.join(link['between'])}")
    common.say_if_idle(read, scenario)
    say(f"next: airloom run {quoted(scenario)}")


def _times(host: dict[str, Any]) -> str:
    return f" x {host['count']}" if "count" in host else ""


def _runs(host: dict[str, Any]) -> str:
    what = [next(iter(app)) for app in host.get("app", [])]
    if host.get("proxy"):
        what.append(next(iter(host["proxy"])))
    if host.get("real"):
        what.append("real programs when emulated")
    return ", ".join(what) or ("passes on" if host.get("forward") else "nothing runs here")
