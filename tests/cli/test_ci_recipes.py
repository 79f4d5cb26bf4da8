"""The recipes of docs/ci: what their lines do where everything is there, and where it is not."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT

CI = ROOT / "docs" / "ci"
GATES = '[gate.page]\nscenario = "umts-page"\nruns = 3\nrules = ["page_load_s.max <= {limit}"]\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A checkout with a gate file and the recipes, and `airloom` among the programs."""
    shutil.copytree(CI, tmp_path / "ci" / "airloom")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "airloom").write_text(f'#!/bin/sh\nexec {sys.executable} -m airloom "$@"\n')
    (programs / "airloom").chmod(0o755)
    (tmp_path / "gates.toml").write_text(GATES.format(limit=60))
    return tmp_path


def run(line: str, place: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{place / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-e", "-c", line],
        cwd=place,
        env={**os.environ, "PATH": path, "FILE": "gates.toml", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_lines_of_the_composite_action(place: Path) -> None:
    text = (CI / "action.yml").read_text()
    (line,) = re.findall(r"run: \|\n((?: {8}.*\n)+)", text)
    summary = place / "summary"
    action = str(place / "ci" / "airloom")
    done = run(line, place, ACTION=action, GITHUB_STEP_SUMMARY=str(summary), GITHUB_ACTIONS="true")
    assert done.returncode == 0, done.stderr
    assert "✅" in summary.read_text()
    (place / "gates.toml").write_text(GATES.format(limit=1))
    done = run(line, place, ACTION=action, GITHUB_STEP_SUMMARY=str(summary), GITHUB_ACTIONS="true")
    assert done.returncode == 1
    assert "::error title=airloom gate::page [umts-page]" in done.stdout
    assert "❌" in summary.read_text()


def test_the_lines_for_gitlab(place: Path) -> None:
    text = (CI / "gitlab.yml").read_text()
    (line,) = re.findall(r"script:\n    - (.*)\n", text)
    done = run(line, place)
    assert done.returncode == 0, done.stderr
    kept = re.findall(r"paths: \[(.*)\]", text)[0].split(", ")
    assert all((place / name).is_file() for name in kept)
    assert "junit: airloom-junit.xml" in text


def test_a_runner_without_namespaces_passes_over_what_needs_them_or_says_3(place: Path) -> None:
    link = '[gate.link]\nlinks = ["wireline"]\nruns = 1\ncommand = "true"\nrules = ["exit_code == 0"]\n'
    (place / "gates.toml").write_text(GATES.format(limit=60) + link)
    # A system call filter, as containers have one, is a shell that may make no namespaces: here a limit of none.
    no_rights = ["unshare", "--user", "--map-root-user", "sh", "-ec"]
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces; echo 0 > /proc/sys/user/max_net_namespaces; exec "$0" "$@"'
    if subprocess.run([*no_rights, forbid, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("user namespaces cannot be made here: nothing can be forbidden in them")
    for required, code in (("0", 0), ("1", 3)):
        done = subprocess.run(
            [*no_rights, forbid, "sh", str(place / "ci" / "airloom" / "airloom-gate.sh")],
            cwd=place,
            env={**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "AIRLOOM_REQUIRED": required},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "unsupported" in done.stdout
        assert "pass" in done.stdout
        assert "skipped" in (place / "airloom-junit.xml").read_text()


def test_where_airloom_is_missing_it_is_installed_from_what_is_named_and_from_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    # An environment of Python, and in it an installer and a program that say how they are called.
    for name in ("bin/python3", ".airloom/bin/pip", ".airloom/bin/airloom"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('#!/bin/sh\necho "${0##*/}" "$@"\n')
        (tmp_path / name).chmod(0o755)

    def gate(**variables: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": str(tmp_path / "bin"), **variables}
        command = ["/bin/sh", str(CI / "airloom-gate.sh")]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=60)

    done = gate()
    assert done.returncode != 0
    assert done.stdout == ""
    assert "AIRLOOM_PACKAGE: airloom is not installed" in done.stderr
    done = gate(AIRLOOM_PACKAGE="dist/airloom.whl")
    assert done.returncode == 0, done.stderr
    made, installed, called = done.stdout.splitlines()
    assert (made, installed) == ("python3 -m venv .airloom", "pip install --quiet dist/airloom.whl")
    assert called.startswith("airloom gate gates.toml --junit ")
