"""Runs the command line as a shell would."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


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
