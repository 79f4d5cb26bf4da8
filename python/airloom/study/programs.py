"""`programs.toml` of a study: programs of its own that measure what no sweep can, such as the time an encoder takes.

A program is run once, after the sweeps, and writes JSON to its standard output; `study.py` reads it with
`Data.program`. What it measured depends on the machine: a claim that needs it is not covered by a quick run, unless the
program says that it belongs there.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from airloom import fields, interpreter
from airloom.errors import UsageError
from airloom.places import write_whole

#: How thoroughly a study is made: `quick` is for tests, `full` for the numbers.
DEPTHS = ("quick", "full")


class Program(NamedTuple):
    """A program of a study."""

    name: str
    #: Its words; `{study}` is the study's folder, `{python}` this interpreter, `{depth}` the depth, and `{place}` the
    #: folder of the study's results, for what a program keeps in case it is interrupted.
    command: tuple[str, ...]
    #: At which depths it is run.
    depths: tuple[str, ...]
    #: Seconds after which it is given up.
    limit_s: float
    #: Does it make laboratories, in real time?
    is_real_time: bool = False


def read(path: Path) -> dict[str, Program]:
    """The programs in a file, by name; none if there is no file."""
    if not path.is_file():
        return {}
    return {name: _program(name, entry, f"{path}: [{name}]") for name, entry in fields.read_toml(path).items()}


def _program(name: str, entry: Any, where: str) -> Program:
    if not isinstance(entry, Mapping) or not entry.get("command"):
        raise UsageError(
            f"{where}: a program is command = [..], and depths = [..], real = true, limit_s = .. if wanted"
        )
    fields.check(entry, ("command", "depths", "real", "limit_s"), where)
    depths = fields.texts(entry, "depths", where, ("full",))
    for depth in depths:
        if depth not in DEPTHS:
            raise UsageError(f"{where}: depth {depth!r}; valid: {', '.join(DEPTHS)}")
    words = fields.texts(entry, "command", where)
    limit_s = entry.get("limit_s", 600)
    if isinstance(limit_s, bool) or not isinstance(limit_s, int | float):
        raise UsageError(f"{where}: limit_s is a number of seconds, not {limit_s!r}")
    return Program(name, words, depths, float(limit_s), bool(entry.get("real", False)))


def filled(command: Sequence[str], study: Path, **more: object) -> list[str]:
    """A command with `{study}`, the study's folder, `{python}`, this interpreter, and what else is named in braces."""
    meanings = {"study": study, **more}
    found: list[str] = []
    for word in command:
        if word == "{python}":
            found += interpreter.python()
            continue
        for name, meaning in meanings.items():
            word = word.replace(f"{{{name}}}", str(meaning))
        found.append(word)
    return found


def run(program: Program, study: Path, place: Path, depth: str = "full") -> None:
    """Runs it, unless its results are there already. Raises `UsageError` with its last words if it fails."""
    kept = place / f"{program.name}.json"
    if kept.is_file():
        return
    # As for study.py, what lies beside a program can be imported.
    path = os.pathsep.join(filter(None, (str(study), os.environ.get("PYTHONPATH"))))
    words = filled(program.command, study, depth=depth, place=place.resolve())
    try:
        done = subprocess.run(
            words,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=program.limit_s,
            check=True,
        )
        found = json.loads(done.stdout)
    except subprocess.CalledProcessError as error:
        raise UsageError(f"{program.name}: {((error.stderr or '').strip().splitlines() or ['failed'])[-1]}") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"{program.name}: no end within {program.limit_s:g} s") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{program.name}: {error}") from None
    place.mkdir(parents=True, exist_ok=True)
    write_whole(kept, json.dumps(found, indent=1))
