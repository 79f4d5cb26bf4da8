"""`airloom emulate`: a scenario or a bearer in real time, with real programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom._core import DriveError
from airloom.cli import common
from airloom.cli.terminal import interruptible, print_json, quoted, say, say_error

if TYPE_CHECKING:
    from airloom.run import Run
    from airloom.scenario import Scenario

HELP = "Run real programs through a scenario's network, or through one bearer, in real time."

#: As `timeout` and `env` do: the wrapper itself failed. Any other code is the command's own.
_WRAPPER_FAILED = 125


def emulate(
    name: Annotated[
        str,
        typer.Argument(
            help="A scenario file, a shipped scenario, or a bearer: that has a simulated web server at 10.77.0.1.",
            autocompletion=common.complete_scenario,
        ),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="Runs in the first real host. Default: a shell."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=V", help="Set a key of the scenario, or of the bearer. May be repeated."),
    ] = None,
    real: Annotated[
        list[str] | None,
        typer.Option("--real", metavar="HOST", help="Make this host of the scenario real. May be repeated."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=2**64 - 1, help="Seed of all random numbers.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The result folder. Default: a new one under runs/.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document on stdout; what the command prints goes to stderr.")
    ] = False,
) -> None:
    """Runs COMMAND in the first real host, prints the link's figures, and passes the exit code on."""
    from airloom.emulation import emulate as run
    from airloom.scenario import shipped

    read = _scenario(name, settings or [], real or [])
    words = command or _shell(read)
    try:
        with interruptible(), _stdout_is_for_json(as_json):
            done, code = run(read, words, seed=seed, out=out)
    except DriveError as error:
        say_error(str(error))
        # A program that could not be started has the shell's codes; wrong use and missing rights keep theirs.
        raise typer.Exit(_WRAPPER_FAILED if error.exit_code == 4 else error.exit_code) from None
    known = Path(name).is_file() or read.name in shipped()
    _show(done, as_json, then=f"airloom run {quoted(name)}" if known else f"airloom list bearers {name}")
    raise typer.Exit(code)


def _scenario(name: str, settings: list[str], real: list[str]) -> Scenario:
    """A scenario, else a bearer; the error names the choices of both."""
    from airloom import reference
    from airloom.errors import UsageError
    from airloom.scenario import for_bearer, load, shipped

    overrides = common.overrides(settings)
    bearers = reference.names("bearers")
    if Path(name).is_file() or name in shipped():
        if name in bearers:
            raise UsageError(f"{name!r} is a scenario and a bearer: rename the file, or say ./{name}")
        return load(name, overrides, real)
    if name in bearers:
        if real:
            raise UsageError(f"--real: {name!r} is a bearer, its host `mobile` is real already")
        return for_bearer(name, overrides)
    raise UsageError(
        f"nothing called {name!r} to emulate: no such file; "
        f"valid scenarios: {', '.join(shipped())}; valid bearers: {', '.join(bearers)}"
    )


def _shell(scenario: Scenario) -> list[str]:
    """The person's own shell; at a terminal they are told where it is and whom they can reach."""
    if sys.stdin.isatty():
        from airloom.reference import addresses

        understood = scenario.understood
        hosts = ", ".join(f"{name} {' '.join(addresses(understood, name))}" for name in understood["hosts"])
        say(f"a shell in {scenario.name}; leave it with `exit`. Hosts: {hosts}")
    return [os.environ.get("SHELL") or "/bin/sh"]


@contextmanager
def _stdout_is_for_json(wanted: bool) -> Iterator[None]:
    """While the command runs, what it prints on stdout goes to stderr."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _show(done: Run, as_json: bool, then: str) -> None:
    summary = done.summary
    if as_json:
        print_json(
            {
                "folder": str(done.folder),
                "run_id": done.manifest["run_id"],
                "exit_code": done.manifest["exit_code"],
                "valid": bool(summary.get("valid")),
                "summary": summary,
            }
        )
    parts = [f"{summary.get('packets', 0):.0f} packets", f"{summary.get('lost', 0):.0f} lost"]
    if "rlc_resent" in summary:
        parts.append(f"{summary['rlc_resent']:.0f} RLC retransmissions")
    if "queue_max_bytes" in summary:
        parts.append(f"longest queue {summary['queue_max_bytes'] / 1000:.3g} kB")
    if "lateness_p99_us" in summary:
        parts.append(f"lateness p99 {summary['lateness_p99_us'] / 1000:.2g} ms")
    wrong = "NOT valid: packets left the model too late, or were lost outside of it"
    say(f"{', '.join(parts)}: {'valid' if summary.get('valid') else wrong}")
    say(f"results in {quoted(done.folder)}   next: {then}")
