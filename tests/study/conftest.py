"""Runs that several files of tests look at."""

import fcntl
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import inside

#: Puts the quick run of a shipped study below a folder, and returns what the command said.
QuickRun = Callable[[str, Path], dict[str, Any]]


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> QuickRun:
    """Made once for all workers: each has a copy, whoever comes first makes it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def put(name: str, to: Path) -> dict[str, Any]:
        made, words = shared / f"quick-{name}", shared / f"quick-{name}.json"
        with (shared / f"quick-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not words.exists():
                done = inside("study", "run", name, "--quick", "--out", made, "--json")
                assert done.code == 0, done.err
                words.write_text(done.out)
        shutil.copytree(made, to, dirs_exist_ok=True)
        said: dict[str, Any] = json.loads(words.read_text())
        return said

    return put
