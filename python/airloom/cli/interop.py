"""`airloom interop`: the QUIC interop runner's network, and its cases between endpoint programs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import common
from airloom.cli.terminal import emit, interruptible, print_json, print_table, quoted, say, steps, verdict_follows
from airloom.errors import UsageError

app = typer.Typer(no_args_is_help=True)


@app.command("run", help="Run cases of the QUIC interop runner between endpoint programs, without containers.")
def run(
    client: Annotated[
        str,
        typer.Option("--client", "-c", metavar="NAME,..", help="Endpoints as clients: shipped ones, or TOML files."),
    ],
    server: Annotated[str, typer.Option("--server", "-s", metavar="NAME,..", help="Endpoints as servers.")],
    tests: Annotated[
        str | None,
        typer.Option("--tests", "-t", metavar="TEST,..", help="Which cases. Default: all but measurements."),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(metavar="WORDS", help="Another network: such as 'cellular --preset=wpt/3g', or a network.toml."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32, help="Seed of losses, files and so on.")] = 1,
    tries: Annotated[
        int,
        typer.Option(
            min=1, max=9, help="How often a case is run, each time with another seed, until it does not fail."
        ),
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Logs, captures, result.json, matrix.html and .md. Default: new, under runs/."
        ),
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Ends with 0 if nothing failed, with 1 otherwise."""
    from airloom.interop import matrix, runner
    from airloom.interop.endpoint import find
    from airloom.places import new_place

    cases = runner.chosen(tests)
    # Twice the same file is once.
    clients, servers = (list({e.file: e for e in map(find, _names(given))}.values()) for given in (client, server))
    files: dict[str, Path] = {}
    for each in (*clients, *servers):
        other = files.setdefault(each.name, each.file)
        if other != each.file:
            raise UsageError(
                f"{quoted(other)} and {quoted(each.file)} are both called {each.name}: change `name` in one"
            )
    if scenario is not None:
        runner.check_network(scenario)
    place = out or new_place("interop", "-".join([*(e.name for e in clients), *(e.name for e in servers)])[:60])
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise UsageError(f"{quoted(place)} is there already and not empty")
    place.mkdir(parents=True, exist_ok=True)
    begun = time.time()
    total = len(clients) * len(servers) * len(cases)
    with interruptible(lambda: f"what is done is in {quoted(place)}"), steps("interop", total) as step:
        played = runner.run(
            clients, servers, cases, place, seed=seed, scenario=scenario, tries=tries, say=say, told=step
        )
    found = runner.document(played, clients, servers, place, (begun, time.time()))
    (place / "result.json").write_text(json.dumps(found, indent=2) + "\n")
    (place / "matrix.html").write_text(matrix.page(found))
    (place / "matrix.md").write_text(matrix.markdown(found))
    with verdict_follows():
        if as_json:
            print_json(found)
        else:
            rows = [[p.client, p.server, p.case.name, p.result, p.more] for p in played]
            print_table(["client", "server", "test", "result", ""], rows)
    say(f"results in {quoted(place)}   next: open {quoted(place / 'matrix.html')}")
    failed = sum(p.result == runner.FAILED for p in played)
    raise typer.Exit(1 if failed else 0)


def _names(text: str) -> list[str]:
    names = list(dict.fromkeys(filter(None, (name.strip() for name in text.split(",")))))
    if not names:
        raise UsageError("an endpoint is missing; airloom interop list shows them")
    return names


@app.command("list", help="List the shipped endpoints, the cases, and the words of networks.")
def list_() -> None:
    """Three tables."""
    from airloom.interop.cases import CASES, MEASUREMENTS
    from airloom.interop.endpoint import find, shipped

    rows = []
    for name in sorted(shipped()):
        endpoint = find(name)
        rows.append([name, ", ".join(role for role in ("client", "server") if endpoint.plays(role)), endpoint.url])
    print_table(["endpoint", "plays", ""], rows)
    emit()
    print_table(["test", "", "network"], [[c.name, c.desc, c.scenario] for c in (*CASES, *MEASUREMENTS)])


@app.command(
    "sim", help="Be the interop runner's `sim` container: eth0 and eth1 with the link of SCENARIO between them."
)
def sim(
    scenario: Annotated[
        str | None, typer.Argument(metavar="[WORDS]", help="The network's words. Default: the variable SCENARIO.")
    ] = None,
    logs: Annotated[Path, typer.Option(metavar="DIR", help="Where the captures go.")] = Path("/logs"),
    left: Annotated[str, typer.Option(metavar="DEVICE", help="The device at the client's side.")] = "eth0",
    right: Annotated[str, typer.Option(metavar="DEVICE", help="The device at the server's side.")] = "eth1",
    seed: Annotated[int, typer.Option(min=0, max=2**32, help="Seed of losses and so on.")] = 1,
) -> None:
    """Waits for WAITFORSERVER, then forwards until it is told to end."""
    from airloom.interop import words
    from airloom.interop.sim import run as forward

    meant = words.parse(scenario or os.environ.get("SCENARIO") or words.DEFAULT)
    with interruptible("the captures end here"):
        forward(meant, (left, right), logs, os.environ.get("WAITFORSERVER", ""), seed=seed, say=say)
