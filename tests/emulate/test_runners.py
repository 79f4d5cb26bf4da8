"""Other languages' test runners behind `airloom emulate`: the examples, and that they fail where they should."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import needs, needs_laboratory
from tests.documents import ROOT

pytestmark = pytest.mark.emulate

EXAMPLES = ROOT / "integrations" / "examples"

#: Folder, program and arguments, and what it prints of a test that has passed.
RUNNERS = {
    "go": (["go", "test", "-count=1", "-v", "./..."], "--- PASS: TestAFileComesInTimeOverTheLink"),
    "rust": (["cargo", "test", "--offline", "--quiet", "--test", "slow", "--", "--nocapture"], "1 passed"),
    "node": (["node", "--test"], "# pass 1"),
    "gradle": (
        ["gradle", "--offline", "--no-daemon", "-Pjars=/usr/share/java", "test"],
        "aFileComesInTimeOverTheLink PASSED",
    ),
    "hey": (["sh", "slow.sh"], "3 of 3 answers"),
}

#: Those whose runner is nightly's.
SLOW = ("gradle", "hey")


def _run(name: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The example's runner, with `words` in front."""
    command, _ = RUNNERS[name]
    program = needs(command[0])
    if name == "hey":
        needs(name)
    if not (folder / name).exists():
        shutil.copytree(EXAMPLES / name, folder / name)
    return subprocess.run(
        [*words, program, *command[1:]],
        cwd=folder / name,
        env={**os.environ, "CARGO_TARGET_DIR": str(folder / "target")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in RUNNERS])
def test_a_runner_passes_behind_the_link_and_fails_without_it(name: str, tmp_path: Path) -> None:
    needs_laboratory()
    airloom = [sys.executable, "-m", "airloom", "emulate"]
    behind = _run(name, tmp_path, *airloom, "wpt/3g", "--seed", "7", "--out", str(tmp_path / "slow"), "--")
    assert behind.returncode == 0, behind.stdout + behind.stderr
    assert RUNNERS[name][1] in behind.stdout
    assert "over wpt/3g, seed 7" in behind.stdout
    # Its exit code is the command's: too fast a link fails it, and so does none.
    fast = _run(name, tmp_path, *airloom, "wireline", "--out", str(tmp_path / "fast"), "--")
    assert fast.returncode not in (0, 125, 126, 127), fast.stdout + fast.stderr
    assert "it took" in fast.stdout + fast.stderr or "panicked" in fast.stdout + fast.stderr
    assert _run(name, tmp_path).returncode != 0
