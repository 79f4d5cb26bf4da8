"""Tab completion, as bash asks for it and in a real bash."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from airloom.cli import call
from tests.cli.shell import airloom
from tests.conftest import needs


def completed(line: str) -> list[str]:
    """What bash is given for a line, with the cursor at its end."""
    words = line.split(" ")
    number = str(len(words) - 1)
    done = airloom(_AIRLOOM_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=number)
    assert done.err == ""
    return done.out.split()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("airloom rep", ["replay", "report"]),
        ("airloom run umts-pa", ["umts-page", "umts-page-proxy"]),
        ("airloom run tsaoussidis/t", ["tsaoussidis/tcp"]),
        ("airloom emulate wpt/3g", ["wpt/3g", "wpt/3g-fast", "wpt/3g-slow", "wpt/3g-em"]),
        ("airloom emulate wirelin", ["wireline"]),
        ("airloom emulate wireline --set que", ["queue"]),
        ("airloom run umts-page --set links.radio.loss.p", ["links.radio.loss.per"]),
        ("airloom emulate wpt/3g --set rat", ["rate"]),
        ("airloom sweep umts-page --vary run.s", ["run.seed"]),
        ("airloom check no-such-scenario --set l", []),
        ("airloom list tran", ["transports"]),
        ("airloom list transports sc", ["sctp"]),
        ("airloom list measures rlc_rese", ["rlc_resent", "rlc_resets"]),
        ("airloom load http://origin/ --link wpt/3g-", ["wpt/3g-slow", "wpt/3g-fast", "wpt/3g-em"]),
        ("airloom load --link wpt/3g --link umts-h", ["umts-hsdpa"]),
        ("airloom load http://origin/ --proxy ", ["none", "split-tcp", "http-cache", "squid"]),
        ("airloom load http://origin/ --link wpt/3g --set links.radio.ra", ["links.radio.rate"]),
        ("airloom study run wave", ["wave-and-wait"]),
        ("airloom validate both", ["both-clocks"]),
        ("airloom -q run umts-page-", ["umts-page-proxy"]),
    ],
)
def test_names_are_completed(line: str, found: list[str]) -> None:
    assert sorted(completed(line)) == sorted(found)


def test_result_folders_are_completed_the_latest_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["run", "umts-page", "--set", "run.record=none"]) == 0
    assert call(["sweep", "umts-page", "--set", "run.record=none", "--seeds", "1..2"]) == 0
    Path("runs/notes").mkdir()
    (run,) = (str(path.parent) for path in Path("runs").glob("*/run.json"))
    (sweep,) = (str(path.parent) for path in Path("runs").glob("*/sweep.json"))
    assert completed("airloom report runs/") == sorted([run, sweep], reverse=True)
    assert completed("airloom energy runs/2") == [run]


def bash(home: Path, script: str, *, interactive: bool = False) -> subprocess.CompletedProcess[str]:
    """A bash whose `airloom` is this one."""
    program = home / "bin" / "airloom"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m airloom "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "HOME": str(home), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    words = [needs("bash"), "-ic" if interactive else "-c", script]
    return subprocess.run(words, capture_output=True, text=True, env=environment, timeout=60, check=False)


ASK = 'COMP_WORDS=(airloom run umts-page-) COMP_CWORD=2; _airloom_completion airloom; echo "${COMPREPLY[@]}"'


def test_a_real_bash_completes_with_the_script_that_is_shown(tmp_path: Path) -> None:
    done = bash(tmp_path, f'eval "$(airloom --show-completion bash)"; {ASK}')
    assert done.stdout == "umts-page-proxy\n", done.stderr


def test_completion_is_installed_for_the_next_bash(tmp_path: Path) -> None:
    # A second command, so that bash does not become the first one and is there to be recognised.
    installed = bash(tmp_path, "airloom --install-completion; echo done")
    assert "bash completion installed" in installed.stdout, installed
    assert bash(tmp_path, ASK, interactive=True).stdout == "umts-page-proxy\n"
