"""`airloom doctor`: what this machine allows, and what to install."""

from __future__ import annotations

import typer

from airloom.cli import common
from airloom.cli.terminal import interruptible, print_json, print_table, say, steps, verdict_follows


def doctor(as_json: common.Json = False) -> None:
    """Looks at rights, devices and programs, and measures; exit code 3 if emulation is not possible here."""
    from airloom.doctor import MEASUREMENTS, examine, measure

    with interruptible("nothing is left"):
        findings = examine()
        if all(f.ok for f in findings if f.needed):
            with steps("measuring", MEASUREMENTS) as done:
                findings += measure(done)
    with verdict_follows():
        if as_json:
            print_json([f._asdict() for f in findings])
        else:
            print_table(["what", "state", "found"], [[f.what, _state(f.ok, f.needed), f.says] for f in findings])
    broken = [f.what for f in findings if f.needed and not f.ok]
    if broken:
        say(f"emulation is not possible here ({', '.join(broken)}); simulation is: airloom run umts-page")
        raise typer.Exit(3)
    say("simulation and emulation are possible   next: airloom emulate umts-page")


def _state(ok: bool, needed: bool) -> str:
    if ok:
        return "ok"
    return "missing" if needed else "not found"
