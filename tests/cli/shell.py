"""Runs the command line as a shell would."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from airloom.cli import call


class Done(NamedTuple):
    code: int
    out: str
    err: str


def airloom(*arguments: str | Path, **environment: str) -> Done:
    """Runs `airloom` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "airloom", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, **environment},
    )
    return Done(done.returncode, done.stdout, done.stderr)


def inside(*arguments: str | Path) -> Done:
    """Runs `airloom` in this process, which takes as long as what it does: for many commands that do little."""
    # Some write octets.
    written = io.BytesIO()
    out, err = io.TextIOWrapper(written, "utf-8", newline=""), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = call([*map(str, arguments)])
    out.flush()
    return Done(code, written.getvalue().decode(), err.getvalue())
