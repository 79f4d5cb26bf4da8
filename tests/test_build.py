"""The tests and the Python module are one build: libraries have the same features in both."""

import ast
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


def test_a_python_that_is_too_old_comes_as_far_as_being_told_so() -> None:
    read = ast.parse((ROOT / "tools" / "requirements.py").read_text(), feature_version=(3, 6))
    functions = [node for node in ast.walk(read) if isinstance(node, ast.FunctionDef)]
    annotations = [function.returns for function in functions]
    annotations += [each.annotation for function in functions for each in function.args.args]
    # What is evaluated of them is no `list[str]`, which is none before 3.9.
    assert [type(each) for each in annotations if each is not None] == [ast.Constant] * 3
