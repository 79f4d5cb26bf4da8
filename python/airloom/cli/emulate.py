"""`airloom emulate`: a scenario, a bearer or a preset in real time, with real programs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom import digest
from airloom._core import DriveError
from airloom.cli import common, names
from airloom.cli.terminal import interruptible, print_json, quoted, say, say_error

if TYPE_CHECKING:
    from airloom.run import Run
    from airloom.scenario import Scenario

#: As `timeout` and `env` do: the wrapper itself failed. Any other code is the command's own.
_WRAPPER_FAILED = 125
#: Namespaces cannot be made here.
_NOT_ALLOWED = 3
#: With `--strict`: its numbers are not valid.
_NOT_VALID = 4


def emulate(
    name: Annotated[
        str,
        typer.Argument(
            help="A scenario (file or shipped), else a bearer or preset: that has a simulated web server at 10.77.0.1.",
            autocompletion=names.what_to_emulate,
        ),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="Runs in the first real host. Default: a shell."),
    ] = None,
    settings: names.LinkSettings = None,
    real: Annotated[
        list[str] | None,
        typer.Option("--real", metavar="HOST", help="Make this host of the scenario real. May be repeated."),
    ] = None,
    outside: Annotated[
        bool,
        typer.Option("--outside", help="Give the laboratory a way to the outside world, behind the far end."),
    ] = False,
    loopback: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PORT,..",
            help="Let the laboratory reach these TCP ports of this machine's loopback, as host.airloom.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=2**64 - 1, help="Seed of all random numbers.")] = None,
    record: Annotated[
        str | None,
        typer.Option(
            metavar="KIND,..", help="Record these as well while it runs: pcapng, packets, congestion, objects, qlog."
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show rates, queue and radio state in the terminal's title, or on stderr.")
    ] = False,
    control: Annotated[
        bool,
        typer.Option(
            "--control",
            help="Show the links and their states, and release and set them up with keys. COMMAND reads nothing then.",
        ),
    ] = False,
    control_page: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", min=0, max=65535, help="The same as a page on this port of loopback; 0: any free port."
        ),
    ] = None,
    control_socket: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Take toxics of the links as lines of JSON, on a Unix socket of yours alone."
        ),
    ] = None,
    keep_awake: Annotated[
        bool,
        typer.Option(
            help="Do not let processors fall asleep while it runs (`run.keep_awake`): an idle one is woken late.",
        ),
    ] = True,
    strict: Annotated[
        str | None,
        typer.Option(
            metavar="BOUND",
            help="The run is valid if the 99th percentile of lateness is at most this, such as 500us "
            "(`run.lateness_limit`); end with 4 if it is not valid.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The result folder. Default: a new one under runs/.")
    ] = None,
    force: common.Force = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document on stdout; what the command prints goes to stderr.")
    ] = False,
) -> None:
    """Runs COMMAND in the first real host, prints the link's figures, and passes the exit code on."""
    from airloom import reference
    from airloom.cli.control import views
    from airloom.cli.meter import meter
    from airloom.control import REPLAY
    from airloom.emulation import emulate as run
    from airloom.emulation import find
    from airloom.run import with_records
    from airloom.scenario import shipped, study_of

    ports = common.ports(loopback or [])
    read = find(name, common.overrides(settings or []), real or [], outside, ports)
    if strict is not None:
        read = common.strict(read, strict)
    common.note_closed_ports(ports)
    if record:
        read = with_records(read, *(kind.strip() for kind in record.split(",")))
    if not keep_awake:
        read = read.with_keys({"run.keep_awake": False})
    label = _label(read)
    # The keys are for the links then, and not for a shell.
    words = command or (None if control else _shell(read, label))
    if seed is not None:
        read = read.with_seed(seed)
    try:
        with (
            interruptible(),
            _stdout_is_for_json(as_json),
            _variables(name, read, label, control_socket),
            meter(label, watch and not control) as shown,
            views(read, control, control_page, control_socket) as ready,
        ):
            done, code = run(read, words, out=out, force=force, meter=shown, ready=ready)
    except DriveError as error:
        instead = "; TCP and UDP ports go over the same link without namespaces: airloom serve link"
        say_error(f"{error}{instead if error.exit_code == _NOT_ALLOWED and not outside else ''}")
        # A program that could not be started has the shell's codes; wrong use and missing rights keep theirs.
        raise typer.Exit(_WRAPPER_FAILED if error.exit_code == 4 else error.exit_code) from None
    known = Path(name).is_file() or name in shipped() or study_of(name) is not None
    kind = "bearers" if name in reference.names("bearers") else "presets"
    then = f"airloom run {quoted(name)}" if known else f"airloom list {kind} {quoted(name)}"
    if "changes" in done.manifest:
        then = f"airloom run {quoted(done.folder / REPLAY)}"
    _show(done, as_json, then)
    if strict is not None and done.verdict == "invalid":
        why = "; ".join(done.verdict_reasons)
        say_error(f"--strict {strict}: not valid: {why}; the command's own exit code was {code}")
        code = _NOT_VALID
    raise typer.Exit(code)


def _label(scenario: Scenario) -> str:
    """What the first real host is behind, in a few words: `umts-dch 384/64 kbit/s`."""
    understood = scenario.understood
    real = next((n for n, h in understood["hosts"].items() if h.get("real")), None)
    for link in understood["links"].values():
        if any(host.split("[")[0] == real for host in link["between"]):
            rate = link.get("rate")
            ways = [rate["downlink"], rate["uplink"]] if isinstance(rate, dict) else [rate] if rate else []
            return f"{link['bearer']} {_rates(list(dict.fromkeys(map(str, ways))))}".strip()
    return scenario.name


def _rates(ways: list[str]) -> str:
    """`384/64 kbit/s` of two rates, down before up."""
    if both := re.fullmatch(r"([0-9.]+)(\D+)/([0-9.]+)\2", "/".join(ways)):
        return f"{both[1]}/{both[3]} {both[2]}"
    return " / ".join(re.sub(r"^([0-9.]+)(\D+)$", r"\1 \2", way) for way in ways)


def _shell(scenario: Scenario, label: str) -> list[str]:
    """The person's own shell; at a terminal they are told where it is and whom they can reach."""
    if sys.stdin.isatty():
        from airloom.reference import addresses_of_all

        hosts = ", ".join(f"{name} {' '.join(own)}" for name, own in addresses_of_all(scenario.understood).items())
        say(f"a shell behind {label}; leave it with `exit`. Hosts: {hosts}")
    return [os.environ.get("SHELL") or "/bin/sh"]


@contextmanager
def _variables(name: str, scenario: Scenario, label: str, socket: Path | None) -> Iterator[None]:
    """Tells programs that are started meanwhile what they are behind.

    Shells have the link in their prompt; links of nested shells follow each other.
    """
    from airloom.emulation import exported

    nested = os.environ.get("AIRLOOM_PROMPT", "")
    link = f"{nested}[{label}] "
    # bash sets its prompt anew in its own files, so it is done before each prompt; others take PS1 as it is.
    command = 'case $PS1 in "$AIRLOOM_PROMPT"*) ;; *) PS1="$AIRLOOM_PROMPT$PS1" ;; esac'
    others = os.environ.get("PROMPT_COMMAND", "")
    wanted = {
        **exported(name, scenario),
        **({} if socket is None else {"AIRLOOM_CONTROL": str(socket.absolute())}),
        "AIRLOOM_PROMPT": link,
        "PS1": f"{link}$ ",
        "PROMPT_COMMAND": others if command in others else f"{command}{f'; {others}' if others else ''}",
    }
    kept = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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
                "verdict": done.verdict,
                "verdict_reasons": done.verdict_reasons,
                "summary": summary,
            }
        )
    say(f"time: {digest.number(summary.get('simulated_s', 0))} s")
    for what, answer in digest.asked(summary):
        say(f"{what}: {answer}")
    parts = [f"{summary.get('packets', 0):.0f} packets", f"{summary.get('lost', 0):.0f} lost"]
    if "queue_max_bytes" in summary:
        parts.append(f"longest queue {summary['queue_max_bytes'] / 1000:.3g} kB")
    if "lateness_p99_us" in summary:
        parts.append(f"lateness p99 {summary['lateness_p99_us'] / 1000:.2g} ms")
    if processors := done.manifest.get("engine", {}).get("processors"):
        parts.append(processors)
    word = "NOT valid" if done.verdict == "invalid" else done.verdict or "valid"
    say(f"{', '.join(parts)}: {': '.join([word, *filter(None, ['; '.join(done.verdict_reasons)])])}")
    if missing := summary.get("records_lost"):
        say(f"the disk was too slow: {missing:.0f} records are missing, in tables, capture, qlogs and secrets")
    say(f"results in {quoted(done.folder)}   next: {then}")
