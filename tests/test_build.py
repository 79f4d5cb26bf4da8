"""The tests and the Python module are one build: libraries have the same features in both."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def packages(*selection: str) -> set[str]:
    """Each package that cargo builds for a selection, with its version and features, a line each."""
    command = ["cargo", "tree", "--locked", "--format", "{p} {f}", "--prefix", "none", "--no-dedupe", *selection]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {line.removesuffix(" (*)") for line in printed.splitlines() if line}


def test_the_module_and_the_tests_share_what_is_built() -> None:
    module = packages("--package", "airloom-py", "--edges", "normal,build")
    tests = packages("--workspace", "--exclude", "airloom-fuzz", "--edges", "normal,build,dev")
    assert len(module) > 100
    assert module - tests == set(), "what has other features is built twice"
